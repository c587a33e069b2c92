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

/// For each rule why it does nothing for alice, in a line.
fn idle(rules: Vec<Rule>) -> Vec<String> {
    let policy = policy(rules);
    let list = &policy.lists[0];
    let of = |rule| {
        let found = policy.idle(schema(), list, rule, ["alice", "bob"]);
        assert!(found.iter().all(|(user, _)| *user == "alice"), "{found:?}");
        found.first().map_or_else(String::new, |(_, idle)| idle.to_string())
    };
    list.rules.iter().map(of).collect()
}

const QUEUE: &str = "/ietf-interfaces:interfaces/interface[name='Ethernet1/2']/\
                     ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue";

// QUE-sec.1
#[test]
fn a_rule_that_permits_what_nobody_reaches_is_told() {
    let one = || rule("queue", data(&format!("{QUEUE}[queue-id='3']")), Action::Permit);
    assert_eq!(
        idle(vec![one()]),
        ["permits nothing: /ietf-interfaces:interfaces above it may not be read"]
    );
    // Each of these is needed, and together they do something.
    let port = "/ietf-interfaces:interfaces/interface";
    let all = || {
        vec![
            one(),
            rule("other queues", data(QUEUE), Action::Deny),
            rule("port", data(&format!("{port}[name='Ethernet1/2']")), Action::Permit),
            rule("other ports", data(port), Action::Deny),
            rule("around", data("/ietf-interfaces:interfaces"), Action::Permit),
        ]
    };
    assert_eq!(idle(all()), [""; 5]);
    let without = |nth: usize| {
        let mut rules = all();
        rules.remove(nth);
        idle(rules)
    };
    assert_eq!(
        without(4)[0],
        "permits nothing: /ietf-interfaces:interfaces above it may not be read"
    );
    assert_eq!(
        without(2)[0],
        "permits nothing: /ietf-interfaces:interfaces/interface[name='Ethernet1/2'] above it may \
         not be read"
    );
    // A key that is denied hides its entry.
    let mut rules = all();
    rules.insert(0, rule("name", data(&format!("{port}/name")), Action::Deny));
    assert_eq!(
        idle(rules)[1],
        "permits nothing: /ietf-interfaces:interfaces/interface[name='Ethernet1/2']/name above it \
         may not be read"
    );
    // By module: its nodes stand in those of another.
    let of = |module: &str| Rule {
        module: Some(module.into()),
        ..rule("module", Subject::All, Action::Permit)
    };
    assert_eq!(
        idle(vec![of("ietf-pfc-queue-telemetry")]),
        ["permits nothing: /ietf-interfaces:interfaces above it may not be read"]
    );
    assert_eq!(idle(vec![of("ietf-pfc-queue-telemetry"), of("ietf-interfaces")]), [""; 2]);
}

// QUE-sec.1
#[test]
fn a_rule_behind_one_that_has_decided_already_is_told() {
    let all = |action| rule("all", Subject::All, action);
    let port =
        || rule("port", data("/ietf-interfaces:interfaces/interface[name='a']"), Action::Deny);
    assert_eq!(
        idle(vec![all(Action::Permit), port()])[1],
        "denies nothing to be read: all before it permits that"
    );
    assert_eq!(idle(vec![port(), all(Action::Permit)]), [""; 2]);
    // What a rule for one entry decides leaves the others.
    let other =
        rule("one", data("/ietf-interfaces:interfaces/interface[name='b']"), Action::Permit);
    let ports = rule("ports", data("/ietf-interfaces:interfaces/interface"), Action::Deny);
    assert_eq!(idle(vec![other, ports, all(Action::Permit)]), [""; 3]);
    // One of its module leaves what others have added to it.
    let module =
        Rule { module: Some("ietf-interfaces".into()), ..rule("m", Subject::All, Action::Permit) };
    assert_eq!(idle(vec![module, port()])[1], "");
    let denied = rule("denied", data("/ietf-interfaces:interfaces"), Action::Permit);
    assert_eq!(
        idle(vec![all(Action::Deny), denied])[1],
        "permits nothing: a rule before it denies reading of /ietf-interfaces:interfaces"
    );
}

// QUE-sec.1
#[test]
fn what_ends_what_is_anothers_is_told_where_it_is_not_named() {
    let of = |module: &str, subject: Subject| {
        Rule { module: Some(module.into()), ..rule("r", subject, Action::Permit) }
            .ends_others(schema())
    };
    assert_eq!(of("ietf-subscribed-notifications", Subject::All), ["kill-subscription"]);
    assert_eq!(of("ietf-netconf", Subject::Rpc(None)), ["kill-session"]);
    let named = Subject::Rpc(Some("kill-subscription".into()));
    assert!(of("ietf-subscribed-notifications", named).is_empty());
    let other = Subject::Rpc(Some("establish-subscription".into()));
    assert!(of("ietf-subscribed-notifications", other).is_empty());
    assert_eq!(rule("r", Subject::All, Action::Permit).ends_others(schema()).len(), 2);
    assert!(rule("r", Subject::All, Action::Deny).ends_others(schema()).is_empty());
}
