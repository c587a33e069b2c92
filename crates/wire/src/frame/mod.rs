//! Frames: from the link header to the BTH, through tags and mirror encapsulations.
//!
//! [`decode`] judges nothing. It says what stands in the frame, how far the capture and the
//! length fields reach, and, where the BTH cannot be had, which of several reasons holds.

mod bth;

pub use bth::{BTH_LEN, Bth, ICRC_LEN, Opcode, ROCE_PORT};



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
pub struct Addresses {
    /// IPv4 or IPv6.
    pub family: Family,
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
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
    /// top octet as `layer2SegmentId` has it (1 VXLAN, 2 NVGRE; 0x80 is ours for Geneve, which
    /// the registry has no number for); 0 where there is none.
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
    pub source_port: u16,
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

/// Which length field disagrees with the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lie {
    /// The IP length reaches beyond the frame as it was on the wire.
    IpBeyondFrame,
    /// The UDP length reaches beyond the IP payload.
    UdpBeyondIp,
}
