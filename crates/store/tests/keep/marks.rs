//! What reached the archive and was never published is cut, wherever the process ended.

use std::collections::BTreeMap;

use store::archive::{Archive, ArchiveLimits, Entry, Mark, segments};
use store::{Change, SessionId, Store, StoreLimits};

use crate::archive::octets;
use crate::support::{Scratch, facts, messages, report, state};

/// A segment for every two messages.
fn limits(messages: &[Vec<u8>]) -> ArchiveLimits {
    let octets = messages[0].len() + messages[1].len();
    let segment_octets_max = u64::try_from(octets).unwrap() + 20;
    ArchiveLimits { segment_octets_max, ..ArchiveLimits::default() }
}

// SEQ-7.18
#[test]
fn an_archive_is_cut_to_what_was_published_also_behind_closed_segments_and_an_end() {
    let messages = messages(&(1..=8).map(|n| report(1, n, false)).collect::<Vec<_>>());
    for published in 0..=messages.len() {
        for ended in [false, true] {
            let scratch = Scratch::new();
            let directory = scratch.path().join("archive");
            let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
            let session = store.open_session(&facts()).unwrap();
            let (mut archive, _) = Archive::open(&directory, limits(&messages)).unwrap();
            for (message, n) in messages.iter().zip(1_usize..) {
                let received_ms = u64::try_from(n).unwrap();
                archive.append(session, &facts(), received_ms, message, Vec::new).unwrap();
                archive.flush().unwrap();
                if n <= published {
                    let marks = archive.marks();
                    let changes = [state(session, &[report(1, received_ms, false)], 1)];
                    let changes = changes.map(|state| Change::Epoch(Box::new(state)));
                    store.apply_at(&changes, &marks).unwrap();
                    archive.marked(&marks);
                    assert_eq!(archive.marks(), [], "nothing more");
                }
            }
            if ended {
                archive.close(session, 99).unwrap();
            }
            drop((archive, store));

            // Killed once more in between: it can be done again.
            for _ in 0..2 {
                let (store, _) = Store::open(scratch.path(), StoreLimits::default(), 1).unwrap();
                let marks = store.marks().unwrap();
                assert!(marks.contains_key(&session));
                let (_, repairs) = Archive::open_at(&directory, limits(&messages), &marks).unwrap();
                let cut: u64 = repairs.iter().map(|repair| repair.octets_unpublished).sum();
                if published == messages.len() || repairs.is_empty() {
                    assert_eq!(cut, 0);
                }
            }
            let (mut stream, mut times) = (Vec::new(), Vec::new());
            for segment in segments(&directory).unwrap() {
                assert!(segment.closed);
                stream.extend(octets(&segment));
                times.extend(segment.clock().unwrap().unwrap());
            }
            let here = format!("{published} published, ended {ended}");
            assert_eq!(stream, messages[..published].concat(), "{here}");
            let expected =
                (1..=u64::try_from(published).unwrap()).map(|n| Entry::Message { received_ms: n });
            assert_eq!(times, expected.collect::<Vec<_>>(), "{here}");
        }
    }
}

#[test]
fn a_session_that_ended_in_order_has_no_mark_and_one_without_a_mark_is_left_as_it_is() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    let [one, two] = [(), ()].map(|()| store.open_session(&facts()).unwrap());
    assert_eq!(store.marks().unwrap(), BTreeMap::from([one, two].map(|s| (s, Mark::default()))));
    let mark = Mark { segment: 3, octets: u64::MAX, clock_octets: 5 };
    store.apply_at(&[], &[(two, mark)]).unwrap();
    let closed = Change::SessionClosed { session: one, closed_ms: 1, reason: "over".into() };
    store.apply_at(&[closed], &[(one, mark)]).unwrap();
    assert_eq!(store.marks().unwrap(), BTreeMap::from([(two, mark)]));
    store.forget_marks().unwrap();
    assert_eq!(store.marks().unwrap(), BTreeMap::new());

    let directory = scratch.path().join("archive");
    let (mut archive, _) = Archive::open(&directory, ArchiveLimits::default()).unwrap();
    let messages = messages(&[report(1, 1, false)]);
    archive.append(SessionId(9), &facts(), 1, &messages[0], Vec::new).unwrap();
    archive.flush().unwrap();
    drop(archive);
    let marks = BTreeMap::from([(two, Mark::default())]);
    Archive::open_at(&directory, ArchiveLimits::default(), &marks).unwrap();
    assert_eq!(octets(&segments(&directory).unwrap()[0]), messages[0]);
}
