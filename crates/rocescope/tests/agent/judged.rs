//! The stream that an agent exports of the counters of a switch, read by two others: tshark and
//! libfixbuf's ipfixDump. What came over the connection is an IPFIX File as it stands.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use observe::pfc::instance::InstanceId;
use observe::pfc::{Direction, Reading};

use super::pfc_dumped::{of_ipfix_dump, pdml_has};
use super::program::{Room, Running};
use super::sonic::Redis;

/// What a program prints, which is needed for this test.
#[track_caller]
fn printed(name: &str, arguments: &[&str]) -> String {
    let output = match Command::new(name).args(arguments).output() {
        Ok(output) => output,
        Err(error) => panic!("{name} is needed for this test (`make test` installs it): {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// The octets that an agent sent of a switch's counters, in a file, and what our side read of them.
fn exported(room: &Room, keys: &str) -> (String, Vec<(Reading, Option<InstanceId>)>) {
    let _redis = Redis::recorded(&room.folder);
    let server = room.server();
    let (config, text) = room.without_frames(&server);
    let pfc = format!(
        "[pfc]\npoll_interval_ms = 50\n{keys}\n\
         [[pfc.source]]\nkind = \"sonic\"\nredis = \"./redis.sock\"\ntime = \"asked\"\n\
         resets = \"shown\"\nattest = [\"before-processing\", \"confirmed-emission\", \
         \"every-frame\", \"each-set-bit\", \"only-valid\", \"time-of-reading\", \
         \"starts-at-zero\"]\n"
    );
    std::fs::write(&config, format!("{text}{pfc}")).expect("written");
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    // Every counter of three ports twice.
    connection.until(|collector| collector.readings.len() >= 96);
    agent.signal("TERM");
    let collector = connection.heard_out();
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    let sent = collector.readings.len();
    assert!(said.contains(&format!("{sent} PFC readings serialised")), "{said}");
    let file = room.path("agent.ipfix");
    std::fs::write(&file, &collector.all).expect("written");
    (text_of(&file), collector.readings)
}

fn text_of(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// Ports, directions and priorities that are there.
fn scopes(readings: &[(Reading, Option<InstanceId>)]) -> usize {
    let all: BTreeSet<_> = readings.iter().map(|(reading, _)| reading.scope).collect();
    all.len()
}

// PFC-exp.2, PFC-rec.1, PFC-id.1
#[test]
fn libfixbuf_reads_what_an_agent_sends_of_both_directions_with_names_and_values() {
    for (keys, elements) in [("", 2), ("instance_ids = true", 3)] {
        let room = Room::new();
        let (file, readings) = exported(&room, keys);
        assert_eq!(scopes(&readings), 48);
        let out = printed("ipfixDump", &["--rfc5610", "--in", &file]);
        assert!(!out.contains("alien"), "an element without a name");
        let found = of_ipfix_dump(&out);
        assert_eq!(found.len(), readings.len());
        for (values, (reading, id)) in found.iter().zip(&readings) {
            let scope = reading.scope;
            let (mine, other) = match scope.direction {
                Direction::Received => ("ingressPhysicalInterface", "egressPhysicalInterface"),
                Direction::Transmitted => ("egressPhysicalInterface", "ingressPhysicalInterface"),
            };
            let value = |name: &str| values.get(name).cloned();
            assert_eq!(value("observationPointId"), Some(scope.point.to_string()));
            assert_eq!(value(mine), Some(scope.interface.to_string()));
            assert_eq!(value(other), None);
            assert_eq!(value("pfcPriority"), Some(scope.priority.get().to_string()));
            assert_eq!(value("pfcControlFrameTotalCount"), Some(reading.total.to_string()));
            assert!(value("observationTimeMilliseconds").is_some());
            assert_eq!(value("pfcCounterInstanceId"), id.map(|id| id.get().to_string()));
            assert_eq!(id.is_some(), elements == 3);
        }
        for name in ["pfcPriority", "pfcControlFrameTotalCount", "pfcCounterInstanceId"] {
            let text = format!("informationElementName : (len: {}) {name}\n", name.len());
            let described = out.matches(&text).count();
            let expected = usize::from(elements == 3 || name != "pfcCounterInstanceId");
            assert_eq!(described, expected, "{name}");
        }
    }
}

// PFC-rec.1, PFC-rec.2, PFC-id.1
#[test]
fn tshark_reads_what_an_agent_sends_of_both_directions_and_has_no_complaint() {
    let room = Room::new();
    let (file, readings) = exported(&room, "");
    let out = printed("tshark", &["-T", "pdml", "-r", &file]);
    assert!(!out.contains("_ws.expert"), "tshark complains");
    assert!(!out.contains("_ws.malformed"), "tshark finds it malformed");
    for (reading, _) in &readings {
        let scope = reading.scope;
        let fields = [
            format!("{:016x}", scope.point),
            format!("{:08x}", scope.interface),
            format!("{:02x}", scope.priority.get()),
            format!("{:016x}", reading.time_ms),
            format!("{:016x}", reading.total),
        ];
        assert!(pdml_has(&out, &fields), "{reading:?}");
    }
    for (direction, name) in [
        (Direction::Received, "ingress_physical_interface"),
        (Direction::Transmitted, "egress_physical_interface"),
    ] {
        let times = out.matches(&format!("name=\"cflow.{name}\"")).count();
        let expected = readings.iter().filter(|(r, _)| r.scope.direction == direction).count();
        assert_eq!(times, expected, "{name}");
    }
}
