//! `[[source]]`: where the agent's frames come from. Interfaces make one observation point
//! together; files are played one after the other. Never both: their times have nothing in common.

use std::path::Path;

use super::NamedFile;
use super::device::named;
use super::section::Section;

pub(super) const SOURCE_KEYS: &[&str] =
    &["interface", "promiscuous", "ring_octets", "file", "pace"];

/// Octets of an interface name, its end not counted: the kernel's `IFNAMSIZ`.
const INTERFACE_NAME_MAX: usize = 15;
const RING_OCTETS_DEFAULT: u32 = 64 << 20;

/// Where frames come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Interfaces, all at once.
    pub interfaces: Vec<Interface>,
    /// Files, in their order.
    pub files: Vec<Replay>,
}

/// A Linux network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Ask for frames to other stations too.
    pub promiscuous: bool,
    /// Octets of the ring that the kernel puts frames into.
    pub ring_octets: u32,
}

/// A capture file that is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The file.
    pub file: NamedFile,
    /// How fast.
    pub pace: Pace,
}

/// How fast a file is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As its packets came.
    #[default]
    Capture,
    /// As fast as it can be read.
    Fast,
}

impl Sources {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.interfaces.is_empty() && self.files.is_empty()
    }
}

/// Reads every `[[source]]`.
pub(super) fn read(top: &Section<'_>, directory: &Path) -> Option<Sources> {
    let mut sources = Sources::default();
    let mut good = true;
    for section in top.sections("source", SOURCE_KEYS) {
        let read = match (section.value("interface"), section.value("file")) {
            (Some(_), None) => interface(&section, &sources).map(|i| sources.interfaces.push(i)),
            (None, Some(_)) => replay(&section, directory).map(|file| sources.files.push(file)),
            (None, None) => {
                section.error("", "neither interface nor file, expected one of them".into());
                None
            }
            (Some(_), Some(file)) => {
                file.problem("beside an interface, expected one of them".into());
                None
            }
        };
        good &= read.is_some();
        if good && !sources.interfaces.is_empty() && !sources.files.is_empty() {
            let problem = "files beside interfaces, expected sources of one kind: their times have \
                           nothing in common";
            section.error("", problem.into());
            good = false;
        }
    }
    good.then_some(sources)
}

fn interface(section: &Section<'_>, before: &Sources) -> Option<Interface> {
    only_of(section, "pace", "a file")?;
    let value = section.value("interface")?;
    let name = value.parsed("the name of an interface, 1 to 15 octets", |text| {
        let fits = (1..=INTERFACE_NAME_MAX).contains(&text.len());
        (fits && text.bytes().all(|b| b.is_ascii_graphic() && b != b'/')).then(|| text.to_owned())
    });
    let promiscuous = match section.value("promiscuous") {
        Some(value) => value.boolean(),
        None => Some(false),
    };
    let ring_octets = section.number("ring_octets", 1 << 16..=1 << 30, RING_OCTETS_DEFAULT);
    let name = name?;
    if before.interfaces.iter().any(|other| other.name == name) {
        // Every frame would be observed twice.
        value.wrong("each interface once");
        return None;
    }
    Some(Interface { name, promiscuous: promiscuous?, ring_octets: ring_octets? })
}

fn replay(section: &Section<'_>, directory: &Path) -> Option<Replay> {
    only_of(section, "promiscuous", "an interface")?;
    only_of(section, "ring_octets", "an interface")?;
    let file = named(&section.value("file")?, directory);
    let pace = section.choice("pace", &[("capture", Pace::Capture), ("fast", Pace::Fast)]);
    Some(Replay { file: file?, pace: pace? })
}

/// Refuses a key that means something for the other kind of source only.
fn only_of(section: &Section<'_>, name: &'static str, kind: &str) -> Option<()> {
    match section.value(name) {
        Some(value) => {
            value.problem(format!("expected only beside {kind}"));
            None
        }
        None => Some(()),
    }
}
