//! Where frames come from: a thread for each interface, or one for the files. They hand over
//! frames in batches and wait while the observer is behind; what the kernel then drops shows in
//! its drop counter.
//!
//! libpcap reads interfaces: it puts the VLAN tags back that the kernel takes out, and counts what
//! its ring had no room for. Where an interface was down meanwhile, [`super::link`] knows.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use observe::meter::Cause;
use pcap::{Active, Capture as Pcap, Direction, Precision};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::capture::{FrameCheck, Limits, Record};
use wire::frame::{LinkType, UnknownLink};
use wire::pfc;

use super::link::{Link, Look};
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

/// What was found out about the frames between two readings of an interface's drop counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drops {
    /// So many were dropped.
    Counted(u64),
    /// The counter could not be read.
    Unknown,
    /// Frames may not have come this far at all, for a reason in words.
    Interrupted(String),
}

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
    /// What that reading said, and all frames from before it have been handed over.
    Drops(u32, Drops),
    /// From here on an interface is not observed, for a reason in words.
    Lost(u32, String),
    /// It is observed again.
    Back(u32),
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
    check: FrameCheck,
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
            check: record.check,
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
                check: frame.check,
                outbound: frame.outbound,
            }
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        u64::try_from(self.frames.len()).unwrap_or(u64::MAX)
    }

    /// Whether any of them is from before a time, as far as they have times.
    pub fn has_before(&self, time_ns: u64) -> bool {
        self.frames.iter().any(|frame| frame.time_ns.is_some_and(|at_ns| at_ns < time_ns))
    }

    fn is_full(&self) -> bool {
        self.frames.len() >= FRAMES_MAX || self.octets.len() >= OCTETS_FULL
    }
}

/// Which of an interface's frames are captured. libpcap does not tell which were sent, but it can leave
/// out those of one direction. Frames of MAC control are few, so that they can have captures of their
/// own, one for each direction; where they do, no frame is in two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of them, and of none is known whether it was sent.
    All,
    /// All but MAC control.
    ButControl,
    /// MAC control that came in.
    ControlReceived,
    /// MAC control that this host sent.
    ControlSent,
}

impl Part {
    /// Whether a frame on Ethernet is part of it, but for its direction.
    fn has(self, frame: &[u8]) -> bool {
        let control = frame.get(12..14) == Some(&pfc::MAC_CONTROL.to_be_bytes());
        match self {
            Self::All => true,
            Self::ButControl => !control,
            Self::ControlReceived | Self::ControlSent => control,
        }
    }

    /// Has the kernel leave out what is no part of it, as far as the kernel can.
    fn narrow(self, capture: &mut Pcap<Active>) -> Result<(), pcap::Error> {
        let direction = match self {
            Self::All | Self::ButControl => return Ok(()),
            Self::ControlReceived => Direction::In,
            Self::ControlSent => Direction::Out,
        };
        // Asked in the filter, the direction would be unknown for the frames that were in the ring
        // before it, and they would be left out.
        capture.direction(direction)?;
        capture.filter("ether proto 0x8808", true)
    }

    /// What the interface drops is counted by one capture of it.
    const fn counts_interface(self) -> bool {
        matches!(self, Self::All | Self::ButControl)
    }
}

/// An interface that frames are captured on.
pub struct Open {
    number: u32,
    part: Part,
    interface: Interface,
    capture: Pcap<Active>,
    link: Link,
}

/// Opens an interface.
///
/// # Errors
/// In a line: what libpcap says, such as that it is not there or not allowed.
pub fn open(number: u32, interface: &Interface, part: Part) -> Result<Open, String> {
    let (capture, link) =
        activate(interface, part).map_err(|error| format!("{}: {error}", interface.name))?;
    Ok(Open { number, part, interface: interface.clone(), capture, link })
}

impl Open {
    /// Whether its frames begin with an Ethernet header.
    pub fn is_ethernet(&self) -> bool {
        link_type(&self.capture) == Ok(LinkType::Ethernet)
    }
}

fn link_type(capture: &Pcap<Active>) -> Result<LinkType, UnknownLink> {
    LinkType::from_number(u32::try_from(capture.get_datalink().0).unwrap_or(u32::MAX))
}

fn activate(interface: &Interface, part: Part) -> Result<(Pcap<Active>, Link), String> {
    let mut capture = captured(interface).map_err(|error| error.to_string())?;
    part.narrow(&mut capture).map_err(|error| error.to_string())?;
    // What comes before is not metered yet.
    Ok((capture, Link::watch(&interface.name)?))
}

fn captured(interface: &Interface) -> Result<Pcap<Active>, pcap::Error> {
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
    let Open { number, part, interface, capture, link } = open;
    let mut open = Some((capture, link));
    let mut lost = false;
    loop {
        if let Some((capture, link)) = open.take() {
            let reading = Reading::new(number, part, &interface.name, capture, link, events);
            match reading.run(lost, stop) {
                Ok(None) => break,
                Ok(Some(what)) if !reopens => {
                    let what = format!(
                        "{}: {what}: the interface is gone, and what it takes to open it again was \
                         dropped at the start; start the agent again",
                        interface.name
                    );
                    _ = events.send(Event::Failed(what));
                    break;
                }
                Ok(Some(_)) => lost = true,
                Err(Gone) => return,
            }
        }
        thread::sleep(REOPEN_INTERVAL);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match activate(&interface, part) {
            Ok(opened) => open = Some(opened),
            Err(error) => tracing::debug!("{}: {error}", interface.name),
        }
    }
    _ = events.send(Event::Ended);
}

/// One open capture and its drop counter.
struct Reading<'e> {
    number: u32,
    part: Part,
    name: &'e str,
    capture: Pcap<Active>,
    watched: Link,
    /// The interface was said not to be observed.
    lost: bool,
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

struct Taken {
    drops: Drops,
    /// The interface was not up, for a reason in words.
    down: Option<String>,
    at: Instant,
    at_ns: u64,
}

impl<'e> Reading<'e> {
    fn new(
        number: u32,
        part: Part,
        name: &'e str,
        capture: Pcap<Active>,
        watched: Link,
        events: &'e Events,
    ) -> Self {
        let link = link_type(&capture);
        Self {
            number,
            part,
            name,
            capture,
            watched,
            lost: false,
            link,
            events,
            batch: Batch::default(),
            counted: [0; 2],
            next_reading: Instant::now(),
            taken: None,
            last_frame_ns: 0,
            next_seen: Instant::now(),
        }
    }

    /// Reads until it is to stop, or until the interface is gone, for a reason in words. `lost` says
    /// that it was gone before.
    fn run(mut self, lost: bool, stop: &Arc<AtomicBool>) -> Result<Option<String>, Gone> {
        // What was counted before the capture began is not ours.
        if let Ok(stat) = self.capture.stats() {
            self.counted = self.counters(stat);
        }
        self.lost = lost;
        if self.watched.is_up() {
            self.found_up()?;
        } else {
            self.found_down("the interface is not up".into())?;
        }
        while !stop.load(Ordering::Relaxed) {
            let read = self.some();
            self.hand_over()?;
            let looked = match read {
                Ok(empty) => {
                    let looked = self.look(empty)?;
                    if empty {
                        self.wait();
                    }
                    looked
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(what) = looked {
                self.found_down(what.clone())?;
                self.end()?;
                return Ok(Some(what));
            }
        }
        self.hand_over()?;
        self.end()?;
        Ok(None)
    }

    // SEQ-3.7
    fn found_down(&mut self, what: String) -> Result<(), Gone> {
        if std::mem::replace(&mut self.lost, true) {
            return Ok(());
        }
        self.send(Event::Lost(self.number, format!("{}: {what}", self.name)))
    }

    fn found_up(&mut self) -> Result<(), Gone> {
        if std::mem::replace(&mut self.lost, false) {
            self.send(Event::Back(self.number))?;
        }
        Ok(())
    }

    /// The last reading of this capture: what is still in the ring will not be seen.
    fn end(&mut self) -> Result<(), Gone> {
        if let Some(taken) = self.taken.take() {
            self.tell(taken)?;
        }
        // An interface that is gone was said to be so.
        _ = self.take()?;
        match self.taken.take() {
            Some(taken) => self.tell(taken),
            None => Ok(()),
        }
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
            if !self.part.has(packet.data) {
                continue;
            }
            self.batch.push(&Record {
                interface: self.number,
                link: self.link,
                time_ns,
                original_len: packet.header.len,
                data: packet.data,
                drops_before: None,
                damaged: false,
                check: FrameCheck::Untold,
                // libpcap does not tell: what else was sent is not known to be.
                outbound: self.part == Part::ControlSent,
            });
        }
        Ok(false)
    }

    /// Reads the drop counter where that is due, and whether the interface was up. A reading is told
    /// once every frame from before it has been handed over: the drops may lie behind frames that
    /// were still in the ring. Inside, an interface that is gone, in words.
    // SEQ-3.7
    fn look(&mut self, empty: bool) -> Result<Result<(), String>, Gone> {
        let now = Instant::now();
        if let Some(taken) = &self.taken {
            let settle_ns = u64::try_from(SETTLE.as_nanos()).unwrap_or(u64::MAX);
            let passed = self.last_frame_ns > taken.at_ns.saturating_add(settle_ns);
            let settled = empty && now.duration_since(taken.at) >= SETTLE;
            if (passed || settled)
                && let Some(taken) = self.taken.take()
            {
                self.tell(taken)?;
            }
        } else if now >= self.next_reading
            && let Err(gone) = self.take()?
        {
            return Ok(Err(gone));
        }
        if empty && now >= self.next_seen {
            self.next_seen = now + SETTLE;
            let settle_ns = u64::try_from(SETTLE.as_nanos()).unwrap_or(u64::MAX);
            self.send(Event::SeenUntil(self.number, now_ns().saturating_sub(settle_ns)))?;
        }
        Ok(Ok(()))
    }

    /// What was dropped in the ring, and by the interface.
    fn counters(&self, stat: pcap::Stat) -> [u32; 2] {
        [stat.dropped, if self.part.counts_interface() { stat.if_dropped } else { 0 }]
    }

    /// Takes a reading; inside, an interface that is gone, in words.
    fn take(&mut self) -> Result<Result<(), String>, Gone> {
        self.next_reading = Instant::now() + READING_INTERVAL;
        let stat = self.capture.stats();
        let counted = stat.map_or(Drops::Unknown, |stat| {
            let now = self.counters(stat);
            let before = std::mem::replace(&mut self.counted, now);
            let since = now.iter().zip(before).map(|(now, before)| now.wrapping_sub(before));
            Drops::Counted(since.map(u64::from).sum())
        });
        let (mut drops, mut down, mut gone) = (counted, None, Ok(()));
        match self.watched.look() {
            Look::Up => {}
            Look::Interrupted(what) => {
                drops = Drops::Interrupted(format!("{}: {what}", self.name));
            }
            Look::Down(what) => down = Some(what),
            Look::Gone(what) => {
                gone = Err(what.clone());
                down = Some(what);
            }
        }
        self.taken = Some(Taken { drops, down, at: Instant::now(), at_ns: now_ns() });
        self.send(Event::ReadingTaken(self.number))?;
        Ok(gone)
    }

    fn tell(&mut self, taken: Taken) -> Result<(), Gone> {
        let Taken { mut drops, down, .. } = taken;
        let down = match down {
            // Since when it was so is not known.
            Some(what) if !self.lost => {
                drops = Drops::Interrupted(format!("{}: {what}", self.name));
                Some(what)
            }
            down => down,
        };
        self.send(Event::Drops(self.number, drops))?;
        match down {
            Some(what) => self.found_down(what),
            None => self.found_up(),
        }
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
