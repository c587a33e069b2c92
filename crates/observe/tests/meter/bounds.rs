//! Every limit of the meter, at its edge and beyond.

use observe::meter::{Cause, Limits, Meter, Settings, WhenFull};
use observe::report::Flags;

use crate::driver::{Driver, MS};

fn limited(limits: Limits) -> Driver {
    Driver::new(Settings { limits, ..Settings::default() })
}

// SEQ-10.3
#[test]
fn a_full_table_refuses_and_counts_the_new_stream_and_keeps_the_old() {
    let mut driver = limited(Limits { contexts_max: 2, ..Limits::default() });
    for n in 1..=3 {
        driver.requests(n, &[1, 2]);
    }
    assert_eq!(driver.meter.contexts(), 2);
    assert_eq!(driver.meter.counts().refused_full, 2);
    assert_eq!(driver.finish(), [(1, Cause::End, 2), (2, Cause::End, 2)]);
}

// SEQ-4.7, SEQ-10.3
#[test]
fn eviction_takes_the_quietest_with_state_exhaustion_and_never_a_disabled_stream() {
    let limits = Limits { contexts_max: 3, ..Limits::default() };
    let when_full = WhenFull::Evict;
    let mut driver = Driver::new(Settings { limits, when_full, ..Settings::default() });
    driver.violation(1);
    driver.requests(2, &[1]);
    driver.requests(3, &[1]);
    driver.requests(2, &[2]);
    driver.requests(4, &[1]);
    assert_eq!(driver.closed[0].snapshot.flags, Flags(0x0029));
    assert_eq!(driver.taken(), [(3, Cause::Evicted, 1)]);
    driver.requests(1, &[9]);
    assert_eq!(driver.meter.counts().after_violation, 1, "still known as disabled");
    driver.requests(3, &[2]);
    assert_eq!(driver.taken(), [(2, Cause::Evicted, 2)]);
    let mut rest = driver.finish();
    rest.sort_by_key(|(n, ..)| *n);
    assert_eq!(rest, [(3, Cause::End, 1), (4, Cause::End, 1)]);
}

// SEQ-10.3
#[test]
fn eviction_forgets_a_context_everywhere() {
    let limits = Limits { contexts_max: 1, ..Limits::default() };
    let when_full = WhenFull::Evict;
    let idle_ns = Some(10 * MS);
    let mut driver =
        Driver::new(Settings { limits, when_full, idle_ns, periodic: true, ..Settings::default() });
    for n in 1..=200 {
        driver.requests(n, &[1]);
        driver.gap_between(if n % 3 == 0 { n } else { n.wrapping_sub(1) });
    }
    let taken = driver.taken();
    let evicted = taken.iter().filter(|(_, cause, _)| *cause == Cause::Evicted).count();
    let faults = taken.iter().filter(|(_, cause, _)| *cause == Cause::IcrcMismatch).count();
    assert_eq!((evicted, faults), (133, 66));
}

// SEQ-10.3, SEQ-4.7
#[test]
fn label_memory_is_bounded_and_what_closes_gives_it_back() {
    let mut driver = limited(Limits { labels_octets_max: 16, ..Limits::default() });
    driver.requests(1, &[1, 3]);
    driver.requests(2, &[1, 3]);
    driver.requests(3, &[1, 3]);
    assert_eq!(driver.closed[0].snapshot.flags, Flags(0x0029));
    assert_eq!(driver.taken(), [(3, Cause::LabelMemory, 1)]);
    driver.gap();
    driver.requests(3, &[4, 6]);
    driver.requests(4, &[1, 3]);
    assert_eq!(driver.taken().len(), 3, "memory was there again");
}

// SEQ-5.4, SEQ-6.4
#[test]
fn the_last_report_id_is_kept_for_the_final_report() {
    let limits = Limits { report_id_max: 3, ..Limits::default() };
    let mut driver = Driver::new(Settings { limits, periodic: true, ..Settings::default() });
    let mut reports = Vec::new();
    for psn in 1..=5 {
        driver.requests(1, &[psn]);
        let closed = &mut driver.closed;
        driver.meter.take_changed(&mut |c| closed.push(c), |ids, snapshot| {
            ids.report_id += 1;
            reports.push((ids.report_id, snapshot.counts.requests));
        });
    }
    assert_eq!(reports, [(1, 1), (2, 2), (1, 1), (2, 2)]);
    assert_eq!(driver.closed[0].ids.report_id, 2);
    assert_eq!(driver.taken(), [(1, Cause::ReportIds, 3)]);
}

// SEQ-5.5
#[test]
fn a_snapshot_is_taken_of_what_changed_and_resets_nothing() {
    let mut driver = Driver::new(Settings { periodic: true, ..Settings::default() });
    driver.requests(1, &[1, 3]);
    driver.requests(2, &[1]);
    let taken = |driver: &mut Driver| {
        let mut reports = Vec::new();
        driver.meter.take_changed(&mut |_| {}, |_, snapshot| {
            snapshot.check().unwrap();
            reports.push((snapshot.key.qp - 1000, snapshot.counts.requests, snapshot.flags.0));
        });
        reports
    };
    assert_eq!(taken(&mut driver), [(1, 2, 0x20), (2, 1, 0x20)]);
    assert_eq!(taken(&mut driver), []);
    driver.requests(1, &[2]);
    assert_eq!(taken(&mut driver), [(1, 3, 0x20)]);
    assert_eq!(driver.finish(), [(1, Cause::End, 3), (2, Cause::End, 1)]);
}

#[test]
fn a_context_in_order_takes_at_most_256_octets() {
    const { assert!(Meter::CONTEXT_OCTETS <= 256) };
}
