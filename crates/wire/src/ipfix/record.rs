//! Data Records: reading fields by slot, and typed values for those who only show them.
//!
//! Nothing is allocated. A record knows its layout and its octets; what an element means is asked of
//! a [`Registry`] when a value is wanted.

use super::layout::value_at;
use super::{FieldSpec, Layout, Slot, UnsignedSlot};
use crate::element::{AbstractType, Element, Registry, VARIABLE};

/// The records of one Data Set.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    layout: &'a Layout,
    octets: &'a [u8],
}

/// One Data Record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    layout: &'a Layout,
    octets: &'a [u8],
}

/// A value with the type that the registry gives its element (RFC 7011, section 6.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer of up to 64 bits.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// An unsigned256, big-endian, as many octets as were sent.
    Wide(&'a [u8]),
    /// A float64 or float32.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// A MAC address.
    Mac([u8; 6]),
    /// A string.
    Text(&'a str),
    /// Seconds since 1970.
    Seconds(u32),
    /// Milliseconds since 1970.
    Milliseconds(u64),
    /// A time that is good to the microsecond.
    Microseconds(Ntp),
    /// A time that may be good to the nanosecond.
    Nanoseconds(Ntp),
    /// An IPv4 address.
    Ipv4([u8; 4]),
    /// An IPv6 address.
    Ipv6([u8; 16]),
    /// A list of RFC 6313, not looked into.
    List(&'a [u8]),
    /// An octetArray, or a value of an element that nobody has described.
    Octets(&'a [u8]),
    /// Octets that are no value of the element's type: a string that is not UTF-8, a boolean that
    /// is neither 1 nor 2, a length that the type cannot have. Not to be read as a value.
    Illegal(&'a [u8]),
}

/// An NTP timestamp of era 0 (RFC 7011, sections 6.1.9 and 6.1.10): from 1900 to 2036.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ntp {
    /// Seconds since 1900.
    pub seconds: u32,
    /// Fraction of a second in 2^-32 s.
    pub fraction: u32,
}

/// Seconds from 1900 to 1970.
const NTP_TO_UNIX: i64 = 2_208_988_800;

impl Ntp {
    /// Microseconds since 1970, rounded to the nearest; the lowest eleven bits of the fraction do
    /// not count.
    #[must_use]
    pub fn unix_microseconds(self) -> i64 {
        Self { fraction: self.fraction & !0x7ff, ..self }.unix(1_000_000)
    }

    /// Nanoseconds since 1970, rounded to the nearest.
    #[must_use]
    pub fn unix_nanoseconds(self) -> i64 {
        self.unix(1_000_000_000)
    }

    fn unix(self, per_second: u32) -> i64 {
        // At most 10^9 after the shift, so it fits; and 2^32 seconds of nanoseconds fit into i64.
        let fraction = (u64::from(self.fraction) * u64::from(per_second) + (1 << 31)) >> 32;
        (i64::from(self.seconds) - NTP_TO_UNIX) * i64::from(per_second)
            + i64::try_from(fraction).unwrap_or(0)
    }
}

impl<'a> Records<'a> {
    pub(super) const fn new(layout: &'a Layout, octets: &'a [u8]) -> Self {
        Self { layout, octets }
    }

    /// What is left behind the records that were taken: padding, once they are all taken.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.octets
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let length = match self.layout.fixed_length() {
            Some(length) => usize::from(length),
            None if self.octets.len() < self.layout.record_min() => return None,
            None => self.layout.record_length(self.octets)?,
        };
        let (octets, rest) = self.octets.split_at_checked(length)?;
        self.octets = rest;
        Some(Record { layout: self.layout, octets })
    }
}

impl<'a> Record<'a> {
    /// The layout of the record.
    #[must_use]
    pub const fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The whole record as it was sent.
    #[must_use]
    pub const fn as_octets(&self) -> &'a [u8] {
        self.octets
    }

    /// An unsigned number, whatever number of octets it was sent in.
    ///
    /// # Panics
    /// May panic if the slot is not of this record's layout, and always does in debug builds:
    /// only the program itself can mix them up, and a number from the wrong place looks right.
    #[inline(always)]
    #[must_use]
    pub fn unsigned(&self, slot: UnsignedSlot) -> u64 {
        let UnsignedSlot { slot, unused } = slot;
        debug_assert_eq!(slot.stamp, self.layout.stamp(), "a slot of another layout");
        // Nearly always: one load of the eight octets from the field on, and the field is their
        // first ones. The last fields of a record have fewer behind them.
        if slot.variables == 0
            && let Some(word) =
                self.octets.get(usize::from(slot.offset)..).and_then(<[u8]>::first_chunk)
        {
            return u64::from_be_bytes(*word) >> unused;
        }
        self.unsigned_elsewhere(slot)
    }

    /// Behind a field of variable length, or at the end of the record.
    #[cold]
    fn unsigned_elsewhere(&self, slot: Slot) -> u64 {
        big_endian(self.octets(slot))
    }

    /// The octets of a field, without the length in front of a variable-length one.
    ///
    /// # Panics
    /// As [`Record::unsigned`].
    #[inline]
    #[must_use]
    pub fn octets(&self, slot: Slot) -> &'a [u8] {
        debug_assert_eq!(slot.stamp, self.layout.stamp(), "a slot of another layout");
        let mut start = usize::from(slot.offset);
        if slot.variables > 0 {
            start += self.behind(slot.variables);
        }
        if slot.length == VARIABLE {
            return self.variable(start);
        }
        &self.octets[start..start + usize::from(slot.length)]
    }

    /// The value of the field with an index, with the type that the registry gives it now; none
    /// where the layout has fewer fields.
    #[must_use]
    pub fn value(&self, index: usize, registry: &Registry) -> Option<Value<'a>> {
        let field = self.layout.fields().get(index)?;
        let octets = self.octets(self.layout.slot_at(index)?);
        Some(typed(registry.get(field.id), octets))
    }

    /// Every field in wire order, with its element where one is known. One walk over the record.
    pub fn values<'r>(
        &self,
        registry: &'r Registry,
    ) -> impl Iterator<Item = (FieldSpec, Option<&'r Element>, Value<'a>)> + use<'a, 'r> {
        let octets = self.octets;
        let mut pos = 0;
        self.layout.fields().iter().map_while(move |field| {
            let (start, length) = match field.length {
                VARIABLE => value_at(octets, pos)?,
                fixed => (pos, usize::from(fixed)),
            };
            pos = start + length;
            let element = registry.get(field.id);
            Some((*field, element, typed(element, octets.get(start..pos)?)))
        })
    }

    fn behind(&self, variables: u16) -> usize {
        self.layout
            .behind(self.octets, usize::from(variables))
            .expect("a record was measured when it was cut from its set")
    }

    fn variable(&self, at: usize) -> &'a [u8] {
        let (start, length) =
            value_at(self.octets, at).expect("a record was measured when it was cut from its set");
        &self.octets[start..start + length]
    }
}

/// The number in at most eight octets.
fn big_endian(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |n, o| (n << 8) | u64::from(*o))
}

fn typed<'a>(element: Option<&Element>, octets: &'a [u8]) -> Value<'a> {
    use AbstractType as T;
    let Some(element) = element else {
        return Value::Octets(octets);
    };
    let length = u16::try_from(octets.len()).unwrap_or(VARIABLE);
    // A value of variable length can still be one of the type, by its own length.
    if !element.abstract_type.admits(length) {
        return Value::Illegal(octets);
    }
    let value = match element.abstract_type {
        T::OctetArray => Some(Value::Octets(octets)),
        T::Unsigned8 | T::Unsigned16 | T::Unsigned32 | T::Unsigned64 => {
            Some(Value::Unsigned(big_endian(octets)))
        }
        T::Unsigned256 => Some(Value::Wide(octets)),
        T::Signed8 | T::Signed16 | T::Signed32 | T::Signed64 => Some(Value::Signed(signed(octets))),
        T::Float32 | T::Float64 => float(octets).map(Value::Float),
        T::Boolean => match octets {
            [1] => Some(Value::Boolean(true)),
            [2] => Some(Value::Boolean(false)),
            _ => None,
        },
        T::MacAddress => octets.try_into().ok().map(Value::Mac),
        T::String => core::str::from_utf8(octets).ok().map(Value::Text),
        T::DateTimeSeconds => octets.try_into().ok().map(|o| Value::Seconds(u32::from_be_bytes(o))),
        T::DateTimeMilliseconds => Some(Value::Milliseconds(big_endian(octets))),
        T::DateTimeMicroseconds => ntp(octets).map(Value::Microseconds),
        T::DateTimeNanoseconds => ntp(octets).map(Value::Nanoseconds),
        T::Ipv4Address => octets.try_into().ok().map(Value::Ipv4),
        T::Ipv6Address => octets.try_into().ok().map(Value::Ipv6),
        T::BasicList | T::SubTemplateList | T::SubTemplateMultiList => Some(Value::List(octets)),
    };
    value.unwrap_or(Value::Illegal(octets))
}

/// The two's complement number in one to eight octets: the sign is in the first bit sent.
fn signed(octets: &[u8]) -> i64 {
    let unused = 64 - 8 * u32::try_from(octets.len().clamp(1, 8)).unwrap_or(8);
    (big_endian(octets) << unused).cast_signed() >> unused
}

fn float(octets: &[u8]) -> Option<f64> {
    match *octets {
        [a, b, c, d] => Some(f64::from(f32::from_be_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Some(f64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

fn ntp(octets: &[u8]) -> Option<Ntp> {
    let octets: [u8; 8] = octets.try_into().ok()?;
    let both = u64::from_be_bytes(octets);
    Some(Ntp {
        seconds: u32::try_from(both >> 32).ok()?,
        fraction: u32::try_from(both & 0xffff_ffff).ok()?,
    })
}
