//! Capture files from the world: opened, decompressed, and fed to the parser of `wire::capture`
//! piece by piece. Memory does not grow with the file.

mod drops;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use drops::{DropCounter, Drops};

use crate::progress::Progress;
use flate2::read::MultiGzDecoder;
use wire::capture::{Format, Limits, Parser, Record, SNIFF_LEN, Statistics, Step, sniff};

/// Octets that are read at a time: small enough to stay in the processor's cache until they are
/// decoded, large enough that the calls do not matter.
const READ_LEN: usize = 128 * 1024;

/// What wants to see a capture file, in its order.
pub trait Visitor {
    /// A packet.
    fn packet(&mut self, record: &Record<'_>);
    /// Something else.
    fn item(&mut self, item: Item);
    /// All that was read has been shown, and more has to be waited for, perhaps for long.
    fn pause(&mut self) {}
}

/// What there is in a capture file beside packets.
#[derive(Debug)]
pub enum Item {
    /// A section starts: the interfaces before it are gone.
    Section,
    /// The next interface of the section.
    Interface {
        /// It can have drop counters: pcapng, not pcap.
        counters: bool,
    },
    /// Counters of an interface.
    Statistics(Statistics),
    /// The file ends inside a record, or its compression ends inside a block.
    Truncated {
        /// What is missing, for a warning.
        what: String,
    },
}

/// A capture file that cannot be read, or not any further.
#[derive(Debug)]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// Where and why.
    pub kind: CaptureErrorKind,
}

/// What is wrong with a capture file.
#[derive(Debug)]
pub enum CaptureErrorKind {
    /// It cannot be opened.
    Open(io::Error),
    /// It cannot be read on, at this offset after decompression.
    Read(u64, io::Error),
    /// What it holds is no capture.
    Format(wire::capture::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            CaptureErrorKind::Open(error) => error.fmt(f),
            CaptureErrorKind::Read(offset, error) => write!(f, "at octet {offset}: {error}"),
            CaptureErrorKind::Format(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CaptureError {}

/// An open capture file.
pub struct Capture {
    path: PathBuf,
    input: Box<dyn Read>,
    pcapng: bool,
}

impl Capture {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// It cannot be opened, or its first octets cannot be read.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let failed =
            |error| CaptureError { path: path.to_owned(), kind: CaptureErrorKind::Open(error) };
        if path == Path::new("-") {
            return Self::decompress(path, Box::new(io::stdin())).map_err(failed);
        }
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Self::decompress(path, Box::new(file)).map_err(failed)
    }

    fn decompress(path: &Path, mut input: Box<dyn Read>) -> io::Result<Self> {
        let (head, input) = peek(&mut *input).map(|head| (head, input))?;
        let whole = io::Cursor::new(head.clone()).chain(input);
        let (input, pcapng): (Box<dyn Read>, _) = match sniff(&head) {
            Format::Gzip => (Box::new(MultiGzDecoder::new(whole)), None),
            Format::Zstd => (Box::new(zstd::Decoder::new(whole)?), None),
            format => (Box::new(whole), Some(format == Format::PcapNg)),
        };
        let (input, pcapng) = match pcapng {
            Some(pcapng) => (input, pcapng),
            None => {
                let mut input = input;
                let head = peek(&mut *input)?;
                let pcapng = sniff(&head) == Format::PcapNg;
                (Box::new(io::Cursor::new(head).chain(input)) as Box<dyn Read>, pcapng)
            }
        };
        Ok(Self { path: path.to_owned(), input, pcapng })
    }

    /// Shows everything in the file, in its order.
    ///
    /// # Errors
    /// The file cannot be read any further; what was shown stands.
    pub fn read(
        mut self,
        limits: Limits,
        progress: &Progress,
        visitor: &mut impl Visitor,
    ) -> Result<(), CaptureError> {
        let mut parser = Parser::new(limits);
        let mut window = Refill::new();
        loop {
            // The packets have a way of their own: nothing else is as frequent.
            let mut data = window.data();
            while let Some((consumed, record)) = parser.packet(data) {
                visitor.packet(&record);
                data = &data[consumed..];
            }
            window.keep(data.len());
            let step = match parser.next(window.data(), window.at_end) {
                Ok(Step::Need(needed)) => {
                    visitor.pause();
                    match window.fill(&mut *self.input, needed) {
                        Ok(count) => progress.read(count),
                        Err(error) => return self.cannot_read(parser.offset(), error, visitor),
                    }
                    continue;
                }
                Ok(step) => step,
                Err(error) => {
                    return Err(CaptureError {
                        path: self.path,
                        kind: CaptureErrorKind::Format(error),
                    });
                }
            };
            let consumed = step.consumed();
            match step {
                Step::Packet { record, .. } => visitor.packet(&record),
                Step::Section { .. } => visitor.item(Item::Section),
                Step::Interface { .. } => visitor.item(Item::Interface { counters: self.pcapng }),
                Step::Statistics { statistics, .. } => visitor.item(Item::Statistics(statistics)),
                Step::TruncatedEnd { offset, found, expected } => {
                    visitor.item(Item::Truncated {
                        what: format!(
                            "{}: ends inside the record at octet {offset}: {found} octets, expected {expected}",
                            self.path.display()
                        ),
                    });
                    return Ok(());
                }
                Step::End => return Ok(()),
                Step::Skipped { .. } | Step::Need(_) => {}
            }
            window.consume(consumed);
        }
    }

    /// Compressed data that end early are a file that ends early; the rest is an error.
    #[cold]
    fn cannot_read(
        self,
        offset: u64,
        error: io::Error,
        visitor: &mut impl Visitor,
    ) -> Result<(), CaptureError> {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            let path = self.path.display();
            let what = format!("{path}: at octet {offset}: the compressed data end early");
            visitor.item(Item::Truncated { what });
            return Ok(());
        }
        Err(CaptureError { path: self.path, kind: CaptureErrorKind::Read(offset, error) })
    }
}

/// The first octets, as many as there are of those that tell the format.
fn peek(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(SNIFF_LEN);
    input.take(SNIFF_LEN as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// A buffer that holds what was read and not yet consumed.
struct Refill {
    octets: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
}

impl Refill {
    fn new() -> Self {
        Self { octets: vec![0; READ_LEN], start: 0, end: 0, at_end: false }
    }

    #[inline]
    fn data(&self) -> &[u8] {
        &self.octets[self.start..self.end]
    }

    /// All but the last `count` octets have been consumed.
    fn keep(&mut self, count: usize) {
        self.start = self.end - count;
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
    }

    /// Reads until there are `needed` octets, or the input ends. Says how many came.
    fn fill(&mut self, input: &mut dyn Read, needed: usize) -> io::Result<u64> {
        self.octets.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let before = self.end;
        while self.end < needed && !self.at_end {
            if self.end == self.octets.len() {
                // Doubled as octets really come, so that a length that is a lie costs nothing.
                self.octets.resize(self.octets.len() * 2, 0);
            }
            match input.read(&mut self.octets[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((self.end - before) as u64)
    }
}
