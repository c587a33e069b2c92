//! `queue measure`: events of a file to rows, one document a line.

use std::io::{BufRead, Write};

use observe::queue::EpochId;
use observe::queue::meter::{Counts, Meter, Settings};

use super::QueueError;
use super::events::{self, Lines};
use super::record;

/// Writes each row as it is completed, and in the end what was going on.
///
/// # Errors
/// At the first event that is not one, or that the source cannot have meant. Rows that were
/// complete by then are written.
pub fn measure(
    input: impl BufRead,
    settings: Settings,
    fresh: impl FnMut() -> EpochId,
    out: &mut impl Write,
) -> Result<Counts, QueueError> {
    let mut meter = Meter::new(settings, fresh);
    let mut lines = Lines::new(input);
    loop {
        let number = lines.number() + 1;
        let line =
            lines.next_line().map_err(|error| QueueError::Event(number, error.to_string()))?;
        let Some(line) = line else { break };
        let read = events::read(line);
        let told = read.and_then(|line| meter.told(line.told()).map_err(|error| error.to_string()));
        if let Err(error) = told {
            return Err(QueueError::Event(lines.number(), error));
        }
        write_rows(&mut meter, out)?;
    }
    meter.finish();
    write_rows(&mut meter, out)?;
    Ok(meter.counts())
}

fn write_rows<F: FnMut() -> EpochId>(
    meter: &mut Meter<F>,
    out: &mut impl Write,
) -> Result<(), QueueError> {
    let mut written = false;
    while let Some(row) = meter.row() {
        written = true;
        serde_json::to_writer(&mut *out, &record::document(&row))
            .map_err(|error| QueueError::Output(error.into()))?;
        out.write_all(b"\n").map_err(QueueError::Output)?;
    }
    // Where events come as they happen, so do rows.
    if written { out.flush().map_err(QueueError::Output) } else { Ok(()) }
}
