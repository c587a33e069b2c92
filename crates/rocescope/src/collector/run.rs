//! The program: the configuration, the signals, and the end.

use std::path::Path;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use super::listen::Running;
use super::metrics::Metrics;
use super::sink::Sink;
use crate::config::{Collector, read_collector};

/// Collects until SIGTERM or SIGINT; SIGHUP reads the configuration anew.
///
/// # Errors
/// Why it cannot begin, each problem a line.
pub fn run<S: Sink>(
    path: &Path,
    sink: impl FnOnce(&Collector) -> Result<S, String>,
) -> Result<(), Vec<String>> {
    let config = read_collector(path).map_err(lines)?;
    let sink = sink(&config).map_err(|problem| vec![problem])?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| vec![format!("no threads: {error}")])?;
    runtime.block_on(collecting(path, config, sink)).map_err(|problem| vec![problem])
}

async fn collecting(path: &Path, config: Collector, sink: impl Sink) -> Result<(), String> {
    let caught = |kind| signal(kind).map_err(|error| format!("signals: {error}"));
    let (mut hangup, mut terminate, mut interrupt) = (
        caught(SignalKind::hangup())?,
        caught(SignalKind::terminate())?,
        caught(SignalKind::interrupt())?,
    );
    let running = Running::start(&config, sink)
        .await
        .map_err(|problem| format!("{}: {problem}", path.display()))?;
    loop {
        tokio::select! {
            Some(()) = hangup.recv() => reload(path, &config, &running),
            () = one_of(&mut terminate, &mut interrupt) => break,
        }
    }
    info!("stops: sessions end, what came in is kept");
    running.stop().await;
    Ok(())
}

async fn one_of(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// A configuration that does not pass leaves the old one running.
fn reload(path: &Path, began_with: &Collector, running: &Running) {
    match read_collector(path) {
        Ok(config) => {
            if fixed(&config) != fixed(began_with) {
                warn!(
                    "only certificates, revocation lists and peers are taken anew; the rest of \
                     what changed holds from the next start on"
                );
            }
            match running.reload(&config) {
                Ok(()) => info!("the configuration is taken anew"),
                Err(problem) => error!("{problem}: the old configuration goes on"),
            }
        }
        Err(problems) => {
            Metrics::count(&running.metrics().reloads_refused);
            for problem in lines(problems) {
                error!("{problem}");
            }
            error!("the old configuration goes on");
        }
    }
}

/// The configuration without what is taken anew.
fn fixed(config: &Collector) -> Collector {
    let mut config = config.clone();
    let nothing = || crate::config::NamedFile { path: "".into(), key: String::new(), line: 0 };
    let ipfix = &mut config.ipfix;
    for file in [&mut ipfix.certificate, &mut ipfix.private_key, &mut ipfix.authority] {
        *file = nothing();
    }
    ipfix.revocation = None;
    ipfix.peers.clear();
    config.store.directory.line = 0;
    config
}

fn lines<E: std::fmt::Display>(problems: Vec<E>) -> Vec<String> {
    problems.iter().map(E::to_string).collect()
}
