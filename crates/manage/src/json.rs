//! Trees as JSON (RFC 7951), and the JSON that clients send as it is ([`read`]).

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::schema::{Definition, Kind, Type};
use crate::tree::{Any, Content, Node};

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
        Content::Any(nodes) => any(out, nodes, None),
        Content::Value(text) => value(out, &node.definition.kind, text),
    }
}

fn value(out: &mut String, kind: &Kind, value: &str) {
    match kind {
        Kind::Leaf(Type::Number | Type::Boolean) | Kind::LeafList(Type::Number | Type::Boolean) => {
            out.push_str(value)
        }
        Kind::Leaf(Type::Empty) | Kind::LeafList(Type::Empty) => out.push_str("[null]"),
        _ => text(out, value),
    }
}

/// `anydata`. Where nobody knows what it is, values are strings, what is empty an object, and what
/// comes more than once a list.
fn any(out: &mut String, nodes: &[Any], within: Option<&str>) {
    out.push('{');
    for (nth, node) in nodes.iter().enumerate() {
        let is_like = |other: &&Any| other.module == node.module && other.name == node.name;
        if nodes.iter().take(nth).any(|other| is_like(&other)) {
            continue;
        }
        if nth > 0 {
            out.push(',');
        }
        match within == Some(&node.module) {
            true => text(out, &node.name),
            false => text(out, &format!("{}:{}", node.module, node.name)),
        }
        out.push(':');
        let alike: Vec<&Any> = nodes.iter().filter(is_like).collect();
        let many = alike.len() > 1 || node.definition.is_some_and(Definition::many);
        if many {
            out.push('[');
        }
        for (nth, node) in alike.iter().enumerate() {
            if nth > 0 {
                out.push(',');
            }
            match node.definition.map(|definition| &definition.kind) {
                // Nobody has looked whether it has a value of its type.
                Some(kind @ (Kind::Leaf(_) | Kind::LeafList(_)))
                    if serde_json::from_str::<serde_json::Number>(&node.text).is_ok()
                        || matches!(&*node.text, "true" | "false") =>
                {
                    value(out, kind, &node.text);
                }
                Some(Kind::Leaf(_) | Kind::LeafList(_)) => text(out, &node.text),
                None if node.children.is_empty() && !node.text.is_empty() => {
                    text(out, &node.text);
                }
                _ => any(out, &node.children, Some(&node.module)),
            }
        }
        if many {
            out.push(']');
        }
    }
    out.push('}');
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

/// Reads a text of JSON in which no object has a name twice (RFC 7493, section 2.3): who reads the
/// first and who reads the last would have read something else.
///
/// # Errors
///
/// What is no JSON, or has a name twice, or more than 128 arrays and objects within each other.
pub fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Once>(text).map(|read| read.0)
}

struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OnceVisitor)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Once, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number out of range"))?;
        Ok(Once(number.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Once, E> {
        Ok(Once(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Once, A::Error> {
        let mut values = Vec::new();
        while let Some(Once(value)) = from.next_element()? {
            values.push(value);
        }
        Ok(Once(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Once, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format!("name {name:?} twice, expected once")));
            }
            let Once(value) = from.next_value()?;
            members.insert(name, value);
        }
        Ok(Once(members.into()))
    }
}
