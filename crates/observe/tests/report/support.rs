//! A report, a Template and a record to change one thing in.

use observe::export::Exporter;
use observe::profile::{Binding, BindingError, FieldError, Lengths, Shape};
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use wire::element::{Mapping, Registry};
use wire::frame::{Addresses, Family, Namespace};
use wire::ipfix::{Decoder, Event, FieldSpec, Layout, Limits, TemplateSpec, Transport};

pub const V4: Shape =
    Shape { family: Family::V4, outer_vlan: false, inner_vlan: false, segment: false };

pub fn mapping() -> Mapping {
    Mapping::default()
}

/// A final report with another number in every field.
pub fn report() -> Report {
    Report {
        epoch_id: 0x0102_0304_0506_0708,
        report_id: 9,
        snapshot: Snapshot {
            key: StreamKey {
                addresses: Addresses::v4([10, 0, 0, 1], [10, 0, 0, 2]),
                namespace: Namespace::default(),
                qp: 0x12_3456,
                pkey: 0xffee,
            },
            window: Window::new(1024).unwrap(),
            flags: Flags(0x0031),
            start_ms: 1_800_000_000_000,
            end_ms: 1_800_000_000_250,
            counts: Counts {
                skipped: 12,
                filled: 3,
                expired: 4,
                abandoned: 5,
                pending: 0,
                repeated: 6,
                requests: 1000,
                unclassified_late: 7,
            },
        },
        other_keys: 0,
    }
}

pub fn in_namespace(outer_vlan: u16, inner_vlan: u16, segment: u32) -> Report {
    let mut report = report();
    report.snapshot.key.namespace = Namespace { outer_vlan, inner_vlan, segment };
    report
}

pub fn v6() -> Report {
    let mut report = report();
    let address = |last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    report.snapshot.key.addresses = Addresses::v6(address(1), address(2));
    report
}

/// Whole messages of an exporter that has just begun.
pub fn exported(reports: &[Report]) -> Vec<u8> {
    let mut exporter = Exporter::new(mapping(), 5, 7, 65535).unwrap();
    let mut out = Vec::new();
    exporter.begin(0, &mut out).unwrap();
    exporter.reports(reports, 0, &mut out).unwrap();
    out
}

/// Shows every event of whole messages, and gives their number.
pub fn decoded(mut octets: &[u8], visit: &mut impl FnMut(Event<'_>)) -> usize {
    let mut decoder = Decoder::new(Transport::Stream, mapping(), Limits::default());
    let mut messages = 0;
    while !octets.is_empty() {
        let length = usize::from(u16::from_be_bytes([octets[2], octets[3]]));
        let (message, rest) = octets.split_at(length);
        decoder.message(message, visit).unwrap();
        octets = rest;
        messages += 1;
    }
    messages
}

/// The reports in whole messages, with their points, and the octets of their records.
pub fn read_back(octets: &[u8]) -> Vec<(u64, Report, Vec<u8>)> {
    let mut bindings = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    decoded(octets, &mut |event| match event {
        Event::Template { layout, .. } => {
            if let Ok(binding) = Binding::new(layout, &mapping(), Lengths::Full) {
                bindings.insert(layout.id(), binding);
            }
        }
        Event::Data(set) => {
            let Some(binding) = bindings.get(&set.layout.id()) else { return };
            for record in set.records {
                let (point, report) = binding.read(&record).unwrap();
                found.push((point, report, record.as_octets().to_vec()));
            }
        }
        Event::Fault { fault, .. } => panic!("{fault}"),
        Event::UndecodableData { template, .. } => panic!("data before template {template}"),
        _ => {}
    });
    found
}

pub fn compiled(fields: Vec<FieldSpec>) -> Layout {
    let spec = TemplateSpec { id: 256, scope_count: 0, fields };
    Layout::compile(spec, &Registry::new(mapping())).unwrap()
}

pub fn bound(fields: Vec<FieldSpec>, lengths: Lengths) -> Result<Binding, BindingError> {
    Binding::new(&compiled(fields), &mapping(), lengths)
}

/// What the octets of one record of a shape are read as.
pub fn read(shape: Shape, octets: &[u8]) -> Result<(u64, Report), FieldError> {
    let layout = compiled(shape.template(256, &mapping()).fields);
    let binding = Binding::new(&layout, &mapping(), Lengths::Full).unwrap();
    let mut records = layout.records(octets);
    let record = records.next().unwrap();
    binding.read(&record)
}
