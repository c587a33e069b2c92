//! `rocescope agent`: the device side, live. Frames from interfaces or files are metered once for
//! each Transport Session, and reports go to each collector over TLS 1.3.

pub mod disabled;
pub mod session;
