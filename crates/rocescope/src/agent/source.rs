//! Where frames come from: a thread for each interface, or one for the files. They hand over
//! frames in batches and wait while the observer is behind; what the kernel then drops shows in
//! its drop counter.
//!
//! libpcap reads interfaces: it puts the VLAN tags back that the kernel takes out, and counts what
//! its ring had no room for.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use observe::meter::Cause;
use pcap::{Active, Capture as Pcap, Precision};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::capture::{Limits, Record};
use wire::frame::{LinkType, UnknownLink};

use crate::capture::{Access, Capture, Item, Visitor};
use crate::config::{Interface, Pace, Replay};
use crate::progress::Progress;

/// Frames of a batch, at most.
const FRAMES_MAX: usize = 512;
/// Octets of a batch after which it is handed over.
const OCTETS_FULL: usize = 256 << 10;
/// Octets of a frame that are captured: more than any frame has.
const SNAP_LEN: i32 = 262_144;
/// The kernel hands a part of its ring over after this long, full or not.
const RETIRE_MS: i32 = 10;
/// A frame is seen within this time after it came, if it is not dropped.
const SETTLE: Duration = Duration::from_millis(100);
/// The drop counter is read this often.
const READING_INTERVAL: Duration = Duration::from_millis(200);
/// An interface that is gone is looked for this often.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// What sources tell, each in its order.
#[derive(Debug)]
pub enum Event {
    /// Frames.
    Frames(Batch),
    /// The next file begins.
    File,
    /// Something in a file beside packets.
    Item(Item),
    /// An interface's drop counter was read just now.
    ReadingTaken(u32),
    /// That reading shows so many drops, or cannot be had, and all frames from before it have been
    /// handed over.
    Drops(u32, Option<u64>),
    /// All frames of an interface up to this time have been handed over, nanoseconds since 1970.
    SeenUntil(u32, u64),
    /// Frames are missing here.
    Gap(Cause, String),
    /// An interface is gone for good, and with it the observation.
    Failed(String),
    /// The source has come to its end.
    Ended,
}

/// The way of events to the observer, and how many batches of frames are on it.
#[derive(Clone, Debug)]
pub struct Events {
    sender: SyncSender<Event>,
    batches_waiting: Arc<AtomicU64>,
}

/// A way with room for so many events.
pub fn channel(max: usize) -> (Events, Receiver<Event>) {
    let (sender, receiver) = sync_channel(max);
    (Events { sender, batches_waiting: Arc::default() }, receiver)
}

impl Events {
    /// How many batches of frames are on the way; whoever takes one off counts it off.
    pub fn waiting(&self) -> Arc<AtomicU64> {
        self.batches_waiting.clone()
    }

    /// Waits for room.
    fn send(&self, event: Event) -> Result<(), Gone> {
        if let Event::Frames(_) = event {
            self.batches_waiting.fetch_add(1, Ordering::Relaxed);
        }
        self.sender.send(event).map_err(|_| Gone)
    }
}

/// Frames, one behind the other.
#[derive(Debug, Default)]
pub struct Batch {
    octets: Vec<u8>,
    frames: Vec<FrameAt>,
}

#[derive(Clone, Copy, Debug)]
struct FrameAt {
    end: usize,
    interface: u32,
    link: Result<LinkType, UnknownLink>,
    time_ns: Option<u64>,
    original_len: u32,
    drops_before: Option<u64>,
    damaged: bool,
    outbound: bool,
}

impl Batch {
    /// Adds a frame.
    pub fn push(&mut self, record: &Record<'_>) {
        self.octets.extend_from_slice(record.data);
        self.frames.push(FrameAt {
            end: self.octets.len(),
            interface: record.interface,
            link: record.link,
            time_ns: record.time_ns,
            original_len: record.original_len,
            drops_before: record.drops_before,
            damaged: record.damaged,
            outbound: record.outbound,
        });
    }

    /// Each frame in its order.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let mut start = 0;
        self.frames.iter().map(move |frame| {
            let data = &self.octets[start..frame.end];
            start = frame.end;
            Record {
                interface: frame.interface,
                link: frame.link,
                time_ns: frame.time_ns,
                original_len: frame.original_len,
                data,
                drops_before: frame.drops_before,
                damaged: frame.damaged,
                outbound: frame.outbound,
            }
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    fn is_full(&self) -> bool {
        self.frames.len() >= FRAMES_MAX || self.octets.len() >= OCTETS_FULL
    }
}

/// An interface that frames are captured on.
pub struct Open {
    number: u32,
    interface: Interface,
    capture: Pcap<Active>,
}

/// Opens an interface.
///
/// # Errors
/// In a line: what libpcap says, such as that it is not there or not allowed.
pub fn open(number: u32, interface: &Interface) -> Result<Open, String> {
    let capture = activate(interface).map_err(|error| format!("{}: {error}", interface.name))?;
    Ok(Open { number, interface: interface.clone(), capture })
}

fn activate(interface: &Interface) -> Result<Pcap<Active>, pcap::Error> {
    Pcap::from_device(interface.name.as_str())?
        .promisc(interface.promiscuous)
        .snaplen(SNAP_LEN)
        .buffer_size(i32::try_from(interface.ring_octets).unwrap_or(i32::MAX))
        .timeout(RETIRE_MS)
        .precision(Precision::Nano)
        .open()?
        .setnonblock()
}

/// The observer is gone: there is nobody to tell anything.
struct Gone;

/// Captures until `stop` is set, and says so with a last reading. An interface that is gone is
/// opened again when it is back, but only where that `reopens`: without privileges it cannot be.
pub fn capture(open: Open, reopens: bool, events: &Events, stop: &Arc<AtomicBool>) {
    let Open { number, interface, capture } = open;
    let mut open = Some(capture);
    loop {
        if let Some(capture) = open.take() {
            match Reading::new(number, capture, events).run(stop) {
                Ok(Ok(())) => break,
                Ok(Err(error)) => {
                    let what = format!("{}: {error}", interface.name);
                    if !reopens {
                        let what = format!(
                            "{what}: the interface is gone, and what it takes to open it again \
                             was dropped at the start; start the agent again"
                        );
                        _ = events.send(Event::Failed(what));
                        break;
                    }
                    if events.send(Event::Gap(Cause::CaptureGap, what)).is_err() {
                        return;
                    }
                }
                Err(Gone) => return,
            }
        }
        thread::sleep(REOPEN_INTERVAL);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match activate(&interface) {
            Ok(capture) => open = Some(capture),
            Err(error) => tracing::debug!("{}: {error}", interface.name),
        }
    }
    _ = events.send(Event::Ended);
}

/// One open capture and its drop counter.
struct Reading<'e> {
    number: u32,
    capture: Pcap<Active>,
    link: Result<LinkType, UnknownLink>,
    events: &'e Events,
    batch: Batch,
    /// The latest values of the counters, modulo 2^32: of the ring and of the interface.
    counted: [u32; 2],
    next_reading: Instant,
    /// A reading that was taken and not told yet.
    taken: Option<Taken>,
    last_frame_ns: u64,
    next_seen: Instant,
}

#[derive(Clone, Copy)]
struct Taken {
    drops: Option<u64>,
    at: Instant,
    at_ns: u64,
}

impl<'e> Reading<'e> {
    fn new(number: u32, capture: Pcap<Active>, events: &'e Events) -> Self {
        let link = u32::try_from(capture.get_datalink().0).unwrap_or(u32::MAX);
        Self {
            number,
            capture,
            link: LinkType::from_number(link),
            events,
            batch: Batch::default(),
            counted: [0; 2],
            next_reading: Instant::now(),
            taken: None,
            last_frame_ns: 0,
            next_seen: Instant::now(),
        }
    }

    fn run(mut self, stop: &Arc<AtomicBool>) -> Result<Result<(), pcap::Error>, Gone> {
        // What was counted before the capture began is not ours.
        if let Ok(stat) = self.capture.stats() {
            self.counted = [stat.dropped, stat.if_dropped];
        }
        while !stop.load(Ordering::Relaxed) {
            match self.some() {
                Ok(true) if !self.batch.is_full() => {
                    self.hand_over()?;
                    self.look(true)?;
                    self.wait();
                }
                Ok(_) => {
                    self.hand_over()?;
                    self.look(false)?;
                }
                Err(error) => {
                    self.hand_over()?;
                    self.end()?;
                    return Ok(Err(error));
                }
            }
        }
        self.hand_over()?;
        self.end()?;
        Ok(Ok(()))
    }

    /// The last reading of this capture: what is still in the ring will not be seen.
    fn end(&mut self) -> Result<(), Gone> {
        if let Some(taken) = self.taken {
            self.tell(taken)?;
        }
        self.take()?;
        self.taken.map_or(Ok(()), |taken| self.tell(taken))
    }

    /// Reads until a batch is full, or there is nothing to read, which is true.
    fn some(&mut self) -> Result<bool, pcap::Error> {
        while !self.batch.is_full() {
            let packet = match self.capture.next_packet() {
                Ok(packet) => packet,
                Err(pcap::Error::TimeoutExpired) => return Ok(true),
                Err(error) => return Err(error),
            };
            let time_ns = nanoseconds(packet.header.ts.tv_sec, packet.header.ts.tv_usec);
            self.last_frame_ns = time_ns.unwrap_or(self.last_frame_ns);
            self.batch.push(&Record {
                interface: self.number,
                link: self.link,
                time_ns,
                original_len: packet.header.len,
                data: packet.data,
                drops_before: None,
                damaged: false,
                // libpcap does not tell, and no PFC frames are counted here.
                outbound: false,
            });
        }
        Ok(false)
    }

    /// Reads the drop counter where that is due. A reading is told once every frame from before it
    /// has been handed over: the drops may lie behind frames that were still in the ring.
    // SEQ-3.7
    fn look(&mut self, empty: bool) -> Result<(), Gone> {
        let now = Instant::now();
        if let Some(taken) = self.taken {
            let settle_ns = u64::try_from(SETTLE.as_nanos()).unwrap_or(u64::MAX);
            let passed = self.last_frame_ns > taken.at_ns.saturating_add(settle_ns);
            let settled = empty && now.duration_since(taken.at) >= SETTLE;
            if passed || settled {
                self.tell(taken)?;
            }
        } else if now >= self.next_reading {
            self.take()?;
        }
        if empty && now >= self.next_seen {
            self.next_seen = now + SETTLE;
            let settle_ns = u64::try_from(SETTLE.as_nanos()).unwrap_or(u64::MAX);
            self.send(Event::SeenUntil(self.number, now_ns().saturating_sub(settle_ns)))?;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<(), Gone> {
        self.next_reading = Instant::now() + READING_INTERVAL;
        let drops = self.capture.stats().ok().map(|stat| {
            let now = [stat.dropped, stat.if_dropped];
            let before = std::mem::replace(&mut self.counted, now);
            now.iter().zip(before).map(|(now, before)| u64::from(now.wrapping_sub(before))).sum()
        });
        self.taken = Some(Taken { drops, at: Instant::now(), at_ns: now_ns() });
        self.send(Event::ReadingTaken(self.number))
    }

    fn tell(&mut self, taken: Taken) -> Result<(), Gone> {
        self.taken = None;
        self.send(Event::Drops(self.number, taken.drops))
    }

    fn hand_over(&mut self) -> Result<(), Gone> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.send(Event::Frames(batch))
    }

    fn send(&self, event: Event) -> Result<(), Gone> {
        self.events.send(event)
    }

    /// Until there is something to read, for a few milliseconds.
    fn wait(&self) {
        let mut fds = [PollFd::from_borrowed_fd(self.capture.as_fd(), PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(RETIRE_MS) * 1_000_000 };
        // An interruption only means to look again.
        _ = poll(&mut fds, Some(&timeout));
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> Option<u64> {
    let whole = u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?;
    whole.checked_add(u64::try_from(nanoseconds).ok()?)
}

/// Nanoseconds since 1970 by the clock that also stamps frames.
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Plays files, one after the other.
pub fn play(files: &[Replay], events: &Events) {
    for replay in files {
        let path: &PathBuf = &replay.file.path;
        if events.send(Event::File).is_err() {
            return;
        }
        let mut player =
            Player { events, batch: Batch::default(), pace: replay.pace, start: None, gone: false };
        let read = Capture::open(path, Access::Read)
            .and_then(|file| file.read(Limits::default(), &Progress::silent(), &mut player));
        player.hand_over();
        if let Err(error) = read {
            _ = events.send(Event::Gap(Cause::FileDamaged, error.to_string()));
        }
        if player.gone {
            return;
        }
    }
    _ = events.send(Event::Ended);
}

struct Player<'e> {
    events: &'e Events,
    batch: Batch,
    pace: Pace,
    /// When the first packet was played, and its time.
    start: Option<(Instant, u64)>,
    gone: bool,
}

impl Player<'_> {
    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.send(Event::Frames(batch));
        }
    }

    fn send(&mut self, event: Event) {
        self.gone = self.gone || self.events.send(event).is_err();
    }

    /// Waits for a packet's time.
    fn keep_pace(&mut self, time_ns: u64) {
        let (started, first_ns) = *self.start.get_or_insert_with(|| (Instant::now(), time_ns));
        let due = Duration::from_nanos(time_ns.saturating_sub(first_ns));
        let wait = due.saturating_sub(started.elapsed());
        if !wait.is_zero() {
            self.hand_over();
            thread::sleep(wait);
        }
    }
}

impl Visitor for Player<'_> {
    fn packet(&mut self, record: &Record<'_>) {
        if self.gone {
            return;
        }
        if let (Pace::Capture, Some(time_ns)) = (self.pace, record.time_ns) {
            self.keep_pace(time_ns);
        }
        self.batch.push(record);
        if self.batch.is_full() {
            self.hand_over();
        }
    }

    fn item(&mut self, item: Item) {
        self.hand_over();
        self.send(Event::Item(item));
    }

    fn pause(&mut self) {
        self.hand_over();
    }
}

/// Starts a thread with a name.
///
/// # Errors
/// There can be no more threads.
pub fn thread(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
