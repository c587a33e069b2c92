//! What becomes of what comes in.

use std::time::Duration;

use observe::outcome::Outcome::{Active, Complete, Incomplete};
use tokio::io::AsyncWriteExt;

use super::support::{Export, Site, exported, last, report};

// SEQ-7.13
#[tokio::test]
async fn a_connection_that_is_cut_leaves_its_open_epochs_incomplete() {
    let mut site = Site::new("cut", "").start().await;
    let mut agent = site.agent().await;
    let reports = [last(report(1, 1)), report(2, 1)];
    agent.write_all(&exported(1, &reports)).await.unwrap();
    agent.flush().await.unwrap();
    site.until("both are kept", |site| site.kept.epochs().len() == 2).await;
    // Without a TLS close.
    drop(agent.into_inner().0);
    site.until("the session is over", |site| site.kept.ends().len() == 1).await;
    let expected = [(1, 1, 1, Complete), (1, 2, 1, Active), (1, 2, 1, Incomplete)];
    assert_eq!(site.kept.epochs(), expected);
    assert_eq!(site.kept.ends()[0].1, "cut: the connection ended without a TLS close");
    site.stop().await;
}

#[tokio::test]
async fn a_session_that_the_exporter_closes_ends_as_such() {
    let mut site = Site::new("closed", "").start().await;
    let mut agent = site.agent().await;
    agent.write_all(&exported(1, &[last(report(1, 1))])).await.unwrap();
    agent.shutdown().await.unwrap();
    site.until("the session is over", |site| site.kept.ends().len() == 1).await;
    assert_eq!(site.kept.ends(), [(1, "closed by the exporter".to_owned())]);
    assert_eq!(site.kept.epochs(), [(1, 1, 1, Complete)]);
    assert_eq!((site.number("epochs"), site.number("sessions_closed_total")), (0, 1));
    site.stop().await;
}

// SEQ-10.2, SEQ-4.1
#[tokio::test]
async fn two_sessions_of_one_peer_do_not_touch_each_other() {
    let mut site = Site::new("interleaved", "").start().await;
    let (mut one, mut two) = (site.agent().await, site.agent().await);
    let (mut export_one, begin_one) = Export::new(1);
    let (mut export_two, begin_two) = Export::new(1);
    one.write_all(&begin_one).await.unwrap();
    two.write_all(&begin_two).await.unwrap();
    for id in 1..=3 {
        one.write_all(&export_one.reports(&[report(1, id)])).await.unwrap();
        let kept = usize::try_from(2 * id - 1).unwrap();
        site.until("one is kept", |site| site.kept.epochs().len() == kept).await;
        two.write_all(&export_two.reports(&[report(1, id)])).await.unwrap();
        site.until("two is kept", |site| site.kept.epochs().len() == kept + 1).await;
    }
    one.write_all(&export_one.reports(&[last(report(1, 4))])).await.unwrap();
    one.shutdown().await.unwrap();
    two.shutdown().await.unwrap();
    site.until("both are over", |site| site.kept.ends().len() == 2).await;
    let of = |session| {
        let all = site.kept.epochs();
        all.into_iter().filter(|(of, ..)| *of == session).map(|e| (e.2, e.3)).collect::<Vec<_>>()
    };
    let mut outcomes = [of(1), of(2)];
    outcomes.sort();
    assert_eq!(outcomes[0], [(1, Active), (2, Active), (3, Active), (3, Incomplete)]);
    assert_eq!(outcomes[1], [(1, Active), (2, Active), (3, Active), (4, Complete)]);
    assert_eq!(site.number("records_refused_total"), 0);
    site.stop().await;
}

// SEQ-7.15, SEQ-10.3
#[tokio::test]
async fn while_the_disk_is_full_nothing_is_read_and_nothing_dropped() {
    let site = Site::new("disk_full", "");
    // Far less than the disk is full: what waits in the socket is not held to have been silent.
    site.configure("inactivity_timeout_s = 1", "", "reports_waiting_max = 1");
    let mut site = site.start().await;
    let mut agent = site.agent().await;
    let (mut export, begin) = Export::new(1);
    agent.write_all(&begin).await.unwrap();
    agent.write_all(&export.reports(&[report(1, 1)])).await.unwrap();
    site.until("the first is kept", |site| site.kept.epochs().len() == 1).await;

    site.kept.fill(true);
    // More than sockets hold.
    let reports: Vec<_> = (2..=100_000).map(|id| report(1, id)).collect();
    let octets = export.reports(&reports);
    let sending = tokio::spawn(async move {
        agent.write_all(&octets).await.unwrap();
        agent
    });
    site.until("the store fails", |site| site.number("store_failing") == 1).await;
    // Nothing moves any more, however often it is tried.
    site.until("it was tried often", |site| site.number("store_failures_total") >= 7).await;
    assert!(!sending.is_finished());
    assert!(site.number("changes_waiting") < 2_000, "{}", site.number("changes_waiting"));
    assert_eq!(site.kept.epochs().len(), 1);
    assert!(site.running().metrics().store().unwrap().disk_full);

    site.kept.fill(false);
    let mut agent = sending.await.unwrap();
    agent.write_all(&export.reports(&[last(report(1, 100_001))])).await.unwrap();
    agent.shutdown().await.unwrap();
    site.until("the session is over", |site| site.kept.ends().len() == 1).await;
    let epochs = site.kept.epochs();
    // What waited is not written one by one.
    assert!(epochs.len() <= 100_001, "{}", epochs.len());
    assert_eq!(epochs.last(), Some(&(1, 1, 100_001, Complete)));
    assert_eq!((site.number("store_failing"), site.number("changes_dropped_total")), (0, 0));
    site.stop().await;
}

// SEQ-7.13
#[tokio::test]
async fn a_stop_leaves_open_epochs_incomplete_and_keeps_everything() {
    let mut site = Site::new("stop", "").start().await;
    let mut agent = site.agent().await;
    agent.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    site.until("the epoch is kept", |site| site.kept.epochs().len() == 1).await;
    site.stop().await;
    assert_eq!(site.kept.epochs(), [(1, 1, 1, Active), (1, 1, 1, Incomplete)]);
    assert_eq!(site.kept.ends(), [(1, "the collector stops".to_owned())]);
}

#[tokio::test]
async fn a_session_that_sends_something_else_ends_with_the_reason() {
    let mut site = Site::new("something_else", "").start().await;
    let mut agent = site.agent().await;
    agent.write_all(b"hello, collector\r\n").await.unwrap();
    site.until("the session is over", |site| site.kept.ends().len() == 1).await;
    let expected = "the text \"hello, collector\", expected an IPFIX message";
    assert_eq!(site.kept.ends()[0].1, expected);
    assert_eq!(site.number("sessions_broken_total"), 1);
    site.stop().await;
}

#[tokio::test]
async fn a_session_without_a_message_ends_in_time() {
    let limits = "first_message_timeout_s = 1\nsession_idle_timeout_s = 3";
    let mut site = Site::new("first_message", limits).start().await;
    let mut agent = site.agent().await;
    agent.write_all(&[0, 10]).await.unwrap();
    site.until("the session is over", |site| site.kept.ends().len() == 1).await;
    assert_eq!(site.kept.ends()[0].1, "no message in 1 s");
    let mut idle = site.agent().await;
    idle.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    site.until("the session is over", |site| site.kept.ends().len() == 2).await;
    assert_eq!(site.kept.ends()[1].1, "no message for 3 s");
    site.stop().await;
}

// SEQ-7.10
#[tokio::test]
async fn a_peer_that_sends_more_messages_than_its_rate_is_read_more_slowly() {
    let mut site = Site::new("paced", "messages_per_second_max = 50").start().await;
    let mut agent = site.agent().await;
    let (mut export, begin) = Export::new(1);
    let latest = |site: &Site| site.kept.epochs().last().map(|epoch| epoch.2);
    let began = std::time::Instant::now();
    agent.write_all(&begin).await.unwrap();
    for id in 1..=150 {
        agent.write_all(&export.reports(&[report(1, id)])).await.unwrap();
        agent.flush().await.unwrap();
        if id % 40 == 0 {
            // Apart, so that they are not all read at once.
            site.until("they are kept", |site| latest(site) == Some(id)).await;
        }
    }
    site.until("all are kept", |site| latest(site) == Some(150)).await;
    assert!(site.number("sessions_paced_total") > 0);
    // A second is free.
    assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
    site.stop().await;
}
