//! What comes out of the sessions, on the disk: results in the database, and the raw stream in the
//! archive.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use observe::outcome::Outcome;
use store::archive::{Archive, ArchiveLimits};
use store::{QueueLimits, Store, StoreError, StoreLimits};
use tracing::{info, warn};
use wire::ipfix::{Encoder, Layout, MESSAGE_MAX, TemplateKind};

use super::clock::Clock;
use super::raw::{Part, Raw};
use super::sink::{Change, SessionFacts, SessionId, Sink, SinkError};
use crate::config::Collector;

const DAY_MS: u64 = 86_400_000;

/// The folder of the archive in the store's directory.
const ARCHIVE: &str = "archive";

/// The store and the archive of a collector.
#[derive(Debug)]
pub struct Disk {
    store: Store,
    archive: Archive,
    sessions: HashMap<SessionId, Open>,
}

/// A session that goes on.
#[derive(Debug)]
struct Open {
    facts: SessionFacts,
    templates: Templates,
}

/// What was defined by the last message in the archive.
type Templates = BTreeMap<(u32, TemplateKind, u16), Arc<Layout>>;

impl Disk {
    /// Opens what is kept in a directory, or begins it, and tells what a run before left
    /// unfinished.
    ///
    /// # Errors
    /// It cannot be opened; in a line.
    // SEQ-7.13
    pub fn open(config: &Collector) -> Result<Self, String> {
        let directory = &config.store.directory.path;
        let (results, raw) = Self::limits(config);
        let of = |error: StoreError| format!("store.directory: {error}");
        let (mut store, recovery) =
            Store::open(directory, results, Clock::new().now_ms()).map_err(of)?;
        // Cut to what was published, and only then are the marks not needed any more.
        let marks = store.marks().map_err(of)?;
        let (archive, repairs) =
            Archive::open_at(&directory.join(ARCHIVE), raw, &marks).map_err(of)?;
        store.forget_marks().map_err(of)?;
        if let Some(last) = archive.last_session().map_err(of)? {
            store.begin_behind(last).map_err(of)?;
        }
        if recovery.sessions_closed > 0 {
            info!(
                "the collector did not end in order: {} sessions are closed, {} epochs that were \
                 open are incomplete",
                recovery.sessions_closed, recovery.epochs_incomplete
            );
        }
        for repair in repairs {
            info!(
                "the archive's segment {} of session {} is mended: {} whole messages; behind them \
                 {} octets of a torn one are cut, and {} octets of which nothing was published",
                repair.number,
                repair.session.0,
                repair.messages,
                repair.octets_cut,
                repair.octets_unpublished
            );
        }
        Ok(Self { store, archive, sessions: HashMap::new() })
    }

    /// The bounds of results, and of the raw archive.
    // SEQ-7.10
    pub fn limits(config: &Collector) -> (StoreLimits, ArchiveLimits) {
        let limits = &config.limits;
        let days_ms = |days: u64| days.saturating_mul(DAY_MS);
        let results = StoreLimits {
            results_age_max_ms: days_ms(limits.results_days_max),
            history_age_max_ms: days_ms(limits.history_days_max),
            history_per_epoch_max: limits.history_per_epoch_max,
            octets_max: limits.results_octets_max,
            pfc_history_interval_ms: limits.pfc_history_interval_s.saturating_mul(1000),
            pfc_history_per_counter_max: limits.pfc_history_max,
            queues: QueueLimits {
                queues_max: limits.queue_queues_max,
                epochs_max: limits.queue_epochs_max,
                rows_max: limits.queue_rows_max,
                rejections_max: limits.queue_rejections_max,
                age_max_ms: days_ms(limits.queue_days_max),
            },
        };
        let waiting = limits.archive_waiting_octets_max;
        let raw = ArchiveLimits {
            segment_octets_max: limits.archive_segment_octets_max,
            octets_max: limits.archive_octets_max,
            age_max_ms: days_ms(limits.archive_days_max),
            waiting_octets_max: usize::try_from(waiting).unwrap_or(usize::MAX),
        };
        (results, raw)
    }

    /// Where results are read, beside this.
    ///
    /// # Errors
    /// The database cannot be opened once more.
    pub fn reader(&self) -> Result<store::Reader, StoreError> {
        self.store.reader()
    }
}

impl Sink for Disk {
    fn open_session(&mut self, facts: &SessionFacts) -> Result<SessionId, SinkError> {
        let session = self.store.open_session(facts).map_err(failed)?;
        let open = Open { facts: facts.clone(), templates: Templates::new() };
        self.sessions.insert(session, open);
        Ok(session)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), SinkError> {
        for change in changes {
            if let Change::SessionClosed { session, closed_ms, .. } = change {
                self.archive.close(*session, *closed_ms).map_err(failed)?;
                self.sessions.remove(session);
            }
        }
        // What an outcome comes of is never behind it, not even after a power failure.
        let publishes = |change: &Change| match change {
            Change::Epoch(state) => state.outcome != Outcome::Active,
            Change::SessionClosed { .. } => true,
            Change::Refused { .. }
            | Change::CollectorDrop { .. }
            | Change::Pfc(_)
            | Change::PfcDoubted { .. }
            | Change::Queue(_) => false,
        };
        let handed_over = match changes.iter().any(publishes) {
            true => self.archive.sync(),
            false => self.archive.flush(),
        };
        handed_over.map_err(failed)?;
        let marks = self.archive.marks();
        self.store.apply_at(changes, &marks).map_err(failed)?;
        self.archive.marked(&marks);
        Ok(())
    }

    fn archive(&mut self, session: SessionId, raw: &mut Raw) -> Result<(), SinkError> {
        let Some(Open { facts, templates }) = self.sessions.get_mut(&session) else {
            return Ok(());
        };
        while let Some((part, octets)) = raw.first() {
            match part {
                Part::Message { received_ms, .. } => {
                    let restate = || restated(templates, *received_ms);
                    self.archive
                        .append(session, facts, *received_ms, octets, restate)
                        .map_err(failed)?;
                }
                Part::Known { domain, layout } => {
                    templates.insert((*domain, layout.kind(), layout.id()), layout.clone());
                }
                Part::Withdrawn { domain, kind, template: Some(template) } => {
                    templates.remove(&(*domain, *kind, *template));
                }
                Part::Withdrawn { domain, kind, template: None } => {
                    let all = (*domain, *kind, u16::MIN)..=(*domain, *kind, u16::MAX);
                    let all: Vec<_> = templates.range(all).map(|(key, _)| *key).collect();
                    for key in all {
                        templates.remove(&key);
                    }
                }
                Part::Note(entry) => self.archive.note(session, *entry).map_err(failed)?,
            }
            raw.take_first();
        }
        Ok(())
    }

    fn tend(&mut self, now_ms: u64) -> Result<(), SinkError> {
        let store = self.store.retain(now_ms).map_err(failed);
        let archive = self.archive.retain(now_ms).map_err(failed);
        let (store, archive) = (store?, archive?);
        let (epochs, readings) = (store.epochs_removed, store.readings_removed);
        if epochs > 0 || readings > 0 || store.sessions_removed > 0 {
            info!(
                "beyond their time or room: {epochs} epochs, {readings} readings and {} sessions \
                 are taken out",
                store.sessions_removed
            );
        }
        if store.pfc_counters_removed > 0 || store.pfc_readings_removed > 0 {
            info!(
                "beyond their time or room: {} PFC counters and {} of their readings are taken out",
                store.pfc_counters_removed, store.pfc_readings_removed
            );
        }
        if store.queue_rows_removed > 0 {
            info!(
                "beyond their time or room: {} rows of queues are taken out",
                store.queue_rows_removed
            );
        }
        if archive.segments_removed > 0 {
            info!(
                "beyond their time or room: {} archive segments of {} octets are taken out",
                archive.segments_removed, archive.octets_removed
            );
        }
        Ok(())
    }
}

/// Messages that define these templates.
fn restated(templates: &Templates, now_ms: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    let Ok(mut encoder) = Encoder::new(MESSAGE_MAX) else { return octets };
    let export_time = u32::try_from(now_ms / 1_000).unwrap_or(u32::MAX);
    for ((domain, ..), layout) in templates {
        let mut writer = encoder.writer(*domain, export_time, &mut octets);
        if let Err(error) = writer.template(layout.spec()) {
            warn!("a template is not restated in the archive: {error}");
        }
        writer.finish();
    }
    octets
}

fn failed(error: StoreError) -> SinkError {
    SinkError { disk_full: error.is_disk_full(), problem: error.to_string() }
}
