//! Queue telemetry as YANG data, and the protocols that serve it, as text and trees: no sockets, no
//! clock, no thread.
//!
//! [`schema`] is what the modules say; [`tree`] an instance of it; [`json`] and [`xml`] its two
//! encodings, and [`read`] what others send in them. [`operational`] makes the tree out of completed
//! rows. A request names a part of the tree ([`select`]) and sees of it what its user may read
//! ([`access`]).
//!
//! Nothing here can be written: there is no operation that changes anything but a session or a
//! subscription.
// QUE-sec.1

pub mod access;
pub mod error;
pub mod json;
pub mod library;
pub mod netconf;
pub mod operation;
pub mod operational;
pub mod push;
pub mod read;
pub mod restconf;
pub mod schema;
pub mod select;
pub mod tree;
pub mod xml;
