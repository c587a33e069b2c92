//! `rocescope agent`: the device side, live. Frames from interfaces or files are metered once for
//! each Transport Session, and reports go to each collector over TLS 1.3.
//!
//! One thread a source, one that meters, and tokio for everything that waits for the network.
//! Between them are bounded queues: a slow collector makes its session skip reports, a slow meter
//! makes the kernel drop frames, which its counter tells.

pub mod control;
mod counters;
mod destination;
pub mod disabled;
mod lacking;
mod link;
pub mod manage;
mod metrics;
mod name;
mod observer;
mod pfc;
mod place;
mod privileges;
mod queue;
mod reload;
pub mod session;
mod silence;
pub(crate) mod source;
mod state;
pub(crate) mod tls;

use std::fs::File;
use std::os::unix::net::UnixListener as BlockingListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use observe::provision::Provisioning;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use wire::element::PEN_DOCUMENTATION;

use crate::check::readable;
use crate::config::{self, Device, Export, Icrc, Security};
use crate::meter::Place;
use crate::observation::Observation;
use crate::queue::board::{Board, Limits};
use crate::serve::local::{self, Bounds};
use destination::{Destination, DestinationCounts};
use observer::{Command, Observer, SourceKinds};
use place::Target;
use privileges::Who;
use session::SessionSettings;
use tls::Tls;

/// How long the observer and the connections may take to end beyond what the configuration says.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs an agent until it is told to stop, or the files that it plays are through.
///
/// # Errors
/// A line for each thing that keeps it from starting, or that went wrong at its end.
pub fn run(path: &Path, seed: u64) -> Result<(), Vec<String>> {
    let device = config::read_device(path)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let agent = Agent::prepare(path, device, seed).map_err(|problem| vec![problem])?;
    agent.run(path).map_err(|problem| vec![problem])
}

/// All that can fail at the start has been done.
struct Agent {
    device: Device,
    provisioning: Provisioning,
    disabled: disabled::Disabled,
    destinations: Vec<(Export, Option<Tls>)>,
    interfaces: Vec<source::Open>,
    pfc: Vec<pfc::Opened>,
    queues: Vec<queue::Opened>,
    manage: Option<self::manage::Opened>,
    control: Option<BlockingListener>,
    metrics: Option<std::net::TcpListener>,
    seed: u64,
}

impl Agent {
    fn prepare(path: &Path, device: Device, seed: u64) -> Result<Self, String> {
        if device.sources.is_empty() && device.pfc.is_none() && device.queue.is_none() {
            tracing::warn!("no [[source]], so nothing is observed: name an interface or a file");
        }
        // Queue telemetry is asked for, and goes to no collector by itself.
        let exports = !device.sources.is_empty() || device.pfc.is_some() || device.queue.is_none();
        if device.exports.is_empty() && exports {
            return Err(NO_EXPORT.into());
        }
        warn_of_documentation_numbers(&device);
        let provisioning = device.provisioning().map_err(|error| error.to_string())?;
        let who = device.agent.account.as_ref().map(Who::find).transpose()?;
        let streams_max = size(device.metering.limits.contexts_max);
        let mut disabled = match &device.agent.state_file {
            Some(file) => state::read(&file.path, device.observation.layer, streams_max)?,
            None => disabled::Disabled::new(streams_max),
        };
        // SEQ-3.3: a higher revision is the operator's word.
        _ = disabled.provision(&provisioning);
        let destinations = device
            .exports
            .iter()
            .map(|export| Ok((export.clone(), security(export)?)))
            .collect::<Result<_, String>>()?;
        let interfaces = (0..)
            .zip(&device.sources.interfaces)
            .map(|(number, interface)| source::open(number, interface, source::Part::All))
            .collect::<Result<_, _>>()?;
        let pfc = pfc::open(&device)?;
        let queues = queue::open(&device, who.as_ref())?;
        let manage = self::manage::open(&device)?;
        let control = match &device.agent.control_socket {
            Some(socket) => Some(control::listen(&socket.path)?),
            None => None,
        };
        let metrics = device.agent.metrics_listen.map(metrics::listen).transpose()?;
        if let Some(who) = &who {
            if let Some(socket) = &device.agent.control_socket {
                who.give(&socket.path)?;
            }
            who.become_it()?;
            tracing::info!("runs as user {} from here on, without privileges", who.name());
        }
        expect_access(path, &device)?;
        // SEQ-3.3: where it could not be kept later, a violation would be forgotten.
        if let Some(file) = &device.agent.state_file {
            state::write(&file.path, &disabled)
                .map_err(|error| format!("{file}: cannot be written: {error}"))?;
        }
        Ok(Self {
            device,
            provisioning,
            disabled,
            destinations,
            interfaces,
            pfc,
            queues,
            manage,
            control,
            metrics,
            seed,
        })
    }

    fn run(self, path: &Path) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| format!("no runtime: {error}"))?;
        let limits = self.device.agent.limits;
        let socket = self.device.agent.control_socket.as_ref().map(|socket| socket.path.clone());
        let (commands, commanded) = mpsc::channel();
        let (events, observed) = source::channel(size(limits.batches_waiting_max));
        let (stop, stopped) = watch::channel(false);
        if let Some(listener) = self.control {
            listen(&runtime, listener, &self.device, &commands)?;
        }
        let metrics = self.metrics.map(|listener| (listener, commands.clone()));
        watch_signals(&runtime, path.to_owned(), commands.clone())?;
        let mut connections = Vec::new();
        let mut targets = Vec::new();
        for (index, (export, tls)) in self.destinations.into_iter().enumerate() {
            let counts = Arc::new(DestinationCounts::default());
            targets.push(Target {
                name: format!("{} port {}", export.host, export.port),
                settings: session_settings(&self.device, &export, self.seed),
                counts: counts.clone(),
            });
            let destination = Destination { index, export, tls, limits, counts };
            let kept = destination::keep(destination, commands.clone(), stopped.clone());
            connections.push(runtime.spawn(kept));
        }
        drop(commands);
        let kinds = SourceKinds {
            interfaces: self.interfaces.len(),
            files: !self.device.sources.files.is_empty(),
        };
        let stop_sources = Arc::new(AtomicBool::new(false));
        let reopens = self.device.agent.account.is_none();
        start_sources(&self.device, self.interfaces, reopens, &events, &stop_sources)?;
        let shelves = pfc::start(self.pfc, &stop_sources)?;
        let with_pfc = self.device.pfc.is_some();
        let queue_sockets = queue::sockets(&self.device);
        let board = self.device.queue.as_ref().map(queue::board);
        let queues = match &board {
            Some(board) => queue::start(self.queues, board, self.seed, &stop_sources)?,
            None => Vec::new(),
        };
        let managed = match self.manage {
            Some(opened) => {
                let none = || Arc::new(Board::new(Limits::default()));
                let board = board.clone().unwrap_or_else(none);
                let (managed, serving) = opened.serve(&runtime, board, &stopped)?;
                connections.extend(serving);
                Some(managed)
            }
            None => None,
        };
        if let Some((listener, commands)) = metrics {
            let router = metrics::router(commands, managed.clone());
            serve_metrics(&runtime, listener, &self.device, router)?;
        }
        let observer = Observer::new(
            self.device,
            self.provisioning,
            self.disabled,
            targets,
            kinds,
            stop_sources,
            events.waiting(),
        )
        .with_readings(shelves)
        .with_queues(queues, board)
        .with_managed(managed);
        drop(events);
        let (ended, failed) = observer.run(&observed, &commanded);
        // The connections end by themselves when their pipes do; none is made any more.
        _ = stop.send(true);
        let patience = Duration::from_secs(limits.stop_timeout_s) + PATIENCE;
        runtime.block_on(async {
            for connection in connections {
                _ = tokio::time::timeout(patience, connection).await;
            }
        });
        runtime.shutdown_background();
        // Nobody listens to them any more.
        socket.iter().chain(&queue_sockets).for_each(|path| control::remove(path));
        let mut undelivered = 0_u64;
        let nothing = ended.iter().all(|ended| ended.way.handed_over().reports == 0);
        let unseen = ended.iter().map(|ended| ended.frames_without_session).max().unwrap_or(0);
        for destination in ended {
            let (counts, way) = (destination.counts, destination.way.handed_over());
            // SEQ-4.13: what the network never took is no report that went out.
            let [unsent, unsent_finals] = counts.beyond(way);
            if way.reports == 0 {
                let finals = counts.dropped_finals.saturating_add(unsent_finals);
                undelivered = undelivered.saturating_add(finals);
            }
            // PFC-op.1
            let readings = match with_pfc {
                true => format!(
                    "; {} PFC readings serialised, {} skipped",
                    counts.readings, counts.skipped_readings
                ),
                false => String::new(),
            };
            tracing::info!(
                "{}: {} reports sent, {} of them final; {unsent} queued and not sent, \
                 {unsent_finals} of them final; {} reports skipped, {} final reports dropped; {} \
                 frames passed without a session{readings}",
                destination.name,
                way.reports,
                way.finals,
                counts.skipped_reports,
                counts.dropped_finals,
                destination.frames_without_session
            );
        }
        match failed {
            Some(failed) => Err(failed),
            // What was observed and not delivered is gone: that is no success.
            None if undelivered > 0 => {
                Err(format!("{undelivered} final reports were not taken by any collector"))
            }
            None if nothing && unseen > 0 => Err(format!(
                "no report was taken by any collector, and {unseen} frames passed while none was \
                 connected"
            )),
            None => Ok(()),
        }
    }
}

/// Why an agent would not begin, as far as the configuration and its files tell: the keys, and what
/// is wrong.
pub fn refusals(device: &Device) -> Vec<(String, Option<usize>, String)> {
    let mut all = Vec::new();
    if device.exports.is_empty() && !device.sources.is_empty() {
        all.push(("export".into(), None, NO_EXPORT.to_owned()));
    }
    for export in &device.exports {
        if let Security::Tls { server, certificate, private_key } = &export.security
            && let Err(problem) = tls::load(server, &export.host, Some((certificate, private_key)))
        {
            all.push((export.key.clone(), Some(certificate.line), problem));
        }
    }
    all.extend(self::manage::refusals(device));
    all.extend(queue::refusals(device));
    let streams_max = size(device.metering.limits.contexts_max);
    if let Some(file) = &device.agent.state_file
        && let Err(problem) = state::read(&file.path, device.observation.layer, streams_max)
    {
        all.push((file.key.clone(), Some(file.line), problem));
    }
    all
}

const NO_EXPORT: &str = "no [[export]], expected a collector to report to";

/// What the agent will have to read as the user that it is now.
fn expect_access(path: &Path, device: &Device) -> Result<(), String> {
    for replay in &device.sources.files {
        readable(&replay.file.path)?;
    }
    device.queue_files().try_for_each(|file| readable(&file.path))?;
    if device.agent.account.is_some()
        && let Err(error) = File::open(path)
    {
        tracing::warn!("{}: {error}: a reload will not be able to read it", path.display());
    }
    Ok(())
}

// PFC-sec.1: readings of PFC counters go the way of reports.
fn security(export: &Export) -> Result<Option<Tls>, String> {
    match &export.security {
        Security::Tls { server, certificate, private_key } => {
            tls::load(server, &export.host, Some((certificate, private_key))).map(Some)
        }
        Security::PlainToThisMachine => {
            tracing::warn!(
                "{} port {}: reports go out WITHOUT TLS, neither encrypted nor authenticated",
                export.host,
                export.port
            );
            Ok(None)
        }
    }
}

// SEQ-6.8
fn warn_of_documentation_numbers(device: &Device) {
    let here = |export: &Export| {
        let address = export.host.parse::<std::net::IpAddr>();
        address.is_ok_and(|address| address.is_loopback()) || export.host == "localhost"
    };
    if device.elements.pen() == PEN_DOCUMENTATION && !device.exports.iter().all(here) {
        tracing::warn!(
            "elements.pen is {PEN_DOCUMENTATION}, the number kept for documentation (RFC 5612): \
             use one of your own where a collector is on another machine"
        );
    }
}

fn session_settings(device: &Device, export: &Export, seed: u64) -> SessionSettings {
    let Device { observation, metering, elements, agent, .. } = device;
    let milliseconds = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    SessionSettings {
        observation: Observation {
            layer: observation.layer,
            check_icrc: metering.icrc == Icrc::Check,
            sliced: observation.sliced,
        },
        place: Place { domain: observation.domain, point: observation.point },
        mapping: *elements,
        extended: device.pfc.as_ref().is_some_and(|pfc| pfc.instance_ids),
        meter: metering.settings(true, seed),
        finals_waiting_max: size(metering.limits.finals_waiting_max),
        finals_queued_max: size(agent.limits.finals_queued_max),
        mirror_sessions_max: size(metering.limits.mirror_sessions_max),
        report_interval_ms: milliseconds(export.report_interval),
        sign_of_life_ms: milliseconds(export.sign_of_life),
    }
}

fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Serves the control socket.
fn listen(
    runtime: &Runtime,
    listener: BlockingListener,
    device: &Device,
    commands: &Sender<Command>,
) -> Result<(), String> {
    let _inside = runtime.enter();
    let listener = UnixListener::from_std(listener)
        .map_err(|error| format!("agent.control_socket: {error}"))?;
    let max = size(device.agent.limits.control_connections_max);
    runtime.spawn(control::serve(listener, commands.clone(), max));
    Ok(())
}

/// Serves metrics.
fn serve_metrics(
    runtime: &Runtime,
    listener: std::net::TcpListener,
    device: &Device,
    router: axum::Router,
) -> Result<(), String> {
    let _inside = runtime.enter();
    let failed = |error| format!("agent.metrics_listen: {error}");
    let listener = TcpListener::from_std(listener).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let limits = device.agent.limits;
    let bounds = Bounds {
        connections_max: size(limits.metrics_connections_max),
        head_octets_max: size(limits.metrics_head_octets_max),
        within: Duration::from_secs(limits.metrics_timeout_s),
    };
    runtime.spawn(local::serve(listener, router, bounds));
    tracing::info!("serves metrics on http://{address}/metrics");
    Ok(())
}

/// SIGTERM and SIGINT stop, SIGHUP reloads.
fn watch_signals(
    runtime: &Runtime,
    path: PathBuf,
    commands: Sender<Command>,
) -> Result<(), String> {
    let _inside = runtime.enter();
    let kind = |kind: SignalKind| signal(kind).map_err(|error| format!("no signals: {error}"));
    let terminate = kind(SignalKind::terminate())?;
    let interrupt = kind(SignalKind::interrupt())?;
    let hangup = kind(SignalKind::hangup())?;
    runtime.spawn(signals(path, commands, terminate, interrupt, hangup));
    Ok(())
}

async fn signals(
    path: PathBuf,
    commands: Sender<Command>,
    mut terminate: Signal,
    mut interrupt: Signal,
    mut hangup: Signal,
) {
    loop {
        let command = tokio::select! {
            _ = terminate.recv() => Command::Stop,
            _ = interrupt.recv() => Command::Stop,
            _ = hangup.recv() => reload(&path),
        };
        if commands.send(command).is_err() {
            return;
        }
    }
}

/// A configuration that does not pass changes nothing, but for what the operator does not attest
/// any more: that is not metered on.
// SEQ-3.6
fn reload(path: &Path) -> Command {
    let errors = match config::read_device(path) {
        Ok(device) => return Command::Reload(Box::new(device)),
        Err(errors) => errors,
    };
    let withdrawing = config::read_device_with_withdrawals(path);
    for error in &errors {
        match withdrawing {
            Ok(_) => tracing::warn!("not metered any more: {error}"),
            Err(_) => tracing::error!("not reloaded: {error}"),
        }
    }
    withdrawing.map_or(Command::NotReloaded, |device| Command::Reload(Box::new(device)))
}

/// A thread for each interface, or one for the files.
fn start_sources(
    device: &Device,
    interfaces: Vec<source::Open>,
    reopens: bool,
    events: &source::Events,
    stop: &Arc<AtomicBool>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("no thread for a source: {error}");
    for open in interfaces {
        let (events, stop) = (events.clone(), stop.clone());
        source::thread("capture", move || source::capture(open, reopens, &events, &stop))
            .map_err(failed)?;
    }
    let files = device.sources.files.clone();
    if !files.is_empty() {
        let events = events.clone();
        source::thread("replay", move || source::play(&files, &events)).map_err(failed)?;
    }
    Ok(())
}
