//! Finding epochs by a filter, in the order of the listing, without a look at those that a filter
//! keeps out: a time names the stretches of the listing that can have any, and of the indexes the
//! one is taken that has the fewest.

use std::net::IpAddr;

use observe::outcome::Outcome;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::row::{self, EPOCH_COLUMNS, EpochRow, signed};
use crate::schema::BLOCK;

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
    /// Behind this place: [`crate::Page::next`] of the page before.
    pub cursor: Option<u64>,
}

/// An index by which epochs can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Index {
    name: &'static str,
    column: &'static str,
}

/// How far the epochs of an index are counted to find the index that has the fewest.
const COUNTED: [u32; 2] = [2_048, 65_536];

/// Those epochs that are first in the listing.
///
/// # Errors
/// What the database said.
pub(crate) fn epochs(
    connection: &Connection,
    filter: &EpochFilter,
    most: usize,
) -> rusqlite::Result<Vec<EpochRow>> {
    // All statements see the same.
    let snapshot = connection.unchecked_transaction()?;
    let connection = &*snapshot;
    let mut found = Vec::new();
    let wanted = equal(filter);
    let Some(index) = fewest(connection, &wanted)? else { return Ok(found) };
    let last = filter.cursor.map_or(i64::MAX, |place| time(place).saturating_sub(1));
    let sql = statement(filter, index);
    for (first, last) in stretches(connection, filter, last)? {
        let room = most.saturating_sub(found.len());
        if room == 0 {
            break;
        }
        let mut values: Vec<Value> = wanted.iter().map(|(_, value)| value.clone()).collect();
        let times = [filter.since_ms, filter.until_ms];
        values.extend(times.into_iter().flatten().map(|ms| Value::from(signed(ms))));
        values.extend([first.into(), last.into()]);
        values.push(i64::try_from(room).unwrap_or(i64::MAX).into());
        let mut query = connection.prepare_cached(&sql)?;
        for epoch in query.query_map(params_from_iter(values), row::epoch)? {
            found.push(epoch?);
        }
    }
    Ok(found)
}

/// What has to be equal, by the index for it; those first that have fewer in most places.
fn equal(filter: &EpochFilter) -> Vec<(Index, Value)> {
    let text = |address: IpAddr| Value::from(address.to_string());
    let index = |name, column| Index { name, column };
    [
        (index("epochs_qp", "qp"), filter.qp.map(Value::from)),
        (index("epochs_destination", "destination"), filter.destination.map(text)),
        (index("epochs_source", "source"), filter.source.map(text)),
        (index("epochs_outcome", "outcome"), filter.outcome.map(|o| o.word().to_owned().into())),
    ]
    .into_iter()
    .filter_map(|(index, value)| Some((index, value?)))
    .collect()
}

/// The index that has the fewest of what is wanted: none where there is nothing, and none inside
/// where nothing has to be equal.
fn fewest(
    connection: &Connection,
    wanted: &[(Index, Value)],
) -> rusqlite::Result<Option<Option<Index>>> {
    let [(first, _), others @ ..] = wanted else { return Ok(Some(None)) };
    if others.is_empty() {
        return Ok(Some(Some(*first)));
    }
    for most in COUNTED {
        let mut best = (most, *first);
        for (index, value) in wanted {
            let mut count = connection.prepare_cached(&counting(*index))?;
            let found = count.query_row((value, most), |row| row.get(0))?;
            if found == 0 {
                return Ok(None);
            }
            if found < best.0 {
                best = (found, *index);
            }
        }
        if best.0 < most {
            return Ok(Some(Some(best.1)));
        }
    }
    Ok(Some(Some(*first)))
}

fn counting(Index { name, column }: Index) -> String {
    format!(
        "SELECT count(*) FROM (SELECT 1 FROM epochs INDEXED BY {name} WHERE {column} = ? LIMIT ?)"
    )
}

/// The statement for a filter; its values are those that have to be equal, the times, the first
/// and the last place, and how many.
fn statement(filter: &EpochFilter, index: Option<Index>) -> String {
    let by = index.map_or("NOT INDEXED".to_owned(), |index| format!("INDEXED BY {}", index.name));
    let mut sql = format!("SELECT {EPOCH_COLUMNS} FROM epochs {by} WHERE ");
    for (Index { column, .. }, _) in equal(filter) {
        sql += column;
        sql += " = ? AND ";
    }
    // Times above 2^63 - 1 are negative here, and later than all others.
    if let Some(since_ms) = filter.since_ms {
        sql += match signed(since_ms) {
            0.. => "(end_ms >= ? OR end_ms < 0) AND ",
            _ => "end_ms >= ? AND end_ms < 0 AND ",
        };
    }
    if let Some(until_ms) = filter.until_ms {
        sql += match signed(until_ms) {
            0.. => "start_ms BETWEEN 0 AND ? - 1 AND ",
            _ => "(start_ms < ? OR start_ms >= 0) AND ",
        };
    }
    sql + "id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
}

/// Which blocks can have an epoch of a time, the latest first. Times that do not sort rightly stand
/// there as the latest that does.
const BLOCKS: &str = "SELECT number FROM blocks WHERE number <= ? AND last_ms >= ? AND \
     first_ms <= ? ORDER BY number DESC";

/// First and last places between which all epochs of the filter's time are, up to a last one.
fn stretches(
    connection: &Connection,
    filter: &EpochFilter,
    last: i64,
) -> rusqlite::Result<Vec<(i64, i64)>> {
    let (since, until) = (filter.since_ms, filter.until_ms);
    if since.is_none() && until.is_none() {
        return Ok(vec![(0, last)]);
    }
    let mut query = connection.prepare_cached(BLOCKS)?;
    let latest = until.map_or(Some(u64::MAX), |until_ms| until_ms.checked_sub(1));
    let Some(latest) = latest else { return Ok(Vec::new()) };
    let times = [since.map_or(0, time), time(latest)];
    let numbers = query
        .query_map([last.max(0) / BLOCK, times[0], times[1]], |row| row.get::<_, i64>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut stretches: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        let first = number.saturating_mul(BLOCK);
        match stretches.last_mut() {
            Some((before, _)) if *before == first.saturating_add(BLOCK) => *before = first,
            _ => stretches.push((first, first.saturating_add(BLOCK - 1).min(last))),
        }
    }
    Ok(stretches)
}

/// A time or a place, as the latest that sorts rightly where it is beyond.
fn time(ms: u64) -> i64 {
    signed(ms.min(i64::MAX.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn filters() -> Vec<EpochFilter> {
        (0..64)
            .map(|bits: u32| {
                let with = |bit: u32| bits & 1 << bit != 0;
                EpochFilter {
                    outcome: with(0).then_some(Outcome::Invalid),
                    source: with(1).then(|| [10, 0, 0, 1].into()),
                    destination: with(2).then(|| [10, 0, 0, 2].into()),
                    qp: with(3).then_some(7),
                    since_ms: with(4).then_some(10),
                    until_ms: with(5).then_some(20),
                    ..EpochFilter::default()
                }
            })
            .collect()
    }

    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nulls = vec![Value::Null; explain.parameter_count()];
        let lines = explain.query_map(params_from_iter(nulls), |row| row.get(3)).unwrap();
        lines.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn no_filter_makes_the_database_look_at_every_epoch_or_sort_them() {
        let directory = std::env::temp_dir().join(format!("find-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let connection = schema::writer(&directory.join("plan.db")).unwrap();
        for filter in filters() {
            let wanted = equal(&filter);
            let indexes: Vec<_> = if wanted.is_empty() {
                vec![None]
            } else {
                wanted.iter().map(|(index, _)| Some(*index)).collect()
            };
            for index in indexes {
                let plan = plan(&connection, &statement(&filter, index));
                let expected = index.map_or(
                    "SEARCH epochs USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)".to_owned(),
                    |Index { name, column }| {
                        format!("SEARCH epochs USING INDEX {name} ({column}=? AND id>? AND id<?)")
                    },
                );
                assert_eq!(plan, [expected], "{filter:?}");
            }
            for (index, _) in wanted {
                let plan = plan(&connection, &counting(index)).join(", ");
                assert!(plan.contains("SEARCH epochs USING COVERING INDEX"), "{plan}");
            }
        }
        assert_eq!(
            plan(&connection, BLOCKS),
            ["SEARCH blocks USING INTEGER PRIMARY KEY (rowid<?)"]
        );
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
