//! What a session remembers: redefinitions, sequence numbers, learned elements.

use wire::element::{ElementId, LearnError, Mapping};
use wire::ipfix::{Decoder, Fault, Limits, TemplateKind, Transport, type_information_template};

use crate::seen::{Seen, feed, message, message_of, one_octet_template, session, set};

/// The same ID with a sourceTransportPort of two octets.
fn other_template(id: u16) -> Vec<u8> {
    [&id.to_be_bytes()[..], &[0, 1, 0, 7, 0, 2]].concat()
}

fn over(transport: Transport) -> Decoder {
    Decoder::new(transport, Mapping::default(), Limits::default())
}

#[test]
fn the_same_template_again_is_a_repetition_and_nothing_else() {
    for transport in [Transport::Stream, Transport::Datagram, Transport::File] {
        let mut decoder = over(transport);
        let define = message(0, &[set(2, &one_octet_template(256))]);
        assert_eq!(feed(&mut decoder, &define), Ok(vec![Seen::Template(256)]));
        assert_eq!(feed(&mut decoder, &define), Ok(vec![Seen::Repeated(256)]));
        assert_eq!(decoder.templates(), 1);
    }
}

#[test]
fn a_redefinition_without_withdrawal_makes_the_data_ambiguous_until_there_is_one() {
    // Data of the old layout may still be on their way, and nothing tells them apart.
    let mut decoder = over(Transport::Stream);
    let old = set(2, &one_octet_template(256));
    let new = set(2, &other_template(256));
    let data = set(256, &[1, 2]);
    feed(&mut decoder, &message(0, std::slice::from_ref(&old))).expect("read");
    let redefined = Seen::Fault(Fault::Redefined { template: 256 });
    let undecoded = Seen::Undecodable(256, vec![1, 2]);
    assert_eq!(
        feed(&mut decoder, &message(0, &[new.clone(), data.clone()])),
        Ok(vec![redefined.clone(), undecoded.clone()])
    );
    // Neither definition heals it.
    assert_eq!(
        feed(&mut decoder, &message(0, &[old, data.clone(), new.clone()])),
        Ok(vec![redefined.clone(), undecoded, redefined])
    );
    assert_eq!(decoder.templates(), 1);
    let withdraw = set(2, &[1, 0, 0, 0]);
    assert_eq!(
        feed(&mut decoder, &message(0, &[withdraw, new, data])),
        Ok(vec![
            Seen::Withdrawn(TemplateKind::Template, 256),
            Seen::Template(256),
            Seen::Data(256, vec![vec![1, 2]])
        ])
    );
}

#[test]
fn over_udp_and_in_files_a_redefinition_replaces_and_only_files_know_withdrawals() {
    for transport in [Transport::Datagram, Transport::File] {
        let mut decoder = over(transport);
        let sets = [
            set(2, &one_octet_template(256)),
            set(256, &[1, 2]),
            set(2, &other_template(256)),
            set(256, &[1, 2]),
            set(2, &[1, 0, 0, 0]),
            set(256, &[1, 2]),
        ];
        let mut expected = vec![
            Seen::Template(256),
            Seen::Data(256, vec![vec![1], vec![2]]),
            Seen::Template(256),
            Seen::Data(256, vec![vec![1, 2]]),
        ];
        if transport == Transport::File {
            expected.push(Seen::Withdrawn(TemplateKind::Template, 256));
            expected.push(Seen::Undecodable(256, vec![1, 2]));
        } else {
            expected.push(Seen::Fault(Fault::WithdrawalIgnored { template: 256 }));
            expected.push(Seen::Data(256, vec![vec![1, 2]]));
        }
        assert_eq!(feed(&mut decoder, &message(0, &sets)), Ok(expected));
    }
}

#[test]
fn an_id_cannot_be_a_template_and_an_options_template_at_once() {
    let options = set(3, &[1, 0, 0, 1, 0, 1, 0, 145, 0, 2]); // templateId as scope
    let plain = set(2, &one_octet_template(256));
    let mut decoder = over(Transport::Stream);
    assert_eq!(
        feed(&mut decoder, &message(0, &[plain.clone(), options.clone(), set(256, &[1, 2])])),
        Ok(vec![
            Seen::Template(256),
            Seen::Fault(Fault::Redefined { template: 256 }),
            Seen::Undecodable(256, vec![1, 2])
        ])
    );
    let mut decoder = over(Transport::File);
    assert_eq!(
        feed(&mut decoder, &message(0, &[plain, options, set(256, &[1, 2])])),
        Ok(vec![Seen::Template(256), Seen::Template(256), Seen::Data(256, vec![vec![1, 2]])])
    );
    assert_eq!(decoder.templates(), 1);
}

#[test]
fn a_withdrawal_as_the_other_kind_withdraws_nothing() {
    let mut decoder = session();
    let sets = [set(2, &one_octet_template(256)), set(3, &[1, 0, 0, 0]), set(256, &[1])];
    assert_eq!(
        feed(&mut decoder, &message(0, &sets)),
        Ok(vec![
            Seen::Template(256),
            Seen::Fault(Fault::UnknownWithdrawal { kind: TemplateKind::Options, template: 256 }),
            Seen::Data(256, vec![vec![1]])
        ])
    );
}

#[test]
fn sequence_numbers_count_data_records_options_data_too_and_templates_not() {
    let mut decoder = session();
    let options = set(3, &[1, 1, 0, 1, 0, 1, 0, 4, 0, 1]);
    let define = [set(2, &one_octet_template(256)), options];
    feed(&mut decoder, &message(100, &define)).expect("read");
    // Three records and two of options.
    let data = [set(256, &[1, 2, 3]), set(257, &[1, 2])];
    let seen = feed(&mut decoder, &message(100, &data)).expect("read");
    assert!(!seen.iter().any(|s| matches!(s, Seen::Gap(..))), "templates do not count");
    assert_eq!(feed(&mut decoder, &message(105, &[])), Ok(vec![]));
    assert_eq!(feed(&mut decoder, &message(107, &[])), Ok(vec![Seen::Gap(105, 107)]));
    assert_eq!(feed(&mut decoder, &message(107, &[])), Ok(vec![]), "told once");
    assert_eq!(feed(&mut decoder, &message(106, &[])), Ok(vec![Seen::Gap(107, 106)]));
}

#[test]
fn sequence_numbers_wrap_and_are_those_of_one_domain() {
    let mut decoder = session();
    let define = [set(2, &one_octet_template(256)), set(256, &[1, 2, 3])];
    feed(&mut decoder, &message_of(1, u32::MAX - 1, &define)).expect("read");
    feed(&mut decoder, &message_of(2, 7, &define)).expect("read");
    assert_eq!(feed(&mut decoder, &message_of(1, 1, &[])), Ok(vec![]));
    assert_eq!(feed(&mut decoder, &message_of(2, 10, &[])), Ok(vec![]));
    assert_eq!(feed(&mut decoder, &message_of(1, 0, &[])), Ok(vec![Seen::Gap(1, 0)]));
}

#[test]
fn no_gap_is_told_behind_data_that_could_not_be_counted() {
    let mut decoder = session();
    feed(&mut decoder, &message(0, &[set(256, &[1, 2, 3])])).expect("read");
    assert_eq!(feed(&mut decoder, &message(500, &[])), Ok(vec![]), "unknown is not a gap");
    assert_eq!(feed(&mut decoder, &message(501, &[])), Ok(vec![Seen::Gap(500, 501)]));
}

/// A type record of 9/5.
fn type_record(pen: u8, id: u8, data_type: u8, semantics: u8, name: &str) -> Vec<u8> {
    let mut record = vec![0, 0, 0, pen, 0x80, id, data_type, semantics, 0, 0]; // the enterprise bit does not count
    record.push(u8::try_from(name.len()).expect("short"));
    record.extend_from_slice(name.as_bytes());
    record
}

fn type_template() -> Vec<u8> {
    let spec = type_information_template(400, false);
    let mut out = vec![1, 0x90, 0, 6, 0, 2];
    for field in spec.fields {
        out.extend_from_slice(&field.id.id.to_be_bytes());
        out.extend_from_slice(&field.length.to_be_bytes());
    }
    set(3, &out)
}

#[test]
fn a_described_element_has_a_value_from_then_on_whatever_the_order_of_its_template() {
    let mut decoder = session();
    let template = set(2, &[1, 0, 0, 1, 0x80, 5, 0, 2, 0, 0, 0, 9]); // 9/5, two octets
    let sets = [
        template,
        set(256, &[1, 0]),
        type_template(),
        set(400, &type_record(9, 5, 3, 1, "depth")), // unsigned32, quantity
        set(256, &[1, 0]),
    ];
    let mut values = Vec::new();
    decoder
        .message(&message(0, &sets), &mut |event| {
            if let wire::ipfix::Event::Data(set) = event
                && set.layout.id() == 256
            {
                values.extend(
                    set.records.map(|r| format!("{:?}", r.value(0, set.registry).expect("one"))),
                );
            }
        })
        .expect("read");
    assert_eq!(values, ["Octets([1, 0])", "Unsigned(256)"]);
    assert_eq!(
        decoder.registry().by_name("depth").expect("learned").id,
        ElementId { pen: 9, id: 5 }
    );
}

#[test]
fn type_records_that_lie_contradict_or_overflow_are_refused_one_by_one() {
    let limits = Limits { learned_max: 1, ..Limits::default() };
    let mut decoder = Decoder::new(Transport::Stream, Mapping::default(), limits);
    let records = [
        type_record(0, 4, 4, 4, "protocolIdentifier"), // IANA's is an unsigned8
        type_record(9, 6, 18, 2, "address"),           // an address is no counter
        type_record(9, 7, 99, 0, "future"),            // no such type
        type_record(9, 5, 3, 1, "depth"),
        type_record(9, 5, 3, 1, "depth"),
        type_record(9, 8, 3, 1, "more"),
        type_record(9, 5, 4, 1, "depth"),
    ]
    .concat();
    let id = |pen, id| ElementId { pen, id };
    let seen =
        feed(&mut decoder, &message(0, &[type_template(), set(400, &records)])).expect("read");
    assert_eq!(
        seen[2..],
        [
            Seen::Fault(Fault::NotLearned(LearnError::Known(id(0, 4)))),
            Seen::Fault(Fault::NotLearned(LearnError::Semantics(id(9, 6)))),
            Seen::Fault(Fault::TypeRecord { element: id(9, 7) }),
            Seen::Element("depth".into()),
            Seen::Fault(Fault::NotLearned(LearnError::Full { id: id(9, 8), max: 1 })),
            Seen::Fault(Fault::NotLearned(LearnError::Contradicted(id(9, 5)))),
        ]
    );
    assert!(decoder.registry().get(id(9, 5)).is_none());
}

#[test]
fn behind_a_withdrawal_of_all_the_same_message_can_give_an_id_another_meaning() {
    let mut decoder = session();
    let before = [one_octet_template(256), one_octet_template(257)].concat();
    feed(&mut decoder, &message(0, &[set(2, &before)])).expect("read");
    let after = [vec![0, 2, 0, 0], other_template(256)].concat();
    let sets = [set(2, &after), set(256, &[1, 2]), set(257, &[1, 2])];
    assert_eq!(
        feed(&mut decoder, &message(0, &sets)),
        Ok(vec![
            Seen::AllWithdrawn(TemplateKind::Template),
            Seen::Template(256),
            Seen::Data(256, vec![vec![1, 2]]),
            Seen::Undecodable(257, vec![1, 2]),
        ])
    );
    assert_eq!(decoder.templates(), 1);
    // The records of 257 could not be counted, so no gap can be told.
    assert_eq!(feed(&mut decoder, &message(9, &[])), Ok(vec![]));
}
