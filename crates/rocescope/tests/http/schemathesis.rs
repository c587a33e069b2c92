//! Requests that schemathesis makes out of the description, and what it finds in the answers.

use std::fs;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::export::{last, report};
use crate::packages::schemathesis;
use crate::pfc::{Agent, scope};
use crate::queues::{entries, example, now_ms, received, store};
use crate::site::{Site, fill};
use observe::pfc::Direction;

#[tokio::test]
async fn every_answer_is_as_described_whatever_is_asked() {
    let site = Site::new("schemathesis", "", "");
    fill(
        &site.data(),
        &(1..=5).map(|n| vec![report(n, 1), last(report(n, 2))]).collect::<Vec<_>>(),
    );
    let mut stored = store(&site);
    for interval in 1..=5 {
        let row = entries(&example(interval, &[("mapped-priority", json!([3]))]));
        stored.apply(&received("leaf-1", now_ms(), row)).unwrap();
    }
    drop(stored);
    let site = site.start().await;
    // The octets of a session of its own, behind that which is stored.
    let mut agent = site.agent().await;
    let (mut exporter, mut octets) = Agent::new();
    octets.extend(exporter.readings(&[(scope(1, Direction::Received, 3), 1000, 7, None)]));
    agent.write_all(&octets).await.unwrap();
    site.until("/api/v1/pfc", |page| page["pfc"].as_array().unwrap().len() == 1).await;
    let scratch = site.directory.join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    let url = format!("http://{}", site.started().http_address().unwrap());
    let description = format!("{url}/api/openapi.json");
    let command = schemathesis("collector.toml", &scratch, &[&description]);
    let output = tokio::process::Command::from(command).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("19 selected / 19 total"), "{said}");
    site.stop().await;
}
