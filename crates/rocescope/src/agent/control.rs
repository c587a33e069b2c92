//! The control socket: JSON Lines over a Unix socket, a request a line, any number of lines in
//! answer, the last of which has `"done"` or `"error"`.
//!
//! Who may open the socket may do all of it: it is for its owner only.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as BlockingListener, UnixStream as BlockingStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader as Lines};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use wire::frame::Layer;

use super::observer::{Command, Observer};
use super::{counters, name};
use crate::layout::stream_name;

/// Octets of a request, at most.
const REQUEST_MAX: u64 = 4096;
/// A request that takes longer is given up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What the operator can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// How everything is going.
    Status,
    /// The streams of every session.
    Streams,
    /// Enable a stream that a violation has disabled.
    Reprovision(String),
    /// A new connection generation of a stream begins.
    NewGeneration(String),
    /// The capture is known to have missed packets.
    CaptureGap,
}

/// The lines of an answer.
pub type Answer = Vec<Value>;

impl Request {
    /// As a line of the protocol.
    pub fn line(&self) -> Value {
        match self {
            Self::Status => json!({"request": "status"}),
            Self::Streams => json!({"request": "streams"}),
            Self::Reprovision(stream) => json!({"request": "reprovision", "stream": stream}),
            Self::NewGeneration(stream) => json!({"request": "new-generation", "stream": stream}),
            Self::CaptureGap => json!({"request": "capture-gap"}),
        }
    }

    /// Reads a line of the protocol.
    fn read(line: &str) -> Result<Self, String> {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let stream = || {
            let stream = line["stream"].as_str().map(str::to_owned);
            stream.ok_or_else(|| format!("no stream, expected {}", name::FORM))
        };
        Ok(match line["request"].as_str() {
            Some("status") => Self::Status,
            Some("streams") => Self::Streams,
            Some("reprovision") => Self::Reprovision(stream()?),
            Some("new-generation") => Self::NewGeneration(stream()?),
            Some("capture-gap") => Self::CaptureGap,
            _ => {
                return Err("expected a request: status, streams, reprovision, new-generation or \
                            capture-gap"
                    .into());
            }
        })
    }
}

/// Does what is asked.
pub(super) fn answer(observer: &mut Observer, request: Request) -> Answer {
    let layer = observer.device.observation.layer;
    let done = match request {
        Request::Status => Ok(counters::status(observer)),
        Request::Streams => Ok(streams(observer)),
        Request::Reprovision(stream) => reprovision(observer, &stream, layer),
        Request::NewGeneration(stream) => new_generation(observer, &stream, layer),
        Request::CaptureGap => {
            observer.capture_gap();
            Ok(vec![json!({"done": true})])
        }
    };
    done.unwrap_or_else(|error| vec![json!({"error": error})])
}

fn reprovision(observer: &mut Observer, stream: &str, layer: Layer) -> Result<Answer, String> {
    let key = name::parse(stream, layer)?;
    match observer.reprovision(&key) {
        true => Ok(vec![json!({"done": true})]),
        false => Err(format!("{} is not disabled", stream_name(&key))),
    }
}

fn new_generation(observer: &mut Observer, stream: &str, layer: Layer) -> Result<Answer, String> {
    let key = name::parse(stream, layer)?;
    match observer.new_generation(&key) {
        true => Ok(vec![json!({"done": true})]),
        false => Err(format!("{}: no session has seen such a stream", stream_name(&key))),
    }
}

/// A line for each stream of each session, as many as may be shown.
fn streams(observer: &mut Observer) -> Answer {
    let max = observer.device.agent.limits.streams_shown_max;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let (mut lines, mut hidden) = (Vec::new(), 0_u64);
    for place in &mut observer.places {
        let Some(live) = &mut place.live else { continue };
        let meter = live.session.meter();
        for stream in (0..meter.contexts()).filter_map(|index| meter.stream(index)) {
            if lines.len() >= max {
                hidden += 1;
                continue;
            }
            let mut line = json!({
                "destination": place.target.name,
                "stream": stream_name(&stream.key),
                "disabled": stream.disabled,
            });
            if let Some(open) = stream.open {
                let counts = open.snapshot.counts;
                line["epoch"] = json!({
                    "rdmaSequenceEpochId": open.ids.epoch_id,
                    "rdmaSequenceReportId": open.ids.report_id,
                    "rdmaSequenceWindow": open.snapshot.window.get(),
                    "requestPacketTotalCount": counts.requests,
                    "skippedPsnTotalCount": counts.skipped,
                    "pendingPsnCount": counts.pending,
                });
            }
            lines.push(line);
        }
    }
    lines.push(json!({"done": true, "notShown": hidden}));
    lines
}

/// Makes the socket, for its owner only. One that nobody listens to any more is replaced. It is
/// served once there is a runtime.
///
/// # Errors
/// In a line, such as that another agent listens to it.
pub fn listen(path: &Path) -> Result<BlockingListener, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    match BlockingStream::connect(path) {
        Ok(_) => return Err(format!("{}: another agent listens to it", path.display())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // A file that is no socket refuses connections as well.
            if !fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket() {
                return Err(format!("{}: is no socket, expected one or nothing", path.display()));
            }
            fs::remove_file(path).map_err(failed)?;
        }
        Err(_) => {}
    }
    let listener = BlockingListener::bind(path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Takes the socket away, where that is allowed: without privileges it need not be, and the next
/// agent replaces it.
pub fn remove(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    if is_socket && let Err(error) = fs::remove_file(path) {
        tracing::debug!("{}: {error}", path.display());
    }
}

/// Answers requests for as long as the agent runs.
pub async fn serve(listener: UnixListener, commands: Sender<Command>, connections_max: usize) {
    let permits = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("control socket: {error}");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let commands = commands.clone();
        tokio::spawn(async move {
            if let Err(error) = converse(stream, &commands).await {
                tracing::debug!("control socket: {error}");
            }
            drop(permit);
        });
    }
}

/// One connection: requests until it closes, or nothing comes for a while.
async fn converse(stream: UnixStream, commands: &Sender<Command>) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = Lines::new(reader);
    loop {
        let mut line = String::new();
        let mut bounded = (&mut reader).take(REQUEST_MAX);
        let read = timeout(REQUEST_TIMEOUT, bounded.read_line(&mut line));
        if read.await.map_err(|_| io::ErrorKind::TimedOut)?? == 0 {
            return Ok(());
        }
        let answer = match Request::read(&line) {
            Ok(request) => {
                let (sender, answered) = oneshot::channel();
                let gone = || io::Error::other("the agent stops");
                commands.send(Command::Control(request, sender)).map_err(|_| gone())?;
                answered.await.map_err(|_| gone())?
            }
            Err(error) => vec![json!({"error": error})],
        };
        let mut text = Vec::new();
        for line in answer {
            text.extend_from_slice(line.to_string().as_bytes());
            text.push(b'\n');
        }
        timeout(REQUEST_TIMEOUT, writer.write_all(&text))
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??;
    }
}

/// Asks an agent, and writes the lines of its answer.
///
/// # Errors
/// In a line: nobody answers, or the agent's own reason.
pub fn ask(socket: &Path, request: &Request, out: &mut impl io::Write) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", socket.display());
    let mut stream = BlockingStream::connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(2 * REQUEST_TIMEOUT)).map_err(failed)?;
    stream.write_all(format!("{}\n", request.line()).as_bytes()).map_err(failed)?;
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(failed)?;
        let value: Value = serde_json::from_str(&line)
            .map_err(|error| format!("{}: not an agent: {error}", socket.display()))?;
        if let Some(error) = value["error"].as_str() {
            return Err(error.to_owned());
        }
        writeln!(out, "{line}").map_err(|error| format!("standard output: {error}"))?;
        if value["done"] == true {
            return Ok(());
        }
    }
    Err(format!("{}: the agent closed before it had answered", socket.display()))
}
