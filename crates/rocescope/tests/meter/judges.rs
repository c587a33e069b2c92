//! What `--ipfix` writes, read by three others: our own `dump`, tshark and libfixbuf's ipfixDump.
//!
//! Every record that `--json` prints has to be there, in its order, with every value the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::frames::{Tunnel, requests};
use super::support::{ROCESCOPE, Scratch, capture, good, in_a_record, number, program, rocescope};
use super::writer::{ETHERNET, Trace};

/// A capture, and how it is metered.
struct Case {
    capture: PathBuf,
    options: Vec<&'static str>,
}

fn cases(scratch: &Scratch) -> Vec<Case> {
    let from_repository = [
        "made/in-order.pcap",
        "made/ipv6.pcap",
        "made/vlan.pcap",
        "made/qinq.pcap",
        "made/wrap-with-gap.pcap",
        "made/window-edge.pcap",
        "made/half-space.pcap",
        "made/two-pkeys.pcap",
        "made/twenty-streams.pcap",
        "made/random-walk.pcap",
        "made/read-then-send.pcap",
        "made/drops-in-statistics.pcapng",
        "softroce/e1_write_loss2.rcv.pcap",
        "softroce/h1_write_ipv6.rcv.pcap",
        "softroce/i1_write_vlan.rcv.pcap",
    ];
    let mut cases: Vec<_> = from_repository
        .map(|name| Case { capture: capture(name), options: vec!["--window", "8"] })
        .into();
    cases.push(Case {
        capture: capture("softroce/g4_write_q8_loss1.rcv.pcap"),
        options: vec!["--window", "16", "--report-interval", "0.01"],
    });
    cases.push(Case {
        capture: capture("made/in-order.pcap"),
        options: vec!["--domain", "4294967295", "--point", "18446744073709551615"],
    });
    let inside =
        Trace::from_frames(requests(7..12)).map(ETHERNET, |frame| Tunnel::Vxlan.wrap(frame, 0, 0));
    cases.push(Case {
        capture: scratch.file("vxlan.pcap", &inside.plain()),
        options: vec!["--layer", "vxlan"],
    });
    // More epochs than one message has room for.
    let jumps = Trace::from_frames(requests((0..1500_u32).map(|n| n.wrapping_mul(5_000_000))));
    cases.push(Case { capture: scratch.file("jumps.pcap", &jumps.plain()), options: vec![] });
    cases
}

/// The reports of each case beside the IPFIX File that was written with them.
fn each_case(mut judge: impl FnMut(&Path, &[Value])) {
    let scratch = Scratch::new();
    for case in cases(&scratch) {
        let file = scratch.path("out.ipfix");
        let mut options = case.options.clone();
        options.extend(["--ipfix", file.to_str().expect("a path in UTF-8")]);
        let reports = good(&[&case.capture], &options).json();
        assert!(!reports.is_empty(), "{}", case.capture.display());
        let reports: Vec<_> = reports.iter().map(in_a_record).collect();
        judge(&file, &reports);
    }
}

#[test]
fn dump_prints_the_records_that_meter_printed() {
    each_case(|file, reports| {
        let dumped = rocescope(&["dump".as_ref(), file.as_os_str()]);
        assert_eq!(dumped.code, Some(0), "{}", dumped.err);
        let objects = dumped.json();
        let sequence: Vec<_> =
            objects.into_iter().filter(|object| object["record"] == "sequence").collect();
        assert_eq!(sequence.len(), reports.len());
        for (dumped, report) in sequence.iter().zip(reports) {
            assert_eq!(dumped, report);
        }
        let from_input = program(ROCESCOPE, &["dump", "-"], fs::read(file).expect("a file"));
        assert_eq!(from_input.out, dumped.out);
    });
}

// SEQ-6.6
#[test]
fn the_flow_keys_are_every_identifying_field_and_the_report_id_is_none() {
    each_case(|file, _| {
        let objects = rocescope(&["dump".as_ref(), file.as_os_str()]).json();
        let shapes: BTreeMap<_, _> = objects
            .iter()
            .filter(|object| object["record"] == "template")
            .map(|object| (number(object, "templateId"), object))
            .collect();
        let keys: Vec<_> =
            objects.iter().filter(|object| object["flowKeyIndicator"].is_u64()).collect();
        assert!(!keys.is_empty());
        for key in keys {
            let template = shapes[&number(key, "templateId")];
            let fields = template["fields"].as_array().expect("fields");
            for (n, field) in fields.iter().enumerate() {
                let name = field["name"].as_str().expect("a name");
                let identifies = matches!(
                    name,
                    "observationPointId"
                        | "sourceIPv4Address"
                        | "destinationIPv4Address"
                        | "sourceIPv6Address"
                        | "destinationIPv6Address"
                        | "rdmaDestinationQP"
                        | "rdmaPartitionKey"
                        | "rdmaSequenceEpochId"
                        | "dot1qVlanId"
                        | "dot1qCustomerVlanId"
                        | "layer2SegmentId"
                );
                let is_key = number(key, "flowKeyIndicator") >> n & 1 == 1;
                assert_eq!(is_key, identifies, "{name}");
            }
        }
    });
}

/// The default numbers of the drafts' elements.
const OURS: [(u64, &str); 14] = [
    (1, "rdmaSequenceEpochId"),
    (2, "rdmaSequenceReportId"),
    (3, "rdmaSequenceWindow"),
    (4, "rdmaSequenceFlags"),
    (5, "skippedPsnTotalCount"),
    (6, "filledPsnTotalCount"),
    (7, "expiredPsnTotalCount"),
    (8, "abandonedPsnTotalCount"),
    (9, "pendingPsnCount"),
    (10, "repeatedPsnTotalCount"),
    (11, "requestPacketTotalCount"),
    (12, "unclassifiedLatePacketTotalCount"),
    (21, "rdmaDestinationQP"),
    (22, "rdmaPartitionKey"),
];

/// What tshark calls the standard elements.
const TSHARK: [(&str, &str); 10] = [
    ("cflow.observation_point_id", "observationPointId"),
    ("cflow.srcaddr", "sourceIPv4Address"),
    ("cflow.dstaddr", "destinationIPv4Address"),
    ("cflow.srcaddrv6", "sourceIPv6Address"),
    ("cflow.dstaddrv6", "destinationIPv6Address"),
    ("cflow.abstimestart", "flowStartMilliseconds"),
    ("cflow.abstimeend", "flowEndMilliseconds"),
    ("cflow.dot1q_vlan_id", "dot1qVlanId"),
    ("cflow.dot1q_customer_vlan_id", "dot1qCustomerVlanId"),
    ("cflow.layer2_segment_id", "layer2SegmentId"),
];

/// A record: the octets that it takes, and its values by element name.
type Read<T> = (usize, BTreeMap<String, T>);

// SEQ-6.2, SEQ-6.9: each field once, at full length.
#[test]
fn tshark_reads_every_record_with_the_same_values_and_has_no_complaint() {
    each_case(|file, reports| {
        let text = file.to_str().expect("a path in UTF-8");
        let read = program("tshark", &["-T", "pdml", "-r", text], Vec::new());
        assert_eq!(read.code, Some(0), "{}", read.err);
        assert!(!read.out.contains("_ws.expert"), "tshark complains of {text}");
        assert!(!read.out.contains("_ws.malformed"), "tshark finds {text} malformed");
        let records = of_pdml(&read.out);
        assert_eq!(records.len(), reports.len());
        for ((octets, found), report) in records.iter().zip(reports) {
            assert_eq!(found, &in_octets(report));
            let base = if report["sourceIPv4Address"].is_string() { 120 } else { 144 };
            let namespace: usize =
                [("dot1qVlanId", 2), ("dot1qCustomerVlanId", 2), ("layer2SegmentId", 8)]
                    .iter()
                    .filter(|(name, _)| !report[*name].is_null())
                    .map(|(_, octets)| octets)
                    .sum();
            assert_eq!(*octets, base + namespace, "{report}");
        }
    });
}

fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// The records of data sets that are no options, each value in hexadecimal.
fn of_pdml(text: &str) -> Vec<Read<String>> {
    let mut records: Vec<Read<String>> = Vec::new();
    let mut in_reports = false;
    for line in text.lines() {
        let show = attribute(line, "show").unwrap_or("");
        if line.starts_with("<packet>") {
            in_reports = false;
        } else if show.starts_with("Set ") {
            let id = show.split_once("[id=").and_then(|(_, rest)| rest.split_once(']'));
            let id: u16 = id.and_then(|(id, _)| id.parse().ok()).expect("the id of a set");
            in_reports = (256..300).contains(&id);
        } else if in_reports && show.starts_with("Flow ") {
            let octets = attribute(line, "size").and_then(|size| size.parse().ok());
            records.push((octets.expect("a size"), BTreeMap::new()));
        } else if let (true, Some((_, record))) = (in_reports, records.last_mut()) {
            let (Some(name), Some(value)) = (attribute(line, "name"), attribute(line, "value"))
            else {
                continue;
            };
            let Some(name) = element_of(name, line) else { continue };
            let twice = record.insert(name.to_owned(), value.to_owned());
            assert_eq!(twice, None, "{name} stands twice in a record");
        }
    }
    records
}

fn element_of(name: &str, line: &str) -> Option<&'static str> {
    if name == "cflow.enterprise_private_entry" {
        let (_, rest) = line.split_once(" Type ")?;
        let id: u64 = rest.split_once(':')?.0.parse().ok()?;
        return OURS.iter().find(|(ours, _)| *ours == id).map(|(_, name)| *name);
    }
    let known = TSHARK.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    let of_the_set = ["cflow.flowset_id", "cflow.flowset_length", "cflow.template_frame"];
    assert!(
        known.is_some() || of_the_set.contains(&name) || name == "cflow.timedelta",
        "an element that no report has: {line}"
    );
    known
}

/// Octets of each element on the wire.
fn length_of(name: &str) -> usize {
    match name {
        "rdmaSequenceWindow" | "pendingPsnCount" | "rdmaDestinationQP" => 4,
        "rdmaSequenceFlags" | "rdmaPartitionKey" | "dot1qVlanId" | "dot1qCustomerVlanId" => 2,
        _ => 8,
    }
}

/// The members of a report that are elements, in hexadecimal.
fn in_octets(report: &Value) -> BTreeMap<String, String> {
    let members = report.as_object().expect("an object");
    members
        .keys()
        .filter(|name| !matches!(name.as_str(), "record" | "flags" | "observationDomainId"))
        .map(|name| (name.clone(), octets_of(report, name)))
        .collect()
}

fn octets_of(report: &Value, name: &str) -> String {
    let hex = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect();
    if name.ends_with("Address") {
        let text = report[name].as_str().expect("an address");
        return match text.parse().expect("an address") {
            std::net::IpAddr::V4(address) => hex(&address.octets()),
            std::net::IpAddr::V6(address) => hex(&address.octets()),
        };
    }
    let octets = number(report, name).to_be_bytes();
    hex(&octets[8 - length_of(name)..])
}

// PFC-exp.2: from the type records in the file alone, libfixbuf knows names, types and values.
#[test]
fn libfixbuf_reads_every_record_with_the_names_that_the_file_gives() {
    each_case(|file, reports| {
        let text = file.to_str().expect("a path in UTF-8");
        let read = program("ipfixDump", &["--rfc5610", "--in", text], Vec::new());
        assert_eq!((read.code, read.err.as_str()), (Some(0), ""), "{text}");
        assert!(!read.out.contains("alien"), "an element without a name in {text}");
        let records = of_ipfix_dump(&read.out);
        assert_eq!(records.len(), reports.len());
        for (found, report) in records.iter().zip(reports) {
            assert_eq!(found, &in_words(report));
        }
        let described = read.out.matches("informationElementName : ").count();
        assert_eq!(described, 16, "one type record for each element of the drafts");
    });
}

/// The records that have an epoch id.
fn of_ipfix_dump(text: &str) -> Vec<BTreeMap<String, String>> {
    let records = text.split("--- data record").skip(1).map(|record| {
        let fields =
            record.lines().take_while(|line| !line.starts_with("***")).filter_map(|line| {
                let (_, rest) = line.strip_prefix("\t(")?.split_once(')')?;
                let (name, value) = rest.split_once(" : ")?;
                // Zeros may be written or left out.
                let address = value.parse::<std::net::Ipv6Addr>();
                let value = address.map_or(value.to_owned(), |address| address.to_string());
                Some((name.trim().to_owned(), value))
            });
        fields.collect::<BTreeMap<_, _>>()
    });
    records.filter(|record| record.contains_key("rdmaSequenceEpochId")).collect()
}

/// The members of a report as ipfixDump prints them.
fn in_words(report: &Value) -> BTreeMap<String, String> {
    let members = report.as_object().expect("an object");
    let mut words = BTreeMap::new();
    for name in members.keys() {
        let text = match name.as_str() {
            "record" | "flags" | "observationDomainId" => continue,
            "flowStartMilliseconds" | "flowEndMilliseconds" => date(number(report, name)),
            address if address.ends_with("Address") => {
                report[name].as_str().expect("an address").to_owned()
            }
            _ => number(report, name).to_string(),
        };
        words.insert(name.clone(), text);
    }
    words
}

/// A time as year, month, day and time of the day.
fn date(ms: u64) -> String {
    let (mut days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    // From 1970 to 2099 every fourth year is one.
    let is_leap = |year: u64| year.is_multiple_of(4);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < len {
            break;
        }
        days -= len;
        month += 1;
    }
    let (seconds, ms) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let day = days + 1;
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

#[test]
fn the_same_captures_make_the_same_file_octet_by_octet() {
    let scratch = Scratch::new();
    for name in ["made/random-walk.pcap", "softroce/g4_write_q8_loss1.rcv.pcap"] {
        let files = ["a.ipfix", "b.ipfix"].map(|file| {
            let path = scratch.path(file);
            good(&[capture(name)], &["--ipfix", path.to_str().expect("a path in UTF-8")]);
            fs::read(path).expect("a file")
        });
        assert!(!files[0].is_empty());
        assert_eq!(files[0], files[1], "{name}");
    }
}
