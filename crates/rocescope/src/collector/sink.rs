//! What the sessions hand to the one who keeps it, and what that one has to be able to do.
//!
//! Every change says what is known of an epoch, or of what was refused; nothing here decides
//! anything about a report.

use std::fmt;

pub use store::{Change, EpochState, PfcState, Rules, SessionFacts, SessionId};

use super::raw::Raw;

/// Why something is not kept. Nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkError {
    /// There is no room on the disk; there may be some later.
    pub disk_full: bool,
    /// In a line.
    pub problem: String,
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for SinkError {}

/// Keeps changes. There is one, and one thread owns it.
pub trait Sink: Send + 'static {
    /// Notes that a session begins.
    ///
    /// # Errors
    /// It is not noted.
    fn open_session(&mut self, facts: &SessionFacts) -> Result<SessionId, SinkError>;

    /// Keeps all of the changes, or none.
    ///
    /// # Errors
    /// None is kept; the same ones may be tried again.
    fn apply(&mut self, changes: &[Change]) -> Result<(), SinkError>;

    /// Keeps what a session received, as it came. Called before the changes that come of it are
    /// applied.
    ///
    /// # Errors
    /// What is still in `raw` is not kept; it may be tried again.
    fn archive(&mut self, session: SessionId, raw: &mut Raw) -> Result<(), SinkError>;

    /// Takes out what is kept for longer than it may, or beyond what there is room for.
    ///
    /// # Errors
    /// Something is left that should have gone.
    // SEQ-7.10
    fn tend(&mut self, now_ms: u64) -> Result<(), SinkError>;
}
