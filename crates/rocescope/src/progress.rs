//! Progress of long work, on a terminal only.

use std::cell::Cell;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that is shorter than this shows nothing.
const QUIET: Duration = Duration::from_secs(1);

/// How far the reading of some files has come, in octets before decompression.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    done: Cell<u64>,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Of reading these files. Shows nothing where standard error is no terminal.
    pub fn new(files: &[PathBuf]) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let sizes = files.iter().map(|file| std::fs::metadata(file).map(|m| m.len()));
            let total = sizes.sum::<Result<u64, _>>().ok();
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
            let template = "{bytes} of {total_bytes}, {bytes_per_sec}, {eta} left {wide_bar}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Self { started: Instant::now(), done: Cell::new(0), bar }
    }

    /// Of looking at something that has no end of its own, such as an interface.
    pub fn watching(what: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
            if let Ok(style) = ProgressStyle::with_template("{elapsed} {prefix}: {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(what.to_owned());
            bar
        });
        Self { started: Instant::now(), done: Cell::new(0), bar }
    }

    /// So many frames have been seen, RoCEv2 packets among them.
    pub fn seen(&self, frames: u64, roce: u64) {
        let Some(bar) = &self.bar else { return };
        if self.started.elapsed() < QUIET {
            return;
        }
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_message(format!("{frames} frames, {roce} RoCEv2; Ctrl-C ends it with results"));
        bar.tick();
    }

    /// Of nothing that anybody waits for.
    pub fn silent() -> Self {
        Self { started: Instant::now(), done: Cell::new(0), bar: None }
    }

    /// So many octets more have been read.
    pub fn read(&self, octets: u64) {
        let Some(bar) = &self.bar else { return };
        self.done.set(self.done.get() + octets);
        if self.started.elapsed() < QUIET {
            return;
        }
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(self.done.get());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
