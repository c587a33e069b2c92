//! Which priority flow control frames an interface of the capture received, and what keeps anybody
//! from knowing that these were all of them.
//!
//! A frame of MAC control never crosses a link, so one inside a tunnel came in at no interface that
//! is seen here, and one inside a mirror came in at the mirrored port. Where the capture does not
//! say that a frame was sent, that it came in is the word of whoever asks for the counters.

use wire::capture::{FrameCheck, Record};
use wire::frame::{Frame, Layer, LinkType, Mirror, NotRoce};
use wire::pfc::{self, NotPfc, Pfc};

use super::{Pipeline, Sink};

/// What keeps the number of received frames from being known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missed {
    /// Packets that the capture says it dropped.
    Dropped,
    /// A drop counter went back, or could not be read.
    DropsUnknown,
    /// Frames cut before they show whether they are PFC.
    Cut,
    /// Frames that the capture marks as damaged, or whose lengths cannot be.
    Damaged,
    /// Frames with the opcode of PFC, captured without a destination.
    NoDestination,
    /// PFC frames whose check sequence is there and could not be checked.
    Unchecked,
    /// PFC frames without a time.
    NoTime,
    /// Mirrored packets that did not come.
    MirrorMissing,
    /// The mirror counted anew.
    MirrorRestarted,
    /// PFC frames whose number was not above the latest: they can be there twice.
    MirrorBehind,
    /// PFC frames of mirror sessions beyond those that are followed.
    MirrorNotFollowed,
    /// Mirrored packets that could not be read.
    MirrorUnreadable,
    /// A file ends inside a record.
    FileTruncated,
    /// A file could not be read to its end.
    FileDamaged,
    /// Files that are not one behind the other.
    FilesOverlap,
    /// Frames are missing, for any other reason.
    Gap,
}

impl Missed {
    /// What happened, to stand behind a count.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Dropped => "packet[|s] [was|were] dropped, by the capture's own word",
            Self::DropsUnknown => {
                "time[|s] a drop counter was reset or not read: what was dropped is unknown"
            }
            Self::Cut => {
                "frame[|s] [was|were] cut before [it shows|they show] whether [it is|they are] PFC"
            }
            Self::Damaged => {
                "frame[|s] [is|are] marked as damaged, or [has|have] lengths that cannot be"
            }
            Self::NoDestination => {
                "frame[|s] with the opcode of PFC [was|were] captured without a destination"
            }
            Self::Unchecked => {
                "PFC frame[|s] [has a|have] check sequence[|s] that could not be checked"
            }
            Self::NoTime => "PFC frame[|s] [has|have] no time",
            Self::MirrorMissing => "packet[|s] that the mirror numbered [is|are] not here",
            Self::MirrorRestarted => "time[|s] the mirror's numbers started anew",
            Self::MirrorBehind => {
                "mirrored PFC frame[|s] with a number not above the latest can be here twice"
            }
            Self::MirrorNotFollowed => "PFC frame[|s] came in mirror sessions beyond the limit",
            Self::MirrorUnreadable => "mirrored packet[|s] could not be read",
            Self::FileTruncated => "capture file[|s] end[s|] inside a record",
            Self::FileDamaged => "capture file[|s] could not be read to [its|their] end",
            Self::FilesOverlap => {
                "capture file[|s] start[s|] long before the one in front ended: what stands in both \
                 would count twice"
            }
            Self::Gap => "time[|s] frames are missing",
        }
    }
}

/// How a mirrored packet stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// In its turn, or nothing numbers it.
    InTurn,
    /// Its number is not above the latest.
    Behind,
    /// Its session is not followed.
    Not,
}

impl<S: Sink> Pipeline<S> {
    // PFC-id.1, PFC-count.1, PFC-count.2, PFC-count.4
    pub(super) fn pfc(
        &mut self,
        record: &Record<'_>,
        mirror: Option<&Mirror>,
        followed: Followed,
        pfc: &Pfc,
    ) {
        if mirror.is_some_and(|mirror| mirror.kind.layer() != Layer::Erspan) {
            self.tally.pfc_tunnelled += 1;
            return;
        }
        // Of a mirrored frame, the direction of what carries it says nothing.
        if mirror.map_or(record.outbound, |mirror| mirror.outbound) {
            self.tally.pfc_outbound += 1;
            return;
        }
        if runt(record) {
            self.tally.not_roce[NotRoce::PfcTooShort.index()] += 1;
            return;
        }
        self.tally.pfc += 1;
        let cut_somewhere = self.observation.sliced || mirror.is_some_and(|m| m.truncated);
        let missed = match followed {
            Followed::Not => Some(Missed::MirrorNotFollowed),
            Followed::Behind => Some(Missed::MirrorBehind),
            Followed::InTurn if record.check == FrameCheck::Unchecked => Some(Missed::Unchecked),
            Followed::InTurn if record.time_ns.is_none() => Some(Missed::NoTime),
            // Nobody knows whether it had room for its times.
            Followed::InTurn if cut_somewhere && pfc.quanta.is_none() => Some(Missed::Cut),
            Followed::InTurn => None,
        };
        if let Some(missed) = missed {
            self.sink.missed(Some(record.interface), missed, 1);
        }
        self.sink.pfc(record.interface, self.time_ns, pfc);
    }

    /// A frame that is not what it was on the link. One that was no valid frame there is no PFC
    /// frame either; a mirror's would have been.
    // PFC-count.4
    pub(super) fn damaged_for_pfc(&mut self, record: &Record<'_>) {
        if record.check != FrameCheck::Bad || self.observation.layer != Layer::Outer {
            self.sink.missed(Some(record.interface), Missed::Damaged, 1);
        }
    }

    /// A frame that is none of PFC, or of which nobody can say.
    // PFC-op.1
    pub(super) fn not_pfc(&mut self, record: &Record<'_>, link: LinkType, body: &Frame) {
        let mirrored = self.observation.layer == Layer::Erspan;
        let missed = match body {
            Frame::NotRoce(NotRoce::MacControlCut) => Missed::Cut,
            Frame::NotRoce(NotRoce::PfcNoDestination) => Missed::NoDestination,
            // Of the frame itself, these have another EtherType.
            Frame::NotRoce(reason) if mirrored && reason.may_be_roce() => Missed::MirrorUnreadable,
            Frame::Fault(fault) if fault.addresses().is_none() => {
                if !mirrored && !may_be_pfc(record, link) {
                    return;
                }
                Missed::Cut
            }
            _ => return,
        };
        self.sink.missed(Some(record.interface), missed, 1);
    }
}

/// Octets of the shortest frame that a receiver takes, without its check sequence.
const SHORTEST: u32 = 60;

/// Whether a frame was too short for its receiver (IEEE 802.3, 4.2.4.1.2). Only where its check
/// sequence stands in the capture, so does its padding; a capture on the sender has neither.
// PFC-count.4
pub(crate) fn runt(record: &Record<'_>) -> bool {
    record.check == FrameCheck::Good && record.original_len < SHORTEST
}

/// Whether a frame that is cut before its IP header was a PFC frame, for all that it shows.
fn may_be_pfc(record: &Record<'_>, link: LinkType) -> bool {
    match link {
        LinkType::Ethernet => {
            let original_len = usize::try_from(record.original_len).unwrap_or(usize::MAX);
            pfc::parse(record.data, original_len) == Err(NotPfc::Truncated)
        }
        LinkType::Sll | LinkType::Sll2 => true,
        LinkType::Ip | LinkType::Ipv4 | LinkType::Ipv6 | LinkType::Null => false,
    }
}
