//! What was found, for people: a line for each stream, those that do not fit first; then what
//! else there is, what was not seen, and what to do next.

use std::io::{self, Write};

use wire::frame::{Layer, MirrorKind, NotRoce, Opcode, Transport};

use super::found::{Found, Ranked};
use super::question::{Questions, Verdict};
use super::stream::opcodes_text;
use crate::config::shown;
use crate::layout::{cell, cell_left, counted, lines, stream_name};
use crate::meter::table::{nothing_seen, other_frames, shortfalls};

/// Mirror sessions and tunnels that get a line; of the others, only the number.
const CARRIERS_SHOWN: usize = 20;
/// Senders of priority flow control frames that are named for one priority.
const SOURCES_SHOWN: usize = 8;

/// Writes everything.
///
/// # Errors
/// As the writer.
pub fn write(out: &mut impl Write, found: &Found) -> io::Result<()> {
    streams(out, found)?;
    pfc(out, found)?;
    carriers(out, found)?;
    summary(out, found)?;
    advice(out, found)
}

fn streams(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let ranked = found.ranked();
    if ranked.is_empty() {
        return writeln!(out, "No stream of requests was found.");
    }
    let names: Vec<String> = ranked.iter().map(|ranked| stream_name(&ranked.place.1)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0).max(6);
    let mut line = Vec::with_capacity(256);
    cell_left(&mut line, b"STREAM", width);
    row(&mut line, ["LAYER", "PACKETS", "FROM", "TO", "PSN", "PROFILE", "OPCODES"]);
    out.write_all(&line)?;
    let questions = Questions::of(found);
    for (ranked, name) in ranked.iter().zip(&names) {
        let Ranked { place, stream, verdict } = *ranked;
        line.clear();
        cell_left(&mut line, name.as_bytes(), width);
        stream_cells(&mut line, ranked, found.start_ns);
        for reason in stream.reasons() {
            writeln!(line, "    does not fit: {reason}")?;
        }
        for question in questions.of_stream(place, stream) {
            writeln!(line, "    in question: {question}")?;
        }
        if let Some(numbers) = stream.numbers()
            && !numbers.gaps().is_in_order()
        {
            let (first, last) = (numbers.first.get(), numbers.last.get());
            writeln!(line, "    PSN {first} first, {last} last: {}", numbers.gaps().words())?;
        }
        if verdict == Verdict::NothingAgainst && questions.answered_elsewhere(place) {
            line.extend_from_slice(
                b"    READ or ATOMIC responses come back between these hosts, to no more queue pairs \
                  than streams asked for them\n",
            );
        }
        out.write_all(&line)?;
    }
    if found.start_ns.is_some() {
        writeln!(out, "FROM and TO are seconds after the earliest packet.")?;
    }
    Ok(())
}

fn stream_cells(line: &mut Vec<u8>, ranked: &Ranked<'_>, start_ns: Option<u64>) {
    let Ranked { place: (layer, _), stream, verdict } = *ranked;
    let (from, to) = stream.times_ns.unzip();
    let seconds = |time_ns: Option<u64>| match (time_ns, start_ns) {
        (Some(time), Some(start)) => {
            let ms = time.saturating_sub(start) / 1_000_000;
            format!("{}.{:03}", ms / 1000, ms % 1000)
        }
        _ => "unknown".into(),
    };
    let psn = match stream.numbers() {
        Some(numbers) if numbers.gaps().is_in_order() => "in order",
        Some(_) => "see below",
        None => "-",
    };
    let profile = match verdict {
        Verdict::DoesNotFit => "does not fit",
        Verdict::InQuestion => "in question",
        Verdict::NothingAgainst => "nothing against it",
    };
    let (packets, mut opcodes) = (stream.packets.to_string(), stream.requests_text());
    let responses = stream.responses_text();
    if !responses.is_empty() {
        opcodes.push_str(" (and responses: ");
        opcodes.push_str(&responses);
        opcodes.push(')');
    }
    row(line, [layer.name(), &packets, &seconds(from), &seconds(to), psn, profile, &opcodes]);
}

/// The columns behind the stream's name.
fn row(line: &mut Vec<u8>, [layer, packets, from, to, psn, profile, opcodes]: [&str; 7]) {
    line.extend_from_slice(b"  ");
    cell_left(line, layer.as_bytes(), 6);
    for (text, width) in [(packets, 10), (from, 10), (to, 10)] {
        cell(line, text.as_bytes(), width);
    }
    for (text, width) in [(psn, 9), (profile, 18), (opcodes, 0)] {
        line.extend_from_slice(b"  ");
        cell_left(line, text.as_bytes(), width);
    }
    line.push(b'\n');
}

fn pfc(out: &mut impl Write, found: &Found) -> io::Result<()> {
    for (place, frames) in found.pfc.places() {
        let inside = match place.layer {
            Layer::Outer => String::new(),
            layer => format!(" inside {}", layer.name()),
        };
        let direction = match (place.sent, place.layer) {
            (true, Layer::Outer) if found.live => " that this host sent",
            (true, Layer::Outer) => " that [was|were] sent, by the capture's word",
            (true, _) => " that the mirrored port sent",
            (false, Layer::Outer) if found.directions_told => " that came in",
            (false, _) => "",
        };
        writeln!(
            out,
            "\n{}, by priority (one frame can count under several):",
            counted(frames.frames, &format!("PFC frame[|s]{inside}{direction}"))
        )?;
        for (priority, count) in frames.by_priority.iter().enumerate().filter(|(_, n)| **n > 0) {
            let mut sources: Vec<_> = found.pfc.sources(place, priority).collect();
            sources.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
            let shown: Vec<_> = sources.iter().take(SOURCES_SHOWN).map(|(m, _)| &**m).collect();
            let shown = shown.join(", ");
            let more = match sources.len().saturating_sub(SOURCES_SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            writeln!(out, "{count:>12} priority {priority}, from {shown}{more}")?;
        }
    }
    let untold = "PFC frame[|s] of senders beyond those that are told apart";
    lines(out, &[(found.pfc.sources_not_told, untold)])
}

fn carriers(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let ranked = found.carriers.ranked();
    if ranked.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nMirror sessions and tunnels, with their packets:")?;
    for ((addresses, kind, session), carrier) in ranked.iter().take(CARRIERS_SHOWN) {
        let [from, to] =
            [&addresses.source, &addresses.destination].map(|a| shown(addresses.family, a));
        let (kind, session) = (kind.name(), session_text(*kind, *session));
        let (packets, roce) = (carrier.packets, carrier.roce);
        write!(out, "{packets:>12} {kind}{session} from {from} to {to}: {roce} RoCEv2")?;
        match (carrier.numbered, carrier.missing, carrier.behind) {
            _ if carrier.restarts > 0 => {
                let restarts = counted(carrier.restarts, "time[|s]");
                writeln!(out, "; numbered, {restarts} anew: what is missing is unknown")?;
            }
            (0, ..) => writeln!(out, "; not numbered, so what did not come here is unknown")?,
            (_, 0, 0) => writeln!(out, "; numbered, no number missing in between")?,
            (_, missing, 0) => {
                writeln!(out, "; numbered, {} missing", counted(missing, "number[|s]"))?;
            }
            (_, missing, behind) => {
                let missing = counted(missing, "number[|s]");
                writeln!(out, "; numbered, {missing} passed over, {behind} came behind")?;
            }
        }
    }
    if let Some(more) = ranked.len().checked_sub(CARRIERS_SHOWN + 1) {
        let more = u64::try_from(more).unwrap_or(u64::MAX).saturating_add(1);
        lines(out, &[(more, "more session[|s] or tunnel[|s]")])?;
    }
    Ok(())
}

fn session_text(kind: MirrorKind, session: u32) -> String {
    match kind {
        MirrorKind::ErspanI => String::new(),
        MirrorKind::ErspanII | MirrorKind::ErspanIII => format!(" session {session}"),
        MirrorKind::Gre if session == 0 => String::new(),
        MirrorKind::Gre => format!(" key {session:#010x}"),
        MirrorKind::Vxlan | MirrorKind::Geneve => format!(" segment {session}"),
    }
}

fn summary(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let tally = &found.tally;
    let deeper: u64 = found.deeper.values().sum();
    let roce = tally.roce().saturating_add(deeper);
    writeln!(out, "\n{}: {roce} RoCEv2", counted(tally.frames, "frame[|s]"))?;
    let to_gsi = format!(
        "UD packet[|s], {} of them to QP 1, where connections are managed: no part of the profile",
        found.gsi
    );
    let is_response = |(opcode, _): &(Opcode, u64)| opcode.is_response();
    let responses = opcodes_text(found.opcodes().filter(is_response));
    let responses = format!("response[|s] and acknowledgement[|s]: {responses}");
    let seen = [
        (tally.requests, "SEND and WRITE request[|s]"),
        (tally.violations, "request[|s] outside the profile"),
        (tally.responses, &responses),
        (tally.cnps, "congestion notification[|s] (CNP)"),
        (found.transport(Transport::Uc), "UC packet[|s]: no part of the profile"),
        (found.transport(Transport::Rd), "RD packet[|s]: no part of the profile"),
        (found.transport(Transport::Ud), &to_gsi),
        (found.transport(Transport::Xrc), "XRC packet[|s]: no part of the profile"),
        (
            found.transport(Transport::Manufacturer)
                + found.transport(Transport::Cnp).saturating_sub(tally.cnps),
            "packet[|s] with a reserved or a manufacturer's opcode: no part of the profile",
        ),
        (deeper, "RoCEv2 packet[|s] inside more than one encapsulation"),
        (found.not_followed, "packet[|s] of streams beyond those that are told apart: in no line"),
    ];
    lines(out, &seen)?;
    shortfalls(out, tally)?;
    lines(out, &[(tally.without_time, "packet[|s] without a time")])?;
    lines(out, &[(found.carriers.not_followed, "packet[|s] of mirror sessions beyond the limit")])?;
    other_frames(out, tally)
}

/// What follows from it, and what does not.
fn advice(out: &mut impl Write, found: &Found) -> io::Result<()> {
    writeln!(out)?;
    layers(out, found)?;
    if found.tally.capture_drops > 0 || found.drops_reset {
        let who = if found.live { "The kernel says" } else { "The captures say" };
        writeln!(
            out,
            "{who} that packets were dropped: what is missing here may have been there."
        )?;
    } else if found.drops_unread {
        writeln!(
            out,
            "Not all of the time was observed, or nothing says so: what is missing here may have \
             been there."
        )?;
    } else if found.carriers.missing() > 0 {
        writeln!(
            out,
            "The mirror numbered packets that are not here: what is missing here may have been \
             there."
        )?;
    } else if !found.drops_told {
        writeln!(out, "Nothing in the captures says whether packets were dropped.")?;
    }
    if found.tally.pfc == 0 {
        let which = if found.tally.pfc_outbound > 0 { " that came in" } else { "" };
        let of = |reason: NotRoce| found.tally.not_roce[reason.index()];
        let unknown = of(NotRoce::MacControlCut) + of(NotRoce::PfcNoDestination);
        if unknown > 0 {
            let frames = counted(unknown, "frame[|s] of MAC control");
            writeln!(
                out,
                "Whether PFC frames{which} are here is unknown: see the {frames} above."
            )?;
        } else {
            writeln!(
                out,
                "No PFC frame{which} was seen: most NICs consume them before a capture on their \
                 host."
            )?;
        }
    }
    let ranked = found.ranked();
    let any = |verdict| ranked.iter().any(|ranked| ranked.verdict == verdict);
    if any(Verdict::InQuestion) {
        writeln!(
            out,
            "\"in question\" is about the connection: its SENDs and WRITEs fit, and the profile \
             wants a connection\nthat carries nothing else."
        )?;
    }
    if any(Verdict::NothingAgainst) {
        writeln!(
            out,
            "\"nothing against it\" is about these packets only. That a stream carries nothing but \
             SEND and\nWRITE, ever, no capture shows: you attest it in the configuration \
             (--write-config FILE)."
        )?;
    }
    Ok(())
}

/// Where RoCEv2 stands, where that is not simply in the frames.
fn layers(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let layers = found.layers();
    let kinds = |layer: Layer| {
        let at = |kind: &&Option<MirrorKind>| kind.is_some_and(|kind| kind.layer() == layer);
        let names = found.carried.keys().filter(at).flatten().map(|kind| kind.name());
        names.collect::<Vec<_>>().join(", ")
    };
    let mut all = layers.iter();
    match (all.next(), all.next()) {
        (None, _) if found.deeper.is_empty() => return nothing_seen(out),
        (None, _) | (Some((Layer::Outer, _)), None) => {}
        (Some((layer, _)), None) => {
            let (kinds, how) = (kinds(*layer), how_to_meter(found, *layer));
            writeln!(out, "RoCEv2 stands only inside {kinds}. To meter it: {how}")?;
        }
        _ => {
            writeln!(out, "RoCEv2 stands at several layers, and one run meters one of them:")?;
            for (layer, count) in &layers {
                let place = match layer {
                    Layer::Outer => "in the frames themselves".into(),
                    layer => format!("inside {}", kinds(*layer)),
                };
                let how = how_to_meter(found, *layer);
                lines(out, &[(*count, &format!("packet[|s] {place}: {how}"))])?;
            }
        }
    }
    for (around, count) in &found.deeper {
        let around: Vec<_> = around.iter().rev().map(|kind| kind.name()).collect();
        let packets = counted(*count, "RoCEv2 packet[ stands|s stand]");
        let around = around.join(" inside ");
        writeln!(out, "{packets} inside {around}: no layer shows what is that deep.")?;
    }
    Ok(())
}

/// What shows a layer's streams.
fn how_to_meter(found: &Found, layer: Layer) -> String {
    let name = layer.name();
    if found.live {
        format!("observation.layer = \"{name}\" in the agent's configuration")
    } else {
        format!("rocescope meter --layer {name} CAPTURE...")
    }
}
