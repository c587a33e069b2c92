//! Programs of PyPI's packages that tests run.

#![allow(dead_code, reason = "each test takes of it what it needs")]

use std::path::{Path, PathBuf};
use std::process::Command;

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter that has the packages of `tests/python/requirements.txt`.
pub fn python() -> PathBuf {
    let made = Command::new(repository().join("scripts/python.sh"))
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("python"))
        .output()
        .expect("python.sh runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).expect("text").trim().into()
}

/// schemathesis, which makes requests out of a description and holds the answers against it: the
/// same requests in every run. `settings` are those of `tests/schemathesis/`.
pub fn schemathesis(settings: &str, scratch: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(python().with_file_name("schemathesis"));
    command
        .arg("--config-file")
        .arg(repository().join("tests/schemathesis").join(settings))
        .args(["run", "--no-color", "--seed", "1", "--generation-database", "none"])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "20"])
        .args(["--continue-on-failure", "--request-timeout", "20"])
        .args(["--suppress-health-check", "all", "--warnings", "off"])
        .args(arguments)
        .current_dir(scratch);
    command
}
