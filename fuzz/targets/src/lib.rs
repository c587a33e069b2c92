//! What must hold for any octets whatever, as plain functions.
//!
//! The harness beside this crate calls them under libFuzzer, and a test replays the corpus in every
//! test run. Each function panics where something does not hold; a panic in the code under it, or
//! no end, is a fault too. Whether a value is the right one is for other tests: here only what
//! follows from the octets and from the other ways to ask is known.
//!
//! What a client of `manage` may not read is told by asking twice ([`served`]): once where there is
//! something hidden and once where there is not. Every octet of the answers has to be the same.

mod answers;
mod capture;
mod frame;
mod ipfix;
mod netconf;
mod restconf;
mod selection;
mod served;
mod subscriptions;

pub use capture::capture;
pub use frame::frame;
pub use ipfix::ipfix;
pub use netconf::netconf;
pub use restconf::restconf;
pub use selection::selection;
pub use subscriptions::subscriptions;
