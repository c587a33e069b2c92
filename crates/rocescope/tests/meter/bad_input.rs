//! Inputs that cannot be read, outputs that cannot be written, and wrong usage: one line that says
//! what and where, the right exit code, and what was measured before stands.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::process::{Command, Stdio};

use super::frames::{requests, sll};
use super::support::{Ended, ROCESCOPE, Scratch, capture, epochs, good, meter, program, rocescope};
use super::writer::{ETHERNET, NANOSECONDS, Order, PcapNg, Trace};

/// Exit code 1, one line about the failure with all of `says` in it, and no panic.
#[track_caller]
fn fails(ended: &Ended, says: &[&str]) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let failures = ended.failures();
    assert_eq!(failures.len(), 1, "{ended:?}");
    for part in says {
        assert!(failures[0].contains(part), "expected {part:?} in {:?}", failures[0]);
    }
    assert_eq!(ended.err.lines().last(), Some(failures[0]), "the failure is the last word");
    assert!(!ended.err.contains("panicked"), "{ended:?}");
}

/// A file that is no capture at all: nothing is measured.
#[track_caller]
fn refused(octets: &[u8], says: &[&str]) {
    let scratch = Scratch::new();
    let ended = meter(&[scratch.file("bad.pcap", octets)], &[]);
    fails(&ended, &["bad.pcap"]);
    fails(&ended, says);
    nothing_is_said_of(&ended);
    let path = scratch.path("bad.pcap");
    let table = rocescope(&["meter".as_ref(), "--attest-all".as_ref(), path.as_os_str()]);
    nothing_is_said_of(&table);
}

/// Of what could not be read nothing was seen, not even that there was nothing.
#[track_caller]
fn nothing_is_said_of(ended: &Ended) {
    fails(ended, &[]);
    assert_eq!((ended.out.as_str(), ended.err.lines().count()), ("", 1), "{ended:?}");
}

fn good_pcap() -> Vec<u8> {
    Trace::from_frames(requests(1..4)).plain()
}

/// A capture of three requests and then `bad`: the three stand, with the gap behind them.
#[track_caller]
fn stands_before(bad: impl Fn(&mut PcapNg), says: &[&str]) {
    let scratch = Scratch::new();
    for order in Order::BOTH {
        let mut writer = PcapNg::new(order);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        for packet in &Trace::from_frames(requests(1..4)).packets {
            writer.enhanced(0, packet.time_ns, packet, &[]);
        }
        let at = writer.octets.len();
        bad(&mut writer);
        let ended = meter(&[scratch.file("bad.pcapng", &writer.octets)], &[]);
        fails(&ended, &["bad.pcapng"]);
        fails(&ended, says);
        // An offset within the block, which none of these makes longer than this.
        let offset = (at..at + 200).find(|n| ended.err.contains(&format!("offset {n}")));
        assert!(offset.is_some(), "no offset from {at} on in {}", ended.err);
        three_with_a_gap(&ended);
    }
}

#[track_caller]
fn three_with_a_gap(ended: &Ended) {
    let found = epochs(&ended.json());
    assert_eq!(found.len(), 1, "{ended:?}");
    assert_eq!((found[0].requests, found[0].has("captureDiscontinuity")), (3, true));
}

#[test]
fn what_is_no_capture_is_refused_by_its_first_octets() {
    refused(b"", &["0 octets"]);
    refused(b"\xd4\xc3\xb2", &["3 octets"]);
    refused(b"GET / HTTP/1.1\r\n", &["47 45 54 20"]);
    refused(&[0; 64], &["00 00 00 00"]);
    refused(b"\xa1\xb2\xcd\x34 a modified pcap header of long ago", &["Kuznetzov"]);
}

#[test]
fn a_header_that_ends_early_is_no_capture() {
    let (pcap, pcapng) = (good_pcap(), PcapNg::new(Order::Big).octets);
    for len in 4..24 {
        refused(&pcap[..len], &[&format!("{len} octets")]);
    }
    for len in 4..28 {
        refused(&pcapng[..len], &[&format!("{len} octets")]);
    }
}

#[test]
fn versions_that_we_do_not_know_are_refused_by_number() {
    for (major, minor, name) in [(2, 3, "2.3"), (1, 0, "1.0"), (3, 0, "3.0")] {
        let mut octets = good_pcap();
        (octets[4], octets[6]) = (major, minor);
        refused(&octets, &["version", name, "offset 4", "2.4"]);
    }
    let mut octets = PcapNg::new(Order::Little).octets;
    octets[12] = 2;
    refused(&octets, &["version 2.0", "offset 12"]);
}

#[test]
fn a_record_of_absurd_length_ends_the_capture_there() {
    let scratch = Scratch::new();
    let limit = 64_u32 << 20;
    for len in [limit + 1, 0x7fff_ffff, u32::MAX] {
        let mut octets = good_pcap();
        let at = octets.len();
        octets.extend([0; 8]);
        octets.extend(len.to_le_bytes());
        octets.extend([0; 200]);
        let ended = meter(&[scratch.file("bad.pcap", &octets)], &[]);
        let offset = format!("offset {}", at + 8);
        fails(&ended, &["bad.pcap", &len.to_string(), &offset, "record_max"]);
        three_with_a_gap(&ended);
    }
    // The limit itself is a length: the file ends inside the record, which is another thing.
    let mut octets = good_pcap();
    octets.extend([0; 8]);
    octets.extend(limit.to_le_bytes());
    octets.extend([0; 200]);
    let ended = good(&[scratch.file("cut.pcap", &octets)], &[]);
    three_with_a_gap(&ended);
}

/// A block as it should not be: type, length, body, length.
fn block(writer: &mut PcapNg, order: Order, kind: u32, len: u32, body: &[u8], again: u32) {
    let octets = |number: u32| match order {
        Order::Little => number.to_le_bytes(),
        Order::Big => number.to_be_bytes(),
    };
    for part in [&octets(kind)[..], &octets(len), body, &octets(again)] {
        writer.octets.extend(part);
    }
}

/// The byte order that a writer was made with.
fn order_of(writer: &PcapNg) -> Order {
    if writer.octets[8] == 0x1a { Order::Big } else { Order::Little }
}

#[test]
fn a_block_whose_length_cannot_be_ends_the_capture_there() {
    for len in [0, 4, 8, 11, 13, 14, 15, 0x0400_0001, 0xffff_ffff] {
        let found = len.to_string();
        let bad = |writer: &mut PcapNg| {
            block(writer, order_of(writer), 0x0bad, len, &[0; 32], len);
        };
        stands_before(bad, &[&found]);
    }
    // Too short for what is in it.
    for (kind, least) in [(1, 20), (2, 32), (3, 16), (5, 24), (6, 32)] {
        let len: u32 = least - 4;
        let body = vec![0; usize::try_from(len).expect("small") - 12];
        let bad = |writer: &mut PcapNg| block(writer, order_of(writer), kind, len, &body, len);
        stands_before(bad, &[&format!("block length {len}"), &format!("at least {least}")]);
    }
    let bad = |writer: &mut PcapNg| block(writer, order_of(writer), 0x0bad, 20, &[0; 8], 24);
    stands_before(bad, &["block length 24", "need 20"]);
}

#[test]
fn what_stands_in_a_block_has_to_fit_into_it() {
    let packet = &Trace::from_frames(requests([9])).packets[0];
    stands_before(|writer| writer.enhanced(1, 0, packet, &[]), &["interface 1", "described 1"]);
    stands_before(|writer| writer.drops(7, 0, 1), &["interface 7"]);
    stands_before(|writer| writer.enhanced(0, 0, packet, &[(4, &[0; 4])]), &["option 4", "need 8"]);
    stands_before(|writer| writer.statistics(0, 0, &[(5, &[0; 7])]), &["option 5", "need 8"]);
    stands_before(|writer| writer.interface(1, &[(9, &[9, 9])]), &["option 9", "need 1"]);
    stands_before(|writer| writer.interface(1, &[(14, &[0; 4])]), &["option 14", "need 8"]);
    let too_long = |writer: &mut PcapNg| {
        let order = order_of(writer);
        let mut body = vec![0; 12];
        body.extend(if order == Order::Big { [0, 0, 1, 0] } else { [0, 1, 0, 0] });
        body.extend([0; 4]);
        block(writer, order, 6, 32, &body, 32);
    };
    stands_before(too_long, &["packet of 256 octets", "room for 0"]);
    // A section whose byte order cannot be told.
    let no_order = |writer: &mut PcapNg| {
        block(writer, order_of(writer), 0x0a0d_0d0a, 28, &[0x1a; 16], 28);
    };
    stands_before(no_order, &["byte order", "1a 1a 1a 1a"]);
}

#[test]
fn one_interface_more_than_the_limit_ends_the_capture_there() {
    let scratch = Scratch::new();
    let packet = &Trace::from_frames(requests([9])).packets[0];
    for (count, code) in [(4096, 0), (4097, 1)] {
        let mut writer = PcapNg::new(Order::Little);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        writer.enhanced(0, packet.time_ns, packet, &[]);
        for _ in 1..count {
            writer.interface(ETHERNET, &[]);
        }
        let ended = meter(&[scratch.file("many.pcapng", &writer.octets)], &[]);
        assert_eq!(ended.code, Some(code), "{}", ended.err);
        assert_eq!(epochs(&ended.json()).len(), 1);
        if code == 1 {
            fails(&ended, &["interfaces_max is 4096"]);
        }
    }
}

#[test]
fn compressed_garbage_is_refused() {
    let octets = good_pcap();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &octets).expect("written");
        encoder.finish().expect("finished")
    };
    let zstd = zstd::encode_all(octets.as_slice(), 1).expect("written");
    refused(b"\x1f\x8bno gzip header after this", &[]);
    refused(b"\x28\xb5\x2f\xfdno zstd frame after this", &[]);
    // Nothing of the content can be had.
    refused(&gzip[..12], &[]);
    refused(&zstd[..6], &[]);
    // Compressed twice: what is inside is no capture.
    let twice = zstd::encode_all(gzip.as_slice(), 1).expect("written");
    refused(&twice, &["gzip"]);
}

#[test]
fn damage_inside_compressed_data_is_a_failure_and_what_came_before_stands() {
    let scratch = Scratch::new();
    let octets = good_pcap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &octets).expect("written");
    let gzip = encoder.finish().expect("finished");
    // Another checksum than that of the content.
    let mut damaged = gzip.clone();
    let at = damaged.len() - 8;
    damaged[at] ^= 1;
    let ended = meter(&[scratch.file("bad.pcap.gz", &damaged)], &[]);
    fails(&ended, &["bad.pcap.gz", "octet"]);
    three_with_a_gap(&ended);
    // Something behind the end that is no further member.
    let ended = meter(
        &[scratch.file("tail.pcap.gz", &[&gzip[..], b"and no further member"].concat())],
        &[],
    );
    fails(&ended, &["tail.pcap.gz", "octet"]);
    three_with_a_gap(&ended);
    let mut zstd = zstd::encode_all(octets.as_slice(), 1).expect("written");
    zstd.extend(b"and no further frame");
    let ended = meter(&[scratch.file("tail.pcap.zst", &zstd)], &[]);
    fails(&ended, &["tail.pcap.zst", "octet"]);
    three_with_a_gap(&ended);
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing.pcap");
    fails(&meter(&[&missing], &[]), &["missing.pcap"]);
    nothing_is_said_of(&meter(&[&missing], &["--pfc"]));
    let folder = scratch.path("");
    fails(&meter(&[&folder], &[]), &[folder.to_str().expect("UTF-8").trim_end_matches('/')]);
}

#[test]
fn standard_input_that_is_no_capture_is_named_as_such() {
    for octets in [&b""[..], b"no capture"] {
        let arguments = ["meter", "--attest-all", "--json", "-"];
        fails(&program(ROCESCOPE, &arguments, octets.to_vec()), &["rocescope: -: "]);
    }
}

#[test]
fn a_bad_file_behind_a_good_one_leaves_what_the_good_one_gave() {
    let scratch = Scratch::new();
    let first = scratch.file("good.pcap", &good_pcap());
    for second in [scratch.file("bad.pcap", b"no capture"), scratch.path("missing.pcap")] {
        let name = second.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        let file = scratch.path("out.ipfix");
        let text = file.to_str().expect("UTF-8");
        let ended = meter(&[&first, &second], &["--ipfix", text]);
        fails(&ended, &[&name]);
        three_with_a_gap(&ended);
        let dumped = rocescope(&["dump", text]);
        assert_eq!(epochs(&dumped.json()), epochs(&ended.json()), "and in the IPFIX File");
    }
}

#[test]
fn a_link_type_that_carries_no_roce_is_said_and_measures_nothing() {
    let scratch = Scratch::new();
    let trace = Trace::from_frames(requests(1..4));
    for link in [127, 105, 65_535] {
        let path = scratch.file("radio.pcap", &trace.map(link, sll).plain());
        let ended = good(&[path], &[]);
        assert_eq!(ended.out, "");
        assert!(
            ended.err.contains("3 frames of a link type that carries no RoCEv2"),
            "{}",
            ended.err
        );
    }
}

/// Runs with standard output going into a file.
fn into(path: &str, arguments: &[&OsStr]) -> (Option<i32>, String) {
    let out = OpenOptions::new().write(true).open(path).expect("an output");
    let output = Command::new(ROCESCOPE)
        .args(arguments)
        .stdout(out)
        .stderr(Stdio::piped())
        .output()
        .expect("a process");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn a_full_disk_under_standard_output_is_a_failure() {
    let path = capture("made/random-walk.pcap");
    let meter = ["meter", "--attest-all"].map(OsStr::new);
    for options in [&["--json"][..], &[]] {
        let mut arguments = meter.to_vec();
        arguments.extend(options.iter().map(OsStr::new));
        arguments.push(path.as_os_str());
        let (code, err) = into("/dev/full", &arguments);
        let ended = Ended { code, out: String::new(), err };
        fails(&ended, &["standard output"]);
    }
    let scratch = Scratch::new();
    let file = scratch.path("out.ipfix");
    good(&[&path], &["--ipfix", file.to_str().expect("UTF-8")]);
    let (code, err) = into("/dev/full", &["dump".as_ref(), file.as_os_str()]);
    fails(&Ended { code, out: String::new(), err }, &[]);
}

#[test]
fn a_reader_that_goes_away_is_no_panic_and_no_failure() {
    let scratch = Scratch::new();
    // More epochs than a pipe holds, so that writing meets the closed end for certain.
    let jumps = Trace::from_frames(requests((0..3000_u32).map(|n| n.wrapping_mul(5_000_000))));
    let path = scratch.file("jumps.pcap", &jumps.plain());
    let mut child = Command::new(ROCESCOPE)
        .args(["meter", "--attest-all", "--json"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut first = [0; 10];
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut first).expect("the first line");
    assert_eq!(&first, b"{\"record\":");
    drop(out);
    let output = child.wait_with_output().expect("its end");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(!err.contains("panicked"), "{err}");
}

#[test]
fn an_ipfix_file_that_cannot_be_written_is_named() {
    let scratch = Scratch::new();
    let path = capture("made/in-order.pcap");
    let nowhere = scratch.path("missing/out.ipfix");
    for file in [nowhere.to_str().expect("UTF-8"), "/dev/full"] {
        fails(&meter(&[&path], &["--ipfix", file]), &[file]);
    }
}

/// Exit code 2, and all of `says` on standard error.
#[track_caller]
fn wrong_usage(arguments: &[&str], says: &[&str]) {
    let ended = rocescope(arguments);
    assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
    assert_eq!(ended.out, "");
    assert!(!ended.err.contains("panicked"), "{ended:?}");
    for part in says {
        assert!(ended.err.contains(part), "expected {part:?} in {}", ended.err);
    }
}

#[test]
fn wrong_usage_exits_2_and_names_what_is_legal() {
    let meter =
        |options: &[&'static str]| [&["meter", "--attest-all"], options, &["a.pcap"]].concat();
    // SEQ-5.1
    for window in ["0", "4194305", "x", "", "4294967296"] {
        wrong_usage(&meter(&["--window", window]), &["1 to 4194304"]);
    }
    for seconds in ["0", "x", "inf", "NaN", "1e-12"] {
        wrong_usage(&meter(&["--report-interval", seconds]), &["seconds above 0"]);
        wrong_usage(&meter(&["--idle-timeout", seconds]), &["seconds above 0"]);
    }
    for option in ["--window", "--report-interval", "--idle-timeout"] {
        wrong_usage(&meter(&[option, "-1"]), &["-1"]);
    }
    wrong_usage(&meter(&["--layer", "mpls"]), &["outer, erspan, gre, vxlan, geneve"]);
    // SEQ-6.8: no element is IANA's yet.
    wrong_usage(&meter(&["--pen", "0"]), &["1 to 4294967295"]);
    wrong_usage(&meter(&["--domain", "4294967296"]), &["--domain"]);
    // As in a configuration.
    wrong_usage(&meter(&["--domain", "0"]), &["--domain", "1..=4294967295"]);
    wrong_usage(&["discover"], &["CAPTURE"]);
    wrong_usage(&["discover", "--interface", "lo", "a.pcap"], &["--interface"]);
    wrong_usage(&["discover", "--seconds", "1", "a.pcap"], &["--interface"]);
    wrong_usage(&["discover", "--interface", "lo", "--seconds", "0"], &["above 0"]);
    wrong_usage(&meter(&["--no-such-option"]), &["--no-such-option"]);
    wrong_usage(&["meter", "--attest-all"], &["CAPTURE"]);
    wrong_usage(&["no-such-command"], &["no-such-command"]);
    wrong_usage(&["dump"], &["FILE"]);
    wrong_usage(&["check"], &["FILE"]);
}

// SEQ-3.2, SEQ-3.6: what only the operator can know is never assumed.
#[test]
fn metering_without_a_word_of_the_operator_is_wrong_usage() {
    wrong_usage(&["meter", "a.pcap"], &["--attest-all", "--config"]);
    wrong_usage(&["meter", "--attest-all", "--config", "a.toml", "a.pcap"], &["--config"]);
}

#[test]
fn a_window_at_either_end_of_its_range_is_legal() {
    for window in ["1", "4194304"] {
        let ended = good(&[capture("made/in-order.pcap")], &["--window", window]);
        assert_eq!(epochs(&ended.json())[0].window.to_string(), window);
    }
}

#[test]
fn every_subcommand_has_help_with_an_example() {
    let all = rocescope(&["--help"]).out;
    let (_, commands) = all.split_once("Commands:\n").expect("commands");
    let commands: Vec<_> = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(commands.contains(&"discover") && commands.contains(&"pki"), "{commands:?}");
    for command in commands {
        let ended = rocescope(&[command, "--help"]);
        assert_eq!(ended.code, Some(0));
        assert!(ended.out.contains(&format!("rocescope {command} ")), "{}", ended.out);
        assert!(ended.out.contains("Example"), "{}", ended.out);
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_told_of_with_file_line_and_what_is_legal() {
    let scratch = Scratch::new();
    let path = capture("made/in-order.pcap");
    let with = |file: &std::path::Path| {
        rocescope(&["meter".as_ref(), "--config".as_ref(), file.as_os_str(), path.as_os_str()])
    };
    fails(&with(&scratch.path("missing.toml")), &["missing.toml"]);
    for (text, says) in [
        ("[meter]\nwindows = 8\n", &["bad.toml", "2", "windows", "window"][..]),
        ("[meter]\nwindow = 0\n", &["bad.toml", "2", "window", "4194304"]),
        ("[meter\n", &["bad.toml", "1"]),
    ] {
        let file = scratch.file("bad.toml", text.as_bytes());
        for ended in [with(&file), rocescope(&["check".as_ref(), file.as_os_str()])] {
            assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
            // A file may have several faults, each in a line of its own.
            let told =
                ended.failures().into_iter().any(|l| says.iter().all(|part| l.contains(part)));
            assert!(told, "expected {says:?} in one line of {}", ended.err);
            assert_eq!(ended.failures().len(), ended.err.lines().count(), "{}", ended.err);
        }
    }
}

#[test]
fn an_ipfix_file_that_cannot_be_read_on_is_named_with_the_offset() {
    let scratch = Scratch::new();
    let file = scratch.path("out.ipfix");
    good(&[capture("made/twenty-streams.pcap")], &["--ipfix", file.to_str().expect("UTF-8")]);
    let whole = std::fs::read(&file).expect("a file");
    let first = usize::from(u16::from_be_bytes([whole[2], whole[3]]));
    let dump = |octets: &[u8]| {
        let bad = scratch.file("bad.ipfix", octets);
        rocescope(&["dump".as_ref(), bad.as_os_str()])
    };
    fails(&rocescope(&["dump".as_ref(), scratch.path("missing.ipfix").as_os_str()]), &["missing"]);
    for cut in [1, first - 1, first + 1, first + 16, whole.len() - 1] {
        let ended = dump(&whole[..cut]);
        let at = if cut < first { 0 } else { first };
        fails(&ended, &["bad.ipfix", &at.to_string()]);
        assert_eq!(ended.out.is_empty(), cut < first, "what came before stands");
    }
    for (octet, value) in [(1, 9), (3, 15)] {
        let mut octets = whole.clone();
        octets[first..first + 4].copy_from_slice(&[0, 10, 0, 200]);
        octets[first + octet] = value;
        let ended = dump(&octets);
        fails(&ended, &["bad.ipfix", &first.to_string()]);
        assert!(!ended.out.is_empty(), "what came before stands");
    }
    fails(&dump(b"GET / HTTP/1.1\r\n"), &["bad.ipfix"]);
    fails(&dump(&good_pcap()), &["bad.ipfix: is a capture", "rocescope discover"]);
}

#[test]
fn a_compressed_ipfix_file_is_dumped_as_the_plain_one_whatever_its_name() {
    let scratch = Scratch::new();
    let file = scratch.path("out.ipfix");
    good(&[capture("made/twenty-streams.pcap")], &["--ipfix", file.to_str().expect("UTF-8")]);
    let whole = std::fs::read(&file).expect("a file");
    let dump = |path: &std::path::Path| rocescope(&["dump".as_ref(), path.as_os_str()]);
    let plain = dump(&file);
    assert_eq!(plain.code, Some(0));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &whole).expect("written");
    let zstd = zstd::encode_all(whole.as_slice(), 1).expect("written");
    for octets in [gzip.finish().expect("written"), zstd] {
        let path = scratch.file("other.name", &octets);
        let ended = dump(&path);
        assert_eq!((ended.code, &ended.out), (Some(0), &plain.out), "{}", ended.err);
        let piped = program(ROCESCOPE, &["dump", "-"], octets.clone());
        assert_eq!((piped.code, &piped.out), (Some(0), &plain.out), "{}", piped.err);
        // Cut, it is a failure, and what could be read stands.
        let cut = dump(&scratch.file("cut", &octets[..octets.len() - 9]));
        fails(&cut, &["cut"]);
        assert!(plain.out.starts_with(&cut.out));
    }
}
