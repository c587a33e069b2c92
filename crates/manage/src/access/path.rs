//! `node-instance-identifier` of RFC 8341: a path to a node in which keys may be left out, for every
//! entry of a list.

use std::fmt;

use super::Here;
use crate::schema::{Definition, Schema, find};

/// A path, with the keys that it names.
#[derive(Clone, Debug)]
pub struct Pattern {
    steps: Vec<Step>,
    written: Box<str>,
}

/// A node on the way, with those of its keys that are named.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub definition: &'static Definition,
    pub keys: Vec<Key>,
}

/// Two that are written alike are the same.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Pattern {}

/// As it was written.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError(pub String);

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PathError {}

impl Pattern {
    /// Reads `/module:container/list[key='value']/leaf`. A step without a module is of that of the
    /// step before.
    ///
    /// # Errors
    ///
    /// A step that the modules do not have, a key that the list does not have, or bad syntax.
    pub fn read(schema: &'static Schema, text: &str) -> Result<Self, PathError> {
        let mut steps: Vec<Step> = Vec::new();
        let mut rest = text;
        if text == "/" {
            return Ok(Self { steps, written: text.into() });
        }
        while !rest.is_empty() {
            rest = rest
                .strip_prefix('/')
                .ok_or_else(|| PathError(format!("{rest:?}, expected `/` and a step")))?;
            let end = rest.find(['/', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            rest = after;
            let (module, local) = match name.split_once(':') {
                Some((module, local)) => (Some(module), local),
                None => (None, name),
            };
            let found = match steps.last() {
                Some(step) => step.definition.child(module, local),
                None => module.and_then(|module| find(schema.data(), module, local)),
            };
            let definition = found.ok_or_else(|| {
                PathError(format!(
                    "{name:?} in {text:?}, expected a node of the modules, as module:name"
                ))
            })?;
            let mut keys = Vec::new();
            while let Some(inner) = rest.strip_prefix('[') {
                let (key, after) = predicate(inner).ok_or_else(|| {
                    PathError(format!("{rest:?} in {text:?}, expected [key='value']"))
                })?;
                if !definition.keys().contains(&key.0) {
                    return Err(PathError(format!(
                        "key {:?} of {definition}, which has none of that name",
                        key.0
                    )));
                }
                keys.push(key);
                rest = after;
            }
            steps.push(Step { definition, keys });
        }
        if steps.is_empty() {
            return Err(PathError("an empty path, expected /module:node".into()));
        }
        Ok(Self { steps, written: text.into() })
    }

    /// The nodes on its way.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the node at the end of a way is this one or in it: certainly, for some of the entries
    /// that the way leaves open, or not (none).
    pub(super) fn fits(&self, way: &[Step]) -> Option<bool> {
        let mut sure = true;
        for (nth, step) in self.steps.iter().enumerate() {
            let here = way.get(nth).filter(|here| here.definition.is(step.definition))?;
            for (key, value) in &step.keys {
                match here.keys.iter().find(|(name, _)| name == key) {
                    Some((_, found)) if found == value => {}
                    Some(_) => return None,
                    None => sure = false,
                }
            }
        }
        Some(sure)
    }

    /// A way as it is written.
    pub(super) fn written(way: &[Step]) -> String {
        let mut out = String::new();
        let mut within = None;
        for Step { definition, keys } in way {
            let module = &*definition.module.name;
            out.push('/');
            if within.replace(module) != Some(module) {
                out.push_str(module);
                out.push(':');
            }
            out.push_str(&definition.name);
            for (key, value) in keys {
                let quote = if value.contains('\'') { '"' } else { '\'' };
                out.push_str(&format!("[{key}={quote}{value}{quote}]"));
            }
        }
        out
    }

    /// Whether a node of this module is at its end or below.
    pub fn reaches(&self, module: &str) -> bool {
        fn any(definition: &Definition, module: &str) -> bool {
            *definition.module.name == *module
                || definition.children.iter().any(|child| any(child, module))
        }
        self.steps.last().is_none_or(|step| any(step.definition, module))
    }

    /// Whether the last node of a path is this one or in it.
    pub(super) fn holds(&self, path: &[Here]) -> bool {
        self.steps.len() <= path.len()
            && self.steps.iter().zip(path).all(|(step, here)| {
                step.definition.is(here.definition)
                    && step.keys.iter().all(|(key, value)| {
                        here.keys.iter().any(|(name, found)| **name == **key && found == value)
                    })
            })
    }
}

/// A key and its value.
type Key = (Box<str>, Box<str>);

/// `key='value']` and what follows.
fn predicate(text: &str) -> Option<(Key, &str)> {
    let (key, rest) = text.split_once('=')?;
    let key = key.trim();
    let key = key.rsplit_once(':').map_or(key, |(_, local)| local);
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let (value, rest) = rest.get(1..)?.split_once(quote)?;
    let rest = rest.trim_start().strip_prefix(']')?;
    Some(((key.into(), value.into()), rest))
}
