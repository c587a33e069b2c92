//! The database: what goes in comes out, all of a transaction or none, and restarts.

use observe::outcome::Outcome;
use observe::report::{Flags, Report};
use store::{Change, EpochFilter, Recovery, SessionId, Store, StoreError, StoreLimits};

use crate::support::{Scratch, facts, report, state, with_outcome};

fn open(scratch: &Scratch, now_ms: u64) -> (Store, Recovery) {
    Store::open(scratch.path(), StoreLimits::default(), now_ms).expect("opens")
}

fn all() -> EpochFilter {
    EpochFilter { limit: 1000, ..EpochFilter::default() }
}

fn epoch(state: store::EpochState) -> Change {
    Change::Epoch(Box::new(state))
}

#[test]
fn an_epoch_comes_out_as_it_went_in() {
    // SEQ-7.11, SEQ-7.15, SEQ-7.5
    let scratch = Scratch::new();
    let (mut store, recovery) = open(&scratch, 0);
    assert_eq!(recovery, Recovery::default());
    let session = store.open_session(&facts()).unwrap();
    let mut large = report(u64::MAX, 3, true);
    large.snapshot.end_ms = u64::MAX;
    large.snapshot.flags = large.snapshot.flags.with(Flags(0x8000));
    let mut other = report(3, 1, true);
    other.snapshot.counts.repeated += 1;
    let states = [
        state(session, &[report(1, 1, false)], 2500),
        state(session, &[report(2, 1, false), report(2, 2, true)], 2501),
        state(session, &[report(3, 1, true), other], 2502),
        state(session, &[large], u64::MAX),
    ];
    store.apply(&states.clone().map(epoch)).unwrap();
    let page = store.reader().unwrap().epochs(&all()).unwrap();
    assert_eq!(page.next, None);
    assert_eq!(page.rows.len(), states.len());
    for (row, state) in page.rows.iter().rev().zip(&states) {
        assert_eq!((row.session, row.domain), (state.session, state.domain));
        assert_eq!(row.epoch, state.epoch);
        assert_eq!((row.outcome, row.updated_ms), (state.outcome, state.updated_ms));
    }
    let told: Vec<_> = page
        .rows
        .iter()
        .rev()
        .map(|row| (row.outcome.word(), row.qualifications.join(" "), row.reason.as_deref()))
        .collect();
    let contradiction = "the latest report id again with other content";
    assert_eq!(
        told,
        [
            ("active", String::new(), None),
            ("complete", String::new(), None),
            ("invalid", String::new(), Some(contradiction)),
            ("incomplete", "unsupportedFlags reportGap".into(), Some("2 reports are missing")),
        ]
    );
}

#[test]
fn a_transaction_that_fails_leaves_nothing_of_itself() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch, 0);
    let session = store.open_session(&facts()).unwrap();
    let nobody = SessionId(session.0 + 1);
    let changes = [
        epoch(state(session, &[report(1, 1, true)], 1)),
        Change::Refused { session, domain: 1, kind: "stale".into(), records: 1 },
        epoch(state(nobody, &[report(1, 1, true)], 1)),
    ];
    assert!(matches!(store.apply(&changes), Err(StoreError::Database { .. })));
    let reader = store.reader().unwrap();
    assert_eq!(reader.epochs(&all()).unwrap().rows, []);
    assert_eq!(reader.refusals(session).unwrap(), []);
    store.apply(&changes[..2]).expect("the store goes on");
    assert_eq!(reader.epochs(&all()).unwrap().rows.len(), 1);
}

#[test]
fn what_was_open_at_a_restart_is_incomplete_and_what_was_published_stays() {
    // SEQ-7.13, SEQ-7.14
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch, 0);
    let session = store.open_session(&facts()).unwrap();
    let complete = state(session, &[report(1, 1, true)], 1);
    let active = state(session, &[report(2, 1, false)], 1);
    store.apply(&[epoch(complete), epoch(active)]).unwrap();
    drop(store);
    let (mut store, recovery) = open(&scratch, 5000);
    assert_eq!(recovery, Recovery { sessions_closed: 1, epochs_incomplete: 1 });
    let reader = store.reader().unwrap();
    let sessions = reader.sessions(10, None).unwrap();
    assert_eq!(sessions.rows.len(), 1);
    assert_eq!(sessions.rows[0].facts, facts());
    assert_eq!(sessions.rows[0].closed_ms, Some(5000));
    assert_eq!(sessions.rows[0].reason.as_deref(), Some("collector restarted"));
    let rows = reader.epochs(&all()).unwrap().rows;
    assert_eq!(rows[1].outcome, Outcome::Complete);
    assert_eq!((rows[1].updated_ms, &rows[1].reason), (1, &None));
    assert_eq!(rows[0].outcome, Outcome::Incomplete);
    assert_eq!(rows[0].qualifications, ["noFinal"]);
    assert_eq!(rows[0].reason.as_deref(), Some("no final report was received"));
    assert_eq!(rows[0].updated_ms, 5000);
    let next = store.open_session(&facts()).unwrap();
    assert!(next > session, "an id is never used again");
    drop((store, reader));
    assert_eq!(open(&scratch, 6000).1, Recovery { sessions_closed: 1, epochs_incomplete: 0 });
}

#[test]
fn the_end_of_a_session_ends_its_epochs_and_no_others() {
    // SEQ-7.13
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch, 0);
    let [one, two] = [(); 2].map(|()| store.open_session(&facts()).unwrap());
    for session in [one, two] {
        store.apply(&[epoch(state(session, &[report(1, 1, false)], 1))]).unwrap();
    }
    let reason = "the peer closed the connection".to_owned();
    store.apply(&[Change::SessionClosed { session: one, closed_ms: 9, reason }]).unwrap();
    let reader = store.reader().unwrap();
    let outcome = |session| reader.epoch(session, 1, 1).unwrap().unwrap().outcome;
    assert_eq!((outcome(one), outcome(two)), (Outcome::Incomplete, Outcome::Active));
    let counts = reader.counts_by_outcome().unwrap();
    assert_eq!(counts, [(Outcome::Active, 1), (Outcome::Incomplete, 1)]);
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let scratch = Scratch::new();
    let (store, _) = open(&scratch, 0);
    let second = Store::open(scratch.path(), StoreLimits::default(), 0);
    assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
    drop(store);
    open(&scratch, 0);
}

#[test]
fn a_database_of_another_version_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    drop(open(&scratch, 0));
    let path = scratch.path().join("results.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 6).unwrap();
    drop(other);
    let found = Store::open(scratch.path(), StoreLimits::default(), 0);
    let Err(StoreError::Version { found: 6, expected: 5, .. }) = found else {
        panic!("{found:?}");
    };
}

#[test]
fn refusals_and_drops_add_up_by_session_domain_and_kind() {
    // SEQ-7.15
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch, 0);
    let session = store.open_session(&facts()).unwrap();
    let refused = |domain, kind: &str, records| Change::Refused {
        session,
        domain,
        kind: kind.into(),
        records,
    };
    let dropped = |records| Change::CollectorDrop { session, domain: 1, records };
    store.apply(&[refused(1, "stale", 2), refused(1, "orphan", 1), dropped(5)]).unwrap();
    store.apply(&[refused(1, "stale", 3), refused(2, "stale", 1), dropped(6)]).unwrap();
    let reader = store.reader().unwrap();
    let refusals: Vec<_> = reader
        .refusals(session)
        .unwrap()
        .into_iter()
        .map(|refusal| (refusal.domain, refusal.kind, refusal.records))
        .collect();
    let expected =
        [(1, "orphan".to_owned(), 1), (1, "stale".to_owned(), 5), (2, "stale".to_owned(), 1)];
    assert_eq!(refusals, expected);
    assert_eq!(reader.collector_drops(session).unwrap(), [(1, 11)]);
}

#[test]
fn every_filter_lets_through_what_it_names_and_nothing_else() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch, 0);
    let session = store.open_session(&facts()).unwrap();
    let mut far = report(2, 1, true);
    far.snapshot.key.addresses = wire::frame::Addresses::v6([1; 16], [2; 16]);
    (far.snapshot.start_ms, far.snapshot.end_ms) = (100, u64::MAX);
    let near = report(1, 1, false);
    store.apply(&[near, far].map(|r| epoch(state(session, &[r], 1)))).unwrap();
    let reader = store.reader().unwrap();
    let ids = |filter: EpochFilter| -> Vec<u64> {
        let rows = reader.epochs(&filter).unwrap().rows;
        rows.iter().map(|row| row.epoch.latest.epoch_id).collect()
    };
    let outcome = |o| EpochFilter { outcome: Some(o), ..all() };
    assert_eq!(ids(outcome(Outcome::Active)), [1]);
    assert_eq!(ids(outcome(Outcome::Complete)), [2]);
    assert!(ids(outcome(Outcome::Invalid)).is_empty());
    let v4 = |text: &str| Some(text.parse().unwrap());
    assert_eq!(ids(EpochFilter { source: v4("10.0.0.1"), ..all() }), [1]);
    assert!(ids(EpochFilter { source: v4("10.0.0.2"), ..all() }).is_empty());
    assert_eq!(ids(EpochFilter { destination: v4("10.0.0.2"), ..all() }), [1]);
    let v6 = Some(std::net::IpAddr::from([2; 16]));
    assert_eq!(ids(EpochFilter { destination: v6, ..all() }), [2]);
    assert_eq!(ids(EpochFilter { qp: Some(2), ..all() }), [2]);
    // The first is from 5 to 7, the second from 100 on.
    let since = |ms| EpochFilter { since_ms: Some(ms), ..all() };
    assert_eq!(
        (ids(since(7)), ids(since(8)), ids(since(u64::MAX))),
        (vec![2, 1], vec![2], vec![2])
    );
    let until = |ms| EpochFilter { until_ms: Some(ms), ..all() };
    assert_eq!((ids(until(5)), ids(until(6)), ids(until(101))), (vec![], vec![1], vec![2, 1]));
}

#[test]
fn pages_together_are_the_listing_at_every_page_length() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch, 0);
    let session = store.open_session(&facts()).unwrap();
    let changes: Vec<_> =
        (1..=7).map(|id| epoch(state(session, &[report(id, 1, true)], 1))).collect();
    store.apply(&changes).unwrap();
    let reader = store.reader().unwrap();
    for limit in 1..=8 {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = reader.epochs(&EpochFilter { limit, cursor, ..all() }).unwrap();
            assert!(page.rows.len() <= limit);
            ids.extend(page.rows.iter().map(|row| row.epoch.latest.epoch_id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids, [7, 6, 5, 4, 3, 2, 1], "{limit}");
    }
}

#[test]
fn each_report_is_one_reading_and_an_outcome_alone_is_none() {
    let scratch = Scratch::new();
    let (mut store, _) = open(&scratch, 0);
    let session = store.open_session(&facts()).unwrap();
    let reports: [Report; 3] = [1, 2, 4].map(|id| report(1, id, false));
    for n in 1..=3 {
        store.apply(&[epoch(state(session, &reports[..n], 1))]).unwrap();
    }
    let last = state(session, &reports, 1);
    store.apply(&[epoch(with_outcome(last, Outcome::Incomplete))]).unwrap();
    let history = store.reader().unwrap().history(session, 1, 1).unwrap();
    let readings: Vec<_> = history.iter().map(|row| (row.received_ms, row.report_id)).collect();
    assert_eq!(readings, [(2000, 1), (2001, 2), (2002, 4)]);
    for (row, report) in history.iter().zip(&reports) {
        assert_eq!((row.counts, row.end_ms), (report.snapshot.counts, report.snapshot.end_ms));
        assert_eq!(row.flags, report.snapshot.flags);
    }
}

#[test]
fn sessions_can_be_made_to_begin_behind_those_that_an_archive_knows() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 1).unwrap();
    store.begin_behind(SessionId(41)).unwrap();
    assert_eq!(store.open_session(&facts()).unwrap(), SessionId(42));
    store.begin_behind(SessionId(7)).unwrap();
    assert_eq!(store.open_session(&facts()).unwrap(), SessionId(43));
}
