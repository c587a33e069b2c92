//! What is served of queues that a random source tells of, mapped and lost and started again as it
//! comes, is valid in every state that is reached, by libyang and in both encodings.

use std::collections::BTreeMap;
use std::sync::Arc;

use manage::json;
use manage::operational;
use manage::read::{Encoding, What};
use manage::xml;
use observe::pfc::Priority;
use observe::queue::event::{Event, Mapping};
use observe::queue::meter::{Meter, Settings, Subject, Told};
use observe::queue::row::Row;
use observe::queue::{EpochId, Place, Priorities};

use super::scene::{interface, schema};

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        // Xorshift, with the multiplication of xorshift*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % most
    }

    fn priority(&mut self) -> Priority {
        Priority::ALL[usize::try_from(self.below(8)).expect("small")]
    }

    fn event(&mut self) -> Event {
        match self.below(40) {
            0 => {
                let first = self.priority();
                let others = (0..self.below(4)).map(|_| self.priority()).collect::<Vec<_>>();
                let priorities = Priorities::new([first].into_iter().chain(others));
                let method: Box<str> =
                    ["head", "round robin, <&>\"'"][usize::from(self.below(2) == 1)].into();
                let max_error_ns = [0, 7, 900_000][usize::try_from(self.below(3)).expect("small")];
                Event::Map(Mapping { priorities: priorities.expect("some"), method, max_error_ns })
            }
            1 => Event::Lost,
            2 => Event::Restart,
            3 => Event::Sample { backlog: self.below(2) == 1, gated: self.below(2) == 1 },
            4..=12 => Event::Candidate { priority: self.priority() },
            13..=26 => Event::Gate { priority: self.priority(), closed: self.below(2) == 1 },
            _ => Event::Backlog { present: self.below(2) == 1 },
        }
    }
}

const QUEUES: [(&str, &str); 4] =
    [("Ethernet1/1", "3"), ("Ethernet1/1", "a,b\"'<&%2F\u{e9}"), ("e2", "q"), ("\u{1f600}", "x y")];

// QUE-yang.1, QUE-pub.1
#[test]
fn every_state_that_a_source_brings_about_is_valid() {
    let interfaces = ["Ethernet1/1", "e2", "\u{1f600}"].map(interface);
    let (mut states, mut known, mut unknown) = (0, 0, 0);
    for seed in 1..=40 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut epochs = 0_u128;
        let fresh = move || {
            epochs += 1;
            EpochId::random((epochs << 32 | u128::from(seed)).to_be_bytes())
        };
        let mut meter =
            Meter::new(Settings { interval_ns: 1_000_000, ..Settings::default() }, fresh);
        let mut latest: BTreeMap<Arc<Place>, Arc<Row>> = BTreeMap::new();
        let (mut seq, mut t) = (0, random.below(1 << 40));
        for _ in 0..120 {
            seq += 1 + u64::from(random.below(20) == 0);
            t += match random.below(40) {
                0 => 90_000_000_000_000,
                1..=9 => 0,
                10..=20 => random.below(10_000_000),
                _ => random.below(400_000),
            };
            let (interface, queue) = QUEUES[usize::try_from(random.below(4)).expect("small")];
            let subject = Subject::Queue { interface, queue };
            let told = Told { seq, t, subject, event: random.event() };
            // Refused where it makes no sense, which is as it should be, and is no hole.
            if meter.told(told).is_err() {
                seq -= 1;
            }
            if random.below(60) == 0 {
                _ = meter.told(Told {
                    seq: seq + 1,
                    t,
                    subject: Subject::All,
                    event: Event::Restart,
                });
                seq += 1;
            }
            let rows: Vec<Arc<Row>> = std::iter::from_fn(|| meter.row()).map(Arc::new).collect();
            if rows.is_empty() {
                continue;
            }
            for row in rows {
                match row.measurement {
                    observe::queue::row::Measurement::Known(_) => known += 1,
                    observe::queue::row::Measurement::Unknown(_) => unknown += 1,
                }
                latest.insert(row.place.clone(), row);
            }
            let rows: Vec<Arc<Row>> = latest.values().cloned().collect();
            let tree = [operational::interfaces(schema(), &interfaces, &rows).expect("made")];
            let of_json = json::object(&tree);
            let mut of_xml = String::new();
            xml::write(&mut of_xml, schema(), &tree, None);
            let [of_json, of_xml] =
                [(Encoding::Json, of_json), (Encoding::Xml, of_xml)].map(|(encoding, text)| {
                    let read = schema().read(encoding, What::Datastore, &text);
                    json::object(
                        &read.unwrap_or_else(|error| panic!("seed {seed}: {error}: {text}")),
                    )
                });
            assert_eq!(of_json, of_xml, "seed {seed}");
            states += 1;
        }
    }
    assert!(states > 500 && known > 100 && unknown > 500, "{states} {known} {unknown}");
}
