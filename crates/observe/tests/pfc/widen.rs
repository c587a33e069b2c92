//! Narrow counters: what is refused before a poll, and each way a run ends.

use observe::pfc::interval::{Pace, Tick};
use observe::pfc::widen::{
    Begins, NoReading, Promise, Raw, Refused, ResetSign, Widened, Widening, Width,
};

fn promise(bits: u32) -> Promise {
    Promise {
        width: Width::new(bits).unwrap(),
        pace: Pace::per_second(1000).unwrap(),
        poll_ms_max: 1000,
        sign: ResetSign::Resets,
    }
}

fn raw(ms: u64, value: u64) -> Raw {
    Raw { value, tick: Tick { clock: 1, ms }, sign: Some(0) }
}

fn goes_on(total: u64) -> Result<Widened, NoReading> {
    Ok(Widened { total, run: Some(1), begins: None })
}

fn begins(run: u64, why: Begins) -> Result<Widened, NoReading> {
    Ok(Widened { total: 0, run: Some(run), begins: Some(why) })
}

// PFC-exp.3
#[test]
fn a_narrow_counter_whose_resets_do_not_show_is_refused() {
    for bits in [1, 31, 32, 48, 63] {
        let untold = Promise {
            sign: ResetSign::None,
            pace: Pace::per_second(1).unwrap(),
            poll_ms_max: 1,
            ..promise(bits)
        };
        let refused = Widening::new(untold).unwrap_err();
        assert_eq!(refused, Refused::ResetNotTold { width: bits });
        assert!(refused.to_string().contains("resets do not show"), "{refused}");
    }
    assert!(Widening::new(Promise { sign: ResetSign::None, ..promise(64) }).is_ok());
}

// PFC-exp.3
#[test]
fn a_poll_in_which_the_counter_can_go_round_is_refused() {
    // 1000 a second, and a millisecond more than was asked for: 65_534 ms hold 65_535 increments.
    let of = |poll_ms_max| Widening::new(Promise { poll_ms_max, ..promise(16) }).map(|_| ());
    assert_eq!(of(65_533), Ok(()));
    assert_eq!(of(65_534), Ok(()));
    let refused = Refused::PollTooSlow { width: 16, poll_ms: 65_535, needed_ms: 65_534 };
    assert_eq!(of(65_535), Err(refused));
    let words =
        "a counter of 16 bits polled every 65535 ms can wrap unseen, expected at most 65534 ms";
    assert_eq!(refused.to_string(), words);
    let fast = Promise { pace: Pace::per_second(1_000_000_000).unwrap(), ..promise(8) };
    assert!(matches!(Widening::new(fast), Err(Refused::PollTooSlow { needed_ms: 0, .. })));
}

#[test]
fn a_width_has_1_to_64_bits() {
    assert_eq!(Width::new(0), None);
    assert_eq!(Width::new(65), None);
    assert_eq!(Width::new(64).map(Width::get), Some(64));
}

// PFC-exp.3, PFC-sem.1
#[test]
fn wraps_of_every_width_go_on_where_they_were() {
    for bits in [11, 16, 24, 31, 32, 48, 63, 64] {
        let mut widening = Widening::new(promise(bits)).unwrap();
        let top = u64::MAX >> (64 - bits);
        let first = widening.read(raw(0, top - 2)).unwrap();
        assert_eq!(first.begins, Some(Begins::First));
        // One of 64 bits has its whole total already.
        assert_eq!(first.total, if bits == 64 { top - 2 } else { 0 });
        let (then, after) = if bits == 64 { (4, 104) } else { (7, 107) };
        assert_eq!(widening.read(raw(1000, 4)), goes_on(then), "{bits} bits");
        assert_eq!(widening.read(raw(2000, 104)), goes_on(after), "{bits} bits");
    }
}

// PFC-exp.3
#[test]
fn many_rounds_are_all_counted() {
    let mut widening = Widening::new(promise(11)).unwrap();
    let (mut total, mut value) = (0, 0);
    widening.read(raw(0, 0)).unwrap();
    for second in 1..10_000 {
        total += 900;
        value = (value + 900) % 2048;
        assert_eq!(widening.read(raw(second * 1000, value)), goes_on(total));
    }
}

// PFC-exp.3: the limits of what is seen, n - 1, n and n + 1.
#[test]
fn a_poll_that_came_too_late_begins_a_run() {
    for (ms, expected) in [
        (65_533, goes_on(1)),
        (65_534, goes_on(1)),
        (65_535, begins(2, Begins::PollMissed)),
        (u64::MAX, begins(2, Begins::PollMissed)),
    ] {
        let mut widening = Widening::new(promise(16)).unwrap();
        widening.read(raw(0, 5)).unwrap();
        assert_eq!(widening.read(raw(ms, 6)), expected, "{ms}");
    }
}

// PFC-exp.3, PFC-sem.1
#[test]
fn a_reset_begins_at_zero_whether_the_value_falls_or_grows() {
    for sign in [ResetSign::Resets, ResetSign::Instance] {
        for value in [0, 4, 5, 6, 500] {
            let mut widening = Widening::new(Promise { sign, ..promise(32) }).unwrap();
            widening.read(raw(0, 5)).unwrap();
            let reset = Raw { sign: Some(1), ..raw(1000, value) };
            assert_eq!(widening.read(reset), begins(2, Begins::Reset));
            let then = Raw { sign: Some(1), ..raw(2000, value + 3) };
            assert_eq!(widening.read(then), Ok(Widened { total: 3, run: Some(2), begins: None }));
        }
    }
}

// PFC-exp.3
#[test]
fn an_uptime_that_does_not_reach_back_to_the_last_reading_is_a_reset() {
    let sign = ResetSign::Uptime { resolution_ms: 10 };
    for (uptime, expected) in [
        (1010, begins(2, Begins::Reset)),
        (1011, goes_on(1)),
        (1012, goes_on(1)),
        (0, begins(2, Begins::Reset)),
    ] {
        let mut widening = Widening::new(Promise { sign, ..promise(32) }).unwrap();
        widening.read(Raw { sign: Some(50), ..raw(0, 5) }).unwrap();
        let next = Raw { sign: Some(uptime), ..raw(1000, 6) };
        assert_eq!(widening.read(next), expected, "uptime {uptime}");
    }
}

// PFC-exp.3
#[test]
fn more_than_was_promised_is_no_count() {
    for (value, expected) in
        [(1000, goes_on(1000)), (1001, goes_on(1001)), (1002, begins(2, Begins::TooMany))]
    {
        let mut widening = Widening::new(promise(32)).unwrap();
        widening.read(raw(0, 0)).unwrap();
        assert_eq!(widening.read(raw(1000, value)), expected, "{value}");
    }
    // A value that falls without a word, which would be a wrap of almost a whole round.
    let mut widening = Widening::new(promise(32)).unwrap();
    widening.read(raw(0, 5)).unwrap();
    assert_eq!(widening.read(raw(1000, 4)), begins(2, Begins::TooMany));
}

#[test]
fn another_clock_begins_a_run() {
    let mut widening = Widening::new(promise(32)).unwrap();
    widening.read(raw(1000, 5)).unwrap();
    let other = Raw { tick: Tick { clock: 2, ms: 0 }, ..raw(0, 6) };
    assert_eq!(widening.read(other), begins(2, Begins::ClockStepped));
}

#[test]
fn what_is_no_reading_leaves_the_counter_as_it_was() {
    let mut widening = Widening::new(promise(16)).unwrap();
    widening.read(raw(1000, 5)).unwrap();
    assert_eq!(
        widening.read(raw(2000, 65_536)),
        Err(NoReading::TooWide { value: 65_536, width: 16 })
    );
    assert_eq!(widening.read(Raw { sign: None, ..raw(2000, 6) }), Err(NoReading::NoSign));
    assert_eq!(widening.read(raw(1000, 6)), Err(NoReading::NotLater));
    assert_eq!(widening.read(raw(999, 6)), Err(NoReading::NotLater));
    assert_eq!(widening.read(raw(1001, 6)), goes_on(1));
}

// PFC-sem.2
#[test]
fn a_wide_counter_without_a_sign_is_of_no_known_run() {
    let untold = Promise { sign: ResetSign::None, ..promise(64) };
    let mut widening = Widening::new(untold).unwrap();
    let plain = |ms, value| Raw { sign: None, ..raw(ms, value) };
    let first = widening.read(plain(0, 700)).unwrap();
    assert_eq!(first, Widened { total: 700, run: None, begins: Some(Begins::First) });
    // It fell: what the source says now is what is exported.
    let fell = widening.read(plain(1000, 3)).unwrap();
    assert_eq!((fell.total, fell.run), (3, None));
}
