//! Which PFC frames of a capture `--pfc` counts as received, for which interface, and what it says
//! where there is no counter.

use std::path::PathBuf;

use super::faults::{PFC, control};
use super::frames::{ERSPANS, Roce, Tunnel, carried};
use super::support::{Ended, Scratch, good, number, rocescope};
use super::writer::{ETHERNET, NANOSECONDS, Order, Packet, PcapNg, Trace};

const START_NS: u64 = 1_790_000_000_000_000_000;
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 7];

/// A frame for priority 3.
fn frame() -> Vec<u8> {
    from(HOST)
}

fn from(source: [u8; 6]) -> Vec<u8> {
    control(source, PFC, 1 << 3, [9; 8])
}

fn len(octets: &[u8]) -> u32 {
    u32::try_from(octets.len()).expect("short")
}

/// With its frame check sequence behind it, right or wrong.
fn checked(mut frame: Vec<u8>, right: bool) -> Vec<u8> {
    let sequence = crc32(&frame) ^ u32::from(!right);
    frame.extend(sequence.to_le_bytes());
    frame
}

/// Bit by bit, as IEEE 802.3 has it.
fn crc32(octets: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for octet in octets {
        crc ^= u32::from(*octet);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// A pcapng under construction, a millisecond between its packets.
struct Sections {
    file: PcapNg,
    time_ns: u64,
}

impl Sections {
    fn new() -> Self {
        Self { file: PcapNg::new(Order::Little), time_ns: START_NS }
    }

    fn section(mut self) -> Self {
        self.file.section(Order::Little);
        self
    }

    fn interface(self, name: Option<&str>) -> Self {
        self.described(name, &[])
    }

    fn described(mut self, name: Option<&str>, more: &[(u16, &[u8])]) -> Self {
        let mut options = vec![NANOSECONDS];
        options.extend(name.map(|name| (2, name.as_bytes())));
        options.extend(more);
        self.file.interface(ETHERNET, &options);
        self
    }

    fn packet(self, interface: u32, data: &[u8]) -> Self {
        self.flagged(interface, data, &[])
    }

    fn flagged(mut self, interface: u32, data: &[u8], options: &[(u16, &[u8])]) -> Self {
        self.time_ns += 1_000_000;
        let packet = Packet { time_ns: self.time_ns, original_len: len(data), data: data.to_vec() };
        self.file.enhanced(interface, self.time_ns, &packet, options);
        self
    }

    fn drops(mut self, interface: u32, count: u64) -> Self {
        self.file.drops(interface, self.time_ns, count);
        self
    }

    fn octets(self) -> Vec<u8> {
        self.file.octets
    }
}

/// A classic capture of frames as they are.
fn plain(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    Trace::from_frames(frames).plain()
}

/// A classic capture whose link-type word says that check sequences of four octets are in it.
fn with_sequences(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    Trace { link: 0x2400_0001, ..Trace::from_frames(frames) }.plain()
}

/// Counts of priority 3 by `ingressPhysicalInterface`.
fn counts(ended: &Ended) -> Vec<(u64, u64)> {
    let records = ended.json();
    let of_3 = records.iter().filter(|r| r["record"] == "pfc" && number(r, "pfcPriority") == 3);
    of_3.map(|r| (number(r, "ingressPhysicalInterface"), number(r, "pfcControlFrameTotalCount")))
        .collect()
}

struct Case {
    about: &'static str,
    files: Vec<Vec<u8>>,
    options: &'static [&'static str],
    counts: &'static [(u64, u64)],
    /// What standard error says.
    says: Vec<&'static str>,
}

impl Case {
    fn of(about: &'static str, octets: Vec<u8>) -> Self {
        Self { about, files: vec![octets], options: &[], counts: &[], says: Vec::new() }
    }

    fn says(self, says: &[&'static str]) -> Self {
        Self { says: says.to_vec(), ..self }
    }

    fn counts(self, counts: &'static [(u64, u64)]) -> Self {
        Self { counts, ..self }
    }

    fn layer(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }
}

#[track_caller]
fn judge(cases: Vec<Case>) {
    let scratch = Scratch::new();
    for case in cases {
        let about = case.about;
        let paths: Vec<PathBuf> = (0..)
            .zip(&case.files)
            .map(|(n, octets): (u32, _)| scratch.file(&format!("{n}.cap"), octets))
            .collect();
        let options = [&["--pfc"], case.options].concat();
        let ended = good(&paths, &options);
        assert_eq!(counts(&ended), case.counts, "{about}: {}", ended.err);
        for said in &case.says {
            assert!(ended.err.contains(said), "{about}: not said: {said}\n{}", ended.err);
        }
        let doubt = ended.err.contains("no PFC counter") || ended.err.contains("came from");
        assert!(!case.says.is_empty() || !doubt, "{about}: {}", ended.err);
    }
}

// PFC-rec.2
#[test]
fn without_a_time_there_is_no_reading() {
    let data = frame();
    let packet = Packet { time_ns: 0, original_len: len(&data), data: data.clone() };
    let mut simple = PcapNg::new(Order::Little);
    simple.interface(ETHERNET, &[]);
    simple.simple(&packet);
    // Seconds, and more of them than can be shown.
    let mut beyond = PcapNg::new(Order::Little);
    beyond.interface(ETHERNET, &[(9, &[0])]);
    beyond.enhanced(0, u64::MAX, &packet, &[]);
    let mut behind = Sections::new().interface(None).packet(0, &data);
    behind.file.simple(&packet);
    let none = "no PFC counter of interface 0 is reported: 1 PFC frame has no time";
    judge(vec![
        Case::of("no time in the format", simple.octets).says(&[none]),
        Case::of("a time beyond what can be shown", beyond.octets).says(&[none]),
        Case::of("one frame without a time behind one with", behind.octets()).says(&[none]),
    ]);
}

// PFC-id.1
#[test]
fn a_number_that_sections_contradict_is_no_counter() {
    let data = frame();
    let one = |name: &str| Sections::new().interface(Some(name)).packet(0, &data).octets();
    let swapped = Sections::new()
        .interface(Some("eth0"))
        .interface(Some("eth1"))
        .interface(Some("eth2"))
        .packet(0, &data)
        .packet(1, &data)
        .packet(2, &data)
        .section()
        .interface(None)
        .interface(Some("eth0"))
        .packet(0, &data)
        .packet(1, &data)
        .octets();
    let number_0 = "no PFC counter of interface 0 (\"eth0\") is reported: number 0 is \"eth0\" in one \
                    section or file and \"eth7\" in another";
    judge(vec![
        Case::of(
            "two sections",
            Sections::new()
                .interface(Some("eth0"))
                .packet(0, &data)
                .section()
                .interface(Some("eth7"))
                .packet(0, &data)
                .octets(),
        )
        .says(&[number_0]),
        Case { files: vec![one("eth0"), one("eth7")], ..Case::of("two files", Vec::new()) }
            .says(&[number_0]),
        Case { files: vec![one("eth0"), one("eth0")], ..Case::of("the same name", Vec::new()) }
            .counts(&[(1, 2)]),
        Case { files: vec![one("eth0"), plain([data.clone()])], ..Case::of("no name", Vec::new()) }
            .counts(&[(1, 2)]),
        // The other interfaces are what they were.
        Case::of("one name under two numbers", swapped).counts(&[(3, 1)]).says(&[
            "no PFC counter of interface 0 (\"eth0\") is reported: \"eth0\" is number 0 in one section \
             or file and number 1 in another",
            "no PFC counter of interface 1 (\"eth1\") is reported: number 1 is \"eth1\" in one section \
             or file and \"eth0\" in another",
        ]),
        Case::of(
            "one name twice in a section, and again",
            Sections::new()
                .interface(Some("eth0"))
                .interface(Some("eth0"))
                .packet(0, &data)
                .section()
                .interface(Some("eth0"))
                .interface(Some("eth0"))
                .packet(1, &data)
                .octets(),
        )
        .counts(&[(1, 1), (2, 1)]),
    ]);
}

// PFC-count.4
#[test]
fn a_check_sequence_in_the_capture_is_checked_and_no_part_of_the_frame() {
    let [good, bad] = [true, false].map(|right| checked(frame(), right));
    let [short, runt, shortest] = [33, 59, 60].map(|len| {
        let mut frame = frame();
        frame.truncate(len);
        checked(frame, true)
    });
    let by_interface = |frames: &[&[u8]]| {
        let file = Sections::new().described(None, &[(13, &[4])]);
        frames.iter().fold(file, |file, frame| file.packet(0, frame)).octets()
    };
    let flags = (4_u32 << 5).to_le_bytes();
    let by_packet = Sections::new()
        .interface(None)
        .packet(0, &frame())
        .flagged(0, &good, &[(2, &flags)])
        .flagged(0, &bad, &[(2, &flags)]);
    let mut cut = Trace { link: 0x2400_0001, ..Trace::from_frames([good.clone(), good.clone()]) };
    cut.packets[1].data.truncate(62);
    let eight = Trace { link: 0x4400_0001, ..Trace::from_frames([good.clone()]) }.plain();
    let refused = "1 frame that the capture marks as damaged";
    let unchecked = "interface 0 is reported: 1 PFC frame has a check sequence that could not be";
    judge(vec![
        Case::of("pcap", with_sequences([good.clone(), bad.clone(), good.clone()]))
            .counts(&[(1, 2)])
            .says(&[refused]),
        Case::of("pcapng", by_interface(&[&good, &bad])).counts(&[(1, 1)]).says(&[refused]),
        Case::of("flags of a packet", by_packet.octets()).counts(&[(1, 2)]).says(&[refused]),
        Case::of("only bad ones", with_sequences([bad.clone()]))
            .says(&["no PFC frame was seen: 1 frame is damaged"]),
        Case::of("too short without it", with_sequences([short])).says(&[
            "1 PFC opcode, but too short: no PFC frame",
            "no PFC frame that counts was seen",
        ]),
        Case::of("a runt", with_sequences([runt])).says(&["1 PFC opcode, but too short"]),
        Case::of("the shortest", with_sequences([shortest])).counts(&[(1, 1)]),
        Case::of("cut", cut.plain()).says(&[unchecked]),
        Case::of("of another length", eight).says(&[unchecked]),
    ]);
}

// PFC-id.1, PFC-count.1
#[test]
fn a_frame_inside_a_tunnel_came_in_at_no_interface_of_the_capture() {
    let says = |layer: &'static str, said: &'static str| (layer, [said]);
    for (tunnel, (layer, said)) in [
        (Tunnel::Vxlan, says("vxlan", "observed is what is inside vxlan, and PFC never crosses")),
        (
            Tunnel::GeneveEthernet,
            says("geneve", "observed is what is inside geneve, and PFC never crosses"),
        ),
        (Tunnel::GreEthernet, says("gre", "observed is what is inside gre, and PFC never crosses")),
    ] {
        let scratch = Scratch::new();
        let path = scratch.file("in.pcap", &plain([tunnel.wrap(&frame(), 0, 0), frame()]));
        let ended = good(&[&path], &["--pfc", "--layer", layer]);
        assert_eq!(counts(&ended), []);
        assert!(ended.err.contains(said[0]), "{}", ended.err);
        assert!(
            ended.err.contains("1 priority flow control frame inside a tunnel"),
            "{}",
            ended.err
        );
        // Of the link itself, only what is outside is counted.
        assert_eq!(counts(&good(&[path], &["--pfc"])), [(1, 1)]);
    }
}

/// The PFC frame in ERSPAN of type II: the session, the number and how the mirror took it.
fn mirrored(session: u8, sequence: u8) -> Vec<u8> {
    let mut header = vec![0x10, 0, 0x88, 0xbe, 0, 0, 0, sequence];
    header.extend([0x10, 0, 0, session, 0, 0, 0, 1]);
    carried(47, &header, &frame(), 0)
}

// PFC-id.1, PFC-count.2
#[test]
fn a_mirror_is_a_counter_where_one_session_is_followed_without_a_hole() {
    const ERSPAN: &[&str] = &["--layer", "erspan"];
    let of = |about, frames: Vec<Vec<u8>>| Case::of(about, plain(frames)).layer(ERSPAN);
    let mut cases: Vec<_> = ERSPANS
        .map(|tunnel| {
            let frames = (0..3).map(|n| tunnel.wrap(&frame(), 0, n)).collect();
            of("one session", frames).counts(&[(1, 3)])
        })
        .into();
    let mut egress = Tunnel::ErspanIII.wrap(&frame(), 0, 1);
    // The last octet of the header says the direction.
    egress[14 + 20 + 8 + 11] |= 0x08;
    cases.extend([
        of("two sessions", vec![mirrored(7, 0), mirrored(8, 0), mirrored(7, 1)]).says(&[
            "ERSPAN II session 7 from 192.0.2.1 and ERSPAN II session 8 from 192.0.2.1 came in, which \
             mirror several ports",
        ]),
        of("two sessions, PFC in one", {
            let mut other = vec![0x10, 0, 0x88, 0xbe, 0, 0, 0, 0];
            other.extend([0x10, 0, 0, 9, 0, 0, 0, 1]);
            vec![mirrored(7, 0), carried(47, &other, &Roce::psn(1).frame(), 0)]
        })
        .says(&["which mirror several ports"]),
        of("a hole", vec![mirrored(7, 0), mirrored(7, 3)])
            .says(&["interface 0 is reported: 2 packets that the mirror numbered are not here"]),
        of("twice", vec![mirrored(7, 0), mirrored(7, 0)])
            .says(&["1 mirrored PFC frame with a number not above the latest can be here twice"]),
        of("sent", vec![Tunnel::ErspanIII.wrap(&frame(), 0, 0), egress]).counts(&[(1, 1)]),
    ]);
    judge(cases);
}

// PFC-count.2, PFC-op.1
#[test]
fn what_is_missing_of_one_interface_takes_only_its_counter_and_is_named() {
    let data = frame();
    let two = || Sections::new().interface(Some("eth0")).interface(Some("eth1"));
    let dropped = two().packet(0, &data).packet(1, &data).drops(0, 3).drops(1, 0).octets();
    let count = 5_u64.to_le_bytes();
    let before = two().packet(0, &data).packet(1, &data).flagged(0, &data, &[(4, &count)]).octets();
    let reset =
        two().drops(0, 9).packet(0, &data).packet(1, &data).drops(0, 9).drops(0, 1).octets();
    let cut = |kept: usize| {
        let mut trace = Trace::from_frames([frame(), frame()]);
        trace.packets[1].data.truncate(kept);
        trace.plain()
    };
    let whole = plain([data.clone(), data.clone()]);
    let later = Trace::from_frames([frame()]);
    let earlier = {
        let mut trace = later.clone();
        trace.packets[0].time_ns -= 60_000_000_000;
        trace.plain()
    };
    let crc = (1_u32 << 24).to_le_bytes();
    let gap = (1_u32 << 27).to_le_bytes();
    let marked = |flags: &[u8]| two().packet(0, &data).flagged(0, &data, &[(2, flags)]).octets();
    let mut longer = Trace::from_frames([frame(), frame()]);
    longer.packets[1].original_len = 59;
    let of_0 = "no PFC counter of interface 0 (\"eth0\") is reported: ";
    judge(vec![
        Case::of("statistics", dropped)
            .counts(&[(2, 1)])
            .says(&[of_0, "3 packets were dropped, by"]),
        Case::of("a packet's word", before)
            .counts(&[(2, 1)])
            .says(&[of_0, "5 packets were dropped"]),
        Case::of("a counter that went back", reset).counts(&[(2, 1)]).says(&[
            of_0,
            "9 packets were dropped",
            "1 time a drop counter was reset",
        ]),
        Case::of("cut before the vector", cut(17))
            .says(&["interface 0 is reported: 1 frame was cut before it shows whether it is PFC"]),
        Case::of("cut before the opcode", cut(14)).says(&["1 frame was cut before"]),
        Case::of("cut in the addresses", cut(9)).says(&["1 frame was cut before"]),
        Case::of("cut behind the vector", cut(18)).counts(&[(1, 2)]),
        Case::of("ends in a record", whole[..whole.len() - 1].to_vec())
            .says(&["no PFC counter is reported: 1 capture file ends inside a record"]),
        Case { files: vec![later.plain(), earlier], ..Case::of("files out of order", Vec::new()) }
            .says(&[
                "no PFC counter is reported: 1 capture file starts long before the one in front",
            ]),
        // It was no frame on the link, so it is none that was missed.
        Case::of("wrong on the link", marked(&crc))
            .counts(&[(1, 1)])
            .says(&["1 frame that the capture marks as damaged"]),
        Case::of("damaged otherwise", marked(&gap))
            .says(&[of_0, "1 frame is marked as damaged, or has lengths that cannot be"]),
        Case::of("longer than it was", longer.plain()).says(&["1 frame is marked as damaged"]),
    ]);
}

/// A frame to another address, behind a tag, and of fewer octets.
fn others() -> [Vec<u8>; 3] {
    let mut elsewhere = frame();
    elsewhere[0] = 0x02;
    let mut tagged = frame();
    tagged.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
    let mut short = frame();
    short.truncate(20);
    [elsewhere, tagged, short]
}

// PFC-count.4, PFC-op.1
#[test]
fn an_opcode_of_pfc_that_does_not_count_is_named_for_what_it_is() {
    let lines = [
        "1 PFC opcode, but not sent to the address of PFC",
        "1 PFC opcode, but behind a tag",
        "1 PFC opcode, but too short: no PFC frame",
    ];
    let refused =
        "no PFC frame that counts was seen: 1 frame with the opcode of PFC is no PFC frame";
    let scratch = Scratch::new();
    for (octets, line) in others().into_iter().zip(lines) {
        let path = scratch.file("other.pcap", &plain([octets.clone()]));
        let ended = good(&[path], &["--pfc"]);
        assert_eq!(counts(&ended), []);
        assert!(ended.err.contains(line) && ended.err.contains(refused), "{}", ended.err);
        assert!(!ended.err.contains("other than PFC"), "{}", ended.err);
        let beside = scratch.file("beside.pcap", &plain([octets, frame()]));
        assert_eq!(counts(&good(&[beside], &["--pfc"])), [(1, 1)]);
    }
    let cooked = |number: u32, front: &[u8]| {
        let data = [front, &frame()[14..]].concat();
        Trace { link: number, ..Trace::from_frames([data]) }.plain()
    };
    let sll = cooked(113, &[0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 7, 0, 0, 0x88, 0x08]);
    let sll2 = cooked(276, &[0x88, 0x08, 0, 0, 0, 0, 0, 2, 0, 1, 1, 6, 2, 0, 0, 0, 0, 7, 0, 0]);
    let unknown = &[
        "1 PFC opcode, captured without a destination: whether it is a PFC frame is unknown",
        "no PFC frame that counts was seen: 1 frame with the opcode of PFC was captured without a \
         destination",
    ];
    let sent = 2_u32.to_le_bytes();
    let outbound = Sections::new().interface(None).flagged(0, &frame(), &[(2, &sent)]).octets();
    judge(vec![
        Case::of("cooked", sll.clone()).says(unknown),
        Case::of("cooked, version 2", sll2).says(unknown),
        Case { files: vec![plain([frame()]), sll], ..Case::of("beside a plain one", Vec::new()) }
            .says(&[
                "interface 0 is reported: 1 frame with the opcode of PFC was captured without",
            ]),
        Case::of("sent", outbound)
            .says(&["no PFC frame that counts was seen: 1 frame was sent, not received"]),
        Case::of("none at all", plain([Roce::psn(1).frame()])).says(&[
            "no PFC frame was seen, and most NICs consume them before a capture on their host",
        ]),
    ]);
}

// PFC-count.1
#[test]
fn two_senders_on_one_interface_are_warned_of_and_zero_is_none() {
    let other = [2, 0, 0, 0, 0, 8];
    let tap = plain([from(HOST), from([0; 6]), from(other), from(HOST)]);
    let apart = Sections::new()
        .interface(None)
        .interface(None)
        .packet(0, &from(HOST))
        .packet(1, &from(other))
        .octets();
    judge(vec![
        Case::of("two senders", tap)
            .counts(&[(1, 4)])
            .says(&["warning: PFC frames of interface 0 came from 02:00:00:00:00:07 and from \
             02:00:00:00:00:08, and the other end of a link has one address"]),
        Case::of("zero and one sender", plain([from([0; 6]), from(HOST)])).counts(&[(1, 2)]),
        Case::of("one each", apart).counts(&[(1, 1), (2, 1)]),
    ]);
}

// PFC-count.1
#[test]
fn the_table_names_the_interface_and_without_the_option_how_to_count_is_said() {
    let scratch = Scratch::new();
    let octets = Sections::new().interface(Some("eth5")).packet(0, &frame()).octets();
    let path = scratch.file("named.pcapng", &octets);
    let with = |options: &[&str]| {
        let mut arguments = vec!["meter", "--attest-all"];
        arguments.extend(options);
        arguments.push(path.to_str().expect("UTF-8"));
        rocescope(&arguments).out
    };
    let text = with(&["--pfc"]);
    assert!(
        text.contains("PFC frames that interface 0 (\"eth5\") of the capture received"),
        "{text}"
    );
    assert!(text.contains("1 priority flow control frame\n"), "{text}");
    let text = with(&[]);
    let how = "1 priority flow control frame (--pfc counts it by interface and priority)\n";
    assert!(text.contains(how), "{text}");
}
