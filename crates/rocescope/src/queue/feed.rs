//! One connection of a source of events: octets in, completed rows out. It knows neither socket
//! nor clock.
//!
//! A connection begins a measurement: its numbers, its clock and its mappings are its own, and
//! what an earlier connection told holds no more, so every queue has a fresh epoch. What was going
//! on ends where the source was last.
//!
//! A line that is no event is a hole, as a number that is missing is: events of any queue may have
//! been in it. What is told of a queue for which there is no room, or that was never mapped, is no
//! hole for the others.
// QUE-id.1, QUE-err.3

use std::sync::Arc;

use observe::queue::event::Event;
use observe::queue::meter::{Counts, Meter, Refused, Settings, Subject, Told};
use observe::queue::row::Row;
use observe::queue::{EpochId, Place};

use super::events::{self, LINE_OCTETS_MAX, Line};

/// What has happened on a connection, beside what its meter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCounts {
    /// Lines that were not empty.
    pub lines: u64,
    /// Lines that were no event, or one that could not be meant.
    pub bad: u64,
    /// Events of queues that are not measured.
    pub passed_over: u64,
}

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// So many lines in a row were no events.
    Bad(u64),
    /// A mapping cannot be taken, so nobody knows what its queue is from there on.
    Mapping(String),
}

impl std::fmt::Display for Over {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bad(count) => write!(f, "{count} lines in a row that are no events"),
            Self::Mapping(why) => write!(f, "a mapping that cannot be taken: {why}"),
        }
    }
}

/// A connection.
pub struct Feed<F> {
    meter: Meter<F>,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// The line that goes on is too long already.
    skips: bool,
    bad_in_a_row: u64,
    bad_in_a_row_max: u64,
    counts: FeedCounts,
}

impl<F: FnMut() -> EpochId> Feed<F> {
    /// Nothing was told yet.
    pub fn new(settings: Settings, fresh: F, bad_in_a_row_max: u64) -> Self {
        Self {
            meter: Meter::new(settings, fresh),
            partial: Vec::new(),
            skips: false,
            bad_in_a_row: 0,
            bad_in_a_row_max,
            counts: FeedCounts::default(),
        }
    }

    /// What has happened.
    pub const fn counts(&self) -> (FeedCounts, Counts) {
        (self.counts, self.meter.counts())
    }

    /// The queues that were mapped.
    pub fn places(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.meter.places()
    }

    /// How many queues were mapped.
    pub const fn queues(&self) -> usize {
        self.meter.queues()
    }

    /// How many completed rows wait to be taken.
    pub fn waiting(&self) -> usize {
        self.meter.waiting()
    }

    /// Octets, as they come. Rows wait until they are taken, so not many lines at once. `bad` is told the number of each line that was no event, and why.
    ///
    /// # Errors
    /// [`Over`]; there is no use in going on then.
    pub fn octets(
        &mut self,
        mut octets: &[u8],
        bad: &mut dyn FnMut(u64, String),
    ) -> Result<(), Over> {
        while let Some(at) = octets.iter().position(|octet| *octet == b'\n') {
            let (line, rest) = (&octets[..at], &octets[at + 1..]);
            octets = rest;
            if self.skips {
                // Its beginning was told to be too long.
                self.skips = false;
            } else if self.partial.is_empty() {
                self.line(line, bad)?;
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                let done = self.line(&whole, bad);
                whole.clear();
                self.partial = whole;
                done?;
            }
        }
        if self.skips {
            return Ok(());
        }
        if self.partial.len() + octets.len() > LINE_OCTETS_MAX {
            self.partial.clear();
            self.skips = true;
            return self.too_long(bad);
        }
        self.partial.extend_from_slice(octets);
        Ok(())
    }

    /// Rows that were completed, oldest first.
    pub fn rows(&mut self) -> Vec<Arc<Row>> {
        std::iter::from_fn(|| self.meter.row()).map(Arc::new).collect()
    }

    /// The end: what goes on ends where the source was last. A line without an end is not read.
    pub fn finish(&mut self) {
        self.meter.finish();
    }

    /// One line, without its end.
    fn line(&mut self, line: &[u8], bad: &mut dyn FnMut(u64, String)) -> Result<(), Over> {
        if line.len() > LINE_OCTETS_MAX {
            return self.too_long(bad);
        }
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        self.counts.lines += 1;
        match events::read(line) {
            Ok(line) => self.event(&line, bad),
            Err(why) => {
                self.meter.unread();
                self.bad(why, bad)
            }
        }
    }

    fn event(&mut self, line: &Line<'_>, bad: &mut dyn FnMut(u64, String)) -> Result<(), Over> {
        let told = line.told();
        let Told { seq, t, subject, .. } = told;
        let mapping = matches!(told.event, Event::Map(_));
        let refused = match self.meter.told(told) {
            Ok(()) => {
                self.bad_in_a_row = 0;
                return Ok(());
            }
            Err(refused) => refused,
        };
        match &refused {
            // There is no queue of which anything could be missing.
            Refused::Full { .. } | Refused::NotMapped(_) => {
                self.meter.passed_over(seq, t);
                self.counts.passed_over += 1;
                self.bad_in_a_row = 0;
                bad(self.counts.lines, refused.to_string());
                return Ok(());
            }
            Refused::Error { .. } | Refused::Name { .. } | Refused::Character { .. } if mapping => {
                return Err(Over::Mapping(refused.to_string()));
            }
            // What was meant was of this queue, and is missing.
            Refused::NotOfQueue { .. } => self.lost(seq, t, subject),
            _ => self.meter.unread(),
        }
        self.bad(refused.to_string(), bad)
    }

    fn lost(&mut self, seq: u64, t: u64, subject: Subject<'_>) {
        if self.meter.told(Told { seq, t, subject, event: Event::Lost }).is_err() {
            self.meter.unread();
        }
    }

    fn too_long(&mut self, bad: &mut dyn FnMut(u64, String)) -> Result<(), Over> {
        self.counts.lines += 1;
        self.meter.unread();
        self.bad(format!("more than {LINE_OCTETS_MAX} octets, expected less"), bad)
    }

    fn bad(&mut self, why: String, bad: &mut dyn FnMut(u64, String)) -> Result<(), Over> {
        self.counts.bad += 1;
        bad(self.counts.lines, why);
        self.bad_in_a_row += 1;
        if self.bad_in_a_row >= self.bad_in_a_row_max {
            return Err(Over::Bad(self.bad_in_a_row));
        }
        Ok(())
    }
}
