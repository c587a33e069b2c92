//! `/metrics` and `/healthz` of an agent, on loopback alone. Whoever asks waits for the thread that
//! meters, as at the control socket: what answers is what does the work.

use std::net::{SocketAddr, TcpListener};
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

use super::observer::Command;
use crate::serve::{labelled, local};

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
pub fn router(commands: Sender<Command>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .with_state(commands)
}

async fn metrics(State(commands): State<Sender<Command>>) -> Response<Body> {
    match asked(&commands, Command::Counted).await {
        Some((rows, missing)) => {
            let missing = TextEncoder::new().encode_to_string(missing.as_slice());
            let missing = missing.map_err(|error| error.to_string());
            let text = labelled(PREFIX, DESTINATION, rows);
            local::metrics(text.and_then(|text| Ok(text + &missing?)))
        }
        None => not_metering(),
    }
}

async fn health(State(commands): State<Sender<Command>>) -> Response<Body> {
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
