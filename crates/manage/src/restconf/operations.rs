//! Calling operations (RFC 8040, section 3.6).

use serde_json::Value;

use super::{CALL, Refused, Request, Response, Service, encoding, layer, media, query};
use crate::error::{OperationError, RESTCONF, Tag};
use crate::json;
use crate::operation::{Body, Call};
use crate::read::Encoding;
use crate::schema::{Definition, find};
use crate::select::percent_decoded;
use crate::tree::Node;
use crate::xml::{self, Element, Limits};

/// `GET` on the operations: those that the user may call.
pub(super) fn list(service: &Service<'_>, request: &Request<'_>) -> Result<Response, Refused> {
    query::none(request.query)?;
    let encoding = encoding(request)?;
    let callable = service.view.schema.rpcs().iter().filter(|operation| {
        service.operations.has(operation) && service.view.access.may_call(operation)
    });
    let body = match encoding {
        Encoding::Json => {
            let members: Vec<String> =
                callable.map(|operation| format!("\"{operation}\":[null]")).collect();
            format!("{{\"ietf-restconf:operations\":{{{}}}}}", members.join(","))
        }
        Encoding::Xml => {
            let members: String = callable
                .map(|operation| {
                    format!("<{} xmlns=\"{}\"/>", operation.name, operation.module.namespace)
                })
                .collect();
            format!("<operations xmlns=\"{RESTCONF}\">{members}</operations>")
        }
    };
    Ok(Response::text(200, media::name(encoding), body))
}

/// A call.
pub(super) fn call(
    service: &Service<'_>,
    request: &Request<'_>,
    raw: &str,
) -> Result<Response, Refused> {
    let schema = service.view.schema;
    let name = percent_decoded(raw).map_err(|fault| Refused::bad(fault.to_string()))?;
    let operation = name
        .split_once(':')
        .and_then(|(module, local)| find(schema.rpcs(), module, local))
        .filter(|operation| service.operations.has(operation))
        .ok_or_else(|| Refused::absent(format!("operation {name}, which is not here")))?;
    match request.method {
        "POST" => {}
        "OPTIONS" => return Ok(Response::new(204).with("allow", CALL)),
        other => return Err(Refused::method(other, CALL)),
    }
    query::none(request.query)?;
    let accepted = encoding(request)?;
    if !service.view.access.may_call(operation) {
        return Err(OperationError::protocol(
            Tag::AccessDenied,
            format!("operation {name}, which {} may not call", service.caller.user),
        )
        .into());
    }
    let output = called(service, request, operation, accepted)?;
    if output.is_empty() {
        return Ok(Response::new(204));
    }
    let body = match accepted {
        Encoding::Json => {
            let mut out = format!("{{\"{}:output\":", operation.module.name);
            json::write_object(&mut out, &output, Some(&operation.module.name));
            out.push('}');
            out
        }
        Encoding::Xml => {
            let mut out = format!("<output xmlns=\"{}\">", operation.module.namespace);
            xml::write(&mut out, schema, &output, Some(&operation.module.namespace));
            out.push_str("</output>");
            out
        }
    };
    Ok(Response::text(200, media::name(accepted), body))
}

fn called(
    service: &Service<'_>,
    request: &Request<'_>,
    operation: &'static Definition,
    accepted: Encoding,
) -> Result<Vec<Node>, Refused> {
    let schema = service.view.schema;
    let text =
        std::str::from_utf8(request.body).map_err(|_| Refused::bad("a body that is not UTF-8"))?;
    let malformed =
        |what: String| Refused::from(OperationError::protocol(Tag::MalformedMessage, what));
    let done = |input: &Node, body: Body<'_>| {
        let call = Call {
            caller: service.caller,
            access: service.view.access,
            input,
            body,
            // Without a body the way in is that of the answer.
            encoding: encoding_of(request).unwrap_or(accepted),
            base: service.base,
        };
        service.operations.call(&call).map_err(Refused::from)
    };
    if text.trim().is_empty() {
        let input = Node::inner(operation, Vec::new());
        return done(&input, Body::Nothing);
    }
    let encoding = encoding_of(request).ok_or_else(|| {
        let found = request.content_type.unwrap_or("none");
        let error = OperationError::protocol(
            Tag::InvalidValue,
            format!("Content-Type {found}, expected application/yang-data+json or +xml"),
        );
        Refused { error, status: 415, allow: None }
    })?;
    let read = |text: &str| {
        schema.read_restconf_input(operation, encoding, text).map_err(|error| {
            let refused = OperationError::application(error.tag, error.what);
            let refused = OperationError { path: error.path.map(Into::into), ..refused };
            Refused::from(layer(refused))
        })
    };
    match encoding {
        Encoding::Json => {
            let value =
                json::read(text).map_err(|error| malformed(format!("{error} of the body")))?;
            let inner = input_of(operation, &value)?;
            // Written anew: libyang sees the same as we do.
            let input = read(&value.to_string())?;
            done(&input, Body::Json(inner))
        }
        Encoding::Xml => {
            let element = Element::read(text, &Limits::default())
                .map_err(|error| malformed(error.to_string()))?;
            let input = read(text)?;
            done(&input, Body::Xml(&[&element]))
        }
    }
}

/// The input in a body of JSON: an object, alone in another one. libyang takes more for it, and ends
/// the process where it is an array.
fn input_of<'a>(operation: &Definition, body: &'a Value) -> Result<&'a Value, Refused> {
    let name = format!("{}:input", operation.module.name);
    body.as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.get(&name))
        .filter(|input| input.is_object())
        .ok_or_else(|| {
            Refused::bad(format!("a body that is not {{\"{name}\": {{...}}}}, expected it"))
        })
}

fn encoding_of(request: &Request<'_>) -> Option<Encoding> {
    request.content_type.and_then(media::of_body)
}
