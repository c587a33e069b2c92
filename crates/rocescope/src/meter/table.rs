//! The table for people: a line for each stream, those that deserve a look first, and then what
//! was seen and what was not.

use std::io::{self, Write};

use observe::meter::{Cause, MeterCounts};
use observe::report::Flags;
use observe::request::Violation;
use observe::window::Window;
use wire::frame::{Layer, Lie, NotRoce};

use super::streams::{COUNT_HEADS, Stream, Streams};
use crate::layout::{cell, counted, lines, push_stream_name, stream_name_len};
use crate::observation::{LOOKED_THROUGH_MAX, Tally};

const PFC: &str = "priority flow control frame[|s]";
const PFC_NOT_ASKED: &str =
    "priority flow control frame[|s] (--pfc counts [it|them] by interface and priority)";

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
        let evicted = counted(streams.evicted(), "stream[|s] whose context went to another one");
        writeln!(out, "and {evicted}")?;
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

/// Writes what was seen and what was not. Where counters of PFC frames were not asked for, it says
/// how to.
///
/// # Errors
/// As the writer.
pub fn summary(
    out: &mut impl Write,
    tally: &Tally,
    meter: MeterCounts,
    pfc_asked: bool,
) -> io::Result<()> {
    writeln!(out, "\n{}: {} RoCEv2", counted(tally.frames, "frame[|s]"), tally.roce())?;
    let seen = [
        (meter.accounted, "request[|s] accounted to an epoch"),
        (
            meter.violations,
            "request[|s] outside the profile: not counted, [its|their] stream is disabled",
        ),
        (meter.after_violation, "request[|s] of a stream that was disabled before: not counted"),
        (meter.not_provisioned, "request[|s] of streams that are not provisioned"),
        (meter.refused_full, "request[|s] of streams refused because the context table was full"),
        (tally.responses, "response[|s] and acknowledgement[|s]"),
        (tally.cnps, "congestion notification[|s] (CNP)"),
        (tally.other_transports, "packet[|s] of other transports (UC, RD, UD, XRC)"),
        (tally.icrc_bad, "packet[|s] with a wrong ICRC: attributed to no stream"),
        (tally.before_time, "request[|s] in front of any packet with a time: not metered"),
    ];
    lines(out, &seen)?;
    let pfc = [
        (tally.pfc, if pfc_asked { PFC } else { PFC_NOT_ASKED }),
        (tally.pfc_outbound, "priority flow control frame[|s] that [was|were] sent, not received"),
        (
            tally.pfc_tunnelled,
            "priority flow control frame[|s] inside a tunnel: of no interface of the capture",
        ),
    ];
    lines(out, &pfc)?;
    shortfalls(out, tally)?;
    let times = [
        (tally.without_time, "packet[|s] without a time: that of the packet before was taken"),
        (
            meter.time_backwards,
            "request[|s] whose time lies before that of [its|their] stream's latest",
        ),
    ];
    lines(out, &times)?;
    other_frames(out, tally)?;
    lines(
        out,
        &[(
            tally.deeper,
            "RoCEv2 packet[|s] inside more than one encapsulation: no layer shows [it|them]",
        )],
    )?;
    if tally.icrc_good + tally.icrc_not_checked > 0 {
        let checked = [
            (tally.icrc_good, "packet[|s] with a good ICRC"),
            (tally.icrc_not_checked, "packet[|s] whose ICRC was not captured: not checked"),
        ];
        lines(out, &checked)?;
    }
    let seen = tally.roce() + tally.mirror_not_followed + tally.damaged;
    elsewhere(out, tally, seen > 0)?;
    if seen == 0 && tally.elsewhere.is_empty() && tally.deeper == 0 {
        nothing_seen(out)?;
    }
    Ok(())
}

/// Says which layer to observe for RoCEv2 that the observed one does not show.
// SEQ-4.3
fn elsewhere(out: &mut impl Write, tally: &Tally, seen: bool) -> io::Result<()> {
    let first = if tally.looked_through < LOOKED_THROUGH_MAX { "" } else { "at least " };
    for (layer, count) in &tally.elsewhere {
        let place = match layer {
            Layer::Outer => "in the frames themselves",
            Layer::Erspan => "inside ERSPAN",
            Layer::Gre => "inside GRE",
            Layer::Vxlan => "inside VXLAN",
            Layer::Geneve => "inside Geneve",
        };
        let packets = counted(*count, "RoCEv2 packet[|s]");
        let stand = if *count == 1 { "stands" } else { "stand" };
        let instead = if seen { "another run with" } else { "try" };
        writeln!(
            out,
            "{first}{packets} {stand} {place}, which is not the observed layer: {instead} --layer \
             {name}, or observation.layer = \"{name}\" in a configuration.",
            name = layer.name()
        )?;
    }
    Ok(())
}

/// Writes what could not be read, and what the captures say they do not hold.
///
/// # Errors
/// As the writer.
pub fn shortfalls(out: &mut impl Write, tally: &Tally) -> io::Result<()> {
    let not_seen = [
        (tally.fragments, "IP fragment[|s]: not put together"),
        (
            tally.truncated,
            "frame[|s] captured too short for [its|their] BTH, or to tell what [it is|they are]",
        ),
        (tally.no_room, "datagram[|s] to port 4791 with no room for a BTH"),
        (tally.length_lies, "length[|s] that reach[es|] beyond the frame or the datagram"),
        (tally.extension_cut, "request[|s] whose extension header was cut by the capture: counted"),
        (tally.unknown_link, "frame[|s] of a link type that carries no RoCEv2"),
        (tally.capture_drops, "packet[|s] that the capture says it dropped"),
        (
            tally.damaged,
            "frame[|s] that the capture marks as damaged, or whose check sequence is wrong, or whose \
             lengths cannot be: attributed to nothing",
        ),
        (tally.mirror_restarts, "time[|s] that a mirror's numbers started anew"),
        (tally.mirror_missing, "packet[|s] that the mirror numbered and that [is|are] not here"),
        (tally.mirror_behind, "mirrored packet[|s] whose number was not above the latest"),
        (tally.mirror_not_followed, "mirrored packet[|s] of sessions beyond the limit"),
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
