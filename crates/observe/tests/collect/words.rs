//! The lines of a conversation, the words of a line, and the report or stream that they make.

use std::collections::BTreeMap;

use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use wire::frame::{Addresses, Namespace};

/// The words of a line behind its verb; each is used once, and none may be left.
pub struct Words<'a> {
    named: BTreeMap<&'a str, &'a str>,
    bare: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub fn new(words: &[&'a str]) -> Self {
        let named = words.iter().filter_map(|word| word.split_once('=')).collect();
        let bare = words.iter().copied().filter(|word| !word.contains('=')).collect();
        Self { named, bare }
    }

    pub fn none_left(&self) {
        assert!(self.named.is_empty() && self.bare.is_empty(), "{:?} {:?}", self.named, self.bare);
    }

    pub fn number(&mut self, name: &str, default: u64) -> u64 {
        self.named.remove(name).map_or(default, parsed)
    }

    pub fn small(&mut self, name: &str, default: u32) -> u32 {
        u32::try_from(self.number(name, default.into())).unwrap()
    }

    pub fn short(&mut self, name: &str) -> u16 {
        u16::try_from(self.number(name, 0)).unwrap()
    }

    pub fn first(&mut self) -> u64 {
        parsed(self.bare.remove(0))
    }

    pub fn list(&mut self, name: &str) -> Vec<u32> {
        let list = self.named.remove(name).unwrap();
        list.split(',').map(|n| u32::try_from(parsed(n)).unwrap()).collect()
    }

    pub fn has(&mut self, word: &str) -> bool {
        let before = self.bare.len();
        self.bare.retain(|bare| *bare != word);
        before != self.bare.len()
    }

    /// `stream=a`, with `vlan`, `inner`, `segment`, `qp`, `pkey`, or `v6` to make another of it.
    pub fn stream(&mut self) -> StreamKey {
        let name = self.named.remove("stream").unwrap_or("a").as_bytes()[0];
        let addresses = if self.has("v6") {
            Addresses::v6([name; 16], [254; 16])
        } else {
            Addresses::v4([10, 0, 0, name], [10, 0, 0, 254])
        };
        let namespace = Namespace {
            outer_vlan: self.short("vlan"),
            inner_vlan: self.short("inner"),
            segment: self.small("segment", 0),
        };
        let (qp, pkey) = (self.small("qp", 17), self.small("pkey", 0xffff));
        StreamKey { addresses, namespace, qp, pkey: u16::try_from(pkey).unwrap() }
    }

    pub fn report(&mut self) -> Report {
        let key = self.stream();
        let mut flags = Flags(self.short("flags"));
        for (mask, name) in Flags::NAMES {
            if self.has(name) || (mask == Flags::FINAL_EPOCH && self.has("final")) {
                flags = flags.with(mask);
            }
        }
        let mut counts = Counts {
            filled: self.number("filled", 0),
            expired: self.number("expired", 0),
            abandoned: self.number("abandoned", 0),
            pending: self.small("pending", 0),
            repeated: self.number("repeated", 0),
            requests: self.number("requests", 1),
            unclassified_late: self.number("late", 0),
            skipped: 0,
        };
        let open = counts.abandoned + u64::from(counts.pending);
        counts.skipped = self.number("skipped", counts.filled + counts.expired + open);
        let start_ms = self.number("start", 1000);
        let end_ms = self.number("until", start_ms + counts.requests);
        let window = Window::new(self.small("window", 64)).unwrap();
        let snapshot = Snapshot { key, window, flags, start_ms, end_ms, counts };
        Report {
            epoch_id: self.number("epoch", 1),
            report_id: self.number("id", 1),
            snapshot,
            other_keys: 0,
        }
    }
}

fn parsed(word: &str) -> u64 {
    let number = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    number.unwrap_or_else(|error| panic!("{word}: {error}"))
}

/// Number, text and expectations of each line that does something.
pub fn steps(text: &str) -> Vec<(usize, &str, Vec<&str>)> {
    let mut steps: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if let Some(expected) = line.trim_start().strip_prefix("-> ") {
            steps.last_mut().expect("a line before `->`").2.push(expected);
            continue;
        }
        match line.split_once(" -> ") {
            Some((line, expected)) => steps.push((number, line, vec![expected])),
            None => steps.push((number, line, Vec::new())),
        }
    }
    steps
}
