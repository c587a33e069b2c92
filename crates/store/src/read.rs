//! Reading beside the writer: a connection of its own sees the last finished transaction.

use std::path::{Path, PathBuf};

use observe::outcome::Outcome;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use crate::find::{self, EpochFilter};
use crate::pfc::{self, PfcFilter, PfcPoint, PfcRow};
use crate::queue::{
    self, QueueDeviceRow, QueueFilter, QueueGroup, QueueHistoryRow, QueuePage, QueueRow,
};
use crate::row::{self, EPOCH_COLUMNS, EpochRow, HISTORY_COLUMNS, HistoryRow, signed};
use crate::{PfcRules, SessionFacts, SessionId, StoreError, schema};

/// Steps of SQLite between two looks whether it is to be given up; a step takes some nanoseconds.
const STEPS: i32 = 10_000;

/// Of all sessions. There are four rows a session.
const ALL_OUTCOMES: &str =
    "SELECT outcome, sum(epochs) FROM outcomes GROUP BY outcome HAVING sum(epochs) > 0";

const OUTCOMES: &str = "SELECT outcome, epochs FROM outcomes WHERE session = ? AND epochs > 0";

/// A reader of the database.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    connection: Connection,
}

/// A part of a listing, the newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The cursor for what follows; none at the end.
    pub next: Option<u64>,
}

/// A Transport Session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub session: SessionId,
    /// What was known at its start.
    pub facts: SessionFacts,
    /// When it was closed, milliseconds since 1970; none while it is open.
    pub closed_ms: Option<u64>,
    /// Why it was closed.
    pub reason: Option<String>,
}

/// Records of a session and domain that were refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Their Observation Domain.
    pub domain: u32,
    /// Word for the kind of verdict.
    pub kind: String,
    /// How many.
    pub records: u64,
}

impl Reader {
    /// Reads the database at a path, which another process may be writing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { path: path.to_owned(), connection: schema::reader(path)? })
    }

    /// Where the database of a store is, in the store's directory.
    #[must_use]
    pub fn path_in(directory: &Path) -> PathBuf {
        directory.join(schema::DATABASE)
    }

    /// Epochs that a filter lets through, those first that were heard of last.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn epochs(&self, filter: &EpochFilter) -> Result<Page<EpochRow>, StoreError> {
        // One more than asked for shows whether something follows.
        let rows = find::epochs(&self.connection, filter, filter.limit.saturating_add(1))
            .map_err(|error| StoreError::database(&self.path, error))?;
        Ok(page(rows, filter.limit, |row| row.place))
    }

    /// Sessions, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn sessions(
        &self,
        limit: usize,
        cursor: Option<u64>,
    ) -> Result<Page<SessionRow>, StoreError> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let below = cursor.map_or(i64::MAX, |id| signed(id.min(i64::MAX.cast_unsigned())));
        let rows = self.list(
            "SELECT id, facts, closed_ms, reason FROM sessions WHERE id < ? ORDER BY id DESC LIMIT ?",
            vec![below.into(), most.into()],
            |row| {
                let closed: Option<i64> = row.get(2)?;
                Ok((row::unsigned(row, 0)?, row.get::<_, String>(1)?, closed, row.get(3)?))
            },
        )?;
        let rows = rows.into_iter().map(|(id, facts, closed, reason)| {
            let value = serde_json::from_str(&facts).ok();
            let facts = value.and_then(|value| SessionFacts::from_json(&value));
            let content = || StoreError::Content {
                path: self.path.clone(),
                what: format!("the facts of session {id} cannot be read"),
            };
            Ok(SessionRow {
                session: SessionId(id),
                facts: facts.ok_or_else(content)?,
                closed_ms: closed.map(i64::cast_unsigned),
                reason,
            })
        });
        Ok(page(rows.collect::<Result<_, _>>()?, limit, |row| row.session.0))
    }

    /// The readings of one epoch, the oldest first; at most as many as are kept of one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn history(
        &self,
        session: SessionId,
        domain: u32,
        epoch_id: u64,
    ) -> Result<Vec<HistoryRow>, StoreError> {
        let sql = format!(
            "SELECT {HISTORY_COLUMNS} FROM history WHERE epoch = \
             (SELECT id FROM epochs WHERE session = ? AND domain = ? AND epoch_id = ?) \
             ORDER BY number"
        );
        let id = vec![signed(session.0).into(), domain.into(), signed(epoch_id).into()];
        self.list(&sql, id, row::history)
    }

    /// One epoch.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn epoch(
        &self,
        session: SessionId,
        domain: u32,
        epoch_id: u64,
    ) -> Result<Option<EpochRow>, StoreError> {
        let sql = format!(
            "SELECT {EPOCH_COLUMNS} FROM epochs WHERE session = ? AND domain = ? AND epoch_id = ?"
        );
        let id: Vec<Value> = vec![signed(session.0).into(), domain.into(), signed(epoch_id).into()];
        self.connection
            .prepare_cached(&sql)
            .and_then(|mut query| query.query_row(params_from_iter(id), row::epoch).optional())
            .map_err(|error| StoreError::database(&self.path, error))
    }

    /// How many epochs there are of each outcome that any has.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn counts_by_outcome(&self) -> Result<Vec<(Outcome, u64)>, StoreError> {
        self.list(ALL_OUTCOMES, Vec::new(), |row| {
            Ok((row::outcome(row, 0)?, row::unsigned(row, 1)?))
        })
    }

    /// How many epochs of a session there are of each outcome that any has.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn outcomes(&self, session: SessionId) -> Result<Vec<(Outcome, u64)>, StoreError> {
        self.list(OUTCOMES, vec![signed(session.0).into()], |row| {
            Ok((row::outcome(row, 0)?, row::unsigned(row, 1)?))
        })
    }

    /// How many sessions are open, and how many closed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn counts_of_sessions(&self) -> Result<(u64, u64), StoreError> {
        let number = |sql| {
            let number = self.connection.query_row(sql, [], |row| row::unsigned(row, 0));
            number.map_err(|error| StoreError::database(&self.path, error))
        };
        let open = number("SELECT count(*) FROM sessions WHERE closed_ms IS NULL")?;
        let all = number("SELECT count(*) FROM sessions")?;
        Ok((open, all.saturating_sub(open)))
    }

    /// What was refused of all sessions that are stored, by the word for the kind of verdict.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn refusals_by_kind(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.list(
            "SELECT kind, sum(records) FROM refusals GROUP BY kind ORDER BY kind",
            Vec::new(),
            |row| Ok((row.get(0)?, row::unsigned(row, 1)?)),
        )
    }

    /// Records of all sessions that are stored that the collector itself dropped.
    ///
    /// # Errors
    /// [`StoreError`].
    // SEQ-7.15
    pub fn all_collector_drops(&self) -> Result<u64, StoreError> {
        let drops: Vec<u64> = self.list(
            "SELECT coalesce(sum(records), 0) FROM collector_drops",
            Vec::new(),
            |row| row::unsigned(row, 0),
        )?;
        Ok(drops.into_iter().sum())
    }

    /// PFC counters that a filter lets through, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    // PFC-op.1
    pub fn pfc_counters(&self, filter: &PfcFilter) -> Result<Page<PfcRow>, StoreError> {
        // One more than asked for shows whether something follows.
        let most = filter.limit.saturating_add(1);
        let rules = self.pfc_rules();
        let rows = pfc::find(&self.connection, filter, most, &rules)
            .map_err(|error| StoreError::database(&self.path, error))?;
        Ok(page(rows, filter.limit, |row| row.place))
    }

    /// One PFC counter by its number in its session, and its readings for charts, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn pfc_history(
        &self,
        session: SessionId,
        number: u64,
    ) -> Result<Option<(PfcRow, Vec<PfcPoint>)>, StoreError> {
        pfc::history(&self.connection, session, number, &self.pfc_rules())
            .map_err(|error| StoreError::database(&self.path, error))
    }

    /// How many PFC counters of a session there are, or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn pfc_count(&self, session: Option<SessionId>) -> Result<u64, StoreError> {
        pfc::count(&self.connection, session)
            .map_err(|error| StoreError::database(&self.path, error))
    }

    /// Queues that a filter lets through, and how each stands, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    // QUE-con.1
    pub fn queues(&self, filter: &QueueFilter) -> Result<QueuePage<QueueRow>, StoreError> {
        queue::queues(&self.connection, filter)
            .map_err(|error| StoreError::database(&self.path, error))
    }

    /// Accepted rows of queues that a filter lets through, the latest epoch first and in it the
    /// latest row.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn queue_rows(
        &self,
        filter: &QueueFilter,
    ) -> Result<QueuePage<QueueHistoryRow>, StoreError> {
        queue::rows(&self.connection, filter)
            .map_err(|error| StoreError::database(&self.path, error))
    }

    /// The rows that a filter lets through, to be summed within each epoch, the latest epoch first.
    /// A page ends where it has the limit of groups, or, but for the first, so many rows.
    ///
    /// # Errors
    /// [`StoreError`].
    // QUE-con.2
    pub fn queue_groups(
        &self,
        filter: &QueueFilter,
        rows_max: u64,
    ) -> Result<QueuePage<QueueGroup>, StoreError> {
        queue::aggregate(&self.connection, filter, rows_max)
            .map_err(|error| StoreError::database(&self.path, error))
    }

    /// Devices of which anything of queues was ever stored, and what became of it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn queue_devices(&self) -> Result<Vec<QueueDeviceRow>, StoreError> {
        queue::devices(&self.connection).map_err(|error| StoreError::database(&self.path, error))
    }

    /// What is known of the PFC counters of sessions, each looked up once. Of a session whose facts
    /// cannot be read nothing is known.
    fn pfc_rules(&self) -> impl Fn(SessionId) -> PfcRules {
        let known = std::cell::RefCell::new(std::collections::BTreeMap::new());
        move |session: SessionId| {
            *known.borrow_mut().entry(session).or_insert_with(|| {
                let facts: Option<String> = self
                    .connection
                    .prepare_cached("SELECT facts FROM sessions WHERE id = ?")
                    .and_then(|mut query| query.query_row([signed(session.0)], |row| row.get(0)))
                    .ok();
                let value = facts.and_then(|facts| serde_json::from_str(&facts).ok());
                let facts = value.and_then(|value| SessionFacts::from_json(&value));
                facts.map_or_else(PfcRules::default, |facts| facts.rules.pfc)
            })
        }
    }

    /// Octets of the database that hold something, without its write-ahead log.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn octets(&self) -> Result<u64, StoreError> {
        let number = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row::unsigned(row, 0))
                .map_err(|error| StoreError::database(&self.path, error))
        };
        let used = number("page_count")?.saturating_sub(number("freelist_count")?);
        Ok(used.saturating_mul(number("page_size")?))
    }

    /// From now on, whatever is read ends with [`StoreError::GivenUp`] soon after this says so.
    pub fn give_up_when(&self, over: impl FnMut() -> bool + Send + 'static) {
        self.connection.progress_handler(STEPS, Some(over));
    }

    /// What was refused of a session.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn refusals(&self, session: SessionId) -> Result<Vec<Refusal>, StoreError> {
        self.list(
            "SELECT domain, kind, records FROM refusals WHERE session = ? ORDER BY domain, kind",
            vec![signed(session.0).into()],
            |row| {
                let (domain, kind) = (row::narrow(row, 0)?, row.get(1)?);
                Ok(Refusal { domain, kind, records: row::unsigned(row, 2)? })
            },
        )
    }

    /// Records of a session that the collector itself dropped, by domain.
    ///
    /// # Errors
    /// [`StoreError`].
    // SEQ-7.15
    pub fn collector_drops(&self, session: SessionId) -> Result<Vec<(u32, u64)>, StoreError> {
        self.list(
            "SELECT domain, records FROM collector_drops WHERE session = ? ORDER BY domain",
            vec![signed(session.0).into()],
            |row| Ok((row::narrow(row, 0)?, row::unsigned(row, 1)?)),
        )
    }

    fn list<T>(
        &self,
        sql: &str,
        values: Vec<Value>,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut query| query.query_map(params_from_iter(values), read)?.collect())
            .map_err(|error| StoreError::database(&self.path, error))
    }
}

fn page<T>(mut rows: Vec<T>, limit: usize, place: impl Fn(&T) -> u64) -> Page<T> {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(place);
    Page { rows, next }
}
