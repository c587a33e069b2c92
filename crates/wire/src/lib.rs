//! Bytes to values and values to bytes.
//!
//! Frames as they stand on an Ethernet that carries RoCEv2 ([`frame`]), priority flow control
//! frames ([`pfc`]), the invariant CRC ([`icrc`]), capture files ([`capture`]), IPFIX messages
//! ([`ipfix`]) and the information elements that we know ([`element`]).
//!
//! Nothing here keeps state beyond the call, and nothing knows a clock, a socket or a file:
//! every function takes a slice and gives a value, or says what it found, where, and what it
//! expected instead.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod capture;
pub mod element;
pub mod frame;
pub mod icrc;
pub mod ipfix;
pub mod pfc;
