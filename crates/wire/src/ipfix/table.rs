//! The templates of one Observation Domain, and what a message that is not applied yet would make
//! of them (RFC 7011, section 8).

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::{Fault, Layout, TemplateKind, Transport};

/// What is known of a Template ID.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    Known(Arc<Layout>),
    /// Defined in two ways without a withdrawal between.
    Ambiguous,
}

/// One Observation Domain of a session. Templates and Options Templates share the IDs, and no ID
/// stands in both tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Domain {
    /// The sequence number that the next message should have, where that can be told.
    pub(super) expected: Option<u32>,
    tables: [BTreeMap<u16, Standing>; 2],
}

/// What one record of a Template Set does.
pub(super) enum Change {
    Define {
        layout: Arc<Layout>,
        repeated: bool,
    },
    /// A definition in place of one that may be of the other kind.
    Replace {
        before: TemplateKind,
        layout: Arc<Layout>,
    },
    Ambiguous {
        kind: TemplateKind,
        template: u16,
    },
    Withdraw {
        kind: TemplateKind,
        template: u16,
    },
    WithdrawAll {
        kind: TemplateKind,
    },
    Fault(Fault),
}

const KINDS: [TemplateKind; 2] = [TemplateKind::Template, TemplateKind::Options];

const fn index(kind: TemplateKind) -> usize {
    match kind {
        TemplateKind::Template => 0,
        TemplateKind::Options => 1,
    }
}

impl Domain {
    pub(super) fn layout(&self, template: u16) -> Option<&Arc<Layout>> {
        KINDS.iter().find_map(|kind| match self.tables[index(*kind)].get(&template) {
            Some(Standing::Known(layout)) => Some(layout),
            _ => None,
        })
    }

    /// How many templates there are.
    pub(super) fn len(&self) -> usize {
        self.tables.iter().map(BTreeMap::len).sum()
    }

    /// Says whether there is one more now.
    pub(super) fn set(&mut self, kind: TemplateKind, template: u16, standing: Standing) -> bool {
        self.tables[index(kind)].insert(template, standing).is_none()
    }

    /// Says how many fewer there are now.
    pub(super) fn remove(&mut self, kind: TemplateKind, template: u16) -> usize {
        usize::from(self.tables[index(kind)].remove(&template).is_some())
    }

    /// Says how many fewer there are now.
    pub(super) fn clear(&mut self, kind: TemplateKind) -> usize {
        let table = &mut self.tables[index(kind)];
        let count = table.len();
        table.clear();
        count
    }
}

/// A domain as it would be with a part of a message applied: the domain, and what differs. Each
/// step costs the logarithm of the number of templates, a withdrawal of all as much as it undoes.
pub(super) struct Pending<'a> {
    base: Option<&'a Domain>,
    changed: [BTreeMap<u16, Option<Standing>>; 2],
    /// Whether all templates of a kind were withdrawn, so that the base no longer counts.
    hidden: [bool; 2],
    /// Templates of each kind in the domain.
    live: [usize; 2],
    /// Templates of the session, and how many there may be.
    total: usize,
    max: usize,
}

impl<'a> Pending<'a> {
    pub(super) fn new(base: Option<&'a Domain>, total: usize, max: usize) -> Self {
        let live = base.map_or([0; 2], |d| [d.tables[0].len(), d.tables[1].len()]);
        Self { base, changed: Default::default(), hidden: [false; 2], live, total, max }
    }

    pub(super) fn layout(&self, template: u16) -> Option<&Arc<Layout>> {
        KINDS.iter().find_map(|kind| match self.get(*kind, template) {
            Some(Standing::Known(layout)) => Some(layout),
            _ => None,
        })
    }

    pub(super) fn define(&mut self, layout: Layout, transport: Transport) -> Change {
        let template = layout.id();
        let kind = layout.kind();
        let before = KINDS.into_iter().find_map(|k| self.get(k, template).map(|s| (k, s)));
        match before {
            Some((_, Standing::Known(known))) if **known == layout => {
                Change::Define { layout: known.clone(), repeated: true }
            }
            Some((before, _)) if transport == Transport::Stream => {
                self.put(before, template, Some(Standing::Ambiguous));
                Change::Ambiguous { kind: before, template }
            }
            Some((before, _)) => {
                let layout = Arc::new(layout);
                self.put(before, template, None);
                self.put(kind, template, Some(Standing::Known(layout.clone())));
                Change::Replace { before, layout }
            }
            None if self.total >= self.max => {
                Change::Fault(Fault::Templates { template, max: self.max })
            }
            None => {
                let layout = Arc::new(layout);
                self.put(kind, template, Some(Standing::Known(layout.clone())));
                Change::Define { layout, repeated: false }
            }
        }
    }

    pub(super) fn withdraw(
        &mut self,
        kind: TemplateKind,
        template: u16,
        transport: Transport,
    ) -> Change {
        if transport == Transport::Datagram {
            return Change::Fault(Fault::WithdrawalIgnored { template });
        }
        if self.get(kind, template).is_none() {
            return Change::Fault(Fault::UnknownWithdrawal { kind, template });
        }
        self.put(kind, template, None);
        Change::Withdraw { kind, template }
    }

    pub(super) fn withdraw_all(&mut self, kind: TemplateKind, transport: Transport) -> Change {
        if transport == Transport::Datagram {
            return Change::Fault(Fault::WithdrawalIgnored { template: kind.set_id() });
        }
        let i = index(kind);
        self.changed[i].clear();
        self.hidden[i] = true;
        self.total -= self.live[i];
        self.live[i] = 0;
        Change::WithdrawAll { kind }
    }

    fn get(&self, kind: TemplateKind, template: u16) -> Option<&Standing> {
        let i = index(kind);
        match self.changed[i].get(&template) {
            Some(changed) => changed.as_ref(),
            None if self.hidden[i] => None,
            None => self.base?.tables[i].get(&template),
        }
    }

    fn put(&mut self, kind: TemplateKind, template: u16, standing: Option<Standing>) {
        let (before, after) = (self.get(kind, template).is_some(), standing.is_some());
        let i = index(kind);
        self.changed[i].insert(template, standing);
        for count in [&mut self.live[i], &mut self.total] {
            *count = *count + usize::from(after) - usize::from(before);
        }
    }
}
