//! Rows of others, judged and summed (YANG draft, on publication, retrieval and aggregation).
//!
//! What names a row is its identity, and what places it is its number in the epoch: when and from
//! which file it came says nothing. So a row that comes late is taken where it belongs, one that
//! comes again counts once, and the first of two that contradict each other stands. Time that no
//! known interval covers is missing, and is never filled with anything.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use super::row::{Fault, Known, Measurement, Row};
use super::{EpochId, OFFSET_NS_MAX, Place, Priorities};

/// What became of a row.
// QUE-con.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Accepted,
    /// It was there already, with the same content, and counts once.
    Repeated,
    /// It does not count.
    Rejected(Rejection),
}

/// Why a row does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is no row of the module, for this reason.
    Malformed(Box<str>),
    /// It breaks a relationship of the module.
    Fault(Fault),
    /// Something else stands under the same identity.
    Conflict,
    /// Other priorities than in the rest of its epoch.
    OtherMapping,
    /// It shares time with the interval of this number.
    Overlap(u64),
    /// It lies before an interval of a lower number, or behind one of a higher: this one.
    Backward(u64),
    /// Between it and the interval of this number there is not the time that those between them
    /// need at least. Of number 0 it is the origin of the epoch: numbers begin with 1.
    NoRoom(u64),
}

impl Verdict {
    /// The word for it, as programs know it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Repeated => "repeated",
            Self::Rejected(rejection) => rejection.word(),
        }
    }
}

impl Rejection {
    /// Whether it says something else than rows that count: one of them is wrong, and it is not known
    /// which.
    // QUE-con.1
    pub const fn contradicts(&self) -> bool {
        match self {
            Self::Malformed(_) | Self::Fault(_) | Self::NoRoom(0) => false,
            Self::Conflict
            | Self::OtherMapping
            | Self::Overlap(_)
            | Self::Backward(_)
            | Self::NoRoom(_) => true,
        }
    }

    /// The word for its kind, as programs know it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Malformed(_) | Self::Fault(_) => "invalid",
            Self::Conflict => "conflicting",
            Self::OtherMapping => "otherMapping",
            Self::Overlap(_) => "overlapping",
            Self::Backward(_) => "backward",
            Self::NoRoom(_) => "noRoom",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => f.write_str(why),
            Self::Fault(fault) => fault.fmt(f),
            Self::Conflict => f.write_str("conflicting content under the same identity"),
            Self::OtherMapping => f.write_str("another mapped-priority than in its epoch"),
            Self::Overlap(other) => write!(f, "overlaps interval {other}"),
            Self::Backward(other) => write!(f, "offset in another order than interval {other}"),
            Self::NoRoom(0) => f.write_str("no time for the intervals before it in its epoch"),
            Self::NoRoom(other) => {
                write!(f, "no time for the intervals between it and interval {other}")
            }
        }
    }
}

/// There is no room for another row or rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// So many are held.
    pub rows_max: usize,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} rows, for which there is no room", self.rows_max)
    }
}

/// What is kept of an accepted row beside its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where it starts behind the origin of the epoch, in nanoseconds.
    pub start_ns: u64,
    /// T, in nanoseconds.
    pub duration_ns: u64,
    /// What is known.
    pub measurement: Measurement,
}

impl Kept {
    const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    const fn place(&self) -> (u64, u64) {
        (self.start_ns, self.end_ns())
    }
}

/// An interval of an epoch by its number: where it starts and ends, in nanoseconds.
pub type Neighbour = (u64, (u64, u64));

/// The accepted rows of one epoch of one queue, wherever they are kept: what a row is judged by.
pub trait Accepted {
    /// Why it cannot be said what is kept.
    type Error;

    /// What is mapped in the epoch; none where no row was accepted.
    ///
    /// # Errors
    /// As [`Self::Error`].
    fn priorities(&self) -> Result<Option<Priorities>, Self::Error>;

    /// The row of a number.
    ///
    /// # Errors
    /// As [`Self::Error`].
    fn at(&self, interval: u64) -> Result<Option<Kept>, Self::Error>;

    /// The row of the highest number below one.
    ///
    /// # Errors
    /// As [`Self::Error`].
    fn before(&self, interval: u64) -> Result<Option<Neighbour>, Self::Error>;

    /// The row of the lowest number above one.
    ///
    /// # Errors
    /// As [`Self::Error`].
    fn after(&self, interval: u64) -> Result<Option<Neighbour>, Self::Error>;
}

/// Judges a row by those of its epoch that were accepted before. It is the same whether they are
/// held in memory ([`Aggregator`]) or in a database.
///
/// # Errors
/// Where it cannot be said what was accepted.
// QUE-con.1, QUE-yang.1
pub fn judge<A: Accepted + ?Sized>(row: &Row, accepted: &A) -> Result<Verdict, A::Error> {
    if let Some(fault) = row.faults().next() {
        return Ok(Verdict::Rejected(Rejection::Fault(fault)));
    }
    let own = kept(row);
    let mapped = accepted.priorities()?;
    if let Some(there) = accepted.at(row.interval)? {
        let same = there == own && mapped == Some(row.priorities);
        return Ok(if same { Verdict::Repeated } else { Verdict::Rejected(Rejection::Conflict) });
    }
    let rejection = if mapped.is_some_and(|mapped| mapped != row.priorities) {
        Some(Rejection::OtherMapping)
    } else {
        misplaced(row.interval, &own, accepted)?
    };
    Ok(rejection.map_or(Verdict::Accepted, Verdict::Rejected))
}

/// Whether an interval does not fit between its neighbours.
fn misplaced<A: Accepted + ?Sized>(
    interval: u64,
    own: &Kept,
    accepted: &A,
) -> Result<Option<Rejection>, A::Error> {
    if let Some((number, before)) = accepted.before(interval)?
        && let Some(misfit) = misfit(before, own.place(), interval - number)
    {
        return Ok(Some(misfit.with(number)));
    }
    if let Some((number, after)) = accepted.after(interval)?
        && let Some(misfit) = misfit(own.place(), after, number - interval)
    {
        return Ok(Some(misfit.with(number)));
    }
    // QUE-id.4: numbers begin with 1, each for an interval with a length, and no offset is negative. A
    // number that no offset would have room for is let be: the module has it.
    let misfit =
        if interval <= OFFSET_NS_MAX { misfit((0, 0), own.place(), interval) } else { None };
    Ok(misfit.map(|misfit| misfit.with(0)))
}

/// The rows of one epoch of one queue: groups of two epochs are never joined.
// QUE-con.2
#[derive(Clone, Debug)]
pub struct Group {
    place: Arc<Place>,
    epoch: EpochId,
    /// Of the rows that count.
    priorities: Option<Priorities>,
    rows: BTreeMap<u64, Kept>,
    rejected: Vec<(u64, Rejection)>,
}

/// Judges rows, and keeps what counts.
pub struct Aggregator {
    rows_max: usize,
    /// Rows and rejections that are kept.
    held: usize,
    index: BTreeMap<(Arc<Place>, EpochId), usize>,
    groups: Vec<Group>,
}

impl Aggregator {
    /// No row yet; at most so many, with those that are rejected.
    pub const fn new(rows_max: usize) -> Self {
        Self { rows_max, held: 0, index: BTreeMap::new(), groups: Vec::new() }
    }

    /// Judges a row.
    ///
    /// # Errors
    /// [`Full`]; nothing has changed then.
    // QUE-con.1, QUE-yang.1
    pub fn row(&mut self, row: &Row) -> Result<Verdict, Full> {
        let nth = self.index.get(&(row.place.clone(), row.epoch)).copied();
        let verdict = match nth {
            Some(nth) => judged(row, &self.groups[nth]),
            None => judged(row, &Nothing),
        };
        if verdict == Verdict::Repeated {
            return Ok(verdict);
        }
        if self.held >= self.rows_max {
            return Err(Full { rows_max: self.rows_max });
        }
        let nth = self.room(nth, &row.place, row.epoch);
        let group = &mut self.groups[nth];
        if let Verdict::Rejected(rejection) = &verdict {
            group.rejected.push((row.interval, rejection.clone()));
        } else {
            // The first that counts says what the epoch's mapping is.
            group.priorities.get_or_insert(row.priorities);
            group.rows.insert(row.interval, kept(row));
        }
        Ok(verdict)
    }

    /// What calls itself a row of this identity and is none.
    ///
    /// # Errors
    /// [`Full`]; nothing has changed then.
    pub fn malformed(
        &mut self,
        place: &Arc<Place>,
        epoch: EpochId,
        interval: u64,
        why: &str,
    ) -> Result<(), Full> {
        if self.held >= self.rows_max {
            return Err(Full { rows_max: self.rows_max });
        }
        let nth = self.index.get(&(place.clone(), epoch)).copied();
        let nth = self.room(nth, place, epoch);
        self.groups[nth].rejected.push((interval, Rejection::Malformed(why.into())));
        Ok(())
    }

    /// Where one more row of an epoch is kept.
    fn room(&mut self, known: Option<usize>, place: &Arc<Place>, epoch: EpochId) -> usize {
        self.held += 1;
        known.unwrap_or_else(|| {
            let nth = self.groups.len();
            self.index.insert((place.clone(), epoch), nth);
            self.groups.push(Group {
                place: place.clone(),
                epoch,
                priorities: None,
                rows: BTreeMap::new(),
                rejected: Vec::new(),
            });
            nth
        })
    }

    /// The groups, in the order in which they came.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The groups and nothing else.
    pub fn into_groups(self) -> Vec<Group> {
        self.groups
    }
}

/// An epoch of which nothing is known.
struct Nothing;

impl Accepted for Nothing {
    type Error = Infallible;

    fn priorities(&self) -> Result<Option<Priorities>, Infallible> {
        Ok(None)
    }

    fn at(&self, _: u64) -> Result<Option<Kept>, Infallible> {
        Ok(None)
    }

    fn before(&self, _: u64) -> Result<Option<Neighbour>, Infallible> {
        Ok(None)
    }

    fn after(&self, _: u64) -> Result<Option<Neighbour>, Infallible> {
        Ok(None)
    }
}

impl Accepted for Group {
    type Error = Infallible;

    fn priorities(&self) -> Result<Option<Priorities>, Infallible> {
        Ok(self.priorities)
    }

    fn at(&self, interval: u64) -> Result<Option<Kept>, Infallible> {
        Ok(self.rows.get(&interval).copied())
    }

    fn before(&self, interval: u64) -> Result<Option<Neighbour>, Infallible> {
        let found = self.rows.range(..interval).next_back();
        Ok(found.map(|(number, kept)| (*number, kept.place())))
    }

    fn after(&self, interval: u64) -> Result<Option<Neighbour>, Infallible> {
        let found = self.rows.range(interval.saturating_add(1)..).next();
        // Nothing is above the highest number.
        let found = found.filter(|(number, _)| **number > interval);
        Ok(found.map(|(number, kept)| (*number, kept.place())))
    }
}

fn judged(row: &Row, accepted: &impl Accepted<Error = Infallible>) -> Verdict {
    let Ok(verdict) = judge(row, accepted);
    verdict
}

const fn kept(row: &Row) -> Kept {
    Kept { start_ns: row.start_ns, duration_ns: row.duration_ns, measurement: row.measurement }
}

impl Group {
    /// Whose.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The epoch.
    pub const fn epoch(&self) -> EpochId {
        self.epoch
    }

    /// What was mapped in it; none where no row counts.
    pub const fn priorities(&self) -> Option<Priorities> {
        self.priorities
    }

    /// The numbers of rows that do not count, and why, in the order in which they came.
    pub fn rejected(&self) -> &[(u64, Rejection)] {
        &self.rejected
    }

    /// Whether rows that do not count contradict rows that do, which came first and may be the wrong
    /// ones.
    // QUE-con.1
    pub fn is_contradicted(&self) -> bool {
        self.rejected.iter().any(|(_, rejection)| rejection.contradicts())
    }

    /// What the rows that count say together. None where there is none.
    // QUE-con.2
    pub fn span(&self) -> Option<Span> {
        let (first, start) = self.rows.first_key_value()?;
        let (last, end) = self.rows.last_key_value()?;
        let mut known: Option<Total> = None;
        for kept in self.rows.values() {
            if let Measurement::Known(row) = &kept.measurement {
                known.get_or_insert_default().add(kept.duration_ns, row);
            }
        }
        let duration_ns = end.end_ns() - start.start_ns;
        Some(Span { first: *first, last: *last, duration_ns, known })
    }
}

/// How two intervals do not fit together.
#[derive(Clone, Copy)]
enum Misfit {
    Overlap,
    Backward,
    NoRoom,
}

impl Misfit {
    const fn with(self, other: u64) -> Rejection {
        match self {
            Self::Overlap => Rejection::Overlap(other),
            Self::Backward => Rejection::Backward(other),
            Self::NoRoom => Rejection::NoRoom(other),
        }
    }
}

/// `later` has a number that is higher by `apart`.
fn misfit(earlier: (u64, u64), later: (u64, u64), apart: u64) -> Option<Misfit> {
    if later.1 <= earlier.0 {
        return Some(Misfit::Backward);
    }
    let Some(between) = later.0.checked_sub(earlier.1) else {
        return Some(Misfit::Overlap);
    };
    // Each interval between them has a length.
    (between < apart - 1).then_some(Misfit::NoRoom)
}

/// Sums over the known rows of a group, in nanoseconds. Each is below 2^53: intervals of an epoch
/// do not overlap, and no error is longer than its interval.
// QUE-con.2, QUE-con.3
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The sum of T.
    pub duration_ns: u64,
    /// The sum of I.
    pub gated_ns: u64,
    /// The sum of Q.
    pub backlog_ns: u64,
    /// The sum of E.
    pub error_ns: u64,
}

/// What the rows of a group say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The lowest number.
    pub first: u64,
    /// The highest.
    pub last: u64,
    /// From the start of the first to the end of the last, in nanoseconds.
    pub duration_ns: u64,
    /// The sums; none where no row is known, which is not zero.
    pub known: Option<Total>,
}

/// Whether known intervals cover a span.
// QUE-con.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All of it.
    Complete,
    /// Some of it is missing.
    Partial,
}

impl Coverage {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
        }
    }
}

impl Span {
    /// The time that known intervals cover, in nanoseconds.
    pub fn known_ns(&self) -> u64 {
        self.known.map_or(0, |total| total.duration_ns)
    }

    /// The time that they do not cover, in nanoseconds.
    // QUE-con.1: gaps and unknown intervals; nothing stands in for them.
    pub fn missing_ns(&self) -> u64 {
        self.duration_ns - self.known_ns()
    }

    /// Whether anything is missing between the first row and the last.
    pub fn coverage(&self) -> Coverage {
        if self.missing_ns() == 0 { Coverage::Complete } else { Coverage::Partial }
    }
}

/// A ratio and its range within the errors that the rows state, each from 0 to 1. Whether the rows are
/// true is not known from them, and no probability is implied.
// QUE-con.3
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// As reported.
    pub value: f64,
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl Total {
    fn add(&mut self, duration_ns: u64, row: &Known) {
        self.duration_ns += duration_ns;
        self.gated_ns += row.gated_ns;
        self.backlog_ns += row.backlog_ns;
        self.error_ns += row.error_ns;
    }

    /// I/T.
    pub fn gated_ratio(&self) -> Ratio {
        self.of_duration(self.gated_ns)
    }

    /// Q/T.
    pub fn backlog_ratio(&self) -> Ratio {
        self.of_duration(self.backlog_ns)
    }

    /// I/Q; none where Q is 0. Where Q can be 0, anything is possible.
    // QUE-con.3
    pub fn gated_of_backlog(&self) -> Option<Ratio> {
        let &Self { duration_ns: t, gated_ns: i, backlog_ns: q, error_ns: e } = self;
        if q == 0 {
            return None;
        }
        let value = quotient(i, q);
        if q <= e {
            return Some(Ratio { value, low: 0.0, high: 1.0 });
        }
        let low = quotient(i.saturating_sub(e), t.min(q.saturating_add(e)));
        let high = quotient(i.saturating_add(e), q - e).min(1.0);
        Some(Ratio { value, low, high })
    }

    fn of_duration(&self, ns: u64) -> Ratio {
        let (t, e) = (self.duration_ns, self.error_ns);
        Ratio {
            value: quotient(ns, t),
            low: quotient(ns.saturating_sub(e), t),
            high: quotient(t.min(ns.saturating_add(e)), t),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "both are below 2^53: see `Total`")]
fn quotient(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}
