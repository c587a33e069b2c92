//! XML text split into elements with their namespaces (XML 1.0, Namespaces in XML 1.0).
//!
//! There are no entities but the five of XML, no document type and no processing instruction: each
//! is an error. Depth, number of elements, number of attributes and number of prefixes are bounded.
//! The reader underneath finds tags and does not look at what names are made of; that is done here,
//! because names and attributes go back to who sent them.

use std::fmt;

use quick_xml::Error;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{NamespaceError, ResolveResult};
use quick_xml::reader::NsReader;

/// How much one document may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Elements within elements, at most.
    pub depth_max: usize,
    /// Elements, at most.
    pub elements_max: usize,
    /// Attributes of one element, namespace declarations included, at most.
    pub attributes_max: usize,
    /// Prefixes that are declared in an element and those around it, at most. Each name is looked
    /// for in all of them.
    pub prefixes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth_max: 64, elements_max: 10_000, attributes_max: 64, prefixes_max: 128 }
    }
}

/// An attribute that is no namespace declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its namespace; none without a prefix.
    pub namespace: Option<Box<str>>,
    /// Its name as it is written, with its prefix.
    pub written: Box<str>,
    /// Its name without a prefix.
    pub name: Box<str>,
    /// Its value.
    pub value: Box<str>,
}

/// An element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Its namespace; none where none is declared.
    pub namespace: Option<Box<str>>,
    /// Its name without a prefix.
    pub name: Box<str>,
    /// Its attributes, without namespace declarations.
    pub attributes: Vec<Attribute>,
    /// The prefixes that it declares itself, with their namespaces; an empty prefix is the default.
    pub declared: Vec<(Box<str>, Box<str>)>,
    /// The elements in it.
    pub children: Vec<Self>,
    /// The character data in it, outside its elements.
    pub text: String,
    /// Where it begins and ends in the text, in octets.
    pub span: (usize, usize),
}

/// Why a text is no document that can be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlError {
    /// Where, in octets from the start.
    pub at: u64,
    /// What was found, and what was expected.
    pub what: String,
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at octet {} of the XML", self.what, self.at)
    }
}

impl std::error::Error for XmlError {}

impl Element {
    /// Reads one document.
    ///
    /// # Errors
    ///
    /// Where it is not well-formed, has what is not taken, or more than the limits allow.
    pub fn read(text: &str, limits: &Limits) -> Result<Self, XmlError> {
        Reading { text, limits, count: 0 }.document()
    }

    /// The first child of a namespace and name.
    pub fn child(&self, namespace: &str, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.is(namespace, name))
    }

    /// Whether it has this namespace and name.
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace.as_deref() == Some(namespace) && *self.name == *name
    }

    /// The value of an attribute without a namespace.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|attribute| attribute.namespace.is_none() && *attribute.name == *name)
            .map(|attribute| &*attribute.value)
    }

    /// Its character data without white space around it.
    pub fn trimmed(&self) -> &str {
        self.text.trim_matches([' ', '\t', '\r', '\n'])
    }
}

struct Reading<'a> {
    text: &'a str,
    limits: &'a Limits,
    count: usize,
}

impl Reading<'_> {
    fn document(mut self) -> Result<Element, XmlError> {
        let mut reader = NsReader::from_str(self.text);
        reader.config_mut().expand_empty_elements = true;
        reader.resolver_mut().set_max_namespace_bindings(self.limits.prefixes_max);
        let mut open: Vec<Element> = Vec::new();
        let mut root = None;
        loop {
            let start = reader.buffer_position();
            let event = reader.read_event().map_err(|error| XmlError {
                at: reader.error_position(),
                what: match error {
                    Error::Namespace(NamespaceError::TooManyBindings(max)) => {
                        format!("more than {max} prefixes declared around each other")
                    }
                    other => other.to_string(),
                },
            })?;
            let after = reader.buffer_position();
            let fault = |what: String| XmlError { at: start, what };
            match event {
                Event::Start(tag) => {
                    if open.len() >= self.limits.depth_max {
                        return Err(fault(format!(
                            "more than {} elements within each other",
                            self.limits.depth_max
                        )));
                    }
                    if root.is_some() {
                        return Err(fault("a second root element".into()));
                    }
                    let mut element = self.element(&reader, &tag).map_err(fault)?;
                    element.span.0 = usize::try_from(start).unwrap_or(usize::MAX);
                    open.push(element);
                }
                Event::End(_) => {
                    let Some(mut element) = open.pop() else {
                        return Err(fault("an end without a start".into()));
                    };
                    element.span.1 = usize::try_from(after).unwrap_or(usize::MAX);
                    match open.last_mut() {
                        Some(parent) => parent.children.push(element),
                        None => root = Some(element),
                    }
                }
                Event::Text(found) => {
                    self.characters(&mut open, &found).map_err(fault)?;
                }
                Event::CData(found) => {
                    self.characters(&mut open, &found).map_err(fault)?;
                }
                Event::GeneralRef(reference) => {
                    let found =
                        unescape(&format!("&{};", &*reference)).map(|found| found.into_owned());
                    let found = found.map_err(|error| fault(error.to_string()))?;
                    self.characters(&mut open, &found).map_err(fault)?;
                }
                // A byte order mark may be before it.
                Event::Decl(_) if start <= 3 && open.is_empty() && root.is_none() => {}
                Event::Decl(_) => {
                    return Err(fault("an XML declaration, expected it at the start alone".into()));
                }
                Event::Comment(found) => permitted(&found).map_err(fault)?,
                Event::DocType(_) => return Err(fault("a document type, expected none".into())),
                Event::PI(_) => {
                    return Err(fault("a processing instruction, expected none".into()));
                }
                Event::Empty(_) => return Err(fault("an element that was not expanded".into())),
                Event::Eof => break,
            }
        }
        let end = u64::try_from(self.text.len()).unwrap_or(u64::MAX);
        match (root, open.last()) {
            (_, Some(element)) => {
                Err(XmlError { at: end, what: format!("no end of element {}", element.name) })
            }
            (None, None) => Err(XmlError { at: end, what: "no element".into() }),
            (Some(root), None) => Ok(root),
        }
    }

    fn characters(&self, open: &mut [Element], found: &str) -> Result<(), String> {
        permitted(found)?;
        match open.last_mut() {
            Some(element) => element.text.push_str(found),
            None if found.trim().trim_matches('\u{feff}').is_empty() => {}
            None => return Err("text outside the root element".into()),
        }
        Ok(())
    }

    fn element(
        &mut self,
        reader: &NsReader<&[u8]>,
        tag: &BytesStart<'_>,
    ) -> Result<Element, String> {
        self.count += 1;
        if self.count > self.limits.elements_max {
            return Err(format!("more than {} elements", self.limits.elements_max));
        }
        named(tag.name().into_inner())?;
        let (namespace, local) = reader.resolver().resolve_element(tag.name());
        let mut element = Element {
            namespace: resolved(namespace)?,
            name: local.into_inner().into(),
            ..Element::default()
        };
        for (nth, attribute) in tag.attributes().enumerate() {
            if nth >= self.limits.attributes_max {
                return Err(format!("more than {} attributes", self.limits.attributes_max));
            }
            let attribute = attribute.map_err(|error| error.to_string())?;
            named(attribute.key.into_inner())?;
            if attribute.value.contains('<') {
                return Err(format!("`<` in attribute {}", attribute.key.into_inner()));
            }
            let value = unescape(&attribute.value).map_err(|error| error.to_string())?;
            permitted(&value)?;
            if let Some(declared) = attribute.key.as_namespace_binding() {
                let prefix = match declared {
                    quick_xml::name::PrefixDeclaration::Default => "",
                    quick_xml::name::PrefixDeclaration::Named(name) if value.is_empty() => {
                        return Err(format!("prefix {name:?} for no namespace, expected one"));
                    }
                    quick_xml::name::PrefixDeclaration::Named(name) => name,
                };
                element.declared.push((prefix.into(), value.into()));
                continue;
            }
            let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
            let found = Attribute {
                namespace: resolved(namespace)?,
                written: attribute.key.into_inner().into(),
                name: local.into_inner().into(),
                value: value.into(),
            };
            let twice =
                |other: &Attribute| other.name == found.name && other.namespace == found.namespace;
            if element.attributes.iter().any(twice) {
                return Err(format!("attribute {} twice, expected once", found.written));
            }
            element.attributes.push(found);
        }
        Ok(element)
    }
}

fn resolved(found: ResolveResult<'_>) -> Result<Option<Box<str>>, String> {
    match found {
        ResolveResult::Bound(namespace) => Ok(Some(namespace.into_inner().into())),
        ResolveResult::Unbound => Ok(None),
        ResolveResult::Unknown(prefix) => {
            Err(format!("prefix {:?}, which is not declared", prefix))
        }
    }
}

/// Whether all of it is text that XML can have (XML 1.0, section 2.2).
fn permitted(text: &str) -> Result<(), String> {
    let bad = |character: &char| matches!(character, '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    text.chars().find(bad).map_or(Ok(()), |character| {
        Err(format!("character U+{:04X}, expected none that XML cannot have", u32::from(character)))
    })
}

/// Whether it is a name, with a prefix or without one (Namespaces in XML 1.0, section 4).
fn named(written: &str) -> Result<(), String> {
    let (prefix, local) = written.split_once(':').unwrap_or(("_", written));
    if is_name(prefix) && is_name(local) {
        Ok(())
    } else {
        Err(format!("name {written:?}, expected one of XML"))
    }
}

/// Whether it is a name without a prefix.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(begins_name) && text.chars().all(continues_name)
}

fn begins_name(character: char) -> bool {
    matches!(
        character,
        'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
            | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
            | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
            | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
            | '\u{10000}'..='\u{effff}'
    )
}

fn continues_name(character: char) -> bool {
    begins_name(character)
        || matches!(
            character,
            '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}'
        )
}
