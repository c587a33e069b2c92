//! What is wrong with a configuration file, in one line: file, line, key, found, expected.

use std::fmt;

/// One thing in a configuration file that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as the operator named it.
    pub file: String,
    /// Line, from 1; `None` where the file could not be read at all.
    pub line: Option<usize>,
    /// Column in characters, from 1, of the text that is meant.
    pub column: Option<usize>,
    /// The key with its sections, e.g. `rule[0].window`; empty where the text is no TOML.
    pub key: String,
    /// Found and expected.
    pub problem: String,
}

impl ConfigError {
    /// An error of a file as a whole.
    pub(crate) fn of_file(file: &str, problem: String) -> Self {
        Self { file: file.into(), line: None, column: None, key: String::new(), problem }
    }
}

impl fmt::Display for ConfigError {
    /// `agent.toml:14: rule[0].window: 5000000, expected 1 to 4194304`; the column only where no
    /// key says which part of the line is meant. Never more than one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        match (self.key.as_str(), self.line, self.column) {
            ("", Some(_), Some(column)) => write!(f, ":{column}: ")?,
            ("", ..) => f.write_str(": ")?,
            (key, ..) => write!(f, ": {}: ", printable(key))?,
        }
        f.write_str(&printable(&self.problem))
    }
}

impl std::error::Error for ConfigError {}

/// The text with control characters escaped: a name out of a file never starts a line of its own
/// or reaches the terminal.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_the_file_holds() {
        let error = ConfigError {
            file: "a\nb.toml".into(),
            line: Some(3),
            column: Some(9),
            key: "meter.\u{1b}[2J".into(),
            problem: "x\ry".into(),
        };
        assert_eq!(error.to_string(), "a\\nb.toml:3: meter.\\u{1b}[2J: x\\ry");
    }

    #[test]
    fn a_column_stands_where_there_is_no_key() {
        let error = ConfigError {
            file: "a.toml".into(),
            line: Some(3),
            column: Some(9),
            key: String::new(),
            problem: "p".into(),
        };
        assert_eq!(error.to_string(), "a.toml:3:9: p");
        assert_eq!(ConfigError::of_file("a.toml", "gone".into()).to_string(), "a.toml: gone");
    }
}
