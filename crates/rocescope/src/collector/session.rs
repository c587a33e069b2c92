//! One Transport Session over its stream: octets to the intake, changes to the writer.
//!
//! Time that the collector spends without reading is not held against the peer: reports may be
//! waiting in the socket, so no epoch may be called silent for it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use super::access::Access;
use super::admission::Room;
use super::clock::{Clock, milliseconds};
use super::intake::{Counts, Intake, Taken};
use super::metrics::Metrics;
use super::times::{TICK, Times};
use super::writer::{Gone, Writer};

/// Octets that are read at once.
const READ_OCTETS: usize = 65_536;

/// How long a session may take for what.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// For the first message.
    pub first_message: Duration,
    /// Between two reports of an epoch.
    pub inactivity: Duration,
    /// Between two messages.
    pub idle: Duration,
    /// Messages in a second.
    pub messages_per_second_max: u64,
}

/// One Transport Session.
pub struct Pump {
    /// How it is called in the log.
    pub name: String,
    /// The state.
    pub intake: Intake,
    /// What its certificate is.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its bounds.
    pub pace: Pace,
    /// The time.
    pub clock: Clock,
    /// Where changes go.
    pub writer: Writer,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The room for epochs that all sessions share.
    pub room: Arc<Room>,
    /// The room for PFC counters that all sessions share.
    pub pfc_room: Arc<Room>,
}

/// Octets of the smallest report, in a template of its own length: IPv4 and no other keys.
const REPORT_OCTETS_MIN: usize = 120;
/// Octets of the smallest record of a PFC counter: its numbers may be sent in fewer octets.
const PFC_RECORD_OCTETS_MIN: usize = 5;

/// Takes room for as many as can begin, so that sessions that read at once share what is left: what
/// was taken, and how many there may be then.
fn share(room: &Room, there: usize, begun_max: usize) -> (u64, usize) {
    let begun_max = begun_max.saturating_add(1);
    let taken = room.take(begun_max as u64);
    let own = usize::try_from(taken).unwrap_or(usize::MAX);
    (taken, if own < begun_max { there.saturating_add(own) } else { usize::MAX })
}

/// Waits until the program is to stop.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Where nobody is left to say so, it is over too.
    _ = stop.wait_for(|stop| *stop).await;
}

impl Pump {
    /// Reads until the session is over, and says that it is.
    pub async fn run(
        mut self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        mut access: watch::Receiver<Arc<Access>>,
        mut stop: watch::Receiver<bool>,
    ) {
        let reason = match self.read(&mut stream, &mut access, &mut stop).await {
            Ok(reason) => reason,
            Err(Gone) => return,
        };
        info!("{}: session ends: {reason}", self.name);
        self.metrics.epochs.fetch_sub(self.intake.epochs() as u64, Relaxed);
        self.room.give_back(self.intake.epochs() as u64);
        self.pfc_room.give_back(self.intake.pfc_counters() as u64);
        let mut out = Taken::default();
        let id = self.intake.id();
        self.intake.end(self.clock.now_ms(), &reason, &mut out);
        for note in &out.notes {
            warn!("{}: {note}", self.name);
        }
        _ = self.writer.keep(id, out).await;
        // What becomes of the peer's side is its own affair.
        _ = timeout(TICK, stream.shutdown()).await;
    }

    /// Why the session is over.
    async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        access: &mut watch::Receiver<Arc<Access>>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<String, Gone> {
        let mut buffer = vec![0; READ_OCTETS];
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut times = Times::new(self.pace.inactivity, Instant::now());
        let mut stop_while_held_back = stop.clone();
        loop {
            times.waits(Instant::now());
            let reason = tokio::select! {
                biased;
                () = stopped(stop) => Some("the collector stops".into()),
                Ok(()) = access.changed() => {
                    let now = access.borrow_and_update().clone();
                    self.admit_again(&now).await?
                }
                read = stream.read(&mut buffer) => {
                    times.returns(false, Instant::now());
                    match read {
                        Ok(0) => Some(self.closed()),
                        Ok(len) => self.take(&buffer[..len], &mut times, &mut stop_while_held_back).await?,
                        Err(error) => Some(cut(&error)),
                    }
                }
                _ = ticks.tick() => {
                    times.returns(true, Instant::now());
                    self.overdue(&times)
                }
            };
            if let Some(reason) = reason {
                return Ok(reason);
            }
            self.advance(&mut times).await?;
        }
    }

    async fn take(
        &mut self,
        octets: &[u8],
        times: &mut Times,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<String>, Gone> {
        let before = self.intake.counts().clone();
        let mut out = Taken::default();
        let epochs = self.intake.epochs();
        let counters = self.intake.pfc_counters();
        let available = self.intake.unfinished() + octets.len();
        let (room, bound) = share(&self.room, epochs, available / REPORT_OCTETS_MIN);
        self.intake.bound_epochs(bound, &mut out);
        let (pfc_room, bound) = share(&self.pfc_room, counters, available / PFC_RECORD_OCTETS_MIN);
        self.intake.bound_pfc_counters(bound, &mut out);
        let taken = self.intake.receive(octets, self.clock.now_ms(), &mut out);
        let begun = self.intake.epochs().saturating_sub(epochs) as u64;
        self.room.give_back(room.saturating_sub(begun));
        let begun = self.intake.pfc_counters().saturating_sub(counters) as u64;
        self.pfc_room.give_back(pfc_room.saturating_sub(begun));
        self.note(&before, epochs, &out);
        let messages = self.intake.counts().messages - before.messages;
        self.writer.keep(self.intake.id(), out).await?;
        if let Err(broken) = taken {
            Metrics::count(&self.metrics.sessions_broken);
            warn!("{}: {broken}", self.name);
            return Ok(Some(broken.to_string()));
        }
        if messages > 0 {
            times.had_message(Instant::now());
            let rate = self.pace.messages_per_second_max;
            let ahead = times.ahead(messages, rate, Instant::now());
            if !ahead.is_zero() {
                Metrics::count(&self.metrics.sessions_paced);
                // SEQ-7.10: the rest waits in the socket.
                _ = timeout(ahead, stopped(stop)).await;
            }
        }
        Ok(None)
    }

    async fn advance(&mut self, times: &mut Times) -> Result<(), Gone> {
        let now = Instant::now();
        if !times.is_to_advance(now) {
            return Ok(());
        }
        let now_ms = self.clock.now_ms();
        let mut out = Taken::default();
        let (before, epochs) = (self.intake.counts().clone(), self.intake.epochs());
        self.intake.advance(now_ms.saturating_sub(milliseconds(times.away(now))), now_ms, &mut out);
        self.room.give_back(epochs.saturating_sub(self.intake.epochs()) as u64);
        self.note(&before, epochs, &out);
        self.writer.keep(self.intake.id(), out).await
    }

    fn note(&self, before: &Counts, epochs: usize, out: &Taken) {
        self.metrics.add(before, self.intake.counts());
        let now = self.intake.epochs();
        self.metrics.epochs.fetch_add(now.saturating_sub(epochs) as u64, Relaxed);
        self.metrics.epochs.fetch_sub(epochs.saturating_sub(now) as u64, Relaxed);
        for note in &out.notes {
            warn!("{}: {note}", self.name);
        }
    }

    /// Whether the peer may go on under another configuration.
    // SEQ-10.1
    async fn admit_again(&mut self, access: &Access) -> Result<Option<String>, Gone> {
        match access.admit(&self.chain, UnixTime::now()) {
            Ok(admitted) => {
                let mut out = Taken::default();
                self.intake.authorise(admitted.domains, &mut out);
                self.writer.keep(self.intake.id(), out).await?;
                Ok(None)
            }
            Err(denied) => Ok(Some(format!("no longer admitted: {denied}"))),
        }
    }

    fn closed(&self) -> String {
        match self.intake.unfinished() {
            0 => "closed by the exporter".into(),
            octets => format!(
                "closed by the exporter in the middle of a message, of which {octets} octets came"
            ),
        }
    }

    /// Whether the peer has taken too long; asked only when nothing can be read.
    fn overdue(&self, times: &Times) -> Option<String> {
        let Pace { first_message, idle, .. } = self.pace;
        let now = Instant::now();
        if self.intake.counts().messages == 0 && times.open_for(now) > first_message {
            return Some(format!("no message in {} s", first_message.as_secs()));
        }
        (times.silent_for(now) > idle).then(|| format!("no message for {} s", idle.as_secs()))
    }
}

fn cut(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "cut: the connection ended without a TLS close".into(),
        _ => format!("cut: {error}"),
    }
}
