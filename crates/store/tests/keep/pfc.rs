//! PFC counters: what is kept of them, how they are found, and what goes.

use observe::pfc::collect::{Counter, Doubt};
use observe::pfc::instance::InstanceId;
use observe::pfc::interval::{Interval, Known, Pace, Reason, Sighting};
use observe::pfc::record::FurtherScope;
use observe::pfc::{Direction, Priority, Reading, Scope};
use rusqlite::Connection;
use store::{Change, PfcFilter, PfcRules, PfcState, Reader, Rules, SessionFacts, SessionId};
use store::{Store, StoreLimits};

use crate::support::{Scratch, facts};

fn vouched() -> SessionFacts {
    let pfc = PfcRules { pace: Pace::per_second(1_000_000), ..PfcRules::default() };
    SessionFacts { rules: Rules { pfc, ..facts().rules }, ..facts() }
}

fn sighting(interface: u32, time_ms: u64, total: u64, instance: Option<u64>) -> Sighting {
    let scope = Scope {
        domain: 1,
        point: u64::MAX,
        interface,
        direction: Direction::Transmitted,
        priority: Priority::new(7).unwrap(),
    };
    let known = instance
        .and_then(InstanceId::new)
        .map_or_else(Known::default, |id| id.known(time_ms, Pace::per_second(1_000_000)));
    Sighting { reading: Reading { scope, time_ms, total }, known }
}

fn state(session: SessionId, number: u64, sightings: &[Sighting], received_ms: u64) -> PfcState {
    let counter = Counter {
        further: FurtherScope::from_octets(vec![0, 255]),
        earlier: sightings.len().checked_sub(2).map(|at| sightings[at]),
        latest: *sightings.last().unwrap(),
        readings: sightings.len() as u64,
        unbroken: 1,
        doubted: Doubt::Nothing,
    };
    PfcState { session, number, counter, received_ms }
}

fn change(state: &PfcState) -> Change {
    Change::Pfc(Box::new(state.clone()))
}

fn everything(reader: &Reader) -> Vec<PfcState> {
    let filter = PfcFilter { limit: 1000, ..PfcFilter::default() };
    let rows = reader.pfc_counters(&filter).unwrap().rows;
    rows.into_iter().rev().map(|row| row.state).collect()
}

// PFC-sem.2, PFC-op.1
#[test]
fn a_counter_comes_back_as_it_was_kept_with_what_lies_between_its_readings() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let session = store.open_session(&vouched()).unwrap();
    let unknown = [sighting(1, 0, 0, None)];
    let exact = [sighting(2, 1000, u64::MAX, Some(7)), sighting(2, 2000, 4, Some(7))];
    let states = [state(session, 0, &unknown, 5), state(session, 1, &exact, 6)];
    store.apply(&states.each_ref().map(change)).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(everything(&reader), states);
    let intervals: Vec<_> =
        everything(&reader).iter().map(|state| state.counter.interval()).collect();
    assert_eq!(intervals[0], Interval::Unknown(Reason::NoEarlier));
    assert!(matches!(intervals[1], Interval::Exact(frames) if frames.count() == 5));
    // Where the session says nothing of how fast a counter counts, nothing is exact.
    let other = store.open_session(&facts()).unwrap();
    store.apply(&[change(&state(other, 0, &exact, 7))]).unwrap();
    let found = everything(&reader).pop().unwrap();
    assert_eq!(found.counter.interval(), Interval::Unknown(Reason::PaceUnknown));
    assert_eq!(reader.pfc_count(Some(session)).unwrap(), 2);
    assert_eq!(reader.pfc_count(None).unwrap(), 3);
}

// PFC-sem.2
#[test]
fn what_is_kept_of_a_doubted_instance_vouches_for_nothing_any_more_and_of_others_it_does() {
    let scratch = Scratch::new();
    let limits = StoreLimits { pfc_history_interval_ms: 0, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let session = store.open_session(&vouched()).unwrap();
    let all =
        [(0, 7), (1000, 7), (2000, 8), (3000, 8)].map(|(ms, id)| sighting(1, ms, ms, Some(id)));
    for number in 0..4 {
        for count in 1..=all.len() {
            let one = state(session, number, &all[..count], count as u64);
            store.apply(&[change(&one)]).unwrap();
        }
    }
    let doubted =
        |number, instance, latest| Change::PfcDoubted { session, number, instance, latest };
    let doubts = [doubted(1, Some(7), true), doubted(2, Some(8), false), doubted(3, None, true)];
    store.apply(&doubts).unwrap();
    let reader = store.reader().unwrap();
    let is_exact = |interval| matches!(interval, Interval::Exact(_));
    let found = [0, 1, 2, 3].map(|number| {
        let (row, points) = reader.pfc_history(session, number).unwrap().unwrap();
        let kept = points.iter().map(|point| point.sighting.known.instance.unwrap_or(0)).collect();
        (kept, is_exact(row.state.counter.interval()))
    });
    let expected: [(Vec<u64>, bool); 4] = [
        (vec![7, 7, 8, 8], true),
        (vec![0, 0, 8, 8], true),
        (vec![7, 7, 0, 0], true),
        (vec![0, 0, 0, 0], false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_time_bounds_the_latest_readings_also_beyond_what_sorts_rightly() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    const HALF: u64 = 1 << 63;
    let times = [0, 5, HALF - 1, HALF, u64::MAX];
    for (number, time_ms) in (0..).zip(times) {
        let one = state(session, number, &[sighting(1, time_ms, 1, None)], 1);
        store.apply(&[change(&one)]).unwrap();
    }
    let reader = store.reader().unwrap();
    for since in [0, 1, 5, 6, HALF - 1, HALF, HALF + 1, u64::MAX] {
        for until in [0, 1, 5, 6, HALF - 1, HALF, HALF + 1, u64::MAX] {
            let filter = PfcFilter {
                since_ms: Some(since),
                until_ms: Some(until),
                limit: 10,
                ..PfcFilter::default()
            };
            let rows = reader.pfc_counters(&filter).unwrap().rows;
            let found: Vec<_> =
                rows.iter().rev().map(|row| row.state.counter.latest.reading.time_ms).collect();
            let expected: Vec<_> =
                times.into_iter().filter(|time| (since..until).contains(time)).collect();
            assert_eq!(found, expected, "{since} to {until}");
        }
    }
}

// PFC-cor.1, PFC-op.1
#[test]
fn a_counter_whose_clock_was_set_back_is_found_by_any_reading_that_is_kept() {
    let scratch = Scratch::new();
    let limits = StoreLimits { pfc_history_interval_ms: 0, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    let all = [900, 500, 10, 20].map(|time_ms| sighting(1, time_ms, 1, None));
    for count in 1..=all.len() {
        store.apply(&[change(&state(session, 0, &all[..count], count as u64))]).unwrap();
    }
    let reader = store.reader().unwrap();
    let found = |since| {
        let filter = PfcFilter { kept_since_ms: Some(since), limit: 10, ..PfcFilter::default() };
        reader.pfc_counters(&filter).unwrap().rows.len()
    };
    assert_eq!([0, 10, 20, 21, 900, 901, 1 << 63, u64::MAX].map(found), [1, 1, 1, 1, 1, 0, 0, 0]);
}

// SEQ-7.10, PFC-sec.1
#[test]
fn readings_for_charts_are_some_of_them_and_at_most_so_many() {
    let scratch = Scratch::new();
    let limits = StoreLimits {
        pfc_history_interval_ms: 100,
        pfc_history_per_counter_max: 3,
        ..StoreLimits::default()
    };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let session = store.open_session(&vouched()).unwrap();
    let points = |store: &Store| -> Vec<u64> {
        let (_, points) = store.reader().unwrap().pfc_history(session, 0).unwrap().unwrap();
        points.iter().map(|point| point.sighting.reading.total).collect()
    };
    let mut seen = Vec::new();
    for (total, received_ms) in [(0, 10), (1, 50), (2, 109), (3, 110), (4, 300), (5, 400), (6, 999)]
    {
        let one = [sighting(1, received_ms, total, None)];
        store.apply(&[change(&state(session, 0, &one, received_ms))]).unwrap();
        seen = points(&store);
        assert!(seen.len() <= 3);
    }
    assert_eq!(seen, [4, 5, 6]);
    assert!(store.reader().unwrap().pfc_history(session, 1).unwrap().is_none());
}

// SEQ-7.10, PFC-sec.1
#[test]
fn counters_go_when_their_session_is_over_and_their_time_too() {
    let scratch = Scratch::new();
    let limits = StoreLimits {
        results_age_max_ms: 1_000,
        history_age_max_ms: 1_000,
        ..StoreLimits::default()
    };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let sessions = [(); 2].map(|()| store.open_session(&facts()).unwrap());
    for session in sessions {
        let states = [1, 2].map(|n| state(session, n, &[sighting(1, 1, n, None)], n * 1_000));
        store.apply(&states.each_ref().map(change)).unwrap();
    }
    let closed =
        Change::SessionClosed { session: sessions[0], closed_ms: 9, reason: "over".into() };
    store.apply(&[closed]).unwrap();
    let left = |store: &Store| -> Vec<(SessionId, u64)> {
        let states = everything(&store.reader().unwrap());
        states.iter().map(|state| (state.session, state.number)).collect()
    };
    let [a, b] = sessions;
    store.retain(2_000).unwrap();
    assert_eq!(left(&store), [(a, 1), (a, 2), (b, 1), (b, 2)]);
    let retained = store.retain(2_001).unwrap();
    assert_eq!((retained.pfc_counters_removed, retained.sessions_removed), (1, 0));
    assert_eq!(left(&store), [(a, 2), (b, 1), (b, 2)]);
    let retained = store.retain(9_000).unwrap();
    assert_eq!((retained.pfc_counters_removed, retained.sessions_removed), (1, 1));
    // An open session keeps what it has said.
    assert_eq!(left(&store), [(b, 1), (b, 2)]);
    assert_eq!(store.reader().unwrap().pfc_count(None).unwrap(), 2);
}

#[test]
fn a_database_of_version_2_is_taken_over() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    drop(store);
    let path = Reader::path_in(scratch.path());
    let tables = "DROP TABLE pfc_counters; DROP TABLE pfc_history; DROP TABLE pfc_counts; \
                  PRAGMA user_version = 2;";
    let old = Connection::open(&path).unwrap();
    old.execute_batch(crate::queue::WITHOUT_QUEUES).unwrap();
    old.execute_batch(tables).unwrap();
    drop(old);
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.sessions(1, None).unwrap().rows[0].session, session);
    assert_eq!(everything(&reader), []);
    let one = state(session, 0, &[sighting(1, 1, 1, None)], 1);
    store.apply(&[change(&one)]).unwrap();
    assert_eq!(everything(&reader), [one]);
}

/// As a database was before counters had their exporter beside them.
pub const WITHOUT_EXPORTERS: &str = "DROP INDEX pfc_counters_exporter; \
    DROP INDEX pfc_counters_port; ALTER TABLE pfc_counters DROP COLUMN exporter;";

#[test]
fn a_database_of_version_4_is_taken_over_with_what_is_in_it_and_found_by_its_exporter() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let sessions = ["a", "b"].map(|peer| {
        let facts = SessionFacts { peer: peer.into(), ..facts() };
        store.open_session(&facts).unwrap()
    });
    let before = sessions.map(|session| state(session, 0, &[sighting(1, 1, 1, None)], 1));
    store.apply(&before.each_ref().map(change)).unwrap();
    drop(store);
    let old = Connection::open(Reader::path_in(scratch.path())).unwrap();
    old.execute_batch(WITHOUT_EXPORTERS).unwrap();
    old.execute_batch("PRAGMA user_version = 4").unwrap();
    drop(old);
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let new = state(sessions[1], 1, &[sighting(2, 1, 1, None)], 1);
    store.apply(&[change(&new)]).unwrap();
    let reader = store.reader().unwrap();
    let of = |exporter: &str| -> Vec<PfcState> {
        let exporter = Some(exporter.to_owned());
        let filter = PfcFilter { exporter, limit: 9, ..PfcFilter::default() };
        let rows = reader.pfc_counters(&filter).unwrap().rows;
        rows.into_iter().rev().map(|row| row.state).collect()
    };
    let [a, b] = before;
    assert_eq!((of("a"), of("b"), of("c")), (vec![a], vec![b, new], vec![]));
}

// PFC-sem.2: what is said over readings that are not kept needs all of them.
#[test]
fn between_two_kept_readings_nothing_is_exact_where_something_was_not_known_of_one_between() {
    let scratch = Scratch::new();
    let limits = StoreLimits { pfc_history_interval_ms: 1000, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), limits, 0).unwrap();
    let session = store.open_session(&vouched()).unwrap();
    let of = |place: u32| sighting(place, 1, 1, Some(9)).reading.scope.interface;
    // Readings 1 and 3 are kept; the second is broken for counter 0 and not for counter 1.
    for (number, unbroken) in [(0, 3), (1, 1)] {
        let interface = of(u32::try_from(number).unwrap() + 1);
        let readings = [
            sighting(interface, 0, 500, Some(9)),
            sighting(interface, 500, 502, Some(9)),
            sighting(interface, 2000, 600, Some(9)),
        ];
        for (last, received_ms) in [(1, 5000), (2, 5500), (3, 7000)] {
            let mut state = state(session, number, &readings[..last], received_ms);
            state.counter.unbroken = if last == 1 { 1 } else { unbroken.min(last as u64) };
            store.apply(&[change(&state)]).unwrap();
        }
    }
    let reader = store.reader().unwrap();
    let between = |number| {
        let (_, points) = reader.pfc_history(session, number).unwrap().unwrap();
        assert_eq!(points.iter().map(|p| p.number).collect::<Vec<_>>(), [1, 3]);
        points[1].since(&points[0])
    };
    assert_eq!(between(0), Interval::Unknown(Reason::Broken));
    assert!(matches!(between(1), Interval::Exact(frames) if frames.count() == 100));
}
