//! The slow, literal model of Table 1, and the engine driven in the same way.

use std::collections::BTreeMap;

use observe::sequence::{Counts, Discontinuity, Sequence, Step};
use observe::serial::Psn;
use observe::window::{Labels, Window};

/// One epoch as it ended: whether serialDiscontinuity closed it, and its counters.
pub type Epoch = (bool, Counts);

#[derive(Clone, Copy, PartialEq)]
enum Label {
    Seen,
    Pending,
}

/// Table 1 read aloud: a map of labels, nothing derived, nothing clever.
struct Model {
    high: i64,
    start: i64,
    labels: BTreeMap<i64, Label>,
    counts: Counts,
}

const M: i64 = 1 << 24;

impl Model {
    fn begin(psn: i64) -> Self {
        let labels = BTreeMap::from([(psn, Label::Seen)]);
        let counts = Counts { requests: 1, ..Counts::default() };
        Self { high: psn, start: psn, labels, counts }
    }

    /// False where the request does not belong to this epoch.
    fn step(&mut self, psn: i64, w: i64) -> bool {
        let u = (psn - self.high.rem_euclid(M)).rem_euclid(M);
        if u == M / 2 {
            return false;
        }
        let d = if u < M / 2 { u } else { u - M };
        if d > w {
            return false;
        }
        self.counts.requests += 1;
        let low = |high: i64, start: i64| start.max(high - w + 1);
        if d >= 1 {
            for position in self.high + 1..self.high + d {
                self.labels.insert(position, Label::Pending);
                self.counts.skipped += 1;
                self.counts.pending += 1;
            }
            self.high += d;
            self.labels.insert(self.high, Label::Seen);
            let low = low(self.high, self.start);
            while let Some((position, label)) = self.labels.first_key_value()
                && *position < low
            {
                if *label == Label::Pending {
                    self.counts.expired += 1;
                    self.counts.pending -= 1;
                }
                self.labels.pop_first();
            }
        } else if self.high + d < low(self.high, self.start) {
            self.counts.unclassified_late += 1;
        } else if self.labels[&(self.high + d)] == Label::Pending {
            self.labels.insert(self.high + d, Label::Seen);
            self.counts.filled += 1;
            self.counts.pending -= 1;
        } else {
            self.counts.repeated += 1;
        }
        true
    }

    fn close(mut self) -> Counts {
        self.counts.abandoned += u64::from(self.counts.pending);
        self.counts.pending = 0;
        self.counts
    }
}

/// The epochs that the model makes of a sequence of PSNs.
pub fn by_model(window: u32, psns: &[u32]) -> Vec<Epoch> {
    let mut epochs = Vec::new();
    let mut model: Option<Model> = None;
    for psn in psns {
        let psn = i64::from(*psn) % M;
        let belongs = model.as_mut().is_some_and(|open| open.step(psn, i64::from(window)));
        if !belongs {
            epochs.extend(model.replace(Model::begin(psn)).map(|m| (true, m.close())));
        }
    }
    epochs.extend(model.map(|m| (false, m.close())));
    epochs
}

/// The epochs that the engine makes of it. After every request the relationships of section 5
/// have to hold.
pub fn by_engine(window: u32, psns: &[u32]) -> Vec<Epoch> {
    let window = Window::new(window).unwrap();
    let mut epochs = Vec::new();
    let mut open: Option<Sequence> = None;
    for (index, psn) in psns.iter().enumerate() {
        let psn = Psn::new(*psn);
        if let Some(sequence) = &mut open {
            check_in_order(sequence, &psns[index..], window);
            let mut step = sequence.step(psn, window);
            if step == Step::NeedsLabels {
                sequence.give_labels(Labels::new(window));
                step = sequence.step(psn, window);
            }
            check(&sequence.counts(), window);
            if !matches!(step, Step::Discontinuity(_)) {
                continue;
            }
            let ambiguous = step == Step::Discontinuity(Discontinuity::Ambiguous);
            assert!(ambiguous || matches!(step, Step::Discontinuity(Discontinuity::Jump(_))));
        }
        epochs.extend(open.replace(Sequence::begin(psn)).map(|s| (true, s.close())));
    }
    epochs.extend(open.map(|s| (false, s.close())));
    epochs
}

/// What comes in order is accounted at once as it would be one by one.
fn check_in_order(sequence: &Sequence, psns: &[u32], window: Window) {
    let psns = || psns.iter().take(5).map(|psn| Psn::new(*psn));
    let (mut at_once, mut one_by_one) = (sequence.clone(), sequence.clone());
    let followed = at_once.in_order(psns(), window);
    for psn in psns().take(followed) {
        let step = one_by_one.step(psn, window);
        assert_eq!(step, Step::Advanced { skipped: 0, expired: 0 });
    }
    assert_eq!(at_once.counts(), one_by_one.counts());
}

fn check(c: &Counts, window: Window) {
    assert_eq!(c.skipped, c.filled + c.expired + c.abandoned + u64::from(c.pending));
    assert!(c.pending < window.get());
    assert!(c.repeated + c.unclassified_late + c.filled < c.requests);
    assert_eq!(c.abandoned, 0);
}
