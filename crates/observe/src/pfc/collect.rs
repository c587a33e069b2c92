//! The collecting side of one Transport Session: the latest reading of each counter, a verdict on
//! each that arrives, and what lies between two of them (PFC draft, on interval counts, export
//! and collection).
//!
//! Fed with readings that [`super::record`] has read, and with what is known beyond them, which
//! comes from elsewhere. A counter of which nothing arrived is not here: that is no zero.

use alloc::collections::{BTreeMap, btree_map::Entry};
use core::fmt;

use super::interval::{Interval, Known, Sighting};
use super::record::FurtherScope;
use super::{Reading, Scope};

/// The bounds of a session. All of them are shown to operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Counters that are kept at a time, over all domains.
    pub counters_max: usize,
}

impl Default for Limits {
    /// Room for 4096 ports of 8 priorities in 2 directions.
    fn default() -> Self {
        Self { counters_max: 65_536 }
    }
}

/// What came of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the first of its counter: nothing lies before it.
    First,
    /// It follows another one.
    Follows(Interval),
    /// The latest once more, field by field: ignored.
    Repeated,
    /// It was read before the latest one, by a clock that is never set: ignored.
    Earlier,
    /// It was not taken.
    Rejected(Rejection),
}

/// Why a reading was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// There is no room for another counter.
    CountersFull,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CountersFull => f.write_str("no room for another counter"),
        }
    }
}

/// The counters of one Transport Session.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    counters: BTreeMap<(Scope, FurtherScope), Sighting>,
}

impl Session {
    /// A session without counters.
    // PFC-sem.2: a session says nothing of the counters of another one, nor does it say that they
    // are others.
    pub fn new(limits: Limits) -> Self {
        Self { limits, counters: BTreeMap::new() }
    }

    /// Counters that are kept.
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// The latest reading of a counter; none where there was none, which is not zero.
    // PFC-op.1
    pub fn latest(&self, scope: Scope, further: &FurtherScope) -> Option<&Sighting> {
        self.counters.get(&(scope, further.clone()))
    }

    /// The latest readings of all counters, in the order of their scopes.
    pub fn counters(&self) -> impl Iterator<Item = (&FurtherScope, &Sighting)> {
        self.counters.iter().map(|((_, further), sighting)| (further, sighting))
    }

    /// Takes a reading with what is known beyond it.
    // PFC-sem.2, PFC-op.1
    pub fn receive(&mut self, reading: Reading, further: FurtherScope, known: Known) -> Verdict {
        let full = self.counters.len() >= self.limits.counters_max;
        let new = Sighting { reading, known };
        match self.counters.entry((reading.scope, further)) {
            Entry::Vacant(_) if full => Verdict::Rejected(Rejection::CountersFull),
            Entry::Vacant(place) => {
                place.insert(new);
                Verdict::First
            }
            Entry::Occupied(mut place) => {
                let latest = place.get();
                if *latest == new {
                    return Verdict::Repeated;
                }
                if is_earlier(latest, &new) {
                    return Verdict::Earlier;
                }
                let interval = Interval::between(latest, &new);
                place.insert(new);
                Verdict::Follows(interval)
            }
        }
    }
}

/// Whether a reading is known to be from before the latest one. An observation time does not tell:
/// a clock that was set back would silence its counters until it has caught up. The session keeps
/// the order in which readings were sent.
fn is_earlier(latest: &Sighting, new: &Sighting) -> bool {
    latest.known.tick.zip(new.known.tick).is_some_and(|(a, b)| a.clock == b.clock && b.ms < a.ms)
}
