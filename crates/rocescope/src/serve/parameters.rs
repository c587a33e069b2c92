//! The parameters of a request: all of them known, each once, each with a legal value.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use axum::http::StatusCode;

use super::answer::{Problem, shown};
use crate::config::{alternatives, identifier, nearest};

/// The parameters of one request.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// Reads the query of a target. A parameter without a value is as if it were not there.
    ///
    /// # Errors
    /// One that is not known, or there twice.
    pub fn read(query: Option<&str>, known: &[&'static str]) -> Result<Self, Problem> {
        let mut all: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let Some(name) = known.iter().copied().find(|known| *known == name) else {
                return Err(unknown(&name, known));
            };
            if all.iter().any(|(there, _)| *there == name) {
                let detail = format!("parameter {name} is there more than once, expected once");
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail).with("parameter", name));
            }
            all.push((name, value.into_owned()));
        }
        Ok(Self(all))
    }

    fn get(&self, name: &'static str) -> Option<&str> {
        let found = self.0.iter().find(|(there, _)| *there == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// What `read` makes of a value.
    pub fn parsed<T>(
        &self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(Problem::parameter(name, value, expected)),
        }
    }

    /// A whole number of a range, in digits.
    pub fn number(
        &self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        let expected = format!("{} to {}", range.start(), range.end());
        self.parsed(name, &expected, |text| digits(text).filter(|number| range.contains(number)))
    }

    /// As [`Self::number`], and also in hexadecimal behind `0x`, as queue pairs are shown.
    pub fn identifier(
        &self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        let expected = format!("{} to {}", range.start(), range.end());
        self.parsed(name, &expected, |text| identifier(text).filter(|n| range.contains(n)))
    }

    /// The address of one host.
    pub fn address(&self, name: &'static str) -> Result<Option<IpAddr>, Problem> {
        self.parsed(name, "an IPv4 or IPv6 address", |text| text.parse().ok())
    }

    /// One of several words.
    pub fn word<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Problem> {
        let names: Vec<String> = words.iter().map(|(word, _)| (*word).to_owned()).collect();
        self.parsed(name, &alternatives(&names), |text| {
            words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant)
        })
    }
}

/// A number written with digits alone.
pub(super) fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok())?
}

fn unknown(name: &str, known: &[&'static str]) -> Problem {
    let name = shown(name);
    let problem = |detail| Problem::new(StatusCode::BAD_REQUEST, detail).with("parameter", &*name);
    match nearest(&name, known) {
        Some(known) => {
            problem(format!("unknown parameter {name}, the nearest known one is {known}"))
                .with("nearest", known)
        }
        None => problem(format!("unknown parameter {name}, expected none here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_digits_and_nothing_else() {
        assert_eq!(digits("0012"), Some(12));
        assert_eq!(digits(&u64::MAX.to_string()), Some(u64::MAX));
        for bad in ["", "+1", "-1", "1.0", " 1", "0x1", "18446744073709551616"] {
            assert_eq!(digits(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_parameter_without_a_value_is_as_if_it_were_not_there() {
        let parameters = Parameters::read(Some("limit=&cursor"), &["limit", "cursor"]).unwrap();
        assert_eq!(parameters.number("limit", 1..=5).unwrap(), None);
        assert_eq!(parameters.get("cursor"), None);
    }
}
