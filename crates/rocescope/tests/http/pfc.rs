//! PFC counters from an exporter to readers: what is taken and refused, what is said of it, and that
//! replaying the archive says the same.

use std::collections::BTreeSet;

use observe::export::Exporter;
use observe::pfc::instance::InstanceId;
use observe::pfc::qualify::{Condition, Qualification, Qualified};
use observe::pfc::{Direction, Priority, Reading, Scope};
use rocescope::meter::Format;
use rocescope::replay;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use wire::element::{DraftElement, ElementId, Mapping};
use wire::ipfix::{Encoder, FieldSpec, TemplateSpec};

use crate::site::Site;

fn qualified(direction: Direction) -> Qualified {
    let all = Condition::ALL.into_iter();
    all.fold(Qualification::new(direction), Qualification::attested).check().unwrap()
}

pub fn scope(interface: u32, direction: Direction, priority: u8) -> Scope {
    let priority = Priority::new(priority).unwrap();
    Scope { domain: 1, point: 9, interface, direction, priority }
}

/// An exporter of one domain, with the octets of its readings.
pub struct Agent(Exporter);

impl Agent {
    pub fn new() -> (Self, Vec<u8>) {
        let mut exporter = Exporter::new(Mapping::default(), 1, 9, 1400).unwrap().extended();
        let mut octets = Vec::new();
        exporter.begin(100, &mut octets).unwrap();
        (Self(exporter), octets)
    }

    pub fn readings(&mut self, readings: &[(Scope, u64, u64, Option<u64>)]) -> Vec<u8> {
        let mut octets = Vec::new();
        for (scope, time_ms, total, instance) in readings {
            let reading = Reading { scope: *scope, time_ms: *time_ms, total: *total };
            let one = [(reading, instance.and_then(InstanceId::new))];
            self.0.identified(&qualified(scope.direction), &one, 100, &mut octets).unwrap();
        }
        octets
    }
}

fn rows(page: &Value) -> &[Value] {
    page["pfc"].as_array().unwrap()
}

/// Direction, interface, priority and total of each.
fn told(page: &Value) -> Vec<(String, u64, u64, Value)> {
    let row = |row: &Value| {
        let n = |name: &str| row[name].as_u64();
        let (direction, interface) = match n("ingressPhysicalInterface") {
            Some(interface) => ("received", interface),
            None => ("transmitted", n("egressPhysicalInterface").unwrap()),
        };
        let total = row["pfcControlFrameTotalCount"].clone();
        (direction.to_owned(), interface, n("pfcPriority").unwrap(), total)
    };
    rows(page).iter().map(row).collect()
}

fn replayed(site: &Site) -> (Vec<Value>, replay::Summary) {
    let run = replay::Run {
        paths: vec![site.data().join("archive")],
        format: Format::Json,
        mapping: Mapping::default(),
        seed: 1,
    };
    let mut out = Vec::new();
    let summary = replay::run(&run, &mut out, &mut Vec::new()).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.filter(|line: &Value| line["record"] == "pfc").collect(), summary)
}

/// What the interface says of counters, without what an archive does not hold.
fn without_reception(page: &Value) -> Vec<Value> {
    let mut counters = rows(page).to_vec();
    counters.reverse();
    for counter in &mut counters {
        let counter = counter.as_object_mut().unwrap();
        for name in ["receivedMilliseconds", "ageMilliseconds"] {
            assert!(counter.shift_remove(name).unwrap().is_number());
        }
        let closed = counter.shift_remove("sessionState").unwrap() == "closed";
        assert_eq!(closed, counter.shift_remove("current").unwrap() == false);
        assert_eq!(counter.shift_remove("exporter").unwrap(), "agent.example");
        // Nothing in the configuration gives them a name.
        for name in ["device", "port"] {
            assert_eq!(counter.shift_remove(name).unwrap(), Value::Null);
        }
    }
    counters
}

// PFC-id.1, PFC-rec.2, PFC-sem.2, PFC-sem.3, PFC-op.1
#[tokio::test]
async fn a_counter_is_its_latest_reading_and_an_interval_that_somebody_vouches_for() {
    let mut site = Site::new("pfc", "", "pfc_link_gbps_max = 400").start().await;
    assert_eq!(site.get("/api/v1/pfc").await, json!({"pfc": [], "next": null}));
    let mut agent = site.agent().await;
    let (mut export, mut octets) = Agent::new();
    use Direction::{Received, Transmitted};
    let (rx, tx, other) =
        (scope(11, Received, 3), scope(11, Transmitted, 3), scope(11, Received, 4));
    let at = 1_800_000_000_000;
    octets.extend(export.readings(&[
        // Nobody vouches for anything.
        (rx, at, 5, None),
        (rx, at + 1000, 9, None),
        // One run of one counter, around the largest number.
        (tx, at, u64::MAX, Some(77)),
        (tx, at + 2000, 4, Some(77)),
        // Another instance, though the total grew.
        (other, at, 1, Some(5)),
        (other, at + 500, 2, Some(6)),
        // A zero is a reading.
        (scope(12, Received, 0), at + 7, 0, Some(1)),
    ]));
    agent.write_all(&octets).await.unwrap();
    let page = site.until("/api/v1/pfc", |page| rows(page).len() == 4).await;
    assert_eq!(
        told(&page),
        [
            ("received".into(), 12, 0, json!(0)),
            ("received".into(), 11, 4, json!(2)),
            ("transmitted".into(), 11, 3, json!(4)),
            ("received".into(), 11, 3, json!(9)),
        ]
    );
    let intervals: Vec<_> = rows(&page).iter().map(|row| row["interval"].clone()).collect();
    let unknown = |reason: &str, since: Value| json!({"state": "unknown", "reason": reason, "sinceMilliseconds": since});
    assert_eq!(
        intervals,
        [
            unknown("no earlier reading", Value::Null),
            unknown("the counter instance was replaced", json!(at)),
            json!({"state": "exact", "value": 5, "sinceMilliseconds": at}),
            unknown("the counter instance is not known", json!(at)),
        ]
    );
    let rates: Vec<_> = rows(&page).iter().map(|row| row["rate"]["state"].clone()).collect();
    assert_eq!(rates, ["unknown", "unknown", "average", "unknown"]);
    assert_eq!(
        rows(&page)[2]["rate"],
        json!({
            "state": "average",
            "framesPerSecond": 2.5,
            "framesPerSecondMin": 5000.0 / 2001.0,
            "framesPerSecondMax": 5000.0 / 1999.0,
        })
    );
    let first = &rows(&page)[3];
    assert_eq!(first["record"], "pfc");
    assert_eq!(first["observationDomainId"], 1);
    assert_eq!(first["observationPointId"], 9);
    assert_eq!(first["observationTimeMilliseconds"], at + 1000);
    assert_eq!((&first["readings"], &first["counter"]), (&json!(2), &json!(0)));
    assert_eq!(first["pfcCounterInstanceId"], Value::Null);
    let sessions = site.get("/api/v1/sessions").await;
    assert_eq!(sessions["sessions"][0]["pfcCounters"], 4);
    assert_eq!(site.get("/api/v1/summary").await["pfcCounters"], 4);
    let metrics = site.ask("GET", "/metrics").await.text().to_owned();
    let total = "rocescope_collector_pfc_control_frames_total{exporter=\"agent.example\",\
                 session=\"1\",domain=\"1\",point=\"9\",interface=\"11\",\
                 direction=\"received\",priority=\"3\",further_scope=\"\"} 9";
    assert!(metrics.lines().any(|line| line == total), "{metrics}");
    let time = total.replace("control_frames_total", "observation_time_seconds");
    let time = time.replace("} 9", "} 1800000001");
    assert!(metrics.lines().any(|line| line == time), "{metrics}");
    assert_eq!((&first["sessionState"], &first["current"]), (&json!("open"), &json!(true)));
    assert!(metrics.contains("rocescope_collector_pfc_readings_accepted_total 7\n"), "{metrics}");
    agent.shutdown().await.unwrap();
    let over = |page: &Value| page["sessions"][0]["state"] == "closed";
    site.until("/api/v1/sessions", over).await;
    // What is over is not scraped any more.
    let metrics = site.ask("GET", "/metrics").await.text().to_owned();
    assert!(!metrics.contains("pfc_control_frames_total{"), "{metrics}");
    let ended = site.get("/api/v1/pfc").await;
    let first = &rows(&ended)[3];
    assert_eq!((&first["sessionState"], &first["current"]), (&json!("closed"), &json!(false)));
    let started = site.started.take().unwrap();
    started.stop().await;
    let (lines, summary) = replayed(&site);
    let live = without_reception(&ended);
    assert_eq!(live, lines);
    // Also the order of members, which people read.
    assert_eq!(Value::from(live).to_string(), Value::from(lines).to_string());
    assert_eq!((summary.pfc_counters, summary.pfc_accepted, summary.refused), (4, 7, 0));
}

// PFC-op.1
#[tokio::test]
async fn a_counter_that_is_not_heard_of_any_more_is_no_total_that_stands_still() {
    let site = Site::new("pfc_silent", "", "pfc_silent_after_s = 1").start().await;
    let mut agent = site.agent().await;
    let (mut export, mut octets) = Agent::new();
    let at = 1_800_000_000_000;
    octets.extend(export.readings(&[(scope(1, Direction::Received, 3), at, 5, None)]));
    agent.write_all(&octets).await.unwrap();
    let is = |state: bool| {
        move |page: &Value| rows(page).first().is_some_and(|row| row["current"] == state)
    };
    site.until("/api/v1/pfc", is(true)).await;
    let page = site.until("/api/v1/pfc", is(false)).await;
    // It has its time, and its session may say more.
    let row = &rows(&page)[0];
    assert_eq!(
        (&row["sessionState"], &row["pfcControlFrameTotalCount"]),
        (&json!("open"), &json!(5))
    );
    assert!(row["ageMilliseconds"].as_u64() >= Some(1000), "{row}");
    let metrics = site.ask("GET", "/metrics").await.text().to_owned();
    assert!(!metrics.contains("pfc_control_frames_total{"), "{metrics}");
    assert!(!metrics.contains("pfc_observation_time_seconds{"), "{metrics}");
    agent
        .write_all(&export.readings(&[(scope(1, Direction::Received, 3), at + 1, 6, None)]))
        .await
        .unwrap();
    site.until("/api/v1/pfc", is(true)).await;
}

// PFC-op.1
#[tokio::test]
async fn filters_hold_alone_and_together_and_pages_miss_nothing() {
    let site = Site::new("pfc_filters", "", "http_page_max = 10").start().await;
    let mut agent = site.agent().await;
    let (mut export, mut octets) = Agent::new();
    let mut all = Vec::new();
    for interface in [1, 2] {
        for direction in Direction::ALL {
            for priority in 0..8_u8 {
                let time_ms = 1000 + u64::from(priority);
                all.push((scope(interface, direction, priority), time_ms, all.len() as u64, None));
            }
        }
    }
    octets.extend(export.readings(&all));
    agent.write_all(&octets).await.unwrap();
    site.until("/api/v1/summary", |summary| summary["pfcCounters"] == 32).await;
    for (query, expected) in [
        ("interface=1&direction=received", 8),
        ("direction=transmitted&priority=3", 2),
        ("priority=0&interface=2&direction=received&domain=1", 1),
        ("domain=2", 0),
        ("exporter=agent.example&priority=7", 4),
        ("exporter=other.example", 0),
        ("since=1007", 4),
        ("until=1001", 4),
        ("since=1003&until=1004&interface=1", 2),
    ] {
        let page = site.get(&format!("/api/v1/pfc?{query}")).await;
        assert_eq!(rows(&page).len(), expected, "{query}");
    }
    let (mut seen, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = site.get(&format!("/api/v1/pfc?limit=10&cursor={cursor}")).await;
        for row in told(&page) {
            assert!(seen.insert(format!("{row:?}")), "{row:?} twice");
        }
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen.len(), 32);
    for (query, detail) in [
        ("priority=8", "priority=8, expected 0 to 7"),
        ("direction=both", "direction=both, expected received or transmitted"),
        ("interface=4294967296", "interface=4294967296, expected 0 to 4294967295"),
        ("cursor=1", "cursor=1, expected the next of an answer to the same question"),
    ] {
        let answer = site.ask("GET", &format!("/api/v1/pfc?{query}")).await;
        assert_eq!((answer.status, &answer.json()["detail"]), (400, &json!(detail)));
    }
    let history = site.get("/api/v1/pfc/1/31/history").await;
    assert_eq!(history["points"].as_array().unwrap().len(), 1);
    assert_eq!(history["points"][0]["pfcControlFrameTotalCount"], 31);
    assert_eq!(site.ask("GET", "/api/v1/pfc/1/32/history").await.status, 404);
    site.stop().await;
}

// PFC-sem.2, SEQ-7.18: what the archive alone says of it is the same.
#[tokio::test]
async fn an_exporter_that_contradicts_itself_is_not_believed_again_neither_live_nor_in_replay() {
    use Direction::{Received, Transmitted};
    let mut site = Site::new("pfc_doubted", "", "pfc_link_gbps_max = 400").start().await;
    let mut agent = site.agent().await;
    let (mut export, mut octets) = Agent::new();
    let at = 1_800_000_000_000;
    let [fell, two, late, fits] =
        [(Received, 0), (Received, 1), (Transmitted, 0), (Transmitted, 1)]
            .map(|(direction, priority)| scope(11, direction, priority));
    let many = 1 << 60;
    for reading in [
        // A total that falls within a millisecond.
        (fell, at, 1000, Some(7)),
        (fell, at, 0, Some(7)),
        (fell, at + 1000, 50, Some(7)),
        // Two instances that count more than they can, and the first again.
        (two, at, 0, Some(7)),
        (two, at + 1, many, Some(7)),
        (two, at + 2, 0, Some(8)),
        (two, at + 3, many, Some(8)),
        (two, at + 1000, many, Some(7)),
        (two, at + 2000, many + 2, Some(7)),
        // A reading from before that cannot be, and one that can.
        (late, at, 1000, Some(7)),
        (late, at + 1000, 1001, Some(7)),
        (late, at + 500, 2000, Some(7)),
        (fits, at, 1000, Some(7)),
        (fits, at + 1000, 1002, Some(7)),
        (fits, at + 500, 1001, Some(7)),
    ] {
        octets.extend(export.readings(&[reading]));
    }
    agent.write_all(&octets).await.unwrap();
    agent.shutdown().await.unwrap();
    let sessions =
        site.until("/api/v1/sessions", |page| page["sessions"][0]["state"] == "closed").await;
    assert_eq!(sessions["sessions"][0]["refused"]["pfcEarlierReading"], 2, "{sessions}");
    let page = site.get("/api/v1/pfc").await;
    let mut found: Vec<_> = rows(&page).iter().map(|row| row["interval"].clone()).collect();
    found.reverse();
    let unknown = |since: u64| {
        json!({"state": "unknown", "reason": "the counter instance is not known",
               "sinceMilliseconds": since})
    };
    let exact = json!({"state": "exact", "value": 2, "sinceMilliseconds": at});
    assert_eq!(found, [unknown(at), unknown(at + 1000), unknown(at), exact]);
    for (number, row) in rows(&page).iter().rev().enumerate() {
        let history = site.get(&format!("/api/v1/pfc/{}/{number}/history", row["session"])).await;
        for point in history["points"].as_array().unwrap() {
            assert_ne!(point["interval"]["state"], "exact", "{history}");
        }
    }
    site.started.take().unwrap().stop().await;
    assert_eq!(without_reception(&page), replayed(&site).0);
}

fn iana(id: u16, length: u16) -> FieldSpec {
    FieldSpec::new(ElementId::iana(id), length)
}

fn draft(element: DraftElement) -> FieldSpec {
    FieldSpec::full(Mapping::default().id(element), element.abstract_type())
}

/// A template of somebody else's making: its scope, its other fields, and the values of a record.
type Case = (Vec<FieldSpec>, Vec<FieldSpec>, Vec<u64>);

/// A line card is in the scope of one counter.
const HOSTILE: &str = "pfc_counters_max = 20
pfc_scope_octets_max = 14
pfc_scope_octets_all_max = 27";

// PFC-rec.1, PFC-exp.1, PFC-id.1, PFC-id.3, PFC-count.4
#[tokio::test]
async fn a_hostile_exporter_is_told_what_is_wrong_and_others_are_let_through() {
    let mut site = Site::new("pfc_hostile", "", HOSTILE).start().await;
    let mut agent = site.agent().await;
    let (point, ingress, egress) = (iana(138, 8), iana(252, 4), iana(253, 4));
    let (priority, total) =
        (draft(DraftElement::PfcPriority), draft(DraftElement::PfcControlFrameTotalCount));
    let (time, short) = (iana(323, 8), FieldSpec::new(total.id, 2));
    let stranger = FieldSpec::new(ElementId { pen: 9, id: 5 }, 3);
    let cases: [Case; 16] = [
        // Taken: another order, additional elements, fewer octets; a line card makes another.
        (vec![priority, ingress, point], vec![total, time], vec![0, 1, 9, 100, 1]),
        (
            vec![point, priority, ingress],
            vec![stranger, total, iana(1, 8), time],
            vec![9, 1, 1, 5, 101, 6, 1],
        ),
        (vec![iana(138, 1), iana(253, 1), priority], vec![time, short], vec![9, 1, 2, 1, 102]),
        (vec![point, ingress, iana(141, 4), priority], vec![time, total], vec![9, 1, 4, 3, 1, 103]),
        // Let through: nothing of it is a PFC record.
        (vec![priority], vec![iana(1, 8)], vec![9, 1]),
        (vec![], vec![priority, iana(1, 8)], vec![9, 1]),
        // Refused by their template.
        (vec![point, ingress, egress, priority], vec![time, total], vec![9, 1, 1, 1, 1, 1]),
        (vec![point, ingress, priority], vec![time, total, egress], vec![9, 1, 1, 1, 1, 1]),
        (vec![point, priority], vec![time, total], vec![9, 1, 1, 1]),
        (vec![point, ingress, priority, time], vec![total], vec![9, 1, 1, 1, 1]),
        (vec![point, ingress, priority], vec![time, total, total], vec![9, 1, 1, 1, 1, 1]),
        (vec![], vec![point, ingress, priority, time, total], vec![9, 1, 1, 1, 1]),
        // Refused by their field.
        (vec![point, ingress, priority], vec![time, total], vec![9, 1, 8, 1, 1]),
        (vec![point, ingress, priority], vec![time, total], vec![9, 1, 255, 1, 1]),
        // Refused by their further scope: one that is too long, and one too many.
        (
            vec![point, ingress, iana(141, 4), iana(143, 4), priority],
            vec![time, total],
            vec![9, 1, 4, 4, 3, 1, 1],
        ),
        (vec![point, ingress, iana(141, 4), priority], vec![time, total], vec![9, 1, 5, 3, 1, 1]),
    ];
    let mut encoder = Encoder::new(65_535).unwrap();
    let mut octets = Vec::new();
    for (id, (scope, data, values)) in (400..).zip(&cases) {
        let mut writer = encoder.writer(1, 100, &mut octets);
        let fields = [&scope[..], data].concat();
        let scope_count = u16::try_from(scope.len()).unwrap();
        writer.template(&TemplateSpec { id, scope_count, fields }).unwrap();
        writer.record(id, |record| values.iter().try_for_each(|n| record.unsigned(*n))).unwrap();
        writer.finish();
    }
    // Ten thousand ports, for which there is no room.
    let mut writer = encoder.writer(1, 100, &mut octets);
    for interface in 1000..11_000 {
        let filled = writer.record(412, |record| {
            [9, interface, 7, 1, 1].into_iter().try_for_each(|n| record.unsigned(n))
        });
        filled.unwrap();
    }
    writer.finish();
    agent.write_all(&octets).await.unwrap();
    agent.shutdown().await.unwrap();
    let sessions =
        site.until("/api/v1/sessions", |page| page["sessions"][0]["state"] == "closed").await;
    let refused = &sessions["sessions"][0]["refused"];
    assert_eq!(refused["pfcTemplateNotOfRecord"], 6, "{refused}");
    assert_eq!(refused["pfcPriorityOutOfRange"], 2, "{refused}");
    assert_eq!(refused["pfcScopeTooLong"], 1, "{refused}");
    assert_eq!(refused["pfcScopesFull"], 1, "{refused}");
    assert_eq!(refused["pfcCountersFull"], 10_000 - 16, "{refused}");
    assert_eq!(sessions["sessions"][0]["pfcCounters"], 20);
    let page = site.get("/api/v1/pfc?interface=1").await;
    assert_eq!(
        told(&page),
        [
            ("received".into(), 1, 3, json!(103)),
            ("transmitted".into(), 1, 2, json!(102)),
            ("received".into(), 1, 1, json!(101)),
            ("received".into(), 1, 0, json!(100)),
        ]
    );
    assert_eq!(rows(&page)[0]["furtherScope"], "00000000008d0000000400000004");
    let all = site.get("/api/v1/pfc?limit=100").await;
    let started = site.started.take().unwrap();
    started.stop().await;
    let (lines, summary) = replayed(&site);
    assert_eq!(without_reception(&all), lines);
    assert_eq!(summary.refused, 6 + 2 + 1 + 1 + 10_000 - 16);
    assert_eq!((summary.pfc_accepted, summary.pfc_counters), (20, 20));
}
