//! The short way: RoCEv2 as nearly all of it looks, in one bounds check.
//!
//! Ethernet II with at most two tags, IPv4 without options or fragments or IPv6 without extension
//! headers, UDP to 4791, and lengths that agree. Whatever is not that is left to the long way,
//! which says the same of such a frame, only later. A test compares the two.

use super::opcode::EXTENSION_MAX;
use super::{Addresses, BTH_LEN, Bth, Namespace, Packet, ROCE_PORT, ip};

const V4: u16 = 0x0800;
const V6: u16 = 0x86dd;

/// Where the BTH of a common frame stands, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// As [`Packet::source_port`].
    pub source_port: u16,
    /// As [`Packet::bth`].
    pub bth: Bth,
    /// As [`Packet::transport_len`].
    pub transport_len: u32,
    /// As [`Packet::captured_len`].
    pub captured_len: u32,
    /// As [`Packet::ip_offset`].
    pub ip_offset: u32,
    /// As [`Packet::bth_offset`].
    pub bth_offset: u32,
}

impl Located {
    /// As [`Packet::extension_captured`].
    #[inline(always)]
    #[must_use]
    pub fn extension_captured(&self) -> bool {
        let Ok(captured) = usize::try_from(self.captured_len) else { return true };
        let extension = || self.bth.opcode.extension_len().unwrap_or(0);
        captured >= BTH_LEN + EXTENSION_MAX || captured >= BTH_LEN + extension()
    }

    /// The packet, with the identity that was found beside it.
    #[inline]
    #[must_use]
    pub const fn packet(self, addresses: Addresses, namespace: Namespace) -> Packet {
        Packet {
            addresses,
            namespace,
            source_port: self.source_port,
            bth: self.bth,
            transport_len: self.transport_len,
            captured_len: self.captured_len,
            ip_offset: self.ip_offset,
            bth_offset: self.bth_offset,
            lie: None,
        }
    }
}

/// RoCEv2 as nearly all of it looks on Ethernet: at most two tags, no IP options, extension headers
/// or fragments, lengths that agree, and a BTH that was captured. `None` says nothing, and the two
/// places then hold nothing of meaning: ask [`super::decode`], which says the same of what is
/// found here, for a few nanoseconds more.
///
/// Addresses and namespace are written to where the caller keeps them: a copy of what was just put
/// together from pieces would have to wait for the pieces.
#[inline(always)]
#[must_use]
pub fn common(
    frame: &[u8],
    original_len: u32,
    addresses: &mut Addresses,
    namespace: &mut Namespace,
) -> Option<Located> {
    *namespace = Namespace::default();
    let head = frame.first_chunk::<14>()?;
    match u16::from_be_bytes([head[12], head[13]]) {
        V4 => v4::<14, 54>(frame, original_len, addresses),
        V6 => v6::<14, 74>(frame, original_len, addresses),
        0x8100 | 0x88a8 => tagged(frame, original_len, addresses, namespace),
        _ => None,
    }
}

/// The addresses of an IPv4 header as they stand in it, side by side, as one number: for comparing,
/// and for [`Addresses::from`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V4Addresses(u64);

impl From<V4Addresses> for Addresses {
    #[inline(always)]
    fn from(pair: V4Addresses) -> Self {
        let [a, b, c, d, e, f, g, h] = pair.0.to_ne_bytes();
        Self::v4([a, b, c, d], [e, f, g, h])
    }
}

/// As [`common`], for IPv4 without tags alone, and the addresses are in a register: most packets
/// name the stream of the packet in front of them, and the caller then need not write its name down
/// once more.
#[inline(always)]
#[must_use]
pub fn untagged(frame: &[u8], original_len: u32) -> Option<(Located, V4Addresses)> {
    let head = frame.first_chunk::<54>()?;
    if u16::from_be_bytes([head[12], head[13]]) != V4 {
        return None;
    }
    let addresses = V4Addresses(u64::from_ne_bytes(*head[26..].first_chunk()?));
    Some((located_in_v4::<14, 54>(frame, original_len)?, addresses))
}

#[inline(always)]
fn tagged(
    frame: &[u8],
    original_len: u32,
    addresses: &mut Addresses,
    namespace: &mut Namespace,
) -> Option<Located> {
    let head = frame.first_chunk::<22>()?;
    namespace.outer_vlan = vid([head[14], head[15]])?;
    match u16::from_be_bytes([head[16], head[17]]) {
        V4 => return v4::<18, 58>(frame, original_len, addresses),
        V6 => return v6::<18, 78>(frame, original_len, addresses),
        0x8100 => {}
        _ => return None,
    }
    namespace.inner_vlan = vid([head[18], head[19]])?;
    match u16::from_be_bytes([head[20], head[21]]) {
        V4 => v4::<22, 62>(frame, original_len, addresses),
        V6 => v6::<22, 82>(frame, original_len, addresses),
        _ => None,
    }
}

/// The VID of a tag, but for the reserved one.
#[inline]
fn vid(tci: [u8; 2]) -> Option<u16> {
    let vid = u16::from_be_bytes(tci) & 0x0fff;
    (vid != 0x0fff).then_some(vid)
}

/// `AT` is where the IP header starts, and `END`, where the BTH ends, is 40 octets later.
#[inline(always)]
fn v4<const AT: usize, const END: usize>(
    frame: &[u8],
    original_len: u32,
    addresses: &mut Addresses,
) -> Option<Located> {
    let found = located_in_v4::<AT, END>(frame, original_len)?;
    let (head, _) = frame.first_chunk::<END>()?.split_at(END);
    let ip: &[u8; 40] = head.last_chunk()?;
    *addresses = Addresses::v4(*ip[12..].first_chunk()?, *ip[16..].first_chunk()?);
    Some(found)
}

#[inline(always)]
fn located_in_v4<const AT: usize, const END: usize>(
    frame: &[u8],
    original_len: u32,
) -> Option<Located> {
    let (head, _) = frame.first_chunk::<END>()?.split_at(END);
    let ip: &[u8; 40] = head.last_chunk()?;
    let is_common =
        ip[0] == 0x45 && ip[9] == ip::UDP && u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff == 0;
    let ip_len = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    if !is_common {
        return None;
    }
    let whole = Whole { frame, original_len, ip_offset: AT, bth_offset: END - BTH_LEN, ip_len };
    whole.located(ip.last_chunk()?)
}

/// `AT` is where the IP header starts, and `END`, where the BTH ends, is 60 octets later.
#[inline(always)]
fn v6<const AT: usize, const END: usize>(
    frame: &[u8],
    original_len: u32,
    addresses: &mut Addresses,
) -> Option<Located> {
    let (head, _) = frame.first_chunk::<END>()?.split_at(END);
    let ip: &[u8; 60] = head.last_chunk()?;
    if ip[0] >> 4 != 6 || ip[6] != ip::UDP {
        return None;
    }
    let ip_len = u32::from(u16::from_be_bytes([ip[4], ip[5]])) + 40;
    *addresses = Addresses::v6(*ip[8..].first_chunk()?, *ip[24..].first_chunk()?);
    let whole = Whole { frame, original_len, ip_offset: AT, bth_offset: END - BTH_LEN, ip_len };
    whole.located(ip.last_chunk()?)
}

/// What is known of a frame before its UDP header is.
struct Whole<'a> {
    frame: &'a [u8],
    original_len: u32,
    ip_offset: usize,
    bth_offset: usize,
    /// Octets of the IP packet, by its own header.
    ip_len: u32,
}

impl Whole<'_> {
    /// `udp` is the UDP header and the BTH.
    #[inline(always)]
    fn located(&self, udp: &[u8; 8 + BTH_LEN]) -> Option<Located> {
        let ip_offset = u32::try_from(self.ip_offset).ok()?;
        let bth_offset = u32::try_from(self.bth_offset).ok()?;
        let udp_len = u32::from(u16::from_be_bytes([udp[4], udp[5]]));
        // The IP header and the UDP datagram; both lengths are of 16 bits, so no sum overflows.
        let datagram_end = bth_offset - 8 + udp_len;
        let ip_end = ip_offset + self.ip_len;
        let is_common = u16::from_be_bytes([udp[2], udp[3]]) == ROCE_PORT
            && udp_len >= 20
            && datagram_end <= ip_end
            && ip_end <= self.original_len;
        if !is_common {
            return None;
        }
        let transport_len = udp_len - 8;
        let captured = u32::try_from(self.frame.len() - self.bth_offset).unwrap_or(u32::MAX);
        Some(Located {
            source_port: u16::from_be_bytes([udp[0], udp[1]]),
            bth: Bth::from_octets(udp.last_chunk()?),
            transport_len,
            captured_len: captured.min(transport_len),
            ip_offset,
            bth_offset,
        })
    }
}
