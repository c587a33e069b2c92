//! The record on the wire: octets both ways, and what is taken from others.

use observe::export::Exporter;
use observe::pfc::qualify::{Condition, Qualification, Qualified};
use observe::pfc::record::{Binding, BindingError, FieldError, template};
use observe::pfc::{Direction, Priority, Reading, Scope};
use wire::element::{DraftElement, ElementId, Mapping, Registry};
use wire::ipfix::{Decoder, Encoder, Event, FieldSpec, Layout, Limits, TemplateSpec, Transport};

use crate::support::scope;

pub fn qualified(direction: Direction) -> Qualified {
    let all = Condition::ALL.into_iter();
    all.fold(Qualification::new(direction), Qualification::attested).check().unwrap()
}

fn reading() -> Reading {
    Reading { scope: scope(), time_ms: 1_800_000_000_250, total: 0x0102_0304_0506_0708 }
}

/// A reading of another direction, with another number in every field.
fn transmitted() -> Reading {
    Reading {
        scope: Scope {
            domain: 5,
            point: 0x1122,
            interface: 0x0a0b_0c0d,
            direction: Direction::Transmitted,
            priority: Priority::new(6).unwrap(),
        },
        time_ms: 1_800_000_000_251,
        total: 0,
    }
}

fn exported(readings: &[Reading]) -> Vec<u8> {
    let mut exporter = Exporter::new(Mapping::default(), 5, 99, 65535).unwrap();
    let mut out = Vec::new();
    for reading in readings {
        let source = qualified(reading.scope.direction);
        exporter.readings(&source, &[*reading], 0, &mut out).unwrap();
    }
    out
}

const ENTERPRISE: [u8; 4] = [0, 0, 0x7e, 0xd9];

// PFC-rec.1, PFC-id.1, PFC-exp.2, PFC-rec.2
#[test]
fn the_messages_of_both_directions_octet_by_octet() {
    let messages = |interface: u8, template: u8, record: [u8; 29], sequence: u8| {
        let specifiers: &[&[u8]] = &[
            &[0, 138, 0, 8],
            &[0, interface, 0, 4],
            &[0x80, 31, 0, 1],
            &ENTERPRISE,
            &[1, 67, 0, 8],
            &[0x80, 32, 0, 8],
            &ENTERPRISE,
        ];
        let set = [&[0, 3, 0, 38, 1, template, 0, 5, 0, 3], &specifiers.concat()[..]].concat();
        let data = [&[1, template, 0, 33], &record[..]].concat();
        let header = [0, 10, 0, 87, 0, 0, 0, 0, 0, 0, 0, sequence, 0, 0, 0, 5];
        [&header[..], &set, &data].concat()
    };
    let received = [
        [0, 0, 0, 0, 0, 0, 0, 7].as_slice(),
        &[0, 0, 0, 11],
        &[3],
        &[0x00, 0x00, 0x01, 0xa3, 0x18, 0x5c, 0x50, 0xfa],
        &[1, 2, 3, 4, 5, 6, 7, 8],
    ];
    let sent = [
        [0, 0, 0, 0, 0, 0, 0x11, 0x22].as_slice(),
        &[0x0a, 0x0b, 0x0c, 0x0d],
        &[6],
        &[0x00, 0x00, 0x01, 0xa3, 0x18, 0x5c, 0x50, 0xfb],
        &[0; 8],
    ];
    let record = |fields: [&[u8]; 5]| <[u8; 29]>::try_from(fields.concat()).unwrap();
    let expected =
        [messages(252, 47, record(received), 0), messages(253, 48, record(sent), 1)].concat();
    let octets = exported(&[reading(), transmitted()]);
    assert_eq!(octets, expected);
    assert_eq!(read_back(&octets), [Ok(reading()), Ok(transmitted())]);
}

/// Everything that whole messages say of PFC counters.
fn read_back(mut octets: &[u8]) -> Vec<Result<Reading, FieldError>> {
    let mapping = Mapping::default();
    let mut decoder = Decoder::new(Transport::Stream, mapping, Limits::default());
    let mut found = Vec::new();
    while !octets.is_empty() {
        let length = usize::from(u16::from_be_bytes([octets[2], octets[3]]));
        let (message, rest) = octets.split_at(length);
        octets = rest;
        let domain = u32::from_be_bytes(*message[12..16].first_chunk().unwrap());
        let visited = decoder.message(message, &mut |event| match event {
            Event::Data(set) => match Binding::new(set.layout, &mapping) {
                Ok(binding) => {
                    found.extend(set.records.map(|record| binding.read(domain, &record)));
                }
                Err(error) => assert_eq!(error, BindingError::NotPfc),
            },
            Event::Fault { fault, .. } => panic!("{fault}"),
            _ => {}
        });
        visited.unwrap();
    }
    found
}

// PFC-id.1, PFC-count.3: any two fields that changed places would show.
#[test]
fn directions_priorities_and_ports_keep_their_own_numbers() {
    let mut readings = Vec::new();
    let directions = [(Direction::Received, 0), (Direction::Transmitted, 1_000_000)];
    for interface in [11, 12, 13] {
        for priority in Priority::ALL {
            for (direction, offset) in directions {
                let scope = Scope { interface, priority, direction, ..scope() };
                let total = offset + u64::from(interface) * 100 + u64::from(priority.get());
                readings.push(Reading { scope, time_ms: 1_800_000_000_000 + total, total });
            }
        }
    }
    let found: Result<Vec<_>, _> = read_back(&exported(&readings)).into_iter().collect();
    assert_eq!(found, Ok(readings));
}

#[test]
#[should_panic(expected = "a reading of this source")]
fn a_reading_of_the_other_direction_is_not_written() {
    let mut exporter = Exporter::new(Mapping::default(), 5, 99, 65535).unwrap();
    let source = qualified(Direction::Transmitted);
    _ = exporter.readings(&source, &[reading()], 0, &mut Vec::new());
}

// PFC-op.1
#[test]
fn without_a_reading_nothing_is_written() {
    let mut exporter = Exporter::new(Mapping::default(), 5, 99, 65535).unwrap();
    let mut out = Vec::new();
    exporter.readings(&qualified(Direction::Received), &[], 0, &mut out).unwrap();
    assert!(out.is_empty());
}

fn draft(element: DraftElement) -> FieldSpec {
    FieldSpec::full(Mapping::default().id(element), element.abstract_type())
}

fn iana(id: u16, length: u16) -> FieldSpec {
    FieldSpec::new(ElementId::iana(id), length)
}

fn priority() -> FieldSpec {
    draft(DraftElement::PfcPriority)
}

fn total() -> FieldSpec {
    draft(DraftElement::PfcControlFrameTotalCount)
}

fn point() -> FieldSpec {
    iana(138, 8)
}

fn ingress() -> FieldSpec {
    iana(252, 4)
}

fn time() -> FieldSpec {
    iana(323, 8)
}

fn layout(scope: &[FieldSpec], data: &[FieldSpec]) -> Layout {
    let scope_count = u16::try_from(scope.len()).unwrap();
    let spec = TemplateSpec { id: 256, scope_count, fields: [scope, data].concat() };
    Layout::compile(spec, &Registry::new(Mapping::default())).unwrap()
}

fn bound(scope: &[FieldSpec], data: &[FieldSpec]) -> Result<Binding, BindingError> {
    Binding::new(&layout(scope, data), &Mapping::default())
}

/// What is read of a record whose fields have these values.
fn read(scope: &[FieldSpec], data: &[FieldSpec], value: impl Fn(FieldSpec) -> u64) -> Reading {
    let layout = layout(scope, data);
    let mut encoder = Encoder::new(65535).unwrap();
    let mut out = Vec::new();
    let mut writer = encoder.writer(5, 0, &mut out);
    writer.template(layout.spec()).unwrap();
    let filled = writer.record(256, |record| {
        layout.fields().iter().try_for_each(|field| record.unsigned(value(*field)))
    });
    filled.unwrap();
    writer.finish();
    read_back(&out).remove(0).unwrap()
}

fn value_of(field: FieldSpec) -> u64 {
    let reading = reading();
    match field.id {
        id if id == point().id => reading.scope.point,
        id if id == ingress().id => reading.scope.interface.into(),
        id if id == priority().id => reading.scope.priority.get().into(),
        id if id == time().id => reading.time_ms,
        id if id == total().id => reading.total,
        _ => 9,
    }
}

fn permutations<T: Clone>(of: &[T]) -> Vec<Vec<T>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..of.len() {
        let mut rest = of.to_vec();
        let first = rest.remove(at);
        for mut others in permutations(&rest) {
            others.insert(0, first.clone());
            all.push(others);
        }
    }
    all
}

// PFC-rec.1, PFC-exp.1
#[test]
fn any_order_within_scope_and_data_and_any_additional_element_is_taken() {
    let stranger = FieldSpec::new(ElementId { pen: 9, id: 5 }, 3);
    let (line_card, octets) = (iana(141, 4), iana(1, 8));
    for scope in permutations(&[point(), ingress(), priority(), line_card]) {
        for data in permutations(&[time(), total(), octets, stranger]) {
            assert_eq!(read(&scope, &data, value_of), reading());
        }
    }
}

// PFC-rec.1: reduced-size encoding of RFC 7011, section 6.2.
#[test]
fn shorter_numbers_are_taken_and_longer_ones_or_a_shorter_time_are_not() {
    let small = |field: FieldSpec| if field.id == total().id { 500 } else { value_of(field) };
    let (point, short) = (iana(138, 4), FieldSpec::new(total().id, 2));
    let found = read(&[point, iana(252, 1), priority()], &[time(), short], small);
    assert_eq!(found, Reading { total: 500, ..reading() });
    for wrong in [(323, 4), (138, 9), (252, 5), (252, 0)] {
        let fields = [point, ingress(), priority(), time(), total()];
        let fields = fields.map(|field| match field.id.id {
            id if id == wrong.0 && field.id.pen == 0 => iana(id, wrong.1),
            _ => field,
        });
        let spec = TemplateSpec { id: 256, scope_count: 3, fields: fields.to_vec() };
        let layout = Layout::compile(spec, &Registry::new(Mapping::default()));
        // Refused by the codec already, or by the binding.
        let bound = layout.map(|layout| Binding::new(&layout, &Mapping::default()).is_ok());
        assert_ne!(bound, Ok(true), "{wrong:?}");
    }
}

// PFC-rec.1, PFC-id.1
#[test]
fn what_is_missing_twice_or_misplaced_is_refused_with_the_reason() {
    let (scope, data) = ([point(), ingress(), priority()], [time(), total()]);
    let egress = iana(253, 4);
    let cases: [(&[FieldSpec], &[FieldSpec], &str); 15] = [
        (&scope[1..], &data, "observationPointId is missing"),
        (&scope[..2], &data, "pfcPriority is missing"),
        (&scope, &data[1..], "observationTimeMilliseconds is missing"),
        (
            &[point(), priority()],
            &data,
            "neither ingressPhysicalInterface nor egressPhysicalInterface, expected one of them",
        ),
        (
            &[point(), ingress(), egress, priority()],
            &data,
            "ingressPhysicalInterface and egressPhysicalInterface, expected one of them",
        ),
        (
            &scope,
            &[time(), total(), egress],
            "ingressPhysicalInterface and egressPhysicalInterface, expected one of them",
        ),
        (
            &[point(), point(), ingress(), priority()],
            &data,
            "observationPointId more than once, expected once",
        ),
        (
            &[point(), ingress(), ingress(), priority()],
            &data,
            "ingressPhysicalInterface more than once, expected once",
        ),
        (&scope, &[time(), total(), priority()], "pfcPriority more than once, expected once"),
        (
            &scope,
            &[time(), time(), total()],
            "observationTimeMilliseconds more than once, expected once",
        ),
        (
            &scope,
            &[total(), time(), total()],
            "pfcControlFrameTotalCount more than once, expected once",
        ),
        (
            &scope[..2],
            &[priority(), time(), total()],
            "pfcPriority behind the scope, expected in it",
        ),
        (
            &[point(), priority()],
            &[ingress(), time(), total()],
            "ingressPhysicalInterface behind the scope, expected in it",
        ),
        (
            &[point(), ingress(), priority(), time()],
            &[total()],
            "observationTimeMilliseconds in the scope, expected behind it",
        ),
        (
            &[point(), ingress(), priority(), total()],
            &[time()],
            "pfcControlFrameTotalCount in the scope, expected behind it",
        ),
    ];
    for (scope, data, words) in cases {
        let error = bound(scope, data).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
    assert_eq!(bound(&scope, &data).map(|b| b.direction()), Ok(Direction::Received));
}

// PFC-rec.1
#[test]
fn a_template_without_a_scope_is_no_options_template() {
    let fields = [point(), ingress(), priority(), time(), total()];
    assert_eq!(bound(&[], &fields).map(|_| ()), Err(BindingError::NotOptions));
}

// PFC-exp.1: a flow record may name the priority, and so may somebody's options.
#[test]
fn templates_of_others_are_let_through() {
    for (scope, data) in [
        (vec![], vec![iana(8, 4), iana(12, 4), priority()]),
        (vec![priority()], vec![iana(141, 4)]),
        (vec![iana(145, 2)], vec![iana(173, 8)]),
    ] {
        assert_eq!(bound(&scope, &data).map(|_| ()), Err(BindingError::NotPfc));
    }
}

// PFC-id.3
#[test]
fn a_priority_above_7_is_refused() {
    let spec = template(Direction::Received, 256, &Mapping::default());
    for index in [7, 8, 9, 8 | 1 << 3, 255] {
        let mut encoder = Encoder::new(65535).unwrap();
        let mut out = Vec::new();
        let mut writer = encoder.writer(5, 0, &mut out);
        writer.template(&spec).unwrap();
        let values = [7, 11, u64::from(index), 1, 2];
        let filled =
            writer.record(256, |record| values.into_iter().try_for_each(|n| record.unsigned(n)));
        filled.unwrap();
        writer.finish();
        let found = read_back(&out).remove(0);
        match Priority::new(index) {
            Some(priority) => assert_eq!(found.map(|r| r.scope.priority), Ok(priority)),
            None => assert_eq!(found, Err(FieldError::Priority(index))),
        }
    }
    assert_eq!(FieldError::Priority(8).to_string(), "pfcPriority 8, expected 0 to 7");
}

// PFC-exp.2: numbers of another enterprise are not these elements.
#[test]
fn numbers_under_another_enterprise_are_somebody_elses() {
    let theirs = Mapping::new(9).unwrap();
    let spec = template(Direction::Received, 256, &theirs);
    let layout = Layout::compile(spec, &Registry::new(Mapping::default())).unwrap();
    assert!(Binding::new(&layout, &theirs).is_ok());
    let ours = Binding::new(&layout, &Mapping::default());
    assert_eq!(ours.map(|_| ()), Err(BindingError::NotPfc));
}
