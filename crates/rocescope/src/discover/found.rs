//! From capture items to what was found: each frame is looked at from the outside in, and counts
//! at the first layer that shows RoCEv2.

use std::collections::{BTreeMap, HashMap};

use observe::report::StreamKey;
use observe::request::{Observed, classify};
use wire::capture::Record;
use wire::frame::{
    Addresses, Carried, Decoded, Fault, Frame, Layer, LinkType, MirrorKind, NotRoce, Opcode,
    Packet, Transport, carries, decode,
};
use wire::pfc::Pfc;

use super::around::{Carriers, PfcPlace, PfcSeen};
use super::question::{Questions, Verdict};
use super::stream::Stream;
use crate::capture::{DropCounter, Item, Visitor};
use crate::meter::Tally;
use crate::observation::{damaged, runt};

/// Layers inside an encapsulation. A frame is in at most one of them.
const INSIDE: [Layer; 4] = [Layer::Erspan, Layer::Gre, Layer::Vxlan, Layer::Geneve];

/// A stream is told apart by its layer too: the same packet can stand at several.
// SEQ-4.1, SEQ-4.3
pub type Place = (Layer, StreamKey);

/// A stream of requests and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'f> {
    /// What names it.
    pub place: &'f Place,
    /// What was seen of it.
    pub stream: &'f Stream,
    /// Whether it fits.
    pub verdict: Verdict,
}

/// Everything that was found.
#[derive(Debug)]
pub struct Found {
    /// Frames by what they were. Those inside an encapsulation count by what is inside where
    /// that is RoCEv2, else by what the carrier is.
    pub tally: Tally,
    /// RoCEv2 packets by opcode.
    pub opcodes: Box<[u64; 256]>,
    /// Packets to queue pair 1, where connections are set up.
    pub gsi: u64,
    /// Streams, and what are only responses.
    pub streams: HashMap<Place, Stream>,
    streams_max: usize,
    /// Packets of streams beyond the limit, which are in no line.
    pub not_followed: u64,
    /// RoCEv2 by what is around it: nothing, or one encapsulation.
    pub carried: BTreeMap<Option<MirrorKind>, u64>,
    /// RoCEv2 inside more than one encapsulation, from the outside in.
    pub deeper: BTreeMap<Vec<MirrorKind>, u64>,
    /// Mirror sessions and tunnels.
    pub carriers: Carriers,
    /// Priority flow control.
    pub pfc: PfcSeen,
    /// Nanoseconds of the earliest packet of all.
    pub start_ns: Option<u64>,
    /// Something in the captures tells how many packets were dropped.
    pub drops_told: bool,
    /// There was a time of which nothing tells how many.
    pub drops_unread: bool,
    /// A drop counter went back: there were more than are counted.
    pub drops_reset: bool,
    /// It comes from an interface, and not from files.
    pub live: bool,
    /// It is known of each priority flow control frame whether it was sent.
    pub directions_told: bool,
    /// Files that end inside a record.
    pub truncated: Vec<String>,
    counters: Vec<DropCounter>,
}

impl Found {
    /// Nothing yet; at most `streams_max` streams.
    pub fn new(streams_max: usize) -> Self {
        Self {
            tally: Tally::default(),
            opcodes: Box::new([0; 256]),
            gsi: 0,
            streams: HashMap::new(),
            streams_max,
            not_followed: 0,
            carried: BTreeMap::new(),
            deeper: BTreeMap::new(),
            carriers: Carriers::new(),
            pfc: PfcSeen::default(),
            start_ns: None,
            drops_told: false,
            drops_unread: false,
            drops_reset: false,
            live: false,
            directions_told: false,
            truncated: Vec::new(),
            counters: Vec::new(),
        }
    }

    fn dropped(&mut self, packets: u64) {
        self.tally.capture_drops = self.tally.capture_drops.saturating_add(packets);
    }

    /// A frame that is no RoCEv2 itself, but may carry some.
    fn inside(&mut self, record: &Record<'_>, link: LinkType, outer: &Frame) {
        for layer in INSIDE {
            let Decoded { mirror, body } = decode(record.data, record.original_len, link, layer);
            let Some(mirror) = mirror else {
                if let (Frame::NotRoce(_), Frame::Fault(fault)) = (outer, &body) {
                    // What the carrier holds is not known, so it is not told as something else.
                    return self.tally.fault(fault);
                }
                continue;
            };
            let is_roce = match &body {
                Frame::Roce(_) => true,
                Frame::Fault(fault) => fault.is_roce(),
                Frame::NotRoce(_) | Frame::Pfc(_) => false,
            };
            self.carriers.see(&mirror, is_roce);
            return match body {
                Frame::Roce(packet) => self.roce(record.time_ns, Some(mirror.kind), &packet),
                Frame::Fault(fault) if is_roce => self.fault(Some(mirror.kind), &fault),
                Frame::Fault(fault) => self.tally.fault(&fault),
                // The direction of a carrier says nothing of what is inside.
                Frame::Pfc(pfc) => self.pfc(PfcPlace { layer, sent: mirror.outbound }, &pfc),
                Frame::NotRoce(_) => self.nested(record, link, outer),
            };
        }
        self.other(outer);
    }

    /// A frame inside an encapsulation that is no RoCEv2 itself, but may carry some.
    fn nested(&mut self, record: &Record<'_>, link: LinkType, outer: &Frame) {
        match carries(record.data, record.original_len, link) {
            Some(carried @ Carried { around }) if carried.layer().is_none() => {
                *self.deeper.entry(around.into_iter().flatten().collect()).or_default() += 1;
            }
            _ => self.other(outer),
        }
    }

    // PFC-count.1, PFC-count.3
    fn pfc(&mut self, place: PfcPlace, pfc: &Pfc) {
        let count = match place.sent {
            true => &mut self.tally.pfc_outbound,
            false => &mut self.tally.pfc,
        };
        *count += 1;
        self.pfc.see(place, pfc);
    }

    fn other(&mut self, frame: &Frame) {
        match frame {
            Frame::NotRoce(reason) => self.tally.not_roce[reason.index()] += 1,
            Frame::Fault(fault) => self.tally.fault(fault),
            Frame::Roce(_) | Frame::Pfc(_) => {}
        }
    }

    /// What is known to be RoCEv2, though its BTH cannot be had.
    fn fault(&mut self, around: Option<MirrorKind>, fault: &Fault) {
        *self.carried.entry(around).or_default() += 1;
        self.tally.fault(fault);
    }

    fn roce(&mut self, time_ns: Option<u64>, around: Option<MirrorKind>, packet: &Packet) {
        *self.carried.entry(around).or_default() += 1;
        self.opcodes[usize::from(packet.bth.opcode.0)] += 1;
        let observed = classify(&packet.bth, packet.transport_len, packet.lie);
        self.tally.packet(observed);
        if matches!(observed, Observed::Request(_)) && !packet.extension_captured() {
            self.tally.extension_cut += 1;
        }
        match observed {
            // Responses have an entry too, which is no stream of requests. SEQ-3.4
            Observed::Request(_) | Observed::Violation(_) | Observed::Response => {}
            Observed::Cnp | Observed::OtherTransport => {
                let to_gsi = packet.bth.qp == 1 && packet.bth.opcode.transport() == Transport::Ud;
                self.gsi += u64::from(to_gsi);
                return;
            }
        }
        let key = StreamKey {
            addresses: packet.addresses,
            namespace: packet.namespace,
            qp: packet.bth.qp,
            pkey: packet.bth.pkey,
        };
        let place = (around.map_or(Layer::Outer, MirrorKind::layer), key);
        // SEQ-10.3
        if self.streams.len() >= self.streams_max && !self.streams.contains_key(&place) {
            self.not_followed += 1;
            return;
        }
        self.streams.entry(place).or_default().see(time_ns, packet, observed);
    }

    /// Streams of requests: what does not fit first, what is in question next, and then those with
    /// most packets.
    pub fn ranked(&self) -> Vec<Ranked<'_>> {
        let questions = Questions::of(self);
        let streams = self.streams.iter().filter(|(_, stream)| stream.requests > 0);
        let mut all: Vec<_> = streams
            .map(|(place, stream)| Ranked {
                place,
                stream,
                verdict: questions.verdict(place, stream),
            })
            .collect();
        all.sort_by_key(|r| (r.verdict, u64::MAX - r.stream.packets, *r.place));
        all
    }

    /// What the drop counter of an interface says since it was read before, or that it could not be
    /// read.
    pub fn drops(&mut self, packets: Option<u64>) {
        self.drops_told = true;
        self.drops_unread |= packets.is_none();
        self.dropped(packets.unwrap_or(0));
    }

    /// How many packets were dropped, where that is known.
    pub fn dropped_packets(&self) -> Option<u64> {
        (self.drops_told && !self.drops_unread).then_some(self.tally.capture_drops)
    }

    /// RoCEv2 packets at each layer that shows some.
    pub fn layers(&self) -> BTreeMap<Layer, u64> {
        let mut layers = BTreeMap::new();
        for (around, count) in &self.carried {
            *layers.entry(around.map_or(Layer::Outer, MirrorKind::layer)).or_default() += count;
        }
        layers
    }

    /// Packets of a transport.
    pub fn transport(&self, transport: Transport) -> u64 {
        self.opcodes().filter(|(opcode, _)| opcode.transport() == transport).map(|(_, n)| n).sum()
    }

    /// The opcodes that were seen, with how often.
    pub fn opcodes(&self) -> impl Iterator<Item = (Opcode, u64)> {
        let all = (0..=u8::MAX).map(Opcode).zip(self.opcodes.iter().copied());
        all.filter(|(_, count)| *count > 0)
    }
}

impl Visitor for Found {
    fn packet(&mut self, record: &Record<'_>) {
        self.tally.frames += 1;
        if let Some(drops) = record.drops_before {
            if let Some(counter) = at(&mut self.counters, record.interface) {
                counter.tell(drops);
            }
            self.drops_told = true;
            self.dropped(drops);
        }
        if record.time_ns.is_none() {
            self.tally.without_time += 1;
        }
        self.start_ns = match (self.start_ns, record.time_ns) {
            (Some(start), Some(time)) => Some(start.min(time)),
            (start, time) => start.or(time),
        };
        let Ok(link) = record.link else {
            self.tally.unknown_link += 1;
            return;
        };
        // What such a frame says is of nobody. SEQ-3.8, PFC-count.4
        if damaged(record) {
            self.tally.damaged += 1;
            return;
        }
        let outer = decode(record.data, record.original_len, link, Layer::Outer).body;
        match outer {
            Frame::Roce(packet) => self.roce(record.time_ns, None, &packet),
            Frame::Fault(fault) if fault.is_roce() => self.fault(None, &fault),
            Frame::Pfc(_) if runt(record) => {
                self.tally.not_roce[NotRoce::PfcTooShort.index()] += 1;
            }
            Frame::Pfc(pfc) => {
                self.pfc(PfcPlace { layer: Layer::Outer, sent: record.outbound }, &pfc);
            }
            Frame::NotRoce(_) | Frame::Fault(_) => self.inside(record, link, &outer),
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Section => self.counters.clear(),
            Item::Interface { .. } => self.counters.push(DropCounter::default()),
            Item::Statistics(statistics) => {
                let Some(counter) = at(&mut self.counters, statistics.interface) else { return };
                let Some(drops) = counter.read(&statistics) else { return };
                self.drops_told = true;
                self.drops_reset |= drops.reset;
                self.dropped(drops.packets);
            }
            Item::Truncated { what } => self.truncated.push(what),
        }
    }
}

/// The addresses of what comes back.
pub fn reversed(addresses: &Addresses) -> Addresses {
    Addresses {
        source: addresses.destination,
        destination: addresses.source,
        family: addresses.family,
    }
}

fn at(counters: &mut [DropCounter], interface: u32) -> Option<&mut DropCounter> {
    counters.get_mut(usize::try_from(interface).ok()?)
}
