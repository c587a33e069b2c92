//! `/metrics`: every number that is counted, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use prometheus::TextEncoder;
use prometheus::proto::{MetricFamily, MetricType};

use super::Shared;
use super::answer::{Problem, answer};
use super::parameters::Parameters;
use super::{labels, pfc, queues};
use crate::collector::{Row, Sort};

/// What the interface counts of itself.
// SEQ-10.3
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections taken.
    pub connections: AtomicU64,
    /// Connections that the listener could not give.
    pub accept_errors: AtomicU64,
    /// Connections that made room for others before a reader was known.
    pub connections_evicted: AtomicU64,
    /// Connections of known readers beyond the limit.
    pub connections_refused: AtomicU64,
    /// TLS handshakes that failed or took too long.
    pub handshakes_failed: AtomicU64,
    /// Connections that ended because no request came in time, or an answer was not taken in time,
    /// or what came was no HTTP.
    pub connections_broken: AtomicU64,
    /// Requests that were not let through.
    pub requests_denied: AtomicU64,
    /// Requests by the class of their answer: 2, 3, 4, 5.
    pub requests: [AtomicU64; 4],
    /// Requests that found too many waiting for the store.
    pub queries_refused: AtomicU64,
    /// Requests for which the store was not read in time.
    pub queries_given_up: AtomicU64,
}

const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

impl Counts {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    pub(super) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(2);
        Self::count(&self.requests[class.min(3)]);
    }

    /// All numbers.
    pub fn rows(&self) -> Vec<Row> {
        let row = |name, about, value: &AtomicU64, label| Row {
            name,
            about,
            sort: Sort::Counter,
            label,
            value: value.load(Relaxed),
        };
        let mut rows: Vec<Row> = [
            ("http_connections_total", "HTTP connections taken", &self.connections),
            (
                "http_accept_errors_total",
                "HTTP connections that the listener could not give",
                &self.accept_errors,
            ),
            (
                "http_connections_evicted_total",
                "HTTP connections that made room for others before their reader was known",
                &self.connections_evicted,
            ),
            (
                "http_connections_refused_total",
                "HTTP connections of known readers beyond the limit",
                &self.connections_refused,
            ),
            (
                "http_handshakes_failed_total",
                "TLS handshakes for HTTP that failed or took too long",
                &self.handshakes_failed,
            ),
            (
                "http_connections_broken_total",
                "HTTP connections that ended for want of a good request or of a reader in time",
                &self.connections_broken,
            ),
            (
                "http_requests_denied_total",
                "HTTP requests of those who may not read, or for another host",
                &self.requests_denied,
            ),
            (
                "http_queries_refused_total",
                "HTTP requests that found too many waiting for the store",
                &self.queries_refused,
            ),
            (
                "http_queries_given_up_total",
                "HTTP requests for which the store was not read in time",
                &self.queries_given_up,
            ),
        ]
        .into_iter()
        .map(|(name, about, value)| row(name, about, value, None))
        .collect();
        rows.extend(CLASSES.into_iter().zip(&self.requests).map(|(class, value)| {
            let about = "HTTP requests by the class of their answer";
            row("http_requests_total", about, value, Some(("class", class)))
        }));
        rows
    }
}

/// Rows in the text format of Prometheus, each name behind a prefix.
///
/// # Errors
/// A name or a label that the format does not have; in a line.
pub fn text(prefix: &str, rows: impl IntoIterator<Item = Row>) -> Result<String, String> {
    labelled(prefix, "", rows.into_iter().map(|row| (row, None)))
}

/// The same with rows that are each of something, or of nothing in particular: its name is the
/// value of a label of this name.
///
/// # Errors
/// As [`text`].
pub(crate) fn labelled(
    prefix: &str,
    of: &'static str,
    rows: impl IntoIterator<Item = (Row, Option<String>)>,
) -> Result<String, String> {
    let mut families: BTreeMap<&str, MetricFamily> = BTreeMap::new();
    for (Row { name, about, sort, label, value }, owner) in rows {
        let family = families.entry(name).or_insert_with(|| {
            let mut family = MetricFamily::default();
            family.set_name(format!("{prefix}_{name}"));
            family.set_help(about.into());
            family.set_field_type(match sort {
                Sort::Counter => MetricType::COUNTER,
                Sort::Gauge => MetricType::GAUGE,
            });
            family
        });
        // The format has floating point numbers; what is beyond 2^53 is rounded in every reader.
        #[expect(clippy::cast_precision_loss, reason = "the format's own")]
        let value = value as f64;
        let pairs =
            [owner.map(|owner| (of, owner)), label.map(|(name, value)| (name, value.to_owned()))];
        let metric = labels::metric(sort, value, pairs.into_iter().flatten());
        family.mut_metric().push(metric);
    }
    let families: Vec<_> = families.into_values().collect();
    TextEncoder::new().encode_to_string(&families).map_err(|error| error.to_string())
}

/// `GET /metrics`.
pub(super) async fn get(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let rows = [state.metrics.rows(), state.counts.rows()].concat();
    let totals = pfc::totals(&state, PREFIX).await;
    let queues = queues::totals(&state, PREFIX).await;
    match text(PREFIX, rows).and_then(|text| Ok(text + &totals? + &queues?)) {
        Ok(text) => Ok(answer(StatusCode::OK, KIND, text.into_bytes())),
        Err(problem) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, problem)),
    }
}

/// The kind of what [`text`] makes.
pub(super) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the name of every number of a collector begins with.
const PREFIX: &str = "rocescope_collector";
