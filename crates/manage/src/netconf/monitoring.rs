//! `ietf-netconf-monitoring:netconf-state` (RFC 6022): what all sessions together are.

use super::session::{Counts, capabilities};
use crate::schema::Schema;
use crate::tree::{Builder, Node};

/// A session as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its number.
    pub id: u32,
    /// Its user.
    pub user: Box<str>,
    /// Where it comes from.
    pub host: Box<str>,
    /// When it began, as `yang:date-and-time`.
    pub login: Box<str>,
    /// What happened in it.
    pub counts: Counts,
}

/// What happened in all sessions since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// When the server started, as `yang:date-and-time`.
    pub start: Box<str>,
    /// Hellos that were none.
    pub bad_hellos: u32,
    /// Sessions that began.
    pub sessions: u32,
    /// Sessions that ended without `close-session`.
    pub dropped: u32,
    /// What happened in sessions that have ended.
    pub ended: Counts,
}

/// The tree.
pub fn node(schema: &Schema, sessions: &[Shown], statistics: &Statistics) -> Option<Node> {
    let definition = schema.top("ietf-netconf-monitoring", "netconf-state")?;
    let all = sessions.iter().fold(statistics.ended, |sum, session| sum.and(session.counts));
    let node = Builder::new(definition)
        .inner("capabilities", |list| {
            capabilities(schema).into_iter().fold(list, |list, uri| list.leaf("capability", uri))
        })
        .inner("datastores", |list| list.inner("datastore", |entry| entry.leaf("name", "running")))
        .inner("schemas", |list| {
            let with_text = schema.modules().iter().filter(|module| module.text.is_some());
            list.each("schema", with_text, |entry, module| {
                entry
                    .leaf("identifier", module.name.clone())
                    .leaf("version", module.revision.clone())
                    .leaf("format", "ietf-netconf-monitoring:yang")
                    .leaf("namespace", module.namespace.clone())
                    .leaf("location", "NETCONF")
            })
        })
        .inner("sessions", |list| {
            list.each("session", sessions, |entry, session| {
                let entry = entry
                    .leaf("session-id", session.id.to_string())
                    .leaf("transport", "ietf-netconf-monitoring:netconf-ssh")
                    .leaf("username", session.user.clone())
                    .leaf("source-host", session.host.clone())
                    .leaf("login-time", session.login.clone());
                counted(entry, session.counts)
            })
        })
        .inner("statistics", |entry| {
            let entry = entry
                .leaf("netconf-start-time", statistics.start.clone())
                .leaf("in-bad-hellos", statistics.bad_hellos.to_string())
                .leaf("in-sessions", statistics.sessions.to_string())
                .leaf("dropped-sessions", statistics.dropped.to_string());
            counted(entry, all)
        });
    Some(node.build())
}

fn counted(entry: Builder, counts: Counts) -> Builder {
    entry
        .leaf("in-rpcs", counts.requests.to_string())
        .leaf("in-bad-rpcs", counts.bad.to_string())
        .leaf("out-rpc-errors", counts.errors.to_string())
        .leaf("out-notifications", counts.notifications.to_string())
}

impl Counts {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            bad: self.bad.saturating_add(other.bad),
            errors: self.errors.saturating_add(other.errors),
            notifications: self.notifications.saturating_add(other.notifications),
            denied: self.denied.saturating_add(other.denied),
        }
    }
}
