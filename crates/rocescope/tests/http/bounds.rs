//! What nobody can hold for ever, or have more of than there is.

use std::time::Duration;

use observe::report::Report;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::client::{PATIENCE, exchange, request};
use crate::export::{last, report};
use crate::site::{Site, described, fill};

/// So many epochs that a page of them all does not fit into the buffers of a connection.
fn many() -> Vec<Vec<Report>> {
    (1..=12_000).map(|id| vec![last(report(id, 1))]).collect()
}

/// Reads until the other side ends; what came.
async fn ended(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut octets = Vec::new();
    let reading = stream.read_to_end(&mut octets);
    // A reset is an end as well.
    _ = timeout(PATIENCE, reading).await.expect("an end in time");
    octets
}

#[tokio::test]
async fn a_request_that_does_not_come_in_time_ends_its_connection() {
    let site = Site::new("late", "", "http_head_timeout_s = 1").start().await;
    let mut silent = site.tcp().await;
    let mut slow = site.tcp().await;
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: local").await.unwrap();
    let mut idle = site.tcp().await;
    let answer = exchange(&mut idle, &request("GET", "/healthz", &[])).await.unwrap();
    assert_eq!(answer.status, 200);
    for stream in [&mut silent, &mut slow, &mut idle] {
        assert!(!ended(stream).await.starts_with(b"HTTP/1.1 200"));
    }
    site.stop().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let site = Site::new("head", "", "http_head_octets_max = 8192").start().await;
    for (octets, status) in [(7_000, 404), (9_000, 431)] {
        let mut stream = site.tcp().await;
        let target = format!("/{}", "a".repeat(100));
        let line = format!("a: {}", "b".repeat(octets));
        let answer = exchange(&mut stream, &request("GET", &target, &[&line])).await.unwrap();
        assert_eq!(answer.status, status);
    }
    let mut stream = site.tcp().await;
    let answer = exchange(&mut stream, b"no HTTP at all\r\n\r\n").await.unwrap();
    assert_eq!(answer.status, 400);
    site.stop().await;
}

#[tokio::test]
async fn a_reader_that_does_not_take_its_answer_in_time_is_cut_off() {
    let limits = "http_answer_timeout_s = 1\nhttp_page_max = 100000";
    let site = Site::new("slow", "", limits);
    fill(&site.data(), &many());
    let site = site.start().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut slow = socket.connect(site.started().http_address().unwrap()).await.unwrap();
    let target = "/api/v1/epochs?limit=100000";
    slow.write_all(&request("GET", target, &[])).await.unwrap();
    let broken = async {
        while !site
            .ask("GET", "/metrics")
            .await
            .text()
            .contains("http_connections_broken_total 1\n")
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, broken).await.expect("it is cut off");
    let got = ended(&mut slow).await.len();
    let whole = site.ask("GET", target).await.body.len();
    assert!(got < whole, "{got} of {whole}");
    site.stop().await;
}

#[tokio::test]
async fn connections_of_strangers_make_room_and_those_of_readers_are_counted() {
    let site = Site::new("room", "", "http_connections_max = 2").start().await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(site.tcp().await);
    }
    let mut known = Vec::new();
    for expected in [200, 200, 503] {
        let mut stream = site.tcp().await;
        let answer = exchange(&mut stream, &request("GET", "/api/v1/limits", &[])).await.unwrap();
        described("GET", "/api/v1/limits", &answer);
        assert_eq!(answer.status, expected);
        known.push(stream);
    }
    // They keep their places, and give them back.
    let mut first = known.remove(0);
    let metrics = exchange(&mut first, &request("GET", "/metrics", &[])).await.unwrap();
    assert!(metrics.text().contains("http_connections_refused_total 1\n"), "{}", metrics.text());
    let evicted = metrics
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("rocescope_collector_http_connections_evicted_total "));
    assert!(evicted.unwrap().parse::<u64>().unwrap() >= 4, "{evicted:?}");
    drop(first);
    let again = async { while site.ask("GET", "/api/v1/limits").await.status != 200 {} };
    timeout(PATIENCE, again).await.expect("a place that was given back");
    site.stop().await;
}

// SEQ-7.10
#[tokio::test]
async fn a_query_that_takes_too_long_is_given_up_and_those_beyond_the_limit_are_refused() {
    let limits = "http_query_timeout_ms = 1\nhttp_page_max = 100000";
    let site = Site::new("long", "", limits);
    fill(&site.data(), &many());
    let site = site.start().await;
    let answer = site.ask("GET", "/api/v1/epochs?limit=100000").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("1"));
    let detail = "the store was not read within 1 ms, limits.http_query_timeout_ms";
    assert_eq!(answer.json()["detail"], detail);
    site.stop().await;

    let limits = "http_queries_max = 1\nhttp_queries_waiting_max = 1\nhttp_page_max = 100000";
    let site = Site::new("waiting", "", limits);
    fill(&site.data(), &many());
    let site = std::sync::Arc::new(site.start().await);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let site = site.clone();
        asking.spawn(async move {
            let mut stream = site.tcp().await;
            let octets = request("GET", "/api/v1/epochs?limit=100000", &[]);
            exchange(&mut stream, &octets).await.unwrap().status
        });
    }
    let mut found = asking.join_all().await;
    found.sort_unstable();
    assert_eq!((found[0], found[11]), (200, 503), "{found:?}");
    assert!(found.iter().all(|status| [200, 503].contains(status)), "{found:?}");
    std::sync::Arc::into_inner(site).unwrap().stop().await;
}
