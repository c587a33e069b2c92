//! Reading captures whole, and writing small ones.

use std::fs;
use std::path::{Path, PathBuf};
use wire::capture::{Error, Limits, Parser, Record, Statistics, Step};
use wire::frame::{Decoded, Layer, LinkType, UnknownLink, decode};

/// A folder of the captures, or a file in one.
pub fn captures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures").join(name)
}

pub fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every capture of the folders, in the order of their names.
pub fn every_capture(folders: &[&str]) -> Vec<PathBuf> {
    let mut paths: Vec<_> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(captures(folder)).expect("a folder of captures"))
        .map(|entry| entry.expect("a file").path())
        .filter(|path| {
            let kind = path.extension().and_then(|kind| kind.to_str());
            matches!(kind, Some("pcap" | "pcapng"))
        })
        .collect();
    paths.sort();
    paths
}

/// A record that owns its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub interface: u32,
    pub link: Result<LinkType, UnknownLink>,
    pub time_ns: Option<u64>,
    pub original_len: u32,
    pub data: Vec<u8>,
    pub drops_before: Option<u64>,
}

impl Owned {
    fn new(record: Record<'_>) -> Self {
        Self {
            interface: record.interface,
            link: record.link,
            time_ns: record.time_ns,
            original_len: record.original_len,
            data: record.data.to_vec(),
            drops_before: record.drops_before,
        }
    }

    pub fn decode(&self, layer: Layer) -> Decoded {
        let link = self.link.expect("a link that carries RoCEv2");
        decode(&self.data, self.original_len, link, layer)
    }
}

/// A step that owns its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Packet(Owned),
    Section,
    Interface(u32, Result<LinkType, UnknownLink>, u32),
    Statistics(Statistics),
    Skipped,
    Truncated(u64),
}

/// All that stands in a file which arrives `piece` octets at a time.
pub fn events_in_pieces(
    octets: &[u8],
    piece: usize,
    limits: Limits,
) -> Result<Vec<Event>, (Vec<Event>, Error)> {
    let mut parser = Parser::new(limits);
    let mut events = Vec::new();
    let (mut from, mut to) = (0, 0);
    loop {
        let step = match parser.next(&octets[from..to], to == octets.len()) {
            Ok(step) => step,
            Err(error) => return Err((events, error)),
        };
        from += step.consumed();
        assert_eq!(parser.offset(), u64::try_from(from).expect("small"));
        events.push(match step {
            Step::Need(need) => {
                assert!(to < octets.len(), "nothing more is needed at the end");
                assert!(need > to - from, "more is needed than there is");
                to = octets.len().min(to + piece);
                continue;
            }
            Step::Packet { record, .. } => Event::Packet(Owned::new(record)),
            Step::Section { .. } => Event::Section,
            Step::Interface { interface, link, snap_len, .. } => {
                Event::Interface(interface, link, snap_len)
            }
            Step::Statistics { statistics, .. } => Event::Statistics(statistics),
            Step::Skipped { .. } => Event::Skipped,
            Step::TruncatedEnd { offset, .. } => {
                events.push(Event::Truncated(offset));
                return Ok(events);
            }
            Step::End => return Ok(events),
        });
    }
}

pub fn events(octets: &[u8]) -> Vec<Event> {
    events_in_pieces(octets, usize::MAX / 2, Limits::default()).expect("a good capture")
}

pub fn error(octets: &[u8]) -> String {
    let (_, error) =
        events_in_pieces(octets, usize::MAX / 2, Limits::default()).expect_err("a fault");
    error.to_string()
}

pub fn packets(octets: &[u8]) -> Vec<Owned> {
    events(octets)
        .into_iter()
        .filter_map(|event| match event {
            Event::Packet(packet) => Some(packet),
            _ => None,
        })
        .collect()
}

/// Byte order of a capture that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub const BOTH: [Self; 2] = [Self::Little, Self::Big];

    pub fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    pub fn u32(self, number: u32) -> [u8; 4] {
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
}

pub fn len(octets: &[u8]) -> u32 {
    u32::try_from(octets.len()).expect("short")
}

/// Writes pcap.
pub struct PcapWriter {
    order: Order,
    pub octets: Vec<u8>,
}

impl PcapWriter {
    pub fn new(order: Order, magic: u32, snap_len: u32, network: u32) -> Self {
        let mut octets = Vec::new();
        octets.extend(order.u32(magic));
        octets.extend(order.u16(2));
        octets.extend(order.u16(4));
        octets.extend([0; 8]);
        octets.extend(order.u32(snap_len));
        octets.extend(order.u32(network));
        Self { order, octets }
    }

    pub fn record(&mut self, seconds: u32, fraction: u32, original_len: u32, data: &[u8]) {
        for number in [seconds, fraction, len(data), original_len] {
            self.octets.extend(self.order.u32(number));
        }
        self.octets.extend(data);
    }
}

/// Writes pcapng, one block after the other.
pub struct PcapNgWriter {
    pub order: Order,
    pub octets: Vec<u8>,
}

impl PcapNgWriter {
    /// Starts with a section header.
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
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let total = self.order.u32(len(&body) + 12);
        self.octets.extend(self.order.u32(kind));
        self.octets.extend(total);
        self.octets.extend(body);
        self.octets.extend(total);
    }

    /// Options with their end; none at all where there are none.
    pub fn options(&self, options: &[(u16, &[u8])]) -> Vec<u8> {
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

    pub fn interface(&mut self, link: u16, snap_len: u32, options: &[(u16, &[u8])]) {
        let mut body = self.order.u16(link).to_vec();
        body.extend([0; 2]);
        body.extend(self.order.u32(snap_len));
        body.extend(self.options(options));
        self.block(1, &body);
    }

    fn time(&self, units: u64) -> Vec<u8> {
        let [a, b, c, d, e, f, g, h] = units.to_be_bytes();
        let mut octets = self.order.u32(u32::from_be_bytes([a, b, c, d])).to_vec();
        octets.extend(self.order.u32(u32::from_be_bytes([e, f, g, h])));
        octets
    }

    pub fn enhanced(
        &mut self,
        interface: u32,
        units: u64,
        original_len: u32,
        data: &[u8],
        options: &[(u16, &[u8])],
    ) {
        let mut body = self.order.u32(interface).to_vec();
        body.extend(self.time(units));
        body.extend(self.order.u32(len(data)));
        body.extend(self.order.u32(original_len));
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.options(options));
        self.block(6, &body);
    }

    pub fn obsolete(&mut self, interface: u16, drops: u16, units: u64, data: &[u8]) {
        let mut body = self.order.u16(interface).to_vec();
        body.extend(self.order.u16(drops));
        body.extend(self.time(units));
        body.extend(self.order.u32(len(data)));
        body.extend(self.order.u32(len(data)));
        body.extend(data);
        self.block(2, &body);
    }

    pub fn simple(&mut self, original_len: u32, data: &[u8]) {
        let mut body = self.order.u32(original_len).to_vec();
        body.extend(data);
        self.block(3, &body);
    }

    pub fn statistics(&mut self, interface: u32, units: u64, options: &[(u16, &[u8])]) {
        let mut body = self.order.u32(interface).to_vec();
        body.extend(self.time(units));
        body.extend(self.options(options));
        self.block(5, &body);
    }
}
