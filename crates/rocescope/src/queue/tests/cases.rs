//! The cases of `tests/cases`: records good and bad, and groups.

use std::fs;

use observe::queue::aggregate::Aggregator;
use serde_json::Value;

use super::{directory, findings};
use crate::queue::aggregate::{object, take};

/// Where the lexical rules or a `schema-ok?` leave room: what we say, and why.
fn ours(case: &str) -> bool {
    match case {
        // State data may list a value twice; it is a set. A sign and leading zeros are decimal
        // (RFC 7950, section 9.2.1). Upper case is within the pattern of a UUID. A leap second and
        // an unknown zone are within RFC 3339.
        "dup-priority"
        | "uuid-upper"
        | "uint64-plus"
        | "uint64-leading-zero"
        | "wall-leap"
        | "wall-neg0" => true,
        // Hexadecimal is for modules only, spaces for nothing; RFC 7951 has 64 bits as a string
        // and 8 as a number.
        "uint64-hex" | "uint64-ws" | "uint64-as-number" | "uint8-as-string" => false,
        other => panic!("{other}"),
    }
}

// QUE-yang.1, QUE-ex.1, QUE-err.1, QUE-err.2, QUE-err.3, QUE-id.2, QUE-id.3
#[test]
fn records_are_good_and_bad_as_expected() {
    let directory = directory("queue");
    let text = fs::read_to_string(directory.join("expected.json")).unwrap();
    let expected: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(expected.len(), 50);
    for (case, verdict) in &expected {
        let good = match verdict.as_str().unwrap() {
            "ok" => true,
            "bad" => false,
            _ => ours(case),
        };
        let text = fs::read_to_string(directory.join(format!("{case}.json"))).unwrap();
        let (checked, found) = findings(&text);
        assert_eq!(checked.documents, 1, "{case}: {found}");
        assert_eq!(checked.findings == 0, good, "{case}: {found}");
        // On one line it is the same.
        let compact = serde_json::from_str::<Value>(&text).unwrap().to_string();
        assert_eq!(findings(&compact).0, checked, "{case}");
    }
}

// QUE-yang.1
#[test]
fn a_bad_record_has_a_line_for_what_is_wrong_with_it() {
    for (case, expected) in [
        ("bad-missing-I", "no gated-backlog-ns, expected a string with a number from 0 to"),
        ("bad-unknown-with-duration", "backlog-ns with quality unknown, expected none"),
        ("bad-I-gt-Q", "gated-backlog-ns 64000001, expected at most backlog-ns 64000000"),
        (
            "bad-dup-key",
            "interface \"Ethernet1/1\", queue \"q3\", interval 2: queue \"q3\" twice in one document",
        ),
        ("bad-aug-no-module-prefix", "member \"pfc-queue-telemetry\" of interface \"Ethernet1/1\""),
        ("uint64-as-number", "interval-id is the number 2, expected a string with a number from 1"),
        ("bad-nine-priority", "mapped-priority with 9 entries, expected an array of 1 to 8"),
        ("wall-bad", "wall-clock-start is the string \"2026-10-30 00:00:00\", expected a date"),
    ] {
        let text = fs::read_to_string(directory("queue").join(format!("{case}.json"))).unwrap();
        let (_, found) = findings(&text);
        assert!(found.contains(expected), "{case}: {found}");
    }
}

fn close(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12,
        _ => found == expected,
    }
}

// QUE-con.1, QUE-con.2, QUE-con.3
#[test]
fn groups_are_as_expected() {
    let mut cases = 0;
    for entry in fs::read_dir(directory("queue-aggregate")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        cases += 1;
        let text = fs::read_to_string(path.with_extension("expected.json")).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let mut aggregator = Aggregator::new(100);
        let rows = fs::read(&path).unwrap();
        take(&mut aggregator, &*rows, &mut |line, what| panic!("{line}: {what}")).unwrap();
        let found: Vec<Value> = aggregator.groups().iter().map(object).collect();
        let groups = expected["groups"].as_array().unwrap();
        assert_eq!(found.len(), groups.len(), "{}", path.display());
        for (found, expected) in found.iter().zip(groups) {
            for (name, expected) in expected.as_object().unwrap() {
                let found = &found[name];
                let same = match expected {
                    Value::Object(range) => {
                        range.iter().all(|(name, value)| close(&found[name], value))
                    }
                    value => close(found, value),
                };
                assert!(same, "{} {name}: {found}, expected {expected}", path.display());
            }
        }
        let rejected: usize =
            found.iter().map(|group| group["rejected"].as_array().unwrap().len()).sum();
        assert_eq!(rejected, expected["rejected"], "{}", path.display());
    }
    assert_eq!(cases, 20);
}

// QUE-con.2
#[test]
fn a_group_has_the_members_that_scripts_rely_on() {
    let mut aggregator = Aggregator::new(100);
    let rows = fs::read(directory("queue-aggregate").join("1002.jsonl")).unwrap();
    take(&mut aggregator, &*rows, &mut |line, what| panic!("{line}: {what}")).unwrap();
    let group = object(&aggregator.groups()[0]);
    let names: Vec<_> = group.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "interface",
            "queueId",
            "epochId",
            "mappedPriority",
            "firstInterval",
            "lastInterval",
            "coverage",
            "durationNs",
            "knownDurationNs",
            "missingNs",
            "gatedBacklogNs",
            "backlogNs",
            "absoluteErrorNs",
            "gatedBacklogRatio",
            "backlogRatio",
            "gatedOfBacklogRatio",
            "rejected",
        ]
    );
    assert_eq!(group["mappedPriority"], serde_json::json!([3]));
    assert_eq!((&group["firstInterval"], &group["lastInterval"]), (&1.into(), &4.into()));
    let reasons = [
        (51, "absolute-error-ns 256, expected at most duration-ns 5"),
        (52, "overlaps interval 2"),
        (4, "conflicting content under the same identity"),
    ];
    for (rejected, (interval, reason)) in group["rejected"].as_array().unwrap().iter().zip(reasons)
    {
        assert_eq!(
            (&rejected["intervalId"], &rejected["reason"]),
            (&interval.into(), &reason.into())
        );
    }
    let ratio = group["gatedOfBacklogRatio"].as_object().unwrap();
    assert_eq!(ratio.keys().collect::<Vec<_>>(), ["value", "low", "high"]);
}
