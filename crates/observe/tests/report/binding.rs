//! Which Templates are of the profile.

use observe::profile::{Binding, BindingError, Lengths, Shape};
use observe::report::Report;
use wire::element::{DraftElement, ElementId, Mapping, Registry, VARIABLE};
use wire::frame::Family;
use wire::ipfix::{Encoder, FieldSpec, Layout, TemplateSpec};

use crate::support::{V4, bound, compiled, mapping, report};

fn fields(shape: Shape) -> Vec<FieldSpec> {
    shape.template(256, &mapping()).fields
}

/// Names of Table 2 in its order, IPv4.
const NAMES: [&str; 19] = [
    "observationPointId",
    "sourceIPv4Address",
    "destinationIPv4Address",
    "rdmaDestinationQP",
    "rdmaPartitionKey",
    "flowStartMilliseconds",
    "flowEndMilliseconds",
    "rdmaSequenceEpochId",
    "rdmaSequenceReportId",
    "rdmaSequenceWindow",
    "rdmaSequenceFlags",
    "skippedPsnTotalCount",
    "filledPsnTotalCount",
    "expiredPsnTotalCount",
    "abandonedPsnTotalCount",
    "pendingPsnCount",
    "repeatedPsnTotalCount",
    "requestPacketTotalCount",
    "unclassifiedLatePacketTotalCount",
];

fn refused(fields: Vec<FieldSpec>) -> BindingError {
    bound(fields, Lengths::Full).unwrap_err()
}

// SEQ-7.1, SEQ-6.2
#[test]
fn a_template_without_any_one_of_the_fields_is_not_bound() {
    for (at, name) in NAMES.into_iter().enumerate() {
        let mut fewer = fields(V4);
        fewer.remove(at);
        assert_eq!(refused(fewer), BindingError::Missing(name));
    }
    for (at, name) in [(1, "sourceIPv6Address"), (2, "destinationIPv6Address")] {
        let mut fewer = fields(Shape { family: Family::V6, ..V4 });
        fewer.remove(at);
        assert_eq!(refused(fewer), BindingError::Missing(name));
    }
    let mut none = fields(V4);
    none.drain(1..3);
    assert_eq!(refused(none), BindingError::Missing("sourceIPv4Address"));
}

// SEQ-7.1, SEQ-6.2
#[test]
fn a_template_with_any_field_twice_is_not_bound() {
    let all = Shape { outer_vlan: true, inner_vlan: true, segment: true, ..V4 };
    let names = NAMES.into_iter().chain(["dot1qVlanId", "dot1qCustomerVlanId", "layer2SegmentId"]);
    for (at, name) in names.enumerate() {
        let mut more = fields(all);
        more.push(more[at]);
        assert_eq!(refused(more), BindingError::Twice(name));
    }
}

// SEQ-7.1, SEQ-4.3, SEQ-6.2
#[test]
fn a_template_with_addresses_of_both_families_is_not_bound() {
    let six = fields(Shape { family: Family::V6, ..V4 });
    for extra in [&six[1..2], &six[2..3], &six[1..3]] {
        let both = [&fields(V4)[..], extra].concat();
        assert_eq!(refused(both), BindingError::BothFamilies);
    }
    let mut mixed = fields(V4);
    mixed[2] = six[2];
    assert_eq!(refused(mixed), BindingError::BothFamilies);
}

// SEQ-7.1
#[test]
fn an_options_template_is_not_bound() {
    let spec = TemplateSpec { id: 256, scope_count: 1, fields: fields(V4) };
    let layout = Layout::compile(spec, &Registry::new(mapping())).unwrap();
    let found = Binding::new(&layout, &mapping(), Lengths::Full).unwrap_err();
    assert_eq!(found, BindingError::Options);
}

// SEQ-7.1, SEQ-6.8
#[test]
fn a_template_of_somebody_else_is_no_fault() {
    let foreign =
        vec![FieldSpec::new(ElementId::iana(8), 4), FieldSpec::new(ElementId::iana(1), 8)];
    assert_eq!(refused(foreign), BindingError::NotProfile);
    // The header fields that the profile borrows can stand in any template.
    assert_eq!(refused(fields(V4)[..7].to_vec()), BindingError::NotProfile);
    assert_eq!(refused(fields(V4)[..8].to_vec()), BindingError::Missing("rdmaSequenceReportId"));
    // Under another enterprise number they are other elements.
    let theirs = V4.template(256, &Mapping::new(1).unwrap()).fields;
    assert_eq!(refused(theirs), BindingError::NotProfile);
}

// SEQ-6.9
#[test]
fn shorter_lengths_are_taken_by_agreement_only() {
    for at in [0].into_iter().chain(3..5).chain(7..19) {
        let full = fields(V4)[at].length;
        for length in 1..full {
            let mut shorter = fields(V4);
            shorter[at].length = length;
            let wrong =
                BindingError::Length { field: NAMES[at], found: Some(length), expected: full };
            assert_eq!(refused(shorter.clone()), wrong);
            assert!(bound(shorter, Lengths::Agreed).is_ok(), "{} of {length}", NAMES[at]);
        }
    }
}

// SEQ-6.9, SEQ-7.1: no template with such a length is even compiled.
#[test]
fn lengths_that_the_type_cannot_have_are_refused_for_every_field() {
    let registry = Registry::new(mapping());
    for at in 0..19 {
        let full = fields(V4)[at].length;
        let times_and_addresses = [1, 2, 5, 6].contains(&at);
        let below = if times_and_addresses { full - 1 } else { 0 };
        for length in [below, full + 1, VARIABLE] {
            let mut other = fields(V4);
            other[at].length = length;
            let spec = TemplateSpec { id: 256, scope_count: 0, fields: other };
            assert!(Layout::compile(spec, &registry).is_err(), "{} of {length}", NAMES[at]);
        }
    }
}

// SEQ-7.1: a layout that was compiled without our names says lengths that are not ours.
#[test]
fn lengths_of_a_layout_compiled_under_another_mapping_are_still_looked_at() {
    for (length, found) in [(16, Some(16)), (VARIABLE, None)] {
        let mut other = fields(V4);
        other[7].length = length;
        let spec = TemplateSpec { id: 256, scope_count: 0, fields: other };
        let elsewhere = Registry::new(Mapping::new(1).unwrap());
        let layout = Layout::compile(spec, &elsewhere).unwrap();
        for lengths in [Lengths::Full, Lengths::Agreed] {
            let wrong = BindingError::Length { field: NAMES[7], found, expected: 8 };
            assert_eq!(Binding::new(&layout, &mapping(), lengths).unwrap_err(), wrong);
        }
    }
}

/// One record of a template, each value given by its element.
fn record(spec: &TemplateSpec, value: impl Fn(ElementId) -> Vec<u8>) -> Vec<u8> {
    let mut encoder = Encoder::new(65535).unwrap();
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 0, &mut out);
    writer.template(spec).unwrap();
    writer.flush();
    writer
        .record(spec.id, |record| {
            spec.fields.iter().try_for_each(|field| record.octets(&value(field.id)))
        })
        .unwrap();
    writer.finish();
    let first = usize::from(u16::from_be_bytes([out[2], out[3]]));
    out.split_off(first + 16 + 4)
}

/// The values of the sample report by element.
fn value(id: ElementId) -> Option<Vec<u8>> {
    let golden = crate::support::read_back(&crate::support::exported(&[report()]));
    let mut at = 0;
    for field in fields(V4) {
        let end = at + usize::from(field.length);
        if field.id == id {
            return Some(golden[0].2[at..end].to_vec());
        }
        at = end;
    }
    None
}

// SEQ-7.1: the order of Table 2 is an example. Other collectors have taken a field for its
// neighbour where foreign elements stood between them (vflow issue 181).
#[test]
fn fields_in_any_order_with_foreign_elements_between_are_read_by_their_element() {
    let mut ours = fields(V4);
    ours.reverse();
    let mut mixed = Vec::new();
    for (n, field) in (0..).zip(ours) {
        mixed.push(field);
        // One of IANA's, one of another enterprise under a number of ours, one of our enterprise
        // that is nobody's; and in the middle one of variable length.
        mixed.push(FieldSpec::new(ElementId { pen: 9, id: 1 + n }, 1 + n % 7));
        if n == 9 {
            mixed.push(FieldSpec::new(ElementId::iana(82), VARIABLE));
        }
        mixed.push(FieldSpec::new(ElementId { pen: 32473, id: 1000 + n }, 3));
    }
    let layout = compiled(mixed);
    let lengths: Vec<_> = layout.fields().to_vec();
    let octets = record(layout.spec(), |id| {
        let foreign = || {
            let length = lengths.iter().find(|field| field.id == id).unwrap().length;
            vec![0xee; if length == VARIABLE { 300 } else { length.into() }]
        };
        value(id).unwrap_or_else(foreign)
    });
    let binding = Binding::new(&layout, &mapping(), Lengths::Full).unwrap();
    let read = layout.records(&octets).next().map(|record| binding.read(&record).unwrap());
    assert_eq!(read, Some((7, report())));
}

// SEQ-6.9: the value is the same whatever its length.
#[test]
fn shortened_fields_have_the_same_values() {
    let shorter = |mut field: FieldSpec| {
        let mut octets = value(field.id).unwrap();
        let draft = mapping().draft(field.id);
        // Not the addresses and times, whose types have one length.
        if draft.is_some() || field.id == ElementId::iana(138) {
            while octets.len() > 1 && octets[0] == 0 {
                octets.remove(0);
            }
        }
        field.length = u16::try_from(octets.len()).unwrap();
        (field, octets)
    };
    let (specs, octets): (Vec<_>, Vec<_>) = fields(V4).into_iter().map(shorter).unzip();
    assert!(specs.iter().any(|f| f.length == 1));
    assert_eq!(mapping().draft(specs[7].id), Some(DraftElement::RdmaSequenceEpochId));
    let layout = compiled(specs);
    let binding = Binding::new(&layout, &mapping(), Lengths::Agreed).unwrap();
    let octets = octets.concat();
    let read = layout.records(&octets).next().map(|record| binding.read(&record).unwrap());
    assert_eq!(read, Some((7, report())));
}

// SEQ-4.3, SEQ-7.3: namespaces that the profile does not name are told apart all the same.
#[test]
fn a_namespace_that_the_profile_does_not_name_is_told_from_another() {
    const VRF: FieldSpec = FieldSpec::new(ElementId::iana(234), 4);
    const NAME: FieldSpec = FieldSpec::new(ElementId::iana(236), VARIABLE);
    let read = |extra: &[FieldSpec], vrf: u32, name: &str| {
        let mut specs = extra.to_vec();
        specs.extend(fields(V4));
        let layout = compiled(specs);
        let octets = record(layout.spec(), |id| match id {
            id if id == VRF.id => vrf.to_be_bytes().to_vec(),
            id if id == NAME.id => name.as_bytes().to_vec(),
            id => value(id).unwrap_or_else(|| vec![u8::try_from(vrf).unwrap(); 2]),
        });
        let binding = Binding::new(&layout, &mapping(), Lengths::Full).unwrap();
        let record = layout.records(&octets).next().unwrap();
        let (_, report) = binding.read(&record).unwrap();
        assert_eq!(Report { other_keys: 0, ..report }, self::report());
        report.other_keys
    };
    let seen = [
        read(&[VRF], 1, ""),
        read(&[VRF], 2, ""),
        read(&[NAME], 0, "red"),
        read(&[NAME], 0, "blue"),
        read(&[VRF, NAME], 1, "red"),
        read(&[VRF, VRF], 1, ""),
    ];
    for (n, other_keys) in seen.iter().enumerate() {
        assert!(*other_keys != 0 && !seen[..n].contains(other_keys), "{n}: {seen:?}");
    }
    assert_eq!(read(&[NAME, VRF], 1, "red"), seen[4]);
    // What names no namespace may change with every record.
    let egress = FieldSpec::new(ElementId::iana(14), 2);
    assert_eq!([read(&[], 1, ""), read(&[egress], 1, ""), read(&[egress], 2, "")], [0; 3]);
}
