//! PFC counters beside an epoch: only where device, interface, priority and time are common and
//! known; otherwise the reason, and never a number of both.

use observe::outcome::BESIDE;
use observe::pfc::Direction;
use observe::pfc::beside::Apart;
use observe::report::Report;
use rocescope::serve::openapi;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use wire::frame::Addresses;

use crate::export::{Export, last, report};
use crate::pfc::{Agent, scope};
use crate::site::Site;

/// 2027-01-15T08:00:00Z.
pub const AT: u64 = 1_800_000_000_000;

pub const PLACES: &str = "
[[pfc.device]]
name = \"leaf1\"
exporter = \"agent.example\"
domain = 1
[[pfc.device.port]]
name = \"Ethernet12\"
interface = 12
[[pfc.device.port]]
name = \"Ethernet13\"
interface = 13
[[pfc.flows]]
exporter = \"agent.example\"
domain = 1
point = 3
destinations = [\"10.0.0.2\"]
device = \"leaf1\"
port = \"Ethernet12\"
class = 1
[[pfc.flows]]
exporter = \"agent.example\"
domain = 1
destinations = [\"10.0.0.3\"]
device = \"leaf1\"
port = \"Ethernet13\"
class = 0
[[pfc.classes]]
since = 2027-01-15T08:00:00Z
device = \"leaf1\"
priorities = [0, 3]
[[pfc.classes]]
since = 2027-01-15T08:01:00Z
port = \"Ethernet12\"
priorities = [0, 5]
";

/// An epoch of a flow to a host from one second to another.
pub fn flow(epoch: u64, host: u8, [from_s, to_s]: [i64; 2]) -> Report {
    let mut report = last(report(epoch, 1));
    let ms = |seconds: i64| AT.checked_add_signed(seconds * 1000).unwrap();
    let snapshot = &mut report.snapshot;
    snapshot.key.addresses = Addresses::v4([10, 0, 0, 1], [10, 0, 0, host]);
    (snapshot.start_ms, snapshot.end_ms) = (ms(from_s), ms(to_s));
    report
}

// PFC-cor.1, PFC-sem.2, PFC-op.1, PFC-id.3
#[tokio::test]
async fn counters_stand_beside_a_flow_only_where_all_that_they_share_is_known() {
    use Direction::{Received, Transmitted};
    let site = Site::new("beside", PLACES, "pfc_link_gbps_max = 400").start().await;
    let mut flows = site.agent().await;
    let (mut export, mut octets) = Export::new(1);
    octets.extend(export.reports(&[
        flow(1, 2, [10, 20]),
        flow(2, 2, [50, 70]),
        flow(3, 2, [-10, 5]),
        flow(4, 9, [10, 20]),
        flow(5, 3, [10, 20]),
        flow(6, 2, [62, 65]),
        flow(7, 2, [20, 30]),
        flow(8, 2, [30, 10]),
        flow(9, 2, [30, 40]),
    ]));
    flows.write_all(&octets).await.unwrap();
    let mut counters = site.agent().await;
    let (mut export, mut octets) = Agent::new();
    let (rx, tx) = (scope(12, Received, 3), scope(12, Transmitted, 3));
    for (seconds, more) in [(5, 0), (25, 1000)] {
        let time_ms = AT + seconds * 1000;
        octets.extend(export.readings(&[
            (rx, time_ms, 40 + more, Some(77)),
            (tx, time_ms, 50 + more, None),
            // Neighbours, which have nothing to do here.
            (scope(12, Received, 4), time_ms, 7 + more, Some(78)),
            (scope(13, Received, 3), time_ms, 8 + more, Some(79)),
        ]));
    }
    octets.extend(export.readings(&[(scope(12, Received, 5), AT + 70_000, 3, Some(80))]));
    counters.write_all(&octets).await.unwrap();
    let all = |summary: &Value| summary["pfcCounters"] == 5 && summary["epochs"]["complete"] == 9;
    site.until("/api/v1/summary", all).await;
    let session = site.get("/api/v1/epochs?limit=1").await["epochs"][0]["session"].clone();
    let path = |epoch: u64| format!("/api/v1/epochs/{session}/1/{epoch}");
    let beside = async |epoch: u64| site.get(&format!("{}/pfc", path(epoch))).await;

    let found = beside(1).await;
    assert_eq!(found["epoch"], site.get(&path(1)).await);
    assert_eq!((&found["state"], &found["reason"]), (&json!("beside"), &Value::Null));
    assert_eq!((&found["device"], &found["port"]), (&json!("leaf1"), &json!("Ethernet12")));
    assert_eq!((&found["interface"], &found["trafficClass"]), (&json!(12), &json!(1)));
    assert_eq!(found["pfcPriority"], 3);
    assert_eq!(found["meaning"], BESIDE);
    let [transmitted, received] = &found["counters"].as_array().unwrap()[..] else {
        panic!("{found}");
    };
    assert_eq!(
        (&received["direction"], &transmitted["direction"]),
        (&json!("received"), &json!("transmitted"))
    );
    assert_eq!(
        received["interval"],
        json!({"state": "exact", "value": 1000, "sinceMilliseconds": AT + 5000})
    );
    let reading = |seconds: u64, total: u64| {
        json!({"record": "pfcReading", "observationTimeMilliseconds": AT + seconds * 1000,
               "pfcControlFrameTotalCount": total})
    };
    assert_eq!((&received["earlier"], &received["later"]), (&reading(5, 40), &reading(25, 1040)));
    assert_eq!(received["wholeFlow"], true);
    assert_eq!(transmitted["later"], reading(25, 1050));
    let unknown = json!({"state": "unknown", "reason": "the counter instance is not known",
                         "sinceMilliseconds": AT + 5000});
    assert_eq!(transmitted["interval"], unknown);

    for (epoch, apart, priority) in [
        (2, Apart::PriorityChanged, Value::Null),
        (3, Apart::PriorityUnknown, Value::Null),
        (4, Apart::PlaceUnknown, Value::Null),
        (5, Apart::NoCounter, json!(0)),
        (8, Apart::TimeUnknown, Value::Null),
        // The counters were read last before it.
        (9, Apart::NoCounter, json!(3)),
    ] {
        let found = beside(epoch).await;
        let told = (&found["state"], &found["reason"], &found["pfcPriority"]);
        assert_eq!(told, (&json!("unknown"), &json!(apart.words()), &priority), "{epoch}");
        assert_eq!((&found["counters"], &found["meaning"]), (&json!([]), &json!(BESIDE)));
        assert_eq!(found["device"].is_null(), apart == Apart::PlaceUnknown, "{epoch}");
    }
    // One reading alone says nothing of a time.
    let found = beside(6).await;
    assert_eq!((&found["state"], &found["pfcPriority"]), (&json!("unknown"), &json!(5)));
    assert_eq!(found["reason"], Apart::NoReadings.words());
    let counter = &found["counters"][0];
    assert_eq!((&counter["earlier"], &counter["wholeFlow"]), (&Value::Null, &json!(false)));
    assert_eq!(counter["interval"]["reason"], Apart::NoReadings.words());
    // A part of the flow's time, which is said.
    let found = beside(7).await;
    assert_eq!(
        (&found["state"], &found["counters"][1]["wholeFlow"]),
        (&json!("beside"), &json!(false))
    );
    assert_eq!(found["counters"][1]["interval"]["value"], 1000);

    assert_eq!(site.ask("GET", &format!("{}/pfc", path(10))).await.status, 404);
    // What is listed has the names as well, and null where nothing has one.
    let page = site.get("/api/v1/pfc?interface=13").await;
    let row = &page["pfc"][0];
    assert_eq!((&row["device"], &row["port"]), (&json!("leaf1"), &json!("Ethernet13")));
    site.stop().await;
}

// PFC-cor.1
#[test]
fn the_described_reasons_are_all_that_there_are() {
    let schema = &openapi()["components"]["schemas"]["Beside"]["properties"]["reason"];
    assert_eq!(schema["oneOf"][0]["enum"], json!(Apart::ALL.map(Apart::words)));
}
