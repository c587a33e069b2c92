//! `[http]`: where results are read, and by whom.
//!
//! What listens to other machines is never open: it has TLS, and readers who are listed. That is
//! refused here, before anything listens.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::NamedFile;
use super::collector::{digest, listen};
use super::device::{is_dns_name, named};
use super::section::{Section, Value};

pub(super) const KEYS: &[&str] =
    &["serve", "listen", "hosts", "certificate", "key", "authority", "revocation", "reader"];
const READER_KEYS: &[&str] = &["name", "fingerprint", "token_sha256", "role"];

/// `[http]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Whether anything is served.
    pub serve: bool,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Names by which it may be asked for, in lower case, beside those of this machine's loopback.
    pub hosts: Vec<String>,
    /// TLS 1.3; without it, only this machine is served.
    pub tls: Option<HttpTls>,
    /// Who may read; where nobody is listed, everyone on this machine.
    pub readers: Vec<HttpReader>,
}

/// What the HTTP interface shows itself with, and whom it trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTls {
    /// The certificate chain.
    pub certificate: NamedFile,
    /// Its private key.
    pub private_key: NamedFile,
    /// The authority that readers' certificates must come from.
    pub authority: Option<NamedFile>,
    /// The certificates that the authority has revoked.
    pub revocation: Option<NamedFile>,
}

/// `[[http.reader]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReader {
    /// How the reader is known.
    pub identity: ReaderIdentity,
    /// What the reader may read.
    pub role: Role,
}

/// How a reader is known.
// SEQ-10.1
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReaderIdentity {
    /// A DNS name in its certificate, in lower case.
    Name(String),
    /// The SHA-256 of its certificate.
    Fingerprint([u8; 32]),
    /// The SHA-256 of its bearer token.
    Token([u8; 32]),
}

/// What a reader may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Read,
    /// `/metrics`, `/healthz` and `/readyz`.
    Metrics,
}

const ROLES: [(&str, Role); 2] = [("read", Role::Read), ("metrics", Role::Metrics)];

impl Role {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Metrics => "metrics",
        }
    }
}

impl HttpTls {
    /// The files of it.
    pub fn files(&self) -> impl Iterator<Item = &NamedFile> {
        let Self { certificate, private_key, authority, revocation } = self;
        [certificate, private_key].into_iter().chain(authority).chain(revocation)
    }
}

impl fmt::Display for ReaderIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, digest) = match self {
            Self::Name(name) => return f.write_str(name),
            Self::Fingerprint(digest) => ("sha256:", digest),
            Self::Token(digest) => ("token sha256:", digest),
        };
        f.write_str(word)?;
        digest.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl Http {
    /// All files that it names.
    pub fn files(&self) -> impl Iterator<Item = &NamedFile> {
        self.tls.iter().flat_map(HttpTls::files)
    }

    /// `https` or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Reads the section.
// SEQ-10.1, SEQ-10.3
pub(super) fn read(section: &Section<'_>, directory: &Path) -> Option<Http> {
    let serve = section.value("serve").map_or(Some(true), |value| value.boolean());
    let address = listen(section, 8080);
    let hosts = section.value("hosts").map_or(Some(Vec::new()), |value| hosts(&value));
    let tls = tls(section, directory);
    let readers = readers(section);
    let (tls, readers, address) = (tls?, readers?, address?);
    if !address.ip().to_canonical().is_loopback() && (tls.is_none() || readers.is_empty()) {
        let problem = format!(
            "{address} is reached from other machines, expected a loopback address, or certificate, \
             key and at least one [[http.reader]]"
        );
        match section.value("listen") {
            Some(value) => value.problem(problem),
            None => section.error("listen", problem),
        }
        return None;
    }
    if !readers.is_empty() && tls.is_none() {
        let problem = "readers without TLS, whose tokens anyone could read on the way; expected \
                       certificate and key";
        section.error("reader", problem.into());
        return None;
    }
    let by_certificate = readers.iter().any(|r| !matches!(r.identity, ReaderIdentity::Token(_)));
    let authority = tls.as_ref().is_some_and(|tls| tls.authority.is_some());
    match (by_certificate, authority) {
        (true, false) => {
            let problem = "missing, expected the authority that the certificates of readers by \
                           name or fingerprint come from";
            section.error("authority", problem.into());
            None
        }
        (false, true) => {
            let problem = "nobody is known by a certificate, expected an [[http.reader]] with a \
                           name or a fingerprint, or no authority";
            section.value("authority")?.problem(problem.into());
            None
        }
        _ => Some(Http { serve: serve?, listen: address, hosts: hosts?, tls, readers }),
    }
}

/// `None` where something is wrong.
#[expect(clippy::option_option, reason = "wrong, absent, there")]
pub(super) fn tls(section: &Section<'_>, directory: &Path) -> Option<Option<HttpTls>> {
    let file = |key| match section.value(key) {
        Some(value) => named(&value, directory).map(Some),
        None => Some(None),
    };
    let [certificate, private_key, authority, revocation] =
        ["certificate", "key", "authority", "revocation"].map(file);
    let missing = |key, of: &str| {
        section.error(key, format!("missing beside {of}, expected a file"));
        None
    };
    match (certificate?, private_key?, authority?, revocation?) {
        (None, None, None, None) => Some(None),
        (None, ..) => missing("certificate", &format!("the other files of [{}]", section.path())),
        (_, None, ..) => missing("key", "certificate"),
        (.., None, Some(_)) => missing("authority", "revocation"),
        (Some(certificate), Some(private_key), authority, revocation) => {
            Some(Some(HttpTls { certificate, private_key, authority, revocation }))
        }
    }
}

fn hosts(value: &Value<'_>) -> Option<Vec<String>> {
    let mut hosts = Vec::new();
    let mut good = true;
    for item in value.list("name")? {
        let expected = "a DNS name or an address, without a port";
        match item.parsed(expected, |text| {
            let address = text.parse::<IpAddr>().map(|address| address.to_string()).ok();
            address.or_else(|| is_dns_name(text).then(|| text.to_ascii_lowercase()))
        }) {
            Some(host) => hosts.push(host),
            None => good = false,
        }
    }
    good.then_some(hosts)
}

fn readers(section: &Section<'_>) -> Option<Vec<HttpReader>> {
    let mut lines: HashMap<ReaderIdentity, usize> = HashMap::new();
    let mut readers = Vec::new();
    let mut good = true;
    let sections = section.sections("reader", READER_KEYS);
    if sections.is_empty() && section.value("reader").is_some_and(|value| !value.is_empty_list()) {
        return None;
    }
    for section in &sections {
        let identity = identity(section);
        let role = section
            .required("role", "\"read\" or \"metrics\"")
            .and_then(|value| value.choice(&ROLES));
        if let Some(identity) = &identity
            && let Some(line) = lines.insert(identity.clone(), section.line())
        {
            section.error("", format!("the same reader as on line {line}, expected each once"));
            good = false;
        }
        match identity.zip(role) {
            Some((identity, role)) => readers.push(HttpReader { identity, role }),
            None => good = false,
        }
    }
    good.then_some(readers)
}

pub(super) fn identity(section: &Section<'_>) -> Option<ReaderIdentity> {
    let given: Vec<_> = ["name", "fingerprint", "token_sha256"]
        .into_iter()
        .filter_map(|key| Some((key, section.value(key)?)))
        .collect();
    let [(key, value)] = &given[..] else {
        let found: Vec<_> = given.iter().map(|(key, _)| *key).collect();
        let found = if found.is_empty() { "none".into() } else { found.join(" and ") };
        let problem =
            format!("{found} of name, fingerprint and token_sha256, expected exactly one of them");
        section.error("", problem);
        return None;
    };
    let digest = |text: &str| digest(text.strip_prefix("sha256:").unwrap_or(text));
    match *key {
        "name" => value.parsed("a DNS name, without wildcards", |text| {
            is_dns_name(text).then(|| ReaderIdentity::Name(text.to_ascii_lowercase()))
        }),
        "fingerprint" => value.parsed("\"sha256:\" and 64 hexadecimal digits", |text| {
            digest(text).map(ReaderIdentity::Fingerprint)
        }),
        _ => value.parsed("the SHA-256 of a token, 64 hexadecimal digits", |text| {
            digest(text).map(ReaderIdentity::Token)
        }),
    }
}
