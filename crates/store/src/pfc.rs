//! PFC counters in the database: the latest reading of each and the one before it, some of its
//! readings for charts, and how they are found again.
//!
//! What lies between two readings is not kept: it follows from them, from what their exporter says
//! of the counter and from the rules of the session, and `observe::pfc::interval` says it each time.
//! A counter of which nothing arrived has no row.
// PFC-op.1

use observe::pfc::collect::{Counter, Doubt};
use observe::pfc::instance::InstanceId;
use observe::pfc::interval::{Interval, Known, Reason, Sighting};
use observe::pfc::record::FurtherScope;
use observe::pfc::{Direction, Priority, Reading, Scope};
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};

use crate::row::{narrow, signed, unsigned};
use crate::{PfcRules, SessionId, StoreLimits};

/// A counter as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcState {
    /// Its Transport Session.
    pub session: SessionId,
    /// Its number in the session, which never changes.
    pub number: u64,
    /// What is known of it.
    pub counter: Counter,
    /// When its latest reading was received, milliseconds since 1970.
    pub received_ms: u64,
}

/// A counter as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcRow {
    /// Its place in the listing; a cursor, and its name.
    pub place: u64,
    /// What is known of it.
    pub state: PfcState,
    /// Whose session it is.
    pub peer: String,
    /// Whether that session is open.
    pub is_open: bool,
}

/// A stored reading of a counter, for a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcPoint {
    /// When it was received, milliseconds since 1970.
    pub received_ms: u64,
    /// The reading, and what is known of it.
    pub sighting: Sighting,
    /// Its number among the readings of the counter.
    pub number: u64,
    /// As [`Counter::unbroken`].
    pub unbroken: u64,
}

impl PfcPoint {
    /// What was counted between two readings that are kept. Those between them that are not kept
    /// can speak against it.
    // PFC-sem.2
    #[must_use]
    pub fn since(&self, before: &Self) -> Interval {
        let follows = self.number.checked_sub(before.number) == Some(1);
        if follows || self.unbroken <= before.number {
            Interval::between(&before.sighting, &self.sighting)
        } else {
            Interval::Unknown(Reason::Broken)
        }
    }
}

/// Which counters are asked for; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PfcFilter {
    /// The peer that exported it.
    pub exporter: Option<String>,
    /// Its Observation Domain.
    pub domain: Option<u32>,
    /// Its interface.
    pub interface: Option<u32>,
    /// Its direction.
    pub direction: Option<Direction>,
    /// Its priority.
    pub priority: Option<u8>,
    /// With a latest reading that was taken at this time or later, milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// With a latest reading that was taken before this time, milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// With a latest reading that was received at this time or later, milliseconds since 1970.
    pub heard_since_ms: Option<u64>,
    /// With any reading that is kept and was taken at this time or later, milliseconds since 1970:
    /// the latest one need not be, where a clock was set back.
    pub kept_since_ms: Option<u64>,
    /// Only those of sessions that are open.
    pub open_only: bool,
    /// At most so many; 0 gives none.
    pub limit: usize,
    /// Behind this place.
    pub cursor: Option<u64>,
}

/// What version 3 has beside version 2.
pub(crate) const TABLES: &str = "
CREATE TABLE pfc_counters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id),
    number INTEGER NOT NULL,
    domain INTEGER NOT NULL,
    point INTEGER NOT NULL,
    interface INTEGER NOT NULL,
    transmitted INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    further BLOB NOT NULL,
    time_ms INTEGER NOT NULL,
    total INTEGER NOT NULL,
    instance INTEGER,
    earlier_time_ms INTEGER,
    earlier_total INTEGER,
    earlier_instance INTEGER,
    readings INTEGER NOT NULL,
    unbroken INTEGER NOT NULL,
    received_ms INTEGER NOT NULL,
    point_ms INTEGER NOT NULL,
    points INTEGER NOT NULL,
    UNIQUE (session, number)
);
CREATE INDEX pfc_counters_interface ON pfc_counters (interface, id);
CREATE TABLE pfc_history (
    counter INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    received_ms INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    total INTEGER NOT NULL,
    instance INTEGER,
    number INTEGER NOT NULL,
    unbroken INTEGER NOT NULL,
    PRIMARY KEY (counter, slot)
) WITHOUT ROWID;
CREATE INDEX pfc_history_received ON pfc_history (received_ms);
CREATE TABLE pfc_counts (
    session INTEGER PRIMARY KEY,
    counters INTEGER NOT NULL
);
CREATE TRIGGER pfc_counters_came AFTER INSERT ON pfc_counters BEGIN
    INSERT INTO pfc_counts VALUES (new.session, 1)
        ON CONFLICT DO UPDATE SET counters = counters + 1;
END;
CREATE TRIGGER pfc_counters_went AFTER DELETE ON pfc_counters BEGIN
    UPDATE pfc_counts SET counters = counters - 1 WHERE session = old.session;
END;
";

/// What version 5 has beside version 4: whose session a counter is of stands beside it, so that the
/// counters of an exporter are found in the order of the listing, all together or of one interface.
pub(crate) const FROM_4: &str = "
ALTER TABLE pfc_counters ADD COLUMN exporter TEXT NOT NULL DEFAULT '';
UPDATE pfc_counters SET exporter = coalesce(
    (SELECT json_extract(facts, '$.peer') FROM sessions WHERE sessions.id = session), '');
CREATE INDEX pfc_counters_exporter
    ON pfc_counters (exporter, id, transmitted, priority, domain);
CREATE INDEX pfc_counters_port
    ON pfc_counters (exporter, interface, id, transmitted, priority, domain);
";

const COLUMNS: &str = "c.id, c.session, c.number, c.domain, c.point, c.interface, c.transmitted, \
     c.priority, c.further, c.time_ms, c.total, c.instance, c.earlier_time_ms, c.earlier_total, \
     c.earlier_instance, c.readings, c.received_ms, json_extract(s.facts, '$.peer'), c.unbroken, \
     s.closed_ms IS NULL";

/// Which instance a reading named. Known of it is nothing else that is kept.
fn instance(sighting: &Sighting) -> Option<i64> {
    sighting.known.instance.map(signed)
}

/// Writes how a counter stands, and its reading for charts where it is time for one.
pub(crate) fn write(
    transaction: &Transaction<'_>,
    limits: &StoreLimits,
    state: &PfcState,
) -> rusqlite::Result<()> {
    let Counter { latest, readings, unbroken, .. } = &state.counter;
    let (place, point_ms, points) = match stand(transaction, state)? {
        Some(found) => found,
        None => {
            insert(transaction, state)?;
            stand(transaction, state)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?
        }
    };
    let due =
        points == 0 || state.received_ms.saturating_sub(point_ms) >= limits.pfc_history_interval_ms;
    if due && limits.pfc_history_per_counter_max > 0 {
        let slot = points % limits.pfc_history_per_counter_max;
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO pfc_history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                place,
                signed(slot),
                signed(state.received_ms),
                signed(latest.reading.time_ms),
                signed(latest.reading.total),
                instance(latest),
                signed(*readings),
                signed(*unbroken),
            ])?;
        transaction
            .prepare_cached("UPDATE pfc_counters SET point_ms = ?2, points = ?3 WHERE id = ?1")?
            .execute([place, signed(state.received_ms), signed(points.saturating_add(1))])?;
    }
    Ok(())
}

/// Writes how a counter stands, where it has a row: its place, the time of its latest point, and how
/// many points there were.
fn stand(
    transaction: &Transaction<'_>,
    state: &PfcState,
) -> rusqlite::Result<Option<(i64, u64, u64)>> {
    let Counter { earlier, latest, readings, unbroken, .. } = &state.counter;
    let before = earlier.map(|e| (signed(e.reading.time_ms), signed(e.reading.total)));
    let mut update = transaction.prepare_cached(
        "UPDATE pfc_counters SET time_ms = ?3, total = ?4, instance = ?5, earlier_time_ms = ?6, \
         earlier_total = ?7, earlier_instance = ?8, readings = ?9, received_ms = ?10, \
         unbroken = ?11 WHERE session = ?1 AND number = ?2 RETURNING id, point_ms, points",
    )?;
    let standing = params![
        signed(state.session.0),
        signed(state.number),
        signed(latest.reading.time_ms),
        signed(latest.reading.total),
        instance(latest),
        before.map(|(time, _)| time),
        before.map(|(_, total)| total),
        earlier.as_ref().and_then(instance),
        signed(*readings),
        signed(state.received_ms),
        signed(*unbroken),
    ];
    let found = update
        .query_map(standing, |row| Ok((row.get(0)?, unsigned(row, 1)?, unsigned(row, 2)?)))?;
    // One at most; the statement is to come to its end.
    found.last().transpose()
}

/// Writes what never changes of a counter, and places for what does.
fn insert(transaction: &Transaction<'_>, state: &PfcState) -> rusqlite::Result<()> {
    let scope = &state.counter.latest.reading.scope;
    let done = transaction
        .prepare_cached(
            "INSERT INTO pfc_counters (session, number, domain, point, interface, transmitted, \
             priority, further, time_ms, total, readings, received_ms, unbroken, point_ms, points, \
             exporter) \
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0, 0, 0, 0, 0, \
             coalesce((SELECT json_extract(facts, '$.peer') FROM sessions WHERE id = ?1), '')",
        )?
        .execute(params![
            signed(state.session.0),
            signed(state.number),
            scope.domain,
            signed(scope.point),
            scope.interface,
            scope.direction == Direction::Transmitted,
            scope.priority.get(),
            state.counter.further.octets(),
        ]);
    done.map(drop)
}

/// Forgets the instance of what is kept of a counter in a session, or all of its instances: of
/// readings for charts, and where it is said so of the latest ones.
// PFC-sem.2
pub(crate) fn doubt(
    transaction: &Transaction<'_>,
    [session, number]: [u64; 2],
    instance: Option<u64>,
    latest: bool,
) -> rusqlite::Result<()> {
    let (session, number, instance) = (signed(session), signed(number), instance.map(signed));
    transaction
        .prepare_cached(
            "UPDATE pfc_history SET instance = NULL WHERE instance = coalesce(?3, instance) AND \
             counter = (SELECT id FROM pfc_counters WHERE session = ?1 AND number = ?2)",
        )?
        .execute(params![session, number, instance])?;
    if latest {
        transaction
            .prepare_cached(
                "UPDATE pfc_counters SET instance = nullif(instance, coalesce(?3, instance)), \
                 earlier_instance = nullif(earlier_instance, coalesce(?3, earlier_instance)) \
                 WHERE session = ?1 AND number = ?2",
            )?
            .execute(params![session, number, instance])?;
    }
    Ok(())
}

fn known(id: Option<i64>, time_ms: u64, rules: &PfcRules) -> Known {
    let id = id.map(i64::cast_unsigned).and_then(InstanceId::new);
    id.map_or_else(Known::default, |id| id.known(time_ms, rules.pace))
}

/// A counter as it stands in a row; `rules` are those of its session.
fn counter(row: &Row<'_>, rules: &dyn Fn(SessionId) -> PfcRules) -> rusqlite::Result<PfcRow> {
    let wrong = |column, what: &str| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, what.into())
    };
    let session = SessionId(unsigned(row, 1)?);
    let rules = rules(session);
    let priority = Priority::new(narrow(row, 7)?).ok_or_else(|| wrong(7, "a priority above 7"))?;
    let direction = match row.get(6)? {
        true => Direction::Transmitted,
        false => Direction::Received,
    };
    let scope = Scope {
        domain: narrow(row, 3)?,
        point: unsigned(row, 4)?,
        interface: narrow(row, 5)?,
        direction,
        priority,
    };
    let sighting = |time_ms: u64, total: u64, id: Option<i64>| Sighting {
        reading: Reading { scope, time_ms, total },
        known: known(id, time_ms, &rules),
    };
    let earlier: Option<(i64, i64)> =
        row.get::<_, Option<i64>>(12)?.zip(row.get::<_, Option<i64>>(13)?);
    let earlier_id = row.get(14)?;
    let counter = Counter {
        further: FurtherScope::from_octets(row.get(8)?),
        earlier: earlier.map(|(time_ms, total)| {
            sighting(time_ms.cast_unsigned(), total.cast_unsigned(), earlier_id)
        }),
        latest: sighting(unsigned(row, 9)?, unsigned(row, 10)?, row.get(11)?),
        readings: unsigned(row, 15)?,
        unbroken: unsigned(row, 18)?,
        doubted: Doubt::Nothing,
    };
    let received_ms = unsigned(row, 16)?;
    Ok(PfcRow {
        place: unsigned(row, 0)?,
        state: PfcState { session, number: unsigned(row, 2)?, counter, received_ms },
        peer: row.get(17)?,
        is_open: row.get(19)?,
    })
}

/// Those counters that are first in the listing: the newest first.
pub(crate) fn find(
    connection: &Connection,
    filter: &PfcFilter,
    most: usize,
    rules: &dyn Fn(SessionId) -> PfcRules,
) -> rusqlite::Result<Vec<PfcRow>> {
    let (sql, values) = question(filter, most);
    let mut query = connection.prepare_cached(&sql)?;
    let rows = query.query_map(params_from_iter(values), |row| counter(row, rules))?;
    rows.collect()
}

/// A place, as the last that sorts rightly where it is beyond.
fn last(place: u64) -> i64 {
    signed(place.min(i64::MAX.cast_unsigned()))
}

fn question(filter: &PfcFilter, most: usize) -> (String, Vec<Value>) {
    let mut sql = format!(
        "SELECT {COLUMNS} FROM pfc_counters c CROSS JOIN sessions s ON s.id = c.session WHERE "
    );
    let mut values: Vec<Value> = Vec::new();
    let mut add = |condition: &str, value: Value| {
        sql += condition;
        sql += " AND ";
        values.push(value);
    };
    if let Some(interface) = filter.interface {
        add("c.interface = ?", interface.into());
    }
    if let Some(exporter) = &filter.exporter {
        add("c.exporter = ?", exporter.clone().into());
    }
    if let Some(domain) = filter.domain {
        add("c.domain = ?", domain.into());
    }
    if let Some(direction) = filter.direction {
        add("c.transmitted = ?", i64::from(direction == Direction::Transmitted).into());
    }
    if let Some(priority) = filter.priority {
        add("c.priority = ?", priority.into());
    }
    // Times above 2^63 - 1 are negative here, and later than all others.
    if let Some(since) = filter.since_ms.map(signed) {
        let later = "(c.time_ms >= ? OR c.time_ms < 0)";
        add(if since < 0 { "c.time_ms BETWEEN ? AND -1" } else { later }, since.into());
    }
    if let Some(until) = filter.until_ms.map(signed) {
        let earlier = "(c.time_ms >= 0 AND c.time_ms < ?)";
        add(if until < 0 { "(c.time_ms >= 0 OR c.time_ms < ?)" } else { earlier }, until.into());
    }
    if let Some(since) = filter.heard_since_ms {
        add("c.received_ms >= ?", last(since).into());
    }
    if let Some(since) = filter.kept_since_ms.map(signed) {
        let later = |column: &str| match since < 0 {
            true => format!("{column} BETWEEN ? AND -1"),
            false => format!("({column} >= ? OR {column} < 0)"),
        };
        let (latest, earlier, kept) =
            (later("c.time_ms"), later("c.earlier_time_ms"), later("h.time_ms"));
        sql += &format!(
            "({latest} OR {earlier} OR EXISTS \
             (SELECT 1 FROM pfc_history h WHERE h.counter = c.id AND {kept})) AND "
        );
        values.extend([Value::from(since), since.into(), since.into()]);
    }
    if filter.open_only {
        sql += "c.session IN (SELECT id FROM sessions WHERE closed_ms IS NULL) AND ";
    }
    sql += "c.id < ? ORDER BY c.id DESC LIMIT ?";
    values.push(filter.cursor.map_or(i64::MAX, last).into());
    values.push(i64::try_from(most).unwrap_or(i64::MAX).into());
    (sql, values)
}

/// One counter, and its readings for charts, the oldest first.
pub(crate) fn history(
    connection: &Connection,
    session: SessionId,
    number: u64,
    rules: &dyn Fn(SessionId) -> PfcRules,
) -> rusqlite::Result<Option<(PfcRow, Vec<PfcPoint>)>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM pfc_counters c CROSS JOIN sessions s ON s.id = c.session \
         WHERE c.session = ? AND c.number = ?"
    );
    let mut query = connection.prepare_cached(&sql)?;
    let id = [signed(session.0), signed(number)];
    let found = query.query_map(id, |row| counter(row, rules))?.next().transpose()?;
    let Some(found) = found else { return Ok(None) };
    let scope = found.state.counter.latest.reading.scope;
    let of = rules(found.state.session);
    let mut query = connection.prepare_cached(
        "SELECT received_ms, time_ms, total, instance, number, unbroken FROM pfc_history \
         WHERE counter = ? \
         ORDER BY received_ms, slot",
    )?;
    let points = query.query_map([signed(found.place)], |row| {
        let (time_ms, total) = (unsigned(row, 1)?, unsigned(row, 2)?);
        let known = known(row.get(3)?, time_ms, &of);
        let reading = Reading { scope, time_ms, total };
        Ok(PfcPoint {
            received_ms: unsigned(row, 0)?,
            sighting: Sighting { reading, known },
            number: unsigned(row, 4)?,
            unbroken: unsigned(row, 5)?,
        })
    })?;
    let points = points.collect::<rusqlite::Result<_>>()?;
    Ok(Some((found, points)))
}

/// Counters of a session, or of all.
pub(crate) fn count(connection: &Connection, session: Option<SessionId>) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached(
        "SELECT coalesce(sum(counters), 0) FROM pfc_counts WHERE ?1 IS NULL OR session = ?1",
    )?;
    query.query_row([session.map(|id| signed(id.0))], |row| unsigned(row, 0))
}

/// Takes out readings for charts that were received before a time, the oldest first, at most so
/// many.
pub(crate) fn remove_points(
    transaction: &Transaction<'_>,
    before_ms: i64,
    most: i64,
) -> rusqlite::Result<usize> {
    transaction.execute(
        "DELETE FROM pfc_history WHERE (counter, slot) IN (SELECT counter, slot FROM pfc_history \
         WHERE received_ms < ?1 ORDER BY received_ms LIMIT ?2)",
        [before_ms, most],
    )
}

/// Takes out counters of closed sessions whose latest reading was received before a time, at most
/// so many. Says how many counters and readings went.
pub(crate) fn remove_counters(
    transaction: &Transaction<'_>,
    before_ms: i64,
    most: i64,
) -> rusqlite::Result<(usize, usize)> {
    transaction.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS old_pfc (id INTEGER PRIMARY KEY); DELETE FROM old_pfc",
    )?;
    transaction.execute(
        "INSERT INTO old_pfc SELECT c.id FROM pfc_counters c CROSS JOIN sessions s \
         ON s.id = c.session WHERE s.closed_ms IS NOT NULL AND c.received_ms < ?1 \
         ORDER BY c.id LIMIT ?2",
        [before_ms, most],
    )?;
    let points = transaction
        .execute("DELETE FROM pfc_history WHERE counter IN (SELECT id FROM old_pfc)", [])?;
    let counters =
        transaction.execute("DELETE FROM pfc_counters WHERE id IN (SELECT id FROM old_pfc)", [])?;
    Ok((counters, points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn a_filter_by_exporter_or_interface_looks_at_no_other_counter_and_sorts_none() {
        let name = format!("find-pfc-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let connection = schema::writer(&path).unwrap();
        for (exporter, interface, index, found) in [
            (None, None, "INTEGER PRIMARY KEY", "rowid<?"),
            (Some("a"), None, "INDEX pfc_counters_exporter", "exporter=? AND id<?"),
            (None, Some(3), "INDEX pfc_counters_interface", "interface=? AND id<?"),
            (Some("a"), Some(3), "INDEX pfc_counters_port", "exporter=? AND interface=? AND id<?"),
        ] {
            let exporter = exporter.map(str::to_owned);
            let filter = PfcFilter { exporter, interface, ..PfcFilter::default() };
            let (sql, values) = question(&filter, 10);
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let lines = explain.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
            let plan: Vec<String> = lines.collect::<rusqlite::Result<_>>().unwrap();
            let expected = format!("SEARCH c USING {index} ({found})");
            assert_eq!(plan[0], expected, "{filter:?}");
            assert!(plan.iter().all(|line| !line.contains("TEMP B-TREE")), "{plan:?}");
        }
        drop(connection);
        std::fs::remove_file(&path).unwrap();
    }
}
