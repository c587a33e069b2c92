//! Frames: from the link header to the BTH, through tags and mirror encapsulations.
//!
//! [`decode`] judges nothing. It says what stands in the frame, how far the capture and the
//! length fields reach, and, where the BTH cannot be had, which of several reasons holds. It
//! checks no checksum, puts no fragments together, and knows no stream.
//!
//! RoCEv2 is what is sent to UDP port 4791, and nothing else: neither the source port nor the
//! content is asked.

mod bth;
mod cursor;
mod discover;
mod ip;
mod link;
mod opcode;
mod reason;
mod short;
mod tags;
mod tunnel;
mod udp;

pub use bth::{BTH_LEN, Bth, ICRC_LEN, ROCE_PORT};
pub use discover::{Carried, carries};
pub use link::{LinkType, UnknownLink};
pub use opcode::{Opcode, Transport};
pub use reason::{Fault, Lie, NotRoce};
pub use short::{Located, V4Addresses, common, untagged};
pub use tunnel::{GENEVE_PORT, Layer, Mirror, MirrorKind, VXLAN_PORT};

use crate::pfc::Pfc;
use cursor::Span;
use udp::Place;

/// IP version of an address pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Family {
    /// Four octets an address.
    V4 = 4,
    /// Sixteen octets an address.
    V6 = 6,
}

/// Source and destination address of one IP header. An IPv4 address stands in the first four
/// octets and the rest is zero; the family keeps the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
// In this order a copy moves each address whole, as it was written: a processor has to wait
// where a load spans several recent stores.
#[repr(C)]
pub struct Addresses {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// IPv4 or IPv6.
    pub family: Family,
}

impl Addresses {
    /// Of an IPv4 header.
    #[inline]
    #[must_use]
    pub const fn v4(source: [u8; 4], destination: [u8; 4]) -> Self {
        Self { source: widened(source), destination: widened(destination), family: Family::V4 }
    }

    /// Of an IPv6 header.
    #[inline]
    #[must_use]
    pub const fn v6(source: [u8; 16], destination: [u8; 16]) -> Self {
        Self { source, destination, family: Family::V6 }
    }
}

/// An IPv4 address in the first of sixteen octets, put together in a register.
#[inline]
const fn widened(address: [u8; 4]) -> [u8; 16] {
    (u32::from_le_bytes(address) as u128).to_le_bytes()
}

/// What separates tenants beside the addresses, as found in the observed layer's own headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    /// VID of the outermost tag of the observed layer, 1 to 4094; 0 where there is no tag or only
    /// a priority tag (IEEE 802.1Q, 9.6).
    pub outer_vlan: u16,
    /// VID of the innermost tag where there is more than one, else 0.
    pub inner_vlan: u16,
    /// VNI or VSID of the overlay whose inner layer is observed, 24 bits, with its kind in the
    /// top octet as `layer2SegmentId` has it (1 VXLAN, 2 NVGRE; 0x80 for Geneve and 0x81 for the
    /// key of other GRE are ours: the registry has no number for them); 0 where there is none.
    pub segment: u32,
}

/// A RoCEv2 packet whose BTH is all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Addresses of the observed layer.
    pub addresses: Addresses,
    /// Tags and segment of the observed layer.
    pub namespace: Namespace,
    /// UDP source port: entropy, never identity.
    pub source_port: u16, // SEQ-4.4
    /// The transport header.
    pub bth: Bth,
    /// Octets that the UDP length leaves from the BTH to the ICRC, both included.
    pub transport_len: u32,
    /// Octets from the BTH on that were captured, at most `transport_len`.
    pub captured_len: u32,
    /// Offset of the IP header of the observed layer in the frame, for [`crate::icrc`].
    pub ip_offset: u32,
    /// Offset of the BTH in the frame.
    pub bth_offset: u32,
    /// A length field that promises more octets than its container has, though the BTH is there.
    pub lie: Option<Lie>,
}

impl Packet {
    /// Whether the UDP length has room for the extension headers of the opcode, the padding and
    /// the ICRC; an opcode that is not defined has no extension headers that we know of.
    #[inline]
    #[must_use]
    pub fn extension_fits(&self) -> bool {
        self.bth.fits(self.transport_len)
    }

    /// Whether the extension headers of the opcode were captured in full. Where this is false
    /// and [`Packet::extension_fits`] is true, the capture cut them, not the sender.
    #[inline]
    #[must_use]
    pub fn extension_captured(&self) -> bool {
        self.located().extension_captured()
    }

    /// The packet without what names its stream.
    #[inline]
    #[must_use]
    pub const fn located(&self) -> Located {
        Located {
            source_port: self.source_port,
            bth: self.bth,
            transport_len: self.transport_len,
            captured_len: self.captured_len,
            ip_offset: self.ip_offset,
            bth_offset: self.bth_offset,
        }
    }
}

/// What stands in one captured frame, seen at one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The encapsulation that was taken off, where one was observed and found, whatever the
    /// frame inside it is.
    pub mirror: Option<Mirror>,
    /// The frame at the observed layer.
    pub body: Frame,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A RoCEv2 packet with its BTH.
    Roce(Packet),
    /// A priority flow control frame on an Ethernet link.
    Pfc(Pfc),
    /// Known to be something else.
    NotRoce(NotRoce),
    /// RoCEv2, or possibly RoCEv2, whose BTH cannot be had.
    Fault(Fault),
}

/// Takes one captured frame apart.
///
/// `frame` holds the octets that were captured and `original_len` says how many there were on
/// the wire; one that is smaller than the capture is taken for the size of the capture. `link`
/// says what the frame starts with and `layer` which of its layers is observed.
///
/// Costs a few nanoseconds where IP without options or extension headers follows an Ethernet
/// header with at most two tags, and a bounded number of steps for everything else. Never allocates, never panics.
#[inline]
#[must_use]
pub fn decode(frame: &[u8], original_len: u32, link: LinkType, layer: Layer) -> Decoded {
    if layer == Layer::Outer && link == LinkType::Ethernet {
        let (mut addresses, mut namespace) = (Addresses::v4([0; 4], [0; 4]), Namespace::default());
        if let Some(found) = common(frame, original_len, &mut addresses, &mut namespace) {
            let body = Frame::Roce(found.packet(addresses, namespace));
            return Decoded { mirror: None, body };
        }
    }
    general(Span::new(frame, original_len), link, layer, false)
}

/// As [`decode`], for frames of which somebody may have cut the end away without saying so, before
/// or inside an encapsulation: where a frame ends says nothing about how long it was.
#[must_use]
pub fn decode_sliced(frame: &[u8], link: LinkType, layer: Layer) -> Decoded {
    general(Span::new(frame, u32::MAX).cut(), link, layer, true)
}

/// Octets of an Ethernet header without tags.
const ETHERNET_LEN: usize = 14;

/// Everything, one header after the other.
#[inline(never)]
fn general(span: Span<'_>, link: LinkType, layer: Layer, sliced: bool) -> Decoded {
    if layer == Layer::Outer {
        let body = inside(span, Start::Link(link), Namespace::default());
        return Decoded { mirror: None, body };
    }
    let (mirror, inner) = match tunnel::open(span, link, layer) {
        Ok((mirror, inner)) => (Some(mirror), inner),
        Err((mirror, shut)) => {
            let body = shut.into();
            return Decoded { mirror, body };
        }
    };
    let span = if sliced { inner.span.cut() } else { inner.span };
    let body = inside(span, inner.start, inner.namespace);
    Decoded { mirror, body }
}

/// What the first octet of a span begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// A link header.
    Link(LinkType),
    /// An IP header of this version.
    Ip(Family),
}

/// Decodes the observed layer itself.
fn inside(span: Span<'_>, start: Start, namespace: Namespace) -> Frame {
    match place(span, start, namespace, ip::UDP) {
        Ok((datagram, namespace)) => udp::decode(&datagram, namespace),
        Err(frame) => frame,
    }
}

/// Walks to the IP payload, which is to be of protocol `wanted`.
fn place<'a>(
    span: Span<'a>,
    start: Start,
    around: Namespace,
    wanted: u8,
) -> Result<(Place<'a>, Namespace), Frame> {
    let (family, span, (outer_vlan, inner_vlan)) = match start {
        Start::Link(link) => tags::network(span, link)?,
        Start::Ip(family) => (family, span, (0, 0)),
    };
    // A tag of the frame itself goes before what an encapsulation says of it.
    let outer_vlan = if outer_vlan == 0 { around.outer_vlan } else { outer_vlan };
    let namespace = Namespace { outer_vlan, inner_vlan, ..around };
    let place = match family {
        Family::V4 => ip::v4(span, wanted)?,
        Family::V6 => ip::v6(span, wanted)?,
    };
    Ok((place, namespace))
}

#[cfg(test)]
mod tests;
