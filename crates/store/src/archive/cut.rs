//! Cutting the archive of a session that did not end in order to what its results were made of.
//! Octets reach the archive before the results that come of them are kept; a kill in between leaves
//! more in it than was ever published.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use super::repair;
use super::retain;
use super::segment::{Segment, segments};
use crate::{SessionId, StoreError};

/// Up to where the archive of a session has become results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The segment.
    pub segment: u64,
    /// Octets of its messages.
    pub octets: u64,
    /// Octets of what stands beside them.
    pub clock_octets: u64,
}

/// Cuts what is behind the marks, and tells how many octets of messages that were for each session.
/// May be done again where it was interrupted.
pub(super) fn cut(
    directory: &Path,
    marks: &BTreeMap<SessionId, Mark>,
) -> Result<BTreeMap<SessionId, u64>, StoreError> {
    let mut beyond = BTreeMap::new();
    if marks.is_empty() {
        return Ok(beyond);
    }
    for segment in segments(directory)? {
        let Some(mark) = marks.get(&segment.session) else { continue };
        let octets = match segment.number.cmp(&mark.segment) {
            std::cmp::Ordering::Less => continue,
            std::cmp::Ordering::Equal => shorten(&segment, mark)?,
            std::cmp::Ordering::Greater => {
                let octets = length(&segment.path)?;
                retain::remove(&segment)?;
                octets
            }
        };
        *beyond.entry(segment.session).or_default() += octets;
    }
    Ok(beyond)
}

/// Cuts a segment, and leaves it open where it was closed: whoever closes open ones closes it.
fn shorten(segment: &Segment, mark: &Mark) -> Result<u64, StoreError> {
    let clock = segment.clock_path();
    if clock.exists() && length(&clock)? > mark.clock_octets {
        repair::cut(&clock, mark.clock_octets)?;
    }
    if !segment.closed {
        let octets = length(&segment.path)?.saturating_sub(mark.octets);
        if octets > 0 {
            repair::cut(&segment.path, mark.octets)?;
        }
        return Ok(octets);
    }
    // Whole and closed, so the session's end or a further segment was on its way.
    let open = segment.path.with_extension("");
    let failed = |error| StoreError::file(&open, error);
    let mut messages = segment.read()?;
    _ = fs::remove_file(&open);
    let mut file = File::create_new(&open).map_err(failed)?;
    io::copy(&mut messages.by_ref().take(mark.octets), &mut file).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let octets = io::copy(&mut messages, &mut io::sink()).map_err(failed)?;
    fs::remove_file(&segment.path).map_err(|error| StoreError::file(&segment.path, error))?;
    repair::sync_directory(&open)?;
    Ok(octets)
}

fn length(path: &Path) -> Result<u64, StoreError> {
    let metadata = fs::metadata(path).map_err(|error| StoreError::file(path, error))?;
    Ok(metadata.len())
}
