//! The listener: connections to sessions.
//!
//! It goes on taking connections whatever those do that it has; the ones that have not shown a
//! good certificate hold no place that another could not take.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use observe::profile::Lengths;
use rustls::pki_types::UnixTime;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{info, warn};
use wire::element::Mapping;

use super::access::{Access, Admitted};
use super::admission::{Handshakes, LineQuota, Place, Room, Sessions};
use super::clock::Clock;
use super::greeting::Greeting;
use super::intake::{Bounds, Intake};
use super::metrics::Metrics;
use super::queues::{self, Devices};
use super::session::{Pace, Pump, stopped};
use super::sink::{Rules, SessionFacts, Sink};
use super::writer::{self, Keeping, Writer};
use crate::config::Collector;

/// How long the listener rests when the system gives no connection, which is when it has no
/// descriptors left.
const REST: Duration = Duration::from_millis(100);

/// How often retention is asked for.
const TENDING: Duration = Duration::from_secs(60);

/// How long what was handed over may take to be kept at the end.
const FINISH: Duration = Duration::from_secs(20);

/// A collector at work.
#[derive(Debug)]
pub struct Running {
    /// Where it listens and who is admitted there; none where only devices are asked.
    intake: Option<(SocketAddr, watch::Sender<Arc<Access>>)>,
    metrics: Arc<Metrics>,
    devices: Devices,
    stop: watch::Sender<bool>,
    listening: tokio::task::JoinHandle<()>,
    clients: JoinSet<()>,
    keeping: Keeping,
}

/// Whether a collector takes connections.
#[derive(Clone, Debug)]
pub struct Listening(AbortHandle);

impl Listening {
    /// Whether it does.
    pub fn is_running(&self) -> bool {
        !self.0.is_finished()
    }
}

/// What every connection needs.
struct Shared {
    access: watch::Receiver<Arc<Access>>,
    stop: watch::Receiver<bool>,
    handshakes: Arc<Handshakes>,
    sessions: Arc<Sessions>,
    room: Arc<Room>,
    pfc_room: Arc<Room>,
    writer: Writer,
    metrics: Arc<Metrics>,
    clock: Clock,
    mapping: Mapping,
    bounds: Bounds,
    pace: Pace,
    handshake_timeout: Duration,
    lines: LineQuota,
    sessions_max: usize,
    sessions_per_peer_max: usize,
}

impl Running {
    /// Listens. What comes in goes to `sink`, from a thread of its own.
    ///
    /// # Errors
    /// A file that cannot be used, or an address that cannot be listened on; in a line.
    pub async fn start(config: &Collector, sink: impl Sink) -> Result<Self, String> {
        let access = config.ipfix.as_ref().map(Access::load).transpose()?;
        queues::check(config)?;
        let listener = match &config.ipfix {
            Some(ipfix) => Some(bound(ipfix.listen).await?),
            None => None,
        };
        let metrics = Arc::new(Metrics::default());
        let waiting_max = config.limits.reports_waiting_max;
        let devices = Devices::new(&config.queues, Clock::new().now_ms());
        let (writer, keeping) = writer::start(sink, waiting_max, metrics.clone())
            .map_err(|error| format!("no thread for the store: {error}"))?;
        let (stop, stopping) = watch::channel(false);
        let clock = Clock::new();
        let clients = queues::start(config, &devices, clock, &writer, &stopping);
        let (intake, listening) = match access.zip(listener) {
            Some((access, (listener, address))) => {
                let (access, admitting) = watch::channel(Arc::new(access));
                let shared =
                    Shared::new(config, admitting, stopping, clock, writer, metrics.clone());
                let listening = tokio::spawn(listening(listener, Arc::new(shared)));
                info!("listens on {address} for IPFIX with mutual TLS 1.3");
                (Some((address, access)), listening)
            }
            None => {
                info!("receives nothing over IPFIX: no [ipfix] in its configuration");
                (None, tokio::spawn(tending(writer, stopping)))
            }
        };
        Ok(Self { intake, metrics, devices, stop, listening, clients, keeping })
    }

    /// Where it listens, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.intake.as_ref().map(|(address, _)| *address)
    }

    /// The devices whose queue telemetry is asked for.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Whether it goes on.
    pub fn intake(&self) -> Listening {
        Listening(self.listening.abort_handle())
    }

    /// What is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Takes certificates, revocation lists and peers anew; a session whose peer is no longer
    /// admitted ends. Everything else holds from the next start on.
    ///
    /// # Errors
    /// A file that cannot be used, in a line; all stays as it was.
    pub fn reload(&self, config: &Collector) -> Result<(), String> {
        let loaded = match (&self.intake, &config.ipfix) {
            (Some((_, access)), Some(ipfix)) => {
                Access::load(ipfix).map(|loaded| Some((access, loaded)))
            }
            (Some(_), None) => Err("no [ipfix] any more, which takes a new start".into()),
            (None, _) => Ok(None),
        };
        let counter = match loaded {
            Ok(_) => &self.metrics.reloads,
            Err(_) => &self.metrics.reloads_refused,
        };
        Metrics::count(counter);
        if let Some((access, loaded)) = loaded? {
            access.send_replace(Arc::new(loaded));
        }
        Ok(())
    }

    /// Ends all sessions, their open epochs being incomplete, and waits until that is kept.
    // SEQ-7.13
    pub async fn stop(self) {
        let Self { stop, listening, mut clients, keeping, .. } = self;
        stop.send_replace(true);
        let kept = tokio::task::spawn_blocking(move || keeping.finish(FINISH));
        _ = listening.await;
        while clients.join_next().await.is_some() {}
        _ = kept.await;
    }
}

impl Shared {
    fn new(
        config: &Collector,
        access: watch::Receiver<Arc<Access>>,
        stop: watch::Receiver<bool>,
        clock: Clock,
        writer: Writer,
        metrics: Arc<Metrics>,
    ) -> Self {
        let limits = &config.limits;
        let size = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            access,
            stop,
            handshakes: Handshakes::new(size(limits.handshakes_max)),
            sessions: Arc::default(),
            room: Room::new(limits.epochs_all_max),
            pfc_room: Room::new(limits.pfc_counters_all_max),
            writer,
            metrics,
            clock,
            mapping: config.elements,
            bounds: Bounds {
                decoder: config.decoder_limits(),
                session: config.session_limits(),
                pfc: config.pfc_rules(),
                malformed_in_a_row_max: limits.malformed_in_a_row_max,
            },
            pace: Pace {
                first_message: Duration::from_secs(limits.first_message_timeout_s),
                inactivity: config.inactivity_timeout(),
                idle: Duration::from_secs(limits.session_idle_timeout_s),
                messages_per_second_max: limits.messages_per_second_max,
            },
            handshake_timeout: Duration::from_secs(limits.handshake_timeout_s),
            lines: LineQuota::default(),
            sessions_max: size(limits.sessions_max),
            sessions_per_peer_max: size(limits.sessions_per_peer_max),
        }
    }
}

impl Shared {
    /// Counts somebody who does not get in, and says why where there are few.
    fn refuse(&self, counter: &AtomicU64, from: SocketAddr, why: &str) {
        Metrics::count(counter);
        if self.lines.takes(self.clock.now_ms() / 1_000) {
            warn!("{from}: refused: {why}");
        }
    }
}

async fn bound(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| format!("ipfix.listen: {listen}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    Ok((listener, address))
}

/// Retention alone, where nothing comes in over IPFIX.
async fn tending(writer: Writer, mut stop: watch::Receiver<bool>) {
    let mut tending = interval(TENDING);
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            _ = tending.tick() => writer.tend(),
        }
    }
}

async fn listening(listener: TcpListener, shared: Arc<Shared>) {
    let mut stop = shared.stop.clone();
    let mut connections = JoinSet::new();
    let mut tending = interval(TENDING);
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    Metrics::count(&shared.metrics.connections);
                    connections.spawn(connection(shared.clone(), stream, from));
                }
                Err(error) => {
                    Metrics::count(&shared.metrics.accept_errors);
                    warn!("no connection can be taken: {error}");
                    sleep(REST).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = tending.tick() => shared.writer.tend(),
        }
    }
    drop(listener);
    drop(shared);
    while connections.join_next().await.is_some() {}
}

async fn connection(shared: Arc<Shared>, stream: TcpStream, from: SocketAddr) {
    let Some(tls) = handshaken(&shared, stream, from).await else { return };
    let chain = tls.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
    let admitted = shared.access.borrow().admit(&chain, UnixTime::now());
    let peer = match admitted {
        Ok(peer) => peer,
        Err(denied) => {
            return shared.refuse(&shared.metrics.peers_denied, from, &denied.to_string());
        }
    };
    let Shared { sessions_max, sessions_per_peer_max, .. } = *shared;
    let place = match shared.sessions.enter(&peer.name, sessions_max, sessions_per_peer_max) {
        Ok(place) => place,
        Err(full) => return shared.refuse(&shared.metrics.sessions_refused, from, &full),
    };
    session(&shared, tls, chain, peer, from, place).await;
}

/// A connection after its handshake, if it gets that far in time.
// SEQ-10.1
async fn handshaken(
    shared: &Shared,
    stream: TcpStream,
    from: SocketAddr,
) -> Option<TlsStream<TcpStream>> {
    let metrics = &shared.metrics;
    let (_place, evicted) = shared.handshakes.enter(from.ip());
    let mut stop = shared.stop.clone();
    tokio::select! {
        biased;
        () = stopped(&mut stop) => None,
        _ = evicted => {
            Metrics::count(&metrics.handshakes_evicted);
            None
        }
        done = timeout(shared.handshake_timeout, handshake(shared, stream)) => match done {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(Failed::Greeting(greeting))) => {
                shared.refuse(&metrics.not_tls, from, &greeting.instead_of("a TLS handshake"));
                None
            }
            Ok(Err(Failed::Tls(error))) => {
                shared.refuse(&metrics.handshakes_failed, from, &format!("TLS handshake: {error}"));
                None
            }
            Err(_) => {
                Metrics::count(&metrics.handshakes_late);
                None
            }
        }
    }
}

enum Failed {
    Greeting(Greeting),
    Tls(io::Error),
}

async fn handshake(shared: &Shared, stream: TcpStream) -> Result<TlsStream<TcpStream>, Failed> {
    let mut first = [0; 64];
    let len = stream.peek(&mut first).await.map_err(Failed::Tls)?;
    let greeting = Greeting::of(&first[..len]);
    if len > 0 && greeting != Greeting::Tls {
        return Err(Failed::Greeting(greeting));
    }
    let tls = shared.access.borrow().tls.clone();
    TlsAcceptor::from(tls).accept(stream).await.map_err(Failed::Tls)
}

async fn session(
    shared: &Shared,
    tls: TlsStream<TcpStream>,
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    peer: Admitted,
    from: SocketAddr,
    _place: Place,
) {
    let facts = SessionFacts {
        peer: peer.name.clone(),
        fingerprint: peer.fingerprint,
        address: from.to_string(),
        opened_ms: shared.clock.now_ms(),
        rules: Rules {
            domains: Some(peer.domains.iter().copied().collect()),
            epochs: shared.bounds.session,
            decoder: shared.bounds.decoder,
            lengths: Lengths::Full,
            mapping: shared.mapping,
            pfc: shared.bounds.pfc,
        },
    };
    let Ok(id) = shared.writer.open(facts).await else { return };
    let mut seed = [0; 8];
    if let Err(error) = getrandom::fill(&mut seed) {
        // The places of epoch ids are then known to those who know this time; nothing else is.
        warn!("no random seed: {error}");
        seed = shared.clock.now_ms().to_ne_bytes();
    }
    let name = format!("session {} of {} from {from}", id.0, peer.name);
    info!("{name}: begins");
    Metrics::count(&shared.metrics.sessions_opened);
    let seed = u64::from_ne_bytes(seed);
    let pump = Pump {
        name,
        intake: Intake::new(id, shared.mapping, peer.domains, shared.bounds, seed),
        chain,
        pace: shared.pace,
        clock: shared.clock,
        writer: shared.writer.clone(),
        metrics: shared.metrics.clone(),
        room: shared.room.clone(),
        pfc_room: shared.pfc_room.clone(),
    };
    pump.run(tls, shared.access.clone(), shared.stop.clone()).await;
    Metrics::count(&shared.metrics.sessions_closed);
}
