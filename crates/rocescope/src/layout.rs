//! Lines for people: columns, counts, and what a stream is called.

use std::fmt::Write as _;
use std::io::{self, Write};

use observe::report::StreamKey;

use crate::config::shown;

/// Appends a cell right-aligned, with at least a space in front.
pub fn cell(line: &mut Vec<u8>, text: &[u8], width: usize) {
    let pad = width.saturating_sub(text.len()).max(1);
    line.resize(line.len() + pad, b' ');
    line.extend_from_slice(text);
}

/// Appends a cell left-aligned.
pub fn cell_left(line: &mut Vec<u8>, text: &[u8], width: usize) {
    line.extend_from_slice(text);
    line.resize(line.len() + width.saturating_sub(text.len()), b' ');
}

/// What a stream is called: all that names it, and nothing that is not there.
pub fn stream_name(key: &StreamKey) -> String {
    let family = key.addresses.family;
    let mut name = format!(
        "{} > {} qp {:#08x} pkey {:#06x}",
        shown(family, &key.addresses.source),
        shown(family, &key.addresses.destination),
        key.qp,
        key.pkey,
    );
    let namespace = key.namespace;
    let mut add = |what: &str, value: u32| {
        // Writing to a String cannot fail.
        _ = write!(name, " {what} {value}");
    };
    if namespace.outer_vlan != 0 {
        add("vlan", namespace.outer_vlan.into());
    }
    if namespace.inner_vlan != 0 {
        add("inner vlan", namespace.inner_vlan.into());
    }
    if namespace.segment != 0 {
        add("segment", namespace.segment & 0x00ff_ffff);
    }
    name
}

/// Writes a line for each count that is not zero.
///
/// # Errors
/// As the writer.
pub fn lines(out: &mut impl Write, counts: &[(u64, &str)]) -> io::Result<()> {
    for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count:>12} {what}")?;
    }
    Ok(())
}
