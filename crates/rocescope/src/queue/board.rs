//! Where completed rows are: sources publish, whoever serves reads or follows.
//!
//! Of each queue only the latest row is here (YANG draft, on publication). A row is never changed,
//! only replaced by the next one, whole: who has got one has all of it, and nobody waits for who
//! reads. A follower that is too slow loses batches and is told how many; it reads
//! [`Board::latest`] then. What waits for followers is bounded by rows, since a batch can have many,
//! and is given up as soon as all of them have it.
//!
//! A row stays when its source says nothing more: it is true of its interval, and of no time after
//! it. Nothing here knows whether a queue still is.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use observe::queue::Place;
use observe::queue::row::Row;
use tokio::sync::Notify;

/// What a board may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queues, at most: the sum of what the sources may have. Rows of one more are refused.
    pub queues_max: usize,
    /// Batches that a follower may be behind, at most; 1 or more.
    pub batches_max: usize,
    /// Rows in them, and queues that are gone, at most. A batch with more is heard of by nobody.
    pub rows_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queues_max: 4096, batches_max: 1024, rows_max: 1 << 18 }
    }
}

/// What was published at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Rows, each the latest of its queue by then; in the order in which they were completed, so
    /// that a queue can have several.
    pub rows: Arc<[Arc<Row>]>,
    /// Queues that are not measured any more and whose rows are not here any more.
    pub gone: Arc<[Arc<Place>]>,
}

/// What a follower hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The next batch.
    Batch(Batch),
    /// So many batches went by before the next one could be taken. What holds now is in
    /// [`Board::latest`].
    Missed(u64),
}

/// What has happened, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that were published.
    pub rows: u64,
    /// Rows for which there was no room, or whose queue is another source's.
    pub refused: u64,
    /// Batches that were published.
    pub batches: u64,
    /// Queues that are here now.
    pub queues: u64,
    /// Batches that followers have missed, all of them together.
    pub missed: u64,
    /// Followers that there are now.
    pub followers: u64,
    /// Rows, and queues that are gone, that wait for followers now.
    pub waiting: u64,
}

/// The latest row of each queue.
pub struct Board {
    limits: Limits,
    state: RwLock<State>,
    waiting: Arc<Waiting>,
}

/// What followers have not heard yet.
#[derive(Default)]
struct Waiting {
    ring: Mutex<Ring>,
    /// There is more, or there will be nothing.
    wake: Notify,
}

/// The last batches, each of which at least one follower has not heard.
#[derive(Default)]
struct Ring {
    batches: VecDeque<Slot>,
    /// The number of the first of them; what was published before the board is number 0.
    first: u64,
    /// Rows in them, and queues that are gone.
    rows: usize,
    followers: usize,
    /// Batches that followers have missed.
    missed: u64,
    /// The board is gone.
    over: bool,
}

struct Slot {
    batch: Batch,
    /// Followers that have not heard it.
    left: usize,
}

struct State {
    /// With the number of the source whose queue it is.
    rows: BTreeMap<Arc<Place>, (Arc<Row>, usize)>,
    generation: u64,
    since: SystemTime,
    counts: Counts,
}

impl Board {
    /// Nothing is published yet.
    pub fn new(limits: Limits) -> Self {
        let since = SystemTime::now();
        let ns = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let generation = u64::try_from(ns).unwrap_or(0);
        let counts = Counts::default();
        let state = State { rows: BTreeMap::new(), generation, since, counts };
        Self { limits, state: RwLock::new(state), waiting: Arc::default() }
    }

    /// Publishes rows in the order in which they were completed. Each replaces that of its queue
    /// whole. One of a queue for which there is no room is left out and counted.
    // QUE-pub.1
    pub fn publish(&self, rows: Vec<Arc<Row>>) {
        self.exchange(0, rows, Vec::new());
    }

    /// Publishes rows of one of several sources, and takes away those of its queues that are not
    /// measured any more, at once. What is taken away goes first. A queue is of the source that
    /// published it first: two that measure the same would contradict each other.
    // QUE-id.1
    pub fn exchange(&self, source: usize, rows: Vec<Arc<Row>>, gone: Vec<Arc<Place>>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let gone: Arc<[_]> =
            gone.into_iter().filter(|place| state.take_away(source, place)).collect();
        let queues_max = self.limits.queues_max;
        let rows: Arc<[_]> =
            rows.into_iter().filter(|row| state.put(source, row, queues_max)).collect();
        if rows.is_empty() && gone.is_empty() {
            return;
        }
        state.generation = state.generation.wrapping_add(1);
        state.since = SystemTime::now();
        state.counts.batches += 1;
        // In the same order for everybody. Nobody may follow, and nobody is waited for.
        self.waiting.ring().push(Batch { rows, gone }, &self.limits);
        drop(state);
        self.waiting.wake.notify_waiters();
    }

    /// The latest row of every queue, in the order of interface and queue.
    pub fn latest(&self) -> Vec<Arc<Row>> {
        self.read().rows.values().map(|(row, _)| row.clone()).collect()
    }

    /// The latest row of every queue of an interface, in the order of queues.
    pub fn latest_of(&self, interface: &str) -> Vec<Arc<Row>> {
        let from = Place { interface: interface.into(), queue: "".into() };
        let state = self.read();
        let rest = state.rows.range::<Place, _>((Bound::Included(&from), Bound::Unbounded));
        let same = rest.take_while(|(place, _)| *place.interface == *interface);
        same.map(|(_, (row, _))| row.clone()).collect()
    }

    /// A number that is another one whenever anything was published, also after a restart of the
    /// program unless its clock was set back; and when that was.
    pub fn changed(&self) -> (u64, SystemTime) {
        let state = self.read();
        (state.generation, state.since)
    }

    /// Follows what is published from here on. To miss nothing, follow first and then read
    /// [`Board::latest`]: what is in both is the same row.
    pub fn follow(&self) -> Follower {
        let mut ring = self.waiting.ring();
        ring.followers += 1;
        let next = ring.end();
        drop(ring);
        Follower { waiting: self.waiting.clone(), next }
    }

    /// What has happened.
    pub fn counts(&self) -> Counts {
        let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let state = self.read();
        let (queues, counts) = (wide(state.rows.len()), state.counts);
        drop(state);
        let ring = self.waiting.ring();
        let (followers, waiting) = (wide(ring.followers), wide(ring.rows));
        Counts { queues, missed: ring.missed, followers, waiting, ..counts }
    }

    /// Goes on after a panic of who held the lock: rows are replaced in one step each.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the source may, and there was room.
    fn put(&mut self, source: usize, row: &Arc<Row>, queues_max: usize) -> bool {
        let room = self.rows.len() < queues_max;
        match self.rows.get_mut(&row.place) {
            Some((there, whose)) if *whose == source => *there = row.clone(),
            None if room => _ = self.rows.insert(row.place.clone(), (row.clone(), source)),
            Some(_) | None => {
                self.counts.refused += 1;
                return false;
            }
        }
        self.counts.rows += 1;
        true
    }

    /// Whether it was there, and the source's.
    fn take_away(&mut self, source: usize, place: &Arc<Place>) -> bool {
        let own = self.rows.get(place).is_some_and(|(_, whose)| *whose == source);
        own && self.rows.remove(place).is_some()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.waiting.ring().over = true;
        self.waiting.wake.notify_waiters();
    }
}

impl Waiting {
    /// Goes on after a panic of who held the lock: there is none while it is held.
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// What it takes room for.
    fn size(&self) -> usize {
        self.rows.len().saturating_add(self.gone.len())
    }
}

impl Ring {
    /// The number of the batch that comes next.
    fn end(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.batches.len()).unwrap_or(u64::MAX))
    }

    /// Keeps a batch for who follows, and no more of those before it than there is room for.
    fn push(&mut self, batch: Batch, limits: &Limits) {
        self.rows = self.rows.saturating_add(batch.size());
        self.batches.push_back(Slot { batch, left: self.followers });
        while self.batches.len() > limits.batches_max.max(1) || self.rows > limits.rows_max {
            if !self.pop() {
                break;
            }
        }
        self.heard();
    }

    /// Gives up the first; whether there was one.
    fn pop(&mut self) -> bool {
        let Some(slot) = self.batches.pop_front() else { return false };
        self.first += 1;
        self.rows = self.rows.saturating_sub(slot.batch.size());
        true
    }

    /// Gives up what everybody has heard.
    fn heard(&mut self) {
        while self.batches.front().is_some_and(|slot| slot.left == 0) && self.pop() {}
        if self.batches.is_empty() {
            // A burst is over: its room is given back too.
            self.batches.shrink_to_fit();
        }
    }

    /// What comes next for a follower; `next` is the number of it.
    fn take(&mut self, next: &mut u64) -> Option<Heard> {
        if let Some(missed) = self.first.checked_sub(*next).filter(|missed| *missed > 0) {
            self.missed = self.missed.saturating_add(missed);
            *next = self.first;
            return Some(Heard::Missed(missed));
        }
        let nth = usize::try_from(*next - self.first).ok()?;
        let slot = self.batches.get_mut(nth)?;
        let batch = slot.batch.clone();
        slot.left -= 1;
        *next += 1;
        self.heard();
        Some(Heard::Batch(batch))
    }
}

/// Hears every batch in the order of publication, or how many it has missed.
pub struct Follower {
    waiting: Arc<Waiting>,
    /// The number of the batch that it hears next.
    next: u64,
}

impl Follower {
    /// Waits for what comes next; none once the board is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Heard> {
        let Self { waiting, next } = self;
        loop {
            let mut more = pin!(waiting.wake.notified());
            // From here on it hears of what is published, so nothing comes in between.
            more.as_mut().enable();
            {
                let mut ring = waiting.ring();
                let heard = ring.take(next);
                if heard.is_some() || ring.over {
                    return heard;
                }
            }
            more.await;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut ring = self.waiting.ring();
        ring.followers = ring.followers.saturating_sub(1);
        let heard = self.next.saturating_sub(ring.first);
        let heard = usize::try_from(heard).unwrap_or(usize::MAX);
        for slot in ring.batches.iter_mut().skip(heard) {
            slot.left = slot.left.saturating_sub(1);
        }
        ring.heard();
    }
}
