//! A process that is killed while it keeps things: nothing that it had published is lost.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use observe::outcome::Outcome;
use store::archive::{Archive, ArchiveLimits, Entry, segments};
use store::{Change, EpochFilter, SessionId, Store, StoreLimits};

use crate::support::{Scratch, facts, messages, report, state};

const CHILD: &str = "ROCESCOPE_TEST_KEEPS_IN";
const ROUNDS: u64 = 12;

/// The test runs itself in a process that keeps as fast as it can and says what it has kept, and
/// kills that after so many lines, at whatever it is doing by then.
#[test]
fn a_process_killed_at_any_moment_has_lost_nothing_that_it_published() {
    // SEQ-7.11, SEQ-7.13
    if let Some(directory) = std::env::var_os(CHILD) {
        return keep(directory.as_ref());
    }
    let scratch = Scratch::new();
    let mut published: Vec<(SessionId, u64)> = Vec::new();
    for round in 0..ROUNDS {
        // The numbers of a generator, so that each run kills at the same lines.
        let lines = usize::try_from((round * 7919 + 13) % 97).unwrap();
        let said = killed_after(scratch.path(), lines);
        let session = said.first().expect("the session").0;
        published.extend(&said[1..]);
        let limits = StoreLimits::default();
        let (store, recovery) = Store::open(scratch.path(), limits, 9000 + round).unwrap();
        assert_eq!(recovery.sessions_closed, 1, "round {round}");
        let reader = store.reader().unwrap();
        for (session, epoch_id) in &published {
            let row = reader.epoch(*session, 1, *epoch_id).unwrap();
            let row = row.unwrap_or_else(|| panic!("round {round}: {epoch_id} is lost"));
            assert_eq!(row.outcome, Outcome::Complete, "round {round}, epoch {epoch_id}");
            assert_eq!(row.epoch.latest, report(*epoch_id, 2, true));
        }
        let active = EpochFilter { outcome: Some(Outcome::Active), limit: 1, ..Default::default() };
        assert_eq!(reader.epochs(&active).unwrap().rows, [], "round {round}");
        let ours = EpochFilter { limit: 1_000_000, ..EpochFilter::default() };
        for row in reader.epochs(&ours).unwrap().rows {
            // No final was made up.
            let complete = row.outcome == Outcome::Complete;
            assert_eq!(complete, row.epoch.latest.report_id == 2, "{row:?}");
            assert!(complete || row.outcome == Outcome::Incomplete, "{row:?}");
        }
        let last = said.last().filter(|_| said.len() > 1).map(|(_, epoch_id)| *epoch_id);
        archived(scratch.path(), session, last);
    }
    assert!(published.len() > 100, "{}", published.len());
}

/// The archive has the messages of every epoch up to the last that was published, whole and in
/// order.
fn archived(directory: &Path, session: SessionId, last: Option<u64>) {
    let archive = directory.join("archive");
    let (_, repairs) = Archive::open(&archive, ArchiveLimits::default()).unwrap();
    assert!(repairs.iter().all(|repair| repair.times_unknown == 0), "{repairs:?}");
    let all = segments(&archive).unwrap();
    assert!(all.iter().all(|segment| segment.closed));
    let ours = all.iter().filter(|segment| segment.session == session);
    let mut times = Vec::new();
    for segment in ours {
        let mut rest = &crate::archive::octets(segment)[..];
        let mut found = 0;
        while let Ok(wire::ipfix::Frame::Message { rest: behind, .. }) = wire::ipfix::frame(rest) {
            rest = behind;
            found += 1;
        }
        assert!(rest.is_empty());
        let entries = segment.clock().unwrap().unwrap();
        assert_eq!(entries.len(), found, "an entry for each message");
        times.extend(entries);
    }
    let expected: Vec<_> =
        (1..).map(|received_ms| Entry::Message { received_ms }).take(times.len()).collect();
    assert_eq!(times, expected);
    // Two messages an epoch.
    let needed = usize::try_from(2 * last.unwrap_or(0)).unwrap();
    assert!(times.len() >= needed, "{} of {needed}", times.len());
}

/// Runs a process until it has said so many things, kills it, and gives all that it said.
fn killed_after(directory: &Path, lines: usize) -> Vec<(SessionId, u64)> {
    let name = "killed::a_process_killed_at_any_moment_has_lost_nothing_that_it_published";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    let kept = |line: &str| {
        let (session, epoch) = line.strip_prefix("kept ")?.split_once(' ')?;
        Some((SessionId(session.parse().ok()?), epoch.parse().ok()?))
    };
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while said.len() <= lines && reader.read_line(&mut line).unwrap() > 0 {
        said.extend(kept(line.trim_end()));
        line.clear();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had said and was not read yet counts too; a cut line does not.
    while reader.read_line(&mut line).unwrap() > 0 {
        if line.ends_with('\n') {
            said.extend(kept(line.trim_end()));
        }
        line.clear();
    }
    said
}

/// Publishes one epoch after the other, with its messages in the archive before.
fn keep(directory: &Path) {
    let (mut store, _) = Store::open(directory, StoreLimits::default(), 1).unwrap();
    let limits = ArchiveLimits { segment_octets_max: 3000, ..ArchiveLimits::default() };
    let (mut archive, _) = Archive::open(&directory.join("archive"), limits).unwrap();
    let session = store.open_session(&facts()).unwrap();
    println!("\nkept {} 0", session.0);
    let mut received_ms = 0;
    for epoch_id in 1.. {
        let reports = [report(epoch_id, 1, false), report(epoch_id, 2, true)];
        for (message, n) in messages(&reports).iter().zip(1..) {
            received_ms += 1;
            archive.append(session, &facts(), received_ms, message, Vec::new).unwrap();
            archive.flush().unwrap();
            let state = state(session, &reports[..n], received_ms);
            store.apply(&[Change::Epoch(Box::new(state))]).unwrap();
        }
        println!("kept {} {epoch_id}", session.0);
    }
}
