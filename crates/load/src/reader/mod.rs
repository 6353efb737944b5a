//! HTTP/1.1 replies: bytes in, in pieces of any size; the body out, as far as it is there.
//!
//! Constraint: no I/O. A reply that is there whole, with its length announced, is not copied.
//!
//! Deliberately absent: compression (never asked for), trailers (passed over), pipelining.

mod chunks;
mod head;

use self::chunks::Chunks;
pub(crate) use self::head::Content;
use self::head::{Framing, Head, LONGEST_HEAD};

/// How often a head is looked at that comes in pieces, each time from its beginning: more lines than any head has.
const MOST_LOOKS: usize = 256;

/// One reply in progress.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    stage: Stage,
    head: Head,
    /// A head in progress.
    partial: Vec<u8>,
    /// How often it was looked at.
    looks: usize,
    /// The body so far, where it didn't come in one piece.
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    /// Reading a body of known length; the value is the number of bytes that are missing.
    Length(u64),
    Chunks(Chunks),
    /// The body ends with the connection.
    UntilClose,
    Ended,
}

/// A reply as far as it is there.
#[derive(Debug)]
pub(crate) struct Fed<'a> {
    pub(crate) status: u16,
    pub(crate) content: Content,
    /// Where a redirect leads.
    pub(crate) location: Option<&'a str>,
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

impl Reader {
    /// Takes the next bytes. `None` while the head isn't whole.
    pub(crate) fn feed<'a>(&'a mut self, data: &'a [u8], limit: usize) -> Result<Option<Fed<'a>>, Wrong> {
        let mut rest = data;
        if self.stage == Stage::Head {
            let Some(length) = self.begin(data)? else { return Ok(None) };
            rest = &data[length..];
            if let Stage::Length(length) = self.stage {
                if length > limit as u64 {
                    return Err(Wrong::TooLarge);
                }
                // The way of nearly all replies: whole, in one piece, and not copied.
                if rest.len() as u64 >= length {
                    self.stage = Stage::Ended;
                    let (body, excess) = rest.split_at(length as usize);
                    return Ok(Some(self.head.fed(body, true, !excess.is_empty())));
                }
            }
        }
        let used = self.body(rest)?;
        if self.body.len() > limit {
            return Err(Wrong::TooLarge);
        }
        Ok(Some(self.head.fed(&self.body, self.stage == Stage::Ended, used < rest.len())))
    }

    /// The connection has ended. Whether that ends the body as it should.
    pub(crate) fn close(&mut self) -> Option<Fed<'_>> {
        if self.stage != Stage::UntilClose {
            return None;
        }
        self.stage = Stage::Ended;
        Some(self.head.fed(&self.body, true, false))
    }

    /// Whether anything of the reply has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Head || !self.partial.is_empty()
    }

    /// Whether the server closes the connection after this reply.
    pub(crate) fn closes(&self) -> bool {
        self.head.closes
    }

    /// The value of `Mcp-Session-Id`.
    pub(crate) fn session(&self) -> Option<&str> {
        self.head.session.as_deref()
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
        self.head = Head::default();
        self.looks = 0;
        for buffer in [&mut self.partial, &mut self.body] {
            if buffer.capacity() > 4096 {
                *buffer = Vec::new();
            } else {
                buffer.clear();
            }
        }
    }

    /// Reads a head; how many of these bytes belong to it, once it is whole.
    fn begin(&mut self, data: &[u8]) -> Result<Option<usize>, Wrong> {
        let before = self.partial.len();
        let parsed = if before == 0 {
            Head::parse(data)?
        } else {
            self.partial.extend_from_slice(data);
            // Only a line's end can end a head: who sends it byte by byte doesn't have it read as often.
            if memchr::memchr(b'\n', data).is_none() && self.partial.len() <= LONGEST_HEAD {
                return Ok(None);
            }
            self.looks += 1;
            if self.looks > MOST_LOOKS {
                return Err(Wrong::TooLarge);
            }
            Head::parse(&self.partial)?
        };
        let Some((head, length)) = parsed else {
            if before == 0 {
                self.partial.extend_from_slice(data);
            }
            return Ok(None);
        };
        self.partial.clear();
        self.stage = match head.framing {
            Framing::Nothing => Stage::Ended,
            Framing::Length(length) => Stage::Length(length),
            Framing::Chunks => Stage::Chunks(Chunks::default()),
            Framing::UntilClose => Stage::UntilClose,
        };
        self.head = head;
        Ok(Some(length - before))
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
            Stage::Chunks(mut chunks) => {
                let used = chunks.take(data, &mut self.body)?;
                self.stage = if chunks.is_over() { Stage::Ended } else { Stage::Chunks(chunks) };
                Ok(used)
            }
        }
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
        assert_eq!((reader.head.status, reader.head.content, reader.closes()), (404, Content::Events, true));
        assert_eq!(reader.session(), Some("a1"));
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
    fn a_head_in_drips_is_looked_at_once_a_line() {
        let drip = |bytes: &[u8]| {
            let mut reader = Reader::default();
            let fed = bytes.iter().try_fold(false, |_, byte| reader.feed(&[*byte], LIMIT).map(|fed| fed.is_some()));
            (fed, reader.looks)
        };
        let lines = "X-Line: as long as lines are\r\n".repeat(90);
        let head = format!("HTTP/1.1 200 OK\r\n{lines}X-Long: {}\r\n\r\n", "a".repeat(60_000));
        assert_eq!(drip(head.as_bytes()), (Ok(true), 93));
        // However it is made, no head is looked at for long.
        for endless in ["\r\n".repeat(32_000), "\n".repeat(65_000), "HTTP/1.1 100 Continue\r\n\r\n".repeat(2_600)] {
            let (fed, looks) = drip(endless.as_bytes());
            assert_eq!(fed, Err(Wrong::TooLarge), "{:?}", &endless[..9]);
            assert!(looks <= 257, "{looks}");
        }
    }

    #[test]
    fn a_session_id_that_would_be_sent_with_each_call_is_not_long() {
        let read = |length: usize| {
            let head = format!("HTTP/1.1 200 OK\r\nMcp-Session-Id: {}\r\n\r\n", "a".repeat(length));
            Reader::default().feed(head.as_bytes(), LIMIT).map(|fed| fed.is_some())
        };
        assert_eq!((read(1024), read(1025)), (Ok(true), Err(Wrong::TooLarge)));
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
