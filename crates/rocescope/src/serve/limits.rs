//! Every bound with its value, and what is kept for how long.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::answer::{self, Problem, number};
use super::parameters::Parameters;
use crate::collector::Disk;
use crate::config::Limit;

/// `GET /api/v1/limits`.
// SEQ-7.10
pub(super) async fn get(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    let octets = state.pool.read(|reader| reader.octets()).await?;
    let limits: Vec<Value> = state.config.limits.rows().map(limit).collect();
    let (results, archive) = Disk::limits(&state.config);
    let body = json!({
        "limits": limits,
        "inactivityTimeoutSeconds": state.config.inactivity_timeout().as_secs(),
        "retention": {
            "resultsAgeMaxMilliseconds": number(results.results_age_max_ms),
            "historyAgeMaxMilliseconds": number(results.history_age_max_ms),
            "historyPerEpochMax": number(results.history_per_epoch_max),
            "pfcHistoryIntervalMilliseconds": number(results.pfc_history_interval_ms),
            "pfcHistoryPerCounterMax": number(results.pfc_history_per_counter_max),
            "databaseOctetsMax": number(results.octets_max),
            "databaseOctets": number(octets),
            "archiveAgeMaxMilliseconds": number(archive.age_max_ms),
            "archiveOctetsMax": number(archive.octets_max),
        },
    });
    Ok(answer::json(body.to_string().into_bytes()))
}

fn limit((limit, value): (&Limit, u64)) -> Value {
    let Limit { name, default, min, max, bounds } = limit;
    json!({
        "name": format!("limits.{name}"),
        "value": number(value),
        "default": number(*default),
        "min": number(*min),
        "max": number(*max),
        "unit": unit(name),
        "bounds": bounds,
    })
}

/// The unit is in the name, as everywhere.
fn unit(name: &str) -> &'static str {
    let has = |part| name.split('_').any(|word| word == part);
    if has("gbps") {
        "gigabitsPerSecond"
    } else if has("octets") {
        "octets"
    } else if has("ms") {
        "milliseconds"
    } else if has("s") {
        "seconds"
    } else if has("days") {
        "days"
    } else {
        "count"
    }
}
