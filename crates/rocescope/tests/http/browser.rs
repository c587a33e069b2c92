//! The dashboard in a real browser: it shows what the collector says, and nothing where the collector
//! says that nothing is known.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use observe::outcome::BESIDE;
use observe::pfc::Direction;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::beside::{AT, PLACES, flow};
use crate::device::{Device, row};
use crate::devices::{CERTIFICATE, of_devices};
use crate::export::{Export, report};
use crate::packages::{python, repository};
use crate::pfc::{Agent, scope};
use crate::queues::{entries, example, received, store};
use crate::site::Site;

/// Asks a browser, which Debian calls `chromium`, for each of these in the page, and gives the answers.
fn browse(url: &str, questions: &[&str]) -> Vec<Value> {
    let mut browser = Command::new(python())
        .arg(repository().join("tests/python/browser.py"))
        .args(["chromium", url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = questions.iter().map(|question| format!("{question}\n")).collect();
    browser.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = browser.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of a table as text, once it has so many.
fn rows(table: &str, count: usize) -> String {
    format!(
        "(rows => rows.length === {count} && rows.map(row => row.innerText))\
         ([...document.querySelectorAll('#{table} tbody tr')])"
    )
}

fn columns(row: &Value) -> Vec<&str> {
    row.as_str().unwrap().split('\t').collect()
}

// SEQ-7.16, PFC-cor.1, PFC-sem.2, QUE-con.2
#[tokio::test(flavor = "multi_thread")]
async fn the_dashboard_shows_what_is_known_and_says_what_is_not() {
    let site = Site::new("browser", PLACES, "pfc_link_gbps_max = 400\npfc_silent_after_s = 3600");
    let client = site.authority.client("collector.example", 9);
    site.write("client.pem", &client.pem);
    site.write("client.key", &client.key);
    // One that tells, and one that is not there.
    let device = Device::new(&site.authority).await;
    device.hold(&row(1, 1));
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = gone.local_addr().unwrap().port();
    drop(gone);
    let lines =
        of_devices(&[("leaf-2", device.port, CERTIFICATE), ("leaf-3", nobody, CERTIFICATE)]);
    site.configure(
        &format!("{PLACES}\n{lines}"),
        "pfc_link_gbps_max = 400\npfc_silent_after_s = 3600",
    );
    let mut kept = store(&site);
    let unknown = json!("capture-gap");
    for row in [
        example(1, &[("queue-id", json!("q<b>1</b>"))]),
        example(
            2,
            &[
                ("quality", json!("unknown")),
                ("unknown-reason", unknown),
                ("gated-backlog-ns", Value::Null),
                ("backlog-ns", Value::Null),
                ("absolute-error-ns", Value::Null),
                ("sample-period-ns", Value::Null),
            ],
        ),
    ] {
        kept.apply(&received("leaf-1", 1_800_000_000_000, entries(&row))).unwrap();
    }
    drop(kept);
    let site = site.start().await;
    let mut agent = site.agent().await;
    let (mut export, mut octets) = Export::new(1);
    octets.extend(export.reports(&[flow(1, 2, [10, 20]), flow(4, 9, [10, 20]), report(7, 1)]));
    agent.write_all(&octets).await.unwrap();
    let mut counters = site.agent().await;
    let (mut export, mut octets) = Agent::new();
    let [rx, tx] = [Direction::Received, Direction::Transmitted].map(|way| scope(12, way, 3));
    for (seconds, more) in [(5, 0), (25, 123_456)] {
        let time_ms = AT + seconds * 1000;
        octets.extend(
            export.readings(&[(rx, time_ms, 40 + more, Some(77)), (tx, time_ms, 50 + more, None)]),
        );
    }
    counters.write_all(&octets).await.unwrap();
    // Another session, which ends.
    let mut ended = site.agent().await;
    let (mut export, mut octets) = Agent::new();
    octets.extend(export.readings(&[(scope(14, Direction::Received, 3), AT, 7, None)]));
    ended.write_all(&octets).await.unwrap();
    let came = |page: &Value| page["pfc"].as_array().unwrap().len() == 3;
    site.until("/api/v1/pfc", came).await;
    ended.shutdown().await.unwrap();
    let is_closed = |session: &Value| session["state"] == "closed";
    let closed = |page: &Value| page["sessions"].as_array().unwrap().iter().any(is_closed);
    site.until("/api/v1/sessions", closed).await;
    let all = |summary: &Value| summary["pfcCounters"] == 3 && summary["epochs"]["complete"] == 2;
    site.until("/api/v1/summary", all).await;
    let came = |all: &Value| all["queues"].as_array().unwrap().len() == 3;
    site.until("/api/v1/queues", came).await;
    let tried = |all: &Value| all["devices"][1]["problem"].is_string();
    site.until("/api/v1/queues/devices", tried).await;

    let url = format!("http://{}/", site.started().http_address().unwrap());
    let click = |row: &str, until: &str| {
        format!(
            "([...document.querySelectorAll('#epochs tbody tr')].find(row => \
             row.innerText.startsWith('complete\\t{row}')).click(), {until})"
        )
    };
    let shown = "document.getElementById('beside-shown').innerText";
    let questions = [
        rows("epochs", 3),
        rows("pfc", 3),
        rows("queues", 3),
        rows("devices", 3),
        "[...document.querySelectorAll('#queues tr.old, #devices tr.old')]\
         .map(row => row.cells[0].innerText)"
            .to_owned(),
        click("10.0.0.1 > 10.0.0.2", &rows("beside", 2)),
        shown.to_owned(),
        click("10.0.0.1 > 10.0.0.9", &format!("{shown}.startsWith('Unknown') && {shown}")),
        "document.getElementById('beside').hidden".to_owned(),
        "(document.querySelector('[name=qp]').value = 'seventeen', \
         document.querySelector('#filter button').click(), true)"
            .to_owned(),
        "document.getElementById('problem').innerText".to_owned(),
    ];
    let questions: Vec<&str> = questions.iter().map(String::as_str).collect();
    let answers = tokio::task::spawn_blocking({
        let (url, questions) = (url, questions.iter().map(ToString::to_string).collect::<Vec<_>>());
        move || browse(&url, &questions.iter().map(String::as_str).collect::<Vec<_>>())
    })
    .await
    .unwrap();
    let [epochs, pfc, queues, devices, old, beside, meaning, apart, hidden, _, problem, complaints] =
        &answers[..]
    else {
        panic!("{answers:?}");
    };

    let outcomes: Vec<&str> =
        epochs.as_array().unwrap().iter().map(|row| columns(row)[0]).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "complete").count(), 2);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "active").count(), 1);

    let of = |direction: &str, rows: &Value| {
        let rows: Vec<Vec<String>> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| columns(row).into_iter().map(ToOwned::to_owned).collect())
            .filter(|row: &Vec<String>| row.iter().any(|text| text.contains(direction)))
            .collect();
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.concat()
    };
    let received = of("12, received", pfc);
    assert_eq!(received[1..6], ["2", "1", "9", "leaf1", "Ethernet12"]);
    assert_eq!(&received[6..10], ["12, received", "3", "123\u{202f}496", "123\u{202f}456 frames"]);
    assert_eq!(received[10], "2027-01-15 08:00:25.000Z");
    assert!(received[11].ends_with(" s ago"), "{received:?}");
    let transmitted = of("transmitted", pfc);
    assert_eq!(transmitted[8], "123\u{202f}506");
    assert_eq!(transmitted[9], "unknown: the counter instance is not known");
    let over = of("14, received", pfc);
    assert_eq!((&*over[1], &*over[8], &*over[11]), ("3", "7", "session ended"));

    let received = of("received", beside);
    assert_eq!(&received[..5], ["leaf1", "Ethernet12", "received", "3", "123\u{202f}456 frames"]);
    assert_eq!(received[5..], ["2027-01-15 08:00:05.000Z", "2027-01-15 08:00:25.000Z", "yes"]);
    assert!(of("transmitted", beside)[4].starts_with("unknown: "));
    assert_eq!(meaning, BESIDE);
    assert_eq!(
        apart,
        "Unknown: at which interface of which device the flow was seen is not known."
    );
    assert_eq!(hidden, true);

    // What names say is text and nothing else; what is not known has no number.
    let marked: Vec<&Value> =
        queues.as_array().unwrap().iter().filter(|row| row.to_string().contains("<b>")).collect();
    assert_eq!(columns(marked[0])[2], "q<b>1</b>");
    let unknown: Vec<Vec<&str>> = queues
        .as_array()
        .unwrap()
        .iter()
        .map(columns)
        .filter(|row| row[6].starts_with("unknown"))
        .collect();
    assert_eq!(unknown.len(), 1, "{queues}");
    assert_eq!(unknown[0][6], "unknown: capture-gap");
    assert_eq!(unknown[0][8..11], ["not known"; 3]);

    // A row whose device is asked no more, or is not reached, does not look as if it were current.
    let of = |table: &Value, device: &str| -> Vec<String> {
        let rows = table.as_array().unwrap().iter().map(columns);
        let mut rows = rows.filter(|row| row[0] == device);
        rows.next().unwrap().into_iter().map(ToOwned::to_owned).collect()
    };
    assert!(of(queues, "leaf-1")[3].ends_with("; not asked any more"), "{queues}");
    let current = &of(queues, "leaf-2")[3];
    assert!(current.ends_with(" s ago"), "{current}");
    assert_eq!(&of(devices, "leaf-1")[1..4], ["not asked any more", "", ""]);
    assert_eq!(of(devices, "leaf-2")[1], "subscribed");
    let absent = of(devices, "leaf-3");
    assert!(absent[1] == "absent" && !absent[3].is_empty(), "{absent:?}");
    let mut old: Vec<&str> = old.as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    old.sort_unstable();
    assert_eq!(old, ["leaf-1", "leaf-1", "leaf-1", "leaf-3"]);

    assert!(problem.as_str().unwrap().contains("seventeen"), "{problem}");
    // The one refused question, and nothing that the policy of the page forbids.
    let complaints = complaints.as_array().unwrap();
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].as_str().unwrap().contains("400"), "{complaints:?}");
    fs::remove_dir_all(&site.directory).ok();
    site.stop().await;
}
