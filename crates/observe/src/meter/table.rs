//! The table of contexts: bounded, found by stream key.
//!
//! Lookups of a batch are made in two passes that do not depend on each other, so that the
//! memory system works on several at a time: first the index, then the contexts themselves.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};
use core::ops;

use foldhash::fast::FixedState;
use wire::frame::Addresses;

use crate::report::StreamKey;

use super::context::Context;
use super::index::{Index, Tag};

/// Contexts that are allocated together: growing copies none of them.
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 12;
/// Contexts among which the quietest is evicted.
const EVICTION_SAMPLE: u32 = 16;

#[derive(Debug)]
pub(super) struct Table {
    hasher: FixedState,
    index: Index,
    chunks: Vec<Vec<Context>>,
    len: u32,
    len_max: u32,
    /// Where the search for a quiet context goes on.
    hand: u32,
}

impl Table {
    pub fn new(len_max: u32, seed: u64) -> Self {
        Self {
            hasher: FixedState::with_seed(seed),
            index: Index::new(),
            chunks: Vec::new(),
            len: 0,
            len_max,
            hand: 0,
        }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn tag(&self, key: &StreamKey) -> Tag {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u128(u128::from_ne_bytes(key.addresses.source));
        hasher.write_u128(u128::from_ne_bytes(key.addresses.destination));
        let namespace = key.namespace;
        let vlans = u32::from(namespace.outer_vlan) << 16 | u32::from(namespace.inner_vlan);
        let stream = u64::from(key.qp) << 32
            | u64::from(key.pkey) << 16
            | u64::from(key.addresses.family as u8);
        hasher.write_u64(u64::from(vlans) << 32 | u64::from(namespace.segment));
        hasher.write_u64(stream);
        // The upper half: any 32 bits of a good hash will do.
        (hasher.finish() >> 32) as u32
    }

    /// The first context with this tag, which need not be the stream's.
    #[inline]
    pub fn candidate(&self, tag: Tag) -> Option<u32> {
        self.index.find(tag, |_| true)
    }

    /// Reads the contexts into the cache.
    #[inline]
    pub fn touch(&self, candidates: &[Option<u32>]) {
        let mut sum = 0;
        for index in candidates.iter().flatten() {
            sum ^= self[*index].touch();
        }
        core::hint::black_box(sum);
    }

    /// The context of `key`.
    pub fn find(&self, tag: Tag, key: &StreamKey) -> Option<u32> {
        self.index.find(tag, |index| self[index].key == *key)
    }

    /// Adds a context; `None` where the table is full.
    pub fn insert(&mut self, tag: Tag, context: Context) -> Option<u32> {
        if self.len >= self.len_max {
            return None;
        }
        let index = self.len;
        if index as usize >> CHUNK_BITS == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks[index as usize >> CHUNK_BITS].push(context);
        self.len += 1;
        self.index.insert(tag, index);
        Some(index)
    }

    /// The context that has been quiet for longest among the next few that can be evicted.
    pub fn quiet(&mut self) -> Option<u32> {
        let sample = (0..EVICTION_SAMPLE.min(self.len)).map(|n| (self.hand + n) % self.len);
        let quiet = sample.filter(|i| self[*i].evictable()).min_by_key(|i| self[*i].last_ns);
        self.hand = (self.hand + EVICTION_SAMPLE) % self.len.max(1);
        quiet
    }

    /// Gives the place of a context to another.
    pub fn replace(&mut self, index: u32, context: Context) {
        let old = self.tag(&self[index].key);
        self.index.remove(old, index);
        let tag = self.tag(&context.key);
        self[index] = context;
        self.index.insert(tag, index);
    }

    /// All contexts with their numbers, in the order of these. Each chunk is freed when the next
    /// one begins.
    pub fn into_contexts(self) -> impl Iterator<Item = (u32, Context)> {
        drop(self.index);
        (0..self.len).zip(self.chunks.into_iter().flatten())
    }

    /// Addresses and index of every context with an open epoch.
    pub fn open(&self) -> impl Iterator<Item = (Addresses, u32)> {
        let open = |i: &u32| self[*i].is_open();
        (0..self.len).filter(open).map(|i| (self[i].key.addresses, i))
    }
}

impl ops::Index<u32> for Table {
    type Output = Context;

    #[inline]
    fn index(&self, index: u32) -> &Context {
        &self.chunks[index as usize >> CHUNK_BITS][index as usize % CHUNK]
    }
}

impl ops::IndexMut<u32> for Table {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Context {
        &mut self.chunks[index as usize >> CHUNK_BITS][index as usize % CHUNK]
    }
}
