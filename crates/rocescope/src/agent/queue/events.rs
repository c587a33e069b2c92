//! Sources that tell events: over a Unix socket, or out of a file.
//!
//! One connection at a time: numbers of events are a source's, and two at once would be one source
//! with holes. Another one waits until the first has ended.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use observe::queue::EpochId;
use observe::queue::meter::{Counts, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Complaints, Publisher, ROWS_AT_ONCE, TICK, wait_until};
use crate::config::{Pace, QueueLimits};
use crate::queue::events::{self, LINE_OCTETS_MAX};
use crate::queue::feed::{Feed, FeedCounts};
use crate::queue::fresh_epochs;

/// Octets that are read at once.
const READ_OCTETS: usize = 1 << 16;

type Fresh = Box<dyn FnMut() -> EpochId>;

/// A connection and what has become of it so far.
struct Live<'a> {
    feed: Feed<Fresh>,
    name: &'a str,
    counted: (FeedCounts, Counts),
}

impl<'a> Live<'a> {
    fn begin(
        name: &'a str,
        settings: Settings,
        limits: &QueueLimits,
        publisher: &mut Publisher,
    ) -> Option<Self> {
        let fresh: Fresh = match fresh_epochs() {
            Ok(fresh) => Box::new(fresh),
            Err(problem) => {
                tracing::error!("queue source {name}: {problem}");
                return None;
            }
        };
        publisher.begin();
        publisher.counts.count(|numbers| {
            numbers.connected = 1;
            numbers.connections += 1;
        });
        let feed = Feed::new(settings, fresh, limits.bad_lines_in_a_row_max);
        Some(Self { feed, name, counted: Default::default() })
    }

    /// Octets came. Whether the connection may go on. One line can complete an interval of every queue,
    /// so rows are published before many lines are read.
    fn octets(
        &mut self,
        octets: &[u8],
        publisher: &mut Publisher,
        complaints: &mut Complaints,
        stop: &AtomicBool,
    ) -> bool {
        let name = self.name;
        let mut done = Ok(());
        for line in octets.split_inclusive(|octet| *octet == b'\n') {
            done = self.feed.octets(line, &mut |line, why| {
                complaints.about(|| format!("queue source {name}: line {line}: {why}"));
            });
            if done.is_err() {
                break;
            }
            if self.feed.waiting() >= ROWS_AT_ONCE {
                self.publish(publisher);
                if !publisher.rests(stop) {
                    // The agent stops: what was not read is as what was not told.
                    return true;
                }
            }
        }
        self.publish(publisher);
        if let Err(over) = &done {
            publisher.counts.count(|numbers| numbers.cut += 1);
            tracing::warn!("queue source {name}: cut: {over}");
        }
        // Who stops finds that out by itself.
        _ = publisher.rests(stop);
        done.is_ok()
    }

    fn publish(&mut self, publisher: &mut Publisher) {
        let rows = self.feed.rows();
        publisher.publish(rows, self.feed.places());
        let (fed, met) = self.feed.counts();
        let (fed_before, met_before) = std::mem::replace(&mut self.counted, (fed, met));
        let queues = self.feed.queues();
        publisher.counts.count(|numbers| {
            numbers.lines += fed.lines - fed_before.lines;
            numbers.bad += fed.bad - fed_before.bad;
            numbers.passed_over += fed.passed_over - fed_before.passed_over;
            numbers.events += met.events - met_before.events;
            numbers.holes += met.holes - met_before.holes;
            numbers.missing += met.missing - met_before.missing;
            numbers.clocks += met.clocks - met_before.clocks;
            numbers.rows += met.rows - met_before.rows;
            numbers.queues = u64::try_from(queues).unwrap_or(u64::MAX);
        });
    }

    /// What goes on ends where the source was last.
    // QUE-id.1
    fn end(mut self, publisher: &mut Publisher) {
        self.feed.finish();
        self.publish(publisher);
        publisher.counts.count(|numbers| {
            numbers.connected = 0;
            numbers.queues = 0;
        });
    }
}

/// Takes one connection after the other until it is told to stop.
pub(super) fn serve(
    listener: &UnixListener,
    name: &str,
    settings: Settings,
    limits: &QueueLimits,
    mut publisher: Publisher,
    stop: &AtomicBool,
) {
    let mut complaints = Complaints::new();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                let Some(live) = Live::begin(name, settings, limits, &mut publisher) else {
                    return;
                };
                tracing::info!("queue source {name}: connected");
                let why =
                    listen(&stream, listener, live, limits, &mut publisher, &mut complaints, stop);
                tracing::info!("queue source {name}: {why}");
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                readable(&[PollFd::new(listener, PollFlags::IN)]);
            }
            Err(error) => {
                complaints.about(|| format!("queue source {name}: {error}"));
                std::thread::sleep(TICK);
            }
        }
    }
}

/// Reads a connection to its end, whatever that is.
fn listen(
    mut stream: &UnixStream,
    listener: &UnixListener,
    mut live: Live<'_>,
    limits: &QueueLimits,
    publisher: &mut Publisher,
    complaints: &mut Complaints,
    stop: &AtomicBool,
) -> String {
    let silent = Duration::from_secs(limits.silent_timeout_s);
    let mut buffer = vec![0; READ_OCTETS];
    let mut heard = Instant::now();
    let mut other_waits = false;
    if let Err(error) = stream.set_nonblocking(true) {
        live.end(publisher);
        return error.to_string();
    }
    let why = loop {
        if stop.load(Ordering::Relaxed) {
            break "the agent stops".to_owned();
        }
        match stream.read(&mut buffer) {
            Ok(0) => break "closed by the source".to_owned(),
            Ok(read) => {
                let goes_on = live.octets(&buffer[..read], publisher, complaints, stop);
                // While it was not read it was not silent.
                heard = Instant::now();
                if !goes_on {
                    break "closed for what it sent".to_owned();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if heard.elapsed() >= silent {
                    publisher.counts.count(|numbers| numbers.cut += 1);
                    break format!("closed after {} s of silence", silent.as_secs());
                }
                // Where another waits, this would not wait at all.
                let both =
                    [PollFd::new(stream, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
                let count = if other_waits { 1 } else { 2 };
                let ready = readable(&both[..count]);
                if !other_waits && ready.get(1) == Some(&true) {
                    other_waits = true;
                    tracing::warn!(
                        "queue source {}: another connection waits: one at a time",
                        live.name
                    );
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break error.to_string(),
        }
    };
    live.end(publisher);
    why
}

/// Which of them can be read, after a while at most.
fn readable(fds: &[PollFd<'_>]) -> Vec<bool> {
    let mut fds = fds.to_vec();
    let nanoseconds = i64::from(TICK.subsec_nanos());
    let timeout = Timespec { tv_sec: 0, tv_nsec: nanoseconds };
    if poll(&mut fds, Some(&timeout)).is_err() {
        return vec![false; fds.len()];
    }
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}

/// Plays a file.
pub(super) fn play(
    path: &Path,
    pace: Pace,
    name: &str,
    settings: Settings,
    limits: &QueueLimits,
    mut publisher: Publisher,
    stop: &AtomicBool,
) {
    let mut complaints = Complaints::new();
    let Some(mut live) = Live::begin(name, settings, limits, &mut publisher) else { return };
    let played = File::open(path).and_then(|file| {
        let mut input = BufReader::with_capacity(READ_OCTETS, file);
        let mut line = Vec::new();
        let mut paced = Paced { pace, began: None };
        loop {
            line.clear();
            // A longer one comes in parts, and is refused.
            let max = u64::try_from(LINE_OCTETS_MAX).unwrap_or(u64::MAX).saturating_add(2);
            if (&mut input).take(max).read_until(b'\n', &mut line)? == 0 {
                return Ok("its end");
            }
            if !paced.wait(&line, stop) {
                return Ok("the agent stops");
            }
            if !live.octets(&line, &mut publisher, &mut complaints, stop) {
                return Ok("closed for what it holds");
            }
        }
    });
    live.end(&mut publisher);
    match played {
        Ok(why) => tracing::info!("queue source {name}: {why}"),
        Err(error) => tracing::error!("queue source {name}: {}: {error}", path.display()),
    }
}

/// When the next line is due.
struct Paced {
    pace: Pace,
    /// When it began, and the source's time then.
    began: Option<(Instant, u64)>,
}

impl Paced {
    /// Whether it may go on.
    fn wait(&mut self, line: &[u8], stop: &AtomicBool) -> bool {
        if self.pace == Pace::Fast {
            return !stop.load(Ordering::Relaxed);
        }
        // What is no event has no time of its own.
        let Ok(line) = events::read(line) else { return !stop.load(Ordering::Relaxed) };
        let (at, from) = *self.began.get_or_insert((Instant::now(), line.t()));
        let due =
            line.t().checked_sub(from).and_then(|ns| at.checked_add(Duration::from_nanos(ns)));
        match due {
            Some(due) => wait_until(due, stop),
            None => {
                // Another clock.
                self.began = Some((Instant::now(), line.t()));
                true
            }
        }
    }
}
