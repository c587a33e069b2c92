//! The one writer of the database: transactions, and recovery at open.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use observe::outcome::Outcome;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};

use crate::archive::Mark;
use crate::epoch::{self, Spans};
use crate::row::{self, count, signed};
use crate::{
    Change, Reader, SessionFacts, SessionId, StoreError, StoreLimits, marks, pfc, queue, schema,
};

/// The database of results in a directory of which it is the only writer.
#[derive(Debug)]
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) limits: StoreLimits,
    pub(crate) connection: Connection,
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
            | Change::PfcDoubted { .. }
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
            let epochs_incomplete = epoch::end(transaction, None, now_ms)?;
            let closed = transaction.execute(
                "UPDATE sessions SET closed_ms = ?1, reason = ?2 WHERE closed_ms IS NULL",
                params![signed(now_ms), RESTARTED],
            )?;
            Ok(Recovery { sessions_closed: count(closed)?, epochs_incomplete })
        })
    }

    /// Runs one transaction; it is on the disk when this returns, if it has to be.
    pub(crate) fn transaction<T>(
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

fn apply(
    transaction: &Transaction<'_>,
    limits: &StoreLimits,
    change: &Change,
    spans: &mut Spans,
) -> rusqlite::Result<()> {
    match change {
        Change::Epoch(state) => {
            let place = epoch::apply(transaction, limits, state)?;
            spans.add(place, &state.epoch.latest.snapshot);
            Ok(())
        }
        Change::Pfc(state) => pfc::write(transaction, limits, state),
        Change::PfcDoubted { session, number, instance, latest } => {
            pfc::doubt(transaction, [session.0, *number], *instance, *latest)
        }
        // Taken by who has their tally.
        Change::Queue(_) => Ok(()),
        Change::SessionClosed { session, closed_ms, reason } => {
            epoch::end(transaction, Some(*session), *closed_ms)?;
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
