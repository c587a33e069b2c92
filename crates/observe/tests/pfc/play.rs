//! What the lines of a conversation do: a poll of a source goes through widening, over octets,
//! and comes back through decoder and binding to the collecting session.

use std::collections::BTreeMap;

use observe::export::Exporter;
use observe::pfc::collect::{Counter, Limits, Session, Verdict};
use observe::pfc::instance::InstanceId;
use observe::pfc::interval::{Interval, Known, Pace, Tick};
use observe::pfc::record::Binding;
use observe::pfc::widen::{Promise, Raw, ResetSign, Widening, Width};
use observe::pfc::{Direction, Priority, Reading, Scope};
use wire::element::Mapping;
use wire::ipfix::{self, Decoder, Event, Transport};

use crate::record::qualified;

/// Where a source is read.
type Place = (u64, Direction, u64);

struct Source {
    widening: Widening,
    pace: Pace,
    sign: ResetSign,
}

/// Sources by interface, direction and priority; one Transport Session with both of its sides.
pub struct Play {
    sources: BTreeMap<Place, Source>,
    exporter: Exporter,
    decoder: Decoder,
    session: Session,
}

impl Default for Play {
    fn default() -> Self {
        let mapping = Mapping::default();
        Self {
            sources: BTreeMap::new(),
            exporter: Exporter::new(mapping, 1, 1, 1400).unwrap(),
            decoder: Decoder::new(Transport::Stream, mapping, ipfix::Limits::default()),
            session: Session::new(Limits::default()),
        }
    }
}

/// The words of a line, each used once.
struct Words<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Words<'a> {
    fn text(&mut self, name: &str) -> Option<&'a str> {
        self.0.remove(name)
    }

    fn number(&mut self, name: &str) -> Option<u64> {
        let word = self.text(name)?;
        // 2^n, 2^n-m or a plain number.
        let number = match word.strip_prefix("2^") {
            None => word.parse().unwrap(),
            Some(power) => {
                let (bits, less) = power.split_once('-').unwrap_or((power, "0"));
                let whole = 1_u128 << bits.parse::<u32>().unwrap();
                u64::try_from(whole - less.parse::<u128>().unwrap()).unwrap()
            }
        };
        Some(number)
    }

    fn place(&mut self) -> Place {
        let direction = match self.text("direction") {
            Some("tx") => Direction::Transmitted,
            Some(other) if other != "rx" => panic!("{other}"),
            _ => Direction::Received,
        };
        let interface = self.number("interface").unwrap_or(11);
        (interface, direction, self.number("priority").unwrap_or(3))
    }
}

impl Play {
    pub fn line(&mut self, verb: &str, words: &[&str]) -> String {
        let mut words =
            Words(words.iter().map(|word| word.split_once('=').expect("name=value")).collect());
        let found = match verb {
            "source" => self.source(&mut words),
            "poll" => self.poll(&mut words),
            "interval" => self.interval(&mut words),
            "record" => self.record(&mut words),
            "latest" => self.latest(&mut words),
            // Another session of another collector: what it has not received it does not know.
            "collector" => {
                self.session = Session::new(Limits::default());
                String::new()
            }
            other => panic!("{other}: no such line"),
        };
        assert!(words.0.is_empty(), "{:?}", words.0);
        found
    }

    fn source(&mut self, words: &mut Words<'_>) -> String {
        let sign = match words.text("sign").unwrap_or("resets") {
            "resets" => ResetSign::Resets,
            "instance" => ResetSign::Instance,
            "uptime" => ResetSign::Uptime { resolution_ms: 10 },
            "none" => ResetSign::None,
            other => panic!("{other}"),
        };
        let width = u32::try_from(words.number("width").unwrap()).unwrap();
        let pace = Pace::per_second(words.number("pace").unwrap_or(1_000_000)).unwrap();
        let width = Width::new(width).unwrap();
        let poll_ms_max = words.number("every").unwrap_or(1000);
        let place = words.place();
        match Widening::new(Promise { width, pace, poll_ms_max, sign }) {
            Ok(widening) => {
                self.sources.insert(place, Source { widening, pace, sign });
                "taken".into()
            }
            Err(refused) => format!("refused: {refused}"),
        }
    }

    fn poll(&mut self, words: &mut Words<'_>) -> String {
        let place = words.place();
        let source = self.sources.get_mut(&place).expect("a source");
        let ms = words.number("at").unwrap();
        let tick = Tick { clock: words.number("clock").unwrap_or(1), ms };
        let time_ms = words.number("time").unwrap_or(1_800_000_000_000 + ms);
        let told = words.number("sign");
        let sign = if source.sign == ResetSign::None { told } else { told.or(Some(0)) };
        let object = words.number("object").unwrap_or(1);
        let raw = Raw { value: words.number("value").unwrap(), tick, sign };
        let widened = match source.widening.read(raw) {
            Ok(widened) => widened,
            Err(why) => return format!("no reading: {why}"),
        };
        let known = Known {
            instance: Some(object),
            run: widened.run,
            tick: Some(tick),
            pace: Some(source.pace),
        };
        let verdict = self.send(place, time_ms, widened.total, known);
        let begins = widened.begins.map_or(String::new(), |b| format!(" ({})", b.words()));
        format!("total {}{begins}, {verdict}", widened.total)
    }

    fn send(&mut self, place: Place, time_ms: u64, total: u64, known: Known) -> String {
        let scope = scope(place);
        let reading = Reading { scope, time_ms, total };
        let mut octets = Vec::new();
        let source = qualified(scope.direction);
        self.exporter.readings(&source, &[reading], 0, &mut octets).unwrap();
        let Self { decoder, session, .. } = self;
        let mut told = Vec::new();
        let visited = decoder.message(&octets, &mut |event| {
            if let Event::Data(set) = event {
                let binding = Binding::new(set.layout, &Mapping::default()).unwrap();
                for record in set.records {
                    let reading = binding.read(1, &record).unwrap();
                    told.push(word(session.receive(reading, binding.further(&record), known)));
                }
            }
        });
        visited.unwrap();
        assert_eq!(told.len(), 1, "one record was sent");
        told.remove(0)
    }

    /// A record of an exporter of which nothing else is known than what it says: its time, its total
    /// and the instance of its counter.
    fn record(&mut self, words: &mut Words<'_>) -> String {
        let place = words.place();
        let time_ms = 1_800_000_000_000 + words.number("at").unwrap();
        let total = words.number("total").unwrap();
        let pace = Pace::per_second(words.number("pace").unwrap_or(1_000_000));
        let id = words.number("id").and_then(InstanceId::new);
        let known = id.map_or_else(Known::default, |id| id.known(time_ms, pace));
        self.send(place, time_ms, total, known)
    }

    /// What lies between the two latest readings, as it is shown.
    fn interval(&mut self, words: &mut Words<'_>) -> String {
        let scope = scope(words.place());
        let of = |counter: &&Counter| counter.latest.reading.scope == scope;
        match self.session.counters().iter().find(of).expect("a counter").interval() {
            Interval::Exact(frames) => format!("exactly {}", frames.count()),
            Interval::Unknown(why) => format!("unknown: {why}"),
        }
    }

    fn latest(&mut self, words: &mut Words<'_>) -> String {
        let latest = self.session.latest(scope(words.place()), &Default::default());
        latest.map_or("no reading".into(), |sighting| sighting.reading.total.to_string())
    }
}

fn scope((interface, direction, priority): Place) -> Scope {
    Scope {
        domain: 1,
        point: 1,
        interface: u32::try_from(interface).unwrap(),
        direction,
        priority: Priority::new(u8::try_from(priority).unwrap()).unwrap(),
    }
}

fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::First => "first".into(),
        Verdict::Follows(Interval::Exact(frames)) => format!("exactly {}", frames.count()),
        Verdict::Follows(Interval::Unknown(why)) => format!("unknown: {why}"),
        Verdict::Repeated => "repeated".into(),
        Verdict::Earlier => "earlier".into(),
        Verdict::Contradicts => "earlier, which cannot be".into(),
        Verdict::Rejected(why) => format!("rejected: {why}"),
    }
}
