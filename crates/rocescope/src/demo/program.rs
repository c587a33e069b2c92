//! This program, started again as an agent or as a collector.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::room::Room;

/// The program that runs, whatever became of its file.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Lines that are kept of what a program says.
const LINES_MAX: usize = 16;
/// Octets of such a line.
const LINE_MAX: u64 = 4096;
/// A program that is told to stop, or to say where it listens, has this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program.
pub struct Program {
    name: &'static str,
    child: Child,
    lines: mpsc::Receiver<String>,
    latest: Arc<Mutex<VecDeque<String>>>,
}

/// How a program ended.
pub struct Ended {
    /// With exit code 0.
    pub success: bool,
    /// Its last words.
    pub said: String,
}

/// Where a collector listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// For IPFIX.
    pub ipfix: SocketAddr,
    /// For HTTP.
    pub http: SocketAddr,
}

impl Program {
    /// A collector with the room's configuration.
    ///
    /// # Errors
    /// It does not start; in a line.
    pub fn collector(room: &Room) -> Result<Self, String> {
        Self::start("collector", room)
    }

    /// An agent with the room's configuration.
    ///
    /// # Errors
    /// It does not start; in a line.
    pub fn agent(room: &Room) -> Result<Self, String> {
        Self::start("agent", room)
    }

    fn start(name: &'static str, room: &Room) -> Result<Self, String> {
        let mut child = Command::new(THIS_PROGRAM)
            .arg0("rocescope")
            .arg(name)
            .arg("--config")
            .arg(room.file(&format!("{name}.toml")))
            // Nothing goes on where nobody could end it.
            .args(["--with-parent", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("the {name} does not start: {error}"))?;
        let latest = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, lines) = mpsc::channel(LINES_MAX);
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(listen(stderr, latest.clone(), sender));
        }
        Ok(Self { name, child, lines, latest })
    }

    /// Waits until a collector says where it listens.
    ///
    /// # Errors
    /// It ends before; in a line.
    pub async fn addresses(&mut self) -> Result<Addresses, String> {
        let said = async {
            let (mut ipfix, mut http) = (None, None);
            while let Some(line) = self.lines.recv().await {
                ipfix = ipfix.or_else(|| address(&line, "listens on "));
                http = http.or_else(|| address(&line, "serves HTTP on http://"));
                if let Some((ipfix, http)) = ipfix.zip(http) {
                    return Some(Addresses { ipfix, http });
                }
            }
            None
        };
        match timeout(PATIENCE, said).await {
            Ok(Some(addresses)) => Ok(addresses),
            Ok(None) => Err(format!("the {} ended: {}", self.name, self.said())),
            Err(_) => Err(format!("the {} does not listen: {}", self.name, self.said())),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It cannot be waited for; in a line.
    pub async fn ended(&mut self) -> Result<Ended, String> {
        let status = self.child.wait().await.map_err(|error| format!("{}: {error}", self.name))?;
        // Until the last of its words has been read.
        while self.lines.recv().await.is_some() {}
        Ok(Ended { success: status.success(), said: self.said() })
    }

    /// Ends it at once, without giving it a chance to say anything.
    ///
    /// # Errors
    /// It cannot be ended; in a line.
    pub async fn kill(&mut self) -> Result<(), String> {
        self.child.kill().await.map_err(|error| format!("{}: {error}", self.name))
    }

    /// Has it stop in good order.
    ///
    /// # Errors
    /// It does not, or says that something went wrong; in a line.
    pub async fn stop(&mut self) -> Result<(), String> {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).map_err(|error| format!("{}: {error}", self.name))?;
        }
        let ended = timeout(PATIENCE, self.ended()).await;
        let ended = ended.map_err(|_| format!("the {} does not stop", self.name))??;
        match ended.success {
            true => Ok(()),
            false => Err(format!("the {} ended: {}", self.name, ended.said)),
        }
    }

    /// Its last words, on one line.
    fn said(&self) -> String {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.back().cloned().unwrap_or_else(|| "without a word".into())
    }
}

/// Reads what a program says, keeps the latest of it, and hands on what anybody waits for.
async fn listen(
    stderr: impl tokio::io::AsyncRead + Unpin,
    latest: Arc<Mutex<VecDeque<String>>>,
    lines: mpsc::Sender<String>,
) {
    let mut reader = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(LINE_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        // Where nobody takes lines any more, or not now, they are only kept.
        _ = lines.try_send(line.clone());
        let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() == LINES_MAX {
            latest.pop_front();
        }
        latest.push_back(line);
    }
}

/// The address behind some words.
fn address(line: &str, words: &str) -> Option<SocketAddr> {
    let (_, behind) = line.split_once(words)?;
    behind.split([' ', '/']).next()?.parse().ok()
}
