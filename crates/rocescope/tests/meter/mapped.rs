//! Plain capture files are mapped a window at a time: what is seen must not depend on that, and a
//! file that another program cuts meanwhile must end in a sentence.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::frames::requests;
use crate::support::{ROCESCOPE, Scratch, good, program};
use crate::writer::Trace;

/// More octets than two windows hold, in records that do not end where a window does.
const LEN: usize = 35 << 20;

fn large() -> Vec<u8> {
    let in_order_but_for_one = (0..270_000_u32).filter(|psn| *psn != 100_000);
    let capture = Trace::from_frames(requests(in_order_but_for_one)).plain();
    assert!(capture.len() > LEN, "{}", capture.len());
    capture
}

#[test]
fn a_file_of_several_windows_gives_what_standard_input_gives() {
    let scratch = Scratch::new();
    let capture = large();
    let path = scratch.file("large.pcap", &capture);
    let mapped = good(&[&path], &[]);
    let read = program(ROCESCOPE, &["meter", "--attest-all", "--json", "-"], capture.clone());
    assert_eq!(mapped.out, read.out);
    assert!(mapped.out.contains("\"requestPacketTotalCount\":269999"), "{}", mapped.out);
    assert!(mapped.out.contains("\"skippedPsnTotalCount\":1"), "{}", mapped.out);

    // And where it ends inside a record, and inside the last window.
    let cut = &capture[..capture.len() - 7];
    let path = scratch.file("cut.pcap", cut);
    let mapped = good(&[&path], &[]);
    let read = program(ROCESCOPE, &["meter", "--attest-all", "--json", "-"], cut.to_vec());
    assert_eq!(mapped.out, read.out);
    assert!(mapped.out.contains("captureDiscontinuity"), "{}", mapped.out);
}

/// More reports than a pipe holds are written while the file is read, so that most of it is still
/// to be read when it is cut, for certain.
#[test]
fn a_file_that_is_cut_while_it_is_read_is_said_in_one_line_and_is_a_failure() {
    let scratch = Scratch::new();
    let path = scratch.file("growing-smaller.pcap", &large());
    let mut child = Command::new(ROCESCOPE)
        .args(["meter", "--attest-all", "--json", "--report-interval", "0.000000001"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut out = child.stdout.take().expect("a pipe");
    let mut first = [0; 10];
    out.read_exact(&mut first).expect("the first line");
    OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(0)).expect("cut");
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).expect("the other lines");
    let output = child.wait_with_output().expect("its end");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.starts_with("rocescope: a capture file was cut by another program"), "{err}");
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_as_far_as_it_is_written_when_its_end_is_reached() {
    let scratch = Scratch::new();
    let capture = large();
    let (now, later) = capture.split_at(LEN - (1 << 20));
    let path = scratch.file("growing.pcap", now);
    let mut child = Command::new(ROCESCOPE)
        .args(["meter", "--attest-all", "--json", "--report-interval", "0.000000001"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut out = child.stdout.take().expect("a pipe");
    let mut text = vec![0; 10];
    out.read_exact(&mut text).expect("the first line");
    let mut file = OpenOptions::new().append(true).open(&path).expect("the file");
    file.write_all(later).expect("written");
    out.read_to_end(&mut text).expect("the other lines");
    assert!(child.wait().expect("its end").success());
    assert_eq!(fs::metadata(&path).expect("the file").len(), capture.len() as u64);
    let text = String::from_utf8(text[10..].to_vec()).expect("text");
    let last = text.lines().last().expect("a line");
    assert!(last.contains("\"requestPacketTotalCount\":269999"), "{last}");
}
