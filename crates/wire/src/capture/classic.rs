//! The classic pcap format (draft-ietf-opsawg-pcap): a header of 24 octets, then records of 16
//! octets and a packet.

use super::{Error, Expected, Format, FrameCheck, Limits, Order, Record, Step, size};
use crate::frame::{LinkType, UnknownLink};

/// Octets of the header of the file.
pub(super) const HEADER_LEN: usize = 24;
/// Octets of the header of a record.
const RECORD_LEN: usize = 16;
/// Part of the link field that is the link type.
const LINK_MASK: u32 = 0xffff;
/// The link field says how long the frame check sequence behind each packet is.
const CHECK_TOLD: u32 = 0x0400_0000;

/// What the header of the file says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    order: Order,
    /// Nanoseconds in a unit of the fraction of a second.
    fraction_ns: u16,
    link: Result<LinkType, UnknownLink>,
    snap_len: u32,
    /// Octets of the frame check sequence behind each packet, 0 for none.
    check_len: u32,
    /// The interface is still to be told of.
    fresh: bool,
}

impl Header {
    pub(super) fn new(octets: &[u8; HEADER_LEN]) -> Result<Self, Error> {
        let [m0, m1, m2, m3, version @ .., _, _, _, _, _, _, _, _, s0, s1, s2, s3, l0, l1, l2, l3] =
            *octets;
        let (order, fraction_ns) = match [m0, m1, m2, m3] {
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1000),
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
            _ => return Err(Error::new(0, Expected::Unmodified)),
        };
        let [major1, major0, minor1, minor0] = version;
        let found = (order.u16([major1, major0]), order.u16([minor1, minor0]));
        // Before 2.4, writers did not agree on the order of the two lengths.
        if found.0 != 2 || found.1 < 4 {
            let format = Format::Pcap;
            return Err(Error::new(4, Expected::Version { format, found }));
        }
        let link = order.u32([l0, l1, l2, l3]);
        Ok(Self {
            order,
            fraction_ns,
            link: LinkType::from_number(link & LINK_MASK),
            // In units of two octets.
            check_len: if link & CHECK_TOLD == 0 { 0 } else { (link >> 28) * 2 },
            snap_len: order.u32([s0, s1, s2, s3]),
            fresh: true,
        })
    }

    /// A whole record, or nothing where anything else is to be said.
    #[inline]
    pub(super) fn record<'a>(&self, data: &'a [u8], limits: Limits) -> Option<(usize, Record<'a>)> {
        let (head, rest) = data.split_first_chunk::<RECORD_LEN>()?;
        let [seconds, fraction, captured_len, original_len] = self.order.four(head);
        if captured_len > limits.record_max || self.fresh {
            return None;
        }
        let data = rest.get(..size(captured_len))?;
        let record = Record {
            interface: 0,
            link: self.link,
            // Both are below 2^32, so the sum is below 2^63.
            time_ns: Some(
                u64::from(seconds) * 1_000_000_000
                    + u64::from(fraction) * u64::from(self.fraction_ns),
            ),
            original_len,
            data,
            drops_before: None,
            outbound: false,
            damaged: false,
            check: FrameCheck::Untold,
        };
        let consumed = RECORD_LEN + data.len();
        let record = match self.check_len {
            0 => record,
            len => record.without_check_sequence(len),
        };
        Some((consumed, record))
    }

    /// Whatever else there is to say than a whole record.
    pub(super) fn next<'a>(
        &mut self,
        data: &'a [u8],
        limits: Limits,
        offset: u64,
    ) -> Result<Step<'a>, Error> {
        if self.fresh {
            self.fresh = false;
            return Ok(Step::Interface {
                consumed: 0,
                interface: 0,
                link: self.link,
                snap_len: self.snap_len,
                name: None,
            });
        }
        let Some(found) = self.order.u32_at(data, 8) else {
            return Ok(Step::Need(RECORD_LEN));
        };
        if found > limits.record_max {
            let limit = limits.record_max;
            return Err(Error::new(offset + 8, Expected::RecordLength { found, limit }));
        }
        match self.record(data, limits) {
            Some((consumed, record)) => Ok(Step::Packet { consumed, record }),
            None => Ok(Step::Need(RECORD_LEN + size(found))),
        }
    }
}
