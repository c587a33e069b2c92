//! What a device's configuration would do.

use std::fmt;

use observe::meter::{Meter, WhenFull};
use observe::pfc::qualify::{Condition, Ground};
use observe::provision::{Generation, Match, Prefix, Rule};
use wire::frame::{Layer, Namespace};

use super::manage::write_manage;
use super::{counted, write_classes, write_elements, write_limits};
use crate::config::{
    Account, Agent, AgentLimits, Device, Export, Icrc, Interface, ManageLimits, MeterLimits, Pace,
    PfcExport, PfcKind, PfcLimits, PfcSource, Provisioned, QueueKind, QueueLimits, QueueTelemetry,
    Replay, Security, Server, Sources, printable, shown, shown_prefix,
};

pub(super) fn write_device(f: &mut fmt::Formatter<'_>, device: &Device) -> fmt::Result {
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
        write_pfc(f, pfc, at.point)?;
    }
    if let Some(queue) = &device.queue {
        write_queue(f, queue)?;
    }
    if let Some(manage) = &device.manage {
        write_manage(f, manage)?;
    }
    write_agent(f, &device.agent)?;
    write_exports(f, &device.exports)?;
    write_memory(f, device)?;
    write_limits(f, "meter", metering.limits.rows(), MeterLimits::TABLE)?;
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

/// What it may come to need.
fn write_memory(f: &mut fmt::Formatter<'_>, device: &Device) -> fmt::Result {
    // Nothing is kept of streams where none is metered.
    if !device.provisioned.is_empty() {
        let octets = u64::try_from(Meter::CONTEXT_OCTETS).unwrap_or(u64::MAX);
        let limits = &device.metering.limits;
        let labels = limits.labels_octets_max;
        let mebi = limits.contexts_max.saturating_mul(octets).saturating_add(labels) >> 20;
        writeln!(f, "memory      up to about {mebi} MiB for streams and labels at their limits")?;
    }
    let Some(manage) = &device.manage else { return Ok(()) };
    let limits = manage.limits;
    let each = limits.subscriptions_max.saturating_mul(limits.subscription_octets_max);
    let (octets, key) = match each < limits.subscriptions_octets_max {
        true => (each, "subscriptions_max times subscription_octets_max"),
        false => (limits.subscriptions_octets_max, "subscriptions_octets_max"),
    };
    let mebi = octets >> 20;
    writeln!(f, "memory      up to {mebi} MiB for what subscribers do not read: {key} of [manage]")
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
fn write_pfc(f: &mut fmt::Formatter<'_>, pfc: &PfcExport, point: u64) -> fmt::Result {
    writeln!(f, "PFC         counters, read every {} ms", pfc.poll_interval.as_millis())?;
    for source in &pfc.sources {
        write_pfc_source(f, source, pfc.instance_ids)?;
    }
    write_meetings(f, &pfc.sources, point)?;
    if pfc.sources.is_empty() {
        writeln!(f, "  warning: no [[pfc.source]], so no counter is exported")?;
    }
    write_classes(f, &pfc.classes)
}

/// Sources whose ports may turn out to have equal numbers.
// PFC-id.1
fn write_meetings(f: &mut fmt::Formatter<'_>, sources: &[PfcSource], point: u64) -> fmt::Result {
    let exports = |source: &PfcSource| source.qualified.map(|qualified| qualified.is_some());
    for (at, source) in sources.iter().enumerate() {
        for other in &sources[at + 1..] {
            let open = source.has_every_port() || other.has_every_port();
            let same = source.point.unwrap_or(point) == other.point.unwrap_or(point);
            let both = exports(source).iter().zip(exports(other)).any(|(a, b)| *a && b);
            if open && same && both {
                writeln!(
                    f,
                    "  warning: {} and {} have one observation point: a port of one with the \
                     interface number of a port of the other has no reading; a point of its own \
                     (pfc.source.point) helps",
                    source.key, other.key
                )?;
            }
        }
    }
    Ok(())
}

fn write_pfc_source(
    f: &mut fmt::Formatter<'_>,
    source: &PfcSource,
    instance_ids: bool,
) -> fmt::Result {
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
        match source.number(port) {
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
    match (source.resets_show(), instance_ids) {
        (true, true) => writeln!(
            f,
            "    resets: the operator says that they show, so records carry pfcCounterInstanceId, \
             an element of ours"
        ),
        (true, false) => writeln!(
            f,
            "    resets: the operator says that they show; records do not say so: no \
             pfc.instance_ids"
        ),
        (false, true) => writeln!(
            f,
            "    warning: nobody says that resets show (resets = \"shown\"), so its records carry \
             no pfcCounterInstanceId and no interval is exact"
        ),
        (false, false) => writeln!(f, "    resets: nobody says that they show"),
    }
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

fn joined(prefixes: &[Prefix]) -> String {
    let shown: Vec<String> = prefixes.iter().map(|p| shown_prefix(p).to_string()).collect();
    shown.join(" ")
}
