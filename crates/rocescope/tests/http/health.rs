//! Numbers for machines: `/metrics`, `/healthz`, `/readyz`.

use std::collections::{BTreeMap, BTreeSet};

use rocescope::collector::{Metrics, Sort};
use rocescope::serve::Counts;
use tokio::io::AsyncWriteExt;

use crate::export::{Kept, exported, last, report};
use crate::site::Site;

/// The text format of Prometheus, version 0.0.4, read by its own rules: type by family, and the
/// value of each name with its labels.
fn read(text: &str) -> (BTreeMap<&str, &str>, BTreeMap<&str, f64>) {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let (mut types, mut values, mut helped) = (BTreeMap::new(), BTreeMap::new(), None);
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty(), "{line}");
            helped = Some(name);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, sort) = rest.split_once(' ').unwrap();
            assert_eq!(helped, Some(name), "a type without help: {line}");
            assert_eq!(sort == "counter", name.ends_with("_total"), "{line}");
            assert!(types.insert(name, sort).is_none(), "twice: {line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            assert_eq!(helped, Some(name), "a value outside its family: {line}");
            let labels = labels.strip_suffix('}').unwrap();
            for label in labels.split(',').filter(|label| !label.is_empty()) {
                let (name, value) = label.split_once('=').unwrap();
                assert!(is_name(name), "{line}");
                assert!(
                    value.starts_with('"') && value.ends_with('"') && value.len() > 2,
                    "{line}"
                );
            }
            assert!(values.insert(series, value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    (types, values)
}

// SEQ-7.15, SEQ-10.3
#[tokio::test]
async fn metrics_have_every_number_of_the_collector_and_of_the_interface() {
    let site = Site::new("metrics", "", "").start().await;
    let mut agent = site.agent().await;
    let octets = exported(1, &[report(2, 1), last(report(2, 2)), report(1, 1)]);
    agent.write_all(&octets).await.unwrap();
    site.until("/api/v1/sessions", |s| s["sessions"][0]["refused"]["orphan"] == 1).await;
    let answer = site.ask("GET", "/metrics").await;
    let kind = answer.header("content-type").unwrap();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    let (types, values) = read(answer.text());
    let value = |name: &str| values[format!("rocescope_collector_{name}").as_str()];
    assert_eq!(value("reports_accepted_total"), 2.0);
    assert_eq!(value("records_refused_total{reason=\"orphan\"}"), 1.0);
    assert_eq!(value("records_refused_total{reason=\"stale\"}"), 0.0);
    assert_eq!(value("sessions"), 1.0);
    assert!(value("http_requests_total{class=\"2xx\"}") >= 1.0);
    let rows = [Metrics::default().rows(), Counts::default().rows()].concat();
    let expected: BTreeSet<String> =
        rows.iter().map(|row| format!("rocescope_collector_{}", row.name)).collect();
    assert_eq!(types.keys().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), expected);
    assert_eq!(values.len(), rows.len());
    for row in &rows {
        let sort = if row.sort == Sort::Counter { "counter" } else { "gauge" };
        assert_eq!(types[format!("rocescope_collector_{}", row.name).as_str()], sort);
    }
    site.stop().await;
}

#[tokio::test]
async fn a_collector_is_alive_and_ready_until_its_store_keeps_nothing() {
    let kept = Kept::default();
    let site = Site::new("ready", "", "");
    std::fs::create_dir_all(site.data()).unwrap();
    let site = site.start_with(kept.clone()).await;
    let ready = site.ask("GET", "/readyz").await;
    assert_eq!((ready.status, ready.text()), (200, "ready\n"));
    kept.fill(true);
    let mut agent = site.agent().await;
    agent.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    let mut answer = site.ask("GET", "/readyz").await;
    while answer.status == 200 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        answer = site.ask("GET", "/readyz").await;
    }
    let reason = "intake stands still, the disk is full: no room\n";
    assert_eq!((answer.status, answer.text()), (503, reason));
    let alive = site.ask("GET", "/healthz").await;
    assert_eq!((alive.status, alive.text()), (200, "alive\n"));
    kept.fill(false);
    while site.ask("GET", "/readyz").await.status != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    site.stop().await;
}

#[tokio::test]
async fn a_store_whose_directory_is_gone_is_not_ready() {
    let site = Site::new("gone", "", "").start_with(Kept::default()).await;
    let answer = site.ask("GET", "/readyz").await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("data: No such file"), "{answer:?}");
    site.stop().await;
}
