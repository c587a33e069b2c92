//! What may stand beside a flow record: PFC counters of the same device, the same physical interface,
//! the same time and the priority that its traffic had all that time (PFC draft, introduction and
//! record identity).
//!
//! Nothing here makes a number of both, and nothing knows whether one has to do with the other: the
//! sentence for that is [`crate::outcome::BESIDE`].
// PFC-cor.1

use core::fmt;

use super::Priority;

/// Why nothing stands beside a flow record, or why it is not known what does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Apart {
    /// Nobody has said at which interface of which device the flow was seen.
    PlaceUnknown,
    /// Nobody has said which priority its traffic class had, for at least a part of its time.
    PriorityUnknown,
    /// Its traffic class had several priorities one after the other.
    PriorityChanged,
    /// The times of the flow are no time: its exporter's clock was set back, or is wrong.
    TimeUnknown,
    /// No counter of that interface and priority has a reading from its time on.
    NoCounter,
    /// No two readings have any of its time between them.
    NoReadings,
}

impl Apart {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::PlaceUnknown,
        Self::PriorityUnknown,
        Self::PriorityChanged,
        Self::TimeUnknown,
        Self::NoCounter,
        Self::NoReadings,
    ];

    /// The words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::PlaceUnknown => {
                "at which interface of which device the flow was seen is not known"
            }
            Self::PriorityUnknown => {
                "the priority of its traffic class is not known for all of its time"
            }
            Self::PriorityChanged => "the priority of its traffic class changed in its time",
            Self::TimeUnknown => "the flow ends before it starts",
            Self::NoCounter => {
                "no PFC counter of that interface and priority is stored for its time"
            }
            Self::NoReadings => {
                "no two readings of the counter that are kept have any of the flow's time between them"
            }
        }
    }
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The priority that traffic had from a first to a last time, both in it. `at` says what it was at a
/// time, as far as anybody has said so; it can turn only at `turns`.
///
/// # Errors
/// It is not known, or not one, or the times are none.
// PFC-cor.1, PFC-id.3
pub fn throughout(
    first_ms: u64,
    last_ms: u64,
    at: impl Fn(u64) -> Option<Priority>,
    turns: impl IntoIterator<Item = u64>,
) -> Result<Priority, Apart> {
    if last_ms < first_ms {
        return Err(Apart::TimeUnknown);
    }
    let priority = at(first_ms).ok_or(Apart::PriorityUnknown)?;
    let mut changed = false;
    for turn in turns.into_iter().filter(|turn| (first_ms..=last_ms).contains(turn)) {
        changed |= at(turn).ok_or(Apart::PriorityUnknown)? != priority;
    }
    if changed { Err(Apart::PriorityChanged) } else { Ok(priority) }
}

/// Two readings of a counter between which lies the time of a flow, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Which reading is the earlier one.
    pub earlier: usize,
    /// Which is the later one.
    pub later: usize,
    /// All of the flow's time lies between them.
    pub whole: bool,
}

/// Of readings in the order in which they were taken, each with its observation time, the two that
/// are closest around a time from a first to a last instant; where there is none before it or behind
/// it, the outermost. None where no two have some of that time between them. Where a clock was set
/// back, both are from before that or both from after it.
// PFC-cor.1, PFC-op.1
pub fn around(times: &[u64], first_ms: u64, last_ms: u64) -> Option<Around> {
    let mut best: Option<((u64, u64), Around)> = None;
    let mut start = 0;
    for rising in times.chunk_by(|one, next| one <= next) {
        if let Some(found) = around_rising(rising, first_ms, last_ms) {
            let (from, to) = (rising[found.earlier], rising[found.later]);
            let left_out = from.saturating_sub(first_ms) + last_ms.saturating_sub(to);
            let beyond = first_ms.saturating_sub(from) + to.saturating_sub(last_ms);
            let rank = (left_out, beyond);
            // Of two that are as good, the later one.
            if best.is_none_or(|(other, _)| rank <= other) {
                let (earlier, later) = (start + found.earlier, start + found.later);
                best = Some((rank, Around { earlier, later, ..found }));
            }
        }
        start += rising.len();
    }
    best.map(|(_, around)| around)
}

fn around_rising(times: &[u64], first_ms: u64, last_ms: u64) -> Option<Around> {
    // One behind which there is another.
    let before = times.split_last()?.1.iter().rposition(|time| *time <= first_ms);
    let earlier = before.unwrap_or(0);
    let behind = times.get(earlier + 1..)?.iter().position(|time| *time >= last_ms);
    // Where there is none behind it, the last one, which can be the earlier one itself.
    let later = behind.map_or(times.len() - 1, |behind| earlier + 1 + behind);
    let (from, to) = (*times.get(earlier)?, *times.get(later)?);
    let shared = match first_ms == last_ms {
        true => from <= first_ms && last_ms <= to,
        false => from < last_ms && first_ms < to,
    };
    let whole = from <= first_ms && last_ms <= to;
    (from < to && shared).then_some(Around { earlier, later, whole })
}
