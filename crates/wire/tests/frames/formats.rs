//! The capture formats, octet by octet.

use crate::support::{
    Event, Order, PcapNgWriter, PcapWriter, error, events, events_in_pieces, every_capture,
    packets, read,
};
use wire::capture::{Expected, Format, Limits, Parser, SNIFF_LEN, Statistics, Step, sniff};
use wire::frame::LinkType;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

fn pcap(order: Order, magic: u32, network: u32) -> Vec<u8> {
    let mut writer = PcapWriter::new(order, magic, 65_535, network);
    writer.record(1_790_000_000, 999_999, 1000, &[1, 2, 3]);
    writer.record(u32::MAX, u32::MAX, 0, &[]);
    writer.octets
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_both_units() {
    for order in Order::BOTH {
        for (magic, unit) in [(MICROSECONDS, 1000), (NANOSECONDS, 1)] {
            let octets = pcap(order, magic, 1);
            assert_eq!(sniff(&octets), Format::Pcap);
            let all = events(&octets);
            assert_eq!(all[0], Event::Section);
            assert_eq!(all[1], Event::Interface(0, Ok(LinkType::Ethernet), 65_535));
            let packets = packets(&octets);
            assert_eq!(packets.len(), 2);
            assert_eq!(packets[0].time_ns, Some(1_790_000_000_000_000_000 + 999_999 * unit));
            assert_eq!(packets[0].original_len, 1000);
            assert_eq!(packets[0].data, [1, 2, 3]);
            assert_eq!(packets[0].drops_before, None, "pcap cannot say");
            let largest = u64::from(u32::MAX);
            assert_eq!(packets[1].time_ns, Some(largest * 1_000_000_000 + largest * unit));
        }
    }
}

#[test]
fn the_length_of_a_frame_check_sequence_is_not_part_of_the_link_type() {
    for network in [0x0000_0001, 0x4400_0001, 0xffff_0001] {
        let octets = pcap(Order::Little, MICROSECONDS, network);
        assert_eq!(packets(&octets)[0].link, Ok(LinkType::Ethernet));
    }
    let octets = pcap(Order::Big, MICROSECONDS, 127);
    let link = packets(&octets)[0].link.expect_err("radio");
    assert_eq!(link.number, 127);
}

#[test]
fn other_kinds_of_pcap_are_refused_by_name() {
    for order in Order::BOTH {
        let octets = pcap(order, 0xa1b2_cd34, 1);
        assert_eq!(
            error(&octets),
            "modified (Kuznetzov) pcap, magic a1b2cd34 at offset 0, need plain pcap or pcapng"
        );
    }
    let mut octets = pcap(Order::Little, MICROSECONDS, 1);
    octets[6] = 3;
    assert_eq!(error(&octets), "pcap version 2.3 at offset 4, need 2.4");
}

#[test]
fn a_file_that_is_no_capture_is_refused() {
    assert_eq!(error(&[]), "0 octets in all, too few for a pcap or pcapng header");
    assert_eq!(
        error(&pcap(Order::Little, MICROSECONDS, 1)[..23]),
        "23 octets in all, too few for a pcap or pcapng header"
    );
    assert_eq!(error(b"hello, world"), "first octets 68 65 6c 6c, need those of pcap or pcapng");
    assert_eq!(
        error(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0]),
        "first octets 1f 8b 08 00 (gzip), need those of pcap or pcapng"
    );
}

#[test]
fn formats_are_told_by_their_first_octets() {
    for (octets, format) in [
        (&[0x0a, 0x0d, 0x0d, 0x0a][..], Format::PcapNg),
        (&[0x1f, 0x8b], Format::Gzip),
        (&[0x28, 0xb5, 0x2f, 0xfd], Format::Zstd),
        (&[0x53, 0x2a, 0x4d, 0x18], Format::Zstd),
        (&[0xa1, 0xb2, 0xc3], Format::Unknown),
        (&[], Format::Unknown),
    ] {
        assert_eq!(sniff(octets), format, "{octets:x?}");
    }
    assert_eq!(SNIFF_LEN, 4);
}

#[test]
fn a_file_that_ends_inside_a_record_is_good_up_to_there() {
    let octets = pcap(Order::Little, MICROSECONDS, 1);
    let first = 24 + 16 + 3;
    for end in 24..=octets.len() {
        let last = events(&octets[..end]).pop().expect("something");
        match end {
            24 => assert!(matches!(last, Event::Interface(..))),
            25..43 => assert_eq!(last, Event::Truncated(24), "{end}"),
            43 => assert!(matches!(last, Event::Packet(_))),
            44..59 => assert_eq!(last, Event::Truncated(first), "{end}"),
            _ => assert!(matches!(last, Event::Packet(_))),
        }
    }
}

#[test]
fn a_record_of_the_limit_is_read_and_one_octet_more_is_refused() {
    let limits = Limits { record_max: 100, ..Limits::default() };
    for (size, good) in [(99, true), (100, true), (101, false)] {
        let mut writer = PcapWriter::new(Order::Big, MICROSECONDS, 0, 1);
        writer.record(0, 0, 0, &vec![0; size]);
        let result = events_in_pieces(&writer.octets, 1000, limits);
        assert_eq!(result.is_ok(), good);
        if let Err((events, error)) = result {
            assert_eq!(events.len(), 2, "header and interface");
            assert_eq!(
                error.to_string(),
                "record of 101 octets at offset 32, limit record_max is 100"
            );
        }
    }
    for (size, good) in [(88, true), (92, false)] {
        let mut writer = PcapNgWriter::new(Order::Big);
        writer.block(77, &vec![0; size]);
        let result = events_in_pieces(&writer.octets, 1000, limits);
        assert_eq!(result.is_ok(), good, "{size} and 12 around it");
    }
}

/// A capture with everything in it.
fn everything(order: Order) -> Vec<u8> {
    let mut writer = PcapNgWriter::new(order);
    let offset = order.u64(i64::cast_unsigned(-3));
    writer.interface(1, 0x6809_0000, &[(2, b"mlx0"), (9, &[9]), (14, &offset)]);
    writer.interface(113, 0, &[]);
    writer.block(4, &[0; 8]);
    writer.block(0x0bad, &[1; 12]);
    writer.block(10, &[0; 16]);
    writer.enhanced(0, 5_000_000_001, 1500, &[1, 2, 3], &[]);
    let drops = order.u64(7);
    writer.enhanced(1, 2_000_001, 4, &[4, 5, 6, 7], &[(2, &[0; 4]), (4, &drops)]);
    writer.obsolete(1, 9, 2_000_001, &[8]);
    writer.obsolete(1, 0xffff, 2_000_001, &[9]);
    writer.simple(2, &[10, 11]);
    writer.statistics(
        1,
        1_000_000,
        &[(4, &order.u64(100)), (5, &order.u64(u64::MAX)), (7, &order.u64(3))],
    );
    writer.statistics(0, 0, &[]);
    writer.section(order);
    writer.interface(228, 1, &[(9, &[0x81])]);
    writer.simple(100, &[12]);
    writer.enhanced(0, 3, 1, &[13], &[]);
    writer.octets
}

#[test]
fn pcapng_is_read_in_both_byte_orders() {
    for order in Order::BOTH {
        let octets = everything(order);
        assert_eq!(sniff(&octets), Format::PcapNg);
        let events = events(&octets);
        let packets: Vec<_> = packets(&octets)
            .into_iter()
            .map(|packet| {
                let Ok(link) = packet.link else {
                    panic!("a known link");
                };
                let times = (packet.time_ns, packet.drops_before);
                (packet.interface, link, times, packet.original_len, packet.data)
            })
            .collect();
        let sll = LinkType::Sll;
        let time = Some(2_000_001_000);
        assert_eq!(
            packets,
            [
                (0, LinkType::Ethernet, (Some(2_000_000_001), None), 1500, vec![1, 2, 3]),
                (1, sll, (time, Some(7)), 4, vec![4, 5, 6, 7]),
                (1, sll, (time, Some(9)), 1, vec![8]),
                (1, sll, (time, None), 1, vec![9]),
                (0, LinkType::Ethernet, (None, None), 2, vec![10, 11]),
                (0, LinkType::Ipv4, (None, None), 100, vec![12]),
                (0, LinkType::Ipv4, (Some(1_500_000_000), None), 1, vec![13]),
            ]
        );
        let statistics: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Statistics(statistics) => Some(*statistics),
                _ => None,
            })
            .collect();
        let first = Statistics {
            interface: 1,
            time_ns: Some(1_000_000_000),
            received: Some(100),
            if_drop: Some(u64::MAX),
            os_drop: Some(3),
            accepted: None,
            delivered: None,
        };
        let second = Statistics::default();
        // Before 1970 by the interface's offset, so no time.
        assert_eq!(statistics, [first, second]);
        let skipped = events.iter().filter(|event| **event == Event::Skipped);
        assert_eq!(skipped.count(), 3);
        let sections = events.iter().filter(|event| **event == Event::Section);
        assert_eq!(sections.count(), 2);
    }
}

#[test]
fn byte_orders_may_change_between_sections() {
    let mut octets = everything(Order::Big);
    octets.extend(everything(Order::Little));
    assert_eq!(packets(&octets).len(), 14);
}

#[test]
fn a_file_in_pieces_of_any_size_gives_the_same() {
    for octets in
        [everything(Order::Little), everything(Order::Big), pcap(Order::Little, NANOSECONDS, 101)]
    {
        let whole = events(&octets);
        for piece in [1, 2, 3, 7, 16, 61] {
            let pieces = events_in_pieces(&octets, piece, Limits::default());
            assert_eq!(pieces.expect("a good capture"), whole, "pieces of {piece}");
        }
    }
}

#[test]
fn every_octet_changed_gives_a_step_or_an_error_and_nothing_else() {
    for octets in
        [everything(Order::Little), everything(Order::Big), pcap(Order::Big, MICROSECONDS, 1)]
    {
        for at in 0..octets.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut octets = octets.clone();
                octets[at] ^= flip;
                if let Err((_, error)) = events_in_pieces(&octets, 50, Limits::default()) {
                    let offset = usize::try_from(error.offset).expect("small");
                    assert!(offset <= octets.len(), "{error}");
                }
            }
        }
    }
}

fn with_block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut writer = PcapNgWriter::new(Order::Little);
    writer.interface(1, 0, &[]);
    writer.block(kind, body);
    writer.octets
}

#[test]
fn faults_of_pcapng_say_what_was_expected_and_where() {
    // Section header 28 octets, interface 20: the third block starts at 48.
    let mut octets = with_block(99, &[0; 8]);
    octets[52] = 21;
    assert_eq!(error(&octets), "block length 21 at offset 52, need a multiple of 4, at least 12");
    octets[52] = 8;
    assert_eq!(error(&octets), "block length 8 at offset 52, need a multiple of 4, at least 12");
    let mut octets = with_block(99, &[0; 8]);
    octets[64] = 24;
    assert_eq!(
        error(&octets),
        "block length 24 at the end of the block, offset 64, need 20 as at its start"
    );
    assert_eq!(
        error(&with_block(6, &[0; 16])),
        "block length 28 at offset 52, need a multiple of 4, at least 32"
    );
    let mut body = vec![0; 20];
    body[0] = 1;
    assert_eq!(
        error(&with_block(6, &body)),
        "interface 1 at offset 56, the section has described 1"
    );
    let mut body = vec![0; 20];
    body[12] = 5;
    assert_eq!(
        error(&with_block(6, &body)),
        "packet of 5 octets at offset 68, the block has room for 0"
    );
    let mut body = vec![0; 24];
    body[20..24].copy_from_slice(&[4, 0, 8, 0]);
    assert_eq!(
        error(&with_block(6, &body)),
        "option 4 of 8 octets at offset 76, the block has room for 0"
    );
    let mut body = vec![0; 16];
    body[12..16].copy_from_slice(&[5, 0, 0, 0]);
    assert_eq!(error(&with_block(5, &body)), "option 5 of 0 octets at offset 68, need 8");
    let mut octets = with_block(99, &[]);
    octets[8] = 0;
    assert_eq!(
        error(&octets),
        "byte order mark 00 3c 2b 1a at offset 8, need 1a 2b 3c 4d either way round"
    );
    let mut octets = with_block(99, &[]);
    octets[12] = 2;
    assert_eq!(error(&octets), "pcapng version 2.0 at offset 12, need 1.0");
}

#[test]
fn interfaces_are_bounded() {
    let limits = Limits { interfaces_max: 2, ..Limits::default() };
    for (count, good) in [(1, true), (2, true), (3, false)] {
        let mut writer = PcapNgWriter::new(Order::Little);
        for _ in 0..count {
            writer.interface(1, 0, &[]);
        }
        // A new section starts again.
        writer.section(Order::Little);
        writer.interface(1, 0, &[]);
        assert_eq!(events_in_pieces(&writer.octets, 1000, limits).is_ok(), good);
    }
}

#[test]
fn an_error_leaves_the_parser_as_it_was() {
    let mut octets = with_block(6, &[0xff; 20]);
    let mut parser = Parser::new(Limits::default());
    let mut from = 0;
    for _ in 0..2 {
        from += parser.next(&octets[from..], true).expect("good").consumed();
    }
    let offset = parser.offset();
    let first = parser.next(&octets[from..], true).expect_err("a bad block");
    assert!(matches!(first.expected, Expected::Interface { .. }));
    assert_eq!(parser.next(&octets[from..], true), Err(first));
    assert_eq!(parser.offset(), offset);
    // The same parser reads the block once it is good.
    octets[from + 8..from + 28].fill(0);
    assert!(matches!(parser.next(&octets[from..], true), Ok(Step::Packet { .. })));
}

#[test]
fn nothing_is_needed_beyond_the_largest_record() {
    let limits = Limits::default();
    for path in every_capture(&["made", "tunnels"]) {
        let octets = read(&path);
        let mut parser = Parser::new(limits);
        let (mut from, mut to) = (0, 0);
        loop {
            let step = parser.next(&octets[from..to], false).expect("good");
            from += step.consumed();
            if let Step::Need(need) = step {
                assert!(need <= usize::try_from(limits.record_max).expect("small") + 16);
                if from + need > octets.len() {
                    break;
                }
                // Exactly what is needed is enough for the next step.
                to = from + need;
            }
        }
        assert_eq!(from, octets.len(), "{}", path.display());
    }
}
