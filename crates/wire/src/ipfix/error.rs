//! What can be wrong with what a peer sent, each with where.
//!
//! RFC 7011, section 9.1, discards a message whose lengths make no sense: that is an [`Error`], and
//! nothing of the message was applied. What is wrong with one record of a Template Set, while the
//! lengths hold, is a [`Fault`]: that record is refused, and what follows is read.

use core::fmt;

use super::TemplateKind;
use crate::element::{ElementId, LearnError, Lengths};

/// Why a message is discarded whole. Offsets count from the start of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A version other than 10 (RFC 7011, section 3.1).
    Version {
        /// What stood there.
        found: u16,
    },
    /// A Length in the header that does not hold the header.
    MessageLength {
        /// What stood there.
        found: u16,
    },
    /// The octets handed over are not one whole message.
    NotOneMessage {
        /// Length of the message by its header, or of a header.
        expected: usize,
        /// Octets handed over.
        found: usize,
    },
    /// Fewer octets before the end of the message than a set header has.
    Tail {
        /// Where they begin.
        at: usize,
        /// How many.
        found: usize,
    },
    /// A set length that does not hold the set header.
    SetShort {
        /// Where the set begins.
        at: usize,
        /// Its length by its header.
        found: u16,
    },
    /// A set that is longer than what is left of the message.
    SetLong {
        /// Where the set begins.
        at: usize,
        /// Its length by its header.
        found: u16,
        /// Octets left of the message.
        left: usize,
    },
    /// A Template Record that is longer than what is left of its set.
    TemplateCut {
        /// Where the record begins.
        at: usize,
        /// Its Template ID.
        template: u16,
        /// Its Field Count.
        fields: u16,
        /// Octets left of the set.
        left: usize,
    },
    /// A variable-length value that is longer than what is left of its set.
    ValueLong {
        /// Where the record begins.
        at: usize,
        /// Its Template ID.
        template: u16,
    },
    /// A domain that is one more than the session may have.
    Domains {
        /// Its Observation Domain ID.
        domain: u32,
        /// The limit.
        max: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found } => write!(f, "version {found} at octet 0, need 10"),
            Self::MessageLength { found } => {
                write!(f, "message length {found} at octet 2, need at least 16")
            }
            Self::NotOneMessage { expected, found } => {
                write!(f, "{found} octets handed over as one message, need {expected}")
            }
            Self::Tail { at, found } => {
                write!(
                    f,
                    "{found} octets at octet {at} behind the last set, need none or at least 4"
                )
            }
            Self::SetShort { at, found } => {
                write!(f, "set length {found} at octet {at}, need at least 4")
            }
            Self::SetLong { at, found, left } => {
                write!(
                    f,
                    "set length {found} at octet {at}, only {left} octets left of the message"
                )
            }
            Self::TemplateCut { at, template, fields, left } => write!(
                f,
                "template {template} at octet {at} with {fields} fields, only {left} octets left of its set"
            ),
            Self::ValueLong { at, template } => write!(
                f,
                "record of template {template} at octet {at} has a value that ends beyond its set"
            ),
            Self::Domains { domain, max } => {
                write!(f, "observation domain {domain} refused, {max} are known already")
            }
        }
    }
}

impl core::error::Error for Error {}

/// Why one record is refused while the rest of its message is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A Template ID that is no Template's: 0 to 255, other than a withdrawal of all. What follows
    /// in the set is not read.
    TemplateId {
        /// What stood there.
        found: u16,
    },
    /// An Options Template whose scope has no fields, or more than there are.
    Scope {
        /// Its Template ID.
        template: u16,
        /// Its Scope Field Count.
        found: u16,
        /// Its Field Count.
        fields: u16,
    },
    /// A known element with a length that its type cannot have.
    Length {
        /// The template.
        template: u16,
        /// The element.
        element: ElementId,
        /// The length in the Field Specifier.
        found: u16,
        /// What would be legal.
        legal: Lengths,
    },
    /// A template whose records would have no octets, or more than a message holds.
    RecordLength {
        /// The template.
        template: u16,
        /// Octets of its shortest record.
        found: u32,
    },
    /// A template with more fields than the limit.
    Fields {
        /// The template.
        template: u16,
        /// How many it has.
        found: u16,
        /// The limit.
        max: usize,
    },
    /// One more template than the session may have.
    Templates {
        /// The template.
        template: u16,
        /// The limit.
        max: usize,
    },
    /// A known Template ID with other fields, without a withdrawal before. Its data can no longer
    /// be told apart (RFC 7011, section 8.1) and stay undecoded until it is withdrawn.
    Redefined {
        /// The template.
        template: u16,
    },
    /// A withdrawal of what is not known (RFC 7011, section 8.1: ignored).
    UnknownWithdrawal {
        /// As what it was withdrawn.
        kind: TemplateKind,
        /// The template.
        template: u16,
    },
    /// A withdrawal over UDP (RFC 7011, section 8.4: ignored).
    WithdrawalIgnored {
        /// The template, or 2 or 3 for all.
        template: u16,
    },
    /// A type record whose element is not taken (RFC 5610, section 3.9).
    NotLearned(LearnError),
    /// A type record that names no type of the registry, or whose name is not UTF-8.
    TypeRecord {
        /// The element described.
        element: ElementId,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TemplateId { found } => write!(f, "template id {found}, need at least 256"),
            Self::Scope { template, found, fields } => write!(
                f,
                "options template {template} with scope count {found}, need 1 to {fields}"
            ),
            Self::Length { template, element, found, legal } => write!(
                f,
                "template {template} gives element {element} length {found}, need {legal}"
            ),
            Self::RecordLength { template, found } => write!(
                f,
                "template {template} with records of {found} octets, need 1 to {}",
                super::RECORD_MAX
            ),
            Self::Fields { template, found, max } => {
                write!(f, "template {template} with {found} fields, at most {max} are kept")
            }
            Self::Templates { template, max } => {
                write!(f, "template {template} refused, {max} are known already")
            }
            Self::Redefined { template } => {
                write!(
                    f,
                    "template {template} redefined without a withdrawal, its data are ambiguous"
                )
            }
            Self::UnknownWithdrawal { kind, template } => {
                write!(f, "withdrawal of unknown {kind} {template}")
            }
            Self::WithdrawalIgnored { template } => {
                write!(f, "withdrawal of template {template} over UDP")
            }
            Self::NotLearned(error) => error.fmt(f),
            Self::TypeRecord { element } => {
                write!(f, "type record for {element} names no known type, or its name is not UTF-8")
            }
        }
    }
}

impl core::error::Error for Fault {}
