//! What a device may bring about by its notifications: how often it is asked for what they lack, and
//! how often the log tells that its subscription stops and goes on. No socket, no clock.
// QUE-sec.1

use std::time::{Duration, Instant};

/// How far apart things are that a device can bring about at will. The first is at once. As long as
/// they go on, twice as far with each, up to a limit; behind a time without one, as at first.
#[derive(Clone, Copy, Debug)]
struct Pace {
    least: Duration,
    most: Duration,
    wait: Duration,
    last: Option<Instant>,
}

impl Pace {
    fn new(least: Duration, most: Duration) -> Self {
        Self { least, most: most.max(least), wait: Duration::ZERO, last: None }
    }

    /// When the next may be.
    fn due(&self) -> Option<Instant> {
        self.last.map(|last| last + self.wait)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due().is_none_or(|due| due <= now)
    }

    fn went(&mut self, now: Instant) {
        let calm = self.last.is_none_or(|last| now.saturating_duration_since(last) > self.wait * 2);
        self.wait = if calm { self.least } else { (self.wait * 2).clamp(self.least, self.most) };
        self.last = Some(now);
    }
}

/// How often a device is asked because of what it tells.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    pace: Pace,
    owed: bool,
}

impl Asking {
    /// No two are closer than this.
    const LEAST: Duration = Duration::from_secs(1);

    /// Nothing is owed. `most` is the distance up to which asking is put off.
    pub fn new(most: Duration) -> Self {
        Self { pace: Pace::new(Self::LEAST, most), owed: false }
    }

    /// The device does not tell everything: it has to be asked, not before [`Self::due`].
    pub const fn owe(&mut self) {
        self.owed = true;
    }

    /// When it is to be asked, where it is to be asked at all.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        self.owed.then(|| self.pace.due().unwrap_or(now))
    }

    /// Whether it is to be asked now; then it is as if that was done.
    pub fn take(&mut self, now: Instant) -> bool {
        let asks = self.owed && self.pace.is_due(now);
        if asks {
            self.pace.went(now);
            self.owed = false;
        }
        asks
    }
}

/// What the log says of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is suspended, for this reason; and so often it was since that was said last, without a word.
    Suspended(String, u64),
    /// It goes on.
    GoesOn,
}

/// How often the log tells that a subscription stops and goes on.
#[derive(Clone, Debug)]
pub struct Telling {
    pace: Pace,
    /// Why it is suspended now, if it is.
    reason: Option<String>,
    /// What was said last is that it is.
    said: bool,
    /// Times that it was and that nothing was said of.
    unsaid: u64,
}

impl Telling {
    const LEAST: Duration = Duration::from_secs(60);
    const MOST: Duration = Duration::from_secs(3_600);

    /// It goes on.
    pub fn new() -> Self {
        Self { pace: Pace::new(Self::LEAST, Self::MOST), reason: None, said: false, unsaid: 0 }
    }

    /// It is suspended, or suspended again.
    pub fn suspended(&mut self, reason: String) {
        self.reason = Some(reason);
        self.unsaid = self.unsaid.saturating_add(1);
    }

    /// It goes on.
    pub fn goes_on(&mut self) {
        self.reason = None;
    }

    /// When something is to be said that could not be said before.
    pub fn due(&self) -> Option<Instant> {
        self.reason.as_ref().filter(|_| !self.said).and_then(|_| self.pace.due())
    }

    /// What is to be said now. That it goes on is said whenever that it does not was said last, so
    /// that the last word is the right one.
    pub fn take(&mut self, now: Instant) -> Option<Said> {
        match &self.reason {
            Some(reason) if !self.said && self.pace.is_due(now) => {
                self.pace.went(now);
                self.said = true;
                let before = std::mem::take(&mut self.unsaid).saturating_sub(1);
                Some(Said::Suspended(reason.clone(), before))
            }
            None if self.said => {
                self.said = false;
                Some(Said::GoesOn)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> impl Fn(u64) -> Instant {
        let began = Instant::now();
        move |ms| began + Duration::from_millis(ms)
    }

    // QUE-sec.1, QUE-con.1
    #[test]
    fn a_device_that_is_always_incomplete_is_asked_less_and_less_often_and_never_not_at_all() {
        let at = clock();
        let mut asking = Asking::new(Duration::from_secs(10));
        assert_eq!((asking.take(at(0)), asking.due(at(0))), (false, None), "nothing is owed");
        let mut asked = Vec::new();
        for ms in (0..60_000).step_by(10) {
            asking.owe();
            if asking.take(at(ms)) {
                asked.push(ms);
            }
        }
        assert_eq!(asked, [0, 1_000, 3_000, 7_000, 15_000, 25_000, 35_000, 45_000, 55_000]);
        // What was told behind the last answer is asked for, though nothing is told any more.
        assert_eq!(asking.due(at(60_000)), Some(at(65_000)));
        assert!(!asking.take(at(64_999)) && asking.take(at(65_000)));
        assert!(!asking.take(at(99_000)), "once");
        // Behind a time without one it is at once, and then as at first.
        asking.owe();
        assert!(asking.take(at(99_000)));
        asking.owe();
        assert!(!asking.take(at(99_999)) && asking.take(at(100_000)));
    }

    #[test]
    fn asking_is_never_put_off_for_longer_than_the_device_would_be_asked_by_itself() {
        let at = clock();
        let mut asking = Asking::new(Duration::ZERO);
        for second in 0..20 {
            asking.owe();
            assert!(asking.take(at(second * 1_000)), "{second}");
        }
    }

    #[test]
    fn a_subscription_that_stops_and_goes_on_is_told_at_once_and_then_counted() {
        let at = clock();
        let mut telling = Telling::new();
        assert_eq!(telling.take(at(0)), None);
        let mut said = Vec::new();
        for ms in (0..600_000).step_by(100) {
            if ms / 100 % 2 == 0 {
                telling.suspended(format!("r{ms}"));
            } else {
                telling.goes_on();
            }
            said.extend(telling.take(at(ms)).map(|said| (ms, said)));
        }
        let suspended = |ms: u64, before| (ms, Said::Suspended(format!("r{ms}"), before));
        let expected = [
            suspended(0, 0),
            (100, Said::GoesOn),
            suspended(60_000, 299),
            (60_100, Said::GoesOn),
            suspended(180_000, 599),
            (180_100, Said::GoesOn),
            suspended(420_000, 1_199),
            (420_100, Said::GoesOn),
        ];
        assert_eq!(said, expected);
        // What it is in the end is said in the end.
        telling.suspended("last".into());
        assert_eq!((telling.take(at(600_000)), telling.due()), (None, Some(at(900_000))));
        let last = Said::Suspended("last".into(), 899);
        assert_eq!((telling.take(at(900_000)), telling.due()), (Some(last), None));
        // Again and again suspended is no news.
        telling.suspended("more".into());
        assert_eq!(telling.take(at(9_000_000)), None);
    }
}
