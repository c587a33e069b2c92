//! What a RoCEv2 packet is to the sequence profile (sequence draft, section 3).
//!
//! A packet is classified before any stream is looked up; only a request or a violation can
//! touch one.

use core::fmt;

use wire::frame::{Bth, Lie, Opcode, Transport};

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

/// Says what a packet is, by its BTH, the octets from there to the ICRC, and whether a length
/// field lies.
// SEQ-3.1, SEQ-3.3, SEQ-3.4
#[inline(always)]
pub fn classify(bth: &Bth, transport_len: u32, lie: Option<Lie>) -> Observed {
    // SEND and WRITE with their immediate forms; SEND with invalidate is beyond.
    if bth.opcode.0 <= 0x0b && bth.version == 0 && lie.is_none() && bth.fits(transport_len) {
        return Observed::Request(Psn::new(bth.psn));
    }
    not_a_request(bth.opcode, bth.version, bth.least_len(), transport_len, lie)
}

/// Takes numbers: a header that is handed on would have to be put together for every packet.
#[inline(never)]
fn not_a_request(
    opcode: Opcode,
    version: u8,
    least_len: u32,
    transport_len: u32,
    lie: Option<Lie>,
) -> Observed {
    if opcode == Opcode::CNP {
        return Observed::Cnp;
    }
    if opcode.transport() != Transport::Rc {
        return Observed::OtherTransport;
    }
    if opcode.is_response() {
        return Observed::Response;
    }
    let violation = if version != 0 {
        Violation::Version(version)
    } else if opcode.0 > 0x0b {
        Violation::Opcode(opcode)
    } else if let Some(lie) = lie {
        Violation::Length(lie)
    } else {
        Violation::TooShort { opcode, found: transport_len, expected: least_len }
    };
    Observed::Violation(violation)
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
