//! Samples: what they say, how far that can be off, and when they say nothing.

use observe::queue::Reason;
use observe::queue::row::Method;

use crate::support::*;

fn period(row: &observe::queue::row::Row) -> u64 {
    match measured(row).method {
        Method::Samples { period_ns } => period_ns,
        Method::Events => panic!("{row:?}"),
    }
}

// QUE-err.1
#[test]
fn samples_make_a_sampled_interval_with_their_largest_spacing() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    for (t, present, gated) in
        [(0, true, true), (180, true, true), (420, true, false), (600, false, true)]
    {
        assert_eq!(source.tell(t, sample(present, gated)).len(), 0);
    }
    // The interval is complete with the sample behind it, whose spacing counts too.
    let rows = source.tell(1100, sample(false, false));
    assert_eq!(period(&rows[0]), 500);
    // QUE-err.2: true Q and I can be anything from 0 to 1000.
    assert_eq!(known(&rows[0]), (420, 600, 600));
}

// QUE-err.2
#[test]
fn a_predicate_that_never_changed_can_have_been_otherwise_all_the_time() {
    for present in [true, false] {
        let mut source = Source::new(1000);
        source.tell(0, map(&[3], 0));
        source.tell(0, sample(present, present));
        source.tell(500, sample(present, present));
        let rows = source.tell(1000, sample(present, present));
        assert_eq!(known(&rows[0]).2, 1000);
    }
}

// QUE-err.1
#[test]
fn samples_further_apart_than_the_interval_say_nothing_of_it() {
    for (next, fits) in [(1400, true), (1500, true), (1501, false)] {
        let mut source = Source::new(1000);
        source.tell(0, map(&[3], 0));
        source.tell(0, sample(true, true));
        source.tell(500, sample(true, true));
        let rows = source.tell(next, sample(true, true));
        assert_eq!(rows.len(), 1);
        if fits {
            assert_eq!(period(&rows[0]), next - 500);
        } else {
            assert_eq!(reason(&rows[0]), Reason::Other);
        }
    }
}

// QUE-err.1
#[test]
fn an_interval_cut_short_without_a_sample_is_unknown() {
    for (end, fits) in [(1099, false), (1100, true)] {
        let mut source = Source::new(1000);
        source.tell(0, map(&[3], 0));
        for t in (0..=1000).step_by(100) {
            source.tell(t, sample(true, false));
        }
        source.tell(end - 50, sample(true, false));
        let rows = source.tell(end, map(&[3], 0));
        let row = rows.last().unwrap();
        assert_eq!((row.interval, row.duration_ns), (2, end - 1000));
        if fits {
            assert_eq!(period(row), 50);
        }
        // With no sample at all, the last one is from before it.
        let mut source = Source::new(1000);
        source.tell(0, map(&[3], 0));
        source.tell(0, sample(true, false));
        source.tell(990, sample(true, false));
        let rows = source.tell(1005, map(&[3], 0));
        assert_eq!(reason(&rows[1]), Reason::Other);
        assert_eq!(rows[1].duration_ns, 5);
    }
}

// QUE-err.1
#[test]
fn where_no_sample_comes_the_interval_is_unknown_in_the_end() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    source.tell(900, sample(true, true));
    assert_eq!(source.time(1999).len(), 0);
    let rows = source.time(2000);
    assert_eq!(reason(&rows[0]), Reason::Other);
    assert_eq!(rows[0].interval, 1);
}

// QUE-err.3
#[test]
fn a_lost_sample_makes_a_capture_gap() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    source.tell(0, sample(true, true));
    source.seq += 1;
    source.tell(500, sample(true, true));
    let rows = source.tell(1000, sample(true, true));
    assert_eq!(reason(&rows[0]), Reason::CaptureGap);
    let rows = source.tell(2000, sample(true, true));
    assert_eq!(period(&rows[0]), 1000);
}

// QUE-id.1
#[test]
fn another_method_is_another_epoch() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    source.tell(0, backlog(true));
    source.tell(0, gate(3, true));
    source.time(1001);
    let rows = source.tell(1200, sample(true, true));
    assert_eq!(identity(&rows[0]), (epoch(0), 2, 1000, 200));
    assert_eq!(rows[0].measurement.word(), "event-based");
    source.tell(1700, sample(true, false));
    let rows = source.tell(2200, sample(true, false));
    assert_eq!(identity(&rows[0]), (epoch(1), 1, 0, 1000));
    assert_eq!(known(&rows[0]), (500, 1000, 1000));
    // Transitions say nothing more until the queue is mapped again.
    source.tell(2300, backlog(false));
    assert_eq!(source.tell(3200, sample(true, true))[0].measurement.word(), "sampled");
    source.tell(3300, map(&[3], 0));
    source.tell(3300, backlog(false));
    source.tell(3300, gate(3, false));
    assert_eq!(known(&source.time(5301)[1]), (0, 0, 0));
}

// QUE-err.1
#[test]
fn a_sample_in_an_interval_that_is_not_yet_measured_makes_it_sampled() {
    let mut source = Source::new(1000);
    source.tell(0, map(&[3], 0));
    source.tell(0, backlog(true));
    source.tell(400, sample(true, true));
    let rows = source.tell(1200, sample(true, true));
    assert_eq!(identity(&rows[0]), (epoch(0), 1, 0, 1000));
    assert_eq!(period(&rows[0]), 800);
}
