//! The tables, and rows to values and back.
//!
//! A number of 64 bits that has an order stands with its highest bit turned over, so that the
//! database's signed numbers have the same order.

use std::sync::Arc;

use observe::queue::aggregate::Kept;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};
use rusqlite::types::Type;

use crate::row::{narrow, unsigned};

/// What the database has for queues beside what it had before them.
///
/// `queue_epochs` says of everything that was ever accepted of an epoch how many rows it was
/// (`accepted`), from where to where (`first` to `last`, `start_ns` to `end_ns`), how much time its
/// rows cover, and how much of that is not known; `stored` is how many of them are still there,
/// `oldest_ms` when the lowest of those was received, and `removed` the highest number that went.
pub(crate) const TABLES: &str = "
CREATE TABLE queue_devices (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    queues INTEGER NOT NULL
);
CREATE TABLE queue_verdicts (
    device INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    rows INTEGER NOT NULL,
    PRIMARY KEY (device, verdict)
) WITHOUT ROWID;
CREATE TABLE queues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    device INTEGER NOT NULL REFERENCES queue_devices (id),
    interface TEXT NOT NULL,
    queue TEXT NOT NULL,
    rows INTEGER NOT NULL,
    epochs INTEGER NOT NULL,
    epoch INTEGER,
    UNIQUE (device, interface, queue)
);
CREATE TABLE queue_epochs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL REFERENCES queues (id),
    epoch BLOB NOT NULL,
    priorities INTEGER NOT NULL,
    begun_ms INTEGER NOT NULL,
    heard_ms INTEGER NOT NULL,
    oldest_ms INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    repeated INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    last_start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    covered_ns INTEGER NOT NULL,
    unknown_ns INTEGER NOT NULL,
    removed INTEGER,
    removed_start_ns INTEGER,
    removed_end_ns INTEGER,
    UNIQUE (queue, epoch)
);
CREATE INDEX queue_epochs_queue ON queue_epochs (queue, id);
CREATE INDEX queue_epochs_oldest ON queue_epochs (oldest_ms);
CREATE TABLE queue_rows (
    epoch INTEGER NOT NULL,
    interval INTEGER NOT NULL,
    received_ms INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    quality INTEGER NOT NULL,
    gated_ns INTEGER,
    backlog_ns INTEGER,
    error_ns INTEGER,
    period_ns INTEGER,
    wall_clock_start TEXT,
    PRIMARY KEY (epoch, interval)
) WITHOUT ROWID;
CREATE TABLE queue_rejections (
    epoch INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    number INTEGER NOT NULL,
    interval INTEGER NOT NULL,
    received_ms INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (epoch, slot)
) WITHOUT ROWID;
";

/// The columns of [`kept`], in its order.
pub(super) const KEPT_COLUMNS: &str =
    "start_ns, duration_ns, quality, gated_ns, backlog_ns, error_ns, period_ns";

const TOP: u64 = 1 << 63;

/// A number in the database's order.
pub(super) const fn ordered(number: u64) -> i64 {
    (number ^ TOP).cast_signed()
}

/// The number again.
pub(super) const fn unordered(stored: i64) -> u64 {
    stored.cast_unsigned() ^ TOP
}

const EVENTS: i64 = 0;
const SAMPLES: i64 = 1;
/// Reasons why nothing is known stand from here on, in their order.
const REASONS: i64 = 2;

/// What a measurement is called in a row.
pub(super) fn quality(measurement: &Measurement) -> i64 {
    match measurement {
        Measurement::Known(Known { method: Method::Events, .. }) => EVENTS,
        Measurement::Known(Known { method: Method::Samples { .. }, .. }) => SAMPLES,
        Measurement::Unknown(reason) => match reason {
            Reason::Unavailable => REASONS,
            Reason::CandidateUnresolved => REASONS + 1,
            Reason::CaptureGap => REASONS + 2,
            Reason::Other => REASONS + 3,
        },
    }
}

fn wrong(column: usize, kind: Type, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, kind, what.into())
}

/// An accepted row without its number, from a column on.
pub(super) fn kept(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Kept> {
    let number = |column| unsigned(row, at + column);
    let method = match row.get::<_, i64>(at + 2)? {
        EVENTS => Ok(Method::Events),
        SAMPLES => Ok(Method::Samples { period_ns: number(6)? }),
        other => usize::try_from(other - REASONS)
            .ok()
            .and_then(|nth| Reason::ALL.get(nth).copied())
            .map(Err)
            .ok_or_else(|| wrong(at + 2, Type::Integer, "a quality that there is not"))?,
    };
    let measurement = match method {
        Ok(method) => Measurement::Known(Known {
            method,
            gated_ns: number(3)?,
            backlog_ns: number(4)?,
            error_ns: number(5)?,
        }),
        Err(reason) => Measurement::Unknown(reason),
    };
    Ok(Kept { start_ns: number(0)?, duration_ns: number(1)?, measurement })
}

/// Priorities as they stand in a row; none where no row was accepted.
pub(super) fn priorities(
    row: &rusqlite::Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<Priorities>> {
    narrow(row, column).map(Priorities::from_bits)
}

/// An epoch's id.
pub(super) fn epoch_id(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<EpochId> {
    row.get::<_, [u8; 16]>(column).map(EpochId::from_octets)
}

/// A whole row again: `interval`, [`KEPT_COLUMNS`] and `wall_clock_start`, from a column on.
pub(super) fn whole(
    row: &rusqlite::Row<'_>,
    at: usize,
    place: &Arc<Place>,
    epoch: EpochId,
    priorities: Priorities,
) -> rusqlite::Result<Row> {
    let Kept { start_ns, duration_ns, measurement } = kept(row, at + 1)?;
    Ok(Row {
        place: place.clone(),
        epoch,
        interval: unordered(row.get(at)?),
        start_ns,
        duration_ns,
        wall_clock_start: row.get::<_, Option<String>>(at + 8)?.map(String::into_boxed_str),
        priorities,
        measurement,
    })
}
