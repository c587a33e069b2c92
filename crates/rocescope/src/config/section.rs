//! Sections, keys and values of a TOML document, each with its place, and the collection of what
//! is wrong with them.
//!
//! A section is opened with all the keys it may have, so an unknown key is noticed whether or not
//! anything else is right. Reading goes on after an error: the operator gets all of them.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ERRORS_MAX;
use super::error::ConfigError;

/// Characters of a wrong value that an error repeats.
const SHOWN_MAX: usize = 60;

/// The text of one file, and what was found wrong with it so far.
#[derive(Debug)]
pub(super) struct Document<'t> {
    file: &'t str,
    text: &'t str,
    /// Offset of the first octet of each line.
    lines: Vec<usize>,
    /// With the offset of each, for the order.
    errors: RefCell<Vec<(usize, ConfigError)>>,
    /// An attestation that is taken back is no error.
    withdrawals: bool,
    /// What is wrong in the same way at several places.
    alike: RefCell<Vec<Alike>>,
}

/// A problem with the places that have it.
#[derive(Debug)]
struct Alike {
    problem: String,
    /// Offset and key of the first.
    at: usize,
    key: String,
    /// How many there are, and the lines of those after the first, as many as are shown.
    count: usize,
    lines: Vec<usize>,
}

/// Lines that an error names beside its own; of others, only the number.
const LINES_SHOWN: usize = 12;

impl<'t> Document<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Self {
            file,
            text,
            lines,
            errors: RefCell::default(),
            withdrawals: false,
            alike: RefCell::default(),
        }
    }

    /// As [`Document::new`], where an attestation that is taken back is no error.
    pub fn with_withdrawals(file: &'t str, text: &'t str) -> Self {
        Self { withdrawals: true, ..Self::new(file, text) }
    }

    /// The table at the top; where the text is no TOML, only the errors.
    pub fn parse(&self) -> Option<DeTable<'t>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        let at = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        let mut ordered: Vec<(usize, &str)> =
            errors.iter().map(|error| (at(error), error.message())).collect();
        ordered.sort_by_key(|(at, _)| *at);
        let mut last_line = 0;
        for (at, message) in ordered {
            let line = self.place(at).0;
            // What else is said of a line follows from what was wrong with it first.
            if line != last_line {
                self.error(at, "", message.replace('\n', ", "));
                last_line = line;
            }
        }
        errors.is_empty().then(|| table.into_inner())
    }

    pub fn error(&self, at: usize, key: &str, problem: String) {
        let (line, column) = self.place(at);
        let (line, column) = (Some(line), Some(column));
        let error = ConfigError { file: self.file.into(), line, column, key: key.into(), problem };
        self.errors.borrow_mut().push((at, error));
    }

    /// As [`Self::error`], for what can be wrong in the same way at many places: they become one
    /// error at the first of them, which names the others.
    pub fn error_alike(&self, at: usize, key: &str, problem: String) {
        let mut all = self.alike.borrow_mut();
        let Some(known) = all.iter_mut().find(|known| known.problem == problem) else {
            all.push(Alike { problem, at, key: key.into(), count: 1, lines: Vec::new() });
            return;
        };
        known.count += 1;
        if known.lines.len() < LINES_SHOWN {
            known.lines.push(self.place(at).0);
        }
    }

    /// Makes errors of what is wrong at several places.
    fn join_alike(&self) {
        for Alike { mut problem, at, key, count, lines } in self.alike.take() {
            let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let (more, beyond) = (count - 1, count - 1 - lines.len());
            if more > 0 {
                let plural = if more == 1 { "" } else { "s" };
                problem.push_str(&format!("; also on line{plural} {}", shown.join(", ")));
            }
            if beyond > 0 {
                problem.push_str(&format!(" and on {beyond} more"));
            }
            self.error(at, &key, problem);
        }
    }

    /// Line and column of an offset, both from 1.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let before = self.text.get(self.lines[line - 1]..at).unwrap_or("");
        (line, before.chars().count() + 1)
    }

    /// Offset of the first octet of a line.
    pub fn start_of(&self, line: usize) -> usize {
        self.lines.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }

    /// `built` where nothing was wrong, else everything that was, in the order of the file.
    pub fn finish<T>(self, built: Option<T>) -> Result<T, Vec<ConfigError>> {
        self.join_alike();
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|(at, _)| *at);
        match built {
            Some(built) if errors.is_empty() => Ok(built),
            _ => {
                assert!(!errors.is_empty(), "a configuration was refused without a reason");
                let beyond = errors.len().saturating_sub(ERRORS_MAX);
                errors.truncate(ERRORS_MAX);
                let mut errors: Vec<_> = errors.into_iter().map(|(_, error)| error).collect();
                if beyond > 0 {
                    let problem = format!("{beyond} more errors");
                    errors.push(ConfigError::of_file(self.file, problem));
                }
                Err(errors)
            }
        }
    }

    /// The text of a value as the operator wrote it, if it is short and on one line.
    fn shown(&self, span: Range<usize>, kind: &str) -> String {
        match self.text.get(span) {
            Some(text) if !text.contains('\n') && text.chars().count() <= SHOWN_MAX => text.into(),
            _ => kind.into(),
        }
    }
}

/// One table. One that the file does not have is like one without keys.
#[derive(Clone, Debug)]
pub(super) struct Section<'d> {
    pub document: &'d Document<'d>,
    table: Option<&'d DeTable<'d>>,
    path: String,
    at: usize,
    keys: &'static [&'static str],
}

impl<'d> Section<'d> {
    /// The table at the top of the file.
    pub fn top(
        document: &'d Document<'d>,
        table: &'d DeTable<'d>,
        keys: &'static [&'static str],
    ) -> Self {
        Self::open(document, Some(table), String::new(), 0, keys)
    }

    fn open(
        document: &'d Document<'d>,
        table: Option<&'d DeTable<'d>>,
        path: String,
        at: usize,
        keys: &'static [&'static str],
    ) -> Self {
        let section = Self { document, table, path, at, keys };
        for key in table.into_iter().flat_map(|table| table.keys()) {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                let problem = match nearest(name, keys) {
                    Some(known) => format!("unknown key, the nearest known one is {known}"),
                    None => format!("unknown key, expected {}", one_of(keys)),
                };
                document.error(key.span().start, &section.key(name), problem);
            }
        }
        section
    }

    /// Whether an attestation that is taken back is no error.
    pub fn allows_withdrawals(&self) -> bool {
        self.document.withdrawals
    }

    /// The path of a key of this section.
    pub fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.into() } else { format!("{}.{name}", self.path) }
    }

    /// The path of the section.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the file has it.
    pub fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// The line on which it starts.
    pub fn line(&self) -> usize {
        self.document.place(self.at).0
    }

    /// The value of a key, if it has one.
    pub fn value(&self, name: &'static str) -> Option<Value<'d>> {
        debug_assert!(self.keys.contains(&name), "{name} is read but not among the known keys");
        let value = self.table?.get(name)?;
        Some(Value { document: self.document, value, path: self.key(name) })
    }

    /// The value of a key that must be there; its absence is an error.
    pub fn required(&self, name: &'static str, expected: impl Display) -> Option<Value<'d>> {
        let value = self.value(name);
        if value.is_none() {
            self.error(name, format!("missing, expected {expected}"));
        }
        value
    }

    /// A whole number, or `default` where the file does not say.
    pub fn number<T>(&self, name: &'static str, range: RangeInclusive<T>, default: T) -> Option<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<u64>,
    {
        self.value(name).map_or(Some(default), |value| value.number(range))
    }

    /// One of several words, or the first of them where the file does not say.
    pub fn choice<T: Copy>(&self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        match self.value(name) {
            Some(value) => value.choice(words),
            None => words.first().map(|(_, first)| *first),
        }
    }

    /// A section in this one.
    pub fn section(&self, name: &'static str, keys: &'static [&'static str]) -> Section<'d> {
        let value = self.value(name);
        let table = value.as_ref().and_then(|value| value.table(keys));
        table.unwrap_or_else(|| Self::open(self.document, None, self.key(name), self.at, keys))
    }

    /// The sections of an array of tables; none where the file has none.
    pub fn sections(&self, name: &'static str, keys: &'static [&'static str]) -> Vec<Section<'d>> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let DeValue::Array(_) = value.value.get_ref() else {
            value.wrong(format_args!("an array of tables: [[{}]]", self.key(name)));
            return Vec::new();
        };
        value.items().iter().filter_map(|item| item.table(keys)).collect()
    }

    /// As [`Self::error`], for what other sections can have in the same way.
    pub fn error_alike(&self, name: &str, problem: String) {
        let key = if name.is_empty() { self.path.clone() } else { self.key(name) };
        self.document.error_alike(self.at, &key, problem);
    }

    /// Something wrong with a key that is not there, or with the section.
    pub fn error(&self, name: &str, problem: String) {
        let key = if name.is_empty() { self.path.clone() } else { self.key(name) };
        self.document.error(self.at, &key, problem);
    }
}

/// One value.
#[derive(Clone, Debug)]
pub(super) struct Value<'d> {
    document: &'d Document<'d>,
    value: &'d Spanned<DeValue<'d>>,
    path: String,
}

impl<'d> Value<'d> {
    /// The line on which it starts.
    pub fn line(&self) -> usize {
        self.document.place(self.value.span().start).0
    }

    /// Its key with all sections.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reports the value as it stands in the file, and what was expected.
    pub fn wrong(&self, expected: impl Display) {
        let kind = match self.value.get_ref() {
            DeValue::Table(_) => "a table".into(),
            DeValue::Array(_) => "an array".into(),
            other => format!("a long {}", other.type_str()),
        };
        let shown = match self.value.get_ref() {
            // The span of a table is that of its header.
            DeValue::Table(_) => kind,
            _ => self.document.shown(self.value.span(), &kind),
        };
        self.problem(format!("{shown}, expected {expected}"));
    }

    /// As [`Self::problem`], for what other values can have in the same way.
    pub fn problem_alike(&self, problem: String) {
        self.document.error_alike(self.value.span().start, &self.path, problem);
    }

    /// Reports something about the value.
    pub fn problem(&self, problem: String) {
        self.document.error(self.value.span().start, &self.path, problem);
    }

    /// A whole number of a range.
    pub fn number<T>(&self, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<u64>,
    {
        let number = match self.value.get_ref() {
            DeValue::Integer(digits) => {
                let digits_only = digits.as_str().trim_start_matches('+');
                u64::from_str_radix(digits_only, digits.radix()).ok()
            }
            _ => None,
        };
        let number = number.and_then(|n| T::try_from(n).ok()).filter(|n| range.contains(n));
        if number.is_none() {
            self.wrong(format_args!("{} to {}", range.start(), range.end()));
        }
        number
    }

    /// A whole number of a range that other programs show in hexadecimal, such as that of a queue
    /// pair: also as a text, `"0x1a2b"` or `"6699"`.
    pub fn identifier<T>(&self, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<u64>,
    {
        let DeValue::String(text) = self.value.get_ref() else { return self.number(range) };
        let number = identifier(text).and_then(|n| T::try_from(n).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (start, end) = (range.start(), range.end());
            self.wrong(format_args!("{start} to {end}, or the same in hexadecimal, as \"0x1f\""));
        }
        number
    }

    /// True or false.
    pub fn boolean(&self) -> Option<bool> {
        let found = self.value.get_ref().as_bool();
        if found.is_none() {
            self.wrong("true or false");
        }
        found
    }

    /// A date and time with its offset, as milliseconds since 1970.
    pub fn time(&self, expected: impl Display) -> Option<u64> {
        let found = match self.value.get_ref() {
            DeValue::Datetime(time) => super::pfc::milliseconds(time),
            _ => None,
        };
        if found.is_none() {
            self.wrong(expected);
        }
        found
    }

    /// A string, of which `read` makes something.
    pub fn parsed<T>(
        &self,
        expected: impl Display,
        read: impl FnOnce(&'d str) -> Option<T>,
    ) -> Option<T> {
        let found = match self.value.get_ref() {
            DeValue::String(text) => read(text),
            _ => None,
        };
        if found.is_none() {
            self.wrong(expected);
        }
        found
    }

    /// One of several words.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        self.parsed(alternatives(&names), |text| {
            words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant)
        })
    }

    /// The items of an array that is not empty.
    pub fn list(&self, expected: impl Display) -> Option<Vec<Value<'d>>> {
        let items = self.items();
        if items.is_empty() {
            self.wrong(format_args!("an array of at least one {expected}"));
            return None;
        }
        Some(items)
    }

    /// Whether it is an array without items.
    pub fn is_empty_list(&self) -> bool {
        self.value.get_ref().as_array().is_some_and(|array| array.is_empty())
    }

    fn items(&self) -> Vec<Value<'d>> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return Vec::new();
        };
        let item = |(index, value)| Value {
            document: self.document,
            value,
            path: format!("{}[{index}]", self.path),
        };
        array.iter().enumerate().map(item).collect()
    }

    fn table(&self, keys: &'static [&'static str]) -> Option<Section<'d>> {
        let DeValue::Table(table) = self.value.get_ref() else {
            self.wrong("a table");
            return None;
        };
        // A table that only came about by its parts, as `[a.b]` makes `a`, has no place.
        let at = self.value.span().start;
        Some(Section::open(self.document, Some(table), self.path.clone(), at, keys))
    }
}

/// A whole number in decimal digits, or in hexadecimal ones behind `0x`.
pub(crate) fn identifier(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // No sign, which `from_str_radix` would take.
    let legal = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    legal.then(|| u64::from_str_radix(digits, radix).ok())?
}

/// The known key that is most like `name`, where one of them is like it: a guess that is far from
/// what was meant leads astray.
pub(crate) fn nearest<'k>(name: &str, keys: &[&'k str]) -> Option<&'k str> {
    let likeness = |key: &str| strsim::normalized_damerau_levenshtein(name, key);
    let best = keys.iter().rev().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    // `window_size` for `window`, `cert` for `certificate`.
    let contained = || {
        keys.iter().copied().find(|key| {
            name.len().min(key.len()) >= PART_MIN
                && (key.starts_with(name) || name.starts_with(key))
        })
    };
    if likeness(best) >= LIKE_MIN { Some(best) } else { contained() }
}

/// A name is like another from here on: 1 where they are the same, 0 where nothing is.
const LIKE_MIN: f64 = 0.6;
/// Characters from which on a name can stand for a longer one.
const PART_MIN: usize = 3;

/// What is known, for who has asked for something else.
pub(crate) fn one_of(keys: &[&str]) -> String {
    let names: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    if names.is_empty() { "none here".into() } else { alternatives(&names) }
}

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn alternatives(names: &[String]) -> String {
    match names {
        [] => "nothing".into(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_decimal_or_hexadecimal_and_nothing_else() {
        for (text, number) in [
            ("6699", Some(6699)),
            ("0x1a2b", Some(0x1a2b)),
            ("0X1A2B", Some(0x1a2b)),
            ("0x000011", Some(17)),
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("0x10000000000000000", None),
            ("", None),
            ("0x", None),
            ("+1", None),
            ("0x+1", None),
            ("-1", None),
            ("1a", None),
            (" 1", None),
            ("1_000", None),
        ] {
            assert_eq!(identifier(text), number, "{text:?}");
        }
    }
}
