//! `rocescope agent`: its Transport Sessions against the collecting side of `observe`, first in
//! memory, then through TLS, and then as a program.

mod client;
mod control;
mod discovers;
mod export;
mod judged;
mod live;
mod metrics;
mod nacm;
#[path = "../shared/packages.rs"]
mod packages;
mod pfc;
#[path = "../meter/pfc_dumped.rs"]
mod pfc_dumped;
mod privileges;
mod program;
mod queue;
mod queue_sonic;
mod restconf;
mod session;
mod slow;
mod sonic;
mod ssh;
mod support;
mod tls;
