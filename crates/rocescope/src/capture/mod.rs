//! Capture files from the world: opened, decompressed, and fed to the parser of `wire::capture`
//! piece by piece. Memory does not grow with the file.

mod drops;
mod map;
mod refill;

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use drops::{DropCounter, Drops};

use crate::progress::Progress;
use flate2::read::MultiGzDecoder;
use map::Mapped;
use refill::Refill;
use wire::capture::{Format, Limits, Parser, Record, SNIFF_LEN, Statistics, Step, sniff};

/// What wants to see a capture file, in its order.
pub trait Visitor {
    /// A packet.
    fn packet(&mut self, record: &Record<'_>);
    /// Something else.
    fn item(&mut self, item: Item);
    /// All that was read has been shown, and more has to be waited for, perhaps for long.
    fn pause(&mut self) {}
}

/// Octets that are kept of an interface's name.
pub const NAME_LEN: usize = 256;

/// What there is in a capture file beside packets.
#[derive(Debug)]
pub enum Item {
    /// A section starts: the interfaces before it are gone.
    Section,
    /// The next interface of the section.
    Interface {
        /// It can have drop counters: pcapng, not pcap.
        counters: bool,
        /// Its name, where it has one, and of a long one the first [`NAME_LEN`] octets.
        name: Option<Box<[u8]>>,
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

/// How a capture file's octets are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By reading, always.
    Read,
    /// By mapping, where it is a plain file: faster, but the process ends where another program
    /// cuts the file meanwhile. For a process that has nothing else to do.
    Map,
}

/// An open capture file.
pub struct Capture {
    path: PathBuf,
    input: Input,
    pcapng: bool,
    stop: Arc<AtomicBool>,
}

/// Where octets come from: those that have come and were not consumed, and more of them.
enum Input {
    Read(Refill),
    Map(Mapped),
}

impl Input {
    fn data(&self) -> &[u8] {
        match self {
            Self::Read(refill) => refill.data(),
            Self::Map(mapped) => mapped.data(),
        }
    }

    /// All but the last `count` octets have been consumed.
    fn keep(&mut self, count: usize) {
        match self {
            Self::Read(refill) => refill.keep(count),
            Self::Map(mapped) => mapped.keep(count),
        }
    }

    fn at_end(&self) -> bool {
        match self {
            Self::Read(refill) => refill.at_end(),
            Self::Map(mapped) => mapped.at_end(),
        }
    }

    /// Waits until there are `needed` octets, or the input ends. Says how many came.
    fn fill(&mut self, needed: usize) -> io::Result<u64> {
        match self {
            Self::Read(refill) => refill.fill(needed),
            Self::Map(mapped) => mapped.fill(needed),
        }
    }
}

impl Capture {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// It cannot be opened, or its first octets cannot be read.
    pub fn open(path: &Path, access: Access) -> Result<Self, CaptureError> {
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
        if access == Access::Map
            && let Some(pcapng) = mappable(&file, &metadata).map_err(failed)?
        {
            let input = Input::Map(Mapped::new(file).map_err(failed)?);
            return Ok(Self { path: path.to_owned(), input, pcapng, stop: Arc::default() });
        }
        Self::decompress(path, Box::new(file)).map_err(failed)
    }

    fn decompress(path: &Path, input: Box<dyn Read>) -> io::Result<Self> {
        let mut input = decompressed(input)?;
        let head = peek(&mut *input)?;
        let pcapng = sniff(&head) == Format::PcapNg;
        let input = Input::Read(Refill::new(Box::new(io::Cursor::new(head).chain(input))));
        Ok(Self { path: path.to_owned(), input, pcapng, stop: Arc::default() })
    }

    /// Reading ends as if the file did where this turns true, at the next look at the input.
    #[must_use]
    pub fn stopped_by(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop, ..self }
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
        loop {
            // The packets have a way of their own: nothing else is as frequent.
            let mut data = self.input.data();
            let before = data.len();
            while let Some((consumed, record)) = parser.packet(data) {
                visitor.packet(&record);
                data = &data[consumed..];
            }
            let left = data.len();
            parser.passed(before - left);
            self.input.keep(left);
            let step = match parser.next(self.input.data(), self.input.at_end()) {
                Ok(Step::Need(needed)) => {
                    visitor.pause();
                    if self.stop.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    match self.input.fill(needed) {
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
                Step::Interface { name, .. } => visitor.item(Item::Interface {
                    counters: self.pcapng,
                    name: name.map(|name| name.get(..NAME_LEN).unwrap_or(name).into()),
                }),
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
            self.input.keep(left - consumed);
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

/// What an input holds, where it is compressed with gzip or zstd, and else the input as it is: its
/// first octets tell, whatever it is called.
///
/// # Errors
/// Its first octets cannot be read.
pub(crate) fn decompressed(mut input: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let head = peek(&mut *input)?;
    let format = sniff(&head);
    let whole = io::Cursor::new(head).chain(input);
    Ok(match format {
        Format::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Format::Zstd => Box::new(zstd::Decoder::new(whole)?),
        Format::Pcap | Format::PcapNg | Format::Unknown => Box::new(whole),
    })
}

/// The first octets, as many as there are of those that tell the format.
pub(crate) fn peek(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(SNIFF_LEN);
    input.take(SNIFF_LEN as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether a file is a pcapng or a pcap, where it is a plain one that lies on a disk.
fn mappable(file: &File, metadata: &Metadata) -> io::Result<Option<bool>> {
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(None);
    }
    let mut head = [0; SNIFF_LEN];
    // Where it is shorter, the rest is zero, and that is no capture.
    let _ = file.read_at(&mut head, 0)?;
    Ok(match sniff(&head) {
        Format::Pcap => Some(false),
        Format::PcapNg => Some(true),
        Format::Gzip | Format::Zstd | Format::Unknown => None,
    })
}
