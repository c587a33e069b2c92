//! What a batch of rows is to each kind of subscriber.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use observe::queue::Place;
use observe::queue::row::Row;

use super::World;
use super::message::{Edit, Shared, edit};
use crate::access::Access;
use crate::operational;
use crate::read::Encoding;
use crate::schema::Schema;
use crate::select::{Filter, Path, Step};
use crate::tree::{Builder, Content, Node};

/// What has changed of each queue while it was not sent.
pub(super) type Dampened = BTreeMap<Arc<Place>, Held>;

/// A change that is not sent yet.
pub(super) struct Held {
    /// The latest row; none of a queue that is gone.
    pub row: Option<Arc<Row>>,
    /// The queue was there before the first change that was held back.
    pub was: bool,
}

/// Holds back a batch. `known` has the queues that there were before its rows and behind what is
/// gone.
pub(super) fn hold(
    dampened: &mut Dampened,
    rows: &[Arc<Row>],
    gone: &[Arc<Place>],
    known: &BTreeSet<Arc<Place>>,
) {
    for place in gone {
        dampened.entry(place.clone()).or_insert(Held { row: None, was: true }).row = None;
    }
    for row in rows {
        let held = dampened.entry(row.place.clone());
        held.or_insert_with(|| Held { row: None, was: known.contains(&row.place) }).row =
            Some(row.clone());
    }
    if !gone.is_empty() {
        // What came and went in between never was.
        dampened.retain(|_, held| held.was || held.row.is_some());
    }
}

/// A batch, and how it was written so far.
pub(super) struct Changes<'a> {
    schema: &'static Schema,
    world: &'a World<'a>,
    /// Rows of different queues at a time, in the order in which they were completed.
    waves: Vec<Vec<Arc<Row>>>,
    gone: &'a [Arc<Place>],
    /// Queues that were not there before.
    fresh: BTreeSet<Arc<Place>>,
    written: Vec<Class<'a>>,
    /// Counts what is written.
    held: Arc<AtomicUsize>,
}

/// The queues of rows, and the rows.
type Wave = (BTreeSet<Arc<Place>>, Vec<Arc<Row>>);

/// Subscribers for which the batch is the same.
struct Class<'a> {
    access: Access<'a>,
    filter: Option<Filter>,
    encoding: Encoding,
    /// None where it is nothing to them.
    edits: Option<Arc<Shared>>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(
        schema: &'static Schema,
        world: &'a World<'a>,
        rows: &[Arc<Row>],
        gone: &'a [Arc<Place>],
        known: &BTreeSet<Arc<Place>>,
        held: &Arc<AtomicUsize>,
    ) -> Self {
        let mut waves: Vec<Wave> = Vec::new();
        for row in rows {
            // The wave behind that of the row before it of the same queue.
            match waves.iter_mut().find(|(places, _)| !places.contains(&row.place)) {
                Some((places, wave)) => {
                    places.insert(row.place.clone());
                    wave.push(row.clone());
                }
                None => waves.push((BTreeSet::from([row.place.clone()]), vec![row.clone()])),
            }
        }
        let fresh = rows.iter().map(|row| row.place.clone()).filter(|place| !known.contains(place));
        Self {
            schema,
            world,
            fresh: fresh.collect(),
            waves: waves.into_iter().map(|(_, wave)| wave).collect(),
            gone,
            written: Vec::new(),
            held: held.clone(),
        }
    }

    /// The edits for a user with a filter; none where nothing of the batch is selected.
    pub(super) fn of(
        &mut self,
        user: &str,
        filter: Option<&Filter>,
        encoding: Encoding,
    ) -> Option<Arc<Shared>> {
        let access = self.world.policy.access(user);
        let known = self.written.iter().find(|class| {
            class.encoding == encoding
                && class.filter.as_ref() == filter
                && class.access.is_like(&access)
        });
        if let Some(class) = known {
            return class.edits.clone();
        }
        let edits = self.write(&access, filter, encoding);
        self.written.push(Class {
            access,
            filter: filter.cloned(),
            encoding,
            edits: edits.clone(),
        });
        edits
    }

    fn write(
        &self,
        access: &Access<'_>,
        filter: Option<&Filter>,
        encoding: Encoding,
    ) -> Option<Arc<Shared>> {
        let mut out = String::new();
        let mut number = 0;
        for place in self.gone {
            for (target, _) in self.selected(access, filter, vec![empty(self.schema, place)?]) {
                let target = &target;
                edit(
                    &mut out,
                    self.schema,
                    encoding,
                    &Edit { number, operation: "delete", target, value: None },
                );
                number += 1;
            }
        }
        let mut fresh = self.fresh.clone();
        for wave in &self.waves {
            let Some(top) = operational::interfaces(self.schema, self.world.interfaces, wave)
            else {
                continue;
            };
            for (target, value) in self.selected(access, filter, vec![top]) {
                let created = fresh.iter().any(|place| is_at(&target, place));
                let operation = if created { "create" } else { "replace" };
                let value = Some(&value);
                let target = &target;
                edit(&mut out, self.schema, encoding, &Edit { number, operation, target, value });
                number += 1;
            }
            wave.iter().for_each(|row| {
                fresh.remove(&row.place);
            });
        }
        (number > 0).then(|| Shared::new(out, &self.held))
    }

    /// The entries of queues that are left of a tree for a user with a filter, each with its path.
    fn selected(
        &self,
        access: &Access<'_>,
        filter: Option<&Filter>,
        top: Vec<Node>,
    ) -> Vec<(String, Node)> {
        let seen = access.readable(top);
        let seen = match filter {
            None => seen,
            Some(filter) => filter.of(self.schema, seen, None).unwrap_or_default(),
        };
        let mut found = Vec::new();
        for root in &seen {
            for interface in root.children() {
                let telemetry = interface
                    .children()
                    .iter()
                    .filter(|child| *child.definition.name == *"pfc-queue-telemetry");
                for telemetry in telemetry {
                    for queue in telemetry.children() {
                        let steps = [root, interface, telemetry, queue].map(|node| Step {
                            definition: node.definition,
                            keys: node.key_values().map(|(_, value)| value.into()).collect(),
                        });
                        found.push((Path(steps.into()).to_string(), queue.clone()));
                    }
                }
            }
        }
        found
    }
}

/// What changes are told of, and the keys that lead there: an update of a subscription on change has
/// nothing else (RFC 8641, section 3.6).
pub(super) fn told_of(nodes: Vec<Node>) -> Vec<Node> {
    fn kept(node: &mut Node) -> bool {
        let definition = node.definition;
        if &*definition.module.name == "ietf-pfc-queue-telemetry" {
            return true;
        }
        let Content::Inner(children) = &mut node.content else { return false };
        let keys = definition.keys();
        children.retain_mut(|child| keys.contains(&child.definition.name) || kept(child));
        children.iter().any(|child| !keys.contains(&child.definition.name))
    }
    nodes.into_iter().filter_map(|mut node| kept(&mut node).then_some(node)).collect()
}

/// Whether the same changes wait for two subscribers.
pub(super) fn is_same(one: &Dampened, other: &Dampened) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|((place, held), (other_place, other_held))| {
            place == other_place
                && held.was == other_held.was
                && match (&held.row, &other_held.row) {
                    (Some(row), Some(other)) => Arc::ptr_eq(row, other),
                    (None, None) => true,
                    _ => false,
                }
        })
}

/// Whether a path leads to a queue.
fn is_at(target: &str, place: &Place) -> bool {
    let encoded = |text: &str| {
        let mut out = String::new();
        // The same as a path is written with.
        _ = crate::select::percent_encode(&mut out, text);
        out
    };
    target.ends_with(&format!("/queue={}", encoded(&place.queue)))
        && target.contains(&format!("/interface={}/", encoded(&place.interface)))
}

/// The tree around an entry of which there are only the names.
fn empty(schema: &Schema, place: &Place) -> Option<Node> {
    let definition = schema.top("ietf-interfaces", "interfaces")?;
    let node = Builder::new(definition).inner("interface", |interface| {
        interface.leaf("name", place.interface.clone()).inner(
            "ietf-pfc-queue-telemetry:pfc-queue-telemetry",
            |telemetry| {
                telemetry.inner("queue", |queue| queue.leaf("queue-id", place.queue.clone()))
            },
        )
    });
    Some(node.build())
}
