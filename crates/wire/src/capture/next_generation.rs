//! pcapng (draft-ietf-opsawg-pcapng): blocks with a type, a length, a body and the length once
//! more.
//!
//! Section headers, interface descriptions, packets in their three shapes and interface
//! statistics are read. Names, secrets, custom blocks and whatever has not been thought of yet
//! are stepped over.

use super::{
    Error, Expected, Format, FrameCheck, Interface, Interfaces, Limits, Order, Record, Statistics,
    Step, length, size,
};
use crate::frame::LinkType;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Octets of type and length at the start of a block.
const HEAD: usize = 8;
/// Octets around the body: type, length, length.
const AROUND: usize = 12;

const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
/// Of the enhanced packet block, and of the one that it has replaced.
const EPB_FLAGS: u16 = 2;
/// Direction of a packet in its flags, and the value for a packet that was sent.
const DIRECTION: u32 = 0x3;
const OUTBOUND: u32 = 0x2;
/// Errors of the link layer in the flags of a packet.
const LINK_ERRORS: u32 = 0xff00_0000;
/// Those among them by which it is no frame (IEEE 802.3, 3.4): wrong check sequence, too long, too
/// short, not of whole octets, symbol error. The others are of what stands in front of a frame.
const NO_FRAME: u32 = 0x9700_0000;
const EPB_DROPCOUNT: u16 = 4;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
const ISB_FILTERACCEPT: u16 = 6;
const ISB_OSDROP: u16 = 7;
const ISB_USRDELIV: u16 = 8;
/// In the obsolete packet block: how many were dropped is not known.
const DROPS_UNKNOWN: u16 = 0xffff;

/// What a section has said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    order: Order,
    interfaces: Interfaces,
}

/// A whole block.
#[derive(Clone, Copy)]
struct Block<'a> {
    body: &'a [u8],
    /// Octets of the whole block.
    consumed: usize,
    /// Offset in the file of the body.
    offset: u64,
}

impl Section {
    /// The block at the start of `data`.
    pub(super) fn next<'a>(
        &mut self,
        data: &'a [u8],
        limits: Limits,
        offset: u64,
    ) -> Result<Step<'a>, Error> {
        let Some(head) = data.first_chunk::<AROUND>() else {
            return Ok(Step::Need(AROUND));
        };
        let [t0, t1, t2, t3, l0, l1, l2, l3, m0, m1, m2, m3] = *head;
        // Reads the same in either byte order.
        let is_section = u32::from_le_bytes([t0, t1, t2, t3]) == SECTION_HEADER;
        let order = if is_section { byte_order([m0, m1, m2, m3], offset)? } else { self.order };
        let kind = order.u32([t0, t1, t2, t3]);
        let found = order.u32([l0, l1, l2, l3]);
        let least = least_length(kind);
        if found % 4 != 0 || found < least {
            return Err(Error::new(offset + 4, Expected::BlockLength { found, least }));
        }
        if found > limits.record_max {
            let limit = limits.record_max;
            return Err(Error::new(offset + 4, Expected::RecordLength { found, limit }));
        }
        let consumed = size(found);
        let Some(whole) = data.get(..consumed) else {
            return Ok(Step::Need(consumed));
        };
        let body_end = consumed - 4;
        let trailer = order.u32_at(whole, body_end).unwrap_or(0);
        if trailer != found {
            return Err(Error::new(
                offset + length(body_end),
                Expected::Trailer { found: trailer, length: found },
            ));
        }
        let block = Block {
            body: whole.get(HEAD..body_end).unwrap_or(&[]),
            consumed,
            offset: offset + length(HEAD),
        };
        match kind {
            SECTION_HEADER => self.section(block, order),
            INTERFACE_DESCRIPTION => self.interface(block, limits),
            ENHANCED_PACKET => self.enhanced(block),
            PACKET => self.obsolete(block),
            SIMPLE_PACKET => self.simple(block),
            INTERFACE_STATISTICS => self.statistics(block),
            _ => Ok(Step::Skipped { consumed }),
        }
    }

    fn section<'a>(&mut self, block: Block<'_>, order: Order) -> Result<Step<'a>, Error> {
        let major = order.u16_at(block.body, 4).unwrap_or(0);
        let minor = order.u16_at(block.body, 6).unwrap_or(0);
        // 1.2 was written by some and means the same.
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Error::new(
                block.offset + 4,
                Expected::Version { format: Format::PcapNg, found: (major, minor) },
            ));
        }
        self.order = order;
        self.interfaces.clear();
        Ok(Step::Section { consumed: block.consumed })
    }

    fn interface<'a>(&mut self, block: Block<'a>, limits: Limits) -> Result<Step<'a>, Error> {
        let Some(number) = u32::try_from(self.interfaces.len())
            .ok()
            .filter(|number| *number < limits.interfaces_max)
        else {
            let limit = limits.interfaces_max;
            return Err(Error::new(block.offset, Expected::InterfaceCount { limit }));
        };
        let link = self.order.u16_at(block.body, 0).unwrap_or(0);
        let mut interface = Interface {
            link: LinkType::from_number(u32::from(link)),
            snap_len: self.order.u32_at(block.body, 4).unwrap_or(0),
            resolution: Resolution::MICROSECONDS,
            offset_s: 0,
            check_len: 0,
        };
        let mut name = None;
        let order = self.order;
        options(block, 8, order, |option| {
            match option.code {
                IF_NAME => name = Some(option.octets),
                IF_FCSLEN => interface.check_len = u32::from(option.fixed::<1>()?[0]),
                IF_TSRESOL => interface.resolution = Resolution(option.fixed::<1>()?[0]),
                IF_TSOFFSET => {
                    interface.offset_s = order.u64(option.fixed()?).cast_signed();
                }
                _ => {}
            }
            Ok(())
        })?;
        self.interfaces.push(interface);
        Ok(Step::Interface {
            consumed: block.consumed,
            interface: number,
            link: interface.link,
            snap_len: interface.snap_len,
            name,
        })
    }

    fn enhanced<'a>(&self, block: Block<'a>) -> Result<Step<'a>, Error> {
        let number = self.field(block, 0);
        let interface = self.find(number, block.offset)?;
        let time_ns = interface.time_ns(self.field(block, 4), self.field(block, 8));
        let (data, options_at) = self.packet(block, 12, 20)?;
        let order = self.order;
        let mut drops_before = None;
        let mut flags = 0;
        options(block, options_at, order, |option| {
            match option.code {
                EPB_FLAGS => flags = order.u32(option.fixed()?),
                EPB_DROPCOUNT => drops_before = Some(order.u64(option.fixed()?)),
                _ => {}
            }
            Ok(())
        })?;
        let record = Record {
            interface: number,
            link: interface.link,
            time_ns,
            original_len: self.field(block, 16),
            data,
            drops_before,
            outbound: false,
            damaged: false,
            check: FrameCheck::Untold,
        };
        let consumed = block.consumed;
        Ok(Step::Packet { consumed, record: flagged(record, flags, interface.check_len) })
    }

    fn obsolete<'a>(&self, block: Block<'a>) -> Result<Step<'a>, Error> {
        let number = u32::from(self.order.u16_at(block.body, 0).unwrap_or(0));
        let drops = self.order.u16_at(block.body, 2).unwrap_or(DROPS_UNKNOWN);
        let interface = self.find(number, block.offset)?;
        let (data, options_at) = self.packet(block, 12, 20)?;
        let order = self.order;
        let mut flags = 0;
        options(block, options_at, order, |option| {
            if option.code == EPB_FLAGS {
                flags = order.u32(option.fixed()?);
            }
            Ok(())
        })?;
        let record = Record {
            interface: number,
            link: interface.link,
            time_ns: interface.time_ns(self.field(block, 4), self.field(block, 8)),
            original_len: self.field(block, 16),
            data,
            drops_before: (drops != DROPS_UNKNOWN).then_some(u64::from(drops)),
            outbound: false,
            damaged: false,
            check: FrameCheck::Untold,
        };
        let consumed = block.consumed;
        Ok(Step::Packet { consumed, record: flagged(record, flags, interface.check_len) })
    }

    /// A packet of the first interface, without a time and without its captured length, which
    /// is as much of the original length as the snap length lets through.
    fn simple<'a>(&self, block: Block<'a>) -> Result<Step<'a>, Error> {
        let interface = self.find(0, block.offset)?;
        let original_len = self.field(block, 0);
        let captured_len = match interface.snap_len {
            0 => original_len,
            snap_len => original_len.min(snap_len),
        };
        let record = Record {
            interface: 0,
            link: interface.link,
            time_ns: None,
            original_len,
            data: cut(block, 4, captured_len, 0)?,
            drops_before: None,
            outbound: false,
            damaged: false,
            check: FrameCheck::Untold,
        };
        let consumed = block.consumed;
        Ok(Step::Packet { consumed, record: record.without_check_sequence(interface.check_len) })
    }

    fn statistics<'a>(&self, block: Block<'_>) -> Result<Step<'a>, Error> {
        let number = self.field(block, 0);
        let interface = self.find(number, block.offset)?;
        let mut statistics = Statistics {
            interface: number,
            time_ns: interface.time_ns(self.field(block, 4), self.field(block, 8)),
            ..Statistics::default()
        };
        let order = self.order;
        options(block, 12, order, |option| {
            let counter = match option.code {
                ISB_IFRECV => &mut statistics.received,
                ISB_IFDROP => &mut statistics.if_drop,
                ISB_FILTERACCEPT => &mut statistics.accepted,
                ISB_OSDROP => &mut statistics.os_drop,
                ISB_USRDELIV => &mut statistics.delivered,
                _ => return Ok(()),
            };
            *counter = Some(order.u64(option.fixed()?));
            Ok(())
        })?;
        let consumed = block.consumed;
        Ok(Step::Statistics { consumed, statistics })
    }

    /// The number at `at` in a body that [`least_length`] has made sure to be long enough.
    fn field(&self, block: Block<'_>, at: usize) -> u32 {
        self.order.u32_at(block.body, at).unwrap_or(0)
    }

    fn find(&self, number: u32, offset: u64) -> Result<&Interface, Error> {
        self.interfaces.get(size(number)).ok_or_else(|| {
            let count = self.interfaces.len();
            let found = number;
            Error::new(offset, Expected::Interface { found, count })
        })
    }

    /// The packet at `at` whose length stands at `len_at`, and where the options start.
    fn packet<'a>(
        &self,
        block: Block<'a>,
        len_at: usize,
        at: usize,
    ) -> Result<(&'a [u8], usize), Error> {
        let captured_len = self.field(block, len_at);
        let data = cut(block, at, captured_len, len_at)?;
        Ok((data, at + data.len().next_multiple_of(4)))
    }
}

impl Interface {
    /// A time in two halves as nanoseconds since 1970.
    fn time_ns(&self, high: u32, low: u32) -> Option<u64> {
        let units = u64::from(high) << 32 | u64::from(low);
        let since_offset = self.resolution.nanoseconds(units)?;
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(i128::from(since_offset) + offset).ok()
    }
}

/// The unit of time of an interface, as `if_tsresol` has it: 10 to the power of minus the lower
/// seven bits, or 2 where the top bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resolution(u8);

impl Resolution {
    /// What holds where nothing is said.
    pub(super) const MICROSECONDS: Self = Self(6);

    /// So many units in nanoseconds, cut; nothing where that is more than 64 bits hold.
    fn nanoseconds(self, units: u64) -> Option<u64> {
        let power = u32::from(self.0 & 0x7f);
        if self.0 & 0x80 != 0 {
            // Below 2^94.
            let scaled = u128::from(units) * 1_000_000_000;
            return u64::try_from(scaled >> power).ok();
        }
        match power.checked_sub(9) {
            None => units.checked_mul(10u64.pow(9 - power)),
            // A unit so small that all the units there can be make no nanosecond.
            Some(power) => Some(10u64.checked_pow(power).map_or(0, |divisor| units / divisor)),
        }
    }
}

/// Octets of the shortest block of this kind.
const fn least_length(kind: u32) -> u32 {
    match kind {
        SECTION_HEADER => 28,
        INTERFACE_DESCRIPTION => 20,
        SIMPLE_PACKET => 16,
        INTERFACE_STATISTICS => 24,
        PACKET | ENHANCED_PACKET => 32,
        _ => 12,
    }
}

fn byte_order(found: [u8; 4], offset: u64) -> Result<Order, Error> {
    match found {
        [0x4d, 0x3c, 0x2b, 0x1a] => Ok(Order::Little),
        [0x1a, 0x2b, 0x3c, 0x4d] => Ok(Order::Big),
        _ => Err(Error::new(offset + 8, Expected::ByteOrder { found })),
    }
}

/// `len` octets of the body from `at` on; `len_at` is where the length stands.
fn cut<'a>(block: Block<'a>, at: usize, len: u32, len_at: usize) -> Result<&'a [u8], Error> {
    let room = block.body.get(at..).unwrap_or(&[]);
    room.get(..size(len)).ok_or_else(|| {
        Error::new(
            block.offset + length(len_at),
            Expected::PacketLength { found: len, room: room.len() },
        )
    })
}

/// A record with what the flags of its block say, without the frame check sequence that they, or
/// else the interface, say is behind it.
fn flagged(record: Record<'_>, flags: u32, check_len: u32) -> Record<'_> {
    let record = Record {
        outbound: flags & DIRECTION == OUTBOUND,
        damaged: flags & LINK_ERRORS != 0,
        ..record
    };
    let said = if flags & NO_FRAME == 0 { FrameCheck::Untold } else { FrameCheck::Bad };
    let check_len = match (flags >> 5) & 0xf {
        // The flags do not say.
        0 => check_len,
        len => len,
    };
    record.found(said).without_check_sequence(check_len)
}

/// One option.
struct Value<'a> {
    code: u16,
    octets: &'a [u8],
    /// Offset in the file.
    offset: u64,
}

impl Value<'_> {
    /// The value of an option that always has `N` octets.
    fn fixed<const N: usize>(&self) -> Result<[u8; N], Error> {
        self.octets.try_into().map_err(|_| {
            Error::new(
                self.offset,
                Expected::OptionValue { code: self.code, found: self.octets.len(), length: N },
            )
        })
    }
}

/// Visits the options of a block, which start at `at` in its body.
fn options<'a>(
    block: Block<'a>,
    at: usize,
    order: Order,
    mut visit: impl FnMut(&Value<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut at = at;
    while let (Some(code), Some(len)) =
        (order.u16_at(block.body, at), order.u16_at(block.body, at.saturating_add(2)))
    {
        if code == 0 {
            break;
        }
        let offset = block.offset + length(at);
        let room = block.body.get(at + 4..).unwrap_or(&[]);
        let Some(octets) = room.get(..usize::from(len)) else {
            return Err(Error::new(
                offset,
                Expected::OptionLength { code, found: len, room: room.len() },
            ));
        };
        visit(&Value { code, octets, offset })?;
        at += 4 + octets.len().next_multiple_of(4);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_nanoseconds_in_every_resolution() {
        for (resolution, units, nanoseconds) in [
            (0, 3, Some(3_000_000_000)),
            (3, 1_500, Some(1_500_000_000)),
            (6, u64::MAX / 1000, Some(u64::MAX / 1000 * 1000)),
            (6, u64::MAX / 1000 + 1, None),
            (9, u64::MAX, Some(u64::MAX)),
            (10, 19, Some(1)),
            (12, 1_999, Some(1)),
            (28, u64::MAX, Some(1)),
            (29, u64::MAX, Some(0)),
            (127, u64::MAX, Some(0)),
            (0x80, 18_446_744_073, Some(18_446_744_073_000_000_000)),
            (0x80, 18_446_744_074, None),
            (0x81, 3, Some(1_500_000_000)),
            // 2^-30 s is 0.93 ns, so two of them are 1.86.
            (0x80 | 30, 2, Some(1)),
            (0x80 | 32, u64::MAX, Some(4_294_967_295_999_999_999)),
            (0xff, u64::MAX, Some(0)),
        ] {
            assert_eq!(
                Resolution(resolution).nanoseconds(units),
                nanoseconds,
                "{units} units of resolution {resolution:#x}"
            );
        }
    }

    #[test]
    fn a_time_that_does_not_fit_is_unknown_and_not_wrong() {
        let interface = |offset_s| Interface {
            link: Ok(LinkType::Ethernet),
            snap_len: 0,
            resolution: Resolution(9),
            offset_s,
            check_len: 0,
        };
        for (offset_s, units, time_ns) in [
            (0, 5, Some(5)),
            (-1, 1_000_000_000, Some(0)),
            (-1, 999_999_999, None),
            (1, 5, Some(1_000_000_005)),
            (i64::MAX, 5, None),
            (i64::MIN, u64::MAX, None),
            (1, u64::MAX, None),
        ] {
            let [a, b, c, d, e, f, g, h] = u64::to_be_bytes(units);
            let high = u32::from_be_bytes([a, b, c, d]);
            let low = u32::from_be_bytes([e, f, g, h]);
            assert_eq!(interface(offset_s).time_ns(high, low), time_ns);
        }
    }
}
