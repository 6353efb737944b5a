//! HTTP/1.1 replies: bytes in, in pieces of any size; the body out, as far as it is there.
//!
//! Constraint: no I/O. A reply that is there whole, with its length announced, is not copied.
//!
//! Deliberately absent: compression (never asked for), trailers (passed over), pipelining.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

/// One reply in progress.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    stage: Stage,
    status: u16,
    content: Content,
    /// Whether the server closes the connection after this reply.
    pub(crate) closes: bool,
    /// The value of `Mcp-Session-Id`.
    pub(crate) session: Option<Box<str>>,
    /// A head in progress.
    head: Vec<u8>,
    /// The body so far, where it didn't come in one piece.
    body: Vec<u8>,
}

/// What kind of body it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    Events,
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    /// So many bytes of the body are missing.
    Length(u64),
    Chunks(Chunk),
    /// The body ends with the connection.
    UntilClose,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// In the hexadecimal digits of a chunk's size.
    Size { size: u64, digits: u8 },
    /// After them: extensions, and the line's end.
    Extension { size: u64 },
    /// So many bytes of data are missing.
    Data(u64),
    /// The line's end after the data.
    DataEnd,
    /// In a line of the trailer that has so many bytes.
    Trailer(u16),
}

/// A reply as far as it is there.
#[derive(Debug)]
pub(crate) struct Fed<'a> {
    pub(crate) status: u16,
    pub(crate) content: Content,
    /// The body so far, but for what [`Reader::forget`] took away.
    pub(crate) body: &'a [u8],
    /// Whether this is all of it.
    pub(crate) ended: bool,
    /// Whether there were more bytes than the reply has.
    pub(crate) excess: bool,
}

/// Why it is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Not HTTP, or not as it must be.
    Rubbish(&'static str),
    /// More than is allowed.
    TooLarge,
}

const MOST_HEADERS: usize = 100;
const LONGEST_HEAD: usize = 64 * 1024;

impl Reader {
    /// Takes the next bytes. `None` while the head isn't whole.
    pub(crate) fn feed<'a>(&'a mut self, data: &'a [u8], limit: usize) -> Result<Option<Fed<'a>>, Wrong> {
        let mut rest = data;
        if self.stage == Stage::Head {
            let length = if self.head.is_empty() {
                match self.head(data)? {
                    Some(length) => length,
                    None => {
                        self.head.extend_from_slice(data);
                        return Ok(None);
                    }
                }
            } else {
                let before = self.head.len();
                let mut head = std::mem::take(&mut self.head);
                head.extend_from_slice(data);
                match self.head(&head)? {
                    Some(length) => length - before,
                    None => {
                        self.head = head;
                        return Ok(None);
                    }
                }
            };
            rest = &data[length..];
            if let Stage::Length(length) = self.stage {
                if length > limit as u64 {
                    return Err(Wrong::TooLarge);
                }
                // The way of nearly all replies: whole, in one piece, and not copied.
                if rest.len() as u64 >= length {
                    self.stage = Stage::Ended;
                    let body = &rest[..length as usize];
                    let excess = rest.len() as u64 > length;
                    return Ok(Some(Fed { status: self.status, content: self.content, body, ended: true, excess }));
                }
            }
        }
        let used = self.body(rest)?;
        if self.body.len() > limit {
            return Err(Wrong::TooLarge);
        }
        let ended = self.stage == Stage::Ended;
        let excess = used < rest.len();
        Ok(Some(Fed { status: self.status, content: self.content, body: &self.body, ended, excess }))
    }

    /// The connection has ended. Whether that ends the body as it should.
    pub(crate) fn close<'a>(&'a mut self) -> Option<Fed<'a>> {
        if self.stage != Stage::UntilClose {
            return None;
        }
        self.stage = Stage::Ended;
        Some(Fed { status: self.status, content: self.content, body: &self.body, ended: true, excess: false })
    }

    /// Whether anything of the reply has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Head || !self.head.is_empty()
    }

    /// Drops so many bytes at the beginning of the body, so that a long stream doesn't grow without end. Whether it was done:
    /// for few bytes it isn't worth it.
    pub(crate) fn forget(&mut self, bytes: usize) -> bool {
        let worth_it = bytes > 16 * 1024 && bytes <= self.body.len();
        if worth_it {
            self.body.drain(..bytes);
        }
        worth_it
    }

    /// Drops all of the body so far: nobody reads it any more.
    pub(crate) fn discard(&mut self) {
        self.body.clear();
    }

    /// Ready for the next reply. Small buffers are kept.
    pub(crate) fn reset(&mut self) {
        self.stage = Stage::Head;
        self.closes = false;
        self.session = None;
        for buffer in [&mut self.head, &mut self.body] {
            if buffer.capacity() > 4096 {
                *buffer = Vec::new();
            } else {
                buffer.clear();
            }
        }
    }

    /// Reads a head; its length once it is whole.
    fn head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Wrong> {
        let mut skipped = 0;
        loop {
            let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
            let mut response = Response::new(&mut []);
            let rest = &bytes[skipped..];
            let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, rest, &mut headers);
            match parsed {
                Err(httparse::Error::TooManyHeaders) => return Err(Wrong::TooLarge),
                Err(_) => return Err(Wrong::Rubbish("no HTTP reply")),
                Ok(Status::Partial) if bytes.len() > LONGEST_HEAD => return Err(Wrong::TooLarge),
                Ok(Status::Partial) => return Ok(None),
                Ok(Status::Complete(length)) => {
                    skipped += length;
                    if skipped > LONGEST_HEAD {
                        return Err(Wrong::TooLarge);
                    }
                    let status = response.code.unwrap_or_default();
                    // Interim replies (100, 103) come before the one that counts.
                    if (100..200).contains(&status) {
                        continue;
                    }
                    self.status = status;
                    self.closes = response.version == Some(0);
                    self.take(response.headers)?;
                    return Ok(Some(skipped));
                }
            }
        }
    }

    fn take(&mut self, headers: &[Header<'_>]) -> Result<(), Wrong> {
        let (mut length, mut chunked, mut content) = (None, false, Content::Other);
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            // By length first: four comparisons for each header of each reply would show.
            match header.name.len() {
                14 if is("content-length") => match decimal(header.value) {
                    Some(value) if length.is_none_or(|before| before == value) => length = Some(value),
                    _ => return Err(Wrong::Rubbish("a content-length that is none")),
                },
                12 if is("content-type") => content = kind(header.value),
                17 if is("transfer-encoding") => {
                    chunked = header.value.eq_ignore_ascii_case(b"chunked");
                    if !chunked {
                        return Err(Wrong::Rubbish("a transfer-encoding other than chunked"));
                    }
                }
                10 if is("connection") => {
                    let options = header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                    for option in options {
                        self.closes |= option.eq_ignore_ascii_case(b"close");
                    }
                }
                14 if is("mcp-session-id") => {
                    if header.value.is_empty() || !header.value.iter().all(u8::is_ascii_graphic) {
                        return Err(Wrong::Rubbish("a session id with characters that none may have"));
                    }
                    self.session = std::str::from_utf8(header.value).ok().map(Box::from);
                }
                _ => {}
            }
        }
        self.content = content;
        self.stage = match (self.status, chunked, length) {
            (204 | 304, ..) | (_, false, Some(0)) => Stage::Ended,
            (_, true, _) => Stage::Chunks(Chunk::Size { size: 0, digits: 0 }),
            (_, false, Some(length)) => Stage::Length(length),
            (_, false, None) => Stage::UntilClose,
        };
        Ok(())
    }

    /// Takes what belongs to the body; how many bytes that were, framing included.
    fn body(&mut self, data: &[u8]) -> Result<usize, Wrong> {
        match self.stage {
            Stage::Head | Stage::Ended => Ok(0),
            Stage::UntilClose => {
                self.body.extend_from_slice(data);
                Ok(data.len())
            }
            Stage::Length(missing) => {
                let taken = missing.min(data.len() as u64);
                self.body.extend_from_slice(&data[..taken as usize]);
                self.stage = if taken == missing { Stage::Ended } else { Stage::Length(missing - taken) };
                Ok(taken as usize)
            }
            Stage::Chunks(mut chunk) => {
                let mut at = 0;
                while at < data.len() {
                    match self.chunk(chunk, &data[at..])? {
                        (used, Some(next)) => {
                            at += used;
                            chunk = next;
                        }
                        (used, None) => {
                            self.stage = Stage::Ended;
                            return Ok(at + used);
                        }
                    }
                }
                self.stage = Stage::Chunks(chunk);
                Ok(at)
            }
        }
    }

    /// One step in chunked framing (RFC 9112 §7.1): how many bytes it used, and what comes next.
    fn chunk(&mut self, chunk: Chunk, data: &[u8]) -> Result<(usize, Option<Chunk>), Wrong> {
        const LONGEST_EXTENSION: &str = "a chunk's size that is none";
        let byte = data[0];
        Ok(match chunk {
            Chunk::Size { size, digits } => match (byte as char).to_digit(16) {
                Some(digit) if digits < 15 => {
                    (1, Some(Chunk::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }))
                }
                None if digits > 0 && matches!(byte, b';' | b'\r' | b'\n' | b' ' | b'\t') => {
                    (0, Some(Chunk::Extension { size }))
                }
                _ => return Err(Wrong::Rubbish(LONGEST_EXTENSION)),
            },
            Chunk::Extension { size } => match (memchr::memchr(b'\n', data), size) {
                (None, _) => (data.len(), Some(chunk)),
                (Some(end), 0) => (end + 1, Some(Chunk::Trailer(0))),
                (Some(end), size) => (end + 1, Some(Chunk::Data(size))),
            },
            Chunk::Data(missing) => {
                let taken = missing.min(data.len() as u64);
                self.body.extend_from_slice(&data[..taken as usize]);
                let next = if taken == missing { Chunk::DataEnd } else { Chunk::Data(missing - taken) };
                (taken as usize, Some(next))
            }
            Chunk::DataEnd => match byte {
                b'\r' => (1, Some(Chunk::DataEnd)),
                b'\n' => (1, Some(Chunk::Size { size: 0, digits: 0 })),
                _ => return Err(Wrong::Rubbish("a chunk that is longer than its size")),
            },
            Chunk::Trailer(length) => match (byte, length) {
                (b'\n', 0) => (1, None),
                (b'\n', _) => (1, Some(Chunk::Trailer(0))),
                (b'\r', _) => (1, Some(chunk)),
                (_, 8192..) => return Err(Wrong::TooLarge),
                (_, length) => (1, Some(Chunk::Trailer(length + 1))),
            },
        })
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.len() < 19 && value.iter().all(u8::is_ascii_digit);
    digits.then(|| value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

fn kind(value: &[u8]) -> Content {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    let essence = value[..end].trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Content::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Content::Events
    } else {
        Content::Other
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Content, Reader, Wrong};

    const LIMIT: usize = 1 << 20;

    /// The body when the reply comes in pieces of these lengths, and whether it ended.
    fn read(reply: &[u8], pieces: &[usize]) -> Result<(Vec<u8>, bool), Wrong> {
        let (mut reader, mut at, mut body, mut ended) = (Reader::default(), 0, Vec::new(), false);
        for piece in pieces.iter().copied().chain([reply.len()]) {
            let end = (at + piece).min(reply.len());
            let piece = &reply[std::mem::replace(&mut at, end)..end];
            if piece.is_empty() {
                continue;
            }
            if let Some(fed) = reader.feed(piece, LIMIT)? {
                assert!(!fed.excess);
                (body, ended) = (fed.body.to_vec(), fed.ended);
            }
        }
        Ok((body, ended))
    }

    const LENGTH: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=1\r\nhel\r\n02\r\nlo\r\n0\r\nA: b\r\n\r\n";

    proptest! {
        #[test]
        fn pieces_make_no_difference(pieces in prop::collection::vec(0usize..30, 0..20)) {
            for reply in [LENGTH, CHUNKED, &[b"HTTP/1.1 100 Continue\r\n\r\n".as_slice(), CHUNKED].concat()] {
                prop_assert_eq!(read(reply, &pieces).unwrap(), (b"hello".to_vec(), true));
            }
        }

        #[test]
        fn rubbish_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..90) {
            for reply in [LENGTH, CHUNKED] {
                let mut mixed = reply[..cut.min(reply.len())].to_vec();
                mixed.extend_from_slice(&bytes);
                let mut reader = Reader::default();
                let _ = reader.feed(&mixed, LIMIT);
            }
        }
    }

    #[test]
    fn half_of_it_is_not_all_of_it() {
        for reply in [LENGTH, CHUNKED] {
            assert!(!read(&reply[..reply.len() - 1], &[]).unwrap().1);
        }
    }

    #[test]
    fn heads_are_understood() {
        let mut reader = Reader::default();
        let head = b"HTTP/1.1 404 Gone\r\ncontent-type: TEXT/event-stream\r\nconnection: keep-alive, Close\r\nMcp-Session-Id: a1\r\n\r\n";
        assert!(!reader.feed(head, LIMIT).unwrap().unwrap().ended);
        assert_eq!((reader.status, reader.content, reader.closes), (404, Content::Events, true));
        assert_eq!(reader.session.as_deref(), Some("a1"));
        assert!(reader.close().unwrap().ended);
    }

    #[test]
    fn limits_hold() {
        let long = b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n";
        assert_eq!(Reader::default().feed(long, LIMIT).unwrap_err(), Wrong::TooLarge);
        let mut endless = b"HTTP/1.1 200 OK\r\nx: ".to_vec();
        endless.resize(70_000, b'a');
        assert_eq!(Reader::default().feed(&endless, LIMIT).unwrap_err(), Wrong::TooLarge);
        let mut chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n200000\r\n".to_vec();
        chunked.resize(LIMIT + 1000, b'a');
        assert_eq!(Reader::default().feed(&chunked, LIMIT).unwrap_err(), Wrong::TooLarge);
    }

    #[test]
    fn what_is_no_http_is_refused() {
        let replies: [&[u8]; 4] = [
            b"nonsense\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        ];
        for reply in replies {
            assert!(matches!(Reader::default().feed(reply, LIMIT), Err(Wrong::Rubbish(_))));
        }
    }
}
