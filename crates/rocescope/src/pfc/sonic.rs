//! Counters of a SONiC switch, in its database COUNTERS_DB: `SAI_PORT_STAT_PFC_n_RX_PKTS` and
//! `_TX_PKTS` of each port's object, which `COUNTERS_PORT_NAME_MAP` names.
//!
//! What stands there was read from the switch by `syncd`, some time before; where it says when
//! (`PORT_STAT_COUNTER_time_stamp`, with bulk reads), that is the time of a reading, and what was
//! not read anew is none. Whether the switch itself has set a counter to zero, the database does
//! not say. That it clears counters whenever it reads them, it does say: nothing that was read
//! before vouches for what is read behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use observe::pfc::interval::Tick;
use observe::pfc::qualify::Condition;

use super::redis::{Address, Connection, Reply, request};
use super::{Absent, Clock, Counters, Moment, Polled, PortRead, Source, Statement, Value};

/// The numbers that SONiC gives its databases.
pub(crate) const COUNTERS_DB: &str = "2";
pub(crate) const FLEX_COUNTER_DB: &str = "5";
pub(crate) const STATE_DB: &str = "6";

/// Ports that are asked for at once.
pub(crate) const TOGETHER: usize = 64;
/// The longest wait for a database before there is a poll.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(5);
/// The word that a switched-on group of counters has.
const ENABLED: &[u8] = b"enable";

/// What SONiC states of its counters: those of a port are of one interface, by the bit of the
/// vector, in 64 bits. Whatever else holds is a matter of the switch under it.
const STATED: &[Condition] = &[Condition::PhysicalInterface, Condition::VectorIndex];
/// As before, where each counter carries the time at which it was read.
const STATED_WITH_TIME: &[Condition] =
    &[Condition::PhysicalInterface, Condition::VectorIndex, Condition::TimeOfReading];

/// By what a reading is dated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dating {
    /// The time stamp that stands beside the counters; without one there is no reading.
    #[default]
    Stamp,
    /// When the database was asked.
    Asked,
}

/// What a SONiC source states of itself.
pub const fn statement(dating: Dating) -> Statement {
    match dating {
        Dating::Stamp => Statement { width: 64, stated: STATED_WITH_TIME },
        Dating::Asked => Statement { width: 64, stated: STATED },
    }
}

/// A port to poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SonicPort {
    /// Its name, such as `Ethernet0`.
    pub name: Arc<str>,
    /// `ingressPhysicalInterface` and `egressPhysicalInterface`.
    pub interface: u32,
}

/// The number that SONiC's own interfaces MIB has for a port: that in its name, from 1.
pub fn interface_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("Ethernet")?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse::<u32>().ok().filter(|_| plain)?.checked_add(1)
}

/// How a switch is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SonicSettings {
    /// Where its database is.
    pub address: Address,
    /// The ports; none for all that it has.
    pub ports: Vec<SonicPort>,
    /// By what readings are dated.
    pub dating: Dating,
    /// The time for one poll.
    pub within: Duration,
    /// Ports that are read at most.
    pub ports_max: usize,
    /// A time stamp that is older is of a counter that nobody reads any more.
    pub stale_ms_max: u64,
}

/// The counters of a switch.
#[derive(Debug)]
pub struct Sonic {
    settings: SonicSettings,
    connection: Option<Connection>,
    ports: BTreeMap<Arc<str>, Known>,
    /// The ports that the last poll had room for: they keep it, whoever comes.
    followed: BTreeSet<Arc<str>>,
    /// When the last poll was that found counters cleared on being read.
    cleared: Option<Tick>,
    /// What tells one life of the database and of what fills it from another.
    life: Vec<Option<Vec<u8>>>,
    last_instance: u64,
}

/// What is known of a port between two polls.
#[derive(Debug)]
struct Known {
    object: String,
    interface: u32,
    /// The request for its counters.
    request: Vec<u8>,
    instance: u64,
    stamp_ns: Option<u64>,
}

/// What holds for all ports at a poll.
struct Directory {
    /// Objects by the names of ports.
    objects: BTreeMap<String, String>,
    /// Objects that several names have.
    shared: BTreeSet<String>,
    /// Why no counter can be read at all.
    absent: Option<Absent>,
    /// Whoever reads the counters clears them.
    clears: bool,
}

impl Sonic {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(settings: SonicSettings) -> Self {
        Self {
            settings,
            connection: None,
            ports: BTreeMap::new(),
            followed: BTreeSet::new(),
            cleared: None,
            life: Vec::new(),
            last_instance: 0,
        }
    }

    /// Asks for the names of ports, and looks whether those that are to be polled are ports. Gives
    /// those that would be polled now; where the database cannot be asked, those that are named.
    ///
    /// # Errors
    /// In a line: an aggregate among them. Where the database cannot be asked, nothing is wrong
    /// yet.
    // PFC-id.1, PFC-id.2
    pub fn survey(&mut self) -> Result<Vec<SonicPort>, String> {
        let named = self.settings.ports.clone();
        let within = self.settings.within.min(FIRST_LOOK_MAX);
        let Ok(mut connection) = self.open(within) else { return Ok(named) };
        let Ok(aggregates) = aggregates(&mut connection) else { return Ok(named) };
        if let Some(port) = named.iter().find(|port| aggregates.contains_key(&*port.name)) {
            return Err(format!(
                "{}: an aggregate, expected its members: each counts for itself",
                port.name
            ));
        }
        Ok(self.directory(&mut connection).map_or(named, |directory| self.wanted(&directory)))
    }

    fn open(&self, within: Duration) -> io::Result<Connection> {
        let mut connection = Connection::open(&self.settings.address, within)?;
        let mut requests = Vec::new();
        request(&mut requests, &["SELECT", COUNTERS_DB]);
        connection.send(&requests)?;
        accepted(connection.reply()?)?;
        Ok(connection)
    }

    fn read(&mut self, clock: &dyn Clock) -> io::Result<Vec<Polled>> {
        let mut connection = match self.connection.take() {
            Some(mut connection) => {
                connection.within(self.settings.within);
                connection
            }
            None => self.open(self.settings.within)?,
        };
        let directory = self.directory(&mut connection)?;
        let polled = self.counters(&mut connection, &directory, clock)?;
        self.connection = Some(connection);
        Ok(polled)
    }

    /// Which ports there are, and whether anything has begun anew.
    fn directory(&mut self, connection: &mut Connection) -> io::Result<Directory> {
        let mut requests = Vec::new();
        let aggregates = aggregates(connection)?;
        for words in [
            &["HGETALL", "COUNTERS_PORT_NAME_MAP"][..],
            &["INFO", "server"],
            &["SELECT", STATE_DB],
            &["HGET", "WARM_RESTART_TABLE|orchagent", "restore_count"],
            &["HGET", "WARM_RESTART_TABLE|syncd", "restore_count"],
            &["SELECT", FLEX_COUNTER_DB],
            &["HMGET", GROUP, "FLEX_COUNTER_STATUS", "STATS_MODE"],
            &["SELECT", COUNTERS_DB],
        ] {
            request(&mut requests, words);
        }
        connection.send(&requests)?;
        let mut objects = pairs(list(connection.reply()?)?)?;
        let run = run_id(&text(connection.reply()?)?);
        accepted(connection.reply()?)?;
        let restarts = [text(connection.reply()?)?, text(connection.reply()?)?];
        accepted(connection.reply()?)?;
        let group = list(connection.reply()?)?;
        accepted(connection.reply()?)?;
        let life: Vec<_> = std::iter::once(run).chain(restarts.map(Some)).collect();
        if self.life != life {
            // Another life, whose objects may have old names.
            self.ports.clear();
            self.life = life;
        }
        // PFC-id.2
        let of_aggregates: BTreeSet<&String> = aggregates.values().collect();
        objects.retain(|name, object| {
            !aggregates.contains_key(name) && !of_aggregates.contains(object)
        });
        let mut once = BTreeSet::new();
        let shared = objects.values().filter(|object| !once.insert(*object)).cloned().collect();
        let (absent, clears) = (group_absent(&group), clears(&group));
        Ok(Directory { objects, shared, absent, clears })
    }

    fn counters(
        &mut self,
        connection: &mut Connection,
        directory: &Directory,
        clock: &dyn Clock,
    ) -> io::Result<Vec<Polled>> {
        if directory.clears {
            // PFC-sem.2: what was read before was set to zero since, whatever resets show in.
            self.ports.clear();
            self.cleared = Some(clock.now().tick);
        }
        let wanted = self.wanted(directory);
        let followed: BTreeSet<Arc<str>> = wanted.iter().map(|port| port.name.clone()).collect();
        let mut polled: Vec<Polled> = Vec::with_capacity(wanted.len());
        let mut names = Vec::with_capacity(wanted.len());
        for port in wanted {
            match directory.objects.get(&*port.name) {
                // PFC-id.1: of which of them it is, nobody knows.
                Some(object) if directory.shared.contains(object) => {
                    self.ports.remove(&port.name);
                    polled.push((port.name, Err(Absent::SharedObject)));
                }
                Some(object) if is_object(object) => {
                    self.know(&port, object);
                    match directory.absent {
                        Some(absent) => polled.push((port.name, Err(absent))),
                        None => names.push(port.name),
                    }
                }
                _ => {
                    self.ports.remove(&port.name);
                    polled.push((port.name, Err(Absent::NoPort)));
                }
            }
        }
        for together in names.chunks(TOGETHER) {
            let mut requests = Vec::new();
            for name in together {
                requests.extend_from_slice(&self.ports[name].request);
            }
            let now = clock.now();
            connection.send(&requests)?;
            for name in together {
                let reply = connection.reply()?;
                let read = self.port(name, &reply, now);
                polled.push((name.clone(), read));
            }
        }
        if self.settings.ports.is_empty() {
            let beyond = directory.ports().filter(|port| !followed.contains(&port.name));
            polled.extend(beyond.map(|port| (port.name, Err(Absent::NoRoom))));
        }
        self.followed = followed;
        Ok(polled)
    }

    /// The ports that are to be read, at most as many as there is room for: first those that are
    /// being read.
    fn wanted(&self, directory: &Directory) -> Vec<SonicPort> {
        if !self.settings.ports.is_empty() {
            return self.settings.ports.clone();
        }
        let (old, new): (Vec<_>, Vec<_>) =
            directory.ports().partition(|port| self.followed.contains(&port.name));
        old.into_iter().chain(new).take(self.settings.ports_max).collect()
    }

    /// Remembers a port, anew where its object is another one.
    fn know(&mut self, port: &SonicPort, object: &str) {
        if self.ports.get(&port.name).is_some_and(|known| known.object == object) {
            return;
        }
        self.last_instance += 1;
        let known = Known {
            object: object.to_owned(),
            interface: port.interface,
            request: request_for(object),
            instance: self.last_instance,
            stamp_ns: None,
        };
        self.ports.insert(port.name.clone(), known);
    }

    fn port(&mut self, name: &Arc<str>, reply: &Reply, now: Moment) -> Result<PortRead, Absent> {
        let Reply::List(values) = reply else { return Err(Absent::Unanswered) };
        let [counters @ .., stamp] = &values[..] else { return Err(Absent::Unanswered) };
        if values.iter().all(Option::is_none) {
            // The object's counters are gone; those that come back may be others.
            self.ports.remove(name);
            return Err(Absent::NoCounter);
        }
        let known = self.ports.get_mut(name).ok_or(Absent::NoPort)?;
        let at = match self.settings.dating {
            Dating::Asked => now,
            Dating::Stamp => known.dated(stamp.as_deref(), now, self.settings.stale_ms_max)?,
        };
        let counters = values_of(counters).ok_or(Absent::Unanswered)?;
        let instance = known.instance;
        // PFC-sem.2: whoever clears counters on reading them hears late that it no longer should,
        // and what stands here can be from before.
        let stale_ms_max = self.settings.stale_ms_max;
        if self.cleared.is_some_and(|cleared| is_within(cleared, at.tick, stale_ms_max)) {
            self.last_instance += 1;
            known.instance = self.last_instance;
        }
        Ok(PortRead { interface: known.interface, at, instance, counters })
    }
}

/// Whether something is from no later than so long after something else, as far as one clock tells.
fn is_within(first: Tick, second: Tick, ms: u64) -> bool {
    first.clock == second.clock && second.ms <= first.ms.saturating_add(ms)
}

impl Directory {
    /// Every port that has a number.
    fn ports(&self) -> impl Iterator<Item = SonicPort> {
        self.objects.keys().filter_map(|name| {
            Some(SonicPort { interface: interface_number(name)?, name: name.as_str().into() })
        })
    }
}

impl Known {
    /// When counters with this stamp were read: nanoseconds of this machine's clock that is never
    /// set.
    // PFC-rec.2
    fn dated(
        &mut self,
        stamp: Option<&[u8]>,
        now: Moment,
        stale_ms_max: u64,
    ) -> Result<Moment, Absent> {
        let stamp_ns = number(stamp.ok_or(Absent::NoTimeStamp)?).ok_or(Absent::NoTimeStamp)?;
        let stamp_ms = stamp_ns / 1_000_000;
        // From the future: of another clock.
        let age_ms = now.tick.ms.checked_sub(stamp_ms).ok_or(Absent::OtherClock)?;
        if age_ms > stale_ms_max || self.stamp_ns == Some(stamp_ns) {
            return Err(Absent::Stale);
        }
        self.stamp_ns = Some(stamp_ns);
        let tick = Tick { ms: stamp_ms, ..now.tick };
        Ok(Moment { time_ms: now.time_ms.saturating_sub(age_ms), tick })
    }
}

impl Source for Sonic {
    fn poll(&mut self, clock: &dyn Clock) -> Result<Vec<Polled>, String> {
        self.read(clock).map_err(|error| {
            // What happened until it answers again, nobody has seen.
            self.ports.clear();
            format!("{}: {error}", self.settings.address)
        })
    }
}

/// The group of counters that those of ports belong to, and the field with its time stamps.
const GROUP: &str = "FLEX_COUNTER_GROUP_TABLE:PORT_STAT_COUNTER";
const STAMP: &str = "PORT_STAT_COUNTER_time_stamp";

// PFC-id.3
fn request_for(object: &str) -> Vec<u8> {
    let key = format!("COUNTERS:{object}");
    let fields: Vec<String> = ["RX", "TX"]
        .into_iter()
        .flat_map(|way| (0..8).map(move |index| format!("SAI_PORT_STAT_PFC_{index}_{way}_PKTS")))
        .collect();
    let mut words = vec!["HMGET", key.as_str()];
    words.extend(fields.iter().map(String::as_str));
    words.push(STAMP);
    let mut out = Vec::new();
    request(&mut out, &words);
    out
}

/// In the order of [`request_for`].
fn values_of(values: &[Option<Vec<u8>>]) -> Option<Counters> {
    let (received, transmitted) = values.split_at_checked(8)?;
    let of = |values: &[Option<Vec<u8>>]| {
        let values: Vec<_> = values.iter().map(|value| of_one(value.as_deref())).collect();
        values.try_into().ok()
    };
    Some([of(received)?, of(transmitted)?])
}

fn of_one(value: Option<&[u8]>) -> Result<Value, Absent> {
    let value = value.ok_or(Absent::NoCounter)?;
    number(value).map(Value::One).ok_or(Absent::NoNumber)
}

pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

fn group_absent(group: &[Option<Vec<u8>>]) -> Option<Absent> {
    if clears(group) {
        return Some(Absent::ClearedOnRead);
    }
    let status = group.first().and_then(Option::as_deref);
    (status != Some(ENABLED)).then_some(Absent::Disabled)
}

/// Whether counters are cleared when they are read, also where nobody reads them now: somebody may
/// have just before.
// PFC-sem.1
fn clears(group: &[Option<Vec<u8>>]) -> bool {
    let mode = group.get(1).and_then(Option::as_deref);
    mode.is_some_and(|mode| mode.ends_with(b"READ_AND_CLEAR"))
}

/// The objects of aggregates, by name.
fn aggregates(connection: &mut Connection) -> io::Result<BTreeMap<String, String>> {
    let mut requests = Vec::new();
    request(&mut requests, &["HGETALL", "COUNTERS_LAG_NAME_MAP"]);
    connection.send(&requests)?;
    pairs(list(connection.reply()?)?)
}

pub(crate) fn is_object(text: &str) -> bool {
    let digits = text.strip_prefix("oid:0x");
    digits.is_some_and(|hex| hex.len() <= 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

pub(crate) fn run_id(info: &[u8]) -> Option<Vec<u8>> {
    let mut lines = info.split(|octet| *octet == b'\n');
    let run = lines.find_map(|line| line.strip_prefix(b"run_id:"))?;
    Some(run.trim_ascii().to_vec())
}

pub(crate) fn pairs(list: Vec<Option<Vec<u8>>>) -> io::Result<BTreeMap<String, String>> {
    let texts: Option<Vec<String>> =
        list.into_iter().map(|text| String::from_utf8(text?).ok()).collect();
    let texts = texts.ok_or_else(|| wrong("a name that is no text"))?;
    let (pairs, _) = texts.as_chunks::<2>();
    Ok(pairs.iter().cloned().map(|[name, value]| (name, value)).collect())
}

pub(crate) fn list(reply: Reply) -> io::Result<Vec<Option<Vec<u8>>>> {
    match reply {
        Reply::List(list) => Ok(list),
        Reply::Text(_) => Err(wrong("a text, expected a list")),
        Reply::Refused(why) => Err(wrong(&why)),
    }
}

/// A text, empty where there is none.
pub(crate) fn text(reply: Reply) -> io::Result<Vec<u8>> {
    match reply {
        Reply::Text(text) => Ok(text),
        Reply::List(list) if list.is_empty() => Ok(Vec::new()),
        Reply::List(_) => Err(wrong("a list, expected a text")),
        Reply::Refused(why) => Err(wrong(&why)),
    }
}

pub(crate) fn accepted(reply: Reply) -> io::Result<()> {
    text(reply).map(|_| ())
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the database says: {what}"))
}
