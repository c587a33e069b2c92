//! Subtree filters (RFC 6241, section 6).
//!
//! A node is kept whole where an element selects it, in part where elements select in it, and not at
//! all where an element asks for a value that it does not have. Several elements for the same node
//! add up.

use super::level;
use crate::schema::{Definition, Kind, Schema, Type};
use crate::tree::{Content, Node};
use crate::xml::Element;

/// What the elements in `filter` select of top-level nodes, and so many levels of it. An empty filter
/// selects nothing.
pub fn subtree(
    schema: &Schema,
    top: Vec<Node>,
    filter: &Element,
    levels: Option<u16>,
) -> Vec<Node> {
    let scope = Scope { outer: None, element: filter };
    let wanted: Vec<Wanted<'_>> =
        filter.children.iter().map(|element| Wanted { element, outer: &scope }).collect();
    selected(schema, top, &wanted, levels)
}

/// The names of the top-level nodes that a filter can select.
pub fn may_select(filter: &Element, definition: &Definition) -> bool {
    filter.children.iter().any(|element| named(element, definition))
}

/// An attribute that an element in the filter asks for, and the name of that element.
pub fn attribute(filter: &Element) -> Option<(&str, &str)> {
    filter.children.iter().find_map(|element| {
        let own = element.attributes.first().map(|own| (&*own.name, &*element.name));
        own.or_else(|| attribute(element))
    })
}

/// An element and the declarations that hold around it.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    element: &'a Element,
    outer: &'a Scope<'a>,
}

/// The namespace declarations of an element and of those around it.
struct Scope<'a> {
    outer: Option<&'a Scope<'a>>,
    element: &'a Element,
}

impl Scope<'_> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        let own = self.element.declared.iter().find(|(name, _)| **name == *prefix);
        match own {
            Some((_, namespace)) => Some(namespace),
            None => self.outer?.namespace(prefix),
        }
    }
}

fn named(element: &Element, definition: &Definition) -> bool {
    let namespace = element.namespace.as_deref().unwrap_or("");
    *element.name == *definition.name
        && (namespace.is_empty() || *namespace == *definition.module.namespace)
        // RFC 6241, section 6.2.2: an attribute has to match. No node here has any.
        && element.attributes.is_empty()
}

fn selected(
    schema: &Schema,
    nodes: Vec<Node>,
    wanted: &[Wanted<'_>],
    levels: Option<u16>,
) -> Vec<Node> {
    nodes
        .into_iter()
        .filter_map(|node| {
            let about: Vec<&Wanted<'_>> =
                wanted.iter().filter(|wanted| named(wanted.element, node.definition)).collect();
            if about.is_empty() { None } else { one(schema, node, &about, levels) }
        })
        .collect()
}

fn one(
    schema: &Schema,
    mut node: Node,
    about: &[&Wanted<'_>],
    levels: Option<u16>,
) -> Option<Node> {
    let scopes: Vec<Scope<'_>> = about
        .iter()
        .map(|wanted| Scope { outer: Some(wanted.outer), element: wanted.element })
        .collect();
    let mut inner: Vec<Wanted<'_>> = Vec::new();
    let mut matched: Vec<&Element> = Vec::new();
    let mut any = false;
    for (wanted, scope) in about.iter().zip(&scopes) {
        let element = wanted.element;
        if element.children.is_empty() {
            // A value is asked for, or the node is selected whole.
            let text = element.trimmed();
            if text.is_empty() || has_value(schema, &node, text, scope) {
                return Some(whole(node, levels));
            }
            continue;
        }
        let (values, others): (Vec<&Element>, Vec<&Element>) = element
            .children
            .iter()
            .partition(|child| child.children.is_empty() && !child.trimmed().is_empty());
        let all = values.iter().all(|value| {
            let scope = Scope { outer: Some(scope), element: value };
            node.children().iter().any(|child| {
                named(value, child.definition) && has_value(schema, child, value.trimmed(), &scope)
            })
        });
        if !all {
            continue;
        }
        if others.is_empty() {
            return Some(whole(node, levels));
        }
        any = true;
        matched.extend(values);
        inner.extend(others.into_iter().map(|element| Wanted { element, outer: scope }));
    }
    if !any {
        return None;
    }
    let Content::Inner(children) = &mut node.content else { return None };
    let keys = node.definition.keys();
    let mut found = false;
    let mut kept = Vec::new();
    for child in std::mem::take(children) {
        let asked = matched.iter().any(|value| named(value, child.definition));
        let key = keys.contains(&child.definition.name);
        if asked {
            found = true;
            kept.push(child);
            continue;
        }
        let own = key.then(|| child.clone());
        let mut chosen = selected(schema, vec![child], &inner, levels);
        found |= !chosen.is_empty();
        if chosen.is_empty() {
            chosen.extend(own);
        }
        kept.extend(chosen);
    }
    if !found {
        return None;
    }
    *children = kept;
    Some(node)
}

/// So many levels of a node that is selected.
fn whole(node: Node, levels: Option<u16>) -> Node {
    match levels {
        Some(levels) => level(node, levels),
        None => node,
    }
}

fn has_value(schema: &Schema, node: &Node, text: &str, scope: &Scope<'_>) -> bool {
    let Some(value) = node.text() else { return false };
    match node.definition.kind {
        Kind::Leaf(Type::Prefixed) | Kind::LeafList(Type::Prefixed) => {
            value == text || canonical(schema, text, scope).is_some_and(|text| value == text)
        }
        _ => value == text,
    }
}

/// An identity with the name of its module instead of a prefix.
fn canonical(schema: &Schema, text: &str, scope: &Scope<'_>) -> Option<String> {
    let (prefix, local) = text.split_once(':').unwrap_or(("", text));
    let module = schema.module_of(scope.namespace(prefix)?)?;
    Some(format!("{}:{local}", module.name))
}
