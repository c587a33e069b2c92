//! The drafts as state machines; see ARCHITECTURE.md.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;
