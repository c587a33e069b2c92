//! What holds for every report, whatever a conversation says.

use std::collections::BTreeMap;

use observe::collect::{Epoch, Limits, Rejection, Session, Verdict};
use observe::outcome::{Outcome, Qualification};
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use proptest::prelude::*;
use wire::frame::{Addresses, Namespace};

fn report(epoch_id: u64, report_id: u64, requests: u64) -> Report {
    let stream = u8::try_from(epoch_id % 251).unwrap();
    let key = StreamKey {
        addresses: Addresses::v4([10, 0, 0, stream], [10, 0, 1, 1]),
        namespace: Namespace::default(),
        qp: 17,
        pkey: 0xffff,
    };
    let window = Window::new(8).unwrap();
    let counts = Counts { requests, skipped: 2, filled: 1, pending: 1, ..Counts::default() };
    let snapshot = Snapshot { key, window, flags: Flags(0), start_ms: 5, end_ms: 9, counts };
    Report { epoch_id, report_id, snapshot, other_keys: 0 }
}

fn closing(mut report: Report) -> Report {
    report.snapshot.flags = Flags::FINAL_EPOCH;
    (report.snapshot.counts.pending, report.snapshot.counts.abandoned) = (0, 1);
    report
}

fn session(limits: Limits) -> Session {
    Session::new(limits, 7)
}

fn kept(session: &Session) -> Vec<(u32, Epoch)> {
    let mut all: Vec<_> = session.epochs().map(|(domain, epoch)| (domain, epoch.clone())).collect();
    all.sort_by_key(|(domain, epoch)| (*domain, epoch.latest.epoch_id));
    all
}

// SEQ-7.6, SEQ-7.8, SEQ-7.12, SEQ-7.1, SEQ-7.3: on error, state is as before.
#[test]
fn what_is_stale_or_rejected_changes_nothing_that_was_published() {
    let mut session = session(Limits::default());
    session.receive(1, 7, &report(3, 4, 50), 100);
    let before = kept(&session);
    let changes: [fn(&mut Report); 11] = [
        |r| r.report_id = 3,
        |r| r.snapshot.key.qp = 18,
        |r| r.snapshot.key.namespace.outer_vlan = 5,
        |r| r.other_keys = 5,
        |r| r.snapshot.window = Window::new(9).unwrap(),
        |r| r.snapshot.flags = Flags::GENERATION_UNVERIFIED,
        |r| r.snapshot.start_ms = 6,
        |r| r.snapshot.counts.requests = 49,
        |r| r.snapshot.counts.filled = 2,
        |r| r.snapshot.flags = Flags::SERIAL_DISCONTINUITY,
        |r| r.epoch_id = 2,
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut other = report(3, 5, 60);
        change(&mut other);
        let verdict = session.receive(1, 7, &other, 200);
        assert!(matches!(verdict, Verdict::Stale | Verdict::Rejected(_)), "{n}: {verdict:?}");
        assert_eq!(kept(&session), before, "{n}");
    }
    let moved = session.receive(1, 8, &report(3, 5, 60), 200);
    assert_eq!(moved, Verdict::Rejected(Rejection::KeyChanged), "another Observation Point");
    // Also where all else is the latest report once more.
    let elsewhere = Report { other_keys: 5, ..report(3, 4, 50) };
    let elsewhere = session.receive(1, 7, &elsewhere, 200);
    assert_eq!(elsewhere, Verdict::Rejected(Rejection::KeyChanged), "another namespace");
    assert_eq!(kept(&session), before);
    assert_eq!(session.high_water(1), Some(3));
}

// SEQ-7.8, SEQ-7.9: nor does a contradiction change what was published; it says that it is invalid.
#[test]
fn an_invalid_epoch_keeps_the_numbers_that_it_had() {
    let mut session = session(Limits::default());
    session.receive(1, 7, &report(1, 1, 50), 100);
    let latest = session.epoch(1, 1).unwrap().latest;
    assert!(matches!(session.receive(1, 7, &report(1, 1, 51), 200), Verdict::Invalidated(_)));
    let epoch = session.epoch(1, 1).unwrap();
    assert_eq!((epoch.latest, epoch.outcome()), (latest, Outcome::Invalid));
    assert_eq!(epoch.final_outcome(), Outcome::Invalid);
}

// SEQ-7.10
#[test]
fn epochs_and_domains_stop_at_their_limits() {
    let mut session = session(Limits { epochs_max: 3, domains_max: 2, ..Limits::default() });
    for id in 1..=3 {
        assert!(matches!(session.receive(1, 7, &report(id, 1, 5), 0), Verdict::Accepted { .. }));
    }
    let full = Verdict::Rejected(Rejection::EpochsFull);
    assert_eq!(session.receive(1, 7, &report(4, 1, 5), 0), full);
    assert_eq!(session.receive(2, 7, &report(1, 1, 5), 0), full, "over all domains");
    let full = Verdict::Rejected(Rejection::DomainsFull);
    assert_eq!(session.receive(3, 7, &report(1, 1, 5), 0), full);
    assert_eq!(
        (session.len(), session.high_water(1), session.high_water(2)),
        (3, Some(4), Some(1))
    );
    assert_eq!(session.high_water(3), None);
    // What is kept goes on.
    assert!(matches!(session.receive(1, 7, &report(2, 2, 6), 0), Verdict::Accepted { .. }));
}

// SEQ-7.15: the collector's own drops are known as such, also where there is no room to note them.
#[test]
fn drops_of_a_domain_without_room_are_not_put_on_others() {
    let mut session = session(Limits { domains_max: 1, ..Limits::default() });
    session.receive(1, 7, &report(1, 1, 5), 0);
    session.dropped(2);
    session.receive(1, 7, &report(2, 3, 5), 0);
    let all = kept(&session);
    assert!(all.iter().all(|(_, epoch)| !epoch.collector_drops), "{all:?}");
    assert_eq!(session.high_water(2), None);
}

// SEQ-7.5, SEQ-7.14, SEQ-7.15: every qualification that an epoch has had stays with it.
#[test]
fn a_complete_epoch_can_be_qualified_in_every_way_that_a_meter_has() {
    let mut session = session(Limits::default());
    let mut first = report(1, 1, 5);
    first.snapshot.flags = Flags(0x4020);
    session.receive(1, 7, &first, 0);
    let mut last = closing(report(1, 2, 6));
    last.snapshot.flags = Flags(0x003f);
    session.receive(1, 7, &last, 0);
    let epoch = session.epoch(1, 1).unwrap();
    assert_eq!(epoch.outcome(), Outcome::Complete);
    assert_eq!(epoch.flags, Flags(0x403f), "the raw flags are preserved");
    let expected = [
        Qualification::ProfileViolation,
        Qualification::CaptureDiscontinuity,
        Qualification::StateExhaustion,
        Qualification::SerialDiscontinuity,
        Qualification::GenerationUnverified,
        Qualification::UnsupportedFlags,
    ];
    assert_eq!(epoch.qualifications(), expected);
}

// SEQ-7.11, SEQ-7.13: only these three are stored.
#[test]
fn whatever_retires_is_complete_incomplete_or_invalid() {
    let mut session = session(Limits::default());
    session.receive(1, 7, &report(1, 1, 5), 0);
    session.receive(1, 7, &closing(report(2, 1, 5)), 0);
    session.receive(1, 7, &report(3, 1, 5), 0);
    session.receive(1, 7, &report(3, 1, 6), 0);
    let mut outcomes = BTreeMap::new();
    session.end(&mut |retired| {
        assert_eq!(retired.outcome, retired.epoch.final_outcome());
        // SEQ-4.13: no final report is made up.
        let made_up = retired.epoch.latest.snapshot.flags.has(Flags::FINAL_EPOCH);
        assert_eq!(made_up, retired.outcome == Outcome::Complete);
        outcomes.insert(retired.epoch.latest.epoch_id, retired.outcome);
    });
    let expected = [(1, Outcome::Incomplete), (2, Outcome::Complete), (3, Outcome::Invalid)];
    assert_eq!(outcomes, expected.into());
}

/// Domain, report, and how much time goes by before it.
fn arrivals() -> impl Strategy<Value = Vec<(u32, Report, u64)>> {
    let one = (1..3_u32, 1..12_u64, 1..6_u64, 4..8_u64, any::<bool>(), 0..30_u64);
    let made = one.prop_map(|(domain, epoch, id, requests, last, wait)| {
        let report = report(epoch, id, requests);
        (domain, if last { closing(report) } else { report }, wait)
    });
    prop::collection::vec(made, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    // SEQ-7.12: the batch has no other result than one by one, inside it or across its ends.
    #[test]
    fn many_at_a_time_are_taken_as_one_by_one(arrivals in arrivals()) {
        let limits = Limits { epochs_max: 6, ..Limits::default() };
        let (mut one, mut all) = (session(limits), session(limits));
        let reports: Vec<_> = arrivals.iter().map(|(_, report, _)| (7, *report)).collect();
        let expected: Vec<_> =
            reports.iter().map(|(point, report)| one.receive(1, *point, report, 3)).collect();
        let mut found = Vec::new();
        all.receive_all(1, &reports, 3, &mut |of, verdict| {
            assert_eq!(*of, reports[found.len()]);
            found.push(verdict);
        });
        prop_assert_eq!(found, expected);
        prop_assert_eq!(kept(&all), kept(&one));
    }

    // SEQ-7.10, SEQ-7.11, SEQ-7.12, SEQ-7.13: each epoch that was admitted retires once, is found
    // until then and never after, and does not come back.
    #[test]
    fn what_is_admitted_is_found_until_it_retires_once(arrivals in arrivals()) {
        let limits = Limits { inactivity_ms: 100, closed_retention_ms: 40, ..Limits::default() };
        let mut session = session(limits);
        let (mut now, mut open, mut gone) = (0, BTreeMap::new(), Vec::new());
        for (domain, report, wait) in arrivals {
            now += wait;
            session.retire(now, &mut |r| {
                assert!(open.remove(&(r.domain, r.epoch.latest.epoch_id)).is_some());
                let closed = r.epoch.contradiction.is_some()
                    || r.epoch.latest.snapshot.flags.has(Flags::FINAL_EPOCH);
                assert!(now - r.epoch.heard_ms > if closed { 40 } else { 100 });
                gone.push((r.domain, r.epoch.latest.epoch_id));
            });
            let id = (domain, report.epoch_id);
            let verdict = session.receive(domain, 7, &report, now);
            if gone.contains(&id) {
                prop_assert_eq!(verdict, Verdict::Rejected(Rejection::Orphan));
            } else if let Verdict::Accepted { .. } = verdict {
                open.insert(id, ());
            }
            prop_assert_eq!(session.len(), open.len());
            for (domain, epoch_id) in open.keys() {
                let epoch = session.epoch(*domain, *epoch_id);
                prop_assert!(epoch.is_some_and(|e| e.latest.epoch_id == *epoch_id));
            }
        }
        session.end(&mut |r| assert!(open.remove(&(r.domain, r.epoch.latest.epoch_id)).is_some()));
        prop_assert!(open.is_empty());
    }
}
