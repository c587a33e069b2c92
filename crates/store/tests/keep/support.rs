//! Reports, sessions and messages to keep, and folders to keep them in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use observe::collect::{Limits, Session};
use observe::outcome::Outcome;
use observe::profile::Shape;
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use store::{EpochState, Rules, SessionFacts, SessionId};
use wire::element::Mapping;
use wire::frame::{Addresses, Namespace};
use wire::ipfix::Encoder;

/// A folder of its own for one test, gone when the test has passed.
pub struct Scratch(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Scratch {
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("keep-{}-{number}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the test");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            _ = fs::remove_dir_all(&self.0);
        }
    }
}

pub fn facts() -> SessionFacts {
    SessionFacts {
        peer: "agent.example".into(),
        fingerprint: [7; 32],
        address: "127.0.0.1:50000".into(),
        opened_ms: 1000,
        rules: Rules { domains: Some(vec![1]), ..Rules::default() },
    }
}

pub fn key(qp: u32) -> StreamKey {
    StreamKey {
        addresses: Addresses::v4([10, 0, 0, 1], [10, 0, 0, 2]),
        namespace: Namespace::default(),
        qp,
        pkey: 0xffff,
    }
}

/// A report in which every number is another one.
pub fn report(epoch_id: u64, report_id: u64, last: bool) -> Report {
    let flags = if last { Flags::FINAL_EPOCH } else { Flags::default() };
    let counts = Counts {
        skipped: report_id + 4,
        filled: report_id + 1,
        expired: 3,
        abandoned: 0,
        pending: 0,
        repeated: 2,
        requests: 2 * report_id + 20,
        unclassified_late: 1,
    };
    let snapshot = Snapshot {
        key: key(u32::try_from(epoch_id & 0xff_ffff).unwrap()),
        window: Window::new(1024).unwrap(),
        flags,
        start_ms: 5,
        end_ms: 6 + report_id,
        counts,
    };
    Report { epoch_id, report_id, snapshot, other_keys: 0 }
}

/// What a session makes of reports of domain 1 and point 9, each received a millisecond after the
/// one before, the first at 2000.
pub fn state(session: SessionId, reports: &[Report], updated_ms: u64) -> EpochState {
    let mut collected = Session::new(Limits::default(), 1);
    for (report, now_ms) in reports.iter().zip(2000..) {
        collected.receive(1, 9, report, now_ms);
    }
    let epoch = collected.epoch(1, reports[0].epoch_id).expect("accepted").clone();
    let outcome = epoch.outcome();
    EpochState { session, domain: 1, epoch, outcome, updated_ms }
}

pub fn with_outcome(mut state: EpochState, outcome: Outcome) -> EpochState {
    state.outcome = outcome;
    state
}

/// A message for each report, the first with the template before.
pub fn messages(reports: &[Report]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(1400).unwrap();
    let mut all = Vec::new();
    for report in reports {
        let mut octets = Vec::new();
        let mut writer = encoder.writer(1, 77, &mut octets);
        let shape = Shape::of(&report.snapshot.key);
        if all.is_empty() {
            writer.template(&shape.template(256, &Mapping::default())).unwrap();
        }
        writer.record(256, |record| shape.write(record, 9, report)).unwrap();
        writer.finish();
        all.push(octets);
    }
    all
}
