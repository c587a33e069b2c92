//! RESTCONF, request by request.

use std::time::{Duration, UNIX_EPOCH};

use manage::access::{Action, Group, Pattern, Policy, Rule, RuleList, Subject};
use manage::error::{OperationError, Tag};
use manage::operation::{Call, Caller, Operations, Transport, View};
use manage::operational::Datastore;
use manage::read::{Encoding, What};
use manage::restconf::{self, Request, Response, Service, accepted};
use manage::schema::{Definition, find};
use manage::tree::Node;
use manage::{json, library};

use super::scene::{schema, tree};

const QUEUES: &str = "/restconf/data/ietf-interfaces:interfaces/interface=Ethernet1%2F1/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue";

struct Fixed;

impl Datastore for Fixed {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        match &*definition.name {
            "interfaces" => tree().pop(),
            "yang-library" => library::yang_library(schema(), |module| {
                Some(restconf::location("https://h", module))
            }),
            "restconf-state" => restconf::state(schema()),
            _ => None,
        }
    }
}

/// Takes `delete-subscription` and answers `establish-subscription`.
struct Subscriptions;

impl Operations for Subscriptions {
    fn has(&self, operation: &Definition) -> bool {
        ["establish-subscription", "delete-subscription", "kill-subscription"]
            .contains(&&*operation.name)
    }

    fn call(&self, call: &Call<'_>) -> Result<Vec<Node>, OperationError> {
        match &*call.input.definition.name {
            "establish-subscription" => {
                let rpc = find(
                    schema().rpcs(),
                    "ietf-subscribed-notifications",
                    "establish-subscription",
                )
                .expect("there");
                let manage::schema::Kind::Rpc { output } = &rpc.kind else {
                    panic!("an operation")
                };
                let id = output.iter().find(|node| &*node.name == "id").expect("there");
                Ok(vec![Node::value(id, "22")])
            }
            _ => match call.input.leaf("id") {
                Some("1") => Ok(Vec::new()),
                _ => Err(OperationError::application(Tag::InvalidValue, "no subscription")
                    .with_app_tag("ietf-subscribed-notifications:no-such-subscription")
                    .with_status(Some(404))),
            },
        }
    }
}

fn permit(subject: Subject, action: Action) -> Rule {
    Rule {
        name: format!("{subject:?}").into(),
        module: None,
        subject,
        read: true,
        exec: true,
        action,
    }
}

fn policy() -> Policy {
    let path = |text: &str| Subject::Data(Pattern::read(schema(), text).expect(text));
    let list =
        |group: &str, rules| RuleList { name: group.into(), groups: vec![group.into()], rules };
    Policy {
        groups: vec![
            Group { name: "all".into(), users: vec!["alice".into()] },
            Group { name: "one".into(), users: vec!["carol".into()] },
        ],
        lists: vec![
            list("all", vec![permit(Subject::All, Action::Permit)]),
            list(
                "one",
                vec![
                    permit(
                        path("/ietf-interfaces:interfaces/interface[name='Ethernet1/2']"),
                        Action::Permit,
                    ),
                    permit(path("/ietf-interfaces:interfaces/interface"), Action::Deny),
                    permit(path("/ietf-interfaces:interfaces"), Action::Permit),
                ],
            ),
        ],
        ..Policy::default()
    }
}

const NOW: u64 = 1_793_318_400;

fn ask_as(user: &str, request: &Request<'_>, published: Duration) -> Response {
    let policy = policy();
    let access = policy.access(user);
    let caller = Caller { user: user.into(), transport: Transport::Restconf };
    let service = Service {
        view: View { schema: schema(), datastore: &Fixed, access: &access },
        caller: &caller,
        operations: &Subscriptions,
        base: "https://h",
        modified: UNIX_EPOCH + published,
        now: UNIX_EPOCH + Duration::from_secs(NOW),
    };
    restconf::handle(&service, request)
}

fn ask(request: &Request<'_>) -> Response {
    ask_as("alice", request, Duration::from_secs(NOW - 100))
}

fn get(path: &str) -> Response {
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    ask(&Request { method: "GET", path, query, ..Request::default() })
}

fn body(response: &Response) -> String {
    String::from_utf8(response.body.clone()).expect("UTF-8")
}

fn json_of(path: &str) -> serde_json::Value {
    let response = get(path);
    assert_eq!(response.status, 200, "{path}: {}", body(&response));
    serde_json::from_slice(&response.body).expect("JSON")
}

// QUE-pub.2
#[test]
fn a_queue_is_read_whole_by_its_names() {
    let found = json_of(&format!("{QUEUES}=q3"));
    let row = &found["ietf-pfc-queue-telemetry:queue"][0];
    assert_eq!(row["interval-id"], "2");
    assert_eq!(row["mapped-priority"], serde_json::json!([3, 4]));
    assert_eq!(
        json_of(&format!("{QUEUES}=a%2Cb%22%27%3C%26%252F%C3%A9/quality"))["ietf-pfc-queue-telemetry:quality"],
        "unknown"
    );
    let whole = json_of("/restconf/data");
    assert!(whole["ietf-restconf:data"]["ietf-interfaces:interfaces"].is_object());
    let inner = whole["ietf-restconf:data"].to_string();
    schema().read(Encoding::Json, What::Data, &inner).expect("valid");
    assert_eq!(json_of("/restconf/ds/ietf-datastores:operational"), whole);
    assert_eq!(
        json_of("/restconf/ds/ietf-datastores:running"),
        serde_json::json!({"ietf-restconf:data": {}})
    );
}

#[test]
fn every_uint64_is_a_string_and_small_numbers_are_not() {
    let row = &json_of(&format!("{QUEUES}=q3"))["ietf-pfc-queue-telemetry:queue"][0];
    for leaf in [
        "interval-id",
        "start-offset-ns",
        "duration-ns",
        "gated-backlog-ns",
        "backlog-ns",
        "absolute-error-ns",
        "sample-period-ns",
    ] {
        assert!(row[leaf].is_string(), "{leaf}");
    }
    assert!(row["mapped-priority"][0].is_u64());
}

// RFC 8040, sections 3.5.3.1 and 4.3.
#[test]
fn a_list_without_keys_is_every_entry_that_may_be_read() {
    let ids = |found: &serde_json::Value| -> Vec<String> {
        let entries = found["ietf-pfc-queue-telemetry:queue"].as_array().expect("an array");
        entries.iter().map(|entry| entry["queue-id"].as_str().expect("text").into()).collect()
    };
    assert_eq!(ids(&json_of(QUEUES)), ["a,b\"'<&%2F\u{e9}", "q3"]);
    let keys = json_of(&format!("{QUEUES}?depth=1"));
    assert_eq!(
        (ids(&keys).len(), keys["ietf-pfc-queue-telemetry:queue"][0].as_object().map(|e| e.len())),
        (2, Some(1))
    );
    let some = json_of(&format!("{QUEUES}?fields=quality"));
    assert_eq!(some["ietf-pfc-queue-telemetry:queue"][1]["quality"], "sampled");
    assert!(some["ietf-pfc-queue-telemetry:queue"][1]["backlog-ns"].is_null());
    let values = json_of(&format!("{QUEUES}=q3/mapped-priority"));
    assert_eq!(values, serde_json::json!({"ietf-pfc-queue-telemetry:mapped-priority": [3, 4]}));
    assert_eq!(
        json_of(&format!("{QUEUES}=q3/mapped-priority=4")),
        serde_json::json!({"ietf-pfc-queue-telemetry:mapped-priority": [4]})
    );
    // In XML there is one element or an error.
    let xml = |path: &str| {
        ask(&Request {
            method: "GET",
            path,
            accept: Some("application/yang-data+xml"),
            ..Request::default()
        })
    };
    let many = xml(QUEUES);
    assert_eq!(many.status, 400);
    let said = body(&many);
    assert!(said.contains("2 entries") && said.contains("queue=QUEUE-ID"), "{said}");
    assert!(said.contains("<error-tag>invalid-value</error-tag>"), "{said}");
    let other = QUEUES.replace("Ethernet1%2F1", "Ethernet1%2F2");
    let one = xml(&other);
    assert_eq!(one.status, 200, "{}", body(&one));
    assert!(body(&one).starts_with("<queue xmlns="), "{}", body(&one));
    // Nothing of it there, or nothing that may be read: it is not there.
    assert_eq!(get(&other.replace("Ethernet1%2F2", "nothing")).status, 404);
    let request = Request { method: "GET", path: QUEUES, ..Request::default() };
    assert_eq!(ask_as("mallory", &request, Duration::ZERO).status, 404);
}

#[test]
fn what_is_not_there_and_what_is_no_name_differ() {
    for (path, status) in [
        (format!("{QUEUES}=q4"), 404),
        (format!("{QUEUES}=q3/unknown-reason"), 404),
        (format!("{QUEUES}=q3/colour"), 404),
        (format!("{QUEUES}=a,b"), 400),
        (format!("{QUEUES}=%zz"), 400),
        (format!("{QUEUES}=%ff"), 400),
        (format!("{QUEUES}/quality"), 400),
        ("/restconf/data/interfaces".to_owned(), 400),
        ("/restconf/data/".to_owned(), 200),
        ("/restconf/colour".to_owned(), 404),
        ("/restconfx".to_owned(), 404),
        ("/".to_owned(), 404),
        ("/restconf/ds/ietf-datastores:candidate".to_owned(), 404),
        ("/restconf/operations/ietf-netconf:get".to_owned(), 404),
        ("/restconf/schema/ietf-interfaces@2000-01-01.yang".to_owned(), 404),
    ] {
        let response = get(&path);
        assert_eq!(response.status, status, "{path}: {}", body(&response));
        if status >= 400 {
            let errors: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
            assert!(
                errors["ietf-restconf:errors"]["error"][0]["error-tag"].is_string(),
                "{errors}"
            );
        }
    }
}

#[test]
fn parameters_are_known_once_and_in_range() {
    let interface = "/restconf/data/ietf-interfaces:interfaces/interface=Ethernet1%2F2";
    let keys = |query: &str| {
        let found = json_of(&format!("{interface}?{query}"));
        let entry = found["ietf-interfaces:interface"][0].as_object().expect("an entry").clone();
        let mut names: Vec<_> = entry.keys().cloned().collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(keys("depth=1"), "name");
    assert_eq!(keys("fields=type"), "name type");
    assert_eq!(keys("content=config"), "name type");
    // A default of the module is nothing that was observed (RFC 8527, section 3.2.1).
    for mode in ["explicit", "report-all", "trim"] {
        assert_eq!(keys(&format!("content=config&with-defaults={mode}")), "name type", "{mode}");
    }
    assert!(
        !keys("content=nonconfig&depth=2").contains("type "),
        "{}",
        keys("content=nonconfig&depth=2")
    );
    for bad in [
        "depth=0",
        "depth=65536",
        "depth=+1",
        "depth=",
        "depth",
        "content=some",
        "fields=colour",
        "fields=",
        "with-defaults=report-all-tagged",
        "colour=red",
        "depth=1&depth=2",
        "insert=first",
        "filter=x",
        "with-origin",
        "depth=%zz",
        "content=all&content=all",
    ] {
        let response = get(&format!("{interface}?{bad}"));
        assert_eq!(response.status, 400, "{bad}: {}", body(&response));
    }
    let many: Vec<String> = (0..20).map(|n| format!("p{n}=1")).collect();
    assert_eq!(get(&format!("{interface}?{}", many.join("&"))).status, 400);
}

#[test]
fn the_encoding_is_the_one_that_is_asked_for() {
    for (accept, expected) in [
        (None, Some(Encoding::Json)),
        (Some("*/*"), Some(Encoding::Json)),
        (Some("application/yang-data+xml"), Some(Encoding::Xml)),
        (Some("application/yang-data+json;q=0.5, application/yang-data+xml"), Some(Encoding::Xml)),
        (
            Some("application/yang-data+xml;q=0.5,application/yang-data+json;q=0.50"),
            Some(Encoding::Json),
        ),
        (Some("application/*;q=0.1, application/yang-data+json;q=0"), Some(Encoding::Xml)),
        (Some("text/html, application/xml;q=0.9, */*;q=0.8"), Some(Encoding::Xml)),
        (Some("APPLICATION/YANG-DATA+XML ; Q=1"), Some(Encoding::Xml)),
        (Some("text/html"), None),
        (Some("*/*;q=0"), None),
        (Some("application/yang-data+json;q=2"), None),
        (Some("application/yang-data+json;q=0.0001"), None),
    ] {
        assert_eq!(accepted(accept, None), expected, "{accept:?}");
    }
    let path = "/restconf/data/ietf-interfaces:interfaces";
    let as_xml = ask(&Request {
        method: "GET",
        path,
        accept: Some("application/yang-data+xml"),
        ..Request::default()
    });
    assert_eq!(as_xml.header("content-type"), Some("application/yang-data+xml"));
    let read = schema().read(Encoding::Xml, What::Datastore, &body(&as_xml)).expect("valid");
    assert_eq!(
        json::object(&read),
        json::object(
            &schema().read(Encoding::Json, What::Datastore, &body(&get(path))).expect("valid")
        )
    );
    let neither =
        ask(&Request { method: "GET", path, accept: Some("text/html"), ..Request::default() });
    assert_eq!(neither.status, 406);
    let absent = ask(&Request {
        method: "GET",
        path: "/restconf/data/a:b",
        accept: Some("application/yang-data+xml"),
        ..Request::default()
    });
    assert!(
        body(&absent)
            .starts_with("<errors xmlns=\"urn:ietf:params:xml:ns:yang:ietf-restconf\"><error>"),
        "{}",
        body(&absent)
    );
}

#[test]
fn nothing_can_be_written() {
    for method in ["PUT", "POST", "PATCH", "DELETE", "TRACE", "FOO"] {
        for path in [
            "/restconf/data",
            QUEUES,
            "/restconf/data/a:b",
            "/restconf",
            "/restconf/ds/ietf-datastores:running",
        ] {
            let response = ask(&Request { method, path, body: b"{}", ..Request::default() });
            assert_eq!(response.status, 405, "{method} {path}");
            assert_eq!(response.header("allow"), Some("GET, HEAD, OPTIONS"));
            assert!(body(&response).contains("operation-not-supported"));
        }
    }
    let options = ask(&Request { method: "OPTIONS", path: "/restconf/data", ..Request::default() });
    assert_eq!((options.status, options.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
    let head = ask(&Request { method: "HEAD", path: "/restconf/data", ..Request::default() });
    assert_eq!((head.status, head.headers), (200, get("/restconf/data").headers));
}

// QUE-sec.1
#[test]
fn what_may_not_be_read_is_not_there() {
    let age = Duration::from_secs(1);
    let as_carol =
        |path: &str| ask_as("carol", &Request { method: "GET", path, ..Request::default() }, age);
    let hidden = as_carol(&format!("{QUEUES}=q3"));
    let absent = as_carol(&format!("{QUEUES}=q9"));
    assert_eq!((hidden.status, absent.status), (404, 404));
    assert_eq!(body(&hidden).replace("q3", ""), body(&absent).replace("q9", ""));
    let list = body(&as_carol("/restconf/data/ietf-interfaces:interfaces"));
    assert!(list.contains("Ethernet1/2") && !list.contains("Ethernet1/1"), "{list}");
    assert_eq!(
        ask_as(
            "bob",
            &Request {
                method: "GET",
                path: "/restconf/data/ietf-interfaces:interfaces",
                ..Request::default()
            },
            age
        )
        .status,
        404
    );
    let call = Request {
        method: "POST",
        path: "/restconf/operations/ietf-subscribed-notifications:delete-subscription",
        ..Request::default()
    };
    let denied = ask_as("bob", &call, age);
    assert_eq!(denied.status, 403);
    let listed = |user: &str| {
        body(&ask_as(
            user,
            &Request { method: "GET", path: "/restconf/operations", ..Request::default() },
            age,
        ))
    };
    assert_eq!(listed("bob"), "{\"ietf-restconf:operations\":{}}");
    assert!(
        listed("alice").contains("\"ietf-subscribed-notifications:establish-subscription\":[null]"),
        "{}",
        listed("alice")
    );
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let path = "/restconf/data/ietf-interfaces:interfaces";
    let first = get(path);
    let (tag, date) =
        (first.header("etag").expect("a tag"), first.header("last-modified").expect("a date"));
    let again = |none_match: Option<&str>, since: Option<&str>, published: Duration| {
        let request = Request {
            method: "GET",
            path,
            if_none_match: none_match,
            if_modified_since: since,
            ..Request::default()
        };
        ask_as("alice", &request, published).status
    };
    let before = Duration::from_secs(NOW - 100);
    assert_eq!(again(Some(tag), None, before), 304);
    assert_eq!(again(Some("\"x\", *"), None, before), 304);
    assert_eq!(again(Some("\"x\""), Some(date), before), 200);
    assert_eq!(again(None, Some(date), before), 304);
    assert_eq!(again(None, Some(date), before + Duration::from_secs(1)), 200);
    assert_eq!(again(None, Some("colour"), before), 200);
    // Within the second of a change nothing can be said by a date.
    let now = Duration::from_secs(NOW) + Duration::from_millis(1);
    let fresh = ask_as("alice", &Request { method: "GET", path, ..Request::default() }, now);
    assert_eq!(fresh.header("last-modified"), None);
    // Another user sees something else under another tag.
    let carol = ask_as("carol", &Request { method: "GET", path, ..Request::default() }, before);
    assert_ne!(carol.header("etag"), Some(tag));
    // When something was published that she does not see is not told to her either.
    assert_eq!(carol.header("last-modified"), None);
}

// QUE-sec.1
#[test]
fn the_text_of_a_module_is_for_who_may_read_where_it_is() {
    let module = schema().module("ietf-interfaces").expect("there");
    let path = format!("/restconf/schema/{}@{}.yang", module.name, module.revision);
    let ask = |user: &str| {
        let request = Request { method: "GET", path: &path, ..Request::default() };
        ask_as(user, &request, Duration::from_secs(NOW - 100))
    };
    assert_eq!(ask("alice").header("content-type"), Some("application/yang"));
    assert_eq!(ask("carol").status, 404);
}

#[test]
fn operations_are_called_in_both_encodings() {
    let call = |name: &str, content_type: Option<&str>, accept: Option<&str>, text: &str| {
        let path = format!("/restconf/operations/ietf-subscribed-notifications:{name}");
        let response = ask(&Request {
            method: "POST",
            path: &path,
            content_type,
            accept,
            body: text.as_bytes(),
            ..Request::default()
        });
        (response.status, body(&response))
    };
    let (json, xml) =
        (Some("application/yang-data+json"), Some("application/yang-data+xml; charset=utf-8"));
    let input = r#"{"ietf-subscribed-notifications:input":{"id":1}}"#;
    assert_eq!(call("delete-subscription", json, None, input), (204, String::new()));
    let input = "<input xmlns='urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications'><id>1</id></input>";
    // Who sends XML and says nothing else is answered in XML.
    let unknown = input.replace('1', "2");
    assert!(call("delete-subscription", xml, None, &unknown).1.starts_with("<errors"));
    assert_eq!(call("delete-subscription", xml, None, input), (204, String::new()));
    let (status, refused) = call(
        "delete-subscription",
        json,
        None,
        r#"{"ietf-subscribed-notifications:input":{"id":2}}"#,
    );
    // RFC 8650, section 3.3.
    assert_eq!(status, 404);
    assert!(refused.contains("\"error-tag\":\"invalid-value\""), "{refused}");
    assert!(refused.contains("no-such-subscription"), "{refused}");
    // What is no input, or has something beside it.
    let input = |text: &str| format!("{{\"ietf-subscribed-notifications:input\":{text}}}");
    for bad in [
        input("[]"),
        input("[{\"id\":1}]"),
        input("null"),
        input("1"),
        input("{\"id\":1},\"a:b\":{}"),
        "{\"input\":{\"id\":1}}".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "{}".to_owned(),
    ] {
        let (status, refused) = call("delete-subscription", json, None, &bad);
        assert_eq!(status, 400, "{bad}");
        assert!(refused.contains("subscribed-notifications:input"), "{bad}: {refused}");
    }
    // Two cases of a choice, of which libyang would take one.
    let both = r#"{"ietf-subscribed-notifications:input":{"ietf-yang-push:datastore":"ietf-datastores:operational","ietf-yang-push:periodic":{"period":100},"ietf-yang-push:on-change":{}}}"#;
    let (status, refused) = call("establish-subscription", json, None, both);
    assert_eq!(status, 400);
    assert!(refused.contains("\"bad-element\"") && refused.contains("periodic"), "{refused}");
    let both = "<input xmlns='urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications' xmlns:yp='urn:ietf:params:xml:ns:yang:ietf-yang-push' xmlns:ds='urn:ietf:params:xml:ns:yang:ietf-datastores'><yp:datastore>ds:operational</yp:datastore><yp:on-change/><yp:periodic><yp:period>100</yp:period></yp:periodic></input>";
    let (status, refused) = call("establish-subscription", xml, None, both);
    assert_eq!(status, 400);
    assert!(refused.contains(">bad-element<") && refused.contains("on-change"), "{refused}");
    let stream = r#"{"ietf-subscribed-notifications:input":{"stream":"NETCONF"}}"#;
    assert_eq!(
        call("establish-subscription", json, None, stream),
        (200, "{\"ietf-subscribed-notifications:output\":{\"id\":22}}".into())
    );
    assert_eq!(
        call("establish-subscription", json, xml, stream).1,
        "<output xmlns=\"urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications\"><id>22</id></output>"
    );
    for (content_type, text, expected) in [
        (None, "{}", 415),
        (Some("text/plain"), "{}", 415),
        (json, "{", 400),
        (json, "{}", 400),
        (json, r#"{"ietf-subscribed-notifications:input":{"id":-1}}"#, 400),
        (json, r#"{"ietf-subscribed-notifications:input":{"id":1,"colour":2}}"#, 400),
        (json, r#"{"ietf-subscribed-notifications:input":{"id":1,"id":1}}"#, 400),
        (json, r#"{"ietf-subscribed-notifications:input":{"id":1},"x:y":1}"#, 400),
        (xml, "<input/>", 400),
        (xml, "<a", 400),
        (json, "", 404),
    ] {
        let (status, found) = call("delete-subscription", content_type, None, text);
        assert_eq!(status, expected, "{content_type:?} {text}: {found}");
    }
}

#[test]
fn the_way_in_is_found_from_the_host() {
    let meta = get("/.well-known/host-meta");
    assert!(body(&meta).contains("<Link rel=\"restconf\" href=\"/restconf\"/>"));
    assert_eq!(meta.header("content-type"), Some("application/xrd+xml"));
    assert_eq!(
        json_of("/restconf")["ietf-restconf:restconf"]["yang-library-version"],
        "2019-01-04"
    );
    assert_eq!(
        json_of("/restconf/yang-library-version")["ietf-restconf:yang-library-version"],
        "2019-01-04"
    );
    let library = json_of("/restconf/data/ietf-yang-library:yang-library");
    let modules = library["ietf-yang-library:yang-library"]["module-set"][0]["module"]
        .as_array()
        .expect("modules")
        .clone();
    for module in modules {
        let location = module["location"][0].as_str().expect("a location").to_owned();
        let text = get(location.strip_prefix("https://h").expect("of this host"));
        assert_eq!(text.status, 200, "{location}");
        assert!(
            body(&text).contains(&format!("module {} ", module["name"].as_str().expect("a name"))),
            "{location}"
        );
    }
    let capabilities = json_of("/restconf/data/ietf-restconf-monitoring:restconf-state");
    assert!(capabilities.to_string().contains("capability:fields:1.0"));
}

/// Takes every operation and says what its filter and its number are.
struct Echo(std::cell::RefCell<Vec<String>>);

impl Operations for Echo {
    fn has(&self, operation: &Definition) -> bool {
        Subscriptions.has(operation)
    }

    fn call(&self, call: &Call<'_>) -> Result<Vec<Node>, OperationError> {
        let body = match call.body {
            manage::operation::Body::Json(value) => value.to_string(),
            _ => String::new(),
        };
        self.0.borrow_mut().push(format!("{:?} {body}", call.input.leaf("id")));
        Ok(Vec::new())
    }
}

/// Calls an operation with a body as it is; gives the status and what came through.
fn called(operation: &str, content_type: &str, body: &str) -> (u16, Vec<String>) {
    let policy = policy();
    let access = policy.access("alice");
    let caller = Caller { user: "alice".into(), transport: Transport::Restconf };
    let echo = Echo(Default::default());
    let service = Service {
        view: View { schema: schema(), datastore: &Fixed, access: &access },
        caller: &caller,
        operations: &echo,
        base: "https://h",
        modified: UNIX_EPOCH,
        now: UNIX_EPOCH + Duration::from_secs(NOW),
    };
    let path = format!("/restconf/operations/ietf-subscribed-notifications:{operation}");
    let request = Request {
        method: "POST",
        path: &path,
        content_type: Some(content_type),
        body: body.as_bytes(),
        ..Request::default()
    };
    let response = restconf::handle(&service, &request);
    (response.status, echo.0.into_inner())
}

// A name twice: two readers of one body must not each see another one.
#[test]
fn names_twice_in_json_are_refused() {
    let json = "application/yang-data+json";
    let input = "ietf-subscribed-notifications:input";
    for body in [
        format!(r#"{{"{input}":{{"id":1,"id":2}}}}"#),
        format!(r#"{{"{input}":{{"id":1}},"{input}":{{"id":2}}}}"#),
        format!(r#"{{"{input}":{{"id":1,"i\u0064":2}}}}"#),
        format!(r#"{{"{input}":{{"id":1,"ietf-subscribed-notifications:id":2}}}}"#),
        format!(r#"{{"{input}":{{"id":1}},"ietf-yang-push:input":{{}}}}"#),
        r#"{"input":{"id":1}}"#.to_owned(),
    ] {
        let found = called("delete-subscription", json, &body);
        assert_eq!(found, (400, Vec::new()), "{body}");
    }
    let body = format!(
        r#"{{"{input}":{{"ietf-yang-push:datastore":"ietf-datastores:operational","ietf-yang-push:on-change":{{}},
            "ietf-yang-push:datastore-subtree-filter":{{"a:a":1,"a:a":2}}}}}}"#
    );
    assert_eq!(called("establish-subscription", json, &body), (400, Vec::new()));
    let good = called("delete-subscription", json, &format!(r#"{{"{input}":{{"id":1}}}}"#));
    assert_eq!(good, (204, vec![r#"Some("1") {"id":1}"#.to_owned()]));
}

// libyang takes both cases of a choice, and then one would be left out without a word.
#[test]
fn two_cases_of_a_choice_are_refused() {
    let json = "application/yang-data+json";
    let asked = |more: &str| {
        let body = format!(
            r#"{{"ietf-subscribed-notifications:input":{{"ietf-yang-push:on-change":{{}}{more}}}}}"#
        );
        called("establish-subscription", json, &body).0
    };
    let store = r#","ietf-yang-push:datastore":"ietf-datastores:operational""#;
    let xpath = r#","ietf-yang-push:datastore-xpath-filter":"/ietf-interfaces:interfaces""#;
    assert_eq!(asked(&format!("{store}{xpath}")), 204);
    for more in [
        r#","ietf-yang-push:periodic":{"period":100}"#,
        r#","stream":"NETCONF""#,
        &format!(r#"{xpath},"ietf-yang-push:datastore-subtree-filter":{{}}"#),
        &format!(r#"{xpath},"ietf-yang-push:selection-filter-ref":"a""#),
    ] {
        assert_eq!(asked(&format!("{store}{more}")), 400, "{more}");
    }
}

// Deep, long and large: refused with a word, at no cost.
#[test]
fn bodies_that_are_too_much_are_refused() {
    let (json, xml) = ("application/yang-data+json", "application/yang-data+xml");
    let input = "ietf-subscribed-notifications:input";
    let deep = |open: &str, close: &str, times: usize| open.repeat(times) + &close.repeat(times);
    let namespace = "urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications";
    for (media, body) in [
        (json, deep("[", "]", 100_000)),
        (json, format!("{{\"{input}\":{}}}", deep("[", "]", 200))),
        (json, format!("{{\"{input}\":{}1{}}}", "{\"a:a\":".repeat(200), "}".repeat(200))),
        (json, format!("{{\"{input}\":{{\"id\":{}}}}}", "9".repeat(100_000))),
        (json, format!("{{\"{input}\":{{\"id\":1e400}}}}")),
        (json, format!("{{\"{input}\":{{\"id\":4294967296}}}}")),
        (json, format!("{{\"{input}\":{{\"id\":-1}}}}")),
        (json, format!("{{\"{input}\":{{\"{}\":1}}}}", "a".repeat(100_000))),
        (json, format!("{{\"{input}\":{{\"id\":\"\\ud800\"}}}}")),
        (xml, format!("<input xmlns='{namespace}'>{}</input>", deep("<a>", "</a>", 100))),
        (xml, format!("<input xmlns='{namespace}'>{}</input>", "<a/>".repeat(10_000))),
        (xml, format!("<input xmlns='{namespace}'><{}/></input>", "a".repeat(100_000))),
        (xml, format!("<input xmlns='{}'/>", "u".repeat(100_000))),
        (
            xml,
            format!(
                "<!DOCTYPE a [<!ENTITY b 'c'>]><input xmlns='{namespace}'><id>&b;</id></input>"
            ),
        ),
        (xml, format!("<input xmlns='{namespace}'><id>4294967296</id></input>")),
        (xml, format!("<input xmlns='{namespace}'><id>1</id><id>2</id></input>")),
    ] {
        let found = called("delete-subscription", media, &body);
        let start: String = body.chars().take(120).collect();
        assert_eq!(found, (400, Vec::new()), "{start}");
    }
}

// What is there is there in every mode, with nothing in it too.
#[test]
fn a_container_with_nothing_in_it_is_there_whatever_is_asked_of_defaults() {
    struct Empty;
    impl Datastore for Empty {
        fn top(&self, definition: &'static Definition) -> Option<Node> {
            let none = manage::push::Subscriptions::new(schema(), Default::default());
            none.top(definition, None)
        }
    }
    let policy = policy();
    let access = policy.access("alice");
    let caller = Caller { user: "alice".into(), transport: Transport::Restconf };
    for mode in ["explicit", "trim", "report-all"] {
        let service = Service {
            view: View { schema: schema(), datastore: &Empty, access: &access },
            caller: &caller,
            operations: &Subscriptions,
            base: "https://h",
            modified: UNIX_EPOCH,
            now: UNIX_EPOCH + Duration::from_secs(NOW),
        };
        let query = format!("with-defaults={mode}");
        let request = Request {
            method: "GET",
            path: "/restconf/data/ietf-subscribed-notifications:subscriptions",
            query: Some(&query),
            ..Request::default()
        };
        let response = restconf::handle(&service, &request);
        assert_eq!(
            (response.status, body(&response)),
            (200, r#"{"ietf-subscribed-notifications:subscriptions":{}}"#.to_owned()),
            "{mode}"
        );
    }
}
