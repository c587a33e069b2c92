//! What `--pfc --ipfix` writes: every reading that `--json` prints, as a record that three others
//! read with the same names and values.

use std::path::PathBuf;

use serde_json::Value;

use super::faults::{PFC, control};
use super::pfc_dumped::{of_ipfix_dump, pdml_has};
use super::support::{Scratch, capture, good, number, program, rocescope};
use super::writer::Trace;

/// Elements of a PFC record, as the draft orders them.
const ELEMENTS: [&str; 5] = [
    "observationPointId",
    "ingressPhysicalInterface",
    "pfcPriority",
    "observationTimeMilliseconds",
    "pfcControlFrameTotalCount",
];

/// The readings of a capture whose priorities all count differently, and the IPFIX File.
fn written(scratch: &Scratch) -> (PathBuf, Vec<Value>) {
    let frames = (0..8_u16).flat_map(|priority| {
        let frame = control([2, 0, 0, 0, 0, 7], PFC, 1 << priority, [priority; 8]);
        (0..=priority).map(move |_| frame.clone())
    });
    let path = scratch.file("all.pcap", &Trace::from_frames(frames).plain());
    let file = scratch.path("out.ipfix");
    let text = file.to_str().expect("a path in UTF-8");
    let options = ["--pfc", "--domain", "5", "--point", "77", "--ipfix", text];
    let readings = good(&[path], &options).json();
    let counts: Vec<_> =
        readings.iter().map(|reading| number(reading, "pfcControlFrameTotalCount")).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8]);
    (file, readings)
}

// PFC-rec.1, PFC-rec.2, PFC-id.1
#[test]
fn dump_prints_the_readings_that_meter_printed() {
    let scratch = Scratch::new();
    let (file, readings) = written(&scratch);
    let dumped = rocescope(&["dump".as_ref(), file.as_os_str()]);
    assert_eq!(dumped.code, Some(0), "{}", dumped.err);
    let found: Vec<_> = dumped.json().into_iter().filter(|r| r["record"] == "pfc").collect();
    assert_eq!(found, readings);
    let of_file = capture("made/pfc.pcap");
    let file = scratch.path("made.ipfix");
    let text = file.to_str().expect("a path in UTF-8");
    let readings = good(&[of_file], &["--pfc", "--ipfix", text]).json();
    let dumped = rocescope(&["dump".as_ref(), file.as_os_str()]).json();
    let found: Vec<_> = dumped.into_iter().filter(|r| r["record"] == "pfc").collect();
    assert_eq!((found.len(), &found), (8, &readings));
}

// PFC-op.1
#[test]
fn without_a_reading_the_file_has_no_pfc_record_and_no_template_for_one() {
    let scratch = Scratch::new();
    let file = scratch.path("out.ipfix");
    let text = file.to_str().expect("a path in UTF-8");
    good(&[capture("made/in-order.pcap")], &["--pfc", "--ipfix", text]);
    let dumped = rocescope(&["dump".as_ref(), file.as_os_str()]).json();
    let total =
        |record: &Value| record.to_string().contains("\"name\":\"pfcControlFrameTotalCount\"");
    assert!(dumped.iter().all(|record| record["record"] != "pfc"));
    assert!(!dumped.iter().filter(|record| record["record"] == "template").any(total));
}

// PFC-exp.2, PFC-rec.1
#[test]
fn libfixbuf_reads_every_reading_with_the_names_that_the_file_gives() {
    let scratch = Scratch::new();
    let (file, readings) = written(&scratch);
    let text = file.to_str().expect("a path in UTF-8");
    let read = program("ipfixDump", &["--rfc5610", "--in", text], Vec::new());
    assert_eq!((read.code, read.err.as_str()), (Some(0), ""), "{text}");
    assert!(!read.out.contains("alien"), "an element without a name");
    let found = of_ipfix_dump(&read.out);
    assert_eq!(found.len(), readings.len(), "{}", read.out);
    for (values, reading) in found.iter().zip(&readings) {
        // A time is written as a date, which the judges of reports look at.
        for name in ELEMENTS.iter().filter(|name| **name != "observationTimeMilliseconds") {
            assert_eq!(values[*name], number(reading, name).to_string(), "{name}");
        }
        assert!(values.contains_key("observationTimeMilliseconds"));
    }
}

// PFC-rec.1
#[test]
fn tshark_reads_every_reading_and_has_no_complaint() {
    let scratch = Scratch::new();
    let (file, readings) = written(&scratch);
    let text = file.to_str().expect("a path in UTF-8");
    let read = program("tshark", &["-T", "pdml", "-r", text], Vec::new());
    assert_eq!(read.code, Some(0), "{}", read.err);
    assert!(!read.out.contains("_ws.expert"), "tshark complains");
    assert!(!read.out.contains("_ws.malformed"), "tshark finds it malformed");
    for reading in &readings {
        let n = |name: &str| number(reading, name);
        let (priority, total) = (n("pfcPriority"), n("pfcControlFrameTotalCount"));
        // Each record, and each field in it, as it stands on the wire, in hexadecimal.
        let fields = [
            format!("{:016x}", n("observationPointId")),
            format!("{:08x}", n("ingressPhysicalInterface")),
            format!("{priority:02x}"),
            format!("{:016x}", n("observationTimeMilliseconds")),
            format!("{total:016x}"),
        ];
        assert!(pdml_has(&read.out, &fields), "{reading}");
    }
    for name in
        ["observation_point_id", "ingress_physical_interface", "observation_time_milliseconds"]
    {
        let times = read.out.matches(&format!("name=\"cflow.{name}\"")).count();
        assert_eq!(times, readings.len(), "{name}");
    }
}
