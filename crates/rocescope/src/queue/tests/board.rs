//! Rows on the board: replaced whole, followed in order, bounded.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use observe::pfc::Priority;
use observe::queue::row::{Measurement, Row};
use observe::queue::{EpochId, Place, Priorities, Reason};

use crate::queue::board::{Batch, Board, Follower, Heard, Limits};

fn row(interface: &str, queue: &str, interval: u64) -> Arc<Row> {
    Arc::new(Row {
        place: Arc::new(Place { interface: interface.into(), queue: queue.into() }),
        epoch: EpochId::random([7; 16]),
        interval,
        start_ns: interval * 100,
        duration_ns: 100,
        wall_clock_start: None,
        priorities: Priorities::one(Priority::ALL[3]),
        measurement: Measurement::Unknown(Reason::Unavailable),
    })
}

/// What is there to be heard now, if anything is.
fn heard(follower: &mut Follower) -> Option<Heard> {
    match pin!(follower.next()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(heard) => Some(heard.expect("a board")),
        Poll::Pending => None,
    }
}

fn of(rows: &[Arc<Row>]) -> Heard {
    Heard::Batch(Batch { rows: rows.into(), gone: [].into() })
}

// QUE-pub.1
#[test]
fn only_the_latest_row_of_a_queue_is_there_and_who_has_an_earlier_one_keeps_all_of_it() {
    let board = Board::new(Limits::default());
    board.publish(vec![row("b", "q1", 1), row("a", "q9", 1), row("a", "q10", 1)]);
    let held = board.latest();
    board.publish(vec![row("a", "q9", 2), row("a", "q9", 3)]);
    let expected = [row("a", "q10", 1), row("a", "q9", 3), row("b", "q1", 1)];
    assert_eq!(board.latest(), expected);
    assert_eq!(held[1], row("a", "q9", 1));
    assert_eq!(board.latest_of("a"), expected[..2]);
    assert_eq!(board.latest_of(""), []);
    assert_eq!(board.latest_of("b"), expected[2..]);
    let counts = board.counts();
    assert_eq!((counts.rows, counts.queues, counts.batches, counts.refused), (5, 3, 2, 0));
}

#[test]
fn a_row_of_one_queue_more_than_there_is_room_for_is_left_out_and_counted() {
    let board = Board::new(Limits { queues_max: 2, batches_max: 4, ..Limits::default() });
    let mut follower = board.follow();
    board.publish(vec![row("a", "q1", 1), row("a", "q2", 1), row("a", "q3", 1)]);
    assert_eq!(heard(&mut follower), Some(of(&[row("a", "q1", 1), row("a", "q2", 1)])));
    let before = board.changed();
    board.publish(vec![row("a", "q3", 2)]);
    assert_eq!(board.changed(), before, "nothing has changed");
    assert_eq!(heard(&mut follower), None);
    board.publish(vec![row("a", "q2", 2)]);
    assert_eq!(board.latest(), [row("a", "q1", 1), row("a", "q2", 2)]);
    assert_eq!(board.counts().refused, 2);
    // What is taken away makes room in the same step.
    let (gone, never) = (row("a", "q1", 1).place.clone(), row("z", "q1", 1).place.clone());
    board.exchange(0, vec![row("a", "q3", 3)], vec![gone.clone(), never]);
    assert_eq!(board.latest(), [row("a", "q2", 2), row("a", "q3", 3)]);
    assert_eq!(heard(&mut follower), Some(of(&[row("a", "q2", 2)])));
    let expected = Batch { rows: [row("a", "q3", 3)].into(), gone: [gone].into() };
    assert_eq!(heard(&mut follower), Some(Heard::Batch(expected)));
}

// QUE-id.1
#[test]
fn a_queue_is_of_the_source_that_published_it_first() {
    let board = Board::new(Limits::default());
    board.exchange(1, vec![row("a", "q", 1)], Vec::new());
    board.exchange(2, vec![row("a", "q", 9), row("b", "q", 9)], Vec::new());
    assert_eq!(board.latest(), [row("a", "q", 1), row("b", "q", 9)]);
    assert_eq!(board.counts().refused, 1);
    let place = row("a", "q", 1).place.clone();
    board.exchange(2, Vec::new(), vec![place.clone()]);
    assert_eq!(board.latest().len(), 2, "it is not this source's");
    board.exchange(1, Vec::new(), vec![place]);
    board.exchange(2, vec![row("a", "q", 10)], Vec::new());
    assert_eq!(board.latest_of("a"), [row("a", "q", 10)]);
}

#[test]
fn a_follower_hears_every_batch_in_order_and_a_slow_one_how_many_it_has_missed() {
    let board = Board::new(Limits { queues_max: 9, batches_max: 4, ..Limits::default() });
    let (mut follower, mut slow) = (board.follow(), board.follow());
    for interval in 1..=6 {
        board.publish(vec![row("a", "q", interval)]);
        assert_eq!(heard(&mut follower), Some(of(&[row("a", "q", interval)])));
    }
    assert_eq!(heard(&mut follower), None);
    assert_eq!(heard(&mut slow), Some(Heard::Missed(2)));
    for interval in 3..=6 {
        assert_eq!(heard(&mut slow), Some(of(&[row("a", "q", interval)])));
    }
    assert_eq!(heard(&mut slow), None);
    assert_eq!((board.counts().missed, board.counts().followers), (2, 2));
    drop(follower);
    assert_eq!(board.counts().followers, 1);
}

// QUE-sec.1
#[test]
fn what_waits_for_followers_is_bounded_by_rows_and_given_up_once_they_have_it() {
    let board = Board::new(Limits { queues_max: 9, batches_max: 100, rows_max: 6 });
    let two = |interval| vec![row("a", "q", interval), row("b", "q", interval)];
    board.publish(two(1));
    assert_eq!(board.counts().waiting, 0, "nobody follows");
    let (mut follower, mut slow) = (board.follow(), board.follow());
    for (interval, waiting) in [(2, 2), (3, 4), (4, 6), (5, 6)] {
        board.publish(two(interval));
        assert_eq!(board.counts().waiting, waiting, "{interval}");
    }
    assert_eq!(heard(&mut follower), Some(Heard::Missed(1)));
    assert_eq!(heard(&mut follower), Some(of(&two(3))));
    assert_eq!(board.counts().waiting, 6, "one has not heard it");
    assert_eq!(heard(&mut slow), Some(Heard::Missed(1)));
    assert_eq!(heard(&mut slow), Some(of(&two(3))));
    assert_eq!(board.counts().waiting, 4);
    // What one that has gone has not heard waits for the others alone.
    drop(slow);
    assert_eq!(heard(&mut follower), Some(of(&two(4))));
    assert_eq!(board.counts().waiting, 2);
    // One batch beyond the limit is missed by itself; the latest rows are there all the same.
    board.publish((1..=7).map(|interval| row("c", "q", interval)).collect());
    assert_eq!(board.counts().waiting, 0);
    assert_eq!(heard(&mut follower), Some(Heard::Missed(2)));
    assert_eq!(heard(&mut follower), None);
    assert_eq!(board.latest_of("c"), [row("c", "q", 7)]);
    // And it is not behind any more.
    board.publish(two(8));
    assert_eq!(heard(&mut follower), Some(of(&two(8))));
    assert_eq!(board.counts().missed, 4);
}

#[tokio::test]
async fn a_follower_that_waits_is_woken_by_the_next_batch_and_by_the_end() {
    let board = Arc::new(Board::new(Limits::default()));
    let mut follower = board.follow();
    let waits = tokio::spawn(async move {
        let heard = follower.next().await;
        (heard, follower.next().await)
    });
    tokio::task::yield_now().await;
    board.publish(vec![row("a", "q", 1)]);
    tokio::task::yield_now().await;
    drop(board);
    assert_eq!(waits.await.unwrap(), (Some(of(&[row("a", "q", 1)])), None));
}

#[test]
fn whatever_is_published_changes_the_generation_and_nothing_else_does() {
    let board = Board::new(Limits::default());
    let first = board.changed();
    board.publish(Vec::new());
    _ = (board.latest(), board.follow());
    assert_eq!(board.changed(), first);
    board.publish(vec![row("a", "q", 1)]);
    let second = board.changed();
    assert!(second.0 != first.0 && second.1 >= first.1);
    board.exchange(0, Vec::new(), vec![row("a", "q", 1).place.clone()]);
    assert_ne!(board.changed().0, second.0);
}

#[test]
fn a_follower_hears_what_was_published_to_the_end_and_then_that_it_is_over() {
    let board = Board::new(Limits::default());
    let mut follower = board.follow();
    board.publish(vec![row("a", "q", 1)]);
    drop(board);
    assert_eq!(heard(&mut follower), Some(of(&[row("a", "q", 1)])));
    let over = pin!(follower.next()).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(over, Poll::Ready(None));
}
