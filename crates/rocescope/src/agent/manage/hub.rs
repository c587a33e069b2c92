//! Subscriptions at work: rows come from the board, time passes, and whoever sends messages is woken.
//!
//! [`manage::push`] decides what is sent. What it knows of rows is what has gone through here, so
//! that no update is older than the one before it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex as Brief, PoisonError};
use std::time::{Duration, Instant};

use manage::access::Policy;
use manage::error::OperationError;
use manage::operation::{Call, Operations, Transport};
use manage::operational::{Datastore, Interface};
use manage::push::{Message, Now, Settings, Subscriptions, World};
use manage::schema::{Definition, Schema};
use manage::tree::Node;
use observe::queue::Place;
use observe::queue::row::Row;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::task::block_in_place;

use super::{Facts, Managed};
use crate::queue::board::Heard;

/// The longest sleep, so that what nobody reads is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// The subscriptions, and who waits for them.
pub(super) struct Hub {
    /// Whoever waits for it lets others go on meanwhile: what an interval is to everybody is written
    /// while it is held.
    state: Mutex<State>,
    /// Subscriptions of RESTCONF whose readers have gone.
    left: Brief<Vec<u32>>,
    /// Something may be due earlier than was thought.
    sooner: Notify,
    /// How long a subscription may wait for its first reader.
    unread_max: Duration,
}

struct State {
    subscriptions: Subscriptions,
    /// The rows that subscribers have been told of.
    rows: BTreeMap<Arc<Place>, Arc<Row>>,
    /// The same as they are read, made when they change: messages are taken far more often.
    told: Vec<Arc<Row>>,
    /// The interfaces of these.
    interfaces: Vec<Interface>,
    /// Of RESTCONF: who reads each subscription.
    streams: HashMap<u32, Stream>,
    /// Of NETCONF: each session.
    sessions: HashMap<u32, Session>,
    /// Of NETCONF: the session of each subscription.
    owners: HashMap<u32, u32>,
}

struct Stream {
    wake: Arc<Notify>,
    since: Instant,
    read: bool,
}

#[derive(Default)]
struct Session {
    wake: Arc<Notify>,
    /// How many subscriptions it has.
    subscriptions: usize,
    /// Those that may have something to say, each once; the next first.
    ready: VecDeque<u32>,
}

/// What there is for a session of NETCONF.
pub enum Waiting {
    /// A message.
    Message(Message),
    /// Nothing now.
    Nothing,
    /// Nothing, and no subscription that could say more.
    NoSubscription,
}

/// Why a stream is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// There is no such subscription of the user.
    Absent,
    /// It has a reader already.
    Read,
}

/// The reader of one subscription of RESTCONF. Dropping it ends the subscription.
pub struct Attached {
    managed: Arc<Managed>,
    id: u32,
    wake: Arc<Notify>,
}

impl Hub {
    pub(super) fn new(schema: &'static Schema, settings: Settings) -> Self {
        let state = State {
            subscriptions: Subscriptions::new(schema, settings),
            rows: BTreeMap::new(),
            told: Vec::new(),
            interfaces: Vec::new(),
            streams: HashMap::new(),
            sessions: HashMap::new(),
            owners: HashMap::new(),
        };
        Self {
            state: Mutex::new(state),
            left: Brief::default(),
            sooner: Notify::new(),
            unread_max: settings.suspended_max,
        }
    }

    /// Not for asynchronous code, which would hold up others: that awaits `state`.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.blocking_lock()
    }

    /// Replaces the policy. No subscriber is told of anything between the old one and the new.
    pub(super) fn policy_changed(&self, facts: &Facts, now: Now, replace: impl FnOnce()) {
        let mut state = self.lock();
        let old = facts.policy();
        replace();
        let denied = state.act(facts, |subscriptions, world| {
            subscriptions.policy_changed(&old, world.policy, now);
            subscriptions.denied()
        });
        facts.denied_notifications.store(denied, Ordering::Relaxed);
    }

    pub(super) fn top(&self, definition: &'static Definition) -> Option<Node> {
        // Whoever reads anything else waits for nobody.
        Subscriptions::tells(definition).then(|| self.lock().subscriptions.top(definition, None))?
    }
}

/// The datastore as subscribers have been told of it.
struct Told<'a> {
    facts: &'a Facts,
    rows: &'a [Arc<Row>],
}

impl Datastore for Told<'_> {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        self.facts.with_rows(definition, self.rows, &self.facts.base)
    }
}

impl State {
    /// The rows have changed.
    fn tell(&mut self, facts: &Facts) {
        self.told = self.rows.values().cloned().collect();
        self.interfaces = facts.interfaces(&self.told);
    }

    /// Does something with the subscriptions, and wakes whoever has something to send then.
    fn act<T>(
        &mut self,
        facts: &Facts,
        act: impl FnOnce(&mut Subscriptions, &World<'_>) -> T,
    ) -> T {
        let policy: Arc<Policy> = facts.policy();
        let told = Told { facts, rows: &self.told };
        let world = World { datastore: &told, policy: &policy, interfaces: &self.interfaces };
        let done = act(&mut self.subscriptions, &world);
        for id in self.subscriptions.ready() {
            if let Some(stream) = self.streams.get(&id) {
                stream.wake.notify_one();
            }
            let owner = self.owners.get(&id);
            if let Some(session) = owner.and_then(|owner| self.sessions.get_mut(owner)) {
                session.has(id);
            }
        }
        done
    }
}

impl Session {
    /// A subscription may have something to say.
    fn has(&mut self, id: u32) {
        if !self.ready.contains(&id) {
            self.ready.push_back(id);
        }
        self.wake.notify_one();
    }
}

impl Managed {
    /// Follows the board until it is gone, and keeps time for periodic updates.
    pub async fn follow(self: Arc<Self>) {
        let mut follower = self.facts.board.follow();
        self.again().await;
        loop {
            let due = self.advance().await;
            let now = self.now().monotonic;
            let sleep = due.map_or(SLEEP_MAX, |due| due.saturating_sub(now).min(SLEEP_MAX));
            tokio::select! {
                heard = follower.next() => match heard {
                    Some(Heard::Batch(batch)) => self.published(&batch.rows, &batch.gone).await,
                    Some(Heard::Missed(_)) => self.again().await,
                    None => return,
                },
                () = tokio::time::sleep(sleep) => {}
                () = self.hub.sooner.notified() => {}
            }
        }
    }

    async fn published(&self, rows: &[Arc<Row>], gone: &[Arc<Place>]) {
        let mut state = self.hub.state.lock().await;
        let now = self.now();
        block_in_place(|| {
            for place in gone {
                state.rows.remove(place);
            }
            for row in rows {
                state.rows.insert(row.place.clone(), row.clone());
            }
            state.tell(&self.facts);
            state.act(&self.facts, |subscriptions, world| {
                subscriptions.published(rows, gone, world, now);
            });
        });
    }

    /// Takes everything from the board as it is, when rows may have gone by.
    async fn again(&self) {
        let mut state = self.hub.state.lock().await;
        let now = self.now();
        block_in_place(|| {
            let latest = self.facts.board.latest();
            state.rows = latest.iter().map(|row| (row.place.clone(), row.clone())).collect();
            state.tell(&self.facts);
            state.act(&self.facts, |subscriptions, world| {
                subscriptions.missed(&latest, world, now);
            });
        });
    }

    async fn advance(&self) -> Option<Duration> {
        let mut state = self.hub.state.lock().await;
        let now = self.now();
        let left =
            std::mem::take(&mut *self.hub.left.lock().unwrap_or_else(PoisonError::into_inner));
        for id in left {
            state.streams.remove(&id);
            state.subscriptions.forget(id);
        }
        // Who never came to read will not.
        let unread: Vec<u32> = state
            .streams
            .iter()
            .filter(|(_, stream)| !stream.read && stream.since.elapsed() > self.hub.unread_max)
            .map(|(id, _)| *id)
            .collect();
        for id in unread {
            state.streams.remove(&id);
            state.subscriptions.forget(id);
        }
        block_in_place(|| {
            state.act(&self.facts, |subscriptions, world| subscriptions.advance(world, now))
        })
    }

    /// Begins to read a subscription of RESTCONF.
    ///
    /// # Errors
    /// Why it is not read.
    pub async fn attach(self: &Arc<Self>, id: u32, user: &str) -> Result<Attached, Busy> {
        let mut state = self.hub.state.lock().await;
        let (caller, _) = state.subscriptions.owner(id).ok_or(Busy::Absent)?;
        if *caller.user != *user || caller.transport != Transport::Restconf {
            return Err(Busy::Absent);
        }
        let stream = state.streams.get_mut(&id).ok_or(Busy::Absent)?;
        if std::mem::replace(&mut stream.read, true) {
            return Err(Busy::Read);
        }
        let wake = stream.wake.clone();
        Ok(Attached { managed: self.clone(), id, wake })
    }

    /// A session of NETCONF begins: what wakes it when something is to be sent.
    pub async fn session_wakes(&self, id: u32) -> Arc<Notify> {
        let session = Session::default();
        let wake = session.wake.clone();
        self.hub.state.lock().await.sessions.insert(id, session);
        wake
    }

    /// The next message for a session of NETCONF. Its subscriptions take turns.
    pub async fn take_for_session(&self, number: u32) -> Waiting {
        let mut state = self.hub.state.lock().await;
        let state = &mut *state;
        let now = self.now();
        while let Some(session) = state.sessions.get_mut(&number) {
            let Some(id) = session.ready.pop_front() else {
                let none = session.subscriptions == 0;
                return if none { Waiting::NoSubscription } else { Waiting::Nothing };
            };
            let message = state.take(&self.facts, id, now);
            let over = state.subscriptions.over(id);
            if over {
                state.owners.remove(&id);
            }
            let Some(session) = state.sessions.get_mut(&number) else { break };
            if over {
                session.subscriptions = session.subscriptions.saturating_sub(1);
                session.ready.retain(|other| *other != id);
            }
            let Some(message) = message else { continue };
            if !over && !session.ready.contains(&id) {
                session.ready.push_back(id);
            }
            return Waiting::Message(message);
        }
        Waiting::NoSubscription
    }

    /// A session of NETCONF has ended, and its subscriptions with it.
    pub async fn session_leaves(&self, id: u32) {
        let mut state = self.hub.state.lock().await;
        state.sessions.remove(&id);
        state.owners.retain(|_, owner| *owner != id);
        state.subscriptions.closed(Transport::Netconf(id));
    }

    async fn take(&self, id: u32) -> Result<Option<Message>, Over> {
        let mut state = self.hub.state.lock().await;
        let message = state.take(&self.facts, id, self.now());
        match message {
            None if state.subscriptions.over(id) => Err(Over),
            message => Ok(message),
        }
    }
}

impl State {
    /// The next message of a subscription.
    fn take(&mut self, facts: &Facts, id: u32, now: Now) -> Option<Message> {
        let whole = self.subscriptions.goes_on(id);
        let mut take =
            || self.act(facts, |subscriptions, world| subscriptions.take(id, world, now));
        if whole { block_in_place(take) } else { take() }
    }
}

/// A subscription has come to its end.
struct Over;

impl Attached {
    /// What the subscription is of.
    pub(super) fn managed(&self) -> Arc<Managed> {
        self.managed.clone()
    }

    /// Waits for the next message; none once the subscription has come to its end. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match self.managed.take(self.id).await {
                Ok(Some(message)) => return Some(message),
                Ok(None) => self.wake.notified().await,
                Err(Over) => return None,
            }
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let hub = &self.managed.hub;
        hub.left.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
        hub.sooner.notify_one();
    }
}

impl Operations for Managed {
    fn has(&self, operation: &Definition) -> bool {
        Subscriptions::has(operation)
    }

    fn call(&self, call: &Call<'_>) -> Result<Vec<Node>, OperationError> {
        let now = self.now();
        let mut state = self.hub.lock();
        let output =
            state.act(&self.facts, |subscriptions, world| subscriptions.call(call, world, now))?;
        let established = output.iter().find(|node| *node.definition.name == *"id");
        if let Some(id) = established.and_then(|node| node.text()?.parse().ok()) {
            match call.caller.transport {
                Transport::Restconf => {
                    let stream =
                        Stream { wake: Arc::default(), since: Instant::now(), read: false };
                    state.streams.insert(id, stream);
                }
                Transport::Netconf(number) => {
                    if let Some(session) = state.sessions.get_mut(&number) {
                        session.subscriptions = session.subscriptions.saturating_add(1);
                        session.has(id);
                        state.owners.insert(id, number);
                    }
                }
            }
        }
        drop(state);
        self.hub.sooner.notify_one();
        Ok(output)
    }
}
