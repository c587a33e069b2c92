//! The program: the configuration, the signals, and the end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use super::listen::Running;
use super::metrics::Metrics;
use super::sink::Sink;
use crate::config::{Collector, HttpTls, read_collector};
use crate::serve::{self, Served};

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
    let started = Started::begin(&config, sink)
        .await
        .map_err(|problem| format!("{}: {problem}", path.display()))?;
    loop {
        tokio::select! {
            Some(()) = hangup.recv() => reload(path, &config, &started),
            () = one_of(&mut terminate, &mut interrupt) => break,
        }
    }
    info!("stops: sessions end, what came in is kept");
    started.stop().await;
    Ok(())
}

/// A collector at work, with what it serves.
#[derive(Debug)]
pub struct Started {
    running: Running,
    served: Option<Served>,
}

impl Started {
    /// Begins to collect and to serve what is in the configuration's store.
    ///
    /// # Errors
    /// A file that cannot be used, or an address that cannot be listened on; in a line.
    pub async fn begin(config: &Collector, sink: impl Sink) -> Result<Self, String> {
        // What serves is made first: nothing has come in yet when it cannot be.
        let ready = match config.http.serve {
            true => Some(serve::Ready::bind(config).await?),
            false => None,
        };
        let running = Running::start(config, sink).await?;
        let (metrics, intake) = (running.metrics().clone(), running.intake());
        let devices = running.devices().clone();
        let served = ready.map(|ready| ready.serve(metrics, intake, devices));
        Ok(Self { running, served })
    }

    /// Where IPFIX comes in, if it does.
    pub fn ipfix_address(&self) -> Option<SocketAddr> {
        self.running.address()
    }

    /// Where results are served, if they are.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.served.as_ref().map(Served::address)
    }

    /// What is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        self.running.metrics()
    }

    /// Takes certificates, revocation lists, peers and readers anew, all of them or none.
    ///
    /// # Errors
    /// A file that cannot be used, in a line; all stays as it was.
    pub fn reload(&self, config: &Collector) -> Result<(), String> {
        let access = self.served.as_ref().map(|served| served.load(&config.http));
        let access = access.transpose().inspect_err(|_| {
            Metrics::count(&self.metrics().reloads_refused);
        })?;
        self.running.reload(config)?;
        if let Some((served, access)) = self.served.as_ref().zip(access) {
            served.admit(access);
        }
        Ok(())
    }

    /// Ends all sessions and connections, and waits until what came in is kept. Results are served
    /// until then.
    pub async fn stop(self) {
        self.running.stop().await;
        if let Some(served) = self.served {
            served.stop().await;
        }
    }
}

async fn one_of(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// A configuration that does not pass leaves the old one running.
fn reload(path: &Path, began_with: &Collector, running: &Started) {
    match read_collector(path) {
        Ok(config) => {
            if fixed(&config) != fixed(began_with) {
                warn!(
                    "only certificates, revocation lists, peers and readers are taken anew; the \
                     rest of what changed holds from the next start on"
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
    if let Some(ipfix) = &mut config.ipfix {
        for file in [&mut ipfix.certificate, &mut ipfix.private_key, &mut ipfix.authority] {
            *file = nothing();
        }
        ipfix.revocation = None;
        ipfix.peers.clear();
    }
    for device in &mut config.queues {
        device.forget_files(&nothing());
    }
    config.store.directory.line = 0;
    let http = &mut config.http;
    http.readers.clear();
    if let Some(tls) = &mut http.tls {
        *tls = HttpTls {
            certificate: nothing(),
            private_key: nothing(),
            authority: None,
            revocation: None,
        };
    }
    config
}

fn lines<E: std::fmt::Display>(problems: Vec<E>) -> Vec<String> {
    problems.iter().map(E::to_string).collect()
}
