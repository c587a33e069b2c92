//! Queue telemetry of the agent: events over its socket, as a program.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::control::ctl;
use super::privileges::{ids_of, is_root};
use super::program::{HANGS, Room, Running, waited};

/// The configuration of an agent that does nothing but measure queues.
fn config(room: &Room, queue: &str) -> PathBuf {
    let path = room.path("agent.toml");
    let text = format!(
        "[observation]\ndomain = 1\n[agent]\ncontrol_socket = \"c.sock\"\n[queue]\n{queue}\n"
    );
    fs::write(&path, text).expect("written");
    path
}

const SOCKET: &str = "silent_timeout_s = 1\nbad_lines_in_a_row_max = 3\n\
                      [[queue.source]]\nname = \"asic\"\nevents_socket = \"q.sock\"\n\
                      interval_ms = 1\n";

fn connect(room: &Room) -> UnixStream {
    let stream = waited("a socket", || UnixStream::connect(room.path("q.sock")).ok());
    stream.set_read_timeout(Some(HANGS)).expect("set");
    stream
}

fn line(seq: u64, t: u64, rest: &str) -> String {
    format!("{{\"seq\":{seq},\"t\":{t},\"interface\":\"Ethernet0\",\"queue\":\"3\",{rest}}}\n")
}

fn begun() -> String {
    line(1, 0, r#""event":"map","priorities":[5],"method":"head","maxError":0"#)
        + &line(2, 0, r#""event":"backlog","present":true"#)
        + &line(3, 0, r#""event":"gate","priority":5,"closed":true"#)
}

/// The agent's line of its status, once a number in it is this.
fn once(room: &Room, name: &str, number: u64) -> Value {
    let mut last = Value::Null;
    let began = Instant::now();
    loop {
        if let Ok(lines) = ctl(room, &["status"]) {
            last = lines.last().expect("a line").clone();
            if last[name] == number {
                return last;
            }
        }
        assert!(began.elapsed() < HANGS, "{name} {number}: {last}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

// QUE-id.1, QUE-err.3, SEQ-10.3
#[test]
fn an_agent_of_queues_alone_takes_events_and_every_connection_begins_anew() {
    let room = Room::new();
    let agent = Running::agent(&config(&room, SOCKET));
    let mut first = connect(&room);
    first
        .write_all(
            (begun() + &line(4, 2_500_000, r#""event":"backlog","present":true"#)).as_bytes(),
        )
        .expect("sent");
    let status = once(&room, "queueRows", 2);
    assert_eq!((&status["queueEvents"], &status["queues"]), (&4.into(), &1.into()));
    // A second one waits for the first, which ends with what it had told.
    let mut second = connect(&room);
    second.write_all((begun() + "nonsense\n").as_bytes()).expect("sent");
    drop(first);
    let status = once(&room, "queueBadLines", 1);
    assert_eq!(status["queueConnections"], 2);
    assert_eq!((&status["queueRows"], &status["queueRowsShown"]), (&3.into(), &1.into()));
    second
        .write_all(line(4, 1_500_000, r#""event":"backlog","present":true"#).as_bytes())
        .expect("sent");
    let status = once(&room, "queueRows", 4);
    assert_eq!((&status["queueHoles"], &status["queueMissing"]), (&1.into(), &0.into()));
    // What is silent for too long is let go, and so is who only sends what is no event.
    assert_eq!(second.read(&mut [0; 9]).expect("an end"), 0);
    assert_eq!(once(&room, "queueConnectionsCut", 1)["queueSources"], 0);
    let mut third = connect(&room);
    third.write_all(b"{}\n\xff\n[]\n").expect("sent");
    assert_eq!(third.read(&mut [0; 9]).expect("an end"), 0);
    once(&room, "queueConnectionsCut", 2);
    agent.signal("TERM");
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    for expected in [
        "queue source asic: connected",
        "another connection waits",
        "queue source asic: line 4: expected ident",
        "closed after 1 s of silence",
        "3 lines in a row that are no events",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!room.path("q.sock").exists(), "the socket is left behind");
}

#[test]
fn the_socket_is_for_its_owner_and_group_and_what_the_user_of_the_agent_has() {
    let room = Room::anywhere();
    let mut keys = SOCKET.to_owned();
    let mut text = String::new();
    if is_root() {
        let (user, group) = ids_of("nobody");
        chown(&room.folder, Some(user), Some(group)).expect("given");
        keys += "socket_group = \"daemon\"\n";
        text = "user = \"nobody\"\n".into();
    }
    let path = config(&room, &keys);
    room.agent_keys(&path, &text);
    let agent = Running::agent(&path);
    drop(connect(&room));
    once(&room, "queueConnections", 1);
    let about = fs::metadata(room.path("q.sock")).expect("there");
    assert!(about.file_type().is_socket());
    assert_eq!(about.permissions().mode() & 0o777, 0o660);
    if is_root() {
        assert_eq!((about.uid(), about.gid()), (ids_of("nobody").0, ids_of("daemon").1));
    }
    agent.signal("TERM");
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn events_of_a_file_are_played_and_what_they_left_is_shown_until_the_end() {
    let room = Room::new();
    let end = line(4, 3_200_000, r#""event":"backlog","present":false"#);
    fs::write(room.path("events.jsonl"), begun() + &end).expect("written");
    let source = "[[queue.source]]\nname = \"file\"\nevents_file = \"events.jsonl\"\n\
                  interval_ms = 1\npace = \"fast\"\n";
    let agent = Running::agent(&config(&room, source));
    let status = once(&room, "queueRows", 4);
    assert_eq!((&status["queueRowsShown"], &status["queueEvents"]), (&1.into(), &4.into()));
    assert_eq!(once(&room, "queueSources", 0)["queueRowsShown"], 1);
    agent.signal("TERM");
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("queue source file: its end"), "{said}");
}

/// A limit of the issue: an agent that sleeps takes less than 64 MiB.
#[test]
fn an_agent_with_one_source_of_queues_is_small() {
    let room = Room::new();
    let agent = Running::agent(&config(&room, SOCKET));
    let mut source = connect(&room);
    source.write_all(begun().as_bytes()).expect("sent");
    once(&room, "queueEvents", 3);
    let status = fs::read_to_string(format!("/proc/{}/status", agent.0.id())).expect("running");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib < 64 * 1024, "{kib} KiB");
}
