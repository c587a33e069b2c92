//! `rocescope demo` and `rocescope pki init`, run as they are installed: with nothing around them.

mod once;
mod pki;
mod program;
mod stays;
