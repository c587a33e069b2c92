//! Captures as values, and writers of pcap and pcapng in every variant.

use std::fs;
use std::path::Path;

use wire::capture::{Limits, Parser, Step};

/// Link type of Ethernet.
pub const ETHERNET: u32 = 1;

/// A captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub time_ns: u64,
    pub original_len: u32,
    pub data: Vec<u8>,
}

/// A capture of one interface.
#[derive(Clone, Debug)]
pub struct Trace {
    pub link: u32,
    pub packets: Vec<Packet>,
}

/// Byte order of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub const BOTH: [Self; 2] = [Self::Little, Self::Big];

    fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    fn u32(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    pub fn u64(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// The upper half first, each half in this order, as pcapng has times.
    fn time(self, units: u64) -> Vec<u8> {
        let halves = units.to_be_bytes();
        halves
            .chunks_exact(4)
            .flat_map(|half| self.u32(u32::from_be_bytes(half.try_into().expect("four"))))
            .collect()
    }
}

pub fn len(octets: &[u8]) -> u32 {
    u32::try_from(octets.len()).expect("short")
}

/// The start of `Trace::from_frames`: 2026, at no round number of anything.
pub const START_NS: u64 = 1_790_000_123_456_789_012;
/// What is between two frames of `Trace::from_frames`: a little more than a millisecond.
pub const STEP_NS: u64 = 1_000_001;

impl Trace {
    /// Ethernet frames, each a little over a millisecond after the one before.
    pub fn from_frames(frames: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let packets = (0..)
            .zip(frames)
            .map(|(n, data)| Packet {
                time_ns: START_NS + n * STEP_NS,
                original_len: len(&data),
                data,
            })
            .collect();
        Self { link: ETHERNET, packets }
    }

    /// A classic capture of an Ethernet link.
    pub fn read(path: &Path) -> Self {
        let octets = fs::read(path).expect("a capture");
        let mut parser = Parser::new(Limits::default());
        let mut rest = octets.as_slice();
        let mut packets = Vec::new();
        loop {
            let step = parser.next(rest, true).expect("a good capture");
            if let Step::Packet { record, .. } = step {
                packets.push(Packet {
                    time_ns: record.time_ns.expect("a time"),
                    original_len: record.original_len,
                    data: record.data.to_vec(),
                });
            }
            match step {
                Step::End => return Self { link: ETHERNET, packets },
                Step::TruncatedEnd { .. } | Step::Need(_) => panic!("{}: cut", path.display()),
                step => rest = &rest[step.consumed()..],
            }
        }
    }

    /// Every frame made into another one; what the capture cut off stays cut off.
    pub fn map(&self, link: u32, mut change: impl FnMut(&[u8]) -> Vec<u8>) -> Self {
        let packets = self.packets.iter().map(|packet| {
            let data = change(&packet.data);
            let original_len = packet.original_len + len(&data) - len(&packet.data);
            Packet { data, original_len, ..*packet }
        });
        Self { link, packets: packets.collect() }
    }

    /// Times cut to what so many units a second can say.
    pub fn cut(&self, units_per_second: u64) -> Self {
        let mut cut = self.clone();
        for packet in &mut cut.packets {
            let units = units(packet.time_ns, units_per_second);
            let ns = u128::from(units) * 1_000_000_000 / u128::from(units_per_second);
            packet.time_ns = u64::try_from(ns).expect("smaller than before");
        }
        cut
    }

    /// The first `count` packets.
    pub fn first(&self, count: usize) -> Self {
        Self { link: self.link, packets: self.packets[..count].to_vec() }
    }

    /// As a classic capture with nanoseconds, or with microseconds.
    pub fn pcap(&self, order: Order, nanoseconds: bool) -> Vec<u8> {
        let (magic, unit_ns) = if nanoseconds { (0xa1b2_3c4d, 1) } else { (0xa1b2_c3d4, 1000) };
        let mut octets = order.u32(magic).to_vec();
        octets.extend(order.u16(2));
        octets.extend(order.u16(4));
        octets.extend([0; 8]);
        octets.extend(order.u32(0x0004_0000));
        octets.extend(order.u32(self.link));
        for packet in &self.packets {
            let seconds = u32::try_from(packet.time_ns / 1_000_000_000).expect("before 2106");
            let fraction = packet.time_ns % 1_000_000_000 / unit_ns;
            let fraction = u32::try_from(fraction).expect("less than a second");
            for number in [seconds, fraction, len(&packet.data), packet.original_len] {
                octets.extend(order.u32(number));
            }
            octets.extend(&packet.data);
        }
        octets
    }

    /// As a classic capture in the usual way.
    pub fn plain(&self) -> Vec<u8> {
        self.pcap(Order::Little, true)
    }
}

/// A time in other units, cut.
pub fn units(time_ns: u64, per_second: u64) -> u64 {
    let units = u128::from(time_ns) * u128::from(per_second) / 1_000_000_000;
    u64::try_from(units).expect("a unit that is not too small")
}

/// `if_tsresol` of nanoseconds.
pub const NANOSECONDS: (u16, &[u8]) = (9, &[9]);

/// Writes pcapng block by block; starts with a section.
pub struct PcapNg {
    order: Order,
    pub octets: Vec<u8>,
}

impl PcapNg {
    pub fn new(order: Order) -> Self {
        let mut writer = Self { order, octets: Vec::new() };
        writer.section(order);
        writer
    }

    pub fn section(&mut self, order: Order) {
        self.order = order;
        let mut body = order.u32(0x1a2b_3c4d).to_vec();
        body.extend(order.u16(1));
        body.extend(order.u16(0));
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body);
    }

    pub fn block(&mut self, kind: u32, body: &[u8]) {
        let padded = body.len().next_multiple_of(4);
        let total = self.order.u32(u32::try_from(padded).expect("short") + 12);
        self.octets.extend(self.order.u32(kind));
        self.octets.extend(total);
        self.octets.extend(body);
        self.octets.resize(self.octets.len() + padded - body.len(), 0);
        self.octets.extend(total);
    }

    fn options(&self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut octets = Vec::new();
        for (code, value) in options {
            octets.extend(self.order.u16(*code));
            octets.extend(self.order.u16(u16::try_from(value.len()).expect("short")));
            octets.extend(*value);
            octets.resize(octets.len().next_multiple_of(4), 0);
        }
        if !options.is_empty() {
            octets.extend([0; 4]);
        }
        octets
    }

    pub fn interface(&mut self, link: u32, options: &[(u16, &[u8])]) {
        let mut body = self.order.u16(u16::try_from(link).expect("a link type")).to_vec();
        body.extend([0; 2]);
        body.extend(self.order.u32(0));
        body.extend(self.options(options));
        self.block(1, &body);
    }

    pub fn enhanced(
        &mut self,
        interface: u32,
        units: u64,
        packet: &Packet,
        options: &[(u16, &[u8])],
    ) {
        let mut body = self.order.u32(interface).to_vec();
        body.extend(self.order.time(units));
        body.extend(self.order.u32(len(&packet.data)));
        body.extend(self.order.u32(packet.original_len));
        body.extend(&packet.data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.options(options));
        self.block(6, &body);
    }

    /// The packet block that the enhanced one has replaced.
    pub fn obsolete(&mut self, interface: u16, drops: u16, units: u64, packet: &Packet) {
        let mut body = self.order.u16(interface).to_vec();
        body.extend(self.order.u16(drops));
        body.extend(self.order.time(units));
        body.extend(self.order.u32(len(&packet.data)));
        body.extend(self.order.u32(packet.original_len));
        body.extend(&packet.data);
        self.block(2, &body);
    }

    pub fn simple(&mut self, packet: &Packet) {
        let mut body = self.order.u32(packet.original_len).to_vec();
        body.extend(&packet.data);
        self.block(3, &body);
    }

    pub fn statistics(&mut self, interface: u32, units: u64, options: &[(u16, &[u8])]) {
        let mut body = self.order.u32(interface).to_vec();
        body.extend(self.order.time(units));
        body.extend(self.options(options));
        self.block(5, &body);
    }

    /// `isb_ifdrop` of an interface, read so long after 1970.
    pub fn drops(&mut self, interface: u32, time_ns: u64, count: u64) {
        let count = self.order.u64(count);
        self.statistics(interface, time_ns, &[(5, &count)]);
    }
}
