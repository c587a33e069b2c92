//! Encapsulations that bring a copy of a frame, or a tenant's frame, to where it is captured:
//! GRE (RFC 2784, RFC 2890), NVGRE (RFC 7637), ERSPAN types I to III
//! (draft-foschiano-erspan), VXLAN (RFC 7348) and Geneve (RFC 8926).
//!
//! Which layer is observed is configuration, never a guess: the same packet stands in several
//! layers of one capture, and counting it in two of them would be wrong. // SEQ-4.3

use super::cursor::{Missing, Span};
use super::reason::{Fault, NotRoce};
use super::udp::{Fragment, Place, UDP_LEN};
use super::{Addresses, Family, Frame, LinkType, Namespace, Start, ip, place};

/// UDP destination port of VXLAN (IANA).
pub const VXLAN_PORT: u16 = 4789;
/// UDP destination port of Geneve (IANA).
pub const GENEVE_PORT: u16 = 6081;

/// The layer of a captured frame that is observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The captured frame itself.
    #[default]
    Outer,
    /// The frame mirrored inside ERSPAN, of any type.
    Erspan,
    /// The packet or frame inside GRE that is not ERSPAN.
    Gre,
    /// The frame inside VXLAN.
    Vxlan,
    /// The packet or frame inside Geneve.
    Geneve,
}

impl Layer {
    /// Every layer, in the order in which [`super::carries`] tries them.
    pub const ALL: [Self; 5] = [Self::Outer, Self::Erspan, Self::Gre, Self::Vxlan, Self::Geneve];

    /// The name in lower case, as an option takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outer => "outer",
            Self::Erspan => "erspan",
            Self::Gre => "gre",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
        }
    }

    /// The layer with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.name() == name)
    }
}

/// The encapsulation that was taken off a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Which one.
    pub kind: MirrorKind,
    /// ERSPAN session (10 bits), GRE key (32 bits), VNI (24 bits); 0 where there is none.
    pub session: u32,
    /// GRE sequence number. One that is missing was dropped between mirror and capture: a gap
    /// of the capture, not of the fabric.
    pub sequence: Option<u32>,
    /// VLAN that the ERSPAN header names for the mirrored frame, 0 where there is none. The
    /// frame's own tags, if the mirror kept them, are not asked for this.
    pub vlan: u16,
    /// The mirror says that it cut the frame.
    pub truncated: bool,
    /// The mirror says that it copied the frame as the port sent it. Only ERSPAN type III says so,
    /// and of a frame that came in as well; of others, nothing is known.
    pub outbound: bool,
    /// Addresses of the carrier: mirror and destination, or tunnel endpoints.
    pub addresses: Addresses,
}

/// Kinds of encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MirrorKind {
    /// ERSPAN without a header of its own, and without a sequence number.
    ErspanI,
    /// ERSPAN with 8 octets of header.
    ErspanII,
    /// ERSPAN with 12 or 20 octets of header.
    ErspanIII,
    /// GRE with IP or Ethernet, NVGRE among it.
    Gre,
    /// VXLAN.
    Vxlan,
    /// Geneve.
    Geneve,
}

impl MirrorKind {
    /// The name for a user.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ErspanI => "ERSPAN I",
            Self::ErspanII => "ERSPAN II",
            Self::ErspanIII => "ERSPAN III",
            Self::Gre => "GRE",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
        }
    }

    /// The layer that shows what is inside.
    #[must_use]
    pub const fn layer(self) -> Layer {
        match self {
            Self::ErspanI | Self::ErspanII | Self::ErspanIII => Layer::Erspan,
            Self::Gre => Layer::Gre,
            Self::Vxlan => Layer::Vxlan,
            Self::Geneve => Layer::Geneve,
        }
    }
}

/// What is inside an encapsulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner<'a> {
    pub(super) span: Span<'a>,
    pub(super) start: Start,
    /// What the encapsulation says of the tenant.
    pub(super) namespace: Namespace,
}

impl Inner<'_> {
    fn of(mut self, segment: u32) -> Self {
        self.namespace.segment = segment;
        self
    }
}

/// Kinds of segment in the top octet of `layer2SegmentId`.
const SEGMENT_VXLAN: u32 = 0x01 << 24;
const SEGMENT_NVGRE: u32 = 0x02 << 24;
const SEGMENT_GENEVE: u32 = 0x80 << 24;
const SEGMENT_GRE: u32 = 0x81 << 24;
/// Virtual subnets of NVGRE that are not reserved (RFC 7637, section 3.2).
const NVGRE_VSIDS: core::ops::RangeInclusive<u32> = 0x00_1000..=0xff_fffe;

const ERSPAN_I_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const ETHERNET: u16 = 0x6558;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Why there is nothing inside to look at, with the encapsulation if that could be read.
pub(super) type Closed = (Option<Mirror>, Shut);

/// Why there is nothing inside to look at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shut {
    /// It is known that there is nothing.
    NotRoce(NotRoce),
    /// The capture ends before what is inside begins.
    Cut,
    /// The carrier is a fragment.
    Fragment { first: bool },
}

impl From<Shut> for Frame {
    fn from(shut: Shut) -> Self {
        match shut {
            Shut::NotRoce(why) => Self::NotRoce(why),
            Shut::Fragment { first } => Self::Fault(Fault::CarrierFragment { first }),
            // Addresses that were seen are the carrier's, not those of the observed layer.
            Shut::Cut => Self::Fault(Fault::Truncated { addresses: None, port_seen: false }),
        }
    }
}

/// Takes the encapsulation of `layer` off; `layer` is not [`Layer::Outer`].
pub(super) fn open(
    span: Span<'_>,
    link: LinkType,
    layer: Layer,
) -> Result<(Mirror, Inner<'_>), Closed> {
    open_at(span, Start::Link(link), layer)
}

/// The same from any header on.
pub(super) fn open_at(
    span: Span<'_>,
    start: Start,
    layer: Layer,
) -> Result<(Mirror, Inner<'_>), Closed> {
    let by_udp = matches!(layer, Layer::Vxlan | Layer::Geneve);
    let wanted = if by_udp { ip::UDP } else { ip::GRE };
    let carrier =
        place(span, start, Namespace::default(), wanted).map_err(|frame| (None, outside(frame)))?.0;
    match carrier.fragment {
        Fragment::Whole => {}
        Fragment::First if by_udp && is_other_port(&carrier, layer) => return Err(elsewhere()),
        fragment => {
            let first = fragment == Fragment::First;
            return Err((None, Shut::Fragment { first }));
        }
    }
    match layer {
        Layer::Vxlan => vxlan(&carrier),
        Layer::Geneve => geneve(&carrier),
        Layer::Outer | Layer::Erspan | Layer::Gre => gre(&carrier, layer),
    }
}

/// What the carrier was, said from the view of the layer inside it.
fn outside(frame: Frame) -> Shut {
    match frame {
        Frame::Fault(_) => Shut::Cut,
        Frame::NotRoce(_) | Frame::Pfc(_) | Frame::Roce(_) => Shut::NotRoce(NotRoce::OutsideLayer),
    }
}

fn elsewhere() -> Closed {
    (None, Shut::NotRoce(NotRoce::OutsideLayer))
}

/// A version that is not known here: what is inside may be anything.
fn unreadable(mirror: Mirror) -> Closed {
    (Some(mirror), Shut::NotRoce(NotRoce::UnreadableEncapsulation))
}

fn other(mirror: Mirror) -> Closed {
    (Some(mirror), Shut::NotRoce(NotRoce::OtherEncapsulated))
}

/// A header of the encapsulation is not all there.
fn header_missing(mirror: Option<Mirror>) -> impl Fn(Missing) -> Closed {
    move |missing| match missing {
        Missing::Capture => (mirror, Shut::Cut),
        Missing::Wire => (mirror, Shut::NotRoce(NotRoce::OtherEncapsulated)),
    }
}

fn is_other_port(carrier: &Place<'_>, layer: Layer) -> bool {
    let wanted = match layer {
        Layer::Geneve => GENEVE_PORT,
        _ => VXLAN_PORT,
    };
    carrier.payload.u16(2).is_ok_and(|port| port != wanted)
}

fn gre<'a>(carrier: &Place<'a>, layer: Layer) -> Result<(Mirror, Inner<'a>), Closed> {
    let payload = carrier.payload;
    let flags = payload.u16(0).map_err(header_missing(None))?;
    let protocol = payload.u16(2).map_err(header_missing(None))?;
    let is_erspan = matches!(protocol, ERSPAN_I_II | ERSPAN_III);
    // Version 0 only; a header with routing (RFC 1701) has no fixed length.
    if is_erspan != (layer == Layer::Erspan) || flags & 0x4007 != 0 {
        return Err(elsewhere());
    }
    let (has_checksum, has_key, has_sequence) =
        (flags & 0x8000 != 0, flags & 0x2000 != 0, flags & 0x1000 != 0);
    let key_at = if has_checksum { 8 } else { 4 };
    let sequence_at = if has_key { key_at + 4 } else { key_at };
    let len = if has_sequence { sequence_at + 4 } else { sequence_at };
    let missing = header_missing(None);
    let key = if has_key { Some(payload.u32(key_at).map_err(&missing)?) } else { None };
    let sequence =
        if has_sequence { Some(payload.u32(sequence_at).map_err(&missing)?) } else { None };
    let mirror = Mirror {
        kind: MirrorKind::Gre,
        session: key.unwrap_or(0),
        sequence,
        vlan: 0,
        truncated: false,
        outbound: false,
        addresses: carrier.addresses,
    };
    let span = payload.skip(len);
    match protocol {
        // Type I is what has no sequence number, and then no header either.
        ERSPAN_I_II if !has_sequence => {
            let kind = MirrorKind::ErspanI;
            Ok((Mirror { kind, ..mirror }, mirrored(span)))
        }
        ERSPAN_I_II => erspan_ii(mirror, span),
        ERSPAN_III => erspan_iii(mirror, span),
        ETHERNET => {
            let segment = match key {
                Some(key) if NVGRE_VSIDS.contains(&(key >> 8)) => SEGMENT_NVGRE | (key >> 8),
                key => gre_segment(key).ok_or(other(mirror))?,
            };
            Ok((mirror, mirrored(span).of(segment)))
        }
        IPV4 | IPV6 => {
            let family = if protocol == IPV4 { Family::V4 } else { Family::V6 };
            let segment = gre_segment(key).ok_or(other(mirror))?;
            Ok((mirror, packet(span, family).of(segment)))
        }
        _ => Err(other(mirror)),
    }
}

/// The segment that a GRE key stands for; none for one of more than 24 bits, which has no room:
/// what is inside is not looked at, so that no two keys are taken for one.
fn gre_segment(key: Option<u32>) -> Option<u32> {
    match key {
        None => Some(0),
        Some(key) => (key >> 24 == 0).then_some(SEGMENT_GRE | key),
    }
}

fn erspan_ii(mirror: Mirror, span: Span<'_>) -> Result<(Mirror, Inner<'_>), Closed> {
    let kind = MirrorKind::ErspanII;
    let mirror = Mirror { kind, ..mirror };
    let header = span.read::<8>(0).map_err(header_missing(Some(mirror)))?;
    let mirror = erspan_common(mirror, [header[0], header[1], header[2], header[3]]);
    if header[0] >> 4 != 1 {
        return Err(unreadable(mirror));
    }
    let mut inner = mirrored(cut_if(span.skip(8), mirror.truncated));
    // The tag of an 802.1Q frame was taken off and its VID put here.
    if (header[2] >> 3) & 0x03 == 2 {
        inner.namespace.outer_vlan = mirror.vlan;
    }
    Ok((mirror, inner))
}

fn erspan_iii(mirror: Mirror, span: Span<'_>) -> Result<(Mirror, Inner<'_>), Closed> {
    let kind = MirrorKind::ErspanIII;
    let mirror = Mirror { kind, ..mirror };
    let header = span.read::<12>(0).map_err(header_missing(Some(mirror)))?;
    let mirror = erspan_common(mirror, [header[0], header[1], header[2], header[3]]);
    if header[0] >> 4 != 2 {
        return Err(unreadable(mirror));
    }
    let mirror = Mirror { outbound: header[11] & 0x08 != 0, ..mirror };
    let start = match (header[10] >> 2) & 0x1f {
        0 => LinkType::Ethernet,
        2 => LinkType::Ip,
        _ => return Err(other(mirror)),
    };
    // Good, short, oversized, bad: 3 is a frame with an error, which no receiver took.
    if (header[2] >> 3) & 0x03 == 3 {
        return Err((Some(mirror), Shut::NotRoce(NotRoce::BadMirrored)));
    }
    let len = if header[11] & 0x01 == 0 { 12 } else { 20 };
    let span = cut_if(span.skip(len), mirror.truncated);
    Ok((mirror, Inner { start: Start::Link(start), ..mirrored(span) }))
}

/// The first four octets, which types II and III share.
fn erspan_common(mirror: Mirror, header: [u8; 4]) -> Mirror {
    Mirror {
        session: u32::from(u16::from_be_bytes([header[2], header[3]]) & 0x03ff),
        vlan: u16::from_be_bytes([header[0], header[1]]) & 0x0fff,
        truncated: header[2] & 0x04 != 0,
        ..mirror
    }
}

fn vxlan<'a>(carrier: &Place<'a>) -> Result<(Mirror, Inner<'a>), Closed> {
    let header = tunnel_header(carrier, Layer::Vxlan)?;
    let vni = u32::from_be_bytes([0, header[4], header[5], header[6]]);
    let mirror = overlay(MirrorKind::Vxlan, vni, carrier);
    // Without the flag there is no VNI, and a receiver drops it.
    if header[0] & 0x08 == 0 {
        return Err(other(mirror));
    }
    let span = carrier.payload.skip(UDP_LEN + 8);
    Ok((mirror, mirrored(span).of(SEGMENT_VXLAN | vni)))
}

fn geneve<'a>(carrier: &Place<'a>) -> Result<(Mirror, Inner<'a>), Closed> {
    let header = tunnel_header(carrier, Layer::Geneve)?;
    let vni = u32::from_be_bytes([0, header[4], header[5], header[6]]);
    let mirror = overlay(MirrorKind::Geneve, vni, carrier);
    // Version 0, and not a packet between the endpoints themselves.
    if header[0] >> 6 != 0 || header[1] & 0x80 != 0 {
        return Err(other(mirror));
    }
    let options = usize::from(header[0] & 0x3f) * 4;
    let span = carrier.payload.skip(UDP_LEN + 8 + options);
    let segment = SEGMENT_GENEVE | vni;
    match u16::from_be_bytes([header[2], header[3]]) {
        ETHERNET => Ok((mirror, mirrored(span).of(segment))),
        IPV4 => Ok((mirror, packet(span, Family::V4).of(segment))),
        IPV6 => Ok((mirror, packet(span, Family::V6).of(segment))),
        _ => Err(other(mirror)),
    }
}

/// The eight octets behind the UDP header, if the port is the layer's.
fn tunnel_header<'a>(carrier: &Place<'a>, layer: Layer) -> Result<&'a [u8; 8], Closed> {
    let missing = header_missing(None);
    carrier.payload.u16(2).map_err(&missing)?;
    if is_other_port(carrier, layer) {
        return Err(elsewhere());
    }
    carrier.payload.read(UDP_LEN).map_err(&missing)
}

fn overlay(kind: MirrorKind, vni: u32, carrier: &Place<'_>) -> Mirror {
    Mirror {
        kind,
        session: vni,
        sequence: None,
        vlan: 0,
        truncated: false,
        outbound: false,
        addresses: carrier.addresses,
    }
}

fn mirrored(span: Span<'_>) -> Inner<'_> {
    Inner { span, start: Start::Link(LinkType::Ethernet), namespace: Namespace::default() }
}

fn packet(span: Span<'_>, family: Family) -> Inner<'_> {
    Inner { span, start: Start::Ip(family), namespace: Namespace::default() }
}

fn cut_if(span: Span<'_>, truncated: bool) -> Span<'_> {
    if truncated { span.cut() } else { span }
}
