//! The tools that people type: `cargo xtask ci`, `spec`, `generate`, `floor`, `bench`.
//!
//! They run on the checkout that they were built from and know nothing about measurements that
//! the shipped crates do not know better, with one exception: [`bench::truth`] is a second, slow
//! account of generated traffic, there to disagree with the shipped one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

mod bench;
mod ci;
mod spec;

/// Tools of the rocescope repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Subcommand)]
enum Tool {
    /// Everything that must hold before a change is merged.
    Ci {
        /// Only what needs no test run: format, requirements, lints.
        #[arg(long)]
        quick: bool,
    },
    /// Writes spec/coverage.md: which line enforces each requirement, which test proves it.
    Spec {
        /// Write nothing; fail where the file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Writes a pcap of RoCEv2 requests and prints what is true of it as JSON.
    Generate(bench::generate::Options),
    /// Steps over a pcap, reads the four fields that a meter cannot do without, and prints a
    /// checksum over them: the least that any meter must spend.
    Floor {
        /// A pcap of Ethernet and IPv4 as `generate` writes it.
        file: PathBuf,
    },
    /// Reads sequence reports from memory in three ways and prints their times as JSON; `bench
    /// --records` runs it.
    Records(bench::records::Options),
    /// Fills a store, has it served, and prints how long answers take; `bench --api` runs it.
    Api {
        /// The program that serves.
        #[arg(long)]
        rocescope: PathBuf,
        /// Where the store is made; removed before and after.
        #[arg(long)]
        directory: PathBuf,
        /// What to measure.
        #[command(flatten)]
        options: bench::api::Options,
    },
    /// Measures the meter against the floor and against other programs.
    Bench(bench::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().tool) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(tool: Tool) -> anyhow::Result<()> {
    let root = root()?;
    match tool {
        Tool::Ci { quick } => ci::run(&root, quick),
        Tool::Spec { check } => spec::run(&root, check),
        Tool::Generate(options) => bench::generate::run(&options),
        Tool::Floor { file } => bench::floor::run(&file),
        Tool::Records(options) => bench::records::run(&options),
        Tool::Api { rocescope, directory, options } => {
            println!("{}", bench::api::run(&rocescope, &directory, options)?);
            Ok(())
        }
        Tool::Bench(options) => bench::run(&root, &options),
    }
}

/// The repository's root: the directory above this crate's.
fn root() -> anyhow::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("xtask's own directory has no parent")
}
