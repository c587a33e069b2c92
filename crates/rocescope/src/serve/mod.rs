//! The collector's HTTP interface: what is stored and counted, to be read. Nothing here can be
//! written, and nothing is decided about a measurement; the words are those of `observe::outcome`.
//!
//! [`listen`] takes connections, [`access`] says who may read what, [`gate`] stands before every
//! request, [`endpoints`] lists what there is, and [`pool`] bounds what reads the store. HTTP/1.1,
//! GET and HEAD; over anything but loopback only with TLS 1.3 (sequence draft, section 10).

pub mod access;
mod answer;
mod beside;
mod cursor;
mod dashboard;
mod endpoints;
mod epochs;
pub(crate) mod gate;
mod health;
pub(crate) mod labels;
mod limits;
pub(crate) mod listen;
pub(crate) mod local;
mod metrics;
pub(crate) mod paced;
mod parameters;
mod pfc;
mod pool;
mod queues;
mod sessions;

pub use endpoints::{ENDPOINTS, Endpoint, openapi};
pub use listen::{Ready, Served};
pub(crate) use metrics::labelled;
pub use metrics::{Counts, text};

use std::sync::Arc;

use crate::collector::queues::Devices;
use crate::collector::{Clock, Listening, Metrics};
use crate::config::Collector;

/// What the answers are made of.
#[derive(Debug)]
struct State {
    config: Collector,
    metrics: Arc<Metrics>,
    counts: Arc<Counts>,
    intake: Listening,
    devices: Devices,
    pool: pool::Pool,
    /// That of receptions.
    clock: Clock,
}

/// What an endpoint gets.
type Shared = axum::extract::State<Arc<State>>;
