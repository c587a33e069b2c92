//! XML text split into elements with their namespaces (XML 1.0, Namespaces in XML 1.0).
//!
//! There are no entities but the five of XML, no document type and no processing instruction: each
//! is an error. Depth, number of elements and number of attributes are bounded.

use std::fmt;

use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
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
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth_max: 64, elements_max: 10_000, attributes_max: 64 }
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
        let mut open: Vec<Element> = Vec::new();
        let mut root = None;
        loop {
            let start = reader.buffer_position();
            let event = reader.read_event().map_err(|error| XmlError {
                at: reader.error_position(),
                what: error.to_string(),
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
                Event::Decl(_) | Event::Comment(_) => {}
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
            let value = unescape(&attribute.value).map_err(|error| error.to_string())?;
            if let Some(declared) = attribute.key.as_namespace_binding() {
                let prefix = match declared {
                    quick_xml::name::PrefixDeclaration::Default => "",
                    quick_xml::name::PrefixDeclaration::Named(name) => name,
                };
                element.declared.push((prefix.into(), value.into()));
                continue;
            }
            let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
            element.attributes.push(Attribute {
                namespace: resolved(namespace)?,
                written: attribute.key.into_inner().into(),
                name: local.into_inner().into(),
                value: value.into(),
            });
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
