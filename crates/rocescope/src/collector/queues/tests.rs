//! What the client says, held against the server that the agent has and the modules behind it.

use std::sync::Arc;
use std::time::SystemTime;

use manage::access::{Action, Group, Policy, Rule, RuleList, Subject};
use manage::error::OperationError;
use manage::operation::{Call, Caller, Operations, Transport, View};
use manage::operational::{self, Datastore, Interface};
use manage::restconf::{Request, Response, Service, handle};
use manage::schema::{Definition, Schema, find};
use manage::tree::Node;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};
use store::QueueEntry;

use super::intake;
use super::restconf::{self, Filter, JSON, XRD};

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

impl Datastore for Served {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        let listed = [Interface {
            name: "Ethernet1/1".into(),
            oper_status: Some("up".into()),
            discontinuity: "2026-10-30T00:00:00Z".into(),
        }];
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

fn ask(request: &Request<'_>) -> Response {
    let permit = Rule {
        name: "all".into(),
        module: None,
        subject: Subject::All,
        read: true,
        exec: true,
        action: Action::Permit,
    };
    let policy = Policy {
        groups: vec![Group { name: "all".into(), users: vec!["collector".into()] }],
        lists: vec![RuleList {
            name: "all".into(),
            groups: vec!["all".into()],
            rules: vec![permit],
        }],
        ..Policy::default()
    };
    let access = policy.access("collector");
    let caller = Caller { user: "collector".into(), transport: Transport::Restconf };
    let service = Service {
        view: View { schema: schema(), datastore: &Served, access: &access },
        caller: &caller,
        operations: &Served,
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
