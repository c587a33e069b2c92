//! What a RESTCONF client says and understands, as text: no socket, no clock (RFC 8040; RFC 8527 for
//! the operational datastore; RFC 8639, 8641 and 8650 for subscriptions).

use manage::xml::{Element, Limits};
use serde_json::{Value, json};

use crate::config::printable;
use crate::queue::tree::Node;

/// Where the root of RESTCONF is asked for.
pub const HOST_META: &str = "/.well-known/host-meta";

/// The media type of [`HOST_META`].
pub const XRD: &str = "application/xrd+xml";

/// The media type of data.
pub const JSON: &str = "application/yang-data+json";

/// The media type of notifications.
pub const EVENTS: &str = "text/event-stream";

const XRD_NAMESPACE: &str = "http://docs.oasis-open.org/ns/xri/xrd-1.0";

/// Octets of a path that are taken from a device.
const PATH_OCTETS_MAX: usize = 1024;

/// Characters of what a device says that are repeated.
const SAID_CHARS_MAX: usize = 200;

/// The rows, and the names of their interfaces; nothing else of an interface is asked for.
const FIELDS: &str = "fields=interface(name;ietf-pfc-queue-telemetry:pfc-queue-telemetry)";

/// The root of RESTCONF out of a host-meta document.
///
/// # Errors
/// In a few words: it is none, or names none on this host.
pub fn root(host_meta: &str, authority: &str) -> Result<String, String> {
    let document = Element::read(host_meta, &Limits::default()).map_err(|e| e.to_string())?;
    if !document.is(XRD_NAMESPACE, "XRD") {
        return Err("no XRD document, expected one".into());
    }
    let link = document.children.iter().find(|child| {
        child.is(XRD_NAMESPACE, "Link") && child.attribute("rel") == Some("restconf")
    });
    let href = link.and_then(|link| link.attribute("href"));
    let href = href.ok_or("no link to restconf, expected one")?;
    Ok(path(href, authority)?.trim_end_matches('/').to_owned())
}

/// The path of a reference to this host. What a device says never leads elsewhere: the client's
/// credentials are for it alone.
///
/// # Errors
/// In a few words: it is elsewhere, or no reference.
pub fn path(reference: &str, authority: &str) -> Result<String, String> {
    let wrong = || format!("{:?}, expected a path on {authority}", said(reference));
    let path = match reference.strip_prefix("https://") {
        Some(rest) => {
            let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
            let ours = authority.strip_suffix(":443").unwrap_or(authority);
            let same = host.eq_ignore_ascii_case(authority) || host.eq_ignore_ascii_case(ours);
            if !same {
                return Err(wrong());
            }
            format!("/{path}")
        }
        None => reference.to_owned(),
    };
    let plain =
        path.bytes().all(|octet| octet.is_ascii_graphic() && !b"#\"<>\\^`{|}".contains(&octet));
    let good = plain && path.starts_with('/') && !path.starts_with("//");
    if good && path.len() <= PATH_OCTETS_MAX { Ok(path) } else { Err(wrong()) }
}

/// Where rows can be had, the best first: the operational datastore by itself, or as part of the
/// whole where the device does not know datastores; and without a choice of fields where it cannot
/// make one.
pub fn targets(root: &str) -> [String; 4] {
    let operational = format!("{root}/ds/ietf-datastores:operational/ietf-interfaces:interfaces");
    let whole = format!("{root}/data/ietf-interfaces:interfaces");
    [
        format!("{operational}?{FIELDS}"),
        operational,
        format!("{whole}?content=nonconfig&{FIELDS}"),
        format!("{whole}?content=nonconfig"),
    ]
}

/// Where a subscription is asked for.
pub fn establish(root: &str) -> String {
    format!("{root}/operations/ietf-subscribed-notifications:establish-subscription")
}

/// What is subscribed to, as the device can say it: by a path, or by an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// An XPath.
    Path,
    /// A subtree.
    Subtree,
}

impl Filter {
    /// Both, in the order in which they are tried.
    pub const ALL: [Self; 2] = [Self::Path, Self::Subtree];
}

/// A subscription to rows that are new, with those that are there to begin with.
// QUE-pub.2: every completed interval, not a cadence of its own.
pub fn subscription(filter: Filter) -> String {
    let mut input = json!({
        "encoding": "ietf-subscribed-notifications:encode-json",
        "ietf-yang-push:datastore": "ietf-datastores:operational",
        "ietf-yang-push:on-change": {"sync-on-start": true},
    });
    let (name, value) = match filter {
        Filter::Path => (
            "ietf-yang-push:datastore-xpath-filter",
            "/ietf-interfaces:interfaces/ietf-interfaces:interface\
             /ietf-pfc-queue-telemetry:pfc-queue-telemetry"
                .into(),
        ),
        Filter::Subtree => (
            "ietf-yang-push:datastore-subtree-filter",
            json!({"ietf-interfaces:interfaces": {"interface": [
                {"ietf-pfc-queue-telemetry:pfc-queue-telemetry": {}}
            ]}}),
        ),
    };
    input[name] = value;
    json!({ "ietf-subscribed-notifications:input": input }).to_string()
}

/// The path of the stream of a subscription that was established.
///
/// # Errors
/// In a few words: the answer does not say it, or it is elsewhere.
pub fn stream(answer: &[u8], authority: &str) -> Result<String, String> {
    let answer: Value =
        serde_json::from_slice(answer).map_err(|error| format!("no JSON: {error}"))?;
    let output = &answer["ietf-subscribed-notifications:output"];
    let uri = output["ietf-restconf-subscribed-notifications:uri"].as_str();
    let uri = uri.ok_or("no uri of a subscription in the answer, expected one")?;
    path(uri, authority)
}

/// What a device says is wrong (RFC 8040, section 7.1), in a line.
pub fn problem(status: u16, body: &[u8]) -> String {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let errors = body.as_ref().and_then(|body| body["ietf-restconf:errors"]["error"].as_array());
    let mut line = format!("status {status}");
    if let Some(error) = errors.and_then(|errors| errors.first()) {
        for name in ["error-tag", "error-app-tag", "error-message"] {
            if let Some(text) = error[name].as_str() {
                line += &format!(", {}", said(text));
            }
        }
    }
    line
}

/// What a device says, as far as it is repeated.
pub fn said(text: &str) -> String {
    let short: String = text.chars().take(SAID_CHARS_MAX).collect();
    let more = if short.len() < text.len() { "..." } else { "" };
    printable(&short) + more
}

/// What a notification means for the subscription beside the rows in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Nothing.
    Nothing,
    /// It does not have all that it should: the rest has to be asked for.
    Incomplete,
    /// It is over, for this reason.
    Terminated(String),
    /// Nothing will be told until it is resumed, for this reason.
    Suspended(String),
    /// It goes on.
    Resumed,
}

/// Reads what a notification means.
// QUE-con.1: what is not told is a gap, and no end of anything.
pub fn notice(event: &Node) -> Notice {
    let notification = ["ietf-restconf:notification", "ietf-notification:notification"]
        .into_iter()
        .find_map(|name| event.get(name))
        .unwrap_or(event);
    let reason = |of: &Node| match of.get("reason") {
        Some(Node::Text(reason)) => said(reason),
        _ => "no reason given".to_owned(),
    };
    if let Some(state) = notification.get("ietf-subscribed-notifications:subscription-terminated") {
        return Notice::Terminated(reason(state));
    }
    if let Some(state) = notification.get("ietf-subscribed-notifications:subscription-suspended") {
        return Notice::Suspended(reason(state));
    }
    if notification.get("ietf-subscribed-notifications:subscription-resumed").is_some() {
        return Notice::Resumed;
    }
    let update = ["ietf-yang-push:push-update", "ietf-yang-push:push-change-update"]
        .into_iter()
        .find_map(|name| notification.get(name));
    let incomplete = update.is_some_and(|update| {
        ["incomplete-update", "ietf-yang-push:incomplete-update"]
            .into_iter()
            .any(|name| update.get(name).is_some())
    });
    if incomplete { Notice::Incomplete } else { Notice::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "leaf-1.example:443";

    #[test]
    fn the_root_is_what_the_link_to_restconf_says() {
        for (text, expected) in [
            (
                "<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'>\n  \
                 <Link rel='restconf' href='/restconf'/>\n</XRD>",
                Some("/restconf"),
            ),
            (
                "<?xml version='1.0' encoding='UTF-8'?><x:XRD \
                 xmlns:x='http://docs.oasis-open.org/ns/xri/xrd-1.0'><x:Link rel=\"lrdd\" \
                 href=\"/a\"/><x:Link href=\"https://leaf-1.example/top/restconf/\" \
                 rel=\"restconf\"/></x:XRD>",
                Some("/top/restconf"),
            ),
            (
                "<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'><Link rel='restconf' \
                 href='https://other.example/restconf'/></XRD>",
                None,
            ),
            ("<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'/>", None),
            ("<XRD><Link rel='restconf' href='/restconf'/></XRD>", None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(root(text, HOST).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_reference_never_leads_to_another_host() {
        for (reference, expected) in [
            ("/restconf/subscriptions/22", Some("/restconf/subscriptions/22")),
            ("https://leaf-1.example:443/s/22", Some("/s/22")),
            ("https://LEAF-1.example/s/22?x=1", Some("/s/22?x=1")),
            ("https://leaf-1.example:444/s", None),
            ("https://leaf-1.example.evil/s", None),
            ("https://leaf-1.example@evil/s", None),
            ("http://leaf-1.example/s", None),
            ("//evil/s", None),
            ("s/22", None),
            ("/s 22", None),
            ("/s\r\nx: y", None),
            ("", None),
        ] {
            assert_eq!(path(reference, HOST).ok().as_deref(), expected, "{reference}");
        }
        assert!(path(&format!("/{}", "a".repeat(2000)), HOST).is_err());
    }

    #[test]
    fn the_stream_is_where_the_answer_says() {
        let answer = br#"{"ietf-subscribed-notifications:output": {"id": 22,
            "ietf-restconf-subscribed-notifications:uri":
            "https://leaf-1.example/restconf/subscriptions/22"}}"#;
        assert_eq!(stream(answer, HOST).unwrap(), "/restconf/subscriptions/22");
        assert!(stream(b"{}", HOST).unwrap_err().contains("no uri"));
        assert!(stream(b"<", HOST).unwrap_err().contains("no JSON"));
    }

    #[test]
    fn what_a_device_says_is_wrong_is_told_without_control_characters() {
        let body = br#"{"ietf-restconf:errors": {"error": [{"error-type": "application",
            "error-tag": "operation-not-supported", "error-app-tag": "x:y",
            "error-message": "no\u001b[2J push"}]}}"#;
        let line = problem(501, body);
        assert!(line.starts_with("status 501, operation-not-supported, x:y, no"), "{line}");
        assert!(!line.contains('\u{1b}'), "{line:?}");
        assert_eq!(problem(404, b"<html>"), "status 404");
    }

    #[test]
    fn a_notification_says_what_becomes_of_the_subscription() {
        let read = |text: &str| notice(&serde_json::from_str(text).unwrap());
        let of = |member: &str| {
            read(&format!(
                "{{\"ietf-restconf:notification\":{{\"eventTime\":\"2026-10-30T00:00:00Z\",\
                     {member}}}}}"
            ))
        };
        let state = |name: &str| {
            of(&format!("\"ietf-subscribed-notifications:{name}\":{{\"id\":1,\"reason\":\"why\"}}"))
        };
        assert_eq!(state("subscription-terminated"), Notice::Terminated("why".into()));
        assert_eq!(state("subscription-suspended"), Notice::Suspended("why".into()));
        assert_eq!(state("subscription-resumed"), Notice::Resumed);
        assert_eq!(of("\"ietf-yang-push:push-update\":{\"id\":1}"), Notice::Nothing);
        let incomplete = "\"ietf-yang-push:push-change-update\":{\"incomplete-update\":[null]}";
        assert_eq!(of(incomplete), Notice::Incomplete);
        assert_eq!(read("[\"nonsense\"]"), Notice::Nothing);
    }

    #[test]
    fn a_subscription_asks_for_rows_as_they_come() {
        for filter in Filter::ALL {
            let body: Value = serde_json::from_str(&subscription(filter)).unwrap();
            let input = &body["ietf-subscribed-notifications:input"];
            assert_eq!(input["ietf-yang-push:datastore"], "ietf-datastores:operational");
            assert_eq!(input["ietf-yang-push:on-change"]["sync-on-start"], true);
        }
    }
}
