//! `[pfc]` of a collector: which devices its PFC counters are of, what their ports are called, where
//! flows were seen, and which priority their traffic class had there since when.
//!
//! No record says any of that, so nothing is known of it that does not stand here: a flow record
//! names neither an interface nor a traffic class (PFC draft, introduction and record identity).
// PFC-cor.1

use std::collections::BTreeSet;

use observe::pfc::Priority;
use observe::pfc::beside::{Apart, throughout};
use observe::provision::Prefix;
use wire::frame::Addresses;

use super::pfc::{self, CLASSES_KEYS, PfcClasses};
use super::section::{Section, Value};
use super::{Peer, PeerIdentity, address};

pub(super) const KEYS: &[&str] = &["device", "flows", "classes"];
const DEVICE_KEYS: &[&str] = &["name", "exporter", "domain", "port"];
const PORT_KEYS: &[&str] = &["name", "interface"];
const FLOWS_KEYS: &[&str] =
    &["exporter", "domain", "point", "sources", "destinations", "device", "port", "class"];

/// Traffic classes that a list of priorities can have.
const CLASSES_MAX: u64 = 256;

/// `[pfc]` of a collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Devices with PFC counters.
    pub devices: Vec<PfcDevice>,
    /// Where flows were seen; the first that takes in a flow record holds.
    pub flows: Vec<PfcFlows>,
    /// Which priority a traffic class has, where, since when.
    pub classes: Vec<PfcClasses>,
}

/// `[[pfc.device]]`: whose PFC counters are of which device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcDevice {
    /// What people call it.
    pub name: String,
    /// The peer that exports its counters.
    pub exporter: String,
    /// Their Observation Domain.
    pub domain: u32,
    /// Its ports.
    pub ports: Vec<PfcDevicePort>,
}

/// `[[pfc.device.port]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcDevicePort {
    /// What people call it.
    pub name: String,
    /// `ingressPhysicalInterface` and `egressPhysicalInterface` of its counters.
    pub interface: u32,
}

/// `[[pfc.flows]]`: at which port flow records are about, and what traffic they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfcFlows {
    /// The peer that exports the flow records.
    pub exporter: String,
    /// Their Observation Domain.
    pub domain: u32,
    /// Their Observation Point, or all.
    pub point: Option<u64>,
    /// Source addresses, or all.
    pub sources: Option<Vec<Prefix>>,
    /// Destination addresses, or all.
    pub destinations: Option<Vec<Prefix>>,
    /// The device at which they were seen.
    pub device: String,
    /// Its port.
    pub port: String,
    /// The port's number.
    pub interface: u32,
    /// Their traffic class.
    pub class: usize,
}

/// A flow record, as far as it says where it is from.
#[derive(Clone, Copy, Debug)]
pub struct FlowOf<'a> {
    /// The peer that exported it.
    pub exporter: &'a str,
    /// Its Observation Domain.
    pub domain: u32,
    /// Its Observation Point.
    pub point: u64,
    /// Its addresses.
    pub addresses: &'a Addresses,
}

impl Beside {
    /// The device and the port that a counter is of; the name of the port where it has one.
    pub fn named(
        &self,
        exporter: &str,
        domain: u32,
        interface: u32,
    ) -> Option<(&str, Option<&str>)> {
        let mut of = self.devices.iter().filter(|d| d.exporter == exporter && d.domain == domain);
        let device = of.next()?;
        let port = device.ports.iter().find(|port| port.interface == interface);
        Some((&device.name, port.map(|port| port.name.as_str())))
    }

    /// The device with a name.
    pub fn device(&self, name: &str) -> Option<&PfcDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Where a flow was seen.
    // PFC-cor.1: nothing is assumed of a flow that no entry takes in.
    pub fn place(&self, flow: &FlowOf<'_>) -> Option<&PfcFlows> {
        let lies = |ranges: &Option<Vec<Prefix>>, address: &[u8; 16]| {
            let family = flow.addresses.family;
            ranges.as_ref().is_none_or(|all| all.iter().any(|p| p.contains(family, address)))
        };
        self.flows.iter().find(|entry| {
            entry.exporter == flow.exporter
                && entry.domain == flow.domain
                && entry.point.is_none_or(|point| point == flow.point)
                && lies(&entry.sources, &flow.addresses.source)
                && lies(&entry.destinations, &flow.addresses.destination)
        })
    }

    /// The priority that a traffic class had at a port from a first to a last time.
    ///
    /// # Errors
    /// It is not known for all of that time, or changed in it.
    // PFC-cor.1
    pub fn priority(
        &self,
        place: &PfcFlows,
        first_ms: u64,
        last_ms: u64,
    ) -> Result<Priority, Apart> {
        let at = |time_ms| {
            pfc::priority(&self.classes, &place.device, &place.port, place.class, time_ms)
        };
        throughout(first_ms, last_ms, at, self.classes.iter().map(|entry| entry.since_ms))
    }
}

/// Reads `[pfc]` of a collector, whose exporters are among its peers where these are known.
pub(super) fn read(top: &Section<'_>, peers: Option<&[Peer]>) -> Option<Beside> {
    let section = top.section("pfc", KEYS);
    let exporters = |section: &Section<'_>| exporter(section, peers);
    let devices: Vec<_> =
        section.sections("device", DEVICE_KEYS).iter().map(|s| device(s, exporters)).collect();
    let flows = section.sections("flows", FLOWS_KEYS);
    let classes: Vec<_> =
        section.sections("classes", CLASSES_KEYS).iter().map(pfc::classes).collect();
    let devices: Vec<PfcDevice> = devices.into_iter().collect::<Option<_>>()?;
    distinct(&section, &devices)?;
    let flows: Vec<_> = flows.iter().map(|s| flow(s, &devices, exporters)).collect();
    let flows = flows.into_iter().collect::<Option<_>>()?;
    Some(Beside { devices, flows, classes: classes.into_iter().collect::<Option<_>>()? })
}

/// The peer that a key names.
fn exporter(section: &Section<'_>, peers: Option<&[Peer]>) -> Option<String> {
    let expected = "the name or fingerprint of an [[ipfix.peer]]";
    let value = section.required("exporter", expected)?;
    value.parsed(expected, |text| {
        let text = text.to_ascii_lowercase().replace(':', "").replacen("sha256", "sha256:", 1);
        // Where the peers are wrong, that is said of them.
        let Some(peers) = peers else { return Some(text) };
        peers.iter().map(|peer| shown(&peer.identity)).find(|name| *name == text)
    })
}

/// A peer as sessions name it.
fn shown(identity: &PeerIdentity) -> String {
    match identity {
        PeerIdentity::Name(name) => name.clone(),
        PeerIdentity::Fingerprint(octets) => {
            let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            format!("sha256:{digits}")
        }
    }
}

fn domain(section: &Section<'_>) -> Option<u32> {
    section.required("domain", "an Observation Domain")?.number(0..=u32::MAX)
}

fn name(section: &Section<'_>, key: &'static str, expected: &str) -> Option<String> {
    section.required(key, expected).and_then(|value| pfc::name_of(&value, expected))
}

fn device(
    section: &Section<'_>,
    exporter: impl Fn(&Section<'_>) -> Option<String>,
) -> Option<PfcDevice> {
    let name = name(section, "name", "the name of a device, 1 to 64 octets");
    let (exporter, domain) = (exporter(section), domain(section));
    let ports: Vec<_> = section.sections("port", PORT_KEYS).iter().map(port).collect();
    let ports = ports.into_iter().collect::<Option<_>>();
    Some(PfcDevice { name: name?, exporter: exporter?, domain: domain?, ports: ports? })
}

fn port(section: &Section<'_>) -> Option<PfcDevicePort> {
    let name = name(section, "name", "the name of a port, 1 to 64 octets");
    let interface = section
        .required("interface", "the number that its counters have")
        .and_then(|value| value.number(0..=u32::MAX));
    Some(PfcDevicePort { name: name?, interface: interface? })
}

/// Every device once, and of it every name and number.
// PFC-id.1
fn distinct(section: &Section<'_>, devices: &[PfcDevice]) -> Option<()> {
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    for device in devices {
        let PfcDevice { name, exporter, domain, ports } = device;
        if !names.insert(name) || !places.insert((exporter, domain)) {
            let problem = format!(
                "{name} with the counters of {exporter} in domain {domain}, expected each name \
                 and each domain of an exporter once"
            );
            section.error("device", problem);
            return None;
        }
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for PfcDevicePort { name: port, interface } in ports {
            if !names.insert(port) || !numbers.insert(interface) {
                let problem = format!(
                    "{port} as interface {interface} of {name}, expected each port and number once"
                );
                section.error("device", problem);
                return None;
            }
        }
    }
    Some(())
}

fn flow(
    section: &Section<'_>,
    devices: &[PfcDevice],
    exporter: impl Fn(&Section<'_>) -> Option<String>,
) -> Option<PfcFlows> {
    let (exporter, domain) = (exporter(section), domain(section));
    let point = match section.value("point") {
        Some(value) => value.number(0..=u64::MAX).map(Some),
        None => Some(None),
    };
    let (sources, destinations) = (ranges(section, "sources"), ranges(section, "destinations"));
    let expected = "the name of a [[pfc.device]]";
    let device = section.required("device", expected).and_then(|value| {
        value.parsed(expected, |text| devices.iter().find(|device| device.name == text))
    });
    let expected = "the name of a [[pfc.device.port]] of that device";
    let port = section.required("port", expected).zip(device).and_then(|(value, device)| {
        value.parsed(expected, |text| device.ports.iter().find(|port| port.name == text))
    });
    let class = section
        .required("class", "the traffic class of the flows, from 0 on")
        .and_then(|value| value.number(0..=CLASSES_MAX - 1));
    let (device, port) = (device?, port?);
    Some(PfcFlows {
        exporter: exporter?,
        domain: domain?,
        point: point?,
        sources: sources?,
        destinations: destinations?,
        device: device.name.clone(),
        port: port.name.clone(),
        interface: port.interface,
        class: usize::try_from(class?).ok()?,
    })
}

fn ranges(section: &Section<'_>, key: &'static str) -> Option<Option<Vec<Prefix>>> {
    let Some(value) = section.value(key) else { return Some(None) };
    let items = value.list("address range")?;
    let read: Vec<_> = items.iter().map(|item: &Value<'_>| address::prefix(item)).collect();
    read.into_iter().collect::<Option<Vec<_>>>().map(Some)
}
