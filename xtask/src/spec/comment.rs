//! Comments of a source file, line by line.
//!
//! A requirement is cited in a comment and nowhere else: an id in a string literal is data, such
//! as the sources that this tool's own tests read. So this is a lexer of the little of Rust that
//! decides where a comment begins. It knows nothing else of the language.

/// One line of one comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Line in the file, from 1.
    pub line: usize,
    /// Whether it describes the file or module around it (`//!`, `/*!`), not the code below.
    pub inner: bool,
    /// The text, with its comment marks.
    pub text: String,
}

/// Every line of every comment of a Rust source.
pub fn of_rust(source: &str) -> Vec<Comment> {
    let mut lexer = Lexer { rest: source, line: 1, found: Vec::new() };
    while lexer.step() {}
    lexer.found
}

/// Every comment of a source where `mark` opens one that runs to the end of the line.
///
/// Cruder than [`of_rust`]: the mark counts only where it stands first or after a blank, and
/// strings are not told apart. Enough for shell, Python and TypeScript.
pub fn of_script(source: &str, mark: &str) -> Vec<Comment> {
    let mut found = Vec::new();
    for (number, text) in source.lines().enumerate() {
        let start = text.match_indices(mark).find(|(at, _)| {
            text.get(..*at)
                .is_some_and(|before| before.chars().last().is_none_or(char::is_whitespace))
        });
        if let Some(comment) = start.and_then(|(at, _)| text.get(at..)) {
            found.push(Comment { line: number + 1, inner: false, text: comment.to_owned() });
        }
    }
    found
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Comment>,
}

impl Lexer<'_> {
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            self.line_comment();
        } else if self.rest.starts_with("/*") {
            self.block_comment();
        } else if first == '"' {
            self.string();
        } else if first == '\'' {
            self.quote();
        } else if first.is_alphanumeric() || first == '_' {
            self.word();
        } else {
            self.take(first.len_utf8());
        }
        true
    }

    /// Moves over `octets` octets and counts the lines in them. A position past the end, or
    /// inside a character, is the end.
    fn take(&mut self, octets: usize) -> &str {
        let (taken, rest) = self.rest.split_at_checked(octets).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        let text = self.take(length).to_owned();
        self.found.push(Comment { line, inner: text.starts_with("//!"), text });
    }

    fn block_comment(&mut self) {
        let line = self.line;
        let mut depth = 0_usize;
        let mut length = 0;
        while let Some(rest) = self.rest.get(length..) {
            if rest.starts_with("/*") {
                depth += 1;
                length += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                length += 2;
                if depth == 0 {
                    break;
                }
            } else if let Some(character) = rest.chars().next() {
                length += character.len_utf8();
            } else {
                break;
            }
        }
        let text = self.take(length).to_owned();
        let inner = text.starts_with("/*!");
        for (number, part) in text.lines().enumerate() {
            self.found.push(Comment { line: line + number, inner, text: part.to_owned() });
        }
    }

    fn string(&mut self) {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, character)| {
            let ends = *character == '"' && !escaped;
            escaped = *character == '\\' && !escaped;
            ends
        });
        self.take(end.map_or(self.rest.len(), |(at, _)| at + 1));
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        let mut after = self.rest.chars().skip(1);
        let (second, third) = (after.next(), after.next());
        let length = match (second, third) {
            (Some('\\'), Some(escaped)) => {
                let from = 2 + escaped.len_utf8();
                let end = self.rest.get(from..).and_then(|rest| rest.find('\''));
                end.map_or(self.rest.len(), |at| from + at + 1)
            }
            (Some(character), Some('\'')) => 2 + character.len_utf8(),
            _ => 1,
        };
        self.take(length);
    }

    /// An identifier or number, and the raw string that some identifiers open.
    fn word(&mut self) {
        let end =
            self.rest.find(|character: char| !character.is_alphanumeric() && character != '_');
        let word = self.take(end.unwrap_or(self.rest.len())).to_owned();
        if !matches!(word.as_str(), "r" | "br" | "cr") {
            return;
        }
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        if self.rest.get(hashes..).is_some_and(|rest| rest.starts_with('"')) {
            self.take(hashes + 1);
            let close = format!("\"{}", "#".repeat(hashes));
            self.take(self.rest.find(&close).map_or(self.rest.len(), |at| at + close.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<(usize, String)> {
        of_rust(source).into_iter().map(|comment| (comment.line, comment.text)).collect()
    }

    #[test]
    fn comments_are_found_with_their_lines() {
        let source = "fn a() {} // one\n/* two\n   three /* four */ */ b // five\n";
        let expected =
            [(1, "// one"), (2, "/* two"), (3, "   three /* four */ */"), (3, "// five")];
        assert_eq!(texts(source), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn what_looks_like_a_comment_in_a_literal_is_none() {
        for source in [
            "let a = \"// no\";",
            "let a = \"\\\"// no\";",
            "let a = r\"\\\"; let b = \"// no\";",
            "let a = r#\"\" // no\"#;",
            "let a = br##\"\"# // no\"##;",
            "let a = ['\"', '\\'', '\\u{22}']; let b = \"// no\";",
        ] {
            assert_eq!(texts(source), [], "{source}");
        }
    }

    #[test]
    fn a_lifetime_opens_no_literal() {
        let source = "fn a<'a>(b: &'a str, c: &'a str) {} // yes\nlet d = r#type; // too";
        assert_eq!(texts(source).len(), 2);
    }

    #[test]
    fn the_description_of_a_file_is_told_from_the_comment_of_an_item() {
        let inner = of_rust("//! file\n/// item\n/*! file */").into_iter().map(|c| c.inner);
        assert_eq!(inner.collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn an_unfinished_literal_or_comment_ends_with_the_file() {
        for source in ["\"abc", "/* a /* b */", "r#\"abc\"", "'\\", "'", "r#"] {
            of_rust(source);
        }
    }

    #[test]
    fn a_script_comment_needs_a_blank_before_its_mark() {
        let found = of_script("a#b\nc # d\n# e", "#");
        assert_eq!(found.iter().map(|c| c.line).collect::<Vec<_>>(), [2, 3]);
    }
}
