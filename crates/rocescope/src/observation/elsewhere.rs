//! RoCEv2 at another layer than the observed one, for telling people which one to observe. Nothing
//! is metered by it, and no epoch closes for it.

use wire::capture::Record;
use wire::frame::{LinkType, carries};

use super::{Pipeline, Sink};

/// Frames of other kinds that are looked through, at most: enough to tell what a capture holds,
/// and too few for a busy link to feel.
pub const LOOKED_THROUGH_MAX: u64 = 65_536;

impl<S: Sink> Pipeline<S> {
    /// A frame that is known to be no RoCEv2 at the observed layer.
    // SEQ-4.3
    pub(super) fn look_through(&mut self, record: &Record<'_>, link: LinkType) {
        if self.tally.looked_through >= LOOKED_THROUGH_MAX {
            return;
        }
        self.tally.looked_through += 1;
        let Some(carried) = carries(record.data, record.original_len, link) else { return };
        match carried.layer() {
            Some(layer) if layer == self.observation.layer => {}
            Some(layer) => *self.tally.elsewhere.entry(layer).or_default() += 1,
            None => self.tally.deeper += 1,
        }
    }
}
