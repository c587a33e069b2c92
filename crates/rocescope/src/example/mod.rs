//! Real captures that the program carries, so that it can show something anywhere: software RoCE
//! between two network namespaces, taken by this project. Each is a file of the repository's
//! `tests/captures/softroce`, packed; what is true of it stands beside the original.

/// A capture.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What it is called when it is written to a file.
    pub name: &'static str,
    /// The file in `tests/captures/softroce` that it is.
    pub original: &'static str,
    packed: &'static [u8],
}

/// One connection over IPv6: every PSN once, in order.
pub const PLAIN: Example = Example {
    name: "plain.pcap",
    original: "h1_write_ipv6.rcv.pcap",
    packed: include_bytes!("plain.pcap.zst"),
};

/// Eight connections behind a link that drops one packet in a hundred.
pub const GAPS: Example = Example {
    name: "gaps.pcap",
    original: "g4_write_q8_loss1.rcv.pcap",
    packed: include_bytes!("gaps.pcap.zst"),
};

/// One connection with a READ among its WRITEs.
pub const READ: Example = Example {
    name: "read.pcap",
    original: "d3_one_read_among_writes.rcv.pcap",
    packed: include_bytes!("read.pcap.zst"),
};

/// One connection; the capture missed packets, and says so at its end.
pub const DROPS: Example = Example {
    name: "drops.pcapng",
    original: "p1_dumpcap_drops.dumpcap.pcapng",
    packed: include_bytes!("drops.pcapng.zst"),
};

/// Four connections with large packets. All of them are there in its first half.
pub const FOUR: Example = Example {
    name: "four.pcap",
    original: "j2_jumbo_send_q4.rcv.pcap",
    packed: include_bytes!("four.pcap.zst"),
};

impl Example {
    /// All of them.
    pub const ALL: [Self; 5] = [PLAIN, GAPS, READ, DROPS, FOUR];

    /// The file.
    ///
    /// # Panics
    /// Never: what is packed does not depend on any input, and a test unpacks it.
    pub fn octets(&self) -> Vec<u8> {
        zstd::decode_all(self.packed).expect("what is embedded was packed by us")
    }
}
