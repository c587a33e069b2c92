//! Tests of `dump`: from values through the encoder to lines.

use super::*;
use wire::element::Element;
use wire::ipfix::{EncodeError, Encoder, FieldSpec, FlowKeys, TemplateSpec, flow_keys_template};

fn iana(id: u16, length: u16) -> FieldSpec {
    FieldSpec::new(ElementId::iana(id), length)
}

fn draft(element: DraftElement) -> FieldSpec {
    FieldSpec::full(Mapping::default().id(element), element.abstract_type())
}

fn sequence_spec() -> TemplateSpec {
    let mut fields = vec![iana(138, 8), iana(8, 4), iana(12, 4)];
    fields.extend([DraftElement::RdmaDestinationQp, DraftElement::RdmaPartitionKey].map(draft));
    fields.extend([iana(152, 8), iana(153, 8)]);
    fields.extend(DraftElement::ALL[..12].iter().map(|d| draft(*d)));
    TemplateSpec { id: 256, scope_count: 0, fields }
}

/// One message written by `fill`, in domain 1.
fn stream(
    fill: impl FnOnce(&mut wire::ipfix::MessageWriter<'_>) -> Result<(), EncodeError>,
) -> Vec<u8> {
    let mut encoder = Encoder::new(MESSAGE_MAX).expect("legal");
    let mut out = Vec::new();
    let mut writer = encoder.writer(1, 1_700_000_000, &mut out);
    fill(&mut writer).expect("written");
    writer.finish();
    out
}

/// One record of a template of its own, as its object.
fn one(fields: Vec<FieldSpec>, values: &[&[u8]]) -> Json {
    let spec = TemplateSpec { id: 300, scope_count: 0, fields };
    let octets = stream(|w| {
        w.template(&spec)?;
        w.record(300, |r| values.iter().try_for_each(|v| r.octets(v)))
    });
    lines(&octets).1.pop().expect("a record")
}

fn lines(octets: &[u8]) -> (Result<Summary, DumpError>, Vec<Json>) {
    let mut out = Vec::new();
    let result = dump(octets, &mut out, Mapping::default());
    let text = String::from_utf8(out).expect("text");
    assert!(text.is_empty() || text.ends_with('\n'));
    let objects = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    (result, objects)
}

fn sequence_stream() -> Vec<u8> {
    stream(|w| {
        w.template(&sequence_spec())?;
        w.record(256, |r| {
            r.unsigned(42)?;
            r.octets(&[192, 0, 2, 1])?;
            r.octets(&[192, 0, 2, 2])?;
            for n in [17, 0xffff, 1_700_000_000_001, 1_700_000_000_002, 1, 2, 1024, 0x0061] {
                r.unsigned(n)?;
            }
            for n in [JSON_EXACT_MAX, JSON_EXACT_MAX + 1, u64::MAX, 0, 0, 6, 7, 8] {
                r.unsigned(n)?;
            }
            Ok(())
        })
    })
}

#[test]
fn a_sequence_record_has_the_names_of_the_draft_and_exact_numbers() {
    let (summary, objects) = lines(&sequence_stream());
    let summary = summary.expect("read");
    assert_eq!((summary.messages, summary.templates, summary.sequence), (1, 1, 1));
    assert_eq!(objects[0]["record"], "template");
    assert_eq!(objects[0]["fields"].as_array().expect("fields").len(), 19);
    assert_eq!(
        objects[0]["fields"][3],
        json!({"name": "rdmaDestinationQP", "enterprise": 32473, "id": 21, "length": 4})
    );
    assert_eq!(
        objects[1],
        json!({
            "record": "sequence",
            "observationDomainId": 1,
            "observationPointId": 42,
            "sourceIPv4Address": "192.0.2.1",
            "destinationIPv4Address": "192.0.2.2",
            "rdmaDestinationQP": 17,
            "rdmaPartitionKey": 65535,
            "flowStartMilliseconds": 1_700_000_000_001u64,
            "flowEndMilliseconds": 1_700_000_000_002u64,
            "rdmaSequenceEpochId": 1,
            "rdmaSequenceReportId": 2,
            "rdmaSequenceWindow": 1024,
            "rdmaSequenceFlags": 0x0061,
            "skippedPsnTotalCount": 9_007_199_254_740_991u64,
            "filledPsnTotalCount": "9007199254740992",
            "expiredPsnTotalCount": "18446744073709551615",
            "abandonedPsnTotalCount": 0,
            "pendingPsnCount": 0,
            "repeatedPsnTotalCount": 6,
            "requestPacketTotalCount": 7,
            "unclassifiedLatePacketTotalCount": 8,
            "flags": ["finalEpoch", "generationUnverified", "0x0040"],
        })
    );
}

#[test]
fn a_pfc_record_is_told_by_its_elements_and_other_options_are_options() {
    // PFC-rec.1
    let spec = TemplateSpec {
        id: 257,
        scope_count: 3,
        fields: vec![
            iana(138, 8),
            iana(252, 4),
            draft(DraftElement::PfcPriority),
            iana(323, 8),
            draft(DraftElement::PfcControlFrameTotalCount),
        ],
    };
    let octets = stream(|w| {
        w.template(&spec)?;
        w.record(257, |r| {
            [1, 7, 3, 1_700_000_000_000, 0].into_iter().try_for_each(|n| r.unsigned(n))
        })?;
        w.template(&flow_keys_template(258))?;
        w.flow_keys(258, FlowKeys::of(&spec, &[ElementId::iana(138)])?)
    });
    let (summary, objects) = lines(&octets);
    assert_eq!(summary.expect("read").pfc, 1);
    assert_eq!(
        objects[1],
        json!({
            "record": "pfc", "observationDomainId": 1, "observationPointId": 1,
            "ingressPhysicalInterface": 7, "pfcPriority": 3,
            "observationTimeMilliseconds": 1_700_000_000_000u64, "pfcControlFrameTotalCount": 0,
        })
    );
    assert_eq!(
        objects[3],
        json!({"record": "options", "observationDomainId": 1, "templateId": 257, "flowKeyIndicator": 1})
    );
}

// PFC-rec.1, PFC-id.1, PFC-id.3
#[test]
fn what_is_no_reading_of_a_pfc_counter_is_shown_as_options() {
    let pfc = [DraftElement::PfcPriority, DraftElement::PfcControlFrameTotalCount].map(draft);
    let with = |scope_count: u16, fields: &[FieldSpec], priority: u64| {
        let spec = TemplateSpec { id: 257, scope_count, fields: fields.to_vec() };
        let octets = stream(|w| {
            w.template(&spec)?;
            w.record(257, |r| {
                let value = |field: &FieldSpec| if field.id == pfc[0].id { priority } else { 1 };
                fields.iter().try_for_each(|field| r.unsigned(value(field)))
            })
        });
        lines(&octets).1.pop().expect("a record")["record"].clone()
    };
    let (point, time) = (iana(138, 8), iana(323, 8));
    let (ingress, egress) = (iana(252, 4), iana(253, 4));
    let good = [point, egress, pfc[0], time, pfc[1]];
    assert_eq!(with(3, &good, 7), "pfc");
    assert_eq!(with(3, &good, 8), "options", "a priority above 7");
    assert_eq!(with(3, &[point, egress, pfc[0], ingress, time, pfc[1]], 7), "options");
    assert_eq!(with(3, &[point, egress, pfc[0], pfc[1]], 7), "options", "no time");
    assert_eq!(with(2, &good, 7), "options", "the priority is no scope");
}

#[test]
fn an_element_twice_is_an_array_and_a_stranger_is_named_by_its_number() {
    let fields =
        vec![iana(8, 4), iana(8, 4), iana(8, 4), FieldSpec::new(ElementId { pen: 9, id: 5 }, 2)];
    assert_eq!(
        one(fields, &[&[10, 0, 0, 1], &[10, 0, 0, 2], &[10, 0, 0, 3], &[0xab, 0xcd]]),
        json!({
            "record": "other", "observationDomainId": 1,
            "sourceIPv4Address": ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "e9id5": "abcd",
        })
    );
}

#[test]
fn strings_are_escaped_and_illegal_octets_are_no_value() {
    let fields =
        vec![iana(82, VARIABLE), iana(83, VARIABLE), iana(276, 1), iana(515, 9), iana(56, 6)];
    let line = one(fields, &[b"a\"\n\x1b", &[0xc3, 0x28], &[7], &[1; 9], &[2, 0, 0, 0, 0, 9]]);
    assert_eq!(line["interfaceName"], "a\"\n\u{1b}");
    assert_eq!(line["interfaceDescription"], json!({"illegal": "c328"}));
    assert_eq!(line["dataRecordsReliability"], json!({"illegal": "07"}));
    assert_eq!(line["ipv6ExtensionHeadersFull"], "0x010101010101010101");
    assert_eq!(line["sourceMacAddress"], "02:00:00:00:00:09");
}

#[test]
fn times_are_integers_of_their_unit_since_1970() {
    let ntp = [0x83, 0xaa, 0x7e, 0x81, 0x80, 0, 0, 0]; // a second and a half
    let fields = vec![iana(150, 4), iana(154, 8), iana(156, 8)];
    let line = one(fields, &[&[0, 0, 0, 1], &ntp, &ntp]);
    assert_eq!(line["flowStartSeconds"], 1);
    assert_eq!(line["flowStartMicroseconds"], 1_500_000);
    assert_eq!(line["flowStartNanoseconds"], 1_500_000_000);
}

#[test]
fn a_record_with_a_domain_of_its_own_keeps_both() {
    let line = one(vec![iana(149, 4)], &[&[0, 0, 0, 9]]);
    assert_eq!(
        line,
        json!({"record": "other", "messageObservationDomainId": 1, "observationDomainId": 9})
    );
}

#[test]
fn a_name_that_a_peer_gives_cannot_take_the_place_of_another() {
    for (name, key) in [
        ("record", "e9id5"),
        ("flags", "e9id5"),
        ("protocolIdentifier", "e9id5"),
        ("depth", "depth"),
    ] {
        let element = Element {
            id: ElementId { pen: 9, id: 5 },
            name: name.to_owned().into(),
            abstract_type: wire::element::AbstractType::Unsigned16,
            semantics: wire::element::Semantics::Quantity,
            units: wire::element::Units::None,
            range: None,
        };
        let spec = TemplateSpec {
            id: 300,
            scope_count: 0,
            fields: vec![FieldSpec::new(element.id, 2), iana(4, 1)],
        };
        let octets = stream(|w| {
            w.type_information(400, 401, std::iter::once(&element))?;
            w.template(&spec)?;
            w.record(300, |r| r.unsigned(258).and_then(|()| r.unsigned(6)))
        });
        let line = lines(&octets).1.pop().expect("a record");
        assert_eq!(line["record"], "other");
        assert_eq!((&line[key], &line["protocolIdentifier"]), (&json!(258), &json!(6)), "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_shown_as_octets_and_counted() {
    // In order: data of no template, a set of no kind, a withdrawal of nothing, a jump.
    let first = [
        &[0, 10, 0, 38, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..],
        &[1, 0, 0, 6, 0xab, 0xcd, 0, 9, 0, 8, 1, 2, 3, 4, 0, 2, 0, 8, 1, 0, 0, 0],
    ]
    .concat();
    let empty =
        |sequence| [&[0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0][..], &[sequence, 0, 0, 0, 1]].concat();
    let (summary, objects) = lines(&[first, empty(3), empty(5)].concat());
    let summary = summary.expect("read");
    assert_eq!(
        (summary.messages, summary.unread_sets, summary.faults, summary.sequence_gaps),
        (3, 2, 1, 1)
    );
    assert_eq!(objects[0]["undecodable"], "abcd");
    assert_eq!((&objects[1]["setId"], &objects[1]["unknownSet"]), (&json!(9), &json!("01020304")));
    assert_eq!(
        (&objects[2]["fault"], &objects[2]["offset"]),
        (&json!("withdrawal of unknown template 256"), &json!(34))
    );
    assert_eq!(objects[3]["sequenceGap"], json!({"expected": 3, "found": 5}));
    assert!(objects.iter().all(|o| o["record"] == "other"));
}

#[test]
fn a_bad_message_is_an_error_with_its_offset_and_what_came_before_stands() {
    let good = sequence_stream();
    let mut bad = good.clone();
    let last = bad.len() - 122; // the length of the data set
    bad[last] += 1;
    let (result, objects) = lines(&[good.clone(), bad].concat());
    let error = result.expect_err("bad").to_string();
    assert!(
        error.starts_with(&format!("message at octet {} of the input: set length", good.len())),
        "{error}"
    );
    assert_eq!(objects.len(), 2);
    let (result, objects) = lines(&[&good[..], &[0, 9]].concat());
    assert!(
        matches!(result, Err(DumpError::Message { at, error: Error::Version { found: 9 } }) if at == good.len() as u64)
    );
    assert_eq!(objects.len(), 2);
}

#[test]
fn an_input_cut_at_any_octet_is_truncated_there_and_nowhere_else() {
    let one = sequence_stream();
    let two = [&one[..], &one[..]].concat();
    for cut in 0..=two.len() {
        let (result, objects) = lines(&two[..cut]);
        // The second message repeats the sequence number of the first, which is told in a line.
        let read = objects.iter().filter(|o| o["sequenceGap"].is_null()).count();
        assert_eq!(read, 2 * (cut / one.len()));
        match (result, cut % one.len()) {
            (Ok(summary), 0) => assert_eq!(summary.octets, cut as u64),
            (Err(DumpError::Truncated { at, found, .. }), rest) => {
                assert_eq!((at, found), ((cut - rest) as u64, rest));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A reader that gives one octet a call.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.0.len().min(1);
        to[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn octets_one_by_one_give_the_same_lines() {
    let octets = sequence_stream();
    let (mut slow, mut fast) = (Vec::new(), Vec::new());
    dump(Drip(&octets), &mut slow, Mapping::default()).expect("read");
    dump(&octets[..], &mut fast, Mapping::default()).expect("read");
    assert_eq!(slow, fast);
}

/// A reader of several pieces that knows how much had been written when each was asked for.
struct Asked<'a> {
    pieces: Vec<&'a [u8]>,
    written: &'a std::cell::Cell<usize>,
    when_asked: Vec<usize>,
}

impl Read for &mut Asked<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.when_asked.push(self.written.get());
        if self.pieces.is_empty() {
            return Ok(0);
        }
        let piece = self.pieces.remove(0);
        to[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

/// A writer that counts what reaches it.
struct Counted<'a>(&'a std::cell::Cell<usize>);

impl Write for Counted<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get() + octets.len());
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_are_out_before_more_of_a_stream_is_waited_for() {
    let one = sequence_stream();
    let two = [&one[..], &one[..]].concat();
    let written = std::cell::Cell::new(0);
    let mut input = Asked { pieces: vec![&one, &two], written: &written, when_asked: Vec::new() };
    let mut out = io::BufWriter::with_capacity(1 << 20, Counted(&written));
    dump(&mut input, &mut out, Mapping::default()).expect("read");
    let [at_start, after_one, after_three] = input.when_asked[..] else {
        panic!("{:?}", input.when_asked)
    };
    assert!(at_start == 0 && 0 < after_one && after_one < after_three);
    assert_eq!(after_three, written.get(), "nothing is left for the end");
}

#[test]
fn an_output_that_fails_ends_the_dump() {
    let mut full = [0u8; 10];
    let result = dump(&sequence_stream()[..], &mut &mut full[..], Mapping::default());
    assert!(matches!(result, Err(DumpError::Output(_))));
}
