//! One Transport Session from octets to changes (RFC 7011, sections 9 and 10.4; sequence draft,
//! section 7).
//!
//! No socket and no clock: octets come in whatever pieces, times are arguments. What is said of a
//! report is decided in `observe`; here records find their way there, and what is refused on the
//! way is counted under its word.
//!
//! Two faults end a session, because nothing behind them can be found: a version that is not 10,
//! and a length that does not hold a message header. A message whose inner lengths make no sense is
//! discarded whole and the next one is read, unless too many follow each other. Everything else
//! refuses a record.

mod reading;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeSet;
use std::fmt;

use observe::collect;
use observe::outcome::Outcome;
use store::PfcRules;
use store::archive::Entry;
use wire::element::Mapping;
use wire::ipfix::{
    Decoder, Error, Event, Frame, MESSAGE_HEADER_LEN, MessageHeader, TemplateKind, Transport, frame,
};

use super::greeting::Greeting;
use super::pfc;
use super::raw::{Part, Raw};
use super::refusal::Refusal;
use super::sink::{Change, EpochState, SessionId};
use reading::Reading;

/// Stands for all Observation Domains beyond those that are counted one by one: 0 names no domain
/// (RFC 7011, section 3.1).
pub const DOMAINS_BEYOND: u32 = 0;

/// The bounds of an intake.
// SEQ-7.10
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What the decoder keeps.
    pub decoder: wire::ipfix::Limits,
    /// What is kept of epochs.
    pub session: collect::Limits,
    /// What is kept of PFC counters, and what is known of them.
    pub pfc: PfcRules,
    /// Malformed messages, one after the other, that end the session.
    pub malformed_in_a_row_max: u64,
}

/// What was counted in a session. All of them only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Octets received.
    pub octets: u64,
    /// Whole messages, discarded ones among them.
    pub messages: u64,
    /// Messages discarded because their lengths make no sense (RFC 7011, section 9.1).
    pub malformed: u64,
    /// Messages discarded because the decoder has no room for their domain.
    pub domains_full: u64,
    /// Messages of domains that the peer may not report for.
    pub foreign: u64,
    /// Messages whose sequence number does not follow.
    pub sequence_gaps: u64,
    /// Data Sets whose template is not known. How many records they held is not known either.
    pub undecodable_sets: u64,
    /// Sets with an ID that has no meaning.
    pub unknown_sets: u64,
    /// Templates, withdrawals and type records that were refused or ignored.
    pub template_faults: u64,
    /// Records that have nothing of the profile.
    pub others: u64,
    /// Reports that were accepted.
    pub accepted: u64,
    /// The latest report once more.
    pub repeated: u64,
    /// Readings of PFC counters that were taken.
    pub pfc_accepted: u64,
    /// The latest reading of a PFC counter once more.
    pub pfc_repeated: u64,
    /// Refused records, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
}

impl Counts {
    /// How many records were refused for this reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal.index()]
    }
}

/// What came out of some octets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// What is to be kept, in its order.
    pub changes: Vec<Change>,
    /// What is to be archived: the messages of domains that the peer may report for.
    // SEQ-7.18
    pub raw: Raw,
    /// What people should be told: the first of each sort in a session.
    pub notes: Vec<String>,
}

/// Why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It never was IPFIX.
    Greeting(Greeting),
    /// Where the next message begins cannot be found.
    Framing {
        /// Whole messages before.
        messages: u64,
        /// What is there instead.
        error: Error,
    },
    /// Too many malformed messages follow each other; this is the last one.
    Malformed {
        /// How many.
        messages: u64,
        /// What is wrong with the last one.
        error: Error,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greeting(greeting) => f.write_str(&greeting.instead_of("an IPFIX message")),
            Self::Framing { messages, error } => {
                write!(f, "{error}, behind {messages} messages: no further one can be found")
            }
            Self::Malformed { messages, error } => {
                write!(f, "{messages} malformed messages one after the other, the last: {error}")
            }
        }
    }
}

impl std::error::Error for Broken {}

/// One Transport Session.
#[derive(Debug)]
pub struct Intake {
    id: SessionId,
    bounds: Bounds,
    mapping: Mapping,
    /// The domains that the peer may report for.
    // SEQ-10.3
    domains: BTreeSet<u32>,
    /// The start of a message, and how many octets it takes to look at it again.
    partial: Vec<u8>,
    wanted: usize,
    malformed_in_a_row: u64,
    /// How many epochs may be kept now.
    epochs_max: usize,
    /// How many PFC counters may be kept now.
    pfc_counters_max: usize,
    decoder: Decoder,
    /// Counts the records of domains that are not the peer's, or for which there is no room; none
    /// of it is kept.
    refused: Decoder,
    reading: Reading,
}

impl Intake {
    /// A session about which nothing is known yet. `seed` is to be unpredictable.
    // SEQ-10.2, SEQ-7.12: whoever the peer is.
    pub fn new(
        id: SessionId,
        mapping: Mapping,
        domains: impl IntoIterator<Item = u32>,
        bounds: Bounds,
        seed: u64,
    ) -> Self {
        let decoder = || Decoder::new(Transport::Stream, mapping, bounds.decoder);
        Self {
            id,
            bounds,
            mapping,
            domains: domains.into_iter().collect(),
            partial: Vec::new(),
            wanted: MESSAGE_HEADER_LEN,
            malformed_in_a_row: 0,
            epochs_max: bounds.session.epochs_max,
            pfc_counters_max: bounds.pfc.counters_max,
            decoder: decoder(),
            refused: decoder(),
            reading: Reading::new(id, mapping, &bounds, seed),
        }
    }

    /// Which session it is.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// What was counted until now.
    pub fn counts(&self) -> &Counts {
        &self.reading.counts
    }

    /// Octets of a message that is not all there.
    pub fn unfinished(&self) -> usize {
        self.partial.len()
    }

    /// Epochs that are kept.
    pub fn epochs(&self) -> usize {
        self.reading.session.len()
    }

    /// Changes the domains that the peer may report for; what was accepted stays.
    pub fn authorise(&mut self, domains: impl IntoIterator<Item = u32>, out: &mut Taken) {
        let before = std::mem::replace(&mut self.domains, domains.into_iter().collect());
        for domain in self.domains.difference(&before).copied() {
            out.raw.push(Part::Note(Entry::Admitted { domain }));
        }
        for domain in before.difference(&self.domains).copied() {
            out.raw.push(Part::Note(Entry::Expelled { domain }));
            // Its messages are not looked at from here on, so that what is known of its templates
            // need not hold any more when it comes back. What is refused is counted by them.
            self.decoder.hand_over(domain, &mut self.refused);
            for kind in [TemplateKind::Template, TemplateKind::Options] {
                self.reading.bindings.remove(&(domain, kind));
                self.reading.pfc.withdraw(domain, kind, None);
                out.raw.push(Part::Withdrawn { domain, kind, template: None });
            }
        }
    }

    /// Says for how many epochs there is room from here on, as far as other sessions leave it.
    // SEQ-7.10, SEQ-7.18: replaying it has to refuse what was refused.
    pub fn bound_epochs(&mut self, epochs_max: usize, out: &mut Taken) {
        let epochs_max = epochs_max.min(self.bounds.session.epochs_max);
        if std::mem::replace(&mut self.epochs_max, epochs_max) != epochs_max {
            self.reading.session.bound_epochs(epochs_max);
            let epochs = u64::try_from(epochs_max).unwrap_or(u64::MAX);
            out.raw.push(Part::Note(Entry::Bounded { epochs }));
        }
    }

    /// PFC counters that are kept.
    pub fn pfc_counters(&self) -> usize {
        self.reading.pfc.counters().len()
    }

    /// As [`Self::bound_epochs`], of PFC counters.
    // SEQ-7.10, SEQ-7.18
    pub fn bound_pfc_counters(&mut self, counters_max: usize, out: &mut Taken) {
        let counters_max = counters_max.min(self.bounds.pfc.counters_max);
        if std::mem::replace(&mut self.pfc_counters_max, counters_max) != counters_max {
            self.reading.pfc.bound(counters_max);
            let counters = u64::try_from(counters_max).unwrap_or(u64::MAX);
            out.raw.push(Part::Note(Entry::PfcBounded { counters }));
        }
    }

    /// Takes the next octets of the stream, however it is cut.
    ///
    /// # Errors
    /// The session cannot go on. What was before the fault is in `out`.
    pub fn receive(&mut self, octets: &[u8], now_ms: u64, out: &mut Taken) -> Result<(), Broken> {
        self.reading.counts.octets += octets.len() as u64;
        let done = self.messages(octets, now_ms, out);
        self.reading.states(now_ms, out);
        self.reading.pfc_states(now_ms, out);
        self.reading.refusals(out);
        done
    }

    /// Retires what has had no report for too long. `retire_ms` is the time that has passed for the
    /// peer: it lags behind `now_ms` where the collector itself did not read.
    // SEQ-7.13
    pub fn advance(&mut self, retire_ms: u64, now_ms: u64, out: &mut Taken) {
        let (id, epochs) = (self.id, self.epochs());
        self.reading
            .session
            .retire(retire_ms, &mut |retired| out.changes.extend(unfinished(id, retired, now_ms)));
        if self.epochs() != epochs {
            out.raw.push(Part::Note(Entry::Advanced { now_ms: retire_ms }));
        }
    }

    /// The session is over: every epoch without a final report is incomplete.
    // SEQ-7.13
    pub fn end(self, now_ms: u64, reason: &str, out: &mut Taken) {
        let id = self.id;
        self.reading
            .session
            .end(&mut |retired| out.changes.extend(unfinished(id, retired, now_ms)));
        let own = self.mapping.pen();
        out.notes.extend(self.reading.records_elsewhere.iter().map(|(pen, records)| {
            format!(
                "{records} records that would be reports under enterprise number {pen} were not \
                 taken for any, expected number {own} (elements.pen)"
            )
        }));
        out.changes.push(Change::SessionClosed {
            session: id,
            closed_ms: now_ms,
            reason: reason.into(),
        });
    }

    fn messages(&mut self, octets: &[u8], now_ms: u64, out: &mut Taken) -> Result<(), Broken> {
        let mut rest = octets;
        while !self.partial.is_empty() {
            let (more, behind) = rest.split_at(rest.len().min(self.wanted - self.partial.len()));
            self.partial.extend_from_slice(more);
            rest = behind;
            // A header is looked at octet by octet, so that what is no IPFIX is seen at once.
            if self.partial.len() < self.wanted && self.wanted > MESSAGE_HEADER_LEN {
                return Ok(());
            }
            let partial = std::mem::take(&mut self.partial);
            match frame(&partial).map_err(|error| self.broken(error, &partial))? {
                Frame::Message { octets, .. } => self.message(octets, now_ms, out)?,
                Frame::NeedMore { total } => {
                    self.wanted = total;
                    self.partial = partial;
                    if rest.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
        loop {
            match frame(rest).map_err(|error| self.broken(error, rest))? {
                Frame::Message { octets, rest: behind } => {
                    self.message(octets, now_ms, out)?;
                    rest = behind;
                }
                Frame::NeedMore { total } => {
                    self.wanted = total;
                    self.partial.extend_from_slice(rest);
                    return Ok(());
                }
            }
        }
    }

    fn broken(&self, error: Error, at: &[u8]) -> Broken {
        let messages = self.reading.counts.messages;
        match error {
            Error::Version { .. } if messages == 0 => Broken::Greeting(Greeting::of(at)),
            error => Broken::Framing { messages, error },
        }
    }

    fn message(&mut self, octets: &[u8], now_ms: u64, out: &mut Taken) -> Result<(), Broken> {
        let Ok(header) = MessageHeader::read(octets) else {
            return Ok(()); // A frame has a header that can be read.
        };
        let domain = header.domain;
        self.reading.counts.messages += 1;
        if !self.domains.contains(&domain) {
            self.foreign(domain, octets, out);
            return Ok(());
        }
        out.raw.push_message(octets, now_ms);
        let reading = &mut self.reading;
        let mut visit = |event: Event<'_>| reading.event(domain, event, now_ms, out);
        match self.decoder.message(octets, &mut visit) {
            Ok(_) => self.malformed_in_a_row = 0,
            Err(error @ Error::Domains { .. }) => {
                reading.counts.domains_full += 1;
                reading.tell(out, "domains", || error.to_string());
                self.malformed_in_a_row = 0;
                self.refuse_all(domain, octets, Refusal::DomainsFull);
            }
            Err(error) => return self.malformed(error, out),
        }
        Ok(())
    }

    /// RFC 7011, section 9.1: discarded, told, and the session ends if there is no end of them.
    fn malformed(&mut self, error: Error, out: &mut Taken) -> Result<(), Broken> {
        self.reading.counts.malformed += 1;
        self.reading.tell(out, "malformed", || format!("a message is discarded: {error}"));
        self.malformed_in_a_row += 1;
        if self.malformed_in_a_row < self.bounds.malformed_in_a_row_max {
            return Ok(());
        }
        Err(Broken::Malformed { messages: self.malformed_in_a_row, error })
    }

    /// Refuses a message of a domain that is not the peer's.
    // SEQ-10.1, SEQ-10.3
    fn foreign(&mut self, domain: u32, octets: &[u8], out: &mut Taken) {
        self.reading.counts.foreign += 1;
        self.reading.tell(out, "foreign", || {
            format!("observation domain {domain} is not among the peer's, its records are refused")
        });
        self.refuse_all(domain, octets, Refusal::ForeignDomain);
    }

    /// Refuses all records of a message. It is decoded only so that they are counted, in a room of
    /// its own which starts anew when it is full.
    fn refuse_all(&mut self, domain: u32, octets: &[u8], refusal: Refusal) {
        let mut records = 0_u64;
        let mapping = self.mapping;
        let mut visit = |event: Event<'_>| {
            if let Event::Data(set) = event
                && (set.layout.kind() == TemplateKind::Template
                    || pfc::is_meant(set.layout, &mapping))
            {
                records += set.records.count() as u64;
            }
        };
        if let Err(Error::Domains { .. }) = self.refused.message(octets, &mut visit) {
            let (mapping, limits) = (self.mapping, self.bounds.decoder);
            self.refused = Decoder::new(Transport::Stream, mapping, limits);
            // What cannot be decoded cannot be counted.
            _ = self.refused.message(octets, &mut visit);
        }
        self.reading.refuse(domain, refusal, records);
    }
}

/// What is to be kept of an epoch that retires: nothing where its outcome was told before.
// SEQ-7.11, SEQ-7.13
fn unfinished(session: SessionId, retired: collect::Retired, updated_ms: u64) -> Option<Change> {
    let collect::Retired { domain, epoch, outcome } = retired;
    (epoch.outcome() == Outcome::Active).then(|| {
        Change::Epoch(Box::new(EpochState { session, domain, epoch, outcome, updated_ms }))
    })
}
