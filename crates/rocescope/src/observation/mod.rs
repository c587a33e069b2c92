//! From capture items to closed epochs: decoding, the order of events, and what a capture's own
//! faults do to the epochs that they touch. Files and interfaces come this way alike, for `meter`
//! and for every Transport Session of an agent.
//!
//! What this decides is only when something happened relative to the packets around it. What it
//! means for an epoch is `observe`'s to say.

mod elsewhere;
mod gaps;
mod received;
mod tally;

use observe::coverage::{Coverage, MirrorSequence};
use observe::meter::{Batch, Cause, Closed, EpochIds, Meter, MeterCounts};
use observe::provision::Provisioning;
use observe::report::{Snapshot, StreamKey};
use observe::request::{Observed, Violation, classify};
use wire::capture::Record;
use wire::frame::{
    Addresses, Bth, Decoded, Frame, Layer, Lie, LinkType, Located, MirrorKind, Namespace, Packet,
    V4Addresses, common, decode, decode_sliced, untagged,
};
use wire::icrc::{self, IcrcVerdict};

pub use elsewhere::LOOKED_THROUGH_MAX;
pub use received::Missed;
pub(crate) use received::runt;
pub use tally::Tally;

use crate::capture::{DropCounter, Item, Visitor};
use received::Followed;

/// How frames are looked at; the same for a whole run.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// The layer that is observed.
    pub layer: Layer,
    /// Whether each packet's ICRC is checked.
    pub check_icrc: bool,
    /// The mirror cuts packets without saying so: the end of a frame says nothing about lengths.
    pub sliced: bool,
}

/// Where results go.
pub trait Sink {
    /// A final report is due.
    fn closed(&mut self, closed: Closed);
    /// A violation has disabled a stream that had no open epoch: no report will say so.
    fn disabled(&mut self, context: u32, key: &StreamKey, violation: Violation);
    /// A violation was observed, and the stream is disabled from here on, if it was not before.
    fn violated(&mut self, _key: &StreamKey) {}
    /// A report of an epoch that goes on is due.
    fn snapshot(&mut self, ids: &mut EpochIds, snapshot: Snapshot);
    /// A priority flow control frame was received by an interface of the capture, or nothing says
    /// that it was sent.
    fn pfc(&mut self, _interface: u32, _time_ns: u64, _pfc: &wire::pfc::Pfc) {}
    /// So much keeps anybody from knowing all priority flow control frames that an interface
    /// received, or any interface where none is given.
    fn missed(&mut self, _interface: Option<u32>, _missed: Missed, _count: u64) {}
    /// Frames of a mirror session came in at an interface of the capture.
    fn mirrored(&mut self, _interface: u32, _session: &MirrorSession) {}
    /// A section of a capture begins, and numbers of interfaces with it.
    fn section(&mut self) {}
    /// The next interface of the section, by its name where it has one.
    fn interface(&mut self, _name: Option<&[u8]>) {}
    /// The capture's time, when it ends; not where no packet had one.
    fn time(&mut self, time_ns: u64);
    /// What was given is a round of reports: whoever waits for them should get them.
    fn due(&mut self);
    /// Something that the user should know.
    fn warn(&mut self, warning: String);
}

/// A drop counter of an interface and its number in [`Coverage`].
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    number: usize,
    drops: DropCounter,
    /// Where a reading was taken that has not been told yet.
    taken: Option<u64>,
}

/// What tells packets of two streams apart, where both come without tags over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Untagged {
    addresses: V4Addresses,
    /// Destination queue pair and partition key.
    stream: u64,
}

impl Untagged {
    #[inline(always)]
    fn new(addresses: V4Addresses, bth: &Bth) -> Self {
        Self { addresses, stream: u64::from(bth.qp) << 16 | u64::from(bth.pkey) }
    }

    #[inline(always)]
    fn key(self, bth: &Bth) -> StreamKey {
        StreamKey {
            addresses: self.addresses.into(),
            namespace: Namespace::default(),
            qp: bth.qp,
            pkey: bth.pkey,
        }
    }
}

/// What names a mirror session: where it comes from and goes to, its kind and its number.
pub type MirrorSession = (Addresses, MirrorKind, u32);

/// The state between capture and meter.
pub struct Pipeline<S> {
    observation: Observation,
    meter: Meter,
    coverage: Coverage<Closed>,
    counters: Vec<Counter>,
    mirror: MirrorSequence<MirrorSession>,
    /// Requests that wait for a full batch.
    waiting: Batch,
    /// What the last of them is known by, where it came without tags over IPv4.
    last: Option<Untagged>,
    /// Whether frames may be decoded the short way.
    short_way: bool,
    report_interval_ns: Option<u64>,
    next_report_ns: Option<u64>,
    time_ns: u64,
    /// The time of some packet is known.
    time_known: bool,
    file_starts: bool,
    /// When the file that is read began.
    file_began_ns: u64,
    /// Readings that were taken: each has a position of its own, between the frames around it.
    readings: u64,
    tally: Tally,
    sink: S,
}

/// How far a file may start before the one in front of it ended and still follow it: the packets of
/// several queues come to a rotating writer out of order by less.
const OVERLAP_NS: u64 = 50_000_000;

impl<S: Sink> Pipeline<S> {
    /// Nothing has been seen yet. At most `finals_waiting_max` final reports wait for the reading
    /// of a drop counter, and at most `mirror_sessions_max` mirror sessions are followed.
    pub fn new(
        observation: Observation,
        meter: Meter,
        finals_waiting_max: usize,
        mirror_sessions_max: usize,
        report_interval_ns: Option<u64>,
        sink: S,
    ) -> Self {
        Self {
            observation,
            meter,
            coverage: Coverage::new(finals_waiting_max),
            counters: Vec::new(),
            mirror: MirrorSequence::new(mirror_sessions_max),
            waiting: Batch::new(),
            last: None,
            short_way: observation.layer == Layer::Outer
                && !observation.check_icrc
                && !observation.sliced,
            report_interval_ns,
            next_report_ns: None,
            time_ns: 0,
            time_known: false,
            file_starts: false,
            file_began_ns: 0,
            readings: 0,
            tally: Tally::default(),
            sink,
        }
    }

    /// The next capture file begins.
    pub fn file(&mut self) {
        self.file_starts = true;
    }

    /// The file cannot be read any further.
    pub fn damaged(&mut self) {
        self.sink.missed(None, Missed::FileDamaged, 1);
        self.gap(Cause::FileDamaged);
    }

    /// Observation ends: every open epoch closes, and nothing waits any longer.
    pub fn finish(mut self) -> (S, Tally, MeterCounts, u64) {
        self.flush();
        let position = self.position();
        let Self { meter, mut coverage, mut sink, tally, time_ns, time_known, .. } = self;
        let counts = meter.into_finals(&mut |closed| {
            coverage.closed(position, closed, &mut |c| sink.closed(c));
        });
        coverage.finish(&mut |c| sink.closed(c));
        // PFC-rec.2: where no packet had a time, the end of the capture has none.
        if time_known {
            sink.time(time_ns);
        }
        (sink, tally, counts, coverage.released_early())
    }

    /// As [`Pipeline::finish`], and the meter can still be asked. Nothing may be observed
    /// afterwards.
    pub fn end(&mut self) {
        self.flush();
        self.on_meter(|meter, out| meter.finish(&mut |c| out(c)));
        self.end_counters();
    }

    /// Follows what was seen and not yet looked up, so that the meter knows of it.
    pub fn settle(&mut self) {
        self.flush();
    }

    /// Where results go.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The streams.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What was observed so far.
    pub fn tally(&self) -> Tally {
        let mut tally = self.tally.clone();
        tally.requests += count(self.waiting.len());
        tally
    }

    /// Closed epochs that did not wait for the reading that would have covered them.
    pub fn released_early(&self) -> u64 {
        self.coverage.released_early()
    }

    /// All packets up to this time have been seen: epochs that were silent for too long by then
    /// close.
    pub fn advance_time(&mut self, time_ns: u64) {
        self.flush();
        self.on_meter(|meter, out| meter.advance_time(time_ns, &mut |c| out(c)));
    }

    /// Packets are missing here, and they can be of any stream.
    // SEQ-3.8
    pub fn capture_gap(&mut self, cause: Cause) {
        self.sink.missed(None, Missed::Gap, 1);
        self.gap(cause);
    }

    /// New rules hold from here on.
    // SEQ-4.7
    pub fn provision(&mut self, provisioning: Provisioning) {
        self.flush();
        self.on_meter(|meter, out| meter.provision(provisioning, &mut |c| out(c)));
    }

    /// Enables a stream that a violation had disabled; says whether it was.
    // SEQ-3.3
    pub fn reprovision(&mut self, key: &StreamKey) -> bool {
        self.flush();
        self.meter.reprovision(key)
    }

    /// A stream stays disabled that was so in another session.
    // SEQ-3.3
    pub fn disable(&mut self, key: &StreamKey) -> bool {
        self.flush();
        self.on_meter(|meter, out| meter.disable(key, &mut |c| out(c)))
    }

    /// A stream's connection begins anew; says whether the stream was ever seen.
    // SEQ-4.9
    pub fn new_generation(&mut self, key: &StreamKey) -> bool {
        self.flush();
        self.on_meter(|meter, out| meter.new_generation(key, &mut |c| out(c)))
    }

    /// Has the meter do something that can close epochs.
    fn on_meter<R>(&mut self, act: impl FnOnce(&mut Meter, &mut dyn FnMut(Closed)) -> R) -> R {
        let position = self.position();
        let (coverage, sink) = (&mut self.coverage, &mut self.sink);
        act(&mut self.meter, &mut |closed| {
            coverage.closed(position, closed, &mut |c| sink.closed(c));
        })
    }

    /// The drop counter of an interface has just been read. What it said is told by
    /// [`Pipeline::drops`], after all packets have been seen that came before the reading.
    pub fn reading_taken(&mut self, interface: u32) {
        self.flush();
        let position = self.position();
        self.readings += 1;
        if let Some(counter) = self.counter(interface) {
            counter.taken = Some(position);
        }
    }

    /// What the reading said that was taken before; nothing where it could not be had. The drops
    /// lie anywhere between the reading before it and this packet, so the open epochs close here,
    /// and those that have closed since the reading before it are qualified.
    // SEQ-3.7
    pub fn drops(&mut self, interface: u32, drops: Option<u64>) {
        self.tally.capture_drops = self.tally.capture_drops.saturating_add(drops.unwrap_or(0));
        let position = self.counter(interface).and_then(|counter| counter.taken.take());
        if drops != Some(0) {
            let (missed, count) = drops.map_or((Missed::DropsUnknown, 1), |n| (Missed::Dropped, n));
            self.sink.missed(Some(interface), missed, count);
            self.gap(Cause::CaptureDrops);
        }
        let Some(position) = position else { return };
        self.reading_at(interface, position, drops != Some(0));
    }

    /// Reports of epochs that have changed, of at most `max` of them.
    pub fn report_up_to(&mut self, max: usize) {
        self.flush();
        let position = self.position();
        let (coverage, sink) = (&mut self.coverage, &mut self.sink);
        let mut closed = Vec::new();
        self.meter.take_changed_up_to(max, &mut |c| closed.push(c), |ids, snapshot| {
            sink.snapshot(ids, snapshot)
        });
        for epoch in closed {
            coverage.closed(position, epoch, &mut |c| sink.closed(c));
        }
        self.sink.due();
    }

    /// Grows with frames and readings.
    fn position(&self) -> u64 {
        self.tally.frames + self.readings
    }

    /// What is not the most frequent kind of frame.
    #[inline(never)]
    fn frame(&mut self, record: &Record<'_>) {
        let Ok(link) = record.link else {
            self.tally.unknown_link += 1;
            return;
        };
        let Observation { layer, sliced, .. } = self.observation;
        let Decoded { mirror, body } = if sliced {
            decode_sliced(record.data, link, layer)
        } else {
            decode(record.data, record.original_len, link, layer)
        };
        let followed =
            mirror.map_or(Followed::InTurn, |mirror| self.mirrored(record.interface, &mirror));
        if !damaged(record) {
            if let Some(mirror) = &mirror {
                let session = (mirror.addresses, mirror.kind, mirror.session);
                self.sink.mirrored(record.interface, &session);
            }
            self.not_pfc(record, link, &body);
        }
        match body {
            _ if damaged(record) => self.damaged_on_the_link(record, &body),
            Frame::Roce(packet) if followed == Followed::Not => {
                self.gap_between(&packet.addresses, Cause::MirrorNotFollowed);
            }
            Frame::Roce(packet) => self.roce(record.data, &packet),
            Frame::NotRoce(reason) => {
                self.tally.not_roce[reason.index()] += 1;
                // SEQ-3.8: our own bounds are no reason to take it for something else.
                if reason.may_be_roce() {
                    self.gap(Cause::Unreadable);
                }
                self.look_through(record, link);
            }
            Frame::Pfc(pfc) => self.pfc(record, mirror.as_ref(), followed, &pfc),
            Frame::Fault(fault) => self.fault(&fault),
        }
    }

    /// The time of the next packet.
    #[inline(always)]
    fn time(&mut self, time_ns: u64) {
        if self.file_starts {
            self.time_of_file(time_ns);
        }
        self.time_ns = time_ns;
        self.time_known = true;
        if self.report_interval_ns.is_some() {
            self.report_when_due();
        }
    }

    /// Where a file starts.
    #[cold]
    fn time_of_file(&mut self, time_ns: u64) {
        self.file_starts = false;
        let before_ns = std::mem::replace(&mut self.file_began_ns, time_ns);
        let overlap_ns = self.time_ns.saturating_sub(time_ns);
        if overlap_ns == 0 {
            return;
        }
        self.sink.warn(format!(
            "a capture file starts {} us before the one in front of it ended: are they in order, and \
             does each packet stand in one of them only?",
            overlap_ns.div_ceil(1000)
        ));
        // One that begins when the one in front of it began has its packets again, however short it
        // is.
        if overlap_ns > OVERLAP_NS || time_ns == before_ns {
            self.sink.missed(None, Missed::FilesOverlap, 1);
            self.gap(Cause::FilesOverlap);
            self.next_report_ns = None;
        }
    }

    fn report_when_due(&mut self) {
        let (time_ns, Some(interval_ns)) = (self.time_ns, self.report_interval_ns) else { return };
        match self.next_report_ns {
            Some(next_ns) if time_ns < next_ns => return,
            Some(_) => self.report(),
            None => {}
        }
        self.next_report_ns = Some(time_ns.saturating_add(interval_ns));
    }

    /// A packet that was decoded the long way.
    fn roce(&mut self, frame: &[u8], packet: &Packet) {
        self.tally.length_lies += u64::from(packet.lie.is_some());
        if self.observation.check_icrc && !self.icrc_allows(frame, packet) {
            return;
        }
        let key = self.waiting.next_key();
        (key.addresses, key.namespace) = (packet.addresses, packet.namespace);
        self.identified(packet.located(), packet.lie);
    }

    /// A packet without tags over IPv4.
    #[inline(always)]
    fn untagged(&mut self, found: Located, addresses: V4Addresses) {
        let observed = classify(&found.bth, found.transport_len, None);
        if let Observed::Request(psn) = observed
            && self.time_known
        {
            if !found.extension_captured() {
                self.tally.extension_cut += 1;
            }
            let identity = Untagged::new(addresses, &found.bth);
            let full = if self.last == Some(identity) {
                self.waiting.push_same(psn, self.time_ns)
            } else {
                self.last = Some(identity);
                *self.waiting.next_key() = identity.key(&found.bth);
                self.waiting.push(psn, self.time_ns)
            };
            if full {
                self.flush();
            }
        } else {
            *self.waiting.next_key() = Untagged::new(addresses, &found.bth).key(&found.bth);
            self.identified(found, None);
        }
    }

    /// A packet whose addresses and namespace stand in the next place for a key.
    #[inline(always)]
    fn identified(&mut self, found: Located, lie: Option<Lie>) {
        let key = self.waiting.next_key();
        (key.qp, key.pkey) = (found.bth.qp, found.bth.pkey);
        match classify(&found.bth, found.transport_len, lie) {
            Observed::Request(psn) => {
                if !found.extension_captured() {
                    self.tally.extension_cut += 1;
                }
                // A flow has a start and an end: without any time there is nothing to report.
                if !self.time_known {
                    self.tally.requests += 1;
                    self.tally.before_time += 1;
                    return;
                }
                self.last = None;
                if self.waiting.push(psn, self.time_ns) {
                    self.flush();
                }
            }
            observed => self.no_request(observed),
        }
    }

    /// A packet whose identity stands in the next place for a key, and which takes no
    /// position.
    #[inline(never)]
    fn no_request(&mut self, observed: Observed) {
        self.tally.packet(observed);
        // SEQ-3.4: nothing else touches a stream.
        if let Observed::Violation(violation) = observed {
            let key = *self.waiting.next_key();
            self.violation(&key, violation);
        }
    }

    #[cold]
    fn violation(&mut self, key: &StreamKey, violation: Violation) {
        self.flush();
        let (position, time_ns) = (self.position(), self.time_ns);
        let (coverage, sink) = (&mut self.coverage, &mut self.sink);
        let disabled = self.meter.violation(key, time_ns, violation, &mut |closed| {
            coverage.closed(position, closed, &mut |c| sink.closed(c));
        });
        if let Some(context) = disabled {
            sink.disabled(context, key, violation);
        }
        if self.meter.is_disabled(key) {
            sink.violated(key);
        }
    }

    /// Follows what waits for a full batch. Comes before everything that closes epochs.
    #[inline(never)]
    fn flush(&mut self) {
        let position = self.position();
        let (coverage, sink) = (&mut self.coverage, &mut self.sink);
        self.tally.requests += count(self.waiting.len());
        self.meter.observe(&self.waiting, &mut |closed| {
            coverage.closed(position, closed, &mut |c| sink.closed(c));
        });
        self.waiting.clear();
        self.last = None;
    }

    // SEQ-3.8: a packet that fails names no stream for certain, so it is a fault of the capture.
    #[inline(never)]
    fn icrc_allows(&mut self, frame: &[u8], packet: &Packet) -> bool {
        match icrc::check(frame, packet) {
            IcrcVerdict::Good => self.tally.icrc_good += 1,
            IcrcVerdict::Bad { .. } => {
                self.tally.icrc_bad += 1;
                self.gap_between(&packet.addresses, Cause::IcrcMismatch);
                return false;
            }
            _ => self.tally.icrc_not_checked += 1,
        }
        true
    }

    /// Reports of all epochs that have changed.
    fn report(&mut self) {
        self.report_up_to(usize::MAX);
    }
}

impl<S: Sink> Visitor for Pipeline<S> {
    #[inline(always)]
    fn packet(&mut self, record: &Record<'_>) {
        if let Some(drops) = record.drops_before {
            self.drops_before(record.interface, drops);
        }
        match record.time_ns {
            Some(time_ns) => self.time(time_ns),
            None => self.tally.without_time += 1,
        }
        // Nobody sees 2^64 frames.
        self.tally.frames = self.tally.frames.wrapping_add(1);
        let plain = record.link == Ok(LinkType::Ethernet) && !record.damaged && !longer(record);
        if self.short_way && plain {
            if let Some((found, addresses)) = untagged(record.data, record.original_len) {
                return self.untagged(found, addresses);
            }
            let key = self.waiting.next_key();
            let (addresses, namespace) = (&mut key.addresses, &mut key.namespace);
            if let Some(found) = common(record.data, record.original_len, addresses, namespace) {
                return self.identified(found, None);
            }
        }
        // Put together anew: were it lent, it would have to be in memory for every packet.
        let Record { interface, link, time_ns, original_len, data, drops_before, .. } = *record;
        let (outbound, damaged, check) = (record.outbound, record.damaged, record.check);
        self.frame(&Record {
            interface,
            link,
            time_ns,
            original_len,
            data,
            drops_before,
            outbound,
            damaged,
            check,
        });
    }

    fn pause(&mut self) {
        self.flush();
        self.sink.due();
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Section => {
                self.end_counters();
                self.sink.section();
            }
            Item::Interface { counters, name } => {
                self.sink.interface(name.as_deref());
                let number = if counters { self.coverage.add_counter(self.position()) } else { 0 };
                self.counters.push(Counter { number, ..Counter::default() });
            }
            Item::Statistics(statistics) => self.statistics(&statistics),
            Item::Truncated { what } => {
                self.sink.warn(what);
                self.sink.missed(None, Missed::FileTruncated, 1);
                self.gap(Cause::FileTruncated);
            }
        }
    }
}

/// Whether a record cannot be what was on the link, by its own word or by its lengths: a frame has
/// octets, and not fewer than were captured of it. Zeros behind the end of what was written look
/// like that.
pub(crate) fn damaged(record: &Record<'_>) -> bool {
    record.damaged || record.original_len == 0 || longer(record)
}

/// Whether more was captured of a frame than it has.
#[inline(always)]
fn longer(record: &Record<'_>) -> bool {
    record.data.len() > usize::try_from(record.original_len).unwrap_or(usize::MAX)
}

/// A number of arrivals as a count.
fn count(len: usize) -> u64 {
    // At most a batch.
    len as u64
}
