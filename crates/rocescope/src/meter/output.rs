//! Where the results of a run go: a table or JSON Lines, an IPFIX File beside it, and counters of
//! priority flow control frames.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use observe::export::{Exporter, Numbering};
use observe::meter::{Cause, Closed, EpochIds, MeterCounts};
use observe::pfc::Reading;
use observe::pfc::qualify::Qualified;
use observe::report::{Report, Snapshot, StreamKey};
use observe::request::Violation;
use wire::element::Mapping;
use wire::ipfix::{EncodeError, MESSAGE_MAX};
use wire::pfc::Pfc;

use super::json::{self, Place};
use super::pfc::{self, PfcCounts};
use super::streams::Streams;
use super::table;
use super::{MeterError, Run};
use crate::config::printable;
use crate::layout::{counted, stream_name};
use crate::observation::{MirrorSession, Missed, Sink, Tally};

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line for each stream, for people.
    Table,
    /// JSON Lines, one for each report.
    Json,
}

/// Octets that are gathered before they are written.
const WRITE_LEN: usize = 64 * 1024;
/// Streams without an epoch that are named beside JSON Lines; of the others, only the number.
const NEVER_METERED_SHOWN: u64 = 100;
/// Reports that go into the IPFIX File together.
const REPORTS_TOGETHER: usize = 400;

/// An IPFIX File that cannot be written.
#[derive(Debug)]
pub struct IpfixError {
    path: PathBuf,
    cause: IpfixCause,
}

#[derive(Debug)]
enum IpfixCause {
    Write(io::Error),
    Encode(EncodeError),
}

impl fmt::Display for IpfixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.cause {
            IpfixCause::Write(error) => error.fmt(f),
            IpfixCause::Encode(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for IpfixError {}

/// The sink of a run.
pub(super) struct Outputs<'a, O, W> {
    place: Place,
    numbering: Numbering,
    format: Format,
    streams: Streams,
    window: u32,
    ipfix: Option<IpfixFile>,
    pfc: Option<PfcCounts>,
    pfc_asked: bool,
    /// The latest time that the capture has shown at its end.
    end_ms: Option<u64>,
    /// Streams that a violation has disabled before they had an epoch.
    never_metered: u64,
    time_ms: u64,
    buffer: Vec<u8>,
    out: &'a mut O,
    warnings: &'a mut W,
    /// The first failure; nothing is written after it.
    failed: Option<MeterError>,
}

impl<'a, O: Write, W: Write> Outputs<'a, O, W> {
    pub(super) fn new(run: &Run, out: &'a mut O, warnings: &'a mut W) -> Result<Self, MeterError> {
        let ipfix = run
            .ipfix
            .as_deref()
            .map(|path| IpfixFile::create(path, run.mapping, run.place))
            .transpose()
            .map_err(MeterError::Ipfix)?;
        Ok(Self {
            place: run.place,
            numbering: Numbering::default(),
            format: run.format,
            streams: Streams::default(),
            window: run.window,
            ipfix,
            pfc: run.pfc_interface.map(|first| PfcCounts::new(first, run.observation.layer)),
            pfc_asked: run.pfc_interface.is_some(),
            end_ms: None,
            never_metered: 0,
            time_ms: 0,
            buffer: Vec::with_capacity(WRITE_LEN + 1024),
            out,
            warnings,
            failed: None,
        })
    }

    fn report(&mut self, report: &Report, closed: Option<&Closed>) {
        if self.failed.is_some() {
            return;
        }
        self.time_ms = self.time_ms.max(report.snapshot.end_ms);
        if self.format == Format::Json {
            let causes = closed.into_iter().flat_map(Closed::causes);
            json::report(&mut self.buffer, self.place, report, causes);
            // A person who waits for a report gets it; thousands at once are gathered.
            if self.buffer.len() >= WRITE_LEN {
                self.write();
            }
        }
        if let Some(ipfix) = &mut self.ipfix
            && let Err(error) = ipfix.report(report, self.time_ms)
        {
            self.failed = Some(MeterError::Ipfix(error));
        }
    }

    fn write(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(&self.buffer).and_then(|()| self.out.flush())
        {
            self.failed = Some(MeterError::Output(error));
        }
        self.buffer.clear();
    }

    /// Writes what is left. Of captures that could not be read at all there is nothing to say, not
    /// even that nothing was seen in them.
    pub(super) fn finish(
        mut self,
        unread: bool,
        tally: &Tally,
        meter: MeterCounts,
        released_early: u64,
    ) -> Result<(), MeterError> {
        if released_early > 0 {
            let finals = counted(released_early, "final report[|s]");
            let carry = if released_early == 1 { "carries" } else { "carry" };
            self.warn(format!(
                "{finals} did not wait for the reading of a drop counter and {carry} \
                 captureDiscontinuity: finals_waiting_max was reached"
            ));
        }
        if !unread {
            self.finish_pfc(tally);
        }
        self.write();
        if let Some(ipfix) = self.ipfix.take()
            && let Err(error) = ipfix.finish(self.time_ms)
        {
            self.failed.get_or_insert(MeterError::Ipfix(error));
        }
        if self.failed.is_none() && !unread {
            let written = self.people(tally, meter).and_then(|()| self.out.flush());
            self.failed = written.err().map(MeterError::Output);
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// The table, or in JSON Lines the summary on the side.
    fn people(&mut self, tally: &Tally, meter: MeterCounts) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let more = self.never_metered.saturating_sub(NEVER_METERED_SHOWN);
                if more > 0 {
                    let more = counted(more, "more stream[|s]");
                    writeln!(self.warnings, "never metered: {more}, for the like")?;
                }
                table::summary(self.warnings, tally, meter, self.pfc_asked)
            }
            Format::Table => {
                let mut out = BufWriter::with_capacity(WRITE_LEN, &mut *self.out);
                table::streams(&mut out, &self.streams, self.window)?;
                if let Some(pfc) = &self.pfc {
                    pfc.table(&mut out)?;
                }
                table::summary(&mut out, tally, meter, self.pfc_asked)?;
                out.flush()
            }
        }
    }

    fn finish_pfc(&mut self, tally: &Tally) {
        let Some(pfc) = self.pfc.take() else { return };
        // PFC-op.1, PFC-count.2: what is not known to be complete is no reading.
        if let Some(why) = pfc.why_none(tally) {
            return self.warn(format!("no PFC counter is reported: {why}"));
        }
        pfc.refused().into_iter().chain(pfc.doubts()).for_each(|warning| self.warn(warning));
        // PFC-rec.2: a reading has a time. Where no packet had one, every interface was refused.
        let Some(end_ms) = self.end_ms else { return };
        let readings = pfc.readings(self.place, end_ms);
        if readings.is_empty() {
            return;
        }
        if self.format == Format::Json {
            readings.iter().for_each(|reading| pfc::json(&mut self.buffer, reading));
        }
        if let Some(ipfix) = &mut self.ipfix
            && let Err(error) = ipfix.readings(&pfc::source(), &readings, self.time_ms)
        {
            self.failed.get_or_insert(MeterError::Ipfix(error));
        }
        self.pfc = Some(pfc);
    }
}

impl<O: Write, W: Write> Sink for Outputs<'_, O, W> {
    fn closed(&mut self, mut closed: Closed) {
        if self.format == Format::Table {
            self.streams.add(&closed);
        }
        if self.format == Format::Json || self.ipfix.is_some() {
            let report = self.numbering.number(&mut closed.ids, closed.snapshot);
            self.report(&report, Some(&closed));
        }
    }

    fn disabled(&mut self, context: u32, key: &StreamKey, violation: Violation) {
        if self.format == Format::Table {
            return self.streams.disabled(context, key, violation);
        }
        // It has no epoch, so no report, and no line among them.
        self.never_metered += 1;
        if self.never_metered <= NEVER_METERED_SHOWN {
            let (name, cause) = (stream_name(key), Cause::Violation(violation));
            _ = writeln!(self.warnings, "never metered: {name}: {cause}");
        }
    }

    fn snapshot(&mut self, ids: &mut EpochIds, snapshot: Snapshot) {
        let report = self.numbering.number(ids, snapshot);
        self.report(&report, None);
    }

    fn missed(&mut self, interface: Option<u32>, missed: Missed, count: u64) {
        if let Some(counts) = &mut self.pfc {
            counts.missed(interface, missed, count);
        }
    }

    fn mirrored(&mut self, interface: u32, session: &MirrorSession) {
        if let Some(counts) = &mut self.pfc {
            counts.mirrored(interface, session);
        }
    }

    fn section(&mut self) {
        if let Some(counts) = &mut self.pfc {
            counts.section();
        }
    }

    fn interface(&mut self, name: Option<&[u8]>) {
        if let Some(counts) = &mut self.pfc {
            counts.interface(name);
        }
    }

    fn pfc(&mut self, interface: u32, time_ns: u64, pfc: &Pfc) {
        if let Some(counts) = &mut self.pfc {
            counts.add(interface, pfc);
            self.time_ms = self.time_ms.max(time_ns / 1_000_000);
        }
    }

    fn time(&mut self, time_ns: u64) {
        self.time_ms = self.time_ms.max(time_ns / 1_000_000);
        self.end_ms = Some(self.time_ms);
    }

    fn due(&mut self) {
        if !self.buffer.is_empty() {
            self.write();
        }
    }

    fn warn(&mut self, warning: String) {
        // A warning that cannot be written changes no result.
        _ = writeln!(self.warnings, "warning: {}", printable(&warning));
    }
}

/// An IPFIX File that is being written (RFC 5655). Export times are capture times, so that the
/// same captures make the same file.
struct IpfixFile {
    path: PathBuf,
    file: BufWriter<File>,
    exporter: Exporter,
    waiting: Vec<Report>,
    octets: Vec<u8>,
    begun: bool,
}

impl IpfixFile {
    fn create(path: &Path, mapping: Mapping, place: Place) -> Result<Self, IpfixError> {
        let failed = |cause| IpfixError { path: path.to_owned(), cause };
        let exporter = Exporter::new(mapping, place.domain, place.point, MESSAGE_MAX)
            .map_err(|error| failed(IpfixCause::Encode(error)))?;
        let file = File::create(path).map_err(|error| failed(IpfixCause::Write(error)))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            exporter,
            waiting: Vec::with_capacity(REPORTS_TOGETHER),
            octets: Vec::new(),
            begun: false,
        })
    }

    fn report(&mut self, report: &Report, time_ms: u64) -> Result<(), IpfixError> {
        self.waiting.push(*report);
        if self.waiting.len() < REPORTS_TOGETHER { Ok(()) } else { self.write(time_ms) }
    }

    fn write(&mut self, time_ms: u64) -> Result<(), IpfixError> {
        let failed = |cause| IpfixError { path: self.path.clone(), cause };
        // 32 bits of seconds, as in every IPFIX message; they last until 2106.
        let export_time = u32::try_from(time_ms / 1000).unwrap_or(u32::MAX);
        self.octets.clear();
        let begun = std::mem::replace(&mut self.begun, true);
        let began = if begun { Ok(()) } else { self.exporter.begin(export_time, &mut self.octets) };
        began
            .and_then(|()| self.exporter.reports(&self.waiting, export_time, &mut self.octets))
            .map_err(|error| failed(IpfixCause::Encode(error)))?;
        self.waiting.clear();
        self.file.write_all(&self.octets).map_err(|error| failed(IpfixCause::Write(error)))
    }

    /// Writes readings behind the reports that are there.
    fn readings(
        &mut self,
        source: &Qualified,
        readings: &[Reading],
        time_ms: u64,
    ) -> Result<(), IpfixError> {
        self.write(time_ms)?;
        let failed = |cause| IpfixError { path: self.path.clone(), cause };
        let export_time = u32::try_from(time_ms / 1000).unwrap_or(u32::MAX);
        self.octets.clear();
        self.exporter
            .readings(source, readings, export_time, &mut self.octets)
            .map_err(|error| failed(IpfixCause::Encode(error)))?;
        self.file.write_all(&self.octets).map_err(|error| failed(IpfixCause::Write(error)))
    }

    fn finish(mut self, time_ms: u64) -> Result<(), IpfixError> {
        self.write(time_ms)?;
        self.file
            .flush()
            .map_err(|error| IpfixError { path: self.path, cause: IpfixCause::Write(error) })
    }
}
