//! What an exporter can say of a counter beyond the PFC draft's record: `pfcCounterInstanceId`, an
//! element of ours and no draft's, off unless it is asked for.
//!
//! The draft needs reliable information beyond its fields before two readings have a number between
//! them, and has no element for it. An [`InstanceId`] is such information, from the one who can
//! have it. One that is the same at two readings of a scope in one Transport Session says that
//!
//! - both are of the same counter, and it was not reset in between;
//! - whoever widens it never lost track of it;
//! - the clock of their observation times was not set in between.
//!
//! So a receiver may subtract the totals and the times, as long as the counter cannot have gone
//! round in that time: how fast it can count is not in the record, and is the receiver's to know.
//! [`Naming`] gives out the numbers by that rule. Nothing here knows where fresh numbers come from,
//! nor how good a source's signs are.

use core::num::NonZeroU64;

use super::interval::{Known, Pace, Tick};
use super::widen::Widened;

/// Names one run of one counter under one run of its clock. 0 is never used.
// PFC-sem.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(NonZeroU64);

impl InstanceId {
    /// The id with a number; none for 0, which says nothing.
    pub const fn new(id: u64) -> Option<Self> {
        match NonZeroU64::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// What is known of a counter that was read with this id at an observation time, if it counts
    /// at most at this pace.
    // PFC-sem.2
    pub const fn known(self, time_ms: u64, pace: Option<Pace>) -> Known {
        let id = self.get();
        let tick = Tick { clock: id, ms: time_ms };
        Known { instance: Some(id), run: Some(id), tick: Some(tick), pace }
    }
}

/// How far a clock of the day may go from one that is never set without having been set, as a part
/// of the time that went by: twice what Linux lets it be slewed by.
const SLEW_PARTS: u64 = 1000;

/// And so many milliseconds on top, since both readings cut off what is below one and neither is
/// taken at the same instant as the other.
const SLACK_MS: u64 = 5;

/// Gives the runs of one counter their ids.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    id: InstanceId,
    run: u64,
    tick: Tick,
    time_ms: u64,
}

impl Naming {
    /// The id for a reading that was taken at a time of the day: the last one while its run and its
    /// clock go on, a fresh one otherwise, and none where nobody knows which run it is. `fresh` has
    /// to give an id that no counter had before, also before a restart.
    // PFC-sem.2
    pub fn name(
        &mut self,
        widened: &Widened,
        tick: Tick,
        time_ms: u64,
        fresh: impl FnOnce() -> InstanceId,
    ) -> Option<InstanceId> {
        let Some(run) = widened.run else {
            self.last = None;
            return None;
        };
        let going_on = self.last.filter(|last| last.run == run && went_on(last, tick, time_ms));
        let id = going_on.map_or_else(fresh, |last| last.id);
        self.last = Some(Last { id, run, tick, time_ms });
        Some(id)
    }
}

/// Whether both clocks went on alike, so that none of them was set.
fn went_on(last: &Last, tick: Tick, time_ms: u64) -> bool {
    let Some(elapsed) = tick.ms.checked_sub(last.tick.ms) else { return false };
    let Some(shown) = time_ms.checked_sub(last.time_ms) else { return false };
    last.tick.clock == tick.clock && shown.abs_diff(elapsed) <= elapsed / SLEW_PARTS + SLACK_MS
}
