//! What subscribers on change cost, with every queue completing one interval a second:
//! `cargo run --release -p manage --example push_rate -- [SUBSCRIBERS] [QUEUES] [INTERVALS]`.
//!
//! Each interval is published once, and every subscriber takes its message as the document that
//! RESTCONF sends. Sending it (TLS, sockets) is not in the numbers. They are parts of one core: at 100
//! a second is spent for each second, and more than that falls behind.

use std::cell::RefCell;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use manage::access::{Action, Group, Policy, Rule, RuleList, Subject};
use manage::operation::{Body, Call, Caller, Transport};
use manage::operational::{self, Datastore, Interface};
use manage::push::{Now, Settings, Subscriptions, World};
use manage::read::Encoding;
use manage::schema::{self, Definition, Schema};
use manage::tree::Node;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities};
use serde_json::{Value, json};

/// How many subscribers are unlike each other.
struct Mix {
    name: &'static str,
    users: usize,
    filters: Filters,
    encodings: &'static [&'static str],
    /// In hundredths of a second. With one of a second every interval is sent at its end.
    dampening: u32,
}

enum Filters {
    None,
    /// One interface, of so many, by a subtree.
    Subtree(usize),
    /// The same by XPath.
    Xpath(usize),
}

struct Rows {
    schema: &'static Schema,
    latest: RefCell<Vec<Arc<Row>>>,
    interfaces: Vec<Interface>,
}

impl Datastore for Rows {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        (&*definition.name == "interfaces").then(|| {
            operational::interfaces(self.schema, &self.interfaces, &self.latest.borrow())
        })?
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (subscribers, queues, intervals) = (number(1000)?, number(512)?, number(5)?);
    let json = &["encode-json"];
    let mix = |name, users, filters| Mix { name, users, filters, encodings: json, dampening: 0 };
    let mixes = [
        mix("all alike, JSON", 1, Filters::None),
        Mix { encodings: &["encode-json", "encode-xml"], ..mix("half in XML", 1, Filters::None) },
        mix("a user for each", subscribers, Filters::None),
        Mix { dampening: 100, ..mix("all alike, dampened by a second", 1, Filters::None) },
        mix("an interface for each, subtree", 1, Filters::Subtree(queues.div_ceil(8))),
        mix("an interface for each, XPath", 1, Filters::Xpath(queues.div_ceil(8))),
    ];
    println!("{subscribers} subscribers, {queues} queues, {intervals} intervals of each");
    for mix in mixes {
        measure(&mix, subscribers, queues, intervals)?;
    }
    Ok(())
}

fn measure(
    mix: &Mix,
    subscribers: usize,
    queues: usize,
    intervals: usize,
) -> Result<(), Box<dyn Error>> {
    let schema = Schema::get()?;
    let interface = |n: usize| format!("Ethernet{n}/1");
    let places: Vec<Arc<Place>> = (0..queues)
        .map(|n| {
            let queue = (n % 8).to_string().into();
            Arc::new(Place { interface: interface(n / 8).into(), queue })
        })
        .collect();
    let interfaces = (0..queues.div_ceil(8))
        .map(|n| Interface {
            name: interface(n).into(),
            oper_status: None,
            discontinuity: "2026-10-30T00:00:00Z".into(),
        })
        .collect();
    let rows = Rows { schema, latest: RefCell::new(complete(&places, 0)?), interfaces };
    let policy = everything(mix.users);
    let world = World { datastore: &rows, policy: &policy, interfaces: &rows.interfaces };
    let settings = Settings {
        subscriptions_max: subscribers,
        of_user_max: subscribers,
        ..Settings::default()
    };
    let mut all = Subscriptions::new(schema, settings);
    all.published(&rows.latest.borrow(), &[], &world, now(0));
    let ids = (0..subscribers)
        .map(|n| establish(schema, &mut all, mix, n, &world))
        .collect::<Result<Vec<u32>, _>>()?;

    let (mut spent, mut worst, mut octets) = ([Duration::ZERO; 2], Duration::ZERO, 0);
    for interval in 1..=intervals {
        let completed = complete(&places, interval)?;
        rows.latest.replace(completed.clone());
        let began = Instant::now();
        all.published(&completed, &[], &world, now(interval));
        all.advance(&world, now(interval));
        let published = began.elapsed();
        for id in &ids {
            let message = all.take(*id, &world, now(interval)).ok_or("a subscriber got nothing")?;
            octets += std::hint::black_box(message.document()).len();
            if all.take(*id, &world, now(interval)).is_some() {
                return Err("a subscriber got more than one message of an interval".into());
            }
        }
        let whole = began.elapsed();
        spent = [spent[0] + published, spent[1] + (whole - published)];
        worst = worst.max(whole);
    }
    let intervals = u32::try_from(intervals)?;
    let part = |time: Duration| 100.0 * time.as_secs_f64() / f64::from(intervals);
    println!(
        "{}: {:.1} % of a core to publish, {:.1} % to take, {} ms at most for an interval, \
         {} octets a second",
        mix.name,
        part(spent[0]),
        part(spent[1]),
        worst.as_millis(),
        octets / usize::try_from(intervals)?
    );
    Ok(())
}

/// Establishes a subscription and takes what it begins with.
fn establish(
    schema: &'static Schema,
    all: &mut Subscriptions,
    mix: &Mix,
    n: usize,
    world: &World<'_>,
) -> Result<u32, Box<dyn Error>> {
    let module = "ietf-subscribed-notifications";
    let operation =
        schema::find(schema.rpcs(), module, "establish-subscription").ok_or("no operation")?;
    let encoding = mix.encodings.get(n % mix.encodings.len()).ok_or("no encoding")?;
    let mut input = json!({
        "ietf-yang-push:datastore": "ietf-datastores:operational",
        "ietf-yang-push:on-change": {"dampening-period": mix.dampening},
        "encoding": encoding,
    });
    match mix.filters {
        Filters::None => {}
        Filters::Subtree(of) => {
            let interface = json!([{"name": format!("Ethernet{}/1", n % of)}]);
            input["ietf-yang-push:datastore-subtree-filter"] =
                json!({"ietf-interfaces:interfaces": {"interface": interface}});
        }
        Filters::Xpath(of) => {
            let path =
                format!("/ietf-interfaces:interfaces/interface[name='Ethernet{}/1']", n % of);
            input["ietf-yang-push:datastore-xpath-filter"] = Value::String(path);
        }
    }
    let text = json!({format!("{module}:input"): &input}).to_string();
    let node = schema.read_restconf_input(operation, Encoding::Json, &text)?;
    let caller = Caller { user: user(n % mix.users), transport: Transport::Restconf };
    let call = Call {
        caller: &caller,
        access: &world.policy.access(&caller.user),
        input: &node,
        body: Body::Json(&input),
        encoding: Encoding::Json,
        base: "https://device:8443",
    };
    let output = all.call(&call, world, now(0)).map_err(|refused| refused.to_string())?;
    let id = output.iter().find(|node| *node.definition.name == *"id").and_then(Node::text);
    let id = id.ok_or("no id")?.parse()?;
    while all.take(id, world, now(0)).is_some() {}
    Ok(id)
}

fn user(n: usize) -> Box<str> {
    format!("user-{n}").into()
}

/// So many users, who may all read everything.
fn everything(users: usize) -> Policy {
    let rule = Rule {
        name: "everything".into(),
        module: None,
        subject: Subject::All,
        read: true,
        exec: true,
        action: Action::Permit,
    };
    Policy {
        groups: vec![Group { name: "readers".into(), users: (0..users).map(user).collect() }],
        lists: vec![RuleList {
            name: "readers".into(),
            groups: vec!["readers".into()],
            rules: vec![rule],
        }],
        ..Policy::default()
    }
}

/// An interval of every queue.
fn complete(places: &[Arc<Place>], interval: usize) -> Result<Vec<Arc<Row>>, Box<dyn Error>> {
    let interval = u64::try_from(interval)?;
    let priorities = Priorities::from_bits(1 << 3).ok_or("no priority")?;
    let row = |place: &Arc<Place>| {
        Arc::new(Row {
            place: place.clone(),
            epoch: EpochId::random([7; 16]),
            interval,
            start_ns: interval * 1_000_000_000,
            duration_ns: 1_000_000_000,
            wall_clock_start: Some("2026-10-30T00:00:00.5Z".into()),
            priorities,
            measurement: Measurement::Known(Known {
                method: Method::Events,
                gated_ns: 18_500_000,
                backlog_ns: 64_000_000,
                error_ns: 256,
            }),
        })
    };
    Ok(places.iter().map(row).collect())
}

/// So many seconds after the beginning.
fn now(seconds: usize) -> Now {
    let monotonic = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    Now { monotonic, wall: UNIX_EPOCH + Duration::from_secs(1_793_318_400) + monotonic }
}
