//! The table for people: a line for each stream, those that deserve a look first, and then what
//! was seen and what was not.

use std::io::{self, Write};

use observe::meter::{Cause, MeterCounts};
use observe::report::Flags;
use observe::request::Violation;
use observe::window::Window;
use wire::frame::{Lie, NotRoce};

use super::streams::{COUNT_HEADS, Stream, Streams};
use crate::layout::{cell, lines, push_stream_name, stream_name_len};
use crate::observation::Tally;

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
    let names = ranked.iter().map(|stream| name_len(stream, window));
    let width = names.fold("STREAM".len(), usize::max);
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
            // What was never metered has no counts: nothing was found to be 0.
            let text = if stream.epochs == 0 { "-" } else { digits.format(*count) };
            cell(&mut line, text.as_bytes(), column(head));
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
            reason(&mut line, stream, cause, *count)?;
        }
        out.write_all(&line)?;
    }
    if streams.evicted() > 0 {
        writeln!(out, "and {} streams whose context went to another one", streams.evicted())?;
    }
    Ok(())
}

fn reason(line: &mut Vec<u8>, stream: &Stream, cause: &Cause, count: u64) -> io::Result<()> {
    match count {
        _ if stream.epochs == 0 => writeln!(line, "    never metered: {cause}")?,
        1 => writeln!(line, "    closed: {cause}")?,
        _ => writeln!(line, "    closed {count} times, the first: {cause}")?,
    }
    if *cause == Cause::Violation(Violation::Length(Lie::IpBeyondFrame)) {
        writeln!(line, "    (where a mirror cuts packets without saying so: --sliced)")?;
    }
    Ok(())
}

fn column(head: &str) -> usize {
    head.len().max(8) + 2
}

/// The window of a stream, where it is not the one of the run.
fn other_window(stream: &Stream, window: u32) -> Option<u32> {
    stream.window.map(Window::get).filter(|other| *other != window)
}

fn name_len(stream: &Stream, window: u32) -> usize {
    let digits = |other: u32| " W ".len() + itoa::Buffer::new().format(other).len();
    stream_name_len(&stream.key) + other_window(stream, window).map_or(0, digits)
}

fn name(line: &mut Vec<u8>, stream: &Stream, window: u32) {
    push_stream_name(line, &stream.key);
    if let Some(other) = other_window(stream, window) {
        line.extend_from_slice(b" W ");
        line.extend_from_slice(itoa::Buffer::new().format(other).as_bytes());
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
        (tally.before_time, "requests in front of any packet with a time: not metered"),
    ];
    lines(out, &seen)?;
    let pfc = [
        (tally.pfc, "priority flow control frames"),
        (tally.pfc_outbound, "priority flow control frames that were sent, not received"),
    ];
    lines(out, &pfc)?;
    shortfalls(out, tally)?;
    let times = [
        (tally.without_time, "packets without a time: that of the packet before was taken"),
        (meter.time_backwards, "requests whose time lies before that of their stream's latest"),
    ];
    lines(out, &times)?;
    other_frames(out, tally)?;
    if tally.icrc_good + tally.icrc_not_checked > 0 {
        let checked = [
            (tally.icrc_good, "packets with a good ICRC"),
            (tally.icrc_not_checked, "packets whose ICRC was not captured: not checked"),
        ];
        lines(out, &checked)?;
    }
    if tally.roce() + tally.mirror_not_followed + tally.damaged == 0 {
        nothing_seen(out)?;
    }
    Ok(())
}

/// Writes what could not be read, and what the captures say they do not hold.
///
/// # Errors
/// As the writer.
pub fn shortfalls(out: &mut impl Write, tally: &Tally) -> io::Result<()> {
    let not_seen = [
        (tally.fragments, "IP fragments: not put together"),
        (tally.truncated, "frames captured too short for their BTH"),
        (tally.no_room, "datagrams to port 4791 with no room for a BTH"),
        (tally.length_lies, "lengths that reach beyond the frame or the datagram"),
        (tally.extension_cut, "requests whose extension header was cut by the capture: counted"),
        (tally.unknown_link, "frames of a link type that carries no RoCEv2"),
        (tally.capture_drops, "packets that the capture says it dropped"),
        (
            tally.damaged,
            "frames that the capture marks as damaged, or whose lengths cannot be: attributed to \
             nothing",
        ),
        (tally.mirror_restarts, "times that a mirror's numbers started anew"),
        (tally.mirror_missing, "packets that the mirror numbered and that are not here"),
        (tally.mirror_behind, "mirrored packets whose number was not above the latest"),
        (tally.mirror_not_followed, "mirrored packets of sessions beyond the limit"),
    ];
    lines(out, &not_seen)
}

/// Writes how many frames were something else, by what they were.
///
/// # Errors
/// As the writer.
pub fn other_frames(out: &mut impl Write, tally: &Tally) -> io::Result<()> {
    for (name, count) in NotRoce::NAMES.iter().zip(tally.not_roce) {
        lines(out, &[(count, name)])?;
    }
    Ok(())
}

/// Says what it means that no RoCEv2 was seen.
///
/// # Errors
/// As the writer.
pub fn nothing_seen(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "No RoCEv2 was seen, which is not the same as none being there: a NIC that bypasses \
         the kernel shows nothing to a capture on its host."
    )
}
