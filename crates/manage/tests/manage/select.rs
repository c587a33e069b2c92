//! Selection of parts of a tree.

use manage::json;
use manage::schema::Definition;
use manage::select::{self, Defaults, Fields, Filter, Path, Which};
use manage::xml::{Element, Limits};

use super::scene::{schema, tree};

fn interfaces() -> &'static Definition {
    schema().top("ietf-interfaces", "interfaces").expect("there")
}

fn at(raw: &str) -> Option<String> {
    let path = Path::read(schema(), raw).expect(raw);
    path.find(&tree()).map(|node| json::object(std::slice::from_ref(node)))
}

#[test]
fn keys_are_split_before_they_are_decoded() {
    let queue = "ietf-interfaces:interfaces/interface=Ethernet1%2F1/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue";
    let all = at("ietf-interfaces:interfaces/interface=Ethernet1%2F1").expect("there");
    assert!(all.contains("\"Ethernet1/1\"") && !all.contains("Ethernet1/2"), "{all}");
    let odd = at(&format!("{queue}=a%2Cb%22%27%3C%26%252F%C3%A9/unknown-reason")).expect("there");
    assert_eq!(odd, r#"{"ietf-pfc-queue-telemetry:unknown-reason":"capture-gap"}"#);
    assert_eq!(at(&format!("{queue}=q4")), None);
    assert_eq!(at(&format!("{queue}=q3/unknown-reason")), None);
    let path = Path::read(schema(), &format!("{queue}=a%2cb")).expect("a path");
    assert_eq!(path.to_string(), format!("/{queue}=a%2Cb"));
    for bad in [
        "interfaces",
        "ietf-interfaces:interfaces/",
        "ietf-interfaces:interfaces/interface/name",
        "ietf-interfaces:interfaces/interface=a,b",
        "ietf-interfaces:interfaces/interface=%zz",
        "ietf-interfaces:interfaces/interface=%2",
        "ietf-interfaces:interfaces/interface=%ff",
        "ietf-interfaces:interfaces=a",
        "ietf-interfaces:interfaces/colour",
        "ietf-interfaces:interfaces//interface=a",
    ] {
        assert!(Path::read(schema(), bad).is_err(), "{bad}");
    }
}

#[test]
fn only_a_node_and_what_is_around_it_is_kept() {
    let path = Path::read(schema(), "ietf-interfaces:interfaces/interface=Ethernet1%2F2/type")
        .expect("a path");
    assert_eq!(
        json::object(&path.only(tree())),
        r#"{"ietf-interfaces:interfaces":{"interface":[{"name":"Ethernet1/2","type":"iana-if-type:ethernetCsmacd"}]}}"#
    );
    let key = Path::read(schema(), "ietf-interfaces:interfaces/interface=Ethernet1%2F2/name")
        .expect("a path");
    assert_eq!(
        json::object(&key.only(tree())),
        r#"{"ietf-interfaces:interfaces":{"interface":[{"name":"Ethernet1/2"}]}}"#
    );
}

#[test]
fn fields_nest() {
    let fields = |raw: &str| Fields::read(schema(), Some(interfaces()), raw);
    let chosen = |raw: &str| {
        let mut tree = tree();
        json::object(&[fields(raw).expect(raw).of(tree.remove(0))])
    };
    let telemetry = "ietf-pfc-queue-telemetry:pfc-queue-telemetry";
    let found = chosen(&format!("interface(oper-status;{telemetry}/queue(backlog-ns;quality))"));
    assert!(found.contains(r#"{"name":"Ethernet1/2","oper-status":"up","ietf-pfc-queue-telemetry:pfc-queue-telemetry":{"queue":[{"queue-id":"q3","quality":"sampled","backlog-ns":"64000000"}]}}"#), "{found}");
    assert!(!found.contains("epoch-id"), "{found}");
    assert_eq!(chosen("interface/name"), chosen("interface%2Fname"));
    assert_eq!(chosen("interface;interface/name"), json::object(&tree()));
    let deep = "interface(".repeat(20);
    for bad in [
        "",
        "colour",
        "interface(name",
        "interface)",
        "interface;",
        "interface(name))",
        "interface(",
        &deep,
    ] {
        assert!(fields(bad).is_err(), "{bad}");
    }
}

#[test]
fn depth_counts_from_the_node_itself() {
    let cut = |levels| json::object(&select::depth(tree(), levels));
    assert_eq!(cut(1), r#"{"ietf-interfaces:interfaces":{}}"#);
    assert_eq!(
        cut(2),
        r#"{"ietf-interfaces:interfaces":{"interface":[{"name":"Ethernet1/1"},{"name":"Ethernet1/2"}]}}"#
    );
    assert!(
        cut(3).contains(r#""pfc-queue-telemetry:pfc-queue-telemetry":{}"#)
            || cut(3).contains("telemetry\":{}"),
        "{}",
        cut(3)
    );
    assert_eq!(cut(9), json::object(&tree()));
}

#[test]
fn configuration_and_state_are_told_apart() {
    let config = json::object(&select::which(tree(), Which::Config));
    assert!(config.contains("\"type\"") && !config.contains("oper-status"), "{config}");
    let state = json::object(&select::which(tree(), Which::Nonconfig));
    assert!(!state.contains("\"type\"") && state.contains("oper-status"), "{state}");
    assert!(state.contains("{\"name\":\"Ethernet1/1\",\"oper-status\""), "{state}");
    assert_eq!(json::object(&select::which(tree(), Which::All)), json::object(&tree()));
}

#[test]
fn defaults_are_shown_where_they_are_asked_for() {
    let all = select::defaults(schema(), tree(), Defaults::All).expect("valid");
    let shown = json::object(&all);
    assert!(shown.contains("\"enabled\":true"), "{shown}");
    let back = select::defaults(schema(), all, Defaults::Trim).expect("valid");
    assert_eq!(json::object(&back), json::object(&tree()));
    assert_eq!(Defaults::read("report-all-tagged"), None);
}

fn filtered(filter: &str) -> String {
    let text = format!(
        "<filter xmlns:if='urn:ietf:params:xml:ns:yang:ietf-interfaces' xmlns:t='urn:ietf:params:xml:ns:yang:iana-if-type' xmlns:q='urn:ietf:params:xml:ns:yang:ietf-pfc-queue-telemetry'>{filter}</filter>"
    );
    let filter = Element::read(&text, &Limits::default()).expect("well-formed");
    json::object(&select::subtree(schema(), tree(), &filter, None))
}

#[test]
fn a_subtree_selects_matches_and_contains() {
    let named = |name: &str| {
        format!(
            "<if:interfaces><if:interface><if:name>{name}</if:name></if:interface></if:interfaces>"
        )
    };
    let one = filtered(&named("Ethernet1/2"));
    assert!(
        one.contains("Ethernet1/2") && one.contains("oper-status") && !one.contains("Ethernet1/1"),
        "{one}"
    );
    assert_eq!(filtered(&named("none")), "{}");
    assert_eq!(filtered("<if:interfaces/>"), json::object(&tree()));
    assert_eq!(filtered("<interfaces/>"), json::object(&tree()), "no namespace is any");
    assert_eq!(filtered(""), "{}");
    assert_eq!(filtered("<if:colours/>"), "{}");
    assert_eq!(filtered("<t:interfaces/>"), "{}");
    assert_eq!(filtered("<if:interfaces t:x='1'/>"), "{}");
    let names = filtered("<if:interfaces><if:interface><if:type/></if:interface></if:interfaces>");
    assert_eq!(names.matches("\"type\"").count(), 2);
    assert!(names.contains("\"name\"") && !names.contains("oper-status"), "{names}");
}

// RFC 6241, section 6.2.2
#[test]
fn an_element_with_an_attribute_selects_nothing_since_no_node_has_any() {
    let (eth, all) = ("<if:name>Ethernet1/1</if:name>", json::object(&tree()));
    for nothing in [
        "<if:interfaces x='1'/>".to_owned(),
        "<if:interfaces><if:interface name='Ethernet1/1'/></if:interfaces>".to_owned(),
        "<if:interfaces><if:interface><if:type x='1'/></if:interface></if:interfaces>".to_owned(),
        format!("<if:interfaces><if:interface x=''>{eth}</if:interface></if:interfaces>"),
        // A match that has to hold beside the attribute does not.
        "<if:interfaces><if:interface><if:name x='1'>Ethernet1/1</if:name></if:interface>\
         </if:interfaces>"
            .to_owned(),
    ] {
        assert_eq!(filtered(&nothing), "{}", "{nothing}");
    }
    // Declarations are none, and what others select beside it stays.
    assert_eq!(filtered("<if:interfaces xmlns:x='urn:x'/>"), all);
    let beside = filtered(&format!(
        "<if:interfaces><if:interface x='1'/><if:interface>{eth}</if:interface></if:interfaces>"
    ));
    assert!(beside.contains("Ethernet1/1") && !beside.contains("Ethernet1/2"), "{beside}");
}

// A subscription to nothing, of which would be said that it selects something.
#[test]
fn a_filter_that_is_kept_and_asks_for_attributes_is_refused() {
    let read = |text: &str| {
        Filter::subtree_in_xml(Element::read(text, &Limits::default()).expect("well-formed"))
    };
    // Its own are those of whoever carries it.
    let own = "<f xmlns='urn:ietf:params:xml:ns:yang:ietf-interfaces' x='1'><interfaces/></f>";
    assert!(matches!(read(own), Ok(Filter::Subtree(_))));
    let refused = read("<f><a/><b><c name='e'/></b></f>").expect_err("an attribute");
    assert_eq!(
        refused.0,
        "attribute \"name\" of \"c\" in a filter, expected none: no node here has any"
    );
}

// RFC 7952: what in JSON stands for attributes.
#[test]
fn a_filter_in_json_that_asks_for_metadata_is_refused() {
    for bad in [
        serde_json::json!({"ietf-interfaces:interfaces": {"interface": [{"@": {"x:y": 1}}]}}),
        serde_json::json!({
            "ietf-interfaces:interfaces": {},
            "@ietf-interfaces:interfaces": {"x:y": 1},
        }),
    ] {
        let refused = Filter::subtree_in_json(schema(), &bad).expect_err("metadata");
        assert!(refused.0.contains("no node here has metadata"), "{refused}");
    }
}

#[test]
fn elements_for_the_same_node_add_up() {
    let both = filtered(
        "<if:interfaces><if:interface><if:name>Ethernet1/1</if:name><if:type/></if:interface></if:interfaces>\
         <if:interfaces><if:interface><if:name>Ethernet1/2</if:name></if:interface></if:interfaces>",
    );
    assert!(
        both.contains(r#"{"name":"Ethernet1/1","type":"iana-if-type:ethernetCsmacd"}"#),
        "{both}"
    );
    assert!(
        both.contains(r#""name":"Ethernet1/2","type":"iana-if-type:ethernetCsmacd","oper-status""#),
        "{both}"
    );
}

#[test]
fn values_are_compared_as_what_they_mean() {
    let of_type = |value: &str| {
        filtered(&format!(
            "<if:interfaces><if:interface><if:type>{value}</if:type><if:name/></if:interface></if:interfaces>"
        ))
    };
    assert!(of_type("t:ethernetCsmacd").contains("Ethernet1/1"));
    assert!(of_type(" t:ethernetCsmacd\n").contains("Ethernet1/1"));
    assert_eq!(of_type("if:ethernetCsmacd"), "{}");
    let inner = filtered(
        "<if:interfaces><if:interface><q:pfc-queue-telemetry><q:queue><q:quality>unknown</q:quality><q:epoch-id/></q:queue></q:pfc-queue-telemetry></if:interface></if:interfaces>",
    );
    assert_eq!(inner.matches("epoch-id").count(), 1, "{inner}");
    assert!(!inner.contains("Ethernet1/2"), "{inner}");
}

// A filter is shown among the subscriptions, in XML too: a name must not be more than a name there.
#[test]
fn names_in_a_filter_in_json_are_names() {
    let read = |name: &str| Filter::subtree_in_json(schema(), &serde_json::json!({ name: {} }));
    for bad in ["a:b><c/><b", "a:b c", "a:", ":b", "a:1", "a:b:c", "a\"b:c", "a:\u{0}", "a:b]"] {
        assert!(read(bad).is_err(), "{bad:?}");
        let inner = serde_json::json!({ "a:a": [{ bad: 1 }] });
        assert!(Filter::subtree_in_json(schema(), &inner).is_err(), "{bad:?} within");
    }
    assert!(read("nothing:here").is_ok());
}

#[test]
fn a_filter_in_json_is_the_same() {
    let value =
        serde_json::json!({"ietf-interfaces:interfaces": {"interface": [{"name": "Ethernet1/2"}]}});
    let filter = Filter::subtree_in_json(schema(), &value).expect("a filter");
    let found = json::object(&filter.of(schema(), tree(), None).expect("applied"));
    assert!(found.contains("Ethernet1/2") && !found.contains("Ethernet1/1"), "{found}");
    for bad in [serde_json::json!([]), serde_json::json!({"interfaces": {}})] {
        assert!(Filter::subtree_in_json(schema(), &bad).is_err(), "{bad}");
    }
    let unknown = serde_json::json!({"nothing:here": {}});
    let filter = Filter::subtree_in_json(schema(), &unknown).expect("a filter");
    assert_eq!(json::object(&filter.of(schema(), tree(), None).expect("applied")), "{}");
}

#[test]
fn prefixes_of_xml_become_module_names() {
    let text = "<a xmlns:x='urn:ietf:params:xml:ns:yang:ietf-interfaces' xmlns:z='urn:z'><b xmlns:x='urn:ietf:params:xml:ns:yang:ietf-pfc-queue-telemetry'/></a>";
    let outer = Element::read(text, &Limits::default()).expect("well-formed");
    let filter =
        |expression: &str, around: &[&Element]| Filter::xpath_in_xml(schema(), expression, around);
    assert_eq!(
        filter("/x:interfaces/x:interface[x:name='x:y']", &[&outer]),
        Ok(Filter::Xpath(
            "/ietf-interfaces:interfaces/ietf-interfaces:interface[ietf-interfaces:name='x:y']"
                .into()
        ))
    );
    assert_eq!(
        filter("//x:queue", &[&outer, &outer.children[0]]),
        Ok(Filter::Xpath("//ietf-pfc-queue-telemetry:queue".into()))
    );
    assert_eq!(filter("/z:a/child::*", &[&outer]), Ok(Filter::Nothing));
    assert!(filter("/y:a", &[&outer]).is_err());
}
