//! Why a frame gives no RoCEv2 packet: it is known to be something else ([`NotRoce`]), or the
//! BTH of what is or may be RoCEv2 cannot be had ([`Fault`]).
//!
//! The two are kept apart because the first is nothing to a metered stream and the second is a
//! hole in what was observed of it.

use super::Addresses;
use core::fmt;

/// Which length field disagrees with the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lie {
    /// The IP length reaches beyond the frame as it was on the wire.
    IpBeyondFrame,
    /// The UDP length reaches beyond the IP payload.
    UdpBeyondIp,
}

/// A frame that is, or may be, RoCEv2, and whose BTH cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A fragment of an IP datagram of protocol UDP, or of one whose protocol only its first
    /// fragment shows. Fragments are not put together.
    Fragment {
        /// The fragment at offset 0.
        first: bool,
        /// Destination port 4791 was seen; where false, the port is unknown.
        roce: bool,
        /// Addresses of the observed layer.
        addresses: Addresses,
    },
    /// The frame that carries the mirrored frame is an IP fragment: what is in it is unknown.
    CarrierFragment {
        /// The fragment at offset 0.
        first: bool,
    },
    /// The capture ends before the end of the BTH, and the frame did not.
    Truncated {
        /// Addresses of the observed layer, where the capture reaches behind them.
        addresses: Option<Addresses>,
        /// Destination port 4791 was seen; where false, what kind of frame it is is unknown.
        port_seen: bool,
    },
    /// UDP to port 4791, and the UDP length or the IP length leaves no room for a BTH.
    NoRoomForBth {
        /// Addresses of the observed layer.
        addresses: Addresses,
    },
    /// A length field promises octets that its container does not have, the BTH or the UDP port
    /// among them.
    LengthLies {
        /// Addresses of the observed layer.
        addresses: Addresses,
        /// The field.
        lie: Lie,
        /// Destination port 4791 was seen; where false, what kind of datagram it is is unknown.
        port_seen: bool,
    },
}

impl Fault {
    /// Addresses of the observed layer, where they are known; where not, the fault may concern
    /// any stream.
    #[must_use]
    pub const fn addresses(&self) -> Option<Addresses> {
        match *self {
            Self::Fragment { addresses, .. }
            | Self::NoRoomForBth { addresses }
            | Self::LengthLies { addresses, .. } => Some(addresses),
            Self::Truncated { addresses, .. } => addresses,
            Self::CarrierFragment { .. } => None,
        }
    }

    /// Whether it is known to be RoCEv2: the destination port was seen.
    #[must_use]
    pub const fn is_roce(&self) -> bool {
        match *self {
            Self::Fragment { roce, .. } => roce,
            Self::Truncated { port_seen, .. } | Self::LengthLies { port_seen, .. } => port_seen,
            Self::NoRoomForBth { .. } => true,
            Self::CarrierFragment { .. } => false,
        }
    }
}

/// Why a frame is not RoCEv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NotRoce {
    /// Shorter on the wire than its link header.
    TooShort,
    /// IEEE 802.3 with a length in place of the EtherType: LLC, spanning tree and the like.
    Llc,
    /// ARP or RARP.
    Arp,
    /// LLDP.
    Lldp,
    /// MPLS; what is behind the labels is not asked.
    Mpls,
    /// A MAC control frame that is none of PFC: PAUSE or another opcode, or none.
    MacControl,
    /// A MAC control frame of which the capture leaves out what tells whether it is one of PFC.
    MacControlCut,
    /// The opcode of PFC in a frame to another address: no PFC frame.
    PfcElsewhere,
    /// The opcode of PFC behind a tag: no PFC frame.
    PfcTagged,
    /// The opcode of PFC in a frame without room for vector and times: no PFC frame.
    PfcTooShort,
    /// The opcode of PFC behind a link header without a destination: nobody can say.
    PfcNoDestination,
    /// Another EtherType, or another protocol of the link.
    OtherEtherType(u16),
    /// More tags than [`super`] looks through.
    TooManyTags,
    /// A tag with the reserved VID 4095.
    ReservedVlan,
    /// An IP header whose version or lengths contradict themselves or the link.
    BadIpHeader,
    /// IPv6 with more extension headers than [`super`] looks through.
    TooManyExtensions,
    /// TCP.
    Tcp,
    /// ICMP or ICMPv6.
    Icmp,
    /// Another IP protocol, or an extension header that hides what follows.
    OtherIpProtocol(u8),
    /// An IP payload too short to hold a UDP header.
    BadUdpHeader,
    /// UDP to another port.
    OtherUdpPort(u16),
    /// Not inside the encapsulation that is observed.
    OutsideLayer,
    /// Inside the encapsulation that is observed, but with a content or a header version that
    /// is not taken apart.
    OtherEncapsulated,
    /// A mirrored frame that the mirror itself marks as received with an error.
    BadMirrored,
    /// Inside the encapsulation that is observed, under a version that is not known here.
    UnreadableEncapsulation,
}

impl NotRoce {
    /// How many kinds there are, for a table of counters.
    pub const COUNT: usize = 25;

    /// Whether it may have been anything, RoCEv2 too: this program does not look that far.
    #[must_use]
    pub const fn may_be_roce(self) -> bool {
        matches!(self, Self::TooManyTags | Self::TooManyExtensions | Self::UnreadableEncapsulation)
    }

    /// The kind, without the number it may carry, 0 to [`Self::COUNT`] - 1.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::TooShort => 0,
            Self::Llc => 1,
            Self::Arp => 2,
            Self::Lldp => 3,
            Self::Mpls => 4,
            Self::MacControl => 5,
            Self::MacControlCut => 6,
            Self::PfcElsewhere => 7,
            Self::PfcTagged => 8,
            Self::PfcTooShort => 9,
            Self::PfcNoDestination => 10,
            Self::OtherEtherType(_) => 11,
            Self::TooManyTags => 12,
            Self::ReservedVlan => 13,
            Self::BadIpHeader => 14,
            Self::TooManyExtensions => 15,
            Self::Tcp => 16,
            Self::Icmp => 17,
            Self::OtherIpProtocol(_) => 18,
            Self::BadUdpHeader => 19,
            Self::OtherUdpPort(_) => 20,
            Self::OutsideLayer => 21,
            Self::OtherEncapsulated => 22,
            Self::BadMirrored => 23,
            Self::UnreadableEncapsulation => 24,
        }
    }

    /// What to call each kind in a summary, by [`Self::index`].
    pub const NAMES: [&'static str; Self::COUNT] = [
        "too short for its link header",
        "802.3 LLC",
        "ARP",
        "LLDP",
        "MPLS",
        "MAC control other than PFC",
        "MAC control, cut by the capture before it shows whether it is PFC",
        "PFC opcode, but not sent to the address of PFC: no PFC frame",
        "PFC opcode, but behind a tag: no PFC frame",
        "PFC opcode, but too short: no PFC frame",
        "PFC opcode, captured without a destination: whether it is a PFC frame is unknown",
        "other EtherType",
        "too many tags",
        "reserved VLAN id 4095",
        "bad IP header",
        "too many IPv6 extension headers",
        "TCP",
        "ICMP",
        "other IP protocol",
        "bad UDP header",
        "other UDP port",
        "outside the observed encapsulation",
        "other content in the observed encapsulation",
        "marked bad by the mirror",
        "an encapsulation whose version is not known here",
    ];
}

impl fmt::Display for NotRoce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES[self.index()];
        match self {
            Self::OtherEtherType(number) => write!(f, "{name} 0x{number:04x}"),
            Self::OtherIpProtocol(number) => write!(f, "{name} {number}"),
            Self::OtherUdpPort(number) => write!(f, "{name} {number}"),
            _ => f.write_str(name),
        }
    }
}
