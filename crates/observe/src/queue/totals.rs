//! What two separate totals say of their conjunction: nothing exact, but bounds.
//!
//! A source may know how long a queue had traffic (Q) and how long the gate was closed (P), and
//! not when. Both sets of instants lie in one interval of length T, so they share at least
//! Q + P - T of it, and at most the smaller of the two.

use super::row::{Known, Method};

/// Two times of one interval that were measured apart, of a queue with one priority. With more
/// there is no P: whose gate counts depends on the packet that is next.
// QUE-def.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// T, in nanoseconds.
    pub duration_ns: u64,
    /// Q, in nanoseconds, at most T.
    pub backlog_ns: u64,
    /// P, in nanoseconds, at most T.
    pub closed_ns: u64,
    /// How far each of both can be from the truth, in nanoseconds.
    pub error_ns: u64,
}

impl Totals {
    /// The conjunction: in the middle of what is possible, with a bound that reaches both ends and
    /// covers the error of Q. None where a total is above T.
    ///
    /// With each total wrong by up to e, true I lies between max(0, Q + P - 2e - T) and
    /// min(Q + e, P + e, T). The value is the middle, but no more than Q, which is published
    /// beside it; E is the larger of the distances to both ends and of e, and no more than T.
    // QUE-err.2
    pub fn conjunction(&self) -> Option<Known> {
        let &Self { duration_ns: t, backlog_ns: q, closed_ns: p, error_ns } = self;
        if q > t || p > t {
            return None;
        }
        let e = error_ns.min(t);
        // Each term is at most a u64: reckoned in more.
        let both = u128::from(q) + u128::from(p);
        let low = both.saturating_sub(2 * u128::from(e) + u128::from(t));
        let high = (u128::from(q.min(p)) + u128::from(e)).min(u128::from(t));
        let middle = ((low + high) / 2).min(u128::from(q));
        let error = (high - middle).max(middle.abs_diff(low));
        let narrow = |n: u128| u64::try_from(n).unwrap_or(t).min(t);
        Some(Known {
            method: Method::Events,
            gated_ns: narrow(middle),
            backlog_ns: q,
            error_ns: narrow(error).max(e),
        })
    }
}
