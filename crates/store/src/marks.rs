//! How far the results of a session have come in its archive: noted in the transaction that keeps
//! them, so that after a kill the archive can be cut to what the results were made of, and replaying
//! it finds these and no others.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, params};

use crate::SessionId;
use crate::archive::Mark;
use crate::row::{self, signed};

/// Made where it is not there: databases from before had none.
pub(crate) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS archive_marks (
    session INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL,
    octets INTEGER NOT NULL,
    clock_octets INTEGER NOT NULL
);
";

/// Notes how far a session has come.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    session: SessionId,
    mark: &Mark,
) -> rusqlite::Result<()> {
    let mut write = transaction
        .prepare_cached("INSERT OR REPLACE INTO archive_marks VALUES (?1, ?2, ?3, ?4)")?;
    let Mark { segment, octets, clock_octets } = *mark;
    write
        .execute(params![signed(session.0), signed(segment), signed(octets), signed(clock_octets)])
        .map(drop)
}

/// The session has ended, and so has its archive.
pub(crate) fn forget(transaction: &Transaction<'_>, session: SessionId) -> rusqlite::Result<()> {
    let mut forget = transaction.prepare_cached("DELETE FROM archive_marks WHERE session = ?1")?;
    forget.execute([signed(session.0)]).map(drop)
}

/// Those of sessions that did not end in order.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<BTreeMap<SessionId, Mark>> {
    let mut query =
        connection.prepare("SELECT session, segment, octets, clock_octets FROM archive_marks")?;
    let mark = |row: &rusqlite::Row<'_>| {
        let [session, segment, octets, clock_octets] =
            [0, 1, 2, 3].map(|column| row::unsigned(row, column));
        let mark = Mark { segment: segment?, octets: octets?, clock_octets: clock_octets? };
        Ok((SessionId(session?), mark))
    };
    query.query_map([], mark)?.collect()
}
