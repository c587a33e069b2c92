//! The collecting side of one Transport Session: the latest reading of each counter, a verdict on
//! each that arrives, and what lies between two of them (PFC draft, on interval counts, export
//! and collection).
//!
//! Fed with readings that [`super::record`] has read, and with what is known beyond them, which
//! comes from elsewhere. A counter of which nothing arrived is not here: that is no zero.

use alloc::collections::{BTreeMap, btree_map::Entry};
use alloc::vec::Vec;
use core::fmt;

use super::interval::{Interval, Known, Reason, Sighting};
use super::record::FurtherScope;
use super::{Reading, Scope};

/// The bounds of a session. All of them are shown to operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Counters that are kept at a time, over all domains.
    pub counters_max: usize,
    /// Octets of one further scope.
    pub further_octets_max: usize,
    /// Octets of the further scopes of all counters together.
    pub further_octets_all_max: usize,
}

impl Default for Limits {
    /// Room for 4096 ports of 8 priorities in 2 directions, each with a line card or a name of 48
    /// octets in its scope.
    fn default() -> Self {
        Self { counters_max: 65_536, further_octets_max: 256, further_octets_all_max: 4 << 20 }
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
    /// So was this one, and its total cannot be one from then: ignored, and its instance is not
    /// believed any more.
    // PFC-sem.2
    Contradicts,
    /// It was not taken.
    Rejected(Rejection),
}

/// Why a reading was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// There is no room for another counter.
    CountersFull,
    /// Its further scope has more octets than are kept.
    FurtherTooLong,
    /// There is no room for another further scope.
    FurtherFull,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CountersFull => f.write_str("no room for another counter"),
            Self::FurtherTooLong => f.write_str("more octets in its further scope than are kept"),
            Self::FurtherFull => f.write_str("no room for the further scope of another counter"),
        }
    }
}

/// Instances of which something did not hold: they counted more than they can.
// PFC-sem.2
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doubt {
    /// None.
    #[default]
    Nothing,
    /// This one.
    Instance(u64),
    /// All of them: who was wrong of two is not believed of a third.
    Every,
}

impl Doubt {
    /// Whether an instance is doubted.
    fn of(self, instance: Option<u64>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Instance(doubted) => instance == Some(doubted),
            Self::Every => instance.is_some(),
        }
    }

    /// With another one.
    fn and(self, instance: Option<u64>) -> Self {
        match (self, instance) {
            (doubt, None) => doubt,
            (Self::Nothing, Some(instance)) => Self::Instance(instance),
            (Self::Instance(doubted), Some(instance)) if doubted == instance => self,
            _ => Self::Every,
        }
    }
}

/// A counter as a session keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What its scope has beside that of a reading.
    pub further: FurtherScope,
    /// The reading before the latest one.
    pub earlier: Option<Sighting>,
    /// The latest reading.
    pub latest: Sighting,
    /// Readings that were taken.
    pub readings: u64,
    /// The number of the reading since which every interval was exact, the first being 1: what is
    /// said of two readings that did not follow each other needs all those between them.
    // PFC-sem.2
    pub unbroken: u64,
    /// Of which instances nothing is believed any more in this session.
    pub doubted: Doubt,
}

impl Counter {
    /// A counter with its first reading.
    fn new(further: FurtherScope, latest: Sighting) -> Self {
        Self { further, earlier: None, latest, readings: 1, unbroken: 1, doubted: Doubt::Nothing }
    }

    /// What was counted between the two latest readings.
    // PFC-sem.2
    pub fn interval(&self) -> Interval {
        match &self.earlier {
            Some(earlier) => Interval::between(earlier, &self.latest),
            None => Interval::Unknown(Reason::NoEarlier),
        }
    }

    /// Takes a reading of this counter.
    fn receive(&mut self, mut new: Sighting) -> Verdict {
        if self.doubted.of(new.known.instance) {
            new.known = Known::default();
        }
        if self.latest == new {
            return Verdict::Repeated;
        }
        if is_earlier(&self.latest, &new) {
            let contradicts = |kept: &Sighting| contradict(kept, &new);
            if !contradicts(&self.latest) && !self.earlier.as_ref().is_some_and(contradicts) {
                return Verdict::Earlier;
            }
            self.doubted = self.doubted.and(new.known.instance);
            for kept in self.earlier.iter_mut().chain([&mut self.latest]) {
                if self.doubted.of(kept.known.instance) {
                    kept.known = Known::default();
                }
            }
            return Verdict::Contradicts;
        }
        let interval = Interval::between(&self.latest, &new);
        self.earlier = Some(core::mem::replace(&mut self.latest, new));
        self.readings = self.readings.saturating_add(1);
        match interval {
            Interval::Exact(_) => {}
            Interval::Unknown(reason) => {
                self.unbroken = self.readings;
                if reason == Reason::TooMany {
                    self.doubted = self.doubted.and(self.latest.known.instance);
                }
            }
        }
        Verdict::Follows(interval)
    }
}

/// The counters of one Transport Session.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    /// In the order in which they came.
    counters: Vec<Counter>,
    places: BTreeMap<(Scope, FurtherScope), usize>,
    further_octets: usize,
    /// Where the counter behind the last one is: exporters go through theirs in an order.
    next: usize,
}

impl Session {
    /// A session without counters.
    // PFC-sem.2: a session says nothing of the counters of another one, nor does it say that they
    // are others.
    pub fn new(limits: Limits) -> Self {
        Self { limits, counters: Vec::new(), places: BTreeMap::new(), further_octets: 0, next: 0 }
    }

    /// Octets of the further scopes of all counters.
    pub fn further_octets(&self) -> usize {
        self.further_octets
    }

    /// Says for how many counters there is room from here on. Those that are there stay.
    pub fn bound_counters(&mut self, counters_max: usize) {
        self.limits.counters_max = counters_max;
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
        let at = self.places.get(&(scope, further.clone()))?;
        self.counters.get(*at).map(|counter| &counter.latest)
    }

    /// All counters, in the order in which they came: the place of one never changes.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Takes a reading with what is known beyond it.
    // PFC-sem.2, PFC-op.1
    pub fn receive(&mut self, reading: Reading, further: FurtherScope, known: Known) -> Verdict {
        self.receive_at(reading, further, known).1
    }

    /// As [`Session::receive`], with the place of the counter, if it has one.
    // PFC-sem.2, PFC-op.1
    pub fn receive_at(
        &mut self,
        reading: Reading,
        further: FurtherScope,
        known: Known,
    ) -> (Option<usize>, Verdict) {
        let new = Sighting { reading, known };
        if further.octets().len() > self.limits.further_octets_max {
            return (None, Verdict::Rejected(Rejection::FurtherTooLong));
        }
        let guessed = self.counters.get_mut(self.next);
        if let Some(counter) = guessed
            && counter.latest.reading.scope == reading.scope
            && counter.further == further
        {
            let at = self.next;
            self.next = at + 1;
            return (Some(at), counter.receive(new));
        }
        let octets = further.octets().len();
        let refused = self.refuses(octets);
        let (at, verdict) = match self.places.entry((reading.scope, further)) {
            Entry::Vacant(place) => {
                if let Some(rejection) = refused {
                    return (None, Verdict::Rejected(rejection));
                }
                self.further_octets += octets;
                let at = self.counters.len();
                let further = place.key().1.clone();
                place.insert(at);
                self.counters.push(Counter::new(further, new));
                (at, Verdict::First)
            }
            Entry::Occupied(place) => {
                let at = *place.get();
                // A place leads to a counter.
                (at, self.counters[at].receive(new))
            }
        };
        self.next = at + 1;
        (Some(at), verdict)
    }

    /// Why there is no room for another counter with so many octets of further scope, if so.
    fn refuses(&self, octets: usize) -> Option<Rejection> {
        if self.counters.len() >= self.limits.counters_max {
            return Some(Rejection::CountersFull);
        }
        let all = self.further_octets.checked_add(octets);
        let has_room = all.is_some_and(|all| all <= self.limits.further_octets_all_max);
        (!has_room).then_some(Rejection::FurtherFull)
    }
}

/// Whether two readings of one counter cannot both be as they are said to be: whichever was taken
/// first, the counter counted more until the other one than it can.
fn contradict(one: &Sighting, other: &Sighting) -> bool {
    let (first, second) = if is_earlier(one, other) { (other, one) } else { (one, other) };
    Interval::between(first, second) == Interval::Unknown(Reason::TooMany)
}

/// Whether a reading is known to be from before the latest one. An observation time does not tell:
/// a clock that was set back would silence its counters until it has caught up. The session keeps
/// the order in which readings were sent.
fn is_earlier(latest: &Sighting, new: &Sighting) -> bool {
    latest.known.tick.zip(new.known.tick).is_some_and(|(a, b)| a.clock == b.clock && b.ms < a.ms)
}
