//! What can be replayed, what cannot, and what is said of archives that are not whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocescope::replay::ReplayError;
use serde_json::Value;
use store::archive::{Archive, ArchiveLimits, Entry, Segment, segments};
use store::{Rules, SessionId};

use crate::support::{Scratch, facts, message, replayed, report};

const ROCESCOPE: &str = env!("CARGO_BIN_EXE_rocescope");

fn run(arguments: &[&Path]) -> (Option<i32>, String, String) {
    let output = Command::new(ROCESCOPE).args(arguments).output().expect("runs");
    let text = |octets| String::from_utf8(octets).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A session of epochs 1 to 6, each complete in two messages, in several segments.
fn archived(scratch: &Scratch, close: bool) -> Vec<PathBuf> {
    let limits = ArchiveLimits { segment_octets_max: 450, ..ArchiveLimits::default() };
    let (mut archive, _) = Archive::open(scratch.path(), limits).unwrap();
    for n in 0..12u64 {
        let report = report(n / 2 + 1, n % 2 + 1, n + 1, n % 2 == 1);
        let octets = message(1, n == 0, Some(&report));
        let restated = || if n == 0 { Vec::new() } else { message(1, true, None) };
        archive.append(SessionId(1), &facts(Rules::default()), n, &octets, restated).unwrap();
    }
    if close {
        archive.close(SessionId(1), 99).unwrap();
    } else {
        archive.flush().unwrap();
    }
    let found = segments(scratch.path()).unwrap();
    assert!(found.len() > 3, "{found:?}");
    found.into_iter().map(|segment| segment.path).collect()
}

fn outcomes(lines: &[Value]) -> Vec<(u64, &str)> {
    let of = |line: &'_ Value| line["rdmaSequenceEpochId"].as_u64().unwrap();
    lines.iter().map(|line| (of(line), line["outcome"].as_str().unwrap())).collect()
}

#[test]
fn an_archive_is_replayed_as_a_directory_as_a_store_and_segment_by_segment() {
    // SEQ-7.18
    let scratch = Scratch::new();
    let paths = archived(&scratch, true);
    let whole: Vec<_> = (1..=6).map(|id| (id, "complete")).collect();
    let directory = replayed(&[scratch.path().to_owned()]).unwrap();
    assert_eq!(outcomes(&directory.lines), whole);
    assert!(directory.warnings.is_empty(), "{:?}", directory.warnings);
    assert_eq!((directory.summary.sessions, directory.summary.messages), (1, 12));
    assert_eq!((directory.summary.accepted, directory.summary.epochs), (12, [6, 0, 0]));
    // In any order, also twice.
    let mut paths = paths;
    paths.reverse();
    paths.push(paths[0].clone());
    let by_hand = replayed(&paths).unwrap();
    assert_eq!(by_hand.lines, directory.lines);
    assert!(by_hand.warnings.is_empty());
    let store = Scratch::new();
    fs::rename(scratch.path(), store.path().join("archive")).unwrap();
    assert_eq!(replayed(&[store.path().to_owned()]).unwrap().lines, directory.lines);
}

#[test]
fn a_session_without_an_end_is_replayed_to_its_last_message_and_that_is_said() {
    // SEQ-7.13
    let scratch = Scratch::new();
    let open = archived(&scratch, false).pop().unwrap();
    let found = replayed(&[scratch.path().to_owned()]).unwrap();
    assert_eq!(found.warnings.len(), 1);
    assert!(found.warnings[0].contains("no end of session 1"), "{:?}", found.warnings);
    assert_eq!(found.summary.epochs, [6, 0, 0]);
    // The last message is being written while it is read.
    let length = fs::metadata(&open).unwrap().len();
    fs::OpenOptions::new().write(true).open(&open).unwrap().set_len(length - 1).unwrap();
    let found = replayed(&[scratch.path().to_owned()]).unwrap();
    assert_eq!(found.summary.epochs, [5, 1, 0]);
    let last = found.lines.last().unwrap();
    assert_eq!(last["reason"], "no final report was received");
    assert_eq!(last["qualifications"], serde_json::json!(["noFinal"]));
}

#[test]
fn a_segment_that_is_not_there_is_told_and_makes_nothing_complete() {
    // SEQ-7.7
    let scratch = Scratch::new();
    let paths = archived(&scratch, true);
    let all = replayed(&[scratch.path().to_owned()]).unwrap();
    for path in &paths {
        let others: Vec<_> = paths.iter().filter(|other| *other != path).cloned().collect();
        let found = replayed(&others).unwrap();
        assert_eq!(found.warnings.len(), 1, "{path:?}: {:?}", found.warnings);
        for line in &found.lines {
            let same = all.lines.contains(line);
            assert!(same || line["outcome"] == "incomplete", "{path:?}: {line}");
        }
        assert!(found.summary.accepted < 12);
    }
}

#[test]
fn a_damaged_segment_is_told_and_what_can_be_read_is_judged() {
    let scratch = Scratch::new();
    let paths = archived(&scratch, true);
    let all = replayed(&[scratch.path().to_owned()]).unwrap();
    let whole = fs::read(&paths[1]).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(&paths[1], &damaged).unwrap();
        let found = replayed(&[scratch.path().to_owned()]).unwrap();
        if found.lines != all.lines {
            assert!(!found.warnings.is_empty(), "octet {at}");
        }
    }
}

#[test]
fn a_plain_file_of_the_meter_is_one_session() {
    let scratch = Scratch::new();
    let capture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/captures/softroce/g4_write_q8_loss1.rcv.pcap");
    let file = scratch.path().join("out.ipfix");
    let meter = ["meter", "--attest-all", "--json", "--report-interval", "0.05", "--ipfix"];
    let mut arguments: Vec<&Path> = meter.iter().map(Path::new).collect();
    arguments.extend([file.as_path(), &capture]);
    let (code, metered, err) = run(&arguments);
    assert_eq!(code, Some(0), "{err}");
    let json = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let last = |line: &Value| line["rdmaSequenceFlags"].as_u64().unwrap() & 1 == 1;
    let mut finals = json(&metered);
    finals.retain(last);
    for line in &mut finals {
        // Why it ended is the meter's knowledge; the record has the flags.
        assert!(line.as_object_mut().unwrap().remove("closure").is_some());
    }
    let (code, replayed, err) = run(&[Path::new("replay"), Path::new("--json"), &file]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let mut epochs = json(&replayed);
    assert!(!epochs.is_empty());
    for epoch in &mut epochs {
        let epoch = epoch.as_object_mut().unwrap();
        assert_eq!(epoch.remove("outcome"), Some("complete".into()));
        assert_eq!(epoch.remove("reportGaps"), Some(0.into()));
        assert_eq!(epoch.remove("reason"), Some(Value::Null));
        assert_eq!(epoch.remove("session"), Some(Value::Null));
        assert_eq!(
            epoch.remove("qualifications"),
            Some(serde_json::json!(["generationUnverified"]))
        );
    }
    let id = |line: &Value| line["rdmaSequenceEpochId"].as_u64().unwrap();
    finals.sort_by_key(id);
    assert_eq!(epochs, finals, "the latest report of each epoch is its final one");
    let (code, table, _) = run(&[Path::new("replay"), &file]);
    assert_eq!(code, Some(0));
    assert!(table.contains("complete") && table.contains("reports accepted"), "{table}");
    // SEQ-7.16
    for word in ["lost", "retransmi", "reorder"] {
        assert!(!table.contains(word), "{word}");
    }
}

#[test]
fn a_file_that_ends_inside_a_message_is_read_to_there_and_that_is_said() {
    let scratch = Scratch::new();
    let file = scratch.path().join("cut.ipfix");
    let mut octets = message(1, true, Some(&report(1, 1, 1, true)));
    let whole = octets.len();
    octets.extend(message(1, true, Some(&report(2, 1, 1, true))));
    for cut in [whole, whole + 1, octets.len() - 1] {
        fs::write(&file, &octets[..cut]).unwrap();
        let found = replayed(std::slice::from_ref(&file)).unwrap();
        assert_eq!(outcomes(&found.lines), [(1, "complete")]);
        assert_eq!(found.warnings.len(), usize::from(cut > whole), "{cut}");
    }
}

#[test]
fn a_clock_that_is_cut_short_says_what_it_leaves_unused() {
    // SEQ-7.18
    let scratch = Scratch::new();
    let paths = archived(&scratch, true);
    let all = replayed(&[scratch.path().to_owned()]).unwrap();
    // Of the first segment; what stands beside it has no ending of the compressed one.
    let clock = paths[0].with_extension("").with_extension("clock");
    let whole = fs::read(&clock).unwrap();
    let entries = Segment::of(&paths[0]).unwrap().clock().unwrap().unwrap();
    assert!(entries.iter().all(|entry| matches!(entry, Entry::Message { .. })), "{entries:?}");
    for cut in 0..whole.len() {
        fs::write(&clock, &whole[..cut]).unwrap();
        let found = replayed(&[scratch.path().to_owned()]).unwrap();
        let told = found.warnings.iter().find(|warning| warning.contains("the clock beside it"));
        let told = told.unwrap_or_else(|| panic!("{cut}: {:?}", found.warnings));
        let unused = entries.len() - cut / 16;
        assert!(told.contains(&format!("{unused} messages from octet")), "{cut}: {told}");
        assert_eq!(told.contains("last"), cut % 16 != 0, "{cut}: {told}");
        for line in &found.lines {
            let same = all.lines.contains(line);
            assert!(same || line["outcome"] == "incomplete", "{cut}: {line}");
        }
    }
}

#[test]
fn a_file_that_is_no_archive_is_one_line_and_exit_code_1() {
    let scratch = Scratch::new();
    let of = |name: &str, octets: &[u8]| {
        let path = scratch.path().join(name);
        fs::write(&path, octets).unwrap();
        path
    };
    let good = of("good.ipfix", &message(1, true, Some(&report(1, 1, 1, true))));
    let replay = Path::new("replay");
    for (name, octets) in [
        ("text", &b"no archive at all, only some words"[..]),
        ("empty", b""),
        ("short", &[0, 10, 0]),
        ("0000000001-000000.ipfix", b"named like a segment"),
    ] {
        let bad = of(name, octets);
        let (code, out, err) = run(&[replay, Path::new("--json"), &bad]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{name}: {err}");
        let last = err.lines().last().unwrap();
        assert!(last.contains(name) && last.contains("expected IPFIX messages"), "{err}");
        // What can be read beside it is judged, and it is no success all the same.
        let (code, out, err) = run(&[replay, Path::new("--json"), &bad, &good]);
        assert_eq!((code, out.lines().count()), (Some(1), 1), "{name}: {err}");
    }
}

#[test]
fn what_cannot_be_replayed_is_one_line_and_exit_code_1() {
    let scratch = Scratch::new();
    let found = replayed(&[scratch.path().to_owned()]);
    assert!(matches!(found, Err(ReplayError::Empty { .. })), "{found:?}");
    let nothing = scratch.path().join("nothing");
    let (code, out, err) = run(&[Path::new("replay"), &nothing]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("nothing"), "{err}");
    assert_eq!(run(&[Path::new("replay")]).0, Some(2));
}
