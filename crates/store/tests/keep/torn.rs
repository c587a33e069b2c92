//! Files that end where a process or a machine stopped.

use std::fs::{self, OpenOptions};
use std::path::Path;

use store::SessionId;
use store::archive::{Archive, ArchiveLimits, ENTRY_LEN, Entry, Repair, Segment, segments};

use crate::archive::octets;
use crate::support::{Scratch, facts, messages, report};

const SESSION: SessionId = SessionId(1);

fn only(directory: &Path) -> Segment {
    let mut found = segments(directory).unwrap();
    assert_eq!(found.len(), 1);
    found.pop().unwrap()
}

/// An open segment of three messages, left as a killed process leaves it.
fn left_open(scratch: &Scratch) -> (Vec<Vec<u8>>, Segment) {
    let (mut archive, _) = Archive::open(scratch.path(), ArchiveLimits::default()).unwrap();
    let messages = messages(&(1..=3).map(|n| report(1, n, false)).collect::<Vec<_>>());
    for (message, n) in messages.iter().zip(1..) {
        archive.append(SESSION, &facts(), n, message, Vec::new).unwrap();
    }
    archive.flush().unwrap();
    (messages, only(scratch.path()))
}

fn shorten(path: &Path, length: usize) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(u64::try_from(length).unwrap()).unwrap();
}

#[test]
fn what_is_mended_is_never_behind_a_link() {
    let elsewhere = Scratch::new();
    let precious = elsewhere.path().join("precious");
    for extension in ["ipfix", "clock", "json", "ipfix.zst", "ipfix.zst.unfinished"] {
        let scratch = Scratch::new();
        let (_, segment) = left_open(&scratch);
        let stem = segment.path.file_stem().unwrap().to_str().unwrap().to_owned();
        let link = scratch.path().join(format!("{stem}.{extension}"));
        _ = fs::remove_file(&link);
        fs::write(&precious, "nothing of an archive").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        let refused = Archive::open(scratch.path(), ArchiveLimits::default());
        let error = refused.err().unwrap_or_else(|| panic!("{extension} is mended")).to_string();
        assert!(error.contains("symbolic link") && error.contains(&stem), "{error}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "nothing of an archive", "{extension}");
        assert!(link.is_symlink(), "{extension}");
    }
}

fn reopened(scratch: &Scratch) -> Vec<Repair> {
    Archive::open(scratch.path(), ArchiveLimits::default()).unwrap().1
}

#[test]
fn a_tail_torn_at_any_octet_of_the_last_message_is_cut_to_the_message_before() {
    let length = {
        let scratch = Scratch::new();
        left_open(&scratch).0[2].len()
    };
    for cut in 0..=length {
        let scratch = Scratch::new();
        let (messages, segment) = left_open(&scratch);
        let before = messages[0].len() + messages[1].len();
        shorten(&segment.path, before + cut);
        let whole = cut == length;
        let expected = Repair {
            session: SESSION,
            number: 0,
            messages: 2 + u64::from(whole),
            octets_cut: if whole { 0 } else { u64::try_from(cut).unwrap() },
            octets_unpublished: 0,
            times_unknown: 0,
            entries_cut: u64::from(!whole),
        };
        assert_eq!(reopened(&scratch), [expected], "{cut}");
        let closed = only(scratch.path());
        assert!(closed.closed);
        let kept = if whole { 3 } else { 2 };
        assert_eq!(octets(&closed), messages[..kept].concat(), "{cut}");
        let times = (1..=u64::try_from(kept).unwrap()).map(|n| Entry::Message { received_ms: n });
        assert_eq!(closed.clock().unwrap().unwrap(), times.collect::<Vec<_>>());
        assert_eq!(reopened(&scratch), [], "once");
    }
}

#[test]
fn a_clock_torn_at_any_octet_leaves_every_message_and_says_whose_time_is_not_known() {
    for cut in 0..=3 * ENTRY_LEN {
        let scratch = Scratch::new();
        let (messages, segment) = left_open(&scratch);
        let clock = segment.path.with_extension("clock");
        shorten(&clock, cut);
        let known = cut / ENTRY_LEN;
        let repairs = reopened(&scratch);
        assert_eq!(repairs[0].messages, 3);
        assert_eq!(repairs[0].times_unknown, u64::try_from(3 - known).unwrap(), "{cut}");
        let closed = only(scratch.path());
        assert_eq!(octets(&closed), messages.concat());
        let known = u64::try_from(known).unwrap();
        let times = (1..=3).map(|n| Entry::Message { received_ms: n.min(known) });
        assert_eq!(closed.clock().unwrap().unwrap(), times.collect::<Vec<_>>(), "{cut}");
    }
}

#[test]
fn octets_that_are_no_message_end_a_segment_as_a_torn_one_does() {
    let scratch = Scratch::new();
    let (messages, segment) = left_open(&scratch);
    let mut octets = fs::read(&segment.path).unwrap();
    octets.extend_from_slice(b"GET / HTTP/1.1\r\n");
    fs::write(&segment.path, octets).unwrap();
    let repairs = reopened(&scratch);
    assert_eq!((repairs[0].messages, repairs[0].octets_cut), (3, 16));
    assert_eq!(self::octets(&only(scratch.path())), messages.concat());
}

#[test]
fn a_compression_that_did_not_finish_is_begun_anew_and_one_that_did_is_kept() {
    let scratch = Scratch::new();
    let (messages, segment) = left_open(&scratch);
    let raw = fs::read(&segment.path).unwrap();
    let unfinished = segment.path.with_extension("ipfix.zst.unfinished");
    fs::write(&unfinished, b"half").unwrap();
    reopened(&scratch);
    assert!(!unfinished.exists());
    assert_eq!(octets(&only(scratch.path())), messages.concat());
    // Killed between the rename and the removal of what it replaces.
    fs::write(&segment.path, raw).unwrap();
    assert!(only(scratch.path()).closed, "the whole one counts");
    assert_eq!(reopened(&scratch), []);
    assert!(!segment.path.exists());
    assert_eq!(octets(&only(scratch.path())), messages.concat());
}

#[test]
fn a_segment_without_a_message_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let (_, segment) = left_open(&scratch);
    shorten(&segment.path, 10);
    let repairs = reopened(&scratch);
    assert_eq!((repairs[0].messages, repairs[0].octets_cut), (0, 10));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    // Killed when only what stands beside the messages had been made.
    let (_, segment) = left_open(&scratch);
    fs::remove_file(&segment.path).unwrap();
    assert_eq!(reopened(&scratch), []);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    let scratch = Scratch::new();
    for name in ["notes.json", "a.clock", "x-y.ipfix", "other.ipfix.zst"] {
        fs::write(scratch.path().join(name), b"mine").unwrap();
    }
    assert_eq!(reopened(&scratch), []);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 4);
}
