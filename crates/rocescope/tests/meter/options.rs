//! What the options of `meter` change, and what they do not.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::frames::{Roce, Tunnel, requests};
use super::support::{
    Ended, ROCESCOPE, Scratch, capture, epochs, good, in_a_record, known, number, rocescope,
};
use super::writer::{ETHERNET, Trace};

fn configured(capture: &Path, file: &Path, options: &[&str]) -> Ended {
    let mut arguments = vec![OsStr::new("meter"), "--json".as_ref(), "--config".as_ref()];
    arguments.extend([file.as_os_str(), capture.as_os_str()]);
    arguments.extend(options.iter().map(OsStr::new));
    let ended = rocescope(&arguments);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended
}

const ATTESTED: &str = "send_write_only = true\ncomplete_capture = true\nall_paths = true\n\
                        half_space = true\nseparate_namespaces = true\n";

/// A configuration that provisions every stream between these networks.
fn configuration(networks: &str, more: &str) -> String {
    format!(
        "[meter]\nwindow = 8\n{more}\n[[rule]]\nsources = [{networks}]\n\
         destinations = [{networks}]\n[rule.attest]\n{ATTESTED}"
    )
}

#[test]
fn a_configuration_that_provisions_everything_gives_what_attest_all_gives() {
    let scratch = Scratch::new();
    let file = scratch.file("all.toml", configuration(r#""0.0.0.0/0", "::/0""#, "").as_bytes());
    for capture in known("made").iter().filter(|capture| capture.name != "pfc.pcap") {
        let attested = good(&[&capture.path], &["--window", "8"]);
        let found = configured(&capture.path, &file, &[]);
        assert_eq!(found.json(), attested.json(), "{}", capture.name);
    }
}

// SEQ-3.1, SEQ-10.3: a packet provisions nothing.
#[test]
fn what_no_rule_names_is_not_metered_and_is_counted_as_that() {
    let scratch = Scratch::new();
    let other = |psn| Roce { source: [10, 2, 0, 1], ..Roce::psn(psn) }.frame();
    let trace = Trace::from_frames([requests(1..4), vec![other(1), other(2)]].concat());
    let path = scratch.file("two.pcap", &trace.plain());
    let file = scratch.file("one.toml", configuration(r#""10.1.0.0/16""#, "").as_bytes());
    let ended = configured(&path, &file, &[]);
    let found = epochs(&ended.json());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].source.as_str(), found[0].requests), ("10.1.0.1", 3));
    assert!(ended.err.contains("2 requests of streams that are not provisioned"), "{}", ended.err);
}

// SEQ-10.3: a bound that is reached is said, and no honest epoch closes for it.
#[test]
fn streams_beyond_the_context_limit_are_refused_and_counted() {
    let scratch = Scratch::new();
    let frames = (0..12).map(|n| Roce { qp: n % 4, ..Roce::psn(n / 4) }.frame());
    let path = scratch.file("four.pcap", &Trace::from_frames(frames).plain());
    for (most, metered, refused) in [(3, 3, 3), (4, 4, 0), (5, 4, 0)] {
        let more = format!("contexts_max = {most}\n");
        let text = configuration(r#""0.0.0.0/0""#, &more);
        let file = scratch.file("bound.toml", text.as_bytes());
        let ended = configured(&path, &file, &[]);
        let found = epochs(&ended.json());
        assert_eq!(found.len(), metered, "at most {most}");
        assert!(found.iter().all(|epoch| epoch.requests == 3 && epoch.reasons.is_empty()));
        let said = ended.err.contains(&format!("{refused} requests of streams refused"));
        assert_eq!(said, refused > 0, "{}", ended.err);
    }
}

// SEQ-3.8
#[test]
fn checking_every_icrc_changes_nothing_where_all_are_good() {
    let mut checked = 0;
    for capture in known("softroce") {
        let facts = &capture.facts["facts"];
        if facts["icrc_ok"].as_u64().unwrap_or(0) == 0 {
            continue;
        }
        assert_eq!(number(facts, "icrc_bad"), 0);
        let plain = good(&[&capture.path], &["--window", "16"]);
        let ended = good(&[&capture.path], &["--window", "16", "--check-icrc"]);
        assert_eq!(ended.json(), plain.json(), "{}", capture.name);
        let said = format!("{} packets with a good ICRC", number(facts, "icrc_ok"));
        assert!(ended.err.contains(&said), "{}: {}", capture.name, ended.err);
        assert!(!ended.err.contains("wrong ICRC"), "{}: {}", capture.name, ended.err);
        checked += 1;
    }
    assert!(checked > 20, "{checked} captures");
}

// SEQ-3.8: a packet that fails belongs to no stream for certain, so nothing of it is counted.
#[test]
fn a_packet_with_a_wrong_icrc_is_a_gap_where_icrcs_are_checked() {
    let scratch = Scratch::new();
    let mut trace = Trace::read(&capture("softroce/h1_write_ipv6.rcv.pcap"));
    let request = trace
        .packets
        .iter()
        .position(|packet| packet.data.len() > 1000)
        .expect("a request with a payload");
    let last = trace.packets[request].data.len() - 20;
    trace.packets[request].data[last] ^= 1;
    let path = scratch.file("bad.pcap", &trace.plain());
    let plain = good(&[&path], &[]);
    assert!(epochs(&plain.json()).iter().all(|epoch| epoch.reasons.is_empty()));
    let ended = good(&[&path], &["--check-icrc"]);
    assert!(ended.err.contains("1 packet with a wrong ICRC"), "{}", ended.err);
    let sum = |ended: &Ended| epochs(&ended.json()).iter().map(|e| e.requests).sum::<u64>();
    assert_eq!(sum(&ended) + 1, sum(&plain), "neither counted nor skipped");
    if request > 0 {
        let gap = |epoch: &super::support::Epoch| epoch.has("captureDiscontinuity");
        assert!(epochs(&ended.json()).iter().any(gap), "{}", ended.out);
    }
}

/// Frames that a mirror has cut to `kept` octets without saying so.
fn cut_by_the_mirror(kept: usize) -> Vec<u8> {
    let frames = requests(1..4).into_iter().map(|frame| frame[..kept].to_vec());
    Trace::from_frames(frames).plain()
}

#[test]
fn a_mirror_that_cuts_is_no_lie_of_the_lengths_where_the_operator_says_so() {
    let scratch = Scratch::new();
    let path = scratch.file("cut.pcap", &cut_by_the_mirror(64));
    let ended = good(&[&path], &["--sliced"]);
    let found = epochs(&ended.json());
    assert_eq!((found.len(), found[0].requests), (1, 3), "the BTH is there");
    assert!(!ended.err.contains("lengths that reach beyond"), "{}", ended.err);
    // SEQ-3.3: without that word a length beyond the frame is a malformed request.
    let ended = good(&[&path], &[]);
    assert_eq!(ended.out, "");
    assert!(ended.err.contains("3 lengths that reach beyond"), "{}", ended.err);
    assert!(ended.err.contains("3 requests outside the profile"), "{}", ended.err);
    // The same word in a configuration.
    let frames = "[observation]\nframes = \"sliced\"\n".to_owned();
    let file =
        scratch.file("sliced.toml", (frames + &configuration(r#""0.0.0.0/0""#, "")).as_bytes());
    assert_eq!(epochs(&configured(&path, &file, &[]).json()).len(), 1);
    // Where it is not there, nothing is counted either way.
    let path = scratch.file("short.pcap", &cut_by_the_mirror(50));
    for options in [&[][..], &["--sliced"]] {
        assert_eq!(good(&[&path], options).out, "");
    }
}

#[test]
fn domain_point_and_enterprise_number_are_those_that_were_asked_for() {
    let scratch = Scratch::new();
    let path = capture("made/in-order.pcap");
    let file = scratch.path("out.ipfix");
    let text = file.to_str().expect("UTF-8");
    let options = ["--domain", "7", "--point", "9", "--pen", "64512", "--ipfix", text];
    let reports = good(&[&path], &options).json();
    assert_eq!(number(&reports[0], "observationDomainId"), 7);
    assert_eq!(number(&reports[0], "observationPointId"), 9);
    let dumped = rocescope(&["dump", "--pen", "64512", text]).json();
    let sequence: Vec<_> =
        dumped.into_iter().filter(|object| object["record"] == "sequence").collect();
    assert_eq!(sequence, reports.iter().map(in_a_record).collect::<Vec<_>>());
    // Under another number they are somebody else's elements.
    let foreign = rocescope(&["dump", text]).json();
    assert!(foreign.iter().all(|object| object["record"] != "sequence"));
}

// Two captures of one point in another order are told of, and joined to nothing.
#[test]
fn files_out_of_order_are_warned_about_and_break_the_epochs() {
    let scratch = Scratch::new();
    let mut early = Trace::from_frames(requests(1..4));
    let late = Trace::from_frames(requests(4..7));
    let day_ns = 86_400_000_000_000;
    early.packets.iter_mut().for_each(|packet| packet.time_ns -= day_ns);
    let (early, late) =
        (scratch.file("a.pcap", &early.plain()), scratch.file("b.pcap", &late.plain()));
    let ended = good(&[&early, &late], &[]);
    assert_eq!(epochs(&ended.json()).len(), 1);
    assert!(!ended.err.contains("warning"), "{}", ended.err);
    let ended = good(&[&late, &early], &[]);
    let found = epochs(&ended.json());
    let gaps = found.iter().filter(|epoch| epoch.has("captureDiscontinuity")).count();
    assert_eq!((found.len(), gaps), (2, 1));
    assert!(
        ended.err.contains("are they in order, and does each packet stand in one of them only?"),
        "{}",
        ended.err
    );
}

#[test]
fn the_table_has_a_line_for_each_stream_and_the_sums_of_its_epochs() {
    let path = capture("made/window-edge.pcap");
    let arguments = ["meter", "--attest-all", "--window", "8"].map(OsStr::new);
    let table = rocescope(&[&arguments[..], &[path.as_os_str()]].concat());
    let found = epochs(&good(&[&path], &["--window", "8"]).json());
    let requests: u64 = found.iter().map(|epoch| epoch.requests).sum();
    let line = table.out.lines().find(|line| line.starts_with("10.1.0.1 > 10.1.0.2"));
    let cells: Vec<_> = line.expect("a line").split_whitespace().collect();
    // Two addresses with an arrow, "qp", its number, "pkey", its number.
    assert_eq!(cells[7], found.len().to_string());
    assert_eq!(cells[8], requests.to_string());
    assert!(cells.contains(&"serialDiscontinuity"), "{cells:?}");
}

// SEQ-3.3, SEQ-10.3: a stream that was never metered is shown, and none of its counts is a zero.
#[test]
fn a_stream_that_a_violation_disabled_before_it_had_an_epoch_has_a_line_without_counts() {
    let path = capture("softroce/v1_cm_rping.a.pcap");
    let arguments = ["meter", "--attest-all"].map(OsStr::new);
    let table = rocescope(&[&arguments[..], &[path.as_os_str()]].concat());
    let mut lines = table.out.lines().skip_while(|line| !line.starts_with("10.0.0.2 > 10.0.0.1"));
    let cells: Vec<_> = lines.next().expect("a line").split_whitespace().collect();
    assert_eq!(cells[7..], ["0", "-", "-", "-", "-", "-", "-", "-", "profileViolation"]);
    let reason = lines.next().expect("its reason").trim();
    assert_eq!(reason, "never metered: outside the profile: RC_READ_REQUEST request");
}

// SEQ-4.3
#[test]
fn what_a_carrier_itself_would_be_is_not_counted_beside_what_it_carries() {
    let scratch = Scratch::new();
    // RoCEv2 in VXLAN beside the same RoCEv2 without it.
    let bare = requests(1..6);
    let frames = bare.iter().flat_map(|frame| [frame.clone(), Tunnel::Vxlan.wrap(frame, 0, 0)]);
    let trace = Trace { link: ETHERNET, ..Trace::from_frames(frames) };
    let path = scratch.file("both.pcap", &trace.plain());
    for layer in ["outer", "vxlan"] {
        let found = epochs(&good(&[&path], &["--layer", layer]).json());
        assert_eq!(found.len(), 1, "{layer}");
        assert_eq!(found[0].counts(), [5, 0, 0, 0, 0, 0, 0], "{layer}");
    }
}

/// What is interrupted ends there, with everything that was observed, and a file that can be read.
#[test]
fn an_interrupted_run_gives_the_results_up_to_there() {
    let scratch = Scratch::new();
    let file = scratch.path("interrupted.ipfix");
    let capture = Trace::from_frames(requests(0..3000)).plain();
    let mut child = Command::new(ROCESCOPE)
        .args(["meter", "--attest-all", "--json", "--report-interval", "0.000000001", "--ipfix"])
        .args([file.as_os_str(), "-".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut input = child.stdin.take().expect("a pipe");
    // All but the last packet, and the reports of these before anything else happens.
    let (now, later) = capture.split_at(capture.len() - 50);
    let mut out = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).expect("text");
        text
    });
    input.write_all(now).expect("written");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupted");
    // As what stands in front of the pipe is interrupted too, and ends it.
    _ = input.write_all(later);
    drop(input);
    let output = child.wait_with_output().expect("its end");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(
        err.contains("interrupted: the results are those of what was read until then"),
        "{err}"
    );
    let text = reader.join().expect("read");
    let last = text.lines().last().expect("a report");
    assert!(last.contains("\"finalEpoch\""), "{last}");
    let dumped = rocescope(&["dump".as_ref(), file.as_os_str()]);
    assert_eq!(dumped.code, Some(0), "{}", dumped.err);
    assert!(dumped.out.contains("\"finalEpoch\""));
}
