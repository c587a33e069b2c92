//! Who reads and calls what.

use manage::access::{Access, Action, Denied, Group, Pattern, Policy, Rule, RuleList, Subject};
use manage::json;
use manage::read::{Encoding, What};
use manage::schema::find;

use super::scene::{schema, tree};

fn rule(name: &str, subject: Subject, action: Action) -> Rule {
    Rule { name: name.into(), module: None, subject, read: true, exec: true, action }
}

fn data(path: &str) -> Subject {
    Subject::Data(Pattern::read(schema(), path).expect(path))
}

fn policy(rules: Vec<Rule>) -> Policy {
    Policy {
        groups: vec![Group { name: "tenants".into(), users: vec!["alice".into()] }],
        lists: vec![RuleList { name: "them".into(), groups: vec!["tenants".into()], rules }],
        ..Policy::default()
    }
}

fn read(access: &Access<'_>) -> String {
    json::object(&access.readable(tree()))
}

// QUE-sec.1
#[test]
fn who_has_no_rule_reads_nothing() {
    let everything = policy(vec![rule("all", Subject::All, Action::Permit)]);
    assert_eq!(read(&everything.access("bob")), "{}");
    assert_eq!(read(&everything.access("alice")), json::object(&tree()));
    assert_eq!(read(&Policy::default().access("alice")), "{}");
}

#[test]
fn the_first_rule_about_a_node_decides() {
    let one_port = policy(vec![
        rule(
            "own",
            data("/ietf-interfaces:interfaces/interface[name='Ethernet1/2']"),
            Action::Permit,
        ),
        rule("others", data("/ietf-interfaces:interfaces/interface"), Action::Deny),
        rule("around", data("/ietf-interfaces:interfaces"), Action::Permit),
    ]);
    let seen = read(&one_port.access("alice"));
    assert!(seen.contains("Ethernet1/2") && !seen.contains("Ethernet1/1"), "{seen}");
}

#[test]
fn a_node_whose_parent_may_not_be_read_is_not_reached() {
    let inner = policy(vec![rule(
        "leaf",
        data("/ietf-interfaces:interfaces/interface/name"),
        Action::Permit,
    )]);
    assert_eq!(read(&inner.access("alice")), "{}");
}

#[test]
fn an_entry_whose_key_may_not_be_read_is_not_there() {
    let queue = "/ietf-interfaces:interfaces/interface/\
                 ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue";
    for (leaf, queues) in [("queue-id", 0), ("interval-id", 3)] {
        let nameless = policy(vec![
            rule("key", data(&format!("{queue}/{leaf}")), Action::Deny),
            rule("rest", Subject::All, Action::Permit),
        ]);
        let seen = read(&nameless.access("alice"));
        assert_eq!(seen.matches("\"epoch-id\"").count(), queues, "{seen}");
        assert!(seen.contains("Ethernet1/1") && !seen.contains(leaf), "{seen}");
    }
}

#[test]
fn a_rule_of_a_module_is_about_its_own_nodes() {
    let mut only = rule("plain", Subject::All, Action::Permit);
    only.module = Some("ietf-interfaces".into());
    let seen = read(&policy(vec![only]).access("alice"));
    assert!(seen.contains("Ethernet1/1") && !seen.contains("queue"), "{seen}");
}

#[test]
fn calling_needs_a_rule_but_for_leaving() {
    let operation =
        |name: &str| schema().rpcs().iter().find(|rpc| &*rpc.name == name).expect("an operation");
    let open = Policy { exec_default: Action::Permit, ..Policy::default() };
    for (policy, name, may) in [
        (&Policy::default(), "get", false),
        (&Policy::default(), "close-session", true),
        (&open, "get", true),
        (&open, "kill-session", false),
        (&open, "kill-subscription", false),
    ] {
        assert_eq!(policy.access("alice").may_call(operation(name)), may, "{name}");
    }
    let one = policy(vec![rule("kill", Subject::Rpc(Some("kill-session".into())), Action::Permit)]);
    assert!(one.access("alice").may_call(operation("kill-session")));
    assert!(!one.access("alice").may_call(operation("get")));
}

#[test]
fn the_policy_is_data_that_only_a_rule_opens() {
    let rules = policy(vec![rule("all", Subject::All, Action::Permit)]);
    let node = rules.node(schema(), Denied::default()).expect("made");
    schema()
        .read(Encoding::Json, What::Datastore, &json::object(std::slice::from_ref(&node)))
        .expect("valid");
    let open = Policy { read_default: Action::Permit, ..Policy::default() };
    assert!(open.access("bob").readable(vec![node.clone()]).is_empty());
    assert_eq!(rules.access("alice").readable(vec![node]).len(), 1);
}

#[test]
fn operations_that_are_denied_by_default_exist() {
    for (module, name) in
        [("ietf-netconf", "kill-session"), ("ietf-subscribed-notifications", "kill-subscription")]
    {
        assert!(
            find(schema().rpcs(), module, name).is_some_and(|found| found.default_deny),
            "{name}"
        );
    }
}

#[test]
fn a_path_that_the_modules_do_not_have_is_refused() {
    for bad in [
        "",
        "interfaces",
        "/interfaces",
        "/ietf-interfaces:interfaces/colour",
        "/ietf-interfaces:interfaces/interface[colour='a']",
        "/ietf-interfaces:interfaces/interface[name=a]",
        "/ietf-interfaces:interfaces/interface[name='a'",
        "/ietf-interfaces:interfaces//interface",
    ] {
        assert!(Pattern::read(schema(), bad).is_err(), "{bad:?}");
    }
}
