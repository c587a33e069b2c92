//! The one thread that owns what is kept.
//!
//! Sessions hand over changes only where there is room for them. While the store is slow or its
//! disk full there is none, so they stop reading their sockets: nothing is dropped, and the exporter
//! sees a slow collector. What fails is tried again until it holds.
//!
//! Of an epoch only how it stands last is written, and the longer writing takes, the longer it waits
//! for the next: so it never takes more than a share of the time while there is room, however many
//! epochs report how often.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{error, info, warn};

use super::clock::Clock;
use super::intake::Taken;
use super::metrics::Metrics;
use super::raw::Raw;
use super::sink::{Change, SessionFacts, SessionId, Sink, SinkError};

/// Changes wait for as many times the time that the last transaction took, so that a store that is
/// slow has the fewer rows to write,
const REST: u32 = 4;

/// and never for longer than this.
const REST_MAX: Duration = Duration::from_secs(2);

/// How long a store that failed is left alone.
const RETRY: Duration = Duration::from_millis(500);

/// Changes that wait to be written, and of every epoch and PFC counter only how it stands last: one
/// row is written for it, however many reports or readings came.
#[derive(Debug, Default)]
pub struct Pending {
    changes: Vec<Change>,
    /// Where the change of an epoch stands, by session, Observation Domain and epoch.
    epochs: HashMap<(SessionId, u32, u64), usize>,
    /// Where the change of a PFC counter stands, by session and number.
    pfc: HashMap<(SessionId, u64), usize>,
}

impl Pending {
    /// Adds a change, or puts it in the place of the one that it stands for as well. The end of a
    /// session stays behind everything that came of the session before.
    pub fn add(&mut self, change: Change) {
        let new = self.changes.len();
        let place = match &change {
            Change::Epoch(state) => {
                let id = (state.session, state.domain, state.epoch.latest.epoch_id);
                *self.epochs.entry(id).or_insert(new)
            }
            Change::Pfc(state) => *self.pfc.entry((state.session, state.number)).or_insert(new),
            _ => new,
        };
        match self.changes.get_mut(place) {
            Some(earlier) => *earlier = change,
            None => self.changes.push(change),
        }
    }

    /// What is to be written, in an order in which it may be.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// All of it is written.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.epochs.clear();
        self.pfc.clear();
    }
}

/// Hands changes to the thread that keeps them.
#[derive(Clone, Debug)]
pub struct Writer {
    work: mpsc::Sender<Work>,
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
    Queues(Vec<Change>, OwnedSemaphorePermit),
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
    let (sender, work) = mpsc::channel();
    let room_max = u32::try_from(room_max).unwrap_or(u32::MAX);
    let give_up = Arc::new(AtomicBool::new(false));
    let room = Arc::new(Semaphore::new(usize::try_from(room_max).unwrap_or(usize::MAX)));
    let keeper = Keeper {
        sink,
        work,
        give_up: give_up.clone(),
        metrics: metrics.clone(),
        clock: Clock::new(),
        pending: Pending::default(),
        came: 0,
        taken: None,
        taken_max: usize::try_from(room_max / 2).unwrap_or(usize::MAX).max(1),
        rest_until: Instant::now(),
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
        let permit = self.room(changes.len() + raw.weight()).await?;
        self.metrics.changes_waiting.fetch_add(count, Relaxed);
        self.work.send(Work::Keep(session, raw, changes, permit)).map_err(|_| Gone)
    }

    /// Hands over what a device said of its queues, once there is room for it.
    ///
    /// # Errors
    /// The program is ending.
    pub async fn keep_queues(&self, changes: Vec<Change>) -> Result<(), Gone> {
        if changes.is_empty() {
            return Ok(());
        }
        let permit = self.room(changes.len()).await?;
        self.metrics.changes_waiting.fetch_add(changes.len() as u64, Relaxed);
        self.work.send(Work::Queues(changes, permit)).map_err(|_| Gone)
    }

    async fn room(&self, weight: usize) -> Result<OwnedSemaphorePermit, Gone> {
        let permits = u32::try_from(weight).unwrap_or(u32::MAX).min(self.room_max);
        self.room.clone().acquire_many_owned(permits).await.map_err(|_| Gone)
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
    work: mpsc::Receiver<Work>,
    give_up: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    clock: Clock,
    pending: Pending,
    /// As many changes as came, those included that others stand for now.
    came: u64,
    /// The room that is taken by what is pending.
    taken: Option<OwnedSemaphorePermit>,
    /// Half of all room: what is pending is not to take more, or nothing could come in meanwhile.
    taken_max: usize,
    /// Until then the store rests.
    rest_until: Instant,
}

impl<S: Sink> Keeper<S> {
    fn run(mut self) {
        loop {
            let rest = self.rest_until.saturating_duration_since(Instant::now());
            let work = match self.came {
                0 => self.work.recv().map_err(|_| RecvTimeoutError::Disconnected),
                _ => self.work.recv_timeout(rest),
            };
            match work {
                Ok(work) => self.take(work),
                Err(RecvTimeoutError::Timeout) => self.keep(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            if taken >= self.taken_max || Instant::now() >= self.rest_until {
                self.keep();
            }
        }
        self.keep();
    }

    fn take(&mut self, work: Work) {
        match work {
            Work::Keep(session, mut raw, changes, room) => {
                self.until_done(|sink| sink.archive(session, &mut raw));
                self.add(changes, room);
            }
            Work::Queues(changes, room) => self.add(changes, room),
            Work::Tend => {
                self.keep();
                self.tend();
                // Of what changed no result, such as signs of life, nothing is waiting now.
                self.until_done(|sink| sink.apply(&[]));
            }
            Work::Open(facts, answer) => {
                let Some(session) = self.until_done(|sink| sink.open_session(&facts)) else {
                    return;
                };
                // Nobody waits where the connection is gone; the session is closed by nobody, so
                // its end is noted here.
                if let Err(session) = answer.send(session) {
                    self.pending.add(Change::SessionClosed {
                        session,
                        closed_ms: facts.opened_ms,
                        reason: "the connection ended before the session began".into(),
                    });
                    self.came += 1;
                    self.metrics.changes_waiting.fetch_add(1, Relaxed);
                }
            }
        }
    }

    fn add(&mut self, changes: Vec<Change>, room: OwnedSemaphorePermit) {
        self.came += changes.len() as u64;
        let before = self.pending.changes.len();
        changes.into_iter().for_each(|change| self.pending.add(change));
        self.hold(room, self.pending.changes.len() - before);
    }

    /// Keeps as much room as changes became pending, and gives back the rest.
    fn hold(&mut self, mut room: OwnedSemaphorePermit, pending: usize) {
        let Some(held) = room.split(pending.min(room.num_permits())) else { return };
        match &mut self.taken {
            Some(taken) => taken.merge(held),
            none => *none = Some(held),
        }
    }

    fn tend(&mut self) {
        if let Err(problem) = self.sink.tend(self.clock.now_ms()) {
            Metrics::count(&self.metrics.store_failures);
            warn!("retention failed: {problem}");
        }
    }

    fn keep(&mut self) {
        if self.came == 0 {
            return;
        }
        let began = Instant::now();
        let pending = std::mem::take(&mut self.pending);
        let kept = self.until_done(|sink| sink.apply(pending.changes())).is_some();
        let counter = if kept { &self.metrics.changes_kept } else { &self.metrics.changes_dropped };
        counter.fetch_add(self.came, Relaxed);
        self.metrics.changes_waiting.fetch_sub(self.came, Relaxed);
        self.pending = pending;
        self.pending.clear();
        self.came = 0;
        self.taken = None;
        let ended = Instant::now();
        self.rest_until = ended + (ended - began).saturating_mul(REST).min(REST_MAX);
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
    fn of_an_epoch_only_the_last_state_is_left_and_everything_else_stays() {
        use super::super::intake::tests::state;
        let (one, two) = (|id| state(1, 1, id), |id| state(1, 2, id));
        let other_session = state(2, 1, 1);
        let changes = [
            one(1),
            refused(1, 1),
            two(1),
            one(2),
            other_session.clone(),
            refused(1, 1),
            one(3),
            closed(1),
        ];
        let mut pending = Pending::default();
        // The second time nothing of the first is left that it could stand for.
        for _ in 0..2 {
            changes.iter().cloned().for_each(|change| pending.add(change));
            let expected =
                [one(3), refused(1, 1), two(1), other_session.clone(), refused(1, 1), closed(1)];
            assert_eq!(pending.changes(), expected);
            pending.clear();
        }
    }
}
