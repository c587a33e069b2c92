//! `cargo xtask bench --records`: how many sequence reports a second a collector reads, checks and
//! follows, from memory.
//!
//! The stream is made with the exporter that ships: epochs in turn, so that each report is far
//! from the one before it in memory. It is then read three times in each round: by a *bare loop*
//! that knows where each of the 19 fields stands and folds them into a sum; by the shipped decoder
//! and record reader alone; and by these with the epochs followed. Before anything is timed, the
//! bare loop's sum is compared with that of what the decoder reads.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use observe::collect::{BATCH, Limits, Session, Verdict};
use observe::export::{Exporter, Numbering};
use observe::meter::EpochIds;
use observe::profile::{Binding, Lengths};
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use serde::{Deserialize, Serialize};
use wire::element::Mapping;
use wire::frame::{Addresses, Namespace};
use wire::ipfix::{self, Decoder, Event, Layout, Transport};

use super::measure;

/// Octets of a record, all fields in full length, IPv4.
const RECORD: usize = 120;
/// The exporter's Template ID for IPv4 without namespace keys.
const TEMPLATE: u16 = 256;
/// Octets of a message: 400 records and their headers.
const MESSAGE_MAX: usize = 16 + 4 + 400 * RECORD;

/// What to measure.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Options {
    /// Epochs in the stream.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub epochs: u32,
    /// Reports of each epoch, the last of them final.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub reports: u32,
    /// Rounds to take the median of.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

/// One way to read the stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The stream.
    pub input: String,
    /// Median, in nanoseconds a record.
    pub ns_per_record: f64,
    /// Fastest and slowest round.
    pub spread_ns_per_record: [f64; 2],
    /// From the median.
    pub records_per_second: f64,
}

/// Measures in this process and prints the rows as JSON.
pub fn run(options: &Options) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(&measured(*options)?)?);
    Ok(())
}

/// Measures in a process of its own, on one core.
pub fn child(xtask: &Path, options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut command = measure::on_one_core(xtask);
    // Large tables on huge pages, as the shipped program's allocator has them; this one's is the C
    // library's.
    command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
    let [epochs, reports, rounds] =
        [options.epochs, options.reports, options.rounds].map(|n| n.to_string());
    command.args(["records", "--epochs", &epochs, "--reports", &reports, "--rounds", &rounds]);
    output(&mut command)
}

fn output(command: &mut Command) -> anyhow::Result<Vec<Row>> {
    let output = command.output().context("the records benchmark does not start")?;
    if !output.status.success() {
        bail!("the records benchmark: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("the rows of the records benchmark")
}

fn measured(options: Options) -> anyhow::Result<Vec<Row>> {
    let stream = stream(options)?;
    let records = u64::from(options.epochs) * u64::from(options.reports);
    let (expected, sum) = bare(&stream);
    ensure!(expected == records, "{expected} records in the stream, expected {records}");
    let mut decoded = (0_u64, 0_u64);
    read(&stream, |batch| {
        for (point, report) in batch {
            decoded = (decoded.0 + 1, folded(decoded.1, &fields(*point, report)));
        }
    })?;
    ensure!(decoded == (expected, sum), "{decoded:?} decoded, expected {:?}", (expected, sum));

    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..options.rounds {
        let timed =
            [timed(&stream, loop_of_offsets), timed(&stream, decode), timed(&stream, follow)];
        for (times, found) in times.iter_mut().zip(timed) {
            let (ns, count) = found?;
            ensure!(count == records, "{count} records taken, expected {records}");
            times.push(ns / measure::as_float(records));
        }
    }
    let input = format!("{records} IPv4 records, {} epochs in turn", options.epochs);
    let what = ["bare loop over offsets", "decode and check ranges", "decode, check and follow"];
    Ok(what.into_iter().zip(times).map(|(what, times)| row(what, &input, times)).collect())
}

fn row(what: &str, input: &str, mut times: Vec<f64>) -> Row {
    times.sort_by(f64::total_cmp);
    let median = measure::median(&times);
    let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
    Row {
        what: what.to_owned(),
        input: input.to_owned(),
        ns_per_record: median,
        spread_ns_per_record: [end(times.first()), end(times.last())],
        records_per_second: 1e9 / median,
    }
}

/// The rows as a table.
pub fn markdown(machine: &str, rounds: u32, rows: &[Row]) -> String {
    use std::fmt::Write as _;
    let mut out = format!(
        "{machine}; one core; medians of {rounds} rounds in alternation.\n\n\
         | what | input | ns/record | fastest to slowest | million records/s | rate of the bare loop |\n\
         | --- | --- | ---: | ---: | ---: | ---: |\n"
    );
    let bare = rows.first().map_or(f64::NAN, |row| row.records_per_second);
    for row in rows {
        let [fastest, slowest] = row.spread_ns_per_record;
        let _ = writeln!(
            out,
            "| {} | {} | {:.1} | {fastest:.1} to {slowest:.1} | {:.1} | {:.2} |",
            row.what,
            row.input,
            row.ns_per_record,
            row.records_per_second / 1e6,
            row.records_per_second / bare,
        );
    }
    out
}

/// The exporter's whole output: types, Template, Flow Keys, and the reports of all epochs in turn.
fn stream(options: Options) -> anyhow::Result<Vec<u8>> {
    let records = options.epochs as usize * options.reports as usize;
    let mut out = Vec::with_capacity(records * (RECORD + 1) + 4096);
    let mut exporter = Exporter::new(Mapping::default(), 1, 7, MESSAGE_MAX)?;
    exporter.begin(0, &mut out)?;
    let mut numbering = Numbering::default();
    let mut ids = vec![EpochIds::default(); options.epochs as usize];
    let mut batch = Vec::with_capacity(400);
    for round in 1..=options.reports {
        for (stream, ids) in (0..).zip(&mut ids) {
            let snapshot = snapshot(stream, round, round == options.reports)?;
            batch.push(numbering.number(ids, snapshot));
            if batch.len() == 400 {
                exporter.reports(&batch, round, &mut out)?;
                batch.clear();
            }
        }
    }
    exporter.reports(&batch, options.reports, &mut out)?;
    Ok(out)
}

fn snapshot(stream: u32, round: u32, last: bool) -> anyhow::Result<Snapshot> {
    let [_, a, b, c] = stream.to_be_bytes();
    let n = u64::from(round);
    let pending = if last { 0 } else { round % 4 };
    let abandoned = u64::from(if last { 3_u32 } else { 0 });
    let (filled, expired) = (2 * n, n);
    let start_ms = 1_800_000_000_000 + u64::from(stream);
    Ok(Snapshot {
        key: StreamKey {
            addresses: Addresses::v4([10, a, b, c], [10, 255, c, b]),
            namespace: Namespace::default(),
            qp: 17 + stream,
            pkey: 0xffff,
        },
        window: Window::new(1024)?,
        flags: if last { Flags::FINAL_EPOCH } else { Flags(0) }.with(Flags::GENERATION_UNVERIFIED),
        start_ms,
        end_ms: start_ms + 1000 * n,
        counts: Counts {
            skipped: filled + expired + abandoned + u64::from(pending),
            filled,
            expired,
            abandoned,
            pending,
            repeated: n / 2,
            requests: 1000 * n + u64::from(stream % 97),
            unclassified_late: n / 3,
        },
    })
}

fn timed(
    stream: &[u8],
    way: impl FnOnce(&[u8]) -> anyhow::Result<(Instant, u64)>,
) -> anyhow::Result<(f64, u64)> {
    let start = Instant::now();
    let (end, records) = way(stream)?;
    Ok(((end - start).as_secs_f64() * 1e9, records))
}

fn loop_of_offsets(stream: &[u8]) -> anyhow::Result<(Instant, u64)> {
    let (records, sum) = black_box(bare(stream));
    black_box(sum);
    Ok((Instant::now(), records))
}

fn decode(stream: &[u8]) -> anyhow::Result<(Instant, u64)> {
    let mut records = 0;
    read(stream, |batch| {
        black_box(batch);
        records += batch.len() as u64;
    })?;
    Ok((Instant::now(), records))
}

/// Follows the epochs as a collector does. Giving their memory back is not part of the time.
fn follow(stream: &[u8]) -> anyhow::Result<(Instant, u64)> {
    let mut session = Session::new(Limits::default(), 1);
    let mut accepted = 0;
    read(stream, |batch| {
        session.receive_all(1, batch, 0, &mut |_, verdict| {
            accepted += u64::from(matches!(verdict, Verdict::Accepted { missing: 0, .. }));
        });
    })?;
    let end = Instant::now();
    drop(black_box(session));
    Ok((end, accepted))
}

/// Decodes all messages and shows every report with its Observation Point, some at a time.
fn read(stream: &[u8], mut each: impl FnMut(&[(u64, Report)])) -> anyhow::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    let mapping = Mapping::default();
    let mut decoder = Decoder::new(Transport::Stream, mapping, ipfix::Limits::default());
    let mut bound: Option<(Arc<Layout>, Binding)> = None;
    let mut faults = 0_u64;
    let mut rest = stream;
    while let Some(header) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let (message, after) = rest.split_at_checked(length).context("a message cut short")?;
        rest = after;
        let visited = decoder.message(message, &mut |event| match event {
            Event::Template { layout, .. } => {
                if let Ok(binding) = Binding::new(layout, &mapping, Lengths::Full) {
                    bound = Some((Arc::clone(layout), binding));
                }
            }
            Event::Data(set) => {
                let Some((_, binding)) = bound.as_ref().filter(|(l, _)| Arc::ptr_eq(l, set.layout))
                else {
                    return;
                };
                for record in set.records {
                    match binding.read(&record) {
                        Ok(read) => batch.push(read),
                        Err(_) => faults += 1,
                    }
                    if batch.len() == BATCH {
                        each(&batch);
                        batch.clear();
                    }
                }
            }
            Event::Fault { .. } | Event::SequenceGap(_) | Event::UndecodableData { .. } => {
                faults += 1;
            }
            _ => {}
        });
        visited.map_err(|error| anyhow::anyhow!("{error}"))?;
        each(&batch);
        batch.clear();
    }
    ensure!(faults == 0, "{faults} faults in the stream");
    Ok(())
}

/// The least that reading can cost: steps over messages and sets by their lengths, and reads all
/// fields where they stand. Gives the number of records and the sum over their fields.
fn bare(stream: &[u8]) -> (u64, u64) {
    let (mut records, mut sum) = (0, 0);
    let mut rest = stream;
    while let Some(header) = rest.first_chunk::<16>() {
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let Some((message, after)) = rest.split_at_checked(length) else { break };
        rest = after;
        let mut sets = &message[header.len()..];
        while let Some(head) = sets.first_chunk::<4>() {
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let Some((set, after)) = sets.split_at_checked(length) else { break };
            sets = after;
            if u16::from_be_bytes([head[0], head[1]]) != TEMPLATE {
                continue;
            }
            let (chunks, _) = set[head.len()..].as_chunks::<RECORD>();
            for record in chunks {
                sum = folded(sum, &at_offsets(record));
                records += 1;
            }
        }
    }
    (records, sum)
}

#[inline(always)]
fn folded(sum: u64, fields: &[u64; 19]) -> u64 {
    let record = fields.iter().fold(0_u64, |sum, field| (sum ^ field).wrapping_add(*field << 1));
    sum.rotate_left(7) ^ record
}

#[inline(always)]
fn at_offsets(r: &[u8; RECORD]) -> [u64; 19] {
    let n8 = |at: usize| {
        u64::from_be_bytes([
            r[at],
            r[at + 1],
            r[at + 2],
            r[at + 3],
            r[at + 4],
            r[at + 5],
            r[at + 6],
            r[at + 7],
        ])
    };
    let n4 = |at: usize| u64::from(u32::from_be_bytes([r[at], r[at + 1], r[at + 2], r[at + 3]]));
    let n2 = |at: usize| u64::from(u16::from_be_bytes([r[at], r[at + 1]]));
    [
        n8(0),
        n4(8),
        n4(12),
        n4(16),
        n2(20),
        n8(22),
        n8(30),
        n8(38),
        n8(46),
        n4(54),
        n2(58),
        n8(60),
        n8(68),
        n8(76),
        n8(84),
        n4(92),
        n8(96),
        n8(104),
        n8(112),
    ]
}

/// The same 19 fields of a report that was decoded.
fn fields(point: u64, report: &Report) -> [u64; 19] {
    let Snapshot { key, window, flags, start_ms, end_ms, counts } = &report.snapshot;
    let address = |a: &[u8; 16]| u64::from(u32::from_be_bytes([a[0], a[1], a[2], a[3]]));
    [
        point,
        address(&key.addresses.source),
        address(&key.addresses.destination),
        u64::from(key.qp),
        u64::from(key.pkey),
        *start_ms,
        *end_ms,
        report.epoch_id,
        report.report_id,
        u64::from(window.get()),
        u64::from(flags.0),
        counts.skipped,
        counts.filled,
        counts.expired,
        counts.abandoned,
        u64::from(counts.pending),
        counts.repeated,
        counts.requests,
        counts.unclassified_late,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Options = Options { epochs: 50, reports: 20, rounds: 1 };

    #[test]
    fn all_three_ways_take_every_record_and_the_sums_agree() {
        let rows = measured(SMALL).unwrap();
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.input == "1000 IPv4 records, 50 epochs in turn"));
    }

    #[test]
    fn every_octet_of_a_record_is_in_the_sum() {
        let record: [u8; RECORD] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        for at in 0..RECORD {
            let mut other = record;
            other[at] ^= 1;
            assert_ne!(folded(0, &at_offsets(&other)), folded(0, &at_offsets(&record)), "{at}");
        }
    }

    #[test]
    fn the_table_gives_rates_and_their_ratio_to_the_bare_loop() {
        let rows = [row("a", "i", vec![10.0]), row("b", "i", vec![50.0, 30.0, 40.0])];
        let table = markdown("m", 3, &rows);
        assert!(table.contains("| a | i | 10.0 | 10.0 to 10.0 | 100.0 | 1.00 |"), "{table}");
        assert!(table.contains("| b | i | 40.0 | 30.0 to 50.0 | 25.0 | 0.25 |"), "{table}");
    }
}
