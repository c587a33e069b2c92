//! spec/coverage.md: the table that people read.

use std::fmt::Write as _;

use super::Spec;
use super::citation::{Citation, Kind};
use super::requirement::{Requirement, draft};
use super::status::State;

const DRAFTS: [(&str, &str); 3] =
    [("SEQ", "RoCEv2 sequence observations"), ("PFC", "PFC counters"), ("QUE", "Queue telemetry")];

/// The whole file.
pub fn markdown(spec: &Spec) -> String {
    let mut out = String::from(
        "# Requirements, and where they are met\n\n\
         <!-- Written by `cargo xtask spec`; do not edit. -->\n\n\
         Every line of [requirements.md](requirements.md), what [status.toml](status.toml) says of \
         it, which items of the code cite it and which tests. *Done* needs both. *Operator* is a \
         duty that a program can only ask for. A citation says where to look; that the line does \
         what the requirement asks is for its reader to judge.\n",
    );
    for (prefix, title) in DRAFTS {
        let of_draft = |of: &&Requirement| draft(&of.id) == prefix;
        let _ = write!(
            out,
            "\n## {title}\n\n{}\n\n\
             | id | requirement | state | enforced at | proved by | what is missing |\n\
             | --- | --- | --- | --- | --- | --- |\n",
            counts(spec, prefix),
        );
        for requirement in spec.requirements.iter().filter(of_draft) {
            row(spec, requirement, &mut out);
        }
    }
    out
}

/// One line for the terminal: how many requirements are in which state.
pub fn totals(spec: &Spec) -> String {
    DRAFTS.map(|(prefix, _)| format!("{prefix}: {}", counts(spec, prefix))).join("; ")
}

fn counts(spec: &Spec, prefix: &str) -> String {
    let count = |state| {
        let stated = |id| spec.statuses.get(id).map(|status| status.state);
        let of_draft = spec.requirements.iter().filter(|of| draft(&of.id) == prefix);
        of_draft.filter(|of| stated(of.id.as_str()) == Some(state)).count()
    };
    [State::Done, State::Partly, State::Open, State::Operator]
        .map(|state| format!("{} {}", count(state), state.word()))
        .join(", ")
}

fn row(spec: &Spec, requirement: &Requirement, out: &mut String) {
    let status = spec.statuses.get(&requirement.id);
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} | {} | {} |",
        requirement.id,
        cell(&requirement.text),
        status.map_or("not stated", |status| status.state.word()),
        places(spec.cited(&requirement.id, Kind::Enforced)),
        places(spec.cited(&requirement.id, Kind::Proved)),
        cell(status.map_or("", |status| status.why.as_str())),
    );
}

fn places<'a>(citations: impl Iterator<Item = &'a Citation>) -> String {
    let place = |citation: &Citation| {
        let link = format!("[{0}](../{0})", citation.file);
        if citation.item.is_empty() { link } else { format!("{link}: `{}`", citation.item) }
    };
    citations.map(place).collect::<Vec<_>>().join("<br>")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::*;

    #[test]
    fn a_row_names_items_and_tests_without_their_lines() {
        let code = "fn a() {} // SEQ-1.1\n#[test]\nfn b() {} // SEQ-1.1\n";
        let spec = spec("\"SEQ-1.1\" = { state = \"done\" }", code);
        let file = "[crates/x/src/lib.rs](../crates/x/src/lib.rs)";
        let row =
            format!("| SEQ-1.1 | Either a \\| or not. | done | {file}: `a` | {file}: `b` |  |\n");
        assert!(markdown(&spec).contains(&row), "{}", markdown(&spec));
    }

    #[test]
    fn a_requirement_without_a_state_says_so() {
        assert!(markdown(&spec("", "")).contains("| not stated |  |  |  |\n"));
    }

    #[test]
    fn the_totals_count_each_state_for_each_draft() {
        let spec = spec("\"SEQ-1.1\" = { state = \"open\", why = \"x\" }", "");
        assert!(
            totals(&spec).starts_with("SEQ: 0 done, 0 partly, 1 open, 0 operator; PFC: 0 done")
        );
    }
}
