//! HTTP/1.1 replies: bytes in, in pieces of any size; the body out, as far as it is there.
//!
//! Constraint: no I/O. A reply that is there whole, with its length announced, is not copied.
//!
//! Deliberately absent: compression (never asked for), trailers (passed over), pipelining.

mod chunks;
mod head;

use self::chunks::Chunks;
pub(crate) use self::head::Content;
use self::head::{Framing, LONGEST_HEAD, ReplyFields};

/// How often a head is looked at that comes in pieces, each time from its beginning: more lines than any head has.
const MOST_LOOKS: usize = 256;

/// One reply in progress.
#[derive(Debug, Default)]
pub(crate) struct ReplyReader {
    stage: ReadStage,
    head: ReplyFields,
    /// A head in progress.
    partial: Vec<u8>,
    /// How often it was looked at.
    looks: usize,
    /// The body so far, where it didn't come in one piece.
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReadStage {
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
    /// The body so far, but for what [`ReplyReader::forget_bytes`] took away.
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

impl ReplyReader {
    /// Takes the next bytes. `None` while the head isn't whole.
    pub(crate) fn feed_bytes<'a>(&'a mut self, data: &'a [u8], limit: usize) -> Result<Option<Fed<'a>>, Wrong> {
        let mut rest = data;
        if self.stage == ReadStage::Head {
            let Some(length) = self.begin_reply(data)? else { return Ok(None) };
            rest = &data[length..];
            if let ReadStage::Length(length) = self.stage {
                if length > limit as u64 {
                    return Err(Wrong::TooLarge);
                }
                // The way of nearly all replies: whole, in one piece, and not copied.
                if rest.len() as u64 >= length {
                    self.stage = ReadStage::Ended;
                    let (body, excess) = rest.split_at(length as usize);
                    return Ok(Some(self.head.fed_reply(body, true, !excess.is_empty())));
                }
            }
        }
        let used = self.take_body(rest)?;
        if self.body.len() > limit {
            return Err(Wrong::TooLarge);
        }
        Ok(Some(self.head.fed_reply(&self.body, self.stage == ReadStage::Ended, used < rest.len())))
    }

    /// The connection has ended. Whether that ends the body as it should.
    pub(crate) fn close_reply(&mut self) -> Option<Fed<'_>> {
        if self.stage != ReadStage::UntilClose {
            return None;
        }
        self.stage = ReadStage::Ended;
        Some(self.head.fed_reply(&self.body, true, false))
    }

    /// Whether anything of the reply has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage != ReadStage::Head || !self.partial.is_empty()
    }

    /// Whether the server closes the connection after this reply.
    pub(crate) fn closes_connection(&self) -> bool {
        self.head.closes
    }

    /// The value of `Mcp-Session-Id`.
    pub(crate) fn session_id(&self) -> Option<&str> {
        self.head.session.as_deref()
    }

    /// Drops so many bytes at the beginning of the body, so that a long stream doesn't grow without end. Whether it was done:
    /// for few bytes it isn't worth it.
    pub(crate) fn forget_bytes(&mut self, bytes: usize) -> bool {
        let worth_it = bytes > 16 * 1024 && bytes <= self.body.len();
        if worth_it {
            self.body.drain(..bytes);
        }
        worth_it
    }

    /// Drops all of the body so far: nobody reads it any more.
    pub(crate) fn discard_body(&mut self) {
        self.body.clear();
    }

    /// Ready for the next reply. Small buffers are kept.
    pub(crate) fn reset_reply(&mut self) {
        self.stage = ReadStage::Head;
        self.head = ReplyFields::default();
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
    fn begin_reply(&mut self, data: &[u8]) -> Result<Option<usize>, Wrong> {
        let before = self.partial.len();
        let parsed = if before == 0 {
            ReplyFields::parse_head(data)?
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
            ReplyFields::parse_head(&self.partial)?
        };
        let Some((head, length)) = parsed else {
            if before == 0 {
                self.partial.extend_from_slice(data);
            }
            return Ok(None);
        };
        self.partial.clear();
        self.stage = match head.framing {
            Framing::Nothing => ReadStage::Ended,
            Framing::Length(length) => ReadStage::Length(length),
            Framing::Chunks => ReadStage::Chunks(Chunks::default()),
            Framing::UntilClose => ReadStage::UntilClose,
        };
        self.head = head;
        Ok(Some(length - before))
    }

    /// Takes what belongs to the body; how many bytes that were, framing included.
    fn take_body(&mut self, data: &[u8]) -> Result<usize, Wrong> {
        match self.stage {
            ReadStage::Head | ReadStage::Ended => Ok(0),
            ReadStage::UntilClose => {
                self.body.extend_from_slice(data);
                Ok(data.len())
            }
            ReadStage::Length(missing) => {
                let taken = missing.min(data.len() as u64);
                self.body.extend_from_slice(&data[..taken as usize]);
                self.stage = if taken == missing { ReadStage::Ended } else { ReadStage::Length(missing - taken) };
                Ok(taken as usize)
            }
            ReadStage::Chunks(mut chunks) => {
                let used = chunks.take_chunk(data, &mut self.body)?;
                self.stage = if chunks.is_over() { ReadStage::Ended } else { ReadStage::Chunks(chunks) };
                Ok(used)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Content, ReplyReader, Wrong};

    const LIMIT: usize = 1 << 20;

    /// The body when the reply comes in pieces of these lengths, and whether it ended.
    fn read(reply: &[u8], pieces: &[usize]) -> Result<(Vec<u8>, bool), Wrong> {
        let (mut reader, mut at, mut body, mut ended) = (ReplyReader::default(), 0, Vec::new(), false);
        for piece in pieces.iter().copied().chain([reply.len()]) {
            let end = (at + piece).min(reply.len());
            let piece = &reply[std::mem::replace(&mut at, end)..end];
            if piece.is_empty() {
                continue;
            }
            if let Some(fed) = reader.feed_bytes(piece, LIMIT)? {
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
                let mut reader = ReplyReader::default();
                let _ = reader.feed_bytes(&mixed, LIMIT);
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
        let mut reader = ReplyReader::default();
        let head = b"HTTP/1.1 404 Gone\r\ncontent-type: TEXT/event-stream\r\nconnection: keep-alive, Close\r\nMcp-Session-Id: a1\r\n\r\n";
        assert!(!reader.feed_bytes(head, LIMIT).unwrap().unwrap().ended);
        assert_eq!((reader.head.status, reader.head.content, reader.closes_connection()), (404, Content::Events, true));
        assert_eq!(reader.session_id(), Some("a1"));
        assert!(reader.close_reply().unwrap().ended);
    }

    #[test]
    fn limits_hold() {
        let long = b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n";
        assert_eq!(ReplyReader::default().feed_bytes(long, LIMIT).unwrap_err(), Wrong::TooLarge);
        let mut endless = b"HTTP/1.1 200 OK\r\nx: ".to_vec();
        endless.resize(70_000, b'a');
        assert_eq!(ReplyReader::default().feed_bytes(&endless, LIMIT).unwrap_err(), Wrong::TooLarge);
        let mut chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n200000\r\n".to_vec();
        chunked.resize(LIMIT + 1000, b'a');
        assert_eq!(ReplyReader::default().feed_bytes(&chunked, LIMIT).unwrap_err(), Wrong::TooLarge);
    }

    #[test]
    fn a_head_in_drips_is_looked_at_once_a_line() {
        let drip = |bytes: &[u8]| {
            let mut reader = ReplyReader::default();
            let fed =
                bytes.iter().try_fold(false, |_, byte| reader.feed_bytes(&[*byte], LIMIT).map(|fed| fed.is_some()));
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
            ReplyReader::default().feed_bytes(head.as_bytes(), LIMIT).map(|fed| fed.is_some())
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
            assert!(matches!(ReplyReader::default().feed_bytes(reply, LIMIT), Err(Wrong::Rubbish(_))));
        }
    }
}
