//! Counters of the priority flow control frames in captures: a source that states what it can see
//! of itself, and takes the rest on the word of whoever asks for it.
//!
//! An interface of the capture is one counter by its number. Where sections or files contradict
//! each other about what a number is, where frames are known to be missing, or where a frame may be
//! one of PFC and nobody can say, the interface has no counter, and the reason is said.

use std::collections::BTreeMap;
use std::io::{self, Write};

use observe::pfc::collect::Counter;
use observe::pfc::interval::{Interval, Rate, Sighting};
use observe::pfc::qualify::{Condition, Qualification, Qualified};
use observe::pfc::{Direction, Priority, Reading, Scope};
use wire::frame::{Layer, NotRoce};
use wire::pfc::Pfc;

use super::json::{self, Place};
use crate::config::{printable, shown};
use crate::layout::{counted, mac};
use crate::observation::{MirrorSession, Missed, Tally};

/// Names of interfaces that are told apart, at most; where there are more, there is no counter.
const NAMES_MAX: usize = 65_536;

/// Priority flow control frames that were received, by interface and priority.
// PFC-id.1, PFC-count.3: one frame can count under several priorities.
#[derive(Debug)]
pub(super) struct PfcCounts {
    /// `ingressPhysicalInterface` of the capture's interface 0; the others follow.
    first: u32,
    layer: Layer,
    interfaces: BTreeMap<u32, Captured>,
    /// Which interface first had a name, and in which section.
    names: BTreeMap<Box<[u8]>, Named>,
    names_full: bool,
    section: u64,
    /// Interfaces that the section has described.
    described: u32,
    /// What concerns every interface.
    missed: BTreeMap<Missed, u64>,
}

/// One interface of the capture, by its number.
#[derive(Debug, Default)]
struct Captured {
    received: [u64; 8],
    frames: u64,
    missed: BTreeMap<Missed, u64>,
    name: Option<Box<[u8]>>,
    /// Why its number is of several interfaces, or one interface has several numbers.
    contradicted: Option<String>,
    /// The first two addresses that frames came from, but for zero.
    sources: [Option<[u8; 6]>; 2],
    /// The first two mirror sessions that came in.
    sessions: [Option<MirrorSession>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Named {
    number: u32,
    section: u64,
}

/// What stands behind the counters of a capture.
pub(super) fn source() -> Qualified {
    use Condition as C;
    // What the decoder and this counter do. PFC-id.3, PFC-count.3, PFC-count.4, PFC-rec.2
    let stated =
        [C::VectorIndex, C::EachSetBit, C::OnlyValid, C::TimeOfReading, C::StartsAtZero, C::Wide];
    // What `--pfc` says of the captures, as its help has it, and that what is in them came in.
    // PFC-id.1, PFC-id.2, PFC-count.1, PFC-count.2
    let attested = [C::PhysicalInterface, C::BeforeProcessing, C::EveryFrame];
    let nothing = Qualification::new(Direction::Received);
    let stated = stated.into_iter().fold(nothing, Qualification::stated);
    let said = attested.into_iter().fold(stated, Qualification::attested);
    said.check().expect("every condition of received frames is among these")
}

impl Captured {
    /// Why there is no reading of its counters.
    // PFC-op.1, PFC-count.2: what is not known to be complete is no reading.
    fn why_not(&self) -> Vec<String> {
        let mut why: Vec<_> = self.contradicted.iter().cloned().collect();
        if let [Some(one), Some(other)] = &self.sessions {
            why.push(format!(
                "{} and {} came in, which mirror several ports",
                session(one),
                session(other)
            ));
        }
        why.extend(self.missed.iter().map(|(missed, count)| counted(*count, missed.text())));
        why
    }

    fn counts(&self) -> bool {
        self.frames > 0 && self.why_not().is_empty()
    }
}

impl PfcCounts {
    pub(super) fn new(first: u32, layer: Layer) -> Self {
        Self {
            first,
            layer,
            interfaces: BTreeMap::new(),
            names: BTreeMap::new(),
            names_full: false,
            section: 0,
            described: 0,
            missed: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, interface: u32, pfc: &Pfc) {
        let captured = self.interfaces.entry(interface).or_default();
        captured.frames += 1;
        for priority in pfc.priorities() {
            captured.received[usize::from(priority)] += 1;
        }
        if pfc.source != [0; 6] {
            first_two(&mut captured.sources, pfc.source);
        }
    }

    /// Frames can be missing, of one interface or of every one.
    pub(super) fn missed(&mut self, interface: Option<u32>, missed: Missed, count: u64) {
        let all = match interface {
            Some(interface) => &mut self.interfaces.entry(interface).or_default().missed,
            None => &mut self.missed,
        };
        let sum = all.entry(missed).or_default();
        *sum = sum.saturating_add(count);
    }

    /// A frame of a mirror session came in.
    pub(super) fn mirrored(&mut self, interface: u32, session: &MirrorSession) {
        first_two(&mut self.interfaces.entry(interface).or_default().sessions, *session);
    }

    /// Numbers of interfaces begin anew.
    pub(super) fn section(&mut self) {
        self.section += 1;
        self.described = 0;
    }

    /// The next interface of the section. Two sections that contradict each other about a number or
    /// a name show that a number is no counter.
    // PFC-id.1
    pub(super) fn interface(&mut self, name: Option<&[u8]>) {
        let (number, section) = (self.described, self.section);
        self.described = number.saturating_add(1);
        let Some(name) = name.filter(|name| !name.is_empty()) else { return };
        let captured = self.interfaces.entry(number).or_default();
        match &captured.name {
            Some(known) if **known == *name => return,
            Some(known) => {
                let (one, other) = (quoted(known), quoted(name));
                captured.contradicted.get_or_insert_with(|| {
                    format!(
                        "number {number} is {one} in one section or file and {other} in another"
                    )
                });
            }
            None => captured.name = Some(name.into()),
        }
        if let Some(named) = self.names.get(name).copied() {
            // Twice in one section, a name is of two hosts, or what the operator attests.
            if named.number != number && named.section != section {
                let why = format!(
                    "{} is number {} in one section or file and number {number} in another",
                    quoted(name),
                    named.number
                );
                for number in [number, named.number] {
                    let captured = self.interfaces.entry(number).or_default();
                    captured.contradicted.get_or_insert_with(|| why.clone());
                }
            }
        } else if self.names.len() < NAMES_MAX {
            self.names.insert(name.into(), Named { number, section });
        } else {
            self.names_full = true;
        }
    }

    /// Why there is no reading at all, if there is none.
    // PFC-op.1, PFC-count.2: what is not known to be complete is no reading.
    pub(super) fn why_none(&self, tally: &Tally) -> Option<String> {
        if !matches!(self.layer, Layer::Outer | Layer::Erspan) {
            return Some(format!(
                "observed is what is inside {}, and PFC never crosses a link: a frame in there came \
                 in at no interface of the capture",
                self.layer.name()
            ));
        }
        if self.interfaces.values().all(|captured| captured.frames == 0) {
            return Some(self.none_seen(tally));
        }
        if self.names_full {
            return Some(format!("the captures name more than {NAMES_MAX} interfaces"));
        }
        if self.missed.is_empty() {
            return None;
        }
        Some(list(self.missed.iter().map(|(missed, count)| counted(*count, missed.text()))))
    }

    /// Why nothing was counted.
    fn none_seen(&self, tally: &Tally) -> String {
        let of = |reason: NotRoce| tally.not_roce[reason.index()];
        let refused = [NotRoce::PfcElsewhere, NotRoce::PfcTagged, NotRoce::PfcTooShort];
        let refused: u64 = refused.into_iter().map(of).sum();
        let unknown = of(NotRoce::PfcNoDestination) + of(NotRoce::MacControlCut);
        let mut why = vec![
            (tally.pfc_outbound, "[was|were] sent, not received"),
            (
                refused,
                "with the opcode of PFC [is no PFC frame|are no PFC frames], see the summary",
            ),
            (tally.damaged, "[is|are] damaged"),
        ];
        why.retain(|(count, _)| *count > 0);
        let mut why: Vec<_> =
            why.iter().map(|(n, what)| counted(*n, &format!("frame[|s] {what}"))).collect();
        let mut all = self.missed.clone();
        for (missed, count) in self.interfaces.values().flat_map(|captured| &captured.missed) {
            *all.entry(*missed).or_default() += count;
        }
        all.remove(&Missed::Damaged);
        why.extend(all.iter().map(|(missed, count)| counted(*count, missed.text())));
        let consumed = "most NICs consume them before a capture on their host";
        if why.is_empty() {
            format!("no PFC frame was seen, and {consumed}")
        } else if tally.pfc_outbound + refused + unknown > 0 {
            format!("no PFC frame that counts was seen: {}", list(why))
        } else {
            format!("no PFC frame was seen: {}; and {consumed}", list(why))
        }
    }

    /// Interfaces that have no reading though frames were counted, with the reason.
    pub(super) fn refused(&self) -> Vec<String> {
        let counted = self.interfaces.iter().filter(|(_, captured)| captured.frames > 0);
        let why = counted.map(|(number, captured)| (number, captured, captured.why_not()));
        why.filter(|(_, _, why)| !why.is_empty())
            .map(|(number, captured, why)| {
                format!(
                    "no PFC counter of {} is reported: {}",
                    label(*number, captured.name.as_deref()),
                    list(why)
                )
            })
            .collect()
    }

    /// What speaks against the word that what was captured came in over one link.
    // PFC-id.1, PFC-count.1
    pub(super) fn doubts(&self) -> Vec<String> {
        let counted = self.interfaces.iter().filter(|(_, captured)| captured.counts());
        counted
            .filter_map(|(number, captured)| {
                let [Some(one), Some(other)] = captured.sources else { return None };
                Some(format!(
                    "PFC frames of {} came from {} and from {}, and the other end of a link has one \
                     address: frames that were sent, or those of several links, may be counted as \
                     received",
                    label(*number, captured.name.as_deref()),
                    mac(one),
                    mac(other)
                ))
            })
            .collect()
    }

    /// A reading of every counter.
    // PFC-rec.2: read at the end of the capture, by the capture's clock.
    pub(super) fn readings(&self, place: Place, time_ms: u64) -> Vec<Reading> {
        let mut readings = Vec::with_capacity(self.interfaces.len() * 8);
        for (number, captured) in self.interfaces.iter().filter(|(_, captured)| captured.counts()) {
            for (priority, total) in Priority::ALL.into_iter().zip(captured.received) {
                let scope = Scope {
                    domain: place.domain,
                    point: place.point,
                    interface: self.first.saturating_add(*number),
                    direction: Direction::Received,
                    priority,
                };
                readings.push(Reading { scope, time_ms, total });
            }
        }
        readings
    }

    pub(super) fn table(&self, out: &mut impl Write) -> io::Result<()> {
        for (number, captured) in self.interfaces.iter().filter(|(_, captured)| captured.counts()) {
            let mirrored = if self.layer == Layer::Erspan { "the port mirrored to " } else { "" };
            writeln!(
                out,
                "\nPFC frames that {mirrored}{} of the capture received, in records \
                 ingressPhysicalInterface {},\nby priority (one frame can count under several):",
                label(*number, captured.name.as_deref()),
                self.first.saturating_add(*number)
            )?;
            for (priority, count) in captured.received.iter().enumerate() {
                writeln!(out, "{count:>12} priority {priority}")?;
            }
        }
        Ok(())
    }
}

/// Keeps the first two that differ.
fn first_two<T: Copy + PartialEq>(two: &mut [Option<T>; 2], new: T) {
    match two {
        [Some(one), _] if *one == new => {}
        [Some(_), other] => _ = other.get_or_insert(new),
        [one, _] => *one = Some(new),
    }
}

fn label(number: u32, name: Option<&[u8]>) -> String {
    match name {
        Some(name) => format!("interface {number} ({})", quoted(name)),
        None => format!("interface {number}"),
    }
}

fn quoted(name: &[u8]) -> String {
    format!("\"{}\"", printable(&String::from_utf8_lossy(name)))
}

fn session((addresses, kind, number): &MirrorSession) -> String {
    let from = shown(addresses.family, &addresses.source);
    format!("{} session {number} from {from}", kind.name())
}

fn list(why: impl IntoIterator<Item = String>) -> String {
    why.into_iter().collect::<Vec<_>>().join("; ")
}

/// Appends a reading as one line.
pub(super) fn json(out: &mut Vec<u8>, reading: &Reading) {
    members(out, reading);
    out.extend_from_slice(b"}\n");
}

/// Appends an object with the members of a reading, and leaves it open for more.
// PFC-id.1, PFC-id.3
pub(crate) fn members(out: &mut Vec<u8>, reading: &Reading) {
    let Reading { scope, time_ms, total } = reading;
    let interface = match scope.direction {
        Direction::Received => "ingressPhysicalInterface",
        Direction::Transmitted => "egressPhysicalInterface",
    };
    out.extend_from_slice(b"{\"record\":\"pfc\"");
    json::number(out, "observationDomainId", u64::from(scope.domain));
    json::number(out, "observationPointId", scope.point);
    json::number(out, interface, u64::from(scope.interface));
    json::number(out, "pfcPriority", u64::from(scope.priority.get()));
    json::number(out, "observationTimeMilliseconds", *time_ms);
    json::number(out, "pfcControlFrameTotalCount", *total);
}

/// What a collector says of a counter beside its latest reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged<'a> {
    /// Its Transport Session, where it is known.
    pub(crate) session: Option<u64>,
    /// Its number in the session.
    pub(crate) number: u64,
    /// What is known of it.
    pub(crate) counter: &'a Counter,
}

/// Appends an object with the members of a counter's latest reading and what is known of it, and
/// leaves it open for more.
// PFC-sem.2
pub(crate) fn counter(out: &mut Vec<u8>, judged: Judged<'_>) {
    let Judged { session, number, counter } = judged;
    members(out, &counter.latest.reading);
    match counter.latest.known.instance {
        Some(instance) => json::number(out, "pfcCounterInstanceId", instance),
        None => out.extend_from_slice(b",\"pfcCounterInstanceId\":null"),
    }
    let further: String =
        counter.further.octets().iter().map(|octet| format!("{octet:02x}")).collect();
    json::text(out, "furtherScope", &further);
    interval(out, counter.earlier.as_ref(), counter.interval());
    json::number(out, "readings", counter.readings);
    json::number(out, "counter", number);
    match session {
        Some(session) => json::number(out, "session", session),
        None => out.extend_from_slice(b",\"session\":null"),
    }
}

/// Appends what was counted between a reading and the next one, and how fast: a number or the
/// reason why there is none.
// PFC-sem.2, PFC-sem.3
pub(crate) fn interval(out: &mut Vec<u8>, earlier: Option<&Sighting>, interval: Interval) {
    out.extend_from_slice(b",\"interval\":{\"state\":");
    match interval {
        Interval::Exact(frames) => {
            out.extend_from_slice(b"\"exact\"");
            json::number(out, "value", frames.count());
        }
        Interval::Unknown(reason) => {
            out.extend_from_slice(b"\"unknown\"");
            json::text(out, "reason", reason.words());
        }
    }
    match earlier {
        Some(earlier) => json::number(out, "sinceMilliseconds", earlier.reading.time_ms),
        None => out.extend_from_slice(b",\"sinceMilliseconds\":null"),
    }
    out.extend_from_slice(b"},\"rate\":{\"state\":");
    match interval.rate() {
        Rate::Average(rate) => {
            out.extend_from_slice(b"\"average\"");
            for (name, value) in [
                ("framesPerSecond", Some(rate.get())),
                ("framesPerSecondMin", Some(rate.least())),
                ("framesPerSecondMax", rate.most()),
            ] {
                // A quotient of whole numbers, of which the lower one is not 0: it has a form.
                let value = serde_json::Value::from(value);
                out.extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
            }
        }
        Rate::Unknown(reason) => {
            out.extend_from_slice(b"\"unknown\"");
            json::text(out, "reason", reason.words());
        }
    }
    out.push(b'}');
}
