//! One session: hello, requests and replies, notifications (RFC 6241, sections 4 and 8; RFC 5277).

use std::fmt;

use super::framing::{Decoder, Framing, FramingError, framed};
use super::requests;
use crate::access::Access;
use crate::error::{Info, Layer, NETCONF, OperationError, Tag, write_rpc_error};
use crate::operation::{Caller, Operations, Transport, View};
use crate::operational::Datastore;
use crate::schema::Schema;
use crate::tree::Node;
use crate::xml::{self, Element};

/// The namespace of notifications (RFC 5277).
const NOTIFICATION: &str = "urn:ietf:params:xml:ns:netconf:notification:1.0";
const BASE_1_0: &str = "urn:ietf:params:netconf:base:1.0";
const BASE_1_1: &str = "urn:ietf:params:netconf:base:1.1";

/// Bounds of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of a message, at most.
    pub message_octets_max: usize,
    /// Of its XML.
    pub xml: xml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_octets_max: 1 << 20, xml: xml::Limits::default() }
    }
}

/// What a session needs of the rest for one request.
pub struct World<'a> {
    /// What there is.
    pub datastore: &'a dyn Datastore,
    /// What the user may do.
    pub access: &'a Access<'a>,
    /// Operations on subscriptions.
    pub operations: &'a dyn Operations,
    /// Ends another session; false where there is none of that number.
    pub kill: &'a dyn Fn(u32) -> bool,
}

/// What comes after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next request.
    Continue,
    /// The end of the session, once the reply is sent.
    Close,
}

/// Why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its stream is no stream of messages.
    Framing(FramingError),
    /// Its first message is no hello that can be answered.
    Hello(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Framing(error) => error.fmt(f),
            Self::Hello(what) => write!(f, "{what}, expected a hello"),
        }
    }
}

impl std::error::Error for End {}

/// How often something happened (RFC 6022, section 2.1.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests.
    pub requests: u32,
    /// Messages that were no request.
    pub bad: u32,
    /// Replies with an error.
    pub errors: u32,
    /// Notifications.
    pub notifications: u32,
    /// Requests that the user may not make.
    pub denied: u32,
}

/// One client.
#[derive(Debug)]
pub struct Session {
    schema: &'static Schema,
    limits: Limits,
    caller: Caller,
    decoder: Decoder,
    framing: Framing,
    greeted: bool,
    counts: Counts,
}

impl Session {
    /// A session of a user, and the hello that goes to it.
    pub fn new(schema: &'static Schema, user: &str, id: u32, limits: Limits) -> (Self, Vec<u8>) {
        let session = Self {
            schema,
            limits,
            caller: Caller { user: user.into(), transport: Transport::Netconf(id) },
            decoder: Decoder::new(limits.message_octets_max),
            framing: Framing::EndOfMessage,
            greeted: false,
            counts: Counts::default(),
        };
        let hello = framed(Framing::EndOfMessage, &hello(schema, id));
        (session, hello)
    }

    /// Its user and way in.
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What happened so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether the client has said hello.
    pub const fn greeted(&self) -> bool {
        self.greeted
    }

    /// Takes octets of the client.
    pub fn take(&mut self, octets: &[u8]) {
        self.decoder.take(octets);
    }

    /// The next request that has come whole. The client's hello is taken on the way.
    ///
    /// # Errors
    ///
    /// The session has to end, without a word: there is nothing that could be answered.
    pub fn next_request(&mut self) -> Result<Option<String>, End> {
        while let Some(message) = self.decoder.next_message().map_err(End::Framing)? {
            if self.greeted {
                return Ok(Some(message));
            }
            self.framing = greeted(&message, &self.limits.xml).map_err(End::Hello)?;
            self.decoder.set_framing(self.framing);
            self.greeted = true;
        }
        Ok(None)
    }

    /// Answers a request.
    pub fn answer(&mut self, request: &str, world: &World<'_>) -> (Vec<u8>, Then) {
        self.counts.requests = self.counts.requests.saturating_add(1);
        let mut out = String::new();
        let then = match Element::read(request, &self.limits.xml) {
            Err(error) => {
                self.counts.bad = self.counts.bad.saturating_add(1);
                // 1.0 has no word for it (RFC 6241, appendix A).
                let tag = match self.framing {
                    Framing::Chunked => Tag::MalformedMessage,
                    Framing::EndOfMessage => Tag::OperationFailed,
                };
                let error = OperationError::new(Layer::Rpc, tag, error.to_string());
                reply(&mut out, None, |out| write_rpc_error(out, self.schema, &error));
                Then::Continue
            }
            Ok(rpc) => self.called(&mut out, request, &rpc, world),
        };
        (framed(self.framing, &out), then)
    }

    fn called(
        &mut self,
        out: &mut String,
        request: &str,
        rpc: &Element,
        world: &World<'_>,
    ) -> Then {
        let found = self.checked(rpc).and_then(|operation| {
            let view =
                View { schema: self.schema, datastore: world.datastore, access: world.access };
            requests::call(
                &requests::Request { view, caller: &self.caller, rpc, operation, text: request },
                world,
            )
        });
        match found {
            Ok(done) => {
                reply(out, Some(rpc), |out| match &done.data {
                    Some(data) => out.push_str(data),
                    None => out.push_str("<ok/>"),
                });
                done.then
            }
            Err(error) => {
                self.counts.errors = self.counts.errors.saturating_add(1);
                let denied = error.tag == Tag::AccessDenied;
                self.counts.denied = self.counts.denied.saturating_add(denied.into());
                let rpc = rpc.is(NETCONF, "rpc").then_some(rpc);
                reply(out, rpc, |out| write_rpc_error(out, self.schema, &error));
                Then::Continue
            }
        }
    }

    /// The operation in an `rpc` element.
    fn checked<'a>(&mut self, rpc: &'a Element) -> Result<&'a Element, OperationError> {
        let error = |tag, message: String| OperationError::new(Layer::Rpc, tag, message);
        if !rpc.is(NETCONF, "rpc") {
            self.counts.bad = self.counts.bad.saturating_add(1);
            let message = format!("element {}, expected rpc of NETCONF", rpc.name);
            return Err(error(Tag::UnknownElement, message).with(Info::Element(rpc.name.clone())));
        }
        if rpc.attribute("message-id").is_none() {
            let message = "an rpc without message-id, expected one".to_owned();
            return Err(error(Tag::MissingAttribute, message)
                .with(Info::Attribute("message-id".into(), "rpc".into())));
        }
        match rpc.children.as_slice() {
            [operation] => Ok(operation),
            [] => {
                Err(error(Tag::MissingElement, "an rpc without an operation, expected one".into()))
            }
            many => Err(error(
                Tag::UnknownElement,
                format!("{} elements in an rpc, expected one operation", many.len()),
            )),
        }
    }

    /// A notification as it goes to the client. `time` is its event time (RFC 3339).
    pub fn notification(&mut self, time: &str, notification: &Node) -> Vec<u8> {
        let mut content = String::new();
        xml::write(&mut content, self.schema, std::slice::from_ref(notification), None);
        self.notification_text(time, &content)
    }

    /// The same of a notification that is written already, by [`xml::write`] without a namespace
    /// around it.
    pub fn notification_text(&mut self, time: &str, content: &str) -> Vec<u8> {
        self.counts.notifications = self.counts.notifications.saturating_add(1);
        let mut out = format!("<notification xmlns=\"{NOTIFICATION}\"><eventTime>");
        xml::text(&mut out, time);
        out.push_str("</eventTime>");
        out.push_str(content);
        out.push_str("</notification>");
        framed(self.framing, &out)
    }
}

/// What this server can do, as URIs. Modules of YANG 1.1 are in the library alone; those of YANG 1
/// stand here too (RFC 6020, section 5.6.4), which RFC 6022, section 2, and RFC 6243, section 4.3,
/// ask for of theirs: a client that does not find the former does not call `get-schema`.
pub fn capabilities(schema: &Schema) -> Vec<String> {
    let mut all: Vec<String> = [
        BASE_1_0,
        BASE_1_1,
        "urn:ietf:params:netconf:capability:xpath:1.0",
        "urn:ietf:params:netconf:capability:with-defaults:1.0?basic-mode=explicit&also-supported=report-all,trim",
        "urn:ietf:params:netconf:capability:with-operational-defaults:1.0?basic-mode=explicit&also-supported=report-all,trim",
    ]
    .map(str::to_owned)
    .into();
    let library = schema.module("ietf-yang-library");
    all.extend(library.map(|library| {
        format!(
            "urn:ietf:params:netconf:capability:yang-library:1.1?revision={}&content-id={}",
            library.revision,
            schema.content_id()
        )
    }));
    let first = schema.modules().iter().filter(|module| module.implemented && module.version_1());
    all.extend(first.map(|module| {
        let (name, revision) = (&module.name, &module.revision);
        let mut uri = format!("{}?module={name}&revision={revision}", module.namespace);
        if !module.features.is_empty() {
            uri.push_str("&features=");
            uri.push_str(&module.features.join(","));
        }
        uri
    }));
    all
}

fn hello(schema: &Schema, id: u32) -> String {
    let mut out = format!("<hello xmlns=\"{NETCONF}\"><capabilities>");
    for capability in capabilities(schema) {
        out.push_str("<capability>");
        xml::text(&mut out, &capability);
        out.push_str("</capability>");
    }
    out.push_str(&format!("</capabilities><session-id>{id}</session-id></hello>"));
    out
}

/// The framing that both know, of a client's hello.
fn greeted(message: &str, limits: &xml::Limits) -> Result<Framing, String> {
    let hello = Element::read(message, limits).map_err(|error| error.to_string())?;
    if !hello.is(NETCONF, "hello") {
        return Err(format!("element {}", hello.name));
    }
    if hello.child(NETCONF, "session-id").is_some() {
        return Err("a hello with a session-id, which is the server's to give".into());
    }
    let capabilities = hello
        .child(NETCONF, "capabilities")
        .ok_or("a hello without capabilities, which no client sends")?;
    let has = |uri: &str| {
        capabilities
            .children
            .iter()
            .any(|found| found.is(NETCONF, "capability") && found.trimmed() == uri)
    };
    if has(BASE_1_1) {
        Ok(Framing::Chunked)
    } else if has(BASE_1_0) {
        Ok(Framing::EndOfMessage)
    } else {
        Err("a hello without a version of NETCONF that is known here".into())
    }
}

/// `rpc-reply` with every attribute of the request.
fn reply(out: &mut String, rpc: Option<&Element>, content: impl FnOnce(&mut String)) {
    out.push_str(&format!("<rpc-reply xmlns=\"{NETCONF}\""));
    if let Some(rpc) = rpc {
        for (prefix, namespace) in rpc.declared.iter().filter(|(prefix, _)| !prefix.is_empty()) {
            out.push_str(" xmlns:");
            out.push_str(prefix);
            out.push_str("=\"");
            xml::attribute_text(out, namespace);
            out.push('"');
        }
        for attribute in &rpc.attributes {
            out.push(' ');
            out.push_str(&attribute.written);
            out.push_str("=\"");
            xml::attribute_text(out, &attribute.value);
            out.push('"');
        }
    }
    out.push('>');
    content(out);
    out.push_str("</rpc-reply>");
}
