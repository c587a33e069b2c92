//! UDP (RFC 768) and the BTH behind it.

use super::cursor::{Missing, Span};
use super::reason::{Fault, Lie, NotRoce};
use super::{Addresses, BTH_LEN, Bth, Frame, Namespace, Packet, ROCE_PORT};

/// Octets of a UDP header.
pub(super) const UDP_LEN: usize = 8;

/// The payload of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) addresses: Addresses,
    /// Ends where the IP length says, or where the frame ended if that was sooner.
    pub(super) payload: Span<'a>,
    /// Octets that the IP length says there are.
    pub(super) payload_len: usize,
    /// Where the IP header starts.
    pub(super) ip_offset: usize,
    /// The IP length reaches beyond the frame.
    pub(super) lie: Option<Lie>,
    pub(super) fragment: Fragment,
}

/// Which part of a datagram an IP packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fragment {
    /// All of it.
    Whole,
    /// The beginning.
    First,
    /// A later part, which has no UDP header.
    Later,
}

/// Decodes a UDP datagram, or a part of one.
pub(super) fn decode(place: &Place<'_>, namespace: Namespace) -> Frame {
    let addresses = place.addresses;
    if place.fragment == Fragment::Later {
        return Frame::Fault(Fault::Fragment { first: false, roce: false, addresses });
    }
    let first = place.fragment == Fragment::First;
    // The port takes the first four octets, the whole header eight.
    let smallest = if first { 4 } else { UDP_LEN };
    if place.payload_len < smallest {
        if first {
            return Frame::Fault(Fault::Fragment { first, roce: false, addresses });
        }
        return Frame::NotRoce(NotRoce::BadUdpHeader);
    }
    match place.payload.u16(2) {
        Err(missing) => return not_had(place, missing, false),
        Ok(ROCE_PORT) => {}
        Ok(other) => return Frame::NotRoce(NotRoce::OtherUdpPort(other)),
    }
    if first {
        return Frame::Fault(Fault::Fragment { first, roce: true, addresses });
    }
    match transport(place, namespace) {
        Ok(packet) => Frame::Roce(packet),
        Err(frame) => frame,
    }
}

/// The packet behind a UDP header whose destination port is 4791.
fn transport(place: &Place<'_>, namespace: Namespace) -> Result<Packet, Frame> {
    let addresses = place.addresses;
    if place.payload_len < UDP_LEN + BTH_LEN {
        return Err(Frame::Fault(Fault::NoRoomForBth { addresses }));
    }
    let missing = |missing| not_had(place, missing, true);
    let source_port = place.payload.u16(0).map_err(missing)?;
    let udp_len = place.payload.u16(4).map_err(missing)?;
    let transport_len = match usize::from(udp_len).checked_sub(UDP_LEN) {
        Some(len) if len >= BTH_LEN => len,
        _ => return Err(Frame::Fault(Fault::NoRoomForBth { addresses })),
    };
    let bth = place.payload.read(UDP_LEN).map_err(missing)?;
    let rest = place.payload.skip(UDP_LEN);
    let beyond = usize::from(udp_len) > place.payload_len;
    Ok(Packet {
        addresses,
        namespace,
        source_port,
        bth: Bth::from_octets(bth),
        transport_len: narrow(transport_len),
        captured_len: narrow(rest.captured().min(transport_len)),
        ip_offset: narrow(place.ip_offset),
        bth_offset: narrow(rest.at),
        lie: place.lie.or(beyond.then_some(Lie::UdpBeyondIp)),
    })
}

/// Octets of the UDP header or the BTH, which the IP length promises, are not there.
fn not_had(place: &Place<'_>, missing: Missing, port_seen: bool) -> Frame {
    let addresses = place.addresses;
    Frame::Fault(match missing {
        Missing::Capture => Fault::Truncated { addresses: Some(addresses), port_seen },
        Missing::Wire => Fault::LengthLies { addresses, lie: Lie::IpBeyondFrame, port_seen },
    })
}

/// A capture file counts in 32 bits, so no offset inside a frame is larger.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
