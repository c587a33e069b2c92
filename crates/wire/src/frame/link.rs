//! Link types of capture files (the registry of link-layer header types of the pcap formats).
//!
//! Only those that can carry RoCEv2 are taken apart; every other is refused by its name.

use core::fmt;

/// What stands at the front of a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet, from the destination address on, without preamble.
    Ethernet,
    /// IPv4 or IPv6, told apart by the version field.
    Ip,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Linux cooked capture, version 1: 16 octets, the protocol last.
    Sll,
    /// Linux cooked capture, version 2: 20 octets, the protocol first.
    Sll2,
    /// BSD loopback: an address family in either byte order, then IP.
    Null,
}

impl LinkType {
    /// The link type with this number in a capture file.
    ///
    /// # Errors
    /// One that cannot carry RoCEv2, or that we cannot read, comes back as its name.
    pub const fn from_number(number: u32) -> Result<Self, UnknownLink> {
        match number {
            1 => Ok(Self::Ethernet),
            // 101 is the registered one; 12 and 14 are what systems write for it themselves.
            12 | 14 | 101 => Ok(Self::Ip),
            228 => Ok(Self::Ipv4),
            229 => Ok(Self::Ipv6),
            113 => Ok(Self::Sll),
            276 => Ok(Self::Sll2),
            0 | 108 => Ok(Self::Null),
            _ => Err(UnknownLink { number }),
        }
    }
}

/// A link type that is not one of [`LinkType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnknownLink {
    /// Its number in the capture file.
    pub number: u32,
}

impl UnknownLink {
    /// The registered name, without its prefix, of the commoner ones.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.number).map(|(_, name)| *name)
    }
}

impl fmt::Display for UnknownLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().unwrap_or("not a name that we know");
        write!(f, "link type {} ({name}): not one that carries RoCEv2", self.number)
    }
}

impl core::error::Error for UnknownLink {}

static NAMES: [(u32, &str); 37] = [
    (3, "AX25"),
    (6, "IEEE802_5"),
    (7, "ARCNET_BSD"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (50, "PPP_HDLC"),
    (51, "PPP_ETHER"),
    (100, "ATM_RFC1483"),
    (104, "C_HDLC"),
    (105, "IEEE802_11"),
    (107, "FRELAY"),
    (114, "LTALK"),
    (117, "PFLOG"),
    (119, "IEEE802_11_PRISM"),
    (122, "IP_OVER_FC"),
    (127, "IEEE802_11_RADIOTAP"),
    (147, "USER0"),
    (163, "IEEE802_11_AVS"),
    (187, "BLUETOOTH_HCI_H4"),
    (189, "USB_LINUX"),
    (192, "PPI"),
    (195, "IEEE802_15_4_WITHFCS"),
    (197, "ERF"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"),
    (220, "USB_LINUX_MMAPPED"),
    (224, "FC_2"),
    (227, "CAN_SOCKETCAN"),
    (239, "NFLOG"),
    (240, "NETANALYZER"),
    (241, "NETANALYZER_TRANSPARENT"),
    (242, "IPOIB"),
    (247, "INFINIBAND"),
    (249, "USBPCAP"),
    (251, "BLUETOOTH_LE_LL"),
    (253, "NETLINK"),
    (258, "PKTAP"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn link_types_that_carry_roce_are_known_by_number() {
        for (number, link) in [
            (0, LinkType::Null),
            (1, LinkType::Ethernet),
            (12, LinkType::Ip),
            (14, LinkType::Ip),
            (101, LinkType::Ip),
            (108, LinkType::Null),
            (113, LinkType::Sll),
            (228, LinkType::Ipv4),
            (229, LinkType::Ipv6),
            (276, LinkType::Sll2),
        ] {
            assert_eq!(LinkType::from_number(number), Ok(link));
        }
    }

    #[test]
    fn any_other_link_type_is_refused_by_name() {
        let error = LinkType::from_number(127).expect_err("radio");
        assert_eq!(
            format!("{error}"),
            "link type 127 (IEEE802_11_RADIOTAP): not one that carries RoCEv2"
        );
        let error = LinkType::from_number(65_000).expect_err("no such type");
        assert_eq!(
            format!("{error}"),
            "link type 65000 (not a name that we know): not one that carries RoCEv2"
        );
        for number in (0..300).filter(|&n| NAMES.iter().any(|(other, _)| *other == n)) {
            assert!(LinkType::from_number(number).is_err());
        }
    }
}
