//! Capture files: the records of pcap and pcapng out of octets that arrive in pieces.
//!
//! pcap as draft-ietf-opsawg-pcap describes it, with times in microseconds or nanoseconds and
//! in either byte order; pcapng as draft-ietf-opsawg-pcapng describes it, with any number of
//! sections and interfaces. Compressed files are recognised by [`sniff`] and taken apart
//! elsewhere.
//!
//! [`Parser`] holds what the file has said so far (byte order, interfaces), never its octets:
//! the caller keeps those, hands over what is not yet consumed, and gets one [`Step`] for each
//! call. What a file does not say is `None`, never zero. Check sequences behind the frames are taken
//! off and checked.

mod check;
mod classic;
mod error;
mod next_generation;

pub use check::FrameCheck;
pub use error::{Error, Expected};

use crate::frame::{LinkType, UnknownLink};
use alloc::vec::Vec;

/// Bounds on what one file may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Octets of one record or block, at most.
    pub record_max: u32,
    /// Interfaces of one pcapng section, at most.
    pub interfaces_max: u32,
}

impl Default for Limits {
    /// 64 MiB a record, 4096 interfaces.
    fn default() -> Self {
        Self { record_max: 64 << 20, interfaces_max: 4096 }
    }
}

/// What a file is by its first octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The classic format.
    Pcap,
    /// The next generation.
    PcapNg,
    /// gzip (RFC 1952), of whatever.
    Gzip,
    /// Zstandard (RFC 8878), of whatever.
    Zstd,
    /// None of these, or too few octets to tell.
    Unknown,
}

/// Octets that [`sniff`] wants to see.
pub const SNIFF_LEN: usize = 4;

/// Tells the format of a file by its first [`SNIFF_LEN`] octets; more do not matter.
#[must_use]
pub fn sniff(octets: &[u8]) -> Format {
    match octets {
        [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0xcd, 0x34, ..]
        | [0x34, 0xcd, 0xb2, 0xa1, ..] => Format::Pcap,
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => Format::PcapNg,
        [0x1f, 0x8b, ..] => Format::Gzip,
        // A frame, or a skippable frame before one.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Format::Zstd,
        _ => Format::Unknown,
    }
}

/// One packet of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Number of the interface in its section; 0 in pcap.
    pub interface: u32,
    /// How to read the front of the packet, or the number of a link type that carries no RoCEv2.
    pub link: Result<LinkType, UnknownLink>,
    /// Nanoseconds since 1970, cut, not rounded. Nothing where the file has no time, or one
    /// before 1970 or after 2554.
    pub time_ns: Option<u64>,
    /// Octets on the wire, as the file says, without a frame check sequence.
    pub original_len: u32,
    /// The captured octets, without a frame check sequence.
    pub data: &'a [u8],
    /// Packets that were dropped between this one and the one before on the same interface,
    /// where the file says so, which may be 0.
    pub drops_before: Option<u64>,
    /// The capture says that the packet was sent, not received.
    pub outbound: bool,
    /// The capture says, or the frame check sequence in it shows, that the packet had an error on
    /// the link: its octets may be any.
    pub damaged: bool,
    /// What the frame check sequence in the capture, or the capture's word, says of the frame.
    pub check: FrameCheck,
}

/// What the statistics block of an interface says, all counted from the start of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of the interface in its section.
    pub interface: u32,
    /// When it was read, as in [`Record::time_ns`].
    pub time_ns: Option<u64>,
    /// Packets received by the interface.
    pub received: Option<u64>,
    /// Packets dropped by the interface for want of room.
    pub if_drop: Option<u64>,
    /// Packets dropped by the operating system.
    pub os_drop: Option<u64>,
    /// Packets that the filter let through.
    pub accepted: Option<u64>,
    /// Packets given to the user.
    pub delivered: Option<u64>,
}

/// What stands next in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing can be said before the data are this long, counted from their start. Never more
    /// than the largest record and its header.
    Need(usize),
    /// A packet.
    Packet {
        /// Octets to take off the front of the data.
        consumed: usize,
        /// What it is.
        record: Record<'a>,
    },
    /// A new section starts: the interfaces before it are no longer valid, and their numbers
    /// start again. The global header of pcap is one too.
    Section {
        /// Octets to take off the front of the data.
        consumed: usize,
    },
    /// An interface is described. pcap has one, behind its section.
    Interface {
        /// Octets to take off the front of the data.
        consumed: usize,
        /// Its number in the section.
        interface: u32,
        /// Its link type.
        link: Result<LinkType, UnknownLink>,
        /// Octets of each packet that are captured, at most; 0 is no limit. Real files hold
        /// absurd numbers here.
        snap_len: u32,
        /// Its name, in UTF-8 as a rule; none in pcap.
        name: Option<&'a [u8]>,
    },
    /// Counters of an interface.
    Statistics {
        /// Octets to take off the front of the data.
        consumed: usize,
        /// What they are.
        statistics: Statistics,
    },
    /// Something that is of no concern here.
    Skipped {
        /// Octets to take off the front of the data.
        consumed: usize,
    },
    /// The file ends inside a record: whoever wrote it was interrupted. What came before is
    /// good.
    TruncatedEnd {
        /// Offset in the file of the record that is not whole.
        offset: u64,
        /// Octets that there are of it.
        found: usize,
        /// Octets that it takes, as far as that is known.
        expected: usize,
    },
    /// The file ends where a record does.
    End,
}

/// Reads a capture file step by step.
#[derive(Clone, Debug)]
pub struct Parser {
    limits: Limits,
    /// Offset in the file of the data that come next.
    offset: u64,
    file: File,
}

#[derive(Clone, Debug)]
enum File {
    /// The first octets have not been seen.
    Unknown,
    Classic(classic::Header),
    NextGeneration(next_generation::Section),
}

impl Parser {
    /// A parser at the start of a file.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, offset: 0, file: File::Unknown }
    }

    /// Offset in the file, after decompression, of what comes next.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// What stands at the start of `data`, which are the octets of the file from where the last
    /// step ended; the step says how many of them it took. `at_end` says that there are no more
    /// behind them.
    ///
    /// # Errors
    /// What was expected and what was found instead, with the offset in the file. The parser is
    /// as it was before; there is no way on in this file.
    #[inline]
    pub fn next<'a>(&mut self, data: &'a [u8], at_end: bool) -> Result<Step<'a>, Error> {
        match self.packet(data) {
            Some((consumed, record)) => {
                self.passed(consumed);
                Ok(Step::Packet { consumed, record })
            }
            None => self.step(data, at_end),
        }
    }

    /// The packet at the start of `data` and the octets that it takes, where that is quickly said;
    /// where it is not, [`Parser::next`] says what there is. The parser stays where it is: tell it
    /// what was taken with [`Parser::passed`], once for many packets.
    #[inline]
    #[must_use]
    pub fn packet<'a>(&self, data: &'a [u8]) -> Option<(usize, Record<'a>)> {
        let File::Classic(header) = &self.file else { return None };
        header.record(data, self.limits)
    }

    /// So many octets have been taken by packets that [`Parser::packet`] gave.
    #[inline]
    pub fn passed(&mut self, octets: usize) {
        self.offset += length(octets);
    }

    #[inline(never)]
    fn step<'a>(&mut self, data: &'a [u8], at_end: bool) -> Result<Step<'a>, Error> {
        let step = match &mut self.file {
            File::Unknown => self.start(data, at_end)?,
            File::Classic(header) => header.next(data, self.limits, self.offset)?,
            File::NextGeneration(section) => section.next(data, self.limits, self.offset)?,
        };
        Ok(match step {
            Step::Need(_) if at_end && data.is_empty() => Step::End,
            Step::Need(expected) if at_end => {
                Step::TruncatedEnd { offset: self.offset, found: data.len(), expected }
            }
            step => {
                self.offset += length(step.consumed());
                step
            }
        })
    }

    fn start<'a>(&mut self, data: &'a [u8], at_end: bool) -> Result<Step<'a>, Error> {
        let short = |need| {
            if at_end {
                Err(Error::new(0, Expected::FileHeader { found: data.len() }))
            } else {
                Ok(Step::Need(need))
            }
        };
        let Some(magic) = data.first_chunk::<SNIFF_LEN>() else {
            return short(SNIFF_LEN);
        };
        match sniff(magic) {
            Format::Pcap => {
                let Some(octets) = data.first_chunk() else {
                    return short(classic::HEADER_LEN);
                };
                self.file = File::Classic(classic::Header::new(octets)?);
                Ok(Step::Section { consumed: classic::HEADER_LEN })
            }
            Format::PcapNg => {
                let mut section = next_generation::Section::default();
                let step = section.next(data, self.limits, 0)?;
                if let Step::Need(need) = step {
                    return short(need);
                }
                self.file = File::NextGeneration(section);
                Ok(step)
            }
            found @ (Format::Gzip | Format::Zstd | Format::Unknown) => {
                Err(Error::new(0, Expected::Magic { found: *magic, format: found }))
            }
        }
    }
}

impl Step<'_> {
    /// Octets to take off the front of the data before the next call.
    #[must_use]
    pub const fn consumed(&self) -> usize {
        match *self {
            Self::Packet { consumed, .. }
            | Self::Section { consumed }
            | Self::Interface { consumed, .. }
            | Self::Statistics { consumed, .. }
            | Self::Skipped { consumed } => consumed,
            Self::Need(_) | Self::TruncatedEnd { .. } | Self::End => 0,
        }
    }
}

/// Byte order of a file or section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    fn u16(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        }
    }

    #[inline]
    fn u32(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }

    /// Four numbers in a row: asked for the order once.
    #[inline]
    fn four(self, octets: &[u8; 16]) -> [u32; 4] {
        let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3] = *octets;
        let four = [[a0, a1, a2, a3], [b0, b1, b2, b3], [c0, c1, c2, c3], [d0, d1, d2, d3]];
        match self {
            Self::Little => four.map(u32::from_le_bytes),
            Self::Big => four.map(u32::from_be_bytes),
        }
    }

    fn u64(self, octets: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(octets),
            Self::Big => u64::from_be_bytes(octets),
        }
    }

    /// The number of four octets at `at`, or nothing where `data` ends before it does.
    fn u32_at(self, data: &[u8], at: usize) -> Option<u32> {
        let octets = data.get(at..)?.first_chunk()?;
        Some(self.u32(*octets))
    }

    /// The number of two octets at `at`, or nothing where `data` ends before it does.
    fn u16_at(self, data: &[u8], at: usize) -> Option<u16> {
        let octets = data.get(at..)?.first_chunk()?;
        Some(self.u16(*octets))
    }
}

/// A length in memory as an offset in a file.
const fn length(len: usize) -> u64 {
    // No machine has addresses of more than 64 bits.
    len as u64
}

/// A length in a file as one in memory; where memory is smaller, more than there can be.
fn size(len: u32) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// What a pcapng section says of an interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Result<LinkType, UnknownLink>,
    snap_len: u32,
    resolution: next_generation::Resolution,
    /// Seconds to be added to every time.
    offset_s: i64,
    /// Octets of the frame check sequence behind each packet, 0 for none.
    check_len: u32,
}

type Interfaces = Vec<Interface>;
