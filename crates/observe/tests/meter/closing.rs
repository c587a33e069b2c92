//! Each cause of closure, with the flags of its final report.

use observe::meter::{Cause, Limits, Settings, WhenFull};
use observe::provision::{Attestation, Generation, Match, Provisioning, Rule};
use observe::report::Flags;
use observe::serial::Psn;

use crate::driver::{Arrival, Driver, MS, READ, everything, stream, window};

fn rules(change: impl Fn(&mut Rule)) -> Provisioning {
    let mut rules = Rule::everything(window(8)).to_vec();
    rules.iter_mut().for_each(change);
    Provisioning::new(rules, 16).unwrap()
}

// SEQ-4.12, SEQ-4.8, SEQ-6.5
#[test]
fn the_end_closes_with_final_and_generation_unverified_and_cuts_the_times() {
    let mut driver = Driver::new(Settings::default());
    driver.time_ns = 1000 * MS + 999_999;
    driver.requests(1, &[5, 7]);
    driver.meter.finish(&mut |c| driver.closed.push(c));
    let snapshot = driver.closed[0].snapshot;
    assert_eq!(snapshot.flags.0, 0x0021);
    assert_eq!((snapshot.start_ms, snapshot.end_ms), (1000, 1001));
    assert_eq!((snapshot.counts.skipped, snapshot.counts.abandoned), (1, 1));
}

// SEQ-3.3
#[test]
fn a_violation_closes_disables_and_is_not_counted_and_later_requests_enable_nothing() {
    let mut driver = Driver::new(Settings::default());
    driver.requests(1, &[5, 6]);
    driver.violation(1);
    assert_eq!(driver.closed[0].snapshot.flags.0, 0x0023);
    driver.requests(1, &[7, 8, 9]);
    driver.violation(1);
    driver.requests(2, &[1]);
    let counts = driver.meter.counts();
    assert_eq!((counts.accounted, counts.violations, counts.after_violation), (3, 2, 3));
    assert_eq!(driver.finish(), [(1, Cause::Violation(READ), 2), (2, Cause::End, 1)]);
}

// SEQ-3.3
#[test]
fn a_violation_before_any_request_disables_without_an_epoch() {
    let mut driver = Driver::new(Settings::default());
    driver.violation(1);
    driver.requests(1, &[5, 6]);
    assert_eq!(driver.finish(), []);
}

// SEQ-3.3
#[test]
fn only_the_operators_word_or_a_higher_revision_enables_a_disabled_stream() {
    let mut driver = Driver::new(Settings::default());
    driver.violation(1);
    driver.gap();
    driver.provision(rules(|_| {}));
    driver.provision(rules(|rule| rule.window = window(9)));
    driver.requests(1, &[5]);
    assert_eq!(driver.meter.counts().after_violation, 1);
    assert!(driver.meter.reprovision(&stream(1)));
    assert!(!driver.meter.reprovision(&stream(1)), "it is enabled already");
    driver.requests(1, &[6]);
    driver.violation(1);
    driver.provision(rules(|rule| rule.revision = 1));
    driver.requests(1, &[7]);
    assert_eq!(driver.finish(), [(1, Cause::Violation(READ), 1), (1, Cause::End, 1)]);
}

// SEQ-3.3
#[test]
fn a_disabled_stream_whose_rule_goes_and_comes_back_is_still_disabled() {
    let mut driver = Driver::new(Settings::default());
    driver.violation(1);
    driver.provision(Provisioning::new(Vec::new(), 16).unwrap());
    driver.provision(rules(|_| {}));
    driver.requests(1, &[5]);
    assert_eq!(driver.finish(), []);
}

// SEQ-4.10, SEQ-5.2
#[test]
fn a_serial_discontinuity_closes_first_and_counts_the_request_once() {
    let mut driver = Driver::new(Settings::default());
    driver.requests(1, &[5, 14, 14 + (1 << 23), 15 + (1 << 23)]);
    let flags: Vec<_> = driver.closed.iter().map(|c| c.snapshot.flags.0).collect();
    assert_eq!(flags, [0x0031, 0x0031]);
    assert_eq!(driver.meter.counts().accounted, 4);
    let expected = [(1, Cause::Jump(9), 1), (1, Cause::Ambiguous, 1), (1, Cause::End, 2)];
    assert_eq!(driver.finish(), expected);
}

// SEQ-3.7, SEQ-3.8, SEQ-4.11
#[test]
fn a_capture_gap_closes_every_open_epoch_and_nothing_pending_crosses_it() {
    let mut driver = Driver::new(Settings::default());
    driver.requests(1, &[5, 7]);
    driver.requests(2, &[9]);
    driver.gap();
    assert_eq!(driver.closed[0].snapshot.flags.0, 0x0025);
    assert_eq!(driver.closed[0].snapshot.counts.abandoned, 1);
    driver.requests(1, &[6]);
    driver.gap();
    driver.gap();
    let gap = Cause::CaptureGap;
    assert_eq!(driver.finish(), [(1, gap, 2), (2, gap, 1), (1, gap, 1)]);
}

// SEQ-3.8
#[test]
fn a_fault_between_two_addresses_closes_only_their_epochs_before_and_after_it_was_first_asked() {
    let mut driver = Driver::new(Settings::default());
    driver.requests(1, &[5]);
    driver.requests(2, &[5]);
    driver.gap_between(1);
    driver.gap_between(1);
    driver.requests(1, &[6]);
    driver.requests(3, &[6]);
    driver.gap_between(3);
    driver.gap_between(1);
    driver.gap_between(9);
    let icrc = Cause::IcrcMismatch;
    assert_eq!(driver.taken(), [(1, icrc, 1), (3, icrc, 1), (1, icrc, 1)]);
    assert_eq!(driver.finish(), [(2, Cause::End, 1)]);
}

// SEQ-4.7
#[test]
fn an_epoch_closes_when_idle_for_longer_than_the_time_and_not_before() {
    let mut driver = Driver::new(Settings { idle_ns: Some(100 * MS), ..Settings::default() });
    driver.requests(1, &[5, 6]);
    let last = driver.time_ns - MS;
    driver.time_ns = last + 50 * MS;
    driver.requests(2, &[1]);
    driver.time_ns = last + 100 * MS;
    driver.requests(2, &[2]);
    assert_eq!(driver.taken(), [], "exactly the idle time is not longer");
    driver.time_ns = last + 100 * MS + 1;
    driver.requests(2, &[3]);
    assert_eq!(driver.taken(), [(1, Cause::Idle, 2)]);
    // A packet of the silent stream itself finds the old epoch closed.
    driver.time_ns += 200 * MS;
    driver.requests(2, &[4]);
    assert_eq!(driver.finish(), [(2, Cause::Idle, 3), (2, Cause::End, 1)]);
}

// SEQ-4.7
#[test]
fn idle_time_alone_closes_without_a_packet_and_closure_is_ordinary() {
    let mut driver = Driver::new(Settings { idle_ns: Some(100 * MS), ..Settings::default() });
    driver.requests(1, &[5]);
    let closed = &mut driver.closed;
    driver.meter.advance_time(2000 * MS, &mut |c| closed.push(c));
    assert_eq!(driver.closed[0].snapshot.flags, Flags(0x0021));
}

// SEQ-4.7
#[test]
fn a_change_of_window_generation_or_policy_closes_and_no_change_does_not() {
    let mut driver = Driver::new(Settings::default());
    driver.requests(1, &[5]);
    driver.provision(everything(8));
    assert_eq!(driver.taken(), []);
    driver.provision(everything(9));
    assert_eq!(driver.taken(), [(1, Cause::Window, 1)]);
    driver.requests(1, &[5, 14]);
    assert_eq!(driver.taken(), [], "the new window holds");
    driver.provision(rules(|rule| {
        rule.window = window(9);
        rule.generation = Generation::Established;
    }));
    assert_eq!(driver.taken(), [(1, Cause::Policy, 2)]);
    driver.requests(1, &[5]);
    driver.provision(Provisioning::new(Vec::new(), 16).unwrap());
    assert_eq!(driver.closed[0].snapshot.flags.0, 0x0001, "generation was established");
    driver.requests(1, &[6]);
    driver.violation(1);
    assert_eq!(driver.meter.counts().not_provisioned, 2);
    driver.provision(everything(8));
    driver.requests(1, &[7]);
    assert_eq!(driver.finish(), [(1, Cause::Policy, 1), (1, Cause::End, 1)]);
}

// SEQ-4.9, SEQ-4.7
#[test]
fn a_known_new_generation_is_never_joined_to_the_old() {
    let mut driver = Driver::new(Settings::default());
    driver.requests(1, &[5, 6]);
    let closed = &mut driver.closed;
    driver.meter.new_generation(&stream(1), &mut |c| closed.push(c));
    driver.requests(1, &[7, 8]);
    assert_eq!(driver.finish(), [(1, Cause::Generation, 2), (1, Cause::End, 2)]);
}

// SEQ-4.1, SEQ-4.2, SEQ-4.4
#[test]
fn a_stream_is_its_addresses_qp_key_and_namespace() {
    let base = stream(1);
    let mut keys = vec![base; 8];
    keys[1].qp += 1;
    keys[2].pkey = 0x7fff;
    keys[3].namespace.outer_vlan = 5;
    keys[4].namespace.inner_vlan = 5;
    keys[5].namespace.segment = 5;
    keys[6].addresses.family = wire::frame::Family::V6;
    keys[7].addresses.source = base.addresses.destination;
    let mut driver = Driver::new(Settings::default());
    for (n, key) in (0..).zip(&keys) {
        driver.arrive(*key, &[n * 1000]);
    }
    assert_eq!(driver.meter.contexts(), 8);
    assert_eq!(driver.finish().len(), 8);
}

// SEQ-3.1
#[test]
fn what_no_rule_names_is_counted_and_never_metered() {
    let exact = Rule {
        streams: Match::Exact {
            addresses: stream(1).addresses,
            qp: stream(1).qp,
            pkey: 0xffff,
            namespace: None,
        },
        window: window(8),
        attestation: Attestation::ALL,
        generation: Generation::Unverified,
        revision: 0,
    };
    let mut driver = Driver::new(Settings::default());
    driver.provision(Provisioning::new(vec![exact], 16).unwrap());
    driver.requests(2, &[1, 2]);
    driver.violation(2);
    driver.requests(1, &[1]);
    assert_eq!(driver.meter.counts().not_provisioned, 3);
    assert_eq!(driver.finish(), [(1, Cause::End, 1)]);
}

// SEQ-4.6, SEQ-10.2
#[test]
fn the_meter_of_a_new_session_remembers_nothing_of_the_one_before() {
    let mut before = Driver::new(Settings::default());
    before.requests(1, &[5, 9]);
    assert_eq!(before.finish(), [(1, Cause::End, 2)]);
    let mut after = Driver::new(Settings::default());
    after.requests(1, &[6, 10]);
    let closed = &mut after.closed;
    after.meter.finish(&mut |c| closed.push(c));
    let counts = after.closed[0].snapshot.counts;
    assert_eq!((counts.requests, counts.filled, counts.unclassified_late), (2, 0, 0));
    assert_eq!(after.closed[0].ids.epoch_id, 0, "no id was given yet");
}

#[test]
fn arrivals_that_share_a_batch_are_followed_as_if_they_came_one_by_one() {
    let mut driver = Driver::new(Settings::default());
    let psns: Vec<_> = (0..100).map(|n| n % 50).collect();
    driver.arrive(stream(1), &psns);
    let mut one_by_one = Driver::new(Settings::default());
    for psn in psns {
        one_by_one.arrive(stream(1), &[psn]);
    }
    assert_eq!(driver.finish(), one_by_one.finish());
}

/// Bursts of a few streams with everything in them that closes an epoch: jumps, half the space,
/// silence, times that go back, no room for labels, no room for contexts.
#[test]
fn bursts_are_followed_as_if_each_request_came_by_itself() {
    let settings = |idle_ns, when_full| Settings {
        idle_ns,
        when_full,
        limits: Limits { contexts_max: 3, labels_octets_max: 16, ..Limits::default() },
        ..Settings::default()
    };
    for (idle_ns, when_full) in [
        (None, WhenFull::Refuse),
        (None, WhenFull::Evict),
        (Some(3 * MS), WhenFull::Refuse),
        (Some(3 * MS), WhenFull::Evict),
    ] {
        let (mut together, mut alone) =
            (Driver::new(settings(idle_ns, when_full)), Driver::new(settings(idle_ns, when_full)));
        let arrivals = bursts(4000);
        for part in arrivals.chunks(333) {
            together.observe(part);
        }
        for arrival in &arrivals {
            alone.observe(std::slice::from_ref(arrival));
        }
        assert_eq!(together.meter.counts(), alone.meter.counts());
        assert!(together.closed.len() > 100, "the bursts close epochs");
        assert_eq!(together.closed, alone.closed);
        assert_eq!(together.finish(), alone.finish());
    }
}

fn bursts(count: usize) -> Vec<Arrival> {
    let mut state = 11_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) % n
    };
    let (mut next, mut time_ns) = ([1000_u32; 5], 1000 * MS);
    let mut arrivals = Vec::new();
    while arrivals.len() < count {
        let n = usize::try_from(below(5)).unwrap();
        for _ in 0..=below(40) {
            let psn = match below(40) {
                0 => next[n] + 3,
                1 => next[n] - 4,
                2 => next[n] + 100,
                3 => next[n] + (1 << 23) - 1,
                _ => next[n],
            };
            if psn >= next[n] {
                next[n] = psn + 1;
            }
            time_ns = match below(30) {
                0 => time_ns + 5 * MS,
                1 => time_ns - 1,
                _ => time_ns + MS / 100,
            };
            let key = stream(u8::try_from(n).unwrap());
            arrivals.push(Arrival { key, psn: Psn::new(psn), time_ns });
        }
    }
    arrivals
}
