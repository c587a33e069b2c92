//! How many may be there at a time: connections without a session, sessions, sessions of a peer,
//! epochs and PFC counters of all sessions.
//!
//! A connection whose handshake is not through costs a place among few. None of them can hold its
//! place against others: when all are taken, the oldest one of the address that has the most ends.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The room for something, epochs or PFC counters, that all sessions share.
// SEQ-7.10
#[derive(Debug)]
pub struct Room {
    max: u64,
    taken: AtomicU64,
}

impl Room {
    /// For so many.
    pub fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { max, taken: AtomicU64::new(0) })
    }

    /// Takes room for so many, or as many as there is room for, and says for how many.
    pub fn take(&self, wanted: u64) -> u64 {
        let mut got = 0;
        let taken = |taken: u64| {
            got = wanted.min(self.max.saturating_sub(taken));
            Some(taken + got)
        };
        // Never refused.
        _ = self.taken.fetch_update(Relaxed, Relaxed, taken);
        got
    }

    /// Gives room back that was taken.
    pub fn give_back(&self, taken: u64) {
        self.taken.fetch_sub(taken, Relaxed);
    }
}

/// Connections whose handshake is under way.
#[derive(Debug)]
pub struct Handshakes {
    max: usize,
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    next: u64,
    /// In the order of their arrival.
    all: Vec<(u64, IpAddr, oneshot::Sender<()>)>,
}

/// The place of a connection, given back when it is dropped.
#[derive(Debug)]
pub struct Handshake {
    of: Arc<Handshakes>,
    id: u64,
}

impl Handshakes {
    /// At most `max` at a time.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.max(1), pending: Mutex::default() })
    }

    /// Gives a place to a connection, if need be that of an older one. The receiver ends when the
    /// place is taken away.
    pub fn enter(self: &Arc<Self>, from: IpAddr) -> (Handshake, oneshot::Receiver<()>) {
        let mut pending = locked(&self.pending);
        if pending.all.len() >= self.max {
            let oldest = oldest_of_most(&pending.all);
            _ = pending.all.remove(oldest).2.send(());
        }
        let (end, ended) = oneshot::channel();
        let id = pending.next;
        pending.next += 1;
        pending.all.push((id, from, end));
        (Handshake { of: self.clone(), id }, ended)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        locked(&self.pending).all.len()
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        locked(&self.of.pending).all.retain(|(id, ..)| *id != self.id);
    }
}

/// Lines of the log that strangers may cause, in a second.
const LINES_MAX: u32 = 10;

/// Keeps strangers from filling the log; what is not told is counted all the same.
#[derive(Debug, Default)]
pub struct LineQuota {
    /// The second, and the lines in it.
    used: Mutex<(u64, u32)>,
}

impl LineQuota {
    /// Whether there is room for a line in a second.
    pub fn takes(&self, second: u64) -> bool {
        let mut used = locked(&self.used);
        if used.0 != second {
            *used = (second, 0);
        }
        used.1 = used.1.saturating_add(1);
        used.1 <= LINES_MAX
    }
}

fn oldest_of_most(all: &[(u64, IpAddr, oneshot::Sender<()>)]) -> usize {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for (_, from, _) in all {
        *counts.entry(*from).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    all.iter().position(|(_, from, _)| counts.get(from) == Some(&most)).unwrap_or(0)
}

/// Sessions, in all and by peer.
#[derive(Debug, Default)]
pub struct Sessions {
    by_peer: Mutex<HashMap<String, usize>>,
}

/// The place of a session, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    of: Arc<Sessions>,
    peer: String,
}

impl Sessions {
    /// Gives a place to a session of a peer.
    ///
    /// # Errors
    /// There are as many as there may be; in a line.
    // SEQ-7.10
    pub fn enter(
        self: &Arc<Self>,
        peer: &str,
        sessions_max: usize,
        per_peer_max: usize,
    ) -> Result<Place, String> {
        let mut by_peer = locked(&self.by_peer);
        let all: usize = by_peer.values().sum();
        if all >= sessions_max {
            return Err(format!("there are {all} sessions, limits.sessions_max"));
        }
        let own = by_peer.get(peer).copied().unwrap_or(0);
        if own >= per_peer_max {
            return Err(format!("{peer} has {own} sessions, limits.sessions_per_peer_max"));
        }
        by_peer.insert(peer.into(), own + 1);
        Ok(Place { of: self.clone(), peer: peer.into() })
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        locked(&self.by_peer).values().sum()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_peer = locked(&self.of.by_peer);
        if let Some(own) = by_peer.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                by_peer.remove(&self.peer);
            }
        }
    }
}

/// What is behind a lock; a thread that panicked with it has left counts that still hold.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_handshake_too_many_ends_the_oldest_of_the_address_with_the_most() {
        let all = Handshakes::new(3);
        let (one, two) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let (_a, mut a_ended) = all.enter(one);
        let (_b, mut b_ended) = all.enter(two);
        let (_c, mut c_ended) = all.enter(two);
        assert!(b_ended.try_recv().is_err());
        let (_d, mut d_ended) = all.enter(one);
        assert_eq!(b_ended.try_recv(), Ok(()));
        for ended in [&mut a_ended, &mut c_ended, &mut d_ended] {
            assert!(ended.try_recv().is_err());
        }
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn a_handshake_that_is_over_gives_its_place_back() {
        let all = Handshakes::new(1);
        let from = IpAddr::from([10, 0, 0, 1]);
        drop(all.enter(from));
        assert_eq!(all.len(), 0);
        let (_place, mut ended) = all.enter(from);
        assert!(ended.try_recv().is_err());
    }

    // SEQ-7.10
    #[test]
    fn sessions_share_the_room_for_epochs_and_none_takes_more_than_there_is() {
        let room = Room::new(10);
        assert_eq!((room.take(4), room.take(7), room.take(1)), (4, 6, 0));
        room.give_back(5);
        assert_eq!((room.take(u64::MAX), room.take(1)), (5, 0));
    }

    #[test]
    fn strangers_cause_ten_lines_a_second() {
        let quota = LineQuota::default();
        let told = |second| (0..100).filter(|_| quota.takes(second)).count();
        assert_eq!((told(7), told(7), told(8)), (10, 0, 10));
    }

    // SEQ-7.10
    #[test]
    fn sessions_are_admitted_up_to_both_limits_and_again_when_one_is_over() {
        let all = Arc::new(Sessions::default());
        let a1 = all.enter("a", 3, 2).unwrap();
        let _a2 = all.enter("a", 3, 2).unwrap();
        let per_peer = all.enter("a", 3, 2).unwrap_err();
        assert_eq!(per_peer, "a has 2 sessions, limits.sessions_per_peer_max");
        let _b1 = all.enter("b", 3, 2).unwrap();
        let full = all.enter("b", 3, 2).unwrap_err();
        assert_eq!(full, "there are 3 sessions, limits.sessions_max");
        drop(a1);
        let _a3 = all.enter("a", 3, 2).unwrap();
        assert_eq!(all.len(), 3);
    }
}
