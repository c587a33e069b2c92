//! What was found as JSON Lines: `stream`, `pfc`, `carrier`, and at the end one `summary`.

use std::io::{self, Write};

use wire::frame::{Layer, MirrorKind, Opcode, Transport};

use super::found::{Found, Ranked};
use super::question::{Questions, Verdict};
use super::stream::Numbers;
use crate::config::shown;
use crate::meter::json::{key, number};

/// Writes everything. `whole` says whether the captures were read to their end.
///
/// # Errors
/// As the writer.
pub fn write(out: &mut impl Write, found: &Found, whole: bool) -> io::Result<()> {
    let mut line = Vec::with_capacity(1024);
    let questions = Questions::of(found);
    for ranked in found.ranked() {
        line.clear();
        stream(&mut line, &ranked, &questions);
        out.write_all(&line)?;
    }
    pfc(out, found)?;
    carriers(out, found)?;
    line.clear();
    summary(&mut line, found, whole);
    out.write_all(&line)
}

fn stream(line: &mut Vec<u8>, ranked: &Ranked<'_>, questions: &Questions) {
    let Ranked { place, stream, verdict } = *ranked;
    let (layer, stream_key) = place;
    line.extend_from_slice(b"{\"record\":\"stream\"");
    key(line, stream_key);
    text(line, "layer", layer.name());
    opcodes(line, stream.opcodes().iter().copied());
    member(line, "fits");
    // Whether what is in question fits is unknown.
    line.extend_from_slice(match verdict {
        Verdict::NothingAgainst => b"true",
        Verdict::InQuestion => b"null",
        Verdict::DoesNotFit => b"false",
    });
    member(line, "reasons");
    list(line, stream.reasons());
    member(line, "questions");
    list(line, questions.of_stream(place, stream).into_iter());
    number(line, "packets", stream.packets);
    number(line, "requests", stream.requests);
    let (first, last) = stream.times_ns.unzip();
    optional(line, "firstMilliseconds", first.map(|ns| ns / 1_000_000));
    optional(line, "lastMilliseconds", last.map(|ns| ns / 1_000_000));
    if let Some(psns) = stream.numbers() {
        numbers(line, psns);
    }
    line.extend_from_slice(b"}\n");
}

fn numbers(line: &mut Vec<u8>, numbers: &Numbers) {
    let gaps = numbers.gaps();
    number(line, "firstPsn", u64::from(numbers.first.get()));
    number(line, "lastPsn", u64::from(numbers.last.get()));
    number(line, "skipped", gaps.skipped);
    number(line, "filled", gaps.filled);
    number(line, "repeated", gaps.repeated);
    number(line, "unclassifiedLate", gaps.late);
    number(line, "jumps", gaps.jumps);
}

/// A line for each priority for which there were frames: none seen is not none sent.
// PFC-op.1
fn pfc(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let mut line = Vec::new();
    for (place, frames) in found.pfc.places() {
        for (priority, count) in (0_u64..).zip(frames.by_priority) {
            if count == 0 {
                continue;
            }
            line.clear();
            line.extend_from_slice(b"{\"record\":\"pfc\"");
            number(&mut line, "pfcPriority", priority);
            number(&mut line, "frames", count);
            text(&mut line, "layer", place.layer.name());
            member(&mut line, "sent");
            // Where nothing says that a frame was sent, it may have been.
            line.extend_from_slice(match place.sent {
                true => b"true",
                false if found.directions_told && place.layer == Layer::Outer => b"false",
                false => b"null",
            });
            member(&mut line, "sources");
            let at = usize::try_from(priority).unwrap_or(0);
            object(&mut line, found.pfc.sources(place, at));
            line.extend_from_slice(b"}\n");
            out.write_all(&line)?;
        }
    }
    Ok(())
}

fn carriers(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let mut line = Vec::new();
    for ((addresses, kind, session), carrier) in found.carriers.ranked() {
        line.clear();
        line.extend_from_slice(b"{\"record\":\"carrier\"");
        text(&mut line, "kind", kind.name());
        text(&mut line, "layer", kind.layer().name());
        number(&mut line, "session", u64::from(*session));
        let [source, destination] =
            [&addresses.source, &addresses.destination].map(|a| shown(addresses.family, a));
        text(&mut line, "source", &source.to_string());
        text(&mut line, "destination", &destination.to_string());
        number(&mut line, "packets", carrier.packets);
        number(&mut line, "rocePackets", carrier.roce);
        number(&mut line, "numberedPackets", carrier.numbered);
        // Where nothing is numbered, what is missing is unknown.
        let numbered = |count| (carrier.numbered > 0).then_some(count);
        let missing = if carrier.restarts == 0 { numbered(carrier.missing) } else { None };
        optional(&mut line, "missingNumbers", missing);
        optional(&mut line, "numberRestarts", numbered(carrier.restarts));
        optional(&mut line, "behindPackets", numbered(carrier.behind));
        line.extend_from_slice(b"}\n");
        out.write_all(&line)?;
    }
    Ok(())
}

fn summary(line: &mut Vec<u8>, found: &Found, whole: bool) {
    let tally = &found.tally;
    let ranked = found.ranked();
    let of = |verdict| count(ranked.iter().filter(|ranked| ranked.verdict == verdict).count());
    line.extend_from_slice(b"{\"record\":\"summary\"");
    member(line, "readToEnd");
    line.extend_from_slice(if whole { b"true" } else { b"false" });
    number(line, "frames", tally.frames);
    number(line, "rocePackets", tally.roce());
    number(line, "streams", count(ranked.len()));
    number(line, "streamsFitting", of(Verdict::NothingAgainst));
    number(line, "streamsInQuestion", of(Verdict::InQuestion));
    number(line, "packetsOfFurtherStreams", found.not_followed);
    number(line, "requests", tally.requests);
    number(line, "violations", tally.violations);
    number(line, "responses", tally.responses);
    number(line, "cnps", tally.cnps);
    for (name, transport) in [
        ("ucPackets", Transport::Uc),
        ("rdPackets", Transport::Rd),
        ("udPackets", Transport::Ud),
        ("xrcPackets", Transport::Xrc),
    ] {
        number(line, name, found.transport(transport));
    }
    number(line, "gsiPackets", found.gsi);
    opcodes(line, found.opcodes());
    number(line, "pfcFrames", tally.pfc);
    number(line, "pfcFramesSent", tally.pfc_outbound);
    number(line, "fragments", tally.fragments);
    number(line, "truncated", tally.truncated);
    number(line, "noRoomForBth", tally.no_room);
    number(line, "lengthLies", tally.length_lies);
    // A capture that tells of no drops may have some.
    optional(line, "captureDrops", found.dropped_packets());
    member(line, "layers");
    let layers = found.layers();
    object(line, layers.iter().map(|(layer, n)| (layer.name(), *n)));
    member(line, "deeper");
    let path = |around: &Vec<MirrorKind>| {
        around.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" > ")
    };
    object(line, found.deeper.iter().map(|(around, n)| (path(around), *n)));
    line.extend_from_slice(b"}\n");
}

fn opcodes(line: &mut Vec<u8>, opcodes: impl Iterator<Item = (Opcode, u64)>) {
    member(line, "opcodes");
    object(line, opcodes.map(|(opcode, count)| (opcode.to_string(), count)));
}

/// An object of counts.
fn object(line: &mut Vec<u8>, members: impl Iterator<Item = (impl AsRef<str>, u64)>) {
    line.push(b'{');
    let start = line.len();
    for (name, count) in members {
        number(line, name.as_ref(), count);
    }
    // Members come with a comma in front.
    if line.get(start) == Some(&b',') {
        line.remove(start);
    }
    line.push(b'}');
}

fn list(line: &mut Vec<u8>, texts: impl Iterator<Item = String>) {
    line.push(b'[');
    for (n, text) in texts.enumerate() {
        if n > 0 {
            line.push(b',');
        }
        string(line, &text);
    }
    line.push(b']');
}

fn member(line: &mut Vec<u8>, name: &str) {
    line.push(b',');
    string(line, name);
    line.push(b':');
}

fn text(line: &mut Vec<u8>, name: &str, value: &str) {
    member(line, name);
    string(line, value);
}

/// Unknown is null.
fn optional(line: &mut Vec<u8>, name: &str, value: Option<u64>) {
    match value {
        Some(value) => number(line, name, value),
        None => {
            member(line, name);
            line.extend_from_slice(b"null");
        }
    }
}

fn string(line: &mut Vec<u8>, text: &str) {
    // Writing text to a Vec cannot fail.
    _ = serde_json::to_writer(line, text);
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
