//! `rocescope demo` without `--once`, and what becomes of its programs when it is killed.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use super::program::{Place, children, signal};

#[test]
fn a_demo_that_stays_says_where_its_collector_is_and_ends_well() {
    let place = Place::new();
    let mut demo = place.command(&["demo"]).spawn().expect("the demo starts");
    let mut lines = BufReader::new(demo.stdout.take().expect("a pipe")).lines();
    let mut seen = Vec::new();
    let line = lines.find_map(|line| {
        let line = line.expect("text");
        seen.push(line.clone());
        line.strip_prefix("collector   ").map(str::to_owned)
    });
    let line = line.unwrap_or_else(|| panic!("no address in {seen:#?}"));
    let address = line.split(' ').next().expect("a word").parse::<std::net::SocketAddr>();
    std::net::TcpStream::connect(address.expect("an address")).expect("it listens");
    let directory = lines.next().expect("a line").expect("text");
    let (_, directory) = directory.split_once("directory   ").expect("the directory");
    assert!(std::path::Path::new(directory).join("data/results.db").is_file());
    signal(&demo, "INT");
    assert_eq!(demo.wait().expect("ended").code(), Some(0));
    assert!(place.names().is_empty());
}

#[test]
fn programs_of_a_demo_that_is_killed_end_with_it() {
    let place = Place::new();
    let mut demo = place.command(&["demo"]).spawn().expect("the demo starts");
    let mut started = Vec::new();
    while started.is_empty() {
        assert_eq!(demo.try_wait().expect("a child"), None, "ended before it had begun");
        started = children(demo.id());
    }
    demo.kill().expect("killed");
    demo.wait().expect("ended");
    let runs = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/stat"));
        // One that has ended may still be waited for by whoever has it now.
        status.is_ok_and(|status| !status.contains(") Z "))
    };
    let since = Instant::now();
    while started.iter().any(runs) {
        assert!(since.elapsed() < Duration::from_secs(30), "{started:?} still run");
        std::thread::yield_now();
    }
}
