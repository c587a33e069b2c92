//! A capture file mapped into memory, a window at a time: the page cache is read where it lies,
//! without the copy that reading makes. The one place that maps memory.
//!
//! What it refuses to know: what lay in a part of the file that is cut off while it is mapped.
//! Touching such a part raises SIGBUS. The program then says so and ends; results that were not
//! yet written are not, because nobody could say which part of the file they are of.

use std::fs::File;
use std::io;
use std::sync::Once;

use memmap2::{Advice, Mmap, MmapOptions};

/// Octets that are mapped at a time: memory does not grow with the file, and the calls do not
/// matter.
const WINDOW: u64 = 16 << 20;
/// Windows start at multiples of this, so that the kernel can map large pages whole.
const ALIGNMENT: u64 = 2 << 20;

/// What is said where a file is cut.
const CUT: &[u8] = b"rocescope: a capture file was cut by another program while it was read; \
there is no result (reading it from standard input survives that)\n";

/// A regular file that is not empty, and how much of it has been consumed.
#[derive(Debug)]
pub(super) struct Mapped {
    file: File,
    window: Option<Mmap>,
    /// Where the window starts in the file.
    base: u64,
    /// What the window holds that was not consumed.
    start: usize,
    end: usize,
    at_end: bool,
}

impl Mapped {
    /// Nothing of the file is mapped yet.
    ///
    /// # Errors
    /// The program cannot be told of SIGBUS.
    pub fn new(file: File) -> io::Result<Self> {
        watch_for_cuts()?;
        Ok(Self { file, window: None, base: 0, start: 0, end: 0, at_end: false })
    }

    #[inline]
    pub fn data(&self) -> &[u8] {
        self.window.as_ref().map_or(&[], |window| &window[self.start..self.end])
    }

    /// All but the last `count` octets have been consumed.
    pub fn keep(&mut self, count: usize) {
        self.start = self.end - count;
    }

    pub fn at_end(&self) -> bool {
        self.at_end
    }

    /// Maps the window in which the next `needed` octets are, or as many as there are. Says how
    /// many came.
    ///
    /// # Errors
    /// The file cannot be looked at or mapped.
    pub fn fill(&mut self, needed: usize) -> io::Result<u64> {
        let had = length(self.end - self.start);
        let position = self.base + length(self.start);
        let base = position - position % ALIGNMENT;
        let wanted = (position - base).saturating_add(length(needed)).max(WINDOW);
        // The file may have grown since the last window.
        let rest = self.file.metadata()?.len().saturating_sub(base);
        self.at_end = rest <= wanted;
        let len = usize::try_from(rest.min(wanted)).unwrap_or(usize::MAX);
        self.window = None;
        let window = map(&self.file, base, len)?;
        self.base = base;
        self.end = window.len();
        self.start = usize::try_from(position - base).unwrap_or(usize::MAX).min(self.end);
        self.window = Some(window);
        Ok(length(self.end - self.start).saturating_sub(had))
    }
}

/// A length in memory as one in a file.
fn length(len: usize) -> u64 {
    // No machine has addresses of more than 64 bits.
    len as u64
}

#[allow(unsafe_code)]
fn map(file: &File, offset: u64, len: usize) -> io::Result<Mmap> {
    // SAFETY: the mapping is private to this module and read only, and no reference into it
    // outlives it: `Mapped::data` borrows it. Another program may change or cut the file. Changed
    // octets are read as they are found, by code that takes any octets and reads each where it
    // decides on it; a part that was cut off raises SIGBUS, for which `watch_for_cuts` has made
    // the process end.
    let window = unsafe { MmapOptions::new().offset(offset).len(len).map(file)? };
    // A hint, which a kernel may not know: what is not in memory is read ahead.
    let _ = window.advise(Advice::Sequential);
    Ok(window)
}

/// Makes SIGBUS end the process with a line that says why.
#[allow(unsafe_code)]
fn watch_for_cuts() -> io::Result<()> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| {
        let act = || {
            let _ = rustix::io::write(io::stderr(), CUT);
            signal_hook::low_level::exit(1);
        };
        // SAFETY: the action makes two system calls, `write` and `_exit`, and touches nothing of
        // what it interrupts: no lock, no allocation, no state.
        let registered =
            unsafe { signal_hook::low_level::register(signal_hook::consts::SIGBUS, act) };
        result = registered.map(|_| ());
    });
    result
}
