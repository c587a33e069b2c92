//! The message header, and finding messages in a stream or a file (RFC 7011, section 3.1; RFC 5655,
//! where a file is messages back to back).

use super::Error;

/// The version in a message header.
pub const VERSION: u16 = 10;
/// Octets of a message header.
pub const MESSAGE_HEADER_LEN: usize = 16;
/// Octets of a set header.
pub const SET_HEADER_LEN: usize = 4;
/// Octets of the longest message: its length field has 16 bits.
pub const MESSAGE_MAX: usize = 65535;
/// Octets of the longest record that a message holds.
pub const RECORD_MAX: usize = MESSAGE_MAX - MESSAGE_HEADER_LEN - SET_HEADER_LEN;

/// A message header (RFC 7011, section 3.1), without the version, which is always 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Octets of the message, header included: 16 to 65535.
    pub length: u16,
    /// Seconds since 1970 at which the message left the exporter.
    pub export_time: u32,
    /// Data Records sent before this message in this session and domain, modulo 2^32.
    pub sequence: u32,
    /// The Observation Domain.
    pub domain: u32,
}

/// What the start of a run of octets holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole message, and what comes behind it.
    Message {
        /// The message.
        octets: &'a [u8],
        /// What follows.
        rest: &'a [u8],
    },
    /// Nothing whole yet.
    NeedMore {
        /// How many octets the run must have in all before it makes sense to look again.
        total: usize,
    },
}

impl MessageHeader {
    /// Reads the header at the start of some octets.
    ///
    /// # Errors
    /// [`Error::Version`], [`Error::MessageLength`], and [`Error::NotOneMessage`] where there are
    /// fewer than 16 octets.
    pub fn read(octets: &[u8]) -> Result<Self, Error> {
        match frame(octets) {
            Err(error) => Err(error),
            Ok(_) if octets.len() < MESSAGE_HEADER_LEN => {
                Err(Error::NotOneMessage { expected: MESSAGE_HEADER_LEN, found: octets.len() })
            }
            Ok(_) => Ok(Self {
                length: u16_at(octets, 2),
                export_time: u32_at(octets, 4),
                sequence: u32_at(octets, 8),
                domain: u32_at(octets, 12),
            }),
        }
    }

    /// The header as octets.
    #[must_use]
    pub fn octets(&self) -> [u8; MESSAGE_HEADER_LEN] {
        let mut out = [0; MESSAGE_HEADER_LEN];
        out[0..2].copy_from_slice(&VERSION.to_be_bytes());
        out[2..4].copy_from_slice(&self.length.to_be_bytes());
        out[4..8].copy_from_slice(&self.export_time.to_be_bytes());
        out[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        out[12..16].copy_from_slice(&self.domain.to_be_bytes());
        out
    }
}

/// Finds the message at the start of a run of octets, of which more may follow. A version or a
/// length that cannot be is refused as soon as its octets are there.
///
/// # Errors
/// [`Error::Version`], [`Error::MessageLength`].
pub fn frame(octets: &[u8]) -> Result<Frame<'_>, Error> {
    if octets.len() >= 2 && u16_at(octets, 0) != VERSION {
        return Err(Error::Version { found: u16_at(octets, 0) });
    }
    if octets.len() < SET_HEADER_LEN {
        return Ok(Frame::NeedMore { total: MESSAGE_HEADER_LEN });
    }
    let found = u16_at(octets, 2);
    let total = usize::from(found);
    if total < MESSAGE_HEADER_LEN {
        return Err(Error::MessageLength { found });
    }
    match octets.split_at_checked(total) {
        Some((octets, rest)) => Ok(Frame::Message { octets, rest }),
        None => Ok(Frame::NeedMore { total }),
    }
}

/// The big-endian number at an offset that is known to be inside.
pub(super) fn u16_at(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// The big-endian number at an offset that is known to be inside.
pub(super) fn u32_at(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; 16] = [
        0, 10, 0, 18, // version, length
        0x5f, 0x5e, 0x10, 0x00, // export time
        0xff, 0xff, 0xff, 0xfe, // sequence
        0, 0, 0, 7, // domain
    ];

    #[test]
    fn a_header_is_read_and_written() {
        let header = MessageHeader {
            length: 18,
            export_time: 0x5f5e_1000,
            sequence: 0xffff_fffe,
            domain: 7,
        };
        assert_eq!(MessageHeader::read(&HEADER), Ok(header));
        assert_eq!(header.octets(), HEADER);
    }

    #[test]
    fn a_message_cut_at_any_octet_asks_for_more_and_never_errs() {
        // As when a socket hands over one octet at a time.
        let mut stream = std::vec::Vec::from(HEADER);
        stream.extend_from_slice(&[1, 2, 0, 10]);
        for cut in 0..18 {
            let total = if cut < 4 { 16 } else { 18 };
            assert_eq!(frame(&stream[..cut]), Ok(Frame::NeedMore { total }), "{cut}");
        }
        let whole = Frame::Message { octets: &stream[..18], rest: &[0, 10] };
        assert_eq!(frame(&stream), Ok(whole));
    }

    #[test]
    fn another_version_is_refused_at_its_second_octet_and_a_length_below_16_at_its_fourth() {
        assert_eq!(frame(&[0, 9]), Err(Error::Version { found: 9 }));
        assert_eq!(frame(&[22]), Ok(Frame::NeedMore { total: 16 }));
        assert_eq!(frame(&[0, 10, 0, 15]), Err(Error::MessageLength { found: 15 }));
        assert_eq!(frame(&[0, 10, 0, 16]), Ok(Frame::NeedMore { total: 16 }));
    }
}
