//! What may be said of an epoch, and the only words for it (sequence draft, section 7).
//!
//! These words name what was observed. None of them names a cause in the network: an expired
//! position is not a packet that was lost, a repeated one no retransmission, a filled one no
//! proof of another order.

use crate::report::Flags;

/// What it means that PFC counters stand beside a flow record, and what it does not.
// PFC-cor.1
pub const BESIDE: &str = "These counters have the device, the interface, the priority and some of \
     the time of the flow in common, by the clocks of their exporters. Their readings are the closest \
     ones that are kept, so what was counted between two of them can be of much more time than the \
     flow had. That proves no cause: neither that this flow made PFC frames come or go, nor that they \
     did anything to it.";

/// What is known of an epoch's reports.
// SEQ-7.11, SEQ-7.14, SEQ-7.16: a word for what was received, none for what a network did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Reports may still come.
    Active,
    /// Every report from the first to a valid final one was received.
    Complete,
    /// Some report is missing, the final one perhaps.
    Incomplete,
    /// Reports contradict each other.
    Invalid,
}

impl Outcome {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Invalid => "invalid",
        }
    }
}

/// Something that a reader of the numbers has to know.
// SEQ-7.15: metering, reporting and collecting each have words of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Qualification {
    /// The meter closed the epoch for a request outside the profile.
    ProfileViolation,
    /// The meter's capture was interrupted.
    CaptureDiscontinuity,
    /// The meter took the context's resources away.
    StateExhaustion,
    /// The meter could not place a request.
    SerialDiscontinuity,
    /// The connection generation is not established.
    GenerationUnverified,
    /// The exporter set flags that have no meaning yet: nothing unqualified may be derived.
    UnsupportedFlags,
    /// Reports are missing between, or before, those received.
    ReportGap,
    /// No final report was received.
    NoFinal,
    /// The collector itself dropped reports of the epoch.
    CollectorDrop,
    /// The last request of the latest report has a time before that of the first: the exporter's
    /// clock was set back, or is wrong. No duration can be had from it.
    FlowEndsBeforeStart,
}

// SEQ-7.16
impl Qualification {
    /// The word for it; the draft's own for its flags.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ProfileViolation => "profileViolation",
            Self::CaptureDiscontinuity => "captureDiscontinuity",
            Self::StateExhaustion => "stateExhaustion",
            Self::SerialDiscontinuity => "serialDiscontinuity",
            Self::GenerationUnverified => "generationUnverified",
            Self::UnsupportedFlags => "unsupportedFlags",
            Self::ReportGap => "reportGap",
            Self::NoFinal => "noFinal",
            Self::CollectorDrop => "collectorDrop",
            Self::FlowEndsBeforeStart => "flowEndsBeforeStart",
        }
    }

    /// The qualifications that flags make.
    // SEQ-7.5
    pub fn of_flags(flags: Flags) -> impl Iterator<Item = Self> {
        let masks = [
            (Flags::PROFILE_VIOLATION, Self::ProfileViolation),
            (Flags::CAPTURE_DISCONTINUITY, Self::CaptureDiscontinuity),
            (Flags::STATE_EXHAUSTION, Self::StateExhaustion),
            (Flags::SERIAL_DISCONTINUITY, Self::SerialDiscontinuity),
            (Flags::GENERATION_UNVERIFIED, Self::GenerationUnverified),
        ];
        let assigned = masks.into_iter().filter(move |(mask, _)| flags.has(*mask));
        let unassigned =
            (!flags.of(Flags::UNASSIGNED).is_empty()).then_some(Self::UnsupportedFlags);
        assigned.map(|(_, qualification)| qualification).chain(unassigned)
    }
}
