//! The engine against the slow, literal model of Table 1.

use crate::model::{by_engine, by_model};
use proptest::prelude::*;

const M: u32 = 1 << 24;
const HALF: u32 = M / 2;

/// Every sequence of `length` steps, each an offset from the PSN before.
fn every_sequence(window: u32, start: u32, offsets: &[u32], length: u32) {
    let count = offsets.len().pow(length);
    let mut psns = Vec::new();
    for number in 0..count {
        psns.clear();
        psns.push(start);
        let mut rest = number;
        for _ in 0..length {
            let offset = offsets[rest % offsets.len()];
            rest /= offsets.len();
            psns.push((psns[psns.len() - 1] + offset) % M);
        }
        assert_eq!(by_engine(window, &psns), by_model(window, &psns), "W {window}, {psns:?}");
    }
}

// SEQ-5.1, SEQ-5.2, SEQ-5.3, SEQ-5.6, SEQ-5.7
#[test]
fn every_short_sequence_around_the_edges_is_as_the_table_says() {
    for window in 1..=4 {
        let w = window;
        let mut offsets = vec![0, 1, 2, w - 1, w, w + 1, M - 1, M - 2, M - w, M - w - 1];
        offsets.extend([HALF - 1, HALF, HALF + 1]);
        offsets.sort_unstable();
        offsets.dedup();
        for start in [100, M - 2, HALF - 1] {
            every_sequence(window, start, &offsets, 4);
        }
        // Longer ones, without the half space.
        every_sequence(window, M - 3, &[1, 2, w, w + 1, M - 1, M - w], 6);
    }
}

/// Windows at and around the sizes of words and of the ring.
fn windows() -> impl Strategy<Value = u32> {
    prop_oneof![
        1_u32..=8,
        prop::sample::select(vec![63, 64, 65, 127, 128, 129, 1000, 1023, 1024, 1025]),
        prop::sample::select(vec![4095, 4096]),
    ]
}

/// Steps that a stream may take: mostly forward, sometimes by about a window, rarely far.
fn step(window: u32) -> impl Strategy<Value = u32> {
    let near = window.min(2000);
    prop_oneof![
        8 => Just(1_u32),
        3 => 0..=near + 1,
        3 => (0..=near + 1).prop_map(|d| (M - d) % M),
        1 => (window - 1)..=window + 1,
        1 => (window - 1..=window + 1).prop_map(|d| (M - d) % M),
        1 => HALF - 2..=HALF + 2,
        1 => 0..M,
    ]
}

fn sequences() -> impl Strategy<Value = (u32, Vec<u32>)> {
    windows().prop_flat_map(|window| {
        let steps = prop::collection::vec(step(window), 1..300);
        (Just(window), 0..M, steps).prop_map(|(window, start, steps)| {
            let mut psns = vec![start];
            for step in steps {
                psns.push((psns[psns.len() - 1] + step) % M);
            }
            (window, psns)
        })
    })
}

// SEQ-5.1
#[test]
fn the_largest_window_is_followed_as_the_table_says() {
    let w = 1 << 22;
    for psns in [
        vec![0, w, 1, 0, w + 1, 1, 2, 2 * w + 1],
        vec![M - 1, w - 1, M - 1, 0, w + w - 1, w],
        vec![5, 4 + w, 6 + w + w, 5],
    ] {
        assert_eq!(by_engine(w, &psns), by_model(w, &psns), "{psns:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..Default::default() })]

    // SEQ-5.3, SEQ-5.4, SEQ-5.6, SEQ-5.7
    #[test]
    fn any_sequence_is_as_the_table_says((window, psns) in sequences()) {
        prop_assert_eq!(by_engine(window, &psns), by_model(window, &psns));
    }
}
