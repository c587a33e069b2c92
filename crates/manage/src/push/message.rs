//! Notifications as text.
//!
//! Many subscribers get the same content under different numbers: it is written once and shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::json;
use crate::read::Encoding;
use crate::schema::Schema;
use crate::tree::Node;
use crate::xml;

const PUSH: &str = "urn:ietf:params:xml:ns:yang:ietf-yang-push";
const SUBSCRIBED: &str = "urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications";
const ENVELOPE: &str = "urn:ietf:params:xml:ns:netconf:notification:1.0";

/// A notification, in pieces that may be shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    encoding: Encoding,
    before: Box<str>,
    shared: Arc<Shared>,
    after: Box<str>,
}

/// Text that many hold at the same time.
#[derive(Debug)]
pub struct Shared {
    text: Box<str>,
    /// Octets of all texts of its kind that are still held.
    held: Arc<AtomicUsize>,
}

impl Shared {
    pub(super) fn new(text: String, held: &Arc<AtomicUsize>) -> Arc<Self> {
        held.fetch_add(text.len(), Ordering::Relaxed);
        Arc::new(Self { text: text.into(), held: held.clone() })
    }

    fn nothing() -> Arc<Self> {
        Self::new(String::new(), &Arc::default())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.held.fetch_sub(self.text.len(), Ordering::Relaxed);
    }
}

impl std::ops::Deref for Shared {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Shared {}

/// A notification on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub text: Text,
    /// When that was so.
    pub wall: SystemTime,
    /// What it tells.
    pub(super) about: About,
}

/// What a notification tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// An event.
    Event,
    /// That the terms of the subscription are others from here on.
    Terms,
    /// Something else of the subscription.
    Subscription,
}

impl Text {
    /// Octets of it.
    pub fn len(&self) -> usize {
        self.before.len() + self.shared.len() + self.after.len()
    }

    /// Whether there is nothing in it; there never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Message {
    /// The time of the event (RFC 3339, UTC).
    pub fn time(&self) -> String {
        stamp(self.wall)
    }

    /// The element of the notification by itself, for NETCONF; of one in JSON its member.
    pub fn content(&self) -> String {
        [&*self.text.before, &*self.text.shared, &*self.text.after].concat()
    }

    /// The whole document of RESTCONF (RFC 8040, section 6.4; RFC 8650).
    pub fn document(&self) -> String {
        let (before, shared, after) = self.pieces();
        [&*before, &*shared, &*after].concat()
    }

    /// The same in three pieces, of which the one in the middle, by far the longest, is shared with
    /// everybody who gets it.
    pub fn pieces(&self) -> (String, Arc<Shared>, String) {
        let Text { encoding, before, shared, after } = &self.text;
        let time = self.time();
        let (before, after) = match encoding {
            Encoding::Json => (
                format!("{{\"ietf-restconf:notification\":{{\"eventTime\":\"{time}\",{before}"),
                format!("{after}}}}}"),
            ),
            Encoding::Xml => (
                format!("<notification xmlns=\"{ENVELOPE}\"><eventTime>{time}</eventTime>{before}"),
                format!("{after}</notification>"),
            ),
        };
        (before, shared.clone(), after)
    }
}

/// A time as `yang:date-and-time`, in UTC.
pub fn stamp(wall: SystemTime) -> String {
    let time = OffsetDateTime::from(wall);
    let time = time.replace_microsecond(time.microsecond()).unwrap_or(time);
    time.format(&Rfc3339).unwrap_or_else(|_| "1970-01-01T00:00:00Z".into())
}

/// The nodes of an update.
pub(super) fn contents(
    schema: &Schema,
    encoding: Encoding,
    nodes: &[Node],
    held: &Arc<AtomicUsize>,
) -> Arc<Shared> {
    let text = match encoding {
        Encoding::Json => json::object(nodes),
        Encoding::Xml => {
            let mut out = String::new();
            xml::write(&mut out, schema, nodes, Some(PUSH));
            out
        }
    };
    Shared::new(text, held)
}

/// `push-update`.
pub(super) fn update(encoding: Encoding, id: u32, contents: Arc<Shared>, incomplete: bool) -> Text {
    let (before, after) = match encoding {
        Encoding::Json => (
            format!("\"ietf-yang-push:push-update\":{{\"id\":{id},\"datastore-contents\":"),
            if incomplete { ",\"incomplete-update\":[null]}" } else { "}" },
        ),
        Encoding::Xml => (
            format!("<push-update xmlns=\"{PUSH}\"><id>{id}</id><datastore-contents>"),
            if incomplete {
                "</datastore-contents><incomplete-update/></push-update>"
            } else {
                "</datastore-contents></push-update>"
            },
        ),
    };
    Text { encoding, before: before.into(), shared: contents, after: after.into() }
}

/// `push-change-update` with these edits.
pub(super) fn change(encoding: Encoding, id: u32, patch: u64, edits: Arc<Shared>) -> Text {
    let (before, after) = match encoding {
        Encoding::Json => (
            format!(
                "\"ietf-yang-push:push-change-update\":{{\"id\":{id},\"datastore-changes\":\
                 {{\"yang-patch\":{{\"patch-id\":\"{patch}\",\"edit\":["
            ),
            "]}}}",
        ),
        Encoding::Xml => (
            format!(
                "<push-change-update xmlns=\"{PUSH}\"><id>{id}</id><datastore-changes>\
                 <yang-patch><patch-id>{patch}</patch-id>"
            ),
            "</yang-patch></datastore-changes></push-change-update>",
        ),
    };
    Text { encoding, before: before.into(), shared: edits, after: after.into() }
}

/// A notification as it is in the schema.
pub(super) fn whole(schema: &Schema, encoding: Encoding, notification: Node) -> Text {
    let text = match encoding {
        Encoding::Json => {
            let object = json::object(&[notification]);
            object[1..object.len() - 1].to_owned()
        }
        Encoding::Xml => {
            let mut out = String::new();
            xml::write(&mut out, schema, &[notification], None);
            out
        }
    };
    Text { encoding, before: text.into(), shared: Shared::nothing(), after: "".into() }
}

/// One edit of a patch.
pub(super) struct Edit<'a> {
    /// Its number in the patch.
    pub number: usize,
    /// `create`, `replace` or `delete`.
    pub operation: &'a str,
    /// The node.
    pub target: &'a str,
    /// What it is now; none for one that is gone.
    pub value: Option<&'a Node>,
}

/// Writes an edit behind others.
pub(super) fn edit(out: &mut String, schema: &Schema, encoding: Encoding, edit: &Edit<'_>) {
    let Edit { number, operation, target, value } = edit;
    match encoding {
        Encoding::Json => {
            if *number > 0 {
                out.push(',');
            }
            out.push_str(&format!(
                "{{\"edit-id\":\"{number}\",\"operation\":\"{operation}\",\"target\":"
            ));
            json::text(out, target);
            if let Some(value) = value {
                out.push_str(",\"value\":");
                json::write_object(out, std::slice::from_ref(*value), None);
            }
            out.push('}');
        }
        Encoding::Xml => {
            out.push_str(&format!(
                "<edit><edit-id>{number}</edit-id><operation>{operation}</operation><target>"
            ));
            xml::text(out, target);
            out.push_str("</target>");
            if let Some(value) = value {
                out.push_str("<value>");
                xml::write(out, schema, std::slice::from_ref(*value), Some(PUSH));
                out.push_str("</value>");
            }
            out.push_str("</edit>");
        }
    }
}

/// A notification about a subscription. A reason is an identity, `module:name`.
pub(super) fn notice(
    schema: &Schema,
    encoding: Encoding,
    name: &str,
    id: u32,
    reason: Option<&str>,
) -> Text {
    let module = "ietf-subscribed-notifications";
    debug_assert!(crate::schema::find(schema.notifications(), module, name).is_some());
    let text = match encoding {
        Encoding::Json => {
            let reason =
                reason.map(|reason| format!(",\"reason\":\"{reason}\"")).unwrap_or_default();
            format!("\"{module}:{name}\":{{\"id\":{id}{reason}}}")
        }
        Encoding::Xml => {
            let reason = reason
                .and_then(|reason| {
                    let prefix = reason.split_once(':')?.0;
                    let namespace = &schema.module(prefix)?.namespace;
                    Some(format!("<reason xmlns:{prefix}=\"{namespace}\">{reason}</reason>"))
                })
                .unwrap_or_default();
            format!("<{name} xmlns=\"{SUBSCRIBED}\"><id>{id}</id>{reason}</{name}>")
        }
    };
    Text { encoding, before: text.into(), shared: Shared::nothing(), after: "".into() }
}
