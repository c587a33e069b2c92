//! Whatever is written is read back the same.

use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use proptest::prelude::*;
use wire::frame::{Addresses, Namespace};

use crate::support::{exported, read_back};

fn key() -> impl Strategy<Value = StreamKey> {
    let addresses = prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(from, to)| Addresses::v4(from, to)),
        any::<([u8; 16], [u8; 16])>().prop_map(|(from, to)| Addresses::v6(from, to)),
    ];
    let vlan = || prop_oneof![Just(0_u16), 1..=4095_u16];
    let namespace = (vlan(), vlan(), prop_oneof![Just(0), any::<u32>()]);
    (addresses, namespace, 0..1_u32 << 24, any::<u16>()).prop_map(|(addresses, n, qp, pkey)| {
        let (outer_vlan, inner_vlan, segment) = n;
        let namespace = Namespace { outer_vlan, inner_vlan, segment };
        StreamKey { addresses, namespace, qp, pkey }
    })
}

/// Any numbers: whether they are consistent is not for reading and writing.
fn report() -> impl Strategy<Value = Report> {
    let id = || prop_oneof![Just(1), Just(u64::MAX), 1..=u64::MAX];
    let counts = (any::<[u64; 7]>(), any::<u32>());
    let snapshot = (key(), 1..=1_u32 << 22, any::<u16>(), any::<(u64, u64)>(), counts);
    (id(), id(), snapshot).prop_map(|(epoch_id, report_id, snapshot)| {
        let (key, width, flags, (start_ms, end_ms), (n, pending)) = snapshot;
        let [skipped, filled, expired, abandoned, repeated, requests, unclassified_late] = n;
        let counts = Counts {
            skipped,
            filled,
            expired,
            abandoned,
            pending,
            repeated,
            requests,
            unclassified_late,
        };
        let (window, flags) = (Window::new(width).unwrap(), Flags(flags));
        let snapshot = Snapshot { key, window, flags, start_ms, end_ms, counts };
        Report { epoch_id, report_id, snapshot, other_keys: 0 }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    // SEQ-6.2, SEQ-6.3, SEQ-7.5
    #[test]
    fn any_reports_are_read_back_as_they_were_written(
        reports in prop::collection::vec(report(), 1..20)
    ) {
        let found: Vec<_> = read_back(&exported(&reports));
        prop_assert!(found.iter().all(|(point, ..)| *point == 7));
        let found: Vec<_> = found.into_iter().map(|(_, report, _)| report).collect();
        prop_assert_eq!(found, reports);
    }
}
