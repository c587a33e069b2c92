//! What must hold for any octets whatever, as plain functions.
//!
//! The harness beside this crate calls them under libFuzzer, and a test replays the corpus in every
//! test run. Each function panics where something does not hold; a panic in the code under it, or
//! no end, is a fault too. Whether a value is the right one is for other tests: here only what
//! follows from the octets and from the other ways to ask is known.

mod capture;
mod frame;
mod ipfix;

pub use capture::capture;
pub use frame::frame;
pub use ipfix::ipfix;
