//! Queue telemetry served: the YANG datastore of this device, over RESTCONF and NETCONF.
//!
//! `manage` (the crate) decides what is answered; here are the things of the world that it needs: the
//! board where rows are published, clocks, sessions, and the subscriptions at work ([`hub`]).
// QUE-pub.2, QUE-sec.1

mod counts;
mod events;
mod https;
mod hub;
mod open;
pub mod ssh;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use manage::access::{Denied, Policy};
use manage::netconf::Counts;
use manage::netconf::monitoring::{self, Shown, Statistics};
use manage::operational::{self, Datastore, Interface};
use manage::push::{self, Now, stamp};
use manage::schema::{Definition, Module, Schema};
use manage::tree::Node;
use manage::{library, restconf};
use observe::queue::row::Row;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::queue::board::Board;
use counts::Way;
use hub::{Attached, Busy, Waiting};
pub use open::{Opened, open, refusals};

/// Everything that is served, and to whom.
pub struct Managed {
    facts: Facts,
    hub: hub::Hub,
    /// Answers that are made at one time, whatever the way in.
    answers: Semaphore,
    counts: counts::Counts,
}

/// All of the datastore but the subscriptions, which read it themselves.
struct Facts {
    schema: &'static Schema,
    board: Arc<Board>,
    /// Who may read what, and since when.
    policy: RwLock<(Arc<Policy>, SystemTime)>,
    /// Where clients reach it over HTTP, as far as this program knows: `https://host:port`.
    base: String,
    started: Instant,
    /// The same, as `yang:date-and-time`.
    since: Box<str>,
    sessions: Mutex<BTreeMap<u32, Shown>>,
    statistics: Mutex<Statistics>,
    /// Operations that somebody may not call.
    denied: AtomicU32,
    /// Notifications that somebody may not receive.
    denied_notifications: AtomicU32,
}

impl Managed {
    /// Serves what a board has, with so many answers made at one time.
    ///
    /// # Errors
    /// The YANG modules do not load, in a line.
    pub fn new(
        board: Arc<Board>,
        policy: Policy,
        base: String,
        settings: push::Settings,
        answers_max: usize,
    ) -> Result<Arc<Self>, String> {
        let schema = Schema::get().map_err(|error| error.to_string())?;
        let since: Box<str> = stamp(SystemTime::now()).into();
        let facts = Facts {
            schema,
            board,
            policy: RwLock::new((Arc::new(policy), SystemTime::now())),
            base,
            started: Instant::now(),
            since: since.clone(),
            sessions: Mutex::default(),
            statistics: Mutex::new(Statistics { start: since, ..Statistics::default() }),
            denied: AtomicU32::new(0),
            denied_notifications: AtomicU32::new(0),
        };
        let answers = Semaphore::new(answers_max.min(Semaphore::MAX_PERMITS));
        let hub = hub::Hub::new(schema, settings);
        Ok(Arc::new(Self { facts, hub, answers, counts: counts::Counts::default() }))
    }

    /// The modules.
    pub fn schema(&self) -> &'static Schema {
        self.facts.schema
    }

    /// Waits until one more answer may be made, and holds its place. None where nothing is answered
    /// any more.
    pub async fn answers(&self) -> Option<SemaphorePermit<'_>> {
        self.answers.acquire().await.ok()
    }

    /// Who may read what, now.
    pub fn policy(&self) -> Arc<Policy> {
        self.facts.policy()
    }

    /// Others may read from now on. A subscription whose user may not have it any more ends.
    pub fn set_policy(&self, policy: Policy) {
        self.hub.policy_changed(&self.facts, self.now(), || {
            let mut current = self.facts.policy.write().unwrap_or_else(PoisonError::into_inner);
            *current = (Arc::new(policy), SystemTime::now());
        });
    }

    /// Where clients reach it over HTTP where they do not say so.
    pub fn base(&self) -> &str {
        &self.facts.base
    }

    /// The datastore as it is for one who reaches it at `base`: `https://host:port`.
    pub fn at<'a>(&'a self, base: &'a str) -> At<'a> {
        At { managed: self, base }
    }

    /// Since when an answer about rows is what it is: they were published then, or other users may
    /// read them since.
    pub fn modified(&self) -> SystemTime {
        self.facts.board.changed().1.max(self.facts.current().1)
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        Now { monotonic: self.facts.started.elapsed(), wall: SystemTime::now() }
    }

    /// Somebody is not let in.
    fn refused(&self, way: Way, from: SocketAddr, why: &str) {
        self.counts.refused(way, from, why, self.facts.started.elapsed());
    }

    /// Counts an operation that somebody may not call.
    pub fn denied(&self, times: u32) {
        self.facts.denied.fetch_add(times, Ordering::Relaxed);
    }

    /// A session of NETCONF has begun, from that address.
    pub fn session_began(&self, id: u32, user: &str, host: &str) {
        let shown = Shown {
            id,
            user: user.into(),
            host: host.into(),
            login: stamp(SystemTime::now()).into(),
            counts: Counts::default(),
        };
        self.facts.sessions().insert(id, shown);
        let mut statistics = self.facts.statistics();
        statistics.sessions = statistics.sessions.saturating_add(1);
    }

    /// What happened in a session so far.
    pub fn session_counted(&self, id: u32, counts: Counts) {
        if let Some(shown) = self.facts.sessions().get_mut(&id) {
            let before = std::mem::replace(&mut shown.counts, counts);
            self.denied(counts.denied.saturating_sub(before.denied));
        }
    }

    /// A session has ended; in order where the client said so.
    pub fn session_ended(&self, id: u32, in_order: bool) {
        let ended = self.facts.sessions().remove(&id);
        let mut statistics = self.facts.statistics();
        statistics.dropped = statistics.dropped.saturating_add((!in_order).into());
        if let Some(ended) = ended {
            statistics.ended = statistics.ended.and(ended.counts);
        }
    }

    /// A client began with something that is no hello.
    pub fn bad_hello(&self) {
        let mut statistics = self.facts.statistics();
        statistics.bad_hellos = statistics.bad_hellos.saturating_add(1);
    }
}

/// All of it, for one who reaches it at `base`.
pub struct At<'a> {
    managed: &'a Managed,
    base: &'a str,
}

impl Datastore for At<'_> {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        let Managed { facts, hub, .. } = self.managed;
        let found = hub.top(definition);
        found.or_else(|| facts.with_rows(definition, &facts.board.latest(), self.base))
    }

    fn running(&self, definition: &'static Definition) -> Option<Node> {
        self.managed.running(definition)
    }
}

impl Datastore for Managed {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        self.at(&self.facts.base).top(definition)
    }

    fn running(&self, definition: &'static Definition) -> Option<Node> {
        self.facts.running(definition)
    }
}

impl Facts {
    fn policy(&self) -> Arc<Policy> {
        self.current().0
    }

    fn current(&self) -> (Arc<Policy>, SystemTime) {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<u32, Shown>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn statistics(&self) -> MutexGuard<'_, Statistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interfaces of rows. What else an interface is, nobody tells.
    fn interfaces(&self, rows: &[Arc<Row>]) -> Vec<Interface> {
        let names: BTreeSet<&str> = rows.iter().map(|row| &*row.place.interface).collect();
        let interface = |name: &str| Interface {
            name: name.into(),
            oper_status: None,
            discontinuity: self.since.clone(),
        };
        names.into_iter().map(interface).collect()
    }

    /// A top-level node, with these rows as all that there are.
    fn with_rows(
        &self,
        definition: &'static Definition,
        rows: &[Arc<Row>],
        base: &str,
    ) -> Option<Node> {
        let location =
            |module: &Module| (!base.is_empty()).then(|| restconf::location(base, module));
        match (&*definition.module.name, &*definition.name) {
            ("ietf-interfaces", "interfaces") => {
                operational::interfaces(self.schema, &self.interfaces(rows), rows)
            }
            ("ietf-yang-library", "yang-library") => library::yang_library(self.schema, location),
            ("ietf-yang-library", "modules-state") => library::modules_state(self.schema, location),
            ("ietf-restconf-monitoring", "restconf-state") => restconf::state(self.schema),
            ("ietf-netconf-monitoring", "netconf-state") => {
                let sessions: Vec<Shown> = self.sessions().values().cloned().collect();
                monitoring::node(self.schema, &sessions, &self.statistics())
            }
            _ => self.running(definition),
        }
    }

    /// What is configured.
    fn running(&self, definition: &'static Definition) -> Option<Node> {
        let nacm = &*definition.module.name == "ietf-netconf-acm" && &*definition.name == "nacm";
        let denied = Denied {
            operations: self.denied.load(Ordering::Relaxed),
            notifications: self.denied_notifications.load(Ordering::Relaxed),
        };
        nacm.then(|| self.policy().node(self.schema, denied))?
    }
}
