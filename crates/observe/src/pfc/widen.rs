//! 64 bits of a counter that has fewer (PFC draft, on export): its wraps are counted, and a reset
//! is told from them.
//!
//! That takes two promises which a source has to make before it is read: how fast it can count,
//! so that no wrap goes by between two polls; and a sign by which a reset shows. A source without
//! them is refused, because a reset would look like a wrap. A poll that came too late, a reset or
//! a clock that was set ends a run: the total begins again at zero and says so.

use core::fmt;

use super::interval::{Pace, Tick};

/// Bits of a source's counter, 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(u32);

impl Width {
    /// So many bits; none outside 1 to 64.
    pub const fn new(bits: u32) -> Option<Self> {
        if 1 <= bits && bits <= 64 { Some(Self(bits)) } else { None }
    }

    /// The bits.
    pub const fn get(self) -> u32 {
        self.0
    }

    const fn max(self) -> u64 {
        u64::MAX >> (64 - self.0)
    }
}

/// How a source tells a reset from a wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetSign {
    /// Each reading names the counter instance, which is another one after every reset.
    Instance,
    /// Each reading says how long the counter has been counting.
    Uptime {
        /// How coarse that time is: it may be too short by this much.
        resolution_ms: u64,
    },
    /// The source counts its resets and says the number with each reading.
    Resets,
    /// It does not.
    None,
}

/// What a source promises of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Bits.
    pub width: Width,
    /// The most that it counts.
    pub pace: Pace,
    /// It is polled at least this often.
    pub poll_ms_max: u64,
    /// How a reset shows.
    pub sign: ResetSign,
}

/// Why a source cannot be widened, and so not exported: the condition that it does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A reset cannot be told from a wrap.
    ResetNotTold {
        /// Bits of its counter.
        width: u32,
    },
    /// The counter can go round between two polls.
    PollTooSlow {
        /// Bits of its counter.
        width: u32,
        /// How often it would be polled.
        poll_ms: u64,
        /// How often it would have to be; 0 where no poll is fast enough.
        needed_ms: u64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ResetNotTold { width } => write!(
                f,
                "a counter of {width} bits whose resets do not show, expected a sign that tells \
                 them from wraps"
            ),
            Self::PollTooSlow { width, poll_ms, needed_ms: 0 } => write!(
                f,
                "a counter of {width} bits polled every {poll_ms} ms can wrap within a millisecond"
            ),
            Self::PollTooSlow { width, poll_ms, needed_ms } => write!(
                f,
                "a counter of {width} bits polled every {poll_ms} ms can wrap unseen, expected at \
                 most {needed_ms} ms"
            ),
        }
    }
}

impl core::error::Error for Refused {}

/// What a source says at one poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// The counter.
    pub value: u64,
    /// When it was read.
    pub tick: Tick,
    /// What stands beside it, as the source has promised: instance, uptime in milliseconds, or
    /// number of resets. Nothing where there is no sign.
    pub sign: Option<u64>,
}

/// A widened counter at one poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widened {
    /// The total of this run.
    pub total: u64,
    /// Which run, from 1 on; none where resets do not show, so that nobody knows.
    pub run: Option<u64>,
    /// Why the run begins here, if it does.
    pub begins: Option<Begins>,
}

/// Why a total begins again at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// It is the first reading.
    First,
    /// The source was reset.
    Reset,
    /// The counter can have gone round since the last reading.
    PollMissed,
    /// The clock was set or started again, so nobody knows how long ago the last reading was.
    ClockStepped,
    /// The counter went on by more than was promised.
    TooMany,
}

impl Begins {
    /// The words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::First => "first reading",
            Self::Reset => "reset",
            Self::PollMissed => "poll missed",
            Self::ClockStepped => "clock stepped",
            Self::TooMany => "more than promised",
        }
    }
}

/// Why a poll gives no reading. The counter is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReading {
    /// More bits than were promised.
    TooWide {
        /// The value.
        value: u64,
        /// Bits promised.
        width: u32,
    },
    /// The promised sign is not there.
    NoSign,
    /// It is not from later than the last one.
    NotLater,
}

impl fmt::Display for NoReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooWide { value, width } => {
                write!(f, "counter {value}, expected at most {width} bits")
            }
            Self::NoSign => f.write_str("no sign of resets beside the counter, expected one"),
            Self::NotLater => f.write_str("a reading that is not later than the last one"),
        }
    }
}

impl core::error::Error for NoReading {}

/// A counter of up to 64 bits on its way to one of 64.
#[derive(Clone, Debug)]
pub struct Widening {
    promise: Promise,
    run: u64,
    last: Option<(Raw, u64)>,
}

impl Widening {
    /// A counter that has not been read.
    ///
    /// # Errors
    /// The condition that the source does not meet. One of 64 bits meets both: it goes round in
    /// centuries, and a total that begins at zero after a reset is what is exported.
    // PFC-exp.3
    pub fn new(promise: Promise) -> Result<Self, Refused> {
        let width = promise.width.get();
        if width < 64 {
            if promise.sign == ResetSign::None {
                return Err(Refused::ResetNotTold { width });
            }
            if !sees_wraps(&promise, promise.poll_ms_max) {
                let poll_ms = promise.poll_ms_max;
                return Err(Refused::PollTooSlow {
                    width,
                    poll_ms,
                    needed_ms: needed_ms(&promise),
                });
            }
        }
        Ok(Self { promise, run: 0, last: None })
    }

    /// Takes what a poll gave. A poll that gave nothing is simply not told.
    ///
    /// # Errors
    /// Why this is no reading.
    // PFC-exp.3, PFC-sem.1
    pub fn read(&mut self, raw: Raw) -> Result<Widened, NoReading> {
        let width = self.promise.width;
        if raw.value > width.max() {
            return Err(NoReading::TooWide { value: raw.value, width: width.get() });
        }
        if self.promise.sign != ResetSign::None && raw.sign.is_none() {
            return Err(NoReading::NoSign);
        }
        let going_on = match &self.last {
            None => Err(Begins::First),
            Some((last, _)) if last.tick.clock == raw.tick.clock && last.tick.ms >= raw.tick.ms => {
                return Err(NoReading::NotLater);
            }
            Some((last, total)) => self.increments(last, &raw).map(|more| total.wrapping_add(more)),
        };
        let begins = going_on.err();
        if begins.is_some() {
            // 2^64 runs do not happen: each takes a poll.
            self.run = self.run.saturating_add(1);
        }
        // What a narrow counter says at its first reading is what is left of nobody knows how many
        // rounds, so a run counts from there on. One of 64 bits has its whole total.
        let start = if width.get() == 64 { raw.value } else { 0 };
        let total = going_on.unwrap_or(start);
        self.last = Some((raw, total));
        let run = (self.promise.sign != ResetSign::None).then_some(self.run);
        Ok(Widened { total, run, begins })
    }

    /// How far the counter went on since the last reading, if it is the same run.
    fn increments(&self, last: &Raw, raw: &Raw) -> Result<u64, Begins> {
        if last.tick.clock != raw.tick.clock {
            return Err(Begins::ClockStepped);
        }
        let elapsed_ms = raw.tick.ms.saturating_sub(last.tick.ms);
        if self.was_reset(last, raw, elapsed_ms) {
            return Err(Begins::Reset);
        }
        if !sees_wraps(&self.promise, elapsed_ms) {
            return Err(Begins::PollMissed);
        }
        let more = raw.value.wrapping_sub(last.value) & self.promise.width.max();
        let most = self.promise.pace.increments_max(elapsed_ms);
        if u128::from(more) > most { Err(Begins::TooMany) } else { Ok(more) }
    }

    fn was_reset(&self, last: &Raw, raw: &Raw, elapsed_ms: u64) -> bool {
        match self.promise.sign {
            ResetSign::None => false,
            ResetSign::Instance | ResetSign::Resets => last.sign != raw.sign,
            // It has counted for at least as long as this only where it counted at the last
            // reading; another millisecond for what both clocks cut off.
            ResetSign::Uptime { resolution_ms } => {
                let needed = elapsed_ms.saturating_add(resolution_ms).saturating_add(1);
                raw.sign.is_none_or(|uptime_ms| uptime_ms < needed)
            }
        }
    }
}

/// Whether the counter cannot go round in so many milliseconds. A whole round would look like
/// none, so even that is too many.
fn sees_wraps(promise: &Promise, elapsed_ms: u64) -> bool {
    promise.pace.increments_max(elapsed_ms) < 1 << promise.width.get()
}

/// The longest time in which the counter cannot go round; 0 where there is none.
fn needed_ms(promise: &Promise) -> u64 {
    let (mut good, mut bad) = (0, promise.poll_ms_max);
    while bad.saturating_sub(good) > 1 {
        let middle = good + (bad - good) / 2;
        if sees_wraps(promise, middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}
