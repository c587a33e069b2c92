//! What the client says, held against the server that the agent has and the modules behind it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use manage::access::{Action, Group, Policy, Rule, RuleList, Subject};
use manage::error::OperationError;
use manage::operation::{Body, Call, Caller, Operations, Transport, View};
use manage::operational::{self, Datastore, Interface};
use manage::push::{Message, Now, Settings, Subscriptions, World};
use manage::read::Encoding;
use manage::restconf::{Request, Response, Service, handle};
use manage::schema::{Definition, Schema, find};
use manage::tree::Node;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};
use store::QueueEntry;

use super::intake;
use super::restconf::{self, Filter, JSON, Notice, XRD};

fn schema() -> &'static Schema {
    Schema::get().unwrap()
}

fn rows() -> Vec<Row> {
    let place =
        |queue: &str| Arc::new(Place { interface: "Ethernet1/1".into(), queue: queue.into() });
    let known = Known {
        method: Method::Samples { period_ns: 7 },
        gated_ns: 1,
        backlog_ns: (1 << 40) + 1,
        error_ns: 3,
    };
    let row = Row {
        place: place("a,b%/\"ö"),
        epoch: EpochId::random([9; 16]),
        interval: u64::MAX,
        start_ns: (1 << 53) - 1 - (1 << 41),
        duration_ns: 1 << 41,
        wall_clock_start: Some("2026-10-30T00:00:00.5Z".into()),
        priorities: Priorities::from_bits(0b1001).unwrap(),
        measurement: Measurement::Known(known),
    };
    let unknown = Row {
        place: place("q3"),
        interval: 1,
        wall_clock_start: None,
        measurement: Measurement::Unknown(Reason::CandidateUnresolved),
        ..row.clone()
    };
    vec![row, unknown]
}

struct Served;

fn listed() -> [Interface; 1] {
    [Interface {
        name: "Ethernet1/1".into(),
        oper_status: Some("up".into()),
        discontinuity: "2026-10-30T00:00:00Z".into(),
    }]
}

impl Datastore for Served {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        let listed = listed();
        let rows: Vec<Arc<Row>> = rows().into_iter().map(Arc::new).collect();
        (&*definition.name == "interfaces")
            .then(|| operational::interfaces(schema(), &listed, &rows))
            .flatten()
    }
}

impl Operations for Served {
    fn has(&self, operation: &Definition) -> bool {
        &*operation.name == "establish-subscription"
    }

    /// What a publisher of RFC 8650 answers; the input has passed the modules by then.
    fn call(&self, call: &Call<'_>) -> Result<Vec<Node>, OperationError> {
        let module = "ietf-subscribed-notifications";
        let rpc = find(schema().rpcs(), module, "establish-subscription").unwrap();
        assert!(call.input.children().len() >= 3, "{:?}", call.input);
        let manage::schema::Kind::Rpc { output } = &rpc.kind else { panic!("an operation") };
        let leaf = |name: &str, value: &str| {
            Node::value(output.iter().find(|node| &*node.name == name).unwrap(), value)
        };
        Ok(vec![leaf("id", "22"), leaf("uri", "/restconf/subscriptions/22")])
    }
}

fn policy() -> Policy {
    let permit = Rule {
        name: "all".into(),
        module: None,
        subject: Subject::All,
        read: true,
        exec: true,
        action: Action::Permit,
    };
    Policy {
        groups: vec![Group { name: "all".into(), users: vec!["collector".into()] }],
        lists: vec![RuleList {
            name: "all".into(),
            groups: vec!["all".into()],
            rules: vec![permit],
        }],
        ..Policy::default()
    }
}

fn ask(request: &Request<'_>) -> Response {
    let policy = policy();
    let access = policy.access("collector");
    let caller = Caller { user: "collector".into(), transport: Transport::Restconf };
    let service = Service {
        view: View { schema: schema(), datastore: &Served, access: &access },
        caller: &caller,
        operations: &Served,
        base: "https://leaf-1.example",
        modified: SystemTime::UNIX_EPOCH,
        now: SystemTime::UNIX_EPOCH,
    };
    handle(&service, request)
}

fn get(target: &str, accept: &str) -> Response {
    let (path, query) = target.split_once('?').map_or((target, None), |(a, b)| (a, Some(b)));
    let accept = Some(accept);
    ask(&Request { method: "GET", path, query, accept, ..Request::default() })
}

fn text(response: &Response) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

fn root() -> String {
    let answer = get(restconf::HOST_META, XRD);
    assert_eq!(answer.status, 200, "{answer:?}");
    restconf::root(text(&answer), "leaf-1.example:443").unwrap()
}

// QUE-pub.2, QUE-con.1
#[test]
fn every_target_gives_the_rows_as_they_are_served_and_nothing_that_is_wrong() {
    let targets = restconf::targets(&root());
    for target in &targets {
        let answer = get(target, JSON);
        assert_eq!(answer.status, 200, "{target}: {}", text(&answer));
        let taken = intake::entries(&intake::read(&answer.body).unwrap(), 10);
        assert_eq!(taken.findings, [""; 0], "{target}");
        let found: Vec<Row> = taken
            .entries
            .into_iter()
            .map(|entry| match entry {
                QueueEntry::Row(row) => row,
                other => panic!("{target}: {other:?}"),
            })
            .collect();
        assert_eq!(found, rows(), "{target}");
    }
    // Only what is asked for comes over the wire.
    assert!(!text(&get(&targets[0], JSON)).contains("oper-status"));
}

// QUE-pub.2
#[test]
fn a_subscription_is_one_of_the_modules_and_leads_to_its_stream() {
    let target = restconf::establish(&root());
    for filter in Filter::ALL {
        let body = restconf::subscription(filter);
        let answer = ask(&Request {
            method: "POST",
            path: &target,
            accept: Some(JSON),
            content_type: Some(JSON),
            body: body.as_bytes(),
            ..Request::default()
        });
        assert_eq!(answer.status, 200, "{filter:?}: {}", text(&answer));
        let path = restconf::stream(&answer.body, "leaf-1.example:443").unwrap();
        assert_eq!(path, "/restconf/subscriptions/22");
    }
    let refused = get(&target, JSON);
    let problem = restconf::problem(refused.status, &refused.body);
    assert!(problem.starts_with("status 405, operation-not-supported, "), "{problem}");
}

/// What a subscription of the agent sends, as the collector takes it.
fn taken(message: &Message) -> (Vec<QueueEntry>, Notice) {
    let event = intake::read(message.document().as_bytes()).unwrap();
    let taken = intake::entries(&event, 100);
    assert_eq!(taken.findings, [""; 0], "{}", message.document());
    (taken.entries, restconf::notice(&event))
}

// QUE-pub.2, QUE-con.1
#[test]
fn what_a_subscription_of_the_agent_sends_is_taken_row_by_row_and_its_notices_are_heeded() {
    let (policy, listed) = (policy(), listed());
    let access = policy.access("collector");
    let world = World { datastore: &Served, policy: &policy, interfaces: &listed };
    let now = |seconds| Now {
        monotonic: Duration::from_secs(seconds),
        wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_318_400 + seconds),
    };
    let caller = Caller { user: "collector".into(), transport: Transport::Restconf };
    let operation =
        find(schema().rpcs(), "ietf-subscribed-notifications", "establish-subscription").unwrap();
    let all: Vec<QueueEntry> = rows().into_iter().map(QueueEntry::Row).collect();
    for filter in Filter::ALL {
        let settings = Settings { waiting_octets_max: 4096, ..Settings::default() };
        let mut subscriptions = Subscriptions::new(schema(), settings);
        let body = restconf::subscription(filter);
        let input = schema().read_restconf_input(operation, Encoding::Json, &body).unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let call = Call {
            caller: &caller,
            access: &access,
            input: &input,
            body: Body::Json(&body["ietf-subscribed-notifications:input"]),
            base: "https://leaf-1.example",
            encoding: Encoding::Json,
        };
        let output = subscriptions.call(&call, &world, now(0)).unwrap();
        let output = manage::json::object(&output);
        let answer = format!("{{\"ietf-subscribed-notifications:output\":{output}}}");
        let stream = restconf::stream(answer.as_bytes(), "leaf-1.example:443").unwrap();
        let id = stream.rsplit('/').next().unwrap().parse().unwrap();
        // All that is there to begin with, and then each interval by itself.
        let first = subscriptions.take(id, &world, now(0)).unwrap();
        assert_eq!(taken(&first), (all.clone(), Notice::Nothing), "{filter:?}");
        let next = Row { interval: 2, ..rows().remove(1) };
        subscriptions.published(&[Arc::new(next.clone())], &[], &world, now(1));
        let change = subscriptions.take(id, &world, now(1)).unwrap();
        assert_eq!(taken(&change), (vec![QueueEntry::Row(next.clone())], Notice::Nothing));
        // A queue that goes away ends nothing.
        subscriptions.published(&[], std::slice::from_ref(&next.place), &world, now(2));
        let gone = subscriptions.take(id, &world, now(2)).unwrap();
        assert_eq!(taken(&gone), (Vec::new(), Notice::Nothing));
        // A subscriber that does not read is told, and told again when it does.
        for _ in 0..20 {
            subscriptions.published(&[Arc::new(next.clone())], &[], &world, now(3));
        }
        let told = std::iter::from_fn(|| subscriptions.take(id, &world, now(4)));
        let notices: Vec<Notice> = told.map(|message| taken(&message).1).collect();
        let notices: Vec<_> = notices.iter().filter(|n| **n != Notice::Nothing).collect();
        assert!(matches!(notices[..], [Notice::Suspended(_), Notice::Resumed]), "{notices:?}");
        // Rows that nobody has any more: everything as it is now, and that it is not all.
        subscriptions.missed(&[Arc::new(next)], &world, now(5));
        let missed = subscriptions.take(id, &world, now(5)).unwrap();
        assert_eq!(taken(&missed), (all.clone(), Notice::Incomplete), "{}", missed.document());
    }
}
