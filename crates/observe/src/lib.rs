//! The drafts as state machines over plain values.
//!
//! A frame that `wire` has read becomes a [`request::Observed`]; [`meter::Meter`] finds its
//! stream and lets [`sequence::Sequence`] take one step (the heart: start there); a
//! [`report::Snapshot`] of the epoch is numbered by [`export`] and goes out as IPFIX. On the
//! other side [`collect`] judges what arrives and [`outcome`] holds the words that a user may be
//! shown.
//!
//! There is no socket, no file, no clock, no thread and no randomness here: the time, the seed
//! of the hash and the ids of others are arguments.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod collect;
pub mod coverage;
pub mod export;
pub mod meter;
pub mod outcome;
pub mod pfc;
pub mod profile;
pub mod provision;
pub mod queue;
pub mod report;
pub mod request;
pub mod sequence;
pub mod serial;
pub mod window;
