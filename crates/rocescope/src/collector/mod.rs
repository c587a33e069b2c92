//! `rocescope collector`: IPFIX in over mutual TLS, and what came of it to one who keeps it.
//!
//! [`intake`] is one Transport Session without a socket; around it are [`access`] (who may export),
//! [`admission`] (how many), [`session`] (the pump of one stream) and [`writer`] (the thread that
//! keeps what came of it). What is said of a report is decided in `observe`.

pub mod access;
pub(crate) mod admission;
mod clock;
pub(crate) use clock::Clock;
mod disk;
pub(crate) mod greeting;
pub mod intake;
mod listen;
mod metrics;
pub(crate) mod pfc;
pub mod queues;
mod raw;
mod refusal;
mod run;
pub(crate) mod session;
mod sink;
mod times;
mod writer;

pub use disk::Disk;
pub use listen::{Listening, Running};
pub use metrics::{Metrics, Row, Sort};
pub use raw::{Part, Raw};
pub use refusal::Refusal;
pub use run::{Started, run};
pub use sink::{Change, EpochState, PfcState, Rules, SessionFacts, SessionId, Sink, SinkError};
pub use writer::Pending;
