//! Records of PFC counters of one Transport Session: from data sets to verdicts (PFC draft, on
//! record identity, export and collection).
//!
//! What a record is, and what lies between two of them, is decided in `observe::pfc`; here the
//! templates of a session find their records, live and when an archive is replayed. Nothing here
//! knows an interval that nobody vouches for: the one thing that is taken for it is the extension
//! `pfcCounterInstanceId`, with the speed of the fastest link that the operator states.

use std::collections::BTreeMap;
use std::fmt;

use observe::pfc::collect::{Counter, Rejection, Session, Verdict};
use observe::pfc::interval::{Interval, Known, Reason};
use observe::pfc::record::{Binding, BindingError, FieldError};
use store::PfcRules;
use wire::element::{DraftElement, Mapping};
use wire::ipfix::{DataSet, Layout, TemplateKind};

use super::refusal::Refusal;

/// The counters of one session, and where their fields stand.
#[derive(Debug)]
pub(crate) struct PfcCounters {
    mapping: Mapping,
    rules: PfcRules,
    bindings: BTreeMap<(u32, TemplateKind, u16), Result<Binding, BindingError>>,
    session: Session,
}

/// What came of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It is the latest reading of the counter at this place.
    Taken(usize),
    /// It is that, and cannot be: its instance is not believed any more.
    Doubted(usize),
    /// It was refused, as it was read before the latest reading of the counter at this place, and
    /// cannot be from then: its instance is not believed any more.
    Contradicts(usize),
    /// It is the latest reading once more.
    Repeated,
    /// It was refused.
    Refused(Refused),
}

/// Why a record was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its template is none of the draft's.
    Template(BindingError),
    /// A field cannot have this value.
    Field(FieldError),
    /// There is no room for another counter.
    Rejected(Rejection),
    /// It was read before the latest one.
    Earlier,
    /// So it was, and cannot have been.
    Contradicts,
}

impl Refused {
    /// The kind under which it is counted.
    pub(crate) const fn refusal(self) -> Refusal {
        match self {
            Self::Template(_) => Refusal::PfcTemplate,
            Self::Field(_) => Refusal::PfcPriority,
            Self::Rejected(Rejection::CountersFull) => Refusal::PfcCountersFull,
            Self::Rejected(Rejection::FurtherTooLong) => Refusal::PfcScopeTooLong,
            Self::Rejected(Rejection::FurtherFull) => Refusal::PfcScopesFull,
            Self::Earlier | Self::Contradicts => Refusal::PfcEarlier,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(error) => error.fmt(f),
            Self::Field(error) => error.fmt(f),
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Earlier => f.write_str("it was read before the latest one"),
            Self::Contradicts => f.write_str(
                "it was read before the latest one and has a total that cannot be from then; its \
                 instance is not believed any more",
            ),
        }
    }
}

impl PfcCounters {
    pub(crate) fn new(mapping: Mapping, rules: PfcRules) -> Self {
        Self { mapping, rules, bindings: BTreeMap::new(), session: Session::new(rules.limits()) }
    }

    /// Takes note of a template. Says why its records will be refused, if they will: templates of
    /// others are let through.
    // PFC-rec.1, PFC-exp.1
    pub(crate) fn bind(&mut self, domain: u32, layout: &Layout) -> Option<BindingError> {
        let key = (domain, layout.kind(), layout.id());
        let binding = Binding::new(layout, &self.mapping);
        let refused = binding.as_ref().err().copied();
        if refused == Some(BindingError::NotPfc) {
            // Under the same id there may have been one of ours.
            self.bindings.remove(&key);
            return None;
        }
        self.bindings.insert(key, binding);
        refused
    }

    /// A template is known no longer, or all of its kind in a domain.
    pub(crate) fn withdraw(&mut self, domain: u32, kind: TemplateKind, template: Option<u16>) {
        match template {
            Some(template) => _ = self.bindings.remove(&(domain, kind, template)),
            None => self.bindings.retain(|(of, a, _), _| (*of, *a) != (domain, kind)),
        }
    }

    /// Nothing is known of templates any more; of one domain, or of all.
    pub(crate) fn forget_templates(&mut self, domain: Option<u32>) {
        match domain {
            Some(domain) => self.bindings.retain(|(of, ..), _| *of != domain),
            None => self.bindings.clear(),
        }
    }

    /// Whether records of a template are readings, or were meant to be.
    pub(crate) fn has(&self, domain: u32, layout: &Layout) -> bool {
        self.bindings.contains_key(&(domain, layout.kind(), layout.id()))
    }

    /// Judges the records of a set, each by itself.
    // PFC-id.1, PFC-id.3, PFC-rec.1, PFC-sem.2
    pub(crate) fn data(&mut self, domain: u32, set: &DataSet<'_>, each: &mut impl FnMut(Judged)) {
        let key = (domain, set.layout.kind(), set.layout.id());
        let Some(binding) = self.bindings.get(&key) else { return };
        for record in set.records.clone() {
            let binding = match binding {
                Ok(binding) => binding,
                Err(error) => {
                    each(Judged::Refused(Refused::Template(*error)));
                    continue;
                }
            };
            let reading = match binding.read(domain, &record) {
                Ok(reading) => reading,
                Err(error) => {
                    each(Judged::Refused(Refused::Field(error)));
                    continue;
                }
            };
            let known = match binding.instance(&record) {
                Some(instance) => instance.known(reading.time_ms, self.rules.pace),
                // PFC-sem.2: the fields of the draft alone say nothing of it.
                None => Known::default(),
            };
            let (at, verdict) = self.session.receive_at(reading, binding.further(&record), known);
            each(match (at, verdict) {
                (Some(at), Verdict::Follows(Interval::Unknown(Reason::TooMany))) => {
                    Judged::Doubted(at)
                }
                (Some(at), Verdict::Contradicts) => Judged::Contradicts(at),
                (Some(at), Verdict::First | Verdict::Follows(_)) => Judged::Taken(at),
                (None, Verdict::First | Verdict::Follows(_)) | (_, Verdict::Repeated) => {
                    Judged::Repeated
                }
                (_, Verdict::Earlier) => Judged::Refused(Refused::Earlier),
                // No counter is without its place.
                (None, Verdict::Contradicts) => Judged::Refused(Refused::Contradicts),
                (_, Verdict::Rejected(rejection)) => Judged::Refused(Refused::Rejected(rejection)),
            });
        }
    }

    /// Says for how many counters there is room from here on, as far as other sessions leave it.
    pub(crate) fn bound(&mut self, counters_max: usize) {
        self.session.bound_counters(counters_max.min(self.rules.counters_max));
    }

    /// The counters, each at its place.
    pub(crate) fn counters(&self) -> &[Counter] {
        self.session.counters()
    }
}

/// Whether a layout has the total of PFC frames, whatever else it is.
pub(crate) fn is_meant(layout: &Layout, mapping: &Mapping) -> bool {
    layout.slot(mapping.id(DraftElement::PfcControlFrameTotalCount)).is_some()
}
