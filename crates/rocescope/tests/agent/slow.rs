//! A hundred subscribers through the program, two of whom stop reading: the others get every
//! interval in time, and what is kept for the two is bounded.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use russh::keys::{PrivateKey, load_secret_key};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;

use super::client::{Https, Netconf, Source};
use super::program::{HANGS, ROCESCOPE, Room, Running, waited};
use super::restconf::{free_port, sha256};
use super::ssh::keygen;

/// Of each way in, beside the one that stops.
const READERS: usize = 49;
const QUEUES: usize = 256;
/// Between two intervals.
const PACE: Duration = Duration::from_millis(100);
const INTERVALS: u64 = 100;
/// From the end of an interval until everybody was told of it. A machine that does other things too
/// is slow; one reader that held up the others would cost them `answer_timeout_s`.
const IN_TIME: Duration = Duration::from_millis(1500);
/// Octets that wait for a subscriber.
const WAITING_MAX: u64 = 1 << 20;

fn config(room: &Room, ports: [u16; 2]) {
    let text = format!(
        "[observation]\ndomain = 1\n[[queue.source]]\nname = \"asic\"\nevents_socket = \"q.sock\"\n\
         interval_ms = 1\n[manage]\nanswer_timeout_s = 2\n\
         subscription_octets_max = {WAITING_MAX}\n\
         [manage.restconf]\nlisten = \"127.0.0.1:{}\"\ncertificate = \"pki/collector.pem\"\n\
         key = \"pki/collector.key\"\n\
         [manage.netconf]\nlisten = \"127.0.0.1:{}\"\nhost_key = \"host\"\n\
         [[manage.login]]\nuser = \"alice\"\ntoken_sha256 = \"{}\"\n\
         [[manage.login]]\nuser = \"alice\"\nssh_keys = \"user.pub\"\n\
         [[manage.rules]]\nname = \"all\"\ngroups = [\"*\"]\nrule = [{{ action = \"permit\" }}]\n",
        ports[0],
        ports[1],
        sha256("alice")
    );
    fs::write(room.path("agent.toml"), text).expect("written");
}

/// Memory of a process, in octets.
fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// A connection of which little waits on this side.
async fn small(port: u16) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    socket.connect((Ipv4Addr::LOCALHOST, port).into()).await
}

/// The number of the interval that a notification tells of.
fn interval(message: &str) -> Option<u64> {
    let change = message.find("push-change-update")?;
    let rest = message.get(change..)?.split_once("interval-id").map(|(_, rest)| rest)?;
    let digits = rest.trim_start_matches(['"', ':', '>']);
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What a reader has to say: whose word it is, the interval, and when it came.
type Word = (usize, u64, Instant);

const ONE_PORT: &str = r#""ietf-yang-push:datastore-subtree-filter":{"ietf-interfaces:interfaces":{"interface":[{"name":"Ethernet3"}]}}"#;

async fn over_http(nth: usize, https: Https, words: mpsc::UnboundedSender<Word>) {
    let mut client = https.connect("alice").await.expect("connected");
    let more = format!("\"ietf-yang-push:on-change\":{{}},{ONE_PORT}");
    let id = client.establish(&more).await.expect("established");
    let mut events = client.events(id).await.expect("events");
    let first = events.next().await.expect("read").expect("an update");
    assert!(first.contains("push-update"), "{first}");
    words.send((nth, 0, Instant::now())).expect("heard");
    while let Ok(Some(message)) = events.next().await {
        let interval = interval(&message).unwrap_or_else(|| panic!("{message}"));
        _ = words.send((nth, interval, Instant::now()));
    }
}

async fn over_ssh(nth: usize, port: u16, key: Arc<PrivateKey>, words: mpsc::UnboundedSender<Word>) {
    let mut client = Netconf::connect(port, "alice", &key).await.expect("a session");
    let filter = "<yp:datastore-subtree-filter><interfaces \
                  xmlns=\"urn:ietf:params:xml:ns:yang:ietf-interfaces\"><interface>\
                  <name>Ethernet3</name></interface></interfaces></yp:datastore-subtree-filter>";
    client.establish(&format!("{filter}<yp:on-change/>")).await.expect("established");
    let first = client.next().await.expect("read").expect("an update");
    assert!(first.contains("push-update"), "{first}");
    words.send((nth, 0, Instant::now())).expect("heard");
    while let Ok(Some(message)) = client.next().await {
        let interval = interval(&message).unwrap_or_else(|| panic!("{message}"));
        _ = words.send((nth, interval, Instant::now()));
    }
}

// QUE-pub.2, SEQ-10.3
#[test]
fn two_of_a_hundred_subscribers_stop_reading_and_the_others_are_told_in_time() {
    let room = Room::new();
    let made = Command::new(ROCESCOPE).args(["pki", "init"]).arg(room.path("pki")).output();
    assert!(made.expect("it runs").status.success());
    ["host", "user"].iter().for_each(|name| keygen(&room.path(name)));
    let key: Arc<PrivateKey> = Arc::new(load_secret_key(room.path("user"), None).expect("a key"));
    let ports = [free_port(), free_port()];
    config(&room, ports);
    let agent = Running::agent(&room.path("agent.toml"));
    let stream = waited("a socket", || UnixStream::connect(room.path("q.sock")).ok());
    let mut source = Source::begin(stream, QUEUES, 1_000_000).expect("begun");
    source.complete().expect("sent");
    let authority = fs::read(room.path("pki/ca.pem")).expect("read");
    let https = Https::new(&authority, ports[0]).expect("certificates");
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
    let seen = runtime.block_on(watched(&agent, &https, ports[1], &key, &mut source));
    let Seen { told, worst, states, grown } = seen;
    let missing: Vec<usize> = (0..READERS * 2).filter(|nth| told[*nth] != INTERVALS).collect();
    assert!(missing.is_empty(), "not everything came to {missing:?}: {told:?}");
    assert!(worst < IN_TIME, "{worst:?} from the end of an interval");
    for (way, state) in ["RESTCONF", "NETCONF"].iter().zip(states) {
        assert!(state.suspended || state.ended, "{way}: neither suspended nor ended");
        assert!(state.ended, "{way}: still there");
    }
    // What waits for both, what the connections hold, and room for what an allocator keeps.
    assert!(grown < 24 << 20, "{grown} octets");
    agent.signal("TERM");
    let (code, said) = agent.ended();
    assert_eq!(code, Some(0), "{said}");
}

/// What became of a subscription that is not read.
#[derive(Clone, Copy, Default)]
struct State {
    suspended: bool,
    ended: bool,
}

struct Seen {
    /// Intervals of each reader, without a hole.
    told: Vec<u64>,
    worst: Duration,
    states: [State; 2],
    grown: u64,
}

async fn watched(
    agent: &Running,
    https: &Https,
    port: u16,
    key: &Arc<PrivateKey>,
    source: &mut Source,
) -> Seen {
    let (words, mut heard) = mpsc::unbounded_channel();
    for nth in 0..READERS {
        tokio::spawn(over_http(nth, https.clone(), words.clone()));
        tokio::spawn(over_ssh(READERS + nth, port, key.clone(), words.clone()));
    }
    for _ in 0..READERS * 2 {
        let first = tokio::time::timeout(HANGS, heard.recv()).await;
        assert_eq!(first.expect("in time").expect("one").1, 0);
    }
    // Everything that there is, and then nobody reads it.
    let stream = small(https.port()).await.expect("connected");
    let mut client = https.over(stream, "alice").await.expect("connected");
    let id = client.establish("\"ietf-yang-push:on-change\":{}").await.expect("established");
    let unread = client.events(id).await.expect("events");
    let stream = small(port).await.expect("connected");
    let mut stalled = Netconf::over(stream, "alice", key).await.expect("a session");
    let other = stalled.establish("<yp:on-change/>").await.expect("established");

    let mut looks = https.connect("alice").await.expect("connected");
    let first = source.intervals;
    let mut sent = Vec::new();
    let mut told = vec![first; READERS * 2];
    let (mut worst, mut states) = (Duration::ZERO, [State::default(); 2]);
    let (mut least, mut most) = (u64::MAX, 0);
    let mut take = |sent: &[Instant], (nth, interval, at): Word| {
        if interval == told[nth] + 1 {
            told[nth] = interval;
        }
        let since = interval
            .checked_sub(first + 1)
            .and_then(|nth| usize::try_from(nth).ok())
            .and_then(|nth| sent.get(nth));
        let since = since.unwrap_or_else(|| panic!("interval {interval} before its end"));
        worst = worst.max(at.saturating_duration_since(*since));
    };
    for nth in 0..INTERVALS {
        sent.push(Instant::now());
        source.complete().expect("sent");
        let next = Instant::now() + PACE;
        if nth % 5 == 0 {
            look(&mut looks, [id, other], &mut states).await;
        }
        while let Ok(word) = tokio::time::timeout_at(next.into(), heard.recv()).await {
            take(&sent, word.expect("readers"));
        }
        let now = resident(agent.0.id());
        // The first second fills what everybody has.
        if nth < 10 {
            least = least.min(now);
        }
        most = most.max(now);
    }
    while let Ok(word) = tokio::time::timeout(IN_TIME, heard.recv()).await {
        take(&sent, word.expect("readers"));
    }
    let told = told.iter().map(|last| last - first).collect();
    look(&mut looks, [id, other], &mut states).await;
    drop((unread, stalled));
    Seen { told, worst, states, grown: most.saturating_sub(least) }
}

/// Looks at two subscriptions.
async fn look(client: &mut super::client::Restconf, ids: [u32; 2], states: &mut [State; 2]) {
    let all = "/restconf/data/ietf-subscribed-notifications:subscriptions/subscription";
    for (id, state) in ids.into_iter().zip(states) {
        let answer = client.get(&format!("{all}={id}/receivers")).await.expect("an answer");
        state.ended = answer.status == 404;
        state.suspended |= answer.body.contains("\"suspended\"");
    }
}
