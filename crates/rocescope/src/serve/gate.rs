//! What stands before every request: the name it asks for, who asks, and what they may read.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, Request, StatusCode, Uri};
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::sync::watch;

use super::access::Access;
use super::answer::{Problem, shown};
use super::endpoints::FOR_METRICS;
use crate::config::{Http, Role};

/// What one connection is asked by.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    access: watch::Receiver<Arc<Access>>,
    /// The certificates that were shown.
    chain: Arc<[CertificateDer<'static>]>,
    names: Names,
}

/// The names by which the interface may be asked for.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// Listed ones, in lower case.
    listed: Arc<[String]>,
    /// Whether it is on loopback: then no other name but those of loopback is good, so that a page
    /// of somebody else's whose name has come to mean this machine reads nothing.
    loopback: bool,
    /// Whether the configuration can list more.
    configurable: bool,
}

impl Names {
    pub fn of(http: &Http) -> Self {
        let loopback = http.listen.ip().to_canonical().is_loopback();
        Self { listed: http.hosts.clone().into(), loopback, configurable: true }
    }

    /// Those of loopback alone.
    pub fn of_this_machine() -> Self {
        Self { listed: Arc::default(), loopback: true, configurable: false }
    }

    /// Whether the interface may be asked for by a name with or without a port.
    // SEQ-10.3
    fn admit(&self, authority: &str) -> bool {
        if !self.loopback && self.listed.is_empty() {
            return true;
        }
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|octet| octet.is_ascii_digit()) => host,
            _ => authority,
        };
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let address: Option<IpAddr> = bare.unwrap_or(host).parse().ok();
        let shown = address.map_or_else(|| host.to_owned(), |address| address.to_string());
        let loopback =
            || host == "localhost" || address.is_some_and(|a| a.to_canonical().is_loopback());
        self.listed.contains(&shown) || self.loopback && loopback()
    }
}

impl Gate {
    pub fn new(
        access: watch::Receiver<Arc<Access>>,
        chain: Vec<CertificateDer<'static>>,
        names: Names,
    ) -> Self {
        Self { access, chain: chain.into(), names }
    }

    /// Lets a request through.
    ///
    /// # Errors
    /// What it is answered instead.
    // SEQ-10.1, SEQ-10.3
    pub fn admit<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        named(&self.names, request.headers(), request.uri())?;
        let token = token(request.headers()).map_err(Problem::unknown_reader)?;
        let access = self.access.borrow().clone();
        let role = access
            .role(&self.chain, token, UnixTime::now())
            .map_err(|denied| Problem::unknown_reader(denied.to_string()))?;
        let path = request.uri().path();
        if role == Role::Metrics && !FOR_METRICS.contains(&path) {
            let detail = format!(
                "role \"{}\" may read {}, expected role \"read\"",
                role.word(),
                FOR_METRICS.join(", ")
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        }
        Ok(())
    }
}

/// Whether a request asks for the interface by a name that it may be asked by.
///
/// # Errors
/// What it is answered instead.
// SEQ-10.3
pub(super) fn named(names: &Names, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().map(|host| host.to_str().unwrap_or("\u{fffd}"));
    if hosts.next().is_some() {
        let detail = "more than one Host header, expected one";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let of_target = uri.authority().map(|authority| authority.as_str());
    let Some(host) = host else {
        let detail = "no Host header, expected one";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    };
    for name in [Some(host), of_target].into_iter().flatten() {
        if !names.admit(name) {
            let expected = match (names.loopback, names.configurable) {
                (true, true) => "localhost, a loopback address or one of http.hosts",
                (true, false) => "localhost or a loopback address",
                (false, _) => "one of http.hosts",
            };
            let detail = format!("this is not {}, expected {expected}", shown(name));
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail));
        }
    }
    Ok(())
}

/// The bearer token, if there is one.
///
/// # Errors
/// In a line: there is something else instead.
pub(crate) fn token(headers: &HeaderMap) -> Result<Option<&[u8]>, &'static str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let Some(first) = all.next() else { return Ok(None) };
    let octets = first.as_bytes();
    let scheme = octets.get(..7).filter(|word| word.eq_ignore_ascii_case(b"bearer "));
    if scheme.is_none() || all.next().is_some() {
        return Err("an Authorization header of another kind, expected one with a bearer token");
    }
    Ok(octets.get(7..).map(<[u8]>::trim_ascii))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(loopback: bool, listed: &[&str]) -> Names {
        let listed = listed.iter().map(|name| (*name).to_owned()).collect();
        Names { listed, loopback, configurable: true }
    }

    // SEQ-10.3
    #[test]
    fn on_loopback_only_names_of_loopback_and_listed_ones_are_good() {
        let names = names(true, &["collector.example", "192.0.2.1", "2001:db8::1"]);
        for good in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:80",
            "Collector.Example:443",
            "192.0.2.1",
            "[2001:db8::1]:8080",
        ] {
            assert!(names.admit(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
            "localhost:80:80",
            "user@localhost:80",
            "\u{fffd}",
        ] {
            assert!(!names.admit(bad), "{bad}");
        }
    }

    #[test]
    fn elsewhere_every_name_is_good_unless_some_are_listed() {
        assert!(names(false, &[]).admit("anything.example"));
        let listed = names(false, &["collector.example"]);
        assert!(listed.admit("collector.example:8443"));
        assert!(!listed.admit("localhost"));
    }
}
