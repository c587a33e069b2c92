//! Rows of queue telemetry in the database: what was accepted of each queue, what was not and why,
//! and what is known of continuity.
//!
//! `observe::queue::aggregate` judges every row, the same code as for files, by what stands here: a
//! restart forgets nothing, and no memory is taken. An accepted row is never changed. What is
//! missing between rows follows from them and is never filled.
// QUE-con.1

mod find;
mod remove;
mod table;
mod write;

pub use find::{
    QueueDeviceRow, QueueEpochRow, QueueFilter, QueueGroup, QueueHistoryRow, QueuePage, QueueRow,
};
pub(crate) use find::{aggregate, devices, queues, rows};
pub(crate) use remove::remove_older;
pub(crate) use table::TABLES;
pub(crate) use write::{Tally, write};

use std::sync::Arc;

use observe::queue::row::Row;
use observe::queue::{EpochId, Place};

/// Something that a device said of its queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueReceived {
    /// The device, by the name that the collector has for it.
    pub device: Arc<str>,
    /// When it was received, milliseconds since 1970.
    pub received_ms: u64,
    /// What it was.
    pub entry: QueueEntry,
}

/// What a device says of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueEntry {
    /// A whole row.
    Row(Row),
    /// What calls itself a row of this identity and is none.
    Malformed {
        /// The queue.
        place: Arc<Place>,
        /// The epoch.
        epoch: EpochId,
        /// The number in the epoch.
        interval: u64,
        /// What is wrong with it.
        why: String,
    },
    /// What is no row and does not say of which queue: it is counted.
    Nameless,
}

/// Bounds of what is kept of queues, shown to operators.
// QUE-sec.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Queues of one device; rows of more are refused.
    pub queues_max: u64,
    /// Epochs of one queue; the oldest goes first.
    pub epochs_max: u64,
    /// Rows of one queue; the oldest go first.
    pub rows_max: u64,
    /// Rows of one epoch that were not accepted and are kept with the reason; the oldest goes
    /// first.
    pub rejections_max: u64,
    /// Rows that were received longer ago than this go, milliseconds; not a queue's latest row, as
    /// long as its device repeats it.
    pub age_max_ms: u64,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            queues_max: 4_096,
            epochs_max: 1_000,
            rows_max: 36_000,
            rejections_max: 64,
            age_max_ms: 7 * 86_400_000,
        }
    }
}

/// A row of a number that is so low that rows around it are not stored any more.
const NOT_KEPT: &str = "notKept";

/// A row of one more queue than a device may have.
const QUEUES_FULL: &str = "queuesFull";

/// All words for what became of rows: those of `observe::queue::aggregate`, and two of the store's
/// own.
pub const QUEUE_VERDICTS: [&str; 10] = [
    "accepted",
    "repeated",
    "invalid",
    "conflicting",
    "otherMapping",
    "overlapping",
    "backward",
    "noRoom",
    NOT_KEPT,
    QUEUES_FULL,
];
