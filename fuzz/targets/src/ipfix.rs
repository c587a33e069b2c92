//! A stream of IPFIX messages: read, and what was read written and read again.

use wire::element::Mapping;
use wire::ipfix::{
    DataSet, Decoder, Encoder, Event, Frame, Limits, MESSAGE_MAX, Record, Transport, frame,
};

const LIMITS: Limits =
    Limits { templates_max: 16, fields_max: 64, domains_max: 4, learned_max: 16 };
/// Records of a set that are written again.
const AGAIN_MAX: usize = 4;

/// Reads messages until one is not whole or no message. The first octet chooses the transport; the
/// stream is the rest.
///
/// # Panics
/// Where something does not hold.
pub fn ipfix(data: &[u8]) {
    let Some((first, mut octets)) = data.split_first() else {
        return;
    };
    let transport =
        [Transport::Stream, Transport::Datagram, Transport::File][usize::from(first % 3)];
    let mut decoder = Decoder::new(transport, Mapping::default(), LIMITS);
    while let Ok(Frame::Message { octets: message, rest }) = frame(octets) {
        let before = decoder.templates();
        let mut events = 0;
        let read = decoder.message(message, &mut |event| {
            events += 1;
            seen(&event, message);
        });
        if read.is_err() {
            assert_eq!(
                (decoder.templates(), events),
                (before, 0),
                "a refused message leaves no trace"
            );
        }
        assert!(decoder.templates() <= LIMITS.templates_max);
        octets = rest;
    }
}

fn seen(event: &Event<'_>, message: &[u8]) {
    match event {
        Event::Data(set) => {
            records(set, message);
            again(set);
        }
        Event::Template { layout, .. } => assert!(layout.fields().len() <= LIMITS.fields_max),
        Event::UndecodableData { at, octets, .. } | Event::UnknownSet { at, octets, .. } => {
            assert_eq!(message.get(*at..*at + octets.len()), Some(*octets));
        }
        Event::Fault { at, fault } => {
            assert!(*at <= message.len());
            assert!(!fault.to_string().is_empty());
        }
        _ => {}
    }
}

/// Records follow each other without a hole, and each field can be had in every way that there is.
fn records(set: &DataSet<'_>, message: &[u8]) {
    let mut at = set.at;
    for record in set.records.clone() {
        let octets = record.as_octets();
        assert!(!octets.is_empty(), "a record of no octets never ends");
        assert_eq!(message.get(at..at + octets.len()), Some(octets));
        at += octets.len();
        let fields = set.layout.fields();
        assert_eq!(record.values(set.registry).count(), fields.len());
        for (index, field) in fields.iter().enumerate() {
            let slot = set.layout.slot_at(index).expect("a field has a slot");
            assert!(record.octets(slot).len() <= octets.len());
            assert!(record.value(index, set.registry).is_some());
            if let Some(slot) = set.layout.unsigned(field.id) {
                let _ = record.unsigned(slot);
            }
        }
    }
}

/// What was read can be written, and reads as it did.
fn again(set: &DataSet<'_>) {
    let domain = 7;
    let mut out = Vec::new();
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("the largest message");
    let mut writer = encoder.writer(domain, 0, &mut out);
    if writer.template(set.layout.spec()).is_err() {
        panic!("a template that was read cannot be written: {:?}", set.layout.spec());
    }
    let taken: Vec<_> = set.records.clone().take(AGAIN_MAX).map(|record| fields(&record)).collect();
    for record in &taken {
        let written =
            writer.record(set.layout.id(), |out| record.iter().try_for_each(|of| out.octets(of)));
        assert!(written.is_ok(), "a record that was read cannot be written: {written:?}");
    }
    writer.finish();
    let mut decoder = Decoder::new(Transport::Stream, Mapping::default(), LIMITS);
    let mut found = Vec::new();
    let mut rest = out.as_slice();
    while let Ok(Frame::Message { octets, rest: behind }) = frame(rest) {
        let read = decoder.message(octets, &mut |event| match event {
            Event::Data(set) => found.extend(set.records.map(|record| fields(&record))),
            Event::Template { .. } | Event::TypeInformation(_) => {}
            // Type records may name what this session does not take.
            Event::Fault { .. } if set.layout.is_type_information() => {}
            other => panic!("unexpected in what was written: {other:?}"),
        });
        assert!(read.is_ok(), "what was written is refused: {read:?}");
        rest = behind;
    }
    assert!(rest.is_empty());
    assert_eq!(found, taken);
}

fn fields(record: &Record<'_>) -> Vec<Vec<u8>> {
    let layout = record.layout();
    let slots = (0..layout.fields().len()).filter_map(|index| layout.slot_at(index));
    slots.map(|slot| record.octets(slot).to_vec()).collect()
}
