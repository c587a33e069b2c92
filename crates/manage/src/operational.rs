//! The operational datastore (RFC 8342): what of it comes from measurements.
//!
//! Each queue is one entry that is replaced whole ([`observe::queue::row::Row`]). An interface is
//! here because a queue of it was measured; of the leaves of `ietf-interfaces` only those are set
//! that somebody knows. Other parts of the datastore (sessions, subscriptions, the library) are made
//! where they are known; [`Datastore`] is how a reader gets all of them.
// QUE-pub.1

use std::sync::Arc;

use observe::queue::row::{Known, Measurement, Method, Row};

use crate::schema::{Definition, Schema};
use crate::tree::{Builder, Node};

/// What holds top-level nodes.
pub trait Datastore {
    /// The node of this definition as it is now; none where there is none. Nodes that have to do
    /// with each other come from one moment where they are one top-level node, and only then.
    fn top(&self, definition: &'static Definition) -> Option<Node>;

    /// The same of the running datastore: what a configuration file says.
    fn running(&self, _definition: &'static Definition) -> Option<Node> {
        None
    }
}

/// What is known of an interface beside its queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: Box<str>,
    /// `oper-status`, where it is known: one of the module's words.
    pub oper_status: Option<Box<str>>,
    /// When its counters were last begun anew, as `yang:date-and-time`: the start of this program
    /// where nothing else is known.
    pub discontinuity: Box<str>,
}

/// `ietf-interfaces:interfaces` with the latest completed row of each queue. Rows of an interface
/// that is not listed are left out.
pub fn interfaces(schema: &Schema, listed: &[Interface], rows: &[Arc<Row>]) -> Option<Node> {
    let definition = schema.top("ietf-interfaces", "interfaces")?;
    let mut sorted: Vec<&Row> = rows.iter().map(|row| &**row).collect();
    sorted.sort_by(|one, other| one.place.cmp(&other.place));
    let node = Builder::new(definition).each("interface", listed, |entry, interface| {
        let from = sorted.partition_point(|row| *row.place.interface < *interface.name);
        let queues: Vec<&Row> = sorted
            .iter()
            .skip(from)
            .take_while(|row| row.place.interface == interface.name)
            .copied()
            .collect();
        self::interface(entry, interface, &queues)
    });
    Some(node.build())
}

fn interface(entry: Builder, known: &Interface, queues: &[&Row]) -> Builder {
    let status = known.oper_status.as_deref().unwrap_or("unknown");
    entry
        .leaf("name", known.name.clone())
        .leaf("type", "iana-if-type:ethernetCsmacd")
        .leaf("oper-status", status)
        .inner("statistics", |statistics| {
            statistics.leaf("discontinuity-time", known.discontinuity.clone())
        })
        .inner("ietf-pfc-queue-telemetry:pfc-queue-telemetry", |telemetry| {
            telemetry.each("queue", queues, |entry, row| queue(entry, row))
        })
}

/// The children of `queue`, in the order of the module.
// QUE-id.1, QUE-err.2, QUE-err.3
fn queue(entry: Builder, row: &Row) -> Builder {
    let entry = entry
        .leaf("queue-id", row.place.queue.clone())
        .leaf("epoch-id", row.epoch.to_string())
        .leaf("interval-id", row.interval.to_string())
        .leaf("start-offset-ns", row.start_ns.to_string())
        .leaf("duration-ns", row.duration_ns.to_string())
        .leaf_if("wall-clock-start", row.wall_clock_start.clone());
    let entry = row
        .priorities
        .iter()
        .fold(entry, |entry, priority| entry.leaf("mapped-priority", priority.get().to_string()))
        .leaf("quality", row.measurement.word());
    match row.measurement {
        Measurement::Unknown(reason) => entry.leaf("unknown-reason", reason.word()),
        Measurement::Known(Known { method, gated_ns, backlog_ns, error_ns }) => {
            let period = match method {
                Method::Events => None,
                Method::Samples { period_ns } => Some(period_ns.to_string()),
            };
            entry
                .leaf("gated-backlog-ns", gated_ns.to_string())
                .leaf("backlog-ns", backlog_ns.to_string())
                .leaf("absolute-error-ns", error_ns.to_string())
                .leaf_if("sample-period-ns", period)
        }
    }
}

/// One entry of the list `queue` by itself, without what is around it.
pub fn queue_entry(schema: &Schema, row: &Row) -> Option<Node> {
    let definition = schema
        .top("ietf-interfaces", "interfaces")?
        .child(None, "interface")?
        .child(Some("ietf-pfc-queue-telemetry"), "pfc-queue-telemetry")?
        .child(None, "queue")?;
    // The schema is leaked for the life of the process.
    Some(queue(Builder::new(definition), row).build())
}
