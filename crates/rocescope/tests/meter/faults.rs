//! Faults that users have reported of other systems, each as an input here, with what has to come
//! of it. The whole kind counts, not the one input.

use super::frames::{
    ERSPANS, Roce, SEND_ONLY, Tunnel, WRITE_FIRST, WRITE_MIDDLE, WRITE_ONLY_IMMEDIATE, requests,
};
use super::support::{
    Ended, Epoch, Scratch, capture, epochs, flags, good, known, number, program, rocescope,
};
use super::writer::{ETHERNET, Order, Packet, PcapNg, Trace};

fn of_trace(trace: &Trace, options: &[&str]) -> Ended {
    let scratch = Scratch::new();
    good(&[scratch.file("fault.pcap", &trace.plain())], options)
}

#[track_caller]
fn one(ended: &Ended) -> Epoch {
    let found = epochs(&ended.json());
    assert_eq!(found.len(), 1, "{ended:?}");
    found[0].clone()
}

/// The epochs without their times.
fn counted(ended: &Ended) -> Vec<Epoch> {
    let mut found = epochs(&ended.json());
    for epoch in &mut found {
        (epoch.start, epoch.end) = (0, 0);
    }
    found.sort();
    found
}

// A mirror that copies in and out shows each packet twice.
#[test]
fn every_packet_captured_twice_is_repeated_and_nothing_else() {
    for name in
        ["made/in-order.pcap", "made/wrap.pcap", "made/ipv6.pcap", "softroce/b1_write_bw.rcv.pcap"]
    {
        let single = Trace::read(&capture(name));
        let mut double = single.clone();
        double.packets = single.packets.iter().flat_map(|p| [p.clone(), p.clone()]).collect();
        let before = epochs(&of_trace(&single, &[]).json());
        let after = epochs(&of_trace(&double, &[]).json());
        assert!(!before.is_empty());
        let expected: Vec<_> = before
            .into_iter()
            .map(|epoch| Epoch {
                repeated: epoch.requests + 2 * epoch.repeated,
                requests: 2 * epoch.requests,
                late: 2 * epoch.late,
                ..epoch
            })
            .collect();
        assert_eq!(after, expected, "{name}");
    }
}

#[test]
fn a_write_of_no_octets_with_immediate_data_uses_one_number() {
    let frame = |psn, opcode, payload_len| Roce { psn, opcode, payload_len, ..Roce::default() };
    let trace = Trace::from_frames(
        [
            frame(5, SEND_ONLY, 64),
            frame(6, WRITE_ONLY_IMMEDIATE, 0),
            frame(7, SEND_ONLY, 0),
            frame(8, WRITE_ONLY_IMMEDIATE, 0),
        ]
        .map(|roce| roce.frame()),
    );
    assert_eq!(one(&of_trace(&trace, &[])).counts(), [4, 0, 0, 0, 0, 0, 0]);
}

/// What becomes of a packet in the middle of a stream.
#[derive(Debug, PartialEq)]
enum Effect {
    Request,
    Violation,
    Nothing,
}

// SEQ-3.1, SEQ-3.3, SEQ-3.4
#[test]
fn every_opcode_is_a_request_a_violation_or_nothing() {
    for opcode in 0..=u8::MAX {
        let frames =
            [Roce::psn(1).frame(), Roce { opcode, ..Roce::psn(2) }.frame(), Roce::psn(3).frame()];
        let ended = of_trace(&Trace::from_frames(frames), &[]);
        let epoch = one(&ended);
        let violated = epoch.has("profileViolation");
        let effect = match (epoch.counts(), violated) {
            ([3, 0, 0, 0, 0, 0, 0], false) => Effect::Request,
            ([1, 0, 0, 0, 0, 0, 0], true) => Effect::Violation,
            ([2, 1, 0, 0, 1, 0, 0], false) => Effect::Nothing,
            other => panic!("opcode {opcode:#04x}: {other:?}"),
        };
        let expected = match opcode {
            0x00..=0x0b => Effect::Request,
            0x0d..=0x12 => Effect::Nothing,
            // READ, ATOMIC, SEND with invalidate, FLUSH, ATOMIC WRITE and what is not assigned.
            0x0c | 0x13..=0x1f => Effect::Violation,
            // Other transports, CNP among them.
            0x20.. => Effect::Nothing,
        };
        assert_eq!(effect, expected, "opcode {opcode:#04x}");
    }
    let cnp = [Roce::psn(1), Roce { opcode: 0x81, ..Roce::psn(2) }].map(|roce| roce.frame());
    let ended = of_trace(&Trace::from_frames(cnp), &[]);
    assert!(ended.err.contains("1 congestion notification "), "{}", ended.err);
}

// SEQ-3.3: nothing that follows brings the stream back.
#[test]
fn behind_a_violation_nothing_of_the_stream_is_counted() {
    let mut frames = requests(1..4);
    frames.push(Roce { opcode: 0x0c, ..Roce::psn(4) }.frame());
    frames.extend(requests(5..50));
    frames.push(Roce { qp: 0x99, ..Roce::psn(1) }.frame());
    let found = epochs(&of_trace(&Trace::from_frames(frames), &[]).json());
    let shown: Vec<_> =
        found.iter().map(|e| (e.qp, e.requests, e.has("profileViolation"))).collect();
    assert_eq!(shown, [(0x11, 3, true), (0x99, 1, false)], "and other streams go on");
}

// SEQ-4.4: some dissectors take these source ports for TFTP, DNS and VXLAN.
#[test]
fn only_the_destination_port_says_roce_whatever_the_source_port() {
    let ports = [0, 53, 69, 4789, 4791, 6081, 65535, 49152];
    let frames =
        (0..).zip(ports).map(|(psn, source_port)| Roce { source_port, ..Roce::psn(psn) }.frame());
    let epoch = one(&of_trace(&Trace::from_frames(frames), &[]));
    assert_eq!(epoch.counts(), [8, 0, 0, 0, 0, 0, 0]);
    // And the other way round it is not RoCEv2.
    let mut reversed = Trace::from_frames([Roce::psn(1).frame()]);
    let (from, to) = (34..36, 36..38);
    reversed.packets[0].data.copy_within(to.clone(), from.start);
    reversed.packets[0].data[to].copy_from_slice(&53_u16.to_be_bytes());
    assert_eq!(of_trace(&reversed, &[]).out, "");
}

// SEQ-5.2
#[test]
fn the_serial_space_wraps_at_its_24_bits_without_a_gap() {
    let top = 0x00ff_ffff;
    let across = [top - 2, top - 1, top, 0, 1, 2];
    let epoch = one(&of_trace(&Trace::from_frames(requests(across)), &[]));
    assert_eq!(epoch.counts(), [6, 0, 0, 0, 0, 0, 0]);
    // Skipped over the wrap, filled, repeated behind it, and one that is never seen.
    let holes = [top - 1, 1, top, 1, 3];
    let epoch = one(&of_trace(&Trace::from_frames(requests(holes)), &["--window", "8"]));
    assert_eq!(epoch.counts(), [5, 3, 1, 0, 2, 1, 0]);
}

#[test]
fn several_interfaces_of_one_pcapng_are_read_each_by_its_own_description() {
    let scratch = Scratch::new();
    let trace = Trace::from_frames(requests(1..10));
    let cooked = trace.map(113, super::frames::sll);
    let raw = trace.map(101, super::frames::raw_ip);
    let mut writer = PcapNg::new(Order::Big);
    writer.interface(ETHERNET, &[(9, &[9])]);
    writer.interface(113, &[(9, &[6])]);
    writer.interface(101, &[(9, &[3])]);
    for n in 0..9 {
        let (interface, from, unit) =
            [(0, &trace, 1), (1, &cooked, 1_000), (2, &raw, 1_000_000)][n % 3];
        let packet: &Packet = &from.packets[n];
        writer.enhanced(interface, packet.time_ns / unit, packet, &[]);
    }
    let found = epochs(&good(&[scratch.file("three.pcapng", &writer.octets)], &[]).json());
    assert_eq!(found, epochs(&of_trace(&trace, &[]).json()));
}

// Type I has no header of its own, and its GRE protocol is that of type II.
#[test]
fn the_types_of_erspan_show_the_same_inner_frames() {
    for name in
        ["made/wrap-with-gap.pcap", "made/ipv6.pcap", "made/qinq.pcap", "made/two-pkeys.pcap"]
    {
        let inner = Trace::read(&capture(name));
        let expected = of_trace(&inner, &[]).json();
        for tunnel in ERSPANS {
            let mut sequence = 0;
            let outer = inner.map(ETHERNET, |frame| {
                sequence += 1;
                tunnel.wrap(frame, 0, sequence)
            });
            let found = of_trace(&outer, &["--layer", "erspan"]).json();
            assert_eq!(found, expected, "{name} in {tunnel:?}");
        }
    }
}

// SEQ-3.7: not the fabric's, so never skipped alone; the epoch says that its observation broke.
#[test]
fn a_packet_that_a_mirror_lost_is_no_skipped_position_of_a_complete_epoch() {
    let frames = (0..).zip([1, 2, 3, 5, 6]).map(|(n, psn)| {
        Tunnel::ErspanII.wrap(&Roce::psn(psn).frame(), 0, if n < 3 { n } else { n + 1 })
    });
    let ended = of_trace(&Trace::from_frames(frames), &["--layer", "erspan"]);
    let found = counted(&ended);
    assert_eq!(found.iter().map(|epoch| epoch.skipped).sum::<u64>(), 0);
    assert_eq!(found.iter().filter(|epoch| epoch.has("captureDiscontinuity")).count(), 1);
    assert!(ended.err.contains("1 packet that the mirror numbered"), "{}", ended.err);
}

/// A MAC control frame to the address of PFC.
pub fn control(source: [u8; 6], opcode: u16, vector: u16, quanta: [u16; 8]) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 1];
    frame.extend(source);
    frame.extend([0x88, 0x08]);
    frame.extend(opcode.to_be_bytes());
    frame.extend(vector.to_be_bytes());
    frame.extend(quanta.iter().flat_map(|quanta| quanta.to_be_bytes()));
    frame.resize(60, 0);
    frame
}

/// Counts by priority, or none where there is no record at all.
fn pfc(frames: Vec<Vec<u8>>) -> Vec<u64> {
    let reports = of_trace(&Trace::from_frames(frames), &["--pfc"]).json();
    let counts: Vec<_> = reports
        .iter()
        .filter(|report| report["record"] == "pfc")
        .map(|report| number(report, "pfcControlFrameTotalCount"))
        .collect();
    counts
}

pub const PFC: u16 = 0x0101;

// PFC-count.1, PFC-count.3
#[test]
fn pfc_counts_each_set_bit_whatever_the_source_address_and_the_quanta() {
    let host = [2, 0, 0, 0, 0, 7];
    let only_3 = [0, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(pfc(vec![control([0; 6], PFC, 1 << 3, [100; 8])]), only_3, "source of zeros");
    assert_eq!(pfc(vec![control(host, PFC, 1 << 3, [0; 8])]), only_3, "quanta of zero");
    let mut others = [0xffff; 8];
    others[3] = 0;
    assert_eq!(pfc(vec![control(host, PFC, 1 << 3, others)]), only_3, "quanta of clear bits");
    for priority in 0..8 {
        let mut expected = [0; 8];
        expected[priority] = 2;
        let frame = control(host, PFC, 1 << priority, [9; 8]);
        assert_eq!(pfc(vec![frame.clone(), frame]), expected);
    }
    assert_eq!(pfc(vec![control(host, PFC, 0xff, [1; 8])]), [1; 8], "one frame, eight counts");
}

// PFC-count.4
#[test]
fn pause_and_other_control_frames_are_no_pfc() {
    let host = [2, 0, 0, 0, 0, 7];
    let others: Vec<_> =
        [0x0001, 0x0100, 0x0102, 0xffff].map(|code| control(host, code, 0xff, [9; 8])).into();
    assert_eq!(pfc(others.clone()), [0; 0], "no reading rather than zeros");
    let mut mixed = others;
    mixed.push(control(host, PFC, 1, [9; 8]));
    assert_eq!(pfc(mixed), [1, 0, 0, 0, 0, 0, 0, 0]);
    // Another EtherType with the same content.
    let mut frame = control(host, PFC, 0xff, [9; 8]);
    frame[13] = 0x09;
    assert_eq!(pfc(vec![frame]), [0; 0]);
}

// SEQ-4.8: a restarted connection with the same numbers looks like repetition; all that can be
// said is that nobody established the generation.
#[test]
fn without_a_word_on_generations_every_report_says_unverified() {
    for name in [
        "softroce/m1_restart_newqp.rcv.pcap",
        "softroce/m2_same_qpn_reused.rcv.pcap",
        "softroce/m4_reuse_psn_20_ahead.rcv.pcap",
    ] {
        let reports = good(&[capture(name)], &["--report-interval", "0.01"]).json();
        assert!(!reports.is_empty());
        for report in &reports {
            assert!(flags(report).contains(&"generationUnverified"), "{report}");
            assert_ne!(number(report, "rdmaSequenceFlags") & 0x20, 0);
        }
    }
    let again = Trace::from_frames([requests(100..110), requests(100..110)].concat());
    let epoch = one(&of_trace(&again, &[]));
    assert_eq!(epoch.counts(), [20, 0, 0, 0, 0, 10, 0], "never called a restart or a retry");
}

// A NIC that bypasses the kernel shows nothing to a capture on its host.
#[test]
fn nothing_seen_is_said_to_be_that_and_never_a_measurement_of_nothing() {
    let scratch = Scratch::new();
    let empty = Trace { link: ETHERNET, packets: Vec::new() };
    let path = scratch.file("empty.pcap", &empty.plain());
    let idle = capture("softroce/z1_idle_no_roce.rcv.pcap");
    for path in [&path, &idle] {
        let ended = good(&[path], &[]);
        assert_eq!(ended.out, "", "no report");
        assert!(ended.err.contains("No RoCEv2 was seen"), "{}", ended.err);
        let table = rocescope(&["meter".as_ref(), "--attest-all".as_ref(), path.as_os_str()]);
        assert_eq!(table.code, Some(0));
        assert!(table.out.contains("No RoCEv2 was seen"), "{}", table.out);
        assert!(table.out.contains("No stream was metered"), "{}", table.out);
    }
    // And where something was seen, it is not said.
    assert!(!good(&[capture("made/in-order.pcap")], &[]).err.contains("No RoCEv2"));
}

// SEQ-7.16: the words of the profile, and no claim beyond them.
#[test]
fn no_output_calls_a_position_lost_retransmitted_or_reordered() {
    for capture in known("softroce").iter().chain(&known("made")) {
        let table = rocescope(&[
            "meter".as_ref(),
            "--attest-all".as_ref(),
            "--pfc".as_ref(),
            capture.path.as_os_str(),
        ]);
        assert_eq!(table.code, Some(0), "{}", table.err);
        let said = format!("{}{}", table.out, table.err).to_lowercase();
        for word in ["lost", "loss", "retransmi", "reorder", "out of order"] {
            assert!(!said.contains(word), "{word} is said of {}: {said}", capture.name);
        }
    }
}

// One that a tool in front of it shows differently would be the reader's fault or ours.
#[test]
fn tshark_counts_as_many_requests_as_meter_accounts() {
    for name in
        ["made/wrap.pcap", "softroce/b1_write_bw.rcv.pcap", "softroce/h1_write_ipv6.rcv.pcap"]
    {
        let path = capture(name);
        let text = path.to_str().expect("UTF-8");
        let filter = "infiniband.bth.opcode<=11";
        let arguments = ["-r", text, "-Y", filter, "-T", "fields", "-e", "infiniband.bth.psn"];
        let seen = program("tshark", &arguments, Vec::new());
        assert_eq!(seen.code, Some(0), "{}", seen.err);
        let requests: u64 =
            epochs(&good(&[&path], &[]).json()).iter().map(|epoch| epoch.requests).sum();
        let lines = u64::try_from(seen.out.lines().count()).expect("small");
        assert_eq!(requests, lines, "{name}");
    }
}

#[test]
fn the_middle_of_a_message_is_a_request_like_its_start() {
    let opcodes = [WRITE_FIRST, WRITE_MIDDLE, WRITE_MIDDLE, 0x08];
    let frames = (0..).zip(opcodes).map(|(psn, opcode)| Roce { opcode, ..Roce::psn(psn) }.frame());
    assert_eq!(one(&of_trace(&Trace::from_frames(frames), &[])).counts(), [4, 0, 0, 0, 0, 0, 0]);
}
