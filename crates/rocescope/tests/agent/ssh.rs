//! NETCONF over SSH, with the clients that others use: OpenSSH's, ncclient, netconf-console2 and
//! libnetconf2.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use manage::access::{Action, Group, Policy, Rule, RuleList, Subject};
use manage::push;
use observe::pfc::Priority;
use observe::queue::row::{Known, Measurement, Method, Row};
use observe::queue::{EpochId, Place, Priorities};
use rocescope::agent::manage::{Managed, ssh};
use rocescope::queue::board::{Board, Limits};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::packages::{python, repository};

const QUEUES: usize = 256;
const TAKEN_WITHIN: Duration = Duration::from_secs(3);

fn row(nth: usize, interval: u64) -> Arc<Row> {
    let interface = format!("Ethernet{}", nth / 8);
    Arc::new(Row {
        place: Arc::new(Place {
            interface: interface.as_str().into(),
            queue: format!("q{}", nth % 8).as_str().into(),
        }),
        epoch: EpochId::read("31c38fe2-f97e-4a88-a0a7-bae9ed5d4131").expect("a UUID"),
        interval,
        start_ns: 100_000_000 * interval,
        duration_ns: 100_000_000,
        wall_clock_start: None,
        priorities: Priorities::new([Priority::ALL[3]]).expect("a priority"),
        measurement: Measurement::Known(Known {
            method: Method::Samples { period_ns: 1_000_000 },
            gated_ns: 18_500_000,
            backlog_ns: 64_000_000,
            error_ns: 256,
        }),
    })
}

fn policy() -> Policy {
    let all = Rule {
        name: "all".into(),
        module: None,
        subject: Subject::All,
        read: true,
        exec: true,
        action: Action::Permit,
    };
    let kill = Rule {
        name: "kill".into(),
        module: Some("ietf-netconf".into()),
        subject: Subject::Rpc(Some("kill-session".into())),
        ..all.clone()
    };
    Policy {
        groups: vec![Group { name: "readers".into(), users: vec!["alice".into()] }],
        lists: vec![RuleList {
            name: "all".into(),
            groups: vec!["readers".into()],
            rules: vec![kill, all],
        }],
        ..Policy::default()
    }
}

/// A server in this process.
struct Served {
    directory: tempfile::TempDir,
    port: u16,
    board: Arc<Board>,
    managed: Arc<Managed>,
    _stop: watch::Sender<bool>,
    _runtime: Runtime,
}

pub fn keygen(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(path)
        .status();
    assert!(made.expect("ssh-keygen runs").success());
}

impl Served {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        keygen(&at("host"));
        keygen(&at("alice"));
        keygen(&at("mallory"));
        let read = |name| std::fs::read_to_string(at(name)).expect("a file");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let board = Arc::new(Board::new(Limits::default()));
        board.publish((0..QUEUES).map(|nth| row(nth, 1)).collect());
        let base = "https://localhost".to_owned();
        let managed = Managed::new(board.clone(), policy(), base, push::Settings::default(), 4);
        let managed = managed.expect("the modules load");
        let settings = ssh::Settings {
            host_key: ssh::host_key(&at("host")).expect("a key"),
            users: vec![("alice".into(), ssh::public_keys(&read("alice.pub")).expect("keys"))],
            connections_max: 4,
            sessions_max: 4,
            message_octets_max: 1 << 20,
            greeting_within: Duration::from_secs(10),
            taken_within: TAKEN_WITHIN,
            idle_max: Duration::from_secs(300),
        };
        let (stop, stopping) = watch::channel(false);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        runtime.spawn(managed.clone().follow());
        runtime.spawn(ssh::serve(listener, managed.clone(), settings, stopping));
        let host = read("host.pub");
        std::fs::write(at("known"), format!("[127.0.0.1]:{port} {host}")).expect("written");
        Self { directory, port, board, managed, _stop: stop, _runtime: runtime }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// OpenSSH's client with the key of somebody, and what it asks for.
    fn ssh(&self, key: &str, asks: &[&str]) -> Child {
        Command::new("ssh")
            .args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"])
            .args(["-o", "StrictHostKeyChecking=yes", "-o"])
            .arg(format!("UserKnownHostsFile={}", self.at("known").display()))
            .arg("-i")
            .arg(self.at(key))
            .args(["-p", &self.port.to_string(), "alice@127.0.0.1"])
            .args(asks)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ssh runs")
    }

    /// What comes back for these octets, and the exit code of the client.
    fn ended(&self, input: &str) -> (String, Option<i32>) {
        let mut child = self.ssh("alice", &["-s", "netconf"]);
        child.stdin.as_mut().expect("a pipe").write_all(input.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("ssh ends");
        (String::from_utf8(output.stdout).expect("text"), output.status.code())
    }

    /// What comes back for these octets.
    fn said(&self, input: &str) -> String {
        self.ended(input).0
    }

    /// A number that is counted, once it is as it should be.
    fn counts(&self, name: &str, label: Option<(&'static str, &'static str)>, expected: u64) {
        let begun = Instant::now();
        loop {
            let rows = self.managed.counted();
            let row = rows.iter().find(|row| row.name == name && row.label == label);
            let value = row.unwrap_or_else(|| panic!("no {name}")).value;
            if value == expected {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{name}: {value}, not {expected}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

const NETCONF: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";

fn hello(version: &str) -> String {
    format!(
        "<hello xmlns=\"{NETCONF}\"><capabilities><capability>urn:ietf:params:netconf:base:\
         {version}</capability></capabilities></hello>]]>]]>"
    )
}

fn rpc(operation: &str) -> String {
    format!("<rpc xmlns=\"{NETCONF}\" message-id=\"7\">{operation}</rpc>")
}

fn chunked(message: &str) -> String {
    format!("\n#{}\n{message}\n##\n", message.len())
}

const GET: &str = "<get><filter><interfaces xmlns=\"urn:ietf:params:xml:ns:yang:ietf-interfaces\"/>\
                   </filter></get>";

// QUE-pub.2
#[test]
fn openssh_reads_queues_with_both_framings() {
    let served = Served::new();
    let get = rpc(GET);
    let close = rpc("<close-session/>");
    let old = served.said(&format!("{}{get}]]>]]>{close}]]>]]>", hello("1.0")));
    assert_eq!(old.matches("<interval-id>").count(), QUEUES);
    assert_eq!(old.matches("]]>]]>").count(), 3);
    assert!(old.ends_with("<ok/></rpc-reply>]]>]]>"), "{old}");
    let new = served.said(&format!("{}{}{}", hello("1.1"), chunked(&get), chunked(&close)));
    assert_eq!(new.matches("<interval-id>").count(), QUEUES);
    assert_eq!((new.matches("]]>]]>").count(), new.matches("\n##\n").count()), (1, 2));
}

// QUE-sec.1
#[test]
fn nothing_but_netconf_and_nobody_but_users() {
    let served = Served::new();
    for asks in [&["-s", "netconf"][..], &["true"], &["-s", "sftp"]] {
        let key = if asks.last() == Some(&"netconf") { "mallory" } else { "alice" };
        let ended = served.ssh(key, asks).wait_with_output().expect("ssh ends");
        assert_eq!((ended.status.code(), ended.stdout.len()), (Some(255), 0), "{asks:?}");
    }
    served.counts("manage_logins_refused_total", Some(("protocol", "netconf")), 1);
    served.counts("manage_connections_total", Some(("protocol", "netconf")), 3);
}

// RFC 4254, section 6.10; RFC 6242, section 5.
#[test]
fn a_client_that_closes_its_session_ends_without_a_failure_and_is_counted() {
    let served = Served::new();
    let begun = format!("{}{}]]>]]>", hello("1.0"), rpc(GET));
    let closed = served.ended(&format!("{begun}{}]]>]]>", rpc("<close-session/>")));
    assert_eq!(closed.1, Some(0), "{}", closed.0);
    assert!(closed.0.ends_with("<ok/></rpc-reply>]]>]]>"), "{}", closed.0);
    // One that goes without a word has not ended in order.
    assert_ne!(served.ended(&begun).1, Some(0));
    served.counts("netconf_sessions", None, 0);
    served.counts("netconf_sessions_total", None, 2);
    served.counts("netconf_sessions_dropped_total", None, 1);
    served.counts("netconf_requests_total", None, 3);
    served.counts("netconf_errors_total", None, 0);
    served.counts("manage_logins_refused_total", Some(("protocol", "netconf")), 0);
}

#[test]
fn a_session_that_does_not_read_ends_and_holds_up_nobody() {
    let served = Served::new();
    let mut stalled = served.ssh("alice", &["-s", "netconf"]);
    let many = format!("{}{}", hello("1.0"), format!("{}]]>]]>", rpc(GET)).repeat(200));
    let mut stdin = stalled.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || {
        _ = stdin.write_all(many.as_bytes());
        stdin
    });
    let begun = Instant::now();
    // The others go on, and see it go.
    let sessions = "<get><filter><netconf-state xmlns=\"urn:ietf:params:xml:ns:yang:\
                    ietf-netconf-monitoring\"><sessions/></netconf-state></filter></get>";
    let asked = format!("{}{}]]>]]>{}]]>]]>", hello("1.0"), rpc(GET), rpc(sessions));
    let alone = loop {
        let answer = served.said(&asked);
        assert_eq!(answer.matches("<interval-id>").count(), QUEUES);
        let there = answer.matches("<session>").count();
        if there == 1 && begun.elapsed() > TAKEN_WITHIN {
            break true;
        }
        if begun.elapsed() > TAKEN_WITHIN * 8 {
            break false;
        }
    };
    assert!(alone, "the session is still there");
    let mut rest = Vec::new();
    stalled.stdout.take().expect("a pipe").read_to_end(&mut rest).expect("read");
    assert!(String::from_utf8_lossy(&rest).matches("</rpc-reply>").count() < 200);
    stalled.wait().expect("ssh ends");
    drop(writing.join().expect("written or not"));
}

impl Served {
    /// Runs a client that says `subscribed` where it wants intervals of a queue, and `good` at its end.
    fn satisfies(&self, client: &mut Command, last_interval: u64) {
        let spawned = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut client = spawned.expect("it runs");
        let mut lines = BufReader::new(client.stdout.take().expect("a pipe")).lines();
        let mut line = || lines.next().and_then(Result::ok).unwrap_or_default();
        if line() == "subscribed" {
            for interval in 2..=last_interval {
                self.board.publish(vec![row(0, interval)]);
            }
        }
        let last = line();
        let ended = client.wait_with_output().expect("it ends");
        assert_eq!(last, "good", "{}", String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success(), "{:?}", ended.status);
    }

    fn ncclient(&self, python: &Path) {
        let mut client = Command::new(python);
        client.arg(repository().join("tests/python/ssh.py")).arg(self.port.to_string());
        client.arg(self.at("alice")).arg(QUEUES.to_string());
        self.satisfies(&mut client, 20);
    }
}

// QUE-pub.2
#[test]
fn ncclient_reads_subscribes_and_loses_nothing_under_load() {
    Served::new().ncclient(&python());
}

// QUE-pub.2
#[test]
fn ncclient_as_debian_has_it_does_so_too() {
    Served::new().ncclient(Path::new("/usr/bin/python3"));
}

// QUE-pub.2
#[test]
fn libnetconf2_learns_the_modules_reads_and_subscribes() {
    let served = Served::new();
    let of_libraries = Command::new("pkg-config")
        .args(["--cflags", "--libs", "libnetconf2", "libyang", "libssh"])
        .output()
        .expect("pkg-config runs");
    assert!(of_libraries.status.success(), "{of_libraries:?}");
    let flags = String::from_utf8(of_libraries.stdout).expect("text");
    let compiled = Command::new("gcc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(served.at("netconf"))
        .arg(repository().join("tests/c/netconf.c"))
        .args(flags.split_whitespace())
        .output()
        .expect("gcc runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let mut client = Command::new(served.at("netconf"));
    client.arg(served.port.to_string()).arg(served.at("alice")).arg(served.at("host.pub"));
    served.satisfies(client.arg(QUEUES.to_string()), 3);
}

/// netconf-console2, of a user that it finds in a configuration of SSH: it has a password otherwise,
/// with which it does not read a key that has none.
struct Console {
    served: Served,
    program: PathBuf,
}

impl Console {
    fn new() -> Self {
        let served = Served::new();
        let (key, known) = (served.at("alice"), served.at("known"));
        let text = format!(
            "Host *\n  User alice\n  IdentityFile {}\n  UserKnownHostsFile {}\n",
            key.display(),
            known.display()
        );
        std::fs::write(served.at("ssh_config"), text).expect("written");
        Self { served, program: python().with_file_name("netconf-console2") }
    }

    /// What it prints, and whether it takes that for an answer.
    fn asked(&self, arguments: &[&str]) -> (String, bool) {
        let output = Command::new(&self.program)
            .args(["--host", "127.0.0.1", "--hostkey-verify", "--port"])
            .arg(self.served.port.to_string())
            .arg("--ssh-config")
            .arg(self.served.at("ssh_config"))
            .args(["--ns", "if=urn:ietf:params:xml:ns:yang:ietf-interfaces"])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("netconf-console2 runs");
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        (said, output.status.success())
    }

    #[track_caller]
    fn answered(&self, arguments: &[&str]) -> String {
        let (said, good) = self.asked(arguments);
        assert!(good, "{arguments:?}: {said}");
        said
    }
}

// QUE-pub.2
#[test]
fn netconf_console_reads_with_filters_and_gets_modules() {
    let console = Console::new();
    let rows = |said: &str| said.matches("<interval-id>").count();
    let hello = console.answered(&["--hello"]);
    assert!(hello.contains("capability:yang-library:1.1?"), "{hello}");
    let one = "/if:interfaces/if:interface[if:name=\"Ethernet1\"]";
    assert_eq!(rows(&console.answered(&["--get", one])), 8);
    assert_eq!(rows(&console.answered(&["--get", "--filter", one])), 8);
    assert_eq!(rows(&console.answered(&["--get", "/if:interfaces"])), QUEUES);
    // Nobody has said whether it is enabled.
    let all = console.answered(&["--get", one, "--with-defaults", "report-all"]);
    assert!(rows(&all) == 8 && !all.contains("<enabled>"), "{all}");
    let data = console.served.at("get-data.xml");
    let text = "<get-data xmlns=\"urn:ietf:params:xml:ns:yang:ietf-netconf-nmda\" \
                xmlns:ds=\"urn:ietf:params:xml:ns:yang:ietf-datastores\">\
                <datastore>ds:operational</datastore><subtree-filter>\
                <interfaces xmlns=\"urn:ietf:params:xml:ns:yang:ietf-interfaces\"/>\
                </subtree-filter></get-data>";
    std::fs::write(&data, text).expect("written");
    let data = data.to_str().expect("text");
    assert_eq!(rows(&console.answered(&["--rpc", data])), QUEUES);
    let module = console.answered(&["--get-schema", "ietf-pfc-queue-telemetry"]);
    assert!(module.contains("module ietf-pfc-queue-telemetry {"), "{module}");
    assert!(console.answered(&["--get-config"]).contains("<enable-nacm>true</enable-nacm>"));
    let (refused, good) = console.asked(&["--lock"]);
    assert!(!good && refused.contains("operation-not-supported"), "{refused}");
    let (refused, good) = console.asked(&["--get-schema", "nothing"]);
    assert!(!good && refused.contains("invalid-value"), "{refused}");
}
