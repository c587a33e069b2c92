//! The one writer of the database: transactions, recovery at open, retention.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use observe::collect::Epoch;
use observe::outcome::Outcome;
use observe::report::Snapshot;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, params,
};

use crate::archive::Mark;
use crate::row::{self, EPOCH_COLUMNS, contradiction_number, qualifications, signed};
use crate::{
    Change, EpochState, Reader, SessionFacts, SessionId, StoreError, StoreLimits, marks, pfc,
    queue, schema,
};

/// The database of results in a directory of which it is the only writer.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    limits: StoreLimits,
    connection: Connection,
    /// Holds the directory for this process; the system lets go of it when the process ends,
    /// however it ends.
    _lock: Connection,
}

/// What [`Store::open`] found unfinished and finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Sessions that were open, and are closed now.
    pub sessions_closed: u64,
    /// Epochs that were active, and are incomplete now.
    pub epochs_incomplete: u64,
}

/// What [`Store::retain`] took out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Epochs with their results.
    pub epochs_removed: u64,
    /// Readings for charts.
    pub readings_removed: u64,
    /// PFC counters.
    pub pfc_counters_removed: u64,
    /// Readings of PFC counters for charts.
    pub pfc_readings_removed: u64,
    /// Rows of queues, and epochs of queues of which no row was left.
    pub queue_rows_removed: u64,
    /// Sessions of which nothing was left.
    pub sessions_removed: u64,
    /// Octets of the database that hold something now, without its write-ahead log.
    pub octets: u64,
}

/// Rows that go at a time when there is too much.
const REMOVED_AT_A_TIME: u64 = 1000;

const RESTARTED: &str = "collector restarted";

impl Store {
    /// Opens the database in a directory, and finishes what a process before left unfinished: its
    /// sessions are closed, their active epochs incomplete.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::InUse`] where another process has it open.
    // SEQ-7.13: that the collector stopped is no final report.
    pub fn open(
        directory: &Path,
        limits: StoreLimits,
        now_ms: u64,
    ) -> Result<(Self, Recovery), StoreError> {
        fs::create_dir_all(directory).map_err(|error| StoreError::file(directory, error))?;
        let lock = lock(directory)?;
        let path = Reader::path_in(directory);
        let connection = schema::writer(&path)?;
        let mut store = Self { path, limits, connection, _lock: lock };
        store.bound()?;
        let recovery = store.recover(now_ms)?;
        Ok((store, recovery))
    }

    /// Notes a new Transport Session and gives it an id that none had before.
    ///
    /// # Errors
    /// [`StoreError`]; the session is not there then.
    // SEQ-10.2
    pub fn open_session(&mut self, facts: &SessionFacts) -> Result<SessionId, StoreError> {
        self.transaction(true, |transaction, _| {
            transaction.execute(
                "INSERT INTO sessions (facts, opened_ms) VALUES (?1, ?2)",
                params![facts.to_json().to_string(), signed(facts.opened_ms)],
            )?;
            let session = SessionId(transaction.last_insert_rowid().cast_unsigned());
            marks::write(transaction, session, &Mark::default())?;
            Ok(session)
        })
    }

    /// Writes changes down, all of them or none.
    ///
    /// # Errors
    /// [`StoreError`]; nothing of the changes is there then, and they can be applied again.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.apply_at(changes, &[])
    }

    /// As [`Store::apply`], and notes how far in their archives the sessions have come by which
    /// these changes were made.
    ///
    /// # Errors
    /// As [`Store::apply`].
    // SEQ-7.18
    pub fn apply_at(
        &mut self,
        changes: &[Change],
        marks: &[(SessionId, Mark)],
    ) -> Result<(), StoreError> {
        let publishes = |change: &Change| match change {
            Change::Epoch(state) => state.outcome != Outcome::Active,
            Change::SessionClosed { .. } => true,
            Change::Refused { .. }
            | Change::CollectorDrop { .. }
            | Change::Pfc(_)
            | Change::Queue(_) => false,
        };
        self.transaction(changes.iter().any(publishes), |transaction, limits| {
            // Before the changes: one that ends a session also ends its mark.
            for (session, mark) in marks {
                marks::write(transaction, *session, mark)?;
            }
            let (mut spans, mut tally) = (Spans::default(), queue::Tally::default());
            for change in changes {
                match change {
                    Change::Queue(received) => {
                        queue::write(transaction, &limits.queues, received, &mut tally)?;
                    }
                    other => apply(transaction, limits, other, &mut spans)?,
                }
            }
            tally.write(transaction)?;
            spans.write(transaction)
        })
    }

    /// How far the results have come in the archives of sessions that did not end in order: what
    /// [`Archive::open_at`](crate::archive::Archive::open_at) cuts to.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn marks(&self) -> Result<BTreeMap<SessionId, Mark>, StoreError> {
        marks::read(&self.connection).map_err(|error| StoreError::database(&self.path, error))
    }

    /// Sessions to come have ids behind this one: an archive can be ahead of a database that was lost
    /// or put back from a copy, and two sessions must never share a name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begin_behind(&mut self, last: SessionId) -> Result<(), StoreError> {
        self.transaction(true, |transaction, _| {
            transaction.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT 'sessions', 0 \
                 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'sessions')",
                [],
            )?;
            transaction
                .execute(
                    "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'sessions'",
                    [signed(last.0)],
                )
                .map(drop)
        })
    }

    /// The archives have been cut. Not to be called while a session is open.
    ///
    /// # Errors
    /// [`StoreError`]; they can be cut again.
    pub fn forget_marks(&mut self) -> Result<(), StoreError> {
        self.transaction(true, |transaction, _| {
            transaction.execute("DELETE FROM archive_marks", []).map(drop)
        })
    }

    /// A connection of its own, for reading beside the writer.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.path)
    }

    /// Takes out what is older than the limits, and the oldest until what is left is at most nine
    /// tenths of the limit in octets: readings for charts first, then results. Active epochs and
    /// open sessions stay.
    ///
    /// # Errors
    /// [`StoreError`]; what was taken out before stays out.
    // SEQ-7.10
    pub fn retain(&mut self, now_ms: u64) -> Result<Retained, StoreError> {
        let mut retained = Retained::default();
        let results = before(now_ms, self.limits.results_age_max_ms);
        let readings = before(now_ms, self.limits.history_age_max_ms);
        let at_a_time = signed(REMOVED_AT_A_TIME);
        if let Some(time) = readings {
            while let removed @ 1.. = self.remove_readings(time, at_a_time)? {
                retained.readings_removed += removed;
            }
        }
        if let Some(time) = readings {
            while let removed @ 1.. = self.remove_pfc_points(time)? {
                retained.pfc_readings_removed += removed;
            }
        }
        if let Some(time) = before(now_ms, self.limits.queues.age_max_ms) {
            while let removed @ 1.. = self.remove_queue_rows(time)? {
                retained.queue_rows_removed += removed;
            }
        }
        if let Some(time) = results {
            while let (counters @ 1.., readings) = self.remove_pfc_counters(time)? {
                retained.pfc_counters_removed += counters;
                retained.pfc_readings_removed += readings;
            }
            while let (epochs @ 1.., readings) = self
                .transaction(false, |transaction, _| remove_epochs(transaction, time, at_a_time))?
            {
                retained.epochs_removed += epochs;
                retained.readings_removed += readings;
            }
        }
        self.retain_octets(&mut retained)?;
        if let Some(time) = results {
            retained.sessions_removed =
                self.transaction(false, |transaction, _| remove_sessions(transaction, time))?;
        }
        let vacuum = self.connection.execute_batch("PRAGMA incremental_vacuum");
        vacuum.map_err(|error| StoreError::database(&self.path, error))?;
        retained.octets = self.octets()?;
        Ok(retained)
    }

    fn retain_octets(&mut self, retained: &mut Retained) -> Result<(), StoreError> {
        let most = self.limits.octets_max / 10 * 9;
        let at_a_time = signed(REMOVED_AT_A_TIME);
        while self.octets()? > most {
            let readings = self.remove_readings(i64::MAX, at_a_time)?;
            retained.readings_removed += readings;
            if readings > 0 {
                continue;
            }
            let points = self.remove_pfc_points(i64::MAX)?;
            retained.pfc_readings_removed += points;
            if points > 0 {
                continue;
            }
            let (epochs, _) = self.transaction(false, |transaction, _| {
                remove_epochs(transaction, i64::MAX, at_a_time)
            })?;
            retained.epochs_removed += epochs;
            let (counters, _) = self.remove_pfc_counters(i64::MAX)?;
            retained.pfc_counters_removed += counters;
            let queue_rows = self.remove_queue_rows(i64::MAX)?;
            retained.queue_rows_removed += queue_rows;
            if epochs == 0 && counters == 0 && queue_rows == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes out readings that were received before a time, the oldest first, at most so many.
    fn remove_readings(&mut self, before_ms: i64, most: i64) -> Result<u64, StoreError> {
        self.transaction(false, |transaction, _| {
            count(transaction.execute(
                "DELETE FROM history WHERE (epoch, number) IN (SELECT epoch, number FROM history \
                 WHERE received_ms < ?1 ORDER BY received_ms LIMIT ?2)",
                [before_ms, most],
            )?)
        })
    }

    // PFC-sec.1
    fn remove_pfc_points(&mut self, before_ms: i64) -> Result<u64, StoreError> {
        self.transaction(false, |transaction, _| {
            count(pfc::remove_points(transaction, before_ms, signed(REMOVED_AT_A_TIME))?)
        })
    }

    fn remove_pfc_counters(&mut self, before_ms: i64) -> Result<(u64, u64), StoreError> {
        self.transaction(false, |transaction, _| {
            let most = signed(REMOVED_AT_A_TIME);
            let (counters, points) = pfc::remove_counters(transaction, before_ms, most)?;
            Ok((count(counters)?, count(points)?))
        })
    }

    fn remove_queue_rows(&mut self, before_ms: i64) -> Result<u64, StoreError> {
        self.transaction(false, |transaction, _| {
            queue::remove_older(transaction, before_ms, REMOVED_AT_A_TIME)
        })
    }

    /// Octets of the database that hold something.
    fn octets(&self) -> Result<u64, StoreError> {
        let number = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row::unsigned(row, 0))
                .map_err(|error| StoreError::database(&self.path, error))
        };
        let used = number("page_count")?.saturating_sub(number("freelist_count")?);
        Ok(used.saturating_mul(number("page_size")?))
    }

    /// Tells SQLite how large the file may become.
    fn bound(&self) -> Result<(), StoreError> {
        let failed = |error| StoreError::database(&self.path, error);
        let page =
            self.connection.pragma_query_value(None, "page_size", |row| row::unsigned(row, 0));
        let pages =
            (self.limits.octets_max / page.map_err(failed)?).clamp(1, u64::from(u32::MAX - 1));
        self.connection
            .pragma_update_and_check(None, "max_page_count", signed(pages), |_| Ok(()))
            .map_err(failed)
    }

    fn recover(&mut self, now_ms: u64) -> Result<Recovery, StoreError> {
        self.transaction(true, |transaction, _| {
            let epochs_incomplete = end_epochs(transaction, None, now_ms)?;
            let closed = transaction.execute(
                "UPDATE sessions SET closed_ms = ?1, reason = ?2 WHERE closed_ms IS NULL",
                params![signed(now_ms), RESTARTED],
            )?;
            Ok(Recovery { sessions_closed: count(closed)?, epochs_incomplete })
        })
    }

    /// Runs one transaction; it is on the disk when this returns, if it has to be.
    fn transaction<T>(
        &mut self,
        lasting: bool,
        body: impl FnOnce(&Transaction<'_>, &StoreLimits) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let Self { path, limits, connection, .. } = self;
        let failed = |error| StoreError::database(path, error);
        let level = if lasting { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", level).map_err(failed)?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let value = body(&transaction, limits).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(value)
    }
}

/// Takes the directory for this process.
fn lock(directory: &Path) -> Result<Connection, StoreError> {
    let path = directory.join("writer.lock");
    let taken = Connection::open(&path).and_then(|lock| {
        lock.busy_timeout(std::time::Duration::ZERO)?;
        lock.execute_batch("BEGIN EXCLUSIVE")?;
        Ok(lock)
    });
    taken.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => StoreError::InUse { path: directory.to_owned() },
        _ => StoreError::database(&path, error),
    })
}

/// The time so long before now; none where that is before 1970.
fn before(now_ms: u64, age_ms: u64) -> Option<i64> {
    now_ms.checked_sub(age_ms).map(time)
}

/// A time that sorts as it should; the latest that there is where it is beyond.
fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[expect(clippy::unnecessary_wraps, reason = "in the place of a result of a transaction")]
fn count(rows: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}

fn apply(
    transaction: &Transaction<'_>,
    limits: &StoreLimits,
    change: &Change,
    spans: &mut Spans,
) -> rusqlite::Result<()> {
    match change {
        Change::Epoch(state) => {
            let place = apply_epoch(transaction, limits, state)?;
            spans.add(place, &state.epoch.latest.snapshot);
            Ok(())
        }
        Change::Pfc(state) => pfc::write(transaction, limits, state),
        // Taken by who has their tally.
        Change::Queue(_) => Ok(()),
        Change::SessionClosed { session, closed_ms, reason } => {
            end_epochs(transaction, Some(*session), *closed_ms)?;
            let mut close = transaction.prepare_cached(
                "UPDATE sessions SET closed_ms = ?2, reason = ?3 WHERE id = ?1 AND closed_ms IS NULL",
            )?;
            close.execute(params![signed(session.0), signed(*closed_ms), reason])?;
            marks::forget(transaction, *session)
        }
        Change::Refused { session, domain, kind, records } => {
            let mut add = transaction.prepare_cached(
                "INSERT INTO refusals (session, domain, kind, records) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO UPDATE SET records = records + excluded.records",
            )?;
            add.execute(params![signed(session.0), domain, kind, signed(*records)]).map(drop)
        }
        Change::CollectorDrop { session, domain, records } => {
            let mut add = transaction.prepare_cached(
                "INSERT INTO collector_drops (session, domain, records) VALUES (?1, ?2, ?3) \
                 ON CONFLICT DO UPDATE SET records = records + excluded.records",
            )?;
            add.execute(params![signed(session.0), domain, signed(*records)]).map(drop)
        }
    }
}

fn apply_epoch(
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
struct Spans(BTreeMap<i64, (i64, i64)>);

impl Spans {
    fn add(&mut self, place: i64, snapshot: &Snapshot) {
        let (first, last) = (time(snapshot.start_ms), time(snapshot.end_ms));
        let span = self.0.entry(place / schema::BLOCK).or_insert((first, last));
        *span = (span.0.min(first), span.1.max(last));
    }

    fn write(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
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
fn end_epochs(
    transaction: &Transaction<'_>,
    session: Option<SessionId>,
    now_ms: u64,
) -> rusqlite::Result<u64> {
    let of = if session.is_some() { "AND session = ?1" } else { "AND ?1 IS NULL" };
    let mut find = transaction.prepare_cached(&format!(
        "SELECT {EPOCH_COLUMNS}, readings FROM epochs WHERE outcome = 'active' {of} \
         ORDER BY session, id LIMIT {REMOVED_AT_A_TIME}"
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

/// Takes out results that were last changed before a time, the oldest first, at most so many. Says how many epochs and readings went.
fn remove_epochs(
    transaction: &Transaction<'_>,
    before_ms: i64,
    most: i64,
) -> rusqlite::Result<(u64, u64)> {
    transaction.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS old (id INTEGER PRIMARY KEY); DELETE FROM old",
    )?;
    transaction.execute(
        "INSERT INTO old SELECT id FROM epochs WHERE outcome <> 'active' AND updated_ms < ?1 \
         ORDER BY updated_ms LIMIT ?2",
        [before_ms, most],
    )?;
    let readings =
        transaction.execute("DELETE FROM history WHERE epoch IN (SELECT id FROM old)", [])?;
    let epochs = transaction.execute("DELETE FROM epochs WHERE id IN (SELECT id FROM old)", [])?;
    transaction.execute(
        "DELETE FROM blocks WHERE number IN (SELECT id / ?1 FROM old) AND NOT EXISTS (SELECT 1 \
         FROM epochs WHERE epochs.id BETWEEN number * ?1 AND number * ?1 + ?1 - 1)",
        [schema::BLOCK],
    )?;
    Ok((count(epochs)?, count(readings)?))
}

/// Takes out sessions that were closed before a time and have no epoch left.
fn remove_sessions(transaction: &Transaction<'_>, before_ms: i64) -> rusqlite::Result<u64> {
    const OLD: &str = "closed_ms < ?1 AND NOT EXISTS \
        (SELECT 1 FROM epochs WHERE epochs.session = sessions.id) AND NOT EXISTS \
        (SELECT 1 FROM pfc_counters WHERE pfc_counters.session = sessions.id)";
    for table in ["refusals", "collector_drops", "outcomes", "pfc_counts"] {
        let sql =
            format!("DELETE FROM {table} WHERE session IN (SELECT id FROM sessions WHERE {OLD})");
        transaction.execute(&sql, [before_ms])?;
    }
    count(transaction.execute(&format!("DELETE FROM sessions WHERE {OLD}"), [before_ms])?)
}
