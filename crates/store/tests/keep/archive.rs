//! Segments: what goes in comes out, each readable by itself, with its clock and its facts.

use std::io::Read as _;

use proptest::prelude::*;
use store::SessionId;
use store::archive::{Archive, ArchiveLimits, Entry, Segment, segments};
use wire::element::Mapping;
use wire::ipfix::{Decoder, Event, Frame, Limits, Transport, frame};

use crate::support::{Scratch, facts, messages, report};

const SESSION: SessionId = SessionId(1);

pub fn octets(segment: &Segment) -> Vec<u8> {
    let mut octets = Vec::new();
    segment.read().unwrap().read_to_end(&mut octets).unwrap();
    octets
}

#[test]
fn every_segment_is_readable_by_itself_and_together_they_are_the_stream() {
    // SEQ-7.18
    let scratch = Scratch::new();
    let limits = ArchiveLimits { segment_octets_max: 500, ..ArchiveLimits::default() };
    let (mut archive, repairs) = Archive::open(scratch.path(), limits).unwrap();
    assert_eq!(repairs, []);
    let messages = messages(&(1..=12).map(|n| report(1, n, false)).collect::<Vec<_>>());
    let templates = &messages[0];
    for (message, n) in messages.iter().zip(1..) {
        let restated = || if n == 1 { Vec::new() } else { templates.clone() };
        archive.append(SESSION, &facts(), n, message, restated).unwrap();
    }
    archive.close(SESSION, 99).unwrap();
    let segments = segments(scratch.path()).unwrap();
    assert!(segments.len() > 2, "{segments:?}");
    let (mut stream, mut times) = (Vec::new(), Vec::new());
    for (segment, number) in segments.iter().zip(0..) {
        assert_eq!((segment.number, segment.closed), (number, true));
        assert_eq!(segment.facts().unwrap(), Some(facts()));
        let octets = octets(segment);
        let mut rest = &octets[..];
        let mut decoder = Decoder::new(Transport::File, Mapping::default(), Limits::default());
        for entry in segment.clock().unwrap().unwrap() {
            let received_ms = match entry {
                Entry::Message { received_ms } => Some(received_ms),
                Entry::Restated => None,
                Entry::Ended { now_ms } => {
                    assert_eq!(now_ms, 99);
                    continue;
                }
                other => panic!("{other:?}"),
            };
            let Ok(Frame::Message { octets, rest: behind }) = frame(rest) else { panic!("cut") };
            rest = behind;
            let mut readable = false;
            let mut visit = |event: Event<'_>| readable |= matches!(event, Event::Data(_));
            decoder.message(octets, &mut visit).unwrap();
            assert!(readable, "segment {number}");
            if let Some(received_ms) = received_ms {
                stream.extend_from_slice(octets);
                times.push(received_ms);
            }
        }
        assert!(rest.is_empty(), "each message has its entry");
    }
    assert_eq!(stream, messages.concat());
    assert_eq!(times, (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_segment_is_closed_before_the_message_that_would_make_it_too_large() {
    let messages = messages(&(1..=3).map(|n| report(1, n, false)).collect::<Vec<_>>());
    let two = messages[0].len() + messages[1].len();
    for (max, expected) in [(two - 1, 1), (two, 2), (two + 1, 2), (1, 1)] {
        let scratch = Scratch::new();
        let segment_octets_max = u64::try_from(max).unwrap();
        let limits = ArchiveLimits { segment_octets_max, ..ArchiveLimits::default() };
        let (mut archive, _) = Archive::open(scratch.path(), limits).unwrap();
        for message in &messages {
            archive.append(SESSION, &facts(), 1, message, Vec::new).unwrap();
        }
        archive.flush().unwrap();
        let found = segments(scratch.path()).unwrap();
        assert_eq!(octets(&found[0]), messages[..expected].concat(), "{max}");
        let open: Vec<_> = found.iter().filter(|segment| !segment.closed).collect();
        assert_eq!(open.len(), 1, "{max}");
    }
}

#[test]
fn sessions_do_not_mix() {
    let scratch = Scratch::new();
    let (mut archive, _) = Archive::open(scratch.path(), ArchiveLimits::default()).unwrap();
    let messages = messages(&(1..=6).map(|n| report(1, n, false)).collect::<Vec<_>>());
    for (message, n) in messages.iter().zip(0..) {
        archive.append(SessionId(n % 2), &facts(), 1, message, Vec::new).unwrap();
    }
    archive.close(SessionId(0), 1).unwrap();
    archive.close(SessionId(1), 1).unwrap();
    for (segment, n) in segments(scratch.path()).unwrap().iter().zip(0..) {
        let ours: Vec<u8> = messages.iter().skip(n).step_by(2).flatten().copied().collect();
        assert_eq!(octets(segment), ours);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_entries_comes_back_in_its_order(
        steps in prop::collection::vec((0u8..4, 1u64..99), 1..60),
        segment_octets_max in 100u64..2000,
        waiting_octets_max in 1usize..500,
    ) {
        let scratch = Scratch::new();
        let limits =
            ArchiveLimits { segment_octets_max, waiting_octets_max, ..ArchiveLimits::default() };
        let (mut archive, _) = Archive::open(scratch.path(), limits).unwrap();
        let message = &messages(&[report(1, 1, false)])[0];
        let mut expected = Vec::new();
        for (step, ms) in steps {
            let entry = match step {
                0 => Entry::Message { received_ms: ms },
                1 => Entry::Advanced { now_ms: ms },
                2 => Entry::Dropped { domain: 7 },
                _ => {
                    archive.flush().unwrap();
                    continue;
                }
            };
            if let Entry::Message { received_ms } = entry {
                archive.append(SESSION, &facts(), received_ms, message, Vec::new).unwrap();
            } else if !expected.is_empty() {
                archive.note(SESSION, entry).unwrap();
            } else {
                // Before its first message a session has no segment.
                continue;
            }
            expected.push(entry);
        }
        if !expected.is_empty() {
            archive.close(SESSION, 5).unwrap();
            expected.push(Entry::Ended { now_ms: 5 });
        }
        let found: Vec<_> = segments(scratch.path())
            .unwrap()
            .iter()
            .flat_map(|segment| segment.clock().unwrap().unwrap())
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn what_is_said_of_a_domain_before_the_first_message_is_kept_in_front_of_it() {
    // SEQ-7.18
    let scratch = Scratch::new();
    let (mut archive, _) = Archive::open(scratch.path(), ArchiveLimits::default()).unwrap();
    archive.note(SESSION, Entry::Advanced { now_ms: 3 }).unwrap();
    archive.note(SESSION, Entry::Expelled { domain: 2 }).unwrap();
    archive.note(SESSION, Entry::Admitted { domain: 2 }).unwrap();
    archive.append(SESSION, &facts(), 5, &messages(&[report(1, 1, true)])[0], Vec::new).unwrap();
    archive.close(SESSION, 9).unwrap();
    let segments = segments(scratch.path()).unwrap();
    let clock = segments[0].clock().unwrap().unwrap();
    assert_eq!(clock[..2], [Entry::Admitted { domain: 2 }, Entry::Message { received_ms: 5 }]);
}

#[test]
fn a_session_whose_name_is_taken_is_refused_and_what_was_archived_stays() {
    let scratch = Scratch::new();
    let message = &messages(&[report(1, 1, true)])[0];
    for first in [true, false] {
        let (mut archive, _) = Archive::open(scratch.path(), ArchiveLimits::default()).unwrap();
        let appended = archive.append(SESSION, &facts(), 5, message, Vec::new);
        assert_eq!(appended.is_ok(), first, "{appended:?}");
        archive.close(SESSION, 9).unwrap();
        assert_eq!(archive.last_session().unwrap(), Some(SESSION));
        let segments = segments(scratch.path()).unwrap();
        assert_eq!(segments.len(), 1);
        assert_eq!(octets(&segments[0]), *message);
        assert_eq!(segments[0].clock().unwrap().unwrap().len(), 2, "a message and the end");
        assert_eq!(segments[0].facts().unwrap(), Some(facts()));
    }
}
