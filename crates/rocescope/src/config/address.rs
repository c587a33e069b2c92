//! IP addresses and prefixes as an operator writes them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use observe::provision::Prefix;
use wire::frame::{Addresses, Family};

use super::section::Value;

/// The address of one host.
pub(super) fn host(value: &Value<'_>) -> Option<IpAddr> {
    let expected = "the IPv4 or IPv6 address of one host";
    value.parsed(expected, |text| {
        let address: IpAddr = text.parse().ok()?;
        (!address.is_unspecified() && !address.is_multicast()).then_some(address)
    })
}

/// An address range; an address alone is a range of one.
pub(super) fn prefix(value: &Value<'_>) -> Option<Prefix> {
    let expected = "an address range such as \"10.0.0.0/8\" or \"fd00::/8\"";
    let found = value.parsed(expected, |text| {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            // No sign, no leading zeros: one way to write each.
            Some(digits) if digits.len() > 1 && digits.starts_with('0') => return None,
            Some(digits) if !digits.bytes().all(|b| b.is_ascii_digit()) => return None,
            Some(digits) => digits.parse().ok().filter(|length| *length <= bits)?,
            None => bits,
        };
        let (family, network) = octets(address);
        Some(Prefix { family, network, length })
    })?;
    let network = masked(&found);
    if network != found.network {
        value.wrong(format_args!(
            "no bits beyond the prefix: \"{}\"",
            shown_prefix(&Prefix { network, ..found })
        ));
        return None;
    }
    Some(found)
}

/// Both addresses as the frame decoder gives them; `None` where their families differ.
// SEQ-4.3
pub(super) fn pair(source: IpAddr, destination: IpAddr) -> Option<Addresses> {
    let (family, source) = octets(source);
    let (other, destination) = octets(destination);
    (family == other).then_some(Addresses { family, source, destination })
}

fn octets(address: IpAddr) -> (Family, [u8; 16]) {
    match address {
        IpAddr::V4(v4) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&v4.octets());
            (Family::V4, octets)
        }
        IpAddr::V6(v6) => (Family::V6, v6.octets()),
    }
}

fn masked(prefix: &Prefix) -> [u8; 16] {
    let kept = u128::MAX.checked_shl(128 - u32::from(prefix.length)).unwrap_or(0);
    (u128::from_be_bytes(prefix.network) & kept).to_be_bytes()
}

/// One of the addresses of an [`Addresses`] as text.
pub(crate) fn shown(family: Family, octets: &[u8; 16]) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into(),
        Family::V6 => Ipv6Addr::from(*octets).into(),
    }
}

/// A prefix as text.
pub(crate) fn shown_prefix(prefix: &Prefix) -> impl fmt::Display {
    format!("{}/{}", shown(prefix.family, &prefix.network), prefix.length)
}
