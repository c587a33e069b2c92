//! The Flow Keys Options Template: which fields of a template name the flow (RFC 7011, section
//! 4.4).

use alloc::vec;

use super::{EncodeError, FieldSpec, MessageWriter, Record, TemplateSpec};
use crate::element::ElementId;
use crate::element::standard::{FLOW_KEY_INDICATOR, TEMPLATE_ID};

/// What a Flow Keys record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKeys {
    /// The template that it is about.
    pub template: u16,
    /// Bit n, from the lowest, is set where field n of the template, from 0, is a Flow Key.
    pub indicator: u64,
}

/// The Flow Keys Options Template: templateId as scope, then flowKeyIndicator.
#[must_use]
pub fn flow_keys_template(id: u16) -> TemplateSpec {
    TemplateSpec {
        id,
        scope_count: 1,
        fields: vec![FieldSpec::new(TEMPLATE_ID, 2), FieldSpec::new(FLOW_KEY_INDICATOR, 8)],
    }
}

impl FlowKeys {
    /// Marks every field of a template whose element is among the keys.
    ///
    /// # Errors
    /// [`EncodeError::FlowKey`] for a key that the first 64 fields do not have.
    pub fn of(spec: &TemplateSpec, keys: &[ElementId]) -> Result<Self, EncodeError> {
        let mut indicator = 0;
        for key in keys {
            let bits = (0..64)
                .zip(&spec.fields)
                .filter(|(_, field)| field.id == *key)
                .fold(0u64, |bits, (n, _)| bits | (1 << n));
            if bits == 0 {
                return Err(EncodeError::FlowKey { element: *key });
            }
            indicator |= bits;
        }
        Ok(Self { template: spec.id, indicator })
    }

    /// Reads a record, if it is one of a Flow Keys Options Template.
    #[must_use]
    pub fn read(record: &Record<'_>) -> Option<Self> {
        let layout = record.layout();
        if !layout.scope().iter().any(|f| f.id == TEMPLATE_ID) {
            return None;
        }
        let template = record.unsigned(layout.unsigned(TEMPLATE_ID)?);
        Some(Self {
            template: u16::try_from(template).ok()?,
            indicator: record.unsigned(layout.unsigned(FLOW_KEY_INDICATOR)?),
        })
    }

    /// Whether the field with an index, from 0, is a Flow Key; no field from 64 on can be.
    #[must_use]
    pub const fn has(&self, field: usize) -> bool {
        field < 64 && self.indicator >> field & 1 == 1
    }
}

impl MessageWriter<'_> {
    /// Writes a Flow Keys record under a [`flow_keys_template`] that was written before.
    ///
    /// # Errors
    /// As [`MessageWriter::record`].
    pub fn flow_keys(&mut self, template: u16, keys: FlowKeys) -> Result<(), EncodeError> {
        self.record(template, |r| {
            r.unsigned(u64::from(keys.template))?;
            r.unsigned(keys.indicator)
        })
    }
}
