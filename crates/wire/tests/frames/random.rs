//! Octets that make no sense, and good frames with some of their octets changed.

use crate::support::{captures, events_in_pieces, packets, read};
use proptest::prelude::*;
use std::sync::LazyLock;
use wire::capture::Limits;
use wire::frame::{Decoded, Frame, Layer, LinkType, carries, decode};
use wire::icrc;
use wire::pfc;

const LINKS: [LinkType; 7] = [
    LinkType::Ethernet,
    LinkType::Ip,
    LinkType::Ipv4,
    LinkType::Ipv6,
    LinkType::Sll,
    LinkType::Sll2,
    LinkType::Null,
];

/// One frame of every kind that there is in the captures.
static FRAMES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    [
        "made/in-order.pcap",
        "made/ipv6.pcap",
        "made/qinq.pcap",
        "made/pfc.pcap",
        "made/responses-cnp-ud-uc.pcap",
        "softroce/h1_write_ipv6.rcv.pcap",
        "softroce/i1_write_vlan.rcv.pcap",
        "tunnels/tcpdump__vxlan.pcap",
        "tunnels/zeek__erspanII.pcap",
        "tunnels/zeek__gre-erspan3-dot1q.pcap",
        "tunnels/zeek__ipv6-http-atomic-frag.pcap",
    ]
    .into_iter()
    .flat_map(|name| packets(&read(&captures(name))).into_iter().take(4))
    .map(|record| record.data)
    .collect()
});

/// What holds of every decoded frame, whatever is in it.
fn holds(frame: &[u8], decoded: &Decoded) {
    match decoded.body {
        Frame::Roce(packet) => {
            let bth = usize::try_from(packet.bth_offset).expect("small");
            let ip = usize::try_from(packet.ip_offset).expect("small");
            let captured = usize::try_from(packet.captured_len).expect("small");
            assert!(ip < bth && captured >= 12);
            assert!(bth + captured <= frame.len());
            assert!(packet.captured_len <= packet.transport_len);
            assert_eq!(frame[bth], packet.bth.opcode.0);
            assert_eq!(frame[bth - 6..bth - 4], 4791u16.to_be_bytes());
            assert!(packet.bth.qp < 1 << 24 && packet.bth.psn < 1 << 24);
            assert!(packet.namespace.outer_vlan < 4095 && packet.namespace.inner_vlan < 4095);
            let _ = icrc::check(frame, &packet);
        }
        Frame::Pfc(pfc) => assert!(pfc.priorities().all(|priority| pfc.counts_for(priority))),
        Frame::NotRoce(_) | Frame::Fault(_) => {}
    }
}

fn every_way(frame: &[u8], original_len: u32) {
    for link in LINKS {
        for layer in Layer::ALL {
            let decoded = decode(frame, original_len, link, layer);
            holds(frame, &decoded);
            if layer == Layer::Outer {
                assert_eq!(decoded.mirror, None);
            }
        }
        let _ = carries(frame, original_len, link);
    }
    let _ = pfc::parse(frame, frame.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_octets_are_decoded_without_a_panic(
        frame in prop::collection::vec(any::<u8>(), 0..200),
        original_len in any::<u32>(),
    ) {
        every_way(&frame, original_len);
    }

    #[test]
    fn changed_frames_are_decoded_without_a_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((0..120usize, any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        longer in 0..100u32,
    ) {
        let mut frame = which.get(&FRAMES).clone();
        let original_len = u32::try_from(frame.len()).expect("short") + longer;
        for (at, octet) in changes {
            if let Some(place) = frame.get_mut(at) {
                *place = octet;
            }
        }
        every_way(&frame, original_len);
        frame.truncate(cut.index(frame.len() + 1));
        every_way(&frame, original_len);
    }

    #[test]
    fn frames_in_frames_are_decoded_without_a_panic(
        outer in any::<prop::sample::Index>(),
        inner in any::<prop::sample::Index>(),
        at in 14..80usize,
    ) {
        let mut frame = outer.get(&FRAMES).clone();
        frame.truncate(at);
        frame.extend(inner.get(&FRAMES));
        every_way(&frame, 0);
    }

    #[test]
    fn random_capture_files_are_read_without_a_panic(
        start in prop::sample::select(vec![
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            vec![0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4],
            vec![
                0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0, 28, 0, 0, 0,
            ],
            vec![],
        ]),
        octets in prop::collection::vec(prop_oneof![3 => 0..32u8, 1 => any::<u8>()], 0..300),
        piece in 1..50usize,
    ) {
        let file = [start, octets].concat();
        let _ = events_in_pieces(&file, piece, Limits::default());
    }
}
