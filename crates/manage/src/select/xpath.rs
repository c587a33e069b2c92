//! Selection by XPath 1.0, which libyang evaluates.
//!
//! An expression is the one thing here whose cost its author chooses, and libyang cannot be stopped.
//! So it is short; what looks at a whole tree (`//`, the axes for descendants, ancestors and
//! neighbours) may be in it once and not inside a predicate; predicates do not stand in predicates
//! and see only what is in their own node; and two sets of nodes are not compared, which would take
//! a step for each pair. Then the work grows with the tree times the length of the expression.

use std::collections::HashSet;
use std::fmt;

use yang5::data::DataNodeRef;

use super::found::found;

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
/// their keys; of each so many levels, and the keys of lists at the last. Names in the expression
/// have module names as prefixes; one without a prefix is of the module of the step before.
///
/// # Errors
///
/// An expression that is not one, does not select nodes, or could take too long.
pub fn xpath(
    schema: &'static Schema,
    top: &[Node],
    expression: &str,
    levels: Option<u16>,
) -> Result<Vec<Node>, XpathError> {
    bounded(expression)?;
    let text = json::object(top);
    let tree = schema
        .parse(Encoding::Json, What::Data, &text)
        .map_err(|error| XpathError(error.to_string()))?;
    let Some(first) = tree.reference() else { return Ok(Vec::new()) };
    let selected = found(&tree, &first, &from_root(expression)?)?;
    let mut around = HashSet::new();
    for node in first.inclusive_siblings().flat_map(|top| top.traverse()) {
        if selected.contains(&node.as_raw()) {
            for ancestor in node.ancestors() {
                if !around.insert(ancestor.as_raw()) {
                    break;
                }
            }
        }
    }
    let kept = |node: &DataNodeRef<'_>| {
        let raw = node.as_raw();
        selected.contains(&raw)
            || around.contains(&raw)
            || node
                .ancestors()
                .take(levels.map_or(usize::MAX, |levels| usize::from(levels).saturating_sub(1)))
                .any(|ancestor| selected.contains(&ancestor.as_raw()))
    };
    // What is kept of a list has its keys, at the last level too.
    let wanted = |node: &DataNodeRef<'_>| {
        kept(node)
            || node.schema().is_list_key()
                && node.ancestors().next().is_some_and(|parent| kept(&parent))
    };
    Ok(converted(first.inclusive_siblings(), schema.data(), false, &wanted))
}

/// The expression with a `/` before each path that begins at the context node, which is the root
/// (RFC 6241, section 8.9.1; RFC 8641, section 3.6) and for libyang is the first node in it.
fn from_root(expression: &str) -> Result<String, XpathError> {
    let all = tokens(expression)?;
    let mut out = String::new();
    let mut written = 0;
    let (mut predicates, mut operand) = (0_usize, false);
    for (nth, (at, token)) in all.iter().enumerate() {
        let before = nth.checked_sub(1).and_then(|before| all.get(before)).map(|(_, token)| *token);
        let next = all.get(nth + 1).map(|(_, token)| *token);
        let goes_on = matches!(before, Some(Token::Symbol("/" | "//" | "::" | "@" | "$")));
        let begins = match *token {
            Token::Name(name) => next != Some(Token::Symbol("(")) || NODE_TYPES.contains(&name),
            Token::Symbol("*" | "." | ".." | "@") => true,
            _ => false,
        };
        match *token {
            Token::Symbol("[") => predicates += 1,
            Token::Symbol("]") => predicates = predicates.saturating_sub(1),
            _ => {}
        }
        if begins && !operand && !goes_on && predicates == 0 {
            out.push_str(expression.get(written..*at).unwrap_or_default());
            out.push('/');
            written = *at;
        }
        operand = ends_operand(*token, operand);
    }
    out.push_str(expression.get(written..).unwrap_or_default());
    Ok(out)
}

/// What looks like a function and is a test of nodes.
const NODE_TYPES: [&str; 4] = ["node", "text", "comment", "processing-instruction"];

/// Whether a token is the end of an operand, behind one or not: a name or `*` behind one is an
/// operator (XPath 1.0, section 3.7), and a `/` behind one goes on from it.
fn ends_operand(token: Token<'_>, behind: bool) -> bool {
    match token {
        Token::Name("and" | "or" | "div" | "mod") | Token::Symbol("*") => !behind,
        Token::Name(_) | Token::Number | Token::Literal => true,
        Token::Symbol(symbol) => matches!(symbol, ")" | "]" | "." | ".."),
    }
}

/// The expression with module names instead of the prefixes that `namespace` resolves; none where
/// one is of a namespace that no module has, so that nothing can be selected.
///
/// # Errors
///
/// A prefix that is not declared, and what [`xpath`] would refuse.
pub fn with_module_names<'a>(
    schema: &Schema,
    expression: &str,
    namespace: &impl Fn(&str) -> Option<&'a str>,
) -> Result<Option<String>, XpathError> {
    bounded(expression)?;
    let mut out = String::new();
    let mut written = 0;
    for (at, token) in tokens(expression)? {
        let Token::Name(name) = token else { continue };
        let Some((prefix, _)) = name.split_once(':') else { continue };
        let found = namespace(prefix).ok_or_else(|| {
            XpathError(format!(
                "prefix {prefix:?} at octet {at} of the XPath, which is not declared"
            ))
        })?;
        let Some(module) = schema.module_of(found) else { return Ok(None) };
        out.push_str(expression.get(written..at).unwrap_or_default());
        out.push_str(&module.name);
        written = at + prefix.len();
    }
    out.push_str(expression.get(written..).unwrap_or_default());
    Ok(Some(out))
}

/// A piece of an expression (XPath 1.0, section 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A name, with its prefix where it has one.
    Name(&'a str),
    /// A number.
    Number,
    /// A literal, with its quotes.
    Literal,
    /// Anything else: one or two characters.
    Symbol(&'a str),
}

/// The top-level nodes, module and name, of which an expression can select something; none where
/// that cannot be told from its text: it is no union of paths that begin with a name.
pub(crate) fn tops(expression: &str) -> Option<Vec<(&str, &str)>> {
    let tokens = tokens(expression).ok()?;
    let mut found = Vec::new();
    let mut rest = tokens.iter().map(|(_, token)| token);
    loop {
        let (Token::Symbol("/"), Token::Name(name)) = (rest.next()?, rest.next()?) else {
            return None;
        };
        found.push(name.split_once(':')?);
        // The end of this path: what is in brackets belongs to it.
        let mut depth = 0_usize;
        loop {
            match rest.next() {
                None => return Some(found),
                Some(Token::Symbol("[" | "(")) => depth += 1,
                Some(Token::Symbol("]" | ")")) => depth = depth.checked_sub(1)?,
                Some(Token::Symbol("|")) if depth == 0 => break,
                Some(Token::Symbol("::" | "..")) if depth == 0 => return None,
                Some(Token::Symbol("/" | "//" | "." | "*" | "@") | Token::Name(_)) => {}
                Some(_) if depth > 0 => {}
                Some(_) => return None,
            }
        }
    }
}

/// Splits an expression into its pieces, each with where it begins.
pub(crate) fn tokens(expression: &str) -> Result<Vec<(usize, Token<'_>)>, XpathError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = expression.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or_default();
        let (token, octets) = match first {
            ' ' | '\t' | '\r' | '\n' => {
                at += 1;
                continue;
            }
            '\'' | '"' => {
                let end = rest.get(1..).and_then(|inner| inner.find(first));
                let end = end.ok_or_else(|| {
                    XpathError(format!("no end of the literal that begins at octet {at}"))
                })?;
                (Token::Literal, end + 2)
            }
            '0'..='9' => {
                let digit = |c: char| c.is_ascii_digit() || c == '.';
                (Token::Number, rest.find(|c| !digit(c)).unwrap_or(rest.len()))
            }
            _ if first.is_alphabetic() || first == '_' => {
                let octets = name_octets(rest);
                (Token::Name(rest.get(..octets).unwrap_or_default()), octets)
            }
            _ => {
                let two = ["//", "::", "..", "!=", "<=", ">="];
                let octets = match two.iter().find(|two| rest.starts_with(**two)) {
                    Some(two) => two.len(),
                    None => first.len_utf8(),
                };
                (Token::Symbol(rest.get(..octets).unwrap_or_default()), octets)
            }
        };
        found.push((at, token));
        at += octets;
    }
    Ok(found)
}

/// Octets of a name at the start of a text: one colon may be in it, but not the two of an axis.
fn name_octets(text: &str) -> usize {
    let of_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let first = text.find(|c| !of_name(c)).unwrap_or(text.len());
    let rest = text.get(first..).unwrap_or_default();
    let after = rest
        .strip_prefix(':')
        .filter(|after| after.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '*'));
    match after {
        Some(after) if after.starts_with('*') => first + 2,
        Some(after) => first + 1 + after.find(|c| !of_name(c)).unwrap_or(after.len()),
        None => first,
    }
}

/// Steps that can reach the whole tree from anywhere in it.
const WIDE_AXES: [&str; 4] = ["descendant", "descendant-or-self", "ancestor", "ancestor-or-self"];

/// Steps that are not taken: from each of many nodes to each of the others.
const AXES_REFUSED: [&str; 4] =
    ["following", "following-sibling", "preceding", "preceding-sibling"];

/// Functions that are not evaluated: a pattern can take for ever on one value.
const FUNCTIONS_REFUSED: [&str; 2] = ["re-match", "deref"];

/// Refuses what could take long.
fn bounded(expression: &str) -> Result<(), XpathError> {
    let refused = |what: &str| Err(XpathError(what.into()));
    if expression.len() > XPATH_OCTETS_MAX {
        let found = expression.len();
        return Err(XpathError(format!(
            "{found} octets of XPath, expected at most {XPATH_OCTETS_MAX}"
        )));
    }
    if expression.contains('\0') {
        return refused("character U+0000 in XPath, expected none");
    }
    let all: Vec<Token<'_>> = tokens(expression)?.into_iter().map(|(_, token)| token).collect();
    let constant = |token: Option<&Token<'_>>| {
        matches!(token, Some(Token::Literal | Token::Number | Token::Symbol("-")))
    };
    let (mut predicates, mut wide) = (0_usize, 0_usize);
    // Whether what was read so far ends with an operand.
    let mut operand = false;
    for (nth, token) in all.iter().enumerate() {
        let before = nth.checked_sub(1).and_then(|before| all.get(before));
        let next = all.get(nth + 1);
        let inside = predicates > 0;
        let is_wide = match *token {
            Token::Symbol(symbol) => symbol == "//",
            Token::Name(name) => next == Some(&Token::Symbol("::")) && WIDE_AXES.contains(&name),
            Token::Number | Token::Literal => false,
        };
        if is_wide && inside {
            return refused(
                "a predicate that looks at the whole tree, expected steps from its node",
            );
        }
        wide += usize::from(is_wide);
        if wide > 1 {
            return refused("more than one step through the whole tree, expected one");
        }
        match *token {
            Token::Symbol("[") if inside => {
                return refused("a predicate within a predicate, expected none");
            }
            Token::Symbol("[") => predicates += 1,
            Token::Symbol("]") => predicates = predicates.saturating_sub(1),
            Token::Symbol("=" | "!=" | "<" | "<=" | ">" | ">=")
                if !constant(before) && !constant(next) =>
            {
                return refused(
                    "a comparison of two sets of nodes, expected a literal or a number on one side",
                );
            }
            Token::Symbol("..") if inside => {
                return refused("a step upwards in a predicate, expected steps from its own node");
            }
            // From the root, unless it is the step after another.
            Token::Symbol("/") if inside && !operand => {
                return refused(
                    "a path from the root in a predicate, expected steps from its node",
                );
            }
            Token::Name(name)
                if next == Some(&Token::Symbol("::")) && AXES_REFUSED.contains(&name) =>
            {
                return Err(XpathError(format!("axis {name}, which is not evaluated here")));
            }
            Token::Name("parent") if inside && next == Some(&Token::Symbol("::")) => {
                return refused("a step upwards in a predicate, expected steps from its own node");
            }
            Token::Name(name)
                if next == Some(&Token::Symbol("(")) && FUNCTIONS_REFUSED.contains(&name) =>
            {
                return Err(XpathError(format!("function {name}, which is not evaluated here")));
            }
            _ => {}
        }
        operand = ends_operand(*token, operand);
    }
    Ok(())
}
