//! Priority-based flow control frames (IEEE 802.1Qbb, now 802.1Q clause 36; format in IEEE
//! 802.3, annex 31D).
//!
//! A valid frame goes to 01:80:C2:00:00:01, has EtherType 0x8808 without a tag before it, opcode
//! 0x0101, and room for the vector and eight times. The upper octet of the class-enable vector
//! is reserved: it is kept, and it changes nothing. Any source address will do, zero too.
//!
//! The frame check sequence is not asked here: where it stands in a capture, [`crate::capture`]
//! checks it. How long a priority stood still is not known here: a
//! quantum depends on the speed of the port, and a pause can be ended or refreshed.

/// EtherType of MAC control.
pub const MAC_CONTROL: u16 = 0x8808;
/// MAC control opcode of priority-based flow control.
pub const OPCODE: u16 = 0x0101;
/// Where PFC frames are sent, an address that no bridge forwards.
pub const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];

/// Octets up to the end of the class-enable vector.
const VECTOR_END: usize = 18;
/// Octets up to the end of the eighth time. The sender's MAC fills the frame up to 60 octets,
/// which a capture on the sending host does not see.
const PFC_LEN: usize = 34;

/// A valid PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Source address, zero too.
    pub source: [u8; 6],
    /// Class-enable vector: bit n is for priority n.
    pub enabled: u8,
    /// The vector's upper octet, reserved.
    pub reserved: u8,
    /// Times in quanta of 512 bit times for the priorities 0 to 7; nothing where the capture
    /// ends before the last one. Never a measured pause.
    pub quanta: Option<[u16; 8]>,
}

impl Pfc {
    /// Whether the frame counts for this priority: its bit is set, whatever the time.
    // PFC-count.3
    #[inline]
    #[must_use]
    pub const fn counts_for(&self, priority: u8) -> bool {
        priority < 8 && self.enabled & (1 << priority) != 0
    }

    /// The priorities whose bit is set, in ascending order. // PFC-count.3
    pub fn priorities(&self) -> impl Iterator<Item = u8> + use<> {
        let enabled = self.enabled;
        (0..8).filter(move |priority| enabled & (1 << priority) != 0)
    }
}

/// Why a frame is no valid PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotPfc {
    /// Another EtherType.
    OtherEtherType(u16),
    /// Another MAC control opcode, 0x0001 (PAUSE) among them.
    OtherOpcode(u16),
    /// Sent to another address.
    OtherDestination,
    /// Shorter on the wire than vector and times.
    TooShort,
    /// The capture ends before the vector does, and nothing in front of it says that it is none.
    Truncated,
}

/// Reads a PFC frame, of which `frame` was captured and which had `original_len` octets on the
/// wire, both without a frame check sequence.
///
/// # Errors
/// Why it is not to be counted. // PFC-count.4
pub fn parse(frame: &[u8], original_len: usize) -> Result<Pfc, NotPfc> {
    let original_len = original_len.max(frame.len());
    // Each part that was captured is asked, so that a frame cut behind it is not taken for one that
    // could have been anything.
    match part(frame, 12).map(|octets| u16::from_be_bytes(*octets)) {
        None | Some(MAC_CONTROL) => {}
        Some(other) => return Err(NotPfc::OtherEtherType(other)),
    }
    match part(frame, 14).map(|octets| u16::from_be_bytes(*octets)) {
        None | Some(OPCODE) => {}
        Some(other) => return Err(NotPfc::OtherOpcode(other)),
    }
    if part(frame, 0).is_some_and(|destination| *destination != DESTINATION) {
        return Err(NotPfc::OtherDestination);
    }
    if original_len < PFC_LEN {
        return Err(NotPfc::TooShort);
    }
    let Some([_, _, _, _, _, _, source @ .., _, _, _, _, reserved, enabled]) =
        frame.first_chunk::<VECTOR_END>()
    else {
        return Err(NotPfc::Truncated);
    };
    let (source, reserved, enabled) = (*source, *reserved, *enabled);
    Ok(Pfc { source, enabled, reserved, quanta: frame.get(VECTOR_END..).and_then(quanta) })
}

/// `N` octets from `at` on, where they were captured.
fn part<const N: usize>(frame: &[u8], at: usize) -> Option<&[u8; N]> {
    frame.get(at..)?.first_chunk()
}

fn quanta(octets: &[u8]) -> Option<[u16; 8]> {
    let octets = octets.first_chunk::<16>()?;
    let mut quanta = [0; 8];
    for (quantum, pair) in quanta.iter_mut().zip(octets.as_chunks::<2>().0) {
        *quantum = u16::from_be_bytes(*pair);
    }
    Some(quanta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// 60 octets, as on the wire: priorities 0, 3 and 7, the first with a time of zero.
    fn frame() -> Vec<u8> {
        let mut frame = Vec::new();
        frame.extend(DESTINATION);
        frame.extend([0x02, 0, 0, 0, 0, 9]);
        frame.extend([0x88, 0x08, 0x01, 0x01, 0x00, 0b1000_1001]);
        frame.extend([0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0xff, 0xff]);
        frame.resize(60, 0);
        frame
    }

    #[test]
    fn a_set_bit_counts_whatever_its_time() {
        let pfc = parse(&frame(), 60).expect("valid");
        assert_eq!(pfc.priorities().collect::<Vec<_>>(), [0, 3, 7]); // PFC-count.3
        for priority in 0..=8 {
            assert_eq!(pfc.counts_for(priority), [0, 3, 7].contains(&priority));
        }
        assert_eq!(pfc.quanta, Some([0, 1, 2, 3, 4, 5, 6, 0xffff]));
        assert_eq!(pfc.source, [2, 0, 0, 0, 0, 9]);
    }

    #[test]
    fn a_zero_source_address_counts() {
        let mut octets = frame();
        octets[6..12].fill(0);
        assert!(parse(&octets, 60).is_ok());
    }

    #[test]
    fn the_reserved_octet_of_the_vector_changes_nothing() {
        let mut octets = frame();
        octets[16] = 0xff;
        let pfc = parse(&octets, 60).expect("valid");
        assert_eq!((pfc.enabled, pfc.reserved), (0b1000_1001, 0xff));
    }

    #[test]
    fn pause_and_other_frames_do_not_count() {
        for (at, octet, why) in [
            (14, 0x00, NotPfc::OtherOpcode(0x0001)), // PFC-count.4
            (15, 0x02, NotPfc::OtherOpcode(0x0102)),
            (13, 0x09, NotPfc::OtherEtherType(0x8809)),
            (5, 0x02, NotPfc::OtherDestination),
            (0, 0x00, NotPfc::OtherDestination),
        ] {
            let mut octets = frame();
            octets[at] = octet;
            assert_eq!(parse(&octets, 60), Err(why));
        }
    }

    #[test]
    fn a_frame_without_room_for_eight_times_does_not_count() {
        let octets = frame();
        assert_eq!(parse(&octets[..33], 33), Err(NotPfc::TooShort));
        assert!(parse(&octets[..34], 34).is_ok());
        assert!(parse(&octets[..35], 35).is_ok());
        assert_eq!(parse(&[], 0), Err(NotPfc::TooShort));
    }

    #[test]
    fn what_a_cut_frame_shows_is_asked() {
        let octets = frame();
        for len in 0..VECTOR_END {
            assert_eq!(parse(&octets[..len], 60), Err(NotPfc::Truncated), "{len}");
        }
        for (at, from, why) in [
            (12, 14, NotPfc::OtherEtherType(0x7708)),
            (15, 16, NotPfc::OtherOpcode(0x01fe)),
            (4, 6, NotPfc::OtherDestination),
        ] {
            let mut octets = frame();
            octets[at] ^= 0xff;
            assert_eq!(parse(&octets[..from - 1], 60), Err(NotPfc::Truncated));
            for len in from..VECTOR_END {
                assert_eq!(parse(&octets[..len], 60), Err(why), "{len}");
            }
        }
    }

    #[test]
    fn a_capture_that_ends_before_the_vector_cannot_tell() {
        let octets = frame();
        assert_eq!(parse(&octets[..17], 60), Err(NotPfc::Truncated));
        let pfc = parse(&octets[..18], 60).expect("the vector is there");
        assert_eq!((pfc.enabled, pfc.quanta), (0b1000_1001, None));
        assert_eq!(parse(&octets[..33], 60).expect("valid").quanta, None);
        assert!(parse(&octets[..34], 60).expect("valid").quanta.is_some());
    }
}
