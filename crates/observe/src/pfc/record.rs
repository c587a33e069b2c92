//! The record of a reading on the wire: its Options Templates, how it is written and how it is
//! read (PFC draft, on the PFC Counter Record, export and collection).
//!
//! Both directions stand here so that they cannot drift apart. What two readings mean together is
//! for [`super::interval`].

use alloc::vec::Vec;
use core::fmt;

use wire::element::standard::{
    EGRESS_PHYSICAL_INTERFACE, INGRESS_PHYSICAL_INTERFACE, OBSERVATION_POINT_ID,
    OBSERVATION_TIME_MILLISECONDS,
};
use wire::element::{DraftElement, ElementId, Mapping};
use wire::ipfix::{
    EncodeError, FieldSpec, Layout, Record, RecordWriter, Slot, TemplateKind, TemplateSpec,
    UnsignedSlot,
};

use super::instance::InstanceId;
use super::{Direction, Priority, Reading, Scope};

const POINT: &str = "observationPointId";
const INGRESS: &str = "ingressPhysicalInterface";
const EGRESS: &str = "egressPhysicalInterface";
const TIME: &str = "observationTimeMilliseconds";

/// The element that says where frames of a direction were counted.
// PFC-id.1
const fn interface(direction: Direction) -> (ElementId, &'static str) {
    match direction {
        Direction::Received => (INGRESS_PHYSICAL_INTERFACE, INGRESS),
        Direction::Transmitted => (EGRESS_PHYSICAL_INTERFACE, EGRESS),
    }
}

/// The Options Template of a direction: three fields of scope, then time and total.
// PFC-rec.1, PFC-exp.2
pub fn template(direction: Direction, id: u16, mapping: &Mapping) -> TemplateSpec {
    let fields = [
        (OBSERVATION_POINT_ID, 8),
        (interface(direction).0, 4),
        (mapping.id(DraftElement::PfcPriority), 1),
        (OBSERVATION_TIME_MILLISECONDS, 8),
        (mapping.id(DraftElement::PfcControlFrameTotalCount), 8),
    ];
    let fields = fields.into_iter().map(|(id, length)| FieldSpec::new(id, length)).collect();
    TemplateSpec { id, scope_count: 3, fields }
}

/// Writes the record of a reading, of the [`template`] of its direction.
///
/// # Errors
/// None, where the record is that of the template.
// PFC-rec.1, PFC-rec.2
pub fn write(record: &mut RecordWriter<'_>, reading: &Reading) -> Result<(), EncodeError> {
    record.unsigned(reading.scope.point)?;
    record.unsigned(u64::from(reading.scope.interface))?;
    record.unsigned(u64::from(reading.scope.priority.get()))?;
    record.unsigned(reading.time_ms)?;
    record.unsigned(reading.total)
}

/// The Options Template of a direction with `pfcCounterInstanceId` behind the total: an element of
/// ours that no draft has.
// PFC-exp.1: to others it is an additional element.
pub fn template_with_instance(direction: Direction, id: u16, mapping: &Mapping) -> TemplateSpec {
    let mut template = template(direction, id, mapping);
    template.fields.push(FieldSpec::new(mapping.id(DraftElement::PfcCounterInstanceId), 8));
    template
}

/// Writes the record of a reading, of the [`template_with_instance`] of its direction.
///
/// # Errors
/// None, where the record is that of the template.
// PFC-rec.1
pub fn write_with_instance(
    record: &mut RecordWriter<'_>,
    reading: &Reading,
    instance: InstanceId,
) -> Result<(), EncodeError> {
    write(record, reading)?;
    record.unsigned(instance.get())
}

/// Why a Template is not one of PFC counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingError {
    /// It has no total of PFC frames: it is somebody else's and goes through.
    NotPfc,
    /// It is a Template without a scope.
    NotOptions,
    /// A field is not there.
    Missing(&'static str),
    /// A field is there more than once.
    Twice(&'static str),
    /// A field of the scope stands behind it.
    NotInScope(&'static str),
    /// A field that is no scope stands in it.
    InScope(&'static str),
    /// Both physical interfaces are there.
    BothInterfaces,
    /// None of the physical interfaces is there.
    NoInterface,
    /// A field has a length that its type cannot have.
    Length {
        /// The field.
        field: &'static str,
        /// Full length of its type.
        expected: u16,
    },
}

impl fmt::Display for BindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPfc => f.write_str("no total of PFC frames"),
            Self::NotOptions => f.write_str("a template, expected an options template"),
            Self::Missing(field) => write!(f, "{field} is missing"),
            Self::Twice(field) => write!(f, "{field} more than once, expected once"),
            Self::NotInScope(field) => write!(f, "{field} behind the scope, expected in it"),
            Self::InScope(field) => write!(f, "{field} in the scope, expected behind it"),
            Self::BothInterfaces => write!(f, "{INGRESS} and {EGRESS}, expected one of them"),
            Self::NoInterface => {
                write!(f, "neither {INGRESS} nor {EGRESS}, expected one of them")
            }
            Self::Length { field, expected } => {
                write!(f, "{field} of a length that it cannot have, expected {expected} octets")
            }
        }
    }
}

impl core::error::Error for BindingError {}

/// Why a record is no reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// A priority above 7.
    Priority(u8),
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Priority(found) = self;
        write!(f, "pfcPriority {found}, expected 0 to 7")
    }
}

impl core::error::Error for FieldError {}

/// Values of further fields in the scope of a record: the elements with their values, in the order
/// of the elements. Empty as a rule. Where it differs, so does the counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FurtherScope(Vec<u8>);

impl FurtherScope {
    /// Its octets, for those who store it: equal where the further scope is.
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// What [`FurtherScope::octets`] gave.
    pub fn from_octets(octets: Vec<u8>) -> Self {
        Self(octets)
    }

    /// Whether the scope is that of the draft and no more.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where the fields of a reading stand in one Options Template.
#[derive(Clone, Debug)]
pub struct Binding {
    direction: Direction,
    point: UnsignedSlot,
    interface: UnsignedSlot,
    priority: UnsignedSlot,
    time: UnsignedSlot,
    total: UnsignedSlot,
    instance: Option<UnsignedSlot>,
    further: Vec<(ElementId, Slot)>,
}

impl Binding {
    /// Finds the fields of a reading in an Options Template. Others may stand beside them, and the
    /// order within the scope and behind it is free.
    ///
    /// # Errors
    /// The first reason why it is not one of PFC counters.
    // PFC-rec.1, PFC-exp.1, PFC-id.1
    pub fn new(layout: &Layout, mapping: &Mapping) -> Result<Self, BindingError> {
        let [priority, total] =
            [DraftElement::PfcPriority, DraftElement::PfcControlFrameTotalCount];
        if layout.slot(mapping.id(total)).is_none() {
            return Err(BindingError::NotPfc);
        }
        if layout.kind() != TemplateKind::Options {
            return Err(BindingError::NotOptions);
        }
        let finder = Finder { layout };
        let direction = finder.direction()?;
        let (at, name) = interface(direction);
        let binding = Self {
            direction,
            point: finder.scope(OBSERVATION_POINT_ID, POINT, 8)?,
            interface: finder.scope(at, name, 4)?,
            priority: finder.scope(mapping.id(priority), priority.name(), 1)?,
            time: finder.data(OBSERVATION_TIME_MILLISECONDS, TIME, 8)?,
            total: finder.data(mapping.id(total), total.name(), 8)?,
            instance: finder.instance(mapping.id(DraftElement::PfcCounterInstanceId)),
            further: finder.further(&[OBSERVATION_POINT_ID, at, mapping.id(priority)]),
        };
        // A time has no shorter form.
        let length = |field: &&FieldSpec| field.id == OBSERVATION_TIME_MILLISECONDS;
        match layout.fields().iter().find(length) {
            Some(field) if field.length == 8 => Ok(binding),
            _ => Err(BindingError::Length { field: TIME, expected: 8 }),
        }
    }

    /// Received or transmitted.
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Reads a record of a message of a domain.
    ///
    /// # Errors
    /// A priority above 7. Everything else is taken as it is.
    // PFC-id.3, PFC-id.1
    pub fn read(&self, domain: u32, record: &Record<'_>) -> Result<Reading, FieldError> {
        // One octet.
        let index = u8::try_from(record.unsigned(self.priority)).unwrap_or(u8::MAX);
        let priority = Priority::new(index).ok_or(FieldError::Priority(index))?;
        let scope = Scope {
            domain,
            point: record.unsigned(self.point),
            // At most four octets.
            interface: u32::try_from(record.unsigned(self.interface)).unwrap_or(u32::MAX),
            direction: self.direction,
            priority,
        };
        let (time_ms, total) = (record.unsigned(self.time), record.unsigned(self.total));
        Ok(Reading { scope, time_ms, total })
    }

    /// What the exporter calls the instance of the counter, if it says so.
    // PFC-sem.2
    pub fn instance(&self, record: &Record<'_>) -> Option<InstanceId> {
        self.instance.and_then(|slot| InstanceId::new(record.unsigned(slot)))
    }

    /// What else the record has in its scope.
    // PFC-exp.1: what narrows the scope makes another counter of it.
    pub fn further(&self, record: &Record<'_>) -> FurtherScope {
        let mut all = Vec::new();
        for (id, slot) in &self.further {
            let octets = record.octets(*slot);
            all.extend_from_slice(&id.pen.to_be_bytes());
            all.extend_from_slice(&id.id.to_be_bytes());
            // So that no two lists look alike; no value has 2^32 octets.
            all.extend_from_slice(&u32::try_from(octets.len()).unwrap_or(u32::MAX).to_be_bytes());
            all.extend_from_slice(octets);
        }
        FurtherScope(all)
    }
}

struct Finder<'a> {
    layout: &'a Layout,
}

impl Finder<'_> {
    // PFC-id.1
    fn direction(&self) -> Result<Direction, BindingError> {
        let has = |direction| self.layout.slot(interface(direction).0).is_some();
        match (has(Direction::Received), has(Direction::Transmitted)) {
            (true, true) => Err(BindingError::BothInterfaces),
            (true, false) => Ok(Direction::Received),
            (false, true) => Ok(Direction::Transmitted),
            (false, false) => Err(BindingError::NoInterface),
        }
    }

    fn scope(
        &self,
        id: ElementId,
        name: &'static str,
        full: u16,
    ) -> Result<UnsignedSlot, BindingError> {
        let (in_scope, slot) = self.once(id, name, full)?;
        if in_scope { Ok(slot) } else { Err(BindingError::NotInScope(name)) }
    }

    fn data(
        &self,
        id: ElementId,
        name: &'static str,
        full: u16,
    ) -> Result<UnsignedSlot, BindingError> {
        let (in_scope, slot) = self.once(id, name, full)?;
        if in_scope { Err(BindingError::InScope(name)) } else { Ok(slot) }
    }

    /// A field that stands once, and whether in the scope.
    // PFC-rec.1
    fn once(
        &self,
        id: ElementId,
        name: &'static str,
        full: u16,
    ) -> Result<(bool, UnsignedSlot), BindingError> {
        let mut places =
            self.layout.fields().iter().enumerate().filter(|(_, field)| field.id == id);
        let (at, field) = places.next().ok_or(BindingError::Missing(name))?;
        if places.next().is_some() {
            return Err(BindingError::Twice(name));
        }
        let slot = self.layout.slot_at(at).and_then(Slot::unsigned);
        let slot = slot.filter(|_| field.length <= full);
        let slot = slot.ok_or(BindingError::Length { field: name, expected: full })?;
        Ok((at < self.layout.scope().len(), slot))
    }

    /// Where the instance stands. In the scope it would be another counter, and where there are two
    /// nobody knows which one holds.
    fn instance(&self, id: ElementId) -> Option<UnsignedSlot> {
        let (in_scope, slot) = self.once(id, DraftElement::PfcCounterInstanceId.name(), 8).ok()?;
        (!in_scope).then_some(slot)
    }

    fn further(&self, own: &[ElementId]) -> Vec<(ElementId, Slot)> {
        let scope = self.layout.scope().iter().enumerate();
        let others = scope.filter(|(_, field)| !own.contains(&field.id));
        let mut all: Vec<_> = others
            .filter_map(|(at, field)| self.layout.slot_at(at).map(|slot| (field.id, slot)))
            .collect();
        // Stable: of one element that stands several times, in wire order.
        all.sort_by_key(|(id, _)| (id.pen, id.id));
        all
    }
}
