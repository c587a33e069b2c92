//! What a packet is to the profile.

use observe::request::{Observed, Violation, classify};
use observe::serial::Psn;
use wire::frame::{Bth, Lie, Opcode};

/// What a packet is classified by.
struct Packet {
    bth: Bth,
    transport_len: u32,
    lie: Option<Lie>,
}

fn packet(opcode: u8) -> Packet {
    let bth = Bth {
        opcode: Opcode(opcode),
        solicited: false,
        migration: false,
        pad: 0,
        version: 0,
        pkey: 0xffff,
        qp: 17,
        congestion: 0,
        ack_request: false,
        psn: 0x00ab_cdef,
    };
    Packet { bth, transport_len: 200, lie: None }
}

fn changed(opcode: u8, change: impl FnOnce(&mut Packet)) -> Observed {
    let mut packet = packet(opcode);
    change(&mut packet);
    classify(&packet.bth, packet.transport_len, packet.lie)
}

// SEQ-3.1, SEQ-3.3, SEQ-3.4
#[test]
fn every_opcode_is_a_request_a_violation_or_no_business_of_the_profile() {
    for opcode in 0..=255 {
        let expected = match opcode {
            0x00..=0x0b => Observed::Request(Psn::new(0x00ab_cdef)),
            0x0d..=0x12 => Observed::Response,
            0x0c | 0x13..=0x1f => Observed::Violation(Violation::Opcode(Opcode(opcode))),
            0x81 => Observed::Cnp,
            _ => Observed::OtherTransport,
        };
        assert_eq!(changed(opcode, |_| {}), expected, "{opcode:#04x}");
    }
}

// SEQ-3.3
#[test]
fn a_request_of_another_version_is_a_violation_and_a_response_changes_nothing() {
    for version in 1..16 {
        let violation = Observed::Violation(Violation::Version(version));
        assert_eq!(changed(0x04, |p| p.bth.version = version), violation);
        assert_eq!(changed(0x0c, |p| p.bth.version = version), violation);
        assert_eq!(changed(0x11, |p| p.bth.version = version), Observed::Response);
        assert_eq!(changed(0x81, |p| p.bth.version = version), Observed::Cnp);
    }
}

// SEQ-3.3
#[test]
fn a_request_has_room_for_its_own_headers_its_padding_and_the_icrc() {
    // SEND first, with immediate; WRITE first, last with immediate, only with immediate.
    for (opcode, least) in [(0x00, 16), (0x03, 20), (0x06, 32), (0x09, 20), (0x0b, 36)] {
        for pad in 0..4 {
            let expected = least + u32::from(pad);
            let of = |length| changed(opcode, |p| (p.bth.pad, p.transport_len) = (pad, length));
            let found = expected - 1;
            let short = Violation::TooShort { opcode: Opcode(opcode), found, expected };
            assert_eq!(of(found), Observed::Violation(short));
            for length in [expected, expected + 1] {
                assert!(matches!(of(length), Observed::Request(_)), "{opcode:#04x} {length}");
            }
        }
    }
}

// SEQ-3.3
#[test]
fn a_length_that_reaches_too_far_makes_a_request_malformed_and_no_response() {
    for lie in [Lie::IpBeyondFrame, Lie::UdpBeyondIp] {
        let violation = Observed::Violation(Violation::Length(lie));
        assert_eq!(changed(0x00, |p| p.lie = Some(lie)), violation);
        assert_eq!(changed(0x11, |p| p.lie = Some(lie)), Observed::Response);
        assert_eq!(changed(0x81, |p| p.lie = Some(lie)), Observed::Cnp);
    }
}
