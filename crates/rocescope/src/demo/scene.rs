//! What is played, and how it ends.

use crate::example::{DROPS, Example, FOUR, GAPS, PLAIN, READ};

/// One capture and what happens to the agent that plays it.
#[derive(Debug)]
pub struct Scene {
    /// Its name, for programs.
    pub name: &'static str,
    /// What there is to see, for people.
    pub title: &'static str,
    /// The capture.
    pub example: Example,
    /// The streams in it, where that has to be known.
    pub streams: usize,
    end: End,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The capture is played to its end, and the agent takes its leave.
    Whole,
    /// Half of the capture comes, then the agent is killed.
    Cut,
}

impl Scene {
    /// Whether its session is cut in the middle.
    pub fn is_cut(&self) -> bool {
        self.end == End::Cut
    }
}

/// All of them, in their order.
pub static SCENES: [Scene; 5] = [
    Scene {
        name: "plain",
        title: "One connection over IPv6: every position once, in order.",
        example: PLAIN,
        streams: 1,
        end: End::Whole,
    },
    Scene {
        name: "gaps",
        title: "Eight connections behind a link that drops packets: positions are skipped, and \
                filled later.",
        example: GAPS,
        streams: 8,
        end: End::Whole,
    },
    Scene {
        name: "read",
        title: "Attested to carry no READ, and then there is one: the epoch ends before it, the \
                stream is disabled.",
        example: READ,
        streams: 1,
        end: End::Whole,
    },
    Scene {
        name: "drops",
        title: "The capture itself missed packets, and says so.",
        example: DROPS,
        streams: 1,
        end: End::Whole,
    },
    Scene {
        name: "cut",
        title: "Four connections; the agent is killed half way, without a final report.",
        example: FOUR,
        streams: 4,
        end: End::Cut,
    },
];
