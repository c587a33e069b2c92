//! Elements that describe themselves: Information Element type records (RFC 5610).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;

use super::{EncodeError, Fault, FieldSpec, MessageWriter, Record, TemplateSpec};
use crate::element::standard::{
    INFORMATION_ELEMENT_DATA_TYPE, INFORMATION_ELEMENT_DESCRIPTION, INFORMATION_ELEMENT_ID,
    INFORMATION_ELEMENT_NAME, INFORMATION_ELEMENT_RANGE_BEGIN, INFORMATION_ELEMENT_RANGE_END,
    INFORMATION_ELEMENT_SEMANTICS, INFORMATION_ELEMENT_UNITS, PRIVATE_ENTERPRISE_NUMBER,
};
use crate::element::{AbstractType, Element, ElementId, Semantics, Units, VARIABLE};

/// The Options Template for type records, with everything that RFC 5610 has for them, or without
/// the range and the description. libfixbuf takes a record for a type record only where nothing is
/// left out.
#[must_use]
pub fn type_information_template(id: u16, ranged: bool) -> TemplateSpec {
    let mut fields = vec![
        FieldSpec::new(PRIVATE_ENTERPRISE_NUMBER, 4),
        FieldSpec::new(INFORMATION_ELEMENT_ID, 2),
        FieldSpec::new(INFORMATION_ELEMENT_DATA_TYPE, 1),
        FieldSpec::new(INFORMATION_ELEMENT_SEMANTICS, 1),
        FieldSpec::new(INFORMATION_ELEMENT_UNITS, 2),
    ];
    if ranged {
        fields.push(FieldSpec::new(INFORMATION_ELEMENT_RANGE_BEGIN, 8));
        fields.push(FieldSpec::new(INFORMATION_ELEMENT_RANGE_END, 8));
    }
    fields.push(FieldSpec::new(INFORMATION_ELEMENT_NAME, VARIABLE));
    if ranged {
        fields.push(FieldSpec::new(INFORMATION_ELEMENT_DESCRIPTION, VARIABLE));
    }
    TemplateSpec { id, scope_count: 2, fields }
}

impl MessageWriter<'_> {
    /// Describes elements with type records: a template under `id` for those without a range, one
    /// under `ranged_id` for those with one, each only if it is needed, and a record for each.
    ///
    /// # Errors
    /// [`EncodeError::Semantics`] for the first element whose type cannot have its semantics (RFC
    /// 5610, section 3.10), before anything is written; otherwise what the templates and records
    /// come to.
    pub fn type_information<'e>(
        &mut self,
        id: u16,
        ranged_id: u16,
        elements: impl Iterator<Item = &'e Element> + Clone,
    ) -> Result<(), EncodeError> {
        if let Some(bad) = elements.clone().find(|e| !e.abstract_type.admits_semantics(e.semantics))
        {
            return Err(EncodeError::Semantics { element: bad.id });
        }
        for (template, ranged) in [(id, false), (ranged_id, true)] {
            let mut chosen = elements.clone().filter(|e| e.range.is_some() == ranged).peekable();
            if chosen.peek().is_none() {
                continue;
            }
            self.template(&type_information_template(template, ranged))?;
            for element in chosen {
                self.record(template, |r| {
                    r.unsigned(u64::from(element.id.pen))?;
                    r.unsigned(u64::from(element.id.id & 0x7fff))?;
                    r.unsigned(u64::from(element.abstract_type.code()))?;
                    r.unsigned(u64::from(element.semantics.code()))?;
                    r.unsigned(u64::from(element.units.code()))?;
                    if let Some((begin, end)) = element.range {
                        r.unsigned(begin)?;
                        r.unsigned(end)?;
                    }
                    r.octets(element.name.as_bytes())?;
                    // The draft describes it; a description of our own would say less.
                    if ranged { r.octets(&[]) } else { Ok(()) }
                })?;
            }
        }
        Ok(())
    }
}

/// The element that a type record describes.
pub(super) fn read(record: &Record<'_>) -> Result<Element, Fault> {
    let layout = record.layout();
    let number = |id: ElementId| layout.unsigned(id).map(|slot| record.unsigned(slot));
    let small = |id: ElementId| number(id).and_then(|n| u16::try_from(n).ok());
    let octet = |id: ElementId| number(id).and_then(|n| u8::try_from(n).ok());

    // No enterprise number is IANA's; the enterprise bit of the identifier does not count
    // (RFC 5610, section 3.8).
    let element = ElementId {
        pen: number(PRIVATE_ENTERPRISE_NUMBER).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        id: small(INFORMATION_ELEMENT_ID).unwrap_or(0) & 0x7fff,
    };
    let refused = Fault::TypeRecord { element };
    let abstract_type =
        octet(INFORMATION_ELEMENT_DATA_TYPE).and_then(AbstractType::from_code).ok_or(refused)?;
    let name = layout
        .slot(INFORMATION_ELEMENT_NAME)
        .and_then(|slot| core::str::from_utf8(record.octets(slot)).ok())
        .ok_or(refused)?;
    Ok(Element {
        id: element,
        name: Cow::Owned(String::from(name)),
        abstract_type,
        semantics: octet(INFORMATION_ELEMENT_SEMANTICS)
            .map_or(Semantics::Default, Semantics::from_code),
        units: small(INFORMATION_ELEMENT_UNITS).map_or(Units::None, Units::from_code),
        range: number(INFORMATION_ELEMENT_RANGE_BEGIN).zip(number(INFORMATION_ELEMENT_RANGE_END)),
    })
}
