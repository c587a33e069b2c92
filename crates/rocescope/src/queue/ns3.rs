//! `queue convert --ns3`: traces of simulated RDMA networks, the `mix.tr` that the ns-3 simulation
//! of HPCC writes, to events of queues. For research: what stands in a trace is what its simulator
//! says of itself.
//!
//! # What a trace has
//!
//! A header of the simulation's settings: the number of ports, 11 octets for each, and a window.
//! Then records of 56 octets, as a little-endian machine with 64 bits lays them out. They do not say
//! so of themselves; what cannot be one is refused.
//!
//! # What becomes of it
//!
//! - A switch tells of a packet before it is put into its queue, and after it is taken out of it. So
//!   behind a record of the first kind traffic waits, and behind one of the second it does where the
//!   queue still has octets.
//! - The gate of a queue is closed and opened by each PFC packet that its port receives: the
//!   simulator knows no timer, so a pause holds until it is taken back. That is its gate, and no
//!   requested duration is added up. It was open when the simulation began, and a trace begins with
//!   it.
//! - A queue's number is its priority here: the simulator has nothing else.
//!
//! # What it refuses to know
//!
//! Of hosts there is no record of what waits: their queues are told with their gates alone, and
//! become unknown. Queue 0, which carries acknowledgements and PFC itself, is beyond every gate and
//! is left out. Where a port drops packets its link went down, which sets gates that nothing tells
//! of: events of its queues are missing from there on.
// QUE-def.4, QUE-err.3

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read, Write};

use super::QueueError;

/// Octets of a record.
const RECORD_OCTETS: usize = 56;
/// Octets of what the header has of a port.
const PORT_OCTETS: u64 = 11;
/// Ports of a simulation, at most.
const PORTS_MAX: u32 = 1 << 20;
/// Queues of a port in this simulator; 0 is beyond every gate.
const QUEUES: u8 = 8;
/// The protocol number that the simulator gives PFC.
const PFC: u8 = 0xfe;

/// What was converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Records of the trace.
    pub records: u64,
    /// Events that were written.
    pub events: u64,
    /// Queues that they are of.
    pub queues: u64,
    /// Those among them whose traffic is not in the trace: of hosts.
    pub without_backlog: u64,
    /// Drops of ports, from which on their gates are not known.
    pub drops: u64,
}

/// Writes the events of a trace, a line each.
///
/// # Errors
/// At the first record that is none, with its number in the place of a line; those before it are
/// written. `queues_max` is exceeded, or nothing can be written.
pub fn convert(
    mut input: impl BufRead,
    queues_max: usize,
    out: &mut impl Write,
) -> Result<Converted, QueueError> {
    header(&mut input).map_err(|problem| QueueError::Event(0, problem))?;
    let mut writer = Writer {
        out,
        queues_max,
        queues: BTreeSet::new(),
        closed: BTreeMap::new(),
        seq: 0,
        counts: Converted::default(),
    };
    let mut last = 0;
    while let Some(octets) = record(&mut input)? {
        writer.counts.records += 1;
        let number = writer.counts.records;
        let wrong = |problem: String| QueueError::Event(number, problem);
        let record = Record::read(&octets).map_err(wrong)?;
        if record.time < last {
            return Err(wrong(format!("time {} after {last}, expected no less", record.time)));
        }
        last = record.time;
        writer.record(&record, number)?;
    }
    writer.out.flush().map_err(QueueError::Output)?;
    Ok(writer.counts)
}

fn header(input: &mut impl BufRead) -> Result<(), String> {
    let mut ports = [0; 4];
    let cut = |error: io::Error| format!("the header of a trace: {error}");
    input.read_exact(&mut ports).map_err(cut)?;
    let ports = u32::from_le_bytes(ports);
    if ports == 0 || ports > PORTS_MAX {
        return Err(format!("{ports} ports in the header of a trace, expected 1 to {PORTS_MAX}"));
    }
    // Their speeds, and the window: nothing here has to do with either.
    let rest = u64::from(ports) * PORT_OCTETS + 4;
    let skipped = io::copy(&mut input.take(rest), &mut io::sink()).map_err(cut)?;
    if skipped < rest {
        return Err(format!(
            "a header of {skipped} octets behind the number of ports, expected {rest}"
        ));
    }
    Ok(())
}

/// The next record; none at the end.
fn record(input: &mut impl BufRead) -> Result<Option<[u8; RECORD_OCTETS]>, QueueError> {
    if input.fill_buf().map_err(QueueError::Input)?.is_empty() {
        return Ok(None);
    }
    let mut octets = [0; RECORD_OCTETS];
    input.read_exact(&mut octets).map_err(QueueError::Input)?;
    Ok(Some(octets))
}

/// What of a record is looked at.
#[derive(Clone, Copy, Debug)]
struct Record {
    time: u64,
    node: u16,
    port: u8,
    queue: u8,
    octets: u32,
    protocol: u8,
    kind: Kind,
    host: bool,
    /// Of PFC: the time that is asked for, and the queue.
    pause: (u32, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Received,
    In,
    Out,
    Dropped,
}

impl Record {
    fn read(octets: &[u8; RECORD_OCTETS]) -> Result<Self, String> {
        let four = |at: usize| {
            u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
        };
        let kind = match octets[27] {
            0 => Kind::Received,
            1 => Kind::In,
            2 => Kind::Out,
            3 => Kind::Dropped,
            other => return Err(format!("event {other} at octet 27, expected 0 to 3")),
        };
        let host = match octets[29] {
            0 => true,
            1 => false,
            other => return Err(format!("node type {other} at octet 29, expected 0 or 1")),
        };
        let record = Self {
            time: u64::from(four(4)) << 32 | u64::from(four(0)),
            node: u16::from_le_bytes([octets[8], octets[9]]),
            port: octets[10],
            queue: octets[11],
            octets: four(12),
            protocol: octets[26],
            kind,
            host,
            pause: (four(32), octets[40]),
        };
        let queue = if record.is_pause() { record.pause.1 } else { record.queue };
        if queue >= QUEUES {
            return Err(format!("queue {queue}, expected 0 to {}", QUEUES - 1));
        }
        Ok(record)
    }

    /// A PFC packet that came in.
    fn is_pause(&self) -> bool {
        self.kind == Kind::Received && self.protocol == PFC
    }
}

type Port = (u16, u8);

struct Writer<'a, W> {
    out: &'a mut W,
    queues_max: usize,
    /// Those that were mapped.
    queues: BTreeSet<(Port, u8)>,
    /// A bit for each queue of a port whose gate is closed.
    closed: BTreeMap<Port, u8>,
    seq: u64,
    counts: Converted,
}

impl<W: Write> Writer<'_, W> {
    fn record(&mut self, record: &Record, number: u64) -> Result<(), QueueError> {
        let port = (record.node, record.port);
        match record.kind {
            Kind::Received if record.is_pause() => {
                let (time, queue) = record.pause;
                let closed = time > 0;
                // The gate before this record, for who sees the queue for the first time.
                self.know(record, port, queue, number)?;
                let bits = self.closed.entry(port).or_default();
                let bit = 1 << queue;
                *bits = if closed { *bits | bit } else { *bits & !bit };
                self.gate(record.time, port, queue, closed)
            }
            Kind::Received => Ok(()),
            Kind::In | Kind::Out => {
                self.know(record, port, record.queue, number)?;
                // A host's records are of what it sends, not of what waits.
                if record.host {
                    return Ok(());
                }
                let present = record.kind == Kind::In || record.octets > 0;
                let rest = format!("\"event\":\"backlog\",\"present\":{present}");
                self.line(record.time, port, record.queue, &rest)
            }
            Kind::Dropped => {
                self.counts.drops += 1;
                let all: Vec<u8> = self
                    .queues
                    .range((port, 0)..=(port, u8::MAX))
                    .map(|(_, queue)| *queue)
                    .collect();
                for queue in all {
                    self.line(record.time, port, queue, "\"event\":\"lost\"")?;
                }
                Ok(())
            }
        }
    }

    /// Maps a queue that is seen for the first time, and tells its gate as it was until then.
    fn know(
        &mut self,
        record: &Record,
        port: Port,
        queue: u8,
        number: u64,
    ) -> Result<(), QueueError> {
        if queue == 0 || !self.queues.insert((port, queue)) {
            return Ok(());
        }
        if self.queues.len() > self.queues_max {
            let problem =
                format!("one more than the {} queues that there is room for", self.queues_max);
            return Err(QueueError::Event(number, problem));
        }
        self.counts.queues += 1;
        self.counts.without_backlog += u64::from(record.host);
        let rest = format!(
            "\"event\":\"map\",\"priorities\":[{queue}],\"method\":\"simulated, one queue for a \
             priority\",\"maxError\":0"
        );
        self.line(record.time, port, queue, &rest)?;
        let closed = self.closed.get(&port).is_some_and(|bits| bits & (1 << queue) != 0);
        // Traffic of a switch's queue before its first record would have been told.
        if !record.host {
            let rest = "\"event\":\"backlog\",\"present\":false";
            self.line(record.time, port, queue, rest)?;
        }
        self.gate(record.time, port, queue, closed)
    }

    fn gate(&mut self, t: u64, port: Port, queue: u8, closed: bool) -> Result<(), QueueError> {
        let rest = format!("\"event\":\"gate\",\"priority\":{queue},\"closed\":{closed}");
        self.line(t, port, queue, &rest)
    }

    fn line(&mut self, t: u64, port: Port, queue: u8, rest: &str) -> Result<(), QueueError> {
        if queue == 0 {
            return Ok(());
        }
        self.seq += 1;
        self.counts.events += 1;
        let (seq, (node, port)) = (self.seq, port);
        writeln!(
            self.out,
            "{{\"seq\":{seq},\"t\":{t},\"interface\":\"node{node}/{port}\",\"queue\":\"{queue}\",\
             {rest}}}"
        )
        .map_err(QueueError::Output)
    }
}
