//! Collector files.

use std::path::Path;
use std::time::Duration;

use rocescope::config::{CollectorLimits, Ipfix, PeerIdentity, QueueClient, QueueMode, Server};
use wire::element::DraftElement;

use super::{collector, errors, range};

/// The keys that others rely on.
const FIXED: &str = "[ipfix]\nlisten = \"127.0.0.1:4740\"\ncertificate = \"collector.pem\"\n\
                     key = \"collector.key\"\nauthority = \"ca.pem\"\ninactivity_timeout_s = 60\n\
                     [[ipfix.peer]]\nname = \"agent.example\"\ndomains = [1]\n\
                     [elements]\npen = 32473\n[http]\nlisten = \"127.0.0.1:8080\"\n\
                     [store]\ndirectory = \"data\"\n[limits]\nepochs_max = 1_000_000\n";

const LEAST: &str = "[ipfix]\ncertificate = \"c.pem\"\nkey = \"c.key\"\nauthority = \"ca.pem\"\n\
                     [[ipfix.peer]]\nname = \"agent.example\"\ndomains = [1]\n";

fn ipfix_of(text: &str) -> Ipfix {
    collector(text).ipfix.expect("[ipfix]")
}

#[test]
fn the_fixed_keys_are_read_and_are_the_defaults() {
    let read = collector(FIXED);
    let ipfix = read.ipfix.as_ref().unwrap();
    assert_eq!(ipfix.listen.to_string(), "127.0.0.1:4740");
    assert_eq!(ipfix.certificate.path, Path::new("etc/collector.pem"));
    assert_eq!(ipfix.private_key.path, Path::new("etc/collector.key"));
    assert_eq!((ipfix.authority.line, ipfix.authority.key.as_str()), (5, "ipfix.authority"));
    assert_eq!(ipfix.inactivity_timeout, Duration::from_secs(60));
    assert_eq!(ipfix.peers[0].identity, PeerIdentity::Name("agent.example".into()));
    assert_eq!(ipfix.peers[0].domains, [1]);
    assert_eq!(read.elements.id(DraftElement::RdmaSequenceEpochId).pen, 32473);
    assert_eq!(read.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(read.store.directory.path, Path::new("etc/data"));
    assert_eq!(read.limits, CollectorLimits::default());

    let least = collector(LEAST);
    let least_ipfix = least.ipfix.as_ref().unwrap();
    assert_eq!(least_ipfix.listen, ipfix.listen);
    assert_eq!(least_ipfix.inactivity_timeout, ipfix.inactivity_timeout);
    assert_eq!((least.elements, least.http, least.limits), (read.elements, read.http, read.limits));
    assert_eq!(least.store.directory.path, read.store.directory.path);
}

// SEQ-7.10, SEQ-10.3
#[test]
fn every_number_is_held_to_its_range() {
    for limit in CollectorLimits::TABLE {
        let text = format!("{LEAST}[limits]\n{} = @\n", limit.name);
        range(&text, &format!("limits.{}", limit.name), limit.min, limit.max);
        assert!((limit.min..=limit.max).contains(&limit.default), "{limit:?}");
    }
    let timeout = LEAST.replace("[ipfix]\n", "[ipfix]\ninactivity_timeout_s = @\n");
    range(&timeout, "ipfix.inactivity_timeout_s", 1, 86_400);
    let domain = LEAST.replace("[1]", "[@]");
    range(&domain, "ipfix.peer[0].domains[0]", 0, u64::from(u32::MAX));
}

// SEQ-7.10, SEQ-7.13
#[test]
fn the_bounds_of_a_session_are_the_ones_of_the_file() {
    let text = LEAST.replace("[ipfix]\n", "[ipfix]\ninactivity_timeout_s = 7\n");
    let text = format!(
        "{text}[limits]\ndomains_max = 1\nepochs_max = 2\nclosed_retention_s = 3\n\
         templates_max = 4\ntemplate_fields_max = 5\nelements_learned_max = 6\n"
    );
    let read = collector(&text);
    let session = read.session_limits();
    assert_eq!((session.domains_max, session.epochs_max), (1, 2));
    assert_eq!((session.inactivity_ms, session.closed_retention_ms), (7_000, 3_000));
    let decoder = read.decoder_limits();
    assert_eq!((decoder.domains_max, decoder.templates_max), (1, 4));
    assert_eq!((decoder.fields_max, decoder.learned_max), (5, 6));
}

#[test]
fn a_limit_that_is_set_is_the_one_of_its_name() {
    for limit in CollectorLimits::TABLE {
        let value = limit.min + 1;
        let read = collector(&format!("{LEAST}[limits]\n{} = {value}\n", limit.name));
        for (row, found) in read.limits.rows() {
            let expected = if row.name == limit.name { value } else { row.default };
            assert_eq!(found, expected, "{} with {} set", row.name, limit.name);
        }
    }
}

// SEQ-10.1
#[test]
fn a_collector_without_certificates_or_peers_is_refused() {
    assert_eq!(
        errors("[http]\n"),
        [
            "a.toml:1: ipfix.certificate: missing, expected the path of a PEM file",
            "a.toml:1: ipfix.key: missing, expected the path of a PEM file",
            "a.toml:1: ipfix.authority: missing, expected the path of a PEM file",
            "a.toml:1: ipfix.peer: missing, expected at least one [[ipfix.peer]]",
        ]
    );
    let none = LEAST.split("[[").next().unwrap();
    assert_eq!(
        errors(none),
        ["a.toml:1: ipfix.peer: missing, expected at least one [[ipfix.peer]]"]
    );
    let empty = format!("{none}peer = []\n");
    let numbers = format!("{none}peer = [5]\n");
    assert_eq!(errors(&numbers), ["a.toml:5: ipfix.peer[0]: 5, expected a table"]);
    assert_eq!(
        errors(&empty),
        ["a.toml:1: ipfix.peer: missing, expected at least one [[ipfix.peer]]"]
    );
    assert_eq!(
        errors(&LEAST.replace("\"c.pem\"", "\"\"")),
        ["a.toml:2: ipfix.certificate: \"\", expected a path"]
    );
}

// SEQ-10.1
#[test]
fn a_peer_is_known_by_a_name_or_a_fingerprint_for_domains_that_are_named() {
    let digits = "0123456789abcdefABCDEF0123456789".repeat(2);
    let plain =
        LEAST.replace("name = \"agent.example\"", &format!("fingerprint = \"sha256:{digits}\""));
    let PeerIdentity::Fingerprint(octets) = ipfix_of(&plain).peers[0].identity else {
        panic!("expected a fingerprint")
    };
    assert_eq!((octets[0], octets[1], octets[15]), (0x01, 0x23, 0x89));
    let colons: Vec<&str> =
        digits.as_bytes().chunks(2).map(|c| std::str::from_utf8(c).unwrap()).collect();
    let with_colons = plain.replace(&digits, &colons.join(":"));
    assert_eq!(ipfix_of(&with_colons).peers, ipfix_of(&plain).peers);
    let capitals = ipfix_of(&LEAST.replace("agent.example", "Agent.Example"));
    assert_eq!(capitals.peers, ipfix_of(LEAST).peers);

    let peer = "a.toml:5: ipfix.peer[0]";
    for (from, to, expected) in [
        ("name = \"agent.example\"\n", "", format!("{peer}: neither name nor fingerprint, expected one of them")),
        ("domains = [1]\n", "", format!("{peer}.domains: missing, expected an array of Observation Domains")),
        ("[1]", "[]", "a.toml:7: ipfix.peer[0].domains: [], expected an array of at least one Observation Domain".into()),
        ("[1]", "[1, 2, 1]", "a.toml:7: ipfix.peer[0].domains[2]: 1, expected each Observation Domain once".into()),
        ("domains", "fingerprint = \"sha256:00\"\ndomains", "a.toml:7: ipfix.peer[0].fingerprint: beside a name, expected one of them".into()),
    ] {
        assert_eq!(errors(&LEAST.replace(from, to)), [expected]);
    }
    for bad in ["", "*.example", "a..b", "-a", "a-", "a_b", "a b", &"a".repeat(64), "a.example."] {
        let errors = errors(&LEAST.replace("agent.example", bad));
        assert_eq!(errors.len(), 1, "{bad}");
        assert!(errors[0].ends_with("expected a DNS name, without wildcards"), "{errors:?}");
    }
    assert_eq!(errors(&LEAST.replace("agent.example", &"a".repeat(63))), [""; 0]);
    for bad in [
        &digits[1..],
        &format!("{digits}0"),
        &digits.replace('f', "g"),
        &digits.replacen("01", "0:1", 1),
    ] {
        let errors = errors(&plain.replace(&digits, bad));
        assert_eq!(errors.len(), 1, "{bad}");
        assert!(
            errors[0].ends_with("expected \"sha256:\" and 64 hexadecimal digits"),
            "{errors:?}"
        );
    }
}

// SEQ-10.1
#[test]
fn lists_of_what_is_revoked_may_be_named() {
    assert_eq!(ipfix_of(LEAST).revocation, None);
    let with =
        |value: &str| LEAST.replace("[ipfix]\n", &format!("[ipfix]\nrevocation = {value}\n"));
    let revocation = ipfix_of(&with("\"crl.pem\"")).revocation.unwrap();
    assert_eq!(revocation.path, Path::new("etc/crl.pem"));
    assert_eq!((revocation.line, revocation.key.as_str()), (2, "ipfix.revocation"));
    assert_eq!(errors(&with("7")), ["a.toml:2: ipfix.revocation: 7, expected a path"]);
}

#[test]
fn a_peer_that_stands_twice_is_refused() {
    let twice = format!("{LEAST}[[ipfix.peer]]\nname = \"AGENT.example\"\ndomains = [2]\n");
    assert_eq!(
        errors(&twice),
        ["a.toml:8: ipfix.peer[1]: the same peer as on line 5, expected each once"]
    );
}

#[test]
fn an_address_to_listen_on_has_a_port() {
    for bad in ["\"127.0.0.1\"", "\"localhost:80\"", "8080", "\"127.0.0.1:65536\""] {
        assert_eq!(
            errors(&format!("{LEAST}[http]\nlisten = {bad}\n")),
            [format!(
                "a.toml:9: http.listen: {bad}, expected an address and a port, such as \
                 \"127.0.0.1:4740\""
            )]
        );
    }
    let six = collector(&format!("{LEAST}[http]\nlisten = \"[::1]:8080\"\n"));
    assert!(six.http.listen.is_ipv6());
}

/// A collector with one device whose queues are asked for, its lines from line 8 on.
fn with_device(lines: &str) -> String {
    format!("{LEAST}[[queues.device]]\n{lines}")
}

const DEVICE: &str = "name = \"leaf-1\"\nurl = \"https://leaf-1.example\"\n\
                      token_file = \"token\"\nauthority = \"ca.pem\"\n";

// QUE-sec.1
#[test]
fn a_device_whose_queues_are_asked_for_is_named_with_how_each_knows_the_other() {
    assert_eq!(collector(LEAST).queues, []);
    let read = collector(&with_device(DEVICE)).queues.remove(0);
    assert_eq!(
        (read.name.as_str(), read.host.as_str(), read.port),
        ("leaf-1", "leaf-1.example", 443)
    );
    assert_eq!(read.mode, QueueMode::Subscribe);
    assert_eq!(read.poll_interval, Duration::from_secs(10));
    assert!(matches!(&read.server, Server::Name { name, .. } if name == "leaf-1.example"));
    assert!(
        matches!(&read.client, QueueClient::Token(file) if file.path == Path::new("etc/token"))
    );
    let more = DEVICE
        .replace("https://leaf-1.example", "https://[::1]:8443/")
        .replace("token_file = \"token\"", "certificate = \"c.pem\"\nkey = \"c.key\"");
    let more = format!("{more}server_name = \"leaf\"\nmode = \"poll\"\npoll_interval_s = 1\n");
    let read = collector(&with_device(&more)).queues.remove(0);
    assert_eq!(read.to_string(), "https://[::1]:8443");
    assert_eq!((read.mode, read.poll_interval), (QueueMode::Poll, Duration::from_secs(1)));
    assert_eq!(read.files().len(), 3);
    range(
        &with_device(&format!("{DEVICE}poll_interval_s = @\n")),
        "queues.device[0].poll_interval_s",
        1,
        86_400,
    );
    let of = "queues.device[0]";
    let url = "expected \"https://host\" or \"https://host:port\", without a path";
    for (from, to, expected) in [
        (
            "name = \"leaf-1\"\n",
            "",
            format!("8: {of}.name: missing, expected what the device is called"),
        ),
        (
            "\"leaf-1\"",
            "\"leaf 1\"",
            format!("9: {of}.name: \"leaf 1\", expected 1 to 253 octets without spaces"),
        ),
        ("https:", "http:", format!("10: {of}.url: \"http://leaf-1.example\", {url}")),
        (
            ".example\"",
            ".example/restconf\"",
            format!("10: {of}.url: \"https://leaf-1.example/restconf\", {url}"),
        ),
        (
            ".example\"",
            ".example:0\"",
            format!("10: {of}.url: \"https://leaf-1.example:0\", {url}"),
        ),
        (
            "token_file = \"token\"\n",
            "",
            format!(
                "8: {of}: neither a certificate with its key nor a token_file, expected one of them"
            ),
        ),
        (
            "authority",
            "key = \"k\"\nauthority",
            format!("12: {of}.key: beside a token, expected a certificate or a token"),
        ),
        (
            "token_file = \"token\"",
            "key = \"k\"",
            format!("8: {of}.certificate: missing, expected the path of a PEM file"),
        ),
        (
            "authority = \"ca.pem\"\n",
            "",
            format!("8: {of}.authority: missing, expected the path of a PEM file"),
        ),
        (
            "token_file",
            "mode = \"ask\"\ntoken_file",
            format!("11: {of}.mode: \"ask\", expected \"subscribe\" or \"poll\""),
        ),
    ] {
        let found = errors(&with_device(&DEVICE.replace(from, to)));
        assert_eq!(found, [format!("a.toml:{expected}")], "{to}");
    }
    let twice = format!("{}[[queues.device]]\n{DEVICE}", with_device(DEVICE));
    assert_eq!(
        errors(&twice),
        ["a.toml:13: queues.device[1].name: the same as on line 8, expected each once"]
    );
    let other = twice.replacen("leaf-1", "leaf-2", 1);
    assert_eq!(errors(&other), [""; 0]);
    assert_eq!(
        errors(&format!("{other}[limits]\nqueue_devices_max = 1\n")),
        ["a.toml:13: queues.device[1]: one more than 1, limits.queue_devices_max"]
    );
}

#[test]
fn who_only_asks_devices_needs_no_ipfix() {
    let alone = format!("[[queues.device]]\n{DEVICE}");
    let read = collector(&alone);
    assert_eq!((read.ipfix.is_none(), read.queues.len()), (true, 1));
    assert_eq!(read.inactivity_timeout(), ipfix_of(LEAST).inactivity_timeout);
    // What stands in it has to be whole, and without a device there is nothing to do.
    let half = format!("[ipfix]\nlisten = \"127.0.0.1:4740\"\n{alone}");
    assert!(
        errors(&half).contains(
            &"a.toml:1: ipfix.certificate: missing, expected the path of a PEM file".into()
        )
    );
    assert!(errors("[store]\ndirectory = \"d\"\n").len() > 3);
    // A wrong device is no reason to ask for more.
    let bad = errors(&alone.replace("https:", "http:"));
    assert!(bad.len() == 1 && bad[0].contains("queues.device[0].url"), "{bad:?}");
    // Nobody can export to it.
    let exporter = "[[pfc.device]]\nname = \"d\"\nexporter = \"agent.example\"\n";
    let errors = errors(&format!("{alone}{exporter}"));
    assert!(errors.iter().any(|error| error.contains("of an [[ipfix.peer]]")), "{errors:?}");
}

#[test]
fn the_example_of_the_documentation_is_a_whole_collector() {
    let text = include_str!("../../../../docs/queue.md");
    let of_device = |block: &&str| block.contains("[[queues.device]]");
    let block =
        text.split("```toml\n").filter_map(|block| block.split("```").next()).find(of_device);
    let read = collector(block.expect("an example"));
    assert!(read.ipfix.is_none() && read.queues[0].name == "leaf-1");
}
