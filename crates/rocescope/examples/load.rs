//! How much a collector takes in: `cargo xtask bench --collector` runs it.
//!
//! A stream of reports is made once and sent over mutual TLS 1.3 to a collector process, and to a
//! process that reads the same over the same TLS and throws it away. What counts is the CPU time
//! that each of them used, all its threads together, for as many reports. Where the rest goes is
//! measured in this process, part by part, on the same octets. Then a million epochs are held open
//! at once, and the collector's memory is read.
//!
//! `load poll DIRECTORY` is the other side: how much of a core it takes to poll the PFC counters of
//! 1024 ports from a Redis server every second, and to make records of them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use observe::export::Exporter;
use observe::pfc::instance::InstanceId;
use observe::pfc::interval::{Pace, Tick};
use observe::pfc::qualify::{Condition, Qualification};
use observe::pfc::{Direction, Priority, Reading, Scope};
use observe::profile::Lengths;
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use rocescope::collector::intake::{Bounds, Intake, Taken};
use rocescope::collector::{Disk, Pending, Rules, SessionFacts, Sink as _};
use rocescope::config::read_collector;
use rocescope::pfc::poller::{Place, Poller};
use rocescope::pfc::redis::{Connection, Reply, request};
use rocescope::pfc::sonic::{self, Dating, Sonic, SonicSettings};
use rocescope::pfc::{self, Clock, Moment, RedisAddress, Said};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use rustls::{Stream, StreamOwned};
use wire::element::Mapping;
use wire::frame::{Addresses, Namespace};

type Failure = Box<dyn std::error::Error>;

const PIECE: usize = 65_536;

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().collect();
    match &arguments[1..] {
        [word, directory] if word == "discard" => discard(Path::new(directory)),
        // For a profile of what this process does alone.
        [word, directory, epochs, rounds] if word == "parts" => {
            let directory = Path::new(directory);
            let stream = octets(epochs.parse()?, rounds.parse()?)?;
            println!("{:?}", parts(&configured(directory)?, &stream)?);
            Ok(())
        }
        [word, directory] if word == "poll" => poll(Path::new(directory)),
        [program, directory, reports] => {
            measure(Path::new(program), Path::new(directory), reports.parse()?)
        }
        _ => Err("usage: load ROCESCOPE DIRECTORY REPORTS, or load poll DIRECTORY".into()),
    }
}

fn report(epoch: u32, id: u64, last: bool) -> Report {
    let key = StreamKey {
        addresses: Addresses::v4([10, 0, 0, 1], [10, 1, 0, 2]),
        namespace: Namespace::default(),
        qp: epoch & 0x00ff_ffff,
        pkey: 0xffff,
    };
    let counts = Counts { requests: id * 100, skipped: id, filled: id, ..Counts::default() };
    let flags = if last { Flags::FINAL_EPOCH } else { Flags::default() };
    let window = Window::new(1024).expect("legal");
    let snapshot =
        Snapshot { key, window, flags, start_ms: 1_000, end_ms: 1_000 + id * 100, counts };
    Report { epoch_id: u64::from(epoch), report_id: id, snapshot, other_keys: 0 }
}

/// The octets of a session in which all epochs report in turn.
fn octets(epochs: u32, rounds: u64) -> Result<Vec<u8>, Failure> {
    let mut exporter = Exporter::new(Mapping::default(), 1, 1, 65_000)?;
    let mut octets = Vec::new();
    exporter.begin(0, &mut octets)?;
    for id in 1..=rounds {
        let reports: Vec<_> = (1..=epochs).map(|epoch| report(epoch, id, id == rounds)).collect();
        for part in reports.chunks(500) {
            exporter.reports(part, 0, &mut octets)?;
        }
    }
    Ok(octets)
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

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Starts a process, and reads its port from what it says.
fn start(command: &mut Command) -> Result<(Running, u16), Failure> {
    let mut running = Running(command.stderr(Stdio::piped()).spawn()?);
    let mut said = BufReader::new(running.0.stderr.take().ok_or("no pipe")?);
    let mut line = String::new();
    while !line.contains("for IPFIX") {
        line.clear();
        if said.read_line(&mut line)? == 0 {
            return Err("it does not listen".into());
        }
    }
    // Whatever else it says is not to block it.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let (_, behind) = line.split_once("127.0.0.1:").ok_or("no port")?;
    let port = behind.split(' ').next().ok_or("no port")?.parse()?;
    Ok((running, port))
}

/// Sends octets as the agent, and returns when the other side has closed.
fn send(directory: &Path, port: u16, octets: &[u8], close: bool) -> Result<Client, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(directory.join("ca.pem"))?)?;
    let chain = vec![CertificateDer::from_pem_file(directory.join("agent.pem"))?];
    let key = PrivateKeyDer::from_pem_file(directory.join("agent.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    let tls = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
    let tcp = TcpStream::connect(("127.0.0.1", port))?;
    let mut stream = StreamOwned::new(tls, tcp);
    stream.write_all(octets)?;
    stream.flush()?;
    if close {
        stream.conn.send_close_notify();
        stream.flush()?;
        _ = stream.read(&mut [0; 1]);
    }
    Ok(stream)
}

type Client = StreamOwned<ClientConnection, TcpStream>;

/// Reads one connection over TLS and throws it away.
fn discard(directory: &Path) -> Result<(), Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(directory.join("ca.pem"))?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
    let chain = vec![CertificateDer::from_pem_file(directory.join("collector.pem"))?];
    let key = PrivateKeyDer::from_pem_file(directory.join("collector.key"))?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    eprintln!("listens on {} for IPFIX, and throws it away", listener.local_addr()?);
    let (mut tcp, _) = listener.accept()?;
    let mut tls = ServerConnection::new(Arc::new(config))?;
    let mut buffer = vec![0; PIECE];
    while Stream::new(&mut tls, &mut tcp).read(&mut buffer)? > 0 {}
    // Stays until it has been measured.
    tls.send_close_notify();
    tls.complete_io(&mut tcp)?;
    drop(tcp);
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

fn measure(program: &Path, directory: &Path, reports: u64) -> Result<(), Failure> {
    let config = configured(directory)?;
    println!(
        "| reports in turn of | what | reports/s of one core | us/report | of reading alone |"
    );
    println!("| --- | --- | ---: | ---: | ---: |");
    for epochs in [1_000_u32, 100_000] {
        let rounds = (reports / u64::from(epochs)).max(2);
        let stream = octets(epochs, rounds)?;
        let count = u64::from(epochs) * rounds;
        rows(program, directory, &config, &format!("{epochs} epochs"), &stream, count)?;
    }
    for ports in [64_u32, 1_024] {
        let counters = ports * 16;
        let rounds = (reports / u64::from(counters)).max(2);
        let stream = pfc_octets(ports, rounds)?;
        let count = u64::from(counters) * rounds;
        rows(program, directory, &config, &format!("{counters} PFC counters"), &stream, count)?;
    }
    open_epochs(program, directory, &config)
}

/// Measures one stream, whole and in parts.
fn rows(
    program: &Path,
    directory: &Path,
    config: &Path,
    of_what: &str,
    stream: &[u8],
    count: u64,
) -> Result<(), Failure> {
    let alone = {
        let own = std::env::current_exe()?;
        let (running, port) = start(Command::new(own).arg("discard").arg(directory))?;
        send(directory, port, stream, true)?;
        cpu_s(running.0.id())?
    };
    let row = |what: &str, seconds: f64| {
        #[expect(clippy::cast_precision_loss, reason = "a few million")]
        let each = seconds / count as f64;
        let (rate, of) = (1.0 / each, seconds / alone);
        println!("| {of_what} | {what} | {rate:.0} | {:.3} | {of:.1} |", each * 1e6);
    };
    row("reading over TLS, and throwing away", alone);
    let whole = collected(program, directory, config, stream)?;
    row("collector: TLS, validation, archive, store", whole);
    let parts = parts(config, stream)?;
    for (what, seconds) in ["decoding and judging", "archive", "store"].iter().zip(parts) {
        row(&format!("of it, {what}"), seconds);
    }
    row("of it, everything else (TLS, queues, threads)", whole - parts.iter().sum::<f64>());
    Ok(())
}

/// The octets of a session in which all PFC counters of so many ports, of eight priorities in both
/// directions, are read in turn.
fn pfc_octets(ports: u32, rounds: u64) -> Result<Vec<u8>, Failure> {
    let mut exporter = Exporter::new(Mapping::default(), 1, 1, 65_000)?;
    let mut octets = Vec::new();
    exporter.begin(0, &mut octets)?;
    for round in 1..=rounds {
        for direction in Direction::ALL {
            let all = Condition::ALL.into_iter();
            let source =
                all.fold(Qualification::new(direction), Qualification::attested).check()?;
            let mut readings = Vec::new();
            for interface in 1..=ports {
                readings.extend(Priority::ALL.map(|priority| {
                    let scope = Scope { domain: 1, point: 1, interface, direction, priority };
                    let total = round * u64::from(interface) + u64::from(priority.get());
                    Reading { scope, time_ms: round * 1_000, total }
                }));
            }
            exporter.readings(&source, &readings, 0, &mut octets)?;
        }
    }
    Ok(octets)
}

/// A directory with certificates and a collector's configuration.
fn configured(directory: &Path) -> Result<PathBuf, Failure> {
    _ = fs::remove_dir_all(directory);
    rocescope::pki::init(directory)?;
    let config = directory.join("collector.toml");
    let text = fs::read_to_string(&config)?;
    let text = text.replace("4740", "0").replace("8080", "0");
    fs::write(&config, text + "\n[limits]\nepochs_max = 1000000\nclosed_retention_s = 1\n")?;
    Ok(config)
}

fn collected(
    program: &Path,
    directory: &Path,
    config: &Path,
    stream: &[u8],
) -> Result<f64, Failure> {
    _ = fs::remove_dir_all(directory.join("data"));
    let (running, port) = start(Command::new(program).args(["collector", "--config"]).arg(config))?;
    let before = cpu_s(running.0.id())?;
    let began = Instant::now();
    send(directory, port, stream, true)?;
    until_kept(directory)?;
    eprintln!("{} octets in {:?}, peak {} MiB", stream.len(), began.elapsed(), {
        memory(running.0.id(), "VmHWM:")?
    });
    Ok(cpu_s(running.0.id())? - before)
}

/// Waits until the session is over in the store.
fn until_kept(directory: &Path) -> Result<(), Failure> {
    let reader = store::Reader::open(&directory.join("data/results.db"))?;
    loop {
        let rows = reader.sessions(1, None)?.rows;
        if rows.first().is_some_and(|row| row.closed_ms.is_some()) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Seconds for judging, archive and store, each by itself in this process.
fn parts(config: &Path, stream: &[u8]) -> Result<[f64; 3], Failure> {
    let config = read_collector(config).map_err(|errors| format!("{errors:?}"))?;
    let data: &PathBuf = &config.store.directory.path;
    _ = fs::remove_dir_all(data);
    let mut disk = Disk::open(&config)?;
    let bounds = Bounds {
        decoder: config.decoder_limits(),
        session: config.session_limits(),
        pfc: config.pfc_rules(),
        malformed_in_a_row_max: 16,
    };
    let id = disk.open_session(&SessionFacts {
        peer: "agent.example".into(),
        fingerprint: [0; 32],
        address: String::new(),
        opened_ms: 0,
        rules: Rules {
            domains: Some(vec![1]),
            epochs: bounds.session,
            decoder: bounds.decoder,
            lengths: Lengths::Full,
            mapping: Mapping::default(),
            pfc: bounds.pfc,
        },
    })?;
    let mut intake = Intake::new(id, Mapping::default(), [1], bounds, 1);
    let mut seconds = [Duration::ZERO; 3];
    let mut pending = Pending::default();
    for piece in stream.chunks(PIECE) {
        let mut taken = Taken::default();
        let began = Instant::now();
        intake.receive(piece, 1, &mut taken)?;
        seconds[0] += began.elapsed();
        let began = Instant::now();
        disk.archive(id, &mut taken.raw)?;
        seconds[1] += began.elapsed();
        let began = Instant::now();
        taken.changes.drain(..).for_each(|change| pending.add(change));
        // As large as batches become when the store is what takes longest.
        if pending.changes().len() >= 262_144 {
            disk.apply(pending.changes())?;
            pending.clear();
        }
        seconds[2] += began.elapsed();
    }
    let began = Instant::now();
    disk.apply(pending.changes())?;
    seconds[2] += began.elapsed();
    Ok(seconds.map(|all| all.as_secs_f64()))
}

/// A million epochs, open at once.
fn open_epochs(program: &Path, directory: &Path, config: &Path) -> Result<(), Failure> {
    _ = fs::remove_dir_all(directory.join("data"));
    let (running, port) = start(Command::new(program).args(["collector", "--config"]).arg(config))?;
    let id = running.0.id();
    let before = memory(id, "VmRSS:")?;
    // Two rounds, of which the second is not final either.
    let stream = octets(1_000_000, 3)?;
    let two_rounds = stream.len() / 3 * 2;
    let began = Instant::now();
    let open = send(directory, port, &stream[..two_rounds], false)?;
    let reader = store::Reader::open(&directory.join("data/results.db"))?;
    let all = |reader: &store::Reader| -> Result<bool, Failure> {
        let counts = reader.counts_by_outcome()?;
        Ok(counts.iter().any(|(_, epochs)| *epochs >= 1_000_000))
    };
    while !all(&reader)? {
        std::thread::sleep(Duration::from_millis(500));
    }
    println!();
    println!(
        "1000000 open epochs: {} MiB, {} MiB at most, {before} MiB before them; stored within {:.0} s.",
        memory(id, "VmRSS:")?,
        memory(id, "VmHWM:")?,
        began.elapsed().as_secs_f64()
    );
    drop(open);
    Ok(())
}

/// Ports of the switch that is polled, and how often it is.
const PORTS: u64 = 1024;
const POLLS: u32 = 60;

/// Polls a Redis server, and writes what comes of it as IPFIX messages.
fn poll(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory)?;
    let socket = directory.join("redis.sock");
    let server = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut server = Running(server);
    let mut said = BufReader::new(server.0.stdout.take().ok_or("no pipe")?).lines();
    said.find(|line| line.as_ref().is_ok_and(|line| line.contains("now ready to accept")))
        .ok_or("it does not listen")??;
    std::thread::spawn(move || said.for_each(drop));
    let address = RedisAddress::Socket(socket);
    fill(&address)?;
    let statement = sonic::statement(Dating::Asked);
    let all = Condition::ALL;
    let pace = Pace::per_second(1 << 32).ok_or("a pace")?;
    let said = Said { attested: &all, resets_show: true, pace, poll_ms_max: 1000 };
    let [received, transmitted] =
        Direction::ALL.map(|direction| pfc::qualified(direction, &statement, &said));
    let qualified = [Some(received?), Some(transmitted?)];
    let promise = pfc::promise(&statement, &said).ok_or("a width")?;
    let place = Place {
        source: "pfc.source[0]".into(),
        scopes: Arc::default(),
        domain: 1,
        point: 1,
        qualified,
        promise,
        identify: true,
        ports_max: 4096,
    };
    let settings = SonicSettings {
        address,
        ports: Vec::new(),
        dating: Dating::Asked,
        within: Duration::from_secs(10),
        ports_max: 4096,
        stale_ms_max: 10_000,
    };
    let mut last = 0;
    let fresh = move || {
        last += 1;
        InstanceId::new(last).expect("not 0")
    };
    let mut poller = Poller::new(Sonic::new(settings), place, Arc::default(), fresh);
    let mut exporter = Exporter::new(Mapping::default(), 1, 1, 65_000)?.extended();
    let clock = Ticking(Instant::now());
    let mut octets = Vec::new();
    let (mut readings, mut export_s) = (0, 0.0);
    let (server_id, own_id) = (server.0.id(), std::process::id());
    let (began, before) = (cpu_s(own_id)?, cpu_s(server_id)?);
    let mut slowest = Duration::ZERO;
    for number in 0..POLLS {
        // Intervals are of seconds; here they follow each other.
        let started = Instant::now();
        let batch = poller.poll(&clock)?;
        slowest = slowest.max(started.elapsed());
        let exporting = Instant::now();
        octets.clear();
        for (side, qualified) in qualified.iter().enumerate() {
            let named: Vec<_> = batch.since(side, u64::from(number)).collect();
            readings += named.len();
            exporter.identified(&qualified.ok_or("qualified")?, &named, 0, &mut octets)?;
        }
        export_s += exporting.elapsed().as_secs_f64();
    }
    let (used, of_server) = (cpu_s(own_id)? - began, cpu_s(server_id)? - before);
    let polls = f64::from(POLLS);
    let per_poll = |seconds: f64| seconds * 1000.0 / polls;
    println!("{readings} readings in {POLLS} polls of {PORTS} ports, slowest {slowest:?}");
    println!(
        "{:.1} ms of processor a poll, so {:.1} % of a core every second",
        per_poll(used),
        used / polls * 100.0
    );
    println!(
        "{:.1} ms by the clock to make records of them; the Redis server used {:.1} ms",
        per_poll(export_s),
        per_poll(of_server)
    );
    Ok(())
}

struct Ticking(Instant);

impl Clock for Ticking {
    fn now(&self) -> Moment {
        let ms = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        Moment { time_ms: 1_700_000_000_000 + ms, tick: Tick { clock: 1, ms } }
    }
}

/// Makes a switch of the database: its counters of PFC frames among as many others as one has.
fn fill(address: &RedisAddress) -> Result<(), Failure> {
    let mut connection = Connection::open(address, Duration::from_secs(60))?;
    let mut ask = |words: &[&str]| -> Result<(), Failure> {
        let mut out = Vec::new();
        request(&mut out, words);
        connection.send(&out)?;
        match connection.reply()? {
            Reply::Refused(why) => Err(why.into()),
            _ => Ok(()),
        }
    };
    ask(&["SELECT", "5"])?;
    let group = "FLEX_COUNTER_GROUP_TABLE:PORT_STAT_COUNTER";
    ask(&["HSET", group, "FLEX_COUNTER_STATUS", "enable", "STATS_MODE", "STATS_MODE_READ"])?;
    ask(&["SELECT", "2"])?;
    for port in 0..PORTS {
        let (name, object) = (format!("Ethernet{}", port * 4), format!("oid:0x1{port:012x}"));
        ask(&["HSET", "COUNTERS_PORT_NAME_MAP", &name, &object])?;
        let mut words = vec!["HSET".to_owned(), format!("COUNTERS:{object}")];
        for other in 0..80 {
            words.extend([format!("SAI_PORT_STAT_OTHER_{other}"), "123456789".to_owned()]);
        }
        for index in 0..8 {
            for way in ["RX", "TX"] {
                let field = format!("SAI_PORT_STAT_PFC_{index}_{way}_PKTS");
                words.extend([field, (port * 1_000_000_007 + index).to_string()]);
            }
        }
        ask(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    Ok(())
}
