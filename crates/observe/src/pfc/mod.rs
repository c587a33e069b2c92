//! Counters of priority flow control frames: readings, what lies between two of them, and where
//! they come from (PFC draft).
//!
//! A [`Reading`] says what a counter said at a time, and no more. What happened between two of
//! them is an [`interval::Interval`], which is a number only where somebody who knows says that
//! both are of one run of one counter; [`instance`] is how an exporter says so. [`widen`] makes 64
//! bits of fewer, [`qualify`] holds what a source must meet before it is exported, [`record`] is the
//! record on the wire, [`collect`] keeps what others send, and [`beside`] says which readings have
//! their time in common with a flow.
//!
//! No clock and no device here: readings and the times of them are arguments. Nothing here knows
//! why a counter counts: congestion, a fault, or a stranger that sends frames.

use core::fmt;

pub mod beside;
pub mod collect;
pub mod instance;
pub mod interval;
pub mod qualify;
pub mod record;
pub mod widen;

/// Which way the counted frames went.
// PFC-id.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the link.
    Received,
    /// Onto the link.
    Transmitted,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Received, Self::Transmitted];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Transmitted => "transmitted",
        }
    }
}

/// The index of a bit of the class-enable vector, 0 to 7; no PCP of a tag, no queue, no bitmap.
// PFC-id.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// All eight, in ascending order.
    pub const ALL: [Self; 8] = {
        let mut all = [Self(0); 8];
        let mut index = 0;
        while index < 8 {
            all[index as usize] = Self(index);
            index += 1;
        }
        all
    };

    /// The priority with this index; none above 7.
    pub const fn new(index: u8) -> Option<Self> {
        if index < 8 { Some(Self(index)) } else { None }
    }

    /// 0 to 7.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Whose counter it is: one place, one interface, one direction, one priority.
// PFC-id.1, PFC-id.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// `observationDomainId` of the message.
    pub domain: u32,
    /// `observationPointId`.
    pub point: u64,
    /// `ingressPhysicalInterface` or `egressPhysicalInterface`, by the direction. Of a member
    /// where there is an aggregate.
    pub interface: u32,
    /// Received or transmitted.
    pub direction: Direction,
    /// The priority.
    pub priority: Priority,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, point, interface, direction, priority } = self;
        let (direction, priority) = (direction.word(), priority.get());
        write!(
            f,
            "domain {domain}, point {point}, interface {interface}, {direction}, priority {priority}"
        )
    }
}

/// What a counter said. Where there was no reading there is no value of this type: zero is one
/// that was read.
// PFC-op.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Whose.
    pub scope: Scope,
    /// When the counter was read, in milliseconds since 1970; never when it was exported.
    // PFC-rec.2
    pub time_ms: u64,
    /// The total, which goes on from 0 behind 2^64 - 1.
    // PFC-sem.1
    pub total: u64,
}
