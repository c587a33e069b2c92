//! Which part of a tree a request is for. Nothing here knows a user: what one may not read is taken
//! out before ([`crate::access`]), so that a filter cannot tell of it either.
//!
//! Every selection keeps the ancestors of what it keeps, and the keys of their lists.

mod fields;
mod filter;
mod found;
mod path;
mod subtree;
mod xpath;

pub use fields::{FIELDS_DEPTH_MAX, Fields, FieldsError};
pub use filter::{Filter, FilterError};
pub use path::{Path, PathFault, Step, percent_decoded, percent_encode};
pub use subtree::subtree;
pub(crate) use xpath::tops;
pub(crate) use xpath::{Token, tokens};
pub use xpath::{XPATH_OCTETS_MAX, XpathError, with_module_names, xpath};

use std::collections::HashMap;

use yang5::data::DataImplicitFlags;

use crate::json;
use crate::read::{Encoding, ReadError, What, nodes as converted};
use crate::schema::{Definition, Kind, Schema};
use crate::tree::{Content, Node};

/// Configuration, state or both (RFC 8040, section 4.8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// Both.
    #[default]
    All,
    /// Configuration.
    Config,
    /// State.
    Nonconfig,
}

/// What of these nodes is configuration or state.
pub fn which(nodes: Vec<Node>, which: Which) -> Vec<Node> {
    match which {
        Which::All => nodes,
        Which::Config => kept(nodes, &|node| node.definition.config),
        Which::Nonconfig => state(nodes),
    }
}

fn kept(nodes: Vec<Node>, keep: &impl Fn(&Node) -> bool) -> Vec<Node> {
    nodes
        .into_iter()
        .filter(|node| keep(node))
        .map(|mut node| {
            if let Content::Inner(children) = &mut node.content {
                *children = kept(std::mem::take(children), keep);
            }
            node
        })
        .collect()
}

fn state(nodes: Vec<Node>) -> Vec<Node> {
    nodes
        .into_iter()
        .filter_map(|mut node| {
            if !node.definition.config {
                return Some(node);
            }
            let Content::Inner(children) = &mut node.content else { return None };
            let keys = node.definition.keys();
            let (keys, others): (Vec<Node>, Vec<Node>) = std::mem::take(children)
                .into_iter()
                .partition(|child| keys.contains(&child.definition.name));
            let others = state(others);
            if others.is_empty() {
                return None;
            }
            *children = keys;
            children.extend(others);
            Some(node)
        })
        .collect()
}

/// These nodes with as many levels as that: 1 is the nodes alone. Keys of lists stay.
pub fn depth(nodes: Vec<Node>, levels: u16) -> Vec<Node> {
    nodes.into_iter().map(|node| level(node, levels)).collect()
}

fn level(mut node: Node, levels: u16) -> Node {
    if let Content::Inner(children) = &mut node.content {
        let inner = std::mem::take(children);
        *children = if levels > 1 {
            depth(inner, levels - 1)
        } else {
            let keys = node.definition.keys();
            inner.into_iter().filter(|child| keys.contains(&child.definition.name)).collect()
        };
    }
    node
}

/// How values that are their defaults are shown (RFC 6243).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Defaults {
    /// Where somebody has set them.
    #[default]
    Explicit,
    /// Not at all.
    Trim,
    /// Everywhere.
    All,
}

impl Defaults {
    /// The mode of a word; none for `report-all-tagged`, which is not offered.
    pub fn read(word: &str) -> Option<Self> {
        match word {
            "explicit" => Some(Self::Explicit),
            "trim" => Some(Self::Trim),
            "report-all" => Some(Self::All),
            _ => None,
        }
    }
}

/// Top-level nodes in another mode than the one in which they are held, explicit.
///
/// # Errors
///
/// Where libyang does not take what this program has made.
pub fn defaults(
    schema: &'static Schema,
    top: Vec<Node>,
    mode: Defaults,
) -> Result<Vec<Node>, ReadError> {
    match mode {
        Defaults::Explicit => Ok(top),
        Defaults::Trim => Ok(trimmed(top)),
        Defaults::All => {
            let present: Vec<_> = top.iter().map(|node| node.definition).collect();
            let mut tree = schema.parse(Encoding::Json, What::Data, &json::object(&top))?;
            tree.add_implicit(DataImplicitFlags::empty())?;
            let Some(first) = tree.reference() else { return Ok(Vec::new()) };
            let nodes = converted(first.inclusive_siblings(), schema.data(), false, &|_| true);
            let there =
                |node: &Node| present.iter().any(|definition| definition.is(node.definition));
            Ok(without_nothing(nodes.into_iter().filter(there).collect(), &top))
        }
    }
}

fn trimmed(nodes: Vec<Node>) -> Vec<Node> {
    kept(nodes, &|node| {
        !(matches!(node.definition.kind, Kind::Leaf(_))
            && node.definition.default.is_some()
            && node.definition.default.as_deref() == node.text())
    })
}

/// Without containers that say nothing, unless they were there before.
fn without_nothing(nodes: Vec<Node>, before: &[Node]) -> Vec<Node> {
    fn name(node: &Node) -> (*const Definition, Vec<&str>) {
        (std::ptr::from_ref(node.definition), node.key_values().map(|(_, value)| value).collect())
    }
    let inner = before.iter().filter(|node| matches!(node.content, Content::Inner(_)));
    let before: HashMap<_, &Node> = inner.map(|node| (name(node), node)).collect();
    nodes
        .into_iter()
        .filter_map(|mut node| {
            let same = before.get(&name(&node)).copied();
            if let Content::Inner(children) = &mut node.content {
                let before = same.map_or(&[][..], Node::children);
                *children = without_nothing(std::mem::take(children), before);
            }
            (same.is_some() || !node.says_nothing()).then_some(node)
        })
        .collect()
}
