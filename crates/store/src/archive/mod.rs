//! The raw stream of every Transport Session as IPFIX Files (RFC 5655): messages back to back, in
//! segments that are compressed when they are full.
//!
//! A segment is three files in one directory, which can be taken elsewhere together:
//!
//! - `S-N.ipfix`, or `S-N.ipfix.zst` once it is closed: the messages of session `S`, part `N`. Each
//!   part starts with messages that restate the templates known by then, so it is readable by
//!   itself.
//! - `S-N.clock`: what the messages do not say, an [`Entry`] of 16 octets each: when each message
//!   was received, when time was advanced, what the collector dropped, that the session ended. By
//!   it the same verdicts are found again.
//! - `S-N.json`: the [`SessionFacts`].
//!
//! What has been appended is with the system after [`Archive::flush`], and then survives a kill of
//! the process. A message is judged by nobody here.
// SEQ-7.18

mod clock;
mod cut;
mod repair;
mod retain;
mod segment;
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use clock::{ENTRY_LEN, Entry};
pub use cut::Mark;
pub use repair::Repair;
pub use retain::Removed;
pub use segment::{Segment, segments};

use crate::{SessionFacts, SessionId, StoreError};
use writer::Writer;

/// Bounds of the archive, shown to operators.
// SEQ-7.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Octets of a segment; it is closed before the message that would make it larger. One message
    /// is always taken.
    pub segment_octets_max: u64,
    /// Octets of all segments with what stands beside them; the oldest closed ones go first.
    pub octets_max: u64,
    /// Closed segments whose last message is older than this go, milliseconds.
    pub age_max_ms: u64,
    /// Octets of one session that wait in memory for [`Archive::flush`].
    pub waiting_octets_max: usize,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            segment_octets_max: 64 << 20,
            octets_max: 64 << 30,
            age_max_ms: 90 * 86_400_000,
            waiting_octets_max: 256 << 10,
        }
    }
}

/// The archive in a directory of which this is the only writer; whoever holds the
/// [`Store`](crate::Store) of the same collector is.
#[derive(Debug)]
pub struct Archive {
    directory: PathBuf,
    limits: ArchiveLimits,
    open: BTreeMap<SessionId, Writer>,
    /// Full segments that are to be compressed.
    full: Vec<Segment>,
    /// What was said last of each domain of a session before its first message.
    early: BTreeMap<SessionId, BTreeMap<Of, Entry>>,
}

/// What an entry that comes before the first message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Domain(u32),
    Epochs,
    PfcCounters,
}

impl Archive {
    /// Opens the archive, and mends what a process before left unfinished: the tail of a segment
    /// that ends inside a message is cut, and every segment that was open is closed.
    ///
    /// # Errors
    /// [`StoreError`]; mending goes on at the next attempt.
    pub fn open(
        directory: &Path,
        limits: ArchiveLimits,
    ) -> Result<(Self, Vec<Repair>), StoreError> {
        Self::open_at(directory, limits, &BTreeMap::new())
    }

    /// As [`Archive::open`]; of the sessions that have a mark, what is behind it is cut: it was on
    /// its way when the process ended, and nothing was published of it. Replaying then finds what
    /// was published.
    ///
    /// # Errors
    /// [`StoreError`]; mending goes on at the next attempt with the same marks.
    // SEQ-7.18
    pub fn open_at(
        directory: &Path,
        limits: ArchiveLimits,
        marks: &BTreeMap<SessionId, Mark>,
    ) -> Result<(Self, Vec<Repair>), StoreError> {
        fs::create_dir_all(directory).map_err(|error| StoreError::file(directory, error))?;
        repair::expect_own(directory)?;
        let mut beyond = cut::cut(directory, marks)?;
        let mut repairs = repair::repair(directory)?;
        for repair in &mut repairs {
            repair.octets_unpublished = beyond.remove(&repair.session).unwrap_or(0);
        }
        Ok((
            Self {
                directory: directory.to_owned(),
                limits,
                open: BTreeMap::new(),
                full: Vec::new(),
                early: BTreeMap::new(),
            },
            repairs,
        ))
    }

    /// Takes one whole message of a session as it was received. `templates` is asked for messages
    /// that restate the session's templates when a segment begins: nothing where nothing is known.
    ///
    /// # Errors
    /// [`StoreError`]; the message is not in the archive then, and can be appended again.
    pub fn append(
        &mut self,
        session: SessionId,
        facts: &SessionFacts,
        received_ms: u64,
        message: &[u8],
        templates: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), StoreError> {
        let limits = self.limits;
        let writer = match self.open.entry(session) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let writer = place.insert(Writer::begin(&self.directory, session, facts)?);
                for (_, entry) in self.early.remove(&session).unwrap_or_default() {
                    writer.note(entry, limits.waiting_octets_max)?;
                }
                writer
            }
        };
        self.full.extend(writer.message(&limits, received_ms, message, templates)?);
        Ok(())
    }

    /// Notes something beside the messages of a session: an advance of time, or a drop. Before the
    /// first message of the session, only what is said of its domains and its room matters.
    ///
    /// # Errors
    /// [`StoreError`]; it is not noted then, and can be noted again.
    pub fn note(&mut self, session: SessionId, entry: Entry) -> Result<(), StoreError> {
        if let Some(writer) = self.open.get_mut(&session) {
            return writer.note(entry, self.limits.waiting_octets_max);
        }
        // The latest of each sort is what holds when the first message comes.
        let of = match entry {
            Entry::Admitted { domain } | Entry::Expelled { domain } => Of::Domain(domain),
            Entry::Bounded { .. } => Of::Epochs,
            Entry::PfcBounded { .. } => Of::PfcCounters,
            _ => return Ok(()),
        };
        self.early.entry(session).or_default().insert(of, entry);
        Ok(())
    }

    /// Hands everything to the system: from here on it survives a kill of this process. To be
    /// called before the outcomes that come of it are published. Compresses the segments that have
    /// become full.
    ///
    /// # Errors
    /// [`StoreError`]; what could not be handed over waits for the next call.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.open.values_mut().try_for_each(Writer::flush)?;
        self.compress_full()
    }

    /// How far each session has come that came further since [`Archive::marked`]: to be noted
    /// with the outcomes that come of it.
    #[must_use]
    pub fn marks(&self) -> Vec<(SessionId, Mark)> {
        let open = self.open.iter().map(|(session, writer)| (*session, writer));
        open.filter_map(|(session, writer)| Some((session, writer.mark()?))).collect()
    }

    /// These marks are noted.
    pub fn marked(&mut self, marks: &[(SessionId, Mark)]) {
        for (session, mark) in marks {
            if let Some(writer) = self.open.get_mut(session) {
                writer.marked = *mark;
            }
        }
    }

    /// As [`Archive::flush`], and waits until it is on the disk.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.open.values_mut().try_for_each(Writer::sync)
    }

    /// The session has ended: notes it and closes its segment.
    ///
    /// # Errors
    /// [`StoreError`]; it can be asked for again, and the next [`Archive::open`] closes it anyhow.
    pub fn close(&mut self, session: SessionId, closed_ms: u64) -> Result<(), StoreError> {
        if let Some(writer) = self.open.get_mut(&session) {
            writer.end(closed_ms)?;
            self.open.remove(&session);
        }
        self.early.remove(&session);
        self.compress_full()
    }

    /// The last session of which there is a segment.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn last_session(&self) -> Result<Option<SessionId>, StoreError> {
        Ok(segments(&self.directory)?.iter().map(|segment| segment.session).max())
    }

    /// Takes out closed segments that are too old, and the oldest closed ones until all segments
    /// together are within the limit. An open one never goes.
    ///
    /// # Errors
    /// [`StoreError`]; what was taken out before stays out.
    // SEQ-7.10
    pub fn retain(&mut self, now_ms: u64) -> Result<Removed, StoreError> {
        retain::retain(&self.directory, &self.limits, now_ms)
    }

    fn compress_full(&mut self) -> Result<(), StoreError> {
        while let Some(full) = self.full.last() {
            repair::compress(full)?;
            self.full.pop();
        }
        Ok(())
    }
}
