//! `rocescope pki init`: two configurations that work together as they stand.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

use rocescope::example::GAPS;

use super::program::{Place, measured, metered, objects, signal, stream, text};

/// A free port, by the system's word of a moment ago.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.local_addr().expect("bound").port()
}

/// Ends with the test.
struct Collector(Child);

impl Drop for Collector {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

// SEQ-10.1
#[test]
fn the_two_configurations_work_together_and_meter_what_came_with_them() {
    let place = Place::new();
    let made = place.run(&["pki", "init", "try"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    // The ports are the only thing that a test cannot take as it stands: others may listen there.
    let port = port();
    for name in ["try/collector.toml", "try/agent.toml"] {
        let path = place.path().join(name);
        let toml = fs::read_to_string(&path).expect("text");
        assert!(toml.contains("127.0.0.1:4740"));
        let toml = toml.replace("127.0.0.1:4740", &format!("127.0.0.1:{port}"));
        fs::write(&path, toml.replace("127.0.0.1:8080", "127.0.0.1:0")).expect("written");
        let checked = place.run(&["check", name]);
        assert!(checked.status.success(), "{}", text(&checked.stderr));
    }
    let mut collector = place.command(&["collector", "--config", "try/collector.toml"]);
    let mut collector = Collector(collector.spawn().expect("the collector starts"));
    let log = BufReader::new(collector.0.stderr.take().expect("a pipe"));
    let mut log = log.lines().map(|line| line.expect("text"));
    assert!(log.by_ref().any(|line| line.contains("listens on")), "it does not listen");
    let agent = place.run(&["agent", "--config", "try/agent.toml"]);
    assert!(agent.status.success(), "{}", text(&agent.stderr));
    signal(&collector.0, "TERM");
    assert!(collector.0.wait().expect("ended").success());
    let replayed = place.run(&["replay", "--json", "try/data/archive"]);
    let rows = objects(&replayed.stdout);
    let truth = metered(&place, GAPS.original);
    assert_eq!(rows.len(), truth.len());
    for row in rows {
        assert_eq!(row["outcome"], "complete", "{row}");
        assert_eq!(measured(&row), measured(&truth[&stream(&row)]));
    }
}

#[test]
fn keys_are_for_their_owner_and_nothing_is_overwritten() {
    let place = Place::new();
    assert!(place.run(&["pki", "init", "try"]).status.success());
    let mode = |name: &str| {
        let about = fs::metadata(place.path().join("try").join(name)).expect("there");
        about.permissions().mode() & 0o777
    };
    assert_eq!(["agent.key", "collector.key"].map(mode), [0o600; 2]);
    assert!(place.path().join("try/example.pcap").is_file());

    let key = fs::read(place.path().join("try/agent.key")).expect("a key");
    fs::remove_file(place.path().join("try/agent.toml")).expect("removed");
    let again = place.run(&["pki", "init", "try"]);
    assert_eq!(again.status.code(), Some(1));
    let said = text(&again.stderr);
    assert_eq!(said, "rocescope: try/ca.pem is there already, expected a directory without it\n");
    assert_eq!(fs::read(place.path().join("try/agent.key")).expect("a key"), key);
    assert!(!place.path().join("try/agent.toml").exists(), "something was made all the same");

    fs::write(place.path().join("file"), "").expect("written");
    let output = place.run(&["pki", "init", "file"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let place = Place::new();
    assert!(place.run(&["pki", "init", "try"]).status.success());
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("bound").to_string();
    let path = place.path().join("try/collector.toml");
    let toml = fs::read_to_string(&path).expect("text");
    fs::write(&path, toml.replace("127.0.0.1:4740", &address)).expect("written");
    let output = place.run(&["collector", "--config", "try/collector.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let line = said.lines().last().expect("a line");
    assert!(line.contains("ipfix.listen") && line.contains(&address), "{said}");
}
