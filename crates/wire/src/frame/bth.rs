//! The Base Transport Header and the opcodes of every transport (IBTA vol. 1, section 9.2).
//!
//! Only numbers and lengths are known here. Whether an opcode is welcome in a metered stream is
//! a question for `observe`.

/// Octets of the Base Transport Header.
pub const BTH_LEN: usize = 12;
/// Octets of the invariant CRC behind every RoCEv2 packet.
pub const ICRC_LEN: usize = 4;
/// The UDP destination port that says RoCEv2 (IANA), and the only thing that says so.
pub const ROCE_PORT: u16 = 4791;

/// A Base Transport Header (IBTA vol. 1, 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// Transport and operation, [`Opcode`].
    pub opcode: Opcode,
    /// Solicited event.
    pub solicited: bool,
    /// Migration request.
    pub migration: bool,
    /// Octets of padding behind the payload, 0 to 3.
    pub pad: u8,
    /// Transport header version, 0 to 15; the only one defined is 0.
    pub version: u8,
    /// Partition key, 16 bits.
    pub pkey: u16,
    /// Destination queue pair, 24 bits.
    pub qp: u32,
    /// The eight bits that RoCEv2 uses for FECN (0x80) and BECN (0x40).
    pub congestion: u8,
    /// Acknowledge request.
    pub ack_request: bool,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
}

/// The operation code of a BTH: three bits of transport, five of operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(pub u8);
