//! The streams that violations have disabled (sequence draft, section 3): what outlives a
//! Transport Session, and a restart of the agent.

use std::collections::BTreeMap;

use observe::provision::Provisioning;
use observe::report::StreamKey;

/// Disabled streams, each with the revision of its rule at the time.
// SEQ-3.3
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disabled {
    streams: BTreeMap<StreamKey, u64>,
    streams_max: usize,
    forgotten: u64,
}

impl Disabled {
    /// None yet, and at most `streams_max`.
    pub fn new(streams_max: usize) -> Self {
        Self { streams: BTreeMap::new(), streams_max, forgotten: 0 }
    }

    /// A violation has disabled a stream under a rule of this revision. Says whether that is news.
    pub fn add(&mut self, key: StreamKey, revision: u64) -> bool {
        if self.streams.contains_key(&key) {
            return false;
        }
        if self.streams.len() >= self.streams_max {
            self.forgotten += 1;
            return false;
        }
        self.streams.insert(key, revision);
        true
    }

    /// The operator enables a stream. Says whether it was disabled.
    pub fn remove(&mut self, key: &StreamKey) -> bool {
        self.streams.remove(key).is_some()
    }

    /// New rules hold: streams whose rule has a higher revision than when they were disabled are
    /// enabled. Says whether there were any. A stream without a rule stays as it is.
    pub fn provision(&mut self, provisioning: &Provisioning) -> bool {
        let before = self.streams.len();
        self.streams.retain(|key, revision| {
            provisioning.find(key).is_none_or(|rule| rule.revision <= *revision)
        });
        self.streams.len() != before
    }

    /// The disabled streams.
    pub fn keys(&self) -> impl Iterator<Item = &StreamKey> {
        self.streams.keys()
    }

    /// The disabled streams, each with its revision.
    pub fn iter(&self) -> impl Iterator<Item = (&StreamKey, u64)> {
        self.streams.iter().map(|(key, revision)| (key, *revision))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Violations of streams for which there was no room.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
