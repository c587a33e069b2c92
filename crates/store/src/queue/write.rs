//! Rows that come, judged by those that are stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use observe::queue::aggregate::{Accepted, Kept, Neighbour, Verdict, judge};
use observe::queue::row::{Measurement, Row};
use observe::queue::{EpochId, Place, Priorities};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::remove::{remove_oldest_epoch, set_oldest, trim};
use super::table::{KEPT_COLUMNS, kept, ordered, priorities, quality, unordered};
use super::{NOT_KEPT, QUEUES_FULL, QueueEntry, QueueLimits, QueueReceived};
use crate::row::{signed, unsigned};

/// Characters of a reason that are kept.
const REASON_CHARS_MAX: usize = 300;

/// Rows of a queue that go beyond the one whose place is needed.
const TRIMMED_AT_A_TIME: u64 = 32;

/// What one transaction has found out: devices by name, and verdicts by device.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    devices: BTreeMap<Arc<str>, i64>,
    verdicts: BTreeMap<(i64, &'static str), i64>,
}

impl Tally {
    fn device(&mut self, transaction: &Transaction<'_>, name: &Arc<str>) -> rusqlite::Result<i64> {
        if let Some(id) = self.devices.get(name) {
            return Ok(*id);
        }
        let mut find = transaction.prepare_cached("SELECT id FROM queue_devices WHERE name = ?")?;
        let id = match find.query_row([&**name], |row| row.get(0)).optional()? {
            Some(id) => id,
            None => transaction
                .prepare_cached("INSERT INTO queue_devices (name, queues) VALUES (?, 0)")?
                .insert([&**name])?,
        };
        self.devices.insert(name.clone(), id);
        Ok(id)
    }

    fn count(&mut self, device: i64, verdict: &'static str) {
        *self.verdicts.entry((device, verdict)).or_default() += 1;
    }

    /// Adds what was counted to what stands.
    pub fn write(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut add = transaction.prepare_cached(
            "INSERT INTO queue_verdicts (device, verdict, rows) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO UPDATE SET rows = rows + excluded.rows",
        )?;
        self.verdicts.into_iter().try_for_each(|((device, verdict), rows)| {
            add.execute(params![device, verdict, rows]).map(drop)
        })
    }
}

/// A queue with one of its epochs.
#[derive(Debug)]
struct Stand {
    queue: i64,
    /// Rows of the queue that are stored.
    rows: u64,
    /// Epochs of the queue that are stored.
    epochs: u64,
    epoch: Option<Epoch>,
}

/// What stands of an epoch. The numbers from `first` on mean nothing while nothing was accepted.
#[derive(Debug)]
struct Epoch {
    id: i64,
    priorities: Option<Priorities>,
    accepted: u64,
    stored: u64,
    rejected: u64,
    first: u64,
    last: u64,
    start_ns: u64,
    last_start_ns: u64,
    end_ns: u64,
    removed: Option<Neighbour>,
}

impl Epoch {
    const fn new(id: i64) -> Self {
        Self {
            id,
            priorities: None,
            accepted: 0,
            stored: 0,
            rejected: 0,
            first: 0,
            last: 0,
            start_ns: 0,
            last_start_ns: 0,
            end_ns: 0,
            removed: None,
        }
    }
}

/// The accepted rows of an epoch, where they are stored.
struct Stored<'t> {
    transaction: &'t Transaction<'t>,
    epoch: &'t Epoch,
}

impl Stored<'_> {
    fn neighbour(&self, sql: &str, interval: u64) -> rusqlite::Result<Option<Neighbour>> {
        let mut find = self.transaction.prepare_cached(sql)?;
        let found = find.query_row([self.epoch.id, ordered(interval)], |row| {
            let start_ns = unsigned(row, 1)?;
            let end_ns = start_ns.saturating_add(unsigned(row, 2)?);
            Ok((unordered(row.get(0)?), (start_ns, end_ns)))
        });
        found.optional()
    }
}

impl Accepted for Stored<'_> {
    type Error = rusqlite::Error;

    fn priorities(&self) -> rusqlite::Result<Option<Priorities>> {
        Ok(self.epoch.priorities)
    }

    fn at(&self, interval: u64) -> rusqlite::Result<Option<Kept>> {
        if self.epoch.accepted == 0 || interval > self.epoch.last {
            return Ok(None);
        }
        let sql = format!("SELECT {KEPT_COLUMNS} FROM queue_rows WHERE epoch = ? AND interval = ?");
        let mut find = self.transaction.prepare_cached(&sql)?;
        find.query_row([self.epoch.id, ordered(interval)], |row| kept(row, 0)).optional()
    }

    fn before(&self, interval: u64) -> rusqlite::Result<Option<Neighbour>> {
        let Epoch { accepted, last, last_start_ns, end_ns, removed, .. } = *self.epoch;
        if accepted == 0 {
            return Ok(None);
        }
        if interval > last {
            return Ok(Some((last, (last_start_ns, end_ns))));
        }
        let found = self.neighbour(
            "SELECT interval, start_ns, duration_ns FROM queue_rows \
             WHERE epoch = ? AND interval < ? ORDER BY interval DESC LIMIT 1",
            interval,
        )?;
        Ok(found.or_else(|| removed.filter(|(number, _)| *number < interval)))
    }

    fn after(&self, interval: u64) -> rusqlite::Result<Option<Neighbour>> {
        if self.epoch.accepted == 0 || interval >= self.epoch.last {
            return Ok(None);
        }
        self.neighbour(
            "SELECT interval, start_ns, duration_ns FROM queue_rows \
             WHERE epoch = ? AND interval > ? ORDER BY interval LIMIT 1",
            interval,
        )
    }
}

/// Judges what a device says of a queue, and keeps it: an accepted row as a row, another one as a
/// reason.
// QUE-con.1
pub(crate) fn write(
    transaction: &Transaction<'_>,
    limits: &QueueLimits,
    received: &QueueReceived,
    tally: &mut Tally,
) -> rusqlite::Result<()> {
    let QueueReceived { device, received_ms, entry } = received;
    let device = tally.device(transaction, device)?;
    let (place, epoch_id, interval) = match entry {
        QueueEntry::Row(row) => (&row.place, row.epoch, row.interval),
        QueueEntry::Malformed { place, epoch, interval, .. } => (place, *epoch, *interval),
        QueueEntry::Nameless => {
            tally.count(device, "invalid");
            return Ok(());
        }
    };
    let Some((stand, epoch)) = stand(transaction, limits, device, place, epoch_id, *received_ms)?
    else {
        tally.count(device, QUEUES_FULL);
        return Ok(());
    };
    let removed = epoch.removed.map(|(number, _)| number);
    let (verdict, reason) = match entry {
        QueueEntry::Row(row)
            if removed.is_some_and(|removed| interval <= removed)
                && row.faults().next().is_none() =>
        {
            let removed = removed.unwrap_or_default();
            let why = format!(
                "rows of this epoch up to interval {removed} are not stored any more, so it \
                 cannot be told from a repeated one"
            );
            (NOT_KEPT, Some(why))
        }
        QueueEntry::Row(row) => {
            let verdict = judge(row, &Stored { transaction, epoch: &epoch })?;
            let reason = match &verdict {
                Verdict::Accepted => {
                    accept(transaction, limits, &stand, &epoch, row, *received_ms)?;
                    None
                }
                Verdict::Repeated => {
                    transaction
                        .prepare_cached(
                            "UPDATE queue_epochs SET repeated = repeated + 1, heard_ms = ?2 \
                             WHERE id = ?1",
                        )?
                        .execute([epoch.id, signed(*received_ms)])?;
                    None
                }
                Verdict::Rejected(why) => Some(why.to_string()),
            };
            (verdict.word(), reason)
        }
        QueueEntry::Malformed { why, .. } => ("invalid", Some(why.clone())),
        QueueEntry::Nameless => return Ok(()),
    };
    if let Some(reason) = reason {
        let why = Rejected { interval, received_ms: *received_ms, verdict, reason };
        reject(transaction, limits, &epoch, &why)?;
    }
    tally.count(device, verdict);
    Ok(())
}

/// A queue and the epoch of a row, which are made where they are not there; none where the device
/// may have no more queues.
fn stand(
    transaction: &Transaction<'_>,
    limits: &QueueLimits,
    device: i64,
    place: &Place,
    epoch: EpochId,
    received_ms: u64,
) -> rusqlite::Result<Option<(Stand, Epoch)>> {
    let mut stand = match find(transaction, device, place, epoch)? {
        Some(found) => found,
        None => match new_queue(transaction, limits, device, place)? {
            Some(queue) => Stand { queue, rows: 0, epochs: 0, epoch: None },
            None => return Ok(None),
        },
    };
    if let Some(epoch) = stand.epoch.take() {
        return Ok(Some((stand, epoch)));
    }
    while stand.epochs >= limits.epochs_max.max(1) {
        let removed = remove_oldest_epoch(transaction, stand.queue)?;
        stand.rows = stand.rows.saturating_sub(removed);
        stand.epochs -= 1;
    }
    let id = transaction
        .prepare_cached(
            "INSERT INTO queue_epochs (queue, epoch, priorities, begun_ms, heard_ms, oldest_ms, \
             stored, accepted, repeated, rejected, first, last, start_ns, last_start_ns, end_ns, \
             covered_ns, unknown_ns) \
             VALUES (?1, ?2, 0, ?3, ?3, ?3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
        )?
        .insert(params![stand.queue, epoch.octets(), signed(received_ms)])?;
    transaction
        .prepare_cached("UPDATE queues SET epochs = epochs + 1 WHERE id = ?")?
        .execute([stand.queue])?;
    Ok(Some((stand, Epoch::new(id))))
}

fn find(
    transaction: &Transaction<'_>,
    device: i64,
    place: &Place,
    epoch: EpochId,
) -> rusqlite::Result<Option<Stand>> {
    let mut find = transaction.prepare_cached(
        "SELECT q.id, q.rows, q.epochs, e.id, e.priorities, e.accepted, e.stored, e.rejected, \
         e.first, e.last, e.start_ns, e.last_start_ns, e.end_ns, e.removed, e.removed_start_ns, \
         e.removed_end_ns \
         FROM queues q LEFT JOIN queue_epochs e ON e.queue = q.id AND e.epoch = ?4 \
         WHERE q.device = ?1 AND q.interface = ?2 AND q.queue = ?3",
    )?;
    let of = params![device, &*place.interface, &*place.queue, epoch.octets()];
    let found = find.query_row(of, |row| {
        let epoch = match row.get::<_, Option<i64>>(3)? {
            None => None,
            Some(id) => Some(Epoch {
                id,
                priorities: priorities(row, 4)?,
                accepted: unsigned(row, 5)?,
                stored: unsigned(row, 6)?,
                rejected: unsigned(row, 7)?,
                first: unordered(row.get(8)?),
                last: unordered(row.get(9)?),
                start_ns: unsigned(row, 10)?,
                last_start_ns: unsigned(row, 11)?,
                end_ns: unsigned(row, 12)?,
                removed: match row.get::<_, Option<i64>>(13)? {
                    None => None,
                    Some(number) => {
                        Some((unordered(number), (unsigned(row, 14)?, unsigned(row, 15)?)))
                    }
                },
            }),
        };
        Ok(Stand { queue: row.get(0)?, rows: unsigned(row, 1)?, epochs: unsigned(row, 2)?, epoch })
    });
    found.optional()
}

fn new_queue(
    transaction: &Transaction<'_>,
    limits: &QueueLimits,
    device: i64,
    place: &Place,
) -> rusqlite::Result<Option<i64>> {
    let mut count = transaction.prepare_cached("SELECT queues FROM queue_devices WHERE id = ?")?;
    if count.query_row([device], |row| unsigned(row, 0))? >= limits.queues_max {
        return Ok(None);
    }
    transaction
        .prepare_cached("UPDATE queue_devices SET queues = queues + 1 WHERE id = ?")?
        .execute([device])?;
    transaction
        .prepare_cached(
            "INSERT INTO queues (device, interface, queue, rows, epochs) VALUES (?, ?, ?, 0, 0)",
        )?
        .insert(params![device, &*place.interface, &*place.queue])
        .map(Some)
}

fn accept(
    transaction: &Transaction<'_>,
    limits: &QueueLimits,
    stand: &Stand,
    epoch: &Epoch,
    row: &Row,
    received_ms: u64,
) -> rusqlite::Result<()> {
    let first_of_all = epoch.accepted == 0;
    let highest = first_of_all || row.interval > epoch.last;
    if stand.rows >= limits.rows_max {
        // Some at a time, so that it is rarely done; not many, since all queues of a device are full
        // at the same time.
        let most = (stand.rows - limits.rows_max)
            .saturating_add(1 + (limits.rows_max / 16).min(TRIMMED_AT_A_TIME));
        trim(transaction, stand.queue, most)?;
    }
    insert(transaction, epoch.id, row, received_ms)?;
    let lowest = first_of_all || row.interval < epoch.first;
    let unknown_ns = match row.measurement {
        Measurement::Unknown(_) => row.duration_ns,
        Measurement::Known(_) => 0,
    };
    transaction
        .prepare_cached(
            "UPDATE queue_epochs SET priorities = ?2, heard_ms = ?3, stored = stored + 1, \
             accepted = accepted + 1, first = ?4, last = ?5, start_ns = ?6, last_start_ns = ?7, \
             end_ns = ?8, covered_ns = covered_ns + ?9, unknown_ns = unknown_ns + ?10 \
             WHERE id = ?1",
        )?
        .execute(params![
            epoch.id,
            row.priorities.bits(),
            signed(received_ms),
            ordered(if lowest { row.interval } else { epoch.first }),
            ordered(if highest { row.interval } else { epoch.last }),
            signed(if lowest { row.start_ns } else { epoch.start_ns }),
            signed(if highest { row.start_ns } else { epoch.last_start_ns }),
            signed(if highest { row.end_ns() } else { epoch.end_ns }),
            signed(row.duration_ns),
            signed(unknown_ns),
        ])?;
    if epoch.stored == 0 || !highest {
        set_oldest(transaction, epoch.id)?;
    }
    let newest = "UPDATE queues SET rows = rows + 1, epoch = ?2 WHERE id = ?1";
    let another = "UPDATE queues SET rows = rows + 1 WHERE id = ?1 AND ?2 IS NOT NULL";
    transaction
        .prepare_cached(if first_of_all { newest } else { another })?
        .execute([stand.queue, epoch.id])
        .map(drop)
}

fn insert(
    transaction: &Transaction<'_>,
    epoch: i64,
    row: &Row,
    received_ms: u64,
) -> rusqlite::Result<()> {
    let known = match &row.measurement {
        Measurement::Known(known) => Some(known),
        Measurement::Unknown(_) => None,
    };
    let period = known.and_then(|known| match known.method {
        observe::queue::row::Method::Samples { period_ns } => Some(signed(period_ns)),
        observe::queue::row::Method::Events => None,
    });
    transaction
        .prepare_cached(
            "INSERT INTO queue_rows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            epoch,
            ordered(row.interval),
            signed(received_ms),
            signed(row.start_ns),
            signed(row.duration_ns),
            quality(&row.measurement),
            known.map(|known| signed(known.gated_ns)),
            known.map(|known| signed(known.backlog_ns)),
            known.map(|known| signed(known.error_ns)),
            period,
            row.wall_clock_start.as_deref(),
        ])
        .map(drop)
}

/// A row that does not count.
struct Rejected {
    interval: u64,
    received_ms: u64,
    verdict: &'static str,
    reason: String,
}

fn reject(
    transaction: &Transaction<'_>,
    limits: &QueueLimits,
    epoch: &Epoch,
    rejected: &Rejected,
) -> rusqlite::Result<()> {
    let Rejected { interval, received_ms, verdict, reason } = rejected;
    transaction
        .prepare_cached(
            "UPDATE queue_epochs SET rejected = rejected + 1, heard_ms = ?2 WHERE id = ?1",
        )?
        .execute([epoch.id, signed(*received_ms)])?;
    let Some(slot) = epoch.rejected.checked_rem(limits.rejections_max) else { return Ok(()) };
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO queue_rejections VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            epoch.id,
            signed(slot),
            signed(epoch.rejected),
            ordered(*interval),
            signed(*received_ms),
            verdict,
            reason,
        ])
        .map(drop)
}
