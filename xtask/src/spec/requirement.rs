//! spec/requirements.md: the list of what the three drafts require.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::bail;

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The draft, a hyphen, the section, a dot and a number.
    pub id: String,
    /// The requirement in our words.
    pub text: String,
}

/// Reads every line of the shape `- ID text`. A second line with the same id is an error, and so
/// is a list without any.
pub fn read(list: &str) -> anyhow::Result<Vec<Requirement>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (number, line) in list.lines().enumerate() {
        let Some(entry) = line.strip_prefix("- ") else {
            continue;
        };
        let Some(range) = ids(entry).into_iter().next().filter(|range| range.start == 0) else {
            continue;
        };
        let (id, text) = entry.split_at(range.end);
        if !seen.insert(id.to_owned()) {
            bail!("line {}: {id} stands in the list twice", number + 1);
        }
        found.push(Requirement { id: id.to_owned(), text: text.trim().to_owned() });
    }
    if found.is_empty() {
        bail!("no line of the shape `- SEQ-3.1 text`");
    }
    Ok(found)
}

/// The draft of an id: what stands before its hyphen.
pub fn draft(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

/// Where ids stand in a text. What is nearly an id, such as one with a letter behind it, counts as one, so that it
/// is refused as unknown instead of being overlooked.
pub fn ids(text: &str) -> Vec<Range<usize>> {
    let part = |character: char| character.is_ascii_alphanumeric();
    let mut found = Vec::new();
    for (start, _) in text.match_indices(['S', 'P', 'Q']) {
        let before = text.get(..start).and_then(|before| before.chars().last());
        if before.is_some_and(|character| part(character) || "-_.".contains(character)) {
            continue;
        }
        let rest = text.get(start..).unwrap_or_default();
        if !["SEQ-", "PFC-", "QUE-"].iter().any(|draft| rest.starts_with(draft)) {
            continue;
        }
        let place = rest.get(4..).unwrap_or_default();
        let place_end = place.find(|c| !part(c)).unwrap_or(place.len());
        let Some(number) = place.get(place_end..).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        let number_end = number.find(|c| !part(c)).unwrap_or(number.len());
        if place_end > 0 && number.starts_with(|c: char| c.is_ascii_digit()) {
            found.push(start..start + 4 + place_end + 1 + number_end);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        ids(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn ids_are_found_in_running_text() {
        assert_eq!(
            found("// SEQ-7.8, PFC-id.1 (QUE-con.2)."),
            ["SEQ-7.8", "PFC-id.1", "QUE-con.2"]
        );
        assert_eq!(found("SEQ-7.18"), ["SEQ-7.18"], "not its first digits");
    }

    #[test]
    fn what_only_looks_like_an_id_is_none() {
        for text in
            ["SEQ-5", "SEQ-", "SEQ-.1", "XSEQ-5.1", "A-SEQ-5.1", "SEQ_5.1", "seq-5.1", "SEQ-5.x"]
        {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_misspelt_id_is_not_overlooked() {
        assert_eq!(found("SEQ-5.3a SEQ-55.1"), ["SEQ-5.3a", "SEQ-55.1"]);
    }

    #[test]
    fn the_list_gives_an_id_and_a_text_for_each_line() {
        let list =
            read("# Title\n\n- SEQ-3.1 Only RC.\n- (may) SEQ-3.2 cited\n* SEQ-3.3 no\n").unwrap();
        assert_eq!(list, [Requirement { id: "SEQ-3.1".into(), text: "Only RC.".into() }]);
    }

    #[test]
    fn an_id_that_stands_in_the_list_twice_is_refused() {
        let error = read("- SEQ-3.1 a\n- SEQ-3.1 b\n").unwrap_err().to_string();
        assert_eq!(error, "line 2: SEQ-3.1 stands in the list twice");
    }

    #[test]
    fn a_list_without_requirements_is_refused() {
        assert!(read("# nothing\n").is_err());
    }
}
