//! A filter as it comes with a request: a subtree or an XPath expression.

use std::fmt;

use serde_json::Value;

use super::{subtree, tops, with_module_names, xpath};
use crate::schema::{Definition, Schema};
use crate::tree::{Any, Node};
use crate::xml::{Element, is_name};

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// RFC 6241, section 6: the children of this element.
    Subtree(Element),
    /// An expression with module names as prefixes.
    Xpath(Box<str>),
    /// One that is sound and cannot select anything: it names a namespace that nobody has here.
    Nothing,
}

/// Why a filter is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError(pub String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// An XPath expression in XML, whose prefixes are declared by the elements around it, the outermost
    /// first.
    ///
    /// # Errors
    ///
    /// What is not evaluated here.
    pub fn xpath_in_xml(
        schema: &Schema,
        expression: &str,
        around: &[&Element],
    ) -> Result<Self, FilterError> {
        let namespace = |prefix: &str| {
            let declared = around.iter().rev().flat_map(|element| &element.declared);
            declared
                .into_iter()
                .find(|(name, _)| **name == *prefix)
                .map(|(_, namespace)| &**namespace)
        };
        with_module_names(schema, expression, &namespace)
            .map(|found| found.map_or(Self::Nothing, |found| Self::Xpath(found.into())))
            .map_err(|error| FilterError(error.to_string()))
    }

    /// An XPath expression in JSON: its prefixes are module names (RFC 8639, section 2.2).
    ///
    /// # Errors
    ///
    /// What is not evaluated here.
    pub fn xpath_in_json(schema: &Schema, expression: &str) -> Result<Self, FilterError> {
        let namespace = |prefix: &str| schema.module(prefix).map(|module| &*module.namespace);
        with_module_names(schema, expression, &namespace)
            .map(|found| found.map_or(Self::Nothing, |found| Self::Xpath(found.into())))
            .map_err(|error| FilterError(error.to_string()))
    }

    /// A subtree filter in JSON: an object whose members are nodes, as RFC 7951 names them.
    ///
    /// # Errors
    ///
    /// What is no object, is too deep, has a name that no node can have, or asks for metadata
    /// (RFC 7952), which no node here has.
    pub fn subtree_in_json(schema: &Schema, object: &Value) -> Result<Self, FilterError> {
        let mut filter = Element::default();
        members(schema, object, None, &mut filter.children, 0)?;
        Ok(Self::Subtree(filter))
    }

    /// A subtree filter of which it will be said what it is.
    ///
    /// # Errors
    ///
    /// One that asks for attributes: no node here has any, so that it could never select anything
    /// there, and what is said of filters has no attributes.
    pub fn subtree_in_xml(filter: Element) -> Result<Self, FilterError> {
        match super::subtree::attribute(&filter) {
            None => Ok(Self::Subtree(filter)),
            Some((attribute, of)) => Err(FilterError(format!(
                "attribute {attribute:?} of {of:?} in a filter, expected none: no node here has any"
            ))),
        }
    }

    /// Whether what it selects can be in a top-level node.
    pub fn leads_to(&self, definition: &Definition) -> bool {
        let Self::Xpath(expression) = self else { return self.may_select(definition) };
        tops(expression)
            .is_none_or(|tops| tops.contains(&(&*definition.module.name, &*definition.name)))
    }

    /// Whether a top-level node is needed to find out what it selects.
    pub fn may_select(&self, definition: &Definition) -> bool {
        match self {
            Self::Subtree(filter) => super::subtree::may_select(filter, definition),
            // A predicate can ask for any other.
            Self::Xpath(_) => true,
            Self::Nothing => false,
        }
    }

    /// A subtree filter as data.
    pub(crate) fn anydata(&self, schema: &Schema) -> Vec<Any> {
        match self {
            Self::Subtree(filter) => {
                filter.children.iter().map(|child| any(schema, None, child)).collect()
            }
            Self::Xpath(_) | Self::Nothing => Vec::new(),
        }
    }

    /// What it selects of top-level nodes, and so many levels of each.
    ///
    /// # Errors
    ///
    /// An expression that libyang does not evaluate to nodes.
    pub fn of(
        &self,
        schema: &'static Schema,
        top: Vec<Node>,
        levels: Option<u16>,
    ) -> Result<Vec<Node>, FilterError> {
        match self {
            Self::Subtree(filter) => Ok(subtree(schema, top, filter, levels)),
            Self::Xpath(expression) => xpath(schema, &top, expression, levels)
                .map_err(|error| FilterError(error.to_string())),
            Self::Nothing => Ok(Vec::new()),
        }
    }
}

fn any(schema: &Schema, parent: Option<&'static Definition>, element: &Element) -> Any {
    let namespace = element.namespace.clone().unwrap_or_default();
    let module = schema.modules().iter().find(|module| *module.namespace == *namespace);
    let definition = module.and_then(|module| match parent {
        None => schema.top(&module.name, &element.name),
        Some(parent) => parent.child(Some(&module.name), &element.name),
    });
    Any {
        definition,
        module: module.map_or_else(|| namespace.clone(), |module| module.name.clone()),
        namespace,
        name: element.name.clone(),
        declared: element.declared.clone(),
        text: element.text.trim().into(),
        children: element.children.iter().map(|child| any(schema, definition, child)).collect(),
    }
}

/// Objects within each other in a filter, at most.
const DEPTH_MAX: usize = 32;

fn members(
    schema: &Schema,
    value: &Value,
    within: Option<&str>,
    out: &mut Vec<Element>,
    depth: usize,
) -> Result<(), FilterError> {
    if depth > DEPTH_MAX {
        return Err(FilterError(format!(
            "more than {DEPTH_MAX} objects within each other in a filter"
        )));
    }
    let Value::Object(object) = value else {
        return Err(FilterError(
            "a filter that is no object, expected one with nodes in it".into(),
        ));
    };
    for (name, value) in object {
        if name.starts_with('@') {
            return Err(FilterError(format!(
                "{name:?} in a filter, expected none: no node here has metadata"
            )));
        }
        let (module, local) = match name.split_once(':') {
            Some((module, local)) => (Some(module), local),
            None => (within, name.as_str()),
        };
        let Some(module) = module else {
            return Err(FilterError(format!("{name:?} in a filter, expected module:name")));
        };
        // What is asked for is shown among the subscriptions, in XML too.
        if !is_name(module) || !is_name(local) {
            return Err(FilterError(format!("{name:?} in a filter, expected the name of a node")));
        }
        // A module that is not there selects nothing.
        let namespace = schema.module(module).map_or(module, |module| &module.namespace);
        let instances = match value {
            Value::Array(values) if !matches!(values.as_slice(), [Value::Null]) => {
                values.as_slice()
            }
            other => std::slice::from_ref(other),
        };
        for instance in instances {
            let mut element = Element {
                namespace: Some(namespace.into()),
                name: local.into(),
                ..Element::default()
            };
            match instance {
                Value::Object(_) => {
                    members(schema, instance, Some(module), &mut element.children, depth + 1)?;
                }
                Value::String(text) => element.text.clone_from(text),
                Value::Number(number) => element.text = number.to_string(),
                Value::Bool(value) => element.text = value.to_string(),
                Value::Null | Value::Array(_) => {}
            }
            out.push(element);
        }
    }
    Ok(())
}
