//! Queues of a SONiC switch: a real Redis server, the recorded database, and made values of what a
//! PFC watchdog fills in.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use observe::pfc::Priority;
use observe::queue::meter::Settings;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Priorities, Reason};
use rocescope::config::QueueMap;
use rocescope::pfc::redis::Address;
use rocescope::queue::sonic::{Found, SonicQueues, SonicQueuesSettings};

use super::program::Room;
use super::sonic::Redis;

type Fresh = Box<dyn FnMut() -> EpochId>;

/// Ethernet0's queues with these indices.
const QUEUES: [(u8, &str); 3] =
    [(3, "oid:0x1500000000035a"), (4, "oid:0x1500000000035b"), (5, "oid:0x1500000000035c")];
const MS: u64 = 1_000_000;

/// A switch whose watchdog looks after queues 3 and 4 of Ethernet0, every 100 ms.
fn switch(room: &Room) -> Redis {
    let redis = Redis::recorded(&room.folder);
    let group = "FLEX_COUNTER_GROUP_TABLE:PFC_WD";
    redis.put(5, &["HSET", group, "FLEX_COUNTER_STATUS", "enable", "POLL_INTERVAL", "100"]);
    // Not the identity: what priority 3 is mapped to is queue 4.
    redis.put(4, &["HSET", "PORT_QOS_MAP|Ethernet0", "pfc_to_queue_map", "AZURE"]);
    redis.put(
        4,
        &["HSET", "MAP_PFC_PRIORITY_TO_QUEUE|AZURE", "3", "4", "4", "3", "6", "5", "7", "5"],
    );
    for (_, object) in QUEUES {
        queue(&redis, object, "0", "false");
    }
    redis
}

fn queue(redis: &Redis, object: &str, octets: &str, paused: &str) {
    let words = [
        "HSET",
        &format!("COUNTERS:{object}"),
        "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES",
        octets,
        "SAI_QUEUE_ATTR_PAUSE_STATUS",
        paused,
        "PFC_WD_STATUS",
        "operational",
    ];
    redis.put(2, &words);
}

/// The watchdog has gone through its queues, so long ago.
fn looked(redis: &Redis, ago: Duration) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("later");
    let stamp = now.checked_sub(ago).expect("later").as_micros().to_string();
    redis.put(2, &["HSET", "TIMESTAMP", "PFCWD_POLL_TIMESTAMP_last", &stamp]);
}

fn queues(redis: &Redis, maps: Vec<QueueMap>) -> SonicQueues<Fresh> {
    at_most(64, redis, maps)
}

fn at_most(queues_max: usize, redis: &Redis, maps: Vec<QueueMap>) -> SonicQueues<Fresh> {
    let settings = SonicQueuesSettings {
        address: Address::Socket(redis.socket.clone()),
        maps,
        within: Duration::from_secs(30),
        stale_ms_max: 10_000,
    };
    let mut made = 0;
    let fresh: Fresh = Box::new(move || {
        made += 1;
        EpochId::random([made; 16])
    });
    // Rounds are given as long as a machine that is busy may take.
    let meter = Settings { interval_ns: 100_000 * MS, queues_max, ..Settings::default() };
    SonicQueues::new(settings, meter, fresh)
}

/// Polls at a time of the test's clock, in milliseconds.
fn at(queues: &mut SonicQueues<Fresh>, ms: u64) -> Found {
    let clock = Cell::new(ms * MS);
    let now = || clock.replace(clock.get() + 1);
    queues.poll(&now).expect("read")
}

fn of(rows: &[Arc<Row>], queue: &str) -> Vec<Arc<Row>> {
    rows.iter().filter(|row| *row.place.queue == *queue).cloned().collect()
}

// QUE-id.2, QUE-def.2, QUE-err.1, QUE-err.2
#[test]
fn queues_are_measured_under_the_priorities_that_the_switch_maps_to_them() {
    let room = Room::new();
    let redis = switch(&room);
    let mut queues = queues(&redis, Vec::new());
    queue(&redis, QUEUES[1].1, "4096", "true");
    // Rounds of 5 s, so that a machine that is busy has fresh values all the same.
    redis.put(5, &["HSET", "FLEX_COUNTER_GROUP_TABLE:PFC_WD", "POLL_INTERVAL", "5000"]);
    for n in 0..=12 {
        if n == 6 {
            queue(&redis, QUEUES[1].1, "4096", "false");
            queue(&redis, QUEUES[0].1, "0", "true");
        }
        looked(&redis, Duration::ZERO);
        let found = at(&mut queues, n * 10_000);
        // Queue 5 is that of two priorities: which is next, nobody says.
        assert_eq!(found, Found { samples: 2, absent: 1 });
    }
    let rows = queues.rows();
    let [three, four, five] = ["3", "4", "5"].map(|queue| of(&rows, queue));
    let priority = |n| Priorities::one(Priority::new(n).expect("below 8"));
    assert_eq!((three[0].priorities, four[0].priorities), (priority(4), priority(3)));
    let known = |row: &Row| match row.measurement {
        Measurement::Known(known) => known,
        Measurement::Unknown(why) => panic!("{why:?}"),
    };
    // Paused without traffic: nothing waits.
    let (three, four) = (known(&three[0]), known(&four[0]));
    assert_eq!((three.gated_ns, three.backlog_ns), (0, 0));
    // To a nanosecond of the asking itself.
    let near = |found: u64, ms: u64| found.abs_diff(ms * MS) < 100;
    assert!(near(four.gated_ns, 60_000) && near(four.backlog_ns, 100_000), "{four:?}");
    let Known { method: Method::Samples { period_ns }, error_ns, .. } = four else {
        panic!("{four:?}")
    };
    // Asked every 10 s, and what was found can be from a whole round before.
    assert!((15_000 * MS..25_000 * MS).contains(&period_ns), "{period_ns}");
    assert_eq!(error_ns, 100_000 * MS, "nothing is taken for granted between samples");
    assert_eq!(five[0].measurement, Measurement::Unknown(Reason::Unavailable));
}

#[test]
fn a_queue_that_is_measured_keeps_its_room_whichever_come() {
    let room = Room::new();
    let redis = switch(&room);
    redis.put(2, &["DEL", "COUNTERS_QUEUE_NAME_MAP"]);
    let put = |name: &str, object: &str| {
        redis.put(2, &["HSET", "COUNTERS_QUEUE_NAME_MAP", name, object]);
    };
    redis.put(5, &["HSET", "FLEX_COUNTER_GROUP_TABLE:PFC_WD", "POLL_INTERVAL", "5000"]);
    put("Ethernet0:3", QUEUES[0].1);
    let mut queues = at_most(1, &redis, Vec::new());
    for ms in [0, 1000] {
        looked(&redis, Duration::ZERO);
        assert_eq!(at(&mut queues, ms), Found { samples: 1, absent: 0 });
        let names: Vec<_> = queues.places().map(|place| place.queue.to_string()).collect();
        assert_eq!(names, ["3"]);
        // Their names sort before it.
        put("Ethernet0:1", QUEUES[1].1);
        put("Ethernet0:2", QUEUES[2].1);
    }
}

// QUE-id.2, QUE-def.6, QUE-id.1
#[test]
fn what_is_configured_stands_before_what_the_switch_says_and_a_change_is_another_epoch() {
    let room = Room::new();
    let redis = switch(&room);
    let priority = |n| Priorities::one(Priority::new(n).expect("below 8"));
    let entry = |port: Option<&str>, n| QueueMap {
        port: port.map(str::to_owned),
        queue: 3,
        priorities: priority(n),
    };
    let maps = vec![entry(None, 1), entry(Some("Ethernet0"), 2)];
    let mut queues = queues(&redis, maps);
    at(&mut queues, 0);
    // Another port has no map of its own, and what is said of all ports holds for it.
    let interfaces: Vec<_> = queues.places().map(|place| place.to_string()).collect();
    assert!(
        interfaces.contains(&"interface \"Ethernet4\", queue \"3\"".to_owned()),
        "{interfaces:?}"
    );
    assert!(!interfaces.iter().any(|at| at.contains("Ethernet4") && !at.ends_with("\"3\"")));
    redis.put(4, &["DEL", "MAP_PFC_PRIORITY_TO_QUEUE|AZURE"]);
    redis.put(4, &["HSET", "MAP_PFC_PRIORITY_TO_QUEUE|AZURE", "0", "4"]);
    at(&mut queues, 1000);
    redis.put(6, &["HSET", "WARM_RESTART_TABLE|syncd", "restore_count", "1"]);
    at(&mut queues, 2000);
    at(&mut queues, 300_000);
    let rows = queues.rows();
    let own = |queue: &str| {
        let rows = of(&rows, queue);
        rows.into_iter().filter(|row| *row.place.interface == *"Ethernet0").collect::<Vec<_>>()
    };
    let (three, four) = (own("3"), own("4"));
    assert!(three.iter().all(|row| row.priorities == priority(2)));
    assert_eq!(four[0].priorities, priority(3));
    assert!(four[1..].iter().all(|row| row.priorities == priority(0)));
    let epochs = |rows: &[Arc<Row>]| {
        let mut all: Vec<_> = rows.iter().map(|row| row.epoch).collect();
        all.dedup();
        all.len()
    };
    // The restart is one for all, the mapping one for queue 4 only.
    assert_eq!((epochs(&three), epochs(&four)), (2, 3));
    assert!(rows.iter().all(|row| matches!(row.measurement, Measurement::Unknown(_))));
}

// QUE-err.3, QUE-def.4
#[test]
fn what_is_old_or_missing_or_overridden_is_no_sample() {
    let room = Room::new();
    let redis = switch(&room);
    let mut queues = queues(&redis, Vec::new());
    let group = "FLEX_COUNTER_GROUP_TABLE:PFC_WD";
    redis.put(5, &["HSET", group, "POLL_INTERVAL", "60000"]);
    let mut ms = 0;
    let mut samples = |act: &dyn Fn()| {
        ms += 1000;
        looked(&redis, Duration::ZERO);
        act();
        at(&mut queues, ms).samples
    };
    let set = |field: &str, value: &str| {
        redis.put(2, &["HSET", &format!("COUNTERS:{}", QUEUES[0].1), field, value]);
    };
    assert_eq!(samples(&|| ()), 2);
    // The time stamp is the old one, of another clock, too old, or not there.
    let stamp = "PFCWD_POLL_TIMESTAMP_last";
    redis.put(2, &["HSET", "TIMESTAMP", stamp, "1"]);
    assert_eq!(samples(&|| looked(&redis, Duration::from_secs(11))), 0);
    assert_eq!(samples(&|| redis.put(2, &["HSET", "TIMESTAMP", stamp, "99999999999999999"])), 0);
    assert_eq!(samples(&|| redis.put(2, &["HDEL", "TIMESTAMP", stamp])), 0);
    assert_eq!(samples(&|| ()), 2);
    let fixed = |samples: &mut dyn FnMut(&dyn Fn()) -> u64| {
        let same = || redis.put(2, &["HSET", "TIMESTAMP", stamp, "7"]);
        samples(&same)
    };
    assert_eq!(fixed(&mut samples), 0);
    // Nobody looks, or nobody says how often.
    assert_eq!(samples(&|| redis.put(5, &["HSET", group, "FLEX_COUNTER_STATUS", "disable"])), 0);
    redis.put(5, &["HSET", group, "FLEX_COUNTER_STATUS", "enable"]);
    assert_eq!(samples(&|| redis.put(5, &["HDEL", group, "POLL_INTERVAL"])), 0);
    redis.put(5, &["HSET", group, "POLL_INTERVAL", "60000"]);
    // Of one queue alone: a watchdog that has taken it in hand, and fields that say nothing.
    for (field, value, good) in [
        ("PFC_WD_STATUS", "stormed", "operational"),
        ("SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", "N/A", "0"),
        ("SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", "-1", "0"),
        ("SAI_QUEUE_ATTR_PAUSE_STATUS", "", "true"),
        ("SAI_QUEUE_ATTR_PAUSE_STATUS", "1", "true"),
    ] {
        assert_eq!(samples(&|| set(field, value)), 1, "{field} {value}");
        assert_eq!(samples(&|| set(field, good)), 2, "{field} {good}");
    }
    redis.put(2, &["HDEL", &format!("COUNTERS:{}", QUEUES[0].1), "SAI_QUEUE_ATTR_PAUSE_STATUS"]);
    assert_eq!(samples(&|| ()), 1);
}

// QUE-id.4, QUE-err.3
#[test]
fn a_database_that_is_gone_leaves_unknown_intervals_and_no_zero() {
    let room = Room::new();
    let redis = switch(&room);
    let mut queues = queues(&redis, Vec::new());
    looked(&redis, Duration::ZERO);
    at(&mut queues, 0);
    drop(redis);
    let error = queues.poll(&|| 150_000 * MS).expect_err("gone");
    assert!(error.contains("redis.sock: "), "{error}");
    _ = queues.poll(&|| 350_000 * MS);
    let rows = queues.rows();
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| matches!(row.measurement, Measurement::Unknown(_))), "{rows:?}");
}

// QUE-def.5
#[test]
fn a_switch_is_only_read() {
    let room = Room::new();
    let redis = switch(&room);
    let changes = || {
        let said = redis.info("persistence");
        let of = |line: &str| line.strip_prefix("rdb_changes_since_last_save:").map(str::to_owned);
        said.lines().find_map(of).expect("a number")
    };
    redis.put(0, &["CONFIG", "RESETSTAT"]);
    let before = changes();
    let mut queues = queues(&redis, Vec::new());
    for n in 0..3 {
        at(&mut queues, n * 1000);
    }
    assert_eq!(changes(), before);
    let said = redis.info("commandstats");
    let mut asked: Vec<_> = said
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'))
        .map(|(command, _)| command)
        .collect();
    asked.sort_unstable();
    // The reset itself is one.
    let reads = ["config|resetstat", "hget", "hgetall", "hmget", "info", "select", "time"];
    assert_eq!(asked, reads);
}
