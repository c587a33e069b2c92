//! How the collector stands with each device, to be read at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::collector::metrics::{Row, Sort};
use crate::config::QueueDevice;

/// What there is between the collector and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Nothing: it is being reached, or will be tried again.
    Absent,
    /// It tells rows by itself.
    Subscribed,
    /// It is asked for them now and then.
    Polled,
}

impl Connection {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Absent, Self::Subscribed, Self::Polled];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Subscribed => "subscribed",
            Self::Polled => "polled",
        }
    }
}

/// How it stands with a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What there is.
    pub connection: Connection,
    /// Since when, milliseconds since 1970.
    pub since_ms: u64,
    /// What went wrong last, or why it is asked though it should tell; in a line.
    pub problem: Option<String>,
}

/// One device.
#[derive(Debug)]
pub struct Device {
    /// What the collector calls it.
    pub name: Arc<str>,
    /// Its address.
    pub url: String,
    standing: Mutex<Standing>,
    /// How often a connection was there.
    pub connected: AtomicU64,
    /// How often one was lost, or could not be made.
    pub failed: AtomicU64,
    /// Answers with rows.
    pub answers: AtomicU64,
    /// Answers that said that nothing had changed.
    pub unchanged: AtomicU64,
    /// Notifications.
    pub notifications: AtomicU64,
    /// Those by which it told that its subscription is suspended.
    pub suspended: AtomicU64,
    /// Those that did not have everything that they should.
    pub incomplete: AtomicU64,
    /// Entries of answers and notifications that were handed to the store.
    pub entries: AtomicU64,
    /// What was wrong with answers and notifications beside their rows.
    pub findings: AtomicU64,
}

impl Device {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says how it stands from now on.
    pub(super) fn set(&self, connection: Connection, now_ms: u64, problem: Option<String>) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.connection != connection {
            standing.since_ms = now_ms;
        }
        standing.connection = connection;
        standing.problem = problem;
    }
}

/// All devices of the configuration, in its order.
#[derive(Clone, Debug, Default)]
pub struct Devices(Vec<Arc<Device>>);

impl Devices {
    /// None of them is there yet.
    pub fn new(devices: &[QueueDevice], now_ms: u64) -> Self {
        let device = |device: &QueueDevice| {
            let absent =
                Standing { connection: Connection::Absent, since_ms: now_ms, problem: None };
            Arc::new(Device {
                name: device.name.as_str().into(),
                url: device.to_string(),
                standing: Mutex::new(absent),
                connected: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                answers: AtomicU64::new(0),
                unchanged: AtomicU64::new(0),
                notifications: AtomicU64::new(0),
                suspended: AtomicU64::new(0),
                incomplete: AtomicU64::new(0),
                entries: AtomicU64::new(0),
                findings: AtomicU64::new(0),
            })
        };
        Self(devices.iter().map(device).collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Device>> {
        self.0.iter()
    }

    /// What is counted, each row with its device.
    pub fn rows(&self) -> Vec<(Row, Option<String>)> {
        let mut rows = Vec::new();
        for device in &self.0 {
            let owner = Some(device.name.to_string());
            let found = device.standing().connection;
            rows.extend(Connection::ALL.map(|connection| {
                let row = Row {
                    name: "queue_device_connection",
                    about: "1 for what there is between the collector and a device",
                    sort: Sort::Gauge,
                    label: Some(("connection", connection.word())),
                    value: u64::from(connection == found),
                };
                (row, owner.clone())
            }));
            let counters = [
                (
                    "queue_device_connections_total",
                    "Connections to a device that were there",
                    &device.connected,
                ),
                (
                    "queue_device_failures_total",
                    "Connections to a device that were lost or could not be made",
                    &device.failed,
                ),
                ("queue_device_answers_total", "Answers of a device with rows", &device.answers),
                (
                    "queue_device_unchanged_total",
                    "Answers of a device that nothing has changed",
                    &device.unchanged,
                ),
                (
                    "queue_device_notifications_total",
                    "Notifications of a device",
                    &device.notifications,
                ),
                (
                    "queue_device_suspensions_total",
                    "Times that a device told that its subscription is suspended",
                    &device.suspended,
                ),
                (
                    "queue_device_incomplete_total",
                    "Notifications of a device that said that they are incomplete",
                    &device.incomplete,
                ),
                (
                    "queue_device_entries_total",
                    "Entries of a device that were handed to the store",
                    &device.entries,
                ),
                (
                    "queue_device_findings_total",
                    "What was wrong with what a device sent, beside its rows",
                    &device.findings,
                ),
            ];
            rows.extend(counters.map(|(name, about, counter)| {
                let value = counter.load(Relaxed);
                (Row { name, about, sort: Sort::Counter, label: None, value }, owner.clone())
            }));
        }
        rows
    }
}
