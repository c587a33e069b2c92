//! Faults that were found by trying to break the program, and must not come back: each test is
//! what was wrong, said the other way round.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use wire::frame::Layer;

use super::faults::{PFC, control};
use super::frames::{Roce, Tunnel, carried, ip_offset, requests, tagged};
use super::support::{
    Ended, ROCESCOPE, Scratch, epochs, good, library, meter, number, program, rocescope, run,
};
use super::writer::{ETHERNET, NANOSECONDS, Order, Packet, PcapNg, START_NS, STEP_NS, Trace, len};

const GAP: &str = "captureDiscontinuity";

fn of_octets(octets: &[u8], options: &[&str]) -> Ended {
    let scratch = Scratch::new();
    good(&[scratch.file("found.capture", octets)], options)
}

fn of_frames(frames: Vec<Vec<u8>>, options: &[&str]) -> Ended {
    of_octets(&Trace::from_frames(frames).plain(), options)
}

/// Requests, skipped positions and whether the observation was interrupted, epoch by epoch.
#[track_caller]
fn shapes(ended: &Ended) -> Vec<(u64, u64, bool)> {
    epochs(&ended.json()).iter().map(|e| (e.requests, e.skipped, e.has(GAP))).collect()
}

/// The octet of ERSPAN II that holds its version, in what [`Tunnel::wrap`] makes.
const ERSPAN_AT: usize = 14 + 20 + 8;

/// In a mirror session with this number below 256.
fn in_session(frame: &[u8], session: u8, sequence: u32) -> Vec<u8> {
    let mut out = Tunnel::ErspanII.wrap(frame, 0, sequence);
    out[ERSPAN_AT + 3] = session;
    out
}

/// Packets with options, of interface 0 or others, one step apart.
fn next_generation(interfaces: usize, packets: &[(u32, &[u8], Option<u32>)]) -> PcapNg {
    let mut file = PcapNg::new(Order::Little);
    for _ in 0..interfaces {
        file.interface(ETHERNET, &[NANOSECONDS]);
    }
    for ((interface, data, flags), n) in packets.iter().zip(0..) {
        let time_ns = START_NS + n * STEP_NS;
        let packet = Packet { time_ns, original_len: len(data), data: data.to_vec() };
        let value = flags.map(u32::to_le_bytes);
        let options: Vec<(u16, &[u8])> = value.iter().map(|value| (2, &value[..])).collect();
        file.enhanced(*interface, time_ns, &packet, &options);
    }
    file
}

fn pfc_frame() -> Vec<u8> {
    control([2, 0, 0, 0, 0, 7], PFC, 1 << 3, [9; 8])
}

/// Interfaces of the PFC records of priority 3, with their counts.
#[track_caller]
fn pfc_of(ended: &Ended) -> Vec<(u64, u64)> {
    let records = ended.json();
    let of_3 = records.iter().filter(|r| r["record"] == "pfc" && number(r, "pfcPriority") == 3);
    of_3.map(|r| (number(r, "ingressPhysicalInterface"), number(r, "pfcControlFrameTotalCount")))
        .collect()
}

/// There is no PFC record at all, and that is said.
#[track_caller]
fn no_pfc(ended: &Ended) {
    assert!(ended.json().iter().all(|record| record["record"] != "pfc"), "{}", ended.out);
    assert!(ended.err.contains("no PFC counter"), "{}", ended.err);
}

#[test]
fn an_ipfix_file_that_is_one_of_the_captures_is_refused_by_whatever_name() {
    let scratch = Scratch::new();
    let octets = Trace::from_frames(requests(1..4)).plain();
    let other = scratch.file("other.pcap", &octets);
    let path = scratch.file("kept.pcap", &octets);
    fs::create_dir(scratch.path("inside")).expect("a folder");
    let (hard, soft) = (scratch.path("hard.ipfix"), scratch.path("soft.ipfix"));
    fs::hard_link(&path, &hard).expect("a hard link");
    std::os::unix::fs::symlink(&path, &soft).expect("a symbolic link");
    for name in [path.clone(), scratch.path("inside/../kept.pcap"), hard, soft] {
        let text = name.to_str().expect("UTF-8");
        let ended = meter(&[&other, &path], &["--ipfix", text]);
        assert_eq!(ended.code, Some(1), "{text}");
        assert_eq!(ended.failures().len(), 1, "{}", ended.err);
        assert_eq!(ended.out, "", "refused before anything is metered");
        assert!(fs::read(&path).expect("still there") == octets, "{text}: overwritten");
    }
    // An older file that is no capture of the run is replaced.
    let older = scratch.file("older.ipfix", &octets);
    good(&[&path], &["--ipfix", older.to_str().expect("UTF-8")]);
    assert!(fs::read(&older).expect("written") != octets);
}

// SEQ-3.7
#[test]
fn a_mirror_that_numbers_anew_is_a_gap_and_its_later_gaps_are_noticed_too() {
    let numbered = [(5000, 10), (5001, 11), (0, 12), (1, 13), (3, 15), (4, 16)];
    let frames =
        numbered.map(|(sequence, psn)| Tunnel::ErspanII.wrap(&Roce::psn(psn).frame(), 0, sequence));
    let ended = of_frames(frames.into(), &["--layer", "erspan"]);
    assert_eq!(shapes(&ended), [(2, 0, true), (2, 0, true), (2, 0, false)], "{}", ended.out);
    assert!(ended.err.contains("1 time that a mirror's numbers started anew"), "{}", ended.err);
    assert!(ended.err.contains("1 packet that the mirror numbered"), "{}", ended.err);
}

// SEQ-3.7, SEQ-3.8, SEQ-10.3
#[test]
fn nothing_of_a_mirror_session_beyond_the_limit_is_metered_or_leaves_its_streams_complete() {
    let scratch = Scratch::new();
    let beside = |psn| Roce { source: [10, 9, 0, 1], destination: [10, 9, 0, 2], ..Roce::psn(psn) };
    let only_there = |psn| Roce { source: [10, 5, 0, 1], ..Roce::psn(psn) };
    let frames = [
        in_session(&Roce::psn(1).frame(), 1, 0),
        in_session(&beside(1).frame(), 1, 1),
        in_session(&Roce::psn(2).frame(), 1, 2),
        in_session(&only_there(1).frame(), 2, 0),
        in_session(&Roce { qp: 0x77, ..Roce::psn(50) }.frame(), 2, 1),
        in_session(&only_there(3).frame(), 2, 2),
        in_session(&Roce::psn(3).frame(), 1, 3),
        in_session(&beside(2).frame(), 1, 4),
    ];
    let path = scratch.file("sessions.pcap", &Trace::from_frames(frames).plain());
    let limited = |most| {
        let mut run = run(&[&path], 64);
        run.observation.layer = Layer::Erspan;
        run.mirror_sessions_max = most;
        let ran = library(run);
        let done = ran.done.expect("a good run");
        (epochs(&ran.reports), done.tally.mirror_not_followed)
    };
    let (found, not_followed) = limited(1);
    let seen: Vec<_> =
        found.iter().map(|e| (e.source.as_str(), e.qp, e.requests, e.has(GAP))).collect();
    let expected =
        [("10.1.0.1", 0x11, 2, true), ("10.1.0.1", 0x11, 1, false), ("10.9.0.1", 0x11, 2, false)];
    assert_eq!((seen.as_slice(), not_followed), (&expected[..], 3));
    let (found, not_followed) = limited(2);
    assert_eq!((found.len(), not_followed), (4, 0), "both sessions are followed");
    assert!(found.iter().all(|epoch| epoch.reasons.is_empty()), "{found:?}");
}

// PFC-count.2
#[test]
fn a_capture_that_dropped_frames_gives_no_pfc_record() {
    for (dropped, counted) in [(0, true), (1, false), (1000, false)] {
        let frame = pfc_frame();
        let mut file = next_generation(1, &[]);
        file.drops(0, START_NS, 0);
        let packet = Packet { time_ns: START_NS, original_len: len(&frame), data: frame };
        file.enhanced(0, START_NS, &packet, &[]);
        file.drops(0, START_NS + STEP_NS, dropped);
        let ended = of_octets(&file.octets, &["--pfc"]);
        if counted {
            assert_eq!(pfc_of(&ended), [(1, 1)]);
        } else {
            no_pfc(&ended);
        }
    }
}

// PFC-count.2, PFC-count.4
#[test]
fn a_control_frame_that_was_captured_too_short_leaves_no_pfc_record() {
    let mut trace = Trace::from_frames([pfc_frame(), pfc_frame()]);
    assert_eq!(pfc_of(&of_octets(&trace.plain(), &["--pfc"])), [(1, 2)]);
    // Up to the opcode, and without the opcode.
    for kept in [17, 15, 14] {
        trace.packets[1].data.truncate(kept);
        no_pfc(&of_octets(&trace.plain(), &["--pfc"]));
    }
}

// PFC-count.2
#[test]
fn a_file_that_ends_within_a_frame_gives_no_pfc_record() {
    let octets = Trace::from_frames([pfc_frame(), pfc_frame()]).plain();
    no_pfc(&of_octets(&octets[..octets.len() - 1], &["--pfc"]));
}

// PFC-id.1
#[test]
fn pfc_frames_of_two_interfaces_are_records_of_two_interfaces() {
    let frame = pfc_frame();
    let packets = [(0, frame.as_slice(), None), (1, &frame, None), (1, &frame, None)];
    let ended = of_octets(&next_generation(2, &packets).octets, &["--pfc"]);
    assert_eq!(pfc_of(&ended), [(1, 1), (2, 2)]);
}

// PFC-id.1
#[test]
fn a_pfc_frame_that_was_sent_is_not_counted_as_received() {
    let frame = pfc_frame();
    // No direction, received, sent; the last value means nothing.
    let packets = [0, 1, 2].map(|direction| (0, frame.as_slice(), Some(direction)));
    let ended = of_octets(&next_generation(1, &packets).octets, &["--pfc"]);
    assert_eq!(pfc_of(&ended), [(1, 2)]);
    assert!(ended.err.contains("1 priority flow control frame that was sent"), "{}", ended.err);
    no_pfc(&of_octets(&next_generation(1, &packets[2..]).octets, &["--pfc"]));
}

// PFC-count.4
#[test]
fn a_pfc_frame_with_an_error_on_the_link_is_not_counted() {
    let frame = pfc_frame();
    for bit in 24..32 {
        let packets = [(0, frame.as_slice(), None), (0, &frame, Some(1 << bit))];
        let ended = of_octets(&next_generation(1, &packets).octets, &["--pfc"]);
        // An error in front of the frame: whether it counts, nobody can say. By any other, it was
        // no frame, so nothing is missing.
        match bit {
            27 | 29 | 30 => no_pfc(&ended),
            _ => assert_eq!(pfc_of(&ended), [(1, 1)], "bit {bit}"),
        }
        assert!(ended.err.contains("1 frame that the capture marks as damaged"), "{}", ended.err);
    }
}

/// The same stream's numbers in two tenants in turn.
fn tenants(wrap: impl Fn(&[u8], usize, u32) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..6).map(|n| wrap(&Roce::psn(10 + n / 2).frame(), usize::from(n % 2 == 1), n)).collect()
}

#[track_caller]
fn two_complete_streams(ended: &Ended) {
    let found = epochs(&ended.json());
    assert_eq!(found.len(), 2, "{}", ended.out);
    for epoch in found {
        assert_eq!(epoch.counts(), [3, 0, 0, 0, 0, 0, 0]);
        assert!(epoch.reasons.is_empty(), "{:?}", epoch.reasons);
    }
}

// SEQ-4.1
#[test]
fn the_same_stream_under_two_gre_keys_is_two_streams() {
    let header = |kind: &[u8], key: u32| [&[0x20, 0], kind, &key.to_be_bytes()].concat();
    let ethernet =
        tenants(|frame, tenant, _| carried(47, &header(&[0x65, 0x58], [7, 8][tenant]), frame, 0));
    two_complete_streams(&of_frames(ethernet, &["--layer", "gre"]));
    let ip = tenants(|frame, tenant, _| {
        carried(47, &header(&[0x08, 0x00], [0x700, 0x800][tenant]), &frame[ip_offset(frame)..], 0)
    });
    two_complete_streams(&of_frames(ip, &["--layer", "gre"]));
}

// SEQ-4.1
#[test]
fn a_vlan_that_erspan_took_off_the_frame_keeps_tenants_apart_and_is_shown() {
    let vlans = tenants(|frame, tenant, sequence| {
        let mut out = Tunnel::ErspanII.wrap(frame, 0, sequence);
        out[ERSPAN_AT + 1] = [5, 6][tenant];
        out[ERSPAN_AT + 2] |= 2 << 3;
        out
    });
    let ended = of_frames(vlans, &["--layer", "erspan"]);
    two_complete_streams(&ended);
    let mut shown: Vec<_> = ended.json().iter().map(|r| number(r, "dot1qVlanId")).collect();
    shown.sort_unstable();
    assert_eq!(shown, [5, 6]);
}

#[test]
fn frames_that_were_sliced_before_they_were_mirrored_count_as_the_whole_ones() {
    let frames = |kept: usize| -> Vec<_> {
        let whole = (0..3).map(|n| Roce { payload_len: 1024, ..Roce::psn(n) }.frame());
        let cut = whole.map(|frame| frame[..kept.min(frame.len())].to_vec());
        (0..).zip(cut).map(|(n, frame)| Tunnel::ErspanII.wrap(&frame, 0, n)).collect()
    };
    let whole = epochs(&of_frames(frames(usize::MAX), &["--layer", "erspan"]).json());
    assert_eq!(whole.len(), 1);
    let untold = epochs(&of_frames(frames(128), &["--layer", "erspan"]).json());
    assert_ne!(untold, whole, "without the option the lengths lie");
    let told = epochs(&of_frames(frames(128), &["--layer", "erspan", "--sliced"]).json());
    assert_eq!(told, whole);
}

// SEQ-3.8
#[test]
fn a_frame_with_more_tags_than_are_looked_through_is_a_gap() {
    let between = |tags| {
        let frame = (0..tags).fold(Roce::psn(3).frame(), |frame, vid| tagged(&frame, 0x8100, vid));
        let mut frames = requests(1..5);
        frames.insert(2, frame);
        of_frames(frames, &[])
    };
    for tags in [9, 10] {
        assert_eq!(shapes(&between(tags)), [(2, 0, true), (2, 0, false)], "{tags} tags");
    }
    // Eight are looked through, and lead to a stream of its own.
    let mut found = shapes(&between(8));
    found.sort_unstable();
    assert_eq!(found, [(1, 0, false), (4, 0, false)]);
}

// SEQ-3.8
#[test]
fn an_erspan_version_that_is_not_known_is_a_gap() {
    for (tunnel, version) in [(Tunnel::ErspanII, 0), (Tunnel::ErspanII, 3), (Tunnel::ErspanIII, 3)]
    {
        let frames: Vec<_> = (0..5)
            .map(|n| {
                let mut out = tunnel.wrap(&Roce::psn(n).frame(), 0, n);
                if n == 2 {
                    out[ERSPAN_AT] = version << 4;
                }
                out
            })
            .collect();
        let ended = of_frames(frames, &["--layer", "erspan"]);
        assert_eq!(shapes(&ended), [(2, 0, true), (2, 0, false)], "{tunnel:?} {version}");
    }
}

#[test]
fn requests_without_any_time_are_not_metered_and_counted_as_that() {
    let mut file = next_generation(1, &[]);
    for packet in Trace::from_frames(requests([11, 12])).packets {
        file.simple(&packet);
    }
    let ended = of_octets(&file.octets, &[]);
    assert_eq!(ended.out, "");
    let said = "2 requests in front of any packet with a time: not metered";
    assert!(ended.err.contains(said), "{}", ended.err);
}

// SEQ-3.8
#[test]
fn a_roce_frame_that_the_capture_marks_as_damaged_is_a_gap_and_no_request() {
    let frames = requests([10, 500, 11]);
    let marked = |flags| {
        let packets =
            [(0, frames[0].as_slice(), None), (0, &frames[1], Some(flags)), (0, &frames[2], None)];
        of_octets(&next_generation(1, &packets).octets, &["--window", "4096"])
    };
    for bit in 24..32 {
        let ended = marked(1 << bit);
        assert_eq!(shapes(&ended), [(1, 0, true), (1, 0, false)], "bit {bit}");
        assert!(ended.err.contains("1 frame that the capture marks as damaged"), "{}", ended.err);
    }
    // The bit below is no error of the link.
    let whole = epochs(&marked(1 << 23).json());
    assert_eq!((whole.len(), whole[0].requests, whole[0].has(GAP)), (1, 3, false));
}

#[test]
fn a_name_with_a_new_line_stays_on_one_line() {
    let name = "missing\nrocescope: another.pcap";
    let scratch = Scratch::new();
    for command in ["meter", "discover"] {
        let path = scratch.path(name);
        let mut arguments = vec![command.as_ref(), path.as_os_str()];
        if command == "meter" {
            arguments.push("--attest-all".as_ref());
        }
        let ended = rocescope(&arguments);
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert!(ended.err.contains("another.pcap"), "{}", ended.err);
    }
    // A warning names the capture too.
    let octets = Trace::from_frames(requests(1..3)).plain();
    let path = scratch.file(name, &octets[..octets.len() - 1]);
    let ended = good(&[&path], &[]);
    assert!(ended.failures().is_empty(), "{}", ended.err);
    assert!(ended.err.lines().any(|line| line.contains("another.pcap")), "{}", ended.err);
}

#[test]
fn standard_input_given_twice_is_wrong_usage() {
    for command in [&["meter", "--attest-all", "-", "-"][..], &["discover", "-", "-"]] {
        let ended = program(ROCESCOPE, command, Trace::from_frames(requests(1..3)).plain());
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    }
    let once = program(
        ROCESCOPE,
        &["meter", "--attest-all", "--json", "-"],
        Trace::from_frames(requests(1..3)).plain(),
    );
    assert_eq!(once.code, Some(0), "{}", once.err);
    assert_eq!(meter(&[Path::new("-"), Path::new("-")], &[]).code, Some(2));
}

/// So long is waited for a line that does not come; a line that comes is not waited for.
const NEVER: Duration = Duration::from_secs(120);

#[test]
fn a_closed_epoch_is_reported_before_a_slow_input_ends() {
    // The jump closes the epoch of the first three.
    let octets = Trace::from_frames(requests([1, 2, 3, 0x40_0000, 0x40_0001])).plain();
    // Up to within the last packet.
    let (first, rest) = octets.split_at(octets.len() - 20);
    let mut child = Command::new(ROCESCOPE)
        .args(["meter", "--attest-all", "--json", "--window", "64", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    let mut input = child.stdin.take().expect("a pipe");
    let output = child.stdout.take().expect("a pipe");
    let (said, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            _ = said.send(line.expect("text"));
        }
    });
    input.write_all(first).expect("a reader");
    let early = lines.recv_timeout(NEVER);
    // Only now does the input go on and end; where nothing came, this ends the program.
    input.write_all(rest).expect("a reader");
    drop(input);
    assert!(child.wait().expect("an end").success());
    reader.join().expect("everything read");
    let early = serde_json::from_str(&early.expect("a report while the input is open"));
    let late: Vec<_> =
        lines.iter().map(|line| serde_json::from_str(&line).expect("JSON")).collect();
    let (early, late) = (epochs(&[early.expect("JSON")]), epochs(&late));
    assert_eq!((early.len(), early[0].requests), (1, 3));
    assert_eq!((late.len(), late[0].requests), (1, 2));
}

/// What a file system leaves behind the last octets that were written before it went down.
#[test]
fn zeros_behind_a_capture_that_was_cut_are_a_gap_and_not_its_end() {
    let whole = Trace::from_frames(requests(0..20)).plain();
    for at in [whole.len() - 30, whole.len() - 100] {
        let mut octets = whole.clone();
        octets.truncate(at);
        octets.resize(at + 4096, 0);
        let ended = of_octets(&octets, &[]);
        for report in ended.json() {
            let flags = report["flags"].as_array().expect("flags");
            assert!(flags.contains(&"captureDiscontinuity".into()), "{report}");
        }
        assert!(!ended.json().is_empty(), "{}", ended.err);
    }
}
