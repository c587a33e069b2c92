//! The collector's HTTP interface over real sockets, and TLS where it has to be.

mod access;
mod agents;
mod answers;
mod beside;
mod bounds;
mod browser;
mod client;
mod description;
mod device;
mod devices;
#[path = "../collector/support.rs"]
#[allow(dead_code, reason = "shared with the tests of what comes in")]
mod export;
mod health;
#[path = "../shared/packages.rs"]
mod packages;
mod pfc;
mod program;
mod queues;
mod schemathesis;
mod site;
