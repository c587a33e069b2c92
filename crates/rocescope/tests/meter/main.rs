//! `rocescope meter` from outside: real and written captures in, reports out, judged by what is
//! known of each capture and by other people's programs.

mod bad_input;
mod captures;
mod closure;
mod faults;
mod found;
mod frames;
mod gaps;
mod judges;
mod mapped;
mod options;
mod pfc;
mod pfc_dumped;
mod pfc_received;
mod queue;
mod support;
mod variants;
mod writer;
