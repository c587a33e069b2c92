//! What subscribers ask for.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use super::{Now, Settings};
use crate::access::Access;
use crate::error::{Info, OperationError, Structure, Tag};
use crate::operation::{Body, Call, Transport};
use crate::read::Encoding;
use crate::schema::Schema;
use crate::select::{Filter, FilterError};
use crate::tree::Node;
use crate::xml::Element;

/// When updates are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Everything, now and then.
    Periodic {
        period: Duration,
        /// A time at which one is due.
        anchor: Option<SystemTime>,
    },
    /// What has changed.
    OnChange {
        /// The shortest time between two updates.
        dampening: Duration,
        /// Everything first.
        sync: bool,
    },
}

impl Trigger {
    pub(super) const fn on_change(self) -> bool {
        matches!(self, Self::OnChange { .. })
    }

    /// Whether an update is due when it is established.
    pub(super) const fn begins_with_update(self) -> bool {
        match self {
            Self::Periodic { anchor, .. } => anchor.is_none(),
            Self::OnChange { sync, .. } => sync,
        }
    }

    /// When the first periodic update is due that is not sent at once.
    pub(super) fn first(self, now: Now) -> Option<Duration> {
        match self {
            Self::OnChange { .. } => None,
            Self::Periodic { period, anchor: None } => Some(now.monotonic.saturating_add(period)),
            Self::Periodic { period, anchor: Some(anchor) } => {
                let period_ns = period.as_nanos().max(1);
                let left = match anchor.duration_since(now.wall) {
                    Ok(until) => until.as_nanos() % period_ns,
                    Err(since) => (period_ns - since.duration().as_nanos() % period_ns) % period_ns,
                };
                let left = u64::try_from(left).map_or(period, Duration::from_nanos);
                Some(now.monotonic.saturating_add(left))
            }
        }
    }

    /// When the next is due behind one that was due then. One that went by is left out.
    pub(super) fn next(self, due: Option<Duration>, now: Now) -> Option<Duration> {
        let Self::Periodic { period, .. } = self else { return None };
        let due = due.unwrap_or(now.monotonic);
        let late = now.monotonic.saturating_sub(due).as_nanos();
        let passed = late / period.as_nanos().max(1) + 1;
        let ahead = u32::try_from(passed).ok().and_then(|passed| period.checked_mul(passed));
        Some(ahead.map_or_else(
            || now.monotonic.saturating_add(period),
            |ahead| due.saturating_add(ahead),
        ))
    }
}

/// A subscription that is asked for.
pub(super) struct Wanted {
    pub encoding: Encoding,
    pub filter: Option<Filter>,
    pub trigger: Trigger,
    pub stop: Option<SystemTime>,
}

/// What is to be another.
pub(super) struct Modified {
    pub filter: Option<Option<Filter>>,
    pub trigger: Option<Trigger>,
    pub stop: Option<SystemTime>,
}

/// A refusal for a reason of the modules, `module:identity` (RFC 8639, section 2.4.6; RFC 8641,
/// section 4.4).
pub(super) fn refused(
    schema: &Schema,
    input: &Node,
    reason: &str,
    message: impl Into<Box<str>>,
) -> OperationError {
    hinted(schema, input, reason, message, Vec::new())
}

fn hinted(
    schema: &Schema,
    input: &Node,
    reason: &str,
    message: impl Into<Box<str>>,
    hints: Vec<(&'static str, Box<str>, bool)>,
) -> OperationError {
    let refused = of_reason(reason, message);
    let name = match &*input.definition.name {
        "establish-subscription" => "establish-subscription-datastore-error-info",
        "modify-subscription" => "modify-subscription-datastore-error-info",
        _ => return refused,
    };
    let Some(module) = schema.module("ietf-yang-push") else { return refused };
    // The reason is told already.
    if hints.is_empty() {
        return refused;
    }
    let leaves = hints;
    refused.with(Info::Structure(Box::new(Structure { module, name, leaves })))
}

/// The notification that a user may not receive though a subscription needs it (RFC 8341, section
/// 3.4.6); those about the subscription itself are for everybody who has one.
pub(super) fn forbidden(
    schema: &'static Schema,
    access: &Access<'_>,
    trigger: Trigger,
) -> Option<&'static str> {
    let names: &[&str] = match trigger {
        Trigger::Periodic { .. } => &["push-update"],
        Trigger::OnChange { .. } => &["push-change-update", "push-update"],
    };
    names.iter().copied().find(|name| {
        crate::schema::find(schema.notifications(), "ietf-yang-push", name)
            .is_none_or(|notification| !access.may_receive(notification))
    })
}

/// That the caller may receive what a subscription is to send: one that could never say anything is
/// refused.
pub(super) fn permitted(
    schema: &'static Schema,
    call: &Call<'_>,
    trigger: Trigger,
) -> Result<(), OperationError> {
    let Some(name) = forbidden(schema, call.access, trigger) else { return Ok(()) };
    let user = &call.caller.user;
    Err(OperationError::application(
        Tag::AccessDenied,
        format!(
            "{user} may not receive the notification {name} of ietf-yang-push, which this \
             subscription sends; expected a rule that permits reading it"
        ),
    ))
}

/// No subscription of that number is the caller's.
pub(super) fn no_such(input: &Node, id: u32) -> OperationError {
    let reason = match &*input.definition.name {
        "resync-subscription" => "ietf-yang-push:no-such-subscription-resync",
        _ => "ietf-subscribed-notifications:no-such-subscription",
    };
    let message = match &*input.definition.name {
        "kill-subscription" => format!("subscription {id}, which there is not"),
        _ => format!("subscription {id}, which is not one of this subscriber"),
    };
    of_reason(reason, message)
}

/// An error with the tag and the HTTP status of its identity (RFC 8640, section 7; RFC 8650, section
/// 3.3). One that the tables do not have is about a value.
fn of_reason(reason: &str, message: impl Into<Box<str>>) -> OperationError {
    let identity = reason.rsplit_once(':').map_or(reason, |(_, identity)| identity);
    let (tag, status) = match identity {
        "insufficient-resources" => (Tag::ResourceDenied, None),
        "no-such-subscription" | "no-such-subscription-resync" => (Tag::InvalidValue, Some(404)),
        "cant-exclude" | "on-change-unsupported" => (Tag::OperationNotSupported, Some(501)),
        _ => (Tag::InvalidValue, None),
    };
    OperationError::application(tag, message).with_app_tag(reason).with_status(status)
}

/// The number that an operation names.
pub(super) fn id(input: &Node) -> Result<u32, OperationError> {
    let text = input.leaf("id").unwrap_or_default();
    text.parse().map_err(|_| {
        OperationError::application(Tag::MissingElement, "no id of a subscription, expected one")
            .with(Info::Element("id".into()))
    })
}

/// Reads `establish-subscription`.
pub(super) fn establish(
    schema: &'static Schema,
    settings: &Settings,
    call: &Call<'_>,
    now: Now,
) -> Result<Wanted, OperationError> {
    let input = call.input;
    if let Some(stream) = input.leaf("stream") {
        let message = format!(
            "stream {stream:?}: this server has no events to stream, expected the datastore \
             ietf-datastores:operational"
        );
        return Err(OperationError::application(Tag::InvalidValue, message));
    }
    datastore(schema, input)?;
    let encoding = encoding(schema, call)?;
    let trigger = trigger(schema, settings, input)?.ok_or_else(|| {
        OperationError::application(
            Tag::MissingElement,
            "neither periodic nor on-change, expected one",
        )
        .with(Info::Element("periodic".into()))
    })?;
    let filter = filter(schema, call)?;
    on_change(schema, input, trigger, filter.as_ref())?;
    Ok(Wanted { encoding, filter, trigger, stop: stop(input, now)? })
}

/// Reads `modify-subscription`.
pub(super) fn modify(
    schema: &'static Schema,
    settings: &Settings,
    call: &Call<'_>,
    present: Trigger,
    now: Now,
) -> Result<Modified, OperationError> {
    let input = call.input;
    if input.leaf("datastore").is_some() {
        datastore(schema, input)?;
    }
    let trigger = trigger(schema, settings, input)?;
    if let Some(trigger) = trigger
        && trigger.on_change() != present.on_change()
    {
        let message = "another kind of trigger, expected the one that it was established with";
        return Err(OperationError::application(Tag::InvalidValue, message));
    }
    let filter = filter(schema, call)?;
    let named = ["datastore-subtree-filter", "datastore-xpath-filter"];
    let given = input.children().iter().any(|child| named.contains(&&*child.definition.name));
    if given {
        on_change(schema, input, trigger.unwrap_or(present), filter.as_ref())?;
    }
    Ok(Modified { filter: given.then_some(filter), trigger, stop: stop(input, now)? })
}

fn datastore(schema: &Schema, input: &Node) -> Result<(), OperationError> {
    match input.leaf("datastore") {
        Some("ietf-datastores:operational") => Ok(()),
        Some(other) => Err(refused(
            schema,
            input,
            "ietf-yang-push:datastore-not-subscribable",
            format!("datastore {other}, expected ietf-datastores:operational"),
        )),
        None => Err(OperationError::application(
            Tag::MissingElement,
            "no datastore, expected ietf-datastores:operational",
        )
        .with(Info::Element("datastore".into()))),
    }
}

fn encoding(schema: &Schema, call: &Call<'_>) -> Result<Encoding, OperationError> {
    let found = match call.input.leaf("encoding") {
        Some("ietf-subscribed-notifications:encode-json") => Encoding::Json,
        Some("ietf-subscribed-notifications:encode-xml") => Encoding::Xml,
        Some(other) => {
            let message = format!("encoding {other}, expected encode-json or encode-xml");
            let reason = "ietf-subscribed-notifications:encoding-unsupported";
            return Err(refused(schema, call.input, reason, message));
        }
        None => call.encoding,
    };
    if found == Encoding::Json && matches!(call.caller.transport, Transport::Netconf(_)) {
        let reason = "ietf-subscribed-notifications:encoding-unsupported";
        let message = "encode-json in NETCONF, expected encode-xml";
        return Err(refused(schema, call.input, reason, message));
    }
    Ok(found)
}

fn trigger(
    schema: &Schema,
    settings: &Settings,
    input: &Node,
) -> Result<Option<Trigger>, OperationError> {
    let hundredths = |node: &Node, name: &str| node.leaf(name).and_then(|text| text.parse().ok());
    if let Some(periodic) = input.child("periodic") {
        let period: u32 = hundredths(periodic, "period").unwrap_or(0);
        if period < settings.period_min {
            return Err(hinted(
                schema,
                input,
                "ietf-yang-push:period-unsupported",
                format!(
                    "a period of {period} hundredths of a second, expected at least {}",
                    settings.period_min
                ),
                vec![("period-hint", settings.period_min.to_string().into(), true)],
            ));
        }
        let anchor = periodic.leaf("anchor-time").map(|text| time(text, "anchor-time"));
        let period = Duration::from_millis(u64::from(period) * 10);
        return Ok(Some(Trigger::Periodic { period, anchor: anchor.transpose()? }));
    }
    let Some(changes) = input.child("on-change") else { return Ok(None) };
    let excluded: Vec<&str> = changes
        .children()
        .iter()
        .filter(|child| *child.definition.name == *"excluded-change")
        .filter_map(Node::text)
        .collect();
    if !excluded.is_empty() {
        return Err(refused(
            schema,
            input,
            "ietf-yang-push:cant-exclude",
            format!("excluded changes {}, expected none", excluded.join(", ")),
        ));
    }
    let dampening: u32 = hundredths(changes, "dampening-period").unwrap_or(0);
    Ok(Some(Trigger::OnChange {
        dampening: Duration::from_millis(u64::from(dampening) * 10),
        sync: changes.leaf("sync-on-start") != Some("false"),
    }))
}

/// Changes are told of queues, and of nothing else.
fn on_change(
    schema: &Schema,
    input: &Node,
    trigger: Trigger,
    filter: Option<&Filter>,
) -> Result<(), OperationError> {
    let interfaces = schema.top("ietf-interfaces", "interfaces");
    let can = interfaces.is_none_or(|top| filter.is_none_or(|filter| filter.leads_to(top)));
    if trigger.on_change() && !can {
        return Err(refused(
            schema,
            input,
            "ietf-yang-push:on-change-unsupported",
            "changes of nothing in ietf-interfaces:interfaces, expected some of it",
        ));
    }
    Ok(())
}

fn filter(schema: &'static Schema, call: &Call<'_>) -> Result<Option<Filter>, OperationError> {
    let input = call.input;
    if let Some(name) = input.leaf("selection-filter-ref") {
        return Err(refused(
            schema,
            input,
            "ietf-subscribed-notifications:filter-unavailable",
            format!("selection filter {name:?}, and none is configured"),
        ));
    }
    let unsupported = |error: FilterError| {
        let reason = "ietf-subscribed-notifications:filter-unsupported";
        refused(schema, input, reason, error.to_string())
    };
    let found = match call.body {
        Body::Nothing => None,
        Body::Json(object) => of_json(schema, object),
        Body::Xml(around) => of_xml(schema, around),
    };
    let found = found.transpose().map_err(unsupported)?;
    // What cannot be evaluated at all is refused now and not when something is to be sent.
    if let Some(filter) = &found {
        filter.of(schema, Vec::new(), None).map_err(unsupported)?;
    }
    Ok(found)
}

fn of_json(schema: &'static Schema, object: &Value) -> Option<Result<Filter, FilterError>> {
    if let Some(filter) = object.get("ietf-yang-push:datastore-subtree-filter") {
        return Some(Filter::subtree_in_json(schema, filter));
    }
    let expression = object.get("ietf-yang-push:datastore-xpath-filter")?.as_str()?;
    Some(Filter::xpath_in_json(schema, expression))
}

const PUSH: &str = "urn:ietf:params:xml:ns:yang:ietf-yang-push";

fn of_xml(schema: &'static Schema, around: &[&Element]) -> Option<Result<Filter, FilterError>> {
    let operation = around.last()?;
    if let Some(element) = operation.child(PUSH, "datastore-subtree-filter") {
        let mut own = element.clone();
        let outer = around.iter().rev().flat_map(|outer| outer.declared.iter().cloned());
        own.declared.extend(outer);
        return Some(Filter::subtree_in_xml(own));
    }
    let element = operation.child(PUSH, "datastore-xpath-filter")?;
    let mut all = around.to_vec();
    all.push(element);
    Some(Filter::xpath_in_xml(schema, element.trimmed(), &all))
}

fn stop(input: &Node, now: Now) -> Result<Option<SystemTime>, OperationError> {
    let Some(text) = input.leaf("stop-time") else { return Ok(None) };
    let stop = time(text, "stop-time")?;
    if stop <= now.wall {
        let message = format!("stop-time {text}, expected one that is still to come");
        return Err(OperationError::application(Tag::InvalidValue, message)
            .with(Info::Element("stop-time".into())));
    }
    Ok(Some(stop))
}

/// A time that can be shown again: in the years 0 to 9999 of UTC, whatever its own offset.
fn time(text: &str, name: &str) -> Result<SystemTime, OperationError> {
    let utc = |time: OffsetDateTime| time.checked_to_offset(UtcOffset::UTC);
    let found = OffsetDateTime::parse(text, &Rfc3339).ok().and_then(utc);
    found.filter(|time| (0..=9999).contains(&time.year())).map(SystemTime::from).ok_or_else(|| {
        OperationError::application(
            Tag::InvalidValue,
            format!("{name} {text:?}, expected a date and time as 2026-10-30T00:00:00Z"),
        )
        .with(Info::Element(name.into()))
    })
}
