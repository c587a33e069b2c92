//! What is written is what libyang takes, and means the same in both encodings.

use manage::json;
use manage::operational;
use manage::read::{Encoding, What};
use manage::xml::{self, Element, Limits};
use observe::queue::Reason;
use observe::queue::row::{Known, Measurement, Method, Row};

use super::scene::{interface, row, schema, tree, unknown};

fn both(text_of: &[manage::tree::Node]) -> (String, String) {
    let mut out = String::new();
    xml::write(&mut out, schema(), text_of, None);
    (json::object(text_of), out)
}

// QUE-yang.1
#[test]
fn both_encodings_are_valid_and_say_the_same() {
    let tree = tree();
    let (json, xml) = both(&tree);
    let of_json = schema().read(Encoding::Json, What::Datastore, &json).expect("valid JSON");
    let of_xml = schema().read(Encoding::Xml, What::Datastore, &xml).expect("valid XML");
    assert_eq!(json::object(&of_json), json::object(&of_xml));
    let again = json::object(&of_json);
    for text in
        ["\"a,b\\\"'<&%2F\u{e9}\"", "\"capture-gap\"", "\"duration-ns\":\"100000000\"", "[3,4]"]
    {
        assert!(json.contains(text), "{text} in {json}");
        assert!(again.contains(text), "{text} in {again}");
    }
}

#[test]
fn an_unknown_interval_has_no_durations() {
    let rows = [std::sync::Arc::new(unknown("e", "q", 1, Reason::Unavailable))];
    let tree = [operational::interfaces(schema(), &[interface("e")], &rows).expect("made")];
    let (json, _) = both(&tree);
    assert!(json.contains("\"unknown-reason\":\"unavailable\""), "{json}");
    for leaf in ["backlog-ns", "absolute-error-ns", "sample-period-ns"] {
        assert!(!json.contains(leaf), "{json}");
    }
}

// QUE-yang.1: each constraint of the module, as libyang sees it.
#[test]
fn libyang_refuses_what_the_module_forbids() {
    let known = |change: fn(&mut Known)| {
        let mut known = Known {
            method: Method::Samples { period_ns: 5 },
            gated_ns: 10,
            backlog_ns: 20,
            error_ns: 3,
        };
        change(&mut known);
        Row { duration_ns: 100, measurement: Measurement::Known(known), ..row("e", "q", 1) }
    };
    let bad = [
        known(|known| known.gated_ns = 21),
        known(|known| known.backlog_ns = 101),
        known(|known| known.error_ns = 101),
        known(|known| known.method = Method::Samples { period_ns: 101 }),
        known(|known| known.method = Method::Samples { period_ns: 0 }),
        Row { interval: 0, ..known(|_| ()) },
        Row { duration_ns: 0, ..unknown("e", "q", 1, Reason::Other) },
        Row { start_ns: (1 << 53) - 100, ..known(|_| ()) },
        Row { start_ns: 1 << 53, ..known(|_| ()) },
        row("e", "", 1),
    ];
    let validated = |row: Row| {
        let tree =
            operational::interfaces(schema(), &[interface("e")], &[row.into()]).expect("made");
        schema().read(Encoding::Json, What::Datastore, &json::object(&[tree]))
    };
    assert!(validated(known(|_| ())).is_ok());
    for row in bad {
        assert!(validated(row.clone()).is_err(), "{row:?}");
    }
}

#[test]
fn what_the_modules_do_not_have_is_refused() {
    for text in [
        r#"{"ietf-interfaces:interfaces":{"interface":[{"name":"e","type":"iana-if-type:ethernetCsmacd","colour":"red"}]}}"#,
        r#"{"nothing:here":{}}"#,
        "{",
        "\u{0}",
    ] {
        let found = schema().read(Encoding::Json, What::Data, text);
        assert!(found.is_err(), "{text:?}: {found:?}");
    }
}

#[test]
fn elements_are_read_with_their_namespaces_and_bounds() {
    let text = r#"<?xml version="1.0"?><a xmlns="urn:a" xmlns:b="urn:b" x="1&amp;2"><b:c b:y='2'> t&lt;<![CDATA[<]]> </b:c><d xmlns=""/></a>"#;
    let root = Element::read(text, &Limits::default()).expect("well-formed");
    assert!(root.is("urn:a", "a"));
    assert_eq!(root.attribute("x"), Some("1&2"));
    let inner = root.child("urn:b", "c").expect("there");
    assert_eq!(inner.trimmed(), "t<<");
    assert_eq!(root.children[1].namespace.as_deref().unwrap_or(""), "");
    let limits = Limits { depth_max: 2, elements_max: 3, attributes_max: 3, prefixes_max: 3 };
    assert!(Element::read(text, &limits).is_ok());
    for tight in [
        Limits { depth_max: 1, ..limits },
        Limits { elements_max: 2, ..limits },
        Limits { attributes_max: 2, ..limits },
        Limits { prefixes_max: 1, ..limits },
    ] {
        assert!(Element::read(text, &tight).is_err(), "{tight:?}");
    }
}

#[test]
fn xml_that_could_do_more_than_say_something_is_refused() {
    for text in [
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "<a>&b;</a>",
        "<a><?php x ?></a>",
        "<a></b>",
        "<a><b></a>",
        "<a/><a/>",
        "<b:a/>",
        "<a x='1' x='2'/>",
        "text",
        "<a/>text",
        "",
    ] {
        let found = Element::read(text, &Limits::default());
        assert!(found.is_err(), "{text:?}: {found:?}");
    }
}
