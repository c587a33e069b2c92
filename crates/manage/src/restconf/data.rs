//! Reading a datastore or a resource in it.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::query::Parameters;
use super::{Refused, Request, Response, Service, encoding, media};
use crate::error::RESTCONF;
use crate::json;
use crate::operation::Store;
use crate::read::Encoding;
use crate::select::{self, Fields, Path, PathFault, Which};
use crate::tree::Node;
use crate::xml;

pub(super) fn read(
    service: &Service<'_>,
    request: &Request<'_>,
    store: Store,
    raw: &str,
) -> Result<Response, Refused> {
    let schema = service.view.schema;
    let path = Path::read(schema, raw).map_err(|fault| match fault {
        PathFault::Syntax(what) => Refused::bad(what),
        PathFault::Unknown(what) => Refused::absent(what),
    })?;
    let parameters = Parameters::read(request.query)?;
    let of = path.0.last().map(|step| step.definition);
    let fields = parameters
        .fields
        .map(|raw| Fields::read(schema, of, raw))
        .transpose()
        .map_err(|error| Refused::bad(error.to_string()))?;
    let encoding = encoding(request)?;
    let first = path.0.first().map(|step| step.definition);
    let (top, seen_whole) =
        service.view.top_of(store, |definition| first.is_none_or(|first| first.is(definition)));
    let top = if path.0.is_empty() { top } else { path.only(top) };
    let top = select::defaults(schema, top, store.shown(parameters.defaults))
        .map_err(|error| Refused::bad(error.to_string()))?;
    let body = if path.0.is_empty() {
        whole(service, top, &parameters, fields.as_ref(), encoding)
    } else {
        let nodes = path.find_all(&top).into_iter().cloned();
        let nodes: Vec<Node> = nodes.filter_map(|node| of_kind(node, parameters.which)).collect();
        match nodes.len() {
            0 => return Err(Refused::absent(format!("{path}, which is not there"))),
            1 => {}
            // RFC 8040, section 4.3
            entries if encoding == Encoding::Xml => {
                return Err(Refused::bad(format!(
                    "{path}, which has {entries} entries, expected one in XML: {}, or JSON",
                    path.naming()
                )));
            }
            _ => {}
        }
        these(service, nodes, &parameters, fields.as_ref(), encoding)
    };
    let response = Response::text(200, media::name(encoding), body);
    Ok(validated(service, request, response, seen_whole))
}

/// A node with what of it is configuration or state; none where a leaf is neither.
fn of_kind(node: Node, which: Which) -> Option<Node> {
    let definition = node.definition;
    let terminal = definition.terminal();
    let keys: Vec<Node> = node
        .children()
        .iter()
        .filter(|child| definition.keys().contains(&child.definition.name))
        .cloned()
        .collect();
    let mut kept = select::which(vec![node], which);
    // A container that has nothing of the kind is there all the same.
    kept.pop().or_else(|| (!terminal).then(|| Node::inner(definition, keys)))
}

/// One node, or entries of one list.
fn these(
    service: &Service<'_>,
    mut nodes: Vec<Node>,
    parameters: &Parameters<'_>,
    fields: Option<&Fields>,
    encoding: Encoding,
) -> String {
    if let Some(fields) = fields {
        nodes = nodes.into_iter().map(|node| fields.of(node)).collect();
    }
    if let Some(levels) = parameters.depth {
        nodes = select::depth(nodes, levels);
    }
    match encoding {
        Encoding::Json => json::object(&nodes),
        Encoding::Xml => {
            let mut out = String::new();
            xml::write(&mut out, service.view.schema, &nodes, None);
            out
        }
    }
}

/// The root of a datastore.
fn whole(
    service: &Service<'_>,
    top: Vec<Node>,
    parameters: &Parameters<'_>,
    fields: Option<&Fields>,
    encoding: Encoding,
) -> String {
    let mut nodes = select::which(top, parameters.which);
    if let Some(fields) = fields {
        nodes = fields.of_root(nodes);
    }
    match parameters.depth {
        Some(1) => nodes.clear(),
        Some(levels) => nodes = select::depth(nodes, levels - 1),
        None => {}
    }
    let mut out = String::new();
    match encoding {
        Encoding::Json => {
            out.push_str("{\"ietf-restconf:data\":");
            json::write_object(&mut out, &nodes, Some("ietf-restconf"));
            out.push('}');
        }
        Encoding::Xml => {
            out.push_str("<data xmlns=\"");
            out.push_str(RESTCONF);
            out.push_str("\">");
            xml::write(&mut out, service.view.schema, &nodes, Some(RESTCONF));
            out.push_str("</data>");
        }
    }
    out
}

/// The response with its validators, or 304 where the client has it already (RFC 9110, section 13).
fn validated(
    service: &Service<'_>,
    request: &Request<'_>,
    response: Response,
    seen_whole: bool,
) -> Response {
    // Of what is in it: it has to differ by user, by encoding and by what was asked for.
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    hasher.write(&response.body);
    let tag = format!("\"{:016x}\"", hasher.finish());
    // A date has whole seconds. It is told only once its second is over: nothing more can happen in
    // it then. To one who does not see all of it, it would tell of the rest.
    let modified = seconds(service.modified);
    let over = seen_whole && modified < seconds(service.now);
    let unchanged = match (request.if_none_match, request.if_modified_since) {
        (Some(tags), _) => tags.split(',').any(|found| {
            let found = found.trim();
            found == "*" || found.strip_prefix("W/").unwrap_or(found) == tag
        }),
        (None, Some(date)) => {
            let date = httpdate::parse_http_date(date).ok();
            over && date.is_some_and(|date| seconds(date) >= modified && only_rows(request))
        }
        (None, None) => false,
    };
    let mut response = if unchanged { Response::new(304) } else { response };
    response = response.with("etag", tag).with("cache-control", "no-cache");
    if over && only_rows(request) {
        let date = UNIX_EPOCH + Duration::from_secs(modified);
        response = response.with("last-modified", httpdate::fmt_http_date(date));
    }
    response
}

/// Whether what is read changes when rows are published, and only then.
fn only_rows(request: &Request<'_>) -> bool {
    request.path.contains("/ietf-interfaces:interfaces")
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
