//! `rocescope demo --once`: what it shows is what the meter says of the same captures, except where
//! it cut a session, and it leaves nothing behind.

use rocescope::example::Example;
use serde_json::Value;

use super::program::{Place, children, measured, metered, objects, signal, stream, text};

/// The scenes and how many epochs each has.
const SCENES: [(&str, &str, usize); 5] = [
    ("plain", "plain.pcap", 1),
    ("gaps", "gaps.pcap", 8),
    ("read", "read.pcap", 1),
    ("drops", "drops.pcapng", 1),
    ("cut", "four.pcap", 4),
];

fn original(name: &str) -> &'static str {
    Example::ALL.iter().find(|example| example.name == name).expect("embedded").original
}

fn words(row: &Value) -> Vec<&str> {
    let words = row["qualifications"].as_array().expect("a list");
    words.iter().map(|word| word.as_str().expect("a word")).collect()
}

// SEQ-7.11, SEQ-7.13, SEQ-7.15, SEQ-3.3
#[test]
fn every_epoch_has_the_outcome_and_the_numbers_that_its_capture_supports() {
    let place = Place::new();
    let output = place.run(&["demo", "--once", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert_eq!(place.names(), Vec::<std::path::PathBuf>::new());
    let rows = objects(&output.stdout);
    let mut left = rows.len();
    for (scene, file, epochs) in SCENES {
        let truth = metered(&place, original(file));
        let of_scene: Vec<&Value> = rows.iter().filter(|row| row["scene"] == scene).collect();
        assert_eq!((of_scene.len(), truth.len()), (epochs, epochs), "{scene}");
        left -= epochs;
        for row in of_scene {
            let truth = &truth[&stream(row)];
            if scene == "cut" {
                cut(row, truth);
            } else {
                assert_eq!(measured(row), measured(truth), "{scene}");
                assert_eq!(row["outcome"], "complete", "{scene}: {row}");
                assert_eq!(row["reason"], Value::Null);
                assert_eq!(row["reportGaps"], 0);
            }
            let expected: &[&str] = match scene {
                "read" => &["profileViolation", "generationUnverified"],
                "drops" => &["captureDiscontinuity", "generationUnverified"],
                "cut" => &["generationUnverified", "noFinal"],
                _ => &["generationUnverified"],
            };
            assert_eq!(words(row), expected, "{scene}");
        }
    }
    assert_eq!(left, 0, "epochs of no scene");
    let gaps = rows.iter().filter(|row| row["scene"] == "gaps");
    assert!(gaps.clone().all(|row| row["skippedPsnTotalCount"].as_u64() > Some(0)));
}

/// An epoch whose session was cut: a beginning of what was there, and nothing that claims more.
// SEQ-7.13, SEQ-10.3
fn cut(row: &Value, truth: &Value) {
    assert_eq!(row["outcome"], "incomplete", "{row}");
    assert_eq!(row["reason"], "no final report was received");
    assert_eq!(row["flags"], serde_json::json!(["generationUnverified"]));
    let requests = |row: &Value| row["requestPacketTotalCount"].as_u64().expect("a number");
    assert!((1..requests(truth)).contains(&requests(row)), "{row}");
    assert_eq!(row["flowStartMilliseconds"], truth["flowStartMilliseconds"]);
}

// SEQ-7.16, SEQ-10.4
#[test]
fn the_table_shows_every_outcome_with_its_reason_and_claims_no_cause() {
    let place = Place::new();
    let output = place.run(&["demo", "--once"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let lines = |word: &str| table.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((lines("complete "), lines("incomplete ")), (11, 4), "{table}");
    for part in [
        "generationUnverified noFinal: no final report was received",
        "cut: the connection ended without a TLS close",
        "closed by the exporter",
        "profileViolation",
        "captureDiscontinuity",
        "15 epochs, 11 complete, 4 incomplete; 6 qualified by more than generationUnverified",
        "How to read it.",
    ] {
        assert!(table.contains(part), "no {part:?} in\n{table}");
    }
    let all = table.to_lowercase();
    for word in ["lost", "loss", "retransmi", "reorder"] {
        assert!(!all.contains(word), "{word:?} in\n{table}");
    }
    assert_eq!(place.names(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_is_embedded_is_what_stands_beside_its_truth() {
    for example in Example::ALL {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/captures/softroce")
            .join(example.original);
        assert!(std::fs::read(path).expect("there") == example.octets(), "{}", example.name);
    }
}

#[test]
fn a_demo_that_is_told_to_stop_ends_its_programs_and_takes_its_directory_away() {
    for (name, arguments, code) in [
        ("INT", &["demo", "--once"][..], 1),
        ("TERM", &["demo", "--once"], 1),
        ("HUP", &["demo", "--once"], 1),
        ("INT", &["demo"], 0),
    ] {
        let place = Place::new();
        let mut demo = place.command(arguments).spawn().expect("the demo starts");
        let mut started = Vec::new();
        while started.len() < 2 {
            assert_eq!(demo.try_wait().expect("a child"), None, "ended before it had begun");
            started = children(demo.id());
        }
        signal(&demo, name);
        let output = demo.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(code), "{name}: {}", text(&output.stderr));
        assert_eq!(place.names(), Vec::<std::path::PathBuf>::new(), "{name}");
        let gone = |id: &u32| !std::path::Path::new(&format!("/proc/{id}")).exists();
        assert!(started.iter().all(gone), "{name}: {started:?}");
        if code == 1 {
            assert_eq!(text(&output.stderr), "rocescope: stopped before it was through\n");
        }
    }
}

#[test]
fn where_no_directory_can_be_made_the_demo_says_so() {
    let place = Place::new();
    let nowhere = place.path().join("nowhere");
    let output = place.command(&["demo", "--once"]).env("TMPDIR", &nowhere).output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("rocescope: no directory: ") && said.lines().count() == 1, "{said}");
}
