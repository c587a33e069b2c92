//! HTTP/1.1 over one TLS connection to a device: requests one after the other, with a bound and a
//! deadline for each answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, USER_AGENT,
};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::restconf::{EVENTS, JSON};
use crate::agent::tls::{self, Tls};
use crate::config::{QueueClient, QueueDevice};

/// Octets of the head of an answer.
const HEAD_OCTETS_MAX: usize = 64 << 10;

/// Header lines of an answer.
const HEADERS_MAX: usize = 100;

/// Octets of a token.
const TOKEN_OCTETS_MAX: u64 = 64 << 10;

/// How a device is reached.
#[derive(Clone, Debug)]
pub struct Reach {
    host: String,
    port: u16,
    /// Host and port, as they stand in a URL.
    pub authority: String,
    tls: Tls,
    token: Option<HeaderValue>,
    /// For a connection, and for an answer.
    pub within: Duration,
    /// Of the body of an answer.
    pub octets_max: usize,
}

/// A connection.
#[derive(Debug)]
pub struct Http {
    sender: http1::SendRequest<Body>,
    carrying: JoinHandle<()>,
    reach: Arc<Reach>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its entity tag.
    pub etag: Option<HeaderValue>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The target.
    pub target: &'a str,
    /// The media type that is expected.
    pub accept: &'static str,
    /// The answer that is there already.
    pub etag: Option<&'a HeaderValue>,
    /// What is posted; nothing is asked for.
    pub body: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// Asks for a target.
    pub const fn get(target: &'a str, accept: &'static str) -> Self {
        Self { target, accept, etag: None, body: None }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.carrying.abort();
    }
}

impl Reach {
    /// Reads the files of a device's configuration.
    ///
    /// # Errors
    /// In a line, with the file that is at fault.
    // QUE-sec.1
    pub fn load(device: &QueueDevice, within: Duration, octets_max: usize) -> Result<Self, String> {
        let (client, token) = match &device.client {
            QueueClient::Certificate { certificate, private_key } => {
                (Some((certificate, private_key)), None)
            }
            QueueClient::Token(file) => {
                let of = |problem: &str| format!("{file}: {problem}");
                let token = read_token(&file.path).map_err(|error| of(&error.to_string()))?;
                let token = token.trim();
                if token.is_empty() {
                    return Err(of("empty, expected a token"));
                }
                let header = HeaderValue::try_from(format!("Bearer {token}"));
                let mut header = header.map_err(|_| of("no token, expected one line of text"))?;
                header.set_sensitive(true);
                (None, Some(header))
            }
        };
        let mut tls = tls::load(&device.server, &device.host, client)?;
        let mut config = ClientConfig::clone(&tls.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        tls.config = Arc::new(config);
        Ok(Self {
            host: device.host.clone(),
            port: device.port,
            authority: device.host_and_port(),
            tls,
            token,
            within,
            octets_max,
        })
    }
}

fn read_token(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(TOKEN_OCTETS_MAX).read_to_string(&mut text)?;
    Ok(text)
}

impl Http {
    /// Connects.
    ///
    /// # Errors
    /// In a few words.
    pub async fn connect(reach: &Arc<Reach>) -> Result<Self, String> {
        let within = reach.within;
        let connecting = async {
            let tcp = TcpStream::connect((&*reach.host, reach.port))
                .await
                .map_err(|error| format!("no connection: {error}"))?;
            _ = tcp.set_nodelay(true);
            TlsConnector::from(reach.tls.config.clone())
                .connect(reach.tls.name.clone(), tcp)
                .await
                .map_err(|error| format!("TLS: {error}"))
        };
        let stream = timeout(within, connecting)
            .await
            .map_err(|_| format!("no connection within {} s", within.as_secs()))??;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_OCTETS_MAX)
            .max_headers(HEADERS_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| format!("no HTTP: {error}"))?;
        let carrying = tokio::spawn(async move {
            // Who waits for an answer is told.
            _ = connection.await;
        });
        Ok(Self { sender, carrying, reach: reach.clone() })
    }

    /// Whether another request can be sent.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    fn request(&self, asked: &Asked<'_>) -> Result<Request<Body>, String> {
        let method = if asked.body.is_some() { Method::POST } else { Method::GET };
        let mut request = Request::builder()
            .method(method)
            .uri(asked.target)
            .header(HOST, &self.reach.authority)
            .header(USER_AGENT, concat!("rocescope/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, asked.accept);
        if let Some(token) = &self.reach.token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(etag) = asked.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let body = match asked.body {
            Some(text) => {
                request = request.header(CONTENT_TYPE, JSON);
                Body::from(text.to_owned())
            }
            None => Body::empty(),
        };
        request.body(body).map_err(|error| format!("{}: {error}", asked.target))
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    /// In a few words; nothing more can be asked over this connection.
    pub async fn ask(&mut self, asked: Asked<'_>) -> Result<Answer, String> {
        let request = self.request(&asked)?;
        let (within, octets_max) = (self.reach.within, self.reach.octets_max);
        let answering = async {
            self.sender.ready().await.map_err(broken)?;
            let answer = self.sender.send_request(request).await.map_err(broken)?;
            let (head, mut incoming) = answer.into_parts();
            let mut body = Vec::new();
            while let Some(data) = next(&mut incoming).await? {
                if body.len() + data.len() > octets_max {
                    return Err(format!(
                        "an answer of more than {octets_max} octets, limits.queue_octets_max"
                    ));
                }
                body.extend_from_slice(&data);
            }
            let etag = head.headers.get(ETAG).cloned();
            Ok(Answer { status: head.status, etag, body })
        };
        timeout(within, answering)
            .await
            .map_err(|_| format!("no answer within {} s", within.as_secs()))?
            .map_err(|problem| format!("{}: {problem}", asked.target))
    }

    /// Asks for a stream that goes on.
    ///
    /// # Errors
    /// In a few words: it does not begin.
    pub async fn stream(mut self, target: &str) -> Result<Stream, String> {
        let request = self.request(&Asked::get(target, EVENTS))?;
        let deadline = tokio::time::Instant::now() + self.reach.within;
        let late = |_| format!("{target}: no answer within {} s", self.reach.within.as_secs());
        let answer = timeout_at(deadline, self.sender.send_request(request))
            .await
            .map_err(late)?
            .map_err(broken)?;
        let status = answer.status();
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if status != StatusCode::OK || !kind.is_some_and(|kind| kind.starts_with(EVENTS)) {
            let kind = super::restconf::said(kind.unwrap_or("no media type"));
            return Err(format!(
                "{target}: status {}, {kind}, expected 200 and {EVENTS}",
                status.as_u16()
            ));
        }
        Ok(Stream { incoming: answer.into_body(), _connection: self })
    }
}

/// An answer that goes on.
#[derive(Debug)]
pub struct Stream {
    incoming: Incoming,
    _connection: Http,
}

impl Stream {
    /// What comes next; none at the end. Nothing is lost where it is not waited for to the end.
    ///
    /// # Errors
    /// In a few words: it broke off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        next(&mut self.incoming).await
    }
}

async fn next(incoming: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        match poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context)).await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                // Trailers say nothing.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(broken(error)),
        }
    }
}

/// The error with what lies behind it.
fn broken(error: hyper::Error) -> String {
    let mut line = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        line += &format!(": {error}");
        source = error.source();
    }
    line
}
