//! The command line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use observe::meter::Settings;
use observe::provision::{Provisioning, Rule};
use observe::window::Window;
use rocescope::meter::{self, Format, Observation, Place};
use wire::element::Mapping;
use wire::frame::Layer;

/// Telemetry for lossless RoCEv2 fabrics that claims no more than was observed.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Meter(MeterArgs),
}

/// Meter captures offline: captures in, reports out.
#[derive(Args)]
struct MeterArgs {
    /// pcap or pcapng, plain or compressed with gzip or zstd; `-` is standard input.
    #[arg(required = true)]
    captures: Vec<PathBuf>,
    /// The operator states that every RC connection in the captures is restricted to SEND and
    /// WRITE, and that the captures are complete.
    #[arg(long)]
    attest_all: bool,
    /// History width W in PSN positions, 1 to 4194304.
    #[arg(long, default_value_t = 1024)]
    window: u32,
    /// JSON Lines instead of a table.
    #[arg(long)]
    json: bool,
    /// Count priority flow control frames too.
    #[arg(long)]
    pfc: bool,
    /// Write an IPFIX File (RFC 5655) as well.
    #[arg(long)]
    ipfix: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Command::Meter(args) = Cli::parse().command;
    let window = match Window::new(args.window) {
        Ok(w) => w,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    let run = meter::Run {
        captures: args.captures,
        observation: Observation { layer: Layer::Outer, check_icrc: false, sliced: false },
        place: Place { domain: 1, point: 1 },
        provisioning: Provisioning::new(Rule::everything(window).to_vec(), 16).unwrap(),
        settings: Settings::default(),
        finals_waiting_max: 1_000_000,
        mirror_sessions_max: 1024,
        report_interval_ns: None,
        format: if args.json { Format::Json } else { Format::Table },
        window: args.window,
        ipfix: args.ipfix,
        mapping: Mapping::default(),
        pfc_interface: args.pfc.then_some(1),
    };
    match meter::run(run, &mut io::stdout().lock(), &mut io::stderr().lock()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}
