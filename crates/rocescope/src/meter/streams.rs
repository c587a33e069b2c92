//! What became of each stream, for the table: its epochs' counters side by side, and why they
//! closed. Bounded by the number of contexts, not by the number of epochs.

use observe::meter::{Cause, Closed};
use observe::report::{Flags, StreamKey};
use observe::request::Violation;
use observe::window::Window;

/// Kinds of causes that are told apart for one stream; what is beyond is only counted.
const CAUSES_MAX: usize = 6;

/// The epochs of one stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The stream.
    pub key: StreamKey,
    /// Its window; nothing for a stream that never had an epoch.
    pub window: Option<Window>,
    /// Closed epochs.
    pub epochs: u64,
    /// All flags of all epochs.
    pub flags: Flags,
    /// Requests, skipped, filled, expired, abandoned, repeated and unclassified late over all
    /// epochs.
    pub counts: [u64; 7],
    /// Why epochs closed, other than by the end: the first cause of each kind, and how many.
    pub causes: Vec<(Cause, u64)>,
}

/// The order of [`Stream::counts`], as table heads.
pub const COUNT_HEADS: [&str; 7] =
    ["REQUESTS", "SKIPPED", "FILLED", "EXPIRED", "ABANDONED", "REPEATED", "LATE"];

impl Stream {
    fn new(key: &StreamKey) -> Self {
        Self {
            key: *key,
            window: None,
            epochs: 0,
            flags: Flags::default(),
            counts: [0; 7],
            causes: Vec::new(),
        }
    }

    fn add(&mut self, closed: &Closed) {
        let c = &closed.snapshot.counts;
        self.window = Some(closed.snapshot.window);
        self.epochs += 1;
        self.flags = self.flags.with(closed.snapshot.flags);
        let counts = [
            c.requests,
            c.skipped,
            c.filled,
            c.expired,
            c.abandoned,
            c.repeated,
            c.unclassified_late,
        ];
        for (sum, count) in self.counts.iter_mut().zip(counts) {
            *sum = sum.saturating_add(count);
        }
        for cause in closed.causes().filter(|cause| *cause != Cause::End) {
            self.cause(cause);
        }
    }

    fn cause(&mut self, cause: Cause) {
        let kind = std::mem::discriminant(&cause);
        match self.causes.iter().position(|(c, _)| std::mem::discriminant(c) == kind) {
            Some(known) => self.causes[known].1 += 1,
            None if self.causes.len() < CAUSES_MAX => self.causes.push((cause, 1)),
            None => {}
        }
    }

    /// How much the stream deserves a look: the more severe the earlier, then the larger.
    pub fn rank(&self) -> (u8, u64) {
        let [_, skipped, _, expired, abandoned, repeated, late] = self.counts;
        let severity = [
            self.flags.has(Flags::PROFILE_VIOLATION),
            self.flags.has(Flags::STATE_EXHAUSTION),
            self.flags.has(Flags::CAPTURE_DISCONTINUITY),
            self.flags.has(Flags::SERIAL_DISCONTINUITY),
            expired + abandoned > 0,
            skipped > 0,
            repeated + late > 0,
        ];
        let level = severity.iter().position(|holds| *holds).unwrap_or(severity.len());
        let level = u8::try_from(level).unwrap_or(u8::MAX);
        let weight = expired.saturating_add(abandoned).saturating_add(skipped);
        (level, u64::MAX - weight.saturating_add(repeated).saturating_add(late))
    }
}

/// Streams that are allocated together: there can be a million, and growing copies none of them.
const CHUNK: usize = 4096;

/// All streams, in the order in which their contexts were made.
#[derive(Debug, Default)]
pub struct Streams {
    by_context: Vec<Vec<Option<Stream>>>,
    /// Streams whose context went to another one.
    evicted: u64,
}

impl Streams {
    /// Adds a closed epoch to its stream.
    pub fn add(&mut self, closed: &Closed) {
        self.stream(closed.context, &closed.snapshot.key).add(closed);
    }

    /// Adds that a violation has disabled a stream without an open epoch.
    pub fn disabled(&mut self, context: u32, key: &StreamKey, violation: Violation) {
        let stream = self.stream(context, key);
        stream.flags = stream.flags.with(Flags::PROFILE_VIOLATION);
        stream.cause(Cause::Violation(violation));
    }

    fn stream(&mut self, context: u32, key: &StreamKey) -> &mut Stream {
        let index = context as usize;
        while index / CHUNK >= self.by_context.len() {
            self.by_context.push(Vec::with_capacity(CHUNK));
        }
        let (chunk, index) = (&mut self.by_context[index / CHUNK], index % CHUNK);
        if index >= chunk.len() {
            chunk.resize_with(index + 1, || None);
        }
        let place = &mut chunk[index];
        if place.as_ref().is_some_and(|stream| stream.key != *key) {
            self.evicted += 1;
            *place = None;
        }
        place.get_or_insert_with(|| Stream::new(key))
    }

    /// Streams that are no longer shown because their context went to another one.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The streams, those that deserve a look first.
    pub fn ranked(&self) -> Vec<&Stream> {
        let all = self.by_context.iter().flatten().flatten();
        let mut all: Vec<_> = all.map(|stream| (stream.rank(), stream)).collect();
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, stream)| stream).collect()
    }
}
