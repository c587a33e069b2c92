//! Documents and notifications: what a file can hold, and what it cannot.

use observe::queue::aggregate::Aggregator;
use serde_json::{Value, json};
use store::QueueEntry;

use super::{ROW, document, findings};
use crate::collector::queues::intake::entries;
use crate::queue::aggregate::take;
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
        (format!("{list}/queue=q3/backlog-ns"), "expected rows that change as a whole"),
        (format!("{list}/queue=q%zz"), "% without two hexadecimal digits"),
        (format!("{list}/queue=q%4"), "% without two hexadecimal digits"),
        (format!("{list}/queue=a,b"), "2 keys, expected 1"),
        (format!("{list}/queue=%ff"), "octets that are no UTF-8"),
        (list.clone(), "a value without pfc-queue-telemetry, expected it"),
        (list.replace("=Ethernet1%2F1", "") + "/queue=q3", "no name of an interface, expected one"),
        (list.replace("interfaces/", "interfaces=a/"), "the key of a node that is no list"),
    ] {
        let (count, findings) = rows(&change("replace", &target, &queue));
        assert_eq!(count, 0, "{target}");
        assert_eq!(findings.len(), 1, "{target}: {findings:?}");
        assert!(findings[0].contains(expected), "{target}: {findings:?}");
    }
}

/// What came of a document: rows that count, what is left out in a line each, and how many rejected
/// rows have an identity. The collector takes the same.
fn came_of(value: &Value) -> (usize, Vec<String>, usize) {
    let mut aggregator = Aggregator::new(100);
    let mut left_out = Vec::new();
    let text = value.to_string();
    take(&mut aggregator, text.as_bytes(), &mut |_, what| left_out.push(what.to_owned())).unwrap();
    let count = aggregator.groups().iter().filter(|group| group.span().is_some()).count();
    let rejected = aggregator.groups().iter().map(|group| group.rejected().len()).sum();
    let taken = entries(&serde_json::from_str(&text).unwrap(), 100);
    let of = |wanted: fn(&QueueEntry) -> bool| taken.entries.iter().filter(|e| wanted(e)).count();
    assert_eq!(of(|entry| matches!(entry, QueueEntry::Row(_))), count, "{text}");
    assert_eq!(of(|entry| matches!(entry, QueueEntry::Malformed { .. })), rejected, "{text}");
    assert_eq!(taken.findings, left_out, "{text}");
    (count, left_out, rejected)
}

fn queue(name: &str) -> Value {
    let mut row = row();
    row["queue-id"] = name.into();
    row
}

// QUE-con.1: which of two that contradict each other is meant, nobody knows.
#[test]
fn an_entry_with_another_key_than_its_target_never_counts() {
    let list = format!("{INTERFACE}/ietf-pfc-queue-telemetry:pfc-queue-telemetry");
    let entries = |names: &[&str]| {
        let rows: Vec<Value> = names.iter().map(|name| queue(name)).collect();
        json!({"ietf-pfc-queue-telemetry:queue": rows})
    };
    for operation in ["create", "replace", "merge", "insert"] {
        let change = change(operation, &format!("{list}/queue=qB"), &entries(&["qA"]));
        let (count, left_out, rejected) = came_of(&change);
        assert_eq!((count, rejected), (0, 0), "{operation}: {left_out:?}");
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        assert!(left_out[0].contains("queue-id \"qA\", expected the target's, \"qB\""));
    }
    // What is not of the target takes nothing from what is.
    let both = change("replace", &format!("{list}/queue=q3"), &entries(&["q3", "q4"]));
    assert_eq!((came_of(&both).0, came_of(&both).1.len()), (1, 1));
    // The same of an interface, with everything in it.
    let mut whole: Value = serde_json::from_str(&document(&[ROW])).unwrap();
    whole["ietf-interfaces:interfaces"]["interface"][0]["name"] = "Ethernet2/1".into();
    let (count, left_out, _) =
        came_of(&change("replace", INTERFACE, &whole["ietf-interfaces:interfaces"]));
    assert_eq!(count, 0);
    assert_eq!(left_out, ["interface \"Ethernet2/1\", expected the target's, \"Ethernet1/1\""]);
}

// QUE-con.1, QUE-yang.1
#[test]
fn of_a_list_that_has_a_key_twice_neither_entry_counts() {
    let second = ROW.replace("\"interval-id\":\"2\"", "\"interval-id\":\"3\"");
    let other = ROW.replace("\"q3\"", "\"q4\"");
    let value = serde_json::from_str(&document(&[ROW, &second, &other])).unwrap();
    let (count, left_out, rejected) = came_of(&value);
    // Each says which row it calls itself, so it is rejected by that name.
    assert_eq!((count, rejected), (1, 2), "{left_out:?}");
    let said = "interface \"Ethernet1/1\": queue \"q3\" twice in one document, expected once";
    assert_eq!(left_out, [said]);
    let target = format!("{INTERFACE}/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue=q3");
    let entries = json!({"ietf-pfc-queue-telemetry:queue": [queue("q3"), queue("q3")]});
    assert_eq!(came_of(&change("replace", &target, &entries)).0, 0);
    // An interface that is there twice says of no queue whose it is, also where the queues differ.
    let mut value: Value = serde_json::from_str(&document(&[ROW])).unwrap();
    let list = &mut value["ietf-interfaces:interfaces"]["interface"];
    let mut again = list[0].clone();
    again["ietf-pfc-queue-telemetry:pfc-queue-telemetry"]["queue"][0] = queue("q4");
    list.as_array_mut().unwrap().push(again);
    let (count, left_out, rejected) = came_of(&value);
    assert_eq!((count, rejected), (0, 2));
    assert_eq!(left_out, ["interface \"Ethernet1/1\" twice in one document, expected once"]);
    let interface = &value["ietf-interfaces:interfaces"];
    assert_eq!(came_of(&change("replace", INTERFACE, interface)).0, 0);
}

// RFC 7951, section 4: with the name of its module and without, it is the same node.
#[test]
fn a_node_that_is_there_twice_under_both_names_says_nothing() {
    let twice = |at: &[&str], module: &str, own: &str, second: Value| {
        let mut value: Value = serde_json::from_str(&document(&[ROW])).unwrap();
        let node = at.iter().fold(&mut value, |node, name| match name.parse::<usize>() {
            Ok(nth) => &mut node[nth],
            Err(_) => &mut node[*name],
        });
        node[format!("{module}:{own}")] = second;
        value
    };
    let interfaces = "ietf-interfaces:interfaces";
    let container = "ietf-pfc-queue-telemetry:pfc-queue-telemetry";
    let module = "ietf-pfc-queue-telemetry";
    for (value, expected) in [
        (twice(&[interfaces], "ietf-interfaces", "interface", json!([])), "interface twice"),
        (
            twice(&[interfaces, "interface", "0"], "ietf-interfaces", "name", "x".into()),
            "name twice",
        ),
        (
            twice(
                &[interfaces, "interface", "0", container],
                module,
                "queue",
                json!([queue("q4")]),
            ),
            "queue twice",
        ),
    ] {
        let (count, left_out, _) = came_of(&value);
        assert_eq!(count, 0, "{value}");
        assert!(left_out.len() == 1 && left_out[0].starts_with(expected), "{left_out:?}");
    }
    // Of a row whose name is there twice nobody knows which it is.
    let at = [interfaces, "interface", "0", container, "queue", "0"];
    let (count, left_out, rejected) = came_of(&twice(&at, module, "queue-id", "q4".into()));
    assert_eq!((count, rejected), (0, 0));
    assert!(left_out[0].contains("queue-id twice, expected once"), "{left_out:?}");
}

#[test]
fn an_interface_whose_name_yang_does_not_allow_has_no_row_that_counts() {
    let mut value: Value = serde_json::from_str(&document(&[ROW])).unwrap();
    value["ietf-interfaces:interfaces"]["interface"][0]["name"] = "e\u{1}".into();
    let (count, left_out, rejected) = came_of(&value);
    assert_eq!((count, left_out.len(), rejected), (0, 1, 0), "{left_out:?}");
}

// RFC 8072, section 2.5
#[test]
fn an_operation_that_no_patch_has_changes_nothing() {
    let target = format!("{INTERFACE}/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue=q3");
    let value = json!({"ietf-pfc-queue-telemetry:queue": [row()]});
    for operation in ["foo", "", "Create", "replace "] {
        let (count, left_out, _) = came_of(&change(operation, &target, &value));
        assert_eq!(count, 0, "{operation}");
        assert!(left_out[0].contains("expected create, delete, insert"), "{left_out:?}");
    }
    // Two edits of one name contradict each other too.
    let mut twice = change("replace", &target, &value);
    let patch = &mut twice["ietf-restconf:notification"]["ietf-yang-push:push-change-update"]["datastore-changes"]
        ["yang-patch"];
    let edit = patch["edit"][0].clone();
    patch["edit"].as_array_mut().unwrap().push(edit);
    let (count, left_out, _) = came_of(&twice);
    assert_eq!((count, left_out.len()), (0, 2), "{left_out:?}");
    assert!(left_out[0].contains("edit \"e\" twice in one patch"), "{left_out:?}");
}

#[test]
fn data_of_another_module_with_our_names_is_not_ours() {
    let value = json!({"queue": [row()]});
    let target = "/other:interfaces/interface=e/pfc-queue-telemetry/queue=q3";
    assert_eq!(came_of(&change("replace", target, &value)), (0, vec![], 0));
    let ours = "/ietf-interfaces:interfaces/interface=e/other:pfc-queue-telemetry/queue=q3";
    assert_eq!(came_of(&change("replace", ours, &value)), (0, vec![], 0));
}
