//! XML as NETCONF and RESTCONF have it: trees written out (RFC 7950), and elements read.
//!
//! What is read here is only split into elements with their namespaces; [`crate::read`] has libyang
//! say whether it is an instance of the modules.

mod element;
mod write;

pub(crate) use element::is_name;
pub use element::{Attribute, Element, Limits, XmlError};
pub use write::{attribute_text, text, write};
