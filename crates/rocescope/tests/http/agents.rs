//! The whole way: events of a source, the agent that measures and serves them, the collector that
//! gathers them, and who reads there.

use std::process::Stdio;
use std::time::Duration;

use rocescope::queue::measure::measure;
use rocescope::queue::{Settings, fresh_epochs};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::client::PATIENCE;
use crate::site::Site;

/// The length of an interval, in nanoseconds.
const MS: u64 = 1_000_000;

/// A port that was free a moment ago: an agent that starts again has to have the same one.
fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A site with the configuration of an agent whose queues the collector asks for.
fn site(name: &str) -> (Site, u16) {
    let site = Site::new(name, "", "");
    let client = site.authority.client("collector.example", 9);
    site.write("client.pem", &client.pem);
    site.write("client.key", &client.key);
    let port = port();
    site.write(
        "agent.toml",
        &format!(
            "[observation]\ndomain = 1\n[agent]\ncontrol_socket = \"c.sock\"\n\
             [[queue.source]]\nname = \"asic\"\nevents_socket = \"q.sock\"\ninterval_ms = 1\n\
             [[manage.login]]\nuser = \"collector\"\nname = \"collector.example\"\n\
             [[manage.group]]\nname = \"readers\"\nusers = [\"collector\"]\n\
             [[manage.rules]]\nname = \"readers\"\ngroups = [\"readers\"]\n\
             [[manage.rules.rule]]\naction = \"permit\"\n\
             [manage.restconf]\nlisten = \"127.0.0.1:{port}\"\ncertificate = \"collector.pem\"\n\
             key = \"collector.key\"\nauthority = \"ca.pem\"\n"
        ),
    );
    site.configure(
        &format!(
            "[[queues.device]]\nname = \"leaf-1\"\nurl = \"https://127.0.0.1:{port}\"\n\
             server_name = \"localhost\"\nauthority = \"ca.pem\"\ncertificate = \"client.pem\"\n\
             key = \"client.key\"\n"
        ),
        "",
    );
    (site, port)
}

/// An agent as a program.
async fn agent(site: &Site) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocescope"));
    command.arg("agent").arg("--config").arg(site.directory.join("agent.toml"));
    let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let serving = async {
        while let Some(line) = log.next_line().await.unwrap() {
            if line.contains("serves RESTCONF") {
                return;
            }
        }
        panic!("the agent ended");
    };
    timeout(PATIENCE, serving).await.expect("an agent that serves");
    // Nobody reads on; the pipe has to stay open.
    tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
    child
}

async fn source(site: &Site) -> UnixStream {
    let connecting = async {
        loop {
            match UnixStream::connect(site.directory.join("q.sock")).await {
                Ok(stream) => return stream,
                Err(_) => sleep(Duration::from_millis(5)).await,
            }
        }
    };
    timeout(PATIENCE, connecting).await.expect("a socket")
}

/// Waits until the agent has completed so many rows.
async fn until_measured(site: &Site, rows: u64) {
    let socket = site.directory.join("c.sock");
    let asking = async {
        loop {
            let mut command = Command::new(env!("CARGO_BIN_EXE_rocescope"));
            command.args(["agent", "ctl", "--socket"]).arg(&socket).arg("status");
            let said = command.output().await.unwrap().stdout;
            let last = String::from_utf8(said).unwrap();
            let last = last.lines().last().and_then(|line| serde_json::from_str(line).ok());
            if last.is_some_and(|status: Value| status["queueRows"] == rows) {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, asking).await.expect("rows");
}

fn line(seq: u64, t: u64, rest: &str) -> String {
    format!("{{\"seq\":{seq},\"t\":{t},\"interface\":\"Ethernet1/1\",\"queue\":\"q,3\",{rest}}}\n")
}

/// Events from the first: traffic waits all the time, and the gate is closed in the second half of
/// each interval. Enough of them to complete so many intervals.
fn events(intervals: std::ops::Range<u64>) -> String {
    let mut text = String::new();
    if intervals.start == 0 {
        text += &line(1, 0, r#""event":"map","priorities":[3],"method":"head","maxError":100"#);
        text += &line(2, 0, r#""event":"backlog","present":true"#);
        text += &line(3, 0, r#""event":"gate","priority":3,"closed":false"#);
    }
    for interval in intervals {
        let seq = 4 + 2 * interval;
        let start = interval * MS;
        text += &line(seq, start + MS / 2, r#""event":"gate","priority":3,"closed":true"#);
        text += &line(seq + 1, start + MS + 200, r#""event":"gate","priority":3,"closed":false"#);
    }
    text
}

async fn until_accepted(site: &Site, rows: u64) {
    let holds = |all: &Value| all["devices"][0]["verdicts"]["accepted"] == rows;
    site.until("/api/v1/queues/devices", holds).await;
}

async fn subscribed(site: &Site) {
    let holds = |all: &Value| all["devices"][0]["connection"] == "subscribed";
    site.until("/api/v1/queues/devices", holds).await;
}

/// What `queue measure` makes of the same events, without epochs.
fn truth(events: &str, rows: usize) -> Vec<Value> {
    let settings = Settings { interval_ns: MS, ..Settings::default() };
    let mut out = Vec::new();
    measure(events.as_bytes(), settings, fresh_epochs().unwrap(), &mut out).unwrap();
    let documents = String::from_utf8(out).unwrap();
    let row = |line: &str| {
        let document: Value = serde_json::from_str(line).unwrap();
        let queue = "/ietf-interfaces:interfaces/interface/0\
                     /ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue/0";
        let row = document.pointer(queue).unwrap();
        let number = |name: &str| row[name].as_str().unwrap().parse::<u64>().unwrap();
        json!({
            "intervalId": number("interval-id"),
            "startOffsetNs": number("start-offset-ns"),
            "durationNs": number("duration-ns"),
            "gatedBacklogNs": number("gated-backlog-ns"),
            "backlogNs": number("backlog-ns"),
            "absoluteErrorNs": number("absolute-error-ns"),
        })
    };
    documents.lines().take(rows).map(row).collect()
}

/// The same of what is stored of an epoch, the oldest row first.
async fn stored(site: &Site, epoch: &Value) -> Vec<Value> {
    let target = format!("/api/v1/queues/rows?limit=1000&epoch={}", epoch.as_str().unwrap());
    let page = site.get(&target).await;
    let mut rows = page["rows"].as_array().unwrap().clone();
    rows.reverse();
    rows.iter()
        .map(|row| {
            let mut told = serde_json::Map::new();
            for name in [
                "intervalId",
                "startOffsetNs",
                "durationNs",
                "gatedBacklogNs",
                "backlogNs",
                "absoluteErrorNs",
            ] {
                told.insert(name.into(), row[name].clone());
            }
            told.into()
        })
        .collect()
}

// QUE-pub.1, QUE-pub.2, QUE-con.1, QUE-con.2, QUE-sec.1
#[tokio::test]
async fn what_an_agent_measures_is_kept_as_it_was_and_nothing_is_made_up_over_its_end() {
    let (site, _) = site("agent_queues");
    let mut first = agent(&site).await;
    let site = site.start().await;
    subscribed(&site).await;
    let mut feeder = source(&site).await;
    feeder.write_all(events(0..8).as_bytes()).await.unwrap();
    until_accepted(&site, 8).await;
    let queue = site.get("/api/v1/queues").await["queues"][0].clone();
    assert_eq!((&queue["interface"], &queue["queueId"]), (&json!("Ethernet1/1"), &json!("q,3")));
    let epoch = queue["latest"]["epochId"].clone();
    assert_eq!(stored(&site, &epoch).await, truth(&events(0..9), 8));
    // The collector is away while three intervals pass, of which the agent holds the last.
    let target = "/api/v1/queues";
    let site = site.pause().await;
    feeder.write_all(events(8..11).as_bytes()).await.unwrap();
    until_measured(&site, 11).await;
    let site = site.start().await;
    until_accepted(&site, 9).await;
    // What the collector was told of while it asked is told again by the subscription.
    let repeated = |all: &Value| all["queues"][0]["epoch"]["repeated"] == 1;
    site.until(target, repeated).await;
    let known = site.get(target).await["queues"][0]["epoch"].clone();
    assert_eq!((&known["missingIntervals"], &known["gapNs"]), (&json!(2), &json!(2 * MS)));
    // The agent is killed; what it had not told ends nothing.
    first.kill().await.unwrap();
    let gone = |all: &Value| all["devices"][0]["connection"] == "absent";
    site.until("/api/v1/queues/devices", gone).await;
    assert_eq!(site.get(target).await["queues"][0]["epoch"], known);
    let mut second = agent(&site).await;
    subscribed(&site).await;
    let mut feeder = source(&site).await;
    feeder.write_all(events(0..4).as_bytes()).await.unwrap();
    until_accepted(&site, 13).await;
    let groups = site.get("/api/v1/queues/aggregate").await["groups"].clone();
    let [new, old] = &groups.as_array().unwrap()[..] else { panic!("{groups}") };
    assert_ne!(new["epochId"], old["epochId"]);
    assert_eq!(stored(&site, &new["epochId"]).await, truth(&events(0..5), 4));
    let told = |group: &Value| {
        ["firstInterval", "lastInterval", "durationNs", "missingNs"]
            .map(|name| group[name].as_u64())
    };
    assert_eq!(told(old), [Some(1), Some(11), Some(11 * MS), Some(2 * MS)]);
    assert_eq!(told(new), [Some(1), Some(4), Some(4 * MS), Some(0)]);
    assert_eq!((&old["coverage"], &new["coverage"]), (&json!("partial"), &json!("complete")));
    let verdicts = site.get("/api/v1/queues/devices").await["devices"][0]["verdicts"].clone();
    let words: Vec<_> = verdicts.as_object().unwrap().keys().collect();
    assert_eq!(words, ["accepted", "repeated"], "{verdicts}");
    second.kill().await.unwrap();
    site.stop().await;
}
