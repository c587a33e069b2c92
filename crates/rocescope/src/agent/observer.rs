//! The one thread that meters: frames in, each shown to every Transport Session, octets out to
//! those whose transport has room. It holds what is common to sessions: the rules, the disabled
//! streams, and how far each source has come.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use observe::meter::Cause;
use observe::provision::Provisioning;
use observe::report::StreamKey;
use prometheus::proto::MetricFamily;
use tokio::sync::mpsc::Sender;
use wire::capture::Statistics;

use super::control::{Answer, Request};
use super::counters::{Counted, Seen, SessionNumbers};
use super::destination::Piece;
use super::disabled::Disabled;
use super::manage::Managed;
use super::pfc::Shelf;
use super::place::{Ended, Live, Place, Target, added};
use super::queue::SourceCounts;
use super::session::{ExportSession, HandedOver, Now, SessionCounts};
use super::source::{Batch, Drops, Event, now_ns};
use super::{control, counters, lacking, state};
use crate::capture::{Item, Visitor as _};
use crate::config::Device;
use crate::layout::stream_name;
use crate::queue::board::Board;

/// Nothing waits for longer than this to be noticed.
const TICK: Duration = Duration::from_millis(20);
/// Sources that are told to stop have this long to say what they still have.
const SOURCES_STOP: Duration = Duration::from_secs(2);

/// Streams that a violation disables, of which each is told in a line of its own.
const DISABLED_TOLD_MAX: u64 = 100;

/// What the observer is asked to do.
pub enum Command {
    /// A destination is connected: its session begins. Octets go into the pipe.
    Connected {
        /// Its place among the destinations.
        destination: usize,
        /// Takes octets; closed when the connection is gone.
        pipe: Sender<Piece>,
    },
    /// Somebody asks for the metrics.
    Counted(tokio::sync::oneshot::Sender<(Vec<Counted>, Option<MetricFamily>)>),
    /// Somebody asks whether anybody answers.
    Alive(tokio::sync::oneshot::Sender<()>),
    /// A new configuration does not hold, because it was refused.
    NotReloaded,
    /// The operator asks; the answer goes back.
    Control(Request, tokio::sync::oneshot::Sender<Answer>),
    /// A new configuration holds.
    Reload(Box<Device>),
    /// The end: finals go out, and then nothing.
    Stop,
}

/// The sources as far as a session that begins has to know them.
#[derive(Default)]
struct Known {
    /// The interfaces of the section that is read, and whether each has counters.
    interfaces: Vec<bool>,
    /// The latest statistics of each.
    statistics: Vec<Statistics>,
    /// Up to when each live interface has been seen.
    seen_ns: Vec<u64>,
    /// Interfaces that are not observed now.
    lost: BTreeSet<u32>,
    /// Since when all of them have been observed.
    whole_since_ns: u64,
}

/// How many sources of which kind there are.
#[derive(Clone, Copy, Debug)]
pub struct SourceKinds {
    /// Live interfaces.
    pub interfaces: usize,
    /// Files are played.
    pub files: bool,
}

/// Everything between sources and transports.
pub struct Observer {
    pub(super) device: Device,
    pub(super) provisioning: Provisioning,
    pub(super) disabled: Disabled,
    state_file: Option<PathBuf>,
    pub(super) places: Vec<Place>,
    known: Known,
    kinds: SourceKinds,
    pub(super) running: usize,
    stop_sources: Arc<AtomicBool>,
    started: Instant,
    /// Since when it stops.
    stopping: Option<Instant>,
    pub(super) seen: Seen,
    pub(super) batches_waiting: Arc<AtomicU64>,
    /// Readings of PFC counters, by source.
    pub(super) shelves: Vec<Arc<Shelf>>,
    /// What sources of queue measurements count, and where their rows are.
    pub(super) queues: (Vec<Arc<SourceCounts>>, Option<Arc<Board>>),
    pub(super) managed: Option<Arc<Managed>>,
    /// Why it cannot go on, if that is so.
    failed: Option<String>,
}

impl Observer {
    /// An observer without sessions. `disabled` is what an agent before this one left.
    pub fn new(
        device: Device,
        provisioning: Provisioning,
        disabled: Disabled,
        targets: Vec<Target>,
        kinds: SourceKinds,
        stop_sources: Arc<AtomicBool>,
        batches_waiting: Arc<AtomicU64>,
    ) -> Self {
        let place = |target| Place {
            target,
            live: None,
            sessions: 0,
            frames_without_session: 0,
            unsent: [0; 2],
            past: SessionCounts::default(),
            past_numbers: SessionNumbers::default(),
        };
        let known = Known {
            interfaces: vec![true; kinds.interfaces],
            statistics: Vec::new(),
            seen_ns: vec![0; kinds.interfaces],
            lost: BTreeSet::new(),
            whole_since_ns: 0,
        };
        Self {
            state_file: device.agent.state_file.as_ref().map(|file| file.path.clone()),
            device,
            provisioning,
            disabled,
            places: targets.into_iter().map(place).collect(),
            known,
            kinds,
            running: kinds.interfaces + usize::from(kinds.files),
            stop_sources,
            started: Instant::now(),
            stopping: None,
            seen: Seen::default(),
            batches_waiting,
            shelves: Vec::new(),
            queues: (Vec::new(), None),
            managed: None,
            failed: None,
        }
    }

    /// With readings of PFC counters, which every session takes.
    pub fn with_readings(self, shelves: Vec<Arc<Shelf>>) -> Self {
        Self { shelves, ..self }
    }

    /// With what sources of queue measurements count, and where their rows are.
    pub fn with_queues(self, counts: Vec<Arc<SourceCounts>>, board: Option<Arc<Board>>) -> Self {
        Self { queues: (counts, board), ..self }
    }

    /// With what is served of them, whose rules a reload takes over.
    pub fn with_managed(self, managed: Option<Arc<Managed>>) -> Self {
        Self { managed, ..self }
    }

    /// Runs until it is told to stop, the files are through or a source has failed, and the finals
    /// are out. Says what became of the destinations, and what failed.
    pub fn run(
        mut self,
        events: &Receiver<Event>,
        commands: &Receiver<Command>,
    ) -> (Vec<Ended>, Option<String>) {
        loop {
            loop {
                match commands.try_recv() {
                    Ok(command) => self.command(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        self.stop();
                        break;
                    }
                }
            }
            if self.observes() {
                match events.recv_timeout(TICK) {
                    Ok(event) => self.event(event),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        // None of them ends without saying so, unless by a fault of ours.
                        tracing::error!("every source is gone");
                        self.running = 0;
                        self.sessions(|session| session.gap(Cause::CaptureGap));
                        self.stop();
                    }
                }
            } else {
                std::thread::sleep(TICK);
            }
            self.transmit();
            if self.is_over() {
                return self.end();
            }
        }
    }

    /// Files wait until every destination has a session: what is played before is lost to it.
    fn observes(&self) -> bool {
        let connected = self.places.iter().all(|place| place.sessions > 0);
        self.running > 0 && (!self.kinds.files || connected || self.stopping.is_some())
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Connected { destination, pipe } => self.connected(destination, pipe),
            Command::Control(request, answer) => {
                let answered = control::answer(self, request);
                // Who asked may have gone.
                _ = answer.send(answered);
            }
            Command::Counted(answer) => {
                _ = answer.send((counters::rows(self), lacking::metrics(self)));
            }
            Command::Alive(answer) => _ = answer.send(()),
            Command::NotReloaded => self.seen.reloads_refused += 1,
            Command::Reload(device) => self.reload(*device),
            Command::Stop => self.stop(),
        }
    }

    /// A Transport Session begins, fresh in everything but what is disabled.
    // SEQ-4.6, SEQ-6.1, SEQ-10.2
    fn connected(&mut self, destination: usize, pipe: Sender<Piece>) {
        self.disconnected(destination);
        let now = self.now();
        let place = &mut self.places[destination];
        let settings = place.target.settings;
        let made = ExportSession::new(settings, self.provisioning.clone(), &self.disabled, now);
        let mut session = match made {
            Ok(session) => session,
            Err(error) => return tracing::error!("{}: {error}", place.target.name),
        };
        for counters in &self.known.interfaces {
            session.item(Item::Interface { counters: *counters, name: None });
        }
        for statistics in &self.known.statistics {
            session.item(Item::Statistics(*statistics));
        }
        place.sessions += 1;
        place.live = Some(Live { session, began: Instant::now(), pipe });
    }

    /// The transport of a destination is gone, and its session with it.
    fn disconnected(&mut self, destination: usize) {
        let Some(mut live) = self.places[destination].live.take() else { return };
        let disabled: Vec<StreamKey> = live.session.disabled().collect();
        self.disable(&disabled);
        live.session.end();
        let dropped = live.session.abandon();
        let place = &mut self.places[destination];
        place.past = added(place.past, live.session.counts());
        place.past_numbers.add(&SessionNumbers::of(&mut live));
        // What is still on its way where the connection is not gone shows when that ends.
        let unsent = match live.pipe.is_closed() {
            true => place.past.beyond(place.target.counts.handed_over()),
            false => place.unsent,
        };
        let [reports, finals] = [0, 1].map(|i| unsent[i].saturating_sub(place.unsent[i]));
        place.unsent = unsent;
        if dropped > 0 || reports > 0 {
            let name = &place.target.name;
            tracing::warn!(
                "{name}: with the session went {dropped} final reports that waited, and {reports} \
                 reports, {finals} of them final, that were queued and not sent: their epochs are \
                 incomplete"
            );
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Frames(batch) => {
                self.seen.batches += 1;
                self.batches_waiting.fetch_sub(1, Ordering::Relaxed);
                self.frames(&batch);
            }
            Event::File => self.sessions(ExportSession::file),
            Event::Item(item) => self.item(item),
            Event::ReadingTaken(interface) => {
                self.sessions(|session| session.reading_taken(interface));
            }
            Event::Drops(interface, drops) => self.drops(interface, drops),
            // SEQ-3.7: what one of several does not show may be of any stream.
            Event::Lost(interface, what) => {
                self.seen.gaps += 1;
                tracing::warn!("{what}: nothing is metered until it is observed again");
                self.known.lost.insert(interface);
                self.sessions(|session| session.gap(Cause::CaptureGap));
            }
            Event::Back(interface) => {
                self.known.lost.remove(&interface);
                self.known.whole_since_ns = now_ns();
                if self.known.lost.is_empty() {
                    tracing::info!("every interface is observed again");
                }
            }
            Event::SeenUntil(interface, time_ns) => self.seen_until(interface, time_ns),
            Event::Gap(cause, what) => {
                self.seen.gaps += 1;
                tracing::warn!("{what}");
                self.sessions(|session| session.gap(cause));
            }
            // SEQ-3.7
            Event::Failed(what) => {
                self.seen.gaps += 1;
                self.sessions(|session| session.gap(Cause::CaptureGap));
                self.failed.get_or_insert(what);
                self.stop();
            }
            Event::Ended => {
                self.running = self.running.saturating_sub(1);
                // Counters and queues have no end.
                if self.running == 0 && self.shelves.is_empty() && self.queues.1.is_none() {
                    self.stop();
                }
            }
        }
    }

    /// Frames are metered by every session, but only while all that there is to observe is observed.
    // SEQ-3.6, SEQ-3.7
    fn frames(&mut self, batch: &Batch) {
        let whole_since_ns = self.known.whole_since_ns;
        let before = whole_since_ns > 0 && batch.has_before(whole_since_ns);
        if before || !self.known.lost.is_empty() {
            self.seen.frames_not_metered += batch.len();
            return;
        }
        for place in &mut self.places {
            let Some(live) = &mut place.live else {
                place.frames_without_session += batch.len();
                continue;
            };
            for record in batch.records() {
                live.session.packet(&record);
            }
        }
        self.collect_violated();
    }

    /// A reading of a drop counter.
    // SEQ-3.7
    fn drops(&mut self, interface: u32, drops: Drops) {
        let drops = match drops {
            Drops::Counted(drops) => {
                self.seen.dropped_frames += drops;
                if drops > 0 {
                    tracing::warn!("{drops} frames dropped before they were seen");
                }
                Some(drops)
            }
            Drops::Unknown => {
                self.seen.readings_unknown += 1;
                tracing::warn!("a drop counter cannot be read: frames may have passed unseen");
                None
            }
            Drops::Interrupted(what) => {
                self.seen.interruptions += 1;
                tracing::warn!("{what}: frames may have passed unseen");
                None
            }
        };
        if drops != Some(0) {
            self.seen.gaps += 1;
        }
        self.sessions(|session| session.drops(interface, drops));
    }

    fn item(&mut self, item: Item) {
        match &item {
            Item::Section => {
                self.known.interfaces.clear();
                self.known.statistics.clear();
            }
            Item::Interface { counters, .. } => self.known.interfaces.push(*counters),
            Item::Statistics(new) => {
                self.known.statistics.retain(|old| old.interface != new.interface);
                self.known.statistics.push(*new);
            }
            Item::Truncated { .. } => self.seen.gaps += 1,
        }
        self.sessions(|session| session.item(again(&item)));
    }

    /// An interface has been seen up to a time; what counts is the one that is furthest behind.
    fn seen_until(&mut self, interface: u32, time_ns: u64) {
        let seen = usize::try_from(interface).ok().and_then(|i| self.known.seen_ns.get_mut(i));
        if let Some(seen) = seen {
            *seen = time_ns;
        }
        let all_ns = self.known.seen_ns.iter().copied().min().unwrap_or(0);
        self.sessions(|session| session.seen_until(all_ns));
    }

    pub(super) fn sessions(&mut self, mut act: impl FnMut(&mut ExportSession)) {
        for live in self.places.iter_mut().filter_map(|place| place.live.as_mut()) {
            act(&mut live.session);
        }
    }

    // SEQ-3.3
    fn collect_violated(&mut self) {
        let mut violated = Vec::new();
        self.sessions(|session| violated.append(&mut session.take_violated()));
        self.disable(&violated);
    }

    fn disable(&mut self, keys: &[StreamKey]) {
        let mut news = false;
        for key in keys {
            let revision = self.provisioning.find(key).map_or(0, |rule| rule.revision);
            if self.disabled.add(*key, revision) {
                news = true;
                self.tell_disabled(key);
            }
        }
        if news {
            self.keep_state();
        }
    }

    /// One who can make up streams must not fill the log.
    // SEQ-3.3, SEQ-10.3
    fn tell_disabled(&mut self, key: &StreamKey) {
        self.seen.disabled_told += 1;
        let told = self.seen.disabled_told;
        if told <= DISABLED_TOLD_MAX {
            let stream = stream_name(key);
            tracing::warn!(
                "{stream}: a request outside the profile, not metered until reprovisioned"
            );
        }
        if told == DISABLED_TOLD_MAX {
            tracing::warn!("further streams that are disabled are only counted");
        }
    }

    pub(super) fn keep_state(&self) {
        if let Some(path) = &self.state_file
            && let Err(error) = state::write(path, &self.disabled)
        {
            tracing::error!("{}: {error}: disabled streams are not kept", path.display());
        }
    }

    /// The operator enables a stream again, in every session and for those to come.
    // SEQ-3.3
    pub(super) fn reprovision(&mut self, key: &StreamKey) -> bool {
        let mut was = self.disabled.remove(key);
        self.sessions(|session| was |= session.reprovision(key));
        self.keep_state();
        was
    }

    // SEQ-4.9
    pub(super) fn new_generation(&mut self, key: &StreamKey) -> bool {
        let mut seen = false;
        self.sessions(|session| seen |= session.new_generation(key));
        seen
    }

    // SEQ-3.8
    pub(super) fn capture_gap(&mut self) {
        self.seen.gaps += 1;
        self.sessions(|session| session.gap(Cause::CaptureGap));
    }

    fn stop(&mut self) {
        if self.stopping.is_none() {
            self.stopping = Some(Instant::now());
            self.stop_sources.store(true, Ordering::Relaxed);
        }
    }

    /// Fills every transport that has room.
    fn transmit(&mut self) {
        let now = self.now();
        // The last word of the sources comes before the end; a file has none.
        let waited = self.stopping.is_some_and(|since| since.elapsed() >= SOURCES_STOP);
        let quiet = self.running == 0 || self.kinds.files || waited;
        let ends = self.stopping.is_some() && quiet;
        for index in 0..self.places.len() {
            let place = &mut self.places[index];
            let Some(live) = &mut place.live else { continue };
            if ends {
                live.session.end();
            }
            live.session.advance(now);
            if live.session.wants_readings(now) {
                for (source, shelf) in self.shelves.iter().enumerate() {
                    live.session.readings(now, source, &shelf.qualified, &shelf.latest());
                }
            }
            while live.pipe.capacity() > 0 {
                let (mut octets, before) = (Vec::new(), live.session.counts());
                match live.session.transmit(now, &mut octets) {
                    // One that is not taken any more is not counted as sent either.
                    Ok(true) => {
                        let holds = HandedOver::between(before, live.session.counts());
                        _ = live.pipe.try_send(Piece { octets, holds });
                    }
                    Ok(false) => break,
                    Err(error) => {
                        tracing::error!("{}: {error}", place.target.name);
                        break;
                    }
                }
            }
            if live.pipe.is_closed() {
                self.disconnected(index);
            } else if live.session.is_through() {
                // Dropping the pipe closes the connection, once all of it has been sent.
                self.disconnected(index);
            }
        }
    }

    fn is_over(&self) -> bool {
        let Some(since) = self.stopping else { return false };
        let limit = Duration::from_secs(self.device.agent.limits.stop_timeout_s);
        let none = self.places.iter().all(|place| place.live.is_none());
        let quiet = self.running == 0 || self.kinds.files || since.elapsed() >= SOURCES_STOP;
        (none && quiet) || since.elapsed() >= limit + SOURCES_STOP
    }

    fn end(mut self) -> (Vec<Ended>, Option<String>) {
        for index in 0..self.places.len() {
            self.disconnected(index);
        }
        let ended = |place: Place| Ended {
            name: place.target.name,
            counts: place.past,
            way: place.target.counts,
            frames_without_session: place.frames_without_session,
        };
        (self.places.into_iter().map(ended).collect(), self.failed)
    }

    fn now(&self) -> Now {
        let monotonic_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // 32 bits of seconds, as in every IPFIX message; they last until 2106.
        let export_s = u32::try_from(now_ns() / 1_000_000_000).unwrap_or(u32::MAX);
        Now { monotonic_ms, export_s }
    }

    /// Interfaces that are not observed now.
    pub(super) fn interfaces_lost(&self) -> usize {
        self.known.lost.len()
    }

    /// How long it has been running.
    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The same item once more.
fn again(item: &Item) -> Item {
    match item {
        Item::Section => Item::Section,
        Item::Interface { counters, name } => {
            Item::Interface { counters: *counters, name: name.clone() }
        }
        Item::Statistics(statistics) => Item::Statistics(*statistics),
        Item::Truncated { what } => Item::Truncated { what: what.clone() },
    }
}
