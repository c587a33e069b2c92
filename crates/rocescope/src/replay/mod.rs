//! `rocescope replay`: outcomes recomputed from archives alone (sequence draft, section 7).
//!
//! Each Transport Session of an archive is judged anew, message by message and in the order in
//! which things happened, by the state machine that judged it live and under the rules that stand
//! beside it. The verdicts are then those of the collector, as long as the whole session is in the
//! archive; where it is not, a warning says so. A plain IPFIX File is one session under the default
//! rules, in which nothing is retired before its end.
//!
//! Behind the epochs of a session stand its PFC counters with their latest readings, and what lies
//! between these and the ones before.
// SEQ-7.18

mod input;
mod judge;
mod output;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use store::StoreError;
use store::archive::{Entry, Segment};
use wire::element::Mapping;
use wire::ipfix::MessageHeader;

use crate::dump::{DumpError, Source};
pub use crate::meter::Format;
use input::{Archived, Input};
use judge::Judge;
use output::Output;

/// What is to be recomputed, and how it is shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// Segments of archives, directories of them, or IPFIX Files.
    pub paths: Vec<PathBuf>,
    /// Table or JSON Lines.
    pub format: Format,
    /// The numbers of the elements, for files beside which none stand.
    pub mapping: Mapping,
    /// Makes the places in hash tables unpredictable.
    pub seed: u64,
}

/// What was recomputed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Transport Sessions.
    pub sessions: u64,
    /// Messages, those that restate templates not among them.
    pub messages: u64,
    /// Messages that were discarded whole.
    pub discarded: u64,
    /// Reports that were accepted.
    pub accepted: u64,
    /// Reports that were the latest once more.
    pub repeated: u64,
    /// Records of the profile, or of PFC counters, that were refused.
    pub refused: u64,
    /// Readings of PFC counters that were taken.
    pub pfc_accepted: u64,
    /// Readings of PFC counters that were the latest once more.
    pub pfc_repeated: u64,
    /// PFC counters.
    pub pfc_counters: u64,
    /// Epochs by outcome: complete, incomplete, invalid.
    pub epochs: [u64; 3],
}

/// Why nothing more was recomputed.
#[derive(Debug)]
pub enum ReplayError {
    /// An archive cannot be read.
    Archive(StoreError),
    /// A file cannot be read.
    Input {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// There is nothing of an archive in a directory.
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// There is no message of IPFIX in a file, or in any segment of a session.
    NotIpfix {
        /// Which; the first segment.
        path: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// Standard output, or what stands for it.
    Output(io::Error),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => error.fmt(f),
            Self::Input { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Empty { path } => {
                write!(f, "{}: no segment of an archive, expected at least one", path.display())
            }
            Self::NotIpfix { path, found } => {
                write!(f, "{}: {found}, expected IPFIX messages", path.display())
            }
            Self::Output(error) => write!(f, "output: {error}"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Recomputes the outcomes of everything in the paths, session by session.
///
/// # Errors
/// [`ReplayError`]; what was written before stands. A segment that is damaged is a warning, and
/// its session goes on with the next one; a file without any message is an error, after all others
/// were looked at.
pub fn run(
    run: &Run,
    out: &mut impl Write,
    warnings: &mut impl Write,
) -> Result<Summary, ReplayError> {
    let inputs = input::inputs(&run.paths)?;
    let mut output = Output::new(out, run.format);
    let mut summary = Summary::default();
    let mut unread = None;
    for input in inputs {
        let mut told = Vec::new();
        let done = match &input {
            Input::Session(archived) => session(run, archived, &mut output, &mut told),
            Input::File(path) => file(run, path, &mut output, &mut told),
        };
        for warning in told {
            // A warning that cannot be written changes no result.
            _ = writeln!(warnings, "warning: {warning}");
        }
        match done {
            Ok(counts) => {
                summary.sessions += 1;
                summary.add(&counts);
            }
            // The first one is the error at the end.
            Err(error @ ReplayError::NotIpfix { .. }) => match &unread {
                None => unread = Some(error),
                Some(_) => _ = writeln!(warnings, "warning: {error}"),
            },
            Err(error) => return Err(error),
        }
    }
    if summary.sessions > 0 || unread.is_none() {
        output.finish(&mut summary).map_err(ReplayError::Output)?;
    }
    unread.map_or(Ok(summary), Err)
}

impl Summary {
    fn add(&mut self, counts: &judge::Counts) {
        self.messages += counts.messages;
        self.discarded += counts.discarded;
        self.accepted += counts.accepted;
        self.repeated += counts.repeated;
        self.refused += counts.refused;
        self.pfc_accepted += counts.pfc_accepted;
        self.pfc_repeated += counts.pfc_repeated;
    }
}

/// Judges a plain file: one session, whose messages were received when they were exported.
fn file(
    run: &Run,
    path: &std::path::Path,
    output: &mut Output<'_, impl Write>,
    told: &mut Vec<String>,
) -> Result<judge::Counts, ReplayError> {
    let rules = store::Rules { mapping: run.mapping, ..store::Rules::default() };
    let mut judge = Judge::new(rules, run.seed);
    let mut source = Source::new(input::open(path)?);
    let mut at = 0;
    loop {
        match source.message(at) {
            Ok(Some(message)) => {
                judge.message(message, export_time_ms(message));
                at += u64::try_from(message.len()).unwrap_or(0);
            }
            Ok(None) => break,
            Err(DumpError::Input(error)) => {
                return Err(ReplayError::Input { path: path.to_owned(), error });
            }
            Err(error) if at == 0 => {
                return Err(ReplayError::NotIpfix {
                    path: path.to_owned(),
                    found: error.to_string(),
                });
            }
            Err(error) => {
                told.push(format!("{}: {error}: not read from there", path.display()));
                break;
            }
        }
    }
    if at == 0 {
        let found = "nothing is in it".into();
        return Err(ReplayError::NotIpfix { path: path.to_owned(), found });
    }
    finish(judge, None, output)
}

/// Judges an archived session, its segments in their order.
fn session(
    run: &Run,
    archived: &Archived,
    output: &mut Output<'_, impl Write>,
    told: &mut Vec<String>,
) -> Result<judge::Counts, ReplayError> {
    let rules = rules(run, archived, told)?;
    let mut judge = Judge::new(rules, run.seed);
    let mut expected = 0;
    let (mut whole, mut ended) = (true, false);
    for segment in &archived.segments {
        if segment.number != expected {
            told.push(format!(
                "{}: segment {expected} of session {} is not there: outcomes need not be those \
                 that were published",
                segment.path.display(),
                archived.session.0
            ));
        }
        let followed = whole && segment.number == expected && segment.number > 0;
        if !followed {
            judge.forget_templates();
        }
        let mut reading = Reading { judge: &mut judge, output, id: archived.session.0 };
        let end = reading.segment(segment, followed, told)?;
        ended = end == End::Session;
        // Behind what could not be read, templates have to be told anew.
        whole = end != End::Damaged;
        expected = segment.number.saturating_add(1);
    }
    if let Some(first) = archived.segments.first()
        && !whole
        && judge.counts().messages == 0
    {
        let found = "nothing of it can be read".into();
        return Err(ReplayError::NotIpfix { path: first.path.clone(), found });
    }
    if !ended {
        told.push(format!(
            "the archive has no end of session {}: it is taken to end behind its last message",
            archived.session.0
        ));
    }
    finish(judge, Some(archived.session.0), output)
}

fn rules(
    run: &Run,
    archived: &Archived,
    told: &mut Vec<String>,
) -> Result<store::Rules, ReplayError> {
    for segment in &archived.segments {
        if let Some(facts) = segment.facts().map_err(ReplayError::Archive)? {
            return Ok(facts.rules);
        }
    }
    told.push(format!(
        "no facts beside the segments of session {}: the default rules are taken",
        archived.session.0
    ));
    Ok(store::Rules { mapping: run.mapping, ..store::Rules::default() })
}

fn finish(
    judge: Judge,
    session: Option<u64>,
    output: &mut Output<'_, impl Write>,
) -> Result<judge::Counts, ReplayError> {
    let mut retired = Vec::new();
    let (counts, pfc) = judge.end(&mut retired);
    output.epochs(session, retired).map_err(ReplayError::Output)?;
    output.pfc(session, pfc.counters()).map_err(ReplayError::Output)?;
    Ok(counts)
}

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With the session.
    Session,
    /// With its last message.
    Segment,
    /// Before its last message.
    Damaged,
}

struct Reading<'a, 'o, W> {
    judge: &'a mut Judge,
    output: &'a mut Output<'o, W>,
    id: u64,
}

impl<W: Write> Reading<'_, '_, W> {
    /// Judges a segment; `followed` says that the one before it was judged whole.
    fn segment(
        &mut self,
        segment: &Segment,
        followed: bool,
        told: &mut Vec<String>,
    ) -> Result<End, ReplayError> {
        let name = segment.path.display();
        let mut source = Source::new(segment.read().map_err(ReplayError::Archive)?);
        let Some(entries) = segment.clock().map_err(ReplayError::Archive)? else {
            told.push(format!("{name}: no clock beside it: nothing is retired within it"));
            return self.without_clock(segment, source, told);
        };
        let mut at = 0;
        for entry in entries {
            let received_ms = match entry {
                Entry::Message { received_ms } => Some(received_ms),
                Entry::Restated => None,
                Entry::Ended { .. } => return Ok(End::Session),
                other => {
                    self.note(other)?;
                    continue;
                }
            };
            let message = match source.message(at) {
                Ok(Some(message)) => message,
                // What was being written when it was read is not all there.
                Ok(None) | Err(DumpError::Truncated { .. }) if !segment.closed => {
                    return Ok(End::Segment);
                }
                Ok(None) => {
                    told.push(format!("{name}: ends at octet {at}, expected more messages"));
                    return Ok(End::Damaged);
                }
                Err(error) => {
                    told.push(format!("{name}: {error}: not read from there"));
                    return Ok(End::Damaged);
                }
            };
            at += u64::try_from(message.len()).unwrap_or(0);
            match received_ms {
                Some(received_ms) => self.judge.message(message, received_ms),
                // SEQ-7.1: where the segment before was read, all of it is known, and more.
                None if followed => {}
                None => self.judge.restated(message),
            }
        }
        beyond_the_clock(segment, source, at, told)
    }

    fn note(&mut self, entry: Entry) -> Result<(), ReplayError> {
        match entry {
            Entry::Advanced { now_ms } => {
                let mut retired = Vec::new();
                self.judge.advance(now_ms, &mut retired);
                self.output.epochs(Some(self.id), retired).map_err(ReplayError::Output)?;
            }
            Entry::Dropped { domain } => self.judge.dropped(domain),
            Entry::Admitted { domain } => self.judge.admit(domain),
            Entry::Expelled { domain } => self.judge.expel(domain),
            Entry::Bounded { epochs } => self.judge.bound(epochs),
            Entry::PfcBounded { counters } => self.judge.bound_pfc(counters),
            Entry::Message { .. } | Entry::Restated | Entry::Ended { .. } => {}
        }
        Ok(())
    }

    fn without_clock(
        &mut self,
        segment: &Segment,
        mut source: Source<impl io::Read>,
        told: &mut Vec<String>,
    ) -> Result<End, ReplayError> {
        let mut at = 0;
        loop {
            match source.message(at) {
                Ok(Some(message)) => {
                    self.judge.message(message, export_time_ms(message));
                    at += u64::try_from(message.len()).unwrap_or(0);
                }
                Ok(None) => return Ok(End::Segment),
                Err(error) => {
                    let name = segment.path.display();
                    told.push(format!("{name}: {error}: not read from there"));
                    return Ok(End::Damaged);
                }
            }
        }
    }
}

/// What a segment has behind the last entry of its clock: nothing is known of when it came, nor of
/// what became of the session meanwhile, so none of it is judged, and that is said.
// SEQ-7.18
fn beyond_the_clock(
    segment: &Segment,
    mut source: Source<impl io::Read>,
    mut at: u64,
    told: &mut Vec<String>,
) -> Result<End, ReplayError> {
    let name = segment.path.display();
    let unread = segment.clock_octets_unread().map_err(ReplayError::Archive)?;
    let (from, mut messages) = (at, 0_u64);
    let behind = loop {
        match source.message(at) {
            Ok(Some(message)) => {
                messages += 1;
                at += u64::try_from(message.len()).unwrap_or(0);
            }
            Ok(None) => break String::new(),
            // What is being written while it is read is not all there.
            Err(DumpError::Truncated { .. }) if !segment.closed => break String::new(),
            Err(error) => break format!(", nor what is behind: {error}"),
        }
    };
    let why = match (segment.closed, unread) {
        _ if messages == 0 && behind.is_empty() && (unread == 0 || !segment.closed) => {
            return Ok(End::Segment);
        }
        (true, 0) => "is cut short".to_owned(),
        (true, unread) => format!("is cut short, or damaged in its last {unread} octets"),
        (false, _) => "ends before it does, or is still being written".to_owned(),
    };
    told.push(format!(
        "{name}: the clock beside it {why}: {messages} messages from octet {from} on are not \
         used{behind}"
    ));
    Ok(End::Damaged)
}

fn export_time_ms(message: &[u8]) -> u64 {
    MessageHeader::read(message).map_or(0, |header| u64::from(header.export_time) * 1000)
}
