//! PFC counters: intervals, widening, qualification, the record, and the collecting side.

mod beside;
mod collect;
mod conversation;
mod instance;
mod interval;
mod play;
mod qualify;
mod record;
mod support;
mod widen;
