//! Counters of priority flow control frames that a device keeps itself: where they are read, and
//! what has to hold before they are (PFC draft, on counting rules, counter semantics and export).
//!
//! A [`Source`] gives what each counter says at a poll, when that was read, and which counter it
//! is as far as that is known; or why it says nothing. It does not know what is made of it:
//! [`poller`] widens, names and dates. [`drivers`] and [`sonic`] state which conditions their
//! counters meet by themselves; the operator attests the rest by name, and [`qualified`] refuses
//! what nobody vouches for. Nothing here can look into a device: what is said and false is
//! exported all the same.

pub mod drivers;
pub mod ethtool;
mod ioctl;
pub mod poller;
pub mod redis;
pub use redis::Address as RedisAddress;
pub mod scopes;
pub mod sonic;

use std::fmt;
use std::sync::Arc;

use observe::pfc::Direction;
use observe::pfc::interval::{Pace, Tick};
use observe::pfc::qualify::{Condition, Qualification, Qualified, Unqualified};
use observe::pfc::widen::{Promise, Refused, ResetSign, Widening, Width};

/// When something was read, by the clock of the day and by one that is never set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// The other clock.
    pub tick: Tick,
}

/// Tells the time.
pub trait Clock {
    /// Now.
    fn now(&self) -> Moment;
}

/// What one counter says: a number, or two that count what belongs together and are added once
/// each has been widened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    One(u64),
    /// Two, such as requests to pause and requests to go on.
    Two(u64, u64),
}

/// Why a counter has no reading at a poll. Never zero.
// PFC-op.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Absent {
    /// The device has no such port at the moment.
    NoPort,
    /// The port has no such counter at the moment, as with drivers that show counters of enabled
    /// priorities only.
    NoCounter,
    /// What stands there is no number of 64 bits.
    NoNumber,
    /// It is zero, and its driver says zero as well of what it could not read.
    DoubtfulZero,
    /// The device could not be asked, or answered with an error.
    Unanswered,
    /// The counters carry no time stamp, and are to be dated by it.
    NoTimeStamp,
    /// Their time stamp is from later than now, so of another clock.
    OtherClock,
    /// Nobody has read the counter since the last reading.
    Stale,
    /// Whoever reads the counters for the database is switched off.
    Disabled,
    /// The counters are set to zero whenever they are read for the database.
    ClearedOnRead,
    /// The device changed its mind about which counter is which while they were read.
    Unsettled,
    /// The number has more bits than the counter, or is not from later.
    Contradictory,
    /// There is no room for another port.
    NoRoom,
    /// Another port, of this source or of another, has the same interface number at the same
    /// observation point.
    Contested,
    /// The device names the same counters for another port as well.
    SharedObject,
}

impl Absent {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::NoPort,
        Self::NoCounter,
        Self::NoNumber,
        Self::DoubtfulZero,
        Self::Unanswered,
        Self::NoTimeStamp,
        Self::OtherClock,
        Self::Stale,
        Self::Disabled,
        Self::ClearedOnRead,
        Self::Unsettled,
        Self::Contradictory,
        Self::NoRoom,
        Self::Contested,
        Self::SharedObject,
    ];

    /// Its name as a label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoPort => "no-port",
            Self::NoCounter => "no-counter",
            Self::NoNumber => "no-number",
            Self::DoubtfulZero => "doubtful-zero",
            Self::Unanswered => "unanswered",
            Self::NoTimeStamp => "no-time-stamp",
            Self::OtherClock => "other-clock",
            Self::Stale => "stale",
            Self::Disabled => "disabled",
            Self::ClearedOnRead => "cleared-on-read",
            Self::Unsettled => "unsettled",
            Self::Contradictory => "contradictory",
            Self::NoRoom => "no-room",
            Self::Contested => "contested",
            Self::SharedObject => "shared-object",
        }
    }

    /// What it means, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoPort => "the device has no such port",
            Self::NoCounter => "the port has no such counter now",
            Self::NoNumber => "what stands there is no number of 64 bits",
            Self::DoubtfulZero => {
                "it is zero, which its driver also says of what it could not read"
            }
            Self::Unanswered => "the device did not answer",
            Self::NoTimeStamp => {
                "the counters carry no time stamp, which is a number of nanoseconds"
            }
            Self::OtherClock => {
                "their time stamp is from later than now: of another clock than the one that is \
                 never set, CLOCK_MONOTONIC"
            }
            Self::Stale => "the counter has not been read anew",
            Self::Disabled => {
                "nobody says that the counters are being read: their polling is not enabled"
            }
            Self::ClearedOnRead => "the counters are cleared whenever they are read",
            Self::Unsettled => "the counters changed places while they were read",
            Self::Contradictory => "the number cannot be that of this counter",
            Self::NoRoom => "no room for another port, see pfc.ports_max",
            Self::Contested => {
                "another port has the same interface number at its observation point"
            }
            Self::SharedObject => "the device has the same counters under another port's name",
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Values by direction ([`Direction::ALL`]) and priority.
pub type Counters = [[Result<Value, Absent>; 8]; 2];

/// What one port says at a poll.
// PFC-id.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRead {
    /// `ingressPhysicalInterface` and `egressPhysicalInterface`.
    pub interface: u32,
    /// When its counters were read.
    // PFC-rec.2
    pub at: Moment,
    /// Another number wherever the source knows that it is another counter, or cannot know that it
    /// is the same one.
    pub instance: u64,
    /// The counters.
    pub counters: Counters,
}

/// A port that was polled: its name, and what it says or why it says nothing.
pub type Polled = (Arc<str>, Result<PortRead, Absent>);

/// Something that holds counters of ports.
pub trait Source {
    /// Reads every port there is. One that is missing altogether is forgotten.
    ///
    /// # Errors
    /// In a line: why nothing at all could be read.
    fn poll(&mut self, clock: &dyn Clock) -> Result<Vec<Polled>, String>;
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn poll(&mut self, clock: &dyn Clock) -> Result<Vec<Polled>, String> {
        (**self).poll(clock)
    }
}

/// What a kind of source states of its counters of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Bits of each number.
    pub width: u32,
    /// Conditions that it meets by itself; `wide` is found out and is not among them.
    pub stated: &'static [Condition],
}

/// What is said of a source beyond its own statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said<'a> {
    /// What the operator attests.
    pub attested: &'a [Condition],
    /// Resets show in the instance, on the operator's word.
    pub resets_show: bool,
    /// The most that a counter counts.
    pub pace: Pace,
    /// It is polled at least this often.
    pub poll_ms_max: u64,
}

/// Why a source may not be exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Conditions that nobody vouches for.
    Unqualified(Unqualified),
    /// Its counters are narrow and cannot be widened.
    Narrow(Refused),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unqualified(unqualified) => unqualified.fmt(f),
            Self::Narrow(refused) => write!(f, "wide: {refused}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What counters of a source promise, once it is refused or not.
pub fn promise(statement: &Statement, said: &Said<'_>) -> Option<Promise> {
    let sign = if said.resets_show { ResetSign::Instance } else { ResetSign::None };
    let width = Width::new(statement.width)?;
    Some(Promise { width, pace: said.pace, poll_ms_max: said.poll_ms_max, sign })
}

/// Whether a source may be exported in a direction.
///
/// # Errors
/// The conditions that it does not meet.
// PFC-count.4, PFC-exp.3
pub fn qualified(
    direction: Direction,
    statement: &Statement,
    said: &Said<'_>,
) -> Result<Qualified, Refusal> {
    // A width out of range would be a fault of our own tables, which a test holds.
    let promise = promise(statement, said).expect("a width of 1 to 64 bits");
    Widening::new(promise).map_err(Refusal::Narrow)?;
    let nothing = Qualification::new(direction).stated(Condition::Wide);
    let stated = statement.stated.iter().copied().fold(nothing, Qualification::stated);
    let all = said.attested.iter().copied().fold(stated, Qualification::attested);
    all.check().map_err(Refusal::Unqualified)
}
