//! What is known of a Transport Session from its start: who the peer is, and the rules by which its
//! reports are judged. Both stand beside the archive, so that the same verdicts can be found again.

use observe::pfc::interval::Pace;
use observe::profile::Lengths;
use observe::{collect, pfc};
use serde_json::{Map, Value, json};
use wire::element::{DraftElement, Mapping};
use wire::ipfix;

/// A Transport Session as it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// The name by which the peer was authorised.
    pub peer: String,
    /// SHA-256 of its certificate; zeros where it showed none (plain TCP on this machine).
    pub fingerprint: [u8; 32],
    /// Address and port that it came from.
    pub address: String,
    /// When it was opened, milliseconds since 1970.
    pub opened_ms: u64,
    /// The rules for it.
    pub rules: Rules,
}

/// Everything beside the messages that decides on verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The Observation Domains that the peer may report for; `None` where any.
    pub domains: Option<Vec<u32>>,
    /// The bounds of its epochs.
    pub epochs: collect::Limits,
    /// The bounds of its templates.
    pub decoder: ipfix::Limits,
    /// Which field lengths are taken.
    pub lengths: Lengths,
    /// The numbers of the elements.
    pub mapping: Mapping,
    /// PFC counters.
    pub pfc: PfcRules,
}

/// What bounds the PFC counters of a session, and what is known of them beside their records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcRules {
    /// Counters that are kept.
    pub counters_max: usize,
    /// Octets of the further scope of one.
    pub further_octets_max: usize,
    /// Octets of the further scopes of all.
    pub further_octets_all_max: usize,
    /// The most that any of them can count: the operator's word. Without it no interval is exact.
    // PFC-sem.2
    pub pace: Option<Pace>,
}

impl Default for PfcRules {
    fn default() -> Self {
        let pfc::collect::Limits { counters_max, further_octets_max, further_octets_all_max } =
            pfc::collect::Limits::default();
        Self { counters_max, further_octets_max, further_octets_all_max, pace: None }
    }
}

impl PfcRules {
    /// The bounds.
    #[must_use]
    pub const fn limits(&self) -> pfc::collect::Limits {
        let Self { counters_max, further_octets_max, further_octets_all_max, .. } = *self;
        pfc::collect::Limits { counters_max, further_octets_max, further_octets_all_max }
    }
}

impl Rules {
    /// Whether the peer may report for a domain.
    // SEQ-10.3
    #[must_use]
    pub fn admits(&self, domain: u32) -> bool {
        self.domains.as_ref().is_none_or(|domains| domains.contains(&domain))
    }

    pub(crate) fn to_json(&self) -> Value {
        let ids: Map<_, _> = DraftElement::ALL
            .into_iter()
            .map(|element| (element.name().to_owned(), self.mapping.id(element).id.into()))
            .collect();
        json!({
            "domains": self.domains,
            "domainsMax": self.epochs.domains_max,
            "epochsMax": self.epochs.epochs_max,
            "inactivityMs": self.epochs.inactivity_ms,
            "closedRetentionMs": self.epochs.closed_retention_ms,
            "templatesMax": self.decoder.templates_max,
            "templateFieldsMax": self.decoder.fields_max,
            "templateDomainsMax": self.decoder.domains_max,
            "elementsLearnedMax": self.decoder.learned_max,
            "shorterLengths": self.lengths == Lengths::Agreed,
            "pfcCountersMax": self.pfc.counters_max,
            "pfcScopeOctetsMax": self.pfc.further_octets_max,
            "pfcScopeOctetsAllMax": self.pfc.further_octets_all_max,
            "pfcIncrementsPerSecondMax": self.pfc.pace.map(Pace::get),
            "pen": self.mapping.pen(),
            "elements": ids,
        })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let size = |key: &str| usize::try_from(value.get(key)?.as_u64()?).ok();
        let domains = match value.get("domains")? {
            Value::Null => None,
            list => {
                let numbers = list.as_array()?.iter();
                Some(numbers.map(|n| u32::try_from(n.as_u64()?).ok()).collect::<Option<_>>()?)
            }
        };
        let elements = value.get("elements")?.as_object()?;
        let ids = elements.iter().map(|(name, id)| {
            Some((DraftElement::from_name(name)?, u16::try_from(id.as_u64()?).ok()?))
        });
        let pen = u32::try_from(value.get("pen")?.as_u64()?).ok()?;
        Some(Self {
            domains,
            epochs: collect::Limits {
                domains_max: size("domainsMax")?,
                epochs_max: size("epochsMax")?,
                inactivity_ms: value.get("inactivityMs")?.as_u64()?,
                closed_retention_ms: value.get("closedRetentionMs")?.as_u64()?,
            },
            decoder: ipfix::Limits {
                templates_max: size("templatesMax")?,
                fields_max: size("templateFieldsMax")?,
                domains_max: size("templateDomainsMax")?,
                learned_max: size("elementsLearnedMax")?,
            },
            lengths: match value.get("shorterLengths")?.as_bool()? {
                true => Lengths::Agreed,
                false => Lengths::Full,
            },
            pfc: PfcRules {
                // Sessions from before had no PFC counters.
                counters_max: size("pfcCountersMax").unwrap_or(PfcRules::default().counters_max),
                // Those from before had no such bounds.
                further_octets_max: size("pfcScopeOctetsMax").unwrap_or(usize::MAX),
                further_octets_all_max: size("pfcScopeOctetsAllMax").unwrap_or(usize::MAX),
                pace: value
                    .get("pfcIncrementsPerSecondMax")
                    .and_then(Value::as_u64)
                    .and_then(Pace::per_second),
            },
            mapping: mapping(pen, ids.collect::<Option<Vec<_>>>()?)?,
        })
    }
}

/// The numbers that stood in facts. What was written before there was an extension of ours has no
/// number for it, and may have given its own to another element.
fn mapping(pen: u32, mut ids: Vec<(DraftElement, u16)>) -> Option<Mapping> {
    let extensions = DraftElement::ALL.into_iter().filter(|element| element.is_extension());
    for element in extensions {
        let taken = |id| ids.iter().any(|(_, other)| *other == id);
        if ids.iter().all(|(other, _)| *other != element) && taken(element.default_id()) {
            let free = (1..=0x7fff).rev().find(|id| !taken(*id))?;
            ids.push((element, free));
        }
    }
    Mapping::with_ids(pen, &ids).ok()
}

impl SessionFacts {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "peer": self.peer,
            "fingerprint": hexadecimal(&self.fingerprint),
            "address": self.address,
            "openedMilliseconds": self.opened_ms,
            "rules": self.rules.to_json(),
        })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
        Some(Self {
            peer: text("peer")?,
            fingerprint: octets(&text("fingerprint")?)?,
            address: text("address")?,
            opened_ms: value.get("openedMilliseconds")?.as_u64()?,
            rules: Rules::from_json(value.get("rules")?)?,
        })
    }
}

fn hexadecimal(octets: &[u8; 32]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets(text: &str) -> Option<[u8; 32]> {
    let mut octets = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (octet, pair) in octets.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_were_written() {
        let rules = Rules {
            domains: Some(vec![0, u32::MAX]),
            lengths: Lengths::Agreed,
            mapping: Mapping::with_ids(9, &[(DraftElement::RdmaSequenceEpochId, 77)]).unwrap(),
            ..Rules::default()
        };
        let mut facts = SessionFacts {
            peer: "agent \"one\"\n".into(),
            fingerprint: std::array::from_fn(|n| u8::try_from(n * 7).unwrap()),
            address: "[::1]:4740".into(),
            opened_ms: u64::MAX,
            rules,
        };
        assert_eq!(SessionFacts::from_json(&facts.to_json()), Some(facts.clone()));
        facts.rules = Rules::default();
        assert_eq!(SessionFacts::from_json(&facts.to_json()), Some(facts));
    }

    #[test]
    fn facts_from_before_the_extension_are_read_whatever_had_its_number() {
        for given in [32, 33] {
            let mut rules = Rules::default().to_json();
            let elements = rules["elements"].as_object_mut().unwrap();
            assert!(elements.remove("pfcCounterInstanceId").is_some());
            elements.insert("pfcControlFrameTotalCount".into(), given.into());
            let read = Rules::from_json(&rules).expect("facts").mapping;
            assert_eq!(read.id(DraftElement::PfcControlFrameTotalCount).id, given);
            let extension = read.id(DraftElement::PfcCounterInstanceId).id;
            assert_eq!(extension == 33, given != 33);
        }
    }
}
