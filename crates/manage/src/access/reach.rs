//! What a rule can do beside the others: one that permits what nobody can reach, or denies what was
//! permitted before, does nothing, and looks as if it did.
//!
//! Nothing is claimed of what is not certain. A rule may name keys of lists that another leaves open;
//! such a rule decides for some entries only, and what some entries allow is reachable.
// QUE-sec.1

use std::fmt;

use super::path::{Pattern, Step};
use super::{Access, Action, Policy, Rule, RuleList, Subject};
use crate::schema::{Definition, Schema};

/// Why a rule does nothing for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It permits reading of something, and this node above it, or a key there, may not be read.
    Above(Box<str>),
    /// It permits reading of this node, which a rule before it denies.
    Denied(Box<str>),
    /// It denies reading, which this rule before it permits.
    Permitted(Box<str>),
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Above(node) => write!(f, "permits nothing: {node} above it may not be read"),
            Self::Denied(node) => {
                write!(f, "permits nothing: a rule before it denies reading of {node}")
            }
            Self::Permitted(rule) => {
                write!(f, "denies nothing to be read: {rule} before it permits that")
            }
        }
    }
}

impl Policy {
    /// Of the users whom a rule is for those for whom it does nothing about reading, each with why.
    /// `users` are all that are known.
    pub fn idle<'a>(
        &self,
        schema: &'static Schema,
        list: &RuleList,
        rule: &Rule,
        users: impl IntoIterator<Item = &'a str>,
    ) -> Vec<(&'a str, Idle)> {
        let targets = targets(schema, rule);
        if !rule.read || targets.is_empty() {
            return Vec::new();
        }
        let users = users.into_iter().filter(|user| self.is_for(list, user));
        users
            .filter_map(|user| {
                let access = self.access(user);
                let found = targets.iter().map(|way| access.idle(rule, way));
                // Where one of them is not idle, the rule is not.
                let all: Vec<Idle> = found.collect::<Option<_>>()?;
                all.into_iter().next().map(|idle| (user, idle))
            })
            .collect()
    }
}

/// The nodes where what a rule is about begins; none for a rule about everything, or not about data.
fn targets(schema: &'static Schema, rule: &Rule) -> Vec<Vec<Step>> {
    match (&rule.subject, &rule.module) {
        (Subject::Data(pattern), _) if !pattern.steps().is_empty() => {
            vec![pattern.steps().to_vec()]
        }
        (Subject::All, Some(module)) => {
            let mut found = Vec::new();
            begins(schema.data(), module, &mut Vec::new(), &mut found);
            found
        }
        _ => Vec::new(),
    }
}

/// The outermost nodes of a module.
fn begins(
    among: &'static [Definition],
    module: &str,
    way: &mut Vec<Step>,
    found: &mut Vec<Vec<Step>>,
) {
    for definition in among {
        way.push(Step { definition, keys: Vec::new() });
        if *definition.module.name == *module {
            found.push(way.clone());
        } else {
            begins(&definition.children, module, way, found);
        }
        way.pop();
    }
}

impl Access<'_> {
    fn idle(&self, rule: &Rule, way: &[Step]) -> Option<Idle> {
        match rule.action {
            Action::Permit => self.hidden(way),
            Action::Deny => {
                let before = self.rules.iter().take_while(|other| !std::ptr::eq(**other, rule));
                let permits = before
                    .filter(|other| other.read && covers(other, way))
                    .find(|other| other.action == Action::Permit);
                permits.map(|other| Idle::Permitted(other.name.clone()))
            }
        }
    }

    /// The first node on a way that no entry of the lists on it lets one read.
    fn hidden(&self, way: &[Step]) -> Option<Idle> {
        (1..=way.len()).find_map(|length| {
            let (here, rest) = way.split_at_checked(length)?;
            let definition = here.last()?.definition;
            let key = |name: &str| {
                let key = Step { definition: definition.child(None, name)?, keys: Vec::new() };
                Some([here, &[key]].concat())
            };
            let keys = definition.keys().iter().filter_map(|name| key(name));
            let mut nodes = std::iter::once(here.to_vec()).chain(keys);
            let node = nodes.find(|node| !self.may_be_read(node))?;
            let written = Pattern::written(&node).into();
            Some(if rest.is_empty() { Idle::Denied(written) } else { Idle::Above(written) })
        })
    }

    /// Whether the last node of a way may be read for some of the entries on it.
    fn may_be_read(&self, way: &[Step]) -> bool {
        let Some(last) = way.last() else { return true };
        let module = &*last.definition.module.name;
        let about =
            |rule: &&&Rule| rule.read && rule.module.as_deref().is_none_or(|named| named == module);
        for rule in self.rules.iter().filter(about) {
            let sure = match &rule.subject {
                Subject::All => Some(true),
                Subject::Data(pattern) => pattern.fits(way),
                Subject::Rpc(_) | Subject::Notification(_) => None,
            };
            match (sure, rule.action) {
                (Some(_), Action::Permit) => return true,
                (Some(true), Action::Deny) => return false,
                (Some(false), Action::Deny) | (None, _) => {}
            }
        }
        !way.iter().any(|step| step.definition.default_deny)
            && self.policy.read_default == Action::Permit
    }
}

/// Whether a rule is about a node and everything in it.
fn covers(rule: &Rule, way: &[Step]) -> bool {
    let Some(last) = way.last() else { return false };
    let whole = match &rule.subject {
        Subject::All => true,
        Subject::Data(pattern) => pattern.fits(way) == Some(true),
        Subject::Rpc(_) | Subject::Notification(_) => false,
    };
    whole && rule.module.as_deref().is_none_or(|module| only(last.definition, module))
}

/// Whether a node and all that is in it are of a module.
fn only(definition: &Definition, module: &str) -> bool {
    *definition.module.name == *module
        && definition.children.iter().all(|child| only(child, module))
}
