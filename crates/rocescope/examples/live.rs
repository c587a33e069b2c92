//! How much of live traffic an agent follows: `cargo xtask bench --agent` runs it, in a network
//! namespace with a veth pair `roce0` and `roce1`.
//!
//! Frames of 1000 streams are sent on one end as fast as this process can hand them to the kernel.
//! The agent at the other end reports to a collector. What counts is that it saw every frame that
//! the kernel delivered, that its totals are what was sent, and the processor time for each frame.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pcap::Capture;

type Failure = Box<dyn std::error::Error>;

const STREAMS: u32 = 1000;
/// Frames of a stream behind each other.
const BURST: u32 = 8;

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, program, directory, frames] = &arguments[..] else {
        return Err("usage: live ROCESCOPE DIRECTORY FRAMES".into());
    };
    measure(Path::new(program), Path::new(directory), frames.parse()?)
}

/// A SEND of no octets.
fn frame() -> Vec<u8> {
    let udp_len: u16 = 8 + 12 + 4;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0];
    frame.extend((20 + udp_len).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0]);
    frame.extend(4791_u16.to_be_bytes());
    frame.extend(udp_len.to_be_bytes());
    frame.extend([0, 0, 0x04, 0, 0xff, 0xff]);
    // QP, PSN and ICRC.
    frame.resize(frame.len() + 12, 0);
    frame
}

const QP: usize = 14 + 20 + 8 + 4;
const PSN: usize = QP + 4;

/// Sends so many frames, and says how long it took.
fn send(frames: u32) -> Result<Duration, Failure> {
    let mut end = Capture::from_device("roce1")?.open()?;
    let mut octets = frame();
    let mut next = vec![0_u32; STREAMS as usize];
    let began = Instant::now();
    for number in 0..frames {
        let stream = number / BURST % STREAMS;
        let psn = &mut next[stream as usize];
        octets[QP..QP + 4].copy_from_slice(&(stream + 1).to_be_bytes());
        octets[PSN..PSN + 4].copy_from_slice(&(*psn & 0x00ff_ffff).to_be_bytes());
        *psn += 1;
        end.sendpacket(&octets[..])?;
    }
    Ok(began.elapsed())
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Running {
    /// Starts the program, and waits until it says something.
    fn start(program: &Path, arguments: &[&str], until: &str) -> Result<Self, Failure> {
        let child = Command::new(program).args(arguments).stderr(Stdio::piped()).spawn()?;
        let mut running = Self(child);
        let mut said = BufReader::new(running.0.stderr.take().ok_or("no pipe")?);
        let mut line = String::new();
        while !line.contains(until) {
            line.clear();
            if said.read_line(&mut line)? == 0 {
                return Err(format!("it ended before it said {until:?}").into());
            }
        }
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(running)
    }

    /// Seconds of processor time so far.
    fn cpu_s(&self) -> Result<f64, Failure> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, behind) = stat.rsplit_once(") ").ok_or("no such line")?;
        let fields: Vec<_> = behind.split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(Duration::from_millis(ticks * 10).as_secs_f64())
    }
}

/// The agent's metrics; the sum of one name over its labels.
fn metric(name: &str) -> Result<u64, Failure> {
    let mut connection = TcpStream::connect("127.0.0.1:9740")?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    connection.read_to_string(&mut text)?;
    let lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let mut values = lines.filter(|rest| rest.starts_with([' ', '{'])).peekable();
    if values.peek().is_none() {
        return Err(format!("no metric {name} in {text}").into());
    }
    values.map(|rest| Ok(rest.rsplit(' ').next().unwrap_or(rest).parse::<u64>()?)).sum()
}

fn measure(program: &Path, directory: &Path, frames: u32) -> Result<(), Failure> {
    _ = fs::remove_dir_all(directory);
    rocescope::pki::init(directory)?;
    let path = |name: &str| directory.join(name).display().to_string();
    let text = fs::read_to_string(path("agent.toml"))?;
    let (head, _) = text.split_once("# What is observed").ok_or("another agent.toml")?;
    let rest = "[[source]]\ninterface = \"roce0\"\n[[rule]]\nsources = [\"10.0.0.0/8\"]\n\
                destinations = [\"10.0.0.0/8\"]\n[rule.attest]\nsend_write_only = true\n\
                complete_capture = true\nall_paths = true\nhalf_space = true\n\
                separate_namespaces = true\n[agent]\nmetrics_listen = \"127.0.0.1:9740\"\n";
    fs::write(path("agent.toml"), format!("{head}{rest}"))?;

    let _collector =
        Running::start(program, &["collector", "--config", &path("collector.toml")], "for IPFIX")?;
    let agent = Running::start(program, &["agent", "--config", &path("agent.toml")], "connected")?;
    let before = agent.cpu_s()?;
    let took = send(frames)?;
    let (mut seen, mut dropped) = (0, 0);
    let began = Instant::now();
    while seen + dropped < u64::from(frames) && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(200));
        seen = metric("rocescope_agent_requests_total")?;
        dropped = metric("rocescope_agent_capture_drops_total")?;
    }
    let cpu_s = agent.cpu_s()? - before;
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    let each_ns = cpu_s * 1e9 / seen.max(1) as f64;
    let rate = f64::from(frames) / took.as_secs_f64();
    println!(
        "| frames sent | a second | seen as requests | dropped by the kernel | neither | agent, ns of \
         processor time a frame |\n| ---: | ---: | ---: | ---: | ---: | ---: |\n\
         | {frames} | {rate:.0} | {seen} | {dropped} | {} | {each_ns:.0} |",
        i64::from(frames) - i64::try_from(seen + dropped)?
    );
    Ok(())
}
