//! Messages put together by hand, and events kept for comparison.

use wire::element::Mapping;
use wire::ipfix::{Decoder, Error, Event, Fault, Limits, TemplateKind, Transport};

/// An event, without borrows.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Gap(u32, u32),
    Template(u16),
    Repeated(u16),
    Withdrawn(TemplateKind, u16),
    AllWithdrawn(TemplateKind),
    /// Template ID, each record's octets.
    Data(u16, Vec<Vec<u8>>),
    Undecodable(u16, Vec<u8>),
    UnknownSet(u16, Vec<u8>),
    Element(String),
    Fault(Fault),
}

pub fn session() -> Decoder {
    Decoder::new(Transport::Stream, Mapping::default(), Limits::default())
}

/// Feeds one message and keeps what comes.
pub fn feed(decoder: &mut Decoder, message: &[u8]) -> Result<Vec<Seen>, Error> {
    let mut seen = Vec::new();
    decoder.message(message, &mut |event| seen.push(keep(event)))?;
    Ok(seen)
}

fn keep(event: Event<'_>) -> Seen {
    match event {
        Event::SequenceGap(gap) => Seen::Gap(gap.expected, gap.found),
        Event::Template { layout, repeated: false } => Seen::Template(layout.id()),
        Event::Template { layout, repeated: true } => Seen::Repeated(layout.id()),
        Event::Withdrawn { kind, template } => Seen::Withdrawn(kind, template),
        Event::AllWithdrawn { kind } => Seen::AllWithdrawn(kind),
        Event::Data(set) => {
            Seen::Data(set.layout.id(), set.records.map(|r| r.as_octets().to_vec()).collect())
        }
        Event::UndecodableData { template, octets, .. } => {
            Seen::Undecodable(template, octets.to_vec())
        }
        Event::UnknownSet { id, octets, .. } => Seen::UnknownSet(id, octets.to_vec()),
        Event::TypeInformation(element) => Seen::Element(element.name.to_string()),
        Event::Fault { fault, .. } => Seen::Fault(fault),
    }
}

/// A set around its content.
pub fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + content.len()).expect("short");
    [&id.to_be_bytes(), &length.to_be_bytes(), content].concat()
}

/// A message of domain 1 around sets.
pub fn message(sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    message_of(1, sequence, sets)
}

/// A message around sets, exported at second 0.
pub fn message_of(domain: u32, sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let content = sets.concat();
    let length = u16::try_from(16 + content.len()).expect("short");
    [
        &10u16.to_be_bytes()[..],
        &length.to_be_bytes(),
        &[0; 4],
        &sequence.to_be_bytes(),
        &domain.to_be_bytes(),
        &content,
    ]
    .concat()
}

/// A template of one unsigned8 (protocolIdentifier, 4).
pub fn one_octet_template(id: u16) -> Vec<u8> {
    [&id.to_be_bytes()[..], &[0, 1, 0, 4, 0, 1]].concat()
}
