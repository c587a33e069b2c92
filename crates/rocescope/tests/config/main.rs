//! Configuration files, good and bad, and what is said of each.

mod beside;
mod check;
mod collector;
mod device;
mod manage;
mod pfc;
mod queue;
mod starter;
mod syntax;

use std::path::Path;

use rocescope::config::{self, Collector, Config, Device};

/// What an operator has to state, all of it stated.
pub const ATTESTED: &str = "send_write_only = true\ncomplete_capture = true\nall_paths = true\n\
                            half_space = true\nseparate_namespaces = true\n";

/// All errors of a text, one line each.
pub fn errors(text: &str) -> Vec<String> {
    match config::parse("a.toml", text, Path::new("etc")) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// A text that is a good device file.
pub fn device(text: &str) -> Device {
    match config::parse("a.toml", text, Path::new("etc")) {
        Ok(Config::Device(device)) => *device,
        other => panic!("expected a device's configuration:\n{text}\n{other:?}"),
    }
}

/// A text that is a good collector file.
pub fn collector(text: &str) -> Collector {
    match config::parse("a.toml", text, Path::new("etc")) {
        Ok(Config::Collector(collector)) => *collector,
        other => panic!("expected a collector's configuration:\n{text}\n{other:?}"),
    }
}

/// Checks a key against its range: the last legal value on each side is taken, and the next is
/// refused with the range. `text` has `@` where the value stands.
pub fn range(text: &str, key: &str, min: u64, max: u64) {
    let line = 1 + text[..text.find('@').expect("a place for the value")].matches('\n').count();
    let with = |value: &str| errors(&text.replace('@', value));
    for good in [min, (min + 1).min(max), max - 1, max] {
        assert_eq!(with(&good.to_string()), [""; 0], "{key} = {good}");
    }
    let above = u128::from(max) + 1;
    let mut bad = vec![above.to_string(), "-1".into(), "1.5".into()];
    // What other programs show in hexadecimal is taken as a text too.
    if ![".qp", ".pkey"].iter().any(|name| key.contains(name)) {
        bad.push("\"7\"".into());
    }
    bad.extend(min.checked_sub(1).map(|below| below.to_string()));
    for value in bad {
        let expected = format!("a.toml:{line}: {key}: {value}, expected {min} to {max}");
        assert_eq!(with(&value), [expected]);
    }
}
