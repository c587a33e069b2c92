//! Reading beside the writer: a connection of its own sees the last finished transaction.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use observe::outcome::Outcome;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use crate::row::{self, EPOCH_COLUMNS, EpochRow, HISTORY_COLUMNS, HistoryRow, signed};
use crate::{SessionFacts, SessionId, StoreError, schema};

/// A reader of the database.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    connection: Connection,
}

/// Which epochs are asked for; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochFilter {
    /// Their outcome.
    pub outcome: Option<Outcome>,
    /// Their source address.
    pub source: Option<IpAddr>,
    /// Their destination address.
    pub destination: Option<IpAddr>,
    /// Their destination queue pair.
    pub qp: Option<u32>,
    /// With a request at this time or later, milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// With a request before this time, milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// At most so many; 0 gives none.
    pub limit: usize,
    /// Behind this place: [`Page::next`] of the page before.
    pub cursor: Option<u64>,
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

    /// Epochs that a filter lets through, those first that were heard of last.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn epochs(&self, filter: &EpochFilter) -> Result<Page<EpochRow>, StoreError> {
        let time = |ms: u64| signed(ms.min(i64::MAX.cast_unsigned()));
        let text = |address: IpAddr| Value::from(address.to_string());
        let conditions = [
            ("outcome = ?", filter.outcome.map(|o| Value::from(o.word().to_owned()))),
            ("source = ?", filter.source.map(text)),
            ("destination = ?", filter.destination.map(text)),
            ("qp = ?", filter.qp.map(Value::from)),
            // Times above 2^63 - 1 are negative here, and later than all others.
            ("(end_ms >= ? OR end_ms < 0)", filter.since_ms.map(|ms| time(ms).into())),
            ("start_ms BETWEEN 0 AND ? - 1", filter.until_ms.map(|ms| time(ms).into())),
            ("id < ?", filter.cursor.map(|place| time(place).into())),
        ];
        let (mut sql, mut values) = (format!("SELECT {EPOCH_COLUMNS} FROM epochs"), Vec::new());
        for (condition, value) in conditions {
            let Some(value) = value else { continue };
            sql += if values.is_empty() { " WHERE " } else { " AND " };
            sql += condition;
            values.push(value);
        }
        sql += " ORDER BY id DESC LIMIT ?";
        // One more than asked for shows whether something follows.
        values.push(i64::try_from(filter.limit).unwrap_or(i64::MAX).saturating_add(1).into());
        let rows = self.list(&sql, values, row::epoch)?;
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
        self.list("SELECT outcome, count(*) FROM epochs GROUP BY outcome", Vec::new(), |row| {
            Ok((row::outcome(row, 0)?, row::unsigned(row, 1)?))
        })
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
