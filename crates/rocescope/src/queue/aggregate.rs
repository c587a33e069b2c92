//! `queue aggregate`: rows of files, summed within each epoch of each queue, with what is missing
//! and how far the sums can be off.

use std::io::{self, BufRead, Write};

use observe::pfc::Priority;
use observe::queue::aggregate::{Aggregator, Group, Ratio, Span};
use serde_json::{Value, json};

use super::QueueError;
use super::documents::Documents;
use super::reading::read;
use super::tree::shown;
use crate::layout::{cell, cell_left};

/// Judges the rows of one more file. What belongs to no group is a line of `left_out`.
///
/// # Errors
/// Where the input cannot be read, or there is no room.
pub fn take(
    aggregator: &mut Aggregator,
    input: impl BufRead,
    left_out: &mut impl FnMut(u64, &str),
) -> Result<(), QueueError> {
    for (line, document) in Documents::new(input) {
        let document = document.map_err(|error| QueueError::Document(line, error))?;
        let reading = read(&document);
        for finding in &reading.findings {
            left_out(line, finding);
        }
        for row in &reading.rows {
            let taken = match row {
                Ok(row) => aggregator.row(row).map(|_| ()),
                Err(malformed) => match &malformed.identity {
                    Some((place, epoch, interval)) => {
                        aggregator.malformed(place, *epoch, *interval, &first(&malformed.faults))
                    }
                    None => {
                        let (whose, why) = (&malformed.whose, first(&malformed.faults));
                        left_out(line, &format!("{whose}: {why}"));
                        Ok(())
                    }
                },
            };
            taken.map_err(|full| QueueError::Full(line, full))?;
        }
    }
    Ok(())
}

/// The first thing that is wrong, and how many more there are.
pub(crate) fn first(faults: &[String]) -> String {
    let first = faults.first().map_or("", |fault| fault);
    match faults.len() {
        0 | 1 => first.to_owned(),
        count => format!("{first}; and {} more", count - 1),
    }
}

/// A group as JSON. What is not known is null, and never 0.
// QUE-con.2, QUE-con.3
pub fn object(group: &Group) -> Value {
    let span = group.span();
    let known = span.and_then(|span| span.known);
    let priorities =
        group.priorities().map(|all| all.iter().map(Priority::get).collect::<Vec<_>>());
    let rejected: Vec<Value> = group
        .rejected()
        .iter()
        .map(|(interval, why)| {
            json!({"intervalId": crate::dump::number(*interval), "reason": why.to_string()})
        })
        .collect();
    json!({
        "interface": *group.place().interface,
        "queueId": *group.place().queue,
        "epochId": group.epoch().to_string(),
        "mappedPriority": priorities,
        "firstInterval": span.map(|span| crate::dump::number(span.first)),
        "lastInterval": span.map(|span| crate::dump::number(span.last)),
        "coverage": span.map(|span| span.coverage().word()),
        "durationNs": span.map(|span| span.duration_ns),
        "knownDurationNs": span.map(|span| span.known_ns()),
        "missingNs": span.map(|span| span.missing_ns()),
        "gatedBacklogNs": known.map(|total| total.gated_ns),
        "backlogNs": known.map(|total| total.backlog_ns),
        "absoluteErrorNs": known.map(|total| total.error_ns),
        "gatedBacklogRatio": known.map(|total| ratio(total.gated_ratio())),
        "backlogRatio": known.map(|total| ratio(total.backlog_ratio())),
        "gatedOfBacklogRatio": known.and_then(|total| total.gated_of_backlog()).map(ratio),
        "rejected": rejected,
    })
}

fn ratio(ratio: Ratio) -> Value {
    json!({"value": ratio.value, "low": ratio.low, "high": ratio.high})
}

const HEADS: [&str; 10] = [
    "INTERVALS",
    "COVERAGE",
    "DURATION",
    "MISSING",
    "GATED",
    "BACKLOG",
    "GATED/TIME",
    "BACKLOG/TIME",
    "GATED/BACKLOG",
    "REJECTED",
];

/// The groups for people: times in seconds, each ratio with its range within the errors that the rows
/// state.
///
/// # Errors
/// As the writer.
pub fn table(out: &mut impl Write, groups: &[Group]) -> io::Result<()> {
    if groups.is_empty() {
        return writeln!(out, "No row.");
    }
    let rows: Vec<[String; 11]> = groups.iter().map(cells).collect();
    let width = |column: usize, head: &str| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.fold(head.len(), usize::max)
    };
    let first = width(0, "QUEUE");
    let widths: Vec<usize> =
        HEADS.iter().zip(1..).map(|(head, column)| width(column, head) + 2).collect();
    let mut line = Vec::new();
    cell_left(&mut line, b"QUEUE", first);
    for (head, width) in HEADS.iter().zip(&widths) {
        cell(&mut line, head.as_bytes(), *width);
    }
    writeln!(out, "{}", String::from_utf8_lossy(&line))?;
    for (row, group) in rows.iter().zip(groups) {
        line.clear();
        line.extend_from_slice(row[0].as_bytes());
        line.resize(line.len() + first.saturating_sub(row[0].chars().count()), b' ');
        for (cell_of, width) in row[1..].iter().zip(&widths) {
            cell(&mut line, cell_of.as_bytes(), *width);
        }
        writeln!(out, "{}", String::from_utf8_lossy(&line))?;
        for (interval, why) in group.rejected() {
            writeln!(out, "    rejected interval {interval}: {why}")?;
        }
        if group.is_contradicted() {
            writeln!(
                out,
                "    Rows contradict each other. Those that were read first count; which of them \
                 are true is not known."
            )?;
        }
    }
    writeln!(
        out,
        "Times in seconds. Ratios are of the time that is known, each with its range within the \
         errors that the rows state.\nA closed gate before a queue with traffic says nothing of where congestion \
         is, nor that PFC alone kept the traffic waiting."
    )
}

fn cells(group: &Group) -> [String; 11] {
    let place = group.place();
    let mapped = group.priorities().map_or(String::new(), |all| format!(" priority {all}"));
    // Names are quoted only where they would not be seen for what they are.
    let plain = |name: &str| {
        let quoted = shown(name);
        if quoted.trim_matches('"') == name && !name.contains(' ') {
            name.to_owned()
        } else {
            quoted
        }
    };
    let name = format!(
        "{} {}{mapped} epoch {:.8}",
        plain(&place.interface),
        plain(&place.queue),
        group.epoch().to_string()
    );
    let none = || "-".to_owned();
    let count = group.rejected().len().to_string();
    let Some(span) = group.span() else {
        let dashes: [String; 9] = std::array::from_fn(|_| none());
        let [a, b, c, d, e, f, g, h, i] = dashes;
        return [name, a, b, c, d, e, f, g, h, i, count];
    };
    let Span { first, last, duration_ns, known } = span;
    let time = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    // The range never becomes narrower by being printed.
    let down = |bound: f64| (bound * 1e6).floor() / 1e6;
    let up = |bound: f64| (bound * 1e6).ceil() / 1e6;
    let of = |ratio: Ratio| {
        format!("{:.6} ({:.6} to {:.6})", ratio.value, down(ratio.low), up(ratio.high))
    };
    let total =
        |text: &dyn Fn(observe::queue::aggregate::Total) -> String| known.map_or_else(none, text);
    [
        name,
        format!("{first} to {last}"),
        span.coverage().word().to_owned(),
        time(duration_ns),
        time(span.missing_ns()),
        total(&|total| time(total.gated_ns)),
        total(&|total| time(total.backlog_ns)),
        total(&|total| of(total.gated_ratio())),
        total(&|total| of(total.backlog_ratio())),
        total(&|total| total.gated_of_backlog().map_or_else(none, of)),
        count,
    ]
}
