//! Counters of the priority flow control frames in captures: a source that states what it can see
//! of itself, and takes the rest on the word of whoever asks for it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use observe::pfc::collect::Counter;
use observe::pfc::interval::{Interval, Rate, Sighting};
use observe::pfc::qualify::{Condition, Qualification, Qualified};
use observe::pfc::{Direction, Priority, Reading, Scope};
use wire::pfc::Pfc;

use super::json::{self, Place};

/// Priority flow control frames that were received, by interface and priority.
// PFC-id.1, PFC-count.3: one frame can count under several priorities.
#[derive(Debug)]
pub(super) struct PfcCounts {
    /// `ingressPhysicalInterface` of the capture's interface 0; the others follow.
    first: u32,
    received: BTreeMap<u32, [u64; 8]>,
    interrupted: bool,
}

/// What stands behind the counters of a capture.
pub(super) fn source() -> Qualified {
    use Condition as C;
    // What the decoder and this counter do. PFC-id.3, PFC-count.3, PFC-count.4, PFC-rec.2
    let stated =
        [C::VectorIndex, C::EachSetBit, C::OnlyValid, C::TimeOfReading, C::StartsAtZero, C::Wide];
    // What `--pfc` says of the captures, as its help has it. PFC-id.2, PFC-count.1, PFC-count.2
    let attested = [C::PhysicalInterface, C::BeforeProcessing, C::EveryFrame];
    let nothing = Qualification::new(Direction::Received);
    let stated = stated.into_iter().fold(nothing, Qualification::stated);
    let said = attested.into_iter().fold(stated, Qualification::attested);
    said.check().expect("every condition of received frames is among these")
}

impl PfcCounts {
    pub(super) fn new(first: u32) -> Self {
        Self { first, received: BTreeMap::new(), interrupted: false }
    }

    pub(super) fn add(&mut self, interface: u32, pfc: &Pfc) {
        let counts = self.received.entry(self.first.saturating_add(interface)).or_default();
        for priority in pfc.priorities() {
            counts[usize::from(priority)] += 1;
        }
    }

    /// The capture missed frames.
    pub(super) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Why there is no reading, if there is none.
    // PFC-op.1, PFC-count.2: what is not known to be complete is no reading.
    pub(super) fn why_not(&self) -> Option<&'static str> {
        if self.received.is_empty() {
            Some("no PFC frame was seen, and most NICs consume them before a capture on their host")
        } else if self.interrupted {
            Some("nobody knows that the capture holds every frame once, PFC frames among them")
        } else {
            None
        }
    }

    /// A reading of every counter.
    // PFC-rec.2: read at the end of the capture, by the capture's clock.
    pub(super) fn readings(&self, place: Place, time_ms: u64) -> Vec<Reading> {
        let mut readings = Vec::with_capacity(self.received.len() * 8);
        for (interface, counts) in &self.received {
            for (priority, total) in Priority::ALL.into_iter().zip(counts) {
                let scope = Scope {
                    domain: place.domain,
                    point: place.point,
                    interface: *interface,
                    direction: Direction::Received,
                    priority,
                };
                readings.push(Reading { scope, time_ms, total: *total });
            }
        }
        readings
    }

    pub(super) fn table(&self, out: &mut impl Write) -> io::Result<()> {
        for (interface, counts) in &self.received {
            let captured = interface.saturating_sub(self.first);
            writeln!(
                out,
                "\nPFC frames that interface {captured} of the capture received, in records \
                 ingressPhysicalInterface {interface},\nby priority (one frame can count under \
                 several):"
            )?;
            for (priority, count) in counts.iter().enumerate() {
                writeln!(out, "{count:>12} priority {priority}")?;
            }
        }
        Ok(())
    }
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
        Rate::Exact(rate) => {
            out.extend_from_slice(b"\"exact\",\"framesPerSecond\":");
            // A quotient of whole numbers, of which the lower one is not 0: it has a form.
            out.extend_from_slice(serde_json::Value::from(rate.get()).to_string().as_bytes());
        }
        Rate::Unknown(reason) => {
            out.extend_from_slice(b"\"unknown\"");
            json::text(out, "reason", reason.words());
        }
    }
    out.push(b'}');
}
