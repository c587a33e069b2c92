//! What a program is told of the end of an epoch, and of streams that never had one.

use std::ffi::OsStr;

use serde_json::{Value, json};

use super::frames::{Roce, Tunnel, requests};
use super::support::{Scratch, capture, epochs, flags, good, rocescope};
use super::writer::Trace;

/// The causes in the `closure` of each final report, and the sentences beside them.
fn closures(reports: &[Value]) -> Vec<Vec<(String, String)>> {
    let finals = reports.iter().filter(|report| flags(report).contains(&"finalEpoch"));
    let of = |cause: &Value| {
        let text = |name: &str| cause[name].as_str().expect("text").to_owned();
        (text("cause"), text("reason"))
    };
    finals.map(|r| r["closure"].as_array().expect("a list").iter().map(of).collect()).collect()
}

// SEQ-4.7
#[test]
fn every_final_report_says_in_json_why_its_epoch_closed_as_the_table_does() {
    for (name, options, cause, reason) in [
        ("made/in-order.pcap", &[][..], "end", "end of the capture"),
        (
            "made/read-then-send.pcap",
            &[],
            "violation",
            "outside the profile: RC_READ_REQUEST request",
        ),
        ("made/half-space.pcap", &[], "ambiguous", "a PSN exactly 2^23 away has no order"),
        ("made/window-1.pcap", &["--window", "1"], "jump", "more than the window"),
        ("made/drops-in-packet-option.pcapng", &[], "captureDrops", "the capture dropped packets"),
    ] {
        let path = capture(name);
        let found = closures(&good(&[&path], options).json());
        let (first, sentence) = &found[0][0];
        assert_eq!(first, cause, "{name}: {found:?}");
        assert!(sentence.contains(reason), "{name}: {found:?}");
        let mut arguments = vec![OsStr::new("meter"), "--attest-all".as_ref()];
        arguments.extend(options.iter().map(OsStr::new));
        arguments.push(path.as_os_str());
        let table = rocescope(&arguments).out;
        assert_eq!(table.contains(sentence), cause != "end", "{name}: {table}");
    }
}

// SEQ-8.1: what became known after the epoch had closed is said beside what closed it.
#[test]
fn flags_and_causes_agree_in_every_final_report() {
    for entry in super::support::known("made") {
        for report in good(&[&entry.path], &["--window", "1"]).json() {
            if report["record"] != "sequence" {
                continue;
            }
            let causes: Vec<_> = closures(std::slice::from_ref(&report)).concat();
            let has = |word: &str| causes.iter().any(|(cause, _)| cause == word);
            let flags = flags(&report);
            let name = &entry.name;
            assert!(!causes.is_empty(), "{name}");
            assert_eq!(flags.contains(&"profileViolation"), has("violation"), "{name}");
            let serial = has("jump") || has("ambiguous");
            assert_eq!(flags.contains(&"serialDiscontinuity"), serial, "{name}");
            assert_eq!(flags.contains(&"captureDiscontinuity"), has("captureDrops"), "{name}");
        }
    }
}

#[test]
fn a_report_of_an_epoch_that_goes_on_has_no_closure() {
    let path = capture("softroce/g4_write_q8_loss1.rcv.pcap");
    let reports = good(&[path], &["--report-interval", "0.001"]).json();
    let (finals, others): (Vec<_>, Vec<_>) =
        reports.iter().partition(|report| flags(report).contains(&"finalEpoch"));
    assert!(!finals.is_empty() && !others.is_empty());
    assert!(finals.iter().all(|report| report["closure"].is_array()));
    assert!(others.iter().all(|report| report.get("closure").is_none()));
}

// SEQ-3.3: there is no epoch, so no report can say it.
#[test]
fn a_stream_that_begins_with_a_violation_is_named_beside_json_as_in_the_table() {
    let scratch = Scratch::new();
    let read = Roce { opcode: 0x0c, ..Roce::psn(1) }.frame();
    let path = scratch
        .file("read.pcap", &Trace::from_frames([vec![read], requests(2..4)].concat()).plain());
    let ended = good(&[&path], &[]);
    assert_eq!(ended.out, "");
    let told = ended.err.lines().find(|line| line.starts_with("never metered: ")).expect("a line");
    assert!(told.ends_with("outside the profile: RC_READ_REQUEST request"), "{told}");
    let table = rocescope(&["meter".as_ref(), "--attest-all".as_ref(), path.as_os_str()]).out;
    assert!(
        table.contains("never metered: outside the profile: RC_READ_REQUEST request"),
        "{table}"
    );
}

// SEQ-4.3
#[test]
fn roce_at_another_layer_is_told_with_the_option_that_shows_it() {
    let scratch = Scratch::new();
    for tunnel in Tunnel::ALL {
        let frames: Vec<_> = requests(1..4).iter().map(|frame| tunnel.wrap(frame, 0, 1)).collect();
        let path = scratch.file("inside.pcap", &Trace::from_frames(frames).plain());
        let ended = good(&[&path], &[]);
        let option = format!("try --layer {}, or", tunnel.layer());
        assert!(ended.err.contains(&option), "{tunnel:?}: {}", ended.err);
        assert!(ended.err.contains("3 RoCEv2 packets stand inside "), "{tunnel:?}: {}", ended.err);
        assert!(!ended.err.contains("No RoCEv2 was seen"), "{tunnel:?}: {}", ended.err);
        let inside = good(&[&path], &["--layer", tunnel.layer()]);
        assert!(!inside.err.contains("not the observed layer"), "{tunnel:?}: {}", inside.err);
        assert!(!epochs(&inside.json()).is_empty(), "{tunnel:?}");
    }
    let plain = capture("made/in-order.pcap");
    let ended = good(&[&plain], &["--layer", "vxlan"]);
    let told = "RoCEv2 packets stand in the frames themselves, which is not the observed layer: try \
                --layer outer, or observation.layer = \"outer\"";
    assert!(ended.err.contains(told), "{}", ended.err);
    // Where the observed layer shows some as well, both are told.
    let mixed = [requests(1..3), vec![Tunnel::Vxlan.wrap(&requests(9..10)[0], 0, 0)]].concat();
    let path = scratch.file("mixed.pcap", &Trace::from_frames(mixed).plain());
    let ended = good(&[&path], &[]);
    let told = "1 RoCEv2 packet stands inside VXLAN, which is not the observed layer: another run";
    assert!(ended.err.contains(told), "{}", ended.err);
    // What is too deep for any layer is not promised.
    let deep = Tunnel::Vxlan.wrap(&Tunnel::ErspanII.wrap(&requests(1..2)[0], 0, 1), 0, 1);
    let path = scratch.file("deep.pcap", &Trace::from_frames(vec![deep]).plain());
    let ended = good(&[&path], &[]);
    assert!(
        ended.err.contains("1 RoCEv2 packet inside more than one encapsulation"),
        "{}",
        ended.err
    );
    assert!(!ended.err.contains("No RoCEv2 was seen"), "{}", ended.err);
}

#[test]
fn counts_of_one_are_told_in_the_singular() {
    let ended = good(&[capture("made/read-then-send.pcap")], &[]);
    let told = "1 request outside the profile: not counted, its stream is disabled\n";
    assert!(ended.err.contains(told), "{}", ended.err);
    assert!(ended.err.contains("2 requests accounted to an epoch\n"), "{}", ended.err);
}

#[test]
fn every_report_has_the_members_that_are_fixed_in_front_of_the_closure() {
    let report = &good(&[capture("made/in-order.pcap")], &[]).json()[0];
    assert_eq!(report["closure"], json!([{"cause": "end", "reason": "end of the capture"}]));
}
