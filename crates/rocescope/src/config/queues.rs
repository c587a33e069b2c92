//! `[[queues.device]]`: the devices whose queue telemetry a collector asks for, over RESTCONF.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::device::{endpoint, file, named, server};
use super::section::{Section, Value};
use super::{CollectorLimits, NamedFile, Server};

pub(super) const KEYS: &[&str] = &["device"];

const DEVICE_KEYS: &[&str] = &[
    "name",
    "url",
    "certificate",
    "key",
    "token_file",
    "authority",
    "server_name",
    "fingerprint",
    "mode",
    "poll_interval_s",
];

/// Octets of the name of a device.
const NAME_OCTETS_MAX: usize = 253;

/// The port of RESTCONF: that of HTTPS.
const PORT: u16 = 443;

/// `[[queues.device]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueDevice {
    /// What the collector calls it.
    pub name: String,
    /// Its host: a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How it is known.
    pub server: Server,
    /// How the collector is known to it.
    pub client: QueueClient,
    /// How rows are had.
    pub mode: QueueMode,
    /// How often it is asked where it does not tell by itself.
    pub poll_interval: Duration,
}

/// How the collector is known to a device.
// QUE-sec.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueClient {
    /// By a certificate.
    Certificate {
        /// Its chain.
        certificate: NamedFile,
        /// Its private key.
        private_key: NamedFile,
    },
    /// By a bearer token.
    Token(NamedFile),
}

/// How rows are had from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueMode {
    /// It tells them by itself; where it cannot, it is asked now and then.
    Subscribe,
    /// It is asked now and then.
    Poll,
}

impl fmt::Display for QueueDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}", self.host_and_port())
    }
}

impl QueueDevice {
    /// Host and port, as they stand in a URL.
    pub fn host_and_port(&self) -> String {
        let (host, port) = (&self.host, self.port);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Puts another file in the place of each that it names: they are read whenever it is reached.
    pub fn forget_files(&mut self, other: &NamedFile) {
        match &mut self.client {
            QueueClient::Certificate { certificate, private_key } => {
                certificate.clone_from(other);
                private_key.clone_from(other);
            }
            QueueClient::Token(file) => file.clone_from(other),
        }
        if let Server::Name { authority, .. } = &mut self.server {
            authority.clone_from(other);
        }
    }

    /// The files that it names.
    pub fn files(&self) -> Vec<&NamedFile> {
        let mut files = match &self.client {
            QueueClient::Certificate { certificate, private_key } => {
                vec![certificate, private_key]
            }
            QueueClient::Token(file) => vec![file],
        };
        if let Server::Name { authority, .. } = &self.server {
            files.push(authority);
        }
        files
    }
}

/// Whether there is a device.
pub(super) fn any(section: &Section<'_>) -> bool {
    section.value("device").is_some_and(|value| !value.is_empty_list())
}

/// Reads the devices, each name once, at most as many as there may be.
pub(super) fn read(
    section: &Section<'_>,
    limits: Option<&CollectorLimits>,
    directory: &Path,
) -> Option<Vec<QueueDevice>> {
    let sections = section.sections("device", DEVICE_KEYS);
    let most = limits.map_or(u64::MAX, |limits| limits.queue_devices_max);
    if let Some(beyond) = usize::try_from(most).ok().and_then(|most| sections.get(most)) {
        let problem = format!("one more than {most}, limits.queue_devices_max");
        beyond.error("", problem);
        return None;
    }
    let mut lines: HashMap<String, usize> = HashMap::new();
    let mut devices = Vec::new();
    let mut good =
        section.value("device").is_none_or(|value| value.is_empty_list()) || !sections.is_empty();
    for section in &sections {
        let device = device(section, directory);
        if let Some(device) = &device
            && let Some(line) = lines.insert(device.name.clone(), section.line())
        {
            section.error("name", format!("the same as on line {line}, expected each once"));
            good = false;
        }
        match device {
            Some(device) => devices.push(device),
            None => good = false,
        }
    }
    good.then_some(devices)
}

fn device(section: &Section<'_>, directory: &Path) -> Option<QueueDevice> {
    let name = section.required("name", "what the device is called").and_then(|value| {
        value.parsed(format_args!("1 to {NAME_OCTETS_MAX} octets without spaces"), |text| {
            let plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
            (plain && (1..=NAME_OCTETS_MAX).contains(&text.len())).then(|| text.to_owned())
        })
    });
    let expected = "\"https://host\" or \"https://host:port\", without a path";
    let url = section.required("url", expected).and_then(|value| value.parsed(expected, url));
    let host = url.as_ref().map(|(host, _)| host.as_str());
    let server = server(section, host, "device", directory);
    let client = client(section, directory);
    let words = [("subscribe", QueueMode::Subscribe), ("poll", QueueMode::Poll)];
    let mode = section.choice("mode", &words);
    let interval = section.number("poll_interval_s", 1..=86_400, 10);
    let (host, port) = url?;
    Some(QueueDevice {
        name: name?,
        host,
        port,
        server: server?,
        client: client?,
        mode: mode?,
        poll_interval: Duration::from_secs(interval?),
    })
}

fn url(text: &str) -> Option<(String, u16)> {
    let rest = text.strip_prefix("https://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    endpoint(rest).or_else(|| endpoint(&format!("{rest}:{PORT}")))
}

/// A certificate with its key, or a token.
fn client(section: &Section<'_>, directory: &Path) -> Option<QueueClient> {
    let beside = |value: &Value<'_>| {
        value.problem("beside a token, expected a certificate or a token".into());
    };
    if let Some(token) = section.value("token_file") {
        let mut good = true;
        for value in ["certificate", "key"].into_iter().filter_map(|name| section.value(name)) {
            beside(&value);
            good = false;
        }
        return named(&token, directory).filter(|_| good).map(QueueClient::Token);
    }
    if section.value("certificate").is_none() && section.value("key").is_none() {
        let problem = "neither a certificate with its key nor a token_file, expected one of them";
        section.error("", problem.into());
        return None;
    }
    let certificate = file(section, "certificate", directory);
    let private_key = file(section, "key", directory);
    Some(QueueClient::Certificate { certificate: certificate?, private_key: private_key? })
}
