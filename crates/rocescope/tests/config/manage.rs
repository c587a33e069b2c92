//! `[manage]` of a device file: who may read its queue telemetry, and where.

use ::manage::access::{Action, Denied, Subject};
use ::manage::schema::Schema;
use rocescope::config::{ManageLimits, Proof};

use super::{device, errors, range};

const RESTCONF: &str = "[manage.restconf]\nlisten = \"127.0.0.1:8443\"\ncertificate = \"s.pem\"\n\
                        key = \"s.key\"\n";
const TOKEN: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn with(text: &str) -> String {
    format!(
        "[observation]\ndomain = 1\n{RESTCONF}[[manage.login]]\nuser = \"bob\"\n\
         token_sha256 = \"{TOKEN}\"\n{text}"
    )
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let errors = errors(text);
    assert!(errors.iter().any(|error| error.contains(expected)), "{expected}\n{errors:?}\n{text}");
}

// QUE-sec.1
#[test]
fn what_a_file_says_is_who_may_read() {
    let read = device(&with(
        "[[manage.login]]\nuser = \"alice\"\nssh_keys = \"alice.pub\"\n\
         [manage.netconf]\nlisten = \"127.0.0.1:8830\"\nhost_key = \"host\"\n\
         [[manage.group]]\nname = \"g\"\nusers = [\"alice\", \"bob\"]\n\
         [[manage.rules]]\nname = \"r\"\ngroups = [\"g\"]\nrule = [\n\
         { path = \"/ietf-interfaces:interfaces\", access = \"read\", action = \"deny\" },\n\
         { module = \"ietf-interfaces\", action = \"permit\" }]\n",
    ));
    let manage = read.manage.expect("a section");
    assert_eq!(manage.limits, ManageLimits::default());
    assert!(matches!(manage.logins[0].proof, Proof::Https(_)));
    assert!(matches!(manage.logins[1].proof, Proof::SshKeys(_)));
    assert_eq!(manage.files().count(), 4);
    let policy = &manage.policy;
    assert_eq!((policy.read_default, policy.exec_default), (Action::Deny, Action::Deny));
    let [deny, permit] = &policy.lists[0].rules[..] else { panic!("{policy:?}") };
    assert!(matches!(deny.subject, Subject::Data(_)) && deny.read && !deny.exec);
    assert_eq!((&*deny.name, &*permit.name), ("rule-1", "rule-2"));
    assert!(matches!(permit.subject, Subject::All) && permit.read && permit.exec);
    assert!(device("[observation]\ndomain = 1\n").manage.is_none());
}

// QUE-sec.1
#[test]
fn nothing_is_served_without_tls_or_to_nobody() {
    let login = format!("[[manage.login]]\nuser = \"bob\"\ntoken_sha256 = \"{TOKEN}\"\n");
    let plain = "[observation]\n[manage.restconf]\nlisten = \"127.0.0.1:8443\"\n";
    refused(&format!("{plain}{login}"), "nothing is served without TLS");
    refused(&format!("[observation]\n{RESTCONF}"), "at least one [[manage.login]] with name");
    refused(
        &with("[[manage.login]]\nuser = \"a\"\nname = \"a.example\"\n"),
        "manage.restconf.authority: missing",
    );
    refused(
        &with("[manage.netconf]\nlisten = \"127.0.0.1:830\"\nhost_key = \"h\"\n"),
        "at least one [[manage.login]] with ssh_keys",
    );
    refused(&with("[[manage.login]]\nuser = \"a\"\nssh_keys = \"k\"\n"), "[manage.netconf]");
    refused(
        &with("[[manage.login]]\nuser = \"a\"\nssh_keys = \"k\"\nname = \"a.example\"\n"),
        "ssh_keys beside another",
    );
}

#[test]
fn rules_that_cannot_be_meant_are_refused() {
    let rule = |rule: &str| {
        with(&format!("[[manage.rules]]\nname = \"r\"\ngroups = [\"*\"]\nrule = [{{ {rule} }}]\n"))
    };
    refused(&rule("module = \"m\""), "action: missing, expected \"permit\" or \"deny\"");
    refused(&rule("action = \"maybe\""), "expected");
    refused(
        &rule("operation = \"*\", notification = \"*\", action = \"deny\""),
        "expected one of path, operation and notification",
    );
    refused(&rule("path = \"/no-module:at-all\", action = \"deny\""), "rule[0].path");
    let group = "[[manage.group]]\nname = \"g\"\nusers = [\"a\"]\n";
    refused(&with(&group.repeat(2)), "name \"g\" twice");
}

// QUE-sec.1
#[test]
fn a_name_that_exists_nowhere_is_refused_with_the_nearest() {
    let rule = |rule: &str| {
        with(&format!("[[manage.rules]]\nname = \"r\"\ngroups = [\"*\"]\nrule = [{{ {rule} }}]\n"))
    };
    for (text, expected) in [
        (
            "module = \"ietf-pfc-queue-telemetri\", action = \"deny\"",
            "a.toml:13: manage.rules[0].rule[0].module: \"ietf-pfc-queue-telemetri\", expected a \
             module that is served, the nearest is \"ietf-pfc-queue-telemetry\"",
        ),
        // It is imported, and has no nodes here.
        ("module = \"ietf-ip\", action = \"deny\"", "expected a module that is served"),
        (
            "operation = \"gett\", action = \"deny\"",
            "rule[0].operation: \"gett\", expected one of any module that is served, the nearest is \"get\"",
        ),
        (
            "module = \"ietf-netconf\", operation = \"establish-subscription\", action = \"deny\"",
            "rule[0].operation: \"establish-subscription\", expected one of ietf-netconf",
        ),
        (
            "notification = \"push-updates\", action = \"deny\"",
            "rule[0].notification: \"push-updates\", expected one of any module that is served, \
             the nearest is \"push-update\"",
        ),
        // What could never be about anything.
        (
            "module = \"ietf-netconf-acm\", path = \"/ietf-interfaces:interfaces\", action = \"deny\"",
            "rule[0].module: which has nothing at /ietf-interfaces:interfaces and below",
        ),
        (
            "operation = \"get\", access = \"read\", action = \"deny\"",
            "rule[0].access: beside operation, expected \"exec\" or \"all\"",
        ),
        (
            "path = \"/ietf-interfaces:interfaces\", access = \"exec\", action = \"deny\"",
            "rule[0].access: beside path, expected \"read\" or \"all\"",
        ),
        (
            "notification = \"push-update\", access = \"exec\", action = \"deny\"",
            "rule[0].access: beside notification, expected \"read\" or \"all\"",
        ),
    ] {
        refused(&rule(text), expected);
    }
    for good in [
        "module = \"ietf-pfc-queue-telemetry\", path = \"/ietf-interfaces:interfaces\", action = \"deny\"",
        "module = \"*\", operation = \"*\", action = \"deny\"",
        "module = \"ietf-yang-push\", notification = \"push-change-update\", action = \"deny\"",
        "operation = \"kill-subscription\", access = \"exec\", action = \"deny\"",
    ] {
        device(&rule(good));
    }
    let list = |group: &str, user: &str| {
        with(&format!(
            "[[manage.group]]\nname = \"readers\"\nusers = [\"{user}\"]\n[[manage.rules]]\n\
             name = \"r\"\ngroups = [\"{group}\"]\nrule = [{{ action = \"permit\" }}]\n"
        ))
    };
    refused(
        &list("reader", "bob"),
        "manage.rules[0].groups[0]: \"reader\", expected the name of a [[manage.group]], the \
         nearest is \"readers\"",
    );
    refused(
        &list("readers", "bobx"),
        "manage.group[0].users[0]: \"bobx\", expected the name of a [[manage.login]], the \
         nearest is \"bob\"",
    );
    device(&list("readers", "bob"));
}

// QUE-sec.1
#[test]
fn the_examples_of_the_documentation_permit_what_they_say_and_nothing_else() {
    let text = include_str!("../../../../docs/serving.md");
    let blocks = text.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
    let all: String =
        blocks.collect::<Vec<_>>().join("\n").replace("\"...\"", &format!("\"{TOKEN}\""));
    let read = device(&all);
    let manage = read.manage.expect("a section");
    let schema = Schema::get().expect("modules");
    assert_eq!(manage.policy.lists.len(), 3);
    for list in &manage.policy.lists {
        for rule in &list.rules {
            assert_eq!(manage.policy.idle(schema, list, rule, manage.users()), [], "{rule:?}");
            assert_eq!(rule.ends_others(schema), [""; 0], "{rule:?}");
        }
    }
    for user in manage.users() {
        let access = manage.policy.access(user);
        for operation in ["kill-subscription", "kill-session"] {
            let named = schema.rpcs().iter().find(|rpc| &*rpc.name == operation).expect(operation);
            assert!(!access.may_call(named), "{user} {operation}");
        }
        let nacm = manage.policy.node(schema, Denied::default()).expect("made");
        assert!(access.readable(vec![nacm]).is_empty(), "{user}");
    }
}

// SEQ-10.3
#[test]
fn every_limit_has_its_range() {
    for limit in ManageLimits::TABLE {
        let text = format!("[observation]\ndomain = 1\n[manage]\n{} = @\n", limit.name);
        range(&text, &format!("manage.{}", limit.name), limit.min, limit.max);
    }
}
