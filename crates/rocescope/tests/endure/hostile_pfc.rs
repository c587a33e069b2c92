//! A hostile exporter of PFC counters, written in another language and without any of the program's
//! code, against a collector process: each record gets its reason, memory has a bound, and another
//! session goes on beside it.

use std::collections::BTreeMap;

use observe::pfc::Direction;
use observe::pfc::interval::Interval;
use rocescope::meter::Format;
use rocescope::replay;
use serde_json::{Value, json};
use store::{PfcFilter, PfcRow};

use crate::site::{Site, attacked};

/// More than a collector with these limits needs, and far less than what is thrown at it.
const MEMORY_MAX: u64 = 256 << 20;

/// A counter as the script writes it.
fn told(row: &PfcRow) -> Value {
    let counter = &row.state.counter;
    let reading = &counter.latest.reading;
    json!([
        reading.scope.interface,
        reading.scope.direction == Direction::Received,
        reading.scope.priority.get(),
        reading.total,
        counter.readings,
        matches!(counter.interval(), Interval::Exact(_)),
    ])
}

fn all_counters(site: &Site) -> BTreeMap<u64, Vec<Value>> {
    let reader = site.reader();
    let mut filter = PfcFilter { limit: 10_000, ..PfcFilter::default() };
    let mut all = BTreeMap::<u64, Vec<Value>>::new();
    loop {
        let page = reader.pfc_counters(&filter).expect("counters");
        for row in &page.rows {
            all.entry(row.state.session.0).or_default().push(told(row));
        }
        filter.cursor = page.next;
        if page.next.is_none() {
            break;
        }
    }
    all.values_mut().for_each(|counters| counters.reverse());
    all
}

// PFC-id.1, PFC-id.3, PFC-rec.1, PFC-exp.1, PFC-sem.2, PFC-op.1, SEQ-7.10
#[test]
fn a_hostile_exporter_of_pfc_counters_gets_reasons_and_bounds_and_another_goes_on() {
    let site = Site::new("hostile_pfc");
    site.configure(
        "1",
        "inactivity_timeout_s = 3600",
        "pfc_counters_max = 2000\npfc_counters_all_max = 3000\npfc_link_gbps_max = 400",
    );
    let collector = site.collector();
    let (cases, sessions) = attacked(&site, &collector, "hostile_pfc.py");
    assert_eq!(sessions.len(), cases.len());
    let (mut counters, reader) = (all_counters(&site), site.reader());
    let (mut wrong, mut kept, mut refusals) = (Vec::new(), 0, 0);
    for (case, session) in cases.iter().zip(&sessions) {
        let found = counters.remove(&session.session.0).unwrap_or_default();
        let mut refused = BTreeMap::<String, u64>::new();
        for row in reader.refusals(session.session).expect("refusals") {
            *refused.entry(row.kind).or_default() += row.records;
        }
        kept += found.len() as u64;
        refusals += refused.values().sum::<u64>();
        let right = match case["count"].as_u64() {
            Some(count) => found.len() as u64 == count,
            None => Value::from(found.clone()) == case["counters"],
        };
        if !right || json!(refused) != case["refused"] {
            let some = found.iter().take(5).collect::<Vec<_>>();
            wrong.push(format!("{case:.300}\n  but {} {some:?} {refused:?}", found.len()));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), collector.program.said());
    let memory = collector.program.memory_peak();
    assert!(memory < MEMORY_MAX, "{memory} octets");
    let said = collector.stop();
    // One line for each thing, whatever the number of times, and words for each.
    assert!(said.lines().count() < 30 * cases.len(), "{} lines", said.lines().count());
    for words in [
        "pfcPriority 8, expected 0 to 7",
        "no room for another counter",
        "its PFC records are refused",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // What was refused for want of room that others had is refused again.
    let run = replay::Run {
        paths: vec![site.data().join("archive")],
        format: Format::Json,
        mapping: wire::element::Mapping::default(),
        seed: 1,
    };
    let summary = replay::run(&run, &mut Vec::new(), &mut Vec::new()).expect("an archive");
    assert_eq!((summary.pfc_counters, summary.refused), (kept, refusals));
}
