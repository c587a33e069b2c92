//! Plays every file of `tests/pfc/conversations`: a line does something, and what stands behind
//! `->` is what came of it, exactly.

use std::fs;
use std::path::Path;

use crate::play::Play;

// PFC-exp.3, PFC-sem.1, PFC-sem.2, PFC-sem.3, PFC-op.1: each file says in its first line what it
// shows.
#[test]
fn every_conversation_goes_as_it_is_written() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pfc/conversations");
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 12, "{} conversations", files.len());
    let failed: Vec<_> = files.iter().flat_map(|file| played(file)).collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

fn played(file: &Path) -> Vec<String> {
    let name = file.file_name().unwrap().to_string_lossy();
    let text = fs::read_to_string(file).unwrap();
    let mut wrong = Vec::new();
    if !text.starts_with("# ") {
        wrong.push(format!("{name}: does not say what it shows"));
    }
    let mut play = Play::default();
    let mut checked = 0;
    for (at, line) in (1..).zip(text.lines()) {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (line, expected) = line.split_once(" -> ").unwrap_or((line, ""));
        let words: Vec<_> = line.split_whitespace().collect();
        let found = play.line(words[0], &words[1..]);
        checked += usize::from(!expected.is_empty());
        if found != expected {
            wrong.push(format!("{name}:{at}: {line}\n  expected {expected}\n  found    {found}"));
        }
    }
    if checked == 0 {
        wrong.push(format!("{name}: expects nothing"));
    }
    wrong
}
