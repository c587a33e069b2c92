//! Linux drivers whose statistics (`ethtool -S`) count PFC frames: which names, how wide, and what
//! they state of themselves. Each entry was read off the file of the Linux sources that it names.
//!
//! A driver states only what its source says. What a MAC takes for a valid frame, whether it counts
//! requests to go on, and whether what it calls sent was sent, no driver's source says: that is the
//! operator's to attest. A driver without an entry is refused.

use observe::pfc::qualify::Condition::{
    self, EachSetBit, PhysicalInterface, StartsAtZero, TimeOfReading, VectorIndex,
};
use observe::pfc::{Direction, Priority};

use super::Statement;

/// A driver.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// As the kernel tells it (`ethtool -i`).
    pub name: &'static str,
    /// The file of the Linux sources that this entry rests on.
    pub source: &'static str,
    /// Its counters, or why none of them will do.
    pub counters: Result<DriverCounters, &'static str>,
}

/// The counters of a driver.
#[derive(Clone, Copy, Debug)]
pub struct DriverCounters {
    /// By direction, one or two names, `#` standing for the priority; two are added.
    names: [&'static [&'static str]; 2],
    /// Bits of each.
    width: u32,
    stated: &'static [Condition],
    /// What it counts and what it does not, for people.
    pub about: &'static str,
}

/// The counter is one port's own.
const BY_PORT: &[Condition] = &[PhysicalInterface];
/// As before, indexed by the bit of the vector.
const BY_PRIORITY: &[Condition] = &[PhysicalInterface, VectorIndex];
/// As before, read from the device whenever it is asked.
const READ_NOW: &[Condition] = &[PhysicalInterface, VectorIndex, TimeOfReading];
/// As before; what the device counted before the driver came is taken off.
const READ_NOW_FROM_ZERO: &[Condition] =
    &[PhysicalInterface, VectorIndex, TimeOfReading, StartsAtZero];
/// The counter is of frames whose bit for the priority is set.
const BY_SET_BIT: &[Condition] = &[PhysicalInterface, VectorIndex, EachSetBit];

/// All that are known, in the order of their names.
// PFC-id.3, PFC-count.1, PFC-count.3, PFC-exp.3
pub static DRIVERS: [Driver; 12] = [
    Driver {
        name: "be2net",
        source: "drivers/net/ethernet/emulex/benet/be_ethtool.c",
        counters: Err("it counts PFC frames of all priorities together"),
    },
    Driver {
        name: "bnx2x",
        source: "drivers/net/ethernet/broadcom/bnx2x/bnx2x_stats.h",
        counters: Err("it counts PFC frames of all priorities together"),
    },
    Driver {
        name: "bnxt_en",
        source: "drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c",
        counters: Ok(DriverCounters {
            names: [&["rx_pfc_ena_frames_pri#"], &["tx_pfc_ena_frames_pri#"]],
            width: 64,
            stated: BY_SET_BIT,
            about: "frames whose bit for the priority is set; the device writes its counters into \
                    memory now and then, so a reading can be older than it says",
        }),
    },
    Driver {
        name: "cxgb4",
        source: "drivers/net/ethernet/chelsio/cxgb4/cxgb4_ethtool.c",
        counters: Ok(DriverCounters {
            names: [&["rx_ppp#_frames"], &["tx_ppp#_frames"]],
            width: 64,
            stated: READ_NOW_FROM_ZERO,
            about: "per-priority pause frames of the port's MAC",
        }),
    },
    Driver {
        name: "hns3",
        source: "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c",
        counters: Ok(DriverCounters {
            names: [&["mac_rx_pfc_pri#_pkt_num"], &["mac_tx_pfc_pri#_pkt_num"]],
            width: 64,
            stated: BY_PRIORITY,
            about: "PFC frames of the port's MAC",
        }),
    },
    Driver {
        name: "i40e",
        source: "drivers/net/ethernet/intel/i40e/i40e_main.c",
        counters: Ok(DriverCounters {
            names: [
                &["port.rx_priority_#_xon", "port.rx_priority_#_xoff"],
                &["port.tx_priority_#_xon", "port.tx_priority_#_xoff"],
            ],
            width: 32,
            stated: READ_NOW_FROM_ZERO,
            about: "requests to go on and requests to pause, counted apart and added here; each \
                    has 32 bits, and a reset of the port does not show",
        }),
    },
    Driver {
        name: "ice",
        source: "drivers/net/ethernet/intel/ice/ice_ethtool.c",
        counters: Ok(DriverCounters {
            names: [
                &["rx_priority_#_xon.nic", "rx_priority_#_xoff.nic"],
                &["tx_priority_#_xon.nic", "tx_priority_#_xoff.nic"],
            ],
            width: 64,
            stated: READ_NOW_FROM_ZERO,
            about: "requests to go on and requests to pause, counted apart and added here; the \
                    driver widens 32 bits (those of 2019 and before do not), and what came while \
                    it was being reset is missing",
        }),
    },
    Driver {
        name: "ixgbe",
        source: "drivers/net/ethernet/intel/ixgbe/ixgbe_ethtool.c",
        counters: Err("it counts by packet buffer, which is no priority"),
    },
    Driver {
        name: "mlx4_en",
        source: "drivers/net/ethernet/mellanox/mlx4/en_ethtool.c",
        counters: Ok(DriverCounters {
            names: [&["rx_pause_prio_#"], &["tx_pause_prio_#"]],
            width: 64,
            stated: BY_PRIORITY,
            about: "pause frames of a priority; the driver asks the device now and then, so a \
                    reading can be older than it says",
        }),
    },
    Driver {
        name: "mlx5_core",
        source: "drivers/net/ethernet/mellanox/mlx5/core/en_stats.c",
        counters: Ok(DriverCounters {
            names: [&["rx_prio#_pause"], &["tx_prio#_pause"]],
            width: 64,
            stated: READ_NOW,
            about: "pause frames of a priority, shown only while PFC is enabled for it in one of \
                    the directions: without that there is no reading",
        }),
    },
    Driver {
        name: "nfp",
        source: "drivers/net/ethernet/netronome/nfp/nfp_net_ethtool.c",
        counters: Ok(DriverCounters {
            names: [&["mac.rx_pause_frames_class#"], &["mac.tx_pause_frames_class#"]],
            width: 64,
            stated: BY_PORT,
            about: "pause frames of a class of the port's MAC; that the class is the priority, its \
                    source does not say",
        }),
    },
    Driver {
        name: "qede",
        source: "drivers/net/ethernet/qlogic/qede/qede_ethtool.c",
        counters: Err("it counts PFC frames of all priorities together"),
    },
];

/// The entry of a driver.
pub fn find(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.name == name)
}

impl DriverCounters {
    /// What the driver states of counters of either direction.
    pub const fn statement(&self) -> Statement {
        Statement { width: self.width, stated: self.stated }
    }

    /// The names of one counter's parts, one or two.
    pub fn names(&self, direction: Direction, priority: Priority) -> Vec<String> {
        let patterns = match direction {
            Direction::Received => self.names[0],
            Direction::Transmitted => self.names[1],
        };
        let index = priority.get().to_string();
        patterns.iter().map(|pattern| pattern.replace('#', &index)).collect()
    }
}
