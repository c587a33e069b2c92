//! Configuration files: TOML in, values that the program can run with out, and every error with
//! its file, line, key and what is legal.
//!
//! There are two kinds. A device file says what is observed and which streams are provisioned; a
//! collector file says who may export and what is kept. Nothing here opens a file that a
//! configuration names; [`crate::check`] does.

mod address;
mod beside;
mod collector;
mod device;
mod elements;
mod error;
mod http;
mod limits;
mod manage;
mod pfc;
mod queue;
mod queues;
mod rules;
mod section;
mod source;
mod starter;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use self::manage::{Login, Manage, Netconf, Proof, Restconf};
pub(crate) use address::{shown, shown_prefix};
pub use beside::{Beside, FlowOf, PfcDevice, PfcDevicePort, PfcFlows};
pub use collector::{Collector, Ipfix, Peer, PeerIdentity, Store};
pub use device::{
    Account, Agent, Device, Export, Icrc, Metering, Observation, PLAIN_TCP_WORDS, Security, Server,
};
pub use error::{ConfigError, printable};
pub use http::{Http, HttpReader, HttpTls, ReaderIdentity, Role};
pub use limits::{
    AgentLimits, CollectorLimits, Limit, ManageLimits, MeterLimits, PfcLimits, QueueLimits,
};
pub use pfc::{PfcClasses, PfcExport, PfcKind, PfcPort, PfcSource, utc};
pub use queue::{QueueKind, QueueMap, QueueSource, QueueTelemetry};
pub use queues::{QueueClient, QueueDevice, QueueMode};
pub(crate) use rules::segment_kind;
pub use rules::{ATTESTATIONS, Condition, Provisioned};
pub use source::{Interface, Pace, Replay, Sources};
pub use starter::{StarterStream, starter};

pub(crate) use section::{alternatives, identifier, nearest, one_of};

use section::Document;

/// Octets of the largest file that is read.
pub const FILE_OCTETS_MAX: u64 = 64 << 20;

/// Errors of one file that are reported; of what goes beyond, only the number.
pub const ERRORS_MAX: usize = 1_000;

/// A configuration of either kind.
#[derive(Clone, Debug)]
pub enum Config {
    /// For `rocescope meter` and `rocescope agent`.
    Device(Box<Device>),
    /// For `rocescope collector`.
    Collector(Box<Collector>),
}

/// A file that the configuration names, and where it names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The path, made relative to the configuration's own directory unless it is absolute.
    pub path: PathBuf,
    /// The key that names it.
    pub key: String,
    /// The line on which it is named.
    pub line: usize,
}

/// Reads a file of either kind; what it is shows in its sections.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read(path: &Path) -> Result<Config, Vec<ConfigError>> {
    parse(&path.display().to_string(), &text_of(path)?, directory_of(path))
}

/// Reads a device file.
///
/// # Errors
/// Everything that is wrong with the file, or that it is one of a collector.
pub fn read_device(path: &Path) -> Result<Device, Vec<ConfigError>> {
    match read(path)? {
        Config::Device(device) => Ok(*device),
        Config::Collector(_) => {
            Err(vec![other_kind(path, "a collector's", "a device's: [observation], [[stream]]")])
        }
    }
}

/// Reads a device file that may take back what was attested before: an entry without all of it
/// provisions nothing ([`Device::withdrawn`]).
///
/// # Errors
/// As [`read_device`], but for that.
// SEQ-3.6
pub fn read_device_with_withdrawals(path: &Path) -> Result<Device, Vec<ConfigError>> {
    let (file, text) = (path.display().to_string(), text_of(path)?);
    match parsed(Document::with_withdrawals(&file, &text), directory_of(path))? {
        Config::Device(device) => Ok(*device),
        Config::Collector(_) => {
            Err(vec![other_kind(path, "a collector's", "a device's: [observation], [[stream]]")])
        }
    }
}

/// Reads a collector file.
///
/// # Errors
/// Everything that is wrong with the file, or that it is one of a device.
pub fn read_collector(path: &Path) -> Result<Collector, Vec<ConfigError>> {
    match read(path)? {
        Config::Collector(collector) => Ok(*collector),
        Config::Device(_) => {
            Err(vec![other_kind(path, "a device's", "a collector's: [ipfix], [[ipfix.peer]]")])
        }
    }
}

/// Reads a text of either kind. `file` is its name in errors, and paths in it are relative to
/// `directory`.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn parse(file: &str, text: &str, directory: &Path) -> Result<Config, Vec<ConfigError>> {
    parsed(Document::new(file, text), directory)
}

fn parsed(document: Document<'_>, directory: &Path) -> Result<Config, Vec<ConfigError>> {
    let built = document.parse().and_then(|table| match Kind::of(&document, &table)? {
        Kind::Device => {
            device::read(&document, &table, directory).map(|d| Config::Device(Box::new(d)))
        }
        Kind::Collector => {
            collector::read(&document, &table, directory).map(|c| Config::Collector(Box::new(c)))
        }
    });
    document.finish(built)
}

fn text_of(path: &Path) -> Result<String, Vec<ConfigError>> {
    let name = path.display().to_string();
    let failed = |problem: String| vec![ConfigError::of_file(&name, problem)];
    let mut octets = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_OCTETS_MAX + 1).read_to_end(&mut octets))
        .map_err(|error| failed(format!("cannot be read: {error}")))?;
    if u64::try_from(octets.len()).is_ok_and(|len| len > FILE_OCTETS_MAX) {
        return Err(failed(format!("too large, expected at most {FILE_OCTETS_MAX} octets")));
    }
    String::from_utf8(octets).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..good].iter().filter(|b| **b == b'\n').count();
        let problem = "octets that are not UTF-8, expected TOML".into();
        vec![ConfigError { line: Some(line), ..ConfigError::of_file(&name, problem) }]
    })
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn other_kind(path: &Path, found: &str, expected: &str) -> ConfigError {
    let problem = format!("{found} configuration, expected {expected}");
    ConfigError { line: Some(1), ..ConfigError::of_file(&path.display().to_string(), problem) }
}

/// What a configuration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Device,
    Collector,
}

impl Kind {
    /// The kind whose sections the file has more of; an error where that is neither.
    fn of(document: &Document<'_>, table: &toml::de::DeTable<'_>) -> Option<Self> {
        let names: Vec<&str> = table.keys().map(|key| key.get_ref().as_ref()).collect();
        let of = |keys: &[&str]| {
            let shared = ["elements", "pfc"];
            names.iter().filter(|name| !shared.contains(name) && keys.contains(name)).count()
        };
        match of(device::KEYS).cmp(&of(collector::KEYS)) {
            std::cmp::Ordering::Greater => return Some(Self::Device),
            std::cmp::Ordering::Less => return Some(Self::Collector),
            // A device may do nothing but poll counters; a collector has [ipfix].
            std::cmp::Ordering::Equal if names.contains(&"pfc") && of(device::KEYS) == 0 => {
                return Some(Self::Device);
            }
            std::cmp::Ordering::Equal => {}
        }
        let problem = format!(
            "cannot tell what it configures, expected sections of a device ({}) or of a collector \
             ({})",
            device::KEYS.join(", "),
            collector::KEYS.join(", ")
        );
        document.error(0, "", problem);
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            let all = [device::KEYS, collector::KEYS].concat();
            if !all.contains(&name)
                && let Some(known) = section::nearest(name, &all)
            {
                let problem = format!("unknown key, the nearest known one is {known}");
                document.error(key.span().start, name, problem);
            }
        }
        None
    }
}

impl fmt::Display for NamedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.path.display().to_string()))
    }
}
