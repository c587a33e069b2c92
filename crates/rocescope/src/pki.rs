//! `rocescope pki init`: a private authority, certificates and configurations for trying out.
//!
//! The authority's own key is not kept: nobody can issue another certificate with it. What is made
//! is good for this machine and for a year.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::example::GAPS;

/// The name in the collector's certificate.
pub const COLLECTOR_NAME: &str = "localhost";
/// The name in the agent's certificate.
pub const AGENT_NAME: &str = "agent.example";

const DAY: Duration = Duration::from_secs(86_400);
const VALID: Duration = Duration::from_secs(365 * 86_400);

const COLLECTOR_TOML: &str = include_str!("pki/collector.toml");
const AGENT_TOML: &str = include_str!("pki/agent.toml");

/// Why the files were not made.
#[derive(Debug)]
pub enum PkiError {
    /// A file or the directory, by the name of it.
    File(String, io::Error),
    /// A certificate could not be made.
    Certificate(rcgen::Error),
}

impl std::fmt::Display for PkiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(name, error) if error.kind() == io::ErrorKind::AlreadyExists => {
                write!(f, "{name} is there already, expected a directory without it")
            }
            Self::File(name, error) => write!(f, "{name}: {error}"),
            Self::Certificate(error) => write!(f, "a certificate cannot be made: {error}"),
        }
    }
}

impl std::error::Error for PkiError {}

/// Makes `ca.pem`, a certificate and a key (PKCS#8) for collector and agent each, their
/// configurations, and a capture for the agent to play. Keys can be read by their owner alone.
///
/// # Errors
/// A file is there already, or cannot be made; files that were made before stay.
pub fn init(directory: &Path) -> Result<(), PkiError> {
    let mut files = issue().map_err(PkiError::Certificate)?;
    files.push(("collector.toml", COLLECTOR_TOML.into(), 0o644));
    files.push(("agent.toml", AGENT_TOML.into(), 0o644));
    files.push(("example.pcap", GAPS.octets(), 0o644));
    write(directory, files)
}

/// Makes the certificates and keys alone.
///
/// # Errors
/// As [`init`].
pub fn certificates(directory: &Path) -> Result<(), PkiError> {
    write(directory, issue().map_err(PkiError::Certificate)?)
}

/// Makes all of the files, and none where one is there.
fn write(directory: &Path, files: Files) -> Result<(), PkiError> {
    let in_file = |path: &Path, error| PkiError::File(path.display().to_string(), error);
    fs::create_dir_all(directory).map_err(|error| in_file(directory, error))?;
    for (name, ..) in &files {
        let path = directory.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(in_file(&path, io::ErrorKind::AlreadyExists.into()));
        }
    }
    for (name, octets, mode) in files {
        let path = directory.join(name);
        let mut file = create(&path, mode).map_err(|error| in_file(&path, error))?;
        file.write_all(&octets).map_err(|error| in_file(&path, error))?;
    }
    Ok(())
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Name, content and mode of each.
type Files = Vec<(&'static str, Vec<u8>, u32)>;

fn issue() -> Result<Files, rcgen::Error> {
    let key = KeyPair::generate()?;
    let authority = authority()?;
    let certificate = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);
    let addresses = [COLLECTOR_NAME, "127.0.0.1", "::1"];
    let server = ExtendedKeyUsagePurpose::ServerAuth;
    let (collector, collector_key) = issued(&addresses, server, &issuer)?;
    let client = ExtendedKeyUsagePurpose::ClientAuth;
    let (agent, agent_key) = issued(&[AGENT_NAME], client, &issuer)?;
    Ok(vec![
        ("ca.pem", certificate.into(), 0o644),
        ("collector.pem", collector.into(), 0o644),
        ("collector.key", collector_key.into(), 0o600),
        ("agent.pem", agent.into(), 0o644),
        ("agent.key", agent_key.into(), 0o600),
    ])
}

fn authority() -> Result<CertificateParams, rcgen::Error> {
    let mut authority = params(&[])?;
    authority.distinguished_name.push(DnType::CommonName, "rocescope, for trying out");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(authority)
}

/// A certificate and its key.
fn issued(
    names: &[&str],
    usage: ExtendedKeyUsagePurpose,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = params(names)?;
    params.distinguished_name.push(DnType::CommonName, names[0]);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    Ok((params.signed_by(&key, issuer)?.pem(), key.serialize_pem()))
}

/// Valid from yesterday, for clocks that disagree, for a year.
fn params(names: &[&str]) -> Result<CertificateParams, rcgen::Error> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let now = SystemTime::now();
    params.not_before = (now - DAY).into();
    params.not_after = (now + VALID).into();
    Ok(params)
}
