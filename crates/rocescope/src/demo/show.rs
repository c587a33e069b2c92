//! What came of the captures, as the collector's store has it: a table for people, or JSON Lines.

use std::io::{self, Write};

use observe::outcome::{Outcome, Qualification};
use store::{EpochFilter, EpochRow, Reader, SessionRow};

use super::DemoError;
use super::program::Addresses;
use super::room::Room;
use super::scene::Scene;
use crate::layout::{cell, cell_left, push_stream_name};
use crate::meter::Format;
use crate::meter::json::{self, Judged};

/// More epochs and sessions than a scene has.
const ROWS_MAX: usize = 256;

/// What came of one scene.
pub struct Shown {
    scene: &'static Scene,
    sessions: Vec<SessionRow>,
    epochs: Vec<EpochRow>,
}

impl Shown {
    /// Reads everything of sessions after this one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn read(reader: &Reader, scene: &'static Scene, before: u64) -> Result<Self, DemoError> {
        let mut sessions = reader.sessions(ROWS_MAX, None).map_err(|error| error.to_string())?.rows;
        sessions.retain(|row| row.session.0 > before);
        sessions.reverse();
        Ok(Self { scene, sessions, epochs: epochs_after(reader, before)? })
    }

    /// Whether nothing more comes of it.
    pub fn is_closed(&self) -> bool {
        self.sessions.iter().all(|row| row.closed_ms.is_some())
    }
}

/// The epochs of sessions after this one, in their order.
///
/// # Errors
/// The store cannot be read.
pub fn epochs_after(reader: &Reader, before: u64) -> Result<Vec<EpochRow>, DemoError> {
    let filter = EpochFilter { limit: ROWS_MAX, ..EpochFilter::default() };
    let mut epochs = reader.epochs(&filter).map_err(|error| error.to_string())?.rows;
    epochs.retain(|row| row.session.0 > before);
    epochs.sort_by_key(|row| (row.session.0, row.epoch.latest.epoch_id));
    Ok(epochs)
}

/// Where results go.
pub struct Table {
    format: Format,
}

impl Table {
    /// A table, or JSON Lines.
    pub fn new(format: Format) -> Self {
        Self { format }
    }

    /// Writes what came of a round of scenes. People are told all of the first one, and of the
    /// others how many epochs there were.
    ///
    /// # Errors
    /// As the writer.
    pub fn round(&self, out: &mut impl Write, round: u64, all: &[Shown]) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let mut line = Vec::new();
                for (shown, row) in rows(all) {
                    line.clear();
                    json_line(&mut line, shown, row);
                    out.write_all(&line)?;
                    out.flush()?;
                }
                return Ok(());
            }
            Format::Table if round == 1 => table(out, all)?,
            Format::Table => writeln!(out, "round {round}: {}", counted(all))?,
        }
        out.flush()
    }

    /// Says where to look, before there is much to see.
    ///
    /// # Errors
    /// As the writer.
    pub fn begins(
        &self,
        out: &mut impl Write,
        addresses: &Addresses,
        room: &Room,
    ) -> io::Result<()> {
        if self.format == Format::Json {
            return Ok(());
        }
        writeln!(out, "dashboard   http://{}/", addresses.http)?;
        writeln!(out, "API         http://{}/api/v1/epochs", addresses.http)?;
        writeln!(out, "collector   {} for IPFIX, with mutual TLS 1.3", addresses.ipfix)?;
        writeln!(out, "directory   {}", room.path().display())?;
        writeln!(out)?;
        out.flush()
    }

    /// Says what goes on from here.
    ///
    /// # Errors
    /// As the writer.
    pub fn stays(&self, out: &mut impl Write) -> io::Result<()> {
        if self.format == Format::Json {
            return Ok(());
        }
        writeln!(out)?;
        writeln!(out, "The captures are played again and again. Ctrl-C ends it all.")?;
        out.flush()
    }
}

fn rows(all: &[Shown]) -> impl Iterator<Item = (&Shown, &EpochRow)> {
    all.iter().flat_map(|shown| shown.epochs.iter().map(move |row| (shown, row)))
}

/// The members of the API, and which scene it is of.
fn json_line(line: &mut Vec<u8>, shown: &Shown, row: &EpochRow) {
    let judged = Judged {
        session: Some(row.session.0),
        outcome: row.outcome,
        qualifications: row.qualifications.iter().map(String::as_str),
        reason: row.reason.as_deref(),
    };
    json::epoch(line, row.domain, &row.epoch, judged);
    json::text(line, "scene", shown.scene.name);
    line.extend_from_slice(b"}\n");
}

const COLUMNS: [(&str, usize); 7] = [
    ("REPORTS", 9),
    ("REQUESTS", 10),
    ("SKIPPED", 9),
    ("FILLED", 9),
    ("EXPIRED", 9),
    ("ABANDONED", 11),
    ("REPEATED", 10),
];

fn table(out: &mut impl Write, all: &[Shown]) -> io::Result<()> {
    let mut line = Vec::new();
    cell_left(&mut line, b"OUTCOME", 10);
    for (head, width) in COLUMNS {
        cell(&mut line, head.as_bytes(), width);
    }
    line.extend_from_slice(b"  STREAM, QUALIFICATIONS, REASON\n");
    out.write_all(&line)?;
    for shown in all {
        writeln!(out, "\n{}", shown.scene.title)?;
        for row in &shown.epochs {
            line.clear();
            push_row(&mut line, row);
            out.write_all(&line)?;
        }
        for session in &shown.sessions {
            let reason = session.reason.as_deref().unwrap_or("open");
            writeln!(out, "  session {}: {reason}", session.session.0)?;
        }
    }
    writeln!(out, "\n{}.\n\n{HOW_TO_READ}", counted(all))
}

fn push_row(line: &mut Vec<u8>, row: &EpochRow) {
    let (latest, missing) = (&row.epoch.latest, row.epoch.missing);
    let counts = &latest.snapshot.counts;
    cell_left(line, row.outcome.word().as_bytes(), 10);
    let numbers = [
        // An epoch is only there once a report of it is, and none is counted twice.
        latest.report_id.saturating_sub(missing),
        counts.requests,
        counts.skipped,
        counts.filled,
        counts.expired,
        counts.abandoned,
        counts.repeated,
    ];
    for (number, (_, width)) in numbers.into_iter().zip(COLUMNS) {
        cell(line, number.to_string().as_bytes(), width);
    }
    line.extend_from_slice(b"  ");
    push_stream_name(line, &latest.snapshot.key);
    for word in &row.qualifications {
        line.push(b' ');
        line.extend_from_slice(word.as_bytes());
    }
    if let Some(reason) = &row.reason {
        line.extend_from_slice(b": ");
        line.extend_from_slice(reason.as_bytes());
    }
    line.push(b'\n');
}

/// How many epochs there are of each outcome, and how many are qualified by more than what all of
/// the captures have in common.
fn counted(all: &[Shown]) -> String {
    let of = |outcome| rows(all).filter(|(_, row)| row.outcome == outcome).count();
    let common = Qualification::GenerationUnverified.word();
    let qualified =
        rows(all).filter(|(_, row)| row.qualifications.iter().any(|word| word != common)).count();
    let epochs = u64::try_from(rows(all).count()).unwrap_or(u64::MAX);
    let mut text = crate::layout::counted(epochs, "epoch[|s]");
    for outcome in [Outcome::Complete, Outcome::Incomplete, Outcome::Invalid, Outcome::Active] {
        match of(outcome) {
            0 => {}
            count => text.push_str(&format!(", {count} {}", outcome.word())),
        }
    }
    text.push_str(&format!("; {qualified} qualified by more than {common}"));
    text
}

const HOW_TO_READ: &str = "\
How to read it. An epoch is one stretch of a stream, from where its observation began to where it
was ended, by the end of the stream or by something that had to be said.
\"complete\": every report of it came, from the first to a valid final one, so the numbers are all
that the observation point has to say. \"incomplete\": some report is missing; the numbers hold up
to the last report that came, and of what was behind it nothing is known, not even that it was
nothing. Qualifications say what else a reader has to know: profileViolation, that a request outside
the profile ended the epoch; captureDiscontinuity, that the capture missed packets, so a position
that was skipped may have passed all the same; generationUnverified, that nothing told the meter
whether a connection began anew. Skipped, filled and repeated are what was seen at one point, and
say nothing about what the network or an endpoint did.";
