//! Carrier formats as real devices wrote them.

use crate::support::{Owned, captures, every_capture, packets, read};
use std::collections::BTreeSet;
use wire::frame::{Decoded, Fault, Frame, Layer, MirrorKind, NotRoce, carries};

fn records(name: &str) -> Vec<Owned> {
    packets(&read(&captures("tunnels").join(name)))
}

fn decoded(name: &str, layer: Layer) -> Vec<Decoded> {
    records(name).iter().map(|record| record.decode(layer)).collect()
}

#[test]
fn every_type_of_erspan_is_told_apart_and_shows_the_frame_inside() {
    for (name, kind, sequenced) in [
        ("tcpdump__erspan-type-i-1.pcap", MirrorKind::ErspanI, false),
        ("zeek__erspanII.pcap", MirrorKind::ErspanII, true),
        ("zeek__erspanIII.pcap", MirrorKind::ErspanIII, true),
        ("zeek__gre-erspan3-dot1q.pcap", MirrorKind::ErspanIII, false),
        ("tcpdump__erspan-type-iii-ft-0.pcap", MirrorKind::ErspanIII, false),
    ] {
        let all = decoded(name, Layer::Erspan);
        assert!(!all.is_empty());
        for decoded in all {
            let mirror = decoded.mirror.expect("a mirror");
            assert_eq!(mirror.kind, kind, "{name}");
            assert_eq!(mirror.sequence.is_some(), sequenced, "{name}");
            // All of these hold pings, and a header of the wrong length would hide it.
            assert_eq!(decoded.body, Frame::NotRoce(NotRoce::Icmp), "{name}");
        }
    }
}

#[test]
fn a_mirror_is_told_from_the_traffic_beside_it() {
    let bodies = |name: &str| -> BTreeSet<NotRoce> {
        decoded(name, Layer::Erspan)
            .iter()
            .map(|decoded| match decoded.body {
                Frame::NotRoce(why) => {
                    assert_eq!(decoded.mirror.is_none(), why == NotRoce::OutsideLayer);
                    why
                }
                other => panic!("{other:?} in {name}"),
            })
            .collect()
    };
    let ospf = NotRoce::OtherIpProtocol(89);
    let one = bodies("tcpdump__erspan-type-i-4.pcap");
    assert!(one.contains(&NotRoce::OutsideLayer) && one.contains(&NotRoce::Icmp));
    assert!(one.contains(&ospf));
    let two = bodies("tcpdump__erspan-type-ii-3.pcap");
    assert!(two.contains(&NotRoce::Llc), "spanning tree: {two:?}");
    let seven = bodies("tcpdump__erspan-type-iii-ft-7.pcap");
    assert!(seven.contains(&NotRoce::OtherEncapsulated), "{seven:?}");
}

#[test]
fn sequence_numbers_and_sessions_of_a_mirror_are_those_that_it_wrote() {
    for (name, first, session, vlan) in [
        ("tcpdump__erspan-type-ii-3.pcap", 106_954, 101, 1),
        ("tcpdump__erspan-type-iii-ft-7.pcap", 47_838, 101, 1),
        ("zeek__erspanII.pcap", 1796, 100, 23),
        ("zeek__erspanIII.pcap", 62_123_356, 0, 20),
    ] {
        let mirrors: Vec<_> =
            decoded(name, Layer::Erspan).iter().filter_map(|decoded| decoded.mirror).collect();
        assert_eq!(mirrors[0].sequence, Some(first), "{name}");
        assert_eq!((mirrors[0].session, mirrors[0].vlan), (session, vlan));
        for pair in mirrors.windows(2) {
            assert_eq!(pair[0].sequence.map(|number| number + 1), pair[1].sequence, "{name}");
        }
    }
}

#[test]
fn an_absurd_snap_length_and_a_cut_frame_are_no_error() {
    let records = records("tcpdump__erspan-type-iii-pb-1.pcap");
    assert_eq!((records.len(), records[0].data.len()), (1, 79));
    assert_eq!(records[0].original_len, 188_109);
    let decoded = records[0].decode(Layer::Erspan);
    assert!(decoded.mirror.is_some(), "{decoded:?}");
    assert!(matches!(decoded.body, Frame::Fault(Fault::Truncated { .. }) | Frame::NotRoce(_)));
}

#[test]
fn vxlan_shows_the_frame_inside() {
    let inside: BTreeSet<_> = decoded("tcpdump__vxlan.pcap", Layer::Vxlan)
        .iter()
        .map(|decoded| match decoded.body {
            Frame::NotRoce(why) => {
                let mirror = decoded.mirror.expect("VXLAN");
                (why, mirror.session)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        inside.iter().map(|(why, _)| *why).collect::<Vec<_>>(),
        [NotRoce::Arp, NotRoce::Icmp]
    );
    assert_eq!(inside.iter().map(|(_, vni)| *vni).collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn stacked_tags_are_looked_through() {
    for (name, why) in
        [("tcpdump__802.1ad_QinQ.pcap", NotRoce::Arp), ("zeek__vlan-qinqinq.pcap", NotRoce::Tcp)]
    {
        for decoded in decoded(name, Layer::Outer) {
            assert_eq!(decoded.body, Frame::NotRoce(why), "{name}");
        }
    }
    let labels = decoded("zeek__mpls-in-vlan.pcap", Layer::Outer);
    assert_eq!(
        labels.iter().map(|decoded| decoded.body).collect::<Vec<_>>(),
        [
            Frame::NotRoce(NotRoce::Tcp),
            Frame::NotRoce(NotRoce::Mpls),
            Frame::NotRoce(NotRoce::Mpls),
        ]
    );
}

#[test]
fn fragments_are_told_from_whole_packets() {
    let found = decoded("zeek__fragmented-1.pcap", Layer::Outer);
    let bodies: Vec<_> = found.iter().map(|decoded| decoded.body).collect();
    let fragments = bodies
        .iter()
        .filter(|body| matches!(body, Frame::Fault(Fault::Fragment { roce: false, .. })))
        .count();
    assert!(fragments > 0, "{bodies:?}");
    // An atomic fragment is no fragment: the TCP in it is seen.
    for decoded in decoded("zeek__ipv6-http-atomic-frag.pcap", Layer::Outer) {
        assert!(
            matches!(decoded.body, Frame::NotRoce(NotRoce::Tcp | NotRoce::Icmp)),
            "{decoded:?}"
        );
    }
}

#[test]
fn no_carrier_of_other_traffic_is_said_to_carry_roce() {
    for path in every_capture(&["tunnels"]) {
        for record in packets(&read(&path)) {
            let link = record.link.expect("a link that we know");
            let carried = carries(&record.data, record.original_len, link);
            assert_eq!(carried, None, "{}", path.display());
        }
    }
}
