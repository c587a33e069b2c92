//! IPFIX: messages, sets, templates and records, both ways (RFC 7011), with type records (RFC 5610)
//! and files (RFC 5655).
//!
//! [`frame`] finds messages in a stream or a file. A [`Decoder`] holds the state of one Transport
//! Session and turns whole messages into [`Event`]s; an [`Encoder`] does the opposite. A template is
//! compiled once into a [`Layout`], and records are read by [`Slot`], without allocation.
//!
//! Nothing here knows what a report means, and no set is dropped in silence: what cannot be read is
//! shown as octets.

mod decode;
mod encode;
mod error;
mod fields;
mod flow_keys;
mod layout;
mod message;
mod record;
mod table;
mod template;
mod type_information;

pub use decode::{DataSet, Decoder, Event, Limits, SequenceGap, Transport};
pub use encode::{EncodeError, Encoder, MESSAGE_MAX_LEAST, MessageWriter, Written};
pub use error::{Error, Fault};
pub use fields::RecordWriter;
pub use flow_keys::{FlowKeys, flow_keys_template};
pub use layout::{Layout, Slot, UnsignedSlot};
pub use message::{
    Frame, MESSAGE_HEADER_LEN, MESSAGE_MAX, MessageHeader, RECORD_MAX, SET_HEADER_LEN, VERSION,
    frame,
};
pub use record::{Ntp, Record, Records, Value};
pub use template::{FieldSpec, TEMPLATE_ID_MIN, TemplateKind, TemplateSpec};
pub use type_information::type_information_template;
