//! An exporter's end of a connection: TLS as an agent makes it, and reports over it.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use observe::export::Exporter;
use observe::report::Report;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use wire::element::Mapping;

use crate::site::{PATIENCE, Site};

/// A connection as `agent.example`.
pub struct Connection {
    stream: StreamOwned<ClientConnection, TcpStream>,
    exporters: BTreeMap<(u32, u64), Exporter>,
}

impl Connection {
    #[track_caller]
    pub fn new(site: &Site, port: u16) -> Self {
        Self::open(site, port).expect("a session")
    }

    pub fn open(site: &Site, port: u16) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(site.path("ca.pem")).expect("an authority");
        roots.add(root).expect("a root");
        let chain = vec![CertificateDer::from_pem_file(site.path("agent.pem")).expect("a file")];
        let key = PrivateKeyDer::from_pem_file(site.path("agent.key")).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .expect("a client");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut tls = ClientConnection::new(Arc::new(config), name).expect("a connection");
        let mut tcp = TcpStream::connect(("127.0.0.1", port))?;
        tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp)?;
        }
        Ok(Self { stream: StreamOwned::new(tls, tcp), exporters: BTreeMap::new() })
    }

    /// Sends one report, the Templates before the first of its domain and point.
    #[track_caller]
    pub fn report(&mut self, domain: u32, point: u64, report: &Report) {
        self.reports(domain, point, std::slice::from_ref(report)).expect("taken");
    }

    /// Sends reports, the Templates before the first of their domain and point.
    pub fn reports(&mut self, domain: u32, point: u64, reports: &[Report]) -> io::Result<()> {
        let mut octets = Vec::new();
        let exporter = self.exporters.entry((domain, point)).or_insert_with(|| {
            let mut new = Exporter::new(Mapping::default(), domain, point, 1400).expect("lengths");
            new.begin(0, &mut octets).expect("octets");
            new
        });
        exporter.reports(reports, 0, &mut octets).expect("octets");
        self.send(&octets)
    }

    pub fn send(&mut self, octets: &[u8]) -> io::Result<()> {
        self.stream.write_all(octets)?;
        self.stream.flush()
    }

    /// Ends the session as TLS does, and waits until the other side has, too.
    pub fn close(mut self) -> io::Result<()> {
        self.stream.conn.send_close_notify();
        self.stream.flush()?;
        let mut rest = Vec::new();
        // How the other side ends is its own affair.
        _ = self.stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "a collector says nothing");
        Ok(())
    }
}
