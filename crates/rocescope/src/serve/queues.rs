//! Queue telemetry: how each queue stands, its rows, rows summed within each epoch, and the devices
//! that they come from.
//!
//! A time is when a row was received. What is not known is null, and never 0; what did not come is
//! not listed, and is counted as missing between what did.
// QUE-con.1, QUE-con.2

use std::sync::atomic::Ordering::Relaxed;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use observe::pfc::Priority;
use observe::queue::EpochId;
use observe::queue::row::{Measurement, Method, Row};
use serde_json::{Map, Value, json};
use store::{QueueDeviceRow, QueueEpochRow, QueueFilter, QueueGroup, QueueHistoryRow, QueueRow};

use super::answer::{self, Problem, number};
use super::parameters::Parameters;
use super::{Shared, State as Served, cursor, endpoints, metrics};
use crate::collector::{Row as MetricRow, Sort};
use crate::queue::aggregate;

/// `GET /api/v1/queues`.
pub(super) async fn list(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.as_deref(), endpoints::QUEUES)?;
    let (filter, question) = filter(&state, &parameters, "queues")?;
    let read = move |reader: &store::Reader| {
        let page = reader.queues(&filter)?;
        Ok(body("queues", page.rows.iter().map(queue), &question, page.next))
    };
    Ok(answer::json(state.pool.read(read).await?))
}

/// `GET /api/v1/queues/rows`.
pub(super) async fn rows(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.as_deref(), endpoints::QUEUE_ROWS)?;
    let (filter, question) = filter(&state, &parameters, "rows")?;
    let read = move |reader: &store::Reader| {
        let page = reader.queue_rows(&filter)?;
        Ok(body("rows", page.rows.iter().map(history), &question, page.next))
    };
    Ok(answer::json(state.pool.read(read).await?))
}

/// `GET /api/v1/queues/aggregate`.
// QUE-con.2, QUE-con.3
pub(super) async fn aggregated(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.as_deref(), endpoints::QUEUE_ROWS)?;
    let (filter, question) = filter(&state, &parameters, "aggregate")?;
    let rows_max = state.config.limits.queue_aggregate_rows_max;
    let read = move |reader: &store::Reader| {
        let page = reader.queue_groups(&filter, rows_max)?;
        Ok(body("groups", page.rows.iter().map(group), &question, page.next))
    };
    Ok(answer::json(state.pool.read(read).await?))
}

/// `GET /api/v1/queues/devices`.
pub(super) async fn devices(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let stored = state.pool.read(|reader| reader.queue_devices()).await?;
    let configured = state.devices.iter().map(|device| {
        let standing = device.standing();
        let stored = stored.iter().find(|stored| *stored.name == *device.name);
        let mut members = of_store(&device.name, stored);
        members.insert("url".into(), device.url.as_str().into());
        members.insert("connection".into(), standing.connection.word().into());
        members.insert("sinceMilliseconds".into(), number(standing.since_ms));
        members.insert("problem".into(), standing.problem.into());
        members.insert("notifications".into(), number(device.notifications.load(Relaxed)));
        members.insert("answers".into(), number(device.answers.load(Relaxed)));
        Value::Object(members)
    });
    let others = stored
        .iter()
        .filter(|stored| state.devices.iter().all(|device| *device.name != *stored.name));
    let others = others.map(|stored| Value::Object(of_store(&stored.name, Some(stored))));
    let devices: Vec<Value> = configured.chain(others).collect();
    Ok(answer::json(json!({ "devices": devices }).to_string().into_bytes()))
}

/// What is stored of a device; of one that is asked no more there is nothing else.
fn of_store(name: &str, stored: Option<&QueueDeviceRow>) -> Map<String, Value> {
    let verdicts = stored.map_or(&[][..], |stored| &stored.verdicts);
    let verdicts: Map<String, Value> =
        verdicts.iter().map(|(word, rows)| (word.clone(), number(*rows))).collect();
    let mut members = Map::new();
    members.insert("device".into(), name.into());
    members.insert("queues".into(), number(stored.map_or(0, |stored| stored.queues)));
    members.insert("verdicts".into(), verdicts.into());
    members
}

/// What is asked for, and the question without the page.
fn filter(
    state: &Served,
    parameters: &Parameters,
    listing: &str,
) -> Result<(QueueFilter, String), Problem> {
    let name = |name, expected| parameters.parsed(name, expected, |text| Some(text.to_owned()));
    let question = QueueFilter {
        device: name("device", "the name of a device")?,
        interface: name("interface", "the name of an interface")?,
        queue: name("queue", "a queue-id")?,
        epoch: parameters.parsed("epoch", "a UUID", EpochId::read)?,
        since_ms: parameters.time("since")?,
        until_ms: parameters.time("until")?,
        ..QueueFilter::default()
    };
    let asked = format!("{listing} {question:?}");
    let limit = state.limit(parameters)?;
    let expected = "the next of an answer to the same question";
    let cursor = parameters.parsed("cursor", expected, |text| cursor::pair(&asked, text))?;
    Ok((QueueFilter { limit, cursor, ..question }, asked))
}

/// A page of a listing.
fn body(
    name: &str,
    rows: impl Iterator<Item = Value>,
    question: &str,
    next: Option<[u64; 2]>,
) -> Vec<u8> {
    let rows: Vec<Value> = rows.collect();
    let next = next.map(|place| cursor::cursor_of_pair(question, place));
    json!({ name: rows, "next": next }).to_string().into_bytes()
}

/// A queue with its latest row and what is known of continuity.
// QUE-con.1
fn queue(queue: &QueueRow) -> Value {
    json!({
        "device": queue.device,
        "interface": *queue.of.interface,
        "queueId": *queue.of.queue,
        "latest": queue.latest.as_ref().map(|(row, received_ms)| measured(row, *received_ms)),
        "epoch": queue.epoch.as_ref().map(epoch),
        "epochs": number(queue.epochs),
        "rowsStored": number(queue.stored),
    })
}

/// What is known of an epoch from everything that was accepted of it.
fn epoch(epoch: &QueueEpochRow) -> Value {
    json!({
        "epochId": epoch.id.to_string(),
        "begunMilliseconds": number(epoch.begun_ms),
        "heardMilliseconds": number(epoch.heard_ms),
        "accepted": number(epoch.accepted),
        "repeated": number(epoch.repeated),
        "rejected": number(epoch.rejected),
        "firstInterval": number(epoch.first),
        "lastInterval": number(epoch.last),
        "missingIntervals": number(epoch.missing_intervals()),
        "durationNs": number(epoch.span_ns),
        "gapNs": number(epoch.gap_ns()),
        "unknownNs": number(epoch.unknown_ns),
    })
}

/// A row with where it is from.
fn history(found: &QueueHistoryRow) -> Value {
    let place = &found.row.place;
    let mut members = Map::new();
    members.insert("device".into(), found.device.as_str().into());
    members.insert("interface".into(), (*place.interface).into());
    members.insert("queueId".into(), (*place.queue).into());
    if let Value::Object(measured) = measured(&found.row, found.received_ms) {
        members.extend(measured);
    }
    members.into()
}

/// What a row says. What is not known is null.
// QUE-err.3
fn measured(row: &Row, received_ms: u64) -> Value {
    let (known, reason) = match &row.measurement {
        Measurement::Known(known) => (Some(known), None),
        Measurement::Unknown(reason) => (None, Some(reason.word())),
    };
    let period = known.and_then(|known| match known.method {
        Method::Samples { period_ns } => Some(number(period_ns)),
        Method::Events => None,
    });
    let priorities: Vec<u8> = row.priorities.iter().map(Priority::get).collect();
    json!({
        "epochId": row.epoch.to_string(),
        "intervalId": number(row.interval),
        "receivedMilliseconds": number(received_ms),
        "startOffsetNs": number(row.start_ns),
        "durationNs": number(row.duration_ns),
        "wallClockStart": row.wall_clock_start.as_deref(),
        "mappedPriority": priorities,
        "quality": row.measurement.word(),
        "unknownReason": reason,
        "gatedBacklogNs": known.map(|known| number(known.gated_ns)),
        "backlogNs": known.map(|known| number(known.backlog_ns)),
        "absoluteErrorNs": known.map(|known| number(known.error_ns)),
        "samplePeriodNs": period,
    })
}

/// What `queue aggregate` says of a group, with its device and what is not stored any more.
fn group(found: &QueueGroup) -> Value {
    let mut members = Map::new();
    members.insert("device".into(), found.device.as_str().into());
    if let Value::Object(object) = aggregate::object(&found.group) {
        members.extend(object);
    }
    members.insert("removedThroughInterval".into(), found.removed.map(number).into());
    members.into()
}

/// What `/metrics` says of devices and of what became of their rows. Where the store cannot be read
/// now the latter is left out: that is no zero.
pub(super) async fn totals(state: &Served, prefix: &str) -> Result<String, String> {
    let mut rows = state.devices.rows();
    let stored = state.pool.read(|reader| reader.queue_devices()).await.unwrap_or_default();
    for device in &stored {
        let counts = device.verdicts.iter().filter_map(|(word, rows)| {
            let word = store::QUEUE_VERDICTS.into_iter().find(|known| known == word)?;
            Some((word, *rows))
        });
        rows.extend(counts.map(|(word, value)| {
            let row = MetricRow {
                name: "queue_rows_total",
                about: "Rows of queues by what became of them, since anything of their device is \
                        stored",
                sort: Sort::Counter,
                label: Some(("verdict", word)),
                value,
            };
            (row, Some(device.name.clone()))
        }));
    }
    metrics::labelled(prefix, "device", rows)
}
