//! Frame check sequences in captures: where a capture says that it has them, and what comes of it.

use crate::support::{Order, PcapNgWriter, PcapWriter};
use wire::capture::{FrameCheck, Limits, Parser, Record, Step};

/// A frame and its sequence.
const OCTETS: [u8; 13] = *b"123456789\x26\x39\xf4\xcb";
const MICROSECONDS: u32 = 0xa1b2_c3d4;

/// Octets of data, original length, what is known of the frame, damaged, sent.
type Seen = (usize, u32, FrameCheck, bool, bool);

fn of(record: &Record<'_>) -> Seen {
    (record.data.len(), record.original_len, record.check, record.damaged, record.outbound)
}

/// The records of a capture, and the names of its interfaces.
fn read(octets: &[u8]) -> (Vec<Seen>, Vec<Option<String>>) {
    let mut parser = Parser::new(Limits::default());
    let (mut rest, mut seen, mut names) = (octets, Vec::new(), Vec::new());
    loop {
        let step = parser.next(rest, true).expect("a good capture");
        match step {
            Step::Packet { record, .. } => seen.push(of(&record)),
            Step::Interface { name, .. } => {
                names.push(name.map(|name| String::from_utf8_lossy(name).into_owned()));
            }
            Step::End => return (seen, names),
            _ => {}
        }
        rest = &rest[step.consumed()..];
    }
}

const GOOD: Seen = (9, 9, FrameCheck::Good, false, false);
const BAD: Seen = (9, 9, FrameCheck::Bad, true, false);
const UNTOLD: Seen = (13, 13, FrameCheck::Untold, false, false);
const UNCHECKED: Seen = (13, 13, FrameCheck::Unchecked, false, false);

// PFC-count.4
#[test]
fn the_link_type_word_of_a_pcap_says_that_each_frame_has_a_sequence() {
    for order in Order::BOTH {
        for (word, whole) in [
            (0x0000_0001, UNTOLD),
            // A length without the bit that says that there is one.
            (0x2000_0001, UNTOLD),
            (0x0400_0001, UNTOLD),
            (0x2400_0001, GOOD),
            (0x2400_0071, (9, 9, FrameCheck::Unchecked, false, false)),
            (0x1400_0001, UNCHECKED),
            (0x4400_0001, UNCHECKED),
        ] {
            let mut writer = PcapWriter::new(order, MICROSECONDS, 65_535, word);
            writer.record(1, 0, 13, &OCTETS);
            assert_eq!(read(&writer.octets), (vec![whole], vec![None]), "{word:#010x}");
        }
        let mut writer = PcapWriter::new(order, MICROSECONDS, 65_535, 0x2400_0001);
        let mut wrong = OCTETS;
        wrong[3] ^= 1;
        writer.record(1, 0, 13, &wrong);
        writer.record(1, 0, 13, &OCTETS[..11]);
        writer.record(1, 0, 13, &OCTETS[..4]);
        let cut = |len| (len, 9, FrameCheck::Unchecked, false, false);
        assert_eq!(read(&writer.octets).0, [BAD, cut(9), cut(4)]);
    }
}

// PFC-count.4
#[test]
fn pcapng_says_it_of_an_interface_or_of_a_packet() {
    const SENT: Seen = (9, 9, FrameCheck::Good, false, true);
    for order in Order::BOTH {
        let flags = |flags: u32| order.u32(flags);
        for (interface, packet, seen) in [
            (None, None, UNTOLD),
            (Some(0), None, UNTOLD),
            (Some(4), None, GOOD),
            (Some(2), None, UNCHECKED),
            (None, Some(4 << 5), GOOD),
            (None, Some(1 | 4 << 5), GOOD),
            (None, Some(2 | 4 << 5), SENT),
            // What is said of the packet goes before what is said of the interface.
            (Some(2), Some(4 << 5), GOOD),
            (Some(4), Some(0), GOOD),
            (Some(4), Some(8 << 5), UNCHECKED),
        ] {
            let mut writer = PcapNgWriter::new(order);
            let said: Vec<(u16, &[u8])> = match &interface {
                Some(len) => vec![(2, b"eth5"), (13, std::slice::from_ref(len))],
                None => vec![(2, b"eth5")],
            };
            writer.interface(1, 0, &said);
            let packet = packet.map(flags);
            let options: Vec<(u16, &[u8])> = packet.iter().map(|flags| (2, &flags[..])).collect();
            writer.enhanced(0, 5, 13, &OCTETS, &options);
            let names = vec![Some("eth5".to_owned())];
            assert_eq!(read(&writer.octets), (vec![seen], names), "{interface:?} {packet:x?}");
        }
        let mut writer = PcapNgWriter::new(order);
        writer.interface(1, 0, &[(13, &[4])]);
        writer.simple(13, &OCTETS);
        writer.obsolete(0, 0, 5, &OCTETS);
        assert_eq!(read(&writer.octets), (vec![GOOD, GOOD], vec![None]));
    }
}

// PFC-count.4
#[test]
fn what_the_flags_call_no_frame_is_bad_and_other_errors_are_damage() {
    for bit in 24..32 {
        let mut writer = PcapNgWriter::new(Order::Little);
        writer.interface(1, 0, &[]);
        let flags = (1_u32 << bit).to_le_bytes();
        writer.enhanced(0, 5, 13, &OCTETS, &[(2, &flags)]);
        // Wrong gap in front of the frame, start of the frame, preamble.
        let in_front = matches!(bit, 27 | 29 | 30);
        let check = if in_front { FrameCheck::Untold } else { FrameCheck::Bad };
        assert_eq!(read(&writer.octets).0, [(13, 13, check, true, false)], "bit {bit}");
    }
}
