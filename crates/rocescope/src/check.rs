//! `rocescope check`: whether a configuration file can be taken, and what it would do.
//!
//! It opens no socket and no interface. It looks whether the files that are named are there, and reads
//! those that an agent has to understand before it begins.

use std::fmt::{self, Display};
use std::fs::File;
use std::path::Path;

use manage::access::Subject;
use observe::meter::{Meter, WhenFull};
use observe::pfc::qualify::{Condition, Ground};
use observe::provision::{Generation, Match, Prefix, Rule};
use wire::element::{DraftElement, Mapping, PEN_DOCUMENTATION};
use wire::frame::{Layer, Namespace};

use crate::agent;
use crate::config::{
    self, Account, Agent, AgentLimits, Beside, Collector, CollectorLimits, Config, ConfigError,
    Device, Export, Http, HttpTls, Icrc, Interface, Limit, Login, Manage, ManageLimits,
    MeterLimits, NamedFile, Netconf, Pace, PeerIdentity, PfcClasses, PfcDevice, PfcDevicePort,
    PfcExport, PfcFlows, PfcKind, PfcLimits, PfcSource, Proof, Provisioned, QueueClient,
    QueueDevice, QueueKind, QueueLimits, QueueMode, QueueTelemetry, Replay, Restconf, Role,
    Security, Server, Sources, printable, shown, shown_prefix,
};

/// What a configuration file would do; printed by its [`Display`].
#[derive(Clone, Debug)]
pub struct Plan {
    file: String,
    config: Config,
}

/// Reads a configuration file of either kind and looks whether the files that it names are there.
///
/// # Errors
/// Everything that is wrong, in the order of the file.
pub fn check(path: &Path) -> Result<Plan, Vec<ConfigError>> {
    let config = config::read(path)?;
    let file = path.display().to_string();
    let mut errors = Vec::new();
    let mut expect_file = |named: &NamedFile| {
        if let Err(problem) = readable(&named.path) {
            errors.push(of_named(&file, named, format!("{problem}, expected a file to read")));
        }
    };
    match &config {
        Config::Device(device) => {
            device.exports.iter().flat_map(Export::files).for_each(&mut expect_file);
            device.sources.files.iter().for_each(|replay| expect_file(&replay.file));
            device.queue_files().for_each(&mut expect_file);
            device.manage.iter().flat_map(Manage::files).for_each(&mut expect_file);
        }
        Config::Collector(collector) => {
            let ipfix = &collector.ipfix;
            [&ipfix.certificate, &ipfix.private_key, &ipfix.authority]
                .into_iter()
                .chain(&ipfix.revocation)
                .chain(collector.http.files())
                .chain(collector.queues.iter().flat_map(QueueDevice::files))
                .for_each(&mut expect_file);
            let directory = &collector.store.directory;
            if directory.path.exists() && !directory.path.is_dir() {
                let problem = format!("{directory} is a file, expected a directory or nothing yet");
                errors.push(of_named(&file, directory, problem));
            }
        }
    }
    // What is not there was said.
    if let (Config::Device(device), true) = (&config, errors.is_empty()) {
        errors.extend(agent::refusals(device).into_iter().map(|(key, line, problem)| {
            ConfigError { file: file.clone(), line, column: None, key, problem }
        }));
    }
    errors.sort_by_key(|error: &ConfigError| error.line);
    if errors.is_empty() { Ok(Plan { file, config }) } else { Err(errors) }
}

/// Whether a file is there to be read; anything but a plain one is not opened.
pub(crate) fn readable(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let about = path.metadata().map_err(|error| format!("{shown}: {error}"))?;
    if about.is_dir() {
        return Err(format!("{shown} is a directory"));
    }
    // Opening anything but a plain file, such as a pipe, could do something.
    if about.is_file() {
        File::open(path).map_err(|error| format!("{shown}: {error}"))?;
    }
    Ok(())
}

fn of_named(file: &str, named: &NamedFile, problem: String) -> ConfigError {
    ConfigError {
        file: file.into(),
        line: Some(named.line),
        column: None,
        key: named.key.clone(),
        problem,
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = printable(&self.file);
        match &self.config {
            Config::Device(device) => {
                writeln!(f, "{file}: a device's configuration, for meter and agent")?;
                write_device(f, device)
            }
            Config::Collector(collector) => {
                writeln!(f, "{file}: a collector's configuration")?;
                write_collector(f, collector)
            }
        }
    }
}

fn write_device(f: &mut fmt::Formatter<'_>, device: &Device) -> fmt::Result {
    let (at, metering) = (&device.observation, &device.metering);
    let frames = if at.sliced { ", frames that the mirror may have cut" } else { "" };
    writeln!(f, "observes    layer {}{frames}", at.layer.name())?;
    writeln!(f, "as          observation domain {}, observation point {}", at.domain, at.point)?;
    write_elements(f, &device.elements)?;
    let icrc = match metering.icrc {
        Icrc::Ignore => "not checked",
        Icrc::Check => "checked; a packet that fails is a fault of the capture",
    };
    writeln!(f, "ICRC        {icrc}")?;
    let full = match metering.when_full {
        WhenFull::Refuse => "a new stream is refused and counted",
        WhenFull::Evict => "a quiet stream makes room, its epoch closing with stateExhaustion",
    };
    writeln!(f, "when full   {full}")?;
    match metering.idle_timeout {
        Some(idle) => writeln!(f, "when idle   an epoch closes after {} s", idle.as_secs())?,
        None => writeln!(f, "when idle   an epoch stays open")?,
    }
    let is_stream = |entry: &&Provisioned| matches!(entry.rule.streams, Match::Exact { .. });
    let streams = device.provisioned.iter().filter(is_stream).count();
    let rules = device.provisioned.len() - streams;
    writeln!(f, "provisions  {}, {}", counted(streams, "stream"), counted(rules, "rule"))?;
    for entry in &device.provisioned {
        write!(f, "  {} on line {}: ", entry.key, entry.line)?;
        write_rule(f, &entry.rule, at.layer)?;
    }
    if device.provisioned.is_empty() {
        writeln!(f, "  warning: no [[stream]] and no [[rule]], so nothing is metered")?;
    }
    write_sources(f, &device.sources)?;
    if let Some(pfc) = &device.pfc {
        write_pfc(f, pfc)?;
    }
    if let Some(queue) = &device.queue {
        write_queue(f, queue)?;
    }
    if let Some(manage) = &device.manage {
        write_manage(f, manage)?;
    }
    write_agent(f, &device.agent)?;
    write_exports(f, &device.exports)?;
    let octets = u64::try_from(Meter::CONTEXT_OCTETS).unwrap_or(u64::MAX);
    let limits = &metering.limits;
    let mebi =
        limits.contexts_max.saturating_mul(octets).saturating_add(limits.labels_octets_max) >> 20;
    writeln!(f, "memory      up to about {mebi} MiB for streams and labels at their limits")?;
    write_limits(f, "meter", limits.rows(), MeterLimits::TABLE)?;
    write_limits(f, "agent", device.agent.limits.rows(), AgentLimits::TABLE)?;
    if let Some(pfc) = &device.pfc {
        write_limits(f, "pfc", pfc.limits.rows(), PfcLimits::TABLE)?;
    }
    if let Some(queue) = &device.queue {
        write_limits(f, "queue", queue.limits.rows(), QueueLimits::TABLE)?;
    }
    match &device.manage {
        Some(manage) => write_limits(f, "manage", manage.limits.rows(), ManageLimits::TABLE),
        None => Ok(()),
    }
}

/// Where queue telemetry is served, and to whom.
// QUE-sec.1
fn write_manage(f: &mut fmt::Formatter<'_>, manage: &Manage) -> fmt::Result {
    if let Some(Restconf { listen, tls }) = &manage.restconf {
        writeln!(f, "RESTCONF    https://{listen}/restconf: what queues did, to be read")?;
        write_tls(f, tls)?;
    }
    if let Some(Netconf { listen, host_key }) = &manage.netconf {
        writeln!(f, "NETCONF     over SSH on {listen}, with host key {host_key}")?;
    }
    if manage.restconf.is_none() && manage.netconf.is_none() {
        writeln!(
            f,
            "  warning: no [manage.restconf] and no [manage.netconf], so nothing is served"
        )?;
    }
    for Login { user, proof } in &manage.logins {
        write!(f, "  {} is who has ", printable(user))?;
        match proof {
            Proof::Https(identity) => writeln!(f, "{identity}")?,
            Proof::SshKeys(file) => writeln!(f, "a key of {file}")?,
        }
    }
    let policy = &manage.policy;
    for list in &policy.lists {
        let groups: Vec<String> =
            list.groups.iter().map(|group| printable(group).to_string()).collect();
        writeln!(f, "  rules {} for {}", printable(&list.name), groups.join(" "))?;
        for rule in &list.rules {
            let what = match (rule.read, rule.exec) {
                (true, true) => "reading and calling",
                (true, false) => "reading",
                (false, _) => "calling",
            };
            let module = rule.module.as_deref().unwrap_or("every module");
            write!(f, "    {} {what} of {}", rule.action.word(), printable(module))?;
            match &rule.subject {
                Subject::All => writeln!(f)?,
                Subject::Data(path) => writeln!(f, ", {path}")?,
                Subject::Rpc(name) => {
                    let name = name.as_deref().unwrap_or("*");
                    writeln!(f, ", operation {}", printable(name))?;
                }
                Subject::Notification(name) => {
                    let name = name.as_deref().unwrap_or("*");
                    writeln!(f, ", notification {}", printable(name))?;
                }
            }
        }
    }
    let (read, exec) = (policy.read_default.word(), policy.exec_default.word());
    writeln!(f, "  where no rule decides: {read} reading, {exec} calling")
}

/// Where measurements of queues come from.
fn write_queue(f: &mut fmt::Formatter<'_>, queue: &QueueTelemetry) -> fmt::Result {
    writeln!(f, "queues      measured by {}", counted(queue.sources.len(), "source"))?;
    for source in &queue.sources {
        write!(f, "  {} on line {}: ", source.name, source.line)?;
        match &source.kind {
            QueueKind::Socket { socket, group: Some(group) } => {
                write!(f, "events over {socket}, for group {} too", printable(group))?;
            }
            QueueKind::Socket { socket, group: None } => write!(f, "events over {socket}")?,
            QueueKind::File { file, pace: Pace::Capture } => {
                write!(f, "events of {file}, at their own pace")?;
            }
            QueueKind::File { file, pace: Pace::Fast } => write!(f, "events of {file}, at once")?,
            QueueKind::Sonic { redis, poll_interval, .. } => write!(
                f,
                "the SONiC database at {}, read every {} ms",
                printable(&redis.to_string()),
                poll_interval.as_millis()
            )?,
        }
        let (queues, edges) = (source.queues_max, source.edges_max);
        writeln!(
            f,
            "; intervals of {} ms, at most {queues} queues (queues_max), {edges} transitions that \
             wait (edges_max)",
            source.interval.as_millis()
        )?;
        if let QueueKind::Sonic { maps, .. } = &source.kind {
            for map in maps {
                let port = map.port.as_deref().unwrap_or("every port");
                writeln!(f, "    queue {} of {port} has priorities {}", map.queue, map.priorities)?;
            }
            writeln!(f, "    other queues have what the switch's own configuration maps to them")?;
        }
    }
    if queue.sources.is_empty() {
        writeln!(f, "  warning: no [[queue.source]], so no queue is measured")?;
    }
    Ok(())
}

/// Which counters are exported, and on whose word.
// PFC-count.4
fn write_pfc(f: &mut fmt::Formatter<'_>, pfc: &PfcExport) -> fmt::Result {
    let named =
        if pfc.instance_ids { ", with pfcCounterInstanceId, an element of ours" } else { "" };
    writeln!(f, "PFC         counters, read every {} ms{named}", pfc.poll_interval.as_millis())?;
    for source in &pfc.sources {
        write_pfc_source(f, source)?;
    }
    if pfc.sources.is_empty() {
        writeln!(f, "  warning: no [[pfc.source]], so no counter is exported")?;
    }
    write_classes(f, &pfc.classes)
}

fn write_classes(f: &mut fmt::Formatter<'_>, classes: &[PfcClasses]) -> fmt::Result {
    for entry in classes {
        write!(f, "  since {} ms traffic classes", entry.since_ms)?;
        if let Some(device) = &entry.device {
            write!(f, " of {device}")?;
        }
        if let Some(port) = &entry.port {
            write!(f, " at {port}")?;
        }
        f.write_str(" have priorities")?;
        entry.priorities.iter().try_for_each(|priority| write!(f, " {}", priority.get()))?;
        writeln!(f)?;
    }
    Ok(())
}

fn write_pfc_source(f: &mut fmt::Formatter<'_>, source: &PfcSource) -> fmt::Result {
    write!(f, "  {} on line {}: ", source.key, source.line)?;
    match &source.kind {
        PfcKind::Ethtool { driver } => write!(f, "statistics of driver {driver}")?,
        PfcKind::Sonic { redis, .. } => {
            write!(f, "the SONiC database at {}", printable(&redis.to_string()))?;
        }
    }
    if let Some(point) = source.point {
        write!(f, ", observation point {point}")?;
    }
    writeln!(f, "; it counts {}", source.about())?;
    for port in &source.ports {
        write!(f, "    port {}", port.name)?;
        match port.interface {
            Some(interface) => write!(f, " as interface {interface}")?,
            None => f.write_str(" by its source's own number")?,
        }
        for (what, name) in [("device", &port.device), ("port", &port.port)] {
            if let Some(name) = name {
                write!(f, ", {what} {name}")?;
            }
        }
        writeln!(f)?;
    }
    if source.ports.is_empty() {
        writeln!(f, "    every port that it has, by its own number")?;
    }
    for qualified in source.qualified.iter().flatten() {
        for (ground, verb) in [(Ground::Stated, "states"), (Ground::Attested, "attests")] {
            let said = |condition: &Condition| qualified.ground(*condition) == Some(ground);
            let names: Vec<&str> =
                Condition::ALL.iter().filter(|c| said(c)).map(|c| c.name()).collect();
            if !names.is_empty() {
                let who = if ground == Ground::Stated { "the source" } else { "the operator" };
                let word = qualified.direction().word();
                writeln!(f, "    {word}: {who} {verb} {}", names.join(" "))?;
            }
        }
    }
    Ok(())
}

fn write_sources(f: &mut fmt::Formatter<'_>, sources: &Sources) -> fmt::Result {
    for Interface { name, promiscuous, ring_octets } in &sources.interfaces {
        let mode = if *promiscuous { ", promiscuous" } else { "" };
        writeln!(f, "captures    on {name}{mode}, with a ring of {ring_octets} octets")?;
    }
    for Replay { file, pace } in &sources.files {
        let pace = match pace {
            Pace::Capture => "as its packets came",
            Pace::Fast => "as fast as it can be read",
        };
        writeln!(f, "plays       {file}, {pace}")?;
    }
    if sources.is_empty() {
        writeln!(f, "captures    nothing by itself: no [[source]]")?;
    }
    Ok(())
}

fn write_agent(f: &mut fmt::Formatter<'_>, agent: &Agent) -> fmt::Result {
    match &agent.account {
        Some(Account { user, group }) => {
            write!(f, "runs        as user {}", printable(user))?;
            if let Some(group) = group {
                write!(f, " and group {}", printable(group))?;
            }
            writeln!(f, " without privileges, once its sources are open")?;
        }
        None => writeln!(f, "runs        as whoever starts it, with all that they may do")?,
    }
    match agent.metrics_listen {
        Some(address) => writeln!(f, "metrics     on http://{address}/metrics, and /healthz")?,
        None => writeln!(f, "metrics     are not served: no agent.metrics_listen")?,
    }
    match &agent.control_socket {
        Some(socket) => writeln!(f, "control     on {socket}, for the agent's own user")?,
        None => writeln!(f, "control     by signals alone: no agent.control_socket")?,
    }
    match &agent.state_file {
        Some(file) => writeln!(f, "remembers   which streams are disabled, in {file}"),
        None => {
            writeln!(f, "remembers   which streams are disabled until it ends: no agent.state_file")
        }
    }
}

fn write_exports(f: &mut fmt::Formatter<'_>, exports: &[Export]) -> fmt::Result {
    for Export { host, port, security, report_interval, sign_of_life, .. } in exports {
        write!(f, "exports     to {host} port {port}, ")?;
        match security {
            Security::Tls { server: Server::Name { name, .. }, .. } => {
                write!(f, "whose certificate must name {name}")?;
            }
            Security::Tls { server: Server::Fingerprint(digest), .. } => {
                f.write_str("whose certificate must be sha256:")?;
                digest.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
            }
            Security::PlainToThisMachine => f.write_str("WITHOUT TLS, on this machine only")?,
        }
        let (interval, quiet) = (report_interval.as_secs(), sign_of_life.as_secs());
        writeln!(f, ", every {interval} s, unchanged epochs every {quiet} s")?;
    }
    if exports.is_empty() {
        writeln!(f, "exports     to no collector")?;
    }
    Ok(())
}

fn write_rule(f: &mut fmt::Formatter<'_>, rule: &Rule, layer: Layer) -> fmt::Result {
    match &rule.streams {
        Match::Exact { addresses, qp, pkey, namespace } => {
            let [source, destination] =
                [&addresses.source, &addresses.destination].map(|a| shown(addresses.family, a));
            write!(f, "{source} to {destination}, qp {qp}, pkey {pkey:#06x}, ")?;
            match namespace {
                Some(namespace) => write_namespace(f, namespace, layer)?,
                None => f.write_str("a stream in each VLAN and segment")?,
            }
        }
        Match::Range { sources, destinations, qps, pkeys } => {
            write!(f, "{} to {}", joined(sources), joined(destinations))?;
            write!(f, ", qp {} to {}, ", qps.0, qps.1)?;
            if pkeys.is_empty() {
                f.write_str("every pkey")?;
            } else {
                let pkeys: Vec<String> = pkeys.iter().map(|pkey| format!("{pkey:#06x}")).collect();
                write!(f, "pkey {}", pkeys.join(" "))?;
            }
        }
    }
    write!(f, ", window {}", rule.window.get())?;
    if rule.revision != 0 {
        write!(f, ", revision {}", rule.revision)?;
    }
    // SEQ-4.8
    let generation = match rule.generation {
        Generation::Unverified => "unverified: every report carries generationUnverified",
        Generation::Established => "established: every new connection has to be told to the agent",
    };
    writeln!(f, ", generation {generation}")
}

fn write_namespace(f: &mut fmt::Formatter<'_>, namespace: &Namespace, layer: Layer) -> fmt::Result {
    match namespace.outer_vlan {
        0 => f.write_str("no VLAN")?,
        vlan => write!(f, "VLAN {vlan}")?,
    }
    if namespace.inner_vlan != 0 {
        write!(f, " with inner VLAN {}", namespace.inner_vlan)?;
    }
    if namespace.segment != 0 {
        write!(f, ", {} segment {}", layer.name(), namespace.segment & 0x00ff_ffff)?;
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn joined(prefixes: &[Prefix]) -> String {
    let shown: Vec<String> = prefixes.iter().map(|p| shown_prefix(p).to_string()).collect();
    shown.join(" ")
}

fn write_elements(f: &mut fmt::Formatter<'_>, mapping: &Mapping) -> fmt::Result {
    let pen = mapping.pen();
    writeln!(f, "elements    under enterprise number {pen}")?;
    if pen == PEN_DOCUMENTATION {
        writeln!(
            f,
            "  warning: elements.pen is {pen}, the number kept for documentation (RFC 5612): use \
             one of your own where a peer is on another machine"
        )?;
    }
    for element in DraftElement::ALL {
        let id = mapping.id(element).id;
        let note = if id == element.default_id() { "" } else { ", not the default" };
        writeln!(f, "  {:<32} {id}{note}", element.name())?;
    }
    Ok(())
}

fn write_collector(f: &mut fmt::Formatter<'_>, collector: &Collector) -> fmt::Result {
    let ipfix = &collector.ipfix;
    writeln!(f, "listens     on {} for IPFIX, with mutual TLS 1.3", ipfix.listen)?;
    writeln!(f, "certificate {}, its key {}", ipfix.certificate, ipfix.private_key)?;
    writeln!(f, "trusts      {}", ipfix.authority)?;
    if let Some(revocation) = &ipfix.revocation {
        writeln!(f, "but not     what {revocation} revokes")?;
    }
    writeln!(
        f,
        "gives up    an epoch without a report for {} s, as incomplete",
        ipfix.inactivity_timeout.as_secs()
    )?;
    writeln!(f, "admits      {}", counted(ipfix.peers.len(), "peer"))?;
    for peer in &ipfix.peers {
        match &peer.identity {
            PeerIdentity::Name(name) => write!(f, "  {name}")?,
            PeerIdentity::Fingerprint(octets) => {
                f.write_str("  sha256:")?;
                octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
            }
        }
        let domains: Vec<String> = peer.domains.iter().map(u32::to_string).collect();
        writeln!(f, " for observation domain {}", domains.join(" "))?;
    }
    write_beside(f, &collector.pfc)?;
    write_queue_devices(f, &collector.queues)?;
    write_elements(f, &collector.elements)?;
    write_http(f, &collector.http)?;
    let directory = &collector.store.directory;
    let state = if directory.path.is_dir() { "which is there" } else { "which would be created" };
    writeln!(f, "stores      in {directory}, {state}")?;
    write_limits(f, "limits", collector.limits.rows(), CollectorLimits::TABLE)
}

fn write_queue_devices(f: &mut fmt::Formatter<'_>, devices: &[QueueDevice]) -> fmt::Result {
    if devices.is_empty() {
        return writeln!(f, "queues      of no device: no [[queues.device]]");
    }
    writeln!(f, "queues      of {}, over RESTCONF", counted(devices.len(), "device"))?;
    for device in devices {
        let interval = device.poll_interval.as_secs();
        write!(f, "  {} at {device}, ", printable(&device.name))?;
        match device.mode {
            QueueMode::Subscribe => {
                write!(f, "subscribed to, or asked every {interval} s where it has none of that")?;
            }
            QueueMode::Poll => write!(f, "asked every {interval} s")?,
        }
        match &device.server {
            Server::Name { name, authority } => {
                write!(f, "; its certificate names {} and is from {authority}", printable(name))?;
            }
            Server::Fingerprint(digest) => {
                f.write_str("; its certificate is sha256:")?;
                digest.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
            }
        }
        match &device.client {
            QueueClient::Certificate { certificate, private_key } => {
                writeln!(f, "; ours is {certificate}, its key {private_key}")?;
            }
            QueueClient::Token(file) => writeln!(f, "; we show the token in {file}")?,
        }
    }
    Ok(())
}

/// Which PFC counters can stand beside which flows.
// PFC-cor.1
fn write_beside(f: &mut fmt::Formatter<'_>, beside: &Beside) -> fmt::Result {
    if *beside == Beside::default() {
        return Ok(());
    }
    writeln!(f, "PFC         counters of {}", counted(beside.devices.len(), "device"))?;
    for PfcDevice { name, exporter, domain, ports } in &beside.devices {
        writeln!(f, "  {name} by {exporter} in observation domain {domain}")?;
        for PfcDevicePort { name, interface } in ports {
            writeln!(f, "    port {name} is interface {interface}")?;
        }
    }
    for entry in &beside.flows {
        let PfcFlows { exporter, domain, device, port, interface, class, .. } = entry;
        write!(f, "  flows of {exporter} in observation domain {domain}")?;
        if let Some(point) = entry.point {
            write!(f, " at observation point {point}")?;
        }
        for (word, ranges) in [("from", &entry.sources), ("to", &entry.destinations)] {
            let ranges = ranges.iter().flatten();
            ranges.enumerate().try_for_each(|(n, range)| {
                let word = if n == 0 { word } else { "or" };
                write!(f, " {word} {}", shown_prefix(range))
            })?;
        }
        writeln!(
            f,
            " are traffic class {class} at port {port} of {device}, interface {interface}"
        )?;
    }
    write_classes(f, &beside.classes)
}

// SEQ-10.1, SEQ-10.3
fn write_http(f: &mut fmt::Formatter<'_>, http: &Http) -> fmt::Result {
    let Http { serve, listen, hosts, tls, readers } = http;
    if !serve {
        return writeln!(f, "HTTP        nothing is served: http.serve = false");
    }
    writeln!(
        f,
        "HTTP        {}://{listen}/: results under /api/v1, /metrics, /healthz, /readyz",
        http.scheme()
    )?;
    if let Some(tls) = tls {
        write_tls(f, tls)?;
    }
    if !hosts.is_empty() {
        writeln!(f, "  asked for as {}", hosts.join(" "))?;
    }
    if readers.is_empty() {
        return writeln!(f, "  read by everyone on this machine");
    }
    for reader in readers {
        let what = match reader.role {
            Role::Read => "everything",
            Role::Metrics => "/metrics, /healthz and /readyz",
        };
        writeln!(f, "  {} reads {what}", reader.identity)?;
    }
    Ok(())
}

fn write_tls(f: &mut fmt::Formatter<'_>, tls: &HttpTls) -> fmt::Result {
    let HttpTls { certificate, private_key, authority, revocation } = tls;
    writeln!(f, "  TLS 1.3 with certificate {certificate}, its key {private_key}")?;
    if let Some(authority) = authority {
        write!(f, "  client certificates from {authority}")?;
        if let Some(revocation) = revocation {
            write!(f, ", but not what {revocation} revokes")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Every bound with its value. SEQ-7.10, SEQ-10.3
fn write_limits<'l>(
    f: &mut fmt::Formatter<'_>,
    section: &str,
    rows: impl Iterator<Item = (&'l Limit, u64)>,
    table: &[Limit],
) -> fmt::Result {
    let width = table.iter().map(|limit| limit.name.len()).max().unwrap_or(0);
    writeln!(f, "limits      keys of [{section}]")?;
    for (limit, value) in rows {
        let Limit { name, default, min, max, bounds } = limit;
        let range = format!("{min} to {max}, default {default}");
        writeln!(f, "  {name:<width$} {value}: {bounds} ({range})")?;
    }
    Ok(())
}
