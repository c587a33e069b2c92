//! What a RoCEv2 packet is to the sequence profile (sequence draft, section 3).
//!
//! A packet is classified before any stream is looked up; only a request or a violation can
//! touch one.

use core::fmt;

use wire::frame::{BTH_LEN, ICRC_LEN, Lie, Opcode, Packet, Transport};

use crate::serial::Psn;

/// A packet as the profile sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// SEND or WRITE of a Reliable Connection, one position of the serial space.
    Request(Psn),
    /// A request of a Reliable Connection that the profile does not cover.
    Violation(Violation),
    /// READ or ATOMIC response or acknowledgement.
    Response,
    /// Congestion notification.
    Cnp,
    /// UC, RD, UD, XRC or a transport that is not assigned.
    OtherTransport,
}

/// Why a request violates the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// An operation outside 0x00 to 0x0B.
    Opcode(Opcode),
    /// A transport header version that is not 0.
    Version(u8),
    /// Fewer octets than the operation's own headers, padding and ICRC take.
    TooShort {
        /// The operation.
        opcode: Opcode,
        /// Octets from the BTH to the ICRC by the UDP length.
        found: u32,
        /// The least that the operation takes.
        expected: u32,
    },
    /// A length field that reaches beyond what holds it.
    Length(Lie),
}

/// Says what `packet` is.
// SEQ-3.1, SEQ-3.3, SEQ-3.4
#[inline(always)]
pub fn classify(packet: Packet) -> Observed {
    let opcode = packet.bth.opcode;
    // SEND and WRITE with their immediate forms; SEND with invalidate is beyond.
    if opcode.0 <= 0x0b
        && packet.bth.version == 0
        && packet.lie.is_none()
        && packet.transport_len >= least_len(opcode, packet.bth.pad)
    {
        return Observed::Request(Psn::new(packet.bth.psn));
    }
    not_a_request(packet)
}

#[inline(never)]
fn not_a_request(packet: Packet) -> Observed {
    let opcode = packet.bth.opcode;
    if opcode == Opcode::CNP {
        return Observed::Cnp;
    }
    if opcode.transport() != Transport::Rc {
        return Observed::OtherTransport;
    }
    if opcode.is_response() {
        return Observed::Response;
    }
    if packet.bth.version != 0 {
        return Observed::Violation(Violation::Version(packet.bth.version));
    }
    if opcode.0 > 0x0b {
        return Observed::Violation(Violation::Opcode(opcode));
    }
    if let Some(lie) = packet.lie {
        return Observed::Violation(Violation::Length(lie));
    }
    let found = packet.transport_len;
    let expected = least_len(opcode, packet.bth.pad);
    Observed::Violation(Violation::TooShort { opcode, found, expected })
}

/// Octets of the headers, the padding and the ICRC of a SEND or WRITE.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a few dozen octets")]
fn least_len(opcode: Opcode, pad: u8) -> u32 {
    let extension = opcode.extension_len().unwrap_or(0);
    (BTH_LEN + extension + usize::from(pad) + ICRC_LEN) as u32
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opcode(opcode) => write!(f, "{opcode} request"),
            Self::Version(version) => write!(f, "transport header version {version}"),
            Self::TooShort { opcode, found, expected } => {
                write!(f, "{opcode} of {found} octets, its headers take {expected}")
            }
            Self::Length(Lie::IpBeyondFrame) => write!(f, "IP length beyond the frame"),
            Self::Length(Lie::UdpBeyondIp) => write!(f, "UDP length beyond the IP payload"),
        }
    }
}
