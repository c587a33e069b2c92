//! Every capture that comes with the repository against what is known of it.

use super::support::{capture, epochs, flags, good, known, library, number, of_facts, run};

/// Captures that were written for one question each.
const MADE: usize = 34;
/// Captures of two hosts with a software implementation of RoCEv2.
const SOFTROCE: usize = 35;

#[test]
fn every_made_capture_gives_the_epochs_that_are_known_of_it() {
    let known = known("made");
    assert_eq!(known.len(), MADE, "captures with facts");
    for capture in known.iter().filter(|capture| capture.name != "pfc.pcap") {
        let window = number(&capture.facts, "window");
        let ended = good(&[&capture.path], &["--window", &window.to_string()]);
        let found = epochs(&ended.json());
        assert_eq!(found, of_facts(&capture.facts["epochs"]), "{}", capture.name);
    }
}

#[test]
fn every_softroce_capture_gives_the_epochs_that_are_known_of_it_for_both_windows() {
    let known = known("softroce");
    assert_eq!(known.len(), SOFTROCE, "captures with facts");
    for capture in &known {
        let by_window = capture.facts["epochs"].as_object().expect("epochs by window");
        assert_eq!(by_window.len(), 2, "{}", capture.name);
        for (window, facts) in by_window {
            let ended = good(&[&capture.path], &["--window", window]);
            let found = epochs(&ended.json());
            assert_eq!(found, of_facts(facts), "{} with window {window}", capture.name);
        }
    }
}

#[test]
fn the_program_prints_what_the_library_gives() {
    for capture in known("made").iter().filter(|capture| capture.name != "pfc.pcap") {
        let window = u32::try_from(number(&capture.facts, "window")).expect("a window");
        let by_library = library(run(&[&capture.path], window));
        by_library.done.expect("a good run");
        let by_program = good(&[&capture.path], &["--window", &window.to_string()]);
        assert_eq!(by_program.json(), by_library.reports, "{}", capture.name);
        assert!(by_program.err.ends_with(&by_library.warnings), "{}", capture.name);
    }
}

// PFC-count.1, PFC-count.3, PFC-count.4
#[test]
fn pfc_frames_are_counted_for_each_set_bit_and_nothing_else_is() {
    let known = known("made");
    let pfc = known.iter().find(|capture| capture.name == "pfc.pcap").expect("pfc.pcap");
    let records = good(&[&pfc.path], &["--pfc"]).json();
    assert_eq!(records.len(), 8);
    let expected = pfc.facts["received"].as_array().expect("counts");
    for (priority, (record, count)) in (0..).zip(records.iter().zip(expected)) {
        assert_eq!(record["record"], "pfc");
        assert_eq!(number(record, "pfcPriority"), priority);
        // PFC-id.1: received, so by the ingress interface, and by no other.
        assert!(record["ingressPhysicalInterface"].is_u64());
        assert!(record["egressPhysicalInterface"].is_null());
        assert_eq!(&record["pfcControlFrameTotalCount"], count);
    }
}

// PFC-op.1
#[test]
fn a_capture_without_a_pfc_frame_gives_no_pfc_record_rather_than_zeros() {
    let ended = good(&[capture("made/in-order.pcap")], &["--pfc"]);
    assert!(ended.json().iter().all(|record| record["record"] != "pfc"));
    assert!(ended.err.contains("no PFC frame was seen"), "{}", ended.err);
}

// SEQ-4.5, SEQ-6.4: a file is a session of its own: epoch ids from 1 up, one report each.
#[test]
fn epoch_ids_grow_from_report_to_report_and_a_final_by_itself_is_report_1() {
    for name in
        ["made/random-walk.pcap", "made/twenty-streams.pcap", "softroce/g1_write_q8.rcv.pcap"]
    {
        let reports = good(&[capture(name)], &["--window", "8"]).json();
        assert!(!reports.is_empty());
        for (epoch, report) in (1..).zip(&reports) {
            assert_eq!(number(report, "rdmaSequenceEpochId"), epoch, "{name}");
            assert_eq!(number(report, "rdmaSequenceReportId"), 1, "{name}");
        }
    }
}

// SEQ-5.5, SEQ-6.3, SEQ-6.4, SEQ-7.4
#[test]
fn periodic_reports_are_cumulative_and_end_in_the_same_finals() {
    let path = capture("softroce/g4_write_q8_loss1.rcv.pcap");
    let finals = epochs(&good(&[&path], &["--window", "16"]).json());
    let reports = good(&[&path], &["--window", "16", "--report-interval", "0.001"]).json();
    assert!(reports.len() > 2 * finals.len(), "{} reports", reports.len());
    assert_eq!(epochs(&reports), finals);
    let totals = [
        "requestPacketTotalCount",
        "skippedPsnTotalCount",
        "filledPsnTotalCount",
        "expiredPsnTotalCount",
        "repeatedPsnTotalCount",
        "unclassifiedLatePacketTotalCount",
        "flowEndMilliseconds",
    ];
    let mut latest = std::collections::BTreeMap::new();
    for report in &reports {
        let epoch = number(report, "rdmaSequenceEpochId");
        let before = latest.insert(epoch, report);
        let id = number(report, "rdmaSequenceReportId");
        assert_eq!(id, 1 + before.map_or(0, |r| number(r, "rdmaSequenceReportId")));
        if let Some(before) = before {
            for total in totals {
                assert!(number(before, total) <= number(report, total), "{total} in {report}");
            }
            assert!(!flags(before).contains(&"finalEpoch"), "{before}");
            assert_eq!(number(before, "abandonedPsnTotalCount"), 0);
        }
    }
    for report in latest.values() {
        assert!(flags(report).contains(&"finalEpoch"), "{report}");
    }
}
