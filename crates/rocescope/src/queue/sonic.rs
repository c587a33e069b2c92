//! Queues of a SONiC switch, out of its database: what stands in COUNTERS_DB of each queue, how
//! many octets it holds (`SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES`) and whether received PFC stops it
//! (`SAI_QUEUE_ATTR_PAUSE_STATUS`), both collected for the switch's own PFC watchdog.
//!
//! # What is a sample
//!
//! The switch writes the time at which the watchdog had gone through its queues
//! (`PFCWD_POLL_TIMESTAMP_last` in `TIMESTAMP`). Without it, without a new one, or with one that is
//! older than two of the watchdog's rounds there is no sample: what stands there can be from any
//! time. Nor is there one of a queue that the watchdog does not look after or has taken in hand (its
//! state is not `operational`: the gate is then overridden), of one that several priorities share
//! (which packet is next, nobody says), or of one whose fields are not there or no numbers.
//!
//! # How far samples are apart
//!
//! Both fields were read from the switch at two instants, somewhere between the beginning of the
//! round before the time stamp and the end of our own asking. So two samples can be farther apart
//! than our asking was: by a round of the watchdog (the longest that the switch has noted, where it
//! notes that), the age of the time stamp, and the time that the answer took. The largest such sum
//! so far is added to the spacing of every sample. What holds between samples, nobody says: the
//! error of a sampled interval takes nothing for granted.
//!
//! # What it refuses to know
//!
//! The index of a queue is no priority. What is mapped to a queue stands in the configuration, ours
//! or the switch's (`pfc_to_queue_map` of the port); a queue of which neither says it is not
//! measured. How long somebody asked for a pause (`*_PAUSE_DURATION`) is never looked at.
// QUE-def.2, QUE-def.4, QUE-err.1

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use observe::pfc::Priority;
use observe::queue::event::{Event, Mapping};
use observe::queue::meter::{Counts, Meter, Refused, Settings, Subject, Told};
use observe::queue::row::Row;
use observe::queue::{EpochId, Place, Priorities};

use crate::config::QueueMap;
use crate::pfc::RedisAddress;
use crate::pfc::redis::{Connection, request};
use crate::pfc::sonic::{
    COUNTERS_DB, FLEX_COUNTER_DB, STATE_DB, TOGETHER, accepted, is_object, list, number, pairs,
    run_id, text,
};

const CONFIG_DB: &str = "4";
/// How the words for the candidate's choice run in a row's mapping.
const METHOD: &str = "the queue's own pause status, polled";
/// Rounds of the watchdog after which what it has found is old.
const ROUNDS_MAX: u64 = 2;

/// How a switch is read.
#[derive(Clone, Debug)]
pub struct SonicQueuesSettings {
    /// Where its database is.
    pub address: RedisAddress,
    /// What is mapped to queues, where its own configuration is not to say.
    pub maps: Vec<QueueMap>,
    /// The time for one poll.
    pub within: Duration,
    /// A time stamp that is older is of a watchdog that does not look any more, in milliseconds.
    pub stale_ms_max: u64,
}

/// What a poll has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Samples that were taken.
    pub samples: u64,
    /// Queues without one.
    pub absent: u64,
}

/// The queues of a switch.
pub struct SonicQueues<F> {
    settings: SonicQueuesSettings,
    queues_max: usize,
    connection: Option<Connection>,
    meter: Meter<F>,
    seq: u64,
    queues: BTreeMap<String, Known>,
    /// What tells one life of the database and of what fills it from another.
    life: Option<Vec<Option<Vec<u8>>>>,
    /// The time stamp of the last samples.
    stamp_us: Option<u64>,
}

/// A queue that is measured.
struct Known {
    object: String,
    priorities: Priorities,
}

/// What holds for all queues at a poll.
struct Directory {
    /// Objects, by names such as `Ethernet0:3`.
    objects: BTreeMap<String, String>,
    /// Their indices within their kind, by object.
    indices: BTreeMap<String, String>,
    /// Their kinds, by object.
    kinds: BTreeMap<String, String>,
    /// A round of the watchdog, in nanoseconds, where it runs.
    round_ns: Option<u64>,
}

impl<F: FnMut() -> EpochId> SonicQueues<F> {
    /// Nothing is read yet.
    pub fn new(settings: SonicQueuesSettings, meter: Settings, fresh: F) -> Self {
        Self {
            settings,
            queues_max: meter.queues_max,
            connection: None,
            meter: Meter::new(meter, fresh),
            seq: 0,
            queues: BTreeMap::new(),
            life: None,
            stamp_us: None,
        }
    }

    /// Asks once. `now` tells nanoseconds of a clock that is never set.
    ///
    /// # Errors
    /// In a line: why nothing could be read. Time goes on all the same: intervals are completed
    /// without a sample.
    pub fn poll(&mut self, now: &dyn Fn() -> u64) -> Result<Found, String> {
        let found = self.read(now).map_err(|error| format!("{}: {error}", self.settings.address));
        self.meter.time(now());
        found
    }

    /// Rows that were completed, oldest first.
    pub fn rows(&mut self) -> Vec<Arc<Row>> {
        std::iter::from_fn(|| self.meter.row()).map(Arc::new).collect()
    }

    /// The queues that are measured.
    pub fn places(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.meter.places()
    }

    /// What has happened.
    pub const fn counts(&self) -> Counts {
        self.meter.counts()
    }

    fn read(&mut self, now: &dyn Fn() -> u64) -> io::Result<Found> {
        let mut connection = match self.connection.take() {
            Some(mut connection) => {
                connection.within(self.settings.within);
                connection
            }
            None => Connection::open(&self.settings.address, self.settings.within)?,
        };
        let (directory, life) = directory(&mut connection)?;
        let mapped = self.mapped(&mut connection, &directory)?;
        let asked = now();
        // QUE-id.1: the switch's software began anew, and what it counts may be something else.
        if self.life.replace(life.clone()).is_some_and(|before| before != life) {
            self.tell(asked, Subject::All, Event::Restart);
        }
        self.map(&mapped, &directory, asked);
        let found = self.look(&mut connection, &directory, now)?;
        self.connection = Some(connection);
        Ok(found)
    }

    fn tell(&mut self, t: u64, subject: Subject<'_>, event: Event) -> bool {
        self.seq += 1;
        match self.meter.told(Told { seq: self.seq, t, subject, event }) {
            Ok(()) => true,
            // What could not be told is no hole: nothing was missed.
            Err(refused) => {
                debug_assert!(matches!(refused, Refused::Full { .. } | Refused::NotMapped(_)));
                self.meter.passed_over(self.seq, t);
                false
            }
        }
    }

    /// What is mapped to each queue of the database, as far as anybody says.
    // QUE-id.2
    fn mapped(
        &self,
        connection: &mut Connection,
        directory: &Directory,
    ) -> io::Result<BTreeMap<String, Priorities>> {
        // Those that are measured keep their room, whoever comes.
        let (old, new): (Vec<&String>, Vec<&String>) =
            directory.objects.keys().partition(|name| self.queues.contains_key(*name));
        let names: Vec<&String> =
            old.into_iter().chain(new).take(self.queues_max.saturating_add(1)).collect();
        let ports: BTreeSet<&str> =
            names.iter().filter_map(|name| Some(name.rsplit_once(':')?.0)).collect();
        let ports: Vec<&str> = ports.into_iter().collect();
        let recorded = recorded(connection, &ports)?;
        let mut all = BTreeMap::new();
        for name in names {
            let Some((port, _)) = name.rsplit_once(':') else { continue };
            let Some(index) = directory.index(name) else { continue };
            // What is said of one port stands before what is said of all.
            let said = |own: bool| {
                let of = |map: &&QueueMap| match &map.port {
                    Some(of) => own && of == port,
                    None => !own,
                };
                let mut maps = self.settings.maps.iter().filter(of);
                maps.find(|map| map.queue == index).map(|map| map.priorities)
            };
            let configured = said(true).or_else(|| said(false));
            let from_switch = || recorded.get(port).and_then(|map| map.get(&index).copied());
            if let Some(priorities) = configured.or_else(from_switch) {
                all.insert(name.clone(), priorities);
            }
        }
        Ok(all)
    }

    /// Tells of queues that are new, are another object, or have other priorities.
    // QUE-def.6, QUE-id.1
    fn map(&mut self, mapped: &BTreeMap<String, Priorities>, directory: &Directory, t: u64) {
        for (name, &priorities) in mapped {
            let (Some(object), Some((port, queue))) =
                (directory.objects.get(name), name.rsplit_once(':'))
            else {
                continue;
            };
            let same = |known: &Known| known.object == *object && known.priorities == priorities;
            if self.queues.get(name).is_some_and(same) {
                continue;
            }
            let mapping = Mapping { priorities, method: METHOD.into(), max_error_ns: 0 };
            let subject = Subject::Queue { interface: port, queue };
            if self.tell(t, subject, Event::Map(mapping)) {
                let known = Known { object: object.clone(), priorities };
                self.queues.insert(name.clone(), known);
            }
        }
        // What is gone has no samples any more; should it come back, it may be something else.
        self.queues.retain(|name, _| mapped.contains_key(name));
    }

    /// Takes samples.
    fn look(
        &mut self,
        connection: &mut Connection,
        directory: &Directory,
        now: &dyn Fn() -> u64,
    ) -> io::Result<Found> {
        let mut found = Found::default();
        let names: Vec<String> = self.queues.keys().cloned().collect();
        let mut newest = None;
        for together in names.chunks(TOGETHER) {
            let mut requests = Vec::new();
            request(&mut requests, &["TIME"]);
            request(&mut requests, &["HGET", "TIMESTAMP", "PFCWD_POLL_TIMESTAMP_last"]);
            for name in together {
                let key = format!("COUNTERS:{}", self.queues[name].object);
                let words = [
                    "HMGET",
                    &key,
                    "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES",
                    "SAI_QUEUE_ATTR_PAUSE_STATUS",
                    "PFC_WD_STATUS",
                ];
                request(&mut requests, &words);
            }
            let asked = now();
            connection.send(&requests)?;
            let time = list(connection.reply()?)?;
            let stamp_us = number(&text(connection.reply()?)?);
            let mut values = Vec::with_capacity(together.len());
            for _ in together {
                values.push(sample(&list(connection.reply()?)?));
            }
            let answered = now();
            let fresh = self.fresh(&time, stamp_us, directory.round_ns);
            newest = newest.max(stamp_us);
            if let Some(age_ns) = fresh {
                let round_ns = directory.round_ns.unwrap_or(0);
                let took_ns = answered.saturating_sub(asked);
                self.meter.spread(round_ns.saturating_add(age_ns).saturating_add(took_ns));
            }
            for (name, sample) in together.iter().zip(values) {
                let one = self.queues[name].priorities.only().is_some();
                let sample = sample.filter(|_| one && fresh.is_some());
                let told = sample.zip(name.rsplit_once(':')).is_some_and(|(sample, place)| {
                    let subject = Subject::Queue { interface: place.0, queue: place.1 };
                    self.tell(answered, subject, sample)
                });
                *(if told { &mut found.samples } else { &mut found.absent }) += 1;
            }
        }
        self.stamp_us = newest.or(self.stamp_us);
        Ok(found)
    }

    /// How old what stands there is, where it can be a sample.
    fn fresh(
        &self,
        time: &[Option<Vec<u8>>],
        stamp_us: Option<u64>,
        round_ns: Option<u64>,
    ) -> Option<u64> {
        let part = |nth: usize| time.get(nth).and_then(Option::as_deref).and_then(number);
        let now_us = part(0)?.checked_mul(1_000_000)?.checked_add(part(1)?)?;
        let stamp_us = stamp_us.filter(|stamp| self.stamp_us != Some(*stamp))?;
        // From the future: of another clock.
        let age_ns = now_us.checked_sub(stamp_us)?.checked_mul(1000)?;
        let stale_ns = self.settings.stale_ms_max.saturating_mul(1_000_000);
        let old_ns = round_ns?.saturating_mul(ROUNDS_MAX).min(stale_ns);
        (age_ns <= old_ns).then_some(age_ns)
    }
}

impl Directory {
    /// The index of a queue among those that carry unicast, which are the ones that priorities are
    /// mapped to.
    fn index(&self, name: &str) -> Option<u8> {
        let object = self.objects.get(name).filter(|object| is_object(object))?;
        let kind = self.kinds.get(object).map_or("", String::as_str);
        if !["SAI_QUEUE_TYPE_UNICAST", "SAI_QUEUE_TYPE_ALL"].contains(&kind) {
            return None;
        }
        self.indices.get(object)?.parse().ok()
    }
}

/// What the two fields say, of a queue that the watchdog looks after.
fn sample(values: &[Option<Vec<u8>>]) -> Option<Event> {
    let [occupancy, paused, watchdog] = values else { return None };
    if watchdog.as_deref() != Some(b"operational") {
        return None;
    }
    let backlog = number(occupancy.as_deref()?)? > 0;
    let gated = match paused.as_deref()? {
        b"true" => true,
        b"false" => false,
        _ => return None,
    };
    Some(Event::Sample { backlog, gated: backlog && gated })
}

type Life = Vec<Option<Vec<u8>>>;

/// Which queues there are, and whether anything has begun anew.
fn directory(connection: &mut Connection) -> io::Result<(Directory, Life)> {
    let mut requests = Vec::new();
    for words in [
        &["SELECT", STATE_DB][..],
        &["HGET", "WARM_RESTART_TABLE|orchagent", "restore_count"],
        &["HGET", "WARM_RESTART_TABLE|syncd", "restore_count"],
        &["SELECT", FLEX_COUNTER_DB],
        &["HMGET", "FLEX_COUNTER_GROUP_TABLE:PFC_WD", "FLEX_COUNTER_STATUS", "POLL_INTERVAL"],
        &["SELECT", COUNTERS_DB],
        &["HGET", "PFCWD_POLL_STATS", "effective_us_max"],
        &["HGETALL", "COUNTERS_QUEUE_NAME_MAP"],
        &["HGETALL", "COUNTERS_QUEUE_INDEX_MAP"],
        &["HGETALL", "COUNTERS_QUEUE_TYPE_MAP"],
        &["INFO", "server"],
    ] {
        request(&mut requests, words);
    }
    connection.send(&requests)?;
    accepted(connection.reply()?)?;
    let restarts = [text(connection.reply()?)?, text(connection.reply()?)?];
    accepted(connection.reply()?)?;
    let group = list(connection.reply()?)?;
    accepted(connection.reply()?)?;
    let longest_us = number(&text(connection.reply()?)?).unwrap_or(0);
    let objects = pairs(list(connection.reply()?)?)?;
    let indices = pairs(list(connection.reply()?)?)?;
    let kinds = pairs(list(connection.reply()?)?)?;
    let run = run_id(&text(connection.reply()?)?);
    let value = |index: usize| group.get(index).and_then(Option::as_deref);
    let enabled = value(0) == Some(b"enable");
    let round_ms = value(1).and_then(number).filter(|_| enabled);
    let longest_ns = longest_us.saturating_mul(1000);
    let round_ns = round_ms.map(|ms| ms.saturating_mul(1_000_000).max(longest_ns));
    let life = std::iter::once(run).chain(restarts.map(Some)).collect();
    Ok((Directory { objects, indices, kinds, round_ns }, life))
}

type Recorded = BTreeMap<u8, Priorities>;

/// What the switch's own configuration maps to the queues of each port, by index.
fn recorded(connection: &mut Connection, ports: &[&str]) -> io::Result<BTreeMap<String, Recorded>> {
    let mut requests = Vec::new();
    request(&mut requests, &["SELECT", CONFIG_DB]);
    for port in ports {
        let key = format!("PORT_QOS_MAP|{port}");
        request(&mut requests, &["HGET", &key, "pfc_to_queue_map"]);
    }
    connection.send(&requests)?;
    accepted(connection.reply()?)?;
    let mut names = Vec::new();
    for _ in ports {
        let name = String::from_utf8(text(connection.reply()?)?).unwrap_or_default();
        // Older ones write the key of the map in brackets.
        let name = name.trim_start_matches('[').trim_end_matches(']');
        names.push(name.rsplit('|').next().unwrap_or("").to_owned());
    }
    let mut kinds: Vec<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
    kinds.sort();
    kinds.dedup();
    let mut requests = Vec::new();
    for name in &kinds {
        request(&mut requests, &["HGETALL", &format!("MAP_PFC_PRIORITY_TO_QUEUE|{name}")]);
    }
    request(&mut requests, &["SELECT", COUNTERS_DB]);
    connection.send(&requests)?;
    let mut maps = BTreeMap::new();
    for name in &kinds {
        maps.insert(name.clone(), by_queue(&pairs(list(connection.reply()?)?)?));
    }
    accepted(connection.reply()?)?;
    let of = |(port, name): (&&str, String)| Some(((*port).to_owned(), maps.get(&name)?.clone()));
    Ok(ports.iter().zip(names).filter_map(of).collect())
}

/// A map of priorities to queues, the other way round.
fn by_queue(map: &BTreeMap<String, String>) -> Recorded {
    let mut all: BTreeMap<u8, Vec<Priority>> = BTreeMap::new();
    for (priority, queue) in map {
        let priority = priority.parse().ok().and_then(Priority::new);
        if let (Some(priority), Ok(queue)) = (priority, queue.parse()) {
            all.entry(queue).or_default().push(priority);
        }
    }
    all.into_iter().filter_map(|(queue, all)| Some((queue, Priorities::new(all)?))).collect()
}
