//! The `fields` parameter of RESTCONF (RFC 8040, section 4.8.3).

use std::fmt;

use super::path::percent_decoded;
use crate::schema::{Definition, Schema};
use crate::tree::{Content, Node};

/// Parentheses within each other, at most.
pub const FIELDS_DEPTH_MAX: usize = 16;

/// Fields of one expression, at most.
const FIELDS_MAX: usize = 256;

/// Which children of a node are wanted.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<Field>);

#[derive(Clone, Debug)]
struct Field {
    definition: &'static Definition,
    /// All that is in it.
    whole: bool,
    inner: Fields,
}

/// Why an expression is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldsError(pub String);

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FieldsError {}

impl Fields {
    /// Reads an expression, not decoded, about the children of a node; none for the root.
    ///
    /// # Errors
    ///
    /// Syntax, and names that the modules do not have there.
    pub fn read(
        schema: &'static Schema,
        of: Option<&'static Definition>,
        raw: &str,
    ) -> Result<Self, FieldsError> {
        let text = percent_decoded(raw).map_err(|fault| FieldsError(fault.to_string()))?;
        let mut reading = Reading { schema, rest: &text, count: 0 };
        let mut fields = Self::default();
        reading.expression(of, &mut fields, 0)?;
        if reading.rest.is_empty() {
            Ok(fields)
        } else {
            Err(FieldsError(format!("{:?}, expected `;` or the end", reading.rest)))
        }
    }

    /// What of a node's children is wanted, with the keys of the node.
    pub fn of(&self, mut node: Node) -> Node {
        if let Content::Inner(children) = &mut node.content {
            let keys = node.definition.keys();
            *children = self.among(std::mem::take(children), keys);
        }
        node
    }

    /// What of top-level nodes is wanted.
    pub fn of_root(&self, top: Vec<Node>) -> Vec<Node> {
        self.among(top, &[])
    }

    fn among(&self, nodes: Vec<Node>, keys: &[Box<str>]) -> Vec<Node> {
        nodes
            .into_iter()
            .filter_map(|node| {
                match self.0.iter().find(|field| field.definition.is(node.definition)) {
                    Some(field) if field.whole => Some(node),
                    Some(field) => Some(field.inner.of(node)),
                    None => keys.contains(&node.definition.name).then_some(node),
                }
            })
            .collect()
    }

    fn entry(&mut self, definition: &'static Definition) -> &mut Field {
        let at = self.0.iter().position(|field| field.definition.is(definition));
        let at = at.unwrap_or_else(|| {
            self.0.push(Field { definition, whole: false, inner: Self::default() });
            self.0.len() - 1
        });
        // It is there: found or pushed.
        &mut self.0[at]
    }
}

struct Reading<'a> {
    schema: &'static Schema,
    rest: &'a str,
    count: usize,
}

impl Reading<'_> {
    fn expression(
        &mut self,
        of: Option<&'static Definition>,
        fields: &mut Fields,
        depth: usize,
    ) -> Result<(), FieldsError> {
        if depth > FIELDS_DEPTH_MAX {
            let found = format!("more than {FIELDS_DEPTH_MAX} parentheses within each other");
            return Err(FieldsError(found));
        }
        loop {
            self.one(of, fields, depth)?;
            match self.rest.strip_prefix(';') {
                Some(rest) => self.rest = rest,
                None => return Ok(()),
            }
        }
    }

    fn one(
        &mut self,
        of: Option<&'static Definition>,
        fields: &mut Fields,
        depth: usize,
    ) -> Result<(), FieldsError> {
        self.count += 1;
        if self.count > FIELDS_MAX {
            return Err(FieldsError(format!("more than {FIELDS_MAX} fields")));
        }
        let definition = self.name(of)?;
        let field = fields.entry(definition);
        if let Some(rest) = self.rest.strip_prefix('/') {
            self.rest = rest;
            return self.one(Some(definition), &mut field.inner, depth + 1).and_then(|()| {
                if depth < FIELDS_DEPTH_MAX {
                    Ok(())
                } else {
                    Err(FieldsError("too long a path".into()))
                }
            });
        }
        let Some(rest) = self.rest.strip_prefix('(') else {
            field.whole = true;
            return Ok(());
        };
        self.rest = rest;
        self.expression(Some(definition), &mut field.inner, depth + 1)?;
        self.rest = self
            .rest
            .strip_prefix(')')
            .ok_or_else(|| FieldsError(format!("{:?}, expected `)`", self.rest)))?;
        Ok(())
    }

    fn name(
        &mut self,
        of: Option<&'static Definition>,
    ) -> Result<&'static Definition, FieldsError> {
        let end = self.rest.find(['/', ';', '(', ')']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let (module, local) = match name.split_once(':') {
            Some((module, local)) => (Some(module), local),
            None => (None, name),
        };
        let found = match (of, module) {
            (Some(of), module) => of.child(module, local),
            (None, Some(module)) => self.schema.top(module, local),
            (None, None) => None,
        };
        found.ok_or_else(|| {
            FieldsError(format!("field {name:?}, which is not there in the modules"))
        })
    }
}
