//! Where the sources cite requirements.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::comment::{self, Comment};
use super::item::{self, Items};
use super::requirement::ids;

/// Directories that are searched, from the repository's root.
const SEARCHED: [&str; 5] = ["crates", "xtask", "fuzz", "tests", "scripts"];
/// Directories that hold what others wrote or a build left behind.
const SKIPPED: [&str; 5] = ["target", "node_modules", "captures", "corpus", "data"];

/// What a citation is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The line, or the item it stands in, enforces the requirement.
    Enforced,
    /// A test proves it.
    Proved,
    /// The description of a file mentions it, which is neither.
    Mentioned,
}

/// One id in one item. Line numbers are left out of what is written, so that an edit elsewhere in
/// the file changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Citation {
    /// The id as it stands there, whether or not it exists.
    pub id: String,
    /// What it is worth.
    pub kind: Kind,
    /// The file, from the repository's root, with `/` between its parts.
    pub file: String,
    /// The item; empty where it belongs to none.
    pub item: String,
}

/// A source file and its text.
#[derive(Clone, Debug)]
pub struct Source {
    /// From the repository's root, with `/` between its parts.
    pub file: String,
    /// The whole text.
    pub text: String,
}

/// Reads every source under the searched directories, in order of their names.
pub fn sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut found = Vec::new();
    for directory in SEARCHED {
        let path = root.join(directory);
        if path.is_dir() {
            walk(root, &path, &mut found)?;
        }
    }
    found.sort_by(|left, right| left.file.cmp(&right.file));
    Ok(found)
}

/// Every citation in the sources, once for each id, kind and item.
pub fn find(sources: &[Source]) -> anyhow::Result<BTreeSet<Citation>> {
    let test_modules = test_modules(sources)?;
    let mut found = BTreeSet::new();
    for source in sources {
        let test = is_test_file(&source.file) || test_modules.contains(&source.file);
        in_source(source, test, &mut found).with_context(|| source.file.clone())?;
    }
    Ok(found)
}

fn walk(root: &Path, directory: &Path, found: &mut Vec<Source>) -> anyhow::Result<()> {
    let listed = || format!("{}: cannot be listed", directory.display());
    for entry in fs::read_dir(directory).with_context(listed)? {
        let path: PathBuf = entry.with_context(listed)?.path();
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                walk(root, &path, found)?;
            }
        } else if mark(&name).is_some() {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("{}: cannot be read", path.display()))?;
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            found.push(Source { file: parts.join("/"), text });
        }
    }
    Ok(())
}

/// What opens a comment in a file of this name; nothing for a file that is not searched.
fn mark(file: &str) -> Option<&'static str> {
    match file.rsplit_once('.')?.1 {
        "rs" | "ts" | "js" | "mjs" => Some("//"),
        "sh" | "py" => Some("#"),
        _ => None,
    }
}

fn is_test_file(file: &str) -> bool {
    file.starts_with("fuzz/") || file.split('/').rev().skip(1).any(|part| part == "tests")
}

/// Files that a `#[cfg(test)] mod name;` elsewhere makes part of a test build only.
fn test_modules(sources: &[Source]) -> anyhow::Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for source in sources.iter().filter(|source| source.file.ends_with(".rs")) {
        let items = item::of(&source.text, false).with_context(|| source.file.clone())?;
        let directory = module_directory(&source.file);
        for module in items.test_modules {
            let own = [format!("{directory}/{module}.rs"), format!("{directory}/{module}/mod.rs")];
            let below = format!("{directory}/{module}/");
            let names = sources.iter().map(|source| &source.file);
            files.extend(
                names.filter(|file| own.contains(file) || file.starts_with(&below)).cloned(),
            );
        }
    }
    Ok(files)
}

/// Where the modules that a file declares have their files.
fn module_directory(file: &str) -> &str {
    let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => directory,
        _ => file.strip_suffix(".rs").unwrap_or(file),
    }
}

fn in_source(source: &Source, test: bool, found: &mut BTreeSet<Citation>) -> anyhow::Result<()> {
    let rust = source.file.ends_with(".rs");
    let comments = if rust {
        comment::of_rust(&source.text)
    } else {
        comment::of_script(&source.text, mark(&source.file).unwrap_or("#"))
    };
    let items = if rust { item::of(&source.text, test)? } else { Items::default() };
    let lines: Vec<&str> = source.text.lines().collect();
    for comment in comments {
        let item = if comment.inner {
            None
        } else {
            items.at(comment.line, code_line(&lines, comment.line))
        };
        let kind = kind(&comment, test || item.is_some_and(|item| item.test));
        for range in ids(&comment.text) {
            found.insert(Citation {
                id: comment.text.get(range).unwrap_or_default().to_owned(),
                kind,
                file: source.file.clone(),
                item: item.map(|item| item.name.clone()).unwrap_or_default(),
            });
        }
    }
    Ok(())
}

fn kind(comment: &Comment, test: bool) -> Kind {
    match (comment.inner, test) {
        (true, _) => Kind::Mentioned,
        (false, true) => Kind::Proved,
        (false, false) => Kind::Enforced,
    }
}

/// The first line from `line` on (both from 1) that is neither blank nor all comment.
fn code_line(lines: &[&str], line: usize) -> usize {
    let code = |text: &&str| {
        let text = text.trim_start();
        !(text.is_empty()
            || text.starts_with("//")
            || text.starts_with("/*")
            || text.starts_with("* "))
    };
    let from = line.saturating_sub(1);
    lines.iter().skip(from).position(code).map_or(line, |skipped| line + skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(files: &[(&str, &str)]) -> Vec<(String, Kind, String)> {
        let source =
            |(file, text): &(&str, &str)| Source { file: (*file).into(), text: (*text).into() };
        let sources: Vec<_> = files.iter().map(source).collect();
        let found = find(&sources).unwrap();
        found.into_iter().map(|c| (c.id, c.kind, format!("{}:{}", c.file, c.item))).collect()
    }

    fn row(id: &str, kind: Kind, place: &str) -> (String, Kind, String) {
        (id.into(), kind, place.into())
    }

    #[test]
    fn a_comment_in_code_enforces_and_one_in_a_test_module_proves() {
        let text =
            "fn a() { // SEQ-1.1\n}\n#[cfg(test)]\nmod tests {\n#[test]\nfn b() {} // SEQ-1.1\n}\n";
        let expected = [
            row("SEQ-1.1", Kind::Enforced, "crates/x/src/lib.rs:a"),
            row("SEQ-1.1", Kind::Proved, "crates/x/src/lib.rs:b"),
        ];
        assert_eq!(cited(&[("crates/x/src/lib.rs", text)]), expected);
    }

    #[test]
    fn everything_under_tests_and_fuzz_proves() {
        let files = [
            ("crates/x/tests/a.rs", "fn a() {} // SEQ-1.1"),
            ("fuzz/targets/src/lib.rs", "fn a() {} // SEQ-1.2"),
            ("tests/browser.ts", "// SEQ-1.3"),
        ];
        assert!(cited(&files).iter().all(|(_, kind, _)| *kind == Kind::Proved));
    }

    #[test]
    fn a_file_named_tests_outside_a_tests_directory_enforces() {
        let found = cited(&[("crates/x/src/tests.rs", "fn a() {} // SEQ-1.1")]);
        assert_eq!(found, [row("SEQ-1.1", Kind::Enforced, "crates/x/src/tests.rs:a")]);
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_proves() {
        let files = [
            ("crates/x/src/a.rs", "#[cfg(test)]\nmod cases;\n"),
            ("crates/x/src/a/cases.rs", "fn b() {} // SEQ-1.1"),
            ("crates/x/src/cases.rs", "fn c() {} // SEQ-1.2"),
        ];
        let expected = [
            row("SEQ-1.1", Kind::Proved, "crates/x/src/a/cases.rs:b"),
            row("SEQ-1.2", Kind::Enforced, "crates/x/src/cases.rs:c"),
        ];
        assert_eq!(cited(&files), expected);
    }

    #[test]
    fn the_description_of_a_file_neither_enforces_nor_proves() {
        let found = cited(&[("crates/x/src/lib.rs", "//! SEQ-1.1\nfn a() {}\n")]);
        assert_eq!(found, [row("SEQ-1.1", Kind::Mentioned, "crates/x/src/lib.rs:")]);
    }

    #[test]
    fn an_id_in_a_string_is_data() {
        assert_eq!(cited(&[("crates/x/src/lib.rs", "const A: &str = \"// SEQ-1.1\";")]), []);
    }

    #[test]
    fn a_script_is_cited_as_a_file() {
        let found = cited(&[("scripts/a.sh", "#!/bin/bash\n# SEQ-1.1\n")]);
        assert_eq!(found, [row("SEQ-1.1", Kind::Enforced, "scripts/a.sh:")]);
    }
}
