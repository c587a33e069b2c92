//! Ways to select a part of a tree: what is left is in the tree, with its ancestors and their keys.

use std::sync::OnceLock;

use manage::access::Pattern;
use manage::json;
use manage::select::{self, Fields, Filter, Path, depth, xpath};
use manage::tree::{Content, Node};
use manage::xml::{Element, Limits};
use observe::queue::row::{Measurement, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};

use crate::answers::json_data;
use crate::served::schema;

/// The first octet says which way, the second how many levels; the rest is the selection.
///
/// # Panics
/// Where something does not hold.
pub fn selection(data: &[u8]) {
    let [kind, levels, rest @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let levels = match *levels {
        0 => None,
        levels => Some(u16::from(levels)),
    };
    match kind % 7 {
        0 => in_xml(text, levels),
        1 => by_xpath(text, levels),
        2 => in_json(text, levels),
        3 => fields(text, levels),
        4 => path(text),
        5 => pattern(text),
        _ => declared(text, levels),
    }
}

/// A tree in which a step for each pair of nodes would be felt.
fn tree() -> &'static [Node] {
    static TREE: OnceLock<Vec<Node>> = OnceLock::new();
    TREE.get_or_init(|| grown(24, 4))
}

fn small() -> &'static [Node] {
    static TREE: OnceLock<Vec<Node>> = OnceLock::new();
    TREE.get_or_init(|| grown(2, 2))
}

fn grown(interfaces: usize, queues: usize) -> Vec<Node> {
    let listed: Vec<_> = (1..=interfaces)
        .map(|number| manage::operational::Interface {
            name: format!("e{number}").into(),
            oper_status: None,
            discontinuity: "2026-10-30T00:00:00Z".into(),
        })
        .collect();
    let rows: Vec<_> = listed
        .iter()
        .flat_map(|interface| (0..queues).map(move |queue| (interface, queue)))
        .map(|(interface, queue)| {
            let row = Row {
                place: Place {
                    interface: interface.name.clone(),
                    queue: format!("q{queue}").into(),
                }
                .into(),
                epoch: EpochId::read("31c38fe2-f97e-4a88-a0a7-bae9ed5d4131").expect("a UUID"),
                interval: 1,
                start_ns: 0,
                duration_ns: 100,
                wall_clock_start: None,
                priorities: Priorities::new([observe::pfc::Priority::ALL[3]]).expect("one"),
                measurement: Measurement::Unknown(Reason::Other),
            };
            row.into()
        })
        .collect();
    vec![manage::operational::interfaces(schema(), &listed, &rows).expect("the module is there")]
}

fn in_xml(text: &str, levels: Option<u16>) {
    let Ok(filter) = Element::read(text, &Limits::default()) else { return };
    let filter = Filter::Subtree(filter);
    let found = of(&filter, levels);
    if levels.is_none() {
        let again = filter.of(schema(), found.clone(), None).expect("it was taken");
        assert_eq!(json::object(&again), json::object(&found), "selecting twice");
    }
}

fn in_json(text: &str, levels: Option<u16>) {
    let Ok(object) = serde_json::from_str(text) else { return };
    if let Ok(filter) = Filter::subtree_in_json(schema(), &object) {
        of(&filter, levels);
    }
}

/// What a filter selects, and whether it may be asked at all.
fn of(filter: &Filter, levels: Option<u16>) -> Vec<Node> {
    let found = filter.of(schema(), small().to_vec(), levels).expect("it does not fail");
    for node in &found {
        assert!(filter.may_select(node.definition), "{}", node.definition);
    }
    held(&found);
    found
}

fn by_xpath(text: &str, levels: Option<u16>) {
    let Ok(found) = xpath(schema(), small(), text, levels) else {
        return;
    };
    held(&found);
    // Where it is taken at all it is taken of every tree, and does not take long.
    let large = xpath(schema(), tree(), text, levels);
    assert!(large.is_ok(), "{large:?}");
}

/// Prefixes of declarations: the first line is an element that declares, the rest the expression.
fn declared(text: &str, levels: Option<u16>) {
    let Some((element, expression)) = text.split_once('\n') else { return };
    let Ok(element) = Element::read(element, &Limits::default()) else { return };
    let Ok(filter) = Filter::xpath_in_xml(schema(), expression, &[&element]) else { return };
    if let Ok(found) = filter.of(schema(), small().to_vec(), levels) {
        held(&found);
    }
}

/// A target and fields of it.
fn fields(text: &str, levels: Option<u16>) {
    let Some((target, raw)) = text.split_once('\n') else { return };
    let Ok(path) = Path::read(schema(), target) else { return };
    let of = path.0.last().map(|step| step.definition);
    let Ok(fields) = Fields::read(schema(), of, raw) else { return };
    let found = fields.of_root(small().to_vec());
    if of.is_none() {
        held(&found);
        held(&depth(found, levels.unwrap_or(3)));
    } else if let Some(node) = path.find(small()) {
        let node = fields.of(node.clone());
        assert!(path.find(small()).is_some_and(|whole| part(&node, whole)));
    }
}

fn path(text: &str) {
    let Ok(path) = Path::read(schema(), text) else { return };
    let written = path.to_string();
    let again = Path::read(schema(), written.strip_prefix('/').unwrap_or(&written));
    let again = again.unwrap_or_else(|fault| panic!("{fault} in {written}"));
    assert_eq!(again.to_string(), written);
    assert_eq!(again.0.len(), path.0.len());
    let only = path.only(small().to_vec());
    held(&only);
    let (found, alone) = (path.find(small()), path.find(&only));
    let text = |node: Option<&Node>| node.map(|node| json::object(std::slice::from_ref(node)));
    if !path.0.is_empty() {
        assert_eq!(text(found), text(alone), "{written}");
    }
}

fn pattern(text: &str) {
    if let Ok(pattern) = Pattern::read(schema(), text) {
        assert_eq!(pattern.to_string(), text);
    }
}

/// What was selected is in the tree, and can be written and read.
fn held(found: &[Node]) {
    let tree = small();
    for node in found {
        assert!(tree.iter().any(|whole| part(node, whole)), "{}", json::object(found));
    }
    if !found.is_empty() {
        json_data(&json::object(found));
    }
    assert!(select::which(found.to_vec(), select::Which::All).len() == found.len());
}

/// Whether one is the other, or what was left of it with its keys.
fn part(some: &Node, whole: &Node) -> bool {
    some.definition.is(whole.definition)
        && match (&some.content, &whole.content) {
            (Content::Value(some), Content::Value(whole)) => some == whole,
            (Content::Inner(inner), Content::Inner(all)) => {
                let keys: Vec<_> = whole.key_values().collect();
                let mut rest = all.iter();
                some.key_values().collect::<Vec<_>>() == keys
                    // In their order, each once.
                    && inner.iter().all(|node| rest.any(|other| part(node, other)))
            }
            (Content::Any(_), Content::Any(_)) => true,
            _ => false,
        }
}
