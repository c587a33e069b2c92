//! Linux drivers whose statistics (`ethtool -S`) count PFC frames: which names, how wide, and what
//! they state of themselves. Each entry was read off the sources of Linux 6.12, in the file and the
//! functions that stand beside it; older names are taken where a driver had others before.
//!
//! A driver states only what its source says. What a MAC takes for a valid frame, whether it counts
//! requests to go on, and whether what it calls sent was sent, no driver's source says: that is the
//! operator's to attest. A driver without an entry is refused.

use observe::pfc::qualify::Condition::{
    self, PhysicalInterface, StartsAtZero, TimeOfReading, VectorIndex,
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
    /// What it calls them, and what it called them before.
    spellings: &'static [Spelling],
    /// Bits of each.
    width: u32,
    stated: &'static [Condition],
    /// A zero can stand for a counter that the driver could not read.
    pub zero_says_nothing: bool,
    /// What it counts and what it does not, for people.
    pub about: &'static str,
}

/// By direction ([`Direction::ALL`]), one or two names, `#` standing for the priority; two are
/// added.
type Spelling = [&'static [&'static str]; 2];

/// The counter is one port's own.
const BY_PORT: &[Condition] = &[PhysicalInterface];
/// As before, indexed by the priority that the driver's PFC settings have.
const BY_PRIORITY: &[Condition] = &[PhysicalInterface, VectorIndex];
/// As before, read from a register of the device whenever it is asked.
const READ_NOW: &[Condition] = &[PhysicalInterface, VectorIndex, TimeOfReading];
/// As before; what the device counted before the driver came is taken off.
const READ_NOW_FROM_ZERO: &[Condition] =
    &[PhysicalInterface, VectorIndex, TimeOfReading, StartsAtZero];

const TOGETHER: &str = "it counts PFC frames of all priorities together";

/// All that are known, in the order of their names.
// PFC-id.3, PFC-count.1, PFC-count.3, PFC-exp.3
pub static DRIVERS: [Driver; 20] = [
    Driver {
        name: "be2net",
        // et_stats: rx_priority_pause_frames, tx_priority_pauseframes
        source: "drivers/net/ethernet/emulex/benet/be_ethtool.c",
        counters: Err(TOGETHER),
    },
    Driver {
        name: "bnx2x",
        // bnx2x_stats_arr: pfc_frames_received, pfc_frames_sent
        source: "drivers/net/ethernet/broadcom/bnx2x/bnx2x_ethtool.c",
        counters: Err(TOGETHER),
    },
    Driver {
        name: "bnxt_en",
        // bnxt_port_stats_arr; bnxt_dcbnl_ieee_getpfc (bnxt_dcb.c) has the same by priority;
        // bnxt_add_one_ctr, bnxt_timer and bnxt_free_mem (bnxt.c) widen, when, and begin again
        source: "drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["rx_pfc_ena_frames_pri#"], &["tx_pfc_ena_frames_pri#"]]],
            width: 64,
            stated: BY_PRIORITY,
            zero_says_nothing: false,
            about: "PFC frames of the port by priority; the device writes its counters into memory \
                    now and then, so a reading can be older than it says; the driver widens them, \
                    and begins again when the interface is closed or its firmware starts anew",
        }),
    },
    Driver {
        name: "cxgb4",
        // stats_strings, get_stats; t4_get_port_stats (t4_hw.c); struct port_stats (cxgb4.h)
        source: "drivers/net/ethernet/chelsio/cxgb4/cxgb4_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["rx_ppp#_frames"], &["tx_ppp#_frames"]]],
            width: 64,
            stated: READ_NOW,
            zero_says_nothing: false,
            about: "per-priority pause frames in registers of the port, with what was counted \
                    before the driver came",
        }),
    },
    Driver {
        name: "hinic",
        // hinic_port_stats, get_ethtool_stats; hinic_get_phy_port_stats (hinic_port.c)
        source: "drivers/net/ethernet/huawei/hinic/hinic_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["mac_rx_pfc_pri#_pkt_num"], &["mac_tx_pfc_pri#_pkt_num"]]],
            width: 64,
            stated: BY_PRIORITY,
            zero_says_nothing: true,
            about: "PFC frames of the port's MAC as its firmware tells them; where that does not \
                    answer the driver says zero, so a zero is no reading",
        }),
    },
    Driver {
        name: "hns",
        // g_xgmac_stats_string: xgmac_rx_pause_frame_num is XGMAC_RX_PRI0PAUSEPKTS
        source: "drivers/net/ethernet/hisilicon/hns/hns_dsaf_xgmac.c",
        counters: Err("its counter of priority 0 goes by the name of plain pause frames, and it \
                       says traffic class of the others"),
    },
    Driver {
        name: "hns3",
        // g_mac_stats_string, hclge_mac_update_stats_complete; hns3_get_stats (hns3_ethtool.c);
        // hclge_pfc_stats_get (hclge_tm.c)
        source: "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["mac_rx_pfc_pri#_pkt_num"], &["mac_tx_pfc_pri#_pkt_num"]]],
            width: 64,
            stated: BY_PRIORITY,
            zero_says_nothing: true,
            about: "PFC frames of the port's MAC, added up by the driver; where the device does \
                    not answer it repeats the sum, and while it is reset it says zero, so a zero \
                    is no reading",
        }),
    },
    Driver {
        name: "i40e",
        // i40e_gstrings_pfc_stats; i40e_stat_update32 and i40e_update_pf_stats (i40e_main.c).
        // The second spelling is that of older kernels.
        source: "drivers/net/ethernet/intel/i40e/i40e_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[
                [
                    &["port.rx_priority_#_xon_rx", "port.rx_priority_#_xoff_rx"],
                    &["port.tx_priority_#_xon_tx", "port.tx_priority_#_xoff_tx"],
                ],
                [
                    &["port.rx_priority_#_xon", "port.rx_priority_#_xoff"],
                    &["port.tx_priority_#_xon", "port.tx_priority_#_xoff"],
                ],
            ],
            width: 32,
            stated: READ_NOW_FROM_ZERO,
            zero_says_nothing: false,
            about: "requests to go on and requests to pause, counted apart and added here; each \
                    has 32 bits, and a reset of the port does not show",
        }),
    },
    Driver {
        name: "ice",
        // __ice_get_strings, __ice_get_ethtool_stats; ice_update_dcb_stats (ice_dcb_lib.c);
        // ice_stat_update32 (ice_common.c)
        source: "drivers/net/ethernet/intel/ice/ice_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[[
                &["rx_priority_#_xon.nic", "rx_priority_#_xoff.nic"],
                &["tx_priority_#_xon.nic", "tx_priority_#_xoff.nic"],
            ]],
            width: 64,
            stated: READ_NOW_FROM_ZERO,
            zero_says_nothing: false,
            about: "requests to go on and requests to pause, counted apart and added here; the \
                    driver widens 32 bits, and what came while the device was being reset is \
                    missing",
        }),
    },
    Driver {
        name: "ionic",
        // ionic_port_stats_desc: frames_rx_pripause; by priority only times
        source: "drivers/net/ethernet/pensando/ionic/ionic_stats.c",
        counters: Err(TOGETHER),
    },
    Driver {
        name: "ixgbe",
        // ixgbe_get_strings: tx_pb_0_pxon; ixgbe_update_stats (ixgbe_main.c)
        source: "drivers/net/ethernet/intel/ixgbe/ixgbe_ethtool.c",
        counters: Err("it counts by packet buffer, which is no priority"),
    },
    Driver {
        name: "mlx4_en",
        // main_strings; mlx4_en_DUMP_ETH_STATS (en_port.c); mlx4_en_update_pfc_stats_bitmap,
        // mlx4_en_clear_stats and STATS_DELAY (en_netdev.c)
        source: "drivers/net/ethernet/mellanox/mlx4/en_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["rx_pause_prio_#"], &["tx_pause_prio_#"]]],
            width: 64,
            stated: BY_PRIORITY,
            zero_says_nothing: false,
            about: "pause frames of a priority, shown only while PFC is enabled for one in that \
                    direction; without PFC the same counters count plain pause frames; the driver \
                    asks the device four times a second, so a reading can be older than it says, \
                    and clears its counters when the interface is opened",
        }),
    },
    Driver {
        name: "mlx5_core",
        // pport_per_prio_pfc_stats_desc, mlx5e_grp_per_prio_pfc_fill_strings,
        // MLX5E_DECLARE_STATS_GRP_OP_UPDATE_STATS(per_prio), which takes no notice of errors;
        // mlx5e_dcbnl_ieee_getpfc (en_dcbnl.c)
        source: "drivers/net/ethernet/mellanox/mlx5/core/en_stats.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["rx_prio#_pause"], &["tx_prio#_pause"]]],
            width: 64,
            stated: BY_PRIORITY,
            zero_says_nothing: false,
            about: "pause frames of a priority, shown only while PFC is enabled for it in one of \
                    the directions: without that there is no reading; read from the device \
                    whenever it is asked, but where that fails the driver repeats what it had",
        }),
    },
    mlxsw("mlxsw_spectrum"),
    mlxsw("mlxsw_spectrum2"),
    mlxsw("mlxsw_spectrum3"),
    mlxsw("mlxsw_spectrum4"),
    Driver {
        name: "nfp",
        // nfp_mac_et_stats, nfp_mac_get_stats_strings, nfp_mac_get_stats
        source: "drivers/net/ethernet/netronome/nfp/nfp_net_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["mac.rx_pause_frames_class#"], &["mac.tx_pause_frames_class#"]]],
            width: 64,
            stated: BY_PORT,
            zero_says_nothing: false,
            about: "pause frames of a class of the port's MAC; that the class is the priority, its \
                    source does not say",
        }),
    },
    Driver {
        name: "qede",
        // qede_stats_arr: rx_pfc_frames, tx_pfc_frames
        source: "drivers/net/ethernet/qlogic/qede/qede_ethtool.c",
        counters: Err(TOGETHER),
    },
    Driver {
        name: "rvu-nicpf",
        // otx2_get_strings: cgx_rxstat0
        source: "drivers/net/ethernet/marvell/octeontx2/nic/otx2_ethtool.c",
        counters: Err("its counters have numbers for names"),
    },
];

/// A Spectrum switch, whose driver has a name for each generation.
const fn mlxsw(name: &'static str) -> Driver {
    Driver {
        name,
        // mlxsw_sp_port_hw_prio_stats, mlxsw_sp_port_get_prio_strings, __mlxsw_sp_port_get_stats;
        // mlxsw_sp_port_pfc_cnts_get (spectrum_dcb.c)
        source: "drivers/net/ethernet/mellanox/mlxsw/spectrum_ethtool.c",
        counters: Ok(DriverCounters {
            spellings: &[[&["rx_pause_prio_#"], &["tx_pause_prio_#"]]],
            width: 64,
            stated: READ_NOW,
            zero_says_nothing: true,
            about: "pause frames of a priority of a switch's port; where the device does not \
                    answer the driver says zero, so a zero is no reading",
        }),
    }
}

/// The entry of a driver.
pub fn find(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.name == name)
}

impl DriverCounters {
    /// What the driver states of counters of either direction.
    pub const fn statement(&self) -> Statement {
        Statement { width: self.width, stated: self.stated }
    }

    /// What the parts of one counter, one or two, are called now, and were called before.
    pub fn spellings(
        &self,
        direction: Direction,
        priority: Priority,
    ) -> impl Iterator<Item = Vec<String>> + use<> {
        let index = priority.get().to_string();
        self.spellings.iter().map(move |spelling| {
            let patterns = match direction {
                Direction::Received => spelling[0],
                Direction::Transmitted => spelling[1],
            };
            patterns.iter().map(|pattern| pattern.replace('#', &index)).collect()
        })
    }
}
