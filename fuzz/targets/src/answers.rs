//! What holds for every answer: it can be read again, and nothing hidden is in it.

use manage::read::{Encoding, What};

use crate::served::{MARKERS, schema};

/// Panics where something that is hidden stands in an answer, unless it was in the question, or
/// could have been in another way of writing.
pub(crate) fn nothing_hidden(question: &[u8], answer: &str) {
    if question.iter().any(|octet| b"%&\\".contains(octet)) {
        return;
    }
    let question = String::from_utf8_lossy(question);
    for marker in MARKERS {
        assert!(question.contains(marker) || !answer.contains(marker), "{marker} in {answer}");
    }
}

/// Reads a document of XML by the rules of XML 1.0 and its namespaces.
pub(crate) fn document(text: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Top-level nodes in XML, which libyang takes.
pub(crate) fn xml_data(text: &str) {
    if let Err(error) = schema().read(Encoding::Xml, What::Data, text) {
        panic!("{error} in {text}");
    }
}

/// An object of top-level nodes, which libyang takes.
pub(crate) fn json_data(text: &str) {
    if let Err(error) = schema().read(Encoding::Json, What::Data, text) {
        panic!("{error} in {text}");
    }
}

/// Reads a text of JSON in which no object has a name twice (RFC 7493).
pub(crate) fn json(text: &str) -> serde_json::Value {
    manage::json::read(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
