//! The extension: what an instance vouches for, how exporters name it and how it is read.

use observe::export::Exporter;
use observe::pfc::instance::{InstanceId, Naming};
use observe::pfc::interval::{Interval, Pace, Reason, Sighting, Tick};
use observe::pfc::record::{Binding, FurtherScope};
use observe::pfc::widen::Widened;
use observe::pfc::{Direction, Reading};
use wire::element::{DraftElement, ElementId, Mapping};
use wire::ipfix::{
    Decoder, Encoder, Event, FieldSpec, Limits as DecoderLimits, TemplateSpec, Transport,
};

use crate::record::qualified;
use crate::support::scope;

fn id(n: u64) -> InstanceId {
    InstanceId::new(n).unwrap()
}

fn widened(run: Option<u64>) -> Widened {
    Widened { total: 5, run, begins: None }
}

// PFC-sem.2
#[test]
fn an_id_stays_while_its_run_and_its_clock_go_on() {
    let mut naming = Naming::default();
    let mut given = 0;
    // Run, clock and millisecond of the one that is never set, time of the day; the id.
    let polls = [
        (Some(1), 1, 0, 1_000_000, Some(1)),
        (Some(1), 1, 1000, 1_001_000, Some(1)),
        // Within what a clock is slewed by: a thousandth and 5 ms.
        (Some(1), 1, 2000, 1_002_006, Some(1)),
        (Some(1), 1, 3000, 1_003_000, Some(1)),
        // One millisecond more, either way: it was set.
        (Some(1), 1, 4000, 1_004_007, Some(2)),
        (Some(1), 1, 5000, 1_005_000, Some(3)),
        // Back behind the last reading.
        (Some(1), 1, 6000, 1_004_999, Some(4)),
        // Another run; another boot; and neither again.
        (Some(2), 1, 7000, 1_006_000, Some(5)),
        (Some(2), 2, 8000, 1_007_000, Some(6)),
        (Some(2), 2, 9000, 1_008_000, Some(6)),
        // Nobody knows the run: nor is it known to be the one from before.
        (None, 2, 10_000, 1_009_000, None),
        (Some(2), 2, 11_000, 1_010_000, Some(7)),
    ];
    for (run, clock, ms, time_ms, expected) in polls {
        let found = naming.name(&widened(run), Tick { clock, ms }, time_ms, || {
            given += 1;
            id(given)
        });
        assert_eq!(found.map(InstanceId::get), expected, "at {ms}");
    }
}

// PFC-sem.2, PFC-sem.3
#[test]
fn one_id_at_both_readings_makes_an_interval_exact_and_two_ids_do_not() {
    let pace = Pace::per_second(1_000);
    let at = |id: InstanceId, time_ms: u64, total| Sighting {
        reading: Reading { scope: scope(), time_ms, total },
        known: id.known(time_ms, pace),
    };
    let first = at(id(9), 1000, u64::MAX);
    let count = |later| match Interval::between(&first, &later) {
        Interval::Exact(frames) => Ok((frames.count(), frames.elapsed_ms())),
        Interval::Unknown(reason) => Err(reason),
    };
    assert_eq!(count(at(id(9), 3000, 4)), Ok((5, 2000)));
    assert_eq!(count(at(id(10), 3000, 4)), Err(Reason::InstanceReplaced));
    // A thousand a second, and what a cut-off millisecond hides.
    assert_eq!(count(at(id(9), 3000, 2000)), Ok((2001, 2000)));
    assert_eq!(count(at(id(9), 3000, 2001)), Err(Reason::TooMany));
    assert_eq!(count(at(id(9), 1000, 0)), Err(Reason::NotLater));
    assert_eq!(count(at(id(9), 1000, 1)), Err(Reason::TooMany));
    assert_eq!(count(at(id(9), 999, 0)), Err(Reason::NotLater));
    let nobody_says = Sighting { known: id(9).known(3000, None), ..at(id(9), 3000, 4) };
    assert_eq!(count(nobody_says), Err(Reason::PaceUnknown));
}

#[test]
fn no_instance_is_number_zero() {
    assert_eq!(InstanceId::new(0), None);
    assert_eq!(InstanceId::new(1).map(InstanceId::get), Some(1));
}

/// What messages hold: readings with their instances.
fn found(octets: &[u8]) -> Vec<(Reading, Option<InstanceId>, FurtherScope)> {
    let mapping = Mapping::default();
    let mut decoder = Decoder::new(Transport::Stream, mapping, DecoderLimits::default());
    let mut found = Vec::new();
    let mut rest = octets;
    while !rest.is_empty() {
        let (message, behind) = rest.split_at(usize::from(u16::from_be_bytes([rest[2], rest[3]])));
        rest = behind;
        let visited = decoder.message(message, &mut |event| match event {
            Event::Data(set) => {
                let binding = Binding::new(set.layout, &mapping).unwrap();
                found.extend(set.records.map(|record| {
                    let reading = binding.read(5, &record).unwrap();
                    (reading, binding.instance(&record), binding.further(&record))
                }));
            }
            Event::Fault { fault, .. } => panic!("{fault}"),
            _ => {}
        });
        visited.unwrap();
    }
    found
}

fn readings() -> [Reading; 3] {
    [1, 2, 3].map(|n| Reading { scope: scope(), time_ms: 1_800_000_000_000 + n, total: n })
}

// PFC-exp.1, PFC-rec.1
#[test]
fn the_instance_stands_behind_the_total_and_only_where_it_is_known() {
    let mut exporter = Exporter::new(Mapping::default(), 5, 99, 65535).unwrap().extended();
    let [a, b, c] = readings();
    let source = qualified(Direction::Received);
    let sent = [(a, None), (b, Some(id(0x0102_0304_0506_0708))), (c, Some(id(7)))];
    let mut out = Vec::new();
    exporter.identified(&source, &sent, 0, &mut out).unwrap();
    let back: Vec<_> = found(&out).into_iter().map(|(reading, id, _)| (reading, id)).collect();
    assert_eq!(back, sent);
    // Template 305: six fields, three of scope, the last one ours.
    let set = [&[1, 49, 0, 6, 0, 3, 0, 138, 0, 8][..]].concat();
    assert!(out.windows(set.len()).any(|octets| octets == set));
    let last = [0x80, 33, 0, 8, 0, 0, 0x7e, 0xd9];
    assert!(out.windows(last.len()).any(|octets| octets == last));
    // Each template once.
    let length = out.len();
    exporter.identified(&source, &sent, 0, &mut out).unwrap();
    assert_eq!(out.len() - length, 16 + 4 + 29 + 4 + 2 * 37);
}

#[test]
#[should_panic(expected = "an extension that is asked for")]
fn nothing_of_the_extension_goes_out_unasked() {
    let mut exporter = Exporter::new(Mapping::default(), 5, 99, 65535).unwrap();
    let sent = [(readings()[0], Some(id(7)))];
    _ = exporter.identified(&qualified(Direction::Received), &sent, 0, &mut Vec::new());
}

#[test]
fn only_an_extended_exporter_describes_the_extension() {
    for extended in [false, true] {
        let exporter = Exporter::new(Mapping::default(), 5, 99, 65535).unwrap();
        let mut exporter = if extended { exporter.extended() } else { exporter };
        let mut out = Vec::new();
        exporter.begin(0, &mut out).unwrap();
        let name = b"pfcCounterInstanceId";
        assert_eq!(out.windows(name.len()).any(|octets| octets == name), extended);
    }
}

/// A record whose instances stand at these places, of these lengths, all with this value.
fn of_others(in_scope: bool, lengths: &[u16], value: u64) -> (Option<InstanceId>, FurtherScope) {
    let mapping = Mapping::default();
    let iana = |id, length| FieldSpec::new(ElementId::iana(id), length);
    let draft = |e: DraftElement| FieldSpec::full(mapping.id(e), e.abstract_type());
    let ours = mapping.id(DraftElement::PfcCounterInstanceId);
    let mut fields = vec![iana(138, 8), iana(252, 4), draft(DraftElement::PfcPriority)];
    let mut values = vec![7, 11, 3];
    let data = [iana(323, 8), draft(DraftElement::PfcControlFrameTotalCount)];
    let mut add = |fields: &mut Vec<_>| {
        fields.extend(lengths.iter().map(|length| FieldSpec::new(ours, *length)));
        values.extend(lengths.iter().map(|_| value));
    };
    let mut scope_count = 3;
    if in_scope {
        add(&mut fields);
        scope_count += u16::try_from(lengths.len()).unwrap();
        fields.extend(data);
        values.extend([1, 2]);
    } else {
        // In front of the time and the total: the order behind the scope is free.
        add(&mut fields);
        fields.extend(data);
        values.extend([1, 2]);
    }
    let mut encoder = Encoder::new(65535).unwrap();
    let mut out = Vec::new();
    let mut writer = encoder.writer(5, 0, &mut out);
    writer.template(&TemplateSpec { id: 256, scope_count, fields }).unwrap();
    writer.record(256, |record| values.iter().try_for_each(|n| record.unsigned(*n))).unwrap();
    writer.finish();
    let (_, instance, further) = found(&out).remove(0);
    (instance, further)
}

// PFC-exp.1: it is an additional element, so no template is refused for it.
#[test]
fn an_instance_is_read_where_it_can_mean_one_thing() {
    let none = FurtherScope::default();
    assert_eq!(of_others(false, &[8], 77), (Some(id(77)), none.clone()));
    assert_eq!(of_others(false, &[2], 77), (Some(id(77)), none.clone()));
    assert_eq!(of_others(false, &[8], 0), (None, none.clone()));
    assert_eq!(of_others(false, &[8, 8], 77), (None, none));
    let (instance, further) = of_others(true, &[8], 77);
    assert_eq!(instance, None);
    assert!(!further.is_empty(), "in the scope it is another counter");
}
