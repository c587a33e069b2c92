//! `queue check`: everything that is wrong with the rows of a file, schema and procedure, a line
//! each.

use std::io::{self, BufRead, Write};

use observe::queue::aggregate::{Aggregator, Verdict};
use serde_json::json;

use super::QueueError;
use super::documents::Documents;
use super::reading::read;
use super::record;
use crate::meter::Format;

/// What was looked at, and how much was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Documents.
    pub documents: u64,
    /// Entries, good and bad.
    pub rows: u64,
    /// Findings, each a line.
    pub findings: u64,
}

/// Writes a line for each thing that is wrong. At most `rows_max` rows are held to compare them.
///
/// # Errors
/// Where the input cannot be read, nothing can be written, or there is no room.
// QUE-yang.1, QUE-con.1
pub fn check(
    input: impl BufRead,
    rows_max: usize,
    format: Format,
    out: &mut impl Write,
) -> Result<Checked, QueueError> {
    let mut checked = Checked::default();
    let mut aggregator = Aggregator::new(rows_max);
    for (line, document) in Documents::new(input) {
        checked.documents += 1;
        let before = checked.findings;
        let mut finding = |whose: Option<&str>, what: &str| {
            checked.findings += 1;
            write_finding(out, format, line, whose, what).map_err(QueueError::Output)
        };
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                finding(None, &error.to_string())?;
                out.flush().map_err(QueueError::Output)?;
                continue;
            }
        };
        let reading = read(&document);
        for what in &reading.findings {
            finding(None, what)?;
        }
        checked.rows += u64::try_from(reading.rows.len()).unwrap_or(u64::MAX);
        for row in &reading.rows {
            let row = match row {
                Ok(row) => row,
                Err(malformed) => {
                    for fault in &malformed.faults {
                        finding(Some(&malformed.whose), fault)?;
                    }
                    continue;
                }
            };
            let name = record::name(row);
            let mut faults = row.faults().peekable();
            if faults.peek().is_some() {
                for fault in faults {
                    finding(Some(&name), &fault.to_string())?;
                }
            } else if let Verdict::Rejected(why) =
                aggregator.row(row).map_err(|full| QueueError::Full(line, full))?
            {
                finding(Some(&name), &why.to_string())?;
            }
        }
        // As they come, a document at a time: each by itself costs a call to the system.
        if checked.findings > before {
            out.flush().map_err(QueueError::Output)?;
        }
    }
    out.flush().map_err(QueueError::Output)?;
    Ok(checked)
}

fn write_finding(
    out: &mut impl Write,
    format: Format,
    line: u64,
    whose: Option<&str>,
    what: &str,
) -> io::Result<()> {
    match (format, whose) {
        (Format::Json, whose) => {
            serde_json::to_writer(
                &mut *out,
                &json!({"line": line, "row": whose, "finding": what}),
            )?;
            out.write_all(b"\n")
        }
        (Format::Table, Some(whose)) => writeln!(out, "line {line}: {whose}: {what}"),
        (Format::Table, None) => writeln!(out, "line {line}: {what}"),
    }
}
