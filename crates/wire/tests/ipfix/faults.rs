//! Faults that others have shipped, and faults at every length.

use wire::element::{ElementId, Lengths, Mapping};
use wire::ipfix::{Decoder, Error, Event, Fault, Limits, TemplateKind, Transport};

use crate::seen::{Seen, feed, message, message_of, one_octet_template, session, set};

#[test]
fn a_template_without_fields_that_nobody_defined_withdraws_nothing_and_its_data_are_passed_over() {
    // Another decoder kept the empty template and looped over records of no octets.
    let mut decoder = session();
    let sets = [
        set(2, &[1, 0, 0, 0]),
        set(256, &[1, 2, 3, 4]),
        set(2, &one_octet_template(257)),
        set(257, &[9]),
    ];
    assert_eq!(
        feed(&mut decoder, &message(0, &sets)).expect("read"),
        [
            Seen::Fault(Fault::UnknownWithdrawal { kind: TemplateKind::Template, template: 256 }),
            Seen::Undecodable(256, vec![1, 2, 3, 4]),
            Seen::Template(257),
            Seen::Data(257, vec![vec![9]]),
        ]
    );
}

#[test]
fn two_data_sets_of_which_the_second_ends_in_two_odd_octets_are_read_to_their_end() {
    // Another collector never came back from such a tail.
    let mut decoder = session();
    let template = set(2, &[1, 0, 0, 1, 0, 10, 0, 4]); // ingressInterface
    feed(&mut decoder, &message(0, &[template])).expect("read");
    let sets = [set(256, &[0, 0, 0, 1]), set(256, &[0, 0, 0, 2, 0, 0])];
    assert_eq!(
        feed(&mut decoder, &message(0, &sets)).expect("read"),
        [Seen::Data(256, vec![vec![0, 0, 0, 1]]), Seen::Data(256, vec![vec![0, 0, 0, 2]])]
    );
}

#[test]
fn a_tail_of_one_to_three_octets_behind_the_last_set_discards_the_message() {
    for tail in 1..4 {
        let mut decoder = session();
        let sets = [set(2, &one_octet_template(256)), vec![0; tail]];
        let refused = feed(&mut decoder, &message(0, &sets));
        assert_eq!(refused, Err(Error::Tail { at: 28, found: tail }));
        assert_eq!(decoder.templates(), 0);
    }
}

#[test]
fn the_same_template_id_has_a_layout_of_its_own_in_each_domain() {
    let mut decoder = session();
    let other = set(2, &[1, 0, 0, 1, 0, 7, 0, 2]); // sourceTransportPort
    feed(&mut decoder, &message_of(1, 0, &[set(2, &one_octet_template(256))])).expect("read");
    feed(&mut decoder, &message_of(2, 0, &[other])).expect("read");
    let data = [set(256, &[1, 2])];
    assert_eq!(
        feed(&mut decoder, &message_of(1, 0, &data)).expect("read"),
        [Seen::Data(256, vec![vec![1], vec![2]])]
    );
    assert_eq!(
        feed(&mut decoder, &message_of(2, 0, &data)).expect("read"),
        [Seen::Data(256, vec![vec![1, 2]])]
    );
    assert_eq!(
        feed(&mut decoder, &message_of(3, 0, &data)).expect("read"),
        [Seen::Undecodable(256, vec![1, 2])]
    );
}

#[test]
fn a_template_that_its_own_set_withdraws_again_leaves_the_data_behind_it_undecoded() {
    let mut decoder = session();
    let both = [one_octet_template(256), vec![1, 0, 0, 0]].concat();
    assert_eq!(
        feed(&mut decoder, &message(0, &[set(2, &both), set(256, &[7])])).expect("read"),
        [
            Seen::Template(256),
            Seen::Withdrawn(TemplateKind::Template, 256),
            Seen::Undecodable(256, vec![7]),
        ]
    );
}

#[test]
fn an_options_template_is_withdrawn_by_four_octets_and_what_follows_is_read_in_step() {
    // A reader that expects a scope count here takes the next two octets for it.
    let mut decoder = session();
    let options = [1, 1, 0, 2, 0, 1, 0, 145, 0, 2, 0, 173, 0, 8];
    feed(&mut decoder, &message(0, &[set(3, &options)])).expect("read");
    let mut again = vec![1, 1, 0, 0];
    again.extend_from_slice(&[1, 2, 0, 2, 0, 1, 0, 145, 0, 2, 0, 173, 0, 8]);
    assert_eq!(
        feed(&mut decoder, &message(0, &[set(3, &again)])).expect("read"),
        [Seen::Withdrawn(TemplateKind::Options, 257), Seen::Template(258)]
    );
}

#[test]
fn a_withdrawal_of_all_takes_one_kind_of_one_domain() {
    let mut decoder = session();
    let options = [1, 1, 0, 1, 0, 1, 0, 145, 0, 2];
    let define = [set(2, &one_octet_template(256)), set(3, &options)];
    feed(&mut decoder, &message_of(1, 0, &define)).expect("read");
    feed(&mut decoder, &message_of(2, 0, &define)).expect("read");
    feed(&mut decoder, &message_of(1, 0, &[set(2, &[0, 2, 0, 0])])).expect("read");
    assert!(decoder.layout(1, 256).is_none() && decoder.layout(1, 257).is_some());
    feed(&mut decoder, &message_of(1, 0, &[set(3, &[0, 3, 0, 0])])).expect("read");
    assert!(decoder.layout(1, 257).is_none());
    assert!(decoder.layout(2, 256).is_some() && decoder.layout(2, 257).is_some());
    assert_eq!(decoder.templates(), 2);
    // The ID of the other kind withdraws nothing.
    assert_eq!(
        feed(&mut decoder, &message_of(2, 0, &[set(2, &[0, 3, 0, 0])])).expect("read"),
        [Seen::Fault(Fault::TemplateId { found: 3 })]
    );
    assert_eq!(decoder.templates(), 2);
}

#[test]
fn an_options_template_without_scope_or_with_too_much_is_refused_and_all_else_is_read() {
    let mut decoder = session();
    for (scope, legal) in [(0, false), (1, true), (2, true), (3, false)] {
        let template = 300 + u16::from(scope);
        let id = template.to_be_bytes();
        let record = [id[0], id[1], 0, 2, 0, scope, 0, 145, 0, 2, 0, 4, 0, 1];
        let sets =
            [set(3, &[&record[..], &[1, 1, 0, 1, 0, 1, 0, 4, 0, 1]].concat()), set(257, &[8])];
        let first = if legal {
            Seen::Template(template)
        } else {
            Seen::Fault(Fault::Scope { template, found: u16::from(scope), fields: 2 })
        };
        let seen = feed(&mut decoder, &message(0, &sets)).expect("read");
        let seen: Vec<_> = seen.into_iter().filter(|s| !matches!(s, Seen::Gap(..))).collect();
        assert_eq!(seen[0], first);
        assert!(matches!(seen[1], Seen::Template(257) | Seen::Repeated(257)));
        assert_eq!(seen[2], Seen::Data(257, vec![vec![8]]));
    }
}

#[test]
fn up_to_seven_octets_of_padding_behind_the_last_template_are_no_template() {
    for padding in 0..8 {
        let mut decoder = session();
        let record = [one_octet_template(256), vec![0; padding]].concat();
        let options = [vec![1, 1, 0, 1, 0, 1, 0, 145, 0, 2], vec![0; padding]].concat();
        let sets = [set(2, &record), set(3, &options), set(256, &[5])];
        assert_eq!(
            feed(&mut decoder, &message(0, &sets)).expect("read"),
            [Seen::Template(256), Seen::Template(257), Seen::Data(256, vec![vec![5]])],
            "{padding}"
        );
    }
}

#[test]
fn the_enterprise_bit_with_element_0_or_enterprise_0_is_an_element_like_any_other() {
    // And takes eight octets, in the scope and elsewhere; the next specifier is found behind it.
    let mut decoder = session();
    let mut record = vec![1, 1, 0, 4, 0, 1];
    record.extend_from_slice(&[0x80, 0, 0, 2, 0, 0, 0, 9]); // 9/0 as scope
    record.extend_from_slice(&[0x80, 0, 0, 1, 0, 0, 0, 9]); // 9/0
    record.extend_from_slice(&[0x80, 138, 0, 3, 0, 0, 0, 0]); // 0/138: not observationPointId
    record.extend_from_slice(&[0, 4, 0, 1]); // protocolIdentifier
    let mut fields = Vec::new();
    decoder
        .message(&message(0, &[set(3, &record), set(257, &[1, 2, 3, 4, 5, 6, 17])]), &mut |event| {
            match event {
                Event::Template { layout, .. } => {
                    fields.extend(layout.fields().iter().map(|f| f.id))
                }
                Event::Data(set) => {
                    let slot = set.layout.unsigned(ElementId::iana(4)).expect("there");
                    let values: Vec<_> = set.records.map(|r| r.unsigned(slot)).collect();
                    assert_eq!(values, [17]);
                }
                other => panic!("{other:?}"),
            }
        })
        .expect("read");
    let foreign = ElementId { pen: 9, id: 0 };
    let nobody = ElementId { pen: 0, id: 0x8000 | 138 };
    assert_eq!(fields, [foreign, foreign, nobody, ElementId::iana(4)]);
    assert!(decoder.registry().get(nobody).is_none());
}

#[test]
fn a_specifier_cut_off_before_its_enterprise_number_erases_nothing() {
    let mut decoder = session();
    let whole = [1, 0, 0, 1, 0x80, 5, 0, 1, 0, 0, 0, 9]; // 9/5
    feed(&mut decoder, &message(0, &[set(2, &whole)])).expect("read");
    for cut in 4..12 {
        let refused = feed(&mut decoder, &message(0, &[set(256, &[1]), set(2, &whole[..cut])]));
        let expected = Error::TemplateCut { at: 25, template: 256, fields: 1, left: cut };
        assert_eq!(refused, Err(expected), "{cut}");
    }
    assert_eq!(
        feed(&mut decoder, &message(0, &[set(256, &[1])])).expect("read"),
        [Seen::Data(256, vec![vec![1]])],
        "nothing of the discarded messages was counted either"
    );
}

#[test]
fn data_before_their_template_are_kept_as_octets_and_those_behind_it_are_read() {
    let mut decoder = session();
    let sets = [set(256, &[1]), set(2, &one_octet_template(256)), set(256, &[2])];
    assert_eq!(
        feed(&mut decoder, &message(0, &sets)).expect("read"),
        [Seen::Undecodable(256, vec![1]), Seen::Template(256), Seen::Data(256, vec![vec![2]])]
    );
}

#[test]
fn a_template_with_an_unassigned_and_a_foreign_element_is_accepted_and_their_octets_are_kept() {
    // PFC-exp.1
    let mut decoder = session();
    let mut record = vec![1, 0, 0, 3, 0, 4, 0, 1];
    record.extend_from_slice(&[0x7f, 0xff, 0, 3]); // 32767, not assigned
    record.extend_from_slice(&[0x80, 7, 0xff, 0xff, 0, 0, 0x12, 0x34]); // 4660/7, variable
    let sets = [set(2, &record), set(256, &[6, 1, 2, 3, 2, 8, 9])];
    let mut values = Vec::new();
    decoder
        .message(&message(0, &sets), &mut |event| {
            if let Event::Data(set) = event {
                for record in set.records {
                    values.extend(record.values(set.registry).map(|v| format!("{:?}", v.2)));
                }
            }
        })
        .expect("read");
    assert_eq!(values, ["Unsigned(6)", "Octets([1, 2, 3])", "Octets([8, 9])"]);
}

#[test]
fn a_known_element_with_a_length_that_it_cannot_have_refuses_its_template_alone() {
    for (element, length, legal) in [
        (4u8, 2u8, Lengths::UpTo(1)), // protocolIdentifier
        (1, 9, Lengths::UpTo(8)),     // octetDeltaCount
        (1, 0, Lengths::UpTo(8)),
        (8, 3, Lengths::Exactly(4)),   // sourceIPv4Address
        (152, 4, Lengths::Exactly(8)), // flowStartMilliseconds: a time does not shrink
    ] {
        let mut decoder = session();
        let sets = [set(
            2,
            &[&[1, 0, 0, 2, 0, element, 0, length, 0, 4, 0, 1][..], &one_octet_template(257)]
                .concat(),
        )];
        let fault = Fault::Length {
            template: 256,
            element: ElementId::iana(u16::from(element)),
            found: u16::from(length),
            legal,
        };
        assert_eq!(
            feed(&mut decoder, &message(0, &sets)).expect("read"),
            [Seen::Fault(fault), Seen::Template(257)]
        );
    }
}

#[test]
fn a_template_whose_records_have_no_octets_or_more_than_a_message_is_refused() {
    let mut decoder = session();
    // 9/5 with no octets: foreign, so its length is not ours to judge, but a record must end.
    let nothing = [1, 0, 0, 1, 0x80, 5, 0, 0, 0, 0, 0, 9];
    let much = [1, 1, 0, 2, 0x80, 5, 0xff, 0xeb, 0, 0, 0, 9, 0x80, 6, 0, 1, 0, 0, 0, 9];
    let most = [1, 2, 0, 1, 0x80, 5, 0xff, 0xeb, 0, 0, 0, 9]; // 65515
    assert_eq!(
        feed(
            &mut decoder,
            &message(0, &[set(2, &nothing), set(2, &much), set(2, &most), set(256, &[1, 2])])
        )
        .expect("read"),
        [
            Seen::Fault(Fault::RecordLength { template: 256, found: 0 }),
            Seen::Fault(Fault::RecordLength { template: 257, found: 65516 }),
            Seen::Template(258),
            Seen::Undecodable(256, vec![1, 2]),
        ]
    );
}

#[test]
fn a_field_of_no_octets_beside_another_is_read() {
    let mut decoder = session();
    let record = [1, 0, 0, 2, 0x80, 5, 0, 0, 0, 0, 0, 9, 0, 4, 0, 1];
    assert_eq!(
        feed(&mut decoder, &message(0, &[set(2, &record), set(256, &[1, 2])])).expect("read"),
        [Seen::Template(256), Seen::Data(256, vec![vec![1], vec![2]])]
    );
}

#[test]
fn records_of_variable_length_only_end_also_where_every_value_is_empty() {
    let mut decoder = session();
    let template = set(2, &[1, 0, 0, 1, 0, 82, 0xff, 0xff]); // interfaceName
    assert_eq!(
        feed(&mut decoder, &message(0, &[template, set(256, &[0, 0, 0])])).expect("read"),
        [Seen::Template(256), Seen::Data(256, vec![vec![0], vec![0], vec![0]])]
    );
}

#[test]
fn a_variable_length_value_beyond_its_set_discards_the_message_at_every_length() {
    let template = set(2, &[1, 0, 0, 1, 0, 82, 0xff, 0xff]);
    for (content, whole) in [
        (&[2, 1, 1][..], true),
        (&[2, 1], false),
        (&[255, 0, 1, 9], true),
        (&[255, 0, 1], false),
        (&[255, 0], false),
        (&[255], false),
        (&[255, 0xff, 0xff, 1], false),
        (&[0, 3, 1, 1], false), // the second record
    ] {
        let mut decoder = session();
        // Behind it another set, into which the value must not reach.
        let sets = [template.clone(), set(256, content), set(256, &[1, 1])];
        let result = feed(&mut decoder, &message(0, &sets));
        if whole {
            assert!(result.is_ok(), "{content:?}");
        } else {
            let at = if content[0] == 0 { 33 } else { 32 };
            assert_eq!(result, Err(Error::ValueLong { at, template: 256 }), "{content:?}");
            assert_eq!(decoder.templates(), 0, "the template of the same message is not kept");
        }
    }
}

#[test]
fn set_lengths_that_do_not_add_up_discard_the_message_before_anything_is_applied() {
    let good = set(2, &one_octet_template(256));
    for length in 0..12u16 {
        let mut bad = set(257, &[0; 4]);
        bad[2..4].copy_from_slice(&length.to_be_bytes());
        let mut decoder = session();
        let result = feed(&mut decoder, &message(3, &[good.clone(), bad]));
        let expected = match length {
            0..=3 => Err(Error::SetShort { at: 28, found: length }),
            // The four zeros behind it are a set header with a length of 0 then.
            4 => Err(Error::SetShort { at: 32, found: 0 }),
            8 => Ok(vec![Seen::Template(256), Seen::Undecodable(257, vec![0; 4])]),
            5..=7 => {
                Err(Error::Tail { at: 28 + usize::from(length), found: 8 - usize::from(length) })
            }
            _ => Err(Error::SetLong { at: 28, found: length, left: 8 }),
        };
        assert_eq!(result, expected, "{length}");
        if result.is_err() {
            assert_eq!(decoder.templates(), 0);
            assert_eq!(
                feed(&mut decoder, &message(9, &[])),
                Ok(vec![]),
                "nor was a sequence number kept"
            );
        }
    }
}

#[test]
fn only_one_whole_message_is_taken() {
    let mut decoder = session();
    let whole = message(0, &[set(2, &one_octet_template(256))]);
    for cut in 0..whole.len() {
        assert!(feed(&mut decoder, &whole[..cut]).is_err(), "{cut}");
    }
    let more = [&whole[..], &[0]].concat();
    let refused = Error::NotOneMessage { expected: whole.len(), found: whole.len() + 1 };
    assert_eq!(feed(&mut decoder, &more), Err(refused));
    assert_eq!(feed(&mut decoder, &whole), Ok(vec![Seen::Template(256)]));
}

#[test]
fn sets_with_ids_that_mean_nothing_yet_are_kept_and_template_ids_below_256_are_refused() {
    let mut decoder = session();
    let sets: Vec<_> = [0, 1, 4, 255].iter().map(|id| set(*id, &[1, 2])).collect();
    assert_eq!(
        feed(&mut decoder, &message(0, &sets)).expect("read"),
        [0, 1, 4, 255].map(|id| Seen::UnknownSet(id, vec![1, 2]))
    );
    let sets = [set(2, &one_octet_template(255)), set(2, &one_octet_template(256))];
    assert_eq!(
        feed(&mut decoder, &message(0, &sets)).expect("read"),
        [Seen::Fault(Fault::TemplateId { found: 255 }), Seen::Template(256)]
    );
}

#[test]
fn limits_hold_for_templates_fields_and_domains() {
    let limits = Limits { templates_max: 2, fields_max: 2, domains_max: 2, learned_max: 1 };
    let mut decoder = Decoder::new(Transport::Stream, Mapping::default(), limits);
    let define = |id| [set(2, &one_octet_template(id))];
    assert_eq!(feed(&mut decoder, &message_of(1, 0, &define(256))), Ok(vec![Seen::Template(256)]));
    assert_eq!(feed(&mut decoder, &message_of(2, 0, &define(256))), Ok(vec![Seen::Template(256)]));
    let full = Fault::Templates { template: 257, max: 2 };
    assert_eq!(feed(&mut decoder, &message_of(1, 0, &define(257))), Ok(vec![Seen::Fault(full)]));
    assert_eq!(feed(&mut decoder, &message_of(1, 0, &define(256))), Ok(vec![Seen::Repeated(256)]));
    let domain = Error::Domains { domain: 3, max: 2 };
    assert_eq!(feed(&mut decoder, &message_of(3, 0, &[])), Err(domain));
    // A place that is freed in a message is free behind that.
    let swap = [set(2, &[&[1, 0, 0, 0][..], &one_octet_template(257)].concat())];
    assert_eq!(
        feed(&mut decoder, &message_of(1, 0, &swap)),
        Ok(vec![Seen::Withdrawn(TemplateKind::Template, 256), Seen::Template(257)])
    );
    let all =
        [set(2, &[&[0, 2, 0, 0][..], &one_octet_template(258), &one_octet_template(259)].concat())];
    assert_eq!(
        feed(&mut decoder, &message_of(1, 0, &all)),
        Ok(vec![
            Seen::AllWithdrawn(TemplateKind::Template),
            Seen::Template(258),
            Seen::Fault(Fault::Templates { template: 259, max: 2 })
        ])
    );
    assert_eq!(decoder.templates(), 2);
    let three = [set(
        2,
        &[&[1, 9, 0, 3, 0, 4, 0, 1, 0, 4, 0, 1, 0, 4, 0, 1][..], &one_octet_template(258)].concat(),
    )];
    assert_eq!(
        feed(&mut decoder, &message_of(1, 0, &three)),
        Ok(vec![
            Seen::Fault(Fault::Fields { template: 265, found: 3, max: 2 }),
            Seen::Repeated(258)
        ])
    );
}

#[test]
fn a_field_count_that_promises_more_than_the_set_holds_costs_no_memory_and_the_message() {
    let mut decoder = session();
    let refused = feed(&mut decoder, &message(0, &[set(2, &[1, 0, 0xff, 0xff, 0, 4, 0, 1])]));
    let expected = Error::TemplateCut { at: 20, template: 256, fields: 0xffff, left: 8 };
    assert_eq!(refused, Err(expected));
}
