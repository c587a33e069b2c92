//! The elements that the drafts define and that no registry has numbers for yet, and the mapping
//! to enterprise numbers that exporter and collector share in the meantime.
//!
//! The sequence draft (section 8) names twelve and borrows two; the PFC draft names two. SEQ-6.8,
//! PFC-exp.2: their "to be done" labels are no wire numbers, so the only way onto the wire is a
//! [`Mapping`] under a Private Enterprise Number. One more is ours and no draft's, and is sent only
//! where it is asked for: `pfcCounterInstanceId`.

use alloc::borrow::Cow;
use core::fmt;

use super::{AbstractType, Element, ElementId, Semantics, Units};

/// The Private Enterprise Number reserved for documentation (RFC 5612), our default.
pub const PEN_DOCUMENTATION: u32 = 32473;

/// An element of the drafts, or the one beside them that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // each is one element with its exact name
pub enum DraftElement {
    RdmaSequenceEpochId,
    RdmaSequenceReportId,
    RdmaSequenceWindow,
    RdmaSequenceFlags,
    SkippedPsnTotalCount,
    FilledPsnTotalCount,
    ExpiredPsnTotalCount,
    AbandonedPsnTotalCount,
    PendingPsnCount,
    RepeatedPsnTotalCount,
    RequestPacketTotalCount,
    UnclassifiedLatePacketTotalCount,
    RdmaDestinationQp,
    RdmaPartitionKey,
    PfcPriority,
    PfcControlFrameTotalCount,
    /// An extension of ours: what `observe::pfc::instance` says that it vouches for. 0 is never
    /// used.
    PfcCounterInstanceId,
}

/// What a draft says of one element, and the number we give it by default.
struct Row {
    name: &'static str,
    id: u16,
    abstract_type: AbstractType,
    semantics: Semantics,
    units: Units,
    range: Option<(u64, u64)>,
}

impl DraftElement {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; 17] = [
        Self::RdmaSequenceEpochId,
        Self::RdmaSequenceReportId,
        Self::RdmaSequenceWindow,
        Self::RdmaSequenceFlags,
        Self::SkippedPsnTotalCount,
        Self::FilledPsnTotalCount,
        Self::ExpiredPsnTotalCount,
        Self::AbandonedPsnTotalCount,
        Self::PendingPsnCount,
        Self::RepeatedPsnTotalCount,
        Self::RequestPacketTotalCount,
        Self::UnclassifiedLatePacketTotalCount,
        Self::RdmaDestinationQp,
        Self::RdmaPartitionKey,
        Self::PfcPriority,
        Self::PfcControlFrameTotalCount,
        Self::PfcCounterInstanceId,
    ];

    /// Whether no draft has it: a session describes it only where its exporter uses it.
    #[must_use]
    pub const fn is_extension(self) -> bool {
        matches!(self, Self::PfcCounterInstanceId)
    }

    /// The draft's name, e.g. `rdmaSequenceEpochId`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The draft element with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }

    /// The number that the default mapping gives it.
    #[must_use]
    pub const fn default_id(self) -> u16 {
        self.row().id
    }

    /// The abstract type that the draft gives it.
    #[must_use]
    pub const fn abstract_type(self) -> AbstractType {
        self.row().abstract_type
    }

    /// The element as the draft defines it, under a number. SEQ-8.1
    #[must_use]
    pub const fn element(self, id: ElementId) -> Element {
        let row = self.row();
        Element {
            id,
            name: Cow::Borrowed(row.name),
            abstract_type: row.abstract_type,
            semantics: row.semantics,
            units: row.units,
            range: row.range,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }

    // SEQ-8.1: the registration properties of section 8, one line an element.
    const fn row(self) -> Row {
        use AbstractType::{Unsigned8, Unsigned16, Unsigned32, Unsigned64};
        use Semantics::{Flags, Identifier, Quantity, TotalCounter};
        use Units::{Frames, None as Unitless, Packets};
        match self {
            Self::RdmaSequenceEpochId => {
                row("rdmaSequenceEpochId", 1, Unsigned64, Identifier, Unitless)
            }
            Self::RdmaSequenceReportId => {
                row("rdmaSequenceReportId", 2, Unsigned64, Identifier, Unitless)
            }
            Self::RdmaSequenceWindow => Row {
                range: Some((1, 4_194_304)),
                ..row("rdmaSequenceWindow", 3, Unsigned32, Quantity, Unitless)
            },
            Self::RdmaSequenceFlags => row("rdmaSequenceFlags", 4, Unsigned16, Flags, Unitless),
            Self::SkippedPsnTotalCount => {
                row("skippedPsnTotalCount", 5, Unsigned64, TotalCounter, Unitless)
            }
            Self::FilledPsnTotalCount => {
                row("filledPsnTotalCount", 6, Unsigned64, TotalCounter, Unitless)
            }
            Self::ExpiredPsnTotalCount => {
                row("expiredPsnTotalCount", 7, Unsigned64, TotalCounter, Unitless)
            }
            Self::AbandonedPsnTotalCount => {
                row("abandonedPsnTotalCount", 8, Unsigned64, TotalCounter, Unitless)
            }
            Self::PendingPsnCount => row("pendingPsnCount", 9, Unsigned32, Quantity, Unitless),
            Self::RepeatedPsnTotalCount => {
                row("repeatedPsnTotalCount", 10, Unsigned64, TotalCounter, Packets)
            }
            Self::RequestPacketTotalCount => {
                row("requestPacketTotalCount", 11, Unsigned64, TotalCounter, Packets)
            }
            Self::UnclassifiedLatePacketTotalCount => {
                row("unclassifiedLatePacketTotalCount", 12, Unsigned64, TotalCounter, Packets)
            }
            // SEQ-6.10: four octets on the wire, the upper eight bits zero.
            Self::RdmaDestinationQp => Row {
                range: Some((0, 0x00ff_ffff)),
                ..row("rdmaDestinationQP", 21, Unsigned32, Identifier, Unitless)
            },
            Self::RdmaPartitionKey => row("rdmaPartitionKey", 22, Unsigned16, Identifier, Unitless),
            // PFC-id.3
            Self::PfcPriority => Row {
                range: Some((0, 7)),
                ..row("pfcPriority", 31, Unsigned8, Identifier, Unitless)
            },
            Self::PfcControlFrameTotalCount => {
                row("pfcControlFrameTotalCount", 32, Unsigned64, TotalCounter, Frames)
            }
            Self::PfcCounterInstanceId => Row {
                range: Some((1, u64::MAX)),
                ..row("pfcCounterInstanceId", 33, Unsigned64, Identifier, Unitless)
            },
        }
    }
}

const fn row(
    name: &'static str,
    id: u16,
    abstract_type: AbstractType,
    semantics: Semantics,
    units: Units,
) -> Row {
    Row { name, id, abstract_type, semantics, units, range: None }
}

/// Which number stands for which draft element: one Private Enterprise Number, and an identifier
/// for each element. Exporter and collector must hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pen: u32,
    ids: [u16; DraftElement::ALL.len()],
}

impl Default for Mapping {
    /// The default numbers under the documentation enterprise number.
    fn default() -> Self {
        Self { pen: PEN_DOCUMENTATION, ids: DraftElement::ALL.map(DraftElement::default_id) }
    }
}

/// Why a mapping cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingError {
    /// Enterprise number 0 stands for IANA, which has assigned none of these. SEQ-6.8
    PenZero,
    /// An identifier that does not fit into 15 bits, or is 0.
    OutOfRange {
        /// Whose.
        element: DraftElement,
        /// What was asked for.
        id: u16,
    },
    /// Two elements would share an identifier.
    Taken {
        /// Whose.
        element: DraftElement,
        /// Who has it.
        by: DraftElement,
        /// The identifier.
        id: u16,
    },
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PenZero => f.write_str("enterprise number 0 for draft elements, need at least 1"),
            Self::OutOfRange { element, id } => {
                write!(f, "identifier {id} for {}, need 1 to 32767", element.name())
            }
            Self::Taken { element, by, id } => {
                write!(f, "identifier {id} for {}, already that of {}", element.name(), by.name())
            }
        }
    }
}

impl core::error::Error for MappingError {}

impl Mapping {
    /// The default identifiers under an enterprise number.
    ///
    /// # Errors
    /// [`MappingError::PenZero`].
    pub fn new(pen: u32) -> Result<Self, MappingError> {
        Self::with_ids(pen, &[])
    }

    /// The default identifiers under an enterprise number, some of them replaced. All are replaced
    /// before anything is judged, so two can change places.
    ///
    /// # Errors
    /// Any [`MappingError`].
    pub fn with_ids(pen: u32, ids: &[(DraftElement, u16)]) -> Result<Self, MappingError> {
        if pen == 0 {
            return Err(MappingError::PenZero);
        }
        let mut mapping = Self { pen, ..Self::default() };
        for &(element, id) in ids {
            mapping.ids[element.index()] = id;
        }
        for element in DraftElement::ALL {
            let id = mapping.ids[element.index()];
            if id == 0 || id > 0x7fff {
                return Err(MappingError::OutOfRange { element, id });
            }
            if let Some(by) = DraftElement::ALL
                .into_iter()
                .find(|other| *other < element && mapping.ids[other.index()] == id)
            {
                return Err(MappingError::Taken { element, by, id });
            }
        }
        Ok(mapping)
    }

    /// The enterprise number.
    #[must_use]
    pub const fn pen(&self) -> u32 {
        self.pen
    }

    /// The number of an element.
    #[must_use]
    pub const fn id(&self, element: DraftElement) -> ElementId {
        ElementId { pen: self.pen, id: self.ids[element.index()] }
    }

    /// The draft element that has this number, if one has.
    #[must_use]
    pub fn draft(&self, id: ElementId) -> Option<DraftElement> {
        if id.pen != self.pen {
            return None;
        }
        DraftElement::ALL.into_iter().find(|d| self.ids[d.index()] == id.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_numbers_are_those_of_the_agreed_table() {
        // SEQ-6.8
        let mapping = Mapping::default();
        let table: [(&str, u16); 17] = [
            ("rdmaSequenceEpochId", 1),
            ("rdmaSequenceReportId", 2),
            ("rdmaSequenceWindow", 3),
            ("rdmaSequenceFlags", 4),
            ("skippedPsnTotalCount", 5),
            ("filledPsnTotalCount", 6),
            ("expiredPsnTotalCount", 7),
            ("abandonedPsnTotalCount", 8),
            ("pendingPsnCount", 9),
            ("repeatedPsnTotalCount", 10),
            ("requestPacketTotalCount", 11),
            ("unclassifiedLatePacketTotalCount", 12),
            ("rdmaDestinationQP", 21),
            ("rdmaPartitionKey", 22),
            ("pfcPriority", 31),
            ("pfcControlFrameTotalCount", 32),
            ("pfcCounterInstanceId", 33),
        ];
        for (name, id) in table {
            let draft = DraftElement::from_name(name).expect(name);
            let number = ElementId { pen: 32473, id };
            assert_eq!(mapping.id(draft), number, "{name}");
            assert_eq!(mapping.draft(number), Some(draft), "{name}");
        }
    }

    #[test]
    fn a_number_under_another_enterprise_is_no_draft_element() {
        let mapping = Mapping::new(1).expect("legal");
        assert_eq!(mapping.draft(ElementId { pen: 32473, id: 1 }), None);
        assert_eq!(mapping.draft(ElementId { pen: 0, id: 1 }), None);
    }

    #[test]
    fn a_mapping_refuses_iana_and_shared_and_oversized_numbers_and_lets_two_change_places() {
        use DraftElement::{PfcPriority, RdmaSequenceEpochId, RdmaSequenceReportId};
        assert_eq!(Mapping::new(0), Err(MappingError::PenZero));
        for (id, legal) in [(0, false), (100, true), (0x7fff, true), (0x8000, false)] {
            assert_eq!(Mapping::with_ids(9, &[(PfcPriority, id)]).is_ok(), legal, "{id}");
        }
        assert_eq!(
            Mapping::with_ids(9, &[(PfcPriority, 1)]),
            Err(MappingError::Taken { element: PfcPriority, by: RdmaSequenceEpochId, id: 1 })
        );
        let swapped = Mapping::with_ids(9, &[(RdmaSequenceEpochId, 2), (RdmaSequenceReportId, 1)]);
        assert_eq!(swapped.expect("legal").id(RdmaSequenceEpochId).id, 2);
    }

    #[test]
    fn each_element_has_the_type_semantics_units_and_range_that_its_draft_registers() {
        // SEQ-8.1, SEQ-6.10, PFC-id.3
        let table = [
            ("rdmaSequenceEpochId", "unsigned64 identifier none", None),
            ("rdmaSequenceReportId", "unsigned64 identifier none", None),
            ("rdmaSequenceWindow", "unsigned32 quantity none", Some((1, 4_194_304))),
            ("rdmaSequenceFlags", "unsigned16 flags none", None),
            ("skippedPsnTotalCount", "unsigned64 totalCounter none", None),
            ("filledPsnTotalCount", "unsigned64 totalCounter none", None),
            ("expiredPsnTotalCount", "unsigned64 totalCounter none", None),
            ("abandonedPsnTotalCount", "unsigned64 totalCounter none", None),
            ("pendingPsnCount", "unsigned32 quantity none", None),
            ("repeatedPsnTotalCount", "unsigned64 totalCounter packets", None),
            ("requestPacketTotalCount", "unsigned64 totalCounter packets", None),
            ("unclassifiedLatePacketTotalCount", "unsigned64 totalCounter packets", None),
            ("rdmaDestinationQP", "unsigned32 identifier none", Some((0, 0x00ff_ffff))),
            ("rdmaPartitionKey", "unsigned16 identifier none", None),
            ("pfcPriority", "unsigned8 identifier none", Some((0, 7))),
            ("pfcControlFrameTotalCount", "unsigned64 totalCounter frames", None),
            ("pfcCounterInstanceId", "unsigned64 identifier none", Some((1, u64::MAX))),
        ];
        for (draft, (name, properties, range)) in DraftElement::ALL.into_iter().zip(table) {
            let element = draft.element(Mapping::default().id(draft));
            let (semantics, units) = (element.semantics.name(), element.units.name());
            let found = std::format!(
                "{} {} {}",
                element.abstract_type.name(),
                semantics.expect("assigned"),
                units.expect("assigned")
            );
            assert_eq!((&*element.name, &*found, element.range), (name, properties, range));
            assert!(element.abstract_type.admits_semantics(element.semantics), "{name}");
        }
    }

    #[test]
    fn all_lists_every_element_at_its_own_place() {
        for (i, d) in DraftElement::ALL.into_iter().enumerate() {
            assert_eq!(d.index(), i);
        }
    }
}
