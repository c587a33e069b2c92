//! Queue telemetry to readers: how queues stand, their rows, and sums that are those of
//! `queue aggregate`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use observe::queue::aggregate::Aggregator;
use rocescope::collector::queues::intake::{self, Taken, read};
use rocescope::queue::aggregate::{object, take};
use serde_json::{Value, json};
use store::{Change, QueueEntry, QueueReceived, Store, StoreLimits};

use crate::site::Site;

fn cases(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(name)
}

pub fn now_ms() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

pub fn received(device: &str, received_ms: u64, entries: Vec<QueueEntry>) -> Vec<Change> {
    let change = |entry| {
        Change::Queue(Box::new(QueueReceived { device: device.into(), received_ms, entry }))
    };
    entries.into_iter().map(change).collect()
}

pub fn store(site: &Site) -> Store {
    Store::open(&site.data(), StoreLimits::default(), 0).unwrap().0
}

/// A device of the draft's example, with what is true of any of its rows.
pub fn example(interval: u64, changes: &[(&str, Value)]) -> Value {
    let text = fs::read_to_string(cases("queue").join("ok-draft.json")).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let row = value
        .pointer_mut(
            "/ietf-interfaces:interfaces/interface/0/ietf-pfc-queue-telemetry:pfc-queue-telemetry\
             /queue/0",
        )
        .unwrap();
    row["interval-id"] = interval.to_string().into();
    row["start-offset-ns"] = (interval * 100_000_000).to_string().into();
    for (name, value) in changes {
        match value {
            Value::Null => _ = row.as_object_mut().unwrap().shift_remove(*name),
            value => row[*name] = value.clone(),
        }
    }
    value
}

pub fn entries(value: &Value) -> Vec<QueueEntry> {
    let Taken { entries, findings } =
        intake::entries(&read(value.to_string().as_bytes()).unwrap(), 100);
    assert_eq!(findings, [""; 0]);
    entries
}

// QUE-con.1, QUE-con.2, QUE-con.3
#[tokio::test]
async fn sums_are_those_of_queue_aggregate_over_the_same_records() {
    let site = Site::new("queue_sums", "", "");
    let mut store = store(&site);
    let mut expected = Vec::new();
    for entry in fs::read_dir(cases("queue-aggregate")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let device = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            let taken = intake::entries(&read(line.as_bytes()).unwrap(), 100);
            store.apply(&received(&device, now_ms(), taken.entries)).unwrap();
        }
        let mut aggregator = Aggregator::new(1000);
        take(&mut aggregator, text.as_bytes(), &mut |line, what| panic!("{line}: {what}")).unwrap();
        let groups: Vec<Value> = aggregator.groups().iter().map(object).collect();
        expected.push((device, groups));
    }
    assert_eq!(expected.len(), 20);
    drop(store);
    let site = site.start().await;
    for (device, groups) in expected {
        let target = format!("/api/v1/queues/aggregate?device={device}&limit=1000");
        let mut found = site.get(&target).await["groups"].as_array().unwrap().clone();
        found.reverse();
        for group in &mut found {
            let members = group.as_object_mut().unwrap();
            assert_eq!(members.shift_remove("device").unwrap(), device);
            assert_eq!(members.shift_remove("removedThroughInterval").unwrap(), Value::Null);
        }
        assert_eq!(found, groups, "{device}");
    }
    site.stop().await;
}

// QUE-con.1, QUE-err.3
#[tokio::test]
async fn a_queue_is_its_latest_row_and_what_is_known_of_continuity() {
    let site = Site::new("queues", "", "");
    let mut store = store(&site);
    let at = now_ms();
    let unknown = [
        ("quality", json!("unknown")),
        ("unknown-reason", json!("capture-gap")),
        ("gated-backlog-ns", Value::Null),
        ("backlog-ns", Value::Null),
        ("absolute-error-ns", Value::Null),
    ];
    let again = [("backlog-ns", json!("64000001"))];
    for (late, document) in
        (0..).zip([example(2, &[]), example(5, &unknown), example(2, &again), example(2, &[])])
    {
        store.apply(&received("leaf-1", at + late, entries(&document))).unwrap();
    }
    let other = example(1, &[("queue-id", json!("q/4 ö"))]);
    store.apply(&received("leaf-2", at + 9, entries(&other))).unwrap();
    drop(store);
    let site = site.start().await;
    let page = site.get("/api/v1/queues").await;
    let queues = page["queues"].as_array().unwrap();
    assert_eq!((queues.len(), &page["next"]), (2, &Value::Null));
    let epoch = "31c38fe2-f97e-4a88-a0a7-bae9ed5d4131";
    let expected = json!({
        "device": "leaf-1",
        "interface": "Ethernet1/1",
        "queueId": "q3",
        "latest": {
            "epochId": epoch,
            "intervalId": 5,
            "receivedMilliseconds": at + 1,
            "startOffsetNs": 500_000_000,
            "durationNs": 100_000_000,
            "wallClockStart": null,
            "mappedPriority": [3],
            "quality": "unknown",
            "unknownReason": "capture-gap",
            "gatedBacklogNs": null,
            "backlogNs": null,
            "absoluteErrorNs": null,
            "samplePeriodNs": null,
        },
        "epoch": {
            "epochId": epoch,
            "begunMilliseconds": at,
            "heardMilliseconds": at + 3,
            "accepted": 2,
            "repeated": 1,
            "rejected": 1,
            "firstInterval": 2,
            "lastInterval": 5,
            "missingIntervals": 2,
            "durationNs": 400_000_000,
            "gapNs": 200_000_000,
            "unknownNs": 100_000_000,
        },
        "epochs": 1,
        "rowsStored": 2,
    });
    assert_eq!(queues[1], expected);
    // One queue by its names, whatever they hold.
    let target = "/api/v1/queues?queue=q%2F4+%C3%B6&interface=Ethernet1/1";
    assert_eq!(site.get(target).await["queues"], json!([queues[0]]));
    let rows = site.get("/api/v1/queues/rows?device=leaf-1&limit=1").await;
    assert_eq!(rows["rows"][0]["intervalId"], 5);
    let next = rows["next"].as_str().unwrap();
    let second = site.get(&format!("/api/v1/queues/rows?device=leaf-1&cursor={next}")).await;
    assert_eq!((&second["rows"][0]["intervalId"], &second["next"]), (&json!(2), &Value::Null));
    assert_eq!(second["rows"][0]["gatedBacklogNs"], 18_500_000);
    let foreign = format!("/api/v1/queues/rows?device=leaf-2&cursor={next}");
    assert_eq!(site.ask("GET", &foreign).await.status, 400);
    // A time is when a row was received.
    let target = format!("/api/v1/queues/rows?since={}&until={}", at + 1, at + 2);
    assert_eq!(site.get(&target).await["rows"].as_array().unwrap().len(), 1);
    let group = site.get("/api/v1/queues/aggregate?device=leaf-1").await["groups"][0].clone();
    assert_eq!((&group["coverage"], &group["missingNs"]), (&json!("partial"), &json!(300_000_000)));
    assert_eq!(group["rejected"][0]["intervalId"], 2);
    let none = format!("/api/v1/queues/aggregate?epoch={epoch}&until={at}");
    assert_eq!(site.get(&none).await, json!({"groups": [], "next": null}));
    for (bad, status) in [
        ("/api/v1/queues?epoch=1", 400),
        ("/api/v1/queues/rows?epoch=1", 400),
        ("/api/v1/queues/rows?since=yesterday", 400),
        ("/api/v1/queues/aggregate?limit=0", 400),
        ("/api/v1/queues/aggregates", 404),
    ] {
        assert_eq!(site.ask("GET", bad).await.status, status, "{bad}");
    }
    site.stop().await;
}

// QUE-con.1
#[tokio::test]
async fn devices_and_metrics_say_what_became_of_rows() {
    let site = Site::new("queue_devices", "", "");
    let mut store = store(&site);
    for _ in 0..2 {
        store.apply(&received("old", now_ms(), entries(&example(1, &[])))).unwrap();
    }
    drop(store);
    let site = site.start().await;
    let device = json!({"device": "old", "queues": 1, "verdicts": {"accepted": 1, "repeated": 1}});
    assert_eq!(site.get("/api/v1/queues/devices").await, json!({"devices": [device]}));
    let metrics = site.ask("GET", "/metrics").await;
    let line = "rocescope_collector_queue_rows_total{device=\"old\",verdict=\"repeated\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
    site.stop().await;
}
