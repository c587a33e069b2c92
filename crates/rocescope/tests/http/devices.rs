//! Devices that are subscribed to and asked: what is kept of what they say, what is missing, and what
//! becomes of those that say nonsense.

use serde_json::{Value, json};

use crate::device::{Device, Instead, Manner, row};
use crate::site::Site;

/// A collector's configuration of devices, each with a few lines of its own.
pub fn of_devices(devices: &[(&str, u16, &str)]) -> String {
    let device = |(name, port, lines): &(&str, u16, &str)| {
        format!(
            "[[queues.device]]\nname = \"{name}\"\nurl = \"https://127.0.0.1:{port}\"\n\
             server_name = \"localhost\"\nauthority = \"ca.pem\"\n{lines}\n"
        )
    };
    devices.iter().map(device).collect()
}

pub const CERTIFICATE: &str = "certificate = \"client.pem\"\nkey = \"client.key\"";

/// A collector that is not started yet, with a certificate for devices.
fn site(name: &str) -> Site {
    let site = Site::new(name, "", "");
    let client = site.authority.client("collector.example", 9);
    site.write("client.pem", &client.pem);
    site.write("client.key", &client.key);
    site.write("token", "s3cret\n");
    site
}

async fn one(site: &Site, holds: impl Fn(&Value) -> bool) -> Value {
    let found = site.until("/api/v1/queues/devices", |all| holds(&all["devices"][0])).await;
    found["devices"][0].clone()
}

fn connection(word: &str) -> impl Fn(&Value) -> bool {
    move |device| device["connection"] == word
}

async fn until_accepted(site: &Site, rows: u64) -> Value {
    one(site, |device| device["verdicts"]["accepted"] == rows).await
}

// QUE-con.1, QUE-con.2, QUE-pub.2
#[tokio::test]
async fn what_a_device_tells_is_kept_and_what_passed_while_it_was_gone_is_missing() {
    let site = site("device_tells");
    let mut device = Device::new(&site.authority).await;
    device.hold(&row(1, 1));
    site.configure(&of_devices(&[("leaf-1", device.port, CERTIFICATE)]), "");
    let site = site.start().await;
    one(&site, connection("subscribed")).await;
    // The first row came twice: as an answer, and to begin the subscription with.
    one(&site, |device| device["verdicts"] == json!({"accepted": 1, "repeated": 1})).await;
    let posted = device.asked().into_iter().find(|asked| asked.method == "POST").unwrap();
    assert!(posted.body.contains("\"sync-on-start\":true"), "{posted:?}");
    for interval in 2..=4 {
        device.complete(&row(1, interval));
    }
    until_accepted(&site, 4).await;
    // It goes away. That ends nothing, and intervals 5 and 6 are nobody's.
    device.kill().await;
    let gone = one(&site, connection("absent")).await;
    assert!(gone["problem"].is_string(), "{gone}");
    let queue = site.get("/api/v1/queues").await["queues"][0].clone();
    assert_eq!(queue["epoch"]["lastInterval"], 4);
    device.hold(&row(1, 7));
    device.start().await;
    one(&site, connection("subscribed")).await;
    device.complete(&row(1, 8));
    until_accepted(&site, 6).await;
    let queue = site.get("/api/v1/queues").await["queues"][0].clone();
    let known = &queue["epoch"];
    assert_eq!((&known["missingIntervals"], &known["gapNs"]), (&json!(2), &json!(200)));
    let group = site.get("/api/v1/queues/aggregate").await["groups"][0].clone();
    assert_eq!((&group["coverage"], &group["missingNs"]), (&json!("partial"), &json!(200)));
    assert_eq!((&group["gatedBacklogNs"], &group["knownDurationNs"]), (&json!(60), &json!(600)));
    // It begins again: another epoch, which is joined to nothing.
    device.kill().await;
    device.hold(&row(2, 1));
    device.start().await;
    until_accepted(&site, 7).await;
    let groups = site.get("/api/v1/queues/aggregate").await["groups"].clone();
    let spans: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["firstInterval"].as_u64(), group["lastInterval"].as_u64()))
        .collect();
    assert_eq!(spans, [(Some(1), Some(1)), (Some(1), Some(8))]);
    site.stop().await;
}

// QUE-con.1
#[tokio::test]
async fn what_was_accepted_stands_when_the_collector_begins_again() {
    let site = site("device_restart");
    let device = Device::new(&site.authority).await;
    device.hold(&row(1, 1));
    site.configure(&of_devices(&[("leaf-1", device.port, CERTIFICATE)]), "");
    let site = site.start().await;
    one(&site, connection("subscribed")).await;
    device.complete(&row(1, 2));
    until_accepted(&site, 2).await;
    let mut other = row(1, 2);
    other["gated-backlog-ns"] = json!("11");
    device.hold(&other);
    let site = site.restart().await;
    one(&site, connection("subscribed")).await;
    one(&site, |device| device["verdicts"]["conflicting"] == 2).await;
    device.complete(&row(1, 2));
    // Once as it began to be subscribed to, once now.
    one(&site, |device| device["verdicts"]["repeated"] == 2).await;
    let queue = site.get("/api/v1/queues").await["queues"][0].clone();
    assert_eq!(
        (&queue["latest"]["gatedBacklogNs"], &queue["epoch"]["accepted"]),
        (&json!(10), &json!(2))
    );
    site.stop().await;
}

// QUE-con.1, QUE-sec.1
#[tokio::test]
async fn a_device_without_subscriptions_is_asked_and_only_for_what_is_new() {
    let site = site("device_asked");
    let device = Device::new(&site.authority).await;
    device.manner(Manner { subscriptions: false, ..Manner::default() });
    device.hold(&row(1, 1));
    let lines = "token_file = \"token\"\npoll_interval_s = 1";
    site.configure(&of_devices(&[("leaf-1", device.port, lines)]), "");
    let site = site.start().await;
    let polled = one(&site, connection("polled")).await;
    let problem = "no subscription, so it is asked: status 501, operation-not-supported";
    assert_eq!(polled["problem"], problem);
    until_accepted(&site, 1).await;
    // Nothing has changed, and nothing is counted as a row that came again.
    while device.asked().iter().filter(|a| a.head.contains("if-none-match: \"1\"")).count() < 2 {
        tokio::task::yield_now().await;
    }
    device.hold(&row(1, 5));
    let device_now = until_accepted(&site, 2).await;
    assert_eq!(device_now["verdicts"], json!({"accepted": 2}));
    assert_eq!(site.get("/api/v1/queues").await["queues"][0]["epoch"]["missingIntervals"], 3);
    let text = site.ask("GET", "/metrics").await.text().to_owned();
    let line = "queue_device_connection{device=\"leaf-1\",connection=\"polled\"} 1";
    assert!(text.contains(line), "{text}");
    // The token goes with every request, and nothing is asked for but rows.
    for asked in device.asked() {
        assert!(asked.head.contains("authorization: bearer s3cret"), "{asked:?}");
        assert!(asked.method == "GET" || asked.target.contains("establish-subscription"));
    }
    site.stop().await;
}

// QUE-con.1
#[tokio::test]
async fn a_subscription_that_is_suspended_incomplete_or_over_is_told_and_made_up_for() {
    let site = site("device_notices");
    let device = Device::new(&site.authority).await;
    device.hold(&row(1, 1));
    site.configure(&of_devices(&[("leaf-1", device.port, CERTIFICATE)]), "");
    let site = site.start().await;
    one(&site, connection("subscribed")).await;
    let suspended = "ietf-subscribed-notifications:subscription-suspended";
    device.notify(suspended, json!({"id": 7, "reason": "insufficient-resources"}));
    let problem = "the subscription is suspended: insufficient-resources";
    one(&site, |device| device["problem"] == problem).await;
    // What came meanwhile is asked for, as far as it is there.
    device.hold(&row(1, 3));
    device.notify("ietf-subscribed-notifications:subscription-resumed", json!({"id": 7}));
    until_accepted(&site, 2).await;
    one(&site, |device| device["problem"].is_null()).await;
    device.hold(&row(1, 4));
    let incomplete = json!({"id": 7, "incomplete-update": [null]});
    device.notify("ietf-yang-push:push-change-update", incomplete);
    until_accepted(&site, 3).await;
    // A row that is taken away says nothing.
    let edit = json!({"edit-id": "1", "operation": "delete", "target":
        "/ietf-interfaces:interfaces/interface=Ethernet1%2F1\
         /ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue=q%2F3"});
    let changes = json!({"yang-patch": {"patch-id": "2", "edit": [edit]}});
    device.notify("ietf-yang-push:push-change-update", json!({"datastore-changes": changes}));
    device.hold(&row(1, 5));
    let over = json!({"id": 7, "reason": "no-such-subscription"});
    device.notify("ietf-subscribed-notifications:subscription-terminated", over);
    until_accepted(&site, 4).await;
    let queue = site.get("/api/v1/queues").await["queues"][0].clone();
    assert_eq!((&queue["latest"]["intervalId"], &queue["epochs"]), (&json!(5), &json!(1)));
    assert_eq!(queue["epoch"]["missingIntervals"], 1);
    site.stop().await;
}

// QUE-sec.1, QUE-con.1
#[tokio::test]
async fn devices_that_say_nonsense_are_told_apart_and_hold_up_nobody() {
    let site = site("device_nonsense");
    let elsewhere = "<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'>\
                     <Link rel='restconf' href='https://192.0.2.1/restconf'/></XRD>";
    let many: Vec<Value> = (0..200).map(|_| json!({})).collect();
    let many = json!({"ietf-interfaces:interfaces": {"interface": [{
        "name": "e", "ietf-pfc-queue-telemetry:pfc-queue-telemetry": {"queue": many}}]}});
    let data = |instead| Manner { instead: Some(instead), ..Manner::default() };
    let manners = [
        (
            "elsewhere",
            Manner { host_meta: elsewhere.into(), ..Manner::default() },
            "/.well-known/host-meta: \"https://192.0.2.1/restconf\", expected a path on 127.0.0.1",
        ),
        (
            "no-xrd",
            Manner { host_meta: "{}".into(), ..Manner::default() },
            "/.well-known/host-meta: ",
        ),
        (
            "endless",
            data(Instead::Endless),
            "an answer of more than 65536 octets, limits.queue_octets_max",
        ),
        ("no-json", data(Instead::Body("<rows/>".into())), "what it sends is no JSON: "),
        ("denied", data(Instead::Status(403)), "status 403, expected 200"),
        ("moved", data(Instead::Status(302)), "status 302, expected 200"),
        ("silent", data(Instead::Silence), "no answer within 1 s"),
    ];
    let good = Device::new(&site.authority).await;
    good.hold(&row(1, 1));
    let bad = Device::new(&site.authority).await;
    bad.manner(data(Instead::Body(many.to_string())));
    let empty = Device::new(&site.authority).await;
    empty.manner(data(Instead::Status(404)));
    let mut devices = vec![("many", bad), ("empty", empty)];
    for (name, manner, _) in &manners {
        let device = Device::new(&site.authority).await;
        device.manner(manner.clone());
        devices.push((name, device));
    }
    let mut all = vec![("good", good.port, CERTIFICATE)];
    all.extend(devices.iter().map(|(name, device)| (*name, device.port, CERTIFICATE)));
    // Nobody there, and somebody whose certificate is from another authority.
    let stranger = Device::new(&crate::export::Authority::new()).await;
    all.push(("stranger", stranger.port, CERTIFICATE));
    all.push(("nobody", 1, CERTIFICATE));
    let limits = "queue_octets_max = 65536\nqueue_request_timeout_s = 1\nqueue_queues_max = 150";
    site.configure(&of_devices(&all), limits);
    let site = site.start().await;
    one(&site, connection("subscribed")).await;
    let problem = |all: &Value, name: &str| {
        let all = all["devices"].as_array().unwrap();
        all.iter().find(|device| device["device"] == name).unwrap()["problem"].clone()
    };
    for (name, _, expected) in &manners {
        let holds = |all: &Value| problem(all, name).as_str().is_some_and(|p| p.contains(expected));
        site.until("/api/v1/queues/devices", holds).await;
    }
    for (name, expected) in [("stranger", "TLS: "), ("nobody", "no connection: ")] {
        let holds = |all: &Value| problem(all, name).as_str().is_some_and(|p| p.contains(expected));
        site.until("/api/v1/queues/devices", holds).await;
    }
    // Entries that say of no queue whose they are: as many as a device may have are looked at.
    let many = |all: &Value| all["devices"][1]["verdicts"]["invalid"].clone();
    let found = site.until("/api/v1/queues/devices", |all| many(all).is_number()).await;
    assert_eq!(found["devices"][1]["connection"], "subscribed", "{found}");
    assert!(many(&found).as_u64().unwrap() % 150 == 0, "{found}");
    // Without an interface there is no row, which is nothing wrong.
    let found = site.get("/api/v1/queues/devices").await;
    assert_eq!(found["devices"][2]["connection"], "subscribed", "{found}");
    good.complete(&row(1, 2));
    until_accepted(&site, 2).await;
    site.stop().await;
}

// QUE-con.1
#[tokio::test]
async fn a_collector_without_ipfix_gathers_rows() {
    let site = site("device_alone");
    let device = Device::new(&site.authority).await;
    device.hold(&row(1, 1));
    let devices = of_devices(&[("leaf-1", device.port, CERTIFICATE)]);
    site.write("collector.toml", &format!("{devices}[http]\nlisten = \"127.0.0.1:0\"\n"));
    let site = site.start().await;
    assert_eq!(site.started().ipfix_address(), None);
    until_accepted(&site, 1).await;
    site.get("/api/v1/limits").await;
    assert_eq!(site.get("/api/v1/summary").await["intake"]["state"], "running");
    site.started().reload(&site.config()).unwrap();
    site.stop().await;
}
