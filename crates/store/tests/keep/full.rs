//! A full disk: told from other errors, nothing half-applied, and over when there is room.

use std::process::Command;

use store::archive::{Archive, ArchiveLimits, segments};
use store::{Change, EpochFilter, SessionId, Store, StoreError, StoreLimits};

use crate::archive::octets;
use crate::support::{Scratch, facts, messages, report, state};

#[test]
fn a_database_at_its_limit_says_that_it_is_full_and_keeps_what_it_has() {
    let scratch = Scratch::new();
    let small = StoreLimits { octets_max: 200 << 10, ..StoreLimits::default() };
    let (mut store, _) = Store::open(scratch.path(), small, 0).unwrap();
    let session = store.open_session(&facts()).unwrap();
    let mut applied = 0;
    let error = loop {
        let ids = applied + 1..=applied + 10;
        let changes: Vec<_> = ids
            .map(|id| Change::Epoch(Box::new(state(session, &[report(id, 1, true)], id))))
            .collect();
        match store.apply(&changes) {
            Ok(()) => applied += 10,
            Err(error) => break error,
        }
        assert!(applied < 10_000, "never full");
    };
    assert!(error.is_disk_full(), "{error}");
    assert!(error.to_string().ends_with("no room left on the disk"), "{error}");
    let count = |store: &Store| {
        let filter = EpochFilter { limit: 100_000, ..EpochFilter::default() };
        u64::try_from(store.reader().unwrap().epochs(&filter).unwrap().rows.len()).unwrap()
    };
    assert_eq!(count(&store), applied, "all of a transaction or none");
    drop(store);
    let (mut store, _) = Store::open(scratch.path(), StoreLimits::default(), 0).unwrap();
    assert_eq!(count(&store), applied);
    let more = state(store.open_session(&facts()).unwrap(), &[report(1, 1, true)], 1);
    store.apply(&[Change::Epoch(Box::new(more))]).expect("there is room again");
}

#[test]
fn other_errors_are_not_a_full_disk() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let error = Store::open(&file.join("below"), StoreLimits::default(), 0).unwrap_err();
    assert!(matches!(error, StoreError::File { .. }) && !error.is_disk_full(), "{error}");
}

const CHILD: &str = "ROCESCOPE_TEST_LIMITED_FILES";

/// The test runs itself once more in a process whose files cannot become larger than 2 KiB, which
/// the system reports as it does a full disk.
#[test]
fn an_archive_without_room_takes_nothing_in_part_and_goes_on_where_it_was() {
    if let Some(directory) = std::env::var_os(CHILD) {
        return until_full(directory.as_ref());
    }
    let scratch = Scratch::new();
    let name = "full::an_archive_without_room_takes_nothing_in_part_and_goes_on_where_it_was";
    let output = Command::new("sh")
        // Without the trap the signal ends the process; a process that ignores it gets an error.
        .args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, scratch.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let taken = said.lines().filter(|line| line.ends_with("handed over")).count();
    assert!(taken > 2, "{said}");
    // What was handed over is there, and nothing else.
    let (_, repairs) = Archive::open(scratch.path(), ArchiveLimits::default()).unwrap();
    let found = segments(scratch.path()).unwrap();
    assert_eq!((found.len(), repairs.len()), (1, 1));
    assert_eq!((repairs[0].octets_cut, repairs[0].times_unknown), (0, 0));
    let messages = messages(&(1..=30).map(|n| report(1, n, false)).collect::<Vec<_>>());
    assert_eq!(octets(&found[0]), messages[..taken].concat());
}

fn until_full(directory: &std::path::Path) {
    let limits = ArchiveLimits { waiting_octets_max: 1, ..ArchiveLimits::default() };
    let (mut archive, _) = Archive::open(directory, limits).unwrap();
    let messages = messages(&(1..=30).map(|n| report(1, n, false)).collect::<Vec<_>>());
    let session = SessionId(1);
    let mut full = None;
    for message in &messages {
        let done =
            archive.append(session, &facts(), 1, message, Vec::new).and_then(|()| archive.flush());
        match done {
            Ok(()) => println!("\nhanded over"),
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    let error = full.expect("the limit was reached");
    assert!(error.is_disk_full(), "{error}");
    for _ in 0..3 {
        assert!(archive.flush().unwrap_err().is_disk_full(), "it stays full");
        let again = archive.append(session, &facts(), 1, &messages[29], Vec::new);
        assert!(again.unwrap_err().is_disk_full(), "nothing more is taken");
    }
}
