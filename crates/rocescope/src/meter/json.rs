//! Reports as JSON Lines, with the element names of the draft as keys.

use std::io::Write as _;
use std::net::Ipv6Addr;

use observe::collect::Epoch;
use observe::meter::Cause;
use observe::outcome::Outcome;
use observe::profile::segment_id;
use observe::report::{Flags, Report, StreamKey};
use observe::sequence::Counts;
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

/// Appends a report as one line. `causes` are those of the closure that a final report tells of;
/// one that is not final has none.
pub fn report(
    out: &mut Vec<u8>,
    place: Place,
    report: &Report,
    causes: impl Iterator<Item = Cause>,
) {
    members(out, place, report);
    if report.snapshot.flags.has(Flags::FINAL_EPOCH) {
        closure(out, causes);
    }
    out.extend_from_slice(b"}\n");
}

/// Appends the member that says why an epoch closed, or why there was none: a word for a program
/// and a sentence for a reader, for each cause.
// SEQ-4.7
pub fn closure(out: &mut Vec<u8>, causes: impl Iterator<Item = Cause>) {
    name_of(out, "closure");
    out.push(b'[');
    for (n, cause) in causes.enumerate() {
        out.extend_from_slice(if n == 0 { b"{\"cause\":\"" } else { b",{\"cause\":\"" });
        out.extend_from_slice(cause.word().as_bytes());
        out.push(b'"');
        text(out, "reason", &cause.to_string());
        out.push(b'}');
    }
    out.push(b']');
}

/// Appends an object with the members of a report, and leaves it open for more.
fn members(out: &mut Vec<u8>, place: Place, report: &Report) {
    let snapshot = &report.snapshot;
    out.extend_from_slice(b"{\"record\":\"sequence\"");
    number(out, "observationDomainId", u64::from(place.domain));
    number(out, "observationPointId", place.point);
    key(out, &snapshot.key);
    number(out, "flowStartMilliseconds", snapshot.start_ms);
    number(out, "flowEndMilliseconds", snapshot.end_ms);
    number(out, "rdmaSequenceEpochId", report.epoch_id);
    number(out, "rdmaSequenceReportId", report.report_id);
    number(out, "rdmaSequenceWindow", u64::from(snapshot.window.get()));
    flags(out, snapshot.flags);
    counters(out, &snapshot.counts);
}

/// Appends the members that say which flags are set.
pub fn flags(out: &mut Vec<u8>, flags: Flags) {
    number(out, "rdmaSequenceFlags", u64::from(flags.0));
    words(out, "flags", flags.names());
}

/// Appends the members that count.
pub fn counters(out: &mut Vec<u8>, counts: &Counts) {
    number(out, "skippedPsnTotalCount", counts.skipped);
    number(out, "filledPsnTotalCount", counts.filled);
    number(out, "expiredPsnTotalCount", counts.expired);
    number(out, "abandonedPsnTotalCount", counts.abandoned);
    number(out, "pendingPsnCount", u64::from(counts.pending));
    number(out, "repeatedPsnTotalCount", counts.repeated);
    number(out, "requestPacketTotalCount", counts.requests);
    number(out, "unclassifiedLatePacketTotalCount", counts.unclassified_late);
}

/// What a collector says of an epoch beside its latest report.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a, Q> {
    /// Its Transport Session, where it is known.
    pub session: Option<u64>,
    /// Its outcome.
    pub outcome: Outcome,
    /// Words for what a reader of its numbers has to know.
    pub qualifications: Q,
    /// Why it is incomplete or invalid.
    pub reason: Option<&'a str>,
}

/// Appends an object with the members of an epoch's latest report and what is known of it, and
/// leaves it open for more.
// SEQ-7.15
pub fn epoch<'q>(
    out: &mut Vec<u8>,
    domain: u32,
    epoch: &Epoch,
    judged: Judged<'_, impl Iterator<Item = &'q str>>,
) {
    members(out, Place { domain, point: epoch.point }, &epoch.latest);
    text(out, "outcome", judged.outcome.word());
    words(out, "qualifications", judged.qualifications);
    match judged.reason {
        Some(reason) => text(out, "reason", reason),
        None => out.extend_from_slice(b",\"reason\":null"),
    }
    number(out, "reportGaps", epoch.missing);
    match judged.session {
        Some(session) => number(out, "session", session),
        None => out.extend_from_slice(b",\"session\":null"),
    }
}

/// Appends a member with a text.
pub fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    name_of(out, name);
    out.extend_from_slice(serde_json::Value::from(value).to_string().as_bytes());
}

/// Appends a member with a list of words, which need no escapes.
fn words<'w>(out: &mut Vec<u8>, name: &str, words: impl Iterator<Item = &'w str>) {
    name_of(out, name);
    out.push(b'[');
    for (n, word) in words.enumerate() {
        out.extend_from_slice(if n == 0 { b"\"" } else { b",\"" });
        out.extend_from_slice(word.as_bytes());
        out.push(b'"');
    }
    out.push(b']');
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
