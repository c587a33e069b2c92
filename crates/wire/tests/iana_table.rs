//! The committed table of IANA elements is what the committed registry says.
//!
//! After a new registry was copied into `data/`, run this test once with the environment variable
//! `ROCESCOPE_BLESS` set: it writes the table instead of comparing it.

use std::fmt::Write as _;
use std::path::Path;

const NS: &str = "http://www.iana.org/assignments";

#[test]
fn the_table_is_what_the_registry_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let xml = std::fs::read_to_string(root.join("data/iana-ipfix-information-elements.xml"))
        .expect("registry");
    let made = table(&xml);
    let path = root.join("src/element/iana.rs");
    if std::env::var_os("ROCESCOPE_BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let kept = std::fs::read_to_string(&path).expect("table");
    assert!(
        kept == made,
        "src/element/iana.rs is not what the registry says; see this file's head"
    );
}

fn table(xml: &str) -> String {
    let document = roxmltree::Document::parse(xml).expect("well-formed");
    let text = |record: roxmltree::Node<'_, '_>, name: &str| {
        record
            .children()
            .find(|c| c.has_tag_name((NS, name)))
            .and_then(|c| c.text())
            .map(|t| t.trim().to_owned())
    };
    let elements = document
        .descendants()
        .find(|n| n.attribute("id") == Some("ipfix-information-elements"))
        .expect("the registry of elements");
    let mut rows: Vec<(u16, String)> = Vec::new();
    for record in elements.children().filter(|n| n.has_tag_name((NS, "record"))) {
        // Numbers that are reserved, unassigned or kept for NetFlow version 9 have no type.
        let Some(kind) = text(record, "dataType") else {
            continue;
        };
        let id: u16 = text(record, "elementId").expect("elementId").parse().expect("a number");
        let name = text(record, "name").expect("name");
        let semantics = text(record, "dataTypeSemantics").unwrap_or_else(|| "default".into());
        let units = text(record, "units").unwrap_or_else(|| "none".into());
        let range = text(record, "range").map_or("None".into(), |r| {
            let (begin, end) = r.split_once('-').expect("begin-end");
            format!("Some(({}, {}))", number(begin), number(end))
        });
        let row = format!(
            "    e({id}, {name:?}, T::{}, S::{}, U::{}, {range}),\n",
            capital(&kind),
            capital(&semantics),
            if units == "4-octet words" { "FourOctetWords".into() } else { capital(&units) },
        );
        rows.push((id, row));
    }
    rows.sort();
    assert!(rows.windows(2).all(|w| w[0].0 < w[1].0), "a number stands twice");
    let mut out = String::from(HEAD);
    for (_, row) in &rows {
        out.push_str(row);
    }
    writeln!(out, "];").expect("a string");
    out
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).expect("hex"),
        None => text.parse().expect("decimal"),
    }
}

fn capital(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

const HEAD: &str = "\
//! The IANA registry of IPFIX Information Elements as a table, sorted by number.
//!
//! Generated from `data/iana-ipfix-information-elements.xml` by `tests/iana_table.rs`; not edited by
//! hand. Deprecated elements are kept, since peers still send them.

use alloc::borrow::Cow;

use super::{AbstractType as T, Element, ElementId, Semantics as S, Units as U};

const fn e(id: u16, name: &'static str, t: T, s: S, u: U, range: Option<(u64, u64)>) -> Element {
    Element { id: ElementId::iana(id), name: Cow::Borrowed(name), abstract_type: t, semantics: s, units: u, range }
}

pub(super) static IANA: &[Element] = &[
";
