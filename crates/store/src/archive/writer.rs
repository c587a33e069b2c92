//! The open segment of one session. What is appended waits in memory until it is flushed; the
//! clock is written before the messages, so that after a kill it never knows fewer messages than
//! there are.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use wire::ipfix::{Frame, frame};

use super::ArchiveLimits;
use super::clock::Entry;
use super::cut::Mark;
use super::repair::{compress, sync_directory};
use super::segment::Segment;
use crate::{SessionFacts, SessionId, StoreError};

/// A file that is written at its end, and is cut back to what was whole where that fails.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: File,
    length: u64,
    waiting: Vec<u8>,
    /// The system has more than the disk.
    unsynced: bool,
}

/// The open segment of a session.
#[derive(Debug)]
pub(super) struct Writer {
    facts: SessionFacts,
    segment: Segment,
    messages: Tail,
    clock: Tail,
    /// Whether a message that was received is in this segment.
    begun: bool,
    ended: bool,
    /// Up to where results have been kept.
    pub(super) marked: Mark,
}

impl Tail {
    fn create(path: PathBuf) -> Result<Self, StoreError> {
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = created.map_err(|error| StoreError::file(&path, error))?;
        Ok(Self { path, file, length: 0, waiting: Vec::new(), unsynced: false })
    }

    fn octets(&self) -> u64 {
        self.length + u64::try_from(self.waiting.len()).unwrap_or(u64::MAX)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(&self.waiting) {
            // Nothing is there in part; where even that fails, the next open cuts it.
            _ = self.file.set_len(self.length);
            _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(StoreError::file(&self.path, error));
        }
        self.length = self.octets();
        self.waiting.clear();
        self.unsynced = true;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        if self.unsynced {
            self.file.sync_data().map_err(|error| StoreError::file(&self.path, error))?;
            self.unsynced = false;
        }
        Ok(())
    }
}

impl Writer {
    pub(super) fn begin(
        directory: &Path,
        session: SessionId,
        facts: &SessionFacts,
    ) -> Result<Self, StoreError> {
        Self::create(Segment::new(directory, session, 0), facts.clone())
    }

    fn create(segment: Segment, facts: SessionFacts) -> Result<Self, StoreError> {
        let path = segment.facts_path();
        let text = facts.to_json().to_string();
        // What this call makes, and nothing else, is taken away where it fails.
        let mut made = Vec::new();
        let tails = (|| {
            let mut facts = Tail::create(path.clone())?;
            made.push(path.clone());
            facts.waiting = text.into_bytes();
            facts.flush()?;
            facts.sync()?;
            let clock = Tail::create(segment.clock_path())?;
            made.push(segment.clock_path());
            let messages = Tail::create(segment.path.clone())?;
            made.push(segment.path.clone());
            // What is synced later is to be found by its name.
            sync_directory(&segment.path)?;
            Ok((clock, messages))
        })();
        match tails {
            Ok((clock, messages)) => {
                let marked = Mark::default();
                Ok(Self { facts, segment, messages, clock, begun: false, ended: false, marked })
            }
            Err(error) => {
                // So that it can be tried again; an empty segment would say nothing.
                for path in made {
                    _ = fs::remove_file(path);
                }
                Err(error)
            }
        }
    }

    /// Takes a message. Where the segment was full, a new one is begun, and the full one returned:
    /// it is to be compressed.
    pub(super) fn message(
        &mut self,
        limits: &ArchiveLimits,
        received_ms: u64,
        message: &[u8],
        templates: impl FnOnce() -> Vec<u8>,
    ) -> Result<Option<Segment>, StoreError> {
        // All that can fail comes before anything of the message is taken.
        self.make_room(limits.waiting_octets_max)?;
        let more = u64::try_from(message.len()).unwrap_or(u64::MAX);
        let octets = self.messages.octets().saturating_add(more);
        let rotate = self.begun && octets > limits.segment_octets_max;
        let full = rotate.then(|| self.rotate()).transpose()?;
        if !self.begun {
            self.restate(&templates());
            self.begun = true;
        }
        self.clock.waiting.extend_from_slice(&Entry::Message { received_ms }.octets());
        self.messages.waiting.extend_from_slice(message);
        Ok(full)
    }

    /// Begins the segment with messages that were not received.
    fn restate(&mut self, mut templates: &[u8]) {
        while let Ok(Frame::Message { octets, rest }) = frame(templates) {
            self.clock.waiting.extend_from_slice(&Entry::Restated.octets());
            self.messages.waiting.extend_from_slice(octets);
            templates = rest;
        }
        debug_assert!(templates.is_empty(), "whole messages");
    }

    fn rotate(&mut self) -> Result<Segment, StoreError> {
        self.sync()?;
        let next = self.segment.next();
        let next = Self { marked: self.marked, ..Self::create(next, self.facts.clone())? };
        Ok(std::mem::replace(self, next).segment)
    }

    pub(super) fn note(&mut self, entry: Entry, waiting_max: usize) -> Result<(), StoreError> {
        debug_assert!(!entry.has_message(), "a message comes with its octets");
        self.make_room(waiting_max)?;
        self.clock.waiting.extend_from_slice(&entry.octets());
        Ok(())
    }

    fn make_room(&mut self, waiting_max: usize) -> Result<(), StoreError> {
        let waiting = self.messages.waiting.len() + self.clock.waiting.len();
        if waiting < waiting_max { Ok(()) } else { self.flush() }
    }

    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        self.clock.flush()?;
        self.messages.flush()
    }

    /// What the system has, if it is more than what is marked.
    pub(super) fn mark(&self) -> Option<Mark> {
        let mark = Mark {
            segment: self.segment.number,
            octets: self.messages.length,
            clock_octets: self.clock.length,
        };
        (mark != self.marked).then_some(mark)
    }

    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.clock.sync()?;
        self.messages.sync()
    }

    /// Ends the session and closes the segment.
    pub(super) fn end(&mut self, now_ms: u64) -> Result<(), StoreError> {
        if !self.ended {
            self.clock.waiting.extend_from_slice(&Entry::Ended { now_ms }.octets());
            self.ended = true;
        }
        self.sync()?;
        compress(&self.segment)
    }
}
