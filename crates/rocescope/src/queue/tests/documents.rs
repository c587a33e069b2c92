//! Documents and notifications: what a file can hold, and what it cannot.

use serde_json::{Value, json};

use super::{ROW, document, findings};
use crate::queue::reading::read;

fn rows(value: &Value) -> (usize, Vec<String>) {
    let reading = read(&serde_json::from_str(&value.to_string()).unwrap());
    (reading.rows.iter().filter(|row| row.is_ok()).count(), reading.findings)
}

fn row() -> Value {
    serde_json::from_str(ROW).unwrap()
}

#[test]
fn a_file_is_one_document_or_one_a_line_or_several_over_many_lines() {
    let one = document(&[ROW]);
    let pretty =
        serde_json::to_string_pretty(&serde_json::from_str::<Value>(&one).unwrap()).unwrap();
    for (text, documents) in [
        (one.clone(), 1),
        (format!("\n\n{one}\n\n{one}\n"), 2),
        (pretty.clone(), 1),
        (format!("\n{pretty}\n{pretty}"), 2),
    ] {
        let (checked, found) = findings(&text);
        assert_eq!(
            (checked.documents, checked.rows, &*found),
            (documents, documents, ""),
            "{text}"
        );
    }
}

#[test]
fn a_line_that_is_no_json_is_found_and_the_next_is_read() {
    let one = document(&[ROW]);
    let (checked, found) = findings(&format!("{one}\n{{\"a\":}}\n{one}\n"));
    assert_eq!((checked.documents, checked.rows, checked.findings), (3, 2, 1));
    assert_eq!(found, "line 2: expected value (column 6), expected a JSON document\n");
    let (checked, _) = findings(&format!("{}\n{one}\n", &one[1..]));
    assert_eq!((checked.rows, checked.findings), (1, 1));
}

#[test]
fn a_document_that_is_cut_off_is_found() {
    let one = document(&[ROW]);
    for cut in 1..one.len() {
        let (checked, found) = findings(&one[..cut]);
        assert_eq!((checked.rows, checked.findings), (0, 1), "{cut}: {found}");
    }
}

// RFC 7951 by way of I-JSON: most readers take the last of two.
#[test]
fn a_member_that_is_there_twice_is_found() {
    let twice = ROW.replace("\"queue-id\"", "\"interval-id\":\"2\",\"queue-id\"");
    let (_, found) = findings(&document(&[&twice]));
    assert!(found.contains("member \"interval-id\" twice in one object"), "{found}");
}

#[test]
fn a_document_that_is_too_deep_is_found() {
    let (checked, _) = findings(&"[".repeat(100_000));
    assert_eq!((checked.documents, checked.findings), (1, 1));
}

#[test]
fn what_is_no_document_of_interfaces_is_found() {
    for (text, expected) in [
        ("[]", "the document is an array, expected an object"),
        ("{}", "nothing at the top, expected \"ietf-interfaces:interfaces\""),
        (
            "{\"interfaces\":{}}",
            "member \"interfaces\" at the top, expected a name with its module",
        ),
        ("{\"ietf-system:system\":{}}", "\"ietf-system:system\" at the top, expected"),
        ("{\"ietf-interfaces:interfaces\":[]}", "interfaces is an array, expected an object"),
        (
            "{\"ietf-interfaces:interfaces\":{\"interface\":{}}}",
            "interface is an object, expected an array",
        ),
        (
            "{\"ietf-interfaces:interfaces\":{\"interface\":[{}]}}",
            "name of an interface is missing, expected a string",
        ),
    ] {
        let (checked, found) = findings(text);
        assert_eq!(checked.findings, 1, "{text}: {found}");
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn an_update_has_the_rows_of_its_contents() {
    let contents: Value = serde_json::from_str(&document(&[ROW])).unwrap();
    for name in ["ietf-restconf:notification", "ietf-notification:notification"] {
        let notification = json!({name: {
            "eventTime": "2026-10-30T00:00:00Z",
            "ietf-yang-push:push-update": {"id": 7, "datastore-contents": contents},
        }});
        assert_eq!(rows(&notification), (1, vec![]));
    }
    let bare = json!({"ietf-yang-push:push-update": {"id": 7, "datastore-contents": contents}});
    assert_eq!(rows(&bare), (1, vec![]));
    // One of another kind has none, and nothing is wrong with it.
    let other = json!({"ietf-restconf:notification": {
        "eventTime": "2026-10-30T00:00:00Z",
        "ietf-subscribed-notifications:subscription-started": {"id": 7},
    }});
    assert_eq!(rows(&other), (0, vec![]));
}

fn change(operation: &str, target: &str, value: &Value) -> Value {
    json!({"ietf-restconf:notification": {
        "eventTime": "2026-10-30T00:00:00Z",
        "ietf-yang-push:push-change-update": {"id": 7, "datastore-changes": {"yang-patch": {
            "patch-id": "0",
            "edit": [{"edit-id": "e", "operation": operation, "target": target, "value": value}],
        }}},
    }})
}

const INTERFACE: &str = "/ietf-interfaces:interfaces/interface=Ethernet1%2F1";

// QUE-pub.1: a row changes as a whole.
#[test]
fn a_change_has_the_row_of_its_target() {
    let queue = json!({"ietf-pfc-queue-telemetry:queue": [row()]});
    let container = json!({"ietf-pfc-queue-telemetry:pfc-queue-telemetry": {"queue": [row()]}});
    let list = format!("{INTERFACE}/ietf-pfc-queue-telemetry:pfc-queue-telemetry");
    let whole: Value = serde_json::from_str(&document(&[ROW])).unwrap();
    let interface = &whole["ietf-interfaces:interfaces"];
    for (target, value) in [
        (format!("{list}/queue=q3"), &queue),
        (list.clone(), &container),
        (INTERFACE.to_owned(), interface),
        ("/ietf-interfaces:interfaces".to_owned(), &whole),
        ("/".to_owned(), &whole),
    ] {
        for operation in ["create", "replace"] {
            let value = change(operation, &target, value);
            assert_eq!(rows(&value), (1, vec![]), "{target}");
        }
    }
    let read = read(
        &serde_json::from_str(&change("replace", &format!("{list}/queue=q3"), &queue).to_string())
            .unwrap(),
    );
    assert_eq!(&*read.rows[0].as_ref().unwrap().place.interface, "Ethernet1/1");
}

// QUE-con.1
#[test]
fn a_row_that_is_taken_away_says_nothing() {
    let target = format!("{INTERFACE}/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue=q3");
    assert_eq!(rows(&change("delete", &target, &json!({}))), (0, vec![]));
}

#[test]
fn targets_that_are_none_or_reach_into_a_row_are_found() {
    let queue = json!({"ietf-pfc-queue-telemetry:queue": [row()]});
    let list = format!("{INTERFACE}/ietf-pfc-queue-telemetry:pfc-queue-telemetry");
    for (target, expected) in [
        (format!("{list}/queue=q4"), "queue-id \"q3\", expected the target's"),
        (format!("{list}/queue=q3/backlog-ns"), "expected rows that change as a whole"),
        (format!("{list}/queue=q%zz"), "% without two hexadecimal digits"),
        (format!("{list}/queue=q%4"), "% without two hexadecimal digits"),
        (format!("{list}/queue=a,b"), "2 keys, expected 1"),
        (format!("{list}/queue=%ff"), "octets that are no UTF-8"),
    ] {
        let (_, findings) = rows(&change("replace", &target, &queue));
        assert_eq!(findings.len(), 1, "{target}: {findings:?}");
        assert!(findings[0].contains(expected), "{target}: {findings:?}");
    }
}
