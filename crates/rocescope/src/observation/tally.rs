//! What was in a capture and what became of it, counted: the part of the result that says what
//! the reports do not cover.

use std::collections::BTreeMap;

use observe::request::Observed;
use wire::frame::{Fault, Layer, NotRoce};

/// Counts of frames. Every frame is in exactly one of `not_roce`, `requests`, `violations`,
/// `responses`, `cnps`, `other_transports`, `pfc`, `pfc_outbound`, `pfc_tunnelled`, `unknown_link`
/// and the faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All frames.
    pub frames: u64,
    /// Frames that are known to be something else, by the index of the reason.
    pub not_roce: [u64; NotRoce::COUNT],
    /// Of the frames that are something else, those that were looked through for RoCEv2 at other
    /// layers: the first [`super::LOOKED_THROUGH_MAX`].
    pub looked_through: u64,
    /// Those among them in which another layer than the observed one shows RoCEv2.
    pub elsewhere: BTreeMap<Layer, u64>,
    /// Those among them with RoCEv2 inside more than one encapsulation.
    pub deeper: u64,
    /// Frames of interfaces whose link type cannot carry RoCEv2.
    pub unknown_link: u64,
    /// SEND and WRITE requests.
    pub requests: u64,
    /// Requests outside the profile.
    pub violations: u64,
    /// READ and ATOMIC responses and acknowledgements.
    pub responses: u64,
    /// Congestion notifications.
    pub cnps: u64,
    /// UC, RD, UD, XRC and reserved transports.
    pub other_transports: u64,
    /// Priority flow control frames of which nothing says that they were sent.
    pub pfc: u64,
    /// Priority flow control frames that were sent, by the capture's word.
    pub pfc_outbound: u64,
    /// Priority flow control frames inside a tunnel, which are of no interface that is seen.
    pub pfc_tunnelled: u64,
    /// Frames that the capture marks as damaged on the link, or whose lengths cannot be; they are
    /// counted nowhere else.
    pub damaged: u64,
    /// Requests in front of any packet with a time; not metered.
    pub before_time: u64,
    /// Times that a mirror session counted anew.
    pub mirror_restarts: u64,
    /// IP fragments, and what is mirrored in them.
    pub fragments: u64,
    /// Frames captured too short for their BTH.
    pub truncated: u64,
    /// Requests whose extension header was not captured in full; they are among the requests.
    pub extension_cut: u64,
    /// Datagrams to port 4791 that have no room for a BTH.
    pub no_room: u64,
    /// Length fields that reach beyond what holds them; where the BTH is there, the packet is
    /// also among the others.
    pub length_lies: u64,
    /// Packets whose ICRC was checked, and matched.
    pub icrc_good: u64,
    /// Packets whose ICRC does not match; they are counted nowhere else.
    pub icrc_bad: u64,
    /// Packets whose ICRC was to be checked, and was not captured in full.
    pub icrc_not_checked: u64,
    /// Packets that the capture says it dropped.
    pub capture_drops: u64,
    /// Packets that a mirror numbered and that never came.
    pub mirror_missing: u64,
    /// Mirrored packets whose number was not above the latest.
    pub mirror_behind: u64,
    /// Mirrored packets of sessions beyond the limit, whose numbers were not followed.
    pub mirror_not_followed: u64,
    /// Packets without a time of their own, which took that of the packet before.
    pub without_time: u64,
}

impl Tally {
    /// A RoCEv2 packet.
    pub fn packet(&mut self, observed: Observed) {
        match observed {
            Observed::Request(_) => self.requests += 1,
            Observed::Violation(_) => self.violations += 1,
            Observed::Response => self.responses += 1,
            Observed::Cnp => self.cnps += 1,
            Observed::OtherTransport => self.other_transports += 1,
        }
    }

    /// A frame whose BTH cannot be had.
    pub fn fault(&mut self, fault: &Fault) {
        match fault {
            Fault::Fragment { .. } | Fault::CarrierFragment { .. } => self.fragments += 1,
            Fault::Truncated { .. } => self.truncated += 1,
            Fault::NoRoomForBth { .. } => self.no_room += 1,
            Fault::LengthLies { .. } => self.length_lies += 1,
        }
    }

    /// All RoCEv2 packets with a BTH.
    pub fn roce(&self) -> u64 {
        self.requests
            + self.violations
            + self.responses
            + self.cnps
            + self.other_transports
            + self.icrc_bad
    }
}
