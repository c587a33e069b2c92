//! What goes: by age, and by how much there is.

use rusqlite::Transaction;

use crate::row::{count, signed, time, unsigned};
use crate::{Store, StoreError, pfc, queue, schema};

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

impl Store {
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
                .pragma_query_value(None, name, |row| unsigned(row, 0))
                .map_err(|error| StoreError::database(&self.path, error))
        };
        let used = number("page_count")?.saturating_sub(number("freelist_count")?);
        Ok(used.saturating_mul(number("page_size")?))
    }
}

/// The time so long before now; none where that is before 1970.
fn before(now_ms: u64, age_ms: u64) -> Option<i64> {
    now_ms.checked_sub(age_ms).map(time)
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
