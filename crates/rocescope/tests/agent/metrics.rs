//! What the agent says of itself: the same numbers on the control socket and as metrics.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::control::ctl;
use super::program::{Room, Running, TLS, Writer};
use super::sonic::Redis;
use super::support::{READ, SEND, roce};

/// The first address behind some words in an agent's log, and the rest of the log.
fn address(agent: &mut Running, words: &str) -> SocketAddr {
    let stderr = agent.0.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines().map(|line| line.expect("text"));
    let line = lines.find(|line| line.contains(words)).expect("a line with the address");
    // What else it says is nobody's business, but must find a reader.
    std::thread::spawn(move || lines.for_each(drop));
    let (_, behind) = line.split_once(words).expect("the words");
    behind.split('/').next().expect("an address").parse().expect("an address")
}

/// Sends octets and reads the answer to its end.
fn asked(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    asked(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

/// The samples of an answer, each line well formed and behind its HELP and TYPE.
fn samples(answer: &str) -> BTreeMap<String, f64> {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains("x-content-type-options: nosniff"), "{head}");
    let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| !help.is_empty()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert_eq!(kinds.insert(name.to_owned(), kind.to_owned()), None, "{name} twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            let family = name.split('{').next().expect("a name");
            assert!(kinds.contains_key(family), "{line} has no type before it");
            let value = value.parse().expect("a number");
            assert_eq!(samples.insert(name.to_owned(), value), None, "{name} twice");
        }
    }
    samples
}

// SEQ-10.3
#[test]
fn metrics_and_status_tell_the_same_numbers() {
    let room = Room::new();
    let server = room.server();
    let pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    room.agent_keys(&config, "metrics_listen = \"127.0.0.1:0\"");
    let mut agent = Running::agent(&config);
    let address = address(&mut agent, "serves metrics on http://");
    let mut connection = server.accept();
    let mut writer = Writer::open(&pipe);
    (0..5).for_each(|psn| writer.frame(1000, &roce(17, SEND, psn)));
    writer.frame(1000, &roce(18, READ, 0));
    writer.frame(1000, &[0; 60]);
    writer.frame(1001, &roce(17, SEND, 7));
    connection.until(|collector| {
        collector.heard.iter().any(|(report, _)| report.snapshot.counts.requests == 6)
    });

    let status = ctl(&room, &["status"]).expect("an answer");
    let (destination, session) = (&status[0], &status[0]["session"]);
    assert_eq!(session["frames"], 8);
    assert_eq!((&session["requests"], &session["violations"]), (&6.into(), &1.into()));
    let samples = samples(&get(address, "/metrics"));
    let name = destination["destination"].as_str().expect("a name");
    let of = |metric: &str| {
        let sample = format!("rocescope_agent_{metric}{{destination=\"{name}\"}}");
        let found =
            samples.get(&sample).or_else(|| samples.get(&format!("rocescope_agent_{metric}")));
        *found.unwrap_or_else(|| panic!("no {sample} in {samples:#?}"))
    };
    for (metric, value) in [
        ("frames_total", &session["frames"]),
        ("requests_total", &session["requests"]),
        ("requests_accounted_total", &session["accounted"]),
        ("violations_total", &session["violations"]),
        ("contexts", &session["contexts"]),
        ("capture_drops_total", &session["captureDrops"]),
        ("sessions_total", &destination["sessions"]),
        ("reports_skipped_total", &destination["skippedReports"]),
        ("finals_dropped_total", &destination["droppedFinals"]),
        ("disabled_streams", &status[1]["disabledStreams"]),
        ("capture_gaps_total", &status[1]["captureGaps"]),
    ] {
        assert_eq!(Some(of(metric)), value.as_f64(), "{metric}");
    }
    assert_eq!(of("connected"), 1.0);
    assert_eq!(of("disabled_streams"), 1.0);
    let not_roce: f64 = samples
        .iter()
        .filter(|(name, _)| name.starts_with("rocescope_agent_frames_not_roce_total{"))
        .map(|(_, value)| value)
        .sum();
    assert_eq!(not_roce, 1.0, "{samples:#?}");
    // Every number of the status has a metric.
    let numbers = |value: &serde_json::Value| {
        let members = value.as_object().expect("an object");
        members.values().filter(|value| value.is_number() || value.is_boolean()).count()
    };
    // `done` is none of them.
    let expected = numbers(destination) + numbers(session) + numbers(&status[1]) - 1;
    let named = samples.keys().filter(|name| !name.contains("reason=")).count();
    assert_eq!(named, expected, "{samples:#?}");
}

// SEQ-10.1, SEQ-10.3
#[test]
fn only_this_machine_is_answered_and_only_what_there_is() {
    let room = Room::new();
    let server = room.server();
    let _pipe = room.pipe();
    let config = room.config(&server, "file = \"live.pcap\"\npace = \"fast\"", TLS);
    room.agent_keys(&config, "metrics_listen = \"127.0.0.1:0\"\nmetrics_connections_max = 1");
    let mut agent = Running::agent(&config);
    let address = address(&mut agent, "serves metrics on http://");
    let healthy = get(address, "/healthz");
    assert!(
        healthy.starts_with("HTTP/1.1 200") && healthy.ends_with("\r\n\r\nalive\n"),
        "{healthy}"
    );
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        ("GET /metrics?a=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        ("GET /metrics HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n", 421),
        ("GET /metrics HTTP/1.1\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
    ] {
        let answer = asked(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(1 << 20));
    let mut stream = TcpStream::connect(address).expect("connected");
    // It need not read all of it, and what it says may be lost with the rest.
    _ = stream.write_all(long.as_bytes());
    drop(stream);
    assert!(get(address, "/healthz").ends_with("alive\n"));
}

#[test]
fn an_address_that_is_not_of_this_machine_is_refused() {
    for address in ["0.0.0.0:9740", "[::]:9740", "192.0.2.1:9740", "localhost:9740"] {
        let text = format!("[agent]\nmetrics_listen = \"{address}\"\n");
        let read = rocescope::config::parse("a.toml", &text, std::path::Path::new(""));
        let errors = read.expect_err("refused");
        assert_eq!(errors[0].key, "agent.metrics_listen");
        assert!(errors[0].to_string().contains("an address of this machine alone"), "{errors:?}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let room = Room::new();
    let server = room.server();
    let config = room.config(&server, "file = \"live.pcap\"", TLS);
    let port = server.port();
    room.agent_keys(&config, &format!("metrics_listen = \"127.0.0.1:{port}\""));
    std::fs::write(room.path("live.pcap"), "").expect("written");
    let (code, said) = Running::agent(&config).ended();
    assert_eq!(code, Some(1));
    let line = said.lines().last().expect("a line");
    assert!(line.contains(&format!("agent.metrics_listen: 127.0.0.1:{port}")), "{said}");
}

// PFC-op.1
#[test]
fn counters_without_a_reading_are_named_by_metrics_as_far_as_there_is_room() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let server = room.server();
    let config = room.config(&server, "interface = \"lo\"", TLS);
    room.agent_keys(&config, "metrics_listen = \"127.0.0.1:0\"");
    let text = std::fs::read_to_string(&config).expect("text");
    let text = text.replace("[[source]]\ninterface = \"lo\"\n", "");
    let pfc = "[pfc]\npoll_interval_ms = 50\nmissing_shown_max = 2\n\
               [[pfc.source]]\nkind = \"sonic\"\nredis = \"./redis.sock\"\ntime = \"asked\"\n\
               directions = [\"received\"]\nattest = [\"before-processing\", \"every-frame\", \
               \"each-set-bit\", \"only-valid\", \"time-of-reading\", \"starts-at-zero\"]\n";
    std::fs::write(&config, format!("{text}{pfc}")).expect("written");
    let key = "COUNTERS:oid:0x1000000000013";
    for priority in [2, 3, 6] {
        redis.put(2, &["HDEL", key, &format!("SAI_PORT_STAT_PFC_{priority}_RX_PKTS")]);
    }
    let mut agent = Running::agent(&config);
    let address = address(&mut agent, "serves metrics on http://");
    let mut connection = server.accept();
    connection.until(|collector| collector.readings.len() >= 21);
    let samples = loop {
        let samples = samples(&get(address, "/metrics"));
        if samples["rocescope_agent_pfc_counters_missing"] == 3.0 {
            break samples;
        }
    };
    let missing: Vec<_> =
        samples.iter().filter(|(name, _)| name.contains("pfc_counter_missing{")).collect();
    let sample = |priority| {
        format!(
            "rocescope_agent_pfc_counter_missing{{source=\"pfc.source[0]\",port=\"Ethernet4\",\
             direction=\"received\",priority=\"{priority}\",reason=\"no-counter\"}}"
        )
    };
    assert_eq!(missing, [(&sample(2), &1.0), (&sample(3), &1.0)]);
}
