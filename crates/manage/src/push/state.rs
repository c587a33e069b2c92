//! Subscriptions as data (RFC 8639, section 2.8; RFC 9196).

use std::collections::BTreeMap;

use super::message::stamp;
use super::request::Trigger;
use super::{Condition, Settings, Subscription, path};
use crate::error::{OperationError, Tag};
use crate::operation::Transport;
use crate::read::Encoding;
use crate::schema::{Definition, Kind, Schema, find};
use crate::select::Filter;
use crate::tree::{Builder, Node};

/// Makes the output of `establish-subscription`.
pub(super) fn established(
    schema: &'static Schema,
    operation: &'static Definition,
) -> Result<impl Fn(u32, Option<String>) -> Vec<Node>, OperationError> {
    let Kind::Rpc { output } = &operation.kind else {
        return Err(OperationError::application(Tag::OperationFailed, "no operation"));
    };
    let leaf = |module: &str, name: &str| find(output, module, name);
    let id = leaf("ietf-subscribed-notifications", "id");
    let stream = leaf("ietf-restconf-subscribed-notifications", "uri");
    debug_assert!(id.is_some() && stream.is_some() && schema.module("ietf-yang-push").is_some());
    Ok(move |number: u32, uri: Option<String>| {
        let id = id.map(|leaf| Node::value(leaf, number.to_string()));
        let stream = stream.zip(uri).map(|(leaf, uri)| Node::value(leaf, uri));
        id.into_iter().chain(stream).collect()
    })
}

/// `ietf-subscribed-notifications:subscriptions`, of one user where one is named.
pub(super) fn subscriptions(
    definition: &'static Definition,
    schema: &Schema,
    all: &BTreeMap<u32, Subscription>,
    user: Option<&str>,
) -> Node {
    let shown = all.iter().filter(|(_, found)| user.is_none_or(|user| *found.caller.user == *user));
    Builder::new(definition)
        .each("subscription", shown, |entry, (id, found)| one(entry, schema, *id, found))
        .build()
}

fn one(entry: Builder, schema: &Schema, id: u32, found: &Subscription) -> Builder {
    let entry = entry.leaf("id", id.to_string());
    let entry = terms(entry, schema, found).inner("receivers", |receivers| {
        receivers.inner("receiver", |receiver| {
            receiver
                .leaf("name", found.caller.user.clone())
                .leaf("sent-event-records", found.sent.to_string())
                .leaf("excluded-event-records", found.excluded.to_string())
                .leaf(
                    "state",
                    match found.condition {
                        Condition::Active => "active",
                        Condition::Suspended(_) => "suspended",
                    },
                )
        })
    });
    entry.leaf_if(URI, uri(id, found))
}

const URI: &str = "ietf-restconf-subscribed-notifications:uri";

/// Where its stream is; over NETCONF there is none.
fn uri(id: u32, found: &Subscription) -> Option<String> {
    let restconf = found.caller.transport == Transport::Restconf;
    restconf.then(|| format!("{}{}", found.base, path(id)))
}

/// What was subscribed to, and when it is told.
fn terms(entry: Builder, schema: &Schema, found: &Subscription) -> Builder {
    let encoding = match found.encoding {
        Encoding::Json => "encode-json",
        Encoding::Xml => "encode-xml",
    };
    let entry = entry.leaf("ietf-yang-push:datastore", "ietf-datastores:operational");
    let entry = match &found.filter {
        Some(Filter::Xpath(expression)) => {
            entry.leaf("ietf-yang-push:datastore-xpath-filter", expression.clone())
        }
        Some(filter @ (Filter::Subtree(_) | Filter::Nothing)) => {
            entry.any("ietf-yang-push:datastore-subtree-filter", filter.anydata(schema))
        }
        None => entry,
    };
    let entry = entry
        .leaf_if("stop-time", found.stop.map(stamp))
        .leaf("encoding", format!("ietf-subscribed-notifications:{encoding}"));
    let hundredths = |time: std::time::Duration| (time.as_millis() / 10).to_string();
    match found.trigger {
        Trigger::Periodic { period, anchor } => {
            entry.inner("ietf-yang-push:periodic", |periodic| {
                periodic
                    .leaf("period", hundredths(period))
                    .leaf_if("anchor-time", anchor.map(stamp))
            })
        }
        Trigger::OnChange { dampening, sync } => {
            entry.inner("ietf-yang-push:on-change", |changes| {
                changes
                    .leaf("dampening-period", hundredths(dampening))
                    .leaf("sync-on-start", sync.to_string())
            })
        }
    }
}

/// `subscription-modified`.
pub(super) fn modified(schema: &Schema, id: u32, found: &Subscription) -> Option<Node> {
    let module = "ietf-subscribed-notifications";
    let definition = find(schema.notifications(), module, "subscription-modified")?;
    let entry = terms(Builder::new(definition).leaf("id", id.to_string()), schema, found);
    Some(entry.leaf_if(URI, uri(id, found)).build())
}

/// `ietf-system-capabilities:system-capabilities`: what can be subscribed to, and how often.
pub(super) fn capabilities(definition: &'static Definition, settings: &Settings) -> Node {
    let queues = "/ietf-interfaces:interfaces/interface/\
                  ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue";
    Builder::new(definition)
        .inner("datastore-capabilities", |entry| {
            entry.leaf("datastore", "ietf-datastores:operational").inner(
                "per-node-capabilities",
                |node| {
                    node.leaf("node-selector", queues).inner(
                        "ietf-notification-capabilities:subscription-capabilities",
                        |can| {
                            can.leaf("minimum-update-period", settings.period_min.to_string())
                                .leaf("on-change-supported", "state-changes")
                                .leaf("minimum-dampening-period", "0")
                        },
                    )
                },
            )
        })
        .inner("ietf-notification-capabilities:subscription-capabilities", |can| {
            can.leaf("periodic-notifications-supported", "config-changes state-changes")
                .leaf("minimum-update-period", settings.period_min.to_string())
        })
        .build()
}
