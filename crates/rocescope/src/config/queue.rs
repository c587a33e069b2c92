//! `[queue]` of a device: where measurements of its queues come from.
//!
//! Each source has queues of its own, and bounds of its own on them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use observe::pfc::Priority;
use observe::queue::{DURATION_NS_MAX, Priorities};

use super::device::{is_account_name, named};
use super::limits::QUEUE_KEYS;
use super::section::Section;
use super::source::Pace;
use super::{NamedFile, QueueLimits, pfc};
use crate::pfc::RedisAddress;

const SOURCE_KEYS: &[&str] = &[
    "name",
    "events_socket",
    "socket_group",
    "events_file",
    "pace",
    "redis",
    "poll_interval_ms",
    "map",
    "interval_ms",
    "queues_max",
    "edges_max",
];
const MAP_KEYS: &[&str] = &["port", "queue", "priorities"];

/// Queues of one source and transitions of one queue, where nothing else is said.
const QUEUES_DEFAULT: u64 = 4_096;
const EDGES_DEFAULT: u64 = 1_024;
/// Cadence of intervals of events, and of samples of a database, in milliseconds.
const EVENTS_INTERVAL_MS: u64 = 100;
const SAMPLES_INTERVAL_MS: u64 = 10_000;

/// `[queue]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueTelemetry {
    /// Where measurements come from.
    pub sources: Vec<QueueSource>,
    /// Bounds.
    pub limits: QueueLimits,
}

/// `[[queue.source]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSource {
    /// What it is called.
    pub name: String,
    /// The line on which it stands.
    pub line: usize,
    /// What it is.
    pub kind: QueueKind,
    /// How long an interval is that nothing cuts short.
    pub interval: Duration,
    /// Queues, at most.
    pub queues_max: u64,
    /// Transitions of one queue within twice its timestamp error, at most.
    pub edges_max: u64,
}

/// What a source of measurements is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Events come over a Unix socket, one connection at a time.
    Socket {
        /// The socket.
        socket: NamedFile,
        /// The group that may connect beside the agent's user; without one, the agent's own.
        group: Option<String>,
    },
    /// Events are in a file.
    File {
        /// The file.
        file: NamedFile,
        /// How fast.
        pace: Pace,
    },
    /// The database of a SONiC switch is asked now and then.
    Sonic {
        /// Where it is.
        redis: RedisAddress,
        /// How often.
        poll_interval: Duration,
        /// Which priorities are mapped to a queue, where the switch's own configuration is not to
        /// say.
        maps: Vec<QueueMap>,
    },
}

/// `[[queue.source.map]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMap {
    /// The port, or all of them.
    pub port: Option<String>,
    /// The index of the queue.
    pub queue: u8,
    /// What is mapped to it.
    pub priorities: Priorities,
}

impl QueueTelemetry {
    /// Queues of all sources, at most.
    pub fn queues_max(&self) -> u64 {
        self.sources.iter().map(|source| source.queues_max).fold(0, u64::saturating_add)
    }
}

/// Reads `[queue]`; none where the file has none.
pub(super) fn read(top: &Section<'_>, directory: &Path) -> Option<Option<QueueTelemetry>> {
    let section = top.section("queue", QUEUE_KEYS);
    let limits = QueueLimits::read(&section);
    let sections = section.sections("source", SOURCE_KEYS);
    let sources: Vec<_> = sections.iter().map(|section| source(section, directory)).collect();
    let sources: Vec<QueueSource> = sources.into_iter().collect::<Option<_>>()?;
    let mut names = BTreeSet::new();
    for (source, section) in sources.iter().zip(&sections) {
        if !names.insert(&source.name) {
            section.value("name")?.wrong("each name once");
            return None;
        }
    }
    let telemetry = QueueTelemetry { sources, limits: limits? };
    Some(section.is_there().then_some(telemetry))
}

fn source(section: &Section<'_>, directory: &Path) -> Option<QueueSource> {
    let expected = "a name of 1 to 64 octets";
    let name = section.required("name", expected).and_then(|v| pfc::name_of(&v, expected));
    let kind = kind(section, directory);
    let sampled = matches!(kind, Some(QueueKind::Sonic { .. }));
    let interval_ms = if sampled { SAMPLES_INTERVAL_MS } else { EVENTS_INTERVAL_MS };
    let interval = section.number("interval_ms", 1..=DURATION_NS_MAX / 1_000_000, interval_ms);
    let queues_max = section.number("queues_max", 1..=1_048_576, QUEUES_DEFAULT);
    let edges_max = section.number("edges_max", 1..=1_048_576, EDGES_DEFAULT);
    let interval = Duration::from_millis(interval?);
    let kind = kind?;
    if let QueueKind::Sonic { poll_interval, .. } = &kind
        && *poll_interval >= interval
    {
        // QUE-err.1: no interval would ever have its samples.
        let problem = "as long as interval_ms or longer, expected less: a sample must come sooner";
        section.error("poll_interval_ms", problem.into());
        return None;
    }
    Some(QueueSource {
        name: name?,
        line: section.line(),
        kind,
        interval,
        queues_max: queues_max?,
        edges_max: edges_max?,
    })
}

fn kind(section: &Section<'_>, directory: &Path) -> Option<QueueKind> {
    const KINDS: [&str; 3] = ["events_socket", "events_file", "redis"];
    let there: Vec<&str> = KINDS.into_iter().filter(|name| section.value(name).is_some()).collect();
    let [kind] = there[..] else {
        let found = if there.is_empty() { "none".to_owned() } else { there.join(" and ") };
        section.error("", format!("{found} of {}, expected one of them", KINDS.join(", ")));
        return None;
    };
    for (name, of) in [
        ("socket_group", "events_socket"),
        ("pace", "events_file"),
        ("poll_interval_ms", "redis"),
        ("map", "redis"),
    ] {
        if let Some(value) = section.value(name).filter(|_| kind != of) {
            value.problem(format!("expected only beside {of}"));
            return None;
        }
    }
    match kind {
        "events_socket" => {
            let group = match section.value("socket_group") {
                Some(value) => value
                    .parsed("the name or the number of a group, as a text", |text| {
                        is_account_name(text).then(|| text.to_owned())
                    })
                    .map(Some),
                None => Some(None),
            };
            let socket = named(&section.value("events_socket")?, directory);
            Some(QueueKind::Socket { socket: socket?, group: group? })
        }
        "events_file" => {
            let pace = section.choice("pace", &[("capture", Pace::Capture), ("fast", Pace::Fast)]);
            let file = named(&section.value("events_file")?, directory);
            Some(QueueKind::File { file: file?, pace: pace? })
        }
        _ => {
            let redis = pfc::redis(section, directory);
            let poll_ms = section.number("poll_interval_ms", 10..=3_600_000, 1_000_u64);
            let maps: Vec<_> = section.sections("map", MAP_KEYS).iter().map(map).collect();
            Some(QueueKind::Sonic {
                redis: redis?,
                poll_interval: Duration::from_millis(poll_ms?),
                maps: maps.into_iter().collect::<Option<_>>()?,
            })
        }
    }
}

// QUE-id.2
fn map(section: &Section<'_>) -> Option<QueueMap> {
    let port = match section.value("port") {
        Some(value) => pfc::name_of(&value, "the name of a port, 1 to 64 octets").map(Some),
        None => Some(None),
    };
    let queue = section.required("queue", "the index of a queue, 0 to 255");
    let queue = queue.and_then(|value| value.number(0..=u8::MAX));
    let expected = "the priorities, 0 to 7, that are mapped to the queue";
    let priorities = section.required("priorities", expected).and_then(|value| {
        let items = value.list("priority")?;
        let read = |item: &super::section::Value<'_>| item.number(0..=7_u8).and_then(Priority::new);
        Priorities::new(items.iter().map(read).collect::<Option<Vec<_>>>()?)
    });
    Some(QueueMap { port: port?, queue: queue?, priorities: priorities? })
}
