//! The Base Transport Header (IBTA vol. 1, section 9.2).
//!
//! Only numbers are known here. Whether an opcode is welcome in a metered stream is a question
//! for `observe`.

use super::opcode::{EXTENSION_MAX, Opcode};

/// Octets of the Base Transport Header.
pub const BTH_LEN: usize = 12;
/// Octets of the invariant CRC behind every RoCEv2 packet.
pub const ICRC_LEN: usize = 4;
/// Octets from the BTH to the ICRC in which every operation has room for what it takes at least.
#[expect(clippy::cast_possible_truncation, reason = "a few dozen octets")]
const LEAST_LEN_MAX: u32 = (BTH_LEN + EXTENSION_MAX + 3 + ICRC_LEN) as u32;
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

impl Bth {
    /// Reads the header. Every pattern of bits is one, so this cannot fail.
    #[inline(always)]
    #[must_use]
    pub const fn from_octets(octets: &[u8; BTH_LEN]) -> Self {
        let [opcode, flags, pkey1, pkey0, congestion, qp2, qp1, qp0, ack, psn2, psn1, psn0] =
            *octets;
        // The octet in front is read with each number and taken off: one load instead of three.
        Self {
            opcode: Opcode(opcode),
            solicited: flags & 0x80 != 0,
            migration: flags & 0x40 != 0,
            pad: (flags >> 4) & 0x03,
            version: flags & 0x0f,
            pkey: u16::from_be_bytes([pkey1, pkey0]),
            qp: u32::from_be_bytes([congestion, qp2, qp1, qp0]) & 0x00ff_ffff,
            congestion,
            ack_request: ack & 0x80 != 0,
            psn: u32::from_be_bytes([ack, psn2, psn1, psn0]) & 0x00ff_ffff,
        }
    }

    /// Octets from the header to the ICRC that its operation takes at least: its extension headers
    /// and the padding that it names. An operation that is not defined has no extension headers
    /// that we know of.
    #[inline(always)]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "a few dozen octets")]
    pub fn least_len(&self) -> u32 {
        let extension = self.opcode.extension_len().unwrap_or(0);
        (BTH_LEN + extension + usize::from(self.pad) + ICRC_LEN) as u32
    }

    /// Whether so many octets from the header to the ICRC hold what the operation takes at least.
    #[inline(always)]
    #[must_use]
    pub fn fits(&self, transport_len: u32) -> bool {
        // Most packets need no look at the operation, and a look at it is hard to predict.
        transport_len >= LEAST_LEN_MAX || transport_len >= self.least_len()
    }

    /// The octets of the header; bits beyond a field's width are cut off, reserved bits are zero.
    #[must_use]
    pub const fn to_octets(&self) -> [u8; BTH_LEN] {
        let [pkey1, pkey0] = self.pkey.to_be_bytes();
        let [_, qp2, qp1, qp0] = self.qp.to_be_bytes();
        let [_, psn2, psn1, psn0] = self.psn.to_be_bytes();
        let flags = ((self.solicited as u8) << 7)
            | ((self.migration as u8) << 6)
            | ((self.pad & 0x03) << 4)
            | (self.version & 0x0f);
        let ack = (self.ack_request as u8) << 7;
        [self.opcode.0, flags, pkey1, pkey0, self.congestion, qp2, qp1, qp0, ack, psn2, psn1, psn0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_where_the_standard_puts_it() {
        let octets = [0x0a, 0xe3, 0x80, 0x01, 0xc0, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef];
        let bth = Bth::from_octets(&octets);
        let expected = Bth {
            opcode: Opcode(0x0a),
            solicited: true,
            migration: true,
            pad: 2,
            version: 3,
            pkey: 0x8001,
            qp: 0x12_3456,
            congestion: 0xc0,
            ack_request: true,
            psn: 0xab_cdef,
        };
        assert_eq!(bth, expected);
        assert_eq!(bth.to_octets(), octets);
    }

    #[test]
    fn each_bit_of_the_flags_is_its_own() {
        for (flags, solicited, migration, pad, version) in [
            (0x80, true, false, 0, 0),
            (0x40, false, true, 0, 0),
            (0x30, false, false, 3, 0),
            (0x10, false, false, 1, 0),
            (0x0f, false, false, 0, 15),
        ] {
            let mut octets = [0; BTH_LEN];
            octets[1] = flags;
            let bth = Bth::from_octets(&octets);
            assert_eq!(
                (bth.solicited, bth.migration, bth.pad, bth.version),
                (solicited, migration, pad, version)
            );
        }
    }
}
