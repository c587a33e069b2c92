//! What a source of queue measurements tells: the state that it sees change, the state that it
//! sees when it looks, and what it knows that it has missed.
//!
//! There is no way to tell a requested pause. A gate is what it is: a timer that is refreshed is
//! a gate that stays closed, zero quanta and a watchdog that overrides are a gate that is open
//! again. Nor is there a way to tell shaping, arbitration or the state of a link.
// QUE-def.3, QUE-def.4

use alloc::boxed::Box;

use super::Priorities;
use crate::pfc::Priority;

/// How a queue is measured, constant in an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The mapped priorities.
    pub priorities: Priorities,
    /// How the packet that is next for service is chosen, in the source's words.
    pub method: Box<str>,
    /// How far the time of an event can be from the time at which it was so, in nanoseconds. What
    /// is below a nanosecond need not be in it.
    pub max_error_ns: u64,
}

/// What a source tells of one queue at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The mapping is this from now on. Nothing that was told before holds any more.
    Map(Mapping),
    /// Whether packets await transmission. One that was handed to the engine does not.
    // QUE-def.1
    Backlog {
        /// At least one does.
        present: bool,
    },
    /// Whether received PFC closes the gate of a priority.
    Gate {
        /// Of this priority.
        priority: Priority,
        /// It does.
        closed: bool,
    },
    /// The priority of the packet that is next for service. It holds until another is told or the
    /// queue is empty; told of an empty queue it is that of the next backlog.
    Candidate {
        /// Of this priority.
        priority: Priority,
    },
    /// Both predicates, as they were when the source looked.
    Sample {
        /// Packets awaited transmission.
        backlog: bool,
        /// The gate of the one that was next was closed.
        gated: bool,
    },
    /// Events of the queue are missing between the event of the source before this and this.
    Lost,
    /// The source started again: nothing that was told before holds any more but the mapping.
    Restart,
}
