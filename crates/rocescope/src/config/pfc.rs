//! `[pfc]`: which counters of PFC frames a device exports, what vouches for them, and what its
//! interfaces and priorities are called elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use observe::pfc::interval::Pace;
use observe::pfc::qualify::{Condition, Qualified};
use observe::pfc::widen::{Promise, Refused, ResetSign};
use observe::pfc::{Direction, Priority};
use toml_datetime::{Datetime, Offset};

use super::PfcLimits;
use super::limits::PFC_KEYS;
use super::section::{Section, Value, alternatives};
use crate::pfc::drivers::{self, Driver};
use crate::pfc::sonic::{self, Dating, interface_number};
use crate::pfc::{self, RedisAddress, Refusal, Said, Statement};

pub(super) const KEYS: &[&str] = PFC_KEYS;

const SOURCE_KEYS: &[&str] = &[
    "kind",
    "driver",
    "redis",
    "time",
    "point",
    "directions",
    "speed_gbps",
    "resets",
    "attest",
    "port",
];
const PORT_KEYS: &[&str] = &["name", "interface", "device", "port"];
pub(super) const CLASSES_KEYS: &[&str] = &["since", "device", "port", "priorities"];

/// Octets of a name of a port or a device.
const NAME_MAX: usize = 64;
/// The fastest link there is: a counter that is polled often enough for it is so for all.
const SPEED_GBPS_MAX: u64 = 1_600;

/// `[pfc]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcExport {
    /// How often counters are read.
    pub poll_interval: Duration,
    /// Readings are exported with `pfcCounterInstanceId`, our own element.
    pub instance_ids: bool,
    /// Where counters are.
    pub sources: Vec<PfcSource>,
    /// Which priority a traffic class has, where, since when.
    // PFC-cor.1
    pub classes: Vec<PfcClasses>,
    /// Bounds.
    pub limits: PfcLimits,
}

/// `[[pfc.source]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcSource {
    /// `pfc.source[0]`.
    pub key: String,
    /// The line on which it stands.
    pub line: usize,
    /// What holds the counters.
    pub kind: PfcKind,
    /// `observationPointId`; without one, that of `[observation]`.
    pub point: Option<u64>,
    /// Directions that are exported, in the order of [`Direction::ALL`], and who vouches for them.
    pub qualified: [Option<Qualified>; 2],
    /// What the counters promise.
    pub promise: Promise,
    /// Its ports.
    pub ports: Vec<PfcPort>,
}

/// What holds counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PfcKind {
    /// Statistics of interfaces of this driver.
    Ethtool {
        /// The driver's name.
        driver: &'static str,
    },
    /// The database of a SONiC switch.
    Sonic {
        /// Where it is.
        redis: RedisAddress,
        /// By what readings are dated.
        dating: Dating,
    },
}

/// `[[pfc.source.port]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcPort {
    /// What its source calls it.
    pub name: String,
    /// `ingressPhysicalInterface` and `egressPhysicalInterface`, where it is not the source's own
    /// number.
    pub interface: Option<u32>,
    /// What others call its device, to be found again beside other records.
    pub device: Option<String>,
    /// What others call the port.
    pub port: Option<String>,
}

/// `[[pfc.classes]]`: the priorities of traffic classes from some time on.
// PFC-cor.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcClasses {
    /// Milliseconds since 1970.
    pub since_ms: u64,
    /// The device, or all of them.
    pub device: Option<String>,
    /// The port, or all of them.
    pub port: Option<String>,
    /// The priority of each traffic class, from class 0.
    pub priorities: Vec<Priority>,
}

impl PfcExport {
    /// The priority that a traffic class had at a port at a time; none where nobody has said so.
    // PFC-cor.1
    pub fn priority(
        &self,
        device: &str,
        port: &str,
        class: usize,
        time_ms: u64,
    ) -> Option<Priority> {
        priority(&self.classes, device, port, class, time_ms)
    }
}

/// As [`PfcExport::priority`], by these entries.
// PFC-cor.1
pub(super) fn priority(
    classes: &[PfcClasses],
    device: &str,
    port: &str,
    class: usize,
    time_ms: u64,
) -> Option<Priority> {
    let is = |said: &Option<String>, name: &str| said.as_deref().is_none_or(|said| said == name);
    let holds = |entry: &&PfcClasses| {
        is(&entry.device, device) && is(&entry.port, port) && entry.since_ms <= time_ms
    };
    // What is said of a port stands before what is said of its device, and of all.
    let rank = |entry: &&PfcClasses| (entry.port.is_some(), entry.device.is_some(), entry.since_ms);
    let entry = classes.iter().filter(holds).max_by_key(rank)?;
    entry.priorities.get(class).copied()
}

impl PfcSource {
    /// The number of a port as far as the file says it: its own, or that in its name.
    pub fn number(&self, port: &PfcPort) -> Option<u32> {
        let sonic = matches!(self.kind, PfcKind::Sonic { .. });
        port.interface.or_else(|| interface_number(&port.name).filter(|_| sonic))
    }

    /// Whether resets show, on the operator's word.
    pub fn resets_show(&self) -> bool {
        self.promise.sign == ResetSign::Instance
    }

    /// Whether it has every port of its switch, whose numbers nobody has written down.
    pub fn has_every_port(&self) -> bool {
        self.ports.is_empty()
    }

    /// What its counters count and do not, where that is known.
    pub fn about(&self) -> &'static str {
        match &self.kind {
            PfcKind::Ethtool { driver } => drivers::find(driver)
                .and_then(|driver| driver.counters.ok())
                .map_or("", |counters| counters.about),
            PfcKind::Sonic { .. } => {
                "what the switch's own statistics of a port count, read by its syncd"
            }
        }
    }
}

/// Reads `[pfc]`; none where the file has none.
///
/// `point` is the observation point of sources that have none of their own.
pub(super) fn read(
    top: &Section<'_>,
    directory: &Path,
    point: Option<u64>,
) -> Option<Option<PfcExport>> {
    let section = top.section("pfc", KEYS);
    let poll_ms = section.number("poll_interval_ms", 10..=3_600_000, 1_000_u64);
    let instance_ids = match section.value("instance_ids") {
        Some(value) => value.boolean(),
        None => Some(false),
    };
    let limits = PfcLimits::read(&section);
    let (poll_ms, limits) = (poll_ms?, limits?);
    let sections = section.sections("source", SOURCE_KEYS);
    let sources: Vec<_> =
        sections.iter().map(|section| source(section, poll_ms, directory)).collect();
    let classes: Vec<_> = section.sections("classes", CLASSES_KEYS).iter().map(classes).collect();
    let sources: Vec<PfcSource> = sources.into_iter().collect::<Option<_>>()?;
    fits(&section, &sources, &limits)?;
    apart(&sections, &sources, point?)?;
    let classes = classes.into_iter().collect::<Option<_>>()?;
    let poll_interval = Duration::from_millis(poll_ms);
    let export = PfcExport { poll_interval, instance_ids: instance_ids?, sources, classes, limits };
    Some(section.is_there().then_some(export))
}

fn source(section: &Section<'_>, poll_ms: u64, directory: &Path) -> Option<PfcSource> {
    let kind = section
        .required("kind", "\"ethtool\" or \"sonic\"")
        .and_then(|value| value.choice(&[("ethtool", true), ("sonic", false)]))
        .and_then(
            |ethtool| {
                if ethtool { ethtool_kind(section) } else { sonic_kind(section, directory) }
            },
        );
    let point = match section.value("point") {
        Some(value) => value.number(0..=u64::MAX).map(Some),
        None => Some(None),
    };
    let directions = directions(section);
    let speed = section.number("speed_gbps", 1..=SPEED_GBPS_MAX, SPEED_GBPS_MAX);
    let resets = section.choice("resets", &[("hidden", false), ("shown", true)]);
    let attested = attested(section);
    let ports: Vec<_> = section.sections("port", PORT_KEYS).iter().map(port).collect();
    let (kind, statement) = kind?;
    let ports = ports.into_iter().collect::<Option<Vec<_>>>()?;
    if ports.is_empty() && matches!(kind, PfcKind::Ethtool { .. }) {
        section.error("port", "missing, expected at least one [[pfc.source.port]]".into());
        return None;
    }
    distinct(section, &kind, &ports)?;
    let attested = attested?;
    let said = Said {
        attested: &attested,
        resets_show: resets?,
        pace: Pace::of_link(speed?.saturating_mul(1_000_000_000))?,
        poll_ms_max: poll_ms,
    };
    let qualified = qualified(section, directions?, &statement, &said)?;
    Some(PfcSource {
        key: section.path().into(),
        line: section.line(),
        kind,
        point: point?,
        qualified,
        promise: pfc::promise(&statement, &said)?,
        ports,
    })
}

/// Who vouches for each direction; all that is missing is an error.
// PFC-count.4, PFC-exp.3
fn qualified(
    section: &Section<'_>,
    directions: [bool; 2],
    statement: &Statement,
    said: &Said<'_>,
) -> Option<[Option<Qualified>; 2]> {
    let mut good = true;
    let all = Direction::ALL.map(|direction| {
        let wanted = directions[usize::from(direction == Direction::Transmitted)];
        match wanted.then(|| pfc::qualified(direction, statement, said)) {
            None => None,
            Some(Ok(qualified)) => Some(qualified),
            Some(Err(refusal)) => {
                good = false;
                let (key, way) = match refusal {
                    Refusal::Unqualified(_) => ("attest", ""),
                    Refusal::Narrow(Refused::ResetNotTold { .. }) => {
                        ("resets", ": resets = \"shown\", where that is so")
                    }
                    Refusal::Narrow(Refused::PollTooSlow { .. }) => (
                        "speed_gbps",
                        ", see pfc.poll_interval_ms, or a link that is slower than speed_gbps says",
                    ),
                };
                section.error(key, format!("{refusal}{way}"));
                None
            }
        }
    });
    good.then_some(all)
}

fn ethtool_kind(section: &Section<'_>) -> Option<(PfcKind, Statement)> {
    for name in ["redis", "time"] {
        if let Some(value) = section.value(name) {
            value.problem("expected only beside kind = \"sonic\"".into());
            return None;
        }
    }
    // PFC-id.3: only those that have counters to export are offered.
    let known = drivers::DRIVERS.iter().filter(|driver| driver.counters.is_ok());
    let known: Vec<&str> = known.map(|driver| driver.name).collect();
    let expected = format!("the driver of the ports: {}", known.join(", "));
    let value = section.required("driver", &expected)?;
    let driver: &Driver = value.parsed(expected, drivers::find)?;
    match driver.counters {
        Ok(counters) => Some((PfcKind::Ethtool { driver: driver.name }, counters.statement())),
        // PFC-id.3, PFC-count.4
        Err(why) => {
            value.wrong(format_args!("a driver that counts PFC frames of each priority: {why}"));
            None
        }
    }
}

fn sonic_kind(section: &Section<'_>, directory: &Path) -> Option<(PfcKind, Statement)> {
    if let Some(value) = section.value("driver") {
        value.problem("expected only beside kind = \"ethtool\"".into());
        return None;
    }
    let redis = redis(section, directory);
    let dating = section.choice("time", &[("stamp", Dating::Stamp), ("asked", Dating::Asked)]);
    let dating = dating?;
    Some((PfcKind::Sonic { redis: redis?, dating }, sonic::statement(dating)))
}

/// The key `redis`: where the database of a switch is.
pub(super) fn redis(section: &Section<'_>, directory: &Path) -> Option<RedisAddress> {
    let expected = "the path of a Unix socket, or a loopback address and a port such as \
                    \"127.0.0.1:6379\"";
    section.required("redis", expected)?.parsed(expected, |text| match text.parse::<SocketAddr>() {
        Ok(address) => address.ip().is_loopback().then_some(RedisAddress::Port(address)),
        Err(_) => text
            .contains('/')
            .then(|| RedisAddress::Socket(directory.join(text)))
            .filter(|_| !text.contains('\0')),
    })
}

fn directions(section: &Section<'_>) -> Option<[bool; 2]> {
    let Some(value) = section.value("directions") else { return Some([true; 2]) };
    let mut all = [false; 2];
    for item in value.list("direction")? {
        let direction = item.choice(&[("received", 0_usize), ("transmitted", 1)])?;
        if std::mem::replace(&mut all[direction], true) {
            item.wrong("each direction once");
            return None;
        }
    }
    Some(all)
}

fn attested(section: &Section<'_>) -> Option<Vec<Condition>> {
    let Some(value) = section.value("attest") else { return Some(Vec::new()) };
    if value.is_empty_list() {
        return Some(Vec::new());
    }
    // That a counter is wide is found out.
    let attestable = |condition: &Condition| *condition != Condition::Wide;
    let names = Condition::ALL.into_iter().filter(attestable);
    let names: Vec<String> = names.map(|condition| format!("\"{}\"", condition.name())).collect();
    let mut good = true;
    let mut all = Vec::new();
    for item in value.list("condition")? {
        let read = |text: &str| Condition::named(text).filter(attestable);
        match item.parsed(alternatives(&names), read) {
            Some(condition) => all.push(condition),
            None => good = false,
        }
    }
    good.then_some(all)
}

pub(super) fn name_of(value: &Value<'_>, expected: &str) -> Option<String> {
    value.parsed(expected, |text| {
        let fits = (1..=NAME_MAX).contains(&text.len());
        (fits && text.bytes().all(|b| b.is_ascii_graphic())).then(|| text.to_owned())
    })
}

fn optional_name(section: &Section<'_>, name: &'static str) -> Option<Option<String>> {
    match section.value(name) {
        Some(value) => name_of(&value, "a name of 1 to 64 octets").map(Some),
        None => Some(None),
    }
}

fn port(section: &Section<'_>) -> Option<PfcPort> {
    let expected = "the name of a port, 1 to 64 octets";
    let name = section.required("name", expected).and_then(|value| name_of(&value, expected));
    let interface = match section.value("interface") {
        Some(value) => value.number(0..=u32::MAX).map(Some),
        None => Some(None),
    };
    let (device, port) = (optional_name(section, "device"), optional_name(section, "port"));
    Some(PfcPort { name: name?, interface: interface?, device: device?, port: port? })
}

/// Every port once, and every number once.
// PFC-id.1
fn distinct(section: &Section<'_>, kind: &PfcKind, ports: &[PfcPort]) -> Option<()> {
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in ports {
        let name = &port.name;
        let sonic = matches!(kind, PfcKind::Sonic { .. });
        let own = || interface_number(name).filter(|_| sonic);
        let number = port.interface.or_else(own);
        if number.is_none() && sonic {
            let problem = format!(
                "{name} without interface, expected its number: only a name such as Ethernet0 has \
                 one of its own"
            );
            section.error("port", problem);
            return None;
        }
        if !names.insert(name) || number.is_some_and(|number| !numbers.insert(number)) {
            let number = number.map(|number| format!(" as interface {number}")).unwrap_or_default();
            section.error("port", format!("{name}{number}, expected each port and number once"));
            return None;
        }
    }
    Some(())
}

/// The bounds have room for what is configured.
fn fits(section: &Section<'_>, sources: &[PfcSource], limits: &PfcLimits) -> Option<()> {
    let ports = sources.iter().map(|source| source.ports.len()).max().unwrap_or(0);
    if u64::try_from(ports).is_ok_and(|ports| ports > limits.ports_max) {
        let expected = format!("at most {} ports, see pfc.ports_max", limits.ports_max);
        section.error("source", format!("{ports} ports, expected {expected}"));
        return None;
    }
    Some(())
}

/// No two sources export counters under one scope, as far as the file says which they are: numbers
/// that a system gives show at start, those of ports that come later when they come.
// PFC-id.1
fn apart(sections: &[Section<'_>], sources: &[PfcSource], point: u64) -> Option<()> {
    let mut held: BTreeMap<(u64, u32, Direction), (&PfcSource, &PfcPort)> = BTreeMap::new();
    let mut good = true;
    for (section, source) in sections.iter().zip(sources) {
        let at = source.point.unwrap_or(point);
        for port in &source.ports {
            let Some(number) = source.number(port) else { continue };
            // One error for both directions.
            let mut other = None;
            for direction in source.qualified.iter().flatten().map(Qualified::direction) {
                let before = held.insert((at, number, direction), (source, port));
                other = other.or(before);
            }
            if let Some((other, its)) = other {
                good = false;
                let problem = format!(
                    "{} as interface {number} at observation point {at}, which {} of {} on line {} \
                     is as well, expected one of them: give one another interface, or its source \
                     another point",
                    port.name, its.name, other.key, other.line
                );
                section.error("port", problem);
            }
        }
    }
    good.then_some(())
}

pub(super) fn classes(section: &Section<'_>) -> Option<PfcClasses> {
    let expected = "a date and time with its offset, such as 2026-01-31T12:00:00Z";
    let since = section.required("since", expected).and_then(|value| value.time(expected));
    let (device, port) = (optional_name(section, "device"), optional_name(section, "port"));
    let expected = "the priorities, 0 to 7, of traffic classes from class 0 on";
    let priorities = section.required("priorities", expected).and_then(|value| {
        let items = value.list("priority")?;
        let read = |item: &Value<'_>| item.number(0..=7_u8).and_then(Priority::new);
        items.iter().map(read).collect::<Option<Vec<_>>>()
    });
    Some(PfcClasses { since_ms: since?, device: device?, port: port?, priorities: priorities? })
}

/// Milliseconds since 1970 of a date and time with its offset.
pub(super) fn milliseconds(time: &Datetime) -> Option<u64> {
    let (date, clock) = (time.date?, time.time?);
    let offset_min = match time.offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    // Years from March on, so that the day that some have is their last one.
    let (year, month) = (i64::from(date.year), i64::from(date.month));
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + i64::from(date.day) - 1 - 719_468;
    let minutes = days * 1440 + i64::from(clock.hour) * 60 + i64::from(clock.minute) - offset_min;
    let seconds = minutes * 60 + i64::from(clock.second.unwrap_or(0));
    let ms = i64::from(clock.nanosecond.unwrap_or(0) / 1_000_000);
    u64::try_from(seconds.checked_mul(1000)?.checked_add(ms)?).ok()
}

/// A time in milliseconds since 1970 as RFC 3339 has it, in UTC: the way back from
/// [`milliseconds`].
pub fn utc(ms: u64) -> String {
    let (seconds, rest) = (ms / 1000, ms % 1000);
    let (days, clock) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, so that the day that some years have is their last one.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year_of_era + later;
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_709_208_000_000, "2024-02-29T12:00:00Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59Z"),
            (1_793_491_200_000, "2026-11-01T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(ms), text);
            assert_eq!(milliseconds(&text.parse().expect("a time")), Some(ms), "{text}");
        }
    }
}
