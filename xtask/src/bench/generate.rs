//! `cargo xtask generate`: a capture of RoCEv2 requests that looks like a fabric's, from a seed.
//!
//! Streams interleave in short bursts. Each sends messages of one or four packets, SEND or WRITE,
//! with the extension headers that belong to them, 1024 octets of payload on the wire and the
//! first 96 octets in the capture. About one packet in a hundred is out of the ordinary: a gap of
//! one to three, most of it arriving afterwards; a packet once more; or a response.
//! What is true of the result is counted by [`super::truth`] and printed as JSON.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::frame::{Kind, Place, RECORD_MAX};
use super::truth::{Sequence, Totals};

/// What to make.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Packets in the capture, responses included.
    #[arg(long)]
    pub packets: u64,
    /// Streams to choose from, 1 to 16 million.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    pub streams: u32,
    /// Where to write the pcap.
    #[arg(long)]
    pub out: PathBuf,
    /// The same seed gives the same octets.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Window of the printed totals, from 64.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(64..=1 << 22))]
    pub window: u32,
}

/// Writes the capture and prints its totals.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let name = options.out.display();
    let file = File::create(&options.out).with_context(|| format!("{name}: cannot be created"))?;
    let out = BufWriter::with_capacity(1 << 20, file);
    let totals = generate(options, out).with_context(|| format!("{name}: cannot be written"))?;
    println!("{}", serde_json::to_string(&totals)?);
    Ok(())
}

/// Writes the capture to anything. Refuses a number of packets that would reach a stream's half
/// serial space, where PSNs are no longer told apart.
pub fn generate(options: &Options, mut out: impl Write) -> anyhow::Result<Totals> {
    if options.packets / u64::from(options.streams) > 1 << 22 {
        bail!("more than {} packets a stream; take more streams", 1 << 22);
    }
    let mut fabric = Fabric::new(options);
    out.write_all(&super::frame::pcap_header())?;
    let mut record = [0; RECORD_MAX];
    for _ in 0..options.packets {
        let length = fabric.packet(&mut record);
        out.write_all(record.get(..length).context("a record longer than its room")?)?;
    }
    out.flush()?;
    Ok(fabric.close())
}

/// splitmix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `below - 1`. The bias is far below what a benchmark notices.
    fn below(&mut self, below: u32) -> u32 {
        let high = (u128::from(self.next()) * u128::from(below)) >> 64;
        u32::try_from(high).unwrap_or(0)
    }
}

#[derive(Default)]
struct Stream {
    /// The next position that was not sent yet.
    next: u32,
    /// Positions passed over that are still to be sent, each with the `next` that releases it.
    held: Vec<(u32, u32)>,
    sequence: Sequence,
}

struct Fabric {
    random: Random,
    window: u32,
    time_ns: u64,
    streams: Vec<Stream>,
    chosen: usize,
    burst: u32,
    totals: Totals,
}

impl Fabric {
    fn new(options: &Options) -> Self {
        Self {
            random: Random(options.seed),
            window: options.window,
            time_ns: 1_800_000_000_000_000_000,
            streams: (0..options.streams).map(|_| Stream::default()).collect(),
            chosen: 0,
            burst: 0,
            totals: Totals::default(),
        }
    }

    /// Writes one record and gives its length.
    fn packet(&mut self, record: &mut [u8; RECORD_MAX]) -> usize {
        self.time_ns += 40 + u64::from(self.random.below(120));
        self.totals.packets += 1;
        if self.burst == 0 {
            let streams = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
            self.chosen = self.random.below(streams) as usize;
            self.burst = 1 + self.random.below(6);
        }
        self.burst -= 1;
        let streams = self.streams.len();
        let stream = &mut self.streams[self.chosen];
        let place = Place::of(self.chosen, streams);
        if stream.next > 0 && self.random.below(100) == 0 {
            self.totals.responses += 1;
            return place.write(Kind::Response, stream.next - 1, self.time_ns, record);
        }
        let position = stream.position(&mut self.random, self.window);
        stream.sequence.observe(position, self.window, &mut self.totals);
        place.write(Kind::Request, position, self.time_ns, record)
    }

    fn close(mut self) -> Totals {
        for stream in self.streams {
            stream.sequence.close(&mut self.totals);
        }
        self.totals
    }
}

impl Stream {
    /// Chooses what the stream sends next.
    fn position(&mut self, random: &mut Random, window: u32) -> u32 {
        if let Some(due) = self.held.iter().position(|(release, _)| *release <= self.next) {
            return self.held.swap_remove(due).1;
        }
        match random.below(1000) {
            0..5 if self.next > 0 => {
                for _ in 0..=random.below(3) {
                    self.hold(random, window);
                }
            }
            5..8 if self.next > 0 => return self.next - 1 - random.below(self.next.min(16)),
            _ => {}
        }
        self.next += 1;
        self.next - 1
    }

    /// Passes over one position: most arrive soon, some behind the window, the rest never.
    fn hold(&mut self, random: &mut Random, window: u32) {
        let delay = match random.below(8) {
            0..6 => 1 + random.below(40),
            6 => window + random.below(64),
            _ => u32::MAX,
        };
        if let Some(release) = self.next.checked_add(delay) {
            self.held.push((release, self.next));
        }
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(packets: u64, streams: u32, seed: u64) -> (Vec<u8>, Totals) {
        let options = Options { packets, streams, out: PathBuf::new(), seed, window: 64 };
        let mut out = Vec::new();
        let totals = generate(&options, &mut out).unwrap();
        (out, totals)
    }

    #[test]
    fn the_same_seed_gives_the_same_octets_and_another_seed_others() {
        assert_eq!(made(2000, 7, 3), made(2000, 7, 3));
        assert_ne!(made(2000, 7, 3).0, made(2000, 7, 4).0);
    }

    #[test]
    fn every_kind_of_step_occurs_and_the_sums_agree() {
        let totals = made(200_000, 10, 1).1;
        assert_eq!(totals.packets, 200_000);
        assert_eq!(totals.streams, 10);
        assert_eq!(totals.requests + totals.responses, totals.packets);
        assert_eq!(totals.skipped, totals.filled + totals.expired + totals.abandoned);
        let each = [totals.responses, totals.filled, totals.expired, totals.abandoned];
        assert!(
            each.iter().chain([&totals.repeated, &totals.late]).all(|sum| *sum > 0),
            "{totals:?}"
        );
    }

    #[test]
    fn the_capture_is_as_long_as_its_records_say() {
        let (octets, _) = made(1000, 3, 1);
        let mut at = 24;
        let mut records = 0;
        while at < octets.len() {
            let length = u32::from_le_bytes(octets[at + 8..at + 12].try_into().unwrap());
            at += 16 + length as usize;
            records += 1;
        }
        assert_eq!((records, at), (1000, octets.len()));
    }

    #[test]
    fn more_packets_than_a_stream_has_numbers_for_are_refused() {
        let options =
            Options { packets: 1 << 24, streams: 1, out: PathBuf::new(), seed: 1, window: 64 };
        assert!(generate(&options, std::io::sink()).is_err());
    }
}
