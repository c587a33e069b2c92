//! `cargo xtask ci`: every check that a change has to pass, in order of cost.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Runs all checks and stops at the first that fails; `quick` leaves out what runs the code.
pub fn run(root: &Path, quick: bool) -> anyhow::Result<()> {
    step(root, "format", &["fmt", "--all", "--check"])?;
    eprintln!("ci: requirements");
    crate::spec::run(root, true)?;
    step(root, "clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    if quick {
        return Ok(());
    }
    step(root, "tests", &["test", "--workspace", "--no-fail-fast"])?;
    harness(root)
}

/// The fuzz harness is outside the workspace; a change of an interface must not break it unseen.
fn harness(root: &Path) -> anyhow::Result<()> {
    let directory = root.join("fuzz/harness");
    if !directory.join("Cargo.toml").is_file() {
        bail!("fuzz/harness/Cargo.toml: not there, so the fuzz harness cannot be built");
    }
    step(&directory, "fuzz harness", &["build", "--locked"])
}

fn step(directory: &Path, name: &str, arguments: &[&str]) -> anyhow::Result<()> {
    eprintln!("ci: {name}: cargo {}", arguments.join(" "));
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(directory)
        // What only a second build would use takes as much disk as the programs themselves.
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .with_context(|| format!("{name}: cargo does not start"))?;
    if !status.success() {
        bail!("{name}: cargo {} ended with {status}", arguments.join(" "));
    }
    Ok(())
}
