//! Which part of a tree a request is for. Nothing here knows a user: what one may not read is taken
//! out before ([`crate::access`]), so that a filter cannot tell of it either.

mod xpath;

pub use xpath::{XPATH_OCTETS_MAX, XpathError, xpath};
