//! `[queue]` of a device file: where measurements of queues come from.

use std::path::PathBuf;
use std::time::Duration;

use observe::pfc::Priority;
use observe::queue::Priorities;
use rocescope::config::{Pace, QueueKind, QueueLimits};
use rocescope::pfc::RedisAddress;

use super::{device, errors, range};

fn source(keys: &str) -> String {
    format!("[queue]\n[[queue.source]]\nname = \"asic\"\n{keys}\n")
}

#[test]
fn what_a_file_says_is_what_is_measured() {
    let read = device(
        "[queue]\nsilent_timeout_s = 5\n\
         [[queue.source]]\nname = \"a\"\nevents_socket = \"q.sock\"\nsocket_group = \"daemon\"\n\
         interval_ms = 7\nqueues_max = 8\nedges_max = 9\n\
         [[queue.source]]\nname = \"b\"\nevents_file = \"e.jsonl\"\npace = \"fast\"\n\
         [[queue.source]]\nname = \"c\"\nredis = \"127.0.0.1:6379\"\npoll_interval_ms = 500\n\
         [[queue.source.map]]\nport = \"Ethernet0\"\nqueue = 4\npriorities = [3, 5]\n",
    );
    let queue = read.queue.as_ref().expect("a section");
    assert_eq!(queue.limits, QueueLimits { silent_timeout_s: 5, ..QueueLimits::default() });
    assert_eq!(queue.queues_max(), 8 + 2 * 4096);
    let [a, b, c] = &queue.sources[..] else { panic!("{:?}", queue.sources) };
    let QueueKind::Socket { socket, group } = &a.kind else { panic!("{a:?}") };
    assert_eq!(socket.path, PathBuf::from("etc/q.sock"));
    assert_eq!(group.as_deref(), Some("daemon"));
    assert_eq!((a.interval, a.queues_max, a.edges_max), (Duration::from_millis(7), 8, 9));
    let QueueKind::File { pace, .. } = b.kind else { panic!("{b:?}") };
    assert_eq!((pace, b.interval), (Pace::Fast, Duration::from_millis(100)));
    assert_eq!(read.queue_files().count(), 1);
    let QueueKind::Sonic { redis, poll_interval, maps } = &c.kind else { panic!("{c:?}") };
    assert_eq!(*redis, RedisAddress::Port("127.0.0.1:6379".parse().expect("an address")));
    assert_eq!((*poll_interval, c.interval), (Duration::from_millis(500), Duration::from_secs(10)));
    assert_eq!((maps[0].port.as_deref(), maps[0].queue), (Some("Ethernet0"), 4));
    let both = [3, 5].map(|n| Priority::new(n).expect("below 8"));
    assert_eq!(Some(maps[0].priorities), Priorities::new(both));
    assert_eq!(device("[observation]\ndomain = 1").queue, None);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let socket = "events_socket = \"q\"\n";
    let redis = "redis = \"/r\"\n";
    for (keys, expected) in [
        (String::new(), "none of events_socket, events_file, redis, expected one of them"),
        (format!("{socket}{redis}"), "events_socket and redis of events_socket"),
        (format!("{socket}pace = \"fast\""), "expected only beside events_file"),
        (format!("{redis}socket_group = \"x\""), "expected only beside events_socket"),
        (format!("{socket}poll_interval_ms = 100"), "expected only beside redis"),
        (format!("{socket}[[queue.source.map]]\nqueue = 1\npriorities = [1]"), "only beside redis"),
        (format!("{redis}interval_ms = 1000"), "a sample must come sooner"),
        ("redis = \"192.0.2.1:6379\"".into(), "a loopback address"),
        (format!("{redis}[[queue.source.map]]\nqueue = 1\npriorities = [8]"), "8, expected 0 to 7"),
        (format!("{redis}[[queue.source.map]]\nqueue = 1\npriorities = []"), "at least one"),
        (format!("{redis}[[queue.source.map]]\npriorities = [1]"), "missing, expected the index"),
        (
            format!("{socket}[[queue.source]]\nname = \"asic\"\nevents_file = \"f\""),
            "\"asic\", expected each name once",
        ),
    ] {
        let errors = errors(&source(&keys));
        assert!(errors.iter().any(|error| error.contains(expected)), "{keys}: {errors:?}");
    }
}

// SEQ-10.3
#[test]
fn every_bound_has_its_range() {
    for limit in QueueLimits::TABLE {
        let text = format!("[queue]\n{} = @\n", limit.name);
        range(&text, &format!("queue.{}", limit.name), limit.min, limit.max);
    }
    for (key, min, max) in
        [("interval_ms", 1, 86_400_000), ("queues_max", 1, 1_048_576), ("edges_max", 1, 1_048_576)]
    {
        let text = source(&format!("events_socket = \"q\"\n{key} = @"));
        range(&text, &format!("queue.source[0].{key}"), min, max);
    }
}
