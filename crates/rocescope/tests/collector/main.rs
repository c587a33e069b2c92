//! The collector over real sockets and real TLS, on loopback.

mod flow;
mod pki;
mod program;
mod support;
mod tls;
