//! Abstract data types, semantics and units of Information Elements (RFC 7012, section 3, and the
//! code points of RFC 5610 with what IANA added later).
//!
//! A type knows which lengths may stand for it in a Template (RFC 7011, sections 6.1, 6.2 and 7).
//! It knows nothing about which element has it.

/// The length in a Field Specifier that says: each value carries its own (RFC 7011, section 7).
pub const VARIABLE: u16 = 0xffff;

/// An abstract data type (RFC 7012, section 3.1; RFC 6313; RFC 9740). The discriminant is the code
/// point of `informationElementDataType` (RFC 5610, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the registry's and say all there is
pub enum AbstractType {
    OctetArray = 0,
    Unsigned8 = 1,
    Unsigned16 = 2,
    Unsigned32 = 3,
    Unsigned64 = 4,
    Signed8 = 5,
    Signed16 = 6,
    Signed32 = 7,
    Signed64 = 8,
    Float32 = 9,
    Float64 = 10,
    Boolean = 11,
    MacAddress = 12,
    String = 13,
    DateTimeSeconds = 14,
    DateTimeMilliseconds = 15,
    DateTimeMicroseconds = 16,
    DateTimeNanoseconds = 17,
    Ipv4Address = 18,
    Ipv6Address = 19,
    BasicList = 20,
    SubTemplateList = 21,
    SubTemplateMultiList = 22,
    Unsigned256 = 23,
}

/// Every type with the name that the registry gives it, in the order of the code points.
const TYPES: [(AbstractType, &str); 24] = [
    (AbstractType::OctetArray, "octetArray"),
    (AbstractType::Unsigned8, "unsigned8"),
    (AbstractType::Unsigned16, "unsigned16"),
    (AbstractType::Unsigned32, "unsigned32"),
    (AbstractType::Unsigned64, "unsigned64"),
    (AbstractType::Signed8, "signed8"),
    (AbstractType::Signed16, "signed16"),
    (AbstractType::Signed32, "signed32"),
    (AbstractType::Signed64, "signed64"),
    (AbstractType::Float32, "float32"),
    (AbstractType::Float64, "float64"),
    (AbstractType::Boolean, "boolean"),
    (AbstractType::MacAddress, "macAddress"),
    (AbstractType::String, "string"),
    (AbstractType::DateTimeSeconds, "dateTimeSeconds"),
    (AbstractType::DateTimeMilliseconds, "dateTimeMilliseconds"),
    (AbstractType::DateTimeMicroseconds, "dateTimeMicroseconds"),
    (AbstractType::DateTimeNanoseconds, "dateTimeNanoseconds"),
    (AbstractType::Ipv4Address, "ipv4Address"),
    (AbstractType::Ipv6Address, "ipv6Address"),
    (AbstractType::BasicList, "basicList"),
    (AbstractType::SubTemplateList, "subTemplateList"),
    (AbstractType::SubTemplateMultiList, "subTemplateMultiList"),
    (AbstractType::Unsigned256, "unsigned256"),
];

/// Which lengths a Field Specifier may give a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// From 1 to this many octets: reduced-size encoding (RFC 7011, section 6.2).
    UpTo(u16),
    /// This many octets and no other number.
    Exactly(u16),
    /// One of two.
    Either(u16, u16),
    /// Any, variable length too.
    Any,
}

impl core::fmt::Display for Lengths {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::UpTo(n) => write!(f, "1 to {n}"),
            Self::Exactly(n) => write!(f, "{n}"),
            Self::Either(a, b) => write!(f, "{a} or {b}"),
            Self::Any => f.write_str("any"),
        }
    }
}

impl AbstractType {
    /// The type with a code point of RFC 5610; none where IANA assigned none.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        TYPES.get(usize::from(code)).map(|t| t.0)
    }

    /// The code point of RFC 5610.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The type with this name in the registry, e.g. `unsigned64`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TYPES.iter().find(|t| t.1 == name).map(|t| t.0)
    }

    /// The registry's name, e.g. `unsigned64`.
    #[must_use]
    pub fn name(self) -> &'static str {
        TYPES[usize::from(self.code())].1
    }

    /// The lengths that may stand for this type in a Template.
    #[must_use]
    pub const fn lengths(self) -> Lengths {
        match self {
            Self::Unsigned8 | Self::Signed8 => Lengths::UpTo(1),
            Self::Unsigned16 | Self::Signed16 => Lengths::UpTo(2),
            Self::Unsigned32 | Self::Signed32 => Lengths::UpTo(4),
            Self::Unsigned64 | Self::Signed64 => Lengths::UpTo(8),
            Self::Unsigned256 => Lengths::UpTo(32),
            Self::Float64 => Lengths::Either(4, 8),
            Self::Boolean => Lengths::Exactly(1),
            Self::MacAddress => Lengths::Exactly(6),
            Self::Float32 | Self::DateTimeSeconds | Self::Ipv4Address => Lengths::Exactly(4),
            Self::DateTimeMilliseconds | Self::DateTimeMicroseconds | Self::DateTimeNanoseconds => {
                Lengths::Exactly(8)
            }
            Self::Ipv6Address => Lengths::Exactly(16),
            Self::OctetArray
            | Self::String
            | Self::BasicList
            | Self::SubTemplateList
            | Self::SubTemplateMultiList => Lengths::Any,
        }
    }

    /// Whether a Field Specifier may give this type this length ([`VARIABLE`] included).
    #[must_use]
    pub const fn admits(self, length: u16) -> bool {
        match self.lengths() {
            Lengths::UpTo(most) => length >= 1 && length <= most,
            Lengths::Exactly(n) => length == n,
            Lengths::Either(a, b) => length == a || length == b,
            Lengths::Any => true,
        }
    }

    /// The length that stands for the type unless something else is agreed: the full one, or
    /// [`VARIABLE`] where the type has none.
    #[must_use]
    pub const fn full_length(self) -> u16 {
        match self.lengths() {
            Lengths::UpTo(n) | Lengths::Exactly(n) | Lengths::Either(_, n) => n,
            Lengths::Any => VARIABLE,
        }
    }

    /// Whether a value of this type can have these semantics (RFC 5610, section 3.10; lists by
    /// RFC 6313).
    #[must_use]
    pub const fn admits_semantics(self, semantics: Semantics) -> bool {
        match self {
            Self::Unsigned8
            | Self::Unsigned16
            | Self::Unsigned32
            | Self::Unsigned64
            | Self::Unsigned256 => true,
            Self::Signed8 | Self::Signed16 | Self::Signed32 | Self::Signed64 => {
                !matches!(semantics, Semantics::Flags)
            }
            Self::Float32 | Self::Float64 => {
                !matches!(semantics, Semantics::Flags | Semantics::Identifier)
            }
            Self::BasicList | Self::SubTemplateList | Self::SubTemplateMultiList => {
                matches!(semantics, Semantics::Default | Semantics::List)
            }
            _ => matches!(semantics, Semantics::Default),
        }
    }
}

/// Data type semantics (RFC 7012, section 3.2), with the code points of RFC 5610, section 3.6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the registry's
pub enum Semantics {
    #[default]
    Default,
    Quantity,
    TotalCounter,
    DeltaCounter,
    Identifier,
    Flags,
    List,
    SnmpCounter,
    SnmpGauge,
    /// A code point that IANA had not assigned, 9 to 255.
    Unassigned(u8),
}

const SEMANTICS: [(Semantics, &str); 9] = [
    (Semantics::Default, "default"),
    (Semantics::Quantity, "quantity"),
    (Semantics::TotalCounter, "totalCounter"),
    (Semantics::DeltaCounter, "deltaCounter"),
    (Semantics::Identifier, "identifier"),
    (Semantics::Flags, "flags"),
    (Semantics::List, "list"),
    (Semantics::SnmpCounter, "snmpCounter"),
    (Semantics::SnmpGauge, "snmpGauge"),
];

impl Semantics {
    /// The semantics with a code point.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        SEMANTICS.get(usize::from(code)).map_or(Self::Unassigned(code), |s| s.0)
    }

    /// The code point.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Default => 0,
            Self::Quantity => 1,
            Self::TotalCounter => 2,
            Self::DeltaCounter => 3,
            Self::Identifier => 4,
            Self::Flags => 5,
            Self::List => 6,
            Self::SnmpCounter => 7,
            Self::SnmpGauge => 8,
            Self::Unassigned(code) => code,
        }
    }

    /// The semantics with this name in the registry, e.g. `totalCounter`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        SEMANTICS.iter().find(|s| s.1 == name).map(|s| s.0)
    }

    /// The registry's name; none for an unassigned code point.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        SEMANTICS.iter().find(|s| s.0 == self).map(|s| s.1)
    }
}

/// Units, with the code points of RFC 5610, section 3.7, and those that IANA added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the registry's
pub enum Units {
    #[default]
    None,
    Bits,
    Octets,
    Packets,
    Flows,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    FourOctetWords,
    Messages,
    Hops,
    Entries,
    Frames,
    Ports,
    Inferred,
    /// A code point that IANA had not assigned, 16 to 65535.
    Unassigned(u16),
}

const UNITS: [(Units, &str); 16] = [
    (Units::None, "none"),
    (Units::Bits, "bits"),
    (Units::Octets, "octets"),
    (Units::Packets, "packets"),
    (Units::Flows, "flows"),
    (Units::Seconds, "seconds"),
    (Units::Milliseconds, "milliseconds"),
    (Units::Microseconds, "microseconds"),
    (Units::Nanoseconds, "nanoseconds"),
    (Units::FourOctetWords, "4-octet words"),
    (Units::Messages, "messages"),
    (Units::Hops, "hops"),
    (Units::Entries, "entries"),
    (Units::Frames, "frames"),
    (Units::Ports, "ports"),
    (Units::Inferred, "inferred"),
];

impl Units {
    /// The units with a code point.
    #[must_use]
    pub fn from_code(code: u16) -> Self {
        UNITS.get(usize::from(code)).map_or(Self::Unassigned(code), |u| u.0)
    }

    /// The code point.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::Unassigned(code) => code,
            assigned => {
                (0u16..).zip(UNITS).find(|(_, u)| u.0 == assigned).map_or(0, |(code, _)| code)
            }
        }
    }

    /// The units with this name in the registry, e.g. `packets`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        UNITS.iter().find(|u| u.1 == name).map(|u| u.0)
    }

    /// The registry's name; none for an unassigned code point.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        UNITS.iter().find(|u| u.0 == self).map(|u| u.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_point_comes_back_and_names_are_found() {
        for code in 0..=255u8 {
            match AbstractType::from_code(code) {
                Some(t) => {
                    assert_eq!(t.code(), code);
                    assert_eq!(AbstractType::from_name(t.name()), Some(t));
                }
                None => assert!(code >= 24, "type {code} is assigned"),
            }
            assert_eq!(Semantics::from_code(code).code(), code);
            assert_eq!(Semantics::from_code(code).name().is_some(), code < 9);
        }
        for code in 0..=300u16 {
            assert_eq!(Units::from_code(code).code(), code);
            assert_eq!(Units::from_code(code).name().is_some(), code < 16);
        }
    }

    #[test]
    fn integers_shrink_to_one_octet_and_not_to_none() {
        for (t, most) in [
            (AbstractType::Unsigned8, 1),
            (AbstractType::Signed16, 2),
            (AbstractType::Unsigned32, 4),
            (AbstractType::Unsigned64, 8),
            (AbstractType::Unsigned256, 32),
        ] {
            assert!(!t.admits(0));
            assert!(t.admits(1));
            assert!(t.admits(most));
            assert!(!t.admits(most + 1));
            assert!(!t.admits(VARIABLE));
        }
    }

    #[test]
    fn a_float64_shrinks_to_four_octets_only_and_times_and_addresses_never() {
        for length in 0..=20 {
            assert_eq!(AbstractType::Float64.admits(length), length == 4 || length == 8);
            assert_eq!(AbstractType::Float32.admits(length), length == 4);
            assert_eq!(AbstractType::DateTimeMilliseconds.admits(length), length == 8);
            assert_eq!(AbstractType::DateTimeSeconds.admits(length), length == 4);
            assert_eq!(AbstractType::Ipv6Address.admits(length), length == 16);
            assert_eq!(AbstractType::MacAddress.admits(length), length == 6);
            assert_eq!(AbstractType::Boolean.admits(length), length == 1);
            assert!(AbstractType::String.admits(length));
        }
    }

    #[test]
    fn a_counter_is_no_address_and_flags_are_no_signed_number() {
        assert!(!AbstractType::Ipv4Address.admits_semantics(Semantics::TotalCounter));
        assert!(!AbstractType::Signed32.admits_semantics(Semantics::Flags));
        assert!(!AbstractType::Float64.admits_semantics(Semantics::Identifier));
        assert!(AbstractType::Unsigned64.admits_semantics(Semantics::Flags));
        assert!(AbstractType::String.admits_semantics(Semantics::Default));
    }
}
