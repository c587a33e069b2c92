//! The other sides of an agent, for tests and measurements: a source of queue events, and clients,
//! many of them in one process: RESTCONF over one HTTPS connection each, and NETCONF over SSH. They
//! read when they are asked to, and not before.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use russh::ChannelStream;
use russh::client::{self, Handle, Msg};
use russh::keys::{PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Octets that are read at once.
const READ: usize = 64 << 10;

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// A source of queues that are closed and have traffic, for ever.
pub struct Source {
    stream: UnixStream,
    seq: u64,
    /// Intervals that are over: the number of the last one.
    pub intervals: u64,
    interval_ns: u64,
}

impl Source {
    /// Tells of so many queues, eight of each interface: `Ethernet0` with `0` and so on.
    pub fn begin(stream: UnixStream, queues: usize, interval_ns: u64) -> io::Result<Self> {
        let mut source = Self { stream, seq: 0, intervals: 0, interval_ns };
        for queue in 0..queues {
            source.tell(queue, r#""event":"map","priorities":[5],"method":"head","maxError":0"#)?;
            source.tell(queue, r#""event":"backlog","present":true"#)?;
            source.tell(queue, r#""event":"gate","priority":5,"closed":true"#)?;
        }
        Ok(source)
    }

    fn line(&mut self, t: u64, queue: usize, rest: &str) -> String {
        self.seq += 1;
        let (seq, interface, queue) = (self.seq, queue / 8, queue % 8);
        format!(
            "{{\"seq\":{seq},\"t\":{t},\"interface\":\"Ethernet{interface}\",\
             \"queue\":\"{queue}\",{rest}}}\n"
        )
    }

    fn tell(&mut self, queue: usize, rest: &str) -> io::Result<()> {
        let line = self.line(0, queue, rest);
        self.stream.write_all(line.as_bytes())
    }

    /// Comes to the end of an interval, which is that of every queue: they are all told of at once.
    pub fn complete(&mut self) -> io::Result<()> {
        self.intervals += 1;
        let end = self.intervals * self.interval_ns;
        // What is told at one time says that everything before it was told.
        let rest = r#""event":"backlog","present":true"#;
        let lines = self.line(end + 1_000, 0, rest) + &self.line(end + 1_001, 0, rest);
        self.stream.write_all(lines.as_bytes())
    }
}

/// How long an agent may take to listen.
const LISTENS: Duration = Duration::from_secs(20);

/// A connection, to an agent that may only be about to listen.
async fn begun(port: u16) -> io::Result<TcpStream> {
    let begun = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)).await {
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused
                    && begun.elapsed() < LISTENS =>
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            done => return done,
        }
    }
}

/// Where an agent serves RESTCONF.
#[derive(Clone)]
pub struct Https {
    config: Arc<ClientConfig>,
    port: u16,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

/// A connection.
pub struct Restconf {
    stream: BufReader<TlsStream<TcpStream>>,
    token: String,
    port: u16,
}

impl Https {
    /// One whose certificate is by this authority, on this machine.
    pub fn new(authority: &[u8], port: u16) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            let certificate = certificate.map_err(|error| broken(error.to_string()))?;
            roots.add(certificate).map_err(|error| broken(error.to_string()))?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self { config: Arc::new(config), port })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection of the user of a token.
    pub async fn connect(&self, token: &str) -> io::Result<Restconf> {
        self.over(begun(self.port).await?, token).await
    }

    /// The same over a connection that is there.
    pub async fn over(&self, stream: TcpStream, token: &str) -> io::Result<Restconf> {
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").map_err(|error| broken(error.to_string()))?;
        let stream = TlsConnector::from(self.config.clone()).connect(name, stream).await?;
        let stream = BufReader::with_capacity(READ, stream);
        Ok(Restconf { stream, token: token.to_owned(), port: self.port })
    }
}

impl Restconf {
    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<()> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            self.port,
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.stream.flush().await
    }

    async fn head(&mut self) -> io::Result<Answer> {
        let status = line(&mut self.stream).await?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = code.ok_or_else(|| broken(format!("{status:?}, expected a status")))?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut self.stream).await?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: String::new() })
    }

    /// Asks for something, with header lines that end as lines do, and waits for all of the answer.
    pub async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<Answer> {
        self.send(method, path, headers, body).await?;
        let mut answer = self.head().await?;
        let octets = answer.header("content-length").and_then(|octets| octets.parse().ok());
        if method != "HEAD" && answer.status != 304 {
            let mut body = vec![0; octets.unwrap_or(0)];
            self.stream.read_exact(&mut body).await?;
            answer.body = String::from_utf8(body).map_err(|error| broken(error.to_string()))?;
        }
        Ok(answer)
    }

    pub async fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, "", "").await
    }

    /// Calls an operation of a module with this input.
    pub async fn call(&mut self, module: &str, name: &str, input: &str) -> io::Result<Answer> {
        let path = format!("/restconf/operations/{module}:{name}");
        let body = format!("{{\"{module}:input\":{input}}}");
        let json = "Content-Type: application/yang-data+json\r\n";
        self.ask("POST", &path, json, &body).await
    }

    /// Establishes a subscription to the operational datastore and gives its number.
    pub async fn establish(&mut self, more: &str) -> io::Result<u32> {
        let input =
            format!("{{\"ietf-yang-push:datastore\":\"ietf-datastores:operational\",{more}}}");
        let module = "ietf-subscribed-notifications";
        let answer = self.call(module, "establish-subscription", &input).await?;
        let number = answer.body.split_once("\"id\":").map(|(_, rest)| rest);
        let number = number.or(answer.body.split_once(":id\":").map(|(_, rest)| rest));
        let digits = number.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        let number = digits.and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| broken(format!("{answer:?}, expected a subscription")))
    }

    /// Reads a subscription from here on.
    pub async fn events(mut self, id: u32) -> io::Result<Events> {
        self.send("GET", &format!("/restconf/subscriptions/{id}"), "", "").await?;
        let answer = self.head().await?;
        if answer.status != 200 {
            return Err(broken(format!("{answer:?}, expected events")));
        }
        Ok(Events { stream: self.stream, text: Vec::new() })
    }
}

/// The events of a subscription.
pub struct Events {
    stream: BufReader<TlsStream<TcpStream>>,
    text: Vec<u8>,
}

impl Events {
    /// The next document; none at the end of the stream.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            // The agent sends each event in chunks of its own.
            if self.text.ends_with(b"\n\n") {
                let event = std::mem::take(&mut self.text);
                // Comments show only that it goes on.
                let event = event.strip_prefix(b"data: ").map(|event| event.trim_ascii_end());
                if let Some(event) = event {
                    let text = String::from_utf8(event.to_vec());
                    return text.map(Some).map_err(|error| broken(error.to_string()));
                }
            }
            let size = line(&mut self.stream).await?;
            let size = usize::from_str_radix(size.trim(), 16)
                .map_err(|_| broken(format!("{size:?}, expected the size of a chunk")))?;
            let mut chunk = vec![0; size];
            self.stream.read_exact(&mut chunk).await?;
            line(&mut self.stream).await?;
            if size == 0 {
                return Ok(None);
            }
            self.text.extend_from_slice(&chunk);
        }
    }
}

/// A line without its end.
async fn line(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await? {
            b'\n' => break,
            octet => line.push(octet),
        }
    }
    let text = String::from_utf8(line).map_err(|error| broken(error.to_string()))?;
    Ok(text.trim_end_matches('\r').to_owned())
}

/// A session of NETCONF, with the framing of 1.0.
pub struct Netconf {
    stream: ChannelStream<Msg>,
    text: Vec<u8>,
    /// Notifications that came before a reply.
    pub told: Vec<String>,
    _connection: Handle<Anybody>,
}

/// Whatever key the server has is good: it is on this machine.
struct Anybody;

impl client::Handler for Anybody {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        Ok(true)
    }
}

const BASE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";

impl Netconf {
    /// A session of a user with this key.
    pub async fn connect(port: u16, user: &str, key: &Arc<PrivateKey>) -> io::Result<Self> {
        Self::over(begun(port).await?, user, key).await
    }

    /// The same over a connection that is there.
    pub async fn over(stream: TcpStream, user: &str, key: &Arc<PrivateKey>) -> io::Result<Self> {
        let over = |error: russh::Error| broken(error.to_string());
        // What is not read stays with the server.
        let config = client::Config {
            window_size: 64 << 10,
            channel_buffer_size: 1,
            nodelay: true,
            ..client::Config::default()
        };
        let mut connection =
            client::connect_stream(Arc::new(config), stream, Anybody).await.map_err(over)?;
        let key = PrivateKeyWithHashAlg::new(key.clone(), None);
        let known = connection.authenticate_publickey(user, key).await.map_err(over)?;
        if !known.success() {
            return Err(broken(format!("{user} is not let in")));
        }
        let channel = connection.channel_open_session().await.map_err(over)?;
        channel.request_subsystem(true, "netconf").await.map_err(over)?;
        let stream = channel.into_stream();
        let mut session =
            Self { stream, text: Vec::new(), told: Vec::new(), _connection: connection };
        let hello = format!(
            "<hello xmlns=\"{BASE}\"><capabilities><capability>{}</capability></capabilities>\
             </hello>]]>]]>",
            "urn:ietf:params:netconf:base:1.0"
        );
        session.stream.write_all(hello.as_bytes()).await?;
        session.next().await?.ok_or_else(|| broken("no hello"))?;
        Ok(session)
    }

    /// The next message, whatever it is; none at the end.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        const MARK: &[u8] = b"]]>]]>";
        let mut from = 0;
        loop {
            let found = self.text.get(from..).and_then(|rest| {
                rest.windows(MARK.len()).position(|window| window == MARK).map(|at| from + at)
            });
            if let Some(end) = found {
                let rest = self.text.split_off(end + MARK.len());
                let mut message = std::mem::replace(&mut self.text, rest);
                message.truncate(end);
                let text = String::from_utf8(message).map_err(|error| broken(error.to_string()));
                return text.map(Some);
            }
            from = self.text.len().saturating_sub(MARK.len());
            let mut octets = vec![0; READ];
            let read = self.stream.read(&mut octets).await?;
            if read == 0 {
                return Ok(None);
            }
            self.text.extend_from_slice(&octets[..read]);
        }
    }

    /// Asks for something and waits for the reply.
    pub async fn ask(&mut self, operation: &str) -> io::Result<String> {
        let rpc = format!("<rpc xmlns=\"{BASE}\" message-id=\"1\">{operation}</rpc>]]>]]>");
        self.stream.write_all(rpc.as_bytes()).await?;
        self.stream.flush().await?;
        loop {
            let message = self.next().await?.ok_or_else(|| broken("no reply"))?;
            if message.starts_with("<rpc-reply") {
                return Ok(message);
            }
            self.told.push(message);
        }
    }

    /// Establishes a subscription to the operational datastore and gives its number.
    pub async fn establish(&mut self, more: &str) -> io::Result<u32> {
        let reply = self
            .ask(&format!(
                "<establish-subscription \
                 xmlns=\"urn:ietf:params:xml:ns:yang:ietf-subscribed-notifications\" \
                 xmlns:yp=\"urn:ietf:params:xml:ns:yang:ietf-yang-push\">\
                 <yp:datastore xmlns:ds=\"urn:ietf:params:xml:ns:yang:ietf-datastores\">\
                 ds:operational</yp:datastore>{more}</establish-subscription>"
            ))
            .await?;
        let number = reply.split_once("</id>").and_then(|(before, _)| before.rsplit_once('>'));
        let number = number.and_then(|(_, number)| number.parse().ok());
        number.ok_or_else(|| broken(format!("{reply}, expected a subscription")))
    }
}
