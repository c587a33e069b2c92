//! NETCONF (RFC 6241) as a state machine: octets in, octets out.
//!
//! [`framing`] finds messages in a stream; [`Session`] is one client's: its hello, its requests, what
//! is sent to it. [`monitoring`] is what `ietf-netconf-monitoring` tells of all sessions. The socket,
//! SSH and deadlines are the caller's.
//!
//! There is nothing to write: every operation that would is refused as not supported.
// QUE-pub.2

pub mod framing;
pub mod monitoring;
mod requests;
mod session;

pub use session::{Counts, End, Limits, Session, Then, World};
