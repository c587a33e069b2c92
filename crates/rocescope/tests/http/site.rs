//! A collector with a store, what serves it, and clients of both.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use jsonschema::Validator;
use observe::collect::{Limits, Session};
use observe::report::Report;
use rocescope::collector::{Disk, Sink, Started};
use rocescope::config::{Collector, read_collector};
use rocescope::serve::openapi;
use serde_json::{Map, Value, json};
use store::{Change, EpochState, Rules, SessionFacts, SessionId, Store, StoreLimits};
use tokio::net::TcpStream;

use crate::client::{Answer, PATIENCE, exchange, request};
use crate::export::{AGENT, Authority, Connection, Identity, connector};

pub struct Site {
    pub directory: PathBuf,
    pub authority: Authority,
    pub started: Option<Started>,
}

impl Site {
    /// Files for a collector; `http` are lines of `[http]`, `limits` of `[limits]`.
    pub fn new(test: &str, http: &str, limits: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("http").join(test);
        if directory.exists() {
            fs::remove_dir_all(&directory).unwrap();
        }
        fs::create_dir_all(&directory).unwrap();
        let authority = Authority::new();
        let server = authority.server();
        let site = Self { directory, authority, started: None };
        site.write("ca.pem", &site.authority.pem);
        site.write("collector.pem", &server.pem);
        site.write("collector.key", &server.key);
        site.configure(http, limits);
        site
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.join(name), text).unwrap();
    }

    pub fn configure(&self, http: &str, limits: &str) {
        self.write(
            "collector.toml",
            &format!(
                "[ipfix]\nlisten = \"127.0.0.1:0\"\ncertificate = \"collector.pem\"\n\
                 key = \"collector.key\"\nauthority = \"ca.pem\"\n\
                 [[ipfix.peer]]\nname = \"{AGENT}\"\ndomains = [1]\n\
                 [limits]\n{limits}\n[http]\n{http}\n"
            ),
        );
    }

    pub fn config(&self) -> Collector {
        let mut config = read_collector(&self.directory.join("collector.toml")).unwrap();
        config.http.listen.set_port(0);
        config
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub async fn start(self) -> Self {
        let disk = Disk::open(&self.config()).unwrap();
        self.start_with(disk).await
    }

    pub async fn start_with(mut self, sink: impl Sink) -> Self {
        self.started = Some(Started::begin(&self.config(), sink).await.unwrap());
        self
    }

    pub fn started(&self) -> &Started {
        self.started.as_ref().unwrap()
    }

    pub async fn stop(self) {
        self.started.unwrap().stop().await;
    }

    /// Stops, with what is kept.
    pub async fn pause(mut self) -> Self {
        self.started.take().unwrap().stop().await;
        self
    }

    /// Stops, and starts with what is kept.
    pub async fn restart(self) -> Self {
        self.pause().await.start().await
    }

    /// The agent's own connection to where IPFIX comes in.
    pub async fn agent(&self) -> Connection {
        let identity = self.authority.client(AGENT, 2);
        let (connector, name) = connector(&self.authority.pem, Some(&identity));
        let tcp = TcpStream::connect(self.started().ipfix_address().unwrap()).await.unwrap();
        connector.connect(name, tcp).await.unwrap()
    }

    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.started().http_address().unwrap()).await.unwrap()
    }

    pub async fn tls(&self, identity: Option<&Identity>) -> std::io::Result<Connection> {
        let (connector, name) = connector(&self.authority.pem, identity);
        connector.connect(name, self.tcp().await).await
    }

    /// An answer that is as the description says.
    pub async fn ask(&self, method: &str, target: &str) -> Answer {
        let octets = request(method, target, &["connection: close"]);
        let answer = exchange(&mut self.tcp().await, &octets).await.unwrap();
        described(method, target, &answer);
        answer
    }

    pub async fn get(&self, target: &str) -> Value {
        let answer = self.ask("GET", target).await;
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        answer.json()
    }

    /// Asks until an answer is as it should be.
    pub async fn until(&self, target: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let asking = async {
            loop {
                let answer = self.get(target).await;
                if holds(&answer) {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.expect("an answer as it should be")
    }
}

/// Holds an answer against what the description says of it.
pub fn described(method: &str, target: &str, answer: &Answer) {
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer:?}");
    assert!(answer.names().all(|name| !name.starts_with("access-control")), "{answer:?}");
    let path = target.split('?').next().unwrap();
    let status = answer.status.to_string();
    let kind = answer.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap();
    let schema = match template(path) {
        Some(template) => {
            let mut response = &openapi()["paths"][template]["get"]["responses"][&status];
            if let Some(reference) = response["$ref"].as_str() {
                response = openapi().pointer(reference.strip_prefix('#').unwrap()).unwrap();
            }
            let schema = &response["content"][kind]["schema"];
            assert!(!schema.is_null(), "{method} {target}: {status} {kind} is not described");
            schema.clone()
        }
        // What is not there has no description but that of every problem.
        None => json!({ "$ref": "#/components/schemas/Problem" }),
    };
    if method == "HEAD" {
        assert_eq!(answer.body, b"");
        return;
    }
    match kind {
        "application/json" | "application/problem+json" => valid(&schema, &answer.json()),
        "text/plain" | "text/html" | "text/css" | "text/javascript" => {
            assert!(answer.text().ends_with('\n'));
        }
        other => panic!("{target}: {other}"),
    }
    if answer.status >= 400 && kind == "application/problem+json" {
        assert_eq!(answer.json()["status"], answer.status);
    }
}

/// The path of the description that a path is one of.
pub fn template(path: &str) -> Option<&'static str> {
    let matches = |template: &str| {
        let parts: Vec<_> = template.split('/').collect();
        let given: Vec<_> = path.split('/').collect();
        parts.len() == given.len()
            && parts.iter().zip(&given).all(|(part, given)| part.starts_with('{') || part == given)
    };
    let paths = openapi()["paths"].as_object().unwrap();
    paths.keys().map(String::as_str).find(|template| matches(template))
}

/// Validates against a schema of the description, by a library that others use.
pub fn valid(schema: &Value, value: &Value) {
    type Known = std::collections::HashMap<String, Validator>;
    static VALIDATORS: LazyLock<std::sync::Mutex<Known>> = LazyLock::new(std::sync::Mutex::default);
    let mut validators = VALIDATORS.lock().unwrap();
    let validator = validators.entry(schema.to_string()).or_insert_with(|| {
        let mut document = Map::new();
        document.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        document.insert("components".into(), openapi()["components"].clone());
        document.extend(schema.as_object().unwrap().clone());
        jsonschema::options().should_validate_formats(true).build(&document.into()).unwrap()
    });
    let errors: Vec<String> =
        validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
    drop(validators);
    assert!(errors.is_empty(), "{errors:#?} in {value:#}");
}

/// Puts epochs into the store of a collector that is not running, each by its reports, as if they
/// had come just now, a millisecond after each other: retention would take out what is older.
pub fn fill(directory: &Path, epochs: &[Vec<Report>]) {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let opened_ms = u64::try_from(since).unwrap();
    let (mut store, _) = Store::open(directory, StoreLimits::default(), 0).unwrap();
    let facts = SessionFacts {
        peer: AGENT.into(),
        fingerprint: [7; 32],
        address: "127.0.0.1:50000".into(),
        opened_ms,
        rules: Rules { domains: Some(vec![1]), ..Rules::default() },
    };
    let session = store.open_session(&facts).unwrap();
    let mut changes = Vec::new();
    for reports in epochs {
        let mut collected = Session::new(Limits::default(), 1);
        for (report, now_ms) in reports.iter().zip(opened_ms..) {
            collected.receive(1, 9, report, now_ms);
            let epoch = collected.epoch(1, report.epoch_id).unwrap().clone();
            let outcome = epoch.outcome();
            changes.push(Change::Epoch(Box::new(EpochState {
                session,
                domain: 1,
                epoch,
                outcome,
                updated_ms: now_ms,
            })));
        }
    }
    changes.push(Change::Refused { session, domain: 1, kind: "stale".into(), records: 3 });
    changes.push(Change::CollectorDrop { session, domain: 1, records: 2 });
    for part in changes.chunks(5_000) {
        store.apply(part).unwrap();
    }
}

/// The session of [`fill`].
pub const FILLED: SessionId = SessionId(1);
