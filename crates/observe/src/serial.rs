//! Packet sequence numbers and the distance between two of them: 24-bit serial arithmetic
//! (sequence draft, section 5; RFC 1982 section 3.2 with SERIAL_BITS = 24).
//!
//! Knows nothing of windows or epochs.

/// Positions in the serial space, M = 2^24.
pub const MODULUS: u32 = 1 << 24;
const HALF: u32 = MODULUS / 2;

/// A packet sequence number, 0 to 2^24 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Psn(u32);

impl Psn {
    /// Takes the low 24 bits: a PSN has no others.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value & (MODULUS - 1))
    }

    /// The PSN of an extended position: its low 24 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the modulus is below 2^32")]
    pub const fn at(position: u64) -> Self {
        Self((position % MODULUS as u64) as u32)
    }

    /// The number, 0 to 2^24 - 1.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// How far this PSN stands from `high`, going the shorter way round.
    #[inline]
    pub const fn distance_from(self, high: Psn) -> Distance {
        let ahead = self.0.wrapping_sub(high.0) & (MODULUS - 1);
        // SEQ-5.2: exactly half the space away is neither ahead nor behind.
        if ahead == HALF {
            Distance::Ambiguous
        } else if ahead < HALF && ahead != 0 {
            Distance::Ahead(ahead)
        } else {
            Distance::Behind((MODULUS - ahead) & (MODULUS - 1))
        }
    }
}

/// Signed distance in positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// 1 to 2^23 - 1 positions ahead.
    Ahead(u32),
    /// 0 to 2^23 - 1 positions behind; 0 is the position itself.
    Behind(u32),
    /// Exactly 2^23 positions away: the order is not defined.
    Ambiguous,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(psn: u32, high: u32) -> Distance {
        Psn::new(psn).distance_from(Psn::new(high))
    }

    // SEQ-5.2
    #[test]
    fn distance_goes_the_shorter_way_round_and_half_is_ambiguous() {
        assert_eq!(distance(5, 5), Distance::Behind(0));
        assert_eq!(distance(6, 5), Distance::Ahead(1));
        assert_eq!(distance(4, 5), Distance::Behind(1));
        assert_eq!(distance(0, MODULUS - 1), Distance::Ahead(1));
        assert_eq!(distance(MODULUS - 1, 0), Distance::Behind(1));
        for high in [0, 1, HALF - 1, HALF, HALF + 1, MODULUS - 1] {
            assert_eq!(distance(high + HALF - 1, high), Distance::Ahead(HALF - 1));
            assert_eq!(distance(high + HALF, high), Distance::Ambiguous);
            assert_eq!(distance(high + HALF + 1, high), Distance::Behind(HALF - 1));
        }
    }

    #[test]
    fn a_psn_has_24_bits() {
        assert_eq!(Psn::new(u32::MAX).get(), MODULUS - 1);
        assert_eq!(Psn::new(MODULUS).get(), 0);
    }
}
