//! `queue`: queue telemetry offline.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use observe::queue::meter::Settings;
use rocescope::queue::ROWS_MAX;

/// PFC queue telemetry: validate rows, sum them, make them out of events.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  rocescope queue check rows.json\n  rocescope queue aggregate rows.jsonl"
)]
pub struct QueueArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: QueueCommand,
}

const CHECK_EXAMPLE: &str = "\
Examples:
  rocescope queue check rows.json
  rocescope queue measure events.jsonl | rocescope queue check -

A file is one ietf-interfaces:interfaces document, or one a line, or YANG-Push notifications.";

const AGGREGATE_EXAMPLE: &str = "\
Examples:
  rocescope queue aggregate rows.jsonl
  rocescope queue aggregate --json monday.jsonl tuesday.jsonl | jq .gatedBacklogRatio

A ratio is of the time that is known; what is missing is said beside it and never filled.";

const MEASURE_EXAMPLE: &str = "\
Example:
  rocescope queue measure --interval-ms 100 events.jsonl

A line is one event of a source, its time in nanoseconds:
  {\"seq\":1,\"t\":0,\"event\":\"map\",\"interface\":\"Ethernet0\",\"queue\":\"3\",\"priorities\":[3],
   \"method\":\"head\",\"maxError\":255}
  {\"seq\":2,\"t\":0,\"event\":\"backlog\",\"interface\":\"Ethernet0\",\"queue\":\"3\",\"present\":true}
  {\"seq\":3,\"t\":900,\"event\":\"gate\",\"interface\":\"Ethernet0\",\"queue\":\"3\",\"priority\":3,
   \"closed\":true}
and likewise candidate (priority), sample (backlog, gated), lost, restart.";

const CONVERT_EXAMPLE: &str = "\
Example:
  rocescope queue convert --ns3 mix.tr | rocescope queue measure --interval-ms 1 -

Of hosts a trace does not say what waits: their queues become unknown.";

/// What `queue` does.
#[derive(Subcommand)]
pub enum QueueCommand {
    /// Validate rows, schema and procedure: a line for each thing that is wrong, and then exit
    /// code 1.
    #[command(after_help = CHECK_EXAMPLE)]
    Check {
        /// Rows as RFC 7951 has them; `-` is standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// JSON Lines instead of text.
        #[arg(long)]
        json: bool,
        /// Rows that are remembered to be compared, at most.
        #[arg(long, default_value_t = ROWS_MAX, value_name = "N")]
        rows_max: usize,
    },
    /// Sum rows within each epoch of each queue, with error bounds and what is missing.
    #[command(after_help = AGGREGATE_EXAMPLE)]
    Aggregate {
        /// Rows as RFC 7951 has them, in any order; `-` is standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// JSON Lines instead of a table: an object for each epoch of each queue.
        #[arg(long)]
        json: bool,
        /// Rows that are remembered, at most.
        #[arg(long, default_value_t = ROWS_MAX, value_name = "N")]
        rows_max: usize,
    },
    /// Make rows out of the events of one source: a document a line, each with one row.
    #[command(after_help = MEASURE_EXAMPLE)]
    Measure {
        /// Events, one a line; `-` is standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// How long an interval is that nothing cuts short, in milliseconds: 1 to 86400000.
        #[arg(
            long, default_value_t = 100, value_name = "MS",
            value_parser = clap::value_parser!(u64).range(1..=86_400_000)
        )]
        interval_ms: u64,
        /// Queues, at most.
        #[arg(long, default_value_t = Settings::default().queues_max, value_name = "N")]
        queues_max: usize,
        /// Transitions of a queue that wait for what may have happened before them, at most.
        #[arg(long, default_value_t = Settings::default().edges_max, value_name = "N")]
        edges_max: usize,
    },
    /// Make events out of a trace of a simulation, for research; what is not in it is said on
    /// standard error.
    #[command(after_help = CONVERT_EXAMPLE)]
    Convert {
        /// A trace of HPCC's ns-3 simulation, such as mix.tr; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        ns3: PathBuf,
        /// Queues, at most.
        #[arg(long, default_value_t = Settings::default().queues_max, value_name = "N")]
        queues_max: usize,
    },
}
