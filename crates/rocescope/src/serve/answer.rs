//! Answers: JSON, text, and problems (RFC 9457).

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::config::printable;

pub(super) use crate::dump::number;

/// Characters of what somebody sent that a problem repeats.
const SHOWN_MAX: usize = 80;

/// Why there is no other answer.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    /// `detail`, and what a program can use beside it.
    members: Map<String, Value>,
    header: Option<(&'static str, &'static str)>,
}

impl Problem {
    /// In a sentence: what was found, and what was expected.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let mut members = Map::new();
        members.insert("detail".into(), detail.into().into());
        Self { status, members, header: None }
    }

    /// With one more member.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.into(), value.into());
        self
    }

    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    /// A parameter with a value that it cannot have.
    pub fn parameter(name: &str, value: &str, expected: &str) -> Self {
        let value = shown(value);
        Self::new(StatusCode::BAD_REQUEST, format!("{name}={value}, expected {expected}"))
            .with("parameter", name)
            .with("value", value)
            .with("expected", expected)
    }

    /// Not now; perhaps in a second.
    pub fn busy(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).header("retry-after", "1")
    }

    /// Nobody is known by what was shown.
    pub fn unknown_reader(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
            .header("www-authenticate", "Bearer realm=\"rocescope\"")
    }

    /// Another method than those that only read.
    pub fn method(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, detail).header("allow", "GET, HEAD")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, members, header } = self;
        let mut body = Map::new();
        body.insert("type".into(), "about:blank".into());
        body.insert("title".into(), status.canonical_reason().unwrap_or("Problem").into());
        body.insert("status".into(), status.as_u16().into());
        body.extend(members);
        let body = Value::Object(body).to_string().into_bytes();
        let mut response = answer(status, "application/problem+json", body);
        if let Some((name, value)) = header {
            let (name, value) = (HeaderName::from_static(name), HeaderValue::from_static(value));
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// JSON as it stands.
pub(super) fn json(body: Vec<u8>) -> Response {
    answer(StatusCode::OK, "application/json", body)
}

/// A line of text.
pub(super) fn line(status: StatusCode, text: &str) -> Response {
    answer(status, "text/plain; charset=utf-8", format!("{}\n", printable(text)).into_bytes())
}

/// Any answer.
pub(super) fn answer(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// What somebody sent, as far as it is repeated to them.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_MAX).collect();
    let more = if short.len() < text.len() { "..." } else { "" };
    printable(&short) + more
}
