//! The starter configuration: the streams of one layer, nothing attested.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use wire::frame::Layer;

use super::found::{Found, Ranked};
use super::question::Questions;
use crate::config::{StarterStream, starter};
use crate::layout::counted;

/// Streams that a starter names, at most: attesting more of them one by one is nobody's work.
pub const STARTER_STREAMS_MAX: usize = 50_000;

/// Why no starter configuration was written.
#[derive(Debug)]
pub enum StartError {
    /// Something is there already.
    Exists,
    /// It cannot be written.
    Write(io::Error),
    /// There is no stream of requests at any layer.
    Nothing,
    /// Streams at several layers, and none was chosen, or one without streams.
    Layers {
        /// The layer that was chosen.
        chosen: Option<Layer>,
        /// Layers that have streams of requests, with how many.
        found: Vec<(Layer, usize)>,
    },
    /// More than [`STARTER_STREAMS_MAX`].
    TooMany(usize),
    /// More streams than were told apart, so some would be missing in it.
    NotAllFollowed,
    /// The captures were not read to their end.
    Interrupted,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("is there already, and is not written over"),
            Self::Write(error) => error.fmt(f),
            Self::Nothing => f.write_str("not written: no stream of requests was found"),
            Self::Layers { chosen, found } => {
                match chosen {
                    None => {
                        f.write_str("not written: a configuration observes one layer, found")?
                    }
                    Some(layer) => {
                        let name = layer.name();
                        write!(f, "not written: no stream of requests at layer {name}, found")?;
                    }
                }
                for (n, (layer, streams)) in found.iter().enumerate() {
                    let (comma, name) = (if n > 0 { "," } else { "" }, layer.name());
                    write!(f, "{comma} {streams} at --layer {name}")?;
                }
                Ok(())
            }
            Self::TooMany(streams) => write!(
                f,
                "not written: {streams} streams, expected at most {STARTER_STREAMS_MAX}: provision \
                 them by a [[rule]] with prefixes instead"
            ),
            Self::Interrupted => {
                f.write_str("not written: interrupted before the captures were read")
            }
            Self::NotAllFollowed => f.write_str(
                "not written: there are more streams than were told apart: provision them by a \
                 [[rule]] with prefixes instead",
            ),
        }
    }
}

/// Looks before the captures are read, which can take long.
pub(super) fn expect_nothing_at(path: &Path) -> Result<(), StartError> {
    match path.symlink_metadata() {
        Ok(_) => Err(StartError::Exists),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StartError::Write(error)),
    }
}

/// Writes the starter and says what is left to do. `interface` is where it was found, if at one.
pub(super) fn write(
    path: &Path,
    found: &Found,
    chosen: Option<Layer>,
    interface: Option<&str>,
) -> Result<String, StartError> {
    let (layer, streams) = streams(found, chosen)?;
    let text = starter(&streams, layer, interface);
    // The starter itself refuses some, such as a stream to a group of hosts.
    let fitting = text.lines().filter(|line| line.starts_with("[[stream]]")).count();
    let mut file = File::options().write(true).create_new(true).open(path).map_err(|error| {
        match error.kind() {
            io::ErrorKind::AlreadyExists => StartError::Exists,
            _ => StartError::Write(error),
        }
    })?;
    file.write_all(text.as_bytes()).map_err(StartError::Write)?;
    let others = streams.len().saturating_sub(fitting);
    let others = match others {
        0 => String::new(),
        1 => " and 1 as a comment, because it does not fit".into(),
        n => format!(" and {n} as comments, because they do not fit"),
    };
    let streams = counted(u64::try_from(fitting).unwrap_or(u64::MAX), "stream[|s]");
    Ok(format!(
        "{streams} of layer {}{others}; `rocescope check` takes it once everything in it is attested",
        layer.name()
    ))
}

fn streams(
    found: &Found,
    chosen: Option<Layer>,
) -> Result<(Layer, Vec<StarterStream>), StartError> {
    let questions = Questions::of(found);
    let mut all = found.ranked();
    let mut layers: Vec<(Layer, usize)> = Vec::new();
    for layer in Layer::ALL {
        let count = all.iter().filter(|ranked| ranked.place.0 == layer).count();
        if count > 0 {
            layers.push((layer, count));
        }
    }
    let (layer, count) = match (chosen, layers.as_slice()) {
        (_, []) => return Err(StartError::Nothing),
        (None, [only]) => *only,
        (Some(chosen), _) if layers.iter().any(|(layer, _)| *layer == chosen) => {
            layers.iter().copied().find(|(layer, _)| *layer == chosen).unwrap_or((chosen, 0))
        }
        _ => return Err(StartError::Layers { chosen, found: layers }),
    };
    if found.not_followed > 0 {
        return Err(StartError::NotAllFollowed);
    }
    if count > STARTER_STREAMS_MAX {
        return Err(StartError::TooMany(count));
    }
    all.retain(|ranked| ranked.place.0 == layer);
    all.sort_by_key(|ranked| ranked.place.1);
    let named = all.into_iter().map(|Ranked { place, stream, .. }| {
        let requests = counted(stream.requests, "request[|s]");
        let seen = format!("{requests} seen: {}", stream.requests_text());
        let reasons: Vec<String> = stream.reasons().collect();
        let misfit = (!reasons.is_empty()).then(|| reasons.join("; "));
        let questions = questions.of_stream(place, stream);
        StarterStream { key: place.1, seen, misfit, questions }
    });
    Ok((layer, named.collect()))
}
