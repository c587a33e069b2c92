//! One completed interval of one queue: the row of the module, as a value.
//!
//! What the module forbids by `when` and `mandatory` cannot be said in this type: an interval
//! that is not known has no durations. What it forbids by ranges and `must` is found by
//! [`Row::faults`], in rows of ours before they go out and in rows of others when they come in.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::{DURATION_NS_MAX, EpochId, OFFSET_NS_MAX, Place, Priorities, Reason};

/// How a known interval was measured.
// QUE-err.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Transitions were integrated.
    Events,
    /// Predicates were looked at now and then.
    Samples {
        /// The largest spacing of two samples, jitter included, in nanoseconds.
        period_ns: u64,
    },
}

/// The pair of durations, and how wrong each of them can be.
// QUE-def.1, QUE-err.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// How it was measured.
    pub method: Method,
    /// I: the time with traffic waiting behind a closed gate, in nanoseconds.
    pub gated_ns: u64,
    /// Q: the time with traffic waiting, in nanoseconds.
    pub backlog_ns: u64,
    /// E: neither of the two is further from the truth, in nanoseconds.
    pub error_ns: u64,
}

/// What is known of an interval.
// QUE-err.3: not known is a variant, and has no numbers that could be taken for zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// Both durations.
    Known(Known),
    /// Neither, for this reason.
    Unknown(Reason),
}

impl Measurement {
    /// `quality`, in the words of the module.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Known(Known { method: Method::Events, .. }) => "event-based",
            Self::Known(Known { method: Method::Samples { .. }, .. }) => "sampled",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// A completed interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose.
    pub place: Arc<Place>,
    /// The epoch.
    pub epoch: EpochId,
    /// Its number in the epoch, from 1.
    pub interval: u64,
    /// Where it starts behind the origin of the epoch, in nanoseconds.
    pub start_ns: u64,
    /// T, in nanoseconds.
    pub duration_ns: u64,
    /// When it started by a clock on the wall, as `yang:date-and-time`, where somebody says so.
    pub wall_clock_start: Option<Box<str>>,
    /// What was mapped to the queue.
    pub priorities: Priorities,
    /// What is known.
    pub measurement: Measurement,
}

/// A relationship of the module that does not hold.
// QUE-yang.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `interval-id` 0.
    Interval,
    /// `duration-ns`, not 1 to a day.
    Duration(u64),
    /// `start-offset-ns`, which is beyond 2^53 - 1.
    Start(u64),
    /// Start and duration, whose sum is beyond 2^53 - 1.
    End(u64, u64),
    /// `gated-backlog-ns` above `backlog-ns`.
    GatedAboveBacklog(u64, u64),
    /// `backlog-ns` above `duration-ns`.
    BacklogAboveDuration(u64, u64),
    /// `absolute-error-ns` above `duration-ns`.
    ErrorAboveDuration(u64, u64),
    /// `sample-period-ns` 0.
    Period,
    /// `sample-period-ns` above `duration-ns`.
    PeriodAboveDuration(u64, u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Interval => f.write_str("interval-id 0, expected 1 or more"),
            Self::Duration(found) => {
                write!(f, "duration-ns {found}, expected 1 to {DURATION_NS_MAX}")
            }
            Self::Start(found) => {
                write!(f, "start-offset-ns {found}, expected 0 to {OFFSET_NS_MAX}")
            }
            Self::End(start, duration) => write!(
                f,
                "start-offset-ns {start} and duration-ns {duration}, expected an end of at most \
                 {OFFSET_NS_MAX}"
            ),
            Self::GatedAboveBacklog(gated, backlog) => {
                write!(f, "gated-backlog-ns {gated}, expected at most backlog-ns {backlog}")
            }
            Self::BacklogAboveDuration(backlog, duration) => {
                write!(f, "backlog-ns {backlog}, expected at most duration-ns {duration}")
            }
            Self::ErrorAboveDuration(error, duration) => {
                write!(f, "absolute-error-ns {error}, expected at most duration-ns {duration}")
            }
            Self::Period => f.write_str("sample-period-ns 0, expected 1 or more"),
            Self::PeriodAboveDuration(period, duration) => {
                write!(f, "sample-period-ns {period}, expected at most duration-ns {duration}")
            }
        }
    }
}

impl Row {
    /// The end of the interval behind the origin of its epoch, in nanoseconds.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    /// Every relationship of the module that does not hold. None in a row that may be published.
    // QUE-def.1, QUE-id.3, QUE-id.4, QUE-err.1, QUE-err.2, QUE-yang.1, QUE-ex.1
    pub fn faults(&self) -> impl Iterator<Item = Fault> + use<> {
        let (start, duration) = (self.start_ns, self.duration_ns);
        let own = [
            (self.interval == 0).then_some(Fault::Interval),
            (duration == 0 || duration > DURATION_NS_MAX).then_some(Fault::Duration(duration)),
            (start > OFFSET_NS_MAX).then_some(Fault::Start(start)),
            (start <= OFFSET_NS_MAX
                && duration <= DURATION_NS_MAX
                && self.end_ns() > OFFSET_NS_MAX)
                .then_some(Fault::End(start, duration)),
        ];
        let measured = match self.measurement {
            Measurement::Unknown(_) => [None; 5],
            Measurement::Known(known) => known.faults(duration),
        };
        own.into_iter().chain(measured).flatten()
    }
}

impl Known {
    fn faults(&self, duration: u64) -> [Option<Fault>; 5] {
        let &Self { method, gated_ns: gated, backlog_ns: backlog, error_ns: error } = self;
        let period = match method {
            Method::Events => None,
            Method::Samples { period_ns } => Some(period_ns),
        };
        [
            (gated > backlog).then_some(Fault::GatedAboveBacklog(gated, backlog)),
            (backlog > duration).then_some(Fault::BacklogAboveDuration(backlog, duration)),
            (error > duration).then_some(Fault::ErrorAboveDuration(error, duration)),
            period.filter(|period| *period == 0).map(|_| Fault::Period),
            period
                .filter(|period| *period > duration)
                .map(|period| Fault::PeriodAboveDuration(period, duration)),
        ]
    }
}
