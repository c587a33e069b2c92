//! Trees as XML (RFC 7950, section 7 and 9).

use std::borrow::Cow;

use crate::schema::{Definition, Kind, Schema, Type};
use crate::select::{Token, tokens};
use crate::tree::{Any, Content, Node};

/// Writes nodes at the end of a text. Each element declares its namespace where it is not that of
/// the one around it; `within` is the namespace that holds where they come to stand.
pub fn write(out: &mut String, schema: &Schema, nodes: &[Node], within: Option<&str>) {
    for node in nodes {
        element(out, schema, node, within);
    }
}

fn element(out: &mut String, schema: &Schema, node: &Node, within: Option<&str>) {
    let definition = node.definition;
    let namespace = &*definition.module.namespace;
    out.push('<');
    out.push_str(&definition.name);
    if within != Some(namespace) {
        declare(out, None, namespace);
    }
    match &node.content {
        Content::Value(value) => {
            let value = if prefixed(definition) { qualified(value) } else { value.as_ref().into() };
            if prefixed(definition) {
                declare_prefixes(out, schema, &value);
            }
            if value.is_empty() {
                out.push_str("/>");
                return;
            }
            out.push('>');
            text(out, &value);
        }
        Content::Inner(children) if children.is_empty() => {
            out.push_str("/>");
            return;
        }
        Content::Inner(children) => {
            out.push('>');
            write(out, schema, children, Some(namespace));
        }
        Content::Any(nodes) => {
            out.push('>');
            nodes.iter().for_each(|node| any(out, node, namespace));
        }
    }
    out.push_str("</");
    out.push_str(&definition.name);
    out.push('>');
}

/// `anydata`, whose names are made sure of when it is read.
fn any(out: &mut String, node: &Any, within: &str) {
    out.push('<');
    out.push_str(&node.name);
    if *node.namespace != *within {
        declare(out, None, &node.namespace);
    }
    for (prefix, namespace) in node.declared.iter().filter(|(prefix, _)| !prefix.is_empty()) {
        declare(out, Some(prefix), namespace);
    }
    out.push('>');
    if node.children.is_empty() {
        text(out, &node.text);
    }
    node.children.iter().for_each(|child| any(out, child, &node.namespace));
    out.push_str("</");
    out.push_str(&node.name);
    out.push('>');
}

const fn prefixed(definition: &Definition) -> bool {
    matches!(definition.kind, Kind::Leaf(Type::Prefixed) | Kind::LeafList(Type::Prefixed))
}

/// A path with a prefix for every name: in JSON only the first of a module has one (RFC 7951,
/// section 6.11). Anything else as it is.
fn qualified(value: &str) -> Cow<'_, str> {
    if !value.starts_with('/') {
        return value.into();
    }
    let Ok(tokens) = tokens(value) else { return value.into() };
    let mut out = String::new();
    let mut written = 0;
    let mut module = "";
    for (nth, (at, token)) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        match name.split_once(':') {
            Some((prefix, _)) => module = prefix,
            None => {
                let next = tokens.get(nth + 1).map(|(_, token)| *token);
                if matches!(next, Some(Token::Symbol("(" | "::"))) || module.is_empty() {
                    continue;
                }
                out.push_str(value.get(written..*at).unwrap_or_default());
                out.push_str(module);
                out.push(':');
                written = *at;
            }
        }
    }
    out.push_str(value.get(written..).unwrap_or_default());
    out.into()
}

/// Declares every module that is named as a prefix in a value, under its own name.
fn declare_prefixes(out: &mut String, schema: &Schema, value: &str) {
    let mut declared: Vec<&str> = Vec::new();
    for (at, _) in value.match_indices(':') {
        let before = value.get(..at).unwrap_or_default();
        let start = before
            .rfind(|character: char| {
                !(character.is_ascii_alphanumeric() || "-_.".contains(character))
            })
            .map_or(0, |found| found + 1);
        let name = before.get(start..).unwrap_or_default();
        if declared.contains(&name) {
            continue;
        }
        if let Some(module) = schema.module(name) {
            declare(out, Some(name), &module.namespace);
            declared.push(name);
        }
    }
}

fn declare(out: &mut String, prefix: Option<&str>, namespace: &str) {
    out.push_str(" xmlns");
    if let Some(prefix) = prefix {
        out.push(':');
        out.push_str(prefix);
    }
    out.push_str("=\"");
    attribute_text(out, namespace);
    out.push('"');
}

/// Character data. What XML 1.0 has no way to say becomes U+FFFD.
pub fn text(out: &mut String, value: &str) {
    escape(out, value, false);
}

/// The value of an attribute, between double quotes.
pub fn attribute_text(out: &mut String, value: &str) {
    escape(out, value, true);
}

fn escape(out: &mut String, value: &str, attribute: bool) {
    for character in value.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' if attribute => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' if attribute => out.push_str(&format!("&#{};", u32::from(character))),
            '\n' | '\t' => out.push(character),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
}
