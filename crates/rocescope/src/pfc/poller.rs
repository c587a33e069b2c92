//! From what a source says at a poll to readings: widened, named and dated (PFC draft, on counter
//! semantics and export).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use observe::pfc::instance::{InstanceId, Naming};
use observe::pfc::interval::Tick;
use observe::pfc::qualify::Qualified;
use observe::pfc::widen::{Begins, NoReading, Promise, Raw, Widened, Widening};
use observe::pfc::{Direction, Priority, Reading, Scope};

use super::scopes::{Holder, Scopes, Spot};
use super::{Absent, Clock, Moment, PortRead, Source, Value};

/// A reading, and which run of which counter it is of, where that is known and asked for.
pub type Named = (Reading, Option<InstanceId>);

/// The latest readings of all counters after a poll, by direction ([`Direction::ALL`]) and in the
/// order of their scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The number of the poll, from 1 on.
    pub poll: u64,
    /// Readings of each direction, each with the number of the poll that gave it.
    pub readings: [Vec<(u64, Named)>; 2],
}

impl Batch {
    /// Readings of a direction that a later poll than this gave.
    // PFC-op.1: a counter without a new reading is not there.
    pub fn since(&self, side: usize, poll: u64) -> impl Iterator<Item = Named> {
        let all = self.readings[side].iter();
        all.filter(move |(of, _)| *of > poll).map(|(_, named)| *named)
    }
}

/// What polling has counted, for metrics.
// PFC-op.1
#[derive(Debug, Default)]
pub struct PollCounts {
    /// Polls begun.
    pub polls: AtomicU64,
    /// Polls that gave nothing at all.
    pub failures: AtomicU64,
    /// Polls that were due while another one was under way.
    pub missed: AtomicU64,
    /// Readings taken.
    pub readings: AtomicU64,
    /// Counters without a reading at a poll, by the reason, in the order of [`Absent::ALL`].
    pub absent: [AtomicU64; Absent::ALL.len()],
    /// Counters whose total began anew, their first reading not among them.
    pub begun_anew: AtomicU64,
    /// Ports at the last poll.
    pub ports: AtomicU64,
}

/// Why each counter of a port had no reading at a poll, by direction ([`Direction::ALL`]) and
/// priority; none where it had one, or is not exported.
pub type Lacks = [[Option<Absent>; 8]; 2];

/// Where readings belong, and what holds for their counters.
#[derive(Clone, Debug)]
pub struct Place {
    /// The name of the source, such as `pfc.source[0]`.
    pub source: Arc<str>,
    /// Which ports of all sources have which numbers.
    pub scopes: Arc<Scopes>,
    /// `observationDomainId`.
    pub domain: u32,
    /// `observationPointId`.
    pub point: u64,
    /// Directions that are exported, in the order of [`Direction::ALL`].
    pub qualified: [Option<Qualified>; 2],
    /// What the counters promise.
    pub promise: Promise,
    /// Readings are named.
    pub identify: bool,
    /// Ports that are followed at most.
    pub ports_max: usize,
}

/// Polls a source and follows its counters.
pub struct Poller<S> {
    source: S,
    place: Place,
    ports: BTreeMap<Arc<str>, Port>,
    lacks: Vec<(Arc<str>, Lacks)>,
    polls: u64,
    counts: Arc<PollCounts>,
    fresh: Box<dyn FnMut() -> InstanceId + Send>,
}

struct Port {
    interface: u32,
    counters: [[Counter; 8]; 2],
    latest: [[Option<(u64, Named)>; 8]; 2],
}

impl<S: Source> Poller<S> {
    /// Nothing is polled yet. `fresh` gives names that nothing had before, not even before a
    /// restart.
    pub fn new(
        source: S,
        place: Place,
        counts: Arc<PollCounts>,
        fresh: impl FnMut() -> InstanceId + Send + 'static,
    ) -> Self {
        let (ports, lacks, fresh) = (BTreeMap::new(), Vec::new(), Box::new(fresh));
        Self { source, place, ports, lacks, polls: 0, counts, fresh }
    }

    /// Polls once.
    ///
    /// # Errors
    /// In a line: why nothing could be read. Counters are as before.
    // PFC-op.1: what was not read is not there, neither as zero nor as it was.
    pub fn poll(&mut self, clock: &dyn Clock) -> Result<Batch, String> {
        self.counts.polls.fetch_add(1, Relaxed);
        let polled = self.source.poll(clock).inspect_err(|_| {
            self.counts.failures.fetch_add(1, Relaxed);
        })?;
        self.counts.ports.store(u64::try_from(polled.len()).unwrap_or(u64::MAX), Relaxed);
        self.polls += 1;
        self.lacks.clear();
        let there: BTreeSet<&Arc<str>> = polled.iter().map(|(name, _)| name).collect();
        let gone = self.ports.keys().filter(|name| !there.contains(name)).cloned();
        for name in gone.collect::<Vec<_>>() {
            self.forget(&name);
        }
        // Every port has its number before any is read: a number may be another's as well.
        let rooms: Vec<bool> = polled
            .iter()
            .map(|(name, read)| read.as_ref().is_ok_and(|read| self.admit(name, read.interface)))
            .collect();
        for ((name, read), room) in polled.into_iter().zip(rooms) {
            let lacks = match read {
                Ok(_) if !room => self.all_lack(Absent::NoRoom),
                Ok(read) => self.port(&name, &read),
                Err(absent) => self.all_lack(absent),
            };
            for absent in lacks.iter().flatten().flatten() {
                self.counts.absent[*absent as usize].fetch_add(1, Relaxed);
            }
            self.lacks.push((name, lacks));
        }
        Ok(self.batch())
    }

    /// Every port of the last poll that succeeded, and which of its counters had no reading.
    pub fn lacks(&self) -> &[(Arc<str>, Lacks)] {
        &self.lacks
    }

    fn batch(&self) -> Batch {
        let mut batch = Batch { poll: self.polls, ..Batch::default() };
        for port in self.ports.values() {
            for (readings, latest) in batch.readings.iter_mut().zip(&port.latest) {
                readings.extend(latest.iter().flatten());
            }
        }
        for readings in &mut batch.readings {
            readings.sort_unstable_by_key(|(_, (reading, _))| reading.scope);
        }
        batch
    }

    /// No counter of a port that is exported has a reading.
    fn all_lack(&self, absent: Absent) -> Lacks {
        std::array::from_fn(|side| [self.place.qualified[side].map(|_| absent); 8])
    }

    fn spots(&self, interface: u32) -> [Option<Spot>; 2] {
        let Place { point, qualified, .. } = self.place;
        std::array::from_fn(|side| {
            qualified[side].map(|_| Spot { point, interface, direction: Direction::ALL[side] })
        })
    }

    fn holder(&self, port: &Arc<str>) -> Holder {
        Holder { source: self.place.source.clone(), port: port.clone() }
    }

    fn forget(&mut self, name: &Arc<str>) {
        let Some(port) = self.ports.remove(name) else { return };
        let holder = self.holder(name);
        for spot in self.spots(port.interface).into_iter().flatten() {
            self.place.scopes.release(spot, &holder);
        }
    }

    /// Follows a port from here on, by this number. Says whether there is room for it.
    fn admit(&mut self, name: &Arc<str>, interface: u32) -> bool {
        let full = self.ports.len() >= self.place.ports_max;
        // An interface by another number has other counters. PFC-id.1
        if self.ports.get(name).is_some_and(|port| port.interface != interface) {
            self.forget(name);
        }
        if full && !self.ports.contains_key(name) {
            return false;
        }
        let holder = self.holder(name);
        for spot in self.spots(interface).into_iter().flatten() {
            self.place.scopes.hold(spot, &holder);
        }
        self.ports.entry(name.clone()).or_insert_with(|| Port::new(interface));
        true
    }

    fn port(&mut self, name: &Arc<str>, read: &PortRead) -> Lacks {
        let spots = self.spots(read.interface);
        let Self { place, ports, polls, counts, fresh, .. } = self;
        let port = ports.entry(name.clone()).or_insert_with(|| Port::new(read.interface));
        let mut lacks: Lacks = [[None; 8]; 2];
        for (side, direction) in Direction::ALL.into_iter().enumerate() {
            let Some(spot) = spots[side] else { continue };
            // PFC-id.1
            if !place.scopes.alone(spot) {
                lacks[side] = [Some(Absent::Contested); 8];
                continue;
            }
            for (index, priority) in Priority::ALL.into_iter().enumerate() {
                let said = read.counters[side][index];
                let counter = &mut port.counters[side][index];
                let widened = said.and_then(|value| {
                    counter.read(value, read.at.tick, read.instance, &place.promise)
                });
                let widened = match widened {
                    Ok(widened) => widened,
                    Err(absent) => {
                        // One that was gone and comes back may be another.
                        if absent == Absent::NoCounter {
                            *counter = Counter::default();
                        }
                        lacks[side][index] = Some(absent);
                        continue;
                    }
                };
                if widened.begins.is_some_and(|begins| begins != Begins::First) {
                    counts.begun_anew.fetch_add(1, Relaxed);
                }
                let Moment { time_ms, tick } = read.at;
                let id = counter.naming.name(&widened, tick, time_ms, &mut *fresh);
                let scope = Scope {
                    domain: place.domain,
                    point: place.point,
                    interface: read.interface,
                    direction,
                    priority,
                };
                let reading = Reading { scope, time_ms, total: widened.total };
                counts.readings.fetch_add(1, Relaxed);
                port.latest[side][index] = Some((*polls, (reading, id.filter(|_| place.identify))));
            }
        }
        lacks
    }
}

impl Port {
    fn new(interface: u32) -> Self {
        let counters = std::array::from_fn(|_| std::array::from_fn(|_| Counter::default()));
        Self { interface, counters, latest: [[None; 8]; 2] }
    }
}

/// One counter, of one part or two.
#[derive(Debug, Default)]
struct Counter {
    parts: Option<(Widening, Option<Widening>)>,
    /// Runs of the whole, from 1 on.
    run: u64,
    naming: Naming,
}

impl Counter {
    /// Takes what a poll gave.
    // PFC-exp.3, PFC-sem.1
    fn read(
        &mut self,
        value: Value,
        tick: Tick,
        instance: u64,
        promise: &Promise,
    ) -> Result<Widened, Absent> {
        let first = self.parts.is_none();
        let new = || Widening::new(*promise).expect("a source that was not refused");
        let parts = self.parts.get_or_insert_with(|| (new(), None));
        let raw = |value| Raw { value, tick, sign: Some(instance) };
        let mut widened = widen(parts, value, raw, new)?;
        // A part that begins alone would leave a total that is neither old nor from zero.
        let begins = widened.begins;
        if begins.is_some() && !first {
            *parts = (new(), None);
            widened = widen(parts, value, raw, new)?;
        }
        if begins.is_some() {
            self.run += 1;
        }
        Ok(Widened {
            total: widened.total,
            run: widened.run.map(|_| self.run),
            begins: begins.map(|begins| if first { Begins::First } else { begins }),
        })
    }
}

fn widen(
    (one, other): &mut (Widening, Option<Widening>),
    value: Value,
    raw: impl Fn(u64) -> Raw,
    new: impl Fn() -> Widening,
) -> Result<Widened, Absent> {
    let refused = |error| match error {
        NoReading::TooWide { .. } | NoReading::NotLater | NoReading::NoSign => {
            Absent::Contradictory
        }
    };
    match value {
        Value::One(value) => one.read(raw(value)).map_err(refused),
        Value::Two(a, b) => {
            let second = other.get_or_insert_with(new);
            let before = (one.clone(), second.clone());
            let both = one.read(raw(a)).and_then(|a| second.read(raw(b)).map(|b| (a, b)));
            let (a, b) = both.map_err(|error| {
                // As before, both of them.
                *one = before.0;
                *second = before.1;
                refused(error)
            })?;
            Ok(Widened {
                // A total goes on from 0 behind 2^64 - 1, and so does a sum of two.
                total: a.total.wrapping_add(b.total),
                run: a.run.and(b.run),
                begins: a.begins.or(b.begins),
            })
        }
    }
}
