//! Whether the collector is alive, and whether it takes reports in and keeps them.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::answer::{Problem, line};
use super::parameters::Parameters;
use super::{Shared, State as Served};

/// `GET /healthz`.
pub(super) async fn alive(RawQuery(query): RawQuery) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    Ok(line(StatusCode::OK, "alive"))
}

/// `GET /readyz`.
pub(super) async fn ready(
    State(state): Shared,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    Ok(match not_ready(&state) {
        None => line(StatusCode::OK, "ready"),
        Some(reason) => line(StatusCode::SERVICE_UNAVAILABLE, &reason),
    })
}

fn not_ready(state: &Served) -> Option<String> {
    if !state.intake.is_running() {
        return Some("intake has stopped: the collector is ending".into());
    }
    if let Some(problem) = state.metrics.store() {
        let full = if problem.disk_full { ", the disk is full" } else { "" };
        return Some(format!("intake stands still{full}: {problem}"));
    }
    let directory = &state.config.store.directory;
    match rustix::fs::statvfs(&directory.path) {
        Ok(disk) if disk.f_bavail == 0 => Some(format!("{directory}: no room left on the disk")),
        Ok(_) => None,
        Err(error) => Some(format!("{directory}: {error}")),
    }
}
