//! What a collector keeps: results in a database, and the raw stream in an archive of IPFIX Files.
//!
//! Nothing here decides whether a report is valid or an epoch complete: that is `observe::collect`,
//! and what it decided is written down. There is no socket, no clock and no thread; the time is an
//! argument. One [`Store`] writes; any number of [`Reader`]s read beside it.
//!
//! A transaction that publishes an outcome (complete, incomplete, invalid) or the end of a session
//! is on the disk when [`Store::apply`] returns (`synchronous = FULL`). One that only brings
//! active epochs up to date survives a killed process, but may be gone after a power failure
//! (`synchronous = NORMAL`): those epochs are then incomplete, as they would be anyhow.

pub mod archive;
mod epoch;
mod error;
mod find;
mod marks;
mod pfc;
mod queue;
mod read;
mod retain;
mod row;
mod rules;
mod schema;
mod write;

pub use error::StoreError;
pub use find::EpochFilter;
pub use pfc::{PfcFilter, PfcPoint, PfcRow, PfcState};
pub use queue::{
    QUEUE_VERDICTS, QueueDeviceRow, QueueEntry, QueueEpochRow, QueueFilter, QueueGroup,
    QueueHistoryRow, QueueLimits, QueuePage, QueueReceived, QueueRow,
};
pub use read::{Page, Reader, Refusal, SessionRow};
pub use retain::Retained;
pub use row::{EpochRow, HistoryRow};
pub use rules::{PfcRules, Rules, SessionFacts};
pub use write::{Recovery, Store};

use observe::collect::Epoch;
use observe::outcome::Outcome;

/// Names a Transport Session in the database and the archive: from 1, never used again, also after
/// a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// An epoch as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochState {
    /// Its Transport Session.
    pub session: SessionId,
    /// Its Observation Domain.
    pub domain: u32,
    /// What is known of it.
    pub epoch: Epoch,
    /// The outcome that is published.
    pub outcome: Outcome,
    /// When that was found, milliseconds since 1970.
    pub updated_ms: u64,
}

/// Something that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An epoch is new, or stands otherwise than before.
    Epoch(Box<EpochState>),
    /// A PFC counter is new, or has another reading than before.
    Pfc(Box<PfcState>),
    /// Of an instance of a PFC counter something did not hold, so what is kept of it vouches for
    /// nothing any more.
    // PFC-sem.2
    PfcDoubted {
        /// The session of the counter.
        session: SessionId,
        /// Its number in the session.
        number: u64,
        /// The instance; none for all of this counter.
        instance: Option<u64>,
        /// The two latest readings too: no later one says why.
        latest: bool,
    },
    /// A device said something of one of its queues.
    Queue(Box<QueueReceived>),
    /// A Transport Session has ended. Epochs of it that are still active become incomplete.
    SessionClosed {
        /// Which.
        session: SessionId,
        /// When, milliseconds since 1970.
        closed_ms: u64,
        /// Why, in words for people.
        reason: String,
    },
    /// Records that were refused, added to those before.
    Refused {
        /// The session that sent them.
        session: SessionId,
        /// Their Observation Domain.
        domain: u32,
        /// Word for the kind of verdict.
        kind: String,
        /// How many.
        records: u64,
    },
    /// Records that the collector itself dropped, added to those before.
    // SEQ-7.15
    CollectorDrop {
        /// The session that sent them.
        session: SessionId,
        /// Their Observation Domain.
        domain: u32,
        /// How many.
        records: u64,
    },
}

/// Bounds of the database, shown to operators.
// SEQ-7.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Results that were last changed longer ago than this go, milliseconds. Active epochs never
    /// do.
    pub results_age_max_ms: u64,
    /// Readings for charts that are older than this go, milliseconds.
    pub history_age_max_ms: u64,
    /// Readings for charts of one epoch; the oldest goes first.
    pub history_per_epoch_max: u64,
    /// Milliseconds between two readings of one PFC counter that are kept for charts.
    pub pfc_history_interval_ms: u64,
    /// Readings for charts of one PFC counter; the oldest goes first.
    pub pfc_history_per_counter_max: u64,
    /// What is kept of queues.
    pub queues: QueueLimits,
    /// Octets of the database, without its write-ahead log. [`Store::retain`] keeps it at nine
    /// tenths of this; a transaction that would go beyond it is refused as on a full disk.
    pub octets_max: u64,
}

const DAY_MS: u64 = 86_400_000;

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            results_age_max_ms: 90 * DAY_MS,
            history_age_max_ms: 7 * DAY_MS,
            history_per_epoch_max: 256,
            pfc_history_interval_ms: 60_000,
            pfc_history_per_counter_max: 256,
            queues: QueueLimits::default(),
            octets_max: 16 << 30,
        }
    }
}
