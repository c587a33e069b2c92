//! From packets to epochs: contexts, their bounds, and every way in which an epoch closes
//! (sequence draft, sections 3 and 4).
//!
//! The meter is fed [`Batch`]es of requests in the order of observation. It knows nothing of
//! frames, files or transport; what it closes it hands to the caller at once, as [`Closed`].
//! Whether the capture was complete meanwhile is [`crate::coverage`]'s to say.

mod batch;
mod closed;
mod context;
mod index;
mod roster;
mod table;

use wire::frame::Addresses;

use batch::{Arrival, Burst};
pub use batch::{BATCH, Batch};
pub use closed::{Cause, Closed};
use context::{Context, Standing};
use index::Tag;
use roster::Rosters;
use table::Table;

use crate::provision::Provisioning;
use crate::report::{Snapshot, StreamKey};
use crate::request::Violation;
use crate::sequence::{Discontinuity, Sequence, Step};
use crate::serial::Psn;
use crate::window::Labels;

/// The bounds of a meter. All of them are shown to operators.
// SEQ-10.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams that are remembered, disabled ones among them.
    pub contexts_max: u32,
    /// Octets of window labels over all contexts.
    pub labels_octets_max: u64,
    /// The last report id that an epoch may use; its report is the final one.
    pub report_id_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { contexts_max: 2_000_000, labels_octets_max: 1 << 30, report_id_max: u64::MAX }
    }
}

/// What to do with a new stream when the context table is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Refuse and count it: made-up streams then cannot close honest epochs.
    #[default]
    Refuse,
    /// Close a context that has been quiet for long, with stateExhaustion, and take its place.
    Evict,
}

/// How a meter runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bounds.
    pub limits: Limits,
    /// The full table.
    pub when_full: WhenFull,
    /// An epoch whose stream is silent for longer than this closes; `None` never.
    pub idle_ns: Option<u64>,
    /// Keep track of which epochs have changed, for [`Meter::take_changed`].
    pub periodic: bool,
    /// Seed of the hash over stream keys; unpredictable, so that nobody can choose collisions.
    pub seed: u64,
}

/// What the meter did not meter, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterCounts {
    /// Requests accounted to an epoch.
    pub accounted: u64,
    /// Requests of streams that no rule provisions.
    pub not_provisioned: u64,
    /// Requests refused because the context table was full.
    pub refused_full: u64,
    /// Violations, whether an epoch was open or not; not accounted.
    pub violations: u64,
    /// Requests of streams that a violation had disabled before.
    pub after_violation: u64,
    /// Requests whose time lay before that of the stream's request before.
    pub time_backwards: u64,
}

/// The contexts of one Observation Point under one provisioning.
#[derive(Debug)]
pub struct Meter {
    settings: Settings,
    provisioning: Provisioning,
    table: Table,
    rosters: Rosters,
    labels_octets: u64,
    counts: MeterCounts,
    now_ns: u64,
}

impl Meter {
    /// Octets that a context in order takes, its place in the index included.
    pub const CONTEXT_OCTETS: usize = size_of::<Context>() + index::OCTETS;

    /// An empty table.
    // SEQ-4.6: a Transport Session that begins makes a meter of its own.
    pub fn new(provisioning: Provisioning, settings: Settings) -> Self {
        Self {
            settings,
            provisioning,
            table: Table::new(settings.limits.contexts_max, settings.seed),
            rosters: Rosters::new(settings.idle_ns.is_some(), settings.periodic),
            labels_octets: 0,
            counts: MeterCounts::default(),
            now_ns: 0,
        }
    }

    /// What was and was not metered so far.
    pub fn counts(&self) -> MeterCounts {
        self.counts
    }

    /// Contexts in the table.
    pub fn contexts(&self) -> u32 {
        self.table.len()
    }

    /// Follows requests in their order. Lookups overlap, and a burst of one stream needs a single
    /// one.
    pub fn observe(&mut self, batch: &Batch, out: &mut impl FnMut(Closed)) {
        let keys = batch.keys();
        let mut tags = [Tag::default(); BATCH];
        let mut found = [None; BATCH];
        for ((key, tag), found) in keys.iter().zip(&mut tags).zip(&mut found) {
            *tag = self.table.tag(key);
            *found = self.table.candidate(*tag);
        }
        self.table.touch(&found[..keys.len()]);
        for ((burst, tag), found) in batch.bursts().zip(tags).zip(found) {
            self.arrive(&burst, tag, found, out);
        }
    }

    #[inline]
    fn arrive(
        &mut self,
        burst: &Burst<'_>,
        tag: Tag,
        candidate: Option<u32>,
        out: &mut impl FnMut(Closed),
    ) {
        let mut found = None;
        let mut rest = burst.arrivals;
        if let Some(index) = candidate
            && self.table[index].key == *burst.key
        {
            found = Some(index);
            // Silence would end an epoch before the request that ends the silence.
            if self.settings.idle_ns.is_none() {
                rest = &rest[self.follow(index, rest)..];
            }
        }
        if !rest.is_empty() {
            self.arrive_one_by_one(burst.key, rest, tag, found, out);
        }
    }

    /// The rest of a burst, where more has to be done than to follow it.
    #[inline(never)]
    fn arrive_one_by_one(
        &mut self,
        key: &StreamKey,
        mut rest: &[Arrival],
        tag: Tag,
        mut found: Option<u32>,
        out: &mut impl FnMut(Closed),
    ) {
        while let [arrival, behind @ ..] = rest {
            self.now_ns = self.now_ns.max(arrival.time_ns);
            let mut together = rest;
            if self.settings.idle_ns.is_some() {
                // Silence ends an epoch before the request that ends the silence.
                self.close_idle(out);
                together = &rest[..1];
            }
            if found.is_none() {
                found = self.find_or_admit(key, tag, out);
            }
            let followed = found.map_or(0, |index| self.follow(index, together));
            rest = match found {
                _ if followed > 0 => &rest[followed..],
                Some(index) if !self.cannot_place(index, arrival, out) => rest,
                _ => behind,
            };
        }
    }

    /// A stream that the table does not hold, or did not when the batch was looked up.
    #[cold]
    fn find_or_admit(
        &mut self,
        key: &StreamKey,
        tag: Tag,
        out: &mut impl FnMut(Closed),
    ) -> Option<u32> {
        if let Some(index) = self.table.find(tag, key) {
            return Some(index);
        }
        // SEQ-3.1, SEQ-10.3: packets alone provision nothing.
        let Some(rule) = self.provisioning.find(key) else {
            self.counts.not_provisioned += 1;
            return None;
        };
        if let Some(index) = self.table.insert(tag, Context::new(*key, rule)) {
            return Some(index);
        }
        if self.settings.when_full == WhenFull::Evict
            && let Some(index) = self.table.quiet()
        {
            let context = Context::new(*key, rule);
            // SEQ-4.7
            self.close(index, Cause::Evicted, out);
            self.rosters.evicted(index, &self.table[index].key.addresses);
            self.table.replace(index, context);
            return Some(index);
        }
        self.counts.refused_full += 1;
        None
    }

    /// Accounts requests to the open epoch of a context, for as long as they have a place in it;
    /// says how many.
    #[inline(always)]
    fn follow(&mut self, index: u32, requests: &[Arrival]) -> usize {
        let context = &mut self.table[index];
        let Some(sequence) = &mut context.sequence else { return 0 };
        let (window, mut followed) = (context.window, 0);
        loop {
            let rest = &requests[followed..];
            followed += sequence.in_order(rest.iter().map(|request| request.psn), window);
            let Some(request) = requests.get(followed) else { break };
            if !sequence.step(request.psn, window).is_accounted() {
                break;
            }
            followed += 1;
        }
        let (mut last_ns, mut latest_ns, mut backwards) = (context.last_ns, self.now_ns, 0);
        for request in &requests[..followed] {
            backwards += u64::from(request.time_ns < last_ns);
            last_ns = request.time_ns;
            latest_ns = latest_ns.max(last_ns);
        }
        (context.last_ns, self.now_ns) = (last_ns, latest_ns);
        if followed > 0 {
            self.counts.time_backwards += backwards;
            self.counts.accounted += followed as u64;
            self.rosters.accounted(index);
        }
        followed
    }

    /// A request that has no place in the open epoch of its context, if there is one. Says whether
    /// it was dealt with; where not, it now has a place.
    #[cold]
    fn cannot_place(
        &mut self,
        index: u32,
        request: &Arrival,
        out: &mut impl FnMut(Closed),
    ) -> bool {
        let Arrival { psn, time_ns, .. } = *request;
        let context = &mut self.table[index];
        let Some(sequence) = &mut context.sequence else {
            self.request_without_epoch(index, psn, time_ns);
            return true;
        };
        let cause = match sequence.step(psn, context.window) {
            Step::Discontinuity(Discontinuity::Ambiguous) => Cause::Ambiguous,
            Step::Discontinuity(Discontinuity::Jump(d)) => Cause::Jump(d),
            Step::NeedsLabels if self.give_labels(index) => return false,
            Step::NeedsLabels => Cause::LabelMemory,
            _ => Cause::Exhausted,
        };
        // SEQ-4.10: the old epoch closes first, and the request is counted in the new one only.
        self.close(index, cause, out);
        self.begin(index, psn, time_ns);
        true
    }

    /// Gives the open epoch of a context its labels, where there is memory for them.
    // SEQ-10.3
    fn give_labels(&mut self, index: u32) -> bool {
        let context = &mut self.table[index];
        let octets = self.labels_octets + Labels::octets(context.window);
        let granted = octets <= self.settings.limits.labels_octets_max;
        if granted && let Some(sequence) = &mut context.sequence {
            sequence.give_labels(Labels::new(context.window));
            self.labels_octets = octets;
        }
        granted
    }

    fn request_without_epoch(&mut self, index: u32, psn: Psn, time_ns: u64) {
        match self.table[index].standing {
            Standing::Enabled => self.begin(index, psn, time_ns),
            // SEQ-3.3: SENDs and WRITEs that follow enable nothing.
            Standing::Disabled => self.counts.after_violation += 1,
            Standing::Unprovisioned => self.counts.not_provisioned += 1,
        }
    }

    fn begin(&mut self, index: u32, psn: Psn, time_ns: u64) {
        let context = &mut self.table[index];
        context.begin(Sequence::begin(psn), time_ns);
        self.counts.accounted += 1;
        let deadline = self.settings.idle_ns.map(|idle| time_ns.saturating_add(idle));
        self.rosters.began(index, &context.key.addresses, deadline);
    }

    /// A request outside the profile was observed at `time_ns`: it is not counted, the stream's
    /// epoch closes, and the stream stays disabled. Gives the number of its context where the
    /// stream had no open epoch and was enabled, so that it does not fall silent unseen.
    // SEQ-3.3
    pub fn violation(
        &mut self,
        key: &StreamKey,
        time_ns: u64,
        violation: Violation,
        out: &mut impl FnMut(Closed),
    ) -> Option<u32> {
        self.advance_time(time_ns, out);
        let index = self.find_or_admit(key, self.table.tag(key), out)?;
        if self.table[index].standing == Standing::Unprovisioned {
            self.counts.not_provisioned += 1;
            return None;
        }
        self.counts.violations += 1;
        let silent = !self.table[index].is_open();
        self.close(index, Cause::Violation(violation), out);
        let before = core::mem::replace(&mut self.table[index].standing, Standing::Disabled);
        (silent && before == Standing::Enabled).then_some(index)
    }

    /// Closes the epoch of a context, if one is open.
    fn close(&mut self, index: u32, cause: Cause, out: &mut impl FnMut(Closed)) {
        if let Some((closed, labels_octets)) = self.table[index].close(index, cause) {
            self.labels_octets -= labels_octets;
            out(closed);
        }
    }

    /// Moves the time on and closes the epochs that have been silent for too long by then.
    pub fn advance_time(&mut self, now_ns: u64, out: &mut impl FnMut(Closed)) {
        self.now_ns = self.now_ns.max(now_ns);
        self.close_idle(out);
    }

    // SEQ-4.7
    fn close_idle(&mut self, out: &mut impl FnMut(Closed)) {
        let Some(idle_ns) = self.settings.idle_ns else { return };
        while let Some(index) = self.rosters.due(self.now_ns) {
            let context = &self.table[index];
            let deadline = context.last_ns.saturating_add(idle_ns);
            if deadline < self.now_ns {
                self.close(index, Cause::Idle, out);
            } else if context.is_open() {
                self.rosters.expect(index, deadline);
            }
        }
    }

    /// The capture missed packets that could belong to any stream. Closes every open epoch; what
    /// is observed from here on starts afresh, so call it when observation is complete again.
    // SEQ-3.7, SEQ-3.8, SEQ-4.11
    pub fn capture_gap(&mut self, cause: Cause, out: &mut impl FnMut(Closed)) {
        for index in self.rosters.open.drain() {
            self.close(index, cause, out);
        }
    }

    /// As [`Meter::capture_gap`], where the addresses of what was missed are known.
    // SEQ-3.8
    pub fn capture_gap_between(
        &mut self,
        addresses: &Addresses,
        cause: Cause,
        out: &mut impl FnMut(Closed),
    ) {
        for index in self.rosters.take_between(addresses, &self.table) {
            self.close(index, cause, out);
        }
    }

    /// The operator provisions the stream again after a violation. Says whether it was disabled.
    // SEQ-3.3
    pub fn reprovision(&mut self, key: &StreamKey) -> bool {
        let Some(index) = self.table.find(self.table.tag(key), key) else {
            return false;
        };
        let context = &mut self.table[index];
        let disabled = context.standing == Standing::Disabled;
        if disabled {
            context.standing = Standing::Enabled;
        }
        disabled
    }

    /// A new generation of the connection is known to begin. Closes the stream's epoch.
    // SEQ-4.7, SEQ-4.9
    pub fn new_generation(&mut self, key: &StreamKey, out: &mut impl FnMut(Closed)) -> bool {
        let found = self.table.find(self.table.tag(key), key);
        if let Some(index) = found {
            self.close(index, Cause::Generation, out);
        }
        found.is_some()
    }

    /// Takes new rules. Epochs whose window or generation changes close, and so do those of
    /// streams that no rule provisions any more; a disabled stream is enabled only where the
    /// revision of its rule has grown.
    // SEQ-4.7, SEQ-3.3
    pub fn provision(&mut self, provisioning: Provisioning, out: &mut impl FnMut(Closed)) {
        for index in 0..self.table.len() {
            let context = &mut self.table[index];
            let rule = provisioning.find(&context.key);
            let withdrawn = provisioning.withdrawn(&context.key).map(Cause::Withdrawn);
            if let Some(cause) = context.provision(rule) {
                let cause = withdrawn.unwrap_or(cause);
                self.close(index, cause, out);
            }
            if let Some(rule) = rule {
                self.table[index].set_rule(rule);
            }
        }
        self.provisioning = provisioning;
    }

    /// Observation ends here: every open epoch closes as an ordinary one.
    pub fn finish(&mut self, out: &mut impl FnMut(Closed)) {
        self.capture_gap(Cause::End, out);
    }

    /// As [`Meter::finish`], in the order of the contexts, and their memory is given back on the
    /// way: a million contexts need not lie beside what is made of them.
    pub fn into_finals(self, out: &mut impl FnMut(Closed)) -> MeterCounts {
        for (index, mut context) in self.table.into_contexts() {
            if let Some((closed, _)) = context.close(index, Cause::End) {
                out(closed);
            }
        }
        self.counts
    }

    /// Snapshots of the open epochs that have changed since they were last taken, with the ids
    /// that the exporter keeps for each. An epoch with a single report id left is closed instead.
    // SEQ-5.5: nothing is reset.
    pub fn take_changed(
        &mut self,
        out: &mut impl FnMut(Closed),
        report: impl FnMut(&mut EpochIds, Snapshot),
    ) {
        self.take_changed_up_to(usize::MAX, out, report);
    }

    /// As [`Meter::take_changed`], of at most `max` epochs, those that have waited for longest. The
    /// others keep waiting, and no id is spent on what they look like now.
    pub fn take_changed_up_to(
        &mut self,
        max: usize,
        out: &mut impl FnMut(Closed),
        mut report: impl FnMut(&mut EpochIds, Snapshot),
    ) {
        let Some(changed) = &mut self.rosters.changed else {
            return;
        };
        for index in changed.take(max) {
            let context = &mut self.table[index];
            let Some(sequence) = &context.sequence else {
                continue;
            };
            // SEQ-5.4, SEQ-6.4: the last id is kept for the final report.
            if context.ids.report_id >= self.settings.limits.report_id_max - 1 {
                self.close(index, Cause::ReportIds, out);
                continue;
            }
            let snapshot = context.snapshot(sequence.counts(), context.qualification());
            report(&mut context.ids, snapshot);
        }
    }

    /// Epochs, open or closed since, that have changed after they were last taken.
    pub fn changed(&self) -> usize {
        self.rosters.changed.as_ref().map_or(0, roster::Roster::len)
    }

    /// The stream in a place of the table, 0 to [`Meter::contexts`] - 1.
    pub fn stream(&self, index: u32) -> Option<Stream> {
        if index >= self.table.len() {
            return None;
        }
        let context = &self.table[index];
        let open = context.sequence.as_ref().map(|sequence| OpenEpoch {
            ids: context.ids,
            snapshot: context.snapshot(sequence.counts(), context.qualification()),
            changed: self.rosters.changed.as_ref().is_some_and(|changed| changed.holds(index)),
        });
        Some(Stream { key: context.key, disabled: context.standing == Standing::Disabled, open })
    }

    /// The rules in force.
    pub fn provisioning(&self) -> &Provisioning {
        &self.provisioning
    }

    /// Whether a violation has disabled the stream.
    pub fn is_disabled(&self, key: &StreamKey) -> bool {
        let found = self.table.find(self.table.tag(key), key);
        found.is_some_and(|index| self.table[index].standing == Standing::Disabled)
    }

    /// Takes over from another Transport Session that a violation has disabled the stream, before
    /// anything of it is observed in this one. Says whether there was room and a rule for it.
    // SEQ-3.3: a new session begins afresh, but only the operator's word enables.
    pub fn disable(&mut self, key: &StreamKey, out: &mut impl FnMut(Closed)) -> bool {
        let Some(index) = self.find_or_admit(key, self.table.tag(key), out) else { return false };
        self.close(index, Cause::Policy, out);
        self.table[index].standing = Standing::Disabled;
        true
    }
}

/// A stream of the table, for those who are to be shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// What names it.
    pub key: StreamKey,
    /// A violation has disabled it.
    pub disabled: bool,
    /// Its epoch, if one is open.
    pub open: Option<OpenEpoch>,
}

/// An epoch that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenEpoch {
    /// What its reports were numbered.
    pub ids: EpochIds,
    /// What it looks like now.
    pub snapshot: Snapshot,
    /// It has changed since its latest report, or has none yet.
    pub changed: bool,
}

/// The ids that an exporter has given to an epoch; zeros before its first report.
// SEQ-4.5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochIds {
    /// `rdmaSequenceEpochId`, 0 while none is allocated.
    pub epoch_id: u64,
    /// The latest `rdmaSequenceReportId`, 0 before the first.
    pub report_id: u64,
}
