//! An authority, a collector at work, and exporters that are as good or as bad as a test wants.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use observe::export::Exporter;
use observe::outcome::Outcome;
use observe::report::{Flags, Report, Snapshot, StreamKey};
use observe::sequence::Counts;
use observe::window::Window;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber,
};
use rocescope::collector::{Change, Raw, Running, SessionFacts, SessionId, Sink, SinkError};
use rocescope::config::{Collector, read_collector};
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use wire::element::{Mapping, PEN_DOCUMENTATION};
use wire::frame::{Addresses, Namespace};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

pub const AGENT: &str = "agent.example";

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// A certificate and its key.
pub struct Identity {
    pub pem: String,
    pub key: String,
}

const HOUR: Duration = Duration::from_secs(3_600);

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // A subject unlike those of what it issues, which would look as if they had issued
        // themselves.
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub fn server(&self) -> Identity {
        self.issue("localhost", 1, ExtendedKeyUsagePurpose::ServerAuth, SystemTime::now() + HOUR)
    }

    pub fn client(&self, name: &str, serial: u64) -> Identity {
        self.issue(name, serial, ExtendedKeyUsagePurpose::ClientAuth, SystemTime::now() + HOUR)
    }

    pub fn issue(
        &self,
        name: &str,
        serial: u64,
        usage: ExtendedKeyUsagePurpose,
        until: SystemTime,
    ) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from(serial));
        params.extended_key_usages = vec![usage];
        params.not_before = (until - 48 * HOUR).into();
        params.not_after = until.into();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { pem, key: key.serialize_pem() }
    }

    pub fn revoke(&self, serial: u64) -> String {
        let params = CertificateRevocationListParams {
            this_update: (SystemTime::now() - HOUR).into(),
            next_update: (SystemTime::now() + HOUR).into(),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: (SystemTime::now() - HOUR).into(),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

/// Keeps changes in memory, and fails for as long as it is told to.
#[derive(Clone, Default)]
pub struct Kept {
    inner: Arc<Mutex<Inner>>,
    failing: Arc<AtomicU64>,
}

#[derive(Default)]
struct Inner {
    sessions: Vec<SessionFacts>,
    changes: Vec<Change>,
}

impl Kept {
    /// From now on the disk is full, or no longer.
    pub fn fill(&self, full: bool) {
        self.failing.store(u64::from(full), Ordering::SeqCst);
    }

    pub fn changes(&self) -> Vec<Change> {
        self.inner.lock().unwrap().changes.clone()
    }

    pub fn sessions(&self) -> Vec<SessionFacts> {
        self.inner.lock().unwrap().sessions.clone()
    }

    /// Session, epoch id, latest report id and outcome of every change of an epoch.
    pub fn epochs(&self) -> Vec<(u64, u64, u64, Outcome)> {
        let epoch = |change: &Change| match change {
            Change::Epoch(state) => {
                let latest = &state.epoch.latest;
                Some((state.session.0, latest.epoch_id, latest.report_id, state.outcome))
            }
            _ => None,
        };
        self.changes().iter().filter_map(epoch).collect()
    }

    /// Session and reason of every session that has ended.
    pub fn ends(&self) -> Vec<(u64, String)> {
        let end = |change: &Change| match change {
            Change::SessionClosed { session, reason, .. } => Some((session.0, reason.clone())),
            _ => None,
        };
        self.changes().iter().filter_map(end).collect()
    }

    fn check(&self) -> Result<(), SinkError> {
        match self.failing.load(Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(SinkError { disk_full: true, problem: "no room".into() }),
        }
    }
}

impl Sink for Kept {
    fn open_session(&mut self, facts: &SessionFacts) -> Result<SessionId, SinkError> {
        self.check()?;
        let mut inner = self.inner.lock().unwrap();
        inner.sessions.push(facts.clone());
        Ok(SessionId(inner.sessions.len() as u64))
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), SinkError> {
        self.check()?;
        self.inner.lock().unwrap().changes.extend_from_slice(changes);
        Ok(())
    }

    fn archive(&mut self, _session: SessionId, raw: &mut Raw) -> Result<(), SinkError> {
        self.check()?;
        while !raw.is_empty() {
            raw.take_first();
        }
        Ok(())
    }

    fn tend(&mut self, _now_ms: u64) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A collector with its files.
pub struct Site {
    pub directory: PathBuf,
    pub authority: Authority,
    pub kept: Kept,
    pub running: Option<Running>,
}

impl Site {
    /// Files for a collector that admits [`AGENT`] for domain 1; `limits` are lines of `[limits]`.
    pub fn new(test: &str, limits: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("collector").join(test);
        if directory.exists() {
            fs::remove_dir_all(&directory).unwrap();
        }
        fs::create_dir_all(&directory).unwrap();
        let authority = Authority::new();
        let server = authority.server();
        let site = Self { directory, authority, kept: Kept::default(), running: None };
        site.write("ca.pem", &site.authority.pem);
        site.write("collector.pem", &server.pem);
        site.write("collector.key", &server.key);
        site.configure("", "", limits);
        site
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.join(name), text).unwrap();
    }

    /// Writes the configuration with more lines of `[ipfix]`, more peers, and limits.
    pub fn configure(&self, ipfix: &str, peers: &str, limits: &str) {
        self.write(
            "collector.toml",
            &format!(
                "[ipfix]\nlisten = \"127.0.0.1:0\"\ncertificate = \"collector.pem\"\n\
                 key = \"collector.key\"\nauthority = \"ca.pem\"\n{ipfix}\n\
                 [[ipfix.peer]]\nname = \"{AGENT}\"\ndomains = [1]\n{peers}\n\
                 [http]\nlisten = \"127.0.0.1:0\"\n[limits]\n{limits}\n"
            ),
        );
    }

    pub fn config(&self) -> Collector {
        read_collector(&self.directory.join("collector.toml")).unwrap()
    }

    pub async fn start(mut self) -> Self {
        self.running = Some(Running::start(&self.config(), self.kept.clone()).await.unwrap());
        self
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub async fn connect(&self, identity: Option<&Identity>) -> std::io::Result<Connection> {
        let (connector, name) = self.connector(identity);
        connector.connect(name, self.tcp().await).await
    }

    pub fn connector(&self, identity: Option<&Identity>) -> (TlsConnector, ServerName<'static>) {
        connector(&self.authority.pem, identity)
    }

    /// The agent's own connection to a collector at a port.
    pub async fn agent_at(&self, port: u16) -> Connection {
        let identity = self.authority.client(AGENT, 2);
        let (connector, name) = self.connector(Some(&identity));
        let tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        connector.connect(name, tcp).await.unwrap()
    }

    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.running().address().unwrap()).await.unwrap()
    }

    /// The agent's own connection.
    pub async fn agent(&self) -> Connection {
        let identity = self.authority.client(AGENT, 2);
        self.connect(Some(&identity)).await.unwrap()
    }

    /// A number by its name.
    pub fn number(&self, name: &str) -> u64 {
        let rows = self.running().metrics().rows();
        rows.iter().filter(|row| row.name == name).map(|row| row.value).sum()
    }

    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            let mut told = String::new();
            for row in self.running().metrics().rows().iter().filter(|row| row.value > 0) {
                writeln!(told, "{} {}", row.name, row.value).unwrap();
            }
            panic!("waited in vain until {what}; {:?}\n{told}", self.kept.changes());
        }
    }

    pub async fn stop(&mut self) {
        self.running.take().unwrap().stop().await;
    }
}

pub type Connection = TlsStream<TcpStream>;

pub fn connector(
    authority: &str,
    identity: Option<&Identity>,
) -> (TlsConnector, ServerName<'static>) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        Some(Identity { pem, key }) => {
            let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    (TlsConnector::from(Arc::new(config)), name)
}

/// An exporter of our own, writing octets.
pub struct Export {
    exporter: Exporter,
}

impl Export {
    /// With the octets that a session begins with.
    pub fn new(domain: u32) -> (Self, Vec<u8>) {
        let mapping = Mapping::new(PEN_DOCUMENTATION).unwrap();
        let mut exporter = Exporter::new(mapping, domain, 3, 1400).unwrap();
        let mut octets = Vec::new();
        exporter.begin(100, &mut octets).unwrap();
        (Self { exporter }, octets)
    }

    pub fn reports(&mut self, reports: &[Report]) -> Vec<u8> {
        let mut octets = Vec::new();
        self.exporter.reports(reports, 100, &mut octets).unwrap();
        octets
    }
}

/// The start of a session and these reports.
pub fn exported(domain: u32, reports: &[Report]) -> Vec<u8> {
    let (mut export, mut octets) = Export::new(domain);
    octets.extend(export.reports(reports));
    octets
}

pub fn report(epoch_id: u64, report_id: u64) -> Report {
    let key = StreamKey {
        addresses: Addresses::v4([10, 0, 0, 1], [10, 0, 0, 2]),
        namespace: Namespace::default(),
        qp: 17,
        pkey: 0xffff,
    };
    let counts = Counts { requests: report_id, ..Counts::default() };
    let window = Window::new(64).unwrap();
    let flags = Flags::default();
    let snapshot = Snapshot { key, window, flags, start_ms: 5, end_ms: 5 + report_id, counts };
    Report { epoch_id, report_id, snapshot, other_keys: 0 }
}

pub fn last(mut report: Report) -> Report {
    report.snapshot.flags = Flags::FINAL_EPOCH;
    report
}

pub fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
