//! The collector side: who may export and as what, what is served, and what is kept.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;
use wire::element::Mapping;

use super::device::{file, is_dns_name, named};
use super::limits::LIMIT_KEYS;
use super::section::{Document, Section, Value};
use super::{
    Beside, CollectorLimits, Http, NamedFile, QueueDevice, beside, elements, http, queues,
};

pub(super) const KEYS: &[&str] = &["ipfix", "pfc", "queues", "elements", "http", "store", "limits"];

const IPFIX_KEYS: &[&str] =
    &["listen", "certificate", "key", "authority", "revocation", "inactivity_timeout_s", "peer"];
const PEER_KEYS: &[&str] = &["name", "fingerprint", "domains"];

/// A collector configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Where IPFIX comes in; none where only devices are asked.
    pub ipfix: Option<Ipfix>,
    /// Which devices its PFC counters are of, and where flows were seen.
    pub pfc: Beside,
    /// Whose queue telemetry is asked for.
    pub queues: Vec<QueueDevice>,
    /// The numbers of the drafts' elements.
    pub elements: Mapping,
    /// What is served.
    pub http: Http,
    /// Where results are kept.
    pub store: Store,
    /// Bounds.
    pub limits: CollectorLimits,
}

/// `[ipfix]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipfix {
    /// Where it listens: TLS 1.3 over TCP.
    pub listen: SocketAddr,
    /// The collector's certificate chain.
    pub certificate: NamedFile,
    /// Its private key.
    pub private_key: NamedFile,
    /// The authority that the peers' certificates must come from.
    pub authority: NamedFile,
    /// The certificates that the authority has revoked: one or more lists.
    pub revocation: Option<NamedFile>,
    /// An epoch without a report for longer than this is incomplete.
    // SEQ-7.13
    pub inactivity_timeout: Duration,
    /// Who may export; nobody else may.
    pub peers: Vec<Peer>,
}

/// `[[ipfix.peer]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// How it is known.
    pub identity: PeerIdentity,
    /// The Observation Domains that it may report for, in their order.
    pub domains: Vec<u32>,
}

/// How a peer is known.
// SEQ-10.1
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerIdentity {
    /// A DNS name in its certificate, in lower case.
    Name(String),
    /// The SHA-256 of its certificate.
    Fingerprint([u8; 32]),
}

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The directory of the archive and the database.
    pub directory: NamedFile,
}

/// `ipfix.inactivity_timeout_s` where the file does not say.
const INACTIVITY_S: u64 = 60;

impl Collector {
    /// After which time without a report an epoch is incomplete.
    // SEQ-7.13
    pub fn inactivity_timeout(&self) -> Duration {
        let default = Duration::from_secs(INACTIVITY_S);
        self.ipfix.as_ref().map_or(default, |ipfix| ipfix.inactivity_timeout)
    }

    /// The bounds of what one Transport Session measures.
    // SEQ-7.10
    pub fn session_limits(&self) -> observe::collect::Limits {
        let inactivity = self.inactivity_timeout().as_millis();
        observe::collect::Limits {
            domains_max: size(self.limits.domains_max),
            epochs_max: size(self.limits.epochs_max),
            inactivity_ms: u64::try_from(inactivity).unwrap_or(u64::MAX),
            closed_retention_ms: self.limits.closed_retention_s.saturating_mul(1000),
        }
    }

    /// The bounds of what one Transport Session says of PFC counters, and how fast one can count.
    // PFC-sem.2
    pub fn pfc_rules(&self) -> store::PfcRules {
        let bits_per_second = self.limits.pfc_link_gbps_max.saturating_mul(1_000_000_000);
        store::PfcRules {
            counters_max: size(self.limits.pfc_counters_max),
            further_octets_max: size(self.limits.pfc_scope_octets_max),
            further_octets_all_max: size(self.limits.pfc_scope_octets_all_max),
            pace: observe::pfc::interval::Pace::of_link(bits_per_second),
        }
    }

    /// The bounds of what one Transport Session makes the decoder keep.
    // SEQ-7.10
    pub fn decoder_limits(&self) -> wire::ipfix::Limits {
        wire::ipfix::Limits {
            templates_max: size(self.limits.templates_max),
            fields_max: size(self.limits.template_fields_max),
            domains_max: size(self.limits.domains_max),
            learned_max: size(self.limits.elements_learned_max),
        }
    }
}

fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Reads a collector configuration out of the table at the top of a file.
pub(super) fn read<'d>(
    document: &'d Document<'d>,
    table: &'d DeTable<'d>,
    directory: &Path,
) -> Option<Collector> {
    let top = Section::top(document, table, KEYS);
    let section = top.section("ipfix", IPFIX_KEYS);
    let of_queues = top.section("queues", queues::KEYS);
    // Who only asks devices needs nothing else.
    let devices_alone = !section.is_there() && queues::any(&of_queues);
    let ipfix = match devices_alone {
        true => Some(None),
        false => ipfix(&section, directory).map(Some),
    };
    let peers = ipfix.as_ref().map(|ipfix| ipfix.as_ref().map_or(&[][..], |ipfix| &ipfix.peers));
    let pfc = beside::read(&top, peers);
    let elements = elements::read(&top.section("elements", elements::KEYS));
    let http = http::read(&top.section("http", http::KEYS), directory);
    let store = store(&top.section("store", &["directory"]), directory);
    let limits = CollectorLimits::read(&top.section("limits", LIMIT_KEYS));
    let queues = queues::read(&of_queues, limits.as_ref(), directory);
    Some(Collector {
        ipfix: ipfix?,
        pfc: pfc?,
        queues: queues?,
        elements: elements?,
        http: http?,
        store: store?,
        limits: limits?,
    })
}

fn ipfix(section: &Section<'_>, directory: &Path) -> Option<Ipfix> {
    // 4740 is registered for IPFIX over TLS.
    let listen = listen(section, 4740);
    let certificate = file(section, "certificate", directory);
    let private_key = file(section, "key", directory);
    let authority = file(section, "authority", directory);
    let revocation = match section.value("revocation") {
        Some(value) => named(&value, directory).map(Some),
        None => Some(None),
    };
    let timeout = section.number("inactivity_timeout_s", 1..=86_400, INACTIVITY_S);
    let peers = peers(section);
    Some(Ipfix {
        listen: listen?,
        certificate: certificate?,
        private_key: private_key?,
        authority: authority?,
        revocation: revocation?,
        inactivity_timeout: Duration::from_secs(timeout?),
        peers: peers?,
    })
}

pub(super) fn listen(section: &Section<'_>, port: u16) -> Option<SocketAddr> {
    match section.value("listen") {
        Some(value) => value
            .parsed("an address and a port, such as \"127.0.0.1:4740\"", |text| text.parse().ok()),
        None => Some(SocketAddr::from(([127, 0, 0, 1], port))),
    }
}

/// At least one, each once.
// SEQ-10.1, SEQ-10.3: a peer is authorised by name, for the domains that are named.
fn peers(section: &Section<'_>) -> Option<Vec<Peer>> {
    let sections = section.sections("peer", PEER_KEYS);
    if section.value("peer").is_none_or(|value| value.is_empty_list()) {
        section.error("peer", "missing, expected at least one [[ipfix.peer]]".into());
        return None;
    }
    let mut lines: HashMap<PeerIdentity, usize> = HashMap::new();
    let mut peers = Vec::new();
    let mut good = !sections.is_empty();
    for section in &sections {
        let identity = identity(section);
        let domains =
            section.required("domains", "an array of Observation Domains").and_then(domains);
        if let Some(identity) = &identity
            && let Some(line) = lines.insert(identity.clone(), section.line())
        {
            section.error("", format!("the same peer as on line {line}, expected each once"));
            good = false;
        }
        match identity.zip(domains) {
            Some((identity, domains)) => peers.push(Peer { identity, domains }),
            None => good = false,
        }
    }
    good.then_some(peers)
}

fn identity(section: &Section<'_>) -> Option<PeerIdentity> {
    match (section.value("name"), section.value("fingerprint")) {
        (Some(name), None) => name.parsed("a DNS name, without wildcards", |text| {
            is_dns_name(text).then(|| PeerIdentity::Name(text.to_ascii_lowercase()))
        }),
        (None, Some(fingerprint)) => fingerprint
            .parsed("\"sha256:\" and 64 hexadecimal digits", |text| {
                digest(text.strip_prefix("sha256:")?).map(PeerIdentity::Fingerprint)
            }),
        (None, None) => {
            section.error("", "neither name nor fingerprint, expected one of them".into());
            None
        }
        (Some(_), Some(fingerprint)) => {
            fingerprint.problem("beside a name, expected one of them".into());
            None
        }
    }
}

/// 32 octets, with or without colons between them.
pub(super) fn digest(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = if text.contains(':') {
        let octets: Vec<&str> = text.split(':').collect();
        octets.iter().all(|octet| octet.len() == 2).then(|| octets.concat().into_bytes())?
    } else {
        text.as_bytes().to_vec()
    };
    let mut digest = [0; 32];
    if digits.len() != 2 * digest.len() {
        return None;
    }
    for (octet, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [char::from(pair[0]).to_digit(16)?, char::from(pair[1]).to_digit(16)?];
        *octet = u8::try_from(high << 4 | low).ok()?;
    }
    Some(digest)
}

fn domains(value: Value<'_>) -> Option<Vec<u32>> {
    let mut domains = BTreeSet::new();
    let mut good = true;
    for item in value.list("Observation Domain")? {
        match item.number(0..=u32::MAX) {
            Some(domain) if domains.insert(domain) => {}
            Some(_) => {
                item.wrong("each Observation Domain once");
                good = false;
            }
            None => good = false,
        }
    }
    good.then(|| domains.into_iter().collect())
}

fn store(section: &Section<'_>, directory: &Path) -> Option<Store> {
    let directory = match section.value("directory") {
        Some(value) => named(&value, directory)?,
        None => NamedFile {
            path: directory.join("data"),
            key: section.key("directory"),
            line: section.line(),
        },
    };
    Some(Store { directory })
}
