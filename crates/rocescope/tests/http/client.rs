//! A client that sends what a test wants, octet by octet, and reads one answer.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// One answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// A header that is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(there, _)| there == name);
        let first = found.next();
        assert!(found.next().is_none(), "{name} more than once in {self:?}");
        first.map(|(_, value)| value.as_str())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().map(|(name, _)| name.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends octets and reads an answer; the method says whether it has a body.
pub async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    octets: &[u8],
) -> std::io::Result<Answer> {
    stream.write_all(octets).await?;
    let mut read = Vec::new();
    let head = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, &mut read).await?;
    };
    let text = String::from_utf8(read[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let has_body = !octets.starts_with(b"HEAD ");
    let length = match length {
        Some((_, digits)) if has_body => Some(digits.parse::<usize>().unwrap()),
        None if has_body => None,
        _ => Some(0),
    };
    while length.is_none_or(|length| read.len() < head + length) {
        match more(stream, &mut read).await {
            Ok(()) => {}
            Err(_) if length.is_none() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Answer { status, headers, body: read.split_off(head) })
}

async fn more<S: AsyncRead + Unpin>(stream: &mut S, read: &mut Vec<u8>) -> std::io::Result<()> {
    match timeout(PATIENCE, stream.read_buf(read)).await.expect("an answer in time")? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// A request for this machine with a few more header lines.
pub fn request(method: &str, target: &str, lines: &[&str]) -> Vec<u8> {
    let more: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{more}\r\n").into_bytes()
}
