//! Entries of the list, one thing wrong at a time, and rows that go out and come back.

use serde_json::{Value, json};

use super::{ROW, document, findings};
use crate::queue::reading::read;
use crate::queue::record;

fn with(name: &str, value: &Value) -> String {
    let mut row: Value = serde_json::from_str(ROW).unwrap();
    row[name] = value.clone();
    document(&[&row.to_string()])
}

// QUE-yang.1
#[test]
fn every_leaf_is_mandatory_but_the_clock_on_the_wall() {
    let row: serde_json::Map<String, Value> = serde_json::from_str(ROW).unwrap();
    for name in row.keys() {
        let mut without = row.clone();
        without.remove(name);
        let (checked, found) = findings(&document(&[&Value::Object(without).to_string()]));
        assert_eq!(checked.findings, 1, "{name}: {found}");
        assert!(found.contains(&format!("no {name}, expected")), "{found}");
    }
}

// QUE-yang.1: a number of 64 bits is a string, in every leaf that has one.
#[test]
fn numbers_of_64_bits_are_decimal_strings_of_their_range() {
    let leaves = [
        ("interval-id", 1, u64::MAX),
        ("start-offset-ns", 0, 9_007_199_254_740_991),
        ("duration-ns", 1, 86_400_000_000_000),
        ("gated-backlog-ns", 0, 86_400_000_000_000),
        ("backlog-ns", 0, 86_400_000_000_000),
        ("absolute-error-ns", 0, 86_400_000_000_000),
    ];
    for (name, least, most) in leaves {
        for bad in [
            json!(20),
            json!(""),
            json!("+"),
            json!("-1"),
            json!("0x14"),
            json!(" 20"),
            json!("20 "),
            json!("2e1"),
            json!("20.0"),
            json!("٢٠"),
            json!(null),
            json!(["20"]),
            json!((u128::from(most) + 1).to_string()),
            json!("99999999999999999999999"),
        ] {
            let (_, found) = findings(&with(name, &bad));
            let expected = format!("expected a string with a number from {least} to {most}");
            assert!(found.contains(&expected), "{name} {bad}: {found}");
        }
        if least == 1 {
            assert_eq!(findings(&with(name, &json!("0"))).0.findings, 1, "{name}");
        }
    }
    for good in ["+2", "02", "2", "18446744073709551615"] {
        assert_eq!(findings(&with("interval-id", &json!(good))).1, "", "{good}");
    }
    assert_eq!(findings(&with("absolute-error-ns", &json!("-0"))).1, "");
}

// QUE-id.1
#[test]
fn a_queue_id_is_of_characters_that_yang_has_and_not_too_many() {
    for (id, good) in [
        ("q".repeat(128), true),
        ("\u{10348}".repeat(128), true),
        ("q".repeat(129), false),
        (String::new(), false),
        ("a\tb".to_owned(), true),
        ("a\u{1}b".to_owned(), false),
        ("\u{fffe}".to_owned(), false),
        ("\u{fdd0}".to_owned(), false),
        ("q'\"/,=%3".to_owned(), true),
    ] {
        let (_, found) = findings(&with("queue-id", &json!(id)));
        assert_eq!(found.is_empty(), good, "{id:?}: {found}");
        assert!(found.lines().count() <= 1, "{found}");
    }
}

#[test]
fn a_date_and_time_is_one_that_can_be() {
    for (text, good) in [
        ("2026-10-30T00:00:00Z", true),
        ("2026-10-30T00:00:00.123456789+05:30", true),
        ("2024-02-29T23:59:59-12:00", true),
        ("2023-02-29T23:59:59Z", false),
        ("2026-13-01T00:00:00Z", false),
        ("2026-10-30T24:00:00Z", false),
        ("2026-10-30T00:60:00Z", false),
        ("2026-10-30T00:00:61Z", false),
        ("2026-10-30T00:00:00", false),
        ("2026-10-30T00:00:00.Z", false),
        ("2026-10-30t00:00:00z", false),
        ("2026-10-30T00:00:00+24:00", false),
        ("26-10-30T00:00:00Z", false),
        ("", false),
    ] {
        let (_, found) = findings(&with("wall-clock-start", &json!(text)));
        assert_eq!(found.is_empty(), good, "{text}: {found}");
    }
}

// QUE-err.1, QUE-err.3
#[test]
fn each_quality_has_its_leaves_and_no_others() {
    let unknown = json!({
        "queue-id": "q3", "epoch-id": "31c38fe2-f97e-4a88-a0a7-bae9ed5d4131", "interval-id": "1",
        "start-offset-ns": "0", "duration-ns": "5", "mapped-priority": [0, 7],
        "quality": "unknown", "unknown-reason": "capture-gap",
    });
    let of = |row: &Value| findings(&document(&[&row.to_string()])).1;
    assert_eq!(of(&unknown), "");
    for name in ["gated-backlog-ns", "backlog-ns", "absolute-error-ns", "sample-period-ns"] {
        let mut row = unknown.clone();
        row[name] = json!("0");
        assert!(of(&row).contains(&format!("{name} with quality unknown, expected none")));
    }
    let mut row = unknown.clone();
    row["unknown-reason"] = json!("tired");
    assert!(of(&row).contains("unknown-reason \"tired\", expected one of unavailable,"));
    assert!(findings(&with("quality", &json!("good"))).1.contains("expected event-based, sampled"));
    assert!(findings(&with("sample-period-ns", &json!("5"))).1.contains("expected none"));
    assert!(findings(&with("quality", &json!("sampled"))).1.contains("no sample-period-ns"));
}

#[test]
fn a_member_that_the_module_has_not_is_found_and_those_of_others_are_let_be() {
    let (checked, found) = findings(&with("watermark", &json!("5")));
    assert_eq!(checked.findings, 1);
    assert!(found.contains("member \"watermark\", expected one of the module"), "{found}");
    for name in ["vendor-queues:watermark", "@queue-id"] {
        assert_eq!(findings(&with(name, &json!("5"))).1, "", "{name}");
    }
    let twice = with("ietf-pfc-queue-telemetry:interval-id", &json!("2"));
    assert!(findings(&twice).1.contains("interval-id twice, expected once"));
}

#[test]
fn everything_that_is_wrong_with_a_row_is_said() {
    let mut row: Value = serde_json::from_str(ROW).unwrap();
    row["interval-id"] = json!("0");
    row["quality"] = json!("sampled");
    row["mapped-priority"] = json!([3, 8, "4"]);
    let (checked, found) = findings(&document(&[&row.to_string()]));
    assert_eq!(checked.findings, 4, "{found}");
}

// QUE-con.1, QUE-ex.1
#[test]
fn procedure_is_checked_over_all_documents() {
    let change = |name: &str, value: &str| {
        let mut row: Value = serde_json::from_str(ROW).unwrap();
        row[name] = json!(value);
        document(&[&row.to_string()])
    };
    let plain = document(&[ROW]);
    let with = |second: String| findings(&format!("{plain}\n{second}\n")).1;
    assert_eq!(with(plain.clone()), "");
    // A priority that is listed twice is there once.
    assert_eq!(with(document(&[&ROW.replace("[3]", "[3,3]")])), "");
    assert!(with(change("backlog-ns", "65")).contains("line 2: interface \"Ethernet1/1\", queue"));
    assert!(with(change("backlog-ns", "65")).contains("conflicting content"));
    assert!(with(change("interval-id", "3")).contains("overlaps interval 2"));
}

// QUE-yang.1
#[test]
fn a_row_that_goes_out_comes_back_the_same() {
    for text in [
        ROW.to_owned(),
        ROW.replace("\"event-based\"", "\"sampled\",\"sample-period-ns\":\"50\""),
        ROW.replace("[3]", "[0,7]").replace("q3", "q\\\"\\u00e9"),
        ROW.replace("\"quality\"", "\"wall-clock-start\":\"2026-10-30T00:00:00Z\",\"quality\""),
    ] {
        let parsed = |text: &str| {
            let reading = read(&serde_json::from_str(text).unwrap());
            assert!(reading.findings.is_empty(), "{reading:?}");
            reading.rows.into_iter().next().unwrap().unwrap()
        };
        let row = parsed(&document(&[&text]));
        let out = record::document(&row).to_string();
        assert_eq!(parsed(&out), row);
        // In the module's order, with 64 bits as strings.
        assert!(out.contains("\"interval-id\":\"2\",\"start-offset-ns\":\"100\""), "{out}");
    }
}
