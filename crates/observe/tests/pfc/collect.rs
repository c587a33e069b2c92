//! The collecting side: what is kept, what is refused, and what is never made up.

use observe::pfc::collect::{Limits, Rejection, Session, Verdict};
use observe::pfc::interval::{Interval, Known, Reason, Sighting};
use observe::pfc::record::{Binding, FurtherScope};
use observe::pfc::{Direction, Priority, Reading, Scope};
use wire::element::{DraftElement, ElementId, Mapping};
use wire::ipfix::{
    Decoder, Encoder, Event, FieldSpec, Limits as DecoderLimits, TemplateSpec, Transport,
};

use crate::support::{known, scope, sighting};

fn session() -> Session {
    Session::new(Limits::default())
}

fn receive(session: &mut Session, ms: u64, total: u64) -> Verdict {
    let sighting = sighting(ms, total);
    session.receive(sighting.reading, FurtherScope::default(), sighting.known)
}

// PFC-op.1
#[test]
fn what_did_not_arrive_is_not_there_and_zero_is_a_reading() {
    let mut session = session();
    let nothing = FurtherScope::default();
    assert_eq!(session.latest(scope(), &nothing), None);
    assert_eq!(receive(&mut session, 0, 0), Verdict::First);
    assert_eq!(session.latest(scope(), &nothing).map(|s| s.reading.total), Some(0));
    let other = Scope { priority: Priority::new(4).unwrap(), ..scope() };
    assert_eq!(session.latest(other, &nothing), None);
}

// PFC-id.1: RX and TX, neighbouring priorities and neighbouring ports all count differently.
#[test]
fn every_scope_has_a_counter_of_its_own() {
    let mut session = session();
    let mut scopes = Vec::new();
    for interface in [11, 12] {
        for direction in Direction::ALL {
            scopes.extend(Priority::ALL.map(|priority| Scope {
                interface,
                direction,
                priority,
                ..scope()
            }));
        }
    }
    for round in 0..3_u64 {
        for (step, scope) in (1..).zip(&scopes) {
            let ms = round * 1000;
            let reading = Reading { scope: *scope, time_ms: ms, total: round * step };
            match session.receive(reading, FurtherScope::default(), known(ms)) {
                Verdict::First => assert_eq!(round, 0),
                Verdict::Follows(Interval::Exact(frames)) => {
                    assert_eq!((frames.scope(), frames.count()), (*scope, step));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(session.len(), 32);
}

// PFC-sem.2
#[test]
fn a_record_alone_makes_no_interval() {
    let mut session = session();
    for (ms, total) in [(0, 5), (1000, 9), (2000, 3)] {
        let reading = sighting(ms, total).reading;
        let verdict = session.receive(reading, FurtherScope::default(), Known::default());
        let unknown = Verdict::Follows(Interval::Unknown(Reason::InstanceUnknown));
        assert_eq!(verdict, if ms == 0 { Verdict::First } else { unknown });
    }
}

#[test]
fn the_same_again_changes_nothing_and_neither_does_an_earlier_one() {
    let mut session = session();
    receive(&mut session, 1000, 5);
    assert_eq!(receive(&mut session, 1000, 5), Verdict::Repeated);
    assert_eq!(receive(&mut session, 999, 4), Verdict::Earlier);
    let latest = session.latest(scope(), &FurtherScope::default());
    assert_eq!(latest, Some(&sighting(1000, 5)));
}

#[test]
fn an_observation_time_that_goes_back_does_not_silence_a_counter() {
    let mut session = session();
    for (time_ms, total) in [(9000, 5), (1000, 6), (2000, 7)] {
        let reading = Reading { scope: scope(), time_ms, total };
        session.receive(reading, FurtherScope::default(), Known::default());
        let latest = session.latest(scope(), &FurtherScope::default());
        assert_eq!(latest.map(|s| s.reading), Some(reading));
    }
}

#[test]
fn a_full_session_refuses_new_counters_and_keeps_the_old_ones() {
    let mut session = Session::new(Limits { counters_max: 2, ..Limits::default() });
    let at = |index, ms| {
        let priority = Priority::new(index).unwrap();
        (Reading { scope: Scope { priority, ..scope() }, time_ms: ms, total: ms }, known(ms))
    };
    let mut take = |index, ms| {
        let (reading, known) = at(index, ms);
        session.receive(reading, FurtherScope::default(), known)
    };
    assert_eq!(take(0, 0), Verdict::First);
    assert_eq!(take(1, 0), Verdict::First);
    let full = Verdict::Rejected(Rejection::CountersFull);
    assert_eq!(take(2, 0), full);
    assert!(matches!(take(1, 1000), Verdict::Follows(Interval::Exact(_))));
    assert_eq!(take(2, 1000), full);
    assert_eq!(Rejection::CountersFull.to_string(), "no room for another counter");
    assert_eq!(session.counters().len(), 2);
}

// PFC-exp.1
#[test]
fn a_further_scope_has_a_bound_and_so_have_all_of_a_session_and_what_is_kept_stays() {
    let limits = Limits { further_octets_max: 3, further_octets_all_max: 7, ..Limits::default() };
    let mut session = Session::new(limits);
    let mut take = |octets: &[u8], ms| {
        let further = FurtherScope::from_octets(octets.to_vec());
        session.receive(sighting(ms, ms).reading, further, known(ms))
    };
    assert_eq!(take(&[1; 3], 0), Verdict::First);
    assert_eq!(take(&[1; 4], 0), Verdict::Rejected(Rejection::FurtherTooLong));
    assert_eq!(take(&[2; 3], 0), Verdict::First);
    assert_eq!(take(&[3; 2], 0), Verdict::Rejected(Rejection::FurtherFull));
    assert_eq!(take(&[4; 1], 0), Verdict::First);
    assert_eq!(take(&[5; 1], 0), Verdict::Rejected(Rejection::FurtherFull));
    assert_eq!(take(&[], 0), Verdict::First);
    for octets in [&[1; 3][..], &[2; 3], &[4], &[]] {
        assert!(matches!(take(octets, 1000), Verdict::Follows(Interval::Exact(_))));
    }
    assert_eq!((session.len(), session.further_octets()), (4, 7));
    let words = "no room for the further scope of another counter";
    assert_eq!(Rejection::FurtherFull.to_string(), words);
}

// PFC-sem.2
#[test]
fn an_instance_that_counted_more_than_it_can_is_not_believed_again() {
    let mut session = session();
    assert_eq!(receive(&mut session, 1000, 500), Verdict::First);
    assert!(matches!(receive(&mut session, 2000, 501), Verdict::Follows(Interval::Exact(_))));
    assert_eq!(session.counters()[0].unbroken, 1);
    let unknown = |reason| Verdict::Follows(Interval::Unknown(reason));
    // Back by one is 2^64 - 1 forward.
    assert_eq!(receive(&mut session, 3000, 500), unknown(Reason::TooMany));
    assert_eq!(session.counters()[0].unbroken, 3);
    for (n, ms) in [(4, 4000), (5, 5000)] {
        assert_eq!(receive(&mut session, ms, 500 + ms), unknown(Reason::InstanceUnknown));
        assert_eq!(session.counters()[0].unbroken, n);
    }
}

// PFC-id.1: counters that come in another order than before are the same counters.
#[test]
fn a_counter_keeps_its_place_in_whatever_order_it_comes() {
    let mut session = session();
    let of = |index: u8, ms: u64| Reading {
        scope: Scope { priority: Priority::new(index).unwrap(), ..scope() },
        time_ms: ms,
        total: u64::from(index) + ms,
    };
    for (round, order) in
        [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3], [1, 1, 2, 2]].iter().enumerate()
    {
        for (step, index) in order.iter().enumerate() {
            let ms = u64::try_from(1 + round * 10 + step).unwrap();
            let (at, verdict) =
                session.receive_at(of(*index, ms), FurtherScope::default(), known(ms));
            assert_eq!(at, Some(usize::from(*index)));
            assert_eq!(verdict == Verdict::First, round == 0);
            let counter = &session.counters()[usize::from(*index)];
            assert_eq!(counter.latest.reading, of(*index, ms));
            if let Verdict::Follows(interval) = verdict {
                assert_eq!(counter.interval(), interval);
            }
        }
    }
    let readings: Vec<_> = session.counters().iter().map(|counter| counter.readings).collect();
    assert_eq!(readings, [3, 5, 5, 3]);
}

/// Readings with a line card in their scope, in this order of fields.
fn of_cards(card_first: bool, cards: &[u64]) -> Vec<(Reading, FurtherScope)> {
    let mapping = Mapping::default();
    let iana = |id, length| FieldSpec::new(ElementId::iana(id), length);
    let draft = |e: DraftElement| FieldSpec::full(mapping.id(e), e.abstract_type());
    let mut fields = vec![
        iana(138, 8),
        iana(252, 4),
        draft(DraftElement::PfcPriority),
        iana(323, 8),
        draft(DraftElement::PfcControlFrameTotalCount),
    ];
    let at = if card_first { 0 } else { 3 };
    fields.insert(at, iana(141, 4));
    let spec = TemplateSpec { id: 256, scope_count: 4, fields };
    let mut encoder = Encoder::new(65535).unwrap();
    let mut out = Vec::new();
    let mut writer = encoder.writer(5, 0, &mut out);
    writer.template(&spec).unwrap();
    for card in cards {
        let mut values = vec![7, 11, 3, 1000, *card * 100];
        values.insert(at, *card);
        let filled =
            writer.record(256, |record| values.iter().try_for_each(|n| record.unsigned(*n)));
        filled.unwrap();
    }
    writer.finish();
    let mut found = Vec::new();
    let mut decoder = Decoder::new(Transport::Stream, mapping, DecoderLimits::default());
    let visited = decoder.message(&out, &mut |event| {
        if let Event::Data(set) = event {
            let binding = Binding::new(set.layout, &mapping).unwrap();
            for record in set.records {
                found.push((binding.read(5, &record).unwrap(), binding.further(&record)));
            }
        }
    });
    visited.unwrap();
    found
}

// PFC-exp.1, PFC-sem.2: what narrows the scope makes another counter of it.
#[test]
fn two_line_cards_with_the_same_scope_otherwise_are_two_counters() {
    let mut session = session();
    let mut verdicts = Vec::new();
    for (reading, further) in of_cards(false, &[1, 2]).into_iter().chain(of_cards(true, &[1, 2])) {
        assert!(!further.is_empty());
        verdicts.push(session.receive(reading, further, known(1000)));
    }
    // The order of the fields makes no difference.
    use Verdict::{First, Repeated};
    assert_eq!(verdicts, [First, First, Repeated, Repeated]);
    assert_eq!(session.len(), 2);
    assert_eq!(session.latest(scope(), &FurtherScope::default()), None);
}

/// A reading whose exporter calls the instance so.
fn of(instance: u64, ms: u64, total: u64) -> Sighting {
    let mut sighting = sighting(ms, total);
    sighting.known.instance = Some(instance);
    sighting
}

// PFC-sem.2
#[test]
fn of_who_was_wrong_about_two_instances_no_third_is_believed() {
    let mut session = session();
    let mut take = |instance, ms, total| {
        let Sighting { reading, known } = of(instance, ms, total);
        session.receive(reading, FurtherScope::default(), known)
    };
    let unknown = |reason| Verdict::Follows(Interval::Unknown(reason));
    take(1, 1000, 0);
    assert_eq!(take(1, 1001, 1 << 60), unknown(Reason::TooMany));
    // Another one is believed, until it does the same.
    assert_eq!(take(2, 2000, 0), unknown(Reason::InstanceReplaced));
    assert!(matches!(take(2, 3000, 5), Verdict::Follows(Interval::Exact(_))));
    assert_eq!(take(2, 3001, 1 << 60), unknown(Reason::TooMany));
    for (instance, ms) in [1, 1, 2, 2, 3, 3].into_iter().zip(4000..) {
        assert_eq!(take(instance, ms, 10), unknown(Reason::InstanceUnknown), "{instance}");
    }
}

// PFC-sem.2
#[test]
fn a_total_that_falls_within_a_millisecond_speaks_against_its_instance() {
    let mut session = session();
    receive(&mut session, 1000, 5);
    // A few more are no contradiction.
    let not_later = Verdict::Follows(Interval::Unknown(Reason::NotLater));
    assert_eq!(receive(&mut session, 1000, 6), not_later);
    assert!(matches!(receive(&mut session, 2000, 7), Verdict::Follows(Interval::Exact(_))));
    let unknown = |reason| Verdict::Follows(Interval::Unknown(reason));
    assert_eq!(receive(&mut session, 2000, 0), unknown(Reason::TooMany));
    assert_eq!(receive(&mut session, 3000, 1), unknown(Reason::InstanceUnknown));
}

// PFC-sem.2
#[test]
fn an_earlier_reading_that_cannot_be_speaks_against_its_instance() {
    let mut session = session();
    receive(&mut session, 1000, 1000);
    // It can be, so it says nothing.
    assert_eq!(receive(&mut session, 900, 999), Verdict::Earlier);
    assert!(matches!(receive(&mut session, 2000, 1001), Verdict::Follows(Interval::Exact(_))));
    assert_eq!(receive(&mut session, 1500, 2000), Verdict::Contradicts);
    let unknown = Verdict::Follows(Interval::Unknown(Reason::InstanceUnknown));
    assert_eq!(receive(&mut session, 3000, 1002), unknown);
    assert_eq!(receive(&mut session, 4000, 1003), unknown);
}

#[test]
fn a_further_scope_that_is_too_long_is_refused_and_takes_no_room() {
    let mut session = Session::new(Limits { further_octets_max: 12, ..Limits::default() });
    let Sighting { reading, known } = sighting(0, 5);
    let mut take =
        |octets: usize| session.receive(reading, FurtherScope::from_octets(vec![1; octets]), known);
    assert_eq!(take(11), Verdict::First);
    assert_eq!(take(12), Verdict::First);
    let rejected = Verdict::Rejected(Rejection::FurtherTooLong);
    assert_eq!(take(13), rejected);
    assert_eq!(session.len(), 2);
    let words = "more octets in its further scope than are kept";
    assert_eq!(Rejection::FurtherTooLong.to_string(), words);
}
