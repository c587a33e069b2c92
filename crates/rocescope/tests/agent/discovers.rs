//! `discover --interface` on a veth pair, in a network namespace of its own as in [`super::live`].

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::live::{generator, in_a_namespace};
use super::program::{ROCESCOPE, Running};
use super::support::{READ, SEND, roce};

/// A run that is looking at `roce0`.
fn looking(arguments: &[&str]) -> Running {
    let child = Command::new(ROCESCOPE)
        .args(["discover", "--interface", "roce0"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut running = Running(child.expect("it starts"));
    let mut said = Vec::new();
    let stderr = running.0.stderr.as_mut().expect("a pipe");
    while !said.ends_with(b"\n") {
        let mut octet = [0];
        stderr.read_exact(&mut octet).expect("a line");
        said.extend(octet);
    }
    let said = String::from_utf8(said).expect("text");
    assert!(said.starts_with("looking at roce0 "), "{said}");
    running
}

/// What a run wrote to standard output, its exit code, and what it said.
fn results(mut running: Running) -> (String, Option<i32>, String) {
    let mut out = String::new();
    let child: &mut Child = &mut running.0;
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    let (code, said) = running.ended();
    (out, code, said)
}

#[test]
fn an_interface_is_discovered_until_it_is_interrupted() {
    in_a_namespace("discovers::inside_an_interface_until_interrupted");
}

// SEQ-3.1
#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_an_interface_until_interrupted() {
    let config = std::env::temp_dir().join(format!("discovered-{}.toml", std::process::id()));
    let mut generator = generator();
    let running = looking(&["--json", "--write-config", config.to_str().expect("UTF-8")]);
    for psn in 0..50 {
        generator.sendpacket(roce(1, SEND, psn)).expect("sent");
    }
    generator.sendpacket(roce(2, READ, 0)).expect("sent");
    running.signal("INT");
    let (out, code, said) = results(running);
    assert_eq!(code, Some(0), "{said}");
    let all: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let streams: Vec<_> = all.iter().filter(|object| object["record"] == "stream").collect();
    let of = |qp: u32| {
        let found = streams.iter().find(|stream| stream["rdmaDestinationQP"] == qp);
        found.unwrap_or_else(|| panic!("no queue pair {qp}: {out}"))
    };
    assert_eq!((of(1)["packets"].as_u64(), &of(1)["fits"]), (Some(50), &Value::Bool(true)));
    assert_eq!((of(2)["packets"].as_u64(), &of(2)["fits"]), (Some(1), &Value::Bool(false)));
    let summary = all.last().expect("a summary");
    assert_eq!(
        (summary["readToEnd"].as_bool(), summary["captureDrops"].as_u64()),
        (Some(true), Some(0))
    );
    let starter = fs::read_to_string(&config).expect("a starter");
    assert!(starter.contains("[[source]]\ninterface = \"roce0\"\n"), "{starter}");
    fs::remove_file(&config).expect("removed");
}

#[test]
fn an_interface_is_discovered_for_as_long_as_is_asked_for() {
    in_a_namespace("discovers::inside_an_interface_for_a_time");
}

#[test]
#[ignore = "runs in a namespace of its own, started by the test without `inside`"]
fn inside_an_interface_for_a_time() {
    let mut generator = generator();
    let running = looking(&["--seconds", "1.5"]);
    generator.sendpacket(roce(1, SEND, 7)).expect("sent");
    let (out, code, said) = results(running);
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("10.0.0.1 > 10.0.0.2 qp 0x000001"), "{out}");
    assert!(!out.contains("Nothing in the captures says"), "its drops are known: {out}");
    let missing = Command::new(ROCESCOPE).args(["discover", "--interface", "none0"]).output();
    let missing = missing.expect("it runs");
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!((missing.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("rocescope: none0: ") && missing.stdout.is_empty(), "{said}");
}
