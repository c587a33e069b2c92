//! What stands beside the messages of a segment: 16 octets for each entry, in the order in which
//! things happened. Octet 0 is the kind, 1 to 3 are zero, 4 to 7 a domain, 8 to 15 milliseconds
//! since 1970 or a number of epochs, all in network order.

/// Octets of an entry.
pub const ENTRY_LEN: usize = 16;

/// Something that happened in a session, in its place among the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The next message of the segment restates templates; it was not received here.
    Restated,
    /// The next message was received.
    Message {
        /// When, milliseconds since 1970.
        received_ms: u64,
    },
    /// Epochs whose time was over at this time were retired.
    Advanced {
        /// When, milliseconds since 1970.
        now_ms: u64,
    },
    /// The collector dropped reports of a domain.
    Dropped {
        /// The Observation Domain.
        domain: u32,
    },
    /// The peer may report for a domain from here on.
    Admitted {
        /// The Observation Domain.
        domain: u32,
    },
    /// The peer may no longer report for a domain.
    Expelled {
        /// The Observation Domain.
        domain: u32,
    },
    /// From here on there is room for so many epochs of the session: other sessions have taken the
    /// rest of it, or have given it back.
    Bounded {
        /// How many.
        epochs: u64,
    },
    /// As [`Entry::Bounded`], of PFC counters.
    PfcBounded {
        /// How many.
        counters: u64,
    },
    /// The session ended; nothing follows.
    Ended {
        /// When, milliseconds since 1970.
        now_ms: u64,
    },
}

impl Entry {
    /// Whether a message belongs to it.
    pub(crate) const fn has_message(self) -> bool {
        matches!(self, Self::Restated | Self::Message { .. })
    }

    pub(crate) fn octets(self) -> [u8; ENTRY_LEN] {
        let (kind, domain, ms) = match self {
            Self::Restated => (1, 0, 0),
            Self::Message { received_ms } => (2, 0, received_ms),
            Self::Advanced { now_ms } => (3, 0, now_ms),
            Self::Dropped { domain } => (4, domain, 0),
            Self::Ended { now_ms } => (5, 0, now_ms),
            Self::Admitted { domain } => (6, domain, 0),
            Self::Expelled { domain } => (7, domain, 0),
            Self::Bounded { epochs } => (8, 0, epochs),
            Self::PfcBounded { counters } => (9, 0, counters),
        };
        let mut octets = [0; ENTRY_LEN];
        octets[0] = kind;
        octets[4..8].copy_from_slice(&u32::to_be_bytes(domain));
        octets[8..].copy_from_slice(&u64::to_be_bytes(ms));
        octets
    }

    pub(crate) fn read(octets: [u8; ENTRY_LEN]) -> Option<Self> {
        let [kind, 0, 0, 0, d0, d1, d2, d3, ms @ ..] = octets else { return None };
        let (domain, ms) = (u32::from_be_bytes([d0, d1, d2, d3]), u64::from_be_bytes(ms));
        let entry = match kind {
            1 => Self::Restated,
            2 => Self::Message { received_ms: ms },
            3 => Self::Advanced { now_ms: ms },
            4 => Self::Dropped { domain },
            5 => Self::Ended { now_ms: ms },
            6 => Self::Admitted { domain },
            7 => Self::Expelled { domain },
            8 => Self::Bounded { epochs: ms },
            9 => Self::PfcBounded { counters: ms },
            _ => return None,
        };
        // Each has one spelling.
        (entry.octets() == octets).then_some(entry)
    }
}

/// The entries up to the first that is not whole or not one, and the octets that they take.
pub(crate) fn entries(octets: &[u8]) -> (Vec<Entry>, usize) {
    let whole = octets
        .chunks_exact(ENTRY_LEN)
        .map_while(|entry| Entry::read(<[u8; ENTRY_LEN]>::try_from(entry).ok()?));
    let entries: Vec<_> = whole.collect();
    let length = entries.len() * ENTRY_LEN;
    (entries, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_read_as_it_was_written_and_a_cut_one_is_none() {
        let all = [
            Entry::Restated,
            Entry::Message { received_ms: u64::MAX },
            Entry::Advanced { now_ms: 1 },
            Entry::Dropped { domain: u32::MAX },
            Entry::Admitted { domain: 1 },
            Entry::Expelled { domain: 1 },
            Entry::Bounded { epochs: 7 },
            Entry::PfcBounded { counters: 9 },
            Entry::Ended { now_ms: 0x0102_0304_0506_0708 },
        ];
        let octets: Vec<u8> = all.iter().flat_map(|entry| entry.octets()).collect();
        for cut in 0..=octets.len() {
            let whole = cut / ENTRY_LEN;
            assert_eq!(
                entries(&octets[..cut]),
                (all[..whole].to_vec(), whole * ENTRY_LEN),
                "{cut}"
            );
        }
        assert_eq!(octets[128..], [5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn octets_that_are_no_entry_end_the_entries() {
        let mut octets = Entry::Restated.octets();
        assert_eq!(Entry::read(octets), Some(Entry::Restated));
        for at in 0..ENTRY_LEN {
            octets[at] ^= 0x40;
            assert_eq!(Entry::read(octets), None, "{at}");
            octets[at] ^= 0x40;
        }
    }
}
