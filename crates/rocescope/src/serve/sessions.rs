//! Transport Sessions, and the whole in numbers.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use observe::outcome::Outcome;
use serde_json::{Map, Value, json};
use store::{Reader, SessionRow, StoreError};

use super::answer::{self, Problem, number};
use super::parameters::Parameters;
use super::{Shared, cursor, endpoints, epochs};

/// A session with what came of it.
struct Found {
    row: SessionRow,
    outcomes: Vec<(Outcome, u64)>,
    refused: Vec<(String, u64)>,
    dropped: u64,
    pfc_counters: u64,
}

/// The one question to this listing.
const QUESTION: &str = "sessions";

/// `GET /api/v1/sessions`.
pub(super) async fn list(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(query.as_deref(), endpoints::SESSIONS)?;
    let limit = state.limit(&parameters)?;
    let place = epochs::place(&parameters, QUESTION)?;
    let (found, next) = state
        .pool
        .read(move |reader| {
            let page = reader.sessions(limit, place)?;
            let found = page.rows.into_iter().map(|row| found(reader, row));
            Ok((found.collect::<Result<Vec<_>, _>>()?, page.next))
        })
        .await?;
    let sessions: Vec<Value> = found.into_iter().map(session).collect();
    let next = next.map(|place| cursor::cursor(QUESTION, place));
    Ok(answer::json(json!({ "sessions": sessions, "next": next }).to_string().into_bytes()))
}

fn found(reader: &Reader, row: SessionRow) -> Result<Found, StoreError> {
    let session = row.session;
    let mut refused: Vec<(String, u64)> = Vec::new();
    for refusal in reader.refusals(session)? {
        match refused.iter_mut().find(|(kind, _)| *kind == refusal.kind) {
            Some((_, records)) => *records = records.saturating_add(refusal.records),
            None => refused.push((refusal.kind, refusal.records)),
        }
    }
    let dropped = reader.collector_drops(session)?;
    let dropped = dropped.into_iter().fold(0, |all: u64, (_, more)| all.saturating_add(more));
    let pfc_counters = reader.pfc_count(Some(session))?;
    Ok(Found { outcomes: reader.outcomes(session)?, row, refused, dropped, pfc_counters })
}

fn session(Found { row, outcomes, refused, dropped, pfc_counters }: Found) -> Value {
    let facts = &row.facts;
    let fingerprint: String =
        facts.fingerprint.iter().map(|octet| format!("{octet:02x}")).collect();
    // Zeros stand where no certificate was shown.
    let fingerprint = (facts.fingerprint != [0; 32]).then(|| format!("sha256:{fingerprint}"));
    json!({
        "session": number(row.session.0),
        "state": if row.closed_ms.is_some() { "closed" } else { "open" },
        "peer": facts.peer,
        "fingerprint": fingerprint,
        "address": facts.address,
        "observationDomainIds": facts.rules.domains,
        "openedMilliseconds": number(facts.opened_ms),
        "closedMilliseconds": row.closed_ms.map(number),
        "reason": row.reason,
        "epochs": counted(&outcomes),
        "pfcCounters": number(pfc_counters),
        "refused": by_kind(refused),
        "collectorDrops": number(dropped),
    })
}

/// Every outcome, none of them left out.
// SEQ-7.11
fn counted(found: &[(Outcome, u64)]) -> Value {
    let all = [Outcome::Active, Outcome::Complete, Outcome::Incomplete, Outcome::Invalid];
    let count = |outcome| found.iter().find(|(of, _)| *of == outcome).map_or(0, |(_, n)| *n);
    all.into_iter()
        .map(|of| (of.word().to_owned(), number(count(of))))
        .collect::<Map<_, _>>()
        .into()
}

fn by_kind(refused: Vec<(String, u64)>) -> Value {
    refused.into_iter().map(|(kind, records)| (kind, number(records))).collect::<Map<_, _>>().into()
}

/// `GET /api/v1/summary`.
// SEQ-7.15
pub(super) async fn summary(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let (outcomes, (open, closed), refused, dropped, pfc_counters) = state
        .pool
        .read(|reader| {
            Ok((
                reader.counts_by_outcome()?,
                reader.counts_of_sessions()?,
                reader.refusals_by_kind()?,
                reader.all_collector_drops()?,
                reader.pfc_count(None)?,
            ))
        })
        .await?;
    let problem = state.metrics.store();
    let intake = match (&problem, state.intake.is_running()) {
        (None, true) => "running",
        (Some(_), true) => "standing still",
        (_, false) => "stopped",
    };
    let body = json!({
        "epochs": counted(&outcomes),
        "pfcCounters": number(pfc_counters),
        "sessions": { "open": number(open), "closed": number(closed) },
        "refused": by_kind(refused),
        "collectorDrops": number(dropped),
        "intake": { "state": intake, "reason": problem.map(|problem| problem.to_string()) },
    });
    Ok(answer::json(body.to_string().into_bytes()))
}
