//! What a session received, on its way to the archive: messages as they came, and in their places
//! what the messages alone do not say.

use std::collections::VecDeque;
use std::sync::Arc;

use store::archive::Entry;
use wire::ipfix::{Layout, TemplateKind};

/// Octets that weigh as much as a change while they wait: about a report.
const OCTETS_OF_A_CHANGE: usize = 128;

/// Messages and notes in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Raw {
    octets: Vec<u8>,
    /// Where the messages that are left begin.
    at: usize,
    parts: VecDeque<Part>,
}

/// A message or a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A message, by its length.
    Message {
        /// Its octets.
        len: usize,
        /// When it was received, in milliseconds since 1970.
        received_ms: u64,
    },
    /// A template is known from here on.
    Known {
        /// Its Observation Domain.
        domain: u32,
        /// The template.
        layout: Arc<Layout>,
    },
    /// A template is known no longer.
    Withdrawn {
        /// Its Observation Domain.
        domain: u32,
        /// Of which kind it was.
        kind: TemplateKind,
        /// Which, or all of the kind.
        template: Option<u16>,
    },
    /// Something beside the messages.
    Note(Entry),
}

impl Raw {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many changes it weighs as much as.
    pub fn weight(&self) -> usize {
        self.parts.len() + self.octets.len() / OCTETS_OF_A_CHANGE
    }

    /// The first part that is left, and its octets if it is a message.
    pub fn first(&self) -> Option<(&Part, &[u8])> {
        let part = self.parts.front()?;
        let len = if let Part::Message { len, .. } = part { *len } else { 0 };
        Some((part, &self.octets[self.at..self.at + len]))
    }

    /// Takes the first part out.
    pub fn take_first(&mut self) {
        if let Some(Part::Message { len, .. }) = self.parts.pop_front() {
            self.at += len;
        }
    }

    pub(super) fn push_message(&mut self, octets: &[u8], received_ms: u64) {
        self.octets.extend_from_slice(octets);
        self.parts.push_back(Part::Message { len: octets.len(), received_ms });
    }

    pub(super) fn push(&mut self, part: Part) {
        self.parts.push_back(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_out_as_they_went_in() {
        let mut raw = Raw::default();
        raw.push_message(b"one", 5);
        raw.push(Part::Note(Entry::Advanced { now_ms: 6 }));
        raw.push_message(b"three", 7);
        let mut seen = Vec::new();
        while let Some((part, octets)) = raw.first() {
            seen.push((part.clone(), octets.to_vec()));
            raw.take_first();
        }
        let expected = [
            (Part::Message { len: 3, received_ms: 5 }, b"one".to_vec()),
            (Part::Note(Entry::Advanced { now_ms: 6 }), Vec::new()),
            (Part::Message { len: 5, received_ms: 7 }, b"three".to_vec()),
        ];
        assert_eq!(seen, expected);
        assert!(raw.is_empty());
    }
}
