//! Lists of contexts that something will have to be done with, so that nothing ever has to walk
//! the whole table: each costs no more than the packets that put contexts on it.

use alloc::{collections::BTreeSet, collections::BinaryHeap, vec::Vec};
use core::cmp::Reverse;

use wire::frame::Addresses;

use super::table::Table;

/// Contexts, each at most once, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Roster {
    members: Vec<u32>,
    /// A bit for each context: whether it is among the members.
    enlisted: Vec<u64>,
}

impl Roster {
    /// Puts a context on the list, unless it is there.
    #[inline]
    pub fn enlist(&mut self, index: u32) {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        if word >= self.enlisted.len() {
            self.enlisted.resize(word + 1, 0);
        }
        if self.enlisted[word] & bit == 0 {
            self.enlisted[word] |= bit;
            self.members.push(index);
        }
    }

    /// All members; the roster is empty afterwards.
    pub fn drain(&mut self) -> Vec<u32> {
        for index in &self.members {
            self.enlisted[*index as usize / 64] = 0;
        }
        core::mem::take(&mut self.members)
    }

    /// At most `max` members, those that came first; the others stay. Costs a copy of the others.
    pub fn take(&mut self, max: usize) -> Vec<u32> {
        if max >= self.members.len() {
            return self.drain();
        }
        let rest = self.members.split_off(max);
        let taken = core::mem::replace(&mut self.members, rest);
        for index in &taken {
            self.enlisted[*index as usize / 64] &= !(1 << (*index % 64));
        }
        taken
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn holds(&self, index: u32) -> bool {
        let word = self.enlisted.get(index as usize / 64);
        word.is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}

/// When contexts may have been silent for too long, the earliest first; each at most once.
#[derive(Debug, Default)]
struct Deadlines {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    waiting: BTreeSet<u32>,
}

/// The rosters of a meter.
#[derive(Debug)]
pub(super) struct Rosters {
    /// Contexts with an open epoch, and some that had one.
    pub open: Roster,
    /// Contexts whose epoch has changed since its last report; kept only where reports are
    /// periodic.
    pub changed: Option<Roster>,
    deadlines: Option<Deadlines>,
    /// As `open`, by addresses: kept from the first time on that it is asked for.
    by_addresses: Option<BTreeSet<(Addresses, u32)>>,
}

impl Rosters {
    pub fn new(idle: bool, periodic: bool) -> Self {
        Self {
            open: Roster::default(),
            changed: periodic.then(Roster::default),
            deadlines: idle.then(Deadlines::default),
            by_addresses: None,
        }
    }

    /// An epoch has begun in a context; it can fall idle at `deadline`.
    pub fn began(&mut self, index: u32, addresses: &Addresses, deadline: Option<u64>) {
        self.open.enlist(index);
        self.accounted(index);
        if let Some(deadline) = deadline {
            self.expect(index, deadline);
        }
        if let Some(by_addresses) = &mut self.by_addresses {
            by_addresses.insert((*addresses, index));
        }
    }

    /// A request was accounted to the epoch of a context.
    #[inline]
    pub fn accounted(&mut self, index: u32) {
        if let Some(changed) = &mut self.changed {
            changed.enlist(index);
        }
    }

    /// Looks at a context again at `deadline`, unless an earlier look is due.
    pub fn expect(&mut self, index: u32, deadline: u64) {
        if let Some(deadlines) = &mut self.deadlines
            && deadlines.waiting.insert(index)
        {
            deadlines.heap.push(Reverse((deadline, index)));
        }
    }

    /// A context whose deadline lies before `now`.
    pub fn due(&mut self, now: u64) -> Option<u32> {
        let deadlines = self.deadlines.as_mut()?;
        let Reverse((deadline, _)) = deadlines.heap.peek()?;
        if *deadline >= now {
            return None;
        }
        let Reverse((_, index)) = deadlines.heap.pop()?;
        deadlines.waiting.remove(&index);
        Some(index)
    }

    /// Takes the contexts with these addresses that have, or had, an open epoch.
    pub fn take_between(&mut self, addresses: &Addresses, table: &Table) -> Vec<u32> {
        let by_addresses = self.by_addresses.get_or_insert_with(|| table.open().collect());
        let range = (*addresses, 0)..=(*addresses, u32::MAX);
        let taken: Vec<u32> = by_addresses.range(range).map(|(_, index)| *index).collect();
        for index in &taken {
            by_addresses.remove(&(*addresses, *index));
        }
        taken
    }

    /// A context goes to another stream.
    pub fn evicted(&mut self, index: u32, addresses: &Addresses) {
        if let Some(by_addresses) = &mut self.by_addresses {
            by_addresses.remove(&(*addresses, index));
        }
    }
}
