//! Selection by XPath 1.0, which libyang evaluates.
//!
//! An expression is the one thing here whose cost its author chooses. So it is short, and what looks
//! at a whole tree (`//`, the axes for descendants, ancestors and neighbours) may be in it once and
//! not inside a predicate; predicates do not stand in predicates. Then the work is at most some
//! steps for each pair of a node and its siblings.

use std::collections::HashSet;
use std::fmt;

use yang5::data::{Data as _, DataNodeRef};

use crate::json;
use crate::read::{Encoding, What, nodes as converted};
use crate::schema::Schema;
use crate::tree::Node;

/// Octets of an expression, at most.
pub const XPATH_OCTETS_MAX: usize = 1024;

/// Why an expression is not evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XpathError(pub String);

impl fmt::Display for XpathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for XpathError {}

/// The nodes that an expression selects, each with all that is in it, and with its ancestors and
/// their keys. Names in the expression have module names as prefixes; one without a prefix is of the
/// module of the step before.
///
/// # Errors
///
/// An expression that is not one, does not select nodes, or could take too long.
pub fn xpath(
    schema: &'static Schema,
    top: &[Node],
    expression: &str,
) -> Result<Vec<Node>, XpathError> {
    bounded(expression)?;
    let text = json::object(top);
    let tree = schema
        .parse(Encoding::Json, What::Data, &text)
        .map_err(|error| XpathError(error.to_string()))?;
    let Some(first) = tree.reference() else { return Ok(Vec::new()) };
    let found = tree.find_xpath(expression).map_err(|error| {
        XpathError(error.msg.unwrap_or_else(|| "not an XPath expression for nodes".into()))
    })?;
    let mut selected = HashSet::new();
    let mut around = HashSet::new();
    for node in found {
        for ancestor in node.ancestors() {
            if !around.insert(ancestor.as_raw()) {
                break;
            }
        }
        selected.insert(node.as_raw());
    }
    let wanted = |node: &DataNodeRef<'_>| {
        let raw = node.as_raw();
        selected.contains(&raw)
            || around.contains(&raw)
            || node.schema().is_list_key()
                && node.ancestors().next().is_some_and(|parent| around.contains(&parent.as_raw()))
            || node.ancestors().any(|ancestor| selected.contains(&ancestor.as_raw()))
    };
    Ok(converted(first.inclusive_siblings(), schema.data(), false, &wanted))
}

/// Refuses what could take long.
fn bounded(expression: &str) -> Result<(), XpathError> {
    if expression.len() > XPATH_OCTETS_MAX {
        let found = expression.len();
        return Err(XpathError(format!(
            "{found} octets of XPath, expected at most {XPATH_OCTETS_MAX}"
        )));
    }
    if expression.contains('\0') {
        return Err(XpathError("character U+0000 in XPath, expected none".into()));
    }
    let outside = without_literals(expression)?;
    let compact: String = outside.split_whitespace().collect();
    let mut predicates = 0_usize;
    let mut wide = 0_usize;
    for (at, octet) in compact.bytes().enumerate() {
        let rest = compact.get(at..).unwrap_or_default();
        match octet {
            b'[' => predicates += 1,
            b']' => predicates = predicates.saturating_sub(1),
            _ => {}
        }
        if predicates > 1 {
            return Err(XpathError("a predicate within a predicate, expected none".into()));
        }
        // The second `/` of `//` is no beginning of another.
        let slashes = rest.starts_with("//")
            && !compact.get(..at).is_some_and(|before| before.ends_with('/'));
        let axis = WIDE_AXES.iter().any(|axis| rest.starts_with(axis))
            && !compact.get(..at).is_some_and(|before| {
                before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_')
            });
        // From the root, and so as wide, unless it is the step after another.
        let absolute = predicates > 0
            && octet == b'/'
            && !compact.get(..at).is_some_and(|before| {
                before.ends_with(|c: char| c.is_ascii_alphanumeric() || "-_.*])/".contains(c))
            });
        if predicates > 0 && (slashes || axis || absolute) {
            return Err(XpathError(
                "a predicate that looks at the whole tree, expected steps from its own node".into(),
            ));
        }
        wide += usize::from(slashes || axis);
        if wide > 1 || octet == b'|' && wide > 0 && compact.matches('|').count() > UNIONS_MAX {
            return Err(XpathError(
                "more than one step through the whole tree, expected one".into(),
            ));
        }
    }
    if compact.matches('|').count() > UNIONS_MAX {
        return Err(XpathError(format!("more than {UNIONS_MAX} unions, expected fewer")));
    }
    Ok(())
}

/// Unions in an expression, at most.
const UNIONS_MAX: usize = 16;

const WIDE_AXES: [&str; 8] = [
    "descendant::",
    "descendant-or-self::",
    "ancestor::",
    "ancestor-or-self::",
    "following::",
    "following-sibling::",
    "preceding::",
    "preceding-sibling::",
];

/// The expression with every literal empty.
fn without_literals(expression: &str) -> Result<String, XpathError> {
    let mut out = String::new();
    let mut open = None;
    for character in expression.chars() {
        match (open, character) {
            (None, '\'' | '"') => {
                open = Some(character);
                out.push(character);
            }
            (None, _) => out.push(character),
            (Some(quote), _) if quote == character => {
                open = None;
                out.push(character);
            }
            (Some(_), _) => {}
        }
    }
    match open {
        None => Ok(out),
        Some(quote) => Err(XpathError(format!("no end of a literal that began with {quote}"))),
    }
}
