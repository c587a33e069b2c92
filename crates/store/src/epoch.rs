//! Epochs in the database: the row of each, its readings, and the blocks by which a time is found.

use std::collections::BTreeMap;

use observe::collect::Epoch;
use observe::outcome::Outcome;
use observe::report::Snapshot;
use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::row::{self, EPOCH_COLUMNS, contradiction_number, qualifications, signed, time};
use crate::{EpochState, SessionId, StoreLimits, schema};

/// Epochs that are ended in one step.
const ENDED_AT_A_TIME: u64 = 1000;

/// Brings what is stored of an epoch up to date, and says in which place it is.
pub(crate) fn apply(
    transaction: &Transaction<'_>,
    limits: &StoreLimits,
    state: &EpochState,
) -> rusqlite::Result<i64> {
    let latest = &state.epoch.latest;
    let mut find = transaction.prepare_cached(
        "SELECT id, report_id, readings, outcome FROM epochs \
         WHERE session = ?1 AND domain = ?2 AND epoch_id = ?3",
    )?;
    let id = params![signed(state.session.0), state.domain, signed(latest.epoch_id)];
    let found = find
        .query_row(id, |row| {
            let turned = row.get_ref(3)?.as_str()? != state.outcome.word();
            Ok((row.get::<_, i64>(0)?, row::unsigned(row, 1)?, row.get::<_, i64>(2)?, turned))
        })
        .optional()?;
    let (place, new_report, readings, turned) = match found {
        Some((place, id, readings, turned)) => (place, id != latest.report_id, readings, turned),
        None => (insert(transaction, state)?, true, 0, false),
    };
    let reading = readings.saturating_add(i64::from(new_report));
    if new_report {
        insert_reading(transaction, place, reading, &state.epoch)?;
        let keep = signed(limits.history_per_epoch_max.min(i64::MAX.cast_unsigned()));
        if reading > keep {
            transaction
                .prepare_cached("DELETE FROM history WHERE epoch = ?1 AND number <= ?2")?
                .execute([place, reading - keep])?;
        }
    }
    update(transaction, place, turned, reading, &state.epoch, state.outcome, state.updated_ms)?;
    Ok(place)
}

/// The times of epochs that one transaction changes, by the block of their place. A span only
/// grows: it may say too much, never too little.
#[derive(Debug, Default)]
pub(crate) struct Spans(BTreeMap<i64, (i64, i64)>);

impl Spans {
    pub(crate) fn add(&mut self, place: i64, snapshot: &Snapshot) {
        let (first, last) = (time(snapshot.start_ms), time(snapshot.end_ms));
        let span = self.0.entry(place / schema::BLOCK).or_insert((first, last));
        *span = (span.0.min(first), span.1.max(last));
    }

    pub(crate) fn write(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut widen = transaction.prepare_cached(
            "INSERT INTO blocks (number, first_ms, last_ms) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO UPDATE SET first_ms = min(first_ms, excluded.first_ms), \
             last_ms = max(last_ms, excluded.last_ms)",
        )?;
        self.0
            .into_iter()
            .try_for_each(|(number, (first, last))| widen.execute([number, first, last]).map(drop))
    }
}

/// Writes what never changes of an epoch, and places for what does.
fn insert(transaction: &Transaction<'_>, state: &EpochState) -> rusqlite::Result<i64> {
    let epoch = &state.epoch;
    let snapshot = &epoch.latest.snapshot;
    let key = &snapshot.key;
    let address = |octets| row::address(key.addresses.family, octets);
    transaction
        .prepare_cached(
            "INSERT INTO epochs (session, domain, epoch_id, point, source, destination, qp, pkey, \
             outer_vlan, inner_vlan, segment, window, start_ms, report_id, flags, end_ms, skipped, \
             filled, expired, abandoned, pending, repeated, requests, unclassified_late, missing, \
             flags_seen, heard_ms, collector_drops, outcome, qualifications, updated_ms, readings) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?14, '[]', 0, 0)",
        )?
        .insert(params![
            signed(state.session.0),
            state.domain,
            signed(epoch.latest.epoch_id),
            signed(epoch.point),
            address(&key.addresses.source),
            address(&key.addresses.destination),
            key.qp,
            key.pkey,
            key.namespace.outer_vlan,
            key.namespace.inner_vlan,
            key.namespace.segment,
            snapshot.window.get(),
            signed(snapshot.start_ms),
            state.outcome.word(),
        ])
}

/// What changes of an epoch with every report; the parameters are numbered alike in both.
macro_rules! update {
    ($outcome:literal) => {
        concat!(
            "UPDATE epochs SET report_id = ?2, flags = ?3, end_ms = ?4, skipped = ?5, filled = ?6, \
             expired = ?7, abandoned = ?8, pending = ?9, repeated = ?10, requests = ?11, \
             unclassified_late = ?12, missing = ?13, flags_seen = ?14, heard_ms = ?15, \
             contradiction = ?16, collector_drops = ?17, qualifications = ?19, reason = ?20, \
             updated_ms = ?21, readings = ?22",
            $outcome,
            " WHERE id = ?1"
        )
    };
}

const UPDATE_TURNED: &str = update!(", outcome = ?18");

const UPDATE_UNTURNED: &str = update!("");

/// `turned` says that the outcome may be another than the row has.
fn update(
    transaction: &Transaction<'_>,
    place: i64,
    turned: bool,
    readings: i64,
    epoch: &Epoch,
    outcome: Outcome,
    updated_ms: u64,
) -> rusqlite::Result<()> {
    let snapshot = &epoch.latest.snapshot;
    let counts = &snapshot.counts;
    // A column that is named is taken out of its indexes and put in again, and its trigger asked,
    // whether it changes or not: five times what the row itself costs.
    let mut update =
        transaction.prepare_cached(if turned { UPDATE_TURNED } else { UPDATE_UNTURNED })?;
    let done = update.execute(params![
        place,
        signed(epoch.latest.report_id),
        snapshot.flags.0,
        signed(snapshot.end_ms),
        signed(counts.skipped),
        signed(counts.filled),
        signed(counts.expired),
        signed(counts.abandoned),
        counts.pending,
        signed(counts.repeated),
        signed(counts.requests),
        signed(counts.unclassified_late),
        signed(epoch.missing),
        epoch.flags.0,
        signed(epoch.heard_ms),
        epoch.contradiction.map(contradiction_number),
        epoch.collector_drops,
        outcome.word(),
        qualifications(epoch, outcome),
        epoch.reason(outcome),
        signed(updated_ms),
        readings,
    ]);
    done.map(drop)
}

fn insert_reading(
    transaction: &Transaction<'_>,
    place: i64,
    number: i64,
    epoch: &Epoch,
) -> rusqlite::Result<()> {
    let snapshot = &epoch.latest.snapshot;
    let counts = &snapshot.counts;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO history (epoch, number, received_ms, report_id, flags, end_ms, skipped, filled, \
         expired, abandoned, pending, repeated, requests, unclassified_late) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let done = insert.execute(params![
        place,
        number,
        signed(epoch.heard_ms),
        signed(epoch.latest.report_id),
        snapshot.flags.0,
        signed(snapshot.end_ms),
        signed(counts.skipped),
        signed(counts.filled),
        signed(counts.expired),
        signed(counts.abandoned),
        counts.pending,
        signed(counts.repeated),
        signed(counts.requests),
        signed(counts.unclassified_late),
    ]);
    done.map(drop)
}

/// The active epochs of a session, or of all, become what they are when nothing more will come.
// SEQ-7.11, SEQ-7.13
pub(crate) fn end(
    transaction: &Transaction<'_>,
    session: Option<SessionId>,
    now_ms: u64,
) -> rusqlite::Result<u64> {
    let of = if session.is_some() { "AND session = ?1" } else { "AND ?1 IS NULL" };
    let mut find = transaction.prepare_cached(&format!(
        "SELECT {EPOCH_COLUMNS}, readings FROM epochs WHERE outcome = 'active' {of} \
         ORDER BY session, id LIMIT {ENDED_AT_A_TIME}"
    ))?;
    let mut ended = 0;
    loop {
        let rows = find
            .query_map([session.map(|id| signed(id.0))], |row| {
                Ok((row::epoch(row)?, row.get(34)?))
            })?
            .collect::<rusqlite::Result<Vec<(_, i64)>>>()?;
        if rows.is_empty() {
            return Ok(ended);
        }
        for (found, readings) in rows {
            // What is stored as active is over, even where the epoch alone could go on.
            let outcome = match found.epoch.final_outcome() {
                Outcome::Active => Outcome::Incomplete,
                outcome => outcome,
            };
            update(
                transaction,
                signed(found.place),
                true,
                readings,
                &found.epoch,
                outcome,
                now_ms,
            )?;
            ended += 1;
        }
    }
}
