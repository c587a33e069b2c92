//! Running the program and the library, and reading what they say.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use observe::meter::Settings;
use observe::provision::{Provisioning, Rule};
use observe::window::Window;
use rocescope::meter::{self, Done, Format, MeterError, Observation, Place, Run};
use serde_json::Value;
use wire::element::Mapping;
use wire::frame::Layer;

/// The program.
pub const ROCESCOPE: &str = env!("CARGO_BIN_EXE_rocescope");

/// A capture, or a folder of them, that comes with the repository.
pub fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures").join(name)
}

/// A folder of its own for one test, gone when the test has passed.
pub struct Scratch {
    folder: PathBuf,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("meter-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn file(&self, name: &str, octets: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, octets).expect("a file for the test");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays shows a failure, or is overwritten.
        if !thread::panicking() {
            _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// How a process ended and what it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// Its lines of standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        json_lines(&self.out)
    }

    /// Its lines on standard error that tell of a failure.
    pub fn failures(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("rocescope: ")).collect()
    }
}

/// Runs a program to its end, with `input` on its standard input.
#[track_caller]
pub fn program<A: AsRef<OsStr>>(name: &str, arguments: &[A], input: Vec<u8>) -> Ended {
    let spawned = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => panic!("{name} is needed for this test (`make test` installs it): {error}"),
    };
    let mut standard_input = child.stdin.take().expect("a pipe");
    // A program may end before it has read everything.
    let writer = thread::spawn(move || _ = standard_input.write_all(&input));
    let output = child.wait_with_output().expect("output");
    writer.join().expect("written");
    let text = |octets| String::from_utf8(octets).expect("text");
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs `rocescope`.
#[track_caller]
pub fn rocescope<A: AsRef<OsStr>>(arguments: &[A]) -> Ended {
    program(ROCESCOPE, arguments, Vec::new())
}

/// Runs `rocescope meter --attest-all --json` on some captures, with these further options.
#[track_caller]
pub fn meter<P: AsRef<Path>>(captures: &[P], options: &[&str]) -> Ended {
    let mut arguments = vec![OsStr::new("meter"), "--attest-all".as_ref(), "--json".as_ref()];
    arguments.extend(options.iter().map(OsStr::new));
    arguments.extend(captures.iter().map(|path| path.as_ref().as_os_str()));
    rocescope(&arguments)
}

/// As [`meter`], and it is to succeed.
#[track_caller]
pub fn good<P: AsRef<Path>>(captures: &[P], options: &[&str]) -> Ended {
    let ended = meter(captures, options);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended
}

/// A run of the library over some captures, everything attested.
pub fn run<P: AsRef<Path>>(captures: &[P], window: u32) -> Run {
    let width = Window::new(window).expect("a window");
    Run {
        captures: captures.iter().map(|path| path.as_ref().to_owned()).collect(),
        observation: Observation { layer: Layer::Outer, check_icrc: false, sliced: false },
        place: Place { domain: 1, point: 1 },
        provisioning: Provisioning::new(Rule::everything(width).to_vec(), 16).expect("attested"),
        settings: Settings::default(),
        finals_waiting_max: 1_000_000,
        mirror_sessions_max: 1024,
        report_interval_ns: None,
        format: Format::Json,
        window,
        ipfix: None,
        mapping: Mapping::default(),
        pfc_interface: None,
        stop: std::sync::Arc::default(),
    }
}

/// What a run of the library gave.
pub struct Ran {
    pub reports: Vec<Value>,
    pub warnings: String,
    pub done: Result<Done, MeterError>,
}

#[track_caller]
pub fn library(run: Run) -> Ran {
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let done = meter::run(run, &mut out, &mut warnings);
    let text = |octets| String::from_utf8(octets).expect("text");
    Ran { reports: json_lines(&text(out)), warnings: text(warnings), done }
}

/// The epochs of a run of the library that is to succeed.
#[track_caller]
pub fn library_epochs(run: Run) -> Vec<Epoch> {
    let ran = library(run);
    ran.done.expect("a good run");
    epochs(&ran.reports)
}

#[track_caller]
fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// What is known of an epoch, whether from a report or from the facts beside a capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch {
    pub source: String,
    pub destination: String,
    pub qp: u64,
    pub pkey: u64,
    pub start: u64,
    pub end: u64,
    pub window: u64,
    /// Closure causes, by name.
    pub reasons: Vec<String>,
    pub requests: u64,
    pub skipped: u64,
    pub filled: u64,
    pub expired: u64,
    pub abandoned: u64,
    pub pending: u64,
    pub repeated: u64,
    pub late: u64,
}

impl Epoch {
    /// Requests, skipped, filled, expired, abandoned, repeated, unclassified late.
    pub fn counts(&self) -> [u64; 7] {
        [
            self.requests,
            self.skipped,
            self.filled,
            self.expired,
            self.abandoned,
            self.repeated,
            self.late,
        ]
    }

    pub fn has(&self, reason: &str) -> bool {
        self.reasons.iter().any(|r| r == reason)
    }
}

/// A number, which is a string where it is beyond what JSON keeps exactly.
#[track_caller]
pub fn number(value: &Value, name: &str) -> u64 {
    let member = &value[name];
    let beyond = || member.as_str()?.parse().ok().filter(|number| *number >= 1 << 53);
    let found = member.as_u64().filter(|number| *number < 1 << 53).or_else(beyond);
    found.unwrap_or_else(|| panic!("{name} is no number in {value}"))
}

fn text(value: &Value, names: [&str; 2]) -> String {
    let found = names.into_iter().find_map(|name| value[name].as_str());
    found.unwrap_or_else(|| panic!("none of {names:?} in {value}")).to_owned()
}

/// Names of the masks of a report.
pub fn flags(report: &Value) -> Vec<&str> {
    let flags = report["flags"].as_array().expect("flags");
    flags.iter().map(|flag| flag.as_str().expect("a name")).collect()
}

/// A report without what only JSON says of it: what stands in a record.
pub fn in_a_record(report: &Value) -> Value {
    let mut report = report.clone();
    report.as_object_mut().expect("an object").remove("closure");
    report
}

/// The final sequence reports, in an order that only depends on what they say.
#[track_caller]
pub fn epochs(reports: &[Value]) -> Vec<Epoch> {
    let finals = reports
        .iter()
        .filter(|report| report["record"] == "sequence" && flags(report).contains(&"finalEpoch"));
    let mut epochs: Vec<_> = finals.map(of_report).collect();
    epochs.sort();
    epochs
}

fn of_report(report: &Value) -> Epoch {
    let mut reasons: Vec<_> = flags(report)
        .into_iter()
        .filter(|flag| !matches!(*flag, "finalEpoch" | "generationUnverified"))
        .map(str::to_owned)
        .collect();
    reasons.sort();
    Epoch {
        source: text(report, ["sourceIPv4Address", "sourceIPv6Address"]),
        destination: text(report, ["destinationIPv4Address", "destinationIPv6Address"]),
        qp: number(report, "rdmaDestinationQP"),
        pkey: number(report, "rdmaPartitionKey"),
        start: number(report, "flowStartMilliseconds"),
        end: number(report, "flowEndMilliseconds"),
        window: number(report, "rdmaSequenceWindow"),
        reasons,
        requests: number(report, "requestPacketTotalCount"),
        skipped: number(report, "skippedPsnTotalCount"),
        filled: number(report, "filledPsnTotalCount"),
        expired: number(report, "expiredPsnTotalCount"),
        abandoned: number(report, "abandonedPsnTotalCount"),
        pending: number(report, "pendingPsnCount"),
        repeated: number(report, "repeatedPsnTotalCount"),
        late: number(report, "unclassifiedLatePacketTotalCount"),
    }
}

/// The epochs of a list of facts.
#[track_caller]
pub fn of_facts(facts: &Value) -> Vec<Epoch> {
    let mut epochs: Vec<_> =
        facts.as_array().expect("a list of epochs").iter().map(of_fact).collect();
    epochs.sort();
    epochs
}

fn of_fact(fact: &Value) -> Epoch {
    let reason = fact["reason"].as_str().expect("a reason, if an empty one");
    let mut reasons: Vec<_> =
        reason.split('+').filter(|reason| !reason.is_empty()).map(str::to_owned).collect();
    reasons.sort();
    Epoch {
        source: text(fact, ["source"; 2]),
        destination: text(fact, ["destination"; 2]),
        qp: number(fact, "qp"),
        pkey: number(fact, "pkey"),
        start: number(fact, "start"),
        end: number(fact, "end"),
        window: number(fact, "window"),
        reasons,
        requests: number(fact, "requests"),
        skipped: number(fact, "skipped"),
        filled: number(fact, "filled"),
        expired: number(fact, "expired"),
        abandoned: number(fact, "abandoned"),
        pending: number(fact, "pending"),
        repeated: number(fact, "repeated"),
        late: number(fact, "late"),
    }
}

/// A capture with what is known of it.
pub struct Known {
    pub name: String,
    pub path: PathBuf,
    pub facts: Value,
}

/// Every capture of a folder that has facts beside it, in the order of their names.
pub fn known(folder: &str) -> Vec<Known> {
    let mut known: Vec<_> = fs::read_dir(capture(folder))
        .expect("a folder of captures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|facts| {
            let path = captured(&facts);
            let text = fs::read_to_string(&facts).expect("facts");
            let facts = serde_json::from_str(&text).expect("JSON");
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            Known { name, path, facts }
        })
        .collect();
    known.sort_by(|a, b| a.name.cmp(&b.name));
    known
}

/// `a.json` belongs to `a`, or to `a` with the ending of a capture.
fn captured(facts: &Path) -> PathBuf {
    let stem = facts.with_extension("");
    [stem.clone(), stem.with_extension("pcap"), stem.with_extension("pcapng")]
        .into_iter()
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{}: no capture belongs to it", facts.display()))
}
