//! One entry of the module's list, out of JSON and into it (RFC 7951): every type, range, `when`
//! and `mandatory` of the module, each with what was found and what was expected.
//!
//! Written by hand for this one module. What it cannot judge, data of other modules beside it, it
//! lets be.

use std::sync::Arc;

use observe::pfc::Priority;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{
    DURATION_NS_MAX, EpochId, OFFSET_NS_MAX, Place, Priorities, QUEUE_ID_CHARS_MAX, Reason,
    is_yang_character,
};
use serde_json::{Map, Value, json};

use super::tree::{Node, shown};

/// The module.
pub const MODULE: &str = "ietf-pfc-queue-telemetry";

/// An entry that is no row of the module.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// What it calls itself, as far as it says so.
    pub whose: String,
    /// Its identity, where that much of it is right.
    pub identity: Option<(Arc<Place>, EpochId, u64)>,
    /// Everything that is wrong with it; at least one thing.
    pub faults: Vec<String>,
}

impl Malformed {
    /// The same, of which nobody knows what it is of.
    pub fn nameless(self) -> Self {
        Self { identity: None, ..self }
    }
}

/// Members of an entry by their names in the module, each once.
struct Members<'a> {
    nodes: Vec<(&'a str, &'a Node)>,
    /// Something of the identity is there twice.
    two_identities: bool,
    faults: Vec<String>,
}

const LEAVES: [&str; 13] = [
    "queue-id",
    "epoch-id",
    "interval-id",
    "start-offset-ns",
    "duration-ns",
    "wall-clock-start",
    "mapped-priority",
    "quality",
    "unknown-reason",
    "gated-backlog-ns",
    "backlog-ns",
    "absolute-error-ns",
    "sample-period-ns",
];

/// The name of a member without the name of its module; none for one of another module, for
/// metadata, and for names without a module where the parent has another one.
pub fn own_name<'a>(name: &'a str, module: &str) -> Option<&'a str> {
    match name.split_once(':') {
        Some((prefix, own)) => (prefix == module).then_some(own),
        None => (!name.starts_with('@')).then_some(name),
    }
}

impl<'a> Members<'a> {
    fn of(entry: &'a [(String, Node)]) -> Self {
        let mut members = Self { nodes: Vec::new(), two_identities: false, faults: Vec::new() };
        for (name, node) in entry {
            // What another module adds is for others to judge.
            let Some(own) = own_name(name, MODULE) else { continue };
            if !LEAVES.contains(&own) {
                members.faults.push(format!("member {}, expected one of the module", shown(name)));
            } else if members.nodes.iter().any(|(name, _)| *name == own) {
                members.two_identities |= matches!(own, "queue-id" | "epoch-id" | "interval-id");
                members.faults.push(format!("{own} twice, expected once"));
            } else {
                members.nodes.push((own, node));
            }
        }
        members
    }

    fn find(&self, name: &str) -> Option<&'a Node> {
        self.nodes.iter().find(|(own, _)| *own == name).map(|(_, node)| *node)
    }

    fn fault<T>(&mut self, fault: String) -> Option<T> {
        self.faults.push(fault);
        None
    }

    /// A leaf that has to be there.
    fn mandatory(&mut self, name: &str, expected: &str) -> Option<&'a Node> {
        match self.find(name) {
            None => self.fault(format!("no {name}, expected {expected}")),
            node => node,
        }
    }

    /// A leaf that must not be there.
    // QUE-err.3
    fn absent(&mut self, name: &str, quality: &str) {
        if self.find(name).is_some() {
            self.faults.push(format!("{name} with quality {quality}, expected none"));
        }
    }

    fn text(&mut self, name: &str, expected: &str) -> Option<&'a str> {
        match self.mandatory(name, expected)? {
            Node::Text(text) => Some(text),
            other => self.fault(format!("{name} is {}, expected {expected}", other.kind())),
        }
    }

    /// A number of 64 bits, which RFC 7951 has as a string.
    fn uint64(&mut self, name: &str, least: u64, most: u64) -> Option<u64> {
        let expected = format!("a string with a number from {least} to {most}");
        let text = self.text(name, &expected)?;
        match uint64(text) {
            Some(number) if (least..=most).contains(&number) => Some(number),
            _ => self.fault(format!("{name} {}, expected {expected}", shown(text))),
        }
    }

    fn queue_id(&mut self) -> Option<&'a str> {
        let expected = format!("a string of 1 to {QUEUE_ID_CHARS_MAX} characters");
        let text = self.text("queue-id", &expected)?;
        let characters = text.chars().count();
        if !(1..=QUEUE_ID_CHARS_MAX).contains(&characters) {
            return self.fault(format!("queue-id of {characters} characters, expected {expected}"));
        }
        if !text.chars().all(is_yang_character) {
            let text = shown(text);
            return self.fault(format!("queue-id {text}, expected characters that YANG allows"));
        }
        Some(text)
    }

    fn epoch_id(&mut self) -> Option<EpochId> {
        let text = self.text("epoch-id", "a UUID")?;
        let id = EpochId::read(text);
        id.or_else(|| self.fault(format!("epoch-id {}, expected a UUID", shown(text))))
    }

    // QUE-id.2
    fn priorities(&mut self) -> Option<Priorities> {
        const EXPECTED: &str = "an array of 1 to 8 numbers from 0 to 7";
        let entries = match self.mandatory("mapped-priority", EXPECTED)? {
            Node::Array(entries) => entries,
            other => {
                return self
                    .fault(format!("mapped-priority is {}, expected {EXPECTED}", other.kind()));
            }
        };
        if !(1..=8).contains(&entries.len()) {
            let count = entries.len();
            return self
                .fault(format!("mapped-priority with {count} entries, expected {EXPECTED}"));
        }
        let mut priorities = Vec::new();
        for entry in entries {
            let priority = match entry {
                Node::Whole(number) => u8::try_from(*number).ok().and_then(Priority::new),
                _ => None,
            };
            match priority {
                Some(priority) => priorities.push(priority),
                None => self.faults.push(format!(
                    "mapped-priority with {}, expected numbers from 0 to 7",
                    entry.kind()
                )),
            }
        }
        // A set: state data may list one twice.
        Priorities::new(priorities)
    }

    fn wall_clock_start(&mut self) -> Option<Box<str>> {
        const EXPECTED: &str = "a date and time like \"2026-10-30T00:00:00Z\"";
        match self.find("wall-clock-start")? {
            Node::Text(text) if date_and_time(text) => Some(text.as_str().into()),
            other => {
                self.fault(format!("wall-clock-start is {}, expected {EXPECTED}", other.kind()))
            }
        }
    }

    // QUE-err.2, QUE-err.3
    fn measurement(&mut self) -> Option<Measurement> {
        const EXPECTED: &str = "event-based, sampled or unknown";
        let quality = self.text("quality", EXPECTED)?;
        match quality {
            "unknown" => {
                for name in
                    ["gated-backlog-ns", "backlog-ns", "absolute-error-ns", "sample-period-ns"]
                {
                    self.absent(name, quality);
                }
                self.reason().map(Measurement::Unknown)
            }
            "event-based" => {
                self.absent("unknown-reason", quality);
                self.absent("sample-period-ns", quality);
                self.known(Some(Method::Events))
            }
            "sampled" => {
                self.absent("unknown-reason", quality);
                let period = self.uint64("sample-period-ns", 1, DURATION_NS_MAX);
                self.known(period.map(|period_ns| Method::Samples { period_ns }))
            }
            other => self.fault(format!("quality {}, expected {EXPECTED}", shown(other))),
        }
    }

    fn known(&mut self, method: Option<Method>) -> Option<Measurement> {
        let gated_ns = self.uint64("gated-backlog-ns", 0, DURATION_NS_MAX);
        let backlog_ns = self.uint64("backlog-ns", 0, DURATION_NS_MAX);
        let error_ns = self.uint64("absolute-error-ns", 0, DURATION_NS_MAX);
        Some(Measurement::Known(Known {
            method: method?,
            gated_ns: gated_ns?,
            backlog_ns: backlog_ns?,
            error_ns: error_ns?,
        }))
    }

    fn reason(&mut self) -> Option<Reason> {
        let words = Reason::ALL.map(Reason::word).join(", ");
        let expected = format!("one of {words}");
        let text = self.text("unknown-reason", &expected)?;
        let reason = Reason::ALL.into_iter().find(|reason| reason.word() == text);
        reason
            .or_else(|| self.fault(format!("unknown-reason {}, expected {expected}", shown(text))))
    }
}

/// Reads an entry of the list `queue` of an interface.
///
/// # Errors
/// Everything that the schema does not allow in it. What a `must` forbids is left to
/// [`Row::faults`].
// QUE-yang.1, QUE-con.1: whole rows.
pub fn read(interface: &str, entry: &[(String, Node)]) -> Result<Row, Malformed> {
    let mut members = Members::of(entry);
    let queue = members.queue_id();
    let epoch = members.epoch_id();
    let interval = members.uint64("interval-id", 1, u64::MAX);
    let start_ns = members.uint64("start-offset-ns", 0, OFFSET_NS_MAX);
    let duration_ns = members.uint64("duration-ns", 1, DURATION_NS_MAX);
    let wall_clock_start = members.wall_clock_start();
    let priorities = members.priorities();
    let measurement = members.measurement();
    let place =
        queue.map(|queue| Arc::new(Place { interface: interface.into(), queue: queue.into() }));
    let row = place.as_ref().and_then(|place| {
        Some(Row {
            place: place.clone(),
            epoch: epoch?,
            interval: interval?,
            start_ns: start_ns?,
            duration_ns: duration_ns?,
            wall_clock_start,
            priorities: priorities?,
            measurement: measurement?,
        })
    });
    match row {
        Some(row) if members.faults.is_empty() => Ok(row),
        _ => Err(Malformed {
            whose: whose(interface, queue, interval),
            identity: place
                .filter(|_| !members.two_identities)
                .and_then(|place| Some((place, epoch?, interval?))),
            faults: members.faults,
        }),
    }
}

/// An entry that is no row because of what stands around it.
///
/// # Errors
/// Always.
pub fn refused(row: Result<Row, Malformed>, fault: String) -> Result<Row, Malformed> {
    let mut malformed = row.map_or_else(
        |malformed| malformed,
        |row| Malformed {
            whose: name(&row),
            identity: Some((row.place, row.epoch, row.interval)),
            faults: Vec::new(),
        },
    );
    malformed.faults.push(fault);
    Err(malformed)
}

fn whose(interface: &str, queue: Option<&str>, interval: Option<u64>) -> String {
    let mut whose = format!("interface {}", shown(interface));
    if let Some(queue) = queue {
        whose += &format!(", queue {}", shown(queue));
    }
    if let Some(interval) = interval {
        whose += &format!(", interval {interval}");
    }
    whose
}

/// What a row is called where something is said of it.
pub fn name(row: &Row) -> String {
    whose(&row.place.interface, Some(&row.place.queue), Some(row.interval))
}

/// A row as an entry of the list.
pub fn entry(row: &Row) -> Value {
    let number = |n: u64| Value::String(n.to_string());
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| _ = members.insert(name.to_owned(), value);
    put("queue-id", (*row.place.queue).into());
    put("epoch-id", row.epoch.to_string().into());
    put("interval-id", number(row.interval));
    put("start-offset-ns", number(row.start_ns));
    put("duration-ns", number(row.duration_ns));
    if let Some(wall_clock_start) = &row.wall_clock_start {
        put("wall-clock-start", (**wall_clock_start).into());
    }
    put("mapped-priority", row.priorities.iter().map(Priority::get).collect());
    put("quality", row.measurement.word().into());
    match &row.measurement {
        Measurement::Unknown(reason) => put("unknown-reason", reason.word().into()),
        Measurement::Known(known) => {
            put("gated-backlog-ns", number(known.gated_ns));
            put("backlog-ns", number(known.backlog_ns));
            put("absolute-error-ns", number(known.error_ns));
            if let Method::Samples { period_ns } = known.method {
                put("sample-period-ns", number(period_ns));
            }
        }
    }
    Value::Object(members)
}

/// A document with one row: the part of `ietf-interfaces:interfaces` that leads to it.
pub fn document(row: &Row) -> Value {
    json!({"ietf-interfaces:interfaces": {"interface": [{
        "name": *row.place.interface,
        "ietf-pfc-queue-telemetry:pfc-queue-telemetry": {"queue": [entry(row)]},
    }]}})
}

/// The lexical form of an unsigned integer in an instance (RFC 7950, section 9.2.1): decimal, with
/// a sign if it likes. Hexadecimal and octal are for modules; spaces are for nobody.
fn uint64(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let decimal = !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit());
    // "-0" is 0.
    let zero = text
        .strip_prefix('-')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|octet| octet == b'0'));
    if zero {
        return Some(0);
    }
    decimal.then(|| digits.parse().ok()).flatten()
}

/// `yang:date-and-time`, with a leap second where one can be.
fn date_and_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let Some((clock, zone)) = time
        .strip_suffix('Z')
        .map(|clock| (clock, None))
        .or_else(|| time.rfind(['+', '-']).map(|at| (&time[..at], Some(&time[at + 1..]))))
    else {
        return false;
    };
    let (whole, fraction) = clock.split_once('.').map_or((clock, None), |(a, b)| (a, Some(b)));
    let fraction_fits = fraction
        .is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|o| o.is_ascii_digit()));
    let zone_fits = zone.is_none_or(|zone| {
        numbers::<2>(zone, [2, 2], ':').is_some_and(|[hour, minute]| hour < 24 && minute < 60)
    });
    let date_fits = numbers::<3>(date, [4, 2, 2], '-').is_some_and(|[year, month, day]| {
        (1..=12).contains(&month) && (1..=days(year, month)).contains(&day)
    });
    let time_fits = numbers::<3>(whole, [2, 2, 2], ':').is_some_and(|[hour, minute, second]| {
        // A leap second is the last of a minute; which minute depends on the zone.
        hour < 24 && minute < 60 && second <= 60
    });
    date_fits && time_fits && fraction_fits && zone_fits
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// So many numbers of so many digits each.
fn numbers<const N: usize>(text: &str, digits: [usize; N], between: char) -> Option<[u32; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(between);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        if part.len() != digits || !part.bytes().all(|octet| octet.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}
