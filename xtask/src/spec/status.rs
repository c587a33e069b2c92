//! spec/status.toml: what we say of each requirement. Written by hand, one line an id.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;

/// How far a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Enforced by code and proved by a test, all of it.
    Done,
    /// Some of it; `why` says what is missing.
    Partly,
    /// None of it yet; `why` says what it waits for.
    Open,
    /// A duty of the operator, which a program can only ask for; `why` says how it asks.
    Operator,
}

impl State {
    /// The word in the file and in the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partly => "partly",
            Self::Open => "open",
            Self::Operator => "operator",
        }
    }
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// How far.
    pub state: State,
    /// Why not all the way; empty where it is done.
    #[serde(default)]
    pub why: String,
}

/// Reads the file. A key that stands there twice, an unknown state or an unknown member is an
/// error with its line.
pub fn read(text: &str) -> anyhow::Result<BTreeMap<String, Status>> {
    toml::from_str(text).context("not readable as a table of `\"ID\" = { state, why }`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_a_state_and_a_reason() {
        let found = read("\"SEQ-1.1\" = { state = \"open\", why = \"later\" }\n\"SEQ-1.2\" = { state = \"done\" }").unwrap();
        assert_eq!(found["SEQ-1.1"], Status { state: State::Open, why: "later".into() });
        assert_eq!(found["SEQ-1.2"], Status { state: State::Done, why: String::new() });
    }

    #[test]
    fn an_unknown_state_an_unknown_member_and_a_second_line_are_refused() {
        for text in [
            "\"SEQ-1.1\" = { state = \"perhaps\" }",
            "\"SEQ-1.1\" = { state = \"done\", because = \"x\" }",
            "\"SEQ-1.1\" = { state = \"done\" }\n\"SEQ-1.1\" = { state = \"done\" }",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
