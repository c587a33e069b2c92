//! What there is: paths, their parameters, and what is said of anything else.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::RawQuery;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use serde_json::Value;

use super::answer::{Problem, shown};
use super::parameters::Parameters;
use super::{State, beside, dashboard, epochs, health, limits, metrics, pfc, queues, sessions};
use crate::config::nearest;

/// A path that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As the description has it; what is in braces stands for a value.
    pub path: &'static str,
    /// The parameters that it knows.
    pub parameters: &'static [&'static str],
}

pub(super) const EPOCHS: &[&str] =
    &["outcome", "source", "destination", "qp", "since", "until", "limit", "cursor"];
pub(super) const SESSIONS: &[&str] = &["limit", "cursor"];
pub(super) const PFC: &[&str] = &[
    "exporter",
    "domain",
    "interface",
    "priority",
    "direction",
    "since",
    "until",
    "limit",
    "cursor",
];

pub(super) const QUEUES: &[&str] =
    &["device", "interface", "queue", "since", "until", "limit", "cursor"];
pub(super) const QUEUE_ROWS: &[&str] =
    &["device", "interface", "queue", "epoch", "since", "until", "limit", "cursor"];

const fn endpoint(path: &'static str, parameters: &'static [&'static str]) -> Endpoint {
    Endpoint { path, parameters }
}

/// All of them.
pub const ENDPOINTS: [Endpoint; 20] = [
    endpoint("/", &[]),
    endpoint("/dashboard.css", &[]),
    endpoint("/dashboard.js", &[]),
    endpoint("/api/v1/epochs", EPOCHS),
    endpoint("/api/v1/epochs/{session}/{domain}/{epochId}", &[]),
    endpoint("/api/v1/epochs/{session}/{domain}/{epochId}/history", &[]),
    endpoint("/api/v1/epochs/{session}/{domain}/{epochId}/pfc", &[]),
    endpoint("/api/v1/sessions", SESSIONS),
    endpoint("/api/v1/limits", &[]),
    endpoint("/api/v1/summary", &[]),
    endpoint("/api/v1/pfc", PFC),
    endpoint("/api/v1/pfc/{session}/{counter}/history", &[]),
    endpoint("/api/v1/queues", QUEUES),
    endpoint("/api/v1/queues/rows", QUEUE_ROWS),
    endpoint("/api/v1/queues/aggregate", QUEUE_ROWS),
    endpoint("/api/v1/queues/devices", &[]),
    endpoint("/api/openapi.json", &[]),
    endpoint("/metrics", &[]),
    endpoint("/healthz", &[]),
    endpoint("/readyz", &[]),
];

/// What the role for metrics may read.
pub(super) const FOR_METRICS: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

/// The description of the interface (OpenAPI 3.1).
pub fn openapi() -> &'static Value {
    static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
        let mut value: Value =
            serde_json::from_str(include_str!("openapi.json")).expect("a file of ours, tested");
        value["info"]["version"] = env!("CARGO_PKG_VERSION").into();
        value
    });
    &DESCRIPTION
}

pub(super) fn router(state: Arc<State>) -> Router {
    let mut router = Router::new();
    for Endpoint { path, .. } in ENDPOINTS {
        let method = match path {
            "/" => get(dashboard::page),
            "/dashboard.css" => get(dashboard::style),
            "/dashboard.js" => get(dashboard::script),
            "/api/v1/epochs" => get(epochs::list),
            "/api/v1/epochs/{session}/{domain}/{epochId}" => get(epochs::one),
            "/api/v1/epochs/{session}/{domain}/{epochId}/history" => get(epochs::history),
            "/api/v1/epochs/{session}/{domain}/{epochId}/pfc" => get(beside::get),
            "/api/v1/sessions" => get(sessions::list),
            "/api/v1/limits" => get(limits::get),
            "/api/v1/summary" => get(sessions::summary),
            "/api/v1/pfc" => get(pfc::list),
            "/api/v1/pfc/{session}/{counter}/history" => get(pfc::history),
            "/api/v1/queues" => get(queues::list),
            "/api/v1/queues/rows" => get(queues::rows),
            "/api/v1/queues/aggregate" => get(queues::aggregated),
            "/api/v1/queues/devices" => get(queues::devices),
            "/api/openapi.json" => get(described),
            "/metrics" => get(metrics::get),
            "/healthz" => get(health::alive),
            "/readyz" => get(health::ready),
            other => unreachable!("{other} is listed and has no answer"),
        };
        router = router.route(path, method);
    }
    router.fallback(unknown).method_not_allowed_fallback(not_allowed).with_state(state)
}

async fn described(RawQuery(query): RawQuery) -> Result<Response, Problem> {
    Parameters::read(query.as_deref(), &[])?;
    Ok(super::answer::json(openapi().to_string().into_bytes()))
}

async fn unknown(uri: Uri) -> Problem {
    let path = shown(uri.path());
    let paths = ENDPOINTS.map(|endpoint| endpoint.path);
    let problem = |detail| Problem::new(StatusCode::NOT_FOUND, detail);
    match nearest(&path, &paths) {
        Some(nearest) => {
            problem(format!("nothing is served at {path}, the nearest known path is {nearest}"))
                .with("nearest", nearest)
        }
        None => {
            problem(format!("nothing is served at {path}, /api/openapi.json describes what is"))
        }
    }
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    let (method, path) = (shown(method.as_str()), shown(uri.path()));
    Problem::method(format!("method {method} for {path}, expected GET or HEAD"))
}
