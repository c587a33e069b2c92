//! The parameters of a request: all of them known, each once, each with a legal value.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use axum::http::StatusCode;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::answer::{Problem, shown};
use crate::config::{alternatives, identifier, nearest, one_of};

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

    /// A time, in milliseconds since 1970.
    pub fn time(&self, name: &'static str) -> Result<Option<u64>, Problem> {
        let expected = "milliseconds since 1970, 0 to 18446744073709551615, or a time of RFC 3339 \
                        from 1970 on, such as 2026-11-30T08:15:00Z";
        self.parsed(name, expected, |text| digits(text).or_else(|| date(text)))
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

/// A time as RFC 3339 has it. What is less than a millisecond is cut off. The plus sign of an offset
/// is a space in a query string that was not escaped.
fn date(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(&text.replace(' ', "+"), &Rfc3339).ok()?;
    // Nanoseconds since 1970 have more than 64 bits from 2554 on.
    let since_ns = time.unix_timestamp_nanos();
    if since_ns < 0 {
        return None;
    }
    u64::try_from(since_ns / 1_000_000).ok()
}

fn unknown(name: &str, known: &[&'static str]) -> Problem {
    let name = shown(name);
    let problem = |detail| Problem::new(StatusCode::BAD_REQUEST, detail).with("parameter", &*name);
    match nearest(&name, known) {
        Some(known) => {
            problem(format!("unknown parameter {name}, the nearest known one is {known}"))
                .with("nearest", known)
        }
        None => problem(format!("unknown parameter {name}, expected {}", one_of(known))),
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
    fn a_time_is_read_as_rfc_3339_has_it() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:01.5Z", 1500),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-01T01:00:00 01:00", 0),
            ("1969-12-31T23:00:00.001999-01:00", 1),
            ("2026-11-30t08:15:00z", 1_796_026_500_000),
            ("2554-07-21T23:34:33.709Z", 18_446_744_073_709),
            ("2554-07-21T23:34:33.710Z", 18_446_744_073_710),
            ("9999-12-31T23:59:59-18:32", 253_402_367_519_000),
        ] {
            assert_eq!(date(text), Some(expected), "{text}");
        }
        for bad in [
            "1969-12-31T23:59:59.999999Z",
            "1969-12-31T23:59:59Z",
            "2026-11-30",
            "2026-11-30T08:15Z",
            "2026-02-30T00:00:00Z",
        ] {
            assert_eq!(date(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_parameter_without_a_value_is_as_if_it_were_not_there() {
        let parameters = Parameters::read(Some("limit=&cursor"), &["limit", "cursor"]).unwrap();
        assert_eq!(parameters.number("limit", 1..=5).unwrap(), None);
        assert_eq!(parameters.get("cursor"), None);
    }
}
