//! Counters in the statistics of Linux network drivers, by the table of [`super::drivers`].
//!
//! A driver that is another one than the operator named, an interface that is no port of its own,
//! and one whose statistics have none of the names say so; none of that is ever zero.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use observe::pfc::{Direction, Priority};

use super::drivers::{DriverCounters, find};
use super::ioctl::Asker;
pub use super::ioctl::Statistics;
use super::{Absent, Clock, Counters, Polled, PortRead, Source, Value};

/// Where statistics come from.
pub trait Provider {
    /// The driver of an interface and its statistics.
    ///
    /// # Errors
    /// What the system says.
    fn statistics(&mut self, interface: &str) -> io::Result<Statistics>;

    /// The number that the system gives the interface: another one after it was made anew.
    ///
    /// # Errors
    /// What the system says.
    fn index(&mut self, interface: &str) -> io::Result<u32>;

    /// Why the interface is no physical port, if that is so.
    fn not_physical(&mut self, interface: &str) -> Option<String>;
}

/// The kernel of this machine.
#[derive(Debug)]
pub struct Kernel(Asker);

impl Kernel {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Asker::new())
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Provider for Kernel {
    fn statistics(&mut self, interface: &str) -> io::Result<Statistics> {
        self.0.ask(interface)
    }

    fn index(&mut self, interface: &str) -> io::Result<u32> {
        let text = fs::read_to_string(about(interface).join("ifindex"))?;
        text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    // PFC-id.2
    fn not_physical(&mut self, interface: &str) -> Option<String> {
        let about = about(interface);
        if about.join("bonding").exists() {
            return Some("it is an aggregate: name its members".into());
        }
        if about.join("device/physfn").exists() {
            return Some(
                "it is a virtual function, whose port belongs to another interface".into(),
            );
        }
        None
    }
}

fn about(interface: &str) -> std::path::PathBuf {
    Path::new("/sys/class/net").join(interface)
}

/// A port to poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthtoolPort {
    /// The name of the interface.
    pub name: Arc<str>,
    /// `ingressPhysicalInterface` and `egressPhysicalInterface`; without one, the number that the
    /// system gives the interface.
    pub interface: Option<u32>,
}

/// Counters of interfaces of one driver.
#[derive(Debug)]
pub struct Ethtool<P> {
    provider: P,
    driver: &'static str,
    counters: DriverCounters,
    ports: Vec<EthtoolPort>,
}

impl<P: Provider> Ethtool<P> {
    /// Looks whether every interface is what the operator says that it is.
    ///
    /// # Errors
    /// In a line: the interface, and what was expected of it.
    // PFC-count.4, PFC-id.2
    pub fn new(driver: &str, ports: Vec<EthtoolPort>, mut provider: P) -> Result<Self, String> {
        let entry = find(driver).ok_or_else(|| format!("{driver}: not in the table of drivers"))?;
        let counters = entry.counters.map_err(|why| format!("{driver}: {why}"))?;
        for port in &ports {
            let name = &port.name;
            if let Some(why) = provider.not_physical(name) {
                return Err(format!("{name}: not a physical interface: {why}"));
            }
            let found = provider.statistics(name).map_err(|error| match error.kind() {
                io::ErrorKind::Unsupported => {
                    format!("{name}: its driver has no statistics, expected {driver}")
                }
                _ => format!("{name}: {error}"),
            })?;
            if found.driver != driver {
                let found = &found.driver;
                return Err(format!("{name}: driver {found:?}, expected {driver}"));
            }
            let known = Names::of(&found);
            let none = Direction::ALL.iter().all(|direction| {
                Priority::ALL.iter().all(|priority| {
                    known.value(&counters, *direction, *priority) == Err(Absent::NoCounter)
                })
            });
            // A driver may show counters of enabled priorities alone, so this can change.
            if none {
                let mut spellings = counters.spellings(Direction::Received, Priority::ALL[0]);
                let expected = spellings.next().unwrap_or_default().join(" and ");
                tracing::warn!(
                    "{name}: none of its statistics is a PFC counter, expected such as {expected}: \
                     no readings until there is one"
                );
            }
        }
        Ok(Self { provider, driver: entry.name, counters, ports })
    }

    /// The number that each port has now.
    // PFC-id.1
    pub fn numbers(&mut self) -> Vec<(Arc<str>, u32)> {
        let provider = &mut self.provider;
        let number = |port: &EthtoolPort| {
            let number = port.interface.or_else(|| provider.index(&port.name).ok());
            number.map(|number| (port.name.clone(), number))
        };
        self.ports.iter().filter_map(number).collect()
    }

    fn read(&mut self, port: &EthtoolPort, clock: &dyn Clock) -> Result<PortRead, Absent> {
        let index = self.provider.index(&port.name).map_err(|_| Absent::NoPort)?;
        let before = clock.now();
        let statistics = self.provider.statistics(&port.name);
        let statistics = statistics.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => Absent::Unsettled,
            _ => Absent::Unanswered,
        })?;
        // Made anew while it was read.
        if self.provider.index(&port.name).ok() != Some(index) {
            return Err(Absent::Unsettled);
        }
        if statistics.driver != self.driver {
            return Err(Absent::NoPort);
        }
        let known = Names::of(&statistics);
        let counters: Counters = Direction::ALL.map(|direction| {
            Priority::ALL.map(|priority| known.value(&self.counters, direction, priority))
        });
        let interface = port.interface.unwrap_or(index);
        Ok(PortRead { interface, at: before, instance: u64::from(index), counters })
    }
}

impl<P: Provider> Source for Ethtool<P> {
    fn poll(&mut self, clock: &dyn Clock) -> Result<Vec<Polled>, String> {
        let ports = self.ports.clone();
        Ok(ports.iter().map(|port| (port.name.clone(), self.read(port, clock))).collect())
    }
}

/// Statistics by their names.
struct Names<'s>(HashMap<&'s str, u64>);

impl<'s> Names<'s> {
    fn of(statistics: &'s Statistics) -> Self {
        let names = statistics.names.iter().map(String::as_str);
        Self(names.zip(statistics.values.iter().copied()).collect())
    }

    fn value(
        &self,
        counters: &DriverCounters,
        direction: Direction,
        priority: Priority,
    ) -> Result<Value, Absent> {
        let mut spellings = counters.spellings(direction, priority);
        let found = spellings.find_map(|names| self.spelt(&names));
        match found.ok_or(Absent::NoCounter)? {
            // What could not be read is not zero. PFC-op.1
            Value::One(0) | Value::Two(0, 0) if counters.zero_says_nothing => {
                Err(Absent::DoubtfulZero)
            }
            value => Ok(value),
        }
    }

    fn spelt(&self, names: &[String]) -> Option<Value> {
        let mut values = names.iter().map(|name| self.0.get(name.as_str()).copied());
        match (values.next(), values.next()) {
            (Some(Some(one)), None) => Some(Value::One(one)),
            // One of two is not the counter.
            (Some(Some(one)), Some(Some(other))) => Some(Value::Two(one, other)),
            _ => None,
        }
    }
}
