//! A second account of a sequence, as slow and obvious as it can be: the missing positions are a
//! list. It is what the benchmark's inputs are checked by before their times are believed.
//!
//! Positions are counted from the stream's first packet and never wrap, so nothing here knows
//! 24-bit numbers; and it refuses the steps that its generator never makes.

use serde::{Deserialize, Serialize};

/// Sums over all streams of one capture, each stream closed at the end of the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Streams with at least one request.
    pub streams: u64,
    /// Packets in the capture, responses included.
    pub packets: u64,
    /// Responses, which no sequence counts.
    pub responses: u64,
    /// Requests.
    pub requests: u64,
    /// Positions passed over.
    pub skipped: u64,
    /// Of these, seen afterwards inside the window.
    pub filled: u64,
    /// Of these, left behind by the window.
    pub expired: u64,
    /// Of these, still in the window at the end.
    pub abandoned: u64,
    /// Packets at a position that had been seen.
    pub repeated: u64,
    /// Packets at a position behind the window.
    pub late: u64,
}

/// One stream.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    high: Option<u32>,
    missing: Vec<u32>,
}

impl Sequence {
    /// Takes a request at a position, the first of all at 0.
    ///
    /// # Panics
    ///
    /// Where the position is more than `window` ahead: the generator has no such step.
    pub fn observe(&mut self, position: u32, window: u32, totals: &mut Totals) {
        totals.requests += 1;
        let Some(high) = self.high else {
            totals.streams += 1;
            self.high = Some(position);
            return;
        };
        let low = |high: u32| (high + 1).saturating_sub(window);
        if position > high {
            assert!(
                position - high <= window,
                "position {position} is beyond the window of {high}"
            );
            totals.skipped += u64::from(position - high - 1);
            self.missing.extend(high + 1..position);
            self.high = Some(position);
            let before = self.missing.len();
            self.missing.retain(|missing| *missing >= low(position));
            totals.expired += (before - self.missing.len()) as u64;
        } else if position < low(high) {
            totals.late += 1;
        } else if let Some(found) = self.missing.iter().position(|missing| *missing == position) {
            self.missing.remove(found);
            totals.filled += 1;
        } else {
            totals.repeated += 1;
        }
    }

    /// Ends the stream.
    pub fn close(self, totals: &mut Totals) {
        totals.abandoned += self.missing.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(window: u32, positions: &[u32]) -> Totals {
        let mut totals = Totals::default();
        let mut sequence = Sequence::default();
        for position in positions {
            sequence.observe(*position, window, &mut totals);
        }
        sequence.close(&mut totals);
        totals
    }

    #[test]
    fn each_step_adds_to_its_own_sum() {
        let found = totals(4, &[0, 2, 1, 1, 5, 8, 2, 9]);
        // 1, 3, 4, 6 and 7 are passed over; 1 is seen afterwards; 3 and 4 fall behind at 8.
        let expected = Totals {
            streams: 1,
            requests: 8,
            skipped: 5,
            filled: 1,
            repeated: 1,
            expired: 2,
            late: 1,
            abandoned: 2,
            ..Totals::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_position_behind_the_window_is_late_and_the_lowest_in_it_is_not() {
        assert_eq!(totals(3, &[0, 1, 2, 3, 1]).repeated, 1);
        assert_eq!(totals(3, &[0, 1, 2, 3, 0]).late, 1);
    }

    #[test]
    #[should_panic(expected = "beyond the window")]
    fn a_step_beyond_the_window_is_refused() {
        totals(4, &[0, 5]);
    }

    #[test]
    fn a_step_of_the_whole_window_is_taken() {
        assert_eq!(totals(4, &[0, 4]).skipped, 3);
    }
}
