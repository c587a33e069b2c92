//! Which streams are metered, and what the operator states about them (sequence draft, section 3).
//!
//! A packet never provisions anything. What only the operator can know (that a connection carries
//! nothing but SEND and WRITE, that every path is covered) is a field that must be true before a
//! rule is accepted: the conditions cannot be found out from the traffic.

use alloc::{collections::BTreeMap, vec::Vec};
use core::fmt;

use wire::frame::{Addresses, Family, Namespace};

use crate::report::StreamKey;
use crate::window::Window;

/// What the operator attests for every stream of a rule. All of it is needed.
// SEQ-3.2, SEQ-3.5, SEQ-3.9
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attestation {
    /// The connection carries no operation but SEND and RDMA WRITE, in this direction, ever.
    pub send_write_only: bool,
    /// The observation point gets every packet: no sampling, no filter that omits some, and the
    /// source says when it drops.
    pub complete_capture: bool,
    /// Every path that the stream can take passes the observation point.
    pub all_paths: bool,
    /// No request can be half the serial space or more away from the newest.
    pub half_space: bool,
    /// Two tenants with the same addresses never meet under the same namespace.
    pub separate_namespaces: bool,
}

impl Attestation {
    /// Everything attested.
    pub const ALL: Self = Self {
        send_write_only: true,
        complete_capture: true,
        all_paths: true,
        half_space: true,
        separate_namespaces: true,
    };

    /// The first condition that is not attested, by the name of its field.
    pub fn missing(&self) -> Option<&'static str> {
        [
            (self.send_write_only, "send_write_only"),
            (self.complete_capture, "complete_capture"),
            (self.all_paths, "all_paths"),
            (self.half_space, "half_space"),
            (self.separate_namespaces, "separate_namespaces"),
        ]
        .into_iter()
        .find_map(|(attested, name)| (!attested).then_some(name))
    }
}

/// How the generation of a connection is known (sequence draft, section 4).
// SEQ-4.8
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// Not independently established: every report carries generationUnverified.
    #[default]
    Unverified,
    /// Provisioning or an endpoint tells of every new connection, by
    /// [`crate::meter::Meter::new_generation`].
    Established,
}

/// An address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// IPv4 or IPv6.
    pub family: Family,
    /// The network, as in [`Addresses`].
    pub network: [u8; 16],
    /// Leading bits that count, 0 to 32 or 128.
    pub length: u8,
}

impl Prefix {
    /// Every address of a family.
    pub const fn any(family: Family) -> Self {
        Self { family, network: [0; 16], length: 0 }
    }

    /// Whether `address` of `family` lies in it.
    pub fn contains(&self, family: Family, address: &[u8; 16]) -> bool {
        let value = |octets: &[u8; 16]| u128::from_be_bytes(*octets);
        let differing = value(&self.network) ^ value(address);
        self.family == family && u32::from(self.length) <= differing.leading_zeros()
    }
}

/// Which streams a rule takes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// One stream. With no namespace given, one stream in each namespace that is seen.
    Exact {
        /// Addresses.
        addresses: Addresses,
        /// Destination queue pair.
        qp: u32,
        /// Partition key.
        pkey: u16,
        /// The one namespace meant, if one is.
        namespace: Option<Namespace>,
    },
    /// Every stream in these ranges.
    Range {
        /// Source prefixes, any of which matches.
        sources: Vec<Prefix>,
        /// Destination prefixes, any of which matches.
        destinations: Vec<Prefix>,
        /// First and last destination queue pair.
        qps: (u32, u32),
        /// Partition keys; empty means all.
        pkeys: Vec<u16>,
    },
}

impl Match {
    fn takes(&self, key: &StreamKey) -> bool {
        match self {
            Self::Exact { addresses, qp, pkey, namespace } => {
                *addresses == key.addresses
                    && *qp == key.qp
                    && *pkey == key.pkey
                    && namespace.is_none_or(|n| n == key.namespace)
            }
            Self::Range { sources, destinations, qps, pkeys } => {
                let a = &key.addresses;
                (qps.0..=qps.1).contains(&key.qp)
                    && (pkeys.is_empty() || pkeys.contains(&key.pkey))
                    && sources.iter().any(|p| p.contains(a.family, &a.source))
                    && destinations.iter().any(|p| p.contains(a.family, &a.destination))
            }
        }
    }
}

/// One entry of the provisioning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The streams.
    pub streams: Match,
    /// W for each of them.
    pub window: Window,
    /// What the operator states.
    pub attestation: Attestation,
    /// How generations are known.
    pub generation: Generation,
    /// Raised by the operator to meter again what a violation has disabled.
    pub revision: u64,
}

impl Rule {
    /// Every stream of both families, everything attested: what `--attest-all` states.
    pub fn everything(window: Window) -> [Rule; 2] {
        [Family::V4, Family::V6].map(|family| Rule {
            streams: Match::Range {
                sources: alloc::vec![Prefix::any(family)],
                destinations: alloc::vec![Prefix::any(family)],
                qps: (0, 0x00ff_ffff),
                pkeys: Vec::new(),
            },
            window,
            attestation: Attestation::ALL,
            generation: Generation::Unverified,
            revision: 0,
        })
    }
}

/// A rule that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionError {
    /// The rule with this index lacks the attestation of this name.
    Unattested(usize, &'static str),
    /// More rules than the limit.
    TooMany {
        /// Found.
        rules: usize,
        /// The limit.
        rules_max: usize,
    },
}

impl fmt::Display for ProvisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unattested(rule, name) => {
                write!(f, "rule {rule}: {name} is not attested, expected true")
            }
            Self::TooMany { rules, rules_max } => {
                write!(f, "{rules} rules, expected at most {rules_max}")
            }
        }
    }
}

impl core::error::Error for ProvisionError {}

/// The rules in force: exact streams first, then ranges in their order.
#[derive(Clone, Debug)]
pub struct Provisioning {
    rules: Vec<Rule>,
    /// Indices of exact rules by what they name.
    exact: BTreeMap<(Addresses, u32, u16), Vec<usize>>,
    ranges: Vec<usize>,
}

impl Provisioning {
    /// # Errors
    /// A rule that is not attested in full, or more rules than `rules_max`.
    // SEQ-3.6, SEQ-10.3: what is not established is not enabled.
    pub fn new(rules: Vec<Rule>, rules_max: usize) -> Result<Self, ProvisionError> {
        let missing = |(index, rule): (usize, &Rule)| Some((index, rule.attestation.missing()?));
        if let Some((index, name)) = rules.iter().enumerate().find_map(missing) {
            return Err(ProvisionError::Unattested(index, name));
        }
        Self::with_withdrawn(rules, rules_max)
    }

    /// As [`Provisioning::new`], for an operator who takes back what was attested: a rule that is
    /// not attested in full provisions nothing, and what it takes in, no rule behind it does.
    ///
    /// # Errors
    /// More rules than `rules_max`.
    // SEQ-3.6, SEQ-4.11
    pub fn with_withdrawn(rules: Vec<Rule>, rules_max: usize) -> Result<Self, ProvisionError> {
        if rules.len() > rules_max {
            return Err(ProvisionError::TooMany { rules: rules.len(), rules_max });
        }
        let mut exact: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut ranges = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            match &rule.streams {
                Match::Exact { addresses, qp, pkey, .. } => {
                    exact.entry((*addresses, *qp, *pkey)).or_default().push(index);
                }
                Match::Range { .. } => ranges.push(index),
            }
        }
        Ok(Self { rules, exact, ranges })
    }

    /// The rule that provisions `key`, if one does.
    // SEQ-3.6
    pub fn find(&self, key: &StreamKey) -> Option<&Rule> {
        self.first(key).filter(|rule| rule.attestation.missing().is_none())
    }

    /// The condition that the rule for `key` lacks, by its name, where it does not provision for
    /// that.
    pub fn withdrawn(&self, key: &StreamKey) -> Option<&'static str> {
        self.first(key)?.attestation.missing()
    }

    fn first(&self, key: &StreamKey) -> Option<&Rule> {
        let named = self.exact.get(&(key.addresses, key.qp, key.pkey)).into_iter().flatten();
        let mut rules = named.chain(&self.ranges).map(|index| &self.rules[*index]);
        rules.find(|rule| rule.streams.takes(key))
    }

    /// All rules in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn address(last: u8) -> [u8; 16] {
        let mut a = [0; 16];
        a[..4].copy_from_slice(&[10, 0, 0, last]);
        a
    }

    fn key(last: u8, qp: u32, pkey: u16) -> StreamKey {
        StreamKey {
            addresses: Addresses {
                family: Family::V4,
                source: address(1),
                destination: address(last),
            },
            namespace: Namespace::default(),
            qp,
            pkey,
        }
    }

    /// The index of the rule that takes `key`.
    fn find(rules: &Provisioning, key: &StreamKey) -> Option<usize> {
        let found = rules.find(key)?;
        rules.rules().iter().position(|rule| rule == found)
    }

    fn rule(streams: Match) -> Rule {
        let [rule, _] = Rule::everything(Window::new(8).unwrap());
        Rule { streams, ..rule }
    }

    // SEQ-3.2, SEQ-3.5, SEQ-3.6, SEQ-3.9
    #[test]
    fn a_rule_with_any_condition_unattested_is_refused_by_its_name() {
        type Clear = fn(&mut Attestation);
        let conditions: [(&str, Clear); 5] = [
            ("send_write_only", |a| a.send_write_only = false),
            ("complete_capture", |a| a.complete_capture = false),
            ("all_paths", |a| a.all_paths = false),
            ("half_space", |a| a.half_space = false),
            ("separate_namespaces", |a| a.separate_namespaces = false),
        ];
        for (name, clear) in conditions {
            let mut rules = Rule::everything(Window::new(8).unwrap()).to_vec();
            clear(&mut rules[1].attestation);
            let refused = Provisioning::new(rules, 8).unwrap_err();
            assert_eq!(refused, ProvisionError::Unattested(1, name));
        }
    }

    // SEQ-3.6
    #[test]
    fn what_a_withdrawn_rule_takes_in_is_provisioned_by_no_rule_behind_it() {
        let [everything, _] = Rule::everything(Window::new(8).unwrap());
        let addresses = key(200, 20, 0xffff).addresses;
        let exact = Match::Exact { addresses, qp: 20, pkey: 0xffff, namespace: None };
        let mut withdrawn = rule(exact);
        withdrawn.attestation.all_paths = false;
        let rules = Provisioning::with_withdrawn(vec![everything, withdrawn], 2).unwrap();
        assert_eq!(rules.find(&key(200, 20, 0xffff)), None);
        assert_eq!(rules.withdrawn(&key(200, 20, 0xffff)), Some("all_paths"));
        assert_eq!(find(&rules, &key(200, 21, 0xffff)), Some(0));
        assert_eq!(rules.withdrawn(&key(200, 21, 0xffff)), None);
    }

    // SEQ-10.3
    #[test]
    fn more_rules_than_the_limit_are_refused() {
        let rules = Rule::everything(Window::new(8).unwrap()).to_vec();
        assert!(Provisioning::new(rules.clone(), 2).is_ok());
        let refused = Provisioning::new(rules, 1).unwrap_err();
        assert_eq!(refused, ProvisionError::TooMany { rules: 2, rules_max: 1 });
    }

    #[test]
    fn an_exact_stream_goes_before_a_range_and_ranges_hold_their_edges() {
        let range = rule(Match::Range {
            sources: vec![Prefix { family: Family::V4, network: address(0), length: 24 }],
            destinations: vec![Prefix { family: Family::V4, network: address(128), length: 25 }],
            qps: (16, 32),
            pkeys: vec![0xffff],
        });
        let exact = rule(Match::Exact {
            addresses: key(200, 20, 0xffff).addresses,
            qp: 20,
            pkey: 0xffff,
            namespace: None,
        });
        let rules = Provisioning::new(vec![range, exact], 8).unwrap();
        assert_eq!(find(&rules, &key(200, 20, 0xffff)), Some(1));
        assert_eq!(find(&rules, &key(200, 21, 0xffff)), Some(0));
        for (last, qp, pkey, found) in [
            (128, 16, 0xffff, Some(0)),
            (255, 32, 0xffff, Some(0)),
            (127, 16, 0xffff, None),
            (128, 15, 0xffff, None),
            (128, 33, 0xffff, None),
            (128, 16, 0x7fff, None),
        ] {
            assert_eq!(find(&rules, &key(last, qp, pkey)), found, "{last} {qp} {pkey}");
        }
        let mut v6 = key(128, 16, 0xffff);
        v6.addresses.family = Family::V6;
        assert_eq!(find(&rules, &v6), None);
    }

    #[test]
    fn an_exact_stream_can_name_its_namespace() {
        let tagged = Namespace { outer_vlan: 7, ..Namespace::default() };
        let exact = |namespace| {
            rule(Match::Exact { addresses: key(2, 9, 1).addresses, qp: 9, pkey: 1, namespace })
        };
        let rules = Provisioning::new(vec![exact(Some(tagged))], 8).unwrap();
        assert_eq!(find(&rules, &key(2, 9, 1)), None);
        assert_eq!(find(&rules, &StreamKey { namespace: tagged, ..key(2, 9, 1) }), Some(0));
    }

    #[test]
    fn a_full_length_prefix_is_one_address() {
        let host = Prefix { family: Family::V4, network: address(9), length: 32 };
        assert!(host.contains(Family::V4, &address(9)));
        assert!(!host.contains(Family::V4, &address(8)));
        let v6 = Prefix { family: Family::V6, network: [1; 16], length: 128 };
        assert!(v6.contains(Family::V6, &[1; 16]));
    }
}
