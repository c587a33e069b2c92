//! Who gets in: real handshakes, good and bad.

use std::process::Command;
use std::time::{Duration, SystemTime};

use rcgen::ExtendedKeyUsagePurpose;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{AGENT, Authority, Connection, Identity, Site, exported, last, report};

/// What the collector says to a client that it does not want: the end, in one way or another.
async fn turned_away(connection: std::io::Result<Connection>) {
    let Ok(mut connection) = connection else { return };
    let mut octets = Vec::new();
    // A client of TLS 1.3 is through with its own part before it is verified.
    let end = connection.read_to_end(&mut octets).await;
    assert!(end.is_err() || octets.is_empty(), "{octets:?}");
}

async fn refused(site: &Site, identity: Option<&Identity>, counter: &str) {
    let before = site.number(counter);
    turned_away(site.connect(identity).await).await;
    site.until("it is refused", |site| site.number(counter) == before + 1).await;
    assert_eq!(site.number("sessions_opened_total"), 0);
    assert_eq!(site.kept.sessions(), []);
}

async fn admitted(site: &Site) {
    let before = site.kept.epochs().len();
    let mut agent = site.agent().await;
    agent.write_all(&exported(1, &[last(report(1, 1))])).await.unwrap();
    site.until("the epoch is kept", |site| site.kept.epochs().len() > before).await;
    agent.shutdown().await.unwrap();
}

// SEQ-10.1
#[tokio::test]
async fn a_peer_without_a_certificate_is_refused() {
    let mut site = Site::new("no_certificate", "").start().await;
    refused(&site, None, "handshakes_failed_total").await;
    admitted(&site).await;
    site.stop().await;
}

// SEQ-10.1
#[tokio::test]
async fn certificates_of_another_authority_or_another_time_or_use_are_refused() {
    let mut site = Site::new("bad_certificate", "").start().await;
    let failed = "handshakes_failed_total";
    refused(&site, Some(&Authority::new().client(AGENT, 2)), failed).await;
    let (client, server) =
        (ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth);
    let minute = Duration::from_secs(60);
    let expired = site.authority.issue(AGENT, 3, client.clone(), SystemTime::now() - minute);
    refused(&site, Some(&expired), failed).await;
    let days = Duration::from_secs(10 * 86_400);
    let early = site.authority.issue(AGENT, 4, client, SystemTime::now() + days);
    refused(&site, Some(&early), failed).await;
    let hour = Duration::from_secs(3_600);
    let wrong_use = site.authority.issue(AGENT, 5, server, SystemTime::now() + hour);
    refused(&site, Some(&wrong_use), failed).await;
    admitted(&site).await;
    site.stop().await;
}

// SEQ-10.1
#[tokio::test]
async fn a_revoked_certificate_is_refused() {
    let site = Site::new("revoked", "");
    site.write("revoked.pem", &site.authority.revoke(9));
    site.configure("revocation = \"revoked.pem\"", "", "");
    let mut site = site.start().await;
    let revoked = site.authority.client(AGENT, 9);
    refused(&site, Some(&revoked), "handshakes_failed_total").await;
    admitted(&site).await;
    site.stop().await;
}

// SEQ-10.1
#[tokio::test]
async fn a_peer_of_the_right_authority_that_is_not_listed_is_refused() {
    let mut site = Site::new("unlisted", "").start().await;
    for name in ["other.example", "sub.agent.example", "agent.example.org"] {
        let identity = site.authority.client(name, 2);
        refused(&site, Some(&identity), "peers_denied_total").await;
    }
    admitted(&site).await;
    site.stop().await;
}

// SEQ-10.1
#[tokio::test]
async fn a_peer_can_be_listed_by_the_fingerprint_of_its_certificate() {
    let site = Site::new("fingerprint", "");
    let identity = site.authority.client("anything.example", 2);
    site.write("agent.pem", &identity.pem);
    let openssl = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(site.directory.join("agent.pem"))
        .output()
        .unwrap();
    let printed = String::from_utf8(openssl.stdout).unwrap();
    let (_, fingerprint) = printed.trim().split_once('=').unwrap();
    let peer = format!("[[ipfix.peer]]\nfingerprint = \"sha256:{fingerprint}\"\ndomains = [7]\n");
    site.configure("", &peer, "");
    let mut site = site.start().await;
    let mut connection = site.connect(Some(&identity)).await.unwrap();
    connection.write_all(&exported(7, &[report(1, 1)])).await.unwrap();
    site.until("the epoch is kept", |site| site.kept.epochs().len() == 1).await;
    let digits = fingerprint.replace(':', "").to_lowercase();
    assert_eq!(site.kept.sessions()[0].peer, format!("sha256:{digits}"));
    site.stop().await;
}

// SEQ-10.1, SEQ-10.3
#[tokio::test]
async fn a_peer_outside_its_domains_has_its_records_refused_and_counted() {
    let mut site = Site::new("foreign_domain", "").start().await;
    let mut agent = site.agent().await;
    agent.write_all(&exported(2, &[report(1, 1), report(1, 2)])).await.unwrap();
    agent.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    site.until("the own epoch is kept", |site| !site.kept.epochs().is_empty()).await;
    assert_eq!(site.number("records_refused_total"), 2);
    assert_eq!(site.kept.epochs().len(), 1);
    site.stop().await;
}

/// Connects by OpenSSL with the given highest version, and tells the version that came about.
const OPENSSL_CLIENT: &str = "
import socket, ssl, sys
port, version, directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(directory + '/ca.pem')
context.load_cert_chain(directory + '/agent.pem', directory + '/agent.key')
context.minimum_version = ssl.TLSVersion.TLSv1_2
context.maximum_version = getattr(ssl.TLSVersion, version)
try:
    raw = socket.create_connection(('127.0.0.1', port), timeout=20)
    stream = context.wrap_socket(raw, server_hostname='localhost')
    print(stream.version())
    stream.unwrap()
except ssl.SSLError as error:
    print('refused', error.reason)
";

// SEQ-10.1
#[tokio::test]
async fn tls_1_2_is_refused_and_tls_1_3_of_another_library_taken() {
    let site = Site::new("versions", "");
    let identity = site.authority.client(AGENT, 2);
    site.write("agent.pem", &identity.pem);
    site.write("agent.key", &identity.key);
    let mut site = site.start().await;
    let port = site.running().address().unwrap().port().to_string();
    for (version, expected) in
        [("TLSv1_2", "refused TLSV1_ALERT_PROTOCOL_VERSION"), ("TLSv1_3", "TLSv1.3")]
    {
        let mut python = tokio::process::Command::new("python3");
        python.args(["-c", OPENSSL_CLIENT, &port, version]).arg(&site.directory);
        let output = python.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
    }
    site.until("the good one had its session", |site| site.kept.ends().len() == 1).await;
    assert_eq!(site.number("handshakes_failed_total"), 1);
    site.stop().await;
}

// SEQ-10.3
#[tokio::test]
async fn a_good_exporter_gets_in_although_silent_connections_hold_every_place() {
    let limits = "handshakes_max = 4\nhandshake_timeout_s = 300";
    let mut site = Site::new("silent", limits).start().await;
    let mut silent = Vec::new();
    for n in 0..16_u64 {
        let mut stream = site.tcp().await;
        if n % 2 == 0 {
            // As if a handshake began.
            stream.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
        }
        silent.push(stream);
    }
    site.until("all were taken", |site| site.number("connections_total") == 16).await;
    admitted(&site).await;
    // Four hold places at the end, the good one perhaps among them.
    assert!(site.number("handshakes_evicted_total") >= 12);
    site.stop().await;
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_ends() {
    let mut site = Site::new("late", "handshake_timeout_s = 1").start().await;
    let mut silent = site.tcp().await;
    let mut octets = Vec::new();
    _ = silent.read_to_end(&mut octets).await;
    site.until("it is counted", |site| site.number("handshakes_late_total") == 1).await;
    site.stop().await;
}

#[tokio::test]
async fn what_is_not_tls_is_refused_at_its_first_octets() {
    let mut site = Site::new("not_tls", "").start().await;
    for (n, first) in
        [&exported(1, &[report(1, 1)])[..], b"GET / HTTP/1.0\r\n\r\n"].iter().enumerate()
    {
        let mut stream = site.tcp().await;
        stream.write_all(first).await.unwrap();
        _ = stream.read_to_end(&mut Vec::new()).await;
        let count = n as u64 + 1;
        site.until("it is counted", |s| s.number("connections_not_tls_total") == count).await;
    }
    assert_eq!(site.number("sessions_opened_total"), 0);
    site.stop().await;
}

// SEQ-10.1
#[tokio::test]
async fn a_reload_ends_the_sessions_of_those_who_are_no_longer_admitted() {
    let mut site = Site::new("reload", "").start().await;
    let mut agent = site.agent().await;
    agent.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    site.until("the epoch is kept", |site| site.kept.epochs().len() == 1).await;

    // A file that cannot be used leaves all as it was.
    let key = super::support::text(&site.directory.join("collector.key"));
    site.write("collector.key", "no key");
    let problem = site.running().reload(&site.config()).unwrap_err();
    assert!(problem.contains("line 4: ipfix.key: "), "{problem}");
    site.write("collector.key", &key);
    admitted(&site).await;
    let open = |site: &Site| site.number("sessions");
    site.until("only the first is open", |site| open(site) == 1).await;

    site.write("revoked.pem", &site.authority.revoke(2));
    site.configure("revocation = \"revoked.pem\"", "", "");
    site.running().reload(&site.config()).unwrap();
    site.until("no session is open", |site| open(site) == 0).await;
    let (_, reason) = site.kept.ends().pop().unwrap();
    assert!(reason.starts_with("no longer admitted: "), "{reason}");
    let incomplete = (1, 1, 1, observe::outcome::Outcome::Incomplete);
    assert!(site.kept.epochs().contains(&incomplete));
    let again = site.authority.client(AGENT, 2);
    turned_away(site.connect(Some(&again)).await).await;
    site.until("it is refused", |site| site.number("handshakes_failed_total") == 1).await;
    assert_eq!(site.number("reloads_refused_total"), 1);
    site.stop().await;
}

// SEQ-7.10
#[tokio::test]
async fn sessions_beyond_the_limit_of_a_peer_are_refused() {
    let mut site = Site::new("sessions", "sessions_per_peer_max = 1").start().await;
    let mut first = site.agent().await;
    first.write_all(&exported(1, &[report(1, 1)])).await.unwrap();
    site.until("the first is there", |site| site.number("sessions") == 1).await;
    let identity = site.authority.client(AGENT, 2);
    turned_away(site.connect(Some(&identity)).await).await;
    site.until("it is refused", |site| site.number("sessions_refused_total") == 1).await;
    first.shutdown().await.unwrap();
    site.until("the first is over", |site| site.number("sessions") == 0).await;
    admitted(&site).await;
    site.stop().await;
}
