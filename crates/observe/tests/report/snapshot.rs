//! The relationships of section 5 and the flags of section 8.13.

use observe::report::{Flags, Inconsistent, Snapshot};
use observe::window::Window;

use crate::support::report;

fn last() -> Snapshot {
    report().snapshot
}

fn active() -> Snapshot {
    let mut active = last();
    active.flags = Flags::GENERATION_UNVERIFIED;
    (active.counts.abandoned, active.counts.pending) = (0, 5);
    active
}

fn changed(mut snapshot: Snapshot, change: impl FnOnce(&mut Snapshot)) -> Result<(), Inconsistent> {
    assert_eq!(snapshot.check(), Ok(()), "consistent before the change");
    change(&mut snapshot);
    snapshot.check()
}

// SEQ-5.7, SEQ-7.1
#[test]
fn skipped_is_the_sum_of_what_became_of_the_positions() {
    for (skipped, holds) in [(11, false), (12, true), (13, false)] {
        let found = changed(active(), |s| s.counts.skipped = skipped);
        let broken = Err(Inconsistent::Positions { skipped, sum: 12 });
        assert_eq!(found, if holds { Ok(()) } else { broken });
    }
    for change in [
        |s: &mut Snapshot| s.counts.filled += 1,
        |s: &mut Snapshot| s.counts.expired += 1,
        |s: &mut Snapshot| s.counts.abandoned += 1,
        |s: &mut Snapshot| s.counts.pending += 1,
    ] {
        let found = changed(active(), change);
        assert_eq!(found, Err(Inconsistent::Positions { skipped: 12, sum: 13 }));
    }
}

// SEQ-5.7, SEQ-5.4
#[test]
fn a_sum_beyond_64_bits_does_not_come_round_to_what_was_skipped() {
    let found = changed(last(), |s| {
        s.counts.skipped = 11;
        s.counts.filled = u64::MAX;
        s.counts.expired = 12 - s.counts.abandoned;
    });
    assert_eq!(found, Err(Inconsistent::Positions { skipped: 11, sum: (1 << 64) + 11 }));
    let found = changed(last(), |s| {
        s.counts.requests = 4;
        s.counts.repeated = u64::MAX;
        s.counts.unclassified_late = 1;
    });
    assert_eq!(found, Err(Inconsistent::Requests { sum: (1 << 64) + 3, requests: 4 }));
}

// SEQ-5.7
#[test]
fn pending_is_at_most_the_window_less_one() {
    for (width, holds) in [(4, false), (5, false), (6, true)] {
        let found = changed(active(), |s| s.window = Window::new(width).unwrap());
        let broken = Err(Inconsistent::Pending { pending: 5, window: width });
        assert_eq!(found, if holds { Ok(()) } else { broken });
    }
    let found = changed(active(), |s| {
        (s.counts.skipped, s.counts.pending) = (7, 0);
        s.window = Window::new(1).unwrap();
    });
    assert_eq!(found, Ok(()), "a window of one has nothing pending");
}

// SEQ-5.7
#[test]
fn filled_repeated_and_late_requests_leave_the_first_one_over() {
    for (requests, holds) in [(15, false), (16, false), (17, true), (18, true)] {
        let found = changed(active(), |s| s.counts.requests = requests);
        let broken = Err(Inconsistent::Requests { sum: 16, requests });
        assert_eq!(found, if holds { Ok(()) } else { broken });
    }
    assert_eq!(changed(active(), |s| s.counts.requests = 0), Err(Inconsistent::NoRequest));
}

// SEQ-5.7, SEQ-7.4
#[test]
fn a_final_has_nothing_pending_and_another_report_nothing_abandoned() {
    let found = changed(last(), |s| (s.counts.abandoned, s.counts.pending) = (4, 1));
    assert_eq!(found, Err(Inconsistent::PendingInFinal(1)));
    let found = changed(active(), |s| (s.counts.abandoned, s.counts.pending) = (1, 4));
    assert_eq!(found, Err(Inconsistent::AbandonedInActive(1)));
}

// SEQ-7.4, SEQ-8.1
#[test]
fn causes_stand_in_finals_only_alone_or_together_or_not_at_all() {
    for causes in (0..=0x1e_u16).step_by(2).map(Flags) {
        let generation = [Flags(0), Flags::GENERATION_UNVERIFIED];
        for flags in generation.map(|g| g.with(causes)) {
            let flags_final = flags.with(Flags::FINAL_EPOCH);
            assert_eq!(changed(last(), |s| s.flags = flags_final), Ok(()), "{flags_final:?}");
            let broken = Err(Inconsistent::CausesInActive(causes));
            let expected = if causes.is_empty() { Ok(()) } else { broken };
            assert_eq!(changed(active(), |s| s.flags = flags), expected, "{flags:?}");
        }
    }
}

// SEQ-7.5: they are for the collector to preserve and to qualify, not to refuse.
#[test]
fn flags_without_a_meaning_break_no_relationship() {
    for bit in 6..16 {
        assert_eq!(changed(active(), |s| s.flags = Flags(1 << bit)), Ok(()));
    }
}

// SEQ-8.1, SEQ-11.1
#[test]
fn the_masks_are_those_of_table_15_and_no_two_share_a_bit() {
    let masks = Flags::NAMES.map(|(mask, name)| (mask.0, name));
    let table = [
        (0x0001, "finalEpoch"),
        (0x0002, "profileViolation"),
        (0x0004, "captureDiscontinuity"),
        (0x0008, "stateExhaustion"),
        (0x0010, "serialDiscontinuity"),
        (0x0020, "generationUnverified"),
    ];
    assert_eq!(masks, table);
    assert_eq!(masks.iter().fold(0, |all, (mask, _)| all ^ mask), 0x003f);
    assert_eq!(Flags::UNASSIGNED, Flags(0xffc0));
    assert_eq!(Flags::CAUSES, Flags(0x001e));
    assert_eq!(format!("{:?}", Flags(0x8011)), "0x8011 finalEpoch serialDiscontinuity");
    assert_eq!(Flags(0xffc0).names().count(), 0);
    assert!(Flags(3).has(Flags(1)) && !Flags(1).has(Flags(3)));
}
