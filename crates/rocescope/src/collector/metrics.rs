//! What the collector counts, in numbers that can be read at any time.
//!
//! Counters only grow until the program ends; the few that say how many there are now are marked.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::intake::Counts;
use super::refusal::Refusal;
use super::sink::SinkError;

/// Everything that is counted over all sessions.
// SEQ-7.15, SEQ-10.3
#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections taken from the listener.
    pub connections: AtomicU64,
    /// Connections that the listener could not give.
    pub accept_errors: AtomicU64,
    /// Connections that began with something other than TLS.
    pub not_tls: AtomicU64,
    /// Handshakes that failed.
    pub handshakes_failed: AtomicU64,
    /// Handshakes that took too long.
    pub handshakes_late: AtomicU64,
    /// Handshakes that had to make room for others.
    pub handshakes_evicted: AtomicU64,
    /// Peers with a good certificate who are not admitted.
    pub peers_denied: AtomicU64,
    /// Sessions beyond the limits.
    pub sessions_refused: AtomicU64,
    /// Sessions that began.
    pub sessions_opened: AtomicU64,
    /// Sessions that ended.
    pub sessions_closed: AtomicU64,
    /// Sessions that ended because what came was not IPFIX, or no longer.
    pub sessions_broken: AtomicU64,
    /// How often a session was not read because it sent more messages than the limit.
    pub sessions_paced: AtomicU64,
    /// Epochs that are kept in memory now.
    pub epochs: AtomicU64,
    /// Changes that wait for the store now.
    pub changes_waiting: AtomicU64,
    /// Changes that were kept.
    pub changes_kept: AtomicU64,
    /// Changes that were given up when the program ended while the store failed.
    pub changes_dropped: AtomicU64,
    /// Attempts of the store that failed.
    pub store_failures: AtomicU64,
    /// Reloads that were taken.
    pub reloads: AtomicU64,
    /// Reloads that were refused, the old configuration going on.
    pub reloads_refused: AtomicU64,
    counts: Mutex<Counts>,
    store: Mutex<Option<SinkError>>,
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It only grows.
    Counter,
    /// It is as it is now.
    Gauge,
}

/// A number with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, without a prefix; several rows may have it, with different labels.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Whether it only grows.
    pub sort: Sort,
    /// A label and its value.
    pub label: Option<(&'static str, &'static str)>,
    /// The number.
    pub value: u64,
}

impl Metrics {
    /// Adds one.
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Adds what a session has counted since `before`.
    pub(super) fn add(&self, before: &Counts, after: &Counts) {
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for ((all, before), after) in
            fields(&mut all).into_iter().zip(numbers(before)).zip(numbers(after))
        {
            *all += after - before;
        }
        for ((all, before), after) in all.refused.iter_mut().zip(before.refused).zip(after.refused)
        {
            *all += after - before;
        }
    }

    /// What all sessions have counted together.
    pub fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says how the store is: why it keeps nothing, if it does not.
    pub(super) fn set_store(&self, problem: Option<SinkError>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Why the store keeps nothing now and intake stands still, if it does.
    pub fn store(&self) -> Option<SinkError> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All numbers, those of one name together.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.of_program();
        let counts = self.counts();
        for ((name, about), value) in COUNTS.into_iter().zip(numbers(&counts)) {
            rows.push(Row { name, about, sort: Sort::Counter, label: None, value });
        }
        rows.extend(Refusal::ALL.map(|refusal| Row {
            name: "records_refused_total",
            about: "Records that changed nothing, or made their epoch invalid, by reason",
            sort: Sort::Counter,
            label: Some(("reason", refusal.word())),
            value: counts.refused(refusal),
        }));
        rows
    }

    fn of_program(&self) -> Vec<Row> {
        use Sort::{Counter, Gauge};
        let (opened, closed) =
            (self.sessions_opened.load(Relaxed), self.sessions_closed.load(Relaxed));
        let counters = [
            ("connections_total", "Connections taken", &self.connections),
            (
                "accept_errors_total",
                "Connections that the listener could not give",
                &self.accept_errors,
            ),
            (
                "connections_not_tls_total",
                "Connections that began with something other than TLS",
                &self.not_tls,
            ),
            ("handshakes_failed_total", "TLS handshakes that failed", &self.handshakes_failed),
            ("handshakes_late_total", "TLS handshakes that took too long", &self.handshakes_late),
            (
                "handshakes_evicted_total",
                "TLS handshakes that made room for others",
                &self.handshakes_evicted,
            ),
            (
                "peers_denied_total",
                "Peers with a good certificate that are not admitted",
                &self.peers_denied,
            ),
            (
                "sessions_refused_total",
                "Transport Sessions beyond the limits",
                &self.sessions_refused,
            ),
            ("sessions_opened_total", "Transport Sessions that began", &self.sessions_opened),
            ("sessions_closed_total", "Transport Sessions that ended", &self.sessions_closed),
            (
                "sessions_broken_total",
                "Transport Sessions that ended because what came was not IPFIX",
                &self.sessions_broken,
            ),
            (
                "sessions_paced_total",
                "Times that a session was not read because of its message rate",
                &self.sessions_paced,
            ),
            ("changes_kept_total", "Changes that the store has taken", &self.changes_kept),
            (
                "changes_dropped_total",
                "Changes given up at the end because the store failed",
                &self.changes_dropped,
            ),
            ("store_failures_total", "Attempts of the store that failed", &self.store_failures),
            ("reloads_total", "Reloads of the configuration that were taken", &self.reloads),
            (
                "reloads_refused_total",
                "Reloads that were refused, the old one going on",
                &self.reloads_refused,
            ),
        ];
        let gauges = [
            ("epochs", "Epochs kept in memory", self.epochs.load(Relaxed)),
            (
                "changes_waiting",
                "Changes that wait for the store",
                self.changes_waiting.load(Relaxed),
            ),
            ("sessions", "Transport Sessions", opened.saturating_sub(closed)),
            (
                "store_failing",
                "1 while the store keeps nothing and intake stands still",
                u64::from(self.store().is_some()),
            ),
        ];
        let row = |(name, about, value), sort| Row { name, about, sort, label: None, value };
        let counters = counters
            .into_iter()
            .map(|(name, about, counter)| row((name, about, counter.load(Relaxed)), Counter));
        counters.chain(gauges.into_iter().map(|gauge| row(gauge, Gauge))).collect()
    }
}

/// What sessions count but refusals, in the order of [`numbers`].
const COUNTS: [(&str, &str); 14] = [
    ("octets_total", "Octets received"),
    ("messages_total", "IPFIX messages received"),
    ("messages_malformed_total", "Messages discarded because their lengths make no sense"),
    ("messages_domains_full_total", "Messages discarded for want of room for their domain"),
    ("messages_foreign_total", "Messages of domains that their peer may not report for"),
    ("sequence_gaps_total", "Messages whose sequence number does not follow"),
    ("undecodable_sets_total", "Data Sets whose template is not known"),
    ("unknown_sets_total", "Sets with an id that has no meaning"),
    ("template_faults_total", "Templates and type records refused or ignored"),
    ("records_other_total", "Records that are no reports and no readings of PFC counters"),
    ("reports_accepted_total", "Reports accepted"),
    ("reports_repeated_total", "Reports that repeat the latest one"),
    ("pfc_readings_accepted_total", "Readings of PFC counters accepted"),
    ("pfc_readings_repeated_total", "Readings of PFC counters that repeat the latest one"),
];

fn numbers(counts: &Counts) -> [u64; 14] {
    fields(&mut counts.clone()).map(|number| *number)
}

fn fields(counts: &mut Counts) -> [&mut u64; 14] {
    let Counts {
        octets,
        messages,
        malformed,
        domains_full,
        foreign,
        sequence_gaps,
        undecodable_sets,
        unknown_sets,
        template_faults,
        others,
        accepted,
        repeated,
        pfc_accepted,
        pfc_repeated,
        refused: _,
    } = counts;
    [
        octets,
        messages,
        malformed,
        domains_full,
        foreign,
        sequence_gaps,
        undecodable_sets,
        unknown_sets,
        template_faults,
        others,
        accepted,
        repeated,
        pfc_accepted,
        pfc_repeated,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sessions_count_is_added_once() {
        let metrics = Metrics::default();
        let mut counts = Counts { octets: 5, accepted: 2, ..Counts::default() };
        counts.refused[Refusal::Orphan.index()] = 3;
        metrics.add(&Counts::default(), &counts);
        let mut more = Counts { octets: 7, repeated: 1, ..counts.clone() };
        more.refused[Refusal::Stale.index()] = 1;
        metrics.add(&counts, &more);
        assert_eq!(metrics.counts(), more);
        let value = |name, label| {
            let rows = metrics.rows();
            let is = |row: &&Row| row.name == name && row.label == label;
            rows.iter().find(is).map(|row| row.value)
        };
        assert_eq!(value("octets_total", None), Some(7));
        assert_eq!(value("reports_repeated_total", None), Some(1));
        assert_eq!(value("records_refused_total", Some(("reason", "orphan"))), Some(3));
    }

    #[test]
    fn every_row_has_a_name_and_labels_of_its_own() {
        let rows = Metrics::default().rows();
        let mut names: Vec<_> = rows.iter().map(|row| (row.name, row.label)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }
}
