//! The elements that one Transport Session knows.
//!
//! RFC 5610, section 3.9: what a peer says of an element holds in its session only, never replaces
//! what we know ourselves, and counts for nothing once it has contradicted itself.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use super::iana::IANA;
use super::{DraftElement, Element, ElementId, Mapping};

/// How many elements a session may teach us unless configured otherwise.
pub const LEARNED_MAX: usize = 1024;

/// Octets of the longest name that is taken from a peer.
pub const TEXT_MAX: usize = 255;

/// Elements by number and by name.
#[derive(Clone, Debug)]
pub struct Registry {
    mapping: Mapping,
    drafts: Vec<Element>,
    learned: BTreeMap<ElementId, Learned>,
    learned_max: usize,
}

#[derive(Clone, Debug)]
enum Learned {
    Element(Element),
    /// Told twice in two ways: neither holds for the rest of the session.
    Contradicted,
}

/// Why an element that a peer described is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnError {
    /// The program's own definition stands, and the peer's is another one.
    Known(ElementId),
    /// The peer has described the element in two ways; it is unknown from now on.
    Contradicted(ElementId),
    /// The type cannot have these semantics (RFC 5610, section 3.10).
    Semantics(ElementId),
    /// A range whose end is before its begin.
    Range(ElementId),
    /// A name with no octets or more than [`TEXT_MAX`], or with control characters.
    Name(ElementId),
    /// As many as the limit allows are known already.
    Full {
        /// What was not learned.
        id: ElementId,
        /// The limit.
        max: usize,
    },
}

impl fmt::Display for LearnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(id) => {
                write!(f, "type record for {id} differs from the definition known here")
            }
            Self::Contradicted(id) => write!(f, "type records for {id} contradict each other"),
            Self::Semantics(id) => {
                write!(f, "type record for {id} has semantics that its type cannot have")
            }
            Self::Range(id) => {
                write!(f, "type record for {id} has a range that ends before it begins")
            }
            Self::Name(id) => {
                write!(f, "type record for {id} has no usable name, need 1 to {TEXT_MAX} octets")
            }
            Self::Full { id, max } => {
                write!(f, "type record for {id} not kept, {max} elements learned already")
            }
        }
    }
}

impl core::error::Error for LearnError {}

impl Default for Registry {
    fn default() -> Self {
        Self::new(Mapping::default())
    }
}

impl Registry {
    /// The IANA elements, and those of the drafts under a mapping.
    #[must_use]
    pub fn new(mapping: Mapping) -> Self {
        Self::with_limit(mapping, LEARNED_MAX)
    }

    /// As [`Registry::new`], with a limit on the elements that can be learned.
    #[must_use]
    pub fn with_limit(mapping: Mapping, learned_max: usize) -> Self {
        Self {
            mapping,
            drafts: DraftElement::ALL.into_iter().map(|d| d.element(mapping.id(d))).collect(),
            learned: BTreeMap::new(),
            learned_max,
        }
    }

    /// The mapping of the draft elements.
    #[must_use]
    pub const fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The element with a number. Logarithmic in the number of elements.
    #[must_use]
    pub fn get(&self, id: ElementId) -> Option<&Element> {
        self.own(id).or_else(|| match self.learned.get(&id) {
            Some(Learned::Element(element)) => Some(element),
            _ => None,
        })
    }

    /// The element with a name; IANA's first, then the drafts', then learned ones by number. Looks
    /// at all of them: for configuration, not for records.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Element> {
        let learned = self.learned.values().filter_map(|l| match l {
            Learned::Element(element) => Some(element),
            Learned::Contradicted => None,
        });
        IANA.iter().chain(&self.drafts).chain(learned).find(|e| e.name == name)
    }

    /// The draft element that has a number, if one has.
    #[must_use]
    pub fn draft(&self, id: ElementId) -> Option<DraftElement> {
        self.mapping.draft(id)
    }

    /// Every element known from the start: IANA's, then the drafts'.
    pub fn own_elements(&self) -> impl Iterator<Item = &Element> {
        IANA.iter().chain(&self.drafts)
    }

    /// Takes in what a peer says of an element. Says whether it was new; a repetition of what is
    /// known already is neither new nor an error.
    ///
    /// # Errors
    /// [`LearnError`]. Nothing changes then, except that an element which was contradicted is
    /// forgotten for good.
    pub fn learn(&mut self, element: Element) -> Result<bool, LearnError> {
        let id = element.id;
        if !element.abstract_type.admits_semantics(element.semantics) {
            return Err(LearnError::Semantics(id));
        }
        if element.range.is_some_and(|(begin, end)| begin > end) {
            return Err(LearnError::Range(id));
        }
        if element.name.is_empty()
            || element.name.len() > TEXT_MAX
            || element.name.chars().any(char::is_control)
        {
            return Err(LearnError::Name(id));
        }
        if let Some(own) = self.own(id) {
            // The name, type and semantics are what the element is; a peer that leaves out units
            // or a range contradicts nobody.
            let same = own.name == element.name
                && own.abstract_type == element.abstract_type
                && own.semantics == element.semantics;
            return if same { Ok(false) } else { Err(LearnError::Known(id)) };
        }
        let known = self.learned.len();
        match self.learned.get_mut(&id) {
            Some(Learned::Element(before)) if *before == element => Ok(false),
            Some(before) => {
                *before = Learned::Contradicted;
                Err(LearnError::Contradicted(id))
            }
            None if known >= self.learned_max => {
                Err(LearnError::Full { id, max: self.learned_max })
            }
            None => {
                self.learned.insert(id, Learned::Element(element));
                Ok(true)
            }
        }
    }

    /// The element that the program itself defines under a number.
    pub(crate) fn own(&self, id: ElementId) -> Option<&Element> {
        if id.pen == 0 {
            let at = IANA.binary_search_by_key(&id.id, |e| e.id.id).ok()?;
            return IANA.get(at);
        }
        if id.pen != self.mapping.pen() {
            return None;
        }
        self.drafts.iter().find(|e| e.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{AbstractType, Semantics, Units};
    use alloc::borrow::Cow;
    use std::string::String;

    fn foreign(id: u16, name: &str) -> Element {
        Element {
            id: ElementId { pen: 9, id },
            name: Cow::Owned(String::from(name)),
            abstract_type: AbstractType::Unsigned32,
            semantics: Semantics::Quantity,
            units: Units::None,
            range: None,
        }
    }

    #[test]
    fn an_element_is_found_by_number_and_by_name_from_all_three_sources() {
        let mut registry = Registry::default();
        assert_eq!(registry.learn(foreign(5, "reading")), Ok(true));
        for (id, name) in [
            (ElementId::iana(138), "observationPointId"),
            (ElementId { pen: 32473, id: 5 }, "skippedPsnTotalCount"),
            (ElementId { pen: 9, id: 5 }, "reading"),
        ] {
            assert_eq!(registry.get(id).expect(name).name, name);
            assert_eq!(registry.by_name(name).expect(name).id, id);
        }
        assert_eq!(registry.get(ElementId { pen: 9, id: 6 }), None);
        assert_eq!(registry.get(ElementId::iana(0)), None);
        assert_eq!(registry.get(ElementId { pen: 0, id: 0x8001 }), None);
    }

    #[test]
    fn a_peer_cannot_replace_what_is_known_here() {
        let mut registry = Registry::default();
        let mut lie = DraftElement::SkippedPsnTotalCount.element(ElementId { pen: 32473, id: 5 });
        assert_eq!(registry.learn(lie.clone()), Ok(false));
        lie.abstract_type = AbstractType::Unsigned32;
        let id = lie.id;
        assert_eq!(registry.learn(lie), Err(LearnError::Known(id)));
        assert_eq!(registry.get(id).expect("known").abstract_type, AbstractType::Unsigned64);
    }

    #[test]
    fn an_element_that_was_described_in_two_ways_stays_unknown() {
        let mut registry = Registry::default();
        assert_eq!(registry.learn(foreign(5, "reading")), Ok(true));
        assert_eq!(registry.learn(foreign(5, "reading")), Ok(false));
        let id = ElementId { pen: 9, id: 5 };
        assert_eq!(registry.learn(foreign(5, "other")), Err(LearnError::Contradicted(id)));
        assert_eq!(registry.get(id), None);
        assert_eq!(registry.learn(foreign(5, "reading")), Err(LearnError::Contradicted(id)));
        assert_eq!(registry.by_name("reading"), None);
    }

    #[test]
    fn the_limit_on_learned_elements_holds_at_the_limit_and_refuses_one_more() {
        let mut registry = Registry::with_limit(Mapping::default(), 2);
        assert_eq!(registry.learn(foreign(1, "a")), Ok(true));
        assert_eq!(registry.learn(foreign(2, "b")), Ok(true));
        let id = ElementId { pen: 9, id: 3 };
        assert_eq!(registry.learn(foreign(3, "c")), Err(LearnError::Full { id, max: 2 }));
        assert_eq!(registry.learn(foreign(2, "b")), Ok(false));
    }

    #[test]
    fn a_name_is_neither_empty_nor_oversized_nor_a_terminal_command() {
        let mut registry = Registry::default();
        let id = ElementId { pen: 9, id: 5 };
        for name in ["", "a\u{1b}[2J", &"n".repeat(TEXT_MAX + 1)] {
            assert_eq!(registry.learn(foreign(5, name)), Err(LearnError::Name(id)));
        }
        assert_eq!(registry.learn(foreign(5, &"n".repeat(TEXT_MAX))), Ok(true));
    }
}
