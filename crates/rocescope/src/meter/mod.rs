//! `rocescope meter`: captures in, reports out.

pub(crate) mod json;
mod output;
pub(crate) mod pfc;
mod streams;
pub(crate) mod table;

use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use observe::meter::{Meter, MeterCounts, Settings};
use observe::provision::Provisioning;
use wire::element::Mapping;

pub use crate::observation::{Observation, Tally};
pub use json::{EXACT_MAX, Place};
pub use output::{Format, IpfixError};

use crate::capture::{Access, Capture, CaptureError};
use crate::observation::{Pipeline, Sink};
use crate::progress::Progress;
use output::Outputs;

/// A metering run.
#[derive(Debug)]
pub struct Run {
    /// Capture files in their order; `-` is standard input.
    pub captures: Vec<PathBuf>,
    /// How frames are looked at.
    pub observation: Observation,
    /// Where this is observed.
    pub place: Place,
    /// What is metered.
    pub provisioning: Provisioning,
    /// The meter's bounds.
    pub settings: Settings,
    /// Final reports that wait for the reading of a drop counter, at most.
    pub finals_waiting_max: usize,
    /// Mirror sessions that are followed, at most.
    pub mirror_sessions_max: usize,
    /// Reports of epochs that go on, this far apart in capture time.
    pub report_interval_ns: Option<u64>,
    /// What goes to standard output.
    pub format: Format,
    /// The window that the table need not mention.
    pub window: u32,
    /// An IPFIX File to write.
    pub ipfix: Option<PathBuf>,
    /// Numbers of the drafts' elements.
    pub mapping: Mapping,
    /// Count priority flow control frames, as received by this interface.
    pub pfc_interface: Option<u32>,
    /// Observation ends where this turns true, and its results are those up to there.
    pub stop: Arc<AtomicBool>,
}

/// Why a run did not come to its end. What was measured before stands.
#[derive(Debug)]
pub enum MeterError {
    /// A capture file.
    Capture(CaptureError),
    /// Standard output.
    Output(io::Error),
    /// The IPFIX File.
    Ipfix(IpfixError),
    /// The IPFIX File to write is one of the captures to read.
    SameFile(PathBuf),
}

impl fmt::Display for MeterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Output(error) => write!(f, "standard output: {error}"),
            Self::Ipfix(error) => error.fmt(f),
            Self::SameFile(path) => {
                write!(
                    f,
                    "{}: is a capture to read, expected another file to write",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for MeterError {}

/// What a run counted.
#[derive(Clone, Debug)]
pub struct Done {
    /// Frames.
    pub tally: Tally,
    /// Requests.
    pub counts: MeterCounts,
}

/// Meters the captures and writes the results to `out`, warnings to `warnings`.
///
/// # Errors
/// The first failure; the results up to it have been written.
pub fn run(run: Run, out: &mut impl Write, warnings: &mut impl Write) -> Result<Done, MeterError> {
    refuse_to_overwrite(&run)?;
    let outputs = Outputs::new(&run, out, warnings)?;
    let meter = Meter::new(run.provisioning, run.settings);
    let mut pipeline = Pipeline::new(
        run.observation,
        meter,
        run.finals_waiting_max,
        run.mirror_sessions_max,
        run.report_interval_ns,
        outputs,
    );
    let read = read(&run.captures, &run.stop, &mut pipeline);
    let (outputs, tally, counts, released_early) = pipeline.finish();
    let unread = read.is_err() && tally.frames == 0;
    outputs.finish(unread, &tally, counts, released_early)?;
    read.map_err(MeterError::Capture)?;
    Ok(Done { tally, counts })
}

/// A capture is never overwritten with what is made of it, whatever name it has.
fn refuse_to_overwrite(run: &Run) -> Result<(), MeterError> {
    let Some(path) = &run.ipfix else { return Ok(()) };
    let identity = |path: &PathBuf| std::fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    let written = identity(path);
    if written.is_some() && run.captures.iter().any(|capture| identity(capture) == written) {
        return Err(MeterError::SameFile(path.clone()));
    }
    Ok(())
}

fn read<S: Sink>(
    captures: &[PathBuf],
    stop: &Arc<AtomicBool>,
    pipeline: &mut Pipeline<S>,
) -> Result<(), CaptureError> {
    let progress = Progress::new(captures);
    for path in captures.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        let read = Capture::open(path, Access::Map).and_then(|capture| {
            pipeline.file();
            let capture = capture.stopped_by(stop.clone());
            capture.read(wire::capture::Limits::default(), &progress, pipeline)
        });
        if let Err(error) = read {
            pipeline.damaged();
            return Err(error);
        }
    }
    Ok(())
}
