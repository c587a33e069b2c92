//! What a client can ask: `get`, `get-config`, `get-data`, `get-schema`, the ends of sessions, and
//! the operations of subscriptions.

use super::session::{Then, World};
use crate::error::{Info, Layer, NETCONF, OperationError, Tag};
use crate::operation::{Body, Call, Caller, Store, Transport, View};
use crate::read::{Encoding, ReadError};
use crate::schema::Definition;
use crate::select::{self, Defaults, Filter, FilterError, Which};
use crate::tree::Node;
use crate::xml::{self, Element};

const MONITORING: &str = "urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring";
const NMDA: &str = "urn:ietf:params:xml:ns:yang:ietf-netconf-nmda";
const WITH_DEFAULTS: &str = "urn:ietf:params:xml:ns:yang:ietf-netconf-with-defaults";

/// A request that has the form of one.
pub(super) struct Request<'a> {
    pub view: View<'a>,
    pub caller: &'a Caller,
    pub rpc: &'a Element,
    pub operation: &'a Element,
    /// The whole message.
    pub text: &'a str,
}

/// What it came to.
pub(super) struct Done {
    /// What stands in the reply; `ok` without.
    pub data: Option<String>,
    pub then: Then,
}

impl Done {
    const fn data(data: String) -> Self {
        Self { data: Some(data), then: Then::Continue }
    }
}

/// Carries out a request.
pub(super) fn call(request: &Request<'_>, world: &World<'_>) -> Result<Done, OperationError> {
    let operation = request.operation;
    let schema = request.view.schema;
    let namespace = operation.namespace.as_deref().unwrap_or_default();
    let module = schema.module_of(namespace);
    let unknown = || {
        let mut named = schema.rpcs().iter().filter(|known| known.name == operation.name);
        // Of a module that has nothing to do with it, or of none.
        if let Some(known) = named.next().filter(|known| *known.module.namespace != *namespace) {
            return OperationError::protocol(
                Tag::UnknownNamespace,
                format!(
                    "operation {} of namespace {namespace:?}, expected {:?}",
                    operation.name, known.module.namespace
                ),
            )
            .with(Info::Namespace(namespace.into(), operation.name.clone()));
        }
        OperationError::protocol(
            Tag::OperationNotSupported,
            format!("operation {}, which this server does not have", operation.name),
        )
        .with(Info::Element(operation.name.clone()))
    };
    let definition = module
        .and_then(|module| crate::schema::find(schema.rpcs(), &module.name, &operation.name))
        .ok_or_else(unknown)?;
    if !request.view.access.may_call(definition) {
        return Err(OperationError::protocol(
            Tag::AccessDenied,
            format!("operation {}, which {} may not call", operation.name, request.caller.user),
        ));
    }
    known(request, definition)?;
    match (&*definition.module.name, &*definition.name) {
        ("ietf-netconf", "get") => get(request, Store::Operational),
        ("ietf-netconf", "get-config") => get_config(request),
        ("ietf-netconf-nmda", "get-data") => get_data(request),
        ("ietf-netconf-monitoring", "get-schema") => get_schema(request),
        ("ietf-netconf", "close-session") => Ok(Done { data: None, then: Then::Close }),
        ("ietf-netconf", "kill-session") => kill(request, world),
        _ if world.operations.has(definition) => other(request, world),
        _ => Err(unknown()),
    }
}

/// Refuses elements that the operation does not have.
fn known(request: &Request<'_>, definition: &Definition) -> Result<(), OperationError> {
    for element in &request.operation.children {
        let namespace = element.namespace.as_deref().unwrap_or_default();
        let mut named = definition.children_named(&element.name).peekable();
        if named.peek().is_none() {
            return Err(OperationError::protocol(
                Tag::UnknownElement,
                format!("element {} in {}, which it does not have", element.name, definition.name),
            )
            .with(Info::Element(element.name.clone())));
        }
        if !named.any(|child| *child.module.namespace == *namespace) {
            return Err(OperationError::protocol(
                Tag::UnknownNamespace,
                format!(
                    "element {} of namespace {namespace:?} in {}",
                    element.name, definition.name
                ),
            )
            .with(Info::Namespace(namespace.into(), element.name.clone())));
        }
    }
    Ok(())
}

/// `get` (RFC 6241, section 7.7).
fn get(request: &Request<'_>, store: Store) -> Result<Done, OperationError> {
    let filter = request
        .operation
        .child(NETCONF, "filter")
        .map(|element| typed_filter(request, element))
        .transpose()?;
    let defaults = mode(request, WITH_DEFAULTS)?;
    let nodes = selected(request, store, filter.as_ref(), None)?;
    Ok(data(request, NETCONF, shown(request, nodes, store.shown(defaults))?))
}

/// `get-config` (RFC 6241, section 7.1), of the one datastore that is configured.
fn get_config(request: &Request<'_>) -> Result<Done, OperationError> {
    let source = request.operation.child(NETCONF, "source").ok_or_else(|| missing("source"))?;
    match source.children.as_slice() {
        [one] if one.is(NETCONF, "running") => get(request, Store::Running),
        [one] => Err(OperationError::protocol(
            Tag::InvalidValue,
            format!("source {}, expected running: there is no other", one.name),
        )
        .with(Info::Element(one.name.clone()))),
        _ => Err(missing("running")),
    }
}

/// `get-data` (RFC 8526, section 3.1).
fn get_data(request: &Request<'_>) -> Result<Done, OperationError> {
    let schema = request.view.schema;
    let input = schema.read_rpc(request.text).map_err(invalid)?;
    let identity = input.leaf("datastore").ok_or_else(|| missing("datastore"))?;
    let store = Store::read(identity).ok_or_else(|| {
        OperationError::application(
            Tag::InvalidValue,
            format!("datastore {identity}, expected operational or running of ietf-datastores"),
        )
    })?;
    let around = [request.rpc, request.operation];
    let filter = match request.operation.child(NMDA, "xpath-filter") {
        Some(element) => {
            let around = [around[0], around[1], element];
            let found = Filter::xpath_in_xml(schema, element.trimmed(), &around);
            Some(found.map_err(|error| unfit(&error))?)
        }
        None => request
            .operation
            .child(NMDA, "subtree-filter")
            .map(|element| Filter::Subtree(in_scope(element, &around))),
    };
    let defaults = mode(request, NMDA)?;
    let levels = input.leaf("max-depth").and_then(|text| text.parse().ok());
    let mut nodes = selected(request, store, filter.as_ref(), levels)?;
    match input.leaf("config-filter") {
        Some("true") => nodes = select::which(nodes, Which::Config),
        Some(_) => nodes = select::which(nodes, Which::Nonconfig),
        None => {}
    }
    nodes = shown(request, nodes, store.shown(defaults))?;
    Ok(data(request, NMDA, nodes))
}

/// `get-schema` (RFC 6022, section 3.1).
fn get_schema(request: &Request<'_>) -> Result<Done, OperationError> {
    let leaf = |name: &str| {
        let mut found = request.operation.children.iter().filter(|child| *child.name == *name);
        match (found.next(), found.next()) {
            (found, None) => Ok(found),
            (_, Some(_)) => Err(OperationError::protocol(
                Tag::InvalidValue,
                format!("element {name} twice, expected it once"),
            )
            .with(Info::Element(name.into()))),
        }
    };
    let identifier = leaf("identifier")?.ok_or_else(|| missing("identifier"))?.trimmed();
    let version = leaf("version")?.map(Element::trimmed).unwrap_or_default();
    let no = |message: String| OperationError::application(Tag::InvalidValue, message);
    if let Some(format) = leaf("format")?.filter(|format| !is_yang(request, format)) {
        return Err(no(format!("format {}, expected yang", format.trimmed())));
    }
    let found = request.view.schema.modules().iter().find(|module| {
        *module.name == *identifier && (version.is_empty() || *module.revision == *version)
    });
    let text = found.and_then(|module| module.text).ok_or_else(|| {
        let of = if version.is_empty() { String::new() } else { format!(" of {version}") };
        no(format!("schema {identifier}{of}, which this server does not have"))
    })?;
    let mut out = format!("<data xmlns=\"{MONITORING}\">");
    xml::text(&mut out, text);
    out.push_str("</data>");
    Ok(Done::data(out))
}

/// Whether a format is YANG. Without a prefix it is, whatever the default namespace: clients send
/// the word alone, as RFC 6022 writes it.
fn is_yang(request: &Request<'_>, format: &Element) -> bool {
    let Some((prefix, name)) = format.trimmed().split_once(':') else {
        return format.trimmed() == "yang";
    };
    let around = [format, request.operation, request.rpc];
    let mut declared = around.iter().flat_map(|element| &element.declared);
    let namespace = declared.find(|(found, _)| **found == *prefix).map(|(_, namespace)| namespace);
    name == "yang" && namespace.is_some_and(|namespace| **namespace == *MONITORING)
}

/// `kill-session` (RFC 6241, section 7.9).
fn kill(request: &Request<'_>, world: &World<'_>) -> Result<Done, OperationError> {
    let no = |message: String| {
        OperationError::protocol(Tag::InvalidValue, message)
            .with(Info::Element("session-id".into()))
    };
    let element =
        request.operation.child(NETCONF, "session-id").ok_or_else(|| missing("session-id"))?;
    let text = element.trimmed();
    let id = text.parse().map_err(|_| no(format!("session-id {text:?}, expected a number")))?;
    if request.caller.transport == Transport::Netconf(id) {
        return Err(no(format!("session-id {id}, which is this session: close-session ends it")));
    }
    if (world.kill)(id) {
        Ok(Done { data: None, then: Then::Continue })
    } else {
        Err(no(format!("session-id {id}, which is no session")))
    }
}

/// An operation of subscriptions.
fn other(request: &Request<'_>, world: &World<'_>) -> Result<Done, OperationError> {
    let input = request.view.schema.read_rpc(request.text).map_err(invalid)?;
    let around = [request.rpc, request.operation];
    let output = world.operations.call(&Call {
        caller: request.caller,
        access: request.view.access,
        input: &input,
        body: Body::Xml(&around),
        encoding: Encoding::Xml,
        base: "",
    })?;
    if output.is_empty() {
        return Ok(Done { data: None, then: Then::Continue });
    }
    let mut out = String::new();
    xml::write(&mut out, request.view.schema, &output, Some(NETCONF));
    Ok(Done::data(out))
}

/// The filter of `get` and `get-config`.
fn typed_filter(request: &Request<'_>, element: &Element) -> Result<Filter, OperationError> {
    // The attributes are of NETCONF, with its prefix or without one.
    let attribute = |name: &str| {
        element
            .attributes
            .iter()
            .find(|attribute| {
                *attribute.name == *name
                    && attribute.namespace.as_deref().is_none_or(|namespace| namespace == NETCONF)
            })
            .map(|attribute| &*attribute.value)
    };
    let around = [request.rpc, request.operation];
    match attribute("type").unwrap_or("subtree") {
        "subtree" => Ok(Filter::Subtree(in_scope(element, &around))),
        "xpath" => {
            let expression = attribute("select").ok_or_else(|| {
                OperationError::protocol(Tag::MissingAttribute, "an XPath filter without select")
                    .with(Info::Attribute("select".into(), "filter".into()))
            })?;
            let around = [around[0], around[1], element];
            Filter::xpath_in_xml(request.view.schema, expression, &around)
                .map_err(|error| unfit(&error))
        }
        other => Err(OperationError::protocol(
            Tag::BadAttribute,
            format!("filter of type {other:?}, expected subtree or xpath"),
        )
        .with(Info::Attribute("type".into(), "filter".into()))),
    }
}

/// An element with the declarations of those around it, the nearest first.
fn in_scope(element: &Element, around: &[&Element]) -> Element {
    let mut own = element.clone();
    own.declared.extend(around.iter().rev().flat_map(|outer| outer.declared.iter().cloned()));
    own
}

fn selected(
    request: &Request<'_>,
    store: Store,
    filter: Option<&Filter>,
    levels: Option<u16>,
) -> Result<Vec<Node>, OperationError> {
    let wanted =
        |definition: &Definition| filter.is_none_or(|filter| filter.may_select(definition));
    let top = request.view.top(store, wanted);
    match filter {
        None => Ok(match levels {
            Some(levels) => select::depth(top, levels),
            None => top,
        }),
        Some(filter) => filter.of(request.view.schema, top, levels).map_err(|error| unfit(&error)),
    }
}

/// The mode for values that are defaults.
fn mode(request: &Request<'_>, namespace: &str) -> Result<Defaults, OperationError> {
    let element =
        request.operation.children.iter().find(|child| child.is(namespace, "with-defaults"));
    element.map_or(Ok(Defaults::Explicit), |element| {
        Defaults::read(element.trimmed()).ok_or_else(|| {
            OperationError::protocol(
                Tag::InvalidValue,
                format!(
                    "with-defaults {:?}, expected explicit, trim or report-all",
                    element.trimmed()
                ),
            )
            .with(Info::Element("with-defaults".into()))
        })
    })
}

fn shown(
    request: &Request<'_>,
    nodes: Vec<Node>,
    mode: Defaults,
) -> Result<Vec<Node>, OperationError> {
    select::defaults(request.view.schema, nodes, mode)
        .map_err(|error| OperationError::application(Tag::OperationFailed, error.to_string()))
}

fn data(request: &Request<'_>, namespace: &str, nodes: Vec<Node>) -> Done {
    if nodes.is_empty() {
        return Done::data(format!("<data xmlns=\"{namespace}\"/>"));
    }
    let mut out = format!("<data xmlns=\"{namespace}\">");
    xml::write(&mut out, request.view.schema, &nodes, Some(namespace));
    out.push_str("</data>");
    Done::data(out)
}

fn missing(name: &str) -> OperationError {
    OperationError::protocol(Tag::MissingElement, format!("no element {name}, expected one"))
        .with(Info::Element(name.into()))
}

fn unfit(error: &FilterError) -> OperationError {
    OperationError::protocol(Tag::InvalidValue, error.to_string())
}

/// What libyang refuses, as an error of the protocol.
fn invalid(error: ReadError) -> OperationError {
    let mut refused = OperationError::new(Layer::Protocol, error.tag, error.what);
    refused.path = error.path.map(Into::into);
    refused.app_tag = error.app_tag.map(Into::into);
    refused
}
