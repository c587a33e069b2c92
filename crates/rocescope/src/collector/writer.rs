//! The one thread that owns what is kept.
//!
//! Sessions hand over changes only where there is room for them. While the store is slow or its
//! disk full there is none, so they stop reading their sockets: nothing is dropped, and the exporter
//! sees a slow collector. What fails is tried again until it holds.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tracing::{error, info, warn};

use super::clock::Clock;
use super::intake::Taken;
use super::metrics::Metrics;
use super::raw::Raw;
use super::sink::{Change, SessionFacts, SessionId, Sink, SinkError};

/// Changes of one transaction, before those that later ones stand for are left out.
const BATCH_MAX: usize = 65_536;

/// How long a store that failed is left alone.
const RETRY: Duration = Duration::from_millis(500);

/// Leaves of every epoch how it stands last: one row is written for it, however many reports came.
pub fn latest_only(changes: &mut Vec<Change>) {
    let mut later = HashSet::new();
    let mut stays: Vec<bool> = changes
        .iter()
        .rev()
        .map(|change| match change {
            Change::Epoch(state) => {
                later.insert((state.session, state.domain, state.epoch.latest.epoch_id))
            }
            _ => true,
        })
        .collect();
    changes.retain(|_| stays.pop().unwrap_or(true));
}

/// Hands changes to the thread that keeps them.
#[derive(Clone, Debug)]
pub struct Writer {
    work: mpsc::UnboundedSender<Work>,
    /// As many permits as changes may wait.
    room: Arc<Semaphore>,
    room_max: u32,
    metrics: Arc<Metrics>,
}

/// The thread that keeps changes.
#[derive(Debug)]
pub struct Keeping {
    thread: JoinHandle<()>,
    give_up: Arc<AtomicBool>,
}

/// The thread is gone: the program is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

#[derive(Debug)]
enum Work {
    Open(SessionFacts, oneshot::Sender<SessionId>),
    Keep(SessionId, Raw, Vec<Change>, OwnedSemaphorePermit),
    Tend,
}

/// Starts the thread. At most `room_max` changes wait, and those of one read more.
///
/// # Errors
/// The system gives no thread.
pub fn start(
    sink: impl Sink,
    room_max: u64,
    metrics: Arc<Metrics>,
) -> std::io::Result<(Writer, Keeping)> {
    let (sender, work) = mpsc::unbounded_channel();
    let room_max = u32::try_from(room_max).unwrap_or(u32::MAX);
    let give_up = Arc::new(AtomicBool::new(false));
    let room = Arc::new(Semaphore::new(usize::try_from(room_max).unwrap_or(usize::MAX)));
    let keeper = Keeper {
        sink,
        work,
        give_up: give_up.clone(),
        metrics: metrics.clone(),
        clock: Clock::new(),
    };
    let thread = thread::Builder::new().name("store".into()).spawn(move || keeper.run())?;
    Ok((Writer { work: sender, room, room_max, metrics }, Keeping { thread, give_up }))
}

impl Writer {
    /// Notes that a session begins, once that is kept.
    ///
    /// # Errors
    /// The program is ending.
    pub async fn open(&self, facts: SessionFacts) -> Result<SessionId, Gone> {
        let (answer, answered) = oneshot::channel();
        self.work.send(Work::Open(facts, answer)).map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Hands over what came out of a session, once there is room for it.
    ///
    /// # Errors
    /// The program is ending.
    pub async fn keep(&self, session: SessionId, taken: Taken) -> Result<(), Gone> {
        let Taken { changes, raw, .. } = taken;
        if changes.is_empty() && raw.is_empty() {
            return Ok(());
        }
        let count = changes.len() as u64;
        let weight = changes.len() + raw.weight();
        let permits = u32::try_from(weight).unwrap_or(u32::MAX).min(self.room_max);
        let permit = self.room.clone().acquire_many_owned(permits).await.map_err(|_| Gone)?;
        self.metrics.changes_waiting.fetch_add(count, Relaxed);
        self.work.send(Work::Keep(session, raw, changes, permit)).map_err(|_| Gone)
    }

    /// Asks for retention.
    pub fn tend(&self) {
        // Where the thread is gone nothing is kept any more.
        _ = self.work.send(Work::Tend);
    }
}

impl Keeping {
    /// Waits until all is kept that was handed over, which ends when the last [`Writer`] is gone;
    /// if the store fails for longer than `patience`, the rest is given up and counted.
    pub fn finish(self, patience: Duration) {
        let step = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        while !self.thread.is_finished() && waited < patience {
            thread::sleep(step);
            waited += step;
        }
        self.give_up.store(true, Relaxed);
        if self.thread.join().is_err() {
            error!("the thread of the store panicked");
        }
    }
}

struct Keeper<S> {
    sink: S,
    work: mpsc::UnboundedReceiver<Work>,
    give_up: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    clock: Clock,
}

impl<S: Sink> Keeper<S> {
    fn run(mut self) {
        let mut changes = Vec::new();
        let mut permits = Vec::new();
        while let Some(mut work) = self.work.blocking_recv() {
            let mut opening = None;
            loop {
                match work {
                    Work::Keep(session, mut raw, more, permit) => {
                        self.until_done(|sink| sink.archive(session, &mut raw));
                        changes.extend(more);
                        permits.push(permit);
                    }
                    Work::Tend => {
                        self.keep(&mut changes);
                        permits.clear();
                        self.tend();
                        // Of what changed no result, such as signs of life, nothing is waiting now.
                        self.until_done(|sink| sink.apply(&[]));
                    }
                    Work::Open(facts, answer) => {
                        opening = Some((facts, answer));
                        break;
                    }
                }
                if changes.len() >= BATCH_MAX {
                    break;
                }
                let Ok(next) = self.work.try_recv() else { break };
                work = next;
            }
            self.keep(&mut changes);
            permits.clear();
            if let Some((facts, answer)) = opening
                && let Some(session) = self.until_done(|sink| sink.open_session(&facts))
            {
                // Nobody waits where the connection is gone; the session is closed by nobody, so
                // its end is noted here.
                if let Err(session) = answer.send(session) {
                    changes.push(Change::SessionClosed {
                        session,
                        closed_ms: facts.opened_ms,
                        reason: "the connection ended before the session began".into(),
                    });
                    self.metrics.changes_waiting.fetch_add(1, Relaxed);
                    self.keep(&mut changes);
                }
            }
        }
    }

    fn tend(&mut self) {
        if let Err(problem) = self.sink.tend(self.clock.now_ms()) {
            Metrics::count(&self.metrics.store_failures);
            warn!("retention failed: {problem}");
        }
    }

    fn keep(&mut self, changes: &mut Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let count = changes.len() as u64;
        latest_only(changes);
        let kept = self.until_done(|sink| sink.apply(changes)).is_some();
        let counter = if kept { &self.metrics.changes_kept } else { &self.metrics.changes_dropped };
        counter.fetch_add(count, Relaxed);
        self.metrics.changes_waiting.fetch_sub(count, Relaxed);
        changes.clear();
    }

    /// Tries until it holds, or until all is to be given up.
    fn until_done<T>(
        &mut self,
        mut attempt: impl FnMut(&mut S) -> Result<T, SinkError>,
    ) -> Option<T> {
        let mut failed = false;
        loop {
            match attempt(&mut self.sink) {
                Ok(done) => {
                    if failed {
                        self.metrics.set_store(None);
                        info!("the store keeps again, intake goes on");
                    }
                    return Some(done);
                }
                Err(problem) => {
                    Metrics::count(&self.metrics.store_failures);
                    if !failed {
                        let full = if problem.disk_full { "the disk is full" } else { "it failed" };
                        error!("intake stands still, the store keeps nothing: {full}: {problem}");
                        failed = true;
                    }
                    if problem.disk_full {
                        // What is beyond its time or room makes some.
                        self.tend();
                    }
                    self.metrics.set_store(Some(problem));
                }
            }
            if self.give_up.load(Relaxed) {
                return None;
            }
            thread::sleep(RETRY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(session: u64, records: u64) -> Change {
        let session = SessionId(session);
        Change::Refused { session, domain: 1, kind: "stale".into(), records }
    }

    fn closed(session: u64) -> Change {
        Change::SessionClosed { session: SessionId(session), closed_ms: 1, reason: "over".into() }
    }

    #[test]
    fn of_an_epoch_only_the_last_state_is_left_in_its_place_and_everything_else_stays() {
        use super::super::intake::tests::state;
        let (one, two) = (|id| state(1, 1, id), |id| state(1, 2, id));
        let other_session = state(2, 1, 1);
        let mut changes = vec![
            one(1),
            refused(1, 1),
            two(1),
            one(2),
            other_session.clone(),
            refused(1, 1),
            one(3),
            closed(1),
        ];
        latest_only(&mut changes);
        let expected = [refused(1, 1), two(1), other_session, refused(1, 1), one(3), closed(1)];
        assert_eq!(changes, expected);
        latest_only(&mut changes);
        assert_eq!(changes, expected);
    }
}
