//! Frames of an interface as they come, instead of those of files.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::found::Found;
use crate::agent::source::{self, Drops, Event, Open, Part};
use crate::capture::Visitor;
use crate::config::{Interface, printable};
use crate::progress::Progress;

/// Batches of frames that wait to be looked at, at most; what goes beyond waits in the kernel's
/// ring.
const BATCHES_WAITING_MAX: usize = 64;
/// Octets of the kernel's ring.
const RING_OCTETS: u32 = 64 << 20;
/// Octets of the ring for frames of MAC control.
const CONTROL_RING_OCTETS: u32 = 4 << 20;
/// The number of the capture of the interface, and of those of its MAC control.
const WHOLE: u32 = 0;
const CONTROL: u32 = 1;
/// The longest wait before the end is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// A frame is seen within this time after it came.
const SETTLE: Duration = Duration::from_millis(100);

/// An interface to look at.
#[derive(Clone, Debug)]
pub struct Live {
    /// Its name.
    pub interface: String,
    /// Ask for frames to other stations too.
    pub promiscuous: bool,
    /// For how long; without it until the run is stopped.
    pub duration: Option<Duration>,
}

/// Looks until it is time, or until `stop` turns true. What came before is seen.
///
/// # Errors
/// In a line: the interface cannot be opened.
pub(super) fn look(
    live: &Live,
    stop: &AtomicBool,
    found: &mut Found,
    warnings: &mut impl Write,
) -> Result<(), String> {
    let interface = Interface {
        name: live.interface.clone(),
        promiscuous: live.promiscuous,
        ring_octets: RING_OCTETS,
    };
    let parts = opened(&interface)?;
    found.directions_told = parts.len() > 1;
    // A warning or note that cannot be written changes no result.
    _ = match live.duration {
        Some(time) => writeln!(warnings, "looking at {} for {time:?}", printable(&live.interface)),
        None => writeln!(warnings, "looking at {} until Ctrl-C", printable(&live.interface)),
    };
    let (events, observed) = source::channel(BATCHES_WAITING_MAX);
    let halt = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for open in parts {
        let (halt, events) = (halt.clone(), events.clone());
        let thread = source::thread("capture", move || source::capture(open, true, &events, &halt))
            .map_err(|error| format!("{}: {error}", live.interface))?;
        threads.push(thread);
    }
    drop(events);
    let mut captures = threads.len();
    let mut over: Option<Instant> = None;
    let deadline = live.duration.and_then(|duration| Instant::now().checked_add(duration));
    let progress = Progress::watching(&live.interface);
    loop {
        let now = Instant::now();
        if stop.load(Ordering::Relaxed) || deadline.is_some_and(|deadline| now >= deadline) {
            let over = *over.get_or_insert(now);
            halt.store(now.duration_since(over) >= SETTLE, Ordering::Relaxed);
        }
        match observed.recv_timeout(LOOK) {
            Ok(Event::Ended) if captures > 1 => captures -= 1,
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(event) => take(event, found, warnings),
            Err(RecvTimeoutError::Timeout) => {}
        }
        progress.seen(found.tally.frames, found.tally.roce());
    }
    drop(progress);
    // They have said that they end.
    for thread in threads {
        _ = thread.join();
    }
    Ok(())
}

/// The interface, and on Ethernet its frames of MAC control by themselves, received and sent, so that
/// those sent are not taken for received ones.
// PFC-count.1
fn opened(interface: &Interface) -> Result<Vec<Open>, String> {
    let all = source::open(WHOLE, interface, Part::All)?;
    if !all.is_ethernet() {
        return Ok(vec![all]);
    }
    let control = Interface { ring_octets: CONTROL_RING_OCTETS, ..interface.clone() };
    let parts = [
        source::open(WHOLE, interface, Part::ButControl),
        source::open(CONTROL, &control, Part::ControlReceived),
        source::open(CONTROL, &control, Part::ControlSent),
    ];
    // Where they cannot be told apart, nothing is said of who sent them.
    Ok(parts.into_iter().collect::<Result<_, _>>().unwrap_or_else(|_| vec![all]))
}

fn take(event: Event, found: &mut Found, warnings: &mut impl Write) {
    match event {
        Event::Frames(batch) => batch.records().for_each(|record| found.packet(&record)),
        Event::Drops(_, Drops::Counted(frames)) => found.drops(Some(frames)),
        // What becomes of the interface, the capture of everything else tells.
        Event::Drops(CONTROL, Drops::Interrupted(_)) | Event::Lost(CONTROL, _) => {}
        Event::Drops(_, Drops::Unknown) => found.drops(None),
        Event::Drops(_, Drops::Interrupted(what)) => {
            found.drops(None);
            _ = writeln!(warnings, "warning: {}", printable(&what));
        }
        Event::Gap(_, what) | Event::Lost(_, what) | Event::Failed(what) => {
            found.drops(None);
            _ = writeln!(warnings, "warning: {}", printable(&what));
        }
        _ => {}
    }
}
