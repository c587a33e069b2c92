//! Traces of simulated networks, to events and to rows.

use observe::queue::EpochId;
use observe::queue::meter::Settings;
use serde_json::Value;

use crate::queue::measure::measure;
use crate::queue::ns3::{Converted, convert};

const HEADER: [u8; 19] = [1, 0, 0, 0, 5, 0, 2, 0, 232, 118, 72, 23, 0, 0, 0, 0, 0, 0, 0];

/// Of port 2 of node 5.
struct Record {
    time: u64,
    queue: u8,
    octets: u32,
    protocol: u8,
    kind: u8,
    switch: u8,
    pause: (u32, u8),
}

const RECORD: Record =
    Record { time: 0, queue: 3, octets: 0, protocol: 17, kind: 1, switch: 1, pause: (0, 0) };

fn octets(record: &Record) -> [u8; 56] {
    let mut all = [0; 56];
    all[..8].copy_from_slice(&record.time.to_le_bytes());
    (all[8], all[10], all[11]) = (5, 2, record.queue);
    all[12..16].copy_from_slice(&record.octets.to_le_bytes());
    (all[26], all[27], all[29]) = (record.protocol, record.kind, record.switch);
    all[32..36].copy_from_slice(&record.pause.0.to_le_bytes());
    all[40] = record.pause.1;
    all
}

fn trace(records: &[Record]) -> Vec<u8> {
    HEADER.into_iter().chain(records.iter().flat_map(octets)).collect()
}

fn pause(time: u64, asked: u32) -> Record {
    // Received under queue 0, whatever it pauses.
    Record { time, queue: 0, protocol: 0xfe, kind: 0, pause: (asked, 3), ..RECORD }
}

fn converted(trace: &[u8]) -> Result<(Converted, String), String> {
    let mut out = Vec::new();
    let done = convert(trace, 2, &mut out).map_err(|error| error.to_string())?;
    Ok((done, String::from_utf8(out).expect("text")))
}

fn rows(events: &str) -> Vec<Value> {
    let mut out = Vec::new();
    let settings = Settings { interval_ns: 10_000, ..Settings::default() };
    let mut made = 0;
    let fresh = || {
        made += 1;
        EpochId::random([made; 16])
    };
    measure(events.as_bytes(), settings, fresh, &mut out).expect("events of the contract");
    let text = String::from_utf8(out).expect("text");
    let row = |line: &str| {
        let document: Value = serde_json::from_str(line).expect("JSON");
        let interface = &document["ietf-interfaces:interfaces"]["interface"][0];
        assert_eq!(interface["name"], "node5/2");
        interface["ietf-pfc-queue-telemetry:pfc-queue-telemetry"]["queue"][0].clone()
    };
    text.lines().map(row).collect()
}

// QUE-def.1, QUE-def.4
#[test]
fn a_switch_tells_what_waits_and_pauses_hold_until_they_are_taken_back() {
    let records = [
        Record { time: 1000, ..RECORD },
        // A refresh is the same closed gate, whatever it asks for.
        pause(2000, 5),
        pause(3000, 65_535),
        pause(7000, 0),
        // The queue still has octets behind the first packet, and none behind the second.
        Record { time: 8000, kind: 2, octets: 1000, ..RECORD },
        Record { time: 9000, kind: 2, octets: 0, ..RECORD },
        Record { time: 12_000, kind: 0, ..RECORD },
        Record { time: 21_000, kind: 1, ..RECORD },
    ];
    let (done, events) = converted(&trace(&records)).expect("a trace");
    assert_eq!((done.records, done.queues, done.without_backlog, done.drops), (8, 1, 0, 0));
    assert_eq!(done.events, u64::try_from(events.lines().count()).unwrap());
    let row = &rows(&events)[0];
    assert_eq!(row["quality"], "event-based");
    assert_eq!((&row["backlog-ns"], &row["gated-backlog-ns"]), (&"8000".into(), &"5000".into()));
    assert_eq!(row["mapped-priority"], serde_json::json!([3]));
}

// QUE-err.3
#[test]
fn a_host_has_gates_and_nothing_that_waits_and_a_drop_leaves_gates_unknown() {
    let host = |time, kind| Record { time, kind, switch: 0, ..RECORD };
    let (done, events) = converted(&trace(&[host(0, 2), host(30_000, 2)])).expect("a trace");
    assert_eq!(done.without_backlog, 1);
    assert!(!events.contains("backlog"), "{events}");
    let (_, later) = converted(&trace(&[host(0, 2), Record { switch: 0, ..pause(30_000, 1) }]))
        .expect("a trace");
    let row = &rows(&later)[0];
    assert_eq!(
        (&row["quality"], &row["unknown-reason"]),
        (&"unknown".into(), &"unavailable".into())
    );
    let dropped = [
        Record { time: 0, ..RECORD },
        Record { time: 500, kind: 3, queue: 0, ..RECORD },
        Record { time: 600, kind: 2, ..RECORD },
        Record { time: 30_000, ..RECORD },
    ];
    let (done, events) = converted(&trace(&dropped)).expect("a trace");
    assert_eq!(done.drops, 1);
    let row = &rows(&events)[0];
    assert_eq!(
        (&row["quality"], &row["unknown-reason"]),
        (&"unknown".into(), &"capture-gap".into())
    );
}

#[test]
fn a_gate_that_closed_before_its_queue_was_seen_is_told_with_it_and_queue_0_is_left_out() {
    let zero = Record { queue: 0, ..RECORD };
    let (done, events) = converted(&trace(&[zero, pause(10, 1)])).expect("a trace");
    assert_eq!(done.queues, 1);
    assert!(!events.contains("\"queue\":\"0\""), "{events}");
    assert!(events.lines().last().expect("a line").contains("\"closed\":true"), "{events}");
}

#[test]
fn what_is_no_trace_is_refused_with_its_place() {
    let whole = trace(&[RECORD, RECORD]);
    for (octets, expected) in [
        (&b""[..], "the header of a trace"),
        (&[0; 40], "0 ports in the header of a trace, expected 1 to 1048576"),
        (&[255; 40], "4294967295 ports"),
        (&HEADER[..18], "a header of 14 octets behind the number of ports, expected 15"),
        (&whole[..whole.len() - 1], "fill whole buffer"),
        (&trace(&[Record { kind: 4, ..RECORD }]), "line 1: event 4 at octet 27, expected 0 to 3"),
        (&trace(&[RECORD, Record { switch: 2, ..RECORD }]), "line 2: node type 2 at octet 29"),
        (&trace(&[Record { queue: 8, ..RECORD }]), "line 1: queue 8, expected 0 to 7"),
        (&trace(&[Record { pause: (1, 9), ..pause(0, 1) }]), "line 1: queue 9, expected 0 to 7"),
        (&trace(&[Record { time: 9, ..RECORD }, RECORD]), "line 2: time 0 after 9"),
        (
            &trace(&[1, 2, 4].map(|queue| Record { queue, ..RECORD })),
            "line 3: one more than the 2 queues",
        ),
    ] {
        let error = converted(octets).expect_err(expected);
        assert!(error.contains(expected), "{error}, expected {expected}");
    }
}
