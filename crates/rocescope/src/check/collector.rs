//! What a collector's configuration would do.

use std::fmt;

use super::{counted, write_classes, write_elements, write_limits, write_tls};
use crate::config::{
    Beside, Collector, CollectorLimits, Http, Ipfix, PeerIdentity, PfcDevice, PfcDevicePort,
    PfcFlows, QueueClient, QueueDevice, QueueMode, Role, Server, printable, shown_prefix,
};

pub(super) fn write_collector(f: &mut fmt::Formatter<'_>, collector: &Collector) -> fmt::Result {
    match &collector.ipfix {
        Some(ipfix) => write_ipfix(f, ipfix)?,
        None => writeln!(f, "listens     nowhere: no [ipfix], so nothing is received over IPFIX")?,
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

fn write_ipfix(f: &mut fmt::Formatter<'_>, ipfix: &Ipfix) -> fmt::Result {
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
    Ok(())
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
