//! Inputs that nobody thought of.

use proptest::prelude::*;
use wire::element::{ElementId, Mapping, Registry, VARIABLE};
use wire::ipfix::{
    Decoder, Encoder, Event, FieldSpec, Frame, Limits, TemplateSpec, Transport, frame,
};

use crate::seen::{feed, message, set};

/// Foreign elements of any length, so that every octet string is a value.
fn field() -> impl Strategy<Value = FieldSpec> {
    let length = prop_oneof![3 => 0u16..40, 1 => Just(VARIABLE), 1 => Just(300)];
    (0u16..0x8000, 1u32..100_000, length)
        .prop_map(|(id, pen, length)| FieldSpec::new(ElementId { pen, id }, length))
}

fn template() -> impl Strategy<Value = TemplateSpec> {
    (256u16.., prop::collection::vec(field(), 1..12), any::<u8>())
        .prop_filter("records have octets", |(_, fields, _)| fields.iter().any(|f| f.length != 0))
        .prop_map(|(id, fields, scope)| {
            let scope_count = u16::from(scope) % u16::try_from(fields.len() + 1).expect("short");
            TemplateSpec { id, scope_count, fields }
        })
}

/// Records of a template: for each field its octets.
fn records(spec: &TemplateSpec) -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> + use<> {
    let fields: Vec<_> = spec
        .fields
        .iter()
        .map(|f| {
            let lengths = if f.length == VARIABLE {
                0..600
            } else {
                usize::from(f.length)..usize::from(f.length) + 1
            };
            prop::collection::vec(any::<u8>(), lengths)
        })
        .collect();
    prop::collection::vec(fields, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(
        (spec, records) in template().prop_flat_map(|s| { let r = records(&s); (Just(s), r) }),
        bound in prop_oneof![Just(65535usize), Just(16384), Just(9000)],
        alignment in prop_oneof![Just(1usize), Just(4), Just(8)],
        sequence in any::<u32>(),
    ) {
        let mut encoder = Encoder::aligned(bound, alignment).expect("legal");
        encoder.set_sequence(1, sequence);
        let mut out = Vec::new();
        let mut writer = encoder.writer(1, 0, &mut out);
        writer.template(&spec).expect("written");
        for record in &records {
            writer.record(spec.id, |r| record.iter().try_for_each(|f| r.octets(f))).expect("written");
        }
        writer.finish();

        let mut decoder = Decoder::new(Transport::Stream, Mapping::default(), Limits::default());
        let (mut read, mut specs) = (Vec::new(), Vec::new());
        let mut rest = &out[..];
        while let Frame::Message { octets, rest: next } = frame(rest).expect("framed") {
            prop_assert!(octets.len() <= bound);
            decoder.message(octets, &mut |event| match event {
                Event::Template { layout, .. } => specs.push(layout.spec().clone()),
                Event::Data(set) => for record in set.records {
                    let by_slot: Vec<_> = (0..spec.fields.len())
                        .map(|i| record.octets(set.layout.slot_at(i).expect("there")).to_vec())
                        .collect();
                    assert_eq!(record.values(set.registry).count(), spec.fields.len());
                    read.push(by_slot);
                },
                other => panic!("{other:?}"),
            }).expect("read");
            rest = next;
        }
        prop_assert!(rest.is_empty());
        prop_assert_eq!(specs, [spec]);
        prop_assert_eq!(read, records);
    }

    #[test]
    fn no_octets_make_a_decoder_panic_and_a_discarded_message_changes_nothing(
        sets in prop::collection::vec(
            (
                prop_oneof![Just(2u16), Just(3), 256u16..260, any::<u16>()],
                prop::collection::vec(prop_oneof![4 => 0u8..5, 1 => any::<u8>(), 1 => Just(255)], 0..60),
            ),
            0..6,
        ),
        harm in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let sets: Vec<_> = sets.iter().map(|(id, content)| set(*id, content)).collect();
        let mut octets = message(0, &sets);
        if let Some((at, octet)) = harm {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        for transport in [Transport::Stream, Transport::Datagram, Transport::File] {
            let mut decoder = Decoder::new(transport, Mapping::default(), Limits::default());
            let registry = Registry::default();
            feed(&mut decoder, &message(0, &[set(2, &[1, 0, 0, 1, 0, 82, 255, 255])])).expect("read");
            let mut called = 0;
            let result = decoder.message(&octets, &mut |event| {
                called += 1;
                if let Event::Data(set) = event {
                    for record in set.records {
                        record.values(&registry).for_each(|v| drop(format!("{v:?}")));
                    }
                }
            });
            if let Err(error) = result {
                assert_eq!(called, 0, "{error}");
                assert_eq!(decoder.templates(), 1, "{error}");
            }
        }
    }
}
