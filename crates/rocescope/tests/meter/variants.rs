//! The same traffic in other files, byte orders, units, links, tags and tunnels: the same epochs.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::frames::{
    ERSPANS, Tunnel, is_ipv6, loopback, raw_ip, sll, sll2, tagged, with_ipv4_options,
    with_ipv6_extensions,
};
use super::support::{
    Epoch, ROCESCOPE, Scratch, epochs, good, known, library_epochs, number, of_facts, program, run,
};
use super::writer::{ETHERNET, NANOSECONDS, Order, Packet, PcapNg, Trace, units};

/// A capture with a result that is known.
struct Base {
    name: String,
    trace: Trace,
    window: u32,
    epochs: Vec<Epoch>,
}

/// Every made capture of the classic format with frames over IP.
fn bases() -> Vec<Base> {
    let bases: Vec<_> = known("made")
        .into_iter()
        .filter(|capture| capture.name.ends_with(".pcap") && capture.name != "pfc.pcap")
        .map(|capture| Base {
            trace: Trace::read(&capture.path),
            window: u32::try_from(number(&capture.facts, "window")).expect("a window"),
            epochs: of_facts(&capture.facts["epochs"]),
            name: capture.name,
        })
        .collect();
    assert_eq!(bases.len(), 30);
    bases
}

/// The epochs of one file.
#[track_caller]
fn of_file(scratch: &Scratch, octets: &[u8], window: u32) -> Vec<Epoch> {
    library_epochs(run(&[scratch.file("variant", octets)], window))
}

/// The epochs of every base are the same when its capture is `write`n.
#[track_caller]
fn all_the_same(what: &str, write: impl Fn(&Trace) -> Vec<u8>) {
    let scratch = Scratch::new();
    for base in bases() {
        let found = of_file(&scratch, &write(&base.trace), base.window);
        assert_eq!(found, base.epochs, "{} {what}", base.name);
    }
}

/// All packets of a trace in one section with one interface.
fn pcapng(trace: &Trace, order: Order, per_second: u64, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut writer = PcapNg::new(order);
    writer.interface(trace.link, options);
    for packet in &trace.packets {
        writer.enhanced(0, units(packet.time_ns, per_second), packet, &[]);
    }
    writer.octets
}

#[test]
fn byte_order_and_unit_of_a_pcap_make_no_difference() {
    for order in Order::BOTH {
        for nanoseconds in [true, false] {
            all_the_same("pcap", |trace| trace.pcap(order, nanoseconds));
        }
    }
}

#[test]
fn pcapng_in_either_byte_order_and_any_decimal_unit_makes_no_difference() {
    for order in Order::BOTH {
        // Milliseconds are all that a report says.
        for (power, per_second) in [(3, 1_000), (6, 1_000_000), (9, 1_000_000_000)] {
            all_the_same("pcapng", |trace| pcapng(trace, order, per_second, &[(9, &[power])]));
        }
        // Microseconds are what holds where nothing is said.
        all_the_same("pcapng", |trace| pcapng(trace, order, 1_000_000, &[]));
    }
}

#[test]
fn a_binary_unit_gives_what_the_cut_times_give() {
    let scratch = Scratch::new();
    for power in [10, 30] {
        let per_second = 1 << power;
        for base in bases() {
            let cut = base.trace.cut(per_second);
            let expected = of_file(&scratch, &cut.plain(), base.window);
            assert_eq!(expected.len(), base.epochs.len());
            let octets = pcapng(&base.trace, Order::Little, per_second, &[(9, &[0x80 | power])]);
            let found = of_file(&scratch, &octets, base.window);
            assert_eq!(found, expected, "{} in 2^-{power} s", base.name);
        }
    }
}

#[test]
fn an_offset_of_seconds_is_added_to_every_time() {
    for order in Order::BOTH {
        for offset in [1_700_000_000_i64, 1, -1, -1_000_000_000] {
            all_the_same("with if_tsoffset", |trace| {
                let mut moved = trace.clone();
                for packet in &mut moved.packets {
                    let time = i128::from(packet.time_ns) - i128::from(offset) * 1_000_000_000;
                    packet.time_ns = u64::try_from(time).expect("a time");
                }
                let octets = order.u64(offset.cast_unsigned());
                pcapng(&moved, order, 1_000_000_000, &[NANOSECONDS, (14, &octets)])
            });
        }
    }
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(octets).expect("written");
    encoder.finish().expect("finished")
}

fn zstd(octets: &[u8]) -> Vec<u8> {
    zstd::encode_all(octets, 1).expect("written")
}

#[test]
fn compression_makes_no_difference() {
    all_the_same("in gzip", |trace| gzip(&trace.plain()));
    all_the_same("in zstd", |trace| zstd(&trace.plain()));
    all_the_same("in gzip", |trace| gzip(&pcapng(trace, Order::Big, 1_000_000, &[])));
    all_the_same("in zstd", |trace| zstd(&pcapng(trace, Order::Big, 1_000_000, &[])));
}

#[test]
fn several_gzip_members_or_zstd_frames_are_one_capture() {
    for at in [1, 24, 30, 100] {
        all_the_same("in two members", |trace| {
            let octets = trace.plain();
            let (a, b) = octets.split_at(at.min(octets.len()));
            [gzip(a), gzip(b)].concat()
        });
        all_the_same("in two frames", |trace| {
            let octets = trace.plain();
            let (a, b) = octets.split_at(at.min(octets.len()));
            [zstd(a), zstd(b)].concat()
        });
    }
}

#[test]
fn standard_input_gives_what_the_file_gives() {
    for base in bases() {
        let window = base.window.to_string();
        let arguments = ["meter", "--attest-all", "--json", "--window", &window, "-"];
        for octets in [base.trace.plain(), gzip(&base.trace.plain())] {
            let ended = program(ROCESCOPE, &arguments, octets);
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            assert_eq!(epochs(&ended.json()), base.epochs, "{}", base.name);
        }
    }
}

#[test]
fn several_files_in_their_order_are_one_capture() {
    let scratch = Scratch::new();
    for base in bases() {
        for parts in [2, 3, 7] {
            let size = base.trace.packets.len().div_ceil(parts).max(1);
            let files: Vec<_> = (0..)
                .zip(base.trace.packets.chunks(size))
                .map(|(n, packets)| {
                    let part = Trace { link: ETHERNET, packets: packets.to_vec() };
                    let octets = match n % 3 {
                        0 => part.plain(),
                        1 => gzip(&pcapng(&part, Order::Big, 1_000_000_000, &[NANOSECONDS])),
                        _ => zstd(&part.pcap(Order::Big, false)),
                    };
                    scratch.file(&format!("part-{n}"), &octets)
                })
                .collect();
            let ended = good(&files, &["--window", &base.window.to_string()]);
            assert_eq!(epochs(&ended.json()), base.epochs, "{} in {parts} files", base.name);
            // The times of one go back by 31 ms where it is split.
            let told = ended.err.contains("before the one in front of it ended");
            assert!(!ended.err.contains("warning") || told, "{}", ended.err);
            assert!(!told || base.name == "two-pkeys.pcap", "{}", ended.err);
        }
    }
}

#[test]
fn packets_over_several_interfaces_and_sections_are_one_capture() {
    all_the_same("over two interfaces", |trace| {
        let mut writer = PcapNg::new(Order::Little);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        writer.interface(ETHERNET, &[]);
        for (n, packet) in trace.packets.iter().enumerate() {
            if n % 2 == 0 {
                writer.enhanced(0, packet.time_ns, packet, &[]);
            } else {
                writer.enhanced(1, packet.time_ns / 1000, packet, &[]);
            }
        }
        writer.octets
    });
    all_the_same("over two sections", |trace| {
        let mut writer = PcapNg::new(Order::Little);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        let (a, b) = trace.packets.split_at(trace.packets.len() / 2);
        for packet in a {
            writer.enhanced(0, packet.time_ns, packet, &[]);
        }
        writer.section(Order::Big);
        writer.interface(ETHERNET, &[(9, &[6])]);
        for packet in b {
            writer.enhanced(0, packet.time_ns / 1000, packet, &[]);
        }
        writer.octets
    });
}

#[test]
fn blocks_that_are_of_no_concern_change_nothing() {
    all_the_same("among other blocks", |trace| {
        let mut writer = PcapNg::new(Order::Little);
        // Names, secrets, custom blocks, and one that nobody has thought of yet.
        let others = [4, 10, 0x0bad, 0x4000_0bad, 0x7fff_fff0];
        writer.interface(ETHERNET, &[(2, b"eth0"), NANOSECONDS, (12, b"Linux")]);
        for packet in &trace.packets {
            for kind in others {
                writer.block(kind, b"of no concern");
            }
            writer.enhanced(0, packet.time_ns, packet, &[(1, b"a comment"), (2, &[0; 4])]);
        }
        writer.octets
    });
}

#[test]
fn obsolete_packet_blocks_give_what_enhanced_ones_give() {
    // No drops, and none that are known.
    for drops in [0, 0xffff] {
        all_the_same("in obsolete blocks", |trace| {
            let mut writer = PcapNg::new(Order::Big);
            writer.interface(ETHERNET, &[NANOSECONDS]);
            for packet in &trace.packets {
                writer.obsolete(0, drops, packet.time_ns, packet);
            }
            writer.octets
        });
    }
}

#[test]
fn simple_packet_blocks_give_the_same_counts_without_times_of_their_own() {
    let scratch = Scratch::new();
    for base in bases() {
        // A simple block cannot say that it was cut.
        let whole = |p: &Packet| usize::try_from(p.original_len).is_ok_and(|l| l == p.data.len());
        if !base.trace.packets.iter().all(whole) {
            continue;
        }
        let mut writer = PcapNg::new(Order::Little);
        writer.interface(ETHERNET, &[NANOSECONDS]);
        let first = &base.trace.packets[0];
        writer.enhanced(0, first.time_ns, first, &[]);
        for packet in &base.trace.packets[1..] {
            writer.simple(packet);
        }
        let mut found = of_file(&scratch, &writer.octets, base.window);
        let time_ms = first.time_ns / 1_000_000;
        assert!(found.iter().all(|epoch| (epoch.start, epoch.end) == (time_ms, time_ms)));
        let mut expected = base.epochs;
        for epoch in found.iter_mut().chain(&mut expected) {
            (epoch.start, epoch.end) = (0, 0);
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}", base.name);
    }
}

/// The octets that the capture has cut off each packet.
fn cut_of(trace: &Trace) -> impl Iterator<Item = usize> {
    trace.packets.iter().map(|packet| {
        usize::try_from(packet.original_len).expect("short").saturating_sub(packet.data.len())
    })
}

fn in_tunnel(trace: &Trace, tunnel: Tunnel) -> Trace {
    let mut cuts = cut_of(trace);
    let mut sequence = u32::MAX - 1;
    trace.map(ETHERNET, |frame| {
        sequence = sequence.wrapping_add(1);
        tunnel.wrap(frame, cuts.next().expect("one each"), sequence)
    })
}

// SEQ-4.3
#[test]
fn the_observed_layer_of_a_tunnel_or_mirror_gives_what_it_carries() {
    let scratch = Scratch::new();
    for base in bases() {
        for tunnel in Tunnel::ALL {
            let path = scratch.file("tunnel", &in_tunnel(&base.trace, tunnel).plain());
            let options = ["--window", &base.window.to_string(), "--layer", tunnel.layer()];
            let reports = good(&[&path], &options).json();
            assert_eq!(epochs(&reports), base.epochs, "{} in {tunnel:?}", base.name);
            for report in &reports {
                if let Some(segment) = tunnel.segment() {
                    assert_eq!(number(report, "layer2SegmentId"), segment, "{tunnel:?}");
                }
            }
        }
    }
}

// SEQ-4.3: which layer is observed is never guessed.
#[test]
fn a_tunnel_shows_nothing_at_any_other_layer() {
    let scratch = Scratch::new();
    let trace = &bases()[0].trace;
    for tunnel in Tunnel::ALL {
        let path = scratch.file("tunnel", &in_tunnel(trace, tunnel).plain());
        for layer in ["outer", "erspan", "gre", "vxlan", "geneve"] {
            if layer != tunnel.layer() {
                let ended = good(&[&path], &["--layer", layer]);
                assert_eq!(ended.out, "", "{tunnel:?} at {layer}");
            }
        }
    }
}

#[test]
fn every_link_type_that_carries_ip_gives_the_same() {
    all_the_same("in Linux cooked capture", |trace| trace.map(113, sll).plain());
    all_the_same("in Linux cooked capture 2", |trace| trace.map(276, sll2).plain());
    for link in [12, 14, 101] {
        all_the_same("as raw IP", |trace| trace.map(link, raw_ip).plain());
    }
    for link in [0, 108] {
        for big in [false, true] {
            all_the_same("in loopback", |trace| {
                trace.map(link, |frame| loopback(frame, big)).plain()
            });
        }
    }
    let scratch = Scratch::new();
    for base in bases() {
        let v6 = base.trace.packets.iter().all(|packet| is_ipv6(&packet.data));
        let link = if v6 { 229 } else { 228 };
        let octets = base.trace.map(link, raw_ip).plain();
        assert_eq!(of_file(&scratch, &octets, base.window), base.epochs, "{}", base.name);
    }
}

#[test]
fn one_two_and_three_tags_give_the_same_counts() {
    for tags in [1, 2, 3] {
        for tpid in [0x8100, 0x88a8] {
            all_the_same("with tags", |trace| {
                let tag = |frame: &[u8]| {
                    (0..tags).fold(frame.to_vec(), |frame, n| tagged(&frame, tpid, 100 + n))
                };
                trace.map(ETHERNET, tag).plain()
            });
        }
    }
}

// SEQ-4.1: where two tenants differ in nothing but a tag, they are two streams.
#[test]
fn streams_that_differ_only_in_their_tags_are_two() {
    let scratch = Scratch::new();
    let base = bases().into_iter().find(|base| base.name == "in-order.pcap").expect("a base");
    let mut both = base.trace.clone();
    both.packets.clear();
    for packet in &base.trace.packets {
        for vid in [7, 8] {
            let data = tagged(&packet.data, 0x8100, vid);
            both.packets.push(Packet { original_len: packet.original_len + 4, data, ..*packet });
        }
    }
    let reports =
        good(&[scratch.file("both", &both.plain())], &["--window", &base.window.to_string()])
            .json();
    let mut vids: Vec<_> = reports.iter().map(|report| number(report, "dot1qVlanId")).collect();
    vids.sort_unstable();
    assert_eq!(vids, [7, 8]);
    assert_eq!(epochs(&reports), [base.epochs.clone(), base.epochs].concat());
}

#[test]
fn options_and_extension_headers_in_front_of_udp_change_nothing() {
    let longer = |frame: &[u8]| {
        if is_ipv6(frame) { with_ipv6_extensions(frame) } else { with_ipv4_options(frame) }
    };
    all_the_same("with longer IP headers", |trace| trace.map(ETHERNET, longer).plain());
    let scratch = Scratch::new();
    for base in bases() {
        let trace = base.trace.map(ETHERNET, longer);
        for tunnel in ERSPANS {
            let path = scratch.file("tunnel", &in_tunnel(&trace, tunnel).plain());
            let options = ["--window", &base.window.to_string(), "--layer", "erspan"];
            let found = epochs(&good(&[&path], &options).json());
            assert_eq!(found, base.epochs, "{} in {tunnel:?}", base.name);
        }
    }
}
