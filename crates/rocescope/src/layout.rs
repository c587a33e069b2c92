//! Lines for people: columns, counts, and what a stream is called.

use std::io::{self, Write};

use observe::report::StreamKey;
use wire::frame::{Family, Namespace};

use crate::meter::json::address;

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
    let mut name = Vec::new();
    push_stream_name(&mut name, key);
    // All of it is ASCII.
    String::from_utf8_lossy(&name).into_owned()
}

/// Appends what a stream is called. Allocates nothing of its own.
pub fn push_stream_name(line: &mut Vec<u8>, key: &StreamKey) {
    address(line, key.addresses.family, &key.addresses.source);
    line.extend_from_slice(b" > ");
    address(line, key.addresses.family, &key.addresses.destination);
    line.extend_from_slice(b" qp 0x");
    hexadecimal(line, key.qp, 6);
    line.extend_from_slice(b" pkey 0x");
    hexadecimal(line, u32::from(key.pkey), 4);
    let namespace = key.namespace;
    for (what, value) in [
        (" vlan ", u32::from(namespace.outer_vlan)),
        (" inner vlan ", u32::from(namespace.inner_vlan)),
        (" segment ", namespace.segment & 0x00ff_ffff),
    ] {
        if value != 0 {
            line.extend_from_slice(what.as_bytes());
            line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        }
    }
}

/// How long [`push_stream_name`] makes a line, without making it where that can be counted.
pub fn stream_name_len(key: &StreamKey) -> usize {
    let digits = |octet: &u8| match octet {
        0..=9 => 1,
        10..=99 => 2,
        _ => 3,
    };
    if key.addresses.family == Family::V4 && key.namespace == Namespace::default() {
        let v4 = |address: &[u8; 16]| address[..4].iter().map(digits).sum::<usize>() + 3;
        return v4(&key.addresses.source) + v4(&key.addresses.destination) + NAME_REST;
    }
    let mut name = Vec::new();
    push_stream_name(&mut name, key);
    name.len()
}

/// Octets of a name beside its addresses.
const NAME_REST: usize = " > ".len() + " qp 0x123456 pkey 0x1234".len();

fn hexadecimal(line: &mut Vec<u8>, value: u32, digits: u32) {
    for digit in (0..digits).rev() {
        let nibble = (value >> (4 * digit)) & 0xf;
        line.push(b"0123456789abcdef"[nibble as usize]);
    }
}

/// A hardware address.
pub fn mac([a, b, c, d, e, f]: [u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// Writes a line for each count that is not zero, its text as [`agreed`] has it.
///
/// # Errors
/// As the writer.
pub fn lines(out: &mut impl Write, counts: &[(u64, &str)]) -> io::Result<()> {
    for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count:>12} {}", agreed(*count, what))?;
    }
    Ok(())
}

/// A text that agrees with a count: `packet[|s] that [was|were] seen` with what stands in front of
/// the bar for one, and what stands behind it for any other number.
pub fn agreed(count: u64, text: &str) -> String {
    let mut agreed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('[')
        && let Some((choice, behind)) = from.split_once(']')
        && let Some((one, many)) = choice.split_once('|')
    {
        agreed.push_str(before);
        agreed.push_str(if count == 1 { one } else { many });
        rest = behind;
    }
    agreed.push_str(rest);
    agreed
}

/// A count with a text that agrees with it.
pub fn counted(count: u64, text: &str) -> String {
    format!("{count} {}", agreed(count, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::frame::Addresses;

    #[test]
    fn a_text_agrees_with_its_count() {
        let text = "frame[|s] that reach[es|] beyond [its|their] end";
        assert_eq!(counted(1, text), "1 frame that reaches beyond its end");
        for count in [0, 2, u64::MAX] {
            assert_eq!(agreed(count, text), "frames that reach beyond their end");
        }
        for plain in ["ARP", "a [[stream]] of 2", "an open [ end"] {
            assert_eq!(agreed(1, plain), plain);
        }
    }

    #[test]
    fn the_length_of_a_name_is_that_of_the_name() {
        let v4 = Addresses::v4([1, 20, 255, 9], [10, 100, 0, 99]);
        let v6 = Addresses::v6([0xfd; 16], [0; 16]);
        let tagged = Namespace { outer_vlan: 7, inner_vlan: 0, segment: 0 };
        for (addresses, namespace) in
            [(v4, Namespace::default()), (v4, tagged), (v6, Namespace::default())]
        {
            let key = StreamKey { addresses, namespace, qp: 17, pkey: 0xffff };
            assert_eq!(stream_name_len(&key), stream_name(&key).len(), "{}", stream_name(&key));
        }
    }
}
