//! The program itself, with its store: signals, kills, and what is found afterwards.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use observe::outcome::Outcome::{self, Active, Complete, Incomplete, Invalid};
use rocescope::meter::Format;
use rocescope::replay;
use serde_json::Value;
use store::{EpochFilter, Reader};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use super::support::{Export, Site, exported, last, report};

const PATIENCE: Duration = Duration::from_secs(30);

struct Program {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    port: u16,
}

impl Program {
    async fn start(site: &Site) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rocescope"))
            .arg("collector")
            .arg("--config")
            .arg(site.directory.join("collector.toml"))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut program = Self { child, log, port: 0 };
        let line = program.line("listens on ").await;
        let (_, behind) = line.split_once("listens on 127.0.0.1:").unwrap();
        program.port = behind.split(' ').next().unwrap().parse().unwrap();
        program
    }

    /// The next line of the log with a text in it.
    async fn line(&mut self, text: &str) -> String {
        let mut before = Vec::new();
        let found = async {
            while let Some(line) = self.log.next_line().await.unwrap() {
                if line.contains(text) {
                    return Some(line);
                }
                before.push(line);
            }
            None
        };
        match timeout(PATIENCE, found).await {
            Ok(Some(line)) => line,
            _ => panic!("no line with {text:?} behind {before:#?}"),
        }
    }

    async fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().await.unwrap();
        assert!(sent.success());
    }

    async fn ended(mut self) -> Option<i32> {
        timeout(PATIENCE, self.child.wait()).await.unwrap().unwrap().code()
    }
}

/// Session, epoch id, latest report id, missing reports and outcome.
type Row = (u64, u64, u64, u64, Outcome);

fn stored(directory: &Path) -> BTreeSet<Row> {
    let reader = Reader::open(&directory.join("results.db")).unwrap();
    let filter = EpochFilter { limit: 1_000, ..EpochFilter::default() };
    let rows = reader.epochs(&filter).unwrap().rows;
    rows.iter()
        .map(|row| {
            let latest = &row.epoch.latest;
            let (session, missing) = (row.session.0, row.epoch.missing);
            (session, latest.epoch_id, latest.report_id, missing, row.outcome)
        })
        .collect()
}

/// What the archive says, and what is warned of on the way.
fn replayed(directory: &Path) -> (BTreeSet<Row>, String) {
    let run = replay::Run {
        paths: vec![directory.join("archive")],
        format: Format::Json,
        mapping: wire::element::Mapping::default(),
        seed: 1,
    };
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    replay::run(&run, &mut out, &mut warnings).unwrap();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} in {line}"));
        let word = row["outcome"].as_str().unwrap();
        let all = [Active, Complete, Incomplete, Invalid];
        let outcome = all.into_iter().find(|outcome| outcome.word() == word).unwrap();
        let (epoch, report) = (number("rdmaSequenceEpochId"), number("rdmaSequenceReportId"));
        (number("session"), epoch, report, number("reportGaps"), outcome)
    };
    let rows = String::from_utf8(out).unwrap().lines().map(row).collect();
    (rows, String::from_utf8(warnings).unwrap())
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "waited in vain until {what}");
}

// SEQ-7.11, SEQ-7.13, SEQ-7.18
#[tokio::test]
async fn what_is_stored_is_what_the_archive_says() {
    let site = Site::new("stored", "");
    let data = site.directory.join("data");
    let program = Program::start(&site).await;
    let mut one = site.agent_at(program.port).await;
    let (mut export, begin) = Export::new(1);
    one.write_all(&begin).await.unwrap();
    let mut other = report(4, 2);
    other.snapshot.end_ms = 99;
    let reports = [
        report(1, 1),
        last(report(1, 2)),
        report(2, 1),
        report(2, 4),
        report(3, 1),
        report(4, 2),
        other,
        report(1, 1),
    ];
    for report in reports {
        one.write_all(&export.reports(&[report])).await.unwrap();
    }
    one.write_all(&exported(9, &[report(1, 1)])).await.unwrap();
    one.write_all(&export.reports(&[last(report(3, 2))])).await.unwrap();
    // Which of two handshakes at the same time makes the first session, nobody says.
    until("the first has begun", || stored(&data).iter().any(|row| row.0 == 1)).await;
    let mut two = site.agent_at(program.port).await;
    two.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    one.shutdown().await.unwrap();
    until("the first session is over", || stored(&data).contains(&(1, 2, 4, 2, Incomplete))).await;
    until("the second has begun", || stored(&data).iter().any(|row| row.0 == 2)).await;
    program.signal("TERM").await;
    assert_eq!(program.ended().await, Some(0));
    let expected = BTreeSet::from([
        (1, 1, 2, 0, Complete),
        (1, 2, 4, 2, Incomplete),
        (1, 3, 2, 0, Complete),
        (1, 4, 2, 1, Invalid),
        (2, 1, 1, 0, Incomplete),
    ]);
    assert_eq!(stored(&data), expected);
    assert_eq!(replayed(&data), (expected, String::new()));
}

// SEQ-7.11, SEQ-7.13
#[tokio::test]
async fn after_a_kill_what_was_published_is_there_and_what_was_open_incomplete() {
    let site = Site::new("killed", "");
    let data = site.directory.join("data");
    let mut program = Program::start(&site).await;
    let mut agent = site.agent_at(program.port).await;
    let reports = [last(report(1, 1)), report(2, 1)];
    agent.write_all(&exported(1, &reports)).await.unwrap();
    until("both are stored", || stored(&data).len() == 2).await;
    program.child.start_kill().unwrap();
    assert_eq!(program.ended().await, None);
    let expected = BTreeSet::from([(1, 1, 1, 0, Complete), (1, 2, 1, 0, Active)]);
    assert_eq!(stored(&data), expected);

    let program = Program::start(&site).await;
    let expected = BTreeSet::from([(1, 1, 1, 0, Complete), (1, 2, 1, 0, Incomplete)]);
    assert_eq!(stored(&data), expected);
    let mut agent = site.agent_at(program.port).await;
    agent.write_all(&exported(1, &[last(report(1, 1))])).await.unwrap();
    until("a new session has its own", || stored(&data).contains(&(2, 1, 1, 0, Complete))).await;
    program.signal("INT").await;
    assert_eq!(program.ended().await, Some(0));
    let (rows, warnings) = replayed(&data);
    assert_eq!(rows, stored(&data));
    // The kill left no end of the first session.
    assert!(warnings.contains("no end of session 1"), "{warnings}");
    assert_eq!(warnings.lines().count(), 1, "{warnings}");
}

#[tokio::test]
async fn a_hangup_reads_the_configuration_anew_and_a_bad_one_leaves_the_old() {
    let site = Site::new("hangup", "");
    let mut program = Program::start(&site).await;
    site.write("collector.toml", "[ipfix]\nlisten = 5\n");
    program.signal("HUP").await;
    program.line("the old configuration goes on").await;
    let mut agent = site.agent_at(program.port).await;
    agent.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    program.line("session 1 of agent.example").await;

    site.configure("", "", "");
    let path = site.directory.join("collector.toml");
    let text = super::support::text(&path).replace("agent.example", "other.example");
    site.write("collector.toml", &text);
    program.signal("HUP").await;
    program.line("session ends: no longer admitted").await;
    program.signal("TERM").await;
    assert_eq!(program.ended().await, Some(0));
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_ends_the_program_with_a_line() {
    let site = Site::new("unusable", "");
    std::fs::remove_file(site.directory.join("ca.pem")).unwrap();
    let program = Command::new(env!("CARGO_BIN_EXE_rocescope"))
        .arg("collector")
        .arg("--config")
        .arg(site.directory.join("collector.toml"))
        .output();
    let output = timeout(PATIENCE, program).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("line 5: ipfix.authority: "), "{said}");
}
