//! A sample of the text format of Prometheus with its labels.

use prometheus::proto::{Counter, Gauge, LabelPair, Metric};

use crate::collector::Sort;

/// A number with labels.
pub(crate) fn metric(
    sort: Sort,
    value: f64,
    labels: impl IntoIterator<Item = (&'static str, String)>,
) -> Metric {
    let mut metric = Metric::default();
    match sort {
        Sort::Counter => {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        }
        Sort::Gauge => {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
    }
    let pairs = labels.into_iter().map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.into());
        pair.set_value(value);
        pair
    });
    metric.set_label(pairs.collect());
    metric
}
