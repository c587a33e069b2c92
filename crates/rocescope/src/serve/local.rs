//! A small interface for this machine alone: a few cheap answers, the same bounds as the
//! collector's. What is served on loopback is asked for by a name of loopback, so that no page of
//! somebody else's reads it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Request, Response, StatusCode, Uri};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::answer::{Problem, answer, shown};
use super::gate::{Names, named};
use super::metrics::KIND;
use super::paced::Paced;

/// How long the listener rests when the system gives no connection.
const REST: Duration = Duration::from_millis(100);

/// What one reader may take of an interface.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at one time; more wait.
    pub connections_max: usize,
    /// Octets of a request.
    pub head_octets_max: usize,
    /// For a request to come, and for its answer to be taken, each.
    pub within: Duration,
}

/// Answers for as long as the program runs, a request a connection.
// SEQ-10.3
pub async fn serve(listener: TcpListener, router: Router, bounds: Bounds) {
    let router = router.fallback(unknown).method_not_allowed_fallback(not_allowed);
    let router = TowerToHyperService::new(router);
    let permits = Arc::new(Semaphore::new(bounds.connections_max.min(Semaphore::MAX_PERMITS)));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!("HTTP: no connection can be taken: {error}");
                sleep(REST).await;
                continue;
            }
        };
        let router = router.clone();
        tokio::spawn(async move {
            // Its request, the work for it, and its answer.
            _ = timeout(3 * bounds.within, connection(stream, router, bounds)).await;
            drop(permit);
        });
    }
}

async fn connection(stream: TcpStream, router: TowerToHyperService<Router>, bounds: Bounds) {
    let names = Names::of_this_machine();
    let service = service_fn(move |request: Request<Incoming>| {
        let admitted = named(&names, request.headers(), request.uri());
        let router = router.clone();
        async move {
            let response = match admitted {
                Ok(()) => router.call(request).await?,
                Err(problem) => problem.into_response(),
            };
            Ok::<_, Infallible>(finished(response))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.within)
        .max_buf_size(bounds.head_octets_max)
        .keep_alive(false)
        .serve_connection(TokioIo::new(Paced::new(stream, bounds.within)), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("HTTP: {error}");
    }
}

fn finished(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn unknown(uri: Uri) -> Problem {
    let detail = format!("{}, expected /metrics or /healthz", shown(uri.path()));
    Problem::new(StatusCode::NOT_FOUND, detail)
}

async fn not_allowed() -> Problem {
    Problem::method("a method that changes something, expected GET or HEAD")
}

/// Metrics as an answer.
pub fn metrics(text: Result<String, String>) -> Response<Body> {
    match text {
        Ok(text) => answer(StatusCode::OK, KIND, text.into_bytes()),
        Err(problem) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, problem).into_response(),
    }
}

/// A line as an answer.
pub fn line(status: StatusCode, text: &str) -> Response<Body> {
    super::answer::line(status, text)
}
