//! The table for people: a line for each stream, those that deserve a look first, and then what
//! was seen and what was not.

use std::io::{self, Write};

use observe::meter::{Cause, MeterCounts};
use observe::report::Flags;
use wire::frame::NotRoce;

use super::json::address;
use super::streams::{COUNT_HEADS, Stream, Streams};
use super::tally::Tally;

/// Writes the lines of the streams. There can be a million, so nothing is allocated for a line.
///
/// # Errors
/// As the writer.
pub fn streams(out: &mut impl Write, streams: &Streams, window: u32) -> io::Result<()> {
    let ranked = streams.ranked();
    if ranked.is_empty() {
        return writeln!(out, "No stream was metered.");
    }
    let mut line = Vec::with_capacity(256);
    let mut width = "STREAM".len();
    for stream in &ranked {
        line.clear();
        name(&mut line, stream, window);
        width = width.max(line.len());
    }
    line.clear();
    line.extend_from_slice(b"STREAM");
    line.resize(width, b' ');
    cell(&mut line, b"EPOCHS", 8);
    for head in COUNT_HEADS {
        cell(&mut line, head.as_bytes(), column(head));
    }
    line.extend_from_slice(b"  QUALIFICATIONS\n");
    out.write_all(&line)?;
    let mut digits = itoa::Buffer::new();
    for stream in ranked {
        line.clear();
        name(&mut line, stream, window);
        line.resize(width, b' ');
        cell(&mut line, digits.format(stream.epochs).as_bytes(), 8);
        for (count, head) in stream.counts.iter().zip(COUNT_HEADS) {
            cell(&mut line, digits.format(*count).as_bytes(), column(head));
        }
        line.push(b' ');
        for (_, flag) in Flags::NAMES
            .iter()
            .filter(|(mask, _)| *mask != Flags::FINAL_EPOCH && stream.flags.has(*mask))
        {
            line.push(b' ');
            line.extend_from_slice(flag.as_bytes());
        }
        line.push(b'\n');
        for (cause, count) in &stream.causes {
            reason(&mut line, cause, *count)?;
        }
        out.write_all(&line)?;
    }
    if streams.evicted() > 0 {
        writeln!(out, "and {} streams whose context went to another one", streams.evicted())?;
    }
    Ok(())
}

fn reason(line: &mut Vec<u8>, cause: &Cause, count: u64) -> io::Result<()> {
    match count {
        1 => writeln!(line, "    closed: {cause}"),
        _ => writeln!(line, "    closed {count} times: {cause}"),
    }
}

fn column(head: &str) -> usize {
    head.len().max(8) + 2
}

/// Right-aligned, with at least a space in front.
fn cell(line: &mut Vec<u8>, text: &[u8], width: usize) {
    let pad = width.saturating_sub(text.len()).max(1);
    line.resize(line.len() + pad, b' ');
    line.extend_from_slice(text);
}

/// Appends what names a stream.
fn name(line: &mut Vec<u8>, stream: &Stream, window: u32) {
    let key = &stream.key;
    address(line, key.addresses.family, &key.addresses.source);
    line.extend_from_slice(b" > ");
    address(line, key.addresses.family, &key.addresses.destination);
    line.extend_from_slice(b" qp 0x");
    hexadecimal(line, key.qp, 6);
    line.extend_from_slice(b" pkey 0x");
    hexadecimal(line, u32::from(key.pkey), 4);
    let namespace = key.namespace;
    for (what, value) in [
        (" vlan ", u32::from(namespace.outer_vlan)),
        (" inner vlan ", u32::from(namespace.inner_vlan)),
        (" segment ", namespace.segment & 0x00ff_ffff),
        (" W ", if stream.window.get() == window { 0 } else { stream.window.get() }),
    ] {
        if value != 0 {
            line.extend_from_slice(what.as_bytes());
            line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        }
    }
}

fn hexadecimal(line: &mut Vec<u8>, value: u32, digits: u32) {
    for digit in (0..digits).rev() {
        let nibble = (value >> (4 * digit)) & 0xf;
        line.push(b"0123456789abcdef"[nibble as usize]);
    }
}

/// Writes what was seen and what was not.
///
/// # Errors
/// As the writer.
pub fn summary(out: &mut impl Write, tally: &Tally, meter: MeterCounts) -> io::Result<()> {
    writeln!(out, "\n{} frames: {} RoCEv2", tally.frames, tally.roce())?;
    let seen = [
        (meter.accounted, "requests accounted to an epoch"),
        (meter.violations, "requests outside the profile: not counted, their stream is disabled"),
        (meter.after_violation, "requests of a stream that was disabled before: not counted"),
        (meter.not_provisioned, "requests of streams that are not provisioned"),
        (meter.refused_full, "requests of streams refused because the context table was full"),
        (tally.responses, "responses and acknowledgements"),
        (tally.cnps, "congestion notifications (CNP)"),
        (tally.other_transports, "packets of other transports (UC, RD, UD, XRC)"),
        (tally.icrc_bad, "packets with a wrong ICRC: attributed to no stream"),
    ];
    lines(out, &seen)?;
    let not_seen = [
        (tally.pfc, "priority flow control frames"),
        (tally.fragments, "IP fragments: not put together"),
        (tally.truncated, "frames captured too short for their BTH"),
        (tally.no_room, "datagrams to port 4791 with no room for a BTH"),
        (tally.length_lies, "lengths that reach beyond the frame or the datagram"),
        (tally.extension_cut, "requests whose extension header was cut by the capture: counted"),
        (tally.unknown_link, "frames of a link type that carries no RoCEv2"),
        (tally.capture_drops, "packets that the capture says it dropped"),
        (tally.mirror_missing, "packets that the mirror numbered and that are not here"),
        (tally.mirror_behind, "mirrored packets whose number was not above the latest"),
        (tally.mirror_not_followed, "mirrored packets of sessions beyond the limit"),
        (tally.without_time, "packets without a time: that of the packet before was taken"),
        (meter.time_backwards, "requests whose time lies before that of their stream's latest"),
    ];
    lines(out, &not_seen)?;
    for (name, count) in NotRoce::NAMES.iter().zip(tally.not_roce) {
        lines(out, &[(count, name)])?;
    }
    if tally.icrc_good + tally.icrc_not_checked > 0 {
        let checked = [
            (tally.icrc_good, "packets with a good ICRC"),
            (tally.icrc_not_checked, "packets whose ICRC was not captured: not checked"),
        ];
        lines(out, &checked)?;
    }
    if tally.roce() == 0 {
        writeln!(
            out,
            "No RoCEv2 was seen, which is not the same as none being there: a NIC that bypasses \
             the kernel shows nothing to a capture on its host."
        )?;
    }
    Ok(())
}

fn lines(out: &mut impl Write, counts: &[(u64, &str)]) -> io::Result<()> {
    for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count:>12} {what}")?;
    }
    Ok(())
}
