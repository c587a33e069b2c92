//! The JSON documents of a file: one a line, or any number of them over as many lines as they
//! like.

use std::fmt;
use std::io::{self, BufRead, Read};

use super::tree::Node;

/// Octets of one document, or of a file that is not one document a line, at most.
pub const DOCUMENT_OCTETS_MAX: usize = 16 << 20;

/// A document that cannot be had.
#[derive(Debug)]
pub enum Unread {
    /// The file cannot be read any further.
    Input(io::Error),
    /// This is no JSON; the next document may be.
    Json(String),
    /// Longer than a document may be; nothing behind it is read.
    TooLong,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Json(error) => write!(f, "{error}, expected a JSON document"),
            Self::TooLong => {
                write!(f, "a document of more than {DOCUMENT_OCTETS_MAX} octets, expected less")
            }
        }
    }
}

/// Documents with the line on which each starts, from 1.
pub struct Documents<R> {
    input: R,
    line: u64,
    /// Nothing was read yet.
    first: bool,
    ended: bool,
    /// Documents of a file that is read whole, the next one last.
    whole: Vec<(u64, Result<Node, Unread>)>,
}

impl<R: BufRead> Documents<R> {
    /// Nothing is read yet.
    pub const fn new(input: R) -> Self {
        Self { input, line: 0, first: true, ended: false, whole: Vec::new() }
    }

    /// A line, without what is only space; empty at the end.
    fn line(&mut self) -> Result<Vec<u8>, Unread> {
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(DOCUMENT_OCTETS_MAX).unwrap_or(u64::MAX).saturating_add(1);
            let read = (&mut self.input).take(limit).read_until(b'\n', &mut line);
            if read.map_err(Unread::Input)? == 0 {
                return Ok(line);
            }
            self.line += 1;
            if line.len() > DOCUMENT_OCTETS_MAX {
                return Err(Unread::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(line);
            }
        }
    }

    /// The rest of a file whose first document does not end with its first line.
    fn read_whole(&mut self, mut octets: Vec<u8>) -> Result<(), Unread> {
        let room = DOCUMENT_OCTETS_MAX - octets.len();
        let limit = u64::try_from(room).unwrap_or(u64::MAX).saturating_add(1);
        (&mut self.input).take(limit).read_to_end(&mut octets).map_err(Unread::Input)?;
        if octets.len() > DOCUMENT_OCTETS_MAX {
            return Err(Unread::TooLong);
        }
        let mut documents = serde_json::Deserializer::from_slice(&octets).into_iter::<Node>();
        let (mut line, mut counted) = (self.line, 0);
        loop {
            let start = counted + leading_space(&octets[counted..]);
            line += newlines(&octets[counted..start]);
            let Some(document) = documents.next() else { break };
            let failed = document.is_err();
            self.whole.push((line, document.map_err(|error| Unread::Json(told(&error, line)))));
            if failed {
                break;
            }
            counted = documents.byte_offset();
            line += newlines(&octets[start..counted]);
        }
        self.whole.reverse();
        Ok(())
    }

    fn read(&mut self) -> Option<(u64, Result<Node, Unread>)> {
        let line = match self.line() {
            Ok(line) if line.is_empty() => return None,
            Ok(line) => line,
            Err(error) => {
                self.ended = true;
                return Some((self.line.max(1), Err(error)));
            }
        };
        let first = std::mem::take(&mut self.first);
        match serde_json::from_slice(line.trim_ascii_end()) {
            Err(error) if error.is_eof() && first => {
                self.ended = true;
                if let Err(error) = self.read_whole(line) {
                    return Some((self.line, Err(error)));
                }
                self.whole.pop()
            }
            Err(error) => Some((self.line, Err(Unread::Json(told(&error, 1))))),
            Ok(node) => Some((self.line, Ok(node))),
        }
    }
}

/// The error without its line, which is said elsewhere, unless the document has several.
fn told(error: &serde_json::Error, first: u64) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
    let line = u64::try_from(error.line()).unwrap_or(u64::MAX);
    let line =
        if line > 1 { format!("line {}, ", first.saturating_add(line - 1)) } else { String::new() };
    format!("{what} ({line}column {})", error.column())
}

fn newlines(octets: &[u8]) -> u64 {
    octets.iter().map(|octet| u64::from(*octet == b'\n')).sum()
}

fn leading_space(octets: &[u8]) -> usize {
    octets.iter().take_while(|octet| octet.is_ascii_whitespace()).count()
}

impl<R: BufRead> Iterator for Documents<R> {
    type Item = (u64, Result<Node, Unread>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(document) = self.whole.pop() {
            return Some(document);
        }
        if self.ended { None } else { self.read() }
    }
}
