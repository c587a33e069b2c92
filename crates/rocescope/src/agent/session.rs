//! One Transport Session of one destination (sequence draft, sections 4, 6 and 7): its own meter,
//! coverage, ids and Templates, from frames to octets.
//!
//! There is no socket, no clock and no thread here: frames and the time are given, and octets are
//! taken whenever the transport has room for them. Where it has none, nothing is serialised: a
//! report that is skipped has spent no id, and a final that finds no place is counted and never
//! made up later.

use std::collections::VecDeque;

use observe::export::{Exporter, Numbering};
use observe::meter::{Cause, Closed, EpochIds, Meter, MeterCounts, Settings};
use observe::pfc::qualify::Qualified;
use observe::provision::Provisioning;
use observe::report::{Report, Snapshot, StreamKey};
use observe::request::Violation;
use wire::capture::Record;
use wire::element::Mapping;
use wire::ipfix::{EncodeError, MESSAGE_MAX};

use super::disabled::Disabled;
use crate::capture::{Item, Visitor};
use crate::meter::Place;
use crate::observation::{Observation, Pipeline, Sink, Tally};
use crate::pfc::poller::{Batch, Named};

/// Reports that are serialised at a time: some 37 000 octets.
pub const CHUNK: usize = 256;

/// Places of the table that are looked at for signs of life at a time.
const LOOKED_AT_MAX: u32 = 4096;

/// How a session runs; the same for all sessions of a destination.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// How frames are looked at.
    pub observation: Observation,
    /// Where they are observed.
    pub place: Place,
    /// Numbers of the drafts' elements.
    pub mapping: Mapping,
    /// Elements of ours that no draft has are used.
    pub extended: bool,
    /// The meter's bounds; `periodic` must be set.
    pub meter: Settings,
    /// Finals that wait for the reading of a drop counter, at most.
    pub finals_waiting_max: usize,
    /// Finals that wait for the transport, at most.
    pub finals_queued_max: usize,
    /// Mirror sessions that are followed, at most.
    pub mirror_sessions_max: usize,
    /// Changed epochs are reported this often, milliseconds.
    pub report_interval_ms: u64,
    /// Epochs that have not changed are reported again this often, milliseconds.
    pub sign_of_life_ms: u64,
}

/// The time, as the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds of a clock that only goes forward.
    pub monotonic_ms: u64,
    /// Seconds since 1970, for the export time of messages.
    pub export_s: u32,
}

/// What a session has done so far, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Reports serialised, finals and signs of life among them.
    pub reports: u64,
    /// Final reports serialised.
    pub finals: u64,
    /// Reports that were repeated under their old id.
    pub signs_of_life: u64,
    /// Reports that were due and not serialised in time: the next one of their epoch stands for
    /// them.
    pub skipped_reports: u64,
    /// Finals for which there was no room: their epochs stay incomplete.
    pub dropped_finals: u64,
    /// Octets serialised.
    pub octets: u64,
    /// Readings of PFC counters serialised.
    pub readings: u64,
    /// Readings that were due and not serialised in time: later ones stand for them.
    pub skipped_readings: u64,
}

impl SessionCounts {
    /// Reports that were serialised and that the network has not taken, and how many of those are
    /// final.
    pub fn beyond(&self, handed_over: HandedOver) -> [u64; 2] {
        let HandedOver { reports, finals } = handed_over;
        [self.reports.saturating_sub(reports), self.finals.saturating_sub(finals)]
    }
}

/// What the network has taken of what was serialised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// Reports, finals and signs of life among them.
    pub reports: u64,
    /// Final reports.
    pub finals: u64,
}

impl HandedOver {
    /// What was serialised between two counts of one session.
    pub fn between(before: SessionCounts, after: SessionCounts) -> Self {
        Self {
            reports: after.reports.saturating_sub(before.reports),
            finals: after.finals.saturating_sub(before.finals),
        }
    }
}

/// One Transport Session.
pub struct ExportSession {
    settings: SessionSettings,
    pipeline: Pipeline<Outgoing>,
    exporter: Exporter,
    begun: bool,
    ended: bool,
    next_report_ms: u64,
    /// Epochs of this round of reports that are still to be taken.
    round: usize,
    next_life_ms: u64,
    /// Where the search for unchanged epochs goes on, while one is under way.
    life: Option<u32>,
    next_readings_ms: u64,
    /// Readings of PFC counters that wait for the transport, by source and direction.
    readings: VecDeque<(usize, Qualified, Vec<Named>)>,
    /// The poll of each source whose readings were taken last.
    polls: Vec<u64>,
    counts: SessionCounts,
}

impl ExportSession {
    /// A session that begins at `now`: fresh contexts, epochs and ids. Streams of `disabled` stay
    /// so.
    ///
    /// # Errors
    /// None: the longest message there is can be set up.
    // SEQ-4.6, SEQ-6.1, SEQ-10.2, SEQ-3.3
    pub fn new(
        settings: SessionSettings,
        provisioning: Provisioning,
        disabled: &Disabled,
        now: Now,
    ) -> Result<Self, EncodeError> {
        let SessionSettings { place, mapping, .. } = settings;
        let exporter = Exporter::new(mapping, place.domain, place.point, MESSAGE_MAX)?;
        let exporter = if settings.extended { exporter.extended() } else { exporter };
        let meter = Meter::new(provisioning, Settings { periodic: true, ..settings.meter });
        let mut pipeline = Pipeline::new(
            settings.observation,
            meter,
            settings.finals_waiting_max,
            settings.mirror_sessions_max,
            None,
            Outgoing::new(settings.finals_queued_max),
        );
        for key in disabled.keys() {
            // A stream that no rule provisions cannot begin an epoch anyway.
            _ = pipeline.disable(key);
        }
        Ok(Self {
            settings,
            pipeline,
            exporter,
            begun: false,
            ended: false,
            next_report_ms: now.monotonic_ms.saturating_add(settings.report_interval_ms),
            round: 0,
            next_life_ms: now.monotonic_ms.saturating_add(settings.sign_of_life_ms),
            life: None,
            next_readings_ms: now.monotonic_ms,
            readings: VecDeque::new(),
            polls: Vec::new(),
            counts: SessionCounts::default(),
        })
    }

    /// The next capture file begins.
    pub fn file(&mut self) {
        self.pipeline.file();
    }

    /// Nothing more comes of the capture, or not for some time, and what passed meanwhile is not
    /// known.
    // SEQ-3.7
    pub fn gap(&mut self, cause: Cause) {
        self.pipeline.capture_gap(cause);
    }

    /// The drop counter of an interface was read: see [`Pipeline::reading_taken`].
    pub fn reading_taken(&mut self, interface: u32) {
        self.pipeline.reading_taken(interface);
    }

    /// What that reading said: see [`Pipeline::drops`].
    pub fn drops(&mut self, interface: u32, drops: Option<u64>) {
        self.pipeline.drops(interface, drops);
    }

    /// All packets up to this time were seen, nanoseconds since 1970.
    pub fn seen_until(&mut self, time_ns: u64) {
        self.pipeline.advance_time(time_ns);
    }

    /// New rules hold. `disabled` is what is still disabled under them.
    // SEQ-4.7
    pub fn provision(&mut self, provisioning: Provisioning, disabled: &Disabled) {
        self.pipeline.provision(provisioning);
        for key in disabled.keys() {
            if !self.pipeline.meter().is_disabled(key) {
                _ = self.pipeline.disable(key);
            }
        }
    }

    /// The operator enables a stream again.
    // SEQ-3.3
    pub fn reprovision(&mut self, key: &StreamKey) -> bool {
        self.pipeline.reprovision(key)
    }

    /// A stream's connection begins anew; says whether the stream was ever seen.
    // SEQ-4.9
    pub fn new_generation(&mut self, key: &StreamKey) -> bool {
        self.pipeline.new_generation(key)
    }

    /// Streams that violations have disabled since this was last asked.
    pub fn take_violated(&mut self) -> Vec<StreamKey> {
        std::mem::take(&mut self.pipeline.sink().violated)
    }

    /// Observation ends here: what is open closes, and after its finals there is nothing to send.
    pub fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.pipeline.end();
        }
    }

    /// Whether all has been sent that ever will be.
    pub fn is_through(&mut self) -> bool {
        self.ended && self.begun && self.pipeline.sink().finals.is_empty()
    }

    /// Appends at most about [`CHUNK`] reports to `out` and says whether it did. Ask only when the
    /// transport has room: what is not asked for is not serialised, and what changes meanwhile
    /// needs no report of its own.
    ///
    /// # Errors
    /// None that a legal report can cause.
    pub fn transmit(&mut self, now: Now, out: &mut Vec<u8>) -> Result<bool, EncodeError> {
        let before = out.len();
        if !std::mem::replace(&mut self.begun, true) {
            self.exporter.begin(now.export_s, out)?;
        }
        self.pipeline.settle();
        let mut reports = self.finals();
        if reports.len() < CHUNK && !self.ended {
            self.changed(now, CHUNK - reports.len(), &mut reports);
        }
        if reports.len() < CHUNK && !self.ended {
            self.unchanged(now, CHUNK - reports.len(), &mut reports);
        }
        if reports.is_empty() {
            self.waiting_readings(now, out)?;
        } else {
            self.exporter.reports(&reports, now.export_s, out)?;
            self.counts.reports += count(reports.len());
        }
        self.counts.octets += count(out.len() - before);
        Ok(out.len() > before)
    }

    /// Notes that time has passed, whether or not the transport has room: a round of reports that
    /// is still waiting when the next one is due is skipped.
    pub fn advance(&mut self, now: Now) {
        if self.ended || now.monotonic_ms < self.next_report_ms {
            return;
        }
        self.pipeline.settle();
        self.counts.skipped_reports += count(self.round);
        self.round = self.pipeline.meter().changed();
        self.next_report_ms = now.monotonic_ms.saturating_add(self.settings.report_interval_ms);
    }

    /// Whether readings of PFC counters are due.
    pub fn wants_readings(&self, now: Now) -> bool {
        !self.ended && now.monotonic_ms >= self.next_readings_ms
    }

    /// Takes the latest readings of a source, as far as this session has not had them. What still
    /// waits of that source is skipped: a later reading stands for it.
    // PFC-op.1: a counter without a new reading is not there.
    pub fn readings(
        &mut self,
        now: Now,
        source: usize,
        qualified: &[Option<Qualified>; 2],
        batch: &Batch,
    ) {
        if self.polls.len() <= source {
            self.polls.resize(source + 1, 0);
        }
        let last = std::mem::replace(&mut self.polls[source], batch.poll);
        let sides = qualified.iter().enumerate();
        let sides = sides.filter_map(|(side, qualified)| Some((side, (*qualified)?)));
        let new: Vec<_> = sides
            .map(|(side, qualified)| (source, qualified, batch.since(side, last).collect()))
            .filter(|(.., readings): &(_, _, Vec<Named>)| !readings.is_empty())
            .collect();
        // Without any, they are asked for again as soon as there are some.
        if new.is_empty() {
            return;
        }
        let mut skipped = 0;
        self.readings.retain(|(of, _, readings)| {
            skipped += if *of == source { count(readings.len()) } else { 0 };
            *of != source
        });
        self.counts.skipped_readings += skipped;
        self.readings.extend(new);
        if self.wants_readings(now) {
            let interval = self.settings.report_interval_ms;
            self.next_readings_ms = now.monotonic_ms.saturating_add(interval);
        }
    }

    /// Serialises readings that wait, at most as many as of reports.
    fn waiting_readings(&mut self, now: Now, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Some((_, qualified, readings)) = self.readings.front_mut() else { return Ok(()) };
        let rest = readings.split_off(readings.len().min(CHUNK));
        let together = std::mem::replace(readings, rest);
        let qualified = *qualified;
        if readings.is_empty() {
            self.readings.pop_front();
        }
        self.counts.readings += count(together.len());
        self.exporter.identified(&qualified, &together, now.export_s, out)
    }

    /// Finals that waited, numbered.
    // SEQ-4.5: ids are given out when a report is serialised.
    fn finals(&mut self) -> Vec<Report> {
        let sink = self.pipeline.sink();
        let take = sink.finals.len().min(CHUNK);
        let Outgoing { finals, numbering, .. } = sink;
        let numbered = |mut closed: Closed| numbering.number(&mut closed.ids, closed.snapshot);
        let reports: Vec<Report> = finals.drain(..take).map(numbered).collect();
        self.counts.finals += count(reports.len());
        reports
    }

    /// Epochs of the round that is under way.
    fn changed(&mut self, now: Now, max: usize, reports: &mut Vec<Report>) {
        self.advance(now);
        let take = self.round.min(max);
        if take == 0 {
            return;
        }
        self.round -= take;
        self.pipeline.report_up_to(take);
        reports.append(&mut self.pipeline.sink().reports);
    }

    /// The latest reports of epochs that have not changed since, under their old ids.
    // SEQ-6.4
    fn unchanged(&mut self, now: Now, max: usize, reports: &mut Vec<Report>) {
        if self.life.is_none() {
            if now.monotonic_ms < self.next_life_ms {
                return;
            }
            self.next_life_ms = now.monotonic_ms.saturating_add(self.settings.sign_of_life_ms);
            self.life = Some(0);
        }
        let Some(start) = self.life else { return };
        let (meter, mut index, mut found) = (self.pipeline.meter(), start, 0);
        while found < max && index - start < LOOKED_AT_MAX {
            let Some(stream) = meter.stream(index) else {
                self.life = None;
                break;
            };
            index += 1;
            self.life = Some(index);
            let Some(open) = stream.open.filter(|open| !open.changed) else { continue };
            found += 1;
            let EpochIds { epoch_id, report_id } = open.ids;
            let snapshot = open.snapshot;
            reports.push(Report { epoch_id, report_id, snapshot, other_keys: 0 });
        }
        self.counts.signs_of_life += count(found);
    }

    /// What was sent and what was not.
    pub fn counts(&mut self) -> SessionCounts {
        SessionCounts { dropped_finals: self.pipeline.sink().dropped_finals, ..self.counts }
    }

    /// Every stream of this session that a violation has disabled.
    pub fn disabled(&mut self) -> impl Iterator<Item = StreamKey> {
        let meter = self.meter();
        let streams = (0..meter.contexts()).filter_map(|index| meter.stream(index));
        streams.filter(|stream| stream.disabled).map(|stream| stream.key)
    }

    /// The streams of this session.
    pub fn meter(&mut self) -> &Meter {
        self.pipeline.settle();
        self.pipeline.meter()
    }

    /// What was metered and what was not.
    pub fn meter_counts(&mut self) -> MeterCounts {
        self.meter().counts()
    }

    /// What was observed.
    pub fn tally(&self) -> Tally {
        self.pipeline.tally()
    }

    /// Finals that did not wait for the reading that would have covered them.
    pub fn released_early(&self) -> u64 {
        self.pipeline.released_early()
    }

    /// Finals that wait for the transport.
    pub fn finals_queued(&mut self) -> usize {
        self.pipeline.sink().finals.len()
    }

    /// The transport is gone, and with it what was not sent: so many finals go now. Their epochs
    /// stay incomplete at the collector.
    // SEQ-4.13
    pub fn abandon(&mut self) -> u64 {
        let sink = self.pipeline.sink();
        let waiting = count(sink.finals.len());
        sink.dropped_finals += waiting;
        sink.finals.clear();
        waiting
    }
}

impl Visitor for ExportSession {
    fn packet(&mut self, record: &Record<'_>) {
        self.pipeline.packet(record);
    }

    fn item(&mut self, item: Item) {
        self.pipeline.item(item);
    }
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Streams named as violated between two looks, at most; each comes again with its next violation.
const VIOLATED_MAX: usize = 4096;

/// What waits to be sent.
struct Outgoing {
    numbering: Numbering,
    finals: VecDeque<Closed>,
    finals_max: usize,
    dropped_finals: u64,
    /// Numbered, and serialised before anything else happens.
    reports: Vec<Report>,
    violated: Vec<StreamKey>,
}

impl Outgoing {
    fn new(finals_max: usize) -> Self {
        Self {
            numbering: Numbering::default(),
            finals: VecDeque::new(),
            finals_max,
            dropped_finals: 0,
            reports: Vec::new(),
            violated: Vec::new(),
        }
    }
}

impl Sink for Outgoing {
    // SEQ-4.13, SEQ-10.3: bounded; one that finds no room is gone for good.
    fn closed(&mut self, closed: Closed) {
        if self.finals.len() < self.finals_max {
            self.finals.push_back(closed);
        } else {
            self.dropped_finals += 1;
        }
    }

    fn disabled(&mut self, _context: u32, _key: &StreamKey, _violation: Violation) {}

    fn violated(&mut self, key: &StreamKey) {
        if self.violated.last() != Some(key) && self.violated.len() < VIOLATED_MAX {
            self.violated.push(*key);
        }
    }

    fn snapshot(&mut self, ids: &mut EpochIds, snapshot: Snapshot) {
        let report = self.numbering.number(ids, snapshot);
        self.reports.push(report);
    }

    fn time(&mut self, _time_ns: u64) {}

    fn due(&mut self) {}

    fn warn(&mut self, warning: String) {
        tracing::warn!("{warning}");
    }
}
