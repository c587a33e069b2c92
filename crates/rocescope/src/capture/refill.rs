//! A buffer in front of what is read piece by piece: the parser wants whole records in a slice.

use std::io::{self, Read};

/// Octets that are read at a time: small enough to stay in the processor's cache until they are
/// decoded, large enough that the calls do not matter.
const READ_LEN: usize = 128 * 1024;

/// Holds what was read and not yet consumed.
pub(super) struct Refill {
    input: Box<dyn Read>,
    octets: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
}

impl Refill {
    /// Nothing has been read yet.
    pub fn new(input: Box<dyn Read>) -> Self {
        Self { input, octets: vec![0; READ_LEN], start: 0, end: 0, at_end: false }
    }

    pub fn data(&self) -> &[u8] {
        &self.octets[self.start..self.end]
    }

    /// All but the last `count` octets have been consumed.
    pub fn keep(&mut self, count: usize) {
        self.start = self.end - count;
    }

    pub fn at_end(&self) -> bool {
        self.at_end
    }

    /// Reads until there are `needed` octets, or the input ends. Says how many came.
    ///
    /// # Errors
    /// As the input.
    pub fn fill(&mut self, needed: usize) -> io::Result<u64> {
        self.octets.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let before = self.end;
        while self.end < needed && !self.at_end {
            if self.end == self.octets.len() {
                // Doubled as octets really come, so that a length that is a lie costs nothing.
                self.octets.resize(self.octets.len() * 2, 0);
            }
            match self.input.read(&mut self.octets[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((self.end - before) as u64)
    }
}
