//! Named limits, each below, at and above; and what is refused leaves everything as it was.

use observe::queue::event::Event;
use observe::queue::meter::{Refused, Settings, Subject, Told};
use observe::queue::{DURATION_NS_MAX, OFFSET_NS_MAX, Reason};

use crate::support::*;

// QUE-id.3
#[test]
fn a_new_epoch_begins_before_offsets_are_too_large_and_nothing_is_missing() {
    let mut source = Source::new(DURATION_NS_MAX);
    source.tell(0, map(&[3], 0));
    source.tell(0, backlog(true));
    source.tell(0, gate(3, true));
    // Half days, for more than 104 days.
    let rows: Vec<_> =
        (1..300).flat_map(|n| source.tell(n * DURATION_NS_MAX / 2, gate(3, true))).collect();
    let (first, second): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.epoch == epoch(0));
    let last = first.last().unwrap();
    assert!(last.end_ns() <= OFFSET_NS_MAX, "{last:?}");
    assert!(last.end_ns() + DURATION_NS_MAX > OFFSET_NS_MAX, "{last:?}");
    assert_eq!(identity(second[0]), (epoch(1), 1, 0, DURATION_NS_MAX));
    assert!(rows.iter().all(|row| row.faults().next().is_none()));
    // Signals are known over the boundary as before it.
    assert_eq!(known(second[0]), (DURATION_NS_MAX, DURATION_NS_MAX, 0));
    let total: u64 = rows.iter().map(|row| row.duration_ns).sum();
    assert_eq!(total, 149 * DURATION_NS_MAX);
}

// QUE-id.3
#[test]
fn a_silence_becomes_rows_of_a_day_at_most_and_not_one_for_each_interval() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    source.tell(0, backlog(true));
    source.tell(0, gate(3, true));
    assert_eq!(source.time(8001).len(), 8);
    let rows = source.time(17_001);
    assert_eq!(rows.len(), 1);
    assert_eq!(identity(&rows[0]), (epoch(0), 9, 8000, 9000));
    assert_eq!(known(&rows[0]), (9000, 9000, 0));
    let rows = source.time(17_001 + DURATION_NS_MAX);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].duration_ns, DURATION_NS_MAX);
}

#[test]
fn an_interval_is_at_least_a_nanosecond_and_at_most_a_day() {
    for (asked, expected) in [(0, 1), (DURATION_NS_MAX + 1, DURATION_NS_MAX)] {
        let mut source = Source::new(asked);
        source.tell(0, map(&[3], 0));
        source.time(expected / 2);
        assert_eq!(source.time(expected + 1)[0].duration_ns, expected);
    }
}

#[test]
fn transitions_that_there_is_no_room_for_are_missing() {
    for (edges, fits) in [(3, true), (4, true), (5, false)] {
        let settings = Settings { interval_ns: 1000, edges_max: 4, ..Settings::default() };
        let mut source = Source::with(settings);
        source.tell(0, map(&[3], 99));
        source.tell(0, backlog(true));
        source.tell(0, gate(3, false));
        source.time(1100);
        for n in 0..edges {
            source.tell(1500 + n, gate(3, n % 2 == 0));
        }
        let row = &source.time(2100)[0];
        if fits {
            known(row);
        } else {
            assert_eq!(reason(row), Reason::CaptureGap);
        }
    }
}

#[test]
fn one_queue_more_than_there_is_room_for_is_refused() {
    let mut source = Source::with(Settings { queues_max: 2, ..Settings::default() });
    source.tell_of("a", 0, map(&[3], 0));
    source.tell_of("b", 0, map(&[3], 0));
    let refused = source.try_tell("c", 0, map(&[3], 0)).unwrap_err();
    assert!(matches!(refused, Refused::Full { queues_max: 2, .. }), "{refused}");
    // Those that are there can still be mapped again.
    source.seq -= 1;
    source.tell_of("a", 0, map(&[4], 0));
    assert_eq!(source.meter.queues(), 2);
}

#[test]
fn names_and_errors_have_limits() {
    let settings = Settings { max_error_ns_max: 10, ..Settings::default() };
    for (queue, error, fits) in [
        ("q".repeat(128), 10, true),
        ("ü".repeat(128), 9, true),
        ("q".repeat(129), 0, false),
        (String::new(), 0, false),
        ("q".to_owned(), 11, false),
    ] {
        let mut source = Source::with(settings);
        assert_eq!(source.try_tell(&queue, 0, map(&[3], error)).is_ok(), fits, "{queue} {error}");
    }
}

// QUE-id.2
#[test]
fn a_name_that_no_row_could_be_written_with_is_refused() {
    for (queue, fits) in [
        ("a\tb\r\n", true),
        ("\u{e9}\u{1f600}", true),
        ("a\u{1}", false),
        ("\0", false),
        ("\u{fffe}", false),
        ("\u{1ffff}", false),
        ("\u{fdd0}", false),
    ] {
        let mut source = Source::new(1000);
        assert_eq!(source.try_tell(queue, 0, map(&[3], 0)).is_ok(), fits, "{queue:?}");
        let subject = Subject::Queue { interface: queue, queue: "q3" };
        let told = source.meter.told(Told { seq: 9, t: 0, subject, event: map(&[3], 0) });
        assert_eq!(told.is_ok(), fits, "{queue:?}");
    }
}

#[test]
fn what_is_refused_changes_nothing_and_is_missing_afterwards() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    source.tell(0, backlog(true));
    source.tell(0, gate(3, true));
    let refused = source.try_tell("q3", 500, gate(4, true)).unwrap_err();
    assert_eq!(refused.to_string(), "priority 4, expected one that is mapped: 3");
    let refused = source.try_tell("q3", 500, candidate(4)).unwrap_err();
    assert!(matches!(refused, Refused::NotOfQueue { .. }), "{refused}");
    let refused = source.try_tell("q4", 500, backlog(true)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "interface \"Ethernet1/1\", queue \"q4\" without a mapping, expected `map` first"
    );
    // None of them was seen: the next number shows a hole.
    source.tell(600, gate(3, true));
    assert_eq!(reason(&source.time(1001)[0]), Reason::CaptureGap);
    assert_eq!(source.meter.counts().refused, 3);
}

#[test]
fn numbers_have_to_increase() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    for seq in [0, 1] {
        let subject = Subject::Queue { interface: "Ethernet1/1", queue: "q3" };
        let told = Told { seq, t: 5, subject, event: backlog(true) };
        let refused = source.meter.told(told).unwrap_err();
        assert_eq!(refused, Refused::Number { found: seq, last: 1 });
    }
    assert_eq!(source.time(1001).len(), 1);
}

#[test]
fn only_a_restart_is_of_all_queues() {
    let mut source = Source::new(1000);
    let told = Told { seq: 1, t: 0, subject: Subject::All, event: Event::Lost };
    assert_eq!(source.meter.told(told).unwrap_err(), Refused::Everybody);
}

#[test]
fn the_largest_times_do_not_overflow() {
    let mut source = Source::new(1000);
    source.tell(u64::MAX - 5000, map(&[3], 1_000_000_000));
    source.tell(u64::MAX - 4000, backlog(true));
    source.tell(u64::MAX - 3000, gate(3, true));
    source.tell(u64::MAX, gate(3, false));
    let rows = source.finish();
    assert_eq!(rows.iter().map(|row| row.duration_ns).sum::<u64>(), 5000);
}
