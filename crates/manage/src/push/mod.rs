//! Subscriptions to the operational datastore (RFC 8639, RFC 8641), as a state machine for every way
//! in: the time, rows and what a user may read are arguments; messages come out in the order in which
//! each subscriber is to get them.
//!
//! On change, each completed interval of a queue is one replacement of its whole entry: never a leaf
//! by itself (QUE-pub.1). A subscriber sees what its user may read, cut to its filter, as in any other
//! way in. What could not be sent is never a silent hole: a subscriber that does not read is
//! suspended and told so, and gets the whole state when it goes on.
// QUE-pub.2, QUE-sec.1

mod change;
mod due;
mod message;
mod request;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use observe::queue::Place;
use observe::queue::row::Row;

use crate::access::Policy;
use crate::error::OperationError;
use crate::operation::{Call, Caller, Transport};
use crate::operational::{Datastore, Interface};
use crate::read::Encoding;
use crate::schema::{Definition, Schema};
use crate::select::Filter;
use crate::tree::Node;

use change::{Changes, Dampened};
use message::About;
pub use message::{Message, Shared, Text, stamp};
use request::Trigger;

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Subscriptions, at most.
    pub subscriptions_max: usize,
    /// Subscriptions of one user, at most.
    pub of_user_max: usize,
    /// Octets that wait for one subscriber, at most. What many get alike is counted for each.
    pub waiting_octets_max: usize,
    /// Octets that wait for all of them, at most. What many get alike is counted once.
    pub all_octets_max: usize,
    /// Different filters of the subscriptions of one user, at most.
    pub filters_of_user_max: usize,
    /// The shortest period, in hundredths of a second.
    pub period_min: u32,
    /// How long a subscription may be suspended before it is ended.
    pub suspended_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            subscriptions_max: 2048,
            of_user_max: 1024,
            waiting_octets_max: 8 << 20,
            all_octets_max: 256 << 20,
            filters_of_user_max: 64,
            period_min: 10,
            suspended_max: Duration::from_secs(60),
        }
    }
}

/// Both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// One that is never set.
    pub monotonic: Duration,
    /// The one on the wall.
    pub wall: SystemTime,
}

/// What subscriptions are about.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// All that there is.
    pub datastore: &'a dyn Datastore,
    /// Who may read what.
    pub policy: &'a Policy,
    /// The interfaces of the rows.
    pub interfaces: &'a [Interface],
}

/// What a subscription does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It sends.
    Active,
    /// Its subscriber does not read; since then.
    Suspended(Duration),
}

struct Subscription {
    caller: Caller,
    /// Where the subscriber reaches this server.
    base: Box<str>,
    encoding: Encoding,
    filter: Option<Filter>,
    trigger: Trigger,
    stop: Option<SystemTime>,
    condition: Condition,
    waiting: std::collections::VecDeque<Message>,
    waiting_octets: usize,
    /// The number of the next patch.
    patch: u64,
    /// When the next periodic update is due, or the end of dampening.
    due: Option<Duration>,
    /// What has changed while it was dampened.
    dampened: Dampened,
    sent: u64,
    excluded: u64,
}

/// A subscription that has ended and still has something to say. It counts as one until then.
struct Ended {
    caller: Caller,
    left: std::collections::VecDeque<Message>,
}

/// All subscriptions.
pub struct Subscriptions {
    schema: &'static Schema,
    settings: Settings,
    all: BTreeMap<u32, Subscription>,
    next: u32,
    /// The queues that there are, for telling a new one from one that is replaced.
    known: std::collections::BTreeSet<Arc<Place>>,
    /// Those with something new to send, or that are at their end.
    ready: std::collections::BTreeSet<u32>,
    /// What is left to send of subscriptions that have ended.
    ended: BTreeMap<u32, Ended>,
    /// Notifications that a user may not receive any more.
    denied: u32,
    /// Octets of everything that was written and that somebody still holds.
    held: Arc<AtomicUsize>,
    /// When which user had the last periodic update, in turns.
    turns: BTreeMap<Box<str>, u64>,
    turn: u64,
}

/// The path under which RESTCONF has the stream of a subscription.
pub fn path(id: u32) -> String {
    format!("{}/subscriptions/{id}", crate::restconf::ROOT)
}

impl Subscriptions {
    /// None.
    pub fn new(schema: &'static Schema, settings: Settings) -> Self {
        Self {
            schema,
            settings,
            all: BTreeMap::new(),
            next: 1,
            known: Default::default(),
            ready: Default::default(),
            ended: BTreeMap::new(),
            denied: 0,
            held: Arc::default(),
            turns: BTreeMap::new(),
            turn: 0,
        }
    }

    /// Whether an operation is one of these.
    pub fn has(operation: &Definition) -> bool {
        matches!(
            (&*operation.module.name, &*operation.name),
            (
                "ietf-subscribed-notifications",
                "establish-subscription"
                    | "modify-subscription"
                    | "delete-subscription"
                    | "kill-subscription"
            ) | ("ietf-yang-push", "resync-subscription")
        )
    }

    /// Carries out an operation and gives its output. The messages that it causes come after.
    ///
    /// # Errors
    ///
    /// It is refused, and nothing has changed.
    pub fn call(
        &mut self,
        call: &Call<'_>,
        world: &World<'_>,
        now: Now,
    ) -> Result<Vec<Node>, OperationError> {
        match &*call.input.definition.name {
            "establish-subscription" => self.establish(call, world, now),
            "modify-subscription" => self.modify(call, world, now),
            "delete-subscription" => {
                let id = self.own(call)?;
                self.forget(id);
                Ok(Vec::new())
            }
            "kill-subscription" => {
                let id = request::id(call.input)?;
                if !self.all.contains_key(&id) {
                    return Err(request::no_such(call.input, id));
                }
                self.end(id, Some("ietf-subscribed-notifications:no-such-subscription"), now);
                Ok(Vec::new())
            }
            _ => {
                let id = self.own(call)?;
                let changes = self.all.get(&id).is_some_and(|found| found.trigger.on_change());
                if !changes {
                    return Err(request::no_such(call.input, id));
                }
                self.whole(id, world, now);
                Ok(Vec::new())
            }
        }
    }

    /// The subscription that the caller names, where it is the caller's own.
    fn own(&self, call: &Call<'_>) -> Result<u32, OperationError> {
        let id = request::id(call.input)?;
        let found = self.all.get(&id).filter(|found| found.caller == *call.caller);
        found.map(|_| id).ok_or_else(|| request::no_such(call.input, id))
    }

    /// What a batch of rows is to a filter is found out once for all that have it, but for each
    /// filter by itself.
    fn room_for_filter(
        &self,
        call: &Call<'_>,
        filter: Option<&Filter>,
        but: Option<u32>,
    ) -> Result<(), OperationError> {
        let mut others: Vec<&Filter> = Vec::new();
        for (id, found) in &self.all {
            let of_user = found.caller.user == call.caller.user && Some(*id) != but;
            if let Some(own) = found.filter.as_ref().filter(|_| of_user) {
                if Some(own) == filter {
                    return Ok(());
                }
                if !others.contains(&own) {
                    others.push(own);
                }
            }
        }
        let most = self.settings.filters_of_user_max;
        if filter.is_none() || others.len() < most {
            return Ok(());
        }
        Err(request::refused(
            self.schema,
            call.input,
            "ietf-subscribed-notifications:insufficient-resources",
            format!("{} different filters of the user, expected at most {most}", others.len() + 1),
        ))
    }

    fn establish(
        &mut self,
        call: &Call<'_>,
        world: &World<'_>,
        now: Now,
    ) -> Result<Vec<Node>, OperationError> {
        let callers = || {
            let ended = self.ended.values().map(|ended| &ended.caller);
            self.all.values().map(|found| &found.caller).chain(ended)
        };
        let all = callers().count();
        let of_user = callers().filter(|caller| caller.user == call.caller.user).count();
        let full = |found: usize, max: usize, whose: &str| {
            request::refused(
                self.schema,
                call.input,
                "ietf-subscribed-notifications:insufficient-resources",
                format!("{found} subscriptions{whose}, expected at most {max}"),
            )
        };
        if all >= self.settings.subscriptions_max {
            return Err(full(all, self.settings.subscriptions_max, ""));
        }
        if of_user >= self.settings.of_user_max {
            return Err(full(of_user, self.settings.of_user_max, " of the user"));
        }
        let wanted = request::establish(self.schema, &self.settings, call, now)?;
        self.room_for_filter(call, wanted.filter.as_ref(), None)?;
        request::permitted(self.schema, call, wanted.trigger)?;
        let output = state::established(self.schema, call.input.definition)?;
        // Numbers come again after four thousand million; one that is taken is passed over.
        let mut id = self.next;
        while self.all.contains_key(&id) || self.ended.contains_key(&id) {
            id = id.checked_add(1).unwrap_or(1);
        }
        self.next = id.checked_add(1).unwrap_or(1);
        let first = wanted.trigger.first(now);
        let begin = wanted.trigger.begins_with_update();
        self.all.insert(
            id,
            Subscription {
                caller: call.caller.clone(),
                base: call.base.into(),
                encoding: wanted.encoding,
                filter: wanted.filter,
                trigger: wanted.trigger,
                stop: wanted.stop,
                condition: Condition::Active,
                waiting: Default::default(),
                waiting_octets: 0,
                patch: 0,
                due: first,
                dampened: BTreeMap::new(),
                sent: 0,
                excluded: 0,
            },
        );
        if begin {
            self.update(&[id], world, now, false);
        }
        self.ready.insert(id);
        let uri = call.caller.transport == Transport::Restconf;
        Ok(output(id, uri.then(|| format!("{}{}", call.base, path(id)))))
    }

    fn modify(
        &mut self,
        call: &Call<'_>,
        world: &World<'_>,
        now: Now,
    ) -> Result<Vec<Node>, OperationError> {
        let id = self.own(call)?;
        let Some(found) = self.all.get(&id) else { return Err(request::no_such(call.input, id)) };
        let wanted = request::modify(self.schema, &self.settings, call, found.trigger, now)?;
        if let Some(filter) = &wanted.filter {
            self.room_for_filter(call, filter.as_ref(), Some(id))?;
        }
        request::permitted(self.schema, call, wanted.trigger.unwrap_or(found.trigger))?;
        let Some(found) = self.all.get_mut(&id) else { return Ok(Vec::new()) };
        if let Some(filter) = wanted.filter {
            found.filter = filter;
        }
        if let Some(stop) = wanted.stop {
            found.stop = Some(stop);
        }
        if let Some(trigger) = wanted.trigger {
            found.trigger = trigger;
            found.due = trigger.first(now);
        }
        // Over RESTCONF the answer and the stream are two ways: where the new terms begin is said in
        // the stream (RFC 8650, section 3.4).
        if call.caller.transport == Transport::Restconf
            && let Some(told) = state::modified(self.schema, id, found)
        {
            let text = message::whole(self.schema, found.encoding, told);
            found.push_terms(Message { text, wall: now.wall, about: About::Terms });
            self.ready.insert(id);
        }
        // What is selected can be something else now: the whole of it goes first.
        self.whole(id, world, now);
        Ok(Vec::new())
    }

    /// Sends everything to one that follows changes. One that is suspended gets it when it goes on.
    fn whole(&mut self, id: u32, world: &World<'_>, now: Now) {
        let goes = |found: &Subscription| {
            found.trigger.on_change() && found.condition == Condition::Active
        };
        if self.all.get(&id).is_some_and(goes) {
            self.update(&[id], world, now, false);
        }
    }

    /// Rows were published, and queues went away, in this order.
    pub fn published(
        &mut self,
        rows: &[Arc<Row>],
        gone: &[Arc<Place>],
        world: &World<'_>,
        now: Now,
    ) {
        let gone: Vec<Arc<Place>> =
            gone.iter().filter(|place| self.known.remove(*place)).cloned().collect();
        let mut changes = Changes::new(self.schema, world, rows, &gone, &self.known, &self.held);
        let ids: Vec<u32> = self.all.keys().copied().collect();
        for id in ids {
            let Some(found) = self.all.get_mut(&id) else { continue };
            let Trigger::OnChange { dampening, .. } = found.trigger else { continue };
            if found.condition != Condition::Active {
                found.excluded = found.excluded.saturating_add(1);
                continue;
            }
            if found.due.is_some() {
                change::hold(&mut found.dampened, rows, &gone, &self.known);
                continue;
            }
            let Some(body) = changes.of(&found.caller.user, found.filter.as_ref(), found.encoding)
            else {
                continue;
            };
            let text = message::change(found.encoding, id, found.patch, body);
            found.patch = found.patch.wrapping_add(1);
            if !dampening.is_zero() {
                found.due = Some(now.monotonic.saturating_add(dampening));
            }
            self.send(id, text, now);
        }
        self.known.extend(rows.iter().map(|row| row.place.clone()));
    }

    /// Others may read from now on. A subscription whose user may not receive its notifications any
    /// more ends (RFC 8639, section 2.1), and so does one on change whose user's rules are others:
    /// what it has told would not be what it tells of (RFC 8641, section 3.9). It says so.
    // QUE-sec.1
    pub fn policy_changed(&mut self, old: &Policy, new: &Policy, now: Now) {
        let mut ended = Vec::new();
        for (id, found) in &self.all {
            let access = new.access(&found.caller.user);
            let denied = request::forbidden(self.schema, &access, found.trigger).is_some();
            let same = access.equals(&old.access(&found.caller.user));
            if denied || (found.trigger.on_change() && !same) {
                ended.push((*id, denied));
            }
        }
        for (id, denied) in ended {
            self.denied = self.denied.saturating_add(denied.into());
            self.end(id, Some("ietf-yang-push:unchanging-selection"), now);
        }
    }

    /// How many notifications were not sent because their users may not receive them any more: one
    /// for each subscription that ended so.
    pub fn denied(&self) -> u32 {
        self.denied
    }

    /// Rows went by that nobody has: who follows changes gets everything as it is now.
    pub fn missed(&mut self, rows: &[Arc<Row>], world: &World<'_>, now: Now) {
        self.known = rows.iter().map(|row| row.place.clone()).collect();
        let ids: Vec<u32> = self
            .all
            .iter()
            .filter(|(_, found)| found.trigger.on_change() && found.condition == Condition::Active)
            .map(|(id, _)| *id)
            .collect();
        self.update(&ids, world, now, true);
    }

    fn send(&mut self, id: u32, text: Text, now: Now) {
        let Some(found) = self.all.get_mut(&id) else { return };
        let octets = text.len();
        let own = found.waiting_octets > 0
            && found.waiting_octets.saturating_add(octets) > self.settings.waiting_octets_max;
        let all = self.held.load(Ordering::Relaxed) > self.settings.all_octets_max;
        if own || all {
            // What waits goes out; what does not is made good by the whole when it goes on.
            found.condition = Condition::Suspended(now.monotonic);
            found.excluded = found.excluded.saturating_add(1);
            found.dampened.clear();
            let told = message::notice(
                self.schema,
                found.encoding,
                "subscription-suspended",
                id,
                Some(match own {
                    true => "ietf-subscribed-notifications:unsupportable-volume",
                    false => "ietf-subscribed-notifications:insufficient-resources",
                }),
            );
            found.push(Message { text: told, wall: now.wall, about: About::Subscription });
        } else {
            found.push(Message { text, wall: now.wall, about: About::Event });
        }
        self.ready.insert(id);
    }

    /// Whether taking the next message makes the whole anew first, which takes its time: all that
    /// waited was taken, and there is room for more.
    pub fn goes_on(&self, id: u32) -> bool {
        self.held.load(Ordering::Relaxed) <= self.settings.all_octets_max
            && self.all.get(&id).is_some_and(|found| {
                found.waiting.is_empty() && matches!(found.condition, Condition::Suspended(_))
            })
    }

    /// The next message for a subscriber; none where nothing waits. A subscription that was suspended
    /// goes on once all that waited is taken.
    pub fn take(&mut self, id: u32, world: &World<'_>, now: Now) -> Option<Message> {
        if let Some(ended) = self.ended.get_mut(&id) {
            let message = ended.left.pop_front();
            if ended.left.is_empty() {
                self.ended.remove(&id);
            }
            return message;
        }
        let goes_on = self.goes_on(id);
        let found = self.all.get_mut(&id)?;
        if goes_on {
            found.condition = Condition::Active;
            let periodic = !found.trigger.on_change();
            if periodic {
                found.due = found.trigger.next(found.due, now);
            }
            let told =
                message::notice(self.schema, found.encoding, "subscription-resumed", id, None);
            found.push(Message { text: told, wall: now.wall, about: About::Subscription });
            self.update(&[id], world, now, false);
        }
        let found = self.all.get_mut(&id)?;
        let message = found.waiting.pop_front()?;
        found.waiting_octets = found.waiting_octets.saturating_sub(message.text.len());
        found.sent = found.sent.saturating_add(u64::from(message.about == About::Event));
        Some(message)
    }

    /// Whether a subscription has come to its end and has nothing left to say.
    pub fn over(&self, id: u32) -> bool {
        !self.all.contains_key(&id) && !self.ended.contains_key(&id)
    }

    /// Those for which there is something to take, or that have ended, since this was asked last.
    pub fn ready(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ready).into_iter().collect()
    }

    /// Whose a subscription is, and how its messages are written.
    pub fn owner(&self, id: u32) -> Option<(&Caller, Encoding)> {
        self.all.get(&id).map(|found| (&found.caller, found.encoding))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A way in is closed: its subscriptions are, too, without a word.
    pub fn closed(&mut self, transport: Transport) {
        let all = self.all.iter().map(|(id, found)| (*id, &found.caller));
        let ended = self.ended.iter().map(|(id, ended)| (*id, &ended.caller));
        let ids: Vec<u32> = all
            .chain(ended)
            .filter(|(_, caller)| caller.transport == transport)
            .map(|(id, _)| id)
            .collect();
        ids.into_iter().for_each(|id| self.forget(id));
    }

    /// The reader of a subscription has gone: it ends without a word.
    pub fn forget(&mut self, id: u32) {
        self.all.remove(&id);
        self.ended.remove(&id);
        self.ready.insert(id);
    }

    /// Ends a subscription; what waits goes out, and then why.
    fn end(&mut self, id: u32, reason: Option<&str>, now: Now) {
        let Some(mut found) = self.all.remove(&id) else { return };
        let mut left = std::mem::take(&mut found.waiting);
        if let Some(reason) = reason {
            let text = message::notice(
                self.schema,
                found.encoding,
                "subscription-terminated",
                id,
                Some(reason),
            );
            left.push_back(Message { text, wall: now.wall, about: About::Subscription });
        }
        if !left.is_empty() {
            self.ended.insert(id, Ended { caller: found.caller, left });
        }
        self.ready.insert(id);
    }

    /// Whether a top-level node tells of subscriptions.
    pub fn tells(definition: &Definition) -> bool {
        matches!(&*definition.name, "subscriptions" | "system-capabilities")
    }

    /// A top-level node that tells of subscriptions; none for any other definition.
    pub fn top(&self, definition: &'static Definition, user: Option<&str>) -> Option<Node> {
        match &*definition.name {
            "subscriptions" => Some(state::subscriptions(definition, self.schema, &self.all, user)),
            "system-capabilities" => Some(state::capabilities(definition, &self.settings)),
            _ => None,
        }
    }
}

impl Subscription {
    /// New terms that nothing was sent under are replaced by newer ones.
    fn push_terms(&mut self, message: Message) {
        if self.waiting.back().is_some_and(|last| last.about == About::Terms)
            && let Some(last) = self.waiting.pop_back()
        {
            self.waiting_octets = self.waiting_octets.saturating_sub(last.text.len());
        }
        self.push(message);
    }

    fn push(&mut self, message: Message) {
        self.waiting_octets = self.waiting_octets.saturating_add(message.text.len());
        self.waiting.push_back(message);
    }
}
