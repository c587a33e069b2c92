//! What goes and what stays, at the limits.

use std::fs;

use observe::outcome::Outcome;
use store::archive::{Archive, ArchiveLimits, Removed, segments};
use store::{Change, EpochFilter, SessionId, Store, StoreLimits};

use crate::support::{Scratch, facts, messages, report, state};

fn all() -> EpochFilter {
    EpochFilter { limit: 100_000, ..EpochFilter::default() }
}

fn ids(store: &Store) -> Vec<u64> {
    let rows = store.reader().unwrap().epochs(&all()).unwrap().rows;
    rows.iter().rev().map(|row| row.epoch.latest.epoch_id).collect()
}

#[test]
fn results_go_when_they_are_older_than_the_limit_and_active_ones_never() {
    // SEQ-7.10
    let scratch = Scratch::new();
    let limits = StoreLimits { results_age_max_ms: 100, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    let changes = [(1, true, 999), (2, true, 1000), (3, true, 1001), (4, false, 1)]
        .map(|(id, last, at)| Change::Epoch(Box::new(state(session, &[report(id, 1, last)], at))));
    store.apply(&changes).unwrap();
    assert_eq!(store.retain(99).unwrap().epochs_removed, 0, "before any can be so old");
    for (now, removed, left) in
        [(1099, 0, vec![1, 2, 3, 4]), (1100, 1, vec![2, 3, 4]), (1101, 1, vec![3, 4])]
    {
        assert_eq!(store.retain(now).unwrap().epochs_removed, removed, "{now}");
        assert_eq!(ids(&store), left, "{now}");
    }
    assert_eq!(store.retain(u64::MAX).unwrap().epochs_removed, 1);
    assert_eq!(ids(&store), [4]);
}

#[test]
fn a_session_goes_with_its_last_epoch_and_an_open_one_stays() {
    let scratch = Scratch::new();
    let limits = StoreLimits { results_age_max_ms: 100, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let closed = store.open_session(&facts()).unwrap();
    let open = store.open_session(&facts()).unwrap();
    let epoch = Change::Epoch(Box::new(state(closed, &[report(1, 1, true)], 500)));
    let refused = Change::Refused { session: closed, domain: 1, kind: "stale".into(), records: 1 };
    let close = Change::SessionClosed { session: closed, closed_ms: 10, reason: "end".into() };
    store.apply(&[epoch, refused, close]).unwrap();
    assert_eq!(store.retain(600).unwrap().sessions_removed, 0);
    assert_eq!(store.retain(601).unwrap().sessions_removed, 1);
    let sessions = store.reader().unwrap().sessions(10, None).unwrap().rows;
    assert_eq!(sessions.iter().map(|row| row.session).collect::<Vec<_>>(), [open]);
}

#[test]
fn one_epoch_has_at_most_so_many_readings_and_the_oldest_go() {
    let scratch = Scratch::new();
    let limits = StoreLimits { history_per_epoch_max: 3, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    for n in 1..=5u64 {
        let reports: Vec<_> = (1..=n).map(|id| report(1, id, false)).collect();
        store.apply(&[Change::Epoch(Box::new(state(session, &reports, n)))]).unwrap();
        let history = store.reader().unwrap().history(session, 1, 1).unwrap();
        let found: Vec<_> = history.iter().map(|row| row.report_id).collect();
        let expected: Vec<_> = (n.saturating_sub(2).max(1)..=n).collect();
        assert_eq!(found, expected, "{n}");
    }
}

#[test]
fn readings_go_by_their_age_and_the_result_stays() {
    let scratch = Scratch::new();
    let limits = StoreLimits { history_age_max_ms: 100, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    let reports = [report(1, 1, false), report(1, 2, false)];
    for n in 1..=2 {
        store.apply(&[Change::Epoch(Box::new(state(session, &reports[..n], 1)))]).unwrap();
    }
    // Received at 2000 and 2001.
    for (now, removed) in [(2100, 0), (2101, 1), (2102, 1), (9999, 0)] {
        assert_eq!(store.retain(now).unwrap().readings_removed, removed, "{now}");
    }
    assert_eq!(ids(&store), [1]);
}

#[test]
fn a_database_that_is_too_large_loses_the_oldest_results_and_becomes_smaller() {
    // SEQ-7.10
    let scratch = Scratch::new();
    let large = StoreLimits { octets_max: 1 << 30, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), large, 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    let changes: Vec<_> = (1..=5000)
        .map(|id| Change::Epoch(Box::new(state(session, &[report(id, 1, id != 1)], id))))
        .collect();
    store.apply(&changes).unwrap();
    let before = store.retain(5000).unwrap();
    assert_eq!((before.epochs_removed, before.readings_removed), (0, 0));
    drop(store);
    let octets_max = before.octets / 2;
    let limits = StoreLimits { octets_max, ..large };
    let (mut store, recovery) = Store::open(scratch.path(), limits, 5001).unwrap();
    assert_eq!(recovery.epochs_incomplete, 1);
    let after = store.retain(5001).unwrap();
    assert!(after.octets <= octets_max / 10 * 9, "{after:?}");
    assert_eq!(after.readings_removed, 5000, "they go first");
    assert!(after.epochs_removed > 0, "{after:?}");
    let left = ids(&store);
    let gone = after.epochs_removed;
    let expected: Vec<_> = [1].into_iter().chain(gone + 2..=5000).collect();
    assert_eq!(left, expected, "the oldest are gone; that of the restart is the youngest");
}

/// An archive with closed sessions 1 to 3 of one message each, received at 1000, 2000, 3000, and
/// one that is open; the octets that each takes.
fn archived(scratch: &Scratch, limits: ArchiveLimits) -> (Archive, u64) {
    let (mut archive, _) = Archive::open(scratch.path(), limits).unwrap();
    let messages = messages(&[report(1, 1, false)]);
    for id in 1..=4 {
        let session = SessionId(id);
        archive.append(session, &facts(), id * 1000, &messages[0], Vec::new).unwrap();
        if id < 4 {
            archive.close(session, id * 1000).unwrap();
        }
    }
    archive.flush().unwrap();
    let of_one = |id: u64| -> u64 {
        let stem = format!("{id:010}-000000.");
        let files = fs::read_dir(scratch.path()).unwrap().map(Result::unwrap);
        let ours = files.filter(|file| file.file_name().to_str().unwrap().starts_with(&stem));
        ours.map(|file| file.metadata().unwrap().len()).sum()
    };
    assert_eq!((of_one(1), of_one(2)), (of_one(2), of_one(3)));
    (archive, of_one(1))
}

fn sessions(scratch: &Scratch) -> Vec<u64> {
    segments(scratch.path()).unwrap().iter().map(|segment| segment.session.0).collect()
}

#[test]
fn closed_segments_go_when_they_are_older_than_the_limit_and_the_open_one_never() {
    // SEQ-7.10, SEQ-7.18
    let scratch = Scratch::new();
    let limits = ArchiveLimits { age_max_ms: 100, ..ArchiveLimits::default() };
    let (mut archive, _) = archived(&scratch, limits);
    for (now, left) in [(1099, 1), (1100, 1), (1101, 2), (2101, 3)] {
        archive.retain(now).unwrap();
        assert_eq!(sessions(&scratch), (left..=4).collect::<Vec<_>>(), "{now}");
    }
    archive.retain(u64::MAX).unwrap();
    assert_eq!(sessions(&scratch), [4]);
    let files = fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!(files, 3, "nothing stays of those that went");
}

#[test]
fn the_oldest_closed_segments_go_until_the_archive_is_within_its_limit() {
    // SEQ-7.10, SEQ-7.18
    for (over, left) in [(0, 1), (1, 2)] {
        let scratch = Scratch::new();
        let (mut archive, of_one) = archived(&scratch, ArchiveLimits::default());
        let all = archive.retain(4000).unwrap();
        assert_eq!((all.segments_removed, all.octets_removed), (0, 0));
        drop(archive);
        let open = segments(scratch.path()).unwrap().pop().unwrap();
        assert!(!open.closed);
        // Opened by hand, so that the open segment stays as it is.
        let fresh = Scratch::new();
        let limits = ArchiveLimits { octets_max: all.octets - over, ..ArchiveLimits::default() };
        let (mut archive, _) = archived(&fresh, limits);
        let removed = archive.retain(4000).unwrap();
        assert_eq!(sessions(&fresh), (left..=4).collect::<Vec<_>>());
        let gone = left - 1;
        let expected = Removed {
            segments_removed: gone,
            octets_removed: gone * of_one,
            octets: all.octets - gone * of_one,
        };
        assert_eq!(removed, expected);
    }
    let scratch = Scratch::new();
    let limits = ArchiveLimits { octets_max: 0, ..ArchiveLimits::default() };
    let (mut archive, _) = archived(&scratch, limits);
    archive.retain(4000).unwrap();
    assert_eq!(sessions(&scratch), [4], "the open one stays even where nothing may");
}

#[test]
fn an_outcome_outlives_the_raw_records_it_came_from() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    let done = state(session, &[report(1, 1, true)], 1);
    store.apply(&[Change::Epoch(Box::new(done))]).unwrap();
    let limits = ArchiveLimits { octets_max: 0, ..ArchiveLimits::default() };
    let (mut archive, _) = Archive::open(&scratch.path().join("archive"), limits).unwrap();
    archive.retain(1).unwrap();
    let row = store.reader().unwrap().epoch(session, 1, 1).unwrap().unwrap();
    assert_eq!(row.outcome, Outcome::Complete);
}
