//! One frame at every layer, whole and cut.

use wire::frame::{BTH_LEN, Family, Frame, Layer, LinkType, Packet, ROCE_PORT, carries, decode};
use wire::icrc::{self, IcrcVerdict};

const LINKS: [LinkType; 7] = [
    LinkType::Ethernet,
    LinkType::Ip,
    LinkType::Ipv4,
    LinkType::Ipv6,
    LinkType::Sll,
    LinkType::Sll2,
    LinkType::Null,
];

/// Decodes a frame. The first octet chooses the link type, the second says how many octets the
/// capture left out, the third where to cut it once more; the frame is the rest.
///
/// # Panics
/// Where something does not hold.
pub fn frame(data: &[u8]) {
    let Some((&[link, left_out, cut], octets)) = data.split_first_chunk::<3>() else {
        return;
    };
    let link = LINKS[usize::from(link) % LINKS.len()];
    let captured = u32::try_from(octets.len()).expect("a fuzzer's input is short");
    let original_len = captured + u32::from(left_out);
    for layer in Layer::ALL {
        one(octets, original_len, link, layer);
        cut_once_more(octets, original_len, link, layer, cut);
        let whole = decode(octets, captured, link, layer);
        assert_eq!(decode(octets, 0, link, layer), whole, "a length below the capture");
    }
    without_ethernet(octets, original_len);
    found_where_it_stands(octets, original_len, link);
}

fn one(octets: &[u8], original_len: u32, link: LinkType, layer: Layer) {
    let decoded = decode(octets, original_len, link, layer);
    assert!(layer != Layer::Outer || decoded.mirror.is_none());
    match decoded.body {
        Frame::Roce(packet) => {
            assert!(layer == Layer::Outer || decoded.mirror.is_some());
            roce(octets, &packet);
            let end = u64::from(packet.bth_offset) + u64::from(packet.transport_len);
            // Of a frame that the mirroring device cut, nobody can say how long it was.
            let unknown = decoded.mirror.is_some_and(|mirror| mirror.truncated);
            assert!(
                end <= u64::from(original_len) || packet.lie.is_some() || unknown,
                "reaches to {end} of {original_len}, and that is no lie"
            );
        }
        Frame::Pfc(pfc) => {
            for priority in 0..=255 {
                let listed = pfc.priorities().any(|of| of == priority);
                assert_eq!(pfc.counts_for(priority), listed);
            }
        }
        Frame::NotRoce(_) | Frame::Fault(_) => {}
    }
}

fn roce(octets: &[u8], packet: &Packet) {
    let at = usize::try_from(packet.bth_offset).expect("an offset in the frame");
    let bth = octets.get(at..at + BTH_LEN).expect("the BTH was captured");
    let number = |from: usize| u32::from_be_bytes([0, bth[from], bth[from + 1], bth[from + 2]]);
    assert_eq!((packet.bth.qp, packet.bth.psn), (number(5), number(9)));
    assert_eq!(packet.bth.opcode.0, bth[0]);
    assert_eq!(octets[at - 6..at - 4], ROCE_PORT.to_be_bytes(), "nothing but the port says RoCEv2");
    assert!(packet.ip_offset < packet.bth_offset);
    assert!(packet.captured_len <= packet.transport_len);
    assert!(
        usize::try_from(packet.captured_len)
            .is_ok_and(|len| BTH_LEN <= len && at + len <= octets.len())
    );
    assert!(packet.namespace.outer_vlan < 4095 && packet.namespace.inner_vlan < 4095);
    if packet.addresses.family == Family::V4 {
        assert_eq!(packet.addresses.source[4..], [0; 12]);
        assert_eq!(packet.addresses.destination[4..], [0; 12]);
    }
    if let IcrcVerdict::Good | IcrcVerdict::Bad { .. } = icrc::check(octets, packet) {
        assert_eq!(packet.captured_len, packet.transport_len, "an ICRC that was not captured");
    }
}

/// A capture that reaches less far knows less, and nothing else: RoCEv2 stays the same packet, or
/// becomes one whose BTH cannot be had, and never something that is known to be no RoCEv2.
fn cut_once_more(octets: &[u8], original_len: u32, link: LinkType, layer: Layer, cut: u8) {
    let shorter = &octets[..octets.len().min(usize::from(cut))];
    let whole = decode(octets, original_len, link, layer).body;
    let part = decode(shorter, original_len, link, layer).body;
    match (whole, part) {
        (Frame::Roce(whole), Frame::Roce(part)) => {
            let same = Packet { captured_len: part.captured_len, ..whole };
            assert_eq!(part, same, "cut at {cut}");
        }
        (Frame::Roce(_), Frame::Fault(_)) => {}
        (Frame::Roce(_), other) => panic!("RoCEv2 cut at {cut} is taken for {other:?}"),
        (other, Frame::Roce(_)) => panic!("{other:?} cut at {cut} is taken for RoCEv2"),
        _ => {}
    }
}

/// An Ethernet frame with one tag or none, which has a way of its own through the decoder, says the
/// same as the IP packet in it, the tag aside.
fn without_ethernet(octets: &[u8], original_len: u32) {
    let link = match octets.get(12..18) {
        Some([0x08, 0x00, ..] | [0x81, 0x00, _, _, 0x08, 0x00]) => LinkType::Ipv4,
        Some([0x86, 0xdd, ..] | [0x81, 0x00, _, _, 0x86, 0xdd]) => LinkType::Ipv6,
        _ => return,
    };
    let header: u8 = if octets[12] == 0x81 { 18 } else { 14 };
    let whole = decode(octets, original_len, LinkType::Ethernet, Layer::Outer).body;
    let rest = octets.get(usize::from(header)..).unwrap_or_default();
    let header = u32::from(header);
    let inside = decode(rest, original_len - header, link, Layer::Outer).body;
    match (whole, inside) {
        (Frame::Roce(whole), Frame::Roce(inside)) => {
            let namespace = whole.namespace;
            let (ip_offset, bth_offset) = (inside.ip_offset + header, inside.bth_offset + header);
            assert_eq!(whole, Packet { namespace, ip_offset, bth_offset, ..inside });
        }
        (Frame::Roce(_), other) | (other, Frame::Roce(_)) => {
            panic!("RoCEv2 with or without its Ethernet header, {other:?} the other way");
        }
        _ => {}
    }
}

fn found_where_it_stands(octets: &[u8], original_len: u32, link: LinkType) {
    let known = |layer| match decode(octets, original_len, link, layer).body {
        Frame::Roce(_) => true,
        Frame::Fault(fault) => fault.is_roce(),
        Frame::Pfc(_) | Frame::NotRoce(_) => false,
    };
    let carried = carries(octets, original_len, link);
    if let Some(layer) = carried.and_then(|carried| carried.layer()) {
        assert!(known(layer), "found at {layer:?} and not decoded there");
    }
    if known(Layer::Outer) {
        assert_eq!(carried.and_then(|carried| carried.layer()), Some(Layer::Outer));
    }
}
