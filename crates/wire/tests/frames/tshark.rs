//! A second opinion: tshark over every capture, frame by frame.

use crate::support::{every_capture, packets, read};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use wire::frame::{Frame, Layer};

/// Frame number, opcode, destination QP, PSN, partition key.
type Line = (usize, u8, u32, u32, u16);

fn number(text: &str) -> u32 {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .unwrap_or_else(|_| panic!("tshark printed {text:?} where a number was expected"))
}

fn line(text: &str) -> Option<Line> {
    let fields: Vec<_> = text.split(',').collect();
    let &[frame, port, opcode, qp, psn, key] = fields.as_slice() else {
        panic!("tshark printed {text:?}");
    };
    (port == "4791").then(|| {
        (
            frame.parse().expect("a frame number"),
            u8::try_from(number(opcode)).expect("eight bits"),
            number(qp),
            number(psn),
            u16::try_from(number(key)).expect("16 bits"),
        )
    })
}

/// What tshark sees sent to port 4791 in the outer layer.
fn by_tshark(path: &Path) -> Vec<Line> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(path);
    // It asks the smaller port number first, whichever end it is at, so what else would claim
    // the odd source ports has to be put out of the way.
    for protocol in ["tftp", "dns", "vxlan"] {
        command.args(["--disable-protocol", protocol]);
    }
    command.args(["-T", "fields", "-E", "separator=,", "-E", "occurrence=f"]);
    for field in [
        "frame.number",
        "udp.dstport",
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
        "infiniband.bth.psn",
        "infiniband.bth.p_key",
    ] {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap_or_else(|error| {
        panic!("this test needs tshark, and it cannot be run: {error}; `make test` installs it")
    });
    assert!(
        output.status.success(),
        "tshark failed over {}: {}",
        path.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().filter_map(line).collect()
}

fn by_us(path: &Path) -> Vec<Line> {
    packets(&read(path))
        .iter()
        .enumerate()
        .filter_map(|(at, record)| match record.decode(Layer::Outer).body {
            Frame::Roce(packet) => {
                let bth = packet.bth;
                Some((at + 1, bth.opcode.0, bth.qp, bth.psn, bth.pkey))
            }
            _ => None,
        })
        .collect()
}

/// Compares the captures, and gives the number of packets.
fn compare(paths: &[PathBuf]) -> usize {
    paths
        .iter()
        .map(|path| {
            let theirs = by_tshark(path);
            let ours = by_us(path);
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours, theirs, "{}", path.display());
            }
            assert_eq!(ours.len(), theirs.len(), "{}", path.display());
            ours.len()
        })
        .sum()
}

#[test]
fn every_capture_is_what_tshark_says_it_is() {
    let paths = every_capture(&["made", "softroce", "tunnels"]);
    // Most of the time goes into starting tshark, so it is started several times at once.
    let compared: usize = thread::scope(|scope| {
        let parts: Vec<_> = paths
            .chunks(paths.len().div_ceil(4))
            .map(|paths| scope.spawn(|| compare(paths)))
            .collect();
        parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).sum()
    });
    assert!(compared > 100_000, "only {compared} packets were compared");
}
