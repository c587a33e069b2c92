//! `/metrics` and `/healthz` of an agent, on loopback alone. Whoever asks waits for the thread that
//! meters, as at the control socket: what answers is what does the work.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::get;
use prometheus::TextEncoder;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::manage::Managed;
use super::observer::Command;
use crate::serve::{labelled, local, text};

/// What the name of every number of an agent begins with.
const PREFIX: &str = "rocescope_agent";
/// The label of numbers that are one destination's.
const DESTINATION: &str = "destination";
/// A thread that meters and does not answer for as long as this is in trouble.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes the address; it is answered once there is a runtime.
///
/// # Errors
/// It is taken, or not this machine's; in a line.
pub fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let failed = |error| format!("agent.metrics_listen: {address}: {error}");
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// What there is to read.
pub fn router(commands: Sender<Command>, managed: Option<Arc<Managed>>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .with_state(Asked { commands, managed })
}

/// Who is asked.
#[derive(Clone)]
struct Asked {
    commands: Sender<Command>,
    managed: Option<Arc<Managed>>,
}

async fn metrics(State(Asked { commands, managed }): State<Asked>) -> Response<Body> {
    let served = of_served(managed).await;
    match asked(&commands, Command::Counted).await {
        Some((rows, missing)) => {
            let missing = TextEncoder::new().encode_to_string(missing.as_slice());
            let missing = missing.map_err(|error| error.to_string());
            let text = labelled(PREFIX, DESTINATION, rows);
            local::metrics(text.and_then(|text| Ok(text + &missing? + &served?)))
        }
        None => not_metering(),
    }
}

/// What is counted of RESTCONF and NETCONF, where they are served.
async fn of_served(managed: Option<Arc<Managed>>) -> Result<String, String> {
    let Some(managed) = managed else { return Ok(String::new()) };
    let counted = tokio::task::spawn_blocking(move || managed.counted()).await;
    let rows = counted.map_err(|error| format!("what is served cannot be counted: {error}"))?;
    text(PREFIX, rows)
}

async fn health(State(Asked { commands, .. }): State<Asked>) -> Response<Body> {
    match asked(&commands, Command::Alive).await {
        Some(()) => local::line(StatusCode::OK, "alive"),
        None => not_metering(),
    }
}

async fn asked<T>(
    commands: &Sender<Command>,
    command: impl FnOnce(oneshot::Sender<T>) -> Command,
) -> Option<T> {
    let (sender, answered) = oneshot::channel();
    commands.send(command(sender)).ok()?;
    timeout(PATIENCE, answered).await.ok()?.ok()
}

fn not_metering() -> Response<Body> {
    let line = "the thread that meters does not answer";
    local::line(StatusCode::SERVICE_UNAVAILABLE, line)
}
