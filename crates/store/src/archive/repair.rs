//! Closing segments, and mending those that a process before left open: after a kill at any moment
//! a segment is what it was up to its last whole message.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use wire::ipfix::{Frame, MESSAGE_MAX, frame};

use super::clock::{self, ENTRY_LEN, Entry};
use super::segment::{Segment, segments};
use crate::{SessionId, StoreError};

/// Fast, because the stream waits for it.
const LEVEL: i32 = 1;

/// What was mended in a segment that a process before left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The segment's session.
    pub session: SessionId,
    /// Its number in the session.
    pub number: u64,
    /// Whole messages that it has, those that restate templates among them.
    pub messages: u64,
    /// Octets behind the last whole message, which were cut.
    pub octets_cut: u64,
    /// Octets of whole messages of the session of which nothing was published, which were cut as
    /// well.
    pub octets_unpublished: u64,
    /// Messages whose time of receipt was not there: they have that of the one before.
    pub times_unknown: u64,
    /// Entries beside the messages that were cut, because their message is not there.
    pub entries_cut: u64,
}

/// Compresses a segment and puts it in its place: whole, or not at all.
pub(super) fn compress(segment: &Segment) -> Result<(), StoreError> {
    let closed = segment.closed_path();
    let unfinished = unfinished(&closed);
    let written = File::open(&segment.path).and_then(|mut from| {
        let new = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
        let mut encoder = zstd::Encoder::new(new, LEVEL)?;
        encoder.include_checksum(true)?;
        io::copy(&mut from, &mut encoder)?;
        encoder.finish()?.sync_all()?;
        fs::rename(&unfinished, &closed)
    });
    if let Err(error) = written {
        // The open segment is still there.
        _ = fs::remove_file(&unfinished);
        return Err(StoreError::file(&closed, error));
    }
    sync_directory(&closed)?;
    fs::remove_file(&segment.path).map_err(|error| StoreError::file(&segment.path, error))
}

fn unfinished(closed: &Path) -> PathBuf {
    closed.with_extension("zst.unfinished")
}

pub(super) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|error| StoreError::file(directory, error))
}

/// Looks whether all that is named as the archive's own is: what is mended is cut and removed, and
/// a link can lead to anything.
///
/// # Errors
/// [`StoreError`] with the first that is no plain file.
pub(super) fn expect_own(directory: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::file(directory, error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let messages = name.split_once('.').map(|(stem, _)| path.with_file_name(stem));
        let own = messages.map(|stem| stem.with_extension("ipfix"));
        if own.is_none_or(|own| Segment::of(&own).is_none()) {
            continue;
        }
        let kind = entry.file_type().map_err(|error| StoreError::file(&path, error))?;
        if !kind.is_file() {
            let kind = if kind.is_symlink() { "a symbolic link" } else { "no file" };
            let what = format!("is {kind}, expected a file of the archive's own");
            return Err(StoreError::Content { path, what });
        }
    }
    Ok(())
}

/// Mends and closes all open segments in a directory.
pub(super) fn repair(directory: &Path) -> Result<Vec<Repair>, StoreError> {
    remove_unfinished(directory)?;
    let mut repairs = Vec::new();
    for segment in segments(directory)? {
        if segment.closed {
            remove_replaced(&segment)?;
            continue;
        }
        let repair = mend(&segment)?;
        if repair.messages == 0 {
            super::retain::remove(&segment)?;
        } else {
            compress(&segment)?;
        }
        repairs.push(repair);
    }
    Ok(repairs)
}

/// What a compression did not finish, and files beside messages that never came to be.
fn remove_unfinished(directory: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::file(directory, error);
    let known = segments(directory)?;
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let open = path.with_extension("ipfix");
        let beside = matches!(path.extension().and_then(|e| e.to_str()), Some("clock" | "json"))
            && Segment::of(&open).is_some_and(|segment| {
                !known.iter().any(|k| (k.session, k.number) == (segment.session, segment.number))
            });
        if beside || name.ends_with(".ipfix.zst.unfinished") {
            fs::remove_file(&path).map_err(|error| StoreError::file(&path, error))?;
        }
    }
    Ok(())
}

/// The open segment that a compressed one has replaced.
fn remove_replaced(segment: &Segment) -> Result<(), StoreError> {
    let open = segment.path.with_extension("");
    match fs::remove_file(&open) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StoreError::file(&open, error))
        }
        _ => Ok(()),
    }
}

fn mend(segment: &Segment) -> Result<Repair, StoreError> {
    let (messages, whole, length) = whole_messages(&segment.path)?;
    if whole < length {
        cut(&segment.path, whole)?;
    }
    let path = segment.clock_path();
    let octets = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other.map_err(|error| StoreError::file(&path, error))?,
    };
    let (entries, clock_length) = clock::entries(&octets);
    let mut repair = Repair {
        session: segment.session,
        number: segment.number,
        messages,
        octets_cut: length - whole,
        octets_unpublished: 0,
        times_unknown: 0,
        entries_cut: 0,
    };
    // What stands behind the last message that is there stays, up to the first that is not.
    let (mut seen, mut keep, mut last_ms) = (0, 0, 0);
    for entry in &entries {
        if entry.has_message() {
            if seen == messages {
                break;
            }
            seen += 1;
        }
        if let Entry::Message { received_ms } = entry {
            last_ms = *received_ms;
        }
        keep += 1;
    }
    repair.entries_cut = u64::try_from(entries.len() - keep).unwrap_or(u64::MAX);
    repair.times_unknown = messages - seen;
    let kept = keep * ENTRY_LEN;
    if kept < octets.len() || clock_length < octets.len() {
        cut(&path, u64::try_from(kept).unwrap_or(u64::MAX))?;
    }
    if repair.times_unknown > 0 {
        extend(&path, repair.times_unknown, last_ms)?;
    }
    Ok(repair)
}

pub(super) fn cut(path: &Path, length: u64) -> Result<(), StoreError> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| {
            file.set_len(length)?;
            file.sync_all()
        })
        .map_err(|error| StoreError::file(path, error))
}

/// Gives messages without a time that of the one before them.
fn extend(path: &Path, messages: u64, received_ms: u64) -> Result<(), StoreError> {
    let entry = Entry::Message { received_ms }.octets();
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| {
            for _ in 0..messages {
                file.write_all(&entry)?;
            }
            file.sync_all()
        })
        .map_err(|error| StoreError::file(path, error))
}

/// How many whole messages a file has from its start, how many octets these are, and how many the
/// file has. What can be no message ends them as a torn one does.
fn whole_messages(path: &Path) -> Result<(u64, u64, u64), StoreError> {
    let failed = |error| StoreError::file(path, error);
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let (mut messages, mut whole) = (0u64, 0u64);
    let mut ready = Vec::new();
    loop {
        let mut rest = &ready[..];
        let more = loop {
            match frame(rest) {
                Ok(Frame::Message { octets, rest: behind }) => {
                    messages += 1;
                    whole += u64::try_from(octets.len()).unwrap_or(u64::MAX);
                    rest = behind;
                }
                Ok(Frame::NeedMore { .. }) => break true,
                Err(_) => break false,
            }
        };
        let used = ready.len() - rest.len();
        ready.drain(..used);
        let kept = ready.len();
        ready.resize(kept + 16 * MESSAGE_MAX, 0);
        let read = file.read(&mut ready[kept..]).map_err(failed)?;
        ready.truncate(kept + read);
        if read == 0 || !more {
            return Ok((messages, whole, length));
        }
    }
}
