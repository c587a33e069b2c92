//! What the paths of a run mean: the sessions of archives, each with its segments in order, and
//! plain IPFIX Files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use store::SessionId;
use store::archive::{Segment, segments};

use super::ReplayError;

/// A session of an archive.
#[derive(Debug)]
pub(super) struct Archived {
    pub(super) session: SessionId,
    /// By number, each once.
    pub(super) segments: Vec<Segment>,
}

/// One Transport Session.
#[derive(Debug)]
pub(super) enum Input {
    Session(Archived),
    File(PathBuf),
}

/// All sessions in the paths: first those of archives, by directory and id, then files as given.
pub(super) fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>, ReplayError> {
    let mut archived: BTreeMap<(PathBuf, SessionId), BTreeMap<u64, Segment>> = BTreeMap::new();
    let mut files = Vec::new();
    for path in paths {
        let found = if path.is_dir() {
            directory(path)?
        } else if let Some(segment) = Segment::of(path) {
            vec![segment]
        } else {
            files.push(Input::File(path.clone()));
            continue;
        };
        for segment in found {
            let directory = segment.path.parent().unwrap_or(Path::new("")).to_owned();
            let session = archived.entry((directory, segment.session)).or_default();
            session.insert(segment.number, segment);
        }
    }
    let sessions = archived.into_iter().map(|((_, session), segments)| {
        Input::Session(Archived { session, segments: segments.into_values().collect() })
    });
    Ok(sessions.chain(files).collect())
}

/// The segments in a directory, which can also be the one of a store.
fn directory(path: &Path) -> Result<Vec<Segment>, ReplayError> {
    let mut found = segments(path).map_err(ReplayError::Archive)?;
    let archive = path.join("archive");
    if found.is_empty() && archive.is_dir() {
        found = segments(&archive).map_err(ReplayError::Archive)?;
    }
    if found.is_empty() { Err(ReplayError::Empty { path: path.to_owned() }) } else { Ok(found) }
}

/// Opens an IPFIX File, as it is or compressed with zstd.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read>, ReplayError> {
    let failed = |error| ReplayError::Input { path: path.to_owned(), error };
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(failed)?;
    if path.extension().is_some_and(|extension| extension == "zst") {
        Ok(Box::new(zstd::Decoder::new(file).map_err(failed)?))
    } else {
        Ok(Box::new(BufReader::new(file)))
    }
}
