//! Plays every file of `tests/conversations`: a line does something, and what stands behind `->`,
//! there or indented on the lines below, is what came of it, exactly.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::play::Play;
use crate::words::steps;

// SEQ-4.1, SEQ-4.5, SEQ-4.6, SEQ-4.7, SEQ-4.9, SEQ-4.10, SEQ-4.11, SEQ-4.12, SEQ-4.13, SEQ-6.1,
// SEQ-6.4, SEQ-7.2, SEQ-7.3, SEQ-7.4, SEQ-7.5, SEQ-7.6, SEQ-7.7, SEQ-7.8, SEQ-7.9, SEQ-7.10,
// SEQ-7.11, SEQ-7.12, SEQ-7.13, SEQ-7.14, SEQ-7.15: each file says in its first line what it shows.
#[test]
fn every_conversation_goes_as_it_is_written() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 30, "{} conversations", files.len());
    let failed: Vec<_> = files.iter().filter_map(|file| played(file).err()).collect();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

fn played(file: &Path) -> Result<(), String> {
    let name = file.file_name().unwrap().to_string_lossy();
    let text = fs::read_to_string(file).unwrap();
    if !text.starts_with("# ") {
        return Err(format!("{name}:1: does not say what it shows"));
    }
    let mut play = Play::new();
    let mut checked = 0;
    for (at, line, expected) in steps(&text) {
        let words: Vec<_> = line.split_whitespace().collect();
        let here = || format!("{name}:{at}: {line}");
        let found = catch_unwind(AssertUnwindSafe(|| play.line(words[0], &words[1..])))
            .map_err(|_| format!("{}: cannot be played", here()))?;
        if found != expected {
            return Err(format!("{}\n  expected {expected:#?}\n  found {found:#?}", here()));
        }
        checked += expected.len();
    }
    if checked == 0 { Err(format!("{name}: expects nothing")) } else { Ok(()) }
}
