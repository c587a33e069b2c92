//! Queue telemetry of devices: RESTCONF clients that subscribe, or ask now and then, and hand rows
//! to the store.
//!
//! What is wrong with a row, and what it is to others, `observe::queue` says where the rows are kept.
//! Nothing here fills what did not come: a device that goes away, a subscription that ends and a row
//! that is taken away establish nothing about an interval.
// QUE-con.1

mod client;
pub mod events;
mod http;
pub mod intake;
pub mod restconf;
mod restraint;
mod standing;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use self::client::{Bounds, Client};
use self::http::Reach;
pub use self::standing::{Connection, Device, Devices, Standing};
use super::clock::Clock;
use super::writer::Writer;
use crate::config::Collector;

/// Looks whether the files of every device can be used.
///
/// # Errors
/// In a line.
pub(super) fn check(config: &Collector) -> Result<(), String> {
    let bounds = bounds(config);
    let load = |device| Reach::load(device, bounds.within, bounds.octets_max).map(drop);
    config.queues.iter().try_for_each(load)
}

/// Begins to attend to every device of the configuration, until it is to stop.
pub(super) fn start(
    config: &Collector,
    devices: &Devices,
    clock: Clock,
    writer: &Writer,
    stop: &watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for (config_of, device) in config.queues.iter().zip(devices.iter()) {
        let client = Client {
            config: config_of.clone(),
            device: device.clone(),
            bounds: bounds(config),
            clock,
            writer: writer.clone(),
        };
        clients.spawn(client.run(stop.clone()));
    }
    clients
}

// QUE-sec.1
fn bounds(config: &Collector) -> Bounds {
    let limits = &config.limits;
    let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    Bounds {
        within: Duration::from_secs(limits.queue_request_timeout_s),
        silent: Duration::from_secs(limits.queue_silent_timeout_s),
        reconnect_max: Duration::from_secs(limits.queue_reconnect_max_s),
        notifications_per_second_max: limits.queue_notifications_per_second_max,
        octets_max: size(limits.queue_octets_max),
        // A document has each queue once.
        entries_max: size(limits.queue_queues_max),
    }
}
