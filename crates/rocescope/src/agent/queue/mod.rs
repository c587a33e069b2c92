//! Queue telemetry of the agent: a thread for each source of measurements, whose completed rows go
//! to the board.
//!
//! Nothing here writes to a device or asks it to do anything: sockets and files are read, and of a
//! database only what reads is asked (`SELECT`, `HGET`, `HMGET`,
//! `HGETALL`, `INFO`, `TIME`).
// QUE-def.5

mod events;
mod sonic;

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use observe::queue::Place;
use observe::queue::meter::Settings;
use observe::queue::row::Row;

use super::privileges::{Who, group_gets, group_of};
use super::source::thread;
use super::{control, size};
use crate::config::{Device, QueueKind, QueueLimits, QueueSource, QueueTelemetry, printable};
use crate::queue::board::{Board, Limits};

/// Nothing waits for longer than this to be noticed.
const TICK: Duration = Duration::from_millis(50);
/// Rows that are published at once: who reads or follows is not held up for longer than these take.
const ROWS_AT_ONCE: usize = 4_096;
/// Of what may happen again and again, one line is logged in this time.
const QUIET: Duration = Duration::from_secs(10);

/// A source that is there to be read.
pub struct Opened {
    source: QueueSource,
    number: usize,
    limits: QueueLimits,
    listener: Option<UnixListener>,
    counts: Arc<SourceCounts>,
}

/// What a source has counted.
#[derive(Debug, Default)]
pub struct SourceCounts {
    numbers: Mutex<Numbers>,
}

/// Numbers of a source, over all its connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// It is connected, played or answers.
    pub connected: u64,
    /// Connections that began, or times that it answered again.
    pub connections: u64,
    /// Connections that ended for what they sent, or for their silence.
    pub cut: u64,
    /// Lines of events.
    pub lines: u64,
    /// Lines that were no events.
    pub bad: u64,
    /// Events of queues that are not measured.
    pub passed_over: u64,
    /// Events that were taken.
    pub events: u64,
    /// Holes in the numbers of events.
    pub holes: u64,
    /// Numbers that are missing in them.
    pub missing: u64,
    /// Times at which a clock turned out to be another one.
    pub clocks: u64,
    /// Rows that were completed.
    pub rows: u64,
    /// Queues now.
    pub queues: u64,
    /// Polls of a database.
    pub polls: u64,
    /// Those that gave nothing.
    pub poll_failures: u64,
    /// Queues without a sample at a poll.
    pub absent: u64,
    /// Times that it was not read for a while, for the rows that it had completed.
    pub held: u64,
}

impl SourceCounts {
    /// The numbers as they are now.
    pub fn now(&self) -> Numbers {
        *self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, act: impl FnOnce(&mut Numbers)) {
        act(&mut self.numbers.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Makes the sockets that sources connect to, while it is allowed.
///
/// # Errors
/// In a line, such as that another agent listens to one.
pub fn open(device: &Device, who: Option<&Who>) -> Result<Vec<Opened>, String> {
    let Some(QueueTelemetry { sources, limits }) = &device.queue else { return Ok(Vec::new()) };
    let opened = |(number, source): (usize, &QueueSource)| {
        let listener = match &source.kind {
            QueueKind::Socket { socket, group } => {
                let listener = control::listen(&socket.path)
                    .map_err(|error| format!("{}: {error}", socket.key))?;
                if let Some(who) = who {
                    who.give(&socket.path)?;
                }
                group_gets(&socket.path, group.as_deref())
                    .map_err(|error| format!("queue.source[{number}].{error}"))?;
                Some(listener)
            }
            QueueKind::File { .. } | QueueKind::Sonic { .. } => None,
        };
        let (source, limits) = (source.clone(), *limits);
        Ok(Opened { source, number, limits, listener, counts: Arc::default() })
    };
    sources.iter().enumerate().map(opened).collect()
}

/// What [`open`] would say that can be seen without making a socket: the key, its line, and what is
/// wrong.
pub fn refusals(device: &Device) -> Vec<(String, Option<usize>, String)> {
    let sources = device.queue.iter().flat_map(|telemetry| &telemetry.sources);
    let mut all = Vec::new();
    for source in sources {
        let QueueKind::Socket { socket, group } = &source.kind else { continue };
        let place = |problem: String| (socket.key.clone(), Some(socket.line), problem);
        let parent = socket.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            let parent = printable(&parent.display().to_string()).to_string();
            all.push(place(format!("{socket}: {parent} is no directory, expected one")));
        }
        if let Some(Err(problem)) = group.as_deref().map(group_of) {
            all.push(place(format!("socket_group: {problem}")));
        }
    }
    all
}

/// The sockets that sources connect to.
pub fn sockets(device: &Device) -> Vec<PathBuf> {
    let sources = device.queue.iter().flat_map(|telemetry| &telemetry.sources);
    let socket = |source: &QueueSource| match &source.kind {
        QueueKind::Socket { socket, .. } => Some(socket.path.clone()),
        QueueKind::File { .. } | QueueKind::Sonic { .. } => None,
    };
    sources.filter_map(socket).collect()
}

/// Where rows of all sources go.
pub fn board(telemetry: &QueueTelemetry) -> Arc<Board> {
    Arc::new(Board::new(Limits {
        queues_max: size(telemetry.queues_max()),
        batches_max: size(telemetry.limits.batches_behind_max),
        rows_max: size(telemetry.limits.rows_behind_max),
    }))
}

/// A thread for each source.
///
/// # Errors
/// There can be no more threads, or no fresh epoch ids.
pub fn start(
    opened: Vec<Opened>,
    board: &Arc<Board>,
    seed: u64,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Arc<SourceCounts>>, String> {
    let mut all = Vec::new();
    for opened in opened {
        let Opened { source, number, limits, listener, counts } = opened;
        all.push(counts.clone());
        let failed = |error| format!("no thread for {}: {error}", source.name);
        let settings = Settings {
            interval_ns: u64::try_from(source.interval.as_nanos()).unwrap_or(u64::MAX),
            queues_max: size(source.queues_max),
            edges_max: size(source.edges_max),
            seed,
            ..Settings::default()
        };
        let publisher = Publisher {
            board: board.clone(),
            source: number,
            shown: BTreeSet::new(),
            begins: false,
            counts,
            allowance: Allowance::new(limits.rows_per_second_max, Instant::now()),
        };
        // Tried here, so that it is not found out in the middle of a measurement.
        drop(crate::queue::fresh_epochs()?);
        let stop = stop.clone();
        let name = source.name.clone();
        let kind = source.kind.clone();
        let run: Box<dyn FnOnce() + Send> = match (kind, listener) {
            (QueueKind::Socket { .. }, Some(listener)) => Box::new(move || {
                events::serve(&listener, &name, settings, &limits, publisher, &stop);
            }),
            (QueueKind::File { file, pace }, _) => Box::new(move || {
                events::play(&file.path, pace, &name, settings, &limits, publisher, &stop);
            }),
            (QueueKind::Sonic { redis, poll_interval, maps }, _) => Box::new(move || {
                let asked = sonic::Asked { redis, poll_interval, maps, limits };
                sonic::poll(&asked, &name, settings, publisher, &stop);
            }),
            // `open` makes one for each.
            (QueueKind::Socket { .. }, None) => continue,
        };
        thread("queue", run).map_err(failed)?;
    }
    Ok(all)
}

/// Puts rows of one source on the board.
struct Publisher {
    board: Arc<Board>,
    source: usize,
    /// Queues of the source that are on the board.
    shown: BTreeSet<Arc<Place>>,
    /// No row of the measurement that goes on was published yet.
    begins: bool,
    counts: Arc<SourceCounts>,
    allowance: Allowance,
}

impl Publisher {
    /// Another measurement begins. What the one before has left stays until this has a row: then,
    /// what is not measured any more goes.
    fn begin(&mut self) {
        self.begins = true;
    }

    /// Some at a time.
    fn publish<'p>(&mut self, rows: Vec<Arc<Row>>, measured: impl Iterator<Item = &'p Arc<Place>>) {
        if rows.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        if std::mem::take(&mut self.begins) {
            let measured: BTreeSet<&Arc<Place>> = measured.collect();
            gone.extend(self.shown.iter().filter(|place| !measured.contains(place)).cloned());
            self.shown.retain(|place| measured.contains(place));
        }
        for row in &rows {
            if !self.shown.contains(&row.place) {
                self.shown.insert(row.place.clone());
            }
        }
        self.allowance.take(rows.len(), Instant::now());
        let mut rest = rows;
        loop {
            let more = rest.split_off(rest.len().min(ROWS_AT_ONCE));
            self.board.exchange(self.source, rest, std::mem::take(&mut gone));
            if more.is_empty() {
                return;
            }
            rest = more;
        }
    }

    /// Waits until more rows may be completed; whether it may go on.
    fn rests(&mut self, stop: &AtomicBool) -> bool {
        let now = Instant::now();
        if self.allowance.due <= now {
            return !stop.load(Ordering::Relaxed);
        }
        self.counts.count(|numbers| numbers.held += 1);
        wait_until(self.allowance.due, stop)
    }
}

/// How many rows a source may complete: its time says how many, and nobody vouches for that. It is
/// read no further where that is too fast, so nothing of it is missing.
// QUE-sec.1
struct Allowance {
    per_second: u32,
    /// From when on it may complete more.
    due: Instant,
}

impl Allowance {
    /// What it may be ahead: the rows of so long.
    const AHEAD: Duration = Duration::from_secs(1);

    fn new(per_second: u64, now: Instant) -> Self {
        Self { per_second: u32::try_from(per_second).unwrap_or(u32::MAX).max(1), due: now }
    }

    fn take(&mut self, rows: usize, now: Instant) {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let from = now.checked_sub(Self::AHEAD).map_or(now, |from| from.max(self.due));
        let takes = Duration::from_secs(1).saturating_mul(rows) / self.per_second;
        self.due = from.checked_add(takes).unwrap_or(from);
    }
}

/// Logs what may happen again and again: one line in a while, and how many there were.
struct Complaints {
    last: Option<Instant>,
    untold: u64,
}

impl Complaints {
    const fn new() -> Self {
        Self { last: None, untold: 0 }
    }

    fn about(&mut self, what: impl FnOnce() -> String) {
        if self.last.is_some_and(|last| last.elapsed() < QUIET) {
            self.untold += 1;
            return;
        }
        self.last = Some(Instant::now());
        match std::mem::take(&mut self.untold) {
            0 => tracing::warn!("{}", what()),
            untold => tracing::warn!("{} (and {untold} more like it before)", what()),
        }
    }
}

/// Waits until then, or until it is told to stop; whether it may go on.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(TICK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // QUE-sec.1
    #[test]
    fn a_source_that_completes_more_rows_than_it_may_waits_for_as_long_as_they_take() {
        let began = Instant::now() + Duration::from_secs(10);
        let at = |ms| began + Duration::from_millis(ms);
        let mut allowance = Allowance::new(1_000, at(0));
        // A second of them is let through at once, behind a time with fewer.
        allowance.take(1_000, at(5_000));
        assert_eq!(allowance.due, at(5_000));
        allowance.take(500, at(5_000));
        assert_eq!(allowance.due, at(5_500));
        allowance.take(500, at(5_500));
        assert_eq!(allowance.due, at(6_000));
        // What takes as long as it may never waits.
        for second in 6..20 {
            allowance.take(1_000, at(second * 1_000 + 999));
            assert!(allowance.due <= at(second * 1_000 + 1_000), "{second}");
        }
        // More than a time can hold is no reason to stop for ever at once.
        let mut least = Allowance::new(0, at(0));
        least.take(3, at(0));
        assert!(least.due >= at(2_000) && least.due <= at(3_000));
    }
}
