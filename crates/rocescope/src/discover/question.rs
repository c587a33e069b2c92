//! What puts a stream in question whose own requests all fit: signs that its connection carries
//! operations outside the profile, which is for connections with SEND and WRITE alone (sequence
//! draft, section 3).
//!
//! A request names the queue pair that it goes to and never the one that it comes from. So which
//! stream a response answers cannot be seen, only to which queue pair it goes, and what is said here
//! is no more than that, or follows from counting: a queue pair of a Reliable Connection has one
//! peer, so there are as many streams with READs as queue pairs that are answered.

use std::collections::{HashMap, HashSet};

use wire::frame::{Addresses, Layer, Namespace, Opcode};

use super::found::{Found, Place, reversed};
use super::stream::Stream;
use crate::layout::counted;

/// Whether a stream fits the profile, as far as packets can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Some of its own requests do not.
    DoesNotFit,
    /// Its requests do, and something else was seen that may be of its connection and does not.
    InQuestion,
    /// Nothing was seen against it.
    // SEQ-3.2: which is not that it is one of the profile; only the operator knows that.
    NothingAgainst,
}

/// Operations outside the profile that are answered by more than an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// READ, and what is answered in the same way: FLUSH and ATOMIC WRITE.
    Read,
    /// Compare and swap, fetch and add.
    Atomic,
}

impl Operation {
    const ALL: [Self; 2] = [Self::Read, Self::Atomic];

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Atomic => "ATOMIC",
        }
    }

    fn is_request(self, opcode: Opcode) -> bool {
        match self {
            Self::Read => matches!(opcode.0, 0x0c | 0x1c | 0x1d),
            Self::Atomic => matches!(opcode.0, 0x13 | 0x14),
        }
    }

    fn is_response(self, opcode: Opcode) -> bool {
        match self {
            Self::Read => matches!(opcode.0, 0x0d..=0x10),
            Self::Atomic => opcode.0 == 0x12,
        }
    }
}

/// One direction between two hosts.
type Between = (Layer, Addresses, Namespace);

/// Queue pairs, by operation.
#[derive(Debug, Default)]
struct Pairs {
    /// To which requests went.
    asked: [HashSet<u32>; 2],
    /// To which responses went.
    answered: [HashSet<u32>; 2],
}

/// What was seen between all hosts.
#[derive(Debug)]
pub struct Questions(HashMap<Between, Pairs>);

impl Questions {
    /// Of everything that was found.
    pub fn of(found: &Found) -> Self {
        let mut all: HashMap<Between, Pairs> = HashMap::new();
        for ((layer, key), stream) in &found.streams {
            for (n, operation) in Operation::ALL.into_iter().enumerate() {
                let asked = stream.packets_of(|opcode| operation.is_request(opcode)) > 0;
                let answered = stream.packets_of(|opcode| operation.is_response(opcode)) > 0;
                if !asked && !answered {
                    continue;
                }
                let pairs = all.entry((*layer, key.addresses, key.namespace)).or_default();
                if asked {
                    pairs.asked[n].insert(key.qp);
                }
                if answered {
                    pairs.answered[n].insert(key.qp);
                }
            }
        }
        Self(all)
    }

    /// Whether a stream fits.
    // SEQ-3.1, SEQ-3.2
    pub fn verdict(&self, place: &Place, stream: &Stream) -> Verdict {
        if !stream.fits() {
            Verdict::DoesNotFit
        } else if self.of_stream(place, stream).is_empty() {
            Verdict::NothingAgainst
        } else {
            Verdict::InQuestion
        }
    }

    /// What puts a stream in question, in words; nothing for one that does not fit anyhow.
    // SEQ-3.2, SEQ-3.4
    pub fn of_stream(&self, place: &Place, stream: &Stream) -> Vec<String> {
        let mut words = Vec::new();
        if !stream.fits() {
            return words;
        }
        for (n, operation) in Operation::ALL.into_iter().enumerate() {
            let name = operation.name();
            let responses = stream.packets_of(|opcode| operation.is_response(opcode));
            if responses > 0 {
                words.push(format!(
                    "{} came to this queue pair: it sent {name} requests the other way, so its \
                     connection was not restricted to SEND and WRITE, unless the queue pair was \
                     used for several",
                    counted(responses, &format!("{name} response[|s]"))
                ));
            }
            let [there, back] = self.directions(place, n);
            if back.answered > there.asked {
                words.push(format!(
                    "{name} responses come back between these hosts to {}, and {} with {name} \
                     requests {} seen: which stream asked for them cannot be seen, it may be this \
                     one",
                    counted(back.answered, "queue pair[|s]"),
                    counted(there.asked, "stream[|s]"),
                    if there.asked == 1 { "was" } else { "were" }
                ));
            }
            if responses == 0 && back.asked > there.answered {
                words.push(format!(
                    "{name} requests go the other way between these hosts on {}: whether one of \
                     them is the other direction of this connection cannot be seen",
                    counted(back.asked, "stream[|s]")
                ));
            }
        }
        words
    }

    /// Whether responses come back between its hosts that other streams account for.
    pub fn answered_elsewhere(&self, place: &Place) -> bool {
        (0..Operation::ALL.len()).any(|n| {
            let [there, back] = self.directions(place, n);
            back.answered > 0 && back.answered <= there.asked
        })
    }

    /// How many queue pairs there are in a stream's direction, and in the other.
    fn directions(&self, (layer, key): &Place, operation: usize) -> [Counts; 2] {
        [key.addresses, reversed(&key.addresses)].map(|addresses| {
            let pairs = self.0.get(&(*layer, addresses, key.namespace));
            let count = |pairs: &HashSet<u32>| u64::try_from(pairs.len()).unwrap_or(u64::MAX);
            pairs.map_or(Counts::default(), |pairs| Counts {
                asked: count(&pairs.asked[operation]),
                answered: count(&pairs.answered[operation]),
            })
        })
    }
}

/// Queue pairs to which requests of an operation went, and responses.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    asked: u64,
    answered: u64,
}
