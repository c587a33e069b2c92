//! Messages to events: the collecting side of one Transport Session (RFC 7011, sections 8 and 9).
//!
//! A message is looked through twice. The first look changes nothing: it checks every length and
//! works out what each Template Set will do. If a length makes no sense, the message is discarded
//! and the state is as before (RFC 7011, section 9.1). The second look applies the sets in wire
//! order and shows each to the visitor. So a message counts whole or not at all, and one refused
//! record takes nothing else with it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::message::{MESSAGE_HEADER_LEN, SET_HEADER_LEN, u16_at};
use super::record::Records;
use super::table::{Change, Domain, Pending, Standing};
use super::template::{TEMPLATE_ID_MIN, TemplateRecord, TemplateRecords};
use super::{Error, Fault, Layout, MessageHeader, TemplateKind, type_information};
use crate::element::{Element, LEARNED_MAX, Mapping, Registry};

/// What a Transport Session runs over, which decides what a second definition of a Template ID
/// means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TCP, TLS or SCTP. A template is withdrawn before its ID has another meaning (RFC 7011,
    /// section 8.1); where it is not, the ID's data are ambiguous and stay undecoded.
    #[default]
    Stream,
    /// UDP or DTLS. A new definition replaces the old one; withdrawals are ignored (RFC 7011,
    /// section 8.4).
    Datagram,
    /// A file: a new definition replaces the old one as over UDP, and withdrawals are honoured as
    /// over TCP, since a file may hold what came over either (RFC 5655, section 7.2).
    File,
}

/// Bounds of what one session may make us keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Templates and Options Templates, over all domains.
    pub templates_max: usize,
    /// Fields of one template.
    pub fields_max: usize,
    /// Observation Domains.
    pub domains_max: usize,
    /// Elements learned from type records.
    pub learned_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { templates_max: 4096, fields_max: 1024, domains_max: 256, learned_max: LEARNED_MAX }
    }
}

/// Data Records that did not arrive, or arrived twice: the difference is not known to be either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceGap {
    /// The sequence number that would have followed.
    pub expected: u32,
    /// The one in the message.
    pub found: u32,
}

/// The records of one Data Set, and what is needed to read them.
#[derive(Clone, Debug)]
pub struct DataSet<'a> {
    /// The layout of the records.
    pub layout: &'a Arc<Layout>,
    /// The elements as the session knows them before this set.
    pub registry: &'a Registry,
    /// Offset of the set's first record in the message.
    pub at: usize,
    /// The records.
    pub records: Records<'a>,
}

/// What happened, in wire order.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The message does not follow the one before it in its domain. Comes before all others. Never
    /// told after data that could not be decoded, whose records cannot be counted.
    SequenceGap(SequenceGap),
    /// A template is known from here on.
    Template {
        /// Compiled.
        layout: &'a Arc<Layout>,
        /// Whether the same template was known already.
        repeated: bool,
    },
    /// A template is withdrawn; its ID is free.
    Withdrawn {
        /// Of which kind.
        kind: TemplateKind,
        /// Its Template ID.
        template: u16,
    },
    /// All templates of a kind in the message's domain are withdrawn.
    AllWithdrawn {
        /// The kind.
        kind: TemplateKind,
    },
    /// Data Records.
    Data(DataSet<'a>),
    /// A Data Set whose template is not known, or ambiguous.
    UndecodableData {
        /// Its Template ID.
        template: u16,
        /// Offset of the octets in the message.
        at: usize,
        /// The set without its header.
        octets: &'a [u8],
    },
    /// A set with an ID that has no meaning yet: 0, 1, 4 to 255.
    UnknownSet {
        /// Its ID.
        id: u16,
        /// Offset of the octets in the message.
        at: usize,
        /// The set without its header.
        octets: &'a [u8],
    },
    /// An element is known from here on, by a type record of the set before.
    TypeInformation(&'a Element),
    /// Something was refused or ignored, and reading went on.
    Fault {
        /// Where in the message.
        at: usize,
        /// What.
        fault: Fault,
    },
}

/// The collecting side of one Transport Session.
#[derive(Clone, Debug)]
pub struct Decoder {
    transport: Transport,
    limits: Limits,
    registry: Registry,
    domains: BTreeMap<u32, Domain>,
    /// Templates in all domains.
    templates: usize,
}

/// What the first look at a message found.
struct Plan {
    /// What each record of each Template Set will do, with its offset.
    changes: Vec<(usize, Change)>,
    /// Data Records; none where there are data that cannot be counted.
    records: Option<u32>,
}

impl Decoder {
    /// A session about which nothing is known yet.
    #[must_use]
    pub fn new(transport: Transport, mapping: Mapping, limits: Limits) -> Self {
        Self {
            transport,
            limits,
            registry: Registry::with_limit(mapping, limits.learned_max),
            domains: BTreeMap::new(),
            templates: 0,
        }
    }

    /// The elements as the session knows them now.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The layout that a Template ID has now in a domain.
    #[must_use]
    pub fn layout(&self, domain: u32, template: u16) -> Option<&Arc<Layout>> {
        self.domains.get(&domain)?.layout(template)
    }

    /// How many templates are known, over all domains.
    #[must_use]
    pub const fn templates(&self) -> usize {
        self.templates
    }

    /// Forgets all templates of a domain, and where its sequence numbers stand: for a reader that does
    /// not see its messages for a while, in which the templates may change. Data that follow cannot
    /// be read before they are told of anew.
    pub fn forget(&mut self, domain: u32) {
        self.take(domain);
    }

    /// As [`Decoder::forget`], and another session knows them instead, where it has room.
    pub fn hand_over(&mut self, domain: u32, to: &mut Self) {
        let Some(known) = self.take(domain) else { return };
        let room = to.domains.len() < to.limits.domains_max
            && to.templates + known.len() <= to.limits.templates_max;
        if room && !to.domains.contains_key(&domain) {
            to.templates += known.len();
            to.domains.insert(domain, known);
        }
    }

    fn take(&mut self, domain: u32) -> Option<Domain> {
        let known = self.domains.remove(&domain)?;
        self.templates -= known.len();
        Some(known)
    }

    /// Reads one whole message, no more and no less ([`frame`](super::frame) finds it), and shows
    /// what is in it in wire order. Allocates for templates and learned elements only.
    ///
    /// # Errors
    /// [`Error`]: the message is discarded, the visitor was not called, and the state is as before.
    pub fn message(
        &mut self,
        octets: &[u8],
        visit: &mut impl FnMut(Event<'_>),
    ) -> Result<MessageHeader, Error> {
        let header = MessageHeader::read(octets)?;
        let expected = usize::from(header.length);
        if octets.len() != expected {
            return Err(Error::NotOneMessage { expected, found: octets.len() });
        }
        let plan = self.plan(&header, octets)?;
        self.apply(&header, octets, plan, visit);
        Ok(header)
    }

    fn plan(&self, header: &MessageHeader, octets: &[u8]) -> Result<Plan, Error> {
        let domain = self.domains.get(&header.domain);
        if domain.is_none() && self.domains.len() >= self.limits.domains_max {
            return Err(Error::Domains { domain: header.domain, max: self.limits.domains_max });
        }
        let mut pending = Pending::new(domain, self.templates, self.limits.templates_max);
        let mut plan = Plan { changes: Vec::new(), records: Some(0) };
        let mut sets = Sets { octets, at: MESSAGE_HEADER_LEN };
        while let Some(set) = sets.next()? {
            if let Some(kind) = set.templates() {
                self.plan_templates(&set, kind, &mut pending, &mut plan)?;
            } else if set.id >= TEMPLATE_ID_MIN {
                let count =
                    match pending.layout(set.id) {
                        Some(layout) => Some(layout.count(set.octets).map_err(|pos| {
                            Error::ValueLong { at: set.at + pos, template: set.id }
                        })?),
                        None => None,
                    };
                // A message has fewer than 2^16 octets and so fewer records.
                plan.records = plan.records.zip(count).map(|(a, b)| a + b);
            }
        }
        Ok(plan)
    }

    fn plan_templates(
        &self,
        set: &Set<'_>,
        kind: TemplateKind,
        pending: &mut Pending<'_>,
        plan: &mut Plan,
    ) -> Result<(), Error> {
        let mut records = TemplateRecords::new(set.octets, set.at, kind, self.limits.fields_max);
        while let Some((at, record)) = records.next()? {
            let change = match record {
                TemplateRecord::Define(spec) => match Layout::compile(spec, &self.registry) {
                    Ok(layout) => pending.define(layout, self.transport),
                    Err(fault) => Change::Fault(fault),
                },
                TemplateRecord::Withdraw(template) => {
                    pending.withdraw(kind, template, self.transport)
                }
                TemplateRecord::WithdrawAll => pending.withdraw_all(kind, self.transport),
                TemplateRecord::Refused(fault) | TemplateRecord::RefusedToEnd(fault) => {
                    Change::Fault(fault)
                }
            };
            plan.changes.push((at, change));
        }
        Ok(())
    }

    fn apply(
        &mut self,
        header: &MessageHeader,
        octets: &[u8],
        plan: Plan,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        let Self { domains, registry, templates, .. } = self;
        let domain = domains.entry(header.domain).or_default();
        if let Some(expected) = domain.expected
            && expected != header.sequence
        {
            visit(Event::SequenceGap(SequenceGap { expected, found: header.sequence }));
        }
        domain.expected = plan.records.map(|n| header.sequence.wrapping_add(n));

        let mut changes = plan.changes.into_iter().peekable();
        let mut sets = Sets { octets, at: MESSAGE_HEADER_LEN };
        while let Ok(Some(set)) = sets.next() {
            let Set { id, at, octets } = set;
            if set.templates().is_some() {
                while let Some((at, change)) = changes.next_if(|(pos, _)| *pos < at + octets.len())
                {
                    change.apply(domain, templates, at, visit);
                }
            } else if id < TEMPLATE_ID_MIN {
                visit(Event::UnknownSet { id, at, octets });
            } else if let Some(layout) = domain.layout(id) {
                let records = layout.records(octets);
                visit(Event::Data(DataSet { layout, registry, at, records: records.clone() }));
                if layout.is_type_information() {
                    learn(registry, records, at, visit);
                }
            } else {
                visit(Event::UndecodableData { template: id, at, octets });
            }
        }
    }
}

/// Takes in the type records of one set.
fn learn(
    registry: &mut Registry,
    records: Records<'_>,
    mut at: usize,
    visit: &mut impl FnMut(Event<'_>),
) {
    for record in records {
        let learned = type_information::read(&record).and_then(|element| {
            let id = element.id;
            registry.learn(element).map(|new| new.then_some(id)).map_err(Fault::NotLearned)
        });
        match learned {
            Ok(Some(id)) => {
                if let Some(element) = registry.get(id) {
                    visit(Event::TypeInformation(element));
                }
            }
            Ok(None) => {}
            Err(fault) => visit(Event::Fault { at, fault }),
        }
        at += record.as_octets().len();
    }
}

impl Change {
    /// Makes the change and shows it.
    fn apply(
        self,
        domain: &mut Domain,
        templates: &mut usize,
        at: usize,
        visit: &mut impl FnMut(Event<'_>),
    ) {
        match self {
            Self::Define { layout, repeated } => {
                let (id, kind) = (layout.id(), layout.kind());
                if !repeated {
                    *templates += usize::from(domain.set(kind, id, Standing::Known(layout)));
                }
                if let Some(layout) = domain.layout(id) {
                    visit(Event::Template { layout, repeated });
                }
            }
            Self::Replace { before, layout } => {
                *templates -= domain.remove(before, layout.id());
                Self::Define { layout, repeated: false }.apply(domain, templates, at, visit);
            }
            Self::Ambiguous { kind, template } => {
                domain.set(kind, template, Standing::Ambiguous);
                visit(Event::Fault { at, fault: Fault::Redefined { template } });
            }
            Self::Withdraw { kind, template } => {
                *templates -= domain.remove(kind, template);
                visit(Event::Withdrawn { kind, template });
            }
            Self::WithdrawAll { kind } => {
                *templates -= domain.clear(kind);
                visit(Event::AllWithdrawn { kind });
            }
            Self::Fault(fault) => visit(Event::Fault { at, fault }),
        }
    }
}

/// One set of a message.
struct Set<'a> {
    id: u16,
    /// Offset of `octets` in the message.
    at: usize,
    /// Without the header.
    octets: &'a [u8],
}

impl Set<'_> {
    /// What it defines, if it is a Template Set or an Options Template Set.
    const fn templates(&self) -> Option<TemplateKind> {
        match self.id {
            2 => Some(TemplateKind::Template),
            3 => Some(TemplateKind::Options),
            _ => None,
        }
    }
}

/// The sets of a message, one call each.
struct Sets<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Sets<'a> {
    fn next(&mut self) -> Result<Option<Set<'a>>, Error> {
        let at = self.at;
        let left = self.octets.len() - at;
        if left == 0 {
            return Ok(None);
        }
        if left < SET_HEADER_LEN {
            return Err(Error::Tail { at, found: left });
        }
        let found = u16_at(self.octets, at + 2);
        let length = usize::from(found);
        if length < SET_HEADER_LEN {
            return Err(Error::SetShort { at, found });
        }
        if length > left {
            return Err(Error::SetLong { at, found, left });
        }
        self.at += length;
        Ok(Some(Set {
            id: u16_at(self.octets, at),
            at: at + SET_HEADER_LEN,
            octets: &self.octets[at + SET_HEADER_LEN..at + length],
        }))
    }
}
