//! The report by itself: what holds in one, how it stands on the wire, and what may be said of it.

mod binding;
mod golden;
mod ranges;
mod request;
mod round_trip;
mod snapshot;
mod support;
mod words;
