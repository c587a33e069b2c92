//! A collector that takes a connection and then reads nothing: the agent's memory has a bound, it
//! skips reports without spending ids on them, and gives the session up in time.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use serde_json::Value;

use crate::proxy::Cable;
use crate::site::{Program, ROCESCOPE, Site, until};

const STREAMS: u32 = 2_000;
const MEMORY_MAX: u64 = 200 << 20;

fn server(site: &Site) -> ServerConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(site.path("ca.pem")).expect("a file")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .expect("a verifier");
    let chain = vec![CertificateDer::from_pem_file(site.path("collector.pem")).expect("a file")];
    let key = PrivateKeyDer::from_pem_file(site.path("collector.key")).expect("a key");
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("versions")
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .expect("a server")
}

/// The next connection, its handshake done and nothing more.
fn shaken(listener: &TcpListener, config: &Arc<ServerConfig>) -> (TcpStream, ServerConnection) {
    let (mut tcp, _) = listener.accept().expect("an agent");
    let mut tls = ServerConnection::new(config.clone()).expect("a connection");
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp).expect("a handshake");
    }
    (tcp, tls)
}

/// A pcap frame of one request, so many seconds after 1970.
fn request(seconds: u32, qp: u32, psn: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 44, 0, 0, 0x40, 0];
    frame.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7, 0, 24, 0, 0]);
    frame.extend([4, 0, 0xff, 0xff]);
    frame.extend(qp.to_be_bytes());
    frame.extend(psn.to_be_bytes());
    frame.extend([0; 4]);
    let len = u32::try_from(frame.len()).expect("short");
    let header: Vec<u8> =
        [seconds, 0, len, len].iter().flat_map(|word| word.to_le_bytes()).collect();
    [header, frame].concat()
}

fn status(site: &Site) -> Value {
    let output = Command::new(ROCESCOPE)
        .args(["agent", "ctl", "--socket"])
        .arg(site.path("c.sock"))
        .arg("status")
        .output()
        .expect("the control program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().next().unwrap_or_else(|| panic!("no status: {said}"));
    serde_json::from_str(line).expect("JSON")
}

// SEQ-10.3, SEQ-6.4, SEQ-4.5
#[test]
fn a_collector_that_reads_nothing_costs_reports_and_no_memory_and_no_ids() {
    let site = Site::new("stalled");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let cable = Cable::new();
    cable.leads_to(listener.local_addr().expect("bound").port());
    let port = cable.port;
    let pipe = site.path("live.pcap");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let text = format!(
        "[observation]\ndomain = 1\npoint = 9\n\
         [agent]\ncontrol_socket = \"c.sock\"\nstalled_timeout_s = 6\noctets_queued_max = 65536\n\
         [[rule]]\nsources = [\"0.0.0.0/0\"]\ndestinations = [\"0.0.0.0/0\"]\nwindow = 64\n\
         [rule.attest]\nsend_write_only = true\ncomplete_capture = true\nall_paths = true\n\
         half_space = true\nseparate_namespaces = true\n\
         [[source]]\nfile = \"live.pcap\"\npace = \"fast\"\n\
         [[export]]\ncollector = \"127.0.0.1:{port}\"\nreport_interval_s = 1\n\
         server_name = \"localhost\"\ncertificate = \"agent.pem\"\nkey = \"agent.key\"\n\
         authority = \"ca.pem\"\n"
    );
    fs::write(site.path("agent.toml"), text).expect("written");
    let mut agent = Program::start(&["agent", "--config"], &site.path("agent.toml"));
    let config = Arc::new(server(&site));
    let first = shaken(&listener, &config);

    // Every stream has a request at all times: without a bound, megaoctets would wait.
    let generator = thread::spawn(move || {
        let mut file = fs::File::options().write(true).open(pipe).expect("a reader");
        let header: [u32; 6] = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1];
        header.iter().for_each(|word| file.write_all(&word.to_le_bytes()).expect("written"));
        for psn in 0.. {
            for qp in 1..=STREAMS {
                // Until the agent has gone.
                if file.write_all(&request(1_000 + psn / 20, qp, psn)).is_err() {
                    return;
                }
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    agent.line("given up");
    let after = status(&site);
    assert_eq!(after["stalled"], 1, "{after}");
    assert!(after["skippedReports"].as_u64().is_some_and(|n| n > u64::from(STREAMS)), "{after}");
    // What was serialised is at most what sockets and queue hold.
    let reports = after["reports"].as_u64().expect("a number");
    assert!(reports * 120 < 16 << 20, "{after}");
    assert!(agent.memory_peak() < MEMORY_MAX, "{} octets", agent.memory_peak());
    drop(first);

    // The next session begins afresh, with a collector that judges every report.
    site.configure("1", "", "");
    let collector = site.collector();
    cable.leads_to(collector.port);
    cable.cut();
    drop(listener);
    until("every stream is there", || site.rows().len() >= STREAMS as usize);
    agent.signal("TERM");
    assert_eq!(agent.ended(), Some(0), "{}", agent.said());
    generator.join().expect("no panic");
    until("the session is over", || site.sessions().iter().all(|row| row.closed_ms.is_some()));
    collector.stop();
    for seen in site.seen() {
        // Ids from 1 without a gap: none was spent on what was skipped.
        assert_eq!((seen.missing, seen.outcome), (0, "complete"), "{seen:?}");
    }
}
