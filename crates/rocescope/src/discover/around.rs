//! What is around the streams: the encapsulations that brought them here, and who sends priority
//! flow control frames.

use std::collections::BTreeMap;

use observe::coverage::{MirrorSequence, MirrorStep};
use wire::frame::{Addresses, Layer, Mirror, MirrorKind};
use wire::pfc::Pfc;

use crate::layout::mac;

/// Mirror sessions and tunnels that are told apart, at most.
pub const CARRIERS_MAX: usize = 1024;
/// Senders of priority flow control frames that are told apart, at most.
pub const PFC_SOURCES_MAX: usize = 1024;

/// What names a mirror session or a tunnel.
pub type Session = (Addresses, MirrorKind, u32);

/// What came in one mirror session or tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carrier {
    /// Packets of it, whatever was inside.
    pub packets: u64,
    /// RoCEv2 packets among them.
    pub roce: u64,
    /// Packets that have a number.
    pub numbered: u64,
    /// Numbers that were passed over: what they numbered did not come here in its turn.
    pub missing: u64,
    /// Times that the numbers started anew: what was missed around them is unknown.
    pub restarts: u64,
    /// Packets whose number was not above the latest.
    pub behind: u64,
}

/// All mirror sessions and tunnels.
#[derive(Debug)]
pub struct Carriers {
    known: BTreeMap<Session, Carrier>,
    numbers: MirrorSequence<Session>,
    /// Packets of sessions beyond [`CARRIERS_MAX`].
    pub not_followed: u64,
}

impl Carriers {
    pub fn new() -> Self {
        Self { known: BTreeMap::new(), numbers: MirrorSequence::new(CARRIERS_MAX), not_followed: 0 }
    }

    /// Takes a packet, in which there is RoCEv2 or not.
    pub fn see(&mut self, mirror: &Mirror, is_roce: bool) {
        let session = (mirror.addresses, mirror.kind, mirror.session);
        if self.known.len() >= CARRIERS_MAX && !self.known.contains_key(&session) {
            self.not_followed += 1;
            return;
        }
        let carrier = self.known.entry(session).or_default();
        carrier.packets += 1;
        carrier.roce += u64::from(is_roce);
        let Some(number) = mirror.sequence else { return };
        carrier.numbered += 1;
        match self.numbers.step(session, number) {
            MirrorStep::Missing(count) => carrier.missing += u64::from(count),
            MirrorStep::Behind => carrier.behind += 1,
            MirrorStep::Restarted => carrier.restarts += 1,
            MirrorStep::Next | MirrorStep::NotFollowed => {}
        }
    }

    /// Those with most RoCEv2 first.
    pub fn ranked(&self) -> Vec<(&Session, &Carrier)> {
        let mut all: Vec<_> = self.known.iter().collect();
        all.sort_by_key(|(_, carrier)| std::cmp::Reverse((carrier.roce, carrier.packets)));
        all
    }

    /// Numbers passed over in all of them that did not come behind.
    pub fn missing(&self) -> u64 {
        self.known.values().map(|carrier| carrier.missing.saturating_sub(carrier.behind)).sum()
    }
}

/// Frames of one sender by priority; one frame can count under several.
// PFC-count.3
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfcFrames {
    /// Frames.
    pub frames: u64,
    /// By priority.
    pub by_priority: [u64; 8],
}

impl PfcFrames {
    fn add(&mut self, pfc: &Pfc) {
        self.frames += 1;
        for priority in pfc.priorities() {
            self.by_priority[usize::from(priority)] += 1;
        }
    }
}

/// Where priority flow control frames stood, and whether they are known to have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PfcPlace {
    /// The layer.
    pub layer: Layer,
    /// By the capture's word, or the kernel's, or the mirror's.
    pub sent: bool,
}

/// Priority flow control frames by place and sender.
#[derive(Debug, Default)]
pub struct PfcSeen {
    sources: BTreeMap<(PfcPlace, [u8; 6]), PfcFrames>,
    by_place: BTreeMap<PfcPlace, PfcFrames>,
    /// Frames of senders beyond [`PFC_SOURCES_MAX`]; they count under their priorities.
    pub sources_not_told: u64,
}

impl PfcSeen {
    /// Takes a frame.
    pub fn see(&mut self, place: PfcPlace, pfc: &Pfc) {
        self.by_place.entry(place).or_default().add(pfc);
        let source = (place, pfc.source);
        if self.sources.len() >= PFC_SOURCES_MAX && !self.sources.contains_key(&source) {
            self.sources_not_told += 1;
            return;
        }
        self.sources.entry(source).or_default().add(pfc);
    }

    /// All frames of each place.
    pub fn places(&self) -> impl Iterator<Item = (PfcPlace, &PfcFrames)> {
        self.by_place.iter().map(|(place, frames)| (*place, frames))
    }

    /// The senders at a place that sent frames for a priority, with how many.
    pub fn sources(&self, at: PfcPlace, priority: usize) -> impl Iterator<Item = (String, u64)> {
        self.sources
            .iter()
            .filter(move |((place, _), frames)| *place == at && frames.by_priority[priority] > 0)
            .map(move |((_, address), frames)| (mac(*address), frames.by_priority[priority]))
    }
}
