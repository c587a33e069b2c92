//! What is answered: epochs, sessions, numbers and bounds, and what is said of bad questions.

use std::collections::BTreeSet;

use observe::report::{Flags, Report};
use rocescope::meter::{EXACT_MAX, Format};
use rocescope::replay;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use wire::frame::Addresses;

use crate::client::{exchange, request};
use crate::export::{Export, exported, last, report};
use crate::site::{FILLED, Site, described, fill};

/// An epoch of its own stream.
fn of(mut report: Report, source: u8, qp: u32) -> Report {
    let key = &mut report.snapshot.key;
    key.addresses = Addresses::v4([10, 0, 0, source], [10, 0, 1, 1]);
    key.qp = qp;
    report
}

/// What a time can be.
const TIME: &str = "milliseconds since 1970, 0 to 18446744073709551615, or a time of RFC 3339 from \
                    1970 on, such as 2026-11-30T08:15:00Z";

/// Twenty epochs: of four sources, of five queue pairs, every third without its final report.
fn twenty() -> Vec<Vec<Report>> {
    (1..=20_u8)
        .map(|n| {
            let first = of(report(n.into(), 1), n % 4, u32::from(n % 5));
            let second = of(last(report(n.into(), 2)), n % 4, u32::from(n % 5));
            if n % 3 == 0 { vec![first] } else { vec![first, second] }
        })
        .collect()
}

fn ids(page: &Value) -> Vec<u64> {
    let epochs = page["epochs"].as_array().unwrap();
    epochs.iter().map(|epoch| epoch["rdmaSequenceEpochId"].as_u64().unwrap()).collect()
}

// SEQ-7.11, SEQ-7.13, SEQ-7.15
#[tokio::test]
async fn an_epoch_is_its_latest_report_and_what_came_of_it_as_replay_says_it() {
    let site = Site::new("epoch", "", "").start().await;
    let mut agent = site.agent().await;
    let (mut export, mut octets) = Export::new(1);
    octets.extend(export.reports(&[report(1, 1), last(report(1, 2)), report(2, 2), report(3, 1)]));
    let mut flagged = last(report(3, 1));
    flagged.snapshot.flags = flagged.snapshot.flags.with(Flags::GENERATION_UNVERIFIED);
    octets.extend(export.reports(&[flagged, report(4, 1)]));
    agent.write_all(&octets).await.unwrap();
    let live = site.until("/api/v1/epochs", |page| ids(page) == [4, 3, 2, 1]).await;
    assert_eq!(live["next"], Value::Null);
    let told = |page: &Value| -> Vec<[Value; 4]> {
        let epoch = |epoch: &Value| {
            ["outcome", "qualifications", "reason", "reportGaps"].map(|key| epoch[key].clone())
        };
        page["epochs"].as_array().unwrap().iter().map(epoch).collect()
    };
    let other = json!("the latest report id again with other content");
    assert_eq!(
        told(&live),
        [
            [json!("active"), json!([]), Value::Null, json!(0)],
            [json!("invalid"), json!(["noFinal"]), other, json!(0)],
            [json!("active"), json!(["reportGap"]), Value::Null, json!(1)],
            [json!("complete"), json!([]), Value::Null, json!(0)],
        ]
    );
    let one = site.get("/api/v1/epochs/1/1/2").await;
    assert_eq!(one, live["epochs"][2]);
    assert_eq!(one["rdmaSequenceReportId"], 2);
    assert_eq!(one["sourceIPv4Address"], "10.0.0.1");
    assert_eq!(one["session"], 1);

    agent.shutdown().await.unwrap();
    let over = |page: &Value| told(page).iter().all(|[outcome, ..]| outcome != "active");
    let ended = site.until("/api/v1/epochs", over).await;
    let data = site.data();
    site.stop().await;
    let run = replay::Run {
        paths: vec![data.join("archive")],
        format: Format::Json,
        mapping: wire::element::Mapping::default(),
        seed: 1,
    };
    let mut out = Vec::new();
    replay::run(&run, &mut out, &mut Vec::new()).unwrap();
    let mut replayed: Vec<Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    replayed.sort_by_key(|epoch| std::cmp::Reverse(epoch["rdmaSequenceEpochId"].as_u64()));
    let mut epochs = ended["epochs"].as_array().unwrap().clone();
    for epoch in &mut epochs {
        let epoch = epoch.as_object_mut().unwrap();
        assert!(epoch.shift_remove("heardMilliseconds").unwrap().is_number());
        assert!(epoch.shift_remove("updatedMilliseconds").unwrap().is_number());
    }
    assert_eq!(epochs, replayed);
    // Also the order of members, which people read.
    assert_eq!(Value::from(epochs).to_string(), Value::from(replayed).to_string());
}

#[tokio::test]
async fn filters_hold_alone_and_together_and_a_parameter_without_a_value_is_none() {
    let site = Site::new("filters", "", "");
    fill(&site.data(), &twenty());
    let site = site.start().await;
    let all: Vec<u64> = (1..=20).rev().collect();
    for (query, holds) in [
        ("outcome=&source=&limit=&cursor=", &(|_| true) as &dyn Fn(u64) -> bool),
        ("outcome=complete", &|n| n % 3 != 0),
        ("outcome=incomplete", &|n| n % 3 == 0),
        ("outcome=invalid", &|_| false),
        ("source=10.0.0.1", &|n| n % 4 == 1),
        ("source=10.0.0.9", &|_| false),
        ("destination=10.0.1.1&qp=2", &|n| n % 5 == 2),
        ("destination=10.0.1.1&qp=0x000002", &|n| n % 5 == 2),
        ("source=10.0.0.1&qp=2&outcome=complete", &|n| n % 4 == 1 && n % 5 == 2 && n % 3 != 0),
        ("source=2001:DB8::1", &|_| false),
        // A request at 5 and at 6 or 7 milliseconds.
        ("since=7", &|n| n % 3 != 0),
        ("since=8", &|_| false),
        ("until=6", &|_| true),
        ("until=5", &|_| false),
        ("since=0&until=18446744073709551615", &|_| true),
        ("since=9223372036854775808", &|_| false),
        ("until=9223372036854775808", &|_| true),
        ("since=18446744073709551615", &|_| false),
        ("since=1970-01-01T00:00:00.007Z", &|n| n % 3 != 0),
        ("since=1970-01-01T01:00:00.008%2B01:00", &|_| false),
        ("until=1970-01-01T00:00:00.006Z", &|_| true),
        ("until=1970-01-01T00:00:00.005999Z", &|_| false),
        ("since=7&outcome=incomplete", &|_| false),
        ("outcome=comp%6Cete", &|n| n % 3 != 0),
    ] {
        let page = site.get(&format!("/api/v1/epochs?{query}")).await;
        let expected: Vec<u64> = all.iter().copied().filter(|n| holds(*n)).collect();
        assert_eq!(ids(&page), expected, "{query}");
        assert_eq!(page["next"], Value::Null, "{query}");
    }
    site.stop().await;
}

#[tokio::test]
async fn pages_by_cursor_miss_and_repeat_nothing_while_others_are_written() {
    let site = Site::new("pages", "", "http_page_max = 7");
    fill(&site.data(), &twenty());
    let site = site.start().await;
    let first = site.get("/api/v1/epochs?limit=7").await;
    assert_eq!(ids(&first), (14..=20).rev().collect::<Vec<_>>());
    assert_eq!(ids(&site.get("/api/v1/epochs").await), ids(&first), "the page is the limit's");
    let mut agent = site.agent().await;
    agent.write_all(&exported(1, &[report(77, 1)])).await.unwrap();
    site.until("/api/v1/epochs?limit=1", |page| ids(page) == [77]).await;
    let mut cursor = first["next"].as_str().unwrap().to_owned();
    let mut found = Vec::new();
    loop {
        let page = site.get(&format!("/api/v1/epochs?limit=6&cursor={cursor}")).await;
        found.push(ids(&page));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let expected: Vec<Vec<u64>> = vec![(8..=13).rev().collect(), (2..=7).rev().collect(), vec![1]];
    assert_eq!(found, expected);
    // It belongs to its question.
    let other = format!("/api/v1/epochs?outcome=complete&cursor={cursor}");
    let refused = site.ask("GET", &other).await;
    assert_eq!((refused.status, &refused.json()["parameter"]), (400, &json!("cursor")));
    let sessions = site.get("/api/v1/sessions?limit=1").await;
    assert_eq!(sessions["sessions"][0]["session"], 2);
    let next = sessions["next"].as_str().unwrap();
    let sessions = site.get(&format!("/api/v1/sessions?limit=1&cursor={next}")).await;
    assert_eq!((&sessions["sessions"][0]["session"], &sessions["next"]), (&json!(1), &Value::Null));
    site.stop().await;
}

#[tokio::test]
async fn a_bad_parameter_is_refused_with_its_name_its_value_and_what_is_legal() {
    let site = Site::new("parameters", "", "http_page_max = 50").start().await;
    for (target, parameter, detail) in [
        ("epochs?limit=0", "limit", "limit=0, expected 1 to 50"),
        ("epochs?limit=51", "limit", "limit=51, expected 1 to 50"),
        ("epochs?limit=-1", "limit", "limit=-1, expected 1 to 50"),
        ("epochs?limit=%2B1", "limit", "limit=+1, expected 1 to 50"),
        (
            "epochs?outcome=done",
            "outcome",
            "outcome=done, expected active, complete, incomplete or invalid",
        ),
        (
            "epochs?outcome=Complete",
            "outcome",
            "outcome=Complete, expected active, complete, incomplete or invalid",
        ),
        ("epochs?source=10.0.0", "source", "source=10.0.0, expected an IPv4 or IPv6 address"),
        (
            "epochs?destination=host%0Aname",
            "destination",
            "destination=host\\nname, expected an IPv4 or IPv6 address",
        ),
        ("epochs?qp=16777216", "qp", "qp=16777216, expected 0 to 16777215"),
        ("epochs?since=now", "since", format!("since=now, expected {TIME}").as_str()),
        (
            "epochs?until=18446744073709551616",
            "until",
            format!("until=18446744073709551616, expected {TIME}").as_str(),
        ),
        (
            "epochs?until=2026-11-31T00:00:00Z",
            "until",
            format!("until=2026-11-31T00:00:00Z, expected {TIME}").as_str(),
        ),
        (
            "epochs?cursor=1",
            "cursor",
            "cursor=1, expected the next of an answer to the same question",
        ),
        (
            "epochs?outcom=complete",
            "outcom",
            "unknown parameter outcom, the nearest known one is outcome",
        ),
        (
            "epochs?limit=1&limit=1",
            "limit",
            "parameter limit is there more than once, expected once",
        ),
        ("sessions?qp=1", "qp", "unknown parameter qp, expected limit or cursor"),
        ("summary?a", "a", "unknown parameter a, expected none here"),
        ("limits?=1", "", "unknown parameter , expected none here"),
        ("epochs/x/1/1", "session", "session=x, expected 0 to 18446744073709551615"),
        ("epochs/1/4294967296/1", "domain", "domain=4294967296, expected 0 to 4294967295"),
        ("epochs/1/1/-/history", "epochId", "epochId=-, expected 0 to 18446744073709551615"),
    ] {
        let answer = site.ask("GET", &format!("/api/v1/{target}")).await;
        assert_eq!(answer.status, 400, "{target}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let problem = answer.json();
        assert_eq!(problem["detail"], detail, "{target}");
        assert_eq!(problem["parameter"], parameter, "{target}");
    }
    let octets = site.ask("GET", "/api/v1/epochs/1/1/%FF").await;
    assert_eq!(octets.status, 400, "{octets:?}");
    let long = format!("/api/v1/epochs?source={}", "x".repeat(5_000));
    let problem = site.ask("GET", &long).await.json();
    assert!(problem["value"].as_str().unwrap().len() < 100, "{problem}");
    site.stop().await;
}

#[tokio::test]
async fn only_get_and_head_are_answered_and_an_unknown_path_is_told_with_the_nearest() {
    let site = Site::new("methods", "", "");
    fill(&site.data(), &twenty());
    let site = site.start().await;
    for target in ["/api/v1/epochs", "/metrics", "/api/v1/pfc", "/readyz", "/api/v1/epochs/1/1/1"] {
        let (get, head) = (site.ask("GET", target).await, site.ask("HEAD", target).await);
        assert_eq!(get.status, head.status, "{target}");
        assert_eq!(get.header("content-type"), head.header("content-type"), "{target}");
        if target != "/metrics" {
            assert_eq!(get.header("content-length"), head.header("content-length"), "{target}");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            let refused = site.ask(method, target).await;
            assert_eq!(refused.status, 405, "{method} {target}");
            assert_eq!(refused.header("allow"), Some("GET, HEAD"), "{method} {target}");
        }
    }
    for (target, nearest) in [
        ("/api/v1/epoch", "/api/v1/epochs"),
        ("/api/v1/epochs/", "/api/v1/epochs"),
        ("/metric", "/metrics"),
        ("/api/v2/epochs", "/api/v1/epochs"),
    ] {
        let answer = site.ask("GET", target).await;
        assert_eq!(answer.status, 404, "{target}");
        assert_eq!(answer.json()["nearest"], nearest);
    }
    // A guess that is far from what was asked for leads astray.
    for target in ["/home", "/favicon.ico", "/login"] {
        let problem = site.ask("GET", target).await.json();
        assert_eq!(problem.get("nearest"), None, "{problem}");
        let detail = format!("nothing is served at {target}, /api/openapi.json describes what is");
        assert_eq!(problem["detail"], detail);
    }
    let answer = site.ask("GET", "/api/v1/epochs/1/1/21").await;
    assert_eq!(answer.status, 404);
    let expected = "no epoch 21 of observation domain 1 and session 1 is stored";
    assert_eq!(answer.json()["detail"], expected);
    assert_eq!(site.ask("GET", "/api/v1/epochs/1/1/21/history").await.status, 404);
    site.stop().await;
}

// SEQ-7.7
#[tokio::test]
async fn the_points_of_an_epoch_say_where_reports_are_missing() {
    let site = Site::new("history", "", "");
    let gap = vec![report(5, 2), report(5, 3), last(report(5, 7))];
    fill(&site.data(), &[gap, vec![report(6, 1), last(report(6, 2))]]);
    let site = site.start().await;
    let gaps = |history: &Value| -> Vec<Value> {
        let points = history["points"].as_array().unwrap();
        points.iter().map(|point| point["reportGaps"].clone()).collect()
    };
    let history = site.get("/api/v1/epochs/1/1/5/history").await;
    // Whether anything was kept in front of the first is not known.
    // Nor, where ids are left out, whether these were missing or came together with the last.
    assert_eq!(gaps(&history), [Value::Null, json!(0), Value::Null]);
    let third = &history["points"][2];
    assert_eq!(third["requestPacketTotalCount"], 7);
    assert_eq!(third["flags"], json!(["finalEpoch"]));
    let received = |n: usize| history["points"][n]["receivedMilliseconds"].as_u64().unwrap();
    assert_eq!(received(2), received(0) + 2);
    assert_eq!(gaps(&site.get("/api/v1/epochs/1/1/6/history").await), [json!(0), json!(0)]);
    site.stop().await;
}

// SEQ-7.11, SEQ-7.15
#[tokio::test]
async fn sessions_and_the_whole_are_counted_with_refusals_and_own_drops_apart() {
    let site = Site::new("sessions", "", "");
    fill(&site.data(), &twenty());
    let site = site.start().await;
    let mut agent = site.agent().await;
    let octets = exported(1, &[report(9, 1), last(report(9, 2)), report(3, 1)]);
    agent.write_all(&octets).await.unwrap();
    let sessions =
        site.until("/api/v1/sessions", |s| s["sessions"][0]["refused"]["orphan"] == 1).await;
    let [open, closed] = [0, 1].map(|n| &sessions["sessions"][n]);
    assert_eq!((&open["state"], &closed["state"]), (&json!("open"), &json!("closed")));
    assert_eq!(open["peer"], "agent.example");
    assert!(open["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{open}");
    assert_eq!(open["observationDomainIds"], json!([1]));
    assert_eq!((&open["closedMilliseconds"], &open["reason"]), (&Value::Null, &Value::Null));
    assert_eq!(open["epochs"], json!({"active": 0, "complete": 1, "incomplete": 0, "invalid": 0}));
    assert_eq!(closed["session"], FILLED.0);
    assert_eq!(closed["reason"], "collector restarted");
    let counts = json!({"active": 0, "complete": 14, "incomplete": 6, "invalid": 0});
    assert_eq!(closed["epochs"], counts);
    assert_eq!(closed["refused"], json!({"stale": 3}));
    assert_eq!((&closed["collectorDrops"], &open["collectorDrops"]), (&json!(2), &json!(0)));
    let summary = site.get("/api/v1/summary").await;
    let counts = json!({"active": 0, "complete": 15, "incomplete": 6, "invalid": 0});
    assert_eq!(summary["epochs"], counts);
    assert_eq!(summary["sessions"], json!({"open": 1, "closed": 1}));
    assert_eq!(summary["refused"], json!({"orphan": 1, "stale": 3}));
    assert_eq!(summary["collectorDrops"], 2);
    assert_eq!(summary["intake"], json!({"state": "running", "reason": null}));
    site.stop().await;
}

// SEQ-7.10
#[tokio::test]
async fn every_bound_is_told_with_its_value_default_unit_and_meaning() {
    let site = Site::new("limits", "", "epochs_max = 5\nhttp_page_max = 9").start().await;
    let answer = site.get("/api/v1/limits").await;
    let limits = answer["limits"].as_array().unwrap();
    let names: BTreeSet<_> = limits.iter().map(|limit| limit["name"].as_str().unwrap()).collect();
    let expected: Vec<String> = rocescope::config::CollectorLimits::TABLE
        .iter()
        .map(|limit| format!("limits.{}", limit.name))
        .collect();
    assert_eq!(names, expected.iter().map(String::as_str).collect());
    let find = |name: &str| limits.iter().find(|limit| limit["name"] == name).unwrap();
    let epochs = find("limits.epochs_max");
    assert_eq!((&epochs["value"], &epochs["default"]), (&json!(5), &json!(1_000_000)));
    assert_eq!(epochs["unit"], "count");
    assert_eq!(find("limits.pfc_link_gbps_max")["unit"], "gigabitsPerSecond");
    assert_eq!(find("limits.pfc_history_interval_s")["unit"], "seconds");
    assert_eq!(find("limits.archive_octets_max")["unit"], "octets");
    assert_eq!(find("limits.http_query_timeout_ms")["unit"], "milliseconds");
    assert_eq!(find("limits.handshake_timeout_s")["unit"], "seconds");
    assert_eq!(find("limits.results_days_max")["unit"], "days");
    assert!(epochs["bounds"].as_str().unwrap().contains("epochs"), "{epochs}");
    assert!(answer["retention"]["databaseOctets"].as_u64().unwrap() > 0);
    assert_eq!(answer["retention"]["resultsAgeMaxMilliseconds"], 90_u64 * 86_400_000);
    site.stop().await;
}

#[tokio::test]
async fn numbers_beyond_what_every_reader_keeps_are_strings() {
    let site = Site::new("numbers", "", "");
    let (mut at, mut beyond) = (last(report(EXACT_MAX, 1)), last(report(u64::MAX, 1)));
    at.snapshot.counts.requests = EXACT_MAX;
    beyond.snapshot.counts.requests = EXACT_MAX + 1;
    beyond.snapshot.end_ms = u64::MAX;
    fill(&site.data(), &[vec![at], vec![beyond]]);
    let site = site.start().await;
    let page = site.get("/api/v1/epochs").await;
    let [beyond, at] = [0, 1].map(|n| &page["epochs"][n]);
    assert_eq!(at["rdmaSequenceEpochId"], EXACT_MAX);
    assert_eq!(at["requestPacketTotalCount"], EXACT_MAX);
    assert_eq!(beyond["rdmaSequenceEpochId"], "18446744073709551615");
    assert_eq!(beyond["requestPacketTotalCount"], "9007199254740992");
    let one = site.get("/api/v1/epochs/1/1/18446744073709551615").await;
    assert_eq!(one, *beyond);
    let late = site.get("/api/v1/epochs?since=9223372036854775808").await;
    assert_eq!(late["epochs"].as_array().unwrap().len(), 1);
    site.stop().await;
}

#[tokio::test]
async fn one_connection_is_good_for_many_requests() {
    let site = Site::new("many", "", "").start().await;
    let mut stream = site.tcp().await;
    for target in ["/healthz", "/api/v1/epochs", "/nothing", "/api/v1/epochs?limit=0", "/readyz"] {
        let answer = exchange(&mut stream, &request("GET", target, &[])).await.unwrap();
        described("GET", target, &answer);
    }
    site.stop().await;
}

// SEQ-10.3
#[tokio::test]
async fn the_dashboard_asks_only_what_is_served_and_runs_nothing_but_its_own_script() {
    let site = Site::new("dashboard", "", "").start().await;
    let page = site.ask("GET", "/").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    let script = site.ask("GET", "/dashboard.js").await;
    let (html, script) = (page.text(), script.text());
    // What the policy forbids would not work.
    assert!(!html.contains("<script>") && !html.contains("style="));
    let handler = |rest: &str| rest.trim_start_matches(char::is_alphabetic).starts_with('=');
    assert!(!html.split(" on").skip(1).any(handler));
    for named in ["/dashboard.css", "/dashboard.js"] {
        assert!(html.contains(&format!("\"{named}\"")), "{named}");
        assert_eq!(site.ask("GET", named).await.status, 200);
    }
    // Text goes in as text alone, never as markup: addresses of peers and reasons are others' words.
    assert!(!script.contains("innerHTML") && !script.contains("insertAdjacentHTML"));
    for target in ["/api/v1/summary", "/api/v1/sessions?limit=20", "/api/v1/pfc?limit=256"] {
        assert!(script.contains(target), "{target}");
        site.get(target).await;
    }
    // Every member that it shows is one that is described.
    let epoch = &rocescope::serve::openapi()["components"]["schemas"]["Epoch"]["properties"];
    let names = script.split(|c: char| !c.is_ascii_alphanumeric());
    let members = names.filter(|name| {
        ["PsnTotalCount", "PsnCount", "PacketTotalCount"].iter().any(|end| name.ends_with(end))
    });
    let mut count = 0;
    for name in members {
        assert!(!epoch[name].is_null(), "{name}");
        count += 1;
    }
    assert!(count >= 8);
    site.stop().await;
}
