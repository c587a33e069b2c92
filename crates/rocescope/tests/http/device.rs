//! A device that speaks as much RESTCONF as a test wants, well or badly.

use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::export::Authority;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub target: String,
    pub head: String,
    pub body: String,
}

/// How a device answers; more than one that is right can be wished for.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Whether it has subscriptions.
    pub subscriptions: bool,
    /// What host-meta says.
    pub host_meta: String,
    /// What a GET of rows is answered with instead of the rows.
    pub instead: Option<Instead>,
}

#[derive(Clone, Debug)]
pub enum Instead {
    /// This status, and nothing.
    Status(u16),
    /// This body.
    Body(String),
    /// Octets without end.
    Endless,
    /// Nothing, ever.
    Silence,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            subscriptions: true,
            host_meta: "<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'>\
                        <Link rel='restconf' href='/top'/></XRD>"
                .into(),
            instead: None,
        }
    }
}

#[derive(Default)]
struct Inside {
    manner: Manner,
    /// Rows by their queues: interface, queue, row.
    rows: Vec<Value>,
    version: u64,
    asked: Vec<Asked>,
    streams: Vec<mpsc::UnboundedSender<String>>,
}

pub struct Device {
    pub port: u16,
    inside: Arc<Mutex<Inside>>,
    tls: TlsAcceptor,
    listening: Option<JoinHandle<()>>,
}

/// A row of queue `q` of `Ethernet1/1`, as a device holds it.
pub fn row(epoch: u8, interval: u64) -> Value {
    json!({
        "queue-id": "q/3",
        "epoch-id": format!("31c38fe2-f97e-4a88-a0a7-bae9ed5d41{epoch:02x}"),
        "interval-id": interval.to_string(),
        "start-offset-ns": (interval * 100).to_string(),
        "duration-ns": "100",
        "mapped-priority": [3],
        "quality": "event-based",
        "gated-backlog-ns": "10",
        "backlog-ns": "50",
        "absolute-error-ns": "1",
    })
}

fn document(rows: &[Value]) -> Value {
    json!({"ietf-interfaces:interfaces": {"interface": [{
        "name": "Ethernet1/1",
        "ietf-pfc-queue-telemetry:pfc-queue-telemetry": {"queue": rows},
    }]}})
}

fn notification(member: &str, value: Value) -> String {
    let time = "2026-11-30T08:15:00Z";
    json!({"ietf-restconf:notification": {"eventTime": time, member: value}}).to_string()
}

impl Device {
    pub async fn new(authority: &Authority) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .allow_unauthenticated()
                .build()
                .unwrap();
        let server = authority.server();
        let chain = vec![CertificateDer::from_pem_slice(server.pem.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tls = TlsAcceptor::from(Arc::new(config));
        let mut device = Self { port, inside: Arc::default(), tls, listening: None };
        device.listen(listener);
        device
    }

    fn listen(&mut self, listener: TcpListener) {
        let (inside, tls) = (self.inside.clone(), self.tls.clone());
        self.listening = Some(tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (inside, tls) = (inside.clone(), tls.clone());
                connections.spawn(async move {
                    if let Ok(mut stream) = tls.accept(stream).await {
                        while serve(&mut stream, &inside).await.is_some() {}
                    }
                });
            }
        }));
    }

    /// It is gone, with all connections.
    pub async fn kill(&mut self) {
        let listening = self.listening.take().unwrap();
        listening.abort();
        _ = listening.await;
        self.inside.lock().unwrap().streams.clear();
    }

    /// It is there again.
    pub async fn start(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.listen(listener);
    }

    pub fn manner(&self, manner: Manner) {
        self.inside.lock().unwrap().manner = manner;
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.inside.lock().unwrap().asked.clone()
    }

    /// A row is complete, and nobody is told.
    pub fn hold(&self, row: &Value) {
        let mut inside = self.inside.lock().unwrap();
        inside.rows = vec![row.clone()];
        inside.version += 1;
    }

    /// A row is complete.
    pub fn complete(&self, row: &Value) {
        self.hold(row);
        let edit = json!({
            "edit-id": "1",
            "operation": "replace",
            "target": "/ietf-interfaces:interfaces/interface=Ethernet1%2F1\
                       /ietf-pfc-queue-telemetry:pfc-queue-telemetry/queue=q%2F3",
            "value": {"ietf-pfc-queue-telemetry:queue": [row]},
        });
        let changes = json!({"yang-patch": {"patch-id": "1", "edit": [edit]}});
        let change = json!({"id": 1, "datastore-changes": changes});
        self.tell(&notification("ietf-yang-push:push-change-update", change));
    }

    pub fn notify(&self, member: &str, value: Value) {
        self.tell(&notification(member, value));
    }

    fn tell(&self, event: &str) {
        let mut inside = self.inside.lock().unwrap();
        inside.streams.retain(|stream| stream.send(event.to_owned()).is_ok());
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

async fn read(stream: &mut TlsStream<TcpStream>) -> Option<Asked> {
    let mut octets = Vec::new();
    let end = loop {
        if let Some(end) = octets.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut octets).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(octets[..end].to_vec()).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |digits| digits.parse().unwrap());
    while octets.len() < end + length {
        if stream.read_buf(&mut octets).await.ok()? == 0 {
            return None;
        }
    }
    let line = String::from_utf8(octets[..end].to_vec()).unwrap();
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let body = String::from_utf8(octets[end..].to_vec()).unwrap();
    Some(Asked { method, target, head, body })
}

fn answer(status: u16, kind: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{more}content-length: {length}\r\n\r\n{body}"
    )
}

/// Answers one request; none where the connection is over.
async fn serve(stream: &mut TlsStream<TcpStream>, inside: &Mutex<Inside>) -> Option<()> {
    let asked = read(stream).await?;
    let Asked { method, target, head, .. } = asked.clone();
    let (manner, rows, version) = {
        let mut inside = inside.lock().unwrap();
        inside.asked.push(asked);
        (inside.manner.clone(), document(&inside.rows), inside.version)
    };
    let data = "application/yang-data+json";
    let text = if target == "/.well-known/host-meta" {
        answer(200, "application/xrd+xml", "", &manner.host_meta)
    } else if target.starts_with("/top/ds/ietf-datastores:operational/ietf-interfaces:interfaces") {
        let etag = format!("\"{version}\"");
        match manner.instead {
            None if head.contains(&format!("if-none-match: {etag}")) => {
                answer(304, data, &format!("etag: {etag}\r\n"), "")
            }
            None => answer(200, data, &format!("etag: {etag}\r\n"), &rows.to_string()),
            Some(Instead::Status(status)) => answer(status, data, "", ""),
            Some(Instead::Body(body)) => answer(200, data, "", &body),
            Some(Instead::Silence) => return std::future::pending().await,
            Some(Instead::Endless) => {
                let head = format!("HTTP/1.1 200 X\r\ncontent-type: {data}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.ok()?;
                loop {
                    stream.write_all(&[b' '; 4096]).await.ok()?;
                }
            }
        }
    } else if method == "POST" && manner.subscriptions {
        let output = json!({"ietf-subscribed-notifications:output": {
            "id": 7, "ietf-restconf-subscribed-notifications:uri": "/top/subscriptions/7",
        }});
        answer(200, data, "", &output.to_string())
    } else if method == "POST" {
        let error = json!({"ietf-restconf:errors": {"error": [
            {"error-type": "protocol", "error-tag": "operation-not-supported"}
        ]}});
        answer(501, data, "", &error.to_string())
    } else if target == "/top/subscriptions/7" {
        return told(stream, inside).await;
    } else {
        answer(404, data, "", "")
    };
    stream.write_all(text.as_bytes()).await.ok()
}

async fn told(stream: &mut TlsStream<TcpStream>, inside: &Mutex<Inside>) -> Option<()> {
    let (sender, mut events) = mpsc::unbounded_channel();
    let rows = {
        let mut inside = inside.lock().unwrap();
        inside.streams.push(sender);
        document(&inside.rows)
    };
    let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.ok()?;
    let all = json!({"id": 7, "datastore-contents": rows});
    let mut event = Some(notification("ietf-yang-push:push-update", all));
    while let Some(text) = event {
        let chunk = format!("data: {text}\n\n");
        let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
        stream.write_all(chunk.as_bytes()).await.ok()?;
        stream.flush().await.ok()?;
        event = events.recv().await;
    }
    None
}
