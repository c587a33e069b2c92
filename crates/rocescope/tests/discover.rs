//! What `discover` says of captures whose content is known, and what its starter is worth.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use observe::provision::Match;
use rocescope::check;
use rocescope::config::{self, ATTESTATIONS};
use rocescope::discover::{self, DiscoverError, Format, Run, STARTER_STREAMS_MAX, STREAMS_MAX};
use serde_json::{Value, json};
use wire::frame::Layer;

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures")
}

fn capture(name: &str) -> PathBuf {
    captures().join(name)
}

/// A file of this test's own, which is not there yet.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("discover-{name}"));
    if path.exists() {
        fs::remove_file(&path).expect("removed");
    }
    path
}

fn over(captures: &[PathBuf], format: Format) -> Run {
    Run {
        captures: captures.to_vec(),
        live: None,
        stop: Arc::default(),
        format,
        write_config: None,
        layer: None,
        streams_max: STREAMS_MAX,
    }
}

/// What a run writes, and how it ends.
fn outcome(run: &Run) -> (String, String, Result<(), DiscoverError>) {
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let ended = discover::run(run, &mut out, &mut warnings);
    let text = |octets| String::from_utf8(octets).expect("UTF-8");
    (text(out), text(warnings), ended)
}

fn people(captures: &[PathBuf]) -> String {
    let (text, _, ended) = outcome(&over(captures, Format::Table));
    ended.expect("good captures");
    text
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

fn json_of(captures: &[PathBuf]) -> Vec<Value> {
    let (text, _, ended) = outcome(&over(captures, Format::Json));
    ended.expect("good captures");
    objects(&text)
}

fn of_kind<'a>(all: &'a [Value], record: &str) -> Vec<&'a Value> {
    all.iter().filter(|object| object["record"] == record).collect()
}

fn about(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("read")).expect("JSON")
}

// Captures made here, octet by octet.

fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_be_bytes().to_vec();
    file.extend([0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    for (n, frame) in (0_u32..).zip(frames) {
        let len = u32::try_from(frame.len()).expect("small");
        for field in [1_790_000_000 + n / 1000, n % 1000 * 1000, len, len] {
            file.extend(field.to_be_bytes());
        }
        file.extend(frame);
    }
    file
}

fn written(name: &str, frames: &[Vec<u8>]) -> PathBuf {
    let path = fresh(name);
    fs::write(&path, pcap(frames)).expect("written");
    path
}

fn ipv4(protocol: u8, [source, destination]: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(u16::try_from(20 + payload.len()).expect("small").to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    frame.extend([10, 9, 0, source, 10, 9, 0, destination]);
    frame.extend(payload);
    frame
}

/// A RoCEv2 frame with 28 octets behind the BTH, ICRC included.
fn roce(hosts: [u8; 2], opcode: u8, qp: u32, psn: u32) -> Vec<u8> {
    let mut udp = vec![0xc0, 0, 0x12, 0xb7, 0, 48, 0, 0, opcode, 0, 0xff, 0xff];
    udp.extend(qp.to_be_bytes());
    udp.extend(psn.to_be_bytes());
    udp.extend([0; 28]);
    ipv4(17, hosts, &udp)
}

/// A frame as ERSPAN type II brings it, in session 7.
fn mirrored(frame: &[u8], number: u32) -> Vec<u8> {
    let mut gre = vec![0x10, 0, 0x88, 0xbe];
    gre.extend(number.to_be_bytes());
    gre.extend([0x10, 0, 0, 7, 0, 0, 0, 0]);
    gre.extend(frame);
    ipv4(47, [101, 102], &gre)
}

/// The frames of a capture in the classic format, as the made ones are.
fn frames_of(name: &str) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let file = fs::read(capture(name)).expect("read");
    let mut rest = &file[24..];
    let big_endian = file[0] == 0xa1;
    while let Some(header) = rest.get(..16) {
        let len: [u8; 4] = header[8..12].try_into().expect("four");
        let len = if big_endian { u32::from_be_bytes(len) } else { u32::from_le_bytes(len) };
        let len = usize::try_from(len).expect("small");
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}

#[test]
fn every_softroce_capture_shows_the_opcodes_that_its_facts_say() {
    let mut compared = 0;
    for entry in fs::read_dir(capture("softroce")).expect("listed") {
        let path = entry.expect("listed").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let facts = about(&path)["facts"].take();
        if facts.is_null() {
            let name = path.file_name().expect("a name");
            assert_eq!(name, "n2_cnp_inserted.pcap.json", "facts are missing");
            continue;
        }
        let all = json_of(&[path.with_extension("")]);
        let [summary] = of_kind(&all, "summary")[..] else { panic!("one summary") };
        let name = path.display();
        assert_eq!(summary["opcodes"], facts["opcodes"], "{name}");
        assert_eq!(summary["rocePackets"], facts["roce_packets"], "{name}");
        assert_eq!(summary["frames"], facts["packets"], "{name}");
        compared += 1;
    }
    assert_eq!(compared, 34, "all that have facts");
}

// SEQ-3.1, SEQ-3.3
#[test]
fn a_stream_that_does_not_fit_says_why() {
    for (name, reason) in [
        ("made/read-then-send.pcap", "1 RDMA READ request"),
        ("made/atomic.pcap", "ATOMIC request"),
        ("made/reserved-opcode.pcap", "reserved opcode 0x"),
        ("made/bad-transport-version.pcap", "1 packet with transport header version 3, expected 0"),
        (
            "made/short-reth.pcap",
            "1 malformed packet: RC_WRITE_FIRST of 19 octets, its headers take 32",
        ),
        ("softroce/d3_one_read_among_writes.rcv.pcap", "1 RDMA READ request"),
        ("softroce/d4_send_inv_end.rcv.pcap", "1 SEND with invalidate (RC_SEND_ONLY_INV)"),
    ] {
        let all = json_of(&[capture(name)]);
        let [stream] = of_kind(&all, "stream")[..] else { panic!("{name}: one stream") };
        assert_eq!(stream["fits"], false, "{name}");
        let [found] = &stream["reasons"].as_array().expect("a list")[..] else {
            panic!("{name}: one reason, found {}", stream["reasons"])
        };
        assert!(found.as_str().expect("text").contains(reason), "{name}: {found}");
        assert!(stream.get("firstPsn").is_none(), "{name}: its numbers say nothing");
        let text = people(&[capture(name)]);
        assert!(text.contains(&format!("    does not fit: {}\n", found.as_str().expect("text"))));
        assert!(!text.contains("nothing against it"), "{name}:\n{text}");
    }
}

// SEQ-3.1
#[test]
fn each_kind_of_request_outside_the_profile_is_one_reason_with_its_count() {
    let mut frames: Vec<_> = (0x00..=0x0b).map(|opcode| roce([1, 2], opcode, 5, 0)).collect();
    let all = json_of(&[written("twelve.pcap", &frames)]);
    assert_eq!(of_kind(&all, "stream")[0]["fits"], true);
    for opcode in 0x0c..=0x1f {
        frames.extend([roce([1, 2], opcode, 5, 0), roce([1, 2], opcode, 5, 0)]);
    }
    let all = json_of(&[written("all-opcodes.pcap", &frames)]);
    let [stream] = of_kind(&all, "stream")[..] else { panic!("one stream") };
    // 0x0c to 0x1f without the six responses.
    let reasons: Vec<_> =
        stream["reasons"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(reasons.len(), 14, "{reasons:?}");
    assert!(reasons.iter().all(|reason| reason.starts_with("2 ")), "{reasons:?}");
    assert_eq!(stream["packets"], 12 + 40);
    assert_eq!(stream["requests"], 12 + 28);
}

// SEQ-3.4
#[test]
fn responses_are_no_stream_that_does_not_fit() {
    let frames: Vec<_> = (0x0d..=0x12).map(|opcode| roce([2, 1], opcode, 9, 0)).collect();
    let path = written("responses.pcap", &frames);
    let all = json_of(std::slice::from_ref(&path));
    assert_eq!(of_kind(&all, "stream").len(), 0);
    assert_eq!(of_kind(&all, "summary")[0]["responses"], 6);
    let text = people(&[path]);
    assert!(text.contains("6 responses and acknowledgements: READ_RESP_FIRST 1, "), "{text}");
    assert!(text.starts_with("No stream of requests was found.\n"), "{text}");
}

/// What is said of the one stream to queue pair 5: `fits`, and what puts it in question.
fn of_five(name: &str, frames: Vec<Vec<u8>>) -> (Value, Vec<String>) {
    let path = written(name, &frames);
    let all = json_of(std::slice::from_ref(&path));
    let streams = of_kind(&all, "stream");
    let five = streams.iter().find(|s| s["rdmaDestinationQP"] == 5).expect("the stream");
    let list = five["questions"].as_array().expect("a list").iter();
    let questions: Vec<String> = list.map(|q| q.as_str().expect("text").to_owned()).collect();
    let text = people(&[path]);
    let line = text.lines().find(|line| line.contains("qp 0x000005")).expect("a line");
    assert_eq!(line.contains("nothing against it"), five["fits"] == true, "{text}");
    assert_eq!(line.contains("in question"), five["fits"].is_null(), "{text}");
    for question in &questions {
        assert!(text.contains(&format!("    in question: {question}\n")), "{text}");
    }
    (five["fits"].clone(), questions)
}

fn writes() -> Vec<Vec<u8>> {
    (0..3).map(|psn| roce([1, 2], 0x0a, 5, psn)).collect()
}

// SEQ-3.2, SEQ-3.4: the restriction is one of the whole connection, and a response says that the
// queue pair it goes to asked for more.
#[test]
fn a_queue_pair_that_is_answered_had_requests_outside_the_profile_so_its_stream_is_in_question() {
    for (responses, name) in
        [(&[0x0d, 0x0e, 0x0f, 0x10][..], "4 READ responses"), (&[0x12], "1 ATOMIC response")]
    {
        let there = responses.iter().map(|opcode| roce([1, 2], *opcode, 5, 0));
        let (fits, questions) = of_five("answered.pcap", [writes(), there.collect()].concat());
        assert_eq!(fits, Value::Null, "it is unknown");
        let [question] = &questions[..] else { panic!("{questions:?}") };
        assert!(question.starts_with(&format!("{name} came to this queue pair")), "{question}");
    }
    // An acknowledgement answers SEND and WRITE as well.
    let acknowledged = [writes(), vec![roce([1, 2], 0x11, 5, 0)]].concat();
    assert_eq!(of_five("acknowledged.pcap", acknowledged), (json!(true), vec![]));
}

// SEQ-3.2
#[test]
fn responses_that_come_back_put_a_stream_in_question_unless_others_account_for_them() {
    let back = |qp| roce([2, 1], 0x10, qp, 0);
    let read = |qp| roce([1, 2], 0x0c, qp, 0);
    let note = "READ responses come back between these hosts to";
    for (answered, asked, in_question) in [(1, 0, true), (1, 1, false), (2, 1, true), (1, 2, false)]
    {
        let frames = [
            writes(),
            (0..answered).map(|n| back(9 + n)).collect(),
            (0..asked).map(|n| read(7 + n)).collect(),
        ];
        let (fits, questions) = of_five("back.pcap", frames.concat());
        assert_eq!(fits.is_null(), in_question, "{answered} answered, {asked} asked");
        assert_eq!(questions.iter().any(|question| question.starts_with(note)), in_question);
    }
    let elsewhere = [writes(), vec![roce([3, 1], 0x10, 9, 0)]].concat();
    assert_eq!(of_five("elsewhere.pcap", elsewhere), (json!(true), vec![]));
    let acknowledged = [writes(), vec![roce([2, 1], 0x11, 9, 0)]].concat();
    assert_eq!(of_five("acks.pcap", acknowledged), (json!(true), vec![]));
}

// SEQ-3.2
#[test]
fn requests_that_go_the_other_way_put_a_stream_in_question_unless_another_queue_pair_is_answered() {
    let other_way = || [writes(), vec![roce([2, 1], 0x0c, 9, 0)]].concat();
    let (fits, questions) = of_five("other-way.pcap", other_way());
    assert_eq!(fits, Value::Null);
    assert!(questions[0].starts_with("READ requests go the other way between these hosts on 1"));
    let answered = [other_way(), vec![roce([1, 2], 0x10, 8, 0)]].concat();
    assert_eq!(of_five("other-way-answered.pcap", answered), (json!(true), vec![]));
}

// SEQ-3.2: a server that reads from its client: the client's SENDs are not of a connection that is
// restricted to SEND and WRITE.
#[test]
fn the_client_of_a_server_that_reads_is_in_question_and_its_starter_says_so() {
    let config = fresh("rping.toml");
    let run = Run {
        write_config: Some(config.clone()),
        ..over(&[capture("softroce/v1_cm_rping.a.pcap")], Format::Json)
    };
    let (text, _, ended) = outcome(&run);
    ended.expect("a good capture");
    let all = objects(&text);
    let fits: Vec<_> = of_kind(&all, "stream").iter().map(|s| s["fits"].clone()).collect();
    assert_eq!(fits, [json!(false), Value::Null]);
    let summary = of_kind(&all, "summary")[0];
    assert_eq!((&summary["streamsFitting"], &summary["streamsInQuestion"]), (&json!(0), &json!(1)));
    let starter = fs::read_to_string(&config).expect("read");
    assert!(starter.contains("\n# in question: 20 READ responses came to"), "{starter}");
    assert!(starter.contains("[[stream]]"), "{starter}");
}

#[test]
fn other_transports_are_counted_and_connection_management_is_named() {
    let all = json_of(&[capture("made/responses-cnp-ud-uc.pcap")]);
    let summary = of_kind(&all, "summary")[0];
    for (name, count) in [("cnps", 10), ("ucPackets", 10), ("udPackets", 10), ("gsiPackets", 0)] {
        assert_eq!(summary[name], count, "{name}");
    }
    let text = people(&[capture("softroce/v1_cm_rping.a.pcap")]);
    assert!(text.contains("5 UD packets, 5 of them to QP 1, where connections"), "{text}");
}

#[test]
fn what_does_not_fit_comes_first_and_then_what_has_most_packets() {
    let mut frames: Vec<_> = (0..5).map(|psn| roce([1, 2], 0x0a, 5, psn)).collect();
    frames.extend((0..7).map(|psn| roce([1, 2], 0x0a, 6, psn)));
    frames.push(roce([1, 2], 0x0c, 7, 0));
    frames.extend((0..2).map(|psn| roce([1, 2], 0x0c, 8, psn)));
    let all = json_of(&[written("order.pcap", &frames)]);
    let qps: Vec<_> =
        of_kind(&all, "stream").iter().map(|s| s["rdmaDestinationQP"].clone()).collect();
    assert_eq!(qps, [8, 7, 6, 5]);
}

#[test]
fn numbers_that_do_not_run_on_are_told_in_the_words_of_the_draft() {
    let psns = [0x00ff_fffe_u32, 0x00ff_ffff, 2, 1, 1, 5000];
    let frames: Vec<_> = psns.map(|psn| roce([1, 2], 0x0a, 5, psn)).to_vec();
    let path = written("numbers.pcap", &frames);
    let text = people(std::slice::from_ref(&path));
    let told =
        "    PSN 16777214 first, 5000 last: 2 skipped, 1 of them filled, 1 repeated, 1 jump\n";
    assert!(text.contains(told), "{text}");
    let all = json_of(&[path]);
    let stream = of_kind(&all, "stream")[0];
    for (name, value) in [
        ("firstPsn", 16_777_214),
        ("lastPsn", 5000),
        ("skipped", 2),
        ("filled", 1),
        ("repeated", 1),
        ("unclassifiedLate", 0),
        ("jumps", 1),
        ("firstMilliseconds", 1_790_000_000_000_u64),
        ("lastMilliseconds", 1_790_000_000_005),
    ] {
        assert_eq!(stream[name], value, "{name}");
    }
    let text = people(&[capture("made/wrap.pcap")]);
    assert!(text.contains("in order") && !text.contains("see below"), "{text}");
}

// PFC-count.3
#[test]
fn pfc_frames_are_counted_by_priority_and_their_senders_named() {
    let all = json_of(&[capture("made/pfc.pcap")]);
    let mut found = [0; 8];
    for record in of_kind(&all, "pfc") {
        let priority = usize::try_from(record["pfcPriority"].as_u64().expect("a number"));
        found[priority.expect("small")] = record["frames"].as_u64().expect("a number");
        let sources = record["sources"].as_object().expect("an object");
        let sum: u64 = sources.values().filter_map(Value::as_u64).sum();
        assert_eq!(Some(sum), record["frames"].as_u64());
    }
    assert_eq!(json!(found), about(&capture("made/pfc.json"))["received"]);
    let text = people(&[capture("made/pfc.pcap")]);
    assert!(text.contains("priority 0, from 02:00:00:00:00:09, 00:00:00:00:00:00\n"), "{text}");
    assert!(people(&[capture("made/in-order.pcap")]).contains("No PFC frame was seen"));
}

/// A pcapng of an interface of Ethernet and one of cooked packets, with these packets: the interface,
/// the octets and the flags.
fn next_generation(packets: &[(u32, &[u8], u32)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let total = u32::try_from(body.len()).expect("short") + 12;
        [&kind.to_le_bytes()[..], &total.to_le_bytes(), body, &total.to_le_bytes()].concat()
    };
    let interface = |link: u16| block(1, &[&link.to_le_bytes()[..], &[0; 6]].concat());
    let mut section = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    section.extend([0xff; 8]);
    let mut file = [block(0x0a0d_0d0a, &section), interface(1), interface(113)].concat();
    for (number, data, flags) in packets {
        let len = u32::try_from(data.len()).expect("short").to_le_bytes();
        let time = 0x0006_0000_u32.to_le_bytes();
        let mut body = [&number.to_le_bytes()[..], &time, &[0; 4], &len, &len, data].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend([2, 0, 4, 0]);
        body.extend(flags.to_le_bytes());
        body.extend([0; 4]);
        file.extend(block(6, &body));
    }
    file
}

// PFC-count.1, PFC-count.4
#[test]
fn pfc_frames_that_were_sent_or_damaged_are_told_from_the_others() {
    let mut frame = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 7, 0x88, 0x08, 1, 1, 0, 8];
    frame.resize(60, 0);
    let cooked = [&[0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 7, 0, 0, 0x88, 0x08], &frame[14..]].concat();
    let (sent, damaged, wrong) = (2, 1 << 24, 4 << 5);
    let path = fresh("directions.pcapng");
    let wrong_sequence = [&frame[..], &[0; 4]].concat();
    let packets: [(u32, &[u8], u32); 6] = [
        (0, &frame, 0),
        (0, &frame, sent),
        (0, &frame, sent),
        (0, &frame, damaged),
        (0, &wrong_sequence, wrong),
        (1, &cooked, 0),
    ];
    fs::write(&path, next_generation(&packets)).expect("written");
    let paths = [path.clone()];
    let text = people(&paths);
    for said in [
        "\n1 PFC frame, by priority",
        "\n2 PFC frames that were sent, by the capture's word, by priority",
        "2 frames that the capture marks as damaged",
        "1 PFC opcode, captured without a destination",
    ] {
        assert!(text.contains(said), "not said: {said}\n{text}");
    }
    let all = json_of(&paths);
    let told: Vec<_> =
        of_kind(&all, "pfc").iter().map(|r| (r["sent"].clone(), r["frames"].clone())).collect();
    assert_eq!(told, [(Value::Null, json!(1)), (json!(true), json!(2))]);
    let summary = of_kind(&all, "summary")[0];
    assert_eq!((&summary["pfcFrames"], &summary["pfcFramesSent"]), (&json!(1), &json!(2)));
    // Nothing that came in, and then nobody can say.
    fs::write(&path, next_generation(&packets[1..5])).expect("written");
    let text = people(&paths);
    assert!(text.contains("No PFC frame that came in was seen: most NICs"), "{text}");
    fs::write(&path, next_generation(&packets[5..])).expect("written");
    let text = people(&paths);
    let unknown = "Whether PFC frames are here is unknown: see the 1 frame of MAC control above.";
    assert!(text.contains(unknown), "{text}");
}

#[test]
fn drops_that_a_capture_tells_of_are_told_and_silence_is_unknown() {
    for name in ["made/drops-in-statistics.pcapng", "made/drops-in-packet-option.pcapng"] {
        let all = json_of(&[capture(name)]);
        assert!(of_kind(&all, "summary")[0]["captureDrops"].as_u64().is_some_and(|n| n > 0));
        assert!(people(&[capture(name)]).contains("The captures say that packets were dropped"));
    }
    let all = json_of(&[capture("made/in-order.pcap")]);
    assert_eq!(of_kind(&all, "summary")[0]["captureDrops"], Value::Null);
    let text = people(&[capture("made/in-order.pcap")]);
    assert!(text.contains("Nothing in the captures says whether packets were dropped."));
}

#[test]
fn nothing_seen_is_not_nothing_there() {
    let text = people(&[capture("softroce/z1_idle_no_roce.rcv.pcap")]);
    assert!(text.contains("which is not the same as none being there"), "{text}");
}

#[test]
fn a_mirrored_stream_is_told_with_the_option_that_shows_it() {
    let frames = frames_of("made/in-order.pcap");
    // Three numbers are passed over before the third frame.
    let numbers = [8, 9].into_iter().chain(13_u32..);
    let wrapped: Vec<_> = numbers.zip(&frames).map(|(n, frame)| mirrored(frame, n)).collect();
    let path = written("erspan.pcap", &wrapped);
    let all = json_of(std::slice::from_ref(&path));
    let [stream] = of_kind(&all, "stream")[..] else { panic!("one stream") };
    let plain = json_of(&[capture("made/in-order.pcap")]);
    let [outer] = of_kind(&plain, "stream")[..] else { panic!("one stream") };
    assert_eq!((&stream["layer"], &outer["layer"]), (&json!("erspan"), &json!("outer")));
    for same in ["sourceIPv4Address", "rdmaDestinationQP", "opcodes", "packets", "firstPsn"] {
        assert_eq!(stream[same], outer[same], "{same}");
    }
    let [carrier] = of_kind(&all, "carrier")[..] else { panic!("one carrier") };
    for (name, value) in [
        ("kind", json!("ERSPAN II")),
        ("session", json!(7)),
        ("packets", json!(frames.len())),
        ("rocePackets", json!(frames.len())),
        ("missingNumbers", json!(3)),
    ] {
        assert_eq!(carrier[name], value, "{name}");
    }
    let text = people(&[path]);
    let option = "RoCEv2 stands only inside ERSPAN II. To meter it: rocescope meter --layer erspan";
    assert!(text.contains(option) && text.contains("numbered, 3 numbers missing"), "{text}");
    assert!(text.contains("The mirror numbered packets that are not here"), "{text}");
}

#[test]
fn what_is_deeper_than_one_encapsulation_is_said_to_be_out_of_reach() {
    let frame = mirrored(&mirrored(&roce([1, 2], 0x0a, 5, 0), 0), 0);
    let path = written("deep.pcap", &[frame]);
    let all = json_of(std::slice::from_ref(&path));
    assert_eq!(of_kind(&all, "stream").len(), 0);
    assert_eq!(of_kind(&all, "summary")[0]["deeper"], json!({"ERSPAN II > ERSPAN II": 1}));
    let text = people(&[path]);
    let told = "1 RoCEv2 packet stands inside ERSPAN II inside ERSPAN II: no layer shows";
    assert!(text.contains(told) && !text.contains("No RoCEv2 was seen"), "{text}");
}

// SEQ-3.2, SEQ-3.5, SEQ-3.6, SEQ-3.9
#[test]
fn the_starter_passes_check_once_attested_and_provisions_what_fits() {
    for (name, layer) in [
        ("softroce/v1_cm_rping.a.pcap", Layer::Outer),
        ("softroce/h1_write_ipv6.rcv.pcap", Layer::Outer),
        ("softroce/i1_write_vlan.rcv.pcap", Layer::Outer),
        ("made/twenty-streams.pcap", Layer::Outer),
        ("made/qinq.pcap", Layer::Outer),
        ("", Layer::Erspan),
    ] {
        let source = match layer {
            Layer::Outer => capture(name),
            _ => written("to-provision.pcap", &[mirrored(&roce([1, 2], 4, 5, 0), 0)]),
        };
        let path = fresh("starter.toml");
        let write_config = Some(path.clone());
        let run = Run { write_config, ..over(&[source], Format::Json) };
        let (text, note, ended) = outcome(&run);
        ended.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(note.contains("once everything in it is attested"), "{note}");
        let refused: Vec<_> = match check::check(&path) {
            Ok(_) => panic!("{name}: taken unattested"),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        };
        let all = objects(&text);
        let fitting: Vec<_> =
            of_kind(&all, "stream").into_iter().filter(|s| s["fits"] != false).collect();
        assert_eq!(refused.len(), ATTESTATIONS.len(), "{name}: one error for each condition");
        for condition in ATTESTATIONS {
            let named = format!("attest.{}: false, expected true", condition.name);
            assert!(refused.iter().any(|error| error.contains(&named)), "{named}");
        }
        let starter = fs::read_to_string(&path).expect("read").replace("= false", "= true");
        fs::write(&path, starter).expect("written");
        assert!(check::check(&path).is_ok(), "{name}");
        let device = config::read_device(&path).expect("a device's");
        assert_eq!(device.observation.layer, layer);
        let mut named: Vec<_> = device
            .provisioned
            .iter()
            .map(|entry| match &entry.rule.streams {
                Match::Exact { addresses, qp, pkey, namespace } => {
                    let namespace = namespace.expect("all of it is named");
                    let address = |octets| discovered_address(addresses.family, octets);
                    (
                        address(&addresses.source),
                        address(&addresses.destination),
                        u64::from(*qp),
                        u64::from(*pkey),
                        u64::from(namespace.outer_vlan),
                        u64::from(namespace.inner_vlan),
                    )
                }
                Match::Range { .. } => panic!("expected streams only"),
            })
            .collect();
        let text_of = |stream: &Value, names: [&str; 2]| {
            names.iter().find_map(|name| stream[*name].as_str()).expect("an address").to_owned()
        };
        let mut expected: Vec<_> = fitting
            .iter()
            .map(|stream| {
                let number = |name: &str| stream[name].as_u64().unwrap_or(0);
                (
                    text_of(stream, ["sourceIPv4Address", "sourceIPv6Address"]),
                    text_of(stream, ["destinationIPv4Address", "destinationIPv6Address"]),
                    number("rdmaDestinationQP"),
                    number("rdmaPartitionKey"),
                    number("dot1qVlanId"),
                    number("dot1qCustomerVlanId"),
                )
            })
            .collect();
        named.sort();
        expected.sort();
        assert!(!expected.is_empty());
        assert_eq!(named, expected, "{name}");
    }
}

fn discovered_address(family: wire::frame::Family, octets: &[u8; 16]) -> String {
    match (family, octets.first_chunk::<4>()) {
        (wire::frame::Family::V4, Some(v4)) => std::net::Ipv4Addr::from(*v4).to_string(),
        _ => std::net::Ipv6Addr::from(*octets).to_string(),
    }
}

#[test]
fn a_starter_never_replaces_a_file() {
    let path = fresh("there.toml");
    fs::write(&path, "mine").expect("written");
    let write_config = Some(path.clone());
    let run = Run { write_config, ..over(&[capture("made/in-order.pcap")], Format::Json) };
    let (text, _, ended) = outcome(&run);
    assert!(ended.expect_err("refused").to_string().ends_with("is not written over"));
    assert_eq!(text, "", "said before the captures are read");
    assert_eq!(fs::read_to_string(&path).expect("read"), "mine");
}

// SEQ-4.3
#[test]
fn a_starter_is_of_one_layer_which_has_to_be_chosen_where_there_are_several() {
    let frame = roce([1, 2], 0x0a, 5, 0);
    let both = written("both.pcap", &[frame.clone(), mirrored(&frame, 0)]);
    let path = fresh("layers.toml");
    let chosen = |layer| {
        let write_config = Some(path.clone());
        Run { write_config, layer, ..over(std::slice::from_ref(&both), Format::Table) }
    };
    let (text, _, ended) = outcome(&chosen(None));
    let told = ended.expect_err("refused").to_string();
    assert!(told.ends_with("found 1 at --layer outer, 1 at --layer erspan"), "{told}");
    assert!(text.contains("1 packet inside ERSPAN II: rocescope meter --layer erspan"), "{text}");
    let told = outcome(&chosen(Some(Layer::Vxlan))).2.expect_err("refused").to_string();
    assert!(told.contains("no stream of requests at layer vxlan, found 1 at"), "{told}");
    assert!(!path.exists());
    outcome(&chosen(Some(Layer::Erspan))).2.expect("written");
    assert!(fs::read_to_string(&path).expect("read").contains("layer = \"erspan\""));
    let none = Run {
        write_config: Some(fresh("none.toml")),
        ..over(&[capture("softroce/z1_idle_no_roce.rcv.pcap")], Format::Table)
    };
    let told = outcome(&none).2.expect_err("refused").to_string();
    assert!(told.ends_with("no stream of requests was found"), "{told}");
}

// SEQ-10.3
#[test]
fn streams_beyond_the_limit_are_counted_and_told() {
    for (streams_max, streams, has_more) in [(19, 19, true), (20, 20, false), (21, 20, false)] {
        let run = Run { streams_max, ..over(&[capture("made/twenty-streams.pcap")], Format::Json) };
        let (text, _, ended) = outcome(&run);
        ended.expect("a good capture");
        let all = objects(&text);
        let summary = of_kind(&all, "summary")[0];
        assert_eq!(of_kind(&all, "stream").len(), streams);
        assert_eq!(summary["packetsOfFurtherStreams"].as_u64().is_some_and(|n| n > 0), has_more);
        let write_config = Some(fresh("limited.toml"));
        let (text, _, ended) = outcome(&Run { format: Format::Table, write_config, ..run });
        assert_eq!(ended.is_err(), has_more, "what would look whole is not written");
        assert_eq!(text.contains("packets of streams beyond those that are told apart"), has_more);
    }
}

#[test]
fn a_starter_of_more_streams_than_anyone_attests_is_refused_with_what_to_do() {
    for (streams, is_written) in [(STARTER_STREAMS_MAX, true), (STARTER_STREAMS_MAX + 1, false)] {
        let qps = 0..u32::try_from(streams).expect("small");
        let frames: Vec<_> = qps.map(|qp| roce([1, 2], 0x0a, qp, 0)).collect();
        let write_config = Some(fresh("many.toml"));
        let run = Run { write_config, ..over(&[written("many.pcap", &frames)], Format::Json) };
        match outcome(&run).2 {
            Ok(()) => assert!(is_written),
            Err(error) => {
                assert!(!is_written && error.to_string().contains("[[rule]] with prefixes"));
            }
        }
        fs::remove_file(fresh("many.pcap")).ok();
    }
}

#[test]
fn what_was_found_before_a_damage_stands_and_no_starter_is_written() {
    let mut file = pcap(&[roce([1, 2], 0x0a, 5, 0)]);
    // The captured length stands behind the time.
    let offset = file.len() + 8;
    file.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let damaged = fresh("damaged.pcap");
    fs::write(&damaged, file).expect("written");
    let config = fresh("damaged.toml");
    let run = Run {
        write_config: Some(config.clone()),
        ..over(std::slice::from_ref(&damaged), Format::Json)
    };
    let (text, _, ended) = outcome(&run);
    let told = ended.expect_err("damaged").to_string();
    assert!(told.contains("damaged.pcap: ") && told.contains(&offset.to_string()), "{told}");
    let all = objects(&text);
    assert_eq!(of_kind(&all, "stream").len(), 1);
    assert_eq!(of_kind(&all, "summary")[0]["readToEnd"], false);
    assert!(!config.exists());
    let (text, _, ended) = outcome(&over(&[fresh("not-there.pcap")], Format::Table));
    assert!(ended.is_err() && text.is_empty(), "of what was not read, nothing is said: {text}");
}

#[test]
fn a_file_that_ends_inside_a_record_is_warned_of() {
    let mut file = pcap(&[roce([1, 2], 0x0a, 5, 0), roce([1, 2], 0x0a, 5, 1)]);
    file.truncate(file.len() - 1);
    let path = fresh("cut.pcap");
    fs::write(&path, file).expect("written");
    let (text, warnings, ended) = outcome(&over(&[path], Format::Json));
    ended.expect("what is there is good");
    assert!(warnings.contains("ends inside the record"), "{warnings}");
    assert_eq!(of_kind(&objects(&text), "summary")[0]["frames"], 1);
}
