//! The words for why a record changed nothing.

use observe::collect::{Contradiction, Rejection, Verdict};

/// Why a record changed nothing, or made its epoch invalid.
// SEQ-7.15
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Older than the latest report of its epoch.
    Stale,
    /// A relationship of section 5 does not hold in it.
    Inconsistent,
    /// Its epoch id belongs to another key.
    KeyChanged,
    /// Something changed that does not change within an epoch.
    ImmutableChanged,
    /// A total is smaller than before.
    Decreased,
    /// Its epoch is not known, and its id is not above the highest seen.
    Orphan,
    /// No room for another epoch.
    EpochsFull,
    /// No room for another Observation Domain.
    DomainsFull,
    /// Its epoch is invalid already.
    EpochInvalid,
    /// The latest report id again with other content: the epoch is invalid.
    SameIdOtherContent,
    /// After the final report: the epoch is invalid.
    AfterFinal,
    /// A field is out of its range.
    Field,
    /// Its Template has the profile's elements and is not the profile's.
    Template,
    /// Its Observation Domain is not one of the peer's.
    ForeignDomain,
    /// Its Template has the total of PFC frames and is not that of a PFC record.
    // PFC-rec.1
    PfcTemplate,
    /// Its priority is above 7.
    // PFC-id.3
    PfcPriority,
    /// No room for another PFC counter.
    PfcCountersFull,
    /// Its scope has more beside the draft's fields than is kept.
    PfcScopeTooLong,
    /// It is from before the latest reading of its PFC counter.
    PfcEarlier,
    /// No room for what another PFC counter has in its scope beside the draft's fields.
    PfcScopesFull,
}

impl Refusal {
    /// All of them, in the order of [`Refusal::index`].
    pub const ALL: [Self; 20] = [
        Self::Stale,
        Self::Inconsistent,
        Self::KeyChanged,
        Self::ImmutableChanged,
        Self::Decreased,
        Self::Orphan,
        Self::EpochsFull,
        Self::DomainsFull,
        Self::EpochInvalid,
        Self::SameIdOtherContent,
        Self::AfterFinal,
        Self::Field,
        Self::Template,
        Self::ForeignDomain,
        Self::PfcTemplate,
        Self::PfcPriority,
        Self::PfcCountersFull,
        Self::PfcScopeTooLong,
        Self::PfcEarlier,
        Self::PfcScopesFull,
    ];

    /// Its place in [`Refusal::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Inconsistent => "inconsistent",
            Self::KeyChanged => "keyChanged",
            Self::ImmutableChanged => "immutableChanged",
            Self::Decreased => "decreased",
            Self::Orphan => "orphan",
            Self::EpochsFull => "epochsFull",
            Self::DomainsFull => "domainsFull",
            Self::EpochInvalid => "epochInvalid",
            Self::SameIdOtherContent => "sameIdOtherContent",
            Self::AfterFinal => "afterFinal",
            Self::Field => "fieldOutOfRange",
            Self::Template => "templateNotOfProfile",
            Self::ForeignDomain => "foreignDomain",
            Self::PfcTemplate => "pfcTemplateNotOfRecord",
            Self::PfcPriority => "pfcPriorityOutOfRange",
            Self::PfcCountersFull => "pfcCountersFull",
            Self::PfcScopeTooLong => "pfcScopeTooLong",
            Self::PfcEarlier => "pfcEarlierReading",
            Self::PfcScopesFull => "pfcScopesFull",
        }
    }

    /// What a verdict refuses, if it refuses.
    pub const fn of(verdict: &Verdict) -> Option<Self> {
        Some(match verdict {
            Verdict::Accepted { .. } | Verdict::Repeated => return None,
            Verdict::Stale => Self::Stale,
            Verdict::Rejected(rejection) => match rejection {
                Rejection::Inconsistent(_) => Self::Inconsistent,
                Rejection::KeyChanged => Self::KeyChanged,
                Rejection::ImmutableChanged(_) => Self::ImmutableChanged,
                Rejection::Decreased(_) => Self::Decreased,
                Rejection::Orphan => Self::Orphan,
                Rejection::EpochsFull => Self::EpochsFull,
                Rejection::DomainsFull => Self::DomainsFull,
                Rejection::EpochInvalid => Self::EpochInvalid,
            },
            Verdict::Invalidated(Contradiction::SameIdOtherContent) => Self::SameIdOtherContent,
            Verdict::Invalidated(Contradiction::AfterFinal) => Self::AfterFinal,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_its_place_and_a_word_of_its_own() {
        let mut words: Vec<_> = Refusal::ALL.iter().map(|refusal| refusal.word()).collect();
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal.index(), index);
        }
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Refusal::ALL.len());
    }
}
