//! Polling counters of PFC frames: a thread for each source, whose latest readings lie where the
//! observer takes them when a session has room. A slow collector gets fewer readings, never older
//! ones for newer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use observe::pfc::Direction;
use observe::pfc::instance::InstanceId;
use observe::pfc::interval::Tick;
use observe::pfc::qualify::Qualified;
use rustix::time::{ClockId, clock_gettime};

use super::silence::{Missing, Silence};
use super::source::{now_ns, thread};
use crate::config::{Device, PfcExport, PfcKind, PfcSource};
use crate::pfc::ethtool::{Ethtool, EthtoolPort, Kernel};
use crate::pfc::poller::{Batch, Place, PollCounts, Poller};
use crate::pfc::scopes::{Holder, Scopes, Spot};
use crate::pfc::sonic::{Sonic, SonicPort, SonicSettings, interface_number};
use crate::pfc::{Clock, Moment, Source};

/// Nothing waits for longer than this to be noticed.
const TICK: Duration = Duration::from_millis(50);

/// A source that is there to be polled.
pub struct Opened {
    poller: Poller<Box<dyn Source + Send>>,
    interval: Duration,
    shelf: Arc<Shelf>,
    silence: Silence,
    /// Ports, and the numbers that they have at the beginning.
    numbers: Vec<(Arc<str>, u32)>,
    point: u64,
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
    /// Counters without a reading that are shown at most.
    pub shown_max: usize,
    latest: Mutex<Arc<Batch>>,
    lacking: Mutex<Arc<Lacking>>,
}

/// What a source does not give now.
#[derive(Debug, Default)]
pub struct Lacking {
    /// Why it gives nothing at all, if that is so.
    pub failing: Option<String>,
    /// Counters without a reading.
    pub counters: Vec<Missing>,
}

impl Shelf {
    /// What the source does not give now.
    pub fn lacking(&self) -> Arc<Lacking> {
        self.lacking.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lacks(&self, failing: Option<String>, silence: &Silence) {
        let counters = silence.missing();
        let lacking = Arc::new(Lacking { failing, counters });
        *self.lacking.lock().unwrap_or_else(PoisonError::into_inner) = lacking;
    }

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
    let scopes = Arc::new(Scopes::default());
    let opened = |source: &PfcSource| {
        opened(device, pfc, source, &scopes).map_err(|problem| format!("{}: {problem}", source.key))
    };
    let opened: Vec<Opened> = pfc.sources.iter().map(opened).collect::<Result<_, _>>()?;
    distinct(&opened)?;
    Ok(opened)
}

/// Every number once, as far as the numbers are known before anything is polled.
// PFC-id.1
fn distinct(opened: &[Opened]) -> Result<(), String> {
    let mut held: BTreeMap<Spot, Holder> = BTreeMap::new();
    for Opened { shelf, numbers, point, .. } in opened {
        for (port, interface) in numbers {
            for (qualified, direction) in shelf.qualified.iter().zip(Direction::ALL) {
                if qualified.is_none() {
                    continue;
                }
                let spot = Spot { point: *point, interface: *interface, direction };
                let holder = Holder { source: shelf.name.as_str().into(), port: port.clone() };
                if let Some(other) = held.insert(spot, holder) {
                    return Err(format!(
                        "{}: {port} is {spot}, as is {other}, expected one of them: give one \
                         another interface, or its source another point",
                        shelf.name
                    ));
                }
            }
        }
    }
    Ok(())
}

fn opened(
    device: &Device,
    pfc: &PfcExport,
    source: &PfcSource,
    scopes: &Arc<Scopes>,
) -> Result<Opened, String> {
    let counts = Arc::new(PollCounts::default());
    let ports_max = usize::try_from(pfc.limits.ports_max).unwrap_or(usize::MAX);
    let point = source.point.unwrap_or(device.observation.point);
    let place = Place {
        source: source.key.as_str().into(),
        scopes: scopes.clone(),
        domain: device.observation.domain,
        point,
        qualified: source.qualified,
        promise: source.promise,
        identify: pfc.instance_ids,
        ports_max,
    };
    let (held, numbers): (Box<dyn Source + Send>, _) = match &source.kind {
        PfcKind::Ethtool { driver } => {
            let port = |port: &crate::config::PfcPort| EthtoolPort {
                name: port.name.as_str().into(),
                interface: port.interface,
            };
            let ports = source.ports.iter().map(port).collect();
            let mut ethtool = Ethtool::new(driver, ports, Kernel::new())?;
            let numbers = ethtool.numbers();
            (Box::new(ethtool), numbers)
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
            let ports = sonic.survey()?.into_iter();
            let numbers = ports.map(|port| (port.name, port.interface)).collect();
            (Box::new(sonic), numbers)
        }
    };
    let shelf = Arc::new(Shelf {
        name: source.key.clone(),
        qualified: source.qualified,
        counts: counts.clone(),
        shown_max: usize::try_from(pfc.limits.missing_shown_max).unwrap_or(usize::MAX),
        latest: Mutex::default(),
        lacking: Mutex::default(),
    });
    let poller = Poller::new(held, place, counts, fresh);
    let patience = Duration::from_millis(pfc.limits.stale_ms_max);
    let sides = source.qualified.map(|qualified| qualified.is_some());
    let silence = Silence::new(patience, ports_max, sides, Instant::now());
    Ok(Opened { poller, interval: pfc.poll_interval, shelf, silence, numbers, point })
}

/// A thread for each source.
///
/// # Errors
/// There can be no more threads.
pub fn start(opened: Vec<Opened>, stop: &Arc<AtomicBool>) -> Result<Vec<Arc<Shelf>>, String> {
    let mut shelves = Vec::new();
    for Opened { poller, interval, shelf, silence, .. } in opened {
        shelves.push(shelf.clone());
        let stop = stop.clone();
        thread("pfc", move || poll(poller, interval, &shelf, silence, &stop)).map_err(|error| {
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
    mut silence: Silence,
    stop: &AtomicBool,
) {
    let clock = SystemClock::new();
    let mut due = Instant::now();
    let name = &shelf.name;
    while !stop.load(Ordering::Relaxed) {
        match poller.poll(&clock) {
            Ok(batch) => {
                shelf.put(batch);
                for (warns, line) in silence.polled(poller.lacks(), Instant::now()) {
                    if warns {
                        tracing::warn!("{name}: {line}");
                    } else {
                        tracing::info!("{name}: {line}");
                    }
                }
                shelf.lacks(None, &silence);
            }
            Err(problem) => {
                if let Some(line) = silence.failed(&problem, Instant::now()) {
                    tracing::warn!("{name}: {line}");
                }
                shelf.lacks(Some(problem), &silence);
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
