//! Selection by XPath.

use manage::json;
use manage::select::{depth, xpath};

use super::scene::{schema, tree};

fn selected(expression: &str) -> String {
    json::object(&xpath(schema(), &tree(), expression, None).expect(expression))
}

#[test]
fn a_node_comes_with_its_ancestors_and_their_keys_and_nothing_else() {
    let found = selected(
        "/ietf-interfaces:interfaces/interface[name='Ethernet1/2']/ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue/backlog-ns",
    );
    assert_eq!(
        found,
        r#"{"ietf-interfaces:interfaces":{"interface":[{"name":"Ethernet1/2","ietf-pfc-queue-telemetry:pfc-queue-telemetry":{"queue":[{"queue-id":"q3","backlog-ns":"64000000"}]}}]}}"#
    );
}

#[test]
fn a_container_comes_with_all_that_is_in_it() {
    assert_eq!(selected("/ietf-interfaces:interfaces"), json::object(&tree()));
}

#[test]
fn what_is_not_there_selects_nothing() {
    assert_eq!(selected("/ietf-interfaces:interfaces/interface[name='none']"), "{}");
}

#[test]
fn what_could_take_long_or_selects_no_nodes_is_refused() {
    let long = format!("/ietf-interfaces:interfaces{}", " ".repeat(1000));
    for bad in [
        "//*//*",
        "//ietf-interfaces:interface[//ietf-interfaces:name]",
        "/ietf-interfaces:interfaces/interface[/ietf-interfaces:interfaces]",
        "//*[. and /ietf-interfaces:interfaces/*/*/*/*]",
        "//*[. or /ietf-interfaces:interfaces]",
        "//*[2 * /ietf-interfaces:interfaces/*/*/*/*]",
        "//*[2 div /ietf-interfaces:interfaces]",
        "//*[2 mod /ietf-interfaces:interfaces]",
        "//*[* * /ietf-interfaces:interfaces]",
        "//*[and and /ietf-interfaces:interfaces]",
        "/ietf-interfaces:interfaces/interface[type[name]]",
        "/ietf-interfaces:interfaces/interface[../interface]",
        "/ietf-interfaces:interfaces/interface[parent::*]",
        "/ietf-interfaces:interfaces/interface[.//name]",
        "/ietf-interfaces:interfaces[*/*/* = */*/*]",
        "/ietf-interfaces:interfaces/interface[re-match(name, '(a+)+b')]",
        "/ietf-interfaces:interfaces/interface[ancestor :: *]",
        "descendant::*/ancestor::*",
        "/ietf-interfaces:interfaces/interface/preceding-sibling::*",
        "1 + 1",
        "/ietf-interfaces:interfaces[",
        "/ietf-interfaces:interfaces/interface[name='a]",
        "\u{0}",
        &long,
    ] {
        assert!(xpath(schema(), &tree(), bad, None).is_err(), "{bad}");
    }
    for good in [
        "//ietf-interfaces:name[.='[//a[/b]]']",
        "/ietf-interfaces:interfaces/interface[name = 'a' or 3 < count(*)]/name",
        "/ietf-interfaces:interfaces/interface/../interface[./name]",
        "/*/*[starts-with(name, \"Ethernet1/2\")] | /ietf-interfaces:*",
        "/child::ietf-interfaces:interfaces/descendant::*",
        "/ietf-interfaces:interfaces/interface[*/* and 2 * (statistics)/* > 1]",
    ] {
        let found = xpath(schema(), &tree(), good, None);
        assert!(found.is_ok(), "{good}: {found:?}");
    }
}

#[test]
fn levels_are_those_of_depth_with_the_keys_of_lists() {
    for levels in 1..=6 {
        let found = xpath(schema(), &tree(), "/ietf-interfaces:interfaces", Some(levels));
        let expected = json::object(&depth(tree(), levels));
        assert_eq!(json::object(&found.expect("nodes")), expected, "{levels}");
    }
    let entries = xpath(schema(), &tree(), "/ietf-interfaces:interfaces/interface", Some(1));
    assert_eq!(
        json::object(&entries.expect("nodes")),
        r#"{"ietf-interfaces:interfaces":{"interface":[{"name":"Ethernet1/1"},{"name":"Ethernet1/2"}]}}"#
    );
}

// An expression without `/` in front begins at the root all the same.
#[test]
fn the_context_is_the_root() {
    for (relative, absolute) in [
        ("ietf-interfaces:interfaces", "/ietf-interfaces:interfaces"),
        ("*", "/*"),
        ("ietf-interfaces:interfaces/interface/name", "/ietf-interfaces:interfaces/interface/name"),
        ("child::*/child::*", "/*/*"),
        (
            "ietf-interfaces:interfaces/interface[name = 'Ethernet1/2'] | ietf-interfaces:none",
            "/ietf-interfaces:interfaces/interface[name = 'Ethernet1/2']",
        ),
        ("(ietf-interfaces:interfaces)/interface[type][1]/type", "/*/interface[type][1]/type"),
        ("ietf-interfaces:interfaces/*[name and 2 * 1]", "/*/*[name and 2 * 1]"),
    ] {
        assert_eq!(selected(relative), selected(absolute), "{relative}");
        assert_ne!(selected(relative), "{}", "{relative}");
    }
    // In the middle of a path nothing is the root.
    assert_eq!(selected("interface"), "{}");
}

#[test]
fn entries_of_lists_at_the_last_level_have_their_keys() {
    for levels in 1..5 {
        let found = xpath(schema(), &tree(), "/ietf-interfaces:interfaces", Some(levels));
        let found = found.expect("selected");
        let expected = json::object(&manage::select::depth(tree(), levels));
        assert_eq!(json::object(&found), expected, "{levels} levels");
    }
}
