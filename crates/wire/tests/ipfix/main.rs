//! The IPFIX codec from outside: octets written by hand, and what must come of them.

mod faults;
mod golden;
mod property;
mod second_opinion;
mod seen;
mod state;
mod write;
