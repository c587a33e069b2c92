//! The device side: what is observed, which streams are provisioned, and where reports go.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use observe::meter::{Limits, Settings, WhenFull};
use observe::provision::{ProvisionError, Provisioning, Rule};
use observe::window::{Labels, WINDOW_MAX, Window};
use toml::de::DeTable;
use wire::element::Mapping;
use wire::frame::Layer;

use super::limits::{AGENT_KEYS, METER_KEYS};
use super::rules::{self, Provisioned, RULE_KEYS, STREAM_KEYS};
use super::section::{Document, Section, Value};
use super::source::{self, Sources};
use super::{
    AgentLimits, Manage, MeterLimits, NamedFile, PfcExport, QueueKind, QueueTelemetry, collector,
    elements, manage, pfc, queue,
};

pub(super) const KEYS: &[&str] = &[
    "observation",
    "elements",
    "meter",
    "stream",
    "rule",
    "export",
    "source",
    "agent",
    "pfc",
    "queue",
    "manage",
];

/// W where nothing else is said.
pub(super) const WINDOW_DEFAULT: u32 = 1024;

/// Nobody waits longer than a year for a stream to go on.
const IDLE_TIMEOUT_S_MAX: u64 = 31_536_000;

const EXPORT_KEYS: &[&str] = &[
    "collector",
    "server_name",
    "fingerprint",
    "certificate",
    "key",
    "authority",
    "report_interval_s",
    "sign_of_life_s",
    "plain_tcp",
];

/// What an operator has to write to have reports sent without TLS.
pub const PLAIN_TCP_WORDS: &str = "I know that this is neither encrypted nor authenticated";

/// A device configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Where and what is observed.
    pub observation: Observation,
    /// The numbers of the drafts' elements.
    pub elements: Mapping,
    /// How it is metered.
    pub metering: Metering,
    /// The streams in their order, then the rules in theirs.
    pub provisioned: Vec<Provisioned>,
    /// Where reports go.
    pub exports: Vec<Export>,
    /// Where an agent's frames come from.
    pub sources: Sources,
    /// How an agent runs.
    pub agent: Agent,
    /// Counters of PFC frames that an agent exports.
    pub pfc: Option<PfcExport>,
    /// Queue telemetry that an agent has.
    pub queue: Option<QueueTelemetry>,
    /// Who may read it, and where.
    pub manage: Option<Manage>,
}

/// `[agent]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The Unix socket that `rocescope agent ctl` talks to.
    pub control_socket: Option<NamedFile>,
    /// Keeps which streams violations have disabled, over restarts.
    pub state_file: Option<NamedFile>,
    /// Where metrics are served, on this machine alone.
    pub metrics_listen: Option<SocketAddr>,
    /// Who the agent becomes once its interfaces are open.
    pub account: Option<Account>,
    /// Bounds.
    pub limits: AgentLimits,
}

/// `user` and `group` of `[agent]`: each a name or a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user; not root.
    pub user: String,
    /// The group; without one, that of the user.
    pub group: Option<String>,
}

/// `[observation]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Observation Domain, from 1: 0 stands for none in particular (RFC 7011, section 3.1).
    pub domain: u32,
    /// `observationPointId`.
    pub point: u64,
    /// The layer of the captured frames that is observed.
    pub layer: Layer,
    /// The mirror cuts frames without saying so: their ends say nothing about their lengths.
    pub sliced: bool,
}

/// Whether the invariant CRC of packets is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Icrc {
    /// It is not.
    #[default]
    Ignore,
    /// A packet that fails is a capture fault of the streams that its addresses name.
    Check,
}

/// `[meter]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metering {
    /// W of entries that have none of their own.
    pub window: Window,
    /// What becomes of a new stream when the table is full.
    pub when_full: WhenFull,
    /// An epoch whose stream is silent for longer than this closes; `None` never.
    pub idle_timeout: Option<Duration>,
    /// The invariant CRC.
    pub icrc: Icrc,
    /// Bounds.
    pub limits: MeterLimits,
}

/// `[[export]]`: a collector that gets the reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// `export[0]`.
    pub key: String,
    /// The collector's host name or address.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// How the way to it is protected.
    pub security: Security,
    /// How often changed epochs are reported.
    pub report_interval: Duration,
    /// How often epochs that have not changed are reported again.
    pub sign_of_life: Duration,
}

/// How the way to a collector is protected.
// SEQ-10.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS 1.3, both sides with certificates.
    Tls {
        /// How the collector is known.
        server: Server,
        /// Our certificate chain.
        certificate: NamedFile,
        /// Its private key.
        private_key: NamedFile,
    },
    /// None, and the collector is on this machine.
    PlainToThisMachine,
}

/// How a collector is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// By a name in its certificate.
    Name {
        /// The name.
        name: String,
        /// The authority that the certificate must come from.
        authority: NamedFile,
    },
    /// By the SHA-256 of its certificate, whoever signed it.
    Fingerprint([u8; 32]),
}

impl Export {
    /// The files that it needs.
    pub fn files(&self) -> Vec<&NamedFile> {
        match &self.security {
            Security::Tls { server, certificate, private_key } => match server {
                Server::Name { authority, .. } => vec![certificate, private_key, authority],
                Server::Fingerprint(_) => vec![certificate, private_key],
            },
            Security::PlainToThisMachine => Vec::new(),
        }
    }
}

impl Device {
    /// Files of queue events that are played.
    pub fn queue_files(&self) -> impl Iterator<Item = &NamedFile> {
        let sources = self.queue.iter().flat_map(|telemetry| &telemetry.sources);
        sources.filter_map(|source| match &source.kind {
            QueueKind::File { file, .. } => Some(file),
            QueueKind::Socket { .. } | QueueKind::Sonic { .. } => None,
        })
    }

    /// The rules as the meter takes them.
    ///
    /// # Errors
    /// None for a configuration that was read from a file; one that was built by hand can lack an
    /// attestation or hold more rules than its limit.
    pub fn provisioning(&self) -> Result<Provisioning, ProvisionError> {
        let (rules, rules_max) = self.rules();
        Provisioning::new(rules, rules_max)
    }

    /// As [`Device::provisioning`], of a configuration that takes attestations back.
    ///
    /// # Errors
    /// None for a configuration that was read from a file.
    pub fn provisioning_with_withdrawn(&self) -> Result<Provisioning, ProvisionError> {
        let (rules, rules_max) = self.rules();
        Provisioning::with_withdrawn(rules, rules_max)
    }

    /// The entries that lack an attestation, each with the first that it lacks.
    pub fn withdrawn(&self) -> impl Iterator<Item = (&Provisioned, &'static str)> {
        self.provisioned.iter().filter_map(|entry| Some((entry, entry.rule.attestation.missing()?)))
    }

    fn rules(&self) -> (Vec<Rule>, usize) {
        let rules = self.provisioned.iter().map(|entry| entry.rule.clone()).collect();
        let rules_max = usize::try_from(self.metering.limits.rules_max).unwrap_or(usize::MAX);
        (rules, rules_max)
    }
}

impl Metering {
    /// As the meter takes it. `periodic` says whether open epochs are reported, and `seed` must
    /// be unpredictable.
    pub fn settings(&self, periodic: bool, seed: u64) -> Settings {
        let limits = Limits {
            contexts_max: u32::try_from(self.limits.contexts_max).unwrap_or(u32::MAX),
            labels_octets_max: self.limits.labels_octets_max,
            report_id_max: self.limits.report_id_max,
        };
        let idle_ns = self.idle_timeout.map(|t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX));
        Settings { limits, when_full: self.when_full, idle_ns, periodic, seed }
    }
}

/// Reads a device configuration out of the table at the top of a file.
pub(super) fn read<'d>(
    document: &'d Document<'d>,
    table: &'d DeTable<'d>,
    directory: &Path,
) -> Option<Device> {
    let top = Section::top(document, table, KEYS);
    let observation =
        observation(&top.section("observation", &["domain", "point", "layer", "frames"]));
    let elements = elements::read(&top.section("elements", elements::KEYS));
    let meter_section = top.section("meter", METER_KEYS);
    let metering = metering(&meter_section);
    // Entries are read whatever else is wrong, so that their own errors are seen too.
    let layer = observation.map_or(Layer::Outer, |observation| observation.layer);
    let window = metering.map_or(Window::new(WINDOW_DEFAULT).ok(), |m| Some(m.window))?;
    let provisioned = provisioned(&top, layer, window);
    let exports: Vec<Option<Export>> =
        top.sections("export", EXPORT_KEYS).iter().map(|s| export(s, directory)).collect();
    let sources = source::read(&top, directory);
    let agent = agent(&top.section("agent", AGENT_KEYS), directory);
    let pfc = pfc::read(&top, directory, observation.map(|observation| observation.point));
    let queue = queue::read(&top, directory);
    let manage = manage::read(&top, directory);
    let (metering, provisioned) = (metering?, provisioned?);
    fits(&top, &meter_section, &metering, &provisioned)?;
    Some(Device {
        observation: observation?,
        elements: elements?,
        metering,
        provisioned,
        exports: exports.into_iter().collect::<Option<_>>()?,
        sources: sources?,
        agent: agent?,
        pfc: pfc?,
        queue: queue?,
        manage: manage?,
    })
}

fn observation(section: &Section<'_>) -> Option<Observation> {
    let domain = section.number("domain", 1..=u32::MAX, 1);
    let point = section.number("point", 0..=u64::MAX, 1);
    let layer = section.choice("layer", &Layer::ALL.map(|layer| (layer.name(), layer)));
    let sliced = section.choice("frames", &[("whole", false), ("sliced", true)]);
    Some(Observation { domain: domain?, point: point?, layer: layer?, sliced: sliced? })
}

fn metering(section: &Section<'_>) -> Option<Metering> {
    let window = section.number("window", 1..=WINDOW_MAX, WINDOW_DEFAULT);
    let when_full =
        section.choice("when_full", &[("refuse", WhenFull::Refuse), ("evict", WhenFull::Evict)]);
    let idle_timeout = match section.value("idle_timeout_s") {
        Some(value) => value.number(1..=IDLE_TIMEOUT_S_MAX).map(|s| Some(Duration::from_secs(s))),
        None => Some(None),
    };
    let icrc = section.choice("icrc", &[("ignore", Icrc::Ignore), ("check", Icrc::Check)]);
    let limits = MeterLimits::read(section);
    Some(Metering {
        window: Window::new(window?).ok()?,
        when_full: when_full?,
        idle_timeout: idle_timeout?,
        icrc: icrc?,
        limits: limits?,
    })
}

fn provisioned(top: &Section<'_>, layer: Layer, window: Window) -> Option<Vec<Provisioned>> {
    let mut good = true;
    let mut entries = Vec::new();
    for section in top.sections("stream", STREAM_KEYS) {
        match rules::stream(&section, layer, window) {
            Some(entry) => entries.push((section, entry)),
            None => good = false,
        }
    }
    good &= rules::refuse_shadowed(&entries);
    for section in top.sections("rule", RULE_KEYS) {
        match rules::rule(&section, window) {
            Some(entry) => entries.push((section, entry)),
            None => good = false,
        }
    }
    good.then(|| entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Whether the bounds have room for what is provisioned.
// SEQ-10.3
fn fits(
    top: &Section<'_>,
    section: &Section<'_>,
    metering: &Metering,
    provisioned: &[Provisioned],
) -> Option<()> {
    let limits = &metering.limits;
    let rules = u64::try_from(provisioned.len()).unwrap_or(u64::MAX);
    if rules > limits.rules_max {
        let at = &provisioned[usize::try_from(limits.rules_max).unwrap_or(usize::MAX)];
        let problem =
            format!("one of {rules} streams and rules, expected at most {}", limits.rules_max);
        top.document.error(top.document.start_of(at.line), &at.key, problem);
        return None;
    }
    let widest = provisioned.iter().max_by_key(|entry| entry.rule.window);
    if let Some(entry) = widest
        && Labels::octets(entry.rule.window) > limits.labels_octets_max
    {
        let window = entry.rule.window.get();
        let need = Labels::octets(entry.rule.window);
        let expected = format!("at least {need}, which the window {window} of {} takes", entry.key);
        match section.value("labels_octets_max") {
            Some(value) => value.wrong(expected),
            None => section.error("labels_octets_max", format!("too small, expected {expected}")),
        }
        return None;
    }
    Some(())
}

fn agent(section: &Section<'_>, directory: &Path) -> Option<Agent> {
    let path = |name| match section.value(name) {
        Some(value) => named(&value, directory).map(Some),
        None => Some(None),
    };
    let (control_socket, state_file) = (path("control_socket"), path("state_file"));
    let metrics_listen = match section.value("metrics_listen") {
        Some(value) => metrics_listen(&value).map(Some),
        None => Some(None),
    };
    let account = account(section);
    let limits = AgentLimits::read(section);
    Some(Agent {
        control_socket: control_socket?,
        state_file: state_file?,
        metrics_listen: metrics_listen?,
        account: account?,
        limits: limits?,
    })
}

/// Whoever reads the metrics is not asked who they are, so only this machine may.
// SEQ-10.1
fn metrics_listen(value: &Value<'_>) -> Option<SocketAddr> {
    let expected = "an address of this machine alone and a port, such as \"127.0.0.1:9740\"";
    let address = |text: &str| text.parse::<SocketAddr>().ok();
    value.parsed(expected, |text| address(text).filter(|address| address.ip().is_loopback()))
}

fn account(section: &Section<'_>) -> Option<Option<Account>> {
    let name = |value: &Value<'_>, expected: &str| {
        value.parsed(expected, |text| is_account_name(text).then(|| text.to_owned()))
    };
    let group = match section.value("group") {
        Some(value) => Some(name(&value, "the name or the number of a group, as a text")?),
        None => None,
    };
    let Some(value) = section.value("user") else {
        return match section.value("group") {
            Some(value) => {
                value.problem("without a user, expected beside one".into());
                None
            }
            None => Some(None),
        };
    };
    let user = name(&value, "the name or the number of a user, as a text")?;
    if ["root", "0"].contains(&user.as_str()) {
        value.wrong("a user that may do less than root");
        return None;
    }
    Some(Some(Account { user, group }))
}

/// Octets of the name of a user or a group: the C library's `LOGIN_NAME_MAX`, its end not counted.
const ACCOUNT_NAME_MAX: usize = 255;

pub(super) fn is_account_name(text: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_graphic() && !b":/".contains(&b);
    (1..=ACCOUNT_NAME_MAX).contains(&text.len()) && text.bytes().all(is_name)
}

fn export(section: &Section<'_>, directory: &Path) -> Option<Export> {
    let endpoint = section
        .required("collector", "\"host:port\"")
        .and_then(|value| value.parsed("\"host:port\", the port 1 to 65535", endpoint));
    let security = match section.value("plain_tcp") {
        Some(value) => plain(section, &value, endpoint.as_ref().map(|(host, _)| host.as_str())),
        None => tls(section, endpoint.as_ref().map(|(host, _)| host.as_str()), directory),
    };
    let interval = section.number("report_interval_s", 1..=86_400, 10);
    let sign_of_life = section.number("sign_of_life_s", 1..=86_400, 20);
    let (host, port) = endpoint?;
    Some(Export {
        key: section.path().into(),
        host,
        port,
        security: security?,
        report_interval: Duration::from_secs(interval?),
        sign_of_life: Duration::from_secs(sign_of_life?),
    })
}

fn tls(section: &Section<'_>, host: Option<&str>, directory: &Path) -> Option<Security> {
    let certificate = file(section, "certificate", directory);
    let private_key = file(section, "key", directory);
    let server = server(section, host, "collector", directory);
    Some(Security::Tls { server: server?, certificate: certificate?, private_key: private_key? })
}

/// How a server is known that is reached at a host.
// SEQ-10.1
pub(super) fn server(
    section: &Section<'_>,
    host: Option<&str>,
    what: &str,
    directory: &Path,
) -> Option<Server> {
    let server_name = match section.value("server_name") {
        Some(value) => value.parsed(format_args!("the name in the {what}'s certificate"), |text| {
            is_host(text).then(|| Some(text.to_owned()))
        }),
        None => Some(None),
    };
    match section.value("fingerprint") {
        Some(value) => {
            let digest = value.parsed("\"sha256:\" and 64 hexadecimal digits", |text| {
                collector::digest(text.strip_prefix("sha256:")?).map(Server::Fingerprint)
            });
            for name in ["server_name", "authority"] {
                if let Some(value) = section.value(name) {
                    value.problem("beside a fingerprint, expected one of them".into());
                    return None;
                }
            }
            digest
        }
        None => file(section, "authority", directory).and_then(|authority| {
            Some(Server::Name { name: server_name?.or(host.map(str::to_owned))?, authority })
        }),
    }
}

/// Without TLS only to this machine, and only on the operator's own words.
// SEQ-10.1
fn plain(section: &Section<'_>, words: &Value<'_>, host: Option<&str>) -> Option<Security> {
    let expected = format!("\"{PLAIN_TCP_WORDS}\", or TLS and no plain_tcp");
    words.parsed(expected, |text| (text == PLAIN_TCP_WORDS).then_some(()))?;
    for name in ["server_name", "fingerprint", "certificate", "key", "authority"] {
        if let Some(value) = section.value(name) {
            value.problem("beside plain_tcp, expected one of them".into());
            return None;
        }
    }
    let address = host?.parse::<std::net::IpAddr>().ok();
    if !address.is_some_and(|address| address.is_loopback()) {
        let expected = "127.0.0.1 or ::1: without TLS reports do not leave this machine";
        section.value("collector")?.wrong(expected);
        return None;
    }
    Some(Security::PlainToThisMachine)
}

/// A file that must be named; its path is relative to `directory`.
pub(super) fn file(
    section: &Section<'_>,
    name: &'static str,
    directory: &Path,
) -> Option<NamedFile> {
    let value = section.required(name, "the path of a PEM file")?;
    named(&value, directory)
}

pub(super) fn named(value: &Value<'_>, directory: &Path) -> Option<NamedFile> {
    let path = value.parsed("a path", |text| {
        (!text.is_empty() && !text.contains('\0')).then(|| directory.join(text))
    })?;
    Some(NamedFile { path, key: value.path().into(), line: value.line() })
}

pub(super) fn endpoint(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let host = match host.strip_prefix('[') {
        Some(rest) => {
            let address = rest.strip_suffix(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            address
        }
        None => Some(host).filter(|host| !host.contains(':') && is_host(host))?,
    };
    Some((host.into(), port))
}

fn is_host(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok() || is_dns_name(text)
}

/// Whether a text is a DNS name of letters, digits and hyphens, without wildcards.
pub(super) fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
