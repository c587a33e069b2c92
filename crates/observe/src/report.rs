//! Snapshots and reports: what an epoch looked like at one moment, and the relationships that
//! hold in each (sequence draft, sections 5, 6 and 8.13).
//!
//! [`Snapshot::check`] is used twice: before the exporter encodes, where a failure is our own
//! fault, and after the collector decodes, where it is the peer's.

use core::fmt;

use wire::frame::{Addresses, Namespace};

use crate::sequence::Counts;
use crate::window::Window;

/// What names a stream within an Observation Point (sequence draft, section 4).
///
/// The UDP source port is not part of it.
// SEQ-4.1, SEQ-4.4, SEQ-4.2: the namespace is made of tags and segments, never of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct StreamKey {
    /// Addresses of the RoCEv2 packet.
    pub addresses: Addresses,
    /// Tenant namespace.
    pub namespace: Namespace,
    /// Destination queue pair, 24 bits.
    pub qp: u32,
    /// Partition key.
    pub pkey: u16,
}

/// `rdmaSequenceFlags`, the masks of Table 15.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

// SEQ-8.1, SEQ-11.1: each mask means one thing, whatever stands beside it.
impl Flags {
    /// The epoch is closed.
    pub const FINAL_EPOCH: Flags = Flags(0x0001);
    /// An unsupported or malformed request.
    pub const PROFILE_VIOLATION: Flags = Flags(0x0002);
    /// Complete observation was interrupted.
    pub const CAPTURE_DISCONTINUITY: Flags = Flags(0x0004);
    /// The context's resources were taken away.
    pub const STATE_EXHAUSTION: Flags = Flags(0x0008);
    /// A jump or an ambiguous distance.
    pub const SERIAL_DISCONTINUITY: Flags = Flags(0x0010);
    /// The connection generation was not independently established.
    pub const GENERATION_UNVERIFIED: Flags = Flags(0x0020);
    /// The masks that say why an epoch closed; zero in every report that is not final.
    pub const CAUSES: Flags = Flags(0x001e);
    /// Masks without a meaning yet.
    pub const UNASSIGNED: Flags = Flags(0xffc0);

    /// The assigned masks with their names, in the order of their values.
    pub const NAMES: [(Flags, &'static str); 6] = [
        (Self::FINAL_EPOCH, "finalEpoch"),
        (Self::PROFILE_VIOLATION, "profileViolation"),
        (Self::CAPTURE_DISCONTINUITY, "captureDiscontinuity"),
        (Self::STATE_EXHAUSTION, "stateExhaustion"),
        (Self::SERIAL_DISCONTINUITY, "serialDiscontinuity"),
        (Self::GENERATION_UNVERIFIED, "generationUnverified"),
    ];

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// What both have.
    #[must_use]
    pub const fn of(self, mask: Flags) -> Flags {
        Flags(self.0 & mask.0)
    }

    /// Whether all masks of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no mask is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of the assigned masks that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(mask, _)| self.has(*mask)).map(|(_, name)| name)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)?;
        for name in self.names() {
            write!(f, " {name}")?;
        }
        Ok(())
    }
}

/// One epoch at one moment: all of Table 2 but the ids and the Observation Point.
// SEQ-6.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The stream.
    pub key: StreamKey,
    /// W, constant in the epoch.
    pub window: Window,
    /// Qualifications.
    pub flags: Flags,
    /// Arrival of the first accounted request, milliseconds since 1970.
    pub start_ms: u64,
    /// Arrival of the last accounted request, milliseconds since 1970.
    pub end_ms: u64,
    /// The counters since the first request.
    pub counts: Counts,
}

/// A snapshot with its place in the Transport Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// `rdmaSequenceEpochId`, not 0.
    pub epoch_id: u64,
    /// `rdmaSequenceReportId`, from 1.
    pub report_id: u64,
    /// The measurement.
    pub snapshot: Snapshot,
    /// Stands for namespace keys that the profile does not name and that its Template has: the same
    /// where these are the same, 0 where there are none.
    pub other_keys: u64,
}

/// A relationship that does not hold, with the numbers that break it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inconsistent {
    /// skipped = filled + expired + abandoned + pending.
    Positions {
        /// The left side.
        skipped: u64,
        /// The right side, as wide as four counters need.
        sum: u128,
    },
    /// 0 <= pending <= W - 1.
    Pending {
        /// Found.
        pending: u32,
        /// W.
        window: u32,
    },
    /// repeated + unclassified late + filled <= requests - 1.
    Requests {
        /// The left side.
        sum: u128,
        /// All requests.
        requests: u64,
    },
    /// An epoch holds at least its first request.
    NoRequest,
    /// A final report has nothing pending.
    PendingInFinal(u32),
    /// Only a final report has abandoned positions.
    AbandonedInActive(u64),
    /// Only a final report has closure causes.
    CausesInActive(Flags),
}

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Positions { skipped, sum } => write!(
                f,
                "skipped {skipped}, expected the sum of filled, expired, abandoned and pending, {sum}"
            ),
            Self::Pending { pending, window } => {
                write!(f, "pending {pending}, expected at most {} for window {window}", window - 1)
            }
            Self::Requests { sum, requests } => write!(
                f,
                "filled, repeated and unclassified late make {sum}, expected fewer than the {requests} requests"
            ),
            Self::NoRequest => write!(f, "requests 0, expected at least the first request"),
            Self::PendingInFinal(n) => write!(f, "pending {n} in a final report, expected 0"),
            Self::AbandonedInActive(n) => {
                write!(f, "abandoned {n} in a report that is not final, expected 0")
            }
            Self::CausesInActive(flags) => {
                write!(f, "closure causes {flags:?} in a report that is not final, expected none")
            }
        }
    }
}

impl core::error::Error for Inconsistent {}

impl Snapshot {
    /// The relationships of section 5 and the rules of 8.13 that one report can break by itself.
    ///
    /// # Errors
    /// The first that does not hold.
    // SEQ-5.7, SEQ-7.4
    pub fn check(&self) -> Result<(), Inconsistent> {
        let c = &self.counts;
        let positions = u128::from(c.filled)
            + u128::from(c.expired)
            + u128::from(c.abandoned)
            + u128::from(c.pending);
        if u128::from(c.skipped) != positions {
            return Err(Inconsistent::Positions { skipped: c.skipped, sum: positions });
        }
        if c.pending >= self.window.get() {
            let window = self.window.get();
            return Err(Inconsistent::Pending { pending: c.pending, window });
        }
        if c.requests == 0 {
            return Err(Inconsistent::NoRequest);
        }
        let sum = u128::from(c.repeated) + u128::from(c.unclassified_late) + u128::from(c.filled);
        if sum > u128::from(c.requests - 1) {
            return Err(Inconsistent::Requests { sum, requests: c.requests });
        }
        if self.flags.has(Flags::FINAL_EPOCH) {
            if c.pending != 0 {
                return Err(Inconsistent::PendingInFinal(c.pending));
            }
        } else if c.abandoned != 0 {
            return Err(Inconsistent::AbandonedInActive(c.abandoned));
        } else if !self.flags.of(Flags::CAUSES).is_empty() {
            return Err(Inconsistent::CausesInActive(self.flags.of(Flags::CAUSES)));
        }
        Ok(())
    }
}
