//! Frames that are written for a test, and frames made into others: tags, headers, tunnels.

use wire::frame::Opcode;

/// A RoCEv2 frame over Ethernet and IPv4, everything but the ICRC as it should be.
#[derive(Clone, Copy, Debug)]
pub struct Roce {
    pub source: [u8; 4],
    pub destination: [u8; 4],
    pub source_port: u16,
    pub opcode: u8,
    pub version: u8,
    pub pkey: u16,
    pub qp: u32,
    pub psn: u32,
    pub payload_len: usize,
}

pub const WRITE_FIRST: u8 = 0x06;
pub const WRITE_MIDDLE: u8 = 0x07;
pub const WRITE_ONLY_IMMEDIATE: u8 = 0x0b;
pub const SEND_ONLY: u8 = 0x04;

impl Default for Roce {
    fn default() -> Self {
        Self {
            source: [10, 1, 0, 1],
            destination: [10, 1, 0, 2],
            source_port: 49152,
            opcode: SEND_ONLY,
            version: 0,
            pkey: 0xffff,
            qp: 0x00_0011,
            psn: 0,
            payload_len: 64,
        }
    }
}

impl Roce {
    pub fn psn(psn: u32) -> Self {
        Self { psn: psn & 0x00ff_ffff, ..Self::default() }
    }

    pub fn frame(&self) -> Vec<u8> {
        let extension = Opcode(self.opcode).extension_len().unwrap_or(0);
        let udp_len = 8 + 12 + extension + self.payload_len + 4;
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        frame.extend(ipv4(17, self.source, self.destination, udp_len));
        frame.extend(udp(self.source_port, 4791, udp_len));
        frame.extend([self.opcode, self.version]);
        frame.extend(self.pkey.to_be_bytes());
        frame.extend(self.qp.to_be_bytes());
        frame.extend(self.psn.to_be_bytes());
        frame.resize(frame.len() + extension + self.payload_len + 4, 0xa5);
        frame
    }
}

/// Frames with these numbers, everything else the same.
pub fn requests(psns: impl IntoIterator<Item = u32>) -> Vec<Vec<u8>> {
    psns.into_iter().map(|psn| Roce::psn(psn).frame()).collect()
}

fn u16_of(len: usize) -> [u8; 2] {
    u16::try_from(len).expect("short").to_be_bytes()
}

fn ipv4(protocol: u8, source: [u8; 4], destination: [u8; 4], payload_len: usize) -> Vec<u8> {
    let mut header = vec![0x45, 0x02];
    header.extend(u16_of(20 + payload_len));
    header.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    header.extend(source);
    header.extend(destination);
    header
}

fn udp(source_port: u16, port: u16, udp_len: usize) -> Vec<u8> {
    let mut header = source_port.to_be_bytes().to_vec();
    header.extend(port.to_be_bytes());
    header.extend(u16_of(udp_len));
    header.extend([0, 0]);
    header
}

const MACS: usize = 12;

fn ethertype(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// Where the IP header of an Ethernet frame starts, behind all tags.
pub fn ip_offset(frame: &[u8]) -> usize {
    let mut at = MACS;
    while matches!(ethertype(frame, at), 0x8100 | 0x88a8) {
        at += 4;
    }
    at + 2
}

pub fn is_ipv6(frame: &[u8]) -> bool {
    ethertype(frame, ip_offset(frame) - 2) == 0x86dd
}

/// Another tag in front of all others.
pub fn tagged(frame: &[u8], tpid: u16, vid: u16) -> Vec<u8> {
    let mut out = frame[..MACS].to_vec();
    out.extend(tpid.to_be_bytes());
    out.extend(vid.to_be_bytes());
    out.extend(&frame[MACS..]);
    out
}

/// Linux cooked capture, version 1.
pub fn sll(frame: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    out.extend(&frame[MACS..]);
    out
}

/// Linux cooked capture, version 2.
pub fn sll2(frame: &[u8]) -> Vec<u8> {
    let mut out = frame[MACS..MACS + 2].to_vec();
    out.extend([0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
    out.extend(&frame[MACS + 2..]);
    out
}

/// The IP packet alone.
pub fn raw_ip(frame: &[u8]) -> Vec<u8> {
    frame[ip_offset(frame)..].to_vec()
}

/// BSD loopback as a machine of either byte order writes it.
pub fn loopback(frame: &[u8], big: bool) -> Vec<u8> {
    let family: u32 = if is_ipv6(frame) { 30 } else { 2 };
    let mut out = if big { family.to_be_bytes() } else { family.to_le_bytes() }.to_vec();
    out.extend(raw_ip(frame));
    out
}

/// Adds to a length field of 16 bits.
fn lengthen(out: &mut [u8], at: usize, by: u16) {
    let len = u16::from_be_bytes([out[at], out[at + 1]]) + by;
    out[at..at + 2].copy_from_slice(&len.to_be_bytes());
}

/// Eight octets of options in the IPv4 header.
pub fn with_ipv4_options(frame: &[u8]) -> Vec<u8> {
    let at = ip_offset(frame);
    let mut out = frame[..at + 20].to_vec();
    out[at] += 2;
    lengthen(&mut out, at + 2, 8);
    out.extend([1; 8]);
    out.extend(&frame[at + 20..]);
    out
}

/// Hop-by-hop options, a routing header that is used up, destination options.
pub fn with_ipv6_extensions(frame: &[u8]) -> Vec<u8> {
    let at = ip_offset(frame);
    let mut out = frame[..at + 40].to_vec();
    let next = std::mem::replace(&mut out[at + 6], 0);
    lengthen(&mut out, at + 4, 8 + 24 + 16);
    out.extend([43, 0, 1, 4, 0, 0, 0, 0]);
    out.extend([60, 2, 4, 0, 0, 0, 0, 0]);
    out.extend([0x20; 16]);
    out.extend([next, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(&frame[at + 40..]);
    out
}

/// A carrier over Ethernet and IPv4. What the capture has cut off the frame inside is not in any
/// length of the carrier's, so it is counted there.
pub fn carried(protocol: u8, header: &[u8], inner: &[u8], cut: usize) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 9, 2, 2, 0, 0, 0, 9, 1, 0x08, 0x00];
    let (from, to) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    out.extend(ipv4(protocol, from, to, header.len() + inner.len() + cut));
    out.extend(header);
    out.extend(inner);
    out
}

/// Tunnels and mirrors that a frame can be put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    ErspanI,
    ErspanII,
    ErspanIII,
    /// With the optional platform subheader.
    ErspanIIIPlatform,
    /// The frame in GRE.
    GreEthernet,
    /// The IP packet in GRE with checksum, key and sequence number.
    GreIp,
    /// GRE with a segment in its key.
    Nvgre,
    Vxlan,
    /// The frame, with options in front of it.
    GeneveEthernet,
    /// The IP packet.
    GeneveIp,
}

pub const ERSPANS: [Tunnel; 4] =
    [Tunnel::ErspanI, Tunnel::ErspanII, Tunnel::ErspanIII, Tunnel::ErspanIIIPlatform];

impl Tunnel {
    pub const ALL: [Self; 10] = [
        Self::ErspanI,
        Self::ErspanII,
        Self::ErspanIII,
        Self::ErspanIIIPlatform,
        Self::GreEthernet,
        Self::GreIp,
        Self::Nvgre,
        Self::Vxlan,
        Self::GeneveEthernet,
        Self::GeneveIp,
    ];

    /// The value of `--layer`.
    pub fn layer(self) -> &'static str {
        match self {
            Self::ErspanI | Self::ErspanII | Self::ErspanIII | Self::ErspanIIIPlatform => "erspan",
            Self::GreEthernet | Self::GreIp | Self::Nvgre => "gre",
            Self::Vxlan => "vxlan",
            Self::GeneveEthernet | Self::GeneveIp => "geneve",
        }
    }

    /// `layer2SegmentId` of what is inside, as [`Tunnel::wrap`] makes it.
    pub fn segment(self) -> Option<u64> {
        match self {
            Self::Nvgre => Some(0x0200_0000_00ab_cdef),
            Self::Vxlan => Some(0x0100_0000_00ab_cdef),
            // Geneve has no registered kind of segment.
            _ => None,
        }
    }

    /// The frame inside, of which the capture has cut `cut` octets, under this sequence number
    /// where there is one.
    pub fn wrap(self, frame: &[u8], cut: usize, sequence: u32) -> Vec<u8> {
        let number = sequence.to_be_bytes();
        let ip = ip_offset(frame);
        let kind = &frame[ip - 2..ip];
        let vni = [0xab, 0xcd, 0xef, 0];
        match self {
            Self::ErspanI => carried(47, &[0, 0, 0x88, 0xbe], frame, cut),
            Self::ErspanII => {
                let header = [&[0x10, 0, 0x88, 0xbe], &number[..], &[0x10, 0, 0, 7, 0, 0, 0, 1]];
                carried(47, &header.concat(), frame, cut)
            }
            Self::ErspanIII | Self::ErspanIIIPlatform => {
                let platform = self == Self::ErspanIIIPlatform;
                let mut header = [&[0x10, 0, 0x22, 0xeb], &number[..]].concat();
                header.extend([0x20, 0, 0, 7, 1, 2, 3, 4, 0, 0, 0, u8::from(platform)]);
                header.resize(header.len() + if platform { 8 } else { 0 }, 0x5a);
                carried(47, &header, frame, cut)
            }
            Self::GreEthernet => carried(47, &[0, 0, 0x65, 0x58], frame, cut),
            Self::Nvgre => {
                let header = [&[0x20, 0, 0x65, 0x58], &vni[..]].concat();
                carried(47, &header, frame, cut)
            }
            Self::GreIp => {
                let key = [0, 0, 0, 5];
                let header = [&[0xb0, 0], kind, &[0; 4], &key, &number].concat();
                carried(47, &header, &frame[ip..], cut)
            }
            Self::Vxlan => {
                let header = [&[8, 0, 0, 0], &vni[..]].concat();
                carried_by_udp(4789, &header, frame, cut)
            }
            Self::GeneveEthernet => {
                let header = [&[2, 0, 0x65, 0x58], &vni[..], &[1, 2, 3, 1, 0, 0, 0, 9]].concat();
                carried_by_udp(6081, &header, frame, cut)
            }
            Self::GeneveIp => {
                let header = [&[0, 0], kind, &vni].concat();
                carried_by_udp(6081, &header, &frame[ip..], cut)
            }
        }
    }
}

fn carried_by_udp(port: u16, header: &[u8], inner: &[u8], cut: usize) -> Vec<u8> {
    let udp_len = 8 + header.len() + inner.len() + cut;
    let header = [udp(50_000, port, udp_len).as_slice(), header].concat();
    carried(17, &header, inner, cut)
}
