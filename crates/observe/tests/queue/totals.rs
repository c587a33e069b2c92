//! Two totals against every pair of sets of instants that has them.

use observe::queue::totals::Totals;

// QUE-err.2
#[test]
fn the_conjunction_of_any_two_sets_is_within_the_error() {
    const T: u32 = 6;
    for q in 0..1_u32 << T {
        for p in 0..1_u32 << T {
            let count = |set: u32| u64::from(set.count_ones());
            let totals = Totals {
                duration_ns: u64::from(T),
                backlog_ns: count(q),
                closed_ns: count(p),
                error_ns: 0,
            };
            let known = totals.conjunction().unwrap();
            assert!(known.gated_ns.abs_diff(count(q & p)) <= known.error_ns, "{q:b} {p:b}");
            assert!(known.gated_ns <= known.backlog_ns && known.error_ns <= u64::from(T));
        }
    }
}

// QUE-err.2
#[test]
fn errors_of_the_totals_are_errors_of_the_conjunction() {
    const T: u64 = 8;
    for (q, p, e) in
        (0..=T).flat_map(|q| (0..=T).flat_map(move |p| (0..=3).map(move |e| (q, p, e))))
    {
        let totals = Totals { duration_ns: T, backlog_ns: q, closed_ns: p, error_ns: e };
        let known = totals.conjunction().unwrap();
        // Every pair of true totals, and both ends of what they can share.
        for true_q in q.saturating_sub(e)..=(q + e).min(T) {
            for true_p in p.saturating_sub(e)..=(p + e).min(T) {
                for shared in [(true_q + true_p).saturating_sub(T), true_q.min(true_p)] {
                    assert!(known.gated_ns.abs_diff(shared) <= known.error_ns, "{totals:?}");
                }
            }
            assert!(known.backlog_ns.abs_diff(true_q) <= known.error_ns, "{totals:?}");
        }
        assert!(known.gated_ns <= known.backlog_ns && known.error_ns <= T, "{totals:?}");
    }
}

#[test]
fn totals_that_do_not_fit_into_the_interval_make_nothing() {
    let totals =
        |backlog_ns, closed_ns| Totals { duration_ns: 5, backlog_ns, closed_ns, error_ns: 0 };
    assert!(totals(5, 5).conjunction().is_some());
    assert_eq!(totals(6, 5).conjunction(), None);
    assert_eq!(totals(5, 6).conjunction(), None);
}
