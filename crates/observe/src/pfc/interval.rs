//! What lies between two readings: a number where it is known, a reason where it is not (PFC
//! draft, on counter semantics and interval counts).
//!
//! The fields of a record are never enough for a number: a larger total does not prove that the
//! counter was not reset in between, nor a smaller one that it was. What is known beyond them is
//! a [`Known`], from whoever can know: the source itself, or an operator who vouches for it.

use core::fmt;

use super::{Reading, Scope};

/// The most that a counter can count, in increments per second: a property of the link, stated
/// for its highest speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pace(u64);

/// Bits of the shortest frame with its preamble. The gap between frames is left out, because it
/// can shrink on the way.
const FRAME_BITS_MIN: u64 = (64 + 8) * 8;

impl Pace {
    /// So many increments per second at most; none for 0, which would be a counter that cannot
    /// count.
    pub const fn per_second(increments: u64) -> Option<Self> {
        if increments == 0 { None } else { Some(Self(increments)) }
    }

    /// Of a link that carries nothing but the shortest frames; none for a link without speed.
    pub const fn of_link(bits_per_second: u64) -> Option<Self> {
        Self::per_second(bits_per_second.div_ceil(FRAME_BITS_MIN))
    }

    /// Increments per second.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The most in so many milliseconds of a clock that cuts off what is below one.
    pub fn increments_max(self, elapsed_ms: u64) -> u128 {
        // Two readings whose milliseconds differ by n are less than n + 1 apart. Below 2^128:
        // both factors are at most 2^64.
        (u128::from(self.0) * (u128::from(elapsed_ms) + 1)).div_ceil(1000)
    }
}

/// A time on a clock that is never set, which is how far apart two readings are. An observation
/// time is one only where somebody vouches that the clock behind it was never stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Tells one run of a clock from another: another boot, or the time behind a step.
    pub clock: u64,
    /// Milliseconds.
    pub ms: u64,
}

/// What is reliably known of a counter at a reading, beyond what a record says. Nothing, unless
/// somebody says it.
// PFC-sem.2
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Which counter it is: another number for the counter of replaced hardware, or of an object
    /// that was made again.
    pub instance: Option<u64>,
    /// Which run of that counter: another number after every reset, and wherever it is not known
    /// that there was none.
    pub run: Option<u64>,
    /// When it was read, by a clock that is never set.
    pub tick: Option<Tick>,
    /// The most that it can count.
    pub pace: Option<Pace>,
}

/// A reading, and what is known beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The reading.
    pub reading: Reading,
    /// What is known of the counter.
    pub known: Known,
}

/// Frames that one counter counted between two readings. It belongs to one scope and there is no
/// way to add it to another: one frame counts under several priorities, so a sum over them is no
/// number of frames.
///
/// ```compile_fail
/// # use observe::pfc::interval::Frames;
/// fn both(a: Frames, b: Frames) -> Frames {
///     a + b
/// }
/// ```
///
/// ```compile_fail
/// # use observe::pfc::interval::Frames;
/// fn all(of_each_priority: [Frames; 8]) -> Frames {
///     of_each_priority.into_iter().sum()
/// }
/// ```
// PFC-count.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    scope: Scope,
    count: u64,
    /// At least 1.
    elapsed_ms: u64,
}

impl Frames {
    /// Whose frames.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The time between both readings in milliseconds, at least 1.
    pub const fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms
    }
}

/// Frames per second of one counter, on average. As [`Frames`], it cannot be added to that of
/// another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond {
    scope: Scope,
    value: f64,
    least: f64,
    most: Option<f64>,
}

impl PerSecond {
    /// Whose frames.
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// Frames per second, as far apart as the times of the readings are.
    pub const fn get(&self) -> f64 {
        self.value
    }

    /// It was more than this, unless it was nothing: the times are whole milliseconds, so the
    /// readings were less than one farther apart.
    pub const fn least(&self) -> f64 {
        self.least
    }

    /// It was less than this, unless it was nothing: or less than one nearer. None where they can
    /// have been next to each other.
    pub const fn most(&self) -> Option<f64> {
        self.most
    }
}

/// What a counter counted between two readings.
// PFC-sem.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Exactly so many.
    Exact(Frames),
    /// Nobody knows, for this reason. Not zero.
    Unknown(Reason),
}

/// How fast a counter counted between two readings.
// PFC-sem.2
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So fast on average, within bounds.
    Average(PerSecond),
    /// Nobody knows, for this reason. Not zero.
    Unknown(Reason),
}

/// Why an interval is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// There is no reading before it.
    NoEarlier,
    /// The readings before it are not kept.
    NotKept,
    /// The readings are of two counters by their scope.
    OtherScope,
    /// Which counter instance was read is not known on both sides.
    InstanceUnknown,
    /// Two instances were read.
    InstanceReplaced,
    /// Whether the counter was reset is not known.
    ResetUnknown,
    /// The readings are of two runs: the counter was reset, or whoever widens it lost track.
    OtherRun,
    /// How much time went by is not known.
    TimeUnknown,
    /// The clock was set, or started again.
    ClockStepped,
    /// The second reading is not from later, as far as milliseconds tell.
    NotLater,
    /// The most that the counter can count is not known.
    PaceUnknown,
    /// The counter can have gone round.
    TooLong,
    /// More than the counter can count: something that was said of it does not hold.
    TooMany,
    /// The readings did not follow each other, and something is not known of one between them.
    Broken,
}

impl Reason {
    /// The words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoEarlier => "no earlier reading",
            Self::NotKept => "no earlier reading is kept",
            Self::OtherScope => "readings of two scopes",
            Self::InstanceUnknown => "the counter instance is not known",
            Self::InstanceReplaced => "the counter instance was replaced",
            Self::ResetUnknown => "whether the counter was reset is not known",
            Self::OtherRun => "two runs of the counter",
            Self::TimeUnknown => "the time between the readings is not known",
            Self::ClockStepped => "the clock was set or started again",
            Self::NotLater => "the second reading is not later",
            Self::PaceUnknown => "the most that the counter can count is not known",
            Self::TooLong => "2^64 increments are possible in the time",
            Self::TooMany => "more than the counter can count in the time",
            Self::Broken => "something is not known of a reading between them",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Interval {
    /// What was counted between two readings, of which `earlier` came first.
    // PFC-sem.2, PFC-sem.3
    pub fn between(earlier: &Sighting, later: &Sighting) -> Self {
        counted(earlier, later).map_or_else(Self::Unknown, Self::Exact)
    }

    /// How fast that was.
    // PFC-sem.2: of an unknown count no rate is known.
    pub fn rate(&self) -> Rate {
        match self {
            Self::Unknown(reason) => Rate::Unknown(*reason),
            Self::Exact(frames) => {
                let over = |elapsed_ms: u64| {
                    approximately(frames.count) * 1000.0 / approximately(elapsed_ms)
                };
                let elapsed_ms = frames.elapsed_ms;
                Rate::Average(PerSecond {
                    scope: frames.scope,
                    value: over(elapsed_ms),
                    least: over(elapsed_ms.saturating_add(1)),
                    most: (elapsed_ms > 1).then(|| over(elapsed_ms - 1)),
                })
            }
        }
    }
}

fn counted(earlier: &Sighting, later: &Sighting) -> Result<Frames, Reason> {
    let (a, b) = (&earlier.known, &later.known);
    let count = later.reading.total.wrapping_sub(earlier.reading.total);
    if earlier.reading.scope != later.reading.scope {
        return Err(Reason::OtherScope);
    }
    same(a.instance, b.instance, Reason::InstanceUnknown, Reason::InstanceReplaced)?;
    // Neither a larger total says that there was no reset, nor a smaller one that there was.
    same(a.run, b.run, Reason::ResetUnknown, Reason::OtherRun)?;
    let elapsed_ms = elapsed(a.tick, b.tick)?;
    let pace = a.pace.zip(b.pace).map(|(a, b)| a.max(b));
    let pace = pace.ok_or(if elapsed_ms == 0 { Reason::NotLater } else { Reason::PaceUnknown })?;
    let most = pace.increments_max(elapsed_ms);
    // Exactly 2^64 increments look like none.
    if most >= 1 << 64 {
        return Err(Reason::TooLong);
    }
    if u128::from(count) > most {
        return Err(Reason::TooMany);
    }
    if elapsed_ms == 0 {
        return Err(Reason::NotLater);
    }
    Ok(Frames { scope: later.reading.scope, count, elapsed_ms })
}

fn same(a: Option<u64>, b: Option<u64>, unknown: Reason, other: Reason) -> Result<(), Reason> {
    match a.zip(b) {
        None => Err(unknown),
        Some((a, b)) if a != b => Err(other),
        Some(_) => Ok(()),
    }
}

fn elapsed(a: Option<Tick>, b: Option<Tick>) -> Result<u64, Reason> {
    let (a, b) = a.zip(b).ok_or(Reason::TimeUnknown)?;
    if a.clock != b.clock {
        return Err(Reason::ClockStepped);
    }
    b.ms.checked_sub(a.ms).ok_or(Reason::NotLater)
}

#[expect(clippy::cast_precision_loss, reason = "a rate is an average; 53 bits of it are enough")]
fn approximately(n: u64) -> f64 {
    n as f64
}
