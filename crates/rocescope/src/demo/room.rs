//! The private directory of a demo: its own authority, certificates, configurations, captures and
//! the collector's store. Nobody else can look into it, and it goes when the demo does.

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;

use super::DemoError;
use super::scene::{SCENES, Scene};
use crate::pki;

/// The directory.
pub struct Room {
    directory: TempDir,
}

impl Room {
    /// Makes it, with all that does not depend on what is played.
    ///
    /// # Errors
    /// It cannot be made; in a line.
    pub fn new() -> Result<Self, String> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("rocescope-demo-").permissions(Permissions::from_mode(0o700));
        let directory = builder.tempdir().map_err(|error| format!("no directory: {error}"))?;
        let room = Self { directory };
        pki::certificates(room.path()).map_err(|error| error.to_string())?;
        room.write("collector.toml", COLLECTOR_TOML.as_bytes())?;
        for scene in &SCENES {
            match scene.is_cut() {
                true => mknodat(
                    CWD,
                    room.file(scene.example.name),
                    FileType::Fifo,
                    Mode::RUSR | Mode::WUSR,
                    0,
                )
                .map_err(|error| format!("{}: {error}", scene.example.name))?,
                false => room.write(scene.example.name, &scene.example.octets())?,
            }
        }
        Ok(room)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The collector's results.
    pub fn results(&self) -> PathBuf {
        self.file("data").join("results.db")
    }

    /// Writes the configuration of an agent that plays a scene.
    ///
    /// # Errors
    /// It cannot be written; in a line.
    pub fn agent_for(
        &self,
        scene: &Scene,
        collector: SocketAddr,
        fast: bool,
    ) -> Result<(), String> {
        let pace = if fast { "fast" } else { "capture" };
        let text = AGENT_TOML
            .replace("{collector}", &collector.to_string())
            .replace("{file}", scene.example.name)
            .replace("{pace}", pace);
        self.write("agent.toml", text.as_bytes())
    }

    /// Writes the first half of a scene's capture into its pipe and then nothing, for ever: the
    /// other half never comes. Ends only with what went wrong.
    pub async fn feed_half(&self, scene: &Scene) -> DemoError {
        let failed =
            |error: io::Error| DemoError::Failed(format!("{}: {error}", scene.example.name));
        let octets = scene.example.octets();
        // Open for both ways, it waits for no reader.
        let opened =
            pipe::OpenOptions::new().read_write(true).open_sender(self.file(scene.example.name));
        let mut pipe = match opened {
            Ok(pipe) => pipe,
            Err(error) => return failed(error),
        };
        if let Err(error) = pipe.write_all(&octets[..octets.len() / 2]).await {
            return failed(error);
        }
        std::future::pending().await
    }

    fn write(&self, name: &str, octets: &[u8]) -> Result<(), String> {
        fs::write(self.file(name), octets).map_err(|error| format!("{name}: {error}"))
    }

    /// Takes it away.
    ///
    /// # Errors
    /// Something is left of it; in a line.
    pub fn leave(self) -> Result<(), String> {
        let path = self.path().display().to_string();
        self.directory.close().map_err(|error| format!("{path}: not taken away: {error}"))
    }
}

/// Any free port, and what a machine can spare however long the demo goes on.
const COLLECTOR_TOML: &str = "\
[ipfix]
listen = \"127.0.0.1:0\"
certificate = \"collector.pem\"
key = \"collector.key\"
authority = \"ca.pem\"

[[ipfix.peer]]
name = \"agent.example\"
domains = [1]

[http]
listen = \"127.0.0.1:0\"

[store]
directory = \"data\"

[limits]
archive_octets_max = 67_108_864
results_days_max = 1
archive_days_max = 1
";

/// What is attested is true of the captures, with one exception that the demo is about: `read.pcap`
/// has a READ in it.
const AGENT_TOML: &str = "\
[[export]]
collector = \"{collector}\"
server_name = \"localhost\"
certificate = \"agent.pem\"
key = \"agent.key\"
authority = \"ca.pem\"
report_interval_s = 1

[[source]]
file = \"{file}\"
pace = \"{pace}\"

[[rule]]
sources = [\"0.0.0.0/0\", \"::/0\"]
destinations = [\"0.0.0.0/0\", \"::/0\"]

[rule.attest]
send_write_only = true
complete_capture = true
all_paths = true
half_space = true
separate_namespaces = true
";
