//! Reports as JSON Lines, with the element names of the draft as keys.

use std::io::Write as _;
use std::net::Ipv6Addr;

use observe::profile::segment_id;
use observe::report::{Report, StreamKey};
use wire::frame::Family;

/// The largest number that every JSON reader keeps exactly, 2^53 - 1; beyond, a number is a
/// string.
pub const EXACT_MAX: u64 = (1 << 53) - 1;

/// Where a report was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// `observationDomainId`.
    pub domain: u32,
    /// `observationPointId`.
    pub point: u64,
}

/// Appends a report as one line.
pub fn report(out: &mut Vec<u8>, place: Place, report: &Report) {
    let snapshot = &report.snapshot;
    let counts = &snapshot.counts;
    out.extend_from_slice(b"{\"record\":\"sequence\"");
    number(out, "observationDomainId", u64::from(place.domain));
    number(out, "observationPointId", place.point);
    key(out, &snapshot.key);
    number(out, "flowStartMilliseconds", snapshot.start_ms);
    number(out, "flowEndMilliseconds", snapshot.end_ms);
    number(out, "rdmaSequenceEpochId", report.epoch_id);
    number(out, "rdmaSequenceReportId", report.report_id);
    number(out, "rdmaSequenceWindow", u64::from(snapshot.window.get()));
    number(out, "rdmaSequenceFlags", u64::from(snapshot.flags.0));
    out.extend_from_slice(b",\"flags\":[");
    for (n, name) in snapshot.flags.names().enumerate() {
        out.extend_from_slice(if n == 0 { b"\"" } else { b",\"" });
        out.extend_from_slice(name.as_bytes());
        out.push(b'"');
    }
    out.push(b']');
    number(out, "skippedPsnTotalCount", counts.skipped);
    number(out, "filledPsnTotalCount", counts.filled);
    number(out, "expiredPsnTotalCount", counts.expired);
    number(out, "abandonedPsnTotalCount", counts.abandoned);
    number(out, "pendingPsnCount", u64::from(counts.pending));
    number(out, "repeatedPsnTotalCount", counts.repeated);
    number(out, "requestPacketTotalCount", counts.requests);
    number(out, "unclassifiedLatePacketTotalCount", counts.unclassified_late);
    out.extend_from_slice(b"}\n");
}

/// Appends the members that name a stream.
pub fn key(out: &mut Vec<u8>, key: &StreamKey) {
    let (source, destination) = match key.addresses.family {
        Family::V4 => ("sourceIPv4Address", "destinationIPv4Address"),
        Family::V6 => ("sourceIPv6Address", "destinationIPv6Address"),
    };
    for (name, octets) in
        [(source, &key.addresses.source), (destination, &key.addresses.destination)]
    {
        name_of(out, name);
        out.push(b'"');
        address(out, key.addresses.family, octets);
        out.push(b'"');
    }
    number(out, "rdmaDestinationQP", u64::from(key.qp));
    number(out, "rdmaPartitionKey", u64::from(key.pkey));
    let namespace = key.namespace;
    if namespace.outer_vlan != 0 {
        number(out, "dot1qVlanId", u64::from(namespace.outer_vlan));
    }
    if namespace.inner_vlan != 0 {
        number(out, "dot1qCustomerVlanId", u64::from(namespace.inner_vlan));
    }
    if namespace.segment != 0 {
        number(out, "layer2SegmentId", segment_id(namespace.segment));
    }
}

/// Appends an address as text.
pub fn address(out: &mut Vec<u8>, family: Family, octets: &[u8; 16]) {
    match (family, octets.first_chunk::<4>()) {
        (Family::V4, Some(v4)) => {
            for (n, octet) in v4.iter().enumerate() {
                if n > 0 {
                    out.push(b'.');
                }
                out.extend_from_slice(itoa::Buffer::new().format(*octet).as_bytes());
            }
        }
        _ => _ = write!(out, "{}", Ipv6Addr::from(*octets)),
    }
}

fn name_of(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a member with a number, or with a string where the number is beyond [`EXACT_MAX`].
pub fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    name_of(out, name);
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    if value > EXACT_MAX {
        out.push(b'"');
        out.extend_from_slice(digits);
        out.push(b'"');
    } else {
        out.extend_from_slice(digits);
    }
}
