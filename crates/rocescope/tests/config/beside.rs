//! `[pfc]` of a collector: what is said of devices, flows and traffic classes, and what is wrong
//! with it.

use std::fs;
use std::path::PathBuf;

use observe::pfc::Priority;
use observe::pfc::beside::Apart;
use rocescope::check::check;
use rocescope::config::FlowOf;
use wire::frame::Addresses;

use super::{collector, errors};

const IPFIX: &str = "[ipfix]\ncertificate = \"c.pem\"\nkey = \"c.key\"\nauthority = \"ca.pem\"\n\
                     [[ipfix.peer]]\nname = \"leaf1.example\"\ndomains = [7]\n\
                     [[ipfix.peer]]\nname = \"probe.example\"\ndomains = [1]\n";

const DEVICE: &str = "[[pfc.device]]\nname = \"leaf1\"\nexporter = \"Leaf1.example\"\ndomain = 7\n\
                      [[pfc.device.port]]\nname = \"Ethernet12\"\ninterface = 13\n";

const FLOWS: &str = "[[pfc.flows]]\nexporter = \"probe.example\"\ndomain = 1\npoint = 9\n\
                     sources = [\"10.0.0.0/8\"]\ndestinations = [\"10.0.2.0/24\", \"fd00::/8\"]\n\
                     device = \"leaf1\"\nport = \"Ethernet12\"\nclass = 1\n";

const CLASSES: &str = "[[pfc.classes]]\nsince = 1970-01-01T00:00:10Z\npriorities = [0, 3]\n\
                       [[pfc.classes]]\nsince = 1970-01-01T00:00:20Z\ndevice = \"leaf1\"\n\
                       port = \"Ethernet12\"\npriorities = [0, 5]\n";

fn whole() -> String {
    format!("{IPFIX}{DEVICE}{FLOWS}{CLASSES}")
}

// PFC-cor.1, PFC-id.1
#[test]
fn a_flow_has_the_place_and_the_priority_that_are_said_of_it_and_no_other() {
    let pfc = collector(&whole()).pfc;
    assert_eq!(pfc.named("leaf1.example", 7, 13), Some(("leaf1", Some("Ethernet12"))));
    assert_eq!(pfc.named("leaf1.example", 7, 14), Some(("leaf1", None)));
    assert_eq!(pfc.named("leaf1.example", 8, 13), None);
    assert_eq!(pfc.named("probe.example", 7, 13), None);
    let seen = |exporter, domain, point, source, destination| {
        let addresses = Addresses::v4(source, destination);
        let flow = FlowOf { exporter, domain, point, addresses: &addresses };
        pfc.place(&flow).map(|place| (place.interface, place.class))
    };
    let (from, to) = ([10, 1, 1, 1], [10, 0, 2, 255]);
    assert_eq!(seen("probe.example", 1, 9, from, to), Some((13, 1)));
    assert_eq!(seen("leaf1.example", 1, 9, from, to), None);
    assert_eq!(seen("probe.example", 2, 9, from, to), None);
    assert_eq!(seen("probe.example", 1, 8, from, to), None);
    assert_eq!(seen("probe.example", 1, 9, [11, 1, 1, 1], to), None);
    assert_eq!(seen("probe.example", 1, 9, from, [10, 0, 3, 0]), None);
    let had = |first, last| pfc.priority(&pfc.flows[0], first, last);
    let priority = |n| Ok(Priority::new(n).expect("a priority"));
    assert_eq!(had(9_999, 15_000), Err(Apart::PriorityUnknown));
    assert_eq!(had(10_000, 19_999), priority(3));
    assert_eq!(had(10_000, 20_000), Err(Apart::PriorityChanged));
    assert_eq!(had(20_000, u64::MAX), priority(5));
    // Nobody said anything of class 2.
    let more = whole().replace("class = 1\n", "class = 2\n");
    let pfc = collector(&more).pfc;
    assert_eq!(pfc.priority(&pfc.flows[0], 20_000, 20_000), Err(Apart::PriorityUnknown));
    assert_eq!(collector(IPFIX).pfc, rocescope::config::Beside::default());
}

// PFC-cor.1
#[test]
fn what_names_nothing_or_something_twice_is_refused_with_what_is_legal() {
    let twice = DEVICE.replace("interface = 13", "interface = 14");
    let port = "[[pfc.device.port]]\nname = \"Ethernet13\"\ninterface = 13\n";
    for (text, problem) in [
        (
            whole().replace("Leaf1.example", "leaf2.example"),
            "pfc.device[0].exporter: \"leaf2.example\", expected the name or \
             fingerprint of an [[ipfix.peer]]",
        ),
        (
            whole().replace(
                "device = \"leaf1\"\nport = \"Ethernet12\"\nclass",
                "device = \"leaf9\"\nport = \"Ethernet12\"\nclass",
            ),
            "pfc.flows[0].device: \"leaf9\", expected the name of a [[pfc.device]]",
        ),
        (
            whole().replace("port = \"Ethernet12\"\nclass", "port = \"Ethernet9\"\nclass"),
            "pfc.flows[0].port: \"Ethernet9\", expected the name of a \
             [[pfc.device.port]] of that device",
        ),
        (
            format!("{IPFIX}{DEVICE}{twice}"),
            "pfc.device: leaf1 with the counters of leaf1.example in domain 7, expected \
             each name and each domain of an exporter once",
        ),
        (
            format!("{IPFIX}{DEVICE}{port}"),
            "Ethernet13 as interface 13 of leaf1, expected each port and number once",
        ),
        (
            whole().replace("priorities = [0, 5]", "priorities = [0, 8]"),
            "pfc.classes[1].priorities[1]: 8, expected 0 to 7",
        ),
        (
            whole().replace("class = 1\n", "class = 256\n"),
            "pfc.flows[0].class: 256, expected 0 to 255",
        ),
        (
            whole().replace("[[pfc.flows]]", "[[pfc.flow]]"),
            "pfc.flow: unknown key, the nearest known one is flows",
        ),
    ] {
        let said = errors(&text);
        assert!(said.iter().any(|e| e.contains(problem)), "{problem}\n{said:#?}");
    }
}

// PFC-cor.1
#[test]
fn check_says_where_flows_are_taken_to_be() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("check_beside");
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["c.pem", "c.key", "ca.pem"] {
        fs::write(folder.join(name), "").expect("written");
    }
    let path = folder.join("a.toml");
    fs::write(&path, whole()).expect("written");
    let plan = check(&path).expect("a plan").to_string();
    for line in [
        "PFC         counters of 1 device",
        "  leaf1 by leaf1.example in observation domain 7",
        "    port Ethernet12 is interface 13",
        "  flows of probe.example in observation domain 1 at observation point 9 from 10.0.0.0/8 \
         to 10.0.2.0/24 or fd00::/8 are traffic class 1 at port Ethernet12 of leaf1, interface 13",
        "  since 1970-01-01T00:00:10Z traffic classes have priorities 0 3",
        "  since 1970-01-01T00:00:20Z traffic classes of leaf1 at Ethernet12 have priorities 0 5",
    ] {
        assert!(plan.lines().any(|found| found == line), "no line\n{line}\nin\n{plan}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_configurations_of_the_documentation_are_good() {
    let text = include_str!("../../../../docs/pfc.md");
    let blocks: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    let [agent, of_collector] = blocks[..] else { panic!("{blocks:?}") };
    assert_eq!(super::device(agent).pfc.expect("counters").sources.len(), 2);
    let pfc = collector(&format!("{IPFIX}{of_collector}")).pfc;
    assert_eq!((pfc.devices.len(), pfc.flows.len(), pfc.classes.len()), (1, 1, 1));
    let readme = include_str!("../../../../README.md");
    let block = readme.split("```toml\n").find(|block| block.starts_with("[[pfc.source]]"));
    let block = block.and_then(|rest| rest.split("```").next()).expect("sources");
    assert_eq!(super::device(block).pfc.expect("counters").sources.len(), 2);
}
