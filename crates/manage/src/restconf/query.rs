//! Query parameters (RFC 8040, section 4.8).

use super::Refused;
use crate::select::{Defaults, Which, percent_decoded};

/// Parameters of one request, at most.
const PARAMETERS_MAX: usize = 16;

/// Those of reading data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parameters<'a> {
    pub which: Which,
    /// Levels; none for all.
    pub depth: Option<u16>,
    /// Not decoded.
    pub fields: Option<&'a str>,
    pub defaults: Defaults,
}

/// Names that mean something elsewhere.
const ELSEWHERE: [&str; 6] =
    ["filter", "insert", "point", "start-time", "stop-time", "with-origin"];

impl<'a> Parameters<'a> {
    pub(super) fn read(query: Option<&'a str>) -> Result<Self, Refused> {
        let mut found = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            if seen.len() >= PARAMETERS_MAX {
                return Err(Refused::bad(format!("more than {PARAMETERS_MAX} parameters")));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if seen.contains(&name) {
                return Err(Refused::bad(format!("parameter {name} twice, expected once")));
            }
            seen.push(name);
            let decoded =
                percent_decoded(value).map_err(|fault| Refused::bad(fault.to_string()))?;
            let bad = |expected: &str| {
                Refused::bad(format!("parameter {name} with {decoded:?}, expected {expected}"))
            };
            match name {
                "content" => {
                    found.which = match &*decoded {
                        "all" => Which::All,
                        "config" => Which::Config,
                        "nonconfig" => Which::Nonconfig,
                        _ => return Err(bad("all, config or nonconfig")),
                    };
                }
                "depth" => {
                    found.depth = match &*decoded {
                        "unbounded" => None,
                        text => match text.parse() {
                            Ok(levels @ 1..) if !text.starts_with('+') => Some(levels),
                            _ => return Err(bad("1 to 65535 or unbounded")),
                        },
                    };
                }
                "fields" => found.fields = Some(value),
                "with-defaults" => {
                    found.defaults = Defaults::read(&decoded)
                        .ok_or_else(|| bad("explicit, trim or report-all"))?;
                }
                _ if ELSEWHERE.contains(&name) => {
                    return Err(Refused::bad(format!(
                        "parameter {name}, which is not for this resource"
                    )));
                }
                _ => {
                    return Err(Refused::bad(format!(
                        "parameter {name:?}, expected content, depth, fields or with-defaults"
                    )));
                }
            }
        }
        Ok(found)
    }
}

/// Where there are none.
pub(super) fn none(query: Option<&str>) -> Result<(), Refused> {
    match query.filter(|query| !query.is_empty()) {
        None => Ok(()),
        Some(query) => Err(Refused::bad(format!("parameters {query:?}, expected none here"))),
    }
}
