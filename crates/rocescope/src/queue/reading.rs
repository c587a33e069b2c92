//! The rows in a document: `ietf-interfaces:interfaces` as a whole (RFC 8343), or what YANG-Push
//! tells of it (RFC 8641), as RFC 7951 writes both.

use super::record::{self, MODULE, Malformed, own_name};
use super::tree::{Node, shown};
use observe::queue::is_yang_character;
use observe::queue::row::Row;

const INTERFACES: &str = "ietf-interfaces";
const PUSH: &str = "ietf-yang-push";
const PATCH: &str = "ietf-yang-patch";

/// The nodes of an interface in its own module; without the name of a module there are no others.
const INTERFACE_NODES: [&str; 14] = [
    "name",
    "description",
    "type",
    "enabled",
    "link-up-down-trap-enable",
    "admin-status",
    "oper-status",
    "last-change",
    "if-index",
    "phys-address",
    "higher-layer-if",
    "lower-layer-if",
    "speed",
    "statistics",
];

/// What stands in a document.
#[derive(Debug, Default)]
pub struct Reading {
    /// Every entry, in its order.
    pub rows: Vec<Result<Row, Malformed>>,
    /// What is wrong with the rest of the document.
    pub findings: Vec<String>,
    /// Entries that are read, and findings, at most.
    most: usize,
}

/// Reads a document.
pub fn read(document: &Node) -> Reading {
    read_at_most(document, usize::MAX)
}

/// Reads a document of one who may have sent anything: at most so many entries, and as many findings.
/// That there is more is the last finding.
pub fn read_at_most(document: &Node, most: usize) -> Reading {
    let mut reading = Reading { most, ..Reading::default() };
    if let Some(members) = reading.object("the document", document) {
        let known = members.iter().filter(|(name, node)| reading.top(name, node)).count();
        if known == 0 && reading.findings.is_empty() {
            let first = members.first().map_or("nothing".to_owned(), |(name, _)| shown(name));
            reading.findings.push(format!(
                "{first} at the top, expected \"ietf-interfaces:interfaces\" or a YANG-Push \
                 notification"
            ));
        }
    }
    reading
}

impl Reading {
    fn finding(&mut self, finding: String) {
        if self.findings.len() < self.most {
            self.findings.push(finding);
        } else if self.findings.len() == self.most {
            self.findings.push("more findings, which are not listed".to_owned());
        }
    }

    fn object<'a>(&mut self, what: &str, node: &'a Node) -> Option<&'a [(String, Node)]> {
        match node {
            Node::Object(members) => Some(members),
            other => {
                self.finding(format!("{what} is {}, expected an object", other.kind()));
                None
            }
        }
    }

    fn array<'a>(&mut self, what: &str, node: &'a Node) -> Option<&'a [Node]> {
        match node {
            Node::Array(entries) => Some(entries),
            other => {
                self.finding(format!("{what} is {}, expected an array", other.kind()));
                None
            }
        }
    }

    /// A member at the top of a document; whether it is one that rows can be in.
    fn top(&mut self, name: &str, node: &Node) -> bool {
        match name {
            "ietf-interfaces:interfaces" => self.interfaces(node),
            "ietf-restconf:data" => self.contents(name, node),
            "ietf-restconf:notification" | "ietf-notification:notification" => {
                if let Some(members) = self.object(name, node) {
                    for (name, node) in members {
                        self.notification(name, node);
                    }
                }
            }
            "ietf-yang-push:push-update" | "ietf-yang-push:push-change-update" => {
                self.notification(name, node);
            }
            _ if name.contains(':') || name.starts_with('@') => return false,
            _ => self.finding(format!(
                "member {} at the top, expected a name with its module",
                shown(name)
            )),
        }
        true
    }

    /// A member of a notification. Those that are not of YANG-Push have no rows.
    fn notification(&mut self, name: &str, node: &Node) {
        match name {
            "ietf-yang-push:push-update" => {
                let Some(members) = self.object(name, node) else { return };
                if let Some(contents) = member(members, PUSH, "datastore-contents") {
                    self.contents("datastore-contents", contents);
                }
            }
            "ietf-yang-push:push-change-update" => {
                let Some(members) = self.object(name, node) else { return };
                let Some(changes) = member(members, PUSH, "datastore-changes") else { return };
                self.changes(changes);
            }
            _ => {}
        }
    }

    fn contents(&mut self, what: &str, node: &Node) {
        let Some(members) = self.object(what, node) else { return };
        for (name, node) in members {
            if name == "ietf-interfaces:interfaces" {
                self.interfaces(node);
            } else if !name.contains(':') {
                let name = shown(name);
                self.finding(format!("member {name} of {what}, expected a name with its module"));
            }
        }
    }

    fn interfaces(&mut self, node: &Node) {
        let Some(members) = self.object("interfaces", node) else { return };
        for (name, node) in members {
            match own_name(name, INTERFACES) {
                Some("interface") => self.interface_list(node),
                Some(_) => self.unknown(name, "interfaces"),
                None => {}
            }
        }
    }

    fn unknown(&mut self, name: &str, parent: &str) {
        self.finding(format!("member {} of {parent}, expected one of its module", shown(name)));
    }

    fn interface_list(&mut self, node: &Node) {
        let Some(entries) = self.array("interface", node) else { return };
        let mut names: Vec<&str> = Vec::new();
        for entry in entries {
            names.extend(self.interface(entry, None));
        }
        self.unique("interface", names);
    }

    /// An entry of the list `interface`, of this name where it is said elsewhere.
    fn interface<'a>(&mut self, entry: &'a Node, expected: Option<&str>) -> Option<&'a str> {
        let members = self.object("an interface", entry)?;
        let name = match member(members, INTERFACES, "name") {
            Some(Node::Text(name)) => name,
            other => {
                let found = other.map_or("missing".to_owned(), Node::kind);
                self.finding(format!("name of an interface is {found}, expected a string"));
                return None;
            }
        };
        if !name.chars().all(is_yang_character) {
            self.finding(format!(
                "interface {}, expected characters that YANG allows",
                shown(name)
            ));
        }
        if expected.is_some_and(|expected| expected != name) {
            self.finding(format!("interface {}, expected the one of the target", shown(name)));
        }
        for (member, node) in members {
            if own_name(member, MODULE) == Some("pfc-queue-telemetry") && member.contains(':') {
                self.container(name, node, None);
            } else if own_name(member, INTERFACES)
                .is_some_and(|own| !INTERFACE_NODES.contains(&own))
            {
                self.unknown(member, &format!("interface {}", shown(name)));
            }
        }
        Some(name)
    }

    /// `pfc-queue-telemetry` of an interface.
    fn container(&mut self, interface: &str, node: &Node, queue: Option<&str>) {
        let Some(members) = self.object("pfc-queue-telemetry", node) else { return };
        for (name, node) in members {
            match own_name(name, MODULE) {
                Some("queue") => self.queues(interface, node, queue),
                Some(_) => self.unknown(name, "pfc-queue-telemetry"),
                None => {}
            }
        }
    }

    /// The list `queue` of an interface; where a target names one, that one alone.
    fn queues(&mut self, interface: &str, node: &Node, target: Option<&str>) {
        let Some(entries) = self.array("queue", node) else { return };
        let mut queues: Vec<&str> = Vec::new();
        for entry in entries {
            if self.rows.len() >= self.most {
                let most = self.most;
                return self.finding(format!("more than {most} entries, which are not read"));
            }
            let Some(members) = self.object("a queue", entry) else { continue };
            if let Some(Node::Text(queue)) = member(members, MODULE, "queue-id") {
                queues.push(queue);
                if target.is_some_and(|target| target != queue) {
                    self.finding(format!("queue-id {}, expected the target's", shown(queue)));
                }
            }
            self.rows.push(record::read(interface, members));
        }
        let of = format!("interface {}: queue", shown(interface));
        self.unique(&of, queues);
    }

    /// Keys of a list.
    fn unique(&mut self, what: &str, mut keys: Vec<&str>) {
        keys.sort_unstable();
        for pair in keys.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.finding(format!("{what} {} twice in one document, expected once", shown(pair[0])));
        }
    }

    fn changes(&mut self, node: &Node) {
        let Some(members) = self.object("datastore-changes", node) else { return };
        let patch = member(members, PUSH, "yang-patch").or(member(members, PATCH, "yang-patch"));
        let Some(patch) = patch else {
            return self.finding("datastore-changes without yang-patch, expected it".to_owned());
        };
        let Some(members) = self.object("yang-patch", patch) else { return };
        let find = |name| member(members, PUSH, name).or(member(members, PATCH, name));
        let Some(edits) = find("edit").and_then(|edits| self.array("edit", edits)) else { return };
        for edit in edits {
            if let Some(members) = self.object("an edit", edit) {
                self.edit(members);
            }
        }
    }

    /// One edit. A row that is taken away says nothing: that is no end of an interval.
    // QUE-con.1
    fn edit(&mut self, members: &[(String, Node)]) {
        let text = |name| match member(members, PUSH, name).or(member(members, PATCH, name)) {
            Some(Node::Text(text)) => Some(&**text),
            _ => None,
        };
        let (Some(operation), Some(target)) = (text("operation"), text("target")) else {
            return self.finding("an edit without operation or target, expected both".to_owned());
        };
        if matches!(operation, "delete" | "remove" | "move") {
            return;
        }
        let path = match path(target) {
            Ok(path) => path,
            Err(error) => return self.finding(format!("target {}: {error}", shown(target))),
        };
        let names: Vec<&str> = path.iter().map(|step| &*step.name).collect();
        if names.first().is_some_and(|name| *name != "interfaces") {
            return;
        }
        let value = member(members, PUSH, "value").or(member(members, PATCH, "value"));
        let Some(value) = value.and_then(|value| self.object("value of an edit", value)) else {
            return self.finding(format!("edit of {} without a value", shown(target)));
        };
        let key = |nth: usize| path.get(nth).and_then(|step| step.key.as_deref());
        match names[..] {
            [] | ["interfaces"] => {
                for (name, node) in value {
                    self.top(name, node);
                }
            }
            ["interfaces", "interface"] => {
                let Some(node) = member(value, INTERFACES, "interface") else { return };
                for entry in one_or_more(node) {
                    self.interface(entry, key(1));
                }
            }
            ["interfaces", "interface", "pfc-queue-telemetry"] => {
                let node = member(value, MODULE, "pfc-queue-telemetry");
                if let (Some(interface), Some(node)) = (key(1), node) {
                    self.container(interface, node, None);
                }
            }
            ["interfaces", "interface", "pfc-queue-telemetry", "queue"] => {
                let node = member(value, MODULE, "queue");
                if let (Some(interface), Some(node)) = (key(1), node) {
                    let node = Node::Array(one_or_more(node).to_vec());
                    self.queues(interface, &node, key(3));
                }
            }
            ["interfaces", "interface", "pfc-queue-telemetry", ..] => self.finding(format!(
                "target {} within a row, expected rows that change as a whole",
                shown(target)
            )),
            _ => {}
        }
    }
}

/// The entries of a list, or the one that stands for itself.
fn one_or_more(node: &Node) -> &[Node] {
    match node {
        Node::Array(entries) => entries,
        other => std::slice::from_ref(other),
    }
}

/// A member, with or without the name of its module.
fn member<'a>(members: &'a [(String, Node)], module: &str, own: &str) -> Option<&'a Node> {
    members.iter().find(|(name, _)| own_name(name, module) == Some(own)).map(|(_, node)| node)
}

/// A step of a path: the name of a node and, of an entry of a list, its first key.
struct Step {
    name: String,
    key: Option<String>,
}

/// A path of RFC 8040: split before anything is decoded, so that an encoded slash is part of a
/// key.
fn path(target: &str) -> Result<Vec<Step>, String> {
    target
        .split('/')
        .filter(|step| !step.is_empty())
        .map(|step| {
            let (name, keys) = step.split_once('=').map_or((step, None), |(a, b)| (a, Some(b)));
            let key = match keys {
                None => None,
                Some(keys) if keys.contains(',') => {
                    return Err(format!("{} keys, expected 1", keys.split(',').count()));
                }
                Some(key) => Some(decoded(key)?),
            };
            let name = name.split_once(':').map_or(name, |(_, own)| own);
            Ok(Step { name: name.to_owned(), key })
        })
        .collect()
}

/// Percent-encoding, undone.
fn decoded(text: &str) -> Result<String, String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        if octet != b'%' {
            octets.push(octet);
            continue;
        }
        let mut digit = || rest.next().and_then(|octet| char::from(octet).to_digit(16));
        let value = digit().zip(digit()).and_then(|(a, b)| u8::try_from(a * 16 + b).ok());
        octets.push(value.ok_or("% without two hexadecimal digits, expected them")?);
    }
    String::from_utf8(octets).map_err(|_| "octets that are no UTF-8, expected a name".to_owned())
}
