//! The program: what the command line asks for, and exit codes. 0 is success, 1 a failure told in
//! one line, 2 wrong usage.

mod cli;

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use observe::meter::Settings;
use observe::provision::{Generation, Provisioning, Rule};
use rocescope::agent::{self, control};
use rocescope::check::check;
use rocescope::collector::{self, Disk};
use rocescope::config::{Device, Icrc, MeterLimits, printable, read_device};
use rocescope::demo::{self, DemoError};
use rocescope::discover::{self, DiscoverError};
use rocescope::dump::{self, DumpError};
use rocescope::meter::{self, Format, MeterError, Observation, Place, Run};
use rocescope::pki;
use rocescope::queue::{self, Failed, QueueError};
use rocescope::replay::{self, ReplayError};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use cli::{
    AgentArgs, AgentCommand, CheckArgs, Cli, Command, CtlRequest, DemoArgs, DiscoverArgs, DumpArgs,
    MeterArgs, PkiArgs, PkiCommand, QueueArgs, QueueCommand, ReplayArgs, check_captures,
};

/// Large tables on huge pages: see `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    if let Command::Meter(MeterArgs { captures, .. })
    | Command::Discover(DiscoverArgs { captures, .. }) = &command
    {
        check_captures(captures).unwrap_or_else(|error| error.exit());
    }
    let done = match command {
        Command::Discover(args) => run_discover(args),
        Command::Meter(args) => meter(args),
        Command::Replay(args) => run_replay(args),
        Command::Dump(args) => run_dump(&args),
        Command::Queue(QueueArgs { command }) => run_queue(&command),
        Command::Check(args) => run_check(&args),
        Command::Agent(args) => run_agent(args),
        Command::Demo(args) => run_demo(&args),
        Command::Collector(args) => {
            if let Some(parent) = args.with_parent {
                end_with(parent);
            }
            log();
            collector::run(&args.config, Disk::open)
        }
        Command::Pki(PkiArgs { command: PkiCommand::Init { directory } }) => {
            pki::init(&directory).map_err(one_line)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in problems {
                // Where standard error is gone there is nobody to tell.
                // A name of the user's may hold anything, a new line too.
                _ = writeln!(io::stderr(), "rocescope: {}", printable(&problem));
            }
            ExitCode::FAILURE
        }
    }
}

/// What happens is told on standard error, a line each.
fn log() {
    let terminal = io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(terminal).with_target(false).init();
}

/// Each problem is one line.
type Done = Result<(), Vec<String>>;

fn lines<E: Display>(problems: Vec<E>) -> Vec<String> {
    problems.iter().map(E::to_string).collect()
}

fn one_line(problem: impl Display) -> Vec<String> {
    vec![problem.to_string()]
}

fn run_discover(args: DiscoverArgs) -> Done {
    let stop = Arc::default();
    end_on_signals(&stop)?;
    let live = args.interface.map(|interface| discover::Live {
        interface,
        promiscuous: args.promiscuous,
        duration: args.seconds,
    });
    let interruptible = live.is_none().then(|| stop.clone());
    let run = discover::Run {
        captures: args.captures,
        live,
        stop,
        format: if args.json { Format::Json } else { Format::Table },
        write_config: args.write_config,
        layer: args.layer,
        streams_max: args.streams_max,
    };
    match discover::run(&run, &mut io::stdout().lock(), &mut io::stderr()) {
        Ok(()) => {
            if interruptible.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                eprintln!("interrupted: the results are those of what was read until then");
            }
            Ok(())
        }
        Err(DiscoverError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(one_line(error)),
    }
}

/// The interface that a capture's priority flow control frames are said to be received by.
const CAPTURED_INTERFACE: u32 = 1;

fn meter(args: MeterArgs) -> Done {
    let run = match &args.config {
        Some(file) => configured(file, &args)?,
        None => attested(&args)?,
    };
    let stop = run.stop.clone();
    end_on_signals(&stop)?;
    match meter::run(run, &mut io::stdout().lock(), &mut io::stderr()) {
        Ok(_) => {
            if stop.load(Ordering::Relaxed) {
                eprintln!("interrupted: the results are those of what was read until then");
            }
            Ok(())
        }
        Err(MeterError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(one_line(error)),
    }
}

/// An interrupted observation has results as well: the first signal ends it, a second the program.
fn end_on_signals(stop: &Arc<AtomicBool>) -> Result<(), Vec<String>> {
    use signal_hook::{consts, flag};
    for (signal, code) in [(consts::SIGINT, 130), (consts::SIGTERM, 143)] {
        flag::register_conditional_shutdown(signal, code, stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(|error| one_line(format!("signals: {error}")))?;
    }
    Ok(())
}

/// Everything is metered, on the operator's word.
fn attested(args: &MeterArgs) -> Result<Run, Vec<String>> {
    let limits = MeterLimits::default();
    let rules = Rule::everything(args.window).to_vec();
    let settings = Settings {
        idle_ns: args.idle_timeout.map(nanoseconds),
        periodic: args.report_interval.is_some(),
        seed: seed()?,
        ..Settings::default()
    };
    Ok(Run {
        stop: Arc::default(),
        captures: args.captures.clone(),
        observation: Observation {
            layer: args.layer,
            check_icrc: args.check_icrc,
            sliced: args.sliced,
        },
        place: Place { domain: args.domain, point: args.point },
        provisioning: Provisioning::new(rules, usize::MAX).map_err(one_line)?,
        settings,
        finals_waiting_max: size(limits.finals_waiting_max),
        mirror_sessions_max: size(limits.mirror_sessions_max),
        report_interval_ns: args.report_interval.map(nanoseconds),
        format: format(args),
        window: args.window.get(),
        ipfix: args.ipfix.clone(),
        mapping: args.pen,
        pfc_interface: args.pfc.then_some(CAPTURED_INTERFACE),
    })
}

/// What a configuration file says is metered.
fn configured(file: &Path, args: &MeterArgs) -> Result<Run, Vec<String>> {
    let device = read_device(file).map_err(lines)?;
    let told = |rule: &&Rule| rule.generation == Generation::Established;
    if device.provisioned.iter().map(|provisioned| &provisioned.rule).any(|rule| told(&rule)) {
        return Err(one_line(format!(
            "{}: generation = \"established\", expected \"unverified\": nothing tells of new \
             connections while captures are metered",
            file.display()
        )));
    }
    let Device { observation, metering, .. } = &device;
    Ok(Run {
        stop: Arc::default(),
        captures: args.captures.clone(),
        observation: Observation {
            layer: observation.layer,
            check_icrc: metering.icrc == Icrc::Check,
            sliced: observation.sliced,
        },
        place: Place { domain: observation.domain, point: observation.point },
        provisioning: device.provisioning().map_err(one_line)?,
        settings: metering.settings(args.report_interval.is_some(), seed()?),
        finals_waiting_max: size(metering.limits.finals_waiting_max),
        mirror_sessions_max: size(metering.limits.mirror_sessions_max),
        report_interval_ns: args.report_interval.map(nanoseconds),
        format: format(args),
        window: metering.window.get(),
        ipfix: args.ipfix.clone(),
        mapping: device.elements,
        pfc_interface: args.pfc.then_some(CAPTURED_INTERFACE),
    })
}

fn format(args: &MeterArgs) -> Format {
    if args.json { Format::Json } else { Format::Table }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn seed() -> Result<u64, Vec<String>> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).map_err(|error| one_line(format!("no random seed: {error}")))?;
    Ok(u64::from_ne_bytes(octets))
}

fn run_replay(args: ReplayArgs) -> Done {
    let run = replay::Run {
        paths: args.archives,
        format: if args.json { Format::Json } else { Format::Table },
        mapping: args.pen,
        seed: seed()?,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    match replay::run(&run, &mut out, &mut io::stderr()) {
        Ok(_) => Ok(()),
        Err(ReplayError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(one_line(error)),
    }
}

fn run_dump(args: &DumpArgs) -> Done {
    let name = args.file.display();
    let input = dump::open(&args.file).map_err(|error| one_line(format!("{name}: {error}")))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    match dump::dump(input, &mut out, args.pen) {
        Ok(_) => Ok(()),
        Err(DumpError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(one_line(format!("{name}: {error}"))),
    }
}

fn run_queue(command: &QueueCommand) -> Done {
    let format = |json: bool| if json { Format::Json } else { Format::Table };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let summary = &mut io::stderr();
    let done = match command {
        QueueCommand::Check { file, json, rows_max } => {
            queue::run_check(file, *rows_max, format(*json), &mut out, summary)
        }
        QueueCommand::Aggregate { files, json, rows_max } => {
            check_captures(files).unwrap_or_else(|error| error.exit());
            queue::run_aggregate(files, *rows_max, format(*json), &mut out, summary)
        }
        QueueCommand::Measure { file, interval_ms, queues_max, edges_max } => {
            let settings = queue::Settings {
                interval_ns: interval_ms.saturating_mul(1_000_000),
                queues_max: *queues_max,
                edges_max: *edges_max,
                seed: seed()?,
                ..queue::Settings::default()
            };
            let fresh = queue::fresh_epochs().map_err(one_line)?;
            queue::run_measure(file, settings, fresh, &mut out, summary)
        }
        QueueCommand::Convert { ns3, queues_max } => {
            queue::run_convert(ns3, *queues_max, &mut out, summary)
        }
    };
    match done {
        Err(Failed { error: QueueError::Output(error), .. })
            if error.kind() == ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        done => done.map_err(one_line),
    }
}

fn run_demo(args: &DemoArgs) -> Done {
    let format = if args.json { Format::Json } else { Format::Table };
    match demo::run(demo::Run { once: args.once, format }, &mut io::stdout()) {
        Ok(()) => Ok(()),
        Err(DemoError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(one_line(error)),
    }
}

/// Has the program told to stop when the one that has started it is gone, however that ends.
fn end_with(parent: u32) {
    // Where the kernel cannot do it, the parent still ends the program wherever it can itself.
    _ = set_parent_process_death_signal(Some(Signal::TERM));
    // It may be gone already, and then nobody is told.
    let now = getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if now != Some(parent) {
        process::exit(1);
    }
}

fn run_check(args: &CheckArgs) -> Done {
    let plan = check(&args.file).map_err(lines)?;
    match write!(io::stdout(), "{plan}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(one_line(error)),
        _ => Ok(()),
    }
}

fn run_agent(args: AgentArgs) -> Done {
    if let Some(AgentCommand::Ctl { socket, request }) = args.command {
        let request = match request {
            CtlRequest::Status => control::Request::Status,
            CtlRequest::Streams => control::Request::Streams,
            CtlRequest::Reprovision { key } => control::Request::Reprovision(key),
            CtlRequest::NewGeneration { key } => control::Request::NewGeneration(key),
            CtlRequest::CaptureGap => control::Request::CaptureGap,
        };
        return control::ask(&socket, &request, &mut io::stdout().lock()).map_err(one_line);
    }
    // clap has it that one of the two is there.
    let Some(config) = args.config else { return Ok(()) };
    if let Some(parent) = args.with_parent {
        end_with(parent);
    }
    log();
    agent::run(&config, seed()?)
}
