//! One Transport Session judged anew: its messages find their way to `observe`, which decides.

use std::collections::{BTreeMap, BTreeSet};

use observe::collect::{Retired, Session, Verdict};
use observe::profile::{Binding, BindingError};
use store::Rules;
use wire::ipfix::{DataSet, Decoder, Event, MessageHeader, TemplateKind, Transport};

use crate::collector::pfc::{Judged, PfcCounters};

/// What came of the records of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) messages: u64,
    pub(super) discarded: u64,
    pub(super) accepted: u64,
    pub(super) repeated: u64,
    pub(super) refused: u64,
    pub(super) pfc_accepted: u64,
    pub(super) pfc_repeated: u64,
}

/// A session under its rules.
pub(super) struct Judge {
    rules: Rules,
    decoder: Decoder,
    reports: Reports,
}

/// What a record reaches, apart from the decoder that finds it.
struct Reports {
    rules: Rules,
    /// Where the fields stand in the templates of each domain.
    bindings: BTreeMap<(u32, u16), Result<Binding, BindingError>>,
    session: Session,
    pfc: PfcCounters,
    counts: Counts,
}

impl Judge {
    pub(super) fn new(rules: Rules, seed: u64) -> Self {
        Self {
            decoder: decoder(&rules),
            reports: Reports {
                bindings: BTreeMap::new(),
                session: Session::new(rules.epochs, seed),
                pfc: PfcCounters::new(rules.mapping, rules.pfc),
                counts: Counts::default(),
                rules: rules.clone(),
            },
            rules,
        }
    }

    /// What comes next need not follow on what was read: nothing is known of templates any more.
    pub(super) fn forget_templates(&mut self) {
        self.decoder = decoder(&self.rules);
        self.reports.bindings.clear();
        self.reports.pfc.forget_templates(None);
    }

    /// Takes a message that was received at a time.
    pub(super) fn message(&mut self, octets: &[u8], received_ms: u64) {
        let Self { rules, decoder, reports } = self;
        reports.counts.messages += 1;
        let Ok(MessageHeader { domain, .. }) = MessageHeader::read(octets) else {
            reports.counts.discarded += 1;
            return;
        };
        // SEQ-10.3: nothing of a domain that is not the peer's is read.
        if !rules.admits(domain) {
            reports.counts.discarded += 1;
            return;
        }
        let visit = &mut |event: Event<'_>| reports.event(domain, &event, received_ms);
        if decoder.message(octets, visit).is_err() {
            reports.counts.discarded += 1;
        }
    }

    /// Takes a message that was not received, and only restates templates.
    pub(super) fn restated(&mut self, octets: &[u8]) {
        let Self { decoder, reports, .. } = self;
        let Ok(MessageHeader { domain, .. }) = MessageHeader::read(octets) else { return };
        let visit = &mut |event: Event<'_>| {
            if !matches!(event, Event::Data(_)) {
                reports.event(domain, &event, 0);
            }
        };
        // What cannot be read restates nothing, and its data then stay undecoded.
        _ = decoder.message(octets, visit);
    }

    /// Retires the epochs whose time was over.
    // SEQ-7.13
    pub(super) fn advance(&mut self, now_ms: u64, out: &mut Vec<Retired>) {
        self.reports.session.retire(now_ms, &mut |retired| out.push(retired));
    }

    // SEQ-7.15
    pub(super) fn dropped(&mut self, domain: u32) {
        self.reports.session.dropped(domain);
    }

    // SEQ-7.10
    pub(super) fn bound(&mut self, epochs: u64) {
        self.reports.session.bound_epochs(usize::try_from(epochs).unwrap_or(usize::MAX));
    }

    // SEQ-7.10
    pub(super) fn bound_pfc(&mut self, counters: u64) {
        self.reports.pfc.bound(usize::try_from(counters).unwrap_or(usize::MAX));
    }

    pub(super) fn admit(&mut self, domain: u32) {
        if let Some(domains) = &mut self.rules.domains {
            let mut all: BTreeSet<_> = std::mem::take(domains).into_iter().collect();
            all.insert(domain);
            *domains = all.into_iter().collect();
        }
    }

    pub(super) fn expel(&mut self, domain: u32) {
        if let Some(domains) = &mut self.rules.domains {
            domains.retain(|other| *other != domain);
        }
        // Nothing of the domain is in the archive until it is admitted again.
        self.decoder.forget(domain);
        self.reports.bindings.retain(|(other, _), _| *other != domain);
        self.reports.pfc.forget_templates(Some(domain));
    }

    /// What came of it until now.
    pub(super) fn counts(&self) -> Counts {
        self.reports.counts
    }

    /// The session has ended.
    // SEQ-7.13
    pub(super) fn end(self, out: &mut Vec<Retired>) -> (Counts, PfcCounters) {
        self.reports.session.end(&mut |retired| out.push(retired));
        (self.reports.counts, self.reports.pfc)
    }
}

fn decoder(rules: &Rules) -> Decoder {
    Decoder::new(Transport::Stream, rules.mapping, rules.decoder)
}

impl Reports {
    fn event(&mut self, domain: u32, event: &Event<'_>, received_ms: u64) {
        match event {
            // SEQ-7.1
            Event::Template { layout, .. } => {
                let binding = Binding::new(layout, &self.rules.mapping, self.rules.lengths);
                // PFC-rec.1, PFC-exp.1
                if let Err(BindingError::NotProfile | BindingError::Options) = binding {
                    _ = self.pfc.bind(domain, layout);
                }
                self.bindings.insert((domain, layout.id()), binding);
            }
            Event::Withdrawn { kind, template } => {
                self.bindings.remove(&(domain, *template));
                self.pfc.withdraw(domain, *kind, Some(*template));
            }
            Event::AllWithdrawn { kind } => self.pfc.withdraw(domain, *kind, None),
            Event::Data(set) if self.is_pfc(domain, set) => self.pfc_data(domain, set),
            Event::Data(set) if set.layout.kind() == TemplateKind::Template => {
                self.data(domain, set, received_ms);
            }
            // Data whose template is not known any more are not shown as data, so what is bound
            // to it is never asked for.
            _ => {}
        }
    }

    /// Whether a set has readings of PFC counters; a template of reports has only reports.
    fn is_pfc(&self, domain: u32, set: &DataSet<'_>) -> bool {
        let of_reports = set.layout.kind() == TemplateKind::Template
            && matches!(self.bindings.get(&(domain, set.layout.id())), Some(Ok(_)));
        !of_reports && self.pfc.has(domain, set.layout)
    }

    // PFC-id.3, PFC-rec.1, PFC-sem.2
    fn pfc_data(&mut self, domain: u32, set: &DataSet<'_>) {
        let Self { pfc, counts, .. } = self;
        pfc.data(domain, set, &mut |judged| match judged {
            Judged::Taken(_) | Judged::Doubted(_) => counts.pfc_accepted += 1,
            Judged::Repeated => counts.pfc_repeated += 1,
            Judged::Refused(_) | Judged::Contradicts(_) => counts.refused += 1,
        });
    }

    fn data(&mut self, domain: u32, set: &DataSet<'_>, received_ms: u64) {
        let Self { bindings, session, counts, .. } = self;
        match bindings.get(&(domain, set.layout.id())) {
            Some(Ok(binding)) => {
                for record in set.records.clone() {
                    let verdict = binding.read(&record).map(|(point, report)| {
                        session.receive(domain, point, &report, received_ms)
                    });
                    match verdict {
                        Ok(Verdict::Accepted { .. }) => counts.accepted += 1,
                        Ok(Verdict::Repeated) => counts.repeated += 1,
                        _ => counts.refused += 1,
                    }
                }
            }
            Some(Err(BindingError::NotProfile | BindingError::Options)) | None => {}
            Some(Err(_)) => {
                counts.refused += u64::try_from(set.records.clone().count()).unwrap_or(u64::MAX);
            }
        }
    }
}
