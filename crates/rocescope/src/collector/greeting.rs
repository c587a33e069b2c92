//! What a stream that is not what was expected begins with, told in a line.

use crate::config::printable;

/// Octets of a text that are shown.
const SHOWN_MAX: usize = 32;

/// What the first octets of a connection look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// A TLS handshake record.
    Tls,
    /// An IPFIX message.
    Ipfix,
    /// NetFlow of this version.
    NetFlow(u16),
    /// Printable text.
    Text(String),
    /// Something else.
    Other(Vec<u8>),
}

impl Greeting {
    /// Looks at the first octets; the more there are, the more it can say.
    pub fn of(octets: &[u8]) -> Self {
        let is_text = |o: &u8| o.is_ascii_graphic() || matches!(o, b' ' | b'\t' | b'\r' | b'\n');
        match octets {
            [0x16] | [0x16, 0x03, ..] => Self::Tls,
            [0] | [0, 10, ..] => Self::Ipfix,
            [0, version @ (1 | 5..=9), ..] => Self::NetFlow(u16::from(*version)),
            [first, ..] if is_text(first) => {
                let line = octets.split(|o| matches!(o, b'\r' | b'\n')).next().unwrap_or_default();
                let shown = &line[..line.len().min(SHOWN_MAX)];
                Self::Text(printable(&String::from_utf8_lossy(shown)))
            }
            _ => Self::Other(octets[..octets.len().min(8)].to_vec()),
        }
    }

    /// What it is, and what was expected, in a line.
    pub fn instead_of(&self, expected: &str) -> String {
        match self {
            Self::Tls => format!("a TLS handshake, expected {expected}"),
            Self::Ipfix => format!("IPFIX without TLS, expected {expected}"),
            Self::NetFlow(version) => format!("NetFlow version {version}, expected {expected}"),
            Self::Text(text) => format!("the text \"{text}\", expected {expected}"),
            Self::Other(octets) if octets.is_empty() => format!("nothing, expected {expected}"),
            Self::Other(octets) => {
                let shown: Vec<String> = octets.iter().map(|o| format!("{o:02x}")).collect();
                format!("octets {}, expected {expected}", shown.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_another_kind_is_told_in_one_line() {
        for (octets, expected) in [
            (&[0x16, 3, 1, 2, 0][..], "a TLS handshake, expected X"),
            (&[0, 10, 0, 32], "IPFIX without TLS, expected X"),
            (&[0, 9, 0, 1], "NetFlow version 9, expected X"),
            (b"GET / HTTP/1.1\r\nHost: a\r\n", "the text \"GET / HTTP/1.1\", expected X"),
            (&[0xff, 0, 1], "octets ff 00 01, expected X"),
            (&[], "nothing, expected X"),
        ] {
            assert_eq!(Greeting::of(octets).instead_of("X"), expected);
        }
    }

    #[test]
    fn what_a_peer_writes_cannot_write_to_the_terminal() {
        let told = Greeting::of(b"a\x1b[2J\x07\xffb").instead_of("X");
        assert!(told.chars().all(|c| !c.is_control()), "{told:?}");
        let long = Greeting::of(&[b'a'; 10_000]).instead_of("X");
        assert!(long.len() < 80, "{long}");
    }
}
