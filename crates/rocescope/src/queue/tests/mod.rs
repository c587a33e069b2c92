//! Rows in and out, events in, and the cases of `tests/cases`.

mod board;
mod cases;
mod documents;
mod events;
mod feed;
mod ns3;
mod records;

use std::path::PathBuf;

use super::check::{Checked, check};
use crate::meter::Format;

fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(name)
}

/// Findings of a text, one a line.
fn findings(text: &str) -> (Checked, String) {
    let mut out = Vec::new();
    let checked = check(text.as_bytes(), 100, Format::Table, &mut out).unwrap();
    (checked, String::from_utf8(out).unwrap())
}

/// A document with these entries of one interface.
fn document(entries: &[&str]) -> String {
    let queue = entries.join(",");
    format!(
        r#"{{"ietf-interfaces:interfaces":{{"interface":[{{"name":"Ethernet1/1","ietf-pfc-queue-telemetry:pfc-queue-telemetry":{{"queue":[{queue}]}}}}]}}}}"#
    )
}

const ROW: &str = r#"{"queue-id":"q3","epoch-id":"31c38fe2-f97e-4a88-a0a7-bae9ed5d4131","interval-id":"2","start-offset-ns":"100","duration-ns":"100","mapped-priority":[3],"quality":"event-based","gated-backlog-ns":"18","backlog-ns":"64","absolute-error-ns":"2"}"#;
