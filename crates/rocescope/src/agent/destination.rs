//! The way to one collector: connect, hand octets over, and connect again when the way is cut,
//! each time later than the time before and never in step with others.
//!
//! What the octets mean is [`super::session`]'s business; a connection that is made is told to the
//! observer, which answers with a fresh Transport Session.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender as CommandSender;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::observer::Command;
use super::session::HandedOver;
use super::tls::Tls;
use crate::config::{AgentLimits, Export};

/// The least time between two attempts.
const RECONNECT_MIN: Duration = Duration::from_secs(1);
/// A session that lasted for this long was a good one: the next attempt comes soon.
const GOOD_AFTER: Duration = Duration::from_secs(30);
/// A collector that refuses a certificate has closed the connection by then.
const ACCEPTED_AFTER: Duration = Duration::from_secs(1);
/// Octets of one piece that a session hands over, about: the queue is counted in these.
const PIECE_OCTETS: u64 = 1 << 16;
/// Octets that a collector sends back mean nothing, and so many of them are too many.
const UNASKED_OCTETS_MAX: u64 = 1 << 20;

/// What is counted of a destination over all its connections.
#[derive(Debug, Default)]
pub struct DestinationCounts {
    /// Attempts to connect.
    pub attempts: AtomicU64,
    /// Attempts that came to nothing.
    pub failures: AtomicU64,
    /// Sessions that ended because the collector took nothing any more.
    pub stalled: AtomicU64,
    /// Octets that the network has taken.
    pub sent_octets: AtomicU64,
    /// Reports that it has taken.
    pub sent_reports: AtomicU64,
    /// The final ones among them.
    pub sent_finals: AtomicU64,
}

impl DestinationCounts {
    /// What the network has taken.
    pub fn handed_over(&self) -> HandedOver {
        HandedOver {
            reports: self.sent_reports.load(Ordering::Relaxed),
            finals: self.sent_finals.load(Ordering::Relaxed),
        }
    }

    fn sent(&self, piece: &Piece) {
        let octets = u64::try_from(piece.octets.len()).unwrap_or(u64::MAX);
        self.sent_octets.fetch_add(octets, Ordering::Relaxed);
        self.sent_reports.fetch_add(piece.holds.reports, Ordering::Relaxed);
        self.sent_finals.fetch_add(piece.holds.finals, Ordering::Relaxed);
    }
}

/// Whole messages on their way.
#[derive(Debug)]
pub struct Piece {
    /// The messages.
    pub octets: Vec<u8>,
    /// What of reports is in them.
    pub holds: HandedOver,
}

/// A destination and how to get there.
pub struct Destination {
    /// Its place among the destinations.
    pub index: usize,
    /// Its configuration.
    pub export: Export,
    /// TLS, or none on this machine.
    pub tls: Option<Tls>,
    /// Bounds.
    pub limits: AgentLimits,
    /// Counters.
    pub counts: Arc<DestinationCounts>,
}

/// Keeps a destination connected until `stop` says otherwise.
pub async fn keep(
    destination: Destination,
    commands: CommandSender<Command>,
    mut stop: watch::Receiver<bool>,
) {
    let name = format!("{} port {}", destination.export.host, destination.export.port);
    let reconnect_max = Duration::from_secs(destination.limits.reconnect_max_s);
    let mut wait = RECONNECT_MIN;
    while !*stop.borrow() {
        let began = tokio::time::Instant::now();
        match destination.session(&commands, &mut stop).await {
            Ok(()) => tracing::info!("{name}: the session has ended"),
            Err(error) => tracing::warn!("{name}: {error}"),
        }
        if began.elapsed() >= GOOD_AFTER {
            wait = RECONNECT_MIN;
        }
        tokio::select! {
            () = sleep(jittered(wait)) => {}
            _ = stop.changed() => {}
        }
        wait = (wait * 2).min(reconnect_max).max(RECONNECT_MIN);
    }
}

/// Between a half and the whole of it, by chance: agents that were cut off together do not come
/// back together.
fn jittered(wait: Duration) -> Duration {
    let mut octets = [0; 4];
    // Without randomness there is no jitter, which is no reason not to connect.
    _ = getrandom::fill(&mut octets);
    wait / 2 + wait.mul_f64(f64::from(u32::from_ne_bytes(octets)) / f64::from(u32::MAX) / 2.0)
}

impl Destination {
    async fn session(
        &self,
        commands: &CommandSender<Command>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), String> {
        self.counts.attempts.fetch_add(1, Ordering::Relaxed);
        let limit = Duration::from_secs(self.limits.connect_timeout_s);
        let connected = tokio::select! {
            connected = timeout(limit, self.connect()) => connected,
            _ = stop.changed() => return Ok(()),
        };
        let stream = connected
            .unwrap_or_else(|_| Err(format!("no connection within {} s", limit.as_secs())))
            .inspect_err(|_| _ = self.counts.failures.fetch_add(1, Ordering::Relaxed))?;
        let max = usize::try_from(self.limits.octets_queued_max / PIECE_OCTETS);
        let (pipe, pieces) = mpsc::channel(max.unwrap_or(usize::MAX).clamp(1, 1 << 14));
        if commands.send(Command::Connected { destination: self.index, pipe }).is_err() {
            return Ok(());
        }
        self.pump(stream, pieces).await
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        let at = (self.export.host.as_str(), self.export.port);
        let tcp = TcpStream::connect(at).await.map_err(|error| error.to_string())?;
        // Pieces are whole messages; they need not wait for others.
        tcp.set_nodelay(true).map_err(|error| error.to_string())?;
        let Some(tls) = &self.tls else {
            // SEQ-10.1: whatever the name was resolved to.
            let peer = tcp.peer_addr().map_err(|error| error.to_string())?;
            return match peer.ip().is_loopback() {
                true => Ok(Box::new(tcp)),
                false => Err(format!("{peer} is not this machine: nothing is sent without TLS")),
            };
        };
        let stream = TlsConnector::from(tls.config.clone()).connect(tls.name.clone(), tcp).await;
        Ok(Box::new(stream.map_err(|error| format!("TLS: {error}"))?))
    }

    /// Hands octets over until there are no more, the peer closes, or nothing is taken any more.
    /// TLS 1.3 servers judge the client's certificate after the client has begun: what they say
    /// then comes as an error of reading.
    async fn pump(
        &self,
        stream: Box<dyn Stream>,
        mut pieces: mpsc::Receiver<Piece>,
    ) -> Result<(), String> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut peer = std::pin::pin!(until_closed(&mut reader));
        let stalled_after = Duration::from_secs(self.limits.stalled_timeout_s);
        let mut accepted = std::pin::pin!(sleep(ACCEPTED_AFTER));
        let mut told = false;
        loop {
            let piece = tokio::select! {
                end = &mut peer => return Err(said(end)),
                piece = pieces.recv() => piece,
                // Nothing says so but that the connection goes on.
                () = &mut accepted, if !told => {
                    told = true;
                    tracing::info!("{} port {}: connected", self.export.host, self.export.port);
                    continue;
                }
            };
            let Some(piece) = piece else { break };
            tokio::select! {
                biased;
                written = timeout(stalled_after, async {
                    writer.write_all(&piece.octets).await?;
                    writer.flush().await
                }) => match written {
                    Ok(Ok(())) => self.counts.sent(&piece),
                    // Why, the peer may have said before it closed.
                    Ok(Err(error)) => {
                        let said_by = timeout(RECONNECT_MIN, &mut peer).await;
                        return Err(said_by.map_or_else(|_| error.to_string(), said));
                    }
                    Err(_) => {
                        self.counts.stalled.fetch_add(1, Ordering::Relaxed);
                        let seconds = stalled_after.as_secs();
                        return Err(format!("took nothing for {seconds} s, given up"));
                    }
                },
                end = &mut peer => return Err(said(end)),
            }
        }
        // The end: TLS says that nothing is missing behind it.
        let closed = timeout(stalled_after, writer.shutdown()).await;
        closed
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|e| e.to_string())?;
        // Until the collector has read it; it need not answer.
        _ = timeout(RECONNECT_MIN, peer).await;
        Ok(())
    }
}

fn said(end: io::Result<()>) -> String {
    match end {
        Ok(()) => "closed by the collector".into(),
        Err(error) => format!("closed: {error}"),
    }
}

/// Reads what a collector should not send, until it closes.
async fn until_closed(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut buffer = [0; 1024];
    let mut unasked = 0;
    loop {
        match reader.read(&mut buffer).await? {
            0 => return Ok(()),
            len => unasked += u64::try_from(len).unwrap_or(u64::MAX),
        }
        if unasked > UNASKED_OCTETS_MAX {
            return Err(io::Error::other("sends what nobody asked for"));
        }
    }
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[cfg(test)]
mod tests {
    use super::super::session::SessionCounts;
    use super::*;
    use crate::config::Security;

    fn destination() -> Destination {
        Destination {
            index: 0,
            export: Export {
                key: "export[0]".into(),
                host: "collector.example".into(),
                port: 4740,
                security: Security::PlainToThisMachine,
                report_interval: Duration::from_secs(1),
                sign_of_life: Duration::from_secs(20),
            },
            tls: None,
            limits: AgentLimits::default(),
            counts: Arc::default(),
        }
    }

    fn piece(octets: usize, reports: u64, finals: u64) -> Piece {
        Piece { octets: vec![7; octets], holds: HandedOver { reports, finals } }
    }

    // SEQ-4.13
    #[test]
    fn only_what_the_network_has_taken_is_counted_as_sent() {
        let destination = destination();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let result = runtime.expect("a runtime").block_on(async {
            // As much as the first piece, and not all of the second.
            let (ours, mut theirs) = tokio::io::duplex(100);
            let (pipe, pieces) = mpsc::channel(3);
            for (octets, reports, finals) in [(100, 3, 1), (150, 5, 2), (10, 7, 4)] {
                pipe.send(piece(octets, reports, finals)).await.expect("room");
            }
            let read = async {
                theirs.read_exact(&mut [0; 100]).await.expect("the first");
                drop(theirs);
            };
            tokio::join!(destination.pump(Box::new(ours), pieces), read).0
        });
        assert!(result.is_err());
        assert_eq!(destination.counts.handed_over(), HandedOver { reports: 3, finals: 1 });
        assert_eq!(destination.counts.sent_octets.load(Ordering::Relaxed), 100);
        let all = SessionCounts { reports: 15, finals: 7, ..SessionCounts::default() };
        assert_eq!(all.beyond(destination.counts.handed_over()), [12, 6]);
    }

    #[test]
    fn the_wait_between_attempts_is_at_least_half_of_itself_and_never_longer() {
        let wait = Duration::from_secs(8);
        for _ in 0..1000 {
            let jittered = jittered(wait);
            assert!(jittered >= wait / 2 && jittered <= wait, "{jittered:?}");
        }
    }
}
