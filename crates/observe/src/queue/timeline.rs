//! One queue: its epochs, and the intervals in each.
//!
//! An interval is completed when everything that can have to do with it was told: for transitions
//! when the source has come as far behind its end as an event can be wrong, for samples when there
//! is one behind it.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::event::{Event, Mapping};
use super::row::{Known, Measurement, Method, Row};
use super::sample::Sampler;
use super::sweep::{Edge, Sweep};
use super::{DURATION_NS_MAX, EpochId, OFFSET_NS_MAX, Place, Reason};

/// Intervals that are due at once and still get a row each. Behind a longer silence they become
/// one row: what is known of it is the same, and no stretch of time can make rows without end.
pub const DUE_MAX: u64 = 8;

/// What a timeline needs from around it.
pub struct Around<'a> {
    /// The cadence of intervals, in nanoseconds, at most a day.
    pub interval_ns: u64,
    /// Edges that wait for the time behind them, at most.
    pub edges_max: usize,
    /// How much farther apart samples can be than their times say, in nanoseconds.
    pub spread_ns: u64,
    /// Makes a fresh epoch id.
    pub fresh: &'a mut dyn FnMut() -> EpochId,
    /// Takes completed intervals.
    pub rows: &'a mut dyn FnMut(Row),
}

enum Integral {
    Events(Sweep),
    Samples(Sampler),
}

/// A queue that was mapped.
pub struct Timeline {
    place: Arc<Place>,
    mapping: Mapping,
    epoch: EpochId,
    /// The origin of the epoch, by the source's clock.
    origin: u64,
    /// The number of the interval that goes on.
    interval: u64,
    /// Where it started, by the source's clock.
    start: u64,
    integral: Integral,
    /// Events are missing somewhere before this.
    lost_until: Option<u64>,
    /// An interval of this epoch is measured by transitions.
    events: bool,
}

impl Timeline {
    /// A queue that is mapped for the first time, at `at`.
    pub fn new(place: Arc<Place>, mapping: Mapping, at: u64, epoch: EpochId) -> Self {
        let integral = Integral::Events(fresh_sweep(&mapping, at));
        Self {
            place,
            mapping,
            epoch,
            origin: at,
            interval: 1,
            start: at,
            integral,
            lost_until: None,
            events: false,
        }
    }

    /// The mapping in force.
    pub const fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// When there is something to complete even if the source tells nothing of this queue.
    pub fn deadline(&self, interval_ns: u64) -> u64 {
        self.start.saturating_add(interval_ns).saturating_add(self.delay(interval_ns))
    }

    /// How far behind its end an interval can be completed.
    fn delay(&self, interval_ns: u64) -> u64 {
        match &self.integral {
            Integral::Events(sweep) => sweep.reach(),
            Integral::Samples(_) => interval_ns,
        }
    }

    /// Everything before `now` was told: completes what can be.
    pub fn advance(&mut self, now: u64, around: &mut Around<'_>) {
        let delay = self.delay(around.interval_ns);
        self.complete_up_to(now.saturating_sub(delay), now, around);
    }

    /// Completes the regular intervals that end at `to` at the latest.
    fn complete_up_to(&mut self, to: u64, now: u64, around: &mut Around<'_>) {
        let cadence = around.interval_ns;
        loop {
            let due = to.saturating_sub(self.start) / cadence;
            let span = match due {
                0 => return,
                1..=DUE_MAX => cadence,
                _ => cadence * due.min(DURATION_NS_MAX / cadence),
            };
            self.renew_before_limit(span, around);
            // What lies behind `now` is not needed: `to` is far enough before it, or a sample is at
            // `to`.
            self.complete(self.start + span, now, around);
        }
    }

    /// A new epoch where the offsets of this one end.
    // QUE-id.3: ordinary; nothing that is known gets lost.
    fn renew_before_limit(&mut self, span: u64, around: &mut Around<'_>) {
        if self.start - self.origin > OFFSET_NS_MAX - span {
            self.begin_epoch(self.start, (around.fresh)());
        }
    }

    fn begin_epoch(&mut self, origin: u64, epoch: EpochId) {
        self.epoch = epoch;
        self.origin = origin;
        self.interval = 1;
        self.start = origin;
        self.events = false;
    }

    /// The interval that goes on ends here.
    fn complete(&mut self, end: u64, known: u64, around: &mut Around<'_>) {
        let duration_ns = end - self.start;
        let measurement = self.measure(end, known, duration_ns, around.spread_ns);
        self.events |= measurement.word() == "event-based";
        let row = Row {
            place: self.place.clone(),
            epoch: self.epoch,
            interval: self.interval,
            start_ns: self.start - self.origin,
            duration_ns,
            wall_clock_start: None,
            priorities: self.mapping.priorities,
            measurement,
        };
        debug_assert_eq!(row.faults().next(), None, "{row:?}");
        // QUE-pub.1: all of it at once, and it never changes.
        (around.rows)(row);
        // QUE-id.4: unknown ones are counted too. Far below 2^64: an epoch has 2^53 nanoseconds.
        self.interval += 1;
        self.start = end;
    }

    fn measure(&mut self, end: u64, known: u64, duration_ns: u64, spread: u64) -> Measurement {
        let lost = self.lost_until.is_some_and(|until| self.start < until);
        let measured = match &mut self.integral {
            Integral::Events(sweep) => by_events(sweep, end, known),
            Integral::Samples(sampler) => by_samples(sampler, end, known, duration_ns, spread),
        };
        // QUE-err.3
        if lost { Measurement::Unknown(Reason::CaptureGap) } else { measured }
    }

    /// Ends the interval that goes on at `end`, behind which nothing of it will be told, where it
    /// has any length.
    // QUE-id.5
    fn cut(&mut self, end: u64, around: &mut Around<'_>) {
        self.complete_up_to(end, end, around);
        if end > self.start {
            self.renew_before_limit(end - self.start, around);
            self.complete(end, end, around);
        }
    }

    /// What a source tells at `at`, up to which everything before was told by [`Self::advance`].
    /// `before` is when it told anything last.
    pub fn event(&mut self, at: u64, before: u64, event: Event, around: &mut Around<'_>) {
        match event {
            Event::Map(mapping) => {
                // QUE-def.6: under the old epoch up to here.
                self.cut(at, around);
                self.mapping = mapping;
                self.restart(at, (around.fresh)());
            }
            Event::Restart => {
                // What happened between the last event and this nobody knows.
                self.cut(before, around);
                self.restart(at, (around.fresh)());
            }
            Event::Lost => self.lost(at),
            Event::Backlog { present } => self.tell(at, Edge::Backlog(present), around),
            Event::Gate { priority, closed } => self.tell(at, Edge::Gate(priority, closed), around),
            Event::Candidate { priority } => self.tell(at, Edge::Candidate(priority), around),
            Event::Sample { backlog, gated } => self.sample(at, backlog, gated, around),
        }
    }

    /// A fresh epoch in which nothing is told yet.
    fn restart(&mut self, at: u64, epoch: EpochId) {
        self.begin_epoch(at, epoch);
        self.integral = Integral::Events(fresh_sweep(&self.mapping, at));
        self.lost_until = None;
    }

    /// Events are missing up to `at`.
    pub fn lost(&mut self, at: u64) {
        let reach = reach(&self.mapping);
        // One that is missing can have happened so much later than it was to be told for.
        self.lost_until = Some(at.saturating_add(reach));
        if let Integral::Events(sweep) = &mut self.integral {
            sweep.forget(at);
        }
    }

    /// The source's clock is another one from here on: what went on has no length that anybody
    /// knows. What was told of signals still holds.
    // QUE-id.6
    pub fn another_clock(&mut self, at: u64, epoch: EpochId) {
        let integral = match &self.integral {
            Integral::Events(sweep) => Integral::Events(sweep.again(at)),
            Integral::Samples(_) => Integral::Samples(Sampler::new(at)),
        };
        // What is missing from before is not told again on the new clock.
        let lost = self.lost_until.is_some_and(|until| self.start < until);
        self.begin_epoch(at, epoch);
        self.lost_until = lost.then(|| at.saturating_add(reach(&self.mapping)));
        self.integral = integral;
    }

    /// Nothing follows any more.
    pub fn finish(&mut self, now: u64, around: &mut Around<'_>) {
        self.cut(now, around);
    }

    fn tell(&mut self, at: u64, edge: Edge, around: &Around<'_>) {
        // A queue that is sampled is sampled until it is mapped again: what changes in between adds
        // nothing to what samples can say.
        let Integral::Events(sweep) = &mut self.integral else { return };
        sweep.tell(at, edge);
        // Not beyond the interval: what is due was completed before this event.
        let settled = at.saturating_sub(sweep.reach());
        sweep.advance(settled.min(self.start.saturating_add(around.interval_ns)), u64::MAX);
        if sweep.waiting() > around.edges_max {
            // No room to keep them is as if they had not come.
            self.lost(at);
        }
    }

    fn sample(&mut self, at: u64, backlog: bool, gated: bool, around: &mut Around<'_>) {
        if matches!(self.integral, Integral::Events(_)) {
            // QUE-id.1: another method is another epoch, where there is something of the first.
            if self.events {
                self.cut(at, around);
                let epoch = (around.fresh)();
                self.begin_epoch(at, epoch);
            }
            self.integral = Integral::Samples(Sampler::new(self.start));
        }
        self.complete_up_to(at, at, around);
        if let Integral::Samples(sampler) = &mut self.integral {
            sampler.look(at, backlog, gated);
        }
    }
}

/// How far from the time for which it was told an event can have happened.
const fn reach(mapping: &Mapping) -> u64 {
    // What was rounded to whole nanoseconds is less than one of them.
    mapping.max_error_ns.saturating_add(1)
}

fn fresh_sweep(mapping: &Mapping, at: u64) -> Sweep {
    Sweep::new(mapping.priorities, reach(mapping), at)
}

fn by_events(sweep: &mut Sweep, end: u64, known: u64) -> Measurement {
    sweep.advance(end, known);
    let sums = sweep.take();
    // QUE-def.2, QUE-err.3
    if sums.unresolved > 0 {
        Measurement::Unknown(Reason::CandidateUnresolved)
    } else if sums.untold > 0 && sweep.forgot() {
        Measurement::Unknown(Reason::CaptureGap)
    } else if sums.untold > 0 {
        let reason = if sweep.tells() { Reason::Other } else { Reason::Unavailable };
        Measurement::Unknown(reason)
    } else {
        // QUE-err.1
        Measurement::Known(Known {
            method: Method::Events,
            gated_ns: sums.gated,
            backlog_ns: sums.backlog,
            error_ns: sums.error(),
        })
    }
}

fn by_samples(
    sampler: &mut Sampler,
    end: u64,
    known: u64,
    duration_ns: u64,
    spread: u64,
) -> Measurement {
    sampler.advance(end, known);
    let sums = sampler.take();
    let period_ns = sums.period.saturating_add(spread);
    // QUE-err.1: also where an interval was cut short.
    if !sampler.looked() || period_ns > duration_ns {
        return Measurement::Unknown(Reason::Other);
    }
    Measurement::Known(Known {
        method: Method::Samples { period_ns },
        gated_ns: sums.gated,
        backlog_ns: sums.backlog,
        error_ns: sums.error(duration_ns),
    })
}

/// What a place is called, shared by its rows.
pub fn shared(interface: &str, queue: &str) -> Arc<Place> {
    Arc::new(Place { interface: Box::from(interface), queue: Box::from(queue) })
}
