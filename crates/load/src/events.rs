//! The messages in an event stream, cut out of its bytes without copying.
//!
//! `mcpace_wire::sse` keeps every field of every event, in memory of its own. Here only the data counts, and the bytes are at
//! hand anyway; the two are held to the same answers by a test.

use memchr::memchr2;

/// How far a stream was read. The bytes stay with whoever has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scan {
    /// The first byte of the event in progress.
    block: usize,
    /// The first byte of the line in progress.
    line: usize,
    /// Up to here there is no line's end.
    searched: usize,
}

impl Scan {
    /// The data of the next whole event in `bytes`, which is all of the stream since it began (or since [`Scan::forget_bytes`]).
    /// Events without data are passed over. Data of several lines is joined in `joined`.
    pub(crate) fn next_event<'a>(&mut self, bytes: &'a [u8], joined: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        loop {
            let block = self.next_block(bytes)?;
            let mut lines = EventLines(block).filter_map(data_value);
            let Some(first) = lines.next() else { continue };
            let Some(second) = lines.next() else {
                if first.is_empty() {
                    continue;
                }
                return Some(first);
            };
            joined.clear();
            joined.extend_from_slice(first);
            for line in std::iter::once(second).chain(lines) {
                joined.push(b'\n');
                joined.extend_from_slice(line);
            }
            return Some(joined);
        }
    }

    /// How many bytes at the beginning are not needed any more.
    pub(crate) fn done_bytes(&self) -> usize {
        self.block
    }

    /// Adjusts the positions after `bytes` bytes were removed from the beginning of the buffer.
    pub(crate) fn forget_bytes(&mut self, bytes: usize) {
        self.block -= bytes;
        self.line -= bytes;
        self.searched -= bytes;
    }

    /// The lines up to the next blank one.
    fn next_block<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        loop {
            let Some(length) = memchr2(b'\n', b'\r', bytes.get(self.searched..)?) else {
                self.searched = bytes.len();
                return None;
            };
            let end = self.searched + length;
            let next = match (bytes[end], bytes.get(end + 1)) {
                (b'\r', Some(b'\n')) => end + 2,
                // A line feed may belong to it: the next byte will tell. That a stream ends so is no event lost, but a result
                // would be; so a blank line counts at once.
                (b'\r', None) if end > self.line => {
                    self.searched = end;
                    return None;
                }
                _ => end + 1,
            };
            let blank = end == self.line;
            let block = &bytes[self.block..self.line];
            (self.line, self.searched) = (next, next);
            if blank {
                self.block = next;
                return Some(block);
            }
        }
    }
}

/// Lines, each without its end.
struct EventLines<'a>(&'a [u8]);

impl<'a> Iterator for EventLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr2(b'\n', b'\r', self.0).unwrap_or(self.0.len());
        let line = &self.0[..end];
        let ending = if self.0[end..].starts_with(b"\r\n") { 2 } else { 1 };
        self.0 = self.0.get(end + ending..).unwrap_or_default();
        Some(line)
    }
}

/// The value of a `data` field.
fn data_value(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest.split_first() {
        None => Some(rest),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use mcpace_wire::sse::Decoder;
    use proptest::prelude::*;

    use super::Scan;

    fn all(stream: &[u8], pieces: &[usize]) -> Vec<String> {
        let (mut scan, mut found, mut joined, mut end) = (Scan::default(), Vec::new(), Vec::new(), 0);
        for piece in pieces.iter().copied().chain([stream.len()]) {
            end = (end + piece).min(stream.len());
            while let Some(data) = scan.next_event(&stream[..end], &mut joined) {
                found.push(String::from_utf8_lossy(data).into_owned());
            }
        }
        found
    }

    #[test]
    fn priming_events_comments_and_several_lines() {
        let stream = b"id: 1\ndata: \n\n: ping\n\nevent: message\r\ndata: {\r\ndata:}\r\n\r\ndata: x\n\ndata: half";
        assert_eq!(all(stream, &[3, 9]), ["{\n}", "x"]);
    }

    proptest! {
        #[test]
        fn it_finds_what_the_decoder_finds(stream in "(data|data: |data:|id: 1|:|a|\n|\r\n|\n\n|\\{\\})*",
                                           pieces in prop::collection::vec(0usize..7, 0..20)) {
            let mut decoder = Decoder::new(1 << 20);
            decoder.feed(stream.as_bytes());
            let mut expected = Vec::new();
            while let Ok(Some(event)) = decoder.next_event() {
                // Events without data are of no use here.
                if !event.data.is_empty() {
                    expected.push(event.data);
                }
            }
            prop_assert_eq!(all(stream.as_bytes(), &pieces), expected);
        }
    }
}
