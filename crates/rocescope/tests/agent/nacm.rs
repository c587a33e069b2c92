//! Access rules, asked in every way in: what a user may read does not depend on how it is read.

use std::fs;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use manage::read::{Encoding, What};
use manage::schema::Schema;
use manage::tree::Node;
use russh::keys::{PrivateKey, load_secret_key};
use serde_json::Value;

use super::client::{Https, Netconf, Restconf, Source};
use super::program::{HANGS, ROCESCOPE, Room, Running, waited};
use super::restconf::{free_port, sha256};
use super::ssh::keygen;

/// A step of a path: the module where it is another than before, the name, and a key with its value.
type Step = (&'static str, &'static str, Option<(&'static str, &'static str)>);

const TOP: Step = ("ietf-interfaces", "interfaces", None);
const IN: Step = ("ietf-pfc-queue-telemetry", "pfc-queue-telemetry", None);

const fn port(name: &'static str) -> Step {
    ("", "interface", Some(("name", name)))
}

const fn queue(name: &'static str) -> Step {
    ("", "queue", Some(("queue-id", name)))
}

/// What is asked for.
const TARGETS: [&[Step]; 10] = [
    &[TOP, port("Ethernet0")],
    &[TOP, port("Ethernet1")],
    &[TOP, port("Ethernet0"), IN, queue("0")],
    &[TOP, port("Ethernet0"), IN, queue("1")],
    &[TOP, port("Ethernet1"), IN, queue("0")],
    &[TOP, port("Ethernet0"), IN, queue("0"), ("", "backlog-ns", None)],
    &[TOP, port("Ethernet0"), IN, queue("1"), ("", "backlog-ns", None)],
    &[("ietf-yang-library", "yang-library", None)],
    &[("ietf-netconf-acm", "nacm", None)],
    &[("ietf-subscribed-notifications", "subscriptions", None)],
];

/// Users, their rules, and which of the targets they may read.
const USERS: [(&str, &str, [u8; 10]); 10] = [
    ("all", "{ action = \"permit\" }", [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    ("none", "", [0; 10]),
    (
        "noport",
        "{ path = \"/ietf-interfaces:interfaces/interface[name='Ethernet1']\", action = \"deny\" }, \
         { action = \"permit\" }",
        [1, 0, 1, 1, 0, 1, 1, 1, 1, 1],
    ),
    (
        "noqueue",
        "{ path = \"/ietf-interfaces:interfaces/interface[name='Ethernet0']/\
         ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue[queue-id='1']\", action = \"deny\" }, \
         { action = \"permit\" }",
        [1, 1, 1, 0, 1, 1, 0, 1, 1, 1],
    ),
    (
        "noleaf",
        "{ path = \"/ietf-interfaces:interfaces/interface/\
         ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue/backlog-ns\", action = \"deny\" }, \
         { action = \"permit\" }",
        [1, 1, 1, 1, 1, 0, 0, 1, 1, 1],
    ),
    (
        "nokey",
        "{ path = \"/ietf-interfaces:interfaces/interface/\
         ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue/queue-id\", action = \"deny\" }, \
         { action = \"permit\" }",
        [1, 1, 0, 0, 0, 0, 0, 1, 1, 1],
    ),
    (
        "nomodule",
        "{ module = \"ietf-pfc-queue-telemetry\", action = \"deny\" }, { action = \"permit\" }",
        [1, 1, 0, 0, 0, 0, 0, 1, 1, 1],
    ),
    (
        "onlyport",
        "{ path = \"/ietf-interfaces:interfaces/interface[name='Ethernet0']\", \
         action = \"permit\" }, \
         { path = \"/ietf-interfaces:interfaces/interface\", action = \"deny\" }, \
         { path = \"/ietf-interfaces:interfaces\", action = \"permit\" }",
        [1, 0, 1, 1, 0, 1, 1, 0, 0, 0],
    ),
    // What is around it may not be read, so nothing is.
    (
        "deep",
        "{ path = \"/ietf-interfaces:interfaces/interface[name='Ethernet0']\", \
         action = \"permit\" }",
        [0; 10],
    ),
    (
        "library",
        "{ module = \"ietf-yang-library\", access = \"read\", action = \"permit\" }",
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
    ),
];

/// Users, their rules, and what they may call: `get`, `get-config`, `get-data`, `get-schema`,
/// `establish-subscription`.
const CALLERS: [(&str, &str, [u8; 5]); 3] = [
    ("noexec", "{ access = \"exec\", action = \"deny\" }", [0; 5]),
    (
        "noschema",
        "{ operation = \"get-schema\", access = \"exec\", action = \"deny\" }",
        [1, 1, 1, 0, 1],
    ),
    (
        "nosub",
        "{ module = \"ietf-subscribed-notifications\", access = \"exec\", action = \"deny\" }",
        [1, 1, 1, 1, 0],
    ),
];

fn config(room: &Room, ports: [u16; 2]) {
    let mut text = format!(
        "[observation]\ndomain = 1\n[[queue.source]]\nname = \"asic\"\nevents_socket = \"q.sock\"\n\
         interval_ms = 1\n[manage.restconf]\nlisten = \"127.0.0.1:{}\"\n\
         certificate = \"pki/collector.pem\"\nkey = \"pki/collector.key\"\n\
         [manage.netconf]\nlisten = \"127.0.0.1:{}\"\nhost_key = \"host\"\n",
        ports[0], ports[1]
    );
    let mut rules = String::new();
    let users = USERS.map(|(user, rules, _)| (user, rules));
    for (user, rule) in CALLERS.map(|(user, rules, _)| (user, rules)).into_iter().chain(users) {
        text += &format!(
            "[[manage.login]]\nuser = \"{user}\"\ntoken_sha256 = \"{}\"\n\
             [[manage.login]]\nuser = \"{user}\"\nssh_keys = \"user.pub\"\n\
             [[manage.group]]\nname = \"{user}\"\nusers = [\"{user}\"]\n",
            sha256(user)
        );
        rules += &format!(
            "[[manage.rules]]\nname = \"{user}\"\ngroups = [\"{user}\"]\nrule = [{rule}]\n"
        );
    }
    // For whoever has no rule about it before.
    rules += "[[manage.rules]]\nname = \"rest\"\ngroups = [\"*\"]\nrule = [\n\
              { access = \"exec\", action = \"permit\" },\n\
              { module = \"ietf-yang-push\", access = \"read\", action = \"permit\" }]\n";
    fs::write(room.path("agent.toml"), text + &rules).expect("written");
}

/// A path as RESTCONF has it.
fn path(target: &[Step]) -> String {
    target.iter().fold(String::new(), |path, (module, name, key)| {
        let module = if module.is_empty() { String::new() } else { format!("{module}:") };
        let key = key.map_or_else(String::new, |(_, value)| format!("={value}"));
        format!("{path}/{module}{name}{key}")
    })
}

/// The same as `fields`, for every entry.
fn fields(target: &[Step]) -> String {
    let entries: Vec<Step> = target.iter().map(|step| (step.0, step.1, None)).collect();
    path(&entries).trim_start_matches('/').to_owned()
}

/// As XPath with the names of modules as prefixes.
fn xpath(target: &[Step]) -> String {
    target.iter().fold(String::new(), |path, (module, name, key)| {
        let module = if module.is_empty() { String::new() } else { format!("{module}:") };
        let key = key.map_or_else(String::new, |(key, value)| format!("[{key}='{value}']"));
        format!("{path}/{module}{name}{key}")
    })
}

/// As XPath with a prefix everywhere, and the declarations of the prefixes.
fn prefixed(target: &[Step]) -> (String, String) {
    let (mut declared, mut path, mut prefix) = (String::new(), String::new(), "");
    for (module, name, key) in target {
        if !module.is_empty() {
            prefix = module;
            declared += &format!(" xmlns:{module}=\"{}\"", namespace(module));
        }
        path += &format!("/{prefix}:{name}");
        if let Some((key, value)) = key {
            path += &format!("[{prefix}:{key}='{value}']");
        }
    }
    (path, declared)
}

fn namespace(module: &str) -> &'static str {
    &Schema::get().expect("modules").module(module).expect("one of them").namespace
}

/// As a subtree.
fn subtree(target: &[Step]) -> String {
    target.iter().rev().fold(String::new(), |inner, (module, name, key)| {
        let module = if module.is_empty() {
            String::new()
        } else {
            format!(" xmlns=\"{}\"", namespace(module))
        };
        let key = key.map_or_else(String::new, |(key, value)| format!("<{key}>{value}</{key}>"));
        format!("<{name}{module}>{key}{inner}</{name}>")
    })
}

/// Whether a target is in a tree.
fn is_in(nodes: &[Node], target: &[Step]) -> bool {
    let Some(((_, name, key), rest)) = target.split_first() else { return true };
    nodes.iter().any(|node| {
        *node.definition.name == **name
            && key.is_none_or(|(key, value)| node.leaf(key) == Some(value))
            && is_in(node.children(), rest)
    })
}

fn read(encoding: Encoding, text: &str) -> Vec<Node> {
    let schema = Schema::get().expect("modules");
    schema.read(encoding, What::Data, text).unwrap_or_else(|error| panic!("{error:?}: {text}"))
}

/// What stands between the first and the last tag of a name.
fn between<'a>(text: &'a str, name: &str) -> &'a str {
    let Some((_, rest)) = text.split_once(&format!("<{name}")) else { panic!("no {name}: {text}") };
    let (start, rest) = rest.split_once('>').expect("a tag");
    if start.ends_with('/') {
        return "";
    }
    rest.rsplit_once(&format!("</{name}>")).expect("an end").0
}

/// What the changes of a notification tell of.
fn is_changed(message: &str, target: &[Step]) -> bool {
    let entry: Vec<Step> = target.iter().take(4).copied().collect();
    let (name, leaf) = (path(&entry), target.get(4).map_or("epoch-id", |step| step.1));
    if message.starts_with('<') {
        let edits = message.split("<edit>");
        return edits.skip(1).any(|edit| {
            edit.contains(&format!("<target>{name}</target>"))
                && edit.contains(&format!("<{leaf}>"))
        });
    }
    let message: Value = serde_json::from_str(message).expect("JSON");
    let change = &message["ietf-restconf:notification"]["ietf-yang-push:push-change-update"];
    let edits = change["datastore-changes"]["yang-patch"]["edit"].as_array().expect("edits");
    edits.iter().any(|edit| {
        edit["target"] == name
            && edit["value"]["ietf-pfc-queue-telemetry:queue"][0][leaf].is_string()
    })
}

/// The content of `push-update`.
fn content(message: &str) -> Vec<Node> {
    if message.starts_with('<') {
        return read(Encoding::Xml, between(message, "datastore-contents"));
    }
    let message: Value = serde_json::from_str(message).expect("JSON");
    let update = &message["ietf-restconf:notification"]["ietf-yang-push:push-update"];
    assert!(update.is_object(), "{message}");
    read(Encoding::Json, &update["datastore-contents"].to_string())
}

/// Of a user: what is found, against what may be.
struct Judge {
    user: &'static str,
    may: [u8; 10],
    checks: usize,
}

impl Judge {
    #[track_caller]
    fn one(&mut self, way: &str, target: usize, found: bool) {
        let may = self.may[target] == 1;
        let path = path(TARGETS[target]);
        assert_eq!(found, may, "{way} of {path} by {}", self.user);
        self.checks += 1;
    }

    /// A tree that has everything, or as far as it has some of the targets.
    #[track_caller]
    fn tree(&mut self, way: &str, nodes: &[Node], targets: impl Iterator<Item = usize>) {
        for target in targets {
            self.one(way, target, is_in(nodes, TARGETS[target]));
        }
    }
}

fn data(body: &str) -> Vec<Node> {
    let inner = body.strip_prefix("{\"ietf-restconf:data\":").expect("data");
    read(Encoding::Json, inner.strip_suffix('}').expect("an end"))
}

const JSON: &str = "Accept: application/yang-data+json\r\n";
const XML: &str = "Accept: application/yang-data+xml\r\n";

async fn restconf(judge: &mut Judge, client: &mut Restconf) {
    for (way, path) in [
        ("GET data", "/restconf/data"),
        ("GET ds", "/restconf/ds/ietf-datastores:operational"),
        ("GET depth", "/restconf/data?depth=9"),
    ] {
        let answer = client.get(path).await.expect("an answer");
        assert_eq!(answer.status, 200, "{way}");
        judge.tree(way, &data(&answer.body), 0..TARGETS.len());
    }
    let running = client.get("/restconf/ds/ietf-datastores:running").await.expect("an answer");
    judge.tree("GET ds running", &data(&running.body), 8..9);
    let absent = "/restconf/data/ietf-interfaces:interfaces/interface=Ethernet9";
    let absent = client.get(absent).await.expect("an answer");
    for (number, target) in TARGETS.iter().enumerate() {
        let path = path(target);
        let fields = format!("/restconf/data?fields={}", fields(target));
        let answer = client.get(&fields).await.expect("an answer");
        judge.tree("GET fields", &data(&answer.body), number..number + 1);
        for (way, method, path, headers) in [
            ("GET", "GET", format!("/restconf/data{path}"), JSON),
            ("GET XML", "GET", format!("/restconf/data{path}"), XML),
            ("GET one depth", "GET", format!("/restconf/data{path}?depth=1"), JSON),
            ("HEAD", "HEAD", format!("/restconf/data{path}"), JSON),
            ("GET of ds", "GET", format!("/restconf/ds/ietf-datastores:operational{path}"), JSON),
        ] {
            let answer = client.ask(method, &path, headers, "").await.expect("an answer");
            judge.one(way, number, answer.status == 200);
            if answer.status != 200 {
                assert_eq!(answer.status, 404, "{way} {path}");
                let names = |answer: &super::client::Answer| -> Vec<String> {
                    answer.headers.iter().map(|(name, _)| name.clone()).collect()
                };
                assert_eq!(names(&answer), names(&absent));
            }
            if way == "GET" && answer.status != 200 {
                // As that of one that is not there, but for its name.
                let cut = |body: &str| {
                    let (before, rest) = body.split_once("\"error-message\":\"").expect("words");
                    let (words, after) = rest.rsplit_once('"').expect("an end");
                    let (_, words) = words.rsplit_once(", ").expect("a reason");
                    format!("{before}{words}{after}")
                };
                assert_eq!(cut(&answer.body), cut(&absent.body));
            }
        }
    }
}

const NMDA: &str = "xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-nmda\" \
                    xmlns:ds=\"urn:ietf:params:xml:ns:yang:ietf-datastores\"";
const STORE: &str = "<datastore>ds:operational</datastore>";

async fn netconf(judge: &mut Judge, client: &mut Netconf) {
    for (way, operation) in [
        ("get", "<get/>".to_owned()),
        ("get-data", format!("<get-data {NMDA}>{STORE}</get-data>")),
        ("get-data depth", format!("<get-data {NMDA}>{STORE}<max-depth>9</max-depth></get-data>")),
    ] {
        let reply = client.ask(&operation).await.expect("a reply");
        judge.tree(way, &read(Encoding::Xml, between(&reply, "data")), 0..TARGETS.len());
    }
    let running = "<get-config><source><running/></source></get-config>";
    let reply = client.ask(running).await.expect("a reply");
    judge.tree("get-config", &read(Encoding::Xml, between(&reply, "data")), 8..9);
    for (number, target) in TARGETS.iter().enumerate() {
        let (xpath, declared) = prefixed(target);
        let subtree = subtree(target);
        for (way, operation) in [
            ("get subtree", format!("<get><filter>{subtree}</filter></get>")),
            (
                "get XPath",
                format!("<get><filter type=\"xpath\" select=\"{xpath}\"{declared}/></get>"),
            ),
            (
                "get-data subtree",
                format!(
                    "<get-data {NMDA}>{STORE}<subtree-filter>{subtree}</subtree-filter></get-data>"
                ),
            ),
            (
                "get-data XPath",
                format!(
                    "<get-data {NMDA}>{STORE}<xpath-filter{declared}>{xpath}</xpath-filter>\
                     </get-data>"
                ),
            ),
        ] {
            let reply = client.ask(&operation).await.expect("a reply");
            let found = read(Encoding::Xml, between(&reply, "data"));
            // A content match of a key is no key that was read.
            judge.tree(way, &found, number..number + 1);
        }
    }
}

/// Subscriptions of one user in both ways in: everything now and then, changes, and each target.
async fn subscribed(judge: &mut Judge, https: &Https, client: &mut Netconf, source: &mut Source) {
    const YP: &str = "xmlns:yp=\"urn:ietf:params:xml:ns:yang:ietf-yang-push\"";
    let connect = || https.connect(judge.user);
    let mut control = connect().await.expect("connected");
    // Now and then: the first and the second.
    let id = control.establish(r#""ietf-yang-push:periodic":{"period":10}"#).await.expect("one");
    let mut events = connect().await.expect("connected").events(id).await.expect("events");
    for way in ["RESTCONF periodic, first", "RESTCONF periodic, next"] {
        let message = events.next().await.expect("read").expect("one");
        judge.tree(way, &content(&message), 0..TARGETS.len());
    }
    drop(events);
    let id = client
        .establish("<yp:periodic><yp:period>10</yp:period></yp:periodic>")
        .await
        .expect("one");
    for way in ["NETCONF periodic, first", "NETCONF periodic, next"] {
        let message = told(client).await;
        judge.tree(way, &content(&message), 0..TARGETS.len());
    }
    delete(client, id).await;
    // Each target by itself.
    for (number, target) in TARGETS.iter().enumerate() {
        let filter = xpath(target);
        let more = format!(
            "\"ietf-yang-push:periodic\":{{\"period\":6000}},\
             \"ietf-yang-push:datastore-xpath-filter\":\"{filter}\""
        );
        let id = control.establish(&more).await.expect("established");
        let mut events = connect().await.expect("connected").events(id).await.expect("events");
        let message = events.next().await.expect("read").expect("one");
        judge.tree("RESTCONF filter", &content(&message), number..number + 1);
        let (path, declared) = prefixed(target);
        let filter = match number % 2 {
            0 => format!("<yp:datastore-xpath-filter{declared}>{path}</yp:datastore-xpath-filter>"),
            _ => format!(
                "<yp:datastore-subtree-filter>{}</yp:datastore-subtree-filter>",
                subtree(target)
            ),
        };
        let more = format!("{filter}<yp:periodic {YP}><yp:period>6000</yp:period></yp:periodic>");
        let id = client.establish(&more).await.expect("established");
        let message = told(client).await;
        judge.tree("NETCONF filter", &content(&message), number..number + 1);
        delete(client, id).await;
    }
    // Changes: what there is at first, what comes, and a second look behind it.
    let over_http = control.establish(r#""ietf-yang-push:on-change":{}"#).await.expect("one");
    let mut events = connect().await.expect("connected").events(over_http).await.expect("events");
    let first = events.next().await.expect("read").expect("one");
    judge.tree("RESTCONF on change, first", &content(&first), 2..7);
    let over_ssh = client.establish("<yp:on-change/>").await.expect("established");
    let first = told(client).await;
    judge.tree("NETCONF on change, first", &content(&first), 2..7);
    source.complete().expect("sent");
    let interval = format!("\"interval-id\":\"{}\"", source.intervals);
    // Once it is there, everybody was told of it.
    let row = path(TARGETS[2]);
    let mut all = https.connect("all").await.expect("connected");
    let begun = Instant::now();
    while !all.get(&format!("/restconf/data{row}")).await.expect("one").body.contains(&interval) {
        assert!(begun.elapsed() < HANGS, "interval {interval} of {row}");
    }
    let waiting = std::time::Duration::from_millis(50);
    tokio::time::sleep(waiting).await;
    let input = format!("{{\"id\":{over_http}}}");
    let answer = control.call("ietf-yang-push", "resync-subscription", &input).await;
    assert_eq!(answer.expect("an answer").status, 204);
    let mut changes = Vec::new();
    loop {
        let message = events.next().await.expect("read").expect("one");
        if message.contains("ietf-yang-push:push-update") {
            judge.tree("RESTCONF on change, again", &content(&message), 2..7);
            break;
        }
        changes.push(message);
    }
    let resync = format!(
        "<resync-subscription xmlns=\"urn:ietf:params:xml:ns:yang:ietf-yang-push\">\
         <id>{over_ssh}</id></resync-subscription>"
    );
    let reply = client.ask(&resync).await.expect("a reply");
    assert!(reply.contains("<ok/>"), "{reply}");
    let mut over = Vec::new();
    loop {
        let message = told(client).await;
        if message.contains("<push-update") {
            judge.tree("NETCONF on change, again", &content(&message), 2..7);
            break;
        }
        over.push(message);
    }
    for (number, target) in TARGETS.iter().enumerate().take(7).skip(2) {
        for (way, changes) in [("RESTCONF change", &changes), ("NETCONF change", &over)] {
            let found = changes.iter().any(|message| {
                let message = message.find("<push-change-update").map_or(&**message, |_| message);
                is_changed(message, target)
            });
            judge.one(way, number, found);
        }
    }
    delete(client, over_ssh).await;
}

/// The next notification.
async fn told(client: &mut Netconf) -> String {
    if client.told.is_empty() {
        return client.next().await.expect("read").expect("a notification");
    }
    client.told.remove(0)
}

async fn delete(client: &mut Netconf, id: u32) {
    let operation = format!(
        "<delete-subscription \
         xmlns=\"urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications\"><id>{id}</id>\
         </delete-subscription>"
    );
    let reply = client.ask(&operation).await.expect("a reply");
    assert!(reply.contains("<ok/>"), "{reply}");
    client.told.clear();
}

/// Who may call what.
async fn called(user: &str, may: [u8; 5], https: &Https, client: &mut Netconf) {
    let schema = "<get-schema xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring\">\
                  <identifier>ietf-interfaces</identifier></get-schema>";
    let establish = "<establish-subscription \
         xmlns=\"urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications\" \
         xmlns:yp=\"urn:ietf:params:xml:ns:yang:ietf-yang-push\"><yp:datastore \
         xmlns:ds=\"urn:ietf:params:xml:ns:yang:ietf-datastores\">ds:operational</yp:datastore>\
         <yp:periodic><yp:period>6000</yp:period></yp:periodic></establish-subscription>";
    let get_data = format!("<get-data {NMDA}>{STORE}</get-data>");
    let config = "<get-config><source><running/></source></get-config>";
    let operations = ["<get/>", config, &get_data, schema, establish];
    for (operation, may) in operations.into_iter().zip(may) {
        let reply = client.ask(operation).await.expect("a reply");
        let denied = reply.contains("<error-tag>access-denied</error-tag>");
        assert_eq!(denied, may == 0, "{operation} by {user}: {reply}");
    }
    let mut client = https.connect(user).await.expect("connected");
    let input = r#"{"ietf-yang-push:datastore":"ietf-datastores:operational",
                    "ietf-yang-push:periodic":{"period":6000}}"#;
    let module = "ietf-subscribed-notifications";
    let answer = client.call(module, "establish-subscription", input).await.expect("an answer");
    let denied = answer.status == 403 && answer.body.contains("\"access-denied\"");
    assert_eq!(denied, may[4] == 0, "{user}: {answer:?}");
    let listed = client.get("/restconf/operations").await.expect("an answer").body;
    assert_eq!(listed.contains("establish-subscription"), may[4] == 1, "{user}: {listed}");
}

// QUE-sec.1, QUE-pub.2
#[test]
fn what_a_user_may_read_is_the_same_in_every_way_in() {
    let room = Room::new();
    let made = std::process::Command::new(ROCESCOPE)
        .args(["pki", "init"])
        .arg(room.path("pki"))
        .output()
        .expect("it runs");
    assert!(made.status.success());
    ["host", "user"].iter().for_each(|name| keygen(&room.path(name)));
    let key: Arc<PrivateKey> = Arc::new(load_secret_key(room.path("user"), None).expect("a key"));
    let ports = [free_port(), free_port()];
    config(&room, ports);
    let agent = Running::agent(&room.path("agent.toml"));
    let begun = Instant::now();
    let stream = waited("a socket", || UnixStream::connect(room.path("q.sock")).ok());
    // Ethernet0 has eight queues, Ethernet1 one.
    let mut source = Source::begin(stream, 9, 1_000_000).expect("begun");
    source.complete().expect("sent");
    let authority = fs::read(room.path("pki/ca.pem")).expect("read");
    let https = Https::new(&authority, ports[0]).expect("certificates");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let checks = runtime.expect("a runtime").block_on(async {
        let mut checks = 0;
        let mut all = https.connect("all").await.expect("connected");
        let row = format!("/restconf/data{}", path(TARGETS[4]));
        while all.get(&row).await.expect("an answer").status != 200 {
            assert!(begun.elapsed() < HANGS, "no row");
        }
        for (user, _, may) in CALLERS {
            let mut over_ssh = Netconf::connect(ports[1], user, &key).await.expect("a session");
            called(user, may, &https, &mut over_ssh).await;
        }
        for (user, _, may) in USERS {
            let mut judge = Judge { user, may, checks: 0 };
            let mut over_http = https.connect(user).await.expect("connected");
            let mut over_ssh = Netconf::connect(ports[1], user, &key).await.expect("a session");
            restconf(&mut judge, &mut over_http).await;
            netconf(&mut judge, &mut over_ssh).await;
            subscribed(&mut judge, &https, &mut over_ssh, &mut source).await;
            checks += judge.checks;
        }
        checks
    });
    assert_eq!(checks, USERS.len() * 252, "some way was not asked");
    agent.signal("TERM");
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
}
