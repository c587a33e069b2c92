//! Connections of a source of events: octets in any pieces, and what is no event.

use std::sync::Arc;

use observe::queue::meter::{Meter, Settings};
use observe::queue::row::{Measurement, Row};
use observe::queue::{EpochId, Reason};

use crate::queue::events::LINE_OCTETS_MAX;
use crate::queue::feed::{Feed, Over};

type Fresh = Box<dyn FnMut() -> EpochId>;

fn fresh() -> Fresh {
    let mut made = 0;
    Box::new(move || {
        made += 1;
        EpochId::random([made; 16])
    })
}

const SETTINGS: fn() -> Settings =
    || Settings { interval_ns: 1000, queues_max: 2, ..Settings::default() };

fn feed(bad_max: u64) -> Feed<Fresh> {
    Feed::new(SETTINGS(), fresh(), bad_max)
}

fn line(seq: u64, t: u64, queue: &str, event: &str) -> String {
    format!(
        "{{\"seq\":{seq},\"t\":{t},\"interface\":\"e\",\"queue\":\"{queue}\",\"event\":{event}}}\n"
    )
}

fn map(seq: u64, t: u64, queue: &str) -> String {
    line(seq, t, queue, r#""map","priorities":[3],"method":"m","maxError":0"#)
}

fn told(seq: u64, t: u64, queue: &str) -> String {
    line(seq, t, queue, r#""backlog","present":false"#)
}

fn gate(seq: u64, t: u64, queue: &str) -> String {
    line(seq, t, queue, r#""gate","priority":3,"closed":false"#)
}

/// A mapped queue whose state is known, from sequence number 1 to 3.
fn begun(queue: &str) -> String {
    map(1, 0, queue) + &told(2, 0, queue) + &gate(3, 0, queue)
}

/// Everything at once; the rows, and what was said of bad lines.
fn all(feed: &mut Feed<Fresh>, text: &str) -> (Vec<Arc<Row>>, Vec<(u64, String)>) {
    let mut bad = Vec::new();
    feed.octets(text.as_bytes(), &mut |line, why| bad.push((line, why))).expect("goes on");
    (feed.rows(), bad)
}

fn words(rows: &[Arc<Row>]) -> Vec<&'static str> {
    let word = |row: &Arc<Row>| match row.measurement {
        Measurement::Known(_) => row.measurement.word(),
        Measurement::Unknown(reason) => reason.word(),
    };
    rows.iter().map(word).collect()
}

#[test]
fn octets_come_in_any_pieces_and_make_the_rows_of_the_whole() {
    let text = begun("q") + "\r\n \n" + &told(4, 1500, "q") + &told(5, 2500, "q");
    let (expected, bad) = all(&mut feed(1), &text);
    assert_eq!((expected.len(), bad.len()), (2, 0));
    for size in [1, 2, 7, 64, 200] {
        let mut feed = feed(1);
        let mut rows = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            feed.octets(piece, &mut |line, why| panic!("line {line}: {why}")).expect("goes on");
            rows.extend(feed.rows());
        }
        assert_eq!(rows, expected, "in pieces of {size}");
    }
}

// QUE-err.3
#[test]
fn a_line_that_is_no_event_is_a_hole_for_every_queue_and_no_end() {
    for wrong in ["nonsense\n".to_owned(), "{}\n".to_owned(), told(2, 1100, "q"), "\0\n".into()] {
        let mut feed = feed(9);
        let text = begun("q") + &told(4, 1050, "q") + &wrong + &told(5, 1200, "q");
        let text = text + &gate(6, 1200, "q") + &told(7, 2100, "q") + &told(8, 3100, "q");
        let (rows, bad) = all(&mut feed, &text);
        assert_eq!(words(&rows), ["event-based", "capture-gap", "event-based"], "{wrong}");
        assert_eq!(bad.len(), 1);
        assert_eq!(bad[0].0, 5);
        let (counts, met) = feed.counts();
        assert_eq!((counts.lines, counts.bad, met.holes, met.missing), (9, 1, 1, 0), "{wrong}");
    }
}

// QUE-err.3
#[test]
fn what_cannot_be_meant_of_one_queue_is_missing_of_that_one_only() {
    let mut feed = feed(9);
    let other = map(4, 0, "r") + &told(5, 0, "r") + &gate(6, 0, "r") + &told(7, 1050, "r");
    // A priority that is not mapped to it.
    let wrong = line(8, 1100, "q", r#""gate","priority":4,"closed":true"#);
    let rest = told(9, 2100, "q") + &told(10, 2100, "r");
    let (rows, bad) = all(&mut feed, &(begun("q") + &other + &wrong + &rest));
    let of = |queue: &str| {
        let rows: Vec<_> = rows.iter().filter(|row| *row.place.queue == *queue).cloned().collect();
        words(&rows)
    };
    assert_eq!(of("q"), ["event-based", "capture-gap"]);
    assert_eq!(of("r"), ["event-based", "event-based"]);
    assert!(bad[0].1.contains("priority 4, expected one that is mapped: 3"), "{bad:?}");
}

#[test]
fn a_queue_without_room_or_mapping_takes_nothing_from_others() {
    let mut feed = feed(2);
    let mut text = begun("q") + &map(4, 0, "r") + &map(5, 0, "s") + &told(6, 0, "t");
    // More of them than bad lines may be: a device with too many queues is measured all the same.
    for seq in 7..20 {
        text += &told(seq, 1000 + seq, "s");
    }
    let (rows, bad) = all(&mut feed, &(text + &told(20, 2100, "q")));
    let own: Vec<_> = rows.iter().filter(|row| *row.place.queue == *"q").cloned().collect();
    assert_eq!(words(&own), ["event-based", "event-based"]);
    assert!(bad[0].1.contains("one more than the 2 queues"), "{bad:?}");
    assert!(bad[1].1.contains("without a mapping"), "{bad:?}");
    let (counts, met) = feed.counts();
    assert_eq!((counts.passed_over, counts.bad, met.holes), (15, 0, 0));
    assert_eq!(feed.places().count(), 2);
}

#[test]
fn a_line_is_as_long_as_its_limit_and_no_longer_and_its_rest_is_no_line() {
    for (len, bad_lines) in [(LINE_OCTETS_MAX, 0), (LINE_OCTETS_MAX + 1, 1), (1 << 20, 1)] {
        for piece in [1000, 1 << 21] {
            let mut feed = feed(9);
            let mut long = told(5, 1100, "q");
            long.truncate(long.len() - 1);
            long += &" ".repeat(len - long.len());
            long += "\n";
            let text = begun("q") + &told(4, 1050, "q") + &long + &told(6, 2100, "q");
            let mut bad = Vec::new();
            for piece in text.as_bytes().chunks(piece) {
                feed.octets(piece, &mut |line, why| bad.push((line, why))).expect("goes on");
            }
            assert_eq!(bad.len(), bad_lines, "{len} {bad:?}");
            let second = if bad_lines == 0 { "event-based" } else { "capture-gap" };
            assert_eq!(words(&feed.rows()), ["event-based", second]);
            let (_, met) = feed.counts();
            assert_eq!(met.holes, u64::try_from(bad_lines).unwrap());
        }
    }
}

#[test]
fn so_many_bad_lines_in_a_row_end_it_and_one_good_one_between_does_not() {
    let mut feed = feed(3);
    let mut text = begun("q");
    for seq in 4..20 {
        text += &format!("bad\nbad\n{}", told(seq, seq, "q"));
    }
    all(&mut feed, &text);
    let over = feed.octets(b"bad\nbad\nbad\nbad\n", &mut |_, _| {});
    assert_eq!(over, Err(Over::Bad(3)));
}

// QUE-def.6
#[test]
fn a_mapping_that_cannot_be_taken_ends_it() {
    let mut feed = feed(9);
    let wrong = line(4, 9, "q", r#""map","priorities":[3],"method":"m","maxError":1000000001"#);
    let over = feed.octets((begun("q") + &wrong).as_bytes(), &mut |_, _| {}).expect_err("over");
    assert!(over.to_string().contains("maxError 1000000001, expected 0 to 1000000000"), "{over}");
}

// QUE-id.1
#[test]
fn the_end_cuts_what_goes_on_where_the_source_was_last() {
    let mut feed = feed(9);
    let (rows, _) = all(&mut feed, &(begun("q") + &told(4, 1400, "q") + "{\"seq\":5,\"t\":1900"));
    assert_eq!(rows.len(), 1);
    feed.finish();
    let last = feed.rows();
    assert_eq!((last.len(), last[0].start_ns, last[0].duration_ns), (1, 1000, 400));
}

// QUE-err.1
#[test]
fn samples_are_as_far_apart_as_they_can_have_been() {
    let at = |meter: &mut Meter<Fresh>, spread: u64| {
        let line = map(1, 0, "q");
        let line = crate::queue::events::read(line.trim().as_bytes()).expect("an event");
        meter.told(line.told()).expect("taken");
        meter.spread(spread);
        // Less than was so already is not believed.
        meter.spread(1);
        for (seq, t) in (2..).zip((0..=3000).step_by(300)) {
            let line = line_of_sample(seq, t);
            let line = crate::queue::events::read(line.trim().as_bytes()).expect("an event");
            meter.told(line.told()).expect("taken");
        }
        meter.row().expect("a row").measurement
    };
    fn line_of_sample(seq: u64, t: u64) -> String {
        line(seq, t, "q", r#""sample","backlog":true,"gated":false"#)
    }
    for (spread, period) in [(0, Some(300)), (700, Some(1000)), (701, None)] {
        let mut meter = Meter::new(SETTINGS(), fresh());
        let found = at(&mut meter, spread);
        match period {
            Some(period) => assert!(
                format!("{found:?}").contains(&format!("period_ns: {}", period.max(301))),
                "{found:?}"
            ),
            None => assert_eq!(found, Measurement::Unknown(Reason::Other)),
        }
    }
}
