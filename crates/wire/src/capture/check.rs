//! Frame check sequences that stand in a capture behind its frames (IEEE 802.3, 3.2.9).
//!
//! Most captures have none: whoever captured took them off and kept the frames whose sequence was
//! right. Where a capture says that it has them, they are taken off here and checked, so that no
//! reader of a frame meets its sequence. Only sequences of four octets are known: one of another
//! length belongs to no link that is read here, and stays where it is, unchecked.

use super::{Record, size};
use crate::frame::LinkType;

/// Octets of a frame check sequence.
const LEN: u32 = 4;

/// What is known of a frame by its check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FrameCheck {
    /// Nothing: the capture has no sequence, and says nothing of it.
    #[default]
    Untold,
    /// The sequence stands in the capture and is right.
    Good,
    /// The sequence stands in the capture and is wrong, or the capture says of the frame that it
    /// was none by the rules of the link: a wrong sequence, too short, too long, not of whole
    /// octets, with symbols that are none.
    Bad,
    /// The capture says that there is a sequence, and it cannot be checked: the capture cut it or
    /// the frame, or it is not one of Ethernet.
    Unchecked,
}

impl Record<'_> {
    /// The record without the check sequence of `len` octets that the capture says is behind it; of
    /// none for 0.
    // PFC-count.4
    #[cold]
    pub(super) fn without_check_sequence(self, len: u32) -> Self {
        if len == 0 {
            return self;
        }
        if len != LEN {
            return self.found(FrameCheck::Unchecked);
        }
        let Some(frame_len) = self.original_len.checked_sub(LEN) else {
            // No frame is shorter than its sequence.
            return Self { damaged: true, ..self };
        };
        let captured = self.data.len();
        if captured > size(self.original_len) {
            // Its lengths cannot be, so nobody knows where its sequence is.
            return self.found(FrameCheck::Unchecked);
        }
        let (data, sequence) = self.data.split_at(captured.min(size(frame_len)));
        let record = Self { data, original_len: frame_len, ..self };
        match <[u8; 4]>::try_from(sequence) {
            Ok(sequence) if self.link == Ok(LinkType::Ethernet) => {
                let right = crc32fast::hash(data) == u32::from_le_bytes(sequence);
                record.found(if right { FrameCheck::Good } else { FrameCheck::Bad })
            }
            _ => record.found(FrameCheck::Unchecked),
        }
    }

    /// With what was found of its sequence, unless it is known to be bad.
    pub(super) fn found(self, check: FrameCheck) -> Self {
        let check = if self.check == FrameCheck::Bad { self.check } else { check };
        Self { check, damaged: self.damaged || check == FrameCheck::Bad, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const FRAME: [u8; 9] = *b"123456789";
    /// The well-known check value of CRC-32, in the order of the wire.
    const SEQUENCE: [u8; 4] = [0x26, 0x39, 0xf4, 0xcb];

    fn record(data: &[u8], original_len: u32) -> Record<'_> {
        Record {
            interface: 0,
            link: Ok(LinkType::Ethernet),
            time_ns: None,
            original_len,
            data,
            drops_before: None,
            outbound: false,
            damaged: false,
            check: FrameCheck::Untold,
        }
    }

    fn whole() -> Vec<u8> {
        [&FRAME[..], &SEQUENCE].concat()
    }

    // PFC-count.4
    #[test]
    fn a_sequence_is_taken_off_and_checked_where_it_and_the_frame_are_whole() {
        use FrameCheck::{Bad, Good, Unchecked};
        let octets = whole();
        let mut wrong = octets.clone();
        wrong[12] ^= 1;
        let mut changed = octets.clone();
        changed[0] ^= 0x80;
        for (data, original_len, left, check, damaged) in [
            (&octets[..], 13, 9, Good, false),
            (&wrong[..], 13, 9, Bad, true),
            (&changed[..], 13, 9, Bad, true),
            (&octets[..12], 13, 9, Unchecked, false),
            (&octets[..9], 13, 9, Unchecked, false),
            (&octets[..8], 13, 8, Unchecked, false),
            (&octets[..0], 13, 0, Unchecked, false),
        ] {
            let found = record(data, original_len).without_check_sequence(4);
            assert_eq!(found.data, &data[..left]);
            assert_eq!((found.original_len, found.check, found.damaged), (9, check, damaged));
        }
    }

    #[test]
    fn where_lengths_cannot_be_nothing_is_taken_off() {
        let octets = whole();
        let longer = record(&octets, 12).without_check_sequence(4);
        assert_eq!((longer.data.len(), longer.original_len), (13, 12));
        assert_eq!(longer.check, FrameCheck::Unchecked);
        for original_len in 0..4 {
            let short = record(&[], original_len).without_check_sequence(4);
            assert!(short.damaged, "{original_len} octets");
        }
    }

    #[test]
    fn another_length_and_another_link_are_not_checked() {
        let octets = whole();
        assert_eq!(record(&octets, 13).without_check_sequence(0), record(&octets, 13));
        for len in [1, 2, 3, 5, 8, 30, 255] {
            let found = record(&octets, 13).without_check_sequence(len);
            assert_eq!((found.data.len(), found.check), (13, FrameCheck::Unchecked), "{len}");
        }
        let cooked = Record { link: Ok(LinkType::Sll), ..record(&octets, 13) };
        let found = cooked.without_check_sequence(4);
        assert_eq!((found.data.len(), found.check), (9, FrameCheck::Unchecked));
    }

    #[test]
    fn what_the_capture_calls_bad_stays_so() {
        let octets = whole();
        let bad = record(&octets, 13).found(FrameCheck::Bad);
        assert!(bad.damaged);
        assert_eq!(bad.without_check_sequence(4).check, FrameCheck::Bad);
    }
}
