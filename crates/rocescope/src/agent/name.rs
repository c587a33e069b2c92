//! What a stream is called on the command line, read back: `10.0.0.1 > 10.0.0.2 qp 0x000011 pkey
//! 0xffff vlan 7`, as every table and answer shows it.

use std::net::IpAddr;

use observe::report::StreamKey;
use wire::frame::{Addresses, Layer, Namespace};

use crate::config::{identifier, segment_kind};

/// What a name has to look like, for errors.
pub const FORM: &str = "\"SOURCE > DESTINATION qp N pkey N\", then \"vlan N\", \"inner vlan N\", \"segment N\" where \
     the stream has them";

/// Reads a stream's name. `layer` is the one that is observed: it says of which kind a segment is.
///
/// # Errors
/// What was found and expected.
pub fn parse(text: &str, layer: Layer) -> Result<StreamKey, String> {
    read(text, layer).ok_or_else(|| format!("{text:?}, expected {FORM}"))
}

fn read(text: &str, layer: Layer) -> Option<StreamKey> {
    let mut words = text.split_whitespace();
    let source: IpAddr = words.next()?.parse().ok()?;
    (words.next()? == ">").then_some(())?;
    let destination: IpAddr = words.next()?.parse().ok()?;
    let addresses = match (source, destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => Addresses::v4(a.octets(), b.octets()),
        (IpAddr::V6(a), IpAddr::V6(b)) => Addresses::v6(a.octets(), b.octets()),
        _ => return None,
    };
    (words.next()? == "qp").then_some(())?;
    let qp = number(words.next()?, 0x00ff_ffff)?;
    (words.next()? == "pkey").then_some(())?;
    let pkey = u16::try_from(number(words.next()?, 0xffff)?).ok()?;
    let mut namespace = Namespace::default();
    while let Some(word) = words.next() {
        match word {
            "vlan" => namespace.outer_vlan = vlan(words.next()?)?,
            "inner" => {
                (words.next()? == "vlan").then_some(())?;
                namespace.inner_vlan = vlan(words.next()?)?;
            }
            "segment" => {
                namespace.segment = segment_kind(layer)? | number(words.next()?, 0x00ff_ffff)?;
            }
            _ => return None,
        }
    }
    Some(StreamKey { addresses, namespace, qp, pkey })
}

fn vlan(word: &str) -> Option<u16> {
    u16::try_from(number(word, 4094)?).ok()
}

fn number(word: &str, max: u32) -> Option<u32> {
    let number = u32::try_from(identifier(word)?).ok()?;
    (number <= max).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::stream_name;

    #[test]
    fn a_name_that_was_shown_is_read_back_as_the_stream_it_names() {
        let v4 = Addresses::v4([10, 0, 0, 1], [10, 0, 0, 2]);
        let v6 = Addresses::v6([0xfd; 16], [0; 16]);
        let vxlan = Namespace { outer_vlan: 7, inner_vlan: 9, segment: 0x0100_0000 | 5000 };
        for (addresses, namespace) in [(v4, Namespace::default()), (v6, vxlan), (v4, vxlan)] {
            let key = StreamKey { addresses, namespace, qp: 17, pkey: 0x8001 };
            assert_eq!(parse(&stream_name(&key), Layer::Vxlan), Ok(key));
        }
    }

    #[test]
    fn a_name_that_could_mean_another_stream_is_refused() {
        for bad in [
            "",
            "10.0.0.1 10.0.0.2 qp 1 pkey 1",
            "10.0.0.1 > fd00::1 qp 1 pkey 1",
            "10.0.0.1 > 10.0.0.2 qp 0x1000000 pkey 1",
            "10.0.0.1 > 10.0.0.2 qp 1 pkey 65536",
            "10.0.0.1 > 10.0.0.2 qp 1",
            "10.0.0.1 > 10.0.0.2 qp 1 pkey 1 vlan 4095",
            "10.0.0.1 > 10.0.0.2 qp 1 pkey 1 segment 5",
            "10.0.0.1 > 10.0.0.2 qp 1 pkey 1 and more",
        ] {
            assert!(parse(bad, Layer::Outer).is_err(), "{bad}");
        }
    }
}
