//! One record of a generated capture: pcap with nanoseconds, Ethernet, IPv4, UDP, BTH.
//!
//! Everything about a packet follows from its stream and its position in it, so that a packet
//! that is sent again has the same octets as before, its time aside.

/// Octets of a frame that the capture keeps.
const SNAP: usize = 96;
/// Octets of a record's own header.
const RECORD_HEADER: usize = 16;
/// The longest record.
pub const RECORD_MAX: usize = RECORD_HEADER + SNAP;

const ETHERNET: u16 = 14;
const IPV4: u16 = 20;
const UDP: u16 = 8;
const BTH: u16 = 12;
const ICRC: u16 = 4;
const PAYLOAD: u16 = 1024;

/// The file header: nanoseconds, little endian, Ethernet, 96 octets of each packet.
pub fn pcap_header() -> [u8; 24] {
    let mut header = [0; 24];
    header[0..4].copy_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
    header[4..6].copy_from_slice(&2_u16.to_le_bytes());
    header[6..8].copy_from_slice(&4_u16.to_le_bytes());
    header[16] = 96;
    header[20] = 1;
    header
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A SEND or WRITE of the stream.
    Request,
    /// An acknowledgement, from the destination back to the source.
    Response,
}

/// Where a stream runs.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    source: u32,
    destination: u32,
    /// Queue pair at the destination; destination and queue pair name the stream.
    qp: u32,
    /// Queue pair at the source, where responses go.
    source_qp: u32,
    first_psn: u32,
    salt: u32,
}

impl Place {
    /// The place of stream number `stream` of `streams`: hosts with queue pairs given out from 17
    /// on, as a host does, and a first PSN anywhere.
    pub fn of(stream: usize, streams: usize) -> Self {
        let stream = u32::try_from(stream).unwrap_or(u32::MAX);
        let hosts = u32::try_from((streams / 64).clamp(2, 4096)).unwrap_or(2);
        let salt = scatter(stream);
        let destination = stream % hosts;
        let source = (destination + 1 + salt % (hosts - 1)) % hosts;
        Self {
            source: 0x0a00_0001 + source,
            destination: 0x0a00_0001 + destination,
            qp: (17 + stream / hosts) & 0xff_ffff,
            source_qp: (17 + stream / hosts + 0x40_0000) & 0xff_ffff,
            first_psn: scatter(salt) & 0xff_ffff,
            salt,
        }
    }

    /// Writes the record of one packet and gives its length.
    pub fn write(
        self,
        kind: Kind,
        position: u32,
        time_ns: u64,
        record: &mut [u8; RECORD_MAX],
    ) -> usize {
        let (opcode, extension, payload) = match kind {
            Kind::Request => self.operation(position),
            Kind::Response => (0x11, 4, 0),
        };
        let transport = BTH + extension + payload + ICRC;
        let original = ETHERNET + IPV4 + UDP + transport;
        let captured = usize::from(original).min(SNAP);
        let (seconds, nanoseconds) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
        record.fill(0);
        record[0..4].copy_from_slice(&word(seconds));
        record[4..8].copy_from_slice(&word(nanoseconds));
        record[8..12].copy_from_slice(&word(captured as u64));
        record[12..16].copy_from_slice(&word(u64::from(original)));
        self.headers(kind, transport, record);
        let psn = self.first_psn.wrapping_add(position) & 0xff_ffff;
        let qp = if kind == Kind::Request { self.qp } else { self.source_qp };
        record[58] = opcode;
        record[60..62].copy_from_slice(&0xffff_u16.to_be_bytes());
        record[62..66].copy_from_slice(&qp.to_be_bytes());
        record[66..70].copy_from_slice(&psn.to_be_bytes());
        RECORD_HEADER + captured
    }

    /// Ethernet, IPv4 and UDP, at octet 16 of the record.
    fn headers(self, kind: Kind, transport: u16, record: &mut [u8; RECORD_MAX]) {
        let (from, to) = match kind {
            Kind::Request => (self.source, self.destination),
            Kind::Response => (self.destination, self.source),
        };
        for (at, address) in [(16, to), (22, from)] {
            record[at] = 0x02;
            record[at + 2..at + 6].copy_from_slice(&address.to_be_bytes());
        }
        record[28..30].copy_from_slice(&0x0800_u16.to_be_bytes());
        // Version 4, five words; ECT(0); do not fragment; 64 hops; UDP.
        record[30..32].copy_from_slice(&[0x45, 0x02]);
        record[32..34].copy_from_slice(&(IPV4 + UDP + transport).to_be_bytes());
        record[36] = 0x40;
        record[38..40].copy_from_slice(&[64, 17]);
        record[42..46].copy_from_slice(&from.to_be_bytes());
        record[46..50].copy_from_slice(&to.to_be_bytes());
        let checksum = ipv4_checksum(&record[30..50]);
        record[40..42].copy_from_slice(&checksum.to_be_bytes());
        // The source port is entropy (0xc000 and above), the checksum of UDP is not used.
        let entropy = self.salt.to_be_bytes();
        record[50..52].copy_from_slice(&[entropy[0] | 0xc0, entropy[1]]);
        record[52..54].copy_from_slice(&4791_u16.to_be_bytes());
        record[54..56].copy_from_slice(&(UDP + transport).to_be_bytes());
    }

    /// Opcode, octets of extension headers and octets of payload at a position. Four positions
    /// are one message of four packets or four of one.
    fn operation(self, position: u32) -> (u8, u16, u16) {
        let message = scatter(self.salt ^ (position / 4));
        let write = message & 1 != 0;
        let immediate = message & 14 == 0;
        let single = message & 16 != 0;
        // Opcodes of SEND: first 0, middle 1, last 2 and 3, only 4 and 5; WRITE is 6 above.
        let (operation, first, last) = match (single, position % 4) {
            (true, _) => (4, true, true),
            (false, 0) => (0, true, false),
            (false, 3) => (2, false, true),
            (false, _) => (1, false, false),
        };
        let opcode = operation + u8::from(last && immediate) + if write { 6 } else { 0 };
        let reth = if write && first { 16 } else { 0 };
        let immdt = if last && immediate { 4 } else { 0 };
        (opcode, reth + immdt, PAYLOAD)
    }
}

/// A number that looks unlike its neighbours' (the finaliser of MurmurHash3).
fn scatter(value: u32) -> u32 {
    let value = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let value = (value ^ (value >> 13)).wrapping_mul(0xc2b2_ae35);
    value ^ (value >> 16)
}

/// RFC 1071 over a header whose own checksum is zero.
fn ipv4_checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded & 0xffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_streams_share_destination_and_queue_pair() {
        for streams in [1, 2, 3, 1000, 100_000] {
            let places = (0..streams).map(|stream| Place::of(stream, streams));
            let names: BTreeSet<_> = places.map(|place| (place.destination, place.qp)).collect();
            assert_eq!(names.len(), streams);
        }
    }

    #[test]
    fn no_stream_runs_from_a_host_to_itself() {
        assert!((0..1000).map(|stream| Place::of(stream, 1000)).all(|p| p.source != p.destination));
    }

    #[test]
    fn all_twelve_opcodes_occur_with_the_room_that_they_need() {
        let place = Place::of(0, 2);
        let found: BTreeSet<_> = (0..4000).map(|position| place.operation(position)).collect();
        let expected = [
            (0, 0),
            (1, 0),
            (2, 0),
            (3, 4),
            (4, 0),
            (5, 4),
            (6, 16),
            (7, 0),
            (8, 0),
            (9, 4),
            (10, 16),
            (11, 20),
        ];
        let expected = expected.map(|(opcode, extension)| (opcode, extension, PAYLOAD));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_checksum_of_a_known_header() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(ipv4_checksum(&header), 0xb861);
    }

    #[test]
    fn a_packet_sent_again_has_the_same_octets() {
        let place = Place::of(5, 100);
        let (mut one, mut two) = ([0; RECORD_MAX], [0xff; RECORD_MAX]);
        let lengths =
            [&mut one, &mut two].map(|record| place.write(Kind::Request, 9, 1_000_000_007, record));
        assert_eq!(lengths, [RECORD_MAX; 2]);
        assert_eq!(one, two);
        assert_eq!(one[0..8], [1, 0, 0, 0, 7, 0, 0, 0]);
    }
}
