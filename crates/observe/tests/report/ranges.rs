//! Field ranges, at their ends and one beyond.

use observe::profile::{FieldError, Shape};
use wire::ipfix::FieldSpec;

use crate::support::{V4, in_namespace, mapping, read, report};

/// The record of a report with some octets replaced.
fn with(
    shape: Shape,
    at: usize,
    octets: &[u8],
) -> Result<(u64, observe::report::Report), FieldError> {
    let mut report = report();
    if shape != V4 {
        report = in_namespace(1, 2, 0x0100_0003);
    }
    let exported = crate::support::read_back(&crate::support::exported(&[report]));
    let mut record = exported[0].2.clone();
    record[at..at + octets.len()].copy_from_slice(octets);
    read(shape, &record)
}

const TAGGED: Shape = Shape { outer_vlan: true, inner_vlan: true, segment: true, ..V4 };

/// Where a field of a shape stands.
fn at(shape: Shape, name: usize) -> usize {
    let fields: Vec<FieldSpec> = shape.template(256, &mapping()).fields;
    fields[..name].iter().map(|field| usize::from(field.length)).sum()
}

// SEQ-7.1, SEQ-4.5
#[test]
fn an_epoch_id_is_not_zero() {
    let epoch = |id: u64| with(V4, at(V4, 7), &id.to_be_bytes());
    assert_eq!(epoch(0), Err(FieldError::EpochIdZero));
    assert_eq!(epoch(1).unwrap().1.epoch_id, 1);
    assert_eq!(epoch(u64::MAX).unwrap().1.epoch_id, u64::MAX);
}

// SEQ-7.1, SEQ-6.4
#[test]
fn a_report_id_begins_at_one() {
    let report = |id: u64| with(V4, at(V4, 8), &id.to_be_bytes());
    assert_eq!(report(0), Err(FieldError::ReportIdZero));
    assert_eq!(report(1).unwrap().1.report_id, 1);
    assert_eq!(report(u64::MAX).unwrap().1.report_id, u64::MAX);
}

// SEQ-7.1, SEQ-5.1
#[test]
fn a_window_has_1_to_2_22_positions() {
    let window = |w: u32| with(V4, at(V4, 9), &w.to_be_bytes()).map(|r| r.1.snapshot.window.get());
    for good in [1, 2, (1 << 22) - 1, 1 << 22] {
        assert_eq!(window(good), Ok(good));
    }
    for bad in [0, (1 << 22) + 1, u32::MAX] {
        assert_eq!(window(bad), Err(FieldError::Window(bad.into())));
    }
}

// SEQ-7.1, SEQ-6.10
#[test]
fn the_upper_eight_bits_of_a_queue_pair_are_zero() {
    let qp = |qp: u32| with(V4, at(V4, 3), &qp.to_be_bytes()).map(|r| r.1.snapshot.key.qp);
    for good in [0, 1, 0x00ff_fffe, 0x00ff_ffff] {
        assert_eq!(qp(good), Ok(good));
    }
    for bad in [0x0100_0000, 0x8000_0001, u32::MAX] {
        assert_eq!(qp(bad), Err(FieldError::QueuePair(bad.into())));
    }
}

// SEQ-7.1
#[test]
fn a_vlan_has_twelve_bits_inside_and_outside() {
    for (field, inner) in [(19, false), (20, true)] {
        let vlan = |vlan: u16| {
            let found = with(TAGGED, at(TAGGED, field), &vlan.to_be_bytes());
            found
                .map(|(_, r)| r.snapshot.key.namespace)
                .map(|n| if inner { n.inner_vlan } else { n.outer_vlan })
        };
        for good in [0, 1, 4094, 4095] {
            assert_eq!(vlan(good), Ok(good));
        }
        for bad in [4096, 0x1001, u16::MAX] {
            assert_eq!(vlan(bad), Err(FieldError::Vlan(bad.into())));
        }
    }
}

// SEQ-7.1
#[test]
fn a_segment_has_its_kind_in_the_first_octet_and_its_number_in_the_last_three() {
    let segment = |id: u64| {
        let found = with(TAGGED, at(TAGGED, 21), &id.to_be_bytes());
        found.map(|(_, r)| r.snapshot.key.namespace.segment)
    };
    assert_eq!(segment(0x0100_0000_0000_0005), Ok(0x0100_0005));
    assert_eq!(segment(0xff00_0000_00ff_ffff), Ok(0xffff_ffff));
    assert_eq!(segment(0), Ok(0));
    for bit in 24..56 {
        let bad = 0x0100_0000_0000_0005 | 1 << bit;
        assert_eq!(segment(bad), Err(FieldError::Segment(bad)), "bit {bit}");
    }
}

// SEQ-7.1, SEQ-7.5: what is no range is no reason to refuse a record.
#[test]
fn every_value_of_the_other_fields_is_read_as_it_is() {
    for (field, length) in [(4, 2), (5, 8), (6, 8), (10, 2)].into_iter().chain([
        (11, 8),
        (12, 8),
        (13, 8),
        (14, 8),
        (15, 4),
        (16, 8),
        (17, 8),
        (18, 8),
    ]) {
        for octet in [0x00, 0xff] {
            let found = with(V4, at(V4, field), &vec![octet; length]);
            assert!(found.is_ok(), "field {field} of {octet:#x}: {found:?}");
        }
    }
}
