//! Rows of queues: judged as rows of a file are, kept within bounds, found again.

use std::sync::Arc;

use observe::queue::aggregate::{Aggregator, Group, Verdict};
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};
use proptest::prelude::*;
use rusqlite::Connection;
use store::{
    Change, QueueEntry, QueueFilter, QueueGroup, QueueLimits, QueueReceived, QueueRow, Reader,
    Store, StoreLimits,
};

use crate::support::{Scratch, facts};

fn place(queue: &str) -> Arc<Place> {
    Arc::new(Place { interface: "Ethernet1/1".into(), queue: queue.into() })
}

fn epoch(nth: u8) -> EpochId {
    EpochId::random([nth; 16])
}

fn row(queue: &str, nth: u8, interval: u64, start_ns: u64, duration_ns: u64) -> Row {
    let known = Known {
        method: Method::Events,
        gated_ns: duration_ns / 4,
        backlog_ns: duration_ns / 2,
        error_ns: 1,
    };
    Row {
        place: place(queue),
        epoch: epoch(nth),
        interval,
        start_ns,
        duration_ns,
        wall_clock_start: None,
        priorities: Priorities::from_bits(1 << 3).unwrap(),
        measurement: Measurement::Known(known),
    }
}

/// Interval `interval` of a queue that is measured every 100 ns without a hole.
fn regular(nth: u8, interval: u64) -> Row {
    row("q3", nth, interval, interval * 100, 100)
}

fn entry(device: &str, received_ms: u64, entry: QueueEntry) -> Change {
    Change::Queue(Box::new(QueueReceived { device: device.into(), received_ms, entry }))
}

fn came(device: &str, received_ms: u64, row: &Row) -> Change {
    entry(device, received_ms, QueueEntry::Row(row.clone()))
}

fn open(scratch: &Scratch, queues: QueueLimits) -> Store {
    let limits = StoreLimits { queues, ..StoreLimits::default() };
    Store::open(scratch.path(), limits, 0).unwrap().0
}

fn all() -> QueueFilter {
    QueueFilter { limit: 100_000, ..QueueFilter::default() }
}

fn stand(reader: &Reader) -> QueueRow {
    let mut rows = reader.queues(&all()).unwrap().rows;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

fn groups(reader: &Reader, filter: &QueueFilter) -> Vec<QueueGroup> {
    reader.queue_groups(filter, u64::MAX).unwrap().rows
}

/// What became of the entries of the only device.
fn verdicts(reader: &Reader) -> Vec<(String, u64)> {
    let mut devices = reader.queue_devices().unwrap();
    assert_eq!(devices.len(), 1);
    devices.remove(0).verdicts
}

fn of(verdicts: &[(&str, u64)]) -> Vec<(String, u64)> {
    verdicts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
}

fn stored(reader: &Reader) -> Vec<Row> {
    reader.queue_rows(&all()).unwrap().rows.into_iter().rev().map(|found| found.row).collect()
}

fn told(group: &Group) -> String {
    let rejected: Vec<_> = group.rejected().iter().map(|(n, why)| format!("{n} {why}")).collect();
    format!("{} {} {:?} {rejected:?}", group.place(), group.epoch(), group.span())
}

// QUE-con.1
#[test]
fn a_row_comes_back_as_it_was_whatever_it_holds() {
    let scratch = Scratch::new();
    let mut store = open(&scratch, QueueLimits::default());
    let events = row("a/1", 1, 1, 0, 100);
    let sampled = Known {
        method: Method::Samples { period_ns: 7 },
        gated_ns: 0,
        backlog_ns: 0,
        error_ns: 100,
    };
    let mut rows = vec![
        Row { wall_clock_start: Some("2026-10-30T00:00:00Z".into()), ..events.clone() },
        Row { interval: 3, start_ns: 250, measurement: Measurement::Known(sampled), ..events },
    ];
    for (nth, reason) in (4..).zip(Reason::ALL) {
        let measurement = Measurement::Unknown(reason);
        rows.push(Row { measurement, ..row("a/1", 1, nth, nth * 100, 100) });
    }
    rows.push(row("a/1", 1, u64::MAX - 1, (1 << 53) - 201, 100));
    rows.push(row("a/1", 1, u64::MAX, (1 << 53) - 101, 100));
    // The highest numbers are of an epoch of their own: here there is no time for those between.
    let (far, near) = rows.split_at(rows.len() - 2);
    let far: Vec<_> = far.iter().zip(10..).map(|(row, ms)| came("leaf", ms, row)).collect();
    store.apply(&far).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(stored(&reader), rows[..rows.len() - 2]);
    let near: Vec<_> =
        near.iter().map(|row| came("leaf", 99, &Row { epoch: epoch(2), ..row.clone() })).collect();
    store.apply(&near).unwrap();
    let found = stored(&reader);
    assert_eq!(found.last().unwrap().interval, u64::MAX);
    assert_eq!(verdicts(&reader), of(&[("accepted", rows.len() as u64)]));
    let queue = stand(&reader);
    assert_eq!((queue.device.as_str(), &*queue.of), ("leaf", &*place("a/1")));
    let (latest, received) = queue.latest.unwrap();
    assert_eq!((latest.interval, received), (u64::MAX, 99));
}

// QUE-con.1
#[test]
fn what_is_missing_is_known_by_number_and_by_time_and_a_late_row_fills_it() {
    let scratch = Scratch::new();
    let mut store = open(&scratch, QueueLimits::default());
    let unknown = Row { measurement: Measurement::Unknown(Reason::CaptureGap), ..regular(1, 7) };
    let rows = [regular(1, 2), regular(1, 3), regular(1, 6), unknown];
    store.apply(&rows.each_ref().map(|row| came("leaf", 5, row))).unwrap();
    let reader = store.reader().unwrap();
    let known = |reader: &Reader| {
        let epoch = stand(reader).epoch.unwrap();
        (epoch.first, epoch.last, epoch.missing_intervals(), epoch.gap_ns(), epoch.unknown_ns)
    };
    assert_eq!(known(&reader), (2, 7, 2, 200, 100));
    store.apply(&[came("leaf", 6, &regular(1, 5)), came("leaf", 6, &regular(1, 1))]).unwrap();
    assert_eq!(known(&reader), (1, 7, 1, 100, 100));
    // A hole in time without one in the numbers.
    store.apply(&[came("leaf", 7, &row("q3", 1, 8, 850, 100))]).unwrap();
    assert_eq!(known(&reader), (1, 8, 1, 150, 100));
    // An epoch is a boundary: nothing is missing between two.
    store.apply(&[came("leaf", 8, &regular(2, 9))]).unwrap();
    assert_eq!(known(&reader), (9, 9, 0, 0, 0));
    assert_eq!(stand(&reader).epochs, 2);
}

// QUE-con.1
#[test]
fn what_contradicts_an_accepted_row_does_not_replace_it_before_and_after_a_restart() {
    let scratch = Scratch::new();
    let mut store = open(&scratch, QueueLimits::default());
    let rows = [regular(1, 2), regular(1, 4)];
    store.apply(&rows.each_ref().map(|row| came("leaf", 5, row))).unwrap();
    let other = Row { duration_ns: 99, ..regular(1, 2) };
    let mapped = Row { priorities: Priorities::from_bits(1).unwrap(), ..regular(1, 5) };
    let bad = [
        other,
        mapped,
        row("q3", 1, 3, 150, 100),
        row("q3", 1, 5, 0, 100),
        row("q3", 1, 9, 502, 100),
        Row { interval: 0, ..regular(1, 1) },
    ];
    for round in 1..=2 {
        let changes: Vec<_> =
            bad.iter().chain(&rows).map(|row| came("leaf", 6 + round, row)).collect();
        store.apply(&changes).unwrap();
        let malformed = QueueEntry::Malformed {
            place: place("q3"),
            epoch: epoch(1),
            interval: 3,
            why: "no quality, expected one".into(),
        };
        store
            .apply(&[entry("leaf", 9, malformed), entry("leaf", 9, QueueEntry::Nameless)])
            .unwrap();
        let reader = store.reader().unwrap();
        assert_eq!(stored(&reader), rows);
        let expected = [
            ("accepted", 2),
            ("backward", round),
            ("conflicting", round),
            ("invalid", 3 * round),
            ("noRoom", round),
            ("otherMapping", round),
            ("overlapping", round),
            ("repeated", 2 * round),
        ];
        assert_eq!(verdicts(&reader), of(&expected));
        let epoch = stand(&reader).epoch.unwrap();
        assert_eq!((epoch.accepted, epoch.repeated, epoch.rejected), (2, 2 * round, 7 * round));
        drop(reader);
        drop(store);
        store = open(&scratch, QueueLimits::default());
    }
    let groups = groups(&store.reader().unwrap(), &all());
    let reasons: Vec<_> =
        groups[0].group.rejected().iter().map(|(n, why)| (*n, why.to_string())).collect();
    assert_eq!(reasons.len(), 14);
    assert_eq!(reasons[0], (2, "conflicting content under the same identity".into()));
    assert_eq!(reasons[6], (3, "no quality, expected one".into()));
}

/// Rows in which everything that a row can be to others happens.
fn any_row() -> impl Strategy<Value = Row> {
    (0..2_u8, 0..3_u8, 0..12_u64, 0..5_u64, 0..4_u64, 0..8_u8).prop_map(
        |(queue, nth, interval, shift, length, odd)| {
            let mut row = row(&queue.to_string(), nth, interval, interval * 10 + shift, 8 + length);
            if odd == 0 {
                row.priorities = Priorities::from_bits(2).unwrap();
            }
            if odd == 1 {
                row.measurement = Measurement::Unknown(Reason::Other);
            }
            row
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // QUE-con.1, QUE-con.2
    #[test]
    fn rows_are_judged_and_summed_as_those_of_a_file_whenever_the_program_begins_again(
        rows in prop::collection::vec(any_row(), 1..60),
        restart in 0..60_usize,
    ) {
        let scratch = Scratch::new();
        let mut store = open(&scratch, QueueLimits::default());
        let mut model = Aggregator::new(usize::MAX);
        let mut counts = std::collections::BTreeMap::<&str, u64>::new();
        for (nth, row) in rows.iter().enumerate() {
            if nth == restart {
                drop(store);
                store = open(&scratch, QueueLimits::default());
            }
            store.apply(&[came("leaf", nth as u64, row)]).unwrap();
            *counts.entry(model.row(row).unwrap().word()).or_default() += 1;
        }
        let reader = store.reader().unwrap();
        let expected: Vec<_> = counts.into_iter().map(|(w, n)| (w.to_owned(), n)).collect();
        prop_assert_eq!(verdicts(&reader), expected);
        let sorted = |mut all: Vec<String>| { all.sort(); all };
        let found = sorted(groups(&reader, &all()).iter().map(|g| told(&g.group)).collect());
        prop_assert_eq!(found, sorted(model.groups().iter().map(told).collect()));
    }
}

#[test]
fn pages_of_rows_and_of_groups_are_the_whole_without_what_is_there_twice() {
    let scratch = Scratch::new();
    let mut store = open(&scratch, QueueLimits::default());
    let mut changes = Vec::new();
    for device in ["leaf", "spine"] {
        for queue in ["0", "1"] {
            for nth in 1..4 {
                for interval in 1..6 {
                    let one = row(queue, nth, interval, interval * 100, 100);
                    changes.push(came(device, changes.len() as u64, &one));
                }
            }
        }
    }
    store.apply(&changes).unwrap();
    let reader = store.reader().unwrap();
    let whole = reader.queue_rows(&all()).unwrap();
    assert_eq!((whole.rows.len(), whole.next), (60, None));
    for limit in [1, 2, 7, 59, 60, 61] {
        let mut rows = Vec::new();
        let mut filter = QueueFilter { limit, ..all() };
        loop {
            let page = reader.queue_rows(&filter).unwrap();
            rows.extend(page.rows);
            filter.cursor = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(rows, whole.rows, "{limit}");
    }
    for (limit, rows_max) in [(1, u64::MAX), (5, u64::MAX), (100, 1), (100, 5), (100, 11)] {
        let mut found = Vec::new();
        let mut filter = QueueFilter { limit, ..all() };
        loop {
            let page = reader.queue_groups(&filter, rows_max).unwrap();
            assert!(page.rows.len() <= limit);
            found.extend(page.rows.iter().map(|g| format!("{} {}", g.device, told(&g.group))));
            filter.cursor = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(found.len(), 12, "{limit} {rows_max}");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 12, "{limit} {rows_max}");
    }
    let some = QueueFilter {
        device: Some("leaf".into()),
        interface: Some("Ethernet1/1".into()),
        queue: Some("1".into()),
        epoch: Some(epoch(2)),
        ..all()
    };
    let found = reader.queue_rows(&some).unwrap().rows;
    let of_it = |row: &Row| &*row.place.queue == "1" && row.epoch == epoch(2);
    assert!(found.len() == 5 && found.iter().all(|f| f.device == "leaf" && of_it(&f.row)));
    // A time is when rows were received: 20 to 23 are the intervals 1 to 4 of one epoch.
    let span = QueueFilter { since_ms: Some(20), until_ms: Some(24), ..all() };
    let intervals: Vec<_> =
        reader.queue_rows(&span).unwrap().rows.iter().map(|f| f.row.interval).collect();
    assert_eq!(intervals, [4, 3, 2, 1]);
    let group = groups(&reader, &span).remove(0).group;
    let total = group.span().unwrap();
    assert_eq!((total.first, total.last, total.duration_ns), (1, 4, 400));
    assert_eq!(reader.queues(&QueueFilter { since_ms: Some(59), ..all() }).unwrap().rows.len(), 1);
}

// QUE-sec.1
#[test]
fn queues_of_a_device_and_epochs_rows_and_reasons_of_a_queue_are_bounded() {
    let scratch = Scratch::new();
    let limits = QueueLimits {
        queues_max: 2,
        epochs_max: 3,
        rows_max: 16,
        rejections_max: 2,
        ..QueueLimits::default()
    };
    let mut store = open(&scratch, limits);
    for queue in ["q3", "b", "c", "c", "q3"] {
        store.apply(&[came("leaf", 1, &row(queue, 1, 1, 100, 100))]).unwrap();
    }
    // Another device has room of its own.
    store.apply(&[came("spine", 1, &row("c", 1, 1, 100, 100))]).unwrap();
    let reader = store.reader().unwrap();
    let devices = reader.queue_devices().unwrap();
    assert_eq!((devices[0].queues, devices[1].queues), (2, 1));
    let expected = of(&[("accepted", 2), ("queuesFull", 2), ("repeated", 1)]);
    assert_eq!(devices[0].verdicts, expected);
    let q3 = |reader: &Reader| {
        let one = QueueFilter { queue: Some("q3".into()), ..all() };
        let (rows, queue) = (reader.queue_rows(&one).unwrap().rows, reader.queues(&one).unwrap());
        let intervals: Vec<_> = rows.iter().rev().map(|f| f.row.interval).collect();
        assert_eq!(queue.rows[0].stored, intervals.len() as u64);
        intervals
    };
    for interval in 2..=16 {
        store.apply(&[came("leaf", 1, &regular(1, interval))]).unwrap();
    }
    assert_eq!(q3(&reader), (1..=16).collect::<Vec<_>>());
    store.apply(&[came("leaf", 1, &regular(1, 17))]).unwrap();
    assert_eq!(q3(&reader), (3..=17).collect::<Vec<_>>());
    // What went cannot be judged any more; what is counted of the epoch stays.
    store.apply(&[came("leaf", 1, &regular(1, 2)), came("leaf", 1, &regular(1, 3))]).unwrap();
    assert_eq!(q3(&reader), (3..=17).collect::<Vec<_>>());
    let words = reader.queue_devices().unwrap().remove(0).verdicts;
    assert!(words.contains(&("notKept".into(), 1)), "{words:?}");
    let one = QueueFilter { queue: Some("q3".into()), ..all() };
    let known = reader.queues(&one).unwrap().rows.remove(0).epoch.unwrap();
    assert_eq!((known.accepted, known.first, known.missing_intervals()), (17, 1, 0));
    assert_eq!(groups(&reader, &one)[0].removed, Some(2));
    // Reasons: the latest two.
    for duration_ns in [1, 2, 3] {
        let other = Row { duration_ns, ..regular(1, 9) };
        store.apply(&[came("leaf", 1, &other)]).unwrap();
    }
    assert_eq!(groups(&reader, &one)[0].group.rejected().len(), 2);
    // Epochs: the oldest goes with its rows, and what only says nonsense does not drive out the
    // one that rows are accepted of.
    for nth in 2..=40 {
        let bad = Row { interval: 0, ..regular(nth, 1) };
        store.apply(&[came("leaf", 1, &bad)]).unwrap();
    }
    let queue = reader.queues(&one).unwrap().rows.remove(0);
    assert_eq!((queue.epochs, queue.epoch.unwrap().id), (3, epoch(1)));
    for nth in 41..=44 {
        store.apply(&[came("leaf", 1, &regular(nth, 1))]).unwrap();
    }
    let epochs: Vec<_> = groups(&reader, &one).iter().map(|g| g.group.epoch()).collect();
    assert_eq!(epochs, [epoch(44), epoch(43), epoch(42)]);
    assert_eq!(q3(&reader), [1, 1, 1]);
}

// SEQ-7.10
#[test]
fn rows_go_when_they_are_old_and_the_latest_stays_while_its_device_repeats_it() {
    let scratch = Scratch::new();
    let limits = QueueLimits { age_max_ms: 1000, ..QueueLimits::default() };
    let mut store = open(&scratch, limits);
    let rows = [1, 2, 3, 6].map(|interval| regular(1, interval));
    for (row, received_ms) in rows.iter().zip([100, 200, 300, 400]) {
        store.apply(&[came("leaf", received_ms, row)]).unwrap();
    }
    let reader = store.reader().unwrap();
    assert_eq!(store.retain(1100).unwrap().queue_rows_removed, 0);
    assert_eq!(store.retain(1101).unwrap().queue_rows_removed, 1);
    assert_eq!(stored(&reader), rows[1..]);
    store.apply(&[came("leaf", 1500, &rows[3])]).unwrap();
    assert_eq!(store.retain(2000).unwrap().queue_rows_removed, 2);
    assert_eq!(stored(&reader), rows[3..]);
    // A neighbour that went still says where no row can be.
    let early = row("q3", 1, 4, 399, 50);
    store.apply(&[came("leaf", 1501, &early)]).unwrap();
    assert_eq!(stored(&reader), rows[3..]);
    assert!(verdicts(&reader).contains(&("overlapping".into(), 1)));
    assert_eq!(store.retain(2600).unwrap().queue_rows_removed, 2, "the row and its epoch");
    assert_eq!(reader.queues(&all()).unwrap().rows, []);
    assert_eq!(reader.queue_devices().unwrap()[0].queues, 0);
    // A queue may come again.
    store.apply(&[came("leaf", 2700, &rows[0])]).unwrap();
    assert_eq!(stored(&reader), rows[..1]);
}

// SEQ-7.10
#[test]
fn rows_of_queues_give_way_where_the_database_is_at_its_limit() {
    let scratch = Scratch::new();
    let limits = StoreLimits { octets_max: 1 << 20, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    for part in 0..40_u64 {
        let rows: Vec<_> =
            (1..=1000).map(|n| came("leaf", part, &regular(1, part * 1000 + n))).collect();
        store.apply(&rows).unwrap();
        let retained = store.retain(part).unwrap();
        assert!(retained.octets <= (1 << 20) / 10 * 9, "{retained:?}");
    }
    let reader = store.reader().unwrap();
    let rows = stored(&reader);
    assert!(rows.len() > 1000, "{}", rows.len());
    assert_eq!(rows.last().unwrap().interval, 40_000);
}

#[test]
fn a_database_of_version_3_is_taken_over() {
    let scratch = Scratch::new();
    let mut store = open(&scratch, QueueLimits::default());
    let session = store.open_session(&facts()).unwrap();
    drop(store);
    let old = Connection::open(Reader::path_in(scratch.path())).unwrap();
    old.execute_batch(WITHOUT_QUEUES).unwrap();
    old.execute_batch(crate::pfc::WITHOUT_EXPORTERS).unwrap();
    old.execute_batch("PRAGMA user_version = 3").unwrap();
    drop(old);
    let mut store = open(&scratch, QueueLimits::default());
    let reader = store.reader().unwrap();
    assert_eq!(reader.sessions(1, None).unwrap().rows[0].session, session);
    assert_eq!(reader.queues(&all()).unwrap().rows, []);
    store.apply(&[came("leaf", 1, &regular(1, 1))]).unwrap();
    assert_eq!(stored(&reader), [regular(1, 1)]);
}

/// As a database was before it had queues.
pub const WITHOUT_QUEUES: &str = "DROP TABLE queue_rejections; DROP TABLE queue_rows; \
    DROP TABLE queue_epochs; DROP TABLE queues; DROP TABLE queue_verdicts; \
    DROP TABLE queue_devices;";

#[test]
fn words_for_what_became_of_a_row_are_all_listed() {
    use observe::queue::aggregate::Rejection;
    let rejections = [
        Rejection::Malformed("".into()),
        Rejection::Conflict,
        Rejection::OtherMapping,
        Rejection::Overlap(1),
        Rejection::Backward(1),
        Rejection::NoRoom(1),
    ];
    let mut words = vec![Verdict::Accepted.word(), Verdict::Repeated.word()];
    words.extend(rejections.iter().map(Rejection::word));
    assert_eq!(words, store::QUEUE_VERDICTS[..8]);
}
