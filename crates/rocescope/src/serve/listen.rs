//! The listener: connections to requests, with a bound for each.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Request, Response};
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::CertificateDer;
use store::Reader;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use super::access::Access;
use super::answer::Problem;
use super::gate::{Gate, Names};
use super::metrics::Counts;
use super::paced::Paced;
use super::pool::Pool;
use super::{State, endpoints};
use crate::collector::admission::{Handshake, Handshakes};
use crate::collector::greeting::Greeting;
use crate::collector::queues::Devices;
use crate::collector::session::stopped;
use crate::collector::{Listening, Metrics};
use crate::config::{Collector, Http};

/// How long the listener rests when the system gives no connection.
const REST: Duration = Duration::from_millis(100);

/// How long answers that were begun may take at the end.
const FINISH: Duration = Duration::from_secs(2);

/// An interface that has its address and its files, and answers nobody yet.
#[derive(Debug)]
pub struct Ready {
    config: Collector,
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
}

/// An interface at work.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    access: watch::Sender<Arc<Access>>,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

/// What every connection needs.
struct Shared {
    access: watch::Receiver<Arc<Access>>,
    stop: watch::Receiver<bool>,
    router: TowerToHyperService<Router>,
    names: Names,
    counts: Arc<Counts>,
    /// Places of connections whose reader is not known yet.
    strangers: Arc<Handshakes>,
    /// Places of the others.
    known: Arc<Semaphore>,
    head_octets_max: usize,
    head_timeout: Duration,
    answer_timeout: Duration,
}

impl Ready {
    /// Takes the address.
    ///
    /// # Errors
    /// A file that cannot be used, or an address that cannot be listened on; in a line.
    // SEQ-10.1
    pub async fn bind(config: &Collector) -> Result<Self, String> {
        let access = Access::load(&config.http)?;
        let listen = config.http.listen;
        let of = |error| format!("http.listen: {listen}: {error}");
        let listener = TcpListener::bind(listen).await.map_err(of)?;
        let address = listener.local_addr().map_err(of)?;
        Ok(Self { config: config.clone(), listener, address, access })
    }

    /// Begins to answer.
    pub fn serve(self, metrics: Arc<Metrics>, intake: Listening, devices: Devices) -> Served {
        let Self { config, listener, address, access } = self;
        let (access, admitting) = watch::channel(Arc::new(access));
        let (stop, stopping) = watch::channel(false);
        let shared = Shared::new(config.clone(), metrics, intake, devices, admitting, stopping);
        info!("serves HTTP on {}://{address}/", config.http.scheme());
        let listening = tokio::spawn(listening(listener, Arc::new(shared)));
        Served { address, access, stop, listening }
    }
}

impl Served {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the files of another configuration.
    ///
    /// # Errors
    /// A file that cannot be used, or a configuration that would leave open what listens to other
    /// machines until the next start, whatever address it names for then; in a line.
    // SEQ-10.1, SEQ-10.3
    pub fn load(&self, http: &Http) -> Result<Access, String> {
        let open = http.tls.is_none() || http.readers.is_empty();
        if open && !self.address.ip().to_canonical().is_loopback() {
            return Err(format!(
                "http.listen: {} is reached from other machines until the next start, expected \
                 certificate, key and at least one [[http.reader]] until then",
                self.address
            ));
        }
        // What was closed to others, also to those on this machine, is not opened on the way.
        let lost = {
            let now = self.access.borrow();
            match (now.tls.is_some() && http.tls.is_none(), now.has_readers()) {
                (true, _) => Some("certificate and key"),
                (false, true) if http.readers.is_empty() => Some("at least one [[http.reader]]"),
                _ => None,
            }
        };
        if let Some(lost) = lost {
            return Err(format!(
                "http: {} is served to fewer than this would let in, expected {lost} until the next \
                 start",
                self.address
            ));
        }
        Access::load(http)
    }

    /// From now on these may read; a connection that is open is asked again with every request.
    pub fn admit(&self, access: Access) {
        self.access.send_replace(Arc::new(access));
    }

    /// Ends all connections.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        _ = self.listening.await;
    }
}

impl Shared {
    fn new(
        config: Collector,
        metrics: Arc<Metrics>,
        intake: Listening,
        devices: Devices,
        access: watch::Receiver<Arc<Access>>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let limits = config.limits;
        let size = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        let counts = Arc::new(Counts::default());
        let database = Reader::path_in(&config.store.directory.path);
        let names = Names::of(&config.http);
        let pool = Pool::new(database, &limits, counts.clone());
        let counted = counts.clone();
        let state = State {
            config,
            metrics,
            counts: counted,
            intake,
            devices,
            pool,
            clock: crate::collector::Clock::new(),
        };
        Self {
            access,
            stop,
            router: TowerToHyperService::new(endpoints::router(Arc::new(state))),
            names,
            counts,
            strangers: Handshakes::new(size(limits.http_connections_max)),
            known: Arc::new(Semaphore::new(size(limits.http_connections_max))),
            head_octets_max: size(limits.http_head_octets_max),
            head_timeout: Duration::from_secs(limits.http_head_timeout_s),
            answer_timeout: Duration::from_secs(limits.http_answer_timeout_s),
        }
    }
}

async fn listening(listener: TcpListener, shared: Arc<Shared>) {
    let refused = |error| {
        Counts::count(&shared.counts.accept_errors);
        warn!("HTTP: no connection can be taken: {error}");
    };
    accepting(listener, shared.stop.clone(), refused, |stream, from| {
        Counts::count(&shared.counts.connections);
        connection(shared.clone(), stream, from)
    })
    .await;
}

/// Takes connections until it is told to stop; those that there are may finish then, for a while.
pub(crate) async fn accepting<C: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    refused: impl Fn(std::io::Error),
    connection: impl Fn(TcpStream, SocketAddr) -> C,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    connections.spawn(connection(stream, from));
                }
                Err(error) => {
                    refused(error);
                    sleep(REST).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let ending = async { while connections.join_next().await.is_some() {} };
    if timeout(FINISH, ending).await.is_err() {
        connections.abort_all();
    }
}

/// One connection: a stranger's until a request of it has been let through.
async fn connection(shared: Arc<Shared>, stream: TcpStream, from: SocketAddr) {
    let (place, mut evicted) = shared.strangers.enter(from.ip());
    let place = Arc::new(Mutex::new(Place::Stranger(place)));
    let answering = answering(shared.clone(), stream, place);
    tokio::select! {
        () = answering => {}
        () = taken_away(&mut evicted) => Counts::count(&shared.counts.connections_evicted),
    }
}

/// Ends where the place was given to another; never where it was given back.
pub(crate) async fn taken_away(evicted: &mut oneshot::Receiver<()>) {
    if evicted.await.is_err() {
        pending().await
    }
}

/// What a connection holds.
pub(crate) enum Place {
    /// A place that can be taken away.
    Stranger(#[expect(dead_code, reason = "given back when dropped")] Handshake),
    /// One that cannot.
    Known(#[expect(dead_code, reason = "given back when dropped")] OwnedSemaphorePermit),
}

async fn answering(shared: Arc<Shared>, stream: TcpStream, place: Arc<Mutex<Place>>) {
    // Answers are written whole.
    _ = stream.set_nodelay(true);
    let tls = shared.access.borrow().tls.clone();
    let Some(tls) = tls else {
        return requests(&shared, stream, Vec::new(), place).await;
    };
    match timeout(shared.head_timeout, handshake(tls, stream)).await {
        Ok(Some((stream, chain))) => requests(&shared, stream, chain, place).await,
        Ok(None) | Err(_) => Counts::count(&shared.counts.handshakes_failed),
    }
}

pub(crate) type Tls = tokio_rustls::server::TlsStream<TcpStream>;

/// TLS; one who speaks HTTP without it is told so.
// SEQ-10.1
pub(crate) async fn handshake(
    tls: Arc<rustls::ServerConfig>,
    mut stream: TcpStream,
) -> Option<(Tls, Vec<CertificateDer<'static>>)> {
    let mut first = [0; 16];
    let len = stream.peek(&mut first).await.ok()?;
    if let Greeting::Text(_) = Greeting::of(&first[..len]) {
        // What was not read would end the connection before the answer is taken.
        _ = stream.read(&mut [0; 4_096]).await;
        _ = stream.write_all(NOT_TLS).await;
        return None;
    }
    let stream = TlsAcceptor::from(tls).accept(stream).await.ok()?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
    Some((stream, chain))
}

/// To one who speaks HTTP where TLS is expected.
const NOT_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\
    connection: close\r\n\r\nHTTP without TLS, expected TLS 1.3: https://\n";

async fn requests<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    shared: &Arc<Shared>,
    stream: S,
    chain: Vec<CertificateDer<'static>>,
    place: Arc<Mutex<Place>>,
) {
    let gate = Gate::new(shared.access.clone(), chain, shared.names.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let admitted = gate.admit(&request);
        let shared = shared.clone();
        let place = place.clone();
        async move {
            let admitted = match admitted {
                Ok(()) => Ok(()),
                Err(problem) => {
                    Counts::count(&shared.counts.requests_denied);
                    Err(problem)
                }
            };
            let admitted = admitted.and_then(|()| settle(&shared, &place));
            let response = match admitted {
                Ok(()) => shared.router.call(request).await?,
                Err(problem) => problem.into_response(),
            };
            Ok::<_, Infallible>(finished(&shared, response))
        }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(shared.head_timeout)
            .max_buf_size(shared.head_octets_max)
            .serve_connection(TokioIo::new(Paced::new(stream, shared.answer_timeout)), service)
    );
    let mut stop = shared.stop.clone();
    let done = tokio::select! {
        done = connection.as_mut() => done,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if done.is_err() {
        Counts::count(&shared.counts.connections_broken);
    }
}

impl Place {
    /// A connection whose reader is known now gets a place that nobody takes away; whether there was
    /// one.
    pub(crate) fn settle(place: &Mutex<Self>, known: &Arc<Semaphore>) -> bool {
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Self::Known(_) = *place {
            return true;
        }
        let Ok(permit) = known.clone().try_acquire_owned() else { return false };
        *place = Self::Known(permit);
        true
    }
}

fn settle(shared: &Shared, place: &Mutex<Place>) -> Result<(), Problem> {
    if Place::settle(place, &shared.known) {
        return Ok(());
    }
    Counts::count(&shared.counts.connections_refused);
    Err(Problem::busy("as many connections as there may be, limits.http_connections_max"))
}

/// What every answer has. No header lets a page of another origin read it.
fn finished(shared: &Shared, mut response: Response<Body>) -> Response<Body> {
    shared.counts.answered(response.status());
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
