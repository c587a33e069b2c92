//! Messages in a stream of octets (RFC 6242, section 4).

use std::fmt;

/// How messages are told from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each ends with `]]>]]>`: of NETCONF 1.0 and of every hello.
    EndOfMessage,
    /// Each comes in chunks that say how long they are: of NETCONF 1.1.
    Chunked,
}

const MARK: &[u8] = b"]]>]]>";

/// Digits of a length of a chunk, at most: 4294967295.
const DIGITS_MAX: usize = 10;

/// Why a stream is at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// A message of more octets than these.
    TooBig(usize),
    /// Something that is no chunk, as far as it was read.
    Chunk(String),
    /// A message that is no UTF-8.
    Text,
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooBig(max) => write!(f, "a message of more than {max} octets"),
            Self::Chunk(found) => {
                write!(f, "{found}, expected a chunk: a line feed, #, its length and a line feed")
            }
            Self::Text => f.write_str("a message that is not UTF-8"),
        }
    }
}

impl std::error::Error for FramingError {}

/// Takes octets, gives messages.
#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    octets_max: usize,
    /// What has come and is not taken yet.
    input: Vec<u8>,
    /// So far the input was looked through for the mark.
    seen: usize,
    /// The chunks of the message so far.
    message: Vec<u8>,
    /// Octets of the present chunk that have not come yet.
    missing: usize,
}

impl Decoder {
    /// One that begins with a hello.
    pub const fn new(octets_max: usize) -> Self {
        Self {
            framing: Framing::EndOfMessage,
            octets_max,
            input: Vec::new(),
            seen: 0,
            message: Vec::new(),
            missing: 0,
        }
    }

    /// From the next message on.
    pub const fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Takes octets as they come. Call [`Self::next_message`] until there is no message any more before the
    /// next ones.
    pub fn take(&mut self, octets: &[u8]) {
        self.input.extend_from_slice(octets);
    }

    /// The next message, where it has come whole.
    ///
    /// # Errors
    ///
    /// The stream cannot go on.
    pub fn next_message(&mut self) -> Result<Option<String>, FramingError> {
        let found = match self.framing {
            Framing::EndOfMessage => self.marked()?,
            Framing::Chunked => self.chunks()?,
        };
        found.map(|octets| String::from_utf8(octets).map_err(|_| FramingError::Text)).transpose()
    }

    fn marked(&mut self) -> Result<Option<Vec<u8>>, FramingError> {
        // A mark may have begun at the end of what was looked through.
        let from = self.seen.saturating_sub(MARK.len() - 1);
        let rest = self.input.get(from..).unwrap_or_default();
        let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) else {
            self.seen = self.input.len();
            if self.input.len() > self.octets_max.saturating_add(MARK.len() - 1) {
                return Err(FramingError::TooBig(self.octets_max));
            }
            return Ok(None);
        };
        let end = from + at;
        if end > self.octets_max {
            return Err(FramingError::TooBig(self.octets_max));
        }
        let rest = self.input.split_off(end + MARK.len());
        let mut message = std::mem::replace(&mut self.input, rest);
        message.truncate(end);
        self.seen = 0;
        Ok(Some(message))
    }

    fn chunks(&mut self) -> Result<Option<Vec<u8>>, FramingError> {
        let mut at = 0;
        let end = loop {
            let rest = self.input.get(at..).unwrap_or_default();
            if self.missing > 0 {
                let taken = self.missing.min(rest.len());
                self.message.extend_from_slice(rest.get(..taken).unwrap_or_default());
                self.missing -= taken;
                at += taken;
                if self.missing > 0 {
                    break None;
                }
                continue;
            }
            match header(rest) {
                Header::Partial => break None,
                Header::End(octets) if !self.message.is_empty() => {
                    at += octets;
                    break Some(std::mem::take(&mut self.message));
                }
                Header::Chunk { octets, length } => {
                    if length > self.octets_max.saturating_sub(self.message.len()) {
                        return Err(FramingError::TooBig(self.octets_max));
                    }
                    at += octets;
                    self.missing = length;
                }
                Header::End(_) => return Err(FramingError::Chunk("the end of no chunk".into())),
                Header::Bad => {
                    let start = rest.get(..rest.len().min(16)).unwrap_or_default();
                    let found = String::from_utf8_lossy(start).into_owned();
                    return Err(FramingError::Chunk(format!("{found:?}")));
                }
            }
        };
        self.input.drain(..at);
        Ok(end)
    }
}

enum Header {
    Partial,
    Chunk { octets: usize, length: usize },
    End(usize),
    Bad,
}

/// What stands before a chunk or at the end of a message.
fn header(rest: &[u8]) -> Header {
    let expected = |at: usize, octet: u8| rest.get(at).is_none_or(|found| *found == octet);
    if !expected(0, b'\n') || !expected(1, b'#') {
        return Header::Bad;
    }
    let Some(first) = rest.get(2) else { return Header::Partial };
    if *first == b'#' {
        return match rest.get(3) {
            None => Header::Partial,
            Some(b'\n') => Header::End(4),
            Some(_) => Header::Bad,
        };
    }
    if !(b'1'..=b'9').contains(first) {
        return Header::Bad;
    }
    let digits = rest.get(2..).unwrap_or_default();
    let count = digits.iter().take_while(|octet| octet.is_ascii_digit()).count();
    if count > DIGITS_MAX {
        return Header::Bad;
    }
    match digits.get(count) {
        None => Header::Partial,
        Some(b'\n') => {
            let length = digits
                .iter()
                .take(count)
                .fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
            match usize::try_from(length) {
                Ok(length) if length <= u32::MAX as usize => {
                    Header::Chunk { octets: count + 3, length }
                }
                _ => Header::Bad,
            }
        }
        Some(_) => Header::Bad,
    }
}

/// A message as it goes out.
pub fn framed(framing: Framing, message: &str) -> Vec<u8> {
    match framing {
        // `>` is never written in text as it is, so the mark cannot be in a message.
        Framing::EndOfMessage => [message.as_bytes(), MARK].concat(),
        Framing::Chunked => format!("\n#{}\n{message}\n##\n", message.len()).into_bytes(),
    }
}
