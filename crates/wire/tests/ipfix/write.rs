//! What a writer promises: bounds, padding, whole records or none.

use wire::element::standard::{FLOW_END_MILLISECONDS, SOURCE_IPV4_ADDRESS};
use wire::element::{AbstractType, DraftElement, ElementId, Mapping, Registry, VARIABLE};
use wire::ipfix::{
    EncodeError, Encoder, Event, FieldSpec, Layout, MESSAGE_MAX, TemplateKind, TemplateSpec, Value,
    Written,
};

use crate::golden::sequence_spec;
use crate::seen::{Seen, feed, message, session, set};

const OCTETS: ElementId = ElementId::iana(313); // ipHeaderPacketSection, octetArray

#[test]
fn a_template_is_redefined_only_behind_its_withdrawal_and_data_keep_the_layout_they_were_written_with()
 {
    // Records of the old layout are in the buffer already when the ID changes its meaning.
    let old = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(4), 1)],
    };
    let new = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(7), 2)],
    };
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&old).expect("written");
    writer.record(256, |r| r.unsigned(1)).expect("written");
    assert_eq!(writer.template(&new), Err(EncodeError::Redefined { template: 256 }));
    writer.record(256, |r| r.unsigned(2)).expect("the old one still stands");
    writer.withdraw(256).expect("known");
    writer.template(&new).expect("written");
    writer.record(256, |r| r.unsigned(0x0304)).expect("written");
    writer.finish();
    assert_eq!(
        feed(&mut session(), &out).expect("read"),
        [
            Seen::Template(256),
            Seen::Data(256, vec![vec![1], vec![2]]),
            Seen::Withdrawn(TemplateKind::Template, 256),
            Seen::Template(256),
            Seen::Data(256, vec![vec![3, 4]]),
        ]
    );
}

#[test]
fn the_templates_and_sequence_numbers_of_two_domains_are_their_own() {
    let spec = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(4), 1)],
    };
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&spec).expect("written");
    writer.record(256, |r| r.unsigned(1)).expect("written");
    drop(writer); // a writer that is dropped finishes its message
    assert_eq!(out.len(), 16 + 12 + 5);
    let mut writer = encoder.writer(2, 0, &mut out);
    let unknown = writer.record(256, |r| r.unsigned(1));
    assert_eq!(unknown, Err(EncodeError::UnknownTemplate { template: 256 }));
    writer.finish();
    assert_eq!((encoder.sequence(1), encoder.sequence(2)), (1, 0));
    assert_eq!(encoder.template(1, 256), Some(&spec));
    assert_eq!(encoder.template(2, 256), None);
}

#[test]
fn the_sequence_number_of_a_writer_wraps() {
    let spec = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(4), 1)],
    };
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    encoder.set_sequence(1, u32::MAX);
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&spec).expect("written");
    writer.record(256, |r| r.unsigned(1)).expect("written");
    writer.record(256, |r| r.unsigned(1)).expect("written");
    writer.finish();
    assert_eq!(encoder.sequence(1), 1);
}

#[test]
fn padding_is_written_where_it_is_shorter_than_a_record_and_only_there() {
    let spec = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(7), 2), FieldSpec::new(ElementId::iana(4), 1)],
    };
    let short = TemplateSpec {
        id: 257,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(4), 1)],
    };
    let mut encoder = Encoder::aligned(MESSAGE_MAX, 4).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&spec).expect("written");
    writer.template(&short).expect("written");
    for _ in 0..2 {
        writer.record(256, |r| r.unsigned(9).and_then(|()| r.unsigned(1))).expect("written");
    }
    writer.record(257, |r| r.unsigned(5)).expect("written");
    writer.finish();
    let expected = [
        // The second template needs no padding; the set of three-octet records takes two octets.
        set(2, &[1, 0, 0, 2, 0, 7, 0, 2, 0, 4, 0, 1, 1, 1, 0, 1, 0, 4, 0, 1]),
        set(256, &[0, 9, 1, 0, 9, 1, 0, 0]),
        // An octet of padding would be a record here.
        set(257, &[5]),
    ];
    assert_eq!(out, message(0, &expected));
    assert_eq!(Encoder::aligned(MESSAGE_MAX, 2).err(), Some(EncodeError::Alignment { found: 2 }));
}

#[test]
fn a_writer_splits_at_the_bound_counts_each_message_and_writes_none_that_is_empty() {
    let spec = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(1), 8)],
    };
    // 16 + 4 + 5 * 8 = 60: five records fit into 64 octets, not six.
    let mut encoder = Encoder::new(64).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 3, &mut out);
    writer.flush();
    writer.template(&spec).expect("written");
    writer.flush();
    writer.flush();
    for n in 0..11 {
        writer.record(256, |r| r.unsigned(n)).expect("written");
    }
    assert_eq!(writer.finish(), Written { messages: 4, records: 11 });
    let mut rest = &out[..];
    let mut headers = Vec::new();
    while let Ok(wire::ipfix::Frame::Message { octets, rest: next }) = wire::ipfix::frame(rest) {
        let header = wire::ipfix::MessageHeader::read(octets).expect("a header");
        headers.push((header.length, header.sequence));
        rest = next;
    }
    assert_eq!(headers, [(28, 0), (60, 0), (60, 5), (28, 10)]);
    assert!(rest.is_empty());
    // And a writer without records leaves the buffer as it is.
    let before = out.clone();
    encoder.writer(1, 3, &mut out).finish();
    assert_eq!(out, before);
}

#[test]
fn a_record_fits_up_to_the_bound_and_one_octet_more_is_refused() {
    let spec =
        TemplateSpec { id: 256, scope_count: 0, fields: vec![FieldSpec::new(OCTETS, VARIABLE)] };
    for (bound, fits) in [(100, 79), (MESSAGE_MAX, MESSAGE_MAX - 23)] {
        let mut encoder = Encoder::new(bound).expect("legal");
        let mut out = Vec::new();
        let mut writer = encoder.writer(1, 0, &mut out);
        writer.template(&spec).expect("written");
        for (length, legal) in [(fits - 1, true), (fits, true), (fits + 1, false)] {
            assert_eq!(
                writer.record(256, |r| r.octets(&vec![1; length])).is_ok(),
                legal,
                "{length}"
            );
        }
        assert_eq!(writer.finish().records, 2);
    }
    for (bound, legal) in [(63, false), (64, true), (65535, true), (65536, false)] {
        assert_eq!(Encoder::new(bound).is_ok(), legal);
    }
}

#[test]
fn a_record_that_does_not_fit_its_template_leaves_nothing_behind() {
    let spec = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![
            FieldSpec::new(ElementId { pen: 32473, id: 21 }, 3),
            FieldSpec::new(SOURCE_IPV4_ADDRESS, 4),
        ],
    };
    let qp = ElementId { pen: 32473, id: 21 };
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&spec).expect("written");
    let ok = writer.record(256, |r| r.unsigned(0x00ff_ffff).and_then(|()| r.octets(&[1; 4])));
    assert_eq!(ok, Ok(()));
    let before = writer.open_length();
    let too_big = writer.record(256, |r| r.unsigned(0x0100_0000));
    assert_eq!(too_big, Err(EncodeError::Value { element: qp, length: 3 }));
    let missing = writer.record(256, |r| r.unsigned(1));
    assert_eq!(missing, Err(EncodeError::FieldCount { found: 1, expected: 2 }));
    let short = writer.record(256, |r| r.unsigned(1).and_then(|()| r.octets(&[1; 3])));
    assert_eq!(short, Err(EncodeError::Value { element: SOURCE_IPV4_ADDRESS, length: 4 }));
    let many = writer.record(256, |r| {
        r.unsigned(1)?;
        r.octets(&[1; 4])?;
        r.unsigned(2)
    });
    assert_eq!(many, Err(EncodeError::FieldCount { found: 3, expected: 2 }));
    let unknown = writer.record(999, |_| Ok(()));
    assert_eq!(unknown, Err(EncodeError::UnknownTemplate { template: 999 }));
    assert_eq!(writer.open_length(), before);
    assert_eq!(writer.finish().records, 1);
}

#[test]
fn signed_and_floating_numbers_are_written_only_where_they_come_back_equal() {
    let registry = Registry::default();
    let write =
        |field: FieldSpec,
         fill: &dyn Fn(&mut wire::ipfix::RecordWriter<'_>) -> Result<(), EncodeError>| {
            let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
            let mut out = Vec::new();
            let mut writer = encoder.writer(1, 0, &mut out);
            let spec = TemplateSpec { id: 256, scope_count: 0, fields: vec![field] };
            writer.template(&spec).expect("written");
            let done = writer.record(256, fill);
            writer.finish();
            done.ok().map(|()| {
                let layout = Layout::compile(spec, &registry).expect("legal");
                let octets = &out[out.len() - usize::from(field.length)..];
                format!(
                    "{:?}",
                    layout.records(octets).next().and_then(|r| r.value(0, &registry)).expect("one")
                )
            })
        };
    let signed =
        |length, n| write(FieldSpec::new(ElementId::iana(434), length), &move |r| r.signed(n));
    assert_eq!(signed(1, -128).as_deref(), Some("Signed(-128)"));
    assert_eq!(signed(1, -129), None);
    assert_eq!(signed(1, 127).as_deref(), Some("Signed(127)"));
    assert_eq!(signed(1, 128), None);
    assert_eq!(signed(4, -2_000_000_000).as_deref(), Some("Signed(-2000000000)"));
    let float =
        |length, x| write(FieldSpec::new(ElementId::iana(311), length), &move |r| r.float(x));
    assert_eq!(float(4, 0.5).as_deref(), Some("Float(0.5)"));
    assert_eq!(float(4, 0.1), None);
    assert_eq!(float(8, 0.1).as_deref(), Some("Float(0.1)"));
    let boolean = |b| write(FieldSpec::new(ElementId::iana(276), 1), &move |r| r.boolean(b));
    assert_eq!(boolean(true).as_deref(), Some("Boolean(true)"));
    assert_eq!(boolean(false).as_deref(), Some("Boolean(false)"));
}

#[test]
fn reading_all_19_fields_of_a_record_gives_what_was_written() {
    // SEQ-6.2
    let mapping = Mapping::default();
    let spec = sequence_spec(&mapping, false);
    let mut encoder = Encoder::new(1400).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&spec).expect("written");
    for n in 0..100u64 {
        writer
            .record(256, |r| {
                for (i, field) in spec.fields.iter().enumerate() {
                    if i == 1 || i == 2 {
                        r.octets(&[10, 0, 0, u8::try_from(i).expect("short")])?;
                    } else {
                        let most = if field.length == 8 {
                            u64::MAX
                        } else {
                            (1 << (8 * field.length)) - 1
                        };
                        r.unsigned((n * 1_000_003 + i as u64) & most)?;
                    }
                }
                Ok(())
            })
            .expect("written");
    }
    writer.finish();
    let mut decoder = session();
    let (mut rest, mut count) = (&out[..], 0u64);
    while let Ok(wire::ipfix::Frame::Message { octets, rest: next }) = wire::ipfix::frame(rest) {
        decoder
            .message(octets, &mut |event| {
                let Event::Data(set) = event else { return };
                let end = set.layout.unsigned(FLOW_END_MILLISECONDS).expect("there");
                let flags = set
                    .layout
                    .unsigned(mapping.id(DraftElement::RdmaSequenceFlags))
                    .expect("there");
                for record in set.records {
                    assert_eq!(record.unsigned(end), count * 1_000_003 + 6);
                    assert_eq!(record.unsigned(flags), (count * 1_000_003 + 10) & 0xffff);
                    assert_eq!(record.value(2, set.registry), Some(Value::Ipv4([10, 0, 0, 2])));
                    count += 1;
                }
            })
            .expect("read");
        rest = next;
    }
    assert_eq!(count, 100);
    assert_eq!(AbstractType::Unsigned64.full_length(), 8);
}

#[test]
fn padding_that_does_not_fit_into_the_message_is_left_out() {
    let spec = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![FieldSpec::new(ElementId::iana(1), 8), FieldSpec::new(ElementId::iana(4), 1)],
    };
    // 16 + 4 + 5 * 9 = 65; padding would make it 68.
    for (bound, length) in [(65, 65), (67, 65), (68, 68)] {
        let mut encoder = Encoder::aligned(bound, 4).expect("legal");
        let (mut templates, mut out) = (Vec::new(), Vec::new());
        encoder.writer(1, 0, &mut templates).template(&spec).expect("written");
        let mut writer = encoder.writer(1, 0, &mut out);
        for n in 0..5 {
            writer.record(256, |r| r.unsigned(n).and_then(|()| r.unsigned(6))).expect("written");
        }
        assert_eq!(writer.finish(), Written { messages: 1, records: 5 });
        assert_eq!(out.len(), length);
        let mut decoder = session();
        feed(&mut decoder, &templates).expect("read");
        let seen = feed(&mut decoder, &out).expect("read");
        assert!(matches!(&seen[..], [Seen::Data(256, records)] if records.len() == 5), "{seen:?}");
    }
}
