//! Who may read what: readers with a bearer token or a client certificate, and what their role
//! lets them read. Where no reader is listed, which only loopback may have, everybody may.

use std::fmt;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use subtle::ConstantTimeEq as _;

use crate::collector::access::{certificates, fingerprint, names, of, verifier};
use crate::config::{Http, HttpReader, HttpTls, ReaderIdentity, Role, printable};

/// What the interface shows itself with, whom it trusts and who may read.
#[derive(Debug)]
pub struct Access {
    /// TLS 1.3 and nothing else; a client certificate is asked for where readers are known by one.
    pub tls: Option<Arc<ServerConfig>>,
    verifier: Option<Verifier>,
    readers: Vec<HttpReader>,
}

/// Why somebody may not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Neither a token nor a certificate.
    Nothing,
    /// A token that nobody has.
    Token,
    /// A certificate that is not, or no longer, good.
    Certificate(String),
    /// A good certificate of somebody who is not listed.
    Unlisted,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str(
                "neither a bearer token nor a client certificate, expected one of an \
                 [[http.reader]]",
            ),
            Self::Token => f.write_str("a bearer token that no [[http.reader]] has"),
            Self::Certificate(problem) => {
                write!(f, "a client certificate that is not good: {}", printable(problem))
            }
            Self::Unlisted => f.write_str("a client certificate that no [[http.reader]] has"),
        }
    }
}

impl Access {
    /// Reads the files that a configuration names.
    ///
    /// # Errors
    /// The first file that cannot be used, with its key and why.
    // SEQ-10.1
    pub fn load(http: &Http) -> Result<Self, String> {
        let readers = http.readers.clone();
        let Some(files) = &http.tls else { return Ok(Self { tls: None, verifier: None, readers }) };
        let (tls, verifier) = tls(files)?;
        Ok(Self { tls: Some(Arc::new(tls)), verifier, readers })
    }

    /// Whether only some may read.
    pub fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Says what may be read with a certificate chain and a bearer token; asked for every request,
    /// so that a reload holds for connections that are open.
    ///
    /// # Errors
    /// Why nothing.
    // SEQ-10.1, SEQ-10.3
    pub fn role(
        &self,
        chain: &[CertificateDer<'_>],
        token: Option<&[u8]>,
        now: UnixTime,
    ) -> Result<Role, Denied> {
        if self.readers.is_empty() {
            return Ok(Role::Read);
        }
        let known = || self.readers.iter().map(|reader| (&reader.identity, reader.role));
        let roles = who(known, self.verifier.as_ref(), chain, token, now)?;
        Ok(if roles.contains(&Role::Read) { Role::Read } else { Role::Metrics })
    }
}

/// Of those that are known, whom a bearer token or, without one, a certificate chain shows; at least
/// one.
///
/// # Errors
/// Why it shows nobody.
// SEQ-10.1
pub(crate) fn who<'a, T: Copy, I: Iterator<Item = (&'a ReaderIdentity, T)>>(
    known: impl Fn() -> I,
    verifier: Option<&Verifier>,
    chain: &[CertificateDer<'_>],
    token: Option<&[u8]>,
    now: UnixTime,
) -> Result<Vec<T>, Denied> {
    let (found, denied) = match (token, chain.split_first()) {
        (Some(token), _) => (of_token(known(), token), Denied::Token),
        (None, Some((end, others))) => {
            (of_certificate(known(), verifier, end, others, now)?, Denied::Unlisted)
        }
        (None, None) => return Err(Denied::Nothing),
    };
    if found.is_empty() { Err(denied) } else { Ok(found) }
}

/// Looks at all of them, however many are right or nearly.
fn of_token<'a, T>(known: impl Iterator<Item = (&'a ReaderIdentity, T)>, token: &[u8]) -> Vec<T> {
    let shown = digest(&SHA256, token);
    let mut found = Vec::new();
    for (identity, one) in known {
        if let ReaderIdentity::Token(expected) = identity
            && bool::from(shown.as_ref().ct_eq(expected))
        {
            found.push(one);
        }
    }
    found
}

fn of_certificate<'a, T>(
    known: impl Iterator<Item = (&'a ReaderIdentity, T)>,
    verifier: Option<&Verifier>,
    end: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<Vec<T>, Denied> {
    let bad = |problem: String| Denied::Certificate(problem);
    let verifier = verifier.ok_or(Denied::Unlisted)?;
    verifier.verify_client_cert(end, others, now).map_err(|error| bad(error.to_string()))?;
    let names = names(end).map_err(|denied| bad(denied.to_string()))?;
    let fingerprint = fingerprint(end);
    let is = |identity: &ReaderIdentity| match identity {
        ReaderIdentity::Name(name) => names.contains(name),
        ReaderIdentity::Fingerprint(of) => *of == fingerprint,
        ReaderIdentity::Token(_) => false,
    };
    Ok(known.filter(|(identity, _)| is(identity)).map(|(_, one)| one).collect())
}

/// What verifies the certificates of clients.
pub(crate) type Verifier = Arc<dyn ClientCertVerifier>;

/// TLS 1.3 of a server of HTTP, and what verifies the certificates of those who show one.
///
/// # Errors
/// The first file that cannot be used, with its key and why.
pub(crate) fn tls(files: &HttpTls) -> Result<(ServerConfig, Option<Verifier>), String> {
    let HttpTls { certificate, private_key, authority, revocation } = files;
    let chain = certificates(certificate)?;
    let key =
        PrivateKeyDer::from_pem_file(&private_key.path).map_err(|error| of(private_key, error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = match authority {
        Some(authority) => {
            let builder = verifier(authority, revocation.as_ref(), provider.clone())?;
            let named = revocation.as_ref().unwrap_or(authority);
            // Others of the readers may have a token.
            Some(builder.allow_unauthenticated().build().map_err(|error| of(named, error))?)
        }
        None => None,
    };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?;
    let builder = match &verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier.clone()),
        None => builder.with_no_client_auth(),
    };
    let mut tls = builder.with_single_cert(chain, key).map_err(|error| of(certificate, error))?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A session that is resumed would not show its certificate again.
    tls.session_storage = Arc::new(NoServerSessionStorage {});
    tls.send_tls13_tickets = 0;
    Ok((tls, verifier))
}
