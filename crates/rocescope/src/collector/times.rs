//! The flow of time in a session: what has passed for the peer, and what for the collector alone.
//!
//! While the collector does not read, reports may be waiting in the socket, and the exporter may
//! hold back more of them. That time is not the peer's silence. Nothing here reads a clock.

use std::time::{Duration, Instant};

/// How often time is noticed.
pub const TICK: Duration = Duration::from_secs(1);

/// Times of one session.
#[derive(Debug)]
pub struct Times {
    opened: Instant,
    message: Instant,
    /// When something that is read was last waited for, and when that last came.
    waiting: Instant,
    returned: Instant,
    /// Nothing was to be read then.
    drained: bool,
    /// What has passed for the collector alone, and when that last happened.
    away: Duration,
    back: Instant,
    /// How long an epoch may be silent: once this has passed without the collector being away, all
    /// that goes on has been heard.
    inactivity: Duration,
    advanced: Instant,
    /// How long the messages that were read may take at the highest rate, less the time since.
    owed: Duration,
    paid: Instant,
}

impl Times {
    /// A session that begins.
    pub fn new(inactivity: Duration, now: Instant) -> Self {
        Self {
            opened: now,
            message: now,
            waiting: now,
            returned: now,
            drained: false,
            away: Duration::ZERO,
            back: now,
            inactivity,
            advanced: now,
            owed: Duration::ZERO,
            paid: now,
        }
    }

    /// From now on the stream is waited for, for a tick at most.
    pub fn waits(&mut self, now: Instant) {
        let busy = now.saturating_duration_since(self.returned);
        self.was_away(busy, TICK / 2, now);
        self.waiting = now;
    }

    /// The wait is over; `drained` where nothing was to be read.
    pub fn returns(&mut self, drained: bool, now: Instant) {
        // Longer than a tick: the whole program stood still.
        let waited = now.saturating_duration_since(self.waiting);
        self.was_away(waited, TICK + TICK / 2, now);
        self.returned = now;
        self.drained = drained;
        if now.saturating_duration_since(self.back) > self.inactivity {
            self.away = Duration::ZERO;
        }
    }

    fn was_away(&mut self, time: Duration, usual: Duration, now: Instant) {
        if time > usual {
            self.away += time;
            self.back = now;
        }
    }

    /// What has passed for the collector alone until now.
    // SEQ-7.13
    pub fn away(&self, now: Instant) -> Duration {
        let busy = now.saturating_duration_since(self.returned);
        // What comes faster than it is read waits in the socket, which is soon full.
        let behind = if self.drained { Duration::ZERO } else { 2 * TICK };
        self.away + busy + behind
    }

    /// Whether it is time to retire what is over; asked at least every tick.
    pub fn is_to_advance(&mut self, now: Instant) -> bool {
        let due = now.saturating_duration_since(self.advanced) >= TICK / 2;
        if due {
            self.advanced = now;
        }
        due
    }

    /// A whole message came.
    pub fn had_message(&mut self, now: Instant) {
        self.message = now;
    }

    /// How long the session has been there.
    pub fn open_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened)
    }

    /// How long no message has come that could have.
    pub fn silent_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.message).saturating_sub(self.away(now))
    }

    /// By how much a peer that has sent so many messages is ahead of its rate, a tick being free.
    pub fn ahead(&mut self, messages: u64, per_second_max: u64, now: Instant) -> Duration {
        let nanoseconds = messages.saturating_mul(1_000_000_000) / per_second_max.max(1);
        self.owed = self.owed.saturating_sub(now.saturating_duration_since(self.paid));
        self.owed += Duration::from_nanos(nanoseconds);
        self.paid = now;
        self.owed.saturating_sub(TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INACTIVITY: Duration = Duration::from_secs(10);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A tick without anything to read, half a millisecond of work behind it.
    fn quiet(times: &mut Times, now: &mut Instant) {
        times.waits(*now);
        *now += TICK;
        times.returns(true, *now);
        *now += Duration::from_micros(500);
    }

    #[test]
    fn a_quiet_peer_s_time_passes() {
        let mut now = Instant::now();
        let mut times = Times::new(INACTIVITY, now);
        for _ in 0..100 {
            quiet(&mut times, &mut now);
            assert!(times.away(now) < Duration::from_millis(1));
        }
        assert!(times.silent_for(now) > seconds(99));
    }

    // SEQ-7.13
    #[test]
    fn a_store_that_takes_long_is_not_held_against_the_peer_not_even_while_it_does() {
        let mut now = Instant::now();
        let mut times = Times::new(INACTIVITY, now);
        quiet(&mut times, &mut now);
        times.waits(now);
        times.returns(false, now);
        now += seconds(100);
        assert!(times.away(now) >= seconds(100));
        times.waits(now);
        times.returns(false, now);
        assert!(times.away(now) >= seconds(100));
        // Still so when the socket is empty: the exporter may have held back as well.
        for _ in 0..9 {
            quiet(&mut times, &mut now);
            assert!(times.away(now) >= seconds(100));
        }
        for _ in 0..3 {
            quiet(&mut times, &mut now);
        }
        assert!(times.away(now) < seconds(1));
    }

    // SEQ-7.13
    #[test]
    fn a_program_that_stood_still_does_not_hold_it_against_the_peer() {
        let mut now = Instant::now();
        let mut times = Times::new(INACTIVITY, now);
        times.waits(now);
        now += seconds(60);
        times.returns(true, now);
        assert!(times.away(now) >= seconds(60));
        assert!(times.silent_for(now) < seconds(1));
    }

    #[test]
    fn a_peer_is_ahead_by_what_is_beyond_its_rate_and_a_second() {
        let now = Instant::now();
        let mut times = Times::new(INACTIVITY, now);
        assert_eq!(times.ahead(10, 10, now), Duration::ZERO);
        assert_eq!(times.ahead(5, 10, now), Duration::from_millis(500));
        assert_eq!(times.ahead(5, 10, now + seconds(1)), Duration::ZERO);
        assert_eq!(
            times.ahead(u64::MAX, 1, now + seconds(2)),
            Duration::from_nanos(u64::MAX) - TICK
        );
    }
}
