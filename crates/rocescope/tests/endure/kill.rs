//! SIGKILL of collector and agent and cut connections, at random moments, for many rounds. What was
//! published stays as it was, every number is one that reports supported, no final is made up, and
//! the archive says the same as the store.
//!
//! `ROUNDS` and `SEED` in the environment make it longer, or again as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use wire::frame::{Addresses, Namespace};

use crate::proxy::Cable;
use crate::site::{Collector, Program, ROCESCOPE, Seen, Site, until};
use crate::truth::{Capture, path};
use crate::wire_side::Connection;

const CAPTURES: [&str; 3] =
    ["e1_write_loss2.rcv.pcap", "g4_write_q8_loss1.rcv.pcap", "e1_write_loss2.snd.pcap"];

/// The agent's domain, and that of the exporter beside it.
const METERED: u32 = 1;
const MADE: u32 = 2;

/// xorshift: the same seed makes the same choices.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

// SEQ-7.11, SEQ-7.13, SEQ-7.18, SEQ-4.6, SEQ-4.13, SEQ-10.2, SEQ-10.3
#[test]
fn nothing_that_was_published_changes_whatever_is_killed() {
    let seed = from_environment("SEED").unwrap_or_else(|| {
        let mut octets = [0; 8];
        getrandom::fill(&mut octets).expect("randomness");
        u64::from_ne_bytes(octets) | 1
    });
    let rounds = from_environment("ROUNDS").unwrap_or(24);
    // In the message of a test that fails.
    println!("SEED={seed} ROUNDS={rounds}");
    let mut battle = Battle::new(seed);
    for round in 0..rounds {
        battle.round(round);
    }
    battle.settle();
}

struct Battle {
    site: Site,
    chance: Chance,
    cable: Cable,
    collector: Option<Collector>,
    agent: Option<Program>,
    made: Arc<Made>,
    exporter: Option<thread::JoinHandle<()>>,
    captures: Vec<Capture>,
    published: BTreeMap<(u64, u32, u64), Seen>,
    kills: usize,
}

impl Battle {
    fn new(seed: u64) -> Self {
        let site = Site::new("kill");
        site.configure("1, 2", "inactivity_timeout_s = 3600", "closed_retention_s = 2");
        let collector = site.collector();
        let cable = Cable::new();
        cable.leads_to(collector.port);
        let made = Arc::new(Made::default());
        let exporter = {
            let (made, directory, port) = (made.clone(), site.directory.clone(), cable.port);
            thread::spawn(move || made.export(&Site { directory }, port, Chance(seed ^ 0x5eed)))
        };
        Self {
            site,
            chance: Chance(seed),
            cable,
            collector: Some(collector),
            agent: None,
            made,
            exporter: Some(exporter),
            captures: CAPTURES.map(Capture::read).into(),
            published: BTreeMap::new(),
            kills: 0,
        }
    }

    fn round(&mut self, round: u64) {
        // Long enough for an agent that plays at a capture's pace to have reported.
        let long = round % 4 == 1;
        if long || self.agent.as_mut().is_none_or(Program::is_over) {
            drop(self.agent.take());
            let fast = !long && self.chance.below(3) == 0;
            let pace = if fast { "fast" } else { "capture" };
            let name = CAPTURES[usize::try_from(self.chance.below(3)).expect("small")];
            self.agent = Some(self.agent(name, pace));
        }
        let least = if long { 1_500 } else { 30 };
        thread::sleep(Duration::from_millis(least + self.chance.below(600)));
        match self.chance.below(10) {
            0..5 => self.kill_collector(round),
            5..7 => self.agent.as_mut().expect("started").kill(),
            _ => self.cable.cut(),
        }
    }

    fn agent(&self, capture: &str, pace: &str) -> Program {
        let port = self.cable.port;
        let text = format!(
            "[observation]\ndomain = {METERED}\npoint = 9\n\
             [[rule]]\nsources = [\"0.0.0.0/0\"]\ndestinations = [\"0.0.0.0/0\"]\nwindow = 1024\n\
             [rule.attest]\nsend_write_only = true\ncomplete_capture = true\nall_paths = true\n\
             half_space = true\nseparate_namespaces = true\n\
             [[source]]\nfile = {:?}\npace = \"{pace}\"\n\
             [[export]]\ncollector = \"127.0.0.1:{port}\"\nreport_interval_s = 1\n\
             server_name = \"localhost\"\ncertificate = \"agent.pem\"\nkey = \"agent.key\"\n\
             authority = \"ca.pem\"\n",
            path(capture).display().to_string()
        );
        let config = self.site.path("agent.toml");
        // It is not there before, or this test's own.
        fs::write(&config, text).expect("written");
        Program::start(&["agent", "--config"], &config)
    }

    fn kill_collector(&mut self, round: u64) {
        self.publish("before the kill");
        self.collector.take().expect("it runs").program.kill();
        self.kills += 1;
        self.publish("after the kill");
        let torn = self.chance.below(2) == 0 && tear(&self.site.data().join("archive"));
        let collector = self.site.collector();
        if torn {
            collector.program.line("is mended");
        }
        self.publish("after the restart");
        let open = |seen: &&Seen| seen.outcome == "active" && seen.session < self.opened();
        let seen = self.site.seen();
        assert!(seen.iter().find(open).is_none(), "a session that is over has an active epoch");
        if round.is_multiple_of(4) {
            self.replay_agrees();
        }
        self.cable.leads_to(collector.port);
        self.collector = Some(collector);
    }

    /// The first session that this run of the collector can have opened: none so far.
    fn opened(&self) -> u64 {
        let last = self.site.sessions().first().map_or(0, |row| row.session.0);
        last + 1
    }

    /// Notes what is published, and holds it to all that was published before.
    fn publish(&mut self, when: &str) {
        let now: BTreeMap<_, _> = self
            .site
            .seen()
            .into_iter()
            .filter(|seen| seen.outcome != "active")
            .map(|seen| ((seen.session, seen.domain, seen.epoch), seen))
            .collect();
        for (key, before) in &self.published {
            assert_eq!(now.get(key), Some(before), "{when}, {} kills", self.kills);
        }
        self.published = now;
    }

    /// Only while no session is open.
    fn replay_agrees(&self) {
        let (replayed, _) = self.site.replayed();
        let stored = self.site.seen();
        let (replayed, stored): (BTreeSet<_>, BTreeSet<_>) =
            (replayed.into_iter().collect(), stored.into_iter().collect());
        let only = |a: &BTreeSet<Seen>, b: &BTreeSet<Seen>| {
            a.difference(b).take(3).cloned().collect::<Vec<_>>()
        };
        let (kept, archived) = (only(&stored, &replayed), only(&replayed, &stored));
        assert!(
            kept.is_empty() && archived.is_empty(),
            "{} kills; only the store says {kept:#?}, only the archive {archived:#?}",
            self.kills
        );
    }

    /// Peace: what is played now arrives, and everything is held to what was sent.
    fn settle(mut self) {
        self.made.stop.store(true, Ordering::SeqCst);
        self.cable.cut();
        self.exporter.take().expect("started").join().expect("the exporter's own checks");
        drop(self.agent.take());
        let before = self.site.sessions().len();
        let mut agent = self.agent(CAPTURES[1], "fast");
        assert_eq!(agent.ended(), Some(0), "{}", agent.said());
        until("the last session is over", || {
            let sessions = self.site.sessions();
            sessions.len() > before && sessions.iter().all(|row| row.closed_ms.is_some())
        });
        self.publish("at the end");
        self.collector.take().expect("it runs").stop();
        self.publish("after the end");
        self.replay_agrees();

        let last = self.site.sessions()[0].session.0;
        let seen = self.site.seen();
        let mut of_last: Vec<_> = seen
            .iter()
            .filter(|seen| seen.session == last)
            .map(|seen| (seen.qp, seen.start_ms, seen.end_ms, seen.counts))
            .collect();
        of_last.sort_unstable();
        assert_eq!(of_last, metered(CAPTURES[1]));
        assert_eq!(of_last.len(), self.captures[1].streams());
        let mut outcomes = BTreeMap::<_, u64>::new();
        for seen in &seen {
            *outcomes.entry((seen.domain, seen.outcome)).or_default() += 1;
            match seen.domain {
                METERED => {
                    let supported = self.captures.iter().any(|capture| capture.supports(seen));
                    assert!(supported, "no report supports {seen:?}");
                    // No report is skipped under way.
                    assert_eq!(seen.missing, 0, "{seen:?}");
                }
                _ => self.made.check(seen),
            }
        }
        println!("{} kills of the collector, epochs {outcomes:?}", self.kills);
        for part in [METERED, MADE].into_iter().flat_map(|d| [(d, "complete"), (d, "incomplete")]) {
            assert!(outcomes.contains_key(&part), "too quiet to show anything: {outcomes:?}");
        }
    }
}

/// What `rocescope meter` says of a capture.
fn metered(capture: &str) -> Vec<(u32, u64, u64, [u64; 8])> {
    let output = std::process::Command::new(ROCESCOPE)
        .args(["meter", "--attest-all", "--json"])
        .arg(path(capture))
        .output()
        .expect("the meter");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut metered: Vec<_> = text
        .lines()
        .map(|line| {
            // A reader of `replay`'s lines wants a few more members.
            let more = "\"outcome\":\"complete\",\"qualifications\":[],\"reason\":null,\
                        \"reportGaps\":0,\"session\":0}";
            let seen = Seen::replayed(&format!("{},{more}", line.trim_end_matches('}')));
            (seen.qp, seen.start_ms, seen.end_ms, seen.counts)
        })
        .collect();
    metered.sort_unstable();
    metered
}

/// Leaves half a message behind the last one of an open segment, as a kill in the middle of a write
/// does. Says whether there was one.
fn tear(archive: &Path) -> bool {
    let mut open: Vec<_> = fs::read_dir(archive)
        .expect("an archive")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "ipfix"))
        .collect();
    open.sort();
    let Some(path) = open.pop() else { return false };
    let mut file = OpenOptions::new().append(true).open(path).expect("a segment");
    file.write_all(&[0, 10, 1, 0, 0, 0, 0, 0, 0, 0]).expect("written");
    true
}

/// An exporter beside the agent, fast and without mercy: what it sends is known by a formula, and
/// which finals it has sent is noted before they go.
#[derive(Default)]
struct Made {
    stop: AtomicBool,
    finals: Mutex<BTreeSet<(u32, u64)>>,
}

const EPOCHS: u64 = 40;

/// The id of an epoch's last report.
fn last_of(epoch: u64) -> u64 {
    5 + epoch * 7 % 30
}

/// The report of an exporter's connection; its number stands in the queue pair.
fn made(connection: u32, epoch: u64, id: u64) -> Report {
    let key = StreamKey {
        addresses: Addresses::v4([10, 0, 0, 1], [10, 0, 0, 2]),
        namespace: Namespace::default(),
        qp: connection,
        pkey: 0xffff,
    };
    let counts = Counts { requests: id * 10 + epoch, skipped: id, filled: id, ..Counts::default() };
    let flags = if id == last_of(epoch) { Flags::FINAL_EPOCH } else { Flags::default() };
    let window = Window::new(64).expect("legal");
    let snapshot = Snapshot {
        key,
        window,
        flags,
        start_ms: 1_000 + epoch,
        end_ms: 1_000 + epoch + id,
        counts,
    };
    Report { epoch_id: epoch, report_id: id, snapshot, other_keys: 0 }
}

impl Made {
    fn export(&self, site: &Site, port: u16, mut chance: Chance) {
        for connection in 1.. {
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            // However it ends, the next one begins.
            _ = self.session(site, port, connection, &mut chance);
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn session(
        &self,
        site: &Site,
        port: u16,
        connection: u32,
        chance: &mut Chance,
    ) -> io::Result<()> {
        let mut stream = Connection::open(site, port)?;
        for id in 1..=40 {
            let due = |epoch: &u64| id <= last_of(*epoch);
            let reports: Vec<_> =
                (1..=EPOCHS).filter(due).map(|epoch| made(connection, epoch, id)).collect();
            let finals = (1..=EPOCHS).filter(|epoch| id == last_of(*epoch));
            let finals = finals.map(|epoch| (connection, epoch));
            self.finals.lock().expect("not poisoned").extend(finals);
            if !reports.is_empty() {
                stream.reports(MADE, 1, &reports)?;
            }
            if chance.below(4) == 0 {
                thread::sleep(Duration::from_millis(chance.below(4)));
            }
        }
        if chance.below(3) > 0 {
            stream.close()?;
        }
        Ok(())
    }

    fn check(&self, seen: &Seen) {
        let expected = made(seen.qp, seen.epoch, seen.report);
        let Snapshot { counts: c, start_ms, end_ms, flags, .. } = expected.snapshot;
        let counts = [c.skipped, c.filled, 0, 0, 0, 0, c.requests, 0];
        assert_eq!((seen.start_ms, seen.end_ms, seen.counts), (start_ms, end_ms, counts));
        let last = seen.report == last_of(seen.epoch);
        assert_eq!((seen.missing, seen.flags), (0, flags.0), "{seen:?}");
        assert_eq!(seen.outcome, if last { "complete" } else { "incomplete" }, "{seen:?}");
        let sent = self.finals.lock().expect("not poisoned").contains(&(seen.qp, seen.epoch));
        assert!(!last || sent, "a final that nobody sent: {seen:?}");
    }
}
