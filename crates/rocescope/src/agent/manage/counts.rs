//! What is counted of RESTCONF and NETCONF, for `/metrics` of the agent.
//!
//! Of subscriptions only those that there are now are counted with what they did not get; what was
//! sent counts on when they have ended.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use manage::tree::Node;

use super::Managed;
use crate::collector::admission::LineQuota;
use crate::collector::{Row, Sort};

/// The ways in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// HTTPS.
    Restconf,
    /// SSH.
    Netconf,
}

impl Way {
    const ALL: [Self; 2] = [Self::Restconf, Self::Netconf];

    const fn word(self) -> &'static str {
        match self {
            Self::Restconf => "restconf",
            Self::Netconf => "netconf",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Restconf => "RESTCONF",
            Self::Netconf => "NETCONF",
        }
    }
}

/// Statuses of answers that are told apart; every other counts as the last.
const STATUSES: [(u16, &str); 17] = [
    (200, "200"),
    (204, "204"),
    (304, "304"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (408, "408"),
    (409, "409"),
    (413, "413"),
    (415, "415"),
    (500, "500"),
    (501, "501"),
    (503, "503"),
    (0, "other"),
];

/// The numbers.
#[derive(Debug, Default)]
pub(super) struct Counts {
    answers: [AtomicU64; STATUSES.len()],
    connections: [AtomicU64; 2],
    sent: [AtomicU64; 2],
    refused: [AtomicU64; 2],
    streams: AtomicU64,
    lines: LineQuota,
}

impl Counts {
    /// RESTCONF has answered.
    pub fn answered(&self, status: u16) {
        let place = STATUSES.iter().position(|(known, _)| *known == status);
        if let Some(count) = self.answers.get(place.unwrap_or(STATUSES.len() - 1)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// A connection was taken.
    pub fn connected(&self, way: Way) {
        self.connections[way as usize].fetch_add(1, Relaxed);
    }

    /// A notification was sent.
    pub fn sent(&self, way: Way) {
        self.sent[way as usize].fetch_add(1, Relaxed);
    }

    /// A stream of events is read; it is as long as this lives.
    pub fn stream(&self) -> Stream<'_> {
        self.streams.fetch_add(1, Relaxed);
        Stream(self)
    }

    /// Somebody is not let in. It is told where few are.
    // QUE-sec.1
    pub fn refused(&self, way: Way, from: impl Display, why: &str, since: Duration) {
        self.refused[way as usize].fetch_add(1, Relaxed);
        if self.lines.takes(since.as_secs()) {
            tracing::warn!("{}: {from}: login refused: {why}", way.name());
        }
    }
}

/// A stream that is read.
pub(super) struct Stream<'a>(&'a Counts);

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Relaxed);
    }
}

impl Managed {
    /// The numbers as they are now. Not for asynchronous code: it may wait for subscriptions.
    // SEQ-10.3
    pub fn counted(&self) -> Vec<Row> {
        let (facts, counts) = (&self.facts, &self.counts);
        let row = |name, about, sort, label, value| Row { name, about, sort, label, value };
        let total = |name, about, value: u64| row(name, about, Sort::Counter, None, value);
        let now = |name, about, value: u64| row(name, about, Sort::Gauge, None, value);
        let sessions = facts.sessions();
        let statistics = facts.statistics().clone();
        let all = sessions.values().fold(statistics.ended, |sum, shown| sum.and(shown.counts));
        let mut rows = vec![
            now("netconf_sessions", "Sessions of NETCONF now", number(sessions.len())),
            total(
                "netconf_sessions_total",
                "Sessions of NETCONF that began",
                statistics.sessions.into(),
            ),
            total(
                "netconf_sessions_dropped_total",
                "Sessions of NETCONF that ended without close-session",
                statistics.dropped.into(),
            ),
            total(
                "netconf_bad_hellos_total",
                "Clients of NETCONF that began with what is no hello",
                statistics.bad_hellos.into(),
            ),
            total("netconf_requests_total", "Requests of NETCONF", all.requests.into()),
            total(
                "netconf_bad_requests_total",
                "Messages of NETCONF that were no request",
                all.bad.into(),
            ),
            total("netconf_errors_total", "Replies of NETCONF with an error", all.errors.into()),
            total(
                "manage_operations_denied_total",
                "Operations that somebody might not call",
                facts.denied.load(Relaxed).into(),
            ),
            total(
                "manage_notifications_denied_total",
                "Subscriptions that ended because their user may not receive them any more",
                facts.denied_notifications.load(Relaxed).into(),
            ),
            now(
                "restconf_streams",
                "Streams of events that are read over RESTCONF now",
                counts.streams.load(Relaxed),
            ),
        ];
        drop(sessions);
        rows.extend(STATUSES.iter().zip(&counts.answers).map(|((_, word), count)| {
            let about = "Answers of RESTCONF by their status";
            let label = Some(("status", *word));
            row("restconf_answers_total", about, Sort::Counter, label, count.load(Relaxed))
        }));
        for way in Way::ALL {
            let of = |name, about, counts: &[AtomicU64; 2]| {
                let label = Some(("protocol", way.word()));
                row(name, about, Sort::Counter, label, counts[way as usize].load(Relaxed))
            };
            rows.push(of(
                "manage_connections_total",
                "Connections that were taken",
                &counts.connections,
            ));
            rows.push(of(
                "manage_logins_refused_total",
                "Requests of RESTCONF and connections of NETCONF that were not let in",
                &counts.refused,
            ));
            rows.push(of("manage_notifications_sent_total", "Notifications sent", &counts.sent));
        }
        rows.extend(self.of_subscriptions());
        rows
    }

    /// Of the subscriptions that there are, as their own nodes say.
    fn of_subscriptions(&self) -> Vec<Row> {
        let top = self.schema().top("ietf-subscribed-notifications", "subscriptions");
        let Some(node) = top.and_then(|definition| self.hub.top(definition)) else {
            return Vec::new();
        };
        let receivers: Vec<&Node> = node
            .children()
            .iter()
            .filter_map(|entry| entry.child("receivers"))
            .flat_map(Node::children)
            .collect();
        let excluded = receivers
            .iter()
            .filter_map(|receiver| receiver.leaf("excluded-event-records")?.parse::<u64>().ok())
            .fold(0, u64::saturating_add);
        let state = |word: &'static str| Row {
            name: "manage_subscriptions",
            about: "Subscriptions now, by whether their receiver gets what there is",
            sort: Sort::Gauge,
            label: Some(("state", word)),
            value: number(receivers.iter().filter(|one| one.leaf("state") == Some(word)).count()),
        };
        let excluded = Row {
            name: "manage_notifications_excluded",
            about: "Notifications that the subscriptions that there are now did not get",
            sort: Sort::Gauge,
            label: None,
            value: excluded,
        };
        vec![state("active"), state("suspended"), excluded]
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
