//! The conversations that are played through the state machine, once more through a collector
//! process: TLS, decoder, bindings, session, writer and store. After every report the store has to
//! say what the conversation says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use observe::outcome::Outcome;
use observe::report::{Flags, Report, Snapshot};
use store::{EpochRow, Reader, SessionId};

use crate::site::{Seen, Site, until};
use crate::wire_side::Connection;
use crate::words::{Words, steps};

/// Files that are about the passing of time, about drops that this collector does not cause, or
/// about the meter: none of that can be said by octets.
const NOT_BY_OCTETS: [u32; 17] =
    [5, 17, 29, 30, 34, 35, 40, 41, 50, 51, 52, 53, 54, 55, 56, 57, 58];
const NOTHING_CHANGED: u32 = 59;

/// A domain of which an epoch shows that everything before it was judged and kept.
const MARKER_DOMAIN: u32 = 999;

fn files() -> BTreeMap<u32, PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../observe/tests/conversations");
    let entries = fs::read_dir(directory).expect("conversations");
    let numbered = entries.map(|entry| {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name[..2].parse().expect("a number"), path)
    });
    numbered.collect()
}

fn verbs(text: &str) -> BTreeSet<&str> {
    steps(text).iter().filter_map(|(_, line, _)| line.split(' ').next()).collect()
}

// SEQ-4.6, SEQ-6.1, SEQ-7.1, SEQ-7.2, SEQ-7.3, SEQ-7.4, SEQ-7.5, SEQ-7.6, SEQ-7.7, SEQ-7.8,
// SEQ-7.9, SEQ-7.10, SEQ-7.11, SEQ-7.12, SEQ-7.13, SEQ-7.14, SEQ-10.1: each file says in its first
// line what it shows.
#[test]
fn conversations_go_over_tls_as_they_are_written_and_replay_alike() {
    let mut by_limits: BTreeMap<String, Vec<(u32, String)>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for (number, path) in files() {
        let text = fs::read_to_string(path).expect("text");
        let by_octets = ["report", "show", "high", "kept", "limits", "end"];
        if verbs(&text).iter().all(|verb| by_octets.contains(verb)) {
            by_limits.entry(limits(&text)).or_default().push((number, text));
        } else {
            left_out.push(number);
        }
    }
    let expected: Vec<_> = NOT_BY_OCTETS.into_iter().chain([NOTHING_CHANGED]).collect();
    assert_eq!(left_out, expected, "conversations that are not played here");
    for (at, (limits, conversations)) in by_limits.iter().enumerate() {
        let site = Site::new(&format!("conversations-{at}"));
        site.configure("1, 2, 3, 999", "inactivity_timeout_s = 3600", limits);
        let collector = site.collector();
        let mut played = Played { site: &site, port: collector.port, last_session: 0 };
        for (number, text) in conversations {
            played.conversation(*number, text);
        }
        collector.stop();
        let (replayed, warnings) = site.replayed();
        assert_eq!(warnings, "");
        assert_eq!(replayed, site.seen());
    }
}

/// The limits of a conversation as lines of `[limits]`, with room for the marker.
fn limits(text: &str) -> String {
    let line = steps(text).into_iter().find_map(|(_, line, _)| line.strip_prefix("limits "));
    let words: Vec<_> = line.unwrap_or_default().split_whitespace().collect();
    let mut words = Words::new(&words);
    let (domains, epochs) = (words.number("domains", 64), words.number("epochs", 100));
    words.none_left();
    format!("domains_max = {}\nepochs_max = {}", domains + 1, epochs + 1)
}

struct Played<'a> {
    site: &'a Site,
    port: u16,
    last_session: u64,
}

/// A Transport Session that goes on.
struct Live {
    connection: Connection,
    reader: Reader,
    session: SessionId,
    marks: u64,
    refused: BTreeMap<String, u64>,
}

impl Played<'_> {
    fn conversation(&mut self, number: u32, text: &str) {
        let mut live = self.begin();
        for (at, line, expected) in steps(text) {
            let here = format!("{number}:{at}: {line}");
            let words: Vec<_> = line.split_whitespace().collect();
            let (verb, words) = words.split_first().expect("a verb");
            match *verb {
                "report" => live.report(&here, &mut Words::new(words), expected[0]),
                "show" => {
                    let mut words = Words::new(words);
                    let (domain, id) = (words.small("domain", 1), words.number("epoch", 1));
                    let row = live.row(domain, id);
                    assert_eq!(row.as_ref().map_or("nothing".into(), shown), expected[0], "{here}");
                }
                "end" => {
                    live.end(&here, &expected);
                    live = self.begin();
                }
                // What the state machine keeps to itself shows in the verdicts.
                _ => {}
            }
        }
        live.connection.close().expect("taken");
    }

    fn begin(&mut self) -> Live {
        let connection = Connection::new(self.site, self.port);
        let last = self.last_session;
        let newest = || self.site.sessions().first().map(|row| row.session);
        until("a session is there", || newest().is_some_and(|id| id.0 > last));
        let session = newest().expect("there");
        self.last_session = session.0;
        let reader = self.site.reader();
        let refused = BTreeMap::new();
        let mut live = Live { connection, reader, session, marks: 0, refused };
        live.mark();
        live
    }
}

impl Live {
    /// Waits until all that was sent is kept.
    fn mark(&mut self) {
        self.marks += 1;
        let mut words = Words::new(&[]);
        let first = words.report();
        let mut counts = first.snapshot.counts;
        counts.requests = self.marks;
        let snapshot = Snapshot { counts, ..first.snapshot };
        let report = Report { epoch_id: 1, report_id: self.marks, snapshot, other_keys: 0 };
        self.connection.report(MARKER_DOMAIN, 1, &report);
        until("what was sent is kept", || {
            self.row(MARKER_DOMAIN, 1).is_some_and(|row| row.epoch.latest.report_id == self.marks)
        });
    }

    fn row(&self, domain: u32, epoch_id: u64) -> Option<EpochRow> {
        self.reader.epoch(self.session, domain, epoch_id).expect("a database")
    }

    fn refusals(&self) -> BTreeMap<String, u64> {
        let mut kinds = BTreeMap::new();
        for refusal in self.reader.refusals(self.session).expect("a database") {
            *kinds.entry(refusal.kind).or_default() += refusal.records;
        }
        kinds
    }

    fn report(&mut self, here: &str, words: &mut Words<'_>, expected: &str) {
        let (domain, point) = (words.small("domain", 1), words.number("point", 1));
        let report = words.report();
        words.none_left();
        let before = self.row(domain, report.epoch_id);
        self.connection.report(domain, point, &report);
        self.mark();
        let after = self.row(domain, report.epoch_id);
        match expected.strip_prefix("accepted missing=") {
            Some(behind) => {
                let row = after.unwrap_or_else(|| panic!("{here}: nothing is kept"));
                let missing: u64 = behind.trim_end_matches(" last").parse().expect("a number");
                let missed = row.epoch.missing - before.map_or(0, |row| row.epoch.missing);
                assert_eq!((row.epoch.latest, missed), (report, missing), "{here}");
                let last = row.epoch.latest.snapshot.flags.has(Flags::FINAL_EPOCH);
                assert_eq!(behind.ends_with(" last"), last, "{here}");
            }
            None => {
                let seen = |row: Option<EpochRow>| row.as_ref().map(Seen::stored);
                let (before, after) = (seen(before), seen(after));
                if expected.starts_with("invalidated: ") {
                    let (before, after) = (before.expect("it was there"), after.expect("and is"));
                    assert_eq!((after.outcome, after.counts), ("invalid", before.counts), "{here}");
                } else {
                    assert_eq!(after, before, "{here}");
                }
                if let Some(kind) = refusal(expected) {
                    *self.refused.entry(kind.to_owned()).or_default() += 1;
                }
            }
        }
        assert_eq!(self.refusals(), self.refused, "{here}");
    }

    fn end(self, here: &str, expected: &[&str]) {
        let Self { connection, reader, session, .. } = self;
        connection.close().expect("taken");
        let closed = || {
            let sessions = reader.sessions(1, None).expect("a database").rows;
            let row = sessions.into_iter().find(|row| row.session == session);
            row.expect("the newest").reason
        };
        until("the session is over", || closed().is_some());
        assert_eq!(closed().as_deref(), Some("closed by the exporter"), "{here}");
        let filter = store::EpochFilter { limit: 1_000, ..store::EpochFilter::default() };
        let mut rows = reader.epochs(&filter).expect("a database").rows;
        rows.retain(|row| row.session == session && row.domain != MARKER_DOMAIN);
        rows.sort_by_key(|row| (row.domain, row.epoch.latest.epoch_id));
        let line = |row: &EpochRow| {
            let domain = match row.domain {
                1 => String::new(),
                domain => format!("domain={domain} "),
            };
            let words: String = row.qualifications.iter().map(|word| format!(" {word}")).collect();
            let id = row.epoch.latest.epoch_id;
            format!("{domain}epoch={id} {}{words}", row.outcome.word())
        };
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), expected, "{here}");
    }
}

fn shown(row: &EpochRow) -> String {
    let Report { report_id, snapshot, .. } = &row.epoch.latest;
    let (requests, missing) = (snapshot.counts.requests, row.epoch.missing);
    let mut words: String = row.qualifications.iter().map(|word| format!(" {word}")).collect();
    if row.outcome == Outcome::Active {
        // It goes without saying in the store.
        words.push_str(" noFinal");
    }
    format!("id={report_id} requests={requests} missing={missing} {}{words}", row.outcome.word())
}

/// The kind under which a verdict is counted, if it is a refusal.
fn refusal(verdict: &str) -> Option<&'static str> {
    let (sort, why) = verdict.split_once(": ").unwrap_or((verdict, ""));
    let kinds = [
        ("the epoch id belongs to another key", "keyChanged"),
        (" changed within the epoch", "immutableChanged"),
        (" is smaller than in an earlier report", "decreased"),
        ("an unknown epoch id, not above the highest seen", "orphan"),
        ("no room for another epoch", "epochsFull"),
        ("no room for another observation domain", "domainsFull"),
        ("the epoch is invalid", "epochInvalid"),
        ("the latest report id again with other content", "sameIdOtherContent"),
        ("a report after the final one", "afterFinal"),
    ];
    match sort {
        "repeated" => None,
        "stale" => Some("stale"),
        "unreadable" => Some("fieldOutOfRange"),
        _ => {
            let found = kinds.iter().find(|(words, _)| why.ends_with(words));
            Some(found.map_or("inconsistent", |(_, kind)| kind))
        }
    }
}
