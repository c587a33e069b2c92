//! `rocescope replay`: the verdicts of the collector, found again from its archive.

mod files;
mod same;
mod support;
