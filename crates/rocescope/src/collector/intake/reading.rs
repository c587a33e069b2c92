//! Records of one Transport Session on their way to who judges them: reports to
//! [`observe::collect`], readings of PFC counters to [`PfcCounters`], and everything else to a count.

use std::collections::{BTreeMap, BTreeSet};

use observe::collect::{Session, Verdict};
use observe::pfc::collect::Doubt;
use observe::profile::{Binding, BindingError, Lengths};
use observe::report::Report;
use wire::element::Mapping;
use wire::ipfix::{DataSet, Event, Fault, Layout, TemplateKind};

use super::{Bounds, Counts, DOMAINS_BEYOND, Taken};
use crate::collector::pfc::{Judged, PfcCounters, Refused};
use crate::collector::raw::Part;
use crate::collector::refusal::Refusal;
use crate::collector::sink::{Change, EpochState, PfcState, SessionId};

/// What is reached from a record, apart from the decoder that finds it.
#[derive(Debug)]
pub(super) struct Reading {
    id: SessionId,
    mapping: Mapping,
    pub(super) bindings:
        BTreeMap<(u32, TemplateKind), BTreeMap<u16, Result<Binding, BindingError>>>,
    pub(super) session: Session,
    pub(super) counts: Counts,
    /// The reports of one set, kept for its room.
    reports: Vec<(u64, Report)>,
    /// Epochs that reports in these octets changed.
    touched: Vec<(u32, u64)>,
    pub(super) pfc: PfcCounters,
    /// PFC counters of which these octets had a reading.
    pfc_touched: Vec<usize>,
    /// Refused in these octets.
    refused: BTreeMap<(u32, Refusal), u64>,
    /// The domains under which something was refused, and how many of them there may be.
    refused_domains: BTreeSet<u32>,
    refused_domains_max: usize,
    /// The sorts of notes that were made.
    told: BTreeSet<&'static str>,
    /// Templates that would be of the profile under another enterprise number, and that number.
    elsewhere: BTreeMap<(u32, u16), u32>,
    /// The records of each such number.
    pub(super) records_elsewhere: BTreeMap<u32, u64>,
}

impl Reading {
    pub(super) fn new(id: SessionId, mapping: Mapping, bounds: &Bounds, seed: u64) -> Self {
        Self {
            id,
            mapping,
            bindings: BTreeMap::new(),
            session: Session::new(bounds.session, seed),
            counts: Counts::default(),
            reports: Vec::new(),
            touched: Vec::new(),
            pfc: PfcCounters::new(mapping, bounds.pfc),
            pfc_touched: Vec::new(),
            refused: BTreeMap::new(),
            refused_domains: BTreeSet::new(),
            refused_domains_max: bounds.session.domains_max.saturating_mul(2),
            told: BTreeSet::new(),
            elsewhere: BTreeMap::new(),
            records_elsewhere: BTreeMap::new(),
        }
    }

    pub(super) fn event(&mut self, domain: u32, event: Event<'_>, now_ms: u64, out: &mut Taken) {
        match event {
            Event::SequenceGap(gap) => {
                self.counts.sequence_gaps += 1;
                self.tell(out, "sequence", || {
                    format!(
                        "message sequence number {} in observation domain {domain}, expected {}",
                        gap.found, gap.expected
                    )
                });
            }
            Event::Template { layout, repeated: false } => {
                self.bind(domain, layout, out);
                out.raw.push(Part::Known { domain, layout: layout.clone() });
            }
            Event::Withdrawn { kind, template } => {
                if let Some(bindings) = self.bindings.get_mut(&(domain, kind)) {
                    bindings.remove(&template);
                }
                self.pfc.withdraw(domain, kind, Some(template));
                out.raw.push(Part::Withdrawn { domain, kind, template: Some(template) });
            }
            Event::AllWithdrawn { kind } => {
                self.bindings.remove(&(domain, kind));
                self.pfc.withdraw(domain, kind, None);
                out.raw.push(Part::Withdrawn { domain, kind, template: None });
            }
            Event::Data(set) => self.data(domain, set, now_ms, out),
            Event::UndecodableData { template, .. } => {
                self.counts.undecodable_sets += 1;
                self.tell(out, "undecodable", || {
                    format!("data of template {template}, which is not known, are not decoded")
                });
            }
            Event::UnknownSet { id, .. } => {
                self.counts.unknown_sets += 1;
                self.tell(out, "set", || format!("a set with id {id}, which has no meaning"));
            }
            Event::Fault { fault, .. } => {
                if let Fault::Redefined { template } = fault {
                    // Ambiguous: whatever it was, it is not restated.
                    for kind in [TemplateKind::Template, TemplateKind::Options] {
                        out.raw.push(Part::Withdrawn { domain, kind, template: Some(template) });
                    }
                }
                self.counts.template_faults += 1;
                self.tell(out, "fault", || fault.to_string());
            }
            Event::Template { .. } | Event::TypeInformation(_) => {}
        }
    }

    // SEQ-7.1
    fn bind(&mut self, domain: u32, layout: &Layout, out: &mut Taken) {
        let binding = Binding::new(layout, &self.mapping, Lengths::Full);
        if let Err(error) = &binding
            && !is_other(error)
        {
            let template = layout.id();
            self.tell(out, "template", || {
                format!("template {template}: {error}; its records are refused")
            });
        }
        // PFC-rec.1: what has the profile's elements beside is the profile's.
        let refused = match &binding {
            Err(error) if is_other(error) => self.pfc.bind(domain, layout),
            _ => None,
        };
        if let Some(error) = refused {
            let template = layout.id();
            self.tell(out, "pfcTemplate", || {
                format!("template {template}: {error}; its PFC records are refused")
            });
        }
        match other_number(layout, &self.mapping) {
            Some(pen) => {
                self.elsewhere.insert((domain, layout.id()), pen);
                let own = self.mapping.pen();
                self.tell(out, "pen", || {
                    format!(
                        "template {} is of the profile under enterprise number {pen}, expected \
                         {} (elements.pen); its records are let through as somebody else's",
                        layout.id(),
                        own
                    )
                });
            }
            None => _ = self.elsewhere.remove(&(domain, layout.id())),
        }
        self.bindings.entry((domain, layout.kind())).or_default().insert(layout.id(), binding);
    }

    fn data(&mut self, domain: u32, set: DataSet<'_>, now_ms: u64, out: &mut Taken) {
        let bindings = self.bindings.get(&(domain, set.layout.kind()));
        let binding = match bindings.and_then(|bindings| bindings.get(&set.layout.id())) {
            Some(Ok(binding)) => binding,
            Some(Err(error)) if !is_other(error) => {
                return self.refuse(domain, Refusal::Template, set.records.count() as u64);
            }
            _ if self.pfc.has(domain, set.layout) => return self.pfc_data(domain, &set, out),
            _ => {
                let (template, records) = (set.layout.id(), set.records.count() as u64);
                self.counts.others += records;
                if let Some(pen) = self.elsewhere.get(&(domain, template)) {
                    *self.records_elsewhere.entry(*pen).or_default() += records;
                }
                return;
            }
        };
        let mut reports = std::mem::take(&mut self.reports);
        let (mut unread, mut first_error) = (0, None);
        for record in set.records {
            match binding.read(&record) {
                Ok(report) => reports.push(report),
                Err(error) => {
                    unread += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        self.refuse(domain, Refusal::Field, unread);
        if let Some(error) = first_error {
            self.tell(out, Refusal::Field.word(), || format!("a record is refused: {error}"));
        }
        self.judge(domain, &reports, now_ms, out);
        reports.clear();
        self.reports = reports;
    }

    /// Judges the reports of one set together: they are looked up faster.
    fn judge(&mut self, domain: u32, reports: &[(u64, Report)], now_ms: u64, out: &mut Taken) {
        let Self { session, counts, touched, .. } = self;
        let mut refused = Vec::new();
        session.receive_all(domain, reports, now_ms, &mut |(_, report), verdict| {
            match verdict {
                Verdict::Accepted { .. } => counts.accepted += 1,
                Verdict::Repeated => counts.repeated += 1,
                _ => {}
            }
            if let Verdict::Accepted { .. } | Verdict::Invalidated(_) = verdict {
                touched.push((domain, report.epoch_id));
            }
            if let Some(refusal) = Refusal::of(&verdict) {
                refused.push((refusal, verdict, report.epoch_id, report.report_id));
            }
        });
        for (refusal, verdict, epoch, id) in refused {
            self.refuse(domain, refusal, 1);
            self.tell(out, refusal.word(), || {
                let why = match verdict {
                    Verdict::Rejected(rejection) => rejection.to_string(),
                    Verdict::Invalidated(contradiction) => contradiction.to_string(),
                    _ => "older than the latest".into(),
                };
                format!("report {id} of epoch {epoch} is refused: {why}")
            });
        }
    }

    // PFC-id.3, PFC-rec.1, PFC-exp.1
    fn pfc_data(&mut self, domain: u32, set: &DataSet<'_>, out: &mut Taken) {
        let Self { pfc, counts, pfc_touched, .. } = self;
        let mut refused = BTreeMap::new();
        let mut doubted = Vec::new();
        pfc.data(domain, set, &mut |judged| match judged {
            Judged::Taken(at) => {
                counts.pfc_accepted += 1;
                pfc_touched.push(at);
            }
            Judged::Doubted(at) => {
                counts.pfc_accepted += 1;
                pfc_touched.push(at);
                doubted.push((at, false));
            }
            Judged::Contradicts(at) => {
                let why = Refused::Contradicts;
                let (records, said) = refused.entry(why.refusal()).or_insert((0, why));
                *records += 1;
                *said = why;
                doubted.push((at, true));
            }
            Judged::Repeated => counts.pfc_repeated += 1,
            Judged::Refused(why) => {
                refused.entry(why.refusal()).or_insert((0, why)).0 += 1;
            }
        });
        for (refusal, (records, why)) in refused {
            self.refuse(domain, refusal, records);
            self.tell(out, refusal.word(), || format!("a PFC record is refused: {why}"));
        }
        for (at, latest) in doubted {
            self.doubt(at, latest, out);
        }
    }

    /// Says of which instances of a PFC counter something did not hold: the one, or all once there
    /// were two.
    // PFC-sem.2
    fn doubt(&self, at: usize, latest: bool, out: &mut Taken) {
        let Some(counter) = self.pfc.counters().get(at) else { return };
        let instance = match counter.doubted {
            Doubt::Nothing => return,
            Doubt::Instance(instance) => Some(instance),
            Doubt::Every => None,
        };
        let (session, number) = (self.id, at as u64);
        out.changes.push(Change::PfcDoubted { session, number, instance, latest });
    }

    /// Hands out how the PFC counters stand of which there was a reading: each once.
    // PFC-op.1: of the others nothing is said.
    pub(super) fn pfc_states(&mut self, now_ms: u64, out: &mut Taken) {
        self.pfc_touched.sort_unstable();
        self.pfc_touched.dedup();
        for at in self.pfc_touched.drain(..) {
            let Some(counter) = self.pfc.counters().get(at) else { continue };
            let state = PfcState {
                session: self.id,
                number: at as u64,
                counter: counter.clone(),
                received_ms: now_ms,
            };
            out.changes.push(Change::Pfc(Box::new(state)));
        }
    }

    /// Hands out how the epochs stand that reports changed: each once, whatever came of it between.
    pub(super) fn states(&mut self, now_ms: u64, out: &mut Taken) {
        self.touched.sort_unstable();
        self.touched.dedup();
        for (domain, epoch_id) in self.touched.drain(..) {
            let Some(epoch) = self.session.epoch(domain, epoch_id) else { continue };
            let (session, epoch) = (self.id, epoch.clone());
            let outcome = epoch.outcome();
            let state = EpochState { session, domain, epoch, outcome, updated_ms: now_ms };
            out.changes.push(Change::Epoch(Box::new(state)));
        }
    }

    pub(super) fn refuse(&mut self, domain: u32, refusal: Refusal, records: u64) {
        self.counts.refused[refusal.index()] += records;
        if records == 0 {
            return;
        }
        // SEQ-7.10: domains are easily made up. Beyond as many as the peer's own may be, and as many
        // others, they are counted together.
        let full = self.refused_domains.len() >= self.refused_domains_max;
        let counted = if !full || self.refused_domains.contains(&domain) {
            self.refused_domains.insert(domain);
            domain
        } else {
            DOMAINS_BEYOND
        };
        *self.refused.entry((counted, refusal)).or_default() += records;
    }

    /// Hands out what was refused.
    // SEQ-7.15
    pub(super) fn refusals(&mut self, out: &mut Taken) {
        while let Some(((domain, refusal), records)) = self.refused.pop_first() {
            let (session, kind) = (self.id, refusal.word().into());
            out.changes.push(Change::Refused { session, domain, kind, records });
        }
    }

    /// Makes a note of the first of a sort: a peer that sends many must not fill the log.
    pub(super) fn tell(
        &mut self,
        out: &mut Taken,
        sort: &'static str,
        note: impl FnOnce() -> String,
    ) {
        if self.told.insert(sort) {
            out.notes.push(note());
        }
    }
}

/// The enterprise number under which a template of somebody else would be of the profile: that of
/// the exporter, where it is configured with another one than the collector.
fn other_number(layout: &Layout, own: &Mapping) -> Option<u32> {
    let numbers: BTreeSet<u32> = layout.fields().iter().map(|field| field.id.pen).collect();
    let others = numbers.into_iter().filter(|pen| *pen != 0 && *pen != own.pen());
    others.take(OTHER_NUMBERS_MAX).find(|pen| {
        let mapping = Mapping::new(*pen);
        mapping.is_ok_and(|mapping| Binding::new(layout, &mapping, Lengths::Full).is_ok())
    })
}

/// Enterprise numbers of one template that are tried.
const OTHER_NUMBERS_MAX: usize = 4;

/// Whether a template is none of the profile's business.
fn is_other(error: &BindingError) -> bool {
    matches!(error, BindingError::NotProfile | BindingError::Options)
}
