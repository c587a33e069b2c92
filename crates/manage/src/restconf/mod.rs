//! RESTCONF (RFC 8040, RFC 8527): a request in, a response out.
//!
//! A path is split before anything in it is decoded. What a user may not read is not there: such a
//! target is answered as one that never was. Nothing can be written; what would is refused with the
//! methods that there are.
// QUE-pub.2, QUE-sec.1

mod data;
mod media;
mod operations;
mod query;

use std::time::SystemTime;

use crate::error::{Layer, OperationError, Tag, write_json, write_xml};
use crate::operation::{Caller, Operations, Store, View};
use crate::read::Encoding;
use crate::schema::{Definition, Module, Schema};
use crate::tree::{Builder, Node};

pub use media::accepted;

/// Where the API begins.
pub const ROOT: &str = "/restconf";

/// A request, as far as it matters here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// `GET` and so on.
    pub method: &'a str,
    /// The path, not decoded.
    pub path: &'a str,
    /// What follows `?`, not decoded.
    pub query: Option<&'a str>,
    /// `Accept`, all of its lines joined by commas.
    pub accept: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `If-None-Match`.
    pub if_none_match: Option<&'a str>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Header fields, in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body. Of an answer to `HEAD` it is here too, and not sent.
    pub body: Vec<u8>,
}

impl Response {
    fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn text(status: u16, media: &str, body: String) -> Self {
        let mut response = Self::new(status).with("content-type", media);
        response.body = body.into_bytes();
        response
    }

    /// The value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| &**value)
    }
}

/// What one user is served.
#[derive(Clone, Copy)]
pub struct Service<'a> {
    /// What the user sees.
    pub view: View<'a>,
    /// The user.
    pub caller: &'a Caller,
    /// Operations that can be called.
    pub operations: &'a dyn Operations,
    /// Where the user reaches this server: `https://host:port`.
    pub base: &'a str,
    /// When rows were published last.
    pub modified: SystemTime,
    /// Now.
    pub now: SystemTime,
}

/// Why a request is refused, with the status where it is not that of its tag.
#[derive(Debug)]
struct Refused {
    error: OperationError,
    status: u16,
    allow: Option<&'static str>,
}

impl From<OperationError> for Refused {
    fn from(error: OperationError) -> Self {
        Self { status: error.status.unwrap_or(error.tag.status()), error, allow: None }
    }
}

impl Refused {
    fn bad(message: impl Into<Box<str>>) -> Self {
        OperationError::protocol(Tag::InvalidValue, message).into()
    }

    fn absent(message: impl Into<Box<str>>) -> Self {
        let error = OperationError::application(Tag::InvalidValue, message);
        Self { error, status: 404, allow: None }
    }

    fn method(method: &str, allow: &'static str) -> Self {
        let error = OperationError::protocol(
            Tag::OperationNotSupported,
            format!("{method}, expected one of {allow}: nothing can be written here"),
        );
        Self { error, status: 405, allow: Some(allow) }
    }
}

const READ: &str = "GET, HEAD, OPTIONS";
const CALL: &str = "OPTIONS, POST";

/// Answers a request.
pub fn handle(service: &Service<'_>, request: &Request<'_>) -> Response {
    answered(service, request).unwrap_or_else(|refused| {
        refusal(service.view.schema, request, refused.status, refused.allow, &[refused.error])
    })
}

/// Errors in the encoding that was asked for, or that of what was sent; JSON where neither tells.
pub fn errors(
    schema: &Schema,
    accept: Option<&str>,
    sent: Option<&str>,
    status: u16,
    found: &[OperationError],
) -> Response {
    let encoding = accepted(accept, sent).unwrap_or(Encoding::Json);
    let body = match encoding {
        Encoding::Json => write_json(found),
        Encoding::Xml => write_xml(schema, found),
    };
    Response::text(status, media::name(encoding), body).with("cache-control", "no-cache")
}

fn refusal(
    schema: &Schema,
    request: &Request<'_>,
    status: u16,
    allow: Option<&'static str>,
    found: &[OperationError],
) -> Response {
    let response = errors(schema, request.accept, request.content_type, status, found);
    match allow {
        Some(allow) => response.with("allow", allow),
        None => response,
    }
}

fn answered(service: &Service<'_>, request: &Request<'_>) -> Result<Response, Refused> {
    if request.path == "/.well-known/host-meta" {
        return reading(request, || Ok(host_meta()));
    }
    let rest = request
        .path
        .strip_prefix(ROOT)
        .ok_or_else(|| Refused::absent(format!("{}, expected {ROOT}", request.path)))?;
    let rest = match rest {
        "" | "/" => "",
        rest => rest
            .strip_prefix('/')
            .ok_or_else(|| Refused::absent(format!("{}, expected {ROOT}", request.path)))?,
    };
    let (first, rest) = match rest.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (rest, None),
    };
    match (first, rest) {
        ("", None) => reading(request, || api(service, request)),
        ("data", rest) => reading(request, || {
            data::read(service, request, Store::Operational, rest.unwrap_or(""))
        }),
        ("ds", Some(rest)) => {
            let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
            let store = Store::read(name)
                .ok_or_else(|| Refused::absent(format!("datastore {name}, which is not served")))?;
            reading(request, || data::read(service, request, store, rest))
        }
        ("operations", None) => reading(request, || operations::list(service, request)),
        ("operations", Some(name)) => operations::call(service, request, name),
        ("yang-library-version", None) => reading(request, || version(service, request)),
        ("schema", Some(name)) => reading(request, || text(service, name)),
        _ => Err(Refused::absent(format!("{}, which is no resource of this API", request.path))),
    }
}

/// Answers where only reading makes sense.
fn reading(
    request: &Request<'_>,
    get: impl FnOnce() -> Result<Response, Refused>,
) -> Result<Response, Refused> {
    match request.method {
        "GET" | "HEAD" => get(),
        "OPTIONS" => Ok(Response::new(204).with("allow", READ)),
        other => Err(Refused::method(other, READ)),
    }
}

fn encoding(request: &Request<'_>) -> Result<Encoding, Refused> {
    accepted(request.accept, request.content_type).ok_or_else(|| {
        let found = request.accept.unwrap_or_default();
        let error = OperationError::protocol(
            Tag::InvalidValue,
            format!(
                "Accept {found:?}, expected application/yang-data+json or application/yang-data+xml"
            ),
        );
        Refused { error, status: 406, allow: None }
    })
}

/// RFC 6415, with the link of RFC 8040, section 3.1.
fn host_meta() -> Response {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\">\
         <Link rel=\"restconf\" href=\"{ROOT}\"/></XRD>\n"
    );
    Response::text(200, "application/xrd+xml", body)
}

/// The revision of `ietf-yang-library` (RFC 8527, section 2).
fn library_version(schema: &Schema) -> String {
    schema
        .module("ietf-yang-library")
        .map_or_else(String::new, |module| module.revision.to_string())
}

fn api(service: &Service<'_>, request: &Request<'_>) -> Result<Response, Refused> {
    query::none(request.query)?;
    let encoding = encoding(request)?;
    let version = library_version(service.view.schema);
    let body = match encoding {
        Encoding::Json => format!(
            "{{\"ietf-restconf:restconf\":{{\"data\":{{}},\"operations\":{{}},\
             \"yang-library-version\":\"{version}\"}}}}"
        ),
        Encoding::Xml => format!(
            "<restconf xmlns=\"{}\"><data/><operations/>\
             <yang-library-version>{version}</yang-library-version></restconf>",
            crate::error::RESTCONF
        ),
    };
    Ok(Response::text(200, media::name(encoding), body))
}

fn version(service: &Service<'_>, request: &Request<'_>) -> Result<Response, Refused> {
    query::none(request.query)?;
    let encoding = encoding(request)?;
    let version = library_version(service.view.schema);
    let body = match encoding {
        Encoding::Json => format!("{{\"ietf-restconf:yang-library-version\":\"{version}\"}}"),
        Encoding::Xml => format!(
            "<yang-library-version xmlns=\"{}\">{version}</yang-library-version>",
            crate::error::RESTCONF
        ),
    };
    Ok(Response::text(200, media::name(encoding), body))
}

/// Where the text of a module is, on a server that is reached at `base`: `https://host:port`.
pub fn location(base: &str, module: &Module) -> String {
    format!("{base}{ROOT}/schema/{}@{}.yang", module.name, module.revision)
}

/// The text of a module, for who may read where it is: in either form of the library.
// QUE-sec.1
fn text(service: &Service<'_>, name: &str) -> Result<Response, Refused> {
    let found = name
        .strip_suffix(".yang")
        .and_then(|name| name.split_once('@'))
        .and_then(|(name, revision)| {
            let modules = service.view.schema.modules();
            modules.iter().find(|found| *found.name == *name && *found.revision == *revision)
        })
        .filter(|module| {
            let library = |top: &Definition| *top.module.name == *"ietf-yang-library";
            let told = location(service.base, module);
            tells(&service.view.top(Store::Operational, library), &told)
        })
        .and_then(|module| module.text);
    let found =
        found.ok_or_else(|| Refused::absent(format!("module {name}, which is not here")))?;
    Ok(Response::text(200, "application/yang", found.to_owned()))
}

/// Whether a leaf of these trees says this.
fn tells(nodes: &[Node], value: &str) -> bool {
    nodes.iter().any(|node| node.text() == Some(value) || tells(node.children(), value))
}

/// Capabilities of RFC 8040, section 9.1.1, and RFC 8527.
const CAPABILITIES: [&str; 5] = [
    "urn:ietf:params:restconf:capability:defaults:1.0?basic-mode=explicit",
    "urn:ietf:params:restconf:capability:depth:1.0",
    "urn:ietf:params:restconf:capability:fields:1.0",
    "urn:ietf:params:restconf:capability:with-defaults:1.0",
    "urn:ietf:params:restconf:capability:with-operational-defaults:1.0",
];

/// `ietf-restconf-monitoring:restconf-state`.
pub fn state(schema: &Schema) -> Option<Node> {
    let definition = schema.top("ietf-restconf-monitoring", "restconf-state")?;
    let node = Builder::new(definition).inner("capabilities", |list| {
        CAPABILITIES.iter().fold(list, |list, uri| list.leaf("capability", *uri))
    });
    Some(node.build())
}

fn layer(error: OperationError) -> OperationError {
    OperationError { layer: Layer::Protocol, ..error }
}
