//! The rows in a document: `ietf-interfaces:interfaces` as a whole (RFC 8343), or what YANG-Push
//! tells of it (RFC 8641), as RFC 7951 writes both.
//!
//! What contradicts itself is no row: an entry whose key is another than the one of its target, both
//! of two entries with one key, and what stands under a name that is there twice. Which of the two is
//! meant nobody can say.

use std::collections::BTreeSet;

use super::record::{self, MODULE, Malformed, own_name};
use super::tree::{Node, shown};
use observe::queue::is_yang_character;
use observe::queue::row::Row;

const INTERFACES: &str = "ietf-interfaces";
const PUSH: &str = "ietf-yang-push";
const PATCH: &str = "ietf-yang-patch";

/// The modules whose a patch may be: it is part of the one and written by the other.
const PATCHES: [&str; 2] = [PUSH, PATCH];

/// The nodes on the way to a row, each with its module.
const PATH: [(&str, &str); 4] = [
    (INTERFACES, "interfaces"),
    (INTERFACES, "interface"),
    (MODULE, "pfc-queue-telemetry"),
    (MODULE, "queue"),
];

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
                let contents = self.only(name, members, &[PUSH], "datastore-contents");
                if let Ok(Some(contents)) = contents {
                    self.contents("datastore-contents", contents);
                }
            }
            "ietf-yang-push:push-change-update" => {
                let Some(members) = self.object(name, node) else { return };
                let changes = self.only(name, members, &[PUSH], "datastore-changes");
                if let Ok(Some(changes)) = changes {
                    self.changes(changes);
                }
            }
            _ => {}
        }
    }

    fn contents(&mut self, what: &str, node: &Node) {
        if let Some(members) = self.object(what, node) {
            self.contents_of(what, members);
        }
    }

    fn contents_of(&mut self, what: &str, members: &[(String, Node)]) {
        for (name, node) in members {
            if name == "ietf-interfaces:interfaces" {
                self.interfaces(node);
            } else if !name.contains(':') {
                let name = shown(name);
                self.finding(format!("member {name} of {what}, expected a name with its module"));
            }
        }
    }

    /// The member of this name, with or without the name of one of these modules.
    ///
    /// # Errors
    /// It is there twice: nobody knows which of the two is meant.
    fn only<'a>(
        &mut self,
        of: &str,
        members: &'a [(String, Node)],
        modules: &[&str],
        own: &str,
    ) -> Result<Option<&'a Node>, Twice> {
        let same = |name: &str| modules.iter().any(|module| own_name(name, module) == Some(own));
        let mut found = members.iter().filter(|(name, _)| same(name)).map(|(_, node)| node);
        let first = found.next();
        if found.next().is_some() {
            self.finding(format!("{own} twice in {of}, expected once"));
            return Err(Twice);
        }
        Ok(first)
    }

    fn interfaces(&mut self, node: &Node) {
        let Some(members) = self.object("interfaces", node) else { return };
        for (name, _) in members {
            if own_name(name, INTERFACES).is_some_and(|own| own != "interface") {
                self.unknown(name, "interfaces");
            }
        }
        let list = self.only("interfaces", members, &[INTERFACES], "interface");
        let Ok(Some(node)) = list else { return };
        if let Some(entries) = self.array("interface", node) {
            self.interface_list(entries, None);
        }
    }

    fn unknown(&mut self, name: &str, parent: &str) {
        self.finding(format!("member {} of {parent}, expected one of its module", shown(name)));
    }

    /// Entries of the list `interface`; where a target names one, that one alone. One that contradicts
    /// the target or another entry says of no queue whose it is.
    fn interface_list(&mut self, entries: &[Node], target: Option<&str>) {
        let of = |entry| texts(entry, INTERFACES, "name");
        let twice = twice(entries.iter().flat_map(of));
        for name in &twice {
            self.finding(format!("interface {} twice in one document, expected once", shown(name)));
        }
        for entry in entries {
            self.interface(entry, target, &twice);
        }
    }

    /// An entry of the list `interface`.
    fn interface(&mut self, entry: &Node, target: Option<&str>, twice: &BTreeSet<&str>) {
        let Some(members) = self.object("an interface", entry) else { return };
        let Ok(name) = self.only("an interface", members, &[INTERFACES], "name") else { return };
        let name = match name {
            Some(Node::Text(name)) => name,
            other => {
                let found = other.map_or("missing".to_owned(), Node::kind);
                self.finding(format!("name of an interface is {found}, expected a string"));
                return;
            }
        };
        if !name.chars().all(is_yang_character) {
            let name = shown(name);
            return self.finding(format!("interface {name}, expected characters that YANG allows"));
        }
        if let Some(target) = target.filter(|target| target != name) {
            let (name, target) = (shown(name), shown(target));
            return self.finding(format!("interface {name}, expected the target's, {target}"));
        }
        let of = format!("interface {}", shown(name));
        for (member, node) in members {
            if own_name(member, MODULE) == Some("pfc-queue-telemetry") && member.contains(':') {
                let fault = twice
                    .contains(&**name)
                    .then(|| format!("{of} twice in one document, expected once"));
                self.container(&Whose { interface: name, queue: None, fault }, node);
            } else if own_name(member, INTERFACES)
                .is_some_and(|own| !INTERFACE_NODES.contains(&own))
            {
                self.unknown(member, &of);
            }
        }
    }

    /// `pfc-queue-telemetry` of an interface.
    fn container(&mut self, whose: &Whose<'_>, node: &Node) {
        let Some(members) = self.object("pfc-queue-telemetry", node) else { return };
        for (name, _) in members {
            if own_name(name, MODULE).is_some_and(|own| own != "queue") {
                self.unknown(name, "pfc-queue-telemetry");
            }
        }
        let list = self.only("pfc-queue-telemetry", members, &[MODULE], "queue");
        let Ok(Some(node)) = list else { return };
        if let Some(entries) = self.array("queue", node) {
            self.queues(whose, entries);
        }
    }

    /// Entries of the list `queue` of an interface. One that contradicts the target or another entry
    /// is no row, whatever else it says.
    // QUE-con.1, QUE-yang.1
    fn queues(&mut self, whose: &Whose<'_>, entries: &[Node]) {
        let twice = twice(entries.iter().flat_map(|entry| texts(entry, MODULE, "queue-id")));
        for queue in &twice {
            let (interface, queue) = (shown(whose.interface), shown(queue));
            self.finding(format!(
                "interface {interface}: queue {queue} twice in one document, expected once"
            ));
        }
        for entry in entries {
            if self.rows.len() >= self.most {
                let most = self.most;
                return self.finding(format!("more than {most} entries, which are not read"));
            }
            let Some(members) = self.object("a queue", entry) else { continue };
            let mut row = record::read(whose.interface, members);
            if let Some(fault) = &whose.fault {
                row = record::refused(row, fault.clone());
            }
            for queue in texts(entry, MODULE, "queue-id") {
                if twice.contains(queue) {
                    let queue = shown(queue);
                    let fault = format!("queue {queue} twice in one document, expected once");
                    row = record::refused(row, fault);
                }
                if let Some(target) = whose.queue.filter(|target| *target != queue) {
                    let (queue, target) = (shown(queue), shown(target));
                    let fault = format!("queue-id {queue}, expected the target's, {target}");
                    row = record::refused(row, fault).map_err(Malformed::nameless);
                }
            }
            self.rows.push(row);
        }
    }

    fn changes(&mut self, node: &Node) {
        let Some(members) = self.object("datastore-changes", node) else { return };
        let patch = match self.only("datastore-changes", members, &PATCHES, "yang-patch") {
            Err(Twice) => return,
            Ok(Some(patch)) => patch,
            Ok(None) => {
                return self
                    .finding("datastore-changes without yang-patch, expected it".to_owned());
            }
        };
        let Some(members) = self.object("yang-patch", patch) else { return };
        let Ok(Some(edits)) = self.only("yang-patch", members, &PATCHES, "edit") else { return };
        let Some(edits) = self.array("edit", edits) else { return };
        let ids = |edit| PATCHES.into_iter().flat_map(move |module| texts(edit, module, "edit-id"));
        // The names without a module are in both.
        let ids = |edit| ids(edit).collect::<BTreeSet<_>>();
        let twice = twice(edits.iter().flat_map(ids));
        for edit in edits {
            let Some(members) = self.object("an edit", edit) else { continue };
            match ids(edit).into_iter().find(|id| twice.contains(id)) {
                Some(id) => {
                    self.finding(format!("edit {} twice in one patch, expected once", shown(id)));
                }
                None => self.edit(members),
            }
        }
    }

    /// One edit. A row that is taken away says nothing: that is no end of an interval.
    // QUE-con.1
    fn edit(&mut self, members: &[(String, Node)]) {
        let mut one = |own| self.only("an edit", members, &PATCHES, own);
        let (Ok(operation), Ok(target), Ok(value)) =
            (one("operation"), one("target"), one("value"))
        else {
            return;
        };
        let (Some(Node::Text(operation)), Some(Node::Text(target))) = (operation, target) else {
            return self.finding("an edit without operation or target, expected both".to_owned());
        };
        match &**operation {
            "delete" | "remove" | "move" => return,
            "create" | "insert" | "merge" | "replace" => {}
            other => {
                let (other, target) = (shown(other), shown(target));
                return self.finding(format!(
                    "operation {other} on {target}, expected create, delete, insert, merge, move, \
                     replace or remove"
                ));
            }
        }
        let path = match path(target) {
            Ok(path) => path,
            Err(error) => return self.finding(format!("target {}: {error}", shown(target))),
        };
        if !path.iter().zip(PATH).all(|(step, node)| step.is(node)) {
            // Of other data.
            return;
        }
        let Some(value) = value.and_then(|value| self.object("value of an edit", value)) else {
            return self.finding(format!("edit of {} without a value", shown(target)));
        };
        let key = |nth: usize| path.get(nth).and_then(|step| step.key.as_deref());
        let wrong = |what: &str| format!("target {}: {what}", shown(target));
        if key(0).or(key(2)).is_some() {
            return self.finding(wrong("the key of a node that is no list, expected none"));
        }
        let Some((module, own)) = path.len().checked_sub(1).and_then(|last| PATH.get(last)) else {
            if path.is_empty() {
                return self.contents_of("value of an edit", value);
            }
            return self.finding(wrong("within a row, expected rows that change as a whole"));
        };
        let node = match self.only("value of an edit", value, &[module], own) {
            Err(Twice) => return,
            Ok(Some(node)) => node,
            Ok(None) => return self.finding(wrong(&format!("a value without {own}, expected it"))),
        };
        match (path.len(), key(1)) {
            (1, _) => self.interfaces(node),
            (2, interface) => self.interface_list(one_or_more(node), interface),
            (_, None) => self.finding(wrong("no name of an interface, expected one")),
            (3, Some(interface)) => {
                self.container(&Whose { interface, queue: None, fault: None }, node);
            }
            (_, Some(interface)) => {
                let whose = Whose { interface, queue: key(3), fault: None };
                self.queues(&whose, one_or_more(node));
            }
        }
    }
}

/// A member that is there twice.
struct Twice;

/// Whose the entries of a list of queues are.
struct Whose<'a> {
    /// The interface.
    interface: &'a str,
    /// The queue that a target names.
    queue: Option<&'a str>,
    /// What is wrong with the interface.
    fault: Option<String>,
}

/// Those that are there more than once.
fn twice<'a>(keys: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    keys.filter(|key| !seen.insert(*key)).collect()
}

/// What an entry says that its key is, as it stands; nothing where it is no string.
fn texts<'a>(entry: &'a Node, module: &str, own: &str) -> impl Iterator<Item = &'a str> {
    let members: &[(String, Node)] = match entry {
        Node::Object(members) => members,
        _ => &[],
    };
    let of = move |(name, node): &'a (String, Node)| match node {
        Node::Text(text) if own_name(name, module) == Some(own) => Some(&**text),
        _ => None,
    };
    members.iter().filter_map(of)
}

/// The entries of a list, or the one that stands for itself.
fn one_or_more(node: &Node) -> &[Node] {
    match node {
        Node::Array(entries) => entries,
        other => std::slice::from_ref(other),
    }
}

/// A step of a path: the name of a node and, of an entry of a list, its first key.
struct Step {
    /// Where it is said.
    module: Option<String>,
    name: String,
    key: Option<String>,
}

impl Step {
    fn is(&self, (module, name): (&str, &str)) -> bool {
        self.name == name && self.module.as_deref().is_none_or(|own| own == module)
    }
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
            let (module, name) = name.split_once(':').map_or((None, name), |(a, b)| (Some(a), b));
            Ok(Step { module: module.map(str::to_owned), name: name.to_owned(), key })
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
