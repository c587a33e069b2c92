//! Octets beside each construct, both ways.

use wire::element::standard::{OBSERVATION_POINT_ID, SOURCE_IPV4_ADDRESS, TEMPLATE_ID};
use wire::element::{DraftElement, Element, ElementId, Mapping, Registry, VARIABLE};
use wire::ipfix::{
    EncodeError, Encoder, Event, FieldSpec, FlowKeys, Layout, MESSAGE_MAX, TemplateKind,
    TemplateSpec, Written, flow_keys_template, type_information_template,
};

use crate::seen::{Seen, feed, message, session, set};

const OCTETS: ElementId = ElementId::iana(313); // ipHeaderPacketSection, octetArray
const NAME: ElementId = ElementId::iana(82); // interfaceName, string

/// One Template, one Options Template with a foreign scope, data of both.
const BOTH: &[u8] = &[
    0, 10, 0, 94, // version 10, 94 octets
    0x65, 0x00, 0x00, 0x00, // export time
    0x00, 0x00, 0x00, 0x05, // sequence number 5
    0x00, 0x00, 0x00, 0x07, // observation domain 7
    //
    0, 2, 0, 20, // Template Set, 20 octets
    0x01, 0x00, 0x00, 0x02, // template 256, 2 fields
    0x00, 0x08, 0x00, 0x04, // sourceIPv4Address, 4 octets
    0x80, 0x15, 0x00, 0x03, 0x00, 0x00, 0x7e, 0xd9, // 32473/21 rdmaDestinationQP, 3 octets
    //
    0, 3, 0, 22, // Options Template Set, 22 octets
    0x01, 0x01, 0x00, 0x02, 0x00, 0x01, // options template 257, 2 fields, 1 of them scope
    0x80, 0x05, 0x00, 0x02, 0x00, 0x00, 0x00, 0x09, // 9/5, 2 octets
    0x00, 0x52, 0xff, 0xff, // interfaceName, variable length
    //
    1, 0, 0, 18, // Data Set of 256, 18 octets
    10, 0, 0, 1, 0x00, 0x00, 0x11, // a record
    10, 0, 0, 2, 0x00, 0x00, 0x12, // another
    //
    1, 1, 0, 18, // Data Set of 257, 18 octets
    0xab, 0xcd, 4, b'e', b't', b'h', b'0', // a record
    0x00, 0x00, 4, b'e', b't', b'h', b'1', // another
];

fn both_specs() -> [TemplateSpec; 2] {
    [
        TemplateSpec {
            id: 256,
            scope_count: 0,
            fields: vec![
                FieldSpec::new(SOURCE_IPV4_ADDRESS, 4),
                FieldSpec::new(ElementId { pen: 32473, id: 21 }, 3),
            ],
        },
        TemplateSpec {
            id: 257,
            scope_count: 1,
            fields: vec![
                FieldSpec::new(ElementId { pen: 9, id: 5 }, 2),
                FieldSpec::new(NAME, VARIABLE),
            ],
        },
    ]
}

#[test]
fn a_message_with_both_kinds_of_template_and_their_data_is_read() {
    let mut decoder = session();
    let mut values = Vec::new();
    let mut specs = Vec::new();
    let header = decoder
        .message(BOTH, &mut |event| match event {
            Event::Template { layout, .. } => specs.push(layout.spec().clone()),
            Event::Data(set) => {
                for record in set.records {
                    let all: Vec<_> = record
                        .values(set.registry)
                        .map(|(field, element, value)| {
                            format!(
                                "{}={value:?}",
                                element.map_or(field.id.to_string(), |e| e.name.to_string())
                            )
                        })
                        .collect();
                    values.push(all.join(" "));
                }
            }
            other => panic!("{other:?}"),
        })
        .expect("read");
    assert_eq!((header.domain, header.sequence, header.export_time), (7, 5, 0x6500_0000));
    assert_eq!(specs, both_specs());
    assert_eq!(
        values,
        [
            "sourceIPv4Address=Ipv4([10, 0, 0, 1]) rdmaDestinationQP=Unsigned(17)",
            "sourceIPv4Address=Ipv4([10, 0, 0, 2]) rdmaDestinationQP=Unsigned(18)",
            "e9id5=Octets([171, 205]) interfaceName=Text(\"eth0\")",
            "e9id5=Octets([0, 0]) interfaceName=Text(\"eth1\")",
        ]
    );
}

#[test]
fn a_message_with_both_kinds_of_template_and_their_data_is_written() {
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    encoder.set_sequence(7, 5);
    let mut out = Vec::new();
    let mut writer = encoder.writer(7, 0x6500_0000, &mut out);
    let [plain, options] = both_specs();
    writer.template(&plain).expect("written");
    writer.template(&options).expect("written");
    for last in [1u8, 2] {
        writer
            .record(256, |r| {
                r.octets(&[10, 0, 0, last])?;
                r.unsigned(16 + u64::from(last))
            })
            .expect("written");
    }
    for (scope, name) in [([0xab, 0xcd], "eth0"), ([0, 0], "eth1")] {
        writer
            .record(257, |r| {
                r.octets(&scope)?;
                r.octets(name.as_bytes())
            })
            .expect("written");
    }
    assert_eq!(writer.finish(), Written { messages: 1, records: 4 });
    assert_eq!(out, BOTH);
    assert_eq!(encoder.sequence(7), 9);
}

#[test]
fn withdrawals_of_one_and_of_all_are_written_and_read() {
    // Options templates too take four octets, without a scope count.
    let expected = [
        set(2, &[1, 0, 0, 0]),             // template 256, no fields
        set(3, &[1, 1, 0, 0, 0, 3, 0, 0]), // options template 257; then all of them
        set(2, &[0, 2, 0, 0]),             // all templates
    ];
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut defined = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut defined);
    for spec in both_specs() {
        writer.template(&spec).expect("written");
    }
    writer.finish();
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.withdraw(256).expect("known");
    writer.withdraw(257).expect("known");
    writer.withdraw_all(TemplateKind::Options).expect("written");
    writer.withdraw_all(TemplateKind::Template).expect("written");
    assert_eq!(writer.withdraw(256), Err(EncodeError::UnknownTemplate { template: 256 }));
    writer.finish();
    assert_eq!(out, message(0, &expected));

    let mut decoder = session();
    feed(&mut decoder, &defined).expect("read");
    assert_eq!(
        feed(&mut decoder, &out).expect("read"),
        [
            Seen::Withdrawn(TemplateKind::Template, 256),
            Seen::Withdrawn(TemplateKind::Options, 257),
            Seen::AllWithdrawn(TemplateKind::Options),
            Seen::AllWithdrawn(TemplateKind::Template),
        ]
    );
    assert_eq!(decoder.templates(), 0);
}

#[test]
fn variable_lengths_of_0_254_255_and_65_octets_more_take_the_shorter_form_and_come_back() {
    // netgauze 281, 360: several in a record, in both forms.
    let spec = TemplateSpec {
        id: 300,
        scope_count: 0,
        fields: vec![
            FieldSpec::new(OCTETS, VARIABLE),
            FieldSpec::new(ElementId::iana(4), 1),
            FieldSpec::new(NAME, VARIABLE),
            FieldSpec::new(OBSERVATION_POINT_ID, 8),
        ],
    };
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&spec).expect("written");
    let lengths = [(0, 254), (254, 255), (255, 0), (320, 1)];
    for (first, second) in lengths {
        writer
            .record(300, |r| {
                r.octets(&vec![7; first])?;
                r.unsigned(6)?;
                r.octets(&vec![b'n'; second])?;
                r.unsigned(0x0102_0304_0506_0708)
            })
            .expect("written");
    }
    writer.finish();
    let mut expected = Vec::new();
    for (first, second) in lengths {
        for (length, octet, tail) in
            [(first, 7u8, &[6u8][..]), (second, b'n', &[1, 2, 3, 4, 5, 6, 7, 8])]
        {
            match length {
                0..=254 => expected.push(u8::try_from(length).expect("short")),
                _ => expected.extend_from_slice(&[
                    255,
                    u8::try_from(length >> 8).expect("short"),
                    u8::try_from(length & 255).expect("short"),
                ]),
            }
            expected.extend(std::iter::repeat_n(octet, length));
            expected.extend_from_slice(tail);
        }
    }
    assert!(out.ends_with(&expected));

    let mut decoder = session();
    let mut read = Vec::new();
    decoder
        .message(&out, &mut |event| {
            if let Event::Data(set) = event {
                let (octets, name) = (
                    set.layout.slot(OCTETS).expect("there"),
                    set.layout.slot(NAME).expect("there"),
                );
                let point = set.layout.unsigned(OBSERVATION_POINT_ID).expect("there");
                assert_eq!(set.layout.unsigned(NAME), None, "a name is no number");
                for record in set.records {
                    assert_eq!(record.unsigned(point), 0x0102_0304_0506_0708);
                    read.push((record.octets(octets).len(), record.octets(name).len()));
                }
            }
        })
        .expect("read");
    assert_eq!(read, lengths);
}

#[test]
fn the_long_form_is_read_for_short_values_and_for_none() {
    let mut decoder = session();
    let template = set(2, &[1, 0, 0, 2, 0, 82, 0xff, 0xff, 0, 82, 0xff, 0xff]); // interfaceName twice
    let data = set(256, &[255, 0, 0, 255, 0, 1, b'x', 1, b'y', 0]);
    let mut names = Vec::new();
    decoder
        .message(&message(0, &[template, data]), &mut |event| {
            if let Event::Data(set) = event {
                for record in set.records {
                    let both: Vec<_> =
                        set.layout.slots(NAME).map(|s| record.octets(s).to_vec()).collect();
                    names.push(both);
                }
            }
        })
        .expect("read");
    assert_eq!(names, [vec![b"".to_vec(), b"x".to_vec()], vec![b"y".to_vec(), b"".to_vec()]]);
}

/// Reads one value of an element from octets in a template of that element alone.
fn value(id: u16, octets: &[u8]) -> String {
    let registry = Registry::default();
    let length = u16::try_from(octets.len()).expect("short");
    let spec = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(id), length)],
    };
    let layout = Layout::compile(spec, &registry).expect("legal");
    let record = layout.records(octets).next().expect("one");
    format!("{:?}", record.value(0, &registry).expect("one"))
}

#[test]
fn every_type_is_read_in_its_full_and_its_reduced_sizes() {
    for (id, octets, expected) in [
        (4, &[200][..], "Unsigned(200)"),                      // unsigned8
        (7, &[0x12, 0x34], "Unsigned(4660)"),                  // unsigned16
        (7, &[0x34], "Unsigned(52)"),                          // in one octet
        (10, &[1, 2, 3], "Unsigned(66051)"),                   // unsigned32 in three
        (1, &[1, 0, 0, 0, 0], "Unsigned(4294967296)"),         // unsigned64 in five
        (1, &[255; 8], "Unsigned(18446744073709551615)"),      // and in eight
        (434, &[0xff, 0xff, 0xff, 0xfe], "Signed(-2)"),        // signed32
        (434, &[0xfe], "Signed(-2)"),                          // in one
        (434, &[0x7f, 0xff], "Signed(32767)"),                 // positive in two
        (311, &[0x3f, 0xc0, 0, 0], "Float(1.5)"),              // float64 in four
        (311, &[0xbf, 0xe0, 0, 0, 0, 0, 0, 0], "Float(-0.5)"), // and in eight
        (276, &[1], "Boolean(true)"),
        (276, &[2], "Boolean(false)"),
        (276, &[0], "Illegal([0])"), // neither is said
        (56, &[2, 0, 0, 0, 0, 9], "Mac([2, 0, 0, 0, 0, 9])"),
        (82, b"eth0", "Text(\"eth0\")"),
        (82, &[0xc3, 0x28], "Illegal([195, 40])"), // not UTF-8
        (150, &[0x65, 0, 0, 0], "Seconds(1694498816)"),
        (152, &[0, 0, 1, 0x8b, 0, 0, 0, 0], "Milliseconds(1696512081920)"),
        (
            154,
            &[0x83, 0xaa, 0x7e, 0x80, 0x80, 0, 0, 0],
            "Microseconds(Ntp { seconds: 2208988800, fraction: 2147483648 })",
        ),
        (
            156,
            &[0x83, 0xaa, 0x7e, 0x80, 0, 0, 0, 5],
            "Nanoseconds(Ntp { seconds: 2208988800, fraction: 5 })",
        ),
        (8, &[192, 0, 2, 1], "Ipv4([192, 0, 2, 1])"),
        (
            27,
            &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            "Ipv6([32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])",
        ),
        (291, &[3, 0, 4, 0, 1], "List([3, 0, 4, 0, 1])"),
        (515, &[1; 9], "Wide([1, 1, 1, 1, 1, 1, 1, 1, 1])"),
        (313, &[1, 2], "Octets([1, 2])"),
        (32000, &[1, 2], "Octets([1, 2])"), // an element that nobody has assigned
    ] {
        assert_eq!(value(id, octets), expected, "element {id}");
    }
}

#[test]
fn ntp_times_are_rounded_to_what_their_type_promises() {
    let at = |fraction| wire::ipfix::Ntp { seconds: 2_208_988_801, fraction };
    // A microsecond is 4295 units; the lowest eleven bits do not count.
    assert_eq!(at(4096).unix_microseconds(), 1_000_001);
    assert_eq!(at(4096 + 2047).unix_microseconds(), 1_000_001);
    // 2248 units are more than half a microsecond, the 2048 that count are less.
    assert_eq!(at(2248).unix_microseconds(), 1_000_000);
    assert_eq!(at(5).unix_nanoseconds(), 1_000_000_001);
    assert_eq!(at(u32::MAX).unix_nanoseconds(), 2_000_000_000);
    assert_eq!(
        wire::ipfix::Ntp { seconds: 0, fraction: 0 }.unix_nanoseconds(),
        -2_208_988_800_000_000_000
    );
}

/// The 19 fields of the sequence draft's Table 2, IPv4 or IPv6, full length.
pub fn sequence_spec(mapping: &Mapping, v6: bool) -> TemplateSpec {
    let iana = |id, length| FieldSpec::new(ElementId::iana(id), length);
    let draft = |d: DraftElement| FieldSpec::full(mapping.id(d), d.abstract_type());
    let (source, destination, length) = if v6 { (27, 28, 16) } else { (8, 12, 4) };
    let mut fields = vec![
        iana(138, 8),
        iana(source, length),
        iana(destination, length),
        draft(DraftElement::RdmaDestinationQp),
        draft(DraftElement::RdmaPartitionKey),
        iana(152, 8),
        iana(153, 8),
    ];
    fields.extend(DraftElement::ALL[..12].iter().map(|d| draft(*d)));
    TemplateSpec { id: 256, scope_count: 0, fields }
}

#[test]
fn a_sequence_record_takes_120_octets_with_ipv4_and_144_with_ipv6() {
    // SEQ-6.9
    for (v6, octets) in [(false, 120), (true, 144)] {
        let spec = sequence_spec(&Mapping::default(), v6);
        assert_eq!(spec.fields.len(), 19);
        let layout = Layout::compile(spec, &Registry::default()).expect("legal");
        assert_eq!(layout.fixed_length(), Some(octets));
    }
}

#[test]
fn type_records_describe_the_draft_elements_and_a_stranger_understands_them() {
    // PFC-exp.2: a stranger is a session with another enterprise number, to which ours is foreign.
    let registry = Registry::default();
    let id = |d: DraftElement| registry.mapping().id(d);
    let elements: Vec<Element> =
        [DraftElement::PfcPriority, DraftElement::PfcControlFrameTotalCount]
            .map(|d| registry.get(id(d)).expect("ours").clone())
            .to_vec();
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.type_information(400, 401, elements.iter()).expect("written");
    writer.finish();

    let plain = [
        // options template 400, 6 fields, 2 of scope
        &[1, 0x90, 0, 6, 0, 2][..],
        &[1, 90, 0, 4, 1, 47, 0, 2], // privateEnterpriseNumber 346, informationElementId 303
        &[1, 83, 0, 1, 1, 88, 0, 1], // informationElementDataType 339, ...Semantics 344
        &[1, 89, 0, 2, 1, 85, 0xff, 0xff], // ...Units 345, ...Name 341
    ]
    .concat();
    let frames = [
        &[0, 0, 0x7e, 0xd9, 0, 32][..], // 32473/32
        &[4, 2, 0, 13],                 // unsigned64, totalCounter, frames
        &[25],
        b"pfcControlFrameTotalCount",
    ]
    .concat();
    let ranged = [
        &[1, 0x91, 0, 9, 0, 2][..],
        &[1, 90, 0, 4, 1, 47, 0, 2],
        &[1, 83, 0, 1, 1, 88, 0, 1],
        &[1, 89, 0, 2],
        &[1, 86, 0, 8, 1, 87, 0, 8], // ...RangeBegin 342, ...RangeEnd 343
        &[1, 85, 0xff, 0xff, 1, 84, 0xff, 0xff], // ...Name 341, ...Description 340
    ]
    .concat();
    let priority = [
        &[0, 0, 0x7e, 0xd9, 0, 31][..], // 32473/31
        &[1, 4, 0, 0],                  // unsigned8, identifier, no units
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7],
        &[11],
        b"pfcPriority",
        &[0], // no description
    ]
    .concat();
    let expected =
        message(0, &[set(3, &plain), set(400, &frames), set(3, &ranged), set(401, &priority)]);
    assert_eq!(out, expected);

    let stranger = Mapping::new(1).expect("legal");
    let mut decoder = wire::ipfix::Decoder::new(
        wire::ipfix::Transport::Stream,
        stranger,
        wire::ipfix::Limits::default(),
    );
    let seen = feed(&mut decoder, &out).expect("read");
    let learned: Vec<_> = seen.iter().filter(|s| matches!(s, Seen::Element(_))).collect();
    assert_eq!(learned.len(), 2);
    for element in &elements {
        assert_eq!(decoder.registry().get(element.id), Some(element));
    }
    // And one that knows them learns nothing and complains of nothing.
    let seen = feed(&mut session(), &out).expect("read");
    assert!(!seen.iter().any(|s| matches!(s, Seen::Element(_) | Seen::Fault(_))));
}

#[test]
fn a_type_record_that_its_type_cannot_have_is_not_written() {
    let mut element = Registry::default().get(SOURCE_IPV4_ADDRESS).expect("known").clone();
    element.semantics = wire::element::Semantics::TotalCounter;
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    let refused = writer.type_information(400, 401, [&element].into_iter());
    assert_eq!(refused, Err(EncodeError::Semantics { element: SOURCE_IPV4_ADDRESS }));
    writer.finish();
    assert!(out.is_empty());
    assert_eq!(type_information_template(400, true).fields.len(), 9);
}

#[test]
fn flow_keys_are_bits_of_field_positions_from_the_lowest() {
    // SEQ-6.6
    let mapping = Mapping::default();
    let spec = sequence_spec(&mapping, false);
    let epoch = mapping.id(DraftElement::RdmaSequenceEpochId);
    let keys =
        FlowKeys::of(&spec, &[OBSERVATION_POINT_ID, SOURCE_IPV4_ADDRESS, epoch]).expect("there");
    assert_eq!(keys.indicator, 0b1000_0011);
    assert!(keys.has(7) && !keys.has(8) && !keys.has(64));
    let absent = FlowKeys::of(&spec, &[TEMPLATE_ID]);
    assert_eq!(absent, Err(EncodeError::FlowKey { element: TEMPLATE_ID }));

    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&flow_keys_template(300)).expect("written");
    writer.flow_keys(300, keys).expect("written");
    writer.finish();
    let expected = message(
        0,
        &[
            set(3, &[1, 44, 0, 2, 0, 1, 0, 145, 0, 2, 0, 173, 0, 8]), // templateId as scope, flowKeyIndicator
            set(300, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0x83]),
        ],
    );
    assert_eq!(out, expected);
    let mut read = None;
    session()
        .message(&out, &mut |event| {
            if let Event::Data(mut set) = event {
                read = set.records.next().and_then(|r| FlowKeys::read(&r));
            }
        })
        .expect("read");
    assert_eq!(read, Some(keys));
}

#[test]
fn a_key_beyond_the_64th_field_cannot_be_marked() {
    let mut fields = vec![FieldSpec::new(ElementId { pen: 9, id: 1 }, 1); 64];
    fields.push(FieldSpec::new(TEMPLATE_ID, 2));
    let mut spec = TemplateSpec { id: 256, scope_count: 0, fields };
    assert!(FlowKeys::of(&spec, &[TEMPLATE_ID]).is_err());
    spec.fields.remove(0);
    assert_eq!(FlowKeys::of(&spec, &[TEMPLATE_ID]).expect("there").indicator, 1 << 63);
}
