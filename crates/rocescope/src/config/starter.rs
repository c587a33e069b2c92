//! The configuration that `rocescope discover --write-config` starts an operator with.
//!
//! It names what was seen and attests nothing: [`crate::check`] refuses it until the operator has
//! turned each `false` into `true`.

use std::fmt::{self, Display};

use observe::report::StreamKey;
use wire::element::PEN_DOCUMENTATION;
use wire::frame::Layer;

use super::MeterLimits;
use super::address::shown;
use super::device::WINDOW_DEFAULT;
use super::error::printable;
use super::rules::{ATTESTATIONS, SEGMENT_MAX, segment_kind};

/// A stream that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StarterStream {
    /// What names it.
    pub key: StreamKey,
    /// What was seen of it, for a comment, e.g. `4096 requests, SEND and WRITE`.
    pub seen: String,
    /// Why it does not fit the profile, if it does not.
    pub misfit: Option<String>,
    /// What puts it in question: whoever attests it has to know.
    pub questions: Vec<String>,
}

/// A device configuration as text, with a `[[stream]]` for each stream that fits, and the others
/// as comments. Where they were found at an interface, it becomes a `[[source]]`.
pub fn starter(streams: &[StarterStream], layer: Layer, interface: Option<&str>) -> String {
    Starter { streams, layer, interface }.to_string()
}

struct Starter<'a> {
    streams: &'a [StarterStream],
    layer: Layer,
    interface: Option<&'a str>,
}

impl Display for Starter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fitting, others): (Vec<_>, Vec<_>) = self
            .streams
            .iter()
            .map(|stream| (stream, self.misfit(stream)))
            .partition(|(_, misfit)| misfit.is_none());
        self.write_head(f, fitting.len())?;
        for (stream, _) in fitting {
            self.write_stream(f, stream)?;
        }
        if !others.is_empty() {
            f.write_str("\n# Found, but not to be metered:\n")?;
        }
        for (stream, misfit) in others {
            let key = &stream.key;
            let family = key.addresses.family;
            let (from, to) =
                (shown(family, &key.addresses.source), shown(family, &key.addresses.destination));
            let (qp, pkey) = (key.qp, key.pkey);
            write!(f, "#   {from} to {to}, qp {qp}, pkey {pkey:#06x}: ")?;
            writeln!(f, "{}", printable(&misfit.unwrap_or_default()))?;
        }
        Ok(())
    }
}

impl Starter<'_> {
    /// Why a stream cannot be provisioned by its name.
    fn misfit(&self, stream: &StarterStream) -> Option<String> {
        let (addresses, segment) = (&stream.key.addresses, stream.key.namespace.segment);
        let is_host = |octets| {
            let address = shown(addresses.family, octets);
            !address.is_unspecified() && !address.is_multicast()
        };
        if stream.misfit.is_some() {
            stream.misfit.clone()
        } else if !is_host(&addresses.source) || !is_host(&addresses.destination) {
            Some("its addresses are not those of two hosts".into())
        } else if self.segment(segment).is_err() {
            Some(format!("its segment {segment:#010x} is none of layer {}", self.layer.name()))
        } else {
            None
        }
    }

    /// The number of a segment, if there is one; an error where the layer has none like it.
    fn segment(&self, segment: u32) -> Result<Option<u32>, ()> {
        match segment_kind(self.layer) {
            Some(kind) if segment & !SEGMENT_MAX == kind => Ok(Some(segment & SEGMENT_MAX)),
            _ if segment == 0 && !matches!(self.layer, Layer::Vxlan | Layer::Geneve) => Ok(None),
            _ => Err(()),
        }
    }

    fn write_head(&self, f: &mut fmt::Formatter<'_>, fitting: usize) -> fmt::Result {
        f.write_str(
            "# What was found, to start from. It is refused until each condition under \"attest\" \
             is true.\n# Only you can establish them, and no traffic proves them. For every stream \
             they say that\n",
        )?;
        for condition in ATTESTATIONS {
            writeln!(f, "#   {}: {}", condition.name, condition.establish)?;
        }
        let layer = self.layer.name();
        write!(
            f,
            "\n[observation]\n\
             domain = 1             # Observation Domain, from 1\n\
             point = 1              # observationPointId\n\
             layer = \"{layer}\"\n\
             \n[elements]\n\
             pen = {PEN_DOCUMENTATION}            # kept for documentation: use a number of your own\n\
             \n[meter]\n\
             window = {WINDOW_DEFAULT}          # 1 to 4194304 packets\n\
             when_full = \"refuse\"   # or \"evict\"\n\
             icrc = \"ignore\"        # or \"check\"\n"
        )?;
        let fitting = u64::try_from(fitting).unwrap_or(u64::MAX);
        if fitting > MeterLimits::default().rules_max {
            writeln!(f, "rules_max = {fitting}")?;
        }
        if let Some(interface) = self.interface {
            let name = interface.replace('\\', "\\\\").replace('"', "\\\"");
            writeln!(f, "\n[[source]]\ninterface = \"{}\"", printable(&name))?;
        }
        Ok(())
    }

    fn write_stream(&self, f: &mut fmt::Formatter<'_>, stream: &StarterStream) -> fmt::Result {
        let StreamKey { addresses, namespace, qp, pkey } = &stream.key;
        let (source, destination) = (
            shown(addresses.family, &addresses.source),
            shown(addresses.family, &addresses.destination),
        );
        f.write_str("\n[[stream]]")?;
        if !stream.seen.is_empty() {
            write!(f, "             # {}", printable(&stream.seen))?;
        }
        write!(
            f,
            "\nsource = \"{source}\"\ndestination = \"{destination}\"\nqp = {qp}\npkey = {pkey:#06x}\n"
        )?;
        // All of the namespace is named: the same addresses elsewhere are another stream.
        // SEQ-3.1, SEQ-4.1
        match namespace.outer_vlan {
            0 => f.write_str("vlan = 0               # no tag, or a priority tag alone\n")?,
            vlan => writeln!(f, "vlan = {vlan}")?,
        }
        if namespace.inner_vlan != 0 {
            writeln!(f, "inner_vlan = {}", namespace.inner_vlan)?;
        }
        if let Ok(Some(segment)) = self.segment(namespace.segment) {
            writeln!(f, "segment = {segment}")?;
        }
        for question in &stream.questions {
            writeln!(f, "# in question: {}", printable(question))?;
        }
        f.write_str("[stream.attest]\n")?;
        for condition in ATTESTATIONS {
            let line = format!("{} = false", condition.name);
            writeln!(f, "{line:<27}  # {}", condition.brief)?;
        }
        Ok(())
    }
}
