//! How many rows of queue telemetry a second the store takes, judged and kept:
//! `cargo run --release -p store --example queue_rows -- [DEVICES] [QUEUES] [INTERVALS]`.
//!
//! One transaction holds what all devices say of one interval. The first number is of rows that come
//! in order, the second of the same rows once more.

use std::sync::Arc;
use std::time::Instant;

use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities};
use store::{Change, QueueEntry, QueueReceived, Store, StoreLimits};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (devices, queues, intervals) = (number(10)?, number(512)?, number(50)?);
    let directory = std::env::temp_dir().join(format!("queue_rows-{}", std::process::id()));
    let (mut store, _) = Store::open(&directory, StoreLimits::default(), 0)?;
    let names: Vec<Arc<str>> = (0..devices).map(|n| format!("leaf-{n}").into()).collect();
    let places: Vec<Arc<Place>> = (0..queues)
        .map(|n| {
            let interface = format!("Ethernet{}/1", n / 8).into();
            Arc::new(Place { interface, queue: (n % 8).to_string().into() })
        })
        .collect();
    let priorities = Priorities::from_bits(1 << 3).ok_or("no priority")?;
    let known = Known {
        method: Method::Events,
        gated_ns: 18_500_000,
        backlog_ns: 64_000_000,
        error_ns: 256,
    };
    for what in ["in order", "once more"] {
        let mut spent = std::time::Duration::ZERO;
        for interval in 1..=u64::from(intervals) {
            let mut changes = Vec::new();
            for device in &names {
                for place in &places {
                    let entry = QueueEntry::Row(Row {
                        place: place.clone(),
                        epoch: EpochId::random([7; 16]),
                        interval,
                        start_ns: interval * 100_000_000,
                        duration_ns: 100_000_000,
                        wall_clock_start: None,
                        priorities,
                        measurement: Measurement::Known(known),
                    });
                    let device = device.clone();
                    let received = QueueReceived { device, received_ms: interval * 100, entry };
                    changes.push(Change::Queue(Box::new(received)));
                }
            }
            let began = Instant::now();
            store.apply(&changes)?;
            spent += began.elapsed();
        }
        let rows = f64::from(devices) * f64::from(queues) * f64::from(intervals);
        let octets = store.reader()?.octets()?;
        println!("{what}: {:.0} rows a second, {octets} octets", rows / spent.as_secs_f64());
    }
    drop(store);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
