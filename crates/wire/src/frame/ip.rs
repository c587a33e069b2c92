//! IPv4 (RFC 791) and IPv6 with its extension headers (RFC 8200, RFC 4302), down to the payload.
//!
//! The IPv4 header checksum is not checked: a capture on the sending host sees it unset.

use super::cursor::{Missing, Span};
use super::reason::{Fault, Lie, NotRoce};
use super::udp::{Fragment, Place};
use super::{Addresses, Family, Frame};

/// Protocol number of UDP.
pub(super) const UDP: u8 = 17;
/// Protocol number of GRE.
pub(super) const GRE: u8 = 47;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMPV6: u8 = 58;
// IPv6 extension headers.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// IPv6 extension headers that are looked through before a packet is given up.
pub const EXTENSIONS_MAX: usize = 8;

const V4_LEN: usize = 20;
const V6_LEN: usize = 40;

/// The payload of an IPv4 packet of protocol `wanted`.
pub(super) fn v4(span: Span<'_>, wanted: u8) -> Result<Place<'_>, Frame> {
    let Ok(header) = span.read::<V4_LEN>(0) else {
        return Err(v4_cut(span, wanted));
    };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4 || header_len < V4_LEN || total_len < header_len {
        return Err(Frame::NotRoce(NotRoce::BadIpHeader));
    }
    if header[9] != wanted {
        return Err(Frame::NotRoce(other_protocol(header[9])));
    }
    let mut addresses = Addresses { family: Family::V4, source: [0; 16], destination: [0; 16] };
    addresses.source[..4].copy_from_slice(&header[12..16]);
    addresses.destination[..4].copy_from_slice(&header[16..20]);
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    Ok(Place {
        addresses,
        payload: span.limit(total_len).skip(header_len),
        payload_len: total_len - header_len,
        ip_offset: span.at,
        lie: (total_len > span.on_wire()).then_some(Lie::IpBeyondFrame),
        fragment: match fragment {
            0 => Fragment::Whole,
            // More to come, offset 0.
            0x2000 => Fragment::First,
            _ => Fragment::Later,
        },
    })
}

/// What is to be said of an IPv4 header that was not captured in full: the protocol may still
/// show that it is something else.
fn v4_cut(span: Span<'_>, wanted: u8) -> Frame {
    if span.on_wire() < V4_LEN || span.octet(0).is_ok_and(|octet| octet >> 4 != 4) {
        return Frame::NotRoce(NotRoce::BadIpHeader);
    }
    match span.octet(9) {
        Ok(protocol) if protocol != wanted => Frame::NotRoce(other_protocol(protocol)),
        _ => cut(None),
    }
}

/// The payload of an IPv6 packet whose last header is `wanted`.
pub(super) fn v6(span: Span<'_>, wanted: u8) -> Result<Place<'_>, Frame> {
    let Ok(header) = span.read::<V6_LEN>(0) else {
        return Err(v6_cut(span, wanted));
    };
    if header[0] >> 4 != 6 {
        return Err(Frame::NotRoce(NotRoce::BadIpHeader));
    }
    let mut addresses = Addresses { family: Family::V6, source: [0; 16], destination: [0; 16] };
    addresses.source.copy_from_slice(&header[8..24]);
    addresses.destination.copy_from_slice(&header[24..40]);
    let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let place = Place {
        addresses,
        payload: span.limit(V6_LEN + payload_len).skip(V6_LEN),
        payload_len,
        ip_offset: span.at,
        lie: (V6_LEN + payload_len > span.on_wire()).then_some(Lie::IpBeyondFrame),
        fragment: Fragment::Whole,
    };
    extensions(place, header[6], wanted)
}

fn v6_cut(span: Span<'_>, wanted: u8) -> Frame {
    if span.on_wire() < V6_LEN || span.octet(0).is_ok_and(|octet| octet >> 4 != 6) {
        return Frame::NotRoce(NotRoce::BadIpHeader);
    }
    match span.octet(6) {
        Ok(next) if next != wanted && !is_extension(next) => Frame::NotRoce(other_protocol(next)),
        _ => cut(None),
    }
}

/// Through the extension headers; `next` says what `place` starts with.
fn extensions(mut place: Place<'_>, mut next: u8, wanted: u8) -> Result<Place<'_>, Frame> {
    for _ in 0..=EXTENSIONS_MAX {
        if next == wanted {
            return Ok(place);
        }
        if !is_extension(next) {
            return Err(Frame::NotRoce(other_protocol(next)));
        }
        let header = match place.payload.read::<8>(0) {
            Ok(header) => header,
            Err(missing) => return Err(extension_missing(&place, missing)),
        };
        let len = match next {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        if place.payload_len < len {
            return Err(Frame::NotRoce(NotRoce::BadIpHeader));
        }
        if next == FRAGMENT {
            let field = u16::from_be_bytes([header[2], header[3]]);
            match (field >> 3, field & 1) {
                // An atomic fragment is a whole packet (RFC 6946).
                (0, 0) => {}
                (0, _) => place.fragment = Fragment::First,
                _ => return later_fragment(place, header[0], wanted),
            }
        }
        place.payload = place.payload.skip(len);
        place.payload_len -= len;
        next = header[0];
    }
    Err(Frame::NotRoce(NotRoce::TooManyExtensions))
}

/// A later fragment starts in the middle of something. Its next header is that of the first
/// fragment, so an extension header there hides what the packet was.
fn later_fragment(mut place: Place<'_>, next: u8, wanted: u8) -> Result<Place<'_>, Frame> {
    if next != wanted && !is_extension(next) {
        return Err(Frame::NotRoce(other_protocol(next)));
    }
    place.fragment = Fragment::Later;
    Ok(place)
}

fn extension_missing(place: &Place<'_>, missing: Missing) -> Frame {
    match missing {
        Missing::Capture => cut(Some(place.addresses)),
        // The packet says it has them, and the frame did not.
        Missing::Wire if place.lie.is_some() && place.payload_len >= 8 => {
            Frame::Fault(Fault::LengthLies {
                addresses: place.addresses,
                lie: Lie::IpBeyondFrame,
                port_seen: false,
            })
        }
        Missing::Wire => Frame::NotRoce(NotRoce::BadIpHeader),
    }
}

fn cut(addresses: Option<Addresses>) -> Frame {
    Frame::Fault(Fault::Truncated { addresses, port_seen: false })
}

const fn is_extension(next: u8) -> bool {
    matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS)
}

const fn other_protocol(protocol: u8) -> NotRoce {
    match protocol {
        TCP => NotRoce::Tcp,
        ICMP | ICMPV6 => NotRoce::Icmp,
        other => NotRoce::OtherIpProtocol(other),
    }
}
