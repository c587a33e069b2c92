//! Counters of PFC frames without a reading, as the control socket and `/metrics` name them.
// PFC-op.1

use prometheus::proto::{MetricFamily, MetricType};
use serde_json::{Value, json};

use super::observer::Observer;
use super::pfc::Shelf;
use crate::collector::Sort;
use crate::serve::labels;

/// What a source does not give now.
pub(super) fn status(shelf: &Shelf) -> Value {
    let lacking = shelf.lacking();
    let shown = lacking.counters.iter().take(shelf.shown_max);
    let counters: Vec<Value> = shown
        .map(|missing| {
            json!({
                "port": *missing.port,
                "direction": missing.direction.word(),
                "pfcPriority": missing.priority,
                "reason": missing.absent.name(),
                "meaning": missing.absent.words(),
            })
        })
        .collect();
    json!({
        "source": shelf.name,
        "failing": lacking.failing,
        "notShown": lacking.counters.len() - counters.len(),
        "withoutReading": counters,
    })
}

/// Each counter without a reading is 1; one that has a reading is not there.
pub(super) fn metrics(observer: &Observer) -> Option<MetricFamily> {
    let mut family = MetricFamily::default();
    family.set_name("rocescope_agent_pfc_counter_missing".into());
    family.set_help("1 for each PFC counter that has no reading now, with the reason".into());
    family.set_field_type(MetricType::GAUGE);
    for shelf in &observer.shelves {
        for missing in shelf.lacking().counters.iter().take(shelf.shown_max) {
            family.mut_metric().push(labels::metric(
                Sort::Gauge,
                1.0,
                [
                    ("source", shelf.name.clone()),
                    ("port", missing.port.to_string()),
                    ("direction", missing.direction.word().to_owned()),
                    ("priority", missing.priority.to_string()),
                    ("reason", missing.absent.name().to_owned()),
                ],
            ));
        }
    }
    (!family.get_metric().is_empty()).then_some(family)
}
