//! How much of a core queue telemetry takes: lines of events read, measured and written as rows.
//!
//! ```text
//! cargo run --release --package rocescope --example queue_rate -- [EVENTS]
//! ```
//!
//! A source of 1,000 queues tells 100,000 events a second of its own time, and an interval is
//! 100 ms, so that there is a row for each ten events. Beside it in the same minute, in
//! alternation, the least that any reader of these lines has to do: finding out that each is JSON.
//! What is printed is the median of the rounds.

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use observe::queue::EpochId;
use observe::queue::meter::Settings;
use rocescope::queue::measure::measure;
use serde::de::IgnoredAny;

const QUEUES: u64 = 1000;
const EVENTS_PER_SECOND: u64 = 100_000;
const ROUNDS: usize = 5;

fn main() {
    let events = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let text = source(events);
    let mut times = [Vec::new(), Vec::new()];
    let mut rows = 0;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for line in text.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
            let json: IgnoredAny = serde_json::from_slice(line).expect("JSON");
            black_box(json);
        }
        times[0].push(began.elapsed());

        let mut made = 0_u64;
        let fresh = || {
            made += 1;
            let mut octets = [0; 16];
            octets[..8].copy_from_slice(&made.to_be_bytes());
            EpochId::random(octets)
        };
        let began = Instant::now();
        let counts = measure(&*text, Settings::default(), fresh, &mut std::io::sink());
        times[1].push(began.elapsed());
        rows = counts.expect("events").rows;
    }
    let [floor, measured] = times.map(median);
    let lines = u32::try_from(events + 3 * QUEUES).expect("fewer");
    println!("{lines} events, {rows} rows");
    for (what, time) in [("only JSON", floor), ("measured", measured)] {
        let each = time / lines;
        let share = each.as_secs_f64() * 100_000.0 * 100.0;
        println!("{what:10} {each:>8.0?} an event, {share:5.1} % of a core at 100,000 a second");
    }
    println!("ratio      {:.2}", measured.as_secs_f64() / floor.as_secs_f64());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Each queue in turn: traffic comes, its gate closes, opens, and the traffic goes.
fn source(events: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let mut seq = 0;
    let mut line = |t: u64, queue: u64, rest: &str| {
        seq += 1;
        writeln!(
            text,
            r#"{{"seq":{seq},"t":{t},"interface":"Ethernet{}","queue":"{}",{rest}}}"#,
            queue / 8,
            queue % 8
        )
        .expect("memory");
    };
    for queue in 0..QUEUES {
        line(0, queue, r#""event":"map","priorities":[3],"method":"head of line","maxError":255"#);
        line(0, queue, r#""event":"backlog","present":false"#);
        line(0, queue, r#""event":"gate","priority":3,"closed":false"#);
    }
    for n in 0..events {
        let t = n * (1_000_000_000 / EVENTS_PER_SECOND) + 1;
        let rest = match n / QUEUES % 4 {
            0 => r#""event":"backlog","present":true"#,
            1 => r#""event":"gate","priority":3,"closed":true"#,
            2 => r#""event":"gate","priority":3,"closed":false"#,
            _ => r#""event":"backlog","present":false"#,
        };
        line(t, n % QUEUES, rest);
    }
    text
}
