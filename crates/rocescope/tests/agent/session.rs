//! One Transport Session, in memory: what it sends is what a collector may accept.

use observe::collect::Verdict;
use observe::meter::Cause;
use observe::outcome::Outcome;
use observe::provision::{Provisioning, Rule};
use observe::report::Flags;
use observe::window::Window;
use rocescope::agent::disabled::Disabled;
use rocescope::agent::session::{CHUNK, ExportSession, SessionSettings};
use rocescope::capture::{Item, Visitor as _};

use super::support::{Collector, DOMAIN, READ, at, begun, roce, rules, sends, settings, show};

// SEQ-6.1, SEQ-6.3, SEQ-6.4, SEQ-7.14
#[test]
fn an_epoch_is_reported_as_it_grows_and_is_complete_after_its_final() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    sends(&mut session, 5, 17, 0..10);
    collector.listen(&mut session, at(999));
    assert_eq!(collector.heard, [], "the interval is not over");
    collector.listen(&mut session, at(1000));
    sends(&mut session, 1500, 17, 12..20);
    collector.listen(&mut session, at(2000));
    session.end();
    collector.listen(&mut session, at(2001));
    assert!(session.is_through());
    let reports = collector.accepted();
    let ids: Vec<_> = reports.iter().map(|r| (r.epoch_id, r.report_id)).collect();
    assert_eq!(ids, [(1, 1), (1, 2), (1, 3)]);
    let requests: Vec<_> = reports.iter().map(|r| r.snapshot.counts.requests).collect();
    assert_eq!(requests, [10, 18, 18]);
    assert_eq!(reports[2].snapshot.counts.abandoned, 2);
    let [epoch] = &collector.end()[..] else { panic!("one epoch") };
    assert_eq!((epoch.domain, epoch.outcome), (DOMAIN, Outcome::Complete));
}

#[test]
fn what_has_not_changed_is_not_reported_by_the_interval() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    sends(&mut session, 5, 17, 0..10);
    for second in 1..10 {
        collector.listen(&mut session, at(second * 1000));
    }
    assert_eq!(collector.accepted().len(), 1);
}

// SEQ-6.4
#[test]
fn a_sign_of_life_is_the_latest_report_under_its_old_id_and_changed_epochs_have_none() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    sends(&mut session, 5, 17, 0..10);
    sends(&mut session, 5, 18, 0..10);
    collector.listen(&mut session, at(1000));
    assert_eq!(collector.accepted().len(), 2);
    collector.listen(&mut session, at(19_999));
    assert_eq!(collector.heard, []);
    sends(&mut session, 19_999, 18, 10..11);
    // The interval's own report of what has changed goes first.
    collector.listen(&mut session, at(21_000));
    let verdicts: Vec<_> = collector.heard.iter().map(|(r, v)| (r.snapshot.key.qp, *v)).collect();
    let accepted = Verdict::Accepted { missing: 0, last: false };
    assert_eq!(verdicts[0], (18, accepted));
    assert_eq!(verdicts[1], (17, Verdict::Repeated));
    assert_eq!(session.counts().signs_of_life, count_repeated(&collector));
    let heard = collector.session.epoch(DOMAIN, 1).expect("kept").heard_ms;
    assert_eq!(heard, 21_000);
}

fn count_repeated(collector: &Collector) -> u64 {
    let repeated = collector.heard.iter().filter(|(_, v)| *v == Verdict::Repeated).count();
    u64::try_from(repeated).expect("few")
}

// SEQ-4.5, SEQ-6.4: a report that is skipped spends no id.
#[test]
fn without_room_reports_are_skipped_without_a_gap() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    for second in 1..=5_u32 {
        sends(&mut session, u64::from(second) * 1000, 17, second * 10..second * 10 + 10);
        session.advance(at(u64::from(second) * 1000));
    }
    assert_eq!(session.counts().skipped_reports, 4);
    collector.listen(&mut session, at(5500));
    let reports = collector.accepted();
    let ids: Vec<_> = reports.iter().map(|r| (r.epoch_id, r.report_id)).collect();
    assert_eq!(ids, [(1, 1)]);
    assert_eq!(reports[0].snapshot.counts.requests, 50, "the latest, not the first that was due");
}

#[test]
fn a_round_of_many_epochs_goes_out_in_pieces_and_each_epoch_once() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    let epochs = u32::try_from(3 * CHUNK + 1).expect("few");
    for qp in 0..epochs {
        sends(&mut session, 5, qp, 0..1);
    }
    let mut octets = Vec::new();
    let mut pieces = 0;
    while session.transmit(at(1000), &mut octets).expect("octets") {
        pieces += 1;
        // Between two pieces the epochs go on: none is taken twice for it.
        sends(&mut session, 6, 0, pieces..pieces + 1);
    }
    assert_eq!(pieces, 4);
    collector.receive(&octets, 1000);
    assert_eq!(collector.accepted().len(), 3 * CHUNK + 1);
}

// SEQ-4.13, SEQ-7.13
#[test]
fn finals_beyond_the_queue_are_counted_and_leave_incomplete_epochs() {
    for (epochs, dropped) in [(3, 0), (4, 0), (5, 1)] {
        let limited = SessionSettings { finals_queued_max: 4, ..settings() };
        let (mut session, mut collector) = (begun(limited), Collector::new());
        for qp in 0..epochs {
            sends(&mut session, 5, qp, 0..3);
        }
        collector.listen(&mut session, at(1000));
        session.end();
        assert_eq!(session.counts().dropped_finals, dropped);
        collector.listen(&mut session, at(1001));
        collector.accepted();
        let outcomes: Vec<_> = collector.end().iter().map(|e| e.outcome).collect();
        let incomplete = outcomes.iter().filter(|o| **o == Outcome::Incomplete).count();
        assert_eq!(outcomes.len(), usize::try_from(epochs).expect("few"));
        assert_eq!(u64::try_from(incomplete), Ok(dropped));
    }
}

// SEQ-4.6, SEQ-10.2
#[test]
fn a_new_session_starts_with_fresh_epochs_and_ids() {
    let (mut first, mut collector) = (begun(settings()), Collector::new());
    sends(&mut first, 5, 17, 0..10);
    collector.listen(&mut first, at(1000));
    // The connection is cut here.
    assert_eq!(first.abandon(), 0);
    assert_eq!(collector.end()[0].outcome, Outcome::Incomplete);
    let (mut second, mut collector) = (begun(settings()), Collector::new());
    sends(&mut second, 1500, 17, 10..13);
    collector.listen(&mut second, at(2500));
    second.end();
    collector.listen(&mut second, at(2500));
    let reports = collector.accepted();
    let ids: Vec<_> = reports.iter().map(|r| (r.epoch_id, r.report_id)).collect();
    assert_eq!(ids, [(1, 1), (1, 2)]);
    assert_eq!(reports[1].snapshot.counts.requests, 3);
    assert_eq!(collector.end()[0].outcome, Outcome::Complete);
}

// SEQ-3.3
#[test]
fn a_disabled_stream_stays_disabled_in_the_next_session_until_it_is_reprovisioned() {
    let mut disabled = Disabled::new(64);
    let mut first = begun(settings());
    sends(&mut first, 5, 17, 0..3);
    show(&mut first, 6, &roce(17, READ, 3));
    let [key] = first.take_violated()[..] else { panic!("one stream") };
    assert!(disabled.add(key, 0));
    let mut second = ExportSession::new(settings(), rules(16), &disabled, at(0)).expect("new");
    let mut collector = Collector::new();
    sends(&mut second, 7, 17, 4..9);
    collector.listen(&mut second, at(1000));
    assert_eq!(collector.accepted(), []);
    assert_eq!(second.meter_counts().after_violation, 5);
    // A higher revision, or a word of the operator.
    assert!(second.reprovision(&key));
    sends(&mut second, 8, 17, 9..11);
    collector.listen(&mut second, at(2000));
    assert_eq!(collector.accepted()[0].snapshot.counts.requests, 2);
}

// SEQ-3.3
#[test]
fn only_a_higher_revision_takes_a_stream_off_the_list() {
    let mut first = begun(settings());
    show(&mut first, 6, &roce(17, READ, 3));
    let [key] = first.take_violated()[..] else { panic!("one stream") };
    let mut disabled = Disabled::new(1);
    assert!(disabled.add(key, 4));
    let revised = |revision| {
        let rules =
            Rule::everything(Window::new(16).expect("a window")).map(|r| Rule { revision, ..r });
        Provisioning::new(rules.to_vec(), 8).expect("attested")
    };
    assert!(!disabled.provision(&revised(4)));
    assert!(!disabled.provision(&Provisioning::new(Vec::new(), 8).expect("none")));
    assert_eq!(disabled.len(), 1);
    assert!(disabled.provision(&revised(5)));
    assert!(disabled.is_empty());
}

// SEQ-4.7
#[test]
fn a_reload_closes_what_it_changes_and_nothing_else() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    sends(&mut session, 5, 17, 0..10);
    collector.listen(&mut session, at(1000));
    session.provision(rules(16), &Disabled::new(64));
    collector.listen(&mut session, at(1500));
    assert_eq!(collector.accepted().len(), 1);
    session.provision(rules(32), &Disabled::new(64));
    sends(&mut session, 1600, 17, 10..12);
    collector.listen(&mut session, at(2000));
    let reports = collector.accepted();
    let seen: Vec<_> = reports
        .iter()
        .map(|r| (r.epoch_id, r.report_id, r.snapshot.window.get(), r.snapshot.counts.requests))
        .collect();
    assert_eq!(seen, [(1, 2, 16, 10), (2, 1, 32, 2)]);
    assert!(reports[0].snapshot.flags.has(Flags::FINAL_EPOCH));
    assert!(reports[0].snapshot.flags.of(Flags::CAUSES).is_empty());
}

// SEQ-4.9
#[test]
fn a_new_generation_closes_the_epoch_and_the_next_packet_begins_another() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    sends(&mut session, 5, 17, 0..10);
    let key = session.meter().stream(0).expect("a stream").key;
    session.new_generation(&key);
    sends(&mut session, 6, 17, 10..11);
    session.end();
    collector.listen(&mut session, at(10));
    let requests: Vec<_> =
        collector.accepted().iter().map(|r| r.snapshot.counts.requests).collect();
    assert_eq!(requests, [10, 1]);
}

/// A session with one interface that has a drop counter.
fn with_a_counter() -> ExportSession {
    let mut session = begun(settings());
    session.item(Item::Interface { counters: true, name: None });
    session
}

// SEQ-3.7: nobody knows where between two readings the drops were.
#[test]
fn drops_qualify_every_epoch_that_overlaps_their_span_and_no_other() {
    let (mut session, mut collector) = (with_a_counter(), Collector::new());
    // The first stream falls silent before the first reading.
    sends(&mut session, 5, 1, 0..10);
    let key = roce_key(&mut session, 0);
    session.new_generation(&key);
    session.reading_taken(0);
    session.drops(0, Some(0));
    collector.listen(&mut session, at(10));
    assert_eq!(collector.accepted()[0].snapshot.flags.of(Flags::CAUSES), Flags(0));
    // The second closes in the span, the third is open at its end.
    sends(&mut session, 6, 2, 0..10);
    sends(&mut session, 6, 3, 0..10);
    let key = roce_key(&mut session, 1);
    session.new_generation(&key);
    collector.listen(&mut session, at(20));
    assert_eq!(collector.heard, [], "the final waits for the reading that covers it");
    session.reading_taken(0);
    // In the ring when the counter was read: the drops can lie behind them.
    sends(&mut session, 7, 4, 0..2);
    let key = roce_key(&mut session, 3);
    session.new_generation(&key);
    session.drops(0, Some(5));
    sends(&mut session, 8, 3, 10..12);
    session.end();
    collector.listen(&mut session, at(30));
    let gap = Flags::CAPTURE_DISCONTINUITY;
    let seen: Vec<_> = collector
        .accepted()
        .iter()
        .map(|r| (r.snapshot.key.qp, r.snapshot.counts.requests, r.snapshot.flags.has(gap)))
        .collect();
    assert_eq!(seen, [(2, 10, true), (4, 2, true), (3, 10, true), (3, 2, false)]);
    assert_eq!(session.tally().capture_drops, 5);
}

fn roce_key(session: &mut ExportSession, index: u32) -> observe::report::StreamKey {
    session.meter().stream(index).expect("a stream").key
}

// SEQ-3.7
#[test]
fn an_epoch_that_closes_after_a_reading_without_packets_waits_for_the_next() {
    let (mut session, mut collector) = (with_a_counter(), Collector::new());
    sends(&mut session, 5, 1, 0..10);
    session.reading_taken(0);
    let key = roce_key(&mut session, 0);
    session.new_generation(&key);
    session.drops(0, Some(0));
    collector.listen(&mut session, at(10));
    assert_eq!(collector.heard, []);
    session.reading_taken(0);
    session.drops(0, Some(1));
    collector.listen(&mut session, at(10));
    assert!(collector.accepted()[0].snapshot.flags.has(Flags::CAPTURE_DISCONTINUITY));
}

// SEQ-3.8
#[test]
fn a_gap_that_is_told_closes_everything() {
    let (mut session, mut collector) = (begun(settings()), Collector::new());
    sends(&mut session, 5, 1, 0..10);
    sends(&mut session, 5, 2, 0..10);
    session.gap(Cause::CaptureGap);
    collector.listen(&mut session, at(10));
    let reports = collector.accepted();
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(|r| r.snapshot.flags.has(Flags::CAPTURE_DISCONTINUITY)));
}

// SEQ-4.7
#[test]
fn silence_closes_an_epoch_once_all_packets_of_that_time_were_seen() {
    let mut idle = settings();
    idle.meter.idle_ns = Some(1_000_000_000);
    let (mut session, mut collector) = (begun(idle), Collector::new());
    sends(&mut session, 5, 1, 0..10);
    session.seen_until(1_005_000_000);
    collector.listen(&mut session, at(10));
    assert_eq!(collector.heard, []);
    session.seen_until(1_005_000_001);
    collector.listen(&mut session, at(10));
    assert!(collector.accepted()[0].snapshot.flags.has(Flags::FINAL_EPOCH));
}
