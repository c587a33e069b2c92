//! Many subscribers of an agent, with every queue completing one interval a second:
//!
//! ```text
//! cargo build --release --package rocescope --bins --example subscribers
//! target/release/examples/subscribers target/release/rocescope DIRECTORY \
//!     [SUBSCRIBERS] [QUEUES] [SECONDS] [FILTERS]
//! ```
//!
//! Each subscriber follows changes over RESTCONF, on a connection of its own; with FILTERS of one
//! interface each, in turn. What is printed is of the agent's process: its processor time for each
//! second and its memory; and of all subscribers together: the rows that they were told of, those
//! that were not told, and how long after the end of its interval the last of them was told. This
//! process decrypts and counts on the same machine, so that the delay is an upper bound.

#[path = "../tests/agent/client.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod client;

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Https, Source};
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error>;

/// Nothing takes as long as this, unless it hangs.
const HANGS: Duration = Duration::from_secs(120);
/// Subscriptions that are made at one time.
const TOGETHER: usize = 32;
const TOKEN: &str = "subscriber";

struct Asked {
    subscribers: usize,
    queues: usize,
    seconds: usize,
    filters: usize,
}

/// The end of an interval, as a subscriber was told of it.
struct Told {
    interval: u64,
    rows: usize,
    octets: usize,
    at: Instant,
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: subscribers ROCESCOPE DIRECTORY [SUBSCRIBERS] [QUEUES] [SECONDS] [FILTERS]";
    let [program, directory, numbers @ ..] = &*arguments else { return Err(usage.into()) };
    let number = |nth: usize, default: usize| match numbers.get(nth) {
        Some(text) => text.parse(),
        None => Ok(default),
    };
    let asked = Asked {
        subscribers: number(0, 1000)?,
        queues: number(1, 512)?,
        seconds: number(2, 20)?,
        filters: number(3, 0)?,
    };
    let directory = Path::new(directory);
    fs::create_dir_all(directory)?;
    let pki = directory.join("pki");
    if !pki.exists() {
        let made = Command::new(program).args(["pki", "init"]).arg(&pki).output()?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into());
        }
    }
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let config = directory.join("agent.toml");
    fs::write(&config, configuration(port, &asked))?;
    let agent = Command::new(program)
        .args(["agent", "--config"])
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let agent = Running(agent);
    let begun = Instant::now();
    let stream = loop {
        match UnixStream::connect(directory.join("q.sock")) {
            Ok(stream) => break stream,
            Err(error) if begun.elapsed() > HANGS => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut source = Source::begin(stream, asked.queues, 1_000_000_000)?;
    source.complete()?;
    let https = Https::new(&fs::read(pki.join("ca.pem"))?, port)?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(&asked, agent.0.id(), &https, &mut source))
}

fn configuration(port: u16, asked: &Asked) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, TOKEN.as_bytes());
    let token = digest.as_ref().iter().fold(String::new(), |mut all, octet| {
        _ = write!(all, "{octet:02x}");
        all
    });
    let most = asked.subscribers;
    format!(
        "[observation]\ndomain = 1\n[[queue.source]]\nname = \"asic\"\nevents_socket = \"q.sock\"\n\
         interval_ms = 1000\n[manage]\nconnections_max = {}\nsubscriptions_max = {most}\n\
         subscriptions_per_user_max = {most}\n\
         [manage.restconf]\nlisten = \"127.0.0.1:{port}\"\ncertificate = \"pki/collector.pem\"\n\
         key = \"pki/collector.key\"\n\
         [[manage.login]]\nuser = \"alice\"\ntoken_sha256 = \"{token}\"\n\
         [[manage.rules]]\nname = \"all\"\ngroups = [\"*\"]\nrule = [{{ action = \"permit\" }}]\n",
        most + 16
    )
}

async fn measure(
    asked: &Asked,
    id: u32,
    https: &Https,
    source: &mut Source,
) -> Result<(), Failure> {
    let (words, mut heard) = mpsc::unbounded_channel();
    let begun = Instant::now();
    for from in (0..asked.subscribers).step_by(TOGETHER) {
        let to = asked.subscribers.min(from + TOGETHER);
        for nth in from..to {
            let filter = nth.checked_rem(asked.filters).map(|nth| {
                format!(
                    ",\"ietf-yang-push:datastore-subtree-filter\":{{\"ietf-interfaces:interfaces\":\
                     {{\"interface\":[{{\"name\":\"Ethernet{nth}\"}}]}}}}"
                )
            });
            tokio::spawn(subscriber(https.clone(), filter.unwrap_or_default(), words.clone()));
        }
        for _ in from..to {
            let first = tokio::time::timeout(HANGS, heard.recv()).await?;
            first.ok_or("no subscribers")??;
        }
    }
    println!(
        "{} subscribers to {} queues{}, established in {:.1} s",
        asked.subscribers,
        asked.queues,
        match asked.filters {
            0 => String::new(),
            filters => format!(", an interface each of {filters}"),
        },
        begun.elapsed().as_secs_f64()
    );
    let of_each = if asked.filters == 0 { asked.queues } else { asked.queues.min(8) };
    let expected = of_each * asked.subscribers;
    let before = cpu_s(id)?;
    let (began, first) = (Instant::now(), source.intervals);
    let (mut rows, mut octets, mut behind) = (0, 0, Duration::ZERO);
    let mut sent = Vec::new();
    for second in 1..=asked.seconds {
        sent.push(Instant::now());
        source.complete()?;
        let mut rows_of = 0;
        let mut worst = Duration::ZERO;
        let until = began + Duration::from_secs(u64::try_from(second)?);
        while let Ok(told) = tokio::time::timeout_at(until.into(), heard.recv()).await {
            let told = told.ok_or("no subscribers")??;
            let nth = usize::try_from(told.interval.checked_sub(first + 1).ok_or("too early")?)?;
            let ended = sent.get(nth).ok_or("an interval before its end")?;
            worst = worst.max(told.at.saturating_duration_since(*ended));
            rows_of += told.rows;
            octets += told.octets;
        }
        rows += rows_of;
        behind = behind.max(worst);
    }
    let spent = cpu_s(id)? - before;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{rows} rows told of {}, {:.1} MiB a second, the last of an interval {} ms behind it at most",
        expected * asked.seconds,
        octets as f64 / seconds / f64::from(1 << 20),
        behind.as_millis()
    );
    println!(
        "the agent: {:.1} % of a core, {} MiB of memory, at most {} MiB",
        100.0 * spent / seconds,
        memory(id, "VmRSS:")?,
        memory(id, "VmHWM:")?
    );
    Ok(())
}

/// Subscribes, says so, and tells of each notification.
async fn subscriber(
    https: Https,
    filter: String,
    words: mpsc::UnboundedSender<Result<Told, String>>,
) {
    let failed = |error: std::io::Error| error.to_string();
    let following = async {
        let mut client = https.connect(TOKEN).await.map_err(failed)?;
        let more = format!("\"ietf-yang-push:on-change\":{{}}{filter}");
        let id = client.establish(&more).await.map_err(failed)?;
        let mut events = client.events(id).await.map_err(failed)?;
        while let Some(message) = events.next().await.map_err(failed)? {
            let at = Instant::now();
            let mut ids = message.split("\"interval-id\":\"").skip(1);
            let digits = ids.next().and_then(|rest| rest.split('"').next());
            let interval = digits.and_then(|digits| digits.parse().ok());
            let interval = interval.ok_or_else(|| format!("no interval in {message}"))?;
            let told = Told { interval, rows: 1 + ids.count(), octets: message.len(), at };
            if words.send(Ok(told)).is_err() {
                return Ok(());
            }
        }
        Err("the stream of a subscription ended".to_owned())
    };
    if let Err(problem) = following.await {
        _ = words.send(Err(problem));
    }
}

/// Seconds of processor time that a process has used so far.
fn cpu_s(id: u32) -> Result<f64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let (_, behind) = stat.rsplit_once(") ").ok_or("no such line")?;
    let fields: Vec<_> = behind.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10).as_secs_f64())
}

/// A line of /proc/ID/status, in mebioctets.
fn memory(id: u32, name: &str) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1024)
}
