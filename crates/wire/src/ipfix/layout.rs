//! A template compiled for reading: where each field of a record stands.
//!
//! Done once for each template. Between two variable-length fields everything is at a fixed
//! distance, so a field's place is: behind so many variable-length fields, and so many octets on.
//! In a record without any, that is a plain offset.

use alloc::vec::Vec;

use super::record::Records;
use super::{Fault, FieldSpec, TemplateKind, TemplateSpec};
use crate::element::standard::{
    INFORMATION_ELEMENT_DATA_TYPE, INFORMATION_ELEMENT_ID, INFORMATION_ELEMENT_NAME,
};
use crate::element::{ElementId, Registry, VARIABLE};

/// A template compiled for reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    spec: TemplateSpec,
    places: Vec<Slot>,
    /// For each variable-length field, the fixed octets between it and the one before.
    gaps: Vec<u16>,
    /// Fixed octets behind the last variable-length field: all, where there is none.
    tail: u16,
    stamp: u32,
}

/// Where one field of a layout stands. Good for records of that layout, and of an equal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Variable-length fields before it.
    pub(super) variables: u16,
    /// Fixed octets between the last of these, or the record's start, and the field.
    pub(super) offset: u16,
    /// Octets of the field, or [`VARIABLE`].
    pub(super) length: u16,
    /// Of the layout, so that a slot is not used with another one.
    pub(super) stamp: u32,
}

/// Where a field stands that is read as an unsigned number: its length is fixed, 1 to 8 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsignedSlot {
    pub(super) slot: Slot,
    /// Bits of a 64-bit word that the field does not take: 64 - 8 * length.
    pub(super) unused: u32,
}

impl Layout {
    /// Compiles a template. Where the program itself defines an element, its length must be one
    /// that its type can have; elements of others are taken as they come.
    ///
    /// # Errors
    /// [`Fault::TemplateId`], [`Fault::Scope`], [`Fault::Length`], [`Fault::RecordLength`].
    pub fn compile(spec: TemplateSpec, registry: &Registry) -> Result<Self, Fault> {
        spec.check()?;
        for field in &spec.fields {
            if let Some(element) = registry.own(field.id)
                && !element.abstract_type.admits(field.length)
            {
                return Err(Fault::Length {
                    template: spec.id,
                    element: field.id,
                    found: field.length,
                    legal: element.abstract_type.lengths(),
                });
            }
        }
        let stamp = stamp(&spec);
        let mut places = Vec::with_capacity(spec.fields.len());
        let mut gaps = Vec::new();
        let (mut variables, mut offset) = (0u16, 0u16);
        for field in &spec.fields {
            places.push(Slot { variables, offset, length: field.length, stamp });
            // Neither sum overflows: `check` has bounded the shortest record, to which each
            // variable-length field adds at least one octet.
            if field.length == VARIABLE {
                gaps.push(offset);
                variables += 1;
                offset = 0;
            } else {
                offset += field.length;
            }
        }
        Ok(Self { spec, places, gaps, tail: offset, stamp })
    }

    /// The Template ID.
    #[must_use]
    pub const fn id(&self) -> u16 {
        self.spec.id
    }

    /// Whether it is a Template or an Options Template.
    #[must_use]
    pub const fn kind(&self) -> TemplateKind {
        self.spec.kind()
    }

    /// The template that it was compiled from.
    #[must_use]
    pub const fn spec(&self) -> &TemplateSpec {
        &self.spec
    }

    /// The fields in wire order.
    #[must_use]
    pub fn fields(&self) -> &[FieldSpec] {
        &self.spec.fields
    }

    /// The fields that are the scope; none for a Template.
    #[must_use]
    pub fn scope(&self) -> &[FieldSpec] {
        &self.spec.fields[..usize::from(self.spec.scope_count)]
    }

    /// Octets of each record, where all have the same number.
    #[must_use]
    pub const fn fixed_length(&self) -> Option<u16> {
        if self.gaps.is_empty() { Some(self.tail) } else { None }
    }

    /// Octets of the shortest record, at least 1.
    #[must_use]
    pub fn record_min(&self) -> usize {
        let fixed: usize = self.gaps.iter().map(|g| usize::from(*g)).sum();
        fixed + self.gaps.len() + usize::from(self.tail)
    }

    /// Where an element stands; the first of them where it stands several times. Looks at every
    /// field: to be asked once for a layout, not for each record.
    #[must_use]
    pub fn slot(&self, id: ElementId) -> Option<Slot> {
        self.slots(id).next()
    }

    /// Everywhere an element stands, in wire order.
    pub fn slots(&self, id: ElementId) -> impl Iterator<Item = Slot> + '_ {
        self.places
            .iter()
            .zip(&self.spec.fields)
            .filter(move |(_, field)| field.id == id)
            .map(|(slot, _)| *slot)
    }

    /// Where the field with an index stands.
    #[must_use]
    pub fn slot_at(&self, index: usize) -> Option<Slot> {
        self.places.get(index).copied()
    }

    /// Where an element stands, if it can be read as an unsigned number of at most 64 bits.
    #[must_use]
    pub fn unsigned(&self, id: ElementId) -> Option<UnsignedSlot> {
        self.slot(id).and_then(Slot::unsigned)
    }

    /// The records in the octets of a Data Set behind its header. Where a value ends beyond the
    /// octets, the records end before it.
    #[must_use]
    pub const fn records<'a>(&'a self, octets: &'a [u8]) -> Records<'a> {
        Records::new(self, octets)
    }

    /// Whether its records describe elements (RFC 5610, section 3.9).
    #[must_use]
    pub fn is_type_information(&self) -> bool {
        self.scope().iter().any(|f| f.id == INFORMATION_ELEMENT_ID)
            && self.slot(INFORMATION_ELEMENT_DATA_TYPE).is_some()
            && self.slot(INFORMATION_ELEMENT_NAME).is_some()
    }

    pub(super) const fn stamp(&self) -> u32 {
        self.stamp
    }

    /// Octets of the record at the start of some octets; none where it does not end in them.
    pub(super) fn record_length(&self, octets: &[u8]) -> Option<usize> {
        let end = self.behind(octets, self.gaps.len())? + usize::from(self.tail);
        (end <= octets.len()).then_some(end)
    }

    /// Offset behind so many variable-length fields of a record.
    pub(super) fn behind(&self, record: &[u8], variables: usize) -> Option<usize> {
        let mut pos = 0usize;
        for gap in &self.gaps[..variables] {
            pos += usize::from(*gap);
            let (start, length) = value_at(record, pos)?;
            pos = start + length;
        }
        Some(pos)
    }

    /// How many records a Data Set's octets hold and how many octets of padding stay behind them;
    /// the offset of the record that does not end in them otherwise.
    pub(super) fn count(&self, octets: &[u8]) -> Result<u32, usize> {
        let min = self.record_min();
        let count = if self.gaps.is_empty() {
            octets.len() / min
        } else {
            let (mut pos, mut count) = (0, 0usize);
            while octets.len() - pos >= min {
                pos += self.record_length(&octets[pos..]).ok_or(pos)?;
                count += 1;
            }
            count
        };
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

impl Slot {
    /// The slot as one of an unsigned number: none where the length varies, is 0, or is over 8.
    #[must_use]
    pub const fn unsigned(self) -> Option<UnsignedSlot> {
        match self.length {
            1..=8 => Some(UnsignedSlot { slot: self, unused: 64 - 8 * self.length as u32 }),
            _ => None,
        }
    }
}

/// Where the variable-length value at an offset starts, and its length (RFC 7011, section 7). Its
/// end may lie beyond the octets.
pub(super) fn value_at(octets: &[u8], at: usize) -> Option<(usize, usize)> {
    match *octets.get(at)? {
        255 => {
            let long = octets.get(at + 1..at + 3)?;
            Some((at + 3, usize::from(u16::from_be_bytes([long[0], long[1]]))))
        }
        short => Some((at + 1, usize::from(short))),
    }
}

/// A number that two layouts share when they are equal, and hardly ever otherwise (FNV-1a).
fn stamp(spec: &TemplateSpec) -> u32 {
    let mut octets = Vec::new();
    spec.write(&mut octets);
    octets
        .iter()
        .fold(0x811c_9dc5, |hash: u32, octet| (hash ^ u32::from(*octet)).wrapping_mul(0x0100_0193))
}
