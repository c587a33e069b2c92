//! `[[stream]]` and `[[rule]]`: which streams are provisioned, and what the operator attests
//! (sequence draft, sections 3 and 4).
//!
//! Whether what is attested is true cannot be known here. What is missing or false is refused.

use std::collections::HashMap;

use observe::provision::{Attestation, Generation, Match, Prefix, Rule};
use observe::window::{WINDOW_MAX, Window};
use wire::frame::{Addresses, Family, Layer, Namespace};

use super::address;
use super::section::{Section, Value};

pub(super) const STREAM_KEYS: &[&str] = &[
    "source",
    "destination",
    "qp",
    "pkey",
    "vlan",
    "inner_vlan",
    "segment",
    "window",
    "generation",
    "revision",
    "attest",
];
pub(super) const RULE_KEYS: &[&str] =
    &["sources", "destinations", "qp", "pkeys", "window", "generation", "revision", "attest"];

/// The greatest queue pair number, 24 bits.
pub(super) const QP_MAX: u32 = 0x00ff_ffff;
/// The greatest VID that a frame can be tagged with (IEEE 802.1Q, 9.6).
pub(super) const VLAN_MAX: u16 = 4094;
/// The greatest VNI or VSID, 24 bits.
pub(super) const SEGMENT_MAX: u32 = 0x00ff_ffff;

/// Something that only the operator can establish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its key in an `attest` section.
    pub name: &'static str,
    /// In a few words.
    pub brief: &'static str,
    /// What has to be established: the rest of a sentence that begins with "that".
    pub establish: &'static str,
}

/// What has to be attested of every stream.
// SEQ-3.2, SEQ-3.5, SEQ-3.6, SEQ-3.9
pub const ATTESTATIONS: [Condition; 5] = [
    Condition {
        name: "send_write_only",
        brief: "the connection can carry nothing but SEND and RDMA WRITE",
        establish: "the connection is restricted to SEND and RDMA WRITE for as long as it lives \
                    (that nothing else was seen is not enough)",
    },
    Condition {
        name: "complete_capture",
        brief: "no sampling, no filter, and drops are told",
        establish: "every request packet that passes is captured: no sampling, no filter that \
                    omits some, and a source that says when it drops",
    },
    Condition {
        name: "all_paths",
        brief: "every path of the stream passes here",
        establish: "every path that the stream can take passes the observation point",
    },
    Condition {
        name: "half_space",
        brief: "no packet is half the sequence space from the newest",
        establish: "no request is ever half the sequence number space (8388608 packets) or more \
                    away from the newest",
    },
    Condition {
        name: "separate_namespaces",
        brief: "VLAN and segment keep tenants with equal addresses apart",
        establish: "two tenants that use the same addresses never meet under the same VLAN and \
                    segment",
    },
];

const ATTEST_KEYS: &[&str] = &{
    let mut keys = [""; ATTESTATIONS.len()];
    let mut index = 0;
    while index < keys.len() {
        keys[index] = ATTESTATIONS[index].name;
        index += 1;
    }
    keys
};

const GENERATIONS: &[(&str, Generation)] =
    &[("unverified", Generation::Unverified), ("established", Generation::Established)];

/// An entry of the provisioning, with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// `stream[0]` or `rule[0]`.
    pub key: String,
    /// The line on which it starts.
    pub line: usize,
    /// What it says.
    pub rule: Rule,
}

/// Reads one `[[stream]]`. `window` is what holds where it has none of its own.
pub(super) fn stream(section: &Section<'_>, layer: Layer, window: Window) -> Option<Provisioned> {
    let source = section.required("source", "an address");
    let destination = section.required("destination", "an address");
    let qp = section.required("qp", format_args!("0 to {QP_MAX}"));
    let pkey = section.required("pkey", "0 to 65535");
    let addresses = addresses(source, destination);
    let qp = qp.and_then(|value| value.identifier(0..=QP_MAX));
    let pkey = pkey.and_then(|value| value.identifier(0..=u16::MAX));
    let namespace = namespace(section, layer);
    let common = Common::read(section, window);
    let streams =
        Match::Exact { addresses: addresses?, qp: qp?, pkey: pkey?, namespace: namespace? };
    common?.provision(section, streams)
}

/// Reads one `[[rule]]`.
pub(super) fn rule(section: &Section<'_>, window: Window) -> Option<Provisioned> {
    let sources = prefixes(section, "sources");
    let destinations = prefixes(section, "destinations");
    let qps = match section.value("qp") {
        Some(value) => pair(&value),
        None => Some((0, QP_MAX)),
    };
    let pkeys = match section.value("pkeys") {
        Some(value) => all_of(&value, "partition key", |item| item.identifier(0..=u16::MAX)),
        None => Some(Vec::new()),
    };
    let common = Common::read(section, window);
    let (sources, destinations) = (sources?, destinations?);
    for (prefixes, name, others) in
        [(&sources, "sources", &destinations), (&destinations, "destinations", &sources)]
    {
        let alone = |p: &&Prefix| others.iter().all(|other| other.family != p.family);
        if let Some(prefix) = prefixes.iter().find(alone) {
            let family = if prefix.family == Family::V4 { "IPv4" } else { "IPv6" };
            section.value(name)?.wrong(format_args!(
                "sources and destinations of the same families: {family} stands on one side only"
            ));
            return None;
        }
    }
    let streams = Match::Range { sources, destinations, qps: qps?, pkeys: pkeys? };
    common?.provision(section, streams)
}

/// Refuses a stream that another one before it takes already: its own window and attestation
/// would silently never hold.
pub(super) fn refuse_shadowed(entries: &[(Section<'_>, Provisioned)]) -> bool {
    let mut seen: HashMap<(Addresses, u32, u16), Vec<usize>> = HashMap::new();
    let mut good = true;
    for (index, (section, entry)) in entries.iter().enumerate() {
        let Match::Exact { addresses, qp, pkey, namespace } = entry.rule.streams else { continue };
        let same = seen.entry((addresses, qp, pkey)).or_default();
        let takes = |other: &&usize| match &entries[**other].1.rule.streams {
            Match::Exact { namespace: other, .. } => other.is_none() || *other == namespace,
            Match::Range { .. } => false,
        };
        if let Some(first) = same.iter().find(takes) {
            let first = &entries[*first].1;
            let problem = format!(
                "the same stream as {} on line {}, expected each stream once, and one with a \
                 namespace before one without",
                first.key, first.line
            );
            section.error("", problem);
            good = false;
        } else {
            same.push(index);
        }
    }
    good
}

/// What streams and rules have in common.
struct Common {
    window: Window,
    generation: Generation,
    revision: u64,
    attestation: Attestation,
}

impl Common {
    fn read(section: &Section<'_>, window: Window) -> Option<Self> {
        let window = section.number("window", 1..=WINDOW_MAX, window.get());
        let generation = section.choice("generation", GENERATIONS);
        let revision = section.number("revision", 0..=u64::MAX, 0);
        let attestation = attestation(&section.section("attest", ATTEST_KEYS));
        Some(Self {
            window: Window::new(window?).ok()?,
            generation: generation?,
            revision: revision?,
            attestation: attestation?,
        })
    }

    fn provision(self, section: &Section<'_>, streams: Match) -> Option<Provisioned> {
        let Self { window, generation, revision, attestation } = self;
        let rule = Rule { streams, window, attestation, generation, revision };
        Some(Provisioned { key: section.path().into(), line: section.line(), rule })
    }
}

/// All five, each there and true; every one that is not is reported, once for all sections in which
/// it is not.
// SEQ-3.2, SEQ-3.5, SEQ-3.6, SEQ-3.9
fn attestation(section: &Section<'_>) -> Option<Attestation> {
    if section.allows_withdrawals() {
        return stated(section);
    }
    if !section.is_there() {
        let problem = format!("missing, expected {}, each true", ATTEST_KEYS.join(", "));
        section.error_alike("", problem);
        return None;
    }
    let mut all = true;
    for Condition { name, establish, .. } in ATTESTATIONS {
        let Some(value) = section.value(name) else {
            section.error_alike(name, format!("missing, expected true: {establish}"));
            all = false;
            continue;
        };
        let stated = value.boolean();
        if stated == Some(false) {
            value.problem_alike(format!(
                "false, expected true, for which you have to establish that {establish}; the \
                 profile is not enabled without it"
            ));
        }
        all &= stated == Some(true);
    }
    all.then_some(Attestation::ALL)
}

/// What is attested and what is not, for who may take back what was.
// SEQ-3.6
fn stated(section: &Section<'_>) -> Option<Attestation> {
    let of = |name| match section.value(name) {
        Some(value) => value.boolean(),
        None => Some(false),
    };
    let [send_write_only, complete_capture, all_paths, half_space, separate_namespaces] =
        ATTESTATIONS.map(|condition| of(condition.name));
    Some(Attestation {
        send_write_only: send_write_only?,
        complete_capture: complete_capture?,
        all_paths: all_paths?,
        half_space: half_space?,
        separate_namespaces: separate_namespaces?,
    })
}

fn addresses(source: Option<Value<'_>>, destination: Option<Value<'_>>) -> Option<Addresses> {
    let first = source.as_ref().and_then(address::host);
    let second = destination.as_ref().and_then(address::host);
    let (source, second) = (first?, second?);
    let pair = address::pair(source, second);
    if pair.is_none() {
        let family = if source.is_ipv4() { "IPv4" } else { "IPv6" };
        destination?.wrong(format_args!("an {family} address, as the source is"));
    }
    pair
}

/// `Some(None)` where the stream names no namespace. Where it names a part of one, it names all
/// of it: what is left out is then not there.
fn namespace(section: &Section<'_>, layer: Layer) -> Option<Option<Namespace>> {
    let vlan = section.value("vlan");
    let inner_vlan = section.value("inner_vlan");
    let segment = section.value("segment");
    if vlan.is_none() && inner_vlan.is_none() && segment.is_none() {
        return Some(None);
    }
    if let (None, Some(_)) = (&vlan, &inner_vlan) {
        section.error("vlan", format!("missing beside inner_vlan, expected 0 to {VLAN_MAX}"));
        return None;
    }
    let read_vlan = |value: &Option<Value<'_>>| match value {
        Some(value) => value.number(0..=VLAN_MAX),
        None => Some(0),
    };
    let (outer_vlan, inner_vlan) = (read_vlan(&vlan), read_vlan(&inner_vlan));
    let segment = match (segment, segment_kind(layer)) {
        (Some(value), Some(kind)) => value.number(0..=SEGMENT_MAX).map(|number| kind | number),
        (Some(value), None) => {
            let name = layer.name();
            value.wrong(format_args!("no segment where observation.layer is \"{name}\""));
            None
        }
        // Both always have a segment; GRE has one only with a key.
        (None, _) if matches!(layer, Layer::Vxlan | Layer::Geneve) => {
            let name = layer.name();
            let expected =
                format!("expected 0 to {SEGMENT_MAX}, as every \"{name}\" frame has one");
            section.error("segment", format!("missing beside vlan, {expected}"));
            None
        }
        (None, _) => Some(0),
    };
    let (outer_vlan, inner_vlan, segment) = (outer_vlan?, inner_vlan?, segment?);
    Some(Some(Namespace { outer_vlan, inner_vlan, segment }))
}

/// The top octet that [`Namespace::segment`] has at a layer, if it has a segment there.
pub(crate) fn segment_kind(layer: Layer) -> Option<u32> {
    match layer {
        Layer::Vxlan => Some(0x01 << 24),
        Layer::Gre => Some(0x02 << 24),
        Layer::Geneve => Some(0x80 << 24),
        Layer::Outer | Layer::Erspan => None,
    }
}

fn prefixes(section: &Section<'_>, name: &'static str) -> Option<Vec<Prefix>> {
    let value = section.required(name, "an array of address ranges")?;
    all_of(&value, "address range", address::prefix)
}

/// First and last queue pair.
fn pair(value: &Value<'_>) -> Option<(u32, u32)> {
    let items = all_of(value, "queue pair", |item| item.identifier(0..=QP_MAX))?;
    match items[..] {
        [first, last] if first <= last => Some((first, last)),
        _ => {
            value.wrong("[first, last], the first not above the last");
            None
        }
    }
}

/// Every item of an array that is not empty; all wrong ones are reported.
fn all_of<'d, T>(
    value: &Value<'d>,
    what: &str,
    read: impl Fn(&Value<'d>) -> Option<T>,
) -> Option<Vec<T>> {
    let items = value.list(what)?;
    let read: Vec<Option<T>> = items.iter().map(read).collect();
    read.into_iter().collect()
}
