//! `[elements]`: the numbers of the drafts' elements, the same on both sides.

use wire::element::{DraftElement, Mapping, MappingError, PEN_DOCUMENTATION};

use super::section::Section;

pub(super) const KEYS: &[&str] = &["pen", "ids"];

/// The names of the drafts' elements, in the order of [`DraftElement::ALL`].
const NAMES: &[&str] = &{
    let mut names = [""; DraftElement::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = DraftElement::ALL[index].name();
        index += 1;
    }
    names
};

/// Reads the section. Overrides are taken together, so two elements can change places.
// SEQ-6.8, PFC-exp.2: enterprise numbers, never a number of IANA's.
pub(super) fn read(section: &Section<'_>) -> Option<Mapping> {
    let pen = section.number("pen", 1..=u32::MAX, PEN_DOCUMENTATION);
    let ids = section.section("ids", NAMES);
    let mut overrides = Vec::new();
    let mut good = true;
    for (element, name) in DraftElement::ALL.into_iter().zip(NAMES) {
        let Some(value) = ids.value(name) else { continue };
        match value.number(1..=0x7fff) {
            Some(id) => overrides.push((element, id)),
            None => good = false,
        }
    }
    let mapping = Mapping::with_ids(pen?, &overrides);
    if let Err(error) = mapping {
        place(&ids, error, &overrides);
    }
    mapping.ok().filter(|_| good)
}

/// Reports an error at the override that made it.
fn place(ids: &Section<'_>, error: MappingError, overrides: &[(DraftElement, u16)]) {
    let MappingError::Taken { element, by, id } = error else {
        ids.error("", error.to_string());
        return;
    };
    let is_override = |one: DraftElement| overrides.iter().any(|(other, _)| *other == one);
    // The defaults do not collide, so at least one of the two is an override.
    let (culprit, other) = if is_override(element) { (element, by) } else { (by, element) };
    match ids.value(culprit.name()) {
        Some(value) => value
            .problem(format!("{id}, expected a number that is not taken: {} has it", other.name())),
        None => ids.error(culprit.name(), error.to_string()),
    }
}
