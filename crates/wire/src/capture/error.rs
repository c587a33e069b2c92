//! What is wrong with a capture file, and where.

use super::Format;
use core::fmt;

/// Something in a capture file that cannot be read on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Offset in the file, after decompression, of the field that was read.
    pub offset: u64,
    /// What was expected there, with what was found.
    pub expected: Expected,
}

/// What was expected, with what was found instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// Enough octets to start with.
    FileHeader {
        /// Octets in the file.
        found: usize,
    },
    /// The first octets of pcap or pcapng.
    Magic {
        /// The octets.
        found: [u8; 4],
        /// What they are the start of.
        format: Format,
    },
    /// pcap without the record header of a well-known patch to Linux.
    Unmodified,
    /// A version that we know.
    Version {
        /// Which format.
        format: Format,
        /// Major and minor number.
        found: (u16, u16),
    },
    /// A record of bounded length.
    RecordLength {
        /// Octets of packet or block.
        found: u32,
        /// Octets, at most: the limit.
        limit: u32,
    },
    /// A block length that is a multiple of four and holds the block.
    BlockLength {
        /// Octets.
        found: u32,
        /// Octets, at least.
        least: u32,
    },
    /// The block length once more at the end of the block.
    Trailer {
        /// At the end.
        found: u32,
        /// At the start.
        length: u32,
    },
    /// The mark of a byte order.
    ByteOrder {
        /// The octets.
        found: [u8; 4],
    },
    /// A packet that its block has room for.
    PacketLength {
        /// Octets of packet.
        found: u32,
        /// Octets, at most.
        room: usize,
    },
    /// An interface that was described before.
    Interface {
        /// Its number.
        found: u32,
        /// How many were described.
        count: usize,
    },
    /// A bounded number of interfaces.
    InterfaceCount {
        /// The limit.
        limit: u32,
    },
    /// An option that its block has room for.
    OptionLength {
        /// Code of the option.
        code: u16,
        /// Octets that it says it has.
        found: u16,
        /// Octets left in the block.
        room: usize,
    },
    /// An option of a fixed length.
    OptionValue {
        /// Code of the option.
        code: u16,
        /// Octets that it has.
        found: usize,
        /// Octets that it is to have.
        length: usize,
    },
}

impl Error {
    pub(super) const fn new(offset: u64, expected: Expected) -> Self {
        Self { offset, expected }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match self.expected {
            Expected::FileHeader { found } => {
                write!(f, "{found} octets in all, too few for a pcap or pcapng header")
            }
            Expected::Magic { found, format } => {
                let [a, b, c, d] = found;
                write!(f, "first octets {a:02x} {b:02x} {c:02x} {d:02x}")?;
                match format {
                    Format::Gzip => f.write_str(" (gzip)")?,
                    Format::Zstd => f.write_str(" (zstd)")?,
                    Format::Pcap | Format::PcapNg | Format::Unknown => {}
                }
                f.write_str(", need those of pcap or pcapng")
            }
            Expected::Unmodified => write!(
                f,
                "modified (Kuznetzov) pcap, magic a1b2cd34 at offset {at}, need plain pcap or pcapng"
            ),
            Expected::Version { format, found } => {
                let (name, need) = match format {
                    Format::PcapNg => ("pcapng", "1.0"),
                    _ => ("pcap", "2.4"),
                };
                write!(f, "{name} version {}.{} at offset {at}, need {need}", found.0, found.1)
            }
            Expected::RecordLength { found, limit } => {
                write!(f, "record of {found} octets at offset {at}, limit record_max is {limit}")
            }
            Expected::BlockLength { found, least } => write!(
                f,
                "block length {found} at offset {at}, need a multiple of 4, at least {least}"
            ),
            Expected::Trailer { found, length } => write!(
                f,
                "block length {found} at the end of the block, offset {at}, need {length} as at its start"
            ),
            Expected::ByteOrder { found } => {
                let [a, b, c, d] = found;
                write!(
                    f,
                    "byte order mark {a:02x} {b:02x} {c:02x} {d:02x} at offset {at}, need 1a 2b 3c 4d either way round"
                )
            }
            Expected::PacketLength { found, room } => {
                write!(f, "packet of {found} octets at offset {at}, the block has room for {room}")
            }
            Expected::Interface { found, count } => {
                write!(f, "interface {found} at offset {at}, the section has described {count}")
            }
            Expected::InterfaceCount { limit } => {
                write!(f, "one interface too many at offset {at}, limit interfaces_max is {limit}")
            }
            Expected::OptionLength { code, found, room } => write!(
                f,
                "option {code} of {found} octets at offset {at}, the block has room for {room}"
            ),
            Expected::OptionValue { code, found, length } => {
                write!(f, "option {code} of {found} octets at offset {at}, need {length}")
            }
        }
    }
}

impl core::error::Error for Error {}
