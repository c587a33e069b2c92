//! Who may read what, call what and be notified of what (RFC 8341), and nothing else: nothing can be
//! written here by anybody.
//!
//! A user without a rule has access to nothing ([`Policy::default`]): the module's own default for
//! reading would be to permit. A node that may not be read is left out with all that is in it, in
//! every way in, so that it cannot be told from one that is not there. So is an entry of a list one
//! of whose keys may not be read: without its name it would be nothing.
// QUE-sec.1

mod path;
mod reach;

pub use path::{PathError, Pattern};
pub use reach::Idle;

use crate::schema::{Definition, Schema};
use crate::tree::{Builder, Content, Node};

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Access.
    Permit,
    /// None.
    Deny,
}

impl Action {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
        }
    }
}

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Everything of the module.
    All,
    /// A node and everything in it.
    Data(Pattern),
    /// An operation; none for every one.
    Rpc(Option<Box<str>>),
    /// A notification; none for every one.
    Notification(Option<Box<str>>),
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: Box<str>,
    /// The module it is about; none for every one.
    pub module: Option<Box<str>>,
    /// What in it.
    pub subject: Subject,
    /// Whether it is about reading data and notifications.
    pub read: bool,
    /// Whether it is about calling operations.
    pub exec: bool,
    /// What it does.
    pub action: Action,
}

/// Rules for the users of some groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleList {
    /// Its name.
    pub name: Box<str>,
    /// The groups; `*` is every user.
    pub groups: Vec<Box<str>>,
    /// The rules; the first that is about something decides.
    pub rules: Vec<Rule>,
}

/// Users who have the same rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Box<str>,
    /// Its users.
    pub users: Vec<Box<str>>,
}

/// How often somebody was refused since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Denied {
    /// Operations.
    pub operations: u32,
    /// Notifications that were not sent.
    pub notifications: u32,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The groups.
    pub groups: Vec<Group>,
    /// The lists, in the order in which they are asked.
    pub lists: Vec<RuleList>,
    /// Where no rule decides reading.
    pub read_default: Action,
    /// Where no rule decides calling.
    pub exec_default: Action,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            lists: Vec::new(),
            read_default: Action::Deny,
            exec_default: Action::Deny,
        }
    }
}

/// Operations that everybody may call: they give or end nothing that is not the caller's own
/// (RFC 8341, section 3.2.4, of `close-session`).
const FOR_EVERYBODY: &[(&str, &str)] = &[("ietf-netconf", "close-session")];

impl Rule {
    /// The operations that this rule permits without naming them, and with which somebody ends what
    /// is not their own.
    pub fn ends_others(&self, schema: &'static Schema) -> Vec<&'static str> {
        let unnamed = matches!(self.subject, Subject::All | Subject::Rpc(None));
        if !unnamed || !self.exec || self.action == Action::Deny {
            return Vec::new();
        }
        let ends = |operation: &&Definition| {
            operation.default_deny && operation.name.starts_with("kill-") && about(self, operation)
        };
        schema.rpcs().iter().filter(ends).map(|operation| &*operation.name).collect()
    }
}

impl Policy {
    /// Whether a list is for a user.
    pub fn is_for(&self, list: &RuleList, user: &str) -> bool {
        list.groups.iter().any(|group| self.is_in(group, user))
    }

    /// What a user may do.
    pub fn access<'a>(&'a self, user: &str) -> Access<'a> {
        let rules = self
            .lists
            .iter()
            .filter(|list| self.is_for(list, user))
            .flat_map(|list| &list.rules)
            .collect();
        Access { policy: self, rules }
    }

    /// Whether a user is in a group of this name.
    fn is_in(&self, group: &str, user: &str) -> bool {
        group == "*"
            || self.groups.iter().any(|found| {
                *found.name == *group && found.users.iter().any(|member| **member == *user)
            })
    }

    /// `ietf-netconf-acm:nacm`: this policy as data.
    pub fn node(&self, schema: &Schema, denied: Denied) -> Option<Node> {
        let definition = schema.top("ietf-netconf-acm", "nacm")?;
        let node = Builder::new(definition)
            .leaf("enable-nacm", "true")
            .leaf("read-default", self.read_default.word())
            .leaf("write-default", "deny")
            .leaf("exec-default", self.exec_default.word())
            .leaf("enable-external-groups", "false")
            .leaf("denied-operations", denied.operations.to_string())
            .leaf("denied-data-writes", "0")
            .leaf("denied-notifications", denied.notifications.to_string())
            .inner("groups", |groups| {
                groups.each("group", &self.groups, |entry, group| {
                    group
                        .users
                        .iter()
                        .fold(entry.leaf("name", group.name.clone()), |entry, user| {
                            entry.leaf("user-name", user.clone())
                        })
                })
            })
            .each("rule-list", &self.lists, |entry, list| {
                let entry = list
                    .groups
                    .iter()
                    .fold(entry.leaf("name", list.name.clone()), |entry, group| {
                        entry.leaf("group", group.clone())
                    });
                entry.each("rule", &list.rules, rule)
            });
        Some(node.build())
    }
}

fn rule(entry: Builder, rule: &Rule) -> Builder {
    let any = || Box::<str>::from("*");
    let entry = entry
        .leaf("name", rule.name.clone())
        .leaf("module-name", rule.module.clone().unwrap_or_else(any));
    let entry = match &rule.subject {
        Subject::All => entry,
        Subject::Data(pattern) => entry.leaf("path", pattern.to_string()),
        Subject::Rpc(name) => entry.leaf("rpc-name", name.clone().unwrap_or_else(any)),
        Subject::Notification(name) => {
            entry.leaf("notification-name", name.clone().unwrap_or_else(any))
        }
    };
    let operations = match (rule.read, rule.exec) {
        (true, true) => "read exec",
        (true, false) => "read",
        (false, _) => "exec",
    };
    entry.leaf("access-operations", operations).leaf("action", rule.action.word())
}

/// What one user may do.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    policy: &'a Policy,
    rules: Vec<&'a Rule>,
}

impl Access<'_> {
    /// Whether two users of one policy may do the same because the same rules are about them.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::ptr::eq(self.policy, other.policy)
            && self.rules.len() == other.rules.len()
            && self.rules.iter().zip(&other.rules).all(|(one, other)| std::ptr::eq(*one, *other))
    }

    /// Whether a user may do the same under another policy because the rules are the same.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.rules == other.rules
            && self.policy.read_default == other.policy.read_default
            && self.policy.exec_default == other.policy.exec_default
    }

    /// Of these top-level nodes, what may be read.
    pub fn readable(&self, top: Vec<Node>) -> Vec<Node> {
        self.readable_of(top).0
    }

    /// The same, and whether that is all of it.
    pub fn readable_of(&self, top: Vec<Node>) -> (Vec<Node>, bool) {
        let mut whole = true;
        let kept = self.pruned(top, &mut Vec::new(), &mut whole);
        (kept, whole)
    }

    fn pruned(&self, nodes: Vec<Node>, path: &mut Vec<Here>, whole: &mut bool) -> Vec<Node> {
        nodes
            .into_iter()
            .filter_map(|mut node| {
                path.push(Here::of(&node));
                let mut kept = self.may_read(path);
                if kept && let Content::Inner(children) = &mut node.content {
                    *children = self.pruned(std::mem::take(children), path, whole);
                    let definition = node.definition;
                    kept = definition.keys().iter().all(|key| node.leaf(key).is_some());
                }
                path.pop();
                *whole &= kept;
                kept.then_some(node)
            })
            .collect()
    }

    /// Whether the last node of this path may be read; its ancestors are not asked.
    fn may_read(&self, path: &[Here]) -> bool {
        let Some(last) = path.last() else { return true };
        let module = &*last.definition.module.name;
        let rule = self.rules.iter().find(|rule| {
            rule.read
                && rule.module.as_deref().is_none_or(|named| named == module)
                && match &rule.subject {
                    Subject::All => true,
                    Subject::Data(pattern) => pattern.holds(path),
                    Subject::Rpc(_) | Subject::Notification(_) => false,
                }
        });
        rule.map_or_else(
            || {
                !path.iter().any(|here| here.definition.default_deny)
                    && self.policy.read_default == Action::Permit
            },
            |rule| rule.action == Action::Permit,
        )
    }

    /// Whether an operation may be called.
    pub fn may_call(&self, operation: &Definition) -> bool {
        if FOR_EVERYBODY.contains(&(&operation.module.name, &operation.name)) {
            return true;
        }
        let rule = self.rules.iter().find(|rule| {
            rule.exec
                && about(rule, operation)
                && match &rule.subject {
                    Subject::All => true,
                    Subject::Rpc(name) => name.as_ref().is_none_or(|name| *name == operation.name),
                    Subject::Data(_) | Subject::Notification(_) => false,
                }
        });
        rule.map_or_else(
            || !operation.default_deny && self.policy.exec_default == Action::Permit,
            |rule| rule.action == Action::Permit,
        )
    }

    /// Whether a notification may be sent to the user. Those about a subscription of the user's own
    /// are not asked for (RFC 8341, section 3.4.6, of `replayComplete` and the like).
    pub fn may_receive(&self, notification: &Definition) -> bool {
        let rule = self.rules.iter().find(|rule| {
            rule.read
                && about(rule, notification)
                && match &rule.subject {
                    Subject::All => true,
                    Subject::Notification(name) => {
                        name.as_ref().is_none_or(|name| *name == notification.name)
                    }
                    Subject::Data(_) | Subject::Rpc(_) => false,
                }
        });
        rule.map_or_else(
            || !notification.default_deny && self.policy.read_default == Action::Permit,
            |rule| rule.action == Action::Permit,
        )
    }
}

fn about(rule: &Rule, definition: &Definition) -> bool {
    rule.module.as_deref().is_none_or(|named| named == &*definition.module.name)
}

/// A node on the way from the root, with its keys.
#[derive(Clone, Debug)]
pub struct Here {
    definition: &'static Definition,
    keys: Vec<(&'static str, Box<str>)>,
}

impl Here {
    fn of(node: &Node) -> Self {
        Self {
            definition: node.definition,
            keys: node.key_values().map(|(key, value)| (key, value.into())).collect(),
        }
    }
}
