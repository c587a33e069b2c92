//! The exporting side of one Transport Session: ids, Templates, and records in their order
//! (sequence draft, sections 4 and 6; PFC draft, on export).
//!
//! Opens no connection and writes no file: whole messages come out as octets.

use alloc::vec::Vec;

use wire::element::{DraftElement, Element, Mapping};
use wire::ipfix::{EncodeError, Encoder, FlowKeys, MessageWriter, flow_keys_template};

use crate::meter::EpochIds;
use crate::pfc::instance::InstanceId;
use crate::pfc::qualify::Qualified;
use crate::pfc::{Direction, Reading, Scope, record};
use crate::profile::Shape;
use crate::report::{Report, Snapshot};

/// The first Template ID of reports; one for each [`Shape`] follows.
const REPORTS: u16 = 256;
const FLOW_KEYS: u16 = 300;
const TYPE_INFORMATION: u16 = 301;
const TYPE_INFORMATION_RANGED: u16 = 302;
const PFC_RECEIVED: u16 = 303;
const PFC_TRANSMITTED: u16 = 304;
const PFC_RECEIVED_INSTANCE: u16 = 305;
const PFC_TRANSMITTED_INSTANCE: u16 = 306;

/// The numbers that an exporter gives out in one Transport Session and Observation Domain.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    last_epoch_id: u64,
}

impl Numbering {
    /// Numbers a snapshot that is being serialised: a new epoch gets the next epoch id, each
    /// snapshot the next report id of its epoch.
    ///
    /// # Panics
    /// Where the snapshot's own accounting does not hold: a wrong number that looks right must not
    /// go out. After 2^64 - 1 epochs, or reports of one epoch, which the meter closes before.
    // SEQ-4.5, SEQ-6.4
    pub fn number(&mut self, ids: &mut EpochIds, snapshot: Snapshot) -> Report {
        // SEQ-5.7
        assert_eq!(snapshot.check(), Ok(()), "our own accounting");
        if ids.epoch_id == 0 {
            self.last_epoch_id = self.last_epoch_id.checked_add(1).expect("2^64 epochs");
            ids.epoch_id = self.last_epoch_id;
        }
        ids.report_id = ids.report_id.checked_add(1).expect("the meter keeps the last report id");
        Report { epoch_id: ids.epoch_id, report_id: ids.report_id, snapshot, other_keys: 0 }
    }
}

/// Writes reports as IPFIX messages.
#[derive(Debug)]
pub struct Exporter {
    mapping: Mapping,
    domain: u32,
    // SEQ-6.7: fixed for the session, and so for each of its epochs.
    point: u64,
    encoder: Encoder,
    /// A bit for each shape whose Template has been sent.
    sent: u16,
    /// The Options Templates of PFC counters that have been sent, without instance and with it.
    pfc_sent: [[bool; 2]; 2],
    /// Whether elements of ours that no draft has are used.
    extended: bool,
}

impl Exporter {
    /// Nothing is sent yet; messages have at most `message_max` octets.
    ///
    /// # Errors
    /// A maximum that is no message length.
    pub fn new(
        mapping: Mapping,
        domain: u32,
        point: u64,
        message_max: usize,
    ) -> Result<Self, EncodeError> {
        let encoder = Encoder::new(message_max)?;
        let pfc_sent = [[false; 2]; 2];
        Ok(Self { mapping, domain, point, encoder, sent: 0, pfc_sent, extended: false })
    }

    /// Also uses elements that no draft has, which is said to the collector when the session
    /// begins.
    #[must_use]
    pub const fn extended(mut self) -> Self {
        self.extended = true;
        self
    }

    /// Begins the session: the types of our elements (RFC 5610), so that any collector can name
    /// them, and the Template for Flow Keys.
    ///
    /// # Errors
    /// A message maximum too small for them.
    // SEQ-6.6
    pub fn begin(&mut self, export_time: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mapping = self.mapping;
        let mut writer = self.encoder.writer(self.domain, export_time, out);
        let used = DraftElement::ALL.into_iter().filter(|e| self.extended || !e.is_extension());
        let elements: Vec<_> = used.map(|draft| described(draft, &mapping)).collect();
        writer.type_information(TYPE_INFORMATION, TYPE_INFORMATION_RANGED, elements.iter())?;
        writer.template(&flow_keys_template(FLOW_KEYS))?;
        writer.finish();
        Ok(())
    }

    /// Appends whole messages with the reports to `out`, each shape's Template and Flow Keys
    /// before its first record.
    ///
    /// # Errors
    /// A message maximum too small for a record.
    // SEQ-6.1, SEQ-6.3: in the order given, which a stream transport keeps.
    pub fn reports(
        &mut self,
        reports: &[Report],
        export_time: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let mut writer = self.encoder.writer(self.domain, export_time, out);
        for report in reports {
            let shape = Shape::of(&report.snapshot.key);
            let bit = 1 << shape.number();
            if self.sent & bit == 0 {
                introduce(shape, &self.mapping, &mut writer)?;
                self.sent |= bit;
            }
            let template = REPORTS + shape.number();
            writer.record(template, |record| shape.write(record, self.point, report))?;
        }
        writer.finish();
        Ok(())
    }

    /// Appends whole messages with readings of PFC counters to `out`, the Options Template of their
    /// direction before its first record. Where there was no reading there is no record.
    ///
    /// # Errors
    /// A message maximum too small for a record.
    ///
    /// # Panics
    /// Where a reading is not of the qualified direction or of another domain: a record must not
    /// say what it is not.
    // PFC-rec.1, PFC-id.1, PFC-op.1, PFC-exp.2; PFC-count.4: without a qualified source nothing
    // gets here.
    pub fn readings(
        &mut self,
        source: &Qualified,
        readings: &[Reading],
        export_time: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let readings = readings.iter().map(|reading| (*reading, None));
        self.write_readings(source, readings, export_time, out)
    }

    /// As [`Exporter::readings`], with the instance of the counter where it is known: what
    /// [`crate::pfc::instance`] says that it vouches for.
    ///
    /// # Errors
    /// A message maximum too small for a record.
    ///
    /// # Panics
    /// As [`Exporter::readings`], and where an instance is given and the exporter is not
    /// [`Exporter::extended`]: what goes out is what the operator asked for.
    // PFC-rec.1, PFC-sem.2
    pub fn identified(
        &mut self,
        source: &Qualified,
        readings: &[(Reading, Option<InstanceId>)],
        export_time: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.write_readings(source, readings.iter().copied(), export_time, out)
    }

    fn write_readings(
        &mut self,
        source: &Qualified,
        readings: impl Iterator<Item = (Reading, Option<InstanceId>)>,
        export_time: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let direction = source.direction();
        let (templates, sent) = match direction {
            Direction::Received => ([PFC_RECEIVED, PFC_RECEIVED_INSTANCE], &mut self.pfc_sent[0]),
            Direction::Transmitted => {
                ([PFC_TRANSMITTED, PFC_TRANSMITTED_INSTANCE], &mut self.pfc_sent[1])
            }
        };
        let mut writer = self.encoder.writer(self.domain, export_time, out);
        for (reading, instance) in readings {
            let Scope { domain, direction: of, .. } = reading.scope;
            assert_eq!((domain, of), (self.domain, direction), "a reading of this source");
            assert!(self.extended || instance.is_none(), "an extension that is asked for");
            let kind = usize::from(instance.is_some());
            let template = templates[kind];
            if !sent[kind] {
                writer.template(&match instance {
                    None => record::template(direction, template, &self.mapping),
                    Some(_) => record::template_with_instance(direction, template, &self.mapping),
                })?;
                sent[kind] = true;
            }
            writer.record(template, |record| match instance {
                None => record::write(record, &reading),
                Some(id) => record::write_with_instance(record, &reading, id),
            })?;
        }
        writer.finish();
        Ok(())
    }
}

/// An element as the collector is told of it: with the range of its type where the draft has none,
/// because some collectors take no notice of a type record without a range.
// PFC-exp.2
fn described(draft: DraftElement, mapping: &Mapping) -> Element {
    let mut element = draft.element(mapping.id(draft));
    // All of them are unsigned, of 1 to 8 octets.
    let unused_bits = 64 - 8 * u32::from(element.abstract_type.full_length().clamp(1, 8));
    element.range.get_or_insert((0, u64::MAX >> unused_bits));
    element
}

/// Sends the Template of a shape and its Flow Keys.
// SEQ-6.6
fn introduce(
    shape: Shape,
    mapping: &Mapping,
    writer: &mut MessageWriter<'_>,
) -> Result<(), EncodeError> {
    let id = REPORTS + shape.number();
    let template = shape.template(id, mapping);
    writer.template(&template)?;
    writer.flow_keys(FLOW_KEYS, FlowKeys::of(&template, &shape.flow_keys(mapping))?)
}
