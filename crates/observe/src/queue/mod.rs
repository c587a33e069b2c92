//! PFC queue telemetry: how long a queue had traffic that waited, and how long the gate that
//! received PFC closes stood before it (YANG draft).
//!
//! [`event`] is what a source tells; [`meter`] keeps the time of a source and a [`timeline`] for
//! each of its queues, which [`sweep`] (transitions) or [`sample`] (samples) integrates into
//! completed intervals, each a [`row::Row`]. [`totals`] is for sources that only have both times
//! apart. On the other side [`aggregate`] judges and sums rows of others.
//!
//! No clock and no randomness here: the time of an event and fresh epoch ids are arguments.
//! Nothing here knows why traffic waited. A gate that was closed while a queue had traffic is a
//! conjunction: not the delay that PFC caused, no proof of where congestion is, and no instruction
//! to anybody.
// QUE-use.1

use alloc::boxed::Box;
use core::fmt;

use crate::pfc::Priority;

pub mod aggregate;
pub mod event;
pub mod meter;
pub mod row;
mod sample;
mod sweep;
mod timeline;
pub mod totals;

/// The longest interval: a day.
// QUE-id.3
pub const DURATION_NS_MAX: u64 = 86_400_000_000_000;

/// The latest end of an interval behind the origin of its epoch.
// QUE-id.3: whole numbers up to here are exact in XPath.
pub const OFFSET_NS_MAX: u64 = (1 << 53) - 1;

/// Characters of a `queue-id`, at most.
pub const QUEUE_ID_CHARS_MAX: usize = 128;

/// Whether a character can be in a name: those of a YANG string (RFC 7950, section 14).
pub const fn is_yang_character(character: char) -> bool {
    let code = character as u32;
    match code {
        0x9 | 0xa | 0xd => true,
        0..0x20 | 0xfdd0..=0xfdef => false,
        _ => code & 0xfffe != 0xfffe,
    }
}

/// Whose measurement: one queue of one interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The interface, as the device calls it.
    pub interface: Box<str>,
    /// The queue, as the device calls it within the interface: no index and no priority.
    pub queue: Box<str>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {:?}, queue {:?}", self.interface, self.queue)
    }
}

/// The priorities that are mapped to a queue: a set of one to eight.
// QUE-id.2
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priorities(u8);

impl Priorities {
    /// The set of these; none for no priority at all. One that comes twice is there once.
    pub fn new(priorities: impl IntoIterator<Item = Priority>) -> Option<Self> {
        let bits = priorities.into_iter().fold(0, |bits, priority| bits | bit(priority));
        (bits != 0).then_some(Self(bits))
    }

    /// One priority alone.
    pub const fn one(priority: Priority) -> Self {
        Self(1 << priority.get())
    }

    /// Whether it is in the set.
    pub const fn contains(self, priority: Priority) -> bool {
        self.0 & (1 << priority.get()) != 0
    }

    /// The only one, where there is no other.
    pub fn only(self) -> Option<Priority> {
        let mut all = self.iter();
        all.next().filter(|_| all.next().is_none())
    }

    /// All of them, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Priority> {
        Priority::ALL.into_iter().filter(move |priority| self.contains(*priority))
    }

    /// The set of these bits, the lowest for priority 0; none for no priority at all.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// A bit for each, the lowest for priority 0. Never 0.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// The bit of a priority.
pub(crate) const fn bit(priority: Priority) -> u8 {
    1 << priority.get()
}

impl fmt::Debug for Priorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Priorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, priority) in self.iter().enumerate() {
            let comma = if nth == 0 { "" } else { ", " };
            write!(f, "{comma}{}", priority.get())?;
        }
        Ok(())
    }
}

/// A UUID that names an epoch of a queue. Who makes one makes it fresh: never the same twice.
// QUE-id.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochId([u8; 16]);

impl EpochId {
    /// A random UUID (RFC 9562, version 4) out of 128 random bits, six of which it replaces.
    pub const fn random(mut octets: [u8; 16]) -> Self {
        octets[6] = octets[6] & 0x0f | 0x40;
        octets[8] = octets[8] & 0x3f | 0x80;
        Self(octets)
    }

    /// The same id out of its 16 octets.
    pub const fn from_octets(octets: [u8; 16]) -> Self {
        Self(octets)
    }

    /// Its 16 octets.
    pub const fn octets(self) -> [u8; 16] {
        self.0
    }

    /// Reads `yang:uuid`: groups of 8, 4, 4, 4 and 12 hexadecimal digits in either case. None for
    /// anything else.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 36 {
            return None;
        }
        let mut octets = [0; 16];
        let mut digits = 0;
        for (at, &character) in text.iter().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if character != b'-' {
                    return None;
                }
                continue;
            }
            let digit = match character {
                b'0'..=b'9' => character - b'0',
                b'a'..=b'f' => character - b'a' + 10,
                b'A'..=b'F' => character - b'A' + 10,
                _ => return None,
            };
            let octet = octets.get_mut(digits / 2)?;
            *octet = *octet << 4 | digit;
            digits += 1;
        }
        Some(Self(octets))
    }
}

/// The canonical form: lower case.
impl fmt::Display for EpochId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, octet) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{octet:02x}")?;
        }
        Ok(())
    }
}

/// Why an interval is not known, in the words of the module.
// QUE-err.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The source does not tell what is needed.
    Unavailable,
    /// Which packet is next for service is not known, and it matters.
    CandidateUnresolved,
    /// Events are missing.
    CaptureGap,
    /// Anything else.
    Other,
}

impl Reason {
    /// All, in the order of the module.
    pub const ALL: [Self; 4] =
        [Self::Unavailable, Self::CandidateUnresolved, Self::CaptureGap, Self::Other];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::CandidateUnresolved => "candidate-unresolved",
            Self::CaptureGap => "capture-gap",
            Self::Other => "other",
        }
    }
}
