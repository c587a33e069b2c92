//! A scope and what is known, to change one thing in.

use observe::pfc::interval::{Known, Pace, Sighting, Tick};
use observe::pfc::{Direction, Priority, Reading, Scope};

pub fn scope() -> Scope {
    Scope {
        domain: 5,
        point: 7,
        interface: 11,
        direction: Direction::Received,
        priority: Priority::new(3).unwrap(),
    }
}

/// Everything is known, of a reading at this millisecond.
pub fn known(ms: u64) -> Known {
    Known {
        instance: Some(1),
        run: Some(1),
        tick: Some(Tick { clock: 1, ms }),
        pace: Pace::per_second(1_000_000),
    }
}

pub fn sighting(ms: u64, total: u64) -> Sighting {
    let time_ms = ms.saturating_add(1_800_000_000_000);
    Sighting { reading: Reading { scope: scope(), time_ms, total }, known: known(ms) }
}
