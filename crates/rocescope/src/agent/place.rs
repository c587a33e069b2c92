//! Destinations of reports, each with its session or without, and what became of them.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::Sender;

use super::counters::SessionNumbers;
use super::destination::{DestinationCounts, Piece};
use super::session::{ExportSession, SessionCounts, SessionSettings};

/// What a destination's sessions have in common.
pub struct Target {
    /// `host port N`, for people.
    pub name: String,
    /// How its sessions run.
    pub settings: SessionSettings,
    /// What its connections count.
    pub counts: Arc<DestinationCounts>,
}

/// A session and the way its octets go.
pub(super) struct Live {
    pub session: ExportSession,
    pub began: Instant,
    pub pipe: Sender<Piece>,
}

/// One destination, connected or not.
pub(super) struct Place {
    pub target: Target,
    pub live: Option<Live>,
    pub sessions: u64,
    /// Frames that passed while there was no session.
    pub frames_without_session: u64,
    /// Reports of sessions that were cut which the network did not take, and the final ones.
    pub unsent: [u64; 2],
    /// What sessions that have ended counted.
    pub past: SessionCounts,
    /// What else they counted.
    pub past_numbers: SessionNumbers,
}

/// What became of a destination, when the agent stops.
#[derive(Clone, Debug)]
pub struct Ended {
    /// `host port N`.
    pub name: String,
    /// Over all its sessions.
    pub counts: SessionCounts,
    /// What its connections count.
    pub way: Arc<DestinationCounts>,
    /// Frames that passed while there was no session.
    pub frames_without_session: u64,
}

/// The sum of two sessions' counts.
pub(super) fn added(a: SessionCounts, b: SessionCounts) -> SessionCounts {
    SessionCounts {
        reports: a.reports.saturating_add(b.reports),
        finals: a.finals.saturating_add(b.finals),
        signs_of_life: a.signs_of_life.saturating_add(b.signs_of_life),
        skipped_reports: a.skipped_reports.saturating_add(b.skipped_reports),
        dropped_finals: a.dropped_finals.saturating_add(b.dropped_finals),
        octets: a.octets.saturating_add(b.octets),
        readings: a.readings.saturating_add(b.readings),
        skipped_readings: a.skipped_readings.saturating_add(b.skipped_readings),
    }
}
