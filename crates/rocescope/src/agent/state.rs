//! The state file: which streams violations have disabled, a line each, so that a restart enables
//! none of them (sequence draft, section 3).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use wire::frame::Layer;

use super::disabled::Disabled;
use super::name;
use crate::layout::stream_name;

const HEAD: &str =
    "rocescope: streams that violations have disabled, each after the revision of its rule";

/// Writes the file anew: the old one stays until the new one is whole.
///
/// # Errors
/// It cannot be written; the old one is as it was.
pub fn write(path: &Path, disabled: &Disabled) -> io::Result<()> {
    let mut text = format!("{HEAD}\n");
    for (key, revision) in disabled.iter() {
        text.push_str(&format!("{revision} {}\n", stream_name(key)));
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The rename itself, so that it outlives the power.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Reads the file; where there is none, no stream is disabled.
///
/// # Errors
/// In a line. A file that cannot be understood is refused: to forget it would enable streams.
// SEQ-3.3
pub fn read(path: &Path, layer: Layer, streams_max: usize) -> Result<Disabled, String> {
    let mut disabled = Disabled::new(streams_max);
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(disabled),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let at = |line: usize, problem: String| format!("{}:{line}: {problem}", path.display());
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return Err(at(1, format!("not a state file, expected {HEAD:?}")));
    }
    for (line, text) in (2..).zip(lines) {
        let entry = text.split_once(' ').and_then(|(revision, stream)| {
            Some((revision.parse().ok()?, name::parse(stream, layer).ok()?))
        });
        let Some((revision, key)) = entry else {
            return Err(at(line, format!("{text:?}, expected a revision and {}", name::FORM)));
        };
        if !disabled.add(key, revision) {
            return Err(at(line, format!("more than {streams_max} streams, or one twice")));
        }
    }
    Ok(disabled)
}
