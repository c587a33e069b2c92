//! Template Records and Options Template Records (RFC 7011, sections 3.2, 3.4.1 and 3.4.2).
//!
//! A [`TemplateSpec`] is what a template says; what it means for reading is a
//! [`Layout`](super::Layout).

use alloc::vec::Vec;
use core::fmt;

use super::message::{u16_at, u32_at};
use super::{Error, Fault};
use crate::element::{AbstractType, ElementId, VARIABLE};

/// Template IDs below this one are other things (RFC 7011, section 3.4.1).
pub const TEMPLATE_ID_MIN: u16 = 256;

const ENTERPRISE: u16 = 0x8000;

/// Whether records are described with a scope or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TemplateKind {
    /// A Template, in sets with ID 2.
    Template,
    /// An Options Template, in sets with ID 3.
    Options,
}

impl TemplateKind {
    /// The ID of the sets that carry it, which is also the Template ID of a withdrawal of all.
    #[must_use]
    pub const fn set_id(self) -> u16 {
        match self {
            Self::Template => 2,
            Self::Options => 3,
        }
    }

    /// Octets before the first Field Specifier.
    pub(super) const fn header_len(self) -> usize {
        match self {
            Self::Template => 4,
            Self::Options => 6,
        }
    }
}

impl fmt::Display for TemplateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Template => "template",
            Self::Options => "options template",
        })
    }
}

/// A Field Specifier (RFC 7011, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldSpec {
    /// Which element.
    pub id: ElementId,
    /// Octets of each value, or [`VARIABLE`].
    pub length: u16,
}

impl FieldSpec {
    /// A field with this length.
    #[must_use]
    pub const fn new(id: ElementId, length: u16) -> Self {
        Self { id, length }
    }

    /// A field in the full length of its type.
    #[must_use]
    pub const fn full(id: ElementId, abstract_type: AbstractType) -> Self {
        Self { id, length: abstract_type.full_length() }
    }

    /// Octets of the shortest value with its length octet, if it has one.
    pub(super) const fn least(self) -> usize {
        if self.length == VARIABLE { 1 } else { self.length as usize }
    }

    const fn is_enterprise(self) -> bool {
        self.id.pen != 0 || self.id.id & ENTERPRISE != 0
    }
}

/// A Template Record or an Options Template Record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemplateSpec {
    /// The Template ID, 256 to 65535.
    pub id: u16,
    /// How many of the fields, from the first on, are the scope; 0 makes it a Template, anything
    /// else an Options Template.
    pub scope_count: u16,
    /// The fields in wire order.
    pub fields: Vec<FieldSpec>,
}

impl TemplateSpec {
    /// Whether it is a Template or an Options Template.
    #[must_use]
    pub const fn kind(&self) -> TemplateKind {
        if self.scope_count == 0 { TemplateKind::Template } else { TemplateKind::Options }
    }

    /// Octets of the shortest record.
    #[must_use]
    pub fn record_min(&self) -> usize {
        self.fields.iter().map(|f| f.least()).sum()
    }

    /// What is wrong with it whatever the elements are.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let template = self.id;
        let count = self.field_count();
        if template < TEMPLATE_ID_MIN {
            return Err(Fault::TemplateId { found: template });
        }
        if self.scope_count > count {
            return Err(Fault::Scope { template, found: self.scope_count, fields: count });
        }
        let least = self.record_min();
        if least == 0 || least > super::RECORD_MAX {
            let found = u32::try_from(least).unwrap_or(u32::MAX);
            return Err(Fault::RecordLength { template, found });
        }
        Ok(())
    }

    /// Appends the record as it stands in a Template Set.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.field_count().to_be_bytes());
        if self.scope_count != 0 {
            out.extend_from_slice(&self.scope_count.to_be_bytes());
        }
        for field in &self.fields {
            let bit = if field.is_enterprise() { ENTERPRISE } else { 0 };
            out.extend_from_slice(&(field.id.id | bit).to_be_bytes());
            out.extend_from_slice(&field.length.to_be_bytes());
            if field.is_enterprise() {
                out.extend_from_slice(&field.id.pen.to_be_bytes());
            }
        }
    }

    fn field_count(&self) -> u16 {
        // More fields than this do not fit into a message, which the writer finds out by itself.
        u16::try_from(self.fields.len()).unwrap_or(u16::MAX)
    }
}

/// What one record of a Template Set says.
pub(super) enum TemplateRecord {
    Define(TemplateSpec),
    Withdraw(u16),
    WithdrawAll,
    Refused(Fault),
    /// As [`TemplateRecord::Refused`], and what follows in the set cannot be told.
    RefusedToEnd(Fault),
}

/// The records of one Template Set or Options Template Set, one call each.
pub(super) struct TemplateRecords<'a> {
    octets: &'a [u8],
    /// Offset of `octets` in the message.
    at: usize,
    kind: TemplateKind,
    fields_max: usize,
}

impl<'a> TemplateRecords<'a> {
    pub(super) const fn new(
        octets: &'a [u8],
        at: usize,
        kind: TemplateKind,
        fields_max: usize,
    ) -> Self {
        Self { octets, at, kind, fields_max }
    }

    /// The next record, or none where only padding is left.
    pub(super) fn next(&mut self) -> Result<Option<(usize, TemplateRecord)>, Error> {
        // Fewer than four octets hold no record. More of them are padding where all are zero: no
        // record begins with Template ID 0. (RFC 7011 asks the writer for less padding than that,
        // and some write more.)
        if self.octets.len() < 4 {
            return Ok(None);
        }
        let at = self.at;
        let (id, count) = (u16_at(self.octets, 0), u16_at(self.octets, 2));
        if count == 0 && (id >= TEMPLATE_ID_MIN || id == self.kind.set_id()) {
            self.skip(4);
            let record = if id < TEMPLATE_ID_MIN {
                TemplateRecord::WithdrawAll
            } else {
                TemplateRecord::Withdraw(id)
            };
            return Ok(Some((at, record)));
        }
        if id < TEMPLATE_ID_MIN {
            let padding = self.octets.iter().all(|o| *o == 0);
            self.skip(self.octets.len());
            let fault = Fault::TemplateId { found: id };
            return Ok((!padding).then_some((at, TemplateRecord::RefusedToEnd(fault))));
        }
        let record = self.definition(id, count)?;
        Ok(Some((at, record)))
    }

    fn definition(&mut self, template: u16, count: u16) -> Result<TemplateRecord, Error> {
        let cut =
            Error::TemplateCut { at: self.at, template, fields: count, left: self.octets.len() };
        let header = self.kind.header_len();
        let scope_count = match self.kind {
            TemplateKind::Template => 0,
            TemplateKind::Options if self.octets.len() < header => return Err(cut),
            TemplateKind::Options => u16_at(self.octets, 4),
        };
        // Every specifier has at least four octets, so a count that lies costs no memory.
        if (self.octets.len() - header) / 4 < usize::from(count) {
            return Err(cut);
        }
        let keep = usize::from(count) <= self.fields_max;
        let mut fields = Vec::with_capacity(if keep { usize::from(count) } else { 0 });
        let mut pos = header;
        for _ in 0..count {
            let (field, used) = specifier(&self.octets[pos..]).ok_or(cut)?;
            pos += used;
            if keep {
                fields.push(field);
            }
        }
        self.skip(pos);
        if !keep {
            let fault = Fault::Fields { template, found: count, max: self.fields_max };
            return Ok(TemplateRecord::Refused(fault));
        }
        if matches!(self.kind, TemplateKind::Options) && (scope_count == 0 || scope_count > count) {
            let fault = Fault::Scope { template, found: scope_count, fields: count };
            return Ok(TemplateRecord::Refused(fault));
        }
        let spec = TemplateSpec { id: template, scope_count, fields };
        Ok(match spec.check() {
            Ok(()) => TemplateRecord::Define(spec),
            Err(fault) => TemplateRecord::Refused(fault),
        })
    }

    fn skip(&mut self, octets: usize) {
        self.octets = &self.octets[octets..];
        self.at += octets;
    }
}

/// The Field Specifier at the start of some octets, and how many it takes.
fn specifier(octets: &[u8]) -> Option<(FieldSpec, usize)> {
    if octets.len() < 4 {
        return None;
    }
    let (id, length) = (u16_at(octets, 0), u16_at(octets, 2));
    if id & ENTERPRISE == 0 {
        return Some((FieldSpec { id: ElementId::iana(id), length }, 4));
    }
    if octets.len() < 8 {
        return None;
    }
    let pen = u32_at(octets, 4);
    // Enterprise number 0 is nobody's: the bit stays in the identifier, see `ElementId`.
    let id = if pen == 0 { id } else { id & !ENTERPRISE };
    Some((FieldSpec { id: ElementId { pen, id }, length }, 8))
}
