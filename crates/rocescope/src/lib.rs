//! The program's parts, for its own binary and its tests.

pub mod check;
pub mod config;
