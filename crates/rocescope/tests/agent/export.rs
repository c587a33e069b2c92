//! Readings of PFC counters on their way out: what a session sends of what was polled, and the
//! whole agent between a database and a collector.

use std::collections::BTreeMap;

use observe::pfc::instance::InstanceId;
use observe::pfc::qualify::Qualified;
use observe::pfc::{Direction, Priority, Reading, Scope};
use rocescope::pfc::Statement;
use rocescope::pfc::poller::Batch;
use rustix::time::{ClockId, clock_gettime};

use super::control::ctl;
use super::pfc::place;
use super::program::{Room, Running};
use super::sonic::{OBJECTS, Redis};
use super::support::{Collector, DOMAIN, at, begun, settings};

fn both() -> [Option<Qualified>; 2] {
    place(&Statement { width: 64, stated: &[] }, true).qualified
}

fn reading(direction: Direction, priority: u8, time_ms: u64, total: u64) -> Reading {
    let priority = Priority::new(priority).expect("0 to 7");
    let scope = Scope { domain: DOMAIN, point: 9, interface: 4, direction, priority };
    Reading { scope, time_ms, total }
}

/// Readings of a poll of both directions.
fn batch(poll: u64, totals: [u64; 2]) -> Batch {
    let of = |direction, total| vec![(poll, (reading(direction, 3, 1000 * poll, total), None))];
    let [received, transmitted] = totals;
    Batch {
        poll,
        readings: [of(Direction::Received, received), of(Direction::Transmitted, transmitted)],
    }
}

/// Readings as they were heard: direction, observation time and total.
fn heard(collector: &mut Collector) -> Vec<(Direction, u64, u64)> {
    let all = std::mem::take(&mut collector.readings).into_iter();
    all.map(|(reading, _)| (reading.scope.direction, reading.time_ms, reading.total)).collect()
}

// PFC-rec.1, PFC-rec.2, PFC-op.1
#[test]
fn each_round_sends_what_was_read_since_the_last_one_and_nothing_twice() {
    let mut session = begun(settings());
    let mut collector = Collector::new();
    let both = both();
    assert!(session.wants_readings(at(0)));
    session.readings(at(0), 0, &both, &Batch::default());
    // Nothing was polled yet, so it is asked for again at once.
    assert!(session.wants_readings(at(1)));
    session.readings(at(1), 0, &both, &batch(1, [10, 20]));
    collector.listen(&mut session, at(1));
    let (rx, tx) = (Direction::Received, Direction::Transmitted);
    assert_eq!(heard(&mut collector), [(rx, 1000, 10), (tx, 1000, 20)]);
    assert!(!session.wants_readings(at(1000)));
    assert!(session.wants_readings(at(1001)));
    // The same poll once more: no new reading, no record.
    session.readings(at(1001), 0, &both, &batch(1, [10, 20]));
    collector.listen(&mut session, at(1001));
    assert_eq!(heard(&mut collector), []);
    // One counter was read anew, the other was not.
    let mut half = batch(2, [10, 25]);
    half.readings[0] = batch(1, [10, 0]).readings[0].clone();
    session.readings(at(1001), 0, &both, &half);
    collector.listen(&mut session, at(1001));
    assert_eq!(heard(&mut collector), [(tx, 2000, 25)]);
    assert_eq!(session.counts().readings, 3);
}

// PFC-op.1
#[test]
fn what_had_no_room_is_skipped_for_what_was_read_later() {
    let mut session = begun(settings());
    let mut collector = Collector::new();
    session.readings(at(0), 0, &both(), &batch(1, [10, 20]));
    // The transport had no room for a whole interval.
    session.readings(at(1000), 0, &both(), &batch(2, [11, 21]));
    collector.listen(&mut session, at(1000));
    let totals: Vec<_> = heard(&mut collector).into_iter().map(|(.., total)| total).collect();
    assert_eq!(totals, [11, 21]);
    let counts = session.counts();
    assert_eq!((counts.readings, counts.skipped_readings), (2, 2));
}

// PFC-rec.1, PFC-exp.1
#[test]
fn an_instance_is_sent_where_it_is_asked_for_and_known() {
    let id = InstanceId::new(77).expect("not 0");
    let with = |id| {
        let named = (1, (reading(Direction::Received, 3, 1000, 10), id));
        Batch { poll: 1, readings: [vec![named], Vec::new()] }
    };
    for (extended, given, expected) in
        [(true, Some(id), Some(77)), (true, None, None), (false, None, None)]
    {
        let mut session =
            begun(rocescope::agent::session::SessionSettings { extended, ..settings() });
        let mut collector = Collector::new();
        session.readings(at(0), 0, &both(), &with(given));
        let mut octets = Vec::new();
        while session.transmit(at(0), &mut octets).expect("octets") {}
        collector.receive(&octets, 0);
        let heard = collector.readings.iter().map(|(_, id)| id.map(InstanceId::get));
        assert_eq!(heard.collect::<Vec<_>>(), [expected]);
        // The type record is there only where the element is used.
        let described = |name: &str| octets.windows(name.len()).any(|all| all == name.as_bytes());
        assert_eq!(described("pfcCounterInstanceId"), extended);
        assert!(described("pfcControlFrameTotalCount"));
    }
}

/// The whole way: Redis, agent, TLS.
// PFC-id.1, PFC-id.3, PFC-rec.1, PFC-rec.2, PFC-exp.2, PFC-sem.2, PFC-sec.1
#[test]
fn an_agent_exports_what_stands_in_the_database_of_a_switch() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let server = room.server();
    let (config, text) = room.without_frames(&server);
    let pfc = "[pfc]\npoll_interval_ms = 50\ninstance_ids = true\n\
               [[pfc.source]]\nkind = \"sonic\"\nredis = \"./redis.sock\"\ntime = \"asked\"\n\
               resets = \"shown\"\nattest = [\"before-processing\", \"confirmed-emission\", \
               \"every-frame\", \"each-set-bit\", \"only-valid\", \"time-of-reading\", \
               \"starts-at-zero\"]\n";
    std::fs::write(&config, format!("{text}{pfc}")).expect("written");
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    connection.until(|collector| collector.readings.len() >= 48);
    let mut totals = BTreeMap::new();
    let mut ids = BTreeMap::new();
    for (reading, id) in connection.collector.readings.drain(..48) {
        let Scope { domain, point, interface, direction, priority } = reading.scope;
        assert_eq!((domain, point), (7, 9));
        let at = (interface, direction, priority.get());
        assert_eq!(totals.insert(at, reading.total), None, "twice: {at:?}");
        ids.insert(at, (id.expect("an instance"), reading.time_ms));
    }
    for (interface, base) in [(1, 200), (5, 400), (9, 800)] {
        for priority in 0..8 {
            let value = base + u64::from(priority) + if priority == 0 { 1000 } else { 0 };
            assert_eq!(totals[&(interface, Direction::Received, priority)], value);
            assert_eq!(totals[&(interface, Direction::Transmitted, priority)], value + 10);
        }
    }
    // A counter goes on, and is still the same one.
    let key = "COUNTERS:oid:0x1000000000013";
    redis.put(2, &["HSET", key, "SAI_PORT_STAT_PFC_3_RX_PKTS", "1000403"]);
    let changed = (5, Direction::Received, 3);
    let is = |reading: &Reading| {
        let Scope { interface, direction, priority, .. } = reading.scope;
        (interface, direction, priority.get()) == changed && reading.total == 1_000_403
    };
    connection.until(|collector| collector.readings.iter().any(|(reading, _)| is(reading)));
    let mut later = connection.collector.readings.iter();
    let (reading, id) = later.find(|(reading, _)| is(reading)).expect("there");
    let (before, time_ms) = ids[&changed];
    assert_eq!(*id, Some(before));
    assert!(reading.time_ms > time_ms);
    // What is no number is told with its name.
    let before = ctl(&room, &["status"]).expect("an answer");
    let nothing = serde_json::json!([{
        "source": "pfc.source[0]", "failing": null, "notShown": 0, "withoutReading": [],
    }]);
    assert_eq!(before[1]["pfcSources"], nothing);
    redis.put(2, &["HSET", key, "SAI_PORT_STAT_PFC_6_TX_PKTS", "N/A"]);
    let status = loop {
        let status = ctl(&room, &["status"]).expect("an answer");
        if status[1]["pfcCountersMissing"] == 1 {
            break status;
        }
    };
    let missing = &status[1]["pfcSources"][0]["withoutReading"];
    assert_eq!(missing.as_array().map(Vec::len), Some(1), "{missing}");
    assert_eq!(missing[0]["port"], "Ethernet4");
    assert_eq!(
        (&missing[0]["direction"], &missing[0]["pfcPriority"]),
        (&"transmitted".into(), &6.into())
    );
    assert_eq!(missing[0]["reason"], "no-number");
    assert_eq!(status[1]["pfcPorts"], 3);
    assert!(status[1]["pfcPolls"].as_u64() > Some(1));
    assert!(status[0]["pfcReadings"].as_u64() >= Some(96));
    agent.signal("TERM");
    connection.heard_out();
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    let line = "pfc.source[0]: no reading of transmitted priority 6 of Ethernet4: what stands there is \
                no number of 64 bits";
    assert_eq!(said.matches(line).count(), 1, "{said}");
}

// PFC-id.2, PFC-op.1
#[test]
fn an_agent_refuses_an_aggregate_and_waits_for_a_database_that_is_not_there() {
    let room = Room::new();
    let server = room.server();
    let (config, text) = room.without_frames(&server);
    let pfc = "[pfc]\npoll_interval_ms = 20\nstale_ms_max = 50\n\
               [[pfc.source]]\nkind = \"sonic\"\nredis = \"./redis.sock\"\ntime = \"asked\"\n\
               attest = [\"before-processing\", \"confirmed-emission\", \"every-frame\", \
               \"each-set-bit\", \"only-valid\", \"time-of-reading\", \"starts-at-zero\"]\n";
    let with =
        |ports: &str| std::fs::write(&config, format!("{text}{pfc}{ports}")).expect("written");
    with("");
    let agent = Running::agent(&config);
    let mut connection = server.accept();
    let number = |name: &str| ctl(&room, &["status"]).expect("an answer")[1][name].as_u64();
    while number("pfcPollFailures") < Some(1) {}
    let redis = Redis::recorded(&room.folder);
    connection.until(|collector| collector.readings.len() >= 48);
    assert!(connection.collector.readings.iter().all(|(_, id)| id.is_none()));
    // Nobody reads the counters for the database any more, and then somebody does again.
    let polls = || number("pfcPolls");
    for status in ["enable", "disable", "enable"] {
        redis.group(status, "STATS_MODE_READ");
        let begun = polls().expect("polls");
        // The one that was under way, and one from its beginning to its end.
        while polls() < Some(begun + 8) {}
    }
    agent.signal("TERM");
    connection.heard_out();
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("pfc.source[0]: no readings: "), "{said}");
    assert!(said.contains("pfc.source[0]: answers"), "{said}");
    let off = "pfc.source[0]: no readings: nobody says that the counters are being read: their \
               polling is not enabled (48 counters)";
    // A database that was being filled could have counters without polling before.
    assert!(said.matches(off).count() <= 2, "once, not at every poll: {said}");
    let after = said.rsplit_once(off).expect("told").1;
    assert_eq!(after.matches("pfc.source[0]: has readings again").count(), 1, "{said}");
    with("[[pfc.source.port]]\nname = \"PortChannel0002\"\ninterface = 1002\n");
    let (code, said) = Running::agent(&config).ended();
    assert_eq!(code, Some(1), "{said}");
    let last = said.lines().last().expect("a line");
    assert!(last.contains("pfc.source[0]: PortChannel0002: an aggregate"), "{said}");
    // All ports in two sources: the numbers are equal.
    with(pfc.split_once("[[").expect("a source").1.replacen("pfc", "[[pfc", 1).as_str());
    let (code, said) = Running::agent(&config).ended();
    assert_eq!(code, Some(1), "{said}");
    let twice = "pfc.source[1]: Ethernet0 is interface 1, received, at observation point 9, as is \
                 Ethernet0 of pfc.source[0], expected one of them";
    assert!(said.lines().last().expect("a line").contains(twice), "{said}");
    drop(redis);
}

/// Counters that are read for the database less often than it is asked.
// PFC-op.1
#[test]
fn each_outage_of_a_switch_is_told_and_so_is_its_end() {
    let room = Room::new();
    let redis = Redis::recorded(&room.folder);
    let server = room.server();
    let (config, text) = room.without_frames(&server);
    let pfc = "[pfc]\npoll_interval_ms = 20\nstale_ms_max = 400\n\
               [[pfc.source]]\nkind = \"sonic\"\nredis = \"./redis.sock\"\n\
               attest = [\"before-processing\", \"confirmed-emission\", \"every-frame\", \
               \"each-set-bit\", \"only-valid\", \"starts-at-zero\"]\n";
    std::fs::write(&config, format!("{text}{pfc}")).expect("written");
    let agent = Running::agent(&config);
    let connection = server.accept();
    let status = || ctl(&room, &["status"]).expect("an answer").remove(1);
    let number = |name: &str| status()[name].as_u64().expect("a number");
    let feed = |polls: u64| {
        let end = number("pfcPolls") + polls;
        let mut next = 0;
        loop {
            let now = number("pfcPolls");
            if now >= next {
                let time = clock_gettime(ClockId::Monotonic);
                let ms = u64::try_from(time.tv_sec * 1000 + time.tv_nsec / 1_000_000);
                OBJECTS.iter().for_each(|object| redis.stamp(object, ms.expect("later than 1970")));
                // Polls in between find nothing new.
                next = now + 3;
            }
            if now >= end {
                break;
            }
        }
    };
    for _ in 0..3 {
        feed(60);
        assert_eq!(number("pfcCountersMissing"), 0);
        while number("pfcCountersMissing") < 48 {}
        let missing = status()["pfcSources"][0]["withoutReading"][47].clone();
        assert_eq!((&missing["port"], &missing["reason"]), (&"Ethernet8".into(), &"stale".into()));
    }
    agent.signal("TERM");
    connection.heard_out();
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
    let stale = "pfc.source[0]: no readings: the counter has not been read anew (48 counters)";
    assert_eq!(said.matches(stale).count(), 3, "{said}");
    assert_eq!(said.matches("pfc.source[0]: has readings again").count(), 2, "{said}");
}
