//! `rocescope dump`: any IPFIX File or message stream as JSON Lines.
//!
//! The input may be compressed with gzip or zstd, as the segments of an archive are.
//!
//! One object a template, a withdrawal, a record, or a set that cannot be read, in the order in
//! which they were sent. Nothing is judged: a record is shown as it was sent, whether a collector
//! would accept it or not. An element without a name has the key `e<enterprise number>id<number>`;
//! an element that stands several times in a record has an array of its values; octets are
//! hexadecimal text; octets that are no value of their element's type are `{"illegal": "..."}`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use observe::pfc::record::Binding;
use serde_json::{Map, Value as Json, json};
use wire::capture::{Format, sniff};
use wire::element::standard::OBSERVATION_DOMAIN_ID;
use wire::element::{DraftElement, ElementId, Mapping, Registry, VARIABLE};
use wire::ipfix::{
    DataSet, Decoder, Error, Event, Frame, Layout, Limits, MESSAGE_MAX, Record, TemplateKind,
    Transport, Value, frame,
};

use crate::capture::{decompressed, peek};

/// The qualification masks of the sequence draft, Table 15.
const FLAGS: [(u64, &str); 6] = [
    (0x0001, "finalEpoch"),
    (0x0002, "profileViolation"),
    (0x0004, "captureDiscontinuity"),
    (0x0008, "stateExhaustion"),
    (0x0010, "serialDiscontinuity"),
    (0x0020, "generationUnverified"),
];

/// The largest integer that every reader of JSON takes exactly.
const JSON_EXACT_MAX: u64 = (1 << 53) - 1;

/// Keys of our own, which no element that a peer has named may take.
const OWN_KEYS: [&str; 3] = ["record", "flags", "messageObservationDomainId"];

/// What was dumped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whole messages.
    pub messages: u64,
    /// Octets of these.
    pub octets: u64,
    /// Templates and Options Templates, repetitions not counted.
    pub templates: u64,
    /// Sequence records.
    pub sequence: u64,
    /// PFC records.
    pub pfc: u64,
    /// Other records of Options Templates.
    pub options: u64,
    /// Other records.
    pub other: u64,
    /// Sets that could not be read: of unknown templates, or of unknown kinds.
    pub unread_sets: u64,
    /// Records refused or ignored.
    pub faults: u64,
    /// Jumps of the sequence number.
    pub sequence_gaps: u64,
}

/// Why a dump ended early. What was written before stands.
#[derive(Debug)]
pub enum DumpError {
    /// The input could not be read.
    Input(io::Error),
    /// The output could not be written.
    Output(io::Error),
    /// A message that cannot be one.
    Message {
        /// Where it begins in the input.
        at: u64,
        /// What is wrong with it; its offsets count from there.
        error: Error,
    },
    /// The input ends inside a message.
    Truncated {
        /// Where the message begins in the input.
        at: u64,
        /// Octets of it that are there.
        found: usize,
        /// Octets that it needs, as far as can be told.
        expected: usize,
    },
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => write!(f, "input: {error}"),
            Self::Output(error) => write!(f, "output: {error}"),
            Self::Message { at, error } => write!(f, "message at octet {at} of the input: {error}"),
            Self::Truncated { at, found, expected } => write!(
                f,
                "message at octet {at} of the input has {found} octets before the end, need {expected}"
            ),
        }
    }
}

impl std::error::Error for DumpError {}

/// Opens a file, or standard input for `-`, decompressed where it is compressed.
///
/// # Errors
/// It cannot be opened, its first octets cannot be read, or it is a capture.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let input: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    let mut input = decompressed(input)?;
    let head = peek(&mut *input)?;
    if matches!(sniff(&head), Format::Pcap | Format::PcapNg) {
        let problem = "is a capture, expected an IPFIX File: `rocescope discover` reads it";
        return Err(io::Error::other(problem));
    }
    Ok(Box::new(io::Cursor::new(head).chain(input)))
}

/// Writes everything in a file or stream of IPFIX messages as JSON Lines. Keeps one message and the
/// templates in memory. Draft elements are named by `mapping`.
///
/// # Errors
/// [`DumpError`]; the lines of all messages before the bad one are written.
pub fn dump(
    input: impl Read,
    out: &mut impl Write,
    mapping: Mapping,
) -> Result<Summary, DumpError> {
    let mut source = Source::new(input);
    let mut decoder = Decoder::new(Transport::File, mapping, Limits::default());
    let own = Registry::new(mapping);
    let mut summary = Summary::default();
    loop {
        // Whoever waits for a line gets it before more input is waited for.
        if !source.has_message() {
            out.flush().map_err(DumpError::Output)?;
        }
        let at = summary.octets;
        let Some(message) = source.message(at)? else { return Ok(summary) };
        let mut printer = Printer {
            out,
            summary: &mut summary,
            own: &own,
            domain: domain(message),
            at,
            failed: None,
        };
        decoder
            .message(message, &mut |event| printer.event(event))
            .map_err(|error| DumpError::Message { at, error })?;
        if let Some(error) = printer.failed {
            return Err(DumpError::Output(error));
        }
        summary.messages += 1;
        summary.octets += u64::try_from(message.len()).unwrap_or(0);
    }
}

/// Whole messages out of a reader.
pub(crate) struct Source<R> {
    input: R,
    octets: Vec<u8>,
    /// Where what was not handed out yet begins in `octets`.
    start: usize,
}

impl<R: Read> Source<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, octets: Vec::new(), start: 0 }
    }

    /// Whether a whole message can be handed out without reading on.
    fn has_message(&self) -> bool {
        matches!(frame(&self.octets[self.start..]), Ok(Frame::Message { .. }))
    }

    /// The next message, which begins at this octet of the input; none at the end of it.
    pub(crate) fn message(&mut self, at: u64) -> Result<Option<&[u8]>, DumpError> {
        let length = loop {
            let ready = &self.octets[self.start..];
            let expected = match frame(ready) {
                Ok(Frame::Message { octets, .. }) => break octets.len(),
                Ok(Frame::NeedMore { total }) => total,
                Err(error) => return Err(DumpError::Message { at, error }),
            };
            let found = ready.len();
            if self.fill()? == 0 {
                return match found {
                    0 => Ok(None),
                    _ => Err(DumpError::Truncated { at, found, expected }),
                };
            }
        };
        let message = self.start..self.start + length;
        self.start = message.end;
        Ok(Some(&self.octets[message]))
    }

    /// Reads once and says how many octets came.
    fn fill(&mut self) -> Result<usize, DumpError> {
        self.octets.drain(..self.start);
        self.start = 0;
        let kept = self.octets.len();
        // Bounded: what is kept is less than a message.
        self.octets.resize(kept + MESSAGE_MAX, 0);
        let read = loop {
            match self.input.read(&mut self.octets[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.octets.truncate(kept + read.as_ref().map_or(0, |n| *n));
        read.map_err(DumpError::Input)
    }
}

/// Writes the events of one message.
struct Printer<'a, W> {
    out: &'a mut W,
    summary: &'a mut Summary,
    /// The elements known without the peer's help, for naming the fields of templates.
    own: &'a Registry,
    domain: u32,
    /// Where the message begins in the input.
    at: u64,
    failed: Option<io::Error>,
}

impl<W: Write> Printer<'_, W> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::SequenceGap(gap) => {
                self.summary.sequence_gaps += 1;
                let gap = json!({"expected": gap.expected, "found": gap.found});
                self.print("other", [("sequenceGap", gap)]);
            }
            Event::Template { layout, repeated } => self.template(layout, repeated),
            Event::Withdrawn { kind, template } => self.print(
                "template",
                [
                    ("templateId", template.into()),
                    ("kind", kind_name(kind).into()),
                    ("withdrawn", true.into()),
                ],
            ),
            Event::AllWithdrawn { kind } => self.print(
                "template",
                [("kind", kind_name(kind).into()), ("allWithdrawn", true.into())],
            ),
            Event::Data(set) => self.data(&set),
            Event::UndecodableData { template, octets, .. } => {
                self.summary.unread_sets += 1;
                self.print(
                    "other",
                    [("templateId", template.into()), ("undecodable", hex(octets).into())],
                );
            }
            Event::UnknownSet { id, octets, .. } => {
                self.summary.unread_sets += 1;
                self.print("other", [("setId", id.into()), ("unknownSet", hex(octets).into())]);
            }
            // The type record itself is printed as the options record that it is.
            Event::TypeInformation(_) => {}
            Event::Fault { at, fault } => {
                self.summary.faults += 1;
                let offset = self.at + u64::try_from(at).unwrap_or(0);
                self.print(
                    "other",
                    [("fault", fault.to_string().into()), ("offset", number(offset))],
                );
            }
        }
    }

    fn template(&mut self, layout: &Layout, repeated: bool) {
        self.summary.templates += u64::from(!repeated);
        let fields: Vec<Json> = layout
            .fields()
            .iter()
            .map(|field| {
                let length: Json = if field.length == VARIABLE {
                    "variable".into()
                } else {
                    field.length.into()
                };
                let name = self.own.get(field.id).map(|element| &*element.name);
                json!({"name": name, "enterprise": field.id.pen, "id": field.id.id, "length": length})
            })
            .collect();
        self.print(
            "template",
            [
                ("templateId", layout.id().into()),
                ("kind", kind_name(layout.kind()).into()),
                ("scopeFieldCount", layout.scope().len().into()),
                ("repeated", repeated.into()),
                ("fields", fields.into()),
            ],
        );
    }

    fn data(&mut self, set: &DataSet<'_>) {
        let kind = RecordKind::of(set.layout, set.registry.mapping());
        // PFC-id.3, PFC-rec.1: what is no reading is shown as it is, under another name.
        let binding = Binding::new(set.layout, set.registry.mapping()).ok();
        for record in set.records.clone() {
            let kind = match &binding {
                Some(pfc) if pfc.read(self.domain, &record).is_err() => RecordKind::Options,
                _ => kind,
            };
            let count = match kind {
                RecordKind::Sequence => &mut self.summary.sequence,
                RecordKind::Pfc => &mut self.summary.pfc,
                RecordKind::Options => &mut self.summary.options,
                RecordKind::Other => &mut self.summary.other,
            };
            *count += 1;
            let object = object(kind, self.domain, &record, set.registry);
            self.line(&object);
        }
    }

    fn print<const N: usize>(&mut self, record: &str, members: [(&str, Json); N]) {
        let mut object = Map::new();
        object.insert("record".into(), record.into());
        object.insert("observationDomainId".into(), self.domain.into());
        object.extend(members.map(|(key, value)| (key.to_owned(), value)));
        self.line(&object);
    }

    fn line(&mut self, object: &Map<String, Json>) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut *self.out, object)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
        self.failed = written.err();
    }
}

/// What a record is, by the elements of its template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordKind {
    Sequence,
    Pfc,
    Options,
    Other,
}

impl RecordKind {
    fn of(layout: &Layout, mapping: &Mapping) -> Self {
        let has = |draft| layout.slot(mapping.id(draft)).is_some();
        let options = layout.kind() == TemplateKind::Options;
        if !options
            && has(DraftElement::RdmaSequenceEpochId)
            && has(DraftElement::RdmaSequenceReportId)
        {
            Self::Sequence
        } else if Binding::new(layout, mapping).is_ok() {
            Self::Pfc
        } else if options {
            Self::Options
        } else {
            Self::Other
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sequence => "sequence",
            Self::Pfc => "pfc",
            Self::Options => "options",
            Self::Other => "other",
        }
    }
}

/// A record as an object: its kind, the domain of its message, and its fields in wire order.
fn object(
    kind: RecordKind,
    domain: u32,
    record: &Record<'_>,
    registry: &Registry,
) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("record".into(), kind.name().into());
    // A record can name a domain of its own, which is then not the message's.
    let own = record.layout().slot(OBSERVATION_DOMAIN_ID).is_some();
    let key = if own { "messageObservationDomainId" } else { "observationDomainId" };
    object.insert(key.into(), domain.into());
    let mut flags = None;
    let mut several: Vec<String> = Vec::new();
    for (field, _, value) in record.values(registry) {
        if registry.draft(field.id) == Some(DraftElement::RdmaSequenceFlags)
            && let Value::Unsigned(mask) = value
        {
            flags = Some(mask);
        }
        let key = key_of(field.id, registry);
        let value = text(value);
        match object.get_mut(&key) {
            None => {
                object.insert(key, value);
            }
            Some(Json::Array(values)) if several.contains(&key) => values.push(value),
            Some(first) => {
                *first = Json::Array(vec![first.take(), value]);
                several.push(key);
            }
        }
    }
    if let (RecordKind::Sequence, Some(mask)) = (kind, flags) {
        object.insert("flags".into(), flag_names(mask).into());
    }
    object
}

/// The key of an element: its name, unless a peer gave it one that is taken.
fn key_of(id: ElementId, registry: &Registry) -> String {
    match registry.get(id) {
        Some(element) if id.pen == 0 || registry.draft(id).is_some() => element.name.to_string(),
        Some(element)
            if !OWN_KEYS.contains(&&*element.name)
                && registry.by_name(&element.name).is_some_and(|first| first.id == id) =>
        {
            element.name.to_string()
        }
        _ => id.to_string(),
    }
}

fn text(value: Value<'_>) -> Json {
    match value {
        Value::Unsigned(n) | Value::Milliseconds(n) => number(n),
        Value::Signed(n) => signed(n),
        Value::Wide(octets) => wide(octets),
        Value::Float(x) => {
            serde_json::Number::from_f64(x).map_or_else(|| x.to_string().into(), Json::Number)
        }
        Value::Boolean(b) => b.into(),
        Value::Mac(o) => o.map(|o| format!("{o:02x}")).join(":").into(),
        Value::Text(t) => t.into(),
        Value::Seconds(n) => n.into(),
        Value::Microseconds(t) => signed(t.unix_microseconds()),
        Value::Nanoseconds(t) => signed(t.unix_nanoseconds()),
        Value::Ipv4(o) => std::net::Ipv4Addr::from(o).to_string().into(),
        Value::Ipv6(o) => std::net::Ipv6Addr::from(o).to_string().into(),
        Value::List(octets) | Value::Octets(octets) => hex(octets).into(),
        Value::Illegal(octets) => json!({"illegal": hex(octets)}),
    }
}

/// A number as JSON: a string where a reader might round it.
pub(crate) fn number(n: u64) -> Json {
    if n <= JSON_EXACT_MAX { n.into() } else { n.to_string().into() }
}

fn signed(n: i64) -> Json {
    if n.unsigned_abs() <= JSON_EXACT_MAX { n.into() } else { n.to_string().into() }
}

/// A number of up to 256 bits: hexadecimal with `0x` where it has more than 64.
fn wide(octets: &[u8]) -> Json {
    let zeros = octets.iter().take_while(|o| **o == 0).count();
    let digits = &octets[zeros..];
    if digits.len() > 8 {
        return format!("0x{}", hex(digits)).into();
    }
    number(digits.iter().fold(0, |n, o| (n << 8) | u64::from(*o)))
}

/// The names of the set masks; a mask without a name as a number. SEQ-8.1
fn flag_names(mask: u64) -> Vec<String> {
    (0..16)
        .map(|bit| 1u64 << bit)
        .filter(|one| mask & one != 0)
        .map(|one| {
            let name = FLAGS.iter().find(|f| f.0 == one).map(|f| f.1.to_owned());
            name.unwrap_or_else(|| format!("0x{one:04x}"))
        })
        .collect()
}

const fn kind_name(kind: TemplateKind) -> &'static str {
    match kind {
        TemplateKind::Template => "template",
        TemplateKind::Options => "options",
    }
}

fn hex(octets: &[u8]) -> String {
    use fmt::Write as _;
    octets.iter().fold(String::with_capacity(2 * octets.len()), |mut text, octet| {
        let _ = write!(text, "{octet:02x}"); // a String takes everything
        text
    })
}

/// The Observation Domain in the header of a whole message.
fn domain(message: &[u8]) -> u32 {
    wire::ipfix::MessageHeader::read(message).map_or(0, |header| header.domain)
}

#[cfg(test)]
#[path = "dump_tests.rs"]
mod tests;
