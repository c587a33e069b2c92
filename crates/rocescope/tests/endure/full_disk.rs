//! The disk of a collector becomes full, and has room again: it stops taking in, says so, drops
//! nothing, and goes on.
//!
//! The disk is a file system in memory of a few megaoctets, so this test needs to be root (a
//! container's root that may mount is enough); where it cannot mount, it fails and says why.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::site::{Site, until};
use crate::wire_side::Connection;
use crate::words::Words;

/// Unmounts when the test is over.
struct Mount(std::path::PathBuf);

impl Mount {
    fn new(at: std::path::PathBuf, octets: u64) -> Self {
        fs::create_dir_all(&at).expect("a directory");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={octets}"), "tmpfs"])
            .arg(&at)
            .output()
            .expect("mount is needed for this test");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "this test mounts a small disk, as root: {said}");
        Self(at)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

// SEQ-10.3, SEQ-7.11, SEQ-7.15, SEQ-7.18
#[test]
fn a_full_disk_stops_intake_and_with_room_again_nothing_is_missing() {
    let site = Site::new("full-disk");
    let _mount = Mount::new(site.data(), 24 << 20);
    site.configure("1", "inactivity_timeout_s = 3600", "reports_waiting_max = 20000");
    let collector = site.collector();
    let ballast = site.data().join("ballast");
    fs::write(&ballast, vec![0; 12 << 20]).expect("there is room for it");

    let mut connection = Connection::new(&site, collector.port);
    let sent = Arc::new(AtomicU64::new(0));
    let counted = sent.clone();
    const REPORTS: u64 = 250_000;
    // Some 30 megaoctets of one epoch, of which the archive has no room for.
    let sending = thread::spawn(move || {
        let words = Words::new(&["requests=1"]).report();
        let of = |id: u64, last: bool| {
            let mut report = words;
            report.report_id = id;
            report.snapshot.counts.requests = id;
            report.snapshot.end_ms = report.snapshot.start_ms + id;
            if last {
                report.snapshot.flags = observe::report::Flags::FINAL_EPOCH;
            }
            report
        };
        for first in (1..=REPORTS).step_by(1_000) {
            let reports: Vec<_> = (first..first + 1_000).map(|id| of(id, id == REPORTS)).collect();
            connection.reports(1, 1, &reports).expect("taken, sooner or later");
            counted.store(first, Ordering::SeqCst);
        }
        connection.close().expect("taken");
    });
    collector.program.line("the disk is full");
    // It stands still.
    let mut before = sent.load(Ordering::SeqCst);
    until("nothing more is taken", || {
        thread::sleep(Duration::from_secs(1));
        let now = sent.load(Ordering::SeqCst);
        std::mem::replace(&mut before, now) == now
    });
    assert!(!sending.is_finished(), "all of it found room: {before}");
    assert!(collector.program.memory_peak() < 256 << 20);
    let latest = site.rows()[0].epoch.latest.report_id;
    assert!(latest < REPORTS);

    fs::remove_file(&ballast).expect("it goes");
    collector.program.line("intake goes on");
    // What is left of the disk is too small for all of it, so more room is made as it is needed.
    let remount = Command::new("mount")
        .args(["-o", "remount,size=512m"])
        .arg(site.data())
        .status()
        .expect("mount");
    assert!(remount.success());
    sending.join().expect("all is sent");
    until("the session is over", || site.sessions().iter().all(|row| row.closed_ms.is_some()));
    collector.stop();
    let seen = site.seen();
    assert_eq!(seen.len(), 1);
    let of = (seen[0].report, seen[0].missing, seen[0].outcome);
    assert_eq!(of, (REPORTS, 0, "complete"));
    let (replayed, warnings) = site.replayed();
    assert_eq!(warnings, "");
    assert_eq!(replayed, seen);
}
