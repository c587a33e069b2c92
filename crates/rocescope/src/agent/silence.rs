//! Which counters of PFC frames have no reading, and what the log says of it: each time that it
//! begins and each time that it is over, and no line for every poll.
//!
//! That a counter was not read anew since the last poll is as it should be for a while. A reason is
//! told once; over it is when readings have come for as long.
// PFC-op.1

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use observe::pfc::Direction;

use crate::pfc::Absent;
use crate::pfc::poller::Lacks;

/// Ports that one line of the log names.
const NAMED_MAX: usize = 8;
/// Lines of the log after one poll; what is beyond is counted in one more.
const LINES_MAX: usize = 16;

/// A counter that has no reading now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name of its port.
    pub port: Arc<str>,
    /// Its direction.
    pub direction: Direction,
    /// Its priority.
    pub priority: usize,
    /// Why it has none.
    pub absent: Absent,
}

/// What is known of the counters of a source.
#[derive(Debug)]
pub struct Silence {
    patience: Duration,
    ports_max: usize,
    /// Directions that are exported.
    sides: [bool; 2],
    ports: BTreeMap<Arc<str>, Port>,
    /// That there is any port.
    any: Track,
    /// That the source answers.
    answers: Track,
    /// That the source has no reading was told, and not yet that nothing is missing any more.
    hushed: bool,
}

#[derive(Debug)]
struct Port {
    tracks: [[Track; 8]; 2],
    is_there: bool,
}

/// How it is with one counter.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// Since when readings come.
    since: Option<Instant>,
    /// The last of them; before the first one, the beginning.
    last: Instant,
    ever: bool,
    /// Reasons that were told, a bit for each.
    told: u16,
    now: Option<Absent>,
}

/// What is to be told of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// It has no reading from here on.
    Silent(Absent),
    /// It has readings, as it had before or for the first time.
    Over { again: bool },
}

/// What is to be told of the counters of a port.
type Turns = [[Option<Turn>; 8]; 2];

impl Track {
    fn new(now: Instant) -> Self {
        Self { since: None, last: now, ever: false, told: 0, now: None }
    }

    /// After a poll.
    fn after(&mut self, absent: Option<Absent>, now: Instant, patience: Duration) -> Option<Turn> {
        let Some(absent) = absent else {
            self.now = None;
            self.last = now;
            let since = *self.since.get_or_insert(now);
            if self.told == 0 {
                self.ever = true;
                return None;
            }
            if now.saturating_duration_since(since) < patience {
                return None;
            }
            self.told = 0;
            return Some(Turn::Over { again: std::mem::replace(&mut self.ever, true) });
        };
        if absent == Absent::Stale && now.saturating_duration_since(self.last) < patience {
            // It has its last reading still, if it had one.
            self.now = self.now.map(|_| absent);
            return None;
        }
        self.since = None;
        self.now = Some(absent);
        let bit = 1_u16 << (absent as u32);
        let news = self.told & bit == 0;
        self.told |= bit;
        news.then_some(Turn::Silent(absent))
    }
}

impl Port {
    fn new(now: Instant) -> Self {
        Self { tracks: [[Track::new(now); 8]; 2], is_there: true }
    }
}

impl Silence {
    /// Nothing was polled yet. Readings may be late for as long as `patience`.
    pub fn new(patience: Duration, ports_max: usize, sides: [bool; 2], now: Instant) -> Self {
        let (any, answers) = (Track::new(now), Track::new(now));
        Self { patience, ports_max, sides, ports: BTreeMap::new(), any, answers, hushed: false }
    }

    /// After a poll that came to nothing: the line for it, if there is to be one.
    pub fn failed(&mut self, problem: &str, now: Instant) -> Option<String> {
        for track in self.ports.values_mut().flat_map(|port| port.tracks.iter_mut().flatten()) {
            // The line for all of them is that of the source.
            track.since = None;
            track.now = Some(Absent::Unanswered);
        }
        let turn = self.answers.after(Some(Absent::Unanswered), now, self.patience);
        turn.map(|_| format!("no readings: {problem}"))
    }

    /// After a poll that was answered: the lines for it, each with whether it is a warning.
    pub fn polled(&mut self, polled: &[(Arc<str>, Lacks)], now: Instant) -> Vec<(bool, String)> {
        let mut lines = Vec::new();
        if let Some(Turn::Over { again }) = self.answers.after(None, now, self.patience) {
            lines.push((false, format!("answers{}", if again { " again" } else { "" })));
        }
        let turns = self.turns(polled, now);
        self.make_room();
        self.tell(&turns, &mut lines);
        lines
    }

    /// What turned with each counter.
    fn turns(&mut self, polled: &[(Arc<str>, Lacks)], now: Instant) -> Vec<(Arc<str>, Turns)> {
        let there: BTreeSet<&Arc<str>> = polled.iter().map(|(name, _)| name).collect();
        let gone: Vec<Arc<str>> =
            self.ports.keys().filter(|name| !there.contains(name)).cloned().collect();
        let none = [[Some(Absent::NoPort); 8]; 2];
        let gone = gone.iter().map(|name| (name, &none, false));
        let polled = polled.iter().map(|(name, lacks)| (name, lacks, true));
        let mut all = Vec::new();
        for (name, lacks, is_there) in polled.chain(gone) {
            let port = self.ports.entry(name.clone()).or_insert_with(|| Port::new(now));
            port.is_there = is_there;
            let mut turns: Turns = [[None; 8]; 2];
            for side in (0..2).filter(|side| self.sides[*side]) {
                for index in 0..8 {
                    let track = &mut port.tracks[side][index];
                    turns[side][index] = track.after(lacks[side][index], now, self.patience);
                }
            }
            if turns.iter().flatten().any(Option::is_some) {
                all.push((name.clone(), turns));
            }
        }
        let nothing = self.ports.is_empty().then_some(Absent::NoPort);
        if let Some(turn) = self.any.after(nothing, now, self.patience)
            && nothing.is_some()
        {
            all.push(("".into(), [[Some(turn); 8]; 2]));
        }
        all
    }

    /// Ports that are gone are remembered as far as there is room.
    fn make_room(&mut self) {
        let mut beyond = self.ports.len().saturating_sub(self.ports_max);
        self.ports.retain(|_, port| {
            let stays = port.is_there || beyond == 0;
            beyond -= usize::from(!stays);
            stays
        });
    }

    fn exported(&self) -> impl Iterator<Item = &Track> {
        let sides = self.sides;
        self.ports.values().flat_map(move |port| {
            let tracks = port.tracks.iter().zip(sides);
            tracks.filter(|(_, is)| *is).flat_map(|(tracks, _)| tracks)
        })
    }

    fn tell(&mut self, turns: &[(Arc<str>, Turns)], lines: &mut Vec<(bool, String)>) {
        let mut kinds: BTreeSet<Turn> = BTreeSet::new();
        kinds.extend(turns.iter().flat_map(|(_, turns)| turns.iter().flatten().flatten()));
        let silent = self.exported().all(|track| track.now.is_some());
        let over = |turn: &&Turn| matches!(turn, Turn::Over { .. });
        let over =
            turns.iter().flat_map(|(_, turns)| turns.iter().flatten().flatten()).filter(over);
        let every = over.count() == self.exported().count();
        let whole = every || self.hushed && self.exported().all(|track| track.told == 0);
        // Ports with the same counters in one line.
        let mut groups: BTreeMap<(Turn, [u8; 2]), Vec<&Arc<str>>> = BTreeMap::new();
        for kind in kinds {
            match kind {
                Turn::Silent(absent) if silent => {
                    self.hushed = true;
                    let of = |track: &&Track| track.now == Some(absent);
                    let counters = self.exported().filter(of).count();
                    lines.push((true, format!("no readings: {absent} ({counters} counters)")));
                }
                Turn::Over { again } if whole => {
                    self.hushed = false;
                    lines.push((
                        false,
                        format!("has readings{}", if again { " again" } else { "" }),
                    ));
                }
                _ => {
                    for (name, turns) in turns {
                        let masks = turns.map(|turns| {
                            let bit = |(index, turn)| u8::from(turn == Some(kind)) << index;
                            turns.into_iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
                        });
                        if masks != [0; 2] {
                            groups.entry((kind, masks)).or_default().push(name);
                        }
                    }
                }
            }
        }
        let mut beyond = 0_usize;
        for (at, ((kind, masks), ports)) in groups.into_iter().enumerate() {
            if at >= LINES_MAX {
                let counters: u32 = masks.iter().map(|mask| mask.count_ones()).sum();
                beyond += ports.len() * usize::try_from(counters).unwrap_or(0);
                continue;
            }
            let of = self.counters(masks, &ports);
            lines.push(match kind {
                Turn::Silent(absent) => (true, format!("no reading of {of}: {absent}")),
                Turn::Over { again: true } => (false, format!("readings again of {of}")),
                Turn::Over { again: false } => (false, format!("readings of {of}")),
            });
        }
        if beyond > 0 {
            lines.push((true, format!("so for {beyond} more counters: see agent ctl status")));
        }
    }

    /// Names counters of ports.
    fn counters(&self, masks: [u8; 2], ports: &[&Arc<str>]) -> String {
        let all = masks.iter().zip(self.sides).all(|(mask, is)| *mask == u8::MAX || !is);
        let mut text = String::new();
        if all {
            text.push_str("any counter");
        }
        for (mask, direction) in masks.into_iter().zip(Direction::ALL) {
            if all || mask == 0 {
                continue;
            }
            let many = if mask.count_ones() == 1 { "y" } else { "ies" };
            let and = if text.is_empty() { "" } else { " and " };
            // Writing to a string does not fail.
            _ = write!(text, "{and}{} priorit{many}", direction.word());
            for index in (0..8).filter(|index| mask >> index & 1 == 1) {
                _ = write!(text, " {index}");
            }
        }
        text.push_str(" of ");
        let named: Vec<&str> = ports.iter().take(NAMED_MAX).map(|name| &***name).collect();
        text.push_str(&named.join(", "));
        if ports.len() > NAMED_MAX {
            _ = write!(text, " and {} more", ports.len() - NAMED_MAX);
        }
        text
    }

    /// Every counter that has no reading now, by port.
    pub fn missing(&self) -> Vec<Missing> {
        let mut all = Vec::new();
        for (name, port) in &self.ports {
            for (side, direction) in Direction::ALL.into_iter().enumerate() {
                for (priority, track) in port.tracks[side].iter().enumerate() {
                    if let Some(absent) = track.now.filter(|_| self.sides[side]) {
                        all.push(Missing { port: name.clone(), direction, priority, absent });
                    }
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports with the reason why counters of one priority, or all, have no reading.
    struct Source {
        silence: Silence,
        began: Instant,
    }

    const ALL: usize = 8;

    impl Source {
        fn new() -> Self {
            let began = Instant::now();
            let silence = Silence::new(Duration::from_secs(10), 4, [true, true], began);
            Self { silence, began }
        }

        /// What is told after a poll, at tenths of a second, of ports whose received counters lack
        /// what is said of them.
        fn poll(&mut self, tenths: u64, ports: &[(&str, &[(usize, Absent)])]) -> Vec<String> {
            let lacks = |lacking: &[(usize, Absent)]| {
                let mut lacks: Lacks = [[None; 8]; 2];
                for (priority, absent) in lacking {
                    match *priority {
                        ALL => lacks = [[Some(*absent); 8]; 2],
                        priority => lacks[0][priority] = Some(*absent),
                    }
                }
                lacks
            };
            let polled: Vec<_> =
                ports.iter().map(|(name, lacking)| ((*name).into(), lacks(lacking))).collect();
            let at = self.began + Duration::from_millis(100 * tenths);
            self.silence.polled(&polled, at).into_iter().map(|(_, line)| line).collect()
        }
    }

    const NONE: [String; 0] = [];

    // PFC-op.1
    #[test]
    fn an_outage_is_told_each_time_that_it_begins_and_each_time_that_it_is_over() {
        let mut source = Source::new();
        let (off, fine) = ([(ALL, Absent::Disabled)], []);
        for round in 0..3 {
            let at = 400 * round;
            assert_eq!(source.poll(at, &[("a", &fine), ("b", &fine)]), NONE);
            let told = source.poll(at + 10, &[("a", &off), ("b", &off)]);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].starts_with("no readings: ") && told[0].ends_with(" (32 counters)"));
            assert_eq!(source.poll(at + 20, &[("a", &off), ("b", &off)]), NONE);
            assert_eq!(source.poll(at + 30, &[("a", &fine), ("b", &fine)]), NONE);
            assert_eq!(source.poll(at + 129, &[("a", &fine), ("b", &fine)]), NONE);
            let told = source.poll(at + 130, &[("a", &fine), ("b", &fine)]);
            assert_eq!(told, ["has readings again"]);
        }
    }

    // PFC-op.1
    #[test]
    fn what_comes_and_goes_at_every_poll_fills_no_log() {
        let mut source = Source::new();
        let (off, fine) = ([(ALL, Absent::Disabled)], []);
        let mut lines = 0;
        for poll in 0..10_000 {
            let lacks: &[(usize, Absent)] = if poll % 2 == 0 { &off } else { &fine };
            lines += source.poll(poll, &[("a", lacks)]).len();
        }
        assert_eq!(lines, 1);
    }

    /// A source that is polled more often than its counters are read.
    // PFC-op.1
    #[test]
    fn polls_in_between_end_no_run_of_readings() {
        let mut source = Source::new();
        let (stale, fine) = ([(ALL, Absent::Stale)], []);
        let mut told = Vec::new();
        for poll in 0..2000_u64 {
            // Read once a second for 20 s, then not for 30 s.
            let read = poll % 10 == 0 && poll % 500 < 200;
            for line in source.poll(poll, &[("a", if read { &fine } else { &stale })]) {
                told.push((poll, line));
            }
        }
        let when: Vec<u64> = told.iter().map(|(poll, _)| *poll).collect();
        assert_eq!(when, [290, 600, 790, 1100, 1290, 1600, 1790], "{told:?}");
        for (at, (_, line)) in told.iter().enumerate() {
            let expected = if at % 2 == 0 { "no readings: " } else { "has readings again" };
            assert!(line.starts_with(expected), "{told:?}");
        }
    }

    // PFC-op.1
    #[test]
    fn a_counter_without_a_reading_beside_others_is_named_once() {
        let mut source = Source::new();
        let odd = [(3, Absent::NoNumber), (4, Absent::NoNumber)];
        let told = source.poll(0, &[("a", &odd), ("b", &[(5, Absent::NoCounter)]), ("c", &odd)]);
        assert_eq!(
            told,
            [
                "no reading of received priority 5 of b: the port has no such counter now",
                "no reading of received priorities 3 4 of a, c: what stands there is no number of \
                 64 bits",
            ]
        );
        assert_eq!(source.silence.missing().len(), 5);
        let missing = &source.silence.missing()[2];
        assert_eq!((&*missing.port, missing.priority), ("b", 5));
        assert_eq!(source.poll(1, &[("a", &odd), ("b", &[]), ("c", &odd)]), NONE);
        assert_eq!(source.silence.missing().len(), 4);
        let told = source.poll(101, &[("a", &odd), ("b", &[]), ("c", &[])]);
        assert_eq!(told, ["readings of received priority 5 of b"], "it had none before");
        // One that is not listed any more.
        let told = source.poll(102, &[("a", &odd), ("c", &[])]);
        assert_eq!(told, ["no reading of any counter of b: the device has no such port"]);
    }

    // PFC-op.1
    #[test]
    fn many_ports_make_few_lines() {
        let began = Instant::now();
        let mut silence = Silence::new(Duration::from_secs(10), 64, [true, false], began);
        let mut lacks: Lacks = [[None; 8]; 2];
        lacks[0][0] = Some(Absent::NoCounter);
        let ports =
            (0..64).map(|n| (format!("p{n:02}").as_str().into(), lacks)).collect::<Vec<_>>();
        let told = silence.polled(&ports, began);
        assert_eq!(told.len(), 1);
        let line = "no reading of received priority 0 of p00, p01, p02, p03, p04, p05, p06, p07 and \
                    56 more: the port has no such counter now";
        assert_eq!(told[0], (true, line.to_owned()));
        // Ports that are gone are remembered only while there is room.
        let others = (0..63).map(|n| (format!("q{n:02}").as_str().into(), lacks));
        silence.polled(&others.collect::<Vec<_>>(), began);
        assert_eq!(silence.ports.len(), 64);
        // As many reasons as there are groups of counters are cut short.
        let each = (0..64_u8).map(|n| {
            let bit = |index| (n >> index & 1 == 1).then_some(Absent::NoNumber);
            (format!("q{n:02}").as_str().into(), [std::array::from_fn(bit), [None; 8]])
        });
        let told = silence.polled(&each.collect::<Vec<_>>(), began);
        assert_eq!(told.len(), LINES_MAX + 1);
        assert!(told[LINES_MAX].1.starts_with("so for "), "{told:?}");
    }

    // PFC-op.1
    #[test]
    fn a_source_that_does_not_answer_is_told_once_and_so_is_its_answer() {
        let mut source = Source::new();
        let at = |source: &Source, seconds| source.began + Duration::from_secs(seconds);
        let now = at(&source, 0);
        let told = source.silence.failed("gone", now);
        assert_eq!(told.as_deref(), Some("no readings: gone"));
        let now = at(&source, 1);
        assert_eq!(source.silence.failed("gone", now), None);
        assert_eq!(source.poll(20, &[("a", &[])]), NONE);
        assert_eq!(source.poll(120, &[("a", &[])]), ["answers"]);
        let now = at(&source, 13);
        assert!(source.silence.failed("gone", now).is_some());
        assert_eq!(source.silence.missing().len(), 16);
        assert_eq!(source.poll(140, &[("a", &[])]), NONE);
        assert_eq!(source.silence.missing(), []);
        assert_eq!(source.poll(240, &[("a", &[])]), ["answers again"]);
        // Ports whose readings come again one after the other.
        let mut source = Source::new();
        let off = [(ALL, Absent::Disabled)];
        source.poll(0, &[("a", &[]), ("b", &[])]);
        assert_eq!(source.poll(10, &[("a", &off), ("b", &off)]).len(), 1);
        source.poll(20, &[("a", &[]), ("b", &off)]);
        source.poll(30, &[("a", &[]), ("b", &[])]);
        let told = source.poll(120, &[("a", &[]), ("b", &[])]);
        assert_eq!(told, ["readings again of any counter of a"]);
        assert_eq!(source.poll(130, &[("a", &[]), ("b", &[])]), ["has readings again"]);
        // Without a port there is no counter that could lack a reading.
        let told = Source::new().poll(0, &[]);
        assert_eq!(told, ["no readings: the device has no such port (0 counters)"]);
    }
}
