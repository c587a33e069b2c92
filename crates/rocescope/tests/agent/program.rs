//! The program with a collector of the test's own: certificates, a server, a pipe for a capture.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::support::Collector;

pub const ROCESCOPE: &str = env!("CARGO_BIN_EXE_rocescope");

/// Nothing in a test takes as long as this, unless it hangs.
pub const HANGS: Duration = Duration::from_secs(30);

/// Waits until there is something.
pub fn waited<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(is) = is() {
            return is;
        }
        assert!(began.elapsed() < HANGS, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub const DAY: Duration = Duration::from_secs(86_400);

/// A folder for one test, with an authority and certificates of both sides in it.
pub struct Room {
    pub folder: PathBuf,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Room {
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("agent-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        Self::at(folder)
    }

    /// One that other users can reach.
    pub fn anywhere() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rocescope-agent-{}-{number}", std::process::id());
        Self::at(std::env::temp_dir().join(name))
    }

    fn at(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).expect("a folder");
        let room = Self { folder };
        room.certificates("ca", "collector.example", "agent.example");
        room
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes an authority and a certificate for each side: `ca.pem`, `ca-collector.pem`, ...
    pub fn certificates(&self, authority: &str, collector: &str, agent: &str) {
        let now = SystemTime::now();
        self.certificates_for(authority, collector, agent, [now - DAY, now + DAY]);
    }

    /// As [`Room::certificates`], those of both sides valid from one time to another.
    pub fn certificates_for(
        &self,
        authority: &str,
        collector: &str,
        agent: &str,
        [from, until]: [SystemTime; 2],
    ) {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        fs::write(self.path(&format!("{authority}.pem")), issuer.pem()).expect("written");
        let sides = [
            ("collector", collector, ExtendedKeyUsagePurpose::ServerAuth),
            ("agent", agent, ExtendedKeyUsagePurpose::ClientAuth),
        ];
        for (side, name, purpose) in sides {
            let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            params.extended_key_usages = vec![purpose];
            (params.not_before, params.not_after) = (from.into(), until.into());
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &issuer).expect("signed");
            let write = |end: &str, text: String| {
                fs::write(self.path(&format!("{authority}-{side}.{end}")), text).expect("written");
            };
            write("pem", certificate.pem());
            write("key", key.serialize_pem());
        }
    }

    pub fn server(&self) -> Server {
        self.server_of("ca")
    }

    /// A collector's socket, with the certificate of this authority.
    pub fn server_of(&self, authority: &str) -> Server {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(self.path("ca.pem")).expect("an authority");
        roots.add(root).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .expect("a verifier");
        let own = self.path(&format!("{authority}-collector.pem"));
        let certificate = CertificateDer::from_pem_file(own).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(self.path(&format!("{authority}-collector.key")));
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("versions")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate], key.expect("a key"))
            .expect("a server");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        Server { listener, config: Arc::new(config) }
    }

    /// The configuration of an agent that meters everything and reports here.
    pub fn config(&self, server: &Server, source: &str, export: &str) -> PathBuf {
        let port = server.port();
        let text = format!(
            "[observation]\ndomain = 7\npoint = 9\n\
             [agent]\ncontrol_socket = \"c.sock\"\nstate_file = \"state\"\n\
             [[rule]]\nsources = [\"0.0.0.0/0\"]\ndestinations = [\"0.0.0.0/0\"]\nwindow = 1024\n\
             [rule.attest]\nsend_write_only = true\ncomplete_capture = true\nall_paths = true\n\
             half_space = true\nseparate_namespaces = true\n\
             [[source]]\n{source}\n\
             [[export]]\ncollector = \"127.0.0.1:{port}\"\nreport_interval_s = 1\n{export}\n"
        );
        let path = self.path("agent.toml");
        fs::write(&path, text).expect("written");
        path
    }

    /// The same of an agent that observes no frames at all, and its text to add to.
    pub fn without_frames(&self, server: &Server) -> (PathBuf, String) {
        let path = self.config(server, "interface = \"lo\"", TLS);
        let text = fs::read_to_string(&path).expect("text");
        (path, text.replace("[[source]]\ninterface = \"lo\"\n", ""))
    }

    /// Adds keys to the `[agent]` section of a configuration.
    pub fn agent_keys(&self, config: &Path, keys: &str) {
        let text = fs::read_to_string(config).expect("text");
        let text = text.replace("[agent]\n", &format!("[agent]\n{keys}\n"));
        fs::write(config, text).expect("written");
    }

    /// A named pipe that a capture comes through as the test writes it.
    pub fn pipe(&self) -> PathBuf {
        let path = self.path("live.pcap");
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success());
        path
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !thread::panicking() {
            _ = fs::remove_dir_all(&self.folder);
        }
    }
}

pub const TLS: &str = "server_name = \"collector.example\"\ncertificate = \"ca-agent.pem\"\n\
                       key = \"ca-agent.key\"\nauthority = \"ca.pem\"";

/// A collector's end of a socket.
pub struct Server {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

/// One connection of an agent.
pub struct Connection {
    stream: Box<dyn Read>,
    pub collector: Collector,
}

impl Server {
    pub fn port(&self) -> u16 {
        self.listener.local_addr().expect("bound").port()
    }

    pub fn tcp(&self) -> TcpStream {
        let (tcp, _) = self.listener.accept().expect("an agent");
        tcp.set_read_timeout(Some(HANGS)).expect("a timeout");
        tcp
    }

    pub fn plain(&self) -> Connection {
        begun(Connection { stream: Box::new(self.tcp()), collector: Collector::new() })
    }

    /// The next connection, its handshake done.
    pub fn accept(&self) -> Connection {
        let (tls, result) = self.shake_hands();
        result.expect("a handshake");
        begun(Connection { stream: Box::new(tls), collector: Collector::new() })
    }

    /// The next connection, and what became of its handshake.
    pub fn shake_hands(&self) -> (StreamOwned<ServerConnection, TcpStream>, io::Result<()>) {
        let mut tcp = self.tcp();
        let mut tls = ServerConnection::new(self.config.clone()).expect("a connection");
        let mut result = Ok(());
        while tls.is_handshaking() && result.is_ok() {
            result = tls.complete_io(&mut tcp).map(|_| ());
        }
        (StreamOwned::new(tls, tcp), result)
    }
}

/// Waits for the first message: frames before it are not this session's.
fn begun(mut connection: Connection) -> Connection {
    connection.until(|collector| collector.messages > 0);
    connection
}

impl Connection {
    /// Reads until something is so.
    #[track_caller]
    pub fn until(&mut self, is_so: impl Fn(&Collector) -> bool) {
        let started = Instant::now();
        while !is_so(&self.collector) {
            assert!(started.elapsed() < HANGS, "not so: {:?}", self.collector.heard);
            assert!(self.read(), "closed before it was so: {:?}", self.collector.heard);
        }
    }

    /// Reads to the end that TLS itself tells of: nothing was cut off.
    #[track_caller]
    pub fn heard_out(mut self) -> Collector {
        while self.read() {}
        self.collector
    }

    #[track_caller]
    fn read(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        let len = self.stream.read(&mut buffer).expect("octets, or an end that was told");
        self.collector.receive(&buffer[..len], 0);
        len > 0
    }
}

/// A program that runs, ended with the test.
pub struct Running(pub Child);

impl Running {
    pub fn agent(config: &Path) -> Self {
        let child = Command::new(ROCESCOPE)
            .args(["agent", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.expect("the agent starts"))
    }

    pub fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for its end, and gives its exit code and what it said.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let stderr = self.0.stderr.take();
        stderr.expect("a pipe").read_to_string(&mut said).expect("text");
        (self.0.wait().expect("ended").code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Writes a capture into a pipe, frame by frame.
pub struct Writer(File);

impl Writer {
    /// Waits for the reader.
    pub fn open(path: &Path) -> Self {
        let mut file = File::options().write(true).open(path).expect("a reader");
        let header: [u32; 6] = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1];
        header.iter().for_each(|word| file.write_all(&word.to_le_bytes()).expect("written"));
        Self(file)
    }

    pub fn frame(&mut self, seconds: u32, frame: &[u8]) {
        let len = u32::try_from(frame.len()).expect("short");
        for word in [seconds, 0, len, len] {
            self.0.write_all(&word.to_le_bytes()).expect("written");
        }
        self.0.write_all(frame).expect("written");
    }
}
