//! A closed epoch and the cause of its closure (sequence draft, sections 4 and 8.13).

use core::fmt;

use crate::coverage::{Gap, Qualify};
use crate::provision::Generation;
use crate::report::{Flags, Snapshot};
use crate::request::Violation;

use super::EpochIds;

/// An epoch that has ended, ready for its final report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The number of its context, 0 to `contexts_max - 1`: the same for every epoch of a stream
    /// for as long as the stream keeps its place.
    pub context: u32,
    /// The final snapshot.
    pub snapshot: Snapshot,
    /// Why it closed.
    pub cause: Cause,
    /// What stands against its completeness and was known only after it had closed, if anything.
    pub later: Option<Gap>,
    /// What earlier reports of the epoch were numbered.
    pub ids: EpochIds,
}

// SEQ-8.1: causes combine.
impl Qualify for Closed {
    fn qualify(&mut self, gap: Gap) {
        self.snapshot.flags = self.snapshot.flags.with(Cause::of_gap(gap).flags());
        self.later = Some(gap);
    }
}

impl Closed {
    /// Every cause that its flags show: why it closed, and what was known only later where that
    /// says more.
    // SEQ-8.1
    pub fn causes(&self) -> impl Iterator<Item = Cause> {
        let later = self.later.map(Cause::of_gap);
        let says_more = later.filter(|later| !self.cause.flags().has(later.flags()));
        core::iter::once(self.cause).chain(says_more)
    }
}

/// Why an epoch closed, as precisely as the meter knows it.
// SEQ-4.7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The observation ended.
    End,
    /// No request for longer than the idle time.
    Idle,
    /// A request outside the profile.
    Violation(Violation),
    /// A request exactly half the serial space away.
    Ambiguous,
    /// A request this many positions ahead, more than W.
    Jump(u32),
    /// The capture's own drop counter grew.
    CaptureDrops,
    /// The numbers of a mirror session have a hole.
    MirrorGap,
    /// A mirror session counts anew.
    MirrorRestarted,
    /// Nothing says whether the capture was complete: the reading of a drop counter that would have
    /// said it was not waited for.
    Unread,
    /// A packet of a mirror session whose numbers are not followed: there are too many sessions.
    MirrorNotFollowed,
    /// A frame that this program does not take apart far enough to say what it is.
    Unreadable,
    /// A packet that the capture marks as damaged on the link, or whose lengths cannot be.
    Damaged,
    /// A packet whose captured part ends before its BTH does.
    CaptureTruncated,
    /// A fragment of what may be a request.
    Fragment,
    /// A datagram whose length fields reach beyond what holds them, and with them its BTH.
    LengthLies,
    /// A packet whose invariant CRC does not match.
    IcrcMismatch,
    /// The capture file ends inside a record.
    FileTruncated,
    /// The capture file cannot be read any further.
    FileDamaged,
    /// A capture file starts before the one in front of it ended.
    FilesOverlap,
    /// The operator or the capture source reports a gap.
    CaptureGap,
    /// The rules changed.
    Policy,
    /// The operator does not attest any more what this condition names.
    Withdrawn(&'static str),
    /// The window changed.
    Window,
    /// A new generation of the connection.
    Generation,
    /// Its context was needed for another stream.
    Evicted,
    /// There is no memory left for its window's labels.
    LabelMemory,
    /// A counter or position came to its limit.
    Exhausted,
    /// The report id came to its limit.
    ReportIds,
}

impl Cause {
    /// The word for it where a program reads it; what it says besides, such as how far a PSN
    /// jumped, is in its [`fmt::Display`].
    // SEQ-7.16
    pub const fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Idle => "idle",
            Self::Violation(_) => "violation",
            Self::Ambiguous => "ambiguous",
            Self::Jump(_) => "jump",
            Self::CaptureDrops => "captureDrops",
            Self::Unread => "dropCounterUnread",
            Self::MirrorGap => "mirrorGap",
            Self::MirrorRestarted => "mirrorRestarted",
            Self::MirrorNotFollowed => "mirrorNotFollowed",
            Self::Unreadable => "unreadableFrame",
            Self::Damaged => "damagedFrame",
            Self::CaptureTruncated => "packetCutByCapture",
            Self::Fragment => "fragment",
            Self::LengthLies => "lengthLies",
            Self::IcrcMismatch => "icrcMismatch",
            Self::FileTruncated => "fileEndsInRecord",
            Self::FileDamaged => "fileDamaged",
            Self::FilesOverlap => "filesOverlap",
            Self::CaptureGap => "captureGap",
            Self::Policy => "provisioningChanged",
            Self::Withdrawn(_) => "attestationWithdrawn",
            Self::Window => "windowChanged",
            Self::Generation => "newGeneration",
            Self::Evicted => "evicted",
            Self::LabelMemory => "labelMemory",
            Self::Exhausted => "counterLimit",
            Self::ReportIds => "reportIdLimit",
        }
    }

    /// What a gap that became known late is as a cause.
    const fn of_gap(gap: Gap) -> Self {
        match gap {
            Gap::Drops => Self::CaptureDrops,
            Gap::Unread => Self::Unread,
        }
    }

    /// The mask that the final report carries for it; none for ordinary closures.
    pub const fn flags(self) -> Flags {
        match self {
            Self::Withdrawn(condition) => withdrawn(condition),
            Self::Violation(_) => Flags::PROFILE_VIOLATION,
            Self::Ambiguous | Self::Jump(_) => Flags::SERIAL_DISCONTINUITY,
            Self::CaptureDrops
            | Self::Unread
            | Self::MirrorGap
            | Self::MirrorRestarted
            | Self::MirrorNotFollowed
            | Self::Unreadable
            | Self::Damaged
            | Self::CaptureTruncated
            | Self::Fragment
            | Self::LengthLies
            | Self::IcrcMismatch
            | Self::FileTruncated
            | Self::FileDamaged
            | Self::FilesOverlap
            | Self::CaptureGap => Flags::CAPTURE_DISCONTINUITY,
            Self::Evicted | Self::LabelMemory => Flags::STATE_EXHAUSTION,
            Self::End
            | Self::Idle
            | Self::Policy
            | Self::Window
            | Self::Generation
            | Self::Exhausted
            | Self::ReportIds => Flags(0),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("end of the capture"),
            Self::Idle => f.write_str("no request for the idle time"),
            Self::Violation(violation) => write!(f, "outside the profile: {violation}"),
            Self::Ambiguous => f.write_str("a PSN exactly 2^23 away has no order"),
            Self::Jump(d) => write!(f, "a PSN {d} ahead, more than the window"),
            Self::CaptureDrops => f.write_str("the capture dropped packets"),
            Self::Unread => f.write_str(
                "no reading of the capture's drop counter was waited for, so nothing says that it \
                 was complete",
            ),
            Self::MirrorGap => f.write_str("a hole in the mirror's own sequence numbers"),
            Self::MirrorRestarted => f.write_str("the mirror's own sequence numbers start anew"),
            Self::MirrorNotFollowed => {
                f.write_str("a mirror session beyond those whose numbers are followed")
            }
            Self::Unreadable => f.write_str("a frame that may have been RoCEv2 and was not read"),
            Self::Damaged => f.write_str(
                "a packet that the capture marks as damaged, or whose lengths cannot be",
            ),
            Self::CaptureTruncated => f.write_str("a packet was captured too short for its BTH"),
            Self::Fragment => f.write_str("an IP fragment sent to the RoCEv2 port"),
            Self::LengthLies => f.write_str("a datagram whose lengths reach beyond the frame"),
            Self::IcrcMismatch => f.write_str("a packet with a wrong ICRC"),
            Self::FileTruncated => f.write_str("the capture file ends inside a record"),
            Self::FileDamaged => f.write_str("the capture file cannot be read any further"),
            Self::FilesOverlap => f.write_str("the next capture file starts before this one ended"),
            Self::CaptureGap => f.write_str("a gap in the capture"),
            Self::Policy => f.write_str("the provisioning changed"),
            Self::Withdrawn(condition) => write!(f, "{condition} is not attested any more"),
            Self::Window => f.write_str("the window changed"),
            Self::Generation => f.write_str("a new generation of the connection"),
            Self::Evicted => f.write_str("its context was given to another stream"),
            Self::LabelMemory => f.write_str("no memory left for the window"),
            Self::Exhausted => f.write_str("a counter came to its limit"),
            Self::ReportIds => f.write_str("the report id came to its limit"),
        }
    }
}

/// What is in doubt of an epoch that began while a condition was attested.
// SEQ-3.6, SEQ-4.11
const fn withdrawn(condition: &str) -> Flags {
    match condition.as_bytes() {
        b"send_write_only" => Flags::PROFILE_VIOLATION,
        b"half_space" => Flags::SERIAL_DISCONTINUITY,
        // Not all that should have been was seen, or what was is of more than one stream.
        _ => Flags::CAPTURE_DISCONTINUITY,
    }
}

/// What every report of the epoch carries.
// SEQ-4.8
pub(super) const fn qualification(generation: Generation) -> Flags {
    match generation {
        Generation::Unverified => Flags::GENERATION_UNVERIFIED,
        Generation::Established => Flags(0),
    }
}

pub(super) const fn final_flags(cause: Cause, generation: Generation) -> Flags {
    qualification(generation).with(Flags::FINAL_EPOCH).with(cause.flags())
}
