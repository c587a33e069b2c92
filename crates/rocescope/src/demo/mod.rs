//! `rocescope demo`: agent and collector on this machine, over mutual TLS, with real captures.
//!
//! Nothing here measures or judges anything. The programs that run are this one, started again as
//! `rocescope collector` and `rocescope agent` with configurations of their own, so what is shown is
//! what an operator gets; and one of them can be killed, which is the only honest way to cut a
//! connection. What is shown is read from the collector's store.

mod program;
mod room;
mod scene;
mod show;

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use indicatif::ProgressBar;
use store::Reader;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::meter::Format;
use program::Program;
use room::Room;
use scene::{SCENES, Scene};
use show::{Shown, Table};

/// What takes longer than this has gone wrong.
const PATIENCE: Duration = Duration::from_secs(60);
/// The store is looked at this often.
const LOOK: Duration = Duration::from_millis(20);
/// The captures are played again after this long.
const REST: Duration = Duration::from_secs(30);

/// What the demo is to do.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// It ends once every capture has been played; otherwise it goes on until it is told to stop.
    pub once: bool,
    /// What goes to standard output.
    pub format: Format,
}

/// Why the demo did not come to its end.
#[derive(Debug)]
pub enum DemoError {
    /// Standard output.
    Output(io::Error),
    /// Something that it needs of this machine, or a program of it, failed.
    Failed(String),
}

impl std::fmt::Display for DemoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Output(error) => write!(f, "standard output: {error}"),
            Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for DemoError {}

impl From<String> for DemoError {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

/// Shows everything, and leaves nothing behind: whatever happens, the programs are ended and the
/// directory is taken away.
///
/// # Errors
/// What went wrong; told to stop before its end, `--once` says so.
pub fn run(run: Run, out: &mut impl Write) -> Result<(), DemoError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let room = Room::new()?;
    let done = runtime.block_on(watched(run, &room, out));
    room.leave()?;
    done
}

/// Until it is through, or a signal comes.
async fn watched(run: Run, room: &Room, out: &mut impl Write) -> Result<(), DemoError> {
    let caught = |kind| signal(kind).map_err(|error| format!("no signals: {error}"));
    let mut signals = [
        caught(SignalKind::interrupt())?,
        caught(SignalKind::terminate())?,
        caught(SignalKind::hangup())?,
    ];
    let mut stage = Stage::default();
    let done = tokio::select! {
        done = stage.perform(run, room, out) => done,
        () = any_of(&mut signals) => match run.once {
            true => Err(DemoError::Failed("stopped before it was through".into())),
            false => Ok(()),
        },
    };
    stage.clear().await;
    done
}

async fn any_of([a, b, c]: &mut [Signal; 3]) {
    tokio::select! {
        _ = a.recv() => {}
        _ = b.recv() => {}
        _ = c.recv() => {}
    }
}

/// The programs that run.
#[derive(Default)]
struct Stage {
    collector: Option<Program>,
    agent: Option<Program>,
}

impl Stage {
    async fn perform(
        &mut self,
        run: Run,
        room: &Room,
        out: &mut impl Write,
    ) -> Result<(), DemoError> {
        let progress = spinner();
        let collector = self.collector.insert(Program::collector(room)?);
        let addresses = collector.addresses().await?;
        let reader = Reader::open(&room.results()).map_err(|error| error.to_string())?;
        let table = Table::new(run.format);
        if !run.once {
            table.begins(out, &addresses, room).map_err(DemoError::Output)?;
        }
        for round in 1_u64.. {
            let mut shown = Vec::new();
            for scene in &SCENES {
                progress.set_message(scene.title);
                // What is played is waited for to the end only where that is all there is to do.
                room.agent_for(scene, addresses.ipfix, run.once)?;
                shown.push(self.play(scene, room, &reader).await?);
            }
            progress.finish_and_clear();
            table.round(out, round, &shown).map_err(DemoError::Output)?;
            if run.once {
                break;
            }
            if round == 1 {
                table.stays(out).map_err(DemoError::Output)?;
            }
            tokio::time::sleep(REST).await;
        }
        match self.collector.as_mut() {
            Some(collector) => Ok(collector.stop().await?),
            None => Ok(()),
        }
    }

    /// An agent plays a capture, and what came of it is read from the collector's store.
    async fn play(
        &mut self,
        scene: &'static Scene,
        room: &Room,
        reader: &Reader,
    ) -> Result<Shown, DemoError> {
        let before = newest(reader)?;
        let agent = self.agent.insert(Program::agent(room)?);
        if scene.is_cut() {
            let streams = scene.streams;
            // Kept until the agent is gone: the end of the pipe would be the end of its capture.
            let mut feed = std::pin::pin!(room.feed_half(scene));
            let heard = until("a report of every stream is in the store", || {
                Ok(heard_of(reader, before)? >= streams)
            });
            tokio::select! {
                heard = heard => heard?,
                fed = &mut feed => return Err(fed),
                ended = agent.ended() => return Err(unexpected(&ended?)),
            }
            // No last word, of TLS or of IPFIX: the connection is gone between two octets.
            agent.kill().await?;
        } else {
            let ended = tokio::time::timeout(PATIENCE, agent.ended()).await;
            let ended = ended.map_err(|_| format!("the agent runs on: {}", scene.title))??;
            if !ended.success {
                return Err(unexpected(&ended));
            }
        }
        self.agent = None;
        until("the session is closed in the store", || {
            Ok(newest(reader)? > before && Shown::read(reader, scene, before)?.is_closed())
        })
        .await?;
        Shown::read(reader, scene, before)
    }

    /// Ends whatever runs.
    async fn clear(self) {
        for mut program in [self.agent, self.collector].into_iter().flatten() {
            // One that has ended by itself needs no help.
            _ = program.kill().await;
        }
    }
}

fn unexpected(ended: &program::Ended) -> DemoError {
    DemoError::Failed(format!("the agent ended: {}", ended.said))
}

/// The number of the newest session, 0 where there is none.
fn newest(reader: &Reader) -> Result<u64, DemoError> {
    let page = reader.sessions(1, None).map_err(|error| error.to_string())?;
    Ok(page.rows.first().map_or(0, |row| row.session.0))
}

/// Streams of sessions after this one that some report was accepted of.
fn heard_of(reader: &Reader, before: u64) -> Result<usize, DemoError> {
    show::epochs_after(reader, before).map(|epochs| epochs.len())
}

/// Waits until something holds, but not for ever.
async fn until(
    what: &str,
    mut holds: impl FnMut() -> Result<bool, DemoError>,
) -> Result<(), DemoError> {
    let waiting = async {
        while !holds()? {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.map_err(|_| DemoError::Failed(format!("waited in vain until {what}")))?
}

/// What is going on, on a terminal only.
fn spinner() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
