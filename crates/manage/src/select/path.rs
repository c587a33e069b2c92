//! A resource of a datastore as RESTCONF names it (RFC 8040, section 3.5.3).
//!
//! The text is split at `/`, then at the first `=`, then at `,`, and only then percent-decoded: a
//! key may hold any of them.

use std::fmt;

use crate::schema::{Definition, Kind, Schema, find};
use crate::tree::{Content, Node};

/// A node on the way.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which.
    pub definition: &'static Definition,
    /// The values of its keys, in their order; of a leaf-list its value.
    pub keys: Vec<Box<str>>,
}

/// The way from the root of a datastore to a node; empty for the root. Its last step may leave the
/// keys of a list out, and then leads to every entry.
#[derive(Clone, Debug, Default)]
pub struct Path(pub Vec<Step>);

/// Why a text names no resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathFault {
    /// It is not written as a resource is.
    Syntax(String),
    /// The modules have no such node.
    Unknown(String),
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(what) | Self::Unknown(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for PathFault {}

impl Path {
    /// Reads what follows `data/`, not decoded.
    ///
    /// # Errors
    ///
    /// Syntax, a node that the modules do not have, keys that are missing or too many.
    pub fn read(schema: &'static Schema, raw: &str) -> Result<Self, PathFault> {
        let mut steps: Vec<Step> = Vec::new();
        if raw.is_empty() {
            return Ok(Self(steps));
        }
        let mut segments = raw.split('/').peekable();
        while let Some(segment) = segments.next() {
            let (name, keys) = match segment.split_once('=') {
                Some((name, keys)) => (name, Some(keys)),
                None => (segment, None),
            };
            let name = percent_decoded(name)?;
            let (module, local) = match name.split_once(':') {
                Some((module, local)) => (Some(module), local),
                None => (None, &*name),
            };
            let found = match (steps.last(), module) {
                (Some(step), module) => step.definition.child(module, local),
                (None, Some(module)) => find(schema.data(), module, local),
                (None, None) => {
                    let found = format!("{name:?}, expected module:name in the first step");
                    return Err(PathFault::Syntax(found));
                }
            };
            let definition = found.ok_or_else(|| {
                PathFault::Unknown(format!("{name:?}, which the modules do not have there"))
            })?;
            let keys = keys
                .map(|keys| keys.split(',').map(percent_decoded).collect::<Result<Vec<_>, _>>())
                .transpose()?;
            let last = segments.peek().is_none();
            steps.push(Step { definition, keys: checked(definition, keys, last)? });
        }
        Ok(Self(steps))
    }

    /// The node that it leads to, among top-level nodes; of several the first.
    pub fn find<'a>(&self, top: &'a [Node]) -> Option<&'a Node> {
        self.find_all(top).into_iter().next()
    }

    /// The nodes that it leads to, among top-level nodes.
    pub fn find_all<'a>(&self, top: &'a [Node]) -> Vec<&'a Node> {
        let Some((last, around)) = self.0.split_last() else { return Vec::new() };
        let mut among = top;
        for step in around {
            let Some(node) = among.iter().find(|node| step.is(node)) else { return Vec::new() };
            among = node.children();
        }
        among.iter().filter(|node| last.is(node)).collect()
    }

    /// How one entry of the list that it leads to is named.
    pub fn naming(&self) -> String {
        self.0.last().map_or_else(String::new, |step| naming(step.definition))
    }

    /// What is left of top-level nodes when only this one, with all that is in it, and what is around
    /// it is kept.
    pub fn only(&self, top: Vec<Node>) -> Vec<Node> {
        only(&self.0, top)
    }
}

fn only(steps: &[Step], nodes: Vec<Node>) -> Vec<Node> {
    let Some((step, rest)) = steps.split_first() else { return nodes };
    let mut found = nodes.into_iter().filter(|node| step.is(node));
    if rest.is_empty() {
        return found.collect();
    }
    let Some(mut node) = found.next() else { return Vec::new() };
    let Content::Inner(children) = &mut node.content else { return Vec::new() };
    let keys = node.definition.keys();
    let (mut kept, others): (Vec<Node>, Vec<Node>) = std::mem::take(children)
        .into_iter()
        .partition(|child| keys.contains(&child.definition.name));
    let inner = only(rest, others);
    if inner.is_empty() {
        // A key is a resource too.
        let key =
            rest.len() == 1 && kept.iter().any(|key| rest.first().is_some_and(|step| step.is(key)));
        if !key {
            return Vec::new();
        }
    }
    kept.extend(inner);
    *children = kept;
    vec![node]
}

/// As RESTCONF has it, encoded; names are qualified where the module changes.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut within = None;
        for step in &self.0 {
            let module = &*step.definition.module.name;
            f.write_str("/")?;
            if within != Some(module) {
                write!(f, "{module}:")?;
            }
            within = Some(module);
            f.write_str(&step.definition.name)?;
            for (nth, key) in step.keys.iter().enumerate() {
                f.write_str(if nth == 0 { "=" } else { "," })?;
                percent_encode(f, key)?;
            }
        }
        Ok(())
    }
}

/// Writes a text with everything but unreserved characters (RFC 3986, section 2.3) percent-encoded.
///
/// # Errors
///
/// Those of what is written to.
pub fn percent_encode(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            write!(f, "{}", char::from(octet))?;
        } else {
            write!(f, "%{octet:02X}")?;
        }
    }
    Ok(())
}

/// How an entry of a list, or a value of a leaf-list, is named.
fn naming(definition: &Definition) -> String {
    let keys = definition.keys();
    let values: Vec<String> = keys.iter().map(|key| key.to_uppercase()).collect();
    match &definition.kind {
        Kind::LeafList(_) => format!("{}=VALUE", definition.name),
        _ if values.is_empty() => "which have no key".into(),
        _ => format!("{}={}", definition.name, values.join(",")),
    }
}

fn checked(
    definition: &'static Definition,
    keys: Option<Vec<Box<str>>>,
    last: bool,
) -> Result<Vec<Box<str>>, PathFault> {
    let expected = match &definition.kind {
        Kind::List { keys } => keys.len(),
        Kind::LeafList(_) => 1,
        _ => 0,
    };
    match keys {
        None if expected == 0 || last => Ok(Vec::new()),
        None => Err(PathFault::Syntax(format!(
            "{definition} on the way without its key, expected {}",
            naming(definition)
        ))),
        Some(_) if expected == 0 => {
            Err(PathFault::Syntax(format!("{definition} with a key, which it does not have")))
        }
        Some(keys) if keys.len() != expected => Err(PathFault::Syntax(format!(
            "{} keys of {definition}, expected {expected}",
            keys.len()
        ))),
        Some(keys) => Ok(keys),
    }
}

impl Step {
    /// Whether a node is the one, or one of those where no key is named.
    pub fn is(&self, node: &Node) -> bool {
        self.definition.is(node.definition)
            && match &node.content {
                Content::Value(value) => self.keys.first().is_none_or(|key| key == value),
                _ if self.keys.is_empty() => true,
                _ => {
                    node.key_values().count() == self.keys.len()
                        && node
                            .key_values()
                            .zip(&self.keys)
                            .all(|((_, value), key)| *value == **key)
                }
            }
    }
}

/// Decodes one piece of a URI.
///
/// # Errors
///
/// `%` without two hexadecimal digits, and octets that are no UTF-8.
pub fn percent_decoded(raw: &str) -> Result<Box<str>, PathFault> {
    if !raw.contains('%') {
        return Ok(raw.into());
    }
    let bad =
        || PathFault::Syntax(format!("{raw:?}, expected two hexadecimal digits after each %"));
    let mut octets = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(octet) = rest.next() {
        if octet != b'%' {
            octets.push(octet);
            continue;
        }
        let digit = |octet: Option<u8>| octet.and_then(|octet| char::from(octet).to_digit(16));
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let value = high.zip(low).ok_or_else(bad)?;
        octets.push(u8::try_from(value.0 * 16 + value.1).map_err(|_| bad())?);
    }
    String::from_utf8(octets)
        .map(Into::into)
        .map_err(|_| PathFault::Syntax(format!("{raw:?}, expected UTF-8")))
}
