//! Records of PFC counters as other programs print them.

use std::collections::BTreeMap;

/// The records that ipfixDump printed with a total of PFC frames, by element name.
pub fn of_ipfix_dump(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut found = Vec::new();
    for record in text.split("--- ").filter(|r| r.contains("pfcControlFrameTotalCount : ")) {
        let mut values = BTreeMap::new();
        for line in record.lines() {
            let Some((name, value)) = line.split_once(" : ") else { continue };
            let name = name.rsplit(')').next().unwrap_or(name).trim();
            values.insert(name.to_owned(), value.trim().to_owned());
        }
        found.push(values);
    }
    found
}

/// Whether tshark's details have fields with exactly these values one behind the other, each
/// field a record of its own. Values are in hexadecimal.
pub fn pdml_has(text: &str, fields: &[String]) -> bool {
    let whole = format!("value=\"{}\"", fields.concat());
    text.contains(&whole) && fields.iter().all(|field| text.contains(&format!("value=\"{field}\"")))
}
