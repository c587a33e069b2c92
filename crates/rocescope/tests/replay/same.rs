//! Whatever happened in a session, and wherever its segments were cut: replaying it says what a
//! session that was fed with the same reports says.

use std::collections::{BTreeMap, BTreeSet};

use observe::collect::{Limits, Retired, Session};
use observe::report::Report;
use proptest::prelude::*;
use serde_json::Value;
use store::archive::{Archive, ArchiveLimits, Entry};
use store::{Rules, SessionId};

use crate::support::{Scratch, facts, message, replayed, report};

const SESSION: SessionId = SessionId(3);

/// What can happen in a session.
#[derive(Clone, Debug)]
enum Step {
    Message {
        domain: u32,
        template: bool,
        report: Report,
    },
    /// Octets that are one message by their length, and none by what is in them.
    Nonsense {
        domain: u32,
    },
    Advance {
        by_ms: u64,
    },
    Drop {
        domain: u32,
    },
    Admit {
        domain: u32,
    },
    /// Other sessions take the room for epochs, or give it back.
    Bound {
        epochs: u64,
    },
    Expel {
        domain: u32,
    },
    /// The process ends and another one opens the archive. The session's messages stay as they
    /// are: nothing follows.
    Killed,
}

fn reports() -> impl Strategy<Value = Report> {
    (1u64..6, 1u64..5, 1u64..4, prop::bool::weighted(0.2), prop::bool::weighted(0.1)).prop_map(
        |(epoch, id, requests, last, other_key)| {
            let mut report = report(epoch, id, requests + 2 * id, last);
            if other_key {
                report.snapshot.key.qp += 1;
            }
            report
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (1u32..4, prop::bool::weighted(0.7), reports())
            .prop_map(|(domain, template, report)| Step::Message { domain, template, report }),
        1 => (1u32..4).prop_map(|domain| Step::Nonsense { domain }),
        4 => (0u64..80).prop_map(|by_ms| Step::Advance { by_ms }),
        1 => (1u32..4).prop_map(|domain| Step::Drop { domain }),
        1 => (1u32..4).prop_map(|domain| Step::Admit { domain }),
        1 => (1u32..4).prop_map(|domain| Step::Expel { domain }),
        2 => (0u64..7).prop_map(|epochs| Step::Bound { epochs }),
    ];
    let end = prop_oneof![Just(None), Just(Some(Step::Killed))];
    (prop::collection::vec(step, 1..120), end).prop_map(|(mut steps, end)| {
        steps.extend(end);
        steps
    })
}

/// The session itself, without octets: what is published of it.
struct Live {
    session: Session,
    admitted: BTreeSet<u32>,
    /// Domains whose template it has.
    bound: BTreeSet<u32>,
    retired: Vec<Retired>,
}

impl Live {
    fn take(&mut self, step: &Step, now_ms: u64) {
        match step {
            Step::Message { domain, template, report } if self.admitted.contains(domain) => {
                if *template {
                    self.bound.insert(*domain);
                }
                if self.bound.contains(domain) {
                    self.session.receive(*domain, 9, report, now_ms);
                }
            }
            Step::Advance { .. } => {
                let retired = &mut self.retired;
                self.session.retire(now_ms, &mut |epoch| retired.push(epoch));
            }
            Step::Drop { domain } => self.session.dropped(*domain),
            Step::Bound { epochs } => {
                self.session.bound_epochs(usize::try_from(*epochs).expect("few"));
            }
            Step::Admit { domain } => _ = self.admitted.insert(*domain),
            // What was known of its templates need not hold any more when it comes back.
            Step::Expel { domain } => {
                self.admitted.remove(domain);
                self.bound.remove(domain);
            }
            Step::Message { .. } | Step::Nonsense { .. } | Step::Killed => {}
        }
    }

    fn published(mut self) -> BTreeMap<(u64, u64), Published> {
        self.session.end(&mut |epoch| self.retired.push(epoch));
        let published = self.retired.iter().map(|Retired { domain, epoch, outcome }| {
            let words = epoch.qualifications().iter().map(|q| q.word().to_owned()).collect();
            let known = Published {
                outcome: outcome.word().to_owned(),
                qualifications: words,
                reason: epoch.reason(*outcome),
                gaps: epoch.missing,
                report: epoch.latest.report_id,
                requests: epoch.latest.snapshot.counts.requests,
            };
            ((u64::from(*domain), epoch.latest.epoch_id), known)
        });
        published.collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Published {
    outcome: String,
    qualifications: Vec<String>,
    reason: Option<String>,
    gaps: u64,
    report: u64,
    requests: u64,
}

fn published(line: &Value) -> ((u64, u64), Published) {
    let number = |key: &str| line[key].as_u64().unwrap_or_else(|| panic!("{key} in {line}"));
    let words = line["qualifications"].as_array().expect("words").iter();
    let known = Published {
        outcome: line["outcome"].as_str().expect("a word").to_owned(),
        qualifications: words.map(|word| word.as_str().expect("a word").to_owned()).collect(),
        reason: line["reason"].as_str().map(str::to_owned),
        gaps: number("reportGaps"),
        report: number("rdmaSequenceReportId"),
        requests: number("requestPacketTotalCount"),
    };
    assert_eq!(number("session"), SESSION.0);
    ((number("observationDomainId"), number("rdmaSequenceEpochId")), known)
}

fn archive_of(scratch: &Scratch, limits: ArchiveLimits) -> Archive {
    Archive::open(scratch.path(), limits).expect("opens").0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    // SEQ-7.18, SEQ-7.12, SEQ-7.13, SEQ-7.15
    #[test]
    fn a_replayed_session_has_the_outcomes_of_the_live_one(
        steps in steps(),
        segment_octets_max in 100u64..3000,
    ) {
        let scratch = Scratch::new();
        let epochs = Limits {
            domains_max: 2,
            epochs_max: 6,
            inactivity_ms: 100,
            closed_retention_ms: 30,
        };
        let rules = Rules { domains: Some(vec![1, 2]), epochs, ..Rules::default() };
        let facts = facts(rules);
        let limits = ArchiveLimits { segment_octets_max, ..ArchiveLimits::default() };
        let mut archive = archive_of(&scratch, limits);
        let mut live = Live {
            session: Session::new(epochs, 99),
            admitted: [1, 2].into(),
            bound: BTreeSet::new(),
            retired: Vec::new(),
        };
        let (mut now_ms, mut any, mut killed) = (1000, false, false);
        for step in &steps {
            let octets = match step {
                Step::Message { domain, template, report } => {
                    Some(message(*domain, *template, Some(report)))
                }
                Step::Nonsense { domain } => {
                    let mut octets = message(*domain, true, None);
                    octets[19] = 3;
                    Some(octets)
                }
                _ => None,
            };
            // Templates as they were when the message came, before it was read.
            let bound = live.bound.clone();
            let restated = || bound.iter().flat_map(|domain| message(*domain, true, None)).collect();
            match step {
                Step::Advance { by_ms } => now_ms += by_ms,
                _ => now_ms += 1,
            }
            let entry = match step {
                Step::Advance { .. } => Some(Entry::Advanced { now_ms }),
                Step::Drop { domain } => Some(Entry::Dropped { domain: *domain }),
                Step::Admit { domain } => Some(Entry::Admitted { domain: *domain }),
                Step::Expel { domain } => Some(Entry::Expelled { domain: *domain }),
                Step::Bound { epochs } => Some(Entry::Bounded { epochs: *epochs }),
                _ => None,
            };
            if let Some(octets) = octets {
                archive.append(SESSION, &facts, now_ms, &octets, restated).unwrap();
                any = true;
            } else if let Some(entry) = entry {
                if !any {
                    // Nothing is noted of a session that has sent nothing.
                    continue;
                }
                archive.note(SESSION, entry).unwrap();
            } else {
                archive.flush().unwrap();
                archive = archive_of(&scratch, limits);
                killed = true;
            }
            live.take(step, now_ms);
        }
        archive.close(SESSION, now_ms).unwrap();
        prop_assume!(any);
        let replayed = replayed(&[scratch.path().to_owned()]).unwrap();
        prop_assert_eq!(replayed.warnings.len(), usize::from(killed), "{:?}", replayed.warnings);
        let found: BTreeMap<_, _> = replayed.lines.iter().map(published).collect();
        prop_assert_eq!(found.len(), replayed.lines.len(), "each epoch once");
        prop_assert_eq!(found, live.published());
    }
}
