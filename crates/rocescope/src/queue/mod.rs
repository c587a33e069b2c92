//! Queue telemetry offline: `queue check` validates rows of others, `queue aggregate` sums them,
//! `queue measure` makes them out of the events of a source.
//!
//! Bounded: a document and a line have a longest length, and rows that have to be remembered a
//! largest number.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use observe::queue::EpochId;
use observe::queue::aggregate::{Aggregator, Full};
pub use observe::queue::meter::Settings;

use crate::layout::counted;
use crate::meter::Format;

pub mod aggregate;
pub mod board;
pub mod check;
pub mod documents;
pub mod events;
pub mod feed;
pub mod measure;
pub mod ns3;
pub mod reading;
pub mod record;
pub mod sonic;
#[cfg(test)]
mod tests;
pub mod tree;

/// Rows that are remembered, at most, unless another number is asked for.
pub const ROWS_MAX: usize = 1_000_000;

/// Why a command ends early.
#[derive(Debug)]
pub enum QueueError {
    /// Nothing can be written.
    Output(io::Error),
    /// A file cannot be read.
    Input(io::Error),
    /// A line has a document that is none.
    Document(u64, documents::Unread),
    /// A line has an event that is none.
    Event(u64, String),
    /// There is no room for the row of a line.
    Full(u64, Full),
    /// It was all read, and so much is wrong.
    Findings(u64),
    /// There is no document.
    Empty,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) | Self::Input(error) => error.fmt(f),
            Self::Document(line, error) => write!(f, "line {line}: {error}"),
            Self::Event(line, error) => write!(f, "line {line}: {error}"),
            Self::Full(line, error) => write!(f, "line {line}: {error} (--rows-max)"),
            Self::Findings(1) => f.write_str("1 finding"),
            Self::Findings(count) => write!(f, "{count} findings"),
            Self::Empty => f.write_str("no document, expected at least one"),
        }
    }
}

/// A file that a command cannot go on with, and why.
#[derive(Debug)]
pub struct Failed {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub error: QueueError,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            QueueError::Output(error) => error.fmt(f),
            error => write!(f, "{}: {error}", self.file.display()),
        }
    }
}

/// Makes epoch ids that are never made twice: random ones.
///
/// # Errors
/// Where the machine has no randomness. It is tried once here, so that it is not found out in the
/// middle of a measurement.
// QUE-id.1
pub fn fresh_epochs() -> Result<impl FnMut() -> EpochId, String> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).map_err(|error| format!("no random epoch ids: {error}"))?;
    let mut made: u64 = 0;
    Ok(move || {
        let mut octets = octets;
        // Should randomness ever fail later, ids still differ from all that were made before.
        if getrandom::fill(&mut octets).is_err() {
            made += 1;
            for (octet, count) in octets.iter_mut().zip(made.to_be_bytes().into_iter().rev()) {
                *octet ^= count;
            }
        }
        EpochId::random(octets)
    })
}

fn with_file<T>(
    file: &Path,
    act: impl FnOnce(&mut dyn BufRead) -> Result<T, QueueError>,
) -> Result<T, Failed> {
    let failed = |error| Failed { file: file.to_owned(), error };
    if file == Path::new("-") {
        return act(&mut io::stdin().lock()).map_err(failed);
    }
    let input = File::open(file).map_err(|error| failed(QueueError::Input(error)))?;
    act(&mut BufReader::new(input)).map_err(failed)
}

/// `queue check`: findings to `out`, what was looked at to `summary`.
///
/// # Errors
/// Where there is a finding, or the file cannot be checked.
pub fn run_check(
    file: &Path,
    rows_max: usize,
    format: Format,
    out: &mut impl Write,
    summary: &mut impl Write,
) -> Result<(), Failed> {
    with_file(file, |input| {
        let checked = check::check(input, rows_max, format, out)?;
        let check::Checked { documents, rows, findings } = checked;
        match (documents, findings) {
            (0, _) => Err(QueueError::Empty),
            (_, 0) => {
                // Where standard error is gone there is nobody to tell.
                let (rows, documents) =
                    (counted(rows, "row[|s]"), counted(documents, "document[|s]"));
                _ = writeln!(summary, "{rows} in {documents}, no finding");
                Ok(())
            }
            (_, findings) => Err(QueueError::Findings(findings)),
        }
    })
}

/// `queue aggregate`: groups to `out`, what belongs to none to `summary`.
///
/// # Errors
/// Where a file cannot be read, and, once the groups are written, where something belongs to no
/// group.
pub fn run_aggregate(
    files: &[PathBuf],
    rows_max: usize,
    format: Format,
    out: &mut impl Write,
    summary: &mut impl Write,
) -> Result<(), Failed> {
    let mut aggregator = Aggregator::new(rows_max);
    let mut left_out: Option<(PathBuf, u64)> = None;
    for file in files {
        let mut count = 0_u64;
        with_file(file, |input| {
            aggregate::take(&mut aggregator, input, &mut |line, what| {
                count += 1;
                _ = writeln!(summary, "{} line {line}: left out: {what}", file.display());
            })
        })?;
        if count > 0 {
            left_out.get_or_insert((file.clone(), 0)).1 += count;
        }
    }
    let written = match format {
        Format::Table => aggregate::table(out, aggregator.groups()),
        Format::Json => aggregator.groups().iter().try_for_each(|group| {
            serde_json::to_writer(&mut *out, &aggregate::object(group))?;
            out.write_all(b"\n")?;
            out.flush()
        }),
    };
    let failed = |file, error| Failed { file, error };
    written
        .and_then(|()| out.flush())
        .map_err(|error| failed(PathBuf::new(), QueueError::Output(error)))?;
    left_out.map_or(Ok(()), |(file, count)| Err(failed(file, QueueError::Findings(count))))
}

/// `queue measure`: rows to `out`, what happened to the source to `summary`.
///
/// # Errors
/// Where the file cannot be read, or holds what is no event.
pub fn run_measure(
    file: &Path,
    settings: Settings,
    fresh: impl FnMut() -> EpochId,
    out: &mut impl Write,
    summary: &mut impl Write,
) -> Result<(), Failed> {
    with_file(file, |input| {
        let counts = measure::measure(input, settings, fresh, out)?;
        _ = writeln!(
            summary,
            "{} events, {} rows; {} numbers missing in {} holes, {} other clocks",
            counts.events, counts.rows, counts.missing, counts.holes, counts.clocks
        );
        Ok(())
    })
}

/// `queue convert`: events to `out`, what there was and was not to `summary`.
///
/// # Errors
/// Where the file cannot be read, or is no trace.
pub fn run_convert(
    file: &Path,
    queues_max: usize,
    out: &mut impl Write,
    summary: &mut impl Write,
) -> Result<(), Failed> {
    with_file(file, |input| {
        let ns3::Converted { records, events, queues, without_backlog, drops } =
            ns3::convert(input, queues_max, out)?;
        let [records, events, queues] =
            [(records, "record[|s]"), (events, "event[|s]"), (queues, "queue[|s]")]
                .map(|(count, what)| counted(count, what));
        _ = writeln!(summary, "{records}: {events} of {queues}");
        if without_backlog > 0 {
            _ = writeln!(
                summary,
                "what waits in {without_backlog} of them is not in the trace: queues of hosts"
            );
        }
        if drops > 0 {
            _ = writeln!(
                summary,
                "{drops} drops, from which on gates of their ports are not known"
            );
        }
        Ok(())
    })
}
