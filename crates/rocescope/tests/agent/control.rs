//! The control socket, SIGHUP, and what outlives a restart.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::program::{Connection, HANGS, ROCESCOPE, Room, Running, TLS, Writer};
use super::support::{READ, SEND, roce};

/// Asks the agent of a room; the lines of its answer, or what went wrong.
pub fn ctl(room: &Room, arguments: &[&str]) -> Result<Vec<Value>, String> {
    let output = Command::new(ROCESCOPE)
        .args(["agent", "ctl", "--socket"])
        .arg(room.path("c.sock"))
        .args(arguments)
        .output()
        .expect("ctl runs");
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr).expect("text"));
    }
    let text = String::from_utf8(output.stdout).expect("text");
    Ok(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

/// Reads until `count` reports were accepted.
#[track_caller]
fn hear(connection: &mut Connection, count: usize) {
    connection.until(|collector| collector.heard.len() >= count);
}

const STREAM: &str = "10.0.0.1 > 10.0.0.2 qp 0x000011 pkey 0xffff";

// SEQ-3.3, SEQ-4.9, SEQ-3.8
#[test]
fn the_operator_sees_and_steers_an_agent_that_runs() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    (0..5).for_each(|psn| writer.frame(1000, &roce(17, SEND, psn)));
    hear(&mut connection, 1);

    let streams = ctl(&room, &["streams"]).expect("an answer");
    assert_eq!(streams[0]["stream"], STREAM);
    assert_eq!(streams[0]["epoch"]["requestPacketTotalCount"], 5);
    let status = ctl(&room, &["status"]).expect("an answer");
    assert_eq!(status[0]["connected"], true);
    assert_eq!(status[0]["session"]["accounted"], 5);

    ctl(&room, &["new-generation", STREAM]).expect("done");
    hear(&mut connection, 2);
    writer.frame(1001, &roce(17, SEND, 5));
    hear(&mut connection, 3);
    ctl(&room, &["capture-gap"]).expect("done");
    hear(&mut connection, 4);

    writer.frame(1002, &roce(17, SEND, 6));
    hear(&mut connection, 5);
    writer.frame(1002, &roce(17, READ, 7));
    hear(&mut connection, 6);
    let refused = ctl(&room, &["reprovision", "10.0.0.1 > 10.0.0.2 qp 18 pkey 1"]);
    assert!(refused.unwrap_err().contains("is not disabled"));
    let unseen = ctl(&room, &["new-generation", "10.0.0.1 > 10.0.0.2 qp 18 pkey 1"]);
    assert!(unseen.unwrap_err().contains("no session has seen such a stream"));
    assert_eq!(ctl(&room, &["status"]).expect("an answer")[1]["disabledStreams"], 1);
    ctl(&room, &["reprovision", STREAM]).expect("done");
    writer.frame(1003, &roce(17, SEND, 8));
    hear(&mut connection, 7);
    drop(writer);
    let reports = connection.heard_out().accepted();
    let seen: Vec<_> = reports
        .iter()
        .map(|r| (r.epoch_id, r.report_id, r.snapshot.flags.0, r.snapshot.counts.requests))
        .collect();
    let expected = [
        (1, 1, 0x20, 5),
        (1, 2, 0x21, 5),
        (2, 1, 0x20, 1),
        (2, 2, 0x25, 1),
        (3, 1, 0x20, 1),
        (3, 2, 0x23, 1),
        (4, 1, 0x20, 1),
        (4, 2, 0x21, 1),
    ];
    assert_eq!(seen, expected);
    assert_eq!(agent.ended().0, Some(0));
}

// SEQ-4.7
#[test]
fn a_reload_takes_new_windows_and_a_bad_file_changes_nothing() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    let text = fs::read_to_string(&config).expect("text");
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    writer.frame(1000, &roce(17, SEND, 0));
    hear(&mut connection, 1);
    fs::write(&config, text.replace("window = 1024", "window = 0")).expect("written");
    agent.signal("HUP");
    writer.frame(1001, &roce(17, SEND, 1));
    hear(&mut connection, 2);
    fs::write(&config, text.replace("window = 1024", "window = 64")).expect("written");
    agent.signal("HUP");
    hear(&mut connection, 3);
    writer.frame(1002, &roce(17, SEND, 2));
    hear(&mut connection, 4);
    agent.signal("TERM");
    let seen: Vec<_> = connection
        .heard_out()
        .accepted()
        .iter()
        .map(|r| (r.epoch_id, r.report_id, r.snapshot.window.get(), r.snapshot.flags.0))
        .collect();
    let expected = [
        (1, 1, 1024, 0x20),
        (1, 2, 1024, 0x20),
        (1, 3, 1024, 0x21),
        (2, 1, 64, 0x20),
        (2, 2, 64, 0x21),
    ];
    assert_eq!(seen, expected);
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("not reloaded") && said.contains("window"), "{said}");
}

// SEQ-3.6, SEQ-4.11
#[test]
fn what_is_not_attested_any_more_is_not_metered_on_and_its_epoch_says_why() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    let text = fs::read_to_string(&config).expect("text");
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    let mut expected = Vec::new();
    let conditions = [
        ("all_paths = true", "all_paths = false", 0x25),
        ("send_write_only = true\n", "", 0x23),
        ("half_space = true", "half_space = false", 0x31),
    ];
    for (n, (attested, withdrawn, flags)) in (0_u32..).zip(conditions) {
        let epoch = u64::from(n) + 1;
        writer.frame(1000 + n, &roce(17, SEND, 10 * n));
        expected.push((epoch, 1, 0x20, 1));
        hear(&mut connection, expected.len());
        fs::write(&config, text.replace(attested, withdrawn)).expect("written");
        agent.signal("HUP");
        expected.push((epoch, 2, flags, 1));
        hear(&mut connection, expected.len());
        // Nothing is metered until it is attested again.
        writer.frame(1000 + n, &roce(17, SEND, 10 * n + 1));
        let started = std::time::Instant::now();
        loop {
            let status = ctl(&room, &["status"]).expect("an answer");
            if status[0]["session"]["notProvisioned"] == n + 1 {
                break;
            }
            assert!(started.elapsed() < HANGS, "{status:?}");
        }
        fs::write(&config, &text).expect("written");
        agent.signal("HUP");
        while ctl(&room, &["status"]).expect("an answer")[1]["reloads"] != 2 * n + 2 {
            assert!(started.elapsed() < HANGS, "not reloaded");
        }
    }
    agent.signal("TERM");
    let reports = connection.heard_out().accepted();
    let seen: Vec<_> = reports
        .iter()
        .map(|r| (r.epoch_id, r.report_id, r.snapshot.flags.0, r.snapshot.counts.requests))
        .collect();
    assert_eq!(seen, expected);
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("not metered any more: ") && said.contains("all_paths"), "{said}");
    // Nobody listens any more, and nothing says otherwise.
    assert!(!room.path("c.sock").exists());
}

// SEQ-4.13
#[test]
fn what_passes_while_nobody_is_connected_is_counted_and_nothing_delivered_is_no_success() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    let agent = Running::agent(&config);
    drop(server.accept());
    drop(server);
    let started = std::time::Instant::now();
    while ctl(&room, &["status"]).expect("an answer")[0]["connected"] != false {
        assert!(started.elapsed() < HANGS, "still connected");
    }
    let mut writer = Writer::open(&pipe);
    (0..5).for_each(|psn| writer.frame(1000, &roce(17, SEND, psn)));
    loop {
        let status = ctl(&room, &["status"]).expect("an answer");
        if status[0]["framesWithoutSession"] == 5 {
            assert_eq!((&status[0]["sentReports"], &status[0]["reports"]), (&0.into(), &0.into()));
            break;
        }
        assert!(started.elapsed() < HANGS, "{status:?}");
    }
    drop(writer);
    let (code, said) = agent.ended();
    assert_eq!(code, Some(1), "{said}");
    let last = said.lines().last().expect("a line");
    assert!(last.contains("no report was taken by any collector, and 5 frames"), "{said}");
}

// SEQ-3.3
#[test]
fn a_stream_that_is_disabled_is_told() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    (0..3).for_each(|_| writer.frame(1000, &roce(17, READ, 0)));
    writer.frame(1000, &roce(18, SEND, 0));
    hear(&mut connection, 1);
    agent.signal("TERM");
    drop(writer);
    connection.heard_out();
    let (_, said) = agent.ended();
    assert_eq!(said.matches(STREAM).count(), 1, "{said}");
    assert!(said.contains("not metered until reprovisioned"), "{said}");
}

#[test]
fn a_file_that_is_no_socket_is_not_replaced_by_one() {
    let room = Room::new();
    let server = room.server();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    room.pipe();
    fs::write(room.path("c.sock"), "precious").expect("written");
    let (code, said) = Running::agent(&config).ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("c.sock: is no socket, expected one or nothing"), "{said}");
    assert_eq!(fs::read_to_string(room.path("c.sock")).expect("there"), "precious");
}

// SEQ-3.3
#[test]
fn a_disabled_stream_stays_disabled_when_the_agent_is_killed_and_started_again() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    writer.frame(1000, &roce(17, SEND, 0));
    writer.frame(1000, &roce(17, READ, 1));
    hear(&mut connection, 1);
    drop(agent);
    drop(writer);

    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    writer.frame(1001, &roce(17, SEND, 2));
    writer.frame(1001, &roce(18, SEND, 2));
    hear(&mut connection, 1);
    assert_eq!(connection.collector.accepted()[0].snapshot.key.qp, 18);
    assert_eq!(ctl(&room, &["status"]).expect("an answer")[0]["session"]["afterViolation"], 1);
    drop(agent);

    // A file that cannot be understood is not forgotten.
    fs::write(room.path("state"), "something else\n").expect("written");
    let (code, said) = Running::agent(&config).ended();
    assert_eq!(code, Some(1));
    assert!(said.contains("state:1: not a state file"), "{said}");
}

#[test]
fn an_agent_that_does_not_run_cannot_be_asked() {
    let room = Room::new();
    let error = ctl(&room, &["status"]).unwrap_err();
    assert!(error.contains("c.sock: No such file"), "{error}");
}
