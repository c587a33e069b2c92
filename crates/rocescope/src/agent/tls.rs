//! The side of TLS that connects (sequence draft, section 10): version 1.3 and no other, our
//! certificate shown where there is one, the other's checked by name or by fingerprint. An agent
//! reaches collectors so, and a collector devices.

use std::fmt::Display;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::config::{NamedFile, Server};

/// What a connection needs.
#[derive(Clone, Debug)]
pub struct Tls {
    /// How it is made.
    pub config: Arc<ClientConfig>,
    /// The name that the server is asked for by.
    pub name: ServerName<'static>,
}

/// Reads certificates and key; without them no certificate of ours is shown. `host` stands in for
/// the name where only a fingerprint counts.
///
/// # Errors
/// In a line, with the file that is at fault.
// SEQ-10.1
pub fn load(
    server: &Server,
    host: &str,
    client: Option<(&NamedFile, &NamedFile)>,
) -> Result<Tls, String> {
    let provider = Arc::new(ring::default_provider());
    let identity = client.map(|(certificate, private_key)| {
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(&private_key.path)
            .map_err(|error| of_file(private_key, error))?;
        Ok::<_, String>((certificate, chain, key))
    });
    let identity = identity.transpose()?;
    let (verifier, name): (Arc<dyn ServerCertVerifier>, &str) = match server {
        Server::Name { name, authority } => (by_name(authority, &provider)?, name),
        Server::Fingerprint(sha256) => {
            (Arc::new(ByFingerprint { sha256: *sha256, provider: provider.clone() }), host)
        }
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match identity {
        Some((certificate, chain, key)) => config
            .with_client_auth_cert(chain, key)
            .map_err(|error| of_file(certificate, format!("does not go with its key: {error}")))?,
        None => config.with_no_client_auth(),
    };
    let name =
        ServerName::try_from(name.to_owned()).map_err(|_| format!("{name}: no host name"))?;
    Ok(Tls { config: Arc::new(config), name })
}

fn of_file(file: &NamedFile, error: impl Display) -> String {
    format!("{file}: {error}")
}

fn certificates(file: &NamedFile) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(&file.path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| of_file(file, error))?;
    if read.is_empty() { Err(of_file(file, "no certificate in it")) } else { Ok(read) }
}

fn by_name(
    authority: &NamedFile,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for root in certificates(authority)? {
        roots.add(root).map_err(|error| of_file(authority, error))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| of_file(authority, error))
}

/// Takes one certificate, whoever signed it, and only if its owner holds its key.
#[derive(Debug)]
struct ByFingerprint {
    sha256: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ByFingerprint {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = ::ring::digest::digest(&::ring::digest::SHA256, end_entity);
        if found.as_ref() == self.sha256 {
            return Ok(ServerCertVerified::assertion());
        }
        let hexadecimal: String = found.as_ref().iter().map(|o| format!("{o:02x}")).collect();
        Err(Error::General(format!(
            "its certificate is sha256:{hexadecimal}, not the one expected"
        )))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2, expected 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
