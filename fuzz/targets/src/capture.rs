//! A capture file, at once and octet by octet.

use wire::capture::{Error, Limits, Parser, Step};
use wire::frame::{Layer, decode};

const LIMITS: Limits = Limits { record_max: 1 << 16, interfaces_max: 8 };

/// Reads a capture file twice: all of it at hand, and never more at hand than was asked for. Both
/// give the same steps.
///
/// # Panics
/// Where something does not hold.
pub fn capture(data: &[u8]) {
    let mut at_once = Reader::new(data);
    let mut by_need = Reader::new(data);
    loop {
        let expected = at_once.step(data.len());
        let found = by_need.step_by_need();
        assert_eq!(found, expected, "at octet {}", at_once.at);
        if matches!(expected, Err(_) | Ok(Step::End | Step::TruncatedEnd { .. })) {
            return;
        }
    }
}

struct Reader<'a> {
    data: &'a [u8],
    parser: Parser,
    at: usize,
    stood: bool,
}

impl<'a> Reader<'a> {
    fn new(data: &'a [u8]) -> Self {
        Self { data, parser: Parser::new(LIMITS), at: 0, stood: false }
    }

    /// One step with at most so many octets at hand.
    fn step(&mut self, octets: usize) -> Result<Step<'a>, Error> {
        let rest = &self.data[self.at..];
        let at_hand = &rest[..rest.len().min(octets)];
        let at_end = at_hand.len() == rest.len();
        let step = self.parser.next(at_hand, at_end)?;
        let consumed = step.consumed();
        assert!(consumed <= at_hand.len(), "more taken than there is");
        if let Step::Need(need) = step {
            assert!(!at_end && need > at_hand.len(), "asks for what there is");
            assert!(need <= (1 << 16) + 64, "asks for {need}, more than the limit");
        } else if !matches!(step, Step::End | Step::TruncatedEnd { .. }) {
            // The interface of a pcap is told behind its header and takes no octets, once.
            let told = matches!(step, Step::Interface { .. }) && !self.stood;
            assert!(consumed > 0 || told, "stands still");
            self.stood = consumed == 0;
        }
        if let Step::Packet { record, .. } = step {
            assert!(record.data.len() <= 1 << 16, "a record beyond the limit");
            if let Ok(link) = record.link {
                let _ = decode(record.data, record.original_len, link, Layer::Outer);
            }
        }
        self.at += consumed;
        assert_eq!(self.parser.offset(), self.at as u64);
        Ok(step)
    }

    fn step_by_need(&mut self) -> Result<Step<'a>, Error> {
        let mut octets = 0;
        loop {
            match self.step(octets)? {
                Step::Need(need) => octets = need,
                step => return Ok(step),
            }
        }
    }
}
