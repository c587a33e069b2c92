//! What holds for every file: places, unknown keys, texts that are no TOML.

use std::path::Path;

use rocescope::config;

use super::{device, errors};

#[test]
fn an_unknown_key_names_the_nearest_known_one_or_all_where_none_is_near_and_its_line() {
    for (text, expected) in [
        (
            "[meter]\n\nwindw = 5\n",
            "a.toml:3: meter.windw: unknown key, the nearest known one is window",
        ),
        (
            "[observation]\n[strem]\n",
            "a.toml:2: strem: unknown key, the nearest known one is stream",
        ),
        (
            "meter.idle_timeout = 5\n",
            "a.toml:1: meter.idle_timeout: unknown key, the nearest known one is idle_timeout_s",
        ),
        (
            "[meter]\n[elements.ids]\npfcpriority = 5\n",
            "a.toml:3: elements.ids.pfcpriority: unknown key, the nearest known one is pfcPriority",
        ),
        (
            "[meter]\n\"a\\nb\" = 1\n",
            "a.toml:2: meter.a\\nb: unknown key, expected window, when_full, idle_timeout_s, icrc, \
             rules_max, contexts_max, labels_octets_max, report_id_max, finals_waiting_max or \
             mirror_sessions_max",
        ),
        (
            "meter.windows_max_count = 5\n",
            "a.toml:1: meter.windows_max_count: unknown key, the nearest known one is window",
        ),
    ] {
        assert_eq!(errors(text), [expected], "{text}");
    }
}

#[test]
fn an_unknown_key_of_every_section_is_refused_at_its_place() {
    let text = "[observation]\nx1 = 1\n[elements]\nx2 = 1\n[meter]\nx3 = 1\n[[stream]]\nx4 = 1\n\
                [stream.attest]\nx5 = 1\n[[rule]]\nx6 = 1\n[rule.attest]\nx7 = 1\n[[export]]\n\
                x8 = 1\n";
    let errors = errors(text);
    for (key, line) in [
        ("observation.x1", 2),
        ("elements.x2", 4),
        ("meter.x3", 6),
        ("stream[0].x4", 8),
        ("stream[0].attest.x5", 10),
        ("rule[0].x6", 12),
        ("rule[0].attest.x7", 14),
        ("export[0].x8", 16),
    ] {
        let start = format!("a.toml:{line}: {key}: unknown key");
        assert_eq!(errors.iter().filter(|e| e.starts_with(&start)).count(), 1, "{start}");
    }
}

#[test]
fn every_error_is_reported_in_the_order_of_the_file() {
    let text = "[meter]\nwindow = 0\nicrc = \"maybe\"\n[observation]\nlayer = 7\ndomain = 0\n";
    assert_eq!(
        errors(text),
        [
            "a.toml:2: meter.window: 0, expected 1 to 4194304",
            "a.toml:3: meter.icrc: \"maybe\", expected \"ignore\" or \"check\"",
            "a.toml:5: observation.layer: 7, expected \"outer\", \"erspan\", \"gre\", \"vxlan\" or \
             \"geneve\"",
            "a.toml:6: observation.domain: 0, expected 1 to 4294967295",
        ]
    );
}

#[test]
fn the_value_is_repeated_as_it_stands_in_the_file() {
    for (value, shown) in [
        ("0x400001", "0x400001"),
        ("5_000_000", "5_000_000"),
        ("+0", "+0"),
        ("true", "true"),
        ("[1, 2]", "[1, 2]"),
        ("{ a = 1 }", "a table"),
        ("\"\"\"a\nb\"\"\"", "a long string"),
        ("99999999999999999999999999", "99999999999999999999999999"),
        ("1979-05-27", "1979-05-27"),
    ] {
        let expected = format!("a.toml:2: meter.window: {shown}, expected 1 to 4194304");
        assert_eq!(errors(&format!("[meter]\nwindow = {value}\n")), [expected]);
    }
}

#[test]
fn every_way_to_write_an_integer_is_read() {
    for (value, window) in
        [("+7", 7), ("0x10", 16), ("0o17", 15), ("0b11", 3), ("4_194_304", 4_194_304)]
    {
        let read = device(&format!("[meter]\nwindow = {value}\n"));
        assert_eq!(read.metering.window.get(), window, "{value}");
    }
}

#[test]
fn a_text_that_is_no_toml_is_refused_with_line_and_column() {
    for (text, start) in [
        ("[meter]\nwindow = \n", "a.toml:2:10: "),
        ("[meter]\nwindow = 1\nwindow = 2\n", "a.toml:3:1: "),
        ("[meter\n", "a.toml:1:7: "),
        ("[meter]\r\nwindow = 1\r\n\r\n?\r\n", "a.toml:4:1: "),
    ] {
        let errors = errors(text);
        assert!(errors.len() == 1 && errors[0].starts_with(start), "{text}: {errors:?}");
    }
}

#[test]
fn a_section_of_the_wrong_shape_is_refused() {
    assert_eq!(errors("meter = 5\n"), ["a.toml:1: meter: 5, expected a table"]);
    assert_eq!(
        errors("[stream]\nqp = 1\n"),
        ["a.toml:1: stream: a table, expected an array of tables: [[stream]]"]
    );
    assert_eq!(errors("rule = [7]\n"), ["a.toml:1: rule[0]: 7, expected a table"]);
}

#[test]
fn a_file_of_no_kind_is_refused_and_its_keys_are_guessed() {
    let start = "cannot tell what it configures, expected sections of a device (observation, \
                 elements, meter, stream, rule, export, source, agent, pfc, queue, manage) or of a \
                 collector (ipfix, pfc, queues, elements, http, store, limits)";
    for text in ["", "[elements]\npen = 1\n", "[meter]\n[http]\n"] {
        assert_eq!(errors(text), [format!("a.toml:1:1: {start}")], "{text}");
    }
    let guessed = "a.toml:2: ifpix: unknown key, the nearest known one is ipfix";
    assert_eq!(errors("\n[ifpix]\n"), [format!("a.toml:1:1: {start}"), guessed.into()]);
}

#[test]
fn a_section_of_the_other_kind_is_an_unknown_key() {
    let errors = errors("[meter]\n[observation]\n[http]\n");
    assert!(errors[0].starts_with("a.toml:3: http: unknown key, "), "{errors:?}");
    assert_eq!(errors.len(), 1);
}

#[test]
fn a_file_that_is_not_there_or_not_text_is_an_error_with_its_name() {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let gone = config::read(&here.join("no-such.toml")).unwrap_err();
    assert!(gone[0].to_string().contains("no-such.toml: cannot be read: "), "{gone:?}");
    let path = here.join("octets.toml");
    std::fs::write(&path, b"[meter]\n\xff\n").unwrap();
    let refused = config::read(&path).unwrap_err();
    assert!(
        refused[0].to_string().ends_with("octets.toml:2: octets that are not UTF-8, expected TOML")
    );
}

#[test]
fn of_many_errors_the_last_are_only_counted() {
    for (count, beyond) in [(999, 0), (1_000, 0), (1_001, 1)] {
        let lines: Vec<String> = (0..count).map(|index| format!("x{index} = 1\n")).collect();
        let errors = errors(&format!("[meter]\n{}", lines.concat()));
        assert_eq!(errors.len(), count.min(1_000) + beyond);
        assert_eq!(errors.last().unwrap() == "a.toml: 1 more errors", beyond == 1);
    }
}

/// Files with every key.
const FULL: [&str; 2] = [
    "[observation]\ndomain = 7\npoint = 9\nlayer = \"gre\"\n[elements]\npen = 5\n\
     [elements.ids]\npfcPriority = 400\n[meter]\nwindow = 64\nwhen_full = \"evict\"\n\
     idle_timeout_s = 30\nicrc = \"check\"\nlabels_octets_max = 4096\nrules_max = 2\n\
     [[stream]]\nsource = \"10.0.0.1\"\ndestination = \"10.0.0.2\"\nqp = 17\npkey = 0xffff\n\
     vlan = 5\ninner_vlan = 6\nsegment = 7\nwindow = 128\ngeneration = \"established\"\n\
     revision = 3\n[stream.attest]\nsend_write_only = true\ncomplete_capture = true\n\
     all_paths = true\nhalf_space = true\nseparate_namespaces = true\n[[rule]]\n\
     sources = [\"fd00::/8\"]\ndestinations = [\"fd00::/8\"]\nqp = [16, 32]\npkeys = [1]\n\
     [rule.attest]\nsend_write_only = true\ncomplete_capture = true\nall_paths = true\n\
     half_space = true\nseparate_namespaces = true\n[[export]]\ncollector = \"c:1\"\n\
     server_name = \"c\"\ncertificate = \"a\"\nkey = \"b\"\nauthority = \"c\"\n\
     report_interval_s = 5\n",
    "[ipfix]\nlisten = \"127.0.0.1:4740\"\ncertificate = \"c.pem\"\nkey = \"c.key\"\n\
     authority = \"ca.pem\"\ninactivity_timeout_s = 60\n[[ipfix.peer]]\n\
     name = \"agent.example\"\ndomains = [1]\n[elements]\npen = 32473\n[http]\n\
     listen = \"127.0.0.1:8080\"\n[store]\ndirectory = \"data\"\n[limits]\nepochs_max = 5\n",
];

#[test]
fn whatever_becomes_of_one_line_the_file_is_taken_or_refused_with_reasons() {
    for text in FULL {
        assert_eq!(errors(text), [""; 0]);
        let lines: Vec<&str> = text.lines().collect();
        for index in 0..lines.len() {
            let key = lines[index].split(" = ").next().unwrap_or_default();
            let values =
                ["[]", "{}", "[{}]", "[5]", "\"\"", "-1", "0", "nan", "true", "[[]]", "0xff"];
            let mut others: Vec<String> = values.map(|v| format!("{key} = {v}")).into();
            others.extend([String::new(), "?".into(), format!("{0}\n{0}", lines[index])]);
            for other in others {
                let mut changed = lines.clone();
                changed[index] = &other;
                // A refusal without a reason is a panic.
                for error in errors(&changed.join("\n")) {
                    assert!(error.starts_with("a.toml:") && !error.contains('\n'), "{error}");
                }
            }
        }
    }
}
