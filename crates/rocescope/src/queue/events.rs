//! Queue events: JSON Lines of a source, each with a number, a time and what happened.
//!
//! | event | members beside `seq`, `t`, `event`, `interface`, `queue` |
//! | --- | --- |
//! | `map` | `priorities`, `method`, `maxError` |
//! | `backlog` | `present` |
//! | `gate` | `priority`, `closed` |
//! | `candidate` | `priority` |
//! | `sample` | `backlog`, `gated` |
//! | `lost` | |
//! | `restart` | (without `interface` and `queue` too, for all queues of the source) |
//!
//! A member that does not belong to its event is an error: a source that says something else than
//! it means is not measured.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};

use observe::pfc::Priority;
use observe::queue::Priorities;
use observe::queue::event::{Event, Mapping};
use observe::queue::meter::{Subject, Told};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::tree::shown;

/// Octets of a line, at most.
pub const LINE_OCTETS_MAX: usize = 4096;

/// An event that owns nothing but what it has to.
#[derive(Debug)]
pub struct Line<'a> {
    seq: u64,
    t: u64,
    place: Option<(Cow<'a, str>, Cow<'a, str>)>,
    event: Event,
}

impl Line<'_> {
    /// When, by the source's clock.
    pub const fn t(&self) -> u64 {
        self.t
    }

    /// What the source has told.
    pub fn told(&self) -> Told<'_> {
        let subject = match &self.place {
            None => Subject::All,
            Some((interface, queue)) => Subject::Queue { interface, queue },
        };
        Told { seq: self.seq, t: self.t, subject, event: self.event.clone() }
    }
}

/// Reads a line.
///
/// # Errors
/// What was found and what was expected.
pub fn read(line: &[u8]) -> Result<Line<'_>, String> {
    let members: Members<'_> = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
        format!("{what} (column {})", error.column())
    })?;
    members.line()
}

/// A string, borrowed where nothing in it is escaped.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrow)
    }
}

/// The members of a line, whatever its event.
#[derive(Default)]
struct Members<'a> {
    seq: Option<u64>,
    t: Option<u64>,
    event: Option<Cow<'a, str>>,
    interface: Option<Cow<'a, str>>,
    queue: Option<Cow<'a, str>>,
    priorities: Option<Vec<u8>>,
    method: Option<Cow<'a, str>>,
    max_error: Option<u64>,
    present: Option<bool>,
    priority: Option<u8>,
    closed: Option<bool>,
    backlog: Option<bool>,
    gated: Option<bool>,
}

const MEMBERS: [&str; 13] = [
    "seq",
    "t",
    "event",
    "interface",
    "queue",
    "priorities",
    "method",
    "maxError",
    "present",
    "priority",
    "closed",
    "backlog",
    "gated",
];

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the members of an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Members::default();
                while let Some(Text(name)) = map.next_key()? {
                    let again = match &*name {
                        "seq" => members.seq.replace(map.next_value()?).is_some(),
                        "t" => members.t.replace(map.next_value()?).is_some(),
                        "event" => members.event.replace(text(&mut map)?).is_some(),
                        "interface" => members.interface.replace(text(&mut map)?).is_some(),
                        "queue" => members.queue.replace(text(&mut map)?).is_some(),
                        "priorities" => members.priorities.replace(map.next_value()?).is_some(),
                        "method" => members.method.replace(text(&mut map)?).is_some(),
                        "maxError" => members.max_error.replace(map.next_value()?).is_some(),
                        "present" => members.present.replace(map.next_value()?).is_some(),
                        "priority" => members.priority.replace(map.next_value()?).is_some(),
                        "closed" => members.closed.replace(map.next_value()?).is_some(),
                        "backlog" => members.backlog.replace(map.next_value()?).is_some(),
                        "gated" => members.gated.replace(map.next_value()?).is_some(),
                        other => {
                            map.next_value::<IgnoredAny>()?;
                            let (found, known) = (shown(other), MEMBERS.join(", "));
                            return Err(A::Error::custom(format_args!(
                                "member {found}, expected one of {known}"
                            )));
                        }
                    };
                    if again {
                        return Err(A::Error::custom(format_args!(
                            "member {} twice, expected once",
                            shown(&name)
                        )));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cow<'de, str>, A::Error> {
    map.next_value().map(|Text(text)| text)
}

impl<'a> Members<'a> {
    fn line(mut self) -> Result<Line<'a>, String> {
        let seq = needed(self.seq.take(), "seq")?;
        let t = needed(self.t.take(), "t")?;
        let name = needed(self.event.take(), "event")?;
        let event = match &*name {
            "map" => Event::Map(self.mapping()?),
            "backlog" => Event::Backlog { present: needed(self.present.take(), "present")? },
            "gate" => Event::Gate {
                priority: self.priority()?,
                closed: needed(self.closed.take(), "closed")?,
            },
            "candidate" => Event::Candidate { priority: self.priority()? },
            "sample" => Event::Sample {
                backlog: needed(self.backlog.take(), "backlog")?,
                gated: needed(self.gated.take(), "gated")?,
            },
            "lost" => Event::Lost,
            "restart" => Event::Restart,
            other => {
                return Err(format!(
                    "event {}, expected map, backlog, gate, candidate, sample, lost or restart",
                    shown(other)
                ));
            }
        };
        let place = match (self.interface.take(), self.queue.take()) {
            (Some(interface), Some(queue)) => Some((interface, queue)),
            (None, None) if event == Event::Restart => None,
            (Some(_), None) => return Err("no queue, expected it beside interface".to_owned()),
            (None, Some(_)) => return Err("no interface, expected it beside queue".to_owned()),
            (None, None) => return Err("no interface and queue, expected both".to_owned()),
        };
        self.nothing_else(&name)?;
        Ok(Line { seq, t, place, event })
    }

    fn mapping(&mut self) -> Result<Mapping, String> {
        let listed = needed(self.priorities.take(), "priorities")?;
        let read = |n: &u8| Priority::new(*n).ok_or(*n);
        let priorities = listed.iter().map(read).collect::<Result<Vec<_>, _>>();
        let priorities =
            priorities.map_err(|n| format!("priority {n} in priorities, expected 0 to 7"))?;
        Ok(Mapping {
            priorities: Priorities::new(priorities)
                .ok_or("priorities without an entry, expected 1 to 8")?,
            method: needed(self.method.take(), "method")?.into(),
            max_error_ns: needed(self.max_error.take(), "maxError")?,
        })
    }

    fn priority(&mut self) -> Result<Priority, String> {
        let found = needed(self.priority.take(), "priority")?;
        Priority::new(found).ok_or_else(|| format!("priority {found}, expected 0 to 7"))
    }

    fn nothing_else(&self, event: &str) -> Result<(), String> {
        let rest = [
            ("priorities", self.priorities.is_some()),
            ("method", self.method.is_some()),
            ("maxError", self.max_error.is_some()),
            ("present", self.present.is_some()),
            ("priority", self.priority.is_some()),
            ("closed", self.closed.is_some()),
            ("backlog", self.backlog.is_some()),
            ("gated", self.gated.is_some()),
        ];
        match rest.into_iter().find(|(_, there)| *there) {
            Some((name, _)) => Err(format!("member {name} in an event {event}, expected none")),
            None => Ok(()),
        }
    }
}

fn needed<T>(value: Option<T>, name: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("no {name}, expected it"))
}

/// Why there is no further line.
#[derive(Debug)]
pub enum NoLine {
    /// The input cannot be read.
    Input(io::Error),
    /// The line is too long.
    TooLong,
}

impl fmt::Display for NoLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::TooLong => {
                write!(f, "a line of more than {LINE_OCTETS_MAX} octets, expected less")
            }
        }
    }
}

/// The lines of a source, numbered from 1, none longer than [`LINE_OCTETS_MAX`].
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Nothing is read yet.
    pub const fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// The number of the line that was read last.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not empty; none at the end.
    ///
    /// # Errors
    /// [`NoLine`]; there is no use in going on then.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, NoLine> {
        loop {
            self.line.clear();
            let limit = u64::try_from(LINE_OCTETS_MAX).unwrap_or(u64::MAX).saturating_add(1);
            let read = (&mut self.input).take(limit).read_until(b'\n', &mut self.line);
            if read.map_err(NoLine::Input)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.len() > LINE_OCTETS_MAX {
                return Err(NoLine::TooLong);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(&self.line))
    }
}
