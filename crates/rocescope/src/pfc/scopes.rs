//! Which port of which source has which interface number, over all sources of an agent. A record
//! says no more of its counter than observation point, interface, direction and priority, so a
//! number that two ports have is nobody's: neither has a reading until one of them gives it up.
// PFC-id.1

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use observe::pfc::Direction;

/// Numbers whose meeting is told in the log; that of more only shows in what has no reading.
const TOLD_MAX: usize = 4_096;

/// Where counters of one direction of one interface are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// `observationPointId`.
    pub point: u64,
    /// `ingressPhysicalInterface` or `egressPhysicalInterface`.
    pub interface: u32,
    /// Which of them.
    pub direction: Direction,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { point, interface, direction } = self;
        write!(f, "interface {interface}, {}, at observation point {point}", direction.word())
    }
}

/// A port of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Such as `pfc.source[0]`.
    pub source: Arc<str>,
    /// The name of the port.
    pub port: Arc<str>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.port, self.source)
    }
}

/// Which ports have which numbers. As large as the ports that are followed.
#[derive(Debug, Default)]
pub struct Scopes(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    holders: BTreeMap<Spot, BTreeSet<Holder>>,
    told: BTreeSet<Spot>,
}

impl Scopes {
    /// A port has a number.
    pub fn hold(&self, spot: Spot, holder: &Holder) {
        let mut held = self.held();
        let Held { holders, told } = &mut *held;
        let holders = holders.entry(spot).or_default();
        if holders.contains(holder) {
            return;
        }
        holders.insert(holder.clone());
        if holders.len() > 1 && told.len() < TOLD_MAX && told.insert(spot) {
            let names: Vec<String> = holders.iter().map(ToString::to_string).collect();
            tracing::warn!(
                "{spot}: {}, expected one of them: none has a reading; give one another interface, \
                 or its source another point",
                names.join(" and ")
            );
        }
    }

    /// Whether one port alone has a number.
    pub fn alone(&self, spot: Spot) -> bool {
        self.held().holders.get(&spot).is_some_and(|holders| holders.len() == 1)
    }

    /// A port has a number no more.
    pub fn release(&self, spot: Spot, holder: &Holder) {
        let mut held = self.held();
        if let Some(holders) = held.holders.get_mut(&spot) {
            holders.remove(holder);
            if holders.is_empty() {
                held.holders.remove(&spot);
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // PFC-id.1
    #[test]
    fn a_number_that_two_ports_have_is_nobodys_until_one_gives_it_up() {
        let scopes = Scopes::default();
        let spot = |interface, direction| Spot { point: 9, interface, direction };
        let [a, b] = ["a", "b"].map(|port| Holder { source: "s".into(), port: port.into() });
        let received = spot(1, Direction::Received);
        scopes.hold(received, &a);
        scopes.hold(received, &a);
        scopes.hold(spot(1, Direction::Transmitted), &b);
        scopes.hold(spot(2, Direction::Received), &b);
        scopes.hold(Spot { point: 8, ..received }, &b);
        assert!(scopes.alone(received));
        scopes.hold(received, &b);
        assert!(!scopes.alone(received));
        scopes.release(received, &a);
        assert!(scopes.alone(received));
        scopes.release(received, &b);
        assert!(!scopes.alone(received), "nobody's");
        assert!(scopes.held().holders.len() == 3);
    }
}
