//! What was seen of one stream, which is everything that goes to one queue pair under one key.
//!
//! Nothing here provisions it: a stream that shows nothing against the profile may still carry
//! anything when nobody captures.

use observe::request::{Observed, Violation};
use observe::sequence::{Discontinuity, Sequence, Step};
use observe::serial::Psn;
use observe::window::{Labels, Window};
use wire::frame::{Lie, Opcode, Packet};

use crate::layout::agreed;

/// W for telling whether the numbers run on; that of `meter` where nobody says another.
const WINDOW: Window = match Window::new(1024) {
    Ok(window) => window,
    Err(_) => panic!("1024 is a window"),
};

/// One stream at one layer.
#[derive(Debug, Default)]
pub struct Stream {
    /// Packets, responses among them.
    pub packets: u64,
    /// Requests, whether they fit or not. Where there are none, these are responses, which are no
    /// stream of requests.
    pub requests: u64,
    /// How often each opcode was seen, by opcode.
    opcodes: Vec<(Opcode, u64)>,
    /// What was seen against the profile, the first of each kind and how often; at most one for
    /// each opcode, version and length field.
    misfits: Vec<(Violation, u64)>,
    /// Nanoseconds of the earliest and the latest packet, where the captures have times.
    pub times_ns: Option<(u64, u64)>,
    /// The numbers of its requests, as long as all of them fit.
    numbers: Option<Numbers>,
}

impl Stream {
    /// Takes a packet.
    pub fn see(&mut self, time_ns: Option<u64>, packet: &Packet, observed: Observed) {
        self.packets += 1;
        let opcode = packet.bth.opcode;
        match self.opcodes.binary_search_by_key(&opcode, |(known, _)| *known) {
            Ok(at) => self.opcodes[at].1 += 1,
            Err(at) => self.opcodes.insert(at, (opcode, 1)),
        }
        if let Some(time) = time_ns {
            let (first, last) = self.times_ns.unwrap_or((time, time));
            self.times_ns = Some((first.min(time), last.max(time)));
        }
        match observed {
            Observed::Request(psn) => {
                self.requests += 1;
                if let Some(numbers) = &mut self.numbers {
                    numbers.see(psn);
                } else if self.fits() {
                    self.numbers = Some(Numbers::begin(psn));
                }
            }
            Observed::Violation(violation) => {
                self.requests += 1;
                self.violated(violation);
            }
            Observed::Response | Observed::Cnp | Observed::OtherTransport => {}
        }
    }

    fn violated(&mut self, violation: Violation) {
        // A READ takes as many numbers as it has responses: from here on, a number that was not
        // seen says nothing.
        self.numbers = None;
        match self.misfits.iter_mut().find(|(known, _)| same_kind(known, &violation)) {
            Some((_, count)) => *count += 1,
            None => self.misfits.push((violation, 1)),
        }
    }

    /// Whether each of its own requests is one of the profile.
    // SEQ-3.2: which is not that it is one of the profile; only the operator knows that.
    pub fn fits(&self) -> bool {
        self.misfits.is_empty()
    }

    /// What was seen against the profile, in words.
    // SEQ-3.1, SEQ-3.3
    pub fn reasons(&self) -> impl Iterator<Item = String> {
        self.misfits.iter().map(|(violation, count)| words(violation, *count))
    }

    /// How often each opcode was seen, by opcode.
    pub fn opcodes(&self) -> &[(Opcode, u64)] {
        &self.opcodes
    }

    /// The opcodes of its requests, as text.
    pub fn requests_text(&self) -> String {
        opcodes_text(self.opcodes.iter().copied().filter(|(opcode, _)| !opcode.is_response()))
    }

    /// The opcodes of the responses beside them, as text; empty where there are none.
    pub fn responses_text(&self) -> String {
        opcodes_text(self.opcodes.iter().copied().filter(|(opcode, _)| opcode.is_response()))
    }

    /// How many packets have an opcode of these.
    pub fn packets_of(&self, mut among: impl FnMut(Opcode) -> bool) -> u64 {
        self.opcodes.iter().filter(|(opcode, _)| among(*opcode)).map(|(_, count)| count).sum()
    }

    /// The numbers of its requests; nothing where some do not fit.
    pub fn numbers(&self) -> Option<&Numbers> {
        self.numbers.as_ref()
    }
}

/// `WRITE_FIRST 199, WRITE_LAST 199`: those of a Reliable Connection without their prefix.
pub fn opcodes_text(opcodes: impl Iterator<Item = (Opcode, u64)>) -> String {
    let one = |(opcode, count): (Opcode, u64)| {
        let name = opcode.to_string();
        format!("{} {count}", name.strip_prefix("RC_").unwrap_or(&name))
    };
    opcodes.map(one).collect::<Vec<_>>().join(", ")
}

fn same_kind(a: &Violation, b: &Violation) -> bool {
    match (a, b) {
        (Violation::TooShort { opcode: a, .. }, Violation::TooShort { opcode: b, .. }) => a == b,
        _ => a == b,
    }
}

/// `1 RDMA READ request`, `2 packets with transport header version 3, expected 0`.
fn words(violation: &Violation, count: u64) -> String {
    let s = agreed(count, "[|s]");
    match *violation {
        Violation::Opcode(opcode) => match opcode.0 {
            0x0c => format!("{count} RDMA READ request{s}"),
            0x13 => format!("{count} ATOMIC request{s} (compare and swap)"),
            0x14 => format!("{count} ATOMIC request{s} (fetch and add)"),
            0x16 | 0x17 => format!("{count} SEND{s} with invalidate ({opcode})"),
            0x1c => format!("{count} FLUSH request{s}"),
            0x1d => format!("{count} ATOMIC WRITE request{s}"),
            other => format!("{count} packet{s} with the reserved opcode {other:#04x}"),
        },
        Violation::Version(version) => {
            format!("{count} packet{s} with transport header version {version}, expected 0")
        }
        Violation::TooShort { opcode, found, expected } => format!(
            "{count} malformed packet{s}: {opcode} of {found} octets, its headers take {expected}"
        ),
        Violation::Length(Lie::IpBeyondFrame) => format!(
            "{count} malformed packet{s}: IP length beyond the frame, as also a mirror makes that \
             cuts frames without saying so"
        ),
        Violation::Length(Lie::UdpBeyondIp) => {
            format!("{count} malformed packet{s}: UDP length beyond the IP payload")
        }
    }
}

/// Whether the numbers of a stream run on.
#[derive(Debug)]
pub struct Numbers {
    /// The first that was seen.
    pub first: Psn,
    /// The last that was seen.
    pub last: Psn,
    now: Sequence,
    before: Gaps,
}

/// What stands in the way of "in order".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Numbers that were passed over.
    pub skipped: u64,
    /// Of these, numbers that came later.
    pub filled: u64,
    /// Packets whose number had been seen.
    pub repeated: u64,
    /// Packets so far back that it is not known whether their number had been seen.
    pub late: u64,
    /// Jumps of more than 1024 numbers, after which counting begins anew.
    pub jumps: u64,
}

impl Numbers {
    fn begin(psn: Psn) -> Self {
        Self { first: psn, last: psn, now: Sequence::begin(psn), before: Gaps::default() }
    }

    fn see(&mut self, psn: Psn) {
        self.last = psn;
        match self.now.step(psn, WINDOW) {
            Step::NeedsLabels => {
                self.now.give_labels(Labels::new(WINDOW));
                self.see(psn);
            }
            Step::Discontinuity(Discontinuity::Jump(_) | Discontinuity::Ambiguous) => {
                self.before = self.gaps();
                self.before.jumps += 1;
                self.now = Sequence::begin(psn);
            }
            Step::Exhausted => {
                self.before = self.gaps();
                self.now = Sequence::begin(psn);
            }
            Step::Advanced { .. } | Step::Filled | Step::Repeated | Step::UnclassifiedLate => {}
        }
    }

    /// What was counted so far.
    pub fn gaps(&self) -> Gaps {
        let (before, now) = (self.before, self.now.counts());
        Gaps {
            skipped: before.skipped.saturating_add(now.skipped),
            filled: before.filled.saturating_add(now.filled),
            repeated: before.repeated.saturating_add(now.repeated),
            late: before.late.saturating_add(now.unclassified_late),
            jumps: before.jumps,
        }
    }
}

impl Gaps {
    /// Whether there are none.
    pub fn is_in_order(self) -> bool {
        self == Self::default()
    }

    /// `in order`, or what there is besides.
    pub fn words(&self) -> String {
        let Self { skipped, filled, repeated, late, jumps } = *self;
        let mut parts = Vec::new();
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        };
        add(skipped, "skipped");
        add(filled, "of them filled");
        add(repeated, "repeated");
        add(late, "unclassified late");
        add(jumps, &agreed(jumps, "jump[|s]"));
        if parts.is_empty() { "in order".into() } else { parts.join(", ") }
    }
}
