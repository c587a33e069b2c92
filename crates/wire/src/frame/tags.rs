//! From the link header to the network layer: Ethernet II, any stack of VLAN tags, Linux cooked
//! captures, raw IP and loopback.
//!
//! References: IEEE 802.3 clause 3, IEEE 802.1Q clause 9, and the link-layer header types of the
//! pcap formats. Priority flow control frames are recognised here, because they have no network
//! layer.

use super::cursor::{Missing, Span};
use super::reason::{Fault, NotRoce};
use super::{ETHERNET_LEN, Family, Frame, LinkType};
use crate::pfc::{self, NotPfc};

/// Tags that are looked through before a frame is given up.
pub const TAGS_MAX: usize = 8;

/// Smallest number that is an EtherType; below, it is a length (IEEE 802.3, 3.2.6).
const ETHERTYPE_MIN: u16 = 0x0600;
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;
const IPV6: u16 = 0x86dd;
const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const LLDP: u16 = 0x88cc;
/// VID that no frame may carry (IEEE 802.1Q, table 9-2).
const VID_RESERVED: u16 = 0x0fff;

/// The IP header, and the outer and inner VID.
type Network<'a> = (Family, Span<'a>, (u16, u16));

/// Walks from the link header to the IP header.
pub(super) fn network(span: Span<'_>, link: LinkType) -> Result<Network<'_>, Frame> {
    match link {
        LinkType::Ethernet => ethernet(span),
        LinkType::Ipv4 => Ok((Family::V4, span, (0, 0))),
        LinkType::Ipv6 => Ok((Family::V6, span, (0, 0))),
        LinkType::Ip => by_version(span),
        LinkType::Sll => cooked(span, 2, 14, 16),
        LinkType::Sll2 => cooked(span, 8, 0, 20),
        LinkType::Null => loopback(span),
    }
}

/// What to say of a link header that is not all there.
pub(super) fn link_missing(missing: Missing) -> Frame {
    match missing {
        Missing::Wire => Frame::NotRoce(NotRoce::TooShort),
        Missing::Capture => Frame::Fault(Fault::Truncated { addresses: None, port_seen: false }),
    }
}

/// What a MAC control frame is that is no valid PFC frame, by its opcode.
// PFC-count.4
fn no_pfc(why: NotPfc, opcode: Result<u16, Missing>) -> NotRoce {
    let of_pfc = opcode == Ok(pfc::OPCODE);
    match why {
        NotPfc::Truncated => NotRoce::MacControlCut,
        NotPfc::OtherDestination if of_pfc => NotRoce::PfcElsewhere,
        NotPfc::TooShort if of_pfc => NotRoce::PfcTooShort,
        _ => NotRoce::MacControl,
    }
}

fn ethernet(span: Span<'_>) -> Result<Network<'_>, Frame> {
    let ethertype = span.u16(ETHERNET_LEN - 2).map_err(link_missing)?;
    if ethertype == pfc::MAC_CONTROL {
        return Err(match pfc::parse(span.rest(), span.on_wire()) {
            Ok(pfc) => Frame::Pfc(pfc),
            Err(why) => Frame::NotRoce(no_pfc(why, span.u16(ETHERNET_LEN))),
        });
    }
    by_ethertype(span.skip(ETHERNET_LEN), ethertype)
}

/// `arphrd` is where the header says what device it was, `protocol` where the EtherType stands,
/// `len` what the header takes.
fn cooked(
    span: Span<'_>,
    arphrd: usize,
    protocol: usize,
    len: usize,
) -> Result<Network<'_>, Frame> {
    let device = span.u16(arphrd).map_err(link_missing)?;
    let protocol = span.u16(protocol).map_err(link_missing)?;
    // On these devices the field is not an EtherType: netlink, 802.11 radio, frame relay.
    if matches!(device, 770 | 801..=803 | 824) {
        return Err(Frame::NotRoce(NotRoce::OtherEtherType(protocol)));
    }
    by_ethertype(span.skip(len), protocol)
}

fn loopback(span: Span<'_>) -> Result<Network<'_>, Frame> {
    let octets = span.read::<4>(0).map_err(link_missing)?;
    let big = u32::from_be_bytes(*octets);
    // Address families are small, so the byte order of the writer shows.
    let family = if big <= 0xffff { big } else { u32::from_le_bytes(*octets) };
    let span = span.skip(4);
    match family {
        2 => Ok((Family::V4, span, (0, 0))),
        // IPv6 on Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
        10 | 24 | 28 | 30 => Ok((Family::V6, span, (0, 0))),
        other => {
            let other = u16::try_from(other).unwrap_or(u16::MAX);
            Err(Frame::NotRoce(NotRoce::OtherEtherType(other)))
        }
    }
}

fn by_version(span: Span<'_>) -> Result<Network<'_>, Frame> {
    match span.octet(0).map_err(link_missing)? >> 4 {
        4 => Ok((Family::V4, span, (0, 0))),
        6 => Ok((Family::V6, span, (0, 0))),
        _ => Err(Frame::NotRoce(NotRoce::BadIpHeader)),
    }
}

/// Through the tags. `span` starts behind the field that `ethertype` was read from.
fn by_ethertype(mut span: Span<'_>, mut ethertype: u16) -> Result<Network<'_>, Frame> {
    let mut vlans = (0, 0);
    let mut tags = 0;
    while is_tag(ethertype) {
        if tags == TAGS_MAX {
            return Err(Frame::NotRoce(NotRoce::TooManyTags));
        }
        let tci = span.u16(0).map_err(link_missing)?;
        ethertype = span.u16(2).map_err(link_missing)?;
        let vid = tci & 0x0fff;
        if vid == VID_RESERVED {
            return Err(Frame::NotRoce(NotRoce::ReservedVlan));
        }
        if tags == 0 {
            vlans.0 = vid;
        } else {
            vlans.1 = vid;
        }
        tags += 1;
        span = span.skip(4);
    }
    match ethertype {
        IPV4 => Ok((Family::V4, span, vlans)),
        IPV6 => Ok((Family::V6, span, vlans)),
        // A MAC control frame has no tag (IEEE 802.3, clause 31); whoever tags one has made
        // something else of it. Of a cooked capture, nobody can say where it was sent.
        pfc::MAC_CONTROL => Err(Frame::NotRoce(match span.u16(0) {
            Ok(pfc::OPCODE) if tags > 0 => NotRoce::PfcTagged,
            Ok(pfc::OPCODE) => NotRoce::PfcNoDestination,
            Err(Missing::Capture) if tags == 0 => NotRoce::MacControlCut,
            _ => NotRoce::MacControl,
        })),
        other => Err(Frame::NotRoce(other_ethertype(other))),
    }
}

/// C-tag, S-tag, and the numbers that were in use before there was an S-tag.
const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300)
}

const fn other_ethertype(ethertype: u16) -> NotRoce {
    match ethertype {
        0..ETHERTYPE_MIN => NotRoce::Llc,
        ARP | RARP => NotRoce::Arp,
        LLDP => NotRoce::Lldp,
        MPLS | MPLS_MULTICAST => NotRoce::Mpls,
        other => NotRoce::OtherEtherType(other),
    }
}
