//! The queues of one source: its time, what is missing of its events, and who is due.
//!
//! A source numbers its events. A hole in the numbers means that events of any of its queues are
//! missing. Its times never go back; where they do, or leap by more than a day, its clock is
//! another one, and nobody knows how long what went on had been going on.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::event::Event;
use super::row::Row;
use super::timeline::{Around, Timeline, shared};
use super::{DURATION_NS_MAX, EpochId, Place, QUEUE_ID_CHARS_MAX, is_yang_character};
use crate::pfc::Priority;

/// Octets of the name of an interface, at most.
pub const INTERFACE_OCTETS_MAX: usize = 255;

/// Octets of the words for how a candidate is chosen, at most.
pub const METHOD_OCTETS_MAX: usize = 255;

/// What a meter may use, and its cadence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long an interval is that nothing cuts short, in nanoseconds: 1 to a day.
    pub interval_ns: u64,
    /// Queues, at most; one more is refused.
    pub queues_max: usize,
    /// Transitions of one queue that wait until those that may have happened before them are told,
    /// at most. More are as if they had not come.
    pub edges_max: usize,
    /// The largest timestamp error of a source, in nanoseconds.
    pub max_error_ns_max: u64,
    /// Of the hash over names: not to be guessed by who chooses them.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval_ns: 100_000_000,
            queues_max: 4096,
            edges_max: 1024,
            max_error_ns_max: 1_000_000_000,
            seed: 0,
        }
    }
}

/// Which queues an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// All of the source: only a restart is.
    All,
    /// One.
    Queue {
        /// Its interface.
        interface: &'a str,
        /// Its name there.
        queue: &'a str,
    },
}

/// An event of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<'a> {
    /// Its number; each is larger than the one before.
    pub seq: u64,
    /// When, in nanoseconds of the source's clock.
    pub t: u64,
    /// Whose.
    pub subject: Subject<'a>,
    /// What.
    pub event: Event,
}

/// Why an event cannot be taken. Nothing has changed then: not even its number counts as seen, so
/// that what was in it is missing when the next one comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The number is not larger than the last one.
    Number {
        /// It is.
        found: u64,
        /// The last one.
        last: u64,
    },
    /// The queue was never mapped.
    NotMapped(Place),
    /// There is no room for another queue.
    Full {
        /// The queue.
        place: Place,
        /// So many there are.
        queues_max: usize,
    },
    /// The priority is none of the queue's.
    NotOfQueue {
        /// The priority.
        priority: Priority,
        /// Those of the queue.
        mapped: super::Priorities,
    },
    /// The timestamp error is above the limit.
    Error {
        /// It is, in nanoseconds.
        found: u64,
        /// The limit.
        max: u64,
    },
    /// A name has a character that a row could not be written with.
    Character {
        /// Whose name.
        what: &'static str,
        /// The character.
        found: char,
    },
    /// A name is empty or too long.
    Name {
        /// Whose.
        what: &'static str,
        /// Its length, in characters for a queue, in octets otherwise.
        found: usize,
        /// The longest.
        max: usize,
    },
    /// Only a restart is of all queues.
    Everybody,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { found, last } => {
                write!(f, "seq {found} after seq {last}, expected more than that")
            }
            Self::NotMapped(place) => write!(f, "{place} without a mapping, expected `map` first"),
            Self::Full { place, queues_max } => {
                write!(f, "{place} is one more than the {queues_max} queues that there is room for")
            }
            Self::NotOfQueue { priority, mapped } => {
                write!(f, "priority {}, expected one that is mapped: {mapped}", priority.get())
            }
            Self::Error { found, max } => {
                write!(f, "maxError {found}, expected 0 to {max} nanoseconds")
            }
            Self::Name { what, found, max } => {
                write!(f, "{what} with a length of {found}, expected 1 to {max}")
            }
            Self::Character { what, found } => {
                write!(
                    f,
                    "{found:?} in the name of the {what}, expected characters that YANG allows"
                )
            }
            Self::Everybody => f.write_str("no interface and queue, expected both"),
        }
    }
}

/// What has happened to a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were taken.
    pub events: u64,
    /// Events that were refused.
    pub refused: u64,
    /// Holes in their numbers.
    pub holes: u64,
    /// Numbers that are missing in them.
    pub missing: u64,
    /// Times at which its clock turned out to be another one.
    pub clocks: u64,
    /// Rows that were completed.
    pub rows: u64,
}

/// The queues of one source. Events go in by [`Meter::told`], rows come out of [`Meter::row`].
pub struct Meter<F> {
    settings: Settings,
    fresh: F,
    queues: Vec<Queue>,
    /// Places in `queues`, by name.
    index: HashTable<usize>,
    hash: FixedState,
    /// When which queue has something to complete.
    deadlines: BTreeSet<(u64, usize)>,
    /// The last number and time.
    last: Option<(u64, u64)>,
    /// Up to which time everything that can be missing or start again was told.
    settled: u64,
    /// Something came behind the last event that could not be read.
    unread: bool,
    /// How much farther apart samples can be than their times say, in nanoseconds.
    spread_ns: u64,
    rows: VecDeque<Row>,
    counts: Counts,
}

struct Queue {
    place: Arc<Place>,
    timeline: Timeline,
    deadline: u64,
}

impl<F: FnMut() -> EpochId> Meter<F> {
    /// No queue yet. `fresh` makes an epoch id that was never made before.
    pub fn new(settings: Settings, fresh: F) -> Self {
        let interval_ns = settings.interval_ns.clamp(1, DURATION_NS_MAX);
        Self {
            settings: Settings { interval_ns, ..settings },
            fresh,
            queues: Vec::new(),
            index: HashTable::new(),
            hash: FixedState::with_seed(settings.seed),
            deadlines: BTreeSet::new(),
            last: None,
            settled: 0,
            unread: false,
            spread_ns: 0,
            rows: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// A completed interval that was not taken yet, oldest first. Take them all before the next
    /// event: they wait for as long.
    pub fn row(&mut self) -> Option<Row> {
        self.rows.pop_front()
    }

    /// How many completed intervals were not taken yet.
    pub fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// What has happened.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// How many queues there are.
    pub const fn queues(&self) -> usize {
        self.queues.len()
    }

    /// The queues that were mapped.
    pub fn places(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.queues.iter().map(|queue| &queue.place)
    }

    /// Something was told that nobody could read: before the next event, events of any queue may
    /// be missing, whatever its number.
    // QUE-err.3
    pub fn unread(&mut self) {
        self.unread = self.last.is_some();
    }

    /// An event was told that has to do with no queue that is measured: its number and its time
    /// count. A number that is not larger than the last one does not.
    pub fn passed_over(&mut self, seq: u64, t: u64) {
        if self.last.is_none_or(|(last, _)| last < seq) {
            self.pass(seq, t);
        }
    }

    /// Two samples can be so much farther apart than their times say, from the interval on that goes
    /// on now. It never gets less: what was so is not known to have ended.
    // QUE-err.1
    pub fn spread(&mut self, ns: u64) {
        self.spread_ns = self.spread_ns.max(ns);
    }

    /// An event.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn told(&mut self, told: Told<'_>) -> Result<(), Refused> {
        let done = self.take(told);
        let counter = if done.is_ok() { &mut self.counts.events } else { &mut self.counts.refused };
        *counter += 1;
        done
    }

    fn take(&mut self, told: Told<'_>) -> Result<(), Refused> {
        let Told { seq, t, subject, event } = told;
        let whose = match subject {
            Subject::All if event == Event::Restart => {
                self.restart(seq, t);
                return Ok(());
            }
            Subject::All => return Err(Refused::Everybody),
            Subject::Queue { interface, queue } => (interface, queue),
        };
        if let Some((last, _)) = self.last.filter(|(last, _)| *last >= seq) {
            return Err(Refused::Number { found: seq, last });
        }
        let known = self.find(whose);
        self.acceptable(whose, known, &event)?;
        self.pass(seq, t);
        match known {
            Some(nth) => {
                let settled = self.settled;
                self.with(nth, |timeline, around| match event {
                    // QUE-id.1: the events of the queue end where those of the source did.
                    Event::Restart => timeline.event(t, settled, event, around),
                    Event::Lost => {
                        timeline.lost(t);
                        timeline.advance(t, around);
                    }
                    _ => {
                        // What is told of it now is behind everything else of it.
                        timeline.advance(t, around);
                        timeline.event(t, settled, event, around);
                    }
                });
            }
            None => {
                if let Event::Map(mapping) = event {
                    let place = shared(whose.0, whose.1);
                    let epoch = (self.fresh)();
                    let timeline = Timeline::new(place.clone(), mapping, t, epoch);
                    self.add(place, timeline);
                }
            }
        }
        Ok(())
    }

    /// The source has come to `t` and told everything before that.
    pub fn time(&mut self, t: u64) {
        if let Some((seq, before)) = self.last
            && t > before
        {
            self.pass(seq, t);
            self.settle(t);
        }
    }

    /// Nothing follows: what goes on ends where the source was last.
    pub fn finish(&mut self) {
        let Some((_, now)) = self.last else { return };
        for nth in 0..self.queues.len() {
            self.with(nth, |timeline, around| timeline.finish(now, around));
        }
    }

    /// Whether an event can be taken. Nothing is changed before that.
    fn acceptable(
        &self,
        (interface, queue): (&str, &str),
        known: Option<usize>,
        event: &Event,
    ) -> Result<(), Refused> {
        let place = || Place { interface: Box::from(interface), queue: Box::from(queue) };
        if let Event::Map(mapping) = event {
            let (found, max) = (mapping.max_error_ns, self.settings.max_error_ns_max);
            if found > max {
                return Err(Refused::Error { found, max });
            }
            length("interface", interface.len(), INTERFACE_OCTETS_MAX)?;
            length("queue", queue.chars().count(), QUEUE_ID_CHARS_MAX)?;
            characters("interface", interface)?;
            characters("queue", queue)?;
            length("method", mapping.method.len(), METHOD_OCTETS_MAX)?;
        }
        let queues_max = self.settings.queues_max;
        match (known, event) {
            (None, Event::Map(_)) if self.queues.len() >= queues_max => {
                Err(Refused::Full { place: place(), queues_max })
            }
            (None, Event::Map(_)) => Ok(()),
            (None, _) => Err(Refused::NotMapped(place())),
            (Some(nth), Event::Gate { priority, .. } | Event::Candidate { priority }) => {
                let mapped = self.queues[nth].timeline.mapping().priorities;
                let refused = Refused::NotOfQueue { priority: *priority, mapped };
                mapped.contains(*priority).then_some(()).ok_or(refused)
            }
            (Some(_), _) => Ok(()),
        }
    }

    /// The time goes on to that of an event. What is missing by the numbers is missing of all queues.
    /// What is due is completed up to the event before, and not up to this one: that events of
    /// another queue are missing before `t`, or that it started again, can still be told at `t`.
    // QUE-err.3
    fn pass(&mut self, seq: u64, t: u64) {
        let Some((last, before)) = self.last.replace((seq, t)) else {
            self.settled = t;
            return;
        };
        let missing = seq.saturating_sub(last).saturating_sub(1);
        let hole = missing > 0 || core::mem::take(&mut self.unread);
        if hole {
            self.unread = false;
            self.counts.holes += 1;
            self.counts.missing += missing;
        }
        let another = t < before || t - before > DURATION_NS_MAX;
        // On another clock its times mean nothing; that it is missing still does.
        let at = if another { before } else { t };
        if hole {
            for queue in &mut self.queues {
                queue.timeline.lost(at);
            }
        }
        if another {
            self.counts.clocks += 1;
            for nth in 0..self.queues.len() {
                let epoch = (self.fresh)();
                self.with(nth, |timeline, _| timeline.another_clock(t, epoch));
            }
            self.settled = t;
            return;
        }
        if t > before {
            self.settle(before);
        }
    }

    /// Everything up to `t` was told: what is due then is completed.
    fn settle(&mut self, t: u64) {
        self.settled = t;
        // Nothing is due at the end of all time, where sums would not fit any more.
        while let Some(&(deadline, nth)) = self.deadlines.first()
            && deadline <= t
            && deadline < u64::MAX
        {
            self.with(nth, |timeline, around| timeline.advance(t, around));
        }
    }

    /// The whole source started again: its numbers and its time begin anew.
    fn restart(&mut self, seq: u64, t: u64) {
        let before = self.last.replace((seq, t)).map_or(t, |(_, before)| before);
        self.settled = t;
        self.unread = false;
        for nth in 0..self.queues.len() {
            self.with(nth, |timeline, around| timeline.event(t, before, Event::Restart, around));
        }
    }

    fn find(&self, (interface, queue): (&str, &str)) -> Option<usize> {
        let same = |nth: &usize| {
            let place = &self.queues[*nth].place;
            *place.interface == *interface && *place.queue == *queue
        };
        self.index.find(self.hash_of((interface, queue)), same).copied()
    }

    fn hash_of(&self, names: (&str, &str)) -> u64 {
        self.hash.hash_one(names)
    }

    fn add(&mut self, place: Arc<Place>, timeline: Timeline) {
        let nth = self.queues.len();
        let hash = self.hash_of((&place.interface, &place.queue));
        let deadline = timeline.deadline(self.settings.interval_ns);
        self.deadlines.insert((deadline, nth));
        self.queues.push(Queue { place, timeline, deadline });
        let (queues, state) = (&self.queues, &self.hash);
        self.index.insert_unique(hash, nth, |nth| {
            let place = &queues[*nth].place;
            state.hash_one((&*place.interface, &*place.queue))
        });
    }

    /// Does something with a timeline, and sees when it is due afterwards.
    fn with(&mut self, nth: usize, act: impl FnOnce(&mut Timeline, &mut Around<'_>)) {
        let queue = &mut self.queues[nth];
        let (rows, counts) = (&mut self.rows, &mut self.counts);
        let mut around = Around {
            interval_ns: self.settings.interval_ns,
            edges_max: self.settings.edges_max,
            spread_ns: self.spread_ns,
            fresh: &mut self.fresh,
            rows: &mut |row| {
                counts.rows += 1;
                rows.push_back(row);
            },
        };
        act(&mut queue.timeline, &mut around);
        let deadline = queue.timeline.deadline(self.settings.interval_ns);
        if deadline != queue.deadline {
            self.deadlines.remove(&(queue.deadline, nth));
            self.deadlines.insert((deadline, nth));
            queue.deadline = deadline;
        }
    }
}

fn characters(what: &'static str, name: &str) -> Result<(), Refused> {
    let bad = name.chars().find(|character| !is_yang_character(*character));
    bad.map_or(Ok(()), |found| Err(Refused::Character { what, found }))
}

fn length(what: &'static str, found: usize, max: usize) -> Result<(), Refused> {
    if (1..=max).contains(&found) { Ok(()) } else { Err(Refused::Name { what, found, max }) }
}
