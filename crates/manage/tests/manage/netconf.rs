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
