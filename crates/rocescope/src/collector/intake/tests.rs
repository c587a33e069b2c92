use std::collections::BTreeMap;

use observe::collect::Epoch;
use observe::export::Exporter;
use observe::profile::Shape;
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts as Psns;
use observe::window::Window;
use wire::element::{DraftElement, PEN_DOCUMENTATION};
use wire::frame::{Addresses, Namespace};
use wire::ipfix::{Encoder, TemplateSpec};

use super::*;

const SESSION: SessionId = SessionId(7);

fn mapping() -> Mapping {
    Mapping::new(PEN_DOCUMENTATION).unwrap()
}

fn bounds() -> Bounds {
    Bounds {
        decoder: wire::ipfix::Limits::default(),
        session: collect::Limits { inactivity_ms: 1_000, ..collect::Limits::default() },
        pfc: PfcRules::default(),
        malformed_in_a_row_max: 3,
    }
}

fn intake() -> Intake {
    Intake::new(SESSION, mapping(), [1, 2], bounds(), 1)
}

fn report(epoch_id: u64, report_id: u64, requests: u64) -> Report {
    let key = StreamKey {
        addresses: Addresses::v4([10, 0, 0, 1], [10, 0, 0, 2]),
        namespace: Namespace::default(),
        qp: 17,
        pkey: 0xffff,
    };
    let counts = Psns { requests, ..Psns::default() };
    let window = Window::new(64).unwrap();
    let flags = Flags::GENERATION_UNVERIFIED;
    let snapshot = Snapshot { key, window, flags, start_ms: 5, end_ms: 5 + requests, counts };
    Report { epoch_id, report_id, snapshot, other_keys: 0 }
}

fn last(mut report: Report) -> Report {
    report.snapshot.flags = report.snapshot.flags.with(Flags::FINAL_EPOCH);
    report
}

/// What an honest exporter sends: type records, templates, and each report in a message.
fn exported(domain: u32, reports: &[Report]) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut exporter = Exporter::new(mapping(), domain, 3, 1400).unwrap();
    exporter.begin(100, &mut octets).unwrap();
    for report in reports {
        exporter.reports(&[*report], 100, &mut octets).unwrap();
    }
    octets
}

#[track_caller]
fn taken(intake: &mut Intake, octets: &[u8], now_ms: u64) -> Taken {
    let mut out = Taken::default();
    intake.receive(octets, now_ms, &mut out).unwrap();
    out
}

/// Domain, epoch id, latest report id, outcome of each epoch that changed.
fn epochs(changes: &[Change]) -> Vec<(u32, u64, u64, Outcome)> {
    let epoch = |change: &Change| match change {
        Change::Epoch(state) => {
            let Epoch { latest, .. } = &state.epoch;
            Some((state.domain, latest.epoch_id, latest.report_id, state.outcome))
        }
        _ => None,
    };
    changes.iter().filter_map(epoch).collect()
}

/// How an epoch stands after one report.
pub fn state(session: u64, epoch_id: u64, report_id: u64) -> Change {
    let mut intake = Intake::new(SessionId(session), mapping(), [1], bounds(), 1);
    let octets = exported(1, &[report(epoch_id, report_id, report_id)]);
    taken(&mut intake, &octets, 10).changes.remove(0)
}

fn refusals(changes: &[Change]) -> Vec<(u32, &str, u64)> {
    let refused = |change| match change {
        &Change::Refused { domain, ref kind, records, .. } => {
            Some((domain, kind.as_str(), records))
        }
        _ => None,
    };
    changes.iter().filter_map(refused).collect()
}

fn ended(intake: Intake, now_ms: u64) -> Vec<Change> {
    let mut out = Taken::default();
    intake.end(now_ms, "over", &mut out);
    out.changes
}

/// A template as given and one record of zeros.
fn with_record_of_zeros(domain: u32, template: &TemplateSpec) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut encoder = Encoder::new(65_535).unwrap();
    let mut writer = encoder.writer(domain, 100, &mut octets);
    writer.template(template).unwrap();
    writer
        .record(template.id, |record| template.fields.iter().try_for_each(|_| record.unsigned(0)))
        .unwrap();
    writer.finish();
    octets
}

fn v4() -> TemplateSpec {
    Shape::of(&report(1, 1, 1).snapshot.key).template(256, &mapping())
}

fn empty_message(domain: u32) -> Vec<u8> {
    MessageHeader { length: 16, export_time: 1, sequence: 0, domain }.octets().to_vec()
}

// SEQ-7.14
#[test]
fn an_epoch_is_active_until_its_final_report_and_complete_with_it() {
    let reports = [report(1, 1, 1), report(1, 2, 9), last(report(1, 3, 9))];
    let mut intake = intake();
    let octets = exported(1, &reports);
    let (two, rest) = octets.split_at(exported(1, &reports[..2]).len());
    // What comes together is told once.
    let out = taken(&mut intake, two, 10);
    assert_eq!(epochs(&out.changes), [(1, 1, 2, Outcome::Active)]);
    assert_eq!(out.notes, [""; 0]);
    let out = taken(&mut intake, rest, 10);
    assert_eq!(epochs(&out.changes), [(1, 1, 3, Outcome::Complete)]);
    assert_eq!(out.notes, [""; 0]);
    assert_eq!((intake.counts().accepted, intake.counts().refused), (3, [0; Refusal::ALL.len()]));
    // What was told is not told again.
    let end = ended(intake, 20);
    let closed = Change::SessionClosed { session: SESSION, closed_ms: 20, reason: "over".into() };
    assert_eq!(end, [closed]);
}

#[test]
fn the_changes_are_the_same_however_the_stream_is_cut() {
    let mut octets = exported(1, &[report(1, 1, 1), report(1, 2, 3)]);
    octets.extend(exported(9, &[report(4, 1, 1)]));
    octets.extend(exported(2, &[last(report(1, 1, 1))]));
    let mut whole = intake();
    let expected = taken(&mut whole, &octets, 10);
    assert_eq!(expected.changes.len(), 3);
    // How each epoch stands at the end.
    let stands = |changes: &[Change]| {
        let all = epochs(changes).into_iter();
        all.map(|(domain, epoch, id, outcome)| ((domain, epoch), (id, outcome)))
            .collect::<BTreeMap<_, _>>()
    };
    for cut in 0..=octets.len() {
        let mut intake = intake();
        let mut out = taken(&mut intake, &octets[..cut], 10);
        let more = taken(&mut intake, &octets[cut..], 10);
        out.changes.extend(more.changes);
        out.notes.extend(more.notes);
        let refused = refusals(&out.changes);
        assert_eq!(stands(&out.changes), stands(&expected.changes), "cut at {cut}");
        assert_eq!(refused, refusals(&expected.changes), "cut at {cut}");
        assert_eq!(out.notes, expected.notes, "cut at {cut}");
        assert_eq!(intake.counts(), whole.counts(), "cut at {cut}");
    }
    let mut single = intake();
    let mut out = Taken::default();
    for octet in &octets {
        single.receive(std::slice::from_ref(octet), 10, &mut out).unwrap();
    }
    assert_eq!(stands(&out.changes), stands(&expected.changes));
    assert_eq!(single.counts(), whole.counts());
}

// SEQ-7.13
#[test]
fn the_end_of_a_session_leaves_every_open_epoch_incomplete() {
    let reports = [report(1, 1, 1), last(report(2, 1, 1)), report(3, 1, 1), report(3, 2, 2)];
    let octets = exported(1, &reports);
    // Whether it ends between two messages or within one.
    for cut in [octets.len(), octets.len() - 1] {
        let mut intake = intake();
        taken(&mut intake, &octets[..cut], 10);
        let mut told = epochs(&ended(intake, 20));
        told.sort_unstable();
        let latest = if cut == octets.len() { 2 } else { 1 };
        let expected = [(1, 1, 1, Outcome::Incomplete), (1, 3, latest, Outcome::Incomplete)];
        assert_eq!(told, expected);
    }
}

// SEQ-7.13, SEQ-7.12
#[test]
fn a_silent_epoch_is_incomplete_after_its_time_and_what_comes_later_is_an_orphan() {
    let mut exporter = Exporter::new(mapping(), 1, 3, 1400).unwrap();
    let mut octets = Vec::new();
    exporter.begin(100, &mut octets).unwrap();
    exporter.reports(&[report(1, 1, 1)], 100, &mut octets).unwrap();
    let mut intake = intake();
    taken(&mut intake, &octets, 10);
    let mut out = Taken::default();
    intake.advance(1_010, 1_010, &mut out);
    assert_eq!(out.changes, []);
    // The collector was away for a second: the peer's time has not passed.
    intake.advance(1_010, 2_010, &mut out);
    assert_eq!(out.changes, []);
    intake.advance(1_011, 1_011, &mut out);
    assert_eq!(epochs(&out.changes), [(1, 1, 1, Outcome::Incomplete)]);
    octets.clear();
    exporter.reports(&[report(1, 2, 5)], 100, &mut octets).unwrap();
    let out = taken(&mut intake, &octets, 1_012);
    assert_eq!(epochs(&out.changes), []);
    assert_eq!(refusals(&out.changes), [(1, "orphan", 1)]);
}

// SEQ-7.6, SEQ-7.8, SEQ-7.9, SEQ-7.15
#[test]
fn a_hostile_exporter_gets_a_verdict_for_every_record() {
    let mut other_key = report(1, 3, 9);
    other_key.snapshot.key.qp = 18;
    let mut inconsistent = report(1, 3, 9);
    inconsistent.snapshot.counts.skipped = 1;
    let mut other_start = report(1, 3, 9);
    other_start.snapshot.start_ms = 6;
    let reports = [
        report(1, 2, 5),
        report(1, 2, 5),
        report(1, 1, 1),
        report(1, 3, 4),
        other_key,
        inconsistent,
        other_start,
        report(1, 2, 6),
        report(1, 3, 9),
        last(report(3, 1, 1)),
        report(2, 1, 1),
        report(3, 2, 2),
    ];
    let mut intake = intake();
    let out = taken(&mut intake, &exported(1, &reports), 10);
    let expected = [(1, 1, 2, Outcome::Invalid), (1, 3, 1, Outcome::Invalid)];
    assert_eq!(epochs(&out.changes), expected);
    let words = [
        "stale",
        "inconsistent",
        "keyChanged",
        "immutableChanged",
        "decreased",
        "orphan",
        "epochInvalid",
        "sameIdOtherContent",
        "afterFinal",
    ];
    assert_eq!(refusals(&out.changes), words.map(|word| (1, word, 1)));
    assert_eq!(out.notes.len(), words.len());
    assert_eq!((intake.counts().accepted, intake.counts().repeated), (2, 1));
    // An invalid epoch stays so.
    assert_eq!(epochs(&ended(intake, 20)), []);
}

// SEQ-10.1, SEQ-10.3
#[test]
fn records_of_a_foreign_domain_are_refused_and_counted_and_take_no_room() {
    let limits = wire::ipfix::Limits { domains_max: 2, ..wire::ipfix::Limits::default() };
    let bounds = Bounds { decoder: limits, ..bounds() };
    let mut intake = Intake::new(SESSION, mapping(), [1, 2], bounds, 1);
    for domain in 1_000..11_000 {
        let out = taken(&mut intake, &exported(domain, &[report(1, 1, 1)]), 10);
        assert_eq!(epochs(&out.changes), []);
        // SEQ-7.10: one by one as long as there are few.
        let counted = if domain < 1_128 { domain } else { DOMAINS_BEYOND };
        assert_eq!(refusals(&out.changes), [(counted, "foreignDomain", 1)]);
        assert_eq!(out.notes.len(), usize::from(domain == 1_000));
    }
    assert_eq!(intake.counts().refused(Refusal::ForeignDomain), 10_000);
    for domain in [1, 2] {
        let out = taken(&mut intake, &exported(domain, &[report(1, 1, 1)]), 10);
        assert_eq!(epochs(&out.changes), [(domain, 1, 1, Outcome::Active)]);
    }
}

// SEQ-7.10
#[test]
fn a_domain_beyond_the_limit_is_refused_and_the_session_goes_on() {
    let limits = wire::ipfix::Limits { domains_max: 1, ..wire::ipfix::Limits::default() };
    let bounds = Bounds { decoder: limits, ..bounds() };
    let mut intake = Intake::new(SESSION, mapping(), [1, 2], bounds, 1);
    taken(&mut intake, &empty_message(1), 10);
    for _ in 0..10 {
        taken(&mut intake, &empty_message(2), 10);
    }
    taken(&mut intake, &empty_message(1), 10);
    assert_eq!((intake.counts().domains_full, intake.counts().malformed), (10, 0));
    // SEQ-7.15: its records have their verdict.
    let out = taken(&mut intake, &exported(2, &[report(1, 1, 1), report(1, 2, 2)]), 10);
    assert_eq!(
        (epochs(&out.changes), refusals(&out.changes)),
        (vec![], vec![(2, "domainsFull", 2)])
    );
}

#[test]
fn a_domain_that_is_taken_away_is_refused_from_then_on() {
    let mut intake = intake();
    taken(&mut intake, &exported(1, &[report(1, 1, 1)]), 10);
    let mut out = Taken::default();
    intake.authorise([2], &mut out);
    assert_eq!(out.raw.first().unwrap().0, &Part::Note(Entry::Expelled { domain: 1 }));
    let out = taken(&mut intake, &exported(1, &[report(1, 2, 2)]), 10);
    assert_eq!(refusals(&out.changes), [(1, "foreignDomain", 1)]);
    assert_eq!(epochs(&ended(intake, 20)), [(1, 1, 1, Outcome::Incomplete)]);
}

/// The peer may have changed its templates while nobody looked.
// SEQ-7.1, SEQ-7.15
#[test]
fn templates_of_a_domain_that_was_taken_away_are_forgotten_and_still_count_what_is_refused() {
    let mut intake = intake();
    let told = exported(1, &[report(1, 1, 1)]);
    let data = data_alone(&exported(1, &[report(1, 1, 1), report(1, 2, 2)]));
    taken(&mut intake, &told, 10);
    intake.authorise([2], &mut Taken::default());
    let out = taken(&mut intake, &data, 10);
    assert_eq!(refusals(&out.changes), [(1, "foreignDomain", 1)]);
    intake.authorise([1, 2], &mut Taken::default());
    let before = intake.counts().undecodable_sets;
    let out = taken(&mut intake, &data, 10);
    assert_eq!(epochs(&out.changes), []);
    assert_eq!(intake.counts().undecodable_sets, before + 1);
    let out = taken(&mut intake, &exported(1, &[report(1, 2, 2)]), 10);
    assert_eq!(epochs(&out.changes), [(1, 1, 2, Outcome::Active)]);
}

/// The last message of a stream.
fn data_alone(stream: &[u8]) -> Vec<u8> {
    let mut rest = stream;
    loop {
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if len == rest.len() {
            return rest.to_vec();
        }
        rest = &rest[len..];
    }
}

#[test]
fn what_is_no_ipfix_ends_the_session_and_is_told_in_a_line() {
    for (octets, expected) in [
        (&b"GET / HTTP/1.0\r\n\r\n"[..], "the text \"GET / HTTP/1.0\", expected an IPFIX message"),
        (&[0x16, 3, 1, 2, 0, 1], "a TLS handshake, expected an IPFIX message"),
        (&[0, 9, 0, 1, 0, 0], "NetFlow version 9, expected an IPFIX message"),
        (
            &[0, 10, 0, 15],
            "message length 15 at octet 2, need at least 16, behind 0 messages: no further one can be found",
        ),
    ] {
        let broken = intake().receive(octets, 10, &mut Taken::default()).unwrap_err();
        assert_eq!(broken.to_string(), expected);
        // Octet by octet it ends too, if with less to show.
        let mut single = intake();
        let mut out = Taken::default();
        let done: Result<Vec<()>, Broken> =
            octets.iter().map(|o| single.receive(&[*o], 10, &mut out)).collect();
        assert!(done.is_err());
    }
}

#[test]
fn a_version_that_changes_ends_the_session_with_what_was_before_it_kept() {
    let mut octets = exported(1, &[report(1, 1, 1)]);
    octets.extend([0, 9, 0, 16]);
    let mut intake = intake();
    let mut out = Taken::default();
    let broken = intake.receive(&octets, 10, &mut out).unwrap_err();
    let messages = intake.counts().messages;
    assert_eq!(broken, Broken::Framing { messages, error: Error::Version { found: 9 } });
    assert_eq!(epochs(&out.changes), [(1, 1, 1, Outcome::Active)]);
    assert_eq!(epochs(&ended(intake, 20)), [(1, 1, 1, Outcome::Incomplete)]);
}

#[test]
fn a_malformed_message_is_discarded_and_too_many_in_a_row_end_the_session() {
    let mut malformed = empty_message(1);
    malformed.extend([1, 0, 0, 3]);
    malformed[3] = 20;
    let mut intake = intake();
    for _ in 0..4 {
        taken(&mut intake, &malformed, 10);
        taken(&mut intake, &malformed, 10);
        taken(&mut intake, &empty_message(1), 10);
    }
    taken(&mut intake, &[&malformed[..], &malformed[..]].concat(), 10);
    let broken = intake.receive(&malformed, 10, &mut Taken::default()).unwrap_err();
    let error = Error::SetShort { at: 16, found: 3 };
    assert_eq!(broken, Broken::Malformed { messages: 3, error });
    assert_eq!(intake.counts().malformed, 11);
}

// SEQ-7.1
#[test]
fn records_of_a_template_that_is_not_the_profile_s_are_refused_and_others_go_through() {
    let mut twice = v4();
    twice.fields.push(twice.fields[0]);
    let mut intake = intake();
    let out = taken(&mut intake, &with_record_of_zeros(1, &twice), 10);
    assert_eq!(refusals(&out.changes), [(1, "templateNotOfProfile", 1)]);
    assert_eq!(out.notes.len(), 1, "{:?}", out.notes);

    let draft = [DraftElement::PfcPriority, DraftElement::RdmaDestinationQp];
    let mut other = v4();
    other.id = 257;
    other
        .fields
        .retain(|field| mapping().draft(field.id).is_none_or(|element| draft.contains(&element)));
    let out = taken(&mut intake, &with_record_of_zeros(2, &other), 10);
    assert_eq!((refusals(&out.changes).len(), intake.counts().others), (0, 1));
}

// SEQ-7.1
#[test]
fn a_field_out_of_its_range_refuses_its_record() {
    let mut intake = intake();
    let out = taken(&mut intake, &with_record_of_zeros(1, &v4()), 10);
    assert_eq!(refusals(&out.changes), [(1, "fieldOutOfRange", 1)]);
    assert_eq!(out.notes, ["a record is refused: rdmaSequenceEpochId 0, expected at least 1"]);
}

#[test]
fn data_before_their_template_are_counted_and_not_guessed() {
    let octets = exported(1, &[report(1, 1, 1)]);
    let mut sets = empty_message(1);
    sets.extend([1, 0, 0, 8, 1, 2, 3, 4]);
    sets[3] = 24;
    let mut intake = intake();
    let out = taken(&mut intake, &sets, 10);
    assert_eq!((out.changes.len(), intake.counts().undecodable_sets), (0, 1));
    assert_eq!(epochs(&taken(&mut intake, &octets, 10).changes).len(), 1);
}

// SEQ-7.10
#[test]
fn epochs_are_admitted_up_to_the_limit() {
    let session = collect::Limits { epochs_max: 2, ..bounds().session };
    let mut intake = Intake::new(SESSION, mapping(), [1], Bounds { session, ..bounds() }, 1);
    let reports = [report(1, 1, 1), report(2, 1, 1), report(3, 1, 1)];
    let out = taken(&mut intake, &exported(1, &reports), 10);
    assert_eq!(epochs(&out.changes).len(), 2);
    assert_eq!(refusals(&out.changes), [(1, "epochsFull", 1)]);
    assert_eq!(intake.epochs(), 2);
}

// SEQ-6.8: numbers that are not assigned have to be agreed on; where they are not, that is said.
#[test]
fn reports_under_another_enterprise_number_are_told_at_once_and_counted_at_the_end() {
    let mut intake = intake();
    let other = Mapping::new(4711).unwrap();
    let mut octets = Vec::new();
    let mut exporter = Exporter::new(other, 1, 3, 1400).unwrap();
    exporter.begin(100, &mut octets).unwrap();
    for id in 1..=3 {
        exporter.reports(&[report(1, id, id)], 100, &mut octets).unwrap();
    }
    let out = taken(&mut intake, &octets, 10);
    assert_eq!(epochs(&out.changes), []);
    let [note] = &out.notes[..] else { panic!("{:?}", out.notes) };
    assert!(note.contains("enterprise number 4711, expected 32473"), "{note}");
    let mut out = Taken::default();
    intake.end(20, "over", &mut out);
    let [note] = &out.notes[..] else { panic!("{:?}", out.notes) };
    assert!(note.starts_with("3 records") && note.contains("4711"), "{note}");
}

#[test]
fn records_of_somebody_else_are_no_reports_under_any_number() {
    let mut intake = intake();
    let mut template = v4();
    template.fields.iter_mut().filter(|f| f.id.pen != 0).for_each(|f| f.id.pen = 4711);
    template.fields.pop();
    let out = taken(&mut intake, &with_record_of_zeros(1, &template), 10);
    assert_eq!((out.notes.len(), intake.counts().others), (0, 1), "{:?}", out.notes);
    let mut out = Taken::default();
    intake.end(20, "over", &mut out);
    assert_eq!(out.notes, Vec::<String>::new());
}
