//! Rows and a tree to read from.

use std::sync::Arc;

use manage::operational::{self, Interface};
use manage::schema::Schema;
use manage::tree::Node;
use observe::pfc::Priority;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};

/// The modules.
pub fn schema() -> &'static Schema {
    Schema::get().expect("the modules load")
}

/// A row of a queue with a known measurement.
pub fn row(interface: &str, queue: &str, interval: u64) -> Row {
    Row {
        place: Arc::new(Place { interface: interface.into(), queue: queue.into() }),
        epoch: EpochId::read("31c38fe2-f97e-4a88-a0a7-bae9ed5d4131").expect("a UUID"),
        interval,
        start_ns: 100_000_000 * interval,
        duration_ns: 100_000_000,
        wall_clock_start: Some("2026-10-30T00:00:00.5Z".into()),
        priorities: Priorities::new([Priority::ALL[3], Priority::ALL[4]]).expect("two priorities"),
        measurement: Measurement::Known(Known {
            method: Method::Samples { period_ns: 1_000_000 },
            gated_ns: 18_500_000,
            backlog_ns: 64_000_000,
            error_ns: 256,
        }),
    }
}

/// The same, unknown.
pub fn unknown(interface: &str, queue: &str, interval: u64, reason: Reason) -> Row {
    Row {
        measurement: Measurement::Unknown(reason),
        wall_clock_start: None,
        ..row(interface, queue, interval)
    }
}

/// An interface without anything that is not known.
pub fn interface(name: &str) -> Interface {
    Interface {
        name: name.into(),
        oper_status: Some("up".into()),
        discontinuity: "2026-10-30T00:00:00Z".into(),
    }
}

/// Two interfaces, three queues; one name needs every kind of escape.
pub fn tree() -> Vec<Node> {
    let rows = [
        row("Ethernet1/1", "q3", 2),
        unknown("Ethernet1/1", "a,b\"'<&%2F\u{e9}", 1, Reason::CaptureGap),
        row("Ethernet1/2", "q3", 9),
    ]
    .map(Arc::new);
    let listed = [interface("Ethernet1/1"), interface("Ethernet1/2")];
    vec![operational::interfaces(schema(), &listed, &rows).expect("the module is there")]
}
