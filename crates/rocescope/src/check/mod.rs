//! `rocescope check`: whether a configuration file can be taken, and what it would do.
//!
//! It opens no socket and no interface. It looks whether the files that are named are there, and reads
//! those that an agent has to understand before it begins.

mod collector;
mod device;
mod manage;

use std::fmt::{self, Display};
use std::fs::File;
use std::path::Path;

use wire::element::{DraftElement, Mapping, PEN_DOCUMENTATION};

use crate::agent;
use crate::config::{
    self, Config, ConfigError, Export, HttpTls, Limit, Manage, NamedFile, PfcClasses, QueueDevice,
    printable, utc,
};
use collector::write_collector;
use device::write_device;

/// What a configuration file would do; printed by its [`Display`].
#[derive(Clone, Debug)]
pub struct Plan {
    file: String,
    config: Config,
}

/// Reads a configuration file of either kind and looks whether the files that it names are there.
///
/// # Errors
/// Everything that is wrong, in the order of the file.
pub fn check(path: &Path) -> Result<Plan, Vec<ConfigError>> {
    let config = config::read(path)?;
    let file = path.display().to_string();
    let mut errors = Vec::new();
    let mut expect_file = |named: &NamedFile| {
        if let Err(problem) = readable(&named.path) {
            errors.push(of_named(&file, named, format!("{problem}, expected a file to read")));
        }
    };
    match &config {
        Config::Device(device) => {
            device.exports.iter().flat_map(Export::files).for_each(&mut expect_file);
            device.sources.files.iter().for_each(|replay| expect_file(&replay.file));
            device.queue_files().for_each(&mut expect_file);
            device.manage.iter().flat_map(Manage::files).for_each(&mut expect_file);
        }
        Config::Collector(collector) => {
            let of_ipfix = collector.ipfix.iter().flat_map(|ipfix| {
                [&ipfix.certificate, &ipfix.private_key, &ipfix.authority]
                    .into_iter()
                    .chain(&ipfix.revocation)
            });
            of_ipfix
                .chain(collector.http.files())
                .chain(collector.queues.iter().flat_map(QueueDevice::files))
                .for_each(&mut expect_file);
            let directory = &collector.store.directory;
            if directory.path.exists() && !directory.path.is_dir() {
                let problem = format!("{directory} is a file, expected a directory or nothing yet");
                errors.push(of_named(&file, directory, problem));
            }
        }
    }
    // What is not there was said.
    if let (Config::Device(device), true) = (&config, errors.is_empty()) {
        errors.extend(agent::refusals(device).into_iter().map(|(key, line, problem)| {
            ConfigError { file: file.clone(), line, column: None, key, problem }
        }));
    }
    errors.sort_by_key(|error: &ConfigError| error.line);
    if errors.is_empty() { Ok(Plan { file, config }) } else { Err(errors) }
}

/// Whether a file is there to be read; anything but a plain one is not opened.
pub(crate) fn readable(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let about = path.metadata().map_err(|error| format!("{shown}: {error}"))?;
    if about.is_dir() {
        return Err(format!("{shown} is a directory"));
    }
    // Opening anything but a plain file, such as a pipe, could do something.
    if about.is_file() {
        File::open(path).map_err(|error| format!("{shown}: {error}"))?;
    }
    Ok(())
}

fn of_named(file: &str, named: &NamedFile, problem: String) -> ConfigError {
    ConfigError {
        file: file.into(),
        line: Some(named.line),
        column: None,
        key: named.key.clone(),
        problem,
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = printable(&self.file);
        match &self.config {
            Config::Device(device) => {
                writeln!(f, "{file}: a device's configuration, for meter and agent")?;
                write_device(f, device)
            }
            Config::Collector(collector) => {
                writeln!(f, "{file}: a collector's configuration")?;
                write_collector(f, collector)
            }
        }
    }
}

fn write_classes(f: &mut fmt::Formatter<'_>, classes: &[PfcClasses]) -> fmt::Result {
    for entry in classes {
        write!(f, "  since {} traffic classes", utc(entry.since_ms))?;
        if let Some(device) = &entry.device {
            write!(f, " of {device}")?;
        }
        if let Some(port) = &entry.port {
            write!(f, " at {port}")?;
        }
        f.write_str(" have priorities")?;
        entry.priorities.iter().try_for_each(|priority| write!(f, " {}", priority.get()))?;
        writeln!(f)?;
    }
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn write_elements(f: &mut fmt::Formatter<'_>, mapping: &Mapping) -> fmt::Result {
    let pen = mapping.pen();
    writeln!(f, "elements    under enterprise number {pen}")?;
    if pen == PEN_DOCUMENTATION {
        writeln!(
            f,
            "  warning: elements.pen is {pen}, the number kept for documentation (RFC 5612): use \
             one of your own where a peer is on another machine"
        )?;
    }
    for element in DraftElement::ALL {
        let id = mapping.id(element).id;
        let note = if id == element.default_id() { "" } else { ", not the default" };
        writeln!(f, "  {:<32} {id}{note}", element.name())?;
    }
    Ok(())
}

// SEQ-10.1
fn write_tls(f: &mut fmt::Formatter<'_>, tls: &HttpTls) -> fmt::Result {
    let HttpTls { certificate, private_key, authority, revocation } = tls;
    writeln!(f, "  TLS 1.3 with certificate {certificate}, its key {private_key}")?;
    if let Some(authority) = authority {
        write!(f, "  client certificates from {authority}")?;
        if let Some(revocation) = revocation {
            write!(f, ", but not what {revocation} revokes")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

/// Every bound with its value. SEQ-7.10, SEQ-10.3
fn write_limits<'l>(
    f: &mut fmt::Formatter<'_>,
    section: &str,
    rows: impl Iterator<Item = (&'l Limit, u64)>,
    table: &[Limit],
) -> fmt::Result {
    let width = table.iter().map(|limit| limit.name.len()).max().unwrap_or(0);
    writeln!(f, "limits      keys of [{section}]")?;
    for (limit, value) in rows {
        let Limit { name, default, min, max, bounds } = limit;
        let range = format!("{min} to {max}, default {default}");
        writeln!(f, "  {name:<width$} {value}: {bounds} ({range})")?;
    }
    Ok(())
}
