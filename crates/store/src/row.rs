//! Rows to values and back. What stands in a row that this program cannot have written is an error,
//! never a guess.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use observe::collect::{Contradiction, Epoch};
use observe::outcome::{Outcome, Qualification};
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use rusqlite::Row;
use rusqlite::types::Type;
use wire::frame::{Addresses, Family, Namespace};

use crate::SessionId;

/// An epoch as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochRow {
    /// Its place in the listing; a cursor.
    pub place: u64,
    /// Its Transport Session.
    pub session: SessionId,
    /// Its Observation Domain.
    pub domain: u32,
    /// What is known of it, with the latest accepted report.
    pub epoch: Epoch,
    /// The published outcome.
    pub outcome: Outcome,
    /// Words for what a reader of its numbers has to know.
    pub qualifications: Vec<String>,
    /// Why it is incomplete or invalid.
    pub reason: Option<String>,
    /// When it was last changed, milliseconds since 1970.
    pub updated_ms: u64,
}

/// One reading of an epoch, for a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// When the report was received, milliseconds since 1970.
    pub received_ms: u64,
    /// `rdmaSequenceReportId`. A step of more than one is missing coverage, and the difference
    /// belongs to no subinterval of it.
    // SEQ-7.7
    pub report_id: u64,
    /// `rdmaSequenceFlags`.
    pub flags: Flags,
    /// `flowEndMilliseconds`.
    pub end_ms: u64,
    /// The counters since the first request.
    pub counts: Counts,
}

/// The columns of [`epoch`], in its order.
pub(crate) const EPOCH_COLUMNS: &str = "id, session, domain, epoch_id, point, source, destination, \
     qp, pkey, outer_vlan, inner_vlan, segment, window, start_ms, report_id, flags, end_ms, \
     skipped, filled, expired, abandoned, pending, repeated, requests, unclassified_late, missing, \
     flags_seen, heard_ms, contradiction, collector_drops, outcome, qualifications, reason, \
     updated_ms";

/// The columns of [`history`], in its order.
pub(crate) const HISTORY_COLUMNS: &str = "received_ms, report_id, flags, end_ms, skipped, filled, \
     expired, abandoned, pending, repeated, requests, unclassified_late";

/// The same bits, as SQLite has them.
pub(crate) const fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// Reads a number that was written by [`signed`].
pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}

fn wrong(column: usize, kind: Type, what: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, kind, what.into())
}

pub(crate) fn narrow<T: TryFrom<u64>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let found = unsigned(row, column)?;
    T::try_from(found).map_err(|_| wrong(column, Type::Integer, format!("{found} out of range")))
}

/// An address as text.
pub(crate) fn address(family: Family, octets: &[u8; 16]) -> String {
    match (family, octets.first_chunk::<4>()) {
        (Family::V4, Some(v4)) => Ipv4Addr::from(*v4).to_string(),
        _ => Ipv6Addr::from(*octets).to_string(),
    }
}

fn addresses(row: &Row<'_>, column: usize) -> rusqlite::Result<Addresses> {
    let one = |column| {
        let text: String = row.get(column)?;
        text.parse().map_err(|_| wrong(column, Type::Text, format!("{text:?} is no address")))
    };
    match (one(column)?, one(column + 1)?) {
        (IpAddr::V4(a), IpAddr::V4(b)) => Ok(Addresses::v4(a.octets(), b.octets())),
        (IpAddr::V6(a), IpAddr::V6(b)) => Ok(Addresses::v6(a.octets(), b.octets())),
        _ => Err(wrong(column, Type::Text, "addresses of both families".into())),
    }
}

/// A time that sorts as it should; the latest that there is where it is beyond.
pub(crate) fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// How many rows a statement has changed.
#[expect(clippy::unnecessary_wraps, reason = "in the place of a result of a transaction")]
pub(crate) fn count(rows: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}

fn counts(row: &Row<'_>, column: usize) -> rusqlite::Result<Counts> {
    Ok(Counts {
        skipped: unsigned(row, column)?,
        filled: unsigned(row, column + 1)?,
        expired: unsigned(row, column + 2)?,
        abandoned: unsigned(row, column + 3)?,
        pending: narrow(row, column + 4)?,
        repeated: unsigned(row, column + 5)?,
        requests: unsigned(row, column + 6)?,
        unclassified_late: unsigned(row, column + 7)?,
    })
}

/// What each contradiction is called in a row.
pub(crate) const fn contradiction_number(contradiction: Contradiction) -> i64 {
    match contradiction {
        Contradiction::SameIdOtherContent => 1,
        Contradiction::AfterFinal => 2,
    }
}

fn contradiction(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Contradiction>> {
    match row.get::<_, Option<i64>>(column)? {
        None => Ok(None),
        Some(1) => Ok(Some(Contradiction::SameIdOtherContent)),
        Some(2) => Ok(Some(Contradiction::AfterFinal)),
        Some(other) => Err(wrong(column, Type::Integer, format!("contradiction {other}"))),
    }
}

/// The outcome of a word.
pub(crate) fn outcome_of(word: &str) -> Option<Outcome> {
    [Outcome::Active, Outcome::Complete, Outcome::Incomplete, Outcome::Invalid]
        .into_iter()
        .find(|outcome| outcome.word() == word)
}

pub(crate) fn outcome(row: &Row<'_>, column: usize) -> rusqlite::Result<Outcome> {
    let word: String = row.get(column)?;
    outcome_of(&word).ok_or_else(|| wrong(column, Type::Text, format!("outcome {word:?}")))
}

/// The words for what a reader of an epoch's numbers has to know. That no final report came is
/// known only of an epoch that is over.
// SEQ-7.15
pub(crate) fn qualifications(epoch: &Epoch, outcome: Outcome) -> String {
    let all = epoch.qualifications();
    let holds = |q: &&Qualification| **q != Qualification::NoFinal || outcome != Outcome::Active;
    let words: Vec<_> = all.iter().filter(holds).map(|q| q.word()).collect();
    serde_json::Value::from(words).to_string()
}

pub(crate) fn epoch(row: &Row<'_>) -> rusqlite::Result<EpochRow> {
    let width: u32 = narrow(row, 12)?;
    let window = Window::new(width).map_err(|e| wrong(12, Type::Integer, e.to_string()))?;
    let key = StreamKey {
        addresses: addresses(row, 5)?,
        namespace: Namespace {
            outer_vlan: narrow(row, 9)?,
            inner_vlan: narrow(row, 10)?,
            segment: narrow(row, 11)?,
        },
        qp: narrow(row, 7)?,
        pkey: narrow(row, 8)?,
    };
    let snapshot = Snapshot {
        key,
        window,
        flags: Flags(narrow(row, 15)?),
        start_ms: unsigned(row, 13)?,
        end_ms: unsigned(row, 16)?,
        counts: counts(row, 17)?,
    };
    // Other keys are compared while a session lasts, and no session outlives its collector.
    let latest = Report {
        epoch_id: unsigned(row, 3)?,
        report_id: unsigned(row, 14)?,
        snapshot,
        other_keys: 0,
    };
    let words: String = row.get(31)?;
    Ok(EpochRow {
        place: unsigned(row, 0)?,
        session: SessionId(unsigned(row, 1)?),
        domain: narrow(row, 2)?,
        epoch: Epoch {
            point: unsigned(row, 4)?,
            latest,
            missing: unsigned(row, 25)?,
            flags: Flags(narrow(row, 26)?),
            heard_ms: unsigned(row, 27)?,
            contradiction: contradiction(row, 28)?,
            collector_drops: row.get(29)?,
        },
        outcome: outcome(row, 30)?,
        qualifications: list(&words)
            .ok_or_else(|| wrong(31, Type::Text, format!("{words:?} is no list of words")))?,
        reason: row.get(32)?,
        updated_ms: unsigned(row, 33)?,
    })
}

fn list(words: &str) -> Option<Vec<String>> {
    let value: serde_json::Value = serde_json::from_str(words).ok()?;
    value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

pub(crate) fn history(row: &Row<'_>) -> rusqlite::Result<HistoryRow> {
    Ok(HistoryRow {
        received_ms: unsigned(row, 0)?,
        report_id: unsigned(row, 1)?,
        flags: Flags(narrow(row, 2)?),
        end_ms: unsigned(row, 3)?,
        counts: counts(row, 4)?,
    })
}
