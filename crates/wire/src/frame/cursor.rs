//! A place in a captured frame, with the two ends that matter: how far the capture reaches and
//! how far the frame reached on the wire.
//!
//! Offsets always count from the start of the captured frame, whatever was taken off before.

/// From `at` to the end of what the present header contains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'a> {
    /// The captured frame from its first octet up to the end of the container, as far as it was
    /// captured; never longer than `end`.
    octets: &'a [u8],
    /// Where the next header starts.
    pub(super) at: usize,
    /// Where the container ended on the wire; `usize::MAX` where nobody can say.
    pub(super) end: usize,
}

/// Why octets that are wanted cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// They were on the wire, and the capture left them out.
    Capture,
    /// They were not on the wire, or not inside the container.
    Wire,
}

impl<'a> Span<'a> {
    /// The whole frame.
    pub(super) fn new(frame: &'a [u8], original_len: u32) -> Self {
        let original = usize::try_from(original_len).unwrap_or(usize::MAX);
        Self { octets: frame, at: 0, end: original.max(frame.len()) }
    }

    /// `N` octets, `offset` octets behind the present place.
    pub(super) fn read<const N: usize>(&self, offset: usize) -> Result<&'a [u8; N], Missing> {
        let from = self.at.saturating_add(offset);
        match self.octets.get(from..).and_then(|rest| rest.first_chunk()) {
            Some(octets) => Ok(octets),
            None if from.saturating_add(N) > self.end => Err(Missing::Wire),
            None => Err(Missing::Capture),
        }
    }

    /// One octet, `offset` octets behind the present place.
    pub(super) fn octet(&self, offset: usize) -> Result<u8, Missing> {
        self.read::<1>(offset).map(|[octet]| *octet)
    }

    /// A number of two octets, `offset` octets behind the present place.
    pub(super) fn u16(&self, offset: usize) -> Result<u16, Missing> {
        self.read(offset).map(|octets| u16::from_be_bytes(*octets))
    }

    /// A number of four octets, `offset` octets behind the present place.
    pub(super) fn u32(&self, offset: usize) -> Result<u32, Missing> {
        self.read(offset).map(|octets| u32::from_be_bytes(*octets))
    }

    /// The same container, `count` octets later.
    pub(super) fn skip(self, count: usize) -> Self {
        Self { at: self.at.saturating_add(count), ..self }
    }

    /// The container that starts here and says it has `len` octets: it ends there, or where its
    /// own container ends.
    pub(super) fn limit(self, len: usize) -> Self {
        let end = self.at.saturating_add(len).min(self.end);
        let octets = self.octets.get(..end).unwrap_or(self.octets);
        Self { octets, end, ..self }
    }

    /// The same octets, of which it is known that somebody cut the rest away, nobody knows how
    /// many.
    pub(super) fn cut(self) -> Self {
        Self { end: usize::MAX, ..self }
    }

    /// Octets captured from the present place on.
    pub(super) fn captured(&self) -> usize {
        self.octets.len().saturating_sub(self.at)
    }

    /// Octets on the wire from the present place on.
    pub(super) fn on_wire(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// The captured octets from the present place on.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.octets.get(self.at..).unwrap_or(&[])
    }
}
