//! Why an operation is refused: one type for RESTCONF (RFC 8040, section 7) and NETCONF (RFC 6241,
//! section 4.3 and appendix A).

use std::fmt;

use crate::json;
use crate::schema::{Module, Schema};
use crate::xml;

/// The namespace of NETCONF's own elements.
pub const NETCONF: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";
/// The namespace of RESTCONF's own elements.
pub const RESTCONF: &str = "urn:ietf:params:xml:ns:yang:ietf-restconf";

/// The layer at which an error was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The connection.
    Transport,
    /// Messages.
    Rpc,
    /// Operations and queries.
    Protocol,
    /// Data.
    Application,
}

impl Layer {
    /// `error-type`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Rpc => "rpc",
            Self::Protocol => "protocol",
            Self::Application => "application",
        }
    }
}

/// `error-tag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// In use already.
    InUse,
    /// A value that is not legal.
    InvalidValue,
    /// Too large a request or response.
    TooBig,
    /// An attribute is missing.
    MissingAttribute,
    /// An attribute has a value that is not legal.
    BadAttribute,
    /// An attribute is not expected.
    UnknownAttribute,
    /// An element is missing.
    MissingElement,
    /// An element has a value that is not legal.
    BadElement,
    /// An element is not expected.
    UnknownElement,
    /// An element has a namespace that is not expected.
    UnknownNamespace,
    /// Not permitted.
    AccessDenied,
    /// Something that is needed is used up.
    ResourceDenied,
    /// What was asked for is not there.
    DataMissing,
    /// This server does not do that.
    OperationNotSupported,
    /// It failed for another reason.
    OperationFailed,
    /// A message that is not well-formed.
    MalformedMessage,
}

impl Tag {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::InUse => "in-use",
            Self::InvalidValue => "invalid-value",
            Self::TooBig => "too-big",
            Self::MissingAttribute => "missing-attribute",
            Self::BadAttribute => "bad-attribute",
            Self::UnknownAttribute => "unknown-attribute",
            Self::MissingElement => "missing-element",
            Self::BadElement => "bad-element",
            Self::UnknownElement => "unknown-element",
            Self::UnknownNamespace => "unknown-namespace",
            Self::AccessDenied => "access-denied",
            Self::ResourceDenied => "resource-denied",
            Self::DataMissing => "data-missing",
            Self::OperationNotSupported => "operation-not-supported",
            Self::OperationFailed => "operation-failed",
            Self::MalformedMessage => "malformed-message",
        }
    }

    /// The HTTP status for it where nothing else is said (RFC 8040, section 7).
    pub const fn status(self) -> u16 {
        match self {
            Self::InUse | Self::ResourceDenied => 409,
            Self::TooBig => 413,
            Self::AccessDenied => 403,
            Self::DataMissing => 409,
            Self::OperationNotSupported => 405,
            Self::OperationFailed => 500,
            Self::InvalidValue
            | Self::MissingAttribute
            | Self::BadAttribute
            | Self::UnknownAttribute
            | Self::MissingElement
            | Self::BadElement
            | Self::UnknownElement
            | Self::UnknownNamespace
            | Self::MalformedMessage => 400,
        }
    }
}

/// An operation that is refused.
#[derive(Clone, Debug)]
pub struct OperationError {
    /// Where it was found.
    pub layer: Layer,
    /// What kind it is.
    pub tag: Tag,
    /// What kind it is in the words of a module: `module:identity` or text.
    pub app_tag: Option<Box<str>>,
    /// The node that it is about.
    pub path: Option<Box<str>>,
    /// For people: what was found, and what was expected.
    pub message: Box<str>,
    /// What the protocol has beside these.
    pub info: Info,
    /// The HTTP status, where it is not that of the tag.
    pub status: Option<u16>,
}

/// `error-info`.
#[derive(Clone, Debug, Default)]
pub enum Info {
    /// Nothing.
    #[default]
    Nothing,
    /// The element that is missing, bad or unknown.
    Element(Box<str>),
    /// The attribute that is missing, bad or unknown, and its element.
    Attribute(Box<str>, Box<str>),
    /// The namespace that is unknown, and its element.
    Namespace(Box<str>, Box<str>),
    /// Data of a module that is in no datastore: hints for a subscription that would be granted.
    Structure(Box<Structure>),
}

/// An instance of a `yang-data` structure with leaves only.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Its module.
    pub module: &'static Module,
    /// Its name.
    pub name: &'static str,
    /// Its leaves: names, values, and whether JSON has them as numbers. An identity has the name of
    /// its module before it.
    pub leaves: Vec<(&'static str, Box<str>, bool)>,
}

impl Structure {
    fn write_json(&self, out: &mut String) {
        out.push_str(&format!("{{\"{}:{}\":{{", self.module.name, self.name));
        for (nth, (name, value, number)) in self.leaves.iter().enumerate() {
            out.push_str(if nth == 0 { "\"" } else { ",\"" });
            out.push_str(name);
            out.push_str("\":");
            if *number {
                out.push_str(value);
            } else {
                json::text(out, value);
            }
        }
        out.push_str("}}");
    }

    fn write_xml(&self, out: &mut String, schema: &Schema) {
        out.push_str(&format!("<{} xmlns=\"{}\">", self.name, self.module.namespace));
        for (name, value, _) in &self.leaves {
            out.push_str(&format!("<{name}"));
            if let Some(module) = value.split_once(':').and_then(|(name, _)| schema.module(name)) {
                out.push_str(&format!(" xmlns:{}=\"{}\"", module.name, module.namespace));
            }
            out.push('>');
            xml::text(out, value);
            out.push_str(&format!("</{name}>"));
        }
        out.push_str(&format!("</{}>", self.name));
    }
}

impl OperationError {
    /// An error with nothing beside its kind and its words.
    pub fn new(layer: Layer, tag: Tag, message: impl Into<Box<str>>) -> Self {
        Self {
            layer,
            tag,
            app_tag: None,
            path: None,
            message: message.into(),
            info: Info::Nothing,
            status: None,
        }
    }

    /// One about data or what was asked of it.
    pub fn application(tag: Tag, message: impl Into<Box<str>>) -> Self {
        Self::new(Layer::Application, tag, message)
    }

    /// One about the operation itself.
    pub fn protocol(tag: Tag, message: impl Into<Box<str>>) -> Self {
        Self::new(Layer::Protocol, tag, message)
    }

    /// The same with an `error-app-tag`.
    #[must_use]
    pub fn with_app_tag(mut self, app_tag: impl Into<Box<str>>) -> Self {
        self.app_tag = Some(app_tag.into());
        self
    }

    /// The same with an HTTP status of its own.
    #[must_use]
    pub const fn with_status(mut self, status: Option<u16>) -> Self {
        self.status = status;
        self
    }

    /// The same about a node.
    #[must_use]
    pub fn at(mut self, path: impl Into<Box<str>>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The same with more about it.
    #[must_use]
    pub fn with(mut self, info: Info) -> Self {
        self.info = info;
        self
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tag.word(), self.message)
    }
}

impl std::error::Error for OperationError {}

/// `ietf-restconf:errors` in JSON.
pub fn write_json(errors: &[OperationError]) -> String {
    let mut out = String::from("{\"ietf-restconf:errors\":{\"error\":[");
    for (nth, error) in errors.iter().enumerate() {
        if nth > 0 {
            out.push(',');
        }
        let mut member = |name: &str, value: &str, first: bool| {
            out.push_str(if first { "{\"" } else { ",\"" });
            out.push_str(name);
            out.push_str("\":");
            json::text(&mut out, value);
        };
        member("error-type", error.layer.word(), true);
        member("error-tag", error.tag.word(), false);
        if let Some(app_tag) = &error.app_tag {
            member("error-app-tag", app_tag, false);
        }
        if let Some(path) = &error.path {
            member("error-path", path, false);
        }
        member("error-message", &error.message, false);
        if let Info::Structure(structure) = &error.info {
            out.push_str(",\"error-info\":");
            structure.write_json(&mut out);
        }
        out.push('}');
    }
    out.push_str("]}}");
    out
}

/// `errors` of RESTCONF in XML.
pub fn write_xml(schema: &Schema, errors: &[OperationError]) -> String {
    let mut out = format!("<errors xmlns=\"{RESTCONF}\">");
    for error in errors {
        out.push_str("<error>");
        element(&mut out, "error-type", error.layer.word());
        element(&mut out, "error-tag", error.tag.word());
        details(&mut out, error, "");
        if let Info::Structure(structure) = &error.info {
            out.push_str("<error-info>");
            structure.write_xml(&mut out, schema);
            out.push_str("</error-info>");
        }
        out.push_str("</error>");
    }
    out.push_str("</errors>");
    out
}

/// `rpc-error` of NETCONF, within an element of its namespace.
pub fn write_rpc_error(out: &mut String, schema: &Schema, error: &OperationError) {
    out.push_str("<rpc-error>");
    element(out, "error-type", error.layer.word());
    element(out, "error-tag", error.tag.word());
    element(out, "error-severity", "error");
    details(out, error, " xml:lang=\"en\"");
    let mut info: Vec<(&str, &str)> = Vec::new();
    match &error.info {
        Info::Nothing | Info::Structure(_) => {}
        Info::Element(name) => info.push(("bad-element", name)),
        Info::Attribute(name, of) => info.extend([("bad-attribute", &**name), ("bad-element", of)]),
        Info::Namespace(name, of) => info.extend([("bad-namespace", &**name), ("bad-element", of)]),
    }
    if !info.is_empty() {
        out.push_str("<error-info>");
        for (name, value) in info {
            element(out, name, value);
        }
        out.push_str("</error-info>");
    } else if let Info::Structure(structure) = &error.info {
        out.push_str("<error-info>");
        structure.write_xml(out, schema);
        out.push_str("</error-info>");
    }
    out.push_str("</rpc-error>");
}

/// What follows the kind of an error; the words for people have the attributes.
fn details(out: &mut String, error: &OperationError, attributes: &str) {
    if let Some(app_tag) = &error.app_tag {
        element(out, "error-app-tag", app_tag);
    }
    if let Some(path) = &error.path {
        element(out, "error-path", path);
    }
    out.push_str(&format!("<error-message{attributes}>"));
    xml::text(out, &error.message);
    out.push_str("</error-message>");
}

/// An element with text alone in it.
fn element(out: &mut String, name: &str, value: &str) {
    out.push_str(&format!("<{name}>"));
    xml::text(out, value);
    out.push_str(&format!("</{name}>"));
}
