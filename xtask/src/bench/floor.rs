//! `cargo xtask floor`: the least that a meter of this capture must spend.
//!
//! It maps the file, steps over the records, reads both addresses, the queue pair and the PSN
//! where they always stand in a generated capture, and folds them into a sum that is printed, so
//! that no compiler may leave the reading out. It checks nothing but that the octets are there,
//! and it would be wrong on any other capture.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;

use anyhow::Context as _;

/// Prints the number of records and the sum.
pub fn run(path: &Path) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    let map = map(&file).with_context(name)?;
    let (records, sum) = fold(&map);
    println!("{records} records, sum {:016x}", black_box(sum));
    Ok(())
}

#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the mapping is read only, and the file is one that this tool wrote into its own
    // directory and that nothing changes while it is measured. Were it cut meanwhile, the process
    // would end by a signal, which a benchmark may.
    unsafe { memmap2::Mmap::map(file) }
}

fn fold(capture: &[u8]) -> (u64, u64) {
    let (mut records, mut sum) = (0_u64, 0_u64);
    let mut rest = capture.get(24..).unwrap_or_default();
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let Some((frame, after)) = after.split_at_checked(length as usize) else {
            break;
        };
        // Addresses at 26, queue pair at 46, PSN at 50: Ethernet 14, IPv4 20, UDP 8, BTH.
        if let Some(head) = frame.first_chunk::<54>() {
            let word = |at: usize| {
                u64::from(u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]))
            };
            let addresses = word(26) << 32 | word(30);
            let transport = word(46) << 32 | word(50);
            sum = (sum.rotate_left(7) ^ addresses).wrapping_add(transport);
        }
        records += 1;
        rest = after;
    }
    (records, sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::generate::{Options, generate};

    fn capture() -> Vec<u8> {
        let options = Options { packets: 500, streams: 5, out: "".into(), seed: 1, window: 64 };
        let mut out = Vec::new();
        generate(&options, &mut out).unwrap();
        out
    }

    #[test]
    fn every_record_is_stepped_over_and_every_field_is_in_the_sum() {
        let mut capture = capture();
        let (records, sum) = fold(&capture);
        assert_eq!(records, 500);
        for (field, at) in [("source", 26), ("destination", 30), ("queue pair", 47), ("psn", 51)] {
            capture[24 + 16 + at] ^= 1;
            assert_ne!(fold(&capture).1, sum, "{field}");
            capture[24 + 16 + at] ^= 1;
        }
    }

    #[test]
    fn a_capture_cut_anywhere_ends_before_the_cut() {
        let capture = capture();
        for length in 0..400 {
            assert!(fold(&capture[..length]).0 <= 4);
        }
    }
}
