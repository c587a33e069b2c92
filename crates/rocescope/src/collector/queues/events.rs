//! An event stream (Server-Sent Events, as RFC 8040, section 6.4 and RFC 8650 use them), octet by
//! octet: the data of each event. Names, ids and times to wait, of which RESTCONF has none, are let
//! be.

/// A stream that is being read.
#[derive(Debug)]
pub struct Events {
    octets_max: usize,
    line: Vec<u8>,
    /// The last octet was a carriage return: a line feed behind it is part of the same end.
    returned: bool,
    /// Nothing was read yet but what may be a mark of the octets' order.
    began: bool,
    data: Option<Vec<u8>>,
}

/// An event is longer than one may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Octets of an event, at most.
    pub octets_max: usize,
}

impl Events {
    /// A stream from its beginning, whose events may have so many octets.
    pub const fn new(octets_max: usize) -> Self {
        Self { octets_max, line: Vec::new(), returned: false, began: false, data: None }
    }

    /// Takes more of the stream, and gives the events that are whole now.
    ///
    /// # Errors
    /// An event that is too long; the stream cannot be read on.
    pub fn take(&mut self, octets: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut events = Vec::new();
        for octet in octets {
            let ends = match octet {
                b'\n' if self.returned => {
                    self.returned = false;
                    continue;
                }
                b'\n' => true,
                b'\r' => true,
                _ => false,
            };
            self.returned = *octet == b'\r';
            if ends {
                events.extend(self.end_of_line());
                continue;
            }
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            // "data: " and one line feed are not part of it.
            if held >= self.octets_max.saturating_add(8) {
                return Err(TooLong { octets_max: self.octets_max });
            }
            self.line.push(*octet);
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let mut line = &*line;
        if !std::mem::replace(&mut self.began, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = match line.iter().position(|octet| *octet == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        if field == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stream: &[u8], at_a_time: usize) -> Vec<String> {
        let mut events = Events::new(100);
        let parts = stream.chunks(at_a_time).flat_map(|part| events.take(part).unwrap());
        parts.map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut_and_lines_end() {
        let text = "\u{feff}: hello\ndata: {\"a\":\ndata:1}\nid: 7\n\nevent: x\nretry: 5\n\n:\n\ndata\n\n\
                    data:  two\n\ndata: cut";
        let expected = ["{\"a\":\n1}", "", " two"];
        for end in ["\n", "\r", "\r\n"] {
            let stream = text.replace('\n', end);
            for at_a_time in [1, 2, 3, 7, 1000] {
                assert_eq!(all(stream.as_bytes(), at_a_time), expected, "{end:?} {at_a_time}");
            }
        }
    }

    #[test]
    fn an_event_is_bounded_over_all_its_lines_and_however_it_comes() {
        let with = |octets: usize| format!("data: {}\n\n", "x".repeat(octets));
        assert_eq!(Events::new(100).take(with(100).as_bytes()).unwrap()[0].len(), 100);
        assert_eq!(Events::new(100).take(with(103).as_bytes()), Err(TooLong { octets_max: 100 }));
        let lines = "data: x\n".repeat(1000);
        assert!(Events::new(100).take(lines.as_bytes()).is_err());
        assert!(Events::new(100).take(&[b':'; 200]).is_err());
    }
}
