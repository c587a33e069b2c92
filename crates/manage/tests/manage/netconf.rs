//! NETCONF, octet by octet.

use std::cell::Cell;

use manage::access::{Action, Group, Policy, Rule, RuleList, Subject};
use manage::netconf::framing::{Decoder, Framing, FramingError, framed};
use manage::netconf::monitoring::{self, Shown, Statistics};
use manage::netconf::{Limits, Session, Then, World};
use manage::operation::NoOperations;
use manage::operational::Datastore;
use manage::read::{Encoding, What};
use manage::schema::{Definition, Module};
use manage::tree::Node;
use manage::xml::{self, Element};
use manage::{json, library};

use super::scene::{schema, tree};

const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";

/// A tree as everything that there is.
struct Fixed(Policy);

impl Datastore for Fixed {
    fn top(&self, definition: &'static Definition) -> Option<Node> {
        match &*definition.name {
            "interfaces" => tree().pop(),
            "modules-state" => library::modules_state(schema(), |_| None),
            "yang-library" => library::yang_library(schema(), |_| None),
            "nacm" => self.running(definition),
            "netconf-state" => monitoring::node(
                schema(),
                &[],
                &Statistics { start: "2026-10-30T00:00:00Z".into(), ..Statistics::default() },
            ),
            _ => None,
        }
    }

    fn running(&self, definition: &'static Definition) -> Option<Node> {
        (&*definition.name == "nacm").then(|| self.0.node(schema(), Default::default()))?
    }
}

fn open_policy() -> Policy {
    let all = Rule {
        name: "all".into(),
        module: None,
        subject: Subject::All,
        read: true,
        exec: true,
        action: Action::Permit,
    };
    Policy {
        groups: vec![Group { name: "readers".into(), users: vec!["alice".into()] }],
        lists: vec![RuleList {
            name: "all".into(),
            groups: vec!["readers".into()],
            rules: vec![all],
        }],
        ..Policy::default()
    }
}

fn hello(versions: &[&str]) -> String {
    let capabilities: String = versions
        .iter()
        .map(|version| {
            format!("<capability>\n urn:ietf:params:netconf:base:{version} </capability>")
        })
        .collect();
    format!(
        "<?xml version='1.0'?><hello xmlns='{BASE}'><capabilities>{capabilities}</capabilities></hello>"
    )
}

struct Client {
    session: Session,
    world: Fixed,
    user: &'static str,
    killed: Cell<u32>,
    then: Then,
}

impl Client {
    fn new(user: &'static str, versions: &[&str]) -> Self {
        let (mut session, _) = Session::new(schema(), user, 4, Limits::default());
        session.take(&framed(Framing::EndOfMessage, &hello(versions)));
        assert_eq!(session.next_request(), Ok(None));
        assert!(session.greeted());
        Self {
            session,
            world: Fixed(open_policy()),
            user,
            killed: Cell::new(0),
            then: Then::Continue,
        }
    }

    fn reply(&mut self, request: &str) -> String {
        let access = self.world.0.access(self.user);
        let kill = |id: u32| {
            self.killed.set(id);
            id == 9
        };
        let world = World {
            datastore: &self.world,
            access: &access,
            operations: &NoOperations,
            kill: &kill,
        };
        let (octets, then) = self.session.answer(request, &world);
        self.then = then;
        let mut decoder = Decoder::new(10_000_000);
        if octets.starts_with(b"\n#") {
            decoder.set_framing(Framing::Chunked);
        }
        decoder.take(&octets);
        let found = decoder.next_message().expect("framed").expect("a message");
        Element::read(&found, &xml::Limits { elements_max: 100_000, ..xml::Limits::default() })
            .expect("well-formed");
        found
    }

    fn rpc(&mut self, operation: &str) -> String {
        self.reply(&format!("<rpc xmlns='{BASE}' message-id='101'>{operation}</rpc>"))
    }
}

fn tag(reply: &str) -> &str {
    let after = reply.split_once("<error-tag>").unwrap_or_else(|| panic!("no error: {reply}")).1;
    after.split_once('<').expect("an end").0
}

// Markers and chunk headers split at every octet.
#[test]
fn messages_are_found_wherever_the_stream_is_split() {
    let messages = ["<a>]]></a>", "<b/>", "<c>]]]]>]</c>"];
    for framing in [Framing::EndOfMessage, Framing::Chunked] {
        let stream: Vec<u8> = match framing {
            Framing::EndOfMessage => {
                messages.iter().flat_map(|message| framed(framing, message)).collect()
            }
            Framing::Chunked => {
                b"\n#3\n<a>\n#7\n]]></a>\n##\n\n#4\n<b/>\n##\n\n#1\n<\n#12\nc>]]]]>]</c>\n##\n"
                    .to_vec()
            }
        };
        for step in 1..=stream.len() {
            let mut decoder = Decoder::new(100);
            decoder.set_framing(framing);
            let mut found = Vec::new();
            for part in stream.chunks(step) {
                decoder.take(part);
                while let Some(message) = decoder.next_message().expect("a stream") {
                    found.push(message);
                }
            }
            assert_eq!(found, messages, "{framing:?} in steps of {step}");
        }
    }
}

#[test]
fn what_is_no_chunk_ends_the_stream() {
    for bad in [
        "\n#0\n",
        "\n#01\nx",
        "x",
        "\nx",
        "\n#x",
        "\n##x",
        "\n##\n",
        "\n#4294967296\n",
        "\n#12345678901",
        "\n#-1\n",
        "\n# 1\n",
    ] {
        let mut decoder = Decoder::new(usize::MAX);
        decoder.set_framing(Framing::Chunked);
        decoder.take(bad.as_bytes());
        assert!(matches!(decoder.next_message(), Err(FramingError::Chunk(_))), "{bad:?}");
    }
    let mut decoder = Decoder::new(10);
    decoder.set_framing(Framing::Chunked);
    decoder.take(b"\n#3\n\xff\xff\xff\n##\n");
    assert_eq!(decoder.next_message(), Err(FramingError::Text));
}

#[test]
fn a_message_has_as_many_octets_as_it_may_and_not_one_more() {
    for (length, fits) in [(9, true), (10, true), (11, false)] {
        for framing in [Framing::EndOfMessage, Framing::Chunked] {
            let mut decoder = Decoder::new(10);
            decoder.set_framing(framing);
            decoder.take(&framed(framing, &"x".repeat(length)));
            let found = decoder.next_message();
            assert_eq!(found.is_ok(), fits, "{framing:?} {length}: {found:?}");
        }
    }
    // Without an end there is an end to what is kept, too.
    let mut decoder = Decoder::new(10);
    decoder.take(&[b'x'; 16]);
    assert_eq!(decoder.next_message(), Err(FramingError::TooBig(10)));
    let mut decoder = Decoder::new(10);
    decoder.set_framing(Framing::Chunked);
    decoder.take(b"\n#6\nxxxxxx\n#5\n");
    assert_eq!(decoder.next_message(), Err(FramingError::TooBig(10)));
}

#[test]
fn both_sides_of_1_1_are_chunked_and_of_1_0_are_not() {
    for (versions, starts) in
        [(&["1.0", "1.1"][..], "\n#"), (&["1.1"], "\n#"), (&["1.0"], "<rpc-reply")]
    {
        let mut client = Client::new("alice", versions);
        let world = Fixed(open_policy());
        let access = world.0.access("alice");
        let world = World {
            datastore: &world,
            access: &access,
            operations: &NoOperations,
            kill: &|_| false,
        };
        let (octets, _) = client.session.answer("<rpc/>", &world);
        assert!(octets.starts_with(starts.as_bytes()), "{versions:?}");
    }
}

#[test]
fn what_is_no_hello_ends_the_session() {
    for bad in [
        "<hello/>".to_owned(),
        "nothing".to_owned(),
        hello(&[]),
        hello(&["2.0"]),
        hello(&["1.0"]).replace("</hello>", "<session-id>4</session-id></hello>"),
        format!("<rpc xmlns='{BASE}' message-id='1'><get/></rpc>"),
        format!("<hello xmlns='{BASE}'/>"),
    ] {
        let (mut session, _) = Session::new(schema(), "alice", 4, Limits::default());
        session.take(&framed(Framing::EndOfMessage, &bad));
        assert!(session.next_request().is_err(), "{bad}");
    }
}

#[test]
fn our_hello_says_what_is_so() {
    let (_, octets) = Session::new(schema(), "alice", 4_294_967_295, Limits::default());
    let text = String::from_utf8(octets).expect("text");
    let hello =
        Element::read(text.strip_suffix("]]>]]>").expect("a mark"), &xml::Limits::default())
            .expect("well-formed");
    let all: Vec<&str> = hello
        .child(BASE, "capabilities")
        .expect("some")
        .children
        .iter()
        .map(Element::trimmed)
        .collect();
    assert!(
        all.contains(&"urn:ietf:params:netconf:base:1.1")
            && all.contains(&"urn:ietf:params:netconf:base:1.0")
    );
    let library = format!(
        "urn:ietf:params:netconf:capability:yang-library:1.1?revision=2019-01-04&content-id={}",
        schema().content_id()
    );
    assert!(all.contains(&&*library), "{all:?}");
    // Those of YANG 1, and no others: clients look for get-schema and for defaults here.
    let modules: Vec<&str> =
        all.iter().filter_map(|uri| uri.split_once("?module=")).map(|(_, module)| module).collect();
    assert_eq!(
        modules,
        [
            "iana-if-type&revision=2026-03-17",
            "ietf-netconf&revision=2011-06-01&features=xpath",
            "ietf-netconf-acm&revision=2018-02-14",
            "ietf-netconf-monitoring&revision=2010-10-04",
            "ietf-netconf-with-defaults&revision=2011-06-01",
            "ietf-restconf-monitoring&revision=2017-01-26",
        ]
    );
    let monitoring = "urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring?module=";
    assert!(all.iter().any(|uri| uri.starts_with(monitoring)), "{all:?}");
    assert!(
        !all.iter().any(|uri| uri.contains("writable") || uri.contains("candidate")),
        "{all:?}"
    );
    assert_eq!(hello.child(BASE, "session-id").map(Element::trimmed), Some("4294967295"));
}

// QUE-pub.2
#[test]
fn every_way_of_reading_gives_the_rows() {
    let mut client = Client::new("alice", &["1.1"]);
    let get_data = |inner: &str| {
        format!(
            "<get-data xmlns='urn:ietf:params:xml:ns:yang:ietf-netconf-nmda' xmlns:ds='urn:ietf:params:xml:ns:yang:ietf-datastores'>\
             <datastore>ds:operational</datastore>{inner}</get-data>"
        )
    };
    let mut whole = String::new();
    xml::write(&mut whole, schema(), &tree(), Some(BASE));
    let filter = "<interfaces xmlns='urn:ietf:params:xml:ns:yang:ietf-interfaces'/>";
    for request in [
        format!("<get><filter type='subtree'>{filter}</filter></get>"),
        format!("<get><filter>{filter}</filter></get>"),
        "<get xmlns:if='urn:ietf:params:xml:ns:yang:ietf-interfaces'><filter type='xpath' select='/if:interfaces'/></get>".to_owned(),
        format!("<nc:get xmlns:nc='{BASE}'><nc:filter nc:type='subtree'>{filter}</nc:filter></nc:get>"),
        get_data(&format!("<subtree-filter>{filter}</subtree-filter>")),
        get_data("<xpath-filter xmlns:x='urn:ietf:params:xml:ns:yang:ietf-interfaces'>/x:interfaces</xpath-filter>"),
    ] {
        let reply = client.rpc(&request);
        assert!(reply.contains(&whole), "{request}: {reply}");
    }
    let all = client.rpc("<get/>");
    for top in ["<interfaces ", "<nacm ", "<yang-library ", "<netconf-state "] {
        assert!(all.contains(top), "{top} in {all}");
    }
}

#[test]
fn get_data_cuts_to_what_was_asked_for() {
    let mut client = Client::new("alice", &["1.1"]);
    let mut ask = |store: &str, inner: &str| {
        client.rpc(&format!(
            "<get-data xmlns='urn:ietf:params:xml:ns:yang:ietf-netconf-nmda' xmlns:ds='urn:ietf:params:xml:ns:yang:ietf-datastores' xmlns:if='urn:ietf:params:xml:ns:yang:ietf-interfaces'>\
             <datastore>ds:{store}</datastore>{inner}</get-data>"
        ))
    };
    let deep = ask(
        "operational",
        "<xpath-filter>/if:interfaces/if:interface[if:name='Ethernet1/2']</xpath-filter><max-depth>2</max-depth>",
    );
    assert!(
        deep.contains("<name>Ethernet1/2</name><type") && deep.contains("<statistics/>"),
        "{deep}"
    );
    let state = ask(
        "operational",
        "<subtree-filter><if:interfaces/></subtree-filter><config-filter>false</config-filter>",
    );
    assert!(state.contains("oper-status") && !state.contains("<type"), "{state}");
    let running = ask("running", "");
    assert!(
        running.contains("<nacm ")
            && !running.contains("<interfaces")
            && !running.contains("denied-operations"),
        "{running}"
    );
    // A default of the module is nothing that was observed (RFC 8526, section 3.1.1.2).
    let interfaces = "<subtree-filter><if:interfaces/></subtree-filter>";
    let plain = ask("operational", interfaces);
    assert!(plain.contains("oper-status") && !plain.contains("enabled"), "{plain}");
    for mode in ["explicit", "report-all"] {
        let asked = format!("{interfaces}<with-defaults>{mode}</with-defaults>");
        assert_eq!(ask("operational", &asked), plain, "{mode}");
    }
    assert_eq!(tag(&ask("candidate", "")), "invalid-value");
    assert_eq!(tag(&ask("operational", "<max-depth>0</max-depth>")), "invalid-value");
    assert_eq!(tag(&ask("operational", "<xpath-filter>/y:a</xpath-filter>")), "invalid-value");
    assert_eq!(tag(&ask("operational", "<with-origin/>")), "unknown-element");
    // Two cases of a choice, of which libyang would take one.
    let both = "<subtree-filter><if:interfaces/></subtree-filter><xpath-filter>/if:interfaces</xpath-filter>";
    assert_eq!(tag(&ask("operational", both)), "bad-element");
    assert_eq!(
        tag(&ask("operational", "<with-defaults>report-all-tagged</with-defaults>")),
        "invalid-value"
    );
}

// A filter that names an unknown node selects nothing.
#[test]
fn what_is_not_there_selects_nothing() {
    let mut client = Client::new("alice", &["1.1"]);
    for filter in [
        "<filter><nothing xmlns='urn:nothing'/></filter>",
        "<filter><interfaces xmlns='urn:ietf:params:xml:ns:yang:ietf-interfaces'><colour/></interfaces></filter>",
        "<filter/>",
        "<filter type='xpath' xmlns:n='urn:nothing' select='/n:a'/>",
        "<filter type='xpath' xmlns:if='urn:ietf:params:xml:ns:yang:ietf-interfaces' select='/if:interfaces/if:colour'/>",
    ] {
        let reply = client.rpc(&format!("<get>{filter}</get>"));
        assert!(reply.contains(&format!("<data xmlns=\"{BASE}\"/>")), "{filter}: {reply}");
    }
}

#[test]
fn each_fault_has_its_word_and_the_session_goes_on() {
    let mut client = Client::new("alice", &["1.1"]);
    let monitoring = "xmlns='urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring'";
    for (request, expected) in [
        ("<lock><target><running/></target></lock>", "operation-not-supported"),
        (
            "<edit-config><target><running/></target><config/></edit-config>",
            "operation-not-supported",
        ),
        ("<nothing/>", "operation-not-supported"),
        ("<get xmlns='urn:nothing'/>", "unknown-namespace"),
        ("<get xmlns=''/>", "unknown-namespace"),
        ("<get><colour/></get>", "unknown-element"),
        ("<get><filter xmlns='urn:nothing'/></get>", "unknown-namespace"),
        ("<get><filter type='colour'/></get>", "bad-attribute"),
        ("<get><filter type='xpath'/></get>", "missing-attribute"),
        ("<get><filter type='xpath' select='//*//*'/></get>", "invalid-value"),
        ("<get-config/>", "missing-element"),
        ("<get-config><source><startup/></source></get-config>", "invalid-value"),
        ("<get-config><source/></get-config>", "missing-element"),
        ("<kill-session/>", "missing-element"),
        ("<kill-session><session-id>4</session-id></kill-session>", "invalid-value"),
        ("<kill-session><session-id>8</session-id></kill-session>", "invalid-value"),
        ("<kill-session><session-id>x</session-id></kill-session>", "invalid-value"),
        (
            &format!("<get-schema {monitoring}><identifier>nothing</identifier></get-schema>"),
            "invalid-value",
        ),
        (&format!("<get-schema {monitoring}/>"), "missing-element"),
        ("<get-data xmlns='urn:ietf:params:xml:ns:yang:ietf-netconf-nmda'/>", "missing-element"),
        ("<get/><get/>", "unknown-element"),
        ("", "missing-element"),
    ] {
        let reply = client.rpc(request);
        assert_eq!(tag(&reply), expected, "{request}: {reply}");
        assert!(reply.contains("message-id=\"101\""), "{reply}");
    }
    let reply = client.reply(&format!("<rpc xmlns='{BASE}'><get/></rpc>"));
    assert_eq!(tag(&reply), "missing-attribute");
    assert_eq!(tag(&client.reply("<rpc message-id='1'><get/></rpc>")), "unknown-element");
    assert_eq!(tag(&client.reply("<rpc")), "malformed-message");
    assert_eq!(tag(&client.reply("<!DOCTYPE a><rpc/>")), "malformed-message");
    assert_eq!(tag(&Client::new("alice", &["1.0"]).reply("<rpc")), "operation-failed");
    assert!(client.rpc("<get-config><source><running/></source></get-config>").contains("<nacm "));
    assert_eq!(client.then, Then::Continue);
}

#[test]
fn a_reply_has_every_attribute_of_its_request() {
    let mut client = Client::new("alice", &["1.1"]);
    let reply = client.reply(&format!("<nc:rpc xmlns:nc='{BASE}' xmlns:u='urn:u' message-id=' 1&amp;\"&#10;' u:x='y' a='b'><nc:get><nc:filter/></nc:get></nc:rpc>"));
    for attribute in
        ["message-id=\" 1&amp;&quot;&#10;\"", "u:x=\"y\"", "a=\"b\"", "xmlns:u=\"urn:u\""]
    {
        assert!(reply.contains(attribute), "{attribute} in {reply}");
    }
}

#[test]
fn modules_are_given_as_they_are() {
    let mut client = Client::new("alice", &["1.1"]);
    for version in ["", "<version>2026-10-30</version>"] {
        let reply = client.rpc(&format!(
            "<get-schema xmlns='urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring'><identifier>ietf-pfc-queue-telemetry</identifier>{version}</get-schema>"
        ));
        let root = Element::read(&reply, &xml::Limits::default()).expect("well-formed");
        let text = schema().module("ietf-pfc-queue-telemetry").and_then(|module| module.text);
        assert_eq!(Some(&*root.children[0].text), text);
    }
}

#[test]
fn a_format_may_be_the_word_alone_or_a_name_of_the_module() {
    let of = "urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring";
    let mut client = Client::new("alice", &["1.1"]);
    // As ncclient sends it: every element has a prefix, the value has none.
    let mut ask = |format: &str, declared: &str| {
        client.rpc(&format!(
            "<n:get-schema xmlns:n='{of}' {declared}><n:identifier>ietf-interfaces</n:identifier>\
             <n:format>{format}</n:format></n:get-schema>"
        ))
    };
    assert!(ask("yang", "").contains("module ietf-interfaces"));
    assert!(ask("n:yang", "").contains("module ietf-interfaces"));
    assert!(ask("m:yang", &format!("xmlns:m='{of}'")).contains("module ietf-interfaces"));
    for (format, declared) in
        [("yin", ""), ("n:yin", ""), ("m:yang", ""), ("m:yang", "xmlns:m='urn:nothing'"), ("", "")]
    {
        assert_eq!(tag(&ask(format, declared)), "invalid-value", "{format}");
    }
    let twice = "<identifier>ietf-interfaces</identifier>".repeat(2);
    let reply = client.rpc(&format!("<get-schema xmlns='{of}'>{twice}</get-schema>"));
    assert_eq!(tag(&reply), "invalid-value");
}

#[test]
fn sessions_end_when_they_are_told_to() {
    let mut client = Client::new("alice", &["1.1"]);
    let kill = "<kill-session><session-id>9</session-id></kill-session>";
    assert!(client.rpc(kill).contains("<ok/>"));
    assert_eq!((client.killed.get(), client.then), (9, Then::Continue));
    assert!(client.rpc("<close-session/>").contains("<ok/>"));
    assert_eq!(client.then, Then::Close);
}

// QUE-sec.1
#[test]
fn who_has_no_rule_may_only_leave() {
    let mut client = Client::new("bob", &["1.1"]);
    assert_eq!(tag(&client.rpc("<get/>")), "access-denied");
    let kill = "<kill-session><session-id>9</session-id></kill-session>";
    assert_eq!(tag(&client.rpc(kill)), "access-denied");
    assert_eq!(client.killed.get(), 0);
    assert!(client.rpc("<close-session/>").contains("<ok/>"));
}

#[test]
fn the_state_of_sessions_and_the_library_are_valid() {
    let shown = Shown {
        id: 7,
        user: "alice".into(),
        host: "127.0.0.1".into(),
        login: "2026-10-30T00:00:00Z".into(),
        counts: Default::default(),
    };
    let statistics = Statistics { start: "2026-10-30T00:00:00Z".into(), ..Statistics::default() };
    let state = monitoring::node(schema(), &[shown], &statistics).expect("made");
    let location = |module: &Module| Some(format!("https://h/{}", module.name));
    let library = library::yang_library(schema(), location).expect("made");
    let before = library::modules_state(schema(), location).expect("made");
    for nodes in [vec![state], vec![library, before]] {
        schema().read(Encoding::Json, What::Datastore, &json::object(&nodes)).expect("valid JSON");
        let mut text = String::new();
        xml::write(&mut text, schema(), &nodes, None);
        schema().read(Encoding::Xml, What::Datastore, &text).expect("valid XML");
    }
}

/// What a session answers to a stream that comes in these pieces.
fn answers<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let (mut session, _) = Session::new(schema(), "alice", 4, Limits::default());
    let fixed = Fixed(open_policy());
    let access = fixed.0.access("alice");
    let world =
        World { datastore: &fixed, access: &access, operations: &NoOperations, kill: &|_| false };
    let mut found = Vec::new();
    for piece in pieces {
        session.take(piece);
        while let Some(request) = session.next_request().expect("a stream") {
            found.push(session.answer(&request, &world).0);
        }
    }
    found
}

// Hellos cross: a client need not wait for ours, and its first requests may come with its own. The
// framing changes in the middle of what came, wherever that is cut.
#[test]
fn a_client_that_does_not_wait_for_our_hello_is_answered_wherever_the_stream_is_cut() {
    let rpc = |id: u32| {
        format!(
            "<rpc xmlns='{BASE}' message-id='{id}'><get-config><source><startup/></source></get-config></rpc>"
        )
    };
    for (versions, framing) in
        [(&["1.0"][..], Framing::EndOfMessage), (&["1.0", "1.1"], Framing::Chunked)]
    {
        let mut stream = framed(Framing::EndOfMessage, &hello(versions));
        for id in 1..3 {
            stream.extend(framed(framing, &rpc(id)));
        }
        let whole = answers([&*stream]);
        assert_eq!(whole.len(), 2, "{framing:?}");
        for cut in 1..stream.len() {
            let (first, rest) = stream.split_at(cut);
            assert_eq!(answers([first, rest]), whole, "{framing:?} cut at {cut}");
        }
        assert_eq!(answers(stream.chunks(1)), whole, "{framing:?} octet by octet");
    }
}

// A reply has the attributes of its request, so what is no XML must not come through.
#[test]
fn names_and_characters_that_xml_does_not_have_are_refused_and_not_sent_back() {
    let mut client = Client::new("alice", &["1.1"]);
    for attributes in [
        "a<b='1'",
        "1='1'",
        "a&b='1'",
        "\u{1}='1'",
        "b='<'",
        "b='\u{1}'",
        "b='&#1;'",
        "a:='1'",
        "xmlns:='u'",
        "xmlns:p=''",
        "xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'",
        "xmlns:p='u' p:x:y='1'",
    ] {
        let reply =
            client.reply(&format!("<rpc xmlns='{BASE}' message-id='7' {attributes}><get/></rpc>"));
        assert_eq!(tag(&reply), "malformed-message", "{attributes}: {reply}");
        assert!(reply.starts_with(&format!("<rpc-reply xmlns=\"{BASE}\"><rpc-error>")), "{reply}");
    }
    for message in [
        "<1/>",
        "<a\"b/>",
        "<a>\u{1}</a>",
        "<a><![CDATA[\u{ffff}]]></a>",
        "<a>&#xfffe;</a>",
        "<a/><?xml version='1.0'?>",
    ] {
        assert_eq!(tag(&client.reply(message)), "malformed-message", "{message}");
    }
    let fine = "xmlns:\u{e9}='u' \u{e9}:\u{e9}-1.a='&#9;\u{e9}'";
    let reply = client.reply(&format!("<rpc xmlns='{BASE}' message-id='7' {fine}><get/></rpc>"));
    assert!(reply.contains("\u{e9}:\u{e9}-1.a=\"&#9;\u{e9}\"><data "), "{reply}");
}

#[test]
fn requests_that_are_too_much_have_a_short_answer() {
    let mut client = Client::new("alice", &["1.1"]);
    let long = "a".repeat(100_000);
    let many =
        |count: usize, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<String>();
    let laughs = format!(
        "<!DOCTYPE a [<!ENTITY b0 'ha'>{}]><rpc xmlns='{BASE}' message-id='1'><get>&b30;</get></rpc>",
        many(30, &|nth| format!("<!ENTITY b{} '&b{nth};&b{nth};'>", nth + 1))
    );
    let filter = |inner: &str| {
        format!("<rpc xmlns='{BASE}' message-id='1'><get><filter>{inner}</filter></get></rpc>")
    };
    for message in [
        laughs,
        filter("&b;"),
        filter(&format!("{}{}", "<a>".repeat(62), "</a>".repeat(62))),
        filter(&format!("<a {}/>", many(65, &|nth| format!("a{nth}='' ")))),
        filter(&format!("<a {}/>", many(50_000, &|nth| format!("a{nth}='' ")))),
        filter(&many(129, &|nth| format!("<a xmlns:a{nth}='u'>"))),
        filter(&format!("<a {}/>", many(129, &|nth| format!("xmlns:a{nth}='u' ")))),
        filter(&"<a/>".repeat(10_000)),
        filter(&format!("<a {}", "x='".repeat(100_000))),
        "<".repeat(100_000),
    ] {
        let reply = client.reply(&message);
        let start: String = message.chars().take(100).collect();
        assert_eq!(tag(&reply), "malformed-message", "{start}");
        assert!(reply.len() < 1000, "{} octets for {start}", reply.len());
    }
    // What is long and sound selects nothing.
    for inner in [
        format!("<{long}/>"),
        format!("<a xmlns='{long}'/>"),
        format!("<p:a xmlns:p='{long}'/>"),
        format!("<a>{long}</a>"),
        format!("<a {long}=''/>"),
        format!("{}{}", "<a>".repeat(61), "</a>".repeat(61)),
    ] {
        let reply = client.reply(&filter(&inner));
        assert!(reply.contains(&format!("<data xmlns=\"{BASE}\"/>")), "{}", &reply[..200]);
    }
    let huge = "9".repeat(100_000);
    let get_data = "<get-data xmlns='urn:ietf:params:xml:ns:yang:ietf-netconf-nmda' xmlns:ds='urn:ietf:params:xml:ns:yang:ietf-datastores'><datastore>ds:operational</datastore>";
    for operation in [
        format!("<kill-session><session-id>{huge}</session-id></kill-session>"),
        "<kill-session><session-id>4294967296</session-id></kill-session>".to_owned(),
        "<kill-session><session-id>-1</session-id></kill-session>".to_owned(),
        format!("{get_data}<max-depth>{huge}</max-depth></get-data>"),
        format!("{get_data}<max-depth>65536</max-depth></get-data>"),
        format!("{get_data}<max-depth>-1</max-depth></get-data>"),
    ] {
        assert_eq!(tag(&client.rpc(&operation)), "invalid-value");
    }
}
