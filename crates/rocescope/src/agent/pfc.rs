//! Polling counters of PFC frames: a thread for each source, whose latest readings lie where the
//! observer takes them when a session has room. A slow collector gets fewer readings, never older
//! ones for newer.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use observe::pfc::instance::InstanceId;
use observe::pfc::interval::Tick;
use observe::pfc::qualify::Qualified;
use rustix::time::{ClockId, clock_gettime};

use super::source::{now_ns, thread};
use crate::config::{Device, PfcExport, PfcKind, PfcSource};
use crate::pfc::ethtool::{Ethtool, EthtoolPort, Kernel};
use crate::pfc::poller::{Batch, Place, PollCounts, Poller};
use crate::pfc::sonic::{Sonic, SonicPort, SonicSettings, interface_number};
use crate::pfc::{Absent, Clock, Moment, Source};

/// Nothing waits for longer than this to be noticed.
const TICK: Duration = Duration::from_millis(50);

/// A source that is there to be polled.
pub struct Opened {
    poller: Poller<Box<dyn Source + Send>>,
    interval: Duration,
    shelf: Arc<Shelf>,
    /// For how long readings may be late before that is told.
    patience: Duration,
}

/// Where the latest readings of a source lie.
#[derive(Debug)]
pub struct Shelf {
    /// `pfc.source[0]`.
    pub name: String,
    /// Which directions are exported.
    pub qualified: [Option<Qualified>; 2],
    /// What polling counts.
    pub counts: Arc<PollCounts>,
    latest: Mutex<Arc<Batch>>,
}

impl Shelf {
    /// What the last poll that succeeded gave.
    pub fn latest(&self) -> Arc<Batch> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, batch: Batch) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(batch);
    }
}

/// Looks whether every source is what the operator says that it is.
///
/// # Errors
/// In a line: the source, and what is wrong with it.
// PFC-count.4, PFC-id.2
pub fn open(device: &Device) -> Result<Vec<Opened>, String> {
    let Some(pfc) = &device.pfc else { return Ok(Vec::new()) };
    let opened = |source: &PfcSource| {
        opened(device, pfc, source).map_err(|problem| format!("{}: {problem}", source.key))
    };
    pfc.sources.iter().map(opened).collect()
}

fn opened(device: &Device, pfc: &PfcExport, source: &PfcSource) -> Result<Opened, String> {
    let counts = Arc::new(PollCounts::default());
    let ports_max = usize::try_from(pfc.limits.ports_max).unwrap_or(usize::MAX);
    let place = Place {
        domain: device.observation.domain,
        point: source.point.unwrap_or(device.observation.point),
        qualified: source.qualified,
        promise: source.promise,
        identify: pfc.instance_ids,
        ports_max,
    };
    let held: Box<dyn Source + Send> = match &source.kind {
        PfcKind::Ethtool { driver } => {
            let port = |port: &crate::config::PfcPort| EthtoolPort {
                name: port.name.as_str().into(),
                interface: port.interface,
            };
            let ports = source.ports.iter().map(port).collect();
            Box::new(Ethtool::new(driver, ports, Kernel::new())?)
        }
        PfcKind::Sonic { redis, dating } => {
            let port = |port: &crate::config::PfcPort| {
                let interface = port.interface.or_else(|| interface_number(&port.name))?;
                Some(SonicPort { name: port.name.as_str().into(), interface })
            };
            let mut sonic = Sonic::new(SonicSettings {
                address: redis.clone(),
                ports: source.ports.iter().filter_map(port).collect(),
                dating: *dating,
                within: Duration::from_millis(pfc.limits.poll_timeout_ms),
                ports_max,
                stale_ms_max: pfc.limits.stale_ms_max,
            });
            sonic.refuse_aggregates()?;
            Box::new(sonic)
        }
    };
    let shelf = Arc::new(Shelf {
        name: source.key.clone(),
        qualified: source.qualified,
        counts: counts.clone(),
        latest: Mutex::default(),
    });
    let poller = Poller::new(held, place, counts, fresh);
    let patience = Duration::from_millis(pfc.limits.stale_ms_max);
    Ok(Opened { poller, interval: pfc.poll_interval, shelf, patience })
}

/// A thread for each source.
///
/// # Errors
/// There can be no more threads.
pub fn start(opened: Vec<Opened>, stop: &Arc<AtomicBool>) -> Result<Vec<Arc<Shelf>>, String> {
    let mut shelves = Vec::new();
    for Opened { poller, interval, shelf, patience } in opened {
        shelves.push(shelf.clone());
        let stop = stop.clone();
        let voice = Voice::new(patience);
        thread("pfc", move || poll(poller, interval, &shelf, voice, &stop)).map_err(|error| {
            format!("no thread for {}: {error}", shelves[shelves.len() - 1].name)
        })?;
    }
    Ok(shelves)
}

/// Polls until it is told to stop. A poll that takes longer than the interval is followed by the
/// next one that is due; those in between are missed.
fn poll(
    mut poller: Poller<Box<dyn Source + Send>>,
    interval: Duration,
    shelf: &Shelf,
    mut voice: Voice,
    stop: &AtomicBool,
) {
    let clock = SystemClock::new();
    let mut due = Instant::now();
    let mut failed = false;
    while !stop.load(Ordering::Relaxed) {
        let before = Yield::of(&shelf.counts);
        match poller.poll(&clock) {
            Ok(batch) => {
                shelf.put(batch);
                voice.tell(&shelf.name, &Yield::of(&shelf.counts).since(&before));
                if std::mem::take(&mut failed) {
                    tracing::info!("{}: answers again", shelf.name);
                }
            }
            Err(problem) => {
                if !std::mem::replace(&mut failed, true) {
                    tracing::warn!("{}: no readings: {problem}", shelf.name);
                }
            }
        }
        due += interval;
        let now = Instant::now();
        if due < now {
            let missed = (now - due).as_nanos() / interval.as_nanos().max(1) + 1;
            let missed = u32::try_from(missed).unwrap_or(u32::MAX);
            shelf.counts.missed.fetch_add(u64::from(missed), Ordering::Relaxed);
            due = due.checked_add(interval.saturating_mul(missed)).unwrap_or(now);
        }
        while !stop.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(TICK));
        }
    }
}

/// Readings that a source gave, and counters without one, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Yield {
    readings: u64,
    absent: [u64; Absent::ALL.len()],
}

impl Yield {
    fn of(counts: &PollCounts) -> Self {
        Self {
            readings: counts.readings.load(Ordering::Relaxed),
            absent: std::array::from_fn(|at| counts.absent[at].load(Ordering::Relaxed)),
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            readings: self.readings.saturating_sub(before.readings),
            absent: std::array::from_fn(|at| self.absent[at].saturating_sub(before.absent[at])),
        }
    }
}

/// Tells when a source has no readings any more and when it has some again: of each reason once, not
/// at every poll.
// PFC-op.1
#[derive(Debug)]
struct Voice {
    patience: Duration,
    told: BTreeSet<Absent>,
    /// Since when there is no reading, or since when there are some.
    since: Option<(bool, Instant)>,
    announced: bool,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// So many counters have no reading, and no other has one.
    Silent(Absent, u64),
    /// There are readings again.
    Again,
}

impl Voice {
    fn new(patience: Duration) -> Self {
        Self { patience, told: BTreeSet::new(), since: None, announced: false }
    }

    fn tell(&mut self, name: &str, poll: &Yield) {
        for said in self.after(poll, Instant::now()) {
            match said {
                Said::Silent(absent, counters) => {
                    tracing::warn!("{name}: no readings: {absent} ({counters} counters)");
                }
                Said::Again => tracing::info!("{name}: has readings again"),
            }
        }
    }

    /// What is to be told after a poll. That a counter has not been read anew since the last poll is
    /// as it should be for a while; every other reason is told at once. What was told is told again
    /// only if there were readings for as long.
    fn after(&mut self, poll: &Yield, now: Instant) -> Vec<Said> {
        let yields = poll.readings > 0;
        let since = match self.since {
            Some((same, since)) if same == yields => since,
            _ => now,
        };
        self.since = Some((yields, since));
        let long = now.saturating_duration_since(since) >= self.patience;
        if yields {
            if long {
                self.told.clear();
            }
            let again = std::mem::take(&mut self.announced);
            return if again { vec![Said::Again] } else { Vec::new() };
        }
        let mut said = Vec::new();
        // A source without a port has no counter that could miss one.
        let nothing = poll.absent.iter().all(|counters| *counters == 0);
        for (absent, counters) in Absent::ALL.into_iter().zip(poll.absent) {
            let is_so = counters > 0 || nothing && absent == Absent::NoPort;
            let is_due = is_so && (long || absent != Absent::Stale);
            if is_due && self.told.insert(absent) {
                self.announced = true;
                said.push(Said::Silent(absent, counters));
            }
        }
        said
    }
}

/// A name that nothing had before: of 2^64 at random.
fn fresh() -> InstanceId {
    loop {
        let mut octets = [0; 8];
        // Without randomness there is nothing to be unpredictable to: the time will do.
        if getrandom::fill(&mut octets).is_err() {
            octets = now_ns().to_ne_bytes();
        }
        if let Some(id) = InstanceId::new(u64::from_ne_bytes(octets)) {
            return id;
        }
    }
}

/// The clocks of this machine.
struct SystemClock {
    /// Which boot of it.
    boot: u64,
}

impl SystemClock {
    fn new() -> Self {
        // The clock that is never set starts again with the machine, and so does this program.
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        Self { boot: u64::from_str_radix(&digits, 16).unwrap_or(0) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let time = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let ms = u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000;
        let tick = Tick { clock: self.boot, ms: seconds.saturating_mul(1000).saturating_add(ms) };
        Moment { time_ms: now_ns() / 1_000_000, tick }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(readings: u64, absent: &[(Absent, u64)]) -> Yield {
        let mut all = Yield { readings, absent: [0; Absent::ALL.len()] };
        for (reason, counters) in absent {
            all.absent[*reason as usize] = *counters;
        }
        all
    }

    // PFC-op.1
    #[test]
    fn silence_is_told_once_for_each_reason_and_so_is_its_end() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut voice = Voice::new(Duration::from_secs(10));
        let (off, gone) = ([(Absent::Disabled, 48)], [(Absent::NoPort, 16)]);
        // Some counters without a reading beside others are no silence.
        assert_eq!(voice.after(&poll(5, &off), at(0)), []);
        assert_eq!(voice.after(&poll(0, &off), at(1)), [Said::Silent(Absent::Disabled, 48)]);
        assert_eq!(voice.after(&poll(0, &off), at(2)), []);
        assert_eq!(voice.after(&poll(0, &gone), at(3)), [Said::Silent(Absent::NoPort, 16)]);
        assert_eq!(voice.after(&poll(0, &[]), at(3)), []);
        assert_eq!(voice.after(&poll(1, &[]), at(4)), [Said::Again]);
        assert_eq!(voice.after(&poll(1, &[]), at(5)), []);
        // What comes and goes at every poll does not fill the log.
        assert_eq!(voice.after(&poll(0, &off), at(6)), []);
        assert_eq!(voice.after(&poll(1, &[]), at(7)), []);
        assert_eq!(voice.after(&poll(1, &[]), at(17)), []);
        assert_eq!(voice.after(&poll(0, &off), at(18)), [Said::Silent(Absent::Disabled, 48)]);
    }

    // PFC-op.1
    #[test]
    fn that_nothing_was_read_anew_is_told_only_after_a_while() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut voice = Voice::new(Duration::from_secs(10));
        let stale = [(Absent::Stale, 48)];
        for second in 0..10 {
            assert_eq!(voice.after(&poll(0, &stale), at(second)), [], "{second}");
        }
        assert_eq!(voice.after(&poll(0, &stale), at(10)), [Said::Silent(Absent::Stale, 48)]);
        assert_eq!(voice.after(&poll(48, &[]), at(11)), [Said::Again]);
    }
}
