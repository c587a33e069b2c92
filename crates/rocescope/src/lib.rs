//! The program around the drafts: files, options, output. What decides something about a
//! measurement stands in `observe`, what knows octets in `wire`.

pub mod agent;
pub mod capture;
pub mod check;
pub mod collector;
pub mod config;
pub mod demo;
pub mod discover;
pub mod dump;
pub mod example;
mod layout;
pub mod meter;
pub mod observation;
pub mod pki;
mod progress;
pub mod queue;
pub mod replay;
pub mod serve;
