//! Values to messages: the exporting side of one Transport Session (RFC 7011, sections 3 and 8).
//!
//! A [`MessageWriter`] appends whole messages to a buffer. It opens sets and messages as they are
//! needed and closes them when they are full, so it writes no empty set and no empty message, and
//! counts the sequence number of each Observation Domain. It knows no clock: the export time is an
//! argument.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use super::message::{MESSAGE_HEADER_LEN, MESSAGE_MAX, SET_HEADER_LEN};
use super::template::TEMPLATE_ID_MIN;
use super::{Fault, MessageHeader, RecordWriter, TemplateKind, TemplateSpec};
use crate::element::ElementId;

/// The least that a message may be bounded to.
pub const MESSAGE_MAX_LEAST: usize = 64;

/// Why something was not written. Nothing of it is in the buffer then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A bound for messages outside 64 to 65535 octets.
    MessageMax {
        /// What was asked for.
        found: usize,
    },
    /// An alignment other than 1, 4 or 8 octets.
    Alignment {
        /// What was asked for.
        found: usize,
    },
    /// A template that a collector would refuse.
    Template(Fault),
    /// A Template ID that the session has in another meaning, not withdrawn.
    Redefined {
        /// The template.
        template: u16,
    },
    /// A Template ID that the session has not.
    UnknownTemplate {
        /// The template.
        template: u16,
    },
    /// A record that does not fit into a message by itself.
    TooLong {
        /// Its octets.
        found: usize,
        /// The most that fit.
        max: usize,
    },
    /// A record with a number of fields that is not the template's.
    FieldCount {
        /// Fields given, counted up to the first too many.
        found: usize,
        /// Fields of the template.
        expected: usize,
    },
    /// A value that does not fit its field, or is of a kind that the field cannot have.
    Value {
        /// Whose field.
        element: ElementId,
        /// The field's length.
        length: u16,
    },
    /// An element whose type cannot have its semantics.
    Semantics {
        /// The element.
        element: ElementId,
    },
    /// A Flow Key that is not among the first 64 fields of its template.
    FlowKey {
        /// The element.
        element: ElementId,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessageMax { found } => {
                write!(
                    f,
                    "messages of at most {found} octets, need {MESSAGE_MAX_LEAST} to {MESSAGE_MAX}"
                )
            }
            Self::Alignment { found } => {
                write!(f, "sets aligned to {found} octets, need 1, 4 or 8")
            }
            Self::Template(fault) => fault.fmt(f),
            Self::Redefined { template } => {
                write!(f, "template {template} has another meaning, need a withdrawal first")
            }
            Self::UnknownTemplate { template } => write!(f, "template {template} is not known"),
            Self::TooLong { found, max } => {
                write!(f, "record of {found} octets, a message holds {max}")
            }
            Self::FieldCount { found, expected } => {
                write!(f, "record with {found} fields, its template has {expected}")
            }
            Self::Value { element, length } => {
                write!(f, "value for {element} does not fit a field of length {length}")
            }
            Self::Semantics { element } => {
                write!(f, "element {element} has semantics that its type cannot have")
            }
            Self::FlowKey { element } => {
                write!(f, "flow key {element} is not among the first 64 fields of its template")
            }
        }
    }
}

impl core::error::Error for EncodeError {}

/// The exporting side of one Transport Session: what the collector knows by now.
#[derive(Clone, Debug)]
pub struct Encoder {
    message_max: usize,
    alignment: usize,
    domains: BTreeMap<u32, Outgoing>,
    record: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Outgoing {
    sequence: u32,
    templates: BTreeMap<u16, TemplateSpec>,
}

impl Encoder {
    /// A session in which nothing was sent yet, with messages of at most so many octets and sets
    /// that are not padded.
    ///
    /// # Errors
    /// [`EncodeError::MessageMax`].
    pub fn new(message_max: usize) -> Result<Self, EncodeError> {
        Self::aligned(message_max, 1)
    }

    /// As [`Encoder::new`], with sets padded to a multiple of 1, 4 or 8 octets, where the padding is
    /// shorter than a record and fits.
    ///
    /// # Errors
    /// [`EncodeError::MessageMax`], [`EncodeError::Alignment`].
    pub fn aligned(message_max: usize, alignment: usize) -> Result<Self, EncodeError> {
        if !(MESSAGE_MAX_LEAST..=MESSAGE_MAX).contains(&message_max) {
            return Err(EncodeError::MessageMax { found: message_max });
        }
        if ![1, 4, 8].contains(&alignment) {
            return Err(EncodeError::Alignment { found: alignment });
        }
        Ok(Self { message_max, alignment, domains: BTreeMap::new(), record: Vec::new() })
    }

    /// The sequence number that the next message of a domain will carry.
    #[must_use]
    pub fn sequence(&self, domain: u32) -> u32 {
        self.domains.get(&domain).map_or(0, |d| d.sequence)
    }

    /// Sets the sequence number of a domain, for who continues what was written before.
    pub fn set_sequence(&mut self, domain: u32, sequence: u32) {
        self.domains.entry(domain).or_default().sequence = sequence;
    }

    /// The template that the collector has under an ID.
    #[must_use]
    pub fn template(&self, domain: u32, template: u16) -> Option<&TemplateSpec> {
        self.domains.get(&domain)?.templates.get(&template)
    }

    /// Begins to write for a domain. Whole messages, all with this export time (seconds since
    /// 1970), are appended to `out`; the last of them is whole once the writer is finished or
    /// dropped.
    pub fn writer<'a>(
        &'a mut self,
        domain: u32,
        export_time: u32,
        out: &'a mut Vec<u8>,
    ) -> MessageWriter<'a> {
        MessageWriter {
            message_max: self.message_max,
            alignment: self.alignment,
            state: self.domains.entry(domain).or_default(),
            scratch: &mut self.record,
            domain,
            export_time,
            out,
            message: None,
            set: None,
            written: Written::default(),
        }
    }
}

/// What a writer has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Messages.
    pub messages: usize,
    /// Data Records, options data included.
    pub records: u64,
}

/// Writes templates and records for one domain as whole messages.
#[derive(Debug)]
pub struct MessageWriter<'a> {
    message_max: usize,
    alignment: usize,
    state: &'a mut Outgoing,
    scratch: &'a mut Vec<u8>,
    domain: u32,
    export_time: u32,
    out: &'a mut Vec<u8>,
    message: Option<OpenMessage>,
    set: Option<OpenSet>,
    written: Written,
}

#[derive(Debug)]
struct OpenMessage {
    start: usize,
    records: u32,
}

#[derive(Debug)]
struct OpenSet {
    start: usize,
    id: u16,
    record_min: usize,
}

impl MessageWriter<'_> {
    /// Defines a template, or repeats one that is known.
    ///
    /// # Errors
    /// [`EncodeError::Template`], [`EncodeError::Redefined`], [`EncodeError::TooLong`].
    pub fn template(&mut self, spec: &TemplateSpec) -> Result<(), EncodeError> {
        spec.check().map_err(EncodeError::Template)?;
        match self.state.templates.get(&spec.id) {
            Some(known) if known != spec => {
                return Err(EncodeError::Redefined { template: spec.id });
            }
            _ => {}
        }
        self.scratch.clear();
        spec.write(self.scratch);
        self.append(spec.kind().set_id(), spec.kind().header_len())?;
        self.state.templates.insert(spec.id, spec.clone());
        Ok(())
    }

    /// Withdraws a template.
    ///
    /// # Errors
    /// [`EncodeError::UnknownTemplate`].
    pub fn withdraw(&mut self, template: u16) -> Result<(), EncodeError> {
        let Some(spec) = self.state.templates.get(&template) else {
            return Err(EncodeError::UnknownTemplate { template });
        };
        let kind = spec.kind();
        self.withdrawal(template, kind)?;
        self.state.templates.remove(&template);
        Ok(())
    }

    /// Withdraws every template of a kind, if there are any or not.
    ///
    /// # Errors
    /// None in fact: a withdrawal fits into every message.
    pub fn withdraw_all(&mut self, kind: TemplateKind) -> Result<(), EncodeError> {
        self.withdrawal(kind.set_id(), kind)?;
        self.state.templates.retain(|_, spec| spec.kind() != kind);
        Ok(())
    }

    /// Writes one Data Record, field by field in the template's order.
    ///
    /// # Errors
    /// [`EncodeError::UnknownTemplate`], [`EncodeError::FieldCount`], [`EncodeError::Value`],
    /// [`EncodeError::TooLong`], and what `fill` returns.
    pub fn record(
        &mut self,
        template: u16,
        fill: impl FnOnce(&mut RecordWriter<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let Some(spec) = self.state.templates.get(&template) else {
            return Err(EncodeError::UnknownTemplate { template });
        };
        self.scratch.clear();
        let mut record = RecordWriter::new(&spec.fields, self.scratch);
        fill(&mut record)?;
        record.finish()?;
        let record_min = spec.record_min();
        self.append(template, record_min)
    }

    /// Octets of the message that is open, 0 where none is.
    #[must_use]
    pub fn open_length(&self) -> usize {
        self.message.as_ref().map_or(0, |m| self.out.len() - m.start)
    }

    /// Closes the open message; what follows goes into another one. With nothing written since the
    /// last one, writes nothing.
    pub fn flush(&mut self) {
        self.close_set();
        let Some(message) = self.message.take() else {
            return;
        };
        let header = MessageHeader {
            // `append` keeps every message within 65535 octets.
            length: u16::try_from(self.out.len() - message.start).expect("bounded by append"),
            export_time: self.export_time,
            sequence: self.state.sequence,
            domain: self.domain,
        };
        self.out[message.start..message.start + MESSAGE_HEADER_LEN]
            .copy_from_slice(&header.octets());
        self.state.sequence = self.state.sequence.wrapping_add(message.records);
        self.written.messages += 1;
        self.written.records += u64::from(message.records);
    }

    /// Closes the open message and says what was written in all.
    pub fn finish(mut self) -> Written {
        self.flush();
        self.written
    }

    fn withdrawal(&mut self, template: u16, kind: TemplateKind) -> Result<(), EncodeError> {
        self.scratch.clear();
        self.scratch.extend_from_slice(&template.to_be_bytes());
        self.scratch.extend_from_slice(&[0, 0]);
        self.append(kind.set_id(), SET_HEADER_LEN)
    }

    /// Appends the record in `scratch` to a set with this ID, and opens and closes what it must.
    fn append(&mut self, set_id: u16, record_min: usize) -> Result<(), EncodeError> {
        let found = self.scratch.len();
        let max = self.message_max - MESSAGE_HEADER_LEN - SET_HEADER_LEN;
        if found > max {
            return Err(EncodeError::TooLong { found, max });
        }
        if self.set.as_ref().is_none_or(|set| set.id != set_id) {
            self.close_set();
        }
        let header = if self.set.is_some() { 0 } else { SET_HEADER_LEN };
        if self.open_length() + header + found > self.message_max {
            self.flush();
        }
        let start = self.out.len();
        let message = self.message.get_or_insert_with(|| {
            self.out.extend_from_slice(&[0; MESSAGE_HEADER_LEN]);
            OpenMessage { start, records: 0 }
        });
        let start = self.out.len();
        self.set.get_or_insert_with(|| {
            self.out.extend_from_slice(&set_id.to_be_bytes());
            self.out.extend_from_slice(&[0, 0]);
            OpenSet { start, id: set_id, record_min }
        });
        self.out.extend_from_slice(self.scratch);
        message.records += u32::from(set_id >= TEMPLATE_ID_MIN);
        Ok(())
    }

    fn close_set(&mut self) {
        let Some(set) = self.set.take() else {
            return;
        };
        let length = self.out.len() - set.start;
        let padding = length.next_multiple_of(self.alignment) - length;
        // RFC 7011, section 3.3.1: shorter than any record that could stand there.
        let fits = self.open_length() + padding <= self.message_max;
        if fits && padding < set.record_min {
            self.out.resize(self.out.len() + padding, 0);
        }
        let length = u16::try_from(self.out.len() - set.start).expect("bounded by append");
        self.out[set.start + 2..set.start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

impl Drop for MessageWriter<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
