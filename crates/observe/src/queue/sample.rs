//! Sampling: predicates that are looked at now and then, each value held until the next.
//!
//! # Where the bound comes from
//!
//! Between two samples a predicate can have had any value, and however often it was looked at, it
//! can have been otherwise all the time in between. So nothing is taken for granted: the true
//! duration lies between 0 and T, and E is the larger of the distances of what is reported to
//! both. It is below T where a predicate was found both ways, and T where it never changed. How
//! exact the times of samples are does not matter then.
//!
//! The spacing that is reported is that of the samples themselves, also of the one before the
//! interval and the one behind it. Where it is more than T there was no sample for each stretch of
//! that length, and the interval is not known.

/// What a look found, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    at: u64,
    backlog: bool,
    gated: bool,
}

/// Integrals over the interval so far, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub backlog: u64,
    pub gated: u64,
    /// The largest spacing of samples that has to do with the interval.
    pub period: u64,
}

impl Sums {
    /// E, as the head of this file has it.
    // QUE-err.2
    pub fn error(&self, duration: u64) -> u64 {
        let farther = |value: u64| value.max(duration.saturating_sub(value));
        farther(self.backlog).max(farther(self.gated))
    }
}

/// The samples of one queue, integrated up to an instant.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// Integrated up to here.
    at: u64,
    last: Option<Look>,
    /// Where the stretch without a sample began: at the last one, or when sampling began.
    since: u64,
    /// Where the interval that goes on began.
    from: u64,
    sums: Sums,
}

impl Sampler {
    /// No sample yet.
    pub fn new(at: u64) -> Self {
        Self { at, last: None, since: at, from: at, sums: Sums::default() }
    }

    /// A sample, not before an earlier one, behind an interval that is integrated up to it.
    pub fn look(&mut self, at: u64, backlog: bool, gated: bool) {
        self.advance(at, at);
        if self.last.is_none() {
            // Nobody has looked before: what is found now stands for that too, and E, which takes
            // nothing for granted, covers it.
            let before = self.at.saturating_sub(self.from);
            self.sums.backlog += if backlog { before } else { 0 };
            self.sums.gated += if backlog && gated { before } else { 0 };
        }
        self.last = Some(Look { at, backlog, gated });
        self.since = at;
    }

    /// Integrates up to `to`; there is no further sample before `known`.
    pub fn advance(&mut self, to: u64, known: u64) {
        if to <= self.at {
            return;
        }
        let ns = to - self.at;
        self.at = to;
        self.sums.period = self.sums.period.max(known.max(to).saturating_sub(self.since));
        if let Some(Look { backlog, gated, .. }) = self.last {
            self.sums.backlog += if backlog { ns } else { 0 };
            self.sums.gated += if backlog && gated { ns } else { 0 };
        }
    }

    /// Whether there was a sample at all.
    pub fn looked(&self) -> bool {
        self.last.is_some()
    }

    /// The integrals since this was asked last.
    pub fn take(&mut self) -> Sums {
        self.from = self.at;
        core::mem::take(&mut self.sums)
    }
}
