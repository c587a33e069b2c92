//! Sources in a few words.

use observe::pfc::Priority;
use observe::queue::event::{Event, Mapping};
use observe::queue::meter::{Meter, Refused, Settings, Subject, Told};
use observe::queue::row::{Known, Measurement, Row};
use observe::queue::{EpochId, Priorities, Reason};

/// The n-th epoch id that is made, from 0.
pub fn epoch(n: u32) -> EpochId {
    let mut octets = [0; 16];
    octets[..4].copy_from_slice(&n.to_be_bytes());
    EpochId::random(octets)
}

pub fn priority(n: u8) -> Priority {
    Priority::new(n).unwrap()
}

pub fn priorities(all: &[u8]) -> Priorities {
    Priorities::new(all.iter().map(|n| priority(*n))).unwrap()
}

pub fn map(all: &[u8], max_error_ns: u64) -> Event {
    Event::Map(Mapping { priorities: priorities(all), method: "head".into(), max_error_ns })
}

pub fn backlog(present: bool) -> Event {
    Event::Backlog { present }
}

pub fn gate(n: u8, closed: bool) -> Event {
    Event::Gate { priority: priority(n), closed }
}

pub fn candidate(n: u8) -> Event {
    Event::Candidate { priority: priority(n) }
}

pub fn sample(backlog: bool, gated: bool) -> Event {
    Event::Sample { backlog, gated }
}

/// A meter of one source, which numbers its events.
pub struct Source {
    pub meter: Meter<Box<dyn FnMut() -> EpochId>>,
    pub seq: u64,
}

impl Source {
    /// Intervals of so many nanoseconds.
    pub fn new(interval_ns: u64) -> Self {
        Self::with(Settings { interval_ns, ..Settings::default() })
    }

    pub fn with(settings: Settings) -> Self {
        let mut next = 0;
        let fresh = move || {
            next += 1;
            epoch(next - 1)
        };
        Self { meter: Meter::new(settings, Box::new(fresh)), seq: 0 }
    }

    /// Of queue `q3`.
    pub fn tell(&mut self, t: u64, event: Event) -> Vec<Row> {
        self.tell_of("q3", t, event)
    }

    pub fn tell_of(&mut self, queue: &str, t: u64, event: Event) -> Vec<Row> {
        self.try_tell(queue, t, event).unwrap();
        self.rows()
    }

    pub fn try_tell(&mut self, queue: &str, t: u64, event: Event) -> Result<(), Refused> {
        self.seq += 1;
        let subject = Subject::Queue { interface: "Ethernet1/1", queue };
        self.meter.told(Told { seq: self.seq, t, subject, event })
    }

    pub fn restart(&mut self, seq: u64, t: u64) -> Vec<Row> {
        self.seq = seq;
        let told = Told { seq, t, subject: Subject::All, event: Event::Restart };
        self.meter.told(told).unwrap();
        self.rows()
    }

    pub fn time(&mut self, t: u64) -> Vec<Row> {
        self.meter.time(t);
        self.rows()
    }

    pub fn finish(&mut self) -> Vec<Row> {
        self.meter.finish();
        self.rows()
    }

    fn rows(&mut self) -> Vec<Row> {
        std::iter::from_fn(|| self.meter.row()).collect()
    }
}

/// The known pair and its error: I, Q, E.
pub fn known(row: &Row) -> (u64, u64, u64) {
    let Known { gated_ns, backlog_ns, error_ns, .. } = measured(row);
    (gated_ns, backlog_ns, error_ns)
}

pub fn measured(row: &Row) -> Known {
    match row.measurement {
        Measurement::Known(known) => known,
        Measurement::Unknown(_) => panic!("{row:?}"),
    }
}

pub fn reason(row: &Row) -> Reason {
    match row.measurement {
        Measurement::Known(_) => panic!("{row:?}"),
        Measurement::Unknown(reason) => reason,
    }
}

/// Epoch, number, start and duration.
pub fn identity(row: &Row) -> (EpochId, u64, u64, u64) {
    (row.epoch, row.interval, row.start_ns, row.duration_ns)
}
