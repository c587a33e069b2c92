//! What goes when the archive is too old or too large: closed segments, the oldest first.

use std::fs;
use std::io;
use std::path::Path;

use super::ArchiveLimits;
use super::clock::Entry;
use super::segment::{Segment, segments};
use crate::StoreError;

/// What was taken out of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Segments.
    pub segments_removed: u64,
    /// Octets of these, with what stood beside them.
    pub octets_removed: u64,
    /// Octets that are there now.
    pub octets: u64,
}

/// A closed segment with what decides whether it stays.
struct Kept {
    /// When its last entry was made; 0 where that is not known, so that it counts as oldest.
    last_ms: u64,
    octets: u64,
    segment: Segment,
}

pub(super) fn retain(
    directory: &Path,
    limits: &ArchiveLimits,
    now_ms: u64,
) -> Result<Removed, StoreError> {
    let mut removed = Removed::default();
    let mut closed = Vec::new();
    for segment in segments(directory)? {
        let octets = octets(&segment)?;
        removed.octets += octets;
        if segment.closed {
            closed.push(Kept { last_ms: last_ms(&segment)?, octets, segment });
        }
    }
    // Within a session the order of numbers is that of times, or nearly: a clock can step back.
    closed.sort_by_key(|kept| (kept.last_ms, kept.segment.session, kept.segment.number));
    for kept in closed {
        let old = now_ms.saturating_sub(kept.last_ms) > limits.age_max_ms;
        if !old && removed.octets <= limits.octets_max {
            continue;
        }
        remove(&kept.segment)?;
        removed.segments_removed += 1;
        removed.octets_removed += kept.octets;
        removed.octets -= kept.octets;
    }
    Ok(removed)
}

fn files(segment: &Segment) -> [std::path::PathBuf; 3] {
    [segment.path.clone(), segment.clock_path(), segment.facts_path()]
}

fn octets(segment: &Segment) -> Result<u64, StoreError> {
    let mut sum = 0;
    for path in files(segment) {
        match fs::metadata(&path) {
            Ok(metadata) => sum += metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::file(&path, error)),
        }
    }
    Ok(sum)
}

fn last_ms(segment: &Segment) -> Result<u64, StoreError> {
    let entries = segment.clock()?.unwrap_or_default();
    let times = entries.iter().rev().filter_map(|entry| match entry {
        Entry::Message { received_ms: ms } | Entry::Advanced { now_ms: ms } => Some(*ms),
        Entry::Ended { now_ms: ms } => Some(*ms),
        Entry::Restated
        | Entry::Dropped { .. }
        | Entry::Admitted { .. }
        | Entry::Bounded { .. }
        | Entry::PfcBounded { .. }
        | Entry::Expelled { .. } => None,
    });
    Ok(times.take(1).next().unwrap_or(0))
}

/// The messages go first: what then stands beside nothing is taken out at the next open.
pub(super) fn remove(segment: &Segment) -> Result<(), StoreError> {
    for path in files(segment) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::file(&path, error));
            }
            _ => {}
        }
    }
    Ok(())
}
