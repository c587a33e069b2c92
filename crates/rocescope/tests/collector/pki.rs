//! What `pki init` makes works as it stands.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocescope::check::check;
use rocescope::collector::Running;
use rocescope::config::{read_collector, read_device};
use rocescope::pki;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::support::{Identity, Kept, connector, exported, last, report, text};

fn made(test: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pki").join(test);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    pki::init(&directory).unwrap();
    directory
}

#[test]
fn its_configurations_pass_check_and_name_each_other() {
    let directory = made("check");
    for name in ["collector.toml", "agent.toml"] {
        check(&directory.join(name)).unwrap();
    }
    let collector = read_collector(&directory.join("collector.toml")).unwrap();
    let device = read_device(&directory.join("agent.toml")).unwrap();
    let export = &device.exports[0];
    let ipfix = collector.ipfix.as_ref().unwrap();
    assert_eq!((export.host.as_str(), export.port), ("127.0.0.1", ipfix.listen.port()));
    assert!(ipfix.peers[0].domains.contains(&device.observation.domain));
    assert_eq!(collector.elements, device.elements);
}

/// A file with what stands in comments between two of its lines taken in; twice for what stands in two.
fn taken_in(path: &Path, from: &str, to: &str, times: usize) {
    let all = text(path);
    let (before, rest) = all.split_once(from).unwrap();
    let (comments, behind) = rest.split_once(to).unwrap_or((rest, ""));
    let mut block = format!("{from}{comments}");
    for _ in 0..times {
        let line = |line: &str| line.strip_prefix('#').unwrap_or(line).to_owned() + "\n";
        block = block.lines().map(|l| line(l.trim_start())).collect();
    }
    fs::write(path, format!("{before}{block}{to}{behind}")).unwrap();
}

// PFC-count.4
#[test]
fn its_commented_sources_of_pfc_counters_need_only_what_their_operator_can_say() {
    let directory = made("pfc");
    let agent = directory.join("agent.toml");
    let (from, to) = ("# [pfc]", "# How the agent runs.");
    let original = text(&agent);
    taken_in(&agent, from, to, 1);
    let refused = check(&agent).unwrap_err();
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 3, "{refused:#?}");
    assert!(refused.iter().all(|line| line.contains("neither states nor is attested")));
    fs::write(&agent, original).unwrap();
    taken_in(&agent, from, to, 2);
    let plan = check(&agent).unwrap().to_string();
    assert!(plan.contains("port eth0 by its source's own number"), "{plan}");
    let collector = directory.join("collector.toml");
    taken_in(&collector, "# [[pfc.device]]", "# end", 1);
    assert!(check(&collector).unwrap().to_string().contains("leaf1"));
}

#[test]
fn keys_are_their_owner_s_and_pkcs_8_and_nothing_is_overwritten() {
    let directory = made("keys");
    for name in ["collector.key", "agent.key"] {
        let path = directory.join(name);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(text(&path).starts_with("-----BEGIN PRIVATE KEY-----\n"));
    }
    let before = text(&directory.join("ca.pem"));
    fs::remove_file(directory.join("agent.key")).unwrap();
    let problem = pki::init(&directory).unwrap_err().to_string();
    assert!(problem.ends_with("ca.pem is there already, expected a directory without it"));
    assert_eq!(text(&directory.join("ca.pem")), before);
    assert!(!directory.join("agent.key").exists());
}

#[test]
fn another_library_verifies_its_certificates() {
    let directory = made("openssl");
    for (name, purpose) in [("collector.pem", "sslserver"), ("agent.pem", "sslclient")] {
        let verified = Command::new("openssl")
            .args(["verify", "-x509_strict", "-purpose", purpose, "-CAfile", "ca.pem", name])
            .current_dir(&directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verified.stdout);
        let problem = String::from_utf8_lossy(&verified.stderr);
        assert_eq!(said.trim(), format!("{name}: OK"), "{problem}");
    }
}

// SEQ-10.1
#[tokio::test]
async fn its_agent_gets_into_its_collector() {
    let directory = made("together");
    let mut config = read_collector(&directory.join("collector.toml")).unwrap();
    config.ipfix.as_mut().unwrap().listen.set_port(0);
    let kept = Kept::default();
    let running = Running::start(&config, kept.clone()).await.unwrap();
    let [pem, key] = ["agent.pem", "agent.key"].map(|name| text(&directory.join(name)));
    let (connector, name) =
        connector(&text(&directory.join("ca.pem")), Some(&Identity { pem, key }));
    let tcp = TcpStream::connect(running.address().unwrap()).await.unwrap();
    let mut agent = connector.connect(name, tcp).await.unwrap();
    agent.write_all(&exported(1, &[last(report(1, 1))])).await.unwrap();
    agent.shutdown().await.unwrap();
    running.stop().await;
    assert!(kept.sessions().iter().all(|session| session.peer == pki::AGENT_NAME));
}
