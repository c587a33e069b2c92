//! What no row may be, each limit at its value and beyond.

use std::sync::Arc;

use observe::queue::row::{Fault, Known, Measurement, Method, Row};
use observe::queue::{DURATION_NS_MAX, EpochId, OFFSET_NS_MAX, Place, Priorities};

use crate::support::*;

pub fn row(interval: u64, start_ns: u64, duration_ns: u64, known: (u64, u64, u64)) -> Row {
    let (gated_ns, backlog_ns, error_ns) = known;
    let method = Method::Events;
    Row {
        place: Arc::new(Place { interface: "Ethernet1/1".into(), queue: "q3".into() }),
        epoch: epoch(0),
        interval,
        start_ns,
        duration_ns,
        wall_clock_start: None,
        priorities: priorities(&[3]),
        measurement: Measurement::Known(Known { method, gated_ns, backlog_ns, error_ns }),
    }
}

fn faults(row: &Row) -> Vec<Fault> {
    row.faults().collect()
}

// QUE-yang.1, QUE-def.1, QUE-id.3, QUE-err.2, QUE-ex.1
#[test]
fn every_relationship_is_checked_at_its_limit_and_beyond() {
    let day = DURATION_NS_MAX;
    for (good, bad, fault) in [
        (row(1, 0, 5, (0, 0, 0)), row(0, 0, 5, (0, 0, 0)), Fault::Interval),
        (row(1, 0, 1, (0, 0, 0)), row(1, 0, 0, (0, 0, 0)), Fault::Duration(0)),
        (row(1, 0, day, (0, 0, 0)), row(1, 0, day + 1, (0, 0, 0)), Fault::Duration(day + 1)),
        (
            row(1, OFFSET_NS_MAX - 5, 5, (0, 0, 0)),
            row(1, OFFSET_NS_MAX - 4, 5, (0, 0, 0)),
            Fault::End(OFFSET_NS_MAX - 4, 5),
        ),
        (
            row(1, OFFSET_NS_MAX - 1, 1, (0, 0, 0)),
            row(1, OFFSET_NS_MAX + 1, 1, (0, 0, 0)),
            Fault::Start(OFFSET_NS_MAX + 1),
        ),
        (row(1, 0, 5, (3, 3, 0)), row(1, 0, 5, (4, 3, 0)), Fault::GatedAboveBacklog(4, 3)),
        (row(1, 0, 5, (3, 5, 0)), row(1, 0, 5, (3, 6, 0)), Fault::BacklogAboveDuration(6, 5)),
        (row(1, 0, 5, (0, 0, 5)), row(1, 0, 5, (0, 0, 6)), Fault::ErrorAboveDuration(6, 5)),
    ] {
        assert_eq!(faults(&good), [], "{good:?}");
        assert_eq!(faults(&bad), [fault], "{bad:?}");
    }
}

// QUE-err.1
#[test]
fn a_period_is_positive_and_within_the_interval() {
    let sampled = |period_ns| {
        let mut row = row(1, 0, 5, (0, 0, 5));
        if let Measurement::Known(known) = &mut row.measurement {
            known.method = Method::Samples { period_ns };
        }
        faults(&row)
    };
    assert_eq!(sampled(0), [Fault::Period]);
    assert_eq!(sampled(5), []);
    assert_eq!(sampled(6), [Fault::PeriodAboveDuration(6, 5)]);
}

// QUE-id.2
#[test]
fn a_mapping_is_a_set_of_one_to_eight() {
    assert_eq!(Priorities::new([]), None);
    let twice = Priorities::new([priority(3), priority(3)]).unwrap();
    assert_eq!((twice, twice.only()), (Priorities::one(priority(3)), Some(priority(3))));
    let all = priorities(&[7, 0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((all.iter().count(), all.only()), (8, None));
    assert_eq!(priorities(&[4, 3]).to_string(), "3, 4");
}

// QUE-id.1
#[test]
fn an_epoch_id_is_a_uuid_in_either_case_and_written_in_lower_case() {
    let text = "31c38fe2-f97e-4a88-a0a7-bae9ed5d4131";
    let id = EpochId::read(text).unwrap();
    assert_eq!(id.to_string(), text);
    assert_eq!(EpochId::read(&text.to_uppercase()), Some(id));
    for bad in ["", &text[1..], &text.replace('-', "0"), &text.replace('f', "g")] {
        assert_eq!(EpochId::read(bad), None, "{bad}");
    }
    assert_eq!(EpochId::read(&format!("{text}0")), None);
    assert_eq!(EpochId::read("ü1c38fe2-f97e-4a88-a0a7-bae9ed5d413"), None);
    // Version 4 of the variant of RFC 9562.
    let random = EpochId::random([0xff; 16]).to_string();
    assert_eq!(random, "ffffffff-ffff-4fff-bfff-ffffffffffff");
}
