//! A hostile exporter, written in another language and without any of the program's code, against
//! a collector process: it survives, its verdicts are right, and its memory has a bound.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::site::{Seen, Site, attacked};

/// More than a collector with these limits needs, and far less than what is thrown at it.
const MEMORY_MAX: u64 = 256 << 20;

// SEQ-7.1, SEQ-7.2, SEQ-7.3, SEQ-7.4, SEQ-7.5, SEQ-7.6, SEQ-7.8, SEQ-7.9, SEQ-7.10, SEQ-7.12,
// SEQ-6.9, SEQ-6.10, SEQ-10.1, SEQ-10.3
#[test]
fn a_hostile_exporter_gets_the_right_verdicts_and_nothing_else() {
    let site = Site::new("hostile");
    site.configure("1, 2", "inactivity_timeout_s = 3600", "epochs_max = 5000");
    let collector = site.collector();
    let (cases, sessions) = attacked(&site, &collector, "hostile.py");
    assert_eq!(sessions.len(), cases.len(), "what was no TLS made no session");
    let mut epochs = BTreeMap::<u64, Vec<Value>>::new();
    for seen in site.seen() {
        let Seen { session, domain, epoch, report, missing, outcome, counts, .. } = seen;
        let line = serde_json::json!([domain, epoch, report, missing, outcome, counts[6]]);
        epochs.entry(session).or_default().push(line);
    }
    let reader = site.reader();
    let mut wrong = Vec::new();
    for (case, session) in cases.iter().zip(&sessions) {
        let found = Value::from(epochs.remove(&session.session.0).unwrap_or_default());
        let mut refused = BTreeMap::<String, u64>::new();
        let rows = reader.refusals(session.session).expect("refusals");
        // However many domains an exporter makes up, what is noted of them has a bound.
        if rows.len() >= 1_000 {
            wrong.push(format!("{}: {} rows of refusals", case["case"], rows.len()));
        }
        for row in rows {
            *refused.entry(row.kind).or_default() += row.records;
        }
        let refused = serde_json::json!(refused);
        let reason = session.reason.clone().unwrap_or_default();
        // What noise comes to is only known to be no epoch.
        let noise = case["case"] == "noise";
        let right = found == case["epochs"]
            && (noise || refused == case["refused"])
            && reason.contains(case["reason"].as_str().expect("words"));
        if !right {
            let some = found.as_array().expect("a list").iter().take(5).collect::<Vec<_>>();
            wrong.push(format!("{case:.300}\n  but {some:?} {refused} {reason:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), collector.program.said());
    let memory = collector.program.memory_peak();
    assert!(memory < MEMORY_MAX, "{memory} octets");
    let said = collector.stop();
    // One line for each thing, whatever the number of times.
    assert!(said.lines().count() < 30 * cases.len(), "{} lines", said.lines().count());
    let (replayed, warnings) = site.replayed();
    assert_eq!(warnings, "");
    assert_eq!(replayed, site.seen());
}
