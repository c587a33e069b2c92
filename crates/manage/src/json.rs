//! Trees as JSON (RFC 7951).

use crate::schema::{Definition, Kind, Type};
use crate::tree::{Content, Node};

/// An object with these top-level nodes, each name with its module.
pub fn object(nodes: &[Node]) -> String {
    let mut out = String::new();
    write_object(&mut out, nodes, None);
    out
}

/// The same at the end of a text. `within` is the module of the node that holds these; a name that
/// is in it has no prefix.
pub fn write_object(out: &mut String, nodes: &[Node], within: Option<&str>) {
    out.push('{');
    members(out, nodes, within);
    out.push('}');
}

fn members(out: &mut String, nodes: &[Node], within: Option<&str>) {
    let mut rest = nodes;
    let mut first = true;
    while let Some(node) = rest.first() {
        let definition = node.definition;
        let alike = if definition.many() {
            rest.iter().take_while(|other| other.definition.is(definition)).count()
        } else {
            1
        };
        let (these, others) = rest.split_at(alike);
        rest = others;
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        name(out, definition, within);
        if definition.many() {
            out.push('[');
            for (nth, node) in these.iter().enumerate() {
                if nth > 0 {
                    out.push(',');
                }
                content(out, node);
            }
            out.push(']');
        } else {
            content(out, node);
        }
    }
}

/// `"module:name":`
fn name(out: &mut String, definition: &Definition, within: Option<&str>) {
    out.push('"');
    if within != Some(&definition.module.name) {
        out.push_str(&definition.module.name);
        out.push(':');
    }
    out.push_str(&definition.name);
    out.push_str("\":");
}

fn content(out: &mut String, node: &Node) {
    match &node.content {
        Content::Inner(children) => {
            write_object(out, children, Some(&node.definition.module.name));
        }
        Content::Any(nodes) => write_object(out, nodes, None),
        Content::Value(value) => match node.definition.kind {
            Kind::Leaf(Type::Number | Type::Boolean)
            | Kind::LeafList(Type::Number | Type::Boolean) => {
                out.push_str(value);
            }
            Kind::Leaf(Type::Empty) | Kind::LeafList(Type::Empty) => out.push_str("[null]"),
            _ => text(out, value),
        },
    }
}

/// A JSON string.
pub fn text(out: &mut String, value: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, octet) in value.bytes().enumerate() {
        let escape = match octet {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(value.get(plain..at).unwrap_or_default());
        plain = at + 1;
        if escape.is_empty() {
            out.push_str(&format!("\\u{octet:04x}"));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(value.get(plain..).unwrap_or_default());
    out.push('"');
}
