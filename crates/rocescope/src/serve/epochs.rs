//! Epochs: what came of them, one of them, and its readings.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use observe::outcome::Outcome;
use store::{EpochFilter, EpochRow, HistoryRow, Page, Reader, SessionId};

use super::answer::{Problem, json};
use super::parameters::{Parameters, digits};
use super::{Shared, State as Served, cursor, endpoints};
use crate::meter::json::{self, Judged};

const OUTCOMES: [(&str, Outcome); 4] = [
    (Outcome::Active.word(), Outcome::Active),
    (Outcome::Complete.word(), Outcome::Complete),
    (Outcome::Incomplete.word(), Outcome::Incomplete),
    (Outcome::Invalid.word(), Outcome::Invalid),
];

/// 24 bits (SEQ-6.10).
const QP_MAX: u64 = 0xff_ffff;

/// `GET /api/v1/epochs`.
pub(super) async fn list(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.as_deref(), endpoints::EPOCHS)?;
    let (filter, question) = filter(&state, &parameters)?;
    let read =
        move |reader: &Reader| Ok(page("epochs", &reader.epochs(&filter)?, &question, epoch));
    Ok(json(state.pool.read(read).await?))
}

/// A page of a listing: its rows under a name, and the cursor of what follows. Many rows take their
/// time: this runs where a query runs.
pub(super) fn page<T>(
    name: &str,
    page: &Page<T>,
    question: &str,
    append: impl Fn(&mut Vec<u8>, &T),
) -> Vec<u8> {
    let mut body = format!("{{\"{name}\":[").into_bytes();
    for (n, row) in page.rows.iter().enumerate() {
        if n > 0 {
            body.push(b',');
        }
        append(&mut body, row);
    }
    body.push(b']');
    match page.next {
        Some(place) => json::text(&mut body, "next", &cursor::cursor(question, place)),
        None => body.extend_from_slice(b",\"next\":null"),
    }
    body.push(b'}');
    body
}

/// What is asked for, and the question without the page.
fn filter(state: &Served, parameters: &Parameters) -> Result<(EpochFilter, String), Problem> {
    let since_ms = parameters.time("since")?;
    let until_ms = parameters.time("until")?;
    let question = EpochFilter {
        outcome: parameters.word("outcome", &OUTCOMES)?,
        source: parameters.address("source")?,
        destination: parameters.address("destination")?,
        qp: parameters.identifier("qp", 0..=QP_MAX)?.and_then(|qp| u32::try_from(qp).ok()),
        since_ms,
        until_ms,
        limit: 0,
        cursor: None,
    };
    let asked = format!("{question:?}");
    let limit = state.limit(parameters)?;
    let cursor = place(parameters, &asked)?;
    Ok((EpochFilter { limit, cursor, ..question }, asked))
}

/// Where a listing goes on.
pub(super) fn place(parameters: &Parameters, question: &str) -> Result<Option<u64>, Problem> {
    let expected = "the next of an answer to the same question";
    parameters.parsed("cursor", expected, |text| cursor::place(question, text))
}

/// Rows of a page where the request does not say.
const PAGE: u64 = 100;

impl Served {
    /// Rows of a page.
    pub(super) fn limit(&self, parameters: &Parameters) -> Result<usize, Problem> {
        let most = self.config.limits.http_page_max;
        let limit = parameters.number("limit", 1..=most)?.unwrap_or(PAGE.min(most));
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

/// Appends an epoch.
// SEQ-7.11, SEQ-7.15, SEQ-7.16
pub(super) fn epoch(body: &mut Vec<u8>, row: &EpochRow) {
    let judged = Judged {
        session: Some(row.session.0),
        outcome: row.outcome,
        qualifications: row.qualifications.iter().map(String::as_str),
        reason: row.reason.as_deref(),
    };
    json::epoch(body, row.domain, &row.epoch, judged);
    json::number(body, "heardMilliseconds", row.epoch.heard_ms);
    json::number(body, "updatedMilliseconds", row.updated_ms);
    body.push(b'}');
}

/// What an epoch is asked for by.
pub(super) type Key = (SessionId, u32, u64);

/// What stands in a path for it.
pub(super) type Segments = Result<Path<[String; 3]>, PathRejection>;

pub(super) fn key(path: Segments) -> Result<Key, Problem> {
    let Path([session, domain, epoch]) = path.map_err(|rejection| {
        let detail = format!("{}, expected numbers in the path", rejection.body_text());
        Problem::new(StatusCode::BAD_REQUEST, detail)
    })?;
    let number = |name, text: &str, most: u64| {
        let found = digits(text).filter(|number| *number <= most);
        found.ok_or_else(|| Problem::parameter(name, text, &format!("0 to {most}")))
    };
    let session = number("session", &session, u64::MAX)?;
    let domain = number("domain", &domain, u32::MAX.into())?;
    let epoch = number("epochId", &epoch, u64::MAX)?;
    Ok((SessionId(session), u32::try_from(domain).unwrap_or(u32::MAX), epoch))
}

pub(super) fn missing((session, domain, epoch): Key) -> Problem {
    let detail = format!(
        "no epoch {epoch} of observation domain {domain} and session {} is stored",
        session.0
    );
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// `GET /api/v1/epochs/{session}/{domain}/{epochId}`.
pub(super) async fn one(
    State(state): Shared,
    path: Segments,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let key @ (session, domain, id) = key(path)?;
    let row = state.pool.read(move |reader| reader.epoch(session, domain, id)).await?;
    let mut body = Vec::new();
    epoch(&mut body, &row.ok_or_else(|| missing(key))?);
    Ok(json(body))
}

/// `GET /api/v1/epochs/{session}/{domain}/{epochId}/history`.
pub(super) async fn history(
    State(state): Shared,
    path: Segments,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let key @ (session, domain, id) = key(path)?;
    let found = state
        .pool
        .read(move |reader| {
            let there = reader.epoch(session, domain, id)?.is_some();
            Ok((there, reader.history(session, domain, id)?))
        })
        .await?;
    let (true, points) = found else { return Err(missing(key)) };
    let mut body = b"{\"record\":\"history\"".to_vec();
    json::number(&mut body, "session", session.0);
    json::number(&mut body, "observationDomainId", domain.into());
    json::number(&mut body, "rdmaSequenceEpochId", id);
    body.extend_from_slice(b",\"points\":[");
    let mut before = None;
    for (n, row) in points.iter().enumerate() {
        if n > 0 {
            body.push(b',');
        }
        point(&mut body, row, before);
        before = Some(row.report_id);
    }
    body.extend_from_slice(b"]}");
    Ok(json(body))
}

/// Appends a reading. `reportGaps` is 0 where no report is missing in front of it. Where ids are
/// left out, it is not known: reports that came together are kept as the last of them. The
/// difference to the point before then says nothing about when.
// SEQ-7.7
fn point(body: &mut Vec<u8>, row: &HistoryRow, before: Option<u64>) {
    let missing = match before {
        Some(before) => (row.report_id.checked_sub(before) == Some(1)).then_some(0),
        // Readings in front of it may have been taken out.
        None => (row.report_id == 1).then_some(0),
    };
    body.extend_from_slice(b"{\"record\":\"point\"");
    json::number(body, "receivedMilliseconds", row.received_ms);
    json::number(body, "flowEndMilliseconds", row.end_ms);
    json::number(body, "rdmaSequenceReportId", row.report_id);
    match missing {
        Some(missing) => json::number(body, "reportGaps", missing),
        None => body.extend_from_slice(b",\"reportGaps\":null"),
    }
    json::flags(body, row.flags);
    json::counters(body, &row.counts);
    body.push(b'}');
}
