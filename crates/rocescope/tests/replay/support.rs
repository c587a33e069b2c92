//! Archives to replay, and what replaying them says.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use observe::profile::Shape;
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use rocescope::replay::{self, Format, ReplayError, Run, Summary};
use serde_json::Value;
use store::{Rules, SessionFacts};
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
            .join(format!("replay-{}-{number}", std::process::id()));
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

pub fn facts(rules: Rules) -> SessionFacts {
    SessionFacts {
        peer: "agent.example".into(),
        fingerprint: [1; 32],
        address: "127.0.0.1:1".into(),
        opened_ms: 0,
        rules,
    }
}

/// A report that is consistent in itself.
pub fn report(epoch_id: u64, report_id: u64, requests: u64, last: bool) -> Report {
    let key = StreamKey {
        addresses: Addresses::v4([10, 0, 0, 1], [10, 0, 0, 2]),
        namespace: Namespace::default(),
        qp: 17,
        pkey: 0xffff,
    };
    let flags = if last { Flags::FINAL_EPOCH } else { Flags::default() };
    let counts = Counts {
        skipped: 0,
        filled: 0,
        expired: 0,
        abandoned: 0,
        pending: 0,
        repeated: 0,
        requests,
        unclassified_late: 0,
    };
    let window = Window::new(64).unwrap();
    let snapshot = Snapshot { key, window, flags, start_ms: 1, end_ms: 2, counts };
    Report { epoch_id, report_id, snapshot, other_keys: 0 }
}

/// One message of a domain: the template, a report of point 9, or both.
pub fn message(domain: u32, template: bool, report: Option<&Report>) -> Vec<u8> {
    let shape = Shape::of(&self::report(1, 1, 1, false).snapshot.key);
    let spec = shape.template(256, &Mapping::default());
    let mut encoder = Encoder::new(1400).unwrap();
    let mut octets = Vec::new();
    // An encoder writes no record before its template; what is not to be sent is thrown away.
    let mut writer = encoder.writer(domain, 77, &mut octets);
    writer.template(&spec).unwrap();
    if template && let Some(report) = report {
        writer.record(256, |record| shape.write(record, 9, report)).unwrap();
    }
    writer.finish();
    if template {
        return octets;
    }
    octets.clear();
    let mut writer = encoder.writer(domain, 77, &mut octets);
    if let Some(report) = report {
        writer.record(256, |record| shape.write(record, 9, report)).unwrap();
    }
    writer.finish();
    octets
}

/// What replaying paths gives: the lines, the warnings, the summary.
#[derive(Debug)]
pub struct Replayed {
    pub lines: Vec<Value>,
    pub warnings: Vec<String>,
    pub summary: Summary,
}

pub fn replayed(paths: &[PathBuf]) -> Result<Replayed, ReplayError> {
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let run =
        Run { paths: paths.to_vec(), format: Format::Json, mapping: Mapping::default(), seed: 1 };
    let summary = replay::run(&run, &mut out, &mut warnings)?;
    let text = |octets| String::from_utf8(octets).expect("text");
    let lines = text(out).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let warnings = text(warnings).lines().map(str::to_owned).collect();
    Ok(Replayed { lines, warnings, summary })
}
