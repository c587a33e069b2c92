//! Finding rows again: how each queue stands, its rows, and rows summed within each epoch.
//!
//! A time is when a row was received: devices have no clock in common, and what a row says of its
//! own start is only meant beside other rows of its epoch.

use std::sync::Arc;

use observe::queue::aggregate::{Aggregator, Group};
use observe::queue::row::Row;
use observe::queue::{EpochId, Place, Priorities};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::table::{KEPT_COLUMNS, epoch_id, ordered, priorities, unordered, whole};
use crate::row::{signed, unsigned};

/// Which queues, or rows of them, are asked for; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFilter {
    /// The device.
    pub device: Option<String>,
    /// The interface.
    pub interface: Option<String>,
    /// The queue.
    pub queue: Option<String>,
    /// The epoch.
    pub epoch: Option<EpochId>,
    /// Received at this time or later, milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Received before this time, milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// At most so many; 0 gives none.
    pub limit: usize,
    /// Behind this place: [`QueuePage::next`] of the page before.
    pub cursor: Option<[u64; 2]>,
}

/// A part of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePage<T> {
    /// What is in it.
    pub rows: Vec<T>,
    /// The cursor for what follows; none at the end.
    pub next: Option<[u64; 2]>,
}

/// How a queue stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRow {
    /// Its place in the listing.
    pub place: u64,
    /// Its device.
    pub device: String,
    /// The interface and the queue.
    pub of: Arc<Place>,
    /// Epochs of it that are stored.
    pub epochs: u64,
    /// Rows of it that are stored.
    pub stored: u64,
    /// Its latest row and when that was received, milliseconds since 1970; none where no row is
    /// stored of the epoch that began last.
    pub latest: Option<(Row, u64)>,
    /// What is known of that epoch; none where no row of any was accepted.
    pub epoch: Option<QueueEpochRow>,
}

/// What is known of an epoch from everything that was ever accepted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEpochRow {
    /// Its id.
    pub id: EpochId,
    /// What is mapped.
    pub priorities: Priorities,
    /// When its first row was received, milliseconds since 1970.
    pub begun_ms: u64,
    /// When the device said anything of it last, milliseconds since 1970.
    pub heard_ms: u64,
    /// Rows that were accepted.
    pub accepted: u64,
    /// Rows that came again.
    pub repeated: u64,
    /// Rows that were not accepted.
    pub rejected: u64,
    /// The lowest number.
    pub first: u64,
    /// The highest.
    pub last: u64,
    /// From the start of the first to the end of the last, in nanoseconds.
    pub span_ns: u64,
    /// What of that accepted rows cover, in nanoseconds.
    pub covered_ns: u64,
    /// What of that is of rows that are not known, in nanoseconds.
    pub unknown_ns: u64,
}

impl QueueEpochRow {
    /// Numbers between the first and the last of which no row was accepted.
    // QUE-con.1
    #[must_use]
    pub const fn missing_intervals(&self) -> u64 {
        (self.last - self.first).saturating_sub(self.accepted.saturating_sub(1))
    }

    /// Time between the start of the first and the end of the last that no accepted row covers, in
    /// nanoseconds.
    // QUE-con.1
    #[must_use]
    pub const fn gap_ns(&self) -> u64 {
        self.span_ns.saturating_sub(self.covered_ns)
    }
}

/// A stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueHistoryRow {
    /// Its device.
    pub device: String,
    /// When it was received, milliseconds since 1970.
    pub received_ms: u64,
    /// The row.
    pub row: Row,
}

/// The rows of an epoch that were received in a span, to be summed.
#[derive(Clone, Debug)]
pub struct QueueGroup {
    /// Their device.
    pub device: String,
    /// The rows, judged as those of a file are.
    pub group: Group,
    /// Rows up to this number were accepted and are not stored any more.
    pub removed: Option<u64>,
}

/// A device of which anything was ever stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDeviceRow {
    /// Its name.
    pub name: String,
    /// Queues of it that are stored.
    pub queues: u64,
    /// Entries by what became of them, in the order of the words.
    pub verdicts: Vec<(String, u64)>,
}

/// A condition with its values.
#[derive(Default)]
struct Where {
    sql: String,
    values: Vec<Value>,
}

impl Where {
    fn add(&mut self, condition: &str, value: impl Into<Value>) {
        self.sql += condition;
        self.sql += " AND ";
        self.values.push(value.into());
    }

    /// The queue that is asked for.
    fn of_queue(&mut self, filter: &QueueFilter) {
        let names = [
            ("d.name = ?", &filter.device),
            ("q.interface = ?", &filter.interface),
            ("q.queue = ?", &filter.queue),
        ];
        for (condition, name) in names {
            if let Some(name) = name {
                self.add(condition, name.clone());
            }
        }
    }

    /// When it was received.
    fn received(&mut self, column: &str, filter: &QueueFilter) {
        if let Some(since) = filter.since_ms {
            self.add(&format!("{column} >= ?"), time(since));
        }
        if let Some(until) = filter.until_ms {
            self.add(&format!("{column} < ?"), time(until));
        }
    }
}

/// A time, as the latest that sorts rightly where it is beyond.
fn time(ms: u64) -> i64 {
    signed(ms.min(i64::MAX.cast_unsigned()))
}

fn most(limit: usize) -> Value {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1).into()
}

fn page<T>(mut rows: Vec<T>, limit: usize, place: impl Fn(&T) -> [u64; 2]) -> QueuePage<T> {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(place);
    QueuePage { rows, next }
}

/// Queues, those first that came last. A time is that of the latest row.
pub(crate) fn queues(
    connection: &Connection,
    filter: &QueueFilter,
) -> rusqlite::Result<QueuePage<QueueRow>> {
    let mut of = Where::default();
    of.of_queue(filter);
    if let Some(epoch) = filter.epoch {
        of.add("e.epoch = ?", epoch.octets().to_vec());
    }
    of.received("r.received_ms", filter);
    of.add("q.id < ?", filter.cursor.map_or(i64::MAX, |[place, _]| time(place)));
    let sql = format!(
        "SELECT q.id, d.name, q.interface, q.queue, q.epochs, q.rows, e.epoch, e.priorities, \
         e.begun_ms, e.heard_ms, e.accepted, e.repeated, e.rejected, e.first, e.last, e.start_ns, \
         e.end_ns, e.covered_ns, e.unknown_ns, r.received_ms, r.interval, {}, r.wall_clock_start \
         FROM queues q CROSS JOIN queue_devices d ON d.id = q.device \
         LEFT JOIN queue_epochs e ON e.id = q.epoch \
         LEFT JOIN queue_rows r ON r.epoch = e.id AND r.interval = e.last \
         WHERE {} TRUE ORDER BY q.id DESC LIMIT ?",
        of_row(),
        of.sql,
    );
    of.values.push(most(filter.limit));
    let mut query = connection.prepare_cached(&sql)?;
    let rows = query.query_map(params_from_iter(of.values), queue)?;
    Ok(page(rows.collect::<rusqlite::Result<_>>()?, filter.limit, |row| [row.place, 0]))
}

/// The columns of what is kept of a row, of the table `r`.
fn of_row() -> String {
    KEPT_COLUMNS.split(", ").map(|column| format!("r.{column}")).collect::<Vec<_>>().join(", ")
}

fn place(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Arc<Place>> {
    let (interface, queue): (String, String) = (row.get(at)?, row.get(at + 1)?);
    Ok(Arc::new(Place { interface: interface.into(), queue: queue.into() }))
}

fn queue(row: &rusqlite::Row<'_>) -> rusqlite::Result<QueueRow> {
    let of = place(row, 2)?;
    let epoch = match row.get::<_, Option<Vec<u8>>>(6)? {
        None => None,
        Some(_) => match priorities(row, 7)? {
            None => None,
            Some(priorities) => Some(QueueEpochRow {
                id: epoch_id(row, 6)?,
                priorities,
                begun_ms: unsigned(row, 8)?,
                heard_ms: unsigned(row, 9)?,
                accepted: unsigned(row, 10)?,
                repeated: unsigned(row, 11)?,
                rejected: unsigned(row, 12)?,
                first: unordered(row.get(13)?),
                last: unordered(row.get(14)?),
                span_ns: unsigned(row, 16)?.saturating_sub(unsigned(row, 15)?),
                covered_ns: unsigned(row, 17)?,
                unknown_ns: unsigned(row, 18)?,
            }),
        },
    };
    let received: Option<i64> = row.get(19)?;
    let latest = match (&epoch, received) {
        (Some(epoch), Some(received)) => {
            let latest = whole(row, 20, &of, epoch.id, epoch.priorities)?;
            Some((latest, received.cast_unsigned()))
        }
        _ => None,
    };
    Ok(QueueRow {
        place: unsigned(row, 0)?,
        device: row.get(1)?,
        of,
        epochs: unsigned(row, 4)?,
        stored: unsigned(row, 5)?,
        latest,
        epoch,
    })
}

/// Rows, by epochs and in them by numbers, each the latest first.
pub(crate) fn rows(
    connection: &Connection,
    filter: &QueueFilter,
) -> rusqlite::Result<QueuePage<QueueHistoryRow>> {
    let (sql, values) = rows_question(filter);
    let mut query = connection.prepare_cached(&sql)?;
    let rows = query.query_map(params_from_iter(values), |row| {
        let of = place(row, 2)?;
        let epoch = epoch_id(row, 4)?;
        // No row is stored where no priorities are.
        let mapped = priorities(row, 5)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let found = QueueHistoryRow {
            device: row.get(1)?,
            received_ms: unsigned(row, 6)?,
            row: whole(row, 7, &of, epoch, mapped)?,
        };
        Ok((unsigned(row, 0)?, found))
    })?;
    let page = page(rows.collect::<rusqlite::Result<_>>()?, filter.limit, |(epoch, found)| {
        [*epoch, found.row.interval]
    });
    let rows = page.rows.into_iter().map(|(_, row)| row).collect();
    Ok(QueuePage { rows, next: page.next })
}

/// Epochs of the queues that are asked for, with a name for each table.
fn from(filter: &QueueFilter) -> &'static str {
    // By the queue where there is only one, else the epochs in their order.
    if filter.device.is_some() && filter.interface.is_some() && filter.queue.is_some() {
        "queue_devices d CROSS JOIN queues q ON q.device = d.id \
         CROSS JOIN queue_epochs e INDEXED BY queue_epochs_queue ON e.queue = q.id"
    } else {
        "queue_epochs e NOT INDEXED CROSS JOIN queues q ON q.id = e.queue \
         CROSS JOIN queue_devices d ON d.id = q.device"
    }
}

fn epochs(filter: &QueueFilter) -> Where {
    let mut of = Where::default();
    of.of_queue(filter);
    if let Some(epoch) = filter.epoch {
        of.add("e.epoch = ?", epoch.octets().to_vec());
    }
    // No row of the others can have been received then.
    if let Some(since) = filter.since_ms {
        of.add("e.heard_ms >= ?", time(since));
    }
    if let Some(until) = filter.until_ms {
        of.add("e.begun_ms < ?", time(until));
    }
    of
}

fn rows_question(filter: &QueueFilter) -> (String, Vec<Value>) {
    let mut of = epochs(filter);
    of.received("r.received_ms", filter);
    if let Some([epoch, interval]) = filter.cursor {
        of.sql += "e.id <= ? AND (e.id < ? OR r.interval < ?) AND ";
        of.values.extend([time(epoch).into(), time(epoch).into(), ordered(interval).into()]);
    }
    let sql = format!(
        "SELECT e.id, d.name, q.interface, q.queue, e.epoch, e.priorities, r.received_ms, \
         r.interval, {}, r.wall_clock_start \
         FROM {} CROSS JOIN queue_rows r ON r.epoch = e.id \
         WHERE {} TRUE ORDER BY e.id DESC, r.interval DESC LIMIT ?",
        of_row(),
        from(filter),
        of.sql,
    );
    of.values.push(most(filter.limit));
    (sql, of.values)
}

/// An epoch that may have rows in the span.
struct Found {
    id: i64,
    device: String,
    of: Arc<Place>,
    epoch: EpochId,
    priorities: Option<Priorities>,
    removed: Option<u64>,
}

/// The rows of each epoch that were received in a span, those epochs first that came last. A page
/// ends early where it would take more than so many rows; one epoch is always in it.
// QUE-con.1, QUE-con.2
pub(crate) fn aggregate(
    connection: &Connection,
    filter: &QueueFilter,
    rows_max: u64,
) -> rusqlite::Result<QueuePage<QueueGroup>> {
    // All statements see the same.
    let snapshot = connection.unchecked_transaction()?;
    let (sql, values) = groups_question(filter);
    let mut query = snapshot.prepare_cached(&sql)?;
    let mut found = query.query(params_from_iter(values))?;
    let mut page = QueuePage { rows: Vec::new(), next: None };
    let (mut before, mut room) = (0, rows_max);
    while let Some(row) = found.next()? {
        if page.rows.len() >= filter.limit || room == 0 {
            page.next = page.rows.last().map(|_| [before, 0]);
            break;
        }
        let epoch = Found {
            id: row.get(0)?,
            device: row.get(1)?,
            of: place(row, 2)?,
            epoch: epoch_id(row, 4)?,
            priorities: priorities(row, 5)?,
            removed: row.get::<_, Option<i64>>(6)?.map(unordered),
        };
        before = epoch.id.cast_unsigned();
        let removed = epoch.removed;
        let device = epoch.device.clone();
        let (group, taken) = group(&snapshot, filter, epoch)?;
        room = room.saturating_sub(taken);
        page.rows.extend(group.map(|group| QueueGroup { device, group, removed }));
    }
    Ok(page)
}

fn groups_question(filter: &QueueFilter) -> (String, Vec<Value>) {
    let mut of = epochs(filter);
    of.add("e.id < ?", filter.cursor.map_or(i64::MAX, |[epoch, _]| time(epoch)));
    let sql = format!(
        "SELECT e.id, d.name, q.interface, q.queue, e.epoch, e.priorities, e.removed \
         FROM {} WHERE {} TRUE ORDER BY e.id DESC",
        from(filter),
        of.sql,
    );
    (sql, of.values)
}

/// What was received of an epoch in a span; none where that is nothing. Says how many rows that is.
fn group(
    connection: &Connection,
    filter: &QueueFilter,
    found: Found,
) -> rusqlite::Result<(Option<Group>, u64)> {
    let mut aggregator = Aggregator::new(usize::MAX);
    let mut span = Where::default();
    span.add("r.epoch = ?", found.id);
    span.received("r.received_ms", filter);
    let mut taken = 0;
    if let Some(priorities) = found.priorities {
        let sql = format!(
            "SELECT r.interval, {}, r.wall_clock_start FROM queue_rows r WHERE {} TRUE \
             ORDER BY r.interval",
            of_row(),
            span.sql
        );
        let mut query = connection.prepare_cached(&sql)?;
        let mut rows = query.query(params_from_iter(&span.values))?;
        while let Some(row) = rows.next()? {
            let row = whole(row, 0, &found.of, found.epoch, priorities)?;
            // What fits among more rows fits among some of them.
            _ = aggregator.row(&row);
            taken += 1;
        }
    }
    let sql = format!(
        "SELECT r.interval, r.reason FROM queue_rejections r WHERE {} TRUE ORDER BY r.number",
        span.sql
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut rejections = query.query(params_from_iter(&span.values))?;
    while let Some(row) = rejections.next()? {
        let interval = unordered(row.get(0)?);
        _ = aggregator.malformed(&found.of, found.epoch, interval, row.get_ref(1)?.as_str()?);
    }
    Ok((aggregator.into_groups().pop(), taken))
}

/// Devices by name.
pub(crate) fn devices(connection: &Connection) -> rusqlite::Result<Vec<QueueDeviceRow>> {
    let mut query = connection.prepare_cached(
        "SELECT d.name, d.queues, v.verdict, v.rows FROM queue_devices d \
         LEFT JOIN queue_verdicts v ON v.device = d.id ORDER BY d.name, v.verdict",
    )?;
    let mut rows = query.query([])?;
    let mut devices: Vec<QueueDeviceRow> = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        if devices.last().is_none_or(|device| device.name != name) {
            devices.push(QueueDeviceRow { name, queues: unsigned(row, 1)?, verdicts: Vec::new() });
        }
        if let Some(verdict) = row.get::<_, Option<String>>(2)?
            && let Some(device) = devices.last_mut()
        {
            device.verdicts.push((verdict, unsigned(row, 3)?));
        }
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn no_listing_sorts_what_it_finds() {
        let directory = std::env::temp_dir().join(format!("queues-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let connection = schema::writer(&directory.join("plan.db")).unwrap();
        for bits in 0..32_u32 {
            let with = |bit: u32, name: &str| (bits & 1 << bit != 0).then(|| name.to_owned());
            let filter = QueueFilter {
                device: with(0, "a"),
                interface: with(1, "b"),
                queue: with(2, "c"),
                since_ms: with(3, "").map(|_| 10),
                cursor: with(4, "").map(|_| [5, 6]),
                ..QueueFilter::default()
            };
            for (sql, values) in [rows_question(&filter), groups_question(&filter)] {
                let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let plan = explain.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
                let plan: Vec<String> = plan.collect::<rusqlite::Result<_>>().unwrap();
                assert!(plan.iter().all(|step| !step.contains("TEMP B-TREE")), "{sql}: {plan:?}");
                assert!(plan.iter().all(|step| !step.contains("SCAN q")), "{sql}: {plan:?}");
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
