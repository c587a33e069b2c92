//! Recorded PSN sequences and the epochs that they make, worked out independently of this engine.

use crate::model::by_engine;
use observe::sequence::Counts;
use serde_json::Value;

// SEQ-5.3, SEQ-5.5, SEQ-4.12
#[test]
fn every_recorded_sequence_makes_its_epochs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/sequence.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut cases = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let number = |v: &Value| u32::try_from(v.as_u64().unwrap()).unwrap();
        let psns: Vec<u32> = case["psns"].as_array().unwrap().iter().map(number).collect();
        let found = by_engine(number(&case["window"]), &psns);
        let expected: Vec<_> = case["epochs"].as_array().unwrap().iter().map(epoch).collect();
        assert_eq!(found, expected, "line {}", cases + 1);
        cases += 1;
    }
    assert!(cases > 100, "{cases} cases");
}

fn epoch(value: &Value) -> (bool, Counts) {
    let count = |name: &str| value[name].as_u64().unwrap();
    let serial = match value["reason"].as_str().unwrap() {
        "serialDiscontinuity" => true,
        "" => false,
        other => panic!("reason {other}"),
    };
    let counts = Counts {
        skipped: count("skipped"),
        filled: count("filled"),
        expired: count("expired"),
        abandoned: count("abandoned"),
        pending: u32::try_from(count("pending")).unwrap(),
        repeated: count("repeated"),
        requests: count("requests"),
        unclassified_late: count("late"),
    };
    (serial, counts)
}
