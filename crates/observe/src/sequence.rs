//! The observation of one epoch: Table 1 of the sequence draft (section 5). Start here.
//!
//! A [`Sequence`] follows the PSNs of one stream from its first request on. It knows positions,
//! not packets: a position is skipped when the high-water position passes it, and from then on
//! filled, expired or still pending. Why a position was not seen, or seen twice, cannot be known
//! from here, and nothing here says so. Streams, time, reports and the causes of closure other
//! than a serial one belong to [`crate::meter`].

use core::mem::offset_of;

use crate::serial::{Distance, MODULUS, Psn};
use crate::window::{Labels, Window};

/// No position and no counter goes beyond 2^62: an epoch ends before. Sums of four counters then
/// fit 64 bits, and an epoch lasts for a century at a thousand million packets a second.
pub const COUNT_MAX: u64 = 1 << 62;

/// The state of one epoch.
///
/// Positions are extended integers whose low 24 bits are the PSN; the first lies at least 2^24
/// above zero, so that every position behind it can be named.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// H, the high-water position.
    high: u64,
    /// No position before this one is pending.
    oldest: u64,
    /// Bits of the positions in `[L, H]`; none until the first position is skipped.
    labels: Option<Labels>,
    /// S, the position of the first request.
    start: u64,
    skipped: u64,
    filled: u64,
    expired: u64,
    repeated: u64,
    late: u64,
}

/// What one request was to the epoch: a row of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ahead of H by no more than W: H advanced, the positions in between were skipped, and
    /// pending positions that fell out of the window expired.
    Advanced {
        /// Positions newly pending.
        skipped: u32,
        /// Pending positions that the window left behind.
        expired: u32,
    },
    /// At a pending position, which is now seen.
    Filled,
    /// At a position that had been seen.
    Repeated,
    /// Before S or before L: what was seen there is not known.
    UnclassifiedLate,
    /// Nothing was changed: the request does not belong to this epoch. Close it with
    /// serialDiscontinuity and begin another with the request.
    Discontinuity(Discontinuity),
    /// Nothing was changed: a counter or position would pass [`COUNT_MAX`]. Close and begin
    /// another epoch with the request.
    Exhausted,
    /// Nothing was changed: labels are needed for the first time. Call
    /// [`Sequence::give_labels`] and step again, or close for want of memory.
    NeedsLabels,
}

impl Step {
    /// Whether the request was counted in the epoch.
    #[inline]
    pub const fn is_accounted(self) -> bool {
        matches!(
            self,
            Self::Advanced { .. } | Self::Filled | Self::Repeated | Self::UnclassifiedLate
        )
    }
}

/// Why a request cannot be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discontinuity {
    /// Exactly half the serial space away.
    Ambiguous,
    /// This many positions ahead, more than W.
    Jump(u32),
}

impl Sequence {
    /// Octets from the start in which everything stands that a request in order touches.
    pub(crate) const IN_ORDER_OCTETS: usize = {
        let (high, oldest) = (offset_of!(Self, high), offset_of!(Self, oldest));
        size_of::<u64>() + if high > oldest { high } else { oldest }
    };

    /// Row 1: the first request of an epoch. S = H = `psn`, and it alone is seen.
    // SEQ-5.3, SEQ-5.1: nothing before S is presumed.
    pub fn begin(psn: Psn) -> Self {
        Self::begin_at(u64::from(MODULUS) + u64::from(psn.get()))
    }

    /// As [`Sequence::begin`], at an extended position of the caller's choice: for showing what
    /// happens near [`COUNT_MAX`]. The PSN is the position modulo 2^24.
    ///
    /// # Panics
    /// A position below 2^24 or above [`COUNT_MAX`]: only our own code chooses one.
    pub fn begin_at(position: u64) -> Self {
        assert!(position >= u64::from(MODULUS) && position <= COUNT_MAX, "no such start position");
        Self {
            high: position,
            oldest: position,
            labels: None,
            start: position,
            skipped: 0,
            filled: 0,
            expired: 0,
            repeated: 0,
            late: 0,
        }
    }

    /// Accounts a request to the epoch, or says why it cannot be.
    ///
    /// `window` is the same for the whole epoch. Costs a few instructions in order, and a word
    /// operation for each 64 positions skipped or expired.
    // SEQ-5.3, SEQ-9.1
    #[inline]
    pub fn step(&mut self, psn: Psn, window: Window) -> Step {
        match psn.distance_from(Psn::at(self.high)) {
            // In order, and nothing pending falls out of the window.
            Distance::Ahead(1)
                if self.high < COUNT_MAX
                    && self.high + 2 <= self.oldest + u64::from(window.get()) =>
            {
                self.high += 1;
                Step::Advanced { skipped: 0, expired: 0 }
            }
            Distance::Ahead(d) if d <= window.get() => self.advance(d, window),
            Distance::Ahead(d) => Step::Discontinuity(Discontinuity::Jump(d)),
            Distance::Ambiguous => Step::Discontinuity(Discontinuity::Ambiguous),
            Distance::Behind(d) => self.look_back(d, window),
        }
    }

    /// Accounts the first of these requests at once, for as long as each stands right ahead of the
    /// one before it and nothing pending falls out of the window; says how many. It is what
    /// [`Sequence::step`] would make of them.
    // SEQ-5.3
    #[inline]
    pub fn in_order(&mut self, psns: impl Iterator<Item = Psn>, window: Window) -> usize {
        let last = COUNT_MAX.min(self.oldest + u64::from(window.get()) - 1);
        let mut high = self.high;
        let mut followed = 0;
        for psn in psns {
            if high >= last || psn != Psn::at(high + 1) {
                break;
            }
            high += 1;
            followed += 1;
        }
        self.high = high;
        followed
    }

    /// Row 3.
    fn advance(&mut self, d: u32, window: Window) -> Step {
        let high = self.high + u64::from(d);
        // SEQ-5.4
        if high > COUNT_MAX {
            return Step::Exhausted;
        }
        if d > 1 && self.labels.is_none() {
            return Step::NeedsLabels;
        }
        let skipped = d - 1;
        let expired = self.expire_before(retained_from(self.start, high, window));
        if let Some(labels) = &mut self.labels {
            labels.pend(self.high + 1, u64::from(skipped));
        }
        // Each sum is at most the distance from S to H, checked above.
        self.high = high;
        self.skipped += u64::from(skipped);
        // SEQ-5.6: only here does anything expire.
        self.expired += u64::from(expired);
        if self.pending() == 0 {
            self.oldest = high + 1;
        }
        Step::Advanced { skipped, expired }
    }

    /// Takes away the labels below `low`, the lower end of the window to come: labels are a ring,
    /// and those that fall out go before new ones take their place. Says how many were pending.
    fn expire_before(&mut self, low: u64) -> u32 {
        let Some(labels) = &mut self.labels else { return 0 };
        let end = low.min(self.high + 1);
        if end <= self.oldest {
            return 0;
        }
        let expired = labels.forget(self.oldest, end - self.oldest);
        self.oldest = labels.first_pending(end, self.high + 1);
        expired
    }

    /// Rows 4, 5 and 6.
    fn look_back(&mut self, d: u32, window: Window) -> Step {
        let position = self.high - u64::from(d);
        if position < retained_from(self.start, self.high, window) {
            return count(&mut self.late, Step::UnclassifiedLate);
        }
        match &mut self.labels {
            Some(labels) if labels.is_pending(position) => {
                labels.see(position);
                self.filled += 1;
                Step::Filled
            }
            _ => count(&mut self.repeated, Step::Repeated),
        }
    }

    /// Gives the room that [`Step::NeedsLabels`] asked for.
    pub fn give_labels(&mut self, labels: Labels) {
        self.labels = Some(labels);
    }

    /// Octets of label memory that the epoch holds.
    pub fn labels_size(&self) -> u64 {
        self.labels.as_ref().map_or(0, Labels::size)
    }

    /// The counters as they stand in an epoch that goes on.
    // SEQ-5.5: reading changes nothing.
    pub fn counts(&self) -> Counts {
        Counts {
            skipped: self.skipped,
            filled: self.filled,
            expired: self.expired,
            abandoned: 0,
            pending: self.pending(),
            repeated: self.repeated,
            // One for the first request, one for each advance (H moved by one for it and by one
            // for each position that it skipped), and the three kinds that do not advance.
            requests: 1 + (self.high - self.start) - self.skipped
                + self.filled
                + self.repeated
                + self.late,
            unclassified_late: self.late,
        }
    }

    /// The counters of the closed epoch: what was pending is abandoned.
    // SEQ-5.5, SEQ-4.12
    pub fn close(self) -> Counts {
        let open = self.counts();
        Counts { abandoned: u64::from(open.pending), pending: 0, ..open }
    }

    // SEQ-5.6: a skipped position is in exactly one place.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most W - 1 positions are pending")]
    fn pending(&self) -> u32 {
        (self.skipped - self.filled - self.expired) as u32
    }
}

/// L = max(S, H - W + 1).
#[inline]
fn retained_from(start: u64, high: u64, window: Window) -> u64 {
    start.max((high + 1).saturating_sub(u64::from(window.get())))
}

// SEQ-5.4
fn count(counter: &mut u64, step: Step) -> Step {
    if *counter >= COUNT_MAX {
        return Step::Exhausted;
    }
    *counter += 1;
    step
}

/// The counters of a snapshot, as the draft's elements have them (sequence draft, 8.5 to 8.12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Positions introduced as pending.
    pub skipped: u64,
    /// Pending positions at which a request then arrived.
    pub filled: u64,
    /// Pending positions that the window left behind.
    pub expired: u64,
    /// Positions that were pending when the epoch closed; 0 in an epoch that goes on.
    pub abandoned: u64,
    /// Pending positions, 0 to W - 1; 0 in a closed epoch.
    pub pending: u32,
    /// Requests at positions already seen.
    pub repeated: u64,
    /// All accounted requests.
    pub requests: u64,
    /// Requests before S or before L.
    pub unclassified_late: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(window: u32, psns: &[u32]) -> Sequence {
        let window = Window::new(window).unwrap();
        let mut sequence = Sequence::begin(Psn::new(psns[0]));
        for psn in &psns[1..] {
            let step = sequence.step(Psn::new(*psn), window);
            if step == Step::NeedsLabels {
                sequence.give_labels(Labels::new(window));
                sequence.step(Psn::new(*psn), window);
            }
        }
        sequence
    }

    // SEQ-9.1, SEQ-5.3
    #[test]
    fn the_examples_of_section_9_hold() {
        let filled = run(4, &[100, 102, 101, 103, 102]).counts();
        let expected =
            Counts { requests: 5, skipped: 1, filled: 1, repeated: 1, ..Counts::default() };
        assert_eq!(filled, expected);

        let before_start = run(4, &[100, 99, 100]).counts();
        let expected =
            Counts { requests: 3, unclassified_late: 1, repeated: 1, ..Counts::default() };
        assert_eq!(before_start, expected);

        let sequence = run(4, &[100, 102, 106]);
        let expected =
            Counts { requests: 3, skipped: 4, expired: 1, pending: 3, ..Counts::default() };
        assert_eq!(sequence.counts(), expected);
        assert_eq!(sequence.close(), Counts { pending: 0, abandoned: 3, ..expected });

        let wrap = run(4, &[16_777_214, 16_777_215, 0, 1]).counts();
        assert_eq!(wrap, Counts { requests: 4, ..Counts::default() });
    }

    // SEQ-9.1, SEQ-5.2
    #[test]
    fn a_jump_beyond_the_window_or_to_the_opposite_position_changes_nothing() {
        let w1 = Window::new(1).unwrap();
        let mut sequence = Sequence::begin(Psn::new(7));
        let before = sequence.counts();
        let jump = Step::Discontinuity(Discontinuity::Jump(2));
        assert_eq!(sequence.step(Psn::new(9), w1), jump);
        let half = Step::Discontinuity(Discontinuity::Ambiguous);
        assert_eq!(sequence.step(Psn::new(7 + (1 << 23)), w1), half);
        assert_eq!(sequence.counts(), before);
        let one = Step::Advanced { skipped: 0, expired: 0 };
        assert_eq!(sequence.step(Psn::new(8), w1), one);
    }

    #[test]
    fn a_stream_in_order_holds_no_labels() {
        let sequence = run(1024, &[5, 6, 7, 8, 7]);
        assert_eq!(sequence.labels_size(), 0);
        assert_eq!(run(1024, &[5, 7]).labels_size(), 128);
    }

    #[test]
    fn asking_for_labels_changes_nothing() {
        let mut sequence = Sequence::begin(Psn::new(1));
        let before = sequence.counts();
        assert_eq!(sequence.step(Psn::new(3), Window::new(4).unwrap()), Step::NeedsLabels);
        assert_eq!(sequence.counts(), before);
    }

    // SEQ-5.4
    #[test]
    fn a_position_never_passes_its_limit() {
        let window = Window::new(8).unwrap();
        let mut sequence = Sequence::begin_at(COUNT_MAX - 1);
        let two_ahead = sequence.step(Psn::at(COUNT_MAX + 1), window);
        assert_eq!(two_ahead, Step::Exhausted);
        let advanced = Step::Advanced { skipped: 0, expired: 0 };
        assert_eq!(sequence.step(Psn::at(COUNT_MAX), window), advanced);
        assert_eq!(sequence.step(Psn::at(COUNT_MAX + 1), window), Step::Exhausted);
        assert_eq!(sequence.counts().requests, 2);
    }

    // SEQ-5.4
    #[test]
    fn counters_that_do_not_advance_never_pass_their_limit() {
        let window = Window::new(8).unwrap();
        let mut sequence = Sequence::begin(Psn::new(50));
        sequence.repeated = COUNT_MAX - 1;
        sequence.late = COUNT_MAX - 1;
        assert_eq!(sequence.step(Psn::new(50), window), Step::Repeated);
        assert_eq!(sequence.step(Psn::new(50), window), Step::Exhausted);
        assert_eq!(sequence.step(Psn::new(49), window), Step::UnclassifiedLate);
        assert_eq!(sequence.step(Psn::new(49), window), Step::Exhausted);
        assert_eq!(sequence.counts().requests, 1 + 2 * COUNT_MAX);
    }

    #[test]
    fn the_largest_window_is_followed_to_its_edge() {
        let w = crate::window::WINDOW_MAX;
        let sequence = run(w, &[0, w, 1, 0]);
        let expected = Counts {
            requests: 4,
            skipped: u64::from(w) - 1,
            filled: 1,
            unclassified_late: 1,
            pending: w - 2,
            ..Counts::default()
        };
        assert_eq!(sequence.counts(), expected);
    }
}
