//! A small server to ask: rows, a policy that hides some of them, subscriptions, and a clock that
//! only the input moves.
//!
//! There are two of it. In one there are a queue, an interface and a leaf that [`USER`] may not read;
//! in the other they are not there, or have another value. The user has to be told the same by both.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use manage::access::{Action, Group, Pattern, Policy, Rule, RuleList, Subject};
use manage::error::OperationError;
use manage::netconf::{self, Limits, Session, Then};
use manage::operation::{Call, Caller, Operations, Transport, View};
use manage::operational::{self, Datastore, Interface};
use manage::push::{Message, Now, Settings, Subscriptions, World};
use manage::restconf::{self, Request, Response, Service};
use manage::schema::{Definition, Schema};
use manage::tree::Node;
use observe::pfc::Priority;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};

/// Who may not read everything.
pub(crate) const USER: &str = "u";
/// Who may.
pub(crate) const ADMIN: &str = "admin";

/// What is hidden has these in it, and nothing else has. Numbers would be met by chance.
pub(crate) const MARKERS: [&str; 2] = ["hush", "deadbeef-0000-4000-8000-00000000dead"];

/// Small enough for the bounds to be met.
pub(crate) const SETTINGS: Settings = Settings {
    subscriptions_max: 6,
    of_user_max: 4,
    waiting_octets_max: 6_000,
    all_octets_max: 1 << 20,
    filters_of_user_max: 8,
    period_min: 10,
    suspended_max: Duration::from_secs(2),
};

/// Queues by number: where they are, and whether they are hidden.
pub(crate) const QUEUES: [(&str, &str, bool); 6] = [
    ("e1", "q3", false),
    ("e1", "hush", true),
    ("e1", "a,b\"'<&%2F\u{e9}", false),
    ("e2", "q3", false),
    ("hush-if", "q0", true),
    ("e2", "q4", false),
];

const START: u64 = 1_793_318_400;

/// The modules.
pub(crate) fn schema() -> &'static Schema {
    Schema::get().expect("the modules load")
}

/// The server.
pub(crate) struct Served {
    /// Whether what is hidden is there.
    hidden: bool,
    pub(crate) policy: Policy,
    board: Board,
    pub(crate) subscriptions: RefCell<Subscriptions>,
    ms: Cell<u64>,
    interval: Cell<u64>,
}

/// What is measured, without the subscriptions to it.
struct Board {
    interfaces: Vec<Interface>,
    rows: RefCell<BTreeMap<Arc<Place>, Arc<Row>>>,
    policy: Option<Node>,
}

impl Datastore for Board {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        match &*definition.name {
            "interfaces" => {
                let rows: Vec<Arc<Row>> = self.rows.borrow().values().cloned().collect();
                operational::interfaces(schema(), &self.interfaces, &rows)
            }
            "restconf-state" => restconf::state(schema()),
            "nacm" => self.policy.clone(),
            _ => None,
        }
    }

    fn running(&self, definition: &'static Definition) -> Option<Node> {
        (&*definition.name == "nacm").then(|| self.policy.clone())?
    }
}

impl Datastore for Served {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        let told = self.subscriptions.borrow().top(definition, None);
        told.or_else(|| self.board.top(definition))
    }

    fn running(&self, definition: &'static Definition) -> Option<Node> {
        self.board.running(definition)
    }
}

impl Operations for Served {
    fn has(&self, operation: &Definition) -> bool {
        Subscriptions::has(operation)
    }

    fn call(&self, call: &Call<'_>) -> Result<Vec<Node>, OperationError> {
        self.with(|subscriptions, world, now| subscriptions.call(call, world, now))
    }
}

fn policy() -> Policy {
    let rule = |path: Option<&str>, action| Rule {
        name: "rule".into(),
        module: None,
        subject: path
            .map_or(Subject::All, |path| Subject::Data(Pattern::read(schema(), path).expect(path))),
        read: true,
        exec: true,
        action,
    };
    let list =
        |group: &str, rules| RuleList { name: group.into(), groups: vec![group.into()], rules };
    let queue =
        "/ietf-interfaces:interfaces/interface/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue";
    Policy {
        groups: vec![
            Group { name: "some".into(), users: vec![USER.into()] },
            Group { name: "all".into(), users: vec![ADMIN.into()] },
        ],
        lists: vec![
            list(
                "some",
                vec![
                    // The rules name what they hide.
                    rule(Some("/ietf-netconf-acm:nacm"), Action::Deny),
                    rule(Some(&format!("{queue}[queue-id='hush']")), Action::Deny),
                    rule(Some(&format!("{queue}/absolute-error-ns")), Action::Deny),
                    rule(
                        Some("/ietf-interfaces:interfaces/interface[name='hush-if']"),
                        Action::Deny,
                    ),
                    rule(None, Action::Permit),
                ],
            ),
            list("all", vec![rule(None, Action::Permit)]),
        ],
        ..Policy::default()
    }
}

impl Served {
    /// One in which something is hidden, or the same without it.
    pub(crate) fn new(hidden: bool) -> Self {
        let policy = policy();
        let names = ["e1", "e2", "hush-if"];
        let interfaces = names.iter().filter(|name| hidden || !name.starts_with("hush"));
        let board = Board {
            interfaces: interfaces
                .map(|name| Interface {
                    name: (*name).into(),
                    oper_status: Some("up".into()),
                    discontinuity: "2026-10-30T00:00:00Z".into(),
                })
                .collect(),
            rows: RefCell::default(),
            policy: policy.node(schema(), Default::default()),
        };
        let made = Self {
            hidden,
            policy,
            board,
            subscriptions: RefCell::new(Subscriptions::new(schema(), SETTINGS)),
            ms: Cell::new(0),
            interval: Cell::new(0),
        };
        made.publish(0b1_1111, 0);
        made
    }

    pub(crate) fn now(&self) -> Now {
        let monotonic = Duration::from_millis(self.ms.get());
        Now { monotonic, wall: UNIX_EPOCH + Duration::from_secs(START) + monotonic }
    }

    /// Does something with the subscriptions.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Subscriptions, &World<'_>, Now) -> T) -> T {
        let world = World {
            datastore: &self.board,
            policy: &self.policy,
            interfaces: &self.board.interfaces,
        };
        act(&mut self.subscriptions.borrow_mut(), &world, self.now())
    }

    fn row(&self, place: Arc<Place>, hidden: bool, number: usize) -> Arc<Row> {
        let interval = self.interval.get();
        let id = if hidden { MARKERS[1] } else { "31c38fe2-f97e-4a88-a0a7-bae9ed5d4131" };
        let measurement = if number % 4 == 2 {
            Measurement::Unknown(Reason::CaptureGap)
        } else {
            Measurement::Known(Known {
                method: Method::Samples { period_ns: 1_000_000 },
                gated_ns: if hidden { 66_660_002 } else { 18_500_000 },
                backlog_ns: 80_000_000,
                error_ns: if self.hidden { 77_770_001 } else { 256 },
            })
        };
        Arc::new(Row {
            place,
            epoch: EpochId::read(id).expect("a UUID"),
            interval,
            start_ns: 100_000_000 * interval,
            duration_ns: 100_000_000,
            wall_clock_start: None,
            priorities: Priorities::new([Priority::ALL[3], Priority::ALL[4]])
                .expect("two priorities"),
            measurement,
        })
    }

    /// New rows of some queues, and some that are gone, each as a set of bits.
    pub(crate) fn publish(&self, new: usize, gone: usize) {
        self.interval.set(self.interval.get() + 1);
        let there = |bits: usize| {
            let queues = QUEUES.iter().enumerate();
            queues
                .filter(move |(number, queue)| bits >> number & 1 == 1 && (self.hidden || !queue.2))
                .map(|(number, (interface, queue, hidden))| {
                    let place = Place { interface: (*interface).into(), queue: (*queue).into() };
                    (number, Arc::new(place), *hidden)
                })
        };
        let gone: Vec<Arc<Place>> = there(gone & !new).map(|(_, place, _)| place).collect();
        let rows: Vec<Arc<Row>> =
            there(new).map(|(number, place, hidden)| self.row(place, hidden, number)).collect();
        {
            let mut all = self.board.rows.borrow_mut();
            gone.iter().for_each(|place| {
                all.remove(place);
            });
            all.extend(rows.iter().map(|row| (row.place.clone(), row.clone())));
        }
        self.with(|subscriptions, world, now| subscriptions.published(&rows, &gone, world, now));
    }

    /// Rows went by.
    pub(crate) fn missed(&self) {
        let rows: Vec<Arc<Row>> = self.board.rows.borrow().values().cloned().collect();
        self.with(|subscriptions, world, now| subscriptions.missed(&rows, world, now));
    }

    /// Time passes. What is due next is still to come.
    pub(crate) fn later(&self, ms: u64) {
        self.ms.set(self.ms.get().saturating_add(ms));
        let due = self.with(|subscriptions, world, now| subscriptions.advance(world, now));
        let now = self.now().monotonic;
        assert!(due.is_none_or(|due| due > now), "due at {due:?}, and it is {now:?}");
    }

    /// What is new in a subscription.
    pub(crate) fn take(&self, id: u32) -> Option<Message> {
        self.with(|subscriptions, world, now| subscriptions.take(id, world, now))
    }

    /// Octets of a tree with everything in it, written in the longer of the encodings, and more.
    pub(crate) const WHOLE_OCTETS: usize = 40_000;

    /// A request of RESTCONF.
    pub(crate) fn ask(&self, user: &str, request: &Request<'_>) -> Response {
        let access = self.policy.access(user);
        let caller = Caller { user: user.into(), transport: Transport::Restconf };
        let service = Service {
            view: View { schema: schema(), datastore: self, access: &access },
            caller: &caller,
            operations: self,
            base: "https://h",
            modified: UNIX_EPOCH + Duration::from_secs(START - 10),
            now: self.now().wall,
        };
        restconf::handle(&service, request)
    }

    /// A request in a session of NETCONF.
    pub(crate) fn answer(&self, session: &mut Session, request: &str) -> (Vec<u8>, Then) {
        let user = session.caller().user.clone();
        let access = self.policy.access(&user);
        let world = netconf::World {
            datastore: self,
            access: &access,
            operations: self,
            kill: &|id| id == 9,
        };
        session.answer(request, &world)
    }
}

/// Bounds of a session.
pub(crate) fn limits() -> Limits {
    Limits { message_octets_max: 1 << 16, ..Limits::default() }
}
