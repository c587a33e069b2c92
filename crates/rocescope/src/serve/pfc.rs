//! PFC counters: the latest reading of each, what lies between it and the one before, and some of
//! its readings (PFC draft).
//!
//! A counter of which no reading came is not in the listing: that is no zero. Counters of different
//! priorities are never added up, for one frame can count under several.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use observe::pfc::Direction;
use observe::pfc::interval::{Interval, Reason};
use prometheus::TextEncoder;
use prometheus::proto::{MetricFamily, MetricType};
use store::{PfcFilter, PfcPoint, PfcRow, Reader, SessionId};

use super::answer::{Problem, json};
use super::parameters::{Parameters, digits};
use super::{Shared, State as Served, endpoints, epochs, labels};
use crate::collector::Sort;
use crate::meter::json;
use crate::meter::pfc::{self, Judged};

const DIRECTIONS: [(&str, Direction); 2] = [
    (Direction::Received.word(), Direction::Received),
    (Direction::Transmitted.word(), Direction::Transmitted),
];

/// `GET /api/v1/pfc`.
// PFC-op.1
pub(super) async fn list(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.as_deref(), endpoints::PFC)?;
    let (filter, question) = filter(&state, &parameters)?;
    let served = state.clone();
    let read = move |reader: &Reader| {
        let append = |body: &mut Vec<u8>, row: &PfcRow| counter(body, &served, row);
        Ok(epochs::page("pfc", &reader.pfc_counters(&filter)?, &question, append))
    };
    Ok(json(state.pool.read(read).await?))
}

/// What is asked for, and the question without the page.
fn filter(state: &Served, parameters: &Parameters) -> Result<(PfcFilter, String), Problem> {
    let narrow = |name| {
        let number = parameters.number(name, 0..=u32::MAX.into())?;
        Ok::<_, Problem>(number.and_then(|number| u32::try_from(number).ok()))
    };
    let question = PfcFilter {
        exporter: parameters.parsed("exporter", "the name of a peer", |name| Some(name.into()))?,
        domain: narrow("domain")?,
        interface: narrow("interface")?,
        direction: parameters.word("direction", &DIRECTIONS)?,
        // PFC-id.3
        priority: parameters.number("priority", 0..=7)?.and_then(|n| u8::try_from(n).ok()),
        since_ms: parameters.time("since")?,
        until_ms: parameters.time("until")?,
        ..PfcFilter::default()
    };
    let asked = format!("{question:?}");
    let limit = state.limit(parameters)?;
    let cursor = epochs::place(parameters, &asked)?;
    Ok((PfcFilter { limit, cursor, ..question }, asked))
}

/// Appends a counter.
// PFC-sem.2
fn counter(body: &mut Vec<u8>, state: &Served, row: &PfcRow) {
    open_counter(body, state, row);
    body.push(b'}');
}

fn open_counter(body: &mut Vec<u8>, served: &Served, row: &PfcRow) {
    let state = &row.state;
    let session = Some(state.session.0);
    pfc::counter(body, Judged { session, number: state.number, counter: &state.counter });
    whose(body, served, row);
    json::number(body, "receivedMilliseconds", state.received_ms);
    let now_ms = served.clock.now_ms();
    json::number(body, "ageMilliseconds", now_ms.saturating_sub(state.received_ms));
    json::text(body, "sessionState", if row.is_open { "open" } else { "closed" });
    let current = row.is_open && state.received_ms >= since_ms(served);
    body.extend_from_slice(format!(",\"current\":{current}").as_bytes());
}

/// Appends who exported a counter, and of which device and port it is where the configuration says
/// so.
pub(super) fn whose(body: &mut Vec<u8>, served: &Served, row: &PfcRow) {
    json::text(body, "exporter", &row.peer);
    let scope = &row.state.counter.latest.reading.scope;
    let named = served.config.pfc.named(&row.peer, scope.domain, scope.interface);
    let (device, port) = named.map_or((None, None), |(device, port)| (Some(device), port));
    for (member, name) in [("device", device), ("port", port)] {
        match name {
            Some(name) => json::text(body, member, name),
            None => body.extend_from_slice(format!(",\"{member}\":null").as_bytes()),
        }
    }
}

/// What stands in a path for a counter.
type Segments = Result<Path<[String; 2]>, PathRejection>;

/// `GET /api/v1/pfc/{session}/{counter}/history`.
pub(super) async fn history(
    State(state): Shared,
    path: Segments,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let Path([session, number]) = path.map_err(|rejection| {
        let detail = format!("{}, expected numbers in the path", rejection.body_text());
        Problem::new(StatusCode::BAD_REQUEST, detail)
    })?;
    let read = |name, text: &str| {
        digits(text).ok_or_else(|| Problem::parameter(name, text, &format!("0 to {}", u64::MAX)))
    };
    let (session, number) = (read("session", &session)?, read("counter", &number)?);
    let found =
        state.pool.read(move |reader| reader.pfc_history(SessionId(session), number)).await?;
    let Some((row, points)) = found else {
        let detail = format!("no PFC counter {number} of session {session} is stored");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    };
    let mut body = Vec::new();
    open_counter(&mut body, &state, &row);
    body.extend_from_slice(b",\"points\":[");
    let mut before: Option<&PfcPoint> = None;
    for point in &points {
        if before.is_some() {
            body.push(b',');
        }
        append_point(&mut body, point, before);
        before = Some(point);
    }
    body.extend_from_slice(b"]}");
    Ok(json(body))
}

/// Appends a reading. What lies between it and the point before is known by the same rule as what
/// lies between two readings that followed each other, if it is so for all those between them.
// PFC-sem.2, PFC-sem.3
fn append_point(body: &mut Vec<u8>, point: &PfcPoint, before: Option<&PfcPoint>) {
    let PfcPoint { received_ms, sighting, number, .. } = point;
    let between = match before {
        Some(before) => point.since(before),
        None if *number == 1 => Interval::Unknown(Reason::NoEarlier),
        None => Interval::Unknown(Reason::NotKept),
    };
    body.extend_from_slice(b"{\"record\":\"pfcPoint\"");
    json::number(body, "receivedMilliseconds", *received_ms);
    json::number(body, "observationTimeMilliseconds", sighting.reading.time_ms);
    json::number(body, "pfcControlFrameTotalCount", sighting.reading.total);
    pfc::interval(body, before.map(|before| &before.sighting), between);
    body.push(b'}');
}

/// What the totals are for those who scrape them.
const TOTALS: &str = "Latest total of a PFC counter, as its exporter sent it: frames whose vector \
     had the bit of this priority set. One frame can count under several priorities, so a sum over \
     them is no number of frames; a total that grew can have been reset in between";
const TIMES: &str = "When the latest total of a PFC counter was read, seconds since 1970 by its \
     exporter's clock. A total whose time stands still was not read anew, whatever it did since";

/// From when on, by the collector's clock, a reading has to have been received to be current.
fn since_ms(served: &Served) -> u64 {
    let bound_ms = served.config.limits.pfc_silent_after_s.saturating_mul(1000);
    served.clock.now_ms().saturating_sub(bound_ms)
}

/// The raw totals of counters whose sessions are open and that were heard of lately, with their
/// scopes as labels, and when each was read, in the text format of Prometheus; at most as many as
/// [`crate::config::CollectorLimits`] says, the newest counters first. Nothing where the store cannot
/// be read now: that is no zero.
// PFC-op.1, PFC-count.3
pub(super) async fn totals(state: &Served, prefix: &str) -> Result<String, String> {
    let limit = usize::try_from(state.config.limits.pfc_metrics_max).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(String::new());
    }
    // A total that nobody reads any more would look like one that stands still.
    let heard_since_ms = Some(since_ms(state));
    let filter = PfcFilter { open_only: true, heard_since_ms, limit, ..PfcFilter::default() };
    let Ok(page) = state.pool.read(move |reader| reader.pfc_counters(&filter)).await else {
        return Ok(String::new());
    };
    if page.rows.is_empty() {
        return Ok(String::new());
    }
    let family = |name: &str, help: &str, kind| {
        let mut family = MetricFamily::default();
        family.set_name(format!("{prefix}_{name}"));
        family.set_help(help.into());
        family.set_field_type(kind);
        family
    };
    let mut totals = family("pfc_control_frames_total", TOTALS, MetricType::COUNTER);
    let mut times = family("pfc_observation_time_seconds", TIMES, MetricType::GAUGE);
    for row in &page.rows {
        let reading = &row.state.counter.latest.reading;
        // The format has floating point numbers; what is beyond 2^53 is rounded in every reader.
        #[expect(clippy::cast_precision_loss, reason = "the format's own")]
        let (total, seconds) = (reading.total as f64, reading.time_ms as f64 / 1000.0);
        totals.mut_metric().push(labels::metric(Sort::Counter, total, scope(row)));
        times.mut_metric().push(labels::metric(Sort::Gauge, seconds, scope(row)));
    }
    TextEncoder::new().encode_to_string(&[totals, times]).map_err(|error| error.to_string())
}

/// The labels of a counter.
fn scope(row: &PfcRow) -> [(&'static str, String); 8] {
    let counter = &row.state.counter;
    let scope = &counter.latest.reading.scope;
    let further: String =
        counter.further.octets().iter().map(|octet| format!("{octet:02x}")).collect();
    [
        ("exporter", row.peer.clone()),
        ("session", row.state.session.0.to_string()),
        ("domain", scope.domain.to_string()),
        ("point", scope.point.to_string()),
        ("interface", scope.interface.to_string()),
        ("direction", scope.direction.word().to_owned()),
        ("priority", scope.priority.get().to_string()),
        ("further_scope", further),
    ]
}

#[cfg(test)]
mod tests {
    use observe::pfc::interval::{Known, Sighting};
    use observe::pfc::{Priority, Reading, Scope};

    use super::*;

    // PFC-op.1
    #[test]
    fn the_first_point_of_a_history_says_whether_there_was_none_before_or_none_is_kept() {
        for (number, reason) in [(1, "no earlier reading"), (2, "no earlier reading is kept")] {
            let scope = Scope {
                domain: 1,
                point: 1,
                interface: 1,
                direction: Direction::Received,
                priority: Priority::ALL[3],
            };
            let reading = Reading { scope, time_ms: 1, total: 1 };
            let sighting = Sighting { reading, known: Known::default() };
            let mut body = Vec::new();
            let point = PfcPoint { received_ms: 1, sighting, number, unbroken: number };
            append_point(&mut body, &point, None);
            let point: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(point["interval"]["reason"], reason);
        }
    }
}
