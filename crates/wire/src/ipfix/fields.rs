//! One Data Record on its way out: each value checked against its field (RFC 7011, sections 6 and
//! 7).

use alloc::vec::Vec;

use super::{EncodeError, FieldSpec};
use crate::element::VARIABLE;

/// Takes the values of one record in the order of its template's fields.
#[derive(Debug)]
pub struct RecordWriter<'a> {
    fields: &'a [FieldSpec],
    next: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> RecordWriter<'a> {
    pub(super) fn new(fields: &'a [FieldSpec], out: &'a mut Vec<u8>) -> Self {
        Self { fields, next: 0, out }
    }

    /// An unsigned number, in as many octets as the field has, 1 to 8.
    ///
    /// # Errors
    /// [`EncodeError::Value`] where it does not fit, [`EncodeError::FieldCount`].
    pub fn unsigned(&mut self, value: u64) -> Result<(), EncodeError> {
        let field = self.field()?;
        let n = width(field)?;
        let octets = value.to_be_bytes();
        if octets[..8 - n].iter().any(|o| *o != 0) {
            return Err(misfit(field));
        }
        self.out.extend_from_slice(&octets[8 - n..]);
        Ok(())
    }

    /// A signed number, in as many octets as the field has, 1 to 8.
    ///
    /// # Errors
    /// As [`RecordWriter::unsigned`].
    pub fn signed(&mut self, value: i64) -> Result<(), EncodeError> {
        let field = self.field()?;
        let n = width(field)?;
        let octets = value.to_be_bytes();
        let sign = if value < 0 { 0xff } else { 0 };
        if octets[..8 - n].iter().any(|o| *o != sign) || (octets[8 - n] ^ sign) & 0x80 != 0 {
            return Err(misfit(field));
        }
        self.out.extend_from_slice(&octets[8 - n..]);
        Ok(())
    }

    /// A floating-point number: 8 octets, or 4 where it is exactly a float32.
    ///
    /// # Errors
    /// As [`RecordWriter::unsigned`].
    pub fn float(&mut self, value: f64) -> Result<(), EncodeError> {
        let field = self.field()?;
        match field.length {
            8 => self.out.extend_from_slice(&value.to_be_bytes()),
            4 => {
                #[allow(clippy::cast_possible_truncation)] // compared below
                let short = value as f32;
                if f64::from(short) != value && !value.is_nan() {
                    return Err(misfit(field));
                }
                self.out.extend_from_slice(&short.to_be_bytes());
            }
            _ => return Err(misfit(field)),
        }
        Ok(())
    }

    /// A boolean: 1 for true, 2 for false.
    ///
    /// # Errors
    /// As [`RecordWriter::unsigned`].
    pub fn boolean(&mut self, value: bool) -> Result<(), EncodeError> {
        self.unsigned(if value { 1 } else { 2 })
    }

    /// Octets as they are: an address, a string, an octetArray. A field of variable length takes up
    /// to 65535, in the shorter of the two forms; another one exactly its length.
    ///
    /// # Errors
    /// As [`RecordWriter::unsigned`].
    pub fn octets(&mut self, value: &[u8]) -> Result<(), EncodeError> {
        let field = self.field()?;
        if field.length == VARIABLE {
            let length = u16::try_from(value.len()).map_err(|_| misfit(field))?;
            match u8::try_from(length) {
                Ok(short) if short < 255 => self.out.push(short),
                _ => {
                    self.out.push(255);
                    self.out.extend_from_slice(&length.to_be_bytes());
                }
            }
        } else if value.len() != usize::from(field.length) {
            return Err(misfit(field));
        }
        self.out.extend_from_slice(value);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), EncodeError> {
        if self.next == self.fields.len() {
            Ok(())
        } else {
            Err(EncodeError::FieldCount { found: self.next, expected: self.fields.len() })
        }
    }

    /// The field whose value comes next.
    fn field(&mut self) -> Result<FieldSpec, EncodeError> {
        let expected = self.fields.len();
        let field = self.fields.get(self.next).copied();
        self.next += 1;
        field.ok_or(EncodeError::FieldCount { found: self.next, expected })
    }
}

/// Octets of a field that holds a number.
fn width(field: FieldSpec) -> Result<usize, EncodeError> {
    match field.length {
        1..=8 => Ok(usize::from(field.length)),
        _ => Err(misfit(field)),
    }
}

const fn misfit(field: FieldSpec) -> EncodeError {
    EncodeError::Value { element: field.id, length: field.length }
}
