//! Rows of others: what counts, what does not, and what they say together.

use observe::queue::aggregate::{Aggregator, Coverage, Full, Rejection, Total, Verdict};
use observe::queue::row::{Fault, Measurement, Row};
use observe::queue::{OFFSET_NS_MAX, Reason};

use crate::rows::row;
use crate::support::{epoch, priorities};

fn judge(rows: &[Row]) -> (Aggregator, Vec<Verdict>) {
    let mut aggregator = Aggregator::new(100);
    let verdicts = rows.iter().map(|row| aggregator.row(row).unwrap()).collect();
    (aggregator, verdicts)
}

fn unknown(interval: u64, start_ns: u64, duration_ns: u64) -> Row {
    let measurement = Measurement::Unknown(Reason::CaptureGap);
    Row { measurement, ..row(interval, start_ns, duration_ns, (0, 0, 0)) }
}

// QUE-ex.1, QUE-con.2, QUE-con.3
#[test]
fn ratios_are_of_sums_and_errors_add() {
    let rows = [
        row(1, 0, 100, (50, 80, 10)),
        row(2, 100, 900, (90, 100, 20)),
        row(1, 0, 100, (50, 80, 10)),
    ];
    let (aggregator, verdicts) = judge(&rows);
    // Read again it adds nothing.
    assert_eq!(verdicts, [Verdict::Accepted, Verdict::Accepted, Verdict::Repeated]);
    let span = aggregator.groups()[0].span().unwrap();
    let total = span.known.unwrap();
    assert_eq!(total, Total { duration_ns: 1000, gated_ns: 140, backlog_ns: 180, error_ns: 30 });
    assert_eq!((span.coverage(), span.missing_ns()), (Coverage::Complete, 0));
    let ratio = total.gated_ratio();
    assert_eq!((ratio.value, ratio.low, ratio.high), (0.14, 0.11, 0.17));
    let ratio = total.gated_of_backlog().unwrap();
    assert_eq!((ratio.low, ratio.high), (110.0 / 210.0, 1.0));
}

// QUE-con.3
#[test]
fn a_ratio_to_the_backlog_needs_one() {
    let of = |known| {
        let (aggregator, _) = judge(&[row(1, 0, 100, known)]);
        aggregator.groups()[0].span().unwrap().known.unwrap().gated_of_backlog()
    };
    assert_eq!(of((0, 0, 0)), None);
    assert_eq!(of((0, 0, 5)), None);
    // Where Q can be 0, anything can be.
    for error in [50, 51] {
        let ratio = of((20, 50, error)).unwrap();
        assert_eq!((ratio.value, ratio.low, ratio.high), (0.4, 0.0, 1.0));
    }
    let ratio = of((20, 50, 10)).unwrap();
    assert_eq!((ratio.value, ratio.low, ratio.high), (0.4, 10.0 / 60.0, 30.0 / 40.0));
}

// QUE-con.1
#[test]
fn the_first_of_two_that_conflict_stands() {
    let (aggregator, verdicts) = judge(&[row(1, 0, 100, (5, 5, 0)), row(1, 0, 100, (6, 6, 0))]);
    assert_eq!(verdicts[1], Verdict::Rejected(Rejection::Conflict));
    let group = &aggregator.groups()[0];
    assert_eq!(group.span().unwrap().known.unwrap().gated_ns, 5);
    assert_eq!(group.rejected(), [(1, Rejection::Conflict)]);
}

// QUE-con.1: a report of a group can say that what counts may be what is wrong.
#[test]
fn a_group_knows_that_its_rows_contradict_each_other() {
    let first = row(1, 0, 100, (5, 5, 0));
    for (other, contradicts) in [
        (row(1, 0, 100, (6, 6, 0)), true),
        (row(2, 99, 100, (6, 6, 0)), true),
        (row(3, 100, 100, (6, 6, 0)), true),
        (Row { priorities: priorities(&[5]), ..row(2, 100, 100, (5, 5, 0)) }, true),
        (row(900, 100, 100, (5, 5, 0)), true),
        // By itself it is wrong, or fits.
        (row(2, 100, 100, (6, 5, 0)), false),
        (row(2, 100, 100, (5, 5, 0)), false),
        (first.clone(), false),
    ] {
        let (aggregator, verdicts) = judge(&[first.clone(), other]);
        assert_eq!(aggregator.groups()[0].is_contradicted(), contradicts, "{verdicts:?}");
    }
}

// QUE-id.4, QUE-con.1: numbers begin with 1, and each is of an interval with a length.
#[test]
fn an_interval_has_room_before_it_for_those_of_lower_numbers() {
    let no_room = Verdict::Rejected(Rejection::NoRoom(0));
    for (interval, start_ns, expected) in [
        (1, 0, Verdict::Accepted),
        (1, 7, Verdict::Accepted),
        (5, 0, no_room.clone()),
        (5, 3, no_room.clone()),
        (5, 4, Verdict::Accepted),
        (5, 5, Verdict::Accepted),
        (OFFSET_NS_MAX, OFFSET_NS_MAX - 2, no_room),
        (OFFSET_NS_MAX, OFFSET_NS_MAX - 1, Verdict::Accepted),
        // The module has numbers that no offset has room for.
        (u64::MAX, 100, Verdict::Accepted),
    ] {
        let (aggregator, verdicts) = judge(&[row(interval, start_ns, 1, (0, 0, 0))]);
        assert_eq!(verdicts, [expected], "{interval} at {start_ns}");
        assert!(!aggregator.groups()[0].is_contradicted());
    }
    let said = Rejection::NoRoom(0).to_string();
    assert_eq!(said, "no time for the intervals before it in its epoch");
}

// QUE-con.1
#[test]
fn a_clock_on_the_wall_that_was_set_is_no_conflict() {
    let again =
        Row { wall_clock_start: Some("2026-10-30T00:00:00Z".into()), ..row(1, 0, 100, (5, 5, 0)) };
    assert_eq!(judge(&[row(1, 0, 100, (5, 5, 0)), again]).1[1], Verdict::Repeated);
}

// QUE-con.1
#[test]
fn what_overlaps_or_goes_back_is_rejected() {
    let first = row(2, 100, 100, (0, 0, 0));
    for (second, expected) in [
        (row(3, 200, 1, (0, 0, 0)), None),
        (row(3, 199, 1, (0, 0, 0)), Some(Rejection::Overlap(2))),
        (row(3, 100, 100, (0, 0, 0)), Some(Rejection::Overlap(2))),
        (row(3, 99, 1, (0, 0, 0)), Some(Rejection::Backward(2))),
        (row(3, 0, 1, (0, 0, 0)), Some(Rejection::Backward(2))),
        (row(1, 99, 1, (0, 0, 0)), None),
        (row(1, 99, 2, (0, 0, 0)), Some(Rejection::Overlap(2))),
        (row(1, 200, 1, (0, 0, 0)), Some(Rejection::Backward(2))),
        // Interval 3 has to have at least a nanosecond.
        (row(4, 200, 1, (0, 0, 0)), Some(Rejection::NoRoom(2))),
        (row(4, 201, 1, (0, 0, 0)), None),
    ] {
        let verdict = judge(&[first.clone(), second.clone()]).1[1].clone();
        let expected = expected.map_or(Verdict::Accepted, Verdict::Rejected);
        assert_eq!(verdict, expected, "{second:?}");
    }
}

// QUE-con.1
#[test]
fn it_does_not_matter_in_which_order_rows_come() {
    let rows = [
        row(1, 0, 100, (1, 2, 3)),
        unknown(2, 100, 50),
        row(5, 400, 100, (4, 5, 6)),
        row(6, 500, 1, (0, 1, 1)),
    ];
    let (forth, _) = judge(&rows);
    let mut back = rows.to_vec();
    back.reverse();
    let (back, verdicts) = judge(&back);
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Accepted));
    assert_eq!(forth.groups()[0].span(), back.groups()[0].span());
}

// QUE-con.1, QUE-con.2
#[test]
fn gaps_and_unknown_intervals_are_missing_time_and_never_zeros() {
    let (aggregator, _) =
        judge(&[row(1, 10, 100, (10, 20, 0)), unknown(2, 110, 50), row(4, 200, 100, (10, 20, 0))]);
    let span = aggregator.groups()[0].span().unwrap();
    assert_eq!((span.first, span.last, span.duration_ns), (1, 4, 290));
    assert_eq!((span.known_ns(), span.missing_ns()), (200, 90));
    assert_eq!(span.coverage(), Coverage::Partial);
    assert_eq!(span.known.unwrap().gated_ratio().value, 0.1);
}

// QUE-con.2, QUE-err.3
#[test]
fn where_nothing_is_known_there_is_no_sum() {
    let (aggregator, _) = judge(&[unknown(1, 0, 100)]);
    let span = aggregator.groups()[0].span().unwrap();
    assert_eq!((span.known, span.missing_ns()), (None, 100));
    assert_eq!(span.coverage(), Coverage::Partial);
}

// QUE-con.2
#[test]
fn epochs_and_queues_are_never_joined() {
    let other_epoch = Row { epoch: epoch(1), ..row(2, 100, 100, (0, 0, 0)) };
    let mut other_queue = row(3, 200, 100, (0, 0, 0));
    std::sync::Arc::make_mut(&mut other_queue.place).queue = "q4".into();
    let (aggregator, _) = judge(&[row(1, 0, 100, (0, 0, 0)), other_epoch, other_queue]);
    assert_eq!(aggregator.groups().len(), 3);
}

// QUE-id.2, QUE-con.1
#[test]
fn another_mapping_within_an_epoch_is_rejected() {
    let other = Row { priorities: priorities(&[3, 4]), ..row(2, 100, 100, (0, 0, 0)) };
    let (_, verdicts) = judge(&[row(1, 0, 100, (0, 0, 0)), other]);
    assert_eq!(verdicts[1], Verdict::Rejected(Rejection::OtherMapping));
}

// QUE-yang.1
#[test]
fn a_row_that_breaks_a_relationship_does_not_count() {
    let (aggregator, verdicts) = judge(&[row(1, 0, 5, (4, 3, 0))]);
    let fault = Rejection::Fault(Fault::GatedAboveBacklog(4, 3));
    assert_eq!(verdicts, [Verdict::Rejected(fault.clone())]);
    let group = &aggregator.groups()[0];
    assert_eq!((group.span(), group.rejected()), (None, &[(1, fault)][..]));
}

#[test]
fn there_is_room_for_so_many_rows_and_repeats_need_none() {
    let mut aggregator = Aggregator::new(2);
    aggregator.row(&row(1, 0, 5, (0, 0, 0))).unwrap();
    aggregator.row(&row(1, 0, 5, (1, 1, 0))).unwrap();
    assert_eq!(aggregator.row(&row(1, 0, 5, (0, 0, 0))), Ok(Verdict::Repeated));
    assert_eq!(aggregator.row(&row(2, 5, 5, (0, 0, 0))), Err(Full { rows_max: 2 }));
    assert_eq!(aggregator.groups()[0].span().unwrap().last, 1);
}
