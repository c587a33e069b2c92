//! The command line: what each subcommand takes, with an example in its help.

mod queue;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand, value_parser};
use observe::window::{WINDOW_MAX, Window};
use rocescope::discover::STREAMS_MAX;
use wire::element::Mapping;
use wire::frame::Layer;

pub use queue::{QueueArgs, QueueCommand};

/// Telemetry for lossless RoCEv2 fabrics that never claims more than was observed.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    Discover(DiscoverArgs),
    Meter(MeterArgs),
    Replay(ReplayArgs),
    Dump(DumpArgs),
    Queue(QueueArgs),
    Check(CheckArgs),
    Agent(AgentArgs),
    Collector(CollectorArgs),
    Pki(PkiArgs),
    Demo(DemoArgs),
}

const DISCOVER_EXAMPLE: &str = "\
Examples:
  rocescope discover capture.pcap
  rocescope discover --write-config agent.toml capture-1.pcap.zst capture-2.pcap.zst
  rocescope discover --interface eth0 --seconds 10";

/// What RoCEv2 and PFC there is, which streams fit the profile, and why others do not.
#[derive(Args)]
#[command(after_help = DISCOVER_EXAMPLE)]
pub struct DiscoverArgs {
    /// pcap or pcapng, plain or compressed with gzip or zstd, in their order; `-` is standard
    /// input.
    #[arg(required_unless_present = "interface", value_name = "CAPTURE")]
    pub captures: Vec<PathBuf>,
    /// Look at a network interface instead, until Ctrl-C or for as long as --seconds says. Takes
    /// root, or the capability CAP_NET_RAW.
    #[arg(long, value_name = "NAME", conflicts_with = "captures")]
    pub interface: Option<String>,
    /// Look at the interface for this long.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "interface", conflicts_with = "captures")]
    pub seconds: Option<Duration>,
    /// Ask the interface for frames to other stations too, as on the port of a mirror.
    #[arg(long, requires = "interface", conflicts_with = "captures")]
    pub promiscuous: bool,
    /// JSON Lines instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Write a starter configuration with the streams that fit. What only the operator can attest
    /// stands unattested in it.
    #[arg(long, value_name = "FILE")]
    pub write_config: Option<PathBuf>,
    /// The layer whose streams go into the starter configuration, where there are several.
    #[arg(long, value_parser = layer, requires = "write_config")]
    pub layer: Option<Layer>,
    /// Streams that are told apart, at most.
    #[arg(long, default_value_t = STREAMS_MAX, value_name = "N")]
    pub streams_max: usize,
}

const METER_EXAMPLE: &str = "\
Examples:
  rocescope meter --attest-all capture.pcap
  rocescope meter --attest-all --window 64 --json capture-1.pcapng.gz capture-2.pcapng.gz
  dumpcap -q -i eth0 -w - | rocescope meter --config agent.toml --ipfix out.ipfix -

A capture filter omits packets that count, such as fragments and what has a VLAN tag, and a plain
pcap does not tell of drops. dumpcap without a filter writes pcapng, which does.";

/// Meter captures offline: captures in, reports out.
#[derive(Args)]
#[command(after_help = METER_EXAMPLE, group = ArgGroup::new("provisioning").required(true))]
pub struct MeterArgs {
    /// pcap or pcapng, plain or compressed with gzip or zstd, in their order; `-` is standard
    /// input.
    #[arg(required = true, value_name = "CAPTURE")]
    pub captures: Vec<PathBuf>,
    /// State that every RC connection in the captures is restricted to SEND and WRITE, and that
    /// the captures are complete.
    #[arg(long, group = "provisioning")]
    pub attest_all: bool,
    /// Take streams, attestations, layer and limits from this file.
    #[arg(long, group = "provisioning", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// History width W in PSN positions, 1 to 4194304.
    #[arg(long, default_value = "1024", value_parser = window, allow_hyphen_values = true, conflicts_with = "config")]
    pub window: Window,
    /// JSON Lines on standard output, the summary on standard error.
    #[arg(long)]
    pub json: bool,
    /// Write an IPFIX File (RFC 5655) as well.
    #[arg(long, value_name = "FILE")]
    pub ipfix: Option<PathBuf>,
    /// Report epochs that go on too, this many seconds of capture time apart; without it only
    /// final reports are made.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub report_interval: Option<Duration>,
    /// Count priority flow control frames as received. You state that each captured interface, by its
    /// number over all captures, is one physical link, no bundle of links; that what is captured
    /// came in there, as from a tap of one direction, where the capture does not say itself which
    /// frames were sent; and that every frame that came in is in the captures, none left out by a
    /// filter. With --layer erspan the same of the one port that is mirrored.
    #[arg(long)]
    pub pfc: bool,
    /// The layer that is observed: outer, erspan, gre, vxlan or geneve.
    #[arg(long, default_value = "outer", value_parser = layer, conflicts_with = "config")]
    pub layer: Layer,
    /// The mirror cuts packets without saying so: do not hold lengths against the frame's end.
    #[arg(long, conflicts_with = "config")]
    pub sliced: bool,
    /// Check every ICRC; a packet that fails is attributed to no stream.
    #[arg(long, conflicts_with = "config")]
    pub check_icrc: bool,
    /// Close an epoch whose stream is silent for longer than this; without it never.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "config")]
    pub idle_timeout: Option<Duration>,
    /// Observation Domain ID, from 1.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..), conflicts_with = "config")]
    pub domain: u32,
    /// observationPointId.
    #[arg(long, default_value_t = 1, conflicts_with = "config")]
    pub point: u64,
    /// Private Enterprise Number of the drafts' elements.
    #[arg(long, default_value = "32473", value_parser = mapping, conflicts_with = "config")]
    pub pen: Mapping,
}

const REPLAY_EXAMPLE: &str = "\
Examples:
  rocescope replay data/archive
  rocescope replay --json data/archive/0000000001-000000.ipfix.zst";

/// Recompute outcomes from archived IPFIX Files alone: the same verdicts as live.
#[derive(Args)]
#[command(after_help = REPLAY_EXAMPLE)]
pub struct ReplayArgs {
    /// Archives of a collector, segments of them, or any IPFIX Files.
    #[arg(required = true, value_name = "ARCHIVE")]
    pub archives: Vec<PathBuf>,
    /// JSON Lines on standard output: an object for each epoch.
    #[arg(long)]
    pub json: bool,
    /// Private Enterprise Number of the drafts' elements, where no facts stand beside a file.
    #[arg(long, default_value = "32473", value_parser = mapping)]
    pub pen: Mapping,
}

const DUMP_EXAMPLE: &str = "\
Examples:
  rocescope dump out.ipfix
  rocescope dump data/archive/0000000001-000000.ipfix.zst";

/// Any IPFIX File or message stream to JSON Lines.
#[derive(Args)]
#[command(after_help = DUMP_EXAMPLE)]
pub struct DumpArgs {
    /// An IPFIX File, plain or compressed with gzip or zstd, or `-` for standard input.
    pub file: PathBuf,
    /// Private Enterprise Number of the drafts' elements.
    #[arg(long, default_value = "32473", value_parser = mapping)]
    pub pen: Mapping,
}

const AGENT_EXAMPLE: &str = "\
Examples:
  rocescope agent --config agent.toml
  rocescope agent ctl --socket agent.sock status
  rocescope agent ctl --socket agent.sock reprovision '10.0.0.1 > 10.0.0.2 qp 17 pkey 0xffff'";

/// The device side: live metering, PFC counters and queue telemetry. Reports go to collectors over
/// mutual TLS; rows of queues are served over RESTCONF and NETCONF.
#[derive(Args)]
#[command(after_help = AGENT_EXAMPLE, args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    /// What is observed, which streams are provisioned, and where reports go. SIGHUP reads it
    /// again.
    #[arg(long, value_name = "FILE", required = true)]
    pub config: Option<PathBuf>,
    /// Stop when this process, which has started the agent, ends.
    #[arg(long, value_name = "PID", hide = true)]
    pub with_parent: Option<u32>,
    /// Something else than to run.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
}

/// What else there is to do with an agent.
#[derive(Subcommand)]
pub enum AgentCommand {
    /// Ask an agent that runs: JSON Lines.
    #[command(after_help = "Example:\n  rocescope agent ctl --socket agent.sock status")]
    Ctl {
        /// Its control socket, `agent.control_socket` in its configuration.
        #[arg(long, value_name = "PATH")]
        socket: PathBuf,
        /// What to ask.
        #[command(subcommand)]
        request: CtlRequest,
    },
}

/// What an agent that runs can be asked.
#[derive(Subcommand)]
pub enum CtlRequest {
    /// Sessions and counters.
    Status,
    /// Every stream with its epoch.
    Streams,
    /// Meter a stream again that a violation has disabled.
    Reprovision {
        /// As `streams` shows it: "10.0.0.1 > 10.0.0.2 qp 17 pkey 0xffff".
        key: String,
    },
    /// A new connection generation of a stream begins.
    NewGeneration {
        /// As `streams` shows it: "10.0.0.1 > 10.0.0.2 qp 17 pkey 0xffff".
        key: String,
    },
    /// The capture has missed packets that could be of any stream.
    CaptureGap,
}

const CHECK_EXAMPLE: &str = "\
Examples:
  rocescope check agent.toml
  rocescope check collector.toml";

/// Validate a configuration file and print what it would do.
#[derive(Args)]
#[command(after_help = CHECK_EXAMPLE)]
pub struct CheckArgs {
    /// A configuration of an agent or of a collector.
    pub file: PathBuf,
}

/// Collect reports over mutual TLS, validate them, and keep what came of every epoch.
#[derive(Args)]
#[command(after_help = "Example:\n  rocescope collector --config collector.toml")]
pub struct CollectorArgs {
    /// The collector's configuration. SIGHUP reads it anew.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Stop when this process, which has started the collector, ends.
    #[arg(long, value_name = "PID", hide = true)]
    pub with_parent: Option<u32>,
}

const DEMO_EXAMPLE: &str = "\
Examples:
  rocescope demo --once
  rocescope demo --once --json | jq .outcome
  rocescope demo";

/// Everything on this machine: a private authority, a collector and an agent over mutual TLS, and
/// real captures that the program carries. Leaves nothing behind.
#[derive(Args)]
#[command(after_help = DEMO_EXAMPLE)]
pub struct DemoArgs {
    /// End once every capture has been played, instead of playing them until Ctrl-C.
    #[arg(long)]
    pub once: bool,
    /// JSON Lines instead of a table: an object for each epoch.
    #[arg(long)]
    pub json: bool,
}

/// Certificates and configurations for trying out.
#[derive(Args)]
#[command(
    after_help = "Example:\n  rocescope pki init try\n  rocescope collector --config try/collector.toml &\n  rocescope agent --config try/agent.toml"
)]
pub struct PkiArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PkiCommand,
}

/// What `pki` does.
#[derive(Subcommand)]
pub enum PkiCommand {
    /// Make a private authority, certificates and keys of a collector and an agent, two
    /// configurations that work together on this machine as they stand, and a capture to play.
    #[command(
        after_help = "Example:\n  rocescope pki init try\n  rocescope collector --config try/collector.toml &\n  rocescope agent --config try/agent.toml"
    )]
    Init {
        /// A directory, made if it is not there; no file in it is overwritten.
        directory: PathBuf,
    },
}

/// The drafts' elements under an enterprise number, with their default numbers.
fn mapping(text: &str) -> Result<Mapping, String> {
    let legal = || "expected an enterprise number, 1 to 4294967295".to_owned();
    let pen = text.parse().map_err(|_| legal())?;
    Mapping::new(pen).map_err(|_| legal())
}

fn window(text: &str) -> Result<Window, String> {
    let legal = || format!("expected 1 to {WINDOW_MAX}");
    let width: u32 = text.parse().map_err(|_| legal())?;
    Window::new(width).map_err(|_| legal())
}

fn layer(text: &str) -> Result<Layer, String> {
    Layer::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Layer::ALL.iter().map(|layer| layer.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Seconds, with a fraction if need be, above 0.
fn seconds(text: &str) -> Result<Duration, String> {
    let legal = || "expected seconds above 0, such as 10 or 0.5, at most 1000000000".to_owned();
    let seconds: f64 = text.parse().map_err(|_| legal())?;
    if !(seconds > 0.0 && seconds <= 1e9) {
        return Err(legal());
    }
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| legal())?;
    if duration.is_zero() { Err(legal()) } else { Ok(duration) }
}

/// Standard input can be read once.
pub fn check_captures(captures: &[PathBuf]) -> Result<(), clap::Error> {
    let standard_input = captures.iter().filter(|path| path.as_os_str() == "-").count();
    if standard_input > 1 {
        let message = "`-` is given more than once, expected once: standard input can be read once";
        return Err(Cli::command().error(clap::error::ErrorKind::ArgumentConflict, message));
    }
    Ok(())
}
