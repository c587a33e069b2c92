//! What a capture says of its own gaps, and what that does to the epochs that overlap them.

use super::frames::{Roce, SEND_ONLY, Tunnel, requests, tagged};
use super::support::{Ended, Epoch, Scratch, epochs, good, number};
use super::writer::{ETHERNET, NANOSECONDS, Order, PcapNg, START_NS, STEP_NS, Trace};

const GAP: &str = "captureDiscontinuity";

/// Requests and whether the epoch carries captureDiscontinuity, in the order of the epochs.
fn shown(ended: &Ended) -> Vec<(u64, bool)> {
    let mut epochs = epochs(&ended.json());
    epochs.sort_by_key(|epoch| (epoch.start, epoch.end));
    for epoch in &epochs {
        assert!(epoch.reasons.iter().all(|reason| reason == GAP), "{epoch:?}");
        assert_eq!(epoch.skipped, 0, "a gap of the capture is none of the fabric: {epoch:?}");
    }
    epochs.iter().map(|epoch| (epoch.requests, epoch.has(GAP))).collect()
}

fn trace(count: u32) -> Trace {
    Trace::from_frames(requests(100..100 + count))
}

/// The same trace, as pcapng, with something written behind some of the packets.
fn with_blocks(
    trace: &Trace,
    interfaces: u32,
    mut behind: impl FnMut(&mut PcapNg, usize),
) -> Vec<u8> {
    let mut writer = PcapNg::new(Order::Little);
    for _ in 0..interfaces {
        writer.interface(ETHERNET, &[NANOSECONDS]);
    }
    for (n, packet) in trace.packets.iter().enumerate() {
        writer.enhanced(0, packet.time_ns, packet, &[]);
        behind(&mut writer, n + 1);
    }
    writer.octets
}

#[test]
fn a_record_cut_at_any_octet_is_told_of_and_its_epoch_is_not_complete() {
    let scratch = Scratch::new();
    let trace = trace(3);
    let whole = trace.plain();
    let two = trace.first(2).plain();
    for len in two.len()..=whole.len() {
        let path = scratch.file("cut.pcap", &whole[..len]);
        let ended = good(&[&path], &[]);
        let at_an_end = len == two.len() || len == whole.len();
        let requests = if len == whole.len() { 3 } else { 2 };
        assert_eq!(shown(&ended), [(requests, !at_an_end)], "{len} octets");
        let warnings: Vec<_> = ended.err.lines().filter(|l| l.starts_with("warning")).collect();
        assert_eq!(warnings.len(), usize::from(!at_an_end), "{}", ended.err);
        let record = two.len().to_string();
        for warning in warnings {
            assert!(warning.contains("cut.pcap") && warning.contains(&record), "{warning}");
        }
    }
}

#[test]
fn a_pcapng_block_cut_at_any_octet_is_told_of_too() {
    let scratch = Scratch::new();
    let two = with_blocks(&trace(2), 1, |_, _| ());
    let whole = with_blocks(&trace(3), 1, |_, _| ());
    for len in two.len() + 1..whole.len() {
        let ended = good(&[scratch.file("cut.pcapng", &whole[..len])], &[]);
        assert_eq!(shown(&ended), [(2, true)], "{len} octets");
        assert!(ended.err.contains("warning: "), "{}", ended.err);
    }
}

// A truncated file in front of others is a gap between them, not the end of everything.
#[test]
fn the_files_behind_one_that_is_cut_are_still_metered() {
    let scratch = Scratch::new();
    let trace = trace(6);
    let cut = trace.first(3).plain();
    let first = scratch.file("a.pcap", &cut[..cut.len() - 1]);
    let rest = Trace { link: ETHERNET, packets: trace.packets[3..].to_vec() };
    let second = scratch.file("b.pcap", &rest.plain());
    assert_eq!(shown(&good(&[first, second], &[])), [(2, true), (3, false)]);
}

#[test]
fn compressed_data_that_end_early_are_told_of() {
    let scratch = Scratch::new();
    // Nothing of this can be compressed away, and it takes several blocks.
    let mut noise = 1_u32;
    let frames = (0..3000).map(|psn| {
        let mut frame = Roce::psn(psn).frame();
        let payload = frame.len() - 64;
        for octet in &mut frame[payload..] {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *octet = noise.to_be_bytes()[0];
        }
        frame
    });
    let octets = Trace::from_frames(frames).plain();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &octets).expect("written");
    let gzip = gzip.finish().expect("finished");
    let zstd = zstd::encode_all(octets.as_slice(), 1).expect("written");
    for (name, whole) in [("cut.gz", gzip), ("cut.zst", zstd)] {
        for missing in [1, 4, whole.len() / 2] {
            let path = scratch.file(name, &whole[..whole.len() - missing]);
            let ended = good(&[path], &[]);
            assert!(ended.err.contains("warning: ") && ended.err.contains(name), "{}", ended.err);
            let found = epochs(&ended.json());
            assert_eq!(found.len(), 1, "{name} without its last {missing} octets");
            assert!(found.iter().all(|epoch| epoch.has(GAP)), "{name} {missing}");
        }
    }
}

// SEQ-3.7, SEQ-3.8
#[test]
fn a_drop_count_of_a_packet_is_a_gap_right_before_it() {
    let scratch = Scratch::new();
    let trace = trace(9);
    for order in Order::BOTH {
        for (drops, expected) in [(0, vec![(9, false)]), (5, vec![(4, true), (5, false)])] {
            let mut writer = PcapNg::new(order);
            writer.interface(ETHERNET, &[NANOSECONDS]);
            for (n, packet) in trace.packets.iter().enumerate() {
                let count = order.u64(if n == 4 { drops } else { 0 });
                writer.enhanced(0, packet.time_ns, packet, &[(4, &count)]);
            }
            let ended = good(&[scratch.file("drops.pcapng", &writer.octets)], &[]);
            assert_eq!(shown(&ended), expected, "{drops} drops");
        }
    }
    let mut writer = PcapNg::new(Order::Little);
    writer.interface(ETHERNET, &[NANOSECONDS]);
    for (n, packet) in trace.packets.iter().enumerate() {
        writer.obsolete(0, if n == 4 { 3 } else { 0 }, packet.time_ns, packet);
    }
    let ended = good(&[scratch.file("obsolete.pcapng", &writer.octets)], &[]);
    assert_eq!(shown(&ended), [(4, true), (5, false)], "an obsolete packet block says it too");
}

// SEQ-3.7: a counter says only that it was between two readings.
#[test]
fn drops_between_two_readings_touch_every_epoch_that_overlaps_the_span() {
    let scratch = Scratch::new();
    let trace = trace(12);
    // Readings behind the 3rd, 6th and 9th packet.
    for (readings, expected) in [
        ([0, 0, 0], vec![(12, false)]),
        ([2, 2, 2], vec![(3, true), (9, false)]),
        ([0, 2, 2], vec![(6, true), (6, false)]),
        ([0, 0, 2], vec![(9, true), (3, false)]),
        ([1, 2, 2], vec![(3, true), (3, true), (6, false)]),
        // One that was reset has missed nobody knows how much.
        ([4, 2, 2], vec![(3, true), (3, true), (6, false)]),
    ] {
        let octets = with_blocks(&trace, 1, |writer, n| {
            if n % 3 == 0 && n < 12 {
                let time_ns = START_NS + u64::try_from(n).expect("small") * STEP_NS;
                writer.drops(0, time_ns, readings[n / 3 - 1]);
            }
        });
        let ended = good(&[scratch.file("drops.pcapng", &octets)], &[]);
        assert_eq!(shown(&ended), expected, "readings {readings:?}");
    }
}

// SEQ-3.7: an epoch that had closed before the reading came is qualified by it all the same.
#[test]
fn a_final_waits_for_the_reading_that_covers_it() {
    let scratch = Scratch::new();
    // The jump behind the third request closes the first epoch.
    let trace = Trace::from_frames(requests([1, 2, 3, 8_000_000, 8_000_001, 8_000_002]));
    for (drops, gap) in [(0, false), (1, true)] {
        let octets = with_blocks(&trace, 1, |writer, n| {
            if n == 5 {
                writer.drops(0, START_NS + 5 * STEP_NS, drops);
            }
        });
        let ended = good(&[scratch.file("drops.pcapng", &octets)], &[]);
        let mut found = epochs(&ended.json());
        found.sort_by_key(|epoch| epoch.start);
        let shown: Vec<_> =
            found.iter().map(|e| (e.requests, e.has("serialDiscontinuity"), e.has(GAP))).collect();
        let expected = if gap {
            vec![(3, true, true), (2, false, true), (1, false, false)]
        } else {
            vec![(3, true, false), (3, false, false)]
        };
        assert_eq!(shown, expected);
    }
}

// SEQ-3.8: which of two interfaces would have seen the packet is not known.
#[test]
fn drops_of_one_interface_of_two_are_a_gap_of_both() {
    let scratch = Scratch::new();
    let trace = trace(8);
    for dropping in [0, 1] {
        let mut writer = PcapNg::new(Order::Little);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        for (n, packet) in trace.packets.iter().enumerate() {
            writer.enhanced(u32::from(n % 2 == 1), packet.time_ns, packet, &[]);
            if n == 3 {
                for interface in [0, 1] {
                    writer.drops(interface, packet.time_ns, u64::from(interface == dropping));
                }
            }
        }
        let ended = good(&[scratch.file("drops.pcapng", &writer.octets)], &[]);
        assert_eq!(shown(&ended), [(4, true), (4, false)], "interface {dropping}");
    }
}

#[test]
fn drops_that_packets_told_of_are_no_second_gap_in_the_statistics() {
    let scratch = Scratch::new();
    let trace = trace(8);
    for (total, expected) in
        [(5, vec![(2, true), (6, false)]), (6, vec![(2, true), (4, true), (2, false)])]
    {
        let mut writer = PcapNg::new(Order::Little);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        for (n, packet) in trace.packets.iter().enumerate() {
            let count = if n == 2 { 5_u64 } else { 0 }.to_le_bytes();
            let options: &[(u16, &[u8])] = if n == 2 { &[(4, &count)] } else { &[] };
            writer.enhanced(0, packet.time_ns, packet, options);
            if n == 5 {
                writer.drops(0, packet.time_ns, total);
            }
        }
        let ended = good(&[scratch.file("drops.pcapng", &writer.octets)], &[]);
        assert_eq!(shown(&ended), expected, "{total} in all");
    }
}

#[test]
fn drops_of_the_operating_system_count_like_those_of_the_interface() {
    let scratch = Scratch::new();
    let count = 1_u64.to_le_bytes();
    for (code, gap) in [(4, false), (5, true), (6, false), (7, true), (8, false)] {
        let octets = with_blocks(&trace(6), 1, |writer, n| {
            if n == 3 {
                writer.statistics(0, START_NS, &[(code, &count)]);
            }
        });
        let expected = if gap { vec![(3, true), (3, false)] } else { vec![(6, false)] };
        let ended = good(&[scratch.file("drops.pcapng", &octets)], &[]);
        assert_eq!(shown(&ended), expected, "counter {code}");
    }
}

/// Frames in a mirror, under these sequence numbers.
fn mirrored(tunnel: Tunnel, numbers: &[u32]) -> Vec<u8> {
    let frames = (0..)
        .zip(numbers)
        .map(|(psn, number)| tunnel.wrap(&Roce::psn(100 + psn).frame(), 0, *number));
    Trace::from_frames(frames).plain()
}

// SEQ-3.7
#[test]
fn numbers_that_a_mirror_passes_over_are_gaps_of_the_capture() {
    let scratch = Scratch::new();
    let top = u32::MAX;
    for tunnel in [Tunnel::ErspanII, Tunnel::ErspanIII, Tunnel::GreIp] {
        for (numbers, expected) in [
            (vec![1, 2, 3, 4], vec![(4, false)]),
            (vec![1, 2, 4, 5], vec![(2, true), (2, false)]),
            (vec![top - 1, top, 0, 1], vec![(4, false)]),
            (vec![top - 1, top, 1, 2], vec![(2, true), (2, false)]),
            // Late or twice is not missing.
            (vec![1, 2, 2, 3], vec![(4, false)]),
        ] {
            let path = scratch.file("mirror.pcap", &mirrored(tunnel, &numbers));
            let ended = good(&[path], &["--layer", tunnel.layer()]);
            assert_eq!(shown(&ended), expected, "{tunnel:?} {numbers:?}");
        }
    }
}

#[test]
fn a_mirror_without_numbers_has_no_gaps_that_could_be_known() {
    let scratch = Scratch::new();
    for tunnel in [Tunnel::ErspanI, Tunnel::GreEthernet, Tunnel::Vxlan] {
        let path = scratch.file("mirror.pcap", &mirrored(tunnel, &[1, 5, 9, 100]));
        let ended = good(&[path], &["--layer", tunnel.layer()]);
        assert_eq!(shown(&ended), [(4, false)], "{tunnel:?}");
    }
}

// SEQ-3.8
#[test]
fn a_frame_that_is_cut_before_its_addresses_closes_every_epoch_and_behind_them_only_its_own() {
    let scratch = Scratch::new();
    let other = |psn| Roce { source: [10, 1, 0, 9], psn, ..Roce::default() }.frame();
    let frames = [
        Roce::psn(1).frame(),
        other(1),
        Roce::psn(2).frame(),
        other(2),
        Roce::psn(3).frame(),
        other(3),
    ];
    for (kept, gaps) in [(20, 2), (34, 1), (42, 1), (53, 1), (54, 0)] {
        let mut trace = Trace::from_frames(frames.clone());
        trace.packets[2].data.truncate(kept);
        let ended = good(&[scratch.file("cut.pcap", &trace.plain())], &[]);
        let found = epochs(&ended.json());
        let with_gap = found.iter().filter(|epoch| epoch.has(GAP)).count();
        assert_eq!(with_gap, gaps, "{kept} octets: {found:?}");
    }
}

// SEQ-3.8: addresses do not tell tenants apart, so a fault of one is a fault of both.
#[test]
fn a_fault_closes_the_streams_of_every_namespace_with_its_addresses() {
    let scratch = Scratch::new();
    let frame = |psn: u32| Roce { psn, opcode: SEND_ONLY, ..Roce::default() }.frame();
    let mut trace = Trace::from_frames([
        tagged(&frame(1), 0x8100, 5),
        tagged(&frame(1), 0x8100, 6),
        tagged(&frame(2), 0x8100, 5),
    ]);
    trace.packets[2].data.truncate(50);
    let found = epochs(&good(&[scratch.file("cut.pcap", &trace.plain())], &[]).json());
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|epoch: &Epoch| epoch.has(GAP)), "{found:?}");
}

// SEQ-4.7
#[test]
fn an_epoch_that_is_silent_for_longer_than_the_timeout_closes_without_a_cause_flag() {
    let scratch = Scratch::new();
    let mut trace = trace(4);
    for (n, seconds) in [(2, 10), (3, 10)] {
        trace.packets[n].time_ns += seconds * 1_000_000_000;
    }
    let path = scratch.file("idle.pcap", &trace.plain());
    for (timeout, expected) in [("9", vec![(2, false), (2, false)]), ("11", vec![(4, false)])] {
        let ended = good(&[&path], &["--idle-timeout", timeout]);
        assert_eq!(shown(&ended), expected, "{timeout} s");
    }
    let reports = good(&[&path], &["--idle-timeout", "9"]).json();
    // SEQ-6.5: when its last packet came, not when its silence was noticed.
    let ends: Vec<_> = reports.iter().map(|r| number(r, "flowEndMilliseconds")).collect();
    assert_eq!(ends, [1, 3].map(|n| trace.packets[n].time_ns / 1_000_000));
}

// SEQ-3.8: a frame has no fewer octets than were captured of it, wherever they stand.
#[test]
fn a_record_that_holds_more_than_its_frame_had_is_no_request() {
    let scratch = Scratch::new();
    let mut trace = trace(3);
    // Octets behind the IP packet, as padding would be: the lengths in the frame add up.
    trace.packets[1].data.extend([0; 4]);
    let ended = good(&[scratch.file("longer.pcap", &trace.plain())], &[]);
    let epochs = epochs(&ended.json());
    let requests: Vec<_> = epochs.iter().map(|epoch| (epoch.requests, epoch.has(GAP))).collect();
    assert_eq!(requests, [(1, true), (1, false)], "{epochs:?}");
    assert!(ended.err.contains("1 frame that the capture marks as damaged"), "{}", ended.err);
    // Where the frame had them, they are padding.
    trace.packets[1].original_len += 4;
    let ended = good(&[scratch.file("padded.pcap", &trace.plain())], &[]);
    assert_eq!(shown(&ended), [(3, false)]);
}

#[test]
fn files_that_overlap_a_little_are_told_of_and_no_epoch_ends_for_it() {
    let scratch = Scratch::new();
    let whole = trace(4);
    for (back_ns, expected) in [
        (1, vec![(4, false)]),
        (50_000_000, vec![(4, false)]),
        (50_000_001, vec![(2, true), (2, false)]),
    ] {
        let (mut first, mut second) = (whole.first(2), trace(4));
        second.packets.drain(..2);
        let last_ns = first.packets[1].time_ns;
        let start_ns = second.packets[0].time_ns;
        second
            .packets
            .iter_mut()
            .for_each(|p| p.time_ns = p.time_ns - start_ns + last_ns - back_ns);
        let earlier_ns = last_ns - back_ns;
        first.packets[0].time_ns = earlier_ns - 2 * STEP_NS;
        let files = [("1.pcap", &first), ("2.pcap", &second)]
            .map(|(name, part)| scratch.file(name, &part.pcap(Order::Little, true)));
        let ended = good(&files, &[]);
        assert!(ended.err.contains("before the one in front of it ended"), "{}", ended.err);
        assert_eq!(shown(&ended), expected, "{back_ns} ns");
    }
}

// SEQ-3.8
#[test]
fn a_file_that_comes_twice_ends_what_goes_on_however_short_it_is() {
    let scratch = Scratch::new();
    let mut short = trace(2);
    let start_ns = short.packets[0].time_ns;
    short.packets[1].time_ns = start_ns + 1_000_000;
    let path = scratch.file("short.pcap", &short.plain());
    assert_eq!(shown(&good(&[&path], &[])), [(2, false)]);
    let mut twice = shown(&good(&[&path, &path], &[]));
    twice.sort();
    assert_eq!(twice, [(2, false), (2, true)]);
    // What begins later and ends later is a writer that rotates.
    let mut next = trace(2);
    next.packets.iter_mut().zip([500_000, 2_000_000]).for_each(|(packet, behind_ns)| {
        packet.time_ns = start_ns + behind_ns;
    });
    let next = scratch.file("next.pcap", &next.plain());
    assert_eq!(shown(&good(&[&path, &next], &[])).len(), 1);
}
