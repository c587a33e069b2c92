//! Writes the first inputs of the corpus: fronts of captures, single frames out of them, and IPFIX
//! messages of our own.
//!
//! `cargo run -p rocescope-fuzz --example seed -- DIRECTORY_OF_CAPTURES CORPUS`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use wire::capture::{Limits, Parser, Step};
use wire::element::ElementId;
use wire::ipfix::{Encoder, FieldSpec, TemplateKind, TemplateSpec};

/// Octets of the front of a capture.
const FRONT: usize = 1200;
/// Frames of one capture, each of another length.
const FRAMES: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = env::args().skip(1).map(PathBuf::from).collect();
    let [captures, corpus] = arguments.as_slice() else {
        return Err("usage: seed DIRECTORY_OF_CAPTURES CORPUS".into());
    };
    let mut files = Vec::new();
    list(captures, &mut files)?;
    files.sort();
    for file in files {
        let octets = fs::read(&file)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let front = octets.get(..FRONT).unwrap_or(&octets);
        fs::write(corpus.join("capture").join(&stem), front)?;
        for (number, frame) in frames(&octets).into_iter().enumerate() {
            fs::write(corpus.join("frame").join(format!("{stem}-{number}")), frame)?;
        }
    }
    fs::write(corpus.join("ipfix/messages"), messages()?)?;
    Ok(())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            list(&path, files)?;
        } else if matches!(extension.as_str(), "pcap" | "pcapng") {
            files.push(path);
        }
    }
    Ok(())
}

/// Inputs for the frame target: Ethernet, nothing left out, cut behind octet 60.
fn frames(capture: &[u8]) -> Vec<Vec<u8>> {
    let (mut parser, mut rest) = (Parser::new(Limits::default()), capture);
    let mut found: Vec<Vec<u8>> = Vec::new();
    while let Ok(step) = parser.next(rest, true) {
        if matches!(step, Step::End | Step::TruncatedEnd { .. }) || found.len() == FRAMES {
            break;
        }
        if let Step::Packet { record, .. } = step {
            let input = [&[0, 0, 60], record.data.get(..400).unwrap_or(record.data)].concat();
            if found.iter().all(|other| other.len() != input.len()) {
                found.push(input);
            }
        }
        rest = rest.get(step.consumed()..).unwrap_or_default();
    }
    found
}

/// A stream with templates of fixed and variable length, options, foreign elements, withdrawals.
fn messages() -> Result<Vec<u8>, Box<dyn Error>> {
    let field = |pen, id, length| FieldSpec::new(ElementId { pen, id }, length);
    let fixed = TemplateSpec {
        id: 256,
        scope_count: 0,
        fields: vec![field(0, 8, 4), field(0, 12, 4), field(32473, 1, 8), field(0, 2, 3)],
    };
    let variable = TemplateSpec {
        id: 257,
        scope_count: 1,
        fields: vec![field(0, 145, 2), field(0, 82, 65535), field(9, 1000, 65535)],
    };
    let mut out = vec![0];
    let mut encoder = Encoder::new(1400)?;
    let mut writer = encoder.writer(1, 1_800_000_000, &mut out);
    writer.template(&fixed)?;
    writer.template(&variable)?;
    for number in 0..3_u8 {
        writer.record(256, |record| {
            fixed
                .fields
                .iter()
                .try_for_each(|of| record.octets(&vec![number; usize::from(of.length)]))
        })?;
    }
    writer.record(257, |record| {
        record.octets(&[1, 0])?;
        record.octets(b"")?;
        record.octets(&[7; 300])
    })?;
    writer.withdraw(256)?;
    writer.withdraw_all(TemplateKind::Options)?;
    writer.finish();
    Ok(out)
}
