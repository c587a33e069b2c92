//! The tables, and what every connection is set to.
//!
//! Unsigned 64-bit numbers stand as SQLite's signed ones with the same bits: all of them come back
//! as they were, and only those above 2^63 - 1, which no honest counter reaches, sort wrongly.
//!
//! Every index by which epochs are found holds their place next to what it is for, so that it gives
//! them in the order of the listing, and behind it all else that a filter may ask for, so that what
//! a filter keeps out is passed over without a look at its row.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::StoreError;

/// The database's file.
pub(crate) const DATABASE: &str = "results.db";

/// The version of the tables (`user_version`).
pub(crate) const VERSION: i64 = 5;

/// Readers wait this long for a writer in the rare moments when they have to.
const BUSY: Duration = Duration::from_secs(5);

/// Memory for pages of the writer, in KiB. A transaction that does not fit into it writes pages
/// before it ends, and many of them more than once.
const CACHE_KIB: i64 = 128 << 10;

/// Pages in the log after which they are written to where they belong: 64 MiB, as much as the log
/// keeps. The rarer that is, the fewer pages are written twice.
const CHECKPOINT_PAGES: i64 = 16 << 10;

const TABLES: &str = "
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    facts TEXT NOT NULL,
    opened_ms INTEGER NOT NULL,
    closed_ms INTEGER,
    reason TEXT
);
CREATE INDEX sessions_open ON sessions (id) WHERE closed_ms IS NULL;
CREATE TABLE epochs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id),
    domain INTEGER NOT NULL,
    epoch_id INTEGER NOT NULL,
    point INTEGER NOT NULL,
    source TEXT NOT NULL,
    destination TEXT NOT NULL,
    qp INTEGER NOT NULL,
    pkey INTEGER NOT NULL,
    outer_vlan INTEGER NOT NULL,
    inner_vlan INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    window INTEGER NOT NULL,
    start_ms INTEGER NOT NULL,
    report_id INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    filled INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    abandoned INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    repeated INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    unclassified_late INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    flags_seen INTEGER NOT NULL,
    heard_ms INTEGER NOT NULL,
    contradiction INTEGER,
    collector_drops INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    qualifications TEXT NOT NULL,
    reason TEXT,
    updated_ms INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    UNIQUE (session, domain, epoch_id)
);
CREATE INDEX epochs_active ON epochs (session) WHERE outcome = 'active';
CREATE INDEX epochs_closed ON epochs (updated_ms) WHERE outcome <> 'active';
CREATE TABLE history (
    epoch INTEGER NOT NULL,
    number INTEGER NOT NULL,
    received_ms INTEGER NOT NULL,
    report_id INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    filled INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    abandoned INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    repeated INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    unclassified_late INTEGER NOT NULL,
    PRIMARY KEY (epoch, number)
) WITHOUT ROWID;
CREATE INDEX history_received ON history (received_ms);
CREATE TABLE refusals (
    session INTEGER NOT NULL REFERENCES sessions (id),
    domain INTEGER NOT NULL,
    kind TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (session, domain, kind)
) WITHOUT ROWID;
CREATE TABLE collector_drops (
    session INTEGER NOT NULL REFERENCES sessions (id),
    domain INTEGER NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (session, domain)
) WITHOUT ROWID;
";

/// How many epochs one row of `blocks` speaks of: those whose place divided by this is its number.
pub(crate) const BLOCK: i64 = 1024;

/// What version 2 has beside version 1: see above for the indexes. `blocks` says what span of time
/// the epochs of a stretch of the listing lie in, as times that are not negative, so that a query
/// for a time passes over all others. `outcomes` counts, so that nobody has to.
const TABLES_OF_2: &str = "
CREATE INDEX epochs_outcome ON epochs (outcome, id, source, destination, qp);
CREATE INDEX epochs_source ON epochs (source, id, destination, qp, outcome);
CREATE INDEX epochs_destination ON epochs (destination, id, source, qp, outcome);
CREATE INDEX epochs_qp ON epochs (qp, id, source, destination, outcome);
CREATE TABLE blocks (
    number INTEGER PRIMARY KEY,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL
);
CREATE TABLE outcomes (
    session INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    epochs INTEGER NOT NULL,
    PRIMARY KEY (session, outcome)
) WITHOUT ROWID;
CREATE TRIGGER epochs_came AFTER INSERT ON epochs BEGIN
    INSERT INTO outcomes VALUES (new.session, new.outcome, 1)
        ON CONFLICT DO UPDATE SET epochs = epochs + 1;
END;
CREATE TRIGGER epochs_turned AFTER UPDATE OF outcome ON epochs WHEN old.outcome <> new.outcome BEGIN
    UPDATE outcomes SET epochs = epochs - 1 WHERE session = old.session AND outcome = old.outcome;
    INSERT INTO outcomes VALUES (new.session, new.outcome, 1)
        ON CONFLICT DO UPDATE SET epochs = epochs + 1;
END;
CREATE TRIGGER epochs_went AFTER DELETE ON epochs BEGIN
    UPDATE outcomes SET epochs = epochs - 1 WHERE session = old.session AND outcome = old.outcome;
END;
";

/// From version 1, with what is in it.
const FROM_1: &str = "
DROP INDEX epochs_outcome;
DROP INDEX epochs_source;
DROP INDEX epochs_destination;
DROP INDEX epochs_qp;
";

/// What [`TABLES_OF_2`] counts as it goes, of what is there already.
const COUNTED: &str = "
INSERT INTO outcomes SELECT session, outcome, count(*) FROM epochs GROUP BY session, outcome;
INSERT INTO blocks SELECT
    id / 1024,
    min(CASE WHEN start_ms < 0 THEN 9223372036854775807 ELSE start_ms END),
    max(CASE WHEN end_ms < 0 THEN 9223372036854775807 ELSE end_ms END)
FROM epochs GROUP BY id / 1024;
";

/// Opens the database for its one writer, and makes the tables where there are none.
pub(crate) fn writer(path: &Path) -> Result<Connection, StoreError> {
    let failed = |error| StoreError::database(path, error);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
    };
    match version(&connection).map_err(failed)? {
        0 => {
            // So that a file of which much was deleted can be made smaller.
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
            journal(&connection).map_err(failed)?;
            let tables = connection.transaction().map_err(failed)?;
            tables.execute_batch(TABLES).map_err(failed)?;
            tables.execute_batch(TABLES_OF_2).map_err(failed)?;
            tables.execute_batch(crate::pfc::TABLES).map_err(failed)?;
            tables.execute_batch(crate::queue::TABLES).map_err(failed)?;
            tables.execute_batch(crate::pfc::FROM_4).map_err(failed)?;
            tables.pragma_update(None, "user_version", VERSION).map_err(failed)?;
            tables.commit().map_err(failed)?;
        }
        old @ 1..VERSION => {
            journal(&connection).map_err(failed)?;
            let tables = connection.transaction().map_err(failed)?;
            let steps: [&[&str]; 4] = [
                &[FROM_1, TABLES_OF_2, COUNTED],
                &[crate::pfc::TABLES],
                &[crate::queue::TABLES],
                &[crate::pfc::FROM_4],
            ];
            let done = usize::try_from(old - 1).unwrap_or(steps.len());
            for part in steps.iter().skip(done).copied().flatten() {
                tables.execute_batch(part).map_err(failed)?;
            }
            tables.pragma_update(None, "user_version", VERSION).map_err(failed)?;
            tables.commit().map_err(failed)?;
        }
        VERSION => journal(&connection).map_err(failed)?,
        found => {
            let path = path.to_owned();
            return Err(StoreError::Version { path, found, expected: VERSION });
        }
    }
    connection.execute_batch(crate::marks::TABLE).map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(failed)?;
    // Pages by which one statement could be undone: half of the time goes into writing them to a
    // file. No statement of the writer's changes more than a thousand rows.
    connection.pragma_update(None, "temp_store", "MEMORY").map_err(failed)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

fn journal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // The log is cut to this after a large transaction.
    connection.pragma_update(None, "journal_size_limit", 64 << 20)
}

/// Opens the database for reading beside its writer.
pub(crate) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let failed = |error| StoreError::database(path, error);
    let connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}
