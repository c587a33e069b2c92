//! What a source must meet before its counters are exported (PFC draft, on record identity,
//! counting rules and export).
//!
//! Each condition is stated by the source, which knows what it counts, or attested by the
//! operator, who knows the device. Nothing here can look: what is false and said is exported all
//! the same, on the word of who said it.

use core::fmt;

use super::Direction;

/// A condition on a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// The counter is that of one physical interface, never of an aggregate.
    // PFC-id.2
    PhysicalInterface,
    /// Its index is the bit of the class-enable vector, no tag's priority and no queue.
    // PFC-id.3
    VectorIndex,
    /// Received frames count as they come from the link, before enablement, policy or watchdog.
    // PFC-count.1
    BeforeProcessing,
    /// Transmitted frames count when they are known to have been sent, not when they were asked
    /// for.
    // PFC-count.1
    ConfirmedEmission,
    /// Every frame counts: no sample, no estimate.
    // PFC-count.2
    EveryFrame,
    /// Each set bit counts once, whatever the quanta; a clear bit does not.
    // PFC-count.3
    EachSetBit,
    /// Frames that are no valid PFC frames do not count.
    // PFC-count.4
    OnlyValid,
    /// The time of each reading is when the counter was read.
    // PFC-rec.2
    TimeOfReading,
    /// It starts at zero, and again after a reset, and counts whether or not it is exported.
    // PFC-sem.1
    StartsAtZero,
    /// It has 64 bits, or it is widened and its resets are told from wraps.
    // PFC-exp.3
    Wide,
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::PhysicalInterface,
        Self::VectorIndex,
        Self::BeforeProcessing,
        Self::ConfirmedEmission,
        Self::EveryFrame,
        Self::EachSetBit,
        Self::OnlyValid,
        Self::TimeOfReading,
        Self::StartsAtZero,
        Self::Wide,
    ];

    /// Whether a source of this direction must meet it.
    pub const fn is_for(self, direction: Direction) -> bool {
        match self {
            Self::BeforeProcessing => matches!(direction, Direction::Received),
            Self::ConfirmedEmission => matches!(direction, Direction::Transmitted),
            _ => true,
        }
    }

    /// Its name in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PhysicalInterface => "physical-interface",
            Self::VectorIndex => "vector-index",
            Self::BeforeProcessing => "before-processing",
            Self::ConfirmedEmission => "confirmed-emission",
            Self::EveryFrame => "every-frame",
            Self::EachSetBit => "each-set-bit",
            Self::OnlyValid => "only-valid",
            Self::TimeOfReading => "time-of-reading",
            Self::StartsAtZero => "starts-at-zero",
            Self::Wide => "wide",
        }
    }

    /// The condition with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|condition| condition.name() == name)
    }
}

/// Who says that a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The source, which knows what it counts.
    Stated,
    /// The operator.
    Attested,
}

/// What is said of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualification {
    direction: Direction,
    grounds: [Option<Ground>; Condition::ALL.len()],
}

/// The conditions that nobody says are met. At least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unqualified {
    direction: Direction,
    missing: [bool; Condition::ALL.len()],
}

/// A source of one direction that may be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualified(Qualification);

impl Qualification {
    /// Nothing is said yet.
    pub const fn new(direction: Direction) -> Self {
        Self { direction, grounds: [None; Condition::ALL.len()] }
    }

    /// The source states a condition.
    #[must_use]
    pub const fn stated(mut self, condition: Condition) -> Self {
        self.grounds[condition as usize] = Some(Ground::Stated);
        self
    }

    /// The operator attests a condition. What the source states stands.
    #[must_use]
    pub const fn attested(mut self, condition: Condition) -> Self {
        if self.grounds[condition as usize].is_none() {
            self.grounds[condition as usize] = Some(Ground::Attested);
        }
        self
    }

    /// Whether the source may be exported.
    ///
    /// # Errors
    /// The conditions that are missing.
    // PFC-count.4, PFC-exp.3
    pub fn check(self) -> Result<Qualified, Unqualified> {
        let missing = Condition::ALL.map(|condition| {
            condition.is_for(self.direction) && self.grounds[condition as usize].is_none()
        });
        if missing.contains(&true) {
            Err(Unqualified { direction: self.direction, missing })
        } else {
            Ok(Qualified(self))
        }
    }
}

impl Unqualified {
    /// The conditions, in the order of [`Condition::ALL`].
    pub fn missing(&self) -> impl Iterator<Item = Condition> {
        let missing = self.missing;
        Condition::ALL.into_iter().filter(move |condition| missing[*condition as usize])
    }
}

impl fmt::Display for Unqualified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a source of {} frames that neither states nor is attested",
            self.direction.word()
        )?;
        for (at, condition) in self.missing().enumerate() {
            write!(f, "{} {}", if at == 0 { "" } else { "," }, condition.name())?;
        }
        Ok(())
    }
}

impl core::error::Error for Unqualified {}

impl Qualified {
    /// Received or transmitted.
    pub const fn direction(&self) -> Direction {
        self.0.direction
    }

    /// Who says that a condition is met; none where it is not asked of this direction and was not
    /// said.
    pub const fn ground(&self, condition: Condition) -> Option<Ground> {
        self.0.grounds[condition as usize]
    }
}
