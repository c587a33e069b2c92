//! RESTCONF of the agent, asked by `curl` as an operator would, and by schemathesis as nobody would.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use manage::read::{Encoding, What};
use manage::schema::Schema;
use serde_json::{Value, json};

use super::packages::{repository, schemathesis};
use super::program::{ROCESCOPE, Room, Running, waited};

const QUEUES: &str = "/restconf/ds/ietf-datastores:operational/ietf-interfaces:interfaces";
const ONE: &str = "/interface=Ethernet1%2F1/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue=3";
const ESTABLISH: &str = "/restconf/operations/ietf-subscribed-notifications:establish-subscription";

/// An answer, as curl has got it.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.rfind(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.trim())
    }

    /// The tag of the only error.
    fn tag(&self) -> String {
        let errors = self.json();
        let tag = errors["ietf-restconf:errors"]["error"][0]["error-tag"].as_str();
        tag.unwrap_or_else(|| panic!("no tag: {}\n{}", self.head, self.body)).to_owned()
    }
}

struct Scene {
    room: Room,
    port: u16,
    agent: Running,
    source: UnixStream,
}

pub fn sha256(token: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut all, octet| {
        write!(all, "{octet:02x}").unwrap();
        all
    })
}

/// One that nobody listens to.
pub fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("an address").port()
}

fn config(port: u16) -> String {
    format!(
        r#"
[observation]
domain = 1

[[queue.source]]
name = "asic"
events_socket = "q.sock"
interval_ms = 1

[manage]
answer_timeout_s = 5
body_octets_max = 2048

[manage.restconf]
listen = "127.0.0.1:{port}"
certificate = "pki/collector.pem"
key = "pki/collector.key"
authority = "pki/ca.pem"

[[manage.login]]
user = "alice"
name = "agent.example"

[[manage.login]]
user = "alice"
token_sha256 = "{}"

[[manage.login]]
user = "carol"
token_sha256 = "{}"

[[manage.login]]
user = "nobody"
token_sha256 = "{}"

[[manage.group]]
name = "operators"
users = ["alice"]

[[manage.group]]
name = "guests"
users = ["carol"]

[[manage.rules]]
name = "operators"
groups = ["operators"]
rule = [{{ action = "permit" }}]

[[manage.rules]]
name = "guests"
groups = ["guests"]
rule = [
    {{ path = "/ietf-interfaces:interfaces/interface[name='Ethernet1/1']", action = "deny" }},
    {{ module = "ietf-interfaces", access = "read", action = "permit" }},
]
"#,
        sha256("operator"),
        sha256("guest"),
        sha256("nobody")
    )
}

fn event(seq: u64, ms: u64, rest: &str) -> String {
    let t = ms * 1_000_000;
    format!(r#"{{"seq":{seq},"t":{t},"interface":"Ethernet1/1","queue":"3",{rest}}}"#) + "\n"
}

impl Scene {
    fn new() -> Self {
        Self::of(config)
    }

    fn of(config: impl FnOnce(u16) -> String) -> Self {
        let room = Room::new();
        let made = Command::new(ROCESCOPE).args(["pki", "init"]).arg(room.path("pki")).output();
        assert!(made.expect("it runs").status.success());
        let port = free_port();
        let file = room.path("agent.toml");
        fs::write(&file, config(port)).expect("written");
        let agent = Running::agent(&file);
        let mut source = waited("a socket", || UnixStream::connect(room.path("q.sock")).ok());
        let begun = event(1, 0, r#""event":"map","priorities":[5],"method":"head","maxError":0"#)
            + &event(2, 0, r#""event":"backlog","present":true"#)
            + &event(3, 0, r#""event":"gate","priority":5,"closed":true"#)
            + &event(4, 2, r#""event":"backlog","present":true"#);
        source.write_all(begun.as_bytes()).expect("sent");
        let scene = Self { room, port, agent, source };
        waited("a row", || {
            let found = scene.alice(&[&format!("{QUEUES}{ONE}")]);
            (found.status == 200).then_some(())
        });
        scene
    }

    fn curl(&self, arguments: &[&str], path: &str) -> Command {
        let port = self.port;
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "20", "--cacert"]).arg(self.room.path("pki/ca.pem"));
        curl.args(arguments).arg(format!("https://localhost:{port}{path}"));
        curl.stdin(Stdio::null());
        curl
    }

    fn asked(&self, arguments: &[&str]) -> Answer {
        let (path, arguments) = arguments.split_last().expect("a path");
        let out = self.curl(&[&["-i"], arguments].concat(), path).output().expect("curl runs");
        let text = String::from_utf8(out.stdout).expect("text");
        let failed = || panic!("{text}{}", String::from_utf8_lossy(&out.stderr));
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(failed);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.expect("a status"), head: head.into(), body: body.into() }
    }

    /// By the certificate of `agent.example`.
    fn alice(&self, arguments: &[&str]) -> Answer {
        let [certificate, key] = ["pem", "key"].map(|end| {
            self.room.path(&format!("pki/agent.{end}")).to_str().expect("text").to_owned()
        });
        self.asked(&[&["--cert", &*certificate, "--key", &*key], arguments].concat())
    }

    fn with_token(&self, token: &str, arguments: &[&str]) -> Answer {
        let header = format!("Authorization: Bearer {token}");
        self.asked(&[&["-H", &*header], arguments].concat())
    }

    fn ended(self) {
        self.agent.signal("TERM");
        let (code, said) = self.agent.ended();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("serves RESTCONF on https://127.0.0.1:"), "{said}");
    }
}

// QUE-pub.1, QUE-pub.2, QUE-sec.1
#[test]
fn rows_are_read_by_who_may_and_the_tree_is_valid() {
    let scene = Scene::new();
    let found = scene.alice(&[&format!("{QUEUES}{ONE}")]);
    assert_eq!(found.header("content-type"), "application/yang-data+json");
    let row = &found.json()["ietf-pfc-queue-telemetry:queue"][0];
    assert_eq!(row["queue-id"], "3");
    // 64 bits stand in strings, and priorities as a set.
    assert_eq!((&row["duration-ns"], &row["mapped-priority"]), (&json!("1000000"), &json!([5])));
    // The whole of it is what the modules say.
    let whole = scene.alice(&["/restconf/data"]);
    let inner = whole.body.strip_prefix(r#"{"ietf-restconf:data":"#).expect("data");
    let inner = inner.strip_suffix('}').expect("an end");
    let schema = Schema::get().expect("modules");
    let read = schema.read(Encoding::Json, What::Datastore, inner);
    assert!(read.is_ok(), "{read:?}\n{inner}");
    // The same in XML, where that is asked for.
    let xml = scene.alice(&["-H", "Accept: application/yang-data+xml", &format!("{QUEUES}{ONE}")]);
    assert_eq!(xml.header("content-type"), "application/yang-data+xml");
    assert!(xml.body.contains("<queue-id>3</queue-id>"), "{}", xml.body);
    // Nothing new: nothing sent.
    let tag = format!("If-None-Match: {}", found.header("etag"));
    let again = scene.alice(&["-H", &tag, &format!("{QUEUES}{ONE}")]);
    assert_eq!((again.status, &*again.body), (304, ""));
    // Whom nothing is permitted to cannot tell what is there, nor whom this interface is denied to.
    let absent = scene.with_token("guest", &[&format!("{QUEUES}/interface=Ethernet9")]);
    let denied = scene.with_token("guest", &[&format!("{QUEUES}{ONE}")]);
    assert_eq!((absent.status, denied.status), (404, 404));
    assert_eq!(absent.tag(), denied.tag());
    let rest = scene.with_token("guest", &[QUEUES]);
    assert!(rest.status == 200 && !rest.body.contains("Ethernet1"), "{}", rest.body);
    assert_eq!(scene.with_token("nobody", &[QUEUES]).status, 404);
    scene.ended();
}

// QUE-sec.1, SEQ-10.3
#[test]
fn who_is_not_known_and_what_would_change_something_is_refused() {
    let scene = Scene::new();
    let stranger = scene.asked(&[QUEUES]);
    assert_eq!((stranger.status, &*stranger.tag()), (401, "access-denied"));
    assert!(stranger.header("www-authenticate").starts_with("Bearer"));
    assert_eq!(scene.with_token("wrong", &[QUEUES]).status, 401);
    for method in ["PUT", "PATCH", "POST", "DELETE"] {
        let found = scene.alice(&["-X", method, QUEUES]);
        assert_eq!((found.status, &*found.tag()), (405, "operation-not-supported"), "{method}");
        assert_eq!(found.header("allow"), "GET, HEAD, OPTIONS");
    }
    let head = scene.alice(&["-I", QUEUES]);
    assert_eq!((head.status, &*head.body), (200, ""));
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(2_048));
    let json = "Content-Type: application/yang-data+json";
    let found = scene.alice(&["-H", json, "-d", &large, ESTABLISH]);
    assert_eq!((found.status, &*found.tag()), (413, "too-big"));
    // Reading is permitted to this user, calling is not.
    let input = r#"{"ietf-subscribed-notifications:input":{}}"#;
    let found = scene.with_token("guest", &["-H", json, "-d", input, ESTABLISH]);
    assert_eq!((found.status, &*found.tag()), (403, "access-denied"));
    for (path, status) in [
        ("/restconf/subscriptions/1", 404),
        ("/restconf/subscriptions/x", 404),
        ("/restconf/nothing", 404),
        (&format!("{QUEUES}/interface=a,b"), 400),
        (&format!("{QUEUES}/interface=%zz"), 400),
        (&format!("{QUEUES}?depth=0"), 400),
    ] {
        assert_eq!(scene.alice(&[path]).status, status, "{path}");
    }
    assert_eq!(scene.alice(&["-H", "Accept: text/html", QUEUES]).status, 406);
    let found = scene.alice(&["-H", "Host:", QUEUES]);
    assert_eq!((found.status, &*found.tag()), (400, "malformed-message"));
    // Without TLS it says so.
    let plain = Command::new("curl")
        .args(["-sS", "--max-time", "20"])
        .arg(format!("http://127.0.0.1:{}/restconf", scene.port))
        .output()
        .expect("curl runs");
    assert!(String::from_utf8_lossy(&plain.stdout).contains("expected TLS 1.3"), "{plain:?}");
    scene.ended();
}

// QUE-pub.1, QUE-pub.2
#[test]
fn a_subscriber_gets_each_interval_as_one_replacement() {
    let mut scene = Scene::new();
    let json = "Content-Type: application/yang-data+json";
    let input = json!({"ietf-subscribed-notifications:input": {
        "ietf-yang-push:datastore": "ietf-datastores:operational",
        "ietf-yang-push:on-change": {"sync-on-start": true},
    }});
    let found = scene.alice(&["-H", json, "-d", &input.to_string(), ESTABLISH]);
    assert_eq!(found.status, 200, "{}", found.body);
    let output = &found.json()["ietf-subscribed-notifications:output"];
    let uri = output["ietf-restconf-subscribed-notifications:uri"].as_str().expect("a uri");
    let path = uri.strip_prefix(&format!("https://localhost:{}", scene.port));
    let path = path.expect("the name by which it was asked");
    let [certificate, key] = ["pem", "key"]
        .map(|end| scene.room.path(&format!("pki/agent.{end}")).to_str().expect("text").to_owned());
    let arguments = ["-N", "--cert", &certificate, "--key", &key];
    let into = scene.room.path("events");
    let mut curl = scene.curl(&arguments, path);
    curl.stdout(fs::File::create(&into).expect("a file"));
    let mut curl = curl.spawn().expect("curl runs");
    let read = || -> Vec<Value> {
        let text = fs::read_to_string(&into).expect("read");
        let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        let events = whole.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
        events.map(|event| serde_json::from_str(event).expect("JSON")).collect()
    };
    waited("the first update", || (!read().is_empty()).then_some(()));
    // One who comes second does not take the stream away, and another user never had it.
    assert_eq!(scene.alice(&[path]).status, 409);
    assert_eq!(scene.with_token("guest", &[path]).status, 404);
    scene
        .source
        .write_all(event(5, 3, r#""event":"backlog","present":true"#).as_bytes())
        .expect("sent");
    let events = waited("a change", || Some(read()).filter(|events| events.len() > 1));
    let first = &events[0]["ietf-restconf:notification"]["ietf-yang-push:push-update"];
    assert!(first["datastore-contents"]["ietf-interfaces:interfaces"].is_object(), "{first}");
    let change = &events[1]["ietf-restconf:notification"]["ietf-yang-push:push-change-update"];
    let edits = change["datastore-changes"]["yang-patch"]["edit"].as_array().expect("edits");
    assert_eq!(edits.len(), 1, "{change}");
    assert_eq!(edits[0]["operation"], "replace");
    assert_eq!(edits[0]["target"], format!("/ietf-interfaces:interfaces{ONE}"));
    curl.kill().expect("ended");
    curl.wait().expect("ended");
    // It ends with its reader.
    let gone = || (scene.alice(&[path]).status == 404).then_some(());
    waited("the end of the subscription", gone);
    scene.ended();
}

// QUE-pub.2
#[test]
fn every_answer_is_as_described_whatever_is_asked() {
    let scene = Scene::new();
    let description = repository().join("tests/schemathesis/restconf.json");
    let authority = scene.room.path("pki/ca.pem");
    let url = format!("https://localhost:{}", scene.port);
    let arguments = [
        description.to_str().expect("text"),
        "--url",
        &url,
        "--tls-verify",
        authority.to_str().expect("text"),
        "--header",
        "Authorization: Bearer operator",
    ];
    let in_xml = ["--header", "Accept: application/yang-data+xml", "--max-examples", "5"];
    for arguments in [arguments.to_vec(), [&arguments[..], &in_xml].concat()] {
        let output = schemathesis("restconf.toml", &scene.room.folder, &arguments).output();
        let output = output.expect("schemathesis runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("16 selected / 16 total"), "{said}");
    }
    scene.ended();
}

/// The configuration of the documentation, with the files, names and ports of this test.
fn documented(port: u16, metrics: u16) -> String {
    let text = include_str!("../../../../docs/serving.md");
    let blocks = text.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
    // Without NETCONF, which needs keys.
    let blocks: Vec<&str> = blocks.filter(|block| !block.contains("[manage.netconf]")).collect();
    assert_eq!(blocks.len(), 2);
    let mut all = blocks.join("\n");
    for (from, to) in [
        ("\"queues.sock\"", "\"q.sock\"\ninterval_ms = 1"),
        ("127.0.0.1:8443", &*format!("127.0.0.1:{port}")),
        ("\"server.pem\"", "\"pki/collector.pem\""),
        ("\"server.key\"", "\"pki/collector.key\""),
        ("\"ca.pem\"", "\"pki/ca.pem\""),
        ("\"alice.example\"", "\"agent.example\""),
        ("\"...\"", &format!("\"{}\"", sha256("bob"))),
        ("\"...\"", &format!("\"{}\"", sha256("dora"))),
    ] {
        assert!(all.contains(from), "{from}");
        all = all.replacen(from, to, 1);
    }
    format!("[agent]\nmetrics_listen = \"127.0.0.1:{metrics}\"\n{all}")
}

// QUE-sec.1, SEQ-10.3
#[test]
fn the_rules_of_the_documentation_show_what_they_say_and_what_happens_is_counted() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let metrics = free.local_addr().expect("an address").port();
    drop(free);
    let mut scene = Scene::of(|port| documented(port, metrics));
    let mut seq = 4;
    let mut tell = |interface: &str, queue: &str, ms: u64, rest: &str| {
        seq += 1;
        let t = ms * 1_000_000;
        let line = format!(
            r#"{{"seq":{seq},"t":{t},"interface":"{interface}","queue":"{queue}",{rest}}}"#
        );
        scene.source.write_all((line + "\n").as_bytes()).expect("sent");
    };
    let others = [("Ethernet2/1", "3"), ("Ethernet2/1", "4"), ("Ethernet9", "3")];
    for (interface, queue) in others {
        let map = r#""event":"map","priorities":[3],"method":"head","maxError":0"#;
        tell(interface, queue, 2, map);
        tell(interface, queue, 2, r#""event":"backlog","present":false"#);
        tell(interface, queue, 2, r#""event":"gate","priority":3,"closed":false"#);
    }
    for ms in [9, 10] {
        tell("Ethernet2/1", "3", ms, r#""event":"backlog","present":false"#);
    }
    let told = |user: &str| {
        let found = scene.with_token(user, &[QUEUES]).json();
        let entries = found["ietf-interfaces:interfaces"]["interface"].as_array().cloned();
        let queues = |entry: &Value| -> Vec<String> {
            let of = &entry["ietf-pfc-queue-telemetry:pfc-queue-telemetry"]["queue"];
            let queues = of.as_array().into_iter().flatten();
            let name = entry["name"].as_str().expect("a name");
            queues.map(|queue| format!("{name} {}", queue["queue-id"].as_str().unwrap())).collect()
        };
        entries.unwrap_or_default().iter().flat_map(queues).collect::<Vec<_>>()
    };
    // All but what is denied.
    waited("rows", || (told("bob").len() == 3).then_some(()));
    assert_eq!(told("bob"), ["Ethernet1/1 3", "Ethernet2/1 3", "Ethernet2/1 4"]);
    assert_eq!(told("dora"), ["Ethernet2/1 3"]);
    let one = format!("{QUEUES}{}", ONE.replace("1%2F1", "2%2F1"));
    assert_eq!(scene.with_token("dora", &[&one]).status, 200);
    assert_eq!(scene.with_token("dora", &[&one.replace("queue=3", "queue=4")]).status, 404);
    // Neither who else may read, nor what others do.
    for hidden in [
        "ietf-netconf-acm:nacm",
        "ietf-netconf-monitoring:netconf-state",
        "ietf-subscribed-notifications:subscriptions",
    ] {
        assert_eq!(scene.with_token("bob", &[&format!("/restconf/data/{hidden}")]).status, 404);
    }
    let json = "Content-Type: application/yang-data+json";
    let call = |user: &str, operation: &str, input: &Value| {
        let input = json!({"ietf-subscribed-notifications:input": input}).to_string();
        let path = ESTABLISH.replace("establish-subscription", operation);
        scene.with_token(user, &["-H", json, "-d", &input, &path])
    };
    let wanted = json!({
        "ietf-yang-push:datastore": "ietf-datastores:operational",
        "ietf-yang-push:on-change": {},
    });
    let found = call("bob", "establish-subscription", &wanted);
    assert_eq!(found.status, 200, "{}", found.body);
    let id = found.json()["ietf-subscribed-notifications:output"]["id"].clone();
    assert_eq!(call("dora", "establish-subscription", &wanted).status, 403);
    assert_eq!(call("bob", "kill-subscription", &json!({"id": id})).status, 403);
    assert_eq!(
        scene.with_token("bob", &[&format!("/restconf/subscriptions/{id}?depth=1")]).status,
        400
    );
    assert_eq!(scene.with_token("wrong", &[QUEUES]).status, 401);

    let read = || {
        let out = Command::new("curl")
            .args(["-sS", "--max-time", "20", &format!("http://127.0.0.1:{metrics}/metrics")])
            .output();
        String::from_utf8(out.expect("curl runs").stdout).expect("text")
    };
    let text = read();
    let value = |name: &str| {
        let name = format!("rocescope_agent_{name} ");
        let found = text.lines().find_map(|line| line.strip_prefix(&name));
        found.unwrap_or_else(|| panic!("no {name}in\n{text}")).to_owned()
    };
    assert_eq!(value("manage_subscriptions{state=\"active\"}"), "1");
    assert_eq!(value("manage_logins_refused_total{protocol=\"restconf\"}"), "1");
    assert_eq!(value("restconf_answers_total{status=\"401\"}"), "1");
    assert_eq!(value("restconf_answers_total{status=\"403\"}"), "2");
    assert_eq!(value("manage_operations_denied_total"), "2");
    assert_eq!(value("netconf_sessions"), "0");
    assert!(value("manage_connections_total{protocol=\"restconf\"}") != "0");
    // Every name of the documentation is there.
    let documented = include_str!("../../../../docs/serving.md").split("## Metrics").nth(1);
    for line in documented.expect("a section").lines().filter(|line| line.starts_with("| `")) {
        let names = line.split(" | ").next().unwrap_or_default();
        for name in names.split('`').filter(|part| part.contains('_')) {
            let line = format!("# TYPE rocescope_agent_{name} ");
            assert!(text.contains(&line), "{name}\n{text}");
        }
    }
    scene.agent.signal("HUP");
    waited("a reload", || read().contains("rocescope_agent_reloads_total 1").then_some(()));
    let line = "of [manage] 17 access rules in 2 lists, 2 groups with 3 users";
    scene.agent.signal("TERM");
    let (code, said) = scene.agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("login refused: a bearer token that no [[manage.login]] has"), "{said}");
    assert!(said.contains(line), "{said}");
}
