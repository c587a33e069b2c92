//! A directory with the files of a collector, the programs that run in it, and what they leave.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use observe::outcome::Outcome;
use rocescope::meter::Format;
use rocescope::replay;
use serde_json::Value;
use store::{EpochFilter, EpochRow, Reader, SessionRow};

pub const ROCESCOPE: &str = env!("CARGO_BIN_EXE_rocescope");

/// Longer than anything here takes, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with certificates of both sides, made by the program's own `pki init`.
pub struct Site {
    pub directory: PathBuf,
}

impl Site {
    pub fn new(test: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("endure").join(test);
        if directory.exists() {
            fs::remove_dir_all(&directory).expect("an old directory");
        }
        rocescope::pki::init(&directory).expect("certificates");
        Self { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Writes a collector's configuration: who may report for which domains, further lines of
    /// `[ipfix]`, and limits.
    pub fn configure(&self, domains: &str, ipfix: &str, limits: &str) {
        let text = format!(
            "[ipfix]\nlisten = \"127.0.0.1:0\"\ncertificate = \"collector.pem\"\n\
             key = \"collector.key\"\nauthority = \"ca.pem\"\n{ipfix}\n\
             [[ipfix.peer]]\nname = \"agent.example\"\ndomains = [{domains}]\n\
             [http]\nlisten = \"127.0.0.1:0\"\n\
             [store]\ndirectory = \"data\"\n[limits]\n{limits}\n"
        );
        fs::write(self.path("collector.toml"), text).expect("written");
    }

    pub fn collector(&self) -> Collector {
        let program = Program::start(&["collector", "--config"], &self.path("collector.toml"));
        let line = program.line("for IPFIX");
        let (_, behind) = line.split_once("listens on 127.0.0.1:").expect("an address");
        let port = behind.split(' ').next().expect("a port").parse().expect("a port");
        Collector { program, port }
    }

    /// Every epoch in the store.
    pub fn rows(&self) -> Vec<EpochRow> {
        let reader = self.reader();
        let mut filter = EpochFilter { limit: 10_000, ..EpochFilter::default() };
        let mut rows = Vec::new();
        loop {
            let page = reader.epochs(&filter).expect("epochs");
            rows.extend(page.rows);
            filter.cursor = page.next;
            if page.next.is_none() {
                return rows;
            }
        }
    }

    /// Every session in the store, the newest first.
    pub fn sessions(&self) -> Vec<SessionRow> {
        self.reader().sessions(100_000, None).expect("sessions").rows
    }

    pub fn reader(&self) -> Reader {
        Reader::open(&self.data().join("results.db")).expect("a database")
    }

    /// What the store has of every epoch, in order.
    pub fn seen(&self) -> Vec<Seen> {
        let mut seen: Vec<_> = self.rows().iter().map(Seen::stored).collect();
        seen.sort();
        seen
    }

    /// What the archive says of every epoch, in order, and what is warned of on the way.
    pub fn replayed(&self) -> (Vec<Seen>, String) {
        let run = replay::Run {
            paths: vec![self.data().join("archive")],
            format: Format::Json,
            mapping: wire::element::Mapping::default(),
            seed: 1,
        };
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        replay::run(&run, &mut out, &mut warnings).expect("an archive");
        let text = String::from_utf8(out).expect("text");
        let mut seen: Vec<_> = text.lines().map(Seen::replayed).collect();
        seen.sort();
        (seen, String::from_utf8(warnings).expect("text"))
    }
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    until_told(what, &String::new, is_so);
}

/// Waits until something is so; where it never is, what a program said is told.
#[track_caller]
pub fn until_told(what: &str, said: &dyn Fn() -> String, mut is_so: impl FnMut() -> bool) {
    // Counted, not timed: while the whole machine stands still, nothing is late.
    let mut left = PATIENCE.as_millis() / 5;
    while !is_so() {
        assert!(left > 0, "waited in vain until {what}\n{}", said());
        left -= 1;
        thread::sleep(Duration::from_millis(5));
    }
}

/// What is published of an epoch, wherever it was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub session: u64,
    pub domain: u32,
    pub epoch: u64,
    pub outcome: &'static str,
    pub report: u64,
    pub missing: u64,
    pub qp: u32,
    pub window: u32,
    pub flags: u16,
    pub start_ms: u64,
    pub end_ms: u64,
    /// Skipped, filled, expired, abandoned, pending, repeated, requests, unclassified late.
    pub counts: [u64; 8],
    pub qualifications: Vec<String>,
    pub reason: Option<String>,
}

impl Seen {
    pub fn stored(row: &EpochRow) -> Self {
        let latest = &row.epoch.latest;
        let (snapshot, c) = (&latest.snapshot, &latest.snapshot.counts);
        Self {
            session: row.session.0,
            domain: row.domain,
            epoch: latest.epoch_id,
            outcome: row.outcome.word(),
            report: latest.report_id,
            missing: row.epoch.missing,
            qp: snapshot.key.qp,
            window: snapshot.window.get(),
            flags: snapshot.flags.0,
            start_ms: snapshot.start_ms,
            end_ms: snapshot.end_ms,
            counts: [
                c.skipped,
                c.filled,
                c.expired,
                c.abandoned,
                c.pending.into(),
                c.repeated,
                c.requests,
                c.unclassified_late,
            ],
            qualifications: row.qualifications.clone(),
            reason: row.reason.clone(),
        }
    }

    pub fn replayed(line: &str) -> Self {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let number = |key: &str| match &row[key] {
            // Beyond 2^53 - 1.
            Value::String(text) => text.parse().expect("a number"),
            value => value.as_u64().unwrap_or_else(|| panic!("{key} in {line}")),
        };
        let small = |key: &str| u32::try_from(number(key)).expect("32 bits");
        let all = [Outcome::Active, Outcome::Complete, Outcome::Incomplete, Outcome::Invalid];
        let word = row["outcome"].as_str().expect("a word");
        let words = row["qualifications"].as_array().expect("a list");
        Self {
            session: number("session"),
            domain: small("observationDomainId"),
            epoch: number("rdmaSequenceEpochId"),
            outcome: all.iter().map(|o| o.word()).find(|o| *o == word).expect("an outcome"),
            report: number("rdmaSequenceReportId"),
            missing: number("reportGaps"),
            qp: small("rdmaDestinationQP"),
            window: small("rdmaSequenceWindow"),
            flags: u16::try_from(number("rdmaSequenceFlags")).expect("16 bits"),
            start_ms: number("flowStartMilliseconds"),
            end_ms: number("flowEndMilliseconds"),
            counts: [
                "skippedPsnTotalCount",
                "filledPsnTotalCount",
                "expiredPsnTotalCount",
                "abandonedPsnTotalCount",
                "pendingPsnCount",
                "repeatedPsnTotalCount",
                "requestPacketTotalCount",
                "unclassifiedLatePacketTotalCount",
            ]
            .map(number),
            qualifications: words.iter().map(|w| w.as_str().expect("a word").into()).collect(),
            reason: row["reason"].as_str().map(str::to_owned),
        }
    }
}

/// A program that runs, its log read all the time; ended with the test.
pub struct Program {
    child: Child,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    told: Condvar,
}

impl Program {
    pub fn start(arguments: &[&str], config: &Path) -> Self {
        let mut child = Command::new(ROCESCOPE)
            .args(arguments)
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let log = Arc::new(Log::default());
        let told = log.clone();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                told.lines.lock().expect("not poisoned").push(line);
                told.told.notify_all();
            }
        });
        Self { child, log }
    }

    /// The first line of its log with a text in it, once it is there.
    #[track_caller]
    pub fn line(&self, text: &str) -> String {
        let mut left = PATIENCE.as_secs();
        let mut lines = self.log.lines.lock().expect("not poisoned");
        loop {
            if let Some(line) = lines.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            assert!(left > 0, "no line with {text:?} in {lines:#?}");
            let waited = self.log.told.wait_timeout(lines, Duration::from_secs(1));
            let (now, wait) = waited.expect("not poisoned");
            left -= u64::from(wait.timed_out());
            lines = now;
        }
    }

    /// All that it has said so far.
    pub fn said(&self) -> String {
        self.log.lines.lock().expect("not poisoned").join("\n")
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Waits for its end, and gives its exit code.
    #[track_caller]
    pub fn ended(&mut self) -> Option<i32> {
        let mut code = None;
        let child = &mut self.child;
        until("the program has ended", || {
            code = child.try_wait().expect("a child");
            code.is_some()
        });
        code.expect("it has ended").code()
    }

    /// The largest memory that it ever had, in octets.
    pub fn memory_peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let kilooctets = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        kilooctets * 1024
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A collector that listens.
pub struct Collector {
    pub program: Program,
    pub port: u16,
}

impl Collector {
    /// Stops it in order.
    #[track_caller]
    pub fn stop(mut self) -> String {
        self.program.signal("TERM");
        let code = self.program.ended();
        let said = self.program.said();
        assert_eq!(code, Some(0), "{said}");
        said
    }
}

/// Lets a script of this directory loose on a collector, until its last session is over: the cases
/// that it tells of, and the sessions in the order in which they began.
pub fn attacked(site: &Site, collector: &Collector, script: &str) -> (Vec<Value>, Vec<SessionRow>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/endure").join(script);
    let output = Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg(collector.port.to_string())
        .arg(&site.directory)
        .output()
        .expect("python3 is needed for this test");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", collector.program.said());
    let cases: Vec<Value> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    until_told("every session is over", &|| collector.program.said(), || {
        let sessions = site.sessions();
        sessions.len() >= cases.len() && sessions.iter().all(|row| row.closed_ms.is_some())
    });
    let mut sessions = site.sessions();
    sessions.reverse();
    (cases, sessions)
}
