//! RESTCONF over HTTPS: TLS 1.3, users known by certificate or bearer token, a bound for each thing
//! that a peer could have too much of.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use manage::error::{OperationError, Tag};
use manage::operation::{Caller, Transport, View};
use manage::restconf::{self, Service};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tracing::warn;

use super::events::Answer;
use super::{Busy, Managed, Way};
use crate::agent::size;
use crate::collector::admission::Handshakes;
use crate::collector::session::stopped;
use crate::config::{Manage, Proof, printable};
use crate::serve::access::{Denied, Verifier, who};
use crate::serve::gate::token;
use crate::serve::listen::{Place, Tls, accepting, handshake, taken_away};
use crate::serve::paced::Paced;

/// Octets of a name under which somebody reaches the agent.
const HOST_OCTETS_MAX: usize = 300;
/// Where the streams of subscriptions are.
const STREAMS: &str = "/restconf/subscriptions/";

/// An address that is taken, with what is shown at it.
pub(super) struct Https {
    pub listener: std::net::TcpListener,
    pub address: SocketAddr,
    pub tls: Arc<ServerConfig>,
    pub verifier: Option<Verifier>,
}

impl Https {
    /// Where it is, for those who do not say how they reach it.
    pub fn base(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// What every connection needs.
struct Shared {
    managed: Arc<Managed>,
    manage: Manage,
    tls: Arc<ServerConfig>,
    verifier: Option<Verifier>,
    stop: watch::Receiver<bool>,
    /// Places of connections whose user is not known yet.
    strangers: Arc<Handshakes>,
    /// Places of the others.
    known: Arc<Semaphore>,
}

/// Answers until it is told to stop.
pub(super) async fn serve(
    https: Https,
    manage: Manage,
    managed: Arc<Managed>,
    stop: watch::Receiver<bool>,
) {
    let Https { listener, address, tls, verifier } = https;
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return warn!("manage.restconf.listen: {address}: {error}"),
    };
    tracing::info!("serves RESTCONF on https://{address}{}", restconf::ROOT);
    let limits = manage.limits;
    let places = |max| size(max).min(Semaphore::MAX_PERMITS);
    let shared = Arc::new(Shared {
        managed,
        tls,
        verifier,
        stop: stop.clone(),
        strangers: Handshakes::new(size(limits.connections_max)),
        known: Arc::new(Semaphore::new(places(limits.connections_max))),
        manage,
    });
    let refused = |error| warn!("RESTCONF: no connection can be taken: {error}");
    accepting(listener, stop, refused, |stream, from| connection(shared.clone(), stream, from))
        .await;
}

/// One connection: a stranger's until a request of it has been let through.
async fn connection(shared: Arc<Shared>, stream: TcpStream, from: SocketAddr) {
    shared.managed.counts.connected(Way::Restconf);
    let (place, mut evicted) = shared.strangers.enter(from.ip());
    let place = Arc::new(Mutex::new(Place::Stranger(place)));
    let answering = async {
        _ = stream.set_nodelay(true);
        let within = Duration::from_secs(shared.manage.limits.request_timeout_s);
        let made = timeout(within, handshake(shared.tls.clone(), stream)).await;
        if let Ok(Some((stream, chain))) = made {
            requests(&shared, stream, from, chain.into(), place).await;
        }
    };
    tokio::select! {
        () = answering => {}
        () = taken_away(&mut evicted) => {}
    }
}

async fn requests(
    shared: &Arc<Shared>,
    stream: Tls,
    from: SocketAddr,
    chain: Arc<[CertificateDer<'static>]>,
    place: Arc<Mutex<Place>>,
) {
    let limits = shared.manage.limits;
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, chain, place) = (shared.clone(), chain.clone(), place.clone());
        async move {
            let answer = answered(&shared, from, &chain, &place, request).await;
            shared.managed.counts.answered(answer.status().as_u16());
            Ok::<_, Infallible>(answer)
        }
    });
    let stream = Paced::new(stream, Duration::from_secs(limits.answer_timeout_s));
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(limits.request_timeout_s))
            .max_buf_size(size(limits.head_octets_max))
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut stop = shared.stop.clone();
    let done = tokio::select! {
        done = connection.as_mut() => done,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = done {
        tracing::debug!("RESTCONF: {error}");
    }
}

async fn answered(
    shared: &Arc<Shared>,
    from: SocketAddr,
    chain: &[CertificateDer<'static>],
    place: &Mutex<Place>,
    request: Request<Incoming>,
) -> Response<Answer> {
    let (head, body) = request.into_parts();
    let accept = joined(&head.headers, &ACCEPT);
    let content_type = joined(&head.headers, &CONTENT_TYPE);
    let schema = shared.managed.schema();
    let refused = |status: StatusCode, tag: Tag, what: String| {
        let error = OperationError::protocol(tag, what);
        let sort = content_type.as_deref();
        sent(restconf::errors(schema, accept.as_deref(), sort, status.as_u16(), &[error]))
    };
    let hosts = head.headers.get_all(HOST).iter().count();
    if head.version == Version::HTTP_11 && hosts != 1 {
        let what = format!("{hosts} fields Host, expected one (RFC 9112, section 3.2)");
        return refused(StatusCode::BAD_REQUEST, Tag::MalformedMessage, what);
    }
    let user = match shared.user(chain, &head.headers) {
        Ok(user) => user,
        Err(why) => {
            shared.managed.refused(Way::Restconf, from, &why);
            let mut response = refused(StatusCode::UNAUTHORIZED, Tag::AccessDenied, why);
            let challenge = HeaderValue::from_static("Bearer realm=\"rocescope\"");
            response.headers_mut().insert("www-authenticate", challenge);
            return response;
        }
    };
    if !Place::settle(place, &shared.known) {
        let what = "as many connections as there may be, manage.connections_max".into();
        return refused(StatusCode::SERVICE_UNAVAILABLE, Tag::ResourceDenied, what);
    }
    if let Some(id) = head.uri.path().strip_prefix(STREAMS) {
        if head.method != Method::GET {
            let what = format!("{}, expected GET: a stream is only read", head.method);
            let mut response =
                refused(StatusCode::METHOD_NOT_ALLOWED, Tag::OperationNotSupported, what);
            response.headers_mut().insert("allow", HeaderValue::from_static("GET"));
            return response;
        }
        if let Some(query) = head.uri.query() {
            let what = format!("parameters {:?}, expected none here", printable(query));
            return refused(StatusCode::BAD_REQUEST, Tag::InvalidValue, what);
        }
        if !accept.as_deref().is_none_or(takes_events) {
            let what = "Accept without text/event-stream, expected it".into();
            return refused(StatusCode::NOT_ACCEPTABLE, Tag::InvalidValue, what);
        }
        let found = id.parse().map_err(|_| Busy::Absent);
        let attached = match found {
            Ok(id) => shared.managed.attach(id, &user).await,
            Err(absent) => Err(absent),
        };
        return match attached {
            Ok(reader) => streamed(Answer::events(reader, shared.stop.clone())),
            Err(Busy::Absent) => {
                let what = format!("subscription {:?}, which is not there", printable(id));
                refused(StatusCode::NOT_FOUND, Tag::InvalidValue, what)
            }
            Err(Busy::Read) => {
                let what = format!("subscription {:?}, which is being read", printable(id));
                refused(StatusCode::CONFLICT, Tag::InUse, what)
            }
        };
    }
    let limits = shared.manage.limits;
    let within = Duration::from_secs(limits.request_timeout_s);
    let octets_max = size(limits.body_octets_max);
    let body = match timeout(within, whole(body, octets_max)).await {
        Ok(Ok(Some(body))) => body,
        Ok(Ok(None)) => {
            let what = format!("a body of more than {octets_max} octets, manage.body_octets_max");
            return refused(StatusCode::PAYLOAD_TOO_LARGE, Tag::TooBig, what);
        }
        Ok(Err(error)) => {
            let what = format!("a body that is not as HTTP has it: {error}");
            return refused(StatusCode::BAD_REQUEST, Tag::MalformedMessage, what);
        }
        Err(_) => {
            let what = "a body that did not come whole in time".into();
            return refused(StatusCode::REQUEST_TIMEOUT, Tag::OperationFailed, what);
        }
    };
    let headers = head.headers;
    let base = shared.base(&headers);
    let asked = Asked {
        user,
        base,
        method: head.method,
        path: head.uri.path().into(),
        query: head.uri.query().map(Into::into),
        content_type: joined(&headers, &CONTENT_TYPE),
        if_none_match: joined(&headers, &IF_NONE_MATCH),
        if_modified_since: joined(&headers, &IF_MODIFIED_SINCE),
        accept: accept.clone(),
        body,
    };
    let Some(_permit) = shared.managed.answers().await else {
        return Response::new(Answer::Whole(None));
    };
    let managed = shared.managed.clone();
    match tokio::task::spawn_blocking(move || asked.answer(&managed)).await {
        Ok(response) => sent(response),
        Err(_) => {
            let what = "the answer could not be made".into();
            refused(StatusCode::INTERNAL_SERVER_ERROR, Tag::OperationFailed, what)
        }
    }
}

/// A request that is whole.
struct Asked {
    user: String,
    base: String,
    method: Method,
    path: String,
    query: Option<String>,
    accept: Option<String>,
    content_type: Option<String>,
    if_none_match: Option<String>,
    if_modified_since: Option<String>,
    body: Vec<u8>,
}

impl Asked {
    fn answer(&self, managed: &Managed) -> restconf::Response {
        let policy = managed.policy();
        let access = policy.access(&self.user);
        let datastore = managed.at(&self.base);
        let caller = Caller { user: self.user.as_str().into(), transport: Transport::Restconf };
        let service = Service {
            view: View { schema: managed.schema(), datastore: &datastore, access: &access },
            caller: &caller,
            operations: managed,
            base: &self.base,
            modified: managed.modified(),
            now: managed.now().wall,
        };
        let request = restconf::Request {
            method: self.method.as_str(),
            path: &self.path,
            query: self.query.as_deref(),
            accept: self.accept.as_deref(),
            content_type: self.content_type.as_deref(),
            if_none_match: self.if_none_match.as_deref(),
            if_modified_since: self.if_modified_since.as_deref(),
            body: &self.body,
        };
        let response = restconf::handle(&service, &request);
        if response.status == 403 {
            managed.denied(1);
        }
        response
    }
}

impl Shared {
    /// Who asks; the first login of the configuration that fits decides.
    fn user(
        &self,
        chain: &[CertificateDer<'static>],
        headers: &HeaderMap,
    ) -> Result<String, String> {
        let token = token(headers)?;
        let known = || {
            self.manage.logins.iter().filter_map(|login| match &login.proof {
                Proof::Https(identity) => Some((identity, &login.user)),
                Proof::SshKeys(_) => None,
            })
        };
        let found = who(known, self.verifier.as_ref(), chain, token, UnixTime::now());
        match found.as_deref() {
            Ok([user, ..]) => Ok((*user).clone()),
            Ok([]) | Err(Denied::Unlisted) => {
                Err("a client certificate that no [[manage.login]] has".into())
            }
            Err(Denied::Nothing) => Err("neither a bearer token nor a client certificate, \
                                         expected one of a [[manage.login]]"
                .into()),
            Err(Denied::Token) => Err("a bearer token that no [[manage.login]] has".into()),
            Err(Denied::Certificate(problem)) => {
                Err(format!("a client certificate that is not good: {}", printable(problem)))
            }
        }
    }

    /// Where the user reaches this agent.
    fn base(&self, headers: &HeaderMap) -> String {
        let plain = |host: &&str| {
            let good = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
            (1..=HOST_OCTETS_MAX).contains(&host.len()) && host.bytes().all(good)
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).filter(plain);
        host.map_or_else(|| self.managed.base().into(), |host| format!("https://{host}"))
    }
}

/// All lines of a header, as one.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<_> =
        headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Whether an `Accept` takes a stream of events.
fn takes_events(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let media = range.split(';').next().unwrap_or("").trim();
        ["text/event-stream", "text/*", "*/*"].iter().any(|one| media.eq_ignore_ascii_case(one))
    })
}

/// A body; none where it is larger.
async fn whole(mut body: Incoming, octets_max: usize) -> Result<Option<Vec<u8>>, hyper::Error> {
    let mut octets = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame?.into_data() else { continue };
        if octets.len().saturating_add(data.len()) > octets_max {
            return Ok(None);
        }
        octets.extend_from_slice(&data);
    }
    Ok(Some(octets))
}

fn sent(response: restconf::Response) -> Response<Answer> {
    let mut out = Response::new(Answer::whole(response.body));
    *out.status_mut() =
        StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in response.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            out.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    out.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    out
}

fn streamed(events: Answer) -> Response<Answer> {
    let mut out = Response::new(events);
    let headers = out.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    out
}
