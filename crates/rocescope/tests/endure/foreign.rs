//! Programs of others at the other end: tshark and libfixbuf's ipfixDump read what our agent sends,
//! on its way and afterwards; softflowd exports to our collector.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rocescope::config::PLAIN_TCP_WORDS;

use crate::site::{Program, ROCESCOPE, Site, until};
use crate::truth::path;
use crate::wire_side::Connection;
use crate::words::Words;

/// Ended with the test.
struct Shark(Child);

impl Drop for Shark {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn output(program: &str, arguments: &[&str]) -> (String, String) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
    let [out, said] =
        [output.stdout, output.stderr].map(|o| String::from_utf8_lossy(&o).into_owned());
    assert!(output.status.success(), "{program}: {said}");
    (out, said)
}

// SEQ-6.1, SEQ-6.2, SEQ-6.6, SEQ-6.9
#[test]
fn what_an_agent_sends_is_ipfix_to_tshark_on_the_wire_and_to_libfixbuf() {
    let site = Site::new("foreign-collector");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = listener.local_addr().expect("bound").port();
    let fields = ["cflow.srcaddr", "cflow.observation_point_id", "cflow.template_id", "_ws.expert"];
    let mut shark = Command::new("tshark")
        .args(["-i", "lo", "-l", "-f", &format!("tcp port {port}")])
        .args(["-d", &format!("tcp.port=={port},cflow"), "-T", "fields"])
        .args(["-E", "occurrence=a", "-E", "separator=;"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map(Shark)
        .expect("tshark is needed for this test");
    let mut said = BufReader::new(shark.0.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("Capturing on") {
        line.clear();
        assert!(said.read_line(&mut line).expect("text") > 0, "tshark cannot capture, as root");
    }
    // It says so a moment before it is so.
    thread::sleep(Duration::from_millis(1_500));

    let text = format!(
        "[observation]\ndomain = 1\npoint = 9\n\
         [[rule]]\nsources = [\"0.0.0.0/0\"]\ndestinations = [\"0.0.0.0/0\"]\nwindow = 64\n\
         [rule.attest]\nsend_write_only = true\ncomplete_capture = true\nall_paths = true\n\
         half_space = true\nseparate_namespaces = true\n\
         [[source]]\nfile = {:?}\npace = \"fast\"\n\
         [[export]]\ncollector = \"127.0.0.1:{port}\"\nplain_tcp = \"{PLAIN_TCP_WORDS}\"\n",
        path("g4_write_q8_loss1.rcv.pcap").display().to_string()
    );
    fs::write(site.path("agent.toml"), text).expect("written");
    let mut agent = Program::start(&["agent", "--config"], &site.path("agent.toml"));
    let (mut stream, _) = listener.accept().expect("an agent");
    let mut octets = Vec::new();
    stream.read_to_end(&mut octets).expect("all of it");
    assert_eq!(agent.ended(), Some(0), "{}", agent.said());
    let file = site.path("stream.ipfix");
    fs::write(&file, octets).expect("written");
    let file = file.to_str().expect("a path in UTF-8");

    let (ours, _) = output(ROCESCOPE, &["dump", file]);
    let reports = ours.lines().filter(|line| line.starts_with("{\"record\":\"sequence\"")).count();
    assert!(reports >= 8, "{ours}");
    let (fixbuf, complaints) = output("ipfixDump", &["--rfc5610", "--in", file]);
    assert_eq!(complaints, "");
    let read = fixbuf.matches("rdmaSequenceEpochId :").count();
    assert_eq!(read, reports, "{fixbuf}");

    let mut seen = 0;
    let lines = BufReader::new(shark.0.stdout.take().expect("a pipe")).lines();
    for line in lines.map_while(Result::ok) {
        let fields: Vec<_> = line.split(';').collect();
        seen += fields[0].split(',').filter(|source| *source == "10.0.0.1").count();
        // That a connection begins and ends is a chat, and no complaint.
        let complains =
            ["Error/", "Warn/", "Malformed"].iter().any(|word| fields[3].contains(word));
        assert!(!complains, "{line}");
        if seen == reports {
            break;
        }
    }
    assert_eq!(seen, reports);
}

// PFC-exp.1
#[test]
fn what_another_exporter_sends_is_let_through_and_our_reports_beside_it_are_judged() {
    let site = Site::new("foreign-exporter");
    site.configure("0, 1", "inactivity_timeout_s = 3600", "");
    let collector = site.collector();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let target = listener.local_addr().expect("bound").to_string();
    let mut flows = Command::new("softflowd")
        .args(["-d", "-v", "10", "-P", "tcp", "-n", &target, "-r"])
        .arg(path("g4_write_q8_loss1.rcv.pcap"))
        .args(["-p", "softflowd.pid", "-c", "none"])
        .current_dir(&site.directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("softflowd is needed for this test");
    let (mut stream, _) = listener.accept().expect("softflowd");
    let mut connection = Connection::new(&site, collector.port);
    let mut octets = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let len = stream.read(&mut buffer).expect("octets");
        if len == 0 {
            break;
        }
        octets.extend_from_slice(&buffer[..len]);
        connection.send(&buffer[..len]).expect("taken");
    }
    assert!(flows.wait().expect("softflowd ends").success());
    assert!(octets.len() > 200, "softflowd exported {} octets", octets.len());
    let mut report = Words::new(&["final"]).report();
    report.epoch_id = 5;
    connection.report(1, 1, &report);
    connection.close().expect("taken");
    until("the session is over", || site.sessions()[0].closed_ms.is_some());
    let said = collector.stop();
    assert!(!said.contains("malformed") && !said.contains("discarded"), "{said}");
    let seen = site.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].epoch, seen[0].outcome), (5, "complete"));
    assert_eq!(site.reader().refusals(site.sessions()[0].session).expect("a database"), []);
    let (replayed, warnings) = site.replayed();
    assert_eq!((replayed, warnings.as_str()), (seen, ""));
    // What came of the other exporter is in the archive as it came.
    let file = site.path("softflowd.ipfix");
    fs::write(&file, octets).expect("written");
    let others = |path: &std::path::Path| {
        let (dumped, _) = output(ROCESCOPE, &["dump", path.to_str().expect("a path in UTF-8")]);
        let other = "{\"record\":\"other\"";
        dumped.lines().filter(|line| line.starts_with(other)).map(str::to_owned).collect::<Vec<_>>()
    };
    let archived = fs::read_dir(site.data().join("archive")).expect("an archive");
    let segment = archived
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.to_string_lossy().contains(".ipfix"))
        .expect("a segment");
    let plain = site.path("segment.ipfix");
    let octets = zstd::decode_all(fs::File::open(segment).expect("there")).expect("zstd");
    fs::write(&plain, octets).expect("written");
    let (sent, kept) = (others(&file), others(&plain));
    assert!(!sent.is_empty(), "softflowd sent no flow");
    assert_eq!(kept, sent);
}
