//! `cargo xtask bench --api`: how long the collector's HTTP interface takes to answer over a full
//! store.
//!
//! The store is filled as the collector fills it, with epochs of hosts of which few have most: half
//! of all epochs have one source. A collector of the release build then serves it, and every
//! combination of filters is asked with values drawn from what is there, one request after the
//! other over one connection, from the first octet that is sent to the last that is received.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail, ensure};
use observe::collect::{Contradiction, Epoch};
use observe::outcome::Outcome;
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use store::{Change, EpochState, Rules, SessionFacts, SessionId, Store, StoreLimits};
use wire::frame::{Addresses, Namespace};

/// What to measure.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Options {
    /// Epochs in the store.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub epochs: u32,
    /// Requests of each kind.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
}

const SESSIONS: u32 = 200;
/// Hosts of each side; the queue pairs of the hosts have the same numbers.
const HOSTS: u64 = 64;
const QPS: u64 = 500;
/// What is between two epochs.
const STEP_MS: u64 = 10;
/// Filters, each of which a combination has or has not.
const FILTERS: [&str; 6] = ["outcome", "source", "destination", "qp", "since", "until"];

/// Fills a store, serves it and asks; returns a table.
pub fn run(rocescope: &Path, directory: &Path, options: Options) -> anyhow::Result<String> {
    if directory.exists() {
        fs::remove_dir_all(directory).context("the store of a run before cannot be removed")?;
    }
    let made = Command::new(rocescope).args(["pki", "init"]).arg(directory).status();
    ensure!(made.context("rocescope does not start")?.success(), "no certificates were made");
    let config = directory.join("collector.toml");
    let text = fs::read_to_string(&config)?.replace(":4740", ":0").replace(":8080", ":0");
    fs::write(&config, format!("{text}\n[limits]\nhttp_page_max = 20_000\n"))?;
    eprintln!("bench: filling a store with {} epochs", options.epochs);
    let began = Instant::now();
    // The last epoch is of now: retention takes out what is old.
    let now_ms = SystemTime::UNIX_EPOCH.elapsed().context("a clock")?.as_millis();
    let begin_ms = u64::try_from(now_ms)?.saturating_sub(u64::from(options.epochs) * STEP_MS);
    fill(&directory.join("data"), options.epochs, begin_ms)?;
    let filled = began.elapsed();
    let (mut collector, mut client) = serve(rocescope, &config)?;
    let measured = ask(&mut client, options, begin_ms);
    collector.kill().context("the collector cannot be ended")?;
    collector.wait()?;
    let octets = fs::metadata(directory.join("data/results.db"))?.len();
    fs::remove_dir_all(directory)?;
    Ok(table(options, filled, octets, &measured?))
}

/// A small generator: the same numbers every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Zero in half of all cases, one in a quarter, and so on.
    fn uneven(&mut self, most: u64) -> u64 {
        let mut number = 0;
        while number + 1 < most && self.below(2) == 1 {
            number += 1;
        }
        number
    }
}

fn source(host: u64) -> [u8; 4] {
    [10, 0, 0, u8::try_from(host % HOSTS).unwrap_or(0)]
}

fn destination(host: u64) -> [u8; 4] {
    [10, 0, 1, u8::try_from(host % HOSTS).unwrap_or(0)]
}

fn fill(directory: &Path, epochs: u32, begin_ms: u64) -> anyhow::Result<()> {
    let (mut store, _) = Store::open(directory, StoreLimits::default(), 0)?;
    let mut numbers = Numbers(1);
    let per_session = epochs.div_ceil(SESSIONS);
    let mut left = epochs;
    let mut begun_ms = begin_ms;
    while left > 0 {
        let facts = SessionFacts {
            peer: "agent.example".into(),
            fingerprint: [7; 32],
            address: "192.0.2.1:50000".into(),
            opened_ms: begun_ms,
            rules: Rules { domains: Some(vec![1]), ..Rules::default() },
        };
        let session = store.open_session(&facts)?;
        let count = per_session.min(left);
        left -= count;
        let mut changes = Vec::new();
        for id in 1..=u64::from(count) {
            begun_ms += STEP_MS;
            changes.push(Change::Epoch(Box::new(epoch(session, id, begun_ms, &mut numbers)?)));
            if changes.len() == 8_192 {
                store.apply(&changes)?;
                changes.clear();
            }
        }
        let (closed_ms, reason) = (begun_ms, "the peer closed it".into());
        changes.push(Change::Refused { session, domain: 1, kind: "stale".into(), records: 3 });
        changes.push(Change::SessionClosed { session, closed_ms, reason });
        store.apply(&changes)?;
    }
    Ok(())
}

fn epoch(
    session: SessionId,
    epoch_id: u64,
    now_ms: u64,
    numbers: &mut Numbers,
) -> anyhow::Result<EpochState> {
    let key = StreamKey {
        addresses: Addresses::v4(source(numbers.uneven(HOSTS)), destination(numbers.below(HOSTS))),
        namespace: Namespace::default(),
        qp: u32::try_from(numbers.below(QPS))?,
        pkey: 0xffff,
    };
    let (outcome, flags, contradiction) = match numbers.below(1_000) {
        0 => (Outcome::Invalid, Flags::FINAL_EPOCH, Some(Contradiction::AfterFinal)),
        1..100 => (Outcome::Incomplete, Flags::default(), None),
        _ => (Outcome::Complete, Flags::FINAL_EPOCH, None),
    };
    let start_ms = now_ms.saturating_sub(numbers.below(5_000));
    let requests = 1 + numbers.below(1 << 30);
    let snapshot = Snapshot {
        key,
        window: Window::new(1_024).context("a window")?,
        flags,
        start_ms,
        end_ms: start_ms + numbers.below(60_000),
        counts: Counts { requests, ..Counts::default() },
    };
    let epoch = Epoch {
        point: 1,
        latest: Report { epoch_id, report_id: 1, snapshot, other_keys: 0 },
        missing: 0,
        flags,
        heard_ms: now_ms,
        contradiction,
        collector_drops: false,
    };
    Ok(EpochState { session, domain: 1, epoch, outcome, updated_ms: now_ms })
}

/// A collector at work, and a connection to it.
fn serve(rocescope: &Path, config: &Path) -> anyhow::Result<(Child, Client)> {
    let mut child = Command::new(rocescope)
        .args(["collector", "--config"])
        .arg(config)
        .stderr(Stdio::piped())
        .spawn()
        .context("rocescope does not start")?;
    let log = child.stderr.take().context("the collector's log")?;
    let mut address = None;
    let mut lines = BufReader::new(log).lines();
    for line in &mut lines {
        if let Some((_, rest)) = line?.split_once("serves HTTP on http://") {
            address = Some(rest.trim_end_matches('/').to_owned());
            break;
        }
    }
    // So that it can go on telling.
    std::thread::spawn(move || lines.for_each(drop));
    let address = address.context("the collector ended before it served")?;
    let stream = TcpStream::connect(&address).context("the collector does not listen")?;
    stream.set_nodelay(true)?;
    Ok((child, Client { stream, address }))
}

struct Client {
    stream: TcpStream,
    address: String,
}

impl Client {
    /// An answer's body and how long it took.
    fn get(&mut self, target: &str) -> anyhow::Result<(Vec<u8>, Duration)> {
        let began = Instant::now();
        let head = format!("GET {target} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address);
        self.stream.write_all(head.as_bytes())?;
        let mut read = Vec::new();
        let mut part = vec![0; 1 << 16];
        let (end, length) = loop {
            let count = self.stream.read(&mut part)?;
            ensure!(count > 0, "{target}: the collector ended the connection");
            read.extend_from_slice(&part[..count]);
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
                ensure!(head.starts_with("http/1.1 200"), "{target}: {head}");
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                break (end + 4, length.context("a length")?.trim().parse::<usize>()?);
            }
        };
        while read.len() < end + length {
            let count = self.stream.read(&mut part)?;
            ensure!(count > 0, "{target}: the collector ended the connection");
            read.extend_from_slice(&part[..count]);
        }
        Ok((read.split_off(end), began.elapsed()))
    }
}

/// Times of one kind of request.
struct Row {
    what: String,
    times: Vec<Duration>,
}

impl Row {
    fn at(&self, hundredths: usize) -> f64 {
        let place = (self.times.len() * hundredths / 100).min(self.times.len() - 1);
        self.times[place].as_secs_f64() * 1e3
    }
}

fn row(what: impl Into<String>, mut times: Vec<Duration>) -> Row {
    times.sort_unstable();
    Row { what: what.into(), times }
}

fn ask(client: &mut Client, options: Options, begin_ms: u64) -> anyhow::Result<Vec<Row>> {
    let mut numbers = Numbers(99);
    let mut combinations = Vec::new();
    for bits in 0..1_u32 << FILTERS.len() {
        let mut times = Vec::new();
        for _ in 0..options.rounds {
            let query = query(bits, options.epochs, begin_ms, &mut numbers);
            times.push(client.get(&format!("/api/v1/epochs?{query}"))?.1);
        }
        let named: Vec<_> = FILTERS
            .iter()
            .enumerate()
            .filter(|(n, _)| bits & 1 << n != 0)
            .map(|(_, f)| *f)
            .collect();
        combinations.push(row(named.join("+"), times));
    }
    let all = combinations.iter().flat_map(|row| row.times.iter().copied()).collect();
    let slowest = combinations.iter().max_by(|a, b| a.at(50).total_cmp(&b.at(50)));
    let slowest = slowest.context("a combination")?;
    let mut rows = vec![
        row(format!("`epochs`, all {} combinations of filters", combinations.len()), all),
        row(
            format!("`epochs`, the slowest combination by its median: {}", slowest.what),
            slowest.times.clone(),
        ),
    ];
    for (name, bits) in FILTERS.iter().zip(0..) {
        let one = combinations.get(1_usize << bits).context("one filter")?;
        rows.push(row(format!("`epochs`, {name} alone"), one.times.clone()));
    }
    rows.push(row("`epochs`, no filter", combinations[0].times.clone()));
    for question in ["", "outcome=complete", "source=10.0.0.0"] {
        rows.push(last_pages(client, question, options.rounds)?);
    }
    for (target, what) in [
        ("/api/v1/epochs/7/1/77", "one epoch"),
        ("/api/v1/epochs/7/1/77/history", "`history` of one epoch"),
        ("/api/v1/sessions", "`sessions`, 100 of them"),
        ("/api/v1/summary", "`summary`"),
        ("/api/v1/limits", "`limits`"),
        ("/metrics", "`/metrics`"),
    ] {
        let times: anyhow::Result<_> =
            (0..options.rounds).map(|_| Ok(client.get(target)?.1)).collect();
        rows.push(row(what, times?));
    }
    Ok(rows)
}

/// Values from what is there; the spans of time are up to an hour, or all that is behind or before.
fn query(bits: u32, epochs: u32, begin_ms: u64, numbers: &mut Numbers) -> String {
    let since = begin_ms + numbers.below(u64::from(epochs) * STEP_MS);
    let address = |octets: [u8; 4]| octets.map(|octet| octet.to_string()).join(".");
    let values = [
        ["complete", "incomplete", "invalid", "active"]
            [usize::try_from(numbers.below(4)).unwrap_or(0)]
        .to_owned(),
        address(source(numbers.uneven(HOSTS))),
        address(destination(numbers.below(HOSTS))),
        numbers.below(QPS).to_string(),
        since.to_string(),
        (since + 60_000 * (1 + numbers.below(60))).to_string(),
    ];
    let pairs = FILTERS.iter().zip(values).enumerate().filter(|(n, _)| bits & 1 << n != 0);
    pairs.map(|(_, (name, value))| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// The last pages of 100 of a question, which cursors lead to.
fn last_pages(client: &mut Client, question: &str, rounds: u32) -> anyhow::Result<Row> {
    let cursor = |body: &[u8]| -> anyhow::Result<Option<String>> {
        let (_, next) = std::str::from_utf8(body)?.rsplit_once("\"next\":").context("next")?;
        Ok(next.strip_prefix('"').and_then(|rest| rest.split('"').next()).map(str::to_owned))
    };
    // From a stretch before the last one, which may be a short one.
    let (mut before, mut at) = (String::new(), String::new());
    loop {
        let target = format!("/api/v1/epochs?{question}&limit=20000&cursor={at}");
        match cursor(&client.get(&target)?.0)? {
            Some(next) => before = std::mem::replace(&mut at, next),
            None => break,
        }
    }
    at = before;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let target = format!("/api/v1/epochs?{question}&limit=100&cursor={at}");
        let (body, time) = client.get(&target)?;
        times.push(time);
        match cursor(&body)? {
            Some(next) => at = next,
            None if times.len() > 1 => break,
            None => bail!("the last page is the only one"),
        }
    }
    let question = if question.is_empty() { "no filter" } else { question };
    Ok(row(format!("`epochs`, pages near the end by cursor, {question}"), times))
}

fn table(options: Options, filled: Duration, octets: u64, rows: &[Row]) -> String {
    let mut table = format!(
        "{}; {} epochs of {SESSIONS} sessions in a database of {} MiB, filled in {:.0} s; {} \
         requests of each kind, one after the other, 100 rows a page; milliseconds.\n\n\
         | request | median | 99 of 100 | slowest |\n| --- | ---: | ---: | ---: |\n",
        super::measure::machine(),
        options.epochs,
        octets >> 20,
        filled.as_secs_f64(),
        options.rounds
    );
    for row in rows {
        let (median, most, slowest) = (row.at(50), row.at(99), row.at(100));
        table += &format!("| {} | {median:.2} | {most:.2} | {slowest:.2} |\n", row.what);
    }
    table.trim_end().to_owned()
}
