//! Device files.

use std::path::Path;
use std::time::Duration;

use observe::meter::WhenFull;
use observe::provision::{Attestation, Generation, Match};
use observe::report::StreamKey;
use rocescope::config::{ATTESTATIONS, Icrc, MeterLimits, PLAIN_TCP_WORDS, Pace, Security, Server};
use wire::element::DraftElement;
use wire::frame::{Family, Layer, Namespace};

use super::{ATTESTED, device, errors, range};

const STREAM: &str = "[[stream]]\nsource = \"10.0.0.1\"\ndestination = \"10.0.0.2\"\nqp = 17\n\
                      pkey = 0xffff\n";

fn stream(more: &str) -> String {
    format!("{STREAM}{more}\n[stream.attest]\n{ATTESTED}")
}

fn rule(keys: &str) -> String {
    format!("[[rule]]\n{keys}\n[rule.attest]\n{ATTESTED}")
}

const BOTH: &str = "sources = [\"10.0.0.0/8\"]\ndestinations = [\"10.0.0.0/8\"]";

/// The namespace of the one stream of a file.
fn namespace(text: &str) -> Option<Namespace> {
    match &device(text).provisioned[0].rule.streams {
        Match::Exact { namespace, .. } => *namespace,
        Match::Range { .. } => panic!("expected a stream"),
    }
}

#[test]
fn what_a_device_file_says_is_what_the_meter_gets() {
    let text = format!(
        "[observation]\ndomain = 7\npoint = 18446744073709551615\nlayer = \"erspan\"\n\
         [elements]\npen = 64512\n[elements.ids]\npfcPriority = 400\n\
         [meter]\nwindow = 64\nwhen_full = \"evict\"\nidle_timeout_s = 30\nicrc = \"check\"\n\
         contexts_max = 10\nlabels_octets_max = 4096\nreport_id_max = 9\n\
         {STREAM}vlan = 100\ninner_vlan = 7\nwindow = 128\ngeneration = \"established\"\n\
         revision = 3\n[stream.attest]\n{ATTESTED}\
         [[rule]]\nsources = [\"fd00::/8\"]\ndestinations = [\"fd00::/8\", \"fe80::1\"]\n\
         qp = [16, 32]\npkeys = [1, 0xffff]\n[rule.attest]\n{ATTESTED}"
    );
    let read = device(&text);
    assert_eq!((read.observation.domain, read.observation.point), (7, u64::MAX));
    assert_eq!(read.observation.layer, Layer::Erspan);
    assert_eq!(read.elements.pen(), 64512);
    assert_eq!(read.elements.id(DraftElement::PfcPriority).id, 400);
    assert_eq!(read.elements.id(DraftElement::RdmaDestinationQp).id, 21);
    assert_eq!(read.metering.icrc, Icrc::Check);
    let settings = read.metering.settings(true, 5);
    assert_eq!(settings.when_full, WhenFull::Evict);
    assert_eq!(settings.idle_ns, Some(30_000_000_000));
    assert_eq!((settings.periodic, settings.seed), (true, 5));
    let limits = settings.limits;
    assert_eq!(
        (limits.contexts_max, limits.labels_octets_max, limits.report_id_max),
        (10, 4096, 9)
    );

    let [exact, range] = &read.provisioned[..] else { panic!("{:?}", read.provisioned) };
    assert_eq!((exact.key.as_str(), exact.line), ("stream[0]", 17));
    assert_eq!(exact.rule.window.get(), 128);
    assert_eq!(exact.rule.generation, Generation::Established);
    assert_eq!(exact.rule.revision, 3);
    assert_eq!(exact.rule.attestation, Attestation::ALL);
    let Match::Exact { addresses, qp, pkey, namespace } = exact.rule.streams else { panic!() };
    assert_eq!(addresses.family, Family::V4);
    assert_eq!((addresses.source[3], addresses.destination[3]), (1, 2));
    assert_eq!((qp, pkey), (17, 0xffff));
    assert_eq!(namespace, Some(Namespace { outer_vlan: 100, inner_vlan: 7, segment: 0 }));

    assert_eq!(range.key, "rule[0]");
    assert_eq!(range.rule.window.get(), 64);
    assert_eq!(range.rule.generation, Generation::Unverified);
    let Match::Range { destinations, qps, pkeys, .. } = &range.rule.streams else { panic!() };
    assert_eq!(destinations[1].length, 128);
    assert_eq!((*qps, &pkeys[..]), ((16, 32), &[1, 0xffff][..]));

    let provisioning = read.provisioning().unwrap();
    let namespace = Namespace { outer_vlan: 100, inner_vlan: 7, segment: 0 };
    let key = StreamKey { addresses, namespace, qp: 17, pkey: 0xffff };
    assert_eq!(provisioning.find(&key), Some(&exact.rule));
    assert_eq!(provisioning.find(&StreamKey { qp: 18, ..key }), None);
}

#[test]
fn what_a_device_file_leaves_out_has_its_default() {
    let read = device(&rule(BOTH));
    let observation = read.observation;
    assert_eq!((observation.domain, observation.point), (1, 1));
    assert_eq!(observation.layer, Layer::Outer);
    assert_eq!(read.elements.pen(), 32473);
    assert_eq!(read.metering.limits, MeterLimits::default());
    let settings = read.metering.settings(false, 0);
    assert_eq!(settings, observe::meter::Settings::default());
    assert_eq!(read.metering.icrc, Icrc::Ignore);
    let rule = &read.provisioned[0].rule;
    assert_eq!((rule.window.get(), rule.revision), (1024, 0));
    // SEQ-4.8
    assert_eq!(rule.generation, Generation::Unverified);
    let Match::Range { qps, pkeys, .. } = &rule.streams else { panic!() };
    assert_eq!((*qps, pkeys.len()), ((0, 0x00ff_ffff), 0));
}

// SEQ-5.1, SEQ-6.10, SEQ-10.3
#[test]
fn every_number_is_held_to_its_range() {
    let of = |section: &str, key: &str, min, max| {
        range(
            &format!("[{section}]\n{key} = @\n[[rule]]\n{}", &rule(BOTH)["[[rule]]\n".len()..]),
            &format!("{section}.{key}"),
            min,
            max,
        );
    };
    of("observation", "domain", 1, u64::from(u32::MAX));
    of("observation", "point", 0, u64::MAX);
    of("elements", "pen", 1, u64::from(u32::MAX));
    of("meter", "window", 1, 1 << 22);
    of("meter", "idle_timeout_s", 1, 31_536_000);
    for limit in MeterLimits::TABLE {
        if limit.name == "labels_octets_max" {
            range(
                &format!("[meter]\nwindow = 1\n{} = @\n", limit.name),
                "meter.labels_octets_max",
                limit.min,
                limit.max,
            );
        } else {
            of("meter", limit.name, limit.min, limit.max);
        }
        assert!((limit.min..=limit.max).contains(&limit.default), "{limit:?}");
    }
    for (key, max) in [("vlan", 4094), ("revision", u64::MAX)] {
        range(&stream(&format!("{key} = @")), &format!("stream[0].{key}"), 0, max);
    }
    range(&stream("window = @"), "stream[0].window", 1, 1 << 22);
    range(&stream("vlan = 5\ninner_vlan = @"), "stream[0].inner_vlan", 0, 4094);
    range(&stream("").replace("17", "@"), "stream[0].qp", 0, 0x00ff_ffff);
    range(&stream("").replace("0xffff", "@"), "stream[0].pkey", 0, 0xffff);
    let layer = "[observation]\nlayer = \"vxlan\"\n";
    range(&format!("{layer}{}", stream("segment = @")), "stream[0].segment", 0, 0x00ff_ffff);
    range(&rule(&format!("{BOTH}\nwindow = @")), "rule[0].window", 1, 1 << 22);
    range(&rule(&format!("{BOTH}\nqp = [0, @]")), "rule[0].qp[1]", 0, 0x00ff_ffff);
    range(&rule(&format!("{BOTH}\npkeys = [@]")), "rule[0].pkeys[0]", 0, 0xffff);
    range(&rule(&format!("{BOTH}\nrevision = @")), "rule[0].revision", 0, u64::MAX);
}

// SEQ-3.2, SEQ-3.5, SEQ-3.6, SEQ-3.9
#[test]
fn a_condition_that_is_missing_false_or_no_truth_is_refused_by_its_name() {
    for (text, key, line) in [(stream(""), "stream[0]", 8), (rule(BOTH), "rule[0]", 5)] {
        for (index, condition) in ATTESTATIONS.iter().enumerate() {
            let (name, meant) = (condition.name, condition.establish);
            let key = format!("{key}.attest.{name}");
            let stated = format!("{name} = true\n");
            assert_eq!(
                errors(&text.replace(&stated, "")),
                [format!("a.toml:{}: {key}: missing, expected true: {meant}", line - 1)]
            );
            let line = line + index;
            assert_eq!(
                errors(&text.replace(&stated, &format!("{name} = false\n"))),
                [format!(
                    "a.toml:{line}: {key}: false, expected true, for which you have to establish \
                     that {meant}; the profile is not enabled without it"
                )]
            );
            assert_eq!(
                errors(&text.replace(&stated, &format!("{name} = 1\n"))),
                [format!("a.toml:{line}: {key}: 1, expected true or false")]
            );
        }
    }
}

// SEQ-3.6
#[test]
fn an_entry_without_attestation_is_refused_naming_all_that_is_missing() {
    let names = "send_write_only, complete_capture, all_paths, half_space, separate_namespaces";
    assert_eq!(
        errors(&format!("[meter]\n{STREAM}")),
        [format!("a.toml:2: stream[0].attest: missing, expected {names}, each true")]
    );
    // One that is attested does not speak for its neighbour.
    assert_eq!(
        errors(&format!("{}{STREAM}", rule(BOTH))),
        [format!("a.toml:10: stream[0].attest: missing, expected {names}, each true")]
    );
}

/// So many streams, none of which is attested.
fn unattested(streams: usize, attested: &str) -> String {
    let of = |qp: String| format!("{}\n[stream.attest]\n{attested}", STREAM.replace("17", &qp));
    (1..=streams).map(|n| of(n.to_string())).collect()
}

// SEQ-3.6
#[test]
fn what_many_streams_lack_alike_is_one_error_for_each_condition_with_all_their_lines() {
    let none = ATTESTED.replace("true", "false");
    let lines_of = |text: &str, key: &str| -> Vec<String> {
        let all = (1_usize..).zip(text.lines());
        all.filter(|(_, line)| line.contains(key)).map(|(n, _)| n.to_string()).collect()
    };
    for streams in [1, 2, 8, 13, 14, 15, 500] {
        let text = unattested(streams, &none);
        let found = errors(&text);
        assert_eq!(found.len(), ATTESTATIONS.len(), "{streams}");
        for (error, condition) in found.iter().zip(ATTESTATIONS) {
            let lines = lines_of(&text, condition.name);
            let start = format!(
                "a.toml:{}: stream[0].attest.{}: false, expected true",
                lines[0], condition.name
            );
            assert!(error.starts_with(&start), "{error}");
            let others = &lines[1..];
            let (shown, beyond) = others.split_at(others.len().min(12));
            let end = match (shown, beyond.len()) {
                ([], _) => "is not enabled without it".to_owned(),
                ([line], 0) => format!("; also on line {line}"),
                (lines, 0) => format!("; also on lines {}", lines.join(", ")),
                (lines, beyond) => {
                    format!("; also on lines {} and on {beyond} more", lines.join(", "))
                }
            };
            assert!(error.ends_with(&end), "{error}, expected {end}");
        }
    }
    // Where some lack one thing and some another, each is told with its own.
    let without = |condition: &str| ATTESTED.replace(&format!("{condition} = true\n"), "");
    let text = format!(
        "{}{}{}",
        unattested(1, &without("all_paths")),
        rule(BOTH),
        unattested(2, &without("half_space")).replace("qp = 1\n", "qp = 3\n"),
    );
    let found = errors(&text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("stream[0].attest.all_paths: missing") && !found[0].contains("also"));
    assert!(
        found[1].contains("stream[1].attest.half_space: missing")
            && found[1].contains("; also on line ")
    );
    // And where the section is missing.
    let text = format!("{STREAM}\n{}\n", STREAM.replace("17", "18"));
    let [error] = &errors(&text)[..] else { panic!("one error") };
    assert!(
        error.contains("stream[0].attest: missing") && error.contains("; also on line "),
        "{error}"
    );
}

// SEQ-4.1
#[test]
fn queue_pairs_and_partition_keys_are_taken_as_other_programs_show_them() {
    for (qp, pkey) in [
        ("17", "65535"),
        ("0x11", "0xffff"),
        ("\"17\"", "\"65535\""),
        ("\"0x000011\"", "\"0XFFFF\""),
    ] {
        let text = stream("").replace("qp = 17", &format!("qp = {qp}"));
        let read = device(&text.replace("pkey = 0xffff", &format!("pkey = {pkey}")));
        let Match::Exact { qp, pkey, .. } = read.provisioned[0].rule.streams else {
            panic!("a stream")
        };
        assert_eq!((qp, pkey), (17, 0xffff));
    }
    let text = rule(&format!("{BOTH}\nqp = [\"0x10\", 0x20]\npkeys = [\"0x8001\", 2]"));
    let read = device(&text);
    let Match::Range { qps, pkeys, .. } = &read.provisioned[0].rule.streams else {
        panic!("a rule")
    };
    assert_eq!((*qps, &pkeys[..]), ((0x10, 0x20), &[0x8001, 2][..]));
    for bad in ["\"0x1000000\"", "\"16777216\"", "\"0x\"", "\"\"", "\"-1\"", "\"11h\"", "\"+17\""] {
        let found = errors(&stream("").replace("qp = 17", &format!("qp = {bad}")));
        let expected =
            format!("stream[0].qp: {bad}, expected 0 to 16777215, or the same in hexadecimal");
        assert!(found.len() == 1 && found[0].contains(&expected), "{found:?}");
    }
}

#[test]
fn what_a_stream_must_name_is_asked_for() {
    let text = format!("[meter]\n[[stream]]\n[stream.attest]\n{ATTESTED}");
    assert_eq!(
        errors(&text),
        [
            "a.toml:2: stream[0].source: missing, expected an address",
            "a.toml:2: stream[0].destination: missing, expected an address",
            "a.toml:2: stream[0].qp: missing, expected 0 to 16777215",
            "a.toml:2: stream[0].pkey: missing, expected 0 to 65535",
        ]
    );
    assert_eq!(
        errors(&rule("")),
        [
            "a.toml:1: rule[0].sources: missing, expected an array of address ranges",
            "a.toml:1: rule[0].destinations: missing, expected an array of address ranges",
        ]
    );
}

// SEQ-4.3
#[test]
fn the_addresses_of_a_stream_are_those_of_two_hosts_of_one_family() {
    let with = |to: &str| errors(&stream("").replace("\"10.0.0.2\"", to));
    let start = "a.toml:3: stream[0].destination: ";
    assert_eq!(with("\"10.0.0.3\""), [""; 0]);
    let mixed = with("\"fd00::2\"");
    assert_eq!(mixed, [format!("{start}\"fd00::2\", expected an IPv4 address, as the source is")]);
    for bad in
        ["\"\"", "\"10.0.0\"", "\"10.0.0.0/8\"", "\"0.0.0.0\"", "\"224.0.0.1\"", "\"::\"", "7"]
    {
        let expected = "expected the IPv4 or IPv6 address of one host";
        assert_eq!(with(bad), [format!("{start}{bad}, {expected}")]);
    }
}

#[test]
fn address_ranges_are_held_to_their_form() {
    let with = |range: &str| {
        errors(&rule(&format!(
            "sources = [\"0.0.0.0/0\", \"::/0\", {range}]\n\
                               destinations = [\"0.0.0.0/0\", \"::/0\"]"
        )))
    };
    let start = "a.toml:2: rule[0].sources[2]: ";
    for good in [
        "\"10.1.0.0/16\"",
        "\"10.0.0.1/32\"",
        "\"10.0.0.0/31\"",
        "\"10.0.0.1\"",
        "\"::1/128\"",
        "\"fd00::/8\"",
        "\"8000::/1\"",
    ] {
        assert_eq!(with(good), [""; 0], "{good}");
    }
    for bad in [
        "\"10.0.0.0/33\"",
        "\"::/129\"",
        "\"10.0.0.0/\"",
        "\"10.0.0.0/+8\"",
        "\"10.0.0.0/08\"",
        "\"10.0.0/8\"",
        "\"/8\"",
        "8",
        "\"10.0.0.0/8/8\"",
        "\"10.0.0.0/256\"",
    ] {
        let expected = "expected an address range such as \"10.0.0.0/8\" or \"fd00::/8\"";
        assert_eq!(with(bad), [format!("{start}{bad}, {expected}")]);
    }
    for (bad, network) in [
        ("10.1.0.0/8", "10.0.0.0/8"),
        ("10.0.0.1/31", "10.0.0.0/31"),
        ("128.0.0.0/0", "0.0.0.0/0"),
        ("fd00::1/127", "fd00::/127"),
        ("::1/0", "::/0"),
    ] {
        let expected = format!("expected no bits beyond the prefix: \"{network}\"");
        assert_eq!(with(&format!("\"{bad}\"")), [format!("{start}\"{bad}\", {expected}")]);
    }
}

#[test]
fn a_rule_that_could_never_match_is_refused() {
    for (text, expected) in [
        (
            "sources = [\"10.0.0.0/8\"]\ndestinations = [\"fd00::/8\"]",
            "a.toml:2: rule[0].sources: [\"10.0.0.0/8\"], expected sources and destinations of the \
             same families: IPv4 stands on one side only",
        ),
        (
            "sources = [\"10.0.0.0/8\"]\ndestinations = [\"10.0.0.0/8\", \"fd00::/8\"]",
            "a.toml:3: rule[0].destinations: [\"10.0.0.0/8\", \"fd00::/8\"], expected sources and \
             destinations of the same families: IPv6 stands on one side only",
        ),
        (
            "sources = []\ndestinations = [\"10.0.0.0/8\"]",
            "a.toml:2: rule[0].sources: [], expected an array of at least one address range",
        ),
    ] {
        assert_eq!(errors(&rule(text)), [expected]);
    }
    for (qp, expected) in [
        ("[5, 4]", "[5, 4], expected [first, last], the first not above the last"),
        ("[5]", "[5], expected [first, last], the first not above the last"),
        ("[1, 2, 3]", "[1, 2, 3], expected [first, last], the first not above the last"),
        ("5", "5, expected an array of at least one queue pair"),
    ] {
        let text = rule(&format!("{BOTH}\nqp = {qp}"));
        assert_eq!(errors(&text), [format!("a.toml:4: rule[0].qp: {expected}")]);
    }
    let text = rule(&format!("{BOTH}\npkeys = []"));
    let expected = "[], expected an array of at least one partition key";
    assert_eq!(errors(&text), [format!("a.toml:4: rule[0].pkeys: {expected}")]);
    assert_eq!(errors(&rule(&format!("{BOTH}\nqp = [5, 5]"))), [""; 0]);
}

// SEQ-4.1, SEQ-4.2
#[test]
fn a_namespace_is_named_whole_and_as_the_observed_layer_has_it() {
    let at =
        |layer: &str, keys: &str| format!("[observation]\nlayer = \"{layer}\"\n{}", stream(keys));
    assert_eq!(namespace(&stream("")), None);
    assert_eq!(namespace(&stream("vlan = 0")), Some(Namespace::default()));
    for (layer, keys, segment) in [
        ("vxlan", "segment = 5", 0x0100_0005),
        ("gre", "segment = 5", 0x0200_0005),
        ("geneve", "segment = 5\nvlan = 0", 0x8000_0005),
        ("gre", "vlan = 0", 0),
        ("vxlan", "segment = 0", 0x0100_0000),
    ] {
        assert_eq!(namespace(&at(layer, keys)).map(|n| n.segment), Some(segment), "{layer}");
    }
    for (layer, keys, expected) in [
        (
            "outer",
            "segment = 5",
            "a.toml:8: stream[0].segment: 5, expected no segment where observation.layer is \
             \"outer\"",
        ),
        (
            "vxlan",
            "vlan = 5",
            "a.toml:3: stream[0].segment: missing beside vlan, expected 0 to 16777215, as every \
             \"vxlan\" frame has one",
        ),
        (
            "outer",
            "inner_vlan = 5",
            "a.toml:3: stream[0].vlan: missing beside inner_vlan, expected 0 to 4094",
        ),
    ] {
        assert_eq!(errors(&at(layer, keys)), [expected]);
    }
}

#[test]
fn a_stream_that_an_earlier_one_takes_is_refused() {
    let twice = |first: &str, second: &str| format!("{}{}", stream(first), stream(second));
    let expected = "a.toml:13: stream[1]: the same stream as stream[0] on line 1, expected each \
                    stream once, and one with a namespace before one without";
    for (first, second) in [("", ""), ("", "vlan = 5"), ("vlan = 5", "vlan = 5")] {
        assert_eq!(errors(&twice(first, second)), [expected], "{first} {second}");
    }
    assert_eq!(errors(&twice("vlan = 5", "")), [""; 0]);
    assert_eq!(errors(&twice("vlan = 5", "vlan = 6")), [""; 0]);
    assert_eq!(errors(&format!("{}{}", stream(""), stream("").replace("17", "18"))), [""; 0]);
}

// SEQ-10.3
#[test]
fn more_entries_than_rules_max_are_refused_at_the_first_beyond() {
    let two = format!("{}{}", stream(""), rule(BOTH));
    assert_eq!(errors(&format!("[meter]\nrules_max = 3\n{two}")), [""; 0]);
    assert_eq!(errors(&format!("[meter]\nrules_max = 2\n{two}")), [""; 0]);
    assert_eq!(
        errors(&format!("[meter]\nrules_max = 1\n{two}")),
        ["a.toml:15: rule[0]: one of 2 streams and rules, expected at most 1"]
    );
}

// SEQ-10.3
#[test]
fn labels_must_have_room_for_the_widest_window() {
    let with = |octets: u32| {
        errors(&format!("[meter]\nlabels_octets_max = {octets}\n{}", stream("window = 1024")))
    };
    assert_eq!(with(129), [""; 0]);
    assert_eq!(with(128), [""; 0]);
    assert_eq!(
        with(127),
        [
            "a.toml:2: meter.labels_octets_max: 127, expected at least 128, which the window 1024 of \
          stream[0] takes"
        ]
    );
}

// SEQ-6.8
#[test]
fn an_element_number_has_fifteen_bits_and_is_not_zero() {
    let with = |id: u32| errors(&format!("[meter]\n[elements.ids]\nrdmaSequenceEpochId = {id}\n"));
    for good in [1, 34, 32_766, 32_767] {
        assert_eq!(with(good), [""; 0], "{good}");
    }
    for bad in [0, 32_768] {
        let expected = format!("{bad}, expected 1 to 32767");
        assert_eq!(with(bad), [format!("a.toml:3: elements.ids.rdmaSequenceEpochId: {expected}")]);
    }
}

// SEQ-6.8, PFC-exp.2
#[test]
fn element_numbers_can_change_places_but_not_be_shared() {
    let ids = |text: &str| format!("[meter]\n[elements.ids]\n{text}");
    let swapped = device(&ids("pfcPriority = 32\npfcControlFrameTotalCount = 31\n"));
    assert_eq!(swapped.elements.id(DraftElement::PfcPriority).id, 32);
    for (text, expected) in [
        (
            "pfcPriority = 1\n",
            "a.toml:3: elements.ids.pfcPriority: 1, expected a number that is not taken: \
             rdmaSequenceEpochId has it",
        ),
        (
            "rdmaSequenceEpochId = 2\n",
            "a.toml:3: elements.ids.rdmaSequenceEpochId: 2, expected a number that is not taken: \
             rdmaSequenceReportId has it",
        ),
    ] {
        assert_eq!(errors(&ids(text)), [expected]);
    }
}

const EXPORT: &str = "[[export]]\ncollector = \"collector.example:4740\"\ncertificate = \"a.pem\"\n\
                      key = \"/keys/a.key\"\nauthority = \"ca.pem\"\n";

#[test]
fn an_export_names_its_collector_and_its_files_relative_to_the_configuration() {
    let read = device(EXPORT);
    let export = &read.exports[0];
    assert_eq!((export.host.as_str(), export.port), ("collector.example", 4740));
    let Security::Tls { server: Server::Name { name, .. }, certificate, private_key } =
        &export.security
    else {
        panic!("{export:?}")
    };
    assert_eq!(name, "collector.example");
    assert_eq!(certificate.path, Path::new("etc/a.pem"));
    assert_eq!(private_key.path, Path::new("/keys/a.key"));
    assert_eq!(export.report_interval, Duration::from_secs(10));
    let read = device(&format!(
        "{}server_name = \"c.example\"\n",
        EXPORT.replace("collector.example:4740", "[::1]:9")
    ));
    assert_eq!((read.exports[0].host.as_str(), read.exports[0].port), ("::1", 9));
    let Security::Tls { server, .. } = &read.exports[0].security else { panic!() };
    assert!(matches!(server, Server::Name { name, .. } if name == "c.example"), "{server:?}");
    range(&format!("{EXPORT}report_interval_s = @\n"), "export[0].report_interval_s", 1, 86_400);
}

#[test]
fn an_export_whose_collector_is_no_host_and_port_is_refused() {
    for bad in [
        "",
        "c.example",
        "c.example:",
        "c.example:0",
        "c.example:65536",
        "::1:9",
        "[::1]",
        "[c.example]:9",
        "-c:9",
        "c_d:9",
        ":9",
        "*.example:9",
    ] {
        let expected = "expected \"host:port\", the port 1 to 65535";
        assert_eq!(
            errors(&EXPORT.replace("collector.example:4740", bad)),
            [format!("a.toml:2: export[0].collector: \"{bad}\", {expected}")]
        );
    }
    assert_eq!(
        errors("[[export]]\ncollector = \"c:1\"\n"),
        [
            "a.toml:1: export[0].certificate: missing, expected the path of a PEM file",
            "a.toml:1: export[0].key: missing, expected the path of a PEM file",
            "a.toml:1: export[0].authority: missing, expected the path of a PEM file",
        ]
    );
}

// SEQ-10.1
#[test]
fn without_tls_reports_stay_on_this_machine_and_only_on_the_operators_words() {
    let plain = |host: &str, words: &str, more: &str| {
        format!("[[export]]\ncollector = \"{host}:4739\"\nplain_tcp = \"{words}\"\n{more}")
    };
    for host in ["127.0.0.1", "127.3.2.1", "[::1]"] {
        let read = device(&plain(host, PLAIN_TCP_WORDS, ""));
        assert_eq!(read.exports[0].security, Security::PlainToThisMachine);
    }
    let expected = "127.0.0.1 or ::1: without TLS reports do not leave this machine";
    for host in ["10.0.0.1", "localhost", "collector.example"] {
        assert_eq!(
            errors(&plain(host, PLAIN_TCP_WORDS, "")),
            [format!("a.toml:2: export[0].collector: \"{host}:4739\", expected {expected}")]
        );
    }
    assert_eq!(
        errors(&plain("127.0.0.1", "yes", "")),
        [format!(
            "a.toml:3: export[0].plain_tcp: \"yes\", expected \"{PLAIN_TCP_WORDS}\", or TLS and no \
             plain_tcp"
        )]
    );
    assert_eq!(
        errors(&plain("127.0.0.1", PLAIN_TCP_WORDS, "key = \"a.key\"\n")),
        ["a.toml:4: export[0].key: beside plain_tcp, expected one of them"]
    );
}

#[test]
fn a_collector_can_be_known_by_its_fingerprint_instead_of_a_name() {
    let digest = "0a".repeat(32);
    let text = EXPORT.replace("authority = \"ca.pem\"\n", "");
    let text = text.lines().filter(|l| !l.starts_with("authority")).collect::<Vec<_>>().join("\n");
    let read = device(&format!("{text}\nfingerprint = \"sha256:{digest}\"\n"));
    let Security::Tls { server, .. } = &read.exports[0].security else { panic!() };
    assert_eq!(*server, Server::Fingerprint([10; 32]));
    let both = errors(&format!("{EXPORT}\nfingerprint = \"sha256:{digest}\"\n"));
    assert!(both[0].contains("authority: beside a fingerprint, expected one of them"), "{both:?}");
}

#[test]
fn a_source_is_an_interface_or_a_file_and_all_are_of_one_kind() {
    let read = device(
        "[[source]]\ninterface = \"eth0\"\n[[source]]\ninterface = \"eth1\"\npromiscuous = true\n\
         ring_octets = 65536\n",
    );
    let [first, second] = &read.sources.interfaces[..] else { panic!("{:?}", read.sources) };
    assert_eq!(
        (first.name.as_str(), first.promiscuous, first.ring_octets),
        ("eth0", false, 64 << 20)
    );
    assert_eq!(
        (second.name.as_str(), second.promiscuous, second.ring_octets),
        ("eth1", true, 65536)
    );
    let read =
        device("[[source]]\nfile = \"a.pcap\"\n[[source]]\nfile = \"/b.pcap\"\npace = \"fast\"\n");
    let [first, second] = &read.sources.files[..] else { panic!("{:?}", read.sources) };
    assert_eq!((&*first.file.path, first.pace), (Path::new("etc/a.pcap"), Pace::Capture));
    assert_eq!((&*second.file.path, second.pace), (Path::new("/b.pcap"), Pace::Fast));
    for (text, error) in [
        ("[[source]]\n", "a.toml:1: source[0]: neither interface nor file, expected one of them"),
        (
            "[[source]]\ninterface = \"e\"\nfile = \"f\"\n",
            "a.toml:3: source[0].file: beside an interface, expected one of them",
        ),
        (
            "[[source]]\ninterface = \"e\"\npace = \"fast\"\n",
            "a.toml:3: source[0].pace: expected only beside a file",
        ),
        (
            "[[source]]\nfile = \"f\"\npromiscuous = true\n",
            "a.toml:3: source[0].promiscuous: expected only beside an interface",
        ),
        (
            "[[source]]\ninterface = \"e\"\n[[source]]\ninterface = \"e\"\n",
            "a.toml:4: source[1].interface: \"e\", expected each interface once",
        ),
        (
            "[[source]]\ninterface = \"sixteen_octets_x\"\n",
            "a.toml:2: source[0].interface: \"sixteen_octets_x\", expected the name of an interface, \
             1 to 15 octets",
        ),
        (
            "[[source]]\ninterface = \"e\"\n[[source]]\nfile = \"f\"\n",
            "a.toml:3: source[1]: files beside interfaces, expected sources of one kind: their times \
             have nothing in common",
        ),
    ] {
        assert_eq!(errors(text), [error]);
    }
}
