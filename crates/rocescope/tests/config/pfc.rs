//! `[pfc]` of a device file: what vouches for a source, and what is refused without it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use observe::pfc::Priority;
use observe::pfc::qualify::{Condition, Ground};
use rocescope::check::check;
use rocescope::config::{PfcKind, PfcLimits};
use rocescope::pfc::RedisAddress;
use rocescope::pfc::sonic::Dating;

use super::{device, errors, range};

/// Everything that can be attested.
const ATTEST: &str = "attest = [\"physical-interface\", \"vector-index\", \"before-processing\", \
                      \"confirmed-emission\", \"every-frame\", \"each-set-bit\", \"only-valid\", \
                      \"time-of-reading\", \"starts-at-zero\"]\n";

fn ethtool(keys: &str) -> String {
    format!(
        "[[pfc.source]]\nkind = \"ethtool\"\ndriver = \"mlx5_core\"\n{keys}\n[[pfc.source.port]]\n\
         name = \"ens1\"\n"
    )
}

fn sonic(keys: &str) -> String {
    format!("[[pfc.source]]\nkind = \"sonic\"\nredis = \"/run/redis.sock\"\n{keys}\n")
}

// PFC-count.4
#[test]
fn what_a_file_says_is_what_is_polled() {
    let read = device(&format!(
        "[pfc]\npoll_interval_ms = 250\ninstance_ids = true\nports_max = 8\n\
         [[pfc.source]]\nkind = \"sonic\"\nredis = \"127.0.0.1:6379\"\ntime = \"asked\"\n\
         point = 40\ndirections = [\"received\"]\nresets = \"shown\"\nspeed_gbps = 400\n{ATTEST}\
         [[pfc.source.port]]\nname = \"Ethernet0\"\ndevice = \"leaf1\"\nport = \"1/1\"\n\
         [[pfc.source.port]]\nname = \"up\"\ninterface = 12\n{}",
        ethtool(ATTEST)
    ));
    let pfc = read.pfc.expect("a section");
    assert_eq!(pfc.poll_interval, Duration::from_millis(250));
    assert!(pfc.instance_ids);
    assert_eq!(pfc.limits, PfcLimits { ports_max: 8, ..PfcLimits::default() });
    let [sonic, ethtool] = &pfc.sources[..] else { panic!("{:?}", pfc.sources) };
    let redis = RedisAddress::Port("127.0.0.1:6379".parse().expect("an address"));
    assert_eq!(sonic.kind, PfcKind::Sonic { redis, dating: Dating::Asked });
    assert_eq!(sonic.point, Some(40));
    let received = sonic.qualified[0].expect("exported");
    assert_eq!(received.ground(Condition::VectorIndex), Some(Ground::Stated));
    assert_eq!(received.ground(Condition::OnlyValid), Some(Ground::Attested));
    assert_eq!(sonic.qualified[1], None);
    let ports: Vec<_> = sonic.ports.iter().map(|p| (p.name.as_str(), p.interface)).collect();
    assert_eq!(ports, [("Ethernet0", None), ("up", Some(12))]);
    assert_eq!(ethtool.kind, PfcKind::Ethtool { driver: "mlx5_core" });
    assert!(ethtool.qualified.iter().all(Option::is_some));
    assert_eq!(device("[observation]\ndomain = 1").pfc, None);
}

// PFC-count.1, PFC-count.2, PFC-count.3, PFC-count.4, PFC-rec.2, PFC-sem.1, PFC-id.2, PFC-id.3
#[test]
fn a_source_without_an_attestation_is_refused_with_its_name() {
    let attested: Vec<&str> = ATTEST.split('"').skip(1).step_by(2).collect();
    assert_eq!(attested.len(), 9);
    // What the driver states by itself need not be attested.
    let stated = ["physical-interface", "vector-index"];
    for missing in attested {
        let text = ethtool(&ATTEST.replace(&format!("\"{missing}\""), "\"only-valid\""));
        let text = if missing == "only-valid" {
            ethtool(&ATTEST.replace("\"only-valid\", ", ""))
        } else {
            text
        };
        let said = errors(&text);
        if stated.contains(&missing) {
            assert_eq!(said, [""; 0], "{missing}");
            continue;
        }
        let expected = format!("neither states nor is attested {missing}");
        assert!(!said.is_empty() && said.iter().all(|e| e.ends_with(&expected)), "{said:?}");
        assert!(said[0].starts_with("a.toml:1: pfc.source[0].attest: a source of "), "{said:?}");
    }
    let said = errors(&sonic(&ATTEST.replace("\"time-of-reading\", ", "")));
    assert_eq!(said, [""; 0], "a stamp is a time of reading");
    let said =
        errors(&sonic(&format!("time = \"asked\"\n{ATTEST}").replace("\"time-of-reading\", ", "")));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].ends_with("attested time-of-reading"), "{said:?}");
}

// PFC-exp.3
#[test]
fn a_narrow_counter_needs_resets_that_show_and_polls_that_are_fast_enough() {
    let i40e = |keys: &str| ethtool(&format!("{keys}\n{ATTEST}")).replace("mlx5_core", "i40e");
    let said = errors(&i40e(""));
    assert_eq!(said.len(), 2);
    let expected = "pfc.source[0].resets: wide: a counter of 32 bits whose resets do not show, \
                    expected a sign that tells them from wraps: resets = \"shown\", where that is so";
    assert!(said[0].ends_with(expected), "{said:?}");
    assert_eq!(errors(&i40e("resets = \"shown\"")), [""; 0]);
    // At 40 Gb/s, 32 bits go round in 61.8 seconds.
    let text = i40e("resets = \"shown\"\nspeed_gbps = 40");
    assert_eq!(errors(&format!("[pfc]\npoll_interval_ms = 60000\n{text}")), [""; 0]);
    let said = errors(&format!("[pfc]\npoll_interval_ms = 62000\n{text}"));
    assert!(
        said[0].contains("polled every 62000 ms can wrap unseen, expected at most"),
        "{said:?}"
    );
    assert!(said[0].contains("see pfc.poll_interval_ms, or a link that is slower"), "{said:?}");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_what_is_legal() {
    for (text, expected) in [
        (
            "[[pfc.source]]\n".to_owned(),
            "a.toml:1: pfc.source[0].kind: missing, expected \"ethtool\" or \"sonic\"",
        ),
        (
            ethtool(ATTEST).replace("mlx5_core", "e1000"),
            "a.toml:3: pfc.source[0].driver: \"e1000\", expected the driver of the ports: bnxt_en, cxgb4, hinic",
        ),
        (
            ethtool(ATTEST).replace("mlx5_core", "ixgbe"),
            "expected a driver that counts PFC frames of each priority: it counts by packet buffer, which is no priority",
        ),
        (
            ethtool("attest = [\"every-frames\"]"),
            "a.toml:4: pfc.source[0].attest[0]: \"every-frames\", expected \"physical-interface\",",
        ),
        // It is found out, not promised.
        (ethtool("attest = [\"wide\"]"), "pfc.source[0].attest[0]: \"wide\", expected"),
        (
            ethtool(&format!("redis = \"/r\"\n{ATTEST}")),
            "a.toml:4: pfc.source[0].redis: expected only beside kind = \"sonic\"",
        ),
        (
            sonic(&format!("driver = \"ice\"\n{ATTEST}")),
            "pfc.source[0].driver: expected only beside kind = \"ethtool\"",
        ),
        (
            sonic(ATTEST).replace("/run/redis.sock", "192.0.2.1:6379"),
            "pfc.source[0].redis: \"192.0.2.1:6379\", expected the path of a Unix socket, or a loopback address",
        ),
        (
            sonic(ATTEST).replace("/run/redis.sock", "redis"),
            "pfc.source[0].redis: \"redis\", expected the path",
        ),
        (
            sonic(&format!("{ATTEST}[[pfc.source.port]]\nname = \"up\"")),
            "pfc.source[0].port: up without interface",
        ),
        (
            sonic(&format!(
                "{ATTEST}[[pfc.source.port]]\nname = \"Ethernet3\"\n[[pfc.source.port]]\nname = \"up\"\ninterface = 4"
            )),
            "pfc.source[0].port: up as interface 4, expected each port and number once",
        ),
        (
            sonic(&format!("directions = [\"received\", \"received\"]\n{ATTEST}")),
            "pfc.source[0].directions[1]: \"received\", expected each direction once",
        ),
        (
            ethtool(ATTEST).replace("[[pfc.source.port]]\nname = \"ens1\"\n", ""),
            "pfc.source[0].port: missing, expected at least one [[pfc.source.port]]",
        ),
        (
            format!(
                "[pfc]\nports_max = 1\n{}[[pfc.source.port]]\nname = \"ens2\"",
                ethtool(ATTEST)
            ),
            "pfc.source: 2 ports, expected at most 1 ports, see pfc.ports_max",
        ),
        (
            "[[pfc.classes]]\nsince = 2026-01-31\npriorities = [1]".to_owned(),
            "a.toml:2: pfc.classes[0].since: 2026-01-31, expected a date and time with its offset",
        ),
        (
            "[[pfc.classes]]\nsince = 2026-01-31T00:00:00Z\npriorities = [8]".to_owned(),
            "a.toml:3: pfc.classes[0].priorities[0]: 8, expected 0 to 7",
        ),
    ] {
        let said = errors(&text);
        assert!(
            said.iter().any(|line| line.contains(expected)),
            "{expected}\nin\n{said:#?}\nof\n{text}"
        );
    }
}

// SEQ-10.3
#[test]
fn limits_have_their_ranges() {
    range("[pfc]\npoll_interval_ms = @", "pfc.poll_interval_ms", 10, 3_600_000);
    for limit in PfcLimits::TABLE {
        let key = format!("pfc.{}", limit.name);
        range(&format!("[pfc]\n{} = @", limit.name), &key, limit.min, limit.max);
    }
}

// PFC-cor.1
#[test]
fn the_priority_of_a_class_is_that_of_its_place_and_time_or_unknown() {
    let pfc = device(
        "[[pfc.classes]]\nsince = 1970-01-01T00:00:10Z\npriorities = [0, 1, 2]\n\
         [[pfc.classes]]\nsince = 1970-01-01T01:00:20.5+01:00\npriorities = [5, 1, 2]\n\
         [[pfc.classes]]\nsince = 1970-01-01T00:00:30Z\ndevice = \"leaf1\"\npriorities = [6]\n\
         [[pfc.classes]]\nsince = 2024-02-29T12:00:00Z\ndevice = \"leaf1\"\nport = \"1/1\"\n\
         priorities = [7]\n",
    )
    .pfc
    .expect("a section");
    let of = |device: &str, port: &str, class: usize, ms: u64| {
        pfc.priority(device, port, class, ms).map(Priority::get)
    };
    assert_eq!(of("leaf1", "1/1", 0, 9_999), None);
    assert_eq!(of("leaf1", "1/1", 0, 10_000), Some(0));
    assert_eq!(of("leaf1", "1/1", 3, 10_000), None);
    assert_eq!(of("leaf1", "1/1", 0, 20_499), Some(0));
    assert_eq!(of("leaf1", "1/1", 0, 20_500), Some(5));
    assert_eq!(of("leaf1", "1/1", 0, 30_000), Some(6));
    assert_eq!(of("leaf2", "1/1", 0, 30_000), Some(5));
    // 2024-02-29T12:00:00Z
    assert_eq!(of("leaf1", "1/1", 0, 1_709_207_999_999), Some(6));
    assert_eq!(of("leaf1", "1/1", 0, 1_709_208_000_000), Some(7));
    assert_eq!(of("leaf1", "1/2", 0, 1_709_208_000_000), Some(6));
}

// PFC-count.4
#[test]
fn check_tells_on_whose_word_each_counter_is_exported() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("check_pfc.toml");
    let text = format!(
        "[pfc]\ninstance_ids = true\n{}{}[[pfc.classes]]\nsince = 1970-01-01T00:00:10Z\n\
         device = \"leaf1\"\npriorities = [0, 3]\n",
        ethtool(&format!("resets = \"shown\"\n{ATTEST}")),
        sonic(&format!("point = 3\ndirections = [\"transmitted\"]\n{ATTEST}")),
    );
    fs::write(&path, text).expect("written");
    let plan = check(&path).expect("a plan").to_string();
    for line in [
        "PFC         counters, read every 1000 ms",
        "    resets: the operator says that they show, so records carry pfcCounterInstanceId, an \
         element of ours",
        "    warning: nobody says that resets show (resets = \"shown\"), so its records carry no \
         pfcCounterInstanceId and no interval is exact",
        "    port ens1 by its source's own number",
        "    received: the source states physical-interface vector-index wide",
        "    received: the operator attests before-processing confirmed-emission every-frame \
         each-set-bit only-valid time-of-reading starts-at-zero",
        "    every port that it has, by its own number",
        "  since 1970-01-01T00:00:10Z traffic classes of leaf1 have priorities 0 3",
        "limits      keys of [pfc]",
    ] {
        assert!(plan.lines().any(|found| found == line), "no line\n{line}\nin\n{plan}");
    }
    assert!(plan.contains("the SONiC database at /run/redis.sock, observation point 3"), "{plan}");
    assert!(plan.contains("shown only while PFC is enabled"), "{plan}");
    fs::remove_file(path).expect("removed");
}

// PFC-id.1
#[test]
fn two_sources_that_export_under_one_scope_are_refused_with_both_places() {
    let port = |name: &str, interface: &str| {
        format!("[[pfc.source.port]]\nname = \"{name}\"\n{interface}\n")
    };
    let first = format!("{}{}", sonic(ATTEST), port("Ethernet12", ""));
    let of = |keys: &str, port: &str| {
        format!("[observation]\npoint = 9\n{first}{}{port}", sonic(&format!("{keys}\n{ATTEST}")))
    };
    let expected = "pfc.source[1].port: up as interface 13 at observation point 9, which Ethernet12 \
                    of pfc.source[0] on line 3 is as well, expected one of them: give one another \
                    interface, or its source another point";
    let up = port("up", "interface = 13");
    for text in [of("", &up), of("point = 9", &up)] {
        let said = errors(&text);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].ends_with(expected), "{said:?}");
    }
    // The same port in two sources, and another kind of source.
    assert_eq!(errors(&of("", &port("Ethernet12", ""))).len(), 1);
    let text =
        format!("{first}{}", ethtool(ATTEST).replace("\"ens1\"", "\"ens1\"\ninterface = 13"));
    assert_eq!(errors(&text).len(), 1);
    // Another point, another number, or another direction each.
    assert_eq!(errors(&of("point = 10", &up)), [""; 0]);
    assert_eq!(errors(&of("", &port("up", "interface = 14"))), [""; 0]);
    let apart = of("directions = [\"received\"]", &up).replacen(
        "kind = \"sonic\"",
        "kind = \"sonic\"\ndirections = [\"transmitted\"]",
        1,
    );
    assert_eq!(errors(&apart), [""; 0]);
}

// PFC-id.1
#[test]
fn check_warns_of_sources_whose_numbers_show_only_later() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("check_pfc_two.toml");
    let warned = |second: &str| {
        fs::write(&path, format!("{}{second}", sonic(ATTEST))).expect("written");
        let plan = check(&path).expect("a plan").to_string();
        plan.contains("  warning: pfc.source[0] and pfc.source[1] have one observation point: ")
    };
    assert!(warned(&sonic(ATTEST)));
    assert!(warned(&ethtool(ATTEST)));
    assert!(!warned(&sonic(&format!("point = 3\n{ATTEST}"))));
    fs::remove_file(&path).expect("removed");
}
