//! What another implementation (`netflow_parser`) reads in what we write: the same templates and the
//! same values.

use netflow_parser::variable_versions::enterprise_registry::EnterpriseFieldDef;
use netflow_parser::variable_versions::field_value::{
    DataNumber, DurationValue, FieldDataType, FieldValue,
};
use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};
use wire::element::{DraftElement, ElementId, Mapping, Registry, VARIABLE};
use wire::ipfix::{
    Encoder, Event, FieldSpec, FlowKeys, Frame, TemplateSpec, Value, flow_keys_template, frame,
};

use crate::golden::sequence_spec;
use crate::seen::session;

/// A record as text: fields in order.
type Text = Vec<String>;

fn ours(stream: &[u8]) -> Vec<Text> {
    let mut decoder = session();
    let mut out = Vec::new();
    let mut rest = stream;
    while let Frame::Message { octets, rest: next } = frame(rest).expect("framed") {
        decoder
            .message(octets, &mut |event| {
                if let Event::Data(set) = event {
                    out.extend(
                        set.records.map(|r| {
                            r.values(set.registry).map(|v| our_text(v.2)).collect::<Text>()
                        }),
                    );
                }
            })
            .expect("read");
        rest = next;
    }
    out
}

fn our_text(value: Value<'_>) -> String {
    match value {
        Value::Unsigned(n) | Value::Milliseconds(n) => n.to_string(),
        Value::Ipv4(o) => std::net::Ipv4Addr::from(o).to_string(),
        Value::Ipv6(o) => std::net::Ipv6Addr::from(o).to_string(),
        Value::Text(t) => t.to_owned(),
        other => panic!("{other:?}"),
    }
}

fn theirs(stream: &[u8]) -> Vec<Text> {
    let mut builder = NetflowParser::builder();
    for draft in DraftElement::ALL {
        let id = Mapping::default().id(draft);
        builder = builder.register_enterprise_field(EnterpriseFieldDef::new(
            id.pen,
            id.id,
            draft.name(),
            FieldDataType::UnsignedDataNumber,
        ));
    }
    let mut parser = builder.build().expect("built");
    let result = parser.parse_bytes(stream);
    assert!(result.error.is_none(), "{:?}", result.error);
    let mut out = Vec::new();
    for packet in result.packets {
        let NetflowPacket::IPFix(message) = packet else { panic!("{packet:?}") };
        for set in message.flowsets {
            let records = match set.body {
                FlowSetBody::Data(data) => data.fields,
                FlowSetBody::OptionsData(data) => data.fields,
                _ => continue,
            };
            out.extend(
                records.iter().map(|r| r.iter().map(|f| their_text(&f.1)).collect::<Text>()),
            );
        }
    }
    out
}

fn their_text(value: &FieldValue) -> String {
    match value {
        FieldValue::DataNumber(n) => match n {
            DataNumber::U8(n) => n.to_string(),
            DataNumber::U16(n) => n.to_string(),
            DataNumber::U24(n) | DataNumber::U32(n) => n.to_string(),
            DataNumber::U64(n) => n.to_string(),
            other => panic!("{other:?}"),
        },
        FieldValue::Duration(DurationValue::Millis { value, .. }) => value.to_string(),
        FieldValue::Ip4Addr(a) => a.to_string(),
        FieldValue::Ip6Addr(a) => a.to_string(),
        FieldValue::String(s) => s.value.clone(),
        FieldValue::Vec(o) => o.iter().fold(0u64, |n, o| n << 8 | u64::from(*o)).to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_implementation_reads_the_same_sequence_records_and_flow_keys() {
    for v6 in [false, true] {
        let spec = sequence_spec(&Mapping::default(), v6);
        let mut encoder = Encoder::new(1400).expect("legal");
        let mut out = Vec::new();
        let mut writer = encoder.writer(1, 1_700_000_000, &mut out);
        writer.template(&spec).expect("written");
        writer.template(&flow_keys_template(300)).expect("written");
        let keys = FlowKeys::of(
            &spec,
            &[ElementId::iana(138), Mapping::default().id(DraftElement::RdmaSequenceEpochId)],
        );
        writer.flow_keys(300, keys.expect("there")).expect("written");
        for n in 0..50u64 {
            writer
                .record(256, |r| {
                    for (i, field) in spec.fields.iter().enumerate() {
                        match field.length {
                            _ if (i == 1 || i == 2) && v6 => {
                                r.octets(&[u8::try_from(n).expect("short"); 16])?
                            }
                            _ if i == 1 || i == 2 => {
                                r.octets(&[u8::try_from(n).expect("short"); 4])?
                            }
                            8 if i == 5 || i == 6 => r.unsigned(1_700_000_000_123 + n)?,
                            length => {
                                r.unsigned((n * 0x0123_4567_89ab_cdef) >> (64 - 8 * length))?
                            }
                        }
                    }
                    Ok(())
                })
                .expect("written");
        }
        writer.finish();
        let read = ours(&out);
        assert_eq!(read.len(), 51);
        assert_eq!(theirs(&out), read);
    }
}

#[test]
fn another_implementation_reads_the_same_names_and_reduced_numbers() {
    let spec = TemplateSpec {
        id: 400,
        scope_count: 1,
        fields: vec![
            FieldSpec::new(ElementId::iana(10), 2), // ingressInterface in two octets
            FieldSpec::new(ElementId::iana(82), VARIABLE), // interfaceName
            FieldSpec::new(ElementId::iana(1), 3),  // octetDeltaCount in three
            FieldSpec::new(ElementId::iana(83), VARIABLE), // interfaceDescription
        ],
    };
    let mut encoder = Encoder::new(16384).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(&spec).expect("written");
    for length in [1, 254, 255, 300] {
        writer
            .record(400, |r| {
                r.unsigned(513)?;
                r.octets(b"eth0")?;
                r.unsigned(0x01_02_03)?;
                r.octets("d".repeat(length).as_bytes())
            })
            .expect("written");
    }
    writer.finish();
    let read = ours(&out);
    assert_eq!(read[0][..3], ["513", "eth0", "66051"]);
    assert_eq!(theirs(&out), read);
    assert!(Registry::default().get(ElementId::iana(83)).is_some());
}
