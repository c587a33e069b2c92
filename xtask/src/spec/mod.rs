//! `cargo xtask spec`: the requirements, what enforces each, what proves it, and what is missing.
//!
//! Three sources: the list in `spec/requirements.md`, what we say of each line of it in
//! `spec/status.toml`, and the ids that comments in the sources cite. The result is
//! `spec/coverage.md`, and a list of what does not fit together. Whether a cited line truly
//! enforces what it cites is for its reader to judge: this tool only sees that the citation is
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

mod citation;
mod comment;
mod coverage;
mod item;
mod requirement;
mod status;

use citation::{Citation, Kind};
use requirement::Requirement;
use status::{State, Status};

/// Writes spec/coverage.md or, to check, compares it. Fails where something does not fit, after
/// the file is written, so that the table shows what the message names.
pub fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let spec = Spec::read(root)?;
    let path = root.join("spec/coverage.md");
    let table = coverage::markdown(&spec);
    let mut problems = spec.problems();
    if check {
        if fs::read_to_string(&path).unwrap_or_default() != table {
            problems.push("spec/coverage.md is stale: run `cargo xtask spec`".to_owned());
        }
    } else {
        fs::write(&path, table).context("spec/coverage.md: cannot be written")?;
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    eprintln!("spec: {}", coverage::totals(&spec));
    Ok(())
}

/// All that the table is made of.
pub struct Spec {
    requirements: Vec<Requirement>,
    statuses: BTreeMap<String, Status>,
    citations: BTreeSet<Citation>,
}

impl Spec {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let text = |file: &str| {
            fs::read_to_string(root.join(file)).with_context(|| format!("{file}: cannot be read"))
        };
        let list = "spec/requirements.md";
        let states = "spec/status.toml";
        Ok(Self {
            requirements: requirement::read(&text(list)?).context(list)?,
            statuses: status::read(&text(states)?).context(states)?,
            citations: citation::find(&citation::sources(root)?)?,
        })
    }

    /// Citations of one kind of one requirement, in order.
    fn cited(&self, id: &str, kind: Kind) -> impl Iterator<Item = &Citation> {
        self.citations.iter().filter(move |citation| citation.id == id && citation.kind == kind)
    }

    /// Everything that does not fit together, one sentence each.
    fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        for requirement in &self.requirements {
            match self.statuses.get(&requirement.id) {
                Some(status) => self.judge(&requirement.id, status, &mut found),
                None => found.push(format!("{}: has no line in spec/status.toml", requirement.id)),
            }
        }
        let known: BTreeSet<&str> = self.requirements.iter().map(|of| of.id.as_str()).collect();
        for id in self.statuses.keys().filter(|id| !known.contains(id.as_str())) {
            found.push(format!("{id}: in spec/status.toml, but not in spec/requirements.md"));
        }
        for citation in self.citations.iter().filter(|of| !known.contains(of.id.as_str())) {
            let Citation { id, file, .. } = citation;
            found.push(format!("{id}: cited in {file}, but not in spec/requirements.md"));
        }
        found
    }

    fn judge(&self, id: &str, status: &Status, found: &mut Vec<String>) {
        let word = status.state.word();
        let enforced = self.cited(id, Kind::Enforced).next().is_some();
        let proved = self.cited(id, Kind::Proved).next().is_some();
        if matches!(status.state, State::Done | State::Partly) && !enforced {
            found.push(format!(
                "{id}: {word}, but no line of code cites it (the //! that opens a file does not count)"
            ));
        }
        if status.state == State::Done && !proved {
            found.push(format!("{id}: {word}, but no test cites it"));
        }
        if status.state != State::Done && status.why.trim().is_empty() {
            found.push(format!("{id}: {word}, but without a `why`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use citation::Source;

    /// A specification of one requirement.
    pub(super) fn spec(states: &str, code: &str) -> Spec {
        let source = Source { file: "crates/x/src/lib.rs".into(), text: code.into() };
        Spec {
            requirements: requirement::read("- SEQ-1.1 Either a | or not.\n").unwrap(),
            statuses: status::read(states).unwrap(),
            citations: citation::find(&[source]).unwrap(),
        }
    }

    const DONE: &str = "\"SEQ-1.1\" = { state = \"done\" }";
    const BOTH: &str = "fn a() {} // SEQ-1.1\n#[test]\nfn b() {} // SEQ-1.1\n";

    #[test]
    fn a_requirement_that_is_done_needs_code_and_a_test() {
        assert_eq!(spec(DONE, BOTH).problems(), [""; 0]);
        let without_test = spec(DONE, "fn a() {} // SEQ-1.1\n").problems();
        assert_eq!(without_test, ["SEQ-1.1: done, but no test cites it"]);
        let without_code = spec(DONE, "//! SEQ-1.1\n#[test]\nfn b() {} // SEQ-1.1\n").problems();
        assert_eq!(without_code.len(), 1);
        assert!(without_code[0].starts_with("SEQ-1.1: done, but no line of code cites it"));
    }

    #[test]
    fn a_requirement_that_is_partly_met_needs_code_and_a_reason() {
        let partly = "\"SEQ-1.1\" = { state = \"partly\" }";
        assert_eq!(spec(partly, "").problems().len(), 2);
        assert_eq!(spec(partly, BOTH).problems(), ["SEQ-1.1: partly, but without a `why`"]);
    }

    #[test]
    fn a_requirement_that_is_not_done_needs_a_reason_and_nothing_else() {
        for state in ["open", "operator"] {
            let with = format!("\"SEQ-1.1\" = {{ state = \"{state}\", why = \"x\" }}");
            assert_eq!(spec(&with, "").problems(), [""; 0]);
            let without = format!("\"SEQ-1.1\" = {{ state = \"{state}\" }}");
            assert_eq!(spec(&without, "").problems().len(), 1, "{state}");
        }
    }

    #[test]
    fn a_requirement_without_a_state_is_reported() {
        assert_eq!(spec("", "").problems(), ["SEQ-1.1: has no line in spec/status.toml"]);
    }

    #[test]
    fn a_state_or_a_citation_of_a_requirement_that_does_not_exist_is_reported() {
        let states = format!("{DONE}\n\"SEQ-1.2\" = {{ state = \"done\" }}");
        let code = format!("{BOTH}fn c() {{}} // SEQ-1.3\n");
        let expected = [
            "SEQ-1.2: in spec/status.toml, but not in spec/requirements.md",
            "SEQ-1.3: cited in crates/x/src/lib.rs, but not in spec/requirements.md",
        ];
        assert_eq!(spec(&states, &code).problems(), expected);
    }
}
