//! What `check` says of a file.

use std::fs;
use std::path::PathBuf;

use rocescope::check::check;
use rocescope::config::{AgentLimits, CollectorLimits, MeterLimits};

use super::ATTESTED;

/// An empty directory of one test.
fn directory(test: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(&path).unwrap();
    path
}

#[track_caller]
fn has(plan: &str, lines: &[&str]) {
    for line in lines {
        assert!(plan.lines().any(|found| found == *line), "no line\n{line}\nin\n{plan}");
    }
}

// SEQ-4.8, SEQ-10.3
#[test]
fn a_device_file_is_told_with_every_stream_rule_and_limit() {
    let path = directory("check_device").join("agent.toml");
    let text = format!(
        "[observation]\ndomain = 7\npoint = 9\nlayer = \"vxlan\"\n[meter]\nwhen_full = \"evict\"\n\
         idle_timeout_s = 30\n[[stream]]\nsource = \"10.0.0.1\"\ndestination = \"10.0.0.2\"\n\
         qp = 17\npkey = 0xffff\nvlan = 5\nsegment = 6\nwindow = 64\n[stream.attest]\n{ATTESTED}\
         [[rule]]\nsources = [\"10.0.0.0/8\", \"fd00::/8\"]\ndestinations = [\"::/0\", \
         \"0.0.0.0/0\"]\ngeneration = \"established\"\nrevision = 2\n[rule.attest]\n{ATTESTED}"
    );
    fs::write(&path, text).unwrap();
    let plan = check(&path).unwrap().to_string();
    has(
        &plan,
        &[
            "observes    layer vxlan",
            "as          observation domain 7, observation point 9",
            "elements    under enterprise number 32473",
            "  warning: elements.pen is 32473, the number kept for documentation (RFC 5612): use \
             one of your own where a peer is on another machine",
            "  rdmaDestinationQP                21",
            "ICRC        not checked",
            "when full   a quiet stream makes room, its epoch closing with stateExhaustion",
            "when idle   an epoch closes after 30 s",
            "provisions  1 stream, 1 rule",
            "  stream[0] on line 8: 10.0.0.1 to 10.0.0.2, qp 17, pkey 0xffff, VLAN 5, vxlan \
             segment 6, window 64, generation unverified: every report carries \
             generationUnverified",
            "  rule[0] on line 22: 10.0.0.0/8 fd00::/8 to ::/0 0.0.0.0/0, qp 0 to 16777215, every \
             pkey, window 1024, revision 2, generation established: every new connection has to \
             be told to the agent",
            "runs        as whoever starts it, with all that they may do",
            "metrics     are not served: no agent.metrics_listen",
            "control     by signals alone: no agent.control_socket",
            "remembers   which streams are disabled until it ends: no agent.state_file",
            "exports     to no collector",
        ],
    );
    for limit in MeterLimits::TABLE {
        let line = plan.lines().find(|line| line.trim_start().starts_with(limit.name));
        let line = line.unwrap_or_else(|| panic!("no {} in\n{plan}", limit.name));
        assert!(line.contains(&format!(" {}: {}", limit.default, limit.bounds)), "{line}");
    }
}

// SEQ-10.3
#[test]
fn what_an_agent_serves_and_who_it_becomes_is_told() {
    let path = directory("check_agent").join("agent.toml");
    let text = "[agent]\nuser = \"rocescope\"\ngroup = \"capture\"\n\
                metrics_listen = \"[::1]:9740\"\ncontrol_socket = \"/c\"\nstate_file = \"/s\"\n";
    fs::write(&path, text).unwrap();
    let plan = check(&path).unwrap().to_string();
    has(
        &plan,
        &[
            "runs        as user rocescope and group capture without privileges, once its sources \
             are open",
            "metrics     on http://[::1]:9740/metrics, and /healthz",
            "control     on /c, for the agent's own user",
            "remembers   which streams are disabled, in /s",
        ],
    );
    for limit in AgentLimits::TABLE {
        assert!(plan.contains(&format!(": {} (", limit.bounds)), "{}", limit.name);
    }
}

#[test]
fn a_file_that_provisions_nothing_is_warned_about() {
    let path = directory("check_nothing").join("agent.toml");
    fs::write(&path, "[elements]\npen = 64512\n[meter]\nicrc = \"check\"\n").unwrap();
    let plan = check(&path).unwrap().to_string();
    has(&plan, &["  warning: no [[stream]] and no [[rule]], so nothing is metered"]);
    assert!(!plan.contains("RFC 5612"), "{plan}");
}

// SEQ-7.10, SEQ-10.1
#[test]
fn a_collector_file_is_told_with_its_peers_and_limits_once_its_files_are_there() {
    let directory = directory("check_collector");
    let path = directory.join("collector.toml");
    let digits = "ab".repeat(32);
    let text = format!(
        "[ipfix]\ncertificate = \"c.pem\"\nkey = \"c.key\"\nauthority = \"ca\"\n\
         [[ipfix.peer]]\nname = \"agent.example\"\ndomains = [1, 2]\n\
         [[ipfix.peer]]\nfingerprint = \"sha256:{digits}\"\ndomains = [3]\n\
         [[queues.device]]\nname = \"leaf-1\"\nurl = \"https://leaf-1.example:8443\"\n\
         authority = \"ca\"\ntoken_file = \"token\"\n\
         [[queues.device]]\nname = \"leaf-2\"\nurl = \"https://leaf-2.example\"\n\
         fingerprint = \"sha256:{digits}\"\ncertificate = \"c.pem\"\nkey = \"c.key\"\n\
         mode = \"poll\"\n\
         [elements.ids]\npfcPriority = 99\n"
    );
    fs::write(&path, text).unwrap();
    fs::create_dir(directory.join("ca")).unwrap();
    fs::write(directory.join("c.key"), "").unwrap();
    let refused: Vec<String> = check(&path).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 5, "{refused:?}");
    let files: Vec<_> = refused.iter().filter(|line| line.contains(": queues.device[")).collect();
    assert_eq!(files.len(), 3, "{refused:?}");
    assert!(files[1].contains(":15: queues.device[0].token_file: "), "{files:?}");
    let name = path.display();
    assert!(refused[0].starts_with(&format!("{name}:2: ipfix.certificate: ")), "{refused:?}");
    assert!(refused[0].ends_with(", expected a file to read"), "{refused:?}");
    assert!(refused[1].starts_with(&format!("{name}:4: ipfix.authority: ")), "{refused:?}");
    assert!(refused[1].ends_with("ca is a directory, expected a file to read"), "{refused:?}");

    fs::remove_dir(directory.join("ca")).unwrap();
    fs::write(directory.join("ca"), "").unwrap();
    fs::write(directory.join("c.pem"), "").unwrap();
    fs::write(directory.join("token"), "").unwrap();
    let plan = check(&path).unwrap().to_string();
    let domains = format!("  sha256:{digits} for observation domain 3");
    has(
        &plan,
        &[
            "listens     on 127.0.0.1:4740 for IPFIX, with mutual TLS 1.3",
            "admits      2 peers",
            "  agent.example for observation domain 1 2",
            &domains,
            "queues      of 2 devices, over RESTCONF",
            "  pfcPriority                      99, not the default",
            "HTTP        http://127.0.0.1:8080/: results under /api/v1, /metrics, /healthz, /readyz",
            "  read by everyone on this machine",
        ],
    );
    let told =
        "  leaf-1 at https://leaf-1.example:8443, subscribed to, or asked every 10 s where it";
    assert!(plan.contains(told), "{plan}");
    let told =
        "  leaf-2 at https://leaf-2.example:443, asked every 10 s; its certificate is sha256:ab";
    assert!(plan.contains(told), "{plan}");
    assert!(plan.contains("data, which would be created"), "{plan}");
    for limit in CollectorLimits::TABLE {
        assert!(plan.contains(&format!(": {} (", limit.bounds)), "{}", limit.name);
    }

    fs::write(directory.join("data"), "").unwrap();
    let refused = check(&path).unwrap_err();
    assert!(refused[0].to_string().contains(": store.directory: "), "{refused:?}");
}

#[test]
fn the_files_of_an_export_are_looked_for() {
    let path = directory("check_export").join("agent.toml");
    let text =
        "[[export]]\ncollector = \"c:1\"\ncertificate = \"a\"\nkey = \"b\"\nauthority = \"c\"\n";
    fs::write(&path, text).unwrap();
    let keys: Vec<String> = check(&path).unwrap_err().into_iter().map(|e| e.key).collect();
    assert_eq!(keys, ["export[0].certificate", "export[0].key", "export[0].authority"]);
}

#[test]
fn what_an_agent_would_not_begin_with_does_not_pass() {
    let directory = directory("check_refused");
    let path = directory.join("agent.toml");
    let refused = |text: &str| -> Vec<String> {
        fs::write(&path, text).unwrap();
        let errors = check(&path).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect()
    };
    let nobody = refused("[[source]]\ninterface = \"eth0\"\n");
    assert_eq!(nobody.len(), 1, "{nobody:?}");
    assert!(nobody[0].contains("export: no [[export]], expected a collector"), "{nobody:?}");
    for name in ["a", "b", "c", "state"] {
        fs::write(directory.join(name), "no certificate, no key, no list\n").unwrap();
    }
    let files = "[[source]]\ninterface = \"eth0\"\n[[export]]\ncollector = \"c:1\"\n\
                 certificate = \"a\"\nkey = \"b\"\nauthority = \"c\"\n";
    let bad = refused(files);
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert!(
        bad[0].contains(":5: export[0]: ") && bad[0].contains("no certificate in it"),
        "{bad:?}"
    );
    let state = refused("[agent]\nstate_file = \"state\"\n");
    assert_eq!(state.len(), 1, "{state:?}");
    assert!(state[0].contains(":2: agent.state_file: ") && state[0].contains("not a state file"));
}

// QUE-sec.1, SEQ-10.3
#[test]
fn what_rules_do_and_do_not_is_told() {
    let directory = directory("check_manage");
    rocescope::pki::certificates(&directory).unwrap();
    let path = directory.join("agent.toml");
    let queue = "/ietf-interfaces:interfaces/interface[name='a']/\
                 ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue[queue-id='3']";
    let login = |user: &str, digit: &str| {
        format!("[[manage.login]]\nuser = \"{user}\"\ntoken_sha256 = \"{}\"\n", digit.repeat(64))
    };
    let text = format!(
        "[queue]\n[manage]\nsubscriptions_max = 16\nsubscription_octets_max = 1048576\n\
         [manage.restconf]\nlisten = \"127.0.0.1:8443\"\ncertificate = \"collector.pem\"\n\
         key = \"collector.key\"\n{}{}{}\
         [[manage.group]]\nname = \"tenants\"\nusers = [\"dora\"]\n\
         [[manage.group]]\nname = \"all\"\nusers = [\"dora\", \"bob\"]\n\
         [[manage.rules]]\nname = \"t\"\ngroups = [\"tenants\"]\nrule = [\n\
         {{ path = \"{queue}\", access = \"read\", action = \"permit\" }}]\n\
         [[manage.rules]]\nname = \"all\"\ngroups = [\"all\"]\nrule = [\n\
         {{ module = \"ietf-subscribed-notifications\", access = \"exec\", action = \"permit\" }}]\n",
        login("dora", "a"),
        login("bob", "b"),
        login("eve", "c"),
    );
    fs::write(&path, &text).unwrap();
    has(
        &check(&path).unwrap().to_string(),
        &[
            "      warning: for all of them it permits nothing: /ietf-interfaces:interfaces above it \
             may not be read",
            "      with kill-subscription, which ends a subscription of whomever",
            "  warning: no rule permits eve anything",
            "memory      up to 16 MiB for what subscribers do not read: subscriptions_max times \
             subscription_octets_max of [manage]",
        ],
    );
    let all = text.replace("subscriptions_max = 16", "subscriptions_octets_max = 2097152");
    fs::write(&path, all).unwrap();
    has(
        &check(&path).unwrap().to_string(),
        &["memory      up to 2 MiB for what subscribers do not read: subscriptions_octets_max of \
           [manage]"],
    );
    fs::write(&path, &text).unwrap();
    // Where there are no streams nothing is said of their memory.
    assert!(!check(&path).unwrap().to_string().contains("for streams and labels"));
    let open = text.replace("module = \"ietf-subscribed-notifications\", access = \"exec\", ", "");
    fs::write(&path, open).unwrap();
    has(
        &check(&path).unwrap().to_string(),
        &[
            "      with all users, groups and rules, and the sessions and subscriptions of others",
            "      with kill-session, which ends a session of whomever",
        ],
    );
}

#[test]
fn a_socket_that_cannot_be_made_is_refused_before_the_start() {
    let path = directory("check_socket").join("agent.toml");
    let text = "[queue]\n[[queue.source]]\nname = \"a\"\nevents_socket = \"none/q.sock\"\n\
                socket_group = \"rocescope-none\"\n";
    fs::write(&path, text).unwrap();
    let errors: Vec<String> = check(&path).unwrap_err().iter().map(ToString::to_string).collect();
    let [directory, group] = &errors[..] else { panic!("{errors:?}") };
    assert!(directory.contains("agent.toml:4: queue.source[0].events_socket: "), "{directory}");
    assert!(directory.ends_with("none is no directory, expected one"), "{directory}");
    assert!(group.ends_with("socket_group: rocescope-none: there is no such group"), "{group}");
}

#[test]
fn a_collector_of_devices_alone_says_that_nothing_else_comes_in() {
    let directory = directory("check_devices_alone");
    rocescope::pki::certificates(&directory).unwrap();
    let path = directory.join("collector.toml");
    let text = "[[queues.device]]\nname = \"leaf-1\"\nurl = \"https://leaf-1.example\"\n\
                authority = \"ca.pem\"\ncertificate = \"agent.pem\"\nkey = \"agent.key\"\n";
    fs::write(&path, text).unwrap();
    let plan = check(&path).unwrap().to_string();
    has(&plan, &["listens     nowhere: no [ipfix], so nothing is received over IPFIX"]);
    assert!(!plan.contains("admits"), "{plan}");
}
