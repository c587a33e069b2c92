//! Information Elements: which numbers we know, and what they mean (RFC 7012, RFC 5610, IANA).
//!
//! Three sources, in this order of trust: the IANA registry as a table in the program, the elements
//! of the drafts under the configured [`Mapping`], and elements that a peer described itself with
//! type records (RFC 5610). A later source never changes what an earlier one says.
//!
//! Nothing here judges a value; ranges are only told.

mod draft;
#[rustfmt::skip]
mod iana;
mod registry;
pub mod standard;
mod types;

use alloc::borrow::Cow;
use core::fmt;

pub use draft::{DraftElement, Mapping, MappingError, PEN_DOCUMENTATION};
pub use registry::{LEARNED_MAX, LearnError, Registry, TEXT_MAX};
pub use types::{AbstractType, Lengths, Semantics, Units, VARIABLE};

/// The number of an Information Element (RFC 7011, section 3.2).
///
/// IANA's elements have enterprise number 0 and an identifier up to 32767. A peer can also set the
/// enterprise bit and then send enterprise number 0, which belongs to nobody; such a number keeps
/// the bit in `id`, so that it equals no element of IANA's and is written back as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementId {
    /// Private Enterprise Number; 0 is IANA.
    pub pen: u32,
    /// Identifier, 15 bits.
    pub id: u16,
}

impl ElementId {
    /// An element of the IANA registry.
    #[must_use]
    pub const fn iana(id: u16) -> Self {
        Self { pen: 0, id }
    }
}

impl fmt::Display for ElementId {
    /// `e<enterprise number>id<identifier>`, the key that stands for an element without a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}id{}", self.pen, self.id)
    }
}

/// One Information Element (RFC 7012, section 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its number.
    pub id: ElementId,
    /// Its name, at most [`TEXT_MAX`] octets where a peer gave it.
    pub name: Cow<'static, str>,
    /// Its abstract type.
    pub abstract_type: AbstractType,
    /// What can be done with its values.
    pub semantics: Semantics,
    /// What its values count or measure.
    pub units: Units,
    /// The least and the greatest legal value, where the type alone does not say so.
    pub range: Option<(u64, u64)>,
}
