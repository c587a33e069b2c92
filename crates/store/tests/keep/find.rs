//! Finding epochs: the same ones, in the same order, as by looking at each of them.

use std::net::IpAddr;

use observe::outcome::Outcome::{self, Active, Complete, Incomplete, Invalid};
use rusqlite::Connection;
use store::{Change, EpochFilter, EpochRow, Reader, SessionId, Store, StoreError, StoreLimits};
use wire::frame::Addresses;

use crate::support::{Scratch, facts, report, state, with_outcome};

/// More than two blocks.
const EPOCHS: u64 = 3_000;

/// A small generator: the same numbers every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

const OUTCOMES: [Outcome; 4] = [Complete, Incomplete, Active, Invalid];

fn address(number: u64) -> [u8; 4] {
    [10, 0, 0, u8::try_from(number).unwrap()]
}

/// Epochs of a few hosts and queue pairs, their times more or less in order, some of them later
/// than any time that SQLite sorts rightly.
fn filled(scratch: &Scratch) -> (Store, SessionId) {
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    let mut numbers = Numbers(7);
    let mut changes = Vec::new();
    for id in 1..=EPOCHS {
        let mut report = report(id, 1, true);
        let (source, destination) = (numbers.below(3), numbers.below(3));
        let key = &mut report.snapshot.key;
        key.addresses = Addresses::v4(address(source), address(destination));
        key.qp = u32::try_from(numbers.below(4)).unwrap();
        report.snapshot.start_ms = id + numbers.below(50);
        report.snapshot.end_ms = report.snapshot.start_ms + numbers.below(200);
        if numbers.below(500) == 0 {
            report.snapshot.end_ms = u64::MAX - numbers.below(5);
            // And some begin as late, some right where sorting turns.
            report.snapshot.start_ms = match numbers.below(3) {
                0 => report.snapshot.start_ms,
                1 => report.snapshot.end_ms - 10,
                _ => (1 << 63) - 1 + numbers.below(3),
            };
        }
        let outcome = OUTCOMES[usize::try_from(numbers.below(100).min(3)).unwrap()];
        changes
            .push(Change::Epoch(Box::new(with_outcome(state(session, &[report], 5_000), outcome))));
    }
    for part in changes.chunks(700) {
        store.apply(part).unwrap();
    }
    (store, session)
}

fn all(reader: &Reader) -> Vec<EpochRow> {
    let filter = EpochFilter { limit: 100_000, ..EpochFilter::default() };
    reader.epochs(&filter).unwrap().rows
}

/// What a filter lets through, said in the plainest way.
fn admits(filter: &EpochFilter, row: &EpochRow) -> bool {
    let snapshot = &row.epoch.latest.snapshot;
    let addresses = &snapshot.key.addresses;
    let is = |wanted: Option<IpAddr>, octets: &[u8; 16]| {
        wanted.is_none_or(|wanted| wanted == IpAddr::from(*octets.first_chunk::<4>().unwrap()))
    };
    filter.outcome.is_none_or(|outcome| outcome == row.outcome)
        && is(filter.source, &addresses.source)
        && is(filter.destination, &addresses.destination)
        && filter.qp.is_none_or(|qp| qp == snapshot.key.qp)
        && filter.since_ms.is_none_or(|since| snapshot.end_ms >= since)
        && filter.until_ms.is_none_or(|until| snapshot.start_ms < until)
        && filter.cursor.is_none_or(|cursor| row.place < cursor)
}

#[test]
fn every_filter_finds_what_a_look_at_each_epoch_finds_page_by_page() {
    let scratch = Scratch::new();
    let (store, _) = filled(&scratch);
    let reader = store.reader().unwrap();
    let all = all(&reader);
    assert_eq!(all.len(), usize::try_from(EPOCHS).unwrap());
    let mut numbers = Numbers(11);
    let (mut rare, mut many) = (0, 0);
    for bits in (0..64).cycle().take(256) {
        let with = |bit: u32| bits & 1 << bit != 0;
        // Now and then a value that nothing has.
        let since = match numbers.below(6) {
            0 => (1 << 63) - 2 + numbers.below(4),
            1 => u64::MAX - 450 + numbers.below(12),
            _ => numbers.below(EPOCHS + 400),
        };
        let filter = EpochFilter {
            outcome: with(0).then(|| OUTCOMES[usize::try_from(numbers.below(4)).unwrap()]),
            source: with(1).then(|| address(numbers.below(4)).into()),
            destination: with(2).then(|| address(numbers.below(4)).into()),
            qp: with(3).then(|| u32::try_from(numbers.below(5)).unwrap()),
            since_ms: with(4).then_some(since),
            until_ms: with(5).then(|| match numbers.below(8) {
                0 => u64::MAX - numbers.below(20),
                1 => (1 << 63) - 1 + numbers.below(4),
                _ => since.saturating_sub(50) + numbers.below(400),
            }),
            limit: 1 + usize::try_from(numbers.below(200)).unwrap(),
            cursor: None,
        };
        let expected: Vec<u64> =
            all.iter().filter(|row| admits(&filter, row)).map(|row| row.place).collect();
        let mut found = Vec::new();
        let mut page = reader.epochs(&filter).unwrap();
        loop {
            assert!(page.rows.len() <= filter.limit, "{filter:?}");
            found.extend(page.rows.iter().map(|row| row.place));
            let Some(next) = page.next else { break };
            assert_eq!(page.rows.len(), filter.limit, "{filter:?}");
            page = reader.epochs(&EpochFilter { cursor: Some(next), ..filter.clone() }).unwrap();
        }
        assert_eq!(found, expected, "{filter:?}");
        rare += usize::from(expected.len() < 10);
        many += usize::from(expected.len() > 500);
    }
    // The filters are neither all empty nor all full.
    assert!(rare > 10 && many > 10, "{rare} {many}");
}

#[test]
fn times_beyond_what_a_database_sorts_are_later_than_all_others() {
    let scratch = Scratch::new();
    let (store, _) = filled(&scratch);
    let reader = store.reader().unwrap();
    let late =
        EpochFilter { since_ms: Some(u64::MAX >> 1), limit: 1_000, ..EpochFilter::default() };
    let found = reader.epochs(&late).unwrap().rows;
    assert!(!found.is_empty());
    assert!(found.iter().all(|row| row.epoch.latest.snapshot.end_ms > u64::MAX - 5));
    // Nothing has a request at the very latest time, or later, but what says so.
    for since_ms in [(1 << 63) + 7, u64::MAX - 2, u64::MAX] {
        let found = reader.epochs(&EpochFilter { since_ms: Some(since_ms), ..late.clone() });
        let ends = found.unwrap().rows.iter().map(|row| row.epoch.latest.snapshot.end_ms).min();
        assert!(ends.is_none_or(|end_ms| end_ms >= since_ms), "{since_ms}: {ends:?}");
    }
    let until = EpochFilter { since_ms: None, until_ms: Some(u64::MAX), limit: 5_000, ..late };
    assert_eq!(reader.epochs(&until).unwrap().rows.len(), all(&reader).len());
}

fn counted(reader: &Reader, of: SessionId) -> [(Vec<(Outcome, u64)>, &'static str); 2] {
    [(reader.outcomes(of).unwrap(), "session"), (reader.counts_by_outcome().unwrap(), "all")]
}

// SEQ-7.11
#[test]
fn outcomes_are_counted_as_they_come_turn_and_go() {
    let scratch = Scratch::new();
    let (mut store, session) = filled(&scratch);
    let reader = store.reader().unwrap();
    let count = |reader: &Reader| {
        let rows = all(reader);
        let of = |outcome: Outcome| {
            let count = rows.iter().filter(|row| row.outcome == outcome).count();
            (outcome, u64::try_from(count).unwrap())
        };
        let mut found: Vec<_> = OUTCOMES.map(of).into_iter().filter(|(_, n)| *n > 0).collect();
        found.sort_by_key(|(outcome, _)| outcome.word());
        found
    };
    let check = |reader: &Reader| {
        for (mut found, what) in counted(reader, session) {
            found.sort_by_key(|(outcome, _)| outcome.word());
            assert_eq!(found, count(reader), "{what}");
        }
    };
    assert_eq!(count(&reader).len(), 4);
    check(&reader);
    let end = Change::SessionClosed { session, closed_ms: 6_000, reason: "over".into() };
    store.apply(&[end]).unwrap();
    assert!(count(&reader).iter().all(|(outcome, _)| *outcome != Active));
    check(&reader);
    assert_eq!(reader.counts_of_sessions().unwrap(), (0, 1));
    // All are older than that, and their session as well.
    let aged = StoreLimits { results_age_max_ms: 10, ..StoreLimits::default() };
    drop(store);
    let (mut store, _) = Store::open(scratch.path(), aged, 7_000).unwrap();
    store.retain(8_000).unwrap();
    assert_eq!(all(&reader), []);
    check(&reader);
    let database = Connection::open(Reader::path_in(scratch.path())).unwrap();
    for table in ["blocks", "outcomes", "epochs", "sessions"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = database.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn reading_that_is_given_up_says_so_and_the_reader_stays_good() {
    let scratch = Scratch::new();
    let (store, _) = filled(&scratch);
    let reader = store.reader().unwrap();
    reader.give_up_when(|| true);
    let filter = EpochFilter { limit: 100_000, ..EpochFilter::default() };
    assert!(matches!(reader.epochs(&filter), Err(StoreError::GivenUp { .. })));
    reader.give_up_when(|| false);
    assert_eq!(all(&reader).len(), usize::try_from(EPOCHS).unwrap());
}

/// Version 1 had these indexes, and nothing of what is dropped here.
const BACK_TO_1: &str = "
DROP TABLE queue_rejections; DROP TABLE queue_rows; DROP TABLE queue_epochs;
DROP TABLE queues; DROP TABLE queue_verdicts; DROP TABLE queue_devices;
DROP TABLE pfc_counters; DROP TABLE pfc_history; DROP TABLE pfc_counts;
DROP TRIGGER epochs_came; DROP TRIGGER epochs_turned; DROP TRIGGER epochs_went;
DROP TABLE blocks; DROP TABLE outcomes;
DROP INDEX epochs_outcome; DROP INDEX epochs_source;
DROP INDEX epochs_destination; DROP INDEX epochs_qp;
CREATE INDEX epochs_outcome ON epochs (outcome);
CREATE INDEX epochs_source ON epochs (source);
CREATE INDEX epochs_destination ON epochs (destination);
CREATE INDEX epochs_qp ON epochs (qp);
PRAGMA user_version = 1;
";

#[test]
fn a_database_of_version_1_is_taken_over_with_what_is_in_it() {
    let dump = |path: &std::path::Path, table: &str| -> Vec<(i64, String, i64)> {
        let database = Connection::open(path).unwrap();
        let mut query = database.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let rows = query.query_map([], |row| {
            let second: rusqlite::types::Value = row.get(1)?;
            Ok((row.get(0)?, format!("{second:?}"), row.get(2)?))
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    };
    let scratch = Scratch::new();
    let path = Reader::path_in(scratch.path());
    let (store, session) = filled(&scratch);
    let (before, counts) =
        (all(&store.reader().unwrap()), counted(&store.reader().unwrap(), session));
    let tables = ["blocks", "outcomes"].map(|table| dump(&path, table));
    assert_eq!(tables[0].len(), 3);
    drop(store);
    Connection::open(&path).unwrap().execute_batch(BACK_TO_1).unwrap();
    assert!(matches!(
        Connection::open(&path).unwrap().query_row("SELECT 1 FROM blocks", [], |_| Ok(())),
        Err(rusqlite::Error::SqliteFailure(..))
    ));
    // The same as it was but for what was active, which is over.
    let (store, recovery) = Store::open(scratch.path(), StoreLimits::default(), 5_000).unwrap();
    let reader = store.reader().unwrap();
    let after = all(&reader);
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        let still = before.outcome != Active;
        assert!(still && before == after || !still && after.outcome != Active);
    }
    assert!(recovery.epochs_incomplete > 0);
    assert_eq!(dump(&path, "blocks"), tables[0]);
    let sum = |counts: &[(Outcome, u64)]| counts.iter().map(|(_, n)| n).sum::<u64>();
    for ((found, what), (was, _)) in counted(&reader, session).iter().zip(&counts) {
        assert_eq!(sum(found), sum(was), "{what}");
        assert!(found.iter().all(|(outcome, _)| *outcome != Active), "{what}");
    }
}
