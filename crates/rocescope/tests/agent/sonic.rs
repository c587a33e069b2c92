//! A SONiC switch: a real Redis server with a recorded database in it (that of the tests of
//! sonic-utilities), and what happens to such a database while it is polled.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use observe::pfc::Direction;
use rocescope::pfc::Absent;
use rocescope::pfc::poller::{Batch, Place, PollCounts, Poller};
use rocescope::pfc::redis::{Address, Connection, Reply, request};
use rocescope::pfc::sonic::{Dating, Sonic, SonicPort, SonicSettings, interface_number, statement};

use super::pfc::{At, place, poller, totals};
use super::program::Room;

/// A server that ends with the test.
pub struct Redis {
    server: Child,
    pub socket: PathBuf,
}

impl Redis {
    /// An empty one, on a socket in the folder.
    pub fn empty(folder: &Path) -> Self {
        let socket = folder.join("redis.sock");
        let mut server = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is needed for this test");
        let stdout = server.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines().map(|line| line.expect("text"));
        let ready = |line: &String| line.contains("now ready to accept connections");
        lines.find(ready).expect("a server that is ready");
        // What else it says is nobody's business, but must find a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { server, socket }
    }

    /// One with the recorded database, whose counters of ports are being read.
    pub fn recorded(folder: &Path) -> Self {
        let redis = Self::empty(folder);
        let recorded = include_str!("sonic/counters_db.json");
        let recorded: serde_json::Value = serde_json::from_str(recorded).expect("JSON");
        let mut commands = Vec::new();
        for (key, fields) in recorded.as_object().expect("keys") {
            let mut words = vec!["HSET".to_owned(), key.clone()];
            for (field, value) in fields.as_object().expect("fields") {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                words.extend([field.clone(), text]);
            }
            // A hash without fields cannot be.
            if words.len() > 2 {
                commands.push(words);
            }
        }
        redis.all(2, &commands);
        redis.group("enable", "STATS_MODE_READ");
        redis
    }

    pub fn group(&self, status: &str, mode: &str) {
        let key = "FLEX_COUNTER_GROUP_TABLE:PORT_STAT_COUNTER";
        self.put(5, &["HSET", key, "FLEX_COUNTER_STATUS", status, "STATS_MODE", mode]);
    }

    pub fn put(&self, database: u32, words: &[&str]) {
        self.all(database, &[words.iter().map(|word| (*word).to_owned()).collect()]);
    }

    /// What the server says of itself.
    pub fn info(&self, section: &str) -> String {
        let replies = self.all(0, &[vec!["INFO".into(), section.into()]]);
        match &replies[1] {
            Reply::Text(text) => String::from_utf8(text.clone()).expect("text"),
            other => panic!("{other:?}"),
        }
    }

    fn all(&self, database: u32, commands: &[Vec<String>]) -> Vec<Reply> {
        let address = Address::Socket(self.socket.clone());
        let mut connection =
            Connection::open(&address, Duration::from_secs(30)).expect("connected");
        let mut requests = Vec::new();
        request(&mut requests, &["SELECT", &database.to_string()]);
        for words in commands {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            request(&mut requests, &words);
        }
        connection.send(&requests).expect("sent");
        let reply = |_| {
            let reply = connection.reply().expect("an answer");
            assert!(!matches!(reply, Reply::Refused(_)), "{reply:?}");
            reply
        };
        (0..=commands.len()).map(reply).collect()
    }

    fn signal(&self, name: &str) {
        let id = self.server.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Sets the time stamp of a port's counters, milliseconds of a test's clock.
    pub fn stamp(&self, object: &str, ms: u64) {
        let key = format!("COUNTERS:{object}");
        let stamp = (ms * 1_000_000 + 999_999).to_string();
        self.put(2, &["HSET", &key, "PORT_STAT_COUNTER_time_stamp", &stamp]);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        _ = self.server.kill();
        _ = self.server.wait();
    }
}

/// Ethernet0, Ethernet4 and Ethernet8.
pub const OBJECTS: [&str; 3] =
    ["oid:0x1000000000012", "oid:0x1000000000013", "oid:0x1000000000014"];

fn settings(redis: &Redis, ports: &[&str], dating: Dating) -> SonicSettings {
    let port = |name: &&str| SonicPort {
        name: (*name).into(),
        interface: interface_number(name).unwrap_or(77),
    };
    SonicSettings {
        address: Address::Socket(redis.socket.clone()),
        ports: ports.iter().map(port).collect(),
        dating,
        within: Duration::from_secs(30),
        ports_max: 64,
        stale_ms_max: 5000,
    }
}

fn polling(redis: &Redis, dating: Dating) -> (Poller<Sonic>, Arc<PollCounts>) {
    let sonic = Sonic::new(settings(redis, &[], dating));
    poller(sonic, place(&statement(dating), true))
}

/// The names of the counters of an interface at the last poll: one, as they are all named alike.
#[track_caller]
fn named(batch: &Batch, interface: u32) -> Vec<u64> {
    let all = (0..2).flat_map(|side| batch.since(side, batch.poll - 1));
    let of = all.filter(|(reading, _)| reading.scope.interface == interface);
    of.map(|(_, id)| id.expect("named").get()).collect()
}

// PFC-id.1, PFC-id.3, PFC-count.3, PFC-rec.2
#[test]
fn the_recorded_database_gives_each_counter_its_own_value() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let (mut poller, counts) = polling(&redis, Dating::Asked);
    let batch = poller.poll(&At(5000)).expect("read");
    let mut expected = BTreeMap::new();
    for (interface, base) in [(1, 200), (5, 400), (9, 800)] {
        for priority in 0..8 {
            // As recorded: those of priority 0 are a thousand higher.
            let value = base + u64::from(priority) + if priority == 0 { 1000 } else { 0 };
            expected.insert((interface, Direction::Received, priority), value);
            expected.insert((interface, Direction::Transmitted, priority), value + 10);
        }
    }
    assert_eq!(totals(&batch), expected);
    let times = batch.since(0, 0).chain(batch.since(1, 0));
    assert!(times.into_iter().all(|(reading, _)| reading.time_ms == 1_700_000_005_000));
    assert_eq!((counts.ports.load(Relaxed), counts.readings.load(Relaxed)), (3, 48));
}

// PFC-rec.2, PFC-op.1
#[test]
fn a_stamped_counter_is_dated_by_its_stamp_and_one_that_was_not_read_anew_is_no_reading() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let (mut poller, counts) = polling(&redis, Dating::Stamp);
    // The interface of each reading, and milliseconds of the clock.
    let heard = |poller: &mut Poller<Sonic>, at: u64| {
        let batch = poller.poll(&At(at)).expect("read");
        let all = batch.since(0, batch.poll - 1);
        let all = all.filter(|(reading, _)| reading.scope.priority.get() == 3);
        all.map(|(r, _)| (r.scope.interface, r.time_ms - 1_700_000_000_000)).collect::<Vec<_>>()
    };
    let absent = |reason: Absent| counts.absent[reason as usize].load(Relaxed);
    // Nobody has stamped them yet.
    assert_eq!(heard(&mut poller, 9_000), []);
    assert_eq!(absent(Absent::NoTimeStamp), 48);
    OBJECTS.iter().zip([9_400, 9_500, 9_600]).for_each(|(object, at)| redis.stamp(object, at));
    assert_eq!(heard(&mut poller, 10_000), [(1, 9_400), (5, 9_500), (9, 9_600)]);
    // A bulk read failed for one port: its counters stand as they were, and so does its stamp.
    redis.stamp(OBJECTS[0], 10_400);
    redis.stamp(OBJECTS[2], 10_600);
    assert_eq!(heard(&mut poller, 11_000), [(1, 10_400), (9, 10_600)]);
    assert_eq!(absent(Absent::Stale), 16);
    // Nobody reads any more.
    assert_eq!(heard(&mut poller, 12_000), []);
    // At the limit and beyond it.
    redis.stamp(OBJECTS[0], 12_000);
    redis.stamp(OBJECTS[1], 11_999);
    assert_eq!(heard(&mut poller, 17_000), [(1, 12_000)]);
    // A stamp of another clock.
    redis.stamp(OBJECTS[0], 99_000);
    assert_eq!(heard(&mut poller, 18_000), []);
    assert_eq!(absent(Absent::OtherClock), 16);
}

// PFC-sem.2, PFC-exp.3
#[test]
fn an_object_that_is_made_again_and_every_restart_is_another_instance() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let (mut poller, counts) = polling(&redis, Dating::Asked);
    let mut at = 0;
    let mut names = |poller: &mut Poller<Sonic>| {
        at += 1000;
        let batch = poller.poll(&At(at)).expect("read");
        [1, 5].map(|interface| {
            let names = named(&batch, interface);
            assert!(names.is_empty() || names.len() == 16, "{names:?}");
            names.first().copied()
        })
    };
    let first = names(&mut poller);
    assert_eq!(names(&mut poller), first, "nothing has happened");
    // Ethernet0 is another object now, with the same values.
    let other = "oid:0x1000000000099";
    let copied = format!("COUNTERS:{}", OBJECTS[0]);
    redis.put(2, &["COPY", &copied, &format!("COUNTERS:{other}")]);
    redis.put(2, &["HSET", "COUNTERS_PORT_NAME_MAP", "Ethernet0", other]);
    let replaced = names(&mut poller);
    assert_ne!(replaced[0], first[0]);
    assert_eq!(replaced[1], first[1]);
    // Gone for a poll, and back with the old number.
    redis.put(2, &["HDEL", "COUNTERS_PORT_NAME_MAP", "Ethernet0"]);
    assert_eq!(names(&mut poller), [None, first[1]]);
    redis.put(2, &["HSET", "COUNTERS_PORT_NAME_MAP", "Ethernet0", other]);
    let back = names(&mut poller);
    assert!(back[0].is_some() && back[0] != replaced[0] && back[1] == first[1]);
    // The counters alone were gone.
    redis.put(2, &["RENAME", &format!("COUNTERS:{other}"), "elsewhere"]);
    assert_eq!(names(&mut poller), [None, first[1]]);
    redis.put(2, &["RENAME", "elsewhere", &format!("COUNTERS:{other}")]);
    let again = names(&mut poller);
    assert!(again[0].is_some() && again[0] != back[0]);
    // A warm restart keeps every number.
    for program in ["orchagent", "syncd"] {
        let before = names(&mut poller);
        redis.put(6, &["HSET", &format!("WARM_RESTART_TABLE|{program}"), "restore_count", "1"]);
        let after = names(&mut poller);
        assert!(after[0].is_some() && after[0] != before[0] && after[1] != before[1], "{program}");
        assert_eq!(names(&mut poller), after);
    }
    assert_eq!(counts.failures.load(Relaxed), 0);
}

// PFC-op.1, PFC-sem.2
#[test]
fn a_database_that_stands_still_or_is_another_one_gives_nothing_in_between() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let within = Duration::from_millis(200);
    let settings = SonicSettings { within, ..settings(&redis, &[], Dating::Asked) };
    let all = place(&statement(Dating::Asked), true);
    let (mut poller, counts) = poller(Sonic::new(settings), all);
    // It may be slow to answer at first, on a machine that is busy.
    let mut until_read = |at: u64| loop {
        if let Ok(batch) = poller.poll(&At(at)) {
            return (batch, counts.failures.load(Relaxed));
        }
    };
    let (first, failures) = until_read(1000);
    redis.signal("STOP");
    let id = redis.server.id();
    std::thread::scope(|scope| {
        // It goes on once a poll has failed.
        scope.spawn(|| {
            while counts.failures.load(Relaxed) == failures {
                std::thread::yield_now();
            }
            let sent = Command::new("kill").args(["-CONT", &id.to_string()]).status();
            assert!(sent.expect("kill runs").success());
        });
        let (second, _) = until_read(2000);
        assert_eq!(totals(&second), totals(&first));
        assert_ne!(named(&second, 1), named(&first, 1));
        drop(redis);
        let other = Redis::recorded(&room.folder);
        let (third, _) = until_read(3000);
        assert_eq!(totals(&third), totals(&first));
        assert_ne!(named(&third, 1), named(&second, 1));
        drop(other);
    });
    let error = poller.poll(&At(4000)).expect_err("gone");
    assert!(error.contains("redis.sock: "), "{error}");
}

// PFC-id.2
#[test]
fn aggregates_are_refused_and_never_read() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let mut sonic = Sonic::new(settings(&redis, &["Ethernet0", "PortChannel0001"], Dating::Asked));
    let refused = sonic.survey().expect_err("refused");
    assert_eq!(
        refused,
        "PortChannel0001: an aggregate, expected its members: each counts for itself"
    );
    // Under the name of a port too.
    redis.put(2, &["HSET", "COUNTERS_PORT_NAME_MAP", "Ethernet4", "oid:0x60000000005a1"]);
    let ports = ["Ethernet4", "Ethernet8", "Ethernet12"];
    let sonic = Sonic::new(settings(&redis, &ports, Dating::Asked));
    let (mut poller, counts) = poller(sonic, place(&statement(Dating::Asked), true));
    let batch = poller.poll(&At(1000)).expect("read");
    assert!(totals(&batch).keys().all(|(interface, ..)| *interface == 9), "{batch:?}");
    assert_eq!(counts.absent[Absent::NoPort as usize].load(Relaxed), 32);
}

// PFC-id.1
#[test]
fn counters_that_two_ports_are_said_to_have_are_of_neither() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let (mut poller, counts) = polling(&redis, Dating::Asked);
    let first = poller.poll(&At(1000)).expect("read");
    redis.put(2, &["HSET", "COUNTERS_PORT_NAME_MAP", "Ethernet8", OBJECTS[1]]);
    let batch = poller.poll(&At(2000)).expect("read");
    assert!(totals(&batch).keys().all(|(interface, ..)| *interface == 1), "{batch:?}");
    assert_eq!(counts.absent[Absent::SharedObject as usize].load(Relaxed), 32);
    redis.put(2, &["HSET", "COUNTERS_PORT_NAME_MAP", "Ethernet8", OBJECTS[2]]);
    let batch = poller.poll(&At(3000)).expect("read");
    assert_eq!(totals(&batch).len(), 48);
    assert_eq!(named(&batch, 1), named(&first, 1));
    assert_ne!(named(&batch, 5), named(&first, 5));
}

// PFC-sem.2
#[test]
fn a_counter_that_was_gone_and_is_back_is_another_instance_and_no_other_is() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let (mut poller, _) = polling(&redis, Dating::Asked);
    let (key, field) = (format!("COUNTERS:{}", OBJECTS[0]), "SAI_PORT_STAT_PFC_3_RX_PKTS");
    let first = named(&poller.poll(&At(1000)).expect("read"), 1);
    redis.put(2, &["HDEL", &key, field]);
    assert_eq!(named(&poller.poll(&At(2000)).expect("read"), 1).len(), 15);
    redis.put(2, &["HSET", &key, field, "1000000"]);
    let back = named(&poller.poll(&At(3000)).expect("read"), 1);
    assert_eq!(back.len(), 16);
    assert_eq!(first.iter().zip(&back).filter(|(before, after)| before != after).count(), 1);
}

// PFC-op.1
#[test]
fn what_is_no_number_is_no_reading_and_takes_no_other_along() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let key = format!("COUNTERS:{}", OBJECTS[1]);
    let field = |index: u8| format!("SAI_PORT_STAT_PFC_{index}_RX_PKTS");
    for (index, value) in [(1, "N/A"), (2, "-1"), (3, "18446744073709551616"), (4, "+4"), (5, "")] {
        redis.put(2, &["HSET", &key, &field(index), value]);
    }
    redis.put(2, &["HSET", &key, &field(6), "18446744073709551615"]);
    redis.put(2, &["HDEL", &key, &field(7)]);
    let (mut poller, counts) = polling(&redis, Dating::Asked);
    let totals = totals(&poller.poll(&At(1000)).expect("read"));
    let of = |priority| totals.get(&(5, Direction::Received, priority)).copied();
    let expected = [Some(1400), None, None, None, None, None, Some(u64::MAX), None];
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(of), expected);
    assert_eq!(totals.len(), 48 - 6);
    let absent = |reason: Absent| counts.absent[reason as usize].load(Relaxed);
    assert_eq!((absent(Absent::NoNumber), absent(Absent::NoCounter)), (5, 1));
}

// PFC-op.1, PFC-sem.1
#[test]
fn counters_that_nobody_reads_or_that_are_cleared_on_reading_are_no_readings() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let (mut poller, counts) = polling(&redis, Dating::Asked);
    for (status, mode, reason) in [
        ("disable", "STATS_MODE_READ", Absent::Disabled),
        ("", "STATS_MODE_READ", Absent::Disabled),
        ("enable", "STATS_MODE_READ_AND_CLEAR", Absent::ClearedOnRead),
        ("enable", "STATS_MODE_BULK_READ_AND_CLEAR", Absent::ClearedOnRead),
    ] {
        redis.group(status, mode);
        let before = counts.absent[reason as usize].load(Relaxed);
        let batch = poller.poll(&At(1000)).expect("read");
        assert!(totals(&batch).is_empty(), "{status} {mode}");
        assert_eq!(counts.absent[reason as usize].load(Relaxed), before + 48, "{status} {mode}");
    }
    redis.group("enable", "STATS_MODE_READ");
    let first = poller.poll(&At(2000)).expect("read");
    assert_eq!(totals(&first).len(), 48);
    // While it was off nothing was read, so nothing was cleared; while they are cleared on reading
    // they are, whether or not that is over now.
    for (at, status, mode, same) in [
        (7100, "disable", "STATS_MODE_READ", true),
        (7400, "enable", "STATS_MODE_READ_AND_CLEAR", false),
        (7700, "disable", "STATS_MODE_READ_AND_CLEAR", false),
    ] {
        let before = named(&poller.poll(&At(at)).expect("read"), 1);
        redis.group(status, mode);
        assert!(totals(&poller.poll(&At(at + 100)).expect("read")).is_empty());
        redis.group("enable", "STATS_MODE_READ");
        let after = named(&poller.poll(&At(at + 200)).expect("read"), 1);
        assert_eq!(after[0] == before[0], same, "{status} {mode}");
    }
    redis.put(5, &["FLUSHDB"]);
    assert!(totals(&poller.poll(&At(9000)).expect("read")).is_empty());
}

// PFC-sem.2
#[test]
fn nothing_vouches_over_a_time_in_which_counters_were_cleared_on_reading() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let (mut poller, _) = polling(&redis, Dating::Asked);
    let mut name = |at: u64| named(&poller.poll(&At(at)).expect("read"), 5).first().copied();
    let mut time = 1000;
    for (status, mode) in [
        ("enable", "STATS_MODE_READ_AND_CLEAR"),
        // What is switched off may have cleared them before it was.
        ("disable", "STATS_MODE_READ_AND_CLEAR"),
    ] {
        let before = name(time);
        assert!(before.is_some());
        assert_eq!(name(time + 1), before, "{status}");
        redis.group(status, mode);
        assert_eq!(name(time + 1000), None, "{status}");
        redis.group("enable", "STATS_MODE_READ");
        // For as long as counters may be from before, none is vouched for: at the limit and behind
        // it.
        let names = [2000, 3000, 6000, 6001, 7000, 9000].map(|after| name(time + after));
        let others: std::collections::BTreeSet<_> = names.iter().chain([&before]).collect();
        assert_eq!(others.len(), 5, "{names:?}");
        assert!(names[3].is_some() && names[3] == names[4] && names[3] == names[5], "{names:?}");
        time += 10_000;
    }
}

// PFC-op.1
#[test]
fn ports_that_are_followed_keep_their_room_and_all_others_are_counted() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    redis.put(2, &["HDEL", "COUNTERS_PORT_NAME_MAP", "Ethernet0"]);
    let settings = SonicSettings { ports_max: 2, ..settings(&redis, &[], Dating::Asked) };
    let all = Place { ports_max: 2, ..place(&statement(Dating::Asked), true) };
    let (mut poller, counts) = poller(Sonic::new(settings), all);
    let mut heard = |at: u64| {
        let before = counts.absent[Absent::NoRoom as usize].load(Relaxed);
        let batch = poller.poll(&At(at)).expect("read");
        let interfaces: std::collections::BTreeSet<_> =
            totals(&batch).into_keys().map(|(interface, ..)| interface).collect();
        let beyond = counts.absent[Absent::NoRoom as usize].load(Relaxed) - before;
        (interfaces.into_iter().collect::<Vec<_>>(), beyond, counts.ports.load(Relaxed))
    };
    assert_eq!(heard(1000), (vec![5, 9], 0, 2));
    // Their names sort before those that are followed.
    for (name, object) in [
        ("Ethernet0", OBJECTS[0]),
        ("Ethernet12", "oid:0x10000000000a1"),
        ("Ethernet16", "oid:0x10000000000a2"),
    ] {
        redis.put(2, &["HSET", "COUNTERS_PORT_NAME_MAP", name, object]);
    }
    assert_eq!(heard(2000), (vec![5, 9], 48, 5));
    redis.put(2, &["HDEL", "COUNTERS_PORT_NAME_MAP", "Ethernet4"]);
    assert_eq!(heard(3000), (vec![1, 9], 32, 4));
    redis.put(2, &["HSET", "COUNTERS_PORT_NAME_MAP", "Ethernet4", OBJECTS[1]]);
    assert_eq!(heard(4000), (vec![1, 9], 48, 5));
}

// PFC-id.1
#[test]
fn a_port_has_the_number_that_sonic_gives_it_and_other_names_have_none() {
    assert_eq!(interface_number("Ethernet0"), Some(1));
    assert_eq!(interface_number("Ethernet508"), Some(509));
    for name in ["Ethernet", "Ethernet-Rec0", "Ethernet+4", "PortChannel1", "Ethernet4294967295"] {
        assert_eq!(interface_number(name), None, "{name}");
    }
}
