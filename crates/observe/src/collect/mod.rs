//! The collecting side of one Transport Session: epochs, verdicts on reports, retirement
//! (sequence draft, section 7).
//!
//! Fed with reports that [`crate::profile`] has read. Every report gets a [`Verdict`]; only an
//! accepted one changes what is published of its epoch, and a final report is never made up.

use alloc::collections::{BTreeMap, btree_map::Entry};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::hint::black_box;

mod epochs;

use epochs::Epochs;

use crate::outcome::{Outcome, Qualification};
use crate::report::{Flags, Inconsistent, Report, Snapshot, StreamKey};

/// The bounds of a session. All of them are shown to operators.
// SEQ-7.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Observation Domains.
    pub domains_max: usize,
    /// Epochs that are kept at a time, over all domains.
    pub epochs_max: usize,
    /// An epoch without a report for longer than this is retired as incomplete.
    pub inactivity_ms: u64,
    /// A closed epoch is kept for this long, to notice what contradicts it.
    pub closed_retention_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            domains_max: 64,
            epochs_max: 1_000_000,
            inactivity_ms: 600_000,
            closed_retention_ms: 60_000,
        }
    }
}

/// Reports that [`Session::receive_all`] looks up at a time.
pub const BATCH: usize = 16;

/// What came of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what is now published of its epoch.
    Accepted {
        /// Reports that are missing before it; 0 where it follows.
        // SEQ-7.7: the missing subintervals get nothing of the difference.
        missing: u64,
        /// It is the final one.
        last: bool,
    },
    /// The latest once more: ignored, but for the sign of life.
    Repeated,
    /// Older than the latest: nothing that was published changes.
    Stale,
    /// It changed nothing, for this reason.
    Rejected(Rejection),
    /// It contradicts what was accepted, and the epoch is invalid from here on.
    Invalidated(Contradiction),
}

/// Why a report was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A relationship of section 5 does not hold in it.
    Inconsistent(Inconsistent),
    /// Its epoch id belongs to another key.
    KeyChanged,
    /// Its window, generation qualification or flow start differs from the epoch's.
    ImmutableChanged(&'static str),
    /// A total counter is smaller than before.
    Decreased(&'static str),
    /// Its epoch is not known, and its id is not above the highest seen: nothing is created.
    Orphan,
    /// There is no room for another epoch.
    EpochsFull,
    /// There is no room for another domain.
    DomainsFull,
    /// Its epoch is invalid already.
    EpochInvalid,
}

/// What makes an epoch invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// The same report id with other content.
    SameIdOtherContent,
    /// A larger report id after the final one.
    AfterFinal,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inconsistent(inconsistent) => inconsistent.fmt(f),
            Self::KeyChanged => f.write_str("the epoch id belongs to another key"),
            Self::ImmutableChanged(field) => write!(f, "{field} changed within the epoch"),
            Self::Decreased(field) => write!(f, "{field} is smaller than in an earlier report"),
            Self::Orphan => f.write_str("an unknown epoch id, not above the highest seen"),
            Self::EpochsFull => f.write_str("no room for another epoch"),
            Self::DomainsFull => f.write_str("no room for another observation domain"),
            Self::EpochInvalid => f.write_str("the epoch is invalid"),
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameIdOtherContent => "the latest report id again with other content",
            Self::AfterFinal => "a report after the final one",
        })
    }
}

/// An epoch as the collector keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Observation Point.
    pub point: u64,
    /// The latest accepted report.
    pub latest: Report,
    /// Reports that are known to be missing.
    pub missing: u64,
    /// All flags of accepted reports.
    pub flags: Flags,
    /// When the latest report, accepted or repeated, was received; the final one, when it was
    /// accepted.
    pub heard_ms: u64,
    /// What made it invalid.
    pub contradiction: Option<Contradiction>,
    /// The collector itself dropped reports.
    pub collector_drops: bool,
}

impl Epoch {
    fn new(point: u64, report: &Report, now_ms: u64, dropped: bool) -> Self {
        // SEQ-7.7: the first received can be later than the first.
        let missing = report.report_id - 1;
        Self {
            point,
            latest: *report,
            missing,
            flags: report.snapshot.flags,
            heard_ms: now_ms,
            contradiction: None,
            // SEQ-7.15: what is missing before may be what the collector dropped.
            collector_drops: dropped && missing > 0,
        }
    }

    fn is_final(&self) -> bool {
        self.latest.snapshot.flags.has(Flags::FINAL_EPOCH)
    }

    /// Reads from different parts of it, so that all of it is on its way from memory when its
    /// report's turn comes.
    #[inline]
    fn touch(&self) {
        let Snapshot { key, counts, .. } = &self.latest.snapshot;
        black_box((self.missing, key.addresses.source[0], key.qp, counts.skipped, counts.requests));
    }

    /// What is known of it now.
    // SEQ-7.14
    pub fn outcome(&self) -> Outcome {
        if self.contradiction.is_some() {
            Outcome::Invalid
        } else if !self.is_final() {
            Outcome::Active
        } else if self.missing > 0 || self.collector_drops {
            Outcome::Incomplete
        } else {
            Outcome::Complete
        }
    }

    /// What is known of it when nothing more will come.
    // SEQ-7.13: silence ends nothing.
    pub fn final_outcome(&self) -> Outcome {
        match self.outcome() {
            Outcome::Active => Outcome::Incomplete,
            outcome => outcome,
        }
    }

    /// What a reader of its numbers has to know, when nothing more will come.
    // SEQ-7.5, SEQ-7.15
    pub fn qualifications(&self) -> Vec<Qualification> {
        let mut all: Vec<_> = Qualification::of_flags(self.flags).collect();
        let snapshot = &self.latest.snapshot;
        let others = [
            (self.missing > 0, Qualification::ReportGap),
            (!self.is_final(), Qualification::NoFinal),
            (self.collector_drops, Qualification::CollectorDrop),
            (snapshot.end_ms < snapshot.start_ms, Qualification::FlowEndsBeforeStart),
        ];
        all.extend(others.into_iter().filter(|(holds, _)| *holds).map(|(_, q)| q));
        all
    }

    /// Why it has this outcome, in words for people; none while it is active, and none where it
    /// is complete.
    // SEQ-7.15, SEQ-7.16
    pub fn reason(&self, outcome: Outcome) -> Option<String> {
        match outcome {
            Outcome::Active | Outcome::Complete => return None,
            Outcome::Invalid => return self.contradiction.map(|found| found.to_string()),
            Outcome::Incomplete => {}
        }
        let reports = match self.missing {
            0 => None,
            1 => Some("1 report is missing".to_string()),
            n => Some(format!("{n} reports are missing")),
        };
        let silent = (!self.is_final()).then(|| "no final report was received".to_string());
        let dropped = self.collector_drops.then(|| "the collector dropped reports".to_string());
        let all: Vec<_> = [reports, silent, dropped].into_iter().flatten().collect();
        Some(all.join("; "))
    }

    /// Takes a report with the epoch's own id.
    fn receive(&mut self, point: u64, report: &Report, now_ms: u64) -> Verdict {
        let (new, latest) = (&report.snapshot, &self.latest.snapshot);
        // SEQ-7.12, SEQ-7.2, SEQ-7.17: the id is looked up first, and its key does not change; no
        // two counters of different points or streams ever meet. SEQ-7.3, SEQ-6.7: so neither
        // namespace nor Observation Point change within an epoch.
        let same_namespace = report.other_keys == self.latest.other_keys;
        if point != self.point || new.key != latest.key || !same_namespace {
            return Verdict::Rejected(Rejection::KeyChanged);
        }
        if self.contradiction.is_some() {
            return Verdict::Rejected(Rejection::EpochInvalid);
        }
        // SEQ-7.8
        if report.report_id < self.latest.report_id {
            return Verdict::Stale;
        }
        if report.report_id == self.latest.report_id {
            if new == latest {
                // SEQ-7.10: a final that is sent again and again is not kept for ever.
                if !self.is_final() {
                    self.heard_ms = now_ms;
                }
                return Verdict::Repeated;
            }
            return self.invalidate(Contradiction::SameIdOtherContent);
        }
        // SEQ-7.9
        if self.is_final() {
            return self.invalidate(Contradiction::AfterFinal);
        }
        // SEQ-7.1
        if let Err(inconsistent) = new.check() {
            return Verdict::Rejected(Rejection::Inconsistent(inconsistent));
        }
        // SEQ-7.6
        if let Some(rejection) = extends(latest, new) {
            return Verdict::Rejected(rejection);
        }
        let missing = report.report_id - self.latest.report_id - 1;
        self.missing += missing;
        self.flags = self.flags.with(new.flags);
        self.latest = *report;
        self.heard_ms = now_ms;
        Verdict::Accepted { missing, last: self.is_final() }
    }

    fn invalidate(&mut self, contradiction: Contradiction) -> Verdict {
        self.contradiction = Some(contradiction);
        Verdict::Invalidated(contradiction)
    }
}

/// Why `new` cannot follow `latest`, if it cannot.
// SEQ-7.3, SEQ-7.6
fn extends(latest: &Snapshot, new: &Snapshot) -> Option<Rejection> {
    let generation = |s: &Snapshot| s.flags.of(Flags::GENERATION_UNVERIFIED);
    let immutable = [
        (latest.window != new.window, "rdmaSequenceWindow"),
        (generation(latest) != generation(new), "generationUnverified"),
        (latest.start_ms != new.start_ms, "flowStartMilliseconds"),
    ];
    if let Some((_, field)) = immutable.into_iter().find(|(changed, _)| *changed) {
        return Some(Rejection::ImmutableChanged(field));
    }
    let (a, b) = (&latest.counts, &new.counts);
    let totals = [
        (a.skipped, b.skipped, "skippedPsnTotalCount"),
        (a.filled, b.filled, "filledPsnTotalCount"),
        (a.expired, b.expired, "expiredPsnTotalCount"),
        (a.repeated, b.repeated, "repeatedPsnTotalCount"),
        (a.requests, b.requests, "requestPacketTotalCount"),
        (a.unclassified_late, b.unclassified_late, "unclassifiedLatePacketTotalCount"),
    ];
    let decreased = totals.into_iter().find(|(before, after, _)| after < before);
    decreased.map(|(.., field)| Rejection::Decreased(field))
}

/// An epoch that is kept no longer, with what is to be stored of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Observation Domain.
    pub domain: u32,
    /// The epoch.
    pub epoch: Epoch,
    /// Complete, incomplete or invalid.
    pub outcome: Outcome,
}

/// What is kept of a domain for as long as the session lasts.
#[derive(Clone, Copy, Debug, Default)]
struct Domain {
    /// The highest epoch id seen, 0 before the first.
    high_water: u64,
    /// The collector itself dropped reports of it.
    dropped: bool,
}

/// The epochs of one Transport Session.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    domains: BTreeMap<u32, Domain>,
    epochs: Epochs,
}

impl Session {
    /// A session without epochs; `seed` makes the places of epoch ids unpredictable.
    // SEQ-7.12, SEQ-10.2: a reconnect makes another one, whoever the peer is.
    pub fn new(limits: Limits, seed: u64) -> Self {
        Self { limits, domains: BTreeMap::new(), epochs: Epochs::new(seed) }
    }

    /// Changes how many epochs may be kept; those that are kept stay.
    // SEQ-7.10
    pub fn bound_epochs(&mut self, epochs_max: usize) {
        self.limits.epochs_max = epochs_max;
    }

    /// Epochs that are kept.
    pub fn len(&self) -> usize {
        self.epochs.as_slice().len()
    }

    /// Whether no epoch is kept.
    pub fn is_empty(&self) -> bool {
        self.epochs.as_slice().is_empty()
    }

    /// The epoch with an id, if it is kept.
    pub fn epoch(&self, domain: u32, epoch_id: u64) -> Option<&Epoch> {
        self.epochs.find(domain, epoch_id).map(|at| &self.epochs.as_slice()[at].1)
    }

    /// All epochs that are kept, with their domains.
    pub fn epochs(&self) -> impl Iterator<Item = (u32, &Epoch)> {
        self.epochs.as_slice().iter().map(|(domain, epoch)| (*domain, epoch))
    }

    /// The highest epoch id seen in a domain.
    pub fn high_water(&self, domain: u32) -> Option<u64> {
        self.domains.get(&domain).map(|domain| domain.high_water).filter(|high| *high > 0)
    }

    /// Takes a report of an Observation Domain and Point.
    // SEQ-7.1, SEQ-7.12
    pub fn receive(&mut self, domain: u32, point: u64, report: &Report, now_ms: u64) -> Verdict {
        match self.epochs.find(domain, report.epoch_id) {
            Some(at) => self.epochs.get_mut(at).receive(point, report, now_ms),
            None => self.unknown(domain, point, report, now_ms),
        }
    }

    /// Takes reports of an Observation Domain, each with its Observation Point, as
    /// [`Session::receive`] takes them one by one. Lookups of up to [`BATCH`] overlap.
    pub fn receive_all(
        &mut self,
        domain: u32,
        reports: &[(u64, Report)],
        now_ms: u64,
        each: &mut impl FnMut(&(u64, Report), Verdict),
    ) {
        for batch in reports.chunks(BATCH) {
            let mut found = [None; BATCH];
            for (found, (_, report)) in found.iter_mut().zip(batch) {
                *found = self.epochs.find(domain, report.epoch_id);
                if let Some(at) = *found {
                    self.epochs.as_slice()[at].1.touch();
                }
            }
            for (found, of) in found.into_iter().zip(batch) {
                let (point, report) = of;
                let verdict = match found {
                    // No epoch leaves its place meanwhile.
                    Some(at) => self.epochs.get_mut(at).receive(*point, report, now_ms),
                    // A report before it can have begun its epoch.
                    None => self.receive(domain, *point, report, now_ms),
                };
                each(of, verdict);
            }
        }
    }

    /// Takes a report whose epoch is not kept.
    // SEQ-7.12
    fn unknown(&mut self, domain: u32, point: u64, report: &Report, now_ms: u64) -> Verdict {
        let Some(state) = self.domain(domain) else {
            return Verdict::Rejected(Rejection::DomainsFull);
        };
        if report.epoch_id <= state.high_water {
            return Verdict::Rejected(Rejection::Orphan);
        }
        // Advanced whether or not the epoch is admitted: what comes later is in order.
        state.high_water = report.epoch_id;
        let dropped = state.dropped;
        if let Err(inconsistent) = report.snapshot.check() {
            return Verdict::Rejected(Rejection::Inconsistent(inconsistent));
        }
        if self.epochs.is_full(self.limits.epochs_max) {
            return Verdict::Rejected(Rejection::EpochsFull);
        }
        let epoch = Epoch::new(point, report, now_ms, dropped);
        let verdict = Verdict::Accepted { missing: epoch.missing, last: epoch.is_final() };
        self.epochs.insert(domain, epoch);
        verdict
    }

    /// The state of a domain, if there is one or room for one.
    fn domain(&mut self, domain: u32) -> Option<&mut Domain> {
        let full = self.domains.len() >= self.limits.domains_max;
        match self.domains.entry(domain) {
            Entry::Vacant(_) if full => None,
            entry => Some(entry.or_default()),
        }
    }

    /// The collector had to drop reports of a domain that it had not yet read: every epoch that
    /// may be concerned says so, those included whose beginning is missing later on.
    // SEQ-7.15
    pub fn dropped(&mut self, domain: u32) {
        // Where there is no room for the domain, all of it is refused with that reason.
        if let Some(state) = self.domain(domain) {
            state.dropped = true;
        }
        for (of, epoch) in self.epochs.iter_mut() {
            epoch.collector_drops |= *of == domain && !epoch.is_final();
        }
    }

    /// Retires the epochs whose time is over.
    // SEQ-7.10, SEQ-7.11, SEQ-7.13
    pub fn retire(&mut self, now_ms: u64, out: &mut impl FnMut(Retired)) {
        let limits = self.limits;
        let over = |epoch: &Epoch| {
            let closed = epoch.is_final() || epoch.contradiction.is_some();
            let kept = if closed { limits.closed_retention_ms } else { limits.inactivity_ms };
            now_ms.saturating_sub(epoch.heard_ms) > kept
        };
        self.epochs.take(over, &mut |domain, epoch| out(retired(domain, epoch)));
    }

    /// The session has ended, for whatever reason: all epochs retire, and none gets a final
    /// report that was not received.
    // SEQ-7.13, SEQ-4.13
    pub fn end(self, out: &mut impl FnMut(Retired)) {
        for (domain, epoch) in self.epochs.into_iter() {
            out(retired(domain, epoch));
        }
    }
}

// SEQ-4.13: without a final report received there is none.
fn retired(domain: u32, epoch: Epoch) -> Retired {
    let outcome = epoch.final_outcome();
    Retired { domain, epoch, outcome }
}

/// The full key of an epoch within a session, for those who store it.
// SEQ-4.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EpochKey {
    /// Observation Domain.
    pub domain: u32,
    /// Observation Point.
    pub point: u64,
    /// The stream.
    pub stream: StreamKey,
    /// Epoch id.
    pub epoch_id: u64,
}
