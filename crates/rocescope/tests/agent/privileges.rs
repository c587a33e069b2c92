//! Who the agent is once its sources are open. Run as root, it becomes somebody who may do nothing;
//! run as anybody else, it refuses to pretend.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use rocescope::config::parse;

use super::control::ctl;
use super::program::{Room, Running, TLS, Writer};
use super::support::{SEND, roce};

/// Whether this process is root.
pub fn is_root() -> bool {
    let about = fs::metadata("/proc/self").expect("a process");
    about.uid() == 0
}

/// The ids of a user in a list of users of the C library.
pub fn ids_of(name: &str) -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").expect("users");
    let line = users.lines().find(|line| line.starts_with(&format!("{name}:"))).expect("there");
    let fields: Vec<&str> = line.split(':').collect();
    (fields[2].parse().expect("a number"), fields[3].parse().expect("a number"))
}

/// A field of every thread of a process.
fn of_threads(id: u32, field: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).expect("threads");
    threads
        .map(|thread| {
            let path = thread.expect("a thread").path().join("status");
            let status = fs::read_to_string(path).expect("a status");
            let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
            line.expect("the field").split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect()
}

// SEQ-10.3
#[test]
fn the_agent_becomes_its_user_for_good_or_refuses() {
    let room = Room::anywhere();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    room.agent_keys(&config, "user = \"nobody\"");
    if !is_root() {
        let (code, said) = Running::agent(&config).ended();
        assert_eq!(code, Some(1), "{said}");
        let last = said.lines().last().expect("a line");
        assert!(last.contains("agent.user: only root can become nobody"), "{said}");
        return;
    }
    let (user, group) = ids_of("nobody");
    chown(&room.folder, Some(user), Some(group)).expect("given");
    chown(&pipe, Some(user), Some(group)).expect("given");
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    writer.frame(1000, &roce(17, SEND, 0));
    connection.until(|collector| !collector.heard.is_empty());

    let id = agent.0.id();
    let all = |field: &str, expected: &str| {
        let found = of_threads(id, field);
        assert!(found.iter().all(|found| found == expected), "{field}: {found:?}");
        // The observer, the network and the source.
        assert!(found.len() >= 3, "{found:?}");
    };
    all("Uid", &[user; 4].map(|id| id.to_string()).join(" "));
    all("Gid", &[group; 4].map(|id| id.to_string()).join(" "));
    all("Groups", &group.to_string());
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        all(set, "0000000000000000");
    }
    all("NoNewPrivs", "1");
    // What it made is its own, and root can still ask.
    for made in ["c.sock", "state"] {
        let about = fs::metadata(room.path(made)).expect("there");
        assert_eq!((about.uid(), about.gid()), (user, group), "{made}");
    }
    assert_eq!(ctl(&room, &["status"]).expect("an answer")[0]["session"]["accounted"], 1);
    agent.signal("TERM");
    connection.heard_out().accepted();
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("runs as user nobody from here on"), "{said}");
}

#[test]
fn what_the_user_cannot_read_or_write_is_said_at_the_start() {
    if !is_root() {
        // Then it is refused for another reason, which the test above holds.
        return the_agent_becomes_its_user_for_good_or_refuses();
    }
    let (user, group) = ids_of("nobody");
    for (made, expected) in [("live.pcap", "live.pcap: Permission denied"), ("", "state: cannot")] {
        let room = Room::anywhere();
        let server = room.server();
        let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
        room.agent_keys(&config, "user = \"nobody\"");
        fs::write(room.path("live.pcap"), "").expect("written");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        };
        if made.is_empty() {
            mode(&room.folder, 0o755);
        } else {
            chown(&room.folder, Some(user), Some(group)).expect("given");
            mode(&room.path(made), 0o600);
        }
        let (code, said) = Running::agent(&config).ended();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.lines().last().is_some_and(|line| line.contains(expected)), "{said}");
    }
}

#[test]
fn users_that_are_not_there_or_may_do_more_are_refused() {
    let room = Room::new();
    let server = room.server();
    fs::write(room.path("live.pcap"), "").expect("written");
    for (keys, expected) in [
        ("user = \"rocescope-nobody\"", "agent.user: rocescope-nobody: there is no such user"),
        (
            "user = \"nobody\"\ngroup = \"rocescope-none\"",
            "agent.group: rocescope-none: there is no",
        ),
        ("user = \"4000000000\"", "agent.group: missing"),
        ("user = \"00\"", "agent.user: 00 is root"),
    ] {
        let config = room.config(&server, "file = \"live.pcap\"", TLS);
        room.agent_keys(&config, keys);
        let (code, said) = Running::agent(&config).ended();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.lines().last().is_some_and(|line| line.contains(expected)), "{said}");
    }
    for (keys, key) in [
        ("user = \"root\"", "agent.user"),
        ("user = \"0\"", "agent.user"),
        ("user = \"\"", "agent.user"),
        ("user = \"a:b\"", "agent.user"),
        ("user = 1000", "agent.user"),
        ("group = \"nogroup\"", "agent.group"),
    ] {
        let errors = parse("a.toml", &format!("[agent]\n{keys}\n"), Path::new(""));
        assert_eq!(errors.expect_err("refused")[0].key, key, "{keys}");
    }
}
