//! Rows, epochs and queues that go: for age, and where there is no room.

use rusqlite::{OptionalExtension as _, Transaction};

use crate::row::{signed, unsigned};

/// Epochs that are looked at in one step of retention.
const EPOCHS_AT_A_TIME: i64 = 64;

/// When the lowest stored row of an epoch was received; where none is stored, when anything was.
pub(super) fn set_oldest(transaction: &Transaction<'_>, epoch: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE queue_epochs SET oldest_ms = coalesce((SELECT received_ms FROM queue_rows \
             WHERE epoch = ?1 ORDER BY interval LIMIT 1), heard_ms) WHERE id = ?1",
        )?
        .execute([epoch])
        .map(drop)
}

/// Takes out so many rows of a queue, the oldest.
pub(super) fn trim(
    transaction: &Transaction<'_>,
    queue: i64,
    mut most: u64,
) -> rusqlite::Result<()> {
    let mut find = transaction.prepare_cached(
        "SELECT id FROM queue_epochs WHERE queue = ? AND stored > 0 ORDER BY id LIMIT 1",
    )?;
    while most > 0 {
        let oldest: Option<i64> = find.query_row([queue], |row| row.get(0)).optional()?;
        let Some(epoch) = oldest else { break };
        let removed = remove_rows(transaction, queue, epoch, i64::MAX, most, None)?;
        if removed == 0 {
            break;
        }
        most = most.saturating_sub(removed);
    }
    Ok(())
}

/// Takes out the lowest rows of an epoch, at most so many, up to one that was received at a time or
/// later, or has the number that stays. Says how many went.
fn remove_rows(
    transaction: &Transaction<'_>,
    queue: i64,
    epoch: i64,
    before_ms: i64,
    most: u64,
    stays: Option<i64>,
) -> rusqlite::Result<u64> {
    let mut last: Option<(i64, i64, i64)> = None;
    let mut count = 0_u64;
    let mut find = transaction.prepare_cached(
        "SELECT interval, received_ms, start_ns, start_ns + duration_ns FROM queue_rows \
         WHERE epoch = ? ORDER BY interval LIMIT ?",
    )?;
    let mut rows = find.query([epoch, i64::try_from(most).unwrap_or(i64::MAX)])?;
    while let Some(row) = rows.next()? {
        let interval: i64 = row.get(0)?;
        if row.get::<_, i64>(1)? >= before_ms || Some(interval) == stays {
            break;
        }
        last = Some((interval, row.get(2)?, row.get(3)?));
        count += 1;
    }
    drop(rows);
    let Some((interval, start_ns, end_ns)) = last else { return Ok(0) };
    transaction
        .prepare_cached("DELETE FROM queue_rows WHERE epoch = ? AND interval <= ?")?
        .execute([epoch, interval])?;
    transaction
        .prepare_cached(
            "UPDATE queue_epochs SET stored = stored - ?2, removed = ?3, removed_start_ns = ?4, \
             removed_end_ns = ?5 WHERE id = ?1",
        )?
        .execute([epoch, signed(count), interval, start_ns, end_ns])?;
    set_oldest(transaction, epoch)?;
    transaction
        .prepare_cached("UPDATE queues SET rows = rows - ?2 WHERE id = ?1")?
        .execute([queue, signed(count)])?;
    Ok(count)
}

/// Takes out the epoch of a queue that began first, but the one in which a row was accepted last
/// only where there is no other. Says how many rows went.
pub(super) fn remove_oldest_epoch(
    transaction: &Transaction<'_>,
    queue: i64,
) -> rusqlite::Result<u64> {
    let (epoch, stored) = transaction
        .prepare_cached(
            "SELECT e.id, e.stored FROM queues q CROSS JOIN queue_epochs e ON e.queue = q.id \
             WHERE q.id = ? ORDER BY e.id IS q.epoch, e.id LIMIT 1",
        )?
        .query_row([queue], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?;
    remove_epoch(transaction, queue, epoch)?;
    Ok(stored)
}

fn remove_epoch(transaction: &Transaction<'_>, queue: i64, epoch: i64) -> rusqlite::Result<()> {
    for sql in
        ["DELETE FROM queue_rows WHERE epoch = ?", "DELETE FROM queue_rejections WHERE epoch = ?"]
    {
        transaction.prepare_cached(sql)?.execute([epoch])?;
    }
    let stored = transaction
        .prepare_cached("DELETE FROM queue_epochs WHERE id = ? RETURNING stored")?
        .query_row([epoch], |row| row.get::<_, i64>(0))?;
    transaction
        .prepare_cached(
            "UPDATE queues SET rows = rows - ?2, epochs = epochs - 1, epoch = CASE WHEN epoch = ?3 \
             THEN (SELECT max(id) FROM queue_epochs WHERE queue = ?1 AND accepted > 0) \
             ELSE epoch END WHERE id = ?1",
        )?
        .execute([queue, stored, epoch])
        .map(drop)
}

/// An epoch that retention looks at.
struct Old {
    epoch: i64,
    queue: i64,
    heard_ms: i64,
    /// The number of the latest row, where it is the queue's latest.
    latest: Option<i64>,
}

/// Takes out rows that were received before a time, at most so many, and epochs and queues of which
/// nothing was heard since. Says how many rows and epochs went.
// SEQ-7.10
pub(crate) fn remove_older(
    transaction: &Transaction<'_>,
    before_ms: i64,
    most: u64,
) -> rusqlite::Result<u64> {
    let mut find = transaction.prepare_cached(
        "SELECT e.id, e.queue, e.heard_ms, CASE WHEN q.epoch = e.id THEN e.last END \
         FROM queue_epochs e CROSS JOIN queues q ON q.id = e.queue \
         WHERE e.oldest_ms < ? ORDER BY e.oldest_ms LIMIT ?",
    )?;
    let old = find
        .query_map([before_ms, EPOCHS_AT_A_TIME], |row| {
            let (epoch, queue) = (row.get(0)?, row.get(1)?);
            Ok(Old { epoch, queue, heard_ms: row.get(2)?, latest: row.get(3)? })
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut gone = 0;
    for Old { epoch, queue, heard_ms, latest } in &old {
        let room = most.saturating_sub(gone);
        if room == 0 {
            break;
        }
        // What a device still repeats is how its queue stands.
        let heard = *heard_ms >= before_ms;
        let stays = latest.filter(|_| heard);
        let removed = remove_rows(transaction, *queue, *epoch, before_ms, room, stays)?;
        gone += removed;
        if removed == room {
            continue;
        }
        if heard {
            // Nothing more of it is old.
            transaction
                .prepare_cached(
                    "UPDATE queue_epochs SET oldest_ms = max(oldest_ms, ?2) WHERE id = ?1",
                )?
                .execute([*epoch, *heard_ms])?;
            continue;
        }
        let stored: i64 = transaction
            .prepare_cached("SELECT stored FROM queue_epochs WHERE id = ?")?
            .query_row([*epoch], |row| row.get(0))?;
        if stored == 0 {
            remove_epoch(transaction, *queue, *epoch)?;
            remove_empty_queue(transaction, *queue)?;
            gone += 1;
        }
    }
    Ok(gone)
}

fn remove_empty_queue(transaction: &Transaction<'_>, queue: i64) -> rusqlite::Result<()> {
    let device: Option<i64> = transaction
        .prepare_cached("DELETE FROM queues WHERE id = ? AND epochs = 0 RETURNING device")?
        .query_row([queue], |row| row.get(0))
        .optional()?;
    if let Some(device) = device {
        transaction
            .prepare_cached("UPDATE queue_devices SET queues = queues - 1 WHERE id = ?")?
            .execute([device])?;
    }
    Ok(())
}
