//! The frame layer and the capture formats against real captures, against tshark, and against
//! octets that make no sense.

mod captures;
mod check;
mod formats;
mod random;
mod support;
mod tshark;
mod tunnels;
