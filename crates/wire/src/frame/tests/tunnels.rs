//! Frames inside encapsulations.

use super::*;

/// A tagged RoCEv2 frame, as a mirror copies it.
fn mirrored() -> Vec<u8> {
    ethernet(&[(0x8100, 100)], 0x0800, &ipv4(17, &udp(ROCE_PORT, &transport())))
}

fn carrier(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = ipv4(protocol, payload);
    ip[12..20].copy_from_slice(&[172, 16, 0, 1, 172, 16, 0, 2]);
    ethernet(&[(0x8100, 5)], 0x0800, &ip)
}

fn gre(header: &[u8], payload: &[u8]) -> Vec<u8> {
    carrier(47, &[header, payload].concat())
}

fn erspan_i(payload: &[u8]) -> Vec<u8> {
    gre(&[0, 0, 0x88, 0xbe], payload)
}

/// Session 513, VLAN 100, sequence 7; `flags` is the third octet of the header but for the
/// session.
fn erspan_ii(flags: u8, payload: &[u8]) -> Vec<u8> {
    let header = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 7];
    let erspan = [0x10, 100, flags | 0x02, 0x01, 0, 0, 0, 9];
    gre(&[&header[..], &erspan].concat(), payload)
}

fn erspan_iii(flags: u8, kind: u8, sub: bool, payload: &[u8]) -> Vec<u8> {
    let header = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 7];
    let mut erspan = vec![0x20, 100, flags | 0x02, 0x01, 1, 2, 3, 4, 0, 0];
    erspan.extend([kind << 2, u8::from(sub)]);
    if sub {
        erspan.extend([0xee; 8]);
    }
    gre(&[&header[..], &erspan].concat(), payload)
}

fn at(frame: &[u8], layer: Layer) -> Decoded {
    decode(frame, original(frame), LinkType::Ethernet, layer)
}

#[test]
fn the_same_frame_in_every_type_of_erspan_is_the_same_packet() {
    let inner = mirrored();
    let mut packets = Vec::new();
    for (frame, kind, session, sequence, vlan) in [
        (erspan_i(&inner), MirrorKind::ErspanI, 0, None, 0),
        (erspan_ii(0, &inner), MirrorKind::ErspanII, 513, Some(7), 100),
        (erspan_iii(0, 0, false, &inner), MirrorKind::ErspanIII, 513, Some(7), 100),
        (erspan_iii(0, 0, true, &inner), MirrorKind::ErspanIII, 513, Some(7), 100),
        (erspan_iii(0, 2, false, &inner[18..]), MirrorKind::ErspanIII, 513, Some(7), 100),
    ] {
        let decoded = at(&frame, Layer::Erspan);
        let mirror = decoded.mirror.expect("a mirror");
        assert_eq!((mirror.kind, mirror.session), (kind, session));
        assert_eq!((mirror.sequence, mirror.vlan), (sequence, vlan));
        assert_eq!(mirror.addresses.source[..4], [172, 16, 0, 1]);
        let packet = roce(decoded.body);
        assert_eq!(packet.bth_offset, original(&frame) - 36);
        packets.push(Packet { ip_offset: 0, bth_offset: 0, ..packet });
        // Outside, it is GRE and nothing else.
        assert_eq!(at(&frame, Layer::Outer).body, Frame::NotRoce(NotRoce::OtherIpProtocol(47)));
        let elsewhere = Frame::NotRoce(NotRoce::OutsideLayer);
        for layer in [Layer::Gre, Layer::Vxlan, Layer::Geneve] {
            assert_eq!(at(&frame, layer), Decoded { mirror: None, body: elsewhere });
        }
    }
    assert_eq!(packets[0].namespace.outer_vlan, 100, "the mirrored frame's own tag");
    assert_eq!(packets[0], packets[1]);
    assert_eq!(packets[0], packets[2]);
    assert_eq!(packets[0], packets[3]);
    // Only the packet was mirrored, so its tag is not there.
    let namespace = Namespace::default();
    assert_eq!(Packet { namespace, ..packets[0] }, packets[4]);
}

#[test]
fn the_sequence_number_of_a_mirror_is_told_whatever_it_carries() {
    let arp = ethernet(&[], 0x0806, &[0; 46]);
    let decoded = at(&erspan_ii(0, &arp), Layer::Erspan);
    assert_eq!(decoded.body, Frame::NotRoce(NotRoce::Arp));
    assert_eq!(decoded.mirror.and_then(|mirror| mirror.sequence), Some(7));
    // A frame type that is not taken apart.
    let decoded = at(&erspan_iii(0, 7, false, &arp), Layer::Erspan);
    assert_eq!(decoded.body, Frame::NotRoce(NotRoce::OtherEncapsulated));
    assert_eq!(decoded.mirror.and_then(|mirror| mirror.sequence), Some(7));
    // A frame that the capture cut behind the header.
    let frame = erspan_ii(0, &mirrored());
    let captured = &frame[..18 + 20 + 8 + 8 + 10];
    let decoded = decode(captured, original(&frame), LinkType::Ethernet, Layer::Erspan);
    assert!(matches!(decoded.body, Frame::Fault(Fault::Truncated { .. })));
    assert_eq!(decoded.mirror.and_then(|mirror| mirror.sequence), Some(7));
}

#[test]
fn a_frame_that_the_mirror_cut_is_not_called_a_lie() {
    let inner = mirrored();
    for (flags, lie) in [(0x04, None), (0x00, Some(Lie::IpBeyondFrame))] {
        for frame in [erspan_ii(flags, &inner[..60]), erspan_iii(flags, 0, false, &inner[..60])] {
            let packet = roce(at(&frame, Layer::Erspan).body);
            assert_eq!(packet.lie, lie);
            assert_eq!((packet.transport_len, packet.captured_len), (36, 14));
        }
    }
    let frame = erspan_ii(0x04, &inner[..50]);
    assert!(matches!(
        at(&frame, Layer::Erspan).body,
        Frame::Fault(Fault::Truncated { addresses: Some(_), port_seen: true })
    ));
}

#[test]
fn a_frame_that_the_mirror_calls_bad_is_not_a_packet() {
    for (bso, bad) in [(0x00, false), (0x08, false), (0x10, false), (0x18, true)] {
        let body = at(&erspan_iii(bso, 0, false, &mirrored()), Layer::Erspan).body;
        assert_eq!(body == Frame::NotRoce(NotRoce::BadMirrored), bad);
    }
}

#[test]
fn gre_with_every_combination_of_its_optional_fields_is_read() {
    let ip = ipv4(17, &udp(ROCE_PORT, &transport()));
    for flags in 0..8u8 {
        let (checksum, key, sequence) = (flags & 4 != 0, flags & 2 != 0, flags & 1 != 0);
        let octet = u8::from(checksum) << 7 | u8::from(key) << 5 | u8::from(sequence) << 4;
        let mut header = vec![octet, 0, 0x08, 0x00];
        if checksum {
            header.extend([0xcc, 0xcc, 0, 0]);
        }
        if key {
            header.extend([0, 2, 3, 4]);
        }
        if sequence {
            header.extend([0, 0, 0, 5]);
        }
        let decoded = at(&gre(&header, &ip), Layer::Gre);
        let mirror = decoded.mirror.expect("GRE");
        assert_eq!(mirror.kind, MirrorKind::Gre);
        assert_eq!(mirror.session, if key { 0x0002_0304 } else { 0 });
        assert_eq!(mirror.sequence, sequence.then_some(5));
        let segment = if key { 0x8102_0304 } else { 0 };
        assert_eq!(roce(decoded.body).namespace, Namespace { segment, ..Namespace::default() });
    }
    for octet in [0x40, 0x44] {
        let decoded = at(&gre(&[octet, 0, 0x08, 0], &ip), Layer::Gre);
        assert_eq!(decoded.body, Frame::NotRoce(NotRoce::OutsideLayer));
    }
    let decoded = at(&gre(&[0, 1, 0x08, 0], &ip), Layer::Gre);
    assert_eq!(decoded.body, Frame::NotRoce(NotRoce::OutsideLayer), "version 1");
}

// SEQ-4.1
#[test]
fn no_two_gre_keys_are_taken_for_one() {
    let ip = ipv4(17, &udp(ROCE_PORT, &transport()));
    let with_key = |protocol: [u8; 2], key: [u8; 4], inner: &[u8]| {
        let header = [&[0x20, 0][..], &protocol, &key].concat();
        at(&gre(&header, inner), Layer::Gre).body
    };
    for (key, segment) in [([0, 0, 0, 7], 0x8100_0007), ([0, 0, 0, 8], 0x8100_0008)] {
        assert_eq!(roce(with_key([0x65, 0x58], key, &mirrored())).namespace.segment, segment);
        assert_eq!(roce(with_key([0x08, 0x00], key, &ip)).namespace.segment, segment);
    }
    let largest = with_key([0x08, 0x00], [0, 0xff, 0xff, 0xff], &ip);
    assert_eq!(roce(largest).namespace.segment, 0x81ff_ffff);
    let beyond = with_key([0x08, 0x00], [1, 0, 0, 0], &ip);
    assert_eq!(beyond, Frame::NotRoce(NotRoce::OtherEncapsulated));
}

#[test]
fn nvgre_gives_its_segment() {
    let header = [0x20, 0, 0x65, 0x58, 0x00, 0x12, 0x34, 0xff];
    let packet = roce(at(&gre(&header, &mirrored()), Layer::Gre).body);
    assert_eq!(packet.namespace.segment, 0x0200_1234);
    assert_eq!(packet.namespace.outer_vlan, 100);
    let packet = roce(at(&gre(&[0, 0, 0x65, 0x58], &mirrored()), Layer::Gre).body);
    assert_eq!(packet.namespace.segment, 0);
}

#[test]
fn vxlan_gives_its_segment() {
    let header = [0x08, 0, 0, 0, 0xab, 0xcd, 0xef, 0xff];
    let frame = carrier(17, &udp(VXLAN_PORT, &[&header[..], &mirrored()].concat()));
    let decoded = at(&frame, Layer::Vxlan);
    let mirror = decoded.mirror.expect("VXLAN");
    assert_eq!((mirror.kind, mirror.session), (MirrorKind::Vxlan, 0xab_cdef));
    assert_eq!(roce(decoded.body).namespace.segment, 0x01ab_cdef);
    let none = [0x00, 0, 0, 0, 0xab, 0xcd, 0xef, 0];
    let frame = carrier(17, &udp(VXLAN_PORT, &[&none[..], &mirrored()].concat()));
    assert_eq!(at(&frame, Layer::Vxlan).body, Frame::NotRoce(NotRoce::OtherEncapsulated));
    let frame = carrier(17, &udp(4790, &[&header[..], &mirrored()].concat()));
    assert_eq!(at(&frame, Layer::Vxlan).body, Frame::NotRoce(NotRoce::OutsideLayer));
}

#[test]
fn geneve_gives_its_segment_and_its_options_are_stepped_over() {
    let inner = mirrored();
    for (protocol, payload) in [(0x6558u16, &inner[..]), (0x0800, &inner[18..])] {
        for words in [0u8, 1, 63] {
            let mut header = vec![words, 0];
            header.extend(protocol.to_be_bytes());
            header.extend([0, 0, 9, 0]);
            header.resize(8 + usize::from(words) * 4, 0x77);
            let frame = carrier(17, &udp(GENEVE_PORT, &[&header, payload].concat()));
            let decoded = at(&frame, Layer::Geneve);
            let packet = roce(decoded.body);
            assert_eq!(packet.namespace.segment, 0x8000_0009);
            assert_eq!(packet.bth_offset, original(&frame) - 36);
        }
    }
    for (first, second) in [(0x40, 0), (0, 0x80)] {
        let header = [first, second, 0x65, 0x58, 0, 0, 9, 0];
        let frame = carrier(17, &udp(GENEVE_PORT, &[&header[..], &inner].concat()));
        let body = at(&frame, Layer::Geneve).body;
        assert_eq!(body, Frame::NotRoce(NotRoce::OtherEncapsulated));
    }
}

#[test]
fn a_carrier_in_fragments_hides_what_it_carries() {
    for (field, first) in [(0x2000u16, true), (0x0001, false)] {
        let mut frame = erspan_ii(0, &mirrored());
        frame[24..26].copy_from_slice(&field.to_be_bytes());
        let fault = Frame::Fault(Fault::CarrierFragment { first });
        assert_eq!(at(&frame, Layer::Erspan).body, fault);
        let body = at(&frame, Layer::Vxlan).body;
        assert_eq!(body, Frame::NotRoce(NotRoce::OutsideLayer));
    }
    // Of UDP, the first fragment shows the port.
    let mut frame = carrier(17, &udp(53, &mirrored()));
    frame[24] = 0x20;
    let body = at(&frame, Layer::Vxlan).body;
    assert_eq!(body, Frame::NotRoce(NotRoce::OutsideLayer));
}

#[test]
fn addresses_of_the_carrier_are_never_given_as_those_of_the_layer() {
    let frame = erspan_ii(0, &mirrored());
    let ends = 18 + 20 + 8 + 8 + 18 + 20;
    for cut in 0..ends {
        let decoded = decode(&frame[..cut], original(&frame), LinkType::Ethernet, Layer::Erspan);
        match decoded.body {
            Frame::Fault(fault) => assert_eq!(fault.addresses(), None, "{cut}"),
            other => panic!("{other:?} at {cut}"),
        }
    }
}

#[test]
fn a_user_can_be_told_at_which_layer_roce_stands() {
    let inner = mirrored();
    let vxlan = [0x08, 0, 0, 0, 0, 0, 1, 0];
    let in_vxlan = carrier(17, &udp(VXLAN_PORT, &[&vxlan[..], &inner].concat()));
    let nested = erspan_ii(0, &in_vxlan);
    let kinds = |around: &[MirrorKind]| {
        let mut all = [None; 3];
        for (slot, kind) in all.iter_mut().zip(around) {
            *slot = Some(*kind);
        }
        Some(Carried { around: all })
    };
    for (frame, around, layer) in [
        (plain(), kinds(&[]), Some(Layer::Outer)),
        (erspan_i(&inner), kinds(&[MirrorKind::ErspanI]), Some(Layer::Erspan)),
        (erspan_iii(0, 0, true, &inner), kinds(&[MirrorKind::ErspanIII]), Some(Layer::Erspan)),
        (in_vxlan, kinds(&[MirrorKind::Vxlan]), Some(Layer::Vxlan)),
        (nested, kinds(&[MirrorKind::ErspanII, MirrorKind::Vxlan]), None),
    ] {
        let carried = carries(&frame, original(&frame), LinkType::Ethernet);
        assert_eq!(carried, around);
        assert_eq!(carried.and_then(|carried| carried.layer()), layer);
    }
    let arp = ethernet(&[], 0x0806, &[0; 46]);
    assert_eq!(carries(&erspan_ii(0, &arp), 100, LinkType::Ethernet), None);
    for layer in Layer::ALL {
        assert_eq!(Layer::from_name(layer.name()), Some(layer));
    }
}
