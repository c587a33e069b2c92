//! Requests that wait to be followed together (sequence draft, section 4).
//!
//! Most traffic comes in bursts of one stream. A stream's key stands once for all of them, and the
//! memory system works on several lookups at once.

use wire::frame::{Addresses, Family, Namespace};

use crate::report::StreamKey;
use crate::serial::Psn;

/// Requests of a batch that is full: enough for the memory system to work on several lookups.
pub const BATCH: usize = 128;

/// One eligible request of a stream that is known from elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub psn: Psn,
    /// When it was observed, nanoseconds since 1970.
    pub time_ns: u64,
}

/// Up to [`BATCH`] eligible requests in the order of observation.
#[derive(Clone, Debug)]
pub struct Batch {
    arrivals: [Arrival; BATCH],
    len: usize,
    /// The streams of the bursts, and behind them the one that is put together now.
    keys: [StreamKey; BATCH + 1],
    /// The first arrival of each burst.
    starts: [u8; BATCH],
    bursts: usize,
}

/// Of no stream: what a place holds before there is one.
const NO_KEY: StreamKey = StreamKey {
    addresses: Addresses { family: Family::V4, source: [0; 16], destination: [0; 16] },
    namespace: Namespace { outer_vlan: 0, inner_vlan: 0, segment: 0 },
    qp: 0,
    pkey: 0,
};

/// Arrivals of one stream behind each other.
#[derive(Clone, Copy)]
pub(super) struct Burst<'a> {
    pub key: &'a StreamKey,
    pub arrivals: &'a [Arrival],
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// No request.
    pub const fn new() -> Self {
        Self {
            arrivals: [Arrival { psn: Psn::new(0), time_ns: 0 }; BATCH],
            len: 0,
            keys: [NO_KEY; BATCH + 1],
            starts: [0; BATCH],
            bursts: 0,
        }
    }

    /// Where the key of the next request is put together, before [`Batch::push`]. It holds nothing
    /// of meaning until then.
    #[inline(always)]
    pub fn next_key(&mut self) -> &mut StreamKey {
        &mut self.keys[self.bursts]
    }

    /// Adds a request of the stream that stands in [`Batch::next_key`]: its number, and when it
    /// was observed, nanoseconds since 1970. Says whether the batch is full now.
    ///
    /// # Panics
    /// The batch was full.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a place in the batch is below 128")]
    pub fn push(&mut self, psn: Psn, time_ns: u64) -> bool {
        let goes_on = match self.bursts.checked_sub(1) {
            Some(last) => same(&self.keys[last], &self.keys[self.bursts]),
            None => false,
        };
        if !goes_on {
            // As many bursts as arrivals at most.
            self.starts[self.bursts] = self.len as u8;
            self.bursts += 1;
        }
        self.push_same(psn, time_ns)
    }

    /// As [`Batch::push`], of the stream of the request before, whose key need not be written again.
    ///
    /// # Panics
    /// The batch was full.
    #[inline(always)]
    pub fn push_same(&mut self, psn: Psn, time_ns: u64) -> bool {
        self.arrivals[self.len] = Arrival { psn, time_ns };
        // The place above is below the end.
        self.len = self.len.wrapping_add(1);
        self.len == BATCH
    }

    /// How many requests it holds.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Holds no request any more.
    #[inline]
    pub const fn clear(&mut self) {
        (self.len, self.bursts) = (0, 0);
    }

    /// The streams of the bursts, in their order.
    #[inline]
    pub(super) fn keys(&self) -> &[StreamKey] {
        &self.keys[..self.bursts]
    }

    /// The bursts in their order.
    #[inline]
    pub(super) fn bursts(&self) -> impl Iterator<Item = Burst<'_>> {
        let starts = &self.starts[..self.bursts];
        let ends = starts.iter().skip(1).map(|start| usize::from(*start)).chain([self.len]);
        self.keys().iter().zip(starts).zip(ends).map(|((key, start), end)| {
            let arrivals = &self.arrivals[usize::from(*start)..end];
            Burst { key, arrivals }
        })
    }
}

/// Whether two keys are equal, read in pieces no larger than those in which a key was just written:
/// a processor has to wait for what it reads in larger ones.
#[inline(always)]
fn same(one: &StreamKey, other: &StreamKey) -> bool {
    let (a, b) = (halves(&one.addresses.source), halves(&other.addresses.source));
    let (c, d) = (halves(&one.addresses.destination), halves(&other.addresses.destination));
    if one.qp != other.qp || a.0 != b.0 || c.0 != d.0 {
        return false;
    }
    let (n, m) = (&one.namespace, &other.namespace);
    let differs = u64::from(one.pkey ^ other.pkey)
        | u64::from(one.addresses.family as u8 ^ other.addresses.family as u8)
        | u64::from(n.outer_vlan ^ m.outer_vlan)
        | u64::from(n.inner_vlan ^ m.inner_vlan)
        | u64::from(n.segment ^ m.segment);
    differs | (a.1 ^ b.1) | (c.1 ^ d.1) == 0
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "its halves")]
fn halves(octets: &[u8; 16]) -> (u64, u64) {
    let whole = u128::from_le_bytes(*octets);
    (whole as u64, (whole >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_where_they_are_equal() {
        let mut keys = alloc::vec![NO_KEY; 11];
        keys[1].addresses.family = Family::V6;
        keys[2].addresses.source[0] = 1;
        keys[3].addresses.source[15] = 1;
        keys[4].addresses.destination[7] = 1;
        keys[5].addresses.destination[8] = 1;
        keys[6].namespace.outer_vlan = 1;
        keys[7].namespace.inner_vlan = 1;
        keys[8].namespace.segment = 1 << 31;
        keys[9].qp = 1;
        keys[10].pkey = 1;
        for one in &keys {
            for other in &keys {
                assert_eq!(same(one, other), one == other, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn requests_of_a_stream_behind_each_other_are_one_burst() {
        let mut batch = Batch::new();
        for (qp, psn) in [(1, 5), (1, 6), (2, 7), (1, 8)] {
            batch.next_key().qp = qp;
            assert!(!batch.push(Psn::new(psn), 0));
        }
        let found: alloc::vec::Vec<_> = batch
            .bursts()
            .map(|burst| (burst.key.qp, burst.arrivals.iter().map(|a| a.psn.get()).collect()))
            .collect();
        let expected: [(u32, alloc::vec::Vec<u32>); 3] =
            [(1, [5, 6].into()), (2, [7].into()), (1, [8].into())];
        assert_eq!(found, expected);
        batch.push_same(Psn::new(9), 0);
        let last = batch.bursts().last().unwrap();
        let psns: alloc::vec::Vec<_> = last.arrivals.iter().map(|a| a.psn.get()).collect();
        assert_eq!((last.key.qp, psns), (1, [8, 9].into()));
    }

    #[test]
    fn a_batch_of_as_many_streams_is_full_and_empty_again() {
        let mut batch = Batch::new();
        for qp in 0..2 * u32::try_from(BATCH).unwrap() {
            batch.next_key().qp = qp;
            let full = batch.push(Psn::new(qp), 0);
            assert_eq!(full, batch.len() == BATCH);
            if full {
                assert_eq!(batch.keys().len(), BATCH);
                batch.clear();
                assert!(batch.is_empty());
            }
        }
    }
}
