//! Live traffic on a veth pair, in a network namespace of its own: what is counted is what was
//! sent, and what the ring had no room for shows.
//!
//! The tests of the namespace run in it: each is started again there by the one beside it.

use std::process::Command;
use std::time::Instant;

use observe::outcome::Outcome;
use observe::report::Flags;
use pcap::{Active, Capture};

use super::control::ctl;
use super::privileges::{ids_of, is_root};
use super::program::{HANGS, Room, Running, TLS};
use super::support::{Collector, SEND, roce};

/// Runs one of the ignored tests below in a namespace with the pair `roce0` and `roce1`.
pub(super) fn in_a_namespace(name: &str) {
    in_namespaces(&["--map-root-user", "--net"], name);
}

fn in_namespaces(which: &[&str], name: &str) {
    let program = std::env::current_exe().expect("this program");
    // No frame but those of the test: IPv6 would send of its own accord.
    let script = "set -e; for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do \
                  [ ! -w \"$f\" ] || echo 1 > \"$f\"; done; \
                  ip link set lo up; ip link add roce0 type veth peer name roce1; \
                  ip link set roce0 up; ip link set roce1 up; \
                  exec \"$0\" --ignored --exact \"$1\" --nocapture";
    let output = Command::new("unshare")
        .args(which)
        .args(["sh", "-c", script])
        .arg(program)
        .arg(name)
        .output()
        .expect("unshare and ip are needed for this test");
    let said = [output.stdout, output.stderr].map(|o| String::from_utf8_lossy(&o).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}\n{}", said[0], said[1]);
}

/// The other end of the agent's interface.
pub(super) fn generator() -> Capture<Active> {
    Capture::from_device("roce1").expect("there").open().expect("opened")
}

fn requests(collector: &Collector, qp: u32) -> u64 {
    let epochs = collector.session.epochs().map(|(_, epoch)| epoch.latest.snapshot);
    epochs.filter(|s| s.key.qp == qp).map(|s| s.counts.requests).sum()
}

#[test]
fn live_counters_are_what_the_generator_sent() {
    in_a_namespace("live::inside_counters_are_what_the_generator_sent");
}

#[test]
fn what_a_small_ring_drops_is_a_capture_discontinuity() {
    in_a_namespace("live::inside_a_small_ring_drops");
}

#[test]
fn a_link_that_was_down_for_a_moment_is_a_capture_discontinuity() {
    in_a_namespace("live::inside_a_link_goes_down_and_up");
}

#[test]
fn while_one_of_two_interfaces_is_not_up_nothing_is_metered() {
    in_a_namespace("live::inside_one_of_two_interfaces_is_down");
}

#[test]
fn an_interface_that_is_made_again_under_its_name_is_another() {
    in_a_namespace("live::inside_an_interface_is_made_again");
}

/// Root stays root, and so has users to become; anybody else is root of the namespace alone, where
/// there is no other user.
#[test]
fn an_interface_that_is_gone_ends_an_agent_without_privileges() {
    let name = "live::inside_an_interface_goes";
    if is_root() { in_namespaces(&["--net"], name) } else { in_a_namespace(name) }
}

// SEQ-3.7, SEQ-10.3
#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_an_interface_goes() {
    let room = Room::anywhere();
    let server = room.server();
    let config = room.config(&server, "interface = \"roce0\"", TLS);
    room.agent_keys(&config, "user = \"nobody\"");
    let users = std::fs::read_to_string("/proc/self/uid_map").expect("a map");
    if users.split_whitespace().last() == Some("1") {
        let (code, said) = Running::agent(&config).ended();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("agent.user: cannot become nobody"), "{said}");
        return;
    }
    let (user, group) = ids_of("nobody");
    std::os::unix::fs::chown(&room.folder, Some(user), Some(group)).expect("given");
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    generator().sendpacket(roce(1, SEND, 0)).expect("sent");
    connection.until(|collector| requests(collector, 1) == 1);
    let gone = Command::new("ip").args(["link", "del", "roce0"]).status();
    assert!(gone.expect("ip runs").success());
    let mut collector = connection.heard_out();
    collector.accepted();
    let epochs = collector.end();
    assert_eq!(epochs.len(), 1);
    assert!(epochs[0].epoch.latest.snapshot.flags.has(Flags::CAPTURE_DISCONTINUITY), "{epochs:?}");
    let (code, said) = agent.ended();
    assert_eq!(code, Some(1), "{said}");
    let last = said.lines().last().expect("a line");
    assert!(last.contains("roce0: ") && last.contains("start the agent again"), "{said}");
}

#[test]
fn an_interface_is_promiscuous_only_where_that_is_asked_for() {
    in_a_namespace("live::inside_promiscuous_on_demand");
}

// SEQ-3.5, SEQ-5.3
#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_counters_are_what_the_generator_sent() {
    let room = Room::new();
    let server = room.server();
    let config = room.config(&server, "interface = \"roce0\"", TLS);
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut generator = generator();
    for psn in 0..2000 {
        for qp in 1..=5_u32 {
            // Stream 5 misses every tenth position.
            if qp < 5 || psn % 10 != 9 {
                generator.sendpacket(roce(qp, SEND, psn)).expect("sent");
            }
        }
    }
    connection.until(|collector| {
        (1..5).all(|qp| requests(collector, qp) == 2000) && requests(collector, 5) == 1800
    });
    agent.signal("TERM");
    let mut collector = connection.heard_out();
    collector.accepted();
    let epochs = collector.end();
    assert_eq!(epochs.len(), 5);
    for epoch in epochs {
        let snapshot = epoch.epoch.latest.snapshot;
        assert_eq!(epoch.outcome, Outcome::Complete);
        assert_eq!(snapshot.flags, Flags::FINAL_EPOCH.with(Flags::GENERATION_UNVERIFIED));
        // The last gap of stream 5 is behind its last packet.
        assert_eq!(snapshot.counts.skipped, if snapshot.key.qp == 5 { 199 } else { 0 });
    }
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
}

#[track_caller]
fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status();
    assert!(done.expect("ip runs").success(), "{arguments}");
}

/// Sends until the agent's interface passes frames again, and the agent meters them.
fn until_metered(room: &Room, qp: u32, mut psn: u32) {
    let started = Instant::now();
    let mut generator = generator();
    let name = format!("10.0.0.1 > 10.0.0.2 qp 0x{qp:06x} pkey 0xffff");
    loop {
        // Without a carrier it cannot be sent.
        _ = generator.sendpacket(roce(qp, SEND, psn));
        psn += 1;
        let streams = ctl(room, &["streams"]).expect("an answer");
        if streams.iter().any(|line| line["stream"] == *name) {
            return;
        }
        assert!(started.elapsed() < HANGS, "nothing is metered again: {streams:?}");
    }
}

// SEQ-3.5, SEQ-3.7
#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_a_link_goes_down_and_up() {
    // The other end takes the carrier away; the own end is taken down by somebody.
    for taken_down in ["roce1", "roce0"] {
        let room = Room::new();
        let server = room.server();
        let config = room.config(&server, "interface = \"roce0\"", TLS);
        let agent = Running::agent(&config);
        let mut connection = server.accept();
        let mut generator = generator();
        generator.sendpacket(roce(1, SEND, 0)).expect("sent");
        connection.until(|collector| requests(collector, 1) == 1);
        // A reading of the drop counter shows nothing of it.
        ip(&format!("link set {taken_down} down"));
        ip(&format!("link set {taken_down} up"));
        let gap = Flags::CAPTURE_DISCONTINUITY;
        connection.until(|collector| {
            collector.heard.iter().any(|(report, _)| report.snapshot.flags.has(gap))
        });
        until_metered(&room, 2, 0);
        let status = ctl(&room, &["status"]).expect("an answer");
        assert!(status[1]["interruptions"].as_u64() > Some(0), "{status:?}");
        assert_eq!(status[1]["interfacesLost"], 0, "{status:?}");
        assert_eq!(status[1]["droppedFrames"], 0, "{status:?}");
        agent.signal("TERM");
        let mut collector = connection.heard_out();
        collector.accepted();
        let epochs = collector.end();
        let flags = epochs.iter().map(|epoch| epoch.epoch.latest.snapshot.flags.has(gap));
        assert_eq!(flags.collect::<Vec<_>>(), [true, false], "{taken_down}: {epochs:?}");
        let (code, said) = agent.ended();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("roce0: the interface "), "{said}");
    }
}

// SEQ-3.5, SEQ-3.6, SEQ-3.7
#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_one_of_two_interfaces_is_down() {
    ip("link add roce2 type veth peer name roce3");
    ip("link set roce2 up");
    ip("link set roce3 up");
    let room = Room::new();
    let server = room.server();
    let sources = "interface = \"roce0\"\n[[source]]\ninterface = \"roce2\"";
    let config = room.config(&server, sources, TLS);
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut generator = generator();
    let lost = |expected: u64| {
        let started = Instant::now();
        loop {
            let status = ctl(&room, &["status"]).expect("an answer");
            if status[1]["interfacesLost"] == expected {
                return status[1]["framesNotMetered"].as_u64().expect("a number");
            }
            assert!(started.elapsed() < HANGS, "{status:?}");
        }
    };
    generator.sendpacket(roce(1, SEND, 0)).expect("sent");
    connection.until(|collector| requests(collector, 1) == 1);
    ip("link set roce3 down");
    let before = lost(1);
    let gap = Flags::CAPTURE_DISCONTINUITY;
    connection.until(|collector| {
        collector.heard.iter().any(|(report, _)| report.snapshot.flags.has(gap))
    });
    // What is missing of these may have gone over the other interface.
    (1..=5).for_each(|psn| generator.sendpacket(roce(1, SEND, 2 * psn)).expect("sent"));
    let started = Instant::now();
    while lost(1) < before + 5 {
        assert!(started.elapsed() < HANGS, "the frames are counted nowhere");
    }
    ip("link set roce3 up");
    lost(0);
    until_metered(&room, 2, 20);
    agent.signal("TERM");
    let mut collector = connection.heard_out();
    collector.accepted();
    let epochs = collector.end();
    let seen = epochs.iter().map(|epoch| epoch.epoch.latest.snapshot);
    let seen: Vec<_> = seen.map(|s| (s.key.qp, s.flags.has(gap), s.counts.skipped)).collect();
    assert_eq!(seen, [(1, true, 0), (2, false, 0)]);
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("roce2: the interface has no carrier: nothing is metered"), "{said}");
}

// SEQ-3.7
#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_an_interface_is_made_again() {
    let room = Room::new();
    let server = room.server();
    let config = room.config(&server, "interface = \"roce0\"", TLS);
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    generator().sendpacket(roce(1, SEND, 0)).expect("sent");
    connection.until(|collector| requests(collector, 1) == 1);
    ip("link del roce0");
    ip("link add roce0 type veth peer name roce1");
    ip("link set roce0 up");
    ip("link set roce1 up");
    until_metered(&room, 2, 0);
    agent.signal("TERM");
    let mut collector = connection.heard_out();
    collector.accepted();
    let gap = Flags::CAPTURE_DISCONTINUITY;
    let epochs = collector.end();
    let flags = epochs.iter().map(|epoch| epoch.epoch.latest.snapshot.flags.has(gap));
    assert_eq!(flags.collect::<Vec<_>>(), [true, false], "{epochs:?}");
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
}

/// How many ask for everything that passes the agent's interface, by the kernel's count.
fn promiscuity() -> u64 {
    let output = Command::new("ip").args(["-d", "link", "show", "roce0"]).output().expect("ip");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, behind) = text.split_once("promiscuity ").unwrap_or_else(|| panic!("{text}"));
    behind.split(' ').next().expect("a number").parse().expect("a number")
}

#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_promiscuous_on_demand() {
    for (line, expected) in [("", 0), ("\npromiscuous = false", 0), ("\npromiscuous = true", 1)] {
        let room = Room::new();
        let server = room.server();
        let config = room.config(&server, &format!("interface = \"roce0\"{line}"), TLS);
        let agent = Running::agent(&config);
        let connection = server.accept();
        assert_eq!(promiscuity(), expected, "{line:?}");
        agent.signal("TERM");
        connection.heard_out();
        let (code, said) = agent.ended();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(promiscuity(), 0, "{line:?}");
    }
}

// SEQ-3.7
#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_a_small_ring_drops() {
    let room = Room::new();
    let server = room.server();
    let config = room.config(&server, "interface = \"roce0\"\nring_octets = 65536", TLS);
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut generator = generator();
    generator.sendpacket(roce(1, SEND, 0)).expect("sent");
    connection.until(|collector| requests(collector, 1) == 1);
    // While the agent stands still, the ring fills.
    agent.signal("STOP");
    for psn in 1..20_000 {
        generator.sendpacket(roce(1, SEND, psn)).expect("sent");
    }
    agent.signal("CONT");
    let gap = Flags::CAPTURE_DISCONTINUITY;
    connection.until(|collector| {
        collector.heard.iter().any(|(report, _)| report.snapshot.flags.has(gap))
    });
    generator.sendpacket(roce(1, SEND, 20_000)).expect("sent");
    agent.signal("TERM");
    let mut collector = connection.heard_out();
    collector.accepted();
    // Where the drops were is not known, so the epoch from before them ends with a qualification.
    let epochs = collector.end();
    assert!(epochs[0].epoch.latest.snapshot.flags.has(gap), "{epochs:?}");
    assert!(epochs.iter().map(|e| e.epoch.latest.snapshot.counts.requests).sum::<u64>() < 20_000);
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("dropped before they were seen"), "{said}");
}
