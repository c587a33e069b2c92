//! No word that a user may be shown names a cause in the network.

use observe::collect::{Contradiction, Rejection};
use observe::meter::Cause;
use observe::outcome::{Outcome, Qualification};
use observe::profile::{BindingError, FieldError};
use observe::report::{Flags, Inconsistent};
use observe::request::Violation;
use wire::frame::{Lie, Opcode};

const QUALIFICATIONS: [Qualification; 10] = [
    Qualification::ProfileViolation,
    Qualification::CaptureDiscontinuity,
    Qualification::StateExhaustion,
    Qualification::SerialDiscontinuity,
    Qualification::GenerationUnverified,
    Qualification::UnsupportedFlags,
    Qualification::ReportGap,
    Qualification::NoFinal,
    Qualification::CollectorDrop,
    Qualification::FlowEndsBeforeStart,
];

fn all() -> Vec<String> {
    let outcomes = [Outcome::Active, Outcome::Complete, Outcome::Incomplete, Outcome::Invalid];
    let mut all: Vec<String> = outcomes.map(|o| o.word().to_owned()).to_vec();
    all.extend(QUALIFICATIONS.map(|q| q.word().to_owned()));
    all.extend(Flags::NAMES.map(|(_, name)| name.to_owned()));
    all.extend(
        [
            Inconsistent::Positions { skipped: 1, sum: 2 },
            Inconsistent::Pending { pending: 4, window: 4 },
            Inconsistent::Requests { sum: 4, requests: 4 },
            Inconsistent::NoRequest,
            Inconsistent::PendingInFinal(1),
            Inconsistent::AbandonedInActive(1),
            Inconsistent::CausesInActive(Flags::CAUSES),
        ]
        .map(|i| i.to_string()),
    );
    all.extend(
        [
            Rejection::KeyChanged,
            Rejection::ImmutableChanged("rdmaSequenceWindow"),
            Rejection::Decreased("filledPsnTotalCount"),
            Rejection::Orphan,
            Rejection::EpochsFull,
            Rejection::DomainsFull,
            Rejection::EpochInvalid,
        ]
        .map(|r| r.to_string()),
    );
    let contradictions = [Contradiction::SameIdOtherContent, Contradiction::AfterFinal];
    all.extend(contradictions.map(|c| c.to_string()));
    let violations = [
        Violation::Opcode(Opcode(0x0c)),
        Violation::Version(1),
        Violation::TooShort { opcode: Opcode(0), found: 1, expected: 16 },
        Violation::Length(Lie::IpBeyondFrame),
        Violation::Length(Lie::UdpBeyondIp),
    ];
    all.extend(violations.map(|v| Cause::Violation(v).to_string()));
    all.extend(CAUSES.map(|cause| cause.to_string()));
    all.extend(CAUSES.map(|cause| cause.word().to_owned()));
    let length = |found| BindingError::Length { field: "sourceIPv4Address", found, expected: 4 };
    all.extend(
        [
            BindingError::NotProfile,
            BindingError::Options,
            BindingError::Missing("observationPointId"),
            BindingError::Twice("observationPointId"),
            BindingError::BothFamilies,
            length(Some(3)),
            length(None),
        ]
        .map(|e| e.to_string()),
    );
    all.extend(
        [
            FieldError::EpochIdZero,
            FieldError::ReportIdZero,
            FieldError::Window(0),
            FieldError::QueuePair(1 << 24),
            FieldError::Vlan(4096),
            FieldError::Segment(1 << 24),
        ]
        .map(|e| e.to_string()),
    );
    all
}

/// Every cause; one of each where it says more.
const CAUSES: [Cause; 28] = [
    Cause::End,
    Cause::Idle,
    Cause::Violation(Violation::Version(1)),
    Cause::Ambiguous,
    Cause::Jump(9),
    Cause::CaptureDrops,
    Cause::Unread,
    Cause::MirrorGap,
    Cause::MirrorRestarted,
    Cause::MirrorNotFollowed,
    Cause::Unreadable,
    Cause::Damaged,
    Cause::CaptureTruncated,
    Cause::Fragment,
    Cause::LengthLies,
    Cause::IcrcMismatch,
    Cause::FileTruncated,
    Cause::FileDamaged,
    Cause::FilesOverlap,
    Cause::CaptureGap,
    Cause::Policy,
    Cause::Withdrawn("all_paths"),
    Cause::Window,
    Cause::Generation,
    Cause::Evicted,
    Cause::LabelMemory,
    Cause::Exhausted,
    Cause::ReportIds,
];

// SEQ-7.16
#[test]
fn every_cause_has_a_word_and_a_sentence_of_its_own() {
    let words: std::collections::BTreeSet<_> = CAUSES.map(Cause::word).into();
    let sentences: std::collections::BTreeSet<_> = CAUSES.map(|c| c.to_string()).into();
    assert_eq!((words.len(), sentences.len()), (CAUSES.len(), CAUSES.len()));
    assert!(words.iter().all(|word| word.bytes().all(|b| b.is_ascii_alphabetic())));
}

// SEQ-7.16, SEQ-7.17, SEQ-7.15
#[test]
fn no_word_claims_what_a_network_did() {
    let forbidden = [
        "lost",
        "loss",
        "lose",
        "retrans",
        "reorder",
        "out of order",
        "out-of-order",
        "resent",
        "duplicat",
        "congest",
        "missing packet",
    ];
    for text in all() {
        let lower = text.to_lowercase();
        for word in forbidden {
            assert!(!lower.contains(word), "{word:?} in {text:?}");
        }
        assert!(!text.is_empty() && text.is_ascii());
    }
}

// SEQ-7.15: the meter's, the reports' and the collector's own reasons are told apart.
#[test]
fn every_qualification_has_a_word_of_its_own() {
    let words: std::collections::BTreeSet<_> = QUALIFICATIONS.map(Qualification::word).into();
    assert_eq!(words.len(), QUALIFICATIONS.len());
}

// SEQ-7.5
#[test]
fn flags_qualify_by_their_own_names_and_all_unknown_ones_by_one_word() {
    let of = |flags| Qualification::of_flags(Flags(flags)).map(Qualification::word).collect();
    let expect = |flags, expected: &[&str]| {
        let found: Vec<&str> = of(flags);
        assert_eq!(found, expected, "{flags:#x}");
    };
    expect(0x0000, &[]);
    expect(0x0001, &[]);
    expect(0x0021, &["generationUnverified"]);
    expect(0x000a, &["profileViolation", "stateExhaustion"]);
    expect(0x0014, &["captureDiscontinuity", "serialDiscontinuity"]);
    for bit in 6..16 {
        expect(1 << bit, &["unsupportedFlags"]);
    }
    expect(0xffc0, &["unsupportedFlags"]);
}
