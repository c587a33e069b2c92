//! Subscribers, rows that are published to them, and what they get.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use manage::access::{Action, Group, Pattern, Policy, Rule, RuleList, Subject};
use manage::error::OperationError;
use manage::json;
use manage::operation::{Body, Call, Caller, Transport};
use manage::operational::{self, Datastore, Interface};
use manage::push::{Now, Settings, Subscriptions, World};
use manage::read::{Encoding, What};
use manage::schema::Definition;
use manage::tree::Node;
use observe::queue::row::Row;
use serde_json::{Value, json};

use super::scene::{interface, row, schema};

pub struct Rows {
    pub rows: RefCell<Vec<Arc<Row>>>,
    /// How often they were read.
    pub reads: Cell<usize>,
    interfaces: Vec<Interface>,
}

impl Datastore for Rows {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        (&*definition.name == "interfaces").then(|| {
            self.reads.set(self.reads.get() + 1);
            operational::interfaces(schema(), &self.interfaces, &self.rows.borrow())
        })?
    }
}

pub fn policy() -> Policy {
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
    Policy {
        groups: vec![
            Group { name: "all".into(), users: vec!["alice".into(), "dave".into()] },
            Group { name: "one".into(), users: vec!["carol".into()] },
            Group { name: "none".into(), users: vec!["nobody".into()] },
        ],
        lists: vec![
            list("none", vec![told(Action::Permit)]),
            list("all", vec![rule(None, Action::Permit)]),
            list(
                "one",
                vec![
                    rule(Some("/ietf-interfaces:interfaces/interface[name='e2']"), Action::Permit),
                    rule(Some("/ietf-interfaces:interfaces/interface"), Action::Deny),
                    rule(Some("/ietf-interfaces:interfaces"), Action::Permit),
                    told(Action::Permit),
                ],
            ),
        ],
        ..Policy::default()
    }
}

/// A rule about the notifications that tell of data.
pub fn told(action: Action) -> Rule {
    Rule {
        name: "told".into(),
        module: Some("ietf-yang-push".into()),
        subject: Subject::Notification(None),
        read: true,
        exec: false,
        action,
    }
}

pub struct Scene {
    pub subscriptions: Subscriptions,
    pub rows: Rows,
    pub policy: Policy,
    pub ms: u64,
}

const START: u64 = 1_793_318_400;

impl Scene {
    pub fn new(settings: Settings) -> Self {
        let rows = ["e1", "e2"].map(|name| Arc::new(row(name, "q3", 1)));
        let mut scene = Self {
            subscriptions: Subscriptions::new(schema(), settings),
            rows: Rows {
                rows: RefCell::new(Vec::new()),
                reads: Cell::new(0),
                interfaces: vec![interface("e1"), interface("e2")],
            },
            policy: policy(),
            ms: 0,
        };
        scene.publish(rows.to_vec());
        scene
    }

    pub fn now(&self) -> Now {
        let monotonic = Duration::from_millis(self.ms);
        Now { monotonic, wall: UNIX_EPOCH + Duration::from_secs(START) + monotonic }
    }

    pub fn with<T>(&mut self, act: impl FnOnce(&mut Subscriptions, &World<'_>, Now) -> T) -> T {
        let now = self.now();
        let world = World {
            datastore: &self.rows,
            policy: &self.policy,
            interfaces: &self.rows.interfaces,
        };
        act(&mut self.subscriptions, &world, now)
    }

    pub fn publish(&mut self, rows: Vec<Arc<Row>>) {
        for row in &rows {
            let mut all = self.rows.rows.borrow_mut();
            all.retain(|other| other.place != row.place);
            all.push(row.clone());
        }
        self.with(|subscriptions, world, now| subscriptions.published(&rows, &[], world, now));
    }

    pub fn call(
        &mut self,
        caller: &Caller,
        name: &str,
        input: &Value,
    ) -> Result<Value, OperationError> {
        let module = if name == "resync-subscription" {
            "ietf-yang-push"
        } else {
            "ietf-subscribed-notifications"
        };
        let operation = manage::schema::find(schema().rpcs(), module, name).expect("an operation");
        let text = json!({format!("{module}:input"): input}).to_string();
        let node = schema().read_restconf_input(operation, Encoding::Json, &text).expect("valid");
        let policy = self.policy.clone();
        let access = policy.access(&caller.user);
        let encoding = match caller.transport {
            Transport::Restconf => Encoding::Json,
            Transport::Netconf(_) => Encoding::Xml,
        };
        let call = Call {
            caller,
            access: &access,
            input: &node,
            body: Body::Json(input),
            base: "https://h:8443",
            encoding,
        };
        let output =
            self.with(|subscriptions, world, now| subscriptions.call(&call, world, now))?;
        Ok(serde_json::from_str(&json::object(&output)).expect("JSON"))
    }

    pub fn establish(
        &mut self,
        user: &str,
        trigger: Value,
        more: Value,
    ) -> Result<u32, OperationError> {
        self.establish_by(&of(user), trigger, more)
    }

    pub fn establish_by(
        &mut self,
        caller: &Caller,
        trigger: Value,
        more: Value,
    ) -> Result<u32, OperationError> {
        let mut input = json!({"ietf-yang-push:datastore": "ietf-datastores:operational"});
        for part in [trigger, more] {
            for (name, value) in part.as_object().expect("an object") {
                input[name] = value.clone();
            }
        }
        let output = self.call(caller, "establish-subscription", &input)?;
        let id = output["ietf-subscribed-notifications:id"].as_u64().expect("a number");
        if caller.transport == Transport::Restconf {
            assert_eq!(
                output["ietf-restconf-subscribed-notifications:uri"],
                format!("https://h:8443/restconf/subscriptions/{id}")
            );
        }
        Ok(u32::try_from(id).expect("a number"))
    }

    /// The next message, valid, without its envelope.
    pub fn next(&mut self, id: u32) -> Option<Value> {
        let message = self.with(|subscriptions, world, now| subscriptions.take(id, world, now))?;
        let document: Value = serde_json::from_str(&message.document()).expect("JSON");
        let inner =
            document["ietf-restconf:notification"].as_object().expect("an envelope").clone();
        assert!(inner["eventTime"].as_str().is_some_and(|time| time.ends_with('Z')), "{inner:?}");
        let text = format!("{{{}}}", message.content());
        schema().read(Encoding::Json, What::Notification, &text).expect("valid");
        Some(serde_json::from_str(&text).expect("JSON"))
    }

    pub fn all(&mut self, id: u32) -> Vec<Value> {
        std::iter::from_fn(|| self.next(id)).collect()
    }

    pub fn later(&mut self, ms: u64) -> Option<u64> {
        self.ms += ms;
        let due = self.with(|subscriptions, world, now| subscriptions.advance(world, now));
        due.map(|due| u64::try_from(due.as_millis()).expect("soon"))
    }
}

pub fn of(user: &str) -> Caller {
    Caller { user: user.into(), transport: Transport::Restconf }
}

pub fn on_change() -> Value {
    json!({"ietf-yang-push:on-change": {}})
}

pub fn periodic(period: u32) -> Value {
    json!({"ietf-yang-push:periodic": {"period": period}})
}

pub fn edits(message: &Value) -> Vec<Value> {
    message["ietf-yang-push:push-change-update"]["datastore-changes"]["yang-patch"]["edit"]
        .as_array()
        .unwrap_or_else(|| panic!("no change: {message}"))
        .clone()
}

pub fn kind(message: &Value) -> String {
    let name = message.as_object().and_then(|object| object.keys().next()).expect("a name");
    name.split_once(':').expect("a module").1.to_owned()
}

pub fn kinds(messages: &[Value]) -> Vec<String> {
    messages.iter().map(kind).collect()
}

pub fn app_tag(refused: OperationError) -> String {
    refused.app_tag.clone().map_or_else(|| format!("none: {refused}"), |tag| tag.to_string())
}
