//! What is due: periodic updates, what was dampened, and the ends of subscriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use observe::queue::Place;
use observe::queue::row::Row;

use super::change::{self, Changes, Dampened, Held};
use super::message::{self, Shared};
use super::request::Trigger;
use super::{Condition, Now, Subscriptions, World};
use crate::access::Access;
use crate::operation::{Store, View};
use crate::operational::Datastore;
use crate::read::Encoding;
use crate::schema::Definition;
use crate::select::Filter;
use crate::tree::Node;

/// Updates that are written anew in one go.
const UPDATES_AT_A_TIME: usize = 4;

/// Everything that there is: the subscriptions too, as in every other way in.
struct Whole<'a> {
    subscriptions: &'a Subscriptions,
    datastore: &'a dyn Datastore,
}

impl Datastore for Whole<'_> {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        let own = self.subscriptions.top(definition, None);
        own.or_else(|| self.datastore.top(definition))
    }
}

/// Everything that is selected for some subscribers, as text.
struct Written<'a> {
    access: Access<'a>,
    filter: Option<Filter>,
    encoding: Encoding,
    rows_only: bool,
    text: Arc<Shared>,
}

impl Subscriptions {
    /// Does what is due, and says when something is due next. Of updates that have to be written anew
    /// it makes a few at a time, users in turn: then something is due at once, and who asks in
    /// between is not held up.
    pub fn advance(&mut self, world: &World<'_>, now: Now) -> Option<Duration> {
        let ids: Vec<u32> = self.all.keys().copied().collect();
        let (mut updates, mut flushes) = (Vec::new(), Vec::new());
        for id in ids {
            let Some(found) = self.all.get_mut(&id) else { continue };
            if found.stop.is_some_and(|stop| stop <= now.wall) {
                self.end(id, None, now);
                continue;
            }
            if let Condition::Suspended(since) = found.condition {
                if now.monotonic.saturating_sub(since) >= self.settings.suspended_max {
                    self.end(id, Some("ietf-subscribed-notifications:suspension-timeout"), now);
                } else if self.goes_on(id) {
                    self.ready.insert(id);
                }
                continue;
            }
            if found.due.is_none_or(|due| due > now.monotonic) {
                continue;
            }
            match found.trigger {
                Trigger::Periodic { .. } => updates.push(id),
                Trigger::OnChange { .. } => flushes.push(id),
            }
        }
        self.flush(&flushes, world, now);
        let updates = self.in_turn(updates);
        let left = self.update_some(&updates, world, now, false, UPDATES_AT_A_TIME);
        for id in updates.iter().filter(|id| !left.contains(*id)) {
            let Some(found) = self.all.get_mut(id) else { continue };
            found.due = found.trigger.next(found.due, now);
            self.turn = self.turn.wrapping_add(1);
            self.turns.insert(found.caller.user.clone(), self.turn);
        }
        if left.is_empty() { self.next_due(now) } else { Some(now.monotonic) }
    }

    /// Sends what was dampened. It is written once for all that it is the same for.
    fn flush(&mut self, ids: &[u32], world: &World<'_>, now: Now) {
        let mut groups: Vec<(Dampened, Vec<u32>)> = Vec::new();
        for id in ids {
            let Some(found) = self.all.get_mut(id) else { continue };
            found.due = None;
            let dampened = std::mem::take(&mut found.dampened);
            match groups.iter_mut().find(|(known, _)| change::is_same(known, &dampened)) {
                Some((_, group)) => group.push(*id),
                None => groups.push((dampened, vec![*id])),
            }
        }
        for (dampened, ids) in groups {
            let rows: Vec<Arc<Row>> =
                dampened.values().filter_map(|held| held.row.clone()).collect();
            let places = |is: fn(&Held) -> bool| {
                dampened.iter().filter(move |(_, held)| is(held)).map(|(place, _)| place.clone())
            };
            let gone: Vec<Arc<Place>> = places(|held| held.row.is_none()).collect();
            let known = places(|held| held.was).collect();
            let mut changes = Changes::new(self.schema, world, &rows, &gone, &known, &self.held);
            for id in ids {
                let Some(found) = self.all.get_mut(&id) else { continue };
                let body = changes.of(&found.caller.user, found.filter.as_ref(), found.encoding);
                let Some(body) = body else { continue };
                let text = message::change(found.encoding, id, found.patch, body);
                found.patch = found.patch.wrapping_add(1);
                if let Trigger::OnChange { dampening, .. } = found.trigger {
                    found.due = Some(now.monotonic.saturating_add(dampening));
                }
                self.send(id, text, now);
            }
        }
    }

    fn next_due(&self, now: Now) -> Option<Duration> {
        self.all
            .values()
            .flat_map(|found| {
                let suspended = match found.condition {
                    Condition::Active => None,
                    Condition::Suspended(since) => {
                        Some(since.saturating_add(self.settings.suspended_max))
                    }
                };
                let due = found.due.filter(|_| suspended.is_none());
                let stop = found.stop.map(|stop| {
                    let left = stop.duration_since(now.wall).unwrap_or_default();
                    now.monotonic.saturating_add(left)
                });
                [suspended, due, stop]
            })
            .flatten()
            .min()
    }

    /// Sends everything that is selected, as it is now.
    pub(super) fn update(&mut self, ids: &[u32], world: &World<'_>, now: Now, incomplete: bool) {
        self.update_some(ids, world, now, incomplete, usize::MAX);
    }

    /// Those of which each user has one before any has a second; first who waited longest.
    fn in_turn(&mut self, ids: Vec<u32>) -> Vec<u32> {
        let mut users: BTreeMap<&str, Vec<(Option<Duration>, u32)>> = BTreeMap::new();
        for id in ids {
            let Some(found) = self.all.get(&id) else { continue };
            users.entry(&found.caller.user).or_default().push((found.due, id));
        }
        self.turns.retain(|user, _| users.contains_key(&**user));
        let mut order = Vec::new();
        for (user, mut own) in users {
            own.sort_unstable();
            let turn = self.turns.get(user).copied().unwrap_or(0);
            order.extend(own.into_iter().enumerate().map(|(nth, (_, id))| (nth, turn, id)));
        }
        order.sort_unstable();
        order.into_iter().map(|(_, _, id)| id).collect()
    }

    /// The same, of which so many are written anew at most. Says which are left.
    fn update_some(
        &mut self,
        ids: &[u32],
        world: &World<'_>,
        now: Now,
        incomplete: bool,
        most: usize,
    ) -> BTreeSet<u32> {
        let mut left = BTreeSet::new();
        let mut written: Vec<Written<'_>> = Vec::new();
        for id in ids {
            let Some(found) = self.all.get(id) else { continue };
            // Who is suspended gets it on going on.
            if found.condition != Condition::Active {
                continue;
            }
            let rows_only = found.trigger.on_change();
            let access = world.policy.access(&found.caller.user);
            let known = written.iter().find(|known| {
                known.encoding == found.encoding
                    && known.rows_only == rows_only
                    && known.filter == found.filter
                    && known.access.is_like(&access)
            });
            if known.is_none() && written.len() >= most {
                left.insert(*id);
                continue;
            }
            let contents = known.map(|known| known.text.clone()).unwrap_or_else(|| {
                let datastore = Whole { subscriptions: self, datastore: world.datastore };
                let view = View { schema: self.schema, datastore: &datastore, access: &access };
                let filter = found.filter.as_ref();
                let top = view.top(Store::Operational, |definition| {
                    (!rows_only || &*definition.name == "interfaces")
                        && filter.is_none_or(|filter| filter.may_select(definition))
                });
                let nodes = match filter {
                    None => top,
                    // It was evaluated when it came: what fails now selects nothing.
                    Some(filter) => filter.of(self.schema, top, None).unwrap_or_default(),
                };
                let nodes = if rows_only { change::told_of(nodes) } else { nodes };
                let text = message::contents(self.schema, found.encoding, &nodes, &self.held);
                written.push(Written {
                    access,
                    filter: found.filter.clone(),
                    encoding: found.encoding,
                    rows_only,
                    text: text.clone(),
                });
                text
            });
            let Some(found) = self.all.get_mut(id) else { continue };
            // What is in it has not to be sent again.
            found.dampened.clear();
            if rows_only {
                found.due = None;
                if let Trigger::OnChange { dampening, .. } = found.trigger
                    && !dampening.is_zero()
                {
                    found.due = Some(now.monotonic.saturating_add(dampening));
                }
            }
            let text = message::update(found.encoding, *id, contents, incomplete);
            self.send(*id, text, now);
        }
        left
    }
}
