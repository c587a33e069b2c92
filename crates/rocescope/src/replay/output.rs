//! Epochs with their outcomes as JSON Lines, or as a table for people.

use std::io::{self, Write};

use observe::collect::Retired;
use observe::outcome::Outcome;
use observe::pfc::collect::Counter;
use observe::pfc::interval::Interval;

use super::{Format, Summary};
use crate::layout::{cell, cell_left, lines, push_stream_name};
use crate::meter::json::{self, Judged};
use crate::meter::pfc;

/// Where the epochs go.
pub(super) struct Output<'a, W> {
    out: &'a mut W,
    format: Format,
    line: Vec<u8>,
    /// Complete, incomplete, invalid.
    epochs: [u64; 3],
    pfc_counters: u64,
}

impl<'a, W: Write> Output<'a, W> {
    pub(super) fn new(out: &'a mut W, format: Format) -> Self {
        Self { out, format, line: Vec::new(), epochs: [0; 3], pfc_counters: 0 }
    }

    /// Writes the epochs that retired at one time, by domain and epoch id.
    pub(super) fn epochs(
        &mut self,
        session: Option<u64>,
        mut retired: Vec<Retired>,
    ) -> io::Result<()> {
        retired.sort_unstable_by_key(|retired| (retired.domain, retired.epoch.latest.epoch_id));
        for retired in &retired {
            if self.format == Format::Table && self.epochs == [0; 3] {
                self.head()?;
            }
            let index = match retired.outcome {
                Outcome::Complete => 0,
                // A retired epoch is never active; if one were, it would not be complete.
                Outcome::Incomplete | Outcome::Active => 1,
                Outcome::Invalid => 2,
            };
            self.epochs[index] += 1;
            self.line.clear();
            match self.format {
                Format::Json => epoch(&mut self.line, session, retired),
                Format::Table => self.row(session, retired),
            }
            self.out.write_all(&self.line)?;
        }
        self.out.flush()
    }

    /// Writes the PFC counters of a session, in the order in which they came.
    // PFC-sem.2
    pub(super) fn pfc(&mut self, session: Option<u64>, counters: &[Counter]) -> io::Result<()> {
        for (number, counter) in (0..).zip(counters) {
            if self.format == Format::Table && number == 0 {
                self.pfc_head()?;
            }
            self.pfc_counters += 1;
            self.line.clear();
            match self.format {
                Format::Json => {
                    let judged = pfc::Judged { session, number, counter };
                    pfc::counter(&mut self.line, judged);
                    self.line.extend_from_slice(b"}\n");
                }
                Format::Table => self.pfc_row(session, counter),
            }
            self.out.write_all(&self.line)?;
        }
        self.out.flush()
    }

    fn pfc_head(&mut self) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(
            b"\nPFC counters, by priority (one frame can count under several):\n",
        );
        for (head, width) in [("SESSION", 8), ("DOMAIN", 8), ("POINT", 8), ("INTERFACE", 10)] {
            cell(&mut self.line, head.as_bytes(), width);
        }
        self.line.extend_from_slice(b"  ");
        cell_left(&mut self.line, b"DIRECTION", 12);
        for (head, width) in [("PRIORITY", 9), ("TOTAL", 12)] {
            cell(&mut self.line, head.as_bytes(), width);
        }
        self.line.extend_from_slice(b"  SINCE THE READING BEFORE\n");
        self.out.write_all(&self.line)
    }

    fn pfc_row(&mut self, session: Option<u64>, counter: &Counter) {
        let reading = &counter.latest.reading;
        let scope = &reading.scope;
        let line = &mut self.line;
        let session = session.map_or("-".to_owned(), |id| id.to_string());
        cell(line, session.as_bytes(), 8);
        cell(line, scope.domain.to_string().as_bytes(), 8);
        cell(line, scope.point.to_string().as_bytes(), 8);
        cell(line, scope.interface.to_string().as_bytes(), 10);
        line.extend_from_slice(b"  ");
        cell_left(line, scope.direction.word().as_bytes(), 12);
        cell(line, scope.priority.get().to_string().as_bytes(), 9);
        cell(line, reading.total.to_string().as_bytes(), 12);
        line.extend_from_slice(b"  ");
        match counter.interval() {
            Interval::Exact(frames) => {
                line.extend_from_slice(frames.count().to_string().as_bytes())
            }
            Interval::Unknown(reason) => {
                line.extend_from_slice(b"unknown: ");
                line.extend_from_slice(reason.words().as_bytes());
            }
        }
        line.push(b'\n');
    }

    /// Writes what people want to know at the end, and notes the outcomes.
    pub(super) fn finish(self, summary: &mut Summary) -> io::Result<()> {
        summary.epochs = self.epochs;
        summary.pfc_counters = self.pfc_counters;
        if self.format == Format::Table {
            if self.epochs == [0; 3] {
                writeln!(self.out, "No epoch was found.")?;
            }
            let [complete, incomplete, invalid] = self.epochs;
            writeln!(self.out)?;
            let counts = [
                (summary.sessions, "session[|s]"),
                (summary.messages, "message[|s]"),
                (summary.discarded, "message[|s] discarded whole"),
                (summary.accepted, "report[|s] accepted"),
                (summary.repeated, "report[|s] repeated"),
                (summary.refused, "record[|s] refused"),
                (complete, "epoch[|s] complete"),
                (incomplete, "epoch[|s] incomplete"),
                (invalid, "epoch[|s] invalid"),
            ];
            lines(self.out, &counts)?;
            if summary.pfc_accepted > 0 || summary.pfc_repeated > 0 || self.pfc_counters > 0 {
                let counts = [
                    (self.pfc_counters, "PFC counters"),
                    (summary.pfc_accepted, "PFC readings accepted"),
                    (summary.pfc_repeated, "PFC readings repeated"),
                ];
                lines(self.out, &counts)?;
            }
        }
        self.out.flush()
    }

    fn head(&mut self) -> io::Result<()> {
        self.line.clear();
        for (head, width) in [("SESSION", 8), ("DOMAIN", 8), ("EPOCH", 8), ("REPORTS", 9)] {
            cell(&mut self.line, head.as_bytes(), width);
        }
        self.line.extend_from_slice(b"  ");
        cell_left(&mut self.line, b"OUTCOME", 12);
        self.line.extend_from_slice(b"STREAM, QUALIFICATIONS, REASON\n");
        self.out.write_all(&self.line)
    }

    fn row(&mut self, session: Option<u64>, retired: &Retired) {
        let latest = &retired.epoch.latest;
        let line = &mut self.line;
        let session = session.map_or("-".to_owned(), |id| id.to_string());
        cell(line, session.as_bytes(), 8);
        cell(line, retired.domain.to_string().as_bytes(), 8);
        cell(line, latest.epoch_id.to_string().as_bytes(), 8);
        let received = latest.report_id - retired.epoch.missing;
        cell(line, received.to_string().as_bytes(), 9);
        line.extend_from_slice(b"  ");
        cell_left(line, retired.outcome.word().as_bytes(), 12);
        push_stream_name(line, &latest.snapshot.key);
        for word in retired.epoch.qualifications() {
            line.push(b' ');
            line.extend_from_slice(word.word().as_bytes());
        }
        if let Some(reason) = retired.epoch.reason(retired.outcome) {
            line.extend_from_slice(b": ");
            line.extend_from_slice(reason.as_bytes());
        }
        line.push(b'\n');
    }
}

/// Appends an epoch as one line: the members of its latest report, and what is known of it.
fn epoch(out: &mut Vec<u8>, session: Option<u64>, retired: &Retired) {
    let Retired { domain, epoch, outcome } = retired;
    let qualifications = epoch.qualifications();
    let reason = epoch.reason(*outcome);
    let judged = Judged {
        session,
        outcome: *outcome,
        qualifications: qualifications.iter().map(|q| q.word()),
        reason: reason.as_deref(),
    };
    json::epoch(out, *domain, epoch, judged);
    out.extend_from_slice(b"}\n");
}
