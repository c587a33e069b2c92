//! The invariant CRC of RoCEv2 (IBTA, annex A17, "RoCEv2 ICRC").
//!
//! It covers the packet from the IP header to the end of the payload. What a router may change
//! counts as ones: TOS, TTL and checksum of IPv4; traffic class, flow label and hop limit of
//! IPv6; the UDP checksum; the eight bits of the BTH that carry FECN and BECN. Eight octets of
//! ones stand in front, where InfiniBand has its local route header. Tags and tunnels stand
//! before the IP header and change nothing.
//!
//! IPv4 options and IPv6 extension headers have no rule, so nothing is said of such packets.

use crate::frame::{Family, ICRC_LEN, Packet};
use crc32fast::Hasher;

/// What the ICRC says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcrcVerdict {
    /// It is right.
    Good,
    /// It is wrong.
    Bad {
        /// As it stands in the packet, first octet first.
        found: [u8; ICRC_LEN],
        /// As it should stand there.
        computed: [u8; ICRC_LEN],
    },
    /// The capture does not reach to the end of the packet.
    NotCaptured,
    /// The UDP length leaves no room for it behind the BTH.
    NoRoom,
    /// The packet has IP options or extension headers, which the standard has no rule for.
    NotDefined,
}

/// Octets of a UDP header.
const UDP_LEN: usize = 8;
/// The longest IP header with a rule, UDP header, and BTH.
const HEADERS_MAX: usize = 40 + UDP_LEN + 12;

/// Checks the ICRC of `packet`, which was decoded from `frame`.
///
/// Reads the whole packet, so the cost grows with its length. Never allocates.
#[must_use]
pub fn check(frame: &[u8], packet: &Packet) -> IcrcVerdict {
    let ip_len = match packet.addresses.family {
        Family::V4 => 20,
        Family::V6 => 40,
    };
    if packet.bth_offset.checked_sub(packet.ip_offset) != u32::try_from(ip_len + UDP_LEN).ok() {
        return IcrcVerdict::NotDefined;
    }
    let headers_len = ip_len + UDP_LEN + 12;
    let headers_and_icrc = u32::try_from(12 + ICRC_LEN).unwrap_or(u32::MAX);
    if packet.transport_len < headers_and_icrc {
        return IcrcVerdict::NoRoom;
    }
    if packet.captured_len < packet.transport_len {
        return IcrcVerdict::NotCaptured;
    }
    let Some((headers, payload, found)) = parts(frame, packet, headers_len) else {
        return IcrcVerdict::NotCaptured;
    };
    let mut masked = [0; HEADERS_MAX];
    let Some(masked) = masked.get_mut(..headers_len) else {
        return IcrcVerdict::NotDefined;
    };
    masked.copy_from_slice(headers);
    mask(masked, packet.addresses.family, ip_len);
    let mut hasher = Hasher::new();
    hasher.update(&[0xff; 8]);
    hasher.update(masked);
    hasher.update(payload);
    let computed = hasher.finalize().to_le_bytes();
    if found == computed { IcrcVerdict::Good } else { IcrcVerdict::Bad { found, computed } }
}

/// Headers from IP to BTH, what is behind them, and the ICRC.
fn parts<'a>(
    frame: &'a [u8],
    packet: &Packet,
    headers_len: usize,
) -> Option<(&'a [u8], &'a [u8], [u8; ICRC_LEN])> {
    let ip_offset = usize::try_from(packet.ip_offset).ok()?;
    let bth_offset = usize::try_from(packet.bth_offset).ok()?;
    let transport_len = usize::try_from(packet.transport_len).ok()?;
    let end = bth_offset.checked_add(transport_len)?;
    let (headers, rest) = frame.get(ip_offset..end)?.split_at_checked(headers_len)?;
    let (payload, icrc) = rest.split_last_chunk()?;
    Some((headers, payload, *icrc))
}

/// Sets to ones what a router may change.
fn mask(headers: &mut [u8], family: Family, ip_len: usize) {
    match family {
        Family::V4 => {
            for at in [1, 8, 10, 11] {
                headers[at] = 0xff;
            }
        }
        Family::V6 => {
            headers[0] |= 0x0f;
            for at in [1, 2, 3, 7] {
                headers[at] = 0xff;
            }
        }
    }
    for at in [ip_len + 6, ip_len + 7, ip_len + UDP_LEN + 4] {
        headers[at] = 0xff;
    }
}
