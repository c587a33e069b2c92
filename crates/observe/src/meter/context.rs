//! One stream's place in the table: two cache lines while it is in order, a third for its
//! reports.

use core::mem::offset_of;

use crate::provision::{Generation, Rule};
use crate::report::{Flags, Snapshot, StreamKey};
use crate::sequence::{Counts, Sequence};
use crate::window::Window;

use super::EpochIds;
use super::closed::{Cause, Closed, final_flags, qualification};

/// Whether requests of a stream may begin an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Provisioned.
    Enabled,
    /// A violation was seen, under the revision of its rule that the context holds.
    Disabled,
    /// The rule that provisioned it is gone.
    Unprovisioned,
}

/// A stream and its epoch, if one is open.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Context {
    pub key: StreamKey,
    pub window: Window,
    pub last_ns: u64,
    pub sequence: Option<Sequence>,
    pub first_ns: u64,
    pub ids: EpochIds,
    revision: u64,
    generation: Generation,
    pub standing: Standing,
}

/// A request in order reads and writes two cache lines.
const _: () = {
    let discriminant = size_of::<Option<Sequence>>() - size_of::<Sequence>();
    let sequence = offset_of!(Context, sequence) + discriminant;
    assert!(sequence + Sequence::IN_ORDER_OCTETS <= 128);
};

impl Context {
    pub fn new(key: StreamKey, rule: &Rule) -> Self {
        Self {
            key,
            window: rule.window,
            last_ns: 0,
            sequence: None,
            first_ns: 0,
            ids: EpochIds::default(),
            standing: Standing::Enabled,
            revision: rule.revision,
            generation: rule.generation,
        }
    }

    /// Reads from each of the two lines that a request in order needs.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.last_ns ^ u64::from(self.sequence.is_some())
    }

    pub fn is_open(&self) -> bool {
        self.sequence.is_some()
    }

    /// A disabled stream keeps its place: forgetting it would enable it.
    pub fn evictable(&self) -> bool {
        self.standing != Standing::Disabled
    }

    pub fn begin(&mut self, sequence: Sequence, time_ns: u64) {
        self.sequence = Some(sequence);
        (self.first_ns, self.last_ns) = (time_ns, time_ns);
        self.ids = EpochIds::default();
    }

    // SEQ-6.5: arrival times of accounted packets, cut to milliseconds.
    pub fn snapshot(&self, counts: Counts, flags: Flags) -> Snapshot {
        Snapshot {
            key: self.key,
            window: self.window,
            flags,
            start_ms: self.first_ns / 1_000_000,
            end_ms: self.last_ns / 1_000_000,
            counts,
        }
    }

    /// Ends the epoch, if one is open, and says how much label memory it gives back.
    pub fn close(&mut self, index: u32, cause: Cause) -> Option<(Closed, u64)> {
        let sequence = self.sequence.take()?;
        let labels_octets = sequence.labels_size();
        let snapshot = self.snapshot(sequence.close(), final_flags(cause, self.generation));
        Some((
            Closed { context: index, snapshot, cause, later: None, ids: self.ids },
            labels_octets,
        ))
    }

    /// Takes the rule that now provisions the stream, or none. Says why an open epoch has to close.
    // SEQ-4.7
    pub fn provision(&mut self, rule: Option<&Rule>) -> Option<Cause> {
        let Some(rule) = rule else {
            if self.standing == Standing::Enabled {
                self.standing = Standing::Unprovisioned;
            }
            return Some(Cause::Policy);
        };
        // SEQ-3.3: only a word of the operator enables a stream that was disabled.
        if self.standing != Standing::Disabled || rule.revision > self.revision {
            self.standing = Standing::Enabled;
            self.revision = rule.revision;
        }
        if rule.window != self.window {
            Some(Cause::Window)
        } else {
            (rule.generation != self.generation).then_some(Cause::Policy)
        }
    }

    /// What the rule says of the epochs to come. No epoch may be open where it changes.
    pub fn set_rule(&mut self, rule: &Rule) {
        (self.window, self.generation) = (rule.window, rule.generation);
    }

    /// What every report of the epoch carries.
    pub fn qualification(&self) -> Flags {
        qualification(self.generation)
    }
}
