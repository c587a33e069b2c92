//! Octets beside each construct of the export side, both ways.

use observe::export::{Exporter, Numbering};
use observe::meter::EpochIds;
use observe::profile::{Shape, segment_id};
use observe::report::Report;
use wire::element::{AbstractType, DraftElement, ElementId, Mapping, Registry};
use wire::frame::Family;
use wire::ipfix::{EncodeError, Event, FlowKeys, TemplateKind};

use crate::support::{V4, decoded, exported, in_namespace, mapping, read_back, report, v6};

/// From the queue pair on, the same in both families.
const NUMBERS: [u8; 104] = [
    0x00, 0x12, 0x34, 0x56, // rdmaDestinationQP
    0xff, 0xee, // rdmaPartitionKey
    0x00, 0x00, 0x01, 0xa3, 0x18, 0x5c, 0x50, 0x00, // flowStartMilliseconds
    0x00, 0x00, 0x01, 0xa3, 0x18, 0x5c, 0x50, 0xfa, // flowEndMilliseconds
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // rdmaSequenceEpochId
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, // rdmaSequenceReportId
    0x00, 0x00, 0x04, 0x00, // rdmaSequenceWindow
    0x00, 0x31, // rdmaSequenceFlags
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, // skippedPsnTotalCount
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, // filledPsnTotalCount
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, // expiredPsnTotalCount
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, // abandonedPsnTotalCount
    0x00, 0x00, 0x00, 0x00, // pendingPsnCount
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, // repeatedPsnTotalCount
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xe8, // requestPacketTotalCount
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, // unclassifiedLatePacketTotalCount
];
const POINT: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 7];

/// Written as these octets, and read back from them.
fn is(report: &Report, octets: &[&[u8]]) {
    let octets = octets.concat();
    let found = read_back(&exported(std::slice::from_ref(report)));
    assert_eq!(found, [(7, *report, octets.clone())]);
    let read = crate::support::read(Shape::of(&report.snapshot.key), &octets);
    assert_eq!(read, Ok((7, *report)));
}

// SEQ-6.9, SEQ-6.2, SEQ-6.3, SEQ-6.10, SEQ-8.1: the flags in network order.
#[test]
fn an_ipv4_record_has_120_octets() {
    let addresses = [10, 0, 0, 1, 10, 0, 0, 2];
    assert_eq!(POINT.len() + addresses.len() + NUMBERS.len(), 120);
    is(&report(), &[&POINT, &addresses, &NUMBERS]);
}

// SEQ-6.9, SEQ-6.2
#[test]
fn an_ipv6_record_has_144_octets() {
    let mut addresses = [0; 32];
    for (at, last) in [(0, 1), (16, 2)] {
        addresses[at..at + 4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
        addresses[at + 15] = last;
    }
    assert_eq!(POINT.len() + addresses.len() + NUMBERS.len(), 144);
    is(&v6(), &[&POINT, &addresses, &NUMBERS]);
}

// SEQ-4.1, SEQ-4.3, SEQ-6.2
#[test]
fn namespace_keys_stand_behind_the_nineteen_fields() {
    let addresses = [10, 0, 0, 1, 10, 0, 0, 2];
    let start: &[u8] = &[POINT, addresses].concat();
    is(&in_namespace(100, 0, 0), &[start, &NUMBERS, &[0x00, 0x64]]);
    is(&in_namespace(100, 7, 0), &[start, &NUMBERS, &[0x00, 0x64, 0x00, 0x07]]);
    is(&in_namespace(0, 7, 0), &[start, &NUMBERS, &[0x00, 0x07]]);
    let vxlan = [0x01, 0, 0, 0, 0, 0x12, 0x34, 0x56];
    is(&in_namespace(0, 0, 0x0112_3456), &[start, &NUMBERS, &vxlan]);
    is(&in_namespace(4095, 1, 0x0112_3456), &[start, &NUMBERS, &[0x0f, 0xff, 0, 1], &vxlan]);
    assert_eq!(segment_id(0x8000_0001), 0x8000_0000_0000_0001);
}

/// Field Specifiers of Table 2: enterprise elements with their number, standard ones without.
fn table_2(addresses: [(u16, u16); 2]) -> Vec<u8> {
    let enterprise = |id: u16, length: u16| {
        let mut octets = (0x8000 | id).to_be_bytes().to_vec();
        octets.extend(length.to_be_bytes());
        octets.extend(32473_u32.to_be_bytes());
        octets
    };
    let standard = |(id, length): (u16, u16)| [id.to_be_bytes(), length.to_be_bytes()].concat();
    let mut octets = standard((138, 8));
    octets.extend(addresses.map(standard).concat());
    octets.extend(enterprise(21, 4));
    octets.extend(enterprise(22, 2));
    octets.extend(standard((152, 8)));
    octets.extend(standard((153, 8)));
    for (id, length) in [
        (1, 8),
        (2, 8),
        (3, 4),
        (4, 2),
        (5, 8),
        (6, 8),
        (7, 8),
        (8, 8),
        (9, 4),
        (10, 8),
        (11, 8),
        (12, 8),
    ] {
        octets.extend(enterprise(id, length));
    }
    octets
}

fn template_octets(shape: Shape) -> Vec<u8> {
    let mut encoder = wire::ipfix::Encoder::new(65535).unwrap();
    let mut out = Vec::new();
    encoder.writer(1, 0, &mut out).template(&shape.template(256, &mapping())).unwrap();
    out.split_off(16)
}

// SEQ-6.2, SEQ-6.8: each field once; 14 of the 19 under the enterprise number, 4 octets more each.
#[test]
fn the_template_sets_of_both_families() {
    let v4 = template_octets(V4);
    let head = [0, 2, 0, 140, 1, 0, 0, 19];
    assert_eq!(v4, [&head[..], &table_2([(8, 4), (12, 4)])].concat());
    assert_eq!(v4.len(), 84 + 14 * 4);
    let v6 = template_octets(Shape { family: Family::V6, ..V4 });
    assert_eq!(v6, [&head[..], &table_2([(27, 16), (28, 16)])].concat());
}

// SEQ-6.2, SEQ-4.3
#[test]
fn the_template_set_with_all_namespace_keys() {
    let all = template_octets(Shape { outer_vlan: true, inner_vlan: true, segment: true, ..V4 });
    let keys = [0, 243, 0, 2, 0, 245, 0, 2, 0x01, 0x5f, 0, 8];
    let head = [0, 2, 0, 152, 1, 0, 0, 22];
    assert_eq!(all, [&head[..], &table_2([(8, 4), (12, 4)]), &keys].concat());
}

// SEQ-4.3
#[test]
fn every_shape_has_a_number_of_its_own() {
    let mut numbers = std::collections::BTreeSet::new();
    for bits in 0..16_u8 {
        let family = if bits & 1 == 0 { Family::V4 } else { Family::V6 };
        let [outer_vlan, inner_vlan, segment] = [2, 4, 8].map(|bit| bits & bit != 0);
        numbers.insert(Shape { family, outer_vlan, inner_vlan, segment }.number());
    }
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
}

// SEQ-6.6, SEQ-4.1
#[test]
fn flow_keys_name_the_epoch_and_not_the_report() {
    let indicators = |reports: &[Report]| {
        let mut found = Vec::new();
        decoded(&exported(reports), &mut |event| {
            if let Event::Data(set) = event {
                found.extend(set.records.filter_map(|r| FlowKeys::read(&r)));
            }
        });
        found
    };
    // Point, addresses, queue pair, partition key: fields 0 to 4; epoch id: field 7.
    let base = 0b1001_1111;
    let plain = FlowKeys { template: 256, indicator: base };
    assert_eq!(indicators(&[report(), report()]), [plain], "once, whatever is sent");
    assert_eq!(indicators(&[v6()]), [FlowKeys { template: 257, indicator: base }]);
    let all = FlowKeys { template: 270, indicator: base | 0b111 << 19 };
    assert_eq!(indicators(&[in_namespace(1, 2, 3)]), [all]);
    let keys = V4.flow_keys(&mapping());
    assert!(keys.contains(&mapping().id(DraftElement::RdmaSequenceEpochId)));
    assert!(!keys.contains(&mapping().id(DraftElement::RdmaSequenceReportId)));
}

// SEQ-6.6, SEQ-6.2: a collector can read what it gets from the first record on.
#[test]
fn template_and_flow_keys_come_before_the_first_record_of_a_shape() {
    let mut order = Vec::new();
    decoded(&exported(&[report(), v6(), report()]), &mut |event| match event {
        Event::Template { layout, .. } if layout.kind() == TemplateKind::Template => {
            order.push(("template", layout.id()));
        }
        Event::Data(set) if set.layout.id() == 300 => {
            let keys = set.records.filter_map(|r| FlowKeys::read(&r));
            order.extend(keys.map(|keys| ("keys", keys.template)));
        }
        Event::Data(set) if set.layout.id() < 300 => order.push(("data", set.layout.id())),
        _ => {}
    });
    let expected = [
        ("template", 256),
        ("keys", 256),
        ("data", 256),
        ("template", 257),
        ("keys", 257),
        ("data", 257),
        ("data", 256),
    ];
    assert_eq!(order, expected);
}

// SEQ-8.1, SEQ-6.8: any collector learns our elements by their names, types and ranges.
#[test]
fn type_records_describe_every_element_of_the_drafts() {
    let mapping = Mapping::new(4711).unwrap();
    let mut exporter = Exporter::new(mapping, 5, 7, 65535).unwrap();
    let mut out = Vec::new();
    exporter.begin(0, &mut out).unwrap();
    // Somebody who has never heard of that enterprise number.
    let mut learned = Vec::new();
    assert_eq!(
        decoded(&out, &mut |event| {
            if let Event::TypeInformation(element) = event {
                learned.push(element.clone());
            }
        }),
        1
    );
    learned.sort_by_key(|element| element.id.id);
    let ours = DraftElement::ALL[..16].iter().map(|&draft| {
        let mut element = draft.element(mapping.id(draft));
        // Where the draft has no range, that of the type.
        let largest = match element.abstract_type {
            AbstractType::Unsigned8 => u8::MAX.into(),
            AbstractType::Unsigned16 => u16::MAX.into(),
            AbstractType::Unsigned32 => u32::MAX.into(),
            _ => u64::MAX,
        };
        element.range.get_or_insert((0, largest));
        element
    });
    // What is ours and no draft's is not among them.
    assert_eq!(learned, ours.collect::<Vec<_>>());
    assert!(learned.iter().all(|e| e.id.pen == 4711));
    let registry = Registry::new(Mapping::default());
    assert!(registry.get(ElementId { pen: 4711, id: 1 }).is_none(), "it was not known before");
}

// SEQ-6.3, SEQ-6.1
#[test]
fn messages_split_where_they_are_full_and_nothing_is_torn() {
    let reports: Vec<_> = (1..=50)
        .map(|id| Report { report_id: id, ..if id % 7 == 0 { v6() } else { report() } })
        .collect();
    for message_max in [164, 165, 200, 259, 260, 261, 380, 1400] {
        let mut exporter = Exporter::new(mapping(), 5, 7, message_max).unwrap();
        let mut out = Vec::new();
        exporter.begin(0, &mut out).unwrap();
        exporter.reports(&reports, 0, &mut out).unwrap();
        let mut rest = &out[..];
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            assert!(length <= message_max, "{length} of {message_max}");
            rest = &rest[length..];
        }
        let found: Vec<_> = read_back(&out).into_iter().map(|(_, report, _)| report).collect();
        assert_eq!(found, reports, "messages of {message_max}");
        decoded(&out, &mut |event| assert!(!matches!(event, Event::SequenceGap(_))));
    }
}

#[test]
fn a_message_too_small_for_the_template_is_refused_before_anything_is_written() {
    // Message and set headers, and a Template Record of 136 octets.
    for (message_max, fits) in [(155, false), (156, true)] {
        let mut exporter = Exporter::new(mapping(), 5, 7, message_max).unwrap();
        let mut begin = Vec::new();
        exporter.begin(0, &mut begin).unwrap();
        let mut out = Vec::new();
        let written = exporter.reports(&[report()], 0, &mut out);
        if fits {
            assert_eq!(written, Ok(()));
        } else {
            assert_eq!(written, Err(EncodeError::TooLong { found: 136, max: 135 }));
            assert!(out.is_empty());
        }
    }
}

// SEQ-4.5, SEQ-6.4
#[test]
fn epochs_are_numbered_when_first_serialised_and_reports_within_each() {
    let mut numbering = Numbering::default();
    let (mut a, mut b) = (EpochIds::default(), EpochIds::default());
    let snapshot = report().snapshot;
    let mut number = |ids: &mut EpochIds| {
        let report = numbering.number(ids, snapshot);
        assert_eq!((ids.epoch_id, ids.report_id), (report.epoch_id, report.report_id));
        (report.epoch_id, report.report_id)
    };
    assert_eq!(number(&mut b), (1, 1));
    assert_eq!(number(&mut a), (2, 1));
    assert_eq!(number(&mut b), (1, 2));
    assert_eq!(number(&mut EpochIds::default()), (3, 1));
    assert_eq!(number(&mut a), (2, 2));
}

// SEQ-6.4
#[test]
#[should_panic(expected = "the meter keeps the last report id")]
fn a_report_id_never_wraps() {
    let mut ids = EpochIds { epoch_id: 1, report_id: u64::MAX };
    Numbering::default().number(&mut ids, report().snapshot);
}

// SEQ-5.7
#[test]
#[should_panic(expected = "our own accounting")]
fn a_snapshot_that_does_not_add_up_is_not_numbered() {
    let mut snapshot = report().snapshot;
    snapshot.counts.filled += 1;
    Numbering::default().number(&mut EpochIds::default(), snapshot);
}
