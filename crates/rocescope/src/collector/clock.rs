//! Time as the sessions see it: milliseconds since 1970 that never jump.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The wall clock when the program began, and what has passed since.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ms: u64,
    began: Instant,
}

impl Clock {
    /// Reads the wall clock, once.
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin_ms: milliseconds(since), began: Instant::now() }
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.origin_ms.saturating_add(milliseconds(self.began.elapsed()))
    }
}

/// Whole milliseconds.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
