//! Integration of transitions, with a bound on how wrong it can be.
//!
//! # Where the bound comes from
//!
//! A source states the time of an event to within its worst-case error, in whole nanoseconds: an
//! event told for t happened less than d away from t, where d is that error and one nanosecond
//! for what was rounded. So at an instant x a signal can only have a value that it was told to
//! have at some time in [x - d, x + d]: the one that held at x - d, or one told within. For each
//! x that is a set of possible values of the backlog, of every gate and of the candidate, and
//! from these follows whether Q(x) and Q(x) AND P(x) *can* be true and whether they *can* be
//! false. Signals are taken as independent of each other, which only makes the sets larger.
//!
//! Integrated over the interval, the instants at which a predicate must be true give the least
//! that its duration can be, and those at which it can be true the most. The duration that is
//! reported, with every event where it was told, lies between both, and E is the larger of the
//! distances to them. A closed gate before an empty queue costs nothing, two events that are
//! close to each other are not counted twice, and E is never above T.
//!
//! The boundaries of the interval are times of the source's own clock, so they are exact. How fast
//! that clock runs is not judged.
//!
//! Instants are visited where something changes: an event enters the possible d before its time,
//! takes effect at it, and what held before leaves the possible d behind it. For that, everything
//! up to d behind the end has to be known; where it is not (the interval is cut short), anything
//! is possible in the last d of it.

use alloc::collections::VecDeque;

use super::{Priorities, bit};
use crate::pfc::Priority;

/// A change of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Whether packets wait. When none does, nothing is next.
    Backlog(bool),
    /// Whether a gate is closed.
    Gate(Priority, bool),
    /// What is next.
    Candidate(Priority),
    /// Nothing of what was told is known any more.
    Forget,
}

/// What is next for service, in a queue of several priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    /// Never told, or forgotten.
    Untold,
    /// Not told since the queue was empty.
    None,
    Is(Priority),
}

/// The signals as they were told up to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    backlog: Option<bool>,
    /// Gates of which something was told.
    gates: u8,
    /// Gates that were told to be closed.
    closed: u8,
    candidate: Candidate,
}

impl Told {
    const NOTHING: Self = Self { backlog: None, gates: 0, closed: 0, candidate: Candidate::Untold };

    fn apply(&mut self, edge: Edge) {
        match edge {
            Edge::Backlog(present) => {
                self.backlog = Some(present);
                if !present {
                    // The packet that was next is gone.
                    self.candidate = Candidate::None;
                }
            }
            Edge::Gate(priority, closed) => {
                self.gates |= bit(priority);
                self.closed = self.closed & !bit(priority) | if closed { bit(priority) } else { 0 };
            }
            Edge::Candidate(priority) => self.candidate = Candidate::Is(priority),
            Edge::Forget => *self = Self::NOTHING,
        }
    }

    /// The edges that tell the same.
    fn edges(&self) -> impl Iterator<Item = Edge> + use<> {
        let Self { backlog, gates, closed, candidate } = *self;
        let gate = move |priority| {
            let one = bit(priority);
            (gates & one != 0).then_some(Edge::Gate(priority, closed & one != 0))
        };
        let next = match candidate {
            Candidate::Is(priority) => Some(Edge::Candidate(priority)),
            Candidate::None | Candidate::Untold => None,
        };
        let all = Priority::ALL.into_iter().filter_map(gate);
        backlog.map(Edge::Backlog).into_iter().chain(all).chain(next)
    }
}

/// How many edges of each kind are told for a time within d of the instant.
#[derive(Clone, Debug, Default)]
struct Near {
    backlog: [u32; 2],
    gates: [[u32; 8]; 2],
    candidates: [u32; 8],
    forgets: u32,
}

impl Near {
    fn count(&mut self, edge: Edge) -> &mut u32 {
        let index = |priority: Priority| usize::from(priority.get());
        match edge {
            Edge::Backlog(present) => &mut self.backlog[usize::from(present)],
            Edge::Gate(priority, closed) => &mut self.gates[usize::from(closed)][index(priority)],
            Edge::Candidate(priority) => &mut self.candidates[index(priority)],
            Edge::Forget => &mut self.forgets,
        }
    }
}

/// The priorities with a count.
fn mask(counts: &[u32; 8]) -> u8 {
    counts.iter().rev().fold(0, |mask, count| mask << 1 | u8::from(*count > 0))
}

/// Integrals over the interval so far, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub backlog: u64,
    pub gated: u64,
    backlog_least: u64,
    backlog_most: u64,
    gated_least: u64,
    gated_most: u64,
    /// Time for which nobody has told whether packets wait or whether the gate is closed.
    pub untold: u64,
    /// Time with traffic and several priorities of which none was told to be next.
    pub unresolved: u64,
}

impl Sums {
    /// E, as the head of this file has it.
    // QUE-err.2
    pub fn error(&self) -> u64 {
        // What was told is possible, so a known value lies between both; nobody asks for the error
        // of one that is not known.
        let distance = |value: u64, least: u64, most: u64| {
            value.saturating_sub(least).max(most.saturating_sub(value))
        };
        distance(self.backlog, self.backlog_least, self.backlog_most).max(distance(
            self.gated,
            self.gated_least,
            self.gated_most,
        ))
    }
}

/// What is possible at an instant.
#[derive(Clone, Copy)]
struct Possible {
    backlog: bool,
    no_backlog: bool,
    gated: bool,
    not_gated: bool,
}

impl Possible {
    const ANYTHING: Self = Self { backlog: true, no_backlog: true, gated: true, not_gated: true };
}

/// The transitions of one queue, integrated up to an instant.
#[derive(Clone, Debug)]
pub struct Sweep {
    mapped: Priorities,
    /// The only mapped priority, which is then that of every candidate.
    only: Option<Priority>,
    /// d, in nanoseconds.
    reach: u64,
    /// Integrated up to here.
    at: u64,
    /// Edges that are not yet d behind `at`, in their order.
    edges: VecDeque<(u64, Edge)>,
    /// Of these, so many are possible at `at`.
    entered: usize,
    /// Of these, so many have taken effect at `at`.
    effective: usize,
    near: Near,
    /// As told up to d before `at`.
    behind: Told,
    /// As told up to `at`.
    here: Told,
    /// As told altogether.
    last: Told,
    /// Something was forgotten in this epoch.
    forgot: bool,
    sums: Sums,
}

impl Sweep {
    /// Nothing is told yet. Edges are within `reach` nanoseconds of where they are told.
    pub fn new(mapped: Priorities, reach: u64, at: u64) -> Self {
        let nothing = Told::NOTHING;
        Self {
            mapped,
            only: mapped.only(),
            reach,
            at,
            edges: VecDeque::new(),
            entered: 0,
            effective: 0,
            near: Near::default(),
            behind: nothing,
            here: nothing,
            last: nothing,
            forgot: false,
            sums: Sums::default(),
        }
    }

    /// The same signals at the beginning of another clock.
    pub fn again(&self, at: u64) -> Self {
        let mut again = Self { forgot: self.forgot, ..Self::new(self.mapped, self.reach, at) };
        for edge in self.last.edges() {
            again.tell(at, edge);
        }
        again
    }

    /// d, in nanoseconds.
    pub const fn reach(&self) -> u64 {
        self.reach
    }

    /// How many edges wait for the time behind them.
    pub fn waiting(&self) -> usize {
        self.edges.len()
    }

    /// An edge, not before one that was told earlier. What says nothing new is no edge.
    pub fn tell(&mut self, at: u64, edge: Edge) {
        // QUE-def.4: a gate that is told to be closed again was closed all the time.
        let before = self.last;
        self.last.apply(edge);
        // A candidate is told for each backlog anew, and a Forget has to be seen.
        if self.last != before || edge == Edge::Forget {
            self.edges.push_back((at, edge));
        }
    }

    /// Nothing that was told is known any more, and edges that wait are not waited for.
    pub fn forget(&mut self, at: u64) {
        self.edges.clear();
        self.near = Near::default();
        (self.entered, self.effective) = (0, 0);
        (self.behind, self.here) = (Told::NOTHING, Told::NOTHING);
        self.forgot = true;
        self.tell(at, Edge::Forget);
    }

    /// Whether something was forgotten since the beginning.
    pub const fn forgot(&self) -> bool {
        self.forgot
    }

    /// Whether, as told up to where it is integrated, the backlog is known, and the gate of what
    /// is next where that is known.
    pub fn tells(&self) -> bool {
        let gate = match (self.only, self.here.candidate) {
            (Some(next), _) | (None, Candidate::Is(next)) => self.here.gates & bit(next) != 0,
            (None, Candidate::None | Candidate::Untold) => true,
        };
        self.here.backlog.is_some() && gate
    }

    /// The integrals since this was asked last.
    pub fn take(&mut self) -> Sums {
        core::mem::take(&mut self.sums)
    }

    /// Integrates up to `to`, of which everything up to `known` was told; what lies less than d
    /// before `known` can still have been anything.
    pub fn advance(&mut self, to: u64, known: u64) {
        let open = known.saturating_sub(self.reach);
        while self.at < to {
            let next = self.step().min(to);
            let possible = if self.at >= open { Possible::ANYTHING } else { self.possible() };
            let next = if self.at < open { next.min(open) } else { next };
            self.add(next - self.at, possible);
            self.at = next;
        }
    }

    /// Takes what is due at the instant, and says when the next is.
    fn step(&mut self) -> u64 {
        // In this order: what leaves has taken effect, and what has taken effect was possible.
        while let Some(&(at, edge)) = self.edges.get(self.entered)
            && self.enters(at) <= self.at
        {
            *self.near.count(edge) += 1;
            self.entered += 1;
        }
        while let Some(&(at, edge)) = self.edges.get(self.effective)
            && at <= self.at
        {
            self.here.apply(edge);
            self.effective += 1;
        }
        while let Some(&(at, edge)) = self.edges.front()
            && at.saturating_add(self.reach) <= self.at
        {
            self.behind.apply(edge);
            *self.near.count(edge) -= 1;
            self.edges.pop_front();
            self.entered -= 1;
            self.effective -= 1;
        }
        let leaves = self.edges.front().map(|(at, _)| at.saturating_add(self.reach));
        let effect = self.edges.get(self.effective).map(|(at, _)| *at);
        let enters = self.edges.get(self.entered).map(|(at, _)| self.enters(*at));
        [leaves, effect, enters].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    const fn enters(&self, at: u64) -> u64 {
        at.saturating_sub(self.reach)
    }

    fn add(&mut self, ns: u64, possible: Possible) {
        let sums = &mut self.sums;
        match self.here.backlog {
            None => sums.untold += ns,
            // QUE-err.3: nothing waits, so nothing waits behind a gate, whatever the gates are.
            Some(false) => {}
            Some(true) => {
                sums.backlog += ns;
                match (self.only, self.here.candidate) {
                    (Some(next), _) | (None, Candidate::Is(next)) => {
                        if self.here.gates & bit(next) == 0 {
                            sums.untold += ns;
                        } else if self.here.closed & bit(next) != 0 {
                            sums.gated += ns;
                        }
                    }
                    // QUE-def.2: neither any nor all of the gates stand in.
                    (None, Candidate::Untold) if self.forgot => sums.untold += ns,
                    (None, Candidate::None | Candidate::Untold) => sums.unresolved += ns,
                }
            }
        }
        sums.backlog_most += if possible.backlog { ns } else { 0 };
        sums.backlog_least += if possible.no_backlog { 0 } else { ns };
        sums.gated_most += if possible.gated { ns } else { 0 };
        sums.gated_least += if possible.not_gated { 0 } else { ns };
    }

    /// What is possible at the instant: what held d before, and what was told within d of it.
    fn possible(&self) -> Possible {
        let Self { behind, near, .. } = self;
        if near.forgets > 0 {
            return Possible::ANYTHING;
        }
        let backlog = behind.backlog != Some(false) || near.backlog[1] > 0;
        let no_backlog = behind.backlog != Some(true) || near.backlog[0] > 0;
        let closed = behind.closed | !behind.gates | mask(&near.gates[1]);
        let open = !behind.closed | mask(&near.gates[0]);
        let next = match (self.only, behind.candidate) {
            (Some(priority), _) => bit(priority),
            // Something that was not told yet can be next.
            (None, Candidate::None | Candidate::Untold) => self.mapped.bits(),
            (None, Candidate::Is(_)) if near.backlog[0] > 0 => self.mapped.bits(),
            (None, Candidate::Is(priority)) => bit(priority) | mask(&near.candidates),
        };
        Possible {
            backlog,
            no_backlog,
            gated: backlog && next & closed != 0,
            not_gated: no_backlog || next & open != 0,
        }
    }
}
