//! Who may export: certificates, revocation lists and the peers of the configuration
//! (sequence draft, section 10.1).
//!
//! TLS verifies that a certificate comes from the authority; whether its holder may export, and for
//! which Observation Domains, is said by the configuration alone.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientCertVerifierBuilder, NoServerSessionStorage, WebPkiClientVerifier};

use crate::config::{Ipfix, NamedFile, Peer, PeerIdentity, printable};

/// Names of one certificate that are looked at.
const NAMES_MAX: usize = 256;

/// What the collector shows itself with, whom it trusts and whom it admits.
#[derive(Debug)]
pub struct Access {
    /// TLS 1.3 with a client certificate, and nothing else.
    pub tls: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
    peers: Vec<Peer>,
}

/// A peer that may export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// As the configuration knows it: a name, or `sha256:` and a fingerprint.
    pub name: String,
    /// SHA-256 of its certificate.
    pub fingerprint: [u8; 32],
    /// What it may report for.
    pub domains: BTreeSet<u32>,
}

/// Why somebody is not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No certificate.
    NoCertificate,
    /// A certificate that is not, or no longer, good.
    Certificate(String),
    /// A good certificate of somebody who is not listed.
    Unlisted {
        /// The names in it.
        names: Vec<String>,
        /// Its SHA-256.
        fingerprint: [u8; 32],
    },
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("no certificate"),
            Self::Certificate(problem) => f.write_str(problem),
            Self::Unlisted { names, fingerprint } => {
                let names: Vec<_> = names.iter().take(3).map(|name| printable(name)).collect();
                let names = if names.is_empty() { "no name".into() } else { names.join(", ") };
                write!(
                    f,
                    "a certificate with {names} and fingerprint {}, expected that of an \
                     [[ipfix.peer]]",
                    shown(fingerprint)
                )
            }
        }
    }
}

impl Access {
    /// Reads the files that a configuration names.
    ///
    /// # Errors
    /// The first file that cannot be used, with its key and why.
    // SEQ-10.1
    pub fn load(ipfix: &Ipfix) -> Result<Self, String> {
        let chain = certificates(&ipfix.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&ipfix.private_key.path)
            .map_err(|error| of(&ipfix.private_key, error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = verifier(&ipfix.authority, ipfix.revocation.as_ref(), provider.clone())?
            .build()
            .map_err(|error| of(ipfix.revocation.as_ref().unwrap_or(&ipfix.authority), error))?;
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(chain, key)
            .map_err(|error| of(&ipfix.certificate, error))?;
        // A session that is resumed would not show its certificate again.
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        tls.send_tls13_tickets = 0;
        Ok(Self { tls: Arc::new(tls), verifier, peers: ipfix.peers.clone() })
    }

    /// Says whether the holder of a certificate may export; asked when a session begins, and again
    /// of every open one when the configuration changes.
    ///
    /// # Errors
    /// Why not.
    // SEQ-10.1, SEQ-10.3
    pub fn admit(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<Admitted, Denied> {
        let (end, intermediates) = chain.split_first().ok_or(Denied::NoCertificate)?;
        let verified = self.verifier.verify_client_cert(end, intermediates, now);
        verified.map_err(|error| Denied::Certificate(error.to_string()))?;
        let fingerprint = fingerprint(end);
        let names = names(end)?;
        let is = |peer: &&Peer| match &peer.identity {
            PeerIdentity::Name(name) => names.contains(name),
            PeerIdentity::Fingerprint(of) => *of == fingerprint,
        };
        let mut admitted: Option<Admitted> = None;
        for peer in self.peers.iter().filter(is) {
            let name = match &peer.identity {
                PeerIdentity::Name(name) => name.clone(),
                PeerIdentity::Fingerprint(_) => shown(&fingerprint),
            };
            admitted
                .get_or_insert_with(|| Admitted { name, fingerprint, domains: BTreeSet::new() })
                .domains
                .extend(&peer.domains);
        }
        let names = names.into_iter().collect();
        admitted.ok_or(Denied::Unlisted { names, fingerprint })
    }
}

/// What verifies the certificates that come from an authority, but for those that it has revoked.
///
/// # Errors
/// A file that cannot be used, with its key and why.
pub(crate) fn verifier(
    authority: &NamedFile,
    revocation: Option<&NamedFile>,
    provider: Arc<CryptoProvider>,
) -> Result<ClientCertVerifierBuilder, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).map_err(|error| of(authority, error))?;
    }
    let mut lists = Vec::new();
    if let Some(file) = revocation {
        let read = CertificateRevocationListDer::pem_file_iter(&file.path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>);
        lists = read.map_err(|error| of(file, error))?;
        if lists.is_empty() {
            return Err(of(file, "no X509 CRL in it, expected at least one"));
        }
    }
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).with_crls(lists))
}

/// A certificate chain.
///
/// # Errors
/// The file cannot be used, with its key and why.
pub(crate) fn certificates(file: &NamedFile) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(&file.path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| of(file, error))?;
    if read.is_empty() {
        return Err(of(file, "no certificate in it, expected at least one"));
    }
    Ok(read)
}

/// A problem with a file that the configuration names, in a line.
pub(crate) fn of(file: &NamedFile, problem: impl fmt::Display) -> String {
    let NamedFile { key, line, .. } = file;
    printable(&format!("line {line}: {key}: {file}: {problem}"))
}

/// The DNS names of a certificate, in lower case.
pub(crate) fn names(certificate: &CertificateDer<'_>) -> Result<BTreeSet<String>, Denied> {
    let read = webpki::EndEntityCert::try_from(certificate)
        .map_err(|error| Denied::Certificate(error.to_string()))?;
    Ok(read.valid_dns_names().take(NAMES_MAX).map(str::to_ascii_lowercase).collect())
}

/// SHA-256 of a certificate.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let mut octets = [0; 32];
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    octets.copy_from_slice(digest.as_ref());
    octets
}

fn shown(fingerprint: &[u8; 32]) -> String {
    let digits: String = fingerprint.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("sha256:{digits}")
}
