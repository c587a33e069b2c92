//! `rocescope discover`: what RoCEv2 and priority flow control captures hold, and what speaks
//! against metering it.
//!
//! A capture can show that a stream does not fit the profile of the sequence draft (section 3);
//! that it does, it cannot show. So nothing here provisions anything, and what only the operator
//! can know stands unattested in the configuration that is written.

mod around;
mod found;
mod json;
mod people;
mod start;
mod stream;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use wire::frame::Layer;

use crate::capture::{Access, Capture, CaptureError};
pub use crate::meter::Format;
use crate::progress::Progress;
use found::Found;
pub use start::{STARTER_STREAMS_MAX, StartError};

/// Streams that are told apart where nobody says another number; each takes about 400 octets.
pub const STREAMS_MAX: usize = 1_000_000;

/// Octets that are gathered before they are written.
const WRITE_LEN: usize = 64 * 1024;

/// A run over some captures.
#[derive(Debug)]
pub struct Run {
    /// Capture files; `-` is standard input.
    pub captures: Vec<PathBuf>,
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
    /// Standard output.
    Output(io::Error),
    /// The starter configuration.
    Start(PathBuf, StartError),
}

impl fmt::Display for DiscoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Output(error) => write!(f, "standard output: {error}"),
            Self::Start(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for DiscoverError {}

/// Reads the captures and writes what they hold to `out`, warnings to `warnings`.
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
    let read = match read(&run.captures, &mut found) {
        // Of what could not be read at all, there is nothing to say.
        Err(error) if found.tally.frames == 0 => return Err(DiscoverError::Capture(error)),
        read => read,
    };
    for what in &found.truncated {
        // A warning that cannot be written changes no result.
        _ = writeln!(warnings, "warning: {what}");
    }
    let mut buffered = BufWriter::with_capacity(WRITE_LEN, out);
    match run.format {
        Format::Table => people::write(&mut buffered, &found),
        Format::Json => json::write(&mut buffered, &found, read.is_ok()),
    }
    .and_then(|()| buffered.flush())
    .map_err(DiscoverError::Output)?;
    read.map_err(DiscoverError::Capture)?;
    if let Some(path) = &run.write_config {
        let written = start::write(path, &found, run.layer);
        let note = written.map_err(|error| failed_start(path, error))?;
        _ = writeln!(warnings, "{}: {note}", path.display());
    }
    Ok(())
}

fn read(captures: &[PathBuf], found: &mut Found) -> Result<(), CaptureError> {
    let progress = Progress::new(captures);
    for path in captures {
        let limits = wire::capture::Limits::default();
        Capture::open(path, Access::Map)?.read(limits, &progress, found)?;
    }
    Ok(())
}
