//! Counters of PFC frames from drivers and from a source of the test's own: which value becomes
//! which reading, what becomes of wraps and resets, and what is refused before anything is read.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use observe::pfc::instance::InstanceId;
use observe::pfc::interval::{Interval, Pace, Sighting, Tick};
use observe::pfc::qualify::Condition;
use observe::pfc::{Direction, Priority};
use rocescope::pfc::drivers::{self, DRIVERS};
use rocescope::pfc::ethtool::{Ethtool, EthtoolPort, Provider, Statistics};
use rocescope::pfc::poller::{Batch, Named, Place, PollCounts, Poller};
use rocescope::pfc::{
    Absent, Clock, Counters, Moment, Polled, PortRead, Said, Source, Statement, Value, promise,
    qualified,
};

/// Every condition that an operator can attest.
pub fn all() -> Vec<Condition> {
    Condition::ALL.into_iter().filter(|condition| *condition != Condition::Wide).collect()
}

fn said(attested: &[Condition], resets_show: bool) -> Said<'_> {
    let pace = Pace::of_link(100_000_000_000).expect("a speed");
    Said { attested, resets_show, pace, poll_ms_max: 1000 }
}

pub fn place(statement: &Statement, resets_show: bool) -> Place {
    let all = all();
    let said = said(&all, resets_show);
    Place {
        source: "pfc.source[0]".into(),
        scopes: Arc::default(),
        domain: 7,
        point: 9,
        qualified: Direction::ALL.map(|d| Some(qualified(d, statement, &said).expect("attested"))),
        promise: promise(statement, &said).expect("a promise"),
        identify: true,
        ports_max: 64,
    }
}

/// A poller whose names are 1, 2, 3 and so on.
pub fn poller<S: Source>(source: S, place: Place) -> (Poller<S>, Arc<PollCounts>) {
    let counts = Arc::new(PollCounts::default());
    let mut last = 0;
    let fresh = move || {
        last += 1;
        InstanceId::new(last).expect("not 0")
    };
    (Poller::new(source, place, counts.clone(), fresh), counts)
}

/// A clock that stands still.
pub struct At(pub u64);

impl Clock for At {
    fn now(&self) -> Moment {
        moment(self.0)
    }
}

fn moment(ms: u64) -> Moment {
    Moment { time_ms: 1_700_000_000_000 + ms, tick: Tick { clock: 1, ms } }
}

/// Totals of a poll by interface, direction and priority.
pub fn totals(batch: &Batch) -> BTreeMap<(u32, Direction, u8), u64> {
    let all = (0..2).flat_map(|side| batch.since(side, batch.poll - 1));
    all.map(|(reading, _)| {
        let scope = reading.scope;
        ((scope.interface, scope.direction, scope.priority.get()), reading.total)
    })
    .collect()
}

/// Statistics as `ethtool -S` prints them. The second port has each value 50000 higher.
#[derive(Debug, Default)]
struct Recorded {
    driver: String,
    text: String,
    index: BTreeMap<String, u32>,
    fails: bool,
}

impl Recorded {
    fn of(driver: &str) -> Self {
        // All generations of these switches have one driver.
        let file = if driver.starts_with("mlxsw") { "mlxsw_spectrum" } else { driver };
        Self { driver: driver.into(), ..Self::from(file) }
    }

    fn from(file: &str) -> Self {
        let name = format!("tests/agent/ethtool/{file}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let text = std::fs::read_to_string(path).expect("a recording");
        let index = [("a".to_owned(), 4), ("b".to_owned(), 5)].into();
        Self { driver: file.into(), text, index, fails: false }
    }
}

impl Provider for Recorded {
    fn statistics(&mut self, interface: &str) -> io::Result<Statistics> {
        if self.fails {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let more = if interface == "b" { 50_000 } else { 0 };
        let rows = self.text.lines().filter_map(|line| line.rsplit_once(": "));
        // A driver's own blanks are behind its names, and the kernel's side takes them off.
        let rows = rows.map(|(name, value)| {
            (name.trim().to_owned(), value.parse::<u64>().expect("a number") + more)
        });
        let (names, values) = rows.unzip();
        Ok(Statistics { driver: self.driver.clone(), names, values })
    }

    fn index(&mut self, interface: &str) -> io::Result<u32> {
        self.index.get(interface).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn not_physical(&mut self, interface: &str) -> Option<String> {
        (interface == "bond0").then(|| "it is an aggregate: name its members".into())
    }
}

fn ports(names: &[&str]) -> Vec<EthtoolPort> {
    let port = |name: &&str| EthtoolPort { name: (*name).into(), interface: None };
    names.iter().map(port).collect()
}

// PFC-id.1, PFC-id.3, PFC-count.3
#[test]
fn each_drivers_names_belong_to_their_direction_and_priority() {
    let good = DRIVERS.iter().filter(|driver| driver.counters.is_ok());
    let older = Recorded { driver: "i40e".into(), ..Recorded::from("i40e-older") };
    let all = good.map(|driver| (driver, Recorded::of(driver.name)));
    let i40e = drivers::find("i40e").expect("known");
    for (driver, recorded) in all.chain([(i40e, older)]) {
        let name = driver.name;
        let source = Ethtool::new(name, ports(&["a", "b"]), recorded).expect(name);
        let statement = driver.counters.expect("counters").statement();
        let (mut poller, _) = poller(source, place(&statement, true));
        let first = poller.poll(&At(1000)).expect("read");
        let two = ["ice", "i40e"].contains(&name);
        let mut expected = BTreeMap::new();
        for (interface, more) in [(4, 0), (5, 50_000)] {
            for priority in 0..8 {
                // This driver shows what is enabled: priorities 3 and 5.
                if name == "mlx5_core" && ![3, 5].contains(&priority) {
                    continue;
                }
                let p = u64::from(priority);
                let (rx, tx) = match two {
                    true => (1100 + 2 * p + 2 * more, 2200 + 2 * p + 2 * more),
                    false => (1000 + p + more, 2000 + p + more),
                };
                // What is narrow counts from its first reading.
                let narrow = name == "i40e";
                let total = |value| if narrow { 0 } else { value };
                expected.insert((interface, Direction::Received, priority), total(rx));
                expected.insert((interface, Direction::Transmitted, priority), total(tx));
            }
        }
        assert_eq!(totals(&first), expected, "{name}");
    }
}

// PFC-count.1, PFC-id.3, PFC-exp.3
#[test]
fn a_driver_states_no_more_than_its_source_says_and_is_refused_without_the_rest() {
    for driver in &DRIVERS {
        assert!(driver.source.starts_with("drivers/net/ethernet/"), "{}", driver.name);
        let Ok(counters) = driver.counters else { continue };
        for direction in Direction::ALL {
            let statement = counters.statement();
            let refusal = qualified(direction, &statement, &said(&[], true)).expect_err("refused");
            let words = refusal.to_string();
            for condition in ["every-frame", "only-valid"] {
                assert!(words.contains(condition), "{}: {words}", driver.name);
            }
            let mine = match direction {
                Direction::Received => "before-processing",
                Direction::Transmitted => "confirmed-emission",
            };
            assert!(words.contains(mine), "{}: {words}", driver.name);
            assert!(qualified(direction, &statement, &said(&all(), true)).is_ok());
        }
    }
    // Thirty-two bits, and nothing that tells a reset: no attestation helps.
    let i40e = drivers::find("i40e").expect("known").counters.expect("counters").statement();
    let refusal = qualified(Direction::Received, &i40e, &said(&all(), false)).expect_err("refused");
    assert!(refusal.to_string().contains("whose resets do not show"), "{refusal}");
    assert!(drivers::find("ixgbe").expect("known").counters.is_err());
    assert!(drivers::find("e1000").is_none());
}

#[test]
fn the_documentation_names_every_driver_and_every_condition() {
    let text = include_str!("../../../../docs/pfc.md");
    for driver in &DRIVERS {
        assert!(text.contains(&format!("`{}`", driver.name)), "{}", driver.name);
        let Ok(counters) = driver.counters else { continue };
        let mut spellings = counters.spellings(Direction::Received, Priority::ALL[0]);
        let first = &spellings.next().expect("a name")[0];
        assert!(text.contains(&format!("`{first}`")), "{first}");
    }
    for condition in all() {
        assert!(text.contains(&format!("| `{}` |", condition.name())), "{}", condition.name());
    }
}

// PFC-id.2, PFC-count.4
#[test]
fn an_interface_that_is_something_else_is_refused_with_what_is_missing() {
    let refused = |driver: &str, port: &str, provider: Recorded| {
        Ethtool::new(driver, ports(&[port]), provider).expect_err("refused")
    };
    let other = refused("mlx5_core", "a", Recorded::of("ice"));
    assert_eq!(other, "a: driver \"ice\", expected mlx5_core");
    let bond = refused("ice", "bond0", Recorded::of("ice"));
    assert_eq!(bond, "bond0: not a physical interface: it is an aggregate: name its members");
    let failed = refused("ice", "a", Recorded { fails: true, ..Recorded::of("ice") });
    assert!(failed.starts_with("a: "), "{failed}");
    assert!(refused("qede", "a", Recorded::of("ice")).contains("all priorities together"));
}

// PFC-op.1
#[test]
fn a_real_interface_without_such_counters_says_what_is_missing() {
    let kernel = rocescope::pfc::ethtool::Kernel::new();
    let error = Ethtool::new("mlx5_core", ports(&["lo"]), kernel).expect_err("refused");
    assert!(error.starts_with("lo: ") && error.contains("expected mlx5_core"), "{error}");
    let kernel = rocescope::pfc::ethtool::Kernel::new();
    let error = Ethtool::new("ice", ports(&["rocescope-no"]), kernel).expect_err("refused");
    assert!(error.starts_with("rocescope-no: "), "{error}");
}

// PFC-op.1
#[test]
fn counters_that_a_driver_stops_to_show_have_no_reading_and_no_zero() {
    let source = Ethtool::new("mlx5_core", ports(&["a", "c"]), Recorded::of("mlx5_core"));
    let driver = drivers::find("mlx5_core").expect("known");
    let statement = driver.counters.expect("counters").statement();
    let (mut poller, counts) = poller(source.expect("there"), place(&statement, true));
    let batch = poller.poll(&At(1000)).expect("read");
    assert_eq!(totals(&batch).len(), 4, "{batch:?}");
    // Of port a six priorities each way, of port c, which is gone, all.
    assert_eq!(counts.absent[Absent::NoCounter as usize].load(Relaxed), 12);
    assert_eq!(counts.absent[Absent::NoPort as usize].load(Relaxed), 16);
}

// PFC-op.1
#[test]
fn a_zero_that_can_stand_for_what_was_not_read_is_no_reading() {
    let read = |name: &str| {
        let mut recorded = Recorded::of(name);
        recorded.text = recorded.text.replace(": 1003", ": 0");
        let source = Ethtool::new(name, ports(&["a"]), recorded).expect("there");
        let statement = drivers::find(name).expect("known").counters.expect("counters");
        let (mut poller, counts) = poller(source, place(&statement.statement(), true));
        let batch = poller.poll(&At(1000)).expect("read");
        let total = totals(&batch).get(&(4, Direction::Received, 3)).copied();
        (total, totals(&batch).len(), counts.absent[Absent::DoubtfulZero as usize].load(Relaxed))
    };
    // Drivers that say zero while the device does not answer them.
    for name in ["mlxsw_spectrum", "hns3", "hinic"] {
        assert_eq!(read(name), (None, 15, 1), "{name}");
    }
    // Of others it is a reading.
    assert_eq!(read("cxgb4"), (Some(0), 16, 0));
}

/// A source that says what the test tells it.
struct Told(VecDeque<Result<Vec<Polled>, String>>);

impl Source for Told {
    fn poll(&mut self, _: &dyn Clock) -> Result<Vec<Polled>, String> {
        self.0.pop_front().expect("a poll that was told")
    }
}

/// One counter of one port; the others say nothing.
fn one(ms: u64, instance: u64, value: Result<Value, Absent>) -> Result<Vec<Polled>, String> {
    let mut counters: Counters = [[Err(Absent::NoCounter); 8]; 2];
    counters[0][3] = value;
    let read = PortRead { interface: 4, at: moment(ms), instance, counters };
    Ok(vec![("a".into(), Ok(read))])
}

/// What a poll gave of one counter, if anything.
type Heard = Option<(u64, Option<u64>, Result<u64, String>)>;

/// What a conversation makes of one counter: the total, whether it was named anew, and what lies
/// between this reading and the one before.
fn heard(width: u32, resets_show: bool, polls: Vec<Result<Vec<Polled>, String>>) -> Vec<Heard> {
    let statement = Statement { width, stated: &[] };
    let pace = Pace::of_link(100_000_000_000);
    let count = polls.len();
    let (mut poller, _) = poller(Told(polls.into()), place(&statement, resets_show));
    let mut before: Option<Sighting> = None;
    let mut all = Vec::new();
    for _ in 0..count {
        let Ok(batch) = poller.poll(&At(0)) else {
            all.push(None);
            continue;
        };
        let new: Vec<Named> = batch.since(0, batch.poll - 1).collect();
        let Some((reading, id)) = new.first().copied() else {
            all.push(None);
            continue;
        };
        let known = id.map(|id| id.known(reading.time_ms, pace)).unwrap_or_default();
        let sighting = Sighting { reading, known };
        let between = match before.map(|before| Interval::between(&before, &sighting)) {
            None => Err("first".into()),
            Some(Interval::Exact(frames)) => Ok(frames.count()),
            Some(Interval::Unknown(reason)) => Err(reason.to_string()),
        };
        before = Some(sighting);
        all.push(Some((reading.total, id.map(InstanceId::get), between)));
    }
    all
}

const REPLACED: &str = "the counter instance was replaced";
const UNKNOWN: &str = "the counter instance is not known";

// PFC-exp.3, PFC-sem.2, PFC-sem.3
#[test]
fn counters_of_32_and_48_bits_go_on_over_their_wraps() {
    for width in [32, 48] {
        let top = (1_u64 << width) - 10;
        let polls = vec![
            one(0, 1, Ok(Value::One(top))),
            one(1000, 1, Ok(Value::One(top + 9))),
            one(2000, 1, Ok(Value::One(4))),
            one(3000, 1, Ok(Value::One(4))),
        ];
        let expected = vec![
            Some((0, Some(1), Err("first".into()))),
            Some((9, Some(1), Ok(9))),
            Some((14, Some(1), Ok(5))),
            Some((14, Some(1), Ok(0))),
        ];
        assert_eq!(heard(width, true, polls), expected, "{width}");
    }
}

// PFC-exp.3, PFC-count.3
#[test]
fn two_parts_are_widened_apart_and_added() {
    let top = u64::from(u32::MAX);
    let polls = vec![
        one(0, 1, Ok(Value::Two(top, 100))),
        // One part goes round, the other does not.
        one(1000, 1, Ok(Value::Two(1, 105))),
        one(2000, 1, Ok(Value::Two(2, 105))),
        // Made anew: both begin.
        one(3000, 2, Ok(Value::Two(7, 7))),
        one(4000, 2, Ok(Value::Two(9, 8))),
    ];
    let expected = vec![
        Some((0, Some(1), Err("first".into()))),
        Some((7, Some(1), Ok(7))),
        Some((8, Some(1), Ok(1))),
        Some((0, Some(2), Err(REPLACED.into()))),
        Some((3, Some(2), Ok(3))),
    ];
    assert_eq!(heard(32, true, polls), expected);
}

// PFC-exp.3, PFC-sem.1
#[test]
fn a_part_that_begins_alone_takes_the_other_along() {
    let polls = vec![
        one(0, 1, Ok(Value::Two(100, 100))),
        one(1000, 1, Ok(Value::Two(110, 105))),
        // One part went on by more than a link carries: it was cleared, or set.
        one(2000, 1, Ok(Value::Two(3_000_000_000, 107))),
        one(3000, 1, Ok(Value::Two(3_000_000_001, 109))),
    ];
    let expected = vec![
        Some((0, Some(1), Err("first".into()))),
        Some((15, Some(1), Ok(15))),
        Some((0, Some(2), Err(REPLACED.into()))),
        Some((3, Some(2), Ok(3))),
    ];
    assert_eq!(heard(32, true, polls), expected);
}

// PFC-sem.1, PFC-sem.2
#[test]
fn a_counter_that_is_made_anew_is_another_one_and_begins_with_its_own_total() {
    let polls = vec![
        one(0, 1, Ok(Value::One(500))),
        one(1000, 1, Ok(Value::One(530))),
        // A larger total does not say that it is the same counter.
        one(2000, 2, Ok(Value::One(531))),
        one(3000, 2, Ok(Value::One(535))),
    ];
    let expected = vec![
        Some((500, Some(1), Err("first".into()))),
        Some((530, Some(1), Ok(30))),
        Some((531, Some(2), Err(REPLACED.into()))),
        Some((535, Some(2), Ok(4))),
    ];
    assert_eq!(heard(64, true, polls), expected);
}

// PFC-sem.2
#[test]
fn where_resets_do_not_show_no_instance_is_claimed_and_no_interval_is_known() {
    let polls = vec![
        one(0, 1, Ok(Value::One(500))),
        one(1000, 1, Ok(Value::One(530))),
        one(2000, 1, Ok(Value::One(2))),
    ];
    let expected = vec![
        Some((500, None, Err("first".into()))),
        Some((530, None, Err(UNKNOWN.into()))),
        Some((2, None, Err(UNKNOWN.into()))),
    ];
    assert_eq!(heard(64, false, polls), expected);
}

// PFC-op.1, PFC-exp.3
#[test]
fn polls_that_fail_or_come_too_late_are_no_zero_and_no_wrap() {
    let failed = || Err("gone".to_owned());
    let polls = vec![
        one(0, 1, Ok(Value::One(100))),
        failed(),
        // Late, and no wrap fits in between.
        one(2000, 1, Ok(Value::One(130))),
        one(3000, 1, Err(Absent::Unanswered)),
        // At 100 Gb/s, 32 bits go round in some 24 seconds.
        one(40_000, 1, Ok(Value::One(140))),
        one(41_000, 1, Ok(Value::One(150))),
        // More bits than it has.
        one(42_000, 1, Ok(Value::One(1 << 32))),
    ];
    let expected = vec![
        Some((0, Some(1), Err("first".into()))),
        None,
        Some((30, Some(1), Ok(30))),
        None,
        Some((0, Some(2), Err(REPLACED.into()))),
        Some((10, Some(2), Ok(10))),
        None,
    ];
    assert_eq!(heard(32, true, polls), expected);
}

// PFC-sem.2, PFC-rec.2
#[test]
fn a_clock_that_is_set_ends_what_is_known_and_nothing_else() {
    let at = |ms: u64, time_ms: u64, clock: u64, value| {
        let mut polled = one(ms, 1, Ok(Value::One(value)));
        if let Ok(polled) = &mut polled
            && let (_, Ok(read)) = &mut polled[0]
        {
            read.at = Moment { time_ms, tick: Tick { clock, ms } };
        }
        polled
    };
    let polls = vec![
        at(0, 1_000_000, 1, 100),
        at(1000, 1_001_000, 1, 110),
        // Set by an hour.
        at(2000, 4_602_000, 1, 120),
        at(3000, 4_603_000, 1, 125),
        // Set back.
        at(4000, 1_004_000, 1, 126),
        // Another boot: how long it was nobody knows.
        at(10, 1_005_000, 2, 127),
    ];
    let heard = heard(64, true, polls);
    let totals: Vec<_> = heard.iter().flatten().map(|(total, ..)| *total).collect();
    assert_eq!(totals, [100, 110, 120, 125, 126, 127]);
    let ids: Vec<_> = heard.iter().flatten().map(|(_, id, _)| id.expect("named")).collect();
    assert_eq!(ids, [1, 1, 2, 2, 3, 4]);
    let exact: Vec<_> = heard.iter().flatten().map(|(.., between)| between.clone().ok()).collect();
    assert_eq!(exact, [None, Some(10), None, Some(5), None, None]);
}

// PFC-id.1
#[test]
fn ports_beyond_the_limit_and_ports_that_are_gone_hold_no_room() {
    let port = |name: &str, interface: u32, total: u64| -> Polled {
        let mut counters: Counters = [[Err(Absent::NoCounter); 8]; 2];
        counters[1][7] = Ok(Value::One(total));
        (name.into(), Ok(PortRead { interface, at: moment(total), instance: 1, counters }))
    };
    let statement = Statement { width: 64, stated: &[] };
    let polls = [
        Ok(vec![port("a", 1, 10), port("b", 2, 20), port("c", 3, 30)]),
        Ok(vec![port("b", 2, 40), port("c", 3, 50)]),
        // The same name, another number: another counter.
        Ok(vec![port("b", 9, 60)]),
    ];
    let place = Place { ports_max: 2, ..place(&statement, true) };
    let (mut poller, counts) = poller(Told(polls.into()), place);
    let heard = |poller: &mut Poller<Told>| {
        let batch = poller.poll(&At(0)).expect("told");
        let all = totals(&batch).into_iter();
        all.map(|((interface, direction, priority), total)| {
            assert_eq!((direction, priority), (Direction::Transmitted, 7));
            (interface, total)
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(heard(&mut poller), [(1, 10), (2, 20)]);
    assert_eq!(counts.absent[Absent::NoRoom as usize].load(Relaxed), 16);
    assert_eq!(heard(&mut poller), [(2, 40), (3, 50)]);
    assert_eq!(heard(&mut poller), [(9, 60)]);
}

// PFC-id.1, PFC-op.1
#[test]
fn a_number_that_two_ports_of_any_sources_have_gives_no_reading_to_either() {
    let port = |name: &str, interface: u32, total: u64| -> Polled {
        let mut counters: Counters = [[Err(Absent::NoCounter); 8]; 2];
        counters[0][3] = Ok(Value::One(total));
        (name.into(), Ok(PortRead { interface, at: moment(total), instance: 1, counters }))
    };
    let statement = Statement { width: 64, stated: &[] };
    let first = Place {
        qualified: [place(&statement, true).qualified[0], None],
        ..place(&statement, true)
    };
    let second = Place { source: "pfc.source[1]".into(), ..first.clone() };
    let elsewhere = Place { source: "pfc.source[2]".into(), point: 10, ..first.clone() };
    let mine = [
        Ok(vec![port("a", 1, 10), port("b", 2, 11)]),
        Ok(vec![port("a", 1, 20), port("b", 2, 21)]),
        Ok(vec![port("a", 1, 30), port("b", 1, 31)]),
        Ok(vec![port("a", 1, 40)]),
    ];
    let its = [Ok(vec![port("x", 1, 1000)]), Ok(vec![port("x", 7, 1001)])];
    let (mut mine, counts) = poller(Told(mine.into()), first);
    let (mut its, its_counts) = poller(Told(its.into()), second);
    let (mut other, _) = poller(Told([Ok(vec![port("y", 1, 5)])].into()), elsewhere);
    fn heard(poller: &mut Poller<Told>) -> Vec<(u32, u64)> {
        let batch = poller.poll(&At(0)).expect("told");
        totals(&batch).into_iter().map(|((interface, ..), total)| (interface, total)).collect()
    }
    let contested = |counts: &PollCounts| counts.absent[Absent::Contested as usize].load(Relaxed);
    assert_eq!(heard(&mut mine), [(1, 10), (2, 11)]);
    assert_eq!(heard(&mut its), []);
    assert_eq!(heard(&mut other), [(1, 5)], "another observation point");
    assert_eq!(heard(&mut mine), [(2, 21)]);
    assert_eq!((contested(&counts), contested(&its_counts)), (8, 8));
    // It has another number now, and of the first source two ports have one.
    assert_eq!(heard(&mut its), [(7, 1001)]);
    let before = contested(&counts);
    assert_eq!(heard(&mut mine), []);
    assert_eq!(contested(&counts), before + 16);
    assert_eq!(heard(&mut mine), [(1, 40)]);
}
