//! Frames made octet by octet, and what must be said of each.

use super::*;
use alloc::vec;
use alloc::vec::Vec;

/// A RoCEv2 WRITE ONLY with 16 octets of RETH and 4 of payload: 12 + 16 + 4 + 4.
fn transport() -> Vec<u8> {
    let bth = Bth {
        opcode: Opcode(0x0a),
        solicited: false,
        migration: true,
        pad: 0,
        version: 0,
        pkey: 0xffff,
        qp: 0x12_3456,
        congestion: 0,
        ack_request: true,
        psn: 0xab_cdef,
    };
    let mut octets = bth.to_octets().to_vec();
    octets.resize(36, 0x5a);
    octets
}

fn number(len: usize) -> [u8; 2] {
    u16::try_from(len).expect("short").to_be_bytes()
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0xc0, 0x00];
    octets.extend(port.to_be_bytes());
    octets.extend(number(payload.len() + 8));
    octets.extend([0, 0]);
    octets.extend(payload);
    octets
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x45, 0x02];
    octets.extend(number(payload.len() + 20));
    octets.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    octets.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    octets.extend(payload);
    octets
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0x60, 0, 0, 0];
    octets.extend(number(payload.len()));
    octets.extend([next, 64]);
    octets.extend([0xfd; 16]);
    octets.extend([0xfe; 16]);
    octets.extend(payload);
    octets
}

fn ethernet(tags: &[(u16, u16)], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for (tpid, tci) in tags {
        octets.extend(tpid.to_be_bytes());
        octets.extend(tci.to_be_bytes());
    }
    octets.extend(ethertype.to_be_bytes());
    octets.extend(payload);
    octets
}

fn plain() -> Vec<u8> {
    ethernet(&[], 0x0800, &ipv4(17, &udp(ROCE_PORT, &transport())))
}

fn original(frame: &[u8]) -> u32 {
    u32::try_from(frame.len()).expect("short")
}

fn body(frame: &[u8]) -> Frame {
    decode(frame, original(frame), LinkType::Ethernet, Layer::Outer).body
}

fn roce(frame: Frame) -> Packet {
    match frame {
        Frame::Roce(packet) => packet,
        other => panic!("expected RoCEv2, found {other:?}"),
    }
}

fn v4_addresses() -> Addresses {
    let mut addresses = Addresses { family: Family::V4, source: [0; 16], destination: [0; 16] };
    addresses.source[..4].copy_from_slice(&[10, 0, 0, 1]);
    addresses.destination[..4].copy_from_slice(&[10, 0, 0, 2]);
    addresses
}

#[test]
fn a_plain_frame_gives_every_field() {
    let packet = roce(body(&plain()));
    assert_eq!(packet.addresses, v4_addresses());
    assert_eq!(packet.namespace, Namespace::default());
    assert_eq!(packet.source_port, 0xc000);
    assert_eq!(packet.bth.to_octets(), transport()[..12]);
    assert_eq!((packet.transport_len, packet.captured_len), (36, 36));
    assert_eq!((packet.ip_offset, packet.bth_offset), (14, 42));
    assert_eq!(packet.lie, None);
    assert!(packet.extension_fits() && packet.extension_captured());
}

#[test]
fn the_short_way_says_what_the_long_way_says() {
    let v4 = ipv4(17, &udp(ROCE_PORT, &transport()));
    let v6 = ipv6(17, &udp(ROCE_PORT, &transport()));
    for tags in [
        &[][..],
        &[(0x8100, 0x2064)],
        &[(0x88a8, 4094), (0x8100, 0)],
        &[(0x8100, 1), (0x8100, 2), (0x8100, 3)],
    ] {
        let mut short_ways = 0;
        for good in [ethernet(tags, 0x0800, &v4), ethernet(tags, 0x86dd, &v6)] {
            short_ways += compare_ways(&good);
            // Every octet of the headers with some of its bits the other way round.
            for at in 12..good.len() - 24 {
                for flip in [0x01, 0x08, 0x10, 0x40, 0x80, 0xff] {
                    let mut frame = good.clone();
                    frame[at] ^= flip;
                    short_ways += compare_ways(&frame);
                }
            }
        }
        if tags.len() < 3 {
            assert!(short_ways > 1000, "{tags:?}: only {short_ways} times");
        } else {
            assert_eq!(short_ways, 0, "{tags:?}");
        }
    }
}

/// Both ways with every cut, and with original lengths that are right, longer and shorter; how
/// often the short way was taken.
fn compare_ways(frame: &[u8]) -> usize {
    let mut short_ways = 0;
    for cut in 0..=frame.len() {
        for original_len in [0, original(frame) - 3, original(frame), 1500] {
            let captured = &frame[..cut];
            let long =
                general(Span::new(captured, original_len), LinkType::Ethernet, Layer::Outer, false);
            let (mut addresses, mut namespace) =
                (Addresses::v4([0; 4], [0; 4]), Namespace::default());
            if let Some(found) = common(captured, original_len, &mut addresses, &mut namespace) {
                let packet = found.packet(addresses, namespace);
                assert_eq!(Frame::Roce(packet), long.body, "{captured:x?} {original_len}");
                short_ways += 1;
            }
            let shorter = untagged(captured, original_len);
            if let Some((found, addresses)) = shorter {
                let packet = found.packet(addresses.into(), Namespace::default());
                assert_eq!(Frame::Roce(packet), long.body, "{captured:x?} {original_len}");
            }
            let is_untagged_v4 = captured.get(12..14) == Some(&[0x08, 0x00]);
            assert_eq!(
                shorter.is_some(),
                is_untagged_v4
                    && common(captured, original_len, &mut addresses, &mut namespace).is_some()
            );
            assert_eq!(decode(captured, original_len, LinkType::Ethernet, Layer::Outer), long);
        }
    }
    short_ways
}

#[test]
fn only_the_destination_port_says_roce() {
    for source in [69u16, 53, 4789, 4791, 6081, 0] {
        let mut frame = plain();
        frame[34..36].copy_from_slice(&source.to_be_bytes());
        assert_eq!(roce(body(&frame)).source_port, source); // SEQ-4.4
        frame[36..38].copy_from_slice(&4790u16.to_be_bytes());
        assert_eq!(body(&frame), Frame::NotRoce(NotRoce::OtherUdpPort(4790)));
    }
}

#[test]
fn tags_give_the_outermost_and_the_innermost_vid() {
    let inside = ipv4(17, &udp(ROCE_PORT, &transport()));
    for (tags, vlans) in [
        (vec![], (0, 0)),
        (vec![(0x8100, 0)], (0, 0)),
        (vec![(0x8100, 0xe000)], (0, 0)),
        (vec![(0x8100, 0x6064)], (100, 0)),
        (vec![(0x88a8, 7), (0x8100, 8)], (7, 8)),
        (vec![(0x9100, 7), (0x8100, 8), (0x8100, 4094)], (7, 4094)),
        (vec![(0x8100, 1); 7], (1, 1)),
        (vec![(0x8100, 1); 8], (1, 1)),
    ] {
        let frame = ethernet(&tags, 0x0800, &inside);
        let packet = roce(body(&frame));
        let namespace = packet.namespace;
        assert_eq!((namespace.outer_vlan, namespace.inner_vlan), vlans);
        assert_eq!(packet.bth_offset, original(&frame) - 36);
    }
    let frame = ethernet(&[(0x8100, 1); 9], 0x0800, &inside);
    assert_eq!(body(&frame), Frame::NotRoce(NotRoce::TooManyTags));
    let frame = ethernet(&[(0x8100, 0x0fff)], 0x0800, &inside);
    assert_eq!(body(&frame), Frame::NotRoce(NotRoce::ReservedVlan));
}

#[test]
fn what_is_not_ip_says_what_it_is() {
    for (ethertype, why) in [
        (0x0000, NotRoce::Llc),
        (0x05ff, NotRoce::Llc),
        (0x0600, NotRoce::OtherEtherType(0x0600)),
        (0x0806, NotRoce::Arp),
        (0x8847, NotRoce::Mpls),
        (0x88cc, NotRoce::Lldp),
        (0x8808, NotRoce::MacControl),
        // RoCE version 1 has no UDP port, and is not what is looked for.
        (0x8915, NotRoce::OtherEtherType(0x8915)),
    ] {
        let frame = ethernet(&[], ethertype, &[0; 46]);
        assert_eq!(body(&frame), Frame::NotRoce(why));
    }
    assert_eq!(body(&plain()[..13]), Frame::NotRoce(NotRoce::TooShort));
    for (protocol, why) in [
        (1, NotRoce::Icmp),
        (6, NotRoce::Tcp),
        (47, NotRoce::OtherIpProtocol(47)),
        (50, NotRoce::OtherIpProtocol(50)),
    ] {
        let frame = ethernet(&[], 0x0800, &ipv4(protocol, &udp(ROCE_PORT, &transport())));
        assert_eq!(body(&frame), Frame::NotRoce(why));
    }
}

#[test]
fn a_tagged_mac_control_frame_is_no_pfc() {
    let mut pfc = vec![0x01, 0x01, 0x00, 0x08];
    pfc.resize(46, 0);
    let mut frame = ethernet(&[], 0x8808, &pfc);
    frame[..6].copy_from_slice(&crate::pfc::DESTINATION);
    assert!(matches!(body(&frame), Frame::Pfc(pfc) if pfc.enabled == 8));
    let mut frame = ethernet(&[(0x8100, 0)], 0x8808, &pfc);
    frame[..6].copy_from_slice(&crate::pfc::DESTINATION);
    assert_eq!(body(&frame), Frame::NotRoce(NotRoce::PfcTagged)); // PFC-count.4
}

#[test]
fn ip_options_are_stepped_over() {
    let mut ip = ipv4(17, &udp(ROCE_PORT, &transport()));
    for words in 1..=10u8 {
        ip.splice(20..20, [1, 1, 1, 1]);
        ip[0] = 0x45 + words;
        let len = number(ip.len());
        ip[2..4].copy_from_slice(&len);
        let packet = roce(body(&ethernet(&[], 0x0800, &ip)));
        assert_eq!(packet.bth_offset, 42 + 4 * u32::from(words));
        assert_eq!((packet.transport_len, packet.lie), (36, None));
    }
    ip[0] = 0x44;
    assert_eq!(body(&ethernet(&[], 0x0800, &ip)), Frame::NotRoce(NotRoce::BadIpHeader));
}

#[test]
fn ipv6_extension_headers_are_stepped_over() {
    let udp = udp(ROCE_PORT, &transport());
    let options = |next: u8| vec![next, 0, 1, 4, 0, 0, 0, 0];
    // Authentication header: length counts in fours, less two.
    let authentication = |next: u8| {
        let mut header = vec![next, 4];
        header.resize(24, 0);
        header
    };
    let atomic = |next: u8| vec![next, 0, 0, 6, 0, 0, 0, 1];
    let long = |next: u8| {
        let mut header = vec![next, 2];
        header.resize(24, 0);
        header
    };
    let chains: Vec<(u8, Vec<u8>)> = vec![
        (17, vec![]),
        (0, options(17)),
        (60, long(17)),
        (43, options(17)),
        (44, atomic(17)),
        (51, authentication(17)),
        (0, [options(43), options(44), atomic(51), authentication(60), long(17)].concat()),
    ];
    for (next, chain) in chains {
        let frame = ethernet(&[], 0x86dd, &ipv6(next, &[chain.clone(), udp.clone()].concat()));
        let packet = roce(body(&frame));
        assert_eq!(packet.addresses.family, Family::V6);
        assert_eq!(packet.addresses.source, [0xfd; 16]);
        assert_eq!(packet.addresses.destination, [0xfe; 16]);
        assert_eq!(packet.bth.psn, 0xab_cdef);
        assert_eq!(packet.bth_offset, original(&frame) - 36);
        assert_eq!((packet.transport_len, packet.lie), (36, None));
    }
    for (count, roce) in [(7, true), (8, true), (9, false)] {
        let mut chain = options(60).repeat(count - 1);
        chain.extend(options(17));
        let frame = ethernet(&[], 0x86dd, &ipv6(60, &[chain, udp.clone()].concat()));
        assert_eq!(matches!(body(&frame), Frame::Roce(_)), roce, "{count}");
    }
    let frame = ethernet(&[], 0x86dd, &ipv6(60, &[options(6), udp].concat()));
    assert_eq!(body(&frame), Frame::NotRoce(NotRoce::Tcp));
}

#[test]
fn fragments_are_faults_of_the_addresses() {
    for (field, first, roce) in [
        (0x2000u16, true, true),
        (0x6000, true, true),
        (0x2001, false, false),
        (0x0001, false, false),
    ] {
        let mut frame = plain();
        frame[20..22].copy_from_slice(&field.to_be_bytes());
        let addresses = v4_addresses();
        let fault = Fault::Fragment { first, roce, addresses };
        assert_eq!(body(&frame), Frame::Fault(fault));
        assert_eq!(fault.addresses(), Some(addresses));
        frame[23] = 6;
        assert_eq!(body(&frame), Frame::NotRoce(NotRoce::Tcp));
    }
    // A first fragment to another port is other traffic.
    let mut frame = plain();
    frame[20] = 0x20;
    frame[37] ^= 1;
    assert!(matches!(body(&frame), Frame::NotRoce(NotRoce::OtherUdpPort(_))));
    // Reserved bit and don't-fragment are no fragment.
    frame = plain();
    frame[20] = 0xc0;
    assert!(matches!(body(&frame), Frame::Roce(_)));
}

#[test]
fn ipv6_fragments_are_faults_and_atomic_ones_are_whole() {
    let udp = udp(ROCE_PORT, &transport());
    let frame = |next: u8, field: u16| {
        let [high, low] = field.to_be_bytes();
        let header = vec![next, 0, high, low, 0, 0, 0, 1];
        ethernet(&[], 0x86dd, &ipv6(44, &[header, udp.clone()].concat()))
    };
    assert!(matches!(body(&frame(17, 0)), Frame::Roce(_)));
    assert!(matches!(
        body(&frame(17, 1)),
        Frame::Fault(Fault::Fragment { first: true, roce: true, .. })
    ));
    for next in [17, 60] {
        assert!(matches!(
            body(&frame(next, 8)),
            Frame::Fault(Fault::Fragment { first: false, roce: false, .. })
        ));
    }
    assert_eq!(body(&frame(6, 8)), Frame::NotRoce(NotRoce::Tcp));
}

#[test]
fn a_capture_that_ends_before_the_bth_does_says_what_it_knows() {
    let frame = plain();
    let addresses = Some(v4_addresses());
    for cut in 0..=frame.len() {
        let decoded = decode(&frame[..cut], original(&frame), LinkType::Ethernet, Layer::Outer);
        let expected =
            |addresses, port_seen| Frame::Fault(Fault::Truncated { addresses, port_seen });
        match cut {
            0..34 => assert_eq!(decoded.body, expected(None, false), "{cut}"),
            34..38 => assert_eq!(decoded.body, expected(addresses, false), "{cut}"),
            38..54 => assert_eq!(decoded.body, expected(addresses, true), "{cut}"),
            _ => {
                let packet = roce(decoded.body);
                assert_eq!(packet.captured_len, u32::try_from(cut - 42).expect("short"));
                assert_eq!(packet.extension_captured(), cut >= 70, "{cut}");
                assert!(packet.extension_fits());
            }
        }
    }
}

#[test]
fn a_cut_frame_that_is_known_to_be_other_traffic_is_no_fault() {
    let frame = ethernet(&[], 0x0800, &ipv4(6, &[0; 40]));
    let other_port = ethernet(&[], 0x0800, &ipv4(17, &udp(53, &[0; 40])));
    let tcp6 = ethernet(&[], 0x86dd, &ipv6(6, &[0; 40]));
    for (frame, from, why) in [
        (frame, 24, NotRoce::Tcp),
        (other_port, 38, NotRoce::OtherUdpPort(53)),
        (tcp6, 21, NotRoce::Tcp),
    ] {
        for cut in 14..frame.len() {
            let link = LinkType::Ethernet;
            let body = decode(&frame[..cut], original(&frame), link, Layer::Outer).body;
            if cut < from {
                assert!(matches!(body, Frame::Fault(Fault::Truncated { port_seen: false, .. })));
            } else {
                assert_eq!(body, Frame::NotRoce(why), "{cut}");
            }
        }
    }
}

#[test]
fn a_udp_length_without_room_for_a_bth_is_a_fault_with_addresses() {
    let addresses = v4_addresses();
    for udp_len in [0u16, 7, 8, 19, 20, 21] {
        let mut frame = plain();
        frame[38..40].copy_from_slice(&udp_len.to_be_bytes());
        if udp_len < 20 {
            let fault = Fault::NoRoomForBth { addresses };
            assert_eq!(body(&frame), Frame::Fault(fault), "{udp_len}");
        } else {
            let packet = roce(body(&frame));
            assert_eq!(packet.transport_len, u32::from(udp_len) - 8);
            assert_eq!(packet.captured_len, packet.transport_len);
            assert!(!packet.extension_fits());
        }
    }
    // The same by the IP length: 20 of header, and less than 20 behind it.
    for (ip_len, room) in [(39u16, false), (40, true)] {
        let mut frame = plain();
        frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
        if room {
            assert_eq!(roce(body(&frame)).lie, Some(Lie::UdpBeyondIp));
        } else {
            let fault = Fault::NoRoomForBth { addresses };
            assert_eq!(body(&frame), Frame::Fault(fault));
        }
    }
    let mut frame = plain();
    frame[17] = 27;
    assert_eq!(body(&frame), Frame::NotRoce(NotRoce::BadUdpHeader));
    frame[17] = 19;
    assert_eq!(body(&frame), Frame::NotRoce(NotRoce::BadIpHeader));
}

#[test]
fn a_length_that_lies_is_told_even_where_the_bth_is_there() {
    let mut frame = plain();
    // One octet more than the frame has.
    frame[17] += 1;
    assert_eq!(roce(body(&frame)).lie, Some(Lie::IpBeyondFrame));
    let mut frame = plain();
    frame[39] += 1;
    let packet = roce(body(&frame));
    assert_eq!(packet.lie, Some(Lie::UdpBeyondIp));
    assert_eq!((packet.transport_len, packet.captured_len), (37, 36));
    // Not a lie: the frame was longer on the wire, or is filled up behind the packet.
    let mut frame = plain();
    frame[17] += 1;
    let decoded = decode(&frame, 79, LinkType::Ethernet, Layer::Outer);
    assert_eq!(roce(decoded.body).lie, None);
    let mut frame = plain();
    frame.extend([0; 4]);
    let packet = roce(body(&frame));
    assert_eq!((packet.lie, packet.captured_len), (None, 36));
}

#[test]
fn a_bth_beyond_the_frame_is_a_length_that_lies() {
    let frame = plain();
    let addresses = v4_addresses();
    for cut in 34..54 {
        let fault = Fault::LengthLies { addresses, lie: Lie::IpBeyondFrame, port_seen: cut >= 38 };
        assert_eq!(body(&frame[..cut]), Frame::Fault(fault), "{cut}");
    }
}

#[test]
fn other_links_lead_to_the_same_packet() {
    let ip = ipv4(17, &udp(ROCE_PORT, &transport()));
    let ip6 = ipv6(17, &udp(ROCE_PORT, &transport()));
    let mut sll = vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x08, 0x00];
    sll.extend(&ip);
    let mut sll_tagged = vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x81, 0x00];
    sll_tagged.extend([0, 9, 0x08, 0x00]);
    sll_tagged.extend(&ip);
    let mut sll2 = vec![0x86, 0xdd, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    sll2.extend(&ip6);
    let null = |family: [u8; 4], ip: &[u8]| [&family[..], ip].concat();
    for (link, frame, vlan) in [
        (LinkType::Ip, ip.clone(), 0),
        (LinkType::Ip, ip6.clone(), 0),
        (LinkType::Ipv4, ip.clone(), 0),
        (LinkType::Ipv6, ip6.clone(), 0),
        (LinkType::Sll, sll, 0),
        (LinkType::Sll, sll_tagged, 9),
        (LinkType::Sll2, sll2, 0),
        (LinkType::Null, null([2, 0, 0, 0], &ip), 0),
        (LinkType::Null, null([0, 0, 0, 2], &ip), 0),
        (LinkType::Null, null([30, 0, 0, 0], &ip6), 0),
        (LinkType::Null, null([0, 0, 0, 24], &ip6), 0),
    ] {
        let packet = roce(decode(&frame, original(&frame), link, Layer::Outer).body);
        assert_eq!(packet.bth.psn, 0xab_cdef, "{link:?}");
        assert_eq!(packet.namespace.outer_vlan, vlan);
    }
    for link in [LinkType::Ipv6, LinkType::Null] {
        let found = decode(&ip, original(&ip), link, Layer::Outer).body;
        assert!(matches!(found, Frame::NotRoce(_)), "{link:?}");
    }
}

/// A PFC frame behind a link header, which `front` makes of a whole one.
fn control(front: &[u8], opcode: u16) -> Vec<u8> {
    let mut frame = front.to_vec();
    frame.extend(opcode.to_be_bytes());
    frame.extend([0, 8]);
    frame.extend([9; 16]);
    frame
}

// PFC-count.4
#[test]
fn an_opcode_of_pfc_that_does_not_count_says_why() {
    const TO: [u8; 6] = crate::pfc::DESTINATION;
    const FROM: [u8; 6] = [2, 0, 0, 0, 0, 9];
    let plain = [&TO[..], &FROM, &[0x88, 0x08]].concat();
    let elsewhere = [&FROM[..], &FROM, &[0x88, 0x08]].concat();
    let tagged = [&TO[..], &FROM, &[0x81, 0, 0, 5, 0x88, 0x08]].concat();
    let sll = [&[0, 1, 0, 1, 0, 6][..], &FROM, &[0, 0, 0x88, 0x08]].concat();
    let sll2 = [&[0x88, 0x08, 0, 0, 0, 0, 0, 1, 0, 1, 1, 6][..], &FROM, &[0, 0]].concat();
    let sll_tagged = [&[0, 1, 0, 1, 0, 6][..], &FROM, &[0, 0, 0x81, 0, 0, 5, 0x88, 0x08]].concat();
    use LinkType::{Ethernet, Sll, Sll2};
    use NotRoce::{
        MacControl, MacControlCut, PfcElsewhere, PfcNoDestination, PfcTagged, PfcTooShort,
    };
    // Link, front, opcode, octets captured and on the wire behind the front.
    for (link, front, opcode, captured, on_wire, why) in [
        (Ethernet, &elsewhere, 0x0101, 20, 46, PfcElsewhere),
        (Ethernet, &elsewhere, 0x0101, 2, 46, PfcElsewhere),
        (Ethernet, &elsewhere, 0x0101, 1, 46, MacControl),
        (Ethernet, &elsewhere, 0x0001, 20, 46, MacControl),
        (Ethernet, &plain, 0x0001, 20, 46, MacControl),
        (Ethernet, &plain, 0x0001, 2, 46, MacControl),
        (Ethernet, &plain, 0x0001, 1, 46, MacControlCut),
        (Ethernet, &plain, 0x0101, 0, 46, MacControlCut),
        (Ethernet, &plain, 0x0101, 3, 46, MacControlCut),
        (Ethernet, &plain, 0x0101, 3, 3, PfcTooShort),
        (Ethernet, &plain, 0x0101, 3, 19, PfcTooShort),
        (Ethernet, &plain, 0x0101, 19, 19, PfcTooShort),
        (Ethernet, &plain, 0x0101, 1, 1, MacControl),
        (Ethernet, &tagged, 0x0101, 20, 46, PfcTagged),
        (Ethernet, &tagged, 0x0001, 20, 46, MacControl),
        (Ethernet, &tagged, 0x0101, 1, 46, MacControl),
        (Sll, &sll, 0x0101, 20, 46, PfcNoDestination),
        (Sll2, &sll2, 0x0101, 2, 46, PfcNoDestination),
        (Sll, &sll, 0x0101, 1, 46, MacControlCut),
        (Sll, &sll, 0x0101, 1, 1, MacControl),
        (Sll2, &sll2, 0x0001, 20, 46, MacControl),
        (Sll, &sll_tagged, 0x0101, 20, 46, PfcTagged),
    ] {
        let frame = control(front, opcode);
        let len = u32::try_from(front.len() + on_wire).expect("short");
        let found = decode(&frame[..front.len() + captured], len, link, Layer::Outer).body;
        assert_eq!(found, Frame::NotRoce(why), "{link:?} {front:02x?} {captured} of {on_wire}");
    }
    let whole = control(&plain, 0x0101);
    assert!(matches!(body(&whole), Frame::Pfc(pfc) if pfc.enabled == 8));
}

#[test]
fn every_kind_of_other_traffic_has_its_own_counter() {
    let mut seen = [false; NotRoce::COUNT];
    for why in [
        NotRoce::TooShort,
        NotRoce::Llc,
        NotRoce::Arp,
        NotRoce::Lldp,
        NotRoce::Mpls,
        NotRoce::MacControl,
        NotRoce::MacControlCut,
        NotRoce::PfcElsewhere,
        NotRoce::PfcTagged,
        NotRoce::PfcTooShort,
        NotRoce::PfcNoDestination,
        NotRoce::OtherEtherType(1),
        NotRoce::TooManyTags,
        NotRoce::ReservedVlan,
        NotRoce::BadIpHeader,
        NotRoce::TooManyExtensions,
        NotRoce::Tcp,
        NotRoce::Icmp,
        NotRoce::OtherIpProtocol(1),
        NotRoce::BadUdpHeader,
        NotRoce::OtherUdpPort(1),
        NotRoce::OutsideLayer,
        NotRoce::OtherEncapsulated,
        NotRoce::BadMirrored,
        NotRoce::UnreadableEncapsulation,
    ] {
        assert!(!seen[why.index()]);
        seen[why.index()] = true;
    }
    assert_eq!(seen, [true; NotRoce::COUNT]);
}

mod tunnels;
