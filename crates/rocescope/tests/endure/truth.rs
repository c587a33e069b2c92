//! What a collector may have of a capture at most: the requests of its streams, read here by other
//! code than the program's, and counted by the slow model.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::model::by_model;
use crate::site::Seen;

/// Each stream's requests by destination queue pair: milliseconds and PSN.
pub struct Capture {
    streams: BTreeMap<u32, Vec<(u64, u32)>>,
}

pub fn path(name: &str) -> PathBuf {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures/softroce");
    PathBuf::from(captures).join(name)
}

impl Capture {
    /// Reads a pcap of IPv4 over Ethernet without tags.
    pub fn read(name: &str) -> Self {
        let octets = fs::read(path(name)).expect("a capture");
        let word = |at: usize| u32::from_le_bytes(octets[at..at + 4].try_into().expect("four"));
        let units_per_ms = match word(0) {
            0xa1b2_c3d4 => 1_000,
            0xa1b2_3c4d => 1_000_000,
            other => panic!("{other:#x} is no pcap of this order"),
        };
        let (mut at, mut streams) = (24, BTreeMap::<u32, Vec<_>>::new());
        while at < octets.len() {
            let ms = u64::from(word(at)) * 1_000 + u64::from(word(at + 4)) / units_per_ms;
            let len = usize::try_from(word(at + 8)).expect("small");
            let frame = &octets[at + 16..at + 16 + len];
            at += 16 + len;
            let udp = frame[12..14] == [8, 0] && frame[14] == 0x45 && frame[23] == 17;
            // Destination port 4791, then the BTH.
            if !udp || frame[36..38] != [0x12, 0xb7] || frame[42] > 0x0b {
                continue;
            }
            let three =
                |at: usize| u32::from_be_bytes([0, frame[at], frame[at + 1], frame[at + 2]]);
            streams.entry(three(47)).or_default().push((ms, three(51)));
        }
        Self { streams }
    }

    /// Streams with a request.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether these numbers are those of an epoch that began somewhere in the capture and has seen
    /// so many requests, and, where it is complete, all there were.
    pub fn supports(&self, seen: &Seen) -> bool {
        let Some(stream) = self.streams.get(&seen.qp) else { return false };
        let [skipped, filled, expired, abandoned, pending, repeated, requests, late] = seen.counts;
        let requests = usize::try_from(requests).expect("small");
        (0..stream.len()).filter(|start| stream[*start].0 == seen.start_ms).any(|start| {
            let Some(part) = stream.get(start..start + requests) else { return false };
            let psns: Vec<_> = part.iter().map(|(_, psn)| *psn).collect();
            let [(false, c)] = by_model(seen.window, &psns)[..] else { return false };
            let through = start + requests == stream.len();
            part.last().is_some_and(|(ms, _)| *ms == seen.end_ms)
                && (c.skipped, c.filled, c.expired) == (skipped, filled, expired)
                && c.abandoned == abandoned + pending
                && (c.repeated, c.unclassified_late) == (repeated, late)
                && (through || seen.outcome != "complete")
        })
    }
}
