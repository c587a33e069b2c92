//! Lines of a source: what is taken, and what each error says.

use observe::queue::EpochId;
use observe::queue::meter::Settings;
use serde_json::Value;

use super::findings;
use crate::queue::QueueError;
use crate::queue::events::{LINE_OCTETS_MAX, read};
use crate::queue::measure::measure;

const MAP: &str = r#"{"seq":1,"t":0,"event":"map","interface":"Ethernet0","queue":"3","priorities":[3],"method":"head","maxError":9}"#;

fn line(seq: u64, t: u64, event: &str, rest: &str) -> String {
    format!(
        r#"{{"seq":{seq},"t":{t},"event":"{event}","interface":"Ethernet0","queue":"3"{rest}}}"#
    )
}

fn run(text: &str) -> (Result<u64, QueueError>, Vec<Value>) {
    let mut out = Vec::new();
    let settings = Settings { interval_ns: 1000, ..Settings::default() };
    let mut made = 0;
    let fresh = || {
        made += 1;
        EpochId::random([made; 16])
    };
    let done = measure(text.as_bytes(), settings, fresh, &mut out).map(|counts| counts.events);
    let lines = String::from_utf8(out).unwrap();
    (done, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn every_event_is_taken() {
    for text in [
        MAP.to_owned(),
        line(2, 5, "backlog", r#","present":true"#),
        line(2, 5, "gate", r#","priority":3,"closed":false"#),
        line(2, 5, "candidate", r#","priority":7"#),
        line(2, 5, "sample", r#","backlog":true,"gated":false"#),
        line(2, 5, "lost", ""),
        line(2, 5, "restart", ""),
        r#"{"seq":2,"t":5,"event":"restart"}"#.to_owned(),
        MAP.replace("Ethernet0", "Eth\\u0065rnet\\\"0"),
    ] {
        read(text.as_bytes()).unwrap();
    }
}

// QUE-def.3, QUE-def.4: there is no member for quanta, nor for anything but the two predicates.
#[test]
fn every_error_says_what_was_found_and_expected() {
    for (text, expected) in [
        ("", "EOF while parsing a value"),
        ("[]", "expected an object with the members of an event"),
        ("{}", "no seq, expected it"),
        (r#"{"seq":1}"#, "no t, expected it"),
        (r#"{"seq":1,"t":2}"#, "no event, expected it"),
        (r#"{"seq":-1}"#, "invalid value: integer `-1`, expected u64"),
        (r#"{"seq":1.5}"#, "invalid type: floating point `1.5`, expected u64"),
        (r#"{"seq":"1"}"#, "invalid type: string \"1\", expected u64"),
        (r#"{"seq":1,"seq":2}"#, "member \"seq\" twice, expected once"),
        (r#"{"seq":1,"quanta":5}"#, "member \"quanta\", expected one of seq, t, event"),
        (r#"{"seq":1,"t":2,"event":"pause"}"#, "event \"pause\", expected map, backlog, gate"),
        (r#"{"seq":1,"t":2,"event":"lost"}"#, "no interface and queue, expected both"),
        (r#"{"seq":1,"t":2,"event":"lost","queue":"3"}"#, "no interface, expected it beside"),
        (r#"{"seq":1,"t":2,"event":"restart","interface":"3"}"#, "no queue, expected it beside"),
        (&line(1, 2, "backlog", ""), "no present, expected it"),
        (&line(1, 2, "backlog", r#","present":1"#), "expected a boolean"),
        (&line(1, 2, "gate", r#","closed":true"#), "no priority, expected it"),
        (&line(1, 2, "gate", r#","priority":8,"closed":true"#), "priority 8, expected 0 to 7"),
        (&line(1, 2, "gate", r#","priority":300,"closed":true"#), "expected u8"),
        (&line(1, 2, "lost", r#","present":true"#), "member present in an event lost, expected"),
        (&MAP.replace("[3]", "[]"), "priorities without an entry, expected 1 to 8"),
        (&MAP.replace("[3]", "[3,8]"), "priority 8 in priorities, expected 0 to 7"),
        (&MAP.replace(r#","maxError":9"#, ""), "no maxError, expected it"),
        (&MAP.replace(r#""method":"head","#, ""), "no method, expected it"),
        (&format!("{MAP}x"), "trailing characters"),
    ] {
        let error = read(text.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn an_error_names_its_line_and_what_was_complete_is_written() {
    let text = format!(
        "{MAP}\n{}\n\n{}\n{}\n",
        line(2, 0, "backlog", r#","present":false"#),
        line(3, 3000, "gate", r#","priority":3,"closed":true"#),
        line(4, 3100, "gate", r#","priority":4,"closed":true"#),
    );
    let (done, rows) = run(&text);
    let error = done.unwrap_err().to_string();
    assert_eq!(error, "line 5: priority 4, expected one that is mapped: 3");
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_line_that_is_too_long_ends_the_measurement() {
    let long = |octets: usize| {
        let text = MAP.replace("head", &"h".repeat(4));
        format!("{text}{}", " ".repeat(octets - text.len() - 1))
    };
    assert!(run(&format!("{}\n", long(LINE_OCTETS_MAX))).0.is_ok());
    let (done, _) = run(&format!("{}\n", long(LINE_OCTETS_MAX + 1)));
    assert_eq!(
        done.unwrap_err().to_string(),
        "line 1: a line of more than 4096 octets, expected less"
    );
}

// QUE-ex.1, QUE-yang.1
#[test]
fn events_become_rows_that_pass_the_check() {
    let text = format!(
        "{MAP}\n{}\n{}\n{}\n{}\n{}\n",
        line(2, 0, "backlog", r#","present":true"#),
        line(3, 0, "gate", r#","priority":3,"closed":false"#),
        line(4, 1100, "gate", r#","priority":3,"closed":true"#),
        line(5, 1900, "gate", r#","priority":3,"closed":false"#),
        line(6, 2100, "gate", r#","priority":3,"closed":false"#),
    ) + &format!("{}\n", line(8, 2500, "gate", r#","priority":3,"closed":true"#));
    let (done, rows) = run(&text);
    assert_eq!(done.unwrap(), 7);
    let entries: Vec<&Value> = rows
        .iter()
        .map(|row| {
            let interface = &row["ietf-interfaces:interfaces"]["interface"][0];
            &interface["ietf-pfc-queue-telemetry:pfc-queue-telemetry"]["queue"][0]
        })
        .collect();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[1]["gated-backlog-ns"], "800");
    assert_eq!(entries[1]["absolute-error-ns"], "20");
    assert_eq!(entries[2]["unknown-reason"], "capture-gap");
    assert_eq!(entries[2]["duration-ns"], "500");
    let all = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let (checked, found) = findings(&all);
    assert_eq!((checked.rows, checked.findings), (3, 0), "{found}");
}

// QUE-id.1
#[test]
fn epoch_ids_are_made_once() {
    let mut fresh = crate::queue::fresh_epochs().unwrap();
    let mut made: Vec<_> = (0..1000).map(|_| fresh()).collect();
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), 1000);
}
