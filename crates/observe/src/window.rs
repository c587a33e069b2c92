//! The window W and the labels of the positions in it (sequence draft, section 5).
//!
//! A position in `[L, H]` is PENDING where its bit is set and SEEN where it is not; a position
//! outside has no label, and its bit is zero. What W and the labels mean for the counters is the
//! business of [`crate::sequence`].

use alloc::{boxed::Box, vec};
use core::fmt;

/// The largest window, 2^22 positions.
pub const WINDOW_MAX: u32 = 1 << 22;

/// A window width W in positions, 1 to 2^22.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window(u32);

impl Window {
    /// # Errors
    /// Outside 1 to 2^22.
    // SEQ-5.1
    pub const fn new(width: u32) -> Result<Self, WindowError> {
        if width >= 1 && width <= WINDOW_MAX { Ok(Self(width)) } else { Err(WindowError(width)) }
    }

    /// W.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A width that no window has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowError(pub u32);

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "window {}, expected 1 to {WINDOW_MAX}", self.0)
    }
}

impl core::error::Error for WindowError {}

/// One bit for every position of a window, found by the position modulo a power of two.
#[derive(Clone, Debug)]
pub struct Labels {
    words: Box<[u64]>,
}

impl Labels {
    /// Room for the labels of `window`, all SEEN.
    pub fn new(window: Window) -> Self {
        Self { words: vec![0; Self::words_for(window)].into_boxed_slice() }
    }

    /// Octets that the labels of `window` take on the heap.
    pub const fn octets(window: Window) -> u64 {
        Self::words_for(window) as u64 * 8
    }

    const fn words_for(window: Window) -> usize {
        (window.get().next_power_of_two() as usize).div_ceil(64)
    }

    /// Octets that these labels take on the heap.
    pub fn size(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Whether `position` is PENDING.
    #[inline]
    pub fn is_pending(&self, position: u64) -> bool {
        self.words[self.word(position)] >> (position % 64) & 1 == 1
    }

    /// Turns `position` from PENDING to SEEN.
    #[inline]
    pub fn see(&mut self, position: u64) {
        let word = self.word(position);
        self.words[word] &= !(1 << (position % 64));
    }

    /// Labels `count` positions from `from` on PENDING.
    pub fn pend(&mut self, from: u64, count: u64) {
        self.each_word(from, count, |word, mask| *word |= mask, |words| words.fill(u64::MAX));
    }

    /// Takes the labels of `count` positions from `from` on away and says how many were PENDING.
    pub fn forget(&mut self, from: u64, count: u64) -> u32 {
        let mut pending = 0;
        let mut pending_whole = 0;
        let edge = |word: &mut u64, mask: u64| {
            pending += (*word & mask).count_ones();
            *word &= !mask;
        };
        self.each_word(from, count, edge, |words| {
            pending_whole += words.iter().map(|word| word.count_ones()).sum::<u32>();
            words.fill(0);
        });
        pending + pending_whole
    }

    /// The first PENDING position of those from `from` on that lie before `end`, or `end`.
    pub fn first_pending(&self, from: u64, end: u64) -> u64 {
        let mut at = from;
        while at < end {
            let rest = self.words[self.word(at)] >> (at % 64);
            if rest != 0 {
                return (at + u64::from(rest.trailing_zeros())).min(end);
            }
            at += 64 - at % 64;
        }
        end
    }

    #[inline]
    fn word(&self, position: u64) -> usize {
        // The number of words is a power of two, so the mask fits a usize whatever the position.
        (position / 64) as usize & (self.words.len() - 1)
    }

    /// Calls `edge` for a word of which some positions are meant, with a mask of these, and
    /// `whole` for runs of words that are meant entirely.
    #[inline]
    fn each_word(
        &mut self,
        from: u64,
        count: u64,
        mut edge: impl FnMut(&mut u64, u64),
        mut whole: impl FnMut(&mut [u64]),
    ) {
        debug_assert!(count <= self.words.len() as u64 * 64, "wider than the window");
        let mut at = from;
        let end = from + count;
        while at < end {
            let (bit, word) = (at % 64, self.word(at));
            let words = usize::try_from((end - at) / 64).unwrap_or(usize::MAX);
            if bit == 0 && words > 0 {
                let run = words.min(self.words.len() - word);
                whole(&mut self.words[word..word + run]);
                at += run as u64 * 64;
            } else {
                let length = (64 - bit).min(end - at);
                edge(&mut self.words[word], (u64::MAX >> (64 - length)) << bit);
                at += length;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SEQ-5.1
    #[test]
    fn a_window_is_1_to_2_to_the_22() {
        assert_eq!(Window::new(0), Err(WindowError(0)));
        assert_eq!(Window::new(1).unwrap().get(), 1);
        assert_eq!(Window::new(WINDOW_MAX).unwrap().get(), WINDOW_MAX);
        assert_eq!(Window::new(WINDOW_MAX + 1), Err(WindowError(WINDOW_MAX + 1)));
    }

    #[test]
    fn labels_take_one_bit_a_position() {
        let octets = |w| Labels::octets(Window::new(w).unwrap());
        assert_eq!([octets(1), octets(64), octets(65), octets(1024)], [8, 8, 16, 128]);
        assert_eq!(octets(WINDOW_MAX), 512 * 1024);
        assert_eq!(Labels::new(Window::new(65).unwrap()).size(), 16);
    }

    #[test]
    fn ranges_over_word_and_ring_edges_count_what_was_set() {
        let mut labels = Labels::new(Window::new(256).unwrap());
        for from in [0_u64, 1, 63, 64, 250, 255, (1 << 24) - 3] {
            for count in [0_u32, 1, 2, 63, 64, 65, 128, 255, 256] {
                let wide = u64::from(count);
                labels.pend(from, wide);
                let set: u32 = labels.words.iter().map(|w| w.count_ones()).sum();
                assert_eq!(set, count);
                assert!(count == 0 || labels.is_pending(from));
                assert!(count == 0 || labels.is_pending(from + wide - 1));
                assert_eq!(labels.forget(from, wide), count);
                assert!(labels.words.iter().all(|w| *w == 0));
            }
        }
    }

    #[test]
    fn the_first_pending_position_is_found_across_words_and_the_ring_edge() {
        let mut labels = Labels::new(Window::new(256).unwrap());
        let base = 3 * 256;
        for (at, end) in [(0, 256), (63, 200), (64, 65), (250, 256), (130, 131)] {
            labels.pend(base + at, 1);
            for from in [0, at.saturating_sub(1), at] {
                assert_eq!(labels.first_pending(base + from, base + end), base + at);
            }
            assert_eq!(labels.first_pending(base + at + 1, base + end), base + end);
            assert_eq!(labels.first_pending(base, base + at), base + at, "the end itself");
            labels.see(base + at);
        }
        labels.pend(base + 255, 2);
        labels.see(base + 255);
        assert_eq!(labels.first_pending(base + 200, base + 300), base + 256);
    }

    #[test]
    fn seeing_a_position_leaves_its_neighbours() {
        let mut labels = Labels::new(Window::new(128).unwrap());
        labels.pend(62, 4);
        labels.see(64);
        assert!(labels.is_pending(63) && !labels.is_pending(64) && labels.is_pending(65));
        assert_eq!(labels.forget(0, 128), 3);
    }
}
