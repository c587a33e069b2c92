//! The dashboard: one page for a browser, which asks the interface that it came from and shows what
//! that answers. It has no number and no word about a measurement of its own.
//!
//! Where readers show a token, a browser has none to show; there it needs a client certificate.

use axum::extract::RawQuery;
use axum::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use super::answer::{Problem, answer};
use super::parameters::Parameters;

/// The page runs its own script alone, and asks nobody but the collector.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn page(query: RawQuery) -> Result<Response, Problem> {
    file(&query, "text/html; charset=utf-8", include_str!("dashboard/dashboard.html"))
}

pub(super) async fn script(query: RawQuery) -> Result<Response, Problem> {
    file(&query, "text/javascript; charset=utf-8", include_str!("dashboard/dashboard.js"))
}

pub(super) async fn style(query: RawQuery) -> Result<Response, Problem> {
    file(&query, "text/css; charset=utf-8", include_str!("dashboard/dashboard.css"))
}

// SEQ-10.3
fn file(query: &RawQuery, kind: &'static str, text: &'static str) -> Result<Response, Problem> {
    Parameters::read(query.0.as_deref(), &[])?;
    let mut response = answer(StatusCode::OK, kind, text.as_bytes().to_vec());
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}
