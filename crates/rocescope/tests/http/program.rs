//! The program: the line that says where it serves, and what it does not begin with.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::client::{PATIENCE, exchange, request};
use crate::site::{Site, described};

fn program(site: &Site) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocescope"));
    command.arg("collector").arg("--config").arg(site.directory.join("collector.toml"));
    command.stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn line(log: &mut Lines<BufReader<ChildStderr>>, part: &str) -> String {
    let found = async {
        loop {
            let line = log.next_line().await.unwrap().expect("a line before the end");
            if line.contains(part) {
                return line;
            }
        }
    };
    timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("no line with {part:?}"))
}

async fn signal(child: &Child, name: &str) {
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().await.unwrap().success());
}

#[tokio::test]
async fn it_says_in_one_line_where_it_serves_and_serves_there_until_it_ends() {
    let site = Site::new("program", "listen = \"127.0.0.1:0\"", "");
    let mut child = program(&site).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = line(&mut log, "serves HTTP on ").await;
    let (_, address) = said.split_once("serves HTTP on http://").unwrap();
    let address = address.strip_suffix('/').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    for target in ["/readyz", "/api/v1/epochs", "/metrics"] {
        let answer = exchange(&mut stream, &request("GET", target, &[])).await.unwrap();
        described("GET", target, &answer);
        assert_eq!(answer.status, 200, "{target}");
    }
    signal(&child, "HUP").await;
    line(&mut log, "the configuration is taken anew").await;
    site.write("collector.toml", "[http]\nlisten = \"0.0.0.0:1\"\n");
    signal(&child, "HUP").await;
    line(&mut log, "http.listen: 0.0.0.0:1 is reached from other machines").await;
    let answer = exchange(&mut stream, &request("GET", "/healthz", &[])).await.unwrap();
    assert_eq!(answer.status, 200);
    // An open connection does not hold up the end.
    signal(&child, "TERM").await;
    assert_eq!(timeout(PATIENCE, child.wait()).await.unwrap().unwrap().code(), Some(0));
}

#[tokio::test]
async fn an_address_that_is_taken_or_a_file_that_cannot_be_used_ends_it_with_a_line() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = format!("listen = \"{}\"", taken.local_addr().unwrap());
    let bad_key = "listen = \"127.0.0.1:0\"\ncertificate = \"collector.pem\"\nkey = \"ca.pem\"";
    for (test, http, expected) in
        [("taken", &*listen, "http.listen: 127.0.0.1:"), ("bad_key", bad_key, "http.key: ")]
    {
        let site = Site::new(test, http, "");
        let output = timeout(PATIENCE, program(&site).output()).await.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[tokio::test]
async fn nothing_is_served_where_the_configuration_says_so_and_check_tells_what_would_be() {
    let site = Site::new("nothing", "serve = false", "").start().await;
    assert_eq!(site.started().http_address(), None);
    let plan = |site: &Site| {
        rocescope::check::check(&site.directory.join("collector.toml")).unwrap().to_string()
    };
    assert!(plan(&site).contains("HTTP        nothing is served: http.serve = false\n"));
    let digest = "ab".repeat(32);
    site.configure(
        &format!(
            "listen = \"0.0.0.0:8443\"\ncertificate = \"collector.pem\"\nkey = \"collector.key\"\n\
             authority = \"ca.pem\"\nhosts = [\"collector.example\"]\n\
             [[http.reader]]\nname = \"Reader.Example\"\nrole = \"metrics\"\n\
             [[http.reader]]\ntoken_sha256 = \"{digest}\"\nrole = \"read\"\n"
        ),
        "http_page_max = 5",
    );
    let plan = plan(&site);
    let digest = format!("  token sha256:{digest} reads everything\n");
    for expected in [
        "HTTP        https://0.0.0.0:8443/: results under /api/v1, /metrics, /healthz, /readyz\n",
        "  asked for as collector.example\n",
        "  reader.example reads /metrics, /healthz and /readyz\n",
        &digest,
        " 5: rows of one page of an HTTP answer (1 to 100000, default 1000)\n",
    ] {
        assert!(plan.contains(expected), "no {expected:?} in\n{plan}");
    }
    site.stop().await;
}
