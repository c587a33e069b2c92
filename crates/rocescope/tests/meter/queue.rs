//! `rocescope queue` from outside: exit codes, what goes where, and pipes.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{ROCESCOPE, Scratch, program, rocescope};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(name)
}

fn queue(arguments: &[&str], file: &Path) -> crate::support::Ended {
    let mut all = vec!["queue".as_ref()];
    all.extend(arguments.iter().map(std::ffi::OsStr::new));
    all.push(file.as_os_str());
    rocescope(&all)
}

#[test]
fn queue_check_ends_with_0_or_1_and_names_the_file_in_one_line() {
    let good = queue(&["check"], &case("queue/ok-draft.json"));
    assert_eq!((good.code, &*good.out), (Some(0), ""), "{}", good.err);
    assert_eq!(good.err, "1 row in 1 document, no finding\n");
    let bad = queue(&["check", "--json"], &case("queue/bad-E-gt-T.json"));
    assert_eq!(bad.code, Some(1));
    let found = &bad.json()[0];
    assert_eq!(found["line"], 1);
    assert_eq!(found["row"], "interface \"Ethernet1/1\", queue \"q3\", interval 2");
    let text = "absolute-error-ns 100000001, expected at most duration-ns 100000000";
    assert_eq!(found["finding"], text);
    assert_eq!(bad.failures().len(), 1, "{}", bad.err);
    assert!(bad.failures()[0].ends_with("bad-E-gt-T.json: 1 finding"), "{}", bad.err);
}

#[test]
fn what_cannot_be_read_is_a_failure_in_one_line() {
    let scratch = Scratch::new();
    let empty = scratch.file("empty.json", b"\n");
    let torn = scratch.file("torn.jsonl", b"{\"ietf-interfaces:interfaces\":{}}\n{\"ietf\n");
    let missing = scratch.path("missing.json");
    for (arguments, file, expected) in [
        (["check"], &empty, "no document, expected at least one"),
        (["check"], &missing, "No such file or directory"),
        (["aggregate"], &missing, "No such file or directory"),
        (["aggregate"], &torn, "line 2: EOF while parsing a string"),
        (["measure"], &missing, "No such file or directory"),
        (["measure"], &torn, "line 1: member \"ietf-interfaces:interfaces\", expected one of seq"),
    ] {
        let ended = queue(&arguments, file);
        assert_eq!(ended.code, Some(1), "{arguments:?} {expected}");
        assert_eq!(ended.failures().len(), 1, "{}", ended.err);
        assert!(ended.err.contains(expected), "{}", ended.err);
    }
    assert_eq!(rocescope(&["queue", "aggregate"]).code, Some(2));
    assert_eq!(rocescope(&["queue", "measure", "--interval-ms", "0", "x"]).code, Some(2));
}

// QUE-con.1, QUE-con.2
#[test]
fn queue_aggregate_prints_a_line_for_each_epoch_of_each_queue() {
    let ended = queue(&["aggregate", "--json"], &case("queue-aggregate/1002.jsonl"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let groups = ended.json();
    assert_eq!(groups.len(), 2);
    assert_eq!(
        (&groups[0]["coverage"], &groups[1]["coverage"]),
        (&"complete".into(), &"partial".into())
    );
    assert_eq!(groups[1]["missingNs"], 1_028_141_276);
    // The same file twice adds nothing.
    let file = case("queue-aggregate/1002.jsonl");
    let file = file.to_str().expect("a path of text");
    let twice = rocescope(&["queue", "aggregate", "--json", file, file]);
    let missing = |group: &serde_json::Value| group["durationNs"].clone();
    assert_eq!(
        twice.json().iter().map(missing).collect::<Vec<_>>(),
        groups.iter().map(missing).collect::<Vec<_>>()
    );
}

// QUE-con.1
#[test]
fn what_is_no_row_is_rejected_in_its_group_or_said_to_be_left_out() {
    let ended = queue(&["aggregate", "--json"], &case("queue/bad-missing-I.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let group = &ended.json()[0];
    assert!(group["durationNs"].is_null() && group["gatedBacklogNs"].is_null());
    assert_eq!(group["rejected"][0]["intervalId"], 2);
    let reason = group["rejected"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("no gated-backlog-ns, expected"), "{reason}");
    let ended = queue(&["aggregate"], &case("queue/bad-qid-empty.json"));
    assert_eq!((ended.code, &*ended.out), (Some(1), "No row.\n"));
    assert!(ended.err.contains("line 1: left out: interface \"Ethernet1/1\""), "{}", ended.err);
    // Nothing known is not zero.
    let ended = queue(&["aggregate", "--json"], &case("queue/ok-unknown.json"));
    let group = &ended.json()[0];
    assert!(group["backlogNs"].is_null() && group["backlogRatio"].is_null());
    assert_eq!((&group["knownDurationNs"], &group["missingNs"]), (&0.into(), &100_000_000.into()));
}

// QUE-use.1
#[test]
fn the_table_says_what_its_numbers_do_not_mean() {
    let ended = queue(&["aggregate"], &case("queue-aggregate/1000.jsonl"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("Ethernet1/1 q3 priority 3 epoch 64c38c41"), "{}", ended.out);
    assert!(ended.out.contains("0.237090 (0.000000 to 0.513573)"), "{}", ended.out);
    assert!(ended.out.contains("    rejected interval 52: overlaps interval 2\n"), "{}", ended.out);
    assert!(ended.out.contains("says nothing of where congestion is"), "{}", ended.out);
}

#[test]
fn there_is_room_for_as_many_rows_as_asked_for() {
    let file = case("queue-aggregate/1000.jsonl");
    for command in ["check", "aggregate"] {
        let ended = queue(&[command, "--rows-max", "3"], &file);
        assert_eq!(ended.code, Some(1));
        let expected = "line 4: more than 3 rows, for which there is no room (--rows-max)";
        assert!(ended.failures()[0].ends_with(expected), "{}", ended.err);
        assert_ne!(queue(&[command, "--rows-max", "4"], &file).failures().len(), 2);
    }
}

// QUE-ex.1
#[test]
fn events_measured_pass_the_check_and_are_summed_as_the_draft_has_it() {
    let line = |seq: u32, t: u32, rest: &str| {
        format!(
            "{{\"seq\":{seq},\"t\":{t},\"interface\":\"Ethernet1/1\",\"queue\":\"q3\",{rest}}}\n"
        )
    };
    let gate = |closed: bool| format!("\"event\":\"gate\",\"priority\":3,\"closed\":{closed}");
    let map = "\"event\":\"map\",\"priorities\":[3],\"method\":\"head\",\"maxError\":0";
    let events = line(1, 0, map)
        + &line(2, 0, "\"event\":\"backlog\",\"present\":true")
        + &line(3, 0, &gate(false))
        + &line(4, 100_000, &gate(true))
        + &line(5, 400_000, &gate(true))
        + &line(6, 900_000, &gate(false))
        + &line(7, 1_000_000, &gate(false));
    let arguments = ["queue", "measure", "--interval-ms", "1", "-"];
    let measured = program(ROCESCOPE, &arguments, events.into_bytes());
    assert_eq!(measured.code, Some(0), "{}", measured.err);
    let rows = measured.out.into_bytes();
    let checked = program(ROCESCOPE, &["queue", "check", "-"], rows.clone());
    assert_eq!((checked.code, &*checked.out), (Some(0), ""), "{}", checked.err);
    let summed = program(ROCESCOPE, &["queue", "aggregate", "--json", "-"], rows);
    let group = &summed.json()[0];
    assert_eq!(group["gatedBacklogNs"], 800_000);
    assert_eq!(group["backlogNs"], 1_000_000);
}

/// What libyang says of a document, by the modules of the draft.
fn libyang(scratch: &Scratch, document: &str) -> crate::support::Ended {
    let yang = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../yang");
    let module = |name: &str| yang.join(name).display().to_string();
    let file = scratch.file("document.json", document.as_bytes());
    program(
        "yanglint",
        &[
            "-e".to_owned(),
            "-p".to_owned(),
            yang.display().to_string(),
            "-t".to_owned(),
            "data".to_owned(),
            module("ietf-pfc-queue-telemetry@2026-10-30.yang"),
            module("iana-if-type@2026-03-17.yang"),
            file.display().to_string(),
        ],
        Vec::new(),
    )
}

// QUE-yang.1: a second judge.
#[test]
fn libyang_finds_good_and_bad_what_we_do() {
    let scratch = Scratch::new();
    let expected = std::fs::read_to_string(case("queue/expected.json")).expect("cases");
    let expected: serde_json::Map<String, Value> = serde_json::from_str(&expected).expect("JSON");
    for name in expected.keys() {
        let path = case(&format!("queue/{name}.json"));
        let document = std::fs::read_to_string(&path).expect("a case");
        let theirs = libyang(&scratch, &document);
        let ours = queue(&["check"], &path);
        // It takes hexadecimal and spaces, which RFC 7950 has for modules only and not at all.
        let stricter = ["uint64-hex", "uint64-ws"].contains(&name.as_str());
        let agree = (theirs.code == Some(0)) == (ours.code == Some(0));
        assert_ne!(agree, stricter, "{name}: {} {}", theirs.err, ours.out);
    }
}

/// The interpreter of an environment with the judges from PyPI.
fn python() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python.sh");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let made =
        program(&script.display().to_string(), &[directory.display().to_string()], Vec::new());
    assert_eq!(made.code, Some(0), "{}", made.err);
    made.out.trim().to_owned()
}

// QUE-yang.1: a third judge.
#[test]
fn yangson_finds_good_and_bad_what_we_do() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let at = |path: &str| repository.join(path).display().to_string();
    let expected = std::fs::read_to_string(case("queue/expected.json")).expect("cases");
    let expected: serde_json::Map<String, Value> = serde_json::from_str(&expected).expect("JSON");
    let mut arguments =
        vec![at("tests/python/validate.py"), at("yang"), at("tests/python/library.json")];
    let files: Vec<_> = expected.keys().map(|name| case(&format!("queue/{name}.json"))).collect();
    arguments.extend(files.iter().map(|file| file.display().to_string()));
    let theirs = program(&python(), &arguments, Vec::new());
    assert_eq!(theirs.code, Some(0), "{}", theirs.err);
    let verdicts: Vec<&str> =
        theirs.out.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
    assert_eq!(verdicts.len(), files.len(), "{}", theirs.out);
    for ((name, file), verdict) in expected.keys().zip(&files).zip(verdicts) {
        let ours = queue(&["check"], file);
        // It takes spaces around a number, which RFC 7950, section 9.2.1, does not have.
        let stricter = name == "uint64-ws";
        let agree = (verdict == "valid") == (ours.code == Some(0));
        assert_ne!(agree, stricter, "{name}: {verdict}; {}", ours.out);
    }
}

// QUE-yang.1
#[test]
fn pyang_takes_the_module() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let yang = repository.join("yang");
    let ended = program(
        &python(),
        &[
            "-m".to_owned(),
            "pyang.scripts.pyang_tool".to_owned(),
            "--ietf".to_owned(),
            "-p".to_owned(),
            yang.display().to_string(),
            yang.join("ietf-pfc-queue-telemetry@2026-10-30.yang").display().to_string(),
        ],
        Vec::new(),
    );
    assert_eq!((ended.code, &*ended.out, &*ended.err), (Some(0), "", ""));
}

// QUE-yang.1, QUE-pub.1
#[test]
fn libyang_takes_every_row_that_we_make() {
    let scratch = Scratch::new();
    let mut events = String::new();
    let mut seq = 0;
    let mut tell = |t: u64, rest: &str| {
        seq += 1;
        events += &format!(
            "{{\"seq\":{seq},\"t\":{t},\"interface\":\"Ethernet1/1\",\"queue\":\"q'\\\"3\",{rest}}}\n"
        );
    };
    let map = "\"event\":\"map\",\"priorities\":[3,4],\"method\":\"head\",\"maxError\":99";
    tell(0, map);
    tell(10, "\"event\":\"backlog\",\"present\":true");
    tell(1_500_000, "\"event\":\"candidate\",\"priority\":4");
    tell(1_500_000, "\"event\":\"gate\",\"priority\":4,\"closed\":true");
    tell(3_200_000, "\"event\":\"gate\",\"priority\":4,\"closed\":false");
    tell(4_500_000, "\"event\":\"lost\"");
    tell(5_500_000, map);
    for n in 0..20 {
        let found = format!("\"event\":\"sample\",\"backlog\":true,\"gated\":{}", n % 3 == 0);
        tell(5_500_000 + n * 300_000, &found);
    }
    let arguments = ["queue", "measure", "--interval-ms", "1", "-"];
    let measured = program(ROCESCOPE, &arguments, events.into_bytes());
    assert_eq!(measured.code, Some(0), "{}", measured.err);
    let mut qualities = Vec::new();
    for mut document in measured.json() {
        // What else an interface has to have is not ours to say.
        let interface = &mut document["ietf-interfaces:interfaces"]["interface"][0];
        let row = &interface["ietf-pfc-queue-telemetry:pfc-queue-telemetry"]["queue"][0];
        qualities.push(row["quality"].as_str().expect("a quality").to_owned());
        interface["type"] = json!("iana-if-type:ethernetCsmacd");
        interface["admin-status"] = json!("up");
        interface["oper-status"] = json!("up");
        interface["if-index"] = json!(1);
        interface["statistics"] = json!({"discontinuity-time": "2026-10-30T00:00:00Z"});
        let theirs = libyang(&scratch, &document.to_string());
        assert_eq!(theirs.code, Some(0), "{}: {document}", theirs.err);
    }
    for quality in ["unknown", "event-based", "sampled"] {
        assert!(qualities.iter().any(|found| found == quality), "{quality}: {qualities:?}");
    }
}
