//! Segments by their names, and reading them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::clock::{self, Entry};
use crate::{SessionFacts, SessionId, StoreError};

const OPEN: &str = "ipfix";
const CLOSED: &str = "ipfix.zst";

/// A segment of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its Transport Session.
    pub session: SessionId,
    /// Its number in the session, from 0.
    pub number: u64,
    /// Its messages.
    pub path: PathBuf,
    /// Whether it is compressed and complete.
    pub closed: bool,
}

/// The segments in a directory, by session and in their order within each.
///
/// # Errors
/// [`StoreError`] where the directory cannot be read.
pub fn segments(directory: &Path) -> Result<Vec<Segment>, StoreError> {
    let failed = |error| StoreError::file(directory, error);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(segment) = Segment::of(&path) else { continue };
        // Where both are there, the compressed one is whole, and the other is about to go.
        let place = (segment.session, segment.number);
        if segment.closed || !found.contains_key(&place) {
            found.insert(place, segment);
        }
    }
    Ok(found.into_values().collect())
}

impl Segment {
    /// The segment that a file of messages is, by its name.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let (stem, kind) = path.file_name()?.to_str()?.split_once('.')?;
        let closed = match kind {
            OPEN => false,
            CLOSED => true,
            _ => return None,
        };
        let (session, number) = stem.split_once('-')?;
        let (session, number) = (SessionId(session.parse().ok()?), number.parse().ok()?);
        // A name that we do not write is somebody else's file.
        let segment = Self { session, number, path: path.to_owned(), closed };
        (segment.stem() == stem).then_some(segment)
    }

    pub(super) fn new(directory: &Path, session: SessionId, number: u64) -> Self {
        let mut segment = Self { session, number, path: PathBuf::new(), closed: false };
        segment.path = directory.join(format!("{}.{OPEN}", segment.stem()));
        segment
    }

    pub(super) fn next(&self) -> Self {
        let directory = self.path.parent().unwrap_or(Path::new(""));
        Self::new(directory, self.session, self.number + 1)
    }

    fn stem(&self) -> String {
        format!("{:010}-{:06}", self.session.0, self.number)
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_file_name(format!("{}.{extension}", self.stem()))
    }

    pub(super) fn clock_path(&self) -> PathBuf {
        self.beside("clock")
    }

    pub(super) fn facts_path(&self) -> PathBuf {
        self.beside("json")
    }

    pub(super) fn closed_path(&self) -> PathBuf {
        self.beside(CLOSED)
    }

    /// Its messages, back to back. Those of a segment that is being written may end inside one.
    ///
    /// # Errors
    /// [`StoreError`] where the file cannot be opened.
    pub fn read(&self) -> Result<Box<dyn Read>, StoreError> {
        let failed = |error| StoreError::file(&self.path, error);
        let file = File::open(&self.path).map_err(failed)?;
        if self.closed {
            let decoder = zstd::Decoder::new(file).map_err(failed)?;
            Ok(Box::new(decoder))
        } else {
            Ok(Box::new(BufReader::new(file)))
        }
    }

    /// What stands beside its messages; none where that is not there.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be read.
    pub fn clock(&self) -> Result<Option<Vec<Entry>>, StoreError> {
        let path = self.clock_path();
        match fs::read(&path) {
            Ok(octets) => Ok(Some(clock::entries(&octets).0)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::file(&path, error)),
        }
    }

    /// Octets at the end of what stands beside its messages that mean nothing: it was cut short, or
    /// is damaged.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be read.
    pub fn clock_octets_unread(&self) -> Result<usize, StoreError> {
        let path = self.clock_path();
        match fs::read(&path) {
            Ok(octets) => Ok(octets.len() - clock::entries(&octets).1),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(StoreError::file(&path, error)),
        }
    }

    /// The facts of its session; none where they are not there.
    ///
    /// # Errors
    /// [`StoreError`] where they cannot be read.
    pub fn facts(&self) -> Result<Option<SessionFacts>, StoreError> {
        let path = self.facts_path();
        let octets = match fs::read(&path) {
            Ok(octets) => octets,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file(&path, error)),
        };
        let value = serde_json::from_slice(&octets).ok();
        match value.and_then(|value| SessionFacts::from_json(&value)) {
            Some(facts) => Ok(Some(facts)),
            None => Err(StoreError::Content { path, what: "no facts of a session".into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_known_by_its_name_and_nothing_else_is_one() {
        let segment = Segment::new(Path::new("a"), SessionId(12), 3);
        assert_eq!(segment.path, Path::new("a/0000000012-000003.ipfix"));
        assert_eq!(Segment::of(&segment.path), Some(segment.clone()));
        let closed = Segment::of(&segment.closed_path()).unwrap();
        assert_eq!((closed.session, closed.number, closed.closed), (SessionId(12), 3, true));
        for other in ["12-3.ipfix", "0000000012-000003.clock", "out.ipfix", "x-y.ipfix", "a"] {
            assert_eq!(Segment::of(Path::new(other)), None, "{other}");
        }
        let large = Segment::new(Path::new(""), SessionId(u64::MAX), u64::MAX);
        assert_eq!(Segment::of(&large.path), Some(large.clone()));
    }
}
