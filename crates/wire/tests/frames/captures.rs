//! Every capture of Soft-RoCE and every made one, against what is written beside it.

use crate::support::{Event, captures, events, every_capture, packets, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use wire::capture::Statistics;
use wire::frame::{Fault, Frame, Layer, LinkType, NotRoce, Packet};
use wire::icrc::{IcrcVerdict, check};

fn facts(path: &Path) -> Value {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let text = read(&path.with_file_name(format!("{name}.json")));
    serde_json::from_slice::<Value>(&text).expect("JSON")["facts"].take()
}

/// What `facts` says, counted by us.
fn counted(path: &Path) -> Value {
    let mut packet_count = 0;
    let mut statistics = Vec::new();
    let mut opcodes = BTreeMap::<&str, u64>::new();
    let mut vlans = BTreeMap::<String, u64>::new();
    let (mut roce, mut good, mut bad, mut cut) = (0, 0, 0, 0);
    for event in events(&read(path)) {
        let record = match event {
            Event::Packet(record) => record,
            Event::Statistics(values) => {
                statistics.push(json!({
                    "isb_ifrecv": values.received,
                    "isb_ifdrop": values.if_drop,
                }));
                continue;
            }
            _ => continue,
        };
        packet_count += 1;
        let Frame::Roce(packet) = record.decode(Layer::Outer).body else {
            continue;
        };
        roce += 1;
        *opcodes.entry(packet.bth.opcode.name()).or_default() += 1;
        let vlan = match packet.namespace.outer_vlan {
            0 => "none".to_owned(),
            vlan => vlan.to_string(),
        };
        *vlans.entry(vlan).or_default() += 1;
        match check(&record.data, &packet) {
            IcrcVerdict::Good => good += 1,
            IcrcVerdict::Bad { .. } => bad += 1,
            IcrcVerdict::NotCaptured => cut += 1,
            other => panic!("{other:?} in {}", path.display()),
        }
    }
    json!({
        "packets": packet_count,
        "roce_packets": roce,
        "opcodes": opcodes,
        "icrc_ok": good,
        "icrc_bad": bad,
        "truncated": cut,
        "isb": statistics,
        "vlan": vlans,
    })
}

#[test]
fn every_softroce_capture_is_what_its_facts_say() {
    let mut compared = 0;
    for path in every_capture(&["softroce"]) {
        let facts = facts(&path);
        if facts.is_null() {
            let name = path.file_name().and_then(|name| name.to_str());
            assert_eq!(name, Some("n2_cnp_inserted.pcap"), "facts are missing");
            continue;
        }
        assert_eq!(counted(&path), facts, "{}", path.display());
        compared += 1;
    }
    assert_eq!(compared, 34);
}

#[test]
fn inserted_congestion_notifications_are_told_from_the_traffic_around_them() {
    let n1 = counted(&captures("softroce/n1_ecn_ce_marked.rcv.pcap"));
    let mut n2 = counted(&captures("softroce/n2_cnp_inserted.pcap"));
    let cnp = n2["opcodes"]
        .as_object_mut()
        .and_then(|opcodes| opcodes.remove("CNP"))
        .expect("notifications");
    assert!(cnp.as_u64() > Some(0)); // SEQ-3.4
    assert_eq!(n2["opcodes"], n1["opcodes"]);
}

fn roce_packets(name: &str) -> Vec<Packet> {
    packets(&read(&captures(name)))
        .iter()
        .filter_map(|record| match record.decode(Layer::Outer).body {
            Frame::Roce(packet) => Some(packet),
            _ => None,
        })
        .collect()
}

#[test]
fn one_bit_that_is_wrong_makes_the_icrc_bad_unless_a_router_may_change_it() {
    for (name, free) in [
        // TOS, TTL, checksum; UDP checksum; FECN and BECN.
        ("softroce/a1_send_pingpong.rcv.pcap", vec![15, 22, 24, 25, 40, 41, 46]),
        // Class, flow label, hop limit, the same of UDP and BTH.
        ("softroce/h1_write_ipv6.rcv.pcap", vec![15, 16, 17, 21, 60, 61, 66]),
    ] {
        let records = packets(&read(&captures(name)));
        let (record, packet) = records
            .iter()
            .find_map(|record| match record.decode(Layer::Outer).body {
                Frame::Roce(packet) => Some((record, packet)),
                _ => None,
            })
            .expect("a packet");
        assert_eq!(check(&record.data, &packet), IcrcVerdict::Good);
        let end = usize::try_from(packet.bth_offset + packet.transport_len).expect("small");
        for at in 14..end {
            let mut data = record.data.clone();
            data[at] ^= if at == 14 { 0x80 } else { 0x10 };
            let good = check(&data, &packet) == IcrcVerdict::Good;
            assert_eq!(good, free.contains(&at), "octet {at} of {name}");
        }
        let cut = Packet { captured_len: packet.transport_len - 1, ..packet };
        assert_eq!(check(&record.data, &cut), IcrcVerdict::NotCaptured);
        let short = Packet { transport_len: 15, captured_len: 15, ..packet };
        assert_eq!(check(&record.data, &short), IcrcVerdict::NoRoom);
        let options = Packet { bth_offset: packet.bth_offset + 4, ..packet };
        assert_eq!(check(&record.data, &options), IcrcVerdict::NotDefined);
    }
}

#[test]
fn the_made_pfc_frames_count_as_is_written_beside_them() {
    let text = read(&captures("made/pfc.json"));
    let expected: Value = serde_json::from_slice(&text).expect("JSON");
    let mut received = [0u64; 8];
    let mut others = Vec::new();
    for record in packets(&read(&captures("made/pfc.pcap"))) {
        match record.decode(Layer::Outer).body {
            Frame::Pfc(pfc) => {
                for priority in pfc.priorities() {
                    received[usize::from(priority)] += 1; // PFC-count.3
                }
            }
            other => others.push(other),
        }
    }
    assert_eq!(json!(received), expected["received"]);
    // PFC-count.4
    assert_eq!(
        others,
        [Frame::NotRoce(NotRoce::MacControl), Frame::NotRoce(NotRoce::OtherEtherType(0x8809)),]
    );
}

#[test]
fn made_captures_show_what_they_are_about() {
    let vlans = |name: &str| {
        let namespace = roce_packets(name)[0].namespace;
        (namespace.outer_vlan > 0, namespace.inner_vlan > 0)
    };
    assert_eq!(vlans("made/in-order.pcap"), (false, false));
    assert_eq!(vlans("made/vlan.pcap"), (true, false));
    assert_eq!(vlans("made/qinq.pcap"), (true, true));
    assert!(roce_packets("made/odd-ports.pcap").iter().any(|packet| packet.source_port == 4789));
    assert!(
        roce_packets("made/bad-transport-version.pcap")
            .iter()
            .any(|packet| packet.bth.version != 0)
    );
    assert!(roce_packets("made/short-reth.pcap").iter().any(|packet| !packet.extension_fits()));
    assert!(roce_packets("made/write-imm-empty.pcap").iter().all(Packet::extension_fits));
    assert!(roce_packets("made/snaplen-64.pcap").iter().all(|packet| {
        packet.captured_len < packet.transport_len && packet.bth.opcode.is_defined()
    }));
    assert!(packets(&read(&captures("made/other-udp.pcap"))).iter().any(|record| matches!(
        record.decode(Layer::Outer).body,
        Frame::NotRoce(NotRoce::OtherUdpPort(_))
    )));
}

#[test]
fn no_packet_of_a_real_capture_is_a_fault_or_a_lie() {
    for path in every_capture(&["softroce"]) {
        for record in packets(&read(&path)) {
            match record.decode(Layer::Outer).body {
                Frame::Roce(packet) => {
                    assert_eq!(packet.lie, None, "{}", path.display());
                    assert!(packet.extension_fits() && packet.extension_captured());
                }
                Frame::Fault(fault) => {
                    // Announcements of multicast groups and the like are all captured.
                    assert!(!matches!(fault, Fault::Truncated { .. }));
                    panic!("{fault:?} in {}", path.display());
                }
                Frame::NotRoce(_) | Frame::Pfc(_) => {}
            }
        }
    }
}

#[test]
fn times_are_the_same_in_every_format() {
    let times = |name: &str| -> Vec<_> {
        packets(&read(&captures(name)))
            .iter()
            .map(|record| record.time_ns.expect("a time") / 1_000_000)
            .collect()
    };
    for name in ["big-endian-microseconds.pcap", "little-endian-microseconds.pcap", "pcapng.pcapng"]
    {
        let text = read(&captures("made").join(Path::new(name).with_extension("json")));
        let expected: Value = serde_json::from_slice(&text).expect("JSON");
        let times = times(&format!("made/{name}"));
        assert_eq!(json!(times[0]), expected["epochs"][0]["start"], "{name}");
        let last = times.last().expect("packets");
        assert_eq!(json!(last), expected["epochs"][0]["end"], "{name}");
    }
}

#[test]
fn drops_that_a_capture_tells_of_are_seen() {
    let drops: Vec<_> = packets(&read(&captures("made/drops-in-packet-option.pcapng")))
        .iter()
        .map(|record| record.drops_before)
        .collect();
    assert_eq!(drops.iter().flatten().filter(|drops| **drops > 0).count(), 1);
    let drops: Vec<_> = events(&read(&captures("made/drops-in-statistics.pcapng")))
        .into_iter()
        .filter_map(|event| match event {
            Event::Statistics(Statistics { if_drop, os_drop, .. }) => Some((if_drop, os_drop)),
            _ => None,
        })
        .collect();
    assert!(drops.len() >= 2, "two readings make a difference: {drops:?}");
    assert_ne!(drops.first(), drops.last());
    // No interface of ours is anything but Ethernet.
    for path in every_capture(&["made", "softroce"]) {
        for event in events(&read(&path)) {
            if let Event::Interface(_, link, _) = event {
                assert_eq!(link, Ok(LinkType::Ethernet), "{}", path.display());
            }
        }
    }
}
