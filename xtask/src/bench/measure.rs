//! Running programs in alternation on one core, and what one run cost.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::Value;
use wait4::Wait4 as _;

use super::Input;
use super::truth::Totals;

/// A program, its arguments and the input that they name.
pub struct Job {
    name: String,
    input: String,
    packets: u64,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Job {
    /// A job whose cost is divided by the packets of its input.
    pub fn new(name: &str, input: &Input, program: &Path, arguments: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            input: input.name.clone(),
            packets: input.totals.packets,
            program: program.to_path_buf(),
            arguments: arguments.iter().map(OsString::from).collect(),
        }
    }

    /// The same with a path as its next argument.
    pub fn file(mut self, path: &Path) -> Self {
        self.arguments.push(path.into());
        self
    }

    /// The same with a next argument.
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The command, bound to one core where `taskset` is there and the machine has two.
    pub fn command(&self) -> Command {
        let mut command = on_one_core(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command
    }

    fn run(&self) -> anyhow::Result<Run> {
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child =
            command.spawn().with_context(|| format!("{}: does not start", self.name))?;
        let end = child.wait4().with_context(|| format!("{}: lost", self.name))?;
        let wall = start.elapsed();
        if !end.status.success() {
            bail!("{}: ended with {}", self.name, end.status);
        }
        let cpu = end.rusage.utime + end.rusage.stime;
        Ok(Run { wall, cpu, peak_octets: end.rusage.maxrss })
    }
}

/// A program, bound to one core where `taskset` is there and the machine has two.
pub fn on_one_core(program: &Path) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match installed("taskset") {
        Some(taskset) if cores > 1 => {
            let mut command = Command::new(taskset);
            command.args(["-c", "1"]).arg(program);
            command
        }
        _ => Command::new(program),
    }
}

struct Run {
    wall: Duration,
    cpu: Duration,
    peak_octets: u64,
}

/// The medians of one job.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The program, as the table names it.
    pub program: String,
    /// The input, as the table names it.
    pub input: String,
    /// Packets in the input.
    pub packets: u64,
    /// Wall time of the whole run, in seconds.
    pub wall_s: f64,
    /// Wall time a packet, in nanoseconds.
    pub wall_ns_per_packet: f64,
    /// User and system time a packet, in nanoseconds.
    pub cpu_ns_per_packet: f64,
    /// Fastest and slowest round, in nanoseconds of wall time a packet.
    pub spread_ns_per_packet: [f64; 2],
    /// The largest resident set of any round, in MiB.
    pub peak_mib: f64,
}

/// Runs every job once unmeasured, so that its input is in memory, and then all of them in turn.
pub fn alternate(jobs: &[Job], rounds: u32) -> anyhow::Result<Vec<Row>> {
    for job in jobs {
        job.run()?;
    }
    let mut runs: Vec<Vec<Run>> = jobs.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        eprintln!("bench: round {round} of {rounds}");
        for (job, runs) in jobs.iter().zip(&mut runs) {
            runs.push(job.run()?);
        }
    }
    Ok(jobs.iter().zip(&runs).map(|(job, runs)| row(job, runs)).collect())
}

fn row(job: &Job, runs: &[Run]) -> Row {
    let sorted = |value: fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let wall = sorted(|run| run.wall.as_secs_f64());
    let cpu = sorted(|run| run.cpu.as_secs_f64());
    let peak = sorted(|run| as_float(run.peak_octets) / 1_048_576.0);
    let each = |seconds: f64| seconds * 1e9 / as_float(job.packets);
    let last = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN);
    Row {
        program: job.name.clone(),
        input: job.input.clone(),
        packets: job.packets,
        wall_s: median(&wall),
        wall_ns_per_packet: each(median(&wall)),
        cpu_ns_per_packet: each(median(&cpu)),
        spread_ns_per_packet: [each(wall.first().copied().unwrap_or(f64::NAN)), each(last(&wall))],
        peak_mib: last(&peak),
    }
}

/// The middle of sorted values, the mean of the two in the middle where their number is even.
pub fn median(sorted: &[f64]) -> f64 {
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
    let below = sorted.len().checked_sub(1).map(|last| last / 2);
    let lower = below.and_then(|at| sorted.get(at)).copied().unwrap_or(f64::NAN);
    f64::midpoint(lower, upper)
}

/// Exact up to 2^53, which no count here reaches.
#[expect(clippy::cast_precision_loss, reason = "times and sizes are printed with three digits")]
pub fn as_float(value: u64) -> f64 {
    value as f64
}

/// Sums of the final reports that `rocescope meter --json` prints. A stream that made more than
/// one epoch counts more than once, which the comparison then shows.
pub fn sums(mut command: Command) -> anyhow::Result<Totals> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("the meter does not start")?;
    let lines = BufReader::new(child.stdout.take().context("the meter has no output")?).lines();
    let mut totals = Totals::default();
    for line in lines {
        let line = line.context("the meter's output")?;
        let report: Value =
            serde_json::from_str(&line).context("the meter's output is not JSON")?;
        if report["record"] == "sequence" {
            add(&report, &mut totals)?;
        }
    }
    let status = child.wait().context("the meter is lost")?;
    if !status.success() {
        bail!("the meter ended with {status}");
    }
    Ok(totals)
}

fn add(report: &Value, totals: &mut Totals) -> anyhow::Result<()> {
    totals.streams += 1;
    let sums = [
        ("requestPacketTotalCount", &mut totals.requests),
        ("skippedPsnTotalCount", &mut totals.skipped),
        ("filledPsnTotalCount", &mut totals.filled),
        ("expiredPsnTotalCount", &mut totals.expired),
        ("abandonedPsnTotalCount", &mut totals.abandoned),
        ("repeatedPsnTotalCount", &mut totals.repeated),
        ("unclassifiedLatePacketTotalCount", &mut totals.late),
    ];
    for (name, sum) in sums {
        *sum +=
            report[name].as_u64().with_context(|| format!("{name}: not a number in {report}"))?;
    }
    Ok(())
}

/// Where a program is, by `PATH` and the directories of system programs.
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let files = env::split_paths(&path).chain(system).map(|directory| directory.join(program));
    files.into_iter().find(|file| file.is_file())
}

/// The processor and the kernel, as far as Linux tells.
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = kernel.split(['-', '\n']).next().unwrap_or_default();
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    format!("{model}, Linux {release}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert!((median(&[1.0, 2.0, 9.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[1.0, 2.0, 4.0, 9.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[7.0]) - 7.0).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_report_without_one_of_the_counters_is_refused() {
        let report = serde_json::json!({"record": "sequence", "requestPacketTotalCount": 1});
        let error = add(&report, &mut Totals::default()).unwrap_err().to_string();
        assert!(error.starts_with("skippedPsnTotalCount: not a number"), "{error}");
    }

    #[test]
    fn a_program_that_is_nowhere_is_not_installed() {
        assert_eq!(installed("no-program-has-this-name"), None);
        assert!(installed("sh").is_some());
    }
}
