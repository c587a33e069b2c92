//! What stands beside a flow: which readings, and which priority, or why it is not known.

use observe::outcome::BESIDE;
use observe::pfc::Priority;
use observe::pfc::beside::{Apart, Around, around, throughout};

fn priority(n: u8) -> Priority {
    Priority::new(n).unwrap()
}

// PFC-cor.1
#[test]
fn a_priority_is_known_only_where_it_was_said_and_one_for_all_of_the_time() {
    // Nothing is said before 100, then 3, from 200 on 5, from 300 on again 5.
    let at = |ms: u64| match ms {
        0..100 => None,
        100..200 => Some(priority(3)),
        _ => Some(priority(5)),
    };
    let over = |first, last| throughout(first, last, at, [100, 200, 300]);
    assert_eq!(over(100, 199), Ok(priority(3)));
    assert_eq!(over(150, 150), Ok(priority(3)));
    assert_eq!(over(200, 999), Ok(priority(5)));
    assert_eq!(over(99, 150), Err(Apart::PriorityUnknown));
    assert_eq!(over(0, 10), Err(Apart::PriorityUnknown));
    assert_eq!(over(199, 200), Err(Apart::PriorityChanged));
    assert_eq!(over(200, 199), Err(Apart::TimeUnknown));
    // What was said once and is not said any more is not known, whatever changed before.
    let lost = |ms: u64| match ms {
        0 => Some(priority(1)),
        1 => Some(priority(2)),
        _ => None,
    };
    assert_eq!(throughout(0, 2, lost, [1, 2]), Err(Apart::PriorityUnknown));
    assert_eq!(throughout(0, 1, lost, [1, 2]), Err(Apart::PriorityChanged));
}

/// The same, the slow way: of all pairs that share some of the time, the one that leaves out the
/// least of it and reaches out the least.
fn slowly(times: &[u64], first: u64, last: u64) -> Option<Around> {
    let mut best: Option<((u64, u64), Around)> = None;
    for earlier in 0..times.len() {
        for later in earlier + 1..times.len() {
            let (from, to) = (times[earlier], times[later]);
            if !times[earlier..=later].is_sorted() {
                continue;
            }
            let shared = if first == last {
                from <= first && first <= to
            } else {
                from.max(first) < to.min(last)
            };
            if from >= to || !shared {
                continue;
            }
            let left_out = from.saturating_sub(first) + last.saturating_sub(to);
            let beyond = first.saturating_sub(from) + to.saturating_sub(last);
            let whole = left_out == 0;
            let rank = (left_out, beyond);
            if best.as_ref().is_none_or(|(other, _)| rank <= *other) {
                best = Some((rank, Around { earlier, later, whole }));
            }
        }
    }
    best.map(|(_, around)| around)
}

// PFC-cor.1, PFC-op.1
#[test]
fn the_readings_around_a_flow_are_the_closest_that_hold_it_or_as_much_as_they_can() {
    let all = [10, 20, 30, 40];
    for count in 0..=all.len() {
        let times = &all[..count];
        for first in 5..50 {
            for last in first..50 {
                let found = around(times, first, last);
                assert_eq!(found, slowly(times, first, last), "{times:?} {first} {last}");
            }
        }
    }
    // A clock that was set back before the flow, in it, behind it, and to where it was.
    for times in
        [[10, 30, 15, 40], [10, 40, 5, 20], [20, 10, 30, 40], [30, 40, 10, 8], [10, 40, 10, 40]]
    {
        for first in 5..50 {
            for last in first..50 {
                let found = around(&times, first, last);
                assert_eq!(found, slowly(&times, first, last), "{times:?} {first} {last}");
            }
        }
    }
    assert_eq!(around(&[10, 40, 1, 2], 20, 30), Some(Around { earlier: 0, later: 1, whole: true }));
    // Readings whose clock was set back make no time of their own.
    assert_eq!(around(&[40, 10], 20, 30), None);
    assert_eq!(around(&[], 1, 2), None);
}

// PFC-cor.1
#[test]
fn what_stands_beside_a_flow_is_said_to_prove_no_cause() {
    assert!(BESIDE.contains("proves no cause"));
    for apart in Apart::ALL {
        for word in ["caus", "congest", "because", "led to"] {
            assert!(!apart.words().contains(word), "{apart}");
        }
    }
}
