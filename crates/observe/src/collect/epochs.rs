//! The epochs of a session, found by domain and epoch id.
//!
//! They lie one after the other, and a small index says where: reports come for all of them in
//! turn, and the index stays in the processor's cache when the epochs do not.

use alloc::vec::Vec;
use core::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::Epoch;

/// Epochs with their domains.
#[derive(Debug)]
pub(super) struct Epochs {
    hasher: FixedState,
    /// Places in `all`.
    index: HashTable<u32>,
    all: Vec<(u32, Epoch)>,
}

impl Epochs {
    pub(super) fn new(seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self { hasher, index: HashTable::new(), all: Vec::new() }
    }

    pub(super) fn as_slice(&self) -> &[(u32, Epoch)] {
        &self.all
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut (u32, Epoch)> {
        self.all.iter_mut()
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (u32, Epoch)> {
        self.all.into_iter()
    }

    #[inline]
    pub(super) fn find(&self, domain: u32, epoch_id: u64) -> Option<usize> {
        let hash = self.hasher.hash_one((domain, epoch_id));
        let found = self.index.find(hash, |at| id(&self.all[place(*at)]) == (domain, epoch_id));
        found.map(|at| place(*at))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> &mut Epoch {
        &mut self.all[at].1
    }

    /// Whether an epoch more is too many.
    pub(super) fn is_full(&self, max: usize) -> bool {
        self.all.len() >= max || u32::try_from(self.all.len()).is_err()
    }

    /// Adds an epoch whose id is not there, where [`Epochs::is_full`] says that it can be.
    pub(super) fn insert(&mut self, domain: u32, epoch: Epoch) {
        let Self { hasher, index, all } = self;
        let at = u32::try_from(all.len()).expect("asked before whether it is full");
        all.push((domain, epoch));
        let hash = |at: &u32| hasher.hash_one(id(&all[place(*at)]));
        index.insert_unique(hash(&at), at, hash);
    }

    /// Takes out what is over.
    pub(super) fn take(&mut self, over: impl Fn(&Epoch) -> bool, out: &mut impl FnMut(u32, Epoch)) {
        let mut at = 0;
        while let Some((_, epoch)) = self.all.get(at) {
            if over(epoch) {
                let (domain, epoch) = self.remove(at);
                out(domain, epoch);
            } else {
                at += 1;
            }
        }
    }

    /// Takes out one; the last one comes to its place.
    fn remove(&mut self, at: usize) -> (u32, Epoch) {
        self.entry_of(at).remove();
        let last = self.all.len() - 1;
        if at != last {
            // What is not the last has a place below it, and that is a u32.
            let here = u32::try_from(at).expect("a place in the index");
            *self.entry_of(last).get_mut() = here;
        }
        self.all.swap_remove(at)
    }

    fn entry_of(&mut self, at: usize) -> hashbrown::hash_table::OccupiedEntry<'_, u32> {
        let hash = self.hasher.hash_one(id(&self.all[at]));
        self.index.find_entry(hash, |of| place(*of) == at).expect("every epoch is in the index")
    }
}

#[inline]
fn id((domain, epoch): &(u32, Epoch)) -> (u32, u64) {
    (*domain, epoch.latest.epoch_id)
}

#[inline]
const fn place(at: u32) -> usize {
    at as usize
}
