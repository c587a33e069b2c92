//! The program, with a directory of the test's own for what it makes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub const ROCESCOPE: &str = env!("CARGO_BIN_EXE_rocescope");

/// Where a program makes its temporary directories, and stands.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The program, standing here, with nothing of the repository in sight.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(ROCESCOPE);
        command.args(arguments).current_dir(self.path()).env("TMPDIR", self.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program runs")
    }

    /// What stands in the directory.
    pub fn names(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}

pub fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).expect("text")
}

pub fn objects(octets: &[u8]) -> Vec<Value> {
    text(octets).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

pub fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().expect("kill runs").success());
}

/// The programs that this one has started and that still run.
pub fn children(of: u32) -> Vec<u32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let all = fs::read_to_string(path).unwrap_or_default();
    all.split_whitespace().map(|id| id.parse().expect("a number")).collect()
}

/// The final reports that `meter` makes of a capture of the repository, by stream: what its
/// members are but the ids.
pub fn metered(place: &Place, original: &str) -> BTreeMap<String, Value> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures/softroce").join(original);
    let path = path.to_str().expect("text");
    let output = place.run(&["meter", "--attest-all", "--json", path]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all: Vec<Value> = objects(&output.stdout);
    let count = all.len();
    let by_stream: BTreeMap<_, _> = all.into_iter().map(|row| (stream(&row), row)).collect();
    assert_eq!(by_stream.len(), count, "a stream with several epochs");
    by_stream
}

/// What names the stream of a report.
pub fn stream(row: &Value) -> String {
    let names = ["sourceIPv4Address", "sourceIPv6Address", "rdmaDestinationQP", "dot1qVlanId"];
    names.map(|name| row[name].to_string()).join(" ")
}

/// The members of a report that were measured.
pub fn measured(row: &Value) -> Value {
    let mut row = row.clone();
    let members = row.as_object_mut().expect("an object");
    let beside = [
        "scene",
        "outcome",
        "qualifications",
        "reason",
        "reportGaps",
        "session",
        "rdmaSequenceEpochId",
        "rdmaSequenceReportId",
        "closure",
    ];
    members.retain(|name, _| !beside.contains(&name.as_str()));
    row
}
