//! What is known of the capture's own completeness (sequence draft, section 3: capture gaps).
//!
//! A drop counter says only that packets were dropped between two of its readings, never when.
//! So an epoch that overlaps such a span carries captureDiscontinuity, whichever of its packets
//! the drops were among, and the final report of an epoch waits until every counter has been read
//! after it closed. [`Coverage`] holds those finals; [`MirrorSequence`] reads the sequence
//! numbers of mirror headers, which tell of each missing packet at once.

use alloc::{collections::BTreeMap, collections::VecDeque, vec::Vec};

/// Something that is closed and carries flags: what [`Coverage`] can hold back.
pub trait Qualify {
    /// Notes why nothing says that it was complete: its final report carries captureDiscontinuity.
    fn qualify(&mut self, gap: Gap);
}

/// What stands against the completeness of an epoch that had closed before it was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gap {
    /// A drop counter grew in a span that the epoch overlaps.
    Drops,
    /// It could not wait for the reading that would have covered its end.
    Unread,
}

/// The drop counters of a capture and the closed epochs that wait for their next readings.
///
/// A position is any number that grows with the packets, such as their ordinal.
#[derive(Debug)]
pub struct Coverage<T> {
    /// For each counter, the position of its latest reading.
    read_at: Vec<u64>,
    held: VecDeque<(u64, T)>,
    held_max: usize,
    released_early: u64,
}

impl<T: Qualify> Coverage<T> {
    /// No counters yet; at most `held_max` closed epochs wait.
    pub fn new(held_max: usize) -> Self {
        Self { read_at: Vec::new(), held: VecDeque::new(), held_max, released_early: 0 }
    }

    /// Adds a counter that starts, with nothing dropped, at `position`, and gives its number.
    pub fn add_counter(&mut self, position: u64) -> usize {
        self.read_at.push(position);
        self.read_at.len() - 1
    }

    /// Closed epochs that had to be released before the reading that would have covered them:
    /// each carries captureDiscontinuity, because nothing says that it was complete.
    pub fn released_early(&self) -> u64 {
        self.released_early
    }

    /// Takes an epoch that closed at `position`. Without counters it goes out at once.
    // SEQ-3.7, SEQ-10.3: bounded, and never complete for want of room.
    pub fn closed(&mut self, position: u64, closed: T, out: &mut impl FnMut(T)) {
        if self.read_at.is_empty() {
            return out(closed);
        }
        self.held.push_back((position, closed));
        if self.held.len() > self.held_max
            && let Some((_, mut oldest)) = self.held.pop_front()
        {
            self.released_early += 1;
            oldest.qualify(Gap::Unread);
            out(oldest);
        }
    }

    /// A reading of counter `counter` at `position`: whether packets were dropped since the
    /// reading before. The caller closes the epochs that are open; those that closed in the span
    /// are qualified here.
    // SEQ-3.7, SEQ-3.8
    pub fn reading(
        &mut self,
        counter: usize,
        position: u64,
        dropped: bool,
        out: &mut impl FnMut(T),
    ) {
        let since = self.read_at[counter];
        if dropped {
            let in_span = self.held.iter_mut().rev().take_while(|(closed, _)| *closed > since);
            for (_, epoch) in in_span {
                epoch.qualify(Gap::Drops);
            }
        }
        self.read_at[counter] = position;
        let covered = self.read_at.iter().copied().min().unwrap_or(u64::MAX);
        while self.held.front().is_some_and(|(closed, _)| *closed <= covered)
            && let Some((_, epoch)) = self.held.pop_front()
        {
            out(epoch);
        }
    }

    /// The counters end here, unread since their latest readings: what waits goes out as it is,
    /// and the counters are forgotten.
    pub fn finish(&mut self, out: &mut impl FnMut(T)) {
        self.read_at.clear();
        for (_, epoch) in self.held.drain(..) {
            out(epoch);
        }
    }
}

/// What a mirror header's sequence number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorStep {
    /// The first of its session, or the one after the latest.
    Next,
    /// This many numbers were passed over: packets of the mirror session that never came here.
    Missing(u32),
    /// Behind the latest by a little: it repeats a number, or comes late.
    Behind,
    /// The session counts anew: what it missed meanwhile is unknown.
    Restarted,
    /// The session is not followed: there are already as many as may be. What it misses will not
    /// be noticed.
    NotFollowed,
}

/// Numbers further behind the latest than this are no late ones.
const LATE_MAX: u32 = 1024;

/// The latest sequence number of each mirror session.
#[derive(Debug)]
pub struct MirrorSequence<S> {
    sessions: BTreeMap<S, Numbers>,
    sessions_max: usize,
}

/// What is known of one session.
#[derive(Debug)]
struct Numbers {
    latest: u32,
    /// The number before, where it was behind the latest: if they go on from there, the session
    /// counts anew.
    behind: Option<u32>,
}

impl<S: Ord> MirrorSequence<S> {
    /// Follows at most `sessions_max` sessions.
    pub fn new(sessions_max: usize) -> Self {
        Self { sessions: BTreeMap::new(), sessions_max }
    }

    /// The mirror session `session` shows `sequence`.
    // SEQ-3.7
    pub fn step(&mut self, session: S, sequence: u32) -> MirrorStep {
        let Some(numbers) = self.sessions.get_mut(&session) else {
            if self.sessions.len() >= self.sessions_max {
                return MirrorStep::NotFollowed;
            }
            self.sessions.insert(session, Numbers { latest: sequence, behind: None });
            return MirrorStep::Next;
        };
        let ahead = sequence.wrapping_sub(numbers.latest);
        if ahead == 0 || ahead >= 1 << 31 {
            let far = numbers.latest.wrapping_sub(sequence) > LATE_MAX;
            let goes_on = numbers.behind.is_some_and(|b| sequence == b.wrapping_add(1));
            if far || (goes_on && ahead != 0) {
                *numbers = Numbers { latest: sequence, behind: None };
                return MirrorStep::Restarted;
            }
            numbers.behind = Some(sequence);
            return MirrorStep::Behind;
        }
        *numbers = Numbers { latest: sequence, behind: None };
        if ahead == 1 { MirrorStep::Next } else { MirrorStep::Missing(ahead - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[derive(Debug, PartialEq, Clone, Copy)]
    struct Epoch(u32, Option<Gap>);

    impl Qualify for Epoch {
        fn qualify(&mut self, gap: Gap) {
            self.1 = Some(gap);
        }
    }

    const GAP: Option<Gap> = Some(Gap::Drops);

    fn epoch(n: u32) -> Epoch {
        Epoch(n, None)
    }

    #[test]
    fn without_a_counter_a_closed_epoch_goes_out_at_once() {
        let mut out = vec![];
        Coverage::new(8).closed(3, epoch(1), &mut |e| out.push(e));
        assert_eq!(out, [epoch(1)]);
    }

    // SEQ-3.7
    #[test]
    fn an_epoch_that_closed_in_a_span_with_drops_is_qualified_and_one_before_is_not() {
        let mut out = vec![];
        let mut coverage = Coverage::new(8);
        let counter = coverage.add_counter(0);
        coverage.closed(3, epoch(1), &mut |e| out.push(e));
        assert_eq!(out, [], "waits for the reading that covers it");
        coverage.reading(counter, 5, false, &mut |e| out.push(e));
        coverage.closed(7, epoch(2), &mut |e| out.push(e));
        coverage.reading(counter, 9, true, &mut |e| out.push(e));
        coverage.closed(11, epoch(3), &mut |e| out.push(e));
        coverage.finish(&mut |e| out.push(e));
        assert_eq!(out, [epoch(1), Epoch(2, GAP), epoch(3)]);
    }

    // SEQ-3.8
    #[test]
    fn with_two_counters_an_epoch_waits_for_both_and_either_qualifies_it() {
        let mut out = vec![];
        let mut coverage = Coverage::new(8);
        let (a, b) = (coverage.add_counter(0), coverage.add_counter(0));
        coverage.closed(3, epoch(1), &mut |e| out.push(e));
        coverage.reading(a, 4, false, &mut |e| out.push(e));
        coverage.closed(5, epoch(2), &mut |e| out.push(e));
        assert_eq!(out, []);
        coverage.reading(b, 6, true, &mut |e| out.push(e));
        assert_eq!(out, [Epoch(1, GAP)]);
        coverage.reading(a, 7, false, &mut |e| out.push(e));
        assert_eq!(out, [Epoch(1, GAP), Epoch(2, GAP)]);
    }

    // SEQ-10.3
    #[test]
    fn an_epoch_released_for_want_of_room_is_never_shown_as_complete() {
        let mut out = vec![];
        let mut coverage = Coverage::new(2);
        coverage.add_counter(0);
        for n in 1..=3 {
            coverage.closed(u64::from(n), epoch(n), &mut |e| out.push(e));
        }
        assert_eq!(out, [Epoch(1, Some(Gap::Unread))]);
        assert_eq!(coverage.released_early(), 1);
    }

    #[test]
    fn a_mirror_sequence_tells_next_missing_behind_and_wraps() {
        let mut mirror = MirrorSequence::new(2);
        assert_eq!(mirror.step(1, u32::MAX - 1), MirrorStep::Next);
        assert_eq!(mirror.step(1, u32::MAX), MirrorStep::Next);
        assert_eq!(mirror.step(1, 0), MirrorStep::Next);
        assert_eq!(mirror.step(1, 3), MirrorStep::Missing(2));
        assert_eq!(mirror.step(1, 2), MirrorStep::Behind);
        assert_eq!(mirror.step(1, 3), MirrorStep::Behind);
        assert_eq!(mirror.step(2, 9), MirrorStep::Next);
        assert_eq!(mirror.step(3, 9), MirrorStep::NotFollowed);
    }

    // SEQ-3.7
    #[test]
    fn a_mirror_that_counts_anew_is_noticed_and_followed_from_there() {
        let mut mirror = MirrorSequence::new(1);
        assert_eq!(mirror.step(1, 5000), MirrorStep::Next);
        assert_eq!(mirror.step(1, 0), MirrorStep::Restarted);
        assert_eq!(mirror.step(1, 1), MirrorStep::Next);
        assert_eq!(mirror.step(1, 3), MirrorStep::Missing(1));
        // From a number that is not far behind, the second one in a row shows it.
        assert_eq!(mirror.step(1, 100), MirrorStep::Missing(96));
        assert_eq!(mirror.step(1, 0), MirrorStep::Behind);
        assert_eq!(mirror.step(1, 1), MirrorStep::Restarted);
        assert_eq!(mirror.step(1, 2), MirrorStep::Next);
    }

    #[test]
    fn a_mirror_that_sends_everything_twice_counts_nothing_anew() {
        let mut mirror = MirrorSequence::new(1);
        mirror.step(1, 7);
        for n in 8..40 {
            assert_eq!(mirror.step(1, n - 1), MirrorStep::Behind);
            assert_eq!(mirror.step(1, n), MirrorStep::Next);
        }
    }
}
