//! From the tag of a stream key to the number of its context: open addressing in a flat array.
//!
//! One load finds most contexts, and loads of different arrivals do not wait for each other:
//! that is what this is for. Tags are 32 bits of a seeded hash, so nobody who does not know the
//! seed can choose them; different keys can share one, and the caller compares keys.

use alloc::{vec, vec::Vec};

/// 32 bits of a key's hash.
pub(super) type Tag = u32;

/// Octets of the index for each context, where it is at its emptiest.
pub(super) const OCTETS: usize = 4 * size_of::<Slot>();

/// A tag in the upper half, a context in the lower; all ones where there is none.
type Slot = u64;
const FREE: Slot = Slot::MAX;
/// Slots before anything is put in.
const LEAST: usize = 64;

#[derive(Debug)]
pub(super) struct Index {
    /// A power of two; at most half of them are taken, so every search ends.
    slots: Vec<Slot>,
    taken: usize,
}

#[inline]
fn slot(tag: Tag, context: u32) -> Slot {
    Slot::from(tag) << 32 | Slot::from(context)
}

#[inline]
fn tag_of(slot: Slot) -> Tag {
    (slot >> 32) as Tag
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half of 64 bits")]
fn context_of(slot: Slot) -> u32 {
    slot as u32
}

impl Index {
    pub fn new() -> Self {
        Self { slots: vec![FREE; LEAST], taken: 0 }
    }

    /// Where the search for a tag begins.
    #[inline]
    fn home(&self, tag: Tag) -> usize {
        tag as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.slots.len() - 1)
    }

    /// The first context with this tag for which `is` holds.
    #[inline]
    pub fn find(&self, tag: Tag, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.home(tag);
        loop {
            let slot = self.slots[place];
            if slot == FREE {
                return None;
            }
            if tag_of(slot) == tag && is(context_of(slot)) {
                return Some(context_of(slot));
            }
            place = self.next(place);
        }
    }

    /// Adds a context, which must not be there, under a tag. The number `u32::MAX` cannot be.
    pub fn insert(&mut self, tag: Tag, context: u32) {
        if self.taken * 2 >= self.slots.len() {
            self.grow();
        }
        self.put(slot(tag, context));
        self.taken += 1;
    }

    fn put(&mut self, slot: Slot) {
        let mut place = self.home(tag_of(slot));
        while self.slots[place] != FREE {
            place = self.next(place);
        }
        self.slots[place] = slot;
    }

    fn grow(&mut self) {
        let twice = vec![FREE; self.slots.len() * 2];
        for slot in core::mem::replace(&mut self.slots, twice) {
            if slot != FREE {
                self.put(slot);
            }
        }
    }

    /// Takes a context away, which must be there under this tag.
    pub fn remove(&mut self, tag: Tag, context: u32) {
        let mut hole = self.home(tag);
        while self.slots[hole] != slot(tag, context) {
            assert!(self.slots[hole] != FREE, "the context was put in under this tag");
            hole = self.next(hole);
        }
        // Those behind it that may stand in its place move up, so that no search ends early.
        let mut place = self.next(hole);
        while self.slots[place] != FREE {
            let home = self.home(tag_of(self.slots[place]));
            let mask = self.slots.len() - 1;
            let from_home = place.wrapping_sub(home) & mask;
            let from_hole = place.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.slots[hole] = self.slots[place];
                hole = place;
            }
            place = self.next(place);
        }
        self.slots[hole] = FREE;
        self.taken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// A small generator, so that the test is the same every time.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        *state >> 33
    }

    #[test]
    fn it_finds_what_a_map_finds_through_insertions_and_removals_that_collide() {
        let mut index = Index::new();
        let mut model: BTreeMap<u32, Tag> = BTreeMap::new();
        let mut state = 7;
        for round in 0..20_000_u32 {
            // Few different tags, some of them at the end of the array.
            let tag = u32::try_from(random(&mut state) % 97).unwrap().wrapping_sub(20);
            if random(&mut state) % 3 < 2 {
                index.insert(tag, round);
                model.insert(round, tag);
            } else if let Some((context, tag)) = model.pop_first() {
                index.remove(tag, context);
                assert_eq!(index.find(tag, |c| c == context), None);
            }
            if round % 500 == 0 {
                for (context, tag) in &model {
                    assert_eq!(index.find(*tag, |c| c == *context), Some(*context));
                }
            }
        }
        assert_eq!(index.taken, model.len());
    }

    #[test]
    fn keys_that_share_a_tag_are_told_apart_by_the_caller() {
        let mut index = Index::new();
        index.insert(5, 1);
        index.insert(5, 2);
        assert_eq!(index.find(5, |c| c == 2), Some(2));
        assert_eq!(index.find(5, |_| true), Some(1));
        assert_eq!(index.find(5, |c| c == 3), None);
        assert_eq!(index.find(69, |_| true), None, "the same home, another tag");
    }
}
