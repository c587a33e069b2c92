//! What a capture file says of packets that it does not hold.

use wire::capture::Statistics;

/// The drop counters of one interface and their latest values.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropCounter {
    if_drop: u64,
    os_drop: u64,
    /// Drops that packets have told of since the latest statistics.
    told: u64,
}

/// What a reading of the counters says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drops {
    /// Packets dropped since the reading before that no packet has told of.
    pub packets: u64,
    /// A counter went back: it was reset, and what it missed is unknown.
    pub reset: bool,
}

impl DropCounter {
    /// A packet tells of drops before it.
    pub fn tell(&mut self, drops: u64) {
        self.told = self.told.saturating_add(drops);
    }

    /// Reads a statistics block; nothing where it does not speak of drops.
    pub fn read(&mut self, statistics: &Statistics) -> Option<Drops> {
        if statistics.if_drop.is_none() && statistics.os_drop.is_none() {
            return None;
        }
        let (mut reset, mut drops) = (false, 0_u64);
        for (value, before) in
            [(statistics.if_drop, &mut self.if_drop), (statistics.os_drop, &mut self.os_drop)]
        {
            if let Some(value) = value {
                reset |= value < *before;
                drops = drops.saturating_add(value.saturating_sub(*before));
                *before = value;
            }
        }
        // Those that packets have told of were placed already.
        let packets = drops.saturating_sub(std::mem::take(&mut self.told));
        Some(Drops { packets, reset })
    }
}
