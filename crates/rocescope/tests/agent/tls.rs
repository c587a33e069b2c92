//! The program over real TLS.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use observe::collect::Verdict;
use observe::outcome::Outcome;
use observe::report::Flags;
use serde_json::Value;

use super::program::{DAY, ROCESCOPE, Room, Running, TLS, Writer};
use super::support::{Collector, SEND, roce};

fn capture(name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures/softroce").join(name);
    format!("file = {:?}\npace = \"fast\"", path.display().to_string())
}

/// The final reports that `rocescope meter` makes of the same capture.
fn offline(name: &str) -> Vec<(u64, u64, u64, u64)> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures/softroce").join(name);
    let output = Command::new(ROCESCOPE)
        .args(["meter", "--attest-all", "--json"])
        .arg(path)
        .output()
        .expect("meter runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut epochs: Vec<_> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|report| {
            let of = |name: &str| report[name].as_u64().expect("a number");
            (
                of("rdmaDestinationQP"),
                of("requestPacketTotalCount"),
                of("skippedPsnTotalCount"),
                of("flowStartMilliseconds"),
            )
        })
        .collect();
    epochs.sort_unstable();
    epochs
}

#[track_caller]
fn stored(collector: Collector) -> Vec<(u64, u64, u64, u64)> {
    for (report, verdict) in &collector.heard {
        assert!(
            matches!(verdict, Verdict::Accepted { .. } | Verdict::Repeated),
            "{verdict:?}: {report:?}"
        );
    }
    let mut epochs = Vec::new();
    for retired in collector.end() {
        assert_eq!(retired.outcome, Outcome::Complete);
        let snapshot = retired.epoch.latest.snapshot;
        let counts = snapshot.counts;
        epochs.push((
            u64::from(snapshot.key.qp),
            counts.requests,
            counts.skipped,
            snapshot.start_ms,
        ));
    }
    epochs.sort_unstable();
    epochs
}

// SEQ-10.1, SEQ-6.1, SEQ-7.14
#[test]
fn a_capture_that_is_played_arrives_over_tls_as_the_meter_has_it() {
    for name in ["e1_write_loss2.rcv.pcap", "d2_write_read_mixed.rcv.pcap"] {
        let room = Room::new();
        let server = room.server();
        let config = room.config(&server, &capture(name), TLS);
        let agent = Running::agent(&config);
        let collector = server.accept().heard_out();
        let (code, said) = agent.ended();
        assert_eq!(code, Some(0), "{said}");
        let (epochs, expected) = (stored(collector), offline(name));
        assert_eq!(epochs, expected, "{name}");
    }
}

// SEQ-10.1
#[test]
fn a_collector_with_another_name_or_authority_gets_nothing() {
    let other_name = TLS.replace("collector.example", "other.example");
    for (authority, export) in [("ca", other_name.as_str()), ("rogue", TLS)] {
        let room = Room::new();
        room.certificates("rogue", "collector.example", "agent.example");
        let server = room.server_of(authority);
        let config = room.config(&server, &capture("e1_write_loss2.rcv.pcap"), export);
        let agent = Running::agent(&config);
        let (_, shaken) = server.shake_hands();
        assert!(shaken.is_err(), "{authority}");
        agent.signal("TERM");
        let (code, said) = agent.ended();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("invalid peer certificate"), "{said}");
    }
}

// SEQ-10.1
#[test]
fn a_collector_whose_certificate_is_over_or_not_yet_valid_gets_nothing() {
    let now = SystemTime::now();
    let times =
        [([now - 9 * DAY, now - DAY], "expired"), ([now + DAY, now + 9 * DAY], "not valid yet")];
    for (valid, why) in times {
        let room = Room::new();
        room.certificates_for("ca", "collector.example", "agent.example", valid);
        let server = room.server();
        let config = room.config(&server, &capture("e1_write_loss2.rcv.pcap"), TLS);
        let agent = Running::agent(&config);
        assert!(server.shake_hands().1.is_err(), "{why}");
        agent.signal("TERM");
        let (code, said) = agent.ended();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(&format!("invalid peer certificate: certificate {why}")), "{said}");
    }
}

/// A server by OpenSSL that has no TLS 1.3, and tells what became of its first connection.
const OPENSSL_SERVER: &str = "
import socket, ssl, sys
directory, version = sys.argv[1], sys.argv[2]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(directory + '/ca-collector.pem', directory + '/ca-collector.key')
context.minimum_version = ssl.TLSVersion.TLSv1_2
context.maximum_version = getattr(ssl.TLSVersion, version)
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
raw, _ = listener.accept()
try:
    stream = context.wrap_socket(raw, server_side=True)
    print(stream.version(), flush=True)
    while stream.recv(65536): pass
except (ssl.SSLError, OSError) as error:
    print('refused', getattr(error, 'reason', error), flush=True)
";

// SEQ-10.1
#[test]
fn a_collector_that_has_tls_1_2_alone_gets_nothing_and_tls_1_3_of_another_library_is_taken() {
    for (version, expected) in [("TLSv1_2", "refused"), ("TLSv1_3", "TLSv1.3")] {
        let room = Room::new();
        let mut server = Command::new("python3")
            .args(["-c", OPENSSL_SERVER])
            .arg(&room.folder)
            .arg(version)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed for this test");
        let mut lines = BufReader::new(server.stdout.take().expect("a pipe")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let port = line();
        let config = room.config(&room.server(), &capture("e1_write_loss2.rcv.pcap"), TLS);
        let text = std::fs::read_to_string(&config).expect("text");
        let lines: Vec<_> = text
            .lines()
            .map(|line| match line.starts_with("collector = ") {
                true => format!("collector = \"127.0.0.1:{port}\""),
                false => line.to_owned(),
            })
            .collect();
        std::fs::write(&config, lines.join("\n")).expect("written");
        let agent = Running::agent(&config);
        let found = line();
        assert!(found.starts_with(expected), "{version}: {found}");
        agent.signal("TERM");
        let (code, said) = agent.ended();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(said.contains("TLS: "), version == "TLSv1_2", "{said}");
        server.wait().expect("it ends");
    }
}

// SEQ-10.1
#[test]
fn a_collector_can_be_known_by_its_fingerprint() {
    let room = Room::new();
    let server = room.server();
    let digest = |name: &str| {
        use rustls::pki_types::{CertificateDer, pem::PemObject as _};
        let certificate = CertificateDer::from_pem_file(room.path(name)).expect("a certificate");
        let digest = ring::digest::digest(&ring::digest::SHA256, &certificate);
        digest.as_ref().iter().map(|octet| format!("{octet:02x}")).collect::<String>()
    };
    let export = |digest: String| {
        format!(
            "fingerprint = \"sha256:{digest}\"\ncertificate = \"ca-agent.pem\"\nkey = \"ca-agent.key\""
        )
    };
    let name = "e1_write_loss2.rcv.pcap";
    let config = room.config(&server, &capture(name), &export(digest("ca-agent.pem")));
    let agent = Running::agent(&config);
    assert!(server.shake_hands().1.is_err());
    agent.signal("TERM");
    let (_, said) = agent.ended();
    assert!(said.contains(&format!("sha256:{}", digest("ca-collector.pem"))), "{said}");
    let config = room.config(&server, &capture(name), &export(digest("ca-collector.pem")));
    let agent = Running::agent(&config);
    assert_eq!(stored(server.accept().heard_out()), offline(name));
    assert_eq!(agent.ended().0, Some(0));
}

// SEQ-4.6, SEQ-10.2, SEQ-7.13
#[test]
fn a_connection_that_is_cut_is_made_again_with_fresh_epochs() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    let agent = Running::agent(&config);
    let mut first = server.accept();
    let mut writer = Writer::open(&pipe);
    (0..5).for_each(|psn| writer.frame(1000, &roce(17, SEND, psn)));
    first.until(|collector| !collector.heard.is_empty());
    let collector = std::mem::replace(&mut first.collector, Collector::new());
    drop(first);
    assert_eq!(collector.end()[0].outcome, Outcome::Incomplete);
    let mut second = server.accept();
    (5..8).for_each(|psn| writer.frame(1001, &roce(17, SEND, psn)));
    second.until(|collector| !collector.heard.is_empty());
    // SIGTERM: finals out, then the end that TLS tells of.
    agent.signal("TERM");
    let mut collector = second.heard_out();
    let reports = collector.accepted();
    let ids: Vec<_> = reports.iter().map(|r| (r.epoch_id, r.report_id)).collect();
    assert_eq!(ids, [(1, 1), (1, 2)]);
    assert!(reports[1].snapshot.flags.has(Flags::FINAL_EPOCH));
    assert_eq!(reports[1].snapshot.counts.requests, 3);
    assert_eq!(collector.end()[0].outcome, Outcome::Complete);
    assert_eq!(agent.ended().0, Some(0));
}

// SEQ-10.1
#[test]
fn without_tls_the_same_arrives_on_this_machine() {
    let room = Room::new();
    let server = room.server();
    let words = rocescope::config::PLAIN_TCP_WORDS;
    let name = "e1_write_loss2.rcv.pcap";
    let config = room.config(&server, &capture(name), &format!("plain_tcp = \"{words}\""));
    let agent = Running::agent(&config);
    assert_eq!(stored(server.plain().heard_out()), offline(name));
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0));
    assert!(said.contains("WITHOUT TLS"), "{said}");
}
