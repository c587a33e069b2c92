//! Events to intervals: the draft's examples, and every way in which an interval or epoch ends.

use observe::queue::Reason;
use observe::queue::event::Event;

use crate::support::*;

/// A queue of priority 3 whose state is told at 0, with intervals of 1000 ns.
fn source(present: bool, closed: bool) -> Source {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    source.tell(0, backlog(present));
    source.tell(0, gate(3, closed));
    source
}

// QUE-ex.1, QUE-def.1
#[test]
fn a_gate_closed_for_800_of_1000_before_a_busy_queue_is_800_and_1000() {
    let mut source = source(true, false);
    source.tell(100, gate(3, true));
    source.tell(900, gate(3, false));
    let rows = source.time(1001);
    assert_eq!(rows.len(), 1);
    let (gated, backlog, _) = known(&rows[0]);
    assert_eq!((gated, backlog), (800, 1000));
    assert_eq!(identity(&rows[0]), (epoch(0), 1, 0, 1000));
}

// QUE-ex.1, QUE-def.4
#[test]
fn an_extended_or_overlapping_pause_counts_once() {
    let mut source = source(true, false);
    source.tell(100, gate(3, true));
    source.tell(400, gate(3, true));
    source.tell(500, gate(3, true));
    source.tell(900, gate(3, false));
    let rows = source.time(1001);
    assert_eq!(known(&rows[0]).0, 800);
}

// QUE-ex.1
#[test]
fn a_queue_that_is_empty_from_100_to_300_is_600_and_800() {
    let mut source = source(true, false);
    source.tell(100, gate(3, true));
    source.tell(100, backlog(false));
    source.tell(300, backlog(true));
    source.tell(900, gate(3, false));
    let rows = source.time(1001);
    let (gated, backlog, _) = known(&rows[0]);
    assert_eq!((gated, backlog), (600, 800));
}

// QUE-def.4: what opens a gate, zero quanta or a watchdog, is a gate that is open.
#[test]
fn a_gate_that_is_opened_before_its_pause_is_over_is_open() {
    let mut source = source(true, true);
    source.tell(250, gate(3, false));
    let rows = source.time(1001);
    assert_eq!(known(&rows[0]).0, 250);
}

// QUE-ex.1, QUE-def.2
#[test]
fn several_priorities_without_a_candidate_are_unresolved_also_where_all_gates_agree() {
    for closed in [true, false] {
        let mut source = Source::new(1000);
        source.tell(0, map(&[3, 4], 0));
        source.tell(0, backlog(true));
        source.tell(0, gate(3, closed));
        source.tell(0, gate(4, closed));
        let rows = source.time(1001);
        assert_eq!(reason(&rows[0]), Reason::CandidateUnresolved);
    }
}

// QUE-def.2
#[test]
fn the_gate_of_the_candidate_counts_and_no_other() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3, 4], 0));
    source.tell(0, gate(3, true));
    source.tell(0, gate(4, false));
    source.tell(0, candidate(3));
    source.tell(0, backlog(true));
    source.tell(300, candidate(4));
    source.tell(600, gate(3, false));
    source.tell(700, gate(4, true));
    let rows = source.time(1001);
    let (gated, backlog, _) = known(&rows[0]);
    assert_eq!((gated, backlog), (600, 1000));
}

// QUE-def.2
#[test]
fn a_candidate_does_not_outlive_its_backlog() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3, 4], 0));
    source.tell(0, gate(3, true));
    source.tell(0, gate(4, false));
    source.tell(0, candidate(3));
    source.tell(0, backlog(true));
    source.tell(1300, backlog(false));
    source.tell(1400, backlog(true));
    assert_eq!(reason(&source.time(2001)[0]), Reason::CandidateUnresolved);
}

// QUE-ex.1, QUE-err.3
#[test]
fn an_observed_empty_queue_is_zero_and_known_whatever_is_paused() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3, 4], 0));
    source.tell(0, backlog(false));
    source.tell(0, gate(3, true));
    source.tell(0, gate(4, true));
    let rows = source.time(2001);
    assert_eq!(rows.len(), 2);
    // The first begins with what nobody has told for the time before 0 + 1 ns.
    assert_eq!(known(&rows[0]), (0, 0, 1));
    assert_eq!(known(&rows[1]), (0, 0, 0));
}

// QUE-err.3
#[test]
fn what_a_source_never_tells_is_unavailable_and_never_zero() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    assert_eq!(reason(&source.time(1001)[0]), Reason::Unavailable);
    source.tell(1500, backlog(true));
    assert_eq!(reason(&source.time(2001)[0]), Reason::Unavailable);
    source.tell(2500, gate(3, true));
    assert_eq!(reason(&source.time(3001)[0]), Reason::Other);
    assert_eq!(known(&source.time(4001)[0]).0, 1000);
}

// QUE-ex.1, QUE-err.3
#[test]
fn lost_events_make_a_capture_gap_until_the_state_is_told_again() {
    let mut source = source(true, true);
    source.tell(500, Event::Lost);
    let rows = source.time(1001);
    assert_eq!(reason(&rows[0]), Reason::CaptureGap);
    source.tell(1500, backlog(true));
    assert_eq!(reason(&source.time(2001)[0]), Reason::CaptureGap);
    source.tell(2500, gate(3, false));
    let rows = source.time(4001);
    assert_eq!(reason(&rows[0]), Reason::CaptureGap);
    assert_eq!(known(&rows[1]), (0, 1000, 0));
    // QUE-id.4: all of them are numbered, in one epoch.
    assert_eq!(identity(&rows[1]), (epoch(0), 4, 3000, 1000));
}

#[test]
fn a_loss_says_nothing_of_intervals_that_were_complete_before_it() {
    let mut source = source(true, true);
    assert_eq!(known(&source.time(1001)[0]).0, 1000);
    source.tell(1001, Event::Lost);
    assert_eq!(reason(&source.time(2001)[0]), Reason::CaptureGap);
}

#[test]
fn a_loss_reaches_back_to_the_event_before_it() {
    let mut source = source(true, true);
    source.tell_of("other", 900, map(&[3], 0));
    let mut rows = source.tell(5500, Event::Lost);
    rows.retain(|row| &*row.place.queue == "q3");
    assert_eq!(rows.iter().map(reason).collect::<Vec<_>>(), [Reason::CaptureGap; 5]);
}

// QUE-err.3
#[test]
fn losses_of_several_queues_at_one_time_all_reach_back_to_the_time_before() {
    let mut source = source(true, true);
    for event in [map(&[3], 0), backlog(true), gate(3, true)] {
        source.tell_of("other", 0, event);
    }
    let mut rows = source.tell(3500, Event::Lost);
    rows.extend(source.tell_of("other", 3500, Event::Lost));
    assert_eq!(rows.iter().map(reason).collect::<Vec<_>>(), [Reason::CaptureGap; 6]);
}

// QUE-id.1
#[test]
fn what_was_complete_of_queues_that_start_again_ends_with_the_time_before() {
    let mut source = source(true, true);
    source.tell_of("other", 0, map(&[3], 0));
    source.tell_of("other", 0, backlog(true));
    source.tell_of("other", 0, gate(3, true));
    source.tell(1500, backlog(true));
    let mut rows = source.tell(5500, Event::Restart);
    rows.extend(source.tell_of("other", 5500, Event::Restart));
    // Each was complete up to 1500, and nothing is told of what came then.
    let ends: Vec<(&str, u64)> = rows.iter().map(|row| (&*row.place.queue, row.end_ns())).collect();
    for queue in ["q3", "other"] {
        let own: Vec<u64> = ends.iter().filter(|end| end.0 == queue).map(|end| end.1).collect();
        assert_eq!(own.last(), Some(&1500), "{ends:?}");
    }
}

#[test]
fn a_hole_in_the_numbers_is_a_loss_for_every_queue() {
    let mut source = source(true, true);
    source.tell_of("other", 0, map(&[3], 0));
    source.tell_of("other", 0, backlog(false));
    source.tell_of("other", 0, gate(3, false));
    source.seq += 1;
    source.tell_of("other", 400, backlog(false));
    let rows = source.time(1001);
    assert_eq!(rows.iter().map(reason).collect::<Vec<_>>(), [Reason::CaptureGap; 2]);
    assert_eq!((source.meter.counts().holes, source.meter.counts().missing), (1, 1));
}

// QUE-def.6, QUE-id.1, QUE-id.2, QUE-id.5
#[test]
fn another_mapping_ends_the_epoch_where_it_begins() {
    let mut source = source(true, true);
    let rows = source.tell(1600, map(&[3, 4], 0));
    assert_eq!(rows.len(), 2);
    assert_eq!(identity(&rows[1]), (epoch(0), 2, 1000, 600));
    // Events that are told from here on could still have happened in the last nanosecond of it.
    assert_eq!(known(&rows[1]), (600, 600, 1));
    assert_eq!(rows[1].priorities, priorities(&[3]));
    let rows = source.time(2601);
    assert_eq!(identity(&rows[0]), (epoch(1), 1, 0, 1000));
    assert_eq!(rows[0].priorities, priorities(&[3, 4]));
    // What was told of the old mapping says nothing of the new one.
    assert_eq!(reason(&rows[0]), Reason::Unavailable);
}

// QUE-id.5
#[test]
fn there_is_no_record_of_no_length() {
    let mut source = source(true, true);
    assert_eq!(source.tell(0, map(&[4], 0)).len(), 0);
    source.tell(1000, backlog(true));
    let rows = source.tell(1000, map(&[5], 0));
    assert_eq!(rows.len(), 1);
    assert_eq!(identity(&rows[0]), (epoch(1), 1, 0, 1000));
    assert_eq!(source.finish().len(), 0);
}

// QUE-id.1
#[test]
fn a_restart_is_a_fresh_epoch_in_which_nothing_is_told() {
    let mut source = source(true, true);
    source.tell(400, gate(3, false));
    // Its numbers and its time may begin anew.
    let rows = source.restart(1, 7);
    assert_eq!(identity(&rows[0]), (epoch(0), 1, 0, 400));
    let rows = source.time(1008);
    assert_eq!(identity(&rows[0]), (epoch(1), 1, 0, 1000));
    assert_eq!(reason(&rows[0]), Reason::Unavailable);
}

// QUE-id.1
#[test]
fn one_queue_can_restart_alone() {
    let mut source = source(true, true);
    source.tell_of("other", 0, map(&[3], 0));
    source.tell_of("other", 300, backlog(true));
    let rows = source.tell(500, Event::Restart);
    // Its epoch ends with what the source told last.
    assert_eq!(identity(&rows[0]), (epoch(0), 1, 0, 300));
    let rows = source.time(1501);
    assert_eq!(rows.iter().map(|row| row.epoch).collect::<Vec<_>>(), [epoch(1), epoch(2)]);
}

// QUE-id.6
#[test]
fn a_clock_that_goes_back_is_a_fresh_epoch_and_missing_time() {
    let mut source = source(true, true);
    source.tell(1700, gate(3, true));
    let rows = source.tell(1600, gate(3, true));
    assert_eq!(rows.len(), 0);
    assert_eq!(source.meter.counts().clocks, 1);
    let rows = source.time(2601);
    // What was going on when the clock went has no record: nobody knows how long it was.
    assert_eq!(identity(&rows[0]), (epoch(1), 1, 0, 1000));
    assert_eq!(known(&rows[0]).0, 1000);
}

// QUE-id.6
#[test]
fn a_clock_that_leaps_by_more_than_a_day_is_another_clock() {
    const DAY: u64 = 86_400_000_000_000;
    let mut source = source(true, true);
    source.tell(DAY, gate(3, true));
    assert_eq!(source.meter.counts().clocks, 0);
    assert_eq!(source.tell(2 * DAY + 1, gate(3, true)).len(), 0);
    assert_eq!(source.meter.counts().clocks, 1);
    let rows = source.time(2 * DAY + 1002);
    assert_eq!((rows[0].interval, rows[0].start_ns), (1, 0));
}

// QUE-id.4
#[test]
fn intervals_are_numbered_from_1_and_follow_each_other() {
    let mut source = source(true, true);
    let rows: Vec<_> = (1..=50).flat_map(|n| source.tell(n * 137, gate(3, n % 2 == 0))).collect();
    assert_eq!(rows.len(), 6);
    for (nth, row) in (0..).zip(&rows) {
        assert_eq!(identity(row), (epoch(0), nth + 1, nth * 1000, 1000));
    }
}

// QUE-err.2
#[test]
fn the_error_is_what_both_ends_of_a_pause_can_be_off() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 9));
    source.tell(0, backlog(true));
    source.tell(0, gate(3, false));
    let first = source.time(1010);
    assert_eq!(known(&first[0]), (0, 1000, 10));
    source.tell(1100, gate(3, true));
    source.tell(1900, gate(3, false));
    let rows = source.time(2010);
    // 9 ns of the clock and 1 ns of rounding, at each end.
    assert_eq!(known(&rows[0]), (800, 1000, 20));
}

// QUE-err.2
#[test]
fn gates_before_an_empty_queue_make_no_error() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 99));
    source.tell(0, backlog(false));
    source.tell(0, gate(3, false));
    source.time(1100);
    for n in 0..10 {
        source.tell(1200 + n * 50, gate(3, n % 2 == 0));
    }
    assert_eq!(known(&source.time(2100)[0]), (0, 0, 0));
}

// QUE-err.2
#[test]
fn an_event_just_outside_an_interval_makes_an_error_inside() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 99));
    source.tell(0, backlog(true));
    source.tell(0, gate(3, false));
    source.time(1950);
    // Told for 2030, and perhaps it was at 1931 already.
    source.tell(2030, gate(3, true));
    let rows = source.time(2100);
    assert_eq!(identity(&rows[0]).1, 2);
    assert_eq!(known(&rows[0]), (0, 1000, 70));
}

// QUE-err.2
#[test]
fn the_error_is_never_above_the_duration() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 100_000));
    source.tell(0, backlog(true));
    source.tell(0, gate(3, false));
    for n in 1..100 {
        source.tell(n * 10, gate(3, n % 2 == 0));
    }
    let rows = source.time(105_000);
    assert_eq!(rows.len(), 4);
    assert_eq!(known(&rows[0]).2, 1000);
    assert_eq!(rows[0].faults().count(), 0);
}
