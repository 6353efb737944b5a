//! Bytes to events, however the bytes are cut.

use std::collections::VecDeque;

use super::Event;

/// Turns a stream of bytes into events. Feed it, then ask until it has nothing more.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    items: VecDeque<Item>,
    failure: Option<SseError>,
    /// The line in progress.
    line: Vec<u8>,
    /// Whether the stream's first line is still in progress: it may begin with a byte order mark.
    first_line: bool,
    /// Whether the last byte was a carriage return, so that a line feed belongs to it.
    after_return: bool,
    block: Block,
    last_event_id: String,
    retry: Option<u64>,
    last_event_bytes: usize,
}

/// Item of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A dispatched event.
    Event {
        /// The event.
        event: Event,
        /// Its length on the wire: its lines with their endings and the blank line; comments in between not.
        bytes: usize,
    },
    /// A comment: usually a keep-alive.
    Comment {
        /// Text after the colon, without one leading space.
        text: String,
        /// Its length on the wire.
        bytes: usize,
    },
    /// A block of fields without data, which dispatches nothing, but may set the last event id and the retry time.
    Silent {
        /// The fields; the data is empty.
        fields: Event,
        /// Its length on the wire.
        bytes: usize,
    },
}

/// A stream that was given up. The peer's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event or a comment is longer than the limit. The decoder can't find the next boundary
    /// reliably, so it stops.
    #[error("an event is longer than {limit} bytes")]
    TooLong {
        /// The limit in force, in bytes.
        limit: usize,
    },
}

/// The fields since the last blank line.
#[derive(Debug, Default)]
struct Block {
    fields: Event,
    has_data: bool,
    /// Raw length so far; nothing has begun while it is 0.
    bytes: usize,
}

impl Decoder {
    /// Takes events and comments of at most `limit_bytes` on the wire.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit: limit_bytes,
            items: VecDeque::new(),
            failure: None,
            line: Vec::new(),
            first_line: true,
            after_return: false,
            block: Block::default(),
            last_event_id: String::new(),
            retry: None,
            last_event_bytes: 0,
        }
    }

    /// The next bytes of the stream. At its end there is nothing to call: an event without its blank line is no event.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.failure.is_none() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                self.line_feed_after_return();
                continue;
            }
            match memchr::memchr2(b'\n', b'\r', bytes) {
                Some(at) => {
                    self.after_return = bytes[at] == b'\r';
                    if self.grow_line(&bytes[..at], 1) {
                        self.end_line();
                    }
                    bytes = &bytes[at + 1..];
                }
                None => {
                    self.grow_line(bytes, 0);
                    bytes = &[];
                }
            }
        }
    }

    /// The next event, comments passed over. `None` until more bytes are fed.
    ///
    /// # Errors
    /// [`SseError::TooLong`], after all events before it, and then always.
    pub fn next_event(&mut self) -> Result<Option<Event>, SseError> {
        while let Some(item) = self.next_item()? {
            if let Item::Event { event, bytes } = item {
                self.last_event_bytes = bytes;
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The next event, comment or silent block. `None` until more bytes are fed.
    ///
    /// # Errors
    /// [`SseError::TooLong`], after all items before it, and then always.
    pub fn next_item(&mut self) -> Result<Option<Item>, SseError> {
        match (self.items.pop_front(), &self.failure) {
            (Some(item), _) => Ok(Some(item)),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => Ok(None),
        }
    }

    /// The length on the wire of the event that [`Decoder::next_event`] gave last, in bytes. A line feed that
    /// follows the carriage return of the last, blank line is not counted: it comes after the event.
    #[must_use]
    pub fn last_event_bytes(&self) -> usize {
        self.last_event_bytes
    }

    /// Whether the beginning of an event is here, but not its end.
    #[must_use]
    pub fn is_mid_event(&self) -> bool {
        let in_line = !self.line.is_empty() && self.line[0] != b':';
        self.failure.is_none() && (self.block.bytes > 0 || in_line)
    }

    /// Value for `Last-Event-ID` after a lost connection, as of all input so far.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        (!self.last_event_id.is_empty()).then_some(&self.last_event_id)
    }

    /// The last `retry` of the stream, in milliseconds, as of all that was fed.
    #[must_use]
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Adds to the line in progress, unless that makes the event too long; `ending` counts the line's end.
    fn grow_line(&mut self, bytes: &[u8], ending: usize) -> bool {
        if self.block.bytes + self.line.len() + bytes.len() + ending > self.limit {
            self.fail_event();
            return false;
        }
        self.line.extend_from_slice(bytes);
        true
    }

    fn fail_event(&mut self) {
        self.failure = Some(SseError::TooLong { limit: self.limit });
        self.line = Vec::new();
        self.block = Block::default();
    }

    /// The second half of a CRLF: part of the event's length if the event goes on.
    fn line_feed_after_return(&mut self) {
        if self.block.bytes > 0 {
            self.block.bytes += 1;
            if self.block.bytes > self.limit {
                self.fail_event();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let bytes = line.len() + 1;
        let mut text = line.as_slice();
        if std::mem::take(&mut self.first_line) {
            text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        }
        if text.is_empty() {
            self.dispatch_event();
        } else if let Some(comment) = text.strip_prefix(b":") {
            let text = String::from_utf8_lossy(strip_space(comment)).into_owned();
            self.items.push_back(Item::Comment { text, bytes });
        } else {
            self.block.bytes += bytes;
            self.take_field(text);
        }
        // The buffer is kept: most streams have lines of like length.
        self.line = line;
        self.line.clear();
    }

    fn take_field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], strip_space(&line[at + 1..])),
            None => (line, &[][..]),
        };
        let value = String::from_utf8_lossy(value);
        let block = &mut self.block;
        match name {
            b"data" => {
                if std::mem::replace(&mut block.has_data, true) {
                    block.fields.data.push('\n');
                }
                block.fields.data.push_str(&value);
            }
            b"event" => block.fields.event = (!value.is_empty()).then(|| value.into_owned()),
            b"id" if !value.contains('\0') => block.fields.id = Some(value.into_owned()),
            b"retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                // No digits, or too many for 64 bits, are no time: ignored.
                if let Ok(millis) = value.parse() {
                    block.fields.retry = Some(millis);
                    self.retry = Some(millis);
                }
            }
            _ => {}
        }
    }

    fn dispatch_event(&mut self) {
        let Block { fields, has_data, bytes } = std::mem::take(&mut self.block);
        if bytes == 0 {
            return;
        }
        if let Some(id) = &fields.id {
            self.last_event_id.clone_from(id);
        }
        let bytes = bytes + 1;
        self.items.push_back(if has_data {
            Item::Event { event: fields, bytes }
        } else {
            Item::Silent { fields, bytes }
        });
    }
}

fn strip_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}
