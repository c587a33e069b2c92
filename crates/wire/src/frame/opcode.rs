//! The opcodes of every transport and the extension headers that each brings
//! (IBTA vol. 1, section 9.2.1, the table of opcodes; RoCEv2's CNP from annex A17).
//!
//! Nothing here says which opcodes a metered stream may show.

use core::fmt;

/// The operation code of a BTH: three bits of transport, five of operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(pub u8);

/// The transport service in an opcode's upper three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// Reliable Connection, 0x00 to 0x1F.
    Rc,
    /// Unreliable Connection, 0x20 to 0x3F.
    Uc,
    /// Reliable Datagram, 0x40 to 0x5F.
    Rd,
    /// Unreliable Datagram, 0x60 to 0x7F.
    Ud,
    /// Congestion notification, 0x80 to 0x9F, of which only 0x81 is defined.
    Cnp,
    /// Extended Reliable Connection, 0xA0 to 0xBF.
    Xrc,
    /// For manufacturers, 0xC0 to 0xFF; nothing is known of these.
    Manufacturer,
}

impl Opcode {
    /// The congestion notification packet of RoCEv2.
    pub const CNP: Self = Self(0x81);

    /// The transport service.
    #[inline]
    #[must_use]
    pub const fn transport(self) -> Transport {
        match self.0 >> 5 {
            0 => Transport::Rc,
            1 => Transport::Uc,
            2 => Transport::Rd,
            3 => Transport::Ud,
            4 => Transport::Cnp,
            5 => Transport::Xrc,
            _ => Transport::Manufacturer,
        }
    }

    /// The operation, 0 to 31, whatever the transport.
    #[inline]
    #[must_use]
    pub const fn operation(self) -> u8 {
        self.0 & 0x1f
    }

    /// Whether this is a response of a Reliable Connection: READ response, ACK or atomic ACK,
    /// 0x0D to 0x12.
    #[inline]
    #[must_use]
    pub const fn is_response(self) -> bool {
        matches!(self.0, 0x0d..=0x12)
    }

    /// Whether the standard defines this opcode.
    #[must_use]
    pub const fn is_defined(self) -> bool {
        self.extension_len().is_some()
    }

    /// Octets of the extension headers between BTH and payload, 0 to 40; nothing where the
    /// opcode is reserved or a manufacturer's.
    #[inline]
    #[must_use]
    pub const fn extension_len(self) -> Option<usize> {
        match EXTENSION[self.0 as usize] {
            RESERVED => None,
            len => Some(len as usize),
        }
    }

    /// The name in capitals without spaces, `RC_SEND_FIRST`; one name a transport, such as
    /// `RC_RESERVED`, for what is not defined.
    #[must_use]
    pub const fn name(self) -> &'static str {
        if !self.is_defined() {
            return match self.transport() {
                Transport::Rc => "RC_RESERVED",
                Transport::Uc => "UC_RESERVED",
                Transport::Rd => "RD_RESERVED",
                Transport::Ud => "UD_RESERVED",
                Transport::Cnp => "CNP_RESERVED",
                Transport::Xrc => "XRC_RESERVED",
                Transport::Manufacturer => "MANUFACTURER",
            };
        }
        let operation = self.operation() as usize;
        match self.transport() {
            Transport::Rc => RC_NAMES[operation],
            Transport::Uc => UC_NAMES[operation],
            Transport::Rd => RD_NAMES[operation],
            Transport::Ud => UD_NAMES[operation],
            Transport::Xrc => XRC_NAMES[operation],
            Transport::Cnp => "CNP",
            Transport::Manufacturer => "MANUFACTURER",
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_defined() {
            f.write_str(self.name())
        } else {
            write!(f, "{}_0x{:02X}", self.name(), self.0)
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opcode(0x{:02X} {})", self.0, self.name())
    }
}

/// Marks an opcode that the standard does not define.
const RESERVED: u8 = 0xff;

// Extension headers, octets.
const RETH: u8 = 16;
const ATOMIC_ETH: u8 = 28;
const AETH: u8 = 4;
const ATOMIC_ACK_ETH: u8 = 8;
const IMMDT: u8 = 4;
const IETH: u8 = 4;
const FETH: u8 = 4;
const DETH: u8 = 8;
const RDETH: u8 = 4;
const XRCETH: u8 = 4;

/// Octets of extension headers by opcode.
static EXTENSION: [u8; 256] = extension_table();

/// Octets that the extension headers of any operation take at most: those of an ATOMIC request of
/// the Reliable Datagram transport.
pub(super) const EXTENSION_MAX: usize = (RDETH + DETH + ATOMIC_ETH) as usize;

const fn extension_table() -> [u8; 256] {
    let mut table = [RESERVED; 256];
    let mut operation = 0u8;
    while operation < 32 {
        let at = operation as usize;
        let common = reliable(operation);
        if common != RESERVED {
            table[at] = common;
            // Of XRC, only what a request brings besides is new; responses are as in RC.
            if operation <= 0x17 {
                let request = !matches!(operation, 0x0d..=0x12);
                table[0xa0 + at] = common + if request { XRCETH } else { 0 };
            }
            // Unreliable Connection has SEND and WRITE, nothing that is answered.
            if operation <= 0x0b {
                table[0x20 + at] = common;
            }
            // Reliable Datagram: requests name their queue pair (DETH), responses do not.
            if operation <= 0x14 {
                let request = !matches!(operation, 0x0d..=0x12);
                table[0x40 + at] = common + RDETH + if request { DETH } else { 0 };
            }
        }
        operation += 1;
    }
    // Reliable Datagram alone has RESYNC.
    table[0x55] = RDETH + DETH;
    table[0x64] = DETH;
    table[0x65] = DETH + IMMDT;
    table[0x81] = 0;
    table
}

/// What an operation brings in a Reliable Connection.
const fn reliable(operation: u8) -> u8 {
    match operation {
        // SEND first, middle, last, only; WRITE middle, last.
        0x00..=0x02 | 0x04 | 0x07 | 0x08 => 0,
        // SEND last and only, and WRITE last, with immediate.
        0x03 | 0x05 | 0x09 => IMMDT,
        // WRITE first and only; READ request; atomic WRITE.
        0x06 | 0x0a | 0x0c | 0x1d => RETH,
        // WRITE only with immediate.
        0x0b => RETH + IMMDT,
        // READ response first, last, only; acknowledge.
        0x0d | 0x0f..=0x11 => AETH,
        // READ response middle.
        0x0e => 0,
        // Atomic acknowledge.
        0x12 => AETH + ATOMIC_ACK_ETH,
        // Compare and swap, fetch and add.
        0x13 | 0x14 => ATOMIC_ETH,
        // SEND last and only with invalidate.
        0x16 | 0x17 => IETH,
        // Flush.
        0x1c => FETH + RETH,
        _ => RESERVED,
    }
}

macro_rules! names {
    ($prefix:literal) => {
        [
            concat!($prefix, "SEND_FIRST"),
            concat!($prefix, "SEND_MIDDLE"),
            concat!($prefix, "SEND_LAST"),
            concat!($prefix, "SEND_LAST_IMM"),
            concat!($prefix, "SEND_ONLY"),
            concat!($prefix, "SEND_ONLY_IMM"),
            concat!($prefix, "WRITE_FIRST"),
            concat!($prefix, "WRITE_MIDDLE"),
            concat!($prefix, "WRITE_LAST"),
            concat!($prefix, "WRITE_LAST_IMM"),
            concat!($prefix, "WRITE_ONLY"),
            concat!($prefix, "WRITE_ONLY_IMM"),
            concat!($prefix, "READ_REQUEST"),
            concat!($prefix, "READ_RESP_FIRST"),
            concat!($prefix, "READ_RESP_MIDDLE"),
            concat!($prefix, "READ_RESP_LAST"),
            concat!($prefix, "READ_RESP_ONLY"),
            concat!($prefix, "ACKNOWLEDGE"),
            concat!($prefix, "ATOMIC_ACK"),
            concat!($prefix, "COMPARE_SWAP"),
            concat!($prefix, "FETCH_ADD"),
            concat!($prefix, "RESYNC"),
            concat!($prefix, "SEND_LAST_INV"),
            concat!($prefix, "SEND_ONLY_INV"),
            concat!($prefix, "RESERVED"),
            concat!($prefix, "RESERVED"),
            concat!($prefix, "RESERVED"),
            concat!($prefix, "RESERVED"),
            concat!($prefix, "FLUSH"),
            concat!($prefix, "ATOMIC_WRITE"),
            concat!($prefix, "RESERVED"),
            concat!($prefix, "RESERVED"),
        ]
    };
}

static RC_NAMES: [&str; 32] = names!("RC_");
static UC_NAMES: [&str; 32] = names!("UC_");
static RD_NAMES: [&str; 32] = names!("RD_");
static UD_NAMES: [&str; 32] = names!("UD_");
static XRC_NAMES: [&str; 32] = names!("XRC_");

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// Written out by hand from the table of opcodes, not derived from the code above: opcode,
    /// name, octets of extension headers, whether it is a response.
    const RC: [(u8, &str, Option<usize>, bool); 32] = [
        (0x00, "RC_SEND_FIRST", Some(0), false),
        (0x01, "RC_SEND_MIDDLE", Some(0), false),
        (0x02, "RC_SEND_LAST", Some(0), false),
        (0x03, "RC_SEND_LAST_IMM", Some(4), false),
        (0x04, "RC_SEND_ONLY", Some(0), false),
        (0x05, "RC_SEND_ONLY_IMM", Some(4), false),
        (0x06, "RC_WRITE_FIRST", Some(16), false),
        (0x07, "RC_WRITE_MIDDLE", Some(0), false),
        (0x08, "RC_WRITE_LAST", Some(0), false),
        (0x09, "RC_WRITE_LAST_IMM", Some(4), false),
        (0x0a, "RC_WRITE_ONLY", Some(16), false),
        (0x0b, "RC_WRITE_ONLY_IMM", Some(20), false),
        (0x0c, "RC_READ_REQUEST", Some(16), false),
        (0x0d, "RC_READ_RESP_FIRST", Some(4), true),
        (0x0e, "RC_READ_RESP_MIDDLE", Some(0), true),
        (0x0f, "RC_READ_RESP_LAST", Some(4), true),
        (0x10, "RC_READ_RESP_ONLY", Some(4), true),
        (0x11, "RC_ACKNOWLEDGE", Some(4), true),
        (0x12, "RC_ATOMIC_ACK", Some(12), true),
        (0x13, "RC_COMPARE_SWAP", Some(28), false),
        (0x14, "RC_FETCH_ADD", Some(28), false),
        (0x15, "RC_RESERVED", None, false),
        (0x16, "RC_SEND_LAST_INV", Some(4), false),
        (0x17, "RC_SEND_ONLY_INV", Some(4), false),
        (0x18, "RC_RESERVED", None, false),
        (0x19, "RC_RESERVED", None, false),
        (0x1a, "RC_RESERVED", None, false),
        (0x1b, "RC_RESERVED", None, false),
        (0x1c, "RC_FLUSH", Some(20), false),
        (0x1d, "RC_ATOMIC_WRITE", Some(16), false),
        (0x1e, "RC_RESERVED", None, false),
        (0x1f, "RC_RESERVED", None, false),
    ];

    #[test]
    fn every_rc_opcode_has_its_name_extension_headers_and_direction() {
        for (at, (opcode, name, extension, response)) in RC.into_iter().enumerate() {
            assert_eq!(at, usize::from(opcode), "the table has no hole");
            let opcode = Opcode(opcode);
            assert_eq!(opcode.transport(), Transport::Rc);
            assert_eq!(opcode.name(), name);
            assert_eq!(opcode.extension_len(), extension, "{opcode}");
            assert_eq!(opcode.is_response(), response, "{opcode}"); // SEQ-3.4
        }
    }

    #[test]
    fn no_operation_brings_more_extension_headers_than_the_greatest() {
        let greatest = (0..=255).filter_map(|opcode| Opcode(opcode).extension_len()).max();
        assert_eq!(greatest, Some(EXTENSION_MAX));
    }

    #[test]
    fn cnp_is_0x81_and_nothing_beside_it() {
        for opcode in 0x80..=0x9f {
            let opcode = Opcode(opcode);
            assert_eq!(opcode.transport(), Transport::Cnp);
            assert!(!opcode.is_response(), "a CNP is set aside by its own name");
            if opcode == Opcode::CNP {
                assert_eq!(opcode.name(), "CNP");
                assert_eq!(opcode.extension_len(), Some(0));
            } else {
                assert_eq!(opcode.name(), "CNP_RESERVED");
                assert_eq!(opcode.extension_len(), None);
            }
        }
        assert_eq!(Opcode::CNP.0, 0x81);
    }

    #[test]
    fn no_other_transport_has_responses_that_look_like_rc() {
        for opcode in 0x20..=0xff {
            assert!(!Opcode(opcode).is_response(), "{}", Opcode(opcode));
        }
    }

    #[test]
    fn other_transports_bring_their_own_headers() {
        for (opcode, name, extension) in [
            (0x24, "UC_SEND_ONLY", Some(0)),
            (0x2b, "UC_WRITE_ONLY_IMM", Some(20)),
            (0x2c, "UC_RESERVED", None),
            (0x44, "RD_SEND_ONLY", Some(12)),
            (0x51, "RD_ACKNOWLEDGE", Some(8)),
            (0x55, "RD_RESYNC", Some(12)),
            (0x56, "RD_RESERVED", None),
            (0x64, "UD_SEND_ONLY", Some(8)),
            (0x65, "UD_SEND_ONLY_IMM", Some(12)),
            (0x66, "UD_RESERVED", None),
            (0xa6, "XRC_WRITE_FIRST", Some(20)),
            (0xb1, "XRC_ACKNOWLEDGE", Some(4)),
            (0xb7, "XRC_SEND_ONLY_INV", Some(8)),
            (0xbc, "XRC_RESERVED", None),
            (0xc0, "MANUFACTURER", None),
            (0xff, "MANUFACTURER", None),
        ] {
            let opcode = Opcode(opcode);
            assert_eq!((opcode.name(), opcode.extension_len()), (name, extension));
        }
    }

    #[test]
    fn what_is_not_defined_shows_its_number() {
        assert_eq!(format!("{}", Opcode(0x1f)), "RC_RESERVED_0x1F");
        assert_eq!(format!("{}", Opcode(0x04)), "RC_SEND_ONLY");
        assert_eq!(format!("{:?}", Opcode(0x0a)), "Opcode(0x0A RC_WRITE_ONLY)");
    }
}
