//! As much of Redis as reading a database takes: requests one behind the other, and their answers
//! (RESP, version 2), each with a bound on its octets and all of them with one time in which they
//! have to come.
//!
//! The library for it was left aside: it waits for every answer of a pipeline anew after the first
//! has timed out, and bounds none of them. See docs/decisions.md.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};

/// Octets of one text of an answer; `INFO server` has some two thousand.
const TEXT_MAX: usize = 1 << 16;
/// Octets of a line of the protocol: a number, or an error in words.
const LINE_MAX: usize = 4096;
/// Texts of one answer: names and values of some hundred thousand queues.
const LIST_MAX: usize = 1 << 18;
/// Octets of all texts of one answer: enough for as many queues, whose names and objects have some
/// thirty each.
const ANSWER_MAX: usize = 8 << 20;
/// Octets of all answers within one time: those of a poll of as many queues.
const POLL_MAX: usize = 64 << 20;
/// Octets that are asked for at once.
const READ_LEN: usize = 1 << 16;

/// Where a server listens, on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// A port of a loopback address.
    Port(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Port(address) => address.fmt(f),
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// One text.
    Text(Vec<u8>),
    /// Texts in their order, some of which are not there.
    List(Vec<Option<Vec<u8>>>),
    /// The server's reason for not answering this request. Others are not touched by it.
    Refused(String),
}

/// A connection. After an error it is of no use.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    start: usize,
    deadline: Instant,
    /// Octets that came within this time.
    came: usize,
}

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Connection {
    /// Connects. That, and all that is asked until the next [`Connection::within`], has to be done in
    /// this time.
    ///
    /// # Errors
    /// What the system says, or that the time is over.
    pub fn open(address: &Address, within: Duration) -> io::Result<Self> {
        let deadline = Instant::now() + within;
        let stream = match address {
            Address::Socket(path) => Stream::Unix(connected(path, deadline)?),
            Address::Port(address) => Stream::Tcp(TcpStream::connect_timeout(address, within)?),
        };
        Ok(Self::new(stream, deadline))
    }

    const fn new(stream: Stream, deadline: Instant) -> Self {
        Self { stream, buffer: Vec::new(), start: 0, deadline, came: 0 }
    }

    /// What is asked from here on has to come within this time, all of it.
    pub fn within(&mut self, within: Duration) {
        self.deadline = Instant::now() + within;
        self.came = 0;
    }

    /// Sends requests.
    ///
    /// # Errors
    /// What the system says, or that the time is over.
    pub fn send(&mut self, requests: &[u8]) -> io::Result<()> {
        let mut rest = requests;
        while !rest.is_empty() {
            let left = Some(self.left()?);
            let written = match &mut self.stream {
                Stream::Unix(stream) => {
                    stream.set_write_timeout(left)?;
                    stream.write(rest)
                }
                Stream::Tcp(stream) => {
                    stream.set_write_timeout(left)?;
                    stream.write(rest)
                }
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(late(error)),
            }
        }
        Ok(())
    }

    /// The next answer.
    ///
    /// # Errors
    /// What the system says, that the time is over, or that the answer is none of these.
    pub fn reply(&mut self) -> io::Result<Reply> {
        // What has come already takes time to read.
        self.left()?;
        match self.head()? {
            (b'$', length) => match self.text(&length)? {
                Some(text) => Ok(Reply::Text(text)),
                None => Ok(Reply::List(Vec::new())),
            },
            (b'*', length) => {
                let count = number(&length)?.unwrap_or(0);
                if count > LIST_MAX {
                    return Err(strange(&format!("{count} texts, expected at most {LIST_MAX}")));
                }
                let mut list = Vec::new();
                let mut octets = 0;
                for _ in 0..count {
                    let text = match self.head()? {
                        (b'$', length) => self.text(&length)?,
                        (b'+' | b':', text) => Some(text),
                        _ => return Err(strange("a list of something else than texts")),
                    };
                    octets += text.as_ref().map_or(0, Vec::len);
                    if octets > ANSWER_MAX {
                        return Err(strange(&format!(
                            "a list of more than {ANSWER_MAX} octets, expected that at most"
                        )));
                    }
                    list.push(text);
                }
                Ok(Reply::List(list))
            }
            (b'+' | b':', text) => Ok(Reply::Text(text)),
            (b'-', text) => Ok(Reply::Refused(String::from_utf8_lossy(&text).into_owned())),
            (other, _) => {
                let other = char::from(other).escape_default();
                Err(strange(&format!("an answer that begins with {other}")))
            }
        }
    }

    /// The kind of what follows, and the rest of its line.
    fn head(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut searched = 0;
        loop {
            let held = &self.buffer[self.start..];
            if let Some(at) = held[searched..].iter().position(|octet| *octet == b'\n') {
                let line = &held[..searched + at];
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let [kind, rest @ ..] = line else { return Err(strange("an empty line")) };
                let head = (*kind, rest.to_vec());
                self.start += searched + at + 1;
                return Ok(head);
            }
            searched = held.len();
            if searched > LINE_MAX {
                return Err(strange(&format!("a line of more than {LINE_MAX} octets")));
            }
            self.fill()?;
        }
    }

    fn text(&mut self, length: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let Some(length) = number(length)? else { return Ok(None) };
        if length > TEXT_MAX {
            return Err(strange(&format!(
                "a text of {length} octets, expected {TEXT_MAX} at most"
            )));
        }
        while self.buffer.len() - self.start < length + 2 {
            self.fill()?;
        }
        let text = self.buffer[self.start..self.start + length].to_vec();
        self.start += length + 2;
        Ok(Some(text))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let left = Some(self.left()?);
        let held = self.buffer.len();
        self.buffer.resize(held + READ_LEN, 0);
        let room = &mut self.buffer[held..];
        let read = match &mut self.stream {
            Stream::Unix(stream) => {
                stream.set_read_timeout(left)?;
                stream.read(room)
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(left)?;
                stream.read(room)
            }
        };
        let new = *read.as_ref().unwrap_or(&0);
        self.buffer.truncate(held + new);
        self.came += new;
        if self.came > POLL_MAX {
            return Err(strange(&format!("answers of more than {POLL_MAX} octets")));
        }
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(late(error)),
        }
    }

    fn left(&self) -> io::Result<Duration> {
        left(self.deadline)
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Connects to a Unix socket. A server that takes nobody in keeps everybody waiting once there is no
/// place left to wait in: only so long.
fn connected(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        // The time for sending holds for connecting too.
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(left(deadline)?))?;
        match connect(&socket, &address) {
            Ok(()) => return Ok(UnixStream::from(socket)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A time that is over shows as one or the other.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not the answer of a Redis server: {what}"))
}

/// A length; none for -1, which stands for what is not there.
fn number(text: &[u8]) -> io::Result<Option<usize>> {
    if text == b"-1" {
        return Ok(None);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| strange("a length that is no number"))
}

/// Appends a request.
pub fn request(out: &mut Vec<u8>, words: &[&str]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of octets that a server would send.
    fn read(octets: &[u8]) -> io::Result<Vec<Reply>> {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        theirs.write_all(octets).expect("written");
        drop(theirs);
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut connection = Connection::new(Stream::Unix(ours), deadline);
        let mut replies = Vec::new();
        loop {
            match connection.reply() {
                Ok(reply) => replies.push(reply),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(replies),
                Err(error) => return Err(error),
            }
        }
    }

    #[test]
    fn answers_of_every_kind_are_read_in_their_order() {
        let octets =
            b"+OK\r\n$5\r\na\r\nb,\r\n*3\r\n$1\r\n7\r\n$-1\r\n:9\r\n-ERR no\r\n$-1\r\n*-1\r\n*0\r\n";
        let text = |text: &[u8]| Some(text.to_vec());
        let expected = [
            Reply::Text(b"OK".to_vec()),
            Reply::Text(b"a\r\nb,".to_vec()),
            Reply::List(vec![text(b"7"), None, text(b"9")]),
            Reply::Refused("ERR no".into()),
            Reply::List(Vec::new()),
            Reply::List(Vec::new()),
            Reply::List(Vec::new()),
        ];
        assert_eq!(read(octets).expect("answers"), expected);
    }

    #[test]
    fn what_a_server_does_not_say_is_refused() {
        for (octets, expected) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "begins with H"),
            (b"\r\n", "an empty line"),
            (b"$x\r\n", "no number"),
            (b"$65537\r\n", "a text of 65537 octets"),
            (b"*262145\r\n", "262145 texts"),
            (b"*1\r\n*1\r\n", "something else than texts"),
            (&[b'+'; LINE_MAX + 2], "a line of more than"),
        ] {
            let error = read(octets).expect_err("refused");
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!(read(b"$65536\r\n").expect("not all of it"), []);
    }

    #[test]
    fn a_list_has_a_bound_on_its_octets_and_one_at_the_bound_is_read() {
        let full = vec![b'a'; TEXT_MAX];
        let texts = ANSWER_MAX / TEXT_MAX;
        let list = move |last: usize| {
            let mut octets = format!("*{}\r\n", texts + 1).into_bytes();
            for text in std::iter::repeat_n(&full[..], texts).chain([&full[..last]]) {
                octets.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
                octets.extend_from_slice(text);
                octets.extend_from_slice(b"\r\n");
            }
            octets
        };
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let deadline = Instant::now() + Duration::from_secs(300);
        let stream = Stream::Unix(ours);
        let mut connection = Connection::new(stream, deadline);
        // A thread, as no socket holds as much.
        let writing = std::thread::spawn(move || {
            theirs.write_all(&list(0)).and_then(|()| theirs.write_all(&list(1)))
        });
        match connection.reply().expect("at the bound") {
            Reply::List(list) => assert_eq!(list.len(), texts + 1),
            other => panic!("{other:?}"),
        }
        let error = connection.reply().expect_err("beyond the bound");
        assert!(error.to_string().contains("more than 8388608 octets"), "{error}");
        drop(connection);
        _ = writing.join().expect("no panic");
    }

    #[test]
    fn many_answers_have_a_bound_on_their_octets_too_and_a_new_time_begins_anew() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let deadline = Instant::now() + Duration::from_secs(300);
        let mut connection = Connection::new(Stream::Unix(ours), deadline);
        let writing = std::thread::spawn(move || {
            let answer = [&b"$65536\r\n"[..], &[b'a'; TEXT_MAX], b"\r\n"].concat();
            while theirs.write_all(&answer).is_ok() {}
        });
        // What is asked for at once may be ahead.
        let answers = POLL_MAX / (TEXT_MAX + 16) - 2;
        for _ in 0..2 {
            for _ in 0..answers {
                connection.reply().expect("within the bound");
            }
            connection.within(Duration::from_secs(300));
        }
        let beyond = (0..answers + 16).find_map(|_| connection.reply().err());
        let error = beyond.expect("beyond the bound").to_string();
        assert!(error.contains("answers of more than 67108864 octets"), "{error}");
        drop(connection);
        writing.join().expect("no panic");
    }

    #[test]
    fn a_socket_where_nobody_is_taken_in_is_given_up_in_time() {
        let folder = std::env::temp_dir().join(format!("redis-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("redis.sock");
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("a socket");
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).expect("an address"))
            .expect("bound");
        rustix::net::listen(&socket, 0).expect("listens");
        let address = Address::Socket(path);
        let within = Duration::from_millis(50);
        // One waits to be taken in; there is no place for another one.
        let held = Connection::open(&address, within).expect("a place");
        let error = Connection::open(&address, within).expect_err("no place");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Once there is one again, it is taken.
        let (held, opened) = std::thread::scope(|scope| {
            let waits = scope.spawn(|| Connection::open(&address, Duration::from_secs(60)));
            _ = rustix::net::accept(&socket).expect("taken in");
            (held, waits.join().expect("no panic"))
        });
        assert!(opened.is_ok(), "{opened:?}");
        drop(held);
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn one_time_holds_for_all_answers() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let stream = Stream::Unix(ours);
        let deadline = Instant::now();
        let mut connection = Connection::new(stream, deadline);
        for _ in 0..1000 {
            assert_eq!(connection.reply().expect_err("late").kind(), io::ErrorKind::TimedOut);
        }
    }

    #[test]
    fn requests_say_how_long_their_words_are() {
        let mut out = Vec::new();
        request(&mut out, &["HMGET", "a b", "é"]);
        assert_eq!(out, "*3\r\n$5\r\nHMGET\r\n$3\r\na b\r\n$2\r\né\r\n".as_bytes());
    }
}
