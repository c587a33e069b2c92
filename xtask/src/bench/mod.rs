//! `cargo xtask bench`: the meter against the floor, and beside other programs.
//!
//! Times of two programs are compared only where they ran in alternation on the same input in the
//! same minutes; what is printed is the median of the rounds. The meter's result is compared with
//! what is true of the input before anything is timed: a fast wrong number is worth nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

pub mod api;
pub mod floor;
mod frame;
pub mod generate;
mod measure;
pub mod records;
mod table;
pub mod truth;

use measure::{Job, Row};
use truth::Totals;

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Packets in each of the two inputs.
    #[arg(long, default_value_t = 10_000_000)]
    packets: u64,
    /// Packets in the input of the other programs, which are slower.
    #[arg(long, default_value_t = 500_000)]
    others_packets: u64,
    /// Rounds to take the median of.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Replace the table between the markers of docs/performance.md, and docs/performance.json.
    #[arg(long)]
    write: bool,
    /// Measure how sequence reports are read, instead of the meter.
    #[arg(long)]
    records: bool,
    /// Measure the collector's HTTP interface over a full store, instead of the meter.
    #[arg(long, conflicts_with = "records")]
    api: bool,
    /// Epochs in that store.
    #[arg(long, default_value_t = 1_000_000)]
    epochs: u32,
    /// Measure how much a collector takes in over TLS, instead of the meter.
    #[arg(long, conflicts_with = "records")]
    collector: bool,
    /// Measure an agent on live traffic, in a network namespace, instead of the meter.
    #[arg(long, conflicts_with = "records")]
    agent: bool,
}

/// Builds, generates, checks, measures and prints.
pub fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    if options.records {
        return reports(root, &Programs::build(root, &["xtask"])?, options);
    }
    if options.api {
        return interface(root, &Programs::build(root, &["rocescope", "xtask"])?, options);
    }
    let programs = Programs::build(root, &["rocescope", "xtask"])?;
    if options.collector {
        return collector(root, &programs, options);
    }
    if options.agent {
        return agent(root, &programs, options);
    }
    let directory = programs.target.join("bench");
    fs::create_dir_all(&directory).context("the bench directory cannot be created")?;

    let few = programs.input(&directory, options.packets, 1000)?;
    let many = programs.input(&directory, options.packets, 1_000_000)?;
    let small = programs.input(&directory, options.others_packets, 1000)?;
    for input in [&few, &many, &small] {
        programs.agrees(input)?;
    }

    let mut jobs = Vec::new();
    for input in [&few, &many] {
        jobs.push(programs.floor(input));
        jobs.push(programs.meter(input, false));
        jobs.push(programs.meter(input, true));
    }
    let mut rows = measure::alternate(&jobs, options.rounds)?;
    let others = others(&directory, &small)?;
    rows.extend(measure::alternate(&others, options.rounds.min(3))?);

    let results = table::Results { machine: measure::machine(), rounds: options.rounds, rows };
    println!("{}", table::markdown(&results));
    results.save(&directory.join("results.json"))?;
    if options.write {
        results.save(&root.join("docs/performance.json"))?;
        table::write(&root.join("docs/performance.md"), &results)?;
    }
    Ok(())
}

fn reports(root: &Path, programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let rounds = options.rounds;
    let stream = records::Options { epochs: 100_000, reports: 20, rounds };
    let rows = records::child(&programs.xtask, &stream)?;
    let table = records::markdown(&measure::machine(), rounds, &rows);
    println!("{table}");
    if options.write {
        table::replace(&root.join("docs/performance.md"), "bench records", &table)?;
    }
    Ok(())
}

fn interface(root: &Path, programs: &Programs, options: &Options) -> anyhow::Result<()> {
    // In a release build of its own, so that filling the store does not take minutes.
    let output = Command::new(&programs.xtask)
        .args(["api", "--epochs", &options.epochs.to_string(), "--rounds", "20", "--rocescope"])
        .arg(&programs.meter)
        .arg("--directory")
        .arg(programs.target.join("bench-api"))
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("xtask does not start")?;
    if !output.status.success() {
        bail!("the measurement ended with {}", output.status);
    }
    let table = String::from_utf8(output.stdout).context("the table")?;
    println!("{table}");
    if options.write {
        table::replace(&root.join("docs/performance.md"), "bench api", table.trim_end())?;
    }
    Ok(())
}

/// What a collector takes in: its own example sends and measures.
fn collector(root: &Path, programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let table = programs.example(root, "load", &[], "4000000")?;
    let table = format!("{}; collector and sender on one machine.\n\n{table}", measure::machine());
    println!("{table}");
    if options.write {
        table::replace(&root.join("docs/performance.md"), "bench collector", table.trim_end())?;
    }
    Ok(())
}

/// A pair of interfaces that nothing else is connected to, and then the program that is named.
const NAMESPACE: &str = "set -e; ip link set lo up; ip link add roce0 type veth peer name roce1; \
                         ip link set roce0 up; ip link set roce1 up; exec \"$0\" \"$@\"";

/// What an agent follows of live traffic: its own example sends and measures.
fn agent(root: &Path, programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let around = ["unshare", "--map-root-user", "--net", "sh", "-c", NAMESPACE];
    let table = programs.example(root, "live", &around, "5000000")?;
    let table = format!("{}; 1000 streams in bursts of 8, all on one machine.\n\n{table}", {
        measure::machine()
    });
    println!("{table}");
    if options.write {
        table::replace(&root.join("docs/performance.md"), "bench agent", table.trim_end())?;
    }
    Ok(())
}

/// A generated capture and what is true of it.
struct Input {
    file: PathBuf,
    name: String,
    totals: Totals,
}

/// The release builds that are measured.
struct Programs {
    target: PathBuf,
    meter: PathBuf,
    xtask: PathBuf,
}

impl Programs {
    fn build(root: &Path, packages: &[&str]) -> anyhow::Result<Self> {
        let this = std::env::current_exe().context("the path of xtask itself is not known")?;
        let target =
            this.ancestors().nth(2).context("xtask is in no target directory")?.to_path_buf();
        let status = Command::new(env!("CARGO"))
            .args(["build", "--release"])
            .args(packages.iter().flat_map(|package| ["--package", package]))
            .arg("--target-dir")
            .arg(&target)
            .current_dir(root)
            .status()
            .context("cargo does not start")?;
        if !status.success() {
            bail!("the release build ended with {status}");
        }
        let release = target.join("release");
        Ok(Self { meter: release.join("rocescope"), xtask: release.join("xtask"), target })
    }

    /// Builds and runs an example of the program's, inside of another command where one is given,
    /// and gives what it printed.
    fn example(
        &self,
        root: &Path,
        name: &str,
        around: &[&str],
        amount: &str,
    ) -> anyhow::Result<String> {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--release", "--package", "rocescope", "--example", name])
            .arg("--target-dir")
            .arg(&self.target)
            .current_dir(root)
            .status()
            .context("cargo does not start")?;
        if !status.success() {
            bail!("the release build ended with {status}");
        }
        let example = self.target.join("release/examples").join(name);
        let mut command = match around {
            [outer, rest @ ..] => {
                let mut command = Command::new(outer);
                command.args(rest).arg(example);
                command
            }
            [] => Command::new(example),
        };
        let output = command
            .arg(&self.meter)
            .arg(self.target.join(format!("bench-{name}")))
            .arg(amount)
            .stderr(std::process::Stdio::inherit())
            .output()
            .with_context(|| format!("{name} does not start"))?;
        if !output.status.success() {
            bail!("the measurement ended with {}", output.status);
        }
        String::from_utf8(output.stdout).context("the table")
    }

    /// Generates in a process of its own, so that its memory is not counted as a later child's.
    fn input(&self, directory: &Path, packets: u64, streams: u32) -> anyhow::Result<Input> {
        let file = directory.join(format!("{packets}-packets-{streams}-streams.pcap"));
        eprintln!("bench: generating {}", file.display());
        let output = Command::new(&self.xtask)
            .arg("generate")
            .args(["--packets", &packets.to_string(), "--streams", &streams.to_string(), "--out"])
            .arg(&file)
            .output()
            .context("the generator does not start")?;
        if !output.status.success() {
            bail!("the generator: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let totals = serde_json::from_slice(&output.stdout).context("the generator's totals")?;
        Ok(Input { file, name: format!("{packets} packets, {streams} streams"), totals })
    }

    /// Fails where the meter's sums are not the generator's.
    fn agrees(&self, input: &Input) -> anyhow::Result<()> {
        let mut found = measure::sums(self.meter(input, true).command())?;
        // What the meter's reports do not say is not compared.
        (found.packets, found.responses) = (input.totals.packets, input.totals.responses);
        if found != input.totals {
            bail!("{}: the meter says {found:?}, the generator {:?}", input.name, input.totals);
        }
        eprintln!("bench: {}: the meter agrees with the generator", input.name);
        Ok(())
    }

    fn floor(&self, input: &Input) -> Job {
        Job::new("floor", input, &self.xtask, &["floor"]).file(&input.file)
    }

    fn meter(&self, input: &Input, json: bool) -> Job {
        let (name, arguments): (_, &[&str]) = if json {
            ("rocescope meter --json", &["meter", "--attest-all", "--json"])
        } else {
            ("rocescope meter", &["meter", "--attest-all"])
        };
        Job::new(name, input, &self.meter, arguments).file(&input.file)
    }
}

/// Other programs that read captures, where they are installed. They answer other questions: none
/// of them keeps a window of sequence numbers.
fn others(directory: &Path, input: &Input) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    if let Some(program) = measure::installed("tshark") {
        let fields = ["ip.src", "ip.dst", "infiniband.bth.destqp", "infiniband.bth.psn"];
        let mut arguments = vec!["-n", "-T", "fields"];
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        arguments.push("-r");
        jobs.push(Job::new("tshark -T fields", input, &program, &arguments).file(&input.file));
    }
    if let Some(program) = measure::installed("softflowd") {
        // It removes its pid file when it ends, as root whatever that is: never a device.
        let job = Job::new("softflowd", input, &program, &["-d", "-c", "none", "-p"]);
        let job = job.file(&directory.join("softflowd.pid"));
        jobs.push(job.argument("-r").file(&input.file));
    }
    if let Some(program) = measure::installed("nfpcapd") {
        let flows = directory.join("nfpcapd");
        fs::create_dir_all(&flows).context("the directory for nfpcapd cannot be created")?;
        let job = Job::new("nfpcapd", input, &program, &["-w"]).file(&flows);
        jobs.push(job.argument("-r").file(&input.file));
    }
    Ok(jobs)
}
