//! The record of the sequence profile: its Template, how it is written and how it is read
//! (sequence draft, section 6, Table 2).
//!
//! Both directions stand here so that they cannot drift apart. Nothing here compares one report
//! with another: that is [`crate::collect`].

use alloc::vec::Vec;
use core::fmt;

use wire::element::{DraftElement, ElementId, Mapping};
use wire::frame::{Addresses, Family, Namespace};
use wire::ipfix::{
    EncodeError, FieldSpec, Layout, Record, RecordWriter, Slot, TemplateKind, TemplateSpec,
    UnsignedSlot,
};

use crate::report::{Flags, Report, Snapshot, StreamKey};
use crate::sequence::Counts;
use crate::window::{Window, WindowError};

/// A field of the profile: one of the drafts' elements, or a standard one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Draft(DraftElement),
    Standard { id: u16, name: &'static str },
}

impl Field {
    fn id(self, mapping: &Mapping) -> ElementId {
        match self {
            Self::Draft(element) => mapping.id(element),
            Self::Standard { id, .. } => ElementId::iana(id),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Draft(element) => element.name(),
            Self::Standard { name, .. } => name,
        }
    }
}

const fn standard(id: u16, name: &'static str) -> Field {
    Field::Standard { id, name }
}

const POINT: Field = standard(138, "observationPointId");
const ADDRESSES_V4: [Field; 2] =
    [standard(8, "sourceIPv4Address"), standard(12, "destinationIPv4Address")];
const ADDRESSES_V6: [Field; 2] =
    [standard(27, "sourceIPv6Address"), standard(28, "destinationIPv6Address")];
const OUTER_VLAN: Field = standard(243, "dot1qVlanId");
const INNER_VLAN: Field = standard(245, "dot1qCustomerVlanId");
const SEGMENT: Field = standard(351, "layer2SegmentId");

/// Standard elements that name a namespace of the packets as they came, and that the profile does
/// not know by name: vlanId, mplsVpnRouteDistinguisher, ingressVRFID, VRFname, pseudoWireId, the
/// four of a virtual station, dot1qServiceInstanceId, natInstanceID and vpnIdentifier. What they
/// mean is the exporter's affair; that they stay the same in an epoch is ours.
const OTHER_NAMESPACES: [u16; 12] = [58, 90, 234, 236, 249, 347, 348, 349, 350, 412, 463, 482];

/// The unsigned fields of Table 2 but the first, in its order, with their full lengths.
// SEQ-6.2, SEQ-6.9
const NUMBERS: [(Field, u16); 16] = {
    use DraftElement as D;
    [
        (Field::Draft(D::RdmaDestinationQp), 4),
        (Field::Draft(D::RdmaPartitionKey), 2),
        (standard(152, "flowStartMilliseconds"), 8),
        (standard(153, "flowEndMilliseconds"), 8),
        (Field::Draft(D::RdmaSequenceEpochId), 8),
        (Field::Draft(D::RdmaSequenceReportId), 8),
        (Field::Draft(D::RdmaSequenceWindow), 4),
        (Field::Draft(D::RdmaSequenceFlags), 2),
        (Field::Draft(D::SkippedPsnTotalCount), 8),
        (Field::Draft(D::FilledPsnTotalCount), 8),
        (Field::Draft(D::ExpiredPsnTotalCount), 8),
        (Field::Draft(D::AbandonedPsnTotalCount), 8),
        (Field::Draft(D::PendingPsnCount), 4),
        (Field::Draft(D::RepeatedPsnTotalCount), 8),
        (Field::Draft(D::RequestPacketTotalCount), 8),
        (Field::Draft(D::UnclassifiedLatePacketTotalCount), 8),
    ]
};

/// What a Template fixes beside the fields that all have: the address family and the namespace
/// keys. No field of it is ever left out of a record.
// SEQ-4.3, SEQ-6.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// IPv4 or IPv6.
    pub family: Family,
    /// With `dot1qVlanId`.
    pub outer_vlan: bool,
    /// With `dot1qCustomerVlanId`.
    pub inner_vlan: bool,
    /// With `layer2SegmentId`.
    pub segment: bool,
}

impl Shape {
    /// Of the records of a stream.
    pub fn of(key: &StreamKey) -> Self {
        Self {
            family: key.addresses.family,
            outer_vlan: key.namespace.outer_vlan != 0,
            inner_vlan: key.namespace.inner_vlan != 0,
            segment: key.namespace.segment != 0,
        }
    }

    /// A number for each shape, 0 to 15.
    pub fn number(self) -> u16 {
        u16::from(self.family == Family::V6)
            | u16::from(self.outer_vlan) << 1
            | u16::from(self.inner_vlan) << 2
            | u16::from(self.segment) << 3
    }

    fn fields(self) -> Vec<(Field, u16)> {
        let (addresses, length) = match self.family {
            Family::V4 => (ADDRESSES_V4, 4),
            Family::V6 => (ADDRESSES_V6, 16),
        };
        let mut fields = alloc::vec![(POINT, 8), (addresses[0], length), (addresses[1], length)];
        fields.extend(NUMBERS);
        let keys = [
            (self.outer_vlan, OUTER_VLAN, 2),
            (self.inner_vlan, INNER_VLAN, 2),
            (self.segment, SEGMENT, 8),
        ];
        fields.extend(keys.into_iter().filter(|(has, ..)| *has).map(|(_, field, n)| (field, n)));
        fields
    }

    /// The Template: 19 fields in the order of Table 2, then the namespace keys.
    // SEQ-6.2, SEQ-6.8
    pub fn template(self, id: u16, mapping: &Mapping) -> TemplateSpec {
        let field = |(field, length): (Field, u16)| FieldSpec::new(field.id(mapping), length);
        let fields = self.fields().into_iter().map(field).collect();
        TemplateSpec { id, scope_count: 0, fields }
    }

    /// The Flow Keys: what names an epoch, the report id not among them.
    // SEQ-6.6
    pub fn flow_keys(self, mapping: &Mapping) -> Vec<ElementId> {
        let key = |field: &Field| {
            let keys = [DraftElement::RdmaDestinationQp, DraftElement::RdmaPartitionKey];
            match field {
                Field::Draft(DraftElement::RdmaSequenceEpochId) => true,
                Field::Draft(element) => keys.contains(element),
                Field::Standard { id, .. } => *id != 152 && *id != 153,
            }
        };
        let fields = self.fields().into_iter().map(|(field, _)| field);
        fields.filter(key).map(|field| field.id(mapping)).collect()
    }

    /// Writes the record of a report of this shape, field by field.
    ///
    /// # Errors
    /// None, where the record is that of [`Shape::template`].
    // SEQ-6.3, SEQ-6.9
    pub fn write(
        self,
        record: &mut RecordWriter<'_>,
        point: u64,
        report: &Report,
    ) -> Result<(), EncodeError> {
        let Snapshot { key, window, flags, start_ms, end_ms, counts } = &report.snapshot;
        record.unsigned(point)?;
        let length = if self.family == Family::V4 { 4 } else { 16 };
        record.octets(&key.addresses.source[..length])?;
        record.octets(&key.addresses.destination[..length])?;
        for number in [
            u64::from(key.qp),
            u64::from(key.pkey),
            *start_ms,
            *end_ms,
            report.epoch_id,
            report.report_id,
            u64::from(window.get()),
            u64::from(flags.0),
            counts.skipped,
            counts.filled,
            counts.expired,
            counts.abandoned,
            u64::from(counts.pending),
            counts.repeated,
            counts.requests,
            counts.unclassified_late,
        ] {
            record.unsigned(number)?;
        }
        if self.outer_vlan {
            record.unsigned(u64::from(key.namespace.outer_vlan))?;
        }
        if self.inner_vlan {
            record.unsigned(u64::from(key.namespace.inner_vlan))?;
        }
        if self.segment {
            record.unsigned(segment_id(key.namespace.segment))?;
        }
        Ok(())
    }
}

/// `layer2SegmentId` of a segment: its kind in the highest octet, its number in the lowest three.
pub fn segment_id(segment: u32) -> u64 {
    u64::from(segment >> 24) << 56 | u64::from(segment & 0x00ff_ffff)
}

/// Which lengths a collector takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// Those of Table 2.
    #[default]
    Full,
    /// Shorter ones too, by agreement with the exporter.
    Agreed,
}

/// Where the fields of the profile stand in one Template.
#[derive(Clone, Debug)]
pub struct Binding {
    family: Family,
    point: UnsignedSlot,
    source: Slot,
    destination: Slot,
    numbers: [UnsignedSlot; NUMBERS.len()],
    outer_vlan: Option<UnsignedSlot>,
    inner_vlan: Option<UnsignedSlot>,
    segment: Option<UnsignedSlot>,
    /// Namespace keys that the profile does not name, by element.
    other_keys: Vec<(u16, Slot)>,
}

/// Why a Template is not one of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingError {
    /// It has none of the profile's elements: it is somebody else's and goes through.
    NotProfile,
    /// It is an Options Template.
    Options,
    /// A field is not there.
    Missing(&'static str),
    /// A field is there more than once.
    Twice(&'static str),
    /// It has addresses of both families.
    BothFamilies,
    /// A field has a length that was not agreed on.
    Length {
        /// The field.
        field: &'static str,
        /// Found; `None` for a variable length.
        found: Option<u16>,
        /// By Table 2.
        expected: u16,
    },
}

impl fmt::Display for BindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotProfile => f.write_str("no field of the sequence profile"),
            Self::Options => f.write_str("an options template, expected a template"),
            Self::Missing(field) => write!(f, "{field} is missing"),
            Self::Twice(field) => write!(f, "{field} more than once, expected once"),
            Self::BothFamilies => f.write_str("addresses of both families, expected one family"),
            Self::Length { field, found: Some(found), expected } => {
                write!(f, "{field} of {found} octets, expected {expected}")
            }
            Self::Length { field, found: None, expected } => {
                write!(f, "{field} of variable length, expected {expected} octets")
            }
        }
    }
}

impl core::error::Error for BindingError {}

/// Why a record cannot be a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// Epoch id 0.
    EpochIdZero,
    /// Report id 0.
    ReportIdZero,
    /// A window that is none.
    Window(u64),
    /// A queue pair with some of its upper eight bits set.
    QueuePair(u64),
    /// A VLAN id beyond 4095.
    Vlan(u64),
    /// A segment with octets set between its kind and its number.
    Segment(u64),
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EpochIdZero => f.write_str("rdmaSequenceEpochId 0, expected at least 1"),
            Self::ReportIdZero => f.write_str("rdmaSequenceReportId 0, expected at least 1"),
            Self::Window(found) => {
                write!(f, "rdmaSequenceWindow {found}, expected 1 to {}", crate::window::WINDOW_MAX)
            }
            Self::QueuePair(found) => {
                write!(f, "rdmaDestinationQP {found:#x}, expected at most 0xffffff")
            }
            Self::Vlan(found) => write!(f, "VLAN {found}, expected at most 4095"),
            Self::Segment(found) => {
                write!(f, "layer2SegmentId {found:#018x}, expected zeros in octets 2 to 5")
            }
        }
    }
}

impl core::error::Error for FieldError {}

impl Binding {
    /// Finds the fields of the profile in a Template. Other fields may stand beside them.
    ///
    /// # Errors
    /// The first reason why it is not one of the profile.
    // SEQ-7.1, SEQ-6.2, SEQ-4.3
    pub fn new(layout: &Layout, mapping: &Mapping, lengths: Lengths) -> Result<Self, BindingError> {
        let profile = |field: &FieldSpec| is_profile(mapping.draft(field.id));
        if !layout.fields().iter().any(profile) {
            return Err(BindingError::NotProfile);
        }
        if layout.kind() != TemplateKind::Template {
            return Err(BindingError::Options);
        }
        let finder = Finder { layout, mapping, lengths };
        let has = |field: Field| layout.slot(field.id(mapping)).is_some();
        let (v4, v6) = (ADDRESSES_V4.into_iter().any(has), ADDRESSES_V6.into_iter().any(has));
        let (family, [source, destination], length) = match (v4, v6) {
            (true, true) => return Err(BindingError::BothFamilies),
            (_, false) => (Family::V4, ADDRESSES_V4, 4),
            (false, true) => (Family::V6, ADDRESSES_V6, 16),
        };
        let point = finder.number(POINT, 8)?;
        let mut numbers = [point; NUMBERS.len()];
        for (slot, (field, full)) in numbers.iter_mut().zip(NUMBERS) {
            *slot = finder.number(field, full)?;
        }
        Ok(Self {
            family,
            point,
            source: finder.address(source, length)?,
            destination: finder.address(destination, length)?,
            numbers,
            outer_vlan: finder.optional(OUTER_VLAN, 2)?,
            inner_vlan: finder.optional(INNER_VLAN, 2)?,
            segment: finder.optional(SEGMENT, 8)?,
            other_keys: finder.other_keys(),
        })
    }

    /// Reads a record: its Observation Point and its report.
    ///
    /// # Errors
    /// The first field that is out of its range. The flags are taken as they are, and the
    /// relationships between the counters are for [`Snapshot::check`].
    // SEQ-7.1, SEQ-6.10
    #[inline]
    pub fn read(&self, record: &Record<'_>) -> Result<(u64, Report), FieldError> {
        let numbers: [u64; NUMBERS.len()] =
            core::array::from_fn(|i| record.unsigned(self.numbers[i]));
        let [qp, pkey, start_ms, end_ms, epoch_id, report_id, window, flags, rest @ ..] = numbers;
        let [skipped, filled, expired, abandoned, pending, repeated, requests, late] = rest;
        if epoch_id == 0 {
            return Err(FieldError::EpochIdZero);
        }
        if report_id == 0 {
            return Err(FieldError::ReportIdZero);
        }
        let width = u32::try_from(window).map_err(|_| FieldError::Window(window))?;
        let window = Window::new(width).map_err(|WindowError(w)| FieldError::Window(w.into()))?;
        if qp > 0x00ff_ffff {
            return Err(FieldError::QueuePair(qp));
        }
        let (source, destination) = (record.octets(self.source), record.octets(self.destination));
        let addresses = addresses(self.family, source, destination);
        let namespace = self.namespace(record)?;
        let counts = Counts {
            skipped,
            filled,
            expired,
            abandoned,
            pending: low32(pending),
            repeated,
            requests,
            unclassified_late: late,
        };
        let key = StreamKey { addresses, namespace, qp: low32(qp), pkey: low16(pkey) };
        let flags = Flags(low16(flags));
        let snapshot = Snapshot { key, window, flags, start_ms, end_ms, counts };
        let other_keys = self.other_keys(record);
        Ok((record.unsigned(self.point), Report { epoch_id, report_id, snapshot, other_keys }))
    }

    /// A number for the namespace keys that the profile does not name (FNV-1a).
    // SEQ-4.3, SEQ-7.3
    #[inline]
    fn other_keys(&self, record: &Record<'_>) -> u64 {
        if self.other_keys.is_empty() {
            return 0;
        }
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |octet: u8| {
            hash = (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3);
        };
        for (id, slot) in &self.other_keys {
            id.to_be_bytes().into_iter().for_each(&mut add);
            let octets = record.octets(*slot);
            octets.len().to_be_bytes().into_iter().for_each(&mut add);
            octets.iter().copied().for_each(&mut add);
        }
        // 0 is for none.
        hash.max(1)
    }

    fn namespace(&self, record: &Record<'_>) -> Result<Namespace, FieldError> {
        let vlan = |slot: Option<UnsignedSlot>| match slot.map(|slot| record.unsigned(slot)) {
            Some(id) if id > 4095 => Err(FieldError::Vlan(id)),
            id => Ok(low16(id.unwrap_or(0))),
        };
        let segment = match self.segment.map(|slot| record.unsigned(slot)) {
            Some(id) if id & 0x00ff_ffff_ff00_0000 != 0 => return Err(FieldError::Segment(id)),
            id => id.map_or(0, |id| low32(id >> 32) | low32(id)),
        };
        let (outer_vlan, inner_vlan) = (vlan(self.outer_vlan)?, vlan(self.inner_vlan)?);
        Ok(Namespace { outer_vlan, inner_vlan, segment })
    }
}

/// Whether an element says that a Template is meant for the profile: the twelve do, the two
/// borrowed header fields do not.
fn is_profile(element: Option<DraftElement>) -> bool {
    use DraftElement as D;
    let others =
        [D::RdmaDestinationQp, D::RdmaPartitionKey, D::PfcPriority, D::PfcControlFrameTotalCount];
    element.is_some_and(|element| !others.contains(&element))
}

struct Finder<'a> {
    layout: &'a Layout,
    mapping: &'a Mapping,
    lengths: Lengths,
}

impl Finder<'_> {
    fn slot(&self, field: Field) -> Result<(Slot, Option<u16>), BindingError> {
        let id = field.id(self.mapping);
        let mut slots = self.layout.slots(id);
        let slot = slots.next().ok_or(BindingError::Missing(field.name()))?;
        if slots.next().is_some() {
            return Err(BindingError::Twice(field.name()));
        }
        let spec = self.layout.fields().iter().find(|spec| spec.id == id);
        Ok((slot, spec.map(|spec| spec.length).filter(|length| *length != u16::MAX)))
    }

    fn number(&self, field: Field, full: u16) -> Result<UnsignedSlot, BindingError> {
        let (slot, found) = self.slot(field)?;
        let legal = match self.lengths {
            Lengths::Full => found == Some(full),
            Lengths::Agreed => found.is_some_and(|found| (1..=full).contains(&found)),
        };
        let wrong = BindingError::Length { field: field.name(), found, expected: full };
        slot.unsigned().filter(|_| legal).ok_or(wrong)
    }

    fn optional(&self, field: Field, full: u16) -> Result<Option<UnsignedSlot>, BindingError> {
        match self.number(field, full) {
            Err(BindingError::Missing(_)) => Ok(None),
            found => found.map(Some),
        }
    }

    /// In the order of their numbers, so that another Template with the same keys reads the same.
    fn other_keys(&self) -> Vec<(u16, Slot)> {
        let found = OTHER_NAMESPACES
            .into_iter()
            .flat_map(|id| self.layout.slots(ElementId::iana(id)).map(move |slot| (id, slot)));
        found.collect()
    }

    fn address(&self, field: Field, full: u16) -> Result<Slot, BindingError> {
        let (slot, found) = self.slot(field)?;
        let wrong = BindingError::Length { field: field.name(), found, expected: full };
        Some(slot).filter(|_| found == Some(full)).ok_or(wrong)
    }
}

/// Addresses of the length that the family has.
#[inline]
fn addresses(family: Family, source: &[u8], destination: &[u8]) -> Addresses {
    match family {
        Family::V4 => Addresses::v4(whole(source), whole(destination)),
        Family::V6 => Addresses::v6(whole(source), whole(destination)),
    }
}

#[inline]
fn whole<const N: usize>(address: &[u8]) -> [u8; N] {
    *address.first_chunk().expect("the binding has looked at the length of both addresses")
}

#[expect(clippy::cast_possible_truncation, reason = "read from a field of at most 32 bits")]
fn low32(value: u64) -> u32 {
    value as u32
}

#[expect(clippy::cast_possible_truncation, reason = "read from a field of at most 16 bits")]
fn low16(value: u64) -> u16 {
    value as u16
}
