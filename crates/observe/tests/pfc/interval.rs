//! Exact only where everything is known; otherwise unknown, with the reason.

use observe::pfc::interval::{Interval, Known, Pace, Rate, Reason, Sighting, Tick};
use observe::pfc::{Direction, Priority, Scope};

use crate::support::{scope, sighting};

fn exact(a: &Sighting, b: &Sighting) -> u64 {
    match Interval::between(a, b) {
        Interval::Exact(frames) => frames.count(),
        Interval::Unknown(reason) => panic!("{reason}"),
    }
}

#[track_caller]
fn unknown(a: &Sighting, b: &Sighting, why: Reason) {
    let interval = Interval::between(a, b);
    assert_eq!(interval, Interval::Unknown(why));
    // PFC-sem.2
    assert_eq!(interval.rate(), Rate::Unknown(why));
}

// PFC-sem.3, PFC-sem.1
#[test]
fn with_everything_known_it_is_later_minus_earlier_modulo_2_to_the_64() {
    assert_eq!(exact(&sighting(0, 10), &sighting(1000, 17)), 7);
    assert_eq!(exact(&sighting(0, 10), &sighting(1000, 10)), 0);
    assert_eq!(exact(&sighting(0, u64::MAX), &sighting(1000, 0)), 1);
    assert_eq!(exact(&sighting(0, u64::MAX - 4), &sighting(1000, 6)), 11);
}

// PFC-sem.2
#[test]
fn the_fields_of_a_record_alone_are_never_enough() {
    for (before, after) in [(10, 17), (17, 10), (0, 0), (u64::MAX, 0)] {
        let mut pair = [sighting(0, before), sighting(1000, after)];
        for sighting in &mut pair {
            sighting.known = Known::default();
        }
        unknown(&pair[0], &pair[1], Reason::InstanceUnknown);
    }
}

// PFC-sem.2: on either side, each by itself.
#[test]
fn whatever_is_not_known_on_one_side_makes_it_unknown() {
    type Forget = fn(&mut Known);
    let all: [(Forget, Reason); 4] = [
        (|known| known.instance = None, Reason::InstanceUnknown),
        (|known| known.run = None, Reason::ResetUnknown),
        (|known| known.tick = None, Reason::TimeUnknown),
        (|known| known.pace = None, Reason::PaceUnknown),
    ];
    for (forget, why) in all {
        for side in 0..2 {
            let mut pair = [sighting(0, 1), sighting(1000, 2)];
            forget(&mut pair[side].known);
            unknown(&pair[0], &pair[1], why);
        }
    }
}

// PFC-sem.2
#[test]
fn another_instance_another_run_and_another_clock_are_each_told() {
    let (a, b) = (sighting(0, 1), sighting(1000, 2));
    let mut other = b;
    other.known.instance = Some(2);
    unknown(&a, &other, Reason::InstanceReplaced);
    let mut other = b;
    other.known.run = Some(2);
    unknown(&a, &other, Reason::OtherRun);
    let mut other = b;
    other.known.tick = Some(Tick { clock: 2, ms: 1000 });
    unknown(&a, &other, Reason::ClockStepped);
}

// PFC-id.1, PFC-sem.2
#[test]
fn readings_of_two_scopes_have_nothing_between_them() {
    let changes: [fn(&mut Scope); 5] = [
        |scope| scope.domain += 1,
        |scope| scope.point += 1,
        |scope| scope.interface += 1,
        |scope| scope.direction = Direction::Transmitted,
        |scope| scope.priority = Priority::new(4).unwrap(),
    ];
    for change in changes {
        let mut other = sighting(1000, 2);
        change(&mut other.reading.scope);
        unknown(&sighting(0, 1), &other, Reason::OtherScope);
    }
}

#[test]
fn a_second_reading_that_is_not_later_gives_nothing() {
    unknown(&sighting(1000, 1), &sighting(999, 2), Reason::NotLater);
    unknown(&sighting(1000, 1), &sighting(1000, 1), Reason::NotLater);
    assert_eq!(exact(&sighting(1000, 1), &sighting(1001, 2)), 1);
}

// PFC-sem.2: fewer than 2^64 increments, so exactly 2^64 are too many.
#[test]
fn the_time_in_which_a_counter_can_go_round_is_the_limit() {
    // 2^54 in each of 1000 s and the millisecond that readings may lie further apart: n + 1 ms
    // hold 2^54 * (n + 1) / 1000 increments, and 2^64 of them are reached at n + 1 = 1_024_000.
    let pace = Pace::per_second(1 << 54);
    let at = |ms| {
        let mut sighting = sighting(ms, 1);
        sighting.known.pace = pace;
        sighting
    };
    assert_eq!(exact(&at(0), &at(1_023_998)), 0);
    unknown(&at(0), &at(1_023_999), Reason::TooLong);
    unknown(&at(0), &at(1_024_000), Reason::TooLong);
    unknown(&at(0), &at(u64::MAX), Reason::TooLong);
}

#[test]
fn a_decrease_that_nobody_explains_is_more_than_the_counter_can_count() {
    unknown(&sighting(0, 10), &sighting(1000, 9), Reason::TooMany);
    // A million a second, in at most 1001 ms.
    assert_eq!(exact(&sighting(0, 0), &sighting(1000, 1_001_000)), 1_001_000);
    unknown(&sighting(0, 0), &sighting(1000, 1_001_001), Reason::TooMany);
}

#[test]
fn the_faster_of_both_paces_counts() {
    for (a, b) in [(1, 1000), (1000, 1)] {
        let mut pair = [sighting(0, 0), sighting(1000, 900)];
        pair[0].known.pace = Pace::per_second(a);
        pair[1].known.pace = Pace::per_second(b);
        assert_eq!(exact(&pair[0], &pair[1]), 900);
    }
}

#[test]
fn a_pace_is_that_of_the_shortest_frames_and_never_zero() {
    assert_eq!(Pace::per_second(0), None);
    assert_eq!(Pace::of_link(0), None);
    assert_eq!(Pace::of_link(576), Pace::per_second(1));
    assert_eq!(Pace::of_link(577), Pace::per_second(2));
    assert_eq!(Pace::of_link(400_000_000_000), Pace::per_second(694_444_445));
    let fastest = Pace::per_second(u64::MAX).unwrap();
    assert!(fastest.increments_max(u64::MAX) > u128::from(u64::MAX), "and nothing overflows");
}

// PFC-sem.2, PFC-count.3: a rate is of one scope, and of the time on the clock that is never set.
#[test]
fn a_rate_is_frames_over_the_time_between() {
    let interval = Interval::between(&sighting(500, 10), &sighting(3000, 17));
    let Interval::Exact(frames) = interval else { panic!("{interval:?}") };
    assert_eq!((frames.scope(), frames.count(), frames.elapsed_ms()), (scope(), 7, 2500));
    let Rate::Average(rate) = interval.rate() else { panic!("{interval:?}") };
    assert_eq!(rate.scope(), scope());
    assert!((rate.get() - 2.8).abs() < 1e-12, "{}", rate.get());
    // The readings were less than a millisecond farther apart, or nearer, than their times.
    let bounds = (rate.least() * 2.501, rate.most().map(|most| most * 2.499));
    assert!((bounds.0 - 7.0).abs() < 1e-12, "{bounds:?}");
    assert!((bounds.1.unwrap() - 7.0).abs() < 1e-12, "{bounds:?}");
    let next = Interval::between(&sighting(0, 0), &sighting(1, 3)).rate();
    let Rate::Average(next) = next else { panic!("{next:?}") };
    assert_eq!((next.get(), next.least(), next.most()), (3000.0, 1500.0, None));
    let mut stepped = sighting(3000, 17);
    stepped.reading.time_ms += 3_600_000;
    assert_eq!(Interval::between(&sighting(500, 10), &stepped), interval);
}

#[test]
fn no_two_reasons_have_the_same_words() {
    use Reason as R;
    let all = [
        R::NoEarlier,
        R::NotKept,
        R::OtherScope,
        R::InstanceUnknown,
        R::InstanceReplaced,
        R::ResetUnknown,
        R::OtherRun,
        R::TimeUnknown,
        R::ClockStepped,
        R::NotLater,
        R::PaceUnknown,
        R::TooLong,
        R::TooMany,
        R::Broken,
    ];
    let words: std::collections::BTreeSet<_> = all.iter().map(|reason| reason.words()).collect();
    assert_eq!(words.len(), all.len());
}

#[test]
fn a_priority_is_an_index_from_0_to_7() {
    // PFC-id.3
    assert_eq!(Priority::ALL.map(Priority::get), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(Priority::new(7), Some(Priority::ALL[7]));
    assert_eq!(Priority::new(8), None);
    assert_eq!(Priority::new(255), None);
}
