//! What the kernel says of an interface beside its drop counter: whether it was there and up the
//! whole time (sequence draft, section 3: no known capture loss). A link that was down for a moment
//! passes nothing and counts no drop, and what a mirror sent meanwhile was never seen.
//!
//! Asked over rtnetlink, by index: files under `/sys` show the namespace in which they were mounted,
//! and a name can come to mean another interface. How often the carrier was there and was not is
//! counted by the kernel; that an interface was taken down and up again is not, and is told to who
//! listens.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netdevice, recv,
    sendto, socket_with,
};

/// Octets of an answer that are read; what is looked for stands in the first few hundred.
const ANSWER_OCTETS: usize = 32_768;
/// What the kernel tells between two looks, at most; behind more than these nothing is known.
const TOLD_MAX: usize = 4096;
/// The group that is told of every change of an interface (`RTMGRP_LINK`).
const GROUP_LINK: u32 = 1;

/// What netlink's sockets are for where nothing else is said: `NETLINK_ROUTE`.
const ROUTE: Option<Protocol> = None;

// Of `linux/netlink.h`, `linux/rtnetlink.h` and `linux/if_link.h`.
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const IFLA_CARRIER: u16 = 33;
const IFLA_CARRIER_UP_COUNT: u16 = 47;
const IFLA_CARRIER_DOWN_COUNT: u16 = 48;
const IFF_UP: u32 = 1;
/// Of a message, and of what stands behind that where it is about an interface.
const HEADER_LEN: usize = 16;
const LINK_HEADER_LEN: usize = 16;

/// What there is to say of an interface since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It was up the whole time.
    Up,
    /// It is up, and for some time it was not, or nobody can say; in words.
    Interrupted(String),
    /// It is not up; in words.
    Down(String),
    /// It is no more; in words.
    Gone(String),
}

/// Why nothing is known of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unknown {
    /// There is no interface of this index.
    Gone,
    /// There may be; in words.
    Unanswered(String),
}

/// How an interface stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Enabled, and with a carrier.
    up: bool,
    enabled: bool,
    /// How often the carrier came and went.
    carrier: [u32; 2],
}

/// One interface, watched.
#[derive(Debug)]
pub struct Link {
    index: u32,
    asking: OwnedFd,
    told: OwnedFd,
    asked: u32,
    last: State,
    buffer: Vec<u8>,
}

impl Link {
    /// Begins to watch an interface. What it was before does not count.
    ///
    /// # Errors
    /// In a few words: there is no such interface, or the kernel does not say what is needed.
    pub fn watch(name: &str) -> Result<Self, String> {
        let failed = |error: Errno| error.to_string();
        let told = netlink(GROUP_LINK).map_err(failed)?;
        let asking = netlink(0).map_err(failed)?;
        let index = netdevice::name_to_index(&asking, name)
            .map_err(|error| format!("no interface of this name: {error}"))?;
        let last = State { up: false, enabled: false, carrier: [0; 2] };
        let buffer = vec![0; ANSWER_OCTETS];
        let mut link = Self { index, asking, told, asked: 0, last, buffer };
        link.last = link.ask().map_err(|unknown| match unknown {
            Unknown::Gone => "no interface of this name any more".into(),
            Unknown::Unanswered(what) => what,
        })?;
        Ok(link)
    }

    /// Whether it was up when that was last asked.
    pub fn is_up(&self) -> bool {
        self.last.up
    }

    /// Asks again.
    // SEQ-3.5, SEQ-3.7
    pub fn look(&mut self) -> Look {
        let heard = self.heard();
        let state = match self.ask() {
            Ok(state) => state,
            Err(Unknown::Gone) => return Look::Gone("the interface is not there any more".into()),
            // A change that cannot be ruled out is one.
            Err(Unknown::Unanswered(what)) => return Look::Interrupted(what),
        };
        let before = std::mem::replace(&mut self.last, state);
        if !state.up {
            let what = if state.enabled { "has no carrier" } else { "is taken down" };
            return Look::Down(format!("the interface {what}"));
        }
        match heard {
            Some(heard) => Look::Interrupted(heard.into()),
            None if !before.up => Look::Interrupted("the interface was down".into()),
            None if before.carrier != state.carrier => {
                Look::Interrupted("the interface was without a carrier for a time".into())
            }
            None => Look::Up,
        }
    }

    /// What the kernel has told meanwhile, if it is anything against the interface.
    fn heard(&mut self) -> Option<&'static str> {
        let mut found = None;
        for _ in 0..TOLD_MAX {
            match receive(&self.told, &mut self.buffer) {
                Ok(octets) => {
                    for message in Messages(octets) {
                        if message.takes_down(self.index) {
                            found = Some("the interface was taken down for a time");
                        }
                    }
                }
                Err(Errno::AGAIN) => return found,
                Err(Errno::INTR) => {}
                // Among them that there was more than there is room for.
                Err(_) => {
                    return Some("the kernel could not tell all that became of the interface");
                }
            }
        }
        Some("more changes of interfaces than are followed")
    }

    fn ask(&mut self) -> Result<State, Unknown> {
        let unanswered = |error: Errno| {
            Unknown::Unanswered(format!("the kernel does not answer for the interface: {error}"))
        };
        self.asked = self.asked.wrapping_add(1);
        let kernel = SocketAddrNetlink::new(0, 0);
        let request = request(self.index, self.asked);
        sendto(&self.asking, &request, SendFlags::empty(), &kernel).map_err(unanswered)?;
        for _ in 0..TOLD_MAX {
            let octets = match receive(&self.asking, &mut self.buffer) {
                Ok(octets) => octets,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(unanswered(error)),
            };
            for message in Messages(octets) {
                if message.sequence == self.asked {
                    return message.state(self.index);
                }
            }
        }
        Err(Unknown::Unanswered("the kernel answers something else than was asked".into()))
    }
}

fn netlink(groups: u32) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, ROUTE)?;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

fn receive<'b>(socket: &impl AsFd, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let (len, _) = recv(socket, &mut *buffer, RecvFlags::empty())?;
    Ok(&buffer[..len.min(buffer.len())])
}

/// An `RTM_GETLINK` for one interface.
fn request(index: u32, sequence: u32) -> [u8; HEADER_LEN + LINK_HEADER_LEN] {
    let mut octets = [0; HEADER_LEN + LINK_HEADER_LEN];
    octets[..4].copy_from_slice(&32_u32.to_ne_bytes());
    octets[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    octets[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    octets[8..12].copy_from_slice(&sequence.to_ne_bytes());
    octets[20..24].copy_from_slice(&index.to_ne_bytes());
    octets
}

/// One message of the kernel.
#[derive(Clone, Copy, Debug)]
struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

impl Message<'_> {
    /// Whether an interface is not enabled by this, or no more.
    fn takes_down(&self, index: u32) -> bool {
        // What bridges say of their ports has another family than 0.
        let ours = self.body.first() == Some(&0) && u32_at(self.body, 4) == Some(index);
        let disabled = u32_at(self.body, 8).is_none_or(|flags| flags & IFF_UP == 0);
        ours && (self.kind == RTM_DELLINK || self.kind == RTM_NEWLINK && disabled)
    }

    fn state(&self, index: u32) -> Result<State, Unknown> {
        if self.kind == NLMSG_ERROR {
            let number = u32_at(self.body, 0).unwrap_or(0).wrapping_neg();
            return Err(match i32::try_from(number) {
                Ok(number) if number == Errno::NODEV.raw_os_error() => Unknown::Gone,
                _ => Unknown::Unanswered(format!("the kernel answers with error {number}")),
            });
        }
        let flags = u32_at(self.body, 8)
            .filter(|_| self.kind == RTM_NEWLINK && u32_at(self.body, 4) == Some(index));
        let carrier = self.attribute(IFLA_CARRIER).and_then(|value| value.first().copied());
        let count = |kind| self.attribute(kind).and_then(|value| u32_at(value, 0));
        let (ups, downs) = (count(IFLA_CARRIER_UP_COUNT), count(IFLA_CARRIER_DOWN_COUNT));
        let (Some(flags), Some(carrier), Some(ups), Some(downs)) = (flags, carrier, ups, downs)
        else {
            return Err(Unknown::Unanswered(
                "the kernel does not say how often the carrier went, expected Linux 4.16 or later"
                    .into(),
            ));
        };
        let enabled = flags & IFF_UP != 0;
        Ok(State { up: enabled && carrier != 0, enabled, carrier: [ups, downs] })
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        let mut rest = self.body.get(LINK_HEADER_LEN..)?;
        loop {
            let len = usize::from(u16_at(rest, 0)?);
            let value = rest.get(4..len)?;
            // The two upper bits say how it is written.
            if u16_at(rest, 2)? & 0x3fff == wanted {
                return Some(value);
            }
            rest = rest.get(len.next_multiple_of(4)..)?;
        }
    }
}

/// The messages in what was received, as far as their lengths can be.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let len = usize::try_from(u32_at(self.0, 0)?).ok()?;
        let kind = u16_at(self.0, 4)?;
        let sequence = u32_at(self.0, 8)?;
        // One that was longer than the room for it ends where that does.
        let body = self.0.get(HEADER_LEN..len.min(self.0.len()))?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, sequence, body })
    }
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    let octets = octets.get(at..at.checked_add(2)?)?;
    octets.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    let octets = octets.get(at..at.checked_add(4)?)?;
    octets.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message as the kernel writes it.
    fn message(
        kind: u16,
        family: u8,
        index: u32,
        flags: u32,
        attributes: &[(u16, &[u8])],
    ) -> Vec<u8> {
        let mut body = vec![family, 0, 0, 0];
        body.extend(index.to_ne_bytes());
        body.extend(flags.to_ne_bytes());
        body.extend([0; 4]);
        for (kind, value) in attributes {
            let len = u16::try_from(value.len() + 4).expect("short");
            body.extend(len.to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let len = u32::try_from(HEADER_LEN + body.len()).expect("short");
        let mut octets = len.to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.extend([0, 0]);
        octets.extend(7_u32.to_ne_bytes());
        octets.extend([0; 4]);
        octets.extend(body);
        octets
    }

    fn state(octets: &[u8]) -> Result<State, Unknown> {
        Messages(octets).next().expect("a message").state(3)
    }

    #[test]
    fn an_interface_is_up_where_it_is_enabled_and_has_a_carrier() {
        let (ups, downs) = (5_u32.to_ne_bytes(), 4_u32.to_ne_bytes());
        for (flags, carrier, up) in [(1, 1, true), (0, 1, false), (1, 0, false)] {
            let counts: [(u16, &[u8]); 4] =
                [(3, b"roce0\0"), (33, &[carrier]), (47, &ups), (48 | 0x8000, &downs)];
            let found = state(&message(RTM_NEWLINK, 0, 3, flags, &counts)).expect("a state");
            assert_eq!(found, State { up, enabled: flags == 1, carrier: [5, 4] });
            // Without any one of them nothing can be said.
            for left_out in 1..4 {
                let mut fewer = counts.to_vec();
                fewer.remove(left_out);
                assert!(state(&message(RTM_NEWLINK, 0, 3, flags, &fewer)).is_err(), "{left_out}");
            }
        }
    }

    #[test]
    fn only_what_takes_this_very_interface_down_counts() {
        let told = |kind, family, index, flags| {
            let octets = message(kind, family, index, flags, &[]);
            Messages(&octets).next().expect("a message").takes_down(3)
        };
        assert!(told(RTM_NEWLINK, 0, 3, 0));
        assert!(told(RTM_DELLINK, 0, 3, 1));
        assert!(!told(RTM_NEWLINK, 0, 3, 1));
        assert!(!told(RTM_NEWLINK, 0, 4, 0));
        // An interface that leaves a bridge is still there.
        assert!(!told(RTM_DELLINK, 7, 3, 1));
    }

    #[test]
    fn messages_cut_anywhere_are_read_as_far_as_they_go() {
        let ups = 5_u32.to_ne_bytes();
        let mut whole = message(RTM_NEWLINK, 0, 3, 1, &[(33, &[1]), (47, &ups), (48, &ups)]);
        assert!(state(&whole).is_ok());
        for len in 0..whole.len() - 4 {
            for message in Messages(&whole[..len]) {
                assert!(message.state(3).is_err(), "{len}");
            }
        }
        // A length of nothing does not go on for ever.
        whole[..4].copy_from_slice(&[0; 4]);
        assert_eq!(Messages(&whole).count(), 0);
    }

    #[test]
    fn an_interface_that_is_not_there_is_told_from_one_that_cannot_be_asked_for() {
        let refused = |number: i32| {
            let mut octets = message(NLMSG_ERROR, 0, 0, 0, &[]);
            octets[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&number.to_ne_bytes());
            state(&octets).unwrap_err()
        };
        assert_eq!(refused(-19), Unknown::Gone);
        assert!(matches!(refused(-1), Unknown::Unanswered(_)));
    }
}
