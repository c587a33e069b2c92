//! What an agent counts: everything that is bounded, dropped, refused or skipped. There is one table
//! of it and there are two printers: `rocescope agent ctl status` and `/metrics`.
//!
//! A session counts from its own beginning. The metrics of a destination go on over all of its
//! sessions, as counters have to.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Map, Value, json};
use wire::frame::NotRoce;

use super::lacking;
use super::observer::Observer;
use super::place::{Live, Place, added};
use super::queue::Numbers;
use crate::collector::{Row, Sort};
use crate::pfc::Absent;
use crate::pfc::poller::PollCounts;

/// One number.
struct Column {
    /// Its name as JSON.
    key: &'static str,
    /// Its name as a metric, without the prefix.
    name: &'static str,
    /// What it is, for people.
    about: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only grows.
    Counter,
    /// As it is now.
    Gauge,
    /// Yes or no; a gauge of 1 or 0 as a metric.
    Flag,
}

const fn counter(key: &'static str, name: &'static str, about: &'static str) -> Column {
    Column { key, name, about, kind: Kind::Counter }
}

const fn gauge(key: &'static str, name: &'static str, about: &'static str) -> Column {
    Column { key, name, about, kind: Kind::Gauge }
}

/// Of a destination, over all its sessions.
// SEQ-10.3
static DESTINATION: [Column; 19] = [
    Column {
        key: "connected",
        name: "connected",
        about: "1 while there is a Transport Session",
        kind: Kind::Flag,
    },
    counter("sessions", "sessions_total", "Transport Sessions that began"),
    counter("attempts", "connection_attempts_total", "Attempts to connect"),
    counter("failures", "connection_failures_total", "Attempts to connect that came to nothing"),
    counter("stalled", "sessions_stalled_total", "Sessions whose collector took nothing any more"),
    counter("sentOctets", "sent_octets_total", "Octets that the network has taken"),
    counter("serialisedOctets", "serialised_octets_total", "Octets that were made to be sent"),
    counter("reports", "reports_total", "Reports serialised, final ones among them"),
    counter("finals", "finals_total", "Final reports serialised"),
    counter("sentReports", "sent_reports_total", "Reports that the network has taken"),
    counter("sentFinals", "sent_finals_total", "Final reports that the network has taken"),
    gauge(
        "unsentReports",
        "unsent_reports",
        "Reports serialised that the network has not taken: on their way, or gone with a connection",
    ),
    gauge("unsentFinals", "unsent_finals", "Final reports among those"),
    counter("signsOfLife", "signs_of_life_total", "Reports repeated under their old id"),
    counter(
        "skippedReports",
        "reports_skipped_total",
        "Reports that were due and had no room; the next one of their epoch stands for them",
    ),
    counter(
        "droppedFinals",
        "finals_dropped_total",
        "Final reports that found no room or no transport: their epochs stay incomplete",
    ),
    counter(
        "framesWithoutSession",
        "frames_without_session_total",
        "Frames that passed while there was no session: nothing is reported of them",
    ),
    counter("pfcReadings", "pfc_readings_sent_total", "Readings of PFC counters serialised"),
    counter(
        "pfcReadingsSkipped",
        "pfc_readings_skipped_total",
        "Readings of PFC counters that had no room; later ones stand for them",
    ),
];

fn of_destination(place: &mut Place) -> [u64; DESTINATION.len()] {
    let now = place.live.as_mut().map(|live| live.session.counts()).unwrap_or_default();
    let all = added(place.past, now);
    let counts = &place.target.counts;
    let sent = counts.handed_over();
    let [unsent, unsent_finals] = all.beyond(sent);
    [
        u64::from(place.live.is_some()),
        place.sessions,
        counts.attempts.load(Relaxed),
        counts.failures.load(Relaxed),
        counts.stalled.load(Relaxed),
        counts.sent_octets.load(Relaxed),
        all.octets,
        all.reports,
        all.finals,
        sent.reports,
        sent.finals,
        unsent,
        unsent_finals,
        all.signs_of_life,
        all.skipped_reports,
        all.dropped_finals,
        place.frames_without_session,
        all.readings,
        all.skipped_readings,
    ]
}

/// Numbers of one session.
pub(super) const SESSION_NUMBERS: usize = 32;

/// Of a session.
// SEQ-10.3
static SESSION: [Column; SESSION_NUMBERS] = [
    gauge("ageSeconds", "session_age_seconds", "Seconds since the session began"),
    gauge("contexts", "contexts", "Streams that are remembered"),
    gauge("finalsQueued", "finals_queued", "Final reports that wait for the transport"),
    counter(
        "finalsReleasedEarly",
        "finals_released_early_total",
        "Final reports that could not wait for the reading of a drop counter",
    ),
    counter("frames", "frames_total", "Frames observed"),
    counter("requests", "requests_total", "SEND and WRITE requests"),
    counter("accounted", "requests_accounted_total", "Requests accounted to an epoch"),
    counter(
        "notProvisioned",
        "requests_not_provisioned_total",
        "Requests of streams that no rule provisions",
    ),
    counter("refusedFull", "requests_refused_full_total", "Requests of streams without room"),
    counter("violations", "violations_total", "Requests outside the profile"),
    counter(
        "afterViolation",
        "requests_after_violation_total",
        "Requests of streams that a violation had disabled",
    ),
    counter(
        "timeBackwards",
        "requests_time_backwards_total",
        "Requests with a time before that of the request before",
    ),
    counter("responses", "responses_total", "READ and ATOMIC responses, and acknowledgements"),
    counter("cnps", "cnps_total", "Congestion notifications"),
    counter("otherTransports", "other_transports_total", "Packets of transports other than RC"),
    counter("unknownLink", "frames_unknown_link_total", "Frames of a link that has no RoCEv2"),
    counter(
        "pfc",
        "pfc_frames_total",
        "PFC frames among the packets that were metered; not what a port or a switch counted",
    ),
    counter(
        "damaged",
        "frames_damaged_total",
        "Frames that the capture marks as damaged, or whose lengths cannot be",
    ),
    counter("beforeTime", "requests_before_time_total", "Requests before any time was known"),
    counter("withoutTime", "frames_without_time_total", "Packets without a time of their own"),
    counter("captureDrops", "capture_drops_total", "Frames that the capture says it dropped"),
    counter("truncated", "frames_truncated_total", "Frames captured too short for their BTH"),
    counter("extensionCut", "extensions_cut_total", "Requests with a cut extension header"),
    counter("fragments", "fragments_total", "IP fragments"),
    counter("noRoom", "datagrams_without_bth_total", "Datagrams that have no room for a BTH"),
    counter("lengthLies", "length_lies_total", "Lengths that reach beyond what holds them"),
    counter("icrcBad", "icrc_bad_total", "Packets whose ICRC does not match"),
    counter("icrcNotChecked", "icrc_not_checked_total", "Packets whose ICRC was not captured"),
    counter("mirrorMissing", "mirror_missing_total", "Packets that a mirror numbered, unseen"),
    counter("mirrorBehind", "mirror_behind_total", "Mirrored packets with an earlier number"),
    counter("mirrorRestarts", "mirror_restarts_total", "Times that a mirror counted anew"),
    counter(
        "mirrorNotFollowed",
        "mirror_not_followed_total",
        "Packets of mirror sessions beyond the limit",
    ),
];

/// What a session has counted; how old it is does not outlive it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionNumbers {
    numbers: [u64; SESSION_NUMBERS],
    not_roce: [u64; NotRoce::COUNT],
}

impl Default for SessionNumbers {
    fn default() -> Self {
        Self { numbers: [0; SESSION_NUMBERS], not_roce: [0; NotRoce::COUNT] }
    }
}

impl SessionNumbers {
    pub fn of(live: &mut Live) -> Self {
        let session = &mut live.session;
        let (counts, contexts) = (session.meter_counts(), session.meter().contexts());
        let queued = u64::try_from(session.finals_queued()).unwrap_or(u64::MAX);
        let early = session.released_early();
        let tally = session.tally();
        let numbers = [
            live.began.elapsed().as_secs(),
            u64::from(contexts),
            queued,
            early,
            tally.frames,
            tally.requests,
            counts.accounted,
            counts.not_provisioned,
            counts.refused_full,
            counts.violations,
            counts.after_violation,
            counts.time_backwards,
            tally.responses,
            tally.cnps,
            tally.other_transports,
            tally.unknown_link,
            tally.pfc.saturating_add(tally.pfc_outbound).saturating_add(tally.pfc_tunnelled),
            tally.damaged,
            tally.before_time,
            tally.without_time,
            tally.capture_drops,
            tally.truncated,
            tally.extension_cut,
            tally.fragments,
            tally.no_room,
            tally.length_lies,
            tally.icrc_bad,
            tally.icrc_not_checked,
            tally.mirror_missing,
            tally.mirror_behind,
            tally.mirror_restarts,
            tally.mirror_not_followed,
        ];
        Self { numbers, not_roce: tally.not_roce }
    }

    /// What a destination has counted, with a session of it that has ended.
    pub fn add(&mut self, other: &Self) {
        for ((sum, more), column) in self.numbers.iter_mut().zip(other.numbers).zip(&SESSION) {
            if column.kind == Kind::Counter {
                *sum = sum.saturating_add(more);
            }
        }
        for (sum, more) in self.not_roce.iter_mut().zip(other.not_roce) {
            *sum = sum.saturating_add(more);
        }
    }

    /// With the session that goes on.
    fn with(&self, now: Option<Self>) -> Self {
        let Some(now) = now else { return *self };
        let mut all = now;
        // What is as it is now stays so.
        let past = *self;
        all.add(&past);
        all
    }
}

/// Of the whole agent.
// SEQ-10.3
static AGENT: [Column; 43] = [
    gauge("ageSeconds", "age_seconds", "Seconds since the agent began"),
    gauge("sourcesRunning", "sources_running", "Sources that have not come to their end"),
    counter("batches", "batches_total", "Batches of frames metered"),
    gauge("batchesWaiting", "batches_waiting", "Batches of frames that wait to be metered"),
    counter("captureGaps", "capture_gaps_total", "Times that the observation had a gap"),
    counter("droppedFrames", "dropped_frames_total", "Frames dropped before they were seen"),
    counter(
        "readingsUnknown",
        "drop_readings_unknown_total",
        "Readings of a drop counter that could not be had",
    ),
    counter(
        "interruptions",
        "interruptions_total",
        "Times that an interface was not up, or that nobody can say whether it was",
    ),
    gauge("interfacesLost", "interfaces_lost", "Interfaces that are not observed now"),
    counter(
        "framesNotMetered",
        "frames_not_metered_total",
        "Frames of other interfaces that passed while one was not observed",
    ),
    gauge("disabledStreams", "disabled_streams", "Streams that violations have disabled"),
    counter("disabledForgotten", "disabled_forgotten_total", "Disabled streams without room"),
    counter("reloads", "reloads_total", "Reloads of the configuration that were taken"),
    counter("reloadsRefused", "reloads_refused_total", "Reloads refused, the old one going on"),
    counter("pfcPolls", "pfc_polls_total", "Polls of sources of PFC counters"),
    counter("pfcPollFailures", "pfc_poll_failures_total", "Polls that gave nothing at all"),
    counter("pfcPollsMissed", "pfc_polls_missed_total", "Polls due while another was under way"),
    counter("pfcReadingsTaken", "pfc_readings_total", "Readings of PFC counters"),
    counter(
        "pfcReadingsAbsent",
        "pfc_readings_missing_total",
        "Counters that had no reading at a poll, for whatever reason",
    ),
    counter(
        "pfcBegunAnew",
        "pfc_counters_begun_anew_total",
        "Counters whose total began anew, as after a reset or a poll that came too late",
    ),
    gauge("pfcPorts", "pfc_ports", "Ports whose PFC counters are polled"),
    gauge("pfcCountersMissing", "pfc_counters_missing", "PFC counters that have no reading now"),
    gauge("queueSources", "queue_sources_connected", "Sources of queue measurements that speak"),
    counter("queueConnections", "queue_connections_total", "Connections of those sources"),
    counter(
        "queueConnectionsCut",
        "queue_connections_cut_total",
        "Connections ended for what they sent, or for their silence",
    ),
    counter("queueLines", "queue_lines_total", "Lines of queue events"),
    counter("queueBadLines", "queue_bad_lines_total", "Lines that were no queue events: a hole"),
    counter(
        "queuePassedOver",
        "queue_events_passed_over_total",
        "Events of queues without a mapping or without room",
    ),
    counter("queueEvents", "queue_events_total", "Queue events and samples taken"),
    counter("queueHoles", "queue_event_holes_total", "Holes in the numbers of queue events"),
    counter("queueMissing", "queue_events_missing_total", "Numbers missing in those holes"),
    counter("queueClocks", "queue_clocks_total", "Times that a source's clock was another one"),
    counter("queuePolls", "queue_polls_total", "Polls of databases of queues"),
    counter("queuePollFailures", "queue_poll_failures_total", "Those that gave nothing at all"),
    counter(
        "queueSamplesAbsent",
        "queue_samples_missing_total",
        "Queues without a sample at a poll",
    ),
    counter(
        "queueSourcesHeld",
        "queue_sources_held_total",
        "Times that a source was not read for a while, for the rows that it had completed",
    ),
    gauge("queues", "queues", "Queues that are measured"),
    counter("queueRows", "queue_rows_total", "Completed intervals of queues"),
    gauge("queueRowsShown", "queue_rows", "Queues of which there is a row"),
    counter(
        "queueRowsRefused",
        "queue_rows_refused_total",
        "Completed intervals without room, or of a queue that is another source's",
    ),
    gauge("queueFollowers", "queue_followers", "Who follows the rows that are published"),
    counter("queueBatchesMissed", "queue_batches_missed_total", "Batches that followers missed"),
    gauge("queueRowsWaiting", "queue_rows_waiting", "Rows that wait for who follows them"),
];

fn of_agent(observer: &Observer) -> [u64; AGENT.len()] {
    let number = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    let seen = &observer.seen;
    let queues = |of: fn(&Numbers) -> u64| {
        observer.queues.0.iter().map(|counts| of(&counts.now())).fold(0, u64::saturating_add)
    };
    let board = observer.queues.1.as_ref().map(|board| board.counts()).unwrap_or_default();
    [
        observer.age().as_secs(),
        number(observer.running),
        seen.batches,
        observer.batches_waiting.load(Relaxed),
        seen.gaps,
        seen.dropped_frames,
        seen.readings_unknown,
        seen.interruptions,
        number(observer.interfaces_lost()),
        seen.frames_not_metered,
        number(observer.disabled.len()),
        observer.disabled.forgotten(),
        seen.reloads,
        seen.reloads_refused,
        of_polling(observer, |counts| counts.polls.load(Relaxed)),
        of_polling(observer, |counts| counts.failures.load(Relaxed)),
        of_polling(observer, |counts| counts.missed.load(Relaxed)),
        of_polling(observer, |counts| counts.readings.load(Relaxed)),
        of_polling(observer, |counts| counts.absent.iter().map(|n| n.load(Relaxed)).sum()),
        of_polling(observer, |counts| counts.begun_anew.load(Relaxed)),
        of_polling(observer, |counts| counts.ports.load(Relaxed)),
        observer.shelves.iter().map(|shelf| number(shelf.lacking().counters.len())).sum(),
        queues(|numbers| numbers.connected),
        queues(|numbers| numbers.connections),
        queues(|numbers| numbers.cut),
        queues(|numbers| numbers.lines),
        queues(|numbers| numbers.bad),
        queues(|numbers| numbers.passed_over),
        queues(|numbers| numbers.events),
        queues(|numbers| numbers.holes),
        queues(|numbers| numbers.missing),
        queues(|numbers| numbers.clocks),
        queues(|numbers| numbers.polls),
        queues(|numbers| numbers.poll_failures),
        queues(|numbers| numbers.absent),
        queues(|numbers| numbers.held),
        queues(|numbers| numbers.queues),
        queues(|numbers| numbers.rows),
        board.queues,
        board.refused,
        board.followers,
        board.missed,
        board.waiting,
    ]
}

/// A number over all sources of PFC counters.
fn of_polling(observer: &Observer, of: impl Fn(&PollCounts) -> u64) -> u64 {
    observer.shelves.iter().map(|shelf| of(&shelf.counts)).fold(0, u64::saturating_add)
}

/// What the observer itself counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Times that the observation had a gap.
    pub gaps: u64,
    /// Batches of frames.
    pub batches: u64,
    /// Frames that drop counters told of.
    pub dropped_frames: u64,
    /// Readings of a drop counter that could not be had.
    pub readings_unknown: u64,
    /// Readings between which an interface was not up all the time.
    pub interruptions: u64,
    /// Frames that passed while another interface was not observed.
    pub frames_not_metered: u64,
    /// Streams that a violation disabled, as far as they were told.
    pub disabled_told: u64,
    /// Reloads taken.
    pub reloads: u64,
    /// Reloads refused.
    pub reloads_refused: u64,
}

/// A line for each destination, then one for all.
pub(super) fn status(observer: &mut Observer) -> Vec<Value> {
    let mut lines = Vec::new();
    for place in &mut observer.places {
        let mut line = Map::new();
        line.insert("destination".into(), place.target.name.clone().into());
        let numbers = of_destination(place);
        members(&mut line, &DESTINATION, &numbers);
        if let Some(live) = &mut place.live {
            let now = SessionNumbers::of(live);
            let mut session = Map::new();
            members(&mut session, &SESSION, &now.numbers);
            let reasons = NotRoce::NAMES.iter().zip(now.not_roce).filter(|(_, count)| *count > 0);
            let reasons = reasons.map(|(name, count)| ((*name).to_owned(), count.into()));
            session.insert("notRoce".into(), Value::Object(reasons.collect()));
            line.insert("session".into(), Value::Object(session));
        }
        lines.push(Value::Object(line));
    }
    let mut line = Map::new();
    line.insert("done".into(), json!(true));
    members(&mut line, &AGENT, &of_agent(observer));
    if !observer.shelves.is_empty() {
        let sources = observer.shelves.iter().map(|shelf| lacking::status(shelf));
        line.insert("pfcSources".into(), Value::Array(sources.collect()));
    }
    lines.push(Value::Object(line));
    lines
}

fn members(object: &mut Map<String, Value>, columns: &[Column], numbers: &[u64]) {
    for (column, number) in columns.iter().zip(numbers) {
        let value = match column.kind {
            Kind::Flag => Value::from(*number != 0),
            Kind::Counter | Kind::Gauge => Value::from(*number),
        };
        object.insert(column.key.into(), value);
    }
}

/// A row, and the destination that it is of.
pub(super) type Counted = (Row, Option<String>);

/// All numbers, those of destinations over all of their sessions.
pub(super) fn rows(observer: &mut Observer) -> Vec<Counted> {
    let mut all: Vec<Counted> = Vec::new();
    for place in &mut observer.places {
        let name = place.target.name.clone();
        let of = |row| (row, Some(name.clone()));
        let numbers = of_destination(place);
        all.extend(DESTINATION.iter().zip(numbers).map(row).map(of));
        let now = place.live.as_mut().map(SessionNumbers::of);
        let session = place.past_numbers.with(now);
        all.extend(SESSION.iter().zip(session.numbers).map(row).map(of));
        let reasons = NotRoce::NAMES.iter().zip(session.not_roce);
        all.extend(reasons.map(|(reason, value)| {
            of(Row {
                name: "frames_not_roce_total",
                about: "Frames that are known to be something else, by what they are",
                sort: Sort::Counter,
                label: Some(("reason", reason)),
                value,
            })
        }));
    }
    let agent = of_agent(observer);
    all.extend(AGENT.iter().zip(agent).map(row).map(|row| (row, None)));
    if !observer.shelves.is_empty() {
        all.extend(Absent::ALL.into_iter().map(|absent| (missing(observer, absent), None)));
    }
    all
}

/// Counters without a reading for one reason.
fn missing(observer: &Observer, absent: Absent) -> Row {
    Row {
        name: "pfc_readings_missing_by_reason_total",
        about: "Counters that had no reading at a poll, by the reason",
        sort: Sort::Counter,
        label: Some(("reason", absent.name())),
        value: of_polling(observer, |counts| counts.absent[absent as usize].load(Relaxed)),
    }
}

fn row((column, value): (&Column, u64)) -> Row {
    let sort = match column.kind {
        Kind::Counter => Sort::Counter,
        Kind::Gauge | Kind::Flag => Sort::Gauge,
    };
    Row { name: column.name, about: column.about, sort, label: None, value }
}
