//! Against a slow integral: a queue, its gates and its candidates change at random, the source
//! tells of it with random errors, loses some of it and is mapped anew, and whatever row comes out
//! has to be within its own error of what was so on a grid of quarters of nanoseconds.

use observe::queue::event::Event;
use observe::queue::row::{Measurement, Method, Row};

use crate::support::*;

/// Ticks of the grid in a nanosecond.
const TICKS: u64 = 4;
/// How long the history is, in nanoseconds.
const LENGTH: u64 = 4000;
const INTERVAL: u64 = 500;

/// Numbers out of a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What was so, at each tick.
struct Truth {
    backlog: Vec<bool>,
    closed: Vec<[bool; 2]>,
    /// Of the two priorities, which is next.
    next: Vec<usize>,
}

/// What a source tells: when it was so in ticks, when it tells that it was, and what.
struct Said {
    t: u64,
    event: Event,
}

/// Of which signal an event is told: of one signal they stay in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signal {
    Queue,
    Gate(usize),
}

const PRIORITIES: [u8; 2] = [3, 4];

/// The history of a queue, and what changes in it: tick, signal and event.
fn history(chance: &mut Chance, several: bool, pace: u64) -> (Truth, Vec<(u64, Signal, Event)>) {
    let ticks = LENGTH * TICKS;
    let mut truth = Truth { backlog: Vec::new(), closed: Vec::new(), next: Vec::new() };
    let mut changes = Vec::new();
    let (mut present, mut closed, mut next) = (chance.once_in(2), [false; 2], 0);
    for tick in 0..ticks {
        if tick > 0 && chance.once_in(pace * TICKS) {
            present = !present;
            next = usize::from(several && chance.once_in(2));
            changes.push((tick, Signal::Queue, backlog(present)));
            if present && several {
                changes.push((tick, Signal::Queue, candidate(PRIORITIES[next])));
            }
        } else if tick > 0 && several && present && chance.once_in(pace * TICKS) {
            next = 1 - next;
            changes.push((tick, Signal::Queue, candidate(PRIORITIES[next])));
        }
        for (nth, closed) in closed.iter_mut().enumerate() {
            if tick > 0 && chance.once_in(pace * TICKS) {
                *closed = !*closed;
                changes.push((tick, Signal::Gate(nth), gate(PRIORITIES[nth], *closed)));
            }
        }
        truth.backlog.push(present);
        truth.closed.push(closed);
        truth.next.push(next);
    }
    (truth, changes)
}

impl Truth {
    /// I and Q of an interval, in ticks.
    fn integral(&self, start_ns: u64, end_ns: u64) -> (u64, u64) {
        let ticks =
            usize::try_from(start_ns * TICKS).unwrap()..usize::try_from(end_ns * TICKS).unwrap();
        let (mut gated, mut backlog) = (0, 0);
        for tick in ticks {
            backlog += u64::from(self.backlog[tick]);
            gated += u64::from(self.backlog[tick] && self.closed[tick][self.next[tick]]);
        }
        (gated, backlog)
    }
}

/// The state as a source has told it, which it tells again after a mapping.
struct State {
    backlog: bool,
    next: Option<u8>,
    closed: [bool; 2],
}

impl State {
    fn see(&mut self, event: &Event) {
        match event {
            Event::Backlog { present } => {
                self.backlog = *present;
                self.next = self.next.filter(|_| *present);
            }
            Event::Candidate { priority } => self.next = Some(priority.get()),
            Event::Gate { priority, closed } => {
                self.closed[usize::from(priority.get() - PRIORITIES[0])] = *closed;
            }
            other => panic!("{other:?}"),
        }
    }

    fn events(&self, mapped: &[u8]) -> Vec<Event> {
        let next = self.next.filter(|_| self.backlog).map(candidate);
        let gates = mapped.iter().zip(self.closed).map(|(n, closed)| gate(*n, closed));
        [backlog(self.backlog)].into_iter().chain(next).chain(gates).collect()
    }
}

/// When a source tells that something was, which was at a tick: rounded down, and off by up to
/// `error` nanoseconds.
fn stated(chance: &mut Chance, tick: u64, error: u64) -> u64 {
    let shifted = tick + chance.below(2 * error * TICKS + 1);
    shifted.saturating_sub(error * TICKS) / TICKS
}

struct Found {
    rows: u64,
    known: u64,
    gated: u64,
    tight: u64,
}

fn check(seed: u64, truth: &Truth, origins: &[u64], rows: &[Row], found: &mut Found) {
    for row in rows {
        let n = (0..).position(|n| epoch(n) == row.epoch).unwrap();
        let start = origins[n] + row.start_ns;
        let end = start + row.duration_ns;
        assert_eq!(row.faults().next(), None, "seed {seed}: {row:?}");
        found.rows += 1;
        let Measurement::Known(known) = row.measurement else { continue };
        let (gated, backlog) = truth.integral(start, end);
        let off = |reported: u64, so: u64| (reported * TICKS).abs_diff(so);
        let bound = known.error_ns * TICKS;
        assert!(off(known.gated_ns, gated) <= bound, "seed {seed}: {row:?}, true I {gated} / 4");
        assert!(off(known.backlog_ns, backlog) <= bound, "seed {seed}: {row:?}, Q {backlog} / 4");
        found.known += 1;
        found.gated += u64::from(known.gated_ns > 0);
        found.tight += u64::from(known.error_ns < row.duration_ns / 2);
    }
}

/// A run over one history; the rows are checked.
fn transitions(seed: u64, found: &mut Found) {
    let mut chance = Chance(seed);
    let several = chance.once_in(2);
    let error = [0, 0, 3, 20][usize::try_from(chance.below(4)).unwrap()];
    let pace = [20, 60, 200][usize::try_from(chance.below(3)).unwrap()];
    let lossy = chance.once_in(3);
    let (truth, changes) = history(&mut chance, several, pace);
    let mapped: &[u8] = if several { &PRIORITIES } else { &PRIORITIES[..1] };

    let mut said: Vec<Said> = Vec::new();
    for signal in [Signal::Queue, Signal::Gate(0), Signal::Gate(1)] {
        if signal == Signal::Gate(1) && !several {
            continue;
        }
        let mut last = 0;
        for (tick, _, event) in changes.iter().filter(|(_, whose, _)| *whose == signal) {
            last = last.max(stated(&mut chance, *tick, error)).min(LENGTH - 1);
            said.push(Said { t: last, event: event.clone() });
        }
    }
    let mut maps = vec![0];
    for _ in 0..chance.below(3) {
        maps.push(chance.below(LENGTH - 100) + 50);
    }
    maps.sort_unstable();
    maps.dedup();
    for at in &maps {
        said.push(Said { t: *at, event: map(mapped, error) });
    }
    // What is told for one time is told in any order, but a mapping comes first, and the state at
    // it right behind it.
    said.sort_by_key(|said| (said.t, !matches!(said.event, Event::Map(_))));

    let mut state = State {
        backlog: truth.backlog[0],
        next: (several && truth.backlog[0]).then_some(PRIORITIES[truth.next[0]]),
        closed: truth.closed[0],
    };
    let mut source = Source::new(INTERVAL);
    let mut rows = Vec::new();
    for Said { t, event } in said {
        let mapping = matches!(event, Event::Map(_));
        if !mapping {
            state.see(&event);
        }
        if !mapping && lossy && chance.once_in(40) {
            source.seq += 1;
            continue;
        }
        rows.extend(source.tell(t, event));
        if mapping {
            for event in state.events(mapped) {
                rows.extend(source.tell(t, event));
            }
        } else if lossy && chance.once_in(20) {
            rows.extend(source.tell(t, Event::Lost));
        } else if chance.once_in(5) {
            rows.extend(source.time(t));
        }
    }
    rows.extend(source.finish());
    check(seed, &truth, &maps, &rows, found);
}

// QUE-err.2, QUE-def.1, QUE-def.2
#[test]
fn transitions_are_always_within_their_error_of_the_truth() {
    let mut found = Found { rows: 0, known: 0, gated: 0, tight: 0 };
    for seed in 0..1500 {
        transitions(seed, &mut found);
    }
    // Else nothing was shown.
    let Found { rows, known, gated, tight } = found;
    assert!(known > rows / 4, "{known} of {rows} known");
    assert!(gated > known / 2, "{gated} of {known} gated");
    assert!(tight > known / 2, "{tight} of {known} tight");
}

// QUE-err.1, QUE-err.2
#[test]
fn samples_are_always_within_their_error_of_the_truth_and_spaced_as_they_say() {
    let mut found = Found { rows: 0, known: 0, gated: 0, tight: 0 };
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let (truth, _) = history(&mut chance, true, 100);
        let spacing = 50 + chance.below(600);
        let mut source = Source::new(INTERVAL);
        let mut rows = source.tell(0, map(&PRIORITIES, 0));
        let mut looks = Vec::new();
        let mut t = chance.below(spacing);
        while t < LENGTH {
            looks.push(t);
            let tick = usize::try_from(t * TICKS).unwrap();
            let gated = truth.closed[tick][truth.next[tick]];
            rows.extend(source.tell(t, sample(truth.backlog[tick], gated)));
            t += 1 + chance.below(spacing);
        }
        rows.extend(source.finish());
        check(seed, &truth, &[0], &rows, &mut found);
        for row in &rows {
            let Measurement::Known(known) = row.measurement else { continue };
            let Method::Samples { period_ns } = known.method else { panic!("{row:?}") };
            // Nowhere in the interval was the nearest sample before further from the one behind.
            let (start, end) = (row.start_ns, row.end_ns());
            let inside = looks.windows(2).filter(|pair| pair[0] < end && pair[1] > start);
            let widest = inside.map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(period_ns >= widest, "seed {seed}: {row:?}, {widest}");
        }
    }
    assert!(found.known > found.rows / 4, "{} of {} known", found.known, found.rows);
}
