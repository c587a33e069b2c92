//! `rocescope discover`: what RoCEv2 and priority flow control captures or an interface show, and what speaks
//! against metering it.
//!
//! A capture can show that a stream does not fit the profile of the sequence draft (section 3);
//! that it does, it cannot show. So nothing here provisions anything, and what only the operator
//! can know stands unattested in the configuration that is written.

mod around;
mod found;
mod json;
mod live;
mod people;
mod question;
mod start;
mod stream;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::frame::Layer;

use crate::capture::{Access, Capture, CaptureError};
pub use crate::meter::Format;
use crate::progress::Progress;
use found::Found;
pub use live::Live;
pub use start::{STARTER_STREAMS_MAX, StartError};

/// Streams that are told apart where nobody says another number; each takes about 400 octets.
pub const STREAMS_MAX: usize = 1_000_000;

/// Octets that are gathered before they are written.
const WRITE_LEN: usize = 64 * 1024;

/// A run over some captures, or at an interface.
#[derive(Debug)]
pub struct Run {
    /// Capture files; `-` is standard input.
    pub captures: Vec<PathBuf>,
    /// An interface to look at instead.
    pub live: Option<Live>,
    /// It ends where this turns true, and its results are those up to there.
    pub stop: Arc<AtomicBool>,
    /// What goes to standard output.
    pub format: Format,
    /// Where to write a starter configuration; never over a file that is there.
    pub write_config: Option<PathBuf>,
    /// The layer whose streams the starter names; needed only where several show RoCEv2.
    pub layer: Option<Layer>,
    /// Streams that are told apart, at most.
    pub streams_max: usize,
}

/// Why a run did not come to its end. What was found before has been written.
#[derive(Debug)]
pub enum DiscoverError {
    /// A capture file.
    Capture(CaptureError),
    /// An interface.
    Interface(String),
    /// Standard output.
    Output(io::Error),
    /// The starter configuration.
    Start(PathBuf, StartError),
}

impl fmt::Display for DiscoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Interface(what) => f.write_str(what),
            Self::Output(error) => write!(f, "standard output: {error}"),
            Self::Start(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for DiscoverError {}

/// Reads the captures, or looks at the interface, and writes what they hold to `out`, warnings to
/// `warnings`.
///
/// # Errors
/// The first failure. What was found up to it has been written, but no configuration: it would
/// look whole.
pub fn run(
    run: &Run,
    out: &mut impl Write,
    warnings: &mut impl Write,
) -> Result<(), DiscoverError> {
    let failed_start = |path: &Path, error| DiscoverError::Start(path.to_owned(), error);
    if let Some(path) = &run.write_config {
        start::expect_nothing_at(path).map_err(|error| failed_start(path, error))?;
    }
    let mut found = Found::new(run.streams_max);
    let read = match &run.live {
        Some(live) => {
            found.live = true;
            live::look(live, &run.stop, &mut found, warnings).map_err(DiscoverError::Interface)
        }
        None => read(&run.captures, &run.stop, &mut found).map_err(DiscoverError::Capture),
    };
    // Of what could not be read at all, there is nothing to say.
    if read.is_err() && found.tally.frames == 0 {
        return read;
    }
    // An interface has no end of its own.
    let interrupted = run.live.is_none() && run.stop.load(Ordering::Relaxed);
    for what in &found.truncated {
        // A warning that cannot be written changes no result.
        _ = writeln!(warnings, "warning: {what}");
    }
    let mut buffered = BufWriter::with_capacity(WRITE_LEN, out);
    match run.format {
        Format::Table => people::write(&mut buffered, &found),
        Format::Json => json::write(&mut buffered, &found, read.is_ok() && !interrupted),
    }
    .and_then(|()| buffered.flush())
    .map_err(DiscoverError::Output)?;
    read?;
    if let Some(path) = &run.write_config {
        let interface = run.live.as_ref().map(|live| &*live.interface);
        let written = match interrupted {
            true => Err(StartError::Interrupted),
            false => start::write(path, &found, run.layer, interface),
        };
        let note = written.map_err(|error| failed_start(path, error))?;
        _ = writeln!(warnings, "{}: {note}", path.display());
    }
    Ok(())
}

fn read(
    captures: &[PathBuf],
    stop: &Arc<AtomicBool>,
    found: &mut Found,
) -> Result<(), CaptureError> {
    let progress = Progress::new(captures);
    for path in captures.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        let limits = wire::capture::Limits::default();
        let capture = Capture::open(path, Access::Map)?.stopped_by(stop.clone());
        capture.read(limits, &progress, found)?;
    }
    Ok(())
}
